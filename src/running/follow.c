/* SPDX-License-Identifier: BSD-3-Clause */
/* A database of programs that run, made anew again and again. The work is done by processes of our own, one of them at
 * a time: hpcrun --copy makes files of the records that the companions hand out, hpcprof a database of these. Ordinary
 * code. */
#include "running/running.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/scratch.h"
#include "measurement/names.h"
#include "measurement/pending.h"

#define LEAST_NS (1000 * (int64_t)CLOCK_MS_NS) /* from the end of one to the beginning of the next */
#define SHARE 10                               /* one part in so many of a processor may be used */
#define POLL_MS 50                             /* between two looks whether it is done */
#define AGAIN_NS (10 * (int64_t)CLOCK_S_NS)    /* a directory is read again though nothing says that it has changed */
#define READ_SHARE 20                          /* of the time, to read directories that change all the time */

#define MADE_BYTES 300

/* A measurement directory. Many nodes may share its file system, so it is read again only where it has changed, or
 * after a while. */
struct followed {
    char *path;                    /* real */
    int64_t changed_ns, looked_ns; /* its time of change; CLOCK_MONOTONIC, 0: never */
    int64_t took_ns;
    size_t n_here;   /* processes that ran here then */
    uint64_t number; /* changes with what other processes have saved there */
    size_t n_files;  /* of these processes */
    bool is_written;
    uint64_t begun_ns; /* CLOCK_REALTIME: when it was first to be written, 0: it is not known */
};

struct follow {
    struct running_watch watch;
    char scratch[256], said[300];
    pid_t maker;                                    /* 0: none is at work */
    bool is_copying;                                /* it is hpcrun, else hpcprof */
    double cpu_s;                                   /* of what was made last */
    unsigned n_made;                                /* number of the one that is being made, or was last */
    unsigned ready, taken, shown;                   /* numbers of databases, 0: none */
    int64_t due_ns, look_ns;                        /* by CLOCK_MONOTONIC: of the next one, of the next look */
    int64_t begun_ns, ready_ns, taken_ns, shown_ns; /* and when the maker began, of what is made, ready, taken, shown */
    uint64_t n_seen, n_begun,
        n_ready; /* samples and blocks: in the last look, when the maker began, in what is ready */
    bool is_over, is_held;
    bool is_alone, has_left; /* a process runs without its companion; one has, whose records are not in the files */
    char trouble[RUNNING_TOLD_BYTES + 100], path[MADE_BYTES], recording[MADE_BYTES];
    struct followed *dirs;            /* [n_dirs] where the measurements of all that were seen are written */
    size_t n_dirs, cap_dirs, n_named; /* the first n_named are those that words name */
    pid_t *seen;                      /* [n_seen_pids] processes of this host */
    size_t n_seen_pids, cap_seen;
    size_t n_files;            /* processes in named directories that are known by their files */
    uint64_t start_ns, end_ns; /* CLOCK_REALTIME: the first one began, the last one was seen */
    bool is_paused;
    char phase[ARENA_PHASE_BYTES];
};

static int64_t now_ns(void)
{
    return (int64_t)clock_now_ns(CLOCK_MONOTONIC);
}

/* --- looking --- */

/* Notes a measurement directory once. */
static void add_dir(struct follow *follow, const char *path)
{
    for (size_t i = 0; i < follow->n_dirs; i++)
        if (strcmp(follow->dirs[i].path, path) == 0)
            return;
    char *copy =
        vec_reserve(&follow->dirs, &follow->cap_dirs, follow->n_dirs + 1, sizeof *follow->dirs) ? strdup(path) : NULL;
    if (copy)
        follow->dirs[follow->n_dirs++] = (struct followed){.path = copy};
}

static void add_seen(struct follow *follow, pid_t pid)
{
    for (size_t i = 0; i < follow->n_seen_pids; i++)
        if (follow->seen[i] == pid)
            return;
    if (vec_reserve(&follow->seen, &follow->cap_seen, follow->n_seen_pids + 1, sizeof *follow->seen))
        follow->seen[follow->n_seen_pids++] = pid;
}

