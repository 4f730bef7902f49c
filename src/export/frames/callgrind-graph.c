/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs in the form of callgrind, see callgrind-graph.h: what was read of such a file, and filtered or computed with,
 * is written again. form-callgrind.c has the other way, from call paths. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/callgrind-graph.h"
#include "export/frames/stacks.h"

struct event {
    const char *name;            /* of the column */
    const double *own, *of_call; /* [n_nodes]; of_call may be NULL */
    double factor;
    uint64_t total;
};

enum { EVENTS_MAX = 200 };
enum number { TARGET_LINE, TARGET_OFFSET, OFFSET, CONDITIONAL, NUMBERS };
enum text { TARGET_FILE, TARGET_FUNCTION, TEXTS };

struct writing {
    const struct frame *frame;
    struct event *events; /* [n_events] */
    size_t n_events;
    const double *made, *jumps, *followed;   /* [n_nodes] */
    size_t numbers[NUMBERS], texts[TEXTS];   /* attributes, SIZE_MAX: there is none */
    struct strtab objects, files, functions; /* names that have been written */
    const char *file;                        /* of the line written last */
    bool has_addresses;
    struct buf *out;
};

/* --- for both ways --- */

uint64_t callgrind_whole(double value, double factor)
{
    double whole = value > 0 && isfinite(value) ? rint(value * factor) : 0;
    return whole < 9e18 ? (uint64_t)whole : UINT64_C(9000000000000000000);
}

void callgrind_put_position(struct buf *out, bool has_addresses, uint64_t address, uint64_t line)
{
    if (has_addresses)
        buf_printf(out, "0x%" PRIx64 " ", address);
    buf_printf(out, "%" PRIu64, line);
}

/* --- graphs --- */

bool callgrind_graph_has_calls(const struct frame *frame)
{
    size_t made = frame_find_column(frame, "calls made", NULL);
    return made != SIZE_MAX && frame_column_is_hidden(frame, made);
}

/* --- what is written --- */

static int find_values(const struct frame_job *job, const char *name, const double **values, struct error *err)
{
    size_t column = frame_find_column(job->frame, name, NULL);
    *values = NULL;
    return column == SIZE_MAX ? 0 : frame_values(job->frame, column, &job->view, values, err);
}

static int add_event(struct writing *writing, const struct frame_job *job, size_t column, struct error *err)
{
    struct event *event = &writing->events[writing->n_events++];
    struct buf of_call = {0};
    event->name = frame_column_name(job->frame, column);
    buf_printf(&of_call, "%s (call)", event->name);
    int code = of_call.failed ? error_memory(err) : frame_values(job->frame, column, &job->view, &event->own, err);
    if (code == 0)
        code = find_values(job, of_call.data, &event->of_call, err);
    buf_fini(&of_call);
    size_t n = frame_n_nodes(job->frame);
    event->factor = code == 0 ? stacks_scale(event->own, n) : 1;
    for (size_t i = 0; code == 0 && i < n; i++)
        event->total += callgrind_whole(event->own[i], event->factor);
    return code;
}

/* The events that calls have a cost of, that of the job first. */
static int find_events(struct writing *writing, const struct frame_job *job, struct error *err)
{
    const struct frame *frame = job->frame;
    size_t n = frame_n_columns(frame), first = job->column;
    if (frame_column_sums(frame, first) == FRAME_INCLUSIVE)
        first = frame_column_pair(frame, first);
    writing->events = calloc(n + 1, sizeof *writing->events);
    int code = writing->events ? 0 : error_memory(err);
    for (size_t k = 0; code == 0 && k <= n; k++) {
        size_t i = k == 0 ? first : k - 1;
        if (i == SIZE_MAX || (k > 0 && i == first) || frame_column_sums(frame, i) != FRAME_EXCLUSIVE ||
            strcmp(frame_column_name(frame, i), "calls") == 0 || (k > 0 && !stacks_shows(job, i)))
            continue;
        code = writing->n_events == EVENTS_MAX
                   ? error_set(err, ERR_RANGE, "files of callgrind have at most %d events; name one", EVENTS_MAX)
                   : add_event(writing, job, i, err);
    }
    if (code == 0 && writing->n_events == 0)
        code = error_set(err, ERR_UNSUPPORTED, "this form needs the nodes' own costs, and no column has them");
    return code;
}

static void find_attributes(struct writing *writing)
{
    static const char *const numbers[NUMBERS] = {"target_line", "target_offset", "offset", "conditional"};
    static const char *const texts[TEXTS] = {"target_file", "target_function"};
    const struct frame *frame = writing->frame;
    for (size_t k = 0; k < NUMBERS; k++)
        writing->numbers[k] = SIZE_MAX;
    for (size_t k = 0; k < TEXTS; k++)
        writing->texts[k] = SIZE_MAX;
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        bool is_text = frame_attribute_is_text(frame, i);
        for (size_t k = 0; k < (is_text ? TEXTS : NUMBERS); k++)
            if (strcmp(frame_attribute_name(frame, i), is_text ? texts[k] : numbers[k]) == 0)
                (is_text ? writing->texts : writing->numbers)[k] = i;
    }
    writing->has_addresses = writing->numbers[OFFSET] != SIZE_MAX;
}

