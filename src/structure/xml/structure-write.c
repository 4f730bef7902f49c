/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes structure files: XML that HPCToolkit's tools read, version 4.7 with variables. Text goes into one block of
 * memory, which is written whenever it is full. */
#include "structure/xml/structure-file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/search.h"
#include "base/vec.h"
#include "structure/structure.h"
#include "structure/types/locals.h"
#include "structure/types/types.h"

/* --- text, numbers and attributes --- */

#define XML_OUT_BYTES (UINT32_C(1) << 16)

#define ROOM_BYTES 128 /* for the longest text that is added at once: the beginning of an element */
#define DIGITS_MAX 20

/* One file being written. Ready when all is zero except out. */
struct xml_out {
    FILE *out;
    const struct xml_replacement *replacements; /* [n_replacements] of the beginnings of paths */
    size_t n_replacements;
    uint64_t id;    /* of the last element */
    bool is_failed; /* out cannot be written */
    size_t n_bytes;
    char bytes[XML_OUT_BYTES];
};

/* Writes the rest. */
static void xml_flush(struct xml_out *xml)
{
    if (!xml->is_failed && fwrite(xml->bytes, 1, xml->n_bytes, xml->out) != xml->n_bytes)
        xml->is_failed = true;
    xml->n_bytes = 0;
}

/* Bytes as they are. */
static void xml_put_bytes(struct xml_out *xml, const char *bytes, size_t n)
{
    if (n <= XML_OUT_BYTES - xml->n_bytes) {
        memcpy(xml->bytes + xml->n_bytes, bytes, n);
        xml->n_bytes += n;
        return;
    }
    while (n > 0) {
        if (xml->n_bytes == XML_OUT_BYTES)
            xml_flush(xml);
        size_t part = n < XML_OUT_BYTES - xml->n_bytes ? n : XML_OUT_BYTES - xml->n_bytes;
        memcpy(xml->bytes + xml->n_bytes, bytes, part);
        xml->n_bytes += part;
        bytes += part;
        n -= part;
    }
}

/* Text as it is; inline, because the compiler knows the length of most texts. */
static inline void xml_put(struct xml_out *xml, const char *text)
{
    size_t n = strlen(text);
    if (n > XML_OUT_BYTES - xml->n_bytes) {
        xml_put_bytes(xml, text, n);
        return;
    }
    memcpy(xml->bytes + xml->n_bytes, text, n);
    xml->n_bytes += n;
}

/* Where the next text of at most ROOM_BYTES goes. */
static char *room(struct xml_out *xml)
{
    if (XML_OUT_BYTES - xml->n_bytes < ROOM_BYTES)
        xml_flush(xml);
    return xml->bytes + xml->n_bytes;
}

/* at must have room for DIGITS_MAX. */
static char *add_number(char *at, uint64_t value)
{
    char digits[2 * DIGITS_MAX] = "";
    unsigned first = DIGITS_MAX;
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    memcpy(at, digits + first, DIGITS_MAX);
    return at + DIGITS_MAX - first;
}

static char *add_text(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

static char *add_address(char *at, uint64_t value)
{
    unsigned n = value ? (67u - (unsigned)__builtin_clzll(value)) / 4 : 1;
    *at++ = '0';
    *at++ = 'x';
    for (unsigned i = n; i-- > 0; value >>= 4)
        at[i] = "0123456789abcdef"[value & 15];
    return at + n;
}

static void xml_put_number(struct xml_out *xml, uint64_t value)
{
    char *at = room(xml);
    xml->n_bytes += (size_t)(add_number(at, value) - at);
}

/* "[0xstart-0xend)" */
static void xml_put_range(struct xml_out *xml, uint64_t start, uint64_t end)
{
    char *from = room(xml), *at = from;
    *at++ = '[';
    at = add_address(at, start);
    *at++ = '-';
    at = add_address(at, end);
    *at++ = ')';
    xml->n_bytes += (size_t)(at - from);
}

/* Length of the UTF-8 character at text, 0 when XML does not allow it. */
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

/* Text in which everything that XML does not allow is replaced. */
static void xml_put_escaped(struct xml_out *xml, const char *text)
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
        xml_put_bytes(xml, from, (size_t)(text - from));
        if (*text == 0)
            return;
        xml_put(xml, instead);
        from = ++text;
    }
}

