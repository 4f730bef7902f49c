/* SPDX-License-Identifier: BSD-3-Clause */
/* The recipe worker and the pipe to it; see companion-recipes.h. */
#include "companion-recipes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fnbounds/modtab-cache.h"
#include "fnbounds/recipe-make.h"

#define PIPE_BYTES (1 << 20)
#define RESTARTS_MAX 20

/* What goes through the pipe, in one piece of at most PIPE_BUF bytes; path_len bytes of path follow. */
struct wish {
    struct companion_module module;
    uint32_t func;
    uint32_t path_len;
};

/* A module in the worker. */
struct module {
    struct module *next;
    uint64_t id;
    const struct modtab_header *table;
    struct recipe_maker *maker; /* NULL: cannot be opened */
};

static struct module *module_open(const struct companion *c, const struct companion_module *wanted, const char *path,
                                  struct error *err)
{
    char found[ARENA_PATH_MAX];
    struct module *module = calloc(1, sizeof *module);
    if (!module || modtab_map(c->setup->tables, wanted->id, &module->table, err) != 0) {
        /* Not kept: the table may come yet. */
        free(module);
        return NULL;
    }
    module->id = wanted->id;
    if (!companion_module_find(wanted, path, found)) {
        companion_log(c, "No addresses in %s: the file is gone or has been replaced.", path);
    } else if (recipe_maker_open(module->table, found, &module->maker, err) != 0) {
        companion_log(c, "No addresses in %s: %s", path, err->text);
        module->maker = NULL;
    }
    return module;
}

static void serve_wish(const struct companion *c, struct module **modules, const struct wish *wish, const char *path)
{
    struct error err;
    struct module *module = *modules;
    while (module && module->id != wish->module.id)
        module = module->next;
    if (!module) {
        module = module_open(c, &wish->module, path, &err);
        if (!module)
            return;
        module->next = *modules;
        *modules = module;
    }
    if (!module->maker || recipe_maker_func(module->maker, c->store.base, wish->func, &err) != 0)
        recipe_store_refuse(c->store.base, wish->module.id, wish->func);
}

static bool read_whole(int fd, void *bytes, size_t n_bytes)
{
    char *at = bytes;
    while (n_bytes > 0) {
        ssize_t n = read(fd, at, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

static void work(const struct companion *c, int fd)
{
    struct module *modules = NULL;
    struct wish wish;
    char path[ARENA_PATH_MAX];
    while (read_whole(fd, &wish, sizeof wish) && wish.path_len < sizeof path && read_whole(fd, path, wish.path_len)) {
        path[wish.path_len] = '\0';
        serve_wish(c, &modules, &wish, path);
    }
}

void companion_recipes_start(struct companion *c)
{
    int fds[2];
    c->recipes_fd = -1;
    c->recipes_pid = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        companion_log(c, "No recipes can be made: %s.", strerror(errno));
        return;
    }
    c->recipes_pid = fork();
    if (c->recipes_pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)close(fds[1]);
        (void)close(c->listen_fd);
        if (c->way_fd >= 0)
            (void)close(c->way_fd);
        (void)close(c->mark.fd);
        if (c->done_fd >= 0)
            (void)close(c->done_fd);
        work(c, fds[0]);
        _exit(0);
    }
    (void)close(fds[0]);
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    c->recipes_fd = fds[1];
    if (c->recipes_pid < 0) {
        companion_log(c, "No recipes can be made: %s.", strerror(errno));
        (void)close(fds[1]);
        c->recipes_fd = -1;
        c->recipes_pid = 0;
    }
}

bool companion_recipes_ask(struct companion *c, const struct companion_module *module, uint32_t func, const char *path)
{
    char message[4096];
    struct wish wish = {.module = *module, .func = func, .path_len = (uint32_t)strlen(path)};
    if (c->recipes_fd < 0 || sizeof wish + wish.path_len > sizeof message)
        return true;
    memcpy(message, &wish, sizeof wish);
    memcpy(message + sizeof wish, path, wish.path_len);
    return write(c->recipes_fd, message, sizeof wish + wish.path_len) >= 0 || errno != EAGAIN;
}

void companion_recipes_end(struct companion *c)
{
    if (c->recipes_fd >= 0)
        (void)close(c->recipes_fd);
    c->recipes_fd = -1;
    if (c->recipes_pid > 0) {
        (void)kill(c->recipes_pid, SIGKILL);
        (void)waitpid(c->recipes_pid, NULL, 0);
    }
    c->recipes_pid = 0;
}

void companion_recipes_reaped(struct companion *c, pid_t pid, int status)
{
    if (pid != c->recipes_pid)
        return;
    (void)close(c->recipes_fd);
    c->recipes_fd = -1;
    c->recipes_pid = 0;
    companion_log(c, "The recipe maker ended (wait status %#x).", (unsigned)status);
    if (c->n_recipe_restarts++ < RESTARTS_MAX)
        companion_recipes_start(c);
}
