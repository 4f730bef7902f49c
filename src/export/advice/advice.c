/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the advice: the rules about arithmetic, order, fields, blocks and pages, and all rules in one order. See
 * advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "base/path.h"
#include "export/text-cells.h"
#include "export/vars-table.h"

#define MEMORY_PART 0.5      /* of a row's samples that must have waited for memory */
#define WALK_BYTES (1 << 20) /* of a variable: less is in some cache before long, in whatever order it is read */
#define STRIDE_LEAST 256     /* bytes: compilers that unroll a loop make smaller ones of dense walks ... */
#define STRIDE_ELEMENTS 2    /* ... and of a walk along one field */
#define BLOCKS_MANY 1000
#define BLOCK_SMALL 4096.0     /* bytes */
#define LEAK_BYTES (1 << 20)   /* of a path, live at the end and never used ... */
#define ALLOCATOR_LEAST 10.0   /* percent of all samples */
#define LEAK_PART 0.1          /* ... and of all bytes that are */
#define HUGE_LEAST (32u << 20) /* bytes: address translations of less are cached */
#define HUGE_STEP 4096u        /* bytes: with such strides each read is on a page of its own */
#define PAGE_BYTES 4096.0
#define SHORT_MOST 3    /* pieces of advice behind a report */
#define GAIN_LEAST 0.05 /* percent: less would be printed as 0.0 */
#define PROGRAMS_SHOWN 3

/* --- programs --- */

/* Lists the programs that were measured, and the modules of the tree that are one of them. False when out of memory. */
static bool find_programs(struct advices *advices)
{
    const struct model *model = advices->job->model;
    bool ok = (advices->program_of = calloc(model->strings.n_strings + 1, sizeof *advices->program_of)) != NULL;
    bool *is_seen = calloc(model->strings.n_strings + 1, sizeof *is_seen);
    ok = ok && is_seen;
    for (size_t i = 0; ok && i < model->n_processes; i++) {
        const char *exe = path_last(model->processes[i].exe);
        size_t k = 0;
        while (k < advices->n_programs && strcmp(advices->programs[k], exe) != 0)
            k++;
        ok = k < advices->n_programs || vec_reserve(&advices->programs, &advices->cap_programs, k + 1, sizeof exe);
        if (ok && k == advices->n_programs)
            advices->programs[advices->n_programs++] = exe;
    }
    for (size_t i = 1; ok && i < model->n_scopes; i++) {
        uint32_t module = model->scopes[i].module;
        const char *name = is_seen[module] ? NULL : path_last(model_text(model, module));
        is_seen[module] = true;
        for (size_t k = 0; name && k < advices->n_programs; k++)
            if (strcmp(advices->programs[k], name) == 0)
                advices->program_of[module] = (uint32_t)k + 1;
    }
    free(is_seen);
    return ok;
}

/* Marks the programs that lie on the paths of a scope: above it, and below. */
static void mark_programs(const struct advices *advices, uint32_t scope, bool *is_used)
{
    const struct model *model = advices->job->model;
    uint32_t end = model_subtree_end(model, scope);
    for (uint32_t i = scope; i; i = model->scopes[i].parent)
        is_used[advices->program_of[model->scopes[i].module]] = true;
    for (uint32_t i = scope; i < end; i++)
        is_used[advices->program_of[model->scopes[i].module]] = true;
}

/* The programs that a row is about; NULL where that is not known. */
static char *programs_of(const struct advices *advices, const struct report_row *row)
{
    bool *is_used = calloc(advices->n_programs + 1, sizeof *is_used);
    struct buf names = {0};
    size_t n = 0;
    for (size_t i = 0; is_used && row->variable && i < row->variable->n_scopes; i++)
        mark_programs(advices, row->variable->scopes[i], is_used);
    for (size_t k = 0; is_used && k < advices->n_programs; k++)
        if ((is_used[k + 1] || advices->n_programs == 1) && n++ < PROGRAMS_SHOWN)
            buf_printf(&names, "%s%s", n > 1 ? ", " : "", advices->programs[k]);
    if (n > PROGRAMS_SHOWN)
        buf_printf(&names, " and %zu more", n - PROGRAMS_SHOWN);
    free(is_used);
    return names.data;
}

