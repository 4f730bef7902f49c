/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables for one metric, which several exporters print: rows with their shares and the lines that
 * access them, and the sums of the fates. Ordinary code.
 *
 * The room: report.c makes the table of variables; parts.c adds to its rows what the other chapters know
 * (shared-lines.c, first-touch.c, layout.c) and may call them all. patterns.c says how threads use a variable. split.c,
 * code-table.c, cpu-table.c, leaks.c and numa.c make tables of their own. */
#ifndef LOCUS_ANALYSIS_REPORT_REPORT_H
#define LOCUS_ANALYSIS_REPORT_REPORT_H

#include <stddef.h>

#include "analysis/build/waits.h"
#include "analysis/metrics.h"

#define REPORT_SAMPLES_MIN 50 /* with fewer no shares are shown: they would be chance */

#define ALLOCATOR_ROW "<allocator>" /* the name of rows of an allocator's own time */
#define WAITING_ROW "<waiting>"     /* ... and of waiting for other threads */

/* A source line that accesses a variable. */
struct report_line {
    uint32_t function, file, line; /* string ids */
    struct loop_lines loop;        /* the innermost one around it */
    double value;
    double touched; /* percent of all samples: first touches of pages, of what it has */
};

/* Samples of a row on one field, or on one offset without type. */
struct report_field {
    char *name;                        /* with the variable's name: "particles[].vel.x" */
    const char *path;                  /* the part after the variable's name */
    const char *type;                  /* "" = not known */
    uint32_t flags;                    /* FIELD_* */
    uint64_t offset_bytes, size_bytes; /* within an element */
    double samples;                    /* whose place is known */
    double fraction;                   /* of those of the row */
    double share;                      /* percent of all samples */
};

/* What threads share of a cache line. */
enum line_sharing {
    SHARING_FALSE = 0, /* they use different bytes of the line */
    SHARING_TRUE,      /* they use the same bytes */
    SHARING_BOTH,
    SHARING_SEEN /* the hardware says that there is some; which threads share what is not known */
};
#define LINE_SHARINGS 3 /* those before SHARING_SEEN */

/* One of the things that a thread waited for, of a row that stands for waits of one kind. */
struct report_construct {
    const char *name; /* "MPI_Send", "barrier" */
    double value;
};

/* What the time went into: percent of all CPU time, where that is known, else of all samples. They add up to 100. */
enum report_cause {
    REPORT_MEMORY = 0,
    REPORT_EXECUTION,
    REPORT_FIRST_TOUCH, /* of pages: see first-touch.h */
    REPORT_THREADS,     /* waiting for other threads */
    REPORT_KERNEL,
    REPORT_ALLOCATOR,
    REPORT_PROFILER,
    REPORT_UNVERIFIED,
    REPORT_CAUSES
};

/* Words of a cause for the head of a report, "waiting for threads", and its name in JSON and CSV, "threads". Static
 * storage. */
const char *report_cause_words(enum report_cause cause);
const char *report_cause_name(enum report_cause cause);

