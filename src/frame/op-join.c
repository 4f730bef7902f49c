/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on several frames. Their nodes are brought together once, in the shape of all; each frame's columns are
 * then columns of that shape. */
#include "frame/ops.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "frame/formula.h"
#include "frame/op-shape.h"

static uint32_t *numbers(size_t n)
{
    return malloc((n ? n : 1) * sizeof(uint32_t));
}

/* --- the nodes of all --- */

struct joined {
    struct frame *const *frames; /* [n] */
    size_t n;
    uint32_t *offsets; /* [n + 1] of each frame's nodes among all */
    uint32_t **ids;    /* [n] numbers of each frame's texts among those of the first frame, FRAME_NONE: not known yet */
    uint32_t *identities, *class_of, *roots, *first_of;
    size_t n_roots;
    struct edge_list edges;
    struct frame_graph *graph;
    struct frame_nodes *nodes;
    bool is_alike; /* the graph is that of each frame */
};

static uint32_t id_in_first(struct joined *joined, size_t of, uint32_t id)
{
    struct strtab *to = &joined->frames[0]->nodes->strings->table;
    const struct strtab *from = &joined->frames[of]->nodes->strings->table;
    if (from == to)
        return id;
    if (joined->ids[of][id] == FRAME_NONE) {
        int64_t found = strtab_intern(to, from->strings[id]);
        joined->ids[of][id] = found < 0 ? FRAME_NONE : (uint32_t)found;
    }
    return joined->ids[of][id];
}

static bool joined_init(struct joined *joined, struct frame *const *frames, size_t n)
{
    *joined =
        (struct joined){.frames = frames, .n = n, .offsets = numbers(n + 1), .ids = calloc(n, sizeof *joined->ids)};
    bool ok = joined->offsets && joined->ids;
    uint64_t total = 0;
    for (size_t i = 0; ok && i < n; i++) {
        size_t n_strings = frames[i]->nodes->strings->table.n_strings;
        joined->offsets[i] = (uint32_t)total;
        total += frames[i]->graph->n;
        ok = total < FRAME_NONE - 1 && (joined->ids[i] = numbers(n_strings));
        if (ok)
            memset(joined->ids[i], 0xff, n_strings * sizeof(uint32_t));
    }
    if (!ok)
        return false;
    joined->offsets[n] = (uint32_t)total;
    joined->identities = numbers(total);
    joined->class_of = numbers(total);
    joined->roots = numbers(total);
    return joined->identities && joined->class_of && joined->roots;
}

static void joined_fini(struct joined *joined)
{
    for (size_t i = 0; joined->ids && i < joined->n; i++)
        free(joined->ids[i]);
    free(joined->ids);
    free(joined->offsets);
    free(joined->identities);
    free(joined->class_of);
    free(joined->roots);
    free(joined->first_of);
    free(joined->edges.items);
    graph_drop(joined->graph);
    nodes_drop(joined->nodes);
}

static bool collect(struct joined *joined)
{
    for (size_t i = 0; i < joined->n; i++) {
        const struct frame_graph *graph = joined->frames[i]->graph;
        uint32_t offset = joined->offsets[i];
        for (uint32_t node = 0; node < graph->n; node++) {
            uint32_t id = id_in_first(joined, i, joined->frames[i]->nodes->identities[node]);
            if (id == FRAME_NONE)
                return false;
            joined->identities[offset + node] = id;
            for (uint32_t k = graph->child_starts[node]; k < graph->child_starts[node + 1]; k++)
                if (!edges_add(&joined->edges, offset + node, offset + graph->children[k]))
                    return false;
        }
        for (size_t k = 0; k < graph->n_roots; k++)
            joined->roots[joined->n_roots++] = offset + graph->roots[k];
    }
    return true;
}

/* Gives the k-th of siblings [n] that are alike another identity for each k, so that it becomes one with the k-th of
 * the other frames alone. n_alike, below [n_strings]: how many there were of an identity, and the last one's parent. */
