/* SPDX-License-Identifier: BSD-3-Clause */
/* Caliper's own files, .cali: a line for each node and record. A node has an attribute, which is a node as well, and
 * its data; an attribute's name is its data, and what stands above it is its type and properties. A record refers to
 * nodes, with all that stands above them, and has values. What is nested (regions, functions, loops) is the path of a
 * record, from the top; a record without one belongs to no node and is passed over, and so are those of other channels
 * than the profile of regions. Values that are no numbers, and what else a record refers to, are attributes of its
 * node. Ranks and names are those of reader-caliper.c.
 * Source: Caliper's documentation, and the constants of its cali_types.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_cali;

/* Numbers of attributes that every file has. */
enum { ATTRIBUTE_NAME = 8, ATTRIBUTE_TYPE = 9, ATTRIBUTE_PROPERTIES = 10 };

enum { PROPERTY_HIDDEN = 128, PROPERTY_NESTED = 256, PROPERTY_GLOBAL = 512 };

/* The nodes of types, of every file. */
enum { TYPE_INT = 1, TYPE_STRING = 3, TYPE_TYPE = 7, TYPES };

#define NO_NODE UINT32_MAX

struct cali_node {
    uint64_t id, attribute; /* numbers of the file */
    uint32_t parent;        /* index; NO_NODE: none */
    uint32_t data;          /* text */
};

/* What an attribute is, found when it is first asked for. */
struct cali_attribute {
    bool is_known, is_number, is_rank, is_place, is_path;
    uint64_t properties;
    size_t column; /* of the maker; SIZE_MAX: none yet */
    double scale;
};

struct cali_row {
    uint32_t node;          /* of the maker */
    uint32_t rank;          /* text of its rank; 0: none */
    size_t first, n_values; /* of values */
};

struct cali_value {
    uint32_t attribute, text; /* index of a node; id */
};

struct cali {
    const char *name; /* of the file */
    size_t line, len_bytes;
    char *at; /* in the line */
    struct strtab texts;
    struct cali_node *nodes; /* [n_nodes] */
    size_t n_nodes, cap_nodes;
    struct slots by_id;
    struct cali_attribute *attributes; /* [nodes] */
    size_t cap_attributes;
    struct cali_row *rows; /* [n_rows] */
    size_t n_rows, cap_rows;
    struct cali_value *values; /* [n_values] of rows */
    size_t n_values, cap_values;
    uint64_t *refs, *ids; /* [n] of the record that is read */
    size_t n_refs, cap_refs, n_ids, cap_ids;
    uint32_t *data; /* [n_data] texts */
    size_t n_data, cap_data;
    uint32_t *path; /* room for the nodes above one */
    size_t cap_path;
    struct frame_paths paths, lines;
    struct frame_maker maker;
};

static int bad_record(const struct cali *cali, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: line %zu: %s", cali->name, cali->line, reason);
}

/* --- nodes --- */

static uint64_t hash_id(const void *item)
{
    return bytes_hash(BYTES_HASH_START, &((const struct cali_node *)item)->id, sizeof(uint64_t));
}

static bool is_same_id(const void *a, const void *b)
{
    return ((const struct cali_node *)a)->id == ((const struct cali_node *)b)->id;
}

static const struct slots_kind nodes_kind = {sizeof(struct cali_node), hash_id, is_same_id};

static uint32_t find_node(const struct cali *cali, uint64_t id)
{
    struct cali_node like = {.id = id};
    size_t at = slots_find(&cali->by_id, &nodes_kind, cali->nodes, &like);
    return at == SLOTS_NONE ? NO_NODE : (uint32_t)at;
}

static bool add_node(struct cali *cali, uint64_t id, uint64_t attribute, uint32_t parent, const char *data)
{
    int64_t text = strtab_intern(&cali->texts, data);
    struct cali_node like = {id, attribute, parent, text < 0 ? 0 : (uint32_t)text};
    if (text < 0 || cali->n_nodes >= NO_NODE - 1)
        return false;
    return slots_put(&cali->by_id, &nodes_kind, &cali->nodes, &cali->n_nodes, &cali->cap_nodes, &like) != SLOTS_NONE;
}

