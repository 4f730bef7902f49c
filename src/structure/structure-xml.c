/* SPDX-License-Identifier: BSD-3-Clause */
/* Structure files: XML as HPCToolkit's tools read it, version 4.7 with variables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "structure/structure-module.h"
#include "structure/structure-xml-dtd.h"
#include "structure/structure-xml-types.h"
#include "structure/xml-out.h"

/* A span in the order in which spans are written: group is scope << 32 | file, place is line << 32 | index. */
struct sorted_span {
    uint64_t group, place;
};

/* One file while it is written. */
struct writer {
    struct xml_out xml;
    struct structure_types *types; /* NULL: neither types nor locals are written */
    bool no_memory;
    struct sorted_span *order;          /* [spans of a function], and as many more to sort them with */
    uint32_t *first_child, *next_child; /* [scopes of a function] */
    size_t cap_order, cap_first, cap_next;
    bool is_open; /* a statement, of which [start, end) is still to be written */
    uint64_t start, end;
};

static void put_start(struct writer *writer, uint64_t vaddr)
{
    xml_put(&writer->xml, " v=\"{");
    xml_put_range(&writer->xml, vaddr, vaddr + 1);
    xml_put(&writer->xml, "}\"");
}

static bool is_before(const struct sorted_span *x, const struct sorted_span *y)
{
    return x->group != y->group ? x->group < y->group : x->place < y->place;
}

/* Merges [from, middle) and [middle, end), each sorted, into out at from. */
static void merge(const struct sorted_span *in, size_t from, size_t middle, size_t end, struct sorted_span *out)
{
    size_t left = from, right = middle;
    for (size_t i = from; i < end; i++)
        out[i] = right == end || (left < middle && is_before(&in[left], &in[right])) ? in[left++] : in[right++];
}

/* Sorts order [n], of which pairs, fours and so on are merged by turns into the second half of its memory and back. */
static void sort_order(struct sorted_span *order, size_t n)
{
    struct sorted_span *in = order, *out = order + n;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width)
            merge(in, from, from + width < n ? from + width : n, from + 2 * width < n ? from + 2 * width : n, out);
        struct sorted_span *other = in;
        in = out;
        out = other;
    }
    if (in != order)
        memcpy(order, in, n * sizeof *order);
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
        is_sorted &= i == 0 || is_before(&writer->order[i - 1], &writer->order[i]);
    }
    if (!is_sorted)
        sort_order(writer->order, function->n_spans);
}

static const struct structure_span *sorted_span(const struct writer *writer, const struct structure_function *function,
                                                size_t i)
{
    return &function->spans[(uint32_t)writer->order[i].place];
}

/* Adds code to the statement of a line that is being written, which begins with the first. */
static void put_code(struct writer *writer, uint32_t line, uint64_t start, uint64_t end)
{
    if (start >= end)
        return;
    if (!writer->is_open) {
        xml_open_code(&writer->xml, "S", line);
        writer->is_open = true;
        writer->start = start;
    } else if (start != writer->end) {
        xml_put_range(&writer->xml, writer->start, writer->end);
        xml_put(&writer->xml, " ");
        writer->start = start;
    }
    writer->end = end;
}

/* The first call of a span; those that follow, as long as they are before its end, are its own, too. */
static const struct structure_call *first_call(const struct structure_function *function,
                                               const struct structure_span *span)
{
    size_t low = 0, high = function->n_calls;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (function->calls[middle].start < span->start)
            low = middle + 1;
        else
            high = middle;
    }
    return function->calls + low;
}

/* Writes order[i..) as long as it is one line of one scope, as one statement without its calls, if anything is left;
 * returns the index behind it. */
static size_t put_statement(struct writer *writer, const struct structure_function *function, size_t i)
{
    const struct structure_span *first = sorted_span(writer, function, i);
    const struct structure_call *calls_end = function->calls + function->n_calls;
    writer->is_open = false;
    for (; i < function->n_spans; i++) {
        const struct structure_span *span = sorted_span(writer, function, i);
        if (span->scope != first->scope || span->file != first->file || span->line != first->line)
            break;
        uint64_t at = span->start;
        for (const struct structure_call *call = first_call(function, span); call < calls_end && call->end <= span->end;
             at = call++->end)
            put_code(writer, span->line, at, call->start);
        put_code(writer, span->line, at, span->end);
    }
    if (writer->is_open) {
        xml_put_range(&writer->xml, writer->start, writer->end);
        xml_put(&writer->xml, "}\"/>\n");
    }
    return i;
}

