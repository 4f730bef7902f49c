/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery diff: two inputs, what differs, and an exit status for scripts. */
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "export/frames/forms.h"
#include "hpcquery.h"
#include "session/face.h"

#define THRESHOLD_DEFAULT 1

/* *cost: what one sample adds to a column of the database in a directory; 0 when that is not known, or every event
 * counts.  err: as session_open, without ERR_NOT_FOUND */
static int cost_of_sample(const char *path, const char *column, double *cost, struct error *err)
{
    struct stat info;
    struct session *session;
    *cost = 0;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return 0;
    int code = session_open(&path, 1, &session, err);
    if (code == 0)
        code = session_sample_cost(session, column, cost, err);
    session_close(session);
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
