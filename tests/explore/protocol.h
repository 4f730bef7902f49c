/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the step explorer (explore.c), which traces, and its subject (subject.c), which is traced: a page that both
 * map, and marks, which are breakpoints in the subject's code with a number in a register. */
#ifndef LOCUS_TESTS_EXPLORE_PROTOCOL_H
#define LOCUS_TESTS_EXPLORE_PROTOCOL_H

#include <stdint.h>

#define EXPLORE_PAGE_ENV "EXPLORE_PAGE" /* path of the page */
#define EXPLORE_ENTRIES_MAX 192
#define EXPLORE_OUTCOME_BYTES 160
#define EXPLORE_MARK_BASE 0x10c05000u

/* What the subject has reached. */
enum explore_mark {
    MARK_GATE,  /* it waits for the next task; the outcome of the last one is in the page */
    MARK_BEGIN, /* the next instructions are the call */
    MARK_END,   /* the call has returned */
    MARK_BESIDE /* the other thread has done what it was asked to */
};

/* What happens while the call is under way. */
enum explore_kind {
    KIND_NONE,
    KIND_MALLOC,       /* a handler allocates and frees blocks of several sizes */
    KIND_FORK,         /* a handler forks a child that allocates and leaves, and waits for it */
    KIND_LONGJMP,      /* a handler jumps out of the call */
    KIND_THROW,        /* a handler throws a C++ exception through the call */
    KIND_EXIT,         /* a handler calls _exit */
    KIND_PTHREAD_EXIT, /* a handler ends its thread */
    KIND_CANCEL,       /* another thread cancels the one that calls */
    KIND_SAMPLE,       /* the signal of a sample comes */
    KIND_STOP,         /* the process is stopped and goes on */
    KIND_BESIDE,       /* another thread does the same call to its end while this one stands still */
    KIND_FORK_BESIDE,  /* another thread forks, likewise */
    KIND_EXIT_BESIDE,  /* another thread ends the process, likewise */
    KIND_KILL,         /* SIGKILL */
    KIND_TICKS,        /* the signal of a sample comes at every instruction of the library, in one call */
    KIND_COUNT
};

/* The thread that makes the call. */
enum explore_place { PLACE_MAIN, PLACE_THREAD, PLACE_CHILD };

enum explore_flags {
    ENTRY_NEW_THREAD = 1,  /* watched is the next thread that the call creates */
    ENTRY_NEW_PROCESS = 2, /* watched is the process that the call forks */
    ENTRY_IN_CHILD = 4,    /* the call ends its process: it is made in a child */
    ENTRY_MAY_MISS = 8,    /* at the end of the call nobody is left whom a signal could reach */
    ENTRY_SAMPLE = 16,     /* the call is the handler of a sample */
    ENTRY_SETTLES = 32     /* after some calls from one place the library does less at the next ones */
};

/* What the other thread is asked to do. */
enum explore_beside { BESIDE_NOTHING, BESIDE_CALL, BESIDE_FORK, BESIDE_EXIT, BESIDE_CANCEL, BESIDE_LEAVE };

struct explore_entry_info {
    char name[40];
    char symbol[56]; /* the function of libc or ours that is called */
    uint32_t flags;
};

struct explore_page {
    /* Written by the subject at its start. */
    uint32_t n_entries;
    struct explore_entry_info entries[EXPLORE_ENTRIES_MAX];
    /* Written by the explorer at the gate. */
    uint32_t entry, kind, place, is_over;
    /* For the other thread: of the subject [0], of its child [1]. A futex each. */
    uint32_t beside[2];
    /* Written by the subject. */
    int32_t n_handled;   /* runs of the handler */
    int32_t fork_status; /* of the handler's child, -1 none */
    int32_t has_returned, is_value_right, has_landed, cancel_status;
    char outcome[EXPLORE_OUTCOME_BYTES];
};

/* Stops with the number of a mark where the explorer sees it. */
static inline void explore_mark(enum explore_mark mark)
{
    __asm__ volatile("int3" : : "a"(EXPLORE_MARK_BASE + (unsigned)mark) : "memory");
}

#endif
