/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of text that are as wide as they are meant to be. What the measured program chose is data: no control character
 * of it gets into a line, and wide characters count as two columns. */
#include "face/term/screen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/input.h"

/* --- characters --- */

/* The character at text, which printable_put has made, and its columns; returns its length in bytes. */
static size_t take_character(const char *text, bool is_ascii, unsigned *columns)
{
    size_t len = printable_utf8(text);
    const unsigned char *p = (const unsigned char *)text;
    if (len == 0)
        len = 1;
    *columns = 1;
    if (len == 1 || is_ascii)
        return len;
    wchar_t c = len == 2   ? (wchar_t)((p[0] & 31) << 6 | (p[1] & 63))
                : len == 3 ? (wchar_t)((p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63))
                           : (wchar_t)((p[0] & 7) << 18 | (p[1] & 63) << 12 | (p[2] & 63) << 6 | (p[3] & 63));
    int width = wcwidth(c);
    *columns = width < 0 ? 1 : (unsigned)width;
    return len;
}

/* Whether libc knows how wide a character is; what it does not know may be anything on the terminal. */
static bool is_known(const char *text, size_t len)
{
    wchar_t c;
    mbstate_t state = {0};
    return len == 1 || (mbrtowc(&c, text, len, &state) == len && wcwidth(c) >= 0);
}

/* The text as a terminal may have it. */
static void put_safe(struct buf *out, const char *text, bool is_ascii)
{
    struct buf safe = {0};
    printable_put(&safe, text);
    for (const char *p = safe.data ? safe.data : ""; *p;) {
        size_t len = printable_utf8(p);
        len = len ? len : 1;
        bool stays = len == 1 || (!is_ascii && is_known(p, len));
        buf_append(out, stays ? p : "?", stays ? len : 1);
        p += len;
    }
    out->failed |= safe.failed;
    buf_fini(&safe);
}

unsigned text_columns(const char *text, bool is_ascii)
{
    struct buf safe = {0};
    unsigned sum = 0, columns;
    put_safe(&safe, text, is_ascii);
    for (const char *p = safe.data ? safe.data : ""; *p; sum += columns)
        p += take_character(p, is_ascii, &columns);
    buf_fini(&safe);
    return sum;
}

/* --- lines --- */

static void put_span(struct line *line, enum tone tone)
{
    if (line->n_spans && line->spans[line->n_spans - 1].tone == tone)
        return;
    if (vec_reserve(&line->spans, &line->cap_spans, line->n_spans + 1, sizeof *line->spans))
        line->spans[line->n_spans++] = (struct span){line->text.len_bytes, tone};
}

/* Appends what fits into so many columns of a text that is safe; returns how many it took. */
static unsigned put_clipped(struct line *line, enum tone tone, const char *text, unsigned columns)
{
    unsigned taken = 0, each;
    if (line->at >= line->width)
        return 0;
    if (columns > line->width - line->at)
        columns = line->width - line->at;
    put_span(line, tone);
    while (*text) {
        size_t len = take_character(text, line->is_ascii, &each);
        if (taken + each > columns)
            break;
        buf_append(&line->text, text, len);
        taken += each;
        text += len;
    }
    line->at += taken;
    return taken;
}

void line_put(struct line *line, enum tone tone, const char *text)
{
    struct buf safe = {0};
    put_safe(&safe, text, line->is_ascii);
    if (safe.data)
        (void)put_clipped(line, tone, safe.data, line->width);
    buf_fini(&safe);
}

void line_put_in(struct line *line, enum tone tone, const char *text, unsigned columns)
{
    unsigned end = line->at + columns, wide = text_columns(text, line->is_ascii);
    struct buf safe = {0};
    put_safe(&safe, text, line->is_ascii);
    if (wide > columns && columns > 1) {
        (void)put_clipped(line, tone, safe.data ? safe.data : "", columns - 1);
        (void)put_clipped(line, tone, line->is_ascii ? "~" : "\u2026", 1);
    } else if (safe.data) {
        (void)put_clipped(line, tone, safe.data, columns);
    }
    buf_fini(&safe);
    line_to(line, end);
}

void line_put_right(struct line *line, enum tone tone, const char *text, unsigned columns)
{
    unsigned wide = text_columns(text, line->is_ascii);
    if (wide < columns)
        line_to(line, line->at + columns - wide);
    line_put_in(line, tone, text, wide < columns ? wide : columns);
}

void line_printf(struct line *line, enum tone tone, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line_put(line, tone, text);
}

void line_to(struct line *line, unsigned column)
{
    if (column > line->width)
        column = line->width;
    if (line->at >= column)
        return;
    put_span(line, TONE_PLAIN);
    for (; line->at < column; line->at++)
        buf_append(&line->text, " ", 1);
}

void line_clear(struct line *line)
{
    line->text.len_bytes = 0;
    line->n_spans = 0;
    line->at = 0;
}

void line_fini(struct line *line)
{
    buf_fini(&line->text);
    free(line->spans);
    *line = (struct line){0};
}

/* --- pictures --- */

