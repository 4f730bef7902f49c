# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# A C program (python3) that opens C++ modules with RTLD_LOCAL: operator new is the module's own, bad_alloc is caught in
# the module, and a module may be closed and opened again, also one that carries its own C++ library.
. "$LOCUS_SRCDIR/tests/e2e/alloc-common.sh"
command -v "$cxx" >/dev/null || skip "no C++ compiler"
python=/usr/bin/python3
[ -x $python ] || skip "no python3 of the system"

cat >"$scratch/host.py" <<'END'
import _ctypes, ctypes, sys
for i in range(4):
    libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
    print([(library.plugin_work(300), library.plugin_fail()) for library in libraries])
    for library in libraries:
        _ctypes.dlclose(library._handle)
try:
    ctypes.CDLL("/nonexistent/library.so")
except OSError as error:
    print(error)
END
plugin() {
    "$cxx" -std=c++17 -O2 -shared -fPIC -o "$scratch/$1.so" "$srcdir/tests/e2e/alloc-plugin.cc" "${@:2}"
}
plugin shared
plugin other
plugin static -static-libstdc++ -static-libgcc

for modules in shared static "shared other static"; do
    paths=()
    for module in $modules; do
        paths+=("$scratch/$module.so")
    done
    $python "$scratch/host.py" "${paths[@]}" >"$scratch/native"
    grep -q '3)' "$scratch/native" || fail "bad_alloc is not caught natively"
    for min in 1024 0; do
        expect_status 0 env LD_PRELOAD="$sink" ALLOC_SINK_MIN=$min $python "$scratch/host.py" "${paths[@]}"
        expect_same "$scratch/native" "$scratch/out"
        check_counts "python3 with $modules" 'heap=[0-9]{4,}.*new=ours'
    done
done
finish
