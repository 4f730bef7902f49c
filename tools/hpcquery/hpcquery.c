/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery: reports from a database. */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/report/code-table.h"
#include "base/input.h"
#include "base/options.h"
#include "base/spelling.h"
#include "database/database.h"
#include "export/derived.h"
#include "answer/answer.h"
#include "export/vars-table.h"
#include "hpcquery.h"

enum {
    OPT_CSV = 1,
    OPT_JSON,
    OPT_HTML,
    OPT_TOP,
    OPT_METRIC,
    OPT_ALL,
    OPT_PATHS,
    OPT_BY,
    OPT_VARIABLE,
    OPT_INCREASES,
    OPT_BEYOND_NOISE,
    OPT_MARK,
    OPT_ORDER,
    OPT_FIELDS,
    OPT_INSTRUCTIONS,
    OPT_MIN,
    OPT_DERIVE,
    OPT_PROFILES,
    OPT_TREE,
    OPT_OUTPUT,
    OPT_VERBOSE,
    OPT_COUPLEBREAK,
    OPT_TOPOLOGY,
    OPT_VIEW,
    OPT_OFFSET,
    OPT_BUFFER,
    OPT_FROM,
    OPT_TO,
    OPT_TASK,
    OPT_CPU,
    OPT_EVENT,
    OPT_SLICES,
    OPT_SESSION,
    OPT_SAVE_SESSION,
    OPT_LIST_METRICS,
    OPT_LIST_COMMANDS
};

