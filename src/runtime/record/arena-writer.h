/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing into the arena of this process: chunks, records, strings. See arena/arena.h for the layout. */
#ifndef LOCUS_RUNTIME_RECORD_ARENA_WRITER_H
#define LOCUS_RUNTIME_RECORD_ARENA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"

/* Where one thread writes one kind of record. All zero: no chunk yet. Not shared between threads, nor between the
 * signal handler and other code of a thread. */
struct arena_cursor {
    char *start, *position, *end; /* of the run of chunks */
    struct arena_chunk *chunk;    /* the first of the run */
};

/* Makes base the arena of this process (NULL: none). The mapping must remain.  ctx: ordinary, no other thread records
 */
void arena_attach_sig(void *base);

/* Maps the companion's memory file fd as the arena of this process, in place of the present one. False when it is no
 * valid arena: the process then has none.  ctx: ordinary, no other thread records */
bool arena_map_sig(int fd, uint64_t n_bytes);

/* Number of bytes of the arena that are in use.  ctx: any thread; there must be an arena */
uint64_t arena_used_bytes(void);

/* In a child of fork: fills its new arena, the memory file fd, from its parent's, which is still mapped where the new
 * one will be. False when that is not possible: the child's references would then lead nowhere.  ctx: ordinary,
 * single-threaded */
bool arena_inherit(int fd);

/* Header of the arena, NULL when there is none.  ctx: any */
struct arena_header *arena_header_sig(void);

/* Space for a record of n_bytes (rounded up to ARENA_UNIT), zeroed, not yet visible to readers: fill it, then publish
 * the cursor. thread: reference of the owner, 0 = shared. NULL when the arena is full.  ctx: any */
void *arena_reserve_sig(struct arena_cursor *cursor, enum arena_kind kind, uint32_t thread, size_t n_bytes);

/* Takes n_chunks chunks at once, for records of different kinds that will soon be written; false when there are not so
 * many. _touch: gives all of them memory, so that using them causes no page faults that are sampled. _part: begins a
 * run of a kind with the next n_chunks of them; *part is for arena_reserve_sig. Leaves *part as it is when there are
 * not so many.  ctx: any */
bool arena_take_sig(struct arena_cursor *all, uint32_t n_chunks);
void arena_touch_sig(const struct arena_cursor *all);
void arena_part_sig(struct arena_cursor *all, struct arena_cursor *part, enum arena_kind kind, uint32_t thread,
                    uint32_t n_chunks);

/* Publishes everything reserved through the cursor so far.  ctx: any */
void arena_publish_sig(struct arena_cursor *cursor);

/* The reference of a record, and the record of a reference.  ctx: any */
uint32_t arena_ref_sig(const void *record);
void *arena_record_sig(uint32_t ref);

/* Records shared by the process (threads, modules, strings) are reserved under one short lock. _begin returns false
 * when the lock is held (retry later; a signal handler must not wait); then reserve and fill; _end publishes. Signals
 * are blocked in between.  ctx: any */
bool arena_shared_begin_sig(void);
void *arena_shared_reserve_sig(enum arena_kind kind, size_t n_bytes);
void arena_shared_end_sig(void);

/* Between arena_shared_begin_sig and _end: copies text into the arena; 0 when it is full.  ctx: any */
uint32_t arena_shared_string_sig(const char *text);

/* The place of a text [len] in a table of references of arena_string by the hash of their texts; n: of the table, a
 * power of two. It is the text's own or a free one, which holds 0; NULL: neither is near.  ctx: any */
_Atomic uint32_t *arena_string_place_sig(_Atomic uint32_t *table, uint32_t n, const char *text, size_t len);

/* In a child of fork: resets the lock and the shared cursors.  ctx: ordinary, single-threaded */
void arena_shared_reset_sig(void);

/* Address range of the arena, for classifying faults on it; both 0 when there is none.  ctx: any */
void arena_range_sig(uintptr_t *low, uintptr_t *high);

/* Appends one line (given without newline) to the arena's log; truncated when the log is full.  ctx: any */
void arena_log_sig(const char *text);

/* Notes a child of the process for the companion (state: CHILD_STARTED or a later one; name may be NULL: the process's
 * own). A note that finds no room counts as lost; true when room is getting short. _forget takes a note back.
 * ctx: any, also in the child after vfork */
bool arena_note_child_sig(enum arena_child_state state, uint32_t pid, const char *name);
void arena_forget_child_sig(uint32_t pid);

/* Asks the companion for something (enum arena_request_kind) and rings its bell; false when the ring is full: ask
 * again later.  ctx: any */
bool arena_request_sig(enum arena_request_kind kind, uint32_t module, uint32_t pc);

/* Rings the companion's bell: the companion then looks at requests and at notes of children.  ctx: any */
void arena_ring_sig(void);

/* _set: the pipe to write to after a request, which only this process and its companion have. _bell: its descriptor; -1
 * if there is none or the program has closed it, even if its number is in use again.  ctx: _set ordinary, _bell any */
void arena_set_bell_sig(int fd);
int arena_bell_sig(void);

/* --- lines of HPCRUN_DEBUG --- */

/* They go into the arena as records do, without a lock, so that they can be written everywhere, and outlive the
 * process. A word of a line, "NAME=VALUE": a number, from 2^20 on in hexadecimal, or a text where there is one. */
struct debug_word {
    const char *name;
    uint64_t number;
    const char *text;
};

/* Whether lines of a domain are wanted at this level. Off it is two loads and a branch.  ctx: any */
bool debug_wants_sig(enum debug_domain domain, unsigned level);

/* Writes a line: what happened, and n words. One that finds no room is counted, and one that is too long is cut.
 * ctx: any */
void debug_note_sig(enum debug_domain domain, const char *what, const struct debug_word *words, unsigned n);

/* The same of a sample, with what became of it (enum fate).  ctx: any */
void debug_note_sample_sig(const char *what, int fate, const struct debug_word *words, unsigned n);

/* The two together; the words are only worked out where the line is wanted. */
#define DEBUG_NOTE_SIG(domain, level, what, ...)                                                                       \
    do {                                                                                                               \
        if (__builtin_expect(debug_wants_sig(domain, level), 0)) {                                                     \
            const struct debug_word words_[] = {__VA_ARGS__};                                                          \
            debug_note_sig(domain, what, words_, sizeof words_ / sizeof *words_);                                      \
        }                                                                                                              \
    } while (0)

#endif
