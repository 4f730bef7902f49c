# SPDX-License-Identifier: BSD-3-Clause
"""A terminal for tests: a program on a pseudo-terminal, and the screen that it draws there, as far as ncurses with the
descriptions of xterm goes. What it does not know it keeps, for a test to complain of."""
import base64
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

KEYS = {"Up": "\x1bOA", "Down": "\x1bOB", "Right": "\x1bOC", "Left": "\x1bOD", "Home": "\x1bOH", "End": "\x1bOF", "PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "Enter": "\r",
        "Tab": "\t", "Esc": "\x1b", "Back": "\x7f", "AltLeft": "\x1b[1;3D", "AltRight": "\x1b[1;3C"}
CSI = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([ !\"#$%&'()*+,\-./]*)([@-~])")
OSC = re.compile(r"\x1b\]([^\x07\x1b]*)(?:\x07|\x1b\\)")
OTHER = re.compile(r"\x1b(?:[()][0-9A-Za-z]|[=>78MDEHc])")
# The only characters that a terminal acts on and that a program may send as they are.
HARMLESS = "\x08\x07\r\n\t\x0e\x0f"


class Screen:
    """What is to be seen. attributes: of each cell, a set of words such as "bold", "reverse", "color"."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.unknown, self.copied, self.bells, self.text = [], [], 0, ""
        self.is_alternate, self.shows_cursor, self.colors_used = False, True, False
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.width for _ in range(self.height)]
        self.attributes = [[frozenset()] * self.width for _ in range(self.height)]
        self.x = self.y = 0
        self.top, self.bottom = 0, self.height - 1
        self.now = set()

    def resize(self, width, height):
        self.cells = [(row + [" "] * width)[:width] for row in self.cells[:height]] + [[" "] * width for _ in range(height - self.height)]
        self.attributes = [(row + [frozenset()] * width)[:width] for row in self.attributes[:height]] + [[frozenset()] * width for _ in range(height - self.height)]
        self.width, self.height = width, height
        self.top, self.bottom = 0, height - 1
        self.x, self.y = min(self.x, width - 1), min(self.y, height - 1)

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, text):
        """Takes what a program wrote; what is not complete waits for the rest."""
        self.text += text
        at = 0
        while at < len(self.text):
            c = self.text[at]
            if c == "\x1b":
                n = self.escape(at)
                if n == 0:
                    break
                at += n
                continue
            self.put(c)
            at += 1
        self.text = self.text[at:]

    def escape(self, at):
        found = CSI.match(self.text, at)
        if found:
            self.csi(*found.groups())
            return len(found[0])
        found = OSC.match(self.text, at)
        if found:
            words = found[1].split(";")
            if words[0] == "52":
                self.copied.append(base64.b64decode(words[2]).decode())
            else:
                self.unknown.append(found[0])
            return len(found[0])
        found = OTHER.match(self.text, at)
        if found:
            if found[0][1] == "M":
                self.y = max(self.y - 1, self.top) if self.y != self.top else self.scroll(-1) or self.y
            elif found[0][1] in "78":
                if found[0][1] == "7":
                    self.saved = (self.x, self.y)
                else:
                    self.x, self.y = getattr(self, "saved", (0, 0))
            return len(found[0])
        if len(self.text) - at < 64:
            return 0
        self.unknown.append(self.text[at:at + 8])
        return 1

    def scroll(self, n):
        for _ in range(abs(n)):
            for rows, blank in ((self.cells, " "), (self.attributes, frozenset())):
                if n > 0:
                    del rows[self.top]
                    rows.insert(self.bottom, [blank] * self.width)
                else:
                    del rows[self.bottom]
                    rows.insert(self.top, [blank] * self.width)

    def erase(self, y, begin, end):
        for x in range(max(begin, 0), min(end, self.width)):
            self.cells[y][x], self.attributes[y][x] = " ", frozenset()

    def csi(self, private, text, between, final):
        values = [int(word) if word else 0 for word in text.split(";")] if text else []
        first = values[0] if values and values[0] else 1
        if private == "?" and final in "hl":
            for value in values:
                if value in (1049, 47, 1047):
                    self.is_alternate = final == "h"
                elif value == 25:
                    self.shows_cursor = final == "h"
            return
        if private or between:
            return  # modes of keys
        if final in "Hf":
            self.y = min(first - 1, self.height - 1)
            self.x = min((values[1] if len(values) > 1 and values[1] else 1) - 1, self.width - 1)
        elif final in "ABCDGd":
            x, y = {"A": (self.x, self.y - first), "B": (self.x, self.y + first), "C": (self.x + first, self.y), "D": (self.x - first, self.y), "G": (first - 1, self.y),
                    "d": (self.x, first - 1)}[final]
            self.x, self.y = min(max(x, 0), self.width - 1), min(max(y, 0), self.height - 1)
        elif final == "J":
            how = values[0] if values else 0
            if how == 0:
                self.erase(self.y, self.x, self.width)
            elif how == 1:
                self.erase(self.y, 0, self.x + 1)
            for y in range(self.height):
                if how == 2 or (how == 0 and y > self.y) or (how == 1 and y < self.y):
                    self.erase(y, 0, self.width)
        elif final == "K":
            how = values[0] if values else 0
            self.erase(self.y, 0 if how else self.x, self.x + 1 if how == 1 else self.width)
        elif final == "X":
            self.erase(self.y, self.x, self.x + first)
        elif final == "P":
            for row, blank in ((self.cells[self.y], " "), (self.attributes[self.y], frozenset())):
                del row[self.x:self.x + first]
                row.extend([blank] * (self.width - len(row)))
        elif final == "@":
            for row, blank in ((self.cells[self.y], " "), (self.attributes[self.y], frozenset())):
                row[self.x:self.x] = [blank] * first
                del row[self.width:]
        elif final in "LM" and self.top <= self.y <= self.bottom:
            top, self.top = self.top, self.y
            self.scroll(-first if final == "L" else first)
            self.top = top
        elif final in "ST":
            self.scroll(first if final == "S" else -first)
        elif final == "r":
            self.top, self.bottom = (first - 1, (values[1] if len(values) > 1 else self.height) - 1)
            self.x = self.y = 0
        elif final == "m":
            self.rendition(values or [0])
        elif final == "b":
            for _ in range(first):
                self.put(self.last)
        elif final not in "hlnct":
            self.unknown.append(f"\x1b[{text}{final}")

    def rendition(self, values):
        names = {1: "bold", 2: "dim", 4: "underline", 7: "reverse"}
        for value in values:
            if value == 0:
                self.now = set()
            elif value in names:
                self.now.add(names[value])
            elif value in (22, 24, 27):
                self.now -= {22: {"bold", "dim"}, 24: {"underline"}, 27: {"reverse"}}[value]
            elif value == 39:
                self.now.discard("color")
            elif 30 <= value <= 37 or 90 <= value <= 97:
                self.now.add("color")
                self.colors_used = True

    def put(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            if self.y == self.bottom:
                self.scroll(1)
            else:
                self.y = min(self.y + 1, self.height - 1)
        elif c == "\b":
            self.x = max(min(self.x, self.width - 1) - 1, 0)
        elif c == "\t":
            self.x = min(self.x + 8 - self.x % 8, self.width - 1)
        elif c == "\x07":
            self.bells += 1
        elif ord(c) < 32 or 0x7f <= ord(c) < 0xa0:
            if c not in HARMLESS:
                self.unknown.append(c)
        else:
            self.put_character(c)

    def put_character(self, c):
        if unicodedata.combining(c) and self.x:
            self.cells[self.y][self.x - 1] += c
            return
        wide = unicodedata.east_asian_width(c) in "WF"
        if self.x + wide >= self.width and self.x >= self.width:
            self.x = 0
            self.put("\n")
        self.cells[self.y][self.x], self.attributes[self.y][self.x] = c, frozenset(self.now)
        if wide and self.x + 1 < self.width:
            self.cells[self.y][self.x + 1] = ""
        self.x += 2 if wide else 1
        self.last = c


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, width=80, height=24, env=None, **named):
        self.screen = Screen(width, height)
        self.master, follower = pty.openpty()
        self.size(width, height)
        environment = {**{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION")},
                       "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}
        self.modes = termios.tcgetattr(follower)
        self.process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **named)
        self.follower, self.left, self.typed_at = follower, b"", None
        self.bytes = b""

    def size(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def resize(self, width, height):
        self.screen.resize(width, height)
        self.size(width, height)
        os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, wait_s):
        """Takes what has come; false: nothing has."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.bytes += data
        data = self.left + data
        end = len(data)
        for back in range(1, min(4, len(data)) + 1):  # a character of which the rest is still to come
            if data[-back] >= 0xc0:
                n = 2 if data[-back] < 0xe0 else 3 if data[-back] < 0xf0 else 4
                end = len(data) - back if back < n else end
                break
            if data[-back] < 0x80:
                break
        self.left = data[end:]
        self.screen.feed(data[:end].decode("utf-8", errors="replace"))
        return bool(data)

    def is_waiting(self):
        """Whether the program has taken all that was typed, and sleeps."""
        waiting = struct.unpack("i", fcntl.ioctl(self.follower, termios.FIONREAD, b"\0\0\0\0"))[0]
        try:
            state = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        return waiting == 0 and state in "SZX"

    def sleeps(self):
        """How often the program has gone to sleep."""
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return -1
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)
        return int(found[1]) if found else -1

    def settle(self, most_s=30):
        """Until the program waits for more, and all that it wrote was taken. On a busy machine the kernel brings keys and output late:
        what was typed has come when the program has slept anew, and quiet is longer."""
        begin, quiet, most = time.monotonic(), 0, 3 if os.getloadavg()[0] < (os.cpu_count() or 1) else 10
        while time.monotonic() < begin + most_s and quiet < most:
            is_taken = self.typed_at is None or self.sleeps() != self.typed_at or time.monotonic() > begin + 1
            quiet = 0 if self.read(0.004) or not self.is_waiting() or not is_taken else quiet + 1
        self.typed_at = None

    def wait(self, words, most_s=30):
        """Until the screen has some words; false: it never had."""
        deadline = time.monotonic() + most_s
        while time.monotonic() < deadline:
            if words in "\n".join(self.screen.lines()):
                self.settle()
                return True
            if not self.read(0.1) and self.process.poll() is not None:
                return words in "\n".join(self.screen.lines())
        return False

    def write(self, text):
        if self.typed_at is None:
            self.typed_at = self.sleeps()
        os.write(self.master, text.encode("utf-8", errors="surrogateescape"))

    def press(self, *keys):
        """Presses keys: a name of KEYS, or characters."""
        for key in keys:
            self.write(KEYS.get(key, key))
            if key == "Esc":
                time.sleep(0.06)
        self.settle()

    def lines(self):
        return self.screen.lines()

    def is_restored(self):
        """Whether the terminal is as it was."""
        return termios.tcgetattr(self.follower)[:4] == self.modes[:4] and not self.screen.is_alternate and self.screen.shows_cursor

    def end(self, most_s=20):
        """Waits for the end; its status, None: it goes on."""
        deadline = time.monotonic() + most_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        self.settle()
        return self.process.poll()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.follower):
            try:
                os.close(fd)
            except OSError:
                pass
