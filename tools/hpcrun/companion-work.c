/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparations done by workers of the companion. Apart because they pull in the large libraries. Ordinary code. */
#include "companion-work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "fnbounds/modtab-cache.h"
#include "topology.h"

#define JOBS_DEFAULT 4

int companion_work_topology(const struct companion *c)
{
    struct error err;
    if (topology_write(companion_dir(c), &err) == 0)
        return 0;
    companion_log(c, "%s", err.text);
    return 1;
}

int companion_work_module(const struct companion *c, const struct companion_module *module, const char *path)
{
    struct error err = {0};
    char found[ARENA_PATH_MAX];
    bool is_there = !module || companion_module_find(module, path, found);
    if (!c->setup->tables[0])
        return 1;
    if (is_there && modtab_make(module ? found : path, c->setup->tables, NULL, &err) == 0)
        return 0;
    if (is_there)
        companion_log(c, "%s", err.text);
    else
        companion_log(c, "No addresses in %s: the file is gone or has been replaced.", path);
    return 1;
}

int companion_work_foreign(const struct companion *c, const struct companion_module *module, const char *path)
{
    struct error err;
    struct stat status;
    bool is_everybodys = !strcmp(path, MODTAB_VDSO) || (stat(path, &status) == 0 && status.st_mode & S_IROTH);
    if (!is_everybodys || !companion_is_safe_path(path) || companion_work_module(c, module, path) != 0)
        return 1;
    return c->foreign_tables[0] && modtab_make(path, c->foreign_tables, NULL, &err) == 0 ? 0 : 1;
}

/* Asks the program's own loader which libraries it would load: search paths, environment and cache as it will see
 * them. The program itself is not run. */
static FILE *open_list(const struct companion *c, const char *path, pid_t *child)
{
    int fds[2];
    if (!c->setup->loader[0] || pipe(fds) != 0)
        return NULL;
    *child = fork();
    if (*child == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl(c->setup->loader, c->setup->loader, "--list", path, (char *)NULL);
        _exit(1);
    }
    (void)close(fds[1]);
    return fdopen(fds[0], "r");
}

static void read_list(const struct companion *c, const char *path, struct strtab *paths)
{
    char line[ARENA_PATH_MAX + 256], name[ARENA_PATH_MAX];
    pid_t child = -1;
    FILE *list = open_list(c, path, &child);
    while (list && fgets(line, sizeof line, list)) {
        const char *start = strstr(line, "=> /");
        start = start ? start + 3 : strchr(line, '/');
        if (start && sscanf(start, "%4095s", name) == 1)
            (void)strtab_intern(paths, name);
    }
    if (list)
        (void)fclose(list);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
}

static void make_share(const struct companion *c, const struct strtab *paths, unsigned share, unsigned n_shares)
{
    for (size_t i = share; i < paths->n_strings; i += n_shares)
        (void)companion_work_module(c, NULL, paths->strings[i]);
}

int companion_work_prepare(const struct companion *c, const char *path)
{
    struct strtab paths = {0};
    unsigned n_shares = c->setup->n_jobs ? c->setup->n_jobs : JOBS_DEFAULT;
    (void)strtab_intern(&paths, path);
    (void)strtab_intern(&paths, MODTAB_VDSO);
    if (c->setup->library[0])
        (void)strtab_intern(&paths, c->setup->library);
    read_list(c, path, &paths);
    for (unsigned share = 1; share < n_shares && share < paths.n_strings; share++) {
        pid_t child = fork();
        if (child == 0) {
            make_share(c, &paths, share, n_shares);
            _exit(0);
        }
        if (child < 0)
            make_share(c, &paths, share, n_shares);
    }
    make_share(c, &paths, 0, n_shares);
    while (wait(NULL) > 0)
        ;
    strtab_fini(&paths);
    return 0;
}
