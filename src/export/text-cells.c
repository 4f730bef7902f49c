/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of terminal tables. */
#include "export/text-cells.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "structure/assign-name.h"

static size_t count_chars(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p += printable_utf8(p))
        n++;
    return n;
}

/* Appends at most width characters of printable text and returns how many. */
static size_t put_chars(struct buf *out, const struct export_job *job, const char *text, size_t width)
{
    size_t n = 0, total = count_chars(text);
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
    buf_fini(&plain);
}

void text_cell(struct buf *out, const struct export_job *job, const char *text, size_t width, bool right)
{
    struct buf plain = {0};
    printable_put(&plain, text);
    const char *shown = plain.data ? plain.data : "";
    size_t n = count_chars(shown);
    for (size_t i = n; right && i < width; i++)
        buf_append(out, " ", 1);
    n = put_chars(out, job, shown, width);
    for (; !right && n < width; n++)
        buf_append(out, " ", 1);
    buf_fini(&plain);
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
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
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

void text_labelled(struct buf *out, const struct export_job *job, const char *label, const char *words)
{
    size_t width = job->columns - TEXT_LABEL_WIDTH;
    bool first = true;
    struct buf plain = {0};
    printable_put(&plain, words);
    const char *text = plain.data ? plain.data : "";
    while (*text) {
        size_t len = strlen(text), cut = len;
        if (len > width) {
            for (cut = width; cut > width / 2 && text[cut] != ' '; cut--)
                continue;
            while (cut < len && ((unsigned char)text[cut] & 0xc0) == 0x80)
                cut--;
        }
        text_style(out, job, TEXT_BOLD);
        text_cell(out, job, first ? label : "", TEXT_LABEL_WIDTH, false);
        text_style(out, job, TEXT_PLAIN);
        buf_append(out, text, cut);
        buf_append(out, "\n", 1);
        text += cut + (text[cut] == ' ');
        first = false;
    }
    buf_fini(&plain);
}

void text_lines(struct buf *out, uint32_t first, uint32_t last)
{
    buf_printf(out, "%u", first);
    if (last > first)
        buf_printf(out, "-%u", last);
}

const char *text_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void text_function(struct buf *out, const char *function)
{
    char qualified[256];
    bool is_readable = *assign_name_parameters(function) == '(';
    bool has_name = is_readable && *assign_name_function(function, qualified, sizeof qualified);
    buf_printf(out, "%s", has_name ? qualified : function);
}
