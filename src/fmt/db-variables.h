/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables that a locus.db names, without the model around them: for who has the tree and its values from the
 * files beside it. Ordinary code. */
#ifndef LOCUS_FMT_DB_VARIABLES_H
#define LOCUS_FMT_DB_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* How many of the classes in the file stand for data: heap, mmap, static, thread-local, stack, file. Those behind them
 * say why no variable is known. */
#define DB_CLASSES_OF_DATA 6

/* The version that is written, and the only one that is read. The file ends with tables, each with its name and its
 * length: readers skip those that they do not know, so that a new table needs no new version. */
#define DB_VERSION 7

/* Says of another version whether it is older or newer, and what to do; name: of the file.  err: ERR_UNSUPPORTED */
int db_check_version(uint64_t version, const char *name, struct error *err);

/* Texts are "" where the file says nothing. */
struct db_variable {
    const char *name, *type;      /* type: of an element */
    const char *function, *file;  /* where it is allocated or declared */
    uint32_t line;                /* 0 = not known */
    uint8_t class;                /* as in the file */
    uint64_t size_bytes;          /* of all its blocks */
    uint64_t n_blocks;            /* 0 = not of the heap */
    uint64_t element_bytes;       /* 0 = not known */
    size_t first_scope, n_scopes; /* its subtrees: scopes[first_scope]... */
    size_t first_part, n_parts;   /* of a stack frame: parts[first_part]..., none or several */
    size_t first_line, n_lines;   /* the same of lines: where samples on its parts were taken */
    size_t first_field, n_fields; /* fields[first_field]... */
};

/* A local variable of a stack frame. */
struct db_part {
    const char *name, *file, *type;
    uint32_t line;
    uint64_t element_bytes, size_bytes;
    double fraction; /* of the frame's samples, from 0 to 1 */
};

/* Samples that a line took on a local variable. */
struct db_part_line {
    uint32_t part; /* index into those of the variable */
    const char *file;
    uint32_t line;
    uint64_t n_samples;
};

/* A field of a variable, or an offset in it, of one event. */
struct db_field {
    uint32_t event; /* index into events */
    uint32_t part;  /* index into the parts of the variable; DB_NO_PART: of the variable as a whole */
    const char *name, *type;
    uint64_t size_bytes, n_samples;
};
#define DB_NO_PART UINT32_MAX

/* Samples of a field in a scope. */
struct db_field_count {
    uint32_t variable, scope, field; /* indexes; field: into those of the variable */
    uint64_t n_samples;
};

struct db_variables {
    const char **events; /* [n_events] the metric of each */
    size_t n_events;
    struct db_field *fields; /* [n_fields] */
    size_t n_fields, cap_fields;
    struct db_field_count *counts; /* [n_counts] by variable, then by scope, as in the file */
    size_t n_counts;
    const char **threads; /* [n_threads] names that the program gave its threads, "" = none; 0: no thread has one */
    size_t n_threads;
    struct db_variable *items; /* [n] */
    size_t n;
    uint32_t *scopes; /* [n_scopes] context ids of the version 4 form */
    size_t n_scopes, cap_scopes;
    struct db_part *parts; /* [n_parts] */
    size_t n_parts, cap_parts;
    struct db_part_line *lines; /* [n_lines] */
    size_t n_lines, cap_lines;
    struct strtab texts; /* owns the texts */
};

/* The word for a class of the file; "unknown" for numbers without one. */
const char *db_class_name(uint8_t class);

/* Reads the variables of a locus.db in memory; name is for messages. doc/FORMAT.md has the layout. One pass over the
 * file: the time is that of reading it once, and the memory that of the variables and of a number per string.
 * err: ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED (another version), ERR_MEMORY; *variables is empty then */
int db_variables_read(const void *bytes, size_t len_bytes, const char *name, struct db_variables *variables,
                      struct error *err);
void db_variables_fini(struct db_variables *variables);

#endif
