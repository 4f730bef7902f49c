/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof and hpcprof-mpi: measurement directories in, a database out. Ordinary code. */
#include "hpcprof.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/load/load.h"
#include "base/input.h"
#include "base/path.h"
#include "base/scratch.h"
#include "database/database.h"
#include "fmt/file.h"
#include "measurement/names.h"
#include "running/running.h"
#include "structure/xml/structure-file.h"

/* --- structure files --- */

/* Those that a command line names. */
struct structures {
    const struct structure_file **files; /* [n], NULL-terminated; NULL when there are none */
    size_t n, capacity;
};

static int read_one(const char *path, struct structures *structures, struct error *err)
{
    struct structure_file *file = NULL;
    struct buf text = {0};
    int code = file_read(path, &text, err);
    if (code == 0)
        code = structure_file_read(&text, path, &file, err);
    buf_fini(&text);
    if (code != 0)
        return code;
    if (vec_reserve(&structures->files, &structures->capacity, structures->n + 2, sizeof *structures->files)) {
        structures->files[structures->n++] = file;
        return 0;
    }
    structure_file_free(file);
    return error_memory(err);
}

static int is_structure(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 10 && strcmp(entry->d_name + len - 10, ".hpcstruct") == 0;
}

static int read_directory(const char *directory, struct structures *structures, struct error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, is_structure, alphasort), code = 0;
    if (n < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", directory, strerror(errno));
    if (n == 0)
        code = error_set(err, ERR_NOT_FOUND, "%s: holds no file that ends in .hpcstruct", directory);
    for (int i = 0; i < n; i++) {
        struct buf path = {0};
        buf_printf(&path, "%s/%s", directory, entries[i]->d_name);
        if (code == 0)
            code = path.failed ? error_memory(err) : read_one(path.data, structures, err);
        buf_fini(&path);
        free(entries[i]);
    }
    free(entries);
    return code;
}

/* Reads the files, and of directories all files in them that end in .hpcstruct, in the order of their names.
 * err: ERR_IO, ERR_FORMAT, ERR_NOT_FOUND (a directory without any), ERR_MEMORY */
static int structures_read(const char *const *paths, size_t n_paths, struct structures *structures, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n_paths; i++) {
        struct stat info;
        bool is_directory = stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode);
        code = is_directory ? read_directory(paths[i], structures, err) : read_one(paths[i], structures, err);
    }
    return code;
}

static void structures_fini(struct structures *structures)
{
    for (size_t i = 0; i < structures->n; i++)
        structure_file_free((struct structure_file *)(uintptr_t)(const void *)structures->files[i]);
    free(structures->files);
    *structures = (struct structures){0};
}

/* --- how far it is, on a terminal; and the user's wish to stop --- */

#define INTERVAL_NS 100000000

/* How long after a signal the work may take to end by itself. */
#define GRACE_NS 400000000

static struct {
    volatile sig_atomic_t signal;
    sem_t arrived;
    bool with_times, is_shown;
    const char *phase;
    long long phase_begin_ns, shown_ns;
} progress;

static long long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void take_signal(int number)
{
    int saved = errno;
    progress.signal = number;
    (void)sem_post(&progress.arrived);
    errno = saved;
}

static _Noreturn void die(int number)
{
    sigset_t one;
    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, number);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    (void)kill(getpid(), number);
    _exit(128 + number);
}

/* The work checks for signals between its steps. When a step takes long, for example because a file server does not
 * answer, or when another signal comes, this thread ends the process, and leaves nothing half-made. */
static void *end_at_once(void *unused)
{
    struct timespec end;
    while (sem_wait(&progress.arrived) != 0)
        ;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += GRACE_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (sem_timedwait(&progress.arrived, &end) != 0 && errno == EINTR)
        ;
    scratch_remove_noted();
    die(progress.signal);
    return unused;
}

/* From here on SIGINT, SIGTERM and SIGHUP mean: stop. The work ends at its next step. When that takes long, or when
 * another signal comes, the process ends and removes what is noted (base/scratch.h).
 * with_times: end_phase prints how long each phase took. */
static void progress_begin(bool with_times)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action, old;
    pthread_t watcher;
    memset(&action, 0, sizeof action);
    action.sa_handler = take_signal;
    action.sa_flags = SA_RESTART;
    bool is_watched = sem_init(&progress.arrived, 0, 0) == 0 && pthread_create(&watcher, NULL, end_at_once, NULL) == 0;
    if (is_watched)
        (void)pthread_detach(watcher);
    else
        action.sa_flags |= (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    progress.with_times = with_times;
    progress.phase = "";
    progress.phase_begin_ns = now_ns();
}

