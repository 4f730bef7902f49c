/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function was given to put a block into: a reference, or the address of a pointer. See heap-name-internal.h. */
#include <stdio.h>
#include <string.h>

#include "analysis/heap-name-internal.h"

#define CALLS_MAX 8 /* functions that hand it on */
#define FUNCTION_LINES_MAX 400
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* An expression that begins with a parameter: "out", "*out", "(*out)->cells". */
struct rooted {
    char root[128];
    bool is_target; /* it begins with what the root points to */
    char rest[256]; /* "->cells" */
};

static const char *text_of(const struct search *search, uint32_t id)
{
    return symbolizer_text(search->symbolizer, id);
}

static bool is_word(char c)
{
    return c && strchr(WORD, c);
}

/* Names joined by . -> and subscripts, perhaps behind one * or &. */
static bool is_simple(const char *expression)
{
    const char *p = expression + (*expression == '*' || *expression == '&');
    if (!is_word(*p) || (*p >= '0' && *p <= '9'))
        return false;
    for (; *p; p++)
        if (!is_word(*p) && !strchr(".[]:", *p) && !(*p == '-' && p[1] == '>') && !(*p == '>' && p[-1] == '-'))
            return false;
    return true;
}

/* Behind the casts that an expression begins with. */
static const char *behind_casts(const char *expression)
{
    while (*expression == '(') {
        const char *end = expression + strcspn(expression, ")");
        const char *next = *end ? end + 1 + strspn(end + 1, " \t") : end;
        if (!is_word(*next) && *next != '&' && *next != '*' && *next != '(')
            break;
        expression = next;
    }
    return expression;
}

/* False when the expression begins with no name. */
static bool take_apart(const char *expression, struct rooted *parts)
{
    bool has_brackets = strncmp(expression, "(*", 2) == 0;
    parts->is_target = has_brackets || *expression == '*';
    const char *p = expression + has_brackets + parts->is_target;
    size_t len = strspn(p, WORD);
    const char *rest = p + len + (has_brackets && p[len] == ')');
    if (len == 0 || len >= sizeof parts->root || strlen(rest) >= sizeof parts->rest ||
        (has_brackets && p[len] != ')') || (parts->is_target && !has_brackets && *rest))
        return false;
    (void)snprintf(parts->root, sizeof parts->root, "%.*s", (int)len, p);
    (void)snprintf(parts->rest, sizeof parts->rest, "%s", rest);
    return true;
}

/* Puts what the caller handed over in the place of the parameter that an expression begins with. */
static bool replace_root(const struct rooted *parts, const char *argument, bool is_pointer, char *text, size_t size)
{
    const char *rest = parts->rest, *before = "", *behind = "";
    char by = *argument == '*' || *argument == '&' ? *argument++ : 0;
    if (parts->is_target && by == '*')
        return false;
    if (parts->is_target && !by) {
        before = *rest ? "(*" : "*";
        behind = *rest ? ")" : "";
    } else if (!parts->is_target && by) {
        bool has_member = is_pointer ? strncmp(rest, "->", 2) == 0 : *rest == '.';
        if (by != (is_pointer ? '&' : '*') || !has_member)
            return false;
        rest += is_pointer ? 2 : 1;
        behind = is_pointer ? "." : "->";
    }
    int len = snprintf(text, size, "%s%s%s%s", before, argument, behind, rest);
    return len >= 0 && (size_t)len < size;
}

/* An object of Fortran as names tell it: "solver%blocks(:)" of "solver%blocks(i)". False when the expression is none.
 */
static bool read_fortran(const char *expression, char *object, size_t size)
{
    char statement[300], name[160];
    size_t len = strlen(expression);
    int depth = 0;
    for (const char *p = expression; *p; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0 && !is_word(*p) && *p != '%' && *p != ')' && *p != ' ')
            return false;
    }
    (void)snprintf(statement, sizeof statement, "allocate(%.250s)", expression);
    bool is_read = strchr(expression, '%') && assign_name_fortran(statement, 0, name, sizeof name);
    return is_read && (size_t)snprintf(object, size, "%s%s", name, expression[len - 1] == ')' ? "(:)" : "") < size;
}

