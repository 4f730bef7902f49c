/* SPDX-License-Identifier: BSD-3-Clause */
/* Databases. First the metric columns of the XML form and the values of a thread in them: an inclusive and an exclusive
 * column for each metric. Ordinary code.
 *
 * The room: database.c may call all others: v4.c (with v4-by-profile.c, v4-by-context.c and v4-team.c) and experiment.c
 * write the two forms, sources.c copies sources, traces.c and values.c read and write what threads did, notes.c has the
 * texts for people. locus.db itself is fmt/locus-db.c. */
#ifndef LOCUS_DATABASE_DATABASE_H
#define LOCUS_DATABASE_DATABASE_H

#include "analysis/load/values.h"
#include "analysis/model.h"
#include "base/workers.h"
#include "structure/names/source-text.h"

/* A pair of columns. Column 2k is inclusive, 2k + 1 exclusive, for pair k. */
struct column_pair {
    char *name;    /* without " (I)" and " (E)" */
    size_t metric; /* of the model */
};

struct columns {
    struct column_pair *pairs; /* [n_pairs] */
    size_t n_pairs, capacity;
};

/* The pairs for a model: first "CPUTIME (usec)", which readers take for time, from the metric that measures time
 * (unless there is a metric of that name), then every metric.  err: ERR_MEMORY */
int columns_make(const struct model *model, struct columns *columns, struct error *err);
void columns_fini(struct columns *columns);

/* Exclusive values, the same in all forms of a database: a statement has its own; a function, inlined function, loop or
 * place has those of all that lies in it without being called or inlined. own, exclusive [n_scopes][n_metrics]. */
void columns_exclusive(const struct model *model, const double *own, double *exclusive);

/* --- sums --- */

/* The metrics that experiment.xml itself holds: sums over all threads, statistics, or the values of each thread.
 * Ordinary code. */

enum summary_kind { SUMMARY_SUM = 0, SUMMARY_STATISTICS, SUMMARY_THREADS };

enum { SUMMARY_THREADS_MAX = 100 }; /* of up to so many threads the values are written without being asked for */

struct summary {
    enum summary_kind kind;
    size_t n_columns, n_scopes, n_parts;
    size_t n_threads; /* that have been added */
    double *values;   /* [n_parts][n_scopes][n_columns] */
};

/* What follows a metric's name in the name of its part: ":Sum", ":Mean", ".[0,1]". */
void summary_put_suffix(const struct summary *summary, const struct model *model, size_t part, struct buf *out);

/* How values of a part are combined: "sum", "min", "max"; NULL: not at all. */
const char *summary_combine(const struct summary *summary, size_t part);

/* Value of a column of a part, after summary_end. */
double summary_value(const struct summary *summary, size_t part, size_t scope, size_t column);

/* --- copies of sources --- */

/* Copies of the source files that a database's tree refers to, in its directory src. Ordinary code. */

#define SOURCES_DIRECTORY "src"

struct source_copies {
    bool *is_copied; /* [n_strings] by string id of the file's name; NULL: none */
    size_t n_copied, n_missing;
    struct buf missing; /* names of the first files that are missing */
    uint64_t n_bytes;
};

/* Copies the files of scopes that find finds into directory/src, each to its own path below that. older: a database
 * whose copies are used for files that are not found, NULL = none. Files that cannot be read, or are too large for
 * sources, count as missing.  err: ERR_IO, ERR_MEMORY, ERR_USAGE (stopped) */
int sources_copy(const struct model *model, struct source_finder *find, const char *older, const char *directory,
                 const struct job *job, struct source_copies *copies, struct error *err);
void sources_fini(struct source_copies *copies);

/* Appends the name of a file in a database: that of its copy, relative to the database and after prefix, else the
 * file's own. copies: NULL = there are none. */
void sources_name(const struct source_copies *copies, const struct model *model, uint32_t file, const char *prefix,
                  struct buf *out);

/* Appends the copy of the file called name in the database at directory; NULL: there is none, and the file itself is
 * read, if its name is absolute, or what it is called below the directory where we run. False when there is none, or it
 * cannot be read. */
bool sources_read(const char *directory, const char *name, struct buf *text);

/* --- the directory --- */

/* What the measurements say of their runs (measurement/runs.h), a JSON list of objects whose members are texts; not
 * there where they say nothing. */
#define DATABASE_RUNS_FILE "runs.json"

/* A database directory: the version 4 form, and locus.db for our own tools. The XML form for older tools has a
 * directory of its own, because readers prefer it wherever they see an experiment.xml. A database is written under a
 * temporary name and put in place when complete. Ordinary code. */

/* The directory that path lies in; malloc'ed, NULL when out of memory. */
char *database_parent(const char *path);

/* Checks that a database can be written at path, before the work for it is done.  err: ERR_IO */
int database_check(const char *path, struct error *err);

struct database_job {
    const struct job *job;
    const struct value_source *source;
    const char *title;
    const char *const *search, *const *replace; /* where source files are, as in struct load_options */
    bool without_sources;                       /* source files are not copied into the database */
    const char *const *measurements;            /* [n_measurements] whose scheduler records go into the database */
    size_t n_measurements;
    bool extends; /* if sources are not found, the copies in the older database are kept */
    enum summary_kind xml_metrics;
    bool without_metric_files;    /* of the XML form */
    struct source_copies *copies; /* receives which files were copied; the caller frees it (sources_fini) */
};

