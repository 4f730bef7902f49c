/* SPDX-License-Identifier: BSD-3-Clause */
/* The maker of recipes: one long-lived worker of the companion, the store's only writer. A process of its own, because
 * it reads mapped program files that may change under it: when it dies it is started again. Before that, finding the
 * file behind a module of a running process: its path comes from the program, so it may be wrong, lie below another
 * root, be gone, or be another file by now. Ordinary code. */
#include "companion/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "fnbounds/modtab-cache.h"
#include "fnbounds/recipe-make.h"

static bool is_it(const struct companion_module *module, const char *path)
{
    uint64_t id;
    return modtab_identify(path, &id, NULL) == 0 && (!module->id || id == module->id);
}

/* The file that is mapped at the start of the module; opening it takes privileges. */
static bool find_mapped(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    char path[64], line[ARENA_PATH_MAX + 128];
    unsigned long long low, high;
    bool is_found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", (long)module->pid);
    FILE *maps = input_stream(path);
    while (maps && !is_found && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%llx", &low, &high) != 2 || low > module->start || high <= module->start)
            continue;
        (void)snprintf(found, ARENA_PATH_MAX, "/proc/%ld/map_files/%llx-%llx", (long)module->pid, low, high);
        is_found = is_it(module, found);
        break;
    }
    if (maps)
        (void)fclose(maps);
    return is_found;
}

/* Libraries in memory files are loaded through their descriptor, which often stays open. */
static bool find_open(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)module->pid);
    DIR *directory = module->inode ? opendir(path) : NULL;
    bool is_found = false;
    for (const struct dirent *entry; directory && !is_found && (entry = readdir(directory));) {
        (void)snprintf(found, ARENA_PATH_MAX, "%s/%s", path, entry->d_name);
        is_found = entry->d_name[0] != '.' && stat(found, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_ino == module->inode && is_it(module, found);
    }
    if (directory)
        (void)closedir(directory);
    return is_found;
}

static bool make_image(const struct companion_module *module, char found[ARENA_PATH_MAX])
{
    int image = companion_memory_image(module->pid, module->start);
    (void)snprintf(found, ARENA_PATH_MAX, "/proc/self/fd/%d", image);
    bool is_good = image >= 0 && is_it(module, found);
    if (!is_good && image >= 0)
        (void)close(image);
    return is_good;
}

bool companion_module_find(const struct companion_module *module, const char *path, char found[ARENA_PATH_MAX])
{
    bool is_absolute = path[0] == '/'; /* else relative to a working directory that is not ours */
    int length = snprintf(found, ARENA_PATH_MAX, "%s", path);
    if ((is_absolute || !strcmp(path, MODTAB_VDSO)) && length < ARENA_PATH_MAX && is_it(module, found))
        return true;
    if (!module->pid || !module->id)
        return false;
    length = snprintf(found, ARENA_PATH_MAX, "/proc/%ld/root%s", (long)module->pid, path);
    if (is_absolute && length < ARENA_PATH_MAX && is_it(module, found))
        return true;
    return find_mapped(module, found) || find_open(module, found) || make_image(module, found);
}

/* --- the worker and the pipe to it --- */

#define PIPE_BYTES (1 << 20)
#define RESTARTS_MAX 20
#define GENTLE_TRIES 50 /* of 1 ms */

/* What goes through the pipe, in one piece of at most PIPE_BUF bytes; path_len bytes of path follow. */
struct wish {
    struct companion_module module;
    uint32_t pc;
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
        /* Not kept: the table may still come. */
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
    if (!module->maker || recipe_maker_place(module->maker, c->store.base, wish->pc, &err) != 0)
        recipe_store_refuse(c->store.base, wish->module.id, wish->pc);
}

/* What came through the pipe and has not been taken yet: requests come in groups. The worker reads it into memory that
 * it shares with the companion, so that the next worker goes on where one has ended that was asked to. */
struct inlet {
    int fd;
    size_t first, end;
    char bytes[1 << 15];
};

/* A wait for more ends here if the worker is asked to end; never within a request. */
static void inlet_wait(const struct inlet *inlet)
{
    struct pollfd more = {.fd = inlet->fd, .events = POLLIN};
    sigset_t none;
    (void)sigemptyset(&none);
    while (inlet->first == inlet->end && ppoll(&more, 1, NULL, &none) < 0)
        continue;
}

static bool inlet_take(struct inlet *inlet, void *bytes, size_t n_bytes)
{
    for (char *at = bytes; n_bytes > 0;) {
        if (inlet->first == inlet->end) {
            ssize_t n = read(inlet->fd, inlet->bytes, sizeof inlet->bytes);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return false;
            inlet->first = 0;
            inlet->end = (size_t)n;
        }
        size_t n = inlet->end - inlet->first < n_bytes ? inlet->end - inlet->first : n_bytes;
        memcpy(at, inlet->bytes + inlet->first, n);
        inlet->first += n;
        at += n;
        n_bytes -= n;
    }
    return true;
}

