/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpcquery says of itself: help of all and of one verb, the manual and the completion of shells. All of it comes
 * from the list of verbs and the table of options. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report.h"
#include "base/options.h"
#include "database/database.h"
#include "hpcquery.h"
#include "session/face.h"

enum { ROWS_MAX = 64 };

static const struct option_choice choices[] = {
    {OPTIONS_THEMSELVES, 0, CHOICE_LINES, "--list-options"},
    {ASK_METRIC, 0, CHOICE_LINES, "--list-metrics"},
    {ASK_BY, 0, CHOICE_WORDS, "thread process rank cpu core package node region phase function line variable"},
    {ASK_TREE, 0, CHOICE_WORDS, "code data both"},
    {ASK_VIEW, 0, CHOICE_WORDS, "numatree default"},
    {0, 1, CHOICE_LINES, "--list-commands"},
    {0, 0, CHOICE_DIRECTORIES, DATABASE_FILE},
    {0, 0, CHOICE_WORDS, NULL},
};

/* --- sections --- */

/* What the rows in angle brackets are. */
static bool describe_row(size_t i, const char **name, char *text, size_t n_text)
{
    const struct special_row *row = special_rows_at(i);
    if (!row)
        return false;
    *name = row->name;
    (void)snprintf(text, n_text, "%c%s. %s", toupper((unsigned char)row->means[0]), row->means + 1, row->advice);
    return true;
}

/* All verbs but that of operations, whose name is no word. */
static bool describe_verb(size_t i, const char **name, char *text, size_t n_text)
{
    struct verb verb;
    if (!verb_at(i, &verb) || verb.kind == &chain_kind)
        return false;
    *name = verb.kind->name;
    (void)snprintf(text, n_text, "%s", verb.kind->summary);
    return true;
}

static const struct option_section sections[] = {
    {"REPORTS OF SCHED", sched_describe, true},          {"REPORTS OF RUNS", runs_describe_report, true},
    {"OPERATIONS", chain_describe_operation, true},      {"FORMS", chain_describe_form, true},
    {"ROWS THAT ARE NO VARIABLES", describe_row, false}, {NULL, NULL, false}};
static const struct option_section sections_of_all[] = {{"REPORTS", describe_verb, true}, {NULL, NULL, false}};
static const struct option_section sections_of_sched[] = {{"REPORTS", sched_describe, true}, {NULL, NULL, false}};

/* --- options --- */

/* The help of one tool or verb as it is put together. */
struct pages {
    struct option_spec spec;
    struct option_row rows[ROWS_MAX];
    struct buf helps[ROWS_MAX]; /* of rows */
    struct buf synopsis, description, examples;
};

static const char *note_of(const struct report_kind *kind, int what)
{
    for (const struct ask_note *note = kind->notes; note && note->text; note++)
        if ((int)note->what == what)
            return note->text;
    return NULL;
}

/* What an option means for one verb: its help and, beside it or instead of it, the note of the verb. */
static void put_help_of(const struct report_kind *kind, const struct option_row *row, struct buf *out)
{
    const char *note = note_of(kind, row->id);
    bool is_instead = note && (row->id == ASK_ALL || row->id == ASK_PATHS);
    buf_printf(out, "%s", is_instead ? "" : row->help);
    if (row->id == ASK_BY && kind->by) {
        buf_printf(out, "WHAT is ");
        by_put_words(kind->by, out);
        buf_append(out, ".", 1);
    }
    if (note)
        buf_printf(out, "%s%s", out->len_bytes ? " " : "", note);
}

/* What it means for the verbs from the given one on whose notes are the same, unless an earlier one has said it. */
static void put_notes(size_t first, const struct option_row *row, struct buf *out)
{
    struct verb verb;
    const char *note = verb_at(first, &verb) ? note_of(verb.kind, row->id) : NULL;
    for (size_t i = 0; note && i < first; i++) {
        const char *earlier = verb_at(i, &verb) ? note_of(verb.kind, row->id) : NULL;
        note = earlier && strcmp(earlier, note) == 0 ? NULL : note;
    }
    for (size_t i = first; note && verb_at(i, &verb); i++) {
        const char *same = note_of(verb.kind, row->id);
        if (same && strcmp(same, note) == 0)
            buf_printf(out, "%s%s", i > first ? ", " : out->len_bytes ? " " : "", verb.kind->name);
    }
    if (note)
        buf_printf(out, ": %c%s", tolower((unsigned char)*note), note + 1);
}

/* What it means for all, where that is not said of a single one. */
static void put_help_of_all(const struct option_row *row, struct buf *out)
{
    struct verb verb;
    buf_printf(out, "%s", row->help);
    if (row->id == ASK_BY)
        buf_printf(out, "WHAT is thread, process, rank, region, phase, function, or where the threads ran: cpu, core, "
                        "package or node.");
    for (size_t i = 0; verb_at(i, &verb); i++)
        put_notes(i, row, out);
}

