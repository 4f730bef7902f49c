#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One measurement is one run: each launch has a directory of its own, the newest under the plain name, and nothing that
# was measured is touched; ranks of one launch share one; who wants to add says so, and the report says how many runs it
# covers. In the load map of a profile each file is named once.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache LC_ALL=C
unset SLURM_JOB_ID SLURM_STEP_ID SLURM_PROCID PMI_RANK PMI_SIZE HPCRUN_LAUNCH
read -ra cc <<<"${CC:-cc}"

# program NAME: a program whose array is called NAME.
program() {
    cat >work.c <<CODE
double $1[1 << 18];
int main(int argc, char **argv)
{
    (void)argv;
    for (int k = 0; k < 60 * argc; k++)
        for (int i = 0; i < 1 << 18; i++)
            $1[(i * 7919) % (1 << 18)] += 1;
    return 0;
}
CODE
    "${cc[@]}" -g -O1 -o work work.c
}

# n_profiles N DIR: so many profiles are there.
n_profiles() {
    local files=("$2"/*.hpcrun)
    [ -e "${files[0]}" ] && [ "${#files[@]}" = "$1" ] || fail "$2 holds ${#files[@]} profiles instead of $1: ${files[*]}"
}

# Run, edit, run: each has its own, and the newest has the plain name.
program alpha
expect_status 0 "$hpcrun" -e EADDR -o m ./work
[ ! -s err ] || fail "hpcrun says something about a first run: $(cat err)"
settle m 30
first=$(cat m/* | sha256sum)
program beta
expect_status 0 "$hpcrun" -e EADDR -o m ./work
settle m 30
n_profiles 1 m
n_profiles 1 m.1
[ "$(cat m.1/* | sha256sum)" = "$first" ] || fail "the earlier measurement was changed"
expect_status 0 "$builddir/hpcprof" -q -o db m
expect_status 0 "$builddir/hpcquery" vars db
grep -q beta out || skip_part "no address was found for the array"
! grep -q alpha out || fail "the report of the new program shows the array of the old one"
! grep -q 'runs,' out || fail "one run is called several"
expect_status 0 "$hpcrun" -e CPUTIME -o m ./work
settle m 30
n_profiles 1 m
n_profiles 1 m.2

# The new program is not what the earlier measurement is of: no names, and the file is named.
expect_status 0 "$builddir/hpcprof" -q -o db-old m.1
expect_status 0 "$builddir/hpcquery" vars db-old
if readelf -n work | grep -q 'Build ID'; then
    expect_text out 'Another build than the one that was measured.*work'
    ! grep -q beta out || fail "an old measurement shows the array of the new program"
else
    skip_part "the compiler writes no build ids"
fi

# On demand: both in one directory, and the report says so.
expect_status 0 "$hpcrun" --append -e CPUTIME -o m ./work
settle m 30
n_profiles 2 m
[ ! -e m.3 ] || fail "--append made another directory"
expect_status 0 "$builddir/hpcprof" -q -o db2 m
expect_status 0 "$builddir/hpcquery" vars db2
expect_text <(tr -s ' \n' ' ' <out) '^program .*: 2 runs, 2 processes'
expect_status 0 "$builddir/hpcprof" -q -o db3 m m.1
expect_status 0 "$builddir/hpcquery" vars db3
expect_text <(tr -s ' \n' ' ' <out) '^program .*: 3 runs, 3 processes'

# Ranks of one launch, which come one by one and at once; the next launch of as many; another launcher's names for one.
ranks() {
    local rank
    for rank in 0 1 2; do
        env "$1" PMI_RANK=$rank SLURM_PROCID=$rank "$hpcrun" -e CPUTIME -o r ./work >/dev/null 2>&1 &
    done
    wait
    settle r 30
}
for launch in PMI_SIZE=3 PMI_SIZE=3 PMI_SIZE=4 PMIX_NAMESPACE=a@1 PMIX_NAMESPACE=a@2; do
    ranks "$launch"
    n_profiles 3 r
done
for ((i = 1; i <= 4; i++)); do
    n_profiles 3 "r.$i"
done
[ ! -e r.5 ] || fail "five launches made more than five directories"

# Two steps of one job of Slurm, and two launches in its script.
for step in 0 1; do
    for rank in 0 1; do
        SLURM_JOB_ID=9 SLURM_STEP_ID=$step SLURM_PROCID=$rank "$hpcrun" -e CPUTIME -o s ./work >/dev/null 2>&1
    done
done
settle s 30
n_profiles 2 s
n_profiles 2 s.1
for _ in 1 2; do
    SLURM_JOB_ID=9 SLURM_PROCID=0 "$hpcrun" -e CPUTIME -o batch ./work >/dev/null 2>&1
    settle batch 30
done
n_profiles 1 batch
n_profiles 1 batch.1

# A measured program that starts hpcrun itself: one run.
expect_status 0 "$hpcrun" -e CPUTIME -o outer sh -c "'$hpcrun' -e CPUTIME ./work; '$hpcrun' -e CPUTIME ./work; :"
settle outer 30
[ ! -e outer.1 ] || fail "an inner hpcrun made a directory of its own"
[ "$(grep -c ^run outer/.runs)" = 1 ] || fail "inner hpcruns count as runs: $(cat outer/.runs)"
[ "$(grep -c 'leaves it the program, whose measurement is in .*/outer$' err)" = 2 ] || fail "where are they: $(cat err)"

# What a run was is noted with it, and kept by hpcprof; secrets are not.
OMP_NUM_THREADS=3 SLURM_JWT=secret HPCRUN_RUN_size="very \"large\"" expect_status 0 "$hpcrun" -e EADDR -o noted ./work "an argument"
expect_status 0 "$builddir/hpcprof" -q -o noted-db noted
python3 - <<'CODE' || fail "runs.json: $(cat noted-db/runs.json)"
import json
one, = json.load(open("noted-db/runs.json"))
assert one["command"] == "./work an argument" and one["OMP_NUM_THREADS"] == "3" and one["HPCRUN_RUN_size"] == 'very "large"', one
assert one["date"].endswith("Z") and one["host"] and "SLURM_JWT" not in one, one
program = open("work", "rb").read()
assert "build_id" not in one if b"GNU\0" not in program else bytes.fromhex(one["build_id"]) in program, one
CODE
expect_status 0 "$builddir/hpcprof" -q --extend -o noted-db noted
[ "$(grep -c '"command"' noted-db/runs.json)" = 1 ] || fail "a run is there twice: $(cat noted-db/runs.json)"
[ "$(grep -c 'not measured: it is an hpcrun itself' outer/index-*)" = 2 ] || fail "inner hpcruns: $(cat outer/index-*)"
[ -z "$(find outer -name 'hpcrun-*')" ] || fail "inner hpcruns are measured: $(ls outer)"
[ "$(find outer -name 'work-*.hpcrun' | wc -l)" = 2 ] || fail "two programs in inner hpcruns: $(ls outer)"

# Two at once: neither is disturbed, and the second says where it is.
mkfifo gate
"$hpcrun" -e CPUTIME -o busy sh -c 'cat gate >/dev/null; ./work' &
await test -e busy/.runs
expect_status 0 "$hpcrun" -e CPUTIME -o busy ./work
expect_text err 'busy is still being written: this measurement goes into .*/busy.1'
: >gate
wait
settle busy 30
settle busy.1 30
n_profiles 1 busy.1
[ "$(grep -c ^run busy/.runs)" = 1 ] || fail "two runs in one directory: $(cat busy/.runs)"

# The next one right after the end of a program waits for the last files of its measurement.
"$hpcrun" -e CPUTIME -o soon sh -c 'cat gate >/dev/null; kill -KILL $$' >/dev/null 2>&1 &
first=$!
await compgen -G 'soon/.writing-*'
companion=$(companion_of soon)
kill -STOP "$companion"
: >gate
wait "$first" || true
(
    sleep 0.5
    kill -CONT "$companion"
) &
expect_status 0 "$hpcrun" -e CPUTIME -o soon ./work
wait
[ ! -s err ] || fail "said about a measurement that was nearly done: $(cat err)"
settle soon 30
[ -e soon.1 ] || fail "the earlier measurement was not moved"

# Directories that are not ours to move: with other files in them, or with the user in them. Made before: used.
mkdir made mixed
expect_status 0 "$hpcrun" -e CPUTIME -o made ./work
expect_status 0 "$hpcrun" -e CPUTIME -o mixed ./work
settle mixed 30
n_profiles 1 made
echo note >mixed/note
expect_status 0 "$hpcrun" -e CPUTIME -o mixed ./work
expect_text err 'mixed also contains other files: this measurement goes into .*/mixed.1'
[ -e mixed/note ] || fail "a file of the user's was moved"
settle mixed.1 30
n_profiles 1 mixed.1
settle m 30
(cd m && "$hpcrun" -e CPUTIME -o . ../work 2>../err)
expect_text err 'is the working directory or contains it: this measurement goes into .*/m.3'

# One file by several names: a library behind a link, loaded and mapped.
cat >lib.c <<'CODE'
double slow(int n);
double slow(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 1.0 / (i + 1);
    return sum;
}
CODE
cat >loads.c <<'CODE'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
int main(void)
{
    static const char *const names[] = {"./real/libslow.so", "./link/libslow.so", "./link/libslow.so.1"};
    for (int i = 0; i < 3; i++) {
        Dl_info info;
        void *library = dlopen(names[i], RTLD_NOW);
        double (*slow)(int) = library ? (double (*)(int))dlsym(library, "slow") : 0;
        int fd = open(names[i], O_RDONLY);
        char *copy = mmap(0, 1 << 14, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        if (!slow || copy == MAP_FAILED || slow(20000000) < 1 || !dladdr((void *)(uintptr_t)slow, &info))
            return 1;
        /* the code as it lies in the file: where the linker has kept places and addresses alike it runs there, too */
        double (*other)(int) = (double (*)(int))(uintptr_t)(copy + ((char *)(uintptr_t)slow - (char *)info.dli_fbase));
        if (other(20000000) < 1)
            return 1;
        dlclose(library);
    }
    return 0;
}
CODE
mkdir real
"${cc[@]}" -g -O1 -shared -fPIC -o real/libslow.so lib.c
ln -s real link && ln -s libslow.so real/libslow.so.1
"${cc[@]}" -g -O1 -o loads loads.c -ldl
if expect_status 0 ./loads; then
    expect_status 0 "$hpcrun" -e CPUTIME -o loads-m ./loads
    settle loads-m 30
    "$builddir/hpcproftt" --json loads-m/*.hpcrun >profile.json
    python3 - <<'CODE' || fail "the load map names a file twice"
import collections, json, os, re
text = open("profile.json").read()
paths = [path for path in re.findall(r'"((?:/[^"/]+)+)"', text) if os.path.exists(path)]
paths = re.findall(r'"path": *"([^"]*)"', text) or paths
count = collections.Counter(os.path.realpath(path) for path in paths if path.startswith("/"))
print(dict(count))
assert any("libslow" in path for path in count), "the library has no samples"
assert all(n == 1 for n in count.values())
CODE
fi
finish