static void open_attribute(struct xml_out *xml, const char *name)
{
    xml_put(xml, " ");
    xml_put(xml, name);
    xml_put(xml, "=\"");
}

/* An attribute: text (NULL: empty), number, address, signed number, path with its beginning replaced. */
static void xml_text_attribute(struct xml_out *xml, const char *name, const char *text)
{
    open_attribute(xml, name);
    xml_put_escaped(xml, text ? text : "");
    xml_put(xml, "\"");
}

static void xml_number_attribute(struct xml_out *xml, const char *name, uint64_t value)
{
    open_attribute(xml, name);
    xml_put_number(xml, value);
    xml_put(xml, "\"");
}

static void xml_address_attribute(struct xml_out *xml, const char *name, uint64_t value)
{
    open_attribute(xml, name);
    char *from = room(xml);
    xml->n_bytes += (size_t)(add_address(from, value) - from);
    xml_put(xml, "\"");
}

static void xml_signed_attribute(struct xml_out *xml, const char *name, int64_t value)
{
    open_attribute(xml, name);
    if (value < 0)
        xml_put(xml, "-");
    xml_put_number(xml, value < 0 ? -(uint64_t)value : (uint64_t)value);
    xml_put(xml, "\"");
}

static void xml_path_attribute(struct xml_out *xml, const char *name, const char *path)
{
    open_attribute(xml, name);
    for (size_t i = 0; path && i < xml->n_replacements; i++) {
        size_t len = strlen(xml->replacements[i].old_prefix);
        if (strncmp(path, xml->replacements[i].old_prefix, len) == 0) {
            xml_put_escaped(xml, xml->replacements[i].new_prefix);
            path += len;
            break;
        }
    }
    xml_put_escaped(xml, path ? path : "");
    xml_put(xml, "\"");
}

/* Begins an element: its tag and number. */
static void xml_open(struct xml_out *xml, const char *tag)
{
    xml_put(xml, "<");
    xml_put(xml, tag);
    xml_number_attribute(xml, "i", ++xml->id);
}

/* Begins an element that covers code of a line, up to the addresses: <tag i="number" l="line" v="{ */
static void xml_open_code(struct xml_out *xml, const char *tag, uint32_t line)
{
    char *from = room(xml), *at = add_text(from, "<");
    at = add_text(at, tag);
    at = add_number(add_text(at, " i=\""), ++xml->id);
    at = add_number(add_text(at, "\" l=\""), line);
    at = add_text(at, "\" v=\"{");
    xml->n_bytes += (size_t)(at - from);
}

/* --- the document type --- */

/* Elements and attributes as HPCToolkit's format has them, version 4.7 with variables; L has two attributes more. */

