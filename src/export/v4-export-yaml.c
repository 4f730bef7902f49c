/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics/default.yaml: for each metric the sum over threads, inclusive and exclusive. */
#include "export/v4-export.h"

/* A double-quoted scalar; names are ASCII by now. */
static void put_quoted(struct buf *out, const char *text)
{
    buf_append(out, "\"", 1);
    for (const char *p = text; *p; p++)
        if (*p == '"' || *p == '\\')
            buf_printf(out, "\\%c", *p);
        else if ((unsigned char)*p < ' ' || *p == 0x7f)
            buf_printf(out, "\\x%02x", (unsigned)*p);
        else
            buf_append(out, p, 1);
    buf_append(out, "\"\n", 2);
}

void v4_export_yaml(const struct v4_meta *meta, struct buf *out)
{
    buf_printf(out, "version: 0\ninputs:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++)
        for (size_t k = 0; k < meta->n_scopes; k++) {
            buf_printf(out, "  - &m%zu-sum-%s\n    metric: ", i, meta->scopes[k].name);
            put_quoted(out, meta->metrics[i].name);
            buf_printf(out, "    scope: %s\n    formula: $$\n    combine: sum\n", meta->scopes[k].name);
        }
    buf_printf(out, "roots:%s\n", meta->n_metrics ? "" : " []");
    for (size_t i = 0; i < meta->n_metrics; i++) {
        buf_printf(out, "  - name: ");
        put_quoted(out, meta->metrics[i].name);
        buf_printf(out, "    description: ");
        put_quoted(out, meta->metrics[i].name);
        buf_printf(out,
                   "    variants:\n      Sum:\n        render: [number, percent]\n        formula:\n"
                   "          inclusive:\n            standard: *m%zu-sum-%s\n"
                   "          exclusive:\n            standard: *m%zu-sum-%s\n",
                   i, meta->scopes[V4_ID_EXECUTION].name, i, meta->scopes[V4_ID_FUNCTION].name);
    }
}
