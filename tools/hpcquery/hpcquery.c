/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery: reports from a database. What a verb is, which options it has and what its help says come from the list of
 * reports (answer/reports.c) and, of what is no report on a database, from the files beside this one. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "hpcquery.h"
#include "session/face.h"

enum { OPT_LIST_METRICS = ASKS, OPT_LIST_COMMANDS, OPT_LIST_OPTIONS, OPT_AT, OPT_COMMAND };

/* What an option means for one verb alone, its report_kind says. */
const struct option_row option_rows[] = {
    {ASK_CSV, "--csv", "[=spreadsheet]",
     "Print comma-separated values. With =spreadsheet a cell that begins like a formula, with = + - or @, and is no "
     "number gets an apostrophe before it: names come from the measured program."},
    {ASK_JSON, "--json", NULL, "Print JSON."},
    {ASK_HTML, "--html", NULL, ""},
    {ASK_TOP, "--top", "N",
     "Print the N largest rows; 0 prints all. Default: in text 12 rows, of trees and sources all; in CSV and JSON all. "
     "No row that is left out is larger than one that is shown."},
    {ASK_METRIC, "-M --metric", "NAME",
     "Report about this metric. Default: the latency of accesses where the hardware reported it, else the first with "
     "data addresses."},
    {ASK_ALL, "-a --all", NULL, "Also list what has no samples."},
    {ASK_PATHS, "--paths", NULL, "One row for each allocation path, even where name and site are the same."},
    {ASK_BY, "--by", "WHAT", ""},
    {ASK_VARIABLE, "--variable", "NAME", "Only variables of this name."},
    {ASK_BASE, "--base", "INPUT", "The run that others are compared with, by its name. Default: the first."},
    {ASK_INCREASES, "--increases", NULL, "Only what has become more."},
    {ASK_BEYOND_NOISE, "--beyond-noise", NULL,
     "Only what is beyond the noise, as far as this is known: by the number of samples, and by how much threads or "
     "ranks differ."},
    {ASK_MARK, "--mark", NULL, "What was live at the mark (hpcrun --leaks-at, locus_mark_live) instead of at the end."},
    {ASK_ORDER, "--order", "time",
     "Order the rows by all time at a variable. Default: by the time that waited, or may have waited, for memory, "
     "where "
     "that is known."},
    {ASK_FIELDS, "--fields", NULL, ""},
    {ASK_INSTRUCTIONS, "--instructions", NULL,
     "The machine code with the source lines between, in the form of objdump -d. What each instruction cost is known "
     "in "
     "databases that hpcprof --instructions made; others have it by line. The module must be here, in the build that "
     "was measured."},
    {ASK_VERBOSE, "-v --verbose", NULL,
     "Also print how it was measured: source, CPU time, classes, the fate of every sample, types, skid test."},
    {ASK_MIN, "--min --threshold", "PERCENT", "Leave out what is below this part of the total."},
    {ASK_DERIVE, "--derive", "NAME=EXPRESSION",
     "Add a column, such as 'miss% = 100 * misses / loads': operations and forms add it to each input, reports to the "
     "sums of each row, where X is without and 'X (inc)' with callees. May be repeated."},
    {ASK_TREE, "--tree", "TREE",
     "Work on the code of a database, on its data (the same costs once more, by variable), or on both. Default: both "
     "if "
     "an operand names tree, data if one names an attribute that only data have (variable, class, element_type, site, "
     "...), else code."},
    {ASK_PROFILES, "--profiles", "CONDITION",
     "Only the profiles for which this is true, such as 'rank < 4 and thread = 0'."},
    {ASK_OUTPUT, "-o --output", "FILE", "Write to FILE instead of the standard output."},
    {ASK_COUPLEBREAK, "--couplebreak", NULL,
     "For the stream that follows: events that concern two tasks or two CPUs (sched_switch, sched_waking, "
     "sched_migrate_task) get a twin for the second of them, such as couplebreak/sched_switch[target]."},
    {ASK_TOPOLOGY, "--topology", "FILE",
     "For the stream that follows: the machine's topology, as lstopo FILE.xml writes it. It must have as many CPUs as "
     "the recording."},
    {ASK_VIEW, "--view", "VIEW",
     "For the stream that follows: numatree orders CPUs by NUMA node and core (default with --topology), default by "
     "their numbers."},
    {ASK_OFFSET, "--offset", "SECONDS",
     "For the stream that follows: what is added to its times. Without it, several streams are brought onto the clock "
     "of the first where both recordings know the time of day or that their clocks are the same; otherwise they are "
     "refused."},
    {ASK_BUFFER, "--buffer", "NAME",
     "For the stream that follows: which of its buffers, where a recording has several."},
    {ASK_FROM, "--from", "SECONDS",
     "Leave out what was before. A time with at most six digits behind the point is what is printed as this time, so "
     "that "
     "it may be copied from a report; more digits, and nanoseconds such as 1500ns, are exact. +SECONDS counts from the "
     "first event of all."},
    {ASK_TO, "--to", "SECONDS", "Leave out what was later."},
    {ASK_NS, "--ns", NULL,
     "Times with nine digits behind the point. Default: microseconds, rounded as trace-cmd and KernelShark do; of "
     "files of perf cut, as perf script does."},
    {ASK_TASK, "--task", "LIST", "Only these tasks, by number or name (* and ? stand for others)."},
    {ASK_CPU, "--cpu", "LIST", "Only these CPUs, such as 0-3,8; tasks: those that ran there."},
    {ASK_EVENT, "--event", "LIST",
     "Only events of these names, with or without their system (* and ? stand for others)."},
    {ASK_FILTER, "--filter", "CONDITION",
     "Only events whose fields fulfill a condition, as trace-cmd(1) and KernelShark write it, such as "
     "'sched/sched_switch:prev_prio < 100'. Types that it does not name are left out; twins and lost records are not."},
    {ASK_FIND, "--find", "TEXT",
     "Only events that have this text in their task, name or info; capital letters are like small ones."},
    {ASK_NEXT, "--next", "PLACE",
     "The first event behind PLACE, or the first N with --top N: a time as --from takes, or the number of an event in "
     "its recording, such as '#41' (of the second recording '1#41')."},
    {ASK_PREVIOUS, "--previous", "PLACE", "The last event before PLACE, or the last N."},
    {ASK_LINES, "--lines", NULL,
     "Events as the lines that KernelShark dumps, of twins with their origins; a column more in CSV and JSON."},
    {ASK_SLICES, "--slices", "N",
     "This many slices of time. Default: as many as fit in text, else one, of time lines a hundred."},
    {ASK_SESSION, "--session", "FILE",
     "The recordings as --save-session kept them, with their topologies, views, buffers, offsets and --couplebreak; "
     "and "
     "the window, --task, --cpu, --event and --filter, where the report has them and none are given. Also a session "
     "file "
     "of KernelShark. A topology that is gone is left out with a message."},
    {ASK_SAVE_SESSION, "--save-session", "FILE", "Also write a session with what is shown."},
    {OPT_AT, "--at", "STATE",
     "Print what a state of a viewer shows, in place of a report: hpcquery --at "
     "'view=REPORT&active=line:cg.c:52' DB. "
     "The guide has its keys; options beside it stand over them."},
    {OPT_COMMAND, "--command", NULL, "With --at: print the command line that prints the same, instead."},
    {OPT_LIST_METRICS, "--list-metrics", NULL, NULL},
    {OPT_LIST_COMMANDS, "--list-commands", NULL, NULL},
    {OPT_LIST_OPTIONS, "--list-options", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {.tool = "hpcquery", .rows = option_rows};

/* What is no report on a database. */
static const struct verb others[] = {{&events_kind, events_run}, {&sched_kind, sched_run}, {&topo_kind, topo_run},
                                     {&export_kind, export_run}, {&diff_kind, diff_run},   {&runs_kind, runs_run},
                                     {&chain_kind, chain_run}};

bool verb_at(size_t i, struct verb *verb)
{
    size_t n, n_others = sizeof others / sizeof *others;
    const struct report_kind *const *kinds = reports(&n);
    if (i >= n + n_others)
        return false;
    *verb = i < n ? (struct verb){kinds[i], report_run} : others[i - n];
    return true;
}

/* The verb with a name; false: none. */
static bool find_verb(const char *name, struct verb *verb)
{
    for (size_t i = 0; verb_at(i, verb); i++)
        if (strcmp(verb->kind->name, name) == 0)
            return true;
    return false;
}

static int usage(const char *text)
{
    return tool_usage("hpcquery", "%s", text);
}

/* --- options --- */

bool settings_ask(const struct settings *settings, enum ask what)
{
    return settings->given >> what & 1;
}

/* Appends a word to words [*n]; as take_option. */
static int add_word(const char ***words, size_t *n, size_t *capacity, const char *word)
{
    if (!vec_reserve(words, capacity, *n + 1, sizeof **words))
        return 1 + tool_error("hpcquery", "out of memory");
    (*words)[(*n)++] = word;
    return 0;
}

static int take_derived(struct settings *settings, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || strspn(text, " ") == (size_t)(equals - text))
        return 1 + usage("--derive takes a name, = and an expression: --derive 'miss% = 100 * misses / loads'");
    return add_word(&settings->derived, &settings->n_derived, &settings->cap_derived, text);
}

/* Takes a number; as take_option. */
static int take_number(int id, const char *value, struct settings *settings)
{
    char *end;
    double number = strtod(value, &end);
    bool is_number = !*end && end != value && number >= 0, is_whole = is_number && !strpbrk(value, ".eExXnN");
    if (id == ASK_MIN) {
        settings->min_percent = number;
        return is_number && number <= 100 ? 0 : 1 + usage("--min and --threshold take a percentage, from 0 to 100");
    }
    if (id == ASK_TOP) {
        settings->top = strtol(value, NULL, 10);
        return is_whole ? 0 : 1 + usage("--top takes a number");
    }
    settings->slices = is_whole && number <= 100000 ? (size_t)number : 0;
    return settings->slices ? 0 : 1 + usage("--slices takes a number from 1 to 100000");
}

/* Takes one of two or three words; as take_option. */
static int take_choice(int id, const char *value)
{
    if (id == ASK_ORDER)
        return strcmp(value, "time") == 0 || strcmp(value, "memory") == 0 ? 0
                                                                          : 1 + usage("--order takes time or memory");
    bool is_tree = strcmp(value, "code") == 0 || strcmp(value, "data") == 0 || strcmp(value, "both") == 0;
    return is_tree ? 0 : 1 + usage("--tree takes code, data or both");
}

/* Takes one option, behind so many operands; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, const char *value, int n_operands, struct settings *settings)
{
    static const char *const forms[] = {[ASK_CSV] = "csv", [ASK_JSON] = "json", [ASK_HTML] = "html"};
    settings->given |= UINT64_C(1) << id;
    settings->values[id] = value;
    switch (id) {
    case ASK_CSV:
        if (value && strcmp(value, "spreadsheet") != 0)
            return 1 + usage("--csv takes nothing, or =spreadsheet");
        /* fall through */
    case ASK_JSON:
    case ASK_HTML:
        settings->form = forms[id];
        settings->given &= ~(ASK(CSV) | ASK(JSON) | ASK(HTML)) | UINT64_C(1) << id;
        return 0;
    case ASK_METRIC:
        return add_word(&settings->metrics, &settings->n_metrics, &settings->cap_metrics, value);
    case ASK_DERIVE:
        return take_derived(settings, value);
    case ASK_TOP:
    case ASK_MIN:
    case ASK_SLICES:
        return take_number(id, value, settings);
    case ASK_ORDER:
    case ASK_TREE:
        return take_choice(id, value);
    case ASK_COUPLEBREAK:
    case ASK_TOPOLOGY:
    case ASK_VIEW:
    case ASK_OFFSET:
    case ASK_BUFFER:
        return streams_take_option(settings, id, value, n_operands) ? 0 : 1 + tool_error("hpcquery", "out of memory");
    default:
        return 0;
    }
}

