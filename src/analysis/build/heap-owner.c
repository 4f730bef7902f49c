/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a C++ container's block: who owns it. A block belongs to a container, the container to a member or
 * variable, and a member to an object that its class does not know: then we look at the code that called the method.
 * See heap-name.h. */
#include "analysis/build/heap-name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "structure/names/source-text.h"
#include "structure/types/types.h"

#define OWNERS_MAX 8 /* nested objects */
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static const char *text_of(const struct heap_search *search, uint32_t id)
{
    return symbolizer_text(search->symbolizer, id);
}

static bool is_word(char c)
{
    return c && strchr(WORD, c);
}

static struct symbols *symbols_of(const struct heap_search *search, size_t i)
{
    return symbolizer_symbols(search->symbolizer, search->path[i].module);
}

/* Whether the text ends in the last component of a qualified name. */
static bool ends_like(const char *text, const char *qualified)
{
    const char *last = strrchr(qualified, ':');
    last = last ? last + 1 : qualified;
    size_t len = strlen(text), n = strlen(last);
    return len >= n && strcmp(text + len - n, last) == 0;
}

/* The class of a method and its name: "ns::Solver::run(int)" gives "Solver" and "run"; false for other functions. */
static bool split_method(const struct heap_search *search, size_t i, char *class, char *method, size_t size)
{
    char qualified[256];
    const char *last =
        assign_name_function(text_of(search, search->path[i].code.function), qualified, sizeof qualified);
    const char *end = last - 2, *start = end;
    if (last < qualified + 3)
        return false;
    while (start > qualified && start[-1] != ':')
        start--;
    (void)snprintf(class, size, "%.*s", (int)(end - start), start);
    (void)snprintf(method, size, "%s", last);
    return true;
}

static bool is_constructor(const struct heap_search *search, size_t i, char *class, size_t size)
{
    char method[256];
    return size <= sizeof method && split_method(search, i, class, method, size) && strcmp(class, method) == 0;
}

/* The class of the C++ library whose method the site called: "vector" of std::vector<double>::resize. */
static bool library_class(const struct heap_search *search, size_t site, char *class, size_t size)
{
    char method[256], qualified[256];
    if (site == 0 || size > sizeof method)
        return false;
    (void)assign_name_function(text_of(search, search->path[site - 1].code.function), qualified, sizeof qualified);
    return strncmp(qualified, "std::", 5) == 0 && split_method(search, site - 1, class, method, size) &&
           strcmp(class, "std") != 0 && class[0] != '_';
}

static bool is_of_class(const struct type *type, const char *class)
{
    size_t len = strlen(class);
    return type->name && strncmp(type->name, class, len) == 0 && (type->name[len] == '<' || type->name[len] == 0);
}

/* Whether the expression is a container of this class. */
static bool is_container(struct symbols *symbols, uint64_t vaddr, const char *expression, const char *class)
{
    const struct type *type = types_get(symbols, types_strip(symbols, types_of_expression(symbols, vaddr, expression)));
    if (type->flags & TYPE_IS_REFERENCE)
        type = types_get(symbols, types_strip(symbols, type->target));
    if (type->kind == TYPE_POINTER)
        type = types_get(symbols, types_strip(symbols, type->target));
    return is_of_class(type, class);
}

/* Whether the column lies between start and the end of the bracket at open, perhaps on a later line. */
static bool is_within(const char *text, const char *start, const char *open, uint32_t column)
{
    const char *end = open;
    int depth = 0;
    do {
        depth += *end == '(' || *end == '{';
        depth -= *end == ')' || *end == '}';
        end++;
    } while (*end && depth > 0);
    return column > (size_t)(start - text) && column <= (size_t)(end - text);
}

/* The last member of the constructor's class in text up to the site's column (from 1; 0: not known) that has the class
 * whose constructor is called and is followed by its initial value; without column it must be the only one. */
static bool find_initialiser(const struct heap_search *search, size_t site, const char *text, struct alloc_name *found)
{
    unsigned n = 0;
    char class[256];
    const struct code_frame *code = &search->path[site].code;
    uint32_t column = code->column;
    struct symbols *symbols = symbols_of(search, site);
    bool has_class = library_class(search, site, class, sizeof class);
    for (const char *p = text; *p;) {
        const char *end = p;
        char name[128];
        struct alloc_name member = {.of_class = NULL};
        while (is_word(*end))
            end++;
        size_t len = (size_t)(end - p);
        const char *behind = end + strspn(end, " \t");
        bool is_candidate = symbols && len && len < sizeof name && strchr("({", *behind) && *behind &&
                            (column == 0 || is_within(text, p, behind, column));
        if (is_candidate) {
            memcpy(name, p, len);
            name[len] = 0;
        }
        is_candidate &= !has_class || is_container(symbols, search->path[site].vaddr, name, class);
        if (is_candidate && alloc_name_of_member(symbols, code->die, name, &member)) {
            *found = member;
            n++;
        }
        p = len ? end : p + 1;
    }
    return n == 1 || (n > 1 && column > 0);
}

