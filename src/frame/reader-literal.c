/* SPDX-License-Identifier: BSD-3-Clause */
/* Hatchet's literals: a list of {"frame": {...}, "metrics": {...}, "children": [...]}, as JSON or as Python prints it.
 * What a frame has besides name, type, file, line and module are further attributes, and belongs to the node's
 * identity. "attributes" has what does not: our own literals have module, line and further attributes there, and
 * "identity" where it is another one. A node with "duplicate" is the one with the same frame before it, and nodes with
 * the same "_hatchet_nid" are one: so literals hold graphs with several parents. Below them is what Hatchet's to_json
 * writes: "graph" has the nodes by number, "dataframe" the rows of its table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "frame/literal.h"

extern const struct frame_reader reader_literal;
extern const struct frame_reader reader_hatchet;

int literal_begin(struct reading *reading, struct error *err)
{
    static const char *const words[WORDS] = {[WORD_EMPTY] = "",
                                             [WORD_FRAME] = "frame",
                                             [WORD_METRICS] = "metrics",
                                             [WORD_ATTRIBUTES] = "attributes",
                                             [WORD_CHILDREN] = "children",
                                             [WORD_NID] = "_hatchet_nid",
                                             [WORD_NAME] = "name",
                                             [WORD_FILE] = "file",
                                             [WORD_MODULE] = "module",
                                             [WORD_LINE] = "line",
                                             [WORD_TYPE] = "type",
                                             [WORD_IDENTITY] = "identity",
                                             [WORD_NONE] = "None"};
    for (size_t i = 0; i < WORDS; i++)
        if (strtab_intern(&reading->texts, words[i]) < 0)
            return error_memory(err);
    return 0;
}

static int64_t intern(struct reading *reading)
{
    return strtab_intern(&reading->texts, reading->in.value.data);
}

static int read_fact(struct reading *reading, uint32_t node, bool is_metric, struct error *err)
{
    struct fact fact = {.node = node, .is_metric = is_metric};
    int64_t key = intern(reading), text = 0;
    int piece = json_in_next(&reading->in, err);
    if (piece < 0)
        return piece;
    if (piece == JSON_IN_NUMBER) {
        fact.is_number = true;
        fact.number = reading->in.number;
    } else if (piece == JSON_IN_TEXT) {
        text = intern(reading);
    } else {
        return json_in_skip(&reading->in, piece, err);
    }
    if (key < 0 || text < 0 ||
        !vec_reserve(&reading->facts, &reading->cap_facts, reading->n_facts + 1, sizeof *reading->facts))
        return error_memory(err);
    fact.key = (uint32_t)key;
    fact.text = (uint32_t)text;
    if (is_metric && key == WORD_NID)
        reading->nodes[node].nid = fact.is_number ? fact.number : NAN;
    else
        reading->facts[reading->n_facts++] = fact;
    return 0;
}

static int compare_facts(const void *a, const void *b, void *texts)
{
    char *const *strings = ((const struct strtab *)texts)->strings;
    return strcmp(strings[((const struct fact *)a)->key], strings[((const struct fact *)b)->key]);
}

void literal_keep_frame(struct reading *reading, uint32_t node, size_t first)
{
    bool is_sorted = true;
    for (size_t i = first + 1; i < reading->n_facts && is_sorted; i++)
        is_sorted = compare_facts(&reading->facts[i - 1], &reading->facts[i], &reading->texts) <= 0;
    if (!is_sorted)
        qsort_r(reading->facts + first, reading->n_facts - first, sizeof *reading->facts, compare_facts,
                &reading->texts);
    reading->nodes[node].has_frame = true;
    reading->nodes[node].first_fact = first;
    reading->nodes[node].n_facts = reading->n_facts - first;
}

/* The object of "frame", "attributes" or "metrics", by the first letter. */
static int read_facts(struct reading *reading, uint32_t node, char what, struct error *err)
{
    size_t first = reading->n_facts;
    int code = 0, piece = json_in_next(&reading->in, err);
    if (piece < 0)
        return piece;
    if (piece != JSON_IN_OBJECT && what == 'a')
        return json_in_skip(&reading->in, piece, err);
    if (piece != JSON_IN_OBJECT)
        return json_in_fail(&reading->in, "\"frame\" and \"metrics\" are objects", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY)
        code = read_fact(reading, node, what == 'm', err);
    if (code != 0 || piece < 0)
        return code != 0 ? code : piece;
    if (what == 'f') {
        literal_keep_frame(reading, node, first);
    } else if (what == 'a') {
        reading->nodes[node].first_aside = first;
        reading->nodes[node].n_asides = reading->n_facts - first;
    }
    return 0;
}

