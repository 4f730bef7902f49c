# SPDX-License-Identifier: BSD-3-Clause
"""Making measurement directories for tests of the analysis: profiles of version 03.10 with data-centric trees and their
side files, written from the description of the formats, independently of the C code. And what these tests do with our
tools."""
import json
import os
import pathlib
import struct
import subprocess

LEAF, ALLOCATION, VARIABLE, UNKNOWN, ROOT, ACCESS = 1, 2, 4, 8, 16, 32
INT, REAL = 1, 2
PLACEHOLDERS = {name: 0x1000 + 16 * i for i, name in enumerate([
    "DATACENTRIC", "DATACENTRIC_Dynamic", "DATACENTRIC_Static", "DATACENTRIC_Unknown", "DATACENTRIC_MemoryAccess",
    "DATACENTRIC_Stack", "DATACENTRIC_ThreadLocal", "DATACENTRIC_FileMapping", "DATACENTRIC_Unknown_NoBlock",
    "DATACENTRIC_No_Compute", "DATACENTRIC_No_AddressLost"])}

failures = []  # sentences of what was not as expected


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments, status=0, columns=200):
    """What a tool of ours prints; status None: with any exit status."""
    build = os.environ.get("LOCUS_BUILDDIR", pathlib.Path(__file__).resolve().parents[2] / "build")
    result = subprocess.run([os.path.join(build, tool), *map(str, arguments)], capture_output=True, text=True, errors="replace",
                            check=False, env={**os.environ, "LC_ALL": "C", "COLUMNS": str(columns)})
    expect(status is None or result.returncode == status, f"{tool} {arguments}: status {result.returncode}, not {status}: {result.stderr}")
    return result


def write_database(directory, text):
    """A database of what `hpcquery export json` prints, edited or made up; the text stays beside it as text.json."""
    directory.mkdir(exist_ok=True)
    (directory / "text.json").write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    build = os.environ.get("LOCUS_BUILDDIR", pathlib.Path(__file__).resolve().parents[2] / "build")
    program = os.path.join(build, "tests/golden/make-database")
    if not os.path.exists(program):
        raise SystemExit(f"{program} is not built: ./dev test NAME builds what a test needs, make alone does not")
    subprocess.run([program, directory / "text.json", directory / "locus.db"], check=True)


# Two NUMA nodes of two CPUs each, as hwloc writes it.
TWO_NODES = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" \
    "<topology version=\"2.0\">\n" + \
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\" allowed_cpuset=\"0xf\" " \
    "nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">\n" + \
    "".join(f"<object type=\"Package\" os_index=\"{n}\" cpuset=\"{hex(3 << 2 * n)}\" complete_cpuset=\"{hex(3 << 2 * n)}\""
            f" nodeset=\"{hex(1 << n)}\" complete_nodeset=\"{hex(1 << n)}\" gp_index=\"{2 + n}\">\n"
            f"<object type=\"NUMANode\" os_index=\"{n}\" cpuset=\"{hex(3 << 2 * n)}\" "
            f"complete_cpuset=\"{hex(3 << 2 * n)}\" nodeset=\"{hex(1 << n)}\" complete_nodeset=\"{hex(1 << n)}\" "
            f"gp_index=\"{4 + n}\" local_memory=\"1048576\"/>\n" +
            "".join(f"<object type=\"PU\" os_index=\"{c}\" cpuset=\"{hex(1 << c)}\" complete_cpuset=\"{hex(1 << c)}\" "
                    f"nodeset=\"{hex(1 << n)}\" complete_nodeset=\"{hex(1 << n)}\" gp_index=\"{10 + c}\"/>\n"
                    for c in (2 * n, 2 * n + 1)) + "</object>\n" for n in range(2)) + "</object>\n</topology>\n"