static bool tell_apart(struct joined *joined, uint32_t offset, const uint32_t *siblings, size_t n, uint32_t parent,
                       uint32_t *n_alike, uint32_t *below)
{
    struct strtab *texts = &joined->frames[0]->nodes->strings->table;
    for (size_t i = 0; i < n; i++) {
        uint32_t *identity = &joined->identities[offset + siblings[i]];
        n_alike[*identity] = below[*identity] == parent ? n_alike[*identity] + 1 : 0;
        below[*identity] = parent;
        if (n_alike[*identity] == 0)
            continue;
        struct buf text = {0};
        buf_printf(&text, "%s\x1f%u", texts->strings[*identity], n_alike[*identity]);
        int64_t id = text.failed ? -1 : strtab_intern(texts, text.data);
        buf_fini(&text);
        if (id < 0)
            return false;
        *identity = (uint32_t)id;
    }
    return true;
}

static bool tell_all_apart(struct joined *joined)
{
    size_t n_strings = joined->frames[0]->nodes->strings->table.n_strings;
    uint32_t *n_alike = numbers(n_strings), *below = numbers(n_strings);
    bool ok = n_alike && below;
    for (size_t i = 0; ok && i < joined->n; i++) {
        const struct frame_graph *graph = joined->frames[i]->graph;
        memset(below, 0xff, n_strings * sizeof *below);
        if (!graph->is_tree)
            continue;
        ok = tell_apart(joined, joined->offsets[i], graph->roots, graph->n_roots, graph->n, n_alike, below);
        for (uint32_t node = 0; ok && node < graph->n; node++)
            ok = tell_apart(joined, joined->offsets[i], graph->children + graph->child_starts[node],
                            graph->child_starts[node + 1] - graph->child_starts[node], node, n_alike, below);
    }
    free(n_alike);
    free(below);
    return ok;
}

/* Copies what one frame says of the nodes that it is the first to have. */
static bool take_nodes(struct joined *joined, size_t of)
{
    const struct frame_nodes *from = joined->frames[of]->nodes;
    struct frame_nodes *to = joined->nodes;
    bool ok = true;
    for (uint32_t i = 0; ok && i < to->n; i++) {
        uint32_t first = joined->first_of[i];
        if (first < joined->offsets[of] || first >= joined->offsets[of + 1])
            continue;
        uint32_t node = first - joined->offsets[of];
        to->kinds[i] = from->kinds[node];
        to->lines[i] = from->lines[node];
        to->names[i] = id_in_first(joined, of, from->names[node]);
        to->files[i] = id_in_first(joined, of, from->files[node]);
        to->modules[i] = id_in_first(joined, of, from->modules[node]);
        to->identities[i] = id_in_first(joined, of, from->identities[node]);
        ok = to->names[i] != FRAME_NONE && to->files[i] != FRAME_NONE && to->modules[i] != FRAME_NONE;
    }
    for (size_t a = 0; ok && a < from->n_attributes; a++) {
        struct frame_attribute *attribute =
            shape_attribute(to, from->attributes[a].name, from->attributes[a].texts, &ok);
        for (uint32_t i = 0; attribute && ok && i < to->n; i++) {
            uint32_t first = joined->first_of[i];
            if (first < joined->offsets[of] || first >= joined->offsets[of + 1])
                continue;
            if (attribute->numbers)
                attribute->numbers[i] = from->attributes[a].numbers[first - joined->offsets[of]];
            else
                attribute->texts[i] = id_in_first(joined, of, from->attributes[a].texts[first - joined->offsets[of]]);
            ok = attribute->numbers || attribute->texts[i] != FRAME_NONE;
        }
    }
    return ok;
}

static bool make_nodes(struct joined *joined)
{
    uint32_t n = joined->graph->n;
    struct frame_nodes *nodes = calloc(1, sizeof *nodes);
    if (!nodes)
        return false;
    *nodes = (struct frame_nodes){.n_owners = 1,
                                  .n = n,
                                  .strings = joined->frames[0]->nodes->strings,
                                  .kinds = calloc(n ? n : 1, 1),
                                  .names = numbers(n),
                                  .files = numbers(n),
                                  .modules = numbers(n),
                                  .lines = numbers(n),
                                  .identities = numbers(n)};
    nodes->strings->n_owners++;
    joined->nodes = nodes;
    bool ok = nodes->kinds && nodes->names && nodes->files && nodes->modules && nodes->lines && nodes->identities;
    for (size_t i = 0; ok && i < joined->n; i++)
        ok = take_nodes(joined, i);
    return ok;
}