int literal_open_node(struct reading *reading, struct error *err)
{
    if (!vec_reserve(&reading->nodes, &reading->cap_nodes, reading->n_nodes + 1, sizeof *reading->nodes) ||
        !vec_reserve(&reading->open, &reading->cap_open, reading->n_open + 1, sizeof *reading->open))
        return error_memory(err);
    uint32_t parent = reading->n_open > 0 ? reading->open[reading->n_open - 1] : FRAME_NONE;
    reading->open[reading->n_open++] = (uint32_t)reading->n_nodes;
    reading->nodes[reading->n_nodes++] = (struct literal_node){.parent = parent, .same_as = FRAME_NONE, .nid = NAN};
    return 0;
}

static int read_key(struct reading *reading, struct error *err)
{
    uint32_t node = reading->open[reading->n_open - 1];
    const char *key = reading->in.value.data;
    if (strcmp(key, "frame") == 0 || strcmp(key, "attributes") == 0 || strcmp(key, "metrics") == 0)
        return read_facts(reading, node, *key, err);
    bool is_children = strcmp(key, "children") == 0, is_name = strcmp(key, "name") == 0;
    bool is_duplicate = strcmp(key, "duplicate") == 0;
    int piece = json_in_next(&reading->in, err);
    if (piece < 0 || (is_children && piece == JSON_IN_LIST))
        return piece < 0 ? piece : 0;
    if (is_children && piece != JSON_IN_NULL)
        return json_in_fail(&reading->in, "\"children\" is a list", err);
    if (is_duplicate)
        reading->nodes[node].is_duplicate = piece != JSON_IN_NUMBER || reading->in.number != 0;
    if (is_name && piece == JSON_IN_TEXT) {
        int64_t name = intern(reading);
        reading->nodes[node].name = name < 0 ? 0 : (uint32_t)name;
        return name < 0 ? error_memory(err) : 0;
    }
    return json_in_skip(&reading->in, piece, err);
}

static int read_nodes(struct reading *reading, struct error *err)
{
    int code = 0, piece;
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_END) {
        if (piece < 0)
            return piece;
        if (piece == JSON_IN_OBJECT) {
            code = literal_open_node(reading, err);
        } else if (piece == JSON_IN_OBJECT_END && reading->n_open > 0) {
            if (!reading->nodes[reading->open[--reading->n_open]].has_frame)
                code = json_in_fail(&reading->in, "a node without \"frame\" ends", err);
        } else if (piece == JSON_IN_KEY && reading->n_open > 0) {
            code = read_key(reading, err);
        } else if (piece != JSON_IN_LIST && piece != JSON_IN_LIST_END) {
            code = json_in_fail(&reading->in, "a node is an object", err);
        }
    }
    return code;
}

/* --- the frame --- */

static const char *text_at(const struct reading *reading, uint32_t id)
{
    return reading->texts.strings[id];
}

/* All that a node's frame says, in one text. */
static void put_frame(const struct reading *reading, const struct literal_node *node, struct buf *out)
{
    out->len_bytes = 0;
    buf_append(out, "", 0);
    for (size_t i = node->first_fact; i < node->first_fact + node->n_facts; i++) {
        const struct fact *fact = &reading->facts[i];
        buf_printf(out, "\x1f%s=", text_at(reading, fact->key));
        if (fact->is_number)
            buf_printf(out, "%.17g", fact->number);
        else
            buf_printf(out, "'%s", text_at(reading, fact->text));
    }
}

/* The first node with a text, remembered in firsts [n]; node itself when there is none before it. */
static bool find_first(struct strtab *texts, uint32_t *firsts, const char *text, uint32_t node, uint32_t *first)
{
    size_t n = texts->n_strings;
    int64_t id = strtab_intern(texts, text);
    if (id < 0)
        return false;
    if (texts->n_strings > n)
        firsts[id] = node;
    *first = firsts[id];
    return true;
}