/* The only member of the site's class that has the C++ library class whose constructor is called. */
static bool only_member(const struct heap_search *search, size_t site, struct alloc_name *found)
{
    char class[256], method[256];
    struct symbols *symbols = symbols_of(search, site);
    return symbols && library_class(search, site, class, sizeof class) &&
           split_method(search, site - 1, class, method, sizeof class) && strcmp(class, method) == 0 &&
           alloc_name_of_class(symbols, search->path[site].code.die, class, found);
}

bool heap_owner_initialiser(const struct heap_search *search, size_t site, bool has_code, struct alloc_name *found)
{
    char class[256];
    const struct code_frame *code = &search->path[site].code;
    struct alloc_name member;
    const char *text = source_text_line(search->source, text_of(search, code->file), code->line);
    if (!is_constructor(search, site, class, sizeof class) ||
        (!(text && find_initialiser(search, site, text, &member)) && !only_member(search, site, &member)))
        return false;
    size_t len = strlen(class);
    bool is_member = has_code && strncmp(found->text, class, len) == 0 && found->text[len] == ':';
    if (!is_member && (!has_code || !ends_like(found->text, member.text)))
        *found = member;
    return true;
}

bool heap_owner_is_wrong(const struct heap_search *search, size_t site, const char *name)
{
    char class[256], called[256];
    struct symbols *symbols = symbols_of(search, site);
    if (!is_constructor(search, site, class, sizeof class))
        return false;
    if (strcmp(class, name) == 0)
        return true;
    return name[strspn(name, WORD)] == 0 && symbols && library_class(search, site, called, sizeof called) &&
           types_of_expression(symbols, search->path[site].vaddr, name) &&
           !is_container(symbols, search->path[site].vaddr, name, called);
}

/* Cuts the last subscript or member off an expression; false when there is none. */
static bool cut_last(char *expression)
{
    size_t len = strlen(expression);
    if (len && strchr("])", expression[len - 1])) {
        int depth = 0;
        do {
            len--;
            depth +=
                (expression[len] == ']' || expression[len] == ')') - (expression[len] == '[' || expression[len] == '(');
        } while (len > 0 && depth > 0);
    } else {
        while (len > 0 && is_word(expression[len - 1]))
            len--;
        if (len > 0 && expression[len - 1] == '.')
            len--;
        else if (len > 1 && expression[len - 1] == '>' && expression[len - 2] == '-')
            len -= 2;
        else
            return false;
    }
    expression[len] = 0;
    return len > 0;
}

/* Cuts the expression to its longest part that is the container whose method was called: "cells" of "cells[i].x". */
static void cut_to_container(const struct heap_search *search, size_t site, char *expression, size_t size)
{
    char class[256], part[256];
    struct symbols *symbols = symbols_of(search, site);
    if (!symbols || size > sizeof part || !library_class(search, site, class, sizeof class))
        return;
    (void)snprintf(part, size, "%s", expression);
    do {
        if (is_container(symbols, search->path[site].vaddr, part, class)) {
            (void)snprintf(expression, size, "%s", part);
            return;
        }
    } while (cut_last(part));
}

/* Puts the expression into found, as a member if it begins with a member of the method's class. */
static void name_as_member(const struct heap_search *search, size_t site, const char *expression,
                           struct alloc_name *found)
{
    char name[128];
    struct symbols *symbols = symbols_of(search, site);
    struct alloc_name member = {.of_class = NULL};
    const char *p = strncmp(expression, "this->", 6) == 0 ? expression + 6 : expression;
    size_t len = 0;
    while (is_word(p[len]))
        len++;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), p);
    *found = (struct alloc_name){.of_class = NULL};
    if (len && len < sizeof name && p[len] != ':' && symbols &&
        alloc_name_of_member(symbols, search->path[site].code.die, name, &member)) {
        *found = member;
        bool is_object = found->is_open && !*found->member; /* the object itself is meant */
        if (is_object)
            return;
        if (found->is_open && p[len] && strlen(found->member) + strlen(p + len) < sizeof found->member)
            (void)strcat(found->member, p + len);
        (void)strncat(found->text, p + len, sizeof found->text - strlen(found->text) - 1);
        return;
    }
    (void)snprintf(found->text, sizeof found->text, "%s", expression);
}

void heap_owner_clean(const struct heap_search *search, const struct heap_name *out, struct alloc_name *found)
{
    char expression[sizeof out->name];
    memcpy(expression, out->name, sizeof expression);
    cut_to_container(search, out->site, expression, sizeof expression);
    name_as_member(search, out->site, expression, found);
}

