/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a launch. Whatever prevents measuring does not prevent the program from running: one message, then it
 * runs as it is, unless --strict. */
#include "hpcrun.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/environment.h"
#include "base/vec.h"
#include "measurement/names.h"
#include "sampling/probe.h"

/* --- the program's environment --- */

/* The runtime takes its plan from the companion: the HPCRUN_* variables are for scripts, for nested hpcruns and for
 * what knows HPCToolkit's. */

static struct {
    bool is_incomplete; /* there was no memory for all of it */
} environment;

static void set(const char *name, const char *value)
{
    if (value && value[0] && setenv(name, value, 1) != 0)
        environment.is_incomplete = true;
}

/* Sets a variable to text that was put together for it. */
static void set_text(const char *name, struct buf *text)
{
    if (text->failed)
        environment.is_incomplete = true;
    else
        set(name, text->data);
    buf_fini(text);
}

static void set_number(const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (value)
        set(name, text);
}

static void set_list(const char *name, const char *const *items, unsigned n)
{
    struct buf list = {0};
    for (unsigned i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i ? " " : "", items[i]);
    set_text(name, &list);
}

/* A static program does not heed it, but those that it starts do. */
static void set_preload(const struct prepared *prepared)
{
    struct buf list = {0};
    const char *before = getenv("LD_PRELOAD");
    if (prepared->program.sanitizer[0])
        buf_printf(&list, "%s:", prepared->program.sanitizer);
    if (prepared->wait_library[0]) /* in front, so that the program's calls come there first */
        buf_printf(&list, "%s:", prepared->wait_library);
    buf_printf(&list, "%s", prepared->library);
    if (before && before[0])
        buf_printf(&list, ":%s", before);
    set_text("LD_PRELOAD", &list);
}

/* Programs built with the address sanitizer refuse to run behind another library. Which programs this one starts is
 * not known beforehand, so the option is set for all. */
static void set_sanitizer_options(void)
{
    const char *before = getenv("ASAN_OPTIONS");
    struct buf options = {0};
    buf_printf(&options, "%s%sverify_asan_link_order=0", before ? before : "", before && before[0] ? ":" : "");
    set_text("ASAN_OPTIONS", &options);
}

/* Sets LD_PRELOAD (ours in front of what is there; a sanitizer's library before ours), the companion's address and the
 * HPCRUN_* variables in this process's environment. False when there is no memory
 * for all of them: then the program will not be measured. */
static bool environment_set(const struct hpcrun_options *options, const struct prepared *prepared)
{
    set_preload(prepared);
    char companion[COMPANION_ENV_MAX];
    set_sanitizer_options();
    companion_way_keep(prepared->way_fd, prepared->socket, companion);
    set(COMPANION_ENV, companion);
    /* The static library of ITT finds its collector by this; the program's pools may report their blocks through it.
     * Another collector keeps its place. A static program would load a second runtime beside its own. */
    if (!getenv("INTEL_LIBITTNOTIFY64") && !prepared->program.is_static) {
        set("INTEL_LIBITTNOTIFY64", prepared->library);
        set("INTEL_ITTNOTIFY_GROUPS", "heap,structure");
    }
    /* Likewise the code of NVTX, for ranges. */
    if (!getenv("NVTX_INJECTION64_PATH") && !prepared->program.is_static)
        set("NVTX_INJECTION64_PATH", prepared->library);
    set("HPCRUN_OUT_PATH", prepared->setup.dir);
    set(LAUNCH_ENV, prepared->run.id);
    set_list("HPCRUN_EVENT_LIST", options->events, options->n_events);
    set("HPCRUN_PERF_COUNT", options->count);
    set("HPCRUN_TRACE", options->trace ? "1" : NULL);
    set("HPCRUN_DELAY_SAMPLING", options->delay ? "1" : NULL);
    set("HPCRUN_PROCESS_FRACTION", options->fraction);
    set_number("HPCRUN_MEMSIZE", options->memsize_bytes);
    set_number("HPCRUN_LOW_MEMSIZE", options->low_memsize_bytes);
    set("HPCRUN_LOCAL", prepared->setup.local);
    set_number("HPCRUN_MAX_SIZE", options->max_bytes);
    set_number("HPCRUN_TRACE_SIZE", options->trace_bytes);
    set_number("HPCRUN_VERIFY_SHARING", options->watches_per_s);
    set("HPCRUN_MEMLEAK_PROB", options->memleak_prob);
    set("HPCFNBOUNDS_NUM_THREADS", options->jobs_symtab);
    if (environment.is_incomplete)
        (void)unsetenv(COMPANION_ENV); /* without it the runtime does nothing */
    return !environment.is_incomplete;
}

