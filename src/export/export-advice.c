/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as text, CSV and JSON: a sentence for each variable, and for what is no variable, as far as the database
 * has evidence for it. A rule that lacks a figure says nothing. */
#include "analysis/report/first-touch.h"
#include "analysis/report/leaks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "export/vars-table.h"
#include "fmt/json.h"

#define SHARE_MIN 5.0         /* percent of all samples that a row must have, unless the job says otherwise */
#define MEMORY_PART 0.5       /* of a row's samples that must have waited for memory ... */
#define REMOTE_PERCENT 25.0   /* ... or of its latency, in accesses to other NUMA nodes */
#define NODE_PART 0.2         /* of its samples: a node from which it is used */
#define NODE_MOST 0.9         /* ... and one from which alone it is */
#define WALK_BYTES (1 << 20)  /* of a variable: less is in some cache before long, in whatever order it is read */
#define STRIDE_LEAST 256      /* bytes: compilers that unroll a loop make smaller ones of dense walks ... */
#define STRIDE_ELEMENTS 2     /* ... and of a walk along one field */
#define AWAY_PART 0.25        /* of its samples, on other nodes than its pages: less is no wrong place */
#define WORTH_PERCENT 3.0     /* of all time: what better places must be able to gain to be advised */
#define WORTHLESS_PERCENT 1.0 /* of all time: a variable with this share is said to gain nothing, if it does not */
#define SPAN_ALL 0.5          /* of what is used: a thread that uses so much has no part of its own */
#define EVEN_PART 0.75        /* of the mean: a node that uses as much as the others */
#define BLOCKS_MANY 1000
#define BLOCK_SMALL 4096.0   /* bytes */
#define LEAK_BYTES (1 << 20) /* of a path, live at the end and never used */

/* One piece of advice. */
struct advice {
    const char *rule; /* "interleave" */
    const char *name, *class, *site;
    double share, memory; /* percent of all samples; memory NAN: not known */
    size_t number;        /* in the order of the report */
    char *words, *evidence;
};

struct advices {
    const struct export_job *job;
    struct leaks leaks;
    struct report report;
    struct first_touches touches;
    bool has_leaks;
    struct advice *items; /* [n_items] what waits most for memory first, else by the order of the report; leaks last */
    size_t n_items, cap_items;
    bool failed;
};

/* Adds advice about a row. words: static; evidence is taken over. */
static void add(struct advices *advices, const struct report_row *row, const char *rule, const char *words,
                struct buf *evidence)
{
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
        .words = copy,
        .evidence = evidence->data};
    advices->n_items++;
    *evidence = (struct buf){0};
}

/* The time goes into arithmetic, whatever is done to the data. */
static void advise_on_arithmetic(struct advices *advices, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    struct buf evidence = {0};
    if (sum->resident > MEMORY_PART * row->share) {
        buf_printf(&evidence, "%.0f %% of its samples found their data in the core's own caches",
                   100 * sum->resident / row->share);
        add(advices, row, "resident", "change the arithmetic, not the data", &evidence);
    } else if (sum->execution > MEMORY_PART * row->share) {
        buf_printf(&evidence, "%.0f %% of its samples are execution that the data only feed",
                   100 * sum->execution / row->share);
        add(advices, row, "execution", "change the arithmetic, not the data", &evidence);
    }
}

/* The value of a derived metric, NAN when it is not known. */
static double hardware_value(const struct report_row *row, const char *name)
{
    for (size_t i = 0; row->derived && metrics_row(i); i++)
        if (strcmp(metrics_row(i)->name, name) == 0)
            return row->derived[i];
    return (double)NAN;
}

/* The hardware saw accesses to other nodes, and the samples say on which nodes the threads ran. */
static void advise_on_nodes(struct advices *advices, const struct report_row *row)
{
    uint32_t n_nodes = advices->job->model->n_numa_nodes, n_users = 0;
    double remote = hardware_value(row, "remote_latency_percent"), all = 0, most = 0;
    struct buf evidence = {0};
    for (uint32_t i = 0; row->places && i < n_nodes; i++) {
        all += (double)row->places[i];
        most = (double)row->places[i] > most ? (double)row->places[i] : most;
    }
    for (uint32_t i = 0; row->places && i < n_nodes; i++)
        n_users += all > 0 && (double)row->places[i] >= NODE_PART * all;
    if (isnan(remote) || remote < REMOTE_PERCENT || all <= 0 || (n_users < 2 && most < NODE_MOST * all))
        return;
    buf_printf(&evidence, "%.0f %% of its latency are accesses to other NUMA nodes%s", remote,
               n_nodes > 1 ? "; threads ran on" : "");
    for (uint32_t i = 0; n_nodes > 1 && i < n_nodes; i++)
        if (row->places[i])
            buf_printf(&evidence, " node %u: %.0f %%", i, 100 * (double)row->places[i] / all);
    if (n_users < 2)
        add(advices, row, "first-touch",
            "let the threads that use it write it first, so that its pages lie on their node", &evidence);
    else
        add(advices, row, "interleave",
            "let each thread write first the part that it uses, or interleave the pages over the nodes", &evidence);
}

