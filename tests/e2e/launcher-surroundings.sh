#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Other surroundings than a developer's: an unprivileged user without a home, perf refused by a seccomp filter, limits,
# closed streams, process 1, a program built with a sanitizer. Each time the program ends as it would, with samples.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >burn.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    size_t n = 1u << 20;
    long *table = calloc(n, sizeof *table), sum = 0;
    while (clock() < CLOCKS_PER_SEC / 2)
        for (size_t i = 0, k = 1; i < 100000; i++, k = k * 6364136223846793005u + 1442695040888963407u)
            sum += ++table[(k >> 40) % n];
    free(table);
    return sum > 0 && write(1, "x", 1) == 1 ? 4 : 5;
}
END
$CC -O2 -g burn.c -o burn

# sampled DIR: there is one profile, and its log knows samples of the clock.
sampled() {
    local n
    n=$(find "$1" -name 'burn-*.hpcrun' | wc -l)
    [ "$n" = 1 ] || fail "$n profiles in $1"
    cat "$1"/burn-*.log >"$scratch/log" 2>/dev/null || true
    expect_text "$scratch/log" 'SUMMARY: samples: [0-9]{2,}'
}

# An ordinary user whose home cannot be written.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    mkdir user && chown 65534:65534 user && chmod 755 "$scratch"
    if setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$hpcrun"; then
        expect_status 4 setpriv --reuid=65534 --regid=65534 --clear-groups env -u XDG_CACHE_HOME HOME=/nonexistent \
            "$hpcrun" -o user/m ./burn
        sampled user/m
    else
        skip_part "the build directory is closed to other users"
    fi
else
    skip_part "only root can become another user"
fi

# perf refused by a filter, as containers do, or by killing.
cat >noperf.c <<'END'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, atoi(argv[1]) ? SECCOMP_RET_ERRNO | atoi(argv[1]) : SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execvp(argv[2], argv + 2);
    return 98;
}
END
$CC noperf.c -o noperf
for number in 1 38 0; do
    expect_status 4 ./noperf "$number" "$hpcrun" -e CPUTIME -o "refused-$number" ./burn
    expect_text "$scratch/err" 'CPUTIME: perf is refused here .*seccomp.* samples per CPU second'
    sampled "refused-$number"
done

# Limits.
(
    ulimit -v 1000000
    expect_status 4 "$hpcrun" -o limited ./burn
    finish
) || fail "limited address space"
sampled limited

# A process that may open few descriptors has all of them, and finds none of ours; those above that its shell keeps are
# not its own.
for limit in 7 40; do
    # shellcheck disable=SC2016 # for the inner shell
    list='ulimit -n '$limit'; exec ls /proc/self/fd'
    bash -c "$list" | awk "\$1 < $limit" >natively
    "$hpcrun" -o "few-$limit" bash -c "$list" 2>"$scratch/err" | awk "\$1 < $limit" >measured
    expect_same natively measured
done

# Closed streams stay closed for the program (so its write fails), and nothing of ours lands in their numbers.
status=0
"$hpcrun" -e CPUTIME -o closed ./burn <&- >&- 2>&- || status=$?
[ "$status" = 5 ] || fail "status $status with closed streams"
sampled closed

# As process 1 of a container.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    expect_status 4 unshare --pid --fork --mount-proc "$hpcrun" -e CPUTIME -o first ./burn
    sampled first
else
    skip_part "no process namespaces here"
fi

# A program with its own preloaded sanitizer library.
if $CC -fsanitize=address -O1 burn.c -o burn-asan 2>/dev/null && ./burn-asan >/dev/null; [ $? = 4 ]; then
    expect_status 4 "$hpcrun" -e CPUTIME -o sanitized ./burn-asan
else
    skip_part "no address sanitizer"
fi
finish