/* --- hpcrun as the program's parent --- */

/* Where it cannot be replaced by the program: it forwards signals, stops and continues with it, ends like it, and waits
 * until the companion has written. */

/* Both sides of one fork. */
struct forked {
    bool is_child;
    pid_t child;
    int child_pidfd;
    int start_read_fd, start_write_fd; /* the child waits here until the companion serves */
    int done_read_fd, done_write_fd;   /* closed by the companion when all is written */
};

static void block_all(sigset_t *before)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, before);
}

static void close_pair(int *read_fd, int *write_fd)
{
    if (*read_fd >= 0)
        (void)close(*read_fd);
    if (*write_fd >= 0)
        (void)close(*write_fd);
    *read_fd = *write_fd = -1;
}

static int open_pair(int *read_fd, int *write_fd)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    *read_fd = fds[0];
    *write_fd = fds[1];
    return 0;
}

/* Forks. The child has is_child set, the parent's signals are blocked until parent_run.  err: ERR_IO */
static int parent_fork(struct forked *forked, struct error *err)
{
    sigset_t before;
    pid_t parent = getpid();
    *forked = (struct forked){
        .child_pidfd = -1, .start_read_fd = -1, .start_write_fd = -1, .done_read_fd = -1, .done_write_fd = -1};
    if (open_pair(&forked->start_read_fd, &forked->start_write_fd) != 0 ||
        open_pair(&forked->done_read_fd, &forked->done_write_fd) != 0)
        return error_set(err, ERR_IO, "pipe failed: %s", strerror(errno));
    block_all(&before);
    forked->child = fork();
    if (forked->child < 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return error_set(err, ERR_IO, "fork failed: %s", strerror(errno));
    }
    if (forked->child == 0) {
        forked->is_child = true;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            (void)raise(SIGKILL);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return 0;
    }
    forked->child_pidfd = (int)syscall(SYS_pidfd_open, forked->child, 0);
    return 0;
}

/* In the child: waits until the parent has started the companion; true when it is to be measured. */
static bool parent_wait_for_start(struct forked *forked)
{
    char is_measured = 0;
    (void)close(forked->start_write_fd);
    forked->start_write_fd = -1;
    (void)!read(forked->start_read_fd, &is_measured, 1);
    close_pair(&forked->start_read_fd, &forked->start_write_fd);
    close_pair(&forked->done_read_fd, &forked->done_write_fd);
    return is_measured == 1;
}

/* A key press reaches the whole foreground group by itself; what was sent to us alone is the program's. */
static void forward(const struct forked *forked, const siginfo_t *info)
{
    bool is_from_terminal = info->si_code == SI_KERNEL;
    if (!is_from_terminal && info->si_pid != forked->child)
        (void)kill(forked->child, info->si_signo);
}

static void stop_with_child(const struct forked *forked)
{
    (void)raise(SIGSTOP);
    (void)kill(forked->child, SIGCONT);
}

/* True when the child has ended; PID 1 also collects strangers. */
static bool collect(const struct forked *forked, int *wait_status)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        if (pid == forked->child && WIFSTOPPED(status)) {
            stop_with_child(forked);
        } else if (pid == forked->child) {
            *wait_status = status;
            return true;
        }
    }
    return false;
}

/* Waits until the companion closes its end of the pipe, and prints what it writes there. */
static void wait_for_companion(int fd)
{
    char text[6000];
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    if (len)
        (void)fprintf(stderr, "hpcrun: %s\n", text);
}

/* In the parent: lets the child go (is_measured: under the runtime), serves it to its end, then waits for the
 * companion. Returns the wait status of the child. */
static int parent_run(struct forked *forked, bool is_measured)
{
    sigset_t all;
    siginfo_t info;
    int wait_status = 0;
    char go = is_measured ? 1 : 2;
    if (forked->child_pidfd >= 0)
        (void)close(forked->child_pidfd);
    (void)close(forked->done_write_fd);
    forked->done_write_fd = -1;
    (void)!write(forked->start_write_fd, &go, 1);
    close_pair(&forked->start_read_fd, &forked->start_write_fd);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigfillset(&all);
    while (!collect(forked, &wait_status)) {
        int number = sigwaitinfo(&all, &info);
        if (number > 0 && number != SIGCHLD)
            forward(forked, &info);
    }
    if (is_measured)
        wait_for_companion(forked->done_read_fd);
    close_pair(&forked->done_read_fd, &forked->done_write_fd);
    return wait_status;
}