/* --- which options a verb has --- */

const char *option_name(enum ask what)
{
    const struct option_row *row = option_rows;
    while (row->names && row->id != (int)what)
        row++;
    return row->names ? strstr(row->names, "--") : "";
}

static const struct report_kind *kind_at(size_t i)
{
    struct verb verb;
    return verb_at(i, &verb) ? verb.kind : NULL;
}

/* --- the answer --- */

/* Says that there is no verb, and which reports there are. */
static int no_verb(void)
{
    struct buf text = {0};
    size_t n;
    const struct report_kind *const *kinds = reports(&n);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", kinds[i]->name);
    int status = tool_usage("hpcquery", "give a report (%s) and a database, or operations and inputs",
                            text.data ? text.data : "");
    buf_fini(&text);
    return status;
}

/* Whether a file to be written is one of those that are read. */
static bool replaces_input(const char *output, char **words, size_t n)
{
    struct stat to, from;
    if (!output || stat(output, &to) != 0 || !S_ISREG(to.st_mode))
        return false;
    for (size_t i = 0; i < n; i++)
        if (stat(words[i], &from) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino)
            return true;
    return false;
}

/* Does what the words ask for. A word that is a report and a form of frames, such as tree, is a report of a database of
 * ours, unless an option says otherwise. */
