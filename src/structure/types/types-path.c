/* SPDX-License-Identifier: BSD-3-Clause */
/* Descends from a type to the field at an offset. Every step goes to a part, and the number of steps is bounded, so
 * that the walk ends even in a type that claims to contain itself. */
#include "structure/types/types.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SHARED_MAX 6

struct descent {
    struct symbols *symbols;
    const char *text;
    struct type_spot *spot;
};

static void append(struct type_spot *spot, const char *text)
{
    size_t len = strlen(spot->path);
    (void)snprintf(spot->path + len, sizeof spot->path - len, "%s", text);
}

static void append_name(struct type_spot *spot, const char *name)
{
    append(spot, ".");
    append(spot, name);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether the text uses name as a member: after a "." or "->" or "%", as a word of its own. */
static bool mentions(const char *text, const char *name)
{
    size_t len = name ? strlen(name) : 0;
    for (const char *p = text; len && p && (p = strstr(p, name)); p++) {
        const char *before = p;
        while (before > text && isspace((unsigned char)before[-1]))
            before--;
        bool is_member = before > text && (before[-1] == '.' || before[-1] == '>' || before[-1] == '%');
        if (is_member && !is_word(p[len]))
            return true;
    }
    return false;
}

/* Whether the text mentions a field or, if it has no name, one inside it. */
static bool mentions_field(const struct descent *descent, const struct type_field *field)
{
    if (field->name)
        return mentions(descent->text, field->name);
    const struct type *type = types_get(descent->symbols, types_strip(descent->symbols, field->type));
    for (size_t i = 0; i < type->n_fields; i++)
        if (mentions(descent->text, type->fields[i].name))
            return true;
    return false;
}

/* Bytes [first, end) that an access to the field touches; for bit fields the storage unit of their declared type. */
static void extent(const struct descent *descent, const struct type_field *field, uint64_t *first, uint64_t *end)
{
    uint64_t size = types_size(descent->symbols, field->type);
    *first = field->offset_bytes;
    *end = *first + size;
    if (field->bit_size && size) {
        *first = field->bit_offset / (size * 8) * size;
        *end = *first + size;
    } else if (field->bit_size) {
        *end = (field->bit_offset + (uint64_t)field->bit_size + 7) / 8;
    }
}

/* Whether a bit of the field lies in the byte at offset. */
static bool holds_bits(const struct type_field *field, uint64_t offset)
{
    return field->bit_size && offset * 8 < (uint64_t)field->bit_offset + field->bit_size &&
           (offset + 1) * 8 > field->bit_offset;
}

struct candidates {
    const struct type_field *fields[SHARED_MAX];
    size_t n;
};

static void add_candidate(struct candidates *candidates, const struct type_field *field)
{
    if (candidates->n < SHARED_MAX)
        candidates->fields[candidates->n++] = field;
}

/* Keeps only the candidates that the text mentions, if it mentions any. */
static void keep_mentioned(const struct descent *descent, struct candidates *candidates)
{
    struct candidates kept = {.n = 0};
    for (size_t i = 0; descent->text && candidates->n > 1 && i < candidates->n; i++)
        if (mentions_field(descent, candidates->fields[i]))
            add_candidate(&kept, candidates->fields[i]);
    if (kept.n)
        *candidates = kept;
}

/* After the start of the storage unit only the bit fields in that byte can be meant; at its start all of them can,
 * since compilers load the whole unit. */
static void keep_exact(const struct descent *descent, uint64_t offset, struct candidates *candidates)
{
    struct candidates exact = {.n = 0};
    for (size_t i = 0; candidates->n > 1 && i < candidates->n; i++) {
        uint64_t first, end;
        extent(descent, candidates->fields[i], &first, &end);
        if (offset > first && holds_bits(candidates->fields[i], offset))
            add_candidate(&exact, candidates->fields[i]);
    }
    if (exact.n)
        *candidates = exact;
}

/* The fields at an offset: in a structure one (unless bit fields share it), in a union all that are large enough. */
static void find_fields(const struct descent *descent, const struct type *type, uint64_t offset,
                        struct candidates *candidates)
{
    bool has_plain = false;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct type_field *field = &type->fields[i];
        uint64_t first, end;
        extent(descent, field, &first, &end);
        bool is_flexible = field->flags & FIELD_IS_FLEXIBLE && offset >= field->offset_bytes;
        if ((offset < first || offset >= end) && !is_flexible)
            continue;
        if (!field->bit_size && type->kind == TYPE_STRUCT && !has_plain) {
            has_plain = true;
            candidates->n = 0; /* bytes of a storage unit that belong to other fields */
        } else if (has_plain && field->bit_size) {
            continue;
        } else if (has_plain && type->kind == TYPE_STRUCT && !is_flexible) {
            continue;
        }
        add_candidate(candidates, field);
    }
    keep_mentioned(descent, candidates);
    keep_exact(descent, offset, candidates);
}

