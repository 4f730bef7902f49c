/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be asked, and who answers. A report is one struct report_kind in its own file and one row in reports.c; its
 * verb, its help, its part of the man page, the completion of the shell and the refusal of options that it does not use
 * come from that. Ordinary code. */
#ifndef LOCUS_ANSWER_ANSWER_H
#define LOCUS_ANSWER_ANSWER_H

#include "analysis/report/code-table.h"
#include "table/table.h"

struct thread_values;

/* What a question may say beside the name of its report. hpcquery's options have the same numbers. */
enum ask {
    ASK_CSV = 1,
    ASK_JSON,
    ASK_HTML,
    ASK_TOP,
    ASK_METRIC,
    ASK_ALL,
    ASK_PATHS,
    ASK_BY,
    ASK_VARIABLE,
    ASK_INCREASES,
    ASK_BEYOND_NOISE,
    ASK_MARK,
    ASK_ORDER,
    ASK_FIELDS,
    ASK_INSTRUCTIONS,
    ASK_MIN,
    ASK_DERIVE,
    ASK_PROFILES,
    ASK_TREE,
    ASK_OUTPUT,
    ASK_VERBOSE,
    ASK_COUPLEBREAK,
    ASK_TOPOLOGY,
    ASK_VIEW,
    ASK_OFFSET,
    ASK_BUFFER,
    ASK_FROM,
    ASK_TO,
    ASK_TASK,
    ASK_CPU,
    ASK_EVENT,
    ASK_SLICES,
    ASK_SESSION,
    ASK_SAVE_SESSION,
    ASK_AT,
    ASK_WIDTH,
    ASK_ROWS_OF,
    ASK_ROW,
    ASK_START,
    ASK_COUNT,
    ASK_NS,
    ASK_FILTER,
    ASK_FIND,
    ASK_NEXT,
    ASK_PREVIOUS,
    ASK_LINES,
    ASK_STREAM,
    ASK_BASE,
    ASKS
};

/* Such things as a set. */
#define ASK(what) (UINT64_C(1) << (ASK_##what))
#define ASK_ROWS (ASK(TOP) | ASK(METRIC) | ASK(MIN))

/* Sets of enum split_by (analysis/report/code-table.h): what --by takes. */
#define BY(split) (1u << (SPLIT_##split))
#define BY_PLACE (BY(CPU) | BY(CORE) | BY(PACKAGE) | BY(NODE))
#define BY_THREAD (BY(THREAD) | BY(PROCESS) | BY(RANK) | BY_PLACE | BY(REGION) | BY(PHASE))

/* What the user asked for. */
struct export_job {
    const struct model *model;
    struct items *items;                /* of the metric, as far as they were asked for before; NULL: none are kept */
    const char *report, *form;          /* its name; "text", "csv", "json" or "html" */
    const struct thread_values *values; /* by context, for statistics over threads; NULL = none. All values of threads:
                                         * database_values_open */
    const char *directory;              /* of the database */
    const char *subject; /* annotate: the file or function; cpus, patterns, sharing: the variable, NULL: all */
    size_t metric;
    size_t top;       /* rows at most; 0 = all */
    bool fits_screen; /* vars, text: fewer rows and words where that makes the report fit one screen */
    bool is_tight;    /* ... and no legends, to leave the room to rows */
    bool with_unused; /* variables without samples too; annotate: lines without samples */
    bool with_paths;  /* heap variables by allocation path */
    bool at_mark;     /* leaks: what was live at the mark */
    bool by_time;     /* vars: order by all time at a variable, not by the time that waits, or may wait, for memory */
    bool with_fields; /* vars: the fields of each variable */
    bool is_verbose;  /* vars: also how it was measured */
    unsigned by;      /* enum split_by of analysis/report/code-table.h: what the rows are split by, 0 = not */
    bool color;       /* terminal escape sequences may be used */
    bool unicode;     /* characters beyond ASCII may be used for bars */
    unsigned columns; /* width of the terminal */
    const char *const
        *derived; /* [n_derived] "NAME = EXPRESSION": columns of vars, functions, lines, types and trees */
    size_t n_derived;
    double least; /* percent of the total below which rows are left out; negative: as the report likes it */
};

/* What a report answers: rows, and one row of what stands before them. Its texts are the answer's or the model's, so it
 * lives no longer than the model. All zero is empty; it must not move once it is filled. */
struct answer {
    const char *program, *metric;      /* metric NULL: it is about none */
    const char *name;                  /* what the rows are: "variables" */
    struct table head, rows;           /* head without columns: there is none */
    struct column_list head_columns;   /* those of head, rows, and what rows joins, where they are chosen as the ... */
    struct column_list columns, cells; /* ... answer is made */
    size_t *n_users;                   /* of what its texts are in; NULL: nobody counts. Freeing it takes one away */
};