/* How many names facts have. SIZE_MAX when out of memory. */
static size_t count_keys(const struct reading *reading)
{
    bool *is_key = calloc(reading->texts.n_strings + 1, sizeof *is_key);
    size_t n = 0;
    for (size_t i = 0; is_key && i < reading->n_facts; i++) {
        n += !is_key[reading->facts[i].key];
        is_key[reading->facts[i].key] = true;
    }
    n = is_key ? n : SIZE_MAX;
    free(is_key);
    return n;
}

/* Which nodes are others that came before them. */
static bool find_duplicates(struct reading *reading)
{
    bool has_any = false;
    for (size_t i = 0; i < reading->n_nodes && !has_any; i++)
        has_any = reading->nodes[i].is_duplicate || !isnan(reading->nodes[i].nid);
    if (!has_any)
        return true;
    uint32_t *by_frame = calloc(reading->n_nodes + 1, sizeof *by_frame);
    uint32_t *by_nid = calloc(reading->n_nodes + 1, sizeof *by_nid);
    struct strtab frames = {0}, nids = {0};
    struct buf text = {0};
    bool ok = by_frame && by_nid;
    for (uint32_t i = 0; ok && i < reading->n_nodes; i++) {
        struct literal_node *node = &reading->nodes[i];
        uint32_t first = i, of_frame;
        put_frame(reading, node, &text);
        ok = !text.failed && find_first(&frames, by_frame, text.data, i, &of_frame);
        if (ok && !isnan(node->nid)) {
            text.len_bytes = 0;
            buf_printf(&text, "%.17g", node->nid);
            ok = !text.failed && find_first(&nids, by_nid, text.data, i, &first);
        } else if (ok && node->is_duplicate) {
            first = of_frame;
        }
        node->same_as = first == i ? FRAME_NONE : first;
    }
    free(by_frame);
    free(by_nid);
    strtab_fini(&frames);
    strtab_fini(&nids);
    buf_fini(&text);
    return ok;
}

/* What a type is here; FRAME_OTHER: it is none of ours. */
static enum frame_kind find_kind(const char *type)
{
    static const struct {
        const char *type;
        enum frame_kind kind;
    } kinds[] = {{"region", FRAME_GROUP}, {"statement", FRAME_LINE}, {"PF", FRAME_FUNCTION},
                 {"Pr", FRAME_INLINED},   {"L", FRAME_LOOP},         {"S", FRAME_LINE}};
    for (enum frame_kind kind = FRAME_OTHER; kind < FRAME_KINDS; kind++)
        if (strcmp(type, frame_kind_name(kind)) == 0)
            return kind;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type, kinds[i].type) == 0)
            return kinds[i].kind;
    return FRAME_OTHER;
}

/* Takes a type into the node; false: it is an attribute. */
static bool take_type(struct reading *reading, uint32_t type, struct made_node *node)
{
    if (reading->type != type) {
        reading->type = type;
        reading->kind = find_kind(text_at(reading, type));
    }
    if (reading->kind != FRAME_OTHER)
        node->kind = reading->kind;
    return reading->kind != FRAME_OTHER || type == WORD_NONE;
}

/* Takes a fact of a frame into the node when it is one that every node has. */
static bool take_common(struct reading *reading, const struct fact *fact, struct made_node *node)
{
    const char *text = fact->is_number ? NULL : text_at(reading, fact->text);
    const char **place = fact->key == WORD_NAME     ? &node->name
                         : fact->key == WORD_FILE   ? &node->file
                         : fact->key == WORD_MODULE ? &node->module
                                                    : NULL;
    if (place && text)
        *place = text;
    else if (fact->key == WORD_LINE && text)
        node->line = (uint32_t)strtoul(text, NULL, 10);
    else if (fact->key == WORD_LINE && fact->number >= 0 && fact->number < UINT32_MAX)
        node->line = (uint32_t)fact->number;
    else
        return text && fact->key == WORD_TYPE && take_type(reading, fact->text, node);
    return true;
}

