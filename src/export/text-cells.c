/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of terminal tables: see text-cells.h. */
#include "export/text-cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "structure/names/assign-name.h"

#define PROGRAMS_SHOWN 8
#define SIZE_AS_NEXT 1023.95 /* of a unit: is written as 1024.0 */

/* Appends at most width characters of printable text and returns how many. */
static size_t put_chars(struct buf *out, const struct export_job *job, const char *text, size_t width)
{
    size_t n = 0, total = printable_chars(text);
    size_t dots = total > width ? (job->unicode ? 1 : 2) : 0;
    for (const char *p = text; *p && n + dots < (total > width ? width : total + dots); p += printable_utf8(p), n++)
        buf_append(out, p, printable_utf8(p));
    if (dots && width >= dots) {
        buf_printf(out, "%s", job->unicode ? "\xe2\x80\xa6" : "..");
        n += dots;
    }
    return n;
}

void text_cut(struct buf *out, const struct export_job *job, const char *text, size_t width)
{
    struct buf plain = {0};
    printable_put(&plain, text);
    (void)put_chars(out, job, plain.data ? plain.data : "", width);
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

void text_cell(struct buf *out, const struct export_job *job, const char *text, size_t width, bool right)
{
    struct buf plain = {0};
    printable_put(&plain, text);
    const char *shown = plain.data ? plain.data : "";
    size_t n = printable_chars(shown);
    for (size_t i = n; right && i < width; i++)
        buf_append(out, " ", 1);
    n = put_chars(out, job, shown, width);
    for (; !right && n < width; n++)
        buf_append(out, " ", 1);
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

void text_end_line(struct buf *out)
{
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
}

double percent_of(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

double percent_of_counts(uint64_t part, uint64_t whole)
{
    return percent_of((double)part, (double)whole);
}

void text_bar(struct buf *out, const struct export_job *job, double share, size_t width)
{
    static const char *const eighths[] = {"",
                                          "\xe2\x96\x8f",
                                          "\xe2\x96\x8e",
                                          "\xe2\x96\x8d",
                                          "\xe2\x96\x8c",
                                          "\xe2\x96\x8b",
                                          "\xe2\x96\x8a",
                                          "\xe2\x96\x89"};
    double filled = share < 0 ? 0 : share > 100 ? (double)width : share * (double)width / 100;
    size_t full = (size_t)filled, part = (size_t)((filled - (double)full) * 8), n = full;
    if (!job->unicode) {
        full = n = (size_t)(filled + 0.5);
        part = 0;
    }
    for (size_t i = 0; i < full; i++)
        buf_printf(out, "%s", job->unicode ? "\xe2\x96\x88" : "#");
    if (part && n < width) {
        buf_printf(out, "%s", eighths[part]);
        n++;
    }
    for (; n < width; n++)
        buf_append(out, " ", 1);
}

void text_size(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= (unit ? SIZE_AS_NEXT : 1024) && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    if (bytes == 0)
        (void)snprintf(text, 16, "-");
    else
        (void)snprintf(text, 16, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void text_style(struct buf *out, const struct export_job *job, int style)
{
    if (job->color)
        buf_printf(out, "\033[%dm", style);
}

void text_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_printf(out, "-");
    else if (value >= 10000)
        buf_printf(out, "%.3gk", value / 1000);
    else
        buf_printf(out, value >= 100 ? "%.0f" : "%.1f", value);
}

size_t text_width(const char *text)
{
    struct buf plain = {0};
    printable_put(&plain, text);
    size_t n = printable_chars(plain.data ? plain.data : "");
    buf_fini(&plain);
    return n;
}

/* Number of bytes of the first width characters; *is_all gets whether that is the whole text. */
static size_t bytes_of(const char *text, size_t width, bool *is_all)
{
    const char *p = text;
    for (size_t n = 0; *p && n < width; n++)
        p += printable_utf8(p) ? printable_utf8(p) : 1;
    *is_all = !*p;
    return (size_t)(p - text);
}

/* Whether a line may end after the first n bytes: at a blank, unless that would separate a number from its percent
 * sign, or after a character that separates the parts of a name or path. */
static bool may_end(const char *text, size_t n, bool at_blank)
{
    if (at_blank)
        return text[n] == ' ' && text[n + 1] != '%';
    bool is_line = n > 1 && text[n - 1] == ':' && text[n] >= '0' && text[n] <= '9';
    if (n > 0 && text[n] == '+' && text[n + 1] == '0') /* "malloc_state+0x12" */
        return true;
    bool is_opened = n > 1 && text[n - 1] == '(' && text[n - 2] == ' '; /* the line breaks better before the bracket */
    return n > 0 && text[n] != '>' && !is_line && !is_opened && strchr("/:>,_(<", text[n - 1]);
}

/* The greatest length above least, and not above most, at which the line may end; 0 when there is none. */
static size_t find_end(const char *text, size_t least, size_t most, bool at_blank)
{
    size_t n = most;
    while (n > least && !may_end(text, n, at_blank))
        n--;
    return n > least ? n : 0;
}

char *text_take_line(const char **rest, size_t width)
{
    const char *text = *rest;
    bool is_all;
    size_t len = bytes_of(text, width ? width : 1, &is_all), cut = is_all ? len : 0;
    cut = cut ? cut : find_end(text, 2 * len / 3, len, true);
    cut = cut ? cut : find_end(text, len / 2, len, false);
    cut = cut ? cut : find_end(text, 0, len, true);
    cut = cut ? cut : len;
    *rest = text + cut;
    while (!is_all && **rest == ' ')
        ++*rest;
    return strndup(text, cut);
}

size_t text_wrapped_most(struct buf *out, const struct export_job *job, const char *words, size_t at, size_t indent,
                         size_t most)
{
    struct buf plain = {0};
    size_t n_lines = 0;
    printable_put(&plain, words);
    const char *rest = plain.data ? plain.data : "";
    do {
        size_t begin = n_lines == 0 ? at : indent, room = job->columns > begin + 12 ? job->columns - begin : 12;
        bool is_cut = ++n_lines == most && printable_chars(rest) > room;
        buf_printf(out, "%*s", n_lines == 1 ? 0 : (int)indent, "");
        if (is_cut) {
            text_cut(out, job, rest, room);
            buf_append(out, "\n", 1);
            break;
        }
        char *line = text_take_line(&rest, room);
        out->failed |= !line;
        for (size_t n = line ? strlen(line) : 0; n > 0 && line[n - 1] == ' '; n--)
            line[n - 1] = 0;
        buf_printf(out, "%s\n", line ? line : "");
        free(line);
    } while (*rest);
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
    return n_lines;
}

void text_wrapped(struct buf *out, const struct export_job *job, const char *words, size_t at, size_t indent)
{
    (void)text_wrapped_most(out, job, words, at, indent, SIZE_MAX);
}

void text_labelled(struct buf *out, const struct export_job *job, const char *label, const char *words)
{
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, label, TEXT_LABEL_WIDTH, false);
    text_style(out, job, TEXT_PLAIN);
    text_wrapped(out, job, words, TEXT_LABEL_WIDTH, TEXT_LABEL_WIDTH);
}

const char *text_program_name(const struct export_job *job)
{
    const struct model *model = job->model;
    return model->command ? model->command : model->program ? model_module_name(model, model->program) : "?";
}

size_t text_programs(const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    struct strtab names = {0};
    for (size_t i = 0; i < model->n_processes; i++)
        (void)strtab_intern(&names, model->processes[i].exe);
    size_t n = names.n_strings;
    for (size_t i = 0; i < n && i < PROGRAMS_SHOWN; i++)
        buf_printf(out, "%s%s", i ? ", " : "", names.strings[i]);
    if (n > PROGRAMS_SHOWN)
        buf_printf(out, " and %zu more", n - PROGRAMS_SHOWN);
    strtab_fini(&names);
    return n;
}

void text_program(struct buf *out, const struct export_job *job)
{
    struct buf names = {0}, text = {0};
    size_t n = text_programs(job, &names);
    buf_printf(&text, "%s", text_program_name(job));
    if (n > 1)
        buf_printf(&text, "; %zu programs: %s", n, names.data ? names.data : "");
    text_labelled(out, job, "program", text.data ? text.data : "");
    buf_fini(&names);
    buf_fini(&text);
}

void text_lines(struct buf *out, uint32_t first, uint32_t last)
{
    buf_printf(out, "%u", first);
    if (last > first)
        buf_printf(out, "-%u", last);
}

void text_function(struct buf *out, const char *function)
{
    char qualified[256];
    bool is_readable = *assign_name_parameters(function) == '(';
    bool has_name = is_readable && *assign_name_function(function, qualified, sizeof qualified);
    buf_printf(out, "%s", has_name ? qualified : function);
}

/* The end of the template arguments that the C++ library adds by itself and that begin at the comma at p; p itself when
 * none do. */
static const char *skip_default(const char *p)
{
    static const char *const names[] = {"allocator", "char_traits", "less", "hash", "equal_to", "default_delete"};
    static const char before[] = ", std::";
    if (strncmp(p, before, strlen(before)) != 0)
        return p;
    const char *name = p + strlen(before);
    size_t len = strcspn(name, "<>, ");
    bool is_default = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_default |= strlen(names[i]) == len && strncmp(name, names[i], len) == 0;
    int depth = 0;
    for (const char *end = name + len; is_default && *end; end++) {
        depth += (*end == '<') - (*end == '>');
        if (depth == 0)
            return end[1] == ' ' && end[2] == '>' ? end + 2 : end + 1;
    }
    return p;
}

void text_origin(struct buf *out, const char *origin)
{
    static const struct {
        const char *from, *to;
    } words[] = {{"std::__cxx11::", "std::"}, {"std::__1::", "std::"}};
    static const char text[] = "std::basic_string<char>";
    struct buf plain = {0};
    for (const char *p = origin; p && *p;) {
        const char *end = skip_default(p), *to = "";
        for (size_t i = 0; i < sizeof words / sizeof *words && end == p; i++)
            if (strncmp(p, words[i].from, strlen(words[i].from)) == 0) {
                end = p + strlen(words[i].from);
                to = words[i].to;
            }
        buf_append(&plain, end == p ? p : to, end == p ? 1 : strlen(to));
        p = end == p ? p + 1 : end;
    }
    for (const char *p = plain.data ? plain.data : ""; *p;) {
        bool is_text = strncmp(p, text, strlen(text)) == 0;
        buf_append(out, is_text ? "std::string" : p, is_text ? strlen("std::string") : 1);
        p += is_text ? strlen(text) : 1;
    }
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

/* The end of the template arguments that begin at p in text; p itself when none do. */
static const char *skip_arguments(const char *text, const char *p)
{
    static const char operator[] = "operator";
    size_t before = (size_t)(p - text), len = sizeof operator- 1;
    bool is_after_name = before > 0 && !strchr(" <.(", p[-1]); /* "outer.<locals>", "<module> (<string>:3)" of Python */
    int depth = 0, n_open = 0; /* what stands in brackets is compared, not an argument's end */
    if (*p != '<' || !is_after_name || (before >= len && strncmp(p - len, operator, len) == 0))
        return p;
    for (const char *end = p; *end; end++) {
        n_open += (*end == '(') - (*end == ')');
        depth += n_open ? 0 : (*end == '<') - (*end == '>' && end[-1] != '-');
        if (depth == 0)
            return end + 1;
    }
    return p;
}

void text_short_function(struct buf *out, const char *function)
{
    const char *open = assign_name_parameters(function);
    bool has_parameters = *function != '/' && *open == '(' && open > function && open[-1] != ' ';
    if (has_parameters)
        text_function(out, function);
    else
        text_short_name(out, function);
}

void text_short_name(struct buf *out, const char *name)
{
    struct buf plain = {0};
    if (*name == '/') {
        buf_printf(out, "%s", path_last(name));
        return;
    }
    text_origin(&plain, name);
    const char *text = plain.data ? plain.data : "";
    for (const char *p = text; *p;) {
        const char *end = skip_arguments(text, p);
        if (end == p)
            buf_append(out, p++, 1);
        else
            p = end;
    }
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}