/* --- rules --- */

/* Whether the rule says that a change gains little, or nothing. */
static bool is_verdict(const char *rule)
{
    return strcmp(rule, "resident") == 0 || strcmp(rule, "execution") == 0 || strcmp(rule, "not-worth-it") == 0;
}

void advice_add(struct advices *advices, const struct report_row *row, const char *rule, double gain, const char *words,
                struct buf *evidence)
{
    if (gain < GAIN_LEAST && !is_verdict(rule)) {
        buf_fini(evidence);
        return;
    }
    char *copy = strdup(words);
    advices->failed = advices->failed || !copy || evidence->failed ||
                      !vec_reserve(&advices->items, &advices->cap_items, advices->n_items + 1, sizeof(struct advice));
    if (advices->failed) {
        free(copy);
        buf_fini(evidence);
        return;
    }
    advices->items[advices->n_items] = (struct advice){
        .rule = rule,
        .number = advices->n_items,
        .name = row->name,
        .class = row->class,
        .site = row->site,
        .share = row->share,
        .memory = advices->report.has_causes && !special_rows_find(row->name) ? row->causes.memory : (double)NAN,
        .gain = gain,
        .words = copy,
        .evidence = evidence->data,
        .programs = programs_of(advices, row)};
    advices->n_items++;
    *evidence = (struct buf){0};
}

double advice_waited(const struct advices *advices, const struct report_row *row)
{
    return advices->report.has_causes ? row->causes.memory_high : row->share;
}

/* Percent of all samples that waited for memory at most where a part of the row's samples of that kind did: what waited
 * otherwise for certain is not among them. */
static double most_of_part(const struct report_row *row, double part)
{
    return row->causes.memory_high - (1 - part) * row->causes.memory_low;
}

bool advice_is_same(const struct report_row *a, const struct report_row *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->class, b->class) == 0 &&
           strcmp(a->site ? a->site : "", b->site ? b->site : "") == 0;
}

/* The time goes into arithmetic, whatever is done to the data. */
static void advise_on_arithmetic(struct advices *advices, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    struct buf evidence = {0};
    if (sum->resident > MEMORY_PART * row->share) {
        buf_printf(&evidence,
                   "%.0f %% of its samples found their data in the core's own caches; a change of the data gains at "
                   "most %.1f %% of the time",
                   100 * sum->resident / row->share, sum->memory_high);
        advice_add(advices, row, "resident", sum->memory_high, "change the arithmetic, not the data", &evidence);
    } else if (sum->execution > MEMORY_PART * row->share) {
        buf_printf(&evidence,
                   "%.0f %% of its samples are execution that the data only feed; a change of the data gains at most "
                   "%.1f %% of the time",
                   100 * sum->execution / row->share, sum->memory_high);
        advice_add(advices, row, "execution", sum->memory_high, "change the arithmetic, not the data", &evidence);
    }
}

static bool waits_for_memory(const struct advices *advices, const struct report_row *row)
{
    return advices->report.has_causes && row->causes.memory > MEMORY_PART * row->share;
}

/* Many blocks where one would do. */
static void advise_on_blocks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    bool is_heap = row->variable && row->variable->class == CLASS_HEAP && row->n_blocks >= BLOCKS_MANY;
    double mean = is_heap ? (double)row->size_bytes / (double)row->n_blocks : 0;
    if (!is_heap || !waits_for_memory(advices, row) || mean <= 0 || mean >= BLOCK_SMALL)
        return;
    buf_printf(&evidence, "%llu blocks of %.0f bytes on average; %.0f %% of its samples waited for memory",
               (unsigned long long)row->n_blocks, mean, 100 * row->causes.memory / row->share);
    advice_add(advices, row, "small-blocks", row->causes.memory_high,
               "take the blocks from one array, so that neighbours share cache lines and pages", &evidence);
}