static const struct option_row rows[] = {
    {OPT_CSV, "--csv", NULL, "Print comma-separated values."},
    {OPT_JSON, "--json", NULL, "Print JSON."},
    {OPT_HTML, "--html", NULL,
     "vars: print a page for a browser in one file: variables with their details, flame graphs, sources (export "
     "html)."},
    {OPT_TOP, "--top", "N",
     "Print the N largest rows; 0 prints all. Default: 12 variables, functions, lines or paths, all nodes; all in "
     "CSV and JSON. No row that is left out is larger than one that is shown."},
    {OPT_METRIC, "-M --metric", "NAME",
     "Report about this metric. Default: the latency of accesses where the hardware "
     "reported it, else the first with data addresses. A table of operations shows every metric that is named, and "
     "what "
     "is derived; its default is all."},
    {OPT_ALL, "-a --all", NULL,
     "vars: also list variables without samples. leaks: also list allocation paths without live blocks. annotate: all "
     "lines."},
    {OPT_PATHS, "--paths", NULL,
     "vars: one row for each allocation path, even where name and site are the same, with the complete path. tree, "
     "datatree, leaks: complete paths in text; CSV and JSON of leaks always have them."},
    {OPT_BY, "--by", "WHAT",
     "vars, functions, lines, annotate, types: split each row by thread, process, rank, region, or by where the "
     "threads ran "
     "(cpu, core, package, node); vars and types also by function. tree, datatree: a column for each of these, in text "
     "of regions and functions the one with the most, in CSV a row for each node and column. In text, threads, "
     "processes, ranks and places show the extremes "
     "where there are many; CSV and "
     "JSON have all that is not zero. cpus: cpu (default), core, package or node. diff: function (default), line or "
     "variable."},
    {OPT_VARIABLE, "--variable", "NAME",
     "cpus, patterns, sharing: only variables of this name; patterns also shows where in it each thread's samples "
     "lie."},
    {OPT_INCREASES, "--increases", NULL, "diff: only what has become more."},
    {OPT_BEYOND_NOISE, "--beyond-noise", NULL,
     "diff: only what is beyond the noise, as far as this is known: by the number of samples, and by how much threads "
     "or "
     "ranks differ."},
    {OPT_MARK, "--mark", NULL,
     "leaks: what was live at the mark (hpcrun --leaks-at, locus_mark_live) instead of at the end."},
    {OPT_ORDER, "--order", "time",
     "vars: order the rows by all time at a variable. Default: by the time that waited, or may have waited, for "
     "memory, where that is known."},
    {OPT_FIELDS, "--fields", NULL,
     "vars: list the fields of each variable; with --csv a table of fields. Operations and forms: put the fields of "
     "each variable between it and what accesses it, which they also do where an operand names field or field_type."},
    {OPT_INSTRUCTIONS, "--instructions", NULL,
     "annotate: the machine code with the source lines between, in the form of objdump -d. What each instruction cost "
     "is known in databases that hpcprof --instructions made; others have it by line. The module must be here, in the "
     "build that was measured."},
    {OPT_VERBOSE, "-v --verbose", NULL,
     "vars: also print how it was measured: source, CPU time, classes, the fate of every sample, types, skid test."},
    {OPT_MIN, "--min --threshold", "PERCENT",
     "Leave out what is below this part of the total; leaks: of the bytes that are live. Default in text: 1 for trees, "
     "0.5 for annotate; else 0. diff: "
     "how "
     "much a change has to be, of all that there was before (default 1)."},
    {OPT_DERIVE, "--derive", "NAME=EXPRESSION",
     "Operations and forms: add a column to each input, such as 'miss% = 100 * misses / loads'. vars, functions, "
     "lines, "
     "types, tree, datatree: add a column of the sums of each row; X is without and 'X (inc)' with callees. May be "
     "repeated."},
    {OPT_TREE, "--tree", "TREE",
     "Steps: work on the code of a database, on its data (the same costs once more, by variable), or on both. Default: "
     "both if an operand names tree, data if one names an attribute that only data have (variable, class, "
     "element_type, "
     "site, ...), else code."},
    {OPT_PROFILES, "--profiles", "CONDITION",
     "Operations and forms: only the profiles for which this is true, such as 'rank < 4 and thread = 0'."},
    {OPT_OUTPUT, "-o --output", "FILE", "Write to FILE instead of the standard output."},
    {OPT_COUPLEBREAK, "--couplebreak", NULL,
     "For the stream that follows: events that concern two tasks or two CPUs (sched_switch, sched_waking, "
     "sched_migrate_task) get a twin for the second of them, such as couplebreak/sched_switch[target]."},
    {OPT_TOPOLOGY, "--topology", "FILE",
     "For the stream that follows: the machine's topology, as lstopo FILE.xml writes it. It must have as many CPUs as "
     "the recording."},
    {OPT_VIEW, "--view", "VIEW",
     "For the stream that follows: numatree orders CPUs by NUMA node and core (default with --topology), default by "
     "their numbers."},
    {OPT_OFFSET, "--offset", "SECONDS",
     "For the stream that follows: what is added to its times. Without it, several streams are brought onto the clock "
     "of the first where both recordings know the time of day or that their clocks are the same; otherwise they are "
     "refused."},
    {OPT_BUFFER, "--buffer", "NAME",
     "For the stream that follows: which of its buffers, where a recording has several."},
    {OPT_FROM, "--from", "SECONDS", "Streams: leave out what was before. +SECONDS counts from the first event of all."},
    {OPT_TO, "--to", "SECONDS", "Streams: leave out what was later."},
    {OPT_TASK, "--task", "LIST", "Streams: only these tasks, by number or name (* and ? stand for others)."},
    {OPT_CPU, "--cpu", "LIST", "Streams: only these CPUs, such as 0-3,8; tasks: those that ran there."},
    {OPT_EVENT, "--event", "LIST",
     "Streams: only events of these names, with or without their system (* and ? stand for others)."},
    {OPT_SLICES, "--slices", "N", "topo: this many slices of time. Default: as many as fit in text, else one."},
    {OPT_SESSION, "--session", "FILE",
     "topo: the recordings, their topologies, views and --couplebreak as --save-session kept them. A topology that is "
     "gone is left out."},
    {OPT_SAVE_SESSION, "--save-session", "FILE", "topo: also write a session with what is shown."},
    {OPT_LIST_METRICS, "--list-metrics", NULL, NULL},
    {OPT_LIST_COMMANDS, "--list-commands", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_choice choices[] = {
    {OPT_METRIC, 0, CHOICE_LINES, "--list-metrics"},
    {OPT_BY, 0, CHOICE_WORDS, "thread process rank cpu core package node region function line variable"},
    {OPT_TREE, 0, CHOICE_WORDS, "code data both"},
    {OPT_VIEW, 0, CHOICE_WORDS, "numatree default"},
    {0, 1, CHOICE_LINES, "--list-commands"},
    {0, 0, CHOICE_DIRECTORIES, DATABASE_FILE},
    {0, 0, CHOICE_WORDS, NULL},
};

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

static const struct option_section sections[] = {{"REPORTS OF SCHED", sched_describe, true},
                                                 {"OPERATIONS", chain_describe_operation, true},
                                                 {"FORMS", chain_describe_form, true},
                                                 {"ROWS THAT ARE NO VARIABLES", describe_row, false},
                                                 {NULL, NULL, false}};

static const struct option_spec spec = {
    .tool = "hpcquery",
    .summary = "print reports from a database; filter, join, compare and convert profiles",
    .synopsis =
        "vars [options] DB\nfunctions [options] DB\nlines [options] DB\nannotate FILE|FUNCTION [options] "
        "DB\ntypes [options] DB\ntree [options] DB\ndatatree [options] DB\nadvice [options] DB\nleaks "
        "[options] DB\ncpus [options] DB\nnuma [options] DB\nfirst-touch [options] DB\npatterns [options] "
        "DB\nsharing [options] DB\nevents [options] MEASUREMENT\nsched "
        "[REPORT] [options] [STREAM-OPTIONS] STREAM...\ntopo [options] [[STREAM-OPTIONS] STREAM...]\nexport FORM "
        "[options] INPUT\ndiff [options] INPUT "
        "INPUT\nSTEP [: STEP]... [options] INPUT...",
    .description =
        "vars prints the variables that the samples fell on. A row shows the share of all samples, name, class, size, "
        "number of blocks, where the variable was allocated or declared, on which NUMA nodes the accessing threads "
        "ran, and the lines that access it with the loops around them. Samples without address and addresses without "
        "variable are rows too, so that the shares add up to 100 percent. Where hardware reported each access, the "
        "rows are sorted by latency and show its mean and 95th percentile, the shares of the cache levels, and of "
        "memory of this and of other NUMA nodes. With --fields the fields that its samples lie in follow each "
        "variable: fields of structures, of what was allocated, of local variables. Without debug information they are "
        "offsets.\n\n"
        "functions and lines print what each function and each source line cost, by itself and with the functions that "
        "it "
        "calls, and which variables it spent that on. Recursion counts once, and an inlined function is a function.\n\n"
        "annotate prints the source of a file, or of a function, as the database has a copy of it, with what each line "
        "cost: the lines with samples and a few around them. A file goes by the end of its path, a function by its "
        "name "
        "without parameters; FILE:FUNCTION tells apart those of the same name. With --instructions it "
        "prints the machine code that was made from these lines, with the source between, as perf annotate does.\n\n"
        "types prints the samples in variables by the type of their elements and by field, over all variables of the "
        "type.\n\n"
        "tree prints the call tree. Regions that the program names (locus.h, ITT tasks, NVTX ranges) stand above the "
        "call paths. datatree prints the tree of data: classes, allocation paths, variables, and below each the paths "
        "that access it. In text a chain of calls without branch is one line, and of long ones the middle is left out "
        "unless --paths is given.\n\n"
        "advice prints what to do about the variables with the most of the time (from 5 % on, or from --min), and the "
        "figures that it follows from. Where these are missing it says nothing.\n\n"
        "leaks prints what was still allocated when the program ended, by allocation path: live blocks and bytes, all "
        "that was allocated there, and the share of the samples that fell on it, or that none did. Live means "
        "allocated and not freed; pointers to a block do not matter. Any measurement that recorded allocations will "
        "do.\n\n"
        "patterns prints how the threads use each variable: by a single owner, blocked by thread, interleaved, shared "
        "and only read, shared and written, streaming or at random, how certain that is, and what it follows from. "
        "doc/guide.md has the rules.\n\n"
        "sharing prints the cache lines that several threads of a process used and at least one of them wrote: "
        "candidates for false sharing, where they used different bytes, and for true sharing.\n\n"
        "events prints the log of samples of a measurement that hpcrun -t recorded, of all threads and hosts in the "
        "order of time: when and on which CPU a sample was taken, and which byte of which variable it touched.\n\n"
        "sched prints what tasks and CPUs did, from recordings of the kernel's scheduler: files of trace-cmd "
        "(trace.dat) "
        "and of perf (perf.data, with tracepoints or with the records of perf record --switch-events), and "
        "measurements "
        "with logs of samples. The report is tasks unless another one is named. Several recordings stand on one axis "
        "of "
        "time, and the head of each report says how they got there, and what a recording can know: what it cannot know "
        "is \"-\", nothing in CSV and null in JSON, never zero. --couplebreak, --topology, --view, --offset and "
        "--buffer are about the stream that follows them.\n\n"
        "topo prints the machine as a tree of NUMA nodes (NN), cores (C) and CPUs, and how busy each of them was in "
        "recordings of its scheduler, over all and in slices of time: which node worked more. Nodes and cores have "
        "hwloc's logical numbers, CPUs those of the operating system. Rows of packages (P), and of memory that CPUs "
        "have beside their own node, stand above the tree. Busy is the time in which a task other than the idle one "
        "ran, as a share of the time for which that is known. Without --topology the rows are CPUs alone; without a "
        "recording it prints the tree of FILE, or of this machine. A topology that cannot be read, or that has "
        "another number of CPUs than the recording, is left out with a message, and the exit status is 1.\n\n"
        "cpus prints where threads ran while they used data: for each CPU, core, package or NUMA node of each host the "
        "samples at data that were taken there, by how many threads, and at which variables. This is where the threads "
        "were, not where the memory is. CPUs and cores without samples are left out. Cores and packages are numbered "
        "over the whole host, as by lscpu. CSV has a row for each place, thread and variable.\n\n"
        "numa prints, for machines with several memory nodes, on which nodes the threads ran and on which ones the "
        "pages "
        "were that they touched: for all samples and for each variable. hpcrun finds that out by itself for events "
        "with data addresses.\n\n"
        "first-touch prints which threads touched the pages of each variable first, where in the program, when and in "
        "which part of the block, and which threads used it: a page lies on the NUMA node of the thread that touched "
        "it "
        "first. It takes a measurement with page faults, which hpcrun samples by default where it can (FAULTS).\n\n"
        "export writes an input in a form for people or for other tools. For one of our databases "
        "json is all that it holds, which doc/FORMAT.md describes, and html a page for a browser in one file, with the "
        "sources that the database has.\n\n"
        "Steps are operations with their operands, one after the other, each of them on the result of the one before; "
        "between steps stands a : that is a word of its own. The last step may be a form; without one the result is "
        "printed as a tree, or as --csv or --json say. An operation on one input is done on each, until one on several "
        "(add, union, ...) makes one of them. A : may stand before the inputs as well. Conditions, expressions and "
        "queries are described in doc/guide.md.\n\n"
        "diff compares two inputs by function, line or variable, which are the same when they have the same name, and "
        "prints what has become more or less, the largest change first.\n\n"
        "An input is one of our databases, one of HPCToolkit (version 4 or experiment.xml), or a file of callgrind, "
        "Caliper (json-split), Hatchet (a literal) or gprof2dot (DOT). For operations and forms a file may come "
        "through a "
        "pipe: - is the standard input.\n\n"
        "The first columns of vars --csv are variable, class, alloc_site, size_bytes, n_blocks, samples, share; with "
        "--fields they are variable, class, alloc_site, field, samples, share. Samples are as counted; values are "
        "estimates of all events, scaled where an event shared its counter. threads_ and processes_ columns show how "
        "the "
        "values spread over all threads and all processes: how many have a value, mean, least and greatest value, "
        "standard deviation, and that divided by the mean (cov).",
    .rows = rows,
    .examples = "  hpcquery vars hpctoolkit-app-database\n"
                "  hpcquery vars --csv hpctoolkit-app-database >vars.csv\n"
                "  hpcquery vars --by thread hpctoolkit-app-database\n"
                "  hpcquery functions hpctoolkit-app-database\n"
                "  hpcquery annotate --instructions solve hpctoolkit-app-database\n"
                "  hpcquery tree --metric FAULTS hpctoolkit-app-database\n"
                "  hpcquery leaks --top 0 hpctoolkit-app-database\n"
                "  hpcquery patterns --variable grid hpctoolkit-app-database\n"
                "  hpcquery cpus --by node --variable grid hpctoolkit-app-database\n"
                "  hpcquery numa hpctoolkit-app-database\n"
                "  hpcquery first-touch hpctoolkit-app-database\n"
                "  hpcquery sched trace.dat\n"
                "  hpcquery sched latencies --task 'app*' --from +1.5 perf.data\n"
                "  hpcquery sched timeline --topology node.xml trace.dat\n"
                "  hpcquery sched events --couplebreak trace.dat --offset 0 perf.data\n"
                "  hpcquery sched chrome -o trace.json trace.dat\n"
                "  hpcquery topo --topology node.xml trace.dat\n"
                "  hpcquery topo --topology a.xml a.dat --topology b.xml b.dat --slices 4 --csv\n"
                "  hpcquery export folded -o app.folded hpctoolkit-app-database\n"
                "  hpcquery filter 'time > 5' : flat : table hpctoolkit-app-database\n"
                "  hpcquery subtract : tree after-database before-database\n"
                "  hpcquery diff --threshold 2 before-database after-database || echo slower or faster\n"
                "  hpcquery query 'MATCH (\"*\")->(p) WHERE p.\"name\" =~ \"MPI_\"' hpctoolkit-app-database\n"
                "  hpcquery export table --derive 'cpi = cycles / instructions' callgrind.out.77",
    .exit_status =
        "0 when the report was printed, 1 when it could not be made, 2 for a wrong command line. diff: 3 when "
        "something differs by more than the threshold.",
    .see_also = "hpcprof(1), hpcrun(1)",
    .choices = choices,
    .sections = sections,
};

static int usage(const char *text)
{
    return tool_usage("hpcquery", "%s", text);
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

/* Takes an option without argument that only reports know; false when it is none. */
static bool take_report_flag(int id, struct settings *settings)
{
    const struct {
        int id;
        const char *name;
        bool *flag;
    } flags[] = {{OPT_ALL, "--all", &settings->with_unused},
                 {OPT_PATHS, "--paths", &settings->with_paths},
                 {OPT_MARK, "--mark", &settings->at_mark},
                 {OPT_VERBOSE, "--verbose", &settings->is_verbose},
                 {OPT_FIELDS, "--fields", &settings->with_fields},
                 {OPT_INSTRUCTIONS, "--instructions", &settings->with_instructions}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].id == id) {
            *flags[i].flag = true;
            if (id != OPT_FIELDS || !settings->report_option)
                settings->report_option = flags[i].name;
            return true;
        }
    return false;
}

/* Takes an option of streams; false when it is none. *result: as take_option. */
static bool take_stream_option(int id, const char *value, int n_operands, struct settings *settings, int *result)
{
    const struct {
        int id;
        const char **value;
    } texts[] = {{OPT_FROM, &settings->from},       {OPT_TO, &settings->to},
                 {OPT_TASK, &settings->tasks},      {OPT_CPU, &settings->cpus},
                 {OPT_SESSION, &settings->session}, {OPT_SAVE_SESSION, &settings->save_session},
                 {OPT_EVENT, &settings->events}};
    *result = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].id == id) {
            *texts[i].value = value;
            return true;
        }
    if (id == OPT_SLICES) {
        char *end;
        long n = strtol(value, &end, 10);
        settings->slices = n > 0 && n <= 100000 ? (size_t)n : 0;
        if (*end || end == value || !settings->slices)
            *result = 1 + usage("--slices takes a number from 1 to 100000");
        return true;
    }
    if (id < OPT_COUPLEBREAK || id > OPT_BUFFER)
        return false;
    if (!streams_take_option(settings, STREAM_OPTION_COUPLEBREAK + id - OPT_COUPLEBREAK, value, n_operands))
        *result = 1 + tool_error("hpcquery", "out of memory");
    return true;
}

