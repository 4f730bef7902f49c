/* SPDX-License-Identifier: BSD-3-Clause */
/* The checked view of an arena: its records, modules and strings, read without trusting any of it. The process may be
 * filling the arena meanwhile, or may have damaged it. For the collector's files only. Ordinary code. */
#ifndef LOCUS_COLLECT_VIEW_H
#define LOCUS_COLLECT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "base/error.h"

/* A chunk as it was when the view was made: records published later do not exist for the view. */
struct view_chunk {
    uint32_t index; /* position in the arena */
    uint32_t thread;
    uint32_t used_bytes; /* published length of the run that begins here */
    uint16_t kind;
    uint16_t behind; /* chunks since the first one of the run */
};

struct view_module {
    uint32_t ref;
    uint32_t id;
    const char *path; /* in the arena */
    uint64_t bias, table_id, inode;
};

struct view {
    const char *base;
    const struct arena_header *header;
    uint64_t data_offset;
    uint32_t n_events;
    struct view_chunk *chunks; /* [n_chunks] by position */
    struct view_chunk *sorted; /* [n_sorted] runs by thread, kind, position */
    uint32_t n_chunks, n_sorted;
    struct view_module *modules; /* [n_modules] by ref */
    size_t n_modules;
};

/* Makes a view of a mapped arena.  err: ERR_FORMAT, ERR_MEMORY */
int view_open(struct view *view, const void *arena, size_t size_bytes, struct error *err);
void view_close(struct view *view);

/* The record at ref when all of it lies in the published part of a run of that kind, else NULL. */
const void *view_record(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes);

/* The thread that owns the record at ref, which lies in the published part of a run of that kind; 0 when none does. */
uint32_t view_owner(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes);

/* The text of a string record when all of it is there, else NULL. */
const char *view_string(const struct view *view, uint32_t ref);

/* The module of a reference, or of an id; NULL when there is none. */
const struct view_module *view_module_at(const struct view *view, uint32_t ref);
const struct view_module *view_module_with_id(const struct view *view, uint32_t id);

/* Walks the records of one thread and kind (thread 0: of all threads). Fill the first three members, the rest zero. */
struct record_walk {
    enum arena_kind kind;
    uint32_t thread;
    uint32_t record_bytes;
    uint32_t chunk, offset; /* position */
    uint32_t ref;           /* of the record that was returned */
};

/* The next record, complete as published; NULL at the end. */
const void *view_next(const struct view *view, struct record_walk *walk);

/* Copies the hit at ref. False when there is none, or when newer is not 0 and the hit is not older than newer: a list
 * of hits ends there. */
bool view_hit(const struct view *view, uint32_t ref, uint32_t newer, struct arena_hit *hit);

/* The variable that a key of VAR_SMALL stands for: VAR_HEAP with the call path of the site, as far as it is known by
 * now. Where the record is damaged it is an unknown small block, and *site is NULL. */
uint64_t view_heap_of_site(const struct view *view, uint64_t var, const struct arena_site **site);

/* Modules that execute Python, as in a database: a frame of Python stands above the native one that executes it. */
struct view_python {
    uint32_t frames;          /* the module of Python's own frames, 0: there are none */
    uint32_t interpreters[4]; /* [n] */
    size_t n;
};

/* Fills *python from the sample trees. */
void view_find_python(const struct view *view, struct view_python *python);

/* The node of the sample tree that names a sample's function: the frame of Python where the interpreter's own stand
 * below one, else node itself. */
const struct arena_node *view_shown_node(const struct view *view, const struct view_python *python,
                                         const struct arena_node *node);

/* A counter that the process may be changing. */
static inline uint64_t view_count(const _Atomic uint64_t *counter)
{
    return __atomic_load_n((const uint64_t *)counter, __ATOMIC_RELAXED);
}

#endif
