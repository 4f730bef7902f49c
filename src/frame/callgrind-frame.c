/* SPDX-License-Identifier: BSD-3-Clause */
/* From what files of callgrind say to a frame: a node for each function (name, file and object), which calls others, so
 * that nodes have several parents and there are circles. For each event there is the function's own cost, with that of
 * code inlined into it from other files, and the inclusive one: its own and that of its calls, without calls among
 * functions that call each other in a circle.
 *
 * With parts, a function has below it the lines with costs, these their instructions, and these the calls and jumps
 * there; what is called is below the call. "EVENT (call)" is what a call costs, also within a circle; "calls made",
 * "jumps" and "jumps followed" count. These are hidden: they say nothing of other nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "frame/callgrind.h"

struct making {
    const struct callgrind *what;
    struct frame_maker *maker;
    struct frame_paths paths; /* lines and instructions, by a number of keys */
    struct strtab keys;
    uint32_t *circles; /* [n_functions] of graph_components */
    uint32_t *spots;   /* [n_places] the line or instruction that the place is at, or the function */
    uint32_t *nodes;   /* [n_places] of calls and jumps: the node, of own costs the same as spots */
    uint32_t *parents; /* of lines and instructions, by their numbers less n_functions */
    struct buf text;
    size_t n_events, calls, made, jumps, followed; /* columns */
};

/* --- circles --- */

/* For each function the circle that it is in, by numbers of graph_components. NULL when out of memory. */
static uint32_t *find_circles(const struct callgrind *what)
{
    uint32_t n = (uint32_t)what->n_functions;
    uint32_t *caller_of = malloc((what->n_places + 1) * sizeof *caller_of),
             *circles = malloc((n + 1) * sizeof *circles);
    for (size_t i = 0; caller_of && i < what->n_places; i++)
        caller_of[i] = what->places[i].kind == PLACE_CALL ? what->places[i].function : FRAME_NONE;
    struct node_groups *calls = caller_of ? groups_of(caller_of, (uint32_t)what->n_places, n) : NULL;
    for (uint32_t i = 0; calls && i < calls->starts[n]; i++) /* from calls to those that are called */
        calls->members[i] = what->places[calls->members[i]].callee;
    if (!calls || !circles ||
        graph_components(&(struct frame_graph){.n = n, .child_starts = calls->starts, .children = calls->members},
                         circles) == FRAME_NONE) {
        free(circles);
        circles = NULL;
    }
    groups_drop(calls);
    free(caller_of);
    return circles;
}

/* --- nodes --- */

static const char *text_at(const struct callgrind *what, uint32_t id)
{
    const char *text = what->texts.strings[id];
    return strcmp(text, "???") == 0 ? "" : text;
}

static const char *function_name(const struct callgrind *what, uint32_t function)
{
    const char *name = what->texts.strings[what->functions[function].name];
    return *name ? name : "???";
}

static void add_functions(struct making *making)
{
    const struct callgrind *what = making->what;
    for (uint32_t i = 0; i < what->n_functions; i++) {
        const struct callgrind_function *from = &what->functions[i];
        (void)maker_node(making->maker, FRAME_NONE,
                         &(struct made_node){.kind = FRAME_FUNCTION,
                                             .name = function_name(what, i),
                                             .file = text_at(what, from->file),
                                             .module = text_at(what, from->object),
                                             .line = from->line});
    }
}

/* The line or instruction below parent whose key is in text; made where there is none yet. */
static uint32_t add_spot(struct making *making, uint32_t parent, const struct made_node *like)
{
    int64_t key = making->text.failed ? -1 : strtab_intern(&making->keys, making->text.data);
    making->maker->failed |= key < 0;
    uint32_t node = key < 0 ? 0 : paths_node(&making->paths, making->maker, parent, (uint32_t)key, like);
    if (!making->maker->failed)
        making->parents[node - making->what->n_functions] = parent;
    return node;
}

