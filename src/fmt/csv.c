/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of comma-separated values: see csv.h. */
#include "fmt/csv.h"

#include <stdio.h>
#include <string.h>

#include "base/input.h"

void csv_put_quoted(struct buf *out, const char *text)
{
    struct buf plain = {0};
    printable_put(&plain, text);
    buf_append(out, "\"", 1);
    for (const char *p = plain.data; p && *p;) {
        size_t n = strcspn(p, "\"");
        buf_append(out, p, n);
        buf_append(out, "\"\"", p[n] ? 2 : 0);
        p += n + (p[n] != 0);
    }
    buf_append(out, "\"", 1);
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

void csv_put_text(struct buf *out, const char *text)
{
    if (text && strpbrk(text, ",\""))
        csv_put_quoted(out, text);
    else
        printable_put(out, text);
}

/* The length of the field at the begin of a text [len]. */
static size_t field_length(const char *text, size_t len)
{
    bool is_quoted = false;
    size_t n = 0;
    for (; n < len && (is_quoted || (text[n] != ',' && text[n] != '\n')); n++)
        is_quoted ^= text[n] == '"';
    return n;
}

/* Whether a spreadsheet may take the text of a field for a formula. */
static bool is_formula(const char *text, size_t len)
{
    char number[64], *end = number;
    if (len == 0 || !strchr("=+-@\t\r", *text))
        return false;
    (void)snprintf(number, sizeof number, "%.*s", (int)(len < sizeof number ? len : 0), text);
    if (*text == '-' || *text == '+')
        (void)plain_number(number, &end);
    return end == number || *end != 0;
}

void csv_put_guarded(struct buf *out, const char *lines, size_t len)
{
    while (len > 0) {
        size_t n = field_length(lines, len);
        bool is_quoted = n > 1 && *lines == '"';
        buf_append(out, "\"", is_quoted);
        if (is_formula(lines + is_quoted, n - 2 * is_quoted))
            buf_append(out, "'", 1);
        n += n < len; /* what ends the field */
        buf_append(out, lines + is_quoted, n - is_quoted);
        lines += n;
        len -= n;
    }
}
