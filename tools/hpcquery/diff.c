/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery diff: two inputs, what differs, and an exit status for scripts. */
#include <string.h>

#include "base/options.h"
#include "export/frames/forms.h"
#include "hpcquery.h"

enum { STATUS_DIFFERENT = 3 };

#define THRESHOLD_DEFAULT 1

/* Compares two frames, and writes what differs. */
static int compare(const struct settings *settings, struct frame *const *frames)
{
    struct diff_job job = {.before = frames[0],
                           .after = frames[1],
                           .column = settings->metric,
                           .by = settings->by ? settings->by : "function",
                           .form = settings->form,
                           .threshold = settings->min_percent >= 0 ? settings->min_percent : THRESHOLD_DEFAULT,
                           .increases = settings->increases,
                           .top = settings->top > 0 ? (size_t)settings->top : 0,
                           .color = terminal_get(settings).color};
    struct buf out = {0};
    struct error err;
    size_t n_found = 0;
    int code = frames_diff(&job, &out, &n_found, &err), status;
    if (code == ERR_USAGE && settings->by)
        status = tool_usage("hpcquery", "%s", err.text);
    else
        status = code != 0 ? tool_error("hpcquery", "diff: %s", err.text) : put_output(settings, &out);
    buf_fini(&out);
    return status == 0 && n_found ? STATUS_DIFFERENT : status;
}

int diff_run(const struct settings *settings, char **words, size_t n_words)
{
    struct frame *frames[2] = {NULL, NULL};
    if (n_words != 2)
        return tool_usage("hpcquery", "diff compares two inputs, not %zu", n_words);
    if (strcmp(settings->form, "html") == 0)
        return tool_usage("hpcquery", "--html goes with vars only");
    int status = 0;
    for (size_t i = 0; status == 0 && i < n_words; i++)
        status = input_open_frame(settings, words[i], &frames[i]);
    if (status == 0)
        status = compare(settings, frames);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return status;
}