/* Where the pages of a row lie, by who touched them first, and who uses them. */
struct placement {
    uint32_t n_nodes, home, n_users; /* users: nodes with a good part of the samples */
    double away, most;               /* parts of the samples: on other nodes than home, and on the node with the most */
    bool is_even;                    /* all nodes use it, about as much each */
};

/* False when that is not known, or the pages lie on several nodes. */
static bool placement_of(const struct advices *advices, const struct report_row *row, struct placement *placement)
{
    uint32_t n = advices->job->model->n_numa_nodes;
    const uint64_t *faults = first_touch_nodes(&advices->touches, row, false);
    double all_faults = 0, all = 0;
    *placement = (struct placement){.n_nodes = n, .is_even = true};
    if (n < 2 || !row->places || !faults || !first_touch_of(&advices->touches, row))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        all_faults += (double)faults[i];
        all += (double)row->places[i];
        placement->home = faults[i] > faults[placement->home] ? i : placement->home;
    }
    if (all <= 0 || (double)faults[placement->home] < NODE_MOST * all_faults)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        double part = (double)row->places[i] / all;
        placement->n_users += part >= NODE_PART;
        placement->most = part > placement->most ? part : placement->most;
        placement->is_even = placement->is_even && part >= EVEN_PART / (double)n;
        placement->away += i == placement->home ? 0 : part;
    }
    return true;
}

/* One node has all the pages, because its threads touched them first, and others use them. True if so. */
static bool advise_on_first_touch(struct advices *advices, const struct report_row *row)
{
    struct placement placement;
    struct buf evidence = {0};
    if (!placement_of(advices, row, &placement) || placement.away < AWAY_PART)
        return false;
    const struct touched *touched = first_touch_of(&advices->touches, row);
    double gain = placement.away * (advices->report.has_causes ? row->causes.memory : row->share);
    (void)first_touch_put_sentence(&advices->touches, row, &evidence);
    buf_printf(&evidence,
               "; %.0f %% of its samples are on other nodes than its pages, so that better places gain at most "
               "%.1f %% of the time",
               100 * placement.away, gain);
    if (!isnan(touched->span))
        buf_printf(&evidence, "; a thread uses %.0f %% of what is used of it", 100 * touched->span);
    if (gain < WORTH_PERCENT)
        add(advices, row, "not-worth-it", "leave its pages where they are: to move them is not worth it", &evidence);
    else if (placement.most >= NODE_MOST)
        add(advices, row, "first-touch",
            "let the threads that use it write it first, so that its pages lie on their node", &evidence);
    else if (touched->span >= SPAN_ALL && placement.is_even)
        add(advices, row, "interleave", "interleave its pages over the nodes: the threads of all nodes use all of it",
            &evidence);
    else if (touched->span < SPAN_ALL)
        add(advices, row, "parallel-first-touch", "let each thread write first the part that it uses", &evidence);
    else
        add(advices, row, "parallel-first-touch",
            "let each thread write first the part that it uses; if all threads use all of it, interleave its pages "
            "over "
            "the nodes",
            &evidence);
    return true;
}

/* The hardware saw loads of lines that another core had just written. */
static void advise_on_sharing(struct advices *advices, const struct report_row *row)
{
    double loads, modified = report_is_seen_modified(&advices->report, row, &loads);
    struct buf evidence = {0};
    if (!(modified > 0))
        return;
    buf_printf(&evidence,
               "%.0f %% of its loads (%.0f of %.0f samples) found their line modified in another core's cache",
               100 * modified / loads, modified, loads);
    add(advices, row, "shared-lines",
        "give what each thread writes cache lines of its own, or write it less often where others read it", &evidence);
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
    add(advices, row, "small-blocks", "take the blocks from one array, so that neighbours share cache lines and pages",
        &evidence);
}

/* The interval of what waited for memory, and how much of it was walked through in one way. */
static void put_walked(const struct report_row *row, double part, const char *how, struct buf *evidence)
{
    const struct cause_sum *sum = &row->causes;
    char size[16];
    bool is_turned_over = report_is_turned_over(row);
    text_size(is_turned_over ? row->variable->max_block_bytes : row->size_bytes, size);
    buf_printf(evidence, "%.0f %% of its samples waited for memory (%.0f-%.0f %%), %.0f %% of these %s",
               100 * sum->memory / row->share, 100 * sum->memory_low / row->share, 100 * sum->memory_high / row->share,
               100 * part, how);
    buf_printf(evidence, is_turned_over ? "; blocks of up to %s" : "; it has %s", size);
    if (row->n_blocks > 1 && !is_turned_over)
        buf_printf(evidence, " in %llu blocks", (unsigned long long)row->n_blocks);
    if (row->element_bytes)
        buf_printf(evidence, ", elements of %llu bytes", (unsigned long long)row->element_bytes);
}

