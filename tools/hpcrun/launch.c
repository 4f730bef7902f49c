/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a launch; see launch.h. Whatever prevents measuring does not prevent the program from running: one
 * message, then it runs as it is, unless --strict. */
#include "launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"
#include "keeper.h"
#include "prepare.h"
#include "report.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static bool is_traced(void)
{
    char line[128];
    int tracer = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "TracerPid: %d", &tracer) == 1)
            break;
    if (file)
        (void)fclose(file);
    return tracer != 0;
}

/* -d: a debugger that attaches now follows the program through exec. */
static void wait_for_debugger(void)
{
    const struct timespec step = {.tv_nsec = 50000000};
    (void)fprintf(stderr, "hpcrun: process %ld waits for a debugger: gdb -p %ld\n", (long)getpid(), (long)getpid());
    while (!is_traced())
        (void)nanosleep(&step, NULL);
}

static int execute(const struct program *program, char **command)
{
    (void)execv(program->path, command);
    if (errno == ENOEXEC && !program->binary[0]) {
        /* No ELF file, so a script without a first line: as a shell would. */
        size_t n = 0;
        while (command[n])
            n++;
        char **arguments = calloc(n + 2, sizeof *arguments);
        if (arguments) {
            static char shell[] = "/bin/sh";
            arguments[0] = shell;
            memcpy(arguments + 1, command, (n + 1) * sizeof *arguments);
            arguments[1] = (char *)(uintptr_t)program->path;
            (void)execv(shell, arguments);
            free(arguments);
        }
    }
    int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    (void)fprintf(stderr, "hpcrun: %s cannot be executed: %s.\n", program->path, strerror(errno));
    return status;
}

static void complain(const char *sentence)
{
    (void)fprintf(stderr, "hpcrun: %s%s\n", sentence, sentence[strlen(sentence) - 1] == '.' ? "" : ".");
}

static int step_aside(const struct hpcrun_options *options, const struct program *program, const char *why)
{
    (void)fprintf(stderr, "hpcrun: %s\n", why);
    if (options->strict)
        return EXIT_FAILED;
    (void)fprintf(stderr, "hpcrun: %s runs without being measured.\n", options->command[0]);
    return execute(program, options->command);
}

static void say_start(const struct prepared *prepared)
{
    const struct source_plan *plan = &prepared->plan;
    if (prepared->note[0])
        (void)fprintf(stderr, "hpcrun: %s\n", prepared->note);
    if (plan->choice[0])
        (void)fprintf(stderr, "hpcrun: %s\n", plan->choice);
    if (plan->warning[0])
        (void)fprintf(stderr, "hpcrun: warning: %s\n", plan->warning);
}

static int execute_measured(const struct hpcrun_options *options, const struct prepared *prepared)
{
    if (!environment_set(options, prepared))
        return step_aside(options, &prepared->program, "There is no memory for the program's environment.");
    if (options->waits_for_debugger)
        wait_for_debugger();
    return execute(&prepared->program, options->command);
}

/* hpcrun is replaced by the program: same process, same parent, same everything. */
static int run_replaced(const struct hpcrun_options *options, struct prepared *prepared)
{
    struct error err;
    prepared->setup.launched_pid = getpid();
    prepared->setup.launched_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    prepared->setup.done_fd = -1;
    if (ttyname_r(STDERR_FILENO, prepared->setup.terminal, sizeof prepared->setup.terminal) != 0)
        prepared->setup.terminal[0] = '\0';
    if (companion_start(&prepared->setup, prepared->listen_fd, &err) < 0)
        return step_aside(options, &prepared->program, err.text);
    if (prepared->setup.launched_pidfd >= 0)
        (void)close(prepared->setup.launched_pidfd);
    return execute_measured(options, prepared);
}

/* A Slurm step ends with its last task, a container with its process 1: then somebody must wait for the companion. */
static bool must_stay(const struct hpcrun_options *options)
{
    return options->report || getpid() == 1 || getenv("SLURM_JOB_ID") || getenv("SLURM_STEP_ID");
}

/* --report: for all ranks at once, by the last of them. */
static int end_run(const struct hpcrun_options *options, const struct prepared *prepared, bool is_measured)
{
    const struct report_wish wish = {prepared->setup.dir, options->report_file, options->leaks};
    return report_end(&wish, &prepared->run, is_measured);
}

