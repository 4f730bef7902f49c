# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""Where pages are and what to do about it, measured in a guest with two memory nodes: programs/numa-homes.c has its pages
on known nodes and uses them on known CPUs. Remote shares, of the page faults and of the use, are within 3 points of what
follows from that; who touched each variable first is known; and the advice is that of the rules, also for loops like those
of programs whose placement others have studied. Variables in their right places get none. What was known before a SIGKILL
stays known. All of it runs as root and as an ordinary user. The advice on UMT's STime in its
wrong place is not compared: on a busy machine its gain comes near the least one that is worth it."""
import base64
import csv
import gzip
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"]).resolve()
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"]).resolve()
PACKAGE = "linux-image-cloud-amd64"
UNIT_MS = 500  # of a thread's reads
POINTS = 3
WORTH = 3  # percent of all time that a change must be able to gain
PARTS = ("all", "findings", "fixed", "killed")
failures = []

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/tmp HWLOC_HIDE_ERRORS=2 LC_ALL=C
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /tmp; chmod 1777 /tmp /dev
mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm; chmod 1777 /tmp /dev/shm
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd; echo 'nobody:x:65534:65534::/:/bin/sh' >>/etc/passwd
echo 2 >/proc/sys/kernel/perf_event_paranoid
# Else the kernel now and then moves pages to another node to make huge ones of them.
echo 3600000 >/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
echo 1 >/proc/sys/kernel/yama/ptrace_scope 2>/dev/null
ip link set lo up
PROGRAM=@PROGRAM@ HPCRUN=@HPCRUN@
$HPCRUN -e EADDR -e FAULTS@1 -o /tmp/all $PROGRAM all @UNIT@; echo "all: $?"
mkdir /tmp/user; chown 65534 /tmp/user
cd /tmp/user
export HOME=/tmp/user
$PROGRAM as 65534 $HPCRUN -e EADDR -e FAULTS@1 -o /tmp/user/user-all $PROGRAM all @UNIT@; echo "user-all: $?"
for part in findings fixed; do
    $PROGRAM as 65534 $HPCRUN -e EADDR -e FAULTS@ring -o /tmp/user/user-$part $PROGRAM $part @UNIT@; echo "user-$part: $?"
    HOME=/tmp $HPCRUN -e EADDR -e FAULTS@ring -o /tmp/$part $PROGRAM $part @UNIT@; echo "$part: $?"
done
$PROGRAM as 65534 $HPCRUN -e FAULTS@1 -o /tmp/user/user-killed $PROGRAM kill 1000; echo "user-killed: $?"
HOME=/tmp $HPCRUN -e FAULTS@1 -o /tmp/killed $PROGRAM kill 1000; echo "killed: $?"
for m in user/user-killed killed; do
    i=0; while [ $i -lt 50 ] && ! ls /tmp/$m/*.log >/dev/null 2>&1; do sleep 0.2; i=$((i+1)); done
done
sleep 2
mv /tmp/all /tmp/findings /tmp/fixed /tmp/killed /tmp/user
cd /tmp/user && tar cf - all user-all findings user-findings fixed user-fixed killed user-killed | gzip | base64 >/dev/ttyS1
sync
poweroff -f
"""

# What follows from the program, whose main thread writes each page first and runs on node 0 or 1 meanwhile: percent of the
# faults on pages of the other node; percent of the pages on node 0 at the end (None: half of the copies).
TRUTH = {"wrong": (0, 100), "interleaved": (50, 50), "bound": (100, 0), "migrated": (0, 0), "replicated": (0, None),
         "unbalanced": (0, 100), "sparse": (0, 0)}
LEAST = 400  # faults of a variable; there is room for about 500 of each thread until they are asked for
LEAST_USES = 60  # samples of its use
# Percent of the use on CPU 0, 1, ... that is on pages of the other node.
AWAY = {"wrong": (0, 0, 100, 100), "interleaved": (50,) * 4, "bound": (100, 100, 0, 0), "replicated": (0,) * 4,
        "huge": (100, 100, 0, 0), "unbalanced": (0, 0, 100, 100), "sparse": (100, 100, 0, 0)}
FINDINGS = {"block": (0, 0, 100, 100), "referrence": (0, 0, 100, 100), "input_itemsets": (0, 0, 100, 100), "STime": (0, 0, 100, 100)}
FIXED = {"block": (0,) * 4, "referrence": (50,) * 4, "input_itemsets": (50,) * 4, "STime": (0,) * 4, "wrong": (50,) * 4,
         "bound": (0,) * 4, "migrated": (0,) * 4, "unbalanced": (50,) * 4}
