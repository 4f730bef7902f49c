/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun: see options.c for what it does and launch.c for how. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "companion/companion.h"
#include "export/advice/advice-try.h"
#include "hpcrun.h"
#include "measurement/names.h"
#include "measurement/pending.h"
#include "running/running.h"
#include "sampling/machine.h"
#include "sampling/perf-names.h"
#include "trial/trial.h"

static int print_events(const struct hpcrun_options *options)
{
    const char *const *patterns = (const char *const *)options->command;
    if (list_events(patterns, stdout) > 0)
        return 0;
    if (perf_names_obstacle())
        return tool_error("hpcrun", "no event that is known here matches: %s", perf_names_obstacle());
    return tool_error("hpcrun",
                      "no event of this machine matches; hpcrun -L lists all events, hpcrun -L 'sched:*' tracepoints");
}

static int print_plan(const struct hpcrun_options *options)
{
    struct error err;
    int status = plan_print(options, stdout, &err);
    if (status == 0)
        return 0;
    int failed = tool_error("hpcrun", "%s", err.text);
    return status == ERR_USAGE || status == ERR_RANGE ? 2 : failed; /* as launch_run says and ends */
}

/* Options end at the first operand; here one may still follow. */
static int print_status(const struct hpcrun_options *options)
{
    const char *operand = NULL;
    bool is_json = options->json;
    for (char **word = options->command; *word; word++) {
        if (strcmp(*word, "--json") == 0)
            is_json = true;
        else if (operand)
            return tool_usage("hpcrun", "--status takes one process id, one measurement directory, or nothing");
        else
            operand = *word;
    }
    return running_status(operand, is_json, stdout);
}

static int control(char **words)
{
    int n = 0;
    while (words[n])
        n++;
    return running_command(words, n, stdout);
}

/* --copy: the files of processes that run on. */
static int copy_all(const struct running_list *list, const char *to)
{
    struct error err;
    int status = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct running_process *process = &list->processes[i];
        if (process->is_foreign)
            status = tool_error("hpcrun", "process %ld belongs to another user: only that user may copy it",
                                (long)process->pid);
        else if (companion_copy(process->arena, process->size_bytes, process->dir, to, &err) != 0)
            status = tool_error("hpcrun", "process %ld: %s", (long)process->pid, err.text);
    }
    return status;
}

/* A directory, and the processes of this host whose records are read. */
struct copied {
    const struct running_list *list;
    const char *directory;
};

static bool is_copied(const struct names_file *file, const void *context)
{
    const struct copied *copied = context;
    return running_has_file(copied->list, copied->directory, file);
}

/* What is in the directories that were named, of processes that have ended or run on other hosts. */
static size_t copy_rest(char *const *words, const struct running_list *list, const char *to)
{
    char real[PATH_MAX];
    struct error ignored;
    size_t n = 0;
    for (; *words; words++) {
        const struct copied copied = {list, real};
        size_t n_more = running_word_directory(*words, real) ? pending_copy_rest(real, to, is_copied, &copied) : 0;
        if (n_more)
            (void)pending_copy_note(real, to, &ignored);
        n += n_more;
    }
    return n;
}

static bool has_directory(char *const *words)
{
    char real[PATH_MAX];
    bool has = false;
    for (; *words && !has; words++)
        has = running_word_directory(*words, real);
    return has;
}

/* Whether a directory has something in it: a copy beside other files would be combined with them, or spoil them. */
static bool is_filled(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool is = false;
    while (directory && !is && (entry = readdir(directory)))
        is = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory)
        (void)closedir(directory);
    return is;
}

/* Whether the directory of a copy would lie in one that is measured into, whose files it would become. */
static bool lies_in_measured(const struct running_list *list, const char *to)
{
    char real[PATH_MAX];
    bool lies = false, is_known = realpath(to, real) != NULL;
    for (size_t i = 0; is_known && i < list->n && !lies; i++) {
        size_t len = strlen(list->processes[i].dir);
        lies = len && strncmp(real, list->processes[i].dir, len) == 0 && real[len] == '/';
    }
    return lies;
}

static int copy(const struct hpcrun_options *options)
{
    struct running_list list = {.tool = "hpcrun"};
    const char *const *words = (const char *const *)options->command;
    struct error err;
    char *to = NULL;
    if (running_find(&list, &err) != 0)
        return tool_error("hpcrun", "%s", err.text);
    int status = running_choose(&list, words, true);
    bool runs = list.n > 0;
    if (status == 0 && !runs && !has_directory(options->command))
        status = tool_error("hpcrun", "no process of yours is being measured here");
    else if (status == 0 && is_filled(options->copy))
        status = tool_error("hpcrun", "%s: there are files in it; a copy takes a new directory, or an empty one",
                            options->copy);
    else if (status == 0 && names_directory_make(options->copy, false, &to, &err) != 0)
        status = tool_error("hpcrun", "%s", err.text);
    else if (status == 0 && lies_in_measured(&list, to)) {
        status = tool_error("hpcrun", "%s: lies in a directory that is being measured into; a copy takes another place",
                            options->copy);
        (void)rmdir(to);
    }
    size_t n = status == 0 ? copy_rest(options->command, &list, to) : 0; /* first: names that are claimed avoid these */
    if (status == 0 && !runs && n == 0)
        status = tool_error("hpcrun", "%s: nothing was measured into it yet", words[0]);
    else if (status == 0)
        status = copy_all(&list, to);
    running_fini(&list);
    free(to);
    return status;
}

