/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements become states of an automaton, and the automaton runs twice: from the roots down for the states that a path
 * can be in at a node, and from the leaves up for those that it can end from. */
#include "frame/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "frame/expression.h"

#define WORD_BITS 64
#define PATTERN_MAX_STEPS ((size_t)1 << 25)

void pattern_fini(struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->n_elements; i++) {
        struct pattern_element *element = &pattern->elements[i];
        for (size_t k = 0; k < element->n_conditions; k++)
            formula_free(element->conditions[k]);
        free(element->conditions);
        free(element->variable);
        free(element->is_true);
    }
    free(pattern->elements);
    free(pattern->states);
}

static bool add_state(struct pattern *pattern, bool is_star)
{
    if (!vec_reserve(&pattern->states, &pattern->cap_states, pattern->n_states + 1, sizeof *pattern->states))
        return false;
    pattern->states[pattern->n_states++] = (struct pattern_state){is_star, pattern->n_elements - 1};
    return true;
}

int pattern_add(struct pattern *pattern, char quantifier, uint64_t times, struct error *err)
{
    times = quantifier ? quantifier != '*' : times;
    if (times > PATTERN_MAX_STATES || pattern->n_states + times >= PATTERN_MAX_STATES)
        return error_set(err, ERR_USAGE, "query: at most %d nodes can be asked for", PATTERN_MAX_STATES);
    if (!vec_reserve(&pattern->elements, &pattern->cap_elements, pattern->n_elements + 1, sizeof *pattern->elements))
        return error_memory(err);
    pattern->elements[pattern->n_elements++] = (struct pattern_element){0};
    for (uint64_t i = 0; i < times; i++)
        if (!add_state(pattern, false))
            return error_memory(err);
    return (quantifier == '*' || quantifier == '+') && !add_state(pattern, true) ? error_memory(err) : 0;
}

int pattern_add_condition(struct pattern_element *element, struct formula *condition, struct error *err)
{
    if (!vec_reserve(&element->conditions, &element->cap_conditions, element->n_conditions + 1,
                     sizeof *element->conditions)) {
        formula_free(condition);
        return error_memory(err);
    }
    element->conditions[element->n_conditions++] = condition;
    return 0;
}

static int test_element(const struct frame *frame, const struct frame_view *view, struct pattern_element *element,
                        struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < element->n_conditions; i++) {
        bool *is_true;
        code = expression_test(element->conditions[i], view, &is_true, err);
        for (size_t k = 0; code == 0 && element->is_true && k < frame->graph->n; k++)
            element->is_true[k] &= is_true[k];
        if (code == 0 && element->is_true)
            free(is_true);
        else if (code == 0)
            element->is_true = is_true;
    }
    return code;
}

/* --- the automaton --- */

/* Sets of states are n_words words each. */
struct automaton {
    const struct frame_graph *graph;
    const struct pattern *pattern;
    size_t n_words;
    uint64_t *stars; /* the states that may come again, or not at all */
    uint64_t *moved; /* scratch */
    uint64_t *first; /* the states that a path may begin with */
    uint64_t *last;  /* those that it may end with */
    uint64_t *down;  /* [n_nodes]: the states that a path can be in */
    uint64_t *up;    /* [n_nodes]: those of them that it can go on from to an end */
    uint32_t *queue; /* [n_nodes], in a circle */
    bool *is_queued; /* [n_nodes] */
};

static void set_bit(uint64_t *set, size_t bit)
{
    set[bit / WORD_BITS] |= (uint64_t)1 << bit % WORD_BITS;
}

/* Adds the states that may come when `from` is next: itself, and what follows the stars there. */
static void add_following(const struct pattern *pattern, size_t from, uint64_t *set)
{
    for (size_t i = from; i < pattern->n_states; i++) {
        set_bit(set, i);
        if (!pattern->states[i].is_star)
            return;
    }
}