static int answer(const struct settings *settings, char **words, size_t n)
{
    static const struct asker asker = {kind_at, option_name};
    struct error err;
    struct verb verb;
    bool is_verb = n > 0 && find_verb(words[0], &verb);
    bool is_form = is_verb && chain_knows(words[0]) && (n != 2 || !report_is_meant(settings, words[1]));
    if (!is_verb || is_form) {
        if (n < 2)
            return no_verb();
        verb = (struct verb){&chain_kind, chain_run};
    }
    if (replaces_input(settings->values[ASK_OUTPUT], words, n))
        return usage("--output names what is read: give it another name");
    return asks_check(&asker, verb.kind, settings->given, &err) == 0 ? verb.run(settings, verb.kind, words, n)
                                                                     : usage(err.text);
}

/* Prints the help of the first word behind it or before it, or of all. */
static int help(struct option_scan *scan, int argc, char **argv)
{
    struct error err;
    struct verb verb;
    int id;
    while ((id = options_next(&spec, scan, argc, argv, &err)) != OPTIONS_END && id != OPTIONS_BAD)
        ;
    const char *word = id == OPTIONS_END && scan->n_operands ? argv[scan->index] : "";
    bool is_verb = find_verb(word, &verb);
    help_print(OPTION_HELP, is_verb ? verb.kind : chain_knows(word) ? &chain_kind : NULL);
    return 0;
}

