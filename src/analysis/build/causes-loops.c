/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of the same loop: see causes.h. Sorting them by their places in the code brings each loop together. */
#include "analysis/build/causes.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

#define GAP_BYTES 64 /* between instructions of a loop that have samples */
#define FED_PART 0.5 /* of the samples at instructions without access, at most this part waited for what they use */
/* Of the samples at data in the first-level cache, whose places a stream may tell, or at links of a chain, so many more
 * may have waited for the stream; or the work fills so much of the stream's waits that these save nothing. */
#define WORK_PART 0.25

bool cause_waits_add(struct cause_waits *waits, const struct cause_wait *wait)
{
    if (!vec_reserve(&waits->items, &waits->capacity, waits->n + 1, sizeof *waits->items))
        return false;
    waits->items[waits->n++] = *wait;
    return true;
}

void cause_waits_fini(struct cause_waits *waits)
{
    free(waits->items);
    *waits = (struct cause_waits){0};
}

static int compare_words(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_places(const void *a, const void *b)
{
    const struct cause_wait *x = a, *y = b;
    int order = compare_words(x->event, y->event);
    order = order ? order : compare_words(x->module, y->module);
    order = order ? order : compare_words(x->place, y->place);
    order = order ? order : compare_words(!x->is_head, !y->is_head);
    return order ? order : compare_words(x->variable, y->variable);
}

static int compare_variables(const void *a, const void *b)
{
    const struct cause_wait *x = a, *y = b;
    return compare_words(x->variable, y->variable);
}

static bool is_near(const struct cause_wait *head, uint64_t last, const struct cause_wait *wait)
{
    return head->is_head && (wait->is_head ? wait->place == head->place : wait->place <= last + GAP_BYTES);
}

/* Where the loop that begins at first ends among the waits: it has those with the same head, and the instructions
 * behind them up to a gap or the next head. */
static size_t end_of_loop(const struct cause_waits *waits, size_t first)
{
    const struct cause_wait *items = waits->items, *head = &items[first];
    uint64_t last = head->last;
    size_t end = first + 1;
    for (; end < waits->n && items[end].event == head->event && items[end].module == head->module &&
           is_near(head, last, &items[end]);
         end++)
        last = items[end].last > last ? items[end].last : last;
    return end;
}

static double late_part(double memory, double total)
{
    return fmin(1, total > 0 ? 2 * memory / total : 0);
}

double cause_late(double fed, double memory, double total)
{
    return FED_PART * fed * late_part(memory, total);
}

/* Adds to the interval of a variable's sum: late samples above it, and early ones below. */
static void add_late(struct variable *variable, uint32_t event, double late, double early)
{
    for (size_t i = 0; i < variable->n_causes; i++)
        if (variable->causes[i].event == event) {
            struct cause_sum *sum = &variable->causes[i].sum;
            sum->memory_high += late;
            sum->memory_most += late;
            sum->memory_low = fmax(0, sum->memory_low - early);
            sum->memory_least = fmax(0, sum->memory_least - early);
        }
}

static void widen(struct variable *variable, uint32_t event, double hidden, double hiding)
{
    for (size_t i = 0; i < variable->n_causes; i++)
        if (variable->causes[i].event == event) {
            variable->causes[i].sum.memory_most += hidden;
            variable->causes[i].sum.memory_least = fmax(0, variable->causes[i].sum.memory_least - hiding);
        }
}

/* Widens the intervals of the streams of one variable, its waits [n], beside work at data in the first-level cache:
 * near samples of the loop. */
static void widen_streams(const struct cause_wait *items, size_t n, double near, struct model *model)
{
    double low = 0, high = 0, samples = 0;
    for (size_t i = 0; i < n; i++) {
        near -= items[i].near;
        low += items[i].is_stream ? items[i].low : 0;
        high += items[i].is_stream ? items[i].high : 0;
        samples += items[i].is_stream ? items[i].samples : 0;
    }
    double work = WORK_PART * fmax(0, near) * late_part(high, samples);
    add_late(&model->variables[items[0].variable], items[0].event, work, fmin(low, work));
}

/* Widens what the variables of one loop cost: waits [n]. */
static void share_loop(struct cause_wait *items, size_t n, struct model *model)
{
    double all_high = 0, memory = 0, streamed = 0, total = 0, near = 0;
    qsort(items, n, sizeof *items, compare_variables);
    for (size_t i = 0; i < n; i++) {
        all_high += items[i].high;
        memory += items[i].memory;
        streamed += items[i].is_stream ? items[i].memory : 0;
        total += items[i].samples;
        near += items[i].near;
    }
    for (size_t i = 0; i < n; i++) { /* what arithmetic waits for, as far as its variable's sum does not have it */
        double late = fmax(0, cause_late(items[i].fed, memory, total) - items[i].late);
        double linked = WORK_PART * items[i].linked * late_part(streamed, total);
        add_late(&model->variables[items[i].variable], items[i].event, late + linked, 0);
    }
    for (size_t i = 0, end; i < n; i = end) {
        double low = 0, high = 0;
        for (end = i; end < n && items[end].variable == items[i].variable; end++) {
            low += items[end].low;
            high += items[end].high;
        }
        double others = all_high - high;
        widen_streams(items + i, end - i, near, model);
        widen(&model->variables[items[i].variable], items[i].event, fmin(high, others / 2), fmin(low / 2, others));
    }
}

void cause_waits_share(struct cause_waits *waits, struct model *model)
{
    if (waits->n)
        qsort(waits->items, waits->n, sizeof *waits->items, compare_places);
    for (size_t i = 0, end; i < waits->n; i = end) {
        end = end_of_loop(waits, i);
        share_loop(waits->items + i, end - i, model);
    }
}
