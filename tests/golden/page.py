#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page for browsers as a file: small but for its data, refers to nothing outside, its policy lets only its own scripts run, and
no name can end the data or be a tag. What it holds is what the same requests are answered otherwise, and its first screen has the
first rows and the advice before any script runs. `hpcrun --report=FILE.html` writes one, and --top, --min and --order choose what
is in it. Other tests drive it in a browser (viewer.py and what uses it)."""
import base64
import gzip
import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import packed  # noqa: E402
import toolchain  # noqa: E402

DATABASES = {"minicg": bundle.golden("report") / "minicg.json", "hardware": bundle.golden("hardware") / "locus.json"}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;'\"</td>"
NAMES = [HOSTILE, "</script><!--", "a \"b\" 'c' \\ \\\" \\\\", "two\nlines\tand a tab", "abc\u202ecba \u05d0\u05d1\u05d2",
         "bytes \udcff\udcfe", "x" * 10000, "} AND {MATCH (\"*\")} OR p.\"name\"", "wide " + "word " * 100, "@data@ @js@"]
FIXED_BYTES_MAX = 120 << 10
BYTES_MAX = {"minicg": 130 << 10}
DATA_BYTES_MAX = {"minicg": 38 << 10, "large tree": 120 << 10, "large chain": 60 << 10}
VOID = {"meta", "br", "link", "input", "hr", "rect"}
FIRST_TAGS = {"h1", "div", "p", "span", "ol", "li", "bdi", "strong", "svg", "rect", "table", "thead", "tbody", "tr", "th", "td"}
CONTEXTS = os.environ.get("LOCUS_PAGE_CONTEXTS", "4000")
METRICS = [("EADDR (usec)", m.INT, 1000)]
VARS = '{"fields":true,"report":"vars"}'
LINES = '{"report":"lines"}'
# What every page records, be it as an error.
RECORDED = ['{"report":"%s"}' % report for report in ("session", "advice", "functions", "lines", "numa", "first-touch", "patterns", "sharing",
                                                      "trust")]
RECORDED += [VARS, '{"by":"thread","report":"vars"}', '{"by":"thread","report":"functions"}', '{"min":0.01,"report":"nodes"}']
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments, status=0):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, check=False, text=True,
                            encoding="utf-8", errors="replace", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "4000"})
    expect(result.returncode == status, f"{tool} {arguments}: status {result.returncode}: {result.stderr[:1000]}")
    return result.stdout


# --- the file ------------------------------------------------------------------------------------------------------------


def bytes_of(text):
    """The bytes of a text in the page's base 85, which is that of Ascii85 with other digits."""
    digits = "".join(map(chr, range(40, 125))).replace("<", "}").replace("\\", "~")
    return base64.a85decode(text.translate({ord(digit): 33 + i for i, digit in enumerate(digits)}), ignorechars=b"\n")