struct report_row {
    const struct variable *variable;  /* NULL: of samples that waited, were dropped, or are in no variable */
    const struct variable_part *part; /* the row is about this part of a stack frame; NULL = all of the variable */
    const char *name;
    const char *class;
    uint64_t size_bytes, n_blocks;
    char *site;                          /* "function (file:line)", "file:line", module, or "" */
    double value;                        /* of the metric */
    double fraction;                     /* of the variable's samples: those that waited have rows of their own */
    bool is_twin;                        /* another row has the same name, or may have: the site tells them apart */
    bool is_waiting;                     /* samples that waited; site says for what */
    struct report_construct *constructs; /* [n_constructs] what it waited for, by value, highest first */
    size_t n_constructs;
    int64_t wait;   /* what was set aside, waiting or the profiler: first label of its kind; else REPORT_NOT_WAITING */
    int fate;       /* why the samples were dropped; FATE_NAMED if they were not */
    double samples; /* as counted, if that is known */
    double share;   /* percent of all samples that were taken, dropped ones included */
    struct cause_sum causes;        /* of share, also in percent of all samples; all 0 when the report has no causes */
    double touched;                 /* percent of all samples: first touches of its pages, in whatever row they are */
    const struct variable *touches; /* whose pages most of the first touches in this row are of; NULL: it has none */
    double touches_share;           /* so much these are, percent of all samples */
    double on_shared_lines;         /* of share: at cache lines that threads share and one of them writes */
    struct report_line *lines;      /* [n_lines] by value, highest first */
    size_t n_lines, cap_lines;
    size_t n_paths;              /* allocation paths that the row stands for */
    const uint64_t *places;      /* [n_numa_nodes] samples by node, NULL = not known */
    struct report_field *fields; /* [n_fields] by samples, most first; of the metric's event, else of the first */
    size_t n_fields, cap_fields;
    const char *type;        /* of an element; NULL or "" = not known */
    const char *type_source; /* how that is known; NULL = it is not */
    uint64_t element_bytes;
    char *advice;          /* a sentence about its fields, or about its lines, NULL = none ... */
    bool advises_on_lines; /* ... it is about its cache lines, which others modify ... */
    uint64_t hot_bytes;    /* ... and how many bytes of an element the fields have that it names */
    double *derived;       /* one for each metrics_row, NAN where not defined; NULL: nothing from the hardware */
    bool is_shared[LINE_SHARINGS]; /* much of it is on lines that threads share in that way, or SHARING_BOTH: in any:
                                    * see shared_lines_mark */
};

/* A statement whose samples waited, or are the allocator's or the profiler's. */
struct report_aside {
    int64_t wait; /* the first label of the kind */
    uint32_t scope;
};

struct report {
    const struct model *model;
    size_t metric;
    double total_value, total_samples; /* of the samples taken */
    double sampled_s;                  /* time that they stand for, 0 = not known: the metric is not time */
    double user_s, system_s;           /* CPU time in the program and the kernel, with sampled_s; 0: not known */
    double system_waiting_s;           /* of system_s: in calls by which threads wait for each other */
    double calls, calls_waiting;       /* value of samples on the way back from system calls, and of such calls */
    bool is_user_only;                 /* time in the kernel gave no samples */
    bool is_leaks;                     /* the metric is bytes allocated, freed or leaked: no samples */
    bool has_too_few;                  /* fewer than REPORT_SAMPLES_MIN */
    struct waits *waits;               /* what is set aside from variables */
    double *waiting;                   /* [n_waiting] values by label of waits */
    size_t n_waiting, cap_waiting;
    struct report_aside *asides; /* [n_asides] the statements that were set aside, by wait, then by scope */
    size_t n_asides, cap_asides;
    struct variable *variables; /* [n_variables] what the rows are about: the model's, merged by site; the scopes of
                                 * each in the order of the metric, then of their bytes, highest first */
    size_t n_variables, cap_variables;
    uint32_t *variable_of;   /* [n_variables of the model] index into variables */
    struct report_row *rows; /* [n_rows] by value, highest first */
    size_t n_rows, cap_rows;
    const struct event_sum *event; /* of the metric; NULL without side files */
    struct event_sum events;       /* what it points to when several events add to the metric */
    bool has_hardware;             /* there are derived values */
    bool is_hardware;              /* the metric comes from hardware that described each access */
    bool is_work_counted;          /* remote costs are per instruction, not per load */
    struct metric_input all;       /* of all accesses */
    double *derived;               /* the same as in a row, for all accesses */
    bool has_causes;               /* what the rows were spent on is known */
    struct cause_sum causes;       /* sums over the rows */
    bool has_fields;               /* places in variables are known */
    double typed;                  /* percent of the samples in variables whose field or element has a type */
    double typed_by[TYPE_SOURCES]; /* the same by how the type is known; [0]: members of COMMON blocks */
    double recovered, named;       /* percent of the samples taken that are accesses; from the fates, else from the
                                    * tree */
    double no_access; /* percent of the samples taken: operations without access, which some hardware samples too */
    struct report_call_rank *calls_of; /* [n_variables] used while it is made */
    struct report *whole;              /* NULL: all but the rows is that one's */
    size_t n_users;                    /* who has a part of it, where it is kept */
};