/* The nodes that files need not say. */
static bool add_first_nodes(struct cali *cali)
{
    static const char *const types[TYPES] = {"usr", "int", "uint", "string", "addr", "double", "bool", "type"};
    bool ok = strtab_intern(&cali->texts, "") == 0;
    for (uint64_t i = 0; ok && i < TYPES; i++)
        ok = add_node(cali, i, ATTRIBUTE_TYPE, NO_NODE, types[i]);
    return ok && add_node(cali, ATTRIBUTE_NAME, ATTRIBUTE_NAME, TYPE_STRING, "cali.attribute.name") &&
           add_node(cali, ATTRIBUTE_TYPE, ATTRIBUTE_NAME, TYPE_TYPE, "cali.attribute.type") &&
           add_node(cali, ATTRIBUTE_PROPERTIES, ATTRIBUTE_NAME, TYPE_INT, "cali.attribute.prop");
}

static const char *text_at(const struct cali *cali, uint32_t text)
{
    return cali->texts.strings[text];
}

/* What the attribute with a number of the file is; NULL when there is none (*index NO_NODE), or out of memory. */
static struct cali_attribute *find_attribute(struct cali *cali, uint64_t id, uint32_t *index)
{
    *index = find_node(cali, id);
    if (*index == NO_NODE || cali->nodes[*index].attribute != ATTRIBUTE_NAME) {
        *index = NO_NODE;
        return NULL;
    }
    if (!vec_reserve(&cali->attributes, &cali->cap_attributes, (size_t)*index + 1, sizeof *cali->attributes))
        return NULL;
    struct cali_attribute *found = &cali->attributes[*index];
    if (found->is_known)
        return found;
    const char *name = text_at(cali, cali->nodes[*index].data), *type = "";
    uint32_t at = cali->nodes[*index].parent;
    for (size_t steps = 0; at != NO_NODE && steps < cali->n_nodes; at = cali->nodes[at].parent, steps++) {
        if (cali->nodes[at].attribute == ATTRIBUTE_TYPE && !*type)
            type = text_at(cali, cali->nodes[at].data);
        if (cali->nodes[at].attribute == ATTRIBUTE_PROPERTIES && !found->properties)
            found->properties = strtoull(text_at(cali, cali->nodes[at].data), NULL, 10);
    }
    found->is_number = strcmp(type, "int") == 0 || strcmp(type, "uint") == 0 || strcmp(type, "double") == 0;
    found->is_rank = caliper_is_rank(name);
    found->is_place = caliper_is_place(name);
    found->is_path = (found->properties & PROPERTY_NESTED) || strcmp(name, CALIPER_CALL_PATH) == 0;
    found->column = SIZE_MAX;
    found->scale = 1;
    found->is_known = true;
    return found;
}

/* --- lines --- */

/* The next word, up to = or , with what a backslash hides; it is ended in place, and *end says by what. */
static char *take_word(struct cali *cali, char *end)
{
    char *word = cali->at, *from = word, *to = word;
    for (; *from && *from != '=' && *from != ','; from++) {
        if (*from == '\\' && from[1]) {
            from++;
            *to++ = *from;
            if (*from == 'n')
                to[-1] = '\n';
        } else {
            *to++ = *from;
        }
    }
    *end = *from;
    cali->at = *from ? from + 1 : from;
    *to = 0;
    return word;
}

static bool take_id(const char *word, uint64_t *id)
{
    char *end;
    *id = strtoull(word, &end, 10);
    return *word >= '0' && *word <= '9' && !*end;
}

/* The words up to the next comma, as numbers. */
static int take_ids(struct cali *cali, uint64_t **ids, size_t *n, size_t *capacity, struct error *err)
{
    for (char end = '='; end == '=';) {
        uint64_t id;
        if (!take_id(take_word(cali, &end), &id))
            return bad_record(cali, "the number of a node is none", err);
        if (!vec_reserve(ids, capacity, *n + 1, sizeof **ids))
            return error_memory(err);
        (*ids)[(*n)++] = id;
    }
    return 0;
}

