/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of readers, and the choice among them: the content decides, never the name. */
#include "frame/readers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/bytes.h"
#include "fmt/file.h"
#include "frame/ops.h"

#define PROFILE_ENDS ".hpcrun"

extern const struct frame_reader reader_saved;
extern const struct frame_reader reader_v4;
extern const struct frame_reader reader_experiment;
extern const struct frame_reader reader_literal;
extern const struct frame_reader reader_caliper;
extern const struct frame_reader reader_hatchet;
extern const struct frame_reader reader_cali;
extern const struct frame_reader reader_callgrind;
extern const struct frame_reader reader_dot;
extern const struct frame_reader reader_speedscope;
extern const struct frame_reader reader_pprof;
extern const struct frame_reader reader_folded;

static const struct frame_reader *const readers[] = {
    &reader_saved,   &reader_v4,   &reader_experiment, &reader_speedscope, &reader_hatchet, &reader_literal,
    &reader_caliper, &reader_cali, &reader_callgrind,  &reader_dot,        &reader_pprof,   &reader_folded,
};

const struct frame_reader *readers_at(size_t i)
{
    return i < sizeof readers / sizeof *readers ? readers[i] : NULL;
}

/* Appends the first n_bytes of an open file, or all that it has. */
static bool read_head(int fd, size_t n_bytes, struct buf *head)
{
    char bytes[4096];
    while (head->len_bytes < n_bytes && !head->failed) {
        size_t rest = n_bytes - head->len_bytes;
        ssize_t n = read(fd, bytes, rest < sizeof bytes ? rest : sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        buf_append(head, bytes, (size_t)n);
    }
    return true;
}

bool readers_begins(const char *path, const char *file, const char *text)
{
    char name[PATH_MAX], head[32]; /* without malloc: no memory is not another kind of file */
    size_t n = 0, n_text = strlen(text) < sizeof head ? strlen(text) : sizeof head;
    int len = snprintf(name, sizeof name, "%s/%s", path, file);
    errno = ENAMETOOLONG;
    int fd = len > 0 && (size_t)len < sizeof name ? input_open(AT_FDCWD, name, 0, NULL) : -1;
    if (fd < 0) /* what cannot be opened is what its name says, and its reader gives the reason */
        return errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG;
    for (ssize_t step = 1; n < n_text && step > 0; n += step > 0 ? (size_t)step : 0)
        do
            step = read(fd, head + n, n_text - n);
        while (step < 0 && errno == EINTR);
    (void)close(fd);
    return n == n_text && memcmp(head, text, n) == 0;
}

char *readers_directory(const struct frame_input *input)
{
    char *directory = strdup(input->path);
    char *slash = directory && !input->is_directory ? strrchr(directory, '/') : NULL;
    if (!directory || input->is_directory)
        return directory;
    if (!slash)
        (void)snprintf(directory, 2, ".");
    else
        slash[slash == directory] = 0;
    return directory;
}

int readers_text(const struct frame_input *input, struct buf *text, struct error *err)
{
    int code = file_read(input->path, text, err);
    if (code == 0)
        buf_append(text, "", 0);
    if (code == 0 && text->failed)
        code = error_memory(err);
    return code;
}

int readers_json(const struct frame_input *input, struct buf *text, struct strtab *texts, struct json_in *in,
                 struct error *err)
{
    int code = readers_text(input, text, err);
    if (code == 0 && strtab_intern(texts, "") < 0)
        code = error_memory(err);
    if (code == 0)
        *in = (struct json_in){
            .text = text->data, .at = text->data, .end = text->data + text->len_bytes, .name = input->path, .line = 1};
    return code;
}

int readers_check_size(const char *path, uint64_t n_nodes, uint64_t n_columns, size_t len_bytes, struct error *err)
{
    enum { FACTOR = 64, LEAST_BYTES = 64 << 20 };
    uint64_t n_words = ((uint64_t)len_bytes * FACTOR + LEAST_BYTES) / sizeof(double);
    if (n_columns == 0 || n_nodes <= n_words / n_columns)
        return 0;
    return error_set(err, ERR_FORMAT, "%.600s: %ju columns and attributes of %ju nodes are too many for %zu bytes",
                     path, (uintmax_t)n_columns, (uintmax_t)n_nodes, len_bytes);
}

/* --- call paths --- */

static uint64_t hash_step(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, 2 * sizeof(uint32_t));
}

static bool is_same_step(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(uint32_t)) == 0;
}

uint32_t paths_node(struct frame_paths *paths, struct frame_maker *maker, uint32_t parent, uint32_t frame,
                    const struct made_node *like)
{
    static const struct slots_kind kind = {sizeof(struct path_step), hash_step, is_same_step};
    struct path_step step = {parent, frame, 0};
    size_t n = paths->n;
    size_t at = slots_put(&paths->slots, &kind, &paths->steps, &paths->n, &paths->capacity, &step);
    if (at == SLOTS_NONE) {
        maker->failed = true;
        return 0;
    }
    if (paths->n > n)
        paths->steps[at].node = maker_node(maker, parent, like);
    return paths->steps[at].node;
}