/* What the block is in its container; NULL when it holds the elements one after the other. The functions are those of
 * libstdc++ and, with two underscores, of libc++. */
static const char *part_of_container(const struct heap_search *search, size_t site)
{
    static const struct {
        const char *function, *part;
    } rows[] = {{"_Deque_base::_M_allocate_node", "chunks"},
                {"_Deque_base::_M_allocate_map", "table of chunks"},
                {"_M_allocate_buckets", "buckets"},
                {"_M_allocate_node", "nodes"},
                {"_M_get_node", "nodes"},
                {"_M_create_node", "nodes"},
                {"__tree::__construct_node", "nodes"},
                {"__hash_table::__construct_node", "nodes"},
                {"__hash_table::__construct_node_hash", "nodes"},
                {"__hash_table::__rehash", "buckets"},
                {"__hash_table::__do_rehash", "buckets"},
                {"__allocate_node", "nodes"},
                {"forward_list::push_front", "nodes"},
                {"forward_list::emplace_front", "nodes"},
                {"forward_list::insert_after", "nodes"},
                {"forward_list::emplace_after", "nodes"},
                {"deque::__add_back_capacity", "chunks"},
                {"deque::__add_front_capacity", "chunks"}};
    for (size_t i = 0; i < site; i++) {
        char qualified[256];
        (void)assign_name_function(text_of(search, search->path[i].code.function), qualified, sizeof qualified);
        for (size_t k = 0; strncmp(qualified, "std::", 5) == 0 && k < sizeof rows / sizeof *rows; k++)
            if (ends_like(qualified, rows[k].function) && strstr(qualified, rows[k].function))
                return rows[k].part;
    }
    return NULL;
}

static bool is_smart_pointer(const struct type *type)
{
    const char *end = type->name ? strchr(type->name, '<') : NULL;
    return type->kind == TYPE_STRUCT && end && end - type->name >= 3 && strncasecmp(end - 3, "ptr", 3) == 0;
}

