/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of blocks that Python code asked for: the target of the assignment at the line, else the function with file and
 * line. Frames of installed packages and of the standard library count as wrappers if there are others. What the
 * interpreter maps for itself is called by what it is for. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/build/heap-name.h"
#include "base/path.h"

static bool is_python(const struct heap_search *search, size_t i)
{
    return i < search->n && symbolizer_is_python(search->symbolizer, search->path[i].module);
}

static const char *text_of(const struct heap_search *search, uint32_t id)
{
    return symbolizer_text(search->symbolizer, id);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_one_of(const char *const *words, size_t n_words, const char *text, size_t len)
{
    for (size_t i = 0; i < n_words; i++)
        if (strlen(words[i]) == len && strncmp(words[i], text, len) == 0)
            return true;
    return false;
}

/* The end of the string that begins at p; p itself when none does. */
static const char *skip_string(const char *p)
{
    if (*p != '"' && *p != '\'')
        return p;
    const char *end = p + 1;
    while (*end && *end != *p)
        end += *end == '\\' && end[1] ? 2 : 1;
    return end + (*end != 0);
}

/* The first of these characters outside brackets and strings; the end of the code when there is none. *n_open: number
 * of brackets open there, negative if brackets close that were opened on an earlier line. */
static const char *find_outside(const char *p, const char *wanted, int *n_open)
{
    for (*n_open = 0; *p && *p != '#';) {
        const char *behind = skip_string(p);
        if (behind == p && *n_open == 0 && strchr(wanted, *p))
            return p;
        *n_open += behind == p ? (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL) : 0;
        p = behind > p ? behind : p + 1;
    }
    return p;
}

/* Whether the "=" is that of an argument "name=value" on a line of its own: written without blanks, and followed by a
 * comma or the end of the call. */
static bool is_argument(const char *sign)
{
    int n_open;
    const char *end = find_outside(sign + 1, ",", &n_open);
    return !isspace((unsigned char)sign[-1]) && (n_open < 0 || (*end == ',' && !end[1 + strspn(end + 1, " \t\r")]));
}

/* The statement on a line, after the colon of "else:", "with x as y:" and the like. NULL when there is none. */
static const char *statement_of(const char *line)
{
    static const char *const heads[] = {"if",  "elif", "else",   "for",     "while", "with",
                                        "try", "def",  "except", "finally", "class", "async"};
    line += strspn(line, " \t");
    size_t len = 0;
    while (is_word(line[len]))
        len++;
    if (!is_one_of(heads, sizeof heads / sizeof *heads, line, len))
        return line;
    int n_open;
    const char *colon = find_outside(line + len, ":", &n_open);
    return *colon == ':' ? statement_of(colon + 1) : NULL;
}

/* The target of "target = ..." in a line: a name, perhaps with attributes; false for others. */
static bool read_target(const char *line, char *name, size_t size)
{
    static const char *const words[] = {"return", "yield", "lambda", "assert", "raise", "del",  "import",
                                        "from",   "pass",  "global", "await",  "not",   "None", "True",
                                        "False",  "case",  "in",     "is",     "and",   "or",   "nonlocal"};
    size_t len = 0;
    line = statement_of(line);
    if (!line || !is_word(*line) || isdigit((unsigned char)*line))
        return false;
    while (is_word(line[len]) || line[len] == '.')
        len++;
    const char *p = line + len + strspn(line + len, " \t");
    if (*p == ':' && p[1] != '=') /* an annotation: skip to the "=" */
        p += strcspn(p, "=#");
    if (*p != '=' || p[1] == '=' || len >= size || is_argument(p) ||
        is_one_of(words, sizeof words / sizeof *words, line, strcspn(line, " \t:=(")))
        return false;
    memcpy(name, line, len);
    name[len] = 0;
    return true;
}

/* Whether the name comes from native code of the program's author, which says more than the Python code that called
 * it. */
static bool is_own_native(const struct heap_search *search, const struct heap_name *out)
{
    const char *path = symbolizer_path(search->symbolizer, search->path[out->site].module);
    return out->is_variable && !is_python(search, out->site) && !path_is_python(path) &&
           !text_begins(path, "/usr/lib/") && !path_is_python_library(path);
}

void heap_python_name(const struct heap_search *search, struct heap_name *out)
{
    size_t site = 0;
    if (!is_python(search, 0) || is_own_native(search, out))
        return;
    while (is_python(search, site) && path_is_python_library(text_of(search, search->path[site].code.file)))
        site++;
    if (!is_python(search, site))
        site = 0;
    const struct code_frame *code = &search->path[site].code;
    const char *file = text_of(search, code->file);
    const char *line = source_text_line(search->source, file, code->line);
    *out = (struct heap_name){.site = site};
    out->is_variable = line && read_target(line, out->name, sizeof out->name);
    if (!out->is_variable)
        (void)snprintf(out->name, sizeof out->name, "%.80s (%.60s:%u)", text_of(search, code->function),
                       path_last(file), code->line);
}

const char *heap_python_memory(struct symbolizer *symbolizer, const struct path_frame *path, uint64_t block_bytes)
{
    enum { ARENA_BYTES = 1 << 20, OLD_ARENA_BYTES = 1 << 18, STACK_BYTES = 1 << 14 };
    uint32_t module = path[0].module;
    if (!symbolizer_is_python(symbolizer, module) && !path_is_python(symbolizer_path(symbolizer, module)))
        return NULL;
    if (block_bytes == ARENA_BYTES || block_bytes == OLD_ARENA_BYTES)
        return PYTHON_OBJECTS;
    return block_bytes == STACK_BYTES ? "Python's frames" : NULL;
}
