/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of a program in a trial: its processes, its time, its output. See trial.h. */
#include "trial/trial.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define OUTPUT_MOST (64u << 20) /* bytes that are searched for the number */
#define GRACE_NS 200000000      /* for processes that end behind the program's first one */
#define END_NS 2000000000       /* for the program to end after a signal */

/* --- the metric --- */

int trial_metric_make(const char *text, struct trial_metric *metric, struct error *err)
{
    char reason[128];
    *metric = (struct trial_metric){.text = text,
                                    .is_cpu = strcmp(text, "cpu") == 0,
                                    .is_user = strcmp(text, "user") == 0,
                                    .is_wall = strcmp(text, "wall") == 0};
    if (metric->is_cpu || metric->is_user || metric->is_wall)
        return 0;
    metric->is_higher_better = strncmp(text, "higher:", 7) == 0;
    regex_t *expression = calloc(1, sizeof *expression);
    if (!expression)
        return error_memory(err);
    int code = regcomp(expression, text + (metric->is_higher_better ? 7 : 0), REG_EXTENDED | REG_NEWLINE);
    metric->expression = expression;
    if (code == 0)
        return 0;
    (void)regerror(code, expression, reason, sizeof reason);
    free(expression);
    metric->expression = NULL;
    return error_set(err, ERR_USAGE, "--metric: '%s' is neither cpu, user nor wall, nor a regular expression: %s", text,
                     reason);
}

void trial_metric_fini(struct trial_metric *metric)
{
    if (metric->expression)
        regfree(metric->expression);
    free(metric->expression);
    metric->expression = NULL;
}

/* The number in a text. */
static bool find_number(const struct trial_metric *metric, const char *text, double *value)
{
    const regex_t *expression = metric->expression;
    regmatch_t match[2];
    if (regexec(expression, text, 2, match, 0) != 0)
        return false;
    const char *at = text + match[expression->re_nsub && match[1].rm_so >= 0 ? 1 : 0].rm_so;
    const char *end = text + match[expression->re_nsub && match[1].rm_so >= 0 ? 1 : 0].rm_eo;
    while (at < end && !isdigit((unsigned char)*at) && !((*at == '.' || *at == '-') && isdigit((unsigned char)at[1])))
        at++;
    char *behind;
    *value = plain_number(at, &behind);
    return at < end && behind > at;
}

static bool find_number_in_file(const struct trial_metric *metric, int directory, const char *file, double *value)
{
    int fd = openat(directory, file, O_RDONLY | O_CLOEXEC);
    struct buf text = {0};
    char part[65536];
    ssize_t n;
    while (fd >= 0 && text.len_bytes < OUTPUT_MOST && (n = read(fd, part, sizeof part)) > 0)
        buf_append(&text, part, (size_t)n);
    bool is_found = text.data && find_number(metric, text.data, value);
    buf_fini(&text);
    if (fd >= 0)
        (void)close(fd);
    return is_found;
}

/* --- the program --- */

/* Standard input, the same for each run: a file from where it is, else nothing. */
static int open_input(void)
{
    struct stat info;
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    int fd = -1;
    if (fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode) && at >= 0)
        fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && lseek(fd, at, SEEK_SET) == at)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* In the child: never returns. */
static void become(const struct trial_setup *setup, const char *table, const int streams[3], int say_fd)
{
    sigset_t none;
    const char *others = getenv("LD_PRELOAD");
    struct buf libraries = {0};
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 3; i++)
        if (dup2(streams[i], i) < 0)
            _exit(1);
    buf_printf(&libraries, "%s%s%s", setup->library, others && *others ? ":" : "", others ? others : "");
    if (table && libraries.data &&
        (setenv("LD_PRELOAD", libraries.data, 1) != 0 || setenv(TRIAL_TABLE_ENV, table, 1) != 0))
        _exit(1);
    if (!table)
        (void)unsetenv(TRIAL_TABLE_ENV);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execv(setup->path, setup->command);
    int number = errno;
    (void)!write(say_fd, &number, sizeof number);
    _exit(127);
}

/* Ends a process group and everything that this process has inherited from it; returns how many there were. */
static unsigned end_all(pid_t group, int signal_number)
{
    char path[64], text[4096];
    unsigned n = 0;
    (void)kill(-group, signal_number);
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " \n", &rest));) {
        n++;
        (void)kill((pid_t)atoi(word), signal_number);
    }
    return n;
}

/* Waits for a signal that is blocked, at most so long; its number, 0: none, or that of a child. */
static int wait_for_signal(uint64_t wait_ns)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct timespec limit = {.tv_sec = (time_t)(wait_ns / 1000000000), .tv_nsec = (long)(wait_ns % 1000000000)};
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction action;
        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) /* nohup */
            (void)sigaddset(&set, ends[i]);
    }
    int number = sigtimedwait(&set, NULL, &limit);
    return number > 0 && number != SIGCHLD ? number : 0;
}