# The nodes of the threads that touched it first; all of them are the main thread, in touch().
TOUCHED_ON = {"wrong": "node 0", "interleaved": "node 0", "bound": "node 0", "migrated": "node 0", "replicated": "nodes 0-1",
              "huge": "node 1", "unbalanced": "node 0", "sparse": "node 1"}
PLACES = ("first-touch", "parallel-first-touch", "interleave", "bind", "bind-threads", "not-worth-it")
# What others have found (SC'13, PPoPP'14): streamcluster's block wants a parallel first touch, nw's two
# matrices are to be interleaved (where both nodes use them about as much), and blackscholes is not worth the effort.
FOUND = {"block": "parallel-first-touch", "buffer": "not-worth-it"}
SHARED_FOUND = ("referrence", "input_itemsets")


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def find_kernel(scratch):
    """A kernel for the guest: the one named by LOCUS_GUEST_KERNEL, this machine's, or, where tests may fetch packages, Debian's."""
    given = os.environ.get("LOCUS_GUEST_KERNEL")
    if given:
        return pathlib.Path(given)
    local = [path for path in sorted(pathlib.Path("/boot").glob("vmlinuz-*-amd64"), reverse=True) if os.access(path, os.R_OK)]
    if local:
        return local[0]
    if os.environ.get("CI") != "true" or not shutil.which("apt-get"):
        skip("there is no kernel image for the guest (LOCUS_GUEST_KERNEL=FILE names one)")
    depends = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True, check=False).stdout
    names = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not names or subprocess.run(["apt-get", "download", names[0]], cwd=scratch, capture_output=True, check=False).returncode:
        skip(f"{PACKAGE} cannot be downloaded")
    for package in scratch.glob("linux-image-*.deb"):
        subprocess.run(["dpkg", "-x", package, scratch / "kernel"], check=True)
        package.unlink()
    return next((scratch / "kernel" / "boot").glob("vmlinuz-*"))


def libraries(program):
    """The shared libraries that a program needs, the loader included."""
    words = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout.split()
    return {pathlib.Path(word) for word in words if word.startswith("/")}


def make_root(scratch, program):
    """The guest's files, each where it is here, so that paths in the measurement hold on both sides."""
    root = scratch / "root"
    for name in ("bin", "proc", "sys", "dev", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    files = {program, BUILD / "hpcrun", BUILD / ".libs" / "libhpcrun.so"}
    for path in list(files):
        files |= libraries(path)
    for path in files:
        target = root / str(path)[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    text = INIT.replace("@PROGRAM@", str(program)).replace("@HPCRUN@", str(BUILD / "hpcrun")).replace("@UNIT@", str(UNIT_MS))
    (root / "init").write_text(text, encoding="utf-8")
    (root / "init").chmod(0o755)
    names = "\0".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    archive = subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode(), check=True,
                             capture_output=True).stdout
    (scratch / "initrd.gz").write_bytes(gzip.compress(archive, 1))


def boot(scratch, kernel):
    """Runs the guest; returns what it printed."""
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G",
               "-smp", "4,sockets=2,cores=2,threads=1",
               "-object", "memory-backend-ram,id=m0,size=512M", "-object", "memory-backend-ram,id=m1,size=512M",
               "-numa", "node,nodeid=0,cpus=0-1,memdev=m0", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1",
               "-numa", "dist,src=0,dst=1,val=21", "-kernel", str(kernel), "-initrd", "initrd.gz",
               "-append", "console=ttyS0 quiet panic=-1 numa_balancing=disable", "-nodefaults", "-display", "none", "-no-reboot",
               "-serial", "file:console", "-serial", "file:files"]
    try:
        subprocess.run(command, cwd=scratch, stdin=subprocess.DEVNULL, timeout=600, check=True, capture_output=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as problem:
        expect(False, f"the guest: {problem}")
    return (scratch / "console").read_text(encoding="utf-8", errors="replace")


def run(tool, *arguments):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, text=True, check=False)
    expect(result.returncode == 0, f"{tool} {arguments}: {result.stderr}")
    return result.stdout


def name_of(row):
    return row["variable"].split("::")[-1].split("[")[0]


def make_database(scratch, name):
    """Whether an instruction waits for memory depends on the machine that plays the guest: what is said of that is left out."""
    for path in (scratch / name).glob("*.objects"):
        side = json.loads(path.read_text(encoding="utf-8"))
        for row in side["variables"]:
            row["accesses"] = []
        path.write_text(json.dumps(side), encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / f"{name}-db", scratch / name)


