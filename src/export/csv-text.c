/* SPDX-License-Identifier: BSD-3-Clause */
/* See csv-text.h. */
#include "export/csv-text.h"

#include <string.h>

void csv_put_text(struct buf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        buf_printf(out, "%s", text);
        return;
    }
    buf_append(out, "\"", 1);
    for (const char *p = text; *p; p++)
        buf_append(out, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    buf_append(out, "\"", 1);
}
