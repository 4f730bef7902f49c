#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a program sees of itself is the same with and without hpcrun: mirror.c, which prints all of it from many threads
# while they work, and twenty ordinary programs; as this user, unprivileged, and with perf refused for both.
# usage: mirror.sh [all]: the ordinary programs in all four ways instead of the first, as with ./dev test --full.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/same.sh
. "$LOCUS_SRCDIR/tests/lib/same.sh"
need_runtime
need python3
which=${1:-${LOCUS_TEST_FULL:+all}}
export PATH=/usr/bin:/bin LC_ALL=C TZ=UTC
chmod 755 "$scratch"
mkdir "$scratch/input" && cd "$scratch/input"
$CC -O2 -Wall -Werror -pthread "$srcdir/tests/e2e/mirror.c" -o mirror -lm || {
    fail "mirror.c does not build"
    finish
}

# Inputs.
seq 40000 | sed 's/\(.*\)/\1 words to sort \1/' | sort -R --random-source=/bin/true >text
gzip -n -c text >packed.gz
awk '{ print $1, length($0) }' text | sort >left
awk '{ print $1, NR % 7 }' text | sort >right
mkdir tree && for i in $(seq 60); do head -n "$i" text >"tree/file-$i"; done
touch -d 2020-01-01 text left right tree/* tree
cat >script.sh <<'END'
set -e
ulimit -a
umask
trap 'echo ended' EXIT
for i in 1 2 3; do (echo "$i"; exit "$i") || echo "failed $?"; done
echo one two three | { read -r a b; echo "$b $a"; }
exec 5>numbers
for i in $(seq 300); do echo "$i" >&5; done
wc -l <numbers
kill -USR1 $$ || true
END
sed -i 's/^kill.*/trap "echo signal" USR1; kill -USR1 $$; sleep 0.01; exit 9/' script.sh
cat >script.pl <<'END'
my %seen; my $n = 0;
while (<STDIN>) { my @f = split; $seen{$f[1] . ($f[0] % 97)} += $f[0]; $n++; }
print "$n ", join(",", map { "$_=$seen{$_}" } (sort keys %seen)[0 .. 9]), "\n";
my $pid = fork; if (!$pid) { exec "sh", "-c", "exit 5" } waitpid $pid, 0; print $? >> 8, "\n";
$SIG{ALRM} = sub { print "alarm\n" }; alarm 1; select undef, undef, undef, 3; printf "%o\n", umask; exit 4;
END
cat >script.py <<'END'
import os, resource, signal, subprocess, sys, threading
print(sorted(os.listdir("/proc/self/fd"), key=int)[:4], os.umask(0o22), os.getpriority(os.PRIO_PROCESS, 0))
print([resource.getrlimit(i) for i in range(16)])
print([(s, str(signal.getsignal(s))) for s in signal.Signals], signal.pthread_sigmask(signal.SIG_BLOCK, []))
threads = [threading.Thread(target=lambda: sum(range(100000))) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(subprocess.run(["sort", "-n", "left"], capture_output=True).stdout[:100], threading.active_count())
sys.exit(6)
END
cat >makefile <<'END'
all: a b c ; cat a b c >all
a b c: ; expr 3 \* 4 >$@
END
cat >hello.c <<'END'
#include <stdio.h>
int main(void) { return puts("hello") < 0; }
END

# compare_all WAY
compare_all() {
    local timers=()
    case $1 in *refused*) timers=(MIRROR_TIMERS_ARE_OURS=1) ;; esac
    mkdir -p "$scratch/$1/home"
    [ "${user:-}" = "" ] || chown -R "$user" "$scratch/$1"
    compare "$1" mirror env "${timers[@]}" ./mirror
    case $1,$which in
    *,all | "this user,"*) ;;
    *) return 0 ;;
    esac
    compare "$1" sort sort --parallel=2 -k 4n text
    compare "$1" awk awk '{ s[$1 % 13] += $5 } END { for (i = 0; i < 13; i++) print i, s[i] }' text
    compare "$1" sed sed -E 's/([0-9])([0-9]+)/\2\1/g;/77/d' text
    compare "$1" grep grep -nE '(1|2)[3-5]+.*(7|8)$' text
    compare "$1" find find tree -type f -size +1k -exec wc -c {} +
    compare "$1" tar tar -C tree --sort=name --owner=0 --group=0 -cf packed.tar .
    compare "$1" xargs sh -c 'seq 40 | xargs -P 1 -n 7 echo'
    compare "$1" bash bash script.sh
    compare "$1" perl sh -c 'perl script.pl <text'
    compare "$1" python python3 -B script.py
    for way in bash:9 perl:4 python:6; do # their last lines
        [ "$(cat "$scratch/$1/${way%:*}.native.status")" = "${way#*:}" ] || fail "$1, ${way%:*} fails natively"
    done
    compare "$1" diff diff left right
    compare "$1" join join left right
    compare "$1" sha256sum sha256sum text left right none
    compare "$1" od od -A d -t x8 left
    compare "$1" gzip gzip -n -9 text
    compare "$1" unpack gzip -d packed.gz
    compare "$1" dd dd if=text of=copy bs=1000 count=300 status=none
    compare "$1" make make -j2 --no-print-directory all
    compare "$1" cc "$CC" -O1 hello.c -o hello
    compare "$1" nm nm -D mirror
    compare "$1" dash dash -c 'ulimit -n; ulimit -a; trap; umask; cat /proc/self/limits; (exit 3)'
    compare "$1" ls ls -l --time-style=+%Y tree
}

in_all_ways compare_all too
finish
