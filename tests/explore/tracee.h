/* SPDX-License-Identifier: BSD-3-Clause */
/* The explorer's hold on its subject: starting it with or without hpcrun, and one run of a call with at most one
 * injection, at one instruction. */
#ifndef LOCUS_TESTS_EXPLORE_TRACEE_H
#define LOCUS_TESTS_EXPLORE_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol.h"

#define SESSION_TASKS 64

struct session_plan {
    const char *subject, *hpcrun, *events; /* hpcrun: NULL natively */
    const char *scratch;                   /* directory for the page and the measurement */
    int patience_ms;                       /* a run that takes longer hangs */
};

/* A started subject that waits at its gate. */
struct session {
    const struct session_plan *plan;
    struct explore_page *page;
    pid_t main;
    pid_t tasks[SESSION_TASKS];           /* everything that is traced, 0 where free */
    uintptr_t base, text_start, text_end; /* of the preloaded library; 0 natively */
    int sample_fds[16], n_sample_fds;     /* perf events of the main thread */
};

enum run_where {
    RUN_PLAIN,    /* nothing is injected */
    RUN_AT_BEGIN, /* before the call */
    RUN_AT_END,   /* when it has returned */
    RUN_AT_PC,    /* before the instruction at pc, the occurrence-th time that it is reached */
    RUN_STEP      /* nothing is injected; the instructions of the library are counted */
};

enum run_result { RUN_DONE, RUN_DIED, RUN_HUNG };

struct run {
    uint32_t entry, kind, place;
    enum run_where where;
    uintptr_t pc; /* relative to the library */
    unsigned occurrence;
    uint32_t *counts;                                  /* of RUN_STEP, [text of the library in bytes], from its start */
    uintptr_t base, text_start, text_end, constructor; /* of a run that is a start */
    uintptr_t ticks_from;                              /* of a start with ticks: where the handler is installed */
    uintptr_t until;                                   /* return address of the constructor */
    /* What came of it. */
    bool is_injected;
    bool has_waited; /* the other thread could not end while this one stood still */
    int end_status;  /* of RUN_DIED, as of wait */
    /* Under way. */
    pid_t target, held;
    unsigned long n_ticks;      /* samples of KIND_TICKS */
    uintptr_t tick_pc, tick_sp; /* where the last one interrupted the thread */
    bool is_tick_sent, is_in_tick;
    bool awaits_target, is_stepping, is_skipping, was_inside, has_ended, has_continued;
    unsigned n_hits;
    int64_t held_until_ns;
};

/* Starts the subject and waits until it is at its gate. False: it did not come there; everything is cleaned up then.
 * start: what to do on the way, from the library's constructor on (RUN_AT_PC, RUN_STEP); its base, text_start and
 * text_end are those of an earlier session, which had everything at the same addresses. NULL: nothing. */
bool session_start(struct session *session, const struct session_plan *plan, struct run *start);

/* Lets it end, or ends it when it is hung. Returns its wait status. */
int session_end(struct session *session, bool by_force);

/* One run, from gate to gate. After RUN_DIED and RUN_HUNG the session can only be ended. */
enum run_result run_one(struct session *session, struct run *run);

/* Where every thread of a hung subject is, on standard output. */
void session_describe(struct session *session);

/* Loads the symbols of the library; writes SYMBOL+0xOFFSET for an address relative to it. */
void symbols_load(const char *library);
void symbols_name(uintptr_t pc, char *text, unsigned n_bytes);
uintptr_t symbols_find(const char *text); /* of SYMBOL+0xOFFSET or 0xOFFSET, 0 none */

int64_t explore_now_ns(void);

#endif