/* The calls of order [i, end). */
static void put_calls(struct writer *writer, const struct structure_function *function, size_t i, size_t end)
{
    const struct structure_call *calls_end = function->calls + function->n_calls;
    for (; function->n_calls && i < end; i++) {
        const struct structure_span *span = sorted_span(writer, function, i);
        const struct structure_call *call = first_call(function, span);
        for (; call < calls_end && call->end <= span->end; call++) {
            xml_open_code(&writer->xml, "C", span->line);
            xml_put_range(&writer->xml, call->start, call->end);
            xml_put(&writer->xml, "}\"");
            if (call->target)
                xml_address_attribute(&writer->xml, "t", call->target);
            xml_put(&writer->xml, " d=\"\"/>\n");
        }
    }
}

/* Opens an element that groups what lies at a position: empty name. */
static void open_place(struct writer *writer, uint32_t line, const char *file)
{
    xml_open(&writer->xml, "A");
    xml_number_attribute(&writer->xml, "l", line);
    xml_path_attribute(&writer->xml, "f", file);
    xml_put(&writer->xml, " n=\"\" v=\"{}\">\n");
}

/* The statements and calls of a scope; those of other files in a group each. i: index into order. */
static void put_statements(struct writer *writer, const struct structure_function *function, uint32_t scope, size_t i)
{
    const char *own = function->scopes[scope].file;
    while (i < function->n_spans && sorted_span(writer, function, i)->scope == scope) {
        const struct structure_span *span = sorted_span(writer, function, i);
        const char *file = span->file;
        size_t first = i;
        if (file != own)
            open_place(writer, span->line, file);
        while (i < function->n_spans && sorted_span(writer, function, i)->scope == scope &&
               sorted_span(writer, function, i)->file == file)
            i = put_statement(writer, function, i);
        put_calls(writer, function, first, i);
        if (file != own)
            xml_put(&writer->xml, "</A>\n");
    }
}

static void put_names(struct writer *writer, const struct structure_scope *scope)
{
    xml_text_attribute(&writer->xml, "n", scope->name);
    if (scope->linkage && scope->name && strcmp(scope->linkage, scope->name) != 0)
        xml_text_attribute(&writer->xml, "ln", scope->linkage);
}

static void open_loop(struct writer *writer, const struct structure_scope *scope)
{
    xml_open(&writer->xml, "L");
    xml_put(&writer->xml, " l=\"");
    xml_put_number(&writer->xml, scope->line);
    if (scope->end_line > scope->line) {
        xml_put(&writer->xml, "-");
        xml_put_number(&writer->xml, scope->end_line);
    }
    xml_put(&writer->xml, "\"");
    xml_path_attribute(&writer->xml, "f", scope->file);
    put_start(writer, scope->vaddr);
    if (scope->n_machine > 1) {
        xml_number_attribute(&writer->xml, "m", scope->n_machine);
    }
    xml_put(&writer->xml, scope->is_irreducible ? " ir=\"1\">\n" : ">\n");
}

static void open_inlined(struct writer *writer, const struct structure_scope *scope)
{
    open_place(writer, scope->call_line, scope->call_file);
    xml_open(&writer->xml, "A");
    xml_number_attribute(&writer->xml, "l", scope->line);
    xml_path_attribute(&writer->xml, "f", scope->file);
    put_names(writer, scope);
    xml_put(&writer->xml, " v=\"{}\">\n");
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
        xml_put(&writer->xml, "</L>\n");
    else if (scope->kind == STRUCTURE_INLINED)
        xml_put(&writer->xml, "</A>\n</A>\n");
}