/* Its samples of the report's event that waited for memory, by how the instructions walk through it. */
struct walked {
    double all, irregular, chained, strided;
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
                       walked.stride_bytes < WALK_STRIDE_MOST ? "" : "at least ", walked.stride_bytes);
        put_walked(row, walked.strided / walked.all, how, &evidence);
        add(advices, row, "stride", "its loops take large steps: interchange the loops, or transpose it", &evidence);
    } else if (walked.chained > MEMORY_PART * walked.all) {
        put_walked(row, walked.chained / walked.all, "at reads that find where to read next", &evidence);
        add(advices, row, "chain",
            "each read waits for the one before: put the elements in the order in which they are read, or follow "
            "several chains at once",
            &evidence);
    } else if (walked.irregular > MEMORY_PART * walked.all) {
        put_walked(row, walked.irregular / walked.all, "at irregular reads", &evidence);
        add(advices, row, "irregular", "its reads jump: sort or block the index, or make the elements smaller",
            &evidence);
    }
}

/* Hot fields among cold ones, where the data are waited for at all or that is not known. */
static void advise_on_fields(struct advices *advices, const struct report_row *row)
{
    struct buf evidence = {0};
    const char *colon = row->advice && !row->advises_on_lines ? strstr(row->advice, ": ") : NULL;
    if (!colon || (advices->report.has_causes && !waits_for_memory(advices, row)))
        return;
    buf_append(&evidence, row->advice, (size_t)(colon - row->advice));
    add(advices, row, "split", colon + 2, &evidence);
}

static void advise_on_row(struct advices *advices, const struct report_row *row)
{
    const struct special_row *special = special_rows_find(row->name);
    struct buf evidence = {0};
    if (special) {
        if (strcmp(special->advice, "Nothing to do.") == 0)
            return;
        buf_printf(&evidence, "%s%s%s", special->means, *row->site ? ": " : "", row->site);
        add(advices, row, "special", special->advice, &evidence);
        return;
    }
    if (!row->variable || report_is_special(row))
        return;
    if (advices->report.has_causes)
        advise_on_arithmetic(advices, row);
    if (!advise_on_first_touch(advices, row))
        advise_on_nodes(advices, row);
    advise_on_sharing(advices, row);
    advise_on_walks(advices, row);
    advise_on_fields(advices, row);
    advise_on_blocks(advices, row);
}

