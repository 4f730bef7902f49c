/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of data in databases: they are written as procedures, and their names and places say what they are. Below
 * "<datacentric>" come classes of storage, below these variables, below these accesses. A block of the heap has its
 * allocation path between class and variable: the variable is the path's last procedure, above the separator
 * "<memory access call-path>". */
#include "frame/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "fmt/locus-db.h"

/* Where in the tree a procedure is. */
enum place {
    PLACE_CODE = 0,
    PLACE_DATA,     /* "<datacentric>" itself */
    PLACE_CLASS,    /* its variables come next */
    PLACE_HEAP,     /* the class, and all on the allocation paths below it */
    PLACE_REASON,   /* what is no variable comes next */
    PLACE_VARIABLE, /* of a class */
    PLACE_ACCESS    /* access paths */
};

static const struct placeholder {
    const char *name;
    enum place below; /* directly below "<datacentric>" */
    const char *class;
} placeholders[] = {
    {"<datacentric>", PLACE_DATA, NULL},
    {"<heap allocation>", PLACE_HEAP, "heap"},
    {"<static variable>", PLACE_CLASS, "static"},
    {"<thread-local variable>", PLACE_CLASS, "thread-local"},
    {"<stack variable>", PLACE_CLASS, "stack"},
    {"<file mapping>", PLACE_CLASS, "file"},
    {"<unknown attribute>", PLACE_REASON, "unknown"},
    {"<memory access call-path>", PLACE_ACCESS, NULL},
    {"<program root>", PLACE_CODE, NULL},
    {"<thread root>", PLACE_CODE, NULL},
    {"<partial call paths>", PLACE_CODE, NULL},
    {"<no activity>", PLACE_CODE, NULL},
    {"<no thread>", PLACE_CODE, NULL},
    {"<region>", PLACE_CODE, NULL},
};

static const struct placeholder *find_placeholder(const char *name)
{
    for (size_t i = 0; name && *name == '<' && i < sizeof placeholders / sizeof *placeholders; i++)
        if (strcmp(placeholders[i].name, name) == 0)
            return &placeholders[i];
    return NULL;
}

/* The place of a node, from its parent's and its name; the kind of a procedure follows. */
static enum place place_of(struct hpctoolkit_node *node, enum place above)
{
    const struct placeholder *known = find_placeholder(node->name);
    if (known)
        node->kind = FRAME_GROUP;
    if (!node->name)
        return above;
    if (known && known->below == PLACE_DATA && (node->parent == FRAME_NONE || above == PLACE_CODE))
        return PLACE_DATA;
    switch (above) {
    case PLACE_DATA:
        node->kind = FRAME_GROUP;
        node->class = known ? known->class : NULL;
        return known && known->below != PLACE_CODE && known->below != PLACE_DATA ? known->below : PLACE_REASON;
    case PLACE_CLASS:
        node->kind = known ? node->kind : FRAME_VARIABLE;
        return PLACE_VARIABLE;
    case PLACE_REASON:
        node->kind = *node->name == '<' ? FRAME_GROUP : node->kind;
        return PLACE_ACCESS;
    case PLACE_HEAP:
        return known && known->below == PLACE_ACCESS ? PLACE_ACCESS : PLACE_HEAP;
    case PLACE_VARIABLE:
        return PLACE_ACCESS;
    default:
        return above;
    }
}

/* The procedure that a node lies in. */
static uint32_t procedure_above(const struct hpctoolkit_node *nodes, uint32_t i)
{
    do
        i = nodes[i].parent;
    while (i != FRAME_NONE && !nodes[i].name);
    return i;
}

bool hpctoolkit_find_kinds(struct hpctoolkit_node *nodes, size_t n)
{
    uint8_t *places = calloc(n + 1, sizeof *places), *has_callee = calloc(n + 1, sizeof *has_callee);
    if (!places || !has_callee) {
        free(places);
        free(has_callee);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        enum place above = nodes[i].parent == FRAME_NONE ? PLACE_CODE : places[nodes[i].parent];
        places[i] = (uint8_t)place_of(&nodes[i], above);
        nodes[i].is_data = places[i] != PLACE_CODE;
        uint32_t caller = places[i] != PLACE_CODE && nodes[i].name ? procedure_above(nodes, i) : FRAME_NONE;
        if (caller == FRAME_NONE || places[caller] != PLACE_HEAP || nodes[caller].kind == FRAME_GROUP)
            continue;
        has_callee[caller] = 1;
        if (places[i] == PLACE_ACCESS)
            nodes[caller].kind = FRAME_VARIABLE;
    }
    for (uint32_t i = 0; i < n; i++) /* blocks that nobody was seen to touch */
        if (places[i] == PLACE_HEAP && nodes[i].name && nodes[i].kind != FRAME_GROUP && !has_callee[i])
            nodes[i].kind = FRAME_VARIABLE;
    free(places);
    free(has_callee);
    return true;
}

