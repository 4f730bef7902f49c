/* SPDX-License-Identifier: BSD-3-Clause */
/* Values from the temporary file. */
#include "analysis/values.h"

#include <stdlib.h>

/* Turns the bytes of a piece into cells. */
static void decode(const struct spilled_values *values, const char *bytes, size_t n, struct cell *cells)
{
    for (size_t i = 0; i < n; i++) {
        struct ingest_value value = ingest_value_at(bytes + i * INGEST_VALUE_BYTES);
        cells[i] = (struct cell){.scope = values->scopes[value.node],
                                 .metric = values->metrics[value.metric],
                                 .value = value.value};
    }
}

static int visit_spilled(void *self, const struct model *model, size_t t,
                         int (*take)(void *, const struct cell *, size_t, struct error *), void *context,
                         struct error *err)
{
    const struct spilled_values *values = self;
    const struct ingested *profile = &values->profiles[model->threads[t].profile];
    char *bytes = NULL;
    struct cell *cells = NULL;
    size_t cap_bytes = 0, cap_cells = 0;
    int code = 0;
    for (size_t i = 0; code == 0 && i < profile->n_pieces; i++) {
        size_t len_bytes = profile->pieces[i].len_bytes, n = len_bytes / INGEST_VALUE_BYTES;
        if (!vec_reserve(&bytes, &cap_bytes, len_bytes, 1) || !vec_reserve(&cells, &cap_cells, n, sizeof *cells)) {
            code = error_set(err, ERR_MEMORY, "out of memory for %zu values", n);
            break;
        }
        code = spill_read(&values->spill, profile->pieces[i].offset, bytes, len_bytes, err);
        if (code)
            break;
        decode(values, bytes, n, cells);
        code = take(context, cells, n, err);
    }
    free(bytes);
    free(cells);
    return code;
}

static void free_spilled(void *self)
{
    struct spilled_values *values = self;
    spill_close(&values->spill);
    for (size_t i = 0; i < values->n_profiles; i++)
        ingested_fini(&values->profiles[i]);
    free(values->profiles);
    free(values->scopes);
    free(values->metrics);
    free(values);
}

struct value_source values_spilled(struct spilled_values *values)
{
    return (struct value_source){.self = values, .visit = visit_spilled, .free = free_spilled};
}

void values_free(struct value_source *source)
{
    if (source->free)
        source->free(source->self);
    *source = (struct value_source){0};
}