/* The interval of what waited for memory, and how much of it was walked through in one way. */
static void put_waited(const struct report_row *row, double part, const char *how, struct buf *evidence)
{
    const struct cause_sum *sum = &row->causes;
    buf_printf(evidence, "%.0f %% of its samples waited for memory (%.0f-%.0f %%), %.0f %% of these %s",
               100 * sum->memory / row->share, 100 * sum->memory_low / row->share, 100 * sum->memory_high / row->share,
               100 * part, how);
}

/* The same, and how large the variable is. */
static void put_walked(const struct report_row *row, double part, const char *how, struct buf *evidence)
{
    char size[16];
    bool is_turned_over = report_is_turned_over(row);
    put_waited(row, part, how, evidence);
    text_size(is_turned_over ? row->variable->max_block_bytes : row->size_bytes, size);
    buf_printf(evidence, is_turned_over ? "; blocks of up to %s" : "; it has %s", size);
    if (row->n_blocks > 1 && !is_turned_over)
        buf_printf(evidence, " in %llu blocks", (unsigned long long)row->n_blocks);
    if (row->element_bytes)
        buf_printf(evidence, ", elements of %llu bytes", (unsigned long long)row->element_bytes);
}

/* Its samples of the report's event that waited for memory, by how the instructions walk through it. */
struct walked {
    double all, irregular, chained, strided;
    double by_page;        /* those that read from another page each time */
    uint32_t stride_bytes; /* of the strided ones with the most samples */
};

static struct walked walks_of(const struct advices *advices, const struct report_row *row)
{
    const struct report *report = &advices->report;
    struct walked sum = {0};
    double most = 0;
    for (size_t i = 0; i < row->variable->n_walks; i++) {
        const struct variable_walk *walk = &row->variable->walks[i];
        if (&report->model->events[walk->event] != report->event)
            continue;
        bool is_far = walk->kind == PATTERN_STRIDED && walk->stride_bytes >= STRIDE_LEAST && row->element_bytes &&
                      walk->stride_bytes >= STRIDE_ELEMENTS * row->element_bytes;
        sum.all += walk->memory;
        sum.irregular += walk->kind == PATTERN_IRREGULAR ? walk->memory : 0;
        sum.chained += walk->kind == PATTERN_CHAINED ? walk->memory : 0;
        sum.strided += is_far ? walk->memory : 0;
        sum.by_page += walk->kind == PATTERN_IRREGULAR || walk->kind == PATTERN_CHAINED ||
                               (walk->kind == PATTERN_STRIDED && walk->stride_bytes >= HUGE_STEP)
                           ? walk->memory
                           : 0;
        if (is_far && walk->memory > most) {
            most = walk->memory;
            sum.stride_bytes = walk->stride_bytes;
        }
    }
    return sum;
}

/* The order in which it is read is what makes it wait. */
static void advise_on_walks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    char how[80];
    if (!waits_for_memory(advices, row) || row->part || row->size_bytes < WALK_BYTES)
        return;
    struct walked walked = walks_of(advices, row);
    if (walked.all <= 0)
        return;
    if (walked.strided > MEMORY_PART * walked.all) {
        (void)snprintf(how, sizeof how, "in steps of %s%u bytes",
                       pattern_is_least(walked.stride_bytes) ? "at least " : "", walked.stride_bytes);
        put_walked(row, walked.strided / walked.all, how, &evidence);
        advice_add(advices, row, "stride", most_of_part(row, walked.strided / walked.all),
                   "its loops take large steps: interchange the loops, or transpose it", &evidence);
    } else if (walked.chained > MEMORY_PART * walked.all) {
        put_walked(row, walked.chained / walked.all, "at reads that find where to read next", &evidence);
        advice_add(
            advices, row, "chain", most_of_part(row, walked.chained / walked.all),
            "each read waits for the one before: put the elements in the order in which they are read, or follow "
            "several chains at once",
            &evidence);
    } else if (walked.irregular > MEMORY_PART * walked.all) {
        put_walked(row, walked.irregular / walked.all, "at irregular reads", &evidence);
        advice_add(advices, row, "irregular", most_of_part(row, walked.irregular / walked.all),
                   "its reads jump: sort or block the index, reorder the loops, or make the elements smaller",
                   &evidence);
    }
}

