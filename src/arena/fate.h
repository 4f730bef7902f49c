/* SPDX-License-Identifier: BSD-3-Clause */
/* The fate of a sample is what became of it: it was recorded (named, without an address, ...) or dropped for a reason.
 * Every sample taken has exactly one fate, and every report shows the sums:
 * taken = sum of the recorded fates + sum of the dropped fates. The rows beyond FATE_TAKEN_MAX are not part of
 * "taken": they count what never became a sample. Usable in any context (the table is constant). */
#ifndef LOCUS_ARENA_FATE_H
#define LOCUS_ARENA_FATE_H

enum fate {
    /* recorded in the call tree and below DATACENTRIC, by what was found */
    FATE_NAMED = 0,            /* address found, and it lies in a known variable */
    FATE_UNKNOWN_DATA,         /* address found, in no known variable: class UNKNOWN with a reason */
    FATE_NO_ADDRESS_COMPUTE,   /* the stalled instruction and its inputs touch no memory: class "compute" */
    FATE_NO_ADDRESS_LOST,      /* a memory instruction whose address cannot be recovered */
    FATE_NO_ADDRESS_SYSCALL,   /* program counter after a system call */
    FATE_NO_ADDRESS_SOURCE,    /* the source gives no address (CPUTIME, REALTIME, ...) */
    FATE_NO_ADDRESS_NO_ACCESS, /* the hardware sampled an instruction that neither loads nor stores */
    FATE_NO_ADDRESS_WAITING,   /* in a loop that only waits for another thread */
    /* dropped */
    FATE_DROP_REENTERED,  /* the handler interrupted itself or the profiler's own code */
    FATE_DROP_NO_THREAD,  /* thread not registered (raw clone, before start or after end) */
    FATE_DROP_ARENA_FULL, /* no room to record it */
    FATE_DROP_NO_RECIPE,  /* kept raw, but its recipe or module table never came */
    FATE_DROP_RAW_FULL,   /* too many raw samples pending */
    FATE_DROP_STOPPED,    /* sampling was switched off while it was under way */
    FATE_DROP_FORKED,     /* arrived in a child of fork before the profiler restarted there */
    FATE_DROP_BAD_RECORD, /* the kernel's record of it makes no sense */
    FATE_DROP_MAX_SIZE,   /* its thread's files did not fit into what a process may write */
    FATE_TAKEN_MAX,
    /* never became a sample; estimates where the kernel gives no exact number */
    FATE_NOT_DELIVERED = FATE_TAKEN_MAX, /* overflow while the program blocked our signal, or lost by the kernel */
    FATE_IN_KERNEL,                      /* period elapsed in kernel mode (excluded) */
    FATE_OWN_FAULT,                      /* page fault of the profiler itself while it took a sample */
    FATE_MAX
};

struct fate_row {
    const char *name;     /* identifier in files, e.g. "dropped-arena-full" */
    const char *sentence; /* for reports */
};

/* The row of one fate; never NULL for 0 <= fate < FATE_MAX, NULL otherwise. */
const struct fate_row *fate_row(int fate);

/* 1 when a sample with this fate is in the trees (named, unknown or without address), 0 when it was dropped. */
int fate_is_recorded(int fate);

#endif