static int take_data(struct cali *cali, struct error *err)
{
    for (char end = '='; end == '=';) {
        int64_t text = strtab_intern(&cali->texts, take_word(cali, &end));
        if (text < 0 || !vec_reserve(&cali->data, &cali->cap_data, cali->n_data + 1, sizeof *cali->data))
            return error_memory(err);
        cali->data[cali->n_data++] = (uint32_t)text;
    }
    return 0;
}

/* KEY=..., of a record or node, into the lists of this record; data of a node is its only text. */
static int take_fields(struct cali *cali, uint64_t *id, uint64_t *parent, struct error *err)
{
    int code = 0;
    cali->n_refs = cali->n_ids = cali->n_data = 0;
    while (code == 0 && *cali->at) {
        char end;
        const char *key = take_word(cali, &end);
        if (end != '=')
            return bad_record(cali, "a word has no value", err);
        if (strcmp(key, "ref") == 0)
            code = take_ids(cali, &cali->refs, &cali->n_refs, &cali->cap_refs, err);
        else if (strcmp(key, "attr") == 0)
            code = take_ids(cali, &cali->ids, &cali->n_ids, &cali->cap_ids, err);
        else if (strcmp(key, "data") == 0)
            code = take_data(cali, err);
        else if ((strcmp(key, "id") == 0 && !take_id(take_word(cali, &end), id)) ||
                 (strcmp(key, "parent") == 0 && !take_id(take_word(cali, &end), parent)))
            code = bad_record(cali, "the number of a node is none", err);
    }
    return code;
}

static int take_node(struct cali *cali, struct error *err)
{
    uint64_t id = UINT64_MAX, above = UINT64_MAX;
    int code = take_fields(cali, &id, &above, err);
    uint32_t parent = above == UINT64_MAX ? NO_NODE : find_node(cali, above);
    if (code != 0)
        return code;
    if (id == UINT64_MAX || cali->n_ids != 1)
        return bad_record(cali, "a node has no id, or no attribute", err);
    if (above != UINT64_MAX && (parent == NO_NODE || cali->nodes[parent].id == id))
        return bad_record(cali, "what is above a node is not known", err);
    if (find_node(cali, id) != NO_NODE && id > ATTRIBUTE_PROPERTIES)
        return bad_record(cali, "a node is there twice", err);
    if (id <= ATTRIBUTE_PROPERTIES) /* as it is in every file */
        return 0;
    return add_node(cali, id, cali->ids[0], parent, cali->n_data > 0 ? text_at(cali, cali->data[0]) : "")
               ? 0
               : error_memory(err);
}

/* --- records --- */

static bool add_value(struct cali *cali, struct cali_row *row, uint32_t attribute, uint32_t text)
{
    if (!vec_reserve(&cali->values, &cali->cap_values, cali->n_values + 1, sizeof *cali->values))
        return false;
    cali->values[cali->n_values++] = (struct cali_value){attribute, text};
    row->n_values++;
    return true;
}

/* What a record says of an attribute: a step of its path, its rank, place, or a value. */
static int take_entry(struct cali *cali, struct cali_row *row, uint64_t attribute, uint32_t text, uint32_t *place,
                      bool *is_other, struct error *err)
{
    uint32_t index;
    const struct cali_attribute *found = find_attribute(cali, attribute, &index);
    if (!found)
        return index == NO_NODE ? bad_record(cali, "what should be an attribute is none", err) : error_memory(err);
    const char *name = text_at(cali, cali->nodes[index].data);
    if (strcmp(name, "spot.channel") == 0) {
        *is_other |= strcmp(text_at(cali, text), "regionprofile") != 0;
    } else if (found->is_path) {
        bool is_call = strcmp(name, CALIPER_CALL_PATH) == 0;
        const char *label = text_at(cali, text);
        row->node = paths_node(
            &cali->paths, &cali->maker, row->node, text,
            &(struct made_node){.kind = is_call ? FRAME_FUNCTION : FRAME_GROUP, .name = *label ? label : "UNKNOWN"});
    } else if (found->is_rank) {
        row->rank = text;
    } else if (found->is_place) {
        *place = text;
    } else if (!(found->properties & (PROPERTY_HIDDEN | PROPERTY_GLOBAL)) && !add_value(cali, row, index, text)) {
        return error_memory(err);
    }
    return cali->maker.failed ? error_memory(err) : 0;
}

