/* SPDX-License-Identifier: BSD-3-Clause */
/* MEMLEAK: bytes allocated, freed and never freed by allocation call path. Nothing is sampled: the allocation wrappers
 * record it. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <stdio.h>

static void probe(struct source_probe *out)
{
    *out = (struct source_probe){.works = true, .reason = "allocation wrappers; needs nothing of the machine"};
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    if (threshold->is_given && !threshold->is_standard)
        return error_set(err, ERR_RANGE, "%s takes no period; HPCRUN_MEMLEAK_PROB (-mp) records a part only.", event);
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_MEMLEAK, event, "Bytes Allocated", err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "Bytes allocated, freed and leaked");
    row->flags = SOURCE_WEIGHTED | SOURCE_INTEGER | SOURCE_CALLS;
    out->wants_memleak = true;
    return 0;
}

const struct sample_source source_memleak = {
    .name = "MEMLEAK",
    .summary = "Bytes allocated, freed and leaked by allocation call path",
    .probe = probe,
    .plan = plan,
};
