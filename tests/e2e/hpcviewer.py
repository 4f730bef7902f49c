#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hpcviewer: a served page is answered what hpcquery says, and nobody else is: no one without the secret, other users, pages of
others in the same browser, other names of this machine. It serves on while clients stall or are many, and ends with its last
page, by Ctrl-C, and before it began when there is nothing to serve. A browser is led to the address without showing it. What is
made on the way is gone afterwards; a page in a file is complete or not there."""
import http.client
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import browser  # noqa: E402
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import packed  # noqa: E402
import schedfile  # noqa: E402
import terminal  # noqa: E402
import tracedat  # noqa: E402
from measurement import expect, failures  # noqa: E402

TOOL = str(BUILD / "hpcviewer")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
QUESTIONS = [{"report": "vars"}, {"report": "vars", "fields": True}, {"report": "functions"}, {"report": "lines"}, {"report": "advice"},
             {"report": "types"}, {"report": "vars", "top": 2}]
started = []  # processes, which a failure must not leave behind
SECRET = re.compile(r"[0-9a-f]{32}")
METRICS = [("EADDR (usec)", m.INT, 1000)]
SECONDS = 120


class Viewer:
    """hpcviewer at work. lines: what it has printed so far, up to the address at least."""

    def __init__(self, *arguments, before=(), **options):
        self.process = subprocess.Popen([*before, TOOL, *map(str, arguments)], stdin=options.pop("stdin", subprocess.DEVNULL),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        started.append(self.process)
        self.lines = []
        self.address = self.next_address()
        self.port = int(self.address.split(":")[2].split("/")[0])

    def next_address(self):
        """The next address that it prints."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("http:"):
                return self.lines[-1]
        raise SystemExit(f"FAIL: hpcviewer printed no address: {self.lines} {self.process.stderr.read()}")

    def ask(self, method, path, body=None, **headers):
        """(status, headers, bytes) of a request of its own connection."""
        return ask(self.port, method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def open(self, address=None):
        """The secret for a token."""
        status, _, body = self.ask("POST", "/open", (address or self.address).split("#token=")[1])
        expect(status == 200 and SECRET.fullmatch(body.decode()), f"POST /open: {status} {body}")
        return body.decode()

    def end(self, number=signal.SIGINT):
        """Its exit status and all that it printed."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self):
        """The same, when it ends by itself."""
        self.lines += self.process.stdout.read().split("\n")
        err = self.process.stderr.read()
        return self.process.wait(), "\n".join(self.lines), err


def ask(port, method, path, body, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def bearer(secret):
    return "Bearer " + secret


def raw(port, text):
    """What comes back for bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def status_of(text):
    return int(text.split()[1]) if text.startswith(b"HTTP/") else None


# --- what is answered -----------------------------------------------------------------------------------------------------


def expected(database, question):
    """What a session of our own says; answers.py holds it against what hpcquery says."""
    return subprocess.run([BUILD / "tests/lib/ask-packed", database, json.dumps(question)], capture_output=True, check=True).stdout


def check_answers(viewer, secret, database):
    for question in QUESTIONS:
        status, headers, body = viewer.ask("POST", "/ask", json.dumps(question), Authorization=bearer(secret))
        expect(status == 200 and body == expected(database, question), f"{question}: {status} {body[:200]}")
        status, headers, deflated = viewer.ask("POST", "/ask", json.dumps(question), Authorization=bearer(secret),
                                               Accept_Encoding="gzip, deflate")
        expect(status == 200 and headers["Content-Encoding"] == "deflate" and zlib.decompress(deflated) == body,
               f"{question} deflated: {status} {headers}")
    for question, wanted in (('{"report": "varx"}', (400, "did you mean 'vars'")), ("{", (400, "JSON")), ("", (400, "JSON")),
                             ("\0", (400, "JSON")), ('{"report": "vars", "metric": "none"}', (200, "none"))):
        status, headers, body = viewer.ask("POST", "/ask", question, Authorization=bearer(secret))
        expect(status == wanted[0] and wanted[1] in body.decode() and headers["Content-Type"].startswith("text/plain"),
               f"question {question!r}: {status} {body}")


def check_page(viewer):
    status, headers, body = viewer.ask("GET", "/")
    expect(status == 200 and headers["Content-Type"].startswith("text/html") and body.startswith(b"<!DOCTYPE html>"), "no page")
    own = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', body.decode())
    policy = headers["Content-Security-Policy"]
    expect(policy.startswith(own[1] if own else "default-src 'none'"), f"the page's policy is {own}, the server's {policy}")
    for row in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"):
        expect(row in policy, f"the policy has no {row}: {policy}")
    for path, method in (("/", "GET"), ("/nothing", "GET"), ("/ask", "POST")):
        headers = viewer.ask(method, path)[1]
        for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"),
                            ("Cross-Origin-Resource-Policy", "same-origin"), ("X-Frame-Options", "DENY")):
            expect(headers[name] == value, f"{path}: {name} is {headers[name]}")
        expect("Access-Control-Allow-Origin" not in headers, f"{path} is for pages of others")


# --- who is not answered --------------------------------------------------------------------------------------------------