static void add_attribute(struct frame_maker *maker, const struct reading *reading, const struct fact *fact,
                          uint32_t number)
{
    if (fact->is_number)
        maker_number(maker, text_at(reading, fact->key), number, fact->number);
    else
        maker_text(maker, text_at(reading, fact->key), number, text_at(reading, fact->text));
}

/* Takes what stands beside the frame into the node, which has its identity by then. */
static void take_asides(struct reading *reading, const struct literal_node *from, struct made_node *node)
{
    for (size_t i = 0; i < from->n_asides; i++) {
        const struct fact *fact = &reading->facts[from->first_aside + i];
        if (!fact->is_number && fact->key == WORD_IDENTITY)
            node->identity = text_at(reading, fact->text);
        else
            (void)take_common(reading, fact, node);
    }
}

/* Adds what is no common fact, of the frame and beside it. */
static void add_attributes(struct frame_maker *maker, struct reading *reading, const struct literal_node *from,
                           struct made_node *node)
{
    for (size_t i = 0; i < from->n_facts; i++)
        if (!take_common(reading, &reading->facts[from->first_fact + i], node))
            add_attribute(maker, reading, &reading->facts[from->first_fact + i], from->number);
    for (size_t i = 0; i < from->n_asides; i++) {
        const struct fact *fact = &reading->facts[from->first_aside + i];
        if (!take_common(reading, fact, node) && fact->key != WORD_IDENTITY)
            add_attribute(maker, reading, fact, from->number);
    }
}

static void add_node(struct frame_maker *maker, struct reading *reading, struct literal_node *from, struct buf *text)
{
    uint32_t parent = from->parent == FRAME_NONE ? FRAME_NONE : reading->nodes[from->parent].number;
    struct made_node node = {.name = text_at(reading, from->name), .file = "", .module = ""};
    struct buf name = {0};
    bool has_more = false;
    for (size_t i = 0; i < from->n_facts; i++)
        has_more |= !take_common(reading, &reading->facts[from->first_fact + i], &node);
    bool is_place = node.kind == FRAME_LOOP || node.kind == FRAME_LINE;
    if (has_more || (node.line && !is_place)) {
        put_frame(reading, from, text);
        node.identity = text->data;
    }
    take_asides(reading, from, &node);
    if (!*node.name && is_place) {
        hpctoolkit_place_name(node.kind, node.file, node.line, &name);
        node.name = name.data;
    }
    from->number = maker_node(maker, parent, &node);
    add_attributes(maker, reading, from, &node);
    maker->failed |= name.failed || text->failed;
    buf_fini(&name);
}

/* Metrics: numbers are values, and texts attributes. */
static int add_metrics(struct frame_maker *maker, const struct reading *reading, struct error *err)
{
    size_t *columns = malloc((reading->texts.n_strings + 1) * sizeof *columns);
    if (!columns)
        return error_memory(err);
    memset(columns, 0xff, (reading->texts.n_strings + 1) * sizeof *columns);
    for (size_t i = 0; i < reading->n_facts && !maker->failed; i++) {
        const struct fact *fact = &reading->facts[i];
        const struct literal_node *node = &reading->nodes[fact->node];
        const char *name = text_at(reading, fact->key);
        if (!fact->is_metric || node->same_as != FRAME_NONE)
            continue;
        if (!fact->is_number) {
            add_attribute(maker, reading, fact, node->number);
            continue;
        }
        if (columns[fact->key] == SIZE_MAX)
            columns[fact->key] = maker_column(maker, name, strstr(name, "(inc)") ? FRAME_INCLUSIVE : FRAME_EXCLUSIVE);
        if (!isnan(fact->number))
            maker_value(maker, columns[fact->key], node->number, 0, fact->number);
    }
    free(columns);
    return 0;
}

