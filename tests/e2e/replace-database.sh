#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A database is replaced all or not at all: where the new one cannot be put in place the old one stands, whatever links
# lie in it, and whichever call of hpcprof is its last.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
cd "$scratch"
${CC:-cc} -shared -fPIC -O1 -o nth-call.so "$srcdir/tests/lib/nth-call.c" || skip "no preloaded library can be built"
hpcprof=$builddir/hpcprof
python3 "$srcdir/tests/lib/make-profiles.py" --profiles 1 --nodes 60 one >/dev/null
python3 "$srcdir/tests/lib/make-profiles.py" --profiles 2 --nodes 90 two >/dev/null

# state DIRECTORY: one word for all that it holds, links included.
state() {
    (cd "$1" && find . \( -type f -exec sha256sum {} + \) -o -printf '%p %y %l\n' | sort | sha256sum)
}

expect_status 0 "$hpcprof" -q -o one-db one
expect_status 0 "$hpcprof" -q -o two-db two
old=$(state one-db) new=$(state two-db)
[ "$old" != "$new" ] || fail "the two databases are the same"

# fresh: db is the old database, beside what is nobody's business.
fresh() {
    rm -rf db db.* other
    cp -r one-db db
    mkdir other
    echo mine >other/file
}

# Links in the place of parts of it: the database is refused, and untouched.
for part in src metrics meta.db locus.db; do
    fresh
    rm -rf "db/$part"
    ln -s "$scratch/other" "db/$part"
    [ "$part" != locus.db ] || ln -sf "$scratch/one-db/locus.db" db/locus.db
    before=$(state db)
    expect_status 1 "$hpcprof" -q -o db two
    expect_text err "holds other files than a database \($part\)"
    [ "$(state db)" = "$before" ] || fail "the database with a link $part was changed"
    [ "$(cat other/file)" = mine ] || fail "what the link $part led to is gone"
done

# A link to the database stands for it.
fresh
mv db real && ln -s real db
expect_status 0 "$hpcprof" -q -o db two
[ -L db ] && [ "$(state real)" = "$new" ] || fail "the database behind a link was not replaced"
rm -rf real db
ln -s nowhere db
expect_status 1 "$hpcprof" -q -o db two
rm db

# replace ACTION N: with that happening at call N of hpcprof; $status is how it ended. The file happened: N was reached.
replace() {
    rm -f happened
    status=0
    (
        export NTH_DONE=$scratch/happened NTH_CALL=change:$2:$1 LD_PRELOAD=$scratch/nth-call.so
        exec "$hpcprof" -q -o db two
    ) >/dev/null 2>&1 || status=$?
}

# Killed at each call that changes a name: what is there is the old one or the new one, whole.
n_old=0 n_new=0
for n in $(seq 1 200); do
    fresh
    replace kill "$n"
    [ -e happened ] || break
    [ "$status" = 137 ] || fail "call $n: killed, but the status is $status"
    case $(state db) in
        "$old") n_old=$((n_old + 1)) ;;
        "$new") n_new=$((n_new + 1)) ;;
        *) fail "killed at call $n: the database is neither the old one nor the new one" ;;
    esac
done
echo "killed at each of $((n - 1)) calls: $n_old times the old database stood, $n_new times the new one"
[ "$n_old" -gt 0 ] && [ "$n_new" -gt 0 ] || fail "the calls that matter were not reached"

# And where the call fails: the same, with exit status 0 only for the new one.
for n in $(seq 1 200); do
    fresh
    replace fail "$n"
    [ -e happened ] || break
    case $status-$(state db) in
        "1-$old" | "0-$new") ;;
        *) fail "call $n failed: status $status, and the database is neither the old one nor the new one" ;;
    esac
done
[ "$n" -gt 1 ] || fail "no call failed"
finish
