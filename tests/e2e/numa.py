# SPDX-License-Identifier: BSD-3-Clause
"""The homes of pages, measured in a guest with two memory nodes: programs/numa-homes.c has its pages on known nodes and
writes them on known CPUs. The remote shares of its page faults are within 3 points of what follows from that, also for an
ordinary user, and what was known before a SIGKILL stays known. (The emulated processor does not stop where EADDR needs
it.)"""
import base64
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
UNIT_MS = 600
POINTS = 3
failures = []

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/tmp HWLOC_HIDE_ERRORS=2 LC_ALL=C
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /tmp; chmod 1777 /tmp /dev
mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm; chmod 1777 /tmp /dev/shm
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd; echo 'nobody:x:65534:65534::/:/bin/sh' >>/etc/passwd
echo 2 >/proc/sys/kernel/perf_event_paranoid
echo 1 >/proc/sys/kernel/yama/ptrace_scope 2>/dev/null
ip link set lo up
PROGRAM=@PROGRAM@ HPCRUN=@HPCRUN@
$HPCRUN -e FAULTS@1 -o /tmp/all $PROGRAM all @UNIT@; echo "all: $?"
mkdir /tmp/user; chown 65534 /tmp/user
cd /tmp/user
HOME=/tmp/user $PROGRAM as 65534 $HPCRUN -e FAULTS@1 -o /tmp/user/killed $PROGRAM kill @UNIT@; echo "killed: $?"
i=0; while [ $i -lt 50 ] && ! ls /tmp/user/killed/*.log >/dev/null 2>&1; do sleep 0.2; i=$((i+1)); done
sleep 2
mv /tmp/user/killed /tmp/killed; cd /tmp && tar cf - all killed | gzip | base64 >/dev/ttyS1
sync
poweroff -f
"""

# What follows from the program, whose main thread writes each page first and runs on node 0 or 1 meanwhile: percent of the
# faults on pages of the other node; percent of the pages on node 0 at the end (None: half of the copies).
TRUTH = {"wrong": (0, 100), "interleaved": (50, 50), "bound": (100, 0), "migrated": (0, 0), "replicated": (0, None),
         "unbalanced": (0, 100), "sparse": (0, 0)}
LEAST = 400  # samples of a variable; there is room for about 500 of each thread until they are asked for


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


def rows_of(scratch, name):
    run("hpcprof", "-q", "-o", scratch / f"{name}-db", scratch / name)
    data = json.loads(run("hpcquery", "numa", "--json", scratch / f"{name}-db"))
    print(run("hpcquery", "numa", "--top", "0", scratch / f"{name}-db"))
    expect(data["n_nodes"] == 2, f"{name}: {data['n_nodes']} nodes")
    return {row["variable"].split("::")[-1].split("[")[0]: row for row in data["variables"]}, data


def check_row(name, row, remote, on_0):
    known = row["local"] + row["remote"]
    expect(known >= LEAST, f"{name}: only {known} samples with a home")
    expect(known and abs(100 * row["remote"] / known - remote) <= POINTS, f"{name}: remote {row.get('remote_share')}, not {remote}: {row}")
    pages = row.get("pages_on")
    expect(pages, f"{name}: its pages were not counted")
    if pages and on_0 is not None:
        expect(abs(100 * pages[0] / sum(pages) - on_0) <= POINTS, f"{name}: pages {pages}, not {on_0} % on node 0")


def check_all(scratch):
    rows, _ = rows_of(scratch, "all")
    for name, (remote, on_0) in TRUTH.items():
        if name not in rows:
            expect(False, f"{name} has no row: {sorted(rows)}")
            continue
        check_row(name, rows[name], remote, on_0)
        expect(rows[name]["moved"] == 0, f"{name}: {rows[name]['moved']} samples on pages that had moved")
    if "sparse" in rows and "pages_asked" in rows["sparse"]:
        none = 100 * rows["sparse"]["pages_without_memory"] / rows["sparse"]["pages_asked"]
        expect(abs(none - 50) <= POINTS, f"sparse: {none} % of its pages were never written: {rows['sparse']}")
    huge = rows.get("huge", {})
    expect(huge.get("remote") == 0 and huge.get("huge_bytes", 0) >= 4 << 20, f"huge: {huge}")


def check_killed(scratch):
    rows, _ = rows_of(scratch, "killed")
    expect("wrong" in rows, f"killed: {sorted(rows)}")
    if "wrong" in rows:
        check_row("killed: wrong", rows["wrong"], *TRUTH["wrong"])


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
        expect(files and "all: 0" in console and "killed: 137" in console, f"the guest said: {console[-3000:]}")
        if files:
            with tarfile.open(fileobj=io.BytesIO(files)) as archive:
                archive.extractall(scratch)
            check_all(scratch)
            check_killed(scratch)
    for failure in failures:
        print("FAIL:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
