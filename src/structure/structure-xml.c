/* SPDX-License-Identifier: BSD-3-Clause */
/* Structure files: XML as HPCToolkit's tools read it, version 4.7 with variables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "structure/structure-module.h"
#include "structure/structure-xml-dtd.h"

#define FLUSH_BYTES (1u << 20)

/* A span in the order in which spans are written: group is scope << 32 | file, place is line << 32 | index. */
struct sorted_span {
    uint64_t group, place;
};

/* One file while it is written. */
struct writer {
    struct buf buf;
    FILE *out;
    const struct structure_replacement *replacements; /* [n_replacements] */
    size_t n_replacements;
    uint64_t id;
    bool failed;                        /* out cannot be written */
    struct sorted_span *order;          /* [spans of a function] */
    uint32_t *first_child, *next_child; /* [scopes of a function] */
    size_t cap_order, cap_first, cap_next;
};

static void put(struct writer *writer, const char *text)
{
    buf_append(&writer->buf, text, strlen(text));
}

static void put_number(struct writer *writer, uint64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buf_append(&writer->buf, digits + at, sizeof digits - at);
}

static void put_address(struct writer *writer, uint64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    digits[--at] = 'x';
    digits[--at] = '0';
    buf_append(&writer->buf, digits + at, sizeof digits - at);
}

/* Length of the UTF-8 character at text, 0 when it is none that XML may hold. */
static size_t character_bytes(const unsigned char *text)
{
    if (text[0] < 0x80)
        return text[0] >= 0x20 || text[0] == '\t';
    size_t n = text[0] >= 0xf0 && text[0] < 0xf5 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc2 ? 2 : 0;
    if (text[0] >= 0xf5)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool is_odd = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90) ||
                  (text[0] == 0xf4 && text[1] > 0x8f) || (text[0] == 0xed && text[1] > 0x9f) ||
                  (text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe);
    return is_odd ? 0 : n;
}

static void put_escaped(struct writer *writer, const char *text)
{
    const char *from = text;
    for (;;) {
        size_t n = character_bytes((const unsigned char *)text);
        const char *instead = *text == '&'   ? "&amp;"
                              : *text == '<' ? "&lt;"
                              : *text == '>' ? "&gt;"
                              : *text == '"' ? "&quot;"
                              : n == 0       ? "?"
                                             : NULL;
        if (!instead) {
            text += n;
            continue;
        }
        buf_append(&writer->buf, from, (size_t)(text - from));
        if (*text == 0)
            return;
        put(writer, instead);
        from = ++text;
    }
}

static void put_attribute(struct writer *writer, const char *name, const char *text)
{
    put(writer, " ");
    put(writer, name);
    put(writer, "=\"");
    put_escaped(writer, text ? text : "");
    put(writer, "\"");
}

static void put_path(struct writer *writer, const char *name, const char *path)
{
    for (size_t i = 0; path && i < writer->n_replacements; i++) {
        const struct structure_replacement *replacement = &writer->replacements[i];
        size_t len = strlen(replacement->old_prefix);
        if (strncmp(path, replacement->old_prefix, len) != 0)
            continue;
        put(writer, " ");
        put(writer, name);
        put(writer, "=\"");
        put_escaped(writer, replacement->new_prefix);
        put_escaped(writer, path + len);
        put(writer, "\"");
        return;
    }
    put_attribute(writer, name, path);
}

/* Begins an element: its tag and id. */
static void open_tag(struct writer *writer, const char *tag)
{
    put(writer, "<");
    put(writer, tag);
    put(writer, " i=\"");
    put_number(writer, ++writer->id);
    put(writer, "\"");
}

static void put_line(struct writer *writer, uint32_t line)
{
    put(writer, " l=\"");
    put_number(writer, line);
    put(writer, "\"");
}

static void put_range(struct writer *writer, uint64_t start, uint64_t end)
{
    put(writer, "[");
    put_address(writer, start);
    put(writer, "-");
    put_address(writer, end);
    put(writer, ")");
}

static void put_start(struct writer *writer, uint64_t vaddr)
{
    put(writer, " v=\"{");
    put_range(writer, vaddr, vaddr + 1);
    put(writer, "}\"");
}