def check_refusals(viewer, secret):
    known = {"Authorization": bearer(secret)}
    port, question = viewer.port, '{"report": "vars"}'
    token = viewer.address.split("=")[1]
    requests = [  # status, method, path, headers, body
        (401, "POST", "/ask", {}, question),
        (401, "POST", "/ask", {"Authorization": bearer("0" * 32)}, question),
        (401, "POST", "/ask", {"Authorization": bearer(secret[:-1])}, question),
        (401, "POST", "/ask", {"Authorization": bearer(secret + "0")}, question),
        (401, "POST", "/ask", {"Authorization": bearer("")}, question),
        (401, "POST", "/ask", {"Authorization": secret}, question),
        (401, "POST", "/ask", {"Authorization": "Basic " + secret}, question),
        (401, "POST", "/ask", {"Cookie": "secret=" + secret}, question),
        (401, "POST", "/ask", {"Authorization": bearer(token)}, question),
        (401, "POST", "/token", {}, None),
        (401, "GET", "/alive", {}, None),
        (403, "POST", "/open", {}, token),
        (403, "POST", "/open", {}, "0" * 32),
        (403, "POST", "/open", {}, secret),
        (403, "POST", "/open", {}, ""),
        (413, "POST", "/open", {}, "0" * 33),
        (413, "POST", "/ask", known, " " * ((64 << 10) + 1)),
        (413, "GET", "/", {}, "x"),
        (200, "POST", "/ask", known, question + " " * ((64 << 10) - len(question))),
        (200, "POST", "/ask", {**known, "Host": f"localhost:{port}"}, question),
        (200, "POST", "/ask", {**known, "Origin": f"http://127.0.0.1:{port}"}, question),
        (200, "POST", "/ask", {**known, "Origin": f"http://localhost:{port}"}, question),
    ]
    requests += [(403, method, path, {**known, "Host": host}, question if method == "POST" else None)
                 for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"127.0.0.2:{port}",
                              f"[::1]:{port}", f"127.0.0.1:{port}.evil.example", f"user@127.0.0.1:{port}", f"0.0.0.0:{port}", "")
                 for method, path in (("GET", "/"), ("POST", "/ask"))]
    requests += [(403, "POST", path, {**known, "Origin": origin}, body)
                 for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", "file://",
                                f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}.evil.example", "")
                 for path, body in (("/ask", question), ("/open", token), ("/token", None))]
    requests += [(405, method, path, known, None)
                 for path, methods in (("/", ("POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")), ("/ask", ("GET", "OPTIONS", "HEAD")),
                                       ("/open", ("GET", "OPTIONS")), ("/token", ("GET", "OPTIONS")), ("/alive", ("POST", "OPTIONS")))
                 for method in methods]
    requests += [(404, "GET", path, known, None)
                 for path in ("/index.html", "//", "/ask/", "/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/ask%00", "/src/cg.c",
                              "/locus.db", "/ASK", "/.", "*")]
    for wanted, method, path, headers, body in requests:
        status, _, answer = ask(port, method, path, body, headers)
        expect(status == wanted and (wanted != 200 or b"program" in answer) and (wanted == 200 or b"program" not in answer),
               f"{method} {path} {headers} {str(body)[:40]}: {status}, not {wanted}")
        expect(secret.encode() not in answer, f"{method} {path} {headers} shows the secret")


