/* SPDX-License-Identifier: BSD-3-Clause */
/* The container of trace-cmd's recordings (trace.dat, versions 6 and 7): its head, formats, options, and where the
 * pages of each CPU lie. Layout: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5). Ordinary code. */
#ifndef LOCUS_STREAMS_TRACE_DAT_H
#define LOCUS_STREAMS_TRACE_DAT_H

#include "streams/formats.h"

/* Where the pages of one CPU lie in trace_dat.data. */
struct trace_dat_cpu {
    uint32_t cpu;
    uint64_t offset, n_bytes;
};

/* One buffer of a recording: what one instance of the tracer wrote. */
struct trace_dat_buffer {
    const char *name; /* "" is the top one */
    uint64_t at;      /* of its section, or of its table of CPUs (version 6) */
    size_t cpus_at;   /* version 7: of that table in its option */
    const unsigned char *option;
    size_t n_option;
};

/* A recording. All zero is empty. */
struct trace_dat {
    const char *path; /* borrowed */
    struct error *err;
    unsigned char *map; /* the file */
    uint64_t n_map;
    unsigned version;
    bool is_big_endian, is_swapped;
    uint8_t long_bytes;
    char compression[16];         /* "none", "zlib", "zstd" */
    struct formats_input formats; /* borrowed from the file, or from inflated */
    char **inflated;              /* [n_inflated] sections that were compressed */
    size_t n_inflated, cap_inflated;
    struct trace_dat_buffer *buffers; /* [n_buffers] */
    size_t n_buffers, cap_buffers;

    /* From the options. Texts are borrowed, NULL: not given. */
    const char *clock, *uname;
    uint64_t trace_id;
    uint32_t n_cpus;
    bool has_date;
    int64_t date_ns, offset_ns; /* what is added to times: to get the time of day, and because somebody wished it */
    uint32_t mult, shift; /* counts become nanoseconds: count * mult >> shift, less count_offset; mult 0: they are */
    uint64_t count_offset;
    bool has_time_shift; /* TIME_SHIFT: how the times of a guest lie against its host's */

    /* The buffer that trace_dat_choose has found. */
    struct trace_dat_cpu *cpus; /* [n_cpu_data] */
    size_t n_cpu_data, cap_cpu_data;
    uint32_t page_bytes;
    const unsigned char *data; /* what offsets of CPUs count from: the file, or pages that were compressed */
    uint64_t n_data;
    unsigned char *pages; /* mapped, NULL when nothing was compressed */
};

/* Maps the file and reads all but the events. On failure and afterwards trace_dat_close frees everything.
 * err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY */
int trace_dat_open(const char *path, struct trace_dat *dat, struct error *err);

/* Finds the pages of a buffer by its name, NULL: the top one, and inflates them where they are compressed.
 * err: ERR_NOT_FOUND (no such buffer; those that there are are named), as trace_dat_open */
int trace_dat_choose(struct trace_dat *dat, const char *name, struct error *err);

/* Frees everything. */
void trace_dat_close(struct trace_dat *dat);

/* Fails with "PATH: offset N: TEXT".  err: ERR_FORMAT */
int trace_dat_fail(const struct trace_dat *dat, uint64_t offset, const char *text);

#endif