/* Dies of the signal that killed the child, without a core file of our own; returns when it ended by itself. */
static void parent_end_like(int wait_status)
{
    static const struct rlimit no_core = {0, 0};
    sigset_t one;
    if (!WIFSIGNALED(wait_status))
        return;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(WTERMSIG(wait_status), SIG_DFL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, WTERMSIG(wait_status));
    (void)raise(WTERMSIG(wait_status));
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* The exit status that a shell would show. */
static int parent_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* --- the launch --- */

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

/* Notes what this process has used so far, which is not the program's: its clocks go on from there. */
static void set_usage(void)
{
    struct rusage usage;
    struct timespec clock;
    char text[128];
    if (getrusage(RUSAGE_THREAD, &usage) != 0 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock) != 0)
        return;
    (void)snprintf(
        text, sizeof text, ",%ld,%lld,%lld,%lld,%ld", (long)getpid(), clock.tv_sec * 1000000000LL + clock.tv_nsec,
        usage.ru_utime.tv_sec * 1000000000LL + usage.ru_utime.tv_usec * 1000LL,
        usage.ru_stime.tv_sec * 1000000000LL + usage.ru_stime.tv_usec * 1000LL, usage.ru_minflt + usage.ru_majflt);
    (void)setenv(LAUNCHER_USAGE_ENV, text, 1); /* without it the time is counted as the program's */
}

static int execute(const struct program *program, char **command)
{
    set_usage();
    errno = ENOEXEC;
    if (!program->is_ia32 || !environment_lacks(trial_name(TRIAL_IA32)))
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
    (void)tool_error("hpcrun", "%s: cannot be run: %s", program->path, strerror(errno));
    return status;
}

static void print_problem(const char *sentence)
{
    (void)tool_error("hpcrun", "%s", sentence);
}

/* The reports tell it, too. */
static void note_unmeasured(const struct prepared *prepared, pid_t pid, const char *why)
{
    if (prepared->setup.dir[0])
        companion_index_unmeasured(prepared->setup.dir, names_host_id(), pid, prepared->program.path, why);
}

/* Whether a program that is measured has started us: our environment is then for what it starts. */
static bool is_inside_another(void)
{
    const char *companion = getenv(COMPANION_ENV);
    return companion && companion[0];
}

static void say_unmeasured(const struct hpcrun_options *options)
{
    (void)tool_error(
        "hpcrun", is_inside_another() ? "%s: is left to the hpcrun around this one" : "%s: runs without being measured",
        options->command[0]);
}

static int step_aside(const struct hpcrun_options *options, const struct prepared *prepared, const char *why)
{
    (void)tool_error("hpcrun", "%s", why);
    note_unmeasured(prepared, getpid(), why);
    if (options->strict)
        return EXIT_FAILED;
    say_unmeasured(options);
    return execute(&prepared->program, options->command);
}

/* Prints how it is measured in one line; the reasons in parentheses are the doctor's. */
static void say_choice(const char *choice)
{
    int depth = 0;
    if (!*choice)
        return;
    (void)fputs("hpcrun: ", stderr);
    for (const char *at = choice; *at; at++) {
        bool opens = *at == '(' || (*at == ' ' && at[1] == '(');
        if (depth == 0 && !opens)
            (void)fputc(*at, stderr);
        depth += *at == '(' ? 1 : *at == ')' && depth > 0 ? -1 : 0;
    }
    (void)fputc('\n', stderr);
}

static void say_start(const struct hpcrun_options *options, const struct prepared *prepared)
{
    const struct source_plan *plan = &prepared->plan;
    for (size_t i = 0; i < HPCRUN_IGNORED; i++)
        if (options->ignored[i])
            (void)tool_error("hpcrun", "%s", options->ignored[i]);
    if (prepared->note[0])
        (void)fprintf(stderr, "hpcrun: %s\n", prepared->note);
    if (is_inside_another())
        (void)fprintf(stderr, "hpcrun: the hpcrun around this one leaves it the program, whose measurement is in %s\n",
                      prepared->setup.dir);
    say_choice(plan->choice);
    if (plan->sched.choice[0])
        (void)fprintf(stderr, "hpcrun: %s\n", plan->sched.choice);
    if (plan->warning[0])
        (void)fprintf(stderr, "hpcrun: warning: %s\n", plan->warning);
}