/* Clears the line on the terminal. */
static void progress_end(void)
{
    if (progress.is_shown)
        (void)fprintf(stderr, "\r\033[K");
    progress.is_shown = false;
}

static void end_phase(const char *next)
{
    long long now = now_ns();
    progress_end();
    if (progress.with_times)
        (void)printf("%8.3f s %s\n", (double)(now - progress.phase_begin_ns) * 1e-9,
                     *progress.phase ? progress.phase : "listing profiles");
    progress.phase = next;
    progress.phase_begin_ns = now;
}

/* For struct job: shows a line on standard error when that is a terminal, at most some times a second. */
static void progress_show(void *context, const char *phase, size_t n_done, size_t n_tasks)
{
    (void)context;
    if (strcmp(phase, progress.phase) != 0)
        end_phase(phase);
    if (!isatty(STDERR_FILENO))
        return;
    long long now = now_ns();
    if (n_done < n_tasks && now - progress.shown_ns < INTERVAL_NS)
        return;
    progress.shown_ns = now;
    progress.is_shown = true;
    (void)fprintf(stderr, "\r\033[K%s: %zu of %zu", phase, n_done, n_tasks);
}

/* For struct job: whether a signal asks the work to stop. */
static bool progress_stopped(void *context)
{
    (void)context;
    return progress.signal != 0;
}

/* Ends the program by the signal that was taken, if one was. */
static void progress_die_if_stopped(void)
{
    if (progress.signal)
        die(progress.signal);
}

/* --- the whole program --- */

#define WAIT_MS 120000

static void print_message(void *context, const char *sentence)
{
    const struct settings *settings = context;
    (void)tool_error(settings->spec->tool, "left out: %s", sentence);
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
static void report_sources(const struct settings *settings, const struct source_copies *copies)
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
                     "%s: was not written: -M thread would write %zu metrics of %zu threads each; "
                     "add --force-metric to write them",
                     settings->xml, model->n_metrics, model->n_threads);
}

/* The older form would replace the database that has just been written, whatever names lead there. */
static int check_apart(const char *xml, const char *output, struct error *err)
{
    struct stat a, b;
    bool is_same = stat(xml, &a) == 0 && stat(output, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    return is_same ? error_set(err, ERR_USAGE,
                               "%s: experiment.xml was not written: this is the database; give --xml "
                               "another directory",
                               xml)
                   : 0;
}

static int write_database(const struct settings *settings, const struct job *job, const struct value_source *source,
                          struct model *model, const char *const *paths, size_t n_paths, struct error *err)
{
    const char *program = model->program ? path_last(model->program) : "program";
    char *path = default_output(paths[0], program);
    if (!path)
        return error_memory(err);
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
                                     .measurements = paths,
                                     .n_measurements = n_paths,
                                     .extends = settings->extends,
                                     .copies = &copies};
    int code = database_write(model, output, &how, err);
    if (code == 0 && settings->xml)
        code = check_apart(settings->xml, output, err);
    if (code == 0 && settings->xml)
        code = check_threads(settings, model, err);
    if (code == 0 && settings->xml)
        code = database_write_xml(model, settings->xml, &how, err);
    progress_end();
    if (code == 0)
        report_sources(settings, &copies);
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

/* A database has all its instructions or none: lines that it has cannot be divided any more. */
static int follow_older(const struct settings *settings, const struct model *older, bool *keeps_instructions,
                        struct error *err)
{
    bool has_them = model_has_instructions(older);
    if (*keeps_instructions && !has_them)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s was made without --instructions; make it anew from its measurements to have them",
                         settings->output);
    *keeps_instructions = has_them;
    return 0;
}

