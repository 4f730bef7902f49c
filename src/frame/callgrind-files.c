/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files are of callgrind, and which of them are parts of one profile: all whose names go on with "-2", ".3" or
 * ".3-2", of the same process and command, as KCachegrind loads them. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "frame/callgrind.h"

bool callgrind_is(const char *head)
{
    static const char *const begins[] = {"# callgrind format", "events:", "creator: callgrind"};
    for (const char *line = head; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            if (strncmp(line, begins[i], strlen(begins[i])) == 0)
                return true;
    return false;
}

void callgrind_put_run(const char *head, struct buf *run)
{
    for (const char *line = head; line && strncmp(line, "events:", 7) != 0 && strncmp(line, "fn=", 3) != 0;) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, "pid:", 4) == 0 || strncmp(line, "cmd:", 4) == 0)
            buf_printf(run, "%.*s\n", (int)(end ? end - line : (ptrdiff_t)strlen(line)), line);
        line = end ? end + 1 : NULL;
    }
}

/* Whether a name goes on with the numbers of a part: "-2", ".3", ".3-2". */
static bool is_part_suffix(const char *text)
{
    unsigned n = 0;
    for (; n < 2 && (*text == '.' || *text == '-') && isdigit((unsigned char)text[1]); n++)
        text += 1 + strspn(text + 1, "0123456789");
    return n > 0 && !*text;
}

/* Whether it is a file of callgrind; true, too, for one that cannot be read, of which its reader says why. */
static bool is_file(const char *path)
{
    struct stat info;
    struct buf head = {0};
    struct error ignored;
    bool is_it = stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
                 (readers_head(path, &head, &ignored) != 0 || callgrind_is(head.data));
    buf_fini(&head);
    return is_it;
}

static int compare_parts(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

bool callgrind_parts(const char *path, struct strtab *parts)
{
    const char *name = path_last(path);
    size_t len = strlen(name), n_names = 0, capacity = 0;
    struct buf directory = {0}, found = {0};
    char **names = NULL;
    buf_printf(&directory, "%.*s", (int)(name - path), path);
    DIR *listing = directory.failed || !len ? NULL : opendir(directory.len_bytes ? directory.data : ".");
    bool ok = !directory.failed;
    for (const struct dirent *entry; ok && listing && (entry = readdir(listing));) {
        if (strncmp(entry->d_name, name, len) != 0 || !is_part_suffix(entry->d_name + len))
            continue;
        ok = vec_reserve(&names, &capacity, n_names + 1, sizeof *names) && (names[n_names] = strdup(entry->d_name));
        n_names += ok;
    }
    if (n_names)
        qsort(names, n_names, sizeof *names, compare_parts);
    for (size_t i = 0; i < n_names; i++) {
        found.len_bytes = 0;
        buf_printf(&found, "%s%s", directory.len_bytes ? directory.data : "", names[i]);
        ok = ok && !found.failed && (!is_file(found.data) || strtab_intern(parts, found.data) >= 0);
        free(names[i]);
    }
    free(names);
    if (listing)
        (void)closedir(listing);
    buf_fini(&directory);
    buf_fini(&found);
    return ok;
}