static int execute_measured(const struct hpcrun_options *options, const struct prepared *prepared)
{
    if (!environment_set(options, prepared))
        return step_aside(options, prepared, "out of memory for the program's environment");
    if (options->waits_for_debugger)
        wait_for_debugger();
    return execute(&prepared->program, options->command);
}

/* What the scheduler does cannot be recorded. Says so; false when the program must not run then. */
static bool may_lack_sched(const struct hpcrun_options *options, const struct error *why)
{
    (void)tool_error("hpcrun", "what the scheduler does cannot be recorded: %.1500s", why->text);
    return !options->strict;
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
        return step_aside(options, prepared, err.text);
    if (err.text[0] && !may_lack_sched(options, &err))
        return EXIT_FAILED;
    if (prepared->setup.launched_pidfd >= 0)
        (void)close(prepared->setup.launched_pidfd);
    return execute_measured(options, prepared);
}

/* A Slurm step ends with its last task, a container with its process 1, so hpcrun must wait for the companion. */
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
    struct forked forked;
    if (parent_fork(&forked, &err) != 0)
        return step_aside(options, prepared, err.text);
    if (forked.is_child) {
        if (parent_wait_for_start(&forked))
            return execute_measured(options, prepared);
        return execute(&prepared->program, options->command);
    }
    prepared->setup.launched_pid = forked.child;
    prepared->setup.launched_pidfd = forked.child_pidfd;
    prepared->setup.done_fd = forked.done_write_fd;
    bool is_measured = companion_start(&prepared->setup, prepared->listen_fd, &err) > 0;
    bool is_refused = is_measured ? err.text[0] && !may_lack_sched(options, &err) : options->strict;
    if (!is_measured) {
        (void)tool_error("hpcrun", "%s", err.text);
        note_unmeasured(prepared, forked.child, err.text);
    }
    if (is_refused) {
        (void)kill(forked.child, SIGKILL);
        (void)waitpid(forked.child, NULL, 0);
        return EXIT_FAILED;
    }
    if (!is_measured)
        say_unmeasured(options);
    if (prepared->way_fd >= 0)
        (void)close(prepared->way_fd);
    int status = parent_run(&forked, is_measured);
    size_t n_recovered = is_measured ? companion_collect_left(prepared->setup.dir, print_problem) : 0;
    if (n_recovered)
        (void)tool_error("hpcrun",
                         "the companion process died: the records that %zu process%s left behind have been written, "
                         "those of processes that were killed are lost",
                         n_recovered, n_recovered == 1 ? "" : "es");
    if (options->report)
        (void)end_run(options, prepared, is_measured);
    parent_end_like(status);
    return parent_exit_status(status);
}

/* A rank that is not chosen needs no companion: neither are the processes that it starts. */
static int run_left_out(const struct hpcrun_options *options, struct prepared *prepared, int rank)
{
    struct error err;
    if (prepare_left_out(options, prepared, rank, &err) != 0)
        return step_aside(options, prepared, err.text);
    if (options->report)
        (void)runs_end(prepared->setup.dir, &prepared->run, &err);
    return execute(&prepared->program, options->command);
}

/* --- limits --- */

/* Here is what a measurement needs of the program's limits for certain. What else they prevent is met, and named, when
 * the program runs. */

static uint64_t limit_of(int which)
{
    struct rlimit limit;
    bool is_limited = getrlimit((__rlimit_resource_t)which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? limit.rlim_cur : UINT64_MAX;
}

/* The program's descriptors are the inherited ones. Only a small limit is worth counting them. */
static int check_descriptors(struct error *err)
{
    uint64_t limit = limit_of(RLIMIT_NOFILE), n_free = 0;
    for (int fd = 0; limit <= COMPANION_FD && fd < (int)limit; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n_free += flags < 0 || flags & FD_CLOEXEC;
    }
    if (limit > COMPANION_FD || n_free >= COMPANION_FDS)
        return 0;
    return error_set(err, ERR_IO,
                     "the limit of descriptors (ulimit -n) leaves the program %llu, and measuring it needs %d; raise "
                     "it by %llu",
                     (unsigned long long)n_free, COMPANION_FDS, (unsigned long long)(COMPANION_FDS - n_free));
}

/* The program's start decides again, by what is mapped then. */
static int check_memory(struct error *err)
{
    uint64_t space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA), least = space < data ? space : data;
    if (least >= START_ROOM_BYTES)
        return 0;
    return error_set(err, ERR_IO,
                     "the limit of address space or data (ulimit %s, %llu KiB) is too small for the recording; it "
                     "needs %llu KiB more than the program",
                     space < data ? "-v" : "-d", (unsigned long long)(least >> 10),
                     (unsigned long long)(START_ROOM_BYTES >> 10));
}

