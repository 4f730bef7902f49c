/* SPDX-License-Identifier: BSD-3-Clause */
/* Reach of a thread's samples in a variable: see reach.h. */
#include "fmt/reach.h"

#include <stdlib.h>
#include <string.h>

#define KEY "reach"
#define SUM_WORDS 7
#define LINE_WORDS 4

uint64_t reach_total(const struct reach_sum *sum)
{
    uint64_t total = 0;
    for (size_t i = 0; i < REACH_BINS; i++)
        total += sum->bins[i];
    return total;
}

uint64_t reach_line_total(const struct reach_line *line)
{
    uint64_t total = 0;
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        total += line->slots[i];
    return total;
}

void reach_widen(struct reach_sum *sum, uint32_t shift)
{
    uint64_t bins[REACH_BINS] = {0};
    if (shift <= sum->shift)
        return;
    uint32_t by = shift - sum->shift;
    for (size_t i = 0; i < REACH_BINS; i++)
        bins[by < 6 ? i >> by : 0] += sum->bins[i];
    memcpy(sum->bins, bins, sizeof bins);
    sum->shift = shift;
}

/* --- what is used most --- */

static int compare_blocks(const void *a, const void *b)
{
    const struct reach_block *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

void reach_add_block(struct reach_sum *sum, uint64_t address, uint64_t count)
{
    size_t at = 0;
    if (!count)
        return;
    while (at < REACH_BLOCKS && sum->blocks[at].count && sum->blocks[at].address != address)
        at++;
    if (at == REACH_BLOCKS && sum->blocks[--at].count >= count)
        return;
    if (sum->blocks[at].address == address && sum->blocks[at].count)
        sum->blocks[at].count += count;
    else
        sum->blocks[at] = (struct reach_block){address, count};
    qsort(sum->blocks, REACH_BLOCKS, sizeof sum->blocks[0], compare_blocks);
}

static int compare_lines(const void *a, const void *b)
{
    const struct reach_line *x = a, *y = b;
    uint64_t n = reach_line_total(x), m = reach_line_total(y);
    if (n != m)
        return n > m ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void merge_line(struct reach_line *into, const struct reach_line *from)
{
    into->read_at |= from->read_at;
    into->written_at |= from->written_at;
    into->n_stores += from->n_stores;
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        into->slots[i] += from->slots[i];
}

void reach_add_line(struct reach *reach, const struct reach_line *line)
{
    size_t at = 0;
    while (at < reach->n_lines && reach->lines[at].line != line->line)
        at++;
    if (at < reach->n_lines)
        merge_line(&reach->lines[at], line);
    else if (reach->n_lines < REACH_LINES)
        reach->lines[reach->n_lines++] = *line;
    else if (reach_line_total(line) > reach_line_total(&reach->lines[REACH_LINES - 1]))
        reach->lines[REACH_LINES - 1] = *line;
    qsort(reach->lines, reach->n_lines, sizeof reach->lines[0], compare_lines);
}

void reach_merge(struct reach_sum *into, const struct reach_sum *from)
{
    struct reach_sum wider = *from;
    if (!reach_total(from))
        return;
    if (!reach_total(into)) {
        *into = *from;
        return;
    }
    reach_widen(into, from->shift);
    reach_widen(&wider, into->shift);
    into->first = from->first < into->first ? from->first : into->first;
    into->last = from->last > into->last ? from->last : into->last;
    into->n_steps += from->n_steps;
    into->n_forward += from->n_forward;
    into->n_loads += from->n_loads;
    into->n_stores += from->n_stores;
    for (size_t i = 0; i < REACH_BINS; i++)
        into->bins[i] += wider.bins[i];
    for (size_t i = 0; i < REACH_BLOCKS; i++)
        reach_add_block(into, from->blocks[i].address, from->blocks[i].count);
}

/* --- JSON --- */

/* [shift, first, last, steps, forward, loads, stores, [bin, samples ...], [block, samples ...]] */
void reach_put(struct buf *out, const struct reach_sum *sum)
{
    const uint64_t words[SUM_WORDS] = {sum->shift,     sum->first,   sum->last,    sum->n_steps,
                                       sum->n_forward, sum->n_loads, sum->n_stores};
    uint64_t pairs[2 * REACH_BINS];
    size_t n = 0;
    for (size_t i = 0; i < SUM_WORDS; i++) {
        buf_printf(out, i ? ", " : "[");
        json_put_word(out, words[i]);
    }
    for (size_t i = 0; i < REACH_BINS; i++)
        if (sum->bins[i]) {
            pairs[n++] = i;
            pairs[n++] = sum->bins[i];
        }
    buf_printf(out, ", ");
    json_put_words(out, pairs, n);
    n = 0;
    for (size_t i = 0; i < REACH_BLOCKS && sum->blocks[i].count; i++) {
        pairs[n++] = sum->blocks[i].address;
        pairs[n++] = sum->blocks[i].count;
    }
    buf_printf(out, ", ");
    json_put_words(out, pairs, n);
    buf_printf(out, "]");
}

/* [line, read at, written at, stores, slot 0, ... slot 15] */
void reach_line_put(struct buf *out, const struct reach_line *line)
{
    uint64_t words[LINE_WORDS + PATTERN_SLOTS] = {line->line, line->read_at, line->written_at, line->n_stores};
    memcpy(words + LINE_WORDS, line->slots, sizeof line->slots);
    json_put_words(out, words, sizeof words / sizeof words[0]);
}

static size_t take_pairs(struct json_take *take, const json_t *list, size_t most, const char *reason)
{
    size_t n = json_array_size(list);
    if (json_is_array(list) && n % 2 == 0 && n / 2 <= most)
        return n / 2;
    (void)json_take_fail(take, ERR_FORMAT, KEY, reason);
    return 0;
}

void reach_take(struct json_take *take, const json_t *list, struct reach_sum *sum)
{
    uint64_t shift = json_take_word(take, json_array_get(list, 0), 63, KEY);
    uint64_t *words[SUM_WORDS] = {&shift,          &sum->first,   &sum->last,    &sum->n_steps,
                                  &sum->n_forward, &sum->n_loads, &sum->n_stores};
    for (size_t i = 1; i < SUM_WORDS; i++)
        *words[i] = json_take_word(take, json_array_get(list, i), UINT64_MAX, KEY);
    sum->shift = (uint32_t)shift;
    const json_t *bins = json_array_get(list, SUM_WORDS), *blocks = json_array_get(list, SUM_WORDS + 1);
    size_t n_bins = take_pairs(take, bins, REACH_BINS, "a list of bins and samples is expected");
    size_t n_blocks = take_pairs(take, blocks, REACH_BLOCKS, "a list of few blocks and samples is expected");
    for (size_t i = 0; i < n_bins && !take->code; i++) {
        uint64_t bin = json_take_word(take, json_array_get(bins, 2 * i), REACH_BINS - 1, KEY);
        sum->bins[bin] = json_take_word(take, json_array_get(bins, 2 * i + 1), UINT64_MAX, KEY);
    }
    for (size_t i = 0; i < n_blocks && !take->code; i++) {
        sum->blocks[i].address = json_take_word(take, json_array_get(blocks, 2 * i), UINT64_MAX, KEY);
        sum->blocks[i].count = json_take_word(take, json_array_get(blocks, 2 * i + 1), UINT64_MAX, KEY);
    }
}

void reach_line_take(struct json_take *take, const json_t *list, struct reach_line *line)
{
    uint64_t *words[LINE_WORDS] = {&line->line, &line->read_at, &line->written_at, &line->n_stores};
    if (json_array_size(list) != LINE_WORDS + PATTERN_SLOTS)
        (void)json_take_fail(take, ERR_FORMAT, KEY, "20 numbers about a line and its slots are expected");
    for (size_t i = 0; i < LINE_WORDS + PATTERN_SLOTS && !take->code; i++)
        *(i < LINE_WORDS ? words[i] : &line->slots[i - LINE_WORDS]) =
            json_take_word(take, json_array_get(list, i), UINT64_MAX, KEY);
}
