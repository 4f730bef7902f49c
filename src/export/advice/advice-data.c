/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about variables from how they are used: arithmetic, the order and size of accesses, fields, blocks and pages.
 * See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/build/causes.h"
#include "base/access-pattern.h"
#include "export/text-cells.h"

#define WALK_BYTES (1 << 20) /* of a variable: less is in some cache before long, in whatever order it is read */
#define BLOCKS_MANY 1000
#define BLOCK_SMALL 4096.0     /* bytes */
#define HUGE_LEAST (32u << 20) /* bytes: address translations of less are cached */
#define HUGE_STEP 4096u        /* bytes: with such strides each read is on a page of its own */
#define PAGE_BYTES 4096.0
#define LONGER_MOST_S 3600.0

/* Percent of all samples that waited for memory at most where a part of the row's samples of that kind did: what waited
 * otherwise for certain is not among them. */
static double most_of_part(const struct report_row *row, double part)
{
    return row->causes.memory_high - (1 - part) * row->causes.memory_low;
}

/* The time goes into arithmetic, whatever is done to the data: what the instructions are says what to do about them. */
static void advise_on_arithmetic(struct advices *advices, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    bool is_resident = sum->resident > ADVICE_PART * row->share;
    struct buf words = {0}, code = {0}, evidence = {0};
    buf_printf(&words, ADVICE_ARITHMETIC);
    if (is_resident)
        buf_printf(&evidence, "%.0f %% of its samples found their data in the core's own caches",
                   100 * sum->resident / row->share);
    else
        buf_printf(&evidence, "%.0f %% of its samples are execution that the data only feed",
                   100 * sum->execution / row->share);
    buf_printf(&evidence, "; a change of the data gains at most %.1f %% of the time", sum->memory_high);
    struct code_advice at = advice_on_code(advices, row, row->share >= ADVICE_LARGE_PERCENT, &code, &evidence);
    if (code.len_bytes)
        buf_printf(&words, ": %s", code.data);
    buf_fini(&code);
    if (words.data)
        advice_add_of_code(advices, row, is_resident ? "resident" : "execution", row->share - sum->memory_low,
                           words.data, &evidence, &at);
    advices->failed |= words.failed;
    buf_fini(&words);
}

/* The interval of what waited for memory, and how much of it was walked through in one way. */
static void put_waited(const struct report_row *row, enum row_verdict verdict, double part, const char *how,
                       struct buf *evidence)
{
    const struct cause_sum *sum = &row->causes;
    if (verdict == ROW_MAY_WAIT) {
        buf_printf(evidence,
                   "whether it waits for memory is not verified (%.0f-%.0f %% of its samples); %.0f %% of "
                   "them %s",
                   100 * sum->memory_low / row->share, 100 * sum->memory_high / row->share, 100 * part, how);
        return;
    }
    buf_printf(evidence, "%.0f %% of its samples waited for memory (%.0f-%.0f %%), %.0f %% of these %s",
               100 * sum->memory / row->share, 100 * sum->memory_low / row->share, 100 * sum->memory_high / row->share,
               100 * part, how);
}

/* The same, and how large the variable is. */
static void put_walked(const struct report_row *row, enum row_verdict verdict, double part, const char *how,
                       struct buf *evidence)
{
    char size[16];
    bool is_turned_over = report_is_turned_over(row);
    uint64_t most = is_turned_over ? row->variable->max_block_bytes : 0;
    put_waited(row, verdict, part, how, evidence);
    text_size(most ? most : is_turned_over ? row->size_bytes / row->n_blocks : row->size_bytes, size);
    buf_printf(evidence,
               most             ? "; blocks of up to %s"
               : is_turned_over ? "; blocks of %s on average"
                                : "; it has %s",
               size);
    if (row->n_blocks > 1 && !is_turned_over)
        buf_printf(evidence, " in %llu blocks", (unsigned long long)row->n_blocks);
    if (row->element_bytes)
        buf_printf(evidence, ", elements of %llu bytes", (unsigned long long)row->element_bytes);
}

/* Its samples of the report's event that waited for memory, by how the instructions walk through it; where it is not
 * verified that they did, all of its samples. */