class Page(html.parser.HTMLParser):
    """Elements with their attributes, whether the tags nest, what stands in scripts and the style, the text and the tags of the first
    screen, and the recorded answers by their requests: {request: (form, bytes)}."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.is_nested, self.held, self.answers = [], [], True, {}, {}
        self.first, self.first_tags, self.n_sections = "", set(), 0
        self.feed(text)
        self.close()
        self.take_parts()

    def is_first(self):
        return ("div", "first") in self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if self.is_first():
            self.first_tags.add(tag)
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append((tag, attributes.get("id", "")))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        self.is_nested = self.is_nested and bool(self.open) and self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.is_first():
            self.first += data
        if self.open[-1:] and self.open[-1][0] == "style":
            self.held["style"] = data
        if self.open[-1:] and self.open[-1][0] == "script":
            about = self.elements[-1][1]
            if about.get("class") == "answer":
                self.n_sections += 1
                self.take(about, data)
            else:
                self.held[about.get("id", "script")] = data

    def take(self, about, data):
        form, content = about["data-form"], data.encode()
        if form not in ("error", "part"):
            content = bytes_of(data)
        self.answers[about["data-ask"]] = (form, zlib.decompress(content) if form == "deflate" else content)

    def take_parts(self):
        """Small answers lie one behind the other in a section of their own."""
        small = bytes_of(self.held["small"])
        small = zlib.decompress(small) if ("script", {"type": "text/plain", "id": "small", "data-form": "deflate"}) in self.elements else small
        for asked, (form, content) in self.answers.items():
            if form == "part":
                at, n = map(int, content.split())
                self.answers[asked] = (form, small[at:at + n])


def data_bytes(text):
    """How many bytes the recorded answers take."""
    return len("".join(re.findall(r'<script type="text/plain" (?:class="answer"|id="small").*?</script>\n', text)).encode())


def check_file(name, text, page):
    code = gzip.decompress(bytes_of(page.held["code"])).decode()
    size, fixed = data_bytes(text), len(text.encode()) - data_bytes(text) - len(page.first.encode())
    print(f"{name}: {len(text.encode())} bytes, of which the recorded answers have {size}, the application {len(page.held['code'])} ({len(code)} unpacked)")
    expect(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"), f"{name}: {text[:200]}")
    expect(fixed <= FIXED_BYTES_MAX + 60000 * (name in ("hostile", "made")), f"{name}: {fixed} bytes without data")
    expect(size <= DATA_BYTES_MAX.get(name, size), f"{name}: {size} bytes of data, at most {DATA_BYTES_MAX.get(name)}")
    expect(len(text.encode()) <= BYTES_MAX.get(name, len(text.encode())), f"{name}: {len(text.encode())} bytes, at most {BYTES_MAX.get(name)}")
    expect(page.is_nested and not page.open, f"{name}: the tags do not nest: {page.open}")
    tags = [tag for tag, _ in page.elements]
    expect(tags.count("script") == page.n_sections + 3 and tags.count("style") == 1, f"{name}: {tags.count('script')} scripts, {page.n_sections} sections")
    expect(not set(tags) & {"img", "iframe", "object", "form", "base"}, f"{name}: {set(tags)}")
    expect(page.first_tags <= FIRST_TAGS, f"{name}: {page.first_tags - FIRST_TAGS} on the first screen")
    outside = [(key, value) for _, attributes in page.elements for key, value in attributes.items()
               if key in ("src", "href", "action", "style") or key[:2] == "on"]
    expect(outside == [("href", "data:,")], f"{name}: attributes {outside}")
    for part in (code, page.held["script"], page.held["style"]):
        for found in re.findall(r"https?:[^\"']*|url\((?!#)[^)]*|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", part):
            expect(found.startswith("http://www.w3.org/"), f"{name}: {found} names something outside, or makes elements of texts")
    expect("</script" not in code and "<!--" not in code, f"{name}: the script could end itself")
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv") == "Content-Security-Policy")
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (page.held["style"], page.held["script"], code)]
    expect(f"style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}' 'sha256-{digests[2]}';" in policy, f"{name}: the policy is {policy}, not {digests}")
    expect(policy.startswith("default-src 'none';") and "unsafe" not in policy and "connect-src" not in policy, f"{name}: the policy is {policy}")


def shown(text):
    """A name as the first screen has it: what cannot be seen as numbers."""
    hidden = "[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
    return re.sub(hidden, lambda found: f"\\u{ord(found[0]):04x}", packed.clean(text) or "")


def check_answers(name, page, database):
    """Everything that is recorded is what a session answers, byte for byte."""
    lacking = [request for request in RECORDED if request not in page.answers]
    expect(not lacking, f"{name}: {lacking} are not recorded")
    for request, (form, content) in page.answers.items():
        result = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", database, request], capture_output=True, check=False)
        wanted = result.stdout if form != "error" else result.stderr.decode(errors="replace").removeprefix("ask-packed: ").rstrip("\n").replace("<", "\u2039").encode()
        if form == "error" and b"hpcviewer shows it" in content:
            continue
        expect(content == wanted and (result.returncode != 0) == (form == "error"), f"{name}: {request} is recorded as {content[:300]}, not {wanted[:300]}")
    if page.answers[LINES][0] != "error":
        known = {row["item"] for row in json.loads(run("hpcquery", "items", "--json", "line", database))["items"]}
        items = {item for item in packed.Answer(page.answers[LINES][1]).columns["item"] if item}
        expect(items <= known, f"{name}: of no line are {sorted(items - known)[:3]}")
    expect(page.answers[VARS][0] != "error" or name == "none", f"{name}: no variables")


def check_first(name, page, database):
    """The first screen has the lines above the report, the advice, and the first rows."""
    rows = json.loads(run("hpcquery", "vars", "--json", "--fields", database))["variables"]
    words = " ".join(page.first.split())
    for row in rows[:100]:
        expect(" ".join(shown(row["variable"]).split()) in words, f"{name}: the first screen lacks {shown(row['variable'])[:200]}")
        expect(row["share"] is None or f"{row['share']:.1f} %" in words, f"{name}: the first screen lacks the share of {row['variable']}")
    for advice in json.loads(run("hpcquery", "advice", "--json", database))["advice"][:8]:
        expect(" ".join(shown(advice["advice"]).split()) in words, f"{name}: the first screen lacks the advice {advice['advice']}")
    for line in packed.Answer(page.answers['{"report":"session"}'][1]).header["head"]["lines"]:
        expect(" ".join(shown(line["words"]).split()) in words, f"{name}: the first screen lacks {line}")


def check_choice(name, database):
    """What --top, --min and --order say holds for the variables of the page."""
    for options in (("--top", "3"), ("--min", "5"), ("--top", "2", "--min", "5"), ("--top", "3", "--order", "time")):
        page = Page(run("hpcquery", "vars", "--html", *options, database))
        answer = packed.Answer(page.answers[VARS][1])
        value = json.loads(run("hpcquery", "vars", "--json", "--fields", *options, database))
        for sentence in packed.differences(answer, value):
            expect(False, f"{name} {options}: {sentence}")


# --- databases -----------------------------------------------------------------------------------------------------------


def make_hostile(data):
    """Every text that a program can choose."""
    for key in ("program", "command", "plan"):
        data[key] = "/tmp/" + HOSTILE
    data["strings"] = [text + HOSTILE if i and not text.startswith(("<", "/")) else text for i, text in enumerate(data["strings"])]
    data["notes"].append("A note on " + HOSTILE)
    for process in data["processes"]:
        process["exe"] = HOSTILE


PROGRAM = """static volatile double sum;
static double table[64]; /* </script> "quoted" */

