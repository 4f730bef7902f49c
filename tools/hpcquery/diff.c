/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery diff: two inputs, what differs, and an exit status for scripts. */
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "database/database.h"
#include "database/v4.h"
#include "export/frames/forms.h"
#include "hpcquery.h"

enum { STATUS_DIFFERENT = 3 };

#define THRESHOLD_DEFAULT 1

/* Whether a column of a frame, with or without callees, is that of a pair of a database. */
static bool is_column_of(const char *column, const struct column_pair *pair)
{
    static const char *const scopes[] = {"", " (inc)", " (function)"};
    const char *name = strncmp(pair->name, "CPUTIME (", 9) == 0 ? "time" : pair->name;
    size_t len = strlen(name);
    for (size_t i = 0; strncmp(column, name, len) == 0 && i < sizeof scopes / sizeof *scopes; i++)
        if (strcmp(column + len, scopes[i]) == 0)
            return true;
    return false;
}

/* *cost: what one sample adds to a column of the database in a directory; 0 when that is not known, or every event
 * counts.  err: as database_read, without ERR_NOT_FOUND */
static int cost_of_sample(const char *path, const char *column, double *cost, struct error *err)
{
    struct stat info;
    struct model model;
    struct columns columns = {0};
    *cost = 0;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return 0;
    int code = model_init(&model, err);
    if (code != 0)
        return code;
    code = database_read(path, &model, err);
    if (code == 0)
        code = columns_make(&model, &columns, err);
    for (size_t i = 0; code == 0 && i < columns.n_pairs; i++) {
        const struct column_pair *pair = &columns.pairs[i];
        double per_sample = model.metrics[pair->metric].per_sample;
        if (per_sample > 1 && is_column_of(column, pair))
            *cost = per_sample * v4_export_scale(pair);
    }
    columns_fini(&columns);
    model_fini(&model);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Compares two frames, and writes what differs. */
static int compare(const struct settings *settings, struct frame *const *frames, char **paths)
{
    size_t shown = frame_default_column(frames[0]);
    const char *column = settings->values[ASK_METRIC] ? settings->values[ASK_METRIC]
                         : shown == SIZE_MAX          ? ""
                                                      : frame_column_name(frames[0], shown);
    struct diff_job job = {.before = frames[0],
                           .after = frames[1],
                           .column = settings->values[ASK_METRIC],
                           .by = settings->values[ASK_BY] ? settings->values[ASK_BY] : "function",
                           .form = settings->form,
                           .threshold = settings->min_percent >= 0 ? settings->min_percent : THRESHOLD_DEFAULT,
                           .increases = settings_ask(settings, ASK_INCREASES),
                           .beyond_noise = settings_ask(settings, ASK_BEYOND_NOISE),
                           .top = settings->top > 0 ? (size_t)settings->top : 0,
                           .color = terminal_get(settings).color};
    struct buf out = {0};
    struct error err;
    size_t n_found = 0;
    int code = 0, status;
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = cost_of_sample(paths[i], column, &job.sample_costs[i], &err);
    if (code == 0)
        code = frames_diff(&job, &out, &n_found, &err);
    if (code == ERR_USAGE && settings->values[ASK_BY])
        status = tool_usage("hpcquery", "%s", err.text);
    else
        status = code != 0 ? tool_error("hpcquery", "diff: %s", err.text) : put_output(settings, &out);
    buf_fini(&out);
    return status == 0 && n_found ? STATUS_DIFFERENT : status;
}

static const struct ask_note notes[] = {
    {ASK_BY, "function (default), line or variable."},
    {ASK_MIN, "How much a change has to be, of all that there was before (default 1)."},
    {0, NULL},
};

const struct report_kind diff_kind = {
    .name = "diff",
    .operands = "INPUT INPUT",
    .summary = "two inputs, compared by function, line or variable",
    .manual =
        "diff compares two inputs by function, line or variable, which are the same when they have the same name, "
        "and prints what has become more or less, the largest change first.",
    .example = "diff --threshold 2 before-database after-database || echo slower or faster",
    .options =
        ASK_ROWS | ASK(BY) | ASK(INCREASES) | ASK(BEYOND_NOISE) | ASK(DERIVE) | ASK(PROFILES) | ASK(CSV) | ASK(JSON),
    .notes = notes,
};

int diff_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words)
{
    struct frame *frames[2] = {NULL, NULL};
    if (n_words != 3)
        return tool_usage("hpcquery", "%s compares two inputs, not %zu", kind->name, n_words - 1);
    int status = 0;
    for (size_t i = 0; status == 0 && i < 2; i++)
        status = input_open_frame(settings, words[i + 1], &frames[i]);
    if (status == 0)
        status = compare(settings, frames, words + 1);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return status;
}