/* The line in its function, and the instruction in it, as far as they are known. */
static uint32_t find_spot(struct making *making, const struct callgrind_place *place)
{
    const struct callgrind *what = making->what;
    const struct callgrind_function *function = &what->functions[place->function];
    const char *file = text_at(what, place->file), *module = text_at(what, function->object);
    struct buf *text = &making->text;
    uint32_t spot = place->function;
    if (!what->with_parts)
        return spot;
    if (place->line || place->file != function->file) {
        hpctoolkit_place_name(FRAME_LINE, file, place->line, text);
        char *name = text->failed ? NULL : strdup(text->data);
        making->maker->failed |= !name;
        text->len_bytes = 0;
        buf_printf(text, "%s:%u", file, place->line);
        spot = add_spot(
            making, spot,
            &(struct made_node){.kind = FRAME_LINE, .name = name, .file = file, .module = module, .line = place->line});
        free(name);
    }
    if (!place->has_address)
        return spot;
    text->len_bytes = 0;
    buf_printf(text, "%s%s%#jx", *file ? "" : path_last(module), *file ? "" : ":", (uintmax_t)place->address);
    spot = add_spot(making, spot,
                    &(struct made_node){.kind = FRAME_INSTRUCTION,
                                        .name = text->failed ? "" : text->data,
                                        .file = file,
                                        .module = module,
                                        .line = place->line});
    maker_number(making->maker, "offset", spot, (double)place->address);
    return spot;
}

/* A call or jump, below where it is. */
static uint32_t add_leap(struct making *making, const struct callgrind_place *place, uint32_t spot)
{
    const struct callgrind *what = making->what;
    struct frame_maker *maker = making->maker;
    bool is_call = place->kind == PLACE_CALL;
    struct buf *text = &making->text;
    text->len_bytes = 0;
    if (is_call)
        buf_printf(text, "call of %s", function_name(what, place->callee));
    else if (place->callee != FRAME_NONE)
        buf_printf(text, "jump into %s", what->texts.strings[place->callee]);
    else if (place->has_address)
        buf_printf(text, "jump to %#jx", (uintmax_t)place->target_address);
    else
        buf_printf(text, "jump to line %u", place->target_line);
    uint32_t node = maker_node(maker, spot,
                               &(struct made_node){.kind = is_call ? FRAME_CALL : FRAME_JUMP,
                                                   .name = text->failed ? "" : text->data,
                                                   .file = text_at(what, place->file),
                                                   .module = text_at(what, what->functions[place->function].object),
                                                   .line = place->line});
    maker_number(maker, "target_line", node, place->target_line);
    if (place->has_address)
        maker_number(maker, "target_offset", node, (double)place->target_address);
    if (is_call) {
        maker_edge(maker, node, place->callee);
        return node;
    }
    if (place->kind == PLACE_BRANCH)
        maker_number(maker, "conditional", node, 1);
    maker_text(maker, "target_file", node, what->texts.strings[place->target_file]);
    if (place->callee != FRAME_NONE)
        maker_text(maker, "target_function", node, what->texts.strings[place->callee]);
    return node;
}

static void add_places(struct making *making)
{
    const struct callgrind *what = making->what;
    for (size_t i = 0; i < what->n_places && !making->maker->failed; i++) {
        const struct callgrind_place *place = &what->places[i];
        making->spots[i] = making->nodes[i] = find_spot(making, place);
        if (what->with_parts && place->kind != PLACE_OWN)
            making->nodes[i] = add_leap(making, place, making->spots[i]);
        else if (place->kind == PLACE_CALL)
            maker_edge(making->maker, place->function, place->callee);
    }
}

/* --- values --- */

static size_t add_column(struct making *making, const char *event, const char *suffix, enum frame_sums sums)
{
    making->text.len_bytes = 0;
    buf_printf(&making->text, "%s%s", event, suffix);
    return maker_column(making->maker, making->text.failed ? "" : making->text.data, sums);
}

static size_t add_hidden(struct making *making, const char *name, const char *suffix)
{
    size_t column = add_column(making, name, suffix, FRAME_PLAIN);
    if (!making->maker->failed)
        making->maker->columns[column].is_hidden = true;
    return column;
}