/* A node that a record refers to, and those above it, from the top. */
static int take_reference(struct cali *cali, struct cali_row *row, uint64_t id, uint32_t *place, bool *is_other,
                          struct error *err)
{
    size_t n = 0;
    int code = 0;
    uint32_t at = find_node(cali, id);
    if (at == NO_NODE)
        return bad_record(cali, "a record refers to a node that is not known", err);
    for (; at != NO_NODE; at = cali->nodes[at].parent) {
        if (!vec_reserve(&cali->path, &cali->cap_path, n + 1, sizeof *cali->path))
            return error_memory(err);
        cali->path[n++] = at;
    }
    while (code == 0 && n--) {
        const struct cali_node *node = &cali->nodes[cali->path[n]];
        if (node->attribute != ATTRIBUTE_NAME && node->attribute != ATTRIBUTE_TYPE &&
            node->attribute != ATTRIBUTE_PROPERTIES)
            code = take_entry(cali, row, node->attribute, node->data, place, is_other, err);
    }
    if (code == 0 && cali->maker.nodes)
        code = readers_check_size(cali->name, cali->maker.nodes->n, 1, cali->len_bytes, err);
    return code;
}

static int take_record(struct cali *cali, struct error *err)
{
    uint64_t ignored;
    struct cali_row row = {FRAME_NONE, 0, cali->n_values, 0};
    uint32_t place = 0;
    bool is_other = false;
    int code = take_fields(cali, &ignored, &ignored, err);
    if (code == 0 && cali->n_ids != cali->n_data)
        code = bad_record(cali, "a record has not as many values as attributes", err);
    for (size_t i = 0; code == 0 && i < cali->n_refs; i++)
        code = take_reference(cali, &row, cali->refs[i], &place, &is_other, err);
    for (size_t i = 0; code == 0 && i < cali->n_ids; i++)
        code = take_entry(cali, &row, cali->ids[i], cali->data[i], &place, &is_other, err);
    if (code != 0)
        return code;
    if (row.node == FRAME_NONE || is_other) {
        cali->n_values = row.first;
        return 0;
    }
    if (place)
        row.node = caliper_line(&cali->lines, &cali->maker, row.node, place, text_at(cali, place));
    if (!vec_reserve(&cali->rows, &cali->cap_rows, cali->n_rows + 1, sizeof row))
        return error_memory(err);
    cali->rows[cali->n_rows++] = row;
    return 0;
}

static int take_line(struct cali *cali, char *line, struct error *err)
{
    char end;
    cali->at = line;
    if (!*line)
        return 0;
    if (strcmp(take_word(cali, &end), "__rec") != 0 || end != '=')
        return bad_record(cali, "a line begins otherwise than \"__rec=\"", err);
    const char *kind = take_word(cali, &end);
    if (strcmp(kind, "node") == 0)
        return take_node(cali, err);
    if (strcmp(kind, "ctx") == 0)
        return take_record(cali, err);
    return strcmp(kind, "globals") == 0 ? 0 : bad_record(cali, "a record is of no known kind", err);
}

static int read_lines(struct cali *cali, struct buf *text, struct error *err)
{
    int code = add_first_nodes(cali) ? 0 : error_memory(err);
    for (char *line = text->data, *end = line ? line + text->len_bytes : line; code == 0 && line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
        cali->line++;
        line[len] = 0;
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = 0;
        code = take_line(cali, line, err);
        line += len + 1;
    }
    return code;
}

/* --- the frame --- */

struct cali_rank {
    double rank;
    uint32_t text;
};

static int compare_ranks(const void *a, const void *b)
{
    double x = ((const struct cali_rank *)a)->rank, y = ((const struct cali_rank *)b)->rank;
    return x != y ? (x < y ? -1 : 1)
                  : (((const struct cali_rank *)a)->text > ((const struct cali_rank *)b)->text) -
                        (((const struct cali_rank *)a)->text < ((const struct cali_rank *)b)->text);
}

/* The profile of each rank, by its text, with one for rows without a rank where others have one. [texts]; NULL when out
 * of memory. */