static int compare_sorted(const void *a, const void *b)
{
    const struct sorted_span *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Number of a file among those of a function: 0 its scope's own, else by its first appearance. */
static uint32_t file_rank(const struct structure_function *function, const struct structure_span *span)
{
    if (span->file == function->scopes[span->scope].file)
        return 0;
    for (uint32_t i = 0;; i++) /* strings are interned: equal ones are the same */
        if (function->spans[i].file == span->file)
            return i + 1;
}

/* Fills order: by scope, file, line, address. */
static void sort_spans(struct writer *writer, const struct structure_function *function)
{
    bool is_sorted = true;
    for (uint32_t i = 0; i < function->n_spans; i++) {
        const struct structure_span *span = &function->spans[i];
        bool is_same = i > 0 && span->file == span[-1].file && span->scope == span[-1].scope;
        uint32_t rank = is_same ? (uint32_t)writer->order[i - 1].group : file_rank(function, span);
        writer->order[i].group = (uint64_t)span->scope << 32 | rank;
        writer->order[i].place = (uint64_t)span->line << 32 | i;
        is_sorted &= i == 0 || compare_sorted(&writer->order[i - 1], &writer->order[i]) < 0;
    }
    if (!is_sorted)
        qsort(writer->order, function->n_spans, sizeof *writer->order, compare_sorted);
}

static const struct structure_span *sorted_span(const struct writer *writer, const struct structure_function *function,
                                                size_t i)
{
    return &function->spans[(uint32_t)writer->order[i].place];
}

/* Writes order[i..) as long as it is one line of one scope, as one statement; returns the index behind it. */
static size_t put_statement(struct writer *writer, const struct structure_function *function, size_t i)
{
    const struct structure_span *first = sorted_span(writer, function, i);
    open_tag(writer, "S");
    put_line(writer, first->line);
    put(writer, " v=\"{");
    uint64_t start = first->start, end = first->end;
    for (i++; i < function->n_spans; i++) {
        const struct structure_span *span = sorted_span(writer, function, i);
        if (span->scope != first->scope || span->file != first->file || span->line != first->line)
            break;
        if (span->start != end) {
            put_range(writer, start, end);
            put(writer, " ");
            start = span->start;
        }
        end = span->end;
    }
    put_range(writer, start, end);
    put(writer, "}\"/>\n");
    return i;
}

/* Opens an element that groups what lies at a position: empty name. */
static void open_place(struct writer *writer, uint32_t line, const char *file)
{
    open_tag(writer, "A");
    put_line(writer, line);
    put_path(writer, "f", file);
    put(writer, " n=\"\" v=\"{}\">\n");
}

/* The statements of a scope; those of other files in a group each. i: index into order. */
static void put_statements(struct writer *writer, const struct structure_function *function, uint32_t scope, size_t i)
{
    const char *own = function->scopes[scope].file, *open = own;
    while (i < function->n_spans && sorted_span(writer, function, i)->scope == scope) {
        const struct structure_span *span = sorted_span(writer, function, i);
        if (span->file != open) {
            if (open != own)
                put(writer, "</A>\n");
            open = span->file;
            if (open != own)
                open_place(writer, span->line, span->file);
        }
        i = put_statement(writer, function, i);
    }
    if (open != own)
        put(writer, "</A>\n");
}

static void put_names(struct writer *writer, const struct structure_scope *scope)
{
    put_attribute(writer, "n", scope->name);
    if (scope->linkage && scope->name && strcmp(scope->linkage, scope->name) != 0)
        put_attribute(writer, "ln", scope->linkage);
}

static void open_loop(struct writer *writer, const struct structure_scope *scope)
{
    open_tag(writer, "L");
    put(writer, " l=\"");
    put_number(writer, scope->line);
    if (scope->end_line > scope->line) {
        put(writer, "-");
        put_number(writer, scope->end_line);
    }
    put(writer, "\"");
    put_path(writer, "f", scope->file);
    put_start(writer, scope->vaddr);
    if (scope->n_machine > 1) {
        put(writer, " m=\"");
        put_number(writer, scope->n_machine);
        put(writer, "\"");
    }
    put(writer, scope->is_irreducible ? " ir=\"1\">\n" : ">\n");
}

static void open_inlined(struct writer *writer, const struct structure_scope *scope)
{
    open_place(writer, scope->call_line, scope->call_file);
    open_tag(writer, "A");
    put_line(writer, scope->line);
    put_path(writer, "f", scope->file);
    put_names(writer, scope);
    put(writer, " v=\"{}\">\n");
}

/* Index into order of a scope's first span. */
static size_t find_spans(const struct writer *writer, const struct structure_function *function, uint32_t scope)
{
    size_t low = 0, high = function->n_spans;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted_span(writer, function, middle)->scope < scope)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put_scope(struct writer *writer, const struct structure_function *function, uint32_t index)
{
    const struct structure_scope *scope = &function->scopes[index];
    if (scope->kind == STRUCTURE_LOOP)
        open_loop(writer, scope);
    else if (scope->kind == STRUCTURE_INLINED)
        open_inlined(writer, scope);
    put_statements(writer, function, index, find_spans(writer, function, index));
    for (uint32_t child = writer->first_child[index]; child != STRUCTURE_NONE; child = writer->next_child[child])
        put_scope(writer, function, child);
    if (scope->kind == STRUCTURE_LOOP)
        put(writer, "</L>\n");
    else if (scope->kind == STRUCTURE_INLINED)
        put(writer, "</A>\n</A>\n");
}

static bool link_scopes(struct writer *writer, const struct structure_function *function)
{
    size_t n = function->n_scopes;
    if (!vec_reserve(&writer->first_child, &writer->cap_first, n, sizeof *writer->first_child) ||
        !vec_reserve(&writer->next_child, &writer->cap_next, n, sizeof *writer->next_child) ||
        !vec_reserve(&writer->order, &writer->cap_order, function->n_spans, sizeof *writer->order))
        return false;
    for (size_t i = 0; i < n; i++)
        writer->first_child[i] = writer->next_child[i] = STRUCTURE_NONE;
    for (size_t i = n; i-- > 1;) {
        writer->next_child[i] = writer->first_child[function->scopes[i].parent];
        writer->first_child[function->scopes[i].parent] = (uint32_t)i;
    }
    sort_spans(writer, function);
    return true;
}

static void flush_if(struct writer *writer, bool now)
{
    if (writer->buf.len_bytes < (now ? 1 : FLUSH_BYTES))
        return;
    if (!writer->failed && fwrite(writer->buf.data, 1, writer->buf.len_bytes, writer->out) != writer->buf.len_bytes)
        writer->failed = true;
    writer->buf.len_bytes = 0;
}

static void put_function(struct writer *writer, const struct structure_function *function)
{
    const struct structure_scope *scope = &function->scopes[0];
    char nameless[32];
    if (!link_scopes(writer, function)) {
        writer->buf.failed = true;
        return;
    }
    open_tag(writer, "P");
    if (scope->name) {
        put_names(writer, scope);
    } else {
        (void)snprintf(nameless, sizeof nameless, "func_0x%" PRIx64, scope->vaddr);
        put_attribute(writer, "n", nameless);
    }
    put_line(writer, scope->line);
    put_start(writer, scope->vaddr);
    put(writer, ">\n");
    put_scope(writer, function, 0);
    put(writer, "</P>\n");
    flush_if(writer, false);
}

static void put_variables(struct writer *writer, const struct structure_module *module)
{
    if (module->n_variables == 0)
        return;
    open_tag(writer, "F");
    put_attribute(writer, "n", "<unknown file>");
    put(writer, ">\n");
    for (size_t i = 0; i < module->n_variables; i++) {
        open_tag(writer, "V");
        put_attribute(writer, "n", module->variables[i].name);
        put(writer, " v=\"{");
        put_range(writer, module->variables[i].start, module->variables[i].end);
        put(writer, "}\"/>\n");
    }
    put(writer, "</F>\n");
}

static bool same_file(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void put_files(struct writer *writer, const struct structure_module *module)
{
    const char *slash = strrchr(module->path, '/');
    struct buf unknown = {0};
    buf_printf(&unknown, "[%s]", slash ? slash + 1 : module->path);
    for (size_t i = 0; i < module->n_functions; i++) {
        const char *file = module->functions[i].scopes[0].file;
        if (i == 0 || !same_file(file, module->functions[i - 1].scopes[0].file)) {
            if (i > 0)
                put(writer, "</F>\n");
            open_tag(writer, "F");
            put_path(writer, "n", file ? file : unknown.data);
            put(writer, ">\n");
        }
        put_function(writer, &module->functions[i]);
    }
    if (module->n_functions)
        put(writer, "</F>\n");
    buf_fini(&unknown);
}

int structure_module_write(const struct structure_module *module, const struct structure_replacement *replacements,
                           size_t n_replacements, FILE *out, struct error *err)
{
    struct writer writer = {.out = out, .replacements = replacements, .n_replacements = n_replacements, .id = 1};
    put(&writer, structure_xml_dtd());
    put(&writer, "<HPCToolkitStructure i=\"0\" version=\"4.7\" n=\"\">\n");
    open_tag(&writer, "LM");
    put_attribute(&writer, "n", module->path);
    put(&writer, " v=\"{}\">\n");
    put_variables(&writer, module);
    put_files(&writer, module);
    put(&writer, "</LM>\n</HPCToolkitStructure>\n");
    flush_if(&writer, true);
    bool no_memory = writer.buf.failed;
    buf_fini(&writer.buf);
    free(writer.order);
    free(writer.first_child);
    free(writer.next_child);
    if (no_memory)
        return error_set(err, ERR_MEMORY, "%s: out of memory while its structure is written", module->path);
    return writer.failed ? error_set(err, ERR_IO, "the structure of %s cannot be written", module->path) : 0;
}