/* How far the programs are. */
static uint64_t count_records(const struct running_list *list)
{
    uint64_t n = list->n;
    for (size_t i = 0; i < list->n; i++) {
        const struct live *live = &running_now(&list->processes[i])->live;
        for (uint32_t k = 0; k < live->n_events; k++)
            n += live->events[k].n_taken;
        n += live->n_blocks + live->is_paused;
    }
    return n;
}

/* What programs of other nodes, and those that have ended, have saved in a named directory. */
static void read_directory(const struct follow *follow, struct followed *dir)
{
    struct names_file *files = NULL;
    struct error ignored;
    struct stat info;
    size_t n = 0;
    if (names_list(dir->path, "objects", &files, &n, &ignored) != 0)
        return;
    dir->number = dir->n_files = 0;
    for (size_t i = 0; i < n; i++) {
        char *path =
            running_has_file(&follow->watch.list, dir->path, &files[i]) ? NULL : names_path(dir->path, &files[i]);
        if (path && stat(path, &info) == 0)
            dir->number += (uint64_t)info.st_mtim.tv_sec * 1000 + (uint64_t)info.st_mtim.tv_nsec / 1000000;
        dir->n_files += path && files[i].thread == 0;
        free(path);
    }
    free(files);
    dir->is_written = pending_wait(dir->path, 0) != PENDING_NONE;
    dir->begun_ns = pending_begun_ns(dir->path);
}

/* The same, as far as it is worth it. */
static void look_at_directory(const struct follow *follow, struct followed *dir)
{
    struct stat info;
    int64_t start_ns = now_ns(), since_ns = start_ns - dir->looked_ns;
    int64_t changed_ns =
        stat(dir->path, &info) == 0 ? (int64_t)info.st_mtim.tv_sec * CLOCK_S_NS + info.st_mtim.tv_nsec : 0;
    if (dir->looked_ns && dir->n_here == follow->watch.list.n &&
        since_ns < (changed_ns == dir->changed_ns ? AGAIN_NS : (int64_t)READ_SHARE * dir->took_ns))
        return;
    read_directory(follow, dir);
    *dir = (struct followed){.path = dir->path,
                             .changed_ns = changed_ns,
                             .looked_ns = now_ns(),
                             .took_ns = now_ns() - start_ns,
                             .n_here = follow->watch.list.n,
                             .number = dir->number,
                             .n_files = dir->n_files,
                             .is_written = dir->is_written,
                             .begun_ns = dir->begun_ns};
}

static void note_start(struct follow *follow, uint64_t start_ns)
{
    if (start_ns && (!follow->start_ns || start_ns < follow->start_ns))
        follow->start_ns = start_ns;
}

/* What the first process says of itself, and when all began. */
static void look_at_processes(struct follow *follow)
{
    struct running_list *list = &follow->watch.list;
    const struct live *live = &running_now(&list->processes[0])->live;
    follow->is_paused = live->is_paused;
    memcpy(follow->phase, live->phase, sizeof follow->phase);
    for (size_t i = 0; i < list->n; i++) {
        note_start(follow, running_now(&list->processes[i])->live.start_ns);
        if (list->processes[i].is_foreign) /* what it names is not opened */
            continue;
        add_dir(follow, list->processes[i].dir);
        add_seen(follow, list->processes[i].pid);
    }
}

/* The first process whose records nobody hands out any more, or for now; NULL: there is none. */
static const struct running_process *find_alone(const struct follow *follow)
{
    for (size_t i = 0; i < follow->watch.list.n; i++)
        if (follow->watch.list.processes[i].is_kept_by != COMPANION_ANSWERS)
            return &follow->watch.list.processes[i];
    return NULL;
}

