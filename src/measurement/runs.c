/* SPDX-License-Identifier: BSD-3-Clause */
/* The runs of a measurement directory, and the moving of files from one such directory into another: see runs.h. The
 * file of runs has lines "run ID" and, for ranks that are one run, "rank R PLACE", and "done R PLACE" when a report
 * waits for all of them; "is JSON" says what the run was. */
#include "measurement/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "fmt/file.h"

#define RANKS_PREFIX "ranks-"

static int path_of(const char *directory, char *path, size_t size_bytes, struct error *err)
{
    int len = snprintf(path, size_bytes, "%s/" RUNS_FILE, directory);
    return len < (int)size_bytes ? 0 : error_set(err, ERR_RANGE, "%.600s: the path is too long.", directory);
}

/* One write, so that lines of several hosts do not mix. */
static int append(const char *directory, const char *line, int flags, struct error *err)
{
    char path[4400];
    struct stat info;
    int code = path_of(directory, path, sizeof path, err);
    if (code)
        return code;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0644);
    if (fd < 0)
        return error_set(err, errno == EEXIST ? ERR_NOT_FOUND : ERR_IO, "%.600s: cannot be written: %s.", path,
                         strerror(errno));
    size_t len = strlen(line);
    bool is_own_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink <= 1;
    if (!is_own_file || write(fd, line, len) != (ssize_t)len)
        code = error_set(err, ERR_IO, "%.600s: cannot be written: %s.", path,
                         is_own_file ? strerror(errno) : "not a regular file of its own");
    (void)close(fd);
    return code;
}

static void put_rank(const struct run *run, char *line, size_t size_bytes)
{
    (void)snprintf(line, size_bytes, "rank %d %s\n", run->rank, run->place);
}

int runs_add(const char *directory, const struct run *run, bool is_first, struct error *err)
{
    char line[RUNS_ID_MAX + 160];
    int len = snprintf(line, sizeof line, "run %s\n", run->id);
    if (run->rank >= 0)
        put_rank(run, line + len, sizeof line - (size_t)len);
    return append(directory, line, is_first ? O_EXCL : 0, err);
}

int runs_join(const char *directory, const struct run *run, struct error *err)
{
    char line[160];
    if (run->rank < 0)
        return 0;
    put_rank(run, line, sizeof line);
    return append(directory, line, 0, err);
}

int runs_end(const char *directory, const struct run *run, struct error *err)
{
    char line[160];
    if (run->rank < 0)
        return 0;
    (void)snprintf(line, sizeof line, "done %d %s\n", run->rank, run->place);
    return append(directory, line, 0, err);
}

int runs_describe(const char *directory, const char *id, const char *json, struct error *err)
{
    struct buf line = {0};
    buf_printf(&line, "is %s %s\n", id, json);
    int code = line.failed ? error_memory(err) : append(directory, line.data, 0, err);
    buf_fini(&line);
    return code;
}