static bool automaton_init(struct automaton *automaton, const struct pattern *pattern, const struct frame_graph *graph)
{
    size_t n_words = (pattern->n_states + WORD_BITS - 1) / WORD_BITS, n = graph->n ? graph->n : 1;
    *automaton = (struct automaton){.graph = graph,
                                    .pattern = pattern,
                                    .n_words = n_words,
                                    .stars = calloc(n_words + 1, sizeof(uint64_t)),
                                    .moved = calloc(n_words + 1, sizeof(uint64_t)),
                                    .first = calloc(n_words + 1, sizeof(uint64_t)),
                                    .last = calloc(n_words + 1, sizeof(uint64_t)),
                                    .down = calloc(n, (n_words + 1) * sizeof(uint64_t)),
                                    .up = calloc(n, (n_words + 1) * sizeof(uint64_t)),
                                    .queue = malloc(n * sizeof(uint32_t)),
                                    .is_queued = calloc(n, sizeof(bool))};
    if (!automaton->stars || !automaton->moved || !automaton->first || !automaton->last || !automaton->down ||
        !automaton->up || !automaton->queue || !automaton->is_queued)
        return false;
    add_following(pattern, 0, automaton->first);
    for (size_t i = 0; i < pattern->n_states; i++)
        if (pattern->states[i].is_star)
            set_bit(automaton->stars, i);
    for (size_t i = pattern->n_states; i-- > 0;) {
        set_bit(automaton->last, i);
        if (!pattern->states[i].is_star)
            break;
    }
    return true;
}

static void automaton_fini(struct automaton *automaton)
{
    free(automaton->stars);
    free(automaton->moved);
    free(automaton->first);
    free(automaton->last);
    free(automaton->down);
    free(automaton->up);
    free(automaton->queue);
    free(automaton->is_queued);
}

/* moved: the states that may come after those of a set: the next ones, stars themselves, and what follows stars. */
static void move_on(struct automaton *automaton, const uint64_t *from)
{
    uint64_t carry = 0, *moved = automaton->moved;
    for (size_t w = 0; w < automaton->n_words; w++) {
        uint64_t stars = automaton->stars[w], set = carry | from[w] << 1 | (from[w] & stars), more;
        while ((more = (set & stars) << 1 & ~set) != 0)
            set |= more;
        moved[w] = set;
        carry = (from[w] | (set & stars)) >> (WORD_BITS - 1);
    }
}

/* moved: the states that may come before those of a set. */
static void move_back(struct automaton *automaton, const uint64_t *from)
{
    uint64_t carry = 0, *moved = automaton->moved;
    for (size_t w = automaton->n_words; w-- > 0;) {
        uint64_t stars = automaton->stars[w], set = from[w], more;
        set |= carry & stars;
        while ((more = set >> 1 & stars & ~set) != 0)
            set |= more;
        moved[w] = set >> 1 | carry | (from[w] & stars);
        carry = set << (WORD_BITS - 1);
    }
}

/* The states of a word of a set whose conditions a node fulfills. */
static uint64_t fitting(const struct pattern *pattern, uint32_t node, size_t word, uint64_t states)
{
    size_t n_left = pattern->n_states - word * WORD_BITS;
    uint64_t fits = 0, known = n_left < WORD_BITS ? ((uint64_t)1 << n_left) - 1 : UINT64_MAX;
    for (uint64_t rest = states & known; rest; rest &= rest - 1) {
        size_t state = word * WORD_BITS + (size_t)__builtin_ctzll(rest);
        const struct pattern_element *element = &pattern->elements[pattern->states[state].element];
        if (!element->is_true || element->is_true[node])
            fits |= rest & -rest;
    }
    return fits;
}

/* Adds what a node fulfills of a set to its states; whether there are new ones. No condition is looked at that no path
 * comes to. */
static bool add_states(const struct automaton *automaton, uint32_t node, const uint64_t *set, uint64_t *states)
{
    bool is_new = false;
    for (size_t w = 0; w < automaton->n_words; w++) {
        uint64_t more = set[w] & ~states[w];
        more = more ? fitting(automaton->pattern, node, w, more) : 0;
        is_new |= more != 0;
        states[w] |= more;
    }
    return is_new;
}

/* The same on the way up, for states that a path comes to. */
static bool add_ends(const struct automaton *automaton, uint32_t node, const uint64_t *set, uint64_t *states)
{
    const uint64_t *down = automaton->down + node * automaton->n_words;
    bool is_new = false;
    for (size_t w = 0; w < automaton->n_words; w++) {
        uint64_t more = set[w] & down[w] & ~states[w];
        is_new |= more != 0;
        states[w] |= more;
    }
    return is_new;
}