def topology(n_packages, n_cores, n_threads):
    """A machine as hwloc writes it, with a NUMA node in each package. CPUs are numbered as Linux does: the first thread of
    each core, then the second of each. Cores have the same numbers in each package, as the kernel gives them."""
    n_all = n_packages * n_cores
    number = iter(range(1, 10**6))

    def begin(kind, index, cpus, nodes, more=""):
        cpuset, nodeset = hex(sum(1 << c for c in cpus)), hex(sum(1 << n for n in nodes))
        return (f"<object type=\"{kind}\" os_index=\"{index}\" cpuset=\"{cpuset}\" complete_cpuset=\"{cpuset}\" "
                f"allowed_cpuset=\"{cpuset}\" nodeset=\"{nodeset}\" complete_nodeset=\"{nodeset}\" "
                f"allowed_nodeset=\"{nodeset}\" gp_index=\"{next(number)}\"{more}>\n")

    text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
    text += begin("Machine", 0, range(n_all * n_threads), range(n_packages))
    for p in range(n_packages):
        cpus = {c: [t * n_all + p * n_cores + c for t in range(n_threads)] for c in range(n_cores)}
        every = sum(cpus.values(), [])
        text += begin("Package", p, every, [p]) + begin("NUMANode", p, every, [p], " local_memory=\"1048576\"") + "</object>\n"
        for c in range(n_cores):
            text += begin("Core", c, cpus[c], [p])
            text += "".join(begin("PU", cpu, [cpu], [p]) + "</object>\n" for cpu in cpus[c]) + "</object>\n"
        text += "</object>\n"
    return text + "</object>\n</topology>\n"


def be(value, n_bytes):
    return (value & (1 << 8 * n_bytes) - 1).to_bytes(n_bytes, "big")


def string(text):
    raw = text.encode(errors="surrogateescape")
    return be(len(raw), 4) + raw


def side_text(text):
    """A string as side files hold it: bytes that are not UTF-8 as hexadecimal digits."""
    try:
        return text if text is None or text.encode() else ""
    except UnicodeEncodeError:
        return {"bytes": text.encode(errors="surrogateescape").hex()}


def pairs(items):
    return be(len(items), 4) + b"".join(string(n) + string(v) for n, v in items)