struct walked {
    double all, irregular, chained, strided, dense;
    double by_page;        /* those that read from another page each time */
    uint32_t stride_bytes; /* of the strided ones with the most samples */
};

static struct walked walks_of(const struct advices *advices, const struct report_row *row)
{
    bool is_known = advice_verdict(advices, row) != ROW_MAY_WAIT;
    const struct report *report = advices->report;
    struct walked sum = {0};
    double most = 0;
    for (size_t i = 0; i < row->variable->n_walks; i++) {
        const struct variable_walk *walk = &row->variable->walks[i];
        if (!report_is_of_event(report, walk->event))
            continue;
        bool is_far = row->element_bytes && patterns_is_far(walk, row->element_bytes);
        double n = is_known ? walk->memory : walk->samples;
        bool is_strided = walk->kind == PATTERN_STRIDED;
        bool is_apart = walk->kind == PATTERN_IRREGULAR || walk->kind == PATTERN_CHAINED;
        sum.all += n;
        sum.irregular += walk->kind == PATTERN_IRREGULAR ? n : 0;
        sum.chained += walk->kind == PATTERN_CHAINED ? n : 0;
        sum.strided += is_far ? n : 0;
        sum.dense += is_strided && !is_far ? n : 0;
        sum.by_page += is_apart || (is_strided && walk->stride_bytes >= HUGE_STEP) ? n : 0;
        if (is_far && n > most) {
            most = n;
            sum.stride_bytes = walk->stride_bytes;
        }
    }
    return sum;
}

static bool may_wait(enum row_verdict verdict)
{
    return verdict == ROW_WAITS || verdict == ROW_MAY_WAIT;
}

/* The order in which it is read is what makes it wait. */
static void advise_on_walks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    enum row_verdict verdict = advice_verdict(advices, row);
    char how[80];
    if (!may_wait(verdict) || row->part || row->size_bytes < WALK_BYTES || advice_has_loops(advices, row))
        return;
    struct walked walked = walks_of(advices, row);
    if (walked.all <= 0)
        return;
    if (walked.strided > ADVICE_PART * walked.all) {
        (void)snprintf(how, sizeof how, "in steps of %s%u bytes",
                       pattern_is_least(walked.stride_bytes) ? "at least " : "", walked.stride_bytes);
        put_walked(row, verdict, walked.strided / walked.all, how, &evidence);
        (void)advice_add(advices, row, "stride", most_of_part(row, walked.strided / walked.all),
                         "its loops take large steps: interchange the loops, or transpose it", &evidence);
    } else if (walked.chained > ADVICE_PART * walked.all) {
        put_walked(row, verdict, walked.chained / walked.all, "at reads that find where to read next", &evidence);
        (void)advice_add(
            advices, row, "chain", most_of_part(row, walked.chained / walked.all),
            "each read waits for the one before: put elements in the order of reading, or follow several chains at "
            "once",
            &evidence);
    } else if (walked.irregular > ADVICE_PART * walked.all) {
        put_walked(row, verdict, walked.irregular / walked.all, "at irregular reads", &evidence);
        (void)advice_add(advices, row, "irregular", most_of_part(row, walked.irregular / walked.all),
                         "its reads jump: sort or block the index, reorder the loops, or make the elements smaller",
                         &evidence);
    }
}

/* Many blocks where one would do. */
static void advise_on_blocks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    enum row_verdict verdict = advice_verdict(advices, row);
    bool is_heap = row->variable && row->variable->class == CLASS_HEAP && row->n_blocks >= BLOCKS_MANY;
    double mean = is_heap ? (double)row->size_bytes / (double)row->n_blocks : 0;
    if (!is_heap || !may_wait(verdict) || mean <= 0 || mean >= BLOCK_SMALL)
        return;
    buf_printf(&evidence, "%llu blocks of %.0f bytes on average; ", (unsigned long long)row->n_blocks, mean);
    if (verdict == ROW_WAITS)
        buf_printf(&evidence, "%.0f %% of its samples waited for memory", 100 * row->causes.memory / row->share);
    else
        buf_printf(&evidence, "whether it waits for memory is not verified");
    (void)advice_add(advices, row, "small-blocks", row->causes.memory_high,
                     "take the blocks from one array, so that neighbours share cache lines and pages", &evidence);
}