/* Whether srun or another launcher of a batch system starts the program's processes elsewhere. */
static bool is_started_elsewhere(const char *command)
{
    static const char *const launchers[] = {"srun", "aprun", "jsrun", "flux", "prun"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (strcmp(path_last(command), launchers[i]) == 0)
            return true;
    return false;
}

/* What is tried, from the database: the first word of --try that names no action. err: as advice_wishes */
static int find_wishes(const struct hpcrun_options *options, const char **database, struct trial_wish **wishes,
                       size_t *n, struct error *err)
{
    const char *asked[HPCRUN_EVENTS_MAX];
    size_t n_asked = 0;
    *database = NULL;
    for (unsigned i = 0; i < options->n_tries; i++) {
        bool is_database = !*database && (!strchr(options->tries[i], ':') || access(options->tries[i], F_OK) == 0);
        if (is_database)
            *database = options->tries[i];
        else if (!strchr(options->tries[i], ':'))
            return error_set(err, ERR_USAGE, "--try: '%s' is not of the form ACTION:VARIABLE", options->tries[i]);
        else
            asked[n_asked++] = options->tries[i];
    }
    if (!*database)
        return error_set(err, ERR_USAGE, "--try: no database is given: --try DB");
    return advice_wishes(*database, asked, n_asked, wishes, n, err);
}

/* Why nothing can be tried with this command; *status: the exit status then, 0: it can. */
static void check_command(const struct hpcrun_options *options, const struct trial_metric *metric,
                          struct program *program, int *status, struct error *err)
{
    *status = 0;
    if (launch_rank() >= 0)
        *status =
            error_set(err, ERR_USAGE,
                      "--try inside an MPI program or Slurm step would try each rank by itself: write hpcrun --try DB "
                      "before mpiexec or srun");
    else if (is_started_elsewhere(options->command[0]) && (metric->is_cpu || metric->is_user))
        *status =
            error_set(err, ERR_USAGE,
                      "--try: %s starts the program's processes elsewhere, where their CPU time is not known: give "
                      "--metric wall, or a number of the output",
                      options->command[0]);
    if (*status == 0 && program_find(options->command[0], program, err) != 0)
        *status = program->exit_status;
    else if (*status == 0 && program_check(program, err) != 0)
        *status = 1;
    *status = *status < 0 ? 2 : *status;
}

static int run_trial(const struct hpcrun_options *options)
{
    struct trial_metric metric;
    struct trial_wish *wishes = NULL;
    struct program program;
    struct error err;
    char library[PROGRAM_PATH_MAX];
    const char *database = NULL;
    size_t n = 0;
    int status;
    if (trial_metric_make(options->metric ? options->metric : "cpu", &metric, &err) != 0)
        return tool_usage("hpcrun", "%s", err.text);
    check_command(options, &metric, &program, &status, &err);
    int code = status == 0 ? prepare_library("liblocus-actions.so", library, sizeof library, &err) : 0;
    if (status == 0 && code == 0)
        code = find_wishes(options, &database, &wishes, &n, &err);
    if (status != 0 || code != 0) {
        (void)tool_error("hpcrun", "%s", err.text);
        status = status ? status : code == ERR_USAGE ? 2 : 1;
    } else if (!n) {
        printf("The advice of %s has nothing that can be tried without the program's source (hpcquery advice %s).\n",
               database, database);
        status = TRIAL_EXIT_NOTHING;
    } else {
        const struct trial_setup setup = {.command = options->command,
                                          .path = program.path,
                                          .library = library,
                                          .database = database,
                                          .metric = &metric,
                                          .n_pairs = options->n_pairs ? options->n_pairs : TRIAL_PAIRS_DEFAULT};
        status = trial_perform(&setup, wishes, n, stdout);
    }
    for (size_t i = 0; i < n; i++)
        trial_wish_fini(&wishes[i]);
    free(wishes);
    trial_metric_fini(&metric);
    return status;
}

static int run_tool(int argc, char **argv)
{
    struct hpcrun_options options;
    struct error err;
    int status = hpcrun_options_parse(argc, argv, &options, &err);
    if (status == 1)
        return 0;
    if (status == 0)
        status = machine_use(options.machine, &err);
    if (status != 0)
        return tool_usage("hpcrun", "%s", err.text);
    option_unused_say(&options.unused, "hpcrun");
    if (options.trial)
        return doctor_try(options.trial, stdout);
    if (options.doctor)
        return doctor_print(stdout);
    if (options.status)
        return print_status(&options);
    if (options.control)
        return control(options.command);
    if (options.json)
        return tool_usage("hpcrun", "--json goes with --status only");
    if ((options.n_pairs || options.metric) && !options.n_tries)
        return tool_usage("hpcrun", "--pairs and --metric go with --try only");
    if (options.lists_names)
        return list_event_names(stdout);
    if (options.lists)
        return print_events(&options);
    if (options.prints_plan)
        return print_plan(&options);
    if (options.copy)
        return copy(&options);
    if (options.collect)
        return launch_collect(&options);
    if (options.machine)
        return tool_usage("hpcrun", "--machine goes with --doctor, -L and --print-plan only: a program cannot run on a "
                                    "machine that is merely described");
    if (options.attached)
        return options.command[0] ? tool_usage("hpcrun", "--unsafe-attach takes no command: the program runs already")
                                  : launch_attach(&options);
    if (!options.command[0])
        return tool_usage("hpcrun", "no command is given");
    return options.n_tries ? run_trial(&options) : launch_run(&options);
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
