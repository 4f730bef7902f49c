/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice, tried: a program runs in turns as it is and with an action (src/runtime/actions) on one variable, without
 * sampling. run.c runs it once, trial.c in turns, results.c says what came of it and keeps it in the database. Ordinary
 * code.
 *
 * The room: trial.c may call the other two: run.c runs the program once, results.c says what came of it. */
#ifndef LOCUS_TRIAL_TRIAL_H
#define LOCUS_TRIAL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/vec.h"
#include "trial/effect.h"

#define TRIAL_PAIRS_DEFAULT 5
#define TRIAL_PAIRS_MIN 5 /* the range of fewer ratios holds their median less often than nine times in ten */
#define TRIAL_PAIRS_MAX 1000

/* What is to be tried. Texts are malloc'ed. */
struct trial_wish {
    char *action, *argument; /* argument: of the table, "-" for none */
    char *variable, *site;   /* as the advice names them; site "": not known */
    char *places;            /* lines of the table; "": nobody knows where its blocks come from */
    double predicted;        /* percent of the program's time that it gains at most; NAN: not known */
};

/* Frees the texts. */
void trial_wish_fini(struct trial_wish *wish);

/* Whether there is an action of this name, and it can be done to variables that are no blocks of the heap. */
bool trial_is_action(const char *name);
bool trial_is_for_statics(const char *name);

/* The names of all actions, as people read them. */
#define TRIAL_ACTIONS "huge-pages, interleave, bind-to-users, first-touch-spread, pad, pool, offset, prefault"

enum trial_verdict {
    TRIAL_WORTH_IT = 0,
    TRIAL_NO_DIFFERENCE,
    TRIAL_WORSE,
    TRIAL_NO_EFFECT, /* the action did nothing, so that nothing was measured */
    TRIAL_FAILED,    /* the program did, with the action */
    TRIAL_VERDICTS
};

/* "worth it", "no difference", "worse", "no effect", "failed". */
const char *trial_verdict_name(enum trial_verdict verdict);

/* What came of a wish. Texts are malloc'ed. */
struct trial_result {
    char *action, *variable, *site;
    char *metric; /* "CPU time", "elapsed time", or the number's expression */
    char *effect; /* a sentence: whether the action took effect */
    char *note;   /* more sentences, "" for none */
    double predicted;
    unsigned n_pairs;
    double ratio, low, high; /* of the pairs: median, and an interval that holds the true median ... */
    double certainty;        /* ... with this probability, in percent */
    double base, with;       /* medians of the metric */
    enum trial_verdict verdict;
};

struct trial_results {
    struct trial_result *items; /* [n] */
    size_t n, capacity;
};

/* Frees the results with their texts, and makes the list empty. */
void trial_results_fini(struct trial_results *results);

/* --- results.c --- */

/* The median of values [n], which are put in order; not a number when there is none. */
double trial_median(double *values, unsigned n);

/* The median of the ratios [n], which are put in order, and an interval of order statistics: the narrowest one that is
 * as far from both ends and holds the true median with a probability of 93 % or more, the whole range where there is
 * none. src: the binomial distribution of the number of values below the median */
void trial_measure(double *ratios, unsigned n, struct trial_result *result);

/* The verdict that follows from ratio and interval alone: a difference is one of three percent or more that the
 * interval leaves no doubt of. */
enum trial_verdict trial_judge(const struct trial_result *result);

/* Fills in effect: what the record says. Returns whether the action was done to anything at all. */
bool trial_describe_effect(const struct trial_effect *effect, unsigned n_runs, struct trial_result *result);

/* Appends the result, several lines; and in a few words: "0.49 of the CPU time (0.47-0.52), worth it". */
void trial_put(const struct trial_result *result, struct buf *out);
void trial_put_short(const struct trial_result *result, struct buf *out);

#define TRIAL_DIRECTORY "tried" /* of a database: outputs of the runs, and the results */

/* Reads the results that a database has; none is no error.  err: ERR_FORMAT, ERR_MEMORY, ERR_IO, ERR_RANGE */
int trial_results_read(const char *database, struct trial_results *results, struct error *err);

/* Writes them into a directory.  err: ERR_IO, ERR_MEMORY */
int trial_results_write(const char *directory, const struct trial_results *results, struct error *err);

/* --- run.c --- */

/* Reads the number that is measured from the output of a run: the first match of an extended regular expression, its
 * first group if it has one. */
struct trial_metric {
    const char *text; /* as the user gave it: "cpu", "user", "wall", an expression, or "higher:" and an expression */
    bool is_cpu, is_user, is_wall; /* is_user: CPU time in user mode alone */
    bool is_higher_better;
    void *expression; /* regex_t, owned */
};

/* err: ERR_USAGE */
int trial_metric_make(const char *text, struct trial_metric *metric, struct error *err);
void trial_metric_fini(struct trial_metric *metric);

/* One run of the program. */
struct trial_run {
    int wait_status;
    double value;    /* of the metric */
    unsigned n_left; /* processes that the program left behind, and that were ended */
};

struct trial_setup {
    char *const *command; /* ends with NULL */
    const char *path;     /* of the program */
    const char *library;  /* liblocus-actions.so */
    const char *database; /* its directory */
    const struct trial_metric *metric;
    unsigned n_pairs;
};

enum trial_end {
    TRIAL_RAN = 0,
    TRIAL_STOPPED,       /* by a signal to this process: its number is in run->wait_status */
    TRIAL_CANNOT_RUN,    /* err says why */
    TRIAL_HAS_NO_NUMBER, /* the output has no match of the metric */
};

/* Runs the program once, in a process group of its own, and waits until none of its processes is left. Its output goes
 * to the files NAME.out and NAME.err of the directory. table: of the actions; NULL: as it is. Signals that end a
 * program must be blocked. */
enum trial_end trial_run_once(const struct trial_setup *setup, int directory, const char *name, const char *table,
                              struct trial_run *run, struct error *err);

/* --- trial.c --- */

/* Tries the wishes [n] in turns and says on out what came of each; then it is in the database. Returns the exit status
 * of hpcrun --try: TRIAL_EXIT_* */
int trial_perform(const struct trial_setup *setup, const struct trial_wish *wishes, size_t n, FILE *out);

enum { TRIAL_EXIT_WORTH_IT = 0, TRIAL_EXIT_ERROR = 1, TRIAL_EXIT_USAGE = 2, TRIAL_EXIT_NOTHING = 3 };

#endif