/* XML declaration and document type, which come before the root element. */
static const char *structure_xml_dtd(void)
{
    return "<?xml version=\"1.0\"?>\n"
           "<!DOCTYPE HPCToolkitStructure [\n"
           "<!ELEMENT HPCToolkitStructure (LM)*>\n"
           "<!ATTLIST HPCToolkitStructure version CDATA #REQUIRED i CDATA #REQUIRED n CDATA #IMPLIED>\n"
           "<!-- load module -->\n"
           "<!ELEMENT LM (F|P|T)*>\n"
           "<!ATTLIST LM i CDATA #REQUIRED n CDATA #REQUIRED v CDATA #IMPLIED>\n"
           "<!-- source file -->\n"
           "<!ELEMENT F (P|L|S|V)*>\n"
           "<!ATTLIST F i CDATA #REQUIRED n CDATA #REQUIRED>\n"
           "<!-- variable -->\n"
           "<!ELEMENT V EMPTY>\n"
           "<!ATTLIST V i CDATA #REQUIRED v CDATA #REQUIRED n CDATA #REQUIRED ln CDATA #IMPLIED l CDATA #IMPLIED\n"
           "  t CDATA #IMPLIED>\n"
           "<!-- function; ln: link name when it differs -->\n"
           "<!ELEMENT P (P|A|L|S|C|V|D)*>\n"
           "<!ATTLIST P i CDATA #REQUIRED n CDATA #REQUIRED ln CDATA #IMPLIED l CDATA #IMPLIED s CDATA #IMPLIED\n"
           "  v CDATA #IMPLIED>\n"
           "<!-- inlined function, in one without name that gives the position of the call -->\n"
           "<!ELEMENT A (A|L|S|C)*>\n"
           "<!ATTLIST A i CDATA #REQUIRED f CDATA #IMPLIED n CDATA #IMPLIED ln CDATA #IMPLIED l CDATA #IMPLIED\n"
           "  v CDATA #IMPLIED>\n"
           "<!-- loop; l: first and last line; m: machine loops, when there are several; ir: irreducible -->\n"
           "<!ELEMENT L (A|L|S|C)*>\n"
           "<!ATTLIST L i CDATA #REQUIRED l CDATA #REQUIRED f CDATA #IMPLIED v CDATA #IMPLIED m CDATA #IMPLIED\n"
           "  ir CDATA #IMPLIED>\n"
           "<!-- statement -->\n"
           "<!ELEMENT S EMPTY>\n"
           "<!ATTLIST S i CDATA #REQUIRED l CDATA #REQUIRED v CDATA #IMPLIED>\n"
           "<!-- call -->\n"
           "<!ELEMENT C (C)*>\n"
           "<!ATTLIST C i CDATA #REQUIRED l CDATA #REQUIRED v CDATA #IMPLIED t CDATA #IMPLIED d CDATA #IMPLIED>\n"
           "<!-- additions, by the option types: local variable, its places, type, field, dimension of an array -->\n"
           "<!ELEMENT D (R)*>\n"
           "<!ATTLIST D i CDATA #REQUIRED n CDATA #REQUIRED k CDATA #IMPLIED p CDATA #IMPLIED f CDATA #IMPLIED\n"
           "  l CDATA #IMPLIED s CDATA #IMPLIED t CDATA #IMPLIED>\n"
           "<!ELEMENT R EMPTY>\n"
           "<!ATTLIST R i CDATA #REQUIRED k CDATA #REQUIRED r CDATA #IMPLIED o CDATA #IMPLIED v CDATA #REQUIRED>\n"
           "<!ELEMENT T (M|E)*>\n"
           "<!ATTLIST T i CDATA #REQUIRED d CDATA #REQUIRED k CDATA #REQUIRED n CDATA #IMPLIED s CDATA #IMPLIED\n"
           "  f CDATA #IMPLIED l CDATA #IMPLIED t CDATA #IMPLIED>\n"
           "<!ELEMENT M EMPTY>\n"
           "<!ATTLIST M i CDATA #REQUIRED n CDATA #REQUIRED o CDATA #REQUIRED b CDATA #IMPLIED w CDATA #IMPLIED\n"
           "  k CDATA #IMPLIED t CDATA #IMPLIED>\n"
           "<!ELEMENT E EMPTY>\n"
           "<!ATTLIST E i CDATA #REQUIRED c CDATA #REQUIRED st CDATA #IMPLIED lo CDATA #IMPLIED>\n"
           "]>\n";
}

/* --- types, and locals with their places --- */

/* What structure files contain beyond HPCToolkit's format: elements D (local), R (place), T (type), M (field), E
 * (dimension), see doc/FORMAT.md. A type is written once, after everything that refers to it. */

struct structure_types {
    struct symbols *symbols;
    uint32_t *named; /* [n_named] ids in the order in which they were named */
    size_t n_named, cap_named;
    bool *is_named; /* [cap_is_named] by id */
    size_t cap_is_named;
};

static struct structure_types *structure_types_new(struct symbols *symbols)
{
    struct structure_types *types = calloc(1, sizeof *types);
    if (types)
        types->symbols = symbols;
    return types;
}

/* symbols: the module, borrowed. NULL when out of memory. */
static void structure_types_free(struct structure_types *types)
{
    if (!types)
        return;
    free(types->named);
    free(types->is_named);
    free(types);
}

/* Writes the attribute t and records that the type is needed. */
static void put_type(struct structure_types *types, uint32_t id, struct xml_out *xml)
{
    if (id == 0 || !vec_reserve(&types->is_named, &types->cap_is_named, (size_t)id + 1, sizeof *types->is_named))
        return;
    if (!types->is_named[id]) {
        if (!vec_reserve(&types->named, &types->cap_named, types->n_named + 1, sizeof *types->named))
            return;
        types->is_named[id] = true;
        types->named[types->n_named++] = id;
    }
    xml_number_attribute(xml, "t", id);
}

