/* SPDX-License-Identifier: BSD-3-Clause */
/* Speedscope's own format: evented profiles, in which frames open and close on an axis of costs, so that the text is
 * linear in the call paths however deep they are. One profile for all, and one for each profile of the frame.
 * Source: https://www.speedscope.app/file-format-schema.json. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/stacks.h"
#include "fmt/json.h"

extern const struct frame_form form_speedscope;

struct writing {
    const struct frame_job *job;
    struct stacks stacks;
    struct strtab frames; /* identities of items */
    uint32_t *frame_of;   /* [stacks.n] */
    const char *unit;
    size_t n_profiles;
    struct buf *out;
    struct buf text;
};

/* A text that may hold any bytes. */
static void put_text(struct writing *writing, const char *text)
{
    writing->text.len_bytes = 0;
    stacks_put_name(&writing->text, text);
    json_put_text(writing->out, writing->text.data ? writing->text.data : "");
}

static void put_double(struct buf *out, double value)
{
    char text[40];
    json_double_text(value, text, sizeof text);
    buf_printf(out, "%s", text);
}

static int put_frames(struct writing *writing, struct error *err)
{
    const struct frame *frame = writing->job->frame;
    writing->frame_of = malloc(((size_t)writing->stacks.n + 1) * sizeof *writing->frame_of);
    if (!writing->frame_of)
        return error_memory(err);
    buf_printf(writing->out, "\"shared\": {\"frames\": [");
    for (uint32_t i = 0; i < writing->stacks.n; i++) {
        uint32_t node = writing->stacks.items[i].node;
        size_t n = writing->frames.n_strings;
        int64_t id = strtab_intern(&writing->frames, frame_identity(frame, node));
        if (id < 0)
            return error_memory(err);
        writing->frame_of[i] = (uint32_t)id;
        if (writing->frames.n_strings == n)
            continue;
        buf_printf(writing->out, "%s\n{\"name\": ", n ? "," : "");
        put_text(writing, frame_name(frame, node));
        if (*frame_file(frame, node)) {
            buf_printf(writing->out, ", \"file\": ");
            put_text(writing, frame_file(frame, node));
        }
        if (frame_line(frame, node))
            buf_printf(writing->out, ", \"line\": %" PRIu32, frame_line(frame, node));
        buf_append(writing->out, "}", 1);
    }
    buf_printf(writing->out, "]},\n");
    return 0;
}

static void put_event(struct writing *writing, char type, uint32_t item, double at, bool *is_first)
{
    buf_printf(writing->out, "%s\n{\"type\": \"%c\", \"frame\": %" PRIu32 ", \"at\": ", *is_first ? "" : ",", type,
               writing->frame_of[item]);
    put_double(writing->out, at);
    buf_append(writing->out, "}", 1);
    *is_first = false;
}

/* Begins and ends of spans: a span ends before the next one that is not below it begins. open [n] is room. */
static void put_events(struct writing *writing, const struct stack_span *spans, size_t n, size_t *open)
{
    size_t n_open = 0;
    bool is_first = true;
    for (size_t i = 0; i <= n; i++) {
        while (n_open > 0 && (i == n || spans[i].item >= writing->stacks.items[spans[open[n_open - 1]].item].end)) {
            const struct stack_span *ended = &spans[open[--n_open]];
            put_event(writing, 'C', ended->item, ended->end, &is_first);
        }
        if (i == n)
            break;
        open[n_open++] = i;
        put_event(writing, 'O', spans[i].item, spans[i].start, &is_first);
    }
}

static int put_profile(struct writing *writing, const char *name, const struct stack_cost *costs, size_t n_costs,
                       struct error *err)
{
    struct stack_span *spans;
    size_t n;
    int code = stacks_spans(&writing->stacks, costs, n_costs, &spans, &n, err);
    if (code != 0)
        return code;
    size_t *open = malloc((n + 1) * sizeof *open);
    if (!open) {
        free(spans);
        return error_memory(err);
    }
    buf_printf(writing->out, "%s\n{\"type\": \"evented\", \"name\": ", writing->n_profiles++ ? "," : "");
    put_text(writing, name);
    buf_printf(writing->out, ", \"unit\": \"%s\", \"startValue\": 0, \"endValue\": ", writing->unit);
    double end = 0;
    for (size_t i = 0; i < n_costs; i++)
        end += costs[i].value;
    put_double(writing->out, end);
    buf_printf(writing->out, ", \"events\": [");
    put_events(writing, spans, n, open);
    buf_printf(writing->out, "]}");
    free(open);
    free(spans);
    return 0;
}

/* The profile of all. */
static int put_total(struct writing *writing, struct error *err)
{
    const char *column = frame_column_name(writing->job->frame, writing->job->column);
    struct buf name = {0};
    struct stack_cost *costs;
    size_t n;
    int code = stacks_costs(&writing->stacks, &costs, &n, err);
    if (code != 0)
        return code;
    buf_printf(&name, "%s%s%s", writing->job->title ? writing->job->title : "", writing->job->title ? ": " : "",
               column);
    code = put_profile(writing, name.data ? name.data : column, costs, n, err);
    buf_fini(&name);
    free(costs);
    return code;
}

static int put_each(struct writing *writing, struct error *err)
{
    const struct frame_job *job = writing->job;
    struct stack_cost *costs;
    size_t *starts;
    int code = stacks_costs_by_profile(job, &writing->stacks, &costs, &starts, err);
    size_t n = job->view.profiles ? job->view.n_profiles : frame_n_profiles(job->frame);
    for (size_t i = 0; code == 0 && costs && i < n; i++) {
        uint32_t profile = job->view.profiles ? job->view.profiles[i] : (uint32_t)i;
        if (starts[i + 1] > starts[i])
            code = put_profile(writing, frame_profile(job->frame, profile)->name, costs + starts[i],
                               starts[i + 1] - starts[i], err);
    }
    free(costs);
    free(starts);
    return code;
}

static const char *find_unit(const struct writing *writing)
{
    const char *column = frame_column_name(writing->job->frame, writing->job->column);
    const char *unit = stacks_unit(column, writing->stacks.is_whole);
    return strcmp(unit, "count") == 0 ? "none" : unit;
}

static int write_speedscope(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct writing writing = {.job = job, .out = out};
    int code = stacks_make(job, &writing.stacks, err);
    if (code == 0) {
        writing.unit = find_unit(&writing);
        buf_printf(out, "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n");
        buf_printf(out, "\"exporter\": \"Locus\", \"name\": ");
        put_text(&writing, job->title ? job->title : "");
        buf_printf(out, ", \"activeProfileIndex\": 0,\n");
        code = put_frames(&writing, err);
    }
    buf_printf(out, "\"profiles\": [");
    if (code == 0)
        code = put_total(&writing, err);
    if (code == 0)
        code = put_each(&writing, err);
    buf_printf(out, "]}\n");
    free(writing.frame_of);
    strtab_fini(&writing.frames);
    buf_fini(&writing.text);
    stacks_fini(&writing.stacks);
    return code;
}

const struct frame_form form_speedscope = {
    .name = "speedscope", .summary = "for speedscope.app, a profile for each thread", .write = write_speedscope};
