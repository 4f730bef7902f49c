/* SPDX-License-Identifier: BSD-3-Clause */
/* Which name a heap block gets. First what a function was given to put the block into: a reference, or the address of a
 * pointer. Then the allocation site, outside all wrappers, and the names that code and text there give. The names of
 * C++ containers are made in heap-owner.c, those of Python in heap-python.c. See heap-name.h. */
#include "analysis/build/heap-name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "structure/cfg/cfg.h"
#include "structure/names/alloc-name.h"
#include "structure/names/assign-name.h"
#include "structure/types/types.h"

#define CALLS_MAX 8 /* functions that pass it on */
#define FUNCTION_LINES_MAX 400
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* An expression that begins with a parameter: "out", "*out", "(*out)->cells". */
struct rooted {
    char root[128];
    bool is_target; /* it begins with the object that the root points to */
    char rest[256]; /* "->cells" */
};

static const char *text_of(const struct heap_search *search, uint32_t id)
{
    return symbolizer_text(search->symbolizer, id);
}

static bool is_word(char c)
{
    return c && strchr(WORD, c);
}

/* Whether it is names joined by . -> and subscripts, perhaps after one * or &. */
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

/* Skips the casts that an expression begins with. */
static const char *skip_casts(const char *expression)
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

/* False when the expression does not begin with a name. */
static bool split_expression(const char *expression, struct rooted *parts)
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

/* Replaces the parameter that an expression begins with by the caller's argument: "out->cells" is "grid.cells" for
 * "&grid", and "(*out)->cells" is "grid->cells" for it; "out->cells" is "mesh->grid->cells" for "mesh->grid".
 * is_pointer: of the parameter, which else is a reference or one of Fortran. False where more would be needed. */
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

/* The name of a Fortran object: "solver%blocks(:)" for "solver%blocks(i)". False when the expression is no object. */
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

/* Reads the argument with which the statement of frame i calls the function. */
static bool read_argument(const struct heap_search *search, size_t i, const char *function, size_t index,
                          char *argument, size_t size)
{
    char text[256];
    struct buf statement = {0};
    size_t offset = 0;
    const struct code_frame *code = &search->path[i].code;
    bool is_read = source_text_statement(search->source, text_of(search, code->file), code->line, code->column,
                                         &statement, &offset) &&
                   assign_name_argument(statement.data, function, offset, index, text, sizeof text);
    buf_fini(&statement);
    const char *bare = is_read ? skip_casts(text) : "";
    if (read_fortran(bare, argument, size))
        return true;
    if (!is_simple(bare) || strlen(bare) >= size)
        return false;
    (void)snprintf(argument, size, "%s", bare);
    return true;
}

/* Whether the variable of frame i may be the object that a type-bound procedure of Fortran is called for: it is
 * polymorphic then. */
static bool is_polymorphic(const struct heap_search *search, size_t i, const char *name)
{
    struct symbols *symbols = symbolizer_symbols(search->symbolizer, search->path[i].module);
    uint32_t id = symbols ? types_strip(symbols, types_of_expression(symbols, search->path[i].vaddr, name)) : 0;
    const struct type *type = symbols ? types_get(symbols, id) : NULL;
    if (type && type->kind == TYPE_POINTER)
        type = types_get(symbols, types_strip(symbols, type->target));
    return type && type->flags & TYPE_IS_FORTRAN && type->name && strncmp(type->name, "__class_", 8) == 0;
}

/* Reads the argument of Fortran with which frame i calls the function for its parameter name. */
static bool read_fortran_argument(const struct heap_search *search, size_t i, const char *function, size_t index,
                                  const char *name, char *argument, size_t size)
{
    struct buf statement = {0};
    size_t offset = 0;
    const struct code_frame *code = &search->path[i].code;
    bool is_bound = source_text_statement(search->source, text_of(search, code->file), code->line, code->column,
                                          &statement, &offset) &&
                    assign_name_passed_object(statement.data, function, offset, argument, size);
    buf_fini(&statement);
    if (is_bound && index == 0 && is_polymorphic(search, i - 1, name))
        return true;
    /* the other arguments of a bound procedure count from one or, with nopass, from zero */
    return !is_bound && read_argument(search, i, function, index, argument, size);
}

/* Replaces a local variable by the place that it is stored to, if a parameter points there: "*out = p". */
static void follow_store(const struct heap_search *search, size_t site, char *text, size_t size)
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

