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

struct live_variable {
    uint64_t var; /* key as in arena/arena.h; of stack variables without the place in the frame */
    uint64_t n_samples;
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
    int address_event;          /* the first one with data addresses, whose samples the variables are of; -1: none */
    uint64_t n_address_samples; /* of it, with an address or without */
    struct live_variable *variables; /* [n_variables] by samples, highest first */
    size_t n_variables;
};

/* Looks at an arena that is mapped from base on, size_bytes long. with_variables: the table of them too, which walks
 * all records.  err: ERR_FORMAT (no arena), ERR_MEMORY */
int live_look(const void *base, size_t size_bytes, bool with_variables, struct live *live, struct error *err);
void live_fini(struct live *live);

/* A place in the program: ELF virtual address of a call instruction's last byte in the module at path (borrowed). */
struct live_place {
    const char *path;
    uint64_t vaddr;
};

/* Where to look up what a variable's key names. */
struct live_variable_place {
    struct live_place *frames; /* [n_frames] heap: allocation path, innermost first; stack: its function */
    size_t n_frames;
    const char *path;   /* static: module; file mapping: file */
    uint64_t table_id;  /* static: the module's table */
    const char *reason; /* unknown: the placeholder's name */
};

/* Fills *place for a key of the same arena; what the arena does not hold stays NULL or 0. Strings lie in the arena;
 * frames is malloc'ed, the caller frees it.  err: ERR_FORMAT, ERR_MEMORY */
int live_place(const void *base, size_t size_bytes, uint64_t var, struct live_variable_place *place, struct error *err);

#endif
