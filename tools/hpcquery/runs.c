/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery runs: many inputs side by side. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "hpcquery.h"
#include "session/face.h"

enum { TOP_IN_TEXT = 12 };

bool runs_describe_report(size_t i, const char **name, char *text, size_t n_text)
{
    *name = session_runs_report(i);
    if (*name)
        (void)snprintf(text, n_text, "%s", session_runs_summary(i));
    return *name;
}

static const struct ask_note notes[] = {
    {ASK_BY, "What runs are grouped by, and scaling: what costs are to grow with (default threads): a column of runs "
             "list -a, such as OMP_NUM_THREADS."},
    {ASK_MIN, "regression: how much a change has to be, of all that there was before (default 1)."},
    {ASK_ALL, "list: also what is the same in all runs."},
    {ASK_BEYOND_NOISE, "regression: only what changed by more than the noise, and what no noise is known of."},
    {0, NULL},
};

const struct report_kind runs_kind = {
    .name = "runs",
    .operands = "[REPORT] INPUT...",
    .summary = "many runs side by side: what they were, statistics, scaling and regressions",
    .manual =
        "runs puts inputs side by side, each of them a run: a database, or a file of another tool. The report is list "
        "unless another one is named. What a run was is known of databases: the command, host and date, the "
        "program's build id, the environment that sets up threads and jobs (OMP_*, SLURM_JOB_* and others, and all "
        "that begins with HPCRUN_RUN_, as hpcrun noted it), and how long it took. Functions are the same that have the "
        "same name and file, whose directory counts as far as it tells those of one run apart; what a run does not "
        "know has cost nothing there. In scaling <elapsed> has a speed-up, and efficiency is the part of it that there "
        "could be; a cost is a sum over all workers, and its efficiency the part of it that there was before. "
        "regression ends with status 3 where something has changed; its noise is how far a function's costs are apart "
        "in runs of the same group, where --by says what runs have in common and one was made more than once.",
    .example = "runs scaling --by OMP_NUM_THREADS app-1-database app-2-database app-4-database",
    .options = ASK_ROWS | ASK(BY) | ASK(ALL) | ASK(BASE) | ASK(BEYOND_NOISE) | ASK(CSV) | ASK(JSON),
    .notes = notes,
};

int runs_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n)
{
    const char *report = session_runs_report(0), *name;
    size_t first = 1;
    for (size_t i = 0; n > 1 && (name = session_runs_report(i)); i++)
        if (strcmp(words[1], name) == 0) {
            report = name;
            first = 2;
        }
    if (n <= first)
        return tool_usage("hpcquery", "give inputs after %s", kind->name);
    bool is_text = strcmp(settings->form, "text") == 0;
    const struct request request = {.size = sizeof request,
                                    .report = report,
                                    .subject = settings->values[ASK_BASE],
                                    .metric = settings->values[ASK_METRIC],
                                    .by = settings->values[ASK_BY],
                                    .top = settings->top >= 0 ? (uint64_t)settings->top
                                           : is_text          ? TOP_IN_TEXT
                                                              : 0,
                                    .least = settings->min_percent,
                                    .has_least = settings->min_percent >= 0,
                                    .with_unused = settings_ask(settings, ASK_ALL),
                                    .beyond_noise = settings_ask(settings, ASK_BEYOND_NOISE)};
    struct answer *answer;
    struct buf out = {0};
    struct error err = {0};
    int code = session_ask_runs((const char *const *)words + first, n - first, &request, &answer, &err);
    if (code != 0)
        return code == ERR_USAGE ? tool_usage("hpcquery", "%s", err.text)
                                 : tool_error("hpcquery", "runs: %s", err.text);
    if (is_text)
        buf_printf(&out, "%s of %zu run%s\n", answer_metric(answer), n - first, n - first == 1 ? "" : "s");
    answer_print(answer, settings->form, &out);
    int status = put_output(settings, &out);
    bool differs = strcmp(report, "regression") == 0 && table_rows(answer_rows(answer)) > 0;
    answer_free(answer);
    buf_fini(&out);
    return status == 0 && differs ? STATUS_DIFFERENT : status;
}
