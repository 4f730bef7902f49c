/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof and hpcprof-mpi: measurement directories in, a database out. */
#include "hpcprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/load/load.h"
#include "export/database/database.h"
#include "measurement/names.h"
#include "structures.h"

#define WAIT_MS 120000

static void print_message(void *context, const char *sentence)
{
    const struct settings *settings = context;
    progress_tell(settings->spec->tool, ": left out: ", sentence);
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

/* -M thread makes two columns of each metric and thread. */
static int check_threads(const struct settings *settings, const struct model *model, struct error *err)
{
    if (settings->xml_metrics != SUMMARY_THREADS || settings->forces_metrics || model->n_threads <= SUMMARY_THREADS_MAX)
        return 0;
    return error_set(err, ERR_RANGE,
                     "%s has not been written: -M thread would write %zu metrics of %zu threads each; "
                     "--force-metric does so",
                     settings->xml, model->n_metrics, model->n_threads);
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
                                     .xml_metrics = settings->xml_metrics,
                                     .without_metric_files = settings->without_metric_files,
                                     .extends = settings->extends,
                                     .copies = &copies};
    int code = database_write(model, output, &how, err);
    if (code == 0 && settings->xml)
        code = check_threads(settings, model, err);
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
    struct structures structures = {0};
    int code = team_leads(settings->team)
                   ? structures_read(settings->structures.items, settings->structures.n, &structures, err)
                   : 0;
    const struct load_options options = {.search = settings->search.items,
                                         .replace = settings->replace.items,
                                         .structures = structures.files,
                                         .wait_ms = WAIT_MS,
                                         .job = job,
                                         .older = settings->extends ? &older : NULL,
                                         .n_known = &n_known,
                                         .message = print_message,
                                         .context = (void *)(uintptr_t)settings};
    code = team_agree(settings->team, code, err);
    if (code == 0 && settings->extends)
        code = database_read(settings->output, model, err);
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
    structures_fini(&structures);
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
            progress_tell(settings->spec->tool, ": ", err.text);
        progress_die_if_stopped();
    }
    return code != 0;
}

int hpcprof_main(int argc, char **argv, const struct team *team)
{
    struct settings settings = {.team = team};
    int first = 0, status = settings_take(&settings, argc, argv, &first);
    if (status < 0)
        status = combine(&settings, (const char *const *)&argv[first], (size_t)(argc - first));
    settings_fini(&settings);
    return status;
}