/* Takes one option, behind so many operands; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, const char *value, int n_operands, struct settings *settings)
{
    int result;
    if (take_stream_option(id, value, n_operands, settings, &result))
        return result;
    char *end = NULL;
    if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
        return 1;
    if (take_report_flag(id, settings))
        return 0;
    switch (id) {
    case OPT_CSV:
        settings->form = "csv";
        break;
    case OPT_JSON:
        settings->form = "json";
        break;
    case OPT_HTML:
        settings->form = "html";
        break;
    case OPT_METRIC:
        settings->metric = value;
        return add_word(&settings->metrics, &settings->n_metrics, &settings->cap_metrics, value);
    case OPT_ORDER:
        if (strcmp(value, "time") != 0 && strcmp(value, "memory") != 0)
            return usage("--order takes time or memory") + 1;
        settings->by_time = strcmp(value, "time") == 0;
        settings->report_option = "--order";
        break;
    case OPT_BEYOND_NOISE:
        settings->beyond_noise = true;
        break;
    case OPT_INCREASES:
        settings->increases = true;
        break;
    case OPT_LIST_METRICS:
        settings->lists_metrics = true;
        break;
    case OPT_LIST_COMMANDS:
        (void)puts("vars\nfunctions\nlines\nannotate\ntypes\ndatatree\nadvice\nleaks\ncpus\nnuma\nfirst-"
                   "touch\npatterns\nsharing\nevents\nsched\ntopo\nexport\ndiff");
        chain_list_steps();
        return 1;
    case OPT_BY:
        settings->by = value;
        break;
    case OPT_VARIABLE:
        settings->variable = value;
        settings->report_option = "--variable";
        break;
    case OPT_DERIVE:
        return take_derived(settings, value);
    case OPT_PROFILES:
        settings->profiles = value;
        break;
    case OPT_TREE:
        settings->tree = value;
        if (strcmp(value, "code") != 0 && strcmp(value, "data") != 0 && strcmp(value, "both") != 0)
            return usage("--tree takes code, data or both") + 1;
        break;
    case OPT_OUTPUT:
        settings->output = value;
        break;
    case OPT_TOP:
        settings->top = strtol(value, &end, 10);
        return *end || end == value || settings->top < 0 ? 1 + usage("--top takes a number") : 0;
    default:
        settings->min_percent = strtod(value, &end);
        return *end || end == value || !(settings->min_percent >= 0 && settings->min_percent <= 100)
                   ? 1 + usage("--min and --threshold take a percentage, from 0 to 100")
                   : 0;
    }
    return 0;
}

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

static int print_report(const struct settings *settings, const struct report_kind *kind,
                        const struct report_forms *forms, const struct model *model, const char *directory,
                        const struct thread_values *values)
{
    int64_t metric = model_choose_metric(model, settings->metric);
    if (metric < 0)
        return refuse_metric(model, settings->metric);
    bool text_form = strcmp(settings->form, "text") == 0;
    long top = settings->top >= 0 ? settings->top : text_form && !kind->shows_all ? 12 : 0;
    struct terminal terminal = terminal_get(settings);
    const struct export_job job = {.model = model,
                                   .report = kind->name,
                                   .form = settings->form,
                                   .values = values,
                                   .directory = directory,
                                   .subject = settings->variable ? settings->variable : settings->subject,
                                   .metric = (size_t)metric,
                                   .top = (size_t)top,
                                   .fits_screen = settings->top < 0 && settings->min_percent < 0 &&
                                                  !settings->is_verbose && !settings->with_fields &&
                                                  !settings->with_paths && !settings->with_unused &&
                                                  !settings->n_derived,
                                   .by_time = settings->by_time,
                                   .with_unused = settings->with_unused,
                                   .with_paths = settings->with_paths,
                                   .by = settings->by ? split_by_named(settings->by) : SPLIT_NONE,
                                   .at_mark = settings->at_mark,
                                   .with_fields = settings->with_fields,
                                   .is_verbose = settings->is_verbose,
                                   .color = terminal.color,
                                   .unicode = terminal.unicode,
                                   .columns = terminal.columns,
                                   .derived = settings->derived,
                                   .n_derived = settings->n_derived,
                                   .least = settings->min_percent};
    struct buf out = {0};
    struct error err = {0};
    int status = 0;
    if (report_write(forms, &job, &out, &err) != 0)
        status = tool_error("hpcquery", "%s", err.text);
    else
        status = put_output(settings, &out);
    buf_fini(&out);
    return status;
}

/* Whether a report shows what --derive adds. */
static bool is_derivable(const struct settings *settings, const char *report)
{
    static const char *const reports[] = {"vars", "functions", "lines", "types", "tree", "datatree"};
    bool is_known = false, is_csv = strcmp(settings->form, "csv") == 0;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        is_known |= strcmp(reports[i], report) == 0;
    return is_known && !settings->by && strcmp(settings->form, "html") != 0 && !(settings->with_fields && is_csv);
}