size_t heap_argument_follow(const struct heap_search *search, size_t site, bool is_fortran, struct alloc_name *found)
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
        if (!symbols || !split_expression(found->text, &parts))
            break;
        int index = alloc_name_parameter(symbols, code->die, parts.root, &is_reference, &is_pointer);
        bool is_given = is_reference || is_fortran || (is_pointer && (n > 0 || parts.is_target));
        const char *function = assign_name_function(text_of(search, code->function), qualified, sizeof qualified);
        if (index < 0 || !is_given ||
            !(is_fortran ? read_fortran_argument(search, at + 1, function, (size_t)index, parts.root, argument,
                                                 sizeof argument)
                         : read_argument(search, at + 1, function, (size_t)index, argument, sizeof argument)) ||
            !replace_root(&parts, argument, is_pointer, text, sizeof text))
            break;
        memcpy(found->text, text, sizeof text);
        at++;
    }
    if (at == site) /* the local variable says more than the place it is stored to */
        memcpy(found->text, local, sizeof local);
    return at;
}

/* Distance of the word nearest to at in the text; SIZE_MAX when there is none. */
static size_t distance_of(const char *text, size_t at, const char *word)
{
    size_t best = SIZE_MAX;
    for (const char *p = text; (p = strstr(p, word)); p++) {
        size_t start = (size_t)(p - text), distance = start > at ? start - at : at - start;
        best = distance < best ? distance : best;
    }
    return best;
}

/* Whether the site calls posix_memalign; of several calls on a line the one at the site's column counts. */
static bool calls_memalign(const struct heap_search *search, size_t site)
{
    struct buf statement = {0};
    size_t offset = 0;
    const struct code_frame *code = &search->path[site].code;
    bool is_read = source_text_statement(search->source, text_of(search, code->file), code->line, code->column,
                                         &statement, &offset);
    const char *text = is_read ? statement.data : "";
    size_t distance = distance_of(text, offset, "posix_memalign");
    bool is_called = distance != SIZE_MAX && (!code->column || distance <= distance_of(text, offset, "alloc("));
    buf_fini(&statement);
    return is_called;
}

/* The variable whose address the site passes to a C library function that stores a new block there, such as
 * posix_memalign and getline; false when it calls none. */
static bool heap_argument_library(const struct heap_search *search, size_t site, struct alloc_name *found)
{
    static const struct {
        const char *function;
        size_t index;
    } rows[] = {{"posix_memalign", 0}, {"getline", 0},         {"getdelim", 0},
                {"__getdelim", 0},     {"asprintf", 0},        {"vasprintf", 0},
                {"__asprintf_chk", 0}, {"__vasprintf_chk", 0}, {"open_memstream", 0}};
    char argument[160];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((i > 0 || calls_memalign(search, site)) &&
            read_argument(search, site, rows[i].function, rows[i].index, argument, sizeof argument) &&
            *argument != '*') {
            *found = (struct alloc_name){.of_class = NULL};
            (void)snprintf(found->text, sizeof found->text, "%s%s", *argument == '&' ? "" : "*",
                           argument + (*argument == '&'));
            return true;
        }
    return false;
}

/* --- names of allocations --- */

/* These count as wrappers: code of the language's runtime libraries and of namespace std; functions that return a
 * pointer and are named like an allocator; functions whose source passes the new block to their caller (by return or an
 * out-parameter). When a pool of the program reports its blocks, the innermost function on the path that returns a
 * pointer is the pool's allocator. */

#define NEAR_FRAMES 4    /* from code without names to a function with a name */
#define POOL_DEPTH_MAX 6 /* functions between the pool's allocator and its call that reports the block */

