# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# Ordinary programs give the same output and status with every block recorded, with the default threshold, and sampled;
# the events arrive in order and every release finds its block.
. "$LOCUS_SRCDIR/tests/e2e/alloc-common.sh"

cat >"$scratch/script.py" <<'END'
import json, re, sqlite3, subprocess, threading
print(len(json.dumps([list(range(i)) for i in range(200)])))
print(len(re.findall(r"(\w+) (\w+)", "some words " * 5000)))
base = sqlite3.connect(":memory:")
base.execute("create table t (a integer, b text)")
base.executemany("insert into t values (?, ?)", [(i, str(i) * 50) for i in range(5000)])
print(base.execute("select sum(a), max(length(b)) from t").fetchall())
print(subprocess.run(["sort", "-n"], input="3\n1\n2\n", capture_output=True, text=True).stdout.split())
blocks = []
workers = [threading.Thread(target=lambda: blocks.append(sum(len(bytes(i)) for i in range(3000)))) for _ in range(8)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
print(blocks)
END
seq 50000 | sed 's/\(.*\)/\1 \1 some text to be sorted/' >"$scratch/numbers"
git init -q "$scratch/repository"
git -C "$scratch/repository" -c user.name=n -c user.email=e@e commit -q --allow-empty -m "$(cat "$scratch/script.py")"

# compare NAME COMMAND...: output and status natively and three times under the sink.
compare() {
    local name=$1 status=0 same=0 variables
    shift
    command -v "$1" >/dev/null || {
        skip_part "$1 is not installed"
        return 0
    }
    "$@" >"$scratch/native" 2>"$scratch/native.err" || status=$?
    for variables in ALLOC_SINK_MIN=1024 ALLOC_SINK_MIN=0 "ALLOC_SINK_MIN=1024 ALLOC_SINK_SAMPLE=512"; do
        same=0
        # shellcheck disable=SC2086
        env $variables LD_PRELOAD="$sink" "$@" >"$scratch/out" 2>"$scratch/err" || same=$?
        [ "$same" = "$status" ] || fail "$name: status $same instead of $status with $variables"
        expect_same "$scratch/native" "$scratch/out"
        expect_same "$scratch/native.err" "$scratch/err"
        check_counts "$name with $variables" 'heap=[1-9].*malloc=ours free=ours'
    done
}

compare ls ls -la /usr/bin
compare "ls of nothing" ls "$scratch/nothing"
compare python3 python3 "$scratch/script.py"
compare git git -C "$scratch/repository" log --stat -p
compare sort sort -r -k 2 "$scratch/numbers"
compare bash bash -c 'x=$(for i in 1 2 3; do (echo $i | cat); done); echo "$x"; exit 3'
compare gcc gcc -x c -O2 -S -o - "$srcdir/src/alloc-wrap/scope-hook.c" -I"$srcdir/src" -D_GNU_SOURCE
compare g++ g++ -x c++ -std=c++17 -O1 -S -o - "$srcdir/tests/e2e/alloc-plugin.cc"
finish