static uint32_t *add_profiles(struct cali *cali)
{
    uint32_t *profile_of = calloc(cali->texts.n_strings + 1, sizeof *profile_of);
    bool *is_rank = calloc(cali->texts.n_strings + 1, sizeof *is_rank);
    struct cali_rank *ranks = calloc(cali->n_rows + 1, sizeof *ranks);
    size_t n = 0;
    bool has_others = false;
    for (size_t i = 0; profile_of && is_rank && ranks && i < cali->n_rows; i++) {
        uint32_t text = cali->rows[i].rank;
        has_others |= text == 0;
        if (text && !is_rank[text])
            ranks[n++] = (struct cali_rank){plain_number(text_at(cali, text), NULL), text};
        is_rank[text] = text != 0;
    }
    if (n > 1)
        qsort(ranks, n, sizeof *ranks, compare_ranks);
    for (size_t i = 0; i < n; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "rank %.40s", text_at(cali, ranks[i].text));
        int64_t rank = fabs(ranks[i].rank) < 1e15 ? (int64_t)ranks[i].rank : -1;
        profile_of[ranks[i].text] = maker_profile(&cali->maker, &(struct frame_profile){name, rank, -1, -1, -1});
    }
    if (n > 0 && has_others)
        profile_of[0] = maker_profile(&cali->maker, &(struct frame_profile){"no rank", -1, -1, -1, -1});
    bool ok = profile_of && is_rank && ranks;
    free(is_rank);
    free(ranks);
    if (ok)
        return profile_of;
    free(profile_of);
    return NULL;
}

static void add_values(struct cali *cali, const struct cali_row *row, uint32_t profile)
{
    for (size_t i = row->first; i < row->first + row->n_values && !cali->maker.failed; i++) {
        const struct cali_value *value = &cali->values[i];
        struct cali_attribute *attribute = &cali->attributes[value->attribute];
        const char *name = text_at(cali, cali->nodes[value->attribute].data), *text = text_at(cali, value->text);
        char *end;
        double number = attribute->is_number ? plain_number(text, &end) : NAN;
        if (!attribute->is_number) {
            maker_text(&cali->maker, name, row->node, text);
            continue;
        }
        if (attribute->column == SIZE_MAX)
            attribute->column = caliper_column(&cali->maker, name, &attribute->scale);
        if (end != text && !*end)
            maker_value(&cali->maker, attribute->column, row->node, profile, number * attribute->scale);
    }
}

static int fill_frame(struct cali *cali, struct error *err)
{
    uint32_t *profile_of = add_profiles(cali);
    if (!profile_of)
        return error_memory(err);
    size_t n_attributes = 0;
    for (size_t i = 0; i < cali->cap_attributes; i++)
        n_attributes += cali->attributes[i].is_known;
    int code = readers_check_size(cali->name, cali->maker.nodes ? cali->maker.nodes->n : 0, n_attributes,
                                  cali->len_bytes, err);
    for (size_t i = 0; code == 0 && i < cali->n_rows; i++)
        add_values(cali, &cali->rows[i], profile_of[cali->rows[i].rank]);
    free(profile_of);
    return code;
}

static int read_cali(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct cali cali = {.name = input->path};
    struct buf text = {0};
    int code = readers_text(input, &text, err);
    cali.len_bytes = text.len_bytes;
    maker_init(&cali.maker);
    if (code == 0)
        code = read_lines(&cali, &text, err);
    if (code == 0)
        code = fill_frame(&cali, err);
    if (code == 0)
        code = frame_made(&cali.maker, frame, NULL, err);
    else
        maker_fini(&cali.maker);
    strtab_fini(&cali.texts);
    slots_fini(&cali.by_id);
    paths_fini(&cali.paths);
    paths_fini(&cali.lines);
    free(cali.nodes);
    free(cali.attributes);
    free(cali.rows);
    free(cali.values);
    free(cali.refs);
    free(cali.ids);
    free(cali.data);
    free(cali.path);
    buf_fini(&text);
    return code;
}

static bool fits_cali(const struct frame_input *input)
{
    const char *at = input->head.data;
    at += strspn(at, "\r\n");
    return strncmp(at, "__rec=", 6) == 0;
}

const struct frame_reader reader_cali = {"a .cali file of Caliper", fits_cali, read_cali};
