/* SPDX-License-Identifier: BSD-3-Clause */
/* --report: runs the reporting tools after the program. Ordinary code. */
#include "hpcrun.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measurement/names.h"
#include "measurement/pending.h"

#define MEASUREMENTS "-measurements"
#define WAIT_MS 60000
#define STEPS_MAX 20 /* of a tenth of a second */

static int run_tool(const char *tool, char *const *arguments, int out_fd)
{
    char path[PROGRAM_PATH_MAX];
    int status = 0;
    tool_directory(path, sizeof path);
    size_t len = strlen(path);
    (void)snprintf(path + len, sizeof path - len, "%s", tool);
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(out_fd, STDOUT_FILENO);
        (void)execv(path, arguments);
        (void)tool_error("hpcrun", "%s: cannot be run: %s", path, strerror(errno));
        _exit(1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0 ? 0 : 1;
}

static void database_name(const char *dir, char *name, size_t n)
{
    const char *at = strstr(dir, MEASUREMENTS);
    for (const char *next = at; next; next = strstr(next + 1, MEASUREMENTS))
        at = next;
    if (at && !strchr(at, '/'))
        (void)snprintf(name, n, "%.*s-database%s", (int)(at - dir), dir, at + sizeof MEASUREMENTS - 1);
    else
        (void)snprintf(name, n, "%s-database", dir);
}

/* Whether the report is to be a page for a browser. */
static bool is_page(const char *file)
{
    const char *dot = file ? strrchr(file, '.') : NULL;
    return dot && (strcmp(dot, ".html") == 0 || strcmp(dot, ".htm") == 0);
}

/* Whether the directory has files of this kind. */
static bool has_files(const char *dir, const char *suffix)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    bool has_any = names_list(dir, suffix, &files, &n, &ignored) == 0 && n > 0;
    free(files);
    return has_any;
}

/* What the scheduler did, of each launch. Of a page for a browser it is no part. */
static int print_sched(const struct report_wish *wish, int out_fd)
{
    static char hpcquery[] = "hpcquery", sched[] = "sched", summary[] = "summary";
    struct names_file *files = NULL;
    struct error err;
    size_t n = 0;
    int status = 0;
    if (names_list(wish->dir, "sched", &files, &n, &err) != 0)
        return 1;
    for (size_t i = 0; i < n && !status; i++) {
        char *path = names_path(wish->dir, &files[i]);
        char *const print[] = {hpcquery, sched, summary, path, NULL};
        if (path && !is_page(wish->file))
            (void)!write(out_fd, "\n", 1);
        status = !path ? 1 : run_tool(hpcquery, print, is_page(wish->file) ? STDERR_FILENO : out_fd);
        free(path);
    }
    free(files);
    return status;
}

static int print_to(const struct report_wish *wish, int out_fd)
{
    static char hpcprof[] = "hpcprof", option[] = "-o", hpcquery[] = "hpcquery", vars[] = "vars";
    static char leaks[] = "leaks", html[] = "--html";
    char measurements[PROGRAM_PATH_MAX], database[PROGRAM_PATH_MAX + 16];
    (void)snprintf(measurements, sizeof measurements, "%s", wish->dir);
    database_name(wish->dir, database, sizeof database);
    char *const combine[] = {hpcprof, option, database, measurements, NULL};
    char *const print[] = {hpcquery, vars, database, is_page(wish->file) ? html : NULL, NULL};
    char *const print_leaks[] = {hpcquery, leaks, database, NULL};
    (void)fflush(NULL);
    (void)pending_wait(wish->dir, WAIT_MS);
    bool has_sched = has_files(wish->dir, "sched");
    /* of the scheduler alone there is nothing to combine */
    if ((!has_sched || has_files(wish->dir, "hpcrun")) &&
        (run_tool(hpcprof, combine, STDERR_FILENO) != 0 || run_tool(hpcquery, print, out_fd) != 0))
        return 1;
    if (has_sched && print_sched(wish, out_fd) != 0)
        return 1;
    if (!wish->with_leaks)
        return 0;
    if (is_page(wish->file))
        return run_tool(hpcquery, print_leaks, STDERR_FILENO);
    (void)!write(out_fd, "\n", 1);
    return run_tool(hpcquery, print_leaks, out_fd);
}

/* Runs hpcprof on the measurement directory and hpcquery vars (with_leaks: and hpcquery leaks) on the database beside
 * it ("-measurements" in the name becomes "-database"), with messages of their own on stderr. Returns 0, or 1 when one
 * of them failed, after a message. */
static int report_print(const struct report_wish *wish)
{
    int fd = STDERR_FILENO;
    if (wish->file)
        fd = open(wish->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) {
        (void)tool_error("hpcrun", "--report: %s: cannot be written: %s", wish->file, strerror(errno));
        return 1;
    }
    int status = print_to(wish, fd);
    if (wish->file)
        (void)close(fd);
    return status;
}

/* Whether this run is the one that reports. When fewer ranks have begun than there are, others may be about to begin.
 */
static bool is_last(const char *dir, const struct run *run)
{
    const struct timespec step = {.tv_nsec = 100000000};
    for (int i = 0;; i++) {
        struct buf text = {0};
        struct error ignored;
        int n_begun = 0;
        bool is = runs_text(dir, &text, &ignored) != 0 || runs_is_last(text.data, run, &n_begun);
        buf_fini(&text);
        if (!is || n_begun >= run->n_ranks || i == STEPS_MAX)
            return is;
        (void)nanosleep(&step, NULL);
    }
}

int report_end(const struct report_wish *wish, const struct run *run, bool is_measured)
{
    struct error err;
    if (runs_end(wish->dir, run, &err) != 0)
        (void)tool_error("hpcrun", "%s", err.text);
    return (is_measured || run->rank >= 0) && is_last(wish->dir, run) ? report_print(wish) : 0;
}

bool report_speaks(const char *dir, const struct run *run)
{
    struct buf text = {0};
    struct error ignored;
    bool is = run->rank < 0 || runs_text(dir, &text, &ignored) != 0 || runs_is_first(text.data, run);
    buf_fini(&text);
    return is;
}
