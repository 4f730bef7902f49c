/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the perf.data reader (perf-data.h): checked reading of fields, and the parts that perf-data*.c share.
 * Nobody outside perf-data*.c includes it. */
#ifndef LOCUS_IMPORT_PERF_DATA_INTERNAL_H
#define LOCUS_IMPORT_PERF_DATA_INTERNAL_H

#include "import/perf-data.h"

/* Fields one after the other from a span of the file. A field beyond its end sets failed and is 0. */
struct perf_take {
    const unsigned char *bytes; /* [n_bytes] */
    size_t n_bytes, at;
    bool is_swapped, failed;
};

/* The next n_bytes (1, 2, 4, 8) as a number; 0 beyond the end. */
uint64_t perf_take_number(struct perf_take *take, unsigned n_bytes);

/* The next n_bytes, borrowed; NULL beyond the end. */
const unsigned char *perf_take_bytes(struct perf_take *take, uint64_t n_bytes);

/* A NUL-terminated string that ends inside, borrowed; NULL otherwise. Goes on behind its NUL. */
const char *perf_take_string(struct perf_take *take);

/* The span [offset, offset + n_bytes) of the file.
 * err: ERR_FORMAT when it is not inside; what names the part in the message */
int perf_data_span(const struct perf_data *data, uint64_t offset, uint64_t n_bytes, const char *what,
                   struct perf_take *take, struct error *err);

/* "NAME: offset N: reason" as ERR_FORMAT; _record: at a record, which may be in the inflated bytes. */
int perf_data_fail(const struct perf_data *data, uint64_t offset, const char *reason, struct error *err);
int perf_data_fail_record(const struct perf_data *data, const struct perf_data_record *record, const char *reason,
                          struct error *err);
int perf_data_no_memory(const struct perf_data *data, struct error *err);

/* perf-data-attr.c: appends the event whose attr has n_bytes; NULL when out of memory, or when it does not fit
 * (take->failed). */
struct perf_data_event *perf_data_add_event(struct perf_data *data, struct perf_take *take, size_t n_bytes);
bool perf_data_add_id(struct perf_data_event *event, uint64_t id);
struct perf_data_event *perf_data_event_with_id(const struct perf_data *data, uint64_t id);
/* Gives every event without a name one made from its attr; and layouts to all. */
bool perf_data_name_events(struct perf_data *data);

/* perf-data-features.c: takes one feature (its bit in the header) from its section; unknown ones are ignored.
 * err: ERR_FORMAT, ERR_MEMORY */
int perf_data_take_feature(struct perf_data *data, unsigned feature, struct perf_take *take, uint64_t offset,
                           struct error *err);
/* One build-id record. */
int perf_data_take_build_id(struct perf_data *data, struct perf_take *take, uint64_t offset, struct error *err);

/* perf-data-records.c: scans the records in [offset, offset + n_bytes) of the file; data->is_pipe: takes events and
 * features from them. Sorts by time.  err: ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY */
int perf_data_scan(struct perf_data *data, uint64_t offset, uint64_t n_bytes, struct error *err);

struct perf_inflate;

/* perf-data-inflate.c: a decompressor for the compressed records of one file; NULL when out of memory. */
struct perf_inflate *perf_inflate_new(void);
void perf_inflate_free(struct perf_inflate *inflate);

/* Appends what a compressed record holds to data->inflated.
 * err: ERR_FORMAT, ERR_UNSUPPORTED (built without libzstd), ERR_MEMORY */
int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err);

#endif
