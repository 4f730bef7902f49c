/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of callgrind, for KCachegrind and callgrind_annotate, in two forms. "callgrind" has functions and their calls.
 * "callgrind-data" has variables in the place of called functions: the object is their storage class, the file that of
 * their allocation or declaration, and what touches them calls them.
 *
 * A call path becomes edges between functions, and recursion must not count twice. Readers take the sum of the calls to
 * a function for its inclusive cost, so that only its outermost entry on a path has one; calls below it have none.
 * Where a function both begins paths and is called, paths begin in a function "<root>", or its inclusive cost would be
 * that of the calls alone. Calls are not counted by sampling: calls= has the number of call paths. Costs are whole
 * numbers; others are multiplied by a power of ten. Format: the manual of callgrind, and what KCachegrind 22.12 and
 * callgrind_annotate 3.19 read. Where instructions are known, lines have their addresses as the module has them, and 0
 * elsewhere, which KCachegrind takes for not known. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "export/frames/callgrind-graph.h"
#include "export/frames/stacks.h"

extern const struct frame_form form_callgrind;
extern const struct frame_form form_callgrind_data;

enum { EVENTS_MAX = 200 };

/* A function, or a variable. */
struct function {
    uint32_t name, file, object; /* of texts */
    uint32_t line;               /* not part of its identity */
    uint64_t address;            /* where it begins in the object, 0: not known; neither */
};

/* Where costs are: a line or instruction of a function, or a call there; callee FRAME_NONE: none. */
struct place {
    uint64_t address; /* of the instruction, as its module has it; 0: not known */
    uint32_t function, callee, file, line;
    uint64_t n_calls; /* of the nodes with a cost; not part of its identity */
};

/* What a node's costs are added to: indices of places, FRAME_NONE: none. */
struct node_places {
    uint32_t own;     /* its own cost */
    uint32_t touched; /* its own cost as that of a call: what touches a variable */
    uint32_t call;    /* its inclusive cost: the call that enters it */
    bool is_again;    /* the call enters a function that is on the path already: it has no cost */
    bool has_cost[3]; /* own, touched and call have been noted */
    bool is_target;   /* what is above has called the allocation of the variable, not the accesses to it */
};

enum { ROOT = 0 }; /* the function in which paths begin */

struct event {
    size_t column;
    struct buf name;
    double factor;
    uint64_t *costs; /* [n_places] */
    uint64_t total;
};

/* A function on the path to a node. */
struct level {
    uint32_t function, previous; /* level of its entry above, FRAME_NONE: none */
};

struct writing {
    const struct frame_job *job;
    bool is_data;
    struct strtab texts;
    struct function *functions; /* [n_functions] */
    size_t n_functions, cap_functions;
    struct place *places; /* [n_places] */
    size_t n_places, cap_places;
    struct slots function_slots, place_slots;
    struct node_places *of; /* [n_nodes] */
    size_t offset;          /* the attribute of instructions, SIZE_MAX: none */
    bool has_addresses;     /* of some place */
    struct event *events;   /* [n_events] */
    size_t n_events;
    struct buf text;
    struct buf *out;
};

/* --- functions and places --- */

static uint64_t hash_function(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, 3 * sizeof(uint32_t));
}

static bool is_same_function(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(uint32_t)) == 0;
}

static uint64_t hash_place(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, offsetof(struct place, n_calls));
}

static bool is_same_place(const void *a, const void *b)
{
    return memcmp(a, b, offsetof(struct place, n_calls)) == 0;
}

static const struct slots_kind functions_kind = {sizeof(struct function), hash_function, is_same_function};
static const struct slots_kind places_kind = {sizeof(struct place), hash_place, is_same_place};

/* The number of a text, "???" for what is not known or cannot be seen; FRAME_NONE when out of memory. */
static uint32_t find_text(struct writing *writing, const char *text)
{
    writing->text.len_bytes = 0;
    if (!text[strspn(text, " ")] || strncmp(text, "<unknown file", 13) == 0)
        buf_printf(&writing->text, "???");
    else
        stacks_put_name(&writing->text, text);
    int64_t id = writing->text.failed ? -1 : strtab_intern(&writing->texts, writing->text.data);
    return id < 0 ? FRAME_NONE : (uint32_t)id;
}