/* The rows for a verb; kind NULL: those that all reports on databases have, or all there are. */
static void add_rows(struct pages *pages, const struct report_kind *kind, bool is_short)
{
    size_t n = 0;
    uint64_t common = ~UINT64_C(0);
    size_t n_kinds;
    const struct report_kind *const *kinds = reports(&n_kinds);
    for (size_t i = 0; i < n_kinds; i++)
        common &= kind_options(kinds[i]);
    for (const struct option_row *row = option_rows; row->names && n + 1 < ROWS_MAX; row++) {
        uint64_t wanted = kind ? kind_options(kind) : is_short ? common : ~UINT64_C(0);
        bool is_of_all = row->id >= ASKS && row->id < OPTION_HELP; /* in place of a verb, or for the shell */
        if ((row->id < ASKS && !(wanted >> row->id & 1)) || (kind && is_of_all))
            continue;
        pages->rows[n] = *row;
        if (row->help && row->id < ASKS) {
            if (kind)
                put_help_of(kind, row, &pages->helps[n]);
            else if (is_short)
                buf_printf(&pages->helps[n], "%s", row->help);
            else
                put_help_of_all(row, &pages->helps[n]);
            pages->rows[n].help = pages->helps[n].data ? pages->helps[n].data : "";
        }
        n++;
    }
    pages->rows[n] = (struct option_row){0, NULL, NULL, NULL};
}

/* --- pages --- */

/* One line of the synopsis. Operands that say where the options are, say all of it. */
static void put_synopsis(const struct report_kind *kind, struct buf *out)
{
    if (strstr(kind->operands, "[options]"))
        buf_printf(out, "%s\n", kind->operands);
    else
        buf_printf(out, "%s [options] %s\n", kind->name, kind->operands);
}

static void make_verb(struct pages *pages, const struct report_kind *kind)
{
    put_synopsis(kind, &pages->synopsis);
    buf_printf(&pages->description, "%s", kind->manual);
    buf_printf(&pages->examples, "  hpcquery %s", kind->example);
    pages->spec.summary = kind->summary;
    pages->spec.sections = kind == &sched_kind ? sections_of_sched : kind == &chain_kind ? &sections[1] : NULL;
    add_rows(pages, kind, false);
}

static void make_short(struct pages *pages)
{
    size_t n;
    const struct report_kind *const *kinds = reports(&n);
    buf_printf(&pages->synopsis, "REPORT [options] DB\nREPORT --help\n%s\n", chain_kind.operands);
    buf_printf(&pages->description,
               "hpcquery REPORT --help says what a report answers, and which options it has. The same with the name of "
               "an operation, such as filter, lists all operations and forms.");
    for (size_t i = 0; i < n && i < 4; i++)
        buf_printf(&pages->examples, "  hpcquery %s\n", kinds[i]->example);
    pages->spec.sections = sections_of_all;
    add_rows(pages, NULL, true);
}

static void make_manual(struct pages *pages)
{
    struct verb verb;
    for (size_t i = 0; verb_at(i, &verb); i++) {
        put_synopsis(verb.kind, &pages->synopsis);
        buf_printf(&pages->description, "%s%s", i ? "\n\n" : "", verb.kind->manual);
        buf_printf(&pages->examples, "%s  hpcquery %s", i ? "\n" : "", verb.kind->example);
    }
    pages->spec.sections = sections;
    add_rows(pages, NULL, false);
}

int help_print(int id, const struct report_kind *kind)
{
    struct pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return tool_error("hpcquery", "out of memory");
    pages->spec = (struct option_spec){
        .tool = "hpcquery",
        .summary = "print reports from a database; filter, join, compare and convert profiles",
        .exit_status =
            "0 when the report was printed, 1 when it could not be made, 2 for a wrong command line. diff: 3 "
            "when something differs by more than the threshold.",
        .see_also = "hpcprof(1), hpcrun(1)",
        .choices = choices};
    if (kind)
        make_verb(pages, kind);
    else if (id == OPTION_HELP)
        make_short(pages);
    else
        make_manual(pages);
    pages->spec.rows = pages->rows;
    pages->spec.synopsis = pages->synopsis.data;
    pages->spec.description = pages->description.data;
    pages->spec.examples = pages->examples.data;
    if (pages->spec.synopsis)
        (void)options_standard(&pages->spec, id, PACKAGE_VERSION, stdout);
    buf_fini(&pages->synopsis);
    buf_fini(&pages->description);
    buf_fini(&pages->examples);
    for (size_t i = 0; i < ROWS_MAX; i++)
        buf_fini(&pages->helps[i]);
    free(pages);
    return 0;
}

int help_list_verbs(void)
{
    char text[512];
    const char *name;
    for (size_t i = 0; describe_verb(i, &name, text, sizeof text); i++)
        (void)puts(name);
    chain_list_steps();
    return 0;
}

/* Prints each of the names of a row, "-M --metric", on a line. */
static void list_names(const char *names)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        (void)printf("%.*s\n", (int)n, at);
        at += n;
    }
}

int help_list_options(const struct report_kind *kind)
{
    for (const struct option_row *row = option_rows; row->names; row++)
        if (row->help && (!kind || row->id >= OPTION_HELP || (row->id < ASKS && kind_options(kind) >> row->id & 1)))
            list_names(row->names);
    return 0;
}
