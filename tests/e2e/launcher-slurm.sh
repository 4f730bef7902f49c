#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Under a real Slurm that tracks processes by cgroups and ends a step with its last task: a task's measurement is
# complete after a normal end and after SIGKILL of the program, and up to the last checkpoint after scancel.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
need slurmctld slurmd srun scancel munged
[ "$(id -u)" = 0 ] || skip "only root can run slurmd"
[ -d /sys/fs/cgroup/freezer ] || skip "no freezer cgroup, which proctrack/cgroup needs"
hpcrun=$builddir/hpcrun
cluster=$scratch/cluster
host=$(hostname -s)
export SLURM_CONF=$cluster/slurm.conf

stop_cluster() {
    local file
    for file in "$cluster"/slurmd.pid "$cluster"/slurmctld.pid "$cluster"/munged.pid; do
        [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
    done
}
trap 'status=$?; stop_cluster; sleep 0.5; rm -rf "$scratch"; exit "$status"' EXIT

mkdir -p "$cluster"/{state,spool}
chmod 755 "$scratch" "$cluster"
dd if=/dev/urandom of="$cluster/key" bs=128 count=1 status=none
chmod 600 "$cluster/key"
cat >"$SLURM_CONF" <<END
ClusterName=locustest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n' >"$cluster/cgroup.conf"

start_cluster() {
    munged --force --key-file="$cluster/key" --socket="$cluster/munge.sock" --pid-file="$cluster/munged.pid" \
        --log-file="$cluster/munged.log" --seed-file="$cluster/seed" || return 1
    slurmctld -c -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N "$host" || return 1
    local waited=0
    until [ "$(sinfo -h -o %t)" = idle ] || [ "$waited" = 100 ]; do
        sleep 0.2
        waited=$((waited + 1))
    done
    [ "$waited" -lt 100 ]
}
start_cluster >"$scratch/start" 2>&1 || {
    cat "$scratch/start"
    skip "Slurm does not start here"
}

cd "$scratch"
cat >burn.c <<'END'
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    volatile unsigned long x = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    while ((double)clock() / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++)
            x += i;
    return 4;
}
END
$CC -O1 burn.c -o burn

# state DIR STATE: one profile of burn, whose side file says this.
state() {
    [ "$(find "$1" -name 'burn-*.hpcrun' | wc -l)" = 1 ] || fail "not one profile in $1: $(ls -A "$1")"
    grep -Eq "\"state\": *\"$2\"" "$1"/burn-*.objects || fail "$1 is not $2"
}

expect_status 4 srun -n1 "$hpcrun" -e CPUTIME -o normal ./burn 0.5
state normal complete

expect_status 137 srun -n1 "$hpcrun" -e CPUTIME -o killed sh -c '(sleep 1; kill -KILL $$) & exec ./burn 30'
state killed killed

srun -n1 "$hpcrun" -e CPUTIME -ck CHECKPOINT_SECONDS=1 -o cancelled ./burn 60 >/dev/null 2>&1 &
task=$!
waited=0
until compgen -G 'cancelled/burn-*.objects' >/dev/null || [ "$waited" = 200 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
scancel --signal=KILL "$(squeue -h -o %i | head -n 1)"
wait "$task" || true
state cancelled '(checkpoint|killed)'
finish