/* Writes the type of the variable at vaddr as an attribute, if it is known. */
static void structure_types_put_static(struct structure_types *types, uint64_t vaddr, struct xml_out *xml)
{
    uint64_t start = 0;
    const char *name = NULL;
    uint32_t id = types_of_static(types->symbols, vaddr, false, &start, &name);
    if (start == vaddr)
        put_type(types, id, xml);
}

static void put_place(const struct local_place *place, struct xml_out *xml)
{
    static const char *const kinds[LOCAL_PLACE_KINDS] = {
        [LOCAL_UNKNOWN] = "unknown",   [LOCAL_FRAME] = "frame",   [LOCAL_INDIRECT] = "indirect",
        [LOCAL_REGISTER] = "register", [LOCAL_MEMORY] = "memory", [LOCAL_STATIC] = "static",
        [LOCAL_ENTRY] = "entry",       [LOCAL_VALUE] = "value"};
    bool has_register = place->kind == LOCAL_REGISTER || place->kind == LOCAL_MEMORY || place->kind == LOCAL_ENTRY;
    bool has_offset = place->kind == LOCAL_FRAME || place->kind == LOCAL_INDIRECT || place->kind == LOCAL_MEMORY ||
                      place->kind == LOCAL_STATIC;
    xml_open(xml, "R");
    xml_text_attribute(xml, "k", kinds[place->kind]);
    if (has_register)
        xml_signed_attribute(xml, "r", place->reg);
    if (has_offset)
        xml_signed_attribute(xml, "o", place->offset);
    xml_put(xml, " v=\"{");
    xml_put_range(xml, place->low, place->high);
    xml_put(xml, "}\"/>\n");
}

static void put_local(struct structure_types *types, const struct local *local, struct xml_out *xml)
{
    xml_open(xml, "D");
    xml_text_attribute(xml, "n", local->name);
    if (local->flags & LOCAL_IS_PARAMETER)
        xml_put(xml, " k=\"parameter\"");
    if (local->function)
        xml_text_attribute(xml, "p", local->function);
    xml_path_attribute(xml, "f", local->decl_file);
    xml_number_attribute(xml, "l", local->decl_line);
    if (local->size_bytes)
        xml_number_attribute(xml, "s", local->size_bytes);
    put_type(types, local->type, xml);
    xml_put(xml, ">\n");
    for (size_t i = 0; i < local->n_places; i++)
        put_place(&local->places[i], xml);
    xml_put(xml, "</D>\n");
}

/* Writes the local variables of the function at vaddr, including those of functions inlined into it. */
static void structure_types_put_locals(struct structure_types *types, uint64_t vaddr, struct xml_out *xml)
{
    const struct local *locals = NULL;
    size_t n = locals_of_function(types->symbols, vaddr, &locals);
    for (size_t i = 0; i < n; i++)
        if (locals[i].name && !(locals[i].flags & LOCAL_IS_ARTIFICIAL))
            put_local(types, &locals[i], xml);
}

static void put_field(struct structure_types *types, const struct type_field *field, struct xml_out *xml)
{
    xml_open(xml, "M");
    xml_text_attribute(xml, "n", field->name);
    xml_number_attribute(xml, "o", field->offset_bytes);
    if (field->bit_size) {
        xml_number_attribute(xml, "b", field->bit_offset);
        xml_number_attribute(xml, "w", field->bit_size);
    }
    if (field->flags & FIELD_IS_BASE)
        xml_put(xml, " k=\"base\"");
    put_type(types, field->type, xml);
    xml_put(xml, "/>\n");
}

static void put_dimension(const struct type_dimension *dimension, struct xml_out *xml)
{
    xml_open(xml, "E");
    xml_number_attribute(xml, "c", dimension->count);
    if (dimension->stride_bytes)
        xml_number_attribute(xml, "st", dimension->stride_bytes);
    if (dimension->lower)
        xml_signed_attribute(xml, "lo", dimension->lower);
    xml_put(xml, "/>\n");
}

