/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats of a kernel's tracepoints, read by libtraceevent. The library trusts what it reads, and files come from
 * anywhere: so it works in a process of its own, which gets the texts of the formats when it begins and bytes of events
 * later, and answers with texts. When it crashes or loops, the stream has no texts any more, and nothing else has
 * happened. no-traceevent.c stands in where the library is missing. Ordinary code. */
#ifndef LOCUS_STREAMS_FORMATS_H
#define LOCUS_STREAMS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* A text in a file; not NUL-terminated. */
struct formats_text {
    const char *bytes;
    size_t n_bytes;
};

/* One format as tracefs has it in events/SYSTEM/EVENT/format. */
struct formats_event {
    struct formats_text system, text;
};

/* What a recording holds for its formats. All texts are borrowed while formats_open runs. */
struct formats_input {
    const char *path;   /* for messages */
    bool is_big_endian; /* of the recording machine */
    uint8_t long_bytes; /* 4, 8 */
    uint32_t page_bytes;
    uint32_t n_cpus;
    struct formats_text header_page, kernel_symbols, printk,
        tasks;                    /* events/header_page, kallsyms, printk_formats, saved_cmdlines */
    struct formats_event *events; /* [n_events], malloc'ed by its owner */
    size_t n_events, cap_events;
};

struct stream_type;
struct stream_formats;

/* Starts the process and gives it the formats. Those that the library does not understand are left out, as the
 * library's other users do. err: ERR_UNSUPPORTED (built without the library), ERR_FORMAT (it failed on the file),
 * ERR_MEMORY, ERR_IO */
int formats_open(const struct formats_input *input, struct stream_formats **formats, struct error *err);

/* Ends the process; NULL is allowed. */
void formats_close(struct stream_formats *formats);

/* The types, [*n] by id; they are handed over to the caller, who frees them and what they hold. Once. */
struct stream_type *formats_take_types(struct stream_formats *formats, size_t *n);

/* The text of the format with a type's name ("sched/sched_switch"), as it was given; NULL: none. Borrowed. */
const char *formats_text_of(const struct stream_formats *formats, const char *name);

/* Bytes of an event. */
struct formats_record {
    const unsigned char *bytes;
    size_t n_bytes;
    int64_t t_ns;
    uint32_t cpu;
};

/* Prints events [n] (at most FORMATS_BATCH): appends for each of them its latency column and its info, each with a NUL
 * behind it.  err: ERR_FORMAT (the library has failed on this file: now, or before), ERR_MEMORY */
int formats_print(struct stream_formats *formats, const struct formats_record *records, size_t n, struct buf *out,
                  struct error *err);

enum { FORMATS_BATCH = 256 };

/* Sets the condition that formats_match asks for; "" takes it back.  err: ERR_USAGE, ERR_FORMAT, ERR_MEMORY */
int formats_set_condition(struct stream_formats *formats, const char *condition, struct error *err);

/* Whether events [n] (at most FORMATS_BATCH) are hidden by the condition: is_hidden [n].  err: as formats_print */
int formats_match(struct stream_formats *formats, const struct formats_record *records, size_t n, bool *is_hidden,
                  struct error *err);

#endif
