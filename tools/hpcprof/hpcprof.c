/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof and hpcprof-mpi: measurement directories in, a database out. */
#include "hpcprof.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/load.h"
#include "base/options.h"
#include "export/database-values.h"
#include "export/database.h"
#include "fmt/names.h"

#define WAIT_MS 120000
#define THREADS_MAX 1024

enum {
    OPT_OUTPUT = 1,
    OPT_EXTEND,
    OPT_XML,
    OPT_INCLUDE,
    OPT_REPLACE,
    OPT_NO_SOURCES,
    OPT_METRIC,
    OPT_NAME,
    OPT_THREADS,
    OPT_QUIET,
    OPT_VERBOSE
};

static const struct option_row rows[] = {
    {OPT_OUTPUT, "-o --db --output", "DB",
     "Write the database into the directory DB (default: hpctoolkit-<program>-database, after the name of the "
     "measurement directory). An older database there is replaced."},
    {OPT_EXTEND, "-x --extend", NULL,
     "Add the measurements to the database there is (-o) without reading those that it was made from again. Profiles "
     "that it has already are passed over, so that the directory of a run that has gone on can be given once more. "
     "hpcprof-mpi does not extend."},
    {OPT_XML, "--xml", "DIR",
     "Write experiment.xml and .metric-db files into the directory DIR too, for tools that know this older form only. "
     "It holds fewer than 500 threads in each process. hpcprof-mpi does not write it."},
    {OPT_INCLUDE, "-I --include", "DIR",
     "Look for source files in DIR too, by the last parts of their names; DIR/+ means all directories below DIR, too. "
     "May be given several times."},
    {OPT_REPLACE, "-R --replace-path", "OLD=NEW",
     "Read source files whose path begins with OLD under NEW instead; may "
     "be given several times."},
    {OPT_NO_SOURCES, "--no-sources", NULL,
     "Do not copy source files into the database. Otherwise those that it names and that are found are copied into its "
     "directory src."},
    {OPT_METRIC, "-M --metric", "KIND",
     "Which summary metrics experiment.xml carries. Only 'sum', the default, is "
     "known; values by thread are always written."},
    {OPT_NAME, "-n --name --title", "NAME", "Title of the database (default: the program's name)."},
    {OPT_THREADS, "-j --jobs", "N", "Work with N threads (default: one for each processor). The database is the same."},
    {OPT_QUIET, "-q --quiet", NULL, "Print errors only."},
    {OPT_VERBOSE, "-v --verbose", NULL, "Say what is read and written."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

#define DESCRIPTION                                                                                                    \
    "Reads the profiles in the measurement directories DIR (or single .hpcrun files), merges all threads, ranks "      \
    "and processes into one call tree, adds functions, lines, inlining and variables from debug information and "      \
    "symbols, and writes a database: meta.db, profile.db, cct.db and metrics/default.yaml (HPCToolkit's version "      \
    "4), which other tools read, too, and locus.json, which hpcquery reads.\n\n"

static const struct option_spec spec_alone = {
    .tool = "hpcprof",
    .summary = "combine measurements into a database",
    .synopsis = "[options] DIR|FILE...",
    .description = DESCRIPTION
    "A FILE that the perf tool recorded (perf.data) is a measurement, too: of every process in it, with variables "
    "where its events have data addresses (perf mem record, perf record -d). perf records no allocations, so "
    "static variables, stacks and file mappings have names, heap blocks have none.\n\n"
    "A measurement that is still being written is waited for. A profile that cannot be read is left out with a "
    "message; the rest is written, and the exit status is 1.",
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
    "It is started by the launcher of MPI, with as many processes as the work is to be divided among. Each reads a "
    "part of the profiles and writes its part of the values; all need access to the measurements and to the place "
    "of the database. Whatever their number, the database has the same bytes as that of hpcprof, and the options "
    "are the same, but for --xml and --extend.",
    .rows = rows,
    .examples = "  mpiexec -n 16 hpcprof-mpi -o app-database hpctoolkit-app-measurements\n"
                "  srun -n 64 hpcprof-mpi -j 2 -o app-database hpctoolkit-app-measurements",
    .exit_status = "0 when everything was combined, 1 when something failed or was left out, 2 for a wrong command "
                   "line.",
    .see_also = "hpcrun(1), hpcprof(1), hpcquery(1)",
};

struct settings {
    const struct option_spec *spec;
    const struct team *team;
    const char *output, *xml, *title;
    struct list {
        const char **items; /* NULL-terminated */
        size_t n, capacity;
    } search, replace;
    size_t n_threads;
    bool extends, no_sources, quiet, verbose;
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
    const char *tool = settings->spec->tool;
    if (team_leads(settings->team))
        (void)fprintf(stderr, "%s: %s\nTry '%s --help'.\n", tool, text, tool);
    return 2;
}

/* Takes one option; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, const char *value, struct settings *settings)
{
    char *end = NULL;
    if (options_standard(settings->spec, id, PACKAGE_VERSION, stdout))
        return 1;
    switch (id) {
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
    case OPT_METRIC:
        if (strcmp(value, "sum") != 0)
            return 1 + usage(settings, "-M knows 'sum' only");
        break;
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

static void print_message(void *context, const char *sentence)
{
    const struct settings *settings = context;
    (void)fprintf(stderr, "%s: left out: %s.\n", settings->spec->tool, sentence);
}

/* "x-measurements-1" gives "x-database-1"; any other directory, the program's name. malloc'ed. */
static char *default_output(const char *path, const char *program)
{
    static const char word[] = "-measurements";
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *base = path + len;
    while (base > path && base[-1] != '/')
        base--;
    char *name = NULL, *directory = strndup(base, (size_t)(path + len - base));
    char *at = directory ? strstr(directory, word) : NULL;
    int code = at ? asprintf(&name, "%.*s-database%s", (int)(at - directory), directory, at + sizeof word - 1)
                  : asprintf(&name, "hpctoolkit-%s-database", program);
    free(directory);
    return code < 0 ? NULL : name;
}

/* Without -I and -R nobody expects the sources of system libraries. */
static void tell_sources(const struct settings *settings, const struct source_copies *copies)
{
    bool is_asked = settings->verbose || settings->search.n + settings->replace.n > 0;
    if (settings->quiet || !is_asked || settings->no_sources)
        return;
    (void)printf("%zu source files copied", copies->n_copied);
    if (copies->n_missing)
        (void)printf(", %zu not found or not readable: %s%s", copies->n_missing,
                     copies->missing.data ? copies->missing.data : "", copies->n_missing > 3 ? ", ..." : "");
    (void)printf("\n");
}

static int write_database(const struct settings *settings, const struct job *job, const struct value_source *source,
                          struct model *model, const char *input, struct error *err)
{
    const char *program = model->program ? names_base(model->program) : "program";
    char *path = default_output(input, program);
    if (!path)
        return error_set(err, ERR_MEMORY, "out of memory");
    const char *output = settings->output ? settings->output : path;
    struct source_copies copies = {0};
    const struct database_job how = {.job = job,
                                     .source = source,
                                     .title = settings->title ? settings->title : program,
                                     .search = settings->search.items,
                                     .replace = settings->replace.items,
                                     .without_sources = settings->no_sources,
                                     .extends = settings->extends,
                                     .copies = &copies};
    int code = database_write(model, output, &how, err);
    if (code == 0 && settings->xml)
        code = database_write_xml(model, settings->xml, &how, err);
    progress_end();
    if (code == 0)
        tell_sources(settings, &copies);
    sources_fini(&copies);
    if (code == 0 && settings->verbose)
        (void)printf("%zu threads of %zu processes, %zu nodes, %zu variables, %zu metrics\n", model->n_threads,
                     model->n_processes, model->n_scopes - 1, model->n_variables, model->n_metrics);
    for (size_t i = 0; code == 0 && settings->verbose && i < model->n_notes; i++)
        (void)printf("note: %s\n", model->notes[i]);
    if (code == 0 && !settings->quiet)
        (void)printf("Database written: %s\n", output);
    free(path);
    return code;
}

static int combine_into(const struct settings *settings, const struct job *job, const char *const *paths,
                        size_t n_paths, struct model *model, struct error *err)
{
    size_t n_skipped = 0, n_known = 0;
    struct value_source source = {0}, older = {0};
    const struct load_options options = {.search = settings->search.items,
                                         .replace = settings->replace.items,
                                         .wait_ms = WAIT_MS,
                                         .job = job,
                                         .older = settings->extends ? &older : NULL,
                                         .n_known = &n_known,
                                         .message = print_message,
                                         .context = (void *)(uintptr_t)settings};
    int code = settings->extends ? database_read(settings->output, model, err) : 0;
    if (code == 0 && settings->extends)
        code = database_values_open(settings->output, model, &older, err);
    if (code == 0)
        code = load_measurements(paths, n_paths, &options, model, &source, &n_skipped, err);
    progress_end();
    if (code == 0 && settings->verbose && n_known > 0)
        (void)printf("%zu profiles are in the database already\n", n_known);
    if (code == 0 && !team_leads(settings->team))
        code = database_join(model, &source, job, err);
    else if (code == 0)
        code = write_database(settings, job, &source, model, paths[0], err);
    values_free(&source);
    values_free(&older);
    return code != 0 ? code : n_skipped > 0;
}

static int combine(const struct settings *settings, const char *const *paths, size_t n_paths)
{
    struct error err = {0};
    struct model model = {0};
    char *scratch = database_parent(settings->output ? settings->output : "");
    bool is_shown = !settings->quiet && team_leads(settings->team);
    const struct job job = {.team = settings->team,
                            .n_threads = settings->n_threads ? settings->n_threads : workers_processors(),
                            .scratch = scratch,
                            .progress = is_shown ? progress_show : NULL,
                            .stop = progress_stopped};
    int code = scratch ? model_init(&model, &err) : error_set(&err, ERR_MEMORY, "out of memory");
    if (code == 0 && settings->output && team_leads(settings->team))
        code = database_check(settings->output, &err);
    if (code == 0 && settings->xml)
        code = database_check(settings->xml, &err);
    code = team_agree(settings->team, code, &err);
    if (code == 0) {
        progress_begin(settings->verbose);
        code = combine_into(settings, &job, paths, n_paths, &model, &err);
    }
    if (scratch)
        model_fini(&model);
    free(scratch);
    if (code < 0) {
        if (strcmp(err.text, TEAM_ENDED) != 0)
            (void)fprintf(stderr, "%s: %s.\n", settings->spec->tool, err.text);
        progress_die_if_stopped();
    }
    return code != 0;
}

int hpcprof_main(int argc, char **argv, const struct team *team)
{
    struct option_scan scan = {0};
    struct settings settings = {.spec = team ? &spec_team : &spec_alone, .team = team};
    struct error err = {0};
    int id, status = -1;
    while (status < 0 && (id = options_next(settings.spec, &scan, argc, argv, &err)) != OPTIONS_END)
        status = id == OPTIONS_BAD ? usage(&settings, err.text) : take_option(id, scan.value, &settings) - 1;
    if (status < 0 && settings.extends && !settings.output)
        status = usage(&settings, "--extend needs -o and a database");
    if (status < 0 && team && settings.extends)
        status = usage(&settings, "--extend is for hpcprof: hpcprof-mpi makes databases from measurements");
    if (status < 0 && scan.n_operands == 0)
        status = usage(&settings, "which measurement directory?");
    if (status < 0 && team && settings.xml)
        status = usage(&settings, "--xml is for hpcprof; this database can be read by hpcquery, viewers and Hatchet");
    if (status < 0)
        status = combine(&settings, (const char *const *)&argv[scan.index], (size_t)scan.n_operands);
    free(settings.search.items);
    free(settings.replace.items);
    return status;
}