/* Adds to a node's states on the way down those that its parents lead to; whether there are new ones. */
static bool go_down(struct automaton *automaton, uint32_t node)
{
    const struct frame_graph *graph = automaton->graph;
    uint64_t *states = automaton->down + node * automaton->n_words;
    bool is_new = add_states(automaton, node, automaton->first, states);
    for (uint32_t p = graph->parent_starts[node]; p < graph->parent_starts[node + 1]; p++) {
        move_on(automaton, automaton->down + graph->parents[p] * automaton->n_words);
        is_new |= add_states(automaton, node, automaton->moved, states);
    }
    return is_new;
}

/* Adds to a node's states on the way up those from which a child leads to an end. */
static bool go_up(struct automaton *automaton, uint32_t node)
{
    const struct frame_graph *graph = automaton->graph;
    uint64_t *states = automaton->up + node * automaton->n_words;
    bool is_new = add_ends(automaton, node, automaton->last, states);
    for (uint32_t c = graph->child_starts[node]; c < graph->child_starts[node + 1]; c++) {
        move_back(automaton, automaton->up + graph->children[c] * automaton->n_words);
        is_new |= add_ends(automaton, node, automaton->moved, states);
    }
    return is_new;
}

/* Goes to every node, and again to those whose neighbours have new states: in a tree once. */
static void spread(struct automaton *automaton, bool is_down)
{
    const struct frame_graph *graph = automaton->graph;
    const uint32_t *starts = is_down ? graph->child_starts : graph->parent_starts;
    const uint32_t *others = is_down ? graph->children : graph->parents;
    size_t first = 0, n = graph->n;
    for (uint32_t i = 0; i < graph->n; i++) {
        automaton->queue[i] = is_down ? i : graph->n - 1 - i;
        automaton->is_queued[i] = true;
    }
    while (n) {
        uint32_t node = automaton->queue[first];
        first = (first + 1) % graph->n;
        n--;
        automaton->is_queued[node] = false;
        if (!(is_down ? go_down(automaton, node) : go_up(automaton, node)))
            continue;
        for (uint32_t i = starts[node]; i < starts[node + 1]; i++)
            if (!automaton->is_queued[others[i]]) {
                automaton->is_queued[others[i]] = true;
                automaton->queue[(first + n++) % graph->n] = others[i];
            }
    }
}

/* Prepares the automaton and lets it run. It is to be ended in any case. */
static int make_automaton(struct automaton *automaton, struct pattern *pattern, const struct frame *frame,
                          const struct frame_view *view, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < pattern->n_elements; i++)
        code = test_element(frame, view, &pattern->elements[i], err);
    if (code == 0 && !automaton_init(automaton, pattern, frame->graph))
        code = error_memory(err);
    if (code == 0) {
        spread(automaton, true);
        spread(automaton, false);
    }
    return code;
}

int pattern_run(struct pattern *pattern, const struct frame *frame, const struct frame_view *view, bool **found,
                struct error *err)
{
    struct automaton automaton = {0};
    uint32_t n = frame->graph->n;
    bool *is_in = calloc(n ? n : 1, sizeof *is_in);
    int code = is_in ? make_automaton(&automaton, pattern, frame, view, err) : error_memory(err);
    if (code == 0) {
        for (size_t i = 0; i < n * automaton.n_words; i++)
            is_in[i / automaton.n_words] |= automaton.up[i] != 0;
        *found = is_in;
    } else {
        free(is_in);
    }
    automaton_fini(&automaton);
    return code;
}

/* --- paths --- */

/* A path on its way down. */
struct walk {
    struct automaton *automaton;
    struct query_paths *paths;
    struct level {
        uint32_t node, next; /* next: edge to go on with */
    } * levels;              /* [n_levels] */
    uint64_t *states;        /* [n_levels][n_words] that the path can be in there, and reach an end from */
    size_t n_levels, cap_levels, cap_states;
    bool *is_on; /* [n_nodes] nodes of the path */
    size_t max, n_steps;
    bool is_longest;
};

/* moved: the states that node can be in behind a path in those of moved, or at its start; whether there are any. */
static bool can_go_on(struct walk *walk, uint32_t node)
{
    const struct automaton *automaton = walk->automaton;
    bool found = false;
    if (walk->is_on[node])
        return false;
    for (size_t w = 0; w < automaton->n_words; w++) {
        automaton->moved[w] &= automaton->up[node * automaton->n_words + w];
        found |= automaton->moved[w] != 0;
    }
    return found;
}