static uint32_t find_function(struct writing *writing, const char *name, const char *file, const char *object,
                              uint32_t line)
{
    struct function like = {find_text(writing, name), find_text(writing, file), find_text(writing, object), line, 0};
    if (like.name == FRAME_NONE || like.file == FRAME_NONE || like.object == FRAME_NONE)
        return FRAME_NONE;
    size_t at = slots_put(&writing->function_slots, &functions_kind, &writing->functions, &writing->n_functions,
                          &writing->cap_functions, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* A place in the code. */
struct spot {
    const char *file;
    uint32_t line;
    uint64_t address;
};

/* The place of a cost or call; FRAME_NONE when out of memory. A line of an unknown file is in the file of the function:
 * callgrind_annotate takes a name in two files for two functions. */
static uint32_t find_place(struct writing *writing, uint32_t function, uint32_t callee, const struct spot *spot)
{
    const char *file = spot->file;
    bool is_known = *file && strncmp(file, "<unknown file", 13) != 0;
    uint32_t text = is_known ? find_text(writing, file) : writing->functions[function].file;
    struct place like = {spot->address, function, callee, text, spot->line, 0};
    if (like.file == FRAME_NONE)
        return FRAME_NONE;
    writing->has_addresses |= spot->address != 0;
    size_t at = slots_put(&writing->place_slots, &places_kind, &writing->places, &writing->n_places,
                          &writing->cap_places, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* --- from the tree to functions --- */

/* The state of a node during the walk; a child begins with that of its parent. */
struct state {
    uint32_t n_levels; /* functions on the path */
    uint32_t base;     /* those below it were before the variable */
    uint32_t target;   /* the variable, a function; FRAME_NONE: none */
    uint32_t class;    /* node of the storage class; FRAME_NONE: none */
};

struct walk {
    struct writing *writing;
    const struct frame *frame;
    struct state *states; /* [n_nodes] */
    struct level *levels; /* [n_levels], room for n_nodes */
    uint32_t n_levels;
    uint32_t *last; /* [n_functions] level of the innermost entry, FRAME_NONE: none */
    size_t cap_last;
    bool *is_data;
    uint64_t *lowest; /* [n_nodes] address of the instructions below in the same machine code, 0: none is known */
};

static bool is_function(const struct walk *walk, uint32_t node)
{
    enum frame_kind kind = frame_kind(walk->frame, node);
    return frame_kind_is_function(kind) || (!walk->writing->is_data && (kind == FRAME_GROUP || kind == FRAME_VARIABLE));
}

/* "[heap]" for "<heap allocation>". */
static const char *class_name(const struct frame *frame, uint32_t node)
{
    static const char *const names[][2] = {{"<heap allocation>", "[heap]"},
                                           {"<static variable>", "[static]"},
                                           {"<thread-local variable>", "[thread-local]"},
                                           {"<stack variable>", "[stack]"},
                                           {"<file mapping>", "[file]"},
                                           {"<unknown attribute>", "[unknown]"}};
    for (size_t i = 0; node != FRAME_NONE && i < sizeof names / sizeof *names; i++)
        if (strcmp(frame_name(frame, node), names[i][0]) == 0)
            return names[i][1];
    return node == FRAME_NONE ? "[data]" : frame_name(frame, node);
}

/* Makes a node the variable of what is below it. */
static bool enter_target(struct walk *walk, uint32_t node, struct state *state)
{
    state->base = state->n_levels;
    walk->writing->of[node].is_target = true;
    state->target = find_function(walk->writing, frame_name(walk->frame, node), frame_file(walk->frame, node),
                                  class_name(walk->frame, state->class), frame_line(walk->frame, node));
    return state->target != FRAME_NONE;
}

/* Variables, and the groups that stand for them: a storage class, and a group directly below one. */
static bool find_target(struct walk *walk, uint32_t node, uint32_t parent, struct state *state)
{
    bool is_group = frame_kind(walk->frame, node) == FRAME_GROUP;
    bool is_class = parent != FRAME_NONE && is_group && strcmp(frame_name(walk->frame, parent), "<datacentric>") == 0;
    bool is_in_class = parent != FRAME_NONE && is_group && state->class == parent;
    if (is_class)
        state->class = node;
    return is_class || is_in_class || frame_kind(walk->frame, node) == FRAME_VARIABLE ? enter_target(walk, node, state)
                                                                                      : true;
}

/* Forgets the functions that are not above the node. */
static void leave_levels(struct walk *walk, uint32_t n_levels)
{
    while (walk->n_levels > n_levels) {
        const struct level *level = &walk->levels[--walk->n_levels];
        walk->last[level->function] = level->previous;
    }
}

/* Where a node is in its function: its own place, or that of the function. */
static struct spot spot_of(const struct walk *walk, uint32_t node)
{
    bool is_entry = is_function(walk, node); /* else an instruction, a call */
    return (struct spot){frame_file(walk->frame, node), frame_line(walk->frame, node),
                         is_entry ? 0 : stacks_address(walk->frame, walk->writing->offset, node)};
}

/* Enters a function: by a call of the one that its parent is in, or as the begin of a path. */
static bool enter_function(struct walk *walk, uint32_t node, uint32_t parent, struct state *state)
{
    struct writing *writing = walk->writing;
    struct node_places *of = &writing->of[node];
    uint32_t function = find_function(writing, frame_name(walk->frame, node), frame_file(walk->frame, node),
                                      frame_module(walk->frame, node), frame_line(walk->frame, node));
    size_t n_last = walk->cap_last;
    if (function == FRAME_NONE || !vec_reserve(&walk->last, &walk->cap_last, writing->n_functions, sizeof *walk->last))
        return false;
    for (; n_last < walk->cap_last; n_last++)
        walk->last[n_last] = FRAME_NONE;
    bool is_called = state->n_levels > state->base;
    uint32_t caller = is_called ? walk->levels[state->n_levels - 1].function : ROOT;
    struct spot spot = is_called ? spot_of(walk, parent) : (struct spot){"", 0, 0};
    if (is_called && !spot.address && frame_kind(walk->frame, node) == FRAME_INLINED)
        spot.address = walk->lowest[node]; /* there is no call: its code begins about there */
    of->call = find_place(writing, caller, function, &spot);
    if (of->call == FRAME_NONE)
        return false;
    if (!writing->functions[function].address)
        writing->functions[function].address = stacks_address(walk->frame, writing->offset, node);
    uint32_t above = walk->last[function];
    of->is_again = above != FRAME_NONE && above >= state->base;
    walk->levels[state->n_levels] = (struct level){function, above};
    walk->last[function] = state->n_levels++;
    walk->n_levels = state->n_levels;
    return true;
}

/* Where the node's own cost goes. */
static bool place_cost(struct walk *walk, uint32_t node, const struct state *state)
{
    struct writing *writing = walk->writing;
    struct node_places *of = &writing->of[node];
    bool has_function = state->n_levels > state->base;
    uint32_t function = has_function ? walk->levels[state->n_levels - 1].function : ROOT;
    struct spot spot = spot_of(walk, node);
    if (!writing->is_data) {
        of->own = find_place(writing, function, FRAME_NONE, &spot);
        return of->own != FRAME_NONE;
    }
    if (state->target == FRAME_NONE)
        return true;
    const struct function *target = &writing->functions[state->target];
    struct spot of_target = {writing->texts.strings[target->file], target->line, 0};
    of->own = find_place(writing, state->target, FRAME_NONE, &of_target);
    spot = has_function ? spot : (struct spot){"", 0, 0};
    of->touched = find_place(writing, function, state->target, &spot);
    return of->own != FRAME_NONE && of->touched != FRAME_NONE;
}

static bool walk_nodes(struct walk *walk, bool is_code_left_out, bool is_data_left_out)
{
    uint32_t n = (uint32_t)frame_n_nodes(walk->frame);
    for (uint32_t node = 0; node < n; node++) {
        size_t n_parents;
        const uint32_t *parents = frame_parents(walk->frame, node, &n_parents);
        uint32_t parent = n_parents ? parents[0] : FRAME_NONE;
        struct state *state = &walk->states[node];
        walk->writing->of[node] = (struct node_places){FRAME_NONE, FRAME_NONE, FRAME_NONE, false, {false}, false};
        *state = n_parents ? walk->states[parent] : (struct state){0, 0, FRAME_NONE, FRAME_NONE};
        if (walk->is_data[node] ? is_data_left_out : is_code_left_out)
            continue;
        leave_levels(walk, state->n_levels);
        if (walk->writing->is_data && !find_target(walk, node, parent, state))
            return false;
        if (is_function(walk, node) && !enter_function(walk, node, parent, state))
            return false;
        if (!place_cost(walk, node, state))
            return false;
    }
    return true;
}

static int find_places(struct writing *writing, struct error *err)
{
    size_t n = frame_n_nodes(writing->job->frame);
    bool has_code, has_data = false;
    struct walk walk = {.writing = writing,
                        .frame = writing->job->frame,
                        .states = malloc((n + 1) * sizeof *walk.states),
                        .levels = malloc((n + 1) * sizeof *walk.levels),
                        .is_data = stacks_data_nodes(writing->job->frame, &has_code),
                        .lowest = stacks_lowest(writing->job->frame, writing->offset)};
    writing->of = malloc((n + 1) * sizeof *writing->of);
    bool ok = walk.states && walk.levels && walk.is_data && walk.lowest && writing->of &&
              find_function(writing, "<root>", "", "", 0) == ROOT;
    for (size_t i = 0; ok && i < n; i++)
        has_data |= walk.is_data[i];
    ok = ok && walk_nodes(&walk, writing->is_data && has_data, !writing->is_data && has_code);
    free(walk.states);
    free(walk.levels);
    free(walk.last);
    free(walk.is_data);
    free(walk.lowest);
    return ok ? 0 : error_memory(err);
}

/* --- costs --- */

/* Adds a cost to a place; is_again: only notes that there is one. *is_noted: whether a node has been counted there. */
static void add_cost(struct writing *writing, struct event *event, uint32_t place, uint64_t cost, bool is_again,
                     bool *is_noted)
{
    if (place == FRAME_NONE || cost == 0)
        return;
    writing->places[place].n_calls += !*is_noted;
    *is_noted = true;
    event->costs[place] += is_again ? 0 : cost;
}

/* What costs are multiplied by, to be whole: times are nanoseconds, so that events of time compare. */
static double factor_of(const char *column, const double *values, size_t n)
{
    double factor = stacks_scale(values, n);
    const char *unit = stacks_unit(column, factor == 1);
    return strcmp(unit, "microseconds") == 0 ? 1e3 : strcmp(unit, "seconds") == 0 ? 1e9 : factor;
}

/* Adds the costs of an event to its places: own costs as they are, inclusive ones from the leaves up. */
static int add_costs(struct writing *writing, struct event *event, struct error *err)
{
    const struct frame *frame = writing->job->frame;
    uint32_t n = (uint32_t)frame_n_nodes(frame);
    const double *values;
    int code = frame_values(writing->job->frame, event->column, &writing->job->view, &values, err);
    uint64_t *inclusive = code == 0 ? calloc((size_t)n + 1, sizeof *inclusive) : NULL;
    event->costs = code == 0 ? calloc(writing->n_places + 1, sizeof *event->costs) : NULL;
    if (!inclusive || !event->costs) {
        free(inclusive);
        return code ? code : error_memory(err);
    }
    event->factor = factor_of(frame_column_name(frame, event->column), values, n);
    for (uint32_t node = n; node-- > 0;) {
        struct node_places *of = &writing->of[node];
        size_t n_parents;
        const uint32_t *parents = frame_parents(frame, node, &n_parents);
        uint64_t own = of->own == FRAME_NONE ? 0 : callgrind_whole(values[node], event->factor);
        inclusive[node] += own;
        event->total += own;
        add_cost(writing, event, of->own, own, false, &of->has_cost[0]);
        add_cost(writing, event, of->touched, own, false, &of->has_cost[1]);
        add_cost(writing, event, of->call, inclusive[node], of->is_again, &of->has_cost[2]);
        if (n_parents && !of->is_target)
            inclusive[parents[0]] += inclusive[node];
    }
    free(inclusive);
    return 0;
}

/* A name of letters, digits and _ that no event before it has. What is measured in microseconds is "..._ns": see
 * factor_of. */
static void name_event(struct writing *writing, struct event *event)
{
    const char *name = frame_column_name(writing->job->frame, event->column), *usec = strstr(name, "(usec)");
    if (!isalpha((unsigned char)*name))
        buf_append(&event->name, "_", 1);
    for (const char *at = name; *at; at++) {
        if (at == usec) {
            buf_printf(&event->name, "ns");
            at += strlen("(usec)") - 1;
            continue;
        }
        bool is_plain = isalnum((unsigned char)*at) && (unsigned char)*at < 0x80;
        bool is_end = event->name.len_bytes > 0 && event->name.data[event->name.len_bytes - 1] == '_';
        if (is_plain || !is_end)
            buf_append(&event->name, is_plain ? at : "_", 1);
    }
    while (event->name.len_bytes > 1 && event->name.data[event->name.len_bytes - 1] == '_')
        event->name.data[--event->name.len_bytes] = 0;
    for (const struct event *other = writing->events; other < event; other++)
        if (other->name.data && event->name.data && strcmp(other->name.data, event->name.data) == 0) {
            buf_printf(&event->name, "_%zu", (size_t)(event - writing->events) + 1);
            return;
        }
}

/* The exclusive columns that are not hidden, that of the job first. */
static int find_events(struct writing *writing, struct error *err)
{
    const struct frame *frame = writing->job->frame;
    size_t n = frame_n_columns(frame), first = writing->job->column;
    if (frame_column_sums(frame, first) == FRAME_INCLUSIVE)
        first = frame_column_pair(frame, first);
    writing->events = calloc(n + 1, sizeof *writing->events);
    if (!writing->events)
        return error_memory(err);
    if (first != SIZE_MAX && frame_column_sums(frame, first) == FRAME_EXCLUSIVE)
        writing->events[writing->n_events++].column = first;
    for (size_t i = 0; i < n; i++)
        if (i != first && frame_column_sums(frame, i) == FRAME_EXCLUSIVE && stacks_shows(writing->job, i))
            writing->events[writing->n_events++].column = i;
    if (writing->n_events == 0)
        return error_set(err, ERR_UNSUPPORTED, "this form needs the nodes' own costs, and no column has them");
    if (writing->n_events > EVENTS_MAX)
        return error_set(err, ERR_RANGE,
                         "files of callgrind have at most %d events, and here are %zu columns; name one", EVENTS_MAX,
                         writing->n_events);
    for (size_t i = 0; i < writing->n_events; i++)
        name_event(writing, &writing->events[i]);
    return 0;
}

/* --- the file --- */

static void put_totals(const struct writing *writing, const char *key)
{
    buf_printf(writing->out, "%s:", key);
    for (size_t i = 0; i < writing->n_events; i++)
        buf_printf(writing->out, " %" PRIu64, writing->events[i].total);
    buf_printf(writing->out, "\n");
}

/* The name of an event for people, with what one of it is. */
static void put_title(const struct writing *writing, const struct event *event)
{
    struct buf name = {0};
    const char *column = frame_column_name(writing->job->frame, event->column), *usec = strstr(column, " (usec)");
    const char *unit = stacks_unit(column, event->factor == 1);
    buf_printf(&name, "%.*s%s", usec ? (int)(usec - column) : (int)strlen(column), column,
               usec ? usec + strlen(" (usec)") : "");
    stacks_put_name(writing->out, name.data ? name.data : "");
    if (strcmp(unit, "microseconds") == 0 || strcmp(unit, "seconds") == 0)
        buf_printf(writing->out, ", in nanoseconds");
    else if (event->factor > 1)
        buf_printf(writing->out, ", in units of %g", 1 / event->factor);
    writing->out->failed |= name.failed;
    buf_fini(&name);
}

static void put_head(struct writing *writing)
{
    struct buf *out = writing->out;
    callgrind_put_begin(out, writing->job->title, writing->has_addresses);
    for (size_t i = 0; i < writing->n_events; i++) {
        const struct event *event = &writing->events[i];
        buf_printf(out, "event: %s : ", event->name.data);
        put_title(writing, event);
        buf_printf(out, "\n");
    }
    buf_printf(out, "events:");
    for (size_t i = 0; i < writing->n_events; i++)
        buf_printf(out, " %s", writing->events[i].name.data);
    buf_printf(out, "\n");
    put_totals(writing, "summary");
}

/* A compressed name: in full when it is the first time. */
static void put_name(struct writing *writing, const char *key, bool *is_known, uint32_t text)
{
    buf_printf(writing->out, "%s=(%" PRIu32 ")", key, text + 1);
    if (!is_known[text])
        buf_printf(writing->out, " %s", writing->texts.strings[text]);
    buf_printf(writing->out, "\n");
    is_known[text] = true;
}

/* A line with the costs of a place; zeros at its end are left out. */
static void put_costs(const struct writing *writing, size_t place)
{
    size_t n = writing->n_events;
    while (n > 1 && writing->events[n - 1].costs[place] == 0)
        n--;
    callgrind_put_position(writing->out, writing->has_addresses, writing->places[place].address,
                           writing->places[place].line);
    for (size_t i = 0; i < n; i++)
        buf_printf(writing->out, " %" PRIu64, writing->events[i].costs[place]);
    buf_printf(writing->out, "\n");
}

/* Whether a function both begins paths and is called: is_root [n_functions] is zeroed room. */
static bool needs_root(const struct writing *writing, bool *is_root)
{
    for (size_t i = 0; i < writing->n_places; i++)
        if (writing->places[i].n_calls && writing->places[i].function == ROOT &&
            writing->places[i].callee != FRAME_NONE)
            is_root[writing->places[i].callee] = true;
    for (size_t i = 0; i < writing->n_places; i++) {
        const struct place *place = &writing->places[i];
        if (place->n_calls && place->function != ROOT && place->callee != FRAME_NONE && is_root[place->callee])
            return true;
    }
    return false;
}

/* By function; its own file's lines first, then other files, and in each lines before calls. */
static int compare_places(const void *a, const void *b, void *of)
{
    const struct writing *writing = of;
    const struct place *x = &writing->places[*(const uint32_t *)a], *y = &writing->places[*(const uint32_t *)b];
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    uint32_t file = writing->functions[x->function].file;
    if (x->file != y->file)
        return x->file == file ? -1 : y->file == file ? 1 : x->file < y->file ? -1 : 1;
    if ((x->callee == FRAME_NONE) != (y->callee == FRAME_NONE))
        return x->callee == FRAME_NONE ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* Which names have been written, by what they name: [n_texts] each. */
struct known {
    bool *objects, *files, *functions;
};

static void put_call(struct writing *writing, struct known *known, uint32_t index, uint32_t file)
{
    const struct place *place = &writing->places[index];
    const struct function *callee = &writing->functions[place->callee];
    if (callee->object != writing->functions[place->function].object)
        put_name(writing, "cob", known->objects, callee->object);
    if (callee->file != file || file != writing->functions[place->function].file)
        put_name(writing, "cfi", known->files, callee->file);
    put_name(writing, "cfn", known->functions, callee->name);
    buf_printf(writing->out, "calls=%" PRIu64 " ", place->n_calls);
    callgrind_put_position(writing->out, writing->has_addresses, callee->address, callee->line);
    buf_printf(writing->out, "\n");
    put_costs(writing, index);
}

/* A function: all its places, order[0] to order[n - 1]. The first line decides what file a function belongs to. */
static void put_function(struct writing *writing, struct known *known, const uint32_t *order, size_t n)
{
    const struct function *function = &writing->functions[writing->places[order[0]].function];
    uint32_t file = function->file;
    buf_printf(writing->out, "\n");
    put_name(writing, "ob", known->objects, function->object);
    put_name(writing, "fl", known->files, function->file);
    put_name(writing, "fn", known->functions, function->name);
    if (writing->places[order[0]].file != file || writing->places[order[0]].callee != FRAME_NONE) {
        callgrind_put_position(writing->out, writing->has_addresses, function->address, function->line);
        buf_printf(writing->out, " 0\n");
    }
    for (size_t i = 0; i < n; i++) {
        const struct place *place = &writing->places[order[i]];
        if (place->file != file)
            put_name(writing, place->file == function->file ? "fe" : "fi", known->files, place->file);
        file = place->file;
        if (place->callee == FRAME_NONE)
            put_costs(writing, order[i]);
        else
            put_call(writing, known, order[i], file);
    }
}

static int put_body(struct writing *writing, struct error *err)
{
    size_t n_texts = writing->texts.n_strings + 1, n = 0;
    struct known known = {calloc(n_texts, 1), calloc(n_texts, 1), calloc(n_texts, 1)};
    uint32_t *order = malloc((writing->n_places + 1) * sizeof *order);
    bool *is_root = calloc(writing->n_functions + 1, sizeof *is_root);
    bool ok = known.objects && known.files && known.functions && order && is_root;
    bool has_root = ok && needs_root(writing, is_root);
    for (uint32_t i = 0; ok && i < writing->n_places; i++) {
        const struct place *place = &writing->places[i];
        if (place->n_calls && (has_root || place->function != ROOT || place->callee == FRAME_NONE))
            order[n++] = i;
    }
    if (ok && n > 0)
        qsort_r(order, n, sizeof *order, compare_places, writing);
    for (size_t from = 0, to = 0; ok && from < n; from = to) {
        while (to < n && writing->places[order[to]].function == writing->places[order[from]].function)
            to++;
        put_function(writing, &known, order + from, to - from);
    }
    free(known.objects);
    free(known.files);
    free(known.functions);
    free(order);
    free(is_root);
    return ok ? 0 : error_memory(err);
}

/* Leaves out events that cost nothing, except the first one. */
static void drop_empty(struct writing *writing)
{
    size_t n = 0;
    for (size_t i = 0; i < writing->n_events; i++) {
        struct event *event = &writing->events[i];
        if (i == 0 || event->total) {
            writing->events[n++] = *event;
            continue;
        }
        buf_fini(&event->name);
        free(event->costs);
    }
    writing->n_events = n;
}

static void fini(struct writing *writing)
{
    for (size_t i = 0; i < writing->n_events; i++) {
        buf_fini(&writing->events[i].name);
        free(writing->events[i].costs);
    }
    strtab_fini(&writing->texts);
    slots_fini(&writing->function_slots);
    slots_fini(&writing->place_slots);
    free(writing->functions);
    free(writing->places);
    free(writing->of);
    free(writing->events);
    buf_fini(&writing->text);
}

static int write_form(const struct frame_job *job, bool is_data, struct buf *out, struct error *err)
{
    struct writing writing = {.job = job,
                              .is_data = is_data,
                              .out = out,
                              .offset = is_data ? SIZE_MAX : frame_find_number(job->frame, "offset")};
    int code =
        frame_is_tree(job->frame)
            ? find_events(&writing, err)
            : error_set(err, ERR_UNSUPPORTED, "this form needs call paths: a graph does not say what each call costs");
    if (code == 0)
        code = find_places(&writing, err);
    for (size_t i = 0; code == 0 && i < writing.n_events; i++)
        code = add_costs(&writing, &writing.events[i], err);
    if (code == 0)
        drop_empty(&writing);
    if (code == 0 && writing.n_events == 1 && writing.events->total == 0)
        code = error_set(err, ERR_NOT_FOUND, "there is nothing to show: no %s has a cost of its own",
                         is_data ? "variable" : "node");
    if (code == 0) {
        put_head(&writing);
        code = put_body(&writing, err);
        put_totals(&writing, "\ntotals");
    }
    fini(&writing);
    return code;
}

static int write_callgrind(const struct frame_job *job, struct buf *out, struct error *err)
{
    if (callgrind_graph_has_calls(job->frame))
        return callgrind_graph_write(job, out, err);
    return write_form(job, false, out, err);
}

static int write_callgrind_data(const struct frame_job *job, struct buf *out, struct error *err)
{
    return write_form(job, true, out, err);
}

const struct frame_form form_callgrind = {.name = "callgrind",
                                          .summary =
                                              "functions and their calls, for KCachegrind and callgrind_annotate",
                                          .write = write_callgrind};
const struct frame_form form_callgrind_data = {.name = "callgrind-data",
                                               .summary =
                                                   "the same for data: variables, and the functions that touch them",
                                               .write = write_callgrind_data};
