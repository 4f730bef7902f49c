/* SPDX-License-Identifier: BSD-3-Clause */
/* The type of blocks: by their allocation site, else by the source text of their accesses. At a site, the allocator of
 * a C++ container comes first, because its template argument is the type. A type of one byte ("char *") counts only
 * when no other is known, because such a block may hold anything. */
#include "analysis/build/heap-name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "structure/types/types.h"

#define OPERAND_BYTES 200

struct site {
    struct symbolizer *symbolizer;
    struct source_text *source;
    struct symbols *symbols;
    uint64_t vaddr;
    uint64_t block_bytes;
    const char *statement;
};

/* True when the blocks can hold elements of the type. */
static bool fits(const struct site *site, uint32_t type)
{
    uint64_t size = types_size(site->symbols, type), at;
    const struct type *known = types_get(site->symbols, types_strip(site->symbols, type));
    if (!type || known->kind == TYPE_FUNCTION || known->kind == TYPE_UNKNOWN)
        return false;
    return (size && (!site->block_bytes || size <= site->block_bytes)) || types_flexible(site->symbols, type, &at);
}

static bool is_bytes(struct symbols *symbols, uint32_t type)
{
    return types_get(symbols, types_strip(symbols, type))->kind == TYPE_BASE && types_size(symbols, type) == 1;
}

/* What a variable of this type points to, if it is a pointer, a container, or an array with a descriptor. */
static uint32_t pointed(struct symbols *symbols, uint32_t type)
{
    uint32_t stripped = types_strip(symbols, type);
    const struct type *known = types_get(symbols, stripped);
    if (known->kind == TYPE_ARRAY && types_get(symbols, types_element(symbols, stripped))->kind == TYPE_POINTER &&
        !(known->flags & TYPE_IS_DYNAMIC))
        known = types_get(symbols, types_element(symbols, stripped));
    if (known->kind == TYPE_POINTER || known->kind == TYPE_ARRAY)
        return known->kind == TYPE_ARRAY ? types_element(symbols, known->target) : known->target;
    return known->kind == TYPE_STRUCT ? types_template_argument(symbols, stripped) : 0;
}

/* What a C++ reference refers to; other types stay. */
static uint32_t referred(struct symbols *symbols, uint32_t type)
{
    const struct type *known = types_get(symbols, types_strip(symbols, type));
    return known->flags & TYPE_IS_REFERENCE ? known->target : type;
}

static uint32_t by_declaration(const struct site *site, const char *name)
{
    return pointed(site->symbols, referred(site->symbols, types_of_expression(site->symbols, site->vaddr, name)));
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of the next occurrence of a word in a text; NULL when there is none. */
static const char *after_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p++)
        if ((p == text || !is_word(p[-1])) && !is_word(p[len]))
            return p + len;
    return NULL;
}

/* Copies text up to one of the characters in end, outside template brackets; trailing blanks are left out. */
static bool copy_until(const char *text, const char *end, char *out)
{
    size_t len = 0;
    int depth = 0;
    for (; text[len] && (depth > 0 || !strchr(end, text[len])); len++) {
        depth += text[len] == '<' || text[len] == '(';
        depth -= text[len] == '>' || text[len] == ')';
    }
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    if (len == 0 || len >= OPERAND_BYTES)
        return false;
    memcpy(out, text, len);
    out[len] = 0;
    return true;
}

/* The type of a new-expression; *is_array: it makes several. */
static uint32_t by_new(const struct site *site, bool *is_array)
{
    char name[OPERAND_BYTES];
    const char *p = site->statement ? after_word(site->statement, "new") : NULL;
    *is_array = false;
    if (!p)
        return 0;
    while (isspace((unsigned char)*p))
        p++;
    if (*p == '(') { /* placement or nothrow */
        p = strchr(p, ')');
        if (!p)
            return 0;
        p++;
    }
    while (isspace((unsigned char)*p))
        p++;
    if (!copy_until(p, "[({;,)", name))
        return 0;
    *is_array = p[strlen(name)] == '[' || strchr(p, '[');
    return types_find(site->symbols, site->vaddr, name);
}

/* The type of sizeof's operand: a type, or an expression. */
static uint32_t type_of_operand(const struct site *site, const char *operand)
{
    uint32_t type = types_find(site->symbols, site->vaddr, operand);
    return type ? type : types_of_expression(site->symbols, site->vaddr, operand);
}

/* Reads the operand of the sizeof that ends at text; returns what follows it, NULL when it is none. */
static const char *read_operand(const char *text, char *operand)
{
    while (isspace((unsigned char)*text))
        text++;
    bool is_bracketed = *text == '(';
    text += is_bracketed;
    if (!copy_until(text, is_bracketed ? ")" : ",;)+", operand))
        return NULL;
    return text + strlen(operand);
}