/* The statement of frame i calls the function with this argument. */
static bool read_argument(const struct search *search, size_t i, const char *function, size_t index, char *argument,
                          size_t size)
{
    char text[256];
    struct buf statement = {0};
    size_t offset = 0;
    const struct code_frame *code = &search->path[i].code;
    bool is_read = source_text_statement(search->source, text_of(search, code->file), code->line, code->column,
                                         &statement, &offset) &&
                   assign_name_argument(statement.data, function, offset, index, text, sizeof text);
    buf_fini(&statement);
    const char *bare = is_read ? behind_casts(text) : "";
    if (read_fortran(bare, argument, size))
        return true;
    if (!is_simple(bare) || strlen(bare) >= size)
        return false;
    (void)snprintf(argument, size, "%s", bare);
    return true;
}

/* A local variable that the function stores where a parameter points to, "*out = p", is that. */
static void follow_store(const struct search *search, size_t site, char *text, size_t size)
{
    char pointer[128];
    bool is_reference = false, is_pointer = false;
    const struct code_frame *code = &search->path[site].code;
    struct symbols *symbols = symbolizer_symbols(search->symbolizer, search->path[site].module);
    if (!symbols || text[strspn(text, WORD)] ||
        alloc_name_parameter(symbols, code->die, text, &is_reference, &is_pointer) >= 0)
        return;
    for (uint32_t line = code->line; line < code->line + FUNCTION_LINES_MAX; line++) {
        const char *source = source_text_line(search->source, text_of(search, code->file), line);
        if (!source || source[0] == '}')
            return;
        if (assign_name_stores(source, text, pointer, sizeof pointer) &&
            alloc_name_parameter(symbols, code->die, pointer, &is_reference, &is_pointer) >= 0 && is_pointer) {
            (void)snprintf(text, size, "*%s", pointer);
            return;
        }
    }
}

size_t heap_argument_follow(const struct search *search, size_t site, bool is_fortran, struct alloc_name *found)
{
    size_t at = site;
    char local[sizeof found->text];
    memcpy(local, found->text, sizeof local);
    follow_store(search, site, found->text, sizeof found->text);
    for (int n = 0; n < CALLS_MAX && at + 1 < search->n && heap_name_site(search, at + 1) == at + 1; n++) {
        char qualified[256], argument[160], text[sizeof found->text];
        bool is_reference = false, is_pointer = false;
        struct rooted parts;
        struct symbols *symbols = symbolizer_symbols(search->symbolizer, search->path[at].module);
        const struct code_frame *code = &search->path[at].code;
        if (!symbols || !take_apart(found->text, &parts))
            break;
        int index = alloc_name_parameter(symbols, code->die, parts.root, &is_reference, &is_pointer);
        bool is_given = is_reference || is_fortran || (is_pointer && (n > 0 || parts.is_target));
        const char *function = assign_name_function(text_of(search, code->function), qualified, sizeof qualified);
        if (index < 0 || !is_given ||
            !read_argument(search, at + 1, function, (size_t)index, argument, sizeof argument) ||
            !replace_root(&parts, argument, is_pointer, text, sizeof text))
            break;
        memcpy(found->text, text, sizeof text);
        at++;
    }
    if (at == site) /* the local variable says more than where it is stored */
        memcpy(found->text, local, sizeof local);
    return at;
}

bool heap_argument_library(const struct search *search, size_t site, struct alloc_name *found)
{
    static const struct {
        const char *function;
        size_t index;
    } rows[] = {{"posix_memalign", 0}, {"getline", 0},         {"getdelim", 0},
                {"__getdelim", 0},     {"asprintf", 0},        {"vasprintf", 0},
                {"__asprintf_chk", 0}, {"__vasprintf_chk", 0}, {"open_memstream", 0}};
    char argument[160];
    for (size_t i = 0; i < site; i++) /* the buffer of a file is the file's */
        if (strstr(text_of(search, search->path[i].code.function), "doallocate"))
            return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (read_argument(search, site, rows[i].function, rows[i].index, argument, sizeof argument) &&
            *argument != '*') {
            *found = (struct alloc_name){.of_class = NULL};
            (void)snprintf(found->text, sizeof found->text, "%s%s", *argument == '&' ? "" : "*",
                           argument + (*argument == '&'));
            return true;
        }
    return false;
}
