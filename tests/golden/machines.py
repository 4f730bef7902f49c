# SPDX-License-Identifier: BSD-3-Clause
"""On each described machine hpcrun plans what is expected, to the last field of each perf_event_attr, and the doctor says what is
expected. Its events are encoded as others encode them: libpfm4 in this process, perf in a mount namespace over the described sysfs.
tests/golden/machines/ORACLES.tsv says which oracle each machine has."""
import ctypes
import difflib
import functools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

FOLDER = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "golden" / "machines"
HPCRUN = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcrun"
DEVICES = "/sys/bus/event_source/devices"
LAST = ("expected.txt",)
FIELDS = ("type", "config", "config1", "config2", "config3")
SITUATIONS = re.compile(r"situations|made-up-|arm-two-")
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "lib")]
import bundle  # noqa: E402
import record  # noqa: E402


class EncodeArgument(ctypes.Structure):
    """pfm_perf_encode_arg_t of perfmon/pfmlib_perf_event.h"""
    _fields_ = [("attr", ctypes.c_void_p), ("fstr", ctypes.c_void_p), ("size", ctypes.c_size_t), ("idx", ctypes.c_int),
                ("cpu", ctypes.c_int), ("flags", ctypes.c_int), ("pad", ctypes.c_int)]


def folder(machine):
    """Of a machine TEXT or TEXT/NAME."""
    text, _, name = machine.partition("/")
    return bundle.golden(f"machines/{text}") / name


@functools.cache
def libpfm():
    os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"
    try:
        library = ctypes.CDLL("libpfm.so.4")
    except OSError:
        return None
    return library if library.pfm_initialize() == 0 else None


def ask_libpfm(_machine, event):
    """Fields of the attr, None without the library, a sentence when it does not know the event."""
    library = libpfm()
    if library is None:
        return None
    attr = ctypes.create_string_buffer(struct.pack("<II", 0, 128), 136)
    argument = EncodeArgument(ctypes.addressof(attr), None, ctypes.sizeof(EncodeArgument), 0, 0, 0, 0)
    user_level, with_everything = 8, 2
    answer = library.pfm_get_os_event_encoding(event.encode(), user_level, with_everything, ctypes.byref(argument))
    if answer != 0:
        return f"libpfm4 does not know {event} ({answer})"
    kind, _, config = struct.unpack_from("<IIQ", attr, 0)
    config1, config2 = struct.unpack_from("<QQ", attr, 56)
    return {"type": kind, "config": config, "config1": config1, "config2": config2}


@functools.cache
def has_perf():
    """perf, and the right to put something else in the place of sysfs."""
    return bool(shutil.which("perf") and shutil.which("unshare")) and subprocess.run(
        ["unshare", "-m", "mount", "--bind", bundle.scratch.name, DEVICES], capture_output=True, check=False).returncode == 0


def perf_attr(machine, event, command):
    """The lines of the first perf_event_attr that perf passes to the kernel, as a dictionary; None without perf."""
    if not has_perf():
        return None
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec perf "$@" true', "sh",
         str(folder(machine) / DEVICES[1:]), DEVICES, *command, "-vv", "-e", event], capture_output=True, text=True,
        check=False)
    block = re.search(r"^perf_event_attr:\n((?:  .*\n)*)", done.stdout + done.stderr, re.M)
    if not block:
        return f"perf does not know {event}: {(done.stderr.strip().splitlines() or ['nothing said'])[-1]}"
    return {re.sub(r"^\{ bp_\w+, (\w+) \}$", r"\1", name): value
            for name, value in re.findall(r"^  (.*?) {2,}(\S+)$", block.group(1), re.M)}


def ask_perf(machine, event):
    """As ask_libpfm."""
    attr = perf_attr(machine, event, ["stat"])
    if not isinstance(attr, dict):
        return attr
    return {name: int(attr[name], 0) for name in FIELDS if name in attr}


def ask_document(_machine, event):
    return {name: int(value, 0) for name, value in (field.split("=") for field in event.split())}


def plan_of(machine, event):
    """Events of hpcrun's plan, each a dictionary of what it prints."""
    lines = record.hpcrun(HPCRUN, folder(machine), ["--print-plan", "-e", event])
    events = []
    for line in lines:
        if line.startswith("[event "):
            events.append({})
        elif events and "=" in line:
            name, value = line.split("=", 1)
            value, _, words = value.partition(" # ")
            events[-1][name] = (value, words)
    return events