int literal_make_frame(struct reading *reading, size_t n_bytes, struct frame **frame, struct error *err)
{
    struct frame_maker maker;
    struct buf text = {0};
    size_t n_keys = count_keys(reading);
    if (n_keys == SIZE_MAX || !find_duplicates(reading))
        return error_memory(err);
    int code = readers_check_size(reading->in.name, reading->n_nodes, n_keys, n_bytes, err);
    if (code != 0)
        return code;
    maker_init(&maker);
    for (size_t i = 0; i < reading->n_nodes; i++) {
        struct literal_node *node = &reading->nodes[i];
        if (node->same_as == FRAME_NONE) {
            add_node(&maker, reading, node, &text);
            continue;
        }
        node->number = reading->nodes[node->same_as].number;
        if (node->parent != FRAME_NONE)
            maker_edge(&maker, reading->nodes[node->parent].number, node->number);
    }
    code = add_metrics(&maker, reading, err);
    buf_fini(&text);
    if (code == 0)
        code = frame_made(&maker, frame, NULL, err);
    else
        maker_fini(&maker);
    return code;
}

void literal_fini(struct reading *reading)
{
    json_in_fini(&reading->in);
    strtab_fini(&reading->texts);
    free(reading->nodes);
    free(reading->facts);
    free(reading->open);
}

static int read_literal(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct reading reading = {0};
    struct buf text = {0};
    int code = literal_begin(&reading, err);
    if (code == 0)
        code = readers_json(input, &text, &reading.texts, &reading.in, err);
    if (code == 0)
        code = read_nodes(&reading, err);
    if (code == 0)
        code = literal_make_frame(&reading, (size_t)(reading.in.end - reading.in.text), frame, err);
    literal_fini(&reading);
    buf_fini(&text);
    return code;
}

/* A list, or one object, with a frame near its begin. */
static bool fits_literal(const struct frame_input *input)
{
    const char *at = input->head.data;
    at += strspn(at, " \t\r\n");
    return (*at == '[' || *at == '{') && (strstr(at, "\"frame\"") || strstr(at, "'frame'"));
}

const struct frame_reader reader_literal = {"a literal of Hatchet", fits_literal, read_literal};

/* --- to_json --- */

/* A row of the table; its facts are those of one node and profile. */
struct dumped_row {
    double node, rank, thread;
    size_t first_fact, n_facts;
};

struct dumped_edge {
    uint32_t parent;
    double child;
};

struct dumped {
    struct dumped_row *rows; /* [n_rows] */
    size_t n_rows, cap_rows;
    struct dumped_edge *edges; /* [n_edges] */
    size_t n_edges, cap_edges;
    uint32_t *inclusive, *exclusive; /* [n] texts: names of metrics */
    size_t n_inclusive, cap_inclusive, n_exclusive, cap_exclusive;
    bool has_names; /* of metrics */
    struct slots by_nid;
};

static uint64_t hash_number(double number)
{
    return bytes_hash(BYTES_HASH_START, &number, sizeof number);
}

static uint64_t hash_nid(const void *item)
{
    return hash_number(((const struct literal_node *)item)->nid);
}

static bool is_same_nid(const void *a, const void *b)
{
    return ((const struct literal_node *)a)->nid == ((const struct literal_node *)b)->nid;
}

static const struct slots_kind nodes_kind = {sizeof(struct literal_node), hash_nid, is_same_nid};

static int read_children(struct reading *reading, uint32_t node, struct error *err)
{
    struct dumped *dumped = reading->dumped;
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"children\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_NUMBER)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a child is the number of a node", err);
        if (!vec_reserve(&dumped->edges, &dumped->cap_edges, dumped->n_edges + 1, sizeof *dumped->edges))
            return error_memory(err);
        dumped->edges[dumped->n_edges++] = (struct dumped_edge){node, reading->in.number};
    }
    return code;
}

/* A node, whose number is the key that was read. */
static int read_dumped_node(struct reading *reading, struct error *err)
{
    char *end;
    struct literal_node like = {.parent = FRAME_NONE, .same_as = FRAME_NONE};
    like.nid = plain_number(reading->in.value.data, &end) + 0.0; /* not -0 */
    if (*end || !isfinite(like.nid))
        return json_in_fail(&reading->in, "a node has no number", err);
    size_t n = reading->n_nodes;
    size_t node = slots_put(&reading->dumped->by_nid, &nodes_kind, &reading->nodes, &reading->n_nodes,
                            &reading->cap_nodes, &like);
    if (node == SLOTS_NONE)
        return error_memory(err);
    if (n == reading->n_nodes)
        return json_in_fail(&reading->in, "a node is there twice", err);
    int piece, code = json_in_expect(&reading->in, JSON_IN_OBJECT, "a node is an object", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY) {
        if (strcmp(reading->in.value.data, "data") == 0)
            code = read_facts(reading, (uint32_t)node, 'f', err);
        else if (strcmp(reading->in.value.data, "children") == 0)
            code = read_children(reading, (uint32_t)node, err);
        else
            code = json_in_skip(&reading->in, json_in_next(&reading->in, err), err);
    }
    if (code == 0 && piece < 0)
        code = piece;
    return code == 0 && !reading->nodes[node].has_frame
               ? json_in_fail(&reading->in, "a node without \"data\" ends", err)
               : code;
}

