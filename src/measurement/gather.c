/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving the files of processes; see gather.h. A note beside the files keeps the name that was claimed for them, so
 * that an interrupted move is neither lost nor doubled. Ordinary code. */
#include "measurement/gather.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "fmt/file.h"

#define NOTE_PREFIX ".claimed-"
#define PIECE_BYTES ((size_t)1 << 20)

struct moving {
    const char *from, *to;
    struct names_file *files; /* [n_files] that are in from */
    size_t n_files, cap_files;
};

static int fail(const char *path, const char *verb, struct error *err)
{
    return error_set(err, ERR_IO, "%.600s: cannot %s: %s", path, verb, strerror(errno));
}

static int out_of_memory(struct error *err)
{
    return error_set(err, ERR_MEMORY, "Out of memory while files were moved.");
}

/* The files of a process follow each other, those by which readers find the others last. */
static int rank_of_suffix(const char *suffix)
{
    return !strcmp(suffix, "hpcrun") ? 2 : !strcmp(suffix, "log") ? 1 : 0;
}

static int compare_processes(const struct names_file *x, const struct names_file *y)
{
    int order = strcmp(x->exe, y->exe);
    if (order == 0)
        order = x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : 0;
    if (order == 0)
        order = x->host_id != y->host_id ? (x->host_id < y->host_id ? -1 : 1) : 0;
    if (order == 0)
        order = x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : 0;
    return order ? order : x->generation - y->generation;
}

static int compare_files(const void *a, const void *b)
{
    const struct names_file *x = a, *y = b;
    int order = compare_processes(x, y);
    if (order == 0)
        order = rank_of_suffix(x->suffix) - rank_of_suffix(y->suffix);
    if (order == 0)
        order = x->thread != y->thread ? (x->thread < y->thread ? -1 : 1) : 0;
    return order ? order : strcmp(x->suffix, y->suffix);
}

static int list_files(struct moving *moving, struct error *err)
{
    struct error ignored;
    DIR *dir = opendir(moving->from);
    if (!dir)
        return fail(moving->from, "read", err);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        if (!vec_reserve(&moving->files, &moving->cap_files, moving->n_files + 1, sizeof *moving->files)) {
            (void)closedir(dir);
            return out_of_memory(err);
        }
        if (names_parse(entry->d_name, &moving->files[moving->n_files], &ignored) == 0)
            moving->n_files++;
    }
    (void)closedir(dir);
    if (moving->n_files)
        qsort(moving->files, moving->n_files, sizeof *moving->files, compare_files);
    return 0;
}

/* Path of the note about the process of file, malloc'ed. */
static char *note_path(const char *from, const struct names_file *file)
{
    struct names_file log = *file;
    char *path = NULL;
    log.thread = 0;
    (void)snprintf(log.suffix, sizeof log.suffix, "log");
    char *name = names_path(NULL, &log);
    if (name && asprintf(&path, "%s/" NOTE_PREFIX "%s", from, name) < 0)
        path = NULL;
    free(name);
    return path;
}

static bool read_note(const char *path, struct names_file *name)
{
    char text[64] = "";
    unsigned host_id = 0;
    int generation = 0, fd = input_open(AT_FDCWD, path, O_NOFOLLOW, NULL);
    if (fd < 0)
        return false;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (sscanf(text, "%x %d", &host_id, &generation) != 2)
        return false;
    name->host_id = host_id;
    name->generation = generation;
    return true;
}

int gather_note(const char *from, const struct names_file *name, const struct names_file *claimed, struct error *err)
{
    char text[64], *path = note_path(from, name);
    int len = snprintf(text, sizeof text, "%x %d\n", claimed->host_id, claimed->generation);
    int code = path ? file_replace(path, text, (size_t)len, err) : out_of_memory(err);
    free(path);
    return code;
}

/* The name that the process of file has in the other directory. */
static int claim(const struct moving *moving, const struct names_file *file, struct names_file *name, struct error *err)
{
    char *path = note_path(moving->from, file);
    *name = *file;
    bool is_noted = path && read_note(path, name);
    free(path);
    if (is_noted || !path)
        return path ? 0 : out_of_memory(err);
    int fd = names_claim(moving->to, name, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    return gather_note(moving->from, file, name, err);
}

static int copy_bytes(int from_fd, int to_fd, const char *from, const char *to, uint64_t *n_bytes, struct error *err)
{
    char *piece = malloc(PIECE_BYTES);
    int code = piece ? 0 : out_of_memory(err);
    while (!code) {
        ssize_t n = read(from_fd, piece, PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = fail(from, "read", err);
        if (n <= 0)
            break;
        *n_bytes += (uint64_t)n;
        code = file_append(to_fd, to, piece, (size_t)n, err);
    }
    free(piece);
    return code;
}

static int copy_file(const char *from, const char *to, uint64_t *n_bytes, struct error *err)
{
    char *temporary = NULL;
    int to_fd = -1, from_fd = input_open(AT_FDCWD, from, O_NOFOLLOW, NULL);
    if (from_fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot read: %s", from, input_reason(errno));
    int code = file_begin(to, &temporary, &to_fd, err);
    if (!code)
        code = copy_bytes(from_fd, to_fd, from, to, n_bytes, err);
    if (!code)
        code = file_end_replacing(&to_fd, &temporary, to, err);
    file_abandon(&to_fd, &temporary);
    (void)close(from_fd);
    return code;
}

static int copy_one(const struct moving *moving, const struct names_file *file, const struct names_file *name,
                    uint64_t *n_bytes, struct error *err)
{
    struct names_file target = *file;
    target.host_id = name->host_id;
    target.generation = name->generation;
    char *from = names_path(moving->from, file), *to = names_path(moving->to, &target);
    int code = from && to ? copy_file(from, to, n_bytes, err) : out_of_memory(err);
    free(from);
    free(to);
    return code;
}

static void remove_moved(const struct moving *moving, const struct names_file *files, size_t n_files)
{
    for (size_t i = 0; i < n_files; i++) {
        char *path = names_path(moving->from, &files[i]);
        if (path)
            (void)unlink(path);
        free(path);
    }
    char *note = note_path(moving->from, files);
    if (note)
        (void)unlink(note);
    free(note);
}

static int move_process(const struct moving *moving, const struct names_file *files, size_t n_files,
                        struct gather_result *result, struct error *err)
{
    struct names_file name;
    uint64_t n_bytes = 0;
    int code = claim(moving, files, &name, err);
    for (size_t i = 0; i < n_files && !code; i++)
        code = copy_one(moving, &files[i], &name, &n_bytes, err);
    if (code)
        return code;
    remove_moved(moving, files, n_files);
    result->n_processes++;
    result->n_files += n_files;
    result->n_bytes += n_bytes;
    return 0;
}

int gather_files(const char *from, const char *to, struct gather_result *result, struct error *err)
{
    struct moving moving = {.from = from, .to = to};
    int code = list_files(&moving, err);
    for (size_t i = 0, n; i < moving.n_files && !code; i += n) {
        for (n = 1; i + n < moving.n_files && compare_processes(&moving.files[i], &moving.files[i + n]) == 0; n++)
            ;
        code = move_process(&moving, &moving.files[i], n, result, err);
    }
    free(moving.files);
    return code;
}