/* The same of blocks that are too small to be counted: such rows have neither a size nor blocks. Waits for memory at
 * lists, trees and tables of them say that they are many. */
static void advise_on_uncounted_blocks(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    bool is_heap = row->variable && row->variable->class == CLASS_HEAP && !row->part;
    if (!is_heap || row->n_blocks || row->size_bytes || !waits_for_memory(advices, row))
        return;
    struct walked walked = walks_of(advices, row);
    double apart = walked.chained + walked.irregular;
    bool is_chain = walked.chained > MEMORY_PART * apart;
    if (walked.all <= 0 || apart <= MEMORY_PART * walked.all)
        return;
    put_waited(row, apart / walked.all, is_chain ? "at reads that find where to read next" : "at irregular reads",
               &evidence);
    buf_printf(&evidence, "; its blocks are too small to be counted");
    advice_add(advices, row, "small-blocks", most_of_part(row, apart / walked.all),
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
    const struct touched *touched = first_touch_of(&advices->touches, row);
    if (!touched || !waits_for_memory(advices, row) || row->part || row->size_bytes < HUGE_LEAST ||
        report_is_turned_over(row) || row->size_bytes / (row->n_blocks ? row->n_blocks : 1) < HUGE_LEAST / 8)
        return;
    struct walked walked = walks_of(advices, row);
    double small = (double)touched->n_faults * PAGE_BYTES / (double)row->size_bytes;
    if (walked.all <= 0 || walked.by_page <= MEMORY_PART * walked.all || small <= MEMORY_PART)
        return;
    text_size(row->size_bytes, size);
    buf_printf(&evidence,
               "%.0f %% of what waited for memory read from another page each time; its %s lie in pages of 4 KiB "
               "(about %llu page faults)",
               100 * walked.by_page / walked.all, size, (unsigned long long)touched->n_faults);
    advice_add(advices, row, "huge-pages", most_of_part(row, walked.by_page / walked.all),
               "put it on huge pages: align it to 2 MiB and call madvise(MADV_HUGEPAGE) before its first use",
               &evidence);
}

/* Hot fields among cold ones, where the data are waited for at all or that is not known. */
static void advise_on_fields(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    const char *colon = row->advice && !row->advises_on_lines ? strstr(row->advice, ": ") : NULL;
    if (!colon || (advices->report.has_causes && !waits_for_memory(advices, row)))
        return;
    buf_append(&evidence, row->advice, (size_t)(colon - row->advice));
    double saved = row->element_bytes ? 1 - (double)row->hot_bytes / (double)row->element_bytes : 1;
    advice_add(advices, row, "split", saved * advice_waited(advices, row), colon + 2, &evidence);
}

static void advise_on_row(struct advices *advices, const struct report_row *row)
{
    const struct special_row *special = special_rows_find(row->name);
    struct buf evidence = {0};
    if (special) {
        if (strcmp(special->advice, "Nothing to do.") == 0 || strcmp(special->name, ALLOCATOR_ROW) == 0)
            return;
        buf_printf(&evidence, "%s%s%s", special->means, *row->site ? ": " : "", row->site);
        advice_add(advices, row, strcmp(special->name, "<small block>") == 0 ? "threshold" : "special", (double)NAN,
                   special->advice, &evidence);
        return;
    }
    if (!row->variable || report_is_special(row))
        return;
    if (!advise_on_lines(advices, row) && advices->report.has_causes)
        advise_on_arithmetic(advices, row);
    if (!advise_on_places(advices, row))
        advise_on_remote_accesses(advices, row);
    advise_on_walks(advices, row);
    advise_on_huge_pages(advices, row);
    advise_on_fields(advices, row);
    advise_on_blocks(advices, row);
    advise_on_uncounted_blocks(advices, row);
}

/* The allocator's own time, by all lines that call it; said once, of the line with most of it. */
static void advise_on_allocator(struct advices *advices)
{
    const struct report_row *at = NULL;
    struct buf evidence = {0};
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < advices->report.n_rows; i++) {
        const struct report_row *row = &advices->report.rows[i];
        if (strcmp(row->name, ALLOCATOR_ROW) != 0)
            continue;
        sum += row->share;
        n++;
        at = !at || row->share > at->share ? row : at;
    }
    if (!at || sum < ALLOCATOR_LEAST)
        return;
    buf_printf(&evidence,
               "%.1f %% of all samples are in the allocator, called from %zu line%s of the program, most of "
               "all %s (%.1f %%)",
               sum, n, n == 1 ? "" : "s", at->site, at->share);
    advice_add(advices, at, "allocator", sum, special_rows_find(ALLOCATOR_ROW)->advice, &evidence);
}