static int read_graphs(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"graph\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a graph is an object", err);
        while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY)
            code = read_dumped_node(reading, err);
        code = code == 0 && piece < 0 ? piece : code;
    }
    return code;
}

/* A row, whose object is open. */
static int read_row(struct reading *reading, struct error *err)
{
    struct dumped *dumped = reading->dumped;
    struct dumped_row row = {NAN, NAN, NAN, reading->n_facts, 0};
    int piece, code = 0;
    while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY) {
        const char *key = reading->in.value.data;
        double *place = strcmp(key, "node") == 0     ? &row.node
                        : strcmp(key, "rank") == 0   ? &row.rank
                        : strcmp(key, "thread") == 0 ? &row.thread
                                                     : NULL;
        if (!place) {
            code = read_fact(reading, 0, false, err);
            continue;
        }
        piece = json_in_next(&reading->in, err);
        *place = piece == JSON_IN_NUMBER ? reading->in.number : NAN;
        code = piece < 0 ? piece : json_in_skip(&reading->in, piece, err);
    }
    if (code != 0 || piece < 0)
        return code != 0 ? code : piece;
    if (!vec_reserve(&dumped->rows, &dumped->cap_rows, dumped->n_rows + 1, sizeof *dumped->rows))
        return error_memory(err);
    row.n_facts = reading->n_facts - row.first_fact;
    dumped->rows[dumped->n_rows++] = row;
    return 0;
}

static int read_table(struct reading *reading, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "\"dataframe\" is a list", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "a row is an object", err);
        code = read_row(reading, err);
    }
    return code;
}

