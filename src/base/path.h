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

/* Path of the pseudo module of Python frames (runtime/record/python.h); their ip is the reference of a string
 * "FUNCTION\nFILE\nLINE\nFIRST". */
#define PYTHON_MODULE "[python]"

/* The variable that arenas of Python's allocator are, from which its small objects get their memory. */
#define PYTHON_OBJECTS "Python's small objects"

/* Whether a module is an interpreter of Python by the name of its file: python3.11, libpython3.11.so.1.0. */
static inline bool path_is_python(const char *module)
{
    const char *name = path_last(module);
    name += text_begins(name, "lib") ? strlen("lib") : 0;
    return text_begins(name, "python") && strchr("0123456789.", name[strlen("python")]);
}

/* Whether the author of a Python program did not write what is in a file: it is installed, or by its name in <>
 * compiled into the interpreter or generated. */
static inline bool path_is_python_library(const char *file)
{
    static const char *const parts[] = {"/dist-packages/", "/site-packages/", "/lib/python3", "/lib64/python3"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(file, parts[i]))
            return true;
    return file[0] == '<' && strcmp(file, "<string>") != 0 && strcmp(file, "<stdin>") != 0;
}

#endif
