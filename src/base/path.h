/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of paths. Inline, no state: usable in any context. */
#ifndef LOCUS_BASE_PATH_H
#define LOCUS_BASE_PATH_H

#include <string.h>

/* The last component of a path: what follows its last slash, all of it when there is none. Points into path. */
static inline const char *path_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
