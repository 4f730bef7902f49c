/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling where measurements were left; see left-over.h. */
#include "analysis/left-over.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "measurement/pending.h"

struct listing {
    const char *directory;
    struct strtab *phrases;
};

static void add_phrase(void *ctx, const char *place)
{
    const struct listing *listing = ctx;
    char text[2 * DETOUR_PATH_MAX + 128];
    int len_host = (int)strcspn(place, ":");
    (void)snprintf(text, sizeof text, "what is still in %s on %.*s ('hpcrun --collect %s' there brings it)",
                   place[len_host] ? place + len_host + 1 : place, len_host, place, listing->directory);
    (void)strtab_intern(listing->phrases, text);
}

void left_over_list(const char *directory, struct strtab *phrases)
{
    struct listing listing = {directory, phrases};
    char text[DETOUR_PATH_MAX];
    unsigned n_left = detour_count_left(directory);
    detour_each_pointer(directory, add_phrase, &listing);
    (void)snprintf(text, sizeof text,
                   "the records of %u process%s whose companion had died ('hpcrun --collect "
                   "%.4000s' recovers them)",
                   n_left, n_left == 1 ? "" : "es", directory);
    if (n_left)
        (void)strtab_intern(phrases, text);
}

struct unmeasured {
    unsigned n, n_idle; /* n_idle: measured, but no sample fell on them */
    char first[256];
};

static void take_line(struct unmeasured *unmeasured, const char *line)
{
    const char *idle = strstr(line, ": no samples");
    unmeasured->n_idle += idle && idle[sizeof ": no samples" - 1] == '\n';
    bool is_unmeasured = strstr(line, " not measured: ") || strstr(line, ", which was not measured");
    if (!is_unmeasured || strstr(line, "outside of the fraction"))
        return;
    if (!unmeasured->n++)
        (void)snprintf(unmeasured->first, sizeof unmeasured->first, "%.*s", (int)strcspn(line, "\n"), line);
}

static void read_index(int dir_fd, const char *name, struct unmeasured *unmeasured)
{
    char *line = NULL;
    size_t n_line = 0;
    int fd = input_open(dir_fd, name, O_NOFOLLOW, NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (file && getline(&line, &n_line, file) > 0)
        take_line(unmeasured, line);
    free(line);
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
}

static unsigned unmeasured_read(const char *directory, struct unmeasured *unmeasured)
{
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, "index-", 6))
            read_index(dirfd(dir), entry->d_name, unmeasured);
    if (dir)
        (void)closedir(dir);
    for (char *c = unmeasured->first; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    return unmeasured->n;
}

void left_over_note_unmeasured(const char *directory, struct model *model)
{
    struct unmeasured unmeasured = {0};
    (void)unmeasured_read(directory, &unmeasured);
    if (unmeasured.n == 1)
        model_note(model, "A process was not measured: %s", unmeasured.first);
    else if (unmeasured.n)
        model_note(model, "%u processes were not measured, see index-* in %s; the first: %s", unmeasured.n, directory,
                   unmeasured.first);
}

struct found {
    char path[DETOUR_PATH_MAX];
};

static int take_first(void *ctx, const char *path)
{
    struct found *found = ctx;
    (void)snprintf(found->path, sizeof found->path, "%s", path);
    return 1;
}

/* Where the directory is, or was: its parent may still be there. */
static bool absolute(const char *directory, char path[DETOUR_PATH_MAX])
{
    char real[PATH_MAX];
    if (realpath(directory, real))
        return snprintf(path, DETOUR_PATH_MAX, "%s", real) > 0;
    if (directory[0] == '/')
        return snprintf(path, DETOUR_PATH_MAX, "%s", directory) > 0;
    return getcwd(real, sizeof real) && snprintf(path, DETOUR_PATH_MAX, "%s/%s", real, directory) > 0;
}

void left_over_hint(const char *directory, char *text, size_t n_text)
{
    char path[DETOUR_PATH_MAX];
    struct found found = {""};
    struct unmeasured unmeasured = {0};
    const char *local = getenv("HPCRUN_LOCAL");
    text[0] = '\0';
    if (detour_count_left(directory)) {
        (void)snprintf(text, n_text,
                       "; the companion process had died, but 'hpcrun --collect %s' recovers what its "
                       "processes left",
                       directory);
        return;
    }
    if (!absolute(directory, path))
        return;
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    if (!(local && local[0] && detour_each(local, path, take_first, &found)))
        (void)detour_each(detour_default_place(), path, take_first, &found);
    unsigned n_unmeasured = found.path[0] ? 0 : unmeasured_read(directory, &unmeasured);
    if (n_unmeasured) {
        (void)snprintf(text, n_text, "; %s", unmeasured.first);
        return;
    }
    if (unmeasured.n_idle) {
        (void)snprintf(text, n_text, "; %s of the program ran too short for a sample",
                       unmeasured.n_idle == 1 ? "the process" : "all processes");
        return;
    }
    if (!found.path[0] && pending_has_stale(directory))
        (void)snprintf(text, n_text, "; the companion process died before anything was written");
    if (found.path[0])
        (void)snprintf(text, n_text, "; what was measured for it is in %s: 'hpcrun --collect %s' brings it there",
                       found.path, directory);
}