/* Whether all frames are the same tree, node by node in the same order, as runs of one program often are: then there is
 * nothing to bring together. *failed: out of memory. */
static bool are_alike(struct joined *joined, bool *failed)
{
    const struct frame_graph *like = joined->frames[0]->graph;
    bool is_same = like->is_tree;
    for (size_t i = 1; i < joined->n && is_same; i++) {
        const struct frame_graph *graph = joined->frames[i]->graph;
        const struct frame_nodes *nodes = joined->frames[i]->nodes, *first = joined->frames[0]->nodes;
        is_same = graph == like || (graph->is_tree && graph->n == like->n && graph->n_roots == like->n_roots &&
                                    memcmp(graph->child_starts, like->child_starts,
                                           ((size_t)graph->n + 1) * sizeof *graph->child_starts) == 0 &&
                                    memcmp(graph->children, like->children,
                                           graph->child_starts[graph->n] * sizeof *graph->children) == 0);
        for (uint32_t node = 0; node < like->n && is_same && nodes != first; node++) {
            uint32_t id = id_in_first(joined, i, nodes->identities[node]);
            *failed |= id == FRAME_NONE;
            is_same = id == first->identities[node];
        }
    }
    return is_same;
}

/* Joins frames that are alike. False when out of memory. */
static bool join_alike(struct joined *joined)
{
    uint32_t n = joined->frames[0]->graph->n;
    joined->is_alike = true;
    joined->graph = graph_keep(joined->frames[0]->graph);
    joined->first_of = numbers(n);
    for (uint32_t i = 0; i < n && joined->first_of; i++)
        joined->first_of[i] = i;
    for (size_t k = 0; k < joined->n; k++)
        for (uint32_t i = 0; i < n; i++)
            joined->class_of[joined->offsets[k] + i] = i;
    return joined->first_of && make_nodes(joined);
}

/* Joins the nodes; to be ended with joined_fini, also after a failure. */
static int join(struct joined *joined, struct frame *const *frames, size_t n, struct error *err)
{
    uint32_t n_classes;
    bool failed = !joined_init(joined, frames, n);
    if (!failed && are_alike(joined, &failed))
        return join_alike(joined) ? 0 : error_memory(err);
    if (failed || !collect(joined) || !tell_all_apart(joined))
        return error_memory(err);
    int code = shape_merge(joined->offsets[n], &joined->edges, joined->identities, joined->roots, joined->n_roots,
                           joined->class_of, &n_classes, err);
    if (code == 0)
        code = shape_graph(joined->offsets[n], &joined->edges, joined->class_of, n_classes, &joined->graph,
                           &joined->first_of, err);
    return code == 0 && !make_nodes(joined) ? error_memory(err) : code;
}

/* One of the frames in the shape of all. */
static int in_shape(const struct joined *joined, size_t of, struct frame **result, struct error *err)
{
    const struct frame *from = joined->frames[of];
    bool is_alike = joined->is_alike;
    for (size_t i = 0; i < from->n_columns && is_alike; i++)
        is_alike = from->columns[i]->remake == NULL; /* formulas may read the attributes of all */
    if (is_alike) {
        struct frame *made =
            frame_new(graph_keep(joined->graph), nodes_keep(joined->nodes), profiles_keep(from->profiles));
        int code = made ? 0 : error_memory(err);
        for (size_t i = 0; i < from->n_columns && code == 0; i++)
            code = frame_add_column(made, column_keep(from->columns[i]), err);
        if (code == 0)
            *result = made;
        else
            frame_close(made);
        return code;
    }
    return regroup_frame(joined->frames[of], joined->class_of + joined->offsets[of], REGROUP_SAME,
                         graph_keep(joined->graph), nodes_keep(joined->nodes), result, err);
}

int frame_unify(struct frame *const *frames, size_t n, struct frame **results, struct error *err)
{
    struct joined joined;
    size_t n_made = 0;
    int code = join(&joined, frames, n, err);
    while (code == 0 && n_made < n) {
        code = in_shape(&joined, n_made, &results[n_made], err);
        n_made += code == 0;
    }
    joined_fini(&joined);
    for (size_t i = 0; code != 0 && i < n_made; i++)
        frame_close(results[i]);
    return code;
}