static uint64_t now_ns(void)
{
    return clock_now_ns(CLOCK_MONOTONIC);
}

/* Waits until the first process has ended; a signal to us ends it. Returns that signal, or 0. */
static int wait_for_first(pid_t pid, int *wait_status)
{
    int stopped_by = 0;
    uint64_t until_ns = 0;
    for (;;) {
        pid_t ended = waitpid(pid, wait_status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return stopped_by;
        int number = wait_for_signal(stopped_by ? 50000000 : 1000000000);
        if (number && !stopped_by) {
            stopped_by = number;
            until_ns = now_ns() + END_NS;
            (void)end_all(pid, SIGTERM);
        }
        if (stopped_by && now_ns() > until_ns)
            (void)end_all(pid, SIGKILL);
    }
}

/* Waits for what the first process left behind, not for long, and ends it then. Returns how many had to be ended. */
static unsigned wait_for_others(pid_t group, bool is_stopped)
{
    uint64_t until_ns = now_ns() + (is_stopped ? 0 : GRACE_NS);
    unsigned n_left = 0;
    for (;;) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);
        if (ended < 0 && errno == ECHILD)
            return n_left;
        if (ended > 0)
            continue;
        if (now_ns() >= until_ns) {
            unsigned n = end_all(group, SIGKILL);
            n_left = n > n_left ? n : n_left;
        }
        (void)wait_for_signal(10000000);
    }
}

/* CPU time of all processes that have ended, in user mode alone or in both. */
static double cpu_seconds(bool is_user)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    double user_s = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
    double system_s = (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
    return user_s + (is_user ? 0 : system_s);
}

/* Starts the program; its pid, -1 with err. */
static pid_t start(const struct trial_setup *setup, const char *table, const int streams[3], struct error *err)
{
    int say[2], number = 0;
    if (pipe2(say, O_CLOEXEC) != 0) {
        (void)error_set(err, ERR_IO, "A pipe cannot be made: %s", strerror(errno));
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(setup, table, streams, say[1]);
    int fork_errno = errno;
    (void)close(say[1]);
    if (pid < 0)
        (void)error_set(err, ERR_IO, "no process can be started: %s", strerror(fork_errno));
    else
        (void)setpgid(pid, pid);
    if (pid > 0 && read(say[0], &number, sizeof number) == (ssize_t)sizeof number) {
        (void)waitpid(pid, NULL, 0);
        (void)error_set(err, ERR_IO, "%s: cannot be executed: %s", setup->path, strerror(number));
        pid = -1;
    }
    (void)close(say[0]);
    return pid;
}

static int open_output(int directory, const char *name)
{
    return openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

enum trial_end trial_run_once(const struct trial_setup *setup, int directory, const char *name, const char *table,
                              struct trial_run *run, struct error *err)
{
    char out[64], messages[64];
    const struct trial_metric *metric = setup->metric;
    *run = (struct trial_run){0};
    (void)snprintf(out, sizeof out, "%.50s.out", name);
    (void)snprintf(messages, sizeof messages, "%.50s.err", name);
    int streams[3] = {open_input(), open_output(directory, out), open_output(directory, messages)};
    bool is_open = streams[0] >= 0 && streams[1] >= 0 && streams[2] >= 0;
    int number = errno;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    double before_s = cpu_seconds(metric->is_user);
    uint64_t start_ns = now_ns();
    pid_t pid = is_open ? start(setup, table, streams, err) : -1;
    if (!is_open)
        (void)error_set(err, ERR_IO, "%s: cannot be written: %s", streams[1] < 0 ? out : messages, strerror(number));
    for (int i = 0; i < 3; i++)
        if (streams[i] >= 0)
            (void)close(streams[i]);
    if (pid < 0)
        return TRIAL_CANNOT_RUN;
    int stopped_by = wait_for_first(pid, &run->wait_status);
    double wall_s = 1e-9 * (double)(now_ns() - start_ns);
    run->n_left = wait_for_others(pid, stopped_by != 0);
    if (stopped_by) {
        run->wait_status = stopped_by;
        return TRIAL_STOPPED;
    }
    run->value = metric->is_wall ? wall_s : cpu_seconds(metric->is_user) - before_s;
    if (metric->expression && run->wait_status == 0 && !find_number_in_file(metric, directory, out, &run->value) &&
        !find_number_in_file(metric, directory, messages, &run->value))
        return TRIAL_HAS_NO_NUMBER;
    return TRIAL_RAN;
}