/* Notes who has lost its companion: a newer database would lack it, and numbers would go back. */
static void look_for_alone(struct follow *follow)
{
    const struct running_process *alone = find_alone(follow);
    bool was_alone = follow->is_alone;
    char told[RUNNING_TOLD_BYTES];
    follow->is_alone = alone != NULL;
    if (alone && running_tell_companion(alone, told, sizeof told))
        (void)snprintf(follow->trouble, sizeof follow->trouble,
                       "process %ld: its companion process %s; the numbers here stay as they are", (long)alone->pid,
                       told);
    else if (was_alone)
        follow->trouble[0] = '\0';
    follow->has_left |= alone && alone->is_kept_by == COMPANION_DEAD;
}

/* Looks at what runs; whether anything does, on this host, or on others as far as a named directory says so. */
static bool look(struct follow *follow)
{
    bool runs = running_watch_step(&follow->watch, false) > 0;
    follow->n_files = 0;
    follow->n_seen = count_records(&follow->watch.list);
    if (runs) {
        look_at_processes(follow);
        look_for_alone(follow);
    }
    for (size_t i = 0; i < follow->n_named; i++) {
        struct followed *dir = &follow->dirs[i];
        look_at_directory(follow, dir);
        follow->n_seen += dir->number;
        follow->n_files += dir->n_files;
        runs |= dir->is_written;
        note_start(follow, dir->begun_ns);
    }
    if (runs) {
        follow->end_ns = clock_now_ns(CLOCK_REALTIME);
        note_start(follow, follow->start_ns ? 0 : follow->end_ns);
    }
    return runs;
}

/* --- making --- */

/* Starts a tool that lies beside this one, with its messages in a file. */
static bool start(struct follow *follow, char *const *words)
{
    static const int ignored[] = {SIGPIPE, SIGTTIN, SIGBUS};
    char path[4096];
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    sigset_t none, all;
    tool_directory(path, sizeof path - 32);
    (void)strncat(path, words[0], 31);
    (void)sigemptyset(&none);
    (void)sigemptyset(&all);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)sigaddset(&all, ignored[i]);
    if (posix_spawnattr_init(&how) != 0)
        return false;
    if (posix_spawn_file_actions_init(&files) != 0) {
        (void)posix_spawnattr_destroy(&how);
        return false;
    }
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&how, &none);
    (void)posix_spawnattr_setsigdefault(&how, &all);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, follow->said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int code = posix_spawn(&follow->maker, path, &files, &how, words, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    if (code != 0) {
        follow->maker = 0;
        (void)snprintf(follow->trouble, sizeof follow->trouble, "%.300s cannot be run: %s", path, strerror(code));
    }
    return code == 0;
}

static void put_made(const struct follow *follow, const char *what, char path[MADE_BYTES])
{
    (void)snprintf(path, MADE_BYTES, "%s/%u-%s", follow->scratch, follow->n_made, what);
}

#define PID_BYTES 24

/* The processes that run, by id: those that words meant when they began may be below nothing of that by now. Returns
 * their texts, to be freed, and sets words [watch.list.n]. */
static char *list_pids(const struct follow *follow, char **words)
{
    char *texts = malloc((follow->watch.list.n + 1) * (size_t)PID_BYTES);
    for (size_t i = 0; texts && i < follow->watch.list.n; i++) {
        words[i] = texts + i * PID_BYTES;
        (void)snprintf(words[i], PID_BYTES, "%ld" RUNNING_SEEN, (long)follow->watch.list.processes[i].pid);
    }
    return texts;
}

/* Starts a tool with some words, and behind them directories, and processes. */
static bool start_with(struct follow *follow, char *const *first, size_t n_first, size_t n_dirs, bool with_pids)
{
    size_t n = n_first;
    char **words = calloc(n_first + n_dirs + follow->watch.list.n + 1, sizeof *words), *texts = NULL;
    if (!words)
        return false;
    memcpy(words, first, n_first * sizeof *words);
    for (size_t i = 0; i < n_dirs; i++)
        words[n++] = follow->dirs[i].path;
    if (with_pids)
        texts = list_pids(follow, words + n);
    bool ok = (!with_pids || texts) && start(follow, words);
    free(texts);
    free(words);
    return ok;
}

