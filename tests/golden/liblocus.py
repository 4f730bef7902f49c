# SPDX-License-Identifier: BSD-3-Clause
"""liblocus from outside: it exports the functions of its headers and nothing else, has a name with a version, refers to nothing that
prints or ends the process, and programs in C and C++ that know the installed headers alone get the values that list-frame prints.
The examples of doc/examples.md, one for each header, are built with an installed copy, and say what hpcquery says."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
if os.environ.get("LOCUS_SANITIZER"):
    print("SKIP: a program without the sanitizer cannot load a library that has it")
    sys.exit(77)
LIBRARY = BUILD / ".libs" / "liblocus.so"
HEADERS = [BUILD / "include" / "locus" / f"{name}.h" for name in (
    "error", "buf", "frame", "ops", "query", "session", "table", "stream", "couplebreak", "machine", "topology")]
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement  # noqa: E402
import tracedat  # noqa: E402

# kill, raise and write are for the child processes that formats of events and topologies are read in.
NOT_USED = re.compile(r"exit|_Exit|_exit|quick_exit|abort|v?f?printf|v?dprintf|puts|fputs|putchar|fputc|fwrite|perror|"
                      r"__v?f?printf_chk|__v?dprintf_chk|std(out|err)|system|popen|err|errx|warn|warnx|__assert_fail")
CODE = "".join(f"#include <locus/{header.name}>\n" for header in HEADERS) + """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct frame *frame = NULL, *twice = NULL;
    struct frame *both[2];
    struct error err;
    const double *values = NULL;
    bool *found = NULL;
    double sum = 0;
    uint32_t n_found = 0;
    if (frame_open(argv[argc - 1], &frame, &err) != 0) {
        printf("%d: %s\\n", err.code, err.text);
        return 3;
    }
    both[0] = both[1] = frame;
    if (frame_run("add", both, 2, NULL, 0, &twice, &err) != 0 || query_run(twice, "[{\\"depth\\": 1}]", NULL, &found, &err) != 0 ||
        frame_values(twice, frame_find_column(twice, "time", NULL), NULL, &values, &err) != 0)
        return 4;
    for (uint32_t i = 0; i < frame_n_nodes(twice); i++) {
        sum += isnan(values[i]) ? 0 : values[i];
        n_found += found[i];
    }
    printf("%u nodes, %u found, %g\\n", (unsigned)frame_n_nodes(twice), n_found, sum);
    free(found);
    frame_close(twice);
    frame_close(frame);
    return 0;
}
"""
PROFILE = """[{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1.5}, "children": [
 {"frame": {"name": "f", "type": "function"}, "metrics": {"time": 2}}, {"frame": {"name": "g", "type": "function"}, "metrics": {"time": 4}}]}]"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def prototypes():
    """The functions of the headers."""
    names = set()
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="ascii"), flags=re.S)
        expect('#include "base/' not in text and '#include "frame/' not in text, f"{header} includes what is not installed")
        text = re.sub(r"\b(struct|enum) \w+ \{[^}]*\};", "", text)
        names |= set(re.findall(r"^[a-z][\w *]*?\b(\w+)\([^*]", text, re.M))
    return names


def check_symbols():
    listed = [line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY).stdout.splitlines()]
    defined = {name.removesuffix("@@LOCUS_0") for name in listed if name != "LOCUS_0"}
    known = prototypes()
    expect(len(known) > 50 and defined == known, f"exported alone: {sorted(defined - known)}, declared alone: {sorted(known - defined)}")
    used = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", LIBRARY).stdout.splitlines()}
    expect("malloc" in used, f"nm lists {sorted(used)}")
    bad = sorted(name for name in used if NOT_USED.fullmatch(name))
    expect(not bad, f"the library refers to {bad}")
    names = run("readelf", "-d", LIBRARY).stdout
    expect("soname: [liblocus.so.0]" in names, f"the name of the library: {names}")


def check_programs(scratch):
    (scratch / "good.json").write_text(PROFILE, encoding="ascii")
    (scratch / "bad.json").write_text(PROFILE[:100], encoding="ascii")
    environment = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARY.parent))
    for compiler, suffix, options in (("gcc", "c", ["-std=c99", "-pedantic-errors"]), ("g++", "cc", ["-std=c++11", "-pedantic-errors"])):
        if not shutil.which(compiler):
            print(f"SKIP: programs of {compiler}: there is none")
            continue
        program, code = scratch / suffix, scratch / f"program.{suffix}"
        code.write_text(CODE, encoding="ascii")
        built = run(compiler, "-Wall", "-Wextra", "-Werror", *options, "-I", BUILD / "include", "-o", program, code, "-L", LIBRARY.parent,
                    "-llocus", cwd=scratch)
        expect(built.returncode == 0, f"{compiler}: {built.stderr}")
        good = run(program, scratch / "good.json", env=environment)
        expect((good.returncode, good.stdout, good.stderr) == (0, "3 nodes, 2 found, 15\n", ""), f"{compiler}: {good}")
        bad = run(program, scratch / "bad.json", env=environment)
        expect(bad.returncode == 3 and bad.stdout.startswith("-2: ") and "bad.json: line " in bad.stdout and not bad.stderr,
               f"{compiler}: {bad}")


