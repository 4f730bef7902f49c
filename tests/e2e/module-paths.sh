#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# However a library is spelled, and wherever its file and the program have gone since: its samples find their addresses,
# and the load map names it by its real path.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "software addresses need x86-64"
need python3
mkdir -p "$scratch/a place" && cd "$scratch/a place"
programs=$srcdir/tests/e2e/programs
build_library() { # FILE OPTION...
    local file=$1
    shift
    $CC -O2 -g -fPIC -shared "$@" "$programs/module-paths-work.c" -o "$file"
}
build_library x.so
build_library plain.so -Wl,--build-id=none
build_library libsearched.so -Wl,-soname,libsearched.so
build_library other.so -O1 -DOTHER
mkdir sub && ln -s ../x.so sub/link.so
$CC -O1 -g "$programs/module-paths.c" -o dynamic -ldl
$CC -O1 -g "$programs/module-paths.c" -Wl,--no-as-needed ./x.so -o linked -ldl
$CC -O1 -g "$programs/module-paths.c" -Wl,--no-as-needed -L. -lsearched -o searched -ldl
$CC -O1 -g "$programs/module-paths.c" -Wl,--no-as-needed -L. -lsearched -Wl,-rpath,. -o rpath -ldl

launcher=("$hpcrun")
# measured NAME FILE COMMAND...: at least 85 % of the samples are named, none is dropped but for one of a hundred in code
# that runs once and ends before it is analysed, and the library has this path.
measured() {
    local name=$1 file=$2
    shift 2
    expect_status 0 "${launcher[@]}" -e EADDR -o "$scratch/$name" "$@"
    python3 - "$name" "$scratch/$name" <<'PYTHON' || fail "$name: samples are lost"
import collections, glob, json, sys
fates, taken = collections.Counter(), 0
for path in glob.glob(sys.argv[2] + "/*.objects"):
    for event in json.load(open(path, encoding="utf-8"))["events"]:
        fates.update(event["fates"])
        taken += event["taken"]
print(f"{sys.argv[1]}: {taken} samples: {dict(fates)}")
assert taken >= 50 and fates["named"] >= 0.85 * taken
assert sum(n for name, n in fates.items() if name.startswith("dropped")) <= max(1, taken / 100), fates
PYTHON
    "$builddir/hpcproftt" "$scratch/$name"/*.hpcrun >"$scratch/dump" || fail "$name: hpcproftt fails"
    grep -Fq "$file" "$scratch/dump" || fail "$name: the load map does not name $file"
}
real=$(pwd -P)
measured warm "$real/x.so" ./dynamic 250 open ./x.so
measured opened "$real/x.so" ./dynamic 400 open ./x.so
measured below "$real/x.so" ./dynamic 400 open sub/link.so
measured no-build-id "$real/plain.so" ./dynamic 400 open ./plain.so
measured linked "$real/x.so" ./linked 400
LD_LIBRARY_PATH=. measured searched "$real/libsearched.so" ./searched 400 # without env, which has samples of its own
measured rpath "$real/libsearched.so" ./rpath 400
cp x.so gone.so
measured deleted "$real/gone.so" ./dynamic 400 delete ./gone.so
build_library fresh.so -DFRESH -O3
measured replaced "$real/fresh.so" ./dynamic 400 replace ./fresh.so other.so
build_library memory.so -O3 -DMEMORY
measured memory "/memfd:library" ./dynamic 400 memory ./memory.so
if [ "$(id -u)" = 0 ]; then
    measured root "$real/x.so" ./dynamic 400 root ./x.so
else
    skip_part "chroot needs root"
fi

# The same where the kernel answers for no single mapping, as before Linux 6.11: the text of all mappings is read.
cat >text-only.c <<'CODE'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc0686611u, 0, 1), /* PROCMAP_QUERY */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    execv(argv[1], argv + 1);
    return 1;
}
CODE
$CC -O1 text-only.c -o text-only
if ./text-only /bin/true; then
    launcher=("$PWD/text-only" "$hpcrun")
    measured text "$real/x.so" ./dynamic 400 open sub/link.so
    cp x.so gone.so
    measured text-deleted "$real/gone.so" ./dynamic 400 delete ./gone.so
    measured text-memory "/memfd:library" ./dynamic 400 memory ./memory.so
else
    skip_part "filters of system calls are refused here"
fi
finish