/* Whether it is named like a container: vector, flat_hash_map, PointerArray. */
static bool is_any_container(const struct type *type)
{
    static const char *const words[] = {"vector", "deque", "list", "set", "map", "queue", "stack", "array"};
    char name[128];
    size_t len = type->name ? strcspn(type->name, "<") : 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : 0), type->name ? type->name : "");
    for (size_t i = 0; type->kind == TYPE_STRUCT && i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

/* Whether the expression at frame i is a container of pointers; *is_pointed: or a pointer to one. */
static bool holds_pointers(const struct heap_search *search, size_t i, const char *expression, bool *is_pointed)
{
    struct symbols *symbols = symbols_of(search, i);
    *is_pointed = false;
    if (!symbols)
        return false;
    uint32_t id = types_strip(symbols, types_of_expression(symbols, search->path[i].vaddr, expression));
    const struct type *type = types_get(symbols, id);
    if (type->flags & TYPE_IS_REFERENCE)
        type = types_get(symbols, id = types_strip(symbols, type->target));
    *is_pointed = type->kind == TYPE_POINTER || is_smart_pointer(type);
    if (*is_pointed)
        id = types_strip(symbols, type->kind == TYPE_POINTER ? type->target : types_template_argument(symbols, id));
    const struct type *element = types_get(symbols, types_strip(symbols, types_template_argument(symbols, id)));
    return is_any_container(types_get(symbols, id)) && (element->kind == TYPE_POINTER || is_smart_pointer(element));
}

/* Whether the function that the site calls for the block is a method of the container that the expression is. */
static bool asked_by_container(const struct heap_search *search, size_t site, const char *expression)
{
    char class[256], method[256];
    if (library_class(search, site, class, sizeof class))
        return !strstr(class, "_ptr");
    return site > 0 && split_method(search, site - 1, class, method, sizeof class) &&
           is_container(symbols_of(search, site), search->path[site].vaddr, expression, class);
}

/* Whether an element of a container points to the block, "cells.push_back(new cell)": it is no block of the container's
 * own. */
static bool is_of_element(const struct heap_search *search, size_t site, const char *expression)
{
    char name[160], call[180];
    struct buf statement = {0};
    bool is_pointed = false;
    if (!holds_pointers(search, site, expression, &is_pointed) || asked_by_container(search, site, expression))
        return false;
    (void)snprintf(call, sizeof call, "%.160s->", expression); /* else it is the container itself that is made */
    bool is_called = !is_pointed || (heap_name_statement(search, site, &statement, name, sizeof name) != ASSIGN_NONE &&
                                     strstr(statement.data, call));
    buf_fini(&statement);
    return is_called;
}

/* Whether the expression at frame i is an object of the class, or (*is_pointer) points to one. */
static bool is_object(const struct heap_search *search, size_t i, const char *expression, const char *class,
                      bool *is_pointer)
{
    struct symbols *symbols = symbols_of(search, i);
    uint64_t vaddr = search->path[i].vaddr;
    if (!symbols)
        return false;
    uint32_t id = types_strip(symbols, types_of_expression(symbols, vaddr, expression));
    const struct type *type = types_get(symbols, id);
    *is_pointer = type->kind == TYPE_POINTER && !(type->flags & TYPE_IS_REFERENCE);
    if (is_container(symbols, vaddr, expression, class))
        return true;
    *is_pointer = true; /* a smart pointer */
    type = types_get(symbols, types_strip(symbols, types_template_argument(symbols, id)));
    return is_of_class(type, class);
}

bool heap_owner_is_other(const struct heap_search *search, size_t site, const char *name)
{
    char class[256], method[256];
    bool is_pointer = false;
    uint64_t vaddr = search->path[site].vaddr;
    struct symbols *symbols = symbols_of(search, site);
    if (!symbols || name[strspn(name, WORD ".->[]:")] || !library_class(search, site, class, sizeof class) ||
        strstr(class, "alloc"))
        return false;
    if (types_of_expression(symbols, vaddr, name))
        return !is_object(search, site, name, class, &is_pointer);
    /* code outside a class cannot call a method of its private member */
    return strstr(name, "::") && !split_method(search, site, class, method, sizeof class);
}

/* The object for which frame i called a method of the class, as that frame names it; for a real call from the machine
 * code as well. */
static bool name_object(const struct heap_search *search, size_t i, bool is_call, const char *class,
                        struct alloc_name *object, bool *is_pointer)
{
    char name[160];
    struct buf statement = {0};
    struct symbols *symbols = symbols_of(search, i);
    *is_pointer = false;
    *object = (struct alloc_name){.of_class = class};
    if (heap_owner_initialiser(search, i, false, object))
        return true;
    if (is_call && symbols &&
        alloc_name_find(symbols, search->path[i].vaddr + 1, ALLOC_NAME_FIRST_ARGUMENT, object) == ALLOC_NAME_FOUND)
        return true;
    enum assign_kind kind = heap_name_statement(search, i, &statement, name, sizeof name);
    buf_fini(&statement);
    if (kind != ASSIGN_NAME || !is_object(search, i, name, class, is_pointer))
        return false;
    name_as_member(search, i, name, object);
    return true;
}

/* Goes from a member of an unknown object to the object, through the outer frames. */
static void find_object(const struct heap_search *search, size_t site, struct alloc_name *found)
{
    for (int n = 0; found->is_open && n < OWNERS_MAX && site + 1 < search->n; n++) {
        char class[256], method[256];
        struct alloc_name object;
        bool is_pointer, is_call = !search->path[site].inlined;
        if (!split_method(search, site, class, method, sizeof class))
            return;
        size_t outer = heap_name_site(search, site + 1);
        struct symbols *symbols = symbols_of(search, outer);
        if (outer == site + 1 && symbols && alloc_name_is_base(symbols, search->path[outer].code.die, class)) {
            site = outer; /* the same object */
            continue;
        }
        if (outer != site + 1 || !name_object(search, outer, is_call, class, &object, &is_pointer))
            return;
        char member[sizeof found->member];
        memcpy(member, found->member, sizeof member);
        *found = object;
        const char *rest = is_pointer && *member ? member + 1 : member, *sign = is_pointer && *member ? "->" : "";
        size_t len = strlen(found->text), open_len = strlen(found->member);
        (void)snprintf(found->text + len, sizeof found->text - len, "%s%s", sign, rest);
        if (found->is_open)
            (void)snprintf(found->member + open_len, sizeof found->member - open_len, "%s%s", sign, rest);
        site = outer;
    }
}

void heap_owner_finish(const struct heap_search *search, struct alloc_name *found, struct heap_name *out)
{
    const char *part = part_of_container(search, out->site), *last = strrchr(found->text, ':');
    bool is_element = !part && is_of_element(search, out->site, last ? last + 1 : found->text);
    (void)snprintf(out->operand, sizeof out->operand, "%.150s%s", last ? last + 1 : found->text,
                   is_element ? "[]" : "");
    size_t knows = found->is_open ? out->site : heap_argument_follow(search, out->site, false, found);
    if (knows != out->site) {
        char expression[sizeof found->text];
        memcpy(expression, found->text, sizeof expression);
        name_as_member(search, knows, expression, found);
    }
    find_object(search, knows, found);
    (void)snprintf(out->name, sizeof out->name, "%.130s%s%s%s%s", found->text, is_element ? "[]" : "",
                   part ? " (" : "", part ? part : "", part ? ")" : "");
}
