#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cross-sysroot.sh ARCH DIR PACKAGE...: unpacks Debian packages of another architecture, and all that they depend on,
# into DIR. The machine's own packages and its apt are left alone (a -dev package of two architectures is often in
# conflict with itself): apt works on lists and a status of its own, in DIR.apt. Needs no root.
set -euo pipefail
arch=$1 dir=$2
shift 2
wanted="$arch $*"
[ "$(cat "$dir/.packages" 2>/dev/null)" != "$wanted" ] || exit 0

state=$dir.apt
rm -rf "$dir" "$state"
mkdir -p "$dir" "$state/lists/partial" "$state/archives/partial"
: >"$state/status"
apt_of_arch() {
    apt-get -qq -y --no-install-recommends -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" \
        -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" \
        -o "Dir::Cache::archives=$state/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o Debug::NoLocking=1 -o "APT::Sandbox::User=$(id -un)" -o Dpkg::Use-Pty=0 "$@" </dev/null
}
# A source of packages that has none for this architecture is no failure; a missing package is.
apt_of_arch update >"$state/log" 2>&1 || true
apt_of_arch --download-only install "$@" >>"$state/log" 2>&1 || {
    cat "$state/log"
    exit 1
}
for package in "$state"/archives/*.deb; do
    dpkg-deb -x "$package" "$dir"
done
# Links to absolute names mean the root of the sysroot.
find "$dir" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$dir$(readlink "$link")" "$link"
done
rm -rf "$state"
printf '%s' "$wanted" >"$dir/.packages"