/* Whether a child of the last node belongs to a longer path. */
static bool has_longer(struct walk *walk)
{
    const struct frame_graph *graph = walk->automaton->graph;
    size_t n_words = walk->automaton->n_words, last = walk->n_levels - 1;
    uint32_t node = walk->levels[last].node;
    for (uint32_t i = graph->child_starts[node]; i < graph->child_starts[node + 1]; i++) {
        move_on(walk->automaton, walk->states + last * n_words);
        if (can_go_on(walk, graph->children[i]))
            return true;
    }
    return false;
}

/* Adds the path if it may end where it is. */
static bool take_path(struct walk *walk)
{
    struct query_paths *paths = walk->paths;
    size_t n_words = walk->automaton->n_words;
    const uint64_t *states = walk->states + (walk->n_levels - 1) * n_words;
    bool is_end = false;
    for (size_t w = 0; w < n_words; w++)
        is_end |= (states[w] & walk->automaton->last[w]) != 0;
    if (!is_end || (walk->is_longest && has_longer(walk)))
        return true;
    if (paths->n == walk->max || paths->n_nodes + walk->n_levels > PATTERN_MAX_STEPS) {
        paths->is_cut = true;
        return true;
    }
    if (!vec_reserve(&paths->items, &paths->cap_items, paths->n + 1, sizeof *paths->items) ||
        !vec_reserve(&paths->nodes, &paths->cap_nodes, paths->n_nodes + walk->n_levels, sizeof *paths->nodes))
        return false;
    paths->items[paths->n++] = (struct query_path){paths->n_nodes, walk->n_levels};
    for (size_t i = 0; i < walk->n_levels; i++)
        paths->nodes[paths->n_nodes++] = walk->levels[i].node;
    return true;
}

/* One level more, in the states of moved. */
static bool enter(struct walk *walk, uint32_t node)
{
    size_t n_words = walk->automaton->n_words;
    if (!vec_reserve(&walk->levels, &walk->cap_levels, walk->n_levels + 1, sizeof *walk->levels) ||
        !vec_reserve(&walk->states, &walk->cap_states, (walk->n_levels + 1) * n_words, sizeof *walk->states))
        return false;
    memcpy(walk->states + walk->n_levels * n_words, walk->automaton->moved, n_words * sizeof *walk->states);
    walk->levels[walk->n_levels++] = (struct level){node, walk->automaton->graph->child_starts[node]};
    walk->is_on[node] = true;
    walk->paths->is_cut |= ++walk->n_steps > PATTERN_MAX_STEPS;
    return take_path(walk);
}

/* All paths from a node, in whose states moved is. */
static bool walk_from(struct walk *walk, uint32_t start)
{
    const struct frame_graph *graph = walk->automaton->graph;
    bool ok = enter(walk, start);
    while (walk->n_levels) {
        struct level *level = &walk->levels[walk->n_levels - 1];
        if (!ok || walk->paths->is_cut || level->next == graph->child_starts[level->node + 1]) {
            walk->is_on[level->node] = false;
            walk->n_levels--;
            continue;
        }
        uint32_t child = graph->children[level->next++];
        move_on(walk->automaton, walk->states + (walk->n_levels - 1) * walk->automaton->n_words);
        if (can_go_on(walk, child))
            ok = enter(walk, child);
    }
    return ok;
}

int pattern_paths(struct pattern *pattern, const struct frame *frame, const struct frame_view *view, size_t max,
                  bool is_longest, struct query_paths *paths, struct error *err)
{
    struct automaton automaton = {0};
    uint32_t n = frame->graph->n;
    struct walk walk = {.automaton = &automaton, .paths = paths, .max = max, .is_longest = is_longest};
    walk.is_on = calloc(n ? n : 1, sizeof *walk.is_on);
    int code = walk.is_on ? make_automaton(&automaton, pattern, frame, view, err) : error_memory(err);
    for (uint32_t node = 0; code == 0 && !paths->is_cut && node < n; node++) {
        memcpy(automaton.moved, automaton.first, automaton.n_words * sizeof *automaton.moved);
        if (can_go_on(&walk, node) && !walk_from(&walk, node))
            code = error_memory(err);
    }
    free(walk.is_on);
    free(walk.levels);
    free(walk.states);
    automaton_fini(&automaton);
    return code;
}
