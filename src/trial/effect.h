/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trial and the library in the program tell each other: the table of what to do, a text that the library reads,
 * and the record of what came of it, which both map. */
#ifndef LOCUS_TRIAL_EFFECT_H
#define LOCUS_TRIAL_EFFECT_H

#include <stdatomic.h>
#include <stdint.h>

/* The environment variable that names the table. The library does nothing without it. */
#define TRIAL_TABLE_ENV "LOCUS_ACTIONS"

/* The table: a line TRIAL_TABLE_FIRST, the path of the record, the name of the action, its argument ("-": none), each
 * on a line of its own; then a line for each place, with tabs between its words: heap   FRAME...          return
 * addresses of the path of an allocation, innermost first mmap   FRAME...          the same of mmap static BYTES FRAME
 * a variable's size and address where FRAME is OFFSET@MODULE: the address as the module's file has it, in hexadecimal,
 * and the file's path. */
#define TRIAL_TABLE_FIRST "locus-actions 1"
#define TRIAL_PLACES_MAX 256
#define TRIAL_FRAMES_MAX 16 /* of one path */
#define TRIAL_TABLE_BYTES (1 << 20)

#define TRIAL_NODES_MAX 64
#define TRIAL_PIECES_MAX 64 /* of bind-to-users: parts of a block, each on a node */

/* What an action did, over all processes of a run: a file of this size, which they share. Numbers only grow. */
struct trial_effect {
    _Atomic uint64_t n_processes;       /* that read the table */
    _Atomic uint64_t n_forks;           /* children that did not call exec at once */
    _Atomic uint64_t n_places;          /* of the table, that lie in modules of a process; its most */
    _Atomic uint64_t n_blocks, n_bytes; /* that the action was done to, statics too */
    _Atomic uint64_t n_plain;    /* blocks of its places that the program got as ever: no room, or of no use to it */
    _Atomic uint64_t n_refused;  /* calls that the kernel refused ... */
    _Atomic uint64_t refused_as; /* ... and the errno of the last one */
    _Atomic uint64_t n_looks; /* times that it was looked at what became of a block: before it went, and at the end */
    _Atomic uint64_t seen_bytes;            /* of these blocks, in memory ... */
    _Atomic uint64_t huge_bytes;            /* ... and of these, on huge pages */
    _Atomic uint64_t n_pages;               /* asked for their node ... */
    _Atomic uint64_t n_on[TRIAL_NODES_MAX]; /* ... by node */
    _Atomic uint64_t n_wanted;              /* pages of these, on the node that was wanted */
    _Atomic uint64_t n_apart;   /* blocks that share no cache line with another one; that begin on another line than
                                 * the block of the action before it, in their page */
    _Atomic uint64_t n_next;    /* blocks right behind the one that was made before */
    _Atomic uint64_t n_touched; /* pages that were touched for the program */
};

#endif
