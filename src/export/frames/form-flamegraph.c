/* SPDX-License-Identifier: BSD-3-Clause */
/* A flame graph as one SVG file that refers to nothing outside: roots at the top, as wide as their costs. As a picture
 * it is complete; where scripts may run, it fits the window, zooms by click and keyboard, and searches. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/stacks.h"

extern const struct frame_form form_flamegraph;

enum { WIDTH = 1200, TOP = 64, ROW = 18, BOTTOM = 10, HUES = 6 };

/* Narrower frames are nothing that anybody sees: a twelfth of a pixel. */
static const double least_percent = 100.0 / (12.0 * WIDTH);
static const double character_px = 7.0; /* of the font below, at most */

/* flames.css and flames.js, as texts. */
extern const char flames_css[], flames_js[];

/* --- text --- */

/* The length of a character that XML does not allow though UTF-8 does: U+FFFE and U+FFFF. */
static bool is_no_character(const char *at)
{
    return memcmp(at, "\xef\xbf\xbe", 3) == 0 || memcmp(at, "\xef\xbf\xbf", 3) == 0;
}

static void put_character(struct buf *out, const char *at, size_t len)
{
    if (*at == '&' || *at == '<' || *at == '>')
        buf_printf(out, *at == '&' ? "&amp;" : *at == '<' ? "&lt;" : "&gt;");
    else if (len == 3 && is_no_character(at))
        buf_printf(out, "\ufffd");
    else
        buf_append(out, at, len);
}

/* Appends a text as content, at most max characters of it, and an ellipsis where more follow. */
static void put_text(struct buf *out, const char *text, size_t max)
{
    stacks_put_cut(out, text, max, put_character);
}

/* --- frames --- */

struct drawing {
    const struct frame_job *job;
    struct stacks stacks;
    double *x;        /* [stacks.n] */
    uint32_t *depths; /* [stacks.n] */
    uint32_t n_rows;
    const char *unit;
    struct buf *out;
};

/* Children lie at the left of what is left to their parent. */
static int place_items(struct drawing *drawing, struct error *err)
{
    struct stacks *stacks = &drawing->stacks;
    double *next = malloc(((size_t)stacks->n + 1) * sizeof *next), at = 0;
    drawing->x = malloc(((size_t)stacks->n + 1) * sizeof *drawing->x);
    drawing->depths = malloc(((size_t)stacks->n + 1) * sizeof *drawing->depths);
    if (!next || !drawing->x || !drawing->depths) {
        free(next);
        return error_memory(err);
    }
    for (uint32_t i = 0; i < stacks->n; i++) {
        uint32_t parent = stacks->items[i].parent;
        double *from = parent == FRAME_NONE ? &at : &next[parent];
        next[i] = drawing->x[i] = *from;
        *from += stacks->items[i].total;
        drawing->depths[i] = parent == FRAME_NONE ? 0 : drawing->depths[parent] + 1;
        drawing->n_rows = drawing->depths[i] >= drawing->n_rows ? drawing->depths[i] + 1 : drawing->n_rows;
    }
    free(next);
    return 0;
}

/* The colour of a frame: by kind, and of functions by name, so that the same one always looks the same. */
static void put_class(struct drawing *drawing, uint32_t node)
{
    unsigned hue = 0;
    for (const char *c = frame_name(drawing->job->frame, node); *c; c++)
        hue = hue * 31 + (unsigned char)*c;
    switch (frame_kind(drawing->job->frame, node)) {
    case FRAME_VARIABLE:
    case FRAME_FIELD:
        buf_printf(drawing->out, "f data");
        return;
    case FRAME_GROUP:
        buf_printf(drawing->out, "f group");
        return;
    case FRAME_LOOP:
        buf_printf(drawing->out, "f loop");
        return;
    default:
        buf_printf(drawing->out, "f h%u", hue % HUES);
    }
}

static void put_cost(struct drawing *drawing, double value)
{
    buf_printf(drawing->out, "%.6g%s%s, %.2f %%", value, *drawing->unit ? " " : "", drawing->unit,
               100 * value / drawing->stacks.total);
}