static void put_one(struct structure_types *types, uint32_t id, struct xml_out *xml)
{
    static const char *const kinds[TYPE_KINDS] = {
        [TYPE_UNKNOWN] = "unknown", [TYPE_BASE] = "base",         [TYPE_POINTER] = "pointer",
        [TYPE_ARRAY] = "array",     [TYPE_STRUCT] = "struct",     [TYPE_UNION] = "union",
        [TYPE_ENUM] = "enum",       [TYPE_FUNCTION] = "function", [TYPE_ALIAS] = "alias"};
    const struct type *type = types_get(types->symbols, id);
    xml_open(xml, "T");
    xml_number_attribute(xml, "d", id);
    xml_text_attribute(xml, "k", kinds[type->kind]);
    if (type->name)
        xml_text_attribute(xml, "n", type->name);
    if (type->size_bytes)
        xml_number_attribute(xml, "s", type->size_bytes);
    if (type->decl_file) {
        xml_path_attribute(xml, "f", type->decl_file);
        xml_number_attribute(xml, "l", type->decl_line);
    }
    put_type(types, type->target, xml);
    xml_put(xml, ">\n");
    for (size_t i = 0; i < type->n_fields; i++)
        put_field(types, &type->fields[i], xml);
    for (size_t i = 0; i < type->n_dimensions; i++)
        put_dimension(&type->dimensions[i], xml);
    xml_put(xml, "</T>\n");
}

/* Writes all types that were referred to so far, and those that they are made of. */
static void structure_types_put(struct structure_types *types, struct xml_out *xml)
{
    for (size_t i = 0; i < types->n_named; i++)
        put_one(types, types->named[i], xml);
}

/* --- files, functions, scopes and lines --- */

/* A span in the order in which spans are written: group is scope << 32 | file, place is line << 32 | index. */
struct sorted_span {
    uint64_t group, place;
};

/* One file while it is written. */
struct writer {
    struct xml_out xml;
    struct structure_types *types; /* NULL: no types or locals are written */
    bool no_memory;
    struct sorted_span *order;          /* [spans of a function], and as many more for sorting */
    uint32_t *first_child, *next_child; /* [scopes of a function] */
    size_t cap_order, cap_first, cap_next;
    bool is_open; /* a statement is open, of which [start, end) is still to be written */
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

/* Merges [from, middle) and [middle, end), each sorted, into out, starting at from. */
static void merge(const struct sorted_span *in, size_t from, size_t middle, size_t end, struct sorted_span *out)
{
    size_t left = from, right = middle;
    for (size_t i = from; i < end; i++)
        out[i] = right == end || (left < middle && is_before(&in[left], &in[right])) ? in[left++] : in[right++];
}

/* Merge sort of order [n], back and forth between the two halves of its memory. */
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

/* Number of a file among those of a function: 0 for that of its scope, the others by first appearance. */
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

/* Adds code to the statement being written for a line; the first code opens the statement. */
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

/* The first call of a span; those that follow before its end belong to it too. */
static const struct structure_call *first_call(const struct structure_function *function,
                                               const struct structure_span *span)
{
    return function->calls +
           search_below(function->calls, function->n_calls, SEARCH_KEY(struct structure_call, start), span->start);
}

/* Writes the spans from order[i] on that are one line of one scope as one statement, leaving out calls, if anything
 * remains; returns the index after them. */
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

/* Opens an element with an empty name, which groups what lies at a position. */
static void open_place(struct writer *writer, uint32_t line, const char *file)
{
    xml_open(&writer->xml, "A");
    xml_number_attribute(&writer->xml, "l", line);
    xml_path_attribute(&writer->xml, "f", file);
    xml_put(&writer->xml, " n=\"\" v=\"{}\">\n");
}

/* Writes the statements and calls of a scope, those of each other file in a group. i: index into order. */
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

/* For the search of a scope's first span. */
struct sought {
    const struct writer *writer;
    const struct structure_function *function;
    uint32_t scope;
};

static bool is_before_scope(const void *context, size_t i)
{
    const struct sought *sought = context;
    return sorted_span(sought->writer, sought->function, i)->scope < sought->scope;
}

/* Index into order of a scope's first span. */
static size_t find_spans(const struct writer *writer, const struct structure_function *function, uint32_t scope)
{
    return search_where(function->n_spans, is_before_scope, &(struct sought){writer, function, scope});
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
    struct buf unknown = {0};
    buf_printf(&unknown, "[%s]", path_last(module->path));
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