/* Fills an answer, whose program and metric are set.  err: ERR_MEMORY; leaks, annotate, cpus, first-touch, patterns:
 * ERR_NOT_FOUND; errors of reading job->values */
typedef int report_maker(const struct export_job *job, struct answer *answer, struct error *err);

/* Appends a report in one form to out.  err: as report_maker */
typedef int report_writer(const struct export_job *job, struct buf *out, struct error *err);

/* The forms that a report has: CSV and JSON are printed from its answer, and text, if there is no writer. has_page: its
 * HTML is the page for a browser, which src/face writes. */
struct report_forms {
    report_maker *make;
    report_writer *text, *json;
    bool has_page;
};

/* What an option means for one report, where that is more than its general help says. A row without text ends them. */
struct ask_note {
    enum ask what;
    const char *text; /* a sentence */
};

/* The rule of --top and --min: whether a row with this share of the total, in percent, is shown behind so many others,
 * in whatever form. A row that --top alone leaves out, which is shown behind none, counts in n_more of the answer's
 * rows. */
bool job_shows(const struct export_job *job, double share, size_t n_before);

/* Of --by, of a report whose split rows have a value each. */
#define NOTE_BY_EXTREMES                                                                                               \
    {                                                                                                                  \
        ASK_BY, "In text, threads, processes, ranks and places show the extremes where there are many; CSV and JSON "  \
                "have all that is not zero."                                                                           \
    }

#define ABOUT_ANY "*"
extern const char *const about_variable[], *const about_code[];

struct report_kind {
    const char *name;         /* the verb */
    const char *operands;     /* "DB" */
    const char *summary;      /* what it prints, in one line: "the variables that the samples fell on" */
    const char *manual;       /* a paragraph that begins with the name */
    const char *example;      /* a command line behind "hpcquery " */
    uint64_t options;         /* what it uses, without its forms and --output */
    uint64_t options_by;      /* the same when its rows are split; 0: it has no split rows */
    const char *const *about; /* the kinds of things (item.h) that it can be about, by --variable or the operand before
                               * DB, NULL at the end; the first that stands for the active one. ABOUT_ANY: all. NULL:
                               * it is about all of the database */
    unsigned by;              /* what --by takes */
    const char *no_by;        /* a sentence for people who would look for --by */
    const struct ask_note *notes;
    const uint64_t *apart; /* sets of what does not go together; 0 ends them. NULL: none */
    bool shows_all;        /* text has all rows unless --top says otherwise */
    bool takes_items;      /* it is made of things: those that the session keeps are in the job */
    struct report_forms forms;
    const struct report_forms *by_forms;           /* of split rows; NULL: forms knows them, or there are none */
    const struct report_forms *instructions_forms; /* of --instructions; NULL: there are none */
};

/* All of a database at once: json and html (src/export). */
extern const struct report_forms database_forms;

/* All reports on a database, in the order of the manual. */
const struct report_kind *const *reports(size_t *n);

/* NULL when no report has that name. */
const struct report_kind *report_find(const char *name);

/* The forms for a job that is split, or of instructions. */
const struct report_forms *report_forms_of(const struct report_kind *kind, bool is_split, bool with_instructions);

/* Whether there is a form of that name. */
bool report_has_form(const struct report_forms *forms, const char *form);

/* Appends a report in the job's form, which it must have, and which is no page.  err: as report_writer */
int report_write(const struct report_forms *forms, const struct export_job *job, struct buf *out, struct error *err);

/* Makes the answer of a report to a job. answer_fini frees it, unless this fails.  err: as report_maker */
int report_answer(const struct report_forms *forms, const struct export_job *job, struct answer *answer,
                  struct error *err);
void answer_fini(struct answer *answer);

/* Sets the rows of an answer: what they are, and of which columns; without columns, those of answer->columns. */
void answer_begin(struct answer *answer, const char *name, const struct column *columns, size_t n_columns);

/* Sets the columns of what rows joins, behind answer_begin where these are not those of answer->cells; and those of the
 * head, NULL: of answer->head_columns. Returns the head, for one row. */
void answer_join(struct answer *answer, const struct column *columns, size_t n_columns);
struct table *answer_set_head(struct answer *answer, const struct column *columns, size_t n_columns);

/* Appends an answer as JSON: an object with the program, the metric, the members of the head's row and, under their
 * name, the rows. */
void answer_print_json(const struct answer *answer, struct buf *out);

/* Appends an answer as "json" (answer_print_json) or "csv", or, in any other form, its rows as text and how many were
 * left out. out->failed: out of memory */
void answer_print(const struct answer *answer, const char *form, struct buf *out);

/* Appends an answer as packed columns (table_print_packed): the header has "program", "metric", "name" and, as "head",
 * the object of what --json has before the rows, if there is any. */
void answer_print_packed(const struct answer *answer, struct buf *out);

#endif
