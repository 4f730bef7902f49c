#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make-profiles.py [options] DIR: writes a measurement directory of many profiles, the same one for the same options.

The call tree is one of function instances: each has lines that samples hit (leaves) and some call sites. A thread is not
everywhere: it has samples in a part of the instances, and there in most lines, with several metrics each, as hot loops
have. Profiles are of version 03.10 and dense, of one thread in each process unless --threads says otherwise."""
import argparse
import pathlib
import random
import struct
import subprocess

LEAF = 1


def be(value, n_bytes):
    return (value & (1 << 8 * n_bytes) - 1).to_bytes(n_bytes, "big")


def string(text):
    raw = text.encode()
    return be(len(raw), 4) + raw


def pairs(items):
    return be(len(items), 4) + b"".join(string(n) + string(v) for n, v in items)


def functions_of(module, n_made_up):
    """(address, size) of the functions of an ELF file; made up when there is none."""
    if not module:
        return "/nowhere/app", [(0x10000 + 0x400 * i, 0x400) for i in range(n_made_up)]
    lines = subprocess.run(["nm", "-S", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    found = [(int(r[0], 16), int(r[1], 16)) for r in rows if len(r) == 4 and r[2] in "tT" and int(r[1], 16) >= 64]
    return str(pathlib.Path(module).resolve()), found


class Tree:
    """Nodes in file order: (kind, id, parent id, module, ip); instances: lists of the indices of their leaves."""

    def __init__(self, rng, functions, options, depth_max=60):
        self.nodes, self.instances = [(0, 12, 0, 0, 0), (0, -14, 12, 0, 1)], []
        waiting = [(12, rng.choice(functions), 0)]
        while len(self.nodes) < options.nodes and waiting:
            parent, (address, size), depth = waiting.pop(0 if rng.random() < 0.3 else -1)
            leaves = []
            for place in rng.sample(range(4, size - 4), min(size - 8, rng.randint(2, 2 * options.lines - 2))):
                leaves.append(len(self.nodes))
                self.nodes.append((LEAF, -(12 + 2 * len(self.nodes)), parent, 1, address + place))
            self.instances.append(leaves)
            for place in rng.sample(range(4, size - 4), 1 if depth > depth_max else rng.randint(1, 3)):
                identity = 12 + 2 * len(self.nodes)
                self.nodes.append((0, identity, parent, 1, address + place))
                waiting.append((identity, rng.choice(functions), depth + 1))
        del self.nodes[options.nodes:]
        n = len(self.nodes)
        self.instances = [kept for leaves in self.instances if (kept := [i for i in leaves if i < n])]
        parents = {node[2] for node in self.nodes}
        self.nodes = [(k, i if i in parents else -abs(i), p, m, ip) for k, i, p, m, ip in self.nodes]

    def binary(self, n_metrics):
        zeros = bytes(8 * n_metrics)
        return b"".join(struct.pack(">IiiHQ", *node) + zeros for node in self.nodes)


def header(options, rank, thread, module):
    out = b"HPCRUN-profile____03.10b" + pairs([
        ("program-name", "app"), ("program-path", module), ("env-path", ""), ("job-id", ""), ("mpi-rank", str(rank)),
        ("thread-id", str(thread)), ("host-id", "7f0100"), ("process-id", str(1000 + rank)), ("trace-min-time", "0"),
        ("trace-max-time", "0")])
    out += b"EPOCH___" + be(0, 8) + be(1, 8) + be(0, 4) + pairs([("TODO:epoch-name", "TODO:epoch-value")])
    out += be(options.metrics, 4)
    for i in range(options.metrics):
        name = "REALTIME (usec)" if i == 0 else f"EVENT_{i:02}"
        out += string(name) + string(name) + bytes([1, 0, 1, 0, 0, 0, 1, 1]) + bytes(8) + be(1 + 999 * (i == 0), 8)
        out += string("") + string("") + be(0, 4) + struct.pack(">d", 0) + be(0, 8)
    return out + be(1, 4) + be(1, 2) + string(module) + be(0, 8)


def write_profile(options, rng, path, head, tree, body):
    data = bytearray(body)
    row = 22 + 8 * options.metrics
    n_values = int(options.density * options.metrics * len(tree.nodes))
    hot = [leaves for leaves in tree.instances if rng.random() < options.touched] or tree.instances[:1]
    lines = [i for leaves in hot for i in leaves if rng.random() < options.sampled] or hot[0]
    each, more = divmod(n_values, len(lines))
    total = [0] * options.metrics
    for k, line in enumerate(lines):
        for metric in rng.sample(range(options.metrics), min(options.metrics, each + (k < more))):
            value = 1 + int(rng.expovariate(0.02))
            struct.pack_into(">Q", data, line * row + 22 + 8 * metric, value)
            total[metric] += value
    path.write_bytes(head + be(len(tree.nodes), 8) + data)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory", type=pathlib.Path)
    for name, kind, default in (("profiles", int, 4), ("threads", int, 1), ("nodes", int, 300), ("metrics", int, 3),
                                ("density", float, 0.05), ("seed", int, 1), ("lines", int, 8), ("touched", float, 0.15),
                                ("sampled", float, 0.8), ("variants", int, 8), ("first", int, 0)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--module")
    options = parser.parse_args()
    module, functions = functions_of(options.module, 200)
    trees = [Tree(random.Random(f"{options.seed}/{i}"), functions, options) for i in range(1)]
    base = trees[0]
    for i in range(1, options.variants):  # the same tree with some other lines
        rng, tree = random.Random(f"{options.seed}/{i}"), Tree.__new__(Tree)
        tree.instances = base.instances
        tree.nodes = [(k, n, p, m, ip + (k == LEAF and rng.random() < 0.1)) for k, n, p, m, ip in base.nodes]
        trees.append(tree)
    bodies = [tree.binary(options.metrics) for tree in trees]
    options.directory.mkdir(parents=True, exist_ok=True)
    total = [0] * options.metrics
    for i in range(options.first, options.first + options.profiles):
        rank, thread = divmod(i, options.threads)
        path = options.directory / f"app-{rank:06}-{thread:03}-007f0100-{1000 + rank}-0.hpcrun"
        rng, variant = random.Random(f"{options.seed}/profile/{i}"), i % len(trees)
        sums = write_profile(options, rng, path, header(options, rank, thread, module), trees[variant], bodies[variant])
        total = [a + b for a, b in zip(total, sums)]
    print(" ".join(map(str, total)))


main()
