/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the perf tool (perf.data), written to disk or piped, of either byte order, also compressed: events, features
 * and records in order of time. The reader knows the format alone; what the samples mean is the caller's. Layout:
 * tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2). Ordinary code. */
#ifndef LOCUS_IMPORT_PERF_DATA_H
#define LOCUS_IMPORT_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "sampling/abi/perf-record.h"

/* Record types of the perf tool itself; those below 64 are the kernel's. */
enum perf_data_type {
    PERF_DATA_ATTR = 64,
    PERF_DATA_TRACING_DATA = 66,
    PERF_DATA_BUILD_ID = 67,
    PERF_DATA_FINISHED_ROUND = 68,
    PERF_DATA_ID_INDEX = 69,
    PERF_DATA_AUXTRACE_INFO = 70,
    PERF_DATA_AUXTRACE = 71,
    PERF_DATA_THREAD_MAP = 73,
    PERF_DATA_EVENT_UPDATE = 78,
    PERF_DATA_TIME_CONV = 79,
    PERF_DATA_FEATURE = 80,
    PERF_DATA_COMPRESSED = 81,
    PERF_DATA_COMPRESSED2 = 83
};

/* An event that was recorded. attr is in native order, zero where the file's is shorter. */
struct perf_data_event {
    struct perf_event_attr attr;
    struct abi_layout layout;
    char *name;    /* as perf names it, or made from the attr; never NULL */
    uint64_t *ids; /* [n_ids] that samples name it by */
    size_t n_ids, cap_ids;
};

/* The build id of a file that was mapped. */
struct perf_data_build_id {
    char *path;
    unsigned char bytes[20];
    uint8_t n_bytes;
    uint32_t pid;
};

/* An id that samples name an event by. */
struct perf_data_id {
    uint64_t id;
    size_t event;
};

/* What the file says of the kernel's tracepoints: bytes as trace-cmd's trace.dat begins, borrowed; NULL: nothing. */
struct perf_data_tracing {
    const unsigned char *bytes;
    uint64_t n_bytes, offset; /* offset: in the file */
};

/* Records that lie one behind the other, none of them earlier than the one before: what a ring of a CPU held. offset,
 * end: as in perf_data_record. */
struct perf_data_run {
    uint64_t time_ns; /* of the first */
    uint64_t offset, end;
    bool is_inflated;
};

/* Where fields lie in all records of the file. */
struct perf_data_places {
    uint32_t sample_id, sample_time; /* from the beginning of a sample; 0: not all have it, or not there */
    uint32_t trailer_time;           /* from the end of another record, the same */
    uint32_t n_trailer;              /* bytes that all others end with; UINT32_MAX: they differ */
};

/* Where a record lies and when it happened. */
struct perf_data_record {
    uint64_t time_ns; /* 0: not known; such records come first */
    uint64_t offset;  /* in the file, or in the inflated bytes */
    uint32_t n_bytes;
    uint16_t type, misc;
    bool is_inflated;
};

/* What a mapping record says. path is borrowed from the record. */
struct perf_data_mmap {
    uint32_t pid, tid;
    uint64_t start, n_bytes, file_offset;
    uint32_t protection; /* PROT_*, 0 when not known */
    bool has_protection; /* MMAP2 */
    bool is_data;        /* not executable */
    const char *path;
    const unsigned char *build_id; /* NULL: not given */
    uint8_t n_build_id;
};

/* SWITCH and SWITCH_CPU_WIDE. The thread that comes or leaves is in the trailer. */
struct perf_data_switch {
    uint32_t other_pid, other_tid; /* CPU-wide: of the thread that comes, or came before */
    bool is_out;                   /* the thread leaves its CPU */
    bool is_preempted;             /* is_out: it could go on */
    bool is_cpu_wide;
};

/* FORK and EXIT; COMM with the name, borrowed. */
struct perf_data_task {
    uint32_t pid, tid, parent_pid, parent_tid;
    const char *name;
    bool is_exec;
};