/* By tone: what tells a part of a bar from the one beside it without colours. */
static const char *pattern_of(enum tone tone, bool is_ascii)
{
    static const char *const drawn[TONES] = {[TONE_PLAIN] = "\u2592",
                                             [TONE_DIM] = "\u00b7",
                                             [TONE_MEMORY] = "\u2588",
                                             [TONE_EXECUTION] = "\u2593",
                                             [TONE_UNKNOWN] = "\u2591"};
    static const char *const typed[TONES] = {
        [TONE_PLAIN] = "=", [TONE_DIM] = ".", [TONE_MEMORY] = "#", [TONE_EXECUTION] = "+", [TONE_UNKNOWN] = "?"};
    const char *found = is_ascii ? typed[tone] : drawn[tone];
    return found ? found : is_ascii ? "=" : "\u2592";
}

void line_put_bar(struct line *line, const double *parts, const enum tone *tones, size_t n, unsigned columns)
{
    unsigned end = line->at + columns, begin = line->at;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += isnan(parts[i]) || parts[i] < 0 ? 0 : parts[i];
        unsigned to = begin + (unsigned)lround((sum > 1 ? 1 : sum) * columns);
        while (line->at < to && line->at < line->width)
            (void)put_clipped(line, tones[i], pattern_of(tones[i], line->is_ascii), 1);
    }
    line_to(line, end);
}

void line_put_shade(struct line *line, double part)
{
    static const char *const drawn[] = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};
    static const char *const typed[] = {" ", ".", ":", "*", "#"};
    size_t step = isnan(part) || part <= 0 ? 0 : part >= 1 ? 4 : 1 + (size_t)(part * 4);
    step = step > 4 ? 4 : step;
    (void)put_clipped(line, step ? TONE_MEMORY : TONE_DIM, line->is_ascii ? typed[step] : drawn[step], 1);
}

/* --- several lines --- */

struct line *lines_add(struct lines *lines)
{
    if (!vec_reserve(&lines->items, &lines->cap, lines->n + 1, sizeof *lines->items))
        return NULL;
    struct line *line = &lines->items[lines->n++];
    *line = (struct line){.width = lines->width, .is_ascii = lines->is_ascii};
    return line;
}

/* How many bytes of a safe text stand on a line of so many columns: up to a blank, if there is one. */
static size_t break_of(const char *text, unsigned columns, bool is_ascii)
{
    size_t at = 0, blank = 0;
    unsigned taken = 0, each;
    while (text[at]) {
        size_t len = take_character(text + at, is_ascii, &each);
        if (taken + each > columns)
            return blank ? blank : at ? at : len;
        if (text[at] == ' ')
            blank = at;
        taken += each;
        at += len;
    }
    return at;
}

/* Puts a text behind what stands on the first line. */
static void wrap_behind(struct lines *lines, enum tone tone, unsigned indent, const char *text)
{
    struct buf safe = {0};
    put_safe(&safe, text, lines->is_ascii);
    const char *p = safe.data ? safe.data : "";
    struct line *line = lines->n ? &lines->items[lines->n - 1] : lines_add(lines);
    if (indent + 8 > lines->width)
        indent = 0;
    while (line && *p) {
        size_t n = break_of(p, lines->width > line->at ? lines->width - line->at : 0, lines->is_ascii);
        struct buf piece = {0};
        buf_append(&piece, p, n);
        if (piece.data)
            (void)put_clipped(line, tone, piece.data, lines->width);
        buf_fini(&piece);
        p += n;
        p += strspn(p, " ");
        if (*p && (line = lines_add(lines)))
            line_to(line, indent);
    }
    buf_fini(&safe);
}

void lines_wrap(struct lines *lines, enum tone tone, unsigned indent, const char *text)
{
    struct line *line = lines_add(lines);
    if (line)
        line_to(line, indent);
    wrap_behind(lines, tone, indent, text);
}

void lines_label(struct lines *lines, const char *label, const char *text)
{
    enum { LABEL_COLUMNS = 12 };
    struct line *line = text && *text ? lines_add(lines) : NULL;
    if (!line)
        return;
    line_put_in(line, TONE_DIM, label, LABEL_COLUMNS - 1);
    line_to(line, LABEL_COLUMNS);
    wrap_behind(lines, TONE_PLAIN, LABEL_COLUMNS, text);
}

void lines_clear(struct lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        line_fini(&lines->items[i]);
    lines->n = 0;
}

void lines_fini(struct lines *lines)
{
    lines_clear(lines);
    free(lines->items);
    *lines = (struct lines){0};
}

/* --- numbers --- */

const char *percent_text(double value, char text[NUMBER_BYTES])
{
    if (isnan(value))
        return "-";
    (void)snprintf(text, NUMBER_BYTES, "%.1f %%", value);
    return text;
}

const char *short_text(double value, char text[NUMBER_BYTES])
{
    static const char units[] = " kMGT";
    size_t unit = 0;
    if (isnan(value))
        return "-";
    if (fabs(value) < 1000) {
        (void)snprintf(text, NUMBER_BYTES, "%.4g", value);
        return text;
    }
    while (fabs(value) >= 999.95 && unit + 2 < sizeof units) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(text, NUMBER_BYTES, "%.1f %c", value, units[unit]);
    return text;
}

const char *bytes_text(double value, char text[NUMBER_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (isnan(value))
        return "-";
    while (value >= (unit ? 1023.95 : 1024) && unit < 4) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(text, NUMBER_BYTES, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

const char *place_text(const char *file, double line, char *text, size_t n)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash && slash[1] ? slash + 1 : file;
    if (line > 0)
        (void)snprintf(text, n, "%s:%.0f", name, line);
    else
        (void)snprintf(text, n, "%s", name);
    return text;
}