def rows_of(scratch, name, metric):
    database = scratch / f"{name}-db"
    data = json.loads(run("hpcquery", "numa", "-M", metric, "--json", database))
    print(run("hpcquery", "numa", "-M", metric, "--top", "0", database))
    expect(data["n_nodes"] == 2, f"{name}: {data['n_nodes']} nodes")
    expect(data["metric"].startswith(metric), f"{name}: homes of {data['metric']}, not {metric}")
    return {name_of(row): row for row in data["variables"]}


def check_row(name, row, remote, on_0):
    known = row["local"] + row["remote"]
    expect(known >= LEAST, f"{name}: only {known} samples with a home")
    expect(known and abs(100 * row["remote"] / known - remote) <= POINTS, f"{name}: remote {row.get('remote_share')}, not {remote}: {row}")
    pages = row.get("pages_on")
    expect(pages or on_0 is None, f"{name}: its pages were not counted")  # the copies are freed, maybe before that
    if pages and on_0 is not None:
        expect(abs(100 * pages[0] / sum(pages) - on_0) <= POINTS, f"{name}: pages {pages}, not {on_0} % on node 0")


def check_faults(scratch, run_name):
    rows = rows_of(scratch, run_name, "FAULTS")
    for name, (remote, on_0) in TRUTH.items():
        if name not in rows:
            expect(False, f"{run_name}: {name} has no row: {sorted(rows)}")
            continue
        check_row(f"{run_name}: {name}", rows[name], remote, on_0)
    if "sparse" in rows and "pages_asked" in rows["sparse"]:
        none = 100 * rows["sparse"]["pages_without_memory"] / rows["sparse"]["pages_asked"]
        expect(abs(none - 50) <= POINTS, f"{run_name}: sparse: {none} % of its pages were never written: {rows['sparse']}")
    huge = rows.get("huge", {})
    expect(huge.get("remote") == 0 and huge.get("huge_bytes", 0) >= 4 << 20, f"{run_name}: huge: {huge}")


def uses_of(scratch, run_name):
    """{variable: [samples by CPU]}, and {variable: {thread: samples}}."""
    by_cpu, by_thread = {}, {}
    for row in csv.DictReader(io.StringIO(run("hpcquery", "cpus", "--csv", scratch / f"{run_name}-db"))):
        by_cpu.setdefault(name_of(row), [0] * 4)[int(row["cpu"])] += int(row["samples"])
        threads = by_thread.setdefault(name_of(row), {})
        threads[int(row["thread"])] = threads.get(int(row["thread"]), 0) + int(row["samples"])
    return by_cpu, by_thread


def check_uses(scratch, run_name, truth):
    """How long each thread was sampled depends on the machine that plays the guest; what its samples are on does not. Of
    interleaved pages they are on those of one node by chance: three standard deviations."""
    rows, (by_cpu, by_thread) = rows_of(scratch, run_name, "EADDR (usec)"), uses_of(scratch, run_name)
    for name in (*truth, "migrated") if run_name.endswith("all") else truth:
        row = rows.get(name)
        if not row or row["local"] + row["remote"] + row["no_page"] < LEAST_USES:
            expect(False, f"{run_name}: {name} has too few samples: {row}")
            continue
        if name == "migrated" and name not in truth:  # the first of two threads used it before it moved
            counts = by_thread[name]
            wanted = 100 * counts[min(counts)] / sum(counts.values())
            expect(row["moved"] > 0, f"{run_name}: migrated: no samples on pages that had moved: {row}")
        else:
            wanted = sum(n * away for n, away in zip(by_cpu[name], truth[name])) / sum(by_cpu[name])
            expect(row["moved"] == 0, f"{run_name}: {name}: {row['moved']} samples on pages that had moved")
        expect(abs(row["remote_share"] - wanted) <= max(POINTS, 150 / sum(by_cpu[name]) ** 0.5 if 50 in truth.get(name, ()) else 0),
               f"{run_name}: {name}: remote {row['remote_share']:.1f} %, not {wanted:.1f} %: {row}")
        far = 1 + row["remote_share"] / 100 * 1.1  # the other node is 21/10 times as far away
        expect(abs(row["mean_distance"] - far) < 1e-6, f"{run_name}: {name}: distance {row['mean_distance']}, not {far}")
    return by_cpu


