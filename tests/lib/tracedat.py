# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of trace-cmd (trace.dat) for tests: a writer of versions 6 and 7, a reader, and the rules of couplebreak as a
quadratic model. Written from the description of the layout and of the rules, independently of the C code."""
import re
import struct
import zlib

MAGIC = b"\x17\x08\x44tracing"
LOST = -75
SWITCH, WAKING, MIGRATE = -10000, -10001, -10002
TWINS = {"sched/sched_switch": (SWITCH, "next_pid", None), "sched/sched_waking": (WAKING, "pid", "target_cpu"),
         "sched/sched_migrate_task": (MIGRATE, "pid", "dest_cpu")}
NAMES = {SWITCH: "couplebreak/sched_switch[target]", WAKING: "couplebreak/sched_waking[target]",
         MIGRATE: "couplebreak/sched_migrate_task[target]", LOST: "missed_events"}
COMMON = (("unsigned short", "common_type", 0, 2, 0), ("unsigned char", "common_flags", 2, 1, 0),
          ("unsigned char", "common_preempt_count", 3, 1, 0), ("int", "common_pid", 4, 4, 1))
# Fields of the events that tests write: type, name, bytes, signed; and how they print.
EVENTS = {
    ("sched", "sched_switch"): ((("char", "prev_comm[16]", 16, 0), ("pid_t", "prev_pid", 4, 1), ("int", "prev_prio", 4, 1),
                                 ("long", "prev_state", 8, 1), ("char", "next_comm[16]", 16, 0),
                                 ("pid_t", "next_pid", 4, 1), ("int", "next_prio", 4, 1)),
                                '"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%ld ==> next_comm=%s next_pid=%d '
                                'next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->prev_state, '
                                'REC->next_comm, REC->next_pid, REC->next_prio'),
    ("sched", "sched_waking"): ((("char", "comm[16]", 16, 0), ("pid_t", "pid", 4, 1), ("int", "prio", 4, 1),
                                 ("int", "target_cpu", 4, 1)),
                                '"comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, '
                                'REC->target_cpu'),
    ("sched", "sched_migrate_task"): ((("char", "comm[16]", 16, 0), ("pid_t", "pid", 4, 1), ("int", "prio", 4, 1),
                                       ("int", "orig_cpu", 4, 1), ("int", "dest_cpu", 4, 1)),
                                      '"comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, '
                                      'REC->prio, REC->orig_cpu, REC->dest_cpu'),
    ("test", "mark"): ((("u64", "value", 8, 0), ("u16", "small", 2, 0)), '"value=%llu small=%u", REC->value, REC->small'),
}
IDS = {name: 300 + 3 * i for i, name in enumerate(EVENTS)}


def layout(key):
    """[(type, name as in the format, offset, size, signed)] of an event's own fields."""
    found, at = [], 8
    for kind, name, size, signed in EVENTS[key][0]:
        step = 1 if "[" in name else size
        at = -(-at // step) * step
        found.append((kind, name, at, size, signed))
        at += size
    return found


def format_text(key):
    def line(field):
        return "\tfield:%s %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % field
    return (f"name: {key[1]}\nID: {IDS[key]}\nformat:\n" + "".join(map(line, COMMON)) + "\n" +
            "".join(map(line, layout(key))) + f"\nprint fmt: {EVENTS[key][1]}\n").encode()


HEADER_EVENT = b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n"


class Recording:
    """Events of some CPUs, as bytes of a file. order: "<" or ">"."""

    def __init__(self, n_cpus, order="<", long_bytes=8, page=4096):
        self.n_cpus, self.order, self.long_bytes, self.page = n_cpus, order, long_bytes, page
        self.events = {cpu: [] for cpu in range(n_cpus)}  # (time, payload, records lost before or None)
        self.tasks, self.options, self.clock = {}, [], None
        self.formats = [(key[0], format_text(key)) for key in EVENTS]
        self.buffers = []

    def pack(self, kind, *values):
        return struct.pack(self.order + kind, *values)

    def add(self, cpu, time, task, key, lost=None, flags=0, preempt=0, **values):
        fields = layout(key)
        size = -(-(fields[-1][2] + fields[-1][3]) // 4) * 4
        raw = bytearray(size)
        struct.pack_into(self.order + "HBBi", raw, 0, IDS[key], flags, preempt, task)
        for _, name, at, n, signed in fields:
            plain = name.split("[")[0]
            if "[" in name:
                raw[at:at + n] = values.get(plain, "").encode()[:n - 1].ljust(n, b"\0")
            else:
                kind = {1: "b", 2: "h", 4: "i", 8: "q"}[n]
                struct.pack_into(self.order + (kind if signed else kind.upper()), raw, at, values.get(plain, 0))
        self.events[cpu].append((time, bytes(raw), lost))

    def switch(self, cpu, time, before, after, **more):
        self.add(cpu, time, before, ("sched", "sched_switch"), prev_comm=self.tasks.get(before, "<idle>"), prev_pid=before,
                 prev_prio=120, next_comm=self.tasks.get(after, "<idle>"), next_pid=after, next_prio=120, **more)

    def waking(self, cpu, time, waker, woken, target, **more):
        self.add(cpu, time, waker, ("sched", "sched_waking"), comm=self.tasks.get(woken, "?"), pid=woken, prio=120,
                 target_cpu=target, **more)

    def migrate(self, cpu, time, by, task, old, new, **more):
        self.add(cpu, time, by, ("sched", "sched_migrate_task"), comm=self.tasks.get(task, "?"), pid=task, prio=120,
                 orig_cpu=old, dest_cpu=new, **more)

    def header_page(self):
        text = "".join("\tfield: %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % field for field in (
            ("u64 timestamp", 0, 8, 0), ("local_t commit", 8, self.long_bytes, 1), ("int overwrite", 8, 1, 1),
            ("char data", 8 + self.long_bytes, self.page - 8 - self.long_bytes, 0)))
        return text.encode()

    def entry(self, kind, delta):
        return self.pack("I", kind | delta << 5 if self.order == "<" else kind << 27 | delta)

    def pages(self, cpu):
        """The pages of a CPU's events, in the order in which they were added."""
        pages, data, first, now = [], b"", 0, 0
        room = self.page - 8 - self.long_bytes
        lost_here = None

        def close():
            nonlocal data, lost_here
            commit = len(data)
            if lost_here is not None:
                commit |= 1 << 31 | (1 << 30 if lost_here else 0)
                tail = self.pack("Q" if self.long_bytes == 8 else "I", lost_here) if lost_here else b""
                data += tail
            head = self.pack("Q", first) + self.pack("Q" if self.long_bytes == 8 else "I", commit)
            pages.append((head + data).ljust(self.page, b"\0"))
            data, lost_here = b"", None

        for time, raw, lost in self.events[cpu]:
            if data and (lost is not None or len(data) + len(raw) + 24 > room - self.long_bytes):
                close()
            if not data:
                first = now = time
                lost_here = lost
            delta = time - now
            if delta >= 1 << 27:
                data += self.entry(30, delta & (1 << 27) - 1) + self.pack("I", delta >> 27)
                delta = 0
            now = time
            if len(raw) <= 112 and len(raw) % 4 == 0:
                data += self.entry(len(raw) // 4, delta) + raw
            else:
                padded = raw.ljust(-(-len(raw) // 4) * 4, b"\0")
                data += self.entry(0, delta) + self.pack("I", len(padded) + 4) + padded
        if data:
            close()
        return b"".join(pages)

    def parts(self):
        """The contents of the sections that both versions have: ids of version 7."""
        def sized(kind, raw):
            return self.pack(kind, len(raw)) + raw
        systems = {}
        for system, text in self.formats:
            systems.setdefault(system, []).append(text)
        events = self.pack("I", len(systems))
        for system, texts in systems.items():
            events += system.encode() + b"\0" + self.pack("I", len(texts)) + b"".join(sized("Q", t) for t in texts)
        tasks = "".join(f"{task} {name}\n" for task, name in self.tasks.items()).encode()
        return {16: b"header_page\0" + sized("Q", self.header_page()) + b"header_event\0" + sized("Q", HEADER_EVENT),
                17: self.pack("I", 0), 18: events, 19: self.pack("I", 0), 20: self.pack("I", 0),
                21: sized("Q", tasks)}

    def head(self, version):
        return MAGIC + version + b"\0" + self.pack("BBI", self.order == ">", self.long_bytes, self.page)

    def version_6(self):
        out = self.head(b"6") + b"".join(self.parts()[i] for i in range(16, 22)) + self.pack("I", self.n_cpus)
        options = list(self.options) + ([(4, b"")] if self.clock else [])
        out += b"options  \0" + b"".join(self.pack("HI", i, len(raw)) + raw for i, raw in options) + self.pack("H", 0)
        out += b"flyrecord\0"
        pages = [self.pages(cpu) for cpu in range(self.n_cpus)]
        tail = self.pack("Q", len(self.clock)) + self.clock.encode() if self.clock else b""
        start = -(-(len(out) + 16 * self.n_cpus + len(tail)) // self.page) * self.page
        table, at = b"", start
        for raw in pages:
            table += self.pack("QQ", at if raw else 0, len(raw))
            at += len(raw)
        return (out + table + tail).ljust(start, b"\0") + b"".join(pages)

    def version_7(self, compression="none", buffer=""):
        squeeze = {"none": None, "zlib": zlib.compress}[compression]
        out = self.head(b"7") + compression.encode() + b"\0" + b"1\0"
        at_options = len(out)
        out += bytes(8)

        def section(number, raw, is_squeezed=True):
            nonlocal out
            start, flags = len(out), 0
            if squeeze and is_squeezed:
                small = squeeze(raw)
                raw, flags = self.pack("II", len(small), len(raw)) + small, 1
            out += self.pack("HHIQ", number, flags, 0, len(raw)) + raw
            return start

        options = list(self.options) + [(i, self.pack("Q", section(i, raw))) for i, raw in self.parts().items()]
        start, table = len(out), b""
        out += self.pack("HHIQ", 3, 1 if squeeze else 0, 0, 0)
        out = out.ljust(-(-len(out) // self.page) * self.page, b"\0")
        for cpu in range(self.n_cpus):
            raw, length = self.pages(cpu), None
            if squeeze and raw:
                chunks = [raw[i:i + 2 * self.page] for i in range(0, len(raw), 2 * self.page)]
                small = [squeeze(chunk) for chunk in chunks]
                raw = self.pack("I", len(chunks)) + b"".join(self.pack("II", len(s), len(c)) + s
                                                             for s, c in zip(small, chunks))
                length = len(raw) - 4  # trace-cmd does not count the number of pieces
            table += self.pack("IQQ", cpu, len(out), len(raw) if length is None else length)
            out += raw
        options.append((8, self.pack("I", self.n_cpus)))
        options.append((3, self.pack("Q", start) + buffer.encode() + b"\0" + (self.clock or "[local]").encode() + b"\0" +
                        self.pack("II", self.page, self.n_cpus) + table))
        raw = b"".join(self.pack("HI", i, len(data)) + data for i, data in options) + self.pack("HIQ", 0, 8, 0)
        where = section(0, raw)
        return out[:at_options] + self.pack("Q", where) + out[at_options + 8:]


def write_tiled(path, n_events):
    """A version 6 recording of four CPUs with about so many switches and wakings: the same pages again and again, later."""
    made, n_cpus, period = Recording(4), 4, 400
    made.tasks = {task: f"task{task}" for task in range(1, 201)}
    block = min(20000, max(40, n_events // n_cpus // 40 * 40))
    tiled = []
    for cpu in range(n_cpus):
        made.events[cpu] = []
        for i in range(block):
            time, task, other = 1000 + i * period + cpu * 97, i % 200 + 1, (i + 1) % 200 + 1
            if i % 2:
                made.waking(cpu, time, task, other, (cpu + 1) % n_cpus)
            else:
                made.switch(cpu, time, task, other)
        pages, out = made.pages(cpu), bytearray()
        for again in range(max(1, n_events // n_cpus // block)):
            for at in range(0, len(pages), made.page):
                first, = struct.unpack_from("<Q", pages, at)
                out += struct.pack("<Q", first + again * block * period) + pages[at + 8:at + made.page]
        tiled.append(bytes(out))
    made.pages = lambda cpu: tiled[cpu]
    path.write_bytes(made.version_6())


# --- reading ----------------------------------------------------------------------------------------------------------


class Event:
    """One row: what all events have, and its fields by name."""

    def __init__(self, time, cpu, task, number, name, fields, origin=None):
        self.time, self.cpu, self.task, self.id, self.name = time, cpu, task, number, name
        self.fields, self.origin = fields, origin

    def row(self):
        return (self.time, self.cpu, self.task, self.name)


class Reader:
    """A version 6 or uncompressed version 7 file, little-endian, in memory."""

    def __init__(self, raw):
        assert raw.startswith(MAGIC)
        self.raw, self.types, self.tasks, self.cpus, self.uname = raw, {}, {}, [], None
        version = raw[10:raw.index(b"\0", 10)]
        self.at = 10 + len(version) + 1
        endian, self.long_bytes, self.page = self.take("<BBI")
        assert endian == 0
        (self.version_6 if version == b"6" else self.version_7)()
        self.events = self.merge()

    def take(self, kind):
        values = struct.unpack_from(kind, self.raw, self.at)
        self.at += struct.calcsize(kind)
        return values

    def text(self):
        end = self.raw.index(b"\0", self.at)
        found = self.raw[self.at:end]
        self.at = end + 1
        return found.decode()

    def sized(self, kind):
        n, = self.take(kind)
        self.at += n
        return self.raw[self.at - n:self.at]

    def add_type(self, system, text):
        number = int(re.search(rb"^ID: (\d+)", text, re.M)[1])
        name = re.search(rb"^name: (\S+)", text, re.M)[1].decode()
        fields = {}
        for found in re.finditer(rb"field:([^;]*?)(\w+)(\[\w*\])?;\s*offset:(\d+);\s*size:(\d+);(?:\s*signed:(\d+);)?", text):
            kind = found[1].decode().strip()
            fields[found[2].decode()] = (kind, int(found[4]), int(found[5]), found[6] == b"1", bool(found[3]))
        self.types[number] = (f"{system}/{name}", fields)

    def header(self):
        assert self.text() == "header_page"
        self.sized("<Q")
        assert self.text() == "header_event"
        self.sized("<Q")

    def formats(self):
        for _ in range(self.take("<I")[0]):
            self.add_type("ftrace", self.sized("<Q"))

    def systems(self):
        for _ in range(self.take("<I")[0]):
            system = self.text()
            for _ in range(self.take("<I")[0]):
                self.add_type(system, self.sized("<Q"))

    def task_names(self):
        for line in self.sized("<Q").decode(errors="replace").split("\n"):
            number, _, name = line.partition(" ")
            if number.isdigit():
                self.tasks[int(number)] = name

    def option(self, number, raw):
        if number == 5:
            self.uname = raw.split(b"\0")[0].decode()

    def version_6(self):
        self.header()
        self.formats()
        self.systems()
        self.sized("<I")
        self.sized("<I")
        self.task_names()
        n_cpus, = self.take("<I")
        kind = self.text()
        if kind == "options  ":
            while True:
                number, = self.take("<H")
                if number == 0:
                    break
                self.option(number, self.sized("<I"))
            kind = self.text()
        assert kind == "flyrecord"
        self.cpus = [(cpu, *self.take("<QQ")) for cpu in range(n_cpus)]

    def version_7(self):
        assert self.text() == "none"
        self.text()
        where, = self.take("<Q")
        while where:
            self.at = where + 16
            while True:
                number, size = self.take("<HI")
                start, after = self.at, self.at + size
                if number == 0:
                    where, = self.take("<Q")
                    break
                if number == 3:
                    self.take("<Q")
                    name = self.text()
                    self.text()
                    _, n = self.take("<II")
                    if name == "":
                        self.cpus = [self.take("<IQQ") for _ in range(n)]
                elif 16 <= number <= 21:
                    self.at = self.take("<Q")[0] + 16
                    {16: self.header, 17: self.formats, 18: self.systems, 21: self.task_names}.get(number, int)()
                else:
                    self.option(number, self.raw[start:after])
                self.at = after

    def cpu_events(self, cpu, offset, size):
        for start in range(offset, offset + size, self.page):
            time, commit = struct.unpack_from("<QQ" if self.long_bytes == 8 else "<QI", self.raw, start)
            at = start + 8 + self.long_bytes
            end = at + (commit & 0x7ffffff)
            lost = None
            if commit & 1 << 31:
                lost = int.from_bytes(self.raw[end:end + self.long_bytes], "little") if commit & 1 << 30 else 0
            while at < end:
                word, = struct.unpack_from("<I", self.raw, at)
                kind, delta = word & 31, word >> 5
                at += 4
                if kind == 29 and delta == 0:
                    break
                if kind in (30, 31):
                    more, = struct.unpack_from("<I", self.raw, at)
                    at += 4
                    time = time + (delta | more << 27) if kind == 30 else delta | more << 27
                    continue
                time += delta
                size_of = 4 * kind
                if kind in (0, 29):
                    size_of = struct.unpack_from("<I", self.raw, at)[0] - 4
                    at += 4
                if kind != 29:
                    yield time, cpu, self.raw[at:at + size_of], lost
                    lost = None
                at += -(-size_of // 4) * 4

    def fields(self, number, raw):
        found = {}
        for name, (kind, at, size, signed, is_array) in self.types.get(number, ("", {}))[1].items():
            piece = raw[at:at + size]
            if is_array and "char" in kind:
                found[name] = piece.split(b"\0")[0].decode(errors="replace")
            elif not is_array and len(piece) == size:
                found[name] = int.from_bytes(piece, "little", signed=signed)
        return found

    def merge(self):
        """Rows by time, equal times by CPU; what is lost before an event is a row of its own."""
        found = []
        for cpu in self.cpus:
            found += self.cpu_events(*cpu)
        found.sort(key=lambda event: event[:2])
        rows, before = [], {}
        for time, cpu, raw, lost in found:
            number, _, _, task = struct.unpack_from("<HBBi", raw)
            if lost is not None:  # as libkshark has it: 10 ns before
                rows.append(Event(max(time - 10, before.get(cpu, time - 10)), cpu, task, LOST, NAMES[LOST], {"lost": lost}))
            before[cpu] = time
            name = self.types[number][0] if number in self.types else "[UNKNOWN EVENT]"
            rows.append(Event(time, cpu, task, number, name, self.fields(number, raw)))
        rows.sort(key=lambda event: (event.time, event.cpu))
        return rows

    def n_cpus(self):
        return max(cpu[0] for cpu in self.cpus) + 1


def couplebreak(events, n_cpus):
    """The rows with their twins: for each waking the switches behind it are searched anew, as the rule says it."""
    rows = []
    for event in events:
        rows.append(event)
        if event.name in TWINS:
            number, task_field, cpu_field = TWINS[event.name]
            cpu = event.fields.get(cpu_field, event.cpu) if cpu_field else event.cpu
            cpu = cpu if 0 <= cpu < n_cpus else event.cpu
            rows.append(Event(event.time, cpu, event.fields.get(task_field, event.task), number, NAMES[number],
                              event.fields, event))
    for i, row in enumerate(rows):
        if row.id == WAKING:
            row.cpu = next((later.cpu for later in rows[i + 1:] if later.id == SWITCH and later.task == row.task), row.cpu)
    return rows


def topology_of(nodes):
    """The topology of a machine in hwloc's XML: a package for each node, with these CPUs, and a core for each CPU."""
    def part(kind, number, cpus, nodes, inner=""):
        bits, memory = (f"{sum(1 << each for each in some):#x}" for some in (cpus, nodes))
        sets = "".join(f' {name}cpuset="{bits}" {name}nodeset="{memory}"' for name in ("", "complete_")) + (f' allowed_cpuset="{bits}" allowed_nodeset="{memory}"' if kind == "Machine" else "")
        return f'<object type="{kind}" os_index="{number}"{sets}>{inner}</object>'

    packages = [part("Package", node, cpus, [node], part("NUMANode", node, cpus, [node]) + "".join(part("Core", cpu, [cpu], [node], part("PU", cpu, [cpu], [node])) for cpu in cpus))
                for node, cpus in enumerate(nodes)]
    return ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">' +
            part("Machine", 0, sorted(sum(nodes, [])), range(len(nodes)), "".join(packages)) + "</topology>\n")