/* Blocks that were never given back and that no sample fell on. */
static void advise_on_leaks(struct advices *advices)
{
    for (size_t i = 0; advices->has_leaks && advices->leaks.has_use && i < advices->leaks.n_rows; i++) {
        const struct leak_row *leak = &advices->leaks.rows[i];
        struct buf evidence = {0};
        char size[16];
        if (leak->live_bytes < LEAK_BYTES || leak->row->value > 0)
            continue;
        text_size(leak->live_bytes, size);
        buf_printf(&evidence, "%llu block%s, %s, live at the end; no sample fell on any of the path",
                   (unsigned long long)leak->n_live, leak->n_live == 1 ? "" : "s", size);
        add(advices, leak->row, "leak", "free it, or do not allocate it", &evidence);
    }
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

static void advices_fini(struct advices *advices)
{
    for (size_t i = 0; i < advices->n_items; i++) {
        free(advices->items[i].words);
        free(advices->items[i].evidence);
    }
    free(advices->items);
    if (advices->has_leaks)
        leaks_fini(&advices->leaks);
    first_touches_fini(&advices->touches);
    report_fini(&advices->report);
}

static int advices_make(struct advices *advices, const struct export_job *job, struct error *err)
{
    *advices = (struct advices){.job = job};
    struct error ignored;
    double least = job->least < 0 ? SHARE_MIN : job->least;
    int code = report_make(job->model, job->metric, false, false, &advices->report, err);
    if (code != 0)
        return code;
    code = first_touches_make(&advices->report, &advices->touches, err);
    if (code != 0) {
        report_fini(&advices->report);
        return code;
    }
    code = leaks_make(job->model, job->metric, false, false, &advices->leaks, &ignored);
    advices->has_leaks = code == 0;
    report_order_by_memory(&advices->report);
    for (size_t i = 0; !advices->report.has_too_few && i < advices->report.n_rows; i++) {
        const struct report_row *row = &advices->report.rows[i];
        if (row->share >= least && row->share > 0)
            advise_on_row(advices, row);
        else if (job->least < 0 && row->share >= WORTHLESS_PERCENT && row->variable && !report_is_special(row))
            (void)advise_on_first_touch(advices, row);
    }
    if (advices->n_items)
        qsort(advices->items, advices->n_items, sizeof *advices->items, compare_advice);
    if (!advices->report.has_too_few)
        advise_on_leaks(advices);
    if (!advices->failed && code != ERR_MEMORY)
        return 0;
    advices_fini(advices);
    return error_memory(err);
}

static size_t n_shown(const struct advices *advices)
{
    size_t top = advices->job->top;
    return top && top < advices->n_items ? top : advices->n_items;
}

/* Where the row comes from, after its name or on a line of its own. Special rows have it in their evidence. */
static void put_site(const struct export_job *job, const struct advice *advice, struct buf *out)
{
    size_t at = 9 + text_width(advice->name) + 2, needed = at + text_width(advice->site);
    if (!*advice->site || strcmp(advice->site, advice->name) == 0 || strcmp(advice->rule, "special") == 0)
        return;
    bool is_beside = needed <= job->columns;
    buf_printf(out, is_beside ? "%2s" : "\n%9s", "");
    text_cut(out, job, advice->site, job->columns - (is_beside ? at : 9));
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    const struct model *model = job->model;
    int code = advices_make(&advices, job, err);
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    if (model->n_numa_nodes == 1 && advices.touches.is_measured)
        text_labelled(out, job, "NUMA",
                      "the machine has one node, so where data lie is no matter here, and no advice is about that");
    if (advices.n_items == 0)
        text_labelled(out, job, "advice",
                      advices.report.has_too_few ? "none: there are too few samples"
                                                 : "none: the database has no evidence that is certain enough");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        struct buf text = {0};
        buf_append(out, "\n", 1);
        text_style(out, job, TEXT_BOLD);
        buf_printf(out, "%5.1f %%  ", advice->share);
        text_cut(out, job, advice->name, job->columns - 9);
        text_style(out, job, TEXT_PLAIN);
        put_site(job, advice, out);
        buf_printf(out, "\n%9s", "");
        text_wrapped(out, job, advice->words, 9, 9);
        buf_printf(&text, "because: %s", advice->evidence ? advice->evidence : "");
        if (!isnan(advice->memory))
            buf_printf(&text, "; %.1f %% of all samples waited for memory here", advice->memory);
        buf_printf(out, "%9s", "");
        text_style(out, job, TEXT_DIM);
        text_wrapped(out, job, text.data ? text.data : "", 9, 9);
        text_style(out, job, TEXT_PLAIN);
        buf_fini(&text);
    }
    if (n_shown(&advices) < advices.n_items)
        buf_printf(out, "\n         %zu more (--top 0 shows all)\n", advices.n_items - n_shown(&advices));
    advices_fini(&advices);
    return 0;
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    int code = advices_make(&advices, job, err);
    if (code != 0)
        return code;
    buf_printf(out, "variable,class,alloc_site,share,memory_share,rule,advice,evidence\n");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        csv_put_text(out, advice->name);
        buf_printf(out, ",%s,", advice->class);
        csv_put_text(out, advice->site);
        buf_printf(out, ",%.6f,", advice->share);
        if (!isnan(advice->memory))
            buf_printf(out, "%.6f", advice->memory);
        buf_printf(out, ",%s,", advice->rule);
        csv_put_text(out, advice->words);
        buf_append(out, ",", 1);
        csv_put_text(out, advice->evidence ? advice->evidence : "");
        buf_append(out, "\n", 1);
    }
    advices_fini(&advices);
    return 0;
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct advices advices;
    int code = advices_make(&advices, job, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    buf_printf(out, ",\n\"advice\": [");
    for (size_t i = 0; i < n_shown(&advices); i++) {
        const struct advice *advice = &advices.items[i];
        buf_printf(out, i ? ",\n{\"variable\": " : "\n{\"variable\": ");
        json_put_text(out, advice->name);
        json_put_text_at(out, "class", advice->class);
        json_put_text_at(out, "alloc_site", advice->site);
        json_put_double_at(out, "share", advice->share);
        if (!isnan(advice->memory))
            json_put_double_at(out, "memory_share", advice->memory);
        json_put_text_at(out, "rule", advice->rule);
        json_put_text_at(out, "advice", advice->words);
        json_put_text_at(out, "evidence", advice->evidence ? advice->evidence : "");
        buf_append(out, "}", 1);
    }
    buf_printf(out, "]}\n");
    advices_fini(&advices);
    return 0;
}

const struct exporter export_advice_text = {"advice", "text", write_text};
const struct exporter export_advice_csv = {"advice", "csv", write_csv};
const struct exporter export_advice_json = {"advice", "json", write_json};
