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
for package in locus python3-locus locus-mpich locus-openmpi; do
    [ -n "$(ls "$scratch/$package"_*.deb 2>/dev/null)" ] || fail "there is no package $package"
done
expect_status 0 lintian --fail-on error "$scratch"/locus_*.changes
cat "$scratch/out"
dpkg-deb -c "$scratch"/locus_*.deb >"$scratch/list"
for file in usr/bin/hpcrun usr/bin/hpcprof usr/share/man/man1/hpcrun.1.gz libhpcrun.so \
    bash-completion/completions/hpcrun zsh/site-functions/_hpcrun; do
    grep -q "$file" "$scratch/list" || fail "the package lacks $file"
done
# has PACKAGE FILE...
has() {
    local package=$1 file
    shift
    dpkg-deb -c "$scratch/$package"_*.deb >"$scratch/list"
    for file; do grep -q "$file" "$scratch/list" || fail "the package $package lacks $file"; done
}
has locus usr/share/man/man1/hpcprof-mpi.1.gz liblocus.so usr/include/locus
has python3-locus dist-packages/locus/__init__.py dist-packages/locus/py.typed
! grep -q python3/dist-packages "$scratch/list" || ! dpkg-deb -c "$scratch"/locus_*.deb | grep -q dist-packages ||
    fail "two packages have the same files"

# As root they are installed into a root of their own, and the database of hpcprof-mpi is that of hpcprof.
root=$scratch/root
for package in locus python3-locus locus-mpich locus-openmpi; do
    dpkg-deb -x "$scratch/$package"_*.deb "$root"
done
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
printf 'int main(void) { volatile double x = 1; for (int i = 0; i < 100000000; i++) x *= 1.0000001; return 0; }' |
    gcc -O1 -g -x c -o busy -
expect_status 0 "$root/usr/bin/hpcrun" -o m ./busy
expect_status 0 "$root/usr/bin/hpcprof" -q -o db m
for mpi in mpich openmpi; do
    case $mpi in
    mpich) launch=(mpiexec.mpich -n 2) ;;
    openmpi) launch=(mpirun.openmpi --oversubscribe -n 2) ;;
    esac
    expect_status 0 timeout 120 "${launch[@]}" "$root/usr/bin/hpcprof-mpi.$mpi" -q -o "db-$mpi" m
    diff -r db "db-$mpi" >difference || fail "$mpi writes another database: $(head -3 difference)"
done
expect_status 0 env PYTHONPATH="$root/usr/lib/python3/dist-packages" LD_LIBRARY_PATH="$(dirname "$(find "$root" -name liblocus.so.0)")" \
    /usr/bin/python3 -c 'import locus; print(locus.__version__, len(locus.Session("db").ask("vars")["variable"]) > 0)'
expect_text out '^[0-9.]+ True$'
finish
