/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding and making the directory of a launch. Ordinary code. */
#include "hpcrun.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/path.h"
#include "base/process.h"
#include "measurement/names.h"
#include "measurement/pending.h"

/* LAST_FILES_MS: how long a measurement may take to write its last files once its program has ended. After that it
 * counts as still being written. */
enum { TRIES_MAX = 200, NUMBERS_MAX = 1000000, STEP_MS = 10, LAST_FILES_MS = 2000 };

static void pause_ms(int ms)
{
    const struct timespec step = {.tv_nsec = ms * 1000000L};
    (void)nanosleep(&step, NULL);
}

static const char *first_set(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return value;
    }
    return NULL;
}

/* When a process was started, in clock ticks; with its number it is never the same again. 0 when there is no such one.
 */
static unsigned long long start_of(long pid)
{
    struct proc_stat stat;
    (void)proc_stat_read((pid_t)pid, &stat);
    return stat.start;
}

static void replace_blanks(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ')
            *text = '_';
}

static const char *environment(const char *name)
{
    return getenv(name);
}

int launch_rank(void)
{
    return mpi_rank_of_environment(environment);
}

/* What a launcher of ranks calls one launch, and which rank it made this process: other variables may be left from a
 * launcher around it. False when it has no name for it. */
static bool shared_id(struct run *run)
{
    static const char *const spaces[][2] = {
        {"PMIX_NAMESPACE", "PMIX_RANK"},   {"OMPI_MCA_ess_base_jobid", "OMPI_COMM_WORLD_RANK"},
        {"PALS_APID", "PALS_RANKID"},      {"ALPS_APP_ID", "ALPS_APP_PE"},
        {"FLUX_JOB_ID", "FLUX_TASK_RANK"}, {"PMI_PORT", "PMI_ID"}};
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"), *again = getenv("SLURM_RESTART_COUNT");
    bool is_step = job && step && strtoull(step, NULL, 10) < 4294967280u; /* higher ones are no steps of srun */
    const char *space = NULL, *rank = NULL;
    for (size_t i = 0; !space && i < sizeof spaces / sizeof *spaces; i++) {
        space = first_set(&spaces[i][0], 1);
        rank = first_set(&spaces[i][1], 1);
    }
    run->rank = space && rank ? atoi(rank) : launch_rank();
    if (space)
        (void)snprintf(run->id, RUNS_ID_MAX, "space-%.100s-%.40s", space, job ? job : "");
    else if (is_step)
        (void)snprintf(run->id, RUNS_ID_MAX, "slurm-%.40s.%.40s-%.20s", job, step, again ? again : "0");
    replace_blanks(run->id);
    return run->rank >= 0 && (space || is_step);
}

/* The batch system numbers the one process of a job's script, too, which is no rank. */
static const char *rank_variable(const char *name)
{
    return strcmp(name, "SLURM_PROCID") != 0 ? getenv(name) : NULL;
}

static void describe(struct run *run)
{
    static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MPI_WORLD_SIZE"};
    const char *size = first_set(sizes, sizeof sizes / sizeof *sizes), *tasks = getenv("SLURM_STEP_NUM_TASKS");
    uint32_t host = names_host_id();
    *run = (struct run){.n_ranks = size ? atoi(size) : 0};
    (void)snprintf(run->place, sizeof run->place, "%08x-%ld-%llu", host, (long)getppid(), start_of(getppid()));
    run->is_shared = shared_id(run);
    if (run->is_shared && !size && tasks)
        run->n_ranks = atoi(tasks);
    if (run->is_shared)
        return;
    char kind[32] = "alone-";
    run->rank = mpi_rank_of_environment(rank_variable);
    if (run->rank >= 0)
        (void)snprintf(kind, sizeof kind, "ranks-%d-", run->n_ranks);
    (void)snprintf(run->id, sizeof run->id, "%s%08x-%ld-%llu", kind, host, (long)getpid(), start_of(getpid()));
}

/* Whether the launcher of a run of this host still runs, or the program that it has become. */
static bool is_alive(const char *id)
{
    const char *at = strncmp(id, "alone-", 6) == 0   ? id + 6
                     : strncmp(id, "ranks-", 6) == 0 ? strchr(id + 6, '-')
                                                     : NULL;
    unsigned host;
    long pid;
    unsigned long long start;
    at += at && *at == '-';
    return at && sscanf(at, "%x-%ld-%llu", &host, &pid, &start) == 3 && host == names_host_id() && start &&
           start_of(pid) == start;
}

struct contents {
    bool has_data, has_others, is_pointed_at;
};