/* The same of blocks that are too small to be counted: such rows have neither a size nor blocks. Waits for memory at
 * lists, trees and tables of them say that they are many. */
static void advise_on_uncounted_blocks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    enum row_verdict verdict = advice_verdict(advices, row);
    bool is_heap = row->variable && row->variable->class == CLASS_HEAP && !row->part;
    if (!is_heap || row->n_blocks || row->size_bytes || !may_wait(verdict))
        return;
    struct walked walked = walks_of(advices, row);
    double apart = walked.chained + walked.irregular;
    bool is_chain = walked.chained > ADVICE_PART * apart;
    if (walked.all <= 0 || apart <= ADVICE_PART * walked.all)
        return;
    put_waited(row, verdict, apart / walked.all,
               is_chain ? "at reads that find where to read next" : "at irregular reads", &evidence);
    buf_printf(&evidence, "; its blocks are too small to be counted");
    (void)advice_add(
        advices, row, "small-blocks", most_of_part(row, apart / walked.all),
        is_chain ? "each read waits for the one before: take the blocks from one array or pool, in the order in "
                   "which they are read"
                 : "take the blocks from one array, so that neighbours share cache lines and pages",
        &evidence);
}

/* Pages of 4 KiB under reads that go to another page each time: the page faults say that they are so small. */
static void advise_on_huge_pages(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    char size[16];
    enum row_verdict verdict = advice_verdict(advices, row);
    const struct touched *touched = first_touch_of(advices->touches, row);
    if (!touched || row->variable->class == CLASS_FILE || !may_wait(verdict) || row->part ||
        advice_has_loops(advices, row) || row->size_bytes < HUGE_LEAST ||
        report_is_turned_over(row) || row->size_bytes / (row->n_blocks ? row->n_blocks : 1) < HUGE_LEAST / 8)
        return;
    struct walked walked = walks_of(advices, row);
    double small = (double)touched->n_faults * PAGE_BYTES / (double)row->size_bytes;
    if (walked.all <= 0 || walked.by_page <= ADVICE_PART * walked.all || small <= ADVICE_PART)
        return;
    double part =
        first_touch_small_pages(advices->report->model, row->size_bytes, walked.chained > ADVICE_PART * walked.all);
    text_size(row->size_bytes, size);
    buf_printf(&evidence,
               "%.0f %% of %s read from another page each time; its %s lie in pages of 4 KiB "
               "(about %llu page faults)",
               100 * walked.by_page / walked.all, verdict == ROW_WAITS ? "what waited for memory" : "its samples", size,
               (unsigned long long)touched->n_faults);
    buf_printf(&evidence, ", which take at most %.0f %% of such a wait", 100 * part);
    (void)advice_add(advices, row, "huge-pages", part * most_of_part(row, walked.by_page / walked.all),
                     "put it on huge pages: align it to 2 MiB and call madvise(MADV_HUGEPAGE) before its first use",
                     &evidence);
}

/* Hot fields among cold ones, where the data are waited for at all or that is not known. */
static void advise_on_fields(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    const char *colon = row->advice && !row->advises_on_lines ? strstr(row->advice, ": ") : NULL;
    if (!colon || (advices->report->has_causes && !may_wait(advice_verdict(advices, row))))
        return;
    buf_append(&evidence, row->advice, (size_t)(colon - row->advice));
    double saved = row->element_bytes ? 1 - (double)row->hot_bytes / (double)row->element_bytes : 1;
    (void)advice_add(advices, row, "split", saved * advice_waited(advices, row), colon + 2, &evidence);
}

