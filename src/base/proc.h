/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of a process (proc(5)). Ordinary code. */
#ifndef LOCUS_BASE_PROC_H
#define LOCUS_BASE_PROC_H

#include <stdbool.h>
#include <sys/types.h>

/* Of /proc/PID/stat. */
struct proc_stat {
    char state; /* Z, X: it has ended */
    pid_t parent;
    unsigned long long user_ticks, system_ticks; /* clock ticks of CPU time */
    unsigned long long start; /* clock ticks after the boot: with its number a process is never the same again */
};

/* Asks the kernel about process pid; false, and all zero, when there is none or it cannot be asked. */
bool proc_stat_read(pid_t pid, struct proc_stat *stat);

#endif
