# SPDX-License-Identifier: BSD-3-Clause
"""Version 4 databases of HPCToolkit, read and written independently of the C code, after the published layout.
read() gives what `hpcproftt --json` prints; Writer makes a small database, with strides and gaps of its own."""
import struct

KINDS = {b"meta": ("meta.db", b"_meta.db"), b"prof": ("profile.db", b"_prof.db"), b"ctxt": ("cct.db", b"__ctx.db"),
         b"trce": ("trace.db", b"trace.db")}


class Reader:
    def __init__(self, data):
        self.data = data

    def get(self, offset, layout):
        values = struct.unpack_from("<" + layout, self.data, offset)
        return values[0] if len(values) == 1 else values

    def text(self, offset):
        return None if offset == 0 else self.data[offset:self.data.index(b"\0", offset)].decode()

    def section(self, i):
        size, offset = self.get(16 + 16 * i, "QQ")
        assert offset + size <= len(self.data), f"section {i} is not in the file"
        return offset

    @staticmethod
    def number(pointer, table):
        offset, n, stride = table
        assert pointer == 0 or ((pointer - offset) % stride == 0 and 0 <= (pointer - offset) // stride < n)
        return 0 if pointer == 0 else (pointer - offset) // stride + 1

    def table(self, offset, wide=True):
        return self.get(offset, "QIH" if wide else "QIB")

    def rows(self, table):
        offset, n, stride = table
        return [offset + i * stride for i in range(n)]

    def meta(self):
        out = dict(zip(("title", "description"), map(self.text, self.get(self.section(0), "QQ"))))
        names, n = self.get(self.section(1), "QB")
        out["kinds"] = [self.text(self.get(names + 8 * i, "Q")) for i in range(n)]
        at = self.section(2)
        place, n, stride, instance, summary, scopes, n_scopes, scope = self.get(at, "QIBBBxQHB")
        scopes = scopes, n_scopes, scope
        out["scopes"] = [[self.text(self.get(s, "Q")), *self.get(s + 8, "BB")] for s in self.rows(scopes)]
        out["metrics"] = []
        for row in self.rows((place, n, stride)):
            name, instances, summaries, n_instances, n_summaries = self.get(row, "QQQHH")
            pairs = [self.get(i, "QH") for i in self.rows((instances, n_instances, instance))]
            quads = [self.get(s, "QQBxH") for s in self.rows((summaries, n_summaries, summary))]
            out["metrics"].append({"name": self.text(name),
                                   "instances": [[self.number(s, scopes), m] for s, m in pairs],
                                   "summaries": [[self.number(s, scopes), self.text(f), c, m] for s, f, c, m in quads]})
        modules, files, functions = (self.table(self.section(i)) for i in (5, 6, 7))
        for key, table in (("modules", modules), ("files", files)):
            out[key] = [[flags, self.text(path)] for flags, path in (self.get(r, "I4xQ") for r in self.rows(table))]
        out["functions"] = []
        for name, module, offset, file, line, flags in (self.get(r, "QQQQII") for r in self.rows(functions)):
            out["functions"].append([self.text(name), self.number(module, modules), offset, self.number(file, files),
                                     line, flags])
        self.tree(out, modules, files, functions)
        return out

    def tree(self, out, modules, files, functions):
        place, n, stride = self.get(self.section(3), "QHB")
        out["entries"], out["contexts"], queue = [], [], []
        for row in self.rows((place, n, stride)):
            size, children, identity, kind, name = self.get(row, "QQIH2xQ")
            out["entries"].append([identity, kind, self.text(name)])
            queue.append((children, size, identity))
        while queue:
            at, size, parent = queue.pop(0)
            end = at + size
            while at < end:
                sub_size, children, identity, flags, relation, lexical, words, propagation = self.get(at, "QQIBBBBH")
                flex = list(self.get(at + 32, f"{words}Q")) if words > 1 else [self.get(at + 32, "Q")] * words
                function = self.number(flex.pop(0), functions) if flags & 1 else 0
                file, line = (self.number(flex.pop(0), files), flex.pop(0) & 0xffffffff) if flags & 2 else (0, 0)
                module, offset = (self.number(flex.pop(0), modules), flex.pop(0)) if flags & 4 else (0, 0)
                out["contexts"].append([identity, parent, flags, relation, lexical, propagation, function, file, line,
                                        module, offset])
                queue.append((children, sub_size, identity))
                at += 32 + 8 * words

    def cells(self, n_values, values, n_indices, indices, major, minor):
        """Values of a list as [major, minor, value]."""
        starts = [self.get(indices + i * struct.calcsize("<" + major + "Q"), major + "Q") for i in range(n_indices)]
        out = []
        for k, (identity, start) in enumerate(starts):
            end = starts[k + 1][1] if k + 1 < n_indices else n_values
            for i in range(start, end):
                out.append([identity, *self.get(values + i * struct.calcsize("<" + minor + "d"), minor + "d")])
        assert len(out) == n_values
        return out

    def profiles(self):
        out = []
        for row in self.rows(self.table(self.section(0), wide=False)):
            n_values, values, n_indices, indices, ids, flags = self.get(row, "QQI4xQQI")
            n_ids = self.get(ids, "H") if ids else 0
            out.append({"flags": flags, "ids": [list(self.get(ids + 8 + 16 * i, "BxHIQ")) for i in range(n_ids)],
                        "values": self.cells(n_values, values, n_indices, indices, "I", "H")})
        return {"profiles": out}

    def blocks(self):
        out = []
        for row in self.rows(self.table(self.section(0), wide=False)):
            cells = self.cells(*self.get(row, "QQH6xQ"), "H", "I")
            out.append([[profile, metric, value] for metric, profile, value in cells])
        return {"contexts": out}

    def traces(self):
        at, out = self.section(0), []
        for row in self.rows(self.table(at, wide=False)):
            profile, start, end = self.get(row, "I4xQQ")
            out.append({"profile": profile, "records": [list(self.get(i, "QI")) for i in range(start, end, 12)]})
        low, high = self.get(at + 16, "QQ")
        return {"min_time_ns": low, "max_time_ns": high, "traces": out}


def read(path):
    """What a file holds, and the name that it should have."""
    reader = Reader(path.read_bytes())
    name, footer = KINDS[reader.data[10:14]]
    assert reader.data[:10] == b"HPCTOOLKIT" and reader.data[14] == 4 and reader.data[-8:] == footer
    take = {"meta.db": reader.meta, "profile.db": reader.profiles, "cct.db": reader.blocks, "trace.db": reader.traces}
    return {"format": "v4", "file": name, **take[name]()}


class Writer:
    """A file that grows: put() returns where its bytes are."""
    def __init__(self, kind, n_sections):
        self.data, self.kind = bytearray(b"HPCTOOLKIT" + kind + b"\4\0" + bytes(16 * n_sections)), kind

    def put(self, data, align=8):
        self.data += bytes(-len(self.data) % align)
        at = len(self.data)
        self.data += data
        return at

    def text(self, text):
        return self.put(text.encode() + b"\0", 1)

    def section(self, i, offset, size):
        struct.pack_into("<QQ", self.data, 16 + 16 * i, size, offset)

    def write(self, directory):
        name, footer = KINDS[self.kind]
        self.put(footer)
        (directory / name).write_bytes(self.data)


def context(writer, children, identity, flags, relation, lexical, flex):
    data = b"".join(children)
    at = writer.put(data) if data else 0
    return struct.pack("<QQIBBBBH6x", len(data), at, identity, flags, relation, lexical, len(flex), 1) + \
        struct.pack(f"<{len(flex)}Q", *flex)


def write_meta(directory):
    w = Writer(b"meta", 8)
    w.section(0, w.put(struct.pack("<QQ", w.text("small"), w.text("a database of a test"))), 16)
    names = [w.text(n) for n in ("SUMMARY", "NODE", "RANK", "THREAD")]
    w.section(1, w.put(struct.pack("<QB", w.put(struct.pack("<4Q", *names)), 4)), 9)
    scope = [w.text("function"), w.text("execution")]
    scopes = w.put(struct.pack("<QBB14x", scope[0], 3, 0) + struct.pack("<QBB14x", scope[1], 2, 255))
    instances = w.put(struct.pack("<QH14x", scopes, 0) + struct.pack("<QH14x", scopes + 24, 1))
    summaries = w.put(b"".join(struct.pack("<QQBxH12x", scopes + 24, w.text("$$"), c, c) for c in range(3)))
    metric = w.put(struct.pack("<QQQHH12x", w.text("CPUTIME (sec)"), instances, summaries, 2, 3))
    w.section(2, w.put(struct.pack("<QIBBBxQHB", metric, 1, 40, 24, 32, scopes, 2, 24)), 27)
    modules = w.put(struct.pack("<I4xQ", 0, w.text("/bin/caf\u00e9")))
    files = w.put(struct.pack("<I4xQ8x", 0, w.text("a.c")) + struct.pack("<I4xQ8x", 1, w.text("src/b.c")))
    functions = w.put(struct.pack("<QQQQII", w.text("main"), modules, 2**40, files, 3, 0) +
                      struct.pack("<QQQQII", 0, modules, 64, 0, 0, 0))
    for i, (place, n, stride) in enumerate(((modules, 1, 16), (files, 2, 24), (functions, 2, 40))):
        w.section(5 + i, w.put(struct.pack("<QIH", place, n, stride)), 14)
    lines = [context(w, [], 6 + i, 2, 0, 2, [files + 24 * (i % 2), 70000 + i]) for i in range(3)]
    loop = context(w, lines[:2], 5, 6, 0, 1, [files, 12, modules, 99])
    inner = context(w, lines[2:], 4, 1, 2, 0, [functions + 40])
    main = context(w, [inner, loop], 3, 1, 1, 0, [functions])
    point = context(w, [], 9, 4, 1, 3, [modules, 7])
    entries = w.put(struct.pack("<QQIH2xQ8x", len(main), w.put(main), 1, 1, w.text("main thread")) +
                    struct.pack("<QQIH2xQ8x", len(point), w.put(point), 2, 2, w.text("thread")))
    w.section(3, w.put(struct.pack("<QHB", entries, 2, 40)), 11)
    w.section(4, 16, 0)
    w.write(directory)


def put_cells(w, cells, major, minor):
    """Cells [major, minor, value] in order: (number, place) of the values and of the index."""
    values = w.put(b"".join(struct.pack("<" + minor + "d", m, v) for _, m, v in cells))
    majors = sorted({c[0] for c in cells})
    index = w.put(b"".join(struct.pack("<" + major + "Q", m, [c[0] for c in cells].index(m)) for m in majors))
    return len(cells), values, len(majors), index


def write_values(directory):
    cells = [(p, c, m, p / 3 + c + m / 8) for p in (1, 2) for c in (0, 1, 3, 6, 9) for m in (0, 1) if (p + c + m) % 3]
    w = Writer(b"prof", 2)
    ids = [w.put(struct.pack("<H6x", 2) + struct.pack("<BxHIQ", 2, 0, 0, 0) + struct.pack("<BxHIQ", 3, 1, t, 2**60))
           for t in range(2)]
    rows = struct.pack("<QQI4xQQI4x8x", *put_cells(w, [(3, 0, 1.5)], "I", "H"), 0, 1)
    for p in (1, 2):
        place = put_cells(w, [(c, m, v) for q, c, m, v in cells if q == p], "I", "H")
        rows += struct.pack("<QQI4xQQI4x8x", *place, ids[p - 1], 0)
    w.section(0, w.put(struct.pack("<QIB", w.put(rows), 3, 56)), 13)
    w.section(1, ids[0], 80)
    w.write(directory)
    w = Writer(b"ctxt", 1)
    rows = b""
    for c in range(10):
        mine = sorted((m, p, v) for p, d, m, v in cells if c == d)
        rows += struct.pack("<QQH6xQ", *put_cells(w, mine, "H", "I"))
    w.section(0, w.put(struct.pack("<QIB", w.put(rows), 10, 32)), 13)
    w.write(directory)
    w = Writer(b"trce", 1)
    records = [w.put(struct.pack("<QIQI", t, 3, t + 5, 0), 4) for t in (2**60, 2**60 + 2)]
    rows = b"".join(struct.pack("<I4xQQ", p + 1, at, at + 24) for p, at in enumerate(records))
    w.section(0, w.put(struct.pack("<QIBxxxQQ", w.put(rows), 2, 24, 2**60, 2**60 + 7)), 32)
    w.write(directory)


def write_small(directory):
    """A database of every kind of context, with wider strides than needed."""
    directory.mkdir(exist_ok=True)
    write_meta(directory)
    write_values(directory)