/* What lies in a directory: files of measurements, and what else. */
static int look_into(const char *directory, struct contents *contents)
{
    struct names_file ignored;
    DIR *dir = opendir(directory);
    *contents = (struct contents){0};
    if (!dir)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        bool is_data =
            names_parse(name, &ignored, NULL) == 0 || text_begins(name, "index-") || text_begins(name, "companion-");
        bool is_ours = is_data || text_begins(name, ".writing-") || text_begins(name, ".detour-") ||
                       text_begins(name, ".claimed-") || text_begins(name, ".arena-") || text_begins(name, ".tmp-") ||
                       text_begins(name, "topology-") || !strcmp(name, RUNS_FILE) || !strcmp(name, "structs") ||
                       !strcmp(name, ".") || !strcmp(name, "..");
        contents->has_data |= is_data;
        contents->has_others |= !is_ours;
        contents->is_pointed_at |= text_begins(name, ".detour-");
    }
    (void)closedir(dir);
    return 0;
}

/* Whether the working directory lies in it, which must not move under the user's feet. */
static bool holds_us(const char *real)
{
    char here[PATH_MAX];
    size_t len = strlen(real);
    return !getcwd(here, sizeof here) || (strncmp(here, real, len) == 0 && (!here[len] || here[len] == '/'));
}

/* Why an earlier measurement has to stay where it is; NULL when it can be moved. */
static const char *why_it_stays(const char *real, const struct contents *contents, bool is_written)
{
    struct stat info;
    if (is_written)
        return "is still being written";
    if (contents->is_pointed_at)
        return "still waits for some of its files";
    if (contents->has_others)
        return "also contains other files";
    if (holds_us(real))
        return "is the working directory or contains it";
    if (stat(real, &info) != 0 || info.st_uid != geteuid())
        return "belongs to another user";
    return NULL;
}

/* The numbers that directories beside it have: the next free one, malloc'ed. */
static char *next_number(const char *real)
{
    const char *base = path_last(real);
    char *parent = strndup(real, (size_t)(base - real)), *path = NULL;
    size_t len = strlen(base);
    long highest = 0;
    DIR *dir = parent ? opendir(*parent ? parent : ".") : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char *end = NULL;
        if (strncmp(entry->d_name, base, len) != 0 || entry->d_name[len] != '.')
            continue;
        long number = strtol(entry->d_name + len + 1, &end, 10);
        if (end > entry->d_name + len + 1 && !*end && number > highest && number < NUMBERS_MAX)
            highest = number;
    }
    if (dir)
        (void)closedir(dir);
    free(parent);
    return asprintf(&path, "%s.%ld", real, highest + 1) < 0 ? NULL : path;
}

/* A launch of many processes may be in a numbered directory: this checks the youngest. */
static char *find_numbered(const char *real, const struct run *run)
{
    struct buf text = {0};
    struct error ignored;
    char *next = next_number(real), *path = NULL;
    long number = next ? strtol(strrchr(next, '.') + 1, NULL, 10) - 1 : 0;
    free(next);
    if (number < 1 || run->rank < 0 || asprintf(&path, "%s.%ld", real, number) < 0)
        return NULL;
    if (runs_text(path, &text, &ignored) != 0 || !runs_belongs(text.data, run)) {
        free(path);
        path = NULL;
    }
    buf_fini(&text);
    return path;
}

/* Moves the measurement to its number. Somebody else may have done so just now, and begun a new one: that goes back. */
static int move_away(const char *real, ino_t inode, struct error *err)
{
    struct stat info;
    char *to = next_number(real);
    if (!to)
        return error_memory(err);
    int code = renameat2(AT_FDCWD, real, AT_FDCWD, to, RENAME_NOREPLACE) == 0 || errno == EEXIST || errno == ENOENT
                   ? 0
                   : error_set(err, ERR_IO,
                               "%s: holds an earlier measurement that cannot be moved (%s); choose another directory "
                               "with -o, or --append",
                               real, strerror(errno));
    if (code == 0 && stat(to, &info) == 0 && info.st_ino != inode)
        (void)renameat2(AT_FDCWD, to, AT_FDCWD, real, RENAME_NOREPLACE);
    free(to);
    return code;
}

/* The first in an empty directory is whose; ERR_NOT_FOUND: another was faster. */
static int begin_in(const char *name, bool allows_foreign, const struct run *run, char **real_path, struct error *err)
{
    int code = names_directory_make(name, allows_foreign, real_path, err);
    if (code == 0)
        code = runs_add(*real_path, run, true, err);
    if (code != 0) {
        free(*real_path);
        *real_path = NULL;
    }
    return code;
}

struct search {
    const char *name; /* as wanted, without slashes at its end */
    const struct run_directory *how;
    struct run *run;
    char *note;
    size_t n_note;
};