static int read_names(struct reading *reading, uint32_t **names, size_t *n, size_t *capacity, struct error *err)
{
    int piece, code = json_in_expect(&reading->in, JSON_IN_LIST, "names of metrics are a list", err);
    reading->dumped->has_names = true;
    while (code == 0 && (piece = json_in_next(&reading->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_TEXT)
            return piece < 0 ? piece : json_in_fail(&reading->in, "the name of a metric is a text", err);
        int64_t name = intern(reading);
        if (name < 0 || !vec_reserve(names, capacity, *n + 1, sizeof **names))
            return error_memory(err);
        (*names)[(*n)++] = (uint32_t)name;
    }
    return code;
}

static int read_dump(struct reading *reading, struct error *err)
{
    struct dumped *dumped = reading->dumped;
    int piece, code = json_in_expect(&reading->in, JSON_IN_OBJECT, "the text is an object", err);
    while (code == 0 && (piece = json_in_next(&reading->in, err)) == JSON_IN_KEY) {
        const char *key = reading->in.value.data;
        if (strcmp(key, "graph") == 0)
            code = read_graphs(reading, err);
        else if (strcmp(key, "dataframe") == 0)
            code = read_table(reading, err);
        else if (strcmp(key, "inclusive_metrics") == 0)
            code = read_names(reading, &dumped->inclusive, &dumped->n_inclusive, &dumped->cap_inclusive, err);
        else if (strcmp(key, "exclusive_metrics") == 0)
            code = read_names(reading, &dumped->exclusive, &dumped->n_exclusive, &dumped->cap_exclusive, err);
        else
            code = json_in_skip(&reading->in, json_in_next(&reading->in, err), err);
    }
    if (code == 0)
        code = piece < 0 ? piece : json_in_expect(&reading->in, JSON_IN_END, "something follows the end", err);
    return code;
}

/* What a text is: 0 no metric, 1 an exclusive one, 2 an inclusive one. [texts.n_strings]; NULL when out of memory. */
static uint8_t *find_metrics(const struct reading *reading)
{
    const struct dumped *dumped = reading->dumped;
    static const char *const none[] = {"line", "nid", "node_pid", "core", "_missing_node"};
    uint8_t *sorts = calloc(reading->texts.n_strings + 1, 1);
    for (size_t i = 0; sorts && !dumped->has_names && i < reading->texts.n_strings; i++)
        sorts[i] = strstr(text_at(reading, (uint32_t)i), "(inc)") ? 2 : 1;
    for (size_t i = 0; sorts && !dumped->has_names && i < sizeof none / sizeof *none; i++) {
        int64_t text = strtab_find(&reading->texts, none[i]);
        if (text >= 0)
            sorts[text] = 0;
    }
    for (size_t i = 0; sorts && i < dumped->n_exclusive; i++)
        sorts[dumped->exclusive[i]] = 1;
    for (size_t i = 0; sorts && i < dumped->n_inclusive; i++)
        sorts[dumped->inclusive[i]] = 2;
    return sorts;
}

/* Whether a node's frame says what a fact says; or the fact is a metric. */
static bool is_no_attribute(const struct reading *reading, size_t node, const struct fact *fact, const uint8_t *sorts)
{
    if (fact->is_number && sorts[fact->key])
        return true;
    const struct literal_node *of = node == SLOTS_NONE ? NULL : &reading->nodes[node];
    for (size_t i = 0; of && i < of->n_facts; i++)
        if (reading->facts[of->first_fact + i].key == fact->key)
            return true;
    return false;
}

/* Sorts the facts of each row, attributes first, and gives a node those of its first row. */
static void give_attributes(struct reading *reading, const uint8_t *sorts)
{
    for (size_t i = 0; i < reading->dumped->n_rows; i++) {
        struct dumped_row *row = &reading->dumped->rows[i];
        struct fact *facts = reading->facts + row->first_fact;
        struct literal_node like = {.nid = row->node + 0.0};
        size_t n = 0, node = SLOTS_NONE;
        if (!isnan(row->node))
            node = slots_find(&reading->dumped->by_nid, &nodes_kind, reading->nodes, &like);
        for (size_t k = 0; k < row->n_facts; k++) {
            struct fact fact = facts[k];
            if (is_no_attribute(reading, node, &fact, sorts))
                continue;
            facts[k] = facts[n];
            facts[n++] = fact;
        }
        row->node = node == SLOTS_NONE ? -1 : (double)node;
        if (node != SLOTS_NONE && reading->nodes[node].n_asides == 0) {
            reading->nodes[node].first_aside = row->first_fact;
            reading->nodes[node].n_asides = n;
        }
        row->first_fact += n;
        row->n_facts -= n;
    }
}

struct dumped_profile {
    double rank, thread;
};

static uint64_t hash_profile(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, sizeof(struct dumped_profile));
}

static bool is_same_profile(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct dumped_profile)) == 0;
}

/* The profile of a row: that of its rank and thread. */
static uint32_t find_profile(const struct dumped_row *row, struct frame_maker *maker, struct slots *slots,
                             struct dumped_profile **known, size_t *n, size_t *capacity)
{
    static const struct slots_kind kind = {sizeof(struct dumped_profile), hash_profile, is_same_profile};
    struct dumped_profile like = {isnan(row->rank) ? -1 : row->rank, isnan(row->thread) ? -1 : row->thread};
    size_t before = *n, at = slots_put(slots, &kind, known, n, capacity, &like);
    struct buf name = {0};
    if (at == SLOTS_NONE) {
        maker->failed = true;
        return 0;
    }
    if (*n > before) {
        int64_t numbers[2] = {fabs(like.rank) < 1e15 ? (int64_t)like.rank : -1,
                              fabs(like.thread) < 1e15 ? (int64_t)like.thread : -1};
        buf_append(&name, "", 0);
        if (!isnan(row->rank))
            buf_printf(&name, "rank %.15g", row->rank);
        if (!isnan(row->thread))
            buf_printf(&name, "%sthread %.15g", name.len_bytes ? " " : "", row->thread);
        maker->failed |= name.failed;
        (void)maker_profile(maker, &(struct frame_profile){name.data ? name.data : "", numbers[0], numbers[1], -1, -1});
        buf_fini(&name);
    }
    return (uint32_t)at;
}

