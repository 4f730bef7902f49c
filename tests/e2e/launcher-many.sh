#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many at once: ranks that start together with a cold cache (16, LOCUS_RANKS changes
# it) make each table once and share it, a tree of short
# processes leaves one line each and no files, and a companion stays small.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache

build_burn 0.1 0

# Ranks.
n_ranks=${LOCUS_RANKS:-16}
ranks=()
for rank in $(seq 0 $((n_ranks - 1))); do
    PMI_RANK=$rank "$hpcrun" -o ranks ./burn 2>"stderr-$rank" &
    ranks+=("$!")
done
for rank in "${ranks[@]}"; do
    wait "$rank" || fail "a rank ended with status $?"
done
settle ranks 30
n=$(find ranks -name 'burn-*.hpcrun' | sed 's/.*burn-\([0-9]*\)-.*/\1/' | sort -u | wc -l)
[ "$n" = "$n_ranks" ] || fail "profiles of $n ranks instead of $n_ranks"
[ "$(find ranks -name 'topology-*.xml' | wc -l)" = 1 ] || fail "more than one topology of this host"
[ -z "$(find ranks -name 'companion-*.txt')" ] || fail "complaints: $(cat ranks/companion-*.txt)"
[ "$(find cache -name '*.tmp*' | wc -l)" = 0 ] || fail "left in the cache: $(ls cache/locus)"

# Two hundred short processes of one program.
expect_status 0 "$hpcrun" -e CPUTIME@f10 -o family sh -c \
    'i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done'
settle family 30
n=$(grep -c 'no samples' family/index-*)
[ "$n" -ge 150 ] || fail "$n processes in the index instead of about 200"
[ "$(find family -name 'true-*.hpcrun' | wc -l)" -le 50 ] || fail "files of processes without samples"

# The companion of a running program, without what it shares with the program.
"$hpcrun" -o small sh -c './burn; sleep 3' 2>/dev/null &
started=$!
waited=0
until compgen -G 'small/.writing-*' >/dev/null || [ "$waited" = 200 ]; do
    sleep 0.05
    waited=$((waited + 1))
done
sleep 1.5
companion=$(companion_of small)
kib=$(awk '/^(RssAnon|RssFile)/ { sum += $2 } END { print sum }' "/proc/$companion/status")
echo "companion: $kib KiB"
[ "$kib" -lt 5120 ] || fail "the companion takes $kib KiB"
wait "$started" || true
finish
