#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cross-run.sh ARCH SYSROOT COMMAND...: runs a command so that programs of a Debian architecture, started by whomever,
# run under qemu-user with the libraries of SYSROOT. Where the kernel keeps binary formats per user namespace (Linux
# 6.7) the interpreter is registered in one of our own and the machine is not changed; else it must be registered
# already, as the package qemu-user-static does. Exit status 77 and the reason when neither is the case.
set -euo pipefail
case $1 in
arm64) cpu=aarch64 machine='\xb7\x00' ;;
ppc64el) cpu=ppc64le machine='\x15\x00' ;;
s390x) cpu=s390x machine='\x00\x16' ;;
*)
    echo "cross-run.sh: nothing is known of the architecture $1" >&2
    exit 2
    ;;
esac
export QEMU_LD_PREFIX=$2 LOCUS_EMULATED=$1
probe=$2/sbin/ldconfig
shift 2

# The interpreter gets argv[0] as it was (P) and is opened now (F); see the kernel's binfmt-misc.rst.
# Programs and, where the last bit of the type is ignored, libraries; 64 bits, in the machine's byte order.
order='\x01' type='\x02\x00' any_type='\xfe\xff'
[ "$cpu" != s390x ] || order='\x02' type='\x00\x02' any_type='\xff\xfe'
same='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'$any_type'\xff\xff'
magic='\x7fELF\x02'$order'\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00'$type$machine
rule=":locus-$cpu:M::$magic:$same:/usr/libexec/qemu-binfmt/$cpu-binfmt-P:PF"
register='mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$0" >/proc/sys/fs/binfmt_misc/register'
if unshare -Urm bash -c "$register" "$rule" 2>/dev/null; then
    exec unshare -Urm bash -c "$register && exec \"\$@\"" "$rule" "$@"
elif "$probe" --version >/dev/null 2>&1; then
    exec "$@"
fi
echo "SKIP: programs for $cpu cannot be run: no user namespace takes binary formats of its own (Linux 6.7), and the" \
    "machine has none for them (as root: update-binfmts --enable qemu-$cpu)" >&2
exit 77
