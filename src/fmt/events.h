/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs of samples (.events): what the samples of one thread touched, one by one, in the order of time. A log is
 * bounded: of a thread with more samples than there is room for, every stride-th one is kept, and the number of all is
 * known. Layout: FORMAT.md. Ordinary code. */
#ifndef LOCUS_FMT_EVENTS_H
#define LOCUS_FMT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fmt/json.h"
#include "sampling/abi/data-src.h"

#define EVENTS_VERSION "01.00"
#define EVENTS_NO_METRIC UINT32_MAX
#define EVENTS_NO_OFFSET (((uint64_t)1 << 48) - 1)
#define EVENTS_INEXACT 1u /* the address is that of another element of the same block */

/* An event that gave samples. metric: index in the metric table of the profile, EVENTS_NO_METRIC for none. */
struct events_source {
    uint32_t metric;
    char *name; /* as in the side file */
};

/* What many samples have in common. node: id of the call path in the profile, as in traces; variable: id of the node
 * under which the profile declares the variable, 0 where the event yields no addresses; metrics: bits of enum
 * mem_metric (sampling/abi/data-src.h); source: index in events_file.sources; class: enum hit_class (arena.h). */
struct events_access {
    uint32_t node, variable, metrics;
    uint8_t source, class;
    uint16_t flags; /* EVENTS_INEXACT */
};

/* A sample. t_ns: on the monotonic clock of its host; access: index in events_file.accesses; lat_cycles: core cycles, 0
 * where they are not known; offset: bytes from the start of the block or symbol, in stack frames from the address down
 * to it from the CFA, EVENTS_NO_OFFSET where it is not known. */
struct events_record {
    uint64_t t_ns;
    uint32_t access, lat_cycles;
    uint64_t offset;
    uint16_t cpu;
};

/* A whole file. All zero is empty. */
struct events_file {
    char version[6]; /* EVENTS_VERSION */
    int64_t wall_ns,
        wall_at_end_ns;            /* nanoseconds since 1970 less t_ns, as the process began, and at its last writing */
    uint64_t stride;               /* a power of two */
    uint64_t n_samples;            /* that came: kept, thinned and lost */
    uint64_t n_lost;               /* kept neither for their number nor for that of others */
    struct events_source *sources; /* [n_sources] */
    struct events_access *accesses; /* [n_accesses] */
    struct events_record *records;  /* [n_records] in the order of time */
    size_t n_sources, n_accesses, n_records;
};

/* Samples that were left out because the log was full.  ctx: any */
static inline uint64_t events_thinned(const struct events_file *file)
{
    uint64_t n_accounted = file->n_records + file->n_lost;
    return file->n_samples > n_accounted ? file->n_samples - n_accounted : 0;
}

/* When a sample was taken, in nanoseconds since 1970, as all logs have it whatever their host.  ctx: any */
static inline uint64_t events_wall_ns(const struct events_file *file, const struct events_record *record)
{
    return record->t_ns + (uint64_t)file->wall_ns;
}

/* Appends the names of an access's metrics, with " + " between them. */
static inline void events_put_metrics(uint32_t metrics, struct buf *out)
{
    const char *between = "";
    for (int i = 0; i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = metrics & 1u << i ? mem_metric_row((enum mem_metric)i) : NULL;
        if (row)
            buf_printf(out, "%s%s", between, row->name);
        between = row ? " + " : between;
    }
}

/* Name of an access's class, as texts have it; class must be one of enum hit_class. Static. */
const char *events_class_name(uint8_t class);

/* Reads a whole file; *file must be empty and is left empty on failure. _memory: name is used in messages.
 * err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (version), ERR_MEMORY */
int events_read(const char *path, struct events_file *file, struct error *err);
int events_read_memory(const void *bytes, size_t len_bytes, const char *name, struct events_file *file,
                       struct error *err);

/* Appends the file's bytes to out.  err: ERR_RANGE (a number that the file has no room for), ERR_MEMORY */
int events_write(const struct events_file *file, struct buf *out, struct error *err);

/* Frees everything and makes the file empty. */
void events_fini(struct events_file *file);

/* --- as text and JSON --- */

/* Appends the log as text, or as JSON from which the same file can be made again. Sets out->failed when out of memory.
 */
void events_put_text(const struct events_file *file, struct buf *out);
void events_put_json(const struct events_file *file, struct buf *out);

/* Makes a log of such JSON; *file must be empty and is left empty on failure. Returns take->code. */
int events_take_json(struct json_take *take, const json_t *root, struct events_file *file);

#endif