/* Writes the database; it replaces an older database of ours at path but nothing else. The values come from the source;
 * the model's sums over all threads are filled in.
 * err: ERR_IO, ERR_RANGE, ERR_MEMORY, ERR_USAGE (stopped) */
int database_write(struct model *model, const char *path, const struct database_job *how, struct error *err);

/* For the members of a team other than the leader: does this member's part of the leader's database_write, with the
 * part of the model that load_measurements has given it.  err: as database_write */
int database_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err);

/* Writes the XML form into a directory of its own, by the same rules, from a model whose sums are filled in.
 * err: ERR_RANGE (a process with too many threads), ERR_IO, ERR_MEMORY, ERR_USAGE */
int database_write_xml(struct model *model, const char *path, const struct database_job *how, struct error *err);

/* Reads the locus.db of a database into *model, which model_init made; threads come without their values. path: of the
 * directory, or of that file.
 * err: ERR_NOT_FOUND (no database there), ERR_IO, ERR_FORMAT, ERR_MEMORY */
int database_read(const char *path, struct model *model, struct error *err);

/* Whether path is a database of ours, complete or not, or nothing at all: no profile of another tool, which only frames
 * know, and nothing that is read once. */
bool database_is_at(const char *path);

/* The directory of a database whose path is that of the directory or of its locus.db; malloc'ed, NULL when out of
 * memory. */
char *database_directory(const char *path);

/* --- values --- */

/* The values and traces of the threads of one of our databases, so that it can be extended without its measurements.
 * Ordinary code. */

/* Makes a source that reads the files in directory; the model was read from there, and profiles are
 * numbered as there.
 * err: ERR_IO, ERR_FORMAT (damaged, or of another database), ERR_UNSUPPORTED (made before databases could be extended),
 * ERR_MEMORY */
int database_values_open(const char *directory, const struct model *model, struct value_source *source,
                         struct error *err);

/* Restricts a model that was read from the database in a directory to some of its threads [n], by their numbers, as if
 * there had been no others, and notes the condition that they were chosen by; what is known of all threads together
 * only is not known then. After a failure the model can only be freed.  err: as database_values_open, ERR_MEMORY */
int database_choose_threads(struct model *model, const char *directory, const char *condition, const uint32_t *threads,
                            size_t n, struct error *err);

/* Passes the events of a profile's trace to take, in the order of their times.  err: ERR_MEMORY, what the source and
 * take return */
int trace_visit_in_order(const struct value_source *source, size_t profile,
                         int (*take)(void *, const struct trace_event *, size_t, struct error *), void *context,
                         struct error *err);

/* --- the XML form --- */

/* Elements of the tree in experiment.xml, numbered from 1 in the order of the document; number n is row n of the metric
 * files. 1 is the whole. Scopes have elements of their own, except instructions, whose values are also those of their
 * statements. There are two kinds of others. A function that lies
 * directly in another one, as variables and placeholders do, is put into a call site without a line: readers take the
 * line of what is around a function for that of its call. Traces can name statements only: a scope of another kind that
 * a trace names has one for that, without values, before all else that it has. */
struct xml_layout {
    uint32_t *elements;   /* [n_scopes] */
    uint32_t *calls;      /* [n_scopes] of the call site around it that no scope has, 0 = none */
    uint32_t *statements; /* [n_scopes] of the statement by which traces name it, 0 = no trace does */
    uint32_t n_elements;
    uint64_t min_time_ns, max_time_ns; /* of all traces; max_time_ns is 0 when there are none */
};

/* Ordinary code; xml_layout_fini frees the layout, on failure too.  err: ERR_RANGE (too many contexts), ERR_MEMORY,
 * what the source returns */
int xml_layout_make(const struct model *model, const struct value_source *source, struct xml_layout *layout,
                    struct error *err);
void xml_layout_fini(struct xml_layout *layout);

/* Path of a thread's file in the XML form, "<prefix><exe>-RANK-THREAD-HOST-PID-G.<suffix>"; malloc'ed. rank: index of
 * the process; thread: number in it.  err: ERR_MEMORY */
int xml_file_name(const struct model *model, const char *directory, const char *prefix, uint32_t rank, uint32_t thread,
                  const char *suffix, char **path, struct error *err);

/* Writes a .hpctrace file for each thread with a trace.  err: ERR_IO, ERR_MEMORY, ERR_USAGE (stopped) */
int xml_traces_write(const struct model *model, const struct value_source *source, const struct job *job,
                     const struct xml_layout *layout, const char *directory, struct error *err);

/* experiment.xml: metrics, names and the tree, in HPCToolkit's experiment format 2.2. Ordinary code. */

/* Appends the document to out; title: the database's name; copies: of source files, NULL = none.  err: ERR_MEMORY */
int experiment_write(const struct model *model, const struct columns *columns, const struct summary *summary,
                     const struct xml_layout *layout, const char *title, const struct source_copies *copies,
                     struct buf *out, struct error *err);

#endif