def check_touches(scratch, run_name):
    report = json.loads(run("hpcquery", "first-touch", "--json", "--top", "0", scratch / f"{run_name}-db"))
    rows = {name_of(row): row for row in report["variables"]}
    for name, nodes in TOUCHED_ON.items():
        said = (rows.get(name) or {}).get("first_touch") or ""
        touchers = [touch for touch in (rows.get(name) or {}).get("touchers") or [] if (touch["function"] or "").startswith("touch")]
        expect(touchers and {touch["thread"] for touch in touchers} == {"0"}, f"{run_name}: {name}: touched by {touchers}")
        expect(f"on {nodes}" in said.split(", used by")[0] and "touch (numa-homes.c:" in said, f"{run_name}: {name}: {said}")


def rules_of(scratch, run_name):
    report = json.loads(run("hpcquery", "advice", "-M", "EADDR (usec)", "--min", "1", "--json", scratch / f"{run_name}-db"))
    print(run("hpcquery", "advice", "-M", "EADDR (usec)", "--min", "1", "--top", "0", scratch / f"{run_name}-db"))
    return {name_of(row): row for row in report["advice"] if row["rule"] in PLACES}


def rule_for_all(by_cpu, name):
    """What the rules say of a variable on node 0 that all threads read all of, from how much each node uses it: on a busy
    machine the threads of one node take longer. None: nothing."""
    on_0 = sum(by_cpu[name][:2]) / max(1, sum(by_cpu[name]))
    if on_0 > 0.75:
        return None
    return "interleave" if min(on_0, 1 - on_0) >= 0.3 else "not-worth-it" if on_0 > 0.5 else "first-touch"


def expected_rules(by_cpu, part):
    if part == "fixed":
        return {}
    rules = dict(FOUND if part == "findings" else {"bound": "bind", "migrated": "first-touch"})
    rules |= {name: rule_for_all(by_cpu, name) for name in (SHARED_FOUND if part == "findings" else ("wrong", "unbalanced"))}
    return {name: rule for name, rule in rules.items() if rule}


def check_rules(run_name, rules, wanted):
    found = {name: row["rule"] for name, row in rules.items()}
    # how much of all time a variable has depends on the machine that plays the guest: what gains little is not worth it
    wanted = {name: "not-worth-it" if name in rules and rules[name]["gain_at_most"] < WORTH else rule for name, rule in wanted.items()}
    expect(found == wanted, f"{run_name}: advice {found}, not {wanted}: {rules}")
    for name, row in rules.items():
        expect("gain at most" in row["evidence"] and row["gain_at_most"] > 0, f"{run_name}: {name}: {row}")


def check_run(scratch, run_name):
    part = run_name.removeprefix("user-")
    make_database(scratch, run_name)
    if part == "killed":
        rows = rows_of(scratch, run_name, "FAULTS")
        expect("wrong" in rows, f"{run_name}: {sorted(rows)}")
        if "wrong" in rows:
            check_row(f"{run_name}: wrong", rows["wrong"], *TRUTH["wrong"])
        return
    truth = {"findings": FINDINGS, "fixed": FIXED}.get(part, AWAY)
    by_cpu = check_uses(scratch, run_name, truth)
    rules = rules_of(scratch, run_name)
    if part == "findings":
        rules.pop("STime", None)
    if truth is AWAY:
        check_faults(scratch, run_name)
        check_touches(scratch, run_name)
    check_rules(run_name, rules, expected_rules(by_cpu, part))


def main():
    for tool in ("qemu-system-x86_64", "busybox", "cpio", "gcc"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    if os.uname().machine != "x86_64" or not (BUILD / ".libs" / "libhpcrun.so").exists():
        skip("the guest is an x86-64 machine, and needs libhpcrun.so")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        kernel, program = find_kernel(scratch), scratch / "numa-homes"
        subprocess.run(["gcc", "-O1", "-g", "-pthread", "-D_GNU_SOURCE", "-o", program, SOURCE / "tests/e2e/programs/numa-homes.c"], check=True)
        make_root(scratch, program)
        console = boot(scratch, kernel)
        files = base64.b64decode((scratch / "files").read_bytes())
        lines = {line.strip() for line in console.splitlines()}
        ends = {f"{user}{part}: {137 if part == 'killed' else 0}" for part in PARTS for user in ("", "user-")}
        expect(files and not ends - lines, f"the guest said: {console[-3000:]}")
        if files:
            with tarfile.open(fileobj=io.BytesIO(files)) as archive:
                archive.extractall(scratch)
            for part in PARTS:
                check_run(scratch, part)
                check_run(scratch, f"user-{part}")
    for failure in failures:
        print("FAIL:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
