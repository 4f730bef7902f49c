/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry points that the explorer's subject calls, one row each. */
#ifndef LOCUS_TESTS_EXPLORE_ENTRIES_H
#define LOCUS_TESTS_EXPLORE_ENTRIES_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One call: what was prepared for it and what came of it. */
struct call {
    const struct entry *entry;
    void *function; /* of the row's symbol; NULL where there is none (natively our own interface) */
    char *p, *q;
    pthread_t thread;
    pid_t child;
    int fd, status;
    bool is_end; /* the mark of the end has been set by the call itself */
};

struct entry {
    const char *name, *symbol;
    unsigned flags;                     /* enum explore_flags */
    void (*prepare)(struct call *call); /* may be NULL */
    bool (*make)(struct call *call);    /* the call; whether its value is right */
    void (*finish)(struct call *call);  /* may be NULL; also after the call was left */
    uintptr_t arguments[4];
};

/* The table, ended by a row without a name. */
const struct entry *entries_table(void);

/* subject-cxx.cc: makes the call and returns 0, or 1 when an exception came out of it; and throws one. */
int cxx_catch(void (*make)(void *argument), void *argument);
void cxx_throw(void);

#endif