/* The width of a value. Columns of other tools may hold anything, such as values of both signs, or tiny ones. */
static double px_of(const struct drawing *drawing, double value)
{
    double part = value / drawing->stacks.total;
    return part > 0 ? WIDTH * fmin(part, 1) : 0;
}

static void put_item(struct drawing *drawing, uint32_t i)
{
    const struct stack *item = &drawing->stacks.items[i];
    double x = px_of(drawing, drawing->x[i]), width = px_of(drawing, item->total);
    uint64_t y = TOP + (uint64_t)drawing->depths[i] * ROW;
    size_t room = width > 8 ? (size_t)((width - 8) / character_px) : 0;
    buf_printf(drawing->out, "<g class=\"");
    put_class(drawing, item->node);
    buf_printf(drawing->out, "\" tabindex=\"-1\"><title>");
    put_text(drawing->out, frame_name(drawing->job->frame, item->node), SIZE_MAX);
    buf_printf(drawing->out, " \u2014 ");
    put_cost(drawing, item->total);
    if (item->self > 0 && item->self < item->total) {
        buf_printf(drawing->out, "; its own ");
        put_cost(drawing, item->self);
    }
    buf_printf(drawing->out, "</title><rect x=\"%.4f\" y=\"%" PRIu64 "\" width=\"%.4f\" height=\"%d\" rx=\"1\"/>", x, y,
               width, ROW - 1);
    buf_printf(drawing->out, "<text x=\"%.2f\" y=\"%" PRIu64 "\">", x + 4, y + 13);
    if (room >= 3)
        put_text(drawing->out, frame_name(drawing->job->frame, item->node), room);
    buf_printf(drawing->out, "</text></g>\n");
}

/* --- the page --- */

static void put_head(struct drawing *drawing)
{
    const struct frame_job *job = drawing->job;
    uint64_t height = TOP + (uint64_t)drawing->n_rows * ROW + BOTTOM;
    buf_printf(drawing->out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" "
               "height=\"%" PRIu64 "\" viewBox=\"0 0 %d %" PRIu64 "\">\n<title>",
               height, WIDTH, height);
    put_text(drawing->out, job->title && *job->title ? job->title : "Flame graph", SIZE_MAX);
    buf_printf(drawing->out, "</title>\n<style>%s</style>\n<text x=\"10\" y=\"20\" font-size=\"15\">", flames_css);
    put_text(drawing->out, job->title && *job->title ? job->title : "Flame graph", 80);
    buf_printf(drawing->out, " \u00b7 ");
    put_text(drawing->out, frame_column_name(job->frame, job->column), 60);
    buf_printf(drawing->out, " %.6g%s%s</text>\n", drawing->stacks.total, *drawing->unit ? " " : "", drawing->unit);
    buf_printf(drawing->out,
               "<g id=\"tools\" style=\"display:none\"><foreignObject x=\"10\" y=\"28\" width=\"306\" height=\"28\">"
               "<input xmlns=\"http://www.w3.org/1999/xhtml\" type=\"search\" aria-label=\"Search\" "
               "placeholder=\"Search: /   Zoom: Enter   Back: Esc\"/></foreignObject>"
               "<text id=\"status\" x=\"324\" y=\"46\" aria-live=\"polite\"></text>"
               "<text id=\"info\" class=\"dim\" x=\"480\" y=\"46\"></text></g>\n");
}

static int write_flamegraph(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct frame_job own = *job;
    struct drawing drawing = {.job = &own, .out = out};
    own.min_percent = fmax(job->min_percent, least_percent);
    int code = stacks_make(&own, &drawing.stacks, err);
    const char *column = frame_column_name(job->frame, job->column);
    drawing.unit = strcmp(stacks_unit(column, drawing.stacks.is_whole), "seconds") == 0 ? "s" : "";
    if (code == 0)
        code = place_items(&drawing, err);
    if (code == 0) {
        put_head(&drawing);
        for (uint32_t i = 0; i < drawing.stacks.n; i++)
            put_item(&drawing, i);
        buf_printf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", flames_js);
    }
    free(drawing.x);
    free(drawing.depths);
    stacks_fini(&drawing.stacks);
    return code;
}

const struct frame_form form_flamegraph = {.name = "flamegraph",
                                           .summary = "a flame graph, as an SVG file that zooms and searches",
                                           .write = write_flamegraph};