static bool link_scopes(struct writer *writer, const struct structure_function *function)
{
    size_t n = function->n_scopes;
    if (!vec_reserve(&writer->first_child, &writer->cap_first, n, sizeof *writer->first_child) ||
        !vec_reserve(&writer->next_child, &writer->cap_next, n, sizeof *writer->next_child) ||
        !vec_reserve(&writer->order, &writer->cap_order, 2 * function->n_spans, sizeof *writer->order))
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

static void put_function(struct writer *writer, const struct structure_function *function)
{
    const struct structure_scope *scope = &function->scopes[0];
    char nameless[32];
    if (!link_scopes(writer, function)) {
        writer->no_memory = true;
        return;
    }
    xml_open(&writer->xml, "P");
    if (scope->name) {
        put_names(writer, scope);
    } else {
        (void)snprintf(nameless, sizeof nameless, "func_0x%" PRIx64, scope->vaddr);
        xml_text_attribute(&writer->xml, "n", nameless);
    }
    xml_number_attribute(&writer->xml, "l", scope->line);
    put_start(writer, scope->vaddr);
    xml_put(&writer->xml, ">\n");
    put_scope(writer, function, 0);
    if (writer->types)
        structure_types_put_locals(writer->types, scope->vaddr, &writer->xml);
    xml_put(&writer->xml, "</P>\n");
}

static void put_variables(struct writer *writer, const struct structure_module *module)
{
    if (module->n_variables == 0)
        return;
    xml_open(&writer->xml, "F");
    xml_text_attribute(&writer->xml, "n", "<unknown file>");
    xml_put(&writer->xml, ">\n");
    for (size_t i = 0; i < module->n_variables; i++) {
        xml_open(&writer->xml, "V");
        xml_text_attribute(&writer->xml, "n", module->variables[i].name);
        xml_put(&writer->xml, " v=\"{");
        xml_put_range(&writer->xml, module->variables[i].start, module->variables[i].end);
        xml_put(&writer->xml, "}\"");
        if (writer->types)
            structure_types_put_static(writer->types, module->variables[i].start, &writer->xml);
        xml_put(&writer->xml, "/>\n");
    }
    xml_put(&writer->xml, "</F>\n");
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
                xml_put(&writer->xml, "</F>\n");
            xml_open(&writer->xml, "F");
            xml_path_attribute(&writer->xml, "n", file ? file : unknown.data);
            xml_put(&writer->xml, ">\n");
        }
        put_function(writer, &module->functions[i]);
    }
    if (module->n_functions)
        xml_put(&writer->xml, "</F>\n");
    buf_fini(&unknown);
}

static struct writer *writer_new(const struct structure_module *module, const struct structure_output *output)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->xml.out = output->out;
    writer->xml.replacements = output->replacements;
    writer->xml.n_replacements = output->n_replacements;
    writer->xml.id = 1;
    if (output->with_types)
        writer->types = structure_types_new(structure_module_symbols(module));
    if (!output->with_types || writer->types)
        return writer;
    free(writer);
    return NULL;
}

static void writer_free(struct writer *writer)
{
    structure_types_free(writer->types);
    free(writer->order);
    free(writer->first_child);
    free(writer->next_child);
    free(writer);
}

int structure_module_write(const struct structure_module *module, const struct structure_output *output,
                           struct error *err)
{
    struct writer *writer = writer_new(module, output);
    if (!writer)
        return error_set(err, ERR_MEMORY, "%s: out of memory while its structure is written", module->path);
    xml_put(&writer->xml, structure_xml_dtd());
    xml_put(&writer->xml, "<HPCToolkitStructure i=\"0\" version=\"4.7\" n=\"\">\n");
    xml_open(&writer->xml, "LM");
    xml_text_attribute(&writer->xml, "n", module->path);
    xml_put(&writer->xml, " v=\"{}\">\n");
    put_variables(writer, module);
    put_files(writer, module);
    if (writer->types)
        structure_types_put(writer->types, &writer->xml);
    xml_put(&writer->xml, "</LM>\n</HPCToolkitStructure>\n");
    xml_flush(&writer->xml);
    bool no_memory = writer->no_memory, is_failed = writer->xml.is_failed;
    writer_free(writer);
    if (no_memory)
        return error_set(err, ERR_MEMORY, "%s: out of memory while its structure is written", module->path);
    return is_failed ? error_set(err, ERR_IO, "the structure of %s cannot be written", module->path) : 0;
}