/* The type of the first sizeof in the statement. *trailing_type: of the next one behind a "+", 0 when there is none or
 * when it is the same type. */
static uint32_t by_sizeof(const struct site *site, uint32_t *trailing_type)
{
    char operand[OPERAND_BYTES];
    const char *p = site->statement ? after_word(site->statement, "sizeof") : NULL;
    *trailing_type = 0;
    if (!p || !(p = read_operand(p, operand)))
        return 0;
    uint32_t first = type_of_operand(site, operand);
    const char *plus = strchr(p, '+'), *second = plus ? after_word(plus, "sizeof") : NULL;
    if (second && read_operand(second, operand)) {
        *trailing_type = type_of_operand(site, operand);
        if (*trailing_type == first)
            *trailing_type = 0;
    }
    return first;
}

/* A block whose size is the sum of two sizeof holds one element, then an array. Types that end with an array of no
 * fixed size need no note of that. */
static void add_trailing(const struct site *site, struct heap_type *out)
{
    uint32_t trailing_type = 0;
    uint64_t at;
    uint32_t first = by_sizeof(site, &trailing_type);
    uint64_t size = types_size(site->symbols, out->type);
    if (trailing_type && types_strip(site->symbols, first) == types_strip(site->symbols, out->type) &&
        !types_flexible(site->symbols, out->type, &at) && types_size(site->symbols, trailing_type) &&
        types_get(site->symbols, types_strip(site->symbols, first))->kind == TYPE_STRUCT && size)
        out->trailing_type = trailing_type;
}

static bool take(const struct site *site, uint32_t type, enum type_source source, struct heap_type *out)
{
    if (!fits(site, type))
        return false;
    bool is_weak = out->source != TYPE_FROM_NOTHING && is_bytes(site->symbols, type);
    if (!is_weak)
        *out = (struct heap_type){.symbols = site->symbols, .type = type, .source = source};
    return !is_bytes(site->symbols, type);
}

/* A pointer to a base class may point to a derived one: the new-expression shows which. */
static bool is_derived(const struct site *site, uint32_t type, uint32_t base)
{
    const struct type *known = types_get(site->symbols, types_strip(site->symbols, type));
    for (size_t i = 0; i < known->n_fields; i++)
        if (known->fields[i].flags & FIELD_IS_BASE && (types_strip(site->symbols, known->fields[i].type) == base ||
                                                       is_derived(site, known->fields[i].type, base)))
            return true;
    return false;
}

/* Arrays of classes with destructors begin with the number of elements. */
static void set_header(const struct site *site, bool is_array, struct heap_type *out)
{
    uint64_t size = types_size(site->symbols, out->type);
    if (is_array && size && size % 8 == 0 && site->block_bytes % size == 8)
        out->header_bytes = 8;
}

static void find_site_type(const struct site *site, const struct heap_name *name, struct heap_type *out)
{
    bool is_array = false;
    uint32_t trailing_type = 0, made = by_new(site, &is_array);
    bool is_sure = name->is_variable && take(site, by_declaration(site, *name->operand ? name->operand : name->name),
                                             TYPE_FROM_DECLARATION, out);
    if (made && (!is_sure || is_derived(site, made, types_strip(site->symbols, out->type))))
        is_sure = take(site, made, TYPE_FROM_NEW, out);
    if (!is_sure)
        (void)take(site, by_sizeof(site, &trailing_type), TYPE_FROM_SIZEOF, out);
    if (!out->type)
        return;
    set_header(site, is_array, out);
    add_trailing(site, out);
}

static bool is_allocator(const char *function)
{
    static const char *const prefixes[] = {"std::__new_allocator<", "__gnu_cxx::new_allocator<", "std::allocator<",
                                           "std::__1::allocator<"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(function, prefixes[i], strlen(prefixes[i])) == 0)
            return strstr(function, "allocate") != NULL;
    return false;
}

/* The type that the allocator of a C++ library container was made for. */
static bool find_container_type(struct symbolizer *symbolizer, const struct path_frame *path, size_t n,
                                uint64_t block_bytes, struct heap_type *out)
{
    for (size_t i = 0; i < n; i++) {
        struct site site = {.symbols = symbolizer_symbols(symbolizer, path[i].module), .block_bytes = block_bytes};
        if (!site.symbols || !is_allocator(symbolizer_text(symbolizer, path[i].code.function)))
            continue;
        uint32_t type = types_template_of_function(site.symbols, path[i].code.die);
        return take(&site, type, TYPE_FROM_TEMPLATE, out) || out->type;
    }
    return false;
}

