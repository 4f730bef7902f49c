/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles in memory: building them up and taking them down. Reading and writing: hpcrun-read.c, hpcrun-write.c. */
#include "fmt/hpcrun.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static int64_t add_pair(struct hpcrun_pair **pairs, size_t *n_pairs, size_t *cap_pairs, const char *name,
                        const char *value)
{
    if (!vec_reserve(pairs, cap_pairs, *n_pairs + 1, sizeof **pairs))
        return -1;
    struct hpcrun_pair pair = {strdup(name ? name : ""), strdup(value ? value : "")};
    if (!pair.name || !pair.value) {
        free(pair.name);
        free(pair.value);
        return -1;
    }
    (*pairs)[*n_pairs] = pair;
    return (int64_t)(*n_pairs)++;
}

int64_t hpcrun_add_pair(struct hpcrun_profile *profile, const char *name, const char *value)
{
    return add_pair(&profile->pairs, &profile->n_pairs, &profile->cap_pairs, name, value);
}

int64_t hpcrun_add_epoch_pair(struct hpcrun_profile *profile, const char *name, const char *value)
{
    return add_pair(&profile->epoch_pairs, &profile->n_epoch_pairs, &profile->cap_epoch_pairs, name, value);
}

static void free_metric(struct hpcrun_metric *metric)
{
    free(metric->name);
    free(metric->description);
    free(metric->formula);
    free(metric->format);
}

int64_t hpcrun_add_metric(struct hpcrun_profile *profile, const char *name, const char *description,
                          enum hpcrun_value_format format, uint64_t period, int show, int show_percent)
{
    if (!vec_reserve(&profile->metrics, &profile->cap_metrics, profile->n_metrics + 1, sizeof *profile->metrics))
        return -1;
    struct hpcrun_metric metric = {.period = period};
    metric.flags[0] = 1; /* raw: measured, not computed */
    metric.flags[2] = (uint8_t)format;
    metric.flags[6] = (uint8_t)show;
    metric.flags[7] = (uint8_t)show_percent;
    metric.name = strdup(name ? name : "");
    metric.description = strdup(description ? description : "");
    metric.formula = strdup("");
    metric.format = strdup("");
    if (!metric.name || !metric.description || !metric.formula || !metric.format) {
        free_metric(&metric);
        return -1;
    }
    profile->metrics[profile->n_metrics] = metric;
    return (int64_t)profile->n_metrics++;
}

int64_t hpcrun_add_module(struct hpcrun_profile *profile, uint16_t id, const char *path, uint64_t flags)
{
    if (!vec_reserve(&profile->modules, &profile->cap_modules, profile->n_modules + 1, sizeof *profile->modules))
        return -1;
    char *copy = strdup(path ? path : "");
    if (!copy)
        return -1;
    profile->modules[profile->n_modules] = (struct hpcrun_module){id, copy, flags};
    return (int64_t)profile->n_modules++;
}

int64_t hpcrun_add_node(struct hpcrun_profile *profile, const struct hpcrun_node *node)
{
    size_t n_values = (profile->n_nodes + 1) * profile->n_metrics;
    if (!vec_reserve(&profile->nodes, &profile->cap_nodes, profile->n_nodes + 1, sizeof *profile->nodes) ||
        !vec_reserve(&profile->values, &profile->cap_values, n_values, sizeof *profile->values))
        return -1;
    profile->nodes[profile->n_nodes] = *node;
    return (int64_t)profile->n_nodes++;
}

const char *hpcrun_pair_value(const struct hpcrun_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->n_pairs; i++)
        if (strcmp(profile->pairs[i].name, name) == 0)
            return profile->pairs[i].value;
    return NULL;
}

static void free_pairs(struct hpcrun_pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        free(pairs[i].name);
        free(pairs[i].value);
    }
    free(pairs);
}

/* Frees what one epoch holds, not the next ones. */
static void free_epoch(struct hpcrun_profile *profile)
{
    free_pairs(profile->pairs, profile->n_pairs);
    free_pairs(profile->epoch_pairs, profile->n_epoch_pairs);
    for (size_t i = 0; i < profile->n_metrics; i++)
        free_metric(&profile->metrics[i]);
    free(profile->metrics);
    for (size_t i = 0; i < profile->n_modules; i++)
        free(profile->modules[i].path);
    free(profile->modules);
    free(profile->nodes);
    free(profile->values);
    for (size_t i = 0; i < profile->n_id_kinds; i++)
        free(profile->id_kinds[i]);
    free(profile->id_kinds);
    free(profile->id_kind_numbers);
    free(profile->ids);
}

void hpcrun_fini(struct hpcrun_profile *profile)
{
    struct hpcrun_profile *next = profile->next;
    free_epoch(profile);
    *profile = (struct hpcrun_profile){0};
    while (next) {
        struct hpcrun_profile *epoch = next;
        next = epoch->next;
        free_epoch(epoch);
        free(epoch);
    }
}