/* --- profiles of all --- */

static bool add_profile(struct frame_profiles *profiles, const struct frame_profile *like)
{
    char *name = strdup(like->name);
    if (!name || !vec_reserve(&profiles->items, &profiles->capacity, profiles->n + 1, sizeof *profiles->items)) {
        free(name);
        return false;
    }
    profiles->items[profiles->n] = *like;
    profiles->items[profiles->n++].name = name;
    return true;
}

static struct frame_profiles *new_profiles(void)
{
    struct frame_profiles *profiles = calloc(1, sizeof *profiles);
    if (profiles)
        profiles->n_owners = 1;
    return profiles;
}

/* Adds the column that the frames [n] have of a name, in the profiles of all. */
static int append_column(struct frame *const *frames, struct profile_map *const *maps, size_t n, const char *name,
                         struct frame *to, struct error *err)
{
    struct frame_column **moved = calloc(n, sizeof *moved);
    bool ok = moved;
    for (size_t i = 0; ok && i < n; i++) {
        size_t at = frame_find_column(frames[i], name, NULL);
        if (at != SIZE_MAX)
            ok = (moved[i] = column_moved(frames[i]->columns[at], maps[i]));
    }
    int code = frame_add_column(to, ok ? column_appended(moved, n) : NULL, err);
    for (size_t i = 0; moved && i < n; i++)
        column_drop(moved[i]);
    free(moved);
    return code;
}

int frame_union(struct frame *const *frames, size_t n, struct frame **result, struct error *err)
{
    struct frame **unified = calloc(n, sizeof *unified), *made = NULL;
    struct profile_map **maps = calloc(n, sizeof *maps);
    struct frame_profiles *profiles = new_profiles();
    uint32_t n_all = 0, at = 0;
    int code = unified && maps && profiles ? frame_unify(frames, n, unified, err) : error_memory(err);
    bool is_unified = code == 0;
    for (size_t i = 0; i < n; i++)
        n_all += (uint32_t)frames[i]->profiles->n;
    for (size_t i = 0; code == 0 && i < n; i++) {
        uint32_t n_own = (uint32_t)frames[i]->profiles->n;
        maps[i] = profile_map_new(n_own, n_all);
        for (uint32_t k = 0; code == 0 && k < n_own; k++) {
            if (!maps[i] || !add_profile(profiles, &frames[i]->profiles->items[k]))
                code = error_memory(err);
            else
                maps[i]->new_of[k] = at++;
        }
    }
    if (code == 0) {
        made = frame_new(graph_keep(unified[0]->graph), nodes_keep(unified[0]->nodes), profiles_keep(profiles));
        code = made ? 0 : error_memory(err);
    }
    for (size_t i = 0; code == 0 && i < n; i++)
        for (size_t k = 0; code == 0 && k < unified[i]->n_columns; k++)
            if (frame_find_column(made, unified[i]->columns[k]->name, NULL) == SIZE_MAX)
                code = append_column(unified, maps, n, unified[i]->columns[k]->name, made, err);
    for (size_t i = 0; i < n; i++) {
        if (is_unified)
            frame_close(unified[i]);
        if (maps)
            profile_map_drop(maps[i]);
    }
    free(unified);
    free(maps);
    profiles_drop(profiles);
    if (code != 0)
        frame_close(made);
    else
        *result = made;
    return code;
}

/* --- two frames, profile by profile --- */

struct matched {
    struct joined joined;
    struct frame *sides[2];      /* in the shape of both */
    struct profile_map *maps[2]; /* to the profiles of both */
    struct frame *made;          /* of both, without columns */
};

struct matched_key {
    int64_t rank, thread;
    uint32_t profile;
};