__attribute__((noinline)) double inner(int n)
{
\tfor (int i = 0; i < n; i++)
\t\tsum += table[i % 64];
\treturn sum;
}

__attribute__((noinline)) double outer(int n)
{
\tdouble a = inner(n);
\tdouble b = inner(n + 1);
\treturn a + b;
}

int main(void)
{
\treturn outer(3) > inner(5);
}
"""


def compile_program(scratch):
    """The program, and {function: its offset}."""
    source = scratch / "src dir" / "program.c"
    source.parent.mkdir()
    source.write_text(PROGRAM, encoding="utf-8")
    program = scratch / "program"
    subprocess.run([*toolchain.COMPILER, "-g", "-O1", "-o", str(program), str(source)], check=True)
    symbols = subprocess.run([toolchain.utility("nm"), str(program)], capture_output=True, check=True, text=True).stdout
    return source, program, {words[2]: int(words[0], 16) for words in map(str.split, symbols.splitlines()) if len(words) == 3}


def make_database(scratch):
    """A database of a measurement made here: functions with lines, and variables with every odd name."""
    source, program, at = compile_program(scratch)
    path, module = scratch / "made", str(program)
    for thread in range(3):
        profile = m.Profile("program", METRICS, thread=thread)
        profile.topology = "topology.xml"
        profile.events = [{"metric": "EADDR (usec)", "name": "EADDR", "scale": 1000.0, "taken": 400, "overflows": 0,
                           "fates": {"named": 390, "dropped-stopped": 10}}]
        for i, name in enumerate(NAMES):
            variable = m.by_address("DATACENTRIC_Static", module, 0x404040 + 64 * i, "static", name, 64, [[thread, 0, 3 + i]])
            for step in (4, 12, 20):
                code = [(module, at["main"] + 6), (module, at["outer"] + 6), (module, at["inner"] + step)]
                profile.sample(code if i % 3 else code[:1] + code[2:], {0: 3 + i}, variable)
        for step in (8, 16):
            block = m.heap([(module, at["main"] + 9), (module, at["outer"] + step)], size=1 << 16, cpus=[[thread, 0, 5]])
            profile.sample([(module, at["main"] + 6), (module, at["inner"] + 8)], {0: 20 * (thread + 1)}, block)
        profile.write(path)
    (path / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
    database = scratch / "made-database"
    run("hpcprof", "-o", database, path)
    return database, source


def make_large(scratch, name, *options):
    subprocess.run([sys.executable, str(SOURCE / "tests/bench/many-contexts.py"), CONTEXTS, str(scratch / name), *options], check=True)
    return scratch / name


# --- all -----------------------------------------------------------------------------------------------------------------


def check_run(scratch):
    if not (BUILD / ".libs/libhpcrun.so").exists():
        print("SKIP (part): libhpcrun.so has not been built")
        return
    target = scratch / "<script>x"
    target.mkdir()
    shutil.copy(shutil.which("sleep"), target / "sleep")
    file = scratch / "report.html"
    subprocess.run([str(BUILD / "hpcrun"), "-o", str(scratch / "m"), f"--report={file}", str(target / "sleep"), "0"],
                   capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                   env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")})
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text:
        print("SKIP (part): nothing can be measured here")
        return
    page = Page(text)
    check_file("--report=FILE.html", text, page)
    expect("<script>x" in page.first, "the path of the program is not on the first screen")


def check_made(page, source):
    """Every odd name is there, and the source is as it is."""
    variables = packed.Answer(page.answers[VARS][1]).columns["variable"]
    wanted = {packed.clean({"bytes": name.encode(errors="surrogateescape").hex()}) for name in NAMES}
    expect(wanted <= set(variables), f"names that are not there: {[name[:40] for name in wanted - set(variables)]}")
    asked = json.dumps({"report": "source", "subject": str(source)}, separators=(",", ":"))
    expect(asked in page.answers, f"{asked} is not recorded: {[request for request in page.answers if 'source' in request]}")
    if asked in page.answers:
        held = packed.Answer(page.answers[asked][1]).columns
        expect(held == {"first": [1], "text": [PROGRAM]}, f"the source in the page is {held}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        cases = {}
        for case, path in [*DATABASES.items(), ("hostile", DATABASES["minicg"])]:
            data = json.loads(path.read_text(encoding="utf-8"))
            if case == "hostile":
                make_hostile(data)
            m.write_database(scratch / case, data)
            cases[case] = scratch / case
        cases["large tree"] = make_large(scratch, "large tree")
        cases["large chain"] = make_large(scratch, "large chain", "chain")
        cases["made"], source = make_database(scratch)
        pages = {}
        for case, database in cases.items():
            text = run("hpcquery", "vars", "--html", database)
            expect(text == run("hpcquery", "export", "html", database), f"{case}: vars --html and export html differ")
            pages[case] = Page(text)
            check_file(case, text, pages[case])
            check_answers(case, pages[case], database)
            check_first(case, pages[case], database)
            if case in DATABASES:
                check_choice(case, database)
        check_made(pages["made"], source)
        check_run(scratch)
        refused = subprocess.run([str(BUILD / "hpcquery"), "tree", "--html", str(cases["minicg"])], capture_output=True,
                                 check=False, text=True)
        expect(refused.returncode == 2 and "--html" in refused.stderr, f"tree --html: {refused.returncode} {refused.stderr}")
        run("hpcquery", "export", "html", "--csv", cases["minicg"], status=2)
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