/* One file. All zero is empty. */
struct perf_data {
    char *name;                 /* for messages */
    const unsigned char *bytes; /* [n_bytes] the file */
    size_t n_bytes;
    void *mapping; /* owned, or NULL when own_bytes is */
    unsigned char *own_bytes;
    bool is_swapped, is_pipe;
    bool is_unfinished; /* perf was killed while it wrote: the header does not say where the records end */
    char *hostname, *os_release, *arch, *cpu, *cpu_id, *perf_version, *command; /* NULL: not given */
    struct perf_data_event *events;                                             /* [n_events] */
    size_t n_events, cap_events;
    struct perf_data_id *ids; /* [n_ids] of all events, found by id_slots */
    size_t n_ids, cap_ids;
    struct slots id_slots;
    struct perf_data_tracing tracing;
    bool has_clockid, has_clock;          /* of times: which clock of the kernel, and what time of day it was */
    int32_t clockid;                      /* as in clock_gettime(2) */
    uint64_t wall_ns, clock_ns;           /* has_clock: taken together */
    uint32_t n_possible, n_online;        /* CPUs, 0: not known */
    struct perf_data_build_id *build_ids; /* [n_build_ids] */
    size_t n_build_ids, cap_build_ids;
    struct perf_data_places places;
    struct buf inflated;        /* what the compressed records hold, one after the other */
    struct perf_data_run *runs; /* [n_runs] as in the file; perf_data_walk goes through them */
    size_t n_runs, cap_runs, n_records;
    uint64_t n_lost;             /* of LOST and LOST_SAMPLES records */
    uint64_t n_throttles;        /* the kernel stopped an event for the rest of a tick */
    bool has_switches;           /* SWITCH records */
    bool has_wide_switches;      /* SWITCH_CPU_WIDE records */
    bool is_system_wide;         /* the map of threads names all */
    bool has_time_conv;          /* TIME_CONV: how counts of the processor become times */
    uint64_t n_unfinished_bytes; /* is_unfinished: after the last whole record */
};

/* How a file begins that a little-endian machine wrote, and one of a big-endian machine. */
#define PERF_DATA_BEGINS "PERFILE2"
#define PERF_DATA_BEGINS_SWAPPED "2ELIFREP"

/* True when the bytes begin as a perf.data file does. */
bool perf_data_begins(const void *bytes, size_t n_bytes);

/* Opens the file at path, or reads it from a copy of bytes; *data must be empty and is left empty on failure. What is
 * in the records has not been checked then. err: ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED
 * (compressed, and built without libzstd), ERR_MEMORY
 */
int perf_data_open(const char *path, struct perf_data *data, struct error *err);
int perf_data_read_memory(const void *bytes, size_t n_bytes, const char *name, struct perf_data *data,
                          struct error *err);

/* Frees everything and makes the file empty. */
void perf_data_fini(struct perf_data *data);

/* --- records --- */

/* Goes through all records by time, those of the same time as in the file. */
struct perf_data_walk {
    const struct perf_data *data;
    struct perf_walk_key *heap;      /* [n_heap] active ones of [cap_heap], the next record's at the top */
    struct perf_walk_place *cursors; /* [cap_cursors] */
    uint32_t *order;                 /* [data->n_runs] runs by their first times */
    size_t n_heap, cap_heap, n_cursors, cap_cursors, next_run;
    bool has_taken, failed;
};

/* Begins, goes on and ends. _next: valid until the next call, NULL behind the last. _close tells when memory ran out on
 * the way.  err: ERR_MEMORY */
int perf_data_walk_open(const struct perf_data *data, struct perf_data_walk *walk, struct error *err);
const struct perf_data_record *perf_data_walk_next(struct perf_data_walk *walk);
int perf_data_walk_close(struct perf_data_walk *walk, struct error *err);

/* Whether the fields of a record, or of all, fit.  err: ERR_FORMAT, ERR_MEMORY */
int perf_data_check_record(const struct perf_data *data, const struct perf_data_record *record, struct error *err);
int perf_data_check(const struct perf_data *data, struct error *err);

/* The bytes of a record, header included; borrowed. */
const unsigned char *perf_data_bytes(const struct perf_data *data, const struct perf_data_record *record);