static void add_rows(struct frame_maker *maker, const struct reading *reading, const uint8_t *sorts, size_t *columns)
{
    struct slots slots = {0};
    struct dumped_profile *profiles = NULL;
    size_t n = 0, capacity = 0;
    for (size_t i = 0; i < reading->dumped->n_rows && !maker->failed; i++) {
        const struct dumped_row *row = &reading->dumped->rows[i];
        if (row->node < 0)
            continue;
        uint32_t profile = find_profile(row, maker, &slots, &profiles, &n, &capacity);
        for (size_t k = 0; k < row->n_facts && !maker->failed; k++) {
            const struct fact *fact = &reading->facts[row->first_fact + k];
            if (!fact->is_number || !sorts[fact->key])
                continue;
            if (columns[fact->key] == SIZE_MAX)
                columns[fact->key] = maker_column(maker, text_at(reading, fact->key),
                                                  sorts[fact->key] == 2 ? FRAME_INCLUSIVE : FRAME_EXCLUSIVE);
            maker_value(maker, columns[fact->key], reading->nodes[(size_t)row->node].number, profile, fact->number);
        }
    }
    free(profiles);
    slots_fini(&slots);
}

static int make_dumped(struct reading *reading, struct frame **frame, struct error *err)
{
    struct frame_maker maker;
    struct dumped *dumped = reading->dumped;
    struct buf text = {0};
    size_t n_keys = count_keys(reading);
    uint8_t *sorts = find_metrics(reading);
    size_t *columns = malloc((reading->texts.n_strings + 1) * sizeof *columns);
    int code = sorts && columns && n_keys != SIZE_MAX ? 0 : error_memory(err);
    if (code == 0)
        code = readers_check_size(reading->in.name, reading->n_nodes, n_keys,
                                  (size_t)(reading->in.end - reading->in.text), err);
    if (code == 0) {
        memset(columns, 0xff, (reading->texts.n_strings + 1) * sizeof *columns);
        maker_init(&maker);
        give_attributes(reading, sorts);
        for (size_t i = 0; i < reading->n_nodes; i++)
            add_node(&maker, reading, &reading->nodes[i], &text);
        for (size_t i = 0; i < dumped->n_edges && code == 0; i++) {
            struct literal_node like = {.nid = dumped->edges[i].child + 0.0};
            size_t child = slots_find(&dumped->by_nid, &nodes_kind, reading->nodes, &like);
            if (child == SLOTS_NONE)
                code = error_set(err, ERR_FORMAT, "%.600s: the number %.15g in \"children\" is no node's",
                                 reading->in.name, like.nid);
            else
                maker_edge(&maker, reading->nodes[dumped->edges[i].parent].number, reading->nodes[child].number);
        }
        add_rows(&maker, reading, sorts, columns);
        if (code == 0)
            code = frame_made(&maker, frame, NULL, err);
        else
            maker_fini(&maker);
    }
    buf_fini(&text);
    free(sorts);
    free(columns);
    return code;
}

static int read_hatchet(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct dumped dumped = {0};
    struct reading reading = {.dumped = &dumped};
    struct buf text = {0};
    int code = literal_begin(&reading, err);
    if (code == 0)
        code = readers_json(input, &text, &reading.texts, &reading.in, err);
    if (code == 0)
        code = read_dump(&reading, err);
    if (code == 0)
        code = make_dumped(&reading, frame, err);
    literal_fini(&reading);
    free(dumped.rows);
    free(dumped.edges);
    free(dumped.inclusive);
    free(dumped.exclusive);
    slots_fini(&dumped.by_nid);
    buf_fini(&text);
    return code;
}

/* An object that begins with the graph. */
static bool fits_hatchet(const struct frame_input *input)
{
    const char *at = input->head.data;
    at += strspn(at, " \t\r\n");
    if (*at++ != '{')
        return false;
    at += strspn(at, " \t\r\n");
    return strncmp(at, "\"graph\"", 7) == 0;
}

const struct frame_reader reader_hatchet = {"what Hatchet's to_json writes", fits_hatchet, read_hatchet};
