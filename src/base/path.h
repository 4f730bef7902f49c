/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of paths and of other names. Inline, no state: usable in any context. */
#ifndef LOCUS_BASE_PATH_H
#define LOCUS_BASE_PATH_H

#include <stdbool.h>
#include <string.h>

/* The last component of a path: what follows its last slash, all of it when there is none. Points into path. */
static inline const char *path_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a text begins with prefix; every text begins with "". The first byte decides most questions without a call.
 */
static inline bool text_begins(const char *text, const char *prefix)
{
    return !*prefix || (*text == *prefix && strncmp(text, prefix, strlen(prefix)) == 0);
}

#endif
