/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of hpcprof and hpcprof-mpi, and which of them go together. */
#include "hpcprof.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

enum {
    OPT_OUTPUT = 1,
    OPT_EXTEND,
    OPT_XML,
    OPT_INCLUDE,
    OPT_REPLACE,
    OPT_NO_SOURCES,
    OPT_STRUCTURE,
    OPT_INSTRUCTIONS,
    OPT_INTERPRETER,
    OPT_METRIC,
    OPT_FORCE_METRIC,
    OPT_METRIC_DB,
    OPT_NORMALIZE,
    OPT_REMOVE_REDUNDANCY,
    OPT_STRUCT_ID,
    OPT_NAME,
    OPT_THREADS,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_ONLY_EXE,
    OPT_NO_TRACES = OPTION_UNUSED,
    OPT_NO_THREAD_LOCAL,
    OPT_FOREIGN,
    OPT_FORCE,
    OPT_DWARF_MAX,
    OPT_DEBUG
};

static const struct option_row rows[] = {
    {OPT_OUTPUT, "-o --db --output", "DB",
     "Write the database into the directory DB (default: hpctoolkit-<program>-database, after the name of the "
     "measurement directory). An older database there is replaced."},
    {OPT_EXTEND, "-x --extend", NULL,
     "Add the measurements to an existing database (-o) without reading again those that it was made from. Profiles "
     "that it has already are skipped, so the directory of a run that has gone on can be given once more. "
     "Not in hpcprof-mpi."},
    {OPT_XML, "--xml", "DIR",
     "Also write experiment.xml and .metric-db files into the directory DIR, for tools that know this older form only. "
     "A process may have fewer than 500 threads. Not in hpcprof-mpi."},
    {OPT_INCLUDE, "-I --include", "DIR",
     "Also search DIR for source files, by the last parts of their names; DIR/+ includes all directories below DIR. "
     "May be given several times."},
    {OPT_REPLACE, "-R --replace-path", "OLD=NEW",
     "Read source files whose path begins with OLD under NEW instead; may "
     "be given several times."},
    {OPT_NO_SOURCES, "--no-sources --no-source", NULL,
     "Do not copy source files into the database. Otherwise the files that it names are copied into its directory src, "
     "as far as they are found."},
    {OPT_STRUCTURE, "-S --structure", "FILE",
     "Take functions, inlining, loops and lines from FILE, which hpcstruct wrote, and not from the modules that it "
     "describes; these need not be on this machine. Names of heap variables and locals are not in such files: they "
     "come from the module if it is here. A directory stands for all its files that end in .hpcstruct. "
     "May be given several times."},
    {OPT_INSTRUCTIONS, "--instructions", NULL,
     "Keep the instructions that samples fell on, as contexts below their lines: module and offset. hpcquery annotate "
     "--instructions shows them with what each cost; sums of lines, functions and variables stay the same. The "
     "database grows with the number of addresses that have samples. Only code in files has instructions. With "
     "--extend the "
     "older database decides."},
    {OPT_INTERPRETER, "--interpreter-frames", NULL,
     "Show the functions of Python's interpreter as well. Otherwise, on a path with functions of Python, what they "
     "cost stands at the line of Python that they execute; functions of extensions are always shown."},
    {OPT_METRIC, "-M --metric", "KIND",
     "Which metrics experiment.xml (--xml) has: 'sum' over all threads, the default; 'stats': sum, mean, standard "
     "deviation, coefficient of variation, least and greatest; 'thread': the values of each thread. The version 4 form "
     "has all of these always."},
    {OPT_FORCE_METRIC, "--force-metric", NULL, "With -M thread: also for more than 100 threads."},
    {OPT_METRIC_DB, "--metric-db", "yes|no",
     "Whether the values of each thread go into .metric-db files beside experiment.xml (default: yes; Hatchet needs "
     "them)."},
    {OPT_NORMALIZE, "-N --normalize", "all|none", "No effect; accepted for older scripts. The tree has one form only."},
    {OPT_REMOVE_REDUNDANCY, "--remove-redundancy", NULL,
     "No effect; accepted for older scripts. Every name is written once anyway."},
    {OPT_STRUCT_ID, "--struct-id", NULL,
     "No effect; accepted for older scripts. Scopes do not keep the numbers of structure files."},
    {OPT_NAME, "-n --name --title", "NAME", "Title of the database (default: the program's name)."},
    {OPT_THREADS, "-j --jobs --threads", "N",
     "Work with N threads (default: one for each processor). The database is the same."},
    {OPT_QUIET, "-q --quiet", NULL, "Print errors only."},
    {OPT_VERBOSE, "-v --verbose", NULL, "Say what is read and written."},
    {OPT_ONLY_EXE, "--only-exe", "NAME",
     "Of measurement directories only the profiles of programs with this name; may be given several times."},
    {OPT_NO_TRACES, "--no-traces", NULL, NULL},
    {OPT_NO_THREAD_LOCAL, "--no-thread-local", NULL, NULL},
    {OPT_FOREIGN, "--foreign", NULL, NULL},
    {OPT_FORCE, "-f --force", NULL, NULL},
    {OPT_DWARF_MAX, "--dwarf-max-size", "SIZE", NULL},
    {OPT_DEBUG, "--debug", "[=N]", NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

#define DESCRIPTION                                                                                                    \
    "Reads the profiles in the measurement directories DIR (or single .hpcrun files), merges all threads, ranks "      \
    "and processes into one call tree, adds functions, lines, inlining and variables from debug information and "      \
    "symbols, and writes a database: meta.db, profile.db, cct.db and metrics/default.yaml (HPCToolkit's version "      \
    "4), which other tools read, too, and locus.db, which hpcquery reads.\n\n"

static const struct option_spec spec_alone = {
    .tool = "hpcprof",
    .summary = "combine measurements into a database",
    .synopsis = "[options] DIR|FILE...",
    .description = DESCRIPTION
    "A FILE that the perf tool recorded (perf.data) is a measurement, too. It gives every process in it, with "
    "variables where its events have data addresses (perf mem record, perf record -d). perf records no allocations, so "
    "static variables, stacks and file mappings have names, heap blocks have none.\n\n"
    "hpcprof waits for a measurement that is still being written. It leaves out a profile that it cannot read, with a "
    "message; it writes the rest, and the exit status is 1.",
    .rows = rows,
    .examples = "  hpcprof hpctoolkit-app-measurements\n"
                "  hpcprof -o both run1-measurements run2-measurements\n"
                "  hpcprof --xml app-xml -o app-database hpctoolkit-app-measurements\n"
                "  hpcprof -o app-database --extend hpctoolkit-app-measurements\n"
                "  perf record -d -e page-faults -c 1 ./app; hpcprof perf.data",
    .exit_status = "0 when everything was combined, 1 when something failed or was left out, 2 for a wrong command "
                   "line.",
    .see_also = "hpcrun(1), hpcquery(1), hpcproftt(1)",
};

static const struct option_spec spec_team = {
    .tool = "hpcprof-mpi",
    .summary = "combine measurements into a database, with many processes",
    .synopsis = "[options] DIR|FILE...",
    .description = DESCRIPTION
    "The launcher of MPI starts it, with as many processes as shall share the work. Each reads a part of the profiles "
    "and writes its part of the values; all need access to the measurements and to the directory of the database. "
    "Whatever their number, the database has the same bytes as that of hpcprof. The options are the same, except "
    "--xml and --extend.",
    .rows = rows,
    .examples = "  mpiexec -n 16 hpcprof-mpi -o app-database hpctoolkit-app-measurements\n"
                "  srun -n 64 hpcprof-mpi -j 2 -o app-database hpctoolkit-app-measurements",
    .exit_status = "0 when everything was combined, 1 when something failed or was left out, 2 for a wrong command "
                   "line.",
    .see_also = "hpcrun(1), hpcprof(1), hpcquery(1)",
};

static bool list_add(struct list *list, const char *item)
{
    if (!vec_reserve(&list->items, &list->capacity, list->n + 2, sizeof *list->items))
        return false;
    list->items[list->n++] = item;
    return true;
}

static int usage(const struct settings *settings, const char *text)
{
    if (team_leads(settings->team))
        (void)tool_usage(settings->spec->tool, "%s", text);
    return 2;
}

static int take_metric(const char *value, struct settings *settings)
{
    static const char *const kinds[] = {
        [SUMMARY_SUM] = "sum", [SUMMARY_STATISTICS] = "stats", [SUMMARY_THREADS] = "thread"};
    settings->has_metric = true;
    for (enum summary_kind kind = SUMMARY_SUM; kind <= SUMMARY_THREADS; kind++)
        if (strcmp(value, kinds[kind]) == 0) {
            settings->xml_metrics = kind;
            return 0;
        }
    return 1 + usage(settings, "-M takes 'sum', 'stats' or 'thread'");
}

/* Options of the original that are about what our databases do not have; 0, or an exit status + 1. */
static int take_without_effect(int id, const char *value, struct settings *settings)
{
    static const char *const sentences[] = {
        [OPT_NORMALIZE] = "-N has no effect: the tree of a database has one form only",
        [OPT_REMOVE_REDUNDANCY] = "--remove-redundancy has no effect: every name is written once anyway",
        [OPT_STRUCT_ID] = "--struct-id has no effect: scopes do not keep the numbers of structure files"};
    if (id == OPT_NORMALIZE && strcmp(value, "all") != 0 && strcmp(value, "none") != 0)
        return 1 + usage(settings, "-N takes 'all' or 'none'");
    return list_add(&settings->without_effect, sentences[id]) ? 0 : 2;
}

static int take_metric_db(const char *value, struct settings *settings)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return 1 + usage(settings, "--metric-db takes 'yes' or 'no'");
    settings->without_metric_files = strcmp(value, "no") == 0;
    return 0;
}

/* Takes an option about the metrics or the structure. */
static int take_form(int id, const char *value, struct settings *settings)
{
    switch (id) {
    case OPT_METRIC:
        return take_metric(value, settings);
    case OPT_METRIC_DB:
        return take_metric_db(value, settings);
    default:
        return take_without_effect(id, value, settings);
    }
}

/* Takes one option; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, const char *value, struct settings *settings)
{
    char *end = NULL;
    if (options_standard(settings->spec, id, PACKAGE_VERSION, stdout))
        return 1;
    if (id >= OPTION_UNUSED) {
        option_unused_add(&settings->unused, settings->spec, id);
        return 0;
    }
    switch (id) {
    case OPT_ONLY_EXE:
        return list_add(&settings->only_exes, value) ? 0 : 2;
    case OPT_OUTPUT:
        settings->output = value;
        break;
    case OPT_EXTEND:
        settings->extends = true;
        break;
    case OPT_XML:
        settings->xml = value;
        break;
    case OPT_INCLUDE:
        return list_add(&settings->search, value) ? 0 : 2;
    case OPT_REPLACE:
        if (!strchr(value, '='))
            return 1 + usage(settings, "-R takes OLD=NEW");
        return list_add(&settings->replace, value) ? 0 : 2;
    case OPT_NO_SOURCES:
        settings->no_sources = true;
        break;
    case OPT_STRUCTURE:
        return list_add(&settings->structures, value) ? 0 : 2;
    case OPT_INSTRUCTIONS:
        settings->keeps_instructions = true;
        break;
    case OPT_INTERPRETER:
        settings->shows_interpreter = true;
        break;
    case OPT_FORCE_METRIC:
        settings->forces_metrics = true;
        break;
    case OPT_METRIC:
    case OPT_METRIC_DB:
    case OPT_NORMALIZE:
    case OPT_REMOVE_REDUNDANCY:
    case OPT_STRUCT_ID:
        return take_form(id, value, settings);
    case OPT_NAME:
        settings->title = value;
        break;
    case OPT_THREADS:
        settings->n_threads = strtoul(value, &end, 10);
        if (*end || end == value || settings->n_threads < 1 || settings->n_threads > THREADS_MAX)
            return 1 + usage(settings, "-j takes a number from 1 to 1024");
        break;
    case OPT_QUIET:
        settings->quiet = true;
        break;
    default:
        settings->verbose = true;
        break;
    }
    return 0;
}

/* What does not go together; NULL when all does. */
static const char *contradiction(const struct settings *settings, int n_operands)
{
    if (settings->extends && !settings->output)
        return "--extend needs -o and a database";
    if (settings->team && settings->extends)
        return "--extend is for hpcprof: hpcprof-mpi makes databases from measurements";
    if (n_operands == 0)
        return "no measurement directory is given";
    if (settings->team && settings->xml)
        return "--xml is for hpcprof; this database can be read by hpcquery, viewers and Hatchet";
    return NULL;
}

static void tell_without_effect(struct settings *settings)
{
    if (settings->has_metric && !settings->xml)
        (void)list_add(&settings->without_effect,
                       "-M has no effect without --xml: the version 4 form has sums, statistics and threads always");
    if (team_leads(settings->team) && !settings->quiet)
        option_unused_say(&settings->unused, settings->spec->tool);
    for (size_t i = 0; team_leads(settings->team) && !settings->quiet && i < settings->without_effect.n; i++)
        (void)tool_error(settings->spec->tool, "%s", settings->without_effect.items[i]);
}

int settings_take(struct settings *settings, int argc, char **argv, int *first)
{
    struct option_scan scan = {0};
    struct error err = {0};
    int id, status = -1;
    settings->spec = settings->team ? &spec_team : &spec_alone;
    while (status < 0 && (id = options_next(settings->spec, &scan, argc, argv, &err)) != OPTIONS_END)
        status = id == OPTIONS_BAD ? usage(settings, err.text) : take_option(id, scan.value, settings) - 1;
    const char *wrong = status < 0 ? contradiction(settings, scan.n_operands) : NULL;
    if (wrong)
        status = usage(settings, wrong);
    if (status < 0)
        tell_without_effect(settings);
    *first = scan.index;
    return status;
}

void settings_fini(struct settings *settings)
{
    free(settings->search.items);
    free(settings->replace.items);
    free(settings->structures.items);
    free(settings->without_effect.items);
    free(settings->only_exes.items);
}