static int compare_keys(const void *a, const void *b)
{
    const struct matched_key *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* The profiles of a frame by rank and thread; NULL where these do not tell them apart. *failed: out of memory. */
static struct matched_key *sorted_keys(const struct frame_profiles *profiles, bool *failed)
{
    struct matched_key *keys = malloc((profiles->n ? profiles->n : 1) * sizeof *keys);
    *failed |= !keys;
    bool ok = keys;
    for (uint32_t i = 0; ok && i < profiles->n; i++) {
        keys[i] = (struct matched_key){profiles->items[i].rank, profiles->items[i].thread, i};
        ok = keys[i].rank >= 0 || keys[i].thread >= 0;
    }
    if (ok)
        qsort(keys, profiles->n, sizeof *keys, compare_keys);
    for (size_t i = 1; ok && i < profiles->n; i++)
        ok = compare_keys(&keys[i - 1], &keys[i]) != 0;
    if (!ok) {
        free(keys);
        return NULL;
    }
    return keys;
}

/* The profiles of b among those of a; the others come behind. */
static bool match_profiles(struct matched *matched, const struct frame_profiles *a, const struct frame_profiles *b,
                           struct frame_profiles *all)
{
    bool failed = false;
    struct matched_key *of_a = sorted_keys(a, &failed), *of_b = sorted_keys(b, &failed);
    uint32_t *b_in_a = numbers(b->n);
    failed |= !b_in_a;
    for (uint32_t i = 0; !failed && i < b->n; i++) {
        struct matched_key key = {b->items[i].rank, b->items[i].thread, 0};
        struct matched_key *found = of_a && of_b ? bsearch(&key, of_a, a->n, sizeof key, compare_keys) : NULL;
        b_in_a[i] = of_a && of_b ? (found ? found->profile : FRAME_NONE) : i < a->n ? i : FRAME_NONE;
    }
    for (uint32_t i = 0; !failed && i < a->n; i++)
        failed = !add_profile(all, &a->items[i]);
    for (uint32_t i = 0; !failed && i < b->n; i++)
        if (b_in_a[i] == FRAME_NONE) {
            b_in_a[i] = (uint32_t)all->n;
            failed = !add_profile(all, &b->items[i]);
        }
    matched->maps[0] = failed ? NULL : profile_map_new((uint32_t)a->n, (uint32_t)all->n);
    matched->maps[1] = failed ? NULL : profile_map_new((uint32_t)b->n, (uint32_t)all->n);
    failed |= !matched->maps[0] || !matched->maps[1];
    for (uint32_t i = 0; !failed && i < a->n; i++)
        matched->maps[0]->new_of[i] = i;
    for (uint32_t i = 0; !failed && i < b->n; i++)
        matched->maps[1]->new_of[i] = b_in_a[i];
    free(of_a);
    free(of_b);
    free(b_in_a);
    return !failed;
}

static void matched_fini(struct matched *matched)
{
    joined_fini(&matched->joined);
    for (int i = 0; i < 2; i++) {
        frame_close(matched->sides[i]);
        profile_map_drop(matched->maps[i]);
    }
    frame_close(matched->made);
}

/* Whether a frame has each of the new nodes: 1 or more members. */
static uint32_t *count_members(const struct joined *joined, size_t of)
{
    uint32_t *counts = calloc(joined->graph->n ? joined->graph->n : 1, sizeof *counts);
    for (uint32_t i = joined->offsets[of]; counts && i < joined->offsets[of + 1]; i++)
        counts[joined->class_of[i]]++;
    return counts;
}

/* Adds or fills the attribute that says which side does not have a node. */
static bool mark_missing(struct joined *joined)
{
    bool ok = true;
    uint32_t *in_a = count_members(joined, 0), *in_b = count_members(joined, 1);
    struct frame_attribute *attribute = shape_attribute(joined->nodes, "missing", false, &ok);
    for (uint32_t i = 0; in_a && in_b && attribute && i < joined->graph->n; i++)
        attribute->numbers[i] = in_a[i] == 0 ? 2.0 : in_b[i] == 0 ? 1.0 : (double)NAN;
    ok = ok && in_a && in_b;
    free(in_a);
    free(in_b);
    return ok;
}

/* Brings two frames together; to be ended with matched_fini, also after a failure. */
static int match(struct matched *matched, struct frame *const frames[2], struct error *err)
{
    struct frame_profiles *all = new_profiles();
    *matched = (struct matched){0};
    int code = all ? join(&matched->joined, frames, 2, err) : error_memory(err);
    if (code == 0 &&
        (!match_profiles(matched, frames[0]->profiles, frames[1]->profiles, all) || !mark_missing(&matched->joined)))
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = in_shape(&matched->joined, i, &matched->sides[i], err);
    if (code == 0) {
        matched->made =
            frame_new(graph_keep(matched->joined.graph), nodes_keep(matched->joined.nodes), profiles_keep(all));
        code = matched->made ? 0 : error_memory(err);
    }
    profiles_drop(all);
    return code;
}

/* A column of one side in the profiles of both. */
static struct frame_column *side_column(const struct matched *matched, int side, size_t column)
{
    return column == SIZE_MAX ? NULL : column_moved(matched->sides[side]->columns[column], matched->maps[side]);
}

/* a operation b; where b is NULL, what becomes of a with nothing. Both may be NULL, and are dropped. */
static struct frame_column *compute(const struct matched *matched, struct frame_column *a, struct frame_column *b,
                                    enum formula_operation operation, const char *name, enum frame_sums sums)
{
    struct formula *formula = formula_new(matched->made);
    bool ok = formula;
    struct frame_column *sides[] = {a, b}, *made = NULL;
    for (int i = 0; ok && i < 2; i++) {
        struct formula_slot slot = {.from = FROM_COLUMN, .column = sides[i]};
        uint32_t at = sides[i] ? formula_slot(formula, &slot) : 0;
        ok = at != UINT32_MAX &&
             (sides[i] ? formula_step(formula, DO_SLOT, at, 0) : formula_step(formula, DO_NUMBER, 0, (double)NAN));
    }
    ok = ok && formula_step(formula, operation, 0, 0);
    if (ok)
        made = column_formula(formula, name, sums);
    else
        formula_free(formula);
    if (made)
        made->is_hidden = a ? a->is_hidden : b && b->is_hidden;
    column_drop(a);
    column_drop(b);
    return made;
}

static const struct {
    enum formula_operation operation;
    bool is_product;
} arithmetic[] = {[FRAME_ADD] = {DO_ADD_ANY, false},
                  [FRAME_SUBTRACT] = {DO_SUBTRACT_ANY, false},
                  [FRAME_MULTIPLY] = {DO_MULTIPLY, true},
                  [FRAME_DIVIDE] = {DO_DIVIDE_ANY, true}};

static int add_computed(struct matched *matched, size_t in_a, size_t in_b, enum frame_arithmetic operation,
                        struct error *err)
{
    bool is_product = arithmetic[operation].is_product;
    const struct frame_column *like =
        in_a != SIZE_MAX ? matched->sides[0]->columns[in_a] : matched->sides[1]->columns[in_b];
    if (is_product && (in_a == SIZE_MAX || in_b == SIZE_MAX))
        return 0;
    struct frame_column *a = side_column(matched, 0, in_a), *b = side_column(matched, 1, in_b);
    bool is_sum = !is_product && (!a || !b || a->sums == b->sums);
    if ((in_a != SIZE_MAX && !a) || (in_b != SIZE_MAX && !b)) {
        column_drop(a);
        column_drop(b);
        return error_memory(err);
    }
    return frame_add_column(
        matched->made,
        compute(matched, a, b, arithmetic[operation].operation, like->name, is_sum ? like->sums : FRAME_PLAIN), err);
}

int frame_arithmetic(const struct frame *a, const struct frame *b, enum frame_arithmetic operation,
                     struct frame **result, struct error *err)
{
    struct frame *const frames[] = {frame_keep(a), frame_keep(b)};
    struct matched matched;
    int code = match(&matched, frames, err);
    for (size_t i = 0; code == 0 && i < matched.sides[0]->n_columns; i++)
        code = add_computed(&matched, i, frame_find_column(matched.sides[1], matched.sides[0]->columns[i]->name, NULL),
                            operation, err);
    for (size_t i = 0; code == 0 && i < matched.sides[1]->n_columns; i++)
        if (frame_find_column(matched.sides[0], matched.sides[1]->columns[i]->name, NULL) == SIZE_MAX)
            code = add_computed(&matched, SIZE_MAX, i, operation, err);
    if (code == 0)
        *result = frame_keep(matched.made);
    matched_fini(&matched);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return code;
}

/* --- the same? --- */

__attribute__((format(printf, 2, 3))) static void differ(char *difference, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (difference && !*difference)
        (void)vsnprintf(difference, sizeof((struct error *)NULL)->text, format, args);
    va_end(args);
}

/* Whether both have each node once, and the same edges. */
static int same_shape(const struct joined *joined, bool *is_same, char *difference, struct error *err)
{
    uint32_t *in_a = count_members(joined, 0), *in_b = count_members(joined, 1);
    int code = in_a && in_b ? 0 : error_memory(err);
    for (uint32_t i = 0; code == 0 && *is_same && i < joined->graph->n; i++)
        if (in_a[i] != 1 || in_b[i] != 1) {
            const struct frame_nodes *nodes = joined->nodes;
            differ(difference, "'%.400s' is %u times in the first, %u times in the second",
                   nodes->strings->table.strings[nodes->names[i]], in_a[i], in_b[i]);
            *is_same = false;
        }
    free(in_a);
    free(in_b);
    uint32_t n_edges = joined->graph->child_starts[joined->graph->n];
    for (size_t i = 0; code == 0 && *is_same && i < 2; i++) {
        const struct frame_graph *graph = joined->frames[i]->graph;
        if (graph->child_starts[graph->n] != n_edges) {
            differ(difference, "the edges are not the same");
            *is_same = false;
        }
    }
    return code;
}

static bool near(double a, double b, double tolerance)
{
    return a == b || fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

/* Whether a column of both has the same cells at every node. */
static int same_cells(struct frame_column *a, struct frame_column *b, const struct frame *of, double tolerance,
                      bool *is_same, char *difference, struct error *err)
{
    int code = 0;
    for (uint32_t node = 0; code == 0 && *is_same && node < a->n_nodes; node++) {
        const struct frame_cell *of_a, *of_b;
        size_t n_a, n_b;
        code = column_cells(a, node, &of_a, &n_a, err);
        if (code == 0)
            code = column_cells(b, node, &of_b, &n_b, err);
        bool same = code != 0 || n_a == n_b;
        for (size_t i = 0; code == 0 && same && i < n_a; i++)
            same = of_a[i].profile == of_b[i].profile && near(of_a[i].value, of_b[i].value, tolerance);
        if (!same) {
            differ(difference, "'%.300s' has other values at '%.300s'", a->name, frame_name(of, node));
            *is_same = false;
        }
    }
    return code;
}

static int same_columns(const struct matched *matched, double tolerance, bool *is_same, char *difference,
                        struct error *err)
{
    struct frame *const *sides = matched->sides;
    int code = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; *is_same && i < sides[side]->n_columns; i++) {
            const struct frame_column *column = sides[side]->columns[i];
            size_t other = frame_find_column(sides[!side], column->name, NULL);
            if (other == SIZE_MAX || sides[!side]->columns[other]->sums != column->sums) {
                differ(difference, "the column '%.400s' is not in both", column->name);
                *is_same = false;
            }
        }
    for (size_t i = 0; code == 0 && *is_same && i < sides[0]->n_columns; i++) {
        struct frame_column *a = side_column(matched, 0, i);
        struct frame_column *b = side_column(matched, 1, frame_find_column(sides[1], sides[0]->columns[i]->name, NULL));
        code = a && b ? same_cells(a, b, matched->made, tolerance, is_same, difference, err) : error_memory(err);
        column_drop(a);
        column_drop(b);
    }
    return code;
}

int frame_equal_graph(const struct frame *a, const struct frame *b, bool *is_equal, struct error *err)
{
    struct frame *const frames[] = {frame_keep(a), frame_keep(b)};
    struct joined joined;
    int code = join(&joined, frames, 2, err);
    *is_equal = code == 0;
    if (code == 0)
        code = same_shape(&joined, is_equal, NULL, err);
    joined_fini(&joined);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return code;
}

int frame_equal(const struct frame *a, const struct frame *b, double tolerance, bool *is_equal, char *difference,
                struct error *err)
{
    struct frame *const frames[] = {frame_keep(a), frame_keep(b)};
    struct matched matched;
    int code = match(&matched, frames, err);
    *is_equal = true;
    if (difference)
        *difference = '\0';
    if (code == 0)
        code = same_shape(&matched.joined, is_equal, difference, err);
    if (code == 0 && *is_equal && (a->profiles->n != b->profiles->n || matched.made->profiles->n != a->profiles->n)) {
        differ(difference, "the profiles are not the same");
        *is_equal = false;
    }
    if (code == 0 && *is_equal)
        code = same_columns(&matched, tolerance, is_equal, difference, err);
    matched_fini(&matched);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return code;
}

/* --- what changed --- */

static int compare_differences(const void *a, const void *b)
{
    const struct frame_difference *x = a, *y = b;
    double change_x = fabs(x->after - x->before), change_y = fabs(y->after - y->before);
    if (change_x != change_y)
        return change_x > change_y ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int add_named(struct matched *matched, struct frame_column *column, const char *name, const char *what,
                     struct error *err)
{
    struct buf full = {0};
    buf_printf(&full, "%s %s", name, what);
    if (!column || full.failed) {
        column_drop(column);
        buf_fini(&full);
        return error_memory(err);
    }
    free(column->name);
    column->name = full.data;
    return frame_add_column(matched->made, column, err);
}

/* What the change of a node is measured by: all that there was before. */
static double total_of(const struct frame *frame, const double *values, enum frame_sums sums)
{
    double total = 0;
    size_t n = sums == FRAME_INCLUSIVE ? frame->graph->n_roots : frame->graph->n;
    for (size_t i = 0; i < n; i++) {
        double value = values[sums == FRAME_INCLUSIVE ? frame->graph->roots[i] : i];
        total += isnan(value) ? 0 : value;
    }
    return fabs(total);
}

static int find_differences(struct matched *matched, enum frame_sums sums, double threshold,
                            struct frame_difference **found, size_t *n_found, struct error *err)
{
    const double *before, *after;
    size_t capacity = 0;
    *found = NULL;
    *n_found = 0;
    int code = frame_values(matched->made, 0, NULL, &before, err);
    if (code == 0)
        code = frame_values(matched->made, 1, NULL, &after, err);
    double least = code == 0 ? threshold / 100 * total_of(matched->made, before, sums) : 0;
    for (uint32_t i = 0; code == 0 && i < matched->made->graph->n; i++) {
        double was = isnan(before[i]) ? 0 : before[i], is = isnan(after[i]) ? 0 : after[i];
        if (!(fabs(is - was) > least))
            continue;
        if (!vec_reserve(found, &capacity, *n_found + 1, sizeof **found))
            code = error_memory(err);
        else
            (*found)[(*n_found)++] = (struct frame_difference){i, was, is};
    }
    if (code == 0 && *n_found)
        qsort(*found, *n_found, sizeof **found, compare_differences);
    if (code != 0) {
        free(*found);
        *found = NULL;
    }
    return code;
}

int frame_diff(const struct frame *before, const struct frame *after, const char *column, double threshold,
               struct frame **result, struct frame_difference **found, size_t *n_found, struct error *err)
{
    struct frame *const frames[] = {frame_keep(before), frame_keep(after)};
    size_t in_before = frame_find_column(before, column, err);
    size_t in_after = in_before == SIZE_MAX ? SIZE_MAX : frame_find_column(after, column, err);
    struct matched matched = {0};
    int code = in_after == SIZE_MAX ? ERR_NOT_FOUND : match(&matched, frames, err);
    if (code == 0)
        code = add_named(&matched, side_column(&matched, 0, in_before), column, "before", err);
    if (code == 0)
        code = add_named(&matched, side_column(&matched, 1, in_after), column, "after", err);
    if (code == 0) {
        struct frame_column *const *sides = matched.made->columns;
        enum frame_sums sums = sides[0]->sums;
        struct frame_column *change =
            compute(&matched, column_keep(sides[1]), column_keep(sides[0]), DO_SUBTRACT_ANY, column, sums);
        code = add_named(&matched, change, column, "change", err);
        if (code == 0)
            code = find_differences(&matched, sums, threshold, found, n_found, err);
    }
    if (code == 0)
        *result = frame_keep(matched.made);
    if (in_after != SIZE_MAX)
        matched_fini(&matched);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return code;
}