/* In a directory that stays where it is with what it holds, the new one takes a number. */
static int take_number(const struct search *search, const char *real, const char *why, char **real_path,
                       struct error *err)
{
    char *numbered = find_numbered(real, search->run);
    if (numbered) {
        *real_path = numbered;
        return runs_join(numbered, search->run, err);
    }
    numbered = next_number(real);
    int code =
        numbered ? begin_in(numbered, search->how->allows_foreign, search->run, real_path, err) : error_memory(err);
    if (code == 0)
        (void)snprintf(search->note, search->n_note, "%s %s: this measurement goes into %s.", real, why, numbered);
    free(numbered);
    return code;
}

/* In a directory that is there. ERR_NOT_FOUND: it has changed meanwhile, look again. */
static int use_existing(const struct search *search, const char *real, const struct buf *text, char **real_path,
                        struct error *err)
{
    struct contents contents;
    struct stat info;
    char id[RUNS_ID_MAX] = "";
    const char *outer = search->how->is_inherited ? getenv(LAUNCH_ENV) : NULL;
    bool is_inner = outer && runs_has(text->data, outer), joins = runs_belongs(text->data, search->run);
    if (search->how->adds || is_inner || joins) {
        if (is_inner)
            (void)snprintf(search->run->id, sizeof search->run->id, "%.*s", RUNS_ID_MAX - 1, outer);
        int code = is_inner ? 0 : joins ? runs_join(real, search->run, err) : runs_add(real, search->run, false, err);
        *real_path = code == 0 ? strdup(real) : NULL;
        return code == 0 && !*real_path ? error_memory(err) : code;
    }
    bool is_begun = runs_last(text->data, id);
    bool is_written = (*id && is_alive(id)) || pending_wait(real, LAST_FILES_MS) != PENDING_NONE;
    if (stat(real, &info) != 0 || look_into(real, &contents) != 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", real, strerror(errno));
    if (!is_begun && !contents.has_data)
        return begin_in(real, search->how->allows_foreign, search->run, real_path, err);
    const char *why = why_it_stays(real, &contents, is_written);
    if (why)
        return take_number(search, real, why, real_path, err);
    if (!contents.has_data) { /* nothing came of that launch */
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/" RUNS_FILE, real);
        return unlink(path) == 0 || errno == ENOENT
                   ? ERR_NOT_FOUND
                   : error_set(err, ERR_IO, "%s: cannot be removed: %s", path, strerror(errno));
    }
    int code = move_away(real, info.st_ino, err);
    return code ? code
                : error_set(err, ERR_NOT_FOUND,
                            "%s: keeps being changed by other launches; choose another directory with -o", real);
}

static int try_once(const struct search *search, char **real_path, struct error *err)
{
    struct buf text = {0};
    struct stat info;
    bool allows_foreign = search->how->allows_foreign;
    char *real = NULL;
    if (lstat(search->name, &info) != 0)
        return begin_in(search->name, allows_foreign, search->run, real_path, err);
    int code =
        names_directory_make(search->name, allows_foreign, &real, err); /* says what is wrong with what is there */
    if (code == 0)
        code = runs_text(real, &text, err);
    if (code == 0)
        code = use_existing(search, real, &text, real_path, err);
    buf_fini(&text);
    free(real);
    return code;
}

/* Launches take turns, as far as file systems have locks and nobody keeps one: everything holds without, too. */
static int lock_parent(const char *name)
{
    const char *base = path_last(name);
    char *parent = strndup(name, (size_t)(base - name));
    int fd = parent ? open(*parent ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (int i = 0; fd >= 0 && i < TRIES_MAX && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        pause_ms(STEP_MS);
    free(parent);
    return fd;
}

int run_directory_make(const char *name, const struct run_directory *how, char **real_path, struct run *run, char *note,
                       size_t n_note, struct error *err)
{
    size_t len = strlen(name);
    while (len > 1 && name[len - 1] == '/')
        len--;
    char *plain = strndup(name, len);
    const struct search search = {plain, how, run, note, n_note};
    int code = plain ? ERR_NOT_FOUND : error_memory(err);
    *real_path = NULL;
    *note = '\0';
    describe(run);
    int lock_fd = plain ? lock_parent(plain) : -1;
    for (int i = 0; code == ERR_NOT_FOUND && i < TRIES_MAX; i++) {
        if (i > 1)
            pause_ms(STEP_MS); /* whoever was faster writes its line */
        code = try_once(&search, real_path, err);
    }
    if (lock_fd >= 0)
        (void)close(lock_fd);
    free(plain);
    return code;
}
