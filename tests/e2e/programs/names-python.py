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
    if len(sys.argv) > 1:  # with NumPy
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
