#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read-window.py TEXT COMMAND...: starts a desktop program and prints what its windows say, as its accessibility interface has
it: a line of JSON [depth, role, text] for each part, once one of them has TEXT in it (a regular expression) and nothing changes
any more. Then ends it.
Runs below xvfb-run and dbus-run-session, under a Python that has dbus (Debian: python3-dbus, at-spi2-core)."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import dbus

SECONDS = 60  # only a program that hangs takes so long
MARGINS = (1, 2, 4, 8)  # seconds that a program has to ask for the accessibility bus, by attempt
ANSWER_SECONDS = 2  # a program that starts may wait for us, and answers when it is asked again
ACCESSIBLE = "org.a11y.atspi.Accessible"
CHILDREN_MAX = 1000
ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
A11Y_BUS = "org.a11y.Bus"


def parts(bus, root):
    """[(depth, role, text)], windows before what is in them."""
    found, left = [], [(0, root)]
    while left:
        depth, reference = left.pop()
        try:
            part = bus.get_object(*reference, introspect=False)
            text = str(part.Get(ACCESSIBLE, "Name", dbus_interface="org.freedesktop.DBus.Properties", timeout=ANSWER_SECONDS))
            role = str(part.GetRoleName(dbus_interface=ACCESSIBLE, timeout=ANSWER_SECONDS))
            children = part.GetChildren(dbus_interface=ACCESSIBLE, timeout=ANSWER_SECONDS)[:CHILDREN_MAX]
        except dbus.DBusException:  # it has gone, or is busy
            continue
        found.append((depth, role, text))
        left += [(depth + 1, (str(name), str(path))) for name, path in reversed(children)]
    return found


def processes(session):
    """Those that have a connection to the session bus."""
    found = set()
    for name in session.list_names():
        try:
            found.add(int(session.call_blocking("org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetConnectionUnixProcessID", "s",
                                                [name])))
        except dbus.DBusException:  # it has gone
            continue
    return found


def end_accessibility(session):
    """The next program finds no accessibility bus, as the first did."""
    if session.name_has_owner(A11Y_BUS):
        owner = session.call_blocking("org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetConnectionUnixProcessID", "s", [A11Y_BUS])
        os.kill(int(owner), signal.SIGTERM)
    while session.name_has_owner(A11Y_BUS):
        time.sleep(.1)


def wait_for(pattern, program, bus):
    """What the windows say, once the pattern is in it and it stays; nothing where none can be seen."""
    begin, before, found = time.monotonic(), None, []
    while program.poll() is None and time.monotonic() < begin + (SECONDS if len(found) > 1 else SECONDS / 4):
        before, found = found, parts(bus, ROOT)
        if found == before and any(re.search(pattern, text) for _, _, text in found):
            break
        time.sleep(.5)
    return found


def read(session, margin):
    """Qt (5.15) offers its windows when the accessibility bus appears, and may not when the bus is there before it."""
    program = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=sys.stderr,  # noqa: PLR1732
                               env={**os.environ, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "QT_QPA_PLATFORM": "xcb"})
    begin = time.monotonic()
    while program.poll() is None and program.pid not in processes(session) and time.monotonic() < begin + SECONDS:
        time.sleep(.1)
    time.sleep(margin)
    address = session.get_object(A11Y_BUS, "/org/a11y/bus").GetAddress(dbus_interface=A11Y_BUS)
    found = wait_for(sys.argv[1], program, dbus.bus.BusConnection(address))
    program.terminate()
    status = program.wait()
    if len(found) <= 1:
        print(f"{sys.argv[2]}: no window was seen; it ended with {status}", file=sys.stderr)
    return found


def main():
    session = dbus.SessionBus()
    found = []
    for margin in MARGINS:
        found = read(session, margin)
        if len(found) > 1:
            break
        end_accessibility(session)
    for part in found:
        print(json.dumps(part))


main()
