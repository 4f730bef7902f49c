/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that all versions of a profile share: header, metric table, load map. See hpcrun-parts.h. */
#include "fmt/hpcrun-parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

const struct hpcrun_layout *hpcrun_layout_of(const char *version)
{
    static const struct hpcrun_layout layouts[] = {
        {"02.00", false, false, true}, {"02.10", false, true, false}, {"03.00", false, false, false},
        {"03.10", false, true, false}, {"04.00", true, false, false},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (strcmp(layouts[i].version, version) == 0)
            return &layouts[i];
    return NULL;
}

size_t hpcrun_node_bytes(const struct hpcrun_layout *layout)
{
    return layout->sparse ? 19 : layout->has_type ? 22 : 18;
}

static int get_header_pair(struct wire_in *in, struct hpcrun_profile *profile)
{
    char *name = wire_get_text(in, "the header");
    char *value = wire_get_text(in, "the header");
    if (!in->code && hpcrun_add_pair(profile, name, value) < 0)
        wire_fail(in, ERR_MEMORY, "out of memory in the header");
    free(name);
    free(value);
    return in->code;
}

int hpcrun_get_header(struct wire_in *in, struct hpcrun_profile *profile)
{
    in->offset = strlen(HPCRUN_MAGIC) + strlen(profile->version);
    uint64_t endian = wire_get(in, 1, "the header");
    if (!in->code && endian != 'b')
        return wire_fail(in, ERR_FORMAT, "byte order 0x%02x is not 'b' (big endian)", (unsigned)endian);
    uint64_t n_pairs = wire_get(in, 4, "the header");
    wire_has_items(in, n_pairs, 8, "the header");
    while (!in->code && n_pairs--)
        get_header_pair(in, profile);
    return in->code;
}

/* The layout from before 2010 packs the flags into 64 bits; the original tells it by the same signs. */
static void check_flags(struct wire_in *in, const struct hpcrun_profile *profile, const uint8_t flags[16])
{
    static const uint8_t zero[8];
    bool has_move2proc = hpcrun_layout_of(profile->version)->sparse;
    bool known = (flags[0] == 1 || flags[0] == 2) && (flags[3] == 0 || has_move2proc) && !memcmp(flags + 8, zero, 8);
    if (!in->code && !known)
        wire_fail(in, ERR_UNSUPPORTED, "the flags of a metric are damaged or of the layout before 2010");
}

static void get_metric_tail(struct wire_in *in, struct hpcrun_metric *metric)
{
    static const char what[] = "the metric table";
    metric->is_frequency = (uint16_t)wire_get(in, 2, what);
    metric->is_multiplexed = (uint16_t)wire_get(in, 2, what);
    metric->mean_period = bytes_double_of(wire_get(in, 8, what));
    metric->n_samples = wire_get(in, 8, what);
}

static int get_metric(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the metric table";
    if (!vec_reserve(&profile->metrics, &profile->cap_metrics, profile->n_metrics + 1, sizeof *profile->metrics))
        return wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
    struct hpcrun_metric *metric = &profile->metrics[profile->n_metrics++];
    metric->name = wire_get_text(in, what);
    metric->description = wire_get_text(in, what);
    wire_get_bytes(in, metric->flags, sizeof metric->flags, what);
    check_flags(in, profile, metric->flags);
    metric->period = wire_get(in, 8, what);
    metric->formula = wire_get_text(in, what);
    metric->format = wire_get_text(in, what);
    if (!profile->short_metrics)
        get_metric_tail(in, metric);
    return in->code;
}

int hpcrun_get_metrics(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint64_t n_metrics = wire_get(in, 4, "the metric table");
    wire_has_items(in, n_metrics, profile->short_metrics ? 40 : 60, "the metric table");
    while (!in->code && n_metrics--)
        get_metric(in, profile);
    return in->code;
}

static int get_module(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint16_t id = (uint16_t)wire_get(in, 2, "the load map");
    char *path = wire_get_text(in, "the load map");
    uint64_t flags = wire_get(in, 8, "the load map");
    if (!in->code && hpcrun_add_module(profile, id, path, flags) < 0)
        wire_fail(in, ERR_MEMORY, "out of memory in the load map");
    free(path);
    return in->code;
}

int hpcrun_get_modules(struct wire_in *in, struct hpcrun_profile *profile)
{
    uint64_t n_modules = wire_get(in, 4, "the load map");
    wire_has_items(in, n_modules, 14, "the load map");
    while (!in->code && n_modules--)
        get_module(in, profile);
    return in->code;
}