static bool start_copy(struct follow *follow)
{
    static char hpcrun[] = "hpcrun", option[] = "--copy";
    char to[MADE_BYTES], *const first[] = {hpcrun, option, to};
    put_made(follow, "measurements", to);
    return start_with(follow, first, 3, follow->n_named, true);
}

/* Of the copy; when all is over, of the measurement itself, which is complete. */
static bool start_hpcprof(struct follow *follow)
{
    static char hpcprof[] = "hpcprof", quiet[] = "-q", jobs[] = "-j1", output[] = "-o";
    char from[MADE_BYTES], to[MADE_BYTES], *const first[] = {hpcprof, quiet, jobs, output, to, from};
    put_made(follow, "measurements", from);
    put_made(follow, "database", to);
    return follow->is_over ? start_with(follow, first, 5, follow->n_dirs, false)
                           : start_with(follow, first, 6, 0, false);
}

static void begin_making(struct follow *follow)
{
    follow->n_made++;
    follow->begun_ns = now_ns();
    follow->n_begun = follow->n_seen;
    follow->cpu_s = 0;
    follow->is_copying = !follow->is_over;
    (void)(follow->is_copying ? start_copy(follow) : start_hpcprof(follow));
}

static void remove_made(const struct follow *follow, unsigned number, const char *what)
{
    char name[64];
    int parent = open(follow->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(name, sizeof name, "%u-%s", number, what);
    if (parent < 0)
        return;
    scratch_remove_tree(parent, name);
    (void)close(parent);
}

/* A database, and what it was made of, which has the time line. */
static void remove_both(const struct follow *follow, unsigned number)
{
    remove_made(follow, number, "database");
    remove_made(follow, number, "measurements");
}

/* The first sentence of what the tools said. */
static void read_trouble(struct follow *follow)
{
    char text[sizeof follow->trouble] = "";
    int fd = open(follow->said, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(follow->trouble, sizeof follow->trouble, "%s", text[0] ? text : "no database could be made");
}

/* Takes what the maker has made; true: it is a newer one. */
static bool end_making(struct follow *follow)
{
    char path[MADE_BYTES];
    int64_t pause_ns = (int64_t)(follow->cpu_s * SHARE * (double)CLOCK_S_NS) - (now_ns() - follow->begun_ns);
    follow->due_ns = now_ns() + (pause_ns > LEAST_NS ? pause_ns : LEAST_NS);
    put_made(follow, "database", path);
    if (access(path, F_OK) != 0) {
        remove_made(follow, follow->n_made, "measurements");
        read_trouble(follow);
        return false;
    }
    if (follow->ready && follow->ready != follow->taken)
        remove_both(follow, follow->ready);
    follow->ready = follow->n_made;
    follow->n_ready = follow->n_begun;
    follow->ready_ns = follow->begun_ns;
    follow->trouble[0] = '\0';
    return true;
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Looks whether the maker has ended; what was copied becomes a database. true: there is a newer one. */
static bool go_on_making(struct follow *follow)
{
    struct rusage usage;
    char copied[MADE_BYTES];
    pid_t ended = wait4(follow->maker, NULL, WNOHANG, &usage);
    if (ended == 0)
        return false;
    if (ended > 0)
        follow->cpu_s += seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
    follow->maker = 0;
    put_made(follow, "measurements", copied);
    bool goes_on = follow->is_copying && access(copied, F_OK) == 0;
    follow->is_copying = false;
    return goes_on && start_hpcprof(follow) ? false : end_making(follow);
}

/* Whether a file is of what was followed. */
static bool is_followed(const struct follow *follow, const struct names_file *file)
{
    bool is = !follow->watch.words || follow->n_named > 0;
    for (size_t i = 0; i < follow->n_seen_pids && !is; i++)
        is = file->pid == (uint32_t)follow->seen[i];
    return is;
}

/* Whether what has ended is all that was measured into its directories: then the files there say it in full. */
static bool is_whole(const struct follow *follow)
{
    struct names_file *files;
    struct error ignored;
    size_t n, n_all = 0;
    bool is_whole = follow->n_dirs > 0 && (!follow->n_named || follow->n_named == follow->n_dirs);
    for (size_t k = 0; k < follow->n_dirs && is_whole; k++) {
        files = NULL;
        n = 0;
        is_whole = names_list(follow->dirs[k].path, "hpcrun", &files, &n, &ignored) == 0;
        for (size_t i = 0; i < n && is_whole; i++)
            is_whole = is_followed(follow, &files[i]);
        n_all += n;
        free(files);
    }
    return is_whole && n_all > 0;
}

/* What the files lack is to be said, or the last numbers would be less than those before. */
static void tell_left(struct follow *follow)
{
    (void)snprintf(follow->trouble, sizeof follow->trouble,
                   "its companion process had ended before; 'hpcrun --collect %s' makes files of all that it recorded",
                   follow->n_dirs ? follow->dirs[0].path : "DIR");
}

bool follow_step(struct follow *follow)
{
    bool runs = true, is_looking = !follow->is_over && now_ns() >= follow->look_ns;
    if (is_looking) {
        follow->look_ns = now_ns() + LEAST_NS;
        runs = look(follow);
    }
    if (follow->maker)
        return go_on_making(follow);
    if (!is_looking)
        return false;
    if (!runs) {
        follow->is_over = true;
        if (follow->has_left)
            tell_left(follow);
        else if (is_whole(follow))
            begin_making(follow);
    } else if (now_ns() >= follow->due_ns && !follow->is_held && !follow->is_alone &&
               follow->n_seen != follow->n_ready && follow->ready == follow->taken) {
        begin_making(follow);
    }
    return false;
}

/* --- begin and end --- */

/* Until the first database is there. */
static int wait_first(struct follow *follow, int stop_fd, struct error *err)
{
    while (!follow_step(follow)) {
        struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
        if (follow->is_over && !follow->maker)
            return error_set(err, ERR_NOT_FOUND, "the program has ended before there was anything to show%s%s",
                             follow->trouble[0] ? ": " : "", follow->trouble);
        (void)poll(&stop, 1, follow_wait_ms(follow));
        if (stop.revents)
            return error_set(err, ERR_NOT_FOUND, "ended before there was anything to show");
    }
    return 0;
}

/* Finds what is meant. Programs of other nodes are known by the files that they save. */
static int find_first(struct follow *follow, struct error *err)
{
    struct running_list *list = &follow->watch.list;
    const char *const *words = follow->watch.words;
    char real[PATH_MAX];
    bool is_written = false;
    for (size_t i = 0; words && words[i]; i++)
        if (running_word_directory(words[i], real)) {
            add_dir(follow, real);
            is_written |= pending_wait(real, 0) != PENDING_NONE;
        }
    follow->n_named = follow->n_dirs;
    int code = running_find(list, err);
    if (code != 0)
        return code;
    if (running_choose(list, words, true) || (!list->n && !is_written && running_choose(list, words, false)))
        return error_set(err, ERR_NOT_FOUND, "%s", ""); /* it says why not */
    if (!list->n && !is_written)
        return error_set(err, ERR_NOT_FOUND, "no process of yours is being measured here");
    return 0;
}

int follow_begin(const char *const *words, int stop_fd, struct follow **follow, struct error *err)
{
    struct follow *made = *follow = calloc(1, sizeof *made);
    if (!made)
        return error_memory(err);
    made->watch = (struct running_watch){.list.tool = "hpcviewer", .words = words};
    int code = scratch_make(made->scratch, sizeof made->scratch, "hpcviewer", err);
    (void)snprintf(made->said, sizeof made->said, "%s/said", made->scratch);
    if (code == 0)
        code = find_first(made, err);
    for (size_t i = 0; code == 0 && i < made->watch.list.n; i++)
        if (made->watch.list.processes[i].is_foreign)
            code = error_set(err, ERR_UNSUPPORTED,
                             "process %ld belongs to another user: hpcviewer --live --plain shows its table alone",
                             (long)made->watch.list.processes[i].pid);
    return code ? code : wait_first(made, stop_fd, err);
}

void follow_end(struct follow *follow)
{
    if (!follow)
        return;
    if (follow->maker) {
        (void)kill(follow->maker, SIGTERM);
        while (waitpid(follow->maker, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    running_fini(&follow->watch.list);
    if (follow->scratch[0])
        scratch_remove(follow->scratch);
    for (size_t i = 0; i < follow->n_dirs; i++)
        free(follow->dirs[i].path);
    free(follow->dirs);
    free(follow->seen);
    free(follow);
}

int follow_wait_ms(const struct follow *follow)
{
    if (follow->maker)
        return POLL_MS;
    int64_t rest_ns = follow->look_ns - now_ns();
    return follow->is_over ? -1 : rest_ns > 0 ? (int)(rest_ns / CLOCK_MS_NS) + 1 : 0;
}

const char *follow_take(struct follow *follow)
{
    if (follow->taken != follow->shown && follow->taken != follow->ready)
        remove_both(follow, follow->taken); /* it could not be opened */
    follow->taken = follow->ready;
    follow->taken_ns = follow->ready_ns;
    (void)snprintf(follow->path, sizeof follow->path, "%s/%u-database", follow->scratch, follow->taken);
    return follow->path;
}

void follow_opened(struct follow *follow)
{
    if (follow->shown && follow->shown != follow->taken)
        remove_both(follow, follow->shown);
    follow->shown = follow->taken;
    follow->shown_ns = follow->taken_ns;
}

const char *follow_recording(struct follow *follow)
{
    (void)snprintf(follow->recording, sizeof follow->recording, "%s/%u-measurements", follow->scratch, follow->taken);
    if (access(follow->recording, F_OK) == 0)
        return follow->recording;
    return follow->is_over && follow->n_dirs == 1 ? follow->dirs[0].path : NULL;
}

const char *follow_directory(const struct follow *follow, size_t i)
{
    return i < follow->n_dirs ? follow->dirs[i].path : NULL;
}

void follow_hold(struct follow *follow, bool is_held)
{
    follow->is_held = is_held;
}

void follow_state(const struct follow *follow, struct follow_state *state)
{
    double age_s = (double)(now_ns() - follow->shown_ns) / CLOCK_S_NS;
    double end_s = (double)(follow->is_over ? follow->end_ns : clock_now_ns(CLOCK_REALTIME)) / CLOCK_S_NS;
    double elapsed_s = end_s - (double)follow->start_ns / CLOCK_S_NS - (follow->is_over ? 0 : age_s);
    *state = (struct follow_state){.elapsed_s = elapsed_s > 0 ? elapsed_s : 0,
                                   .age_s = age_s,
                                   .n_processes = follow->is_over ? 0 : follow->watch.list.n,
                                   .n_files = follow->is_over ? 0 : follow->n_files,
                                   .is_over = follow->is_over,
                                   .is_held = follow->is_held,
                                   .is_paused = follow->is_paused,
                                   .trouble = follow->trouble[0] ? follow->trouble : NULL};
    memcpy(state->phase, follow->phase, sizeof state->phase);
}

int follow_control(struct follow *follow, const char *command, struct buf *says, struct error *err)
{
    struct running_list *list = &follow->watch.list;
    char answer[ARENA_PATH_MAX];
    if (follow->is_over || !list->n)
        return error_set(err, ERR_NOT_FOUND, "the program has ended");
    if (find_alone(follow))
        return error_set(err, ERR_UNSUPPORTED, "%.900s", follow->trouble);
    for (size_t i = 0; i < list->n; i++) {
        int code = running_control_process(&list->processes[i], command, answer, err);
        if (code != 0)
            return code;
    }
    buf_printf(says, strcmp(command, "snapshot") == 0 ? "saved: hpcprof %s makes a database of it" : "%2$s%3$s%1$s",
               answer, command, *answer ? ": " : "");
    return 0;
}