static void leave(int number)
{
    (void)number;
    _exit(0);
}

/* The signal that ends a worker is blocked while it works on a request. */
static void begin_work(void)
{
    sigset_t end;
    (void)sigemptyset(&end);
    (void)sigaddset(&end, SIGTERM);
    (void)signal(SIGTERM, leave);
    (void)sigprocmask(SIG_SETMASK, &end, NULL);
}

static bool must_end(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

static void work(const struct companion *c)
{
    struct module *modules = NULL;
    struct inlet *inlet = c->recipes_inlet;
    struct wish wish;
    char path[ARENA_PATH_MAX];
    begin_work();
    while (!must_end()) {
        inlet_wait(inlet);
        if (!inlet_take(inlet, &wish, sizeof wish) || wish.path_len >= sizeof path ||
            !inlet_take(inlet, path, wish.path_len))
            break;
        path[wish.path_len] = '\0';
        serve_wish(c, &modules, &wish, path);
    }
}

/* Opens the pipe to the workers; false when it cannot be had. */
static bool pipe_open(struct companion *c)
{
    int fds[2];
    if (!c->recipes_inlet) {
        void *shared = mmap(NULL, sizeof *c->recipes_inlet, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        c->recipes_inlet = shared == MAP_FAILED ? NULL : shared;
    }
    if (!c->recipes_inlet || pipe2(fds, O_CLOEXEC) != 0)
        return false;
    c->recipes_inlet->fd = fds[0];
    c->recipes_inlet->first = c->recipes_inlet->end = 0;
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    c->recipes_fd = fds[1];
    return true;
}

static void pipe_close(struct companion *c)
{
    if (c->recipes_fd >= 0) {
        (void)close(c->recipes_fd);
        (void)close(c->recipes_inlet->fd);
    }
    c->recipes_fd = -1;
}

void companion_recipes_start(struct companion *c)
{
    if (c->recipes_fd < 0 && !pipe_open(c)) {
        companion_log(c, "No recipes can be made: %s.", strerror(errno));
        return;
    }
    c->recipes_pid = fork();
    if (c->recipes_pid == 0) {
        (void)close(c->recipes_fd);
        (void)close(c->listen_fd);
        if (c->way_fd >= 0)
            (void)close(c->way_fd);
        (void)close(c->mark.fd);
        if (c->done_fd >= 0)
            (void)close(c->done_fd);
        if (c->sched_fd >= 0)
            (void)close(c->sched_fd);
        work(c);
        _exit(0);
    }
    if (c->recipes_pid < 0 && errno == EAGAIN) {
        c->lacks_room = true; /* tried again by a later request */
        c->recipes_pid = 0;
    } else if (c->recipes_pid < 0) {
        companion_log(c, "No recipes can be made: %s.", strerror(errno));
        pipe_close(c);
        c->recipes_pid = 0;
    }
}

bool companion_recipes_ask(struct companion *c, const struct companion_module *module, uint32_t pc, const char *path)
{
    char message[4096];
    struct wish wish = {.module = *module, .pc = pc, .path_len = (uint32_t)strlen(path)};
    if (c->recipes_fd < 0 || sizeof wish + wish.path_len > sizeof message)
        return true;
    if (!c->recipes_pid && c->room_until_ms)
        return false;
    if (!c->recipes_pid)
        companion_recipes_start(c);
    if (!c->recipes_pid && c->lacks_room)
        return false;
    memcpy(message, &wish, sizeof wish);
    memcpy(message + sizeof wish, path, wish.path_len);
    return write(c->recipes_fd, message, sizeof wish + wish.path_len) >= 0 || errno != EAGAIN;
}

/* Ends the worker after its present request; false when it has to be killed because that takes long. */
static bool end_gently(const struct companion *c)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)kill(c->recipes_pid, SIGTERM);
    for (int tries = 0; tries < GENTLE_TRIES; tries++) {
        if (waitpid(c->recipes_pid, NULL, WNOHANG) != 0)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

void companion_recipes_suspend(struct companion *c)
{
    if (c->recipes_pid > 0 && !end_gently(c)) {
        companion_recipes_end(c);
        (void)pipe_open(c);
    }
    c->recipes_pid = 0;
}

void companion_recipes_end(struct companion *c)
{
    pipe_close(c);
    if (c->recipes_pid > 0) {
        (void)kill(c->recipes_pid, SIGKILL);
        (void)waitpid(c->recipes_pid, NULL, 0);
    }
    if (c->recipes_inlet)
        (void)munmap(c->recipes_inlet, sizeof *c->recipes_inlet);
    c->recipes_inlet = NULL;
    c->recipes_pid = 0;
}

void companion_recipes_reaped(struct companion *c, pid_t pid, int status)
{
    if (pid != c->recipes_pid)
        return;
    pipe_close(c);
    c->recipes_pid = 0;
    companion_log(c, "The recipe maker ended (wait status %#x).", (unsigned)status);
    if (c->n_recipe_restarts++ < RESTARTS_MAX)
        companion_recipes_start(c);
}