/* Columns 2 i and 2 i + 1 are of event i, and with parts "calls" + 1 + i. */
static void add_columns(struct making *making)
{
    const struct strtab *names = &making->what->event_names;
    making->n_events = names->n_strings;
    for (size_t i = 0; i < making->n_events; i++) {
        (void)add_column(making, names->strings[i], "", FRAME_EXCLUSIVE);
        (void)add_column(making, names->strings[i], " (inc)", FRAME_INCLUSIVE);
    }
    making->calls = add_column(making, "calls", "", FRAME_EXCLUSIVE);
    if (!making->what->with_parts)
        return;
    for (size_t i = 0; i < making->n_events; i++)
        (void)add_hidden(making, names->strings[i], " (call)");
    making->made = add_hidden(making, "calls made", "");
    making->jumps = add_hidden(making, "jumps", "");
    making->followed = add_hidden(making, "jumps followed", "");
}

/* Adds an inclusive value to a line or instruction and all around it, up to the function. */
static void add_inclusive(struct making *making, const struct callgrind_cost *cost, uint32_t place)
{
    const struct callgrind_place *at = &making->what->places[place];
    uint32_t spot = making->spots[place];
    maker_value(making->maker, 2 * cost->event + 1, at->function, cost->profile, cost->value);
    for (; spot >= making->what->n_functions; spot = making->parents[spot - making->what->n_functions])
        maker_value(making->maker, 2 * cost->event + 1, spot, cost->profile, cost->value);
}

static void add_value(struct making *making, const struct callgrind_cost *cost)
{
    const struct callgrind *what = making->what;
    const struct callgrind_place *place = &what->places[cost->place];
    struct frame_maker *maker = making->maker;
    uint32_t node = making->nodes[cost->place];
    bool is_jump = place->kind == PLACE_JUMP || place->kind == PLACE_BRANCH;
    if (is_jump) {
        size_t column = cost->event == CALLGRIND_COUNT ? making->jumps : making->followed;
        maker_value(maker, column, node, cost->profile, cost->value);
    } else if (cost->event == CALLGRIND_COUNT) {
        maker_value(maker, making->calls, place->callee, cost->profile, cost->value);
        if (what->with_parts)
            maker_value(maker, making->made, node, cost->profile, cost->value);
    } else if (place->kind == PLACE_OWN) {
        maker_value(maker, 2 * cost->event, node, cost->profile, cost->value);
        add_inclusive(making, cost, cost->place);
    } else {
        if (what->with_parts)
            maker_value(maker, making->calls + 1 + cost->event, node, cost->profile, cost->value);
        if (making->circles[place->function] == making->circles[place->callee])
            return;
        if (what->with_parts)
            maker_value(maker, 2 * cost->event + 1, node, cost->profile, cost->value);
        add_inclusive(making, cost, cost->place);
    }
}

int callgrind_make(struct callgrind *callgrind, const char *name, size_t len_bytes, struct frame_maker *maker,
                   struct error *err)
{
    size_t n = callgrind->n_places, n_nodes = callgrind->n_functions + (callgrind->with_parts ? 3 * n : 0);
    struct making making = {.what = callgrind, .maker = maker};
    int code =
        readers_check_size(name, callgrind->n_functions, 2 * callgrind->event_names.n_strings + 1, len_bytes, err);
    if (code != 0)
        return code;
    making.circles = find_circles(callgrind);
    making.spots = malloc((n + 1) * sizeof *making.spots);
    making.nodes = malloc((n + 1) * sizeof *making.nodes);
    making.parents = malloc((n_nodes + 1) * sizeof *making.parents);
    if (!making.circles || !making.spots || !making.nodes || !making.parents)
        code = error_memory(err);
    if (code == 0) {
        add_functions(&making);
        add_places(&making);
        add_columns(&making);
        for (size_t i = 0; i < callgrind->n_costs && !maker->failed; i++)
            add_value(&making, &callgrind->costs[i]);
    }
    maker->failed |= making.text.failed;
    free(making.circles);
    free(making.spots);
    free(making.nodes);
    free(making.parents);
    paths_fini(&making.paths);
    strtab_fini(&making.keys);
    buf_fini(&making.text);
    return code;
}
