# SPDX-License-Identifier: BSD-3-Clause
"""Runs Python code of all kinds for SECONDS of its own time, and keeps what the interpreter's own tracing says of it: at which
time which function was entered and left, and on which line its caller was. usage: python-oracle.py SECONDS FILE"""
import asyncio
import ctypes
import functools
import json
import sys
import threading
import time

SECONDS = float(sys.argv[1])
logs = []


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def make_oracle():
    """The function for sys.setprofile of one thread."""
    events = []
    logs.append({"thread": threading.get_native_id(), "base": None, "events": events})
    log, now, codes = logs[-1], time.time_ns, {}

    def oracle(frame, event, _):
        if event == "call":
            above = frame.f_back
            if log["base"] is None:
                log["base"] = []
                while above:
                    log["base"].append((name_of(above.f_code), above.f_code.co_firstlineno, above.f_lineno))
                    above = above.f_back
                above = frame.f_back
            code = frame.f_code
            codes[id(code)] = code  # keeps it
            events.append((now(), id(code), above.f_lineno if above else 0))
        elif event == "return":
            events.append((now(), 0, 0))
    log["codes"] = codes
    return oracle


def spin_a(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def spin_b(n):
    total = 0
    while n:
        n -= 1
        total ^= n
    return total


def text(n):
    return "".join(str(i) for i in range(n))


def numbers(n):
    for i in range(n):
        yield spin_a(40) + i
        yield spin_b(40) + i


def chain(n):
    yield from numbers(n)
    yield from (spin_b(30) for _ in range(n))


def recurse(depth):
    if depth == 0:
        return spin_a(60)
    return recurse(depth - 1) + 1


def fail(depth):
    if depth == 0:
        spin_b(50)
        raise ValueError(depth)
    try:
        fail(depth - 1)
    finally:
        spin_a(30)


def catch():
    try:
        fail(4)
    except ValueError:
        spin_b(40)


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        spin_a(20)
        return self.value < other.value

    def __repr__(self):
        return f"<{spin_b(20)}>"

    def __del__(self):
        spin_b(10)


def order():
    return repr(sorted(Ordered(i * 7 % 11) for i in range(11)))


def key(value):
    return spin_a(25) + value


def by_key():
    return sorted(range(12), key=key) + sorted(range(12), key=lambda value: -spin_b(25) - value)


def reduce():
    return functools.reduce(lambda a, b: a + spin_a(b), range(20)) + sum(map(spin_b, range(20)))


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    return a[0] - b[0] + 0 * spin_a(10)


def from_c():
    values = (ctypes.c_int * 16)(*(i * 5 % 16 for i in range(16)))
    ctypes.CDLL(None).qsort(values, 16, 4, compare)
    return list(values)


async def step(n):
    await asyncio.sleep(0)
    return spin_b(n)


async def steps():
    return await asyncio.gather(*(step(20 + i) for i in range(5)))


def run_steps():
    return asyncio.run(steps())


def compiled(n):
    """Code objects come and go, at the same addresses."""
    for i in range(n):
        exec(compile("def made():\n" + "\n" * (i % 3) + "    return sum(i for i in range(300))\nmade()", f"<{'abc'[i % 3]}>", "exec"), {})


def nested():
    return [[spin_a(j) for j in range(10)] for _ in range(5)], {spin_b(j): j for j in range(10)}


WORK = [lambda: spin_a(1000), lambda: spin_b(1000), lambda: text(300), lambda: sum(chain(20)), lambda: recurse(60), catch, order, by_key,
        reduce, from_c, lambda: compiled(6), nested, lambda: list(zip(numbers(5), numbers(5)))]


def work(end, is_main):
    while time.thread_time() < end:
        for piece in WORK:
            piece()
        if is_main:
            run_steps()


def of_thread():
    sys.setprofile(make_oracle())
    work(SECONDS / 3, False)
    sys.setprofile(None)


def main():
    sys.setprofile(make_oracle())
    work(SECONDS / 3, True)
    sys.setprofile(None)
    threads = [threading.Thread(target=of_thread) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log["codes"] = {i: (name_of(code), code.co_firstlineno, sorted(lines_of(code))) for i, code in log["codes"].items()}
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(logs, out)


def lines_of(code):
    if hasattr(code, "co_lines"):
        return {line for _, _, line in code.co_lines() if line} | {code.co_firstlineno}
    import dis
    return {line for _, line in dis.findlinestarts(code)} | {code.co_firstlineno}


main()