/* Pages are touched first where most of its samples are: its own, or those of a neighbour in front of which it is. */
static void advise_on_first_touches(struct advices *advices, const struct report_row *row)
{
    struct buf words = {0}, evidence = {0};
    double touched = row->causes.first_touch;
    if (advice_verdict(advices, row) != ROW_TOUCHES)
        return;
    if (row->touches && row->touches != row->variable)
        text_short_function(&words, model_variable_name(advices->report->model, row->touches));
    else
        buf_printf(&words, "its memory");
    buf_printf(&words, " is touched first there: %s", advice_touch_cure(row->touches ? row->touches : row->variable));
    buf_printf(&evidence, "%.0f %% of its time is that of first touches of pages", 100 * touched / row->share);
    struct advice *made = words.data
                              ? advice_add(advices, row, "page-touches",
                                           fmin(row->share, touched * (1 + FIRST_TOUCH_DOUBT)), words.data, &evidence)
                              : NULL;
    if (made)
        made->rank = touched;
    advices->failed |= words.failed;
    buf_fini(&words);
}

void advise_on_data(struct advices *advices, const struct report_row *row, bool has_shared_lines)
{
    advise_on_first_touches(advices, row);
    if (!has_shared_lines && advice_verdict(advices, row) == ROW_COMPUTES)
        advise_on_arithmetic(advices, row);
    if (!has_shared_lines)
        advise_on_fields(advices, row);
    advise_on_walks(advices, row);
    advise_on_huge_pages(advices, row);
    advise_on_blocks(advices, row);
    advise_on_uncounted_blocks(advices, row);
}

/* Nothing is known that would make it wait less but to read less of it. */
static void advise_on_waits(struct advices *advices, const struct report_row *row)
{
    struct walked walked = row->part ? (struct walked){0} : walks_of(advices, row);
    bool is_dense = walked.all > 0 && walked.dense > ADVICE_PART * walked.all;
    struct buf evidence = {0};
    if (is_dense)
        put_waited(row, ROW_WAITS, walked.dense / walked.all, "at reads of one element after the other", &evidence);
    else
        buf_printf(&evidence, "%.0f %% of its samples waited for memory", 100 * row->causes.memory / row->share);
    (void)advice_add(advices, row, is_dense ? "stream" : "waits", row->causes.memory_high,
                     is_dense
                         ? "it streams through memory: read it in fewer passes (fuse or block its loops), or make its "
                           "elements smaller"
                         : "use it in parts that stay in a cache (block its loops), or make it smaller",
                     &evidence);
}

/* Appends how much longer the program would have to be measured until the samples of the row tell. */
static bool put_longer(const struct advices *advices, const struct report_row *row, struct buf *words)
{
    double more_s = report_more_seconds(advices->report, row);
    if (!(more_s > 0) || more_s > LONGER_MOST_S)
        return false;
    if (more_s < 100)
        buf_printf(words, "about %.0f s more at this rate would tell",
                   more_s < 10 ? ceil(more_s) : 10 * ceil(more_s / 10));
    else
        buf_printf(words, "about %.0f minutes more at this rate would tell", ceil(more_s / 60));
    return true;
}

/* Whether the row is a section of a file, whose variables have no names: "gzip .bss". */
static bool is_section(const struct report_row *row)
{
    const char *blank = strrchr(row->name, ' ');
    return row->variable->class == CLASS_STATIC && !row->part && blank && blank[1] == '.';
}

void advise_on_rest(struct advices *advices, const struct report_row *row)
{
    enum row_verdict verdict = advice_verdict(advices, row);
    const char *meaning = report_meaning(advices->report, row);
    struct buf words = {0}, evidence = {0};
    if (row->share < ADVICE_LARGE_PERCENT || !may_wait(verdict))
        return;
    if (verdict == ROW_WAITS) {
        advise_on_waits(advices, row);
        return;
    }
    if (is_section(row))
        buf_printf(&words, "its variables have no names: compile with -g, or install its debug package");
    else
        buf_printf(&words, "whether it waits for memory is not known: ");
    if (!is_section(row) && !put_longer(advices, row, &words))
        buf_printf(&words,
                   "the samples do not tell, but those of hardware that samples addresses would (hpcrun --doctor)");
    buf_printf(&evidence, "%s",
               meaning ? meaning : "not verified: neither waits nor computations have most of its time");
    if (words.data)
        (void)advice_add(advices, row, "unknown", row->causes.memory_high, words.data, &evidence);
    advices->failed |= words.failed;
    buf_fini(&words);
}