int runs_text(const char *directory, struct buf *text, struct error *err)
{
    char path[4400];
    int code = path_of(directory, path, sizeof path, err);
    if (code == 0 && access(path, F_OK) == 0)
        code = file_read(path, text, err);
    if (code == 0 && !text->data)
        buf_append(text, "", 0);
    return code == 0 && text->failed ? error_set(err, ERR_MEMORY, "Out of memory.") : code;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* The id of a line "run ID"; false for another. */
static bool take_id(const char *line, char id[RUNS_ID_MAX])
{
    size_t len = strcspn(line, "\n");
    if (strncmp(line, "run ", 4) != 0 || len < 5 || len - 4 >= RUNS_ID_MAX)
        return false;
    memcpy(id, line + 4, len - 4);
    id[len - 4] = '\0';
    return true;
}

/* The same of a line "is ID {...}", and where its object begins; NULL for another. */
static const char *take_description(const char *line, char id[RUNS_ID_MAX])
{
    const char *json = text_begins(line, "is ") ? strstr(line, " {") : NULL;
    size_t len = json ? (size_t)(json - line) : 0;
    if (len < 4 || len > strcspn(line, "\n") || len - 3 >= RUNS_ID_MAX)
        return NULL;
    memcpy(id, line + 3, len - 3);
    id[len - 3] = '\0';
    return json + 1;
}

/* The first description of a run whose line ends before behind; NULL: it has none. */
static const char *find_description(const char *text, const char *behind, const char *wanted)
{
    char id[RUNS_ID_MAX];
    const char *json;
    for (const char *line = text; *line; line = next_line(line))
        if ((json = take_description(line, id)) && strcmp(id, wanted) == 0)
            return json;
    for (const char *line = behind; *line && !take_id(line, id); line = next_line(line))
        if ((json = take_description(line, id)) && !runs_has(text, id))
            return json;
    return NULL;
}

void runs_put_descriptions(const char *text, struct buf *out)
{
    char id[RUNS_ID_MAX];
    size_t n = 0;
    for (const char *line = text; *line; line = next_line(line)) {
        const char *json = take_id(line, id) ? find_description(text, next_line(line), id) : NULL;
        if (!json)
            continue;
        buf_printf(out, n++ ? ",\n" : "");
        buf_append(out, json, strcspn(json, "\n"));
    }
}

/* Length of "ranks-8-" in an id: all launches of so many ranks have this in common when the launcher gave them no
 * name. */
static size_t kind_length(const char *id)
{
    const char *dash =
        strncmp(id, RANKS_PREFIX, sizeof RANKS_PREFIX - 1) == 0 ? strchr(id + sizeof RANKS_PREFIX - 1, '-') : NULL;
    return dash ? (size_t)(dash - id) + 1 : 0;
}

/* Host of a place "HOST-PARENT..." */
static bool is_same_host(const char *a, const char *b)
{
    size_t len = strcspn(a, "-");
    return strncmp(a, b, len) == 0 && b[len] == '-';
}

/* Whether the rank can be one more of those after line. */
static bool is_missing(const char *line, const struct run *run, bool is_named)
{
    for (; *line; line = next_line(line)) {
        char place[96] = "";
        int rank = -1;
        if (sscanf(line, "rank %d %95s", &rank, place) != 2)
            continue;
        if (rank == run->rank || (!is_named && is_same_host(place, run->place) && strcmp(place, run->place) != 0))
            return false;
    }
    return true;
}

bool runs_belongs(const char *text, const struct run *run)
{
    char id[RUNS_ID_MAX] = "", found[RUNS_ID_MAX];
    const char *ranks = text;
    for (const char *line = text; *line; line = next_line(line))
        if (take_id(line, found)) {
            memcpy(id, found, sizeof id);
            ranks = next_line(line);
        }
    size_t len_kind = kind_length(run->id);
    bool is_like = run->is_shared ? strcmp(id, run->id) == 0 : len_kind > 0 && strncmp(id, run->id, len_kind) == 0;
    return is_like && (run->rank < 0 || is_missing(ranks, run, run->is_shared));
}

/* The lines after the last "run ID". */
static const char *last_ranks(const char *text)
{
    char id[RUNS_ID_MAX];
    const char *ranks = text;
    for (const char *line = text; *line; line = next_line(line))
        if (take_id(line, id))
            ranks = next_line(line);
    return ranks;
}

#define BEGAN "rank "
#define ENDED "done "

/* The rank of a line "rank R PLACE" or "done R PLACE", -1 when it is another one. */
static int rank_of(const char *line, const char *what)
{
    size_t len = strlen(what);
    char *end;
    if (strncmp(line, what, len) != 0)
        return -1;
    long rank = strtol(line + len, &end, 10);
    return end > line + len && rank >= 0 && rank < INT_MAX ? (int)rank : -1;
}

static bool has_line(const char *ranks, const char *what, int rank)
{
    for (const char *line = ranks; *line; line = next_line(line))
        if (rank_of(line, what) == rank)
            return true;
    return false;
}

bool runs_is_first(const char *text, const struct run *run)
{
    const char *ranks = last_ranks(text);
    if (run->rank < 0 || !has_line(ranks, BEGAN, run->rank))
        return true;
    while (*ranks && rank_of(ranks, BEGAN) < 0)
        ranks = next_line(ranks);
    return rank_of(ranks, BEGAN) == run->rank;
}

bool runs_is_last(const char *text, const struct run *run, int *n_begun)
{
    const char *ranks = last_ranks(text);
    bool have_ended = true;
    int last = run->rank;
    *n_begun = 0;
    if (run->rank < 0 || !has_line(ranks, BEGAN, run->rank))
        return true;
    for (const char *line = ranks; *line; line = next_line(line)) {
        int ended = rank_of(line, ENDED), rank = rank_of(line, BEGAN);
        last = ended >= 0 ? ended : last;
        if (rank < 0)
            continue;
        ++*n_begun;
        have_ended = have_ended && has_line(ranks, ENDED, rank);
    }
    return have_ended && last == run->rank;
}

bool runs_has(const char *text, const char *id)
{
    char found[RUNS_ID_MAX];
    for (const char *line = text; *line; line = next_line(line))
        if (take_id(line, found) && strcmp(found, id) == 0)
            return true;
    return false;
}

bool runs_last(const char *text, char id[RUNS_ID_MAX])
{
    bool is_found = false;
    for (const char *line = text; *line; line = next_line(line))
        is_found = take_id(line, id) || is_found;
    return is_found;
}

int runs_list(const char *directory, struct strtab *ids, struct error *err)
{
    struct buf text = {0};
    struct error ignored;
    char id[RUNS_ID_MAX];
    int code = 0;
    if (runs_text(directory, &text, &ignored) == 0)
        for (const char *line = text.data; code == 0 && *line; line = next_line(line))
            if (take_id(line, id) && strtab_intern(ids, id) < 0)
                code = error_memory(err);
    buf_fini(&text);
    return code;
}

/* --- bringing files together --- */

/* Moving the files of processes; see runs.h. A note beside the files keeps the name that was claimed for them, so
 * that an interrupted move is neither lost nor doubled. */

#define NOTE_PREFIX ".claimed-"
#define PIECE_BYTES ((size_t)1 << 20)

struct moving {
    const char *from, *to;
    struct names_file *files; /* [n_files] that are in from */
    size_t n_files, cap_files;
};

static int refused_by_system(const char *path, const char *verb, struct error *err)
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
        return refused_by_system(moving->from, "read", err);
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
            code = refused_by_system(from, "read", err);
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