void heap_type_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path,
                    const struct heap_name *name, uint64_t block_bytes, struct heap_type *out)
{
    const struct path_frame *frame = &path[name->site];
    struct buf statement = {0};
    size_t offset = 0;
    *out = (struct heap_type){0};
    if (find_container_type(symbolizer, path, name->site, block_bytes, out))
        return;
    struct site site = {.symbolizer = symbolizer,
                        .source = source,
                        .symbols = symbolizer_symbols(symbolizer, frame->module),
                        .vaddr = frame->vaddr,
                        .block_bytes = block_bytes};
    if (!site.symbols || !symbols_has_debug(site.symbols))
        return;
    if (source_text_statement(source, symbolizer_text(symbolizer, frame->code.file), frame->code.line,
                              frame->code.column, &statement, &offset))
        site.statement = statement.data;
    find_site_type(&site, name, out);
    buf_fini(&statement);
}

#define VOTES_MAX 16

struct votes {
    struct {
        struct symbols *symbols;
        uint32_t type;
        uint64_t samples;
    } rows[VOTES_MAX];
    size_t n;
    uint64_t total;
};

/* Whether two types are the same, perhaps from different compilation units. */
static bool is_same_type(struct symbols *symbols, uint32_t a, uint32_t b)
{
    const struct type *x = types_get(symbols, a), *y = types_get(symbols, b);
    return a == b || (x->kind == y->kind && x->name && y->name && strcmp(x->name, y->name) == 0 &&
                      x->size_bytes == y->size_bytes);
}

static void vote(struct votes *votes, struct symbols *symbols, uint32_t type, uint64_t samples)
{
    size_t i = 0;
    while (i < votes->n && (votes->rows[i].symbols != symbols || !is_same_type(symbols, votes->rows[i].type, type)))
        i++;
    if (i == VOTES_MAX)
        return;
    if (i == votes->n)
        votes->n++;
    votes->rows[i].symbols = symbols;
    votes->rows[i].type = type;
    votes->rows[i].samples += samples;
    votes->total += samples;
}

/* Start of the operand that ends before end: names joined by . and ->, with subscripts. */
static const char *operand_start(const char *text, const char *end)
{
    const char *p = end;
    while (p > text) {
        if (p[-1] == ']') {
            int depth = 0;
            do {
                p--;
                depth += (*p == ']') - (*p == '[');
            } while (p > text && depth > 0);
        } else if (is_word(p[-1]) || p[-1] == '.' || (p[-1] == '>' && p - 1 > text && p[-2] == '-')) {
            p -= p[-1] == '>' ? 2 : 1;
        } else {
            break;
        }
    }
    return p;
}

/* Every pointer in the text that is dereferenced or subscripted votes for what it points to, if that fits; the samples
 * are shared among the answers. */
static void vote_text(const struct site *site, const char *text, uint64_t samples, struct votes *votes)
{
    uint32_t found[VOTES_MAX];
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        char operand[OPERAND_BYTES];
        bool is_use = *p == '[' || (*p == '-' && p[1] == '>');
        const char *start = is_use ? operand_start(text, p) : p;
        size_t len = (size_t)(p - start);
        if (!is_use || len == 0 || len >= sizeof operand || n == VOTES_MAX)
            continue;
        memcpy(operand, start, len);
        operand[len] = 0;
        uint32_t type = types_of_expression(site->symbols, site->vaddr, operand);
        uint32_t target = pointed(site->symbols, referred(site->symbols, type));
        if (fits(site, target) && !is_bytes(site->symbols, target))
            found[n++] = types_strip(site->symbols, target);
    }
    for (size_t i = 0; i < n; i++)
        vote(votes, site->symbols, found[i], samples / n);
}

void heap_type_by_accesses(struct symbolizer *symbolizer, struct source_text *source,
                           const struct node_access *accesses, size_t n, uint64_t block_bytes, struct heap_type *out)
{
    struct votes votes = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        const struct code_frame *frames;
        struct site site = {.symbols = symbolizer_symbols(symbolizer, accesses[i].module), .block_bytes = block_bytes};
        uint64_t vaddr = accesses[i].vaddr - 1; /* the instruction before: samples come one too late */
        size_t n_frames = symbolizer_lookup(symbolizer, accesses[i].module, vaddr, &frames);
        const struct code_frame *inner = &frames[n_frames - 1];
        const char *text = source_text_line(source, symbolizer_text(symbolizer, inner->file), inner->line);
        site.vaddr = vaddr;
        if (site.symbols && text)
            vote_text(&site, text, accesses[i].n_samples, &votes);
    }
    for (size_t i = 0; i < votes.n; i++)
        if (votes.rows[i].samples * 2 > votes.total)
            *out = (struct heap_type){
                .symbols = votes.rows[i].symbols, .type = votes.rows[i].type, .source = TYPE_FROM_ACCESSES};
}