/* Blocks that were never given back and that no sample fell on. */
static void advise_on_leaks(struct advices *advices)
{
    for (size_t i = 0; advices->has_leaks && advices->leaks.has_use && i < advices->leaks.n_rows; i++) {
        const struct leak_row *leak = &advices->leaks.rows[i];
        struct buf evidence = {0};
        char size[16];
        if (leak->live_bytes < LEAK_BYTES || leak->row->value > 0 ||
            (double)leak->live_bytes < LEAK_PART * (double)advices->leaks.live.bytes)
            continue;
        text_size(leak->live_bytes, size);
        buf_printf(&evidence, "%llu block%s, %s, live at the end; no sample fell on any of the path",
                   (unsigned long long)leak->n_live, leak->n_live == 1 ? "" : "s", size);
        advice_add(advices, leak->row, "leak", (double)NAN, "free it, or do not allocate it", &evidence);
        if (!advices->failed)
            advices->items[advices->n_items - 1].live_bytes = leak->live_bytes;
    }
}

/* Percent of all samples that are at the row's data, in functions without source lines; *function: the one with most of
 * them. */
static double without_lines(const struct report_row *row, uint32_t *function)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < row->n_lines; i++) {
        const struct report_line *line = &row->lines[i];
        if (line->line)
            continue;
        sum += line->value;
        if (line->value > most) {
            most = line->value;
            *function = line->function;
        }
    }
    return row->value > 0 ? sum / row->value * row->share : 0;
}

/* Code without debug information: no source lines, and fewer names. Said once, of the variable that most of it is at.
 */
static void advise_on_debug_information(struct advices *advices, double least)
{
    const struct report_row *at = NULL;
    uint32_t function = 0, its = 0;
    double sum = 0, most = 0;
    struct buf evidence = {0};
    for (size_t i = 0; i < advices->report.n_rows; i++) {
        const struct report_row *row = &advices->report.rows[i];
        double share = row->variable && !report_is_special(row) ? without_lines(row, &its) : 0;
        sum += share;
        if (share > most) {
            most = share;
            at = row;
            function = its;
        }
    }
    if (!at || sum < least)
        return;
    const char *name = model_text(advices->report.model, function);
    buf_printf(&evidence, "%.0f %% of all samples are at data in functions without source lines, most of all %s", sum,
               *name ? name : "code without a name");
    advice_add(advices, at, "debug-info", (double)NAN,
               "to learn more (source lines, names of variables and fields), compile with -g, or install the debug "
               "package of the library",
               &evidence);
    if (!advices->failed)
        advices->items[advices->n_items - 1].memory = (double)NAN; /* it comes behind what is about the data */
}

