/* SPDX-License-Identifier: BSD-3-Clause */
/* The runs of a measurement directory: see runs.h. Lines "run ID" and, for ranks that are one run, "rank R PLACE",
 * and "done R PLACE" when a report waits for all of them. */
#include "measurement/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
        return error_set(err, errno == EEXIST ? ERR_NOT_FOUND : ERR_IO, "%.600s cannot be written: %s.", path,
                         strerror(errno));
    size_t len = strlen(line);
    bool is_fit = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink <= 1;
    if (!is_fit || write(fd, line, len) != (ssize_t)len)
        code = error_set(err, ERR_IO, "%.600s cannot be written: %s.", path,
                         is_fit ? strerror(errno) : "not a regular file of its own");
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

/* "ranks-8-": launches of as many ranks that nobody has named have this in common. */
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

/* Whether the rank can be one more of those behind line. */
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

/* The lines behind the last "run ID". */
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
                code = error_set(err, ERR_MEMORY, "out of memory");
    buf_fini(&text);
    return code;
}
