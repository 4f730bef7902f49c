/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a program that must not be measured: without our library and our variables. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/wrap/wrap.h"
#include "base/sigsafe.h"

#define LIBRARY "libhpcrun.so"
#define WAIT_LIBRARY "libhpcrun-wait.so"
#define PRELOAD "LD_PRELOAD="

static bool begins_sig(const char *text, const char *start)
{
    for (; *start; text++, start++)
        if (*text != *start)
            return false;
    return true;
}

static bool is_separator_sig(char letter)
{
    return letter == ':' || letter == ' ';
}

/* Length of the first entry of a list of libraries. */
static size_t entry_len_sig(const char *list)
{
    size_t len = 0;
    while (list[len] && !is_separator_sig(list[len]))
        len++;
    return len;
}

static bool ends_with_sig(const char *path, size_t len, const char *name)
{
    const size_t own = strlen(name);
    return len >= own && (len == own || path[len - own - 1] == '/') && memcmp(path + len - own, name, own) == 0;
}

static bool is_library_sig(const char *path, size_t len)
{
    return ends_with_sig(path, len, LIBRARY) || ends_with_sig(path, len, WAIT_LIBRARY);
}

/* Whether the launcher has set the variable: see tools/hpcrun/launch.c. If the last two name another library, they
 * belong to the program. */
static bool is_ours_sig(const char *entry)
{
    const char *value = entry;
    if (begins_sig(entry, "HPCRUN_"))
        return true;
    if (!begins_sig(entry, "INTEL_LIBITTNOTIFY64=") && !begins_sig(entry, "NVTX_INJECTION64_PATH="))
        return false;
    while (*value++ != '=')
        ;
    return is_library_sig(value, strlen(value));
}

/* Copies an entry for LD_PRELOAD without our library; nothing when no other library is left. Returns the end of the
 * copy. */
static char *copy_preload_sig(char *to, const char *entry)
{
    const char *list = entry + sizeof PRELOAD - 1;
    char *start = to + sizeof PRELOAD - 1;
    memcpy(to, PRELOAD, sizeof PRELOAD - 1);
    to = start;
    while (*list) {
        size_t len = entry_len_sig(list);
        if (len && !is_library_sig(list, len)) {
            if (to != start)
                *to++ = ':';
            memcpy(to, list, len);
            to += len;
        }
        list += len + (list[len] != '\0');
    }
    *to = '\0';
    return to == start ? NULL : to + 1;
}

size_t environ_room_sig(char *const *environment)
{
    size_t n = 1, n_text_bytes = 0;
    for (; environment && *environment; environment++, n++)
        if (begins_sig(*environment, PRELOAD))
            n_text_bytes += strlen(*environment) + 1;
    return n * sizeof *environment + n_text_bytes;
}

char **environ_without_us_sig(char *const *environment, void *room)
{
    char **result = room;
    size_t n = 0, n_words = 1;
    for (char *const *entry = environment; entry && *entry; entry++)
        n_words++;
    char *text = (char *)(result + n_words);
    for (; environment && *environment; environment++) {
        char *word = *environment;
        if (begins_sig(word, PRELOAD)) {
            char *end = copy_preload_sig(text, word);
            if (end)
                result[n++] = text;
            text = end ? end : text;
        } else if (!is_ours_sig(word)) {
            result[n++] = word;
        }
    }
    result[n] = NULL;
    return result;
}