static int compare_advice(const void *a, const void *b)
{
    const struct advice *x = a, *y = b;
    if (isnan(x->memory) != isnan(y->memory))
        return isnan(x->memory) ? 1 : -1;
    if (!isnan(x->memory) && x->memory != y->memory)
        return x->memory > y->memory ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void advices_fini(struct advices *advices)
{
    for (size_t i = 0; i < advices->n_items; i++) {
        free(advices->items[i].words);
        free(advices->items[i].evidence);
        free(advices->items[i].programs);
    }
    free(advices->items);
    free(advices->programs);
    free(advices->program_of);
    if (advices->has_leaks)
        leaks_fini(&advices->leaks);
    if (advices->has_numa)
        numa_fini(&advices->numa);
    if (advices->has_patterns)
        patterns_fini(&advices->patterns);
    first_touches_fini(&advices->touches);
    report_fini(&advices->report);
}

/* Fills in what the rules look at. Leaks, nodes and patterns may be missing. */
static int gather(struct advices *advices, const struct export_job *job, struct error *err)
{
    struct error ignored;
    int code = report_make(job->model, job->metric, false, false, &advices->report, err);
    if (code != 0)
        return code;
    code = first_touches_make(&advices->report, &advices->touches, err);
    if (code == 0 && !find_programs(advices))
        code = error_memory(err);
    if (code == 0) {
        code = leaks_make(job->model, job->metric, false, false, &advices->leaks, &ignored);
        advices->has_leaks = code == 0;
        code = code == ERR_MEMORY ? error_memory(err) : 0;
    }
    if (code == 0 && job->model->n_home_counts) {
        code = numa_make(job->model, job->metric, &advices->numa, err);
        advices->has_numa = code == 0;
    }
    if (code == 0 && job->model->n_reaches) {
        code = patterns_make(job->model, job->metric, false, &advices->patterns, &ignored);
        advices->has_patterns = code == 0;
        code = code == ERR_MEMORY ? error_memory(err) : 0;
    }
    if (code != 0)
        advices_fini(advices);
    return code;
}

int advices_make(const struct export_job *job, struct advices *advices, struct error *err)
{
    *advices = (struct advices){.job = job};
    double least = job->least < 0 ? ADVICE_SHARE_MIN : job->least;
    int code = gather(advices, job, err);
    if (code != 0)
        return code;
    report_order_by_memory(&advices->report);
    for (size_t i = 0; !advices->report.has_too_few && i < advices->report.n_rows; i++) {
        const struct report_row *row = &advices->report.rows[i];
        if (row->share >= least && row->share > 0)
            advise_on_row(advices, row);
        else if (job->least < 0 && row->share >= ADVICE_WORTHLESS_PERCENT && row->variable && !report_is_special(row))
            (void)advise_on_places(advices, row);
    }
    if (!advices->report.has_too_few)
        advise_on_debug_information(advices, least);
    if (!advices->report.has_too_few)
        advise_on_allocator(advices);
    if (advices->n_items)
        qsort(advices->items, advices->n_items, sizeof *advices->items, compare_advice);
    if (!advices->report.has_too_few)
        advise_on_leaks(advices);
    if (!advices->failed)
        return 0;
    advices_fini(advices);
    return error_memory(err);
}

/* Whether it says what to change about data, and that may be worth it. */
static bool is_worth_it(const struct advice *advice)
{
    static const char *const aside[] = {"not-worth-it", "resident", "execution", "special", "leak", "debug-info"};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (strcmp(advice->rule, aside[i]) == 0)
            return false;
    return isnan(advice->gain) || advice->gain >= ADVICE_WORTH_PERCENT;
}

int advices_put_short(const struct export_job *job, struct buf *out, struct error *err)
{
    struct export_job as_usual = *job;
    struct advices advices;
    size_t n = 0;
    as_usual.least = -1;
    int code = advices_make(&as_usual, &advices, err);
    if (code != 0)
        return code;
    bool is_use = !advices.report.is_leaks && strcmp(job->model->metrics[job->metric].name, FAULTS_METRIC) != 0;
    for (size_t i = 0; is_use && i < advices.n_items && n < SHORT_MOST; i++) {
        const struct advice *advice = &advices.items[i];
        struct buf text = {0};
        if (!is_worth_it(advice))
            continue;
        buf_printf(&text, "%s", advice->name);
        if (advices.n_programs > 1 && advice->programs)
            buf_printf(&text, " (%s)", advice->programs);
        buf_printf(&text, ": %s", advice->words);
        if (!isnan(advice->gain))
            buf_printf(&text, " (at most %.1f %% of the time)", advice->gain);
        if (n == 0)
            buf_append(out, "\n", 1);
        text_labelled(out, job, n++ ? "" : "advice", text.data ? text.data : "");
        buf_fini(&text);
    }
    if (n)
        text_labelled(out, job, "", "hpcquery advice says why, and what else there is");
    advices_fini(&advices);
    return 0;
}
