/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of measurement directories and files: see names.h. */
#include "measurement/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/path.h"

#define NOBODY 65534 /* as kernels and servers call a user whom they do not know */

const char *names_job_id(void)
{
    static const char *const names[] = {"LSB_JOBID", "COBALT_JOBID", "PBS_JOBID", "SLURM_JOB_ID", "JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

/* Up to size bytes of a small file; their number, 0 when it cannot be read. */
static size_t read_start(const char *path, char *bytes, size_t size)
{
    struct stat info;
    int fd = input_open(AT_FDCWD, path, 0, &info);
    ssize_t n = fd >= 0 ? read(fd, bytes, size) : 0;
    if (fd >= 0)
        (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

static uint32_t make_host_id(void)
{
    char text[65 + 64] = "";
    uint32_t id = 0;
    if (read_start("/etc/hostid", (char *)&id, sizeof id) == sizeof id && id)
        return id;
    (void)gethostname(text, 64);
    size_t len = strlen(text) + 1;
    len += read_start("/etc/machine-id", text + len, sizeof text - len);
    id = bytes_hash_32(text, len);
    return id ? id : 1;
}

uint32_t names_host_id(void)
{
    static struct {
        uint32_t id; /* 0: not made yet */
    } host;
    if (!host.id)
        host.id = make_host_id();
    return host.id;
}

char *names_directory(const char *out_path, const char *program, const char *job_id)
{
    if (out_path && *out_path)
        return strdup(out_path);
    const char *exe = path_last(program);
    char *directory = NULL;
    bool has_job = job_id && *job_id;
    int len = asprintf(&directory, "./hpctoolkit-%s-measurements%s%s", exe, has_job ? "-" : "", has_job ? job_id : "");
    if (len < 0)
        return NULL;
    for (char *c = directory + 2; *c; c++)
        if (*c == '/')
            *c = '_';
    return directory;
}

static int refuse(const char *directory, const char *reason, struct error *err)
{
    return error_set(err, ERR_IO, "%.600s: cannot be used as measurement directory: %s", directory, reason);
}

/* Root may do anything anyway. On a file server that does not trust its clients' root, new files of root belong to
 * nobody. */
static bool is_trusted(uid_t owner, bool is_new)
{
    return owner == geteuid() || owner == 0 || (is_new && owner == NOBODY);
}

static int refuse_foreign(const char *directory, const struct stat *st, struct error *err)
{
    return error_set(err, ERR_IO,
                     "%.600s: %s user %lu, who decides what becomes of files there: name another directory (-o), or "
                     "allow it (--foreign-directory)",
                     directory, S_ISLNK(st->st_mode) ? "is a link of" : "belongs to", (unsigned long)st->st_uid);
}

bool names_directory_is_safe(const char *path)
{
    struct stat st;
    char parent[PATH_MAX];
    if (snprintf(parent, sizeof parent, "%s", path) >= (int)sizeof parent)
        return false;
    for (char *slash; (slash = strrchr(parent, '/'));) {
        slash[slash == parent] = '\0';
        bool is_shared = stat(parent, &st) != 0 || (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX));
        if (is_shared || !is_trusted(st.st_uid, false))
            return false;
        if (slash == parent)
            return true;
    }
    return false;
}

int names_directory_make(const char *directory, bool allows_foreign, char **real_path, struct error *err)
{
    struct stat st;
    bool is_new = mkdir(directory, 0755) == 0;
    if (!is_new && errno != EEXIST)
        return refuse(directory, strerror(errno), err);
    if (lstat(directory, &st) == 0 && S_ISLNK(st.st_mode) && !allows_foreign && !is_trusted(st.st_uid, false))
        return refuse_foreign(directory, &st, err);
    if (stat(directory, &st) != 0)
        return refuse(directory, strerror(errno), err);
    if (!S_ISDIR(st.st_mode))
        return refuse(directory, "it is not a directory", err);
    if (!allows_foreign && !is_trusted(st.st_uid, is_new))
        return refuse_foreign(directory, &st, err);
    if (access(directory, W_OK | X_OK) != 0)
        return refuse(directory, strerror(errno), err);
    *real_path = realpath(directory, NULL);
    return *real_path ? 0 : refuse(directory, strerror(errno), err);
}

char *names_path(const char *directory, const struct names_file *file)
{
    char ending[96], *path = NULL;
    int ending_len = snprintf(ending, sizeof ending, "-%06" PRIu32 "-%03" PRIu32 "-%08" PRIx32 "-%" PRIu32 "-%d.%.15s",
                              file->rank, file->thread, file->host_id, file->pid, file->generation, file->suffix);
    int len = asprintf(&path, "%s%s%.*s%s", directory ? directory : "", directory ? "/" : "", 255 - ending_len,
                       file->exe, ending);
    return len < 0 ? NULL : path;
}

/* Cuts the field after the last '-' off text and reads it as a number of the base. */
static bool take_field(char *text, int base, uint64_t max, uint64_t *value)
{
    const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
    char *dash = strrchr(text, '-');
    if (!dash || !dash[1] || dash[1 + strspn(dash + 1, digits)] != '\0')
        return false;
    errno = 0;
    *value = strtoull(dash + 1, NULL, base);
    *dash = '\0';
    return errno == 0 && *value <= max;
}

static bool take_fields(char *text, struct names_file *file)
{
    uint64_t generation, pid, host_id, thread, rank;
    if (!take_field(text, 10, INT32_MAX, &generation) || !take_field(text, 10, UINT32_MAX, &pid) ||
        !take_field(text, 16, UINT32_MAX, &host_id) || !take_field(text, 10, UINT32_MAX, &thread) ||
        !take_field(text, 10, UINT32_MAX, &rank) || !*text)
        return false;
    file->generation = (int)generation;
    file->pid = (uint32_t)pid;
    file->host_id = (uint32_t)host_id;
    file->thread = (uint32_t)thread;
    file->rank = (uint32_t)rank;
    return true;
}

int names_parse(const char *path, struct names_file *file, struct error *err)
{
    *file = (struct names_file){0};
    char *text = file->exe;
    int len = snprintf(text, sizeof file->exe, "%s", path_last(path));
    char *dot = strrchr(text, '.');
    if (len < (int)sizeof file->exe && dot && dot[1] && strlen(dot + 1) < sizeof file->suffix) {
        memcpy(file->suffix, dot + 1, strlen(dot + 1) + 1);
        *dot = '\0';
        if (take_fields(text, file))
            return 0;
    }
    *file = (struct names_file){0};
    return error_set(err, ERR_FORMAT, "%.600s: the name is not of the form PROGRAM-RANK-THREAD-HOST-PID-GEN.SUFFIX",
                     path);
}

int names_list(const char *directory, const char *suffix, struct names_file **files, size_t *n, struct error *err)
{
    struct dirent **entries = NULL;
    int n_entries = scandir(directory, &entries, NULL, alphasort), code = 0;
    *files = NULL;
    *n = 0;
    if (n_entries < 0)
        return error_set(err, ERR_IO, "%.600s: cannot be read: %s", directory, strerror(errno));
    *files = calloc((size_t)n_entries + 1, sizeof **files);
    if (!*files)
        code = error_set(err, ERR_MEMORY, "%.600s: out of memory", directory);
    for (int i = 0; i < n_entries; i++) {
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        if (!code && *name != '.' && dot && strcmp(dot + 1, suffix) == 0)
            code = names_parse(name, &(*files)[(*n)++], err);
        free(entries[i]);
    }
    free(entries);
    if (code) {
        free(*files);
        *files = NULL;
        *n = 0;
    }
    return code;
}

static uint32_t random_host_id(void)
{
    uint32_t id;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) == (ssize_t)sizeof id)
        return id;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 20 ^ (uint32_t)getpid() << 10;
}

/* True when a profile has this name although its log is gone: somebody has removed part of the files. */
static bool has_profile(const char *directory, const struct names_file *file)
{
    struct names_file profile = *file;
    memcpy(profile.suffix, "hpcrun", sizeof "hpcrun");
    char *path = names_path(directory, &profile);
    bool exists = path && access(path, F_OK) == 0;
    free(path);
    return exists;
}

/* Descriptor of the new log, or a code; ERR_NOT_FOUND: this name is taken. */
static int claim_one(const char *directory, const struct names_file *file, struct error *err)
{
    if (has_profile(directory, file))
        return ERR_NOT_FOUND;
    char *path = names_path(directory, file);
    if (!path)
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        fd = errno == EEXIST ? ERR_NOT_FOUND
                             : error_set(err, ERR_IO, "%.600s: cannot create: %s", path, strerror(errno));
    free(path);
    return fd;
}

int names_claim(const char *directory, struct names_file *file, struct error *err)
{
    file->thread = 0;
    memcpy(file->suffix, "log", sizeof "log");
    for (file->generation = 0; file->generation <= NAMES_MAX_GENERATION; file->generation++) {
        if (file->generation >= NAMES_RANDOM_FROM)
            file->host_id = random_host_id();
        int fd = claim_one(directory, file, err);
        if (fd != ERR_NOT_FOUND)
            return fd;
    }
    return error_set(err, ERR_IO, "%.600s: no free file name for process %" PRIu32 " of '%.200s' in %d tries",
                     directory, file->pid, file->exe, NAMES_MAX_GENERATION + 1);
}