/* Refuses --by for a report that has none; the reports that have what is asked for. */
static int refuse_by(const char *report)
{
    static const char *const reasons[][2] = {
        {"leaks", "leaks has no --by: a block belongs to its process, whichever thread or function would free it"},
        {"advice", "advice has no --by: it weighs all threads and places together; see vars --by, numa and patterns"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reasons[i][0], report) == 0)
            return usage(reasons[i][1]);
    return usage("--by goes with vars, functions, lines, annotate, types, tree and datatree only");
}

static int query(const struct settings *settings, const char *report, const char *path)
{
    enum split_by by = settings->by ? split_by_named(settings->by) : SPLIT_NONE;
    const struct report_kind *kind = report_find(report);
    const struct report_forms *forms =
        kind && (!by || kind->by) ? report_forms_of(kind, by != SPLIT_NONE, settings->with_instructions) : NULL;
    bool is_there = forms && report_has_form(forms, settings->form);
    bool is_cpus = strcmp(report, "cpus") == 0;
    if (settings->by && by == SPLIT_NONE)
        return usage("--by takes thread, process, rank, cpu, core, package, node, region or function");
    if (by && is_cpus && !split_by_is_place(by))
        return usage("cpus --by takes cpu, core, package or node");
    if (settings->variable && !is_cpus && strcmp(report, "patterns") != 0 && strcmp(report, "sharing") != 0)
        return usage("--variable goes with cpus, patterns and sharing only");
    if (settings->with_instructions && (by || strcmp(report, "annotate") != 0))
        return usage("--instructions goes with annotate only, and not with --by");
    if (settings->profiles)
        return usage("--profiles goes with operations and forms, not with reports");
    if (settings->n_derived && !is_derivable(settings, report))
        return usage("--derive goes with vars (not with --fields as CSV), functions, lines, types, tree and datatree, "
                     "without --by, and with operations and forms");
    if (!is_there && by && strcmp(settings->form, "html") != 0)
        return refuse_by(report);
    if (!is_there && strcmp(settings->form, "html") == 0)
        return usage("--html goes with vars only, and not with --by");
    if (!is_there)
        return tool_usage("hpcquery",
                          "there is no report '%s': vars, functions, lines, annotate, types, tree, datatree, advice, "
                          "leaks, cpus, numa, first-touch, patterns, sharing, "
                          "export json or html",
                          report);
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
        status = print_report(settings, kind, forms, &model, directory, values);
    thread_values_free(values);
    free(directory);
    model_fini(&model);
    return status;
}

