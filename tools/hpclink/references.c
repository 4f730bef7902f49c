/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the lines of --trace-symbol: "ld: FILE: reference to NAME", "FILE: definition of NAME"; see references.h. */
#include "references.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"malloc",         "calloc",        "realloc", "reallocarray", "memalign",
                                    "posix_memalign", "aligned_alloc", "valloc",  "mmap",         "mmap64",
                                    "_Znwm",          "_Znam",         "_ZnwmSt11align_val_t",
                                    "_ZnwmRKSt9nothrow_t", NULL};

bool references_counts(const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* What every program has: the C library's own calls, and those for exceptions. */
static bool is_of_library(const char *line)
{
    return strstr(line, "libc.a(") || strstr(line, "libgcc_eh.a(") || strstr(line, "(eh_alloc.o)");
}

/* The name behind marker in line, NULL when it is not such a line. */
static const char *name_behind(const char *line, const char *marker)
{
    const char *at = strstr(line, marker);
    return at && references_counts(at + strlen(marker)) ? at + strlen(marker) : NULL;
}

static void note_definer(const char *line, struct references *references)
{
    const char *end = strstr(line, ": definition of ");
    const char *start = line;
    for (const char *colon = line; (colon = strstr(colon, ": ")) && colon < end; colon += 2)
        start = colon + 2;
    (void)snprintf(references->definer, sizeof references->definer, "%.*s", (int)(end - start), start);
}

/* False when the line is none of the linker's traces. */
static bool take_line(const char *line, struct references *references)
{
    const char *defined = name_behind(line, ": definition of ");
    if (defined && !strcmp(defined, "malloc"))
        note_definer(line, references);
    if (defined)
        return true;
    if (!name_behind(line, ": reference to "))
        return false;
    references->n_callers += !is_of_library(line);
    return true;
}

void references_read(const char *output, struct references *references, struct buf *rest)
{
    char line[4096];
    *references = (struct references){0};
    while (output && *output) {
        size_t len = strcspn(output, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)len, output);
        if (!take_line(line, references))
            buf_append(rest, output, len + (output[len] == '\n'));
        output += len + (output[len] == '\n');
    }
}