/* Whether the runtime could have one: the signals of all programs of the user count. */
static bool has_timer(void)
{
    struct sigevent notify = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    timer_t timer;
    if (limit_of(RLIMIT_SIGPENDING) < TIMER_PART || timer_create(CLOCK_MONOTONIC, &notify, &timer) != 0)
        return false;
    (void)timer_delete(timer);
    return true;
}

/* Events that count nothing but time may be timers, each of which uses up one of the signals that may be pending. If
 * there are others beside them, those are measured. */
static int check_timers(const struct hpcrun_options *options, struct source_plan *plan, struct error *err)
{
    const char *name = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_events; i++)
        if (plan->events[i].flags & SOURCE_TIMER) {
            name = plan->events[i].name;
            n++;
        }
    if (!n || has_timer())
        return 0;
    (void)error_set(err, ERR_IO,
                    "%s is measured by a timer, and the limit of pending signals (ulimit -i, %llu) leaves none; raise "
                    "it by %d for each thread",
                    name, (unsigned long long)limit_of(RLIMIT_SIGPENDING), TIMER_PART);
    if (n == plan->n_events || options->strict)
        return ERR_IO;
    size_t len = strlen(plan->warning);
    (void)snprintf(plan->warning + len, sizeof plan->warning - len, "%s%.400s.", len ? " " : "", err->text);
    return 0;
}

/* Whether the program's limits leave room for a measurement. */
static int check_limits(const struct hpcrun_options *options, struct source_plan *plan, struct error *err)
{
    int status = check_descriptors(err);
    if (status == 0)
        status = check_memory(err);
    return status == 0 ? check_timers(options, plan, err) : status;
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
        (void)tool_error("hpcrun", "%s", err.text);
        return prepared.program.exit_status;
    }
    if (is_under_valgrind())
        return step_aside(options, &prepared, "hpcrun itself runs under Valgrind, which cannot be sampled");
    int checked = program_check(&prepared.program, &err);
    int rank = launch_rank();
    if (rank >= 0 && !companion_chooses(options->part, rank, getpid()))
        return run_left_out(options, &prepared, rank);
    struct error plan_err;
    int status = prepare_plan(options, &prepared.plan, &plan_err);
    if (status == ERR_USAGE || status == ERR_RANGE) {
        (void)tool_error("hpcrun", "%s", plan_err.text);
        return EXIT_USAGE;
    }
    if (checked != 0)
        return step_aside(options, &prepared, err.text);
    if (status == 0)
        status = prepare_rest(options, &prepared, &plan_err);
    if (status == 0)
        status = check_limits(options, &prepared.plan, &plan_err);
    if (status != 0 && prepared.setup.dir[0] && options->report)
        (void)runs_end(prepared.setup.dir, &prepared.run, &err);
    if (status != 0)
        return step_aside(options, &prepared, plan_err.text);
    if (report_speaks(prepared.setup.dir, &prepared.run))
        say_start(options, &prepared);
    return must_stay(options) ? run_kept(options, &prepared) : run_replaced(options, &prepared);
}

int launch_collect(const struct hpcrun_options *options)
{
    struct companion_collected collected;
    struct pending_trouble trouble;
    struct error err;
    if (companion_collect(options->collect, options->local, options->allows_foreign, print_problem, &collected, &err) !=
        0) {
        (void)tool_error("hpcrun", "%s", err.text);
        return EXIT_FAILED;
    }
    if (collected.n_processes || collected.n_problems)
        (void)printf("%zu processes collected into %s, %zu of them from records that were left behind.\n",
                     collected.n_processes, collected.dir, collected.n_arenas);
    else
        (void)printf("Nothing on this node is on its way to %s.\n", collected.dir);
    if (pending_find_trouble(collected.dir, &trouble) && trouble.is_dead)
        (void)printf("Process %ld runs on without its companion process; it leaves its records there when it ends, and "
                     "then this command makes files of them.\n",
                     (long)trouble.program);
    return collected.n_problems ? EXIT_FAILED : 0;
}
