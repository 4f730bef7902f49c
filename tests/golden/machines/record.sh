#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: record.sh FILE
# Writes into FILE what hpcrun plans and its doctor says on the machine that FILE describes. When FILE does not exist
# yet, it first captures this machine: nothing but files that tell the CPU, its PMUs and perf's settings, and what the
# kernel answers to the events that hpcrun tries. HPCRUN names the hpcrun to use.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ $# = 1 ] || { sed -n 3p "$0" | cut -c3- >&2; exit 2; }
file=$1
bundle=$root/tests/lib/bundle.py
export PYTHONDONTWRITEBYTECODE=1
tool=${HPCRUN:-}
for candidate in "${LOCUS_BUILDDIR:-$root/build}/hpcrun" "$root/hpcrun" "$(command -v hpcrun || true)"; do
    [ -n "$tool" ] || [ ! -x "$candidate" ] || tool=$candidate
done
[ -n "$tool" ] || { echo "record.sh: no hpcrun found; build it, or name it in HPCRUN" >&2; exit 1; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# take PATH: copies a file of this machine to its place in $dir, if it can be read.
take() {
    [ -r "$1" ] && [ -f "$1" ] || return 0
    mkdir -p "$dir$(dirname "$1")"
    cat "$1" >"$dir$1" 2>/dev/null || rm -f "$dir$1"
}

# What the buffers of a thread may take; the rest of these files is nobody's business.
capture_limits() {
    mkdir -p "$dir/proc/self"
    grep -E '^(CapEff|Seccomp):' /proc/self/status >"$dir/proc/self/status" || true
    grep -E '^(Limit|Max locked memory) ' /proc/self/limits >"$dir/proc/self/limits" || true
    printf 'KernelPageSize: %8d kB\n' $(($(getconf PAGESIZE) / 1024)) >"$dir/proc/self/smaps"
}

capture() {
    local pmu file
    for pmu in /sys/bus/event_source/devices/{cpu,cpu_*,ibs_*,arm_spe*,armv8*,software,breakpoint}; do
        for file in "$pmu"/{type,cpumask,cpus} "$pmu"/{format,events,caps}/*; do
            take "$file"
        done
    done
    for file in perf_event_paranoid perf_event_mlock_kb perf_event_max_sample_rate kptr_restrict osrelease; do
        take /proc/sys/kernel/$file
    done
    take /sys/devices/system/cpu/vulnerabilities/meltdown
    take /sys/devices/system/cpu/online
    for file in /sys/devices/system/cpu/cpu*/regs/identification/midr_el1; do
        take "$file"
    done
    take /sys/hypervisor/type
    mkdir -p "$dir/proc"
    sed '/^[[:space:]]*$/q' /proc/cpuinfo >"$dir/proc/cpuinfo"
    sed -n '/^timebase/,$p' /proc/cpuinfo >>"$dir/proc/cpuinfo"
    capture_limits
    [ ! -d /proc/device-tree/hypervisor ] || mkdir -p "$dir/proc/device-tree/hypervisor"
}

capture_answers() {
    local case answers
    answers=$(mktemp)
    while read -r case; do
        # shellcheck disable=SC2086
        HPCRUN_RECORD_OPENS=$answers "$tool" --print-plan $case >/dev/null || true
    done < <(if [ -e "$dir/cases" ]; then grep -v '^#' "$dir/cases"; else echo "-e datacentric"; fi)
    HPCRUN_RECORD_OPENS=$answers "$tool" --doctor >/dev/null || true
    { echo "# what the kernel answered"; awk '!seen[$0]++' "$answers"; } >"$dir/opens"
    rm -f "$answers"
    printf 'Captured by record.sh: %s, Linux %s.\n' \
        "$(sed -n 's/^\(model name\|cpu\|CPU part\)[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" "$(uname -r)" \
        >"$dir/README"
}

if [ -e "$file" ]; then
    python3 "$bundle" unpack "$file" "$dir"
else
    capture
    capture_answers
fi
python3 "$here/record.py" "$tool" "$dir"
python3 "$bundle" pack "$dir" "$file" expected.txt