/* Writes several fields that share the place: ".<a|b>". */
static void put_shared(const struct descent *descent, const struct candidates *candidates)
{
    struct type_spot *spot = descent->spot;
    uint64_t largest = 0, lowest = UINT64_MAX;
    append(spot, ".<");
    for (size_t i = 0; i < candidates->n; i++) {
        const struct type_field *field = candidates->fields[i];
        uint64_t first, end;
        extent(descent, field, &first, &end);
        append(spot, i ? "|" : "");
        append(spot, field->name ? field->name : "...");
        largest = end - first > largest ? end - first : largest;
        lowest = first < lowest ? first : lowest;
    }
    append(spot, ">");
    spot->kind = SPOT_FIELD;
    spot->offset_bytes += lowest;
    spot->size_bytes = largest;
    spot->type = candidates->fields[0]->type;
}

/* Goes from a structure to its field; false at the end. *offset becomes relative to the field. */
static bool enter_structure(struct descent *descent, const struct type *type, uint32_t *id, uint64_t *offset)
{
    struct candidates found = {.n = 0};
    struct type_spot *spot = descent->spot;
    find_fields(descent, type, *offset, &found);
    if (found.n == 0) {
        append(spot, ".<padding>");
        spot->kind = type->flags & (TYPE_IS_INCOMPLETE | TYPE_IS_TRUNCATED) ? SPOT_NONE : SPOT_PADDING;
        spot->offset_bytes += *offset;
        spot->size_bytes = 1;
        return false;
    }
    if (found.n > 1) {
        put_shared(descent, &found);
        return false;
    }
    const struct type_field *field = found.fields[0];
    uint64_t first, end;
    extent(descent, field, &first, &end);
    if (field->name && !(field->flags & FIELD_IS_BASE))
        append_name(spot, strncmp(field->name, "_vptr", 5) == 0 ? "_vptr" : field->name);
    spot->kind = SPOT_FIELD;
    spot->offset_bytes += first;
    spot->size_bytes = end - first;
    spot->type = field->type;
    *id = field->type;
    *offset = field->bit_size || *offset < first ? 0 : *offset - first;
    return true;
}

/* Goes from an array to its element; false when the data lie elsewhere or nothing is known about them. */
static bool enter_array(struct descent *descent, const struct type *type, uint32_t *id, uint64_t *offset)
{
    uint64_t size = types_size(descent->symbols, type->target);
    if (type->flags & TYPE_IS_DYNAMIC || size == 0)
        return false;
    if (type->n_dimensions && type->dimensions[type->n_dimensions - 1].stride_bytes > size)
        size = type->dimensions[type->n_dimensions - 1].stride_bytes;
    bool is_fortran = type->flags & TYPE_IS_FORTRAN;
    append(descent->spot, is_fortran ? "(:" : "");
    for (size_t i = 0; i < type->n_dimensions; i++)
        append(descent->spot, !is_fortran ? "[]" : i ? ",:" : "");
    append(descent->spot, is_fortran ? ")" : "");
    *offset %= size;
    *id = type->target;
    if (!descent->spot->size_bytes)
        descent->spot->size_bytes = type->size_bytes;
    return true;
}