def install(scratch):
    """The library and its headers in a place of their own: (include, lib)."""
    made = run("make", "-s", "-C", BUILD, "install-libLTLIBRARIES", "install-nodist_locusincludeHEADERS", "install-nodist_pkgconfigDATA",
               f"DESTDIR={scratch}")
    expect(made.returncode == 0, f"make install: {made.stdout}{made.stderr}")
    told = dict(re.findall(r"^(\w+)=(.*)$", next(scratch.rglob("liblocus.pc")).read_text(encoding="ascii"), re.M))
    told = {key: value.replace("${prefix}", told["prefix"]).replace("${exec_prefix}", told["prefix"]) for key, value in told.items()}
    return [f"{scratch}{told[key]}" for key in ("includedir", "libdir")]


def said_of(database, name):
    """What the example says of a report: what hpcquery's JSON has."""
    answer = json.loads(measurement.run("hpcquery", name, "--json", "--top", "1", database).stdout)
    key, rows = list(answer.items())[-1]
    return [f"{key} of {answer['program']} by {answer['metric']}: {len(rows)} rows, ",
            *(f"{key}: {value:g}" if isinstance(value, (int, float)) else f"{key}: {value}" for key, value in rows[0].items()
              if value is not None and not isinstance(value, (list, dict, bool)))]


def record(path):
    """A recording of two CPUs: idle, a, idle; idle, b."""
    recording = tracedat.Recording(2)
    for cpu, time, before, after in ((0, 1000, 0, 7), (1, 2000, 0, 8), (0, 3000, 7, 0)):
        recording.switch(cpu, time, before, after)
    path.write_bytes(recording.version_6())


def check_examples(scratch):
    include, library = install(scratch / "installed")
    profile, database, recording, machine = scratch / "good.json", scratch / "database", scratch / "trace.dat", scratch / "machine.xml"
    record(recording)
    machine.write_text(measurement.TWO_NODES, encoding="ascii")
    measurement.write_database(database, (bundle.golden("hardware") / "locus.json").read_text(encoding="utf-8"))
    told = {"frame": [((profile,), "1.5 main (function)\n")],
            "operation": [((profile, "time > 1.8"), "f\ng\n"), ((profile, "tim > 2"), "character")],
            "query": [((profile, '[{"name": "f"}]'), "f\n")],
            "report": [((database, "types"), said_of(database, "types")), ((database, "vars"), said_of(database, "vars")),
                       ((database, "var"), "there is no report 'var'; did you mean 'vars'"), ((profile, "vars"), "good.json")]}
    switches = "trace.dat, 2 CPUs, 3 events\nsched/sched_switch: 3\n"
    told |= {"stream": [((recording, "sched/sched_switch:next_pid == 8"), [switches, "on CPU 1: "]),
                        ((recording, "sched/sched_switch:next_pid = = 8"), [switches, "next_pid"]), ((profile, ""), "good.json")],
             "couplebreak": [((recording,), ["came onto CPU 0 behind <idle>\n", "came onto CPU 1 behind <idle>\n", "<idle> came onto CPU 0"])],
             "topology": [((machine,), ["Machine: 4 CPUs\nNUMA Node 0: 2 CPUs\n", "NUMA Node 1: 2 CPUs\n"]), ((profile,), "good.json")]}
    page = (SOURCE / "doc" / "examples.md").read_text(encoding="ascii")
    found = dict(re.findall(r"^## (\w+)\.c .*?^```c\n(.*?)^```", page, re.M | re.S))
    expect(set(found) == set(told), f"doc/examples.md has {sorted(found)}, and {sorted(told)} are checked")
    included = set(re.findall(r"locus/(\w+)\.h", page))
    expect(included == {header.stem for header in HEADERS if header.stem != "error"}, f"doc/examples.md names {sorted(included)}")
    for name in sorted(set(found) & set(told)):
        built = run(os.environ.get("CC", "gcc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", include, "-o", scratch / name, "-x", "c", "-",
                    "-L", library, "-llocus", input=found[name])
        expect(built.returncode == 0, f"{name}.c: {built.stderr}")
        if built.returncode:
            continue
        for words, sentences in told[name]:
            ran = run(scratch / name, *words, env=dict(os.environ, LD_LIBRARY_PATH=library))
            missing = [sentence for sentence in ([sentences] if isinstance(sentences, str) else sentences) if sentence not in ran.stdout]
            expect(not missing and not ran.stderr, f"{name} {words}: {missing[:3]} is not in {ran}")


def check_page():
    """The example of the man page is a program, and the names in the page are exported."""
    page = (SOURCE / "doc" / "liblocus.3").read_text(encoding="ascii")
    known = prototypes()
    named = set(re.findall(r"\b((?:frame|query)_[a-z_]+)\(", page))
    expect(len(named) > 8 and named <= known, f"the page names {sorted(named - known)}")
    code = page[page.index("#include <locus/ops.h>\n#include <math.h>"):page.index(".RE\n.fi\n.SH SEE ALSO")].replace("\\e", "\\")
    built = run("gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", BUILD / "include", "-x", "c", "-", input=code)
    expect(built.returncode == 0, f"the example of the page: {built.stderr}")


def main():
    check_symbols()
    with tempfile.TemporaryDirectory() as name:
        check_programs(pathlib.Path(name))
        check_examples(pathlib.Path(name))
    check_page()
    for sentence in failures + measurement.failures:
        print("FAIL:", sentence)
    sys.exit(1 if failures or measurement.failures else 0)


main()
