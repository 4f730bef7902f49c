# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of Python code, each of a size of its own."""
import os
import sys
import threading


def make_buffer(n):
    buffer = bytearray(n)
    return buffer


def returned(n):
    return bytes(n)


class Solver:
    def __init__(self, n):
        self.state = bytearray(n)


def generate(n):
    while n < 3400000:
        yield bytearray(n)
        n += 100000


def größe(n):
    länge = bytearray(n)
    return länge


def on_lines_with_keywords(kept, n):
    if n < 0: pass
    else: in_else = bytearray(n)
    with open(os.devnull) as null: in_with = bytearray(n + 10000)
    for text in "a:b=c": in_loop = bytearray(n + 20000)
    kept += [null, text, in_else, in_with, in_loop]
    kept.append(dict(
        first=bytearray(n + 30000),
        last=bytearray(n + 40000)))
    typed: bytearray = bytearray(n + 50000)
    if n == 0 or bytearray(n + 60000): pass
    return typed


def in_thread(kept):
    of_thread = bytearray(3450001)
    kept.append(of_thread)


def main():
    kept = [make_buffer(3000000), returned(3100000), Solver(3200000), list(generate(3300000)), größe(3350000)]
    thread = threading.Thread(target=in_thread, args=(kept,))
    thread.start()
    thread.join()
    made = {}
    exec(compile("by_text = bytearray(3500001)", "<string>", "exec"), made)
    kept.append(made)
    names = ["", "/" + "ж" * 300 + "/длинный.py", "/tmp/\U0001f600.py", "/tmp/a\udc80b.py", "/" + "路" * 300 + "/x.py"]
    for i, file in enumerate(names):
        exec(compile(f"block = bytearray({3510001 + 10000 * i})", file, "exec"), {})
    exec("def " + "д" * 100 + "(): return bytearray(3570001)\n" + "д" * 100 + "()", {})
    for i, lines in enumerate((1, 8, 3)):  # often the same code object at the same place, but for its line
        exec(compile("\n" * lines + f"block = bytearray({3580001 + 10000 * i})", "<string>", "exec"), {})
    for i in range(10):  # line tables of one length, which are often at the same place
        exec(compile("\n" * (10 + i) + f"block = bytearray({3800001 + 10000 * i})", "<string>", "exec"), {})
    kept.append(on_lines_with_keywords(kept, 3700001))
    if "--many" in sys.argv:  # more lines of code than there is room for
        for i in range(24000):
            exec(compile("block = bytearray(5000)", f"file{i}.py", "exec"), {})
    if "--numpy" in sys.argv:
        import numpy

        grid = numpy.zeros((500, 1001))
        field = numpy.ones(600000)
        grid += 1.0
        kept += [grid, field * 2.0]
    child = os.fork()
    if child == 0:
        of_child = bytearray(3600001)
        os._exit(len(of_child) and 0)
    os.waitpid(child, 0)
    print(len(kept))


main()
