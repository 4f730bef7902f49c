#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcrun --report: the program, then its report, all in one command; the exit status is the program's, and so is its
# output, to the byte: the report goes to standard error or into a file. Of ranks the last one reports, once for all.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ -x "$builddir/hpcprof" ] && [ -x "$builddir/hpcquery" ] || skip "hpcprof and hpcquery have not been built"
cd "$scratch"

cat >sweep.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void)
{
    size_t n = 4u << 20;
    long *table = calloc(n, sizeof *table), sum = 0;
    while (clock() < CLOCKS_PER_SEC / 2)
        for (size_t i = 0, k = 1; i < 100000; i++, k = k * 6364136223846793005u + 1442695040888963407u)
            sum += ++table[(k >> 40) % n];
    printf("sum %s\n", sum > 0 ? "positive" : "negative");
    free(table);
    return 6;
}
END
$CC -O2 -g sweep.c -o sweep
expect_status 6 "$builddir/hpcrun" --report -o found ./sweep
echo 'sum positive' >positive
expect_same positive out
expect_text err '% .*(table|main \(sweep.c:7\)) .*heap'
expect_text err '^hpcrun: datacentric: '
[ -e found-database ] || fail "no database: $(ls)"
! grep -q 'still runs' err || fail "the report was made before the measurement was complete"
[ -z "$(find found -name '.writing-*')" ] || fail "the directory is still marked"

# What a program writes into a pipe or a file is what it writes without us.
head -c 3000000 "$builddir/.libs/libhpcrun.so" >data
gzip -n -c data >native.gz
"$builddir/hpcrun" --report -e EADDR -o zipped gzip -n -c data >measured.gz 2>zipped.err || fail "gzip fails"
cmp native.gz measured.gz || fail "--report changes the output of gzip -c"
expect_text zipped.err '^program .*gzip'
printf 'a,b\n1,2\n' >native.csv
"$builddir/hpcrun" --report=report.txt -o csv sh -c 'cat native.csv; ./sweep >/dev/null; :' >measured.csv 2>csv.err
cmp native.csv measured.csv || fail "--report=FILE changes the output"
expect_text report.txt '% .*(table|main \(sweep.c:7\)) .*heap'
! grep -q '^program' csv.err || fail "--report=FILE also prints the report"
expect_status 2 "$builddir/hpcrun" --report=none/report.txt -o bad ./sweep
expect_text err '^hpcrun: --report: none/report.txt: cannot be written: No such file'

# a program that ends before the runtime begins
echo 'int part(void) { return 0; }' >part.c
echo 'int part(void); int main(void) { return part(); }' >whole.c
$CC -shared -fPIC part.c -o libpart.so && $CC whole.c ./libpart.so -o whole && rm libpart.so
expect_status 127 "$builddir/hpcrun" --report -o nothing ./whole
expect_text err '/nothing holds no profile .*; its program ended before it could be measured, as where a library is missing'
mkdir empty
expect_status 1 "$builddir/hpcprof" empty
expect_text err 'empty holds no profile .*, so it is not a measurement directory'
[ ! -s out ] || fail "the program runs although its report cannot be written"

# Processes before the program proper that end before their first EADDR sample do not make it a report of page faults.
cp "$(type -P true)" a-first
expect_status 6 "$builddir/hpcrun" --report -o wrapped sh -c './a-first; ./a-first; ./sweep'
expect_text err '^samples  *[0-9]+ of EADDR'

# expect_one_report PROCESSES: of the output in $scratch/err.
expect_one_report() {
    local n_reports n_starts
    n_reports=$(grep -c '^program ' err)
    n_starts=$(grep -c '^hpcrun: datacentric: ' err)
    [ "$n_reports $n_starts" = "1 1" ] || fail "$n_reports reports and $n_starts first lines: $(cat err)"
    tr -s ' \n' ' ' <err >words
    # Without page faults a process that does little has no sample, and then it is not in the report.
    if works rings; then expect_text words "$1 processes"; else expect_text words '[0-9] processes'; fi
}

# Ranks of a launcher that names the launch: the last to end is not the last to begin, and all are in its report.
ranks() {
    local rank
    for rank in 0 1 2; do
        env PMIX_NAMESPACE="$1" PMIX_RANK=$rank "$builddir/hpcrun" --report -o ranks sh -c "./sweep; sleep 0.$((6 - 3 * rank))" \
            >"out-$rank" 2>"err-$rank" &
        sleep 0.2
    done
    wait
    cat err-[0-2] >err
}
ranks job@1
expect_one_report 9 # a shell and two programs each
cat out-[0-2] >out
[ "$(uniq -c out | xargs)" = "3 sum positive" ] || fail "the ranks print $(cat out)"
ranks job@2
expect_one_report 9

if command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null; then
    # shellcheck source=tests/lib/ranks.sh
    . "$srcdir/tests/lib/ranks.sh"
    build_ranks mpich
    timeout 60 mpiexec.mpich -n 3 "$builddir/hpcrun" --report -o mpi ./ranks.mpich 0.5 >out 2>err || fail "mpiexec fails: $(cat err)"
    expect_one_report 3
else
    skip_part "MPICH is not installed"
fi
# Where hpcrun or the program may not open enough files, the program keeps its status, and a message says why nothing else works.
for n in 11 12 13 14 15 16; do
    status=0
    (ulimit -n $n && exec "$builddir/hpcrun" -e CPUTIME --report -o "few-$n" sh -c 'exit 7') >few.out 2>few.err || status=$?
    [ "$status" = 7 ] || fail "with $n descriptors: status $status: $(cat few.err)"
    expect_text few.err 'not measured|without being measured|ran too short|^program '
done
finish