static bool in_runtime_library(const struct heap_search *search, const struct path_frame *frame)
{
    static const char *const prefixes[] = {"libstdc++.",  "libc++.",      "libc++abi.",  "libgfortran.", "libhpcrun",
                                           "libc.so",     "libc-2.",      "ld-linux",    "libquadmath.", "libgcc_s.",
                                           "libpthread",  "libjemalloc.", "libtcmalloc", "libmimalloc",  "libtbbmalloc",
                                           "libmemkind.", "libhugetlbfs", "libnuma."};
    const char *base = path_last(symbolizer_path(search->symbolizer, frame->module));
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(base, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool in_library_namespace(const char *qualified)
{
    static const char *const prefixes[] = {"std::",   "__gnu_cxx::", "operator new", "void*operator new",
                                           "boost::", "Eigen::",     "Kokkos::",     "absl::",
                                           "folly::", "tbb::",       "thrust::"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(qualified, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* "new" as a word of its own: new_array, array_new, NewArray, but not renew or newton. */
static bool has_word_new(const char *name)
{
    for (const char *p = name; (p = strcasestr(p, "new")); p += 3) {
        bool starts = p == name || p[-1] == '_' || (isupper((unsigned char)p[0]) && islower((unsigned char)p[-1]));
        bool ends = p[3] == 0 || p[3] == '_' || isupper((unsigned char)p[3]) || isdigit((unsigned char)p[3]);
        if (starts && ends)
            return true;
    }
    return false;
}

static bool named_like_allocator(const char *name)
{
    return strcasestr(name, "alloc") || strcasestr(name, "memalign") || strcasestr(name, "strdup") ||
           strcasestr(name, "strndup") || strcasestr(name, "mmap") || has_word_new(name);
}

/* The unqualified name of the function that frame i calls on this path; NULL for the innermost. */
static const char *callee_of(const struct heap_search *search, size_t i, char *buffer, size_t size)
{
    return i == 0 ? NULL : assign_name_function(text_of(search, search->path[i - 1].code.function), buffer, size);
}

enum assign_kind heap_name_statement(const struct heap_search *search, size_t i, struct buf *statement, char *name,
                                     size_t size)
{
    const struct code_frame *code = &search->path[i].code;
    char buffer[256];
    size_t offset = 0;
    *name = 0;
    if (!source_text_statement(search->source, text_of(search, code->file), code->line, code->column, statement,
                               &offset))
        return ASSIGN_NONE;
    return assign_name_find(statement->data, callee_of(search, i, buffer, sizeof buffer), offset, name, size);
}

/* True when the function later returns the variable that it assigns at line. */
static bool returned_later(const struct heap_search *search, const struct code_frame *code, const char *variable)
{
    const char *file = text_of(search, code->file);
    for (uint32_t line = code->line; line < code->line + FUNCTION_LINES_MAX; line++) {
        const char *text = source_text_line(search->source, file, line);
        if (!text || text[0] == '}')
            return false;
        const char *at = strstr(text, "return");
        if (at && assign_name_returns(at, variable))
            return true;
    }
    return false;
}

static bool is_plain_name(const char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

/* True when the source shows that frame i passes the block to its caller. */
static bool passes_to_caller(const struct heap_search *search, size_t i)
{
    char name[160];
    struct buf statement = {0};
    enum assign_kind kind = heap_name_statement(search, i, &statement, name, sizeof name);
    buf_fini(&statement);
    if (kind == ASSIGN_RETURN)
        return true;
    return kind == ASSIGN_NAME && is_plain_name(name) && returned_later(search, &search->path[i].code, name);
}

/* True when the source shows that frame i keeps the block in an object and does not return it, like a function that
 * makes a new object with parts. */
static bool keeps_in_object(const struct heap_search *search, size_t i)
{
    char name[160];
    struct buf statement = {0};
    enum assign_kind kind = heap_name_statement(search, i, &statement, name, sizeof name);
    buf_fini(&statement);
    return kind == ASSIGN_NAME && (strstr(name, "->") || strpbrk(name, ".[")) && *name != '*' &&
           !returned_later(search, &search->path[i].code, name);
}

/* Rust's standard library is linked into the program, under a path that the compiler invents. */
static bool in_standard_sources(const char *file)
{
    return strncmp(file, "/rustc/", 7) == 0;
}

static bool is_wrapper(const struct heap_search *search, size_t i)
{
    const struct path_frame *frame = &search->path[i];
    char qualified[256];
    if (in_runtime_library(search, frame))
        return true;
    if (!frame->code.named)
        return false;
    if (in_standard_sources(text_of(search, frame->code.file)))
        return true;
    const char *name = assign_name_function(text_of(search, frame->code.function), qualified, sizeof qualified);
    if (in_library_namespace(qualified))
        return true;
    if (strcmp(name, "main") == 0 || strcmp(name, "MAIN__") == 0)
        return false;
    struct symbols *symbols = symbolizer_symbols(search->symbolizer, frame->module);
    int pointer = symbols ? symbols_returns_pointer(symbols, frame->code.die) : -1;
    if (pointer != 0 && named_like_allocator(name))
        return !keeps_in_object(search, i);
    return pointer == 1 && passes_to_caller(search, i);
}

size_t heap_name_site(const struct heap_search *search, size_t first)
{
    for (size_t i = first; i < search->n; i++)
        if (!is_wrapper(search, i))
            return i;
    return first;
}

/* First frame of the next outer function that was really called, or n: a function and those inlined into it share one
 * call. */
static size_t next_call(const struct heap_search *search, size_t i)
{
    while (i < search->n && search->path[i].inlined)
        i++;
    return i + 1;
}

/* What the call in the site's machine code yields: a container or posix_memalign fills an object given by address. */
static enum alloc_name_value call_value(const struct heap_search *search, size_t site)
{
    size_t first = site;
    char qualified[256];
    while (first > 0 && search->path[first - 1].inlined)
        first--;
    if (first == 0)
        return calls_memalign(search, site) ? ALLOC_NAME_FIRST_ARGUMENT : ALLOC_NAME_RETURN_VALUE;
    (void)assign_name_function(text_of(search, search->path[first - 1].code.function), qualified, sizeof qualified);
    bool method = strncmp(qualified, "std::", 5) == 0 && strncmp(qualified, "std::allocat", 12) != 0;
    return method ? ALLOC_NAME_FIRST_ARGUMENT : ALLOC_NAME_RETURN_VALUE;
}

/* The site's variable from machine code and debug information; RETURNED also when only a caller can know it. */
static enum alloc_name_result name_by_code(const struct heap_search *search, size_t site, struct alloc_name *found)
{
    const struct path_frame *frame = &search->path[site];
    return symbolizer_alloc_name(search->symbolizer, frame->module, frame->vaddr + 1, call_value(search, site), found);
}

/* Which of several objects of a Fortran allocate statement the block is: the one that the code names, else by the order
 * of the calls if there is one for each. False when the statement is not of that kind. */
static bool name_by_allocate(const struct heap_search *search, bool has_code_name, struct heap_name *out)
{
    const struct path_frame *frame = &search->path[out->site];
    struct buf statement = {0}, all = {0};
    size_t offset = 0, n = 0, rank = 0;
    char name[sizeof out->name], chosen[sizeof out->name] = "";
    struct symbols *symbols = symbolizer_symbols(search->symbolizer, frame->module);
    if (source_text_statement(search->source, text_of(search, frame->code.file), frame->code.line, frame->code.column,
                              &statement, &offset))
        for (; assign_name_fortran(statement.data, n, name, sizeof name); n++) {
            /* as the author spells it, with the module, which only the code knows */
            const char *scope = strstr(out->name, "::");
            if (has_code_name && !*chosen && assign_name_is_same(out->name, name))
                (void)snprintf(chosen, sizeof chosen, "%.*s%.100s", scope ? (int)(scope + 2 - out->name) : 0, out->name,
                               name);
            buf_printf(&all, "%s%s", n ? ", " : "", name);
        }
    if (n == 1)
        (void)assign_name_fortran(statement.data, 0, name, sizeof name);
    if (n == 1 && !*chosen)
        memcpy(chosen, name, sizeof chosen);
    if (n > 1 && !*chosen && symbols && call_order_find(symbols, frame->vaddr + 1, &rank) == n &&
        assign_name_fortran(statement.data, rank, name, sizeof name))
        memcpy(chosen, name, sizeof chosen);
    if (n > 0)
        (void)snprintf(out->name, sizeof out->name, *chosen ? "%s" : "one of %s", *chosen ? chosen : all.data);
    out->is_variable = *chosen;
    buf_fini(&statement);
    buf_fini(&all);
    return n > 0;
}

/* True when the statement makes several blocks, so that its text alone may name the wrong one. */
static bool is_ambiguous(const struct heap_search *search, size_t site, const char *statement)
{
    char buffer[256];
    const char *callee = callee_of(search, site, buffer, sizeof buffer);
    static const char *const allocators[] = {"malloc", "calloc", "realloc", "new", "mmap"};
    int n = 0;
    for (size_t i = 0; !callee && i < sizeof allocators / sizeof *allocators; i++)
        for (const char *p = statement; (p = strstr(p, allocators[i])); p++)
            n++;
    for (const char *p = statement; callee && *callee && (p = strstr(p, callee)); p++)
        n++;
    return n > 1;
}

/* True for "field_of(object)": a macro that stands for a member, which the code can name. */
static bool is_macro(const char *name)
{
    const char *open = strchr(name, '(');
    return open && open > name && (isalnum((unsigned char)open[-1]) || open[-1] == '_');
}

/* True when the variable is a number, which holds no block: the text means another statement, or a temporary of this
 * one. An integer of C as large as an address may hold one. */
static bool is_number(const struct heap_search *search, size_t site, const char *name)
{
    const struct path_frame *frame = &search->path[site];
    struct symbols *symbols = symbolizer_symbols(search->symbolizer, frame->module);
    if (!symbols || strpbrk(name, "([*"))
        return false;
    const struct type *type =
        types_get(symbols, types_strip(symbols, types_of_expression(symbols, frame->vaddr, name)));
    if ((type->kind != TYPE_BASE && type->kind != TYPE_ENUM) || !type->size_bytes || !type->name ||
        strncmp(type->name, "character", 9) == 0)
        return false;
    return type->size_bytes != sizeof(uint64_t) || strchr(type->name, '=') || strstr(type->name, "double") ||
           strncmp(type->name, "real", 4) == 0 || strncmp(type->name, "integer", 7) == 0;
}

/* True when the block belongs to a library, not to the statement that called it: the buffer of a FILE, a unit of
 * Fortran. */
static bool is_library_buffer(const struct heap_search *search, size_t site)
{
    for (size_t i = 0; i < site; i++)
        if (strstr(text_of(search, search->path[i].code.function), "doallocate"))
            return true;
    const char *library = site ? path_last(symbolizer_path(search->symbolizer, search->path[site - 1].module)) : "";
    return strncmp(library, "libgfortran.", 12) == 0;
}

/* The site's variable from its source text; sure: only when the text leaves no doubt. */
static bool name_by_text(const struct heap_search *search, bool sure, struct heap_name *out)
{
    struct buf statement = {0};
    char name[sizeof out->name];
    enum assign_kind kind = heap_name_statement(search, out->site, &statement, name, sizeof name);
    bool taken = kind == ASSIGN_NAME && !(sure && (is_macro(name) || is_ambiguous(search, out->site, statement.data)));
    buf_fini(&statement);
    if (!taken || heap_owner_is_wrong(search, out->site, name) || is_number(search, out->site, name))
        return false;
    memcpy(out->name, name, sizeof name);
    return true;
}

/* The nearest function with a name, for a site in code without names; NULL when none is near. */
static const char *nearest_name(const struct heap_search *search, size_t site, char *qualified, size_t size)
{
    for (size_t i = site + 1; i < search->n && i <= site + NEAR_FRAMES; i++) {
        const struct path_frame *frame = &search->path[i];
        if (frame->module != search->path[site].module)
            return NULL;
        if (frame->code.named)
            (void)assign_name_function(text_of(search, frame->code.function), qualified, size);
        if (frame->code.named && *qualified)
            return qualified;
    }
    return NULL;
}

/* Appends "+0x4f0", where the call in the function returns to, to the function's name: before its module, if that
 * stands behind it. Without lines nothing else tells the calls of one function apart. */
static void put_place(const struct heap_search *search, size_t site, const char *function, char *text, size_t size)
{
    const struct path_frame *frame = &search->path[site];
    const char *module = frame->code.named ? NULL : strstr(function, " [");
    bool is_known = !frame->code.line && frame->code.low_vaddr && frame->vaddr >= frame->code.low_vaddr &&
                    (frame->code.named || strncmp(function, "func_0x", 7) == 0);
    int n = module ? (int)(module - function) : (int)strlen(function);
    if (is_known)
        (void)snprintf(text, size, "%.*s" HEAP_PLACE "%llx%s", n < 150 ? n : 150, function,
                       (unsigned long long)(frame->vaddr + 1 - frame->code.low_vaddr), module ? module : "");
    else
        (void)snprintf(text, size, "%s", function);
}

/* with_place: which call in the function it is, where that has no lines. */
static void name_by_position(const struct heap_search *search, bool with_place, struct heap_name *out)
{
    const struct code_frame *code = &search->path[out->site].code;
    char qualified[256], address[256], placed[256];
    (void)assign_name_function(text_of(search, code->function), qualified, sizeof qualified);
    const char *function = code->named ? qualified : text_of(search, code->function);
    if (!code->named && strncmp(function, CODE_WITHOUT_SYMBOLS, strlen(CODE_WITHOUT_SYMBOLS)) == 0) {
        /* blocks of several sites stay apart */
        (void)snprintf(address, sizeof address, "0x%llx %.200s", (unsigned long long)search->path[out->site].vaddr,
                       function + strlen(CODE_WITHOUT_SYMBOLS));
        function = address;
    }
    if (with_place) {
        put_place(search, out->site, function, placed, sizeof placed);
        function = placed;
    }
    if (code->line)
        (void)snprintf(out->name, sizeof out->name, "%.80s (%.60s:%u)", function,
                       path_last(text_of(search, code->file)), code->line);
    else if (!code->named && nearest_name(search, out->site, qualified, sizeof qualified))
        (void)snprintf(out->name, sizeof out->name, "%.80s > %.70s", qualified, function);
    else
        (void)snprintf(out->name, sizeof out->name, "%.150s", function);
}

/* The frame where the search begins: after a pool's allocator, if a pool reported the block. */
static size_t first_frame(const struct heap_search *search)
{
    size_t first = 0;
    while (first + 1 < search->n && heap_name_is_annotation(text_of(search, search->path[first].code.function)))
        first++;
    if (search->n < 3 || first == 0)
        return first;
    for (size_t i = first; i + 1 < search->n && i <= POOL_DEPTH_MAX; i++) {
        const struct code_frame *code = &search->path[i].code;
        struct symbols *symbols = symbolizer_symbols(search->symbolizer, search->path[i].module);
        if (symbols && code->named && symbols_returns_pointer(symbols, code->die) == 1)
            return i + 1;
    }
    return first;
}

bool heap_name_is_annotation(const char *function)
{
    return strcmp(function, "locus_pool_alloc_event") == 0 || strcmp(function, "locus_pool_alloc") == 0;
}

/* Names the block from native code, from the frame first on. */
static void name_native(const struct heap_search *of, size_t first, struct heap_name *out)
{
    const struct heap_search search = *of;
    size_t n = search.n;
    enum alloc_name_result result = ALLOC_NAME_RETURNED;
    struct alloc_name found = {0};
    out->site = heap_name_site(&search, first);
    out->operand[0] = 0;
    out->is_variable = false;
    if (is_library_buffer(&search, out->site)) {
        name_by_position(&search, false, out);
        return;
    }
    while (result == ALLOC_NAME_RETURNED) {
        result = name_by_code(&search, out->site, &found);
        size_t outer = next_call(&search, out->site);
        if (result != ALLOC_NAME_RETURNED || outer >= n)
            break;
        out->site = heap_name_site(&search, outer);
    }
    if (result == ALLOC_NAME_FOUND && heap_owner_is_other(&search, out->site, found.text)) {
        result = ALLOC_NAME_UNKNOWN;
        found = (struct alloc_name){0};
    }
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, found.text);
    if (name_by_allocate(&search, result == ALLOC_NAME_FOUND, out)) {
        (void)snprintf(found.text, sizeof found.text, "%s", out->name);
        if (out->is_variable && heap_argument_follow(&search, out->site, true, &found) != out->site) {
            memcpy(out->operand, out->name, sizeof out->operand);
            (void)snprintf(out->name, sizeof out->name, "%.150s", found.text);
        }
        return;
    }
    /* the text gives "v" where the code gives a temporary or a member of v; the code tells two calls on a line apart */
    bool by_code = result == ALLOC_NAME_FOUND, by_member = heap_owner_initialiser(&search, out->site, by_code, &found);
    bool by_text = !by_member && name_by_text(&search, by_code, out);
    by_code = by_code || (!by_member && !by_text && heap_argument_library(&search, out->site, &found));
    out->is_variable = by_member || by_text || by_code;
    if (!out->is_variable) {
        name_by_position(&search, true, out);
        return;
    }
    if (by_text)
        heap_owner_clean(&search, out, &found);
    heap_owner_finish(&search, &found, out);
}

void heap_name_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path, size_t n,
                    struct heap_name *out)
{
    const struct heap_search search = {symbolizer, source, path, n};
    size_t n_python = 0;
    while (n_python + 1 < n && symbolizer_is_python(symbolizer, path[n_python].module))
        n_python++;
    name_native(&search, n_python ? n_python : first_frame(&search), out);
    heap_python_name(&search, out);
}