def number(event, name):
    return int(event.get(name, ("0", ""))[0], 0)


def compare(row, ours, theirs):
    """A sentence when they differ."""
    for name in FIELDS:
        if number(ours, name) != theirs.get(name, 0):
            return (f"{row[0]} {row[1]} event {row[2]}: {name} is {number(ours, name):#x}, "
                    f"{row[3]} says {theirs.get(name, 0):#x} for {row[4]}")
    return None


def check_sample_fields():
    """A sentence when we leave out what perf asks of a memory event for its address, source and weight."""
    about_memory = {"ADDR", "DATA_SRC", "WEIGHT", "WEIGHT_STRUCT"}
    attr = perf_attr("ice-lake-sp", "cpu/mem-loads,ldlat=3/P", ["record", "-d", "-W", "-o", "/dev/null"])
    if not isinstance(attr, dict):
        return attr
    ours = set(plan_of("ice-lake-sp", "PEBS")[0]["sample_type"][1].split()) & about_memory
    theirs = set(attr["sample_type"].split("|")) & about_memory
    return None if ours == theirs else f"a load's sample holds {ours}, perf asks for {theirs}"


def check(row, missing):
    oracles = {"libpfm4": ask_libpfm, "perf": ask_perf, "document": ask_document}
    events = plan_of(row[0], row[1])
    if len(events) < int(row[2]):
        return f"{row[0]} {row[1]}: hpcrun plans {len(events)} events, not {row[2]}"
    theirs = oracles[row[3]](row[0], row[4])
    if theirs is None:
        missing.add((row[0], row[3]))
        return None
    return theirs if isinstance(theirs, str) else compare(row, events[int(row[2]) - 1], theirs)


def machines():
    """Names of described machines; NAME-SITUATION is a variant of NAME."""
    names = [path.stem for path in FOLDER.glob("*.txt") if not SITUATIONS.match(path.name)]
    return [name for name in names if not any(name.startswith(other + "-") for other in names)]


def check_form(text):
    """Sentences about how a text is written."""
    if bundle.pack(bundle.golden(f"machines/{text.stem}"), LAST) == text.read_text(encoding="utf-8"):
        return []
    return [f"{text.name} is not written as tests/golden/machines/record.sh writes it"]


def check_plan(machine):
    """Sentences about what is wrong with a machine."""
    for name in ("opens", "README", "expected.txt"):
        if not (machine / name).exists():
            return [f"{machine.name} has no {name}; tests/golden/machines/README.md says what a machine needs"]
    expected = (machine / "expected.txt").read_text(encoding="utf-8").splitlines()
    found = record.describe(HPCRUN, machine).splitlines()
    if not any(line.startswith("$ hpcrun --print-plan") for line in found):
        return [f"{machine.name} has no case"]
    return list(difflib.unified_diff(expected, found, f"{machine.name}/expected.txt", "found", lineterm=""))


def main():
    if not HPCRUN.exists():
        print("SKIP: hpcrun has not been built")
        return 77
    texts = sorted(FOLDER.glob("*.txt"))
    described = [machine for text in texts for machine in record.machines_of(bundle.golden(f"machines/{text.stem}"))]
    problems = [line for text in texts for line in check_form(text)]
    problems += [line for machine in described for line in check_plan(machine)]
    if len(described) < 8:
        problems.append(f"only {len(described)} machines are described")
    lines = (FOLDER / "ORACLES.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    missing = set()
    problems += [sentence for sentence in (check(row, missing) for row in rows) if sentence]
    problems += [sentence for sentence in [check_sample_fields()] if sentence]
    problems += [f"{name} has no row in ORACLES.tsv" for name in machines() if name not in {row[0] for row in rows}]
    for machine, oracle in sorted(missing):
        print(f"SKIP (part): {machine}: {oracle} cannot be asked here")
    print("\n".join(problems))
    print(f"{len(described)} machines, {len(rows)} encodings, {len(missing)} pairs of machine and oracle not asked")
    return 1 if problems else 0


sys.exit(main())
