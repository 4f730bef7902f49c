/* SPDX-License-Identifier: BSD-3-Clause */
/* A look into the arena of a process that still runs: how far it is, what its samples became, and which variables have
 * most of them. Reads only; the process notices nothing. Ordinary code. */
#ifndef LOCUS_COLLECT_LIVE_H
#define LOCUS_COLLECT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/error.h"

struct live_event {
    char name[64];
    uint64_t n_taken;
    uint64_t fates[FATE_MAX]; /* samples that wait for their analysis have none yet */
};

/* What samples are added up by. All but waits and blocks are of the event with addresses, or, where there is none, of
 * the first one that gives samples. */
enum live_kind {
    LIVE_VARIABLE = 0, /* key: as in arena/arena.h; of stack variables without the place in the frame */
    LIVE_CODE,         /* key: the sampled pc, in module; of Python's interpreter the Python function and line */
    LIVE_THREAD,       /* key: reference of its arena_thread */
    LIVE_CLASS,        /* key: enum hit_class */
    LIVE_WAIT,         /* BLOCKTIME: key: the pc of the call that waited, in module, or as above */
    LIVE_MEMORY,       /* blocks that are allocated and not freed, key: as that of a variable */
    LIVE_KINDS
};

struct live_sum {
    enum live_kind kind;
    uint32_t module; /* reference of an arena_module, 0 = none */
    uint64_t key;
    double n;     /* samples, with those that they stand for; blocks */
    double value; /* in the unit of the event; bytes */
};

struct live_sums {
    struct live_sum *sums; /* [n] by kind, key and module */
    size_t n, capacity;
};

/* What one look saw. */
struct live {
    char program[256], exe[ARENA_PATH_MAX];
    char tables[ARENA_PATH_MAX]; /* directory of the module tables */
    uint32_t pid, rank, state;   /* enum arena_state */
    bool is_sampling;
    uint64_t start_ns; /* CLOCK_REALTIME */
    uint64_t n_threads, n_threads_live;
    uint64_t used_bytes, limit_bytes; /* of the arena's records */
    uint64_t n_blocks, bytes;         /* recorded allocations */
    struct live_event events[ARENA_EVENTS_MAX];
    uint32_t n_events;
    int main_event; /* whose samples are added up: see enum live_kind; -1: none */
    bool has_addresses;
    char phase[ARENA_PHASE_BYTES]; /* the one that its owner has begun last; empty: none */
    bool is_paused;                /* by its owner */
    uint64_t paused_ns;            /* all pauses so far */
    uint32_t slow_least;           /* as in struct arena_header */
};

/* Looks at an arena that is mapped from base on, size_bytes long. sums: what there is to add up, which walks all
 * records; NULL: not wanted.  To be freed with live_sums_fini.  err: ERR_FORMAT (no arena), ERR_MEMORY */
int live_look(const void *base, size_t size_bytes, struct live *live, struct live_sums *sums, struct error *err);
void live_sums_fini(struct live_sums *sums);

/* Compares sums by kind, key and module, for qsort and for reading two lists together. */
int live_sum_compare(const void *a, const void *b);

/* A place in the program: ELF virtual address of a call instruction's last byte in the module at path (borrowed). Of a
 * region and of a Python function it is a number of the process, and text (borrowed) is what side files have for it. */
struct live_place {
    const char *path;
    uint64_t vaddr;
    const char *text;
};

/* Where to look up what a variable's key names. */
struct live_variable_place {
    struct live_place *frames; /* [n_frames] heap: allocation path, innermost first; stack: its function */
    size_t n_frames;
    const char *path;   /* static: module; file mapping: file */
    uint64_t table_id;  /* static: the module's table */
    const char *reason; /* unknown: the placeholder's name */
    uint32_t thread;    /* LIVE_THREAD: its number, and its name */
    char comm[ARENA_COMM_BYTES + 1];
};

/* Fills *place for a sum of the same arena; what the arena does not hold stays NULL or 0. Strings lie in the arena;
 * frames is malloc'ed, the caller frees it.  err: ERR_FORMAT, ERR_MEMORY */
int live_place(const void *base, size_t size_bytes, const struct live_sum *sum, struct live_variable_place *place,
               struct error *err);

#endif
