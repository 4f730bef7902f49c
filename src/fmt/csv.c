/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of comma-separated values: see csv.h. */
#include "fmt/csv.h"

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
