/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of blocks that Python code asked for: the target of the assignment at the line, else the function with file and
 * line. Frames of installed packages and of the standard library are wrappers, as long as there are others. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/heap-name-internal.h"

static bool is_python(const struct search *search, size_t i)
{
    return i < search->n && symbolizer_is_python(search->symbolizer, search->path[i].module);
}

static const char *text_of(const struct search *search, uint32_t id)
{
    return symbolizer_text(search->symbolizer, id);
}

/* Code that the author of the program did not write; names in <> are compiled into the interpreter, or generated. */
static bool is_library(const char *file)
{
    static const char *const parts[] = {"/dist-packages/", "/site-packages/", "/lib/python3", "/lib64/python3"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(file, parts[i]))
            return true;
    return file[0] == '<' && strcmp(file, "<string>") != 0 && strcmp(file, "<stdin>") != 0;
}

/* The target of "target = ..." in a line: a name, perhaps with attributes; false for others. */
static bool read_target(const char *line, char *name, size_t size)
{
    size_t len = 0;
    while (isspace((unsigned char)*line))
        line++;
    if (!isalpha((unsigned char)*line) && *line != '_')
        return false;
    while (isalnum((unsigned char)line[len]) || line[len] == '_' || line[len] == '.' ||
           (unsigned char)line[len] >= 0x80)
        len++;
    const char *p = line + len + strspn(line + len, " \t");
    if (*p == ':' && p[1] != '=') /* an annotation, up to the sign */
        p += strcspn(p, "=#");
    if (*p != '=' || p[1] == '=' || len >= size)
        return false;
    memcpy(name, line, len);
    name[len] = 0;
    return true;
}

/* Native code that the program's author wrote tells more than the Python code that called it. */
static bool is_own_native(const struct search *search, const struct heap_name *out)
{
    const char *path = symbolizer_path(search->symbolizer, search->path[out->site].module);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return out->is_variable && !is_python(search, out->site) && strncmp(base, "python3", 7) != 0 &&
           strncmp(base, "libpython3", 10) != 0 && strncmp(path, "/usr/lib/", 9) != 0 && !is_library(path);
}

void heap_python_name(const struct search *search, struct heap_name *out)
{
    size_t site = 0;
    if (!is_python(search, 0) || is_own_native(search, out))
        return;
    while (is_python(search, site) && is_library(text_of(search, search->path[site].code.file)))
        site++;
    if (!is_python(search, site))
        site = 0;
    const struct code_frame *code = &search->path[site].code;
    const char *file = text_of(search, code->file), *slash = strrchr(file, '/');
    const char *line = source_text_line(search->source, file, code->line);
    *out = (struct heap_name){.site = site};
    out->is_variable = line && read_target(line, out->name, sizeof out->name);
    if (!out->is_variable)
        (void)snprintf(out->name, sizeof out->name, "%.80s (%.60s:%u)", text_of(search, code->function),
                       slash ? slash + 1 : file, code->line);
}
