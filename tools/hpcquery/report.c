/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on a database of ours, and its forms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "database/database.h"
#include "export/derived.h"
#include "face/page.h"
#include "hpcquery.h"
#include "session/face.h"

enum { TOP_IN_TEXT = 12 };

/* What the options ask for. */
static struct request request_of(const struct settings *settings, const struct report_kind *kind, const char *subject)
{
    bool is_text = strcmp(settings->form, "text") == 0;
    return (struct request){.size = sizeof(struct request),
                            .report = kind->name,
                            .subject = settings_ask(settings, ASK_VARIABLE) ? settings->values[ASK_VARIABLE] : subject,
                            .metric = settings->values[ASK_METRIC],
                            .by = settings->values[ASK_BY],
                            .order = settings->values[ASK_ORDER],
                            .derived = settings->derived,
                            .n_derived = settings->n_derived,
                            .top = settings->top >= 0            ? (uint64_t)settings->top
                                   : is_text && !kind->shows_all ? TOP_IN_TEXT
                                                                 : 0,
                            .least = settings->min_percent,
                            .has_least = settings->min_percent >= 0,
                            .with_paths = settings_ask(settings, ASK_PATHS),
                            .with_fields = settings_ask(settings, ASK_FIELDS),
                            .with_unused = settings_ask(settings, ASK_ALL),
                            .with_instructions = settings_ask(settings, ASK_INSTRUCTIONS),
                            .at_mark = settings_ask(settings, ASK_MARK),
                            .profiles = settings->values[ASK_PROFILES]};
}

/* Opens the database and prints the report. */
static int query(const struct settings *settings, const struct report_kind *kind, const char *subject, const char *path)
{
    const uint64_t full = ASK(TOP) | ASK(MIN) | ASK(VERBOSE) | ASK(FIELDS) | ASK(PATHS) | ASK(ALL) | ASK(DERIVE);
    const struct request request = request_of(settings, kind, subject);
    const struct terminal terminal = terminal_get(settings);
    const struct face face = {.form = settings->form,
                              .fits_screen = !(settings->given & full),
                              .is_verbose = settings_ask(settings, ASK_VERBOSE),
                              .color = terminal.color,
                              .unicode = terminal.unicode,
                              .columns = terminal.columns};
    struct session *session;
    struct buf out = {0};
    struct error err = {0};
    bool is_page = strcmp(face.form, "html") == 0;
    int code = session_open_any(path, &session, &err);
    if (code == 0 && is_page)
        code = page_record(session, &(struct page_choice){&request}, &out, &err);
    else if (code == 0)
        code = session_write(session, kind, &request, &face, &out, &err);
    int status = code == 0 ? put_output(settings, &out) : tool_error("hpcquery", "%s", err.text);
    buf_fini(&out);
    session_close(session);
    return status;
}

int report_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n)
{
    struct error err;
    bool has_subject = strchr(kind->operands, ' ') != NULL;
    if (n != 2 + (size_t)has_subject)
        return tool_usage("hpcquery", "give %s after %s", has_subject ? kind->operands : "one database", kind->name);
    if (by_check(kind, settings->values[ASK_BY], &err) != 0)
        return tool_usage("hpcquery", "%s", err.text);
    return query(settings, kind, has_subject ? words[1] : NULL, words[n - 1]);
}

/* --- which database --- */

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
    return !settings_ask(settings, ASK_PROFILES) && !is_about_derived(settings) && database_is_at(path);
}

int list_metrics(char **words)
{
    for (; *words; words++) {
        struct session *session;
        if (session_open((const char *const *)words, 1, &session, NULL) != 0)
            continue;
        const char *name;
        for (size_t i = 0; (name = session_metric(session, i)); i++)
            (void)puts(name);
        session_close(session);
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
    bool is_page = strcmp(words[1], "html") == 0;
    if (!report_has_form(&whole.forms, words[1]) || (!is_page && !database_is_at(words[2])))
        return chain_export(settings, words[1], words[2]);
    if (strcmp(settings->form, "text") != 0 && strcmp(settings->form, words[1]) != 0)
        return tool_usage("hpcquery", "--%s and export %s do not go together", settings->form, words[1]);
    return query(&own, &whole, NULL, words[2]);
}
