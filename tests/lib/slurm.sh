# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# A Slurm of two nodes on this machine, in $scratch, for tests that have sourced common.sh: start_slurm brings it up, the
# end of the script takes it down. Each node claims eight CPUs, so that several tasks find room on any machine.
need slurmctld slurmd srun sbatch scancel munged
[ "$(id -u)" = 0 ] || skip "only root can run slurmd"
cluster=$scratch/cluster
host=$(hostname -s)
daemons=()
export SLURM_CONF=$cluster/slurm.conf

# stop_daemon PID: ends it and waits until it has gone.
stop_daemon() {
    local waited=0
    kill "$1" 2>/dev/null || return 0
    while [ -e "/proc/$1/exe" ] && [ "$waited" -lt 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ "$waited" -lt 100 ] || kill -KILL "$1" 2>/dev/null || true
}

# remember_daemons: by their process ids, which hold even when somebody removes the directory.
remember_daemons() {
    local file
    for file in slurmd-left slurmd-right slurmctld munged; do
        [ ! -s "$cluster/$file.pid" ] || daemons+=("$(cat "$cluster/$file.pid")")
        rm -f "$cluster/$file.pid"
    done
}

stop_slurm() {
    local pid
    # Steps do not end with their daemons.
    [ ${#daemons[@]} = 0 ] || timeout 10 scancel --full --signal=KILL --user=root 2>/dev/null || true
    remember_daemons
    for pid in "${daemons[@]}"; do
        stop_daemon "$pid"
    done
    daemons=()
}
clean_up() {
    stop_slurm
}

# write_slurm_conf PROCTRACK
write_slurm_conf() {
    local port=$((20000 + $$ % 4000 * 3))
    cat >"$SLURM_CONF" <<CONF
ClusterName=locustest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/$1
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=5
SchedulerParameters=bf_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=left NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 State=UNKNOWN
NodeName=right NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8 State=UNKNOWN
PartitionName=test Nodes=left,right Default=YES MaxTime=INFINITE State=UP
CONF
    printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n' >"$cluster/cgroup.conf"
}

run_daemons() {
    munged --force --key-file="$cluster/key" --socket="$cluster/munge.sock" --pid-file="$cluster/munged.pid" \
        --log-file="$cluster/munged.log" --seed-file="$cluster/seed" || return 1
    slurmctld -c -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N left && slurmd -f "$SLURM_CONF" -N right || return 1
    local waited=0
    until [ "$(sinfo -h -o '%D %t')" = '2 idle' ] || [ "$waited" = 100 ]; do
        sleep 0.2
        waited=$((waited + 1))
    done
    [ "$waited" -lt 100 ]
}

# start_slurm PROCTRACK: 0 when it runs; otherwise the messages of the daemons are in $scratch/start.
start_slurm() {
    rm -rf "$cluster"
    mkdir -p "$cluster"/{state,spool-left,spool-right}
    chmod 755 "$scratch" "$cluster"
    dd if=/dev/urandom of="$cluster/key" bs=128 count=1 status=none
    chmod 600 "$cluster/key"
    write_slurm_conf "$1"
    local status=0
    run_daemons >"$scratch/start" 2>&1 || status=1
    remember_daemons
    return $status
}