void paths_fini(struct frame_paths *paths)
{
    free(paths->steps);
    slots_fini(&paths->slots);
}

int paths_made(struct frame_maker *maker, struct frame **frame, struct error *err)
{
    struct frame *made = NULL;
    int code = frame_made(maker, &made, NULL, err);
    if (code != 0)
        return code;
    code = frame_sum_up(made, frame, err);
    frame_close(made);
    return code;
}

int readers_head(const char *path, struct buf *head, struct error *err)
{
    int fd = input_open(AT_FDCWD, path, 0, NULL), code = 0;
    if (fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", path, input_reason(errno));
    head->len_bytes = 0;
    if (!read_head(fd, FRAME_HEAD_BYTES, head))
        code = error_set(err, ERR_IO, "%.600s: cannot read: %s", path, strerror(errno));
    (void)close(fd);
    buf_append(head, "", 0);
    return code == 0 && head->failed ? error_memory(err) : code;
}

/* The head of the first of several files that have a part of a profile of callgrind each. That tool leaves the file
 * that it was told to write empty then, or makes none. */
static int look_at_parts(const char *path, struct frame_input *input, struct error *err)
{
    struct strtab parts = {0};
    int code = callgrind_parts(path, &parts) ? 0 : error_memory(err);
    if (code == 0 && parts.n_strings)
        code = readers_head(parts.strings[0], &input->head, err);
    strtab_fini(&parts);
    return code;
}

/* What path is: a directory, or a file with a first part. */
static int look_at(const char *path, struct frame_input *input, struct error *err)
{
    struct stat info = {0};
    int reason = stat(path, &info) == 0 ? 0 : errno, code = 0;
    input->path = path;
    buf_append(&input->head, "", 0);
    input->is_directory = !reason && S_ISDIR(info.st_mode);
    if (reason == ENOENT || (S_ISREG(info.st_mode) && info.st_size == 0))
        code = look_at_parts(path, input, err);
    if (code == 0 && input->head.len_bytes == 0 && reason)
        return error_set(err, reason == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%.600s: cannot open: %s", path,
                         strerror(reason));
    bool has_head = input->is_directory || input->head.len_bytes;
    return code == 0 && !has_head ? readers_head(path, &input->head, err) : code;
}

/* Whether a directory has profiles that hpcprof makes a database of. */
static bool is_measurement(const char *path)
{
    DIR *directory = opendir(path);
    bool found = false;
    for (const struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        size_t len = strlen(entry->d_name), n = strlen(PROFILE_ENDS);
        found = len > n && strcmp(entry->d_name + len - n, PROFILE_ENDS) == 0;
    }
    if (directory)
        (void)closedir(directory);
    return found;
}

static int not_known(const struct frame_input *input, struct error *err)
{
    struct buf known = {0};
    const char *path = input->path;
    if (input->is_directory && is_measurement(path))
        return error_set(err, ERR_UNSUPPORTED, "%.600s is a measurement; hpcprof makes a database from it", path);
    if (!input->is_directory && input->head.len_bytes == 0)
        return error_set(err, ERR_UNSUPPORTED, "%.600s: the file is empty", path);
    for (size_t i = 0; readers_at(i); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", readers_at(i)->name);
    int code = error_set(err, ERR_UNSUPPORTED, "%.300s: not a profile that can be read; these can: %s", path,
                         known.data ? known.data : "none");
    buf_fini(&known);
    return code;
}

/* Opens what the input, of which only the options are known, is at path. */
static int open_frame(const char *path, struct frame_input *input, struct frame **frame, struct error *err)
{
    int code = look_at(path, input, err);
    size_t i = 0;
    while (code == 0 && readers_at(i) && !readers_at(i)->fits(input))
        i++;
    if (code == 0)
        code = readers_at(i) ? readers_at(i)->read(input, frame, err) : not_known(input, err);
    buf_fini(&input->head);
    return code;
}

int frame_open(const char *path, struct frame **frame, struct error *err)
{
    return open_frame(path, &(struct frame_input){0}, frame, err);
}

int frame_open_parts(const char *path, struct frame **frame, struct error *err)
{
    return open_frame(path, &(struct frame_input){.with_parts = true}, frame, err);
}

int frame_open_fields(const char *path, struct frame **frame, struct error *err)
{
    int code = open_frame(path, &(struct frame_input){.with_fields = true}, frame, err);
    for (size_t i = 0; code == 0 && i < frame_n_attributes(*frame); i++)
        if (strcmp(frame_attribute_name(*frame, i), "field") == 0)
            return 0;
    if (code != 0)
        return code;
    frame_close(*frame);
    *frame = NULL;
    return error_set(err, ERR_UNSUPPORTED,
                     "%.600s: the fields that its code touches are not known; databases of Locus have them from this "
                     "version on, if samples have data addresses",
                     path);
}
