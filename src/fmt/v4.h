/* SPDX-License-Identifier: BSD-3-Clause */
/* The four files of a version 4 database of HPCToolkit: meta.db (names, metrics, the tree of contexts), profile.db
 * (values by profile), cct.db (the same values by context) and trace.db. Plain structures; texts are borrowed from the
 * file's bytes, or from whoever fills the structures. Ordinary code. */
#ifndef LOCUS_FMT_V4_H
#define LOCUS_FMT_V4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

#define V4_BEGINS "HPCTOOLKIT"

enum v4_kind { V4_META = 0, V4_PROFILE, V4_CCT, V4_TRACE, V4_KINDS };

enum v4_scope_type { V4_SCOPE_CUSTOM = 0, V4_SCOPE_POINT, V4_SCOPE_EXECUTION, V4_SCOPE_TRANSITIVE };
enum v4_entry_kind { V4_ENTRY_UNKNOWN = 0, V4_ENTRY_MAIN, V4_ENTRY_THREAD };
enum v4_relation { V4_LEXICAL = 0, V4_CALL, V4_INLINED };
enum v4_lexical { V4_FUNCTION = 0, V4_LOOP, V4_LINE, V4_INSTRUCTION };
enum v4_context_flags { V4_HAS_FUNCTION = 1, V4_HAS_SOURCE = 2, V4_HAS_POINT = 4 };

/* Which part of the tree a value sums up. */
struct v4_scope {
    const char *name;
    uint8_t type, propagation; /* enum v4_scope_type; bit of v4_context.propagation, 255 = none */
};

/* A metric in one scope: its id in profile.db and cct.db. */
struct v4_instance {
    uint32_t scope;     /* index + 1, 0 = none */
    uint16_t metric_id; /* ids of instances and of summaries are two sets of their own */
};

/* A statistic over all profiles: its id in the summary profile. */
enum v4_combine { V4_COMBINE_SUM = 0, V4_COMBINE_MIN, V4_COMBINE_MAX };
struct v4_summary {
    uint32_t scope; /* index + 1, 0 = none */
    const char *formula;
    uint8_t combine;
    uint16_t metric_id;
};

struct v4_metric {
    const char *name;
    struct v4_instance *instances; /* [n_instances] */
    struct v4_summary *summaries;  /* [n_summaries] */
    uint16_t n_instances, n_summaries;
};

/* A copy of the file is in the database; its path is relative to that. */
#define V4_FILE_COPIED 1u

/* A load module or source file. */
struct v4_path {
    const char *path;
    uint32_t flags; /* of a file: V4_FILE_COPIED */
};

struct v4_function {
    const char *name;      /* NULL = has none */
    uint32_t module, file; /* index + 1, 0 = not known */
    uint64_t offset;       /* in the module */
    uint32_t line, flags;
};

struct v4_entry {
    const char *name;
    uint32_t ctx_id;
    uint16_t kind;                    /* enum v4_entry_kind */
    uint32_t first_child, n_children; /* contexts */
};

/* Node of the tree. Contexts are in breadth-first order, so that siblings follow each other. */
struct v4_context {
    uint32_t ctx_id;
    uint32_t parent;                  /* context + 1, 0 = an entry point */
    uint32_t first_child, n_children; /* contexts */
    uint32_t function, file, module;  /* index + 1, 0 = none; as flags say */
    uint32_t line;
    uint64_t offset;
    uint16_t propagation;
    uint8_t flags, relation, lexical; /* enum v4_context_flags, v4_relation, v4_lexical */
};

struct v4_meta {
    const char *title, *description;
    const char **kinds; /* [n_kinds] names of what identifies a profile */
    struct v4_scope *scopes;
    struct v4_metric *metrics;
    struct v4_path *modules, *files;
    struct v4_function *functions;
    struct v4_entry *entries;
    struct v4_context *contexts;
    size_t n_kinds, n_scopes, n_metrics, n_modules, n_files, n_functions, n_entries, n_contexts;
};

/* A non-zero value. id: context in profile.db, profile in cct.db. */
struct v4_cell {
    uint32_t id;
    uint16_t metric_id;
    double value;
};

/* Flag of an identifier RANK of our databases whose physical number is that of a process of a program without MPI. */
#define V4_ID_IS_PROCESS 2

struct v4_id {
    uint8_t kind;   /* index into v4_meta.kinds */
    uint16_t flags; /* bit 0: physical holds */
    uint32_t logical;
    uint64_t physical;
};

/* Values of one profile, by context and then metric. */
struct v4_profile {
    struct v4_id *ids; /* [n_ids]; none for the summary */
    uint16_t n_ids;
    uint32_t flags; /* bit 0: summary of all others */
    struct v4_cell *cells;
    size_t n_cells;
};

/* Values of one context, by metric and then profile. */
struct v4_block {
    struct v4_cell *cells;
    size_t n_cells;
};

struct v4_event {
    uint64_t time_ns;
    uint32_t ctx_id; /* 0 = idle */
};

struct v4_trace {
    uint32_t profile;
    struct v4_event *events; /* [n_events] by time */
    size_t n_events;
};

