#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debug information names any file it likes: what hpcprof copies into a database is at most as readable as the file was,
# never what the kernel makes up, and for root only what the owner of the program could read. And whatever bytes the
# names of a program are of, terminals, CSV and JSON get text.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache LC_ALL=C.UTF-8
read -ra cc <<<"${CC:-cc}"
chmod 755 .
mkdir -m 755 files
mkdir -m 700 files/closed
echo public >files/public && chmod 644 files/public
echo mine >files/mine && chmod 600 files/mine
echo closed >files/closed/open && chmod 644 files/closed/open
ln -s /proc/self/environ files/environ
ln -s mine files/link
named=("$scratch/files/public" "$scratch/files/mine" "$scratch/files/closed/open" "$scratch/files/environ"
    "$scratch/files/link" /proc/self/environ /proc/self/fd/0 /sys/kernel/mm/transparent_hugepage/enabled /dev/null)
{
    for i in "${!named[@]}"; do
        echo "#line 1 \"${named[$i]}\""
        echo "__attribute__((noinline)) int f$i(int n) { volatile int sum = 0; for (int i = 0; i < n; i++) sum += i; return sum; }"
    done
    echo '#line 1 "main.c"'
    echo 'int main(void) { int sum = 0;'
    for i in "${!named[@]}"; do
        echo "sum += f$i(20000000);"
    done
    echo 'return sum == 1; }'
} >all.c
"${cc[@]}" -g -O1 -o program all.c
expect_status 0 "$builddir/hpcrun" -e CPUTIME -o m ./program

# copy FILE: its copy in the database; mode FILE: its permissions.
copy() {
    echo "db/src${1}"
}
mode() {
    find "$1" -printf %m
}
# no_kernel: nothing of the kernel's has been copied.
no_kernel() {
    local file
    for file in "$scratch/files/environ" /proc/self/environ /proc/self/fd/0 /sys/kernel/mm/transparent_hugepage/enabled \
        /dev/null; do
        [ ! -e "$(copy "$file")" ] || fail "$file was copied"
    done
}

(umask 022 && expect_status 0 "$builddir/hpcprof" -v -o db m 3<files/mine)
cat "$(copy "$scratch/files/public")" >/dev/null || fail "a public file was not copied"
[ "$(mode "$(copy "$scratch/files/public")")" = 644 ] || fail "the copy of a public file is not public"
for file in mine link; do
    [ "$(mode "$(copy "$scratch/files/$file")")" = 600 ] || fail "the copy of a private file ($file) is not private"
done
no_kernel

# Another user's program, and root who looks at its measurement.
if [ "$(id -u)" = 0 ] && chown 65534 program 2>/dev/null; then
    rm -rf db
    (umask 022 && expect_status 0 "$builddir/hpcprof" -v -o db m)
    [ -e "$(copy "$scratch/files/public")" ] || fail "what everybody can read was not copied"
    for file in mine link closed/open; do
        [ ! -e "$(copy "$scratch/files/$file")" ] || fail "root's $file was copied for a program of another user"
    done
    no_kernel
else
    skip_part "only root can look at a program of another user with more rights than its owner has"
fi

# A program whose name sets colours and is no UTF-8, on a terminal, in CSV and in JSON.
odd=$'odd\e[31m\x9b2J\xff,"\n'
cp program "$odd"
expect_status 0 "$builddir/hpcrun" -e CPUTIME -o odd-m "./$odd"
expect_status 0 "$builddir/hpcprof" -q -o odd-db odd-m
for form in "" --csv --json; do
    for what in vars tree; do
        # shellcheck disable=SC2086 # no word without a form
        expect_status 0 "$builddir/hpcquery" $what $form odd-db
        python3 - "$what$form" <<'CODE' || fail "hpcquery $what $form does not write text"
import csv, io, json, sys
text = open("out", "rb").read().decode("utf-8")
bad = {hex(ord(c)) for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160}
assert not bad, bad
if sys.argv[1].endswith("--json"):
    json.loads(text)
if sys.argv[1].endswith("--csv"):
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows if row}) == 1, rows[:3]
CODE
    done
done
rm -f m/*.log
mkdir "odd-dir$odd"
expect_status 1 "$builddir/hpcprof" -q -o never "odd-dir$odd"
! grep -q $'\e' err || fail "a message holds an escape character"
finish
