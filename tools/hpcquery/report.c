/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on a database of ours, and its forms. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/options.h"
#include "base/spelling.h"
#include "database/database.h"
#include "export/derived.h"
#include "export/vars-table.h"
#include "hpcquery.h"

enum { TOP_IN_TEXT = 12 };

/* Says which metrics there are, or which the name is like. */
static int refuse_metric(const struct model *model, const char *name)
{
    struct buf text = {0};
    const char **names = calloc(model->n_metrics + 1, sizeof *names);
    for (size_t i = 0; names && i < model->n_metrics; i++)
        names[i] = model->metrics[i].name;
    buf_printf(&text, name ? "the database has no metric '%s'" : "the database has no metric%.0s", name ? name : "");
    if (names)
        spelling_suggest(&text, name ? name : "", names, model->n_metrics);
    int status = tool_error("hpcquery", "%s", text.data && names ? text.data : "out of memory");
    free(names);
    buf_fini(&text);
    return status;
}

static int print_report(const struct settings *settings, const struct report_kind *kind, const char *subject,
                        const struct model *model, const char *directory, const struct thread_values *values)
{
    const char *name = settings->values[ASK_METRIC], *by = settings->values[ASK_BY];
    const uint64_t full = ASK(TOP) | ASK(MIN) | ASK(VERBOSE) | ASK(FIELDS) | ASK(PATHS) | ASK(ALL) | ASK(DERIVE);
    int64_t metric = model_choose_metric(model, name);
    if (metric < 0)
        return refuse_metric(model, name);
    bool is_text = strcmp(settings->form, "text") == 0;
    struct terminal terminal = terminal_get(settings);
    const char *order = settings->values[ASK_ORDER];
    const struct export_job job = {.model = model,
                                   .report = kind->name,
                                   .form = settings->form,
                                   .values = values,
                                   .directory = directory,
                                   .subject =
                                       settings_ask(settings, ASK_VARIABLE) ? settings->values[ASK_VARIABLE] : subject,
                                   .metric = (size_t)metric,
                                   .top = settings->top >= 0            ? (size_t)settings->top
                                          : is_text && !kind->shows_all ? TOP_IN_TEXT
                                                                        : 0,
                                   .fits_screen = !(settings->given & full),
                                   .by_time = order && strcmp(order, "time") == 0,
                                   .with_unused = settings_ask(settings, ASK_ALL),
                                   .with_paths = settings_ask(settings, ASK_PATHS),
                                   .by = by ? split_by_named(by) : SPLIT_NONE,
                                   .at_mark = settings_ask(settings, ASK_MARK),
                                   .with_fields = settings_ask(settings, ASK_FIELDS),
                                   .is_verbose = settings_ask(settings, ASK_VERBOSE),
                                   .color = terminal.color,
                                   .unicode = terminal.unicode,
                                   .columns = terminal.columns,
                                   .derived = settings->derived,
                                   .n_derived = settings->n_derived,
                                   .least = settings->min_percent};
    struct buf out = {0};
    struct error err = {0};
    int code = report_write(report_forms_of(kind, by, settings_ask(settings, ASK_INSTRUCTIONS)), &job, &out, &err);
    int status = code == 0 ? put_output(settings, &out) : tool_error("hpcquery", "%s", err.text);
    buf_fini(&out);
    return status;
}

/* Reads the database and prints the report. */
static int query(const struct settings *settings, const struct report_kind *kind, const char *subject, const char *path)
{
    struct model model;
    struct error err = {0};
    if (model_init(&model, &err) != 0)
        return tool_error("hpcquery", "%s", err.text);
    struct thread_values *values = NULL;
    int status = 0;
    char *directory = database_directory(path);
    if (!directory)
        status = tool_error("hpcquery", "out of memory");
    else if (database_read(path, &model, &err) != 0 || thread_values_open(directory, &model, &values, &err) != 0)
        status = tool_error("hpcquery", "%s", err.text);
    else
        status = print_report(settings, kind, subject, &model, directory, values);
    thread_values_free(values);
    free(directory);
    model_fini(&model);
    return status;
}

