/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading skid figures. */
#include "export/skid-text.h"

#include <jansson.h>
#include <string.h>

#include "analysis/build/causes.h"

/* Samples of all kernels of the self-test, and those that lay on the instruction after the stalled one. */
static void sum_kernels(const json_t *kernels, double *samples, double *next, double *worst)
{
    size_t i;
    json_t *kernel;
    *samples = *next = 0;
    *worst = 100;
    json_array_foreach(kernels, i, kernel)
    {
        double n = json_number_value(json_object_get(kernel, "samples"));
        double percent = json_number_value(json_object_get(kernel, "percent_next"));
        *samples += n;
        *next += n * percent / 100;
        if (n > 0 && percent < *worst)
            *worst = percent;
    }
}

void skid_text(struct buf *out, const char *json)
{
    double samples, next, worst;
    json_t *figures = json_loads(json, 0, NULL);
    const char *rule = json_string_value(json_object_get(figures, "rule"));
    const json_t *kernels = json_object_get(figures, "kernels");
    if (!rule || !json_is_array(kernels)) {
        buf_printf(out, "%s", json);
        json_decref(figures);
        return;
    }
    sum_kernels(kernels, &samples, &next, &worst);
    buf_printf(out, "rule %s", rule);
    if (samples > 0)
        buf_printf(out, ": %.0f %% of %.0f samples lay on the next instruction (worst loop: %.0f %%)",
                   100 * next / samples, samples, worst);
    if (!causes_retire_in_order(json))
        buf_printf(out, "; instructions without access seem to wait, too");
    json_decref(figures);
}

bool skid_holds(const char *json)
{
    json_t *figures = json_loads(json, 0, NULL);
    const char *rule = json_string_value(json_object_get(figures, "rule"));
    bool holds = rule && strcmp(rule, "holds") == 0;
    json_decref(figures);
    return holds;
}