/* The event that a record belongs to; NULL when it names none of the file's. */
const struct perf_data_event *perf_data_event_of(const struct perf_data *data, const struct perf_data_record *record);

/* Take records apart. *event: as perf_data_event_of. Word order inside spans: data->is_swapped. A sample without a
 * period gets that of the event (1 where that is not fixed).
 * err: ERR_FORMAT (file, offset, reason) when a field does not fit the record */
int perf_data_sample(const struct perf_data *data, const struct perf_data_record *record,
                     const struct perf_data_event **event, struct abi_sample *sample, struct error *err);
int perf_data_mmap(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_mmap *mmap,
                   struct error *err);
int perf_data_task(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_task *task,
                   struct error *err);

/* SWITCH and SWITCH_CPU_WIDE, taken apart.  err: ERR_FORMAT */
int perf_data_switch(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_switch *out,
                     struct error *err);

/* The lost count of a LOST or LOST_SAMPLES record. */
uint64_t perf_data_lost(const struct perf_data *data, const struct perf_data_record *record);

/* Fields that trail a record other than a sample (where the event has sample_id_all): pid, tid, time_ns, id, stream_id
 * and cpu with their bits in present. */
void perf_data_trailer(const struct perf_data *data, const struct perf_data_record *record, struct abi_sample *out);

/* Append the file to out as text or JSON: one record a line, in order of time, with every field of a sample. */
void perf_data_put_text(const struct perf_data *data, struct buf *out);
void perf_data_put_json(const struct perf_data *data, struct buf *out);

/* Name of a record type, "RECORD <n>" for others (static or in text[32]). */
const char *perf_data_type_name(unsigned type, char text[static 32]);

/* --- private part --- */

/* For perf-data*.c only: checked reading of fields, and the parts that these files share. */

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

/* A NUL-terminated string that ends inside, borrowed; NULL otherwise. Goes on after its NUL. */
const char *perf_take_string(struct perf_take *take);

/* "NAME: offset N: reason" as ERR_FORMAT; _record: at a record, which may be in the inflated bytes. */
int perf_data_fail(const struct perf_data *data, uint64_t offset, const char *reason, struct error *err);
int perf_data_fail_record(const struct perf_data *data, const struct perf_data_record *record, const char *reason,
                          struct error *err);
int perf_data_no_memory(const struct perf_data *data, struct error *err);

/* perf-data.c: appends the event whose attr has n_bytes; NULL when out of memory, or when it does not fit
 * (take->failed). */
struct perf_data_event *perf_data_add_event(struct perf_data *data, struct perf_take *take, size_t n_bytes);
bool perf_data_add_id(struct perf_data *data, struct perf_data_event *event, uint64_t id);
struct perf_data_event *perf_data_event_with_id(const struct perf_data *data, uint64_t id);
/* Gives every event without a name one made from its attr; and layouts to all. */
bool perf_data_name_events(struct perf_data *data);

/* perf-data.c: takes one feature (its bit in the header) from its section; unknown ones are ignored.
 * err: ERR_FORMAT, ERR_MEMORY */
int perf_data_take_feature(struct perf_data *data, unsigned feature, struct perf_take *take, uint64_t offset,
                           struct error *err);
/* One build-id record. */
int perf_data_take_build_id(struct perf_data *data, struct perf_take *take, uint64_t offset, struct error *err);

/* perf-data-records.c: scans the records in [offset, offset + n_bytes) of the file; data->is_pipe: takes events and
 * features from them. Finds the runs.  err: ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY */
int perf_data_scan(struct perf_data *data, uint64_t offset, uint64_t n_bytes, struct error *err);

struct perf_inflate;

/* perf-data.c: a decompressor for the compressed records of one file; NULL when out of memory. */
struct perf_inflate *perf_inflate_new(void);
void perf_inflate_free(struct perf_inflate *inflate);

/* Appends what a compressed record holds to data->inflated.
 * err: ERR_FORMAT, ERR_UNSUPPORTED (built without libzstd), ERR_MEMORY */
int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err);

#endif
