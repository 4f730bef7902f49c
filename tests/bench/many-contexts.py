#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""many-contexts.py N DIRECTORY [chain | team]: writes a database of about N contexts, half of them of code and half of data, the same
one for the same N: calls and lines, and a variable for each two hundred contexts, each with its access paths. A chain is one call
path, and one variable at its end. A team has 1000 variables at most, the first used most, and 64 threads that use all alike."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import measurement  # noqa: E402

PROC, CALL, LINE = 1, 4, 5
PROGRAM, DATA, STATIC, VARIABLE = 1, 5, 7, 13
METRIC = {"name": "EADDR (usec)", "description": "time by data address", "per_sample": 1000.0, "hidden": 0, "period": 1.0,
          "is_integer": 0, "is_multiplexed": 0, "n_samples": 0}


class Database:
    def __init__(self, n, kind):
        self.rng, self.n, self.is_chain = random.Random(n), n, kind == "chain"
        self.n_variables, self.n_threads = {"chain": (1, 1), "team": (min(n // 100, 1000), 64)}.get(kind, (n // 200, 1))
        self.strings = ["", "<unknown file>", "<program root>", "<datacentric>", "<static variable>", "/opt/app/app"]
        self.functions = [self.string(f"kernel_{i}<double, {i % 7}>") for i in range(max(20, n // 200))]
        self.files = [self.string(f"/opt/app/src/part{i}.c") for i in range(40)]
        self.scopes, self.values, self.variables = [], [], []

    def string(self, text):
        self.strings.append(text)
        return len(self.strings) - 1

    def scope(self, parent, kind, role=0, name=0, file=1, line=0):
        self.scopes.append([parent, kind, role, 0, name, file, 5 if file > 1 else 0, line, hex(len(self.scopes))])
        return len(self.scopes)

    def line(self, parent, file):
        self.values.append([self.scope(parent, LINE, file=file, line=self.rng.randint(1, 900)), 0, 1000.0 * self.rng.randint(1, 50)])

    def below(self, parent, n):
        """A tree of about n contexts in pre-order, statements before calls."""
        todo = [(parent, n)]
        while todo:
            above, left = todo.pop()
            index = self.rng.randrange(len(self.functions))
            file = self.files[index % 40]
            call = self.scope(above, CALL, file=file, line=self.rng.randint(1, 900))
            function = self.scope(call, PROC, 0, self.functions[index], file, 10 * index % 900 + 1)
            n_lines = self.rng.randint(1, 4) if not self.is_chain else int(left <= 2)
            for _ in range(n_lines):
                self.line(function, file)
            left -= 2 + n_lines
            n_parts = min(self.rng.randint(1, 4), (left + 2) // 4) if not self.is_chain else int(left > 0)
            todo += [(function, left // n_parts)] * n_parts if n_parts > 0 else []

    def make(self):
        program = self.scope(0, PROC, PROGRAM, 2)
        self.below(program, self.n // 2)
        data = self.scope(0, PROC, DATA, 3)
        static = self.scope(data, PROC, STATIC, 4)
        for i in range(self.n_variables):
            variable = self.scope(static, PROC, VARIABLE, self.string(f"table_{i}"))
            self.variables.append((self.scopes[variable - 1][4], variable))
            self.below(variable, self.n // 2 // self.n_variables)

    def write(self, directory):
        taken = int(sum(value for _, _, value in self.values) / 2000)
        event = {"metric": METRIC["name"], "name": "EADDR", "scale": 1000.0, "taken": taken, "overflows": taken, "fates": {"named": taken},
                 "enabled_ns": 0, "running_ns": 0, "n_throttles": 0, "n_no_metric": 0, "n_truncated": 0, "n_collisions": 0,
                 "has_data_source": 0, "has_address": 1, "is_user_only": 1}
        variables = [{"name": name, "class": 2, "function": 0, "file": self.files[0], "line": 1, "module": 5, "size_bytes": 4096,
                      "n_blocks": 1, "size_freed_bytes": 0, "n_blocks_freed": 0, "max_block_bytes": 4096, "n_inexact": 0,
                      "scopes": [scope], "places": [0], "type": 0, "type_source": 0, "element_bytes": 0, "fields": [], "samples": [0]}
                     for name, scope in self.variables]
        data = {"format": "locus-database", "version": 1, "program": "/opt/app/app", "command": None, "plan": None, "skid": None,
                "topology": None, "n_numa_nodes": 1, "cpu_time_ns": 0, "user_ns": 0, "system_ns": 0, "start_ns": 0, "end_ns": 0,
                "min_bytes": 0, "sample_bytes": 0, "mark_ns": 0, "n_killed": 0, "has_samples": int(self.n_threads > 1), "n_threads": self.n_threads, "n_frames": 0,
                "unwind_stops": [0] * 16, "notes": [], "runs": [], "strings": self.strings, "metrics": [METRIC],
                "processes": [{"exe": "app", "host_id": "0", "rank": 0, "pid": 1, "generation": 0, "n_threads": self.n_threads, "directory": 0,
                               "birth": 0}],
                "threads": [[0, i] for i in range(self.n_threads)], "events": [event], "variables": variables, "scopes": self.scopes, "values": self.values}
        if self.n_threads > 1:
            means = [400 / (i + 1) for i in range(self.n_variables)]
            counts = [[i, thread, 0, thread, max(0, round(self.rng.gauss(mean, mean ** 0.5)))] for i, mean in enumerate(means) for thread in range(self.n_threads)]
            data["cpu_counts"] = [count for count in counts if count[4]]
            for i, _, _, _, samples in counts:
                variables[i]["samples"][0] += samples
                variables[i]["places"][0] += samples
        measurement.write_database(directory, data)


def main():
    database = Database(int(sys.argv[1]), "".join(sys.argv[3:]))
    database.make()
    database.write(pathlib.Path(sys.argv[2]))


main()