void by_put_words(unsigned set, struct buf *out)
{
    const char *pending = NULL;
    bool is_first = true;
    for (unsigned by = SPLIT_NONE + 1; by < SPLIT_BYS; by++) {
        if (!(set >> by & 1))
            continue;
        if (pending)
            buf_printf(out, "%s%s", is_first ? "" : ", ", pending);
        is_first = is_first && !pending;
        pending = split_by_name((enum split_by)by);
    }
    buf_printf(out, "%s%s", is_first ? "" : " or ", pending ? pending : "");
}

int report_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n)
{
    const char *by = settings->values[ASK_BY];
    bool has_subject = strchr(kind->operands, ' ') != NULL;
    if (n != 2 + (size_t)has_subject)
        return tool_usage("hpcquery", "give %s after %s", has_subject ? kind->operands : "one database", kind->name);
    if (by && !(kind->by >> split_by_named(by) & 1)) {
        struct buf text = {0};
        by_put_words(kind->by, &text);
        int status = tool_usage("hpcquery", "%s --by takes %s", kind->name, text.data ? text.data : "");
        buf_fini(&text);
        return status;
    }
    return query(settings, kind, has_subject ? words[1] : NULL, words[n - 1]);
}

/* --- which database --- */

/* Whether path is one of our databases, or nothing at all: no profile that only frames know. */
static bool is_ours(const char *path)
{
    char head[8] = "";
    struct stat info;
    struct buf name = {0};
    if (strcmp(path, "-") == 0)
        return false;
    if (stat(path, &info) != 0)
        return true;
    if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))
        return false;
    if (!S_ISDIR(info.st_mode)) {
        int fd = input_open(AT_FDCWD, path, 0, NULL);
        ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : 0;
        if (fd >= 0)
            (void)close(fd);
        return n <= 0 || locus_db_is(head, (size_t)n);
    }
    buf_printf(&name, "%s/" DATABASE_FILE, path);
    bool is_there = name.data && access(name.data, F_OK) == 0;
    buf_fini(&name);
    return is_there;
}

/* Whether -M names a column of --derive, which a report of the tree has beside its metric alone. */
static bool is_about_derived(const struct settings *settings)
{
    const char *metric = settings->values[ASK_METRIC];
    bool found = false;
    for (size_t i = 0; metric && i < settings->n_derived; i++) {
        char *name = derived_name(settings->derived[i]);
        found |= name && strcmp(name, metric) == 0;
        free(name);
    }
    return found;
}

bool report_is_meant(const struct settings *settings, const char *path)
{
    return !settings_ask(settings, ASK_PROFILES) && !is_about_derived(settings) && is_ours(path);
}

int list_metrics(char **words)
{
    for (; *words; words++) {
        struct model model;
        struct error err;
        if (model_init(&model, &err) != 0)
            return tool_error("hpcquery", "%s", err.text);
        bool is_read = database_read(*words, &model, &err) == 0;
        for (size_t i = 0; is_read && i < model.n_metrics; i++)
            if (!model.metrics[i].hidden)
                (void)puts(model.metrics[i].name);
        model_fini(&model);
        if (is_read)
            break;
    }
    return 0;
}

/* --- export --- */

static const struct ask_note notes[] = {
    {ASK_ALL, "html: also variables without samples."},
    {0, NULL},
};

const struct report_kind export_kind = {
    .name = "export",
    .operands = "FORM INPUT",
    .summary = "an input in a form for other tools or people",
    .manual = "export writes an input in a form for people or for other tools. For one of our databases json is all "
              "that it holds, which doc/FORMAT.md describes, and html a page for a browser in one file, with the "
              "sources that the database has.",
    .example = "export folded -o app.folded hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(ALL) | ASK(PATHS) | ASK(ORDER) | ASK(DERIVE) | ASK(PROFILES) | ASK(TREE) | ASK(FIELDS) |
               ASK(CSV) | ASK(JSON),
    .notes = notes,
};

int export_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n)
{
    if (n != 3)
        return tool_usage("hpcquery", "give a form and an input after export");
    const struct report_kind whole = {.name = kind->name, .forms = database_forms};
    struct settings own = *settings;
    own.form = words[1];
    if (!report_has_form(&whole.forms, words[1]) || !is_ours(words[2]))
        return chain_export(settings, words[1], words[2]);
    if (strcmp(settings->form, "text") != 0 && strcmp(settings->form, words[1]) != 0)
        return tool_usage("hpcquery", "--%s and export %s do not go together", settings->form, words[1]);
    return query(&own, &whole, NULL, words[2]);
}