/* Makes the table of variables for a metric. Rows without samples are left out unless with_unused. Heap variables of
 * the same name and site are one row; with_paths: one for each allocation path.
 * err: ERR_MEMORY */
int report_make(const struct model *model, size_t metric, bool with_unused, bool with_paths, struct report *report,
                struct error *err);
void report_fini(struct report *report);

/* Keeps the last few reports of a model, whose kept points to them, so that questions to the same database share them.
 * New ones (NULL: out of memory), and their end, before the model's. */
struct kept_reports *kept_reports_new(void);
void kept_reports_free(struct kept_reports *kept);

/* Sets is_twin [n] where a text of texts [n] (NULL is "") is there more than once; the others stay as they are. False
 * when out of memory. */
bool report_find_twins(char *const *texts, size_t n, bool *is_twin);

/* code-table.c: which one of the calls of its function that have blocks each variable is from, once they are there:
 * calls_of. False when out of memory. And the text of the site column, malloc'ed: the name of the function without
 * return type and parameters, file and line, NULL when out of memory. */
bool report_rank_calls(struct report *report);
char *report_site(const struct report *report, const struct variable *variable, uint32_t file_id, uint32_t line);

/* Whether a block is named by the place of its call in a function, "Mesh::init+0x4f0", and that place. */
bool report_place(const char *name, uint64_t *place);

/* Whether a row is called so: by its name, or, where others have that name, by it and its site: "block from init
 * (a.c:3)". */
bool report_is_named(const struct report_row *row, const char *name);

/* Says that no variable has this name, and which names are like it. Returns ERR_NOT_FOUND, or ERR_MEMORY. */
int report_refuse_variable(const struct report *report, const char *name, struct error *err);

/* Value of a metric in a row; and its samples, as counted if that is known. For a part of a stack frame it is the
 * part's fraction of the frame's: of the samples of the metric's own event. */
double report_value(const struct report *report, const struct report_row *row, size_t metric);

/* That fraction; 1 for a row that is no part. */
double report_part_fraction(const struct report *report, const struct report_row *row, size_t metric);
double report_samples(const struct report *report, const struct report_row *row, size_t metric);

/* parts.c: sets the time that the samples stand for, the CPU time in the program and in the kernel, and whether there
 * are samples enough. */
void report_set_times(struct report *report);

/* parts.c: time in the kernel, percent of the CPU time, if it deserves a row: when it gave no samples and is at least
 * half a percent; else 0. _alone: without the calls by which threads wait for each other. _least: so much that is in
 * any case, as the samples are a count. */
double report_kernel_percent(const struct report *report);
double report_kernel_alone(const struct report *report);
double report_kernel_least(const struct report *report);

/* Whether the row is not a variable: samples without one, waiting, dropped, or in memory that is no variable. */
bool report_is_special(const struct report_row *row);

/* Whether the row has several blocks, of which nearly all were freed again: their sum was hardly there at one time. */
bool report_is_turned_over(const struct report_row *row);

/* parts.c: whether the hardware found the lines of a row's loads modified in another core's cache, often enough to
 * matter (at least 20 samples and 10 % of its loads). Returns the number of those samples, 0 if not; *loads: all of
 * them. */
double report_is_seen_modified(const struct report *report, const struct report_row *row, double *loads);

/* The label of what samples of the statement scope, below one of the variable's scopes, waited for; REPORT_NOT_WAITING
 * if they did not wait. */
int64_t report_wait(const struct report *report, const struct variable *variable, uint32_t scope);

/* parts.c: the statements [n] that were set aside for the row of a kind (wait of the row), by scope. Borrowed. */
const struct report_aside *report_asides(const struct report *report, int64_t wait, size_t *n);
#define REPORT_NOT_WAITING (-1)

/* code-table.c: percent of the samples that are accesses with unknown address by code that is in no file: code that
 * the program generated at run time. */
double report_lost_in_jit(const struct report *report);

/* code-table.c: percent of the samples in memory that is known at most as a mapping: no allocation of it was seen. */
double report_without_block(const struct report *report);

/* code-table.c: how to run a program of this name without generating code, "node --jitless"; NULL when that is not
 * known. Static storage. */
const char *report_without_jit(const char *program);

/* parts.c: the fields of the rows, and the fields of one variable added to those of another (false when out of
 * memory). */
