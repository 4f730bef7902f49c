/* SPDX-License-Identifier: BSD-3-Clause */
/* Running the reporting tools after the program; see report.h. */
#include "report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prepare.h"

#define MEASUREMENTS "-measurements"

static int run_tool(const char *tool, char *const *arguments, int out_fd)
{
    char path[PROGRAM_PATH_MAX];
    int status = 0;
    prepare_own_directory(path, sizeof path);
    size_t len = strlen(path);
    (void)snprintf(path + len, sizeof path - len, "%s", tool);
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(out_fd, STDOUT_FILENO);
        (void)execv(path, arguments);
        (void)fprintf(stderr, "hpcrun: %s cannot be executed: %s.\n", path, strerror(errno));
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

int report_print(const char *dir, bool with_leaks)
{
    static char hpcprof[] = "hpcprof", option[] = "-o", hpcquery[] = "hpcquery", vars[] = "vars", leaks[] = "leaks";
    char measurements[PROGRAM_PATH_MAX], database[PROGRAM_PATH_MAX + 16];
    (void)snprintf(measurements, sizeof measurements, "%s", dir);
    database_name(dir, database, sizeof database);
    char *const combine[] = {hpcprof, option, database, measurements, NULL};
    char *const print[] = {hpcquery, vars, database, NULL};
    (void)fflush(NULL);
    if (run_tool(hpcprof, combine, STDERR_FILENO) != 0)
        return 1;
    if (run_tool(hpcquery, print, STDOUT_FILENO) != 0)
        return 1;
    if (!with_leaks)
        return 0;
    char *const print_leaks[] = {hpcquery, leaks, database, NULL};
    (void)puts("");
    (void)fflush(stdout);
    return run_tool(hpcquery, print_leaks, STDOUT_FILENO);
}
