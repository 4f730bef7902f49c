#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian package builds from a clean copy of the sources, and lintian finds no error in it.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need dpkg-buildpackage dh lintian git
git -C "$srcdir" rev-parse --git-dir >/dev/null 2>&1 || skip "not a clone"
mkdir "$scratch/locus"
git -C "$srcdir" archive HEAD | tar -xf - -C "$scratch/locus"
cd "$scratch/locus"
expect_status 0 env DEB_BUILD_OPTIONS="nocheck parallel=2" dpkg-buildpackage -us -uc -b
[ -n "$(ls "$scratch"/locus_*.deb 2>/dev/null)" ] || fail "there is no package"
expect_status 0 lintian --fail-on error "$scratch"/locus_*.changes
cat "$scratch/out"
dpkg-deb -c "$scratch"/locus_*.deb >"$scratch/list"
for file in usr/bin/hpcrun usr/bin/hpcprof usr/share/man/man1/hpcrun.1.gz libhpcrun.so \
    bash-completion/completions/hpcrun zsh/site-functions/_hpcrun; do
    grep -q "$file" "$scratch/list" || fail "the package lacks $file"
done
finish
