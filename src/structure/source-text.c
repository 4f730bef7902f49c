/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading source files and cutting statements out of them. */
#include "structure/source-text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "structure/source-find.h"

#define STATEMENT_LINES_MAX 8
#define FILE_BYTES_MAX (64u << 20)

struct source_file {
    char *text;   /* lines are NUL-terminated in place; NULL when unreadable */
    char **lines; /* [n_lines] */
    size_t n_lines, cap_lines;
};

struct source_text {
    struct source_find *find;
    struct strtab paths;
    struct source_file *files; /* [paths.n_strings] */
    size_t cap_files;
};

struct source_text *source_text_new(const char *const *search, const char *const *replace)
{
    struct source_text *source = calloc(1, sizeof *source);
    if (!source)
        return NULL;
    source->find = source_find_new(search, replace);
    if (source->find)
        return source;
    free(source);
    return NULL;
}

void source_text_free(struct source_text *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < source->paths.n_strings; i++) {
        free(source->files[i].text);
        free(source->files[i].lines);
    }
    free(source->files);
    source_find_free(source->find);
    strtab_fini(&source->paths);
    free(source);
}

static void split_lines(struct source_file *file)
{
    for (char *p = file->text; p && *p;) {
        if (!vec_reserve(&file->lines, &file->cap_lines, file->n_lines + 1, sizeof *file->lines))
            return;
        file->lines[file->n_lines++] = p;
        char *end = strchr(p, '\n');
        if (!end)
            return;
        *end = 0;
        p = end + 1;
    }
}

static void read_source(const struct source_text *source, const char *path, struct source_file *out)
{
    struct buf text = {0};
    char chunk[16384];
    int fd = source_find_open(source->find, path);
    if (fd < 0)
        return;
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0 && text.len_bytes < FILE_BYTES_MAX;)
        buf_append(&text, chunk, (size_t)n);
    (void)close(fd);
    out->text = text.data;
    split_lines(out);
}

const char *source_text_line(struct source_text *source, const char *path, uint32_t line)
{
    if (!path || line == 0 ||
        !vec_reserve(&source->files, &source->cap_files, source->paths.n_strings + 1, sizeof *source->files))
        return NULL;
    size_t n_before = source->paths.n_strings;
    int64_t id = strtab_intern(&source->paths, path);
    if (id < 0)
        return NULL;
    if ((size_t)id == n_before)
        read_source(source, path, &source->files[id]);
    const struct source_file *file = &source->files[id];
    return line <= file->n_lines ? file->lines[line - 1] : NULL;
}

/* Behind the string or character that begins at i; i itself when none does. A ' between digits parts them. */
static size_t skip_quoted(const char *line, size_t i)
{
    size_t end = i + 1;
    if ((line[i] != '"' && line[i] != '\'') || (line[i] == '\'' && i > 0 && isxdigit((unsigned char)line[i - 1])))
        return i;
    while (line[end] && line[end] != line[i])
        end += line[end] == '\\' && line[end + 1] ? 2 : 1;
    return end + (line[end] != 0);
}

/* Behind the comment that begins at i, which may end on a later line; i itself when none does. */
static size_t skip_comment(const char *line, size_t i)
{
    if (line[i] != '/' || (line[i + 1] != '/' && line[i + 1] != '*'))
        return i;
    const char *end = line[i + 1] == '*' ? strstr(line + i + 2, "*/") : NULL;
    return end ? (size_t)(end - line) + 2 : i + strlen(line + i);
}

/* Length of the code on a line: without comments and blanks at its end. */
static size_t code_length(const char *line)
{
    size_t len = 0;
    for (size_t i = 0; line[i];) {
        size_t behind = skip_comment(line, i);
        if (behind > i) {
            i = behind;
            continue;
        }
        behind = skip_quoted(line, i);
        bool is_code = behind > i || !isspace((unsigned char)line[i]);
        i = behind > i ? behind : i + 1;
        len = is_code ? i : len;
    }
    return len;
}

/* Puts blanks in the place of comments between code. */
static void blank_comments(char *text)
{
    for (size_t i = 0; text[i];) {
        size_t behind = skip_comment(text, i);
        if (behind > i)
            memset(text + i, ' ', behind - i);
        else
            behind = skip_quoted(text, i);
        i = behind > i ? behind : i + 1;
    }
}

/* True when a statement ends with this line, so that the next line begins another one. */
static bool ends_statement(const char *line)
{
    size_t len = code_length(line);
    size_t first = strspn(line, " \t");
    const char *comment_end = strstr(line, "*/");
    if (first >= len || line[first] == '#' || (comment_end && !strstr(line, "/*")))
        return true;
    return strchr(";{}:", line[len - 1]) != NULL;
}

static bool is_fortran(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (dot[1] == 'f' || dot[1] == 'F') && strchr("o90p7", dot[2] ? dot[2] : '9');
}

/* The code on a line of Fortran without the signs of continuation; *is_open: it goes on with the next one. */
static size_t fortran_code(const char *line, size_t *indent, bool *is_open)
{
    size_t len = strcspn(line, "!");
    while (len > 0 && isspace((unsigned char)line[len - 1]))
        len--;
    *indent = strspn(line, " \t&");
    *is_open = len > 0 && line[len - 1] == '&';
    return len - *is_open;
}

/* In the old form a sign in the sixth column goes on with the line before. */
static bool is_old_continuation(const char *path, const char *line)
{
    const char *dot = strrchr(path, '.');
    bool is_old = dot && (!dot[2] || strcmp(dot + 1, "for") == 0 || strcmp(dot + 1, "f77") == 0);
    return is_old && line && strspn(line, " ") == 5 && line[5] && line[5] != '0';
}

/* A line of Fortran goes on with the next one. */
static bool goes_on(struct source_text *source, const char *path, uint32_t line)
{
    size_t indent;
    bool is_open = false;
    const char *text = source_text_line(source, path, line);
    if (text)
        (void)fortran_code(text, &indent, &is_open);
    return is_open || (text && is_old_continuation(path, source_text_line(source, path, line + 1)));
}

bool source_text_statement(struct source_text *source, const char *path, uint32_t line, uint32_t column,
                           struct buf *statement, size_t *offset)
{
    const char *text = source_text_line(source, path, line);
    if (!text)
        return false;
    bool fortran = is_fortran(path);
    uint32_t first = line, last = line;
    while (first > 1 && line - first < STATEMENT_LINES_MAX) {
        const char *before = source_text_line(source, path, first - 1);
        if (!before || (fortran ? !goes_on(source, path, first - 1) : ends_statement(before)))
            break;
        first--;
    }
    for (uint32_t i = first; i <= last; i++) {
        text = source_text_line(source, path, i);
        size_t indent = strspn(text, " \t");
        bool is_open = false;
        size_t len = fortran ? fortran_code(text, &indent, &is_open) : code_length(text);
        indent = fortran && is_old_continuation(path, text) ? 6 : indent;
        if (i == line)
            *offset = statement->len_bytes + (column > indent ? column - 1 - indent : 0);
        if (len > indent)
            buf_append(statement, text + indent, len - indent);
        buf_append(statement, " ", 1);
        is_open = fortran ? goes_on(source, path, i) : !ends_statement(text);
        if (i >= line && i - line < STATEMENT_LINES_MAX && is_open && source_text_line(source, path, i + 1))
            last = i + 1;
    }
    if (!fortran && statement->data)
        blank_comments(statement->data);
    if (*offset > statement->len_bytes)
        *offset = 0;
    return !statement->failed;
}
