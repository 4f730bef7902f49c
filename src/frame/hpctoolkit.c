/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of data in databases: they are written as procedures, and their names and places say what they are. Below
 * "<datacentric>" come classes of storage, below these variables, below these accesses. A block of the heap has its
 * allocation path between class and variable: the variable is the path's last procedure, above the separator
 * "<memory access call-path>". */
#include "frame/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"

/* Where in the tree a procedure is. */
enum place {
    PLACE_CODE = 0,
    PLACE_DATA,     /* "<datacentric>" itself */
    PLACE_CLASS,    /* its variables come next */
    PLACE_HEAP,     /* the class, and all on the allocation paths below it */
    PLACE_UNKNOWN,  /* what is no variable comes next */
    PLACE_VARIABLE, /* of a class */
    PLACE_ACCESS    /* access paths */
};

static const struct placeholder {
    const char *name;
    enum place below; /* directly below "<datacentric>" */
} placeholders[] = {
    {"<datacentric>", PLACE_DATA},
    {"<heap allocation>", PLACE_HEAP},
    {"<static variable>", PLACE_CLASS},
    {"<thread-local variable>", PLACE_CLASS},
    {"<stack variable>", PLACE_CLASS},
    {"<file mapping>", PLACE_CLASS},
    {"<unknown attribute>", PLACE_UNKNOWN},
    {"<memory access call-path>", PLACE_ACCESS},
    {"<program root>", PLACE_CODE},
    {"<thread root>", PLACE_CODE},
    {"<partial call paths>", PLACE_CODE},
    {"<no activity>", PLACE_CODE},
    {"<no thread>", PLACE_CODE},
    {"<region>", PLACE_CODE},
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
        return known && known->below != PLACE_CODE && known->below != PLACE_DATA ? known->below : PLACE_UNKNOWN;
    case PLACE_CLASS:
        node->kind = known ? node->kind : FRAME_VARIABLE;
        return PLACE_VARIABLE;
    case PLACE_UNKNOWN:
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

const char *hpctoolkit_metric_name(const char *metric, size_t *len)
{
    static const char *const times[] = {"CPUTIME (sec)", "CPUTIME (usec)"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (*len == strlen(times[i]) && memcmp(metric, times[i], *len) == 0) {
            *len = strlen("time");
            return "time";
        }
    return metric;
}

void hpctoolkit_place_name(enum frame_kind kind, const char *file, uint32_t line, struct buf *out)
{
    out->len_bytes = 0;
    buf_printf(out, "%s%s:%u", kind == FRAME_LOOP ? "Loop@" : "", path_last(file), line);
}