int report_add_fields(struct report *report, struct error *err);
bool report_merge_fields(struct variable *into, const struct variable *from);

/* parts.c: the event whose fields are shown for the metric: its own, else the first that has some; UINT32_MAX: none. */
uint32_t report_event_of_fields(const struct report *report);

/* layout.c: adds a sentence about the fields of a row that should lie together, apart from the others, if a few of them
 * have most of its samples: row->advice and hot_bytes. What one loop uses together stays together, and so do the parts
 * of a complex number or a small vector. Where fields give no advice, what the hardware says about shared lines does.
 * Once the causes are there: what was the first touch of a page is no use of a field.  err: ERR_MEMORY */
int report_add_advice(struct report *report, struct error *err);

/* The part of a field's path that does not say which element it is: ".x" of "[].x" and "[][].x", "%x" of "(:)%x". Of an
 * offset all. */
const char *report_path_in_element(const char *path, uint32_t flags);

/* parts.c: adds what the rows were spent on, once they are made.  err: ERR_MEMORY */
int report_add_causes(struct report *report, struct error *err);

/* How many more seconds of CPU time at the rate of this measurement would verify most of what is unverified of a row,
 * by what its samples show so far (struct cause_sum, longer): "about 20 s more would verify m". 0: nothing is
 * unverified, or a longer measurement would not verify it. */
double report_more_seconds(const struct report *report, const struct report_row *row);

/* parts.c: whether so much is unverified that the known part of memory says nothing: its number would read as if all of
 * it were known. Then the report shows a word instead, and the interval where there is room. */
bool report_is_memory_unknown(const struct cause_sum *sum);

/* parts.c: what the time went into, by enum report_cause. Time in the kernel that gave no samples is in it, so the
 * parts of the samples are smaller here than in the rows. All 0 when the report has no causes. */
void report_time_causes(const struct report *report, double percents[REPORT_CAUSES]);

/* parts.c: to which of these a row belongs that is set aside from variables, REPORT_CAUSES for all others: they have
 * parts of several. */
enum report_cause report_aside(const struct report_row *row);

/* parts.c: orders the rows by what can be changed at them: variables by memory and unverified time instead of all time,
 * those that are no variables by all time. Before them stands the row with most of what took most of the time. */
void report_order_by_memory(struct report *report);

/* parts.c: whether an event of the model's is the report's, or one of those whose sum that is. */
bool report_is_of_event(const struct report *report, uint32_t event);

/* parts.c: samples of the report's metric at a variable, as counted; 0: none, or not known. */
uint64_t report_samples_of(const struct report *report, const struct variable *variable);

/* parts.c: of these, the samples that are known to lie in the variable but not where: the instruction overwrote the
 * register that its address came from. 0: none, or not known of this event. */
uint64_t report_inexact_samples_of(const struct report *report, const struct variable *variable);

/* parts.c: what the causes of a row mean for the reader, in a few words; NULL when they say no more than its share.
 * Static storage. */
const char *report_meaning(const struct report *report, const struct report_row *row);

/* parts.c: adds what the hardware says about the rows and about everything, once the rows are made. */
int report_add_hardware(struct report *report, struct error *err);

/* parts.c: places are known by event. For a metric that several events add to, the places of the variable (one of the
 * report's) become the sums over them. */
void report_place_accesses(const struct report *report, struct variable *variable);

/* --- special rows --- */

/* The rows of a report that are no variables: what each of them means and what to do about it. The report's legend, the
 * man page and the guide are all made from this table. Ordinary code. */

#define SPECIAL_KERNEL "<kernel>" /* of CPU time, not of samples; also addresses in the kernel, which are samples */

struct special_row {
    const char *name;   /* as the row is called: "<compute>" */
    const char *origin; /* text of the column "comes from"; NULL: each row has words of its own there */
    const char *means;  /* what was sampled: words that follow the name and a colon */
    const char *advice; /* a sentence: what to do about it */
};

/* Row i of the table, NULL after the last one. */
const struct special_row *special_rows_at(size_t i);

/* The row with this name, NULL when there is none. */
const struct special_row *special_rows_find(const char *name);

#endif