/* One file; kind says which members hold it. All zero is empty. */
struct v4_file {
    enum v4_kind kind;
    struct v4_meta meta;
    struct v4_profile *profiles; /* [n_profiles] */
    struct v4_block *blocks;     /* [n_blocks] by context id */
    struct v4_trace *traces;     /* [n_traces] */
    size_t n_profiles, n_blocks, n_traces;
    uint64_t min_time_ns, max_time_ns; /* of the traces */
    char *bytes;                       /* what the texts are borrowed from; NULL when they are somebody else's */
    struct strtab texts;               /* the same, of a file made of JSON */
};

/* Name of the file in a database directory: "meta.db", ... */
const char *v4_file_name(enum v4_kind kind);

/* Checks that the directory has meta.db, profile.db and cct.db or none of them, that they and trace.db, which need not
 * be there, are what their names say, and that none has lost its end. Looks at both ends of each file alone.
 * err: ERR_NOT_FOUND (one is missing), ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED */
int v4_check_files(const char *directory, struct error *err);

/* Reads a file; *file must be empty and is left empty on failure. name is used in messages. Memory stays within a small
 * multiple of the file's length whatever it says.
 * err: ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (another version), ERR_MEMORY */
int v4_read_memory(const char *bytes, size_t len_bytes, const char *name, struct v4_file *file, struct error *err);

/* Appends the file to out, which must be empty (pointers count from its start). What is written depends on the
 * structures alone: one of our files that is read and written again has the same bytes.
 * err: ERR_RANGE (values out of order, more than the format can hold), ERR_MEMORY */
int v4_write(const struct v4_file *file, struct buf *out, struct error *err);

struct json_take;
struct json_t;

/* Fills *file, which must be empty and is left empty on failure, from the JSON that v4_put_json writes (of jansson).
 * err: ERR_FORMAT, ERR_RANGE (more than the format can hold), ERR_MEMORY; in *take */
int v4_take_json(struct json_take *take, const struct json_t *root, struct v4_file *file);

/* Frees everything and makes the file empty. */
void v4_fini(struct v4_file *file);

/* Appends the file as text or JSON. Sets out->failed when out of memory. */
void v4_put_text(const struct v4_file *file, struct buf *out);
void v4_put_json(const struct v4_file *file, struct buf *out);

/* --- private part --- */

/* Little-endian fields at any offset of a version 4 file, with bounds checks. Its parts are found by pointers, which in
 * a damaged file may lead anywhere and to the same place many times: all that is taken through them counts against a
 * budget, a multiple of the file's length. Ordinary code. */

/* A file that is read. The first failure is remembered; after it every read gives zero. */
struct v4_in {
    const unsigned char *bytes;
    size_t len_bytes;
    const char *name;
    struct error *err;
    int code;
    uint64_t budget_bytes;
    struct v4_file *file; /* being filled */
};

struct v4_section {
    uint64_t offset, len_bytes;
};

/* An array in the file whose elements others point to. */
struct v4_table {
    uint64_t offset, stride_bytes;
    size_t n;
};

/* Checks that the file is of this kind and of a version that is known, and that its end is there; returns in->code. */
int v4_check_head(struct v4_in *in, enum v4_kind kind);

/* Remembers "<name>: offset <n>: <text>"; returns in->code. */
int v4_fail(struct v4_in *in, uint64_t offset, int code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* True when n_items of item_bytes each are there and within the budget, of which they are taken. */
bool v4_has(struct v4_in *in, uint64_t offset, uint64_t n_items, uint64_t item_bytes, const char *what);

/* The integer of n_bytes (1-8) at offset; 0 after a failure or beyond the end, which is one. */
uint64_t v4_get(struct v4_in *in, uint64_t offset, unsigned n_bytes);
double v4_get_double(struct v4_in *in, uint64_t offset);

/* The text at offset; NULL for offset 0 and after a failure. */
const char *v4_get_text(struct v4_in *in, uint64_t offset, const char *what);

/* Section i of the header; fails when it is not in the file or shorter than least_bytes. */
struct v4_section v4_get_section(struct v4_in *in, unsigned i, uint64_t least_bytes, const char *what);

/* An array: pointer at offset, u32 count after it, size of an element at stride_at (in n_stride bytes). Fails when an
 * element is smaller than least_bytes. */
struct v4_table v4_get_table(struct v4_in *in, uint64_t offset, uint64_t stride_at, unsigned n_stride,
                             uint64_t least_bytes, const char *what);

/* Index + 1 of the element that pointer is of; 0 for a null pointer; fails when it is none. */
uint32_t v4_get_index(struct v4_in *in, uint64_t pointer, const struct v4_table *table, const char *what);

/* Zeroed memory; NULL for none or after a failure. */
void *v4_alloc(struct v4_in *in, size_t n_items, size_t item_bytes);

/* Identifiers and flags of the profile whose entry of the table is at offset. */
void v4_read_profile_info(struct v4_in *in, uint64_t offset, struct v4_profile *profile);

/* The parts of reading: each fills in->file. */
void v4_read_meta(struct v4_in *in);
void v4_read_profiles(struct v4_in *in);
void v4_read_blocks(struct v4_in *in);
void v4_read_traces(struct v4_in *in);

#endif