/* Lists the options of the first of the words that is a verb, or an operation or form; of all where there is none. */
static int list_options(char **words)
{
    struct verb verb;
    for (; *words; words++)
        if (find_verb(*words, &verb) || chain_knows(*words))
            return help_list_options(find_verb(*words, &verb) ? verb.kind : &chain_kind);
    return help_list_options(NULL);
}

/* What the command line asks for, beside reports. */
struct asked {
    bool lists_metrics, lists_options, prints_command;
    const char *at; /* NULL: no state */
};

/* Takes options up to the operands; -1 when the program goes on, else its exit status. asked NULL: words of a state,
 * which give way to what was given before. */
static int take_options(struct option_scan *scan, int argc, char **argv, struct settings *settings, struct asked *asked)
{
    struct error err = {0};
    const uint64_t given = asked ? 0 : settings->given;
    int id, status = -1;
    while (status < 0 && (id = options_next(&spec, scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            status = usage(err.text);
        else if (id < ASKS && given >> id & 1)
            continue;
        else if (id < ASKS)
            status = take_option(id, scan->value, scan->n_operands, settings) - 1;
        else if (!asked)
            status = usage("a state has options of reports alone");
        else if (id == OPTION_HELP)
            status = help(scan, argc, argv);
        else if (id >= OPTION_HELP)
            status = help_print(id, NULL);
        else if (id == OPT_LIST_COMMANDS)
            status = help_list_verbs();
        else if (id == OPT_AT)
            asked->at = scan->value;
        else
            *(id == OPT_COMMAND        ? &asked->prints_command
              : id == OPT_LIST_OPTIONS ? &asked->lists_options
                                       : &asked->lists_metrics) = true;
    }
    return status;
}

/* Answers what the words of a state ask for. */
static int answer_words(struct state_words *words, char *path, struct settings *settings)
{
    struct option_scan scan = {0};
    char name[] = "hpcquery", **argv = calloc(words->n + 3, sizeof *argv);
    if (!argv)
        return tool_error("hpcquery", "out of memory");
    argv[0] = name;
    memcpy(argv + 1, words->words, words->n * sizeof *argv);
    argv[words->n + 1] = path;
    int status = take_options(&scan, (int)words->n + 2, argv, settings, NULL);
    if (status < 0)
        status = answer(settings, argv + scan.index, (size_t)scan.n_operands);
    free(argv);
    return status;
}

/* Prints what a state shows of the database that is the only operand, or the command line for it. */
static int answer_state(const struct asked *asked, char **words, size_t n, struct settings *settings)
{
    struct session *session;
    struct state_words found = {0};
    struct buf line = {0};
    char *text = NULL;
    struct error err = {0};
    if (n != 1)
        return usage("give one database, and no report, with --at");
    if (asked->prints_command && settings->given & ~ASK(OUTPUT))
        return usage("--command goes with --at and --output alone: what the state lacks, add to the line");
    int code = session_open_any(words[0], &session, &err);
    if (code == 0)
        code = asked->prints_command ? session_state_line(session, asked->at, &text, &err)
                                     : session_state_words(session, asked->at, &found, &err);
    session_close(session);
    int status = code == ERR_USAGE ? usage(err.text) : code ? tool_error("hpcquery", "%s", err.text) : 0;
    if (code == 0 && text) {
        buf_printf(&line, "%s\n", text);
        status = put_output(settings, &line);
    } else if (code == 0) {
        status = answer_words(&found, words[0], settings);
    }
    buf_fini(&line);
    free(text);
    state_words_fini(&found);
    return status;
}

static int run_tool(int argc, char **argv)
{
    struct option_scan scan = {0};
    struct settings settings = {.form = "text", .top = -1, .min_percent = -1};
    struct asked asked = {0};
    (void)setlocale(LC_CTYPE, "");
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error, and is removed */
    int status = take_options(&scan, argc, argv, &settings, &asked);
    char **words = argv + scan.index;
    if (status < 0 && asked.prints_command && !asked.at)
        status = usage("--command goes with --at");
    if (status < 0)
        status = asked.lists_metrics   ? list_metrics(words)
                 : asked.lists_options ? list_options(words)
                 : asked.at            ? answer_state(&asked, words, (size_t)scan.n_operands, &settings)
                                       : answer(&settings, words, (size_t)scan.n_operands);
    free(settings.metrics);
    free(settings.derived);
    free(settings.stream_options);
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