int hpctoolkit_name_variables(struct hpctoolkit_node *nodes, size_t n, const struct model *model,
                              const uint32_t *index_of, uint32_t n_ids, const char *name, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        if (nodes[i].kind == FRAME_VARIABLE)
            nodes[i].kind = FRAME_FUNCTION;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        for (size_t k = 0; k < variable->n_scopes; k++) {
            uint32_t id = variable->scopes[k];
            uint32_t at = id < n_ids ? index_of[id] : FRAME_NONE;
            if (at == FRAME_NONE || !nodes[at].is_data)
                return error_set(
                    err, ERR_FORMAT,
                    "%.600s: the variable with the number %zu is at context %u, which is not in the tree of data", name,
                    i, id);
            if (variable->class < CLASS_UNKNOWN)
                nodes[at].kind = FRAME_VARIABLE;
            nodes[at].variable = model_text(model, variable->name);
            nodes[at].class = model_class_name(variable->class);
            nodes[at].type = model_text(model, variable->type);
        }
    }
    return 0;
}

void hpctoolkit_set_data(struct frame_maker *maker, struct hpctoolkit_node *nodes, size_t n, const uint32_t *number_of)
{
    for (uint32_t i = 0; i < n; i++) {
        struct hpctoolkit_node *node = &nodes[i];
        uint32_t number = number_of ? number_of[i] : i;
        const struct hpctoolkit_node *above = node->parent == FRAME_NONE ? node : &nodes[node->parent];
        if (!node->variable)
            node->variable = node->kind == FRAME_VARIABLE ? node->name : above->variable;
        node->class = node->class ? node->class : above->class;
        node->type = node->type ? node->type : above->type;
        maker_text(maker, "tree", number, node->is_data ? "data" : "code");
        if (node->class)
            maker_text(maker, "class", number, node->class);
        if (node->variable)
            maker_text(maker, "variable", number, node->variable);
        if (node->type && *node->type)
            maker_text(maker, "element_type", number, node->type);
    }
}

void hpctoolkit_print_site(const char *function, const char *file, uint32_t line, struct buf *out)
{
    bool has_file = *file, has_function = *function;
    out->len_bytes = 0;
    buf_printf(out, "%s%s", function, has_file && has_function ? " (" : "");
    if (has_file)
        buf_printf(out, "%s", path_last(file));
    if (has_file && line)
        buf_printf(out, ":%u", line);
    buf_printf(out, "%s", has_file && has_function ? ")" : "");
}

void hpctoolkit_set_variables(struct frame_maker *maker, const struct model *model, const uint32_t *node_of)
{
    struct buf site = {0};
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        hpctoolkit_print_site(model_text(model, variable->function), model_text(model, variable->file), variable->line,
                              &site);
        for (size_t k = 0; k < variable->n_scopes && !site.failed; k++) {
            uint32_t number = node_of[variable->scopes[k]];
            if (number == FRAME_NONE)
                continue;
            if (site.len_bytes)
                maker_text(maker, "site", number, site.data);
            if (variable->size_bytes)
                maker_number(maker, "size", number, (double)variable->size_bytes);
            if (variable->n_blocks)
                maker_number(maker, "blocks", number, (double)variable->n_blocks);
            if (variable->element_bytes)
                maker_number(maker, "element_size", number, (double)variable->element_bytes);
        }
    }
    maker->failed |= site.failed;
    buf_fini(&site);
}

const char *hpctoolkit_metric_name(const char *metric, size_t *len, double *scale)
{
    static const struct {
        const char *name;
        double scale;
    } times[] = {{"CPUTIME (sec)", 1}, {"CPUTIME (usec)", 1e-6}};
    *scale = 1;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (*len == strlen(times[i].name) && memcmp(metric, times[i].name, *len) == 0) {
            *len = strlen("time");
            *scale = times[i].scale;
            return "time";
        }
    return metric;
}

void hpctoolkit_place_name(enum frame_kind kind, const char *file, uint32_t line, struct buf *out)
{
    out->len_bytes = 0;
    buf_printf(out, "%s%s:%u", kind == FRAME_LOOP ? "Loop@" : "", path_last(file), line);
}
