#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read-window.py TEXT COMMAND...: starts a desktop program and prints what its windows say, as its accessibility interface has
it: a line of JSON [depth, role, text] for each part, once one of them has TEXT in it (a regular expression) and nothing changes
any more. Then ends it.
Runs below xvfb-run and dbus-run-session, under a Python that has dbus (Debian: python3-dbus, at-spi2-core)."""
import json
import os
import re
import subprocess
import sys
import time

import dbus

SECONDS = 60  # only a program that hangs takes so long
SEEN_SECONDS = (3, 3, 6, 6, 12, 24, 48)  # until a program is seen at all, by attempt
ANSWER_SECONDS = 2  # a program that starts may wait for us, and answers when it is asked again
ACCESSIBLE = "org.a11y.atspi.Accessible"
CHILDREN_MAX = 1000
ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")


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


def wait_for(pattern, program, bus, seen_seconds):
    """What the windows say, once the pattern is in it and it stays; nothing where none can be seen."""
    begin, before, found = time.monotonic(), None, []
    while program.poll() is None and time.monotonic() < begin + (SECONDS if len(found) > 1 else seen_seconds):
        before, found = found, parts(bus, ROOT)
        if found == before and any(re.search(pattern, text) for _, _, text in found):
            break
        time.sleep(.5)
    return found


def main():
    address = dbus.SessionBus().get_object("org.a11y.Bus", "/org/a11y/bus").GetAddress(dbus_interface="org.a11y.Bus")
    bus = dbus.bus.BusConnection(address)
    found = parts(bus, ROOT)  # the registry runs before the program looks for it
    for seconds in SEEN_SECONDS:  # a program may still miss it, and is not seen then
        program = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=sys.stderr,  # noqa: PLR1732
                                   env={**os.environ, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "QT_QPA_PLATFORM": "xcb"})
        found = wait_for(sys.argv[1], program, bus, seconds)
        program.terminate()
        program.wait()
        if len(found) > 1:
            break
    for part in found:
        print(json.dumps(part))


main()
