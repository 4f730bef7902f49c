# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# A Slurm of one node in $scratch, for tests that have sourced common.sh: start_slurm brings it up, the end of the script
# takes it down. The node claims eight CPUs, so that several tasks find room on any machine.
need slurmctld slurmd srun sbatch scancel munged
[ "$(id -u)" = 0 ] || skip "only root can run slurmd"
cluster=$scratch/cluster
host=$(hostname -s)
export SLURM_CONF=$cluster/slurm.conf

stop_slurm() {
    local file
    for file in slurmd slurmctld munged; do
        [ ! -s "$cluster/$file.pid" ] || kill "$(cat "$cluster/$file.pid")" 2>/dev/null || true
        rm -f "$cluster/$file.pid"
    done
}
trap 'status=$?; stop_slurm; sleep 0.5; rm -rf "$scratch"; exit "$status"' EXIT

# write_slurm_conf PROCTRACK
write_slurm_conf() {
    local port=$((20000 + $$ % 5000 * 2))
    cat >"$SLURM_CONF" <<CONF
ClusterName=locustest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
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
SlurmdParameters=config_overrides
ProctrackType=proctrack/$1
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=5
SchedulerParameters=bf_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=test Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n' >"$cluster/cgroup.conf"
}

run_daemons() {
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

# start_slurm PROCTRACK: 0 when it runs; otherwise what the daemons said is in $scratch/start.
start_slurm() {
    rm -rf "$cluster"
    mkdir -p "$cluster"/{state,spool}
    chmod 755 "$scratch" "$cluster"
    dd if=/dev/urandom of="$cluster/key" bs=128 count=1 status=none
    chmod 600 "$cluster/key"
    write_slurm_conf "$1"
    run_daemons >"$scratch/start" 2>&1
}