class Profile:
    """One thread. metrics: (name, INT or REAL, period[, is multiplexed]). Paths are lists of (module path, address), outermost first."""

    def __init__(self, exe, metrics, rank=0, thread=0, host=0x7f0100, pid=100, runtime="/nowhere/libhpcrun.so.0"):
        self.exe, self.metrics, self.rank, self.thread, self.host, self.pid = exe, metrics, rank, thread, host, pid
        self.runtime, self.modules, self.nodes, self.variables = runtime, [], {}, {}
        self.events, self.plan, self.topology, self.placeholders = [], "EADDR because of a test", None, True
        self.side_version, self.described = 1, None
        self.children, self.order = {}, []
        self.root = self.node(None, None, 0)
        self.node(self.root, (None, 1), 0)

    def module(self, path):
        if path is None:
            return 0
        if path not in self.modules:
            self.modules.append(path)
        return self.modules.index(path) + 1

    def node(self, parent, frame, kind):
        """The child of parent for a frame, added when new; kind bits are added to it."""
        key = parent, frame
        if key not in self.children:
            ident = 12 + 2 * len(self.order)
            self.children[key] = ident
            module, ip = (0, 0) if frame is None else (self.module(frame[0]), frame[1])
            self.nodes[ident] = [0, parent or 0, module, ip, [0] * len(self.metrics)]
            self.order.append(ident)
        ident = self.children[key]
        self.nodes[ident][0] |= kind
        return ident

    def path(self, parent, frames, last_kind):
        for i, frame in enumerate(frames):
            parent = self.node(parent, frame, last_kind if i == len(frames) - 1 else 0)
        return parent

    def placeholder(self, parent, name, kind=0):
        return self.node(parent, (self.runtime, PLACEHOLDERS[name] + 1), kind)

    def add(self, ident, values):
        for i, value in values.items():
            self.nodes[ident][4][i] += value

    def sample(self, path, values, variable):
        """A sample with these values {metric index: raw value} at the end of path, on a variable: a function that
        returns the node that the access path hangs under."""
        self.add(self.path(self.root, path, LEAF), values)
        top = self.placeholder(self.root, "DATACENTRIC", ROOT)
        self.add(self.path(variable(self, top), path, ACCESS), values)

    def describe(self, ident, kind, name=None, n_blocks=0, size=0, cpus=()):
        """Side-file row of a variable's node."""
        row = self.variables.setdefault(ident, {"node": ident, "kind": kind, "name": name, "n_blocks": 0, "bytes": 0,
                                                "n_blocks_freed": 0, "bytes_freed": 0, "max_block_bytes": size,
                                                "classes": [0] * 8, "n_inexact": 0, "cpus": [], "stack_offsets": []})
        self.described = row
        many = kind in ("heap", "mmap")
        row["n_blocks"] = many * row["n_blocks"] + n_blocks
        row["bytes"] = many * row["bytes"] + size * n_blocks
        row["cpus"] += [list(c) for c in cpus]

    def binary(self):
        header = [("program-name", self.exe), ("program-path", "/nowhere/" + self.exe), ("env-path", ""), ("job-id", ""),
                  ("mpi-rank", str(self.rank)), ("thread-id", str(self.thread)), ("host-id", f"{self.host:x}"),
                  ("process-id", str(self.pid)), ("trace-min-time", "0"), ("trace-max-time", "0")]
        out = b"HPCRUN-profile____03.10b" + pairs(header)
        out += b"EPOCH___" + be(0, 8) + be(1, 8) + be(0, 4) + pairs([("TODO:epoch-name", "TODO:epoch-value")])
        out += be(len(self.metrics), 4)
        for name, value_format, period, *multiplexed in self.metrics:
            out += string(name) + string(name) + bytes([1, 0, value_format, 0, 0, 0, 1, 1]) + bytes(8) + be(period, 8)
            out += string("") + string("") + be(sum(multiplexed), 4) + struct.pack(">d", 0) + be(0, 8)
        out += be(len(self.modules), 4)
        for i, path in enumerate(self.modules):
            out += be(i + 1, 2) + string(path) + be(0, 8)
        out += be(len(self.order), 8)
        parents = {self.nodes[i][1] for i in self.order}
        for ident in self.order:
            kind, parent, module, ip, values = self.nodes[ident]
            out += be(kind, 4) + be(ident if ident in parents else -ident, 4) + be(parent, 4) + be(module, 2) + be(ip, 8)
            for metric, value in zip(self.metrics, values):
                out += struct.pack(">d", value) if metric[1] == REAL else be(value, 8)
        return out

    def side_file(self):
        marks = [{"ip": ip + 1, "name": name} for name, ip in PLACEHOLDERS.items()] if self.placeholders else []
        more = {"samples": [], "latencies": []} if self.side_version > 1 else {}
        return json.dumps({"format": "locus-objects", "version": self.side_version, "state": "complete", "host": "h", "exe": None,
                           "pid": self.pid, "tid": self.pid, "thread_id": self.thread, "rank": self.rank,
                           "start_ns": 0, "end_ns": 0, "cpu_time_ns": 10**9, "plan": self.plan,
                           "topology": self.topology, "skid": None, "n_frames": 0, "unwind_stops": [0] * 16,
                           "placeholders": marks, "events": self.events,
                           "variables": [{**more, **v, "name": side_text(v["name"])} for v in self.variables.values()]})

    def write(self, directory, side=True):
        directory = pathlib.Path(directory)
        directory.mkdir(exist_ok=True)
        stem = f"{self.exe}-{self.rank:06}-{self.thread:03}-{self.host:08x}-{self.pid}-0"
        path = directory / f"{stem}.hpcrun"
        path.write_bytes(self.binary())
        if side:
            (directory / f"{stem}.objects").write_text(self.side_file(), encoding="utf-8")
        return path


def heap(path, kind="heap", n_blocks=1, size=4096, cpus=()):
    """A block allocated on this call path."""
    def attach(profile, top):
        last = profile.path(profile.placeholder(top, "DATACENTRIC_Dynamic"), path, ALLOCATION)
        profile.describe(last, kind, None, n_blocks, size, cpus)
        return profile.placeholder(last, "DATACENTRIC_MemoryAccess", ACCESS)
    return attach


def by_address(placeholder, module, address, kind, name=None, size=0, cpus=()):
    """A static, thread-local, stack or file variable: its node is (module, address + 1)."""
    def attach(profile, top):
        node = profile.node(profile.placeholder(top, placeholder), (module, address + 1), VARIABLE)
        profile.describe(node, kind, name, 1 if size else 0, size, cpus)
        return node
    return attach


def reason(name):
    """A sample without variable."""
    def attach(profile, top):
        return profile.placeholder(profile.placeholder(top, "DATACENTRIC_Unknown", UNKNOWN), name, UNKNOWN)
    return attach