/* Whether a type is a container of the C++ library, which is named as a whole: its members are internal. */
static bool is_opaque(const struct type *type)
{
    if (type->kind != TYPE_STRUCT || !type->name)
        return false;
    static const char *const names[] = {
        "vector<", "basic_string<", "map<",        "unordered_map<", "set<",      "unordered_set<", "deque<",
        "list<",   "shared_ptr<",   "unique_ptr<", "function<",      "multimap<", "forward_list<"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(type->name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void descend(struct descent *descent, uint32_t id, uint64_t offset)
{
    struct type_spot *spot = descent->spot;
    for (int i = 0; i < TYPES_DEPTH_MAX; i++) {
        id = types_strip(descent->symbols, id);
        const struct type *type = types_get(descent->symbols, id);
        spot->type = id;
        bool has_fields = (type->kind == TYPE_STRUCT || type->kind == TYPE_UNION) && !is_opaque(type);
        if (type->kind == TYPE_ARRAY) {
            if (!enter_array(descent, type, &id, &offset))
                return;
            if (spot->kind == SPOT_NONE)
                spot->kind = SPOT_WHOLE;
        } else if (has_fields && type->n_fields) {
            if (!enter_structure(descent, type, &id, &offset))
                return;
        } else {
            if (type->kind == TYPE_UNKNOWN || type->flags & TYPE_IS_INCOMPLETE)
                spot->kind = SPOT_NONE;
            else if (spot->kind == SPOT_NONE)
                spot->kind = SPOT_WHOLE;
            return;
        }
    }
    spot->kind = SPOT_NONE;
}

/* Turns a path into Fortran's form: "(:)%mass" for "[].mass". */
static void spell_fortran(struct symbols *symbols, uint32_t id, struct type_spot *spot)
{
    char text[TYPES_PATH_BYTES] = "";
    size_t len = 0;
    if (!(types_get(symbols, id)->flags & TYPE_IS_FORTRAN))
        return;
    for (const char *p = spot->path; *p && len + 4 < sizeof text; p++) {
        if (*p == '[' && p[1] == ']') {
            memcpy(text + len, "(:)", 3);
            len += 3;
            p++;
        } else {
            text[len++] = *p == '.' ? '%' : *p;
        }
    }
    text[len] = 0;
    memcpy(spot->path, text, sizeof text);
}

void types_spot(struct symbols *symbols, uint32_t id, uint64_t offset_bytes, const char *text, struct type_spot *spot)
{
    struct descent descent = {symbols, text, spot};
    uint64_t size = types_size(symbols, id), tail;
    *spot = (struct type_spot){.kind = SPOT_NONE};
    if (size && offset_bytes >= size && !types_flexible(symbols, id, &tail))
        return;
    descend(&descent, id, offset_bytes);
    if (spot->kind == SPOT_WHOLE && !spot->size_bytes)
        spot->size_bytes = size;
    spell_fortran(symbols, id, spot);
}

bool types_flexible(struct symbols *symbols, uint32_t id, uint64_t *offset_bytes)
{
    const struct type *type = types_get(symbols, types_strip(symbols, id));
    if (type->kind != TYPE_STRUCT || type->n_fields == 0 ||
        !(type->fields[type->n_fields - 1].flags & FIELD_IS_FLEXIBLE))
        return false;
    *offset_bytes = type->fields[type->n_fields - 1].offset_bytes;
    return true;
}

void types_spot_in_block(struct symbols *symbols, uint32_t id, uint64_t block_bytes, uint64_t header_bytes,
                         uint64_t offset_bytes, const char *text, struct type_spot *spot)
{
    struct descent descent = {symbols, text, spot};
    uint64_t size = types_size(symbols, id), tail;
    bool is_one = types_flexible(symbols, id, &tail);
    *spot = (struct type_spot){.kind = SPOT_NONE};
    if ((!size && !is_one) || offset_bytes < header_bytes)
        return;
    offset_bytes -= header_bytes;
    if (is_one) {
        descend(&descent, id, offset_bytes);
        return;
    }
    bool is_single = block_bytes && block_bytes - header_bytes < 2 * size;
    if (is_single && offset_bytes >= size)
        return;
    append(spot, is_single ? "" : "[]");
    descend(&descent, id, offset_bytes % size);
    if (spot->kind == SPOT_WHOLE && !spot->size_bytes)
        spot->size_bytes = size;
    spell_fortran(symbols, id, spot);
}