static int run_kept(const struct hpcrun_options *options, struct prepared *prepared)
{
    struct error err;
    struct keeper keeper;
    if (keeper_fork(&keeper, &err) != 0)
        return step_aside(options, &prepared->program, err.text);
    if (keeper.is_child) {
        if (keeper_wait_for_start(&keeper))
            return execute_measured(options, prepared);
        return execute(&prepared->program, options->command);
    }
    prepared->setup.launched_pid = keeper.child;
    prepared->setup.launched_pidfd = keeper.child_pidfd;
    prepared->setup.done_fd = keeper.done_write_fd;
    bool is_measured = companion_start(&prepared->setup, prepared->listen_fd, &err) > 0;
    if (!is_measured)
        (void)fprintf(stderr, "hpcrun: %s\nhpcrun: %s runs without being measured.\n", err.text, options->command[0]);
    if (prepared->way_fd >= 0)
        (void)close(prepared->way_fd);
    int status = keeper_run(&keeper, is_measured);
    size_t n_recovered = is_measured ? companion_collect_left(prepared->setup.dir, complain) : 0;
    if (n_recovered)
        (void)fprintf(
            stderr,
            "hpcrun: The companion process had died. The records that %zu process%s left behind have been written; "
            "those of processes that were killed are lost.\n",
            n_recovered, n_recovered == 1 ? "" : "es");
    if (options->report)
        (void)end_run(options, prepared, is_measured);
    keeper_end_like(status);
    return keeper_exit_status(status);
}

/* A rank that is not chosen needs no companion: neither are the processes that it starts. */
static int run_left_out(const struct hpcrun_options *options, struct prepared *prepared, int rank)
{
    struct error err;
    if (prepare_left_out(options, prepared, rank, &err) != 0)
        return step_aside(options, &prepared->program, err.text);
    if (options->report)
        (void)runs_end(prepared->setup.dir, &prepared->run, &err);
    return execute(&prepared->program, options->command);
}

/* Its simulation knows neither perf events nor pidfds. */
static bool is_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload_");
}

int launch_run(const struct hpcrun_options *options)
{
    struct error err;
    static struct prepared prepared; /* large; the companion's copy is the fork's */
    if (program_find(options->command[0], &prepared.program, &err) != 0) {
        (void)fprintf(stderr, "hpcrun: %s\n", err.text);
        return prepared.program.exit_status;
    }
    if (is_under_valgrind())
        return step_aside(options, &prepared.program, "hpcrun itself runs under Valgrind, which cannot be sampled.");
    int checked = program_check(&prepared.program, &err);
    int rank = launch_rank();
    if (rank >= 0 && !companion_chooses(options->part, rank, getpid()))
        return run_left_out(options, &prepared, rank);
    struct error plan_err;
    int status = prepare_plan(options, &prepared.plan, &plan_err);
    if (status == ERR_USAGE || status == ERR_RANGE) {
        (void)fprintf(stderr, "hpcrun: %s\n", plan_err.text);
        return EXIT_USAGE;
    }
    if (checked != 0)
        return step_aside(options, &prepared.program, err.text);
    if (status == 0)
        status = prepare_rest(options, &prepared, &plan_err);
    if (status != 0 && prepared.setup.dir[0] && options->report)
        (void)runs_end(prepared.setup.dir, &prepared.run, &err);
    if (status != 0)
        return step_aside(options, &prepared.program, plan_err.text);
    if (report_speaks(prepared.setup.dir, &prepared.run))
        say_start(&prepared);
    return must_stay(options) ? run_kept(options, &prepared) : run_replaced(options, &prepared);
}

int launch_collect(const struct hpcrun_options *options)
{
    struct companion_collected collected;
    struct error err;
    if (companion_collect(options->collect, options->local, options->allows_foreign, complain, &collected, &err) != 0) {
        (void)fprintf(stderr, "hpcrun: %s\n", err.text);
        return EXIT_FAILED;
    }
    if (collected.n_processes || collected.n_problems)
        (void)printf("%zu processes collected into %s, %zu of them from records that were left behind.\n",
                     collected.n_processes, collected.dir, collected.n_arenas);
    else
        (void)printf("Nothing on this node is on its way to %s.\n", collected.dir);
    return collected.n_problems ? EXIT_FAILED : 0;
}