static uint64_t number_of(const struct writing *writing, enum number which, uint32_t node)
{
    return stacks_address(writing->frame, writing->numbers[which], node);
}

static const char *text_of(const struct writing *writing, enum text which, uint32_t node)
{
    size_t attribute = writing->texts[which];
    return attribute == SIZE_MAX ? "" : frame_attribute_text(writing->frame, attribute, node);
}

/* --- lines --- */

/* KEY=(7) NAME, without the name from the second time on. */
static void put_name(struct writing *writing, const char *key, struct strtab *known, const char *name)
{
    size_t n = known->n_strings;
    int64_t id = strtab_intern(known, name);
    writing->out->failed |= id < 0;
    buf_printf(writing->out, "%s=(%" PRId64 ")", key, id + 1);
    if (known->n_strings > n) {
        buf_printf(writing->out, " ");
        if (*name)
            stacks_put_name(writing->out, name);
        else
            buf_printf(writing->out, "???");
    }
    buf_printf(writing->out, "\n");
}

static uint64_t cost_of(const struct event *event, uint32_t node, bool is_call)
{
    const double *values = is_call ? event->of_call : event->own;
    return values ? callgrind_whole(values[node], event->factor) : 0;
}

/* The costs of a node, at the place of another one; zeros at the end are left out. */
static void put_costs(const struct writing *writing, uint32_t node, bool is_call)
{
    size_t n = writing->n_events;
    while (n > 1 && cost_of(&writing->events[n - 1], node, is_call) == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        buf_printf(writing->out, " %" PRIu64, cost_of(&writing->events[i], node, is_call));
    buf_printf(writing->out, "\n");
}

/* Says in which file the next line is. */
static void enter_file(struct writing *writing, uint32_t function, const char *file)
{
    if (strcmp(file, writing->file) == 0)
        return;
    put_name(writing, strcmp(file, frame_file(writing->frame, function)) == 0 ? "fe" : "fi", &writing->files, file);
    writing->file = file;
}

static void put_call(struct writing *writing, uint32_t function, uint32_t node, uint64_t address)
{
    const struct frame *frame = writing->frame;
    size_t n_callees;
    const uint32_t *callees = frame_children(frame, node, &n_callees);
    if (n_callees == 0)
        return;
    uint32_t callee = callees[0];
    if (strcmp(frame_module(frame, callee), frame_module(frame, function)) != 0)
        put_name(writing, "cob", &writing->objects, frame_module(frame, callee));
    if (strcmp(frame_file(frame, callee), writing->file) != 0 ||
        strcmp(writing->file, frame_file(frame, function)) != 0)
        put_name(writing, "cfi", &writing->files, frame_file(frame, callee));
    put_name(writing, "cfn", &writing->functions, frame_name(frame, callee));
    buf_printf(writing->out, "calls=%" PRIu64 " ", callgrind_whole(writing->made[node], 1));
    callgrind_put_position(writing->out, writing->has_addresses, number_of(writing, TARGET_OFFSET, node),
                           number_of(writing, TARGET_LINE, node));
    buf_printf(writing->out, "\n");
    callgrind_put_position(writing->out, writing->has_addresses, address, frame_line(frame, node));
    put_costs(writing, node, true);
}

static void put_jump(struct writing *writing, uint32_t node, uint64_t address)
{
    const char *file = text_of(writing, TARGET_FILE, node), *function = text_of(writing, TARGET_FUNCTION, node);
    uint64_t n = writing->jumps ? callgrind_whole(writing->jumps[node], 1) : 0;
    if (strcmp(file, writing->file) != 0 && *file)
        put_name(writing, "jfi", &writing->files, file);
    if (*function)
        put_name(writing, "jfn", &writing->functions, function);
    if (number_of(writing, CONDITIONAL, node))
        buf_printf(writing->out, "jcnd=%" PRIu64 "/%" PRIu64 " ",
                   writing->followed ? callgrind_whole(writing->followed[node], 1) : 0, n);
    else
        buf_printf(writing->out, "jump=%" PRIu64 " ", n);
    callgrind_put_position(writing->out, writing->has_addresses, number_of(writing, TARGET_OFFSET, node),
                           number_of(writing, TARGET_LINE, node));
    buf_printf(writing->out, "\n");
    callgrind_put_position(writing->out, writing->has_addresses, address, frame_line(writing->frame, node));
    buf_printf(writing->out, "\n");
}

static bool has_costs(const struct writing *writing, uint32_t node)
{
    size_t i = 0;
    while (i < writing->n_events && cost_of(&writing->events[i], node, false) == 0)
        i++;
    return i < writing->n_events;
}

void callgrind_put_begin(struct buf *out, const char *title, bool has_addresses)
{
    buf_printf(out, "# callgrind format\nversion: 1\ncreator: Locus\ncmd: ");
    stacks_put_name(out, title);
    buf_printf(out, "\npositions:%s line\n", has_addresses ? " instr" : "");
}

/* A part of a function, and what is below it; address: of the instruction around. */
static void put_part(struct writing *writing, uint32_t function, uint32_t node, uint64_t address)
{
    const struct frame *frame = writing->frame;
    enum frame_kind kind = frame_kind(frame, node);
    size_t n;
    const uint32_t *children = frame_children(frame, node, &n);
    if (kind == FRAME_INSTRUCTION)
        address = number_of(writing, OFFSET, node);
    bool has_own = kind != FRAME_CALL && kind != FRAME_JUMP && has_costs(writing, node);
    if (kind == FRAME_CALL || kind == FRAME_JUMP || has_own)
        enter_file(writing, function, frame_file(frame, node));
    if (kind == FRAME_CALL) {
        put_call(writing, function, node, address);
        return;
    }
    if (kind == FRAME_JUMP) {
        put_jump(writing, node, address);
        return;
    }
    if (has_own) {
        callgrind_put_position(writing->out, writing->has_addresses, address, frame_line(frame, node));
        put_costs(writing, node, false);
    }
    for (size_t i = 0; i < n; i++) /* a line, an instruction, a call: never deeper */
        if (frame_kind_is_part(frame_kind(frame, children[i])))
            put_part(writing, function, children[i], address);
}

/* Whether the first line that put_function would write is a call, or in another file: it decides where a function is.
 */
static bool begins_elsewhere(const struct writing *writing, uint32_t function, uint32_t node)
{
    const struct frame *frame = writing->frame;
    size_t n;
    const uint32_t *children = frame_children(frame, node, &n);
    if (node != function && (has_costs(writing, node) || n == 0))
        return frame_kind(frame, node) == FRAME_CALL ||
               strcmp(frame_file(frame, node), frame_file(frame, function)) != 0;
    for (size_t i = 0; i < n; i++)
        if (frame_kind_is_part(frame_kind(frame, children[i])))
            return frame_kind(frame, children[i]) == FRAME_CALL || begins_elsewhere(writing, function, children[i]);
    return true;
}

static void put_function(struct writing *writing, uint32_t function)
{
    const struct frame *frame = writing->frame;
    size_t n;
    const uint32_t *children = frame_children(frame, function, &n);
    buf_printf(writing->out, "\n");
    put_name(writing, "ob", &writing->objects, frame_module(frame, function));
    put_name(writing, "fl", &writing->files, frame_file(frame, function));
    put_name(writing, "fn", &writing->functions, frame_name(frame, function));
    writing->file = frame_file(frame, function);
    bool has_own = has_costs(writing, function);
    if (has_own || begins_elsewhere(writing, function, function)) {
        callgrind_put_position(writing->out, writing->has_addresses, 0, has_own ? 0 : frame_line(frame, function));
        put_costs(writing, function, false);
    }
    for (size_t i = 0; i < n; i++)
        if (frame_kind_is_part(frame_kind(frame, children[i])))
            put_part(writing, function, children[i], 0);
}

static void put_totals(const struct writing *writing, const char *key)
{
    buf_printf(writing->out, "%s:", key);
    for (size_t i = 0; i < writing->n_events; i++)
        buf_printf(writing->out, " %" PRIu64, writing->events[i].total);
    buf_printf(writing->out, "\n");
}

static void put_head(const struct writing *writing, const struct frame_job *job)
{
    struct buf *out = writing->out;
    callgrind_put_begin(out, job->title, writing->has_addresses);
    buf_printf(out, "events:");
    for (size_t i = 0; i < writing->n_events; i++) {
        buf_printf(out, " ");
        for (const char *at = writing->events[i].name; *at; at++)
            buf_printf(out, "%c", *at == ' ' || (unsigned char)*at < ' ' ? '_' : *at);
    }
    buf_printf(out, "\n");
    put_totals(writing, "summary");
}

int callgrind_graph_write(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct writing writing = {.frame = job->frame, .out = out};
    int code = find_events(&writing, job, err);
    if (code == 0)
        code = find_values(job, "calls made", &writing.made, err);
    if (code == 0)
        code = find_values(job, "jumps", &writing.jumps, err);
    if (code == 0)
        code = find_values(job, "jumps followed", &writing.followed, err);
    if (code == 0) {
        find_attributes(&writing);
        put_head(&writing, job);
        for (uint32_t i = 0; i < frame_n_nodes(job->frame); i++)
            if (!frame_kind_is_part(frame_kind(job->frame, i)))
                put_function(&writing, i);
        put_totals(&writing, "\ntotals");
    }
    strtab_fini(&writing.objects);
    strtab_fini(&writing.files);
    strtab_fini(&writing.functions);
    free(writing.events);
    return code;
}
