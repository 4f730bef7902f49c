/* SPDX-License-Identifier: BSD-3-Clause */
/* The collector: turns an arena (arena.h), of a process that has ended or still runs, into the files of its threads:
 * a profile, a log of its samples with a trace, a side file, and one log for the process. It trusts nothing in the
 * arena: every reference is checked against the published lengths, and links only lead to older records. Ordinary code.
 *
 * The room: collect.c may call all others, and does so in the order in which files are written: view.c checks the
 * arena, tree.c makes a thread's nodes, offsets.c and homes.c what is known of their addresses, variables.c the side
 * file, events.c the log of samples, log.c the process's log. live.c looks into a running process for hpcrun --status.
 */
#ifndef LOCUS_COLLECT_COLLECT_H
#define LOCUS_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "measurement/names.h"

/* What the arena does not hold. Strings may be NULL when there is no such thing; all are borrowed. */
struct collect_context {
    const char *dir; /* measurement directory, must exist */
    uint32_t host_id;
    const char *host;                 /* host name */
    const char *job_id;               /* of the batch system */
    const char *env_path;             /* value of PATH */
    const char *plan;                 /* the launcher's line: which source and why */
    const char *skid_json;            /* figures of the skid self-test */
    const char *topology;             /* file name of the hwloc XML in dir */
    const char *state;                /* "complete", "killed", "checkpoint" */
    const char *note;                 /* one more line for the log */
    uint64_t birth;                   /* as in struct objects_file */
    int64_t wall_ns;                  /* CLOCK_REALTIME less CLOCK_MONOTONIC now, 0: not on this host, or not known */
    const struct names_file *claimed; /* from collect_claim; NULL: a name is claimed by collect_write itself */
    uint64_t max_bytes; /* all files of the process together, 0: no limit; what does not fit is counted in the log */

    /* Name of symbol index (of the TLS symbols when tls) in the module table table_id, with its ELF virtual address
     * (TLS: offset in the module's segment) and size; NULL when there is none. Borrowed until the next call. May be
     * NULL. */
    const char *(*symbol)(void *ctx, uint64_t table_id, uint32_t index, bool tls, uint64_t *vaddr,
                          uint64_t *size_bytes);
    /* Start (ELF virtual address) of the function that holds vaddr in the module table; false when it is not known.
     * Lets stack variables of one function share one node. May be NULL. */
    bool (*function)(void *ctx, uint64_t table_id, uint64_t vaddr, uint64_t *start);
    void *ctx;

    /* Name of the function of the kernel that holds address, which is [*start, *end); NULL when it is not known. The
     * name stays until collect_write returns. May be NULL. */
    const char *(*kernel_function)(uint64_t address, uint64_t *start, uint64_t *end);

    /* Name of the function that the process generated at address, of which [*start, *end) is a part; NULL when it is
     * not known. The name stays until collect_write returns. May be NULL. */
    const char *(*jit_function)(void *jit, uint64_t address, uint64_t *start, uint64_t *end);
    void *jit;

    /* Name of the allocator that is linked into the executable at path; NULL when that is not known. May be NULL. */
    const char *(*allocator)(const char *path);
    /* Whether the operator new that the file at path exports calls malloc of another file. May be NULL. */
    bool (*new_is_malloc)(const char *path);
    const char *kernel; /* one word that tells this kernel's addresses from those of others; NULL: not known */
};

struct collect_result {
    size_t n_files;         /* written */
    uint64_t n_samples;     /* taken, whatever their fate */
    bool was_empty;         /* neither samples nor recorded blocks: nothing was written */
    struct names_file name; /* of the files; only thread and suffix differ */
};

/* Claims the names of a process's files: for processes that are written more than once (checkpoints). arena: mapped,
 * size_bytes long.  err: ERR_FORMAT (no arena), ERR_IO, ERR_MEMORY */
int collect_claim(const void *arena, size_t size_bytes, const struct collect_context *context, struct names_file *name,
                  struct error *err);

/* Writes the files of the process; each replaces its predecessor in one step, and files of a claimed name under another
 * MPI rank are removed. result is filled on failure, too.
 * err: ERR_FORMAT (no arena), ERR_IO, ERR_MEMORY, ERR_RANGE (more nodes or modules than a profile can hold) */
int collect_write(const void *arena, size_t size_bytes, const struct collect_context *context,
                  struct collect_result *result, struct error *err);

#endif
