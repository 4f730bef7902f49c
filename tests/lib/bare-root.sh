#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bare-root.sh DIR COMMAND...: runs ./dev COMMAND, one after the other, in a clone of this tree (what is committed) in a
# new root of Debian 12 that holds the base system and git, nothing else: what a stranger's machine has. The root is
# made in DIR, or used when it is there already. Where packages come from is taken from this machine's apt, as are its
# settings (such as a proxy). For ./dev bare; exit status 77 and the reason where such a root cannot be made.
set -euo pipefail
dir=$1
shift
suite=bookworm
tree=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)

skip() {
    echo "SKIP: $*"
    exit 77
}

# sources: this machine's sources of Debian packages for that release, as lines of sources.list.
sources() {
    # shellcheck disable=SC2016 # apt-get expands it
    apt-get indextargets --format '$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n "s/^Debian|\(deb .* $suite.*\)/\1/p" | sort -u
}

make_root() {
    local log=$dir.log
    # Acquire::http::Proxy and the like.
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|Check-)' >"$dir.apt" || true
    sources >"$dir.list"
    [ -s "$dir.list" ] || echo "deb http://deb.debian.org/debian $suite main" >"$dir.list"
    rm -rf "$dir"
    mmdebstrap --variant=minbase --include=git,ca-certificates "--aptopt=$dir.apt" "$suite" "$dir" \
        "$dir.list" >"$log" 2>&1 || {
        tail -n 5 "$log"
        rm -rf "$dir"
        skip "mmdebstrap cannot make a root of Debian $suite here, which needs a mirror that can be reached"
    }
}

[ "$(id -u)" = 0 ] || skip "only root can make another root"
for program in mmdebstrap unshare; do
    command -v "$program" >/dev/null || skip "$program is not installed"
done
[ -e "$dir/usr/bin/git" ] || make_root
rm -f "$dir/etc/resolv.conf"
cat /etc/resolv.conf >"$dir/etc/resolv.conf" 2>/dev/null || true
rm -rf "$dir/root/locus"
git clone -q --no-hardlinks "$tree" "$dir/root/locus"

# Mounts of its own, which go with it; no variable of this machine but the proxies of the network.
status=0
for command in "$@"; do
    echo "== bare Debian: ./dev $command"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount bash -c 'set -e
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        mount --rbind /dev "$0/dev"
        exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy"} \
            ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
            bash -c "cd /root/locus && exec ./dev $1"' "$dir" "$command" </dev/null || status=1
done
exit "$status"
