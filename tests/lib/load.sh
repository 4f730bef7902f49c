#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine on which there is little CPU time.
# usage: load.sh busy SPINNERS FORKERS SECONDS
#     processes that compute, and processes that fork and reap without pause. They end after SECONDS, soon after whoever
#     has started this has ended, and when this gets a signal. Prints a line when all of them run.
# usage: load.sh tenth COMMAND...
#     runs a command on a tenth of one processor: in a control group, of either version, that gives it no more; where none
#     can be made, at the idle policy beside a busy loop for each processor, of which it gets what they leave. Says which
#     on standard error. Exit status: the command's.
set -u

# --- busy ---

is_wanted() {
    [ "$SECONDS" -lt "$limit_s" ] && kill -0 "$self" 2>/dev/null && kill -0 "$starter" 2>/dev/null
}

spin() {
    local i
    while is_wanted; do
        for ((i = 0; i < 20000; i++)); do :; done
    done
}

fork_and_reap() {
    local i
    while is_wanted; do
        for ((i = 0; i < 100; i++)); do (:) 2>/dev/null; done
    done
}

busy() {
    local i n_spinners=$1 n_forkers=$2
    self=$$ starter=$PPID limit_s=$3
    trap 'kill $(jobs -p) 2>/dev/null; exit 143' TERM INT HUP
    for ((i = 0; i < n_spinners; i++)); do
        spin &
    done
    for ((i = 0; i < n_forkers; i++)); do
        fork_and_reap &
    done
    echo "load: $((n_spinners + n_forkers)) processes"
    wait
}

# --- tenth ---

group=
load=

# limit_by DIRECTORY FILE=VALUE...: makes the group and enters it.
limit_by() {
    local file
    mkdir "$1" 2>/dev/null || return 1
    group=$1
    shift
    for file in "$@"; do
        echo "${file#*=}" 2>/dev/null >"$group/${file%%=*}" || return 1
    done
    echo $$ 2>/dev/null >"$group/cgroup.procs"
}

# limit_v2 ROOT: the controller has to be given to the groups below the root.
limit_v2() {
    grep -qw cpu "$1/cgroup.controllers" 2>/dev/null || return 1
    grep -qw cpu "$1/cgroup.subtree_control" || echo +cpu 2>/dev/null >"$1/cgroup.subtree_control" || return 1
    limit_by "$1/locus-tenth-$$" "cpu.max=10000 100000"
}

# Processes that the command has left, such as companions, may take their time.
leave() {
    [ -z "$load" ] || kill "$load" 2>/dev/null
    [ -n "$group" ] || return 0
    echo $$ 2>/dev/null >"${group%/*}/cgroup.procs"
    local i
    for ((i = 0; i < 20; i++)); do
        rmdir "$group" 2>/dev/null && break
        sleep 0.5
    done
    group=
}

tenth() {
    trap leave EXIT
    trap 'exit 143' TERM INT HUP
    local root
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
        if limit_v2 "$root"; then
            echo "load.sh: a control group with cpu.max" >&2
            "$@"
            return
        fi
        leave
    done
    if limit_by /sys/fs/cgroup/cpu/locus-tenth-$$ cpu.cfs_period_us=100000 cpu.cfs_quota_us=10000; then
        echo "load.sh: a control group with cpu.cfs_quota_us" >&2
        "$@"
        return
    fi
    leave
    bash "$0" busy "$(nproc)" 0 86400 >/dev/null &
    load=$!
    echo "load.sh: the idle policy beside busy loops" >&2
    chrt -i 0 "$@"
}

way=${1:-}
[ $# = 0 ] || shift
case $way in
busy) busy "$@" ;;
tenth) tenth "$@" ;;
*)
    echo "usage: load.sh busy SPINNERS FORKERS SECONDS, or load.sh tenth COMMAND..." >&2
    exit 2
    ;;
esac