def check_raw(viewer, secret):
    """What no browser sends."""
    host, key = f"Host: 127.0.0.1:{viewer.port}\r\nConnection: close\r\n", f"Authorization: Bearer {secret}\r\n"
    long = "x" * 100
    for what, text, wanted in (
            ("no name", "GET / HTTP/1.0\r\n\r\n", {403, 400}),
            ("no name, 1.1", "GET / HTTP/1.1\r\n\r\n", {403, 400}),
            ("two names", f"GET / HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n", {403, 400}),
            ("two names, the other first", f"GET / HTTP/1.1\r\nHost: evil.example\r\n{host}\r\n", {403, 400}),
            ("a whole address", f"GET http://evil.example/ HTTP/1.1\r\n{host}\r\n", {404, 400}),
            ("two origins", f"POST /ask HTTP/1.1\r\n{host}{key}Origin: http://127.0.0.1:{viewer.port}\r\nOrigin: null\r\nContent-Length: 2\r\n\r\n{{}}", {403}),
            ("a long body in pieces", f"POST /ask HTTP/1.1\r\n{host}{key}Transfer-Encoding: chunked\r\n\r\n"
             + f"{len(long):x}\r\n{long}\r\n" * 700 + "0\r\n\r\n", {413}),
            ("a negative length", f"POST /ask HTTP/1.1\r\n{host}{key}Content-Length: -1\r\n\r\n", {400, 413, None}),
            ("a huge length", f"POST /ask HTTP/1.1\r\n{host}{key}Content-Length: 99999999999999999999999\r\n\r\n", {400, 413, None}),
            ("a long line", "GET /" + "x" * 100000 + f" HTTP/1.1\r\n{host}\r\n", {414, 431, 413, 400, None}),
            ("many headers", f"GET / HTTP/1.1\r\n{host}" + "A: b\r\n" * 20000 + "\r\n", {431, 413, 400, None}),
            ("no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400, None}),
            ("nothing", "", {None})):
        try:
            status = status_of(raw(viewer.port, text.encode("latin-1")))
        except OSError:  # it was closed while more was sent
            status = None
        expect(status in wanted, f"{what}: {status}, not {wanted}")


def check_company(viewer, secret):
    """Clients that stall, and very many of them: others are served meanwhile."""
    half = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(50)]
    for i, connection in enumerate(half):
        whole = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nAuthorization: Bearer {secret}\r\nContent-Length: 18\r\n\r\n{{\"report\": \"vars\""
        connection.sendall(whole.encode()[:i * 5])
    many = [http.client.HTTPConnection("127.0.0.1", viewer.port) for _ in range(100)]
    for _ in range(2):
        for connection in many:
            connection.request("POST", "/ask", body='{"report": "vars", "top": 1}', headers={"Authorization": bearer(secret)})
        answers = [connection.getresponse() for connection in many]
        expect(all(each.status == 200 and b"program" in each.read() for each in answers), "100 connections at once are not all answered")
    whole = half[-1]
    whole.sendall(f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nAuthorization: Bearer {secret}\r\nContent-Length: 18\r\n\r\n{{\"report\": \"vars\"".encode()[245:])
    whole.sendall(b"}")
    expect(whole.recv(100).startswith(b"HTTP/1.1 200"), "a slow question is not answered")
    for connection in many + half:
        connection.close()


def check_secrecy(viewer, secret, scratch):
    """Nothing of the process that others see has a secret; and another user gets the page alone."""
    proc = pathlib.Path("/proc") / str(viewer.process.pid)
    shown = b"".join((proc / name).read_bytes() for name in ("cmdline", "environ", "comm"))
    shown += b"".join(path.read_bytes() for path in (proc / "task").glob("*/comm"))
    for each in (secret, viewer.address.split("=")[1]):
        expect(each.encode() not in shown, "a secret is in /proc")
    if os.getuid() != 0:
        print("SKIP (part): another user needs root")
        return
    program = f"""
import http.client, os
def ask(method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", {viewer.port})
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()
def reads(path):
    try:
        return len(open(path, "rb").read(1)) > 0
    except OSError:
        return False
assert os.getuid() == 65534
print([ask("GET", "/")[0], ask("POST", "/ask", '{{"report": "vars"}}')[0], ask("POST", "/ask", '{{"report": "vars"}}', Authorization="Bearer")[0],
       ask("POST", "/token")[0], ask("POST", "/open", "0" * 32)[0], ask("GET", "/alive")[0]])
print([name for name in ("environ", "mem", "maps", "fd/1") if reads("/proc/{viewer.process.pid}/" + name)])
"""
    result = subprocess.run([*NOBODY, "python3", "-c", program], capture_output=True, text=True, check=False, cwd="/",
                            env={"PATH": os.environ["PATH"], "HOME": str(scratch)})
    expect(result.stdout == "[200, 401, 401, 401, 403, 401]\n[]\n", f"another user gets {result.stdout} {result.stderr}")


def check_tokens(viewer, secret):
    """A page may open others, each by an address of its own."""
    status, _, token = viewer.ask("POST", "/token", Authorization=bearer(secret))
    expect(status == 200 and SECRET.fullmatch(token.decode()), f"POST /token: {status}")
    other = viewer.open("#token=" + token.decode())
    expect(other != secret, "two pages have one secret")
    for each in (secret, other):
        expect(viewer.ask("POST", "/ask", '{"report": "vars"}', Authorization=bearer(each))[0] == 200, "a page is not answered any more")
    expect(viewer.ask("POST", "/open", token)[0] == 403, "a token serves twice")
    expect(viewer.ask("POST", "/open", token.decode().upper())[0] == 403, "a token in capitals serves")
    fresh = {viewer.ask("POST", "/token", Authorization=bearer(secret))[2] for _ in range(200)}
    expect(len(fresh) == 200, "tokens repeat")


# --- how it begins and ends -----------------------------------------------------------------------------------------------


def hold(viewer, secret):
    """The connection of a page that is open."""
    connection = socket.create_connection(("127.0.0.1", viewer.port))
    connection.sendall(f"GET /alive HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
    expect(connection.recv(1000).startswith(b"HTTP/1.1 200"), "GET /alive is not answered")
    return connection


def check_life(database):
    viewer = Viewer("--no-browser", database)
    secret = viewer.open()
    held = [hold(viewer, secret), hold(viewer, viewer.open("#token=" + viewer.ask("POST", "/token", Authorization=bearer(secret))[2].decode()))]
    held.pop(0).close()
    expect(viewer.ask("POST", "/ask", '{"report": "vars"}', Authorization=bearer(secret))[0] == 200, "it does not answer behind a closed page")
    held.append(hold(viewer, secret))  # a page that is loaded anew
    for connection in held:
        connection.close()
    status, out, err = viewer.finish()
    expect(status == 0 and out.endswith("The last page was closed.\n") and not err, f"the last page: {out} {err}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for is_open in (False, True):
            viewer = Viewer("--no-browser", database)
            connection = hold(viewer, viewer.open()) if is_open else None
            status, out, err = viewer.end(number)
            expect(status == 0 and out.endswith("Ended.\n") and not err, f"{number}: {status} {out} {err}")
            if connection:
                connection.settimeout(60)
                while connection.recv(1000):
                    pass
                connection.close()
    shown = "\n".join(viewer.lines)
    expect(re.search(r"^http://127\.0\.0\.1:\d+/#token=[0-9a-f]{32}$", shown, re.M), shown)


def check_words(database):
    viewer = Viewer("--no-browser", database)
    _, out, _ = viewer.end()
    expect(f"ssh -L {viewer.port}:127.0.0.1:{viewer.port} {socket.gethostname()}\n" in out and "--no-browser" in out, out)
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    viewer = Viewer(database, env=environment)
    expect("there is no display here" in viewer.end()[1], "nothing is said without a display")
    viewer = Viewer(database, env={**environment, "DISPLAY": ":77", "PATH": "/nonexistent"})
    expect("xdg-open is not installed" in viewer.end()[1], "nothing is said without xdg-open")


def check_refused(scratch, database):
    """Errors come before anything is served."""
    def fails(words, *arguments, status=1, **options):
        result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
        expect(result.returncode == status and words in result.stderr and "http:" not in result.stdout and result.stderr.count("\n") <= 2,
               f"{arguments}: {result.returncode} {result.stdout} {result.stderr}")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fails(f"port {port} of 127.0.0.1 cannot be taken: Address already in use; leave out --port", "--port", port, database)
    viewer = Viewer("--no-browser", "--port", port, database)
    expect(viewer.port == port, f"--port {port} gave {viewer.port}")
    viewer.end()
    broken = scratch / "broken"
    shutil.copytree(database, broken)
    (broken / "locus.db").write_bytes((database / "locus.db").read_bytes()[:1000])
    fails("locus.db", "--no-browser", broken)
    fails("No such file", scratch / "missing")
    (scratch / "empty").mkdir()
    fails("not a profile that can be read", scratch / "empty")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TOOL, "--no-browser", database], stdout=full, stderr=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL)
        expect(result.returncode == 1 and "the address cannot be printed" in result.stderr, f"no room for the address: {result}")
    (scratch / "trace.dat").write_bytes(b"\x17\x08Dtracing6\0\0\x08")
    fails("trace.dat: offset 14: truncated", scratch / "trace.dat")
    fails("no input is given", status=2)
    fails("is no recording; several inputs are recordings on one time line", database, database)
    for port in ("0", "x", "-1", "65536", "80x", ""):
        fails("is no number from 1 to 65535", f"--port={port}", database, status=2)
    fails("goes with neither", "-o", "x.html", "--port", "8000", database, status=2)
    if os.getuid() == 0:
        closed = scratch / "closed"
        shutil.copytree(database, closed)
        closed.chmod(0o700)
        scratch.chmod(0o755)
        result = subprocess.run([*NOBODY, TOOL, "--no-browser", closed], capture_output=True, text=True, check=False, cwd="/")
        if "No such file" in result.stderr:
            print("SKIP (part): another user cannot run what was built")
        else:
            expect(result.returncode == 1 and "Permission denied" in result.stderr, f"a closed database: {result}")
            viewer = Viewer("--no-browser", database, before=NOBODY, cwd="/")  # which cannot write there
            expect(viewer.ask("POST", "/ask", '{"report": "vars"}', Authorization=bearer(viewer.open()))[0] == 200, "another user's database is not shown")
            viewer.end()
    else:
        print("SKIP (part): another user needs root")


def check_enter(database):
    """On a terminal Enter prints another address."""
    leader, follower = pty.openpty()
    viewer = Viewer("--no-browser", database, stdin=follower, start_new_session=True,
                    preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(follower)
    first = viewer.address
    os.write(leader, b"\n")
    second = viewer.next_address()
    expect(first != second and any("Enter" in line for line in viewer.lines), f"{viewer.lines}")
    expect(len({viewer.open(first), viewer.open(second)}) == 2, "two addresses do not open two pages")
    os.write(leader, b"\x03")
    status, out, _ = viewer.finish()
    expect(status == 0 and out.endswith("Ended.\n"), f"Ctrl-C: {status} {out}")
    os.close(leader)


def check_browser_start(scratch, database):
    """What a browser is started with leads to the address without showing it."""
    (scratch / "bin").mkdir()
    (scratch / "tmp").mkdir()
    found = scratch / "found"
    os.mkfifo(found)
    program = scratch / "bin" / "xdg-open"
    program.write_text(f"#!/bin/sh\n{{ echo $$; echo \"$1\"; cat \"$1\"; }} >'{found}'\nexec sleep 1000\n", encoding="utf-8")
    program.chmod(0o755)
    viewer = Viewer(database, env={**os.environ, "DISPLAY": ":77", "PATH": f"{scratch / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(scratch / "tmp")})
    lines = found.read_text(encoding="utf-8").split("\n")
    path, text = pathlib.Path(lines[1]), "\n".join(lines[2:])
    address = re.search(r"http://127\.0\.0\.1:\d+/#token=[0-9a-f]{32}", text)
    expect(address and address[0] != viewer.address, f"a browser gets {text}")
    expect(stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700, "others can read what a browser gets")
    token = address[0].split("=")[1] if address else "-"
    expect(path.is_relative_to(scratch / "tmp") and token not in str(path), f"a browser gets {path}")
    secret = viewer.open(address[0])
    viewer.ask("GET", "/")
    expect(not path.parent.exists(), "the way to the page is still there")
    expect(viewer.ask("POST", "/ask", '{"report": "vars"}', Authorization=bearer(secret))[0] == 200, "the page of a browser is not answered")
    expect(viewer.ask("POST", "/open", viewer.address.split("=")[1])[0] == 200, "the address that was printed is worth nothing")
    status, out, _ = viewer.end()
    expect(status == 0 and "A browser is being started" in out, out)
    expect(not list((scratch / "tmp").iterdir()), "something is left of the browser's start")
    expect(not (pathlib.Path("/proc") / lines[0] / "fd").is_dir() or len(list((pathlib.Path("/proc") / lines[0] / "fd").iterdir())) <= 5,
           "a browser inherits what hpcviewer has open")
    os.kill(int(lines[0]), signal.SIGTERM)


def write_measurement(directory):
    """One thread with one variable."""
    profile = m.Profile("app", METRICS)
    variable = m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "table", 8192)
    profile.sample([("/nowhere/app", 0x5000)], {0: 250}, variable)
    profile.write(directory)


def check_interrupted(scratch, measured, environment):
    """Ctrl-C while hpcprof is at work, here one that takes very long."""
    tools, begun = scratch / "tools", scratch / "begun"
    tools.mkdir()
    shutil.copy(TOOL, tools / "hpcviewer")
    os.mkfifo(begun)
    (tools / "hpcprof").write_text(f"#!/bin/sh\nmkdir -p \"$2\"; echo $$ >'{begun}'; exec sleep 1000\n", encoding="utf-8")
    (tools / "hpcprof").chmod(0o755)
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([tools / "hpcviewer", "--no-browser", measured], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        started.append(process)
        worker = begun.read_text(encoding="utf-8").strip()
        process.send_signal(number)
        out = process.communicate()[0]
        expect(process.returncode == 128 + number and not out, f"signal {number} while hpcprof works: {process.returncode} {out}")
        expect(not pathlib.Path("/proc", worker).exists(), "hpcprof works on")


def check_measurement(scratch):
    """Of a measurement hpcprof makes a database, which is gone afterwards."""
    measured = scratch / "app-measurements"
    measured.mkdir()
    write_measurement(measured)
    temporary = scratch / "tmp2"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    viewer = Viewer("--no-browser", measured, env=environment)
    status, _, body = viewer.ask("POST", "/ask", '{"report": "vars"}', Authorization=bearer(viewer.open()))
    expect(status == 200 and b"program" in body, f"a measurement: {status} {body[:100]}")
    expect(list(temporary.iterdir()), "no database was made there")
    status, _, err = viewer.end()
    expect(status == 0 and "hpcprof" in err, f"a measurement: {status} {err}")
    expect(not list(temporary.iterdir()), f"{list(temporary.iterdir())} is left of a measurement")
    done = subprocess.run([TOOL, "-o", "-", measured], capture_output=True, check=False, env=environment)
    expect(done.returncode == 0 and done.stdout.startswith(b"<!DOCTYPE html>"), f"a page of a measurement: {done.stderr}")
    expect(not list(temporary.iterdir()), f"{list(temporary.iterdir())} is left of a page")
    check_interrupted(scratch, measured, environment)
    expect(not list(temporary.iterdir()), f"{list(temporary.iterdir())} is left of a measurement that nobody waited for")
    for path in measured.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    done = subprocess.run([TOOL, measured], capture_output=True, text=True, check=False, env=environment)
    expect(done.returncode == 1 and "http:" not in done.stdout and not list(temporary.iterdir()), f"a broken measurement: {done}")


def check_time_line(scratch, database):
    """That of a database lies in it, as hpcprof put it there, or in the measurement beside it. One that cannot be read is said."""
    def streams(path):
        viewer = Viewer("--no-browser", path)
        status, _, body = viewer.ask("POST", "/ask", '{"report": "streams"}', Authorization=bearer(viewer.open()))
        expect(status == 200, f"streams of {path}: {status} {body}")
        viewer.end()
        answer = packed.Answer(body)
        return answer.n, str(answer.header)

    def write(directory, number):
        name = f"app{schedfile.NAME}".replace("-0.sched", f"-{number}.sched")
        schedfile.write(directory / name, 2, 2, [(1000, 0, 4711, 4712, 1), (3000, 0, 4712, 4711, 1)], [(500, 4711, "app")])

    path = scratch / "timed.db"
    shutil.copytree(database, path)
    n_rows, said = streams(path)
    expect(n_rows == 0 and "no time line was recorded" in said, f"without a recording: {n_rows} rows, {said}")
    write(path, 0)
    n_rows, said = streams(path)
    expect(n_rows == 4, f"a database with scheduler records: {n_rows} rows, {said}")
    write(path, 1)
    n_rows, said = streams(path)
    expect(n_rows == 0 and "scheduler records of 2 launches" in said, f"a database with those of two launches: {n_rows} rows, {said}")
    beside = scratch / "timed-database"
    shutil.copytree(database, beside)
    (scratch / "timed-measurements").mkdir()
    write(scratch / "timed-measurements", 0)
    n_rows, said = streams(beside)
    expect(n_rows == 4, f"a database beside a measurement: {n_rows} rows, {said}")
    check_cut(scratch)


def check_cut(scratch):
    """A recording that is cut short while it is shown: an answer, and the server lives. A read behind its end is said once."""
    out, path = tracedat.Recording(1), scratch / "cut.dat"
    for i in range(20000):
        out.switch(0, 1000 * (i + 1), i % 2, (i + 1) % 2)
    path.write_bytes(out.version_6())
    session, again = scratch / "cut.json", scratch / "again.json"
    viewer = Viewer("--no-browser", "--save-session", session, "--couplebreak", "--offset", "0.5", path)
    known = {"Authorization": bearer(viewer.open())}
    status, _, body = viewer.ask("POST", "/ask", '{"report": "streams"}', **known)
    stream = packed.Answer(body).header["head"]["streams"][0]
    expect(status == 200 and stream["couplebreak"] and stream["offset_ns"] == 500_000_000, f"options of a recording: {stream}")
    status, headers, body = viewer.ask("POST", "/ask", '{"report": "vars"}', **known)
    expect(status == 200 and body.startswith(str(path).encode()) and dict(headers).get("Content-Type", "").startswith("text/plain"), f"variables of a recording: {status} {body[:200]}")
    os.truncate(path, 8192)
    status, _, body = viewer.ask("POST", "/ask", '{"report": "events"}', **known)
    expect(status == 400 and b"cut short" in body, f"events of a recording that was cut short: {status} {body[:200]}")
    status, _, err = viewer.end()
    expect(status == 0 and not err, f"hpcviewer ends with {status}: {err}")
    path.write_bytes(out.version_6())
    viewer = Viewer("--no-browser", "--session", session, "--save-session", again)
    status, _, err = viewer.end(signal.SIGBUS)
    expect(status == 1 and err == "hpcviewer: a file that is shown was cut short, or cannot be read any more\n", f"a read behind the end: {status}, {err}")
    expect(again.read_bytes() == session.read_bytes(), "a session that was saved again differs")


def check_file(scratch, database):
    page = scratch / "page.html"
    page.write_text("old", encoding="utf-8")
    m.run("hpcviewer", "-o", page, database)
    text = page.read_text(encoding="utf-8")
    expect(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"), f"a page in a file: {text[:100]}")
    expect(m.run("hpcviewer", "-o", "-", database).stdout == text, "standard output has another page")
    page.write_text("old", encoding="utf-8")
    m.run("hpcviewer", "-o", page, scratch / "broken", status=1)
    expect(page.read_text(encoding="utf-8") == "old", "a page was replaced by nothing")
    expect(not [path for path in scratch.iterdir() if path.name.startswith((".page", "page.html."))], "something is left beside a page")
    m.run("hpcviewer", "-o", scratch / "no" / "page.html", database, status=1)
    before = (database / "locus.db").read_bytes()
    m.run("hpcviewer", "-o", database / "locus.db", database, status=1)
    m.run("hpcviewer", "-o", database, database, status=1)
    expect((database / "locus.db").read_bytes() == before, "a page replaced a database")
    m.run("hpcviewer", "-o", "/dev/full", database, status=1)
    other = scratch / "one.json"
    other.write_text('[{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1}}]', encoding="utf-8")
    m.run("hpcviewer", "-o", page, other)
    text = page.read_text(encoding="utf-8")
    expect("has no data accesses" in text, "the page of another tool's file does not say why it has no variables")
    m.run("hpcquery", "export", "html", "-o", scratch / "same.html", other)
    expect((scratch / "same.html").read_text(encoding="utf-8") == text, "hpcquery export html writes another page")
    viewer = Viewer("--no-browser", other)
    expect(b"main" in viewer.ask("POST", "/ask", '{"report": "functions"}', Authorization=bearer(viewer.open()))[2], "another tool's functions are not served")
    viewer.end()
    m.run("hpcviewer", "-o", "/dev/null", database)


# --- in a browser ---------------------------------------------------------------------------------------------------------

HOSTILE = """<!DOCTYPE html>
<title>hostile</title>
<iframe id=frame src="http://127.0.0.1:PORT/"></iframe>
<form id=form method=post enctype="text/plain" action="http://127.0.0.1:PORT/ask" target=target><input name='{"report": "vars", "x' value='"}'></form>
<iframe name=target></iframe>
<script>
const base = "http://127.0.0.1:PORT", said = [];
async function tried(what, how) {
    try {
        said.push(what + ": " + await how());
    } catch (error) {
        said.push(what + ": no");
    }
}
const loaded = (element) => new Promise((done) => {
    element.onload = () => done("loaded");
    element.onerror = () => done("no");
    document.head.append(element);
});
const made = (kind, values) => Object.assign(document.createElement(kind), values);
async function all() {
    for (const mode of ["cors", "no-cors"])
        for (const [path, method] of [["/", "GET"], ["/ask", "POST"], ["/token", "POST"], ["/open", "POST"], ["/alive", "GET"]])
            await tried(mode + " " + path, async () => (await (await fetch(base + path, {method, mode, credentials: "include",
                body: method === "POST" ? '{"report": "vars"}' : undefined})).text()).length || "no");
    await tried("with a secret", async () => (await fetch(base + "/ask", {method: "POST", body: "{}", headers: {Authorization: "Bearer SECRET"}})).text());
    await tried("image", () => loaded(made("img", {src: base + "/"})));
    await tried("script", () => loaded(made("script", {src: base + "/ask"})));
    await tried("style", () => loaded(made("link", {rel: "stylesheet", href: base + "/"})));
    await tried("socket", () => new Promise((done) => {
        const socket = new WebSocket("ws://127.0.0.1:PORT/alive");
        socket.onopen = () => done("open");
        socket.onerror = () => done("no");
    }));
    await tried("events", () => new Promise((done) => {
        const source = new EventSource(base + "/alive");
        source.onmessage = source.onopen = () => done("open");
        source.onerror = () => {
            source.close();
            done("no");
        };
    }));
    document.getElementById("form").submit();
    await new Promise((done) => document.getElementsByName("target")[0].onload = done);
    for (const frame of document.querySelectorAll("iframe"))
        await tried("frame", () => frame.contentWindow.document.body.textContent.length || "no");
    return said.join("\\n");
}
</script>
"""


def check_hostile_page(viewer, secret, scratch):
    """Pages of others in the same browser: from a file, and from another server of this machine. They even know the secret."""
    try:
        page = browser.Browser(scratch / "browser")
    except browser.Failure as failure:
        print(f"SKIP (part): {failure}")
        return
    text = HOSTILE.replace("PORT", str(viewer.port)).replace("SECRET", secret)
    (scratch / "hostile.html").write_text(text, encoding="utf-8")
    server = subprocess.Popen(["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(scratch), "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    port = re.search(r"port (\d+)", server.stdout.readline())[1]
    try:
        for address in (f"file://{scratch}/hostile.html", f"http://127.0.0.1:{port}/hostile.html", f"http://localhost:{port}/hostile.html"):
            page.open(address)
            said = page.value("all()")
            got = [line for line in said.split("\n") if not line.endswith(": no")]
            expect(said.count("\n") >= 16 and not got, f"a page at {address} got {got} of {said}")
    finally:
        page.close()
        server.terminate()
        server.wait()


def check_served_page(database, scratch):
    """The page itself: it takes its address, stays when it is loaded anew, and hpcviewer ends with it; its address opens no other."""
    try:
        page = browser.Browser(scratch / "own-browser")
    except browser.Failure as failure:
        print(f"SKIP (part): {failure}")
        return
    def shows(text):
        page.value(f"new Promise((done) => {{ const look = () => document.body.innerText.includes({json.dumps(text)}) ? done(true) : setTimeout(look, 50);"
                   " look(); })")

    viewer = Viewer("--no-browser", database)
    try:
        for way in ("opened", "loaded anew"):
            if way == "opened":
                page.open(viewer.address)
            else:
                page.open(f"http://127.0.0.1:{viewer.port}/")
            shows("state->p")
            expect("token" not in page.value("location.href") and not page.troubles, f"{way}: {page.value('location.href')} {page.troubles}")
            expect(all(load.startswith((f"http://127.0.0.1:{viewer.port}/", "data:", "blob:")) for load in page.loads), f"{way}: {page.loads}")
        page.open("about:blank")
        page.open(viewer.address)
        shows("used already")
    finally:
        page.close()
    status, out, err = viewer.finish()
    expect(status == 0 and "The last page was closed." in out and not err, f"behind the page: {status} {out} {err}")


def check_end_is_said(database, scratch):
    """A page whose server has ended says so."""
    try:
        page = browser.Browser(scratch / "left-browser")
    except browser.Failure as failure:
        print(f"SKIP (part): {failure}")
        return
    viewer = Viewer("--no-browser", database)
    try:
        page.open(viewer.address)
        page.value("new Promise((done) => { const look = () => document.body.dataset.ready ? done(true) : setTimeout(look, 50); look(); })")
        expect(not page.value("document.querySelectorAll('.over').length"), "a page says that it is over, and is not")
        viewer.end()
        page.value("new Promise((done) => { const look = () => document.querySelector('.over') ? done(true) : setTimeout(look, 50); look(); })")
        expect("start hpcviewer again" in page.value("document.querySelector('.over').innerText"), "the end is not said in words")
    finally:
        page.close()


def show_speed(viewer, secret):
    connection, took = http.client.HTTPConnection("127.0.0.1", viewer.port), []
    for _ in range(50):
        start = time.perf_counter()
        connection.request("POST", "/ask", body='{"report": "vars"}', headers={"Authorization": bearer(secret)})
        n = len(connection.getresponse().read())
        took.append(1000 * (time.perf_counter() - start))
    connection.close()
    print(f"vars, {n} bytes: {statistics.median(took):.2f} ms a question")


def check_progress(scratch):
    """On a terminal a line says how far a large recording has been read. Ctrl-C then ends it at once, and leaves nothing; else the
    line goes before the address comes. Elsewhere nothing is said."""
    path = scratch / "large.dat"
    tracedat.write_tiled(path, 4_000_000)
    for is_ended in (True, False):
        viewer = terminal.Terminal([TOOL, "--no-browser", str(path)])
        deadline, said = time.monotonic() + SECONDS, re.compile(rb"large\.dat: reading, \d+ % \(Ctrl-C ends it\)")
        while not said.search(viewer.bytes) and time.monotonic() < deadline and viewer.read(SECONDS):
            pass
        expect(said.search(viewer.bytes), f"no progress: {viewer.bytes[:300]}")
        if is_ended:
            os.write(viewer.master, b"\x03")
            expect(viewer.process.wait(SECONDS) == 130, f"Ctrl-C ends it with {viewer.process.returncode}")
            left = {each.name for each in scratch.glob("large.dat*")}  # what it makes has a name when it is whole
            expect(left <= {"large.dat", "large.dat.locus-time"}, f"left: {left}")
            (scratch / "large.dat.locus-time").unlink(missing_ok=True)
        else:
            while b"http:" not in viewer.bytes and time.monotonic() < deadline and viewer.read(SECONDS):
                pass
            while any("Ctrl-C ends it)" in line and "%" in line for line in viewer.screen.lines()) and time.monotonic() < deadline and viewer.read(SECONDS):
                pass
            line = next((line for line in viewer.screen.lines() if "http:" in line), "")
            expect(line.strip().startswith("http:") and not any("Ctrl-C ends it)" in line and "%" in line for line in viewer.screen.lines()),
                   f"the line stays: {viewer.screen.lines()}")
            viewer.process.terminate()
            viewer.process.wait(SECONDS)
    quiet = Viewer("--no-browser", path)
    expect(not quiet.end()[2], "progress is told to no terminal")


def check_opening(scratch):
    """While a large recording is read pages are served: they are told how far it is and nothing else, and one can end it."""
    path = scratch / "larger.dat"
    kept = path.with_name(path.name + ".locus-time")

    def told(viewer, secret, **more):
        return json.loads(viewer.ask("POST", "/ask", json.dumps({"report": "opening", **more}, separators=(",", ":")), Authorization=bearer(secret))[2])

    def begin(n_events):
        if not path.exists() or n_events:
            tracedat.write_tiled(path, n_events)
        kept.unlink(missing_ok=True)
        viewer = Viewer("--no-browser", path)
        secret = viewer.open()
        return viewer, secret, told(viewer, secret)

    for n_events in (6_000_000, 24_000_000, 0):  # until reading takes long here
        if not n_events:
            expect(False, "no recording takes long to be read")
            return
        viewer, secret, now = begin(n_events)
        if not now["open"]:
            break
        viewer.end()
    status, headers, said = viewer.ask("POST", "/ask", '{"report":"streams"}', Authorization=bearer(secret))
    expect(b"still being opened" in said or told(viewer, secret)["open"], f"a question meanwhile: {status} {said[:200]}")
    shares = []
    while not now["open"]:
        expect(now["path"] == path.name and now["doing"] in ("reading", "writing what was read") and 0 <= now["share"] <= 1, f"told: {now}")
        shares += [(now["doing"], now["share"])]
        now = told(viewer, secret)
    expect(shares == sorted(shares), f"it goes back: {shares}")
    status, headers, said = viewer.ask("POST", "/ask", '{"report":"streams"}', Authorization=bearer(secret))
    expect(status == 200 and headers["Content-Type"] == "application/octet-stream", f"when it is open: {status} {said[:200]}")
    viewer.end()
    expect(len([line for line in viewer.lines if line.startswith("http:")]) == 1, f"it prints {viewer.lines}")
    for n_events in (0, 24_000_000, 48_000_000):  # until it is not read before Cancel comes
        viewer, secret, now = begin(n_events)
        now = told(viewer, secret, end=True)
        if now["ended"]:
            break
        expect(now["open"], f"neither read nor ended: {now}")
        viewer.end()
    if not now["ended"]:
        expect(False, "Cancel always comes too late")
        return
    status, _, said = viewer.finish()
    left = [each for each in scratch.glob("larger.dat.*") if each != kept]  # that has its name once it is whole: it was nearly ready
    expect(not now["open"] and status == 130 and "larger.dat: a page has ended the reading" in said and not left,
           f"a page ends it: {now}, {status} {said}, left {left}")
    if kept.exists():
        viewer = Viewer("--no-browser", path)
        secret = viewer.open()
        expect(viewer.ask("POST", "/ask", '{"report":"streams"}', Authorization=bearer(secret))[0] == 200, "what was left is not whole")
        viewer.end()


def main():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="locus-hpcviewer-"))
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    try:
        database = scratch / "minicg-database"
        m.write_database(database, (bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
        (database / "text.json").unlink()
        none = m.run("hpcviewer", "--no-browser", scratch / "missing", status=1).stderr
        if "libmicrohttpd" in none:
            check_file(scratch, database)
            print(f"SKIP: {none}")
            sys.exit(77 if not failures else 1)
        viewer = Viewer("--no-browser", database)
        secret = viewer.open()
        check_page(viewer)
        check_answers(viewer, secret, database)
        check_refusals(viewer, secret)
        check_raw(viewer, secret)
        check_company(viewer, secret)
        check_secrecy(viewer, secret, scratch)
        check_tokens(viewer, secret)
        check_hostile_page(viewer, secret, scratch)
        check_served_page(database, scratch)
        check_end_is_said(database, scratch)
        show_speed(viewer, secret)
        status, _, err = viewer.end()
        expect(status == 0 and not err, f"the server ends with {status}: {err}")
        check_life(database)
        check_progress(scratch)
        check_opening(scratch)
        check_words(database)
        check_refused(scratch, database)
        check_enter(database)
        check_browser_start(scratch, database)
        check_measurement(scratch)
        check_time_line(scratch, database)
        check_file(scratch, database)
    finally:
        for process in started:
            process.kill()
        shutil.rmtree(scratch)
    print("\n".join(f"FAIL: {each}" for each in failures) or "hpcviewer: all holds")
    sys.exit(bool(failures))


main()
