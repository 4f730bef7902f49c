#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Users who share a machine: what one of them puts into a directory neither destroys another one's files nor receives
# what is measured, and files carry no more rights than the umask leaves.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need setpriv
cd "$scratch"

build_burn 0.15
chmod 755 .

# The umask of whoever starts the program holds for what is measured, in a directory that was there before, too.
mkdir -m 755 quiet
(umask 077 && exec "$hpcrun" -e CPUTIME -o quiet ./burn) 2>/dev/null || true
settle quiet
loose=$(find quiet -type f -perm /077)
[ -z "$loose" ] || fail "more than the umask 077 leaves: $(ls -l $loose)"
[ -n "$(find quiet -name '*.hpcrun')" ] || fail "nothing was measured"

[ "$(id -u)" = 0 ] || {
    skip_part "the other user's part takes root"
    finish
}
# as USER COMMAND...: with that user id, which needs no account.
as() {
    local user=$1
    shift
    setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
}

# Links in a directory where others may write lead to a file of ours. No link in a directory without sticky bit is
# protected by the kernel. Whose number the companion will have is not known: so there is one for each of the next ones.
host=$(basename "$(find quiet -name 'topology-*.xml')" .xml)
host=${host#topology-}
echo precious >precious
mkdir -m 777 open
next=$(sh -c 'echo $$')
python3 - "$host" "$next" <<'END'
import os, sys
host, first = sys.argv[1], int(sys.argv[2])
names = [f".writing-{host}-{pid}" for pid in range(first, first + 3000)]
for name in names + [f"index-{host}", f"topology-{host}.xml"]:
    os.symlink("../precious", f"open/{name}")
    os.lchown(f"open/{name}", 12346, 12346)
END
expect_status 4 "$hpcrun" -e CPUTIME -o open sh -c './burn'
expect_status 4 "$hpcrun" --append -e CPUTIME -o open sh -c 'true; exit 4'
sleep 1
[ "$(cat precious)" = precious ] || fail "a link led to a file that was overwritten: $(head -c 200 precious)"
[ -n "$(find open -name 'burn-*.hpcrun' -user 0)" ] || fail "nothing was measured: $(find open ! -name '.writing*')"

# Nobody but the measuring user may own the directory, or the link to it, unless that is wanted.
mkdir -m 777 theirs mine
chown 12346:12346 theirs
expect_status 4 "$hpcrun" -e CPUTIME -o theirs ./burn
expect_text "$scratch/err" 'theirs: belongs to user 12346'
expect_text "$scratch/err" 'runs without being measured'
[ -z "$(ls -A theirs)" ] || fail "something was written there: $(ls -A theirs)"
expect_status 1 "$hpcrun" --strict -e CPUTIME -o theirs ./burn
expect_status 1 "$hpcrun" --collect theirs
mkdir -m 777 crossing
as 12346 ln -s ../mine crossing/link
expect_status 4 "$hpcrun" -e CPUTIME -o crossing/link ./burn
expect_text "$scratch/err" 'link: is a link of user 12346'
[ -z "$(ls -A mine)" ] || fail "the link was followed: $(ls -A mine)"
expect_status 4 "$hpcrun" -e CPUTIME --foreign-directory -o theirs ./burn
settle theirs
[ -n "$(find theirs -name 'burn-*.hpcrun')" ] || fail "nothing was measured although it was allowed: $(cat "$scratch/err")"

# The directory is swapped for another while the program runs: files follow the one that was meant.
mkdir -m 777 yard
"$hpcrun" -e CPUTIME -o yard/meant sh -c 'until [ -e yard/go ]; do sleep 0.05; done; ./burn' 2>/dev/null &
started=$!
await compgen -G 'yard/meant/.writing-*'
as 12346 sh -c 'mv yard/meant yard/away; ln -s ../mine yard/meant; touch yard/go'
wait "$started" || true
settle yard/away
[ -z "$(ls -A mine)" ] || fail "files went through a link that came later: $(ls -A mine)"
[ -n "$(find yard/away -name 'burn-*.hpcrun')" ] || fail "the files did not follow their directory: $(ls -A yard/away)"
finish