static int combine_into(const struct settings *settings, const struct job *job, const char *const *paths,
                        size_t n_paths, struct model *model, struct error *err)
{
    size_t n_skipped = 0, n_known = 0;
    struct value_source source = {0}, older = {0};
    struct structures structures = {0};
    bool keeps_instructions = settings->keeps_instructions;
    int code = team_leads(settings->team)
                   ? structures_read(settings->structures.items, settings->structures.n, &structures, err)
                   : 0;
    code = team_agree(settings->team, code, err);
    if (code == 0 && settings->extends)
        code = database_read(settings->output, model, err);
    if (code == 0 && settings->extends)
        code = database_values_open(settings->output, model, &older, err);
    if (code == 0 && settings->extends)
        code = follow_older(settings, model, &keeps_instructions, err);
    const struct load_options options = {.search = settings->search.items,
                                         .replace = settings->replace.items,
                                         .structures = structures.files,
                                         .keeps_instructions = keeps_instructions,
                                         .shows_interpreter = settings->shows_interpreter,
                                         .wait_ms = WAIT_MS,
                                         .job = job,
                                         .prior = settings->extends ? &older : NULL,
                                         .n_known = &n_known,
                                         .message = print_message,
                                         .context = (void *)(uintptr_t)settings};
    if (code == 0)
        code = load_measurements(paths, n_paths, &options, model, &source, &n_skipped, err);
    progress_end();
    if (code == 0 && settings->verbose && n_known > 0)
        (void)printf("%zu profiles are in the database already\n", n_known);
    if (code == 0 && !team_leads(settings->team))
        code = database_join(model, &source, job, err);
    else if (code == 0)
        code = write_database(settings, job, &source, model, paths, n_paths, err);
    values_free(&source);
    values_free(&older);
    structures_fini(&structures);
    return code != 0 ? code : n_skipped > 0;
}

/* Has what still runs save what it has so far. Where that cannot be had, as on another node, what was saved last is
 * what there is, and the database says that it is not all. */
static void save_running(const struct settings *settings, const char *const *paths, size_t n_paths)
{
    struct error err;
    for (size_t i = 0; i < n_paths; i++) {
        struct stat info;
        if (stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode) && running_save(paths[i], &err) < 0)
            (void)tool_error(settings->spec->tool, "%s: what runs could not be saved as it is now: %s", paths[i],
                             err.text);
    }
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
    if (code == 0 && team_leads(settings->team))
        save_running(settings, paths, n_paths);
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
            (void)tool_error(settings->spec->tool, "%s", err.text);
        progress_die_if_stopped();
    }
    return code != 0;
}

/* --- only some programs --- */

/* What is read instead of directories: their profiles of the programs that were asked for. */
struct chosen {
    char **paths;
    size_t n, capacity;
};

static bool is_wanted(const struct list *exes, const char *exe)
{
    for (size_t i = 0; i < exes->n; i++)
        if (strcmp(path_last(exes->items[i]), exe) == 0)
            return true;
    return false;
}

static bool chosen_add(struct chosen *chosen, char *path)
{
    if (path && vec_reserve(&chosen->paths, &chosen->capacity, chosen->n + 1, sizeof *chosen->paths)) {
        chosen->paths[chosen->n++] = path;
        return true;
    }
    free(path);
    return false;
}

/* err: ERR_IO, ERR_NOT_FOUND (a directory has no such profile), ERR_MEMORY */
static int choose(const struct list *exes, const char *path, struct chosen *chosen, struct error *err)
{
    struct names_file *files = NULL;
    struct stat info;
    size_t n = 0, n_before = chosen->n;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return chosen_add(chosen, strdup(path)) ? 0 : error_memory(err);
    int code = names_list(path, "hpcrun", &files, &n, err);
    for (size_t i = 0; code == 0 && i < n; i++)
        if (is_wanted(exes, files[i].exe) && !chosen_add(chosen, names_path(path, &files[i])))
            code = error_memory(err);
    free(files);
    if (code == 0 && chosen->n == n_before)
        code = error_set(err, ERR_NOT_FOUND, "%s: holds no profile of a program that --only-exe names", path);
    return code;
}

/* As combine, with the profiles of some programs alone. Returns the exit status. */
static int combine_chosen(const struct settings *settings, const char *const *paths, size_t n_paths)
{
    struct chosen chosen = {0};
    struct error err;
    int code = 0, status = 1;
    for (size_t i = 0; code == 0 && i < n_paths; i++)
        code = choose(&settings->only_exes, paths[i], &chosen, &err);
    if (code != 0)
        (void)tool_error(settings->spec->tool, "%s", err.text);
    else
        status = combine(settings, (const char *const *)chosen.paths, chosen.n);
    for (size_t i = 0; i < chosen.n; i++)
        free(chosen.paths[i]);
    free(chosen.paths);
    return status;
}

int hpcprof_main(int argc, char **argv, const struct team *team)
{
    struct settings settings = {.team = team};
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error, and the database is removed */
    int first = 0, status = settings_take(&settings, argc, argv, &first);
    if (status < 0)
        status = (settings.only_exes.n ? combine_chosen : combine)(&settings, (const char *const *)&argv[first],
                                                                   (size_t)(argc - first));
    settings_fini(&settings);
    return status;
}
