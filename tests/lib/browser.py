# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a window, driven through a pair of pipes (--remote-debugging-pipe): messages of the DevTools protocol,
JSON with a NUL behind each. For tests of pages: what runs in them, what they load, what they say on the console."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

SECONDS = 120  # for one answer: only a browser that hangs takes so long
KEYS = {"Enter": 13, "Escape": 27, " ": 32, "Tab": 9, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40}


class Failure(Exception):
    """The browser does not run here, or answered with an error."""


class Browser:
    """One page. loads: addresses that it asked for; troubles: what came on its console, and errors of its scripts."""

    def __init__(self, profile):
        program = shutil.which("chromium")
        if not program:
            raise Failure("no Chromium")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--disable-background-networking", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]

        def as_three_and_four():
            low, high = os.dup(to_browser), os.dup(from_browser)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,  # noqa: PLW1509
                                        stderr=subprocess.DEVNULL, close_fds=False, start_new_session=True, preexec_fn=as_three_and_four)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.session = b"", 0, None
        self.loads, self.troubles, self.events, self.kept = [], [], [], {}
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.write_end)
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self.read_end)
        deadline = time.monotonic() + 5  # its helpers still write into the profile, which the caller takes away
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
            time.sleep(0.01)

    def receive(self):
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Failure("Chromium does not answer")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise Failure("Chromium does not run here")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        about = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.loads.append(about["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.troubles.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.troubles.append(str([each.get("value") for each in about["args"]]))
        elif message.get("method") == "Log.entryAdded":
            self.troubles.append(about["entry"]["text"])
        elif message.get("method") in self.kept:
            self.kept[message["method"]].append(about)
        if "method" in message:
            self.events.append(message["method"])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.write_end, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise Failure("Chromium does not run here") from error
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']}")
                return answer["result"]

    def gather(self, method, event, key):
        """What a command says in events, one behind the other."""
        self.kept[event] = []
        self.call(method)
        return "".join(about[key] for about in self.kept.pop(event))

    def open(self, address):
        """Opens a page; returns when it has been loaded and its scripts have run."""
        self.loads, self.troubles, self.events = [], [], []
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self.events:
            self.receive()

    def value(self, expression):
        """What an expression is in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failure(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def press(self, *keys):
        for key in keys:
            with_shift = key == "Shift+Tab"
            name = "Tab" if with_shift else key
            about = {"key": name, "code": name, "modifiers": 8 if with_shift else 0, "windowsVirtualKeyCode": KEYS.get(name, ord(name[0]))}
            text = {"Enter": "\r", " ": " "}.get(name, name if len(name) == 1 else "")
            self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def size(self, width, height, zoom=1.0):
        """A window of this size at this zoom: what zooming does to a page is to give it fewer, larger pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=int(width / zoom), height=int(height / zoom), deviceScaleFactor=zoom,
                  mobile=False)

    def scheme(self, name):
        """Light or dark, as the system would say."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