/* For the completion of the shell: the metrics of the first word that is a database. */
static int list_metrics(char **words)
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
    bool found = false;
    for (size_t i = 0; settings->metric && i < settings->n_derived; i++) {
        char *name = derived_name(settings->derived[i]);
        found |= name && strcmp(name, settings->metric) == 0;
        free(name);
    }
    return found;
}

/* What the words ask for: a report on one of our databases, an input in a form, or operations. */
static int answer(struct settings *settings, char **words, size_t n)
{
    static const char *const reports[] = {"vars",        "functions", "lines",  "types", "tree",
                                          "datatree",    "advice",    "leaks",  "cpus",  "numa",
                                          "first-touch", "patterns",  "sharing"};
    bool is_report = n == 2 && !settings->profiles && !is_about_derived(settings);
    if (settings->increases && (n == 0 || strcmp(words[0], "diff") != 0))
        return usage("--increases goes with diff");
    if (settings->beyond_noise && (n == 0 || strcmp(words[0], "diff") != 0))
        return usage("--beyond-noise goes with diff");
    if (n > 0 && strcmp(words[0], "export") == 0) {
        if (n != 3)
            return usage("give a form and an input after export");
        bool is_exporter = report_has_form(&report_find("export")->forms, words[1]);
        if (!is_exporter || !is_ours(words[2]))
            return chain_export(settings, words[1], words[2]);
        settings->form = words[1];
        return query(settings, words[0], words[2]);
    }
    if (n > 0 && strcmp(words[0], "diff") == 0)
        return settings->report_option
                   ? tool_usage("hpcquery", "%s goes with reports, not with diff", settings->report_option)
                   : diff_run(settings, words + 1, n - 1);
    if (n > 0 && strcmp(words[0], "events") == 0)
        return n == 2 && !settings->report_option ? events_run(settings, words[1])
                                                  : usage("give one measurement directory after events");
    if (n > 0 && strcmp(words[0], "sched") == 0)
        return settings->report_option || settings->by
                   ? tool_usage("hpcquery", "%s does not go with sched",
                                settings->report_option ? settings->report_option : "--by")
                   : sched_run(settings, words, n);
    if (n > 0 && strcmp(words[0], "topo") == 0)
        return settings->report_option || settings->by || settings->top >= 0
                   ? tool_usage("hpcquery", "%s does not go with topo",
                                settings->report_option ? settings->report_option
                                : settings->by          ? "--by"
                                                        : "--top")
                   : topo_run(settings, words, n);
    if (settings->n_stream_options || settings->from || settings->to || settings->tasks || settings->cpus ||
        settings->events || settings->slices || settings->session || settings->save_session)
        return usage("--couplebreak, --topology, --view, --offset, --buffer, --from, --to, --task, --cpu, --event, "
                     "--slices, --session and --save-session go with streams (sched, topo)");
    if (n > 0 && strcmp(words[0], "annotate") == 0) {
        if (n != 3)
            return usage("give a file or function, and a database after annotate");
        settings->subject = words[1];
        return query(settings, words[0], words[2]);
    }
    for (size_t i = 0; n > 0 && i < sizeof reports / sizeof *reports; i++)
        if (strcmp(words[0], reports[i]) == 0 && (!chain_knows(words[0]) || (is_report && is_ours(words[1]))))
            return n == 2 ? query(settings, words[0], words[1]) : usage("give one database after the report");
    if (n < 2)
        return usage(
            "give a report (vars, functions, lines, annotate, types, tree, datatree, advice, leaks, cpus, numa, "
            "first-touch, patterns or sharing) and a database, or operations and inputs");
    bool is_of_steps = settings->report_option && strcmp(settings->report_option, "--fields") == 0;
    if ((settings->report_option && !is_of_steps) || settings->by)
        return tool_usage("hpcquery", "%s goes with reports, not with operations and forms",
                          settings->by ? "--by" : settings->report_option);
    return chain_run(settings, words, n);
}

static int run_tool(int argc, char **argv)
{
    struct option_scan scan = {0};
    struct settings settings = {.form = "text", .top = -1, .min_percent = -1};
    struct error err = {0};
    int id, status = -1;
    (void)setlocale(LC_CTYPE, "");
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error, and is removed */
    while (status < 0 && (id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END)
        status = id == OPTIONS_BAD ? usage(err.text) : take_option(id, scan.value, scan.n_operands, &settings) - 1;
    if (status < 0 && settings.lists_metrics)
        status = list_metrics(argv + scan.index);
    if (status < 0)
        status = answer(&settings, argv + scan.index, (size_t)scan.n_operands);
    free(settings.metrics);
    free(settings.derived);
    free(settings.stream_options);
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
