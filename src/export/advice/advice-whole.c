/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice that is given once, of all rows together: about the kernel, the allocator, leaks. See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/text-cells.h"

#define LEAK_BYTES (1 << 20)   /* of a path, live at the end and never used ... */
#define LEAK_PART 0.1          /* ... and of all bytes that are */
#define ALLOCATOR_LEAST 10.0   /* percent of all samples */
#define FAULT_MOST_S 1e-5      /* of time in the kernel for each page fault: with more it is something else */
#define FAULTS_MOST_S 1e-3     /* the same where nothing else is known: of a huge page, and on a slow machine */
#define HUGE_FAULT_S 5e-5      /* the same: a huge page must have been cleared */
#define COLD_TIMES 2           /* times as much as shows in user mode of a call: code behind it runs slower */
#define CALLS_LEAST 5.0        /* percent of all samples on the way back from system calls: there are many */
#define CHURN_BLOCKS 100       /* that were given back again ... */
#define CHURN_BYTES 4096       /* ... of so many bytes on average ... */
#define CHURN_NS_PER_BYTE 0.35 /* ... with no more time at each: they are filled or copied */
#define CHURN_SPOTS 64         /* places where such blocks are used */
#define CHURN_SPOT_PART 0.05   /* of their samples: places with less do other things, too */
#define CHURN_OWN_PART 0.3     /* of what is done at a place: with less it is not done for them */
#define MAPPED_BYTES 131072    /* from here on malloc maps blocks anew */
#define FREED_PART 0.9         /* of a variable's blocks: they are allocated anew again and again */

#define HEAP_ON_HUGE_PAGES "put the heap on huge pages (GLIBC_TUNABLES=glibc.malloc.hugetlb=1)"

/* --- the kernel --- */

static const struct report_row *row_named(const struct advices *advices, const char *name)
{
    for (size_t i = 0; i < advices->report->n_rows; i++)
        if (strcmp(advices->report->rows[i].name, name) == 0)
            return &advices->report->rows[i];
    return NULL;
}

/* Page faults: on what, where, and how to have fewer. part: of all of them; fault_s: time in the kernel for each. */
static void put_faults(const struct advices *advices, const struct variable *variable, const struct touched *touched,
                       double part, double fault_s, struct buf *words)
{
    const struct model *model = advices->report->model;
    const struct touch_group *group = touched->n_groups ? &advices->touches->groups[touched->first_group] : NULL;
    struct touch_place place = group ? advices->touches->rows[group->first].place : (struct touch_place){0};
    char size[16];
    bool is_freed =
        variable->n_blocks > 1 && (double)variable->n_blocks_freed >= FREED_PART * (double)variable->n_blocks;
    buf_printf(words, "page faults: %.0f %% at first touches of ", 100 * part);
    text_short_function(words, model_variable_name(model, variable));
    if (place.line)
        buf_printf(words, " (%s:%u)", path_last(model_text(model, place.file)), place.line);
    bool is_small = is_freed && variable->size_bytes / variable->n_blocks < MAPPED_BYTES;
    if (strcmp(model_variable_name(model, variable), PYTHON_OBJECTS) == 0) {
        buf_printf(words, ": keep fewer of them alive at a time (generators, arrays of numbers)");
    } else if (is_small && fault_s < HUGE_FAULT_S) { /* malloc reuses such blocks itself */
        buf_printf(words, ", where the heap grows: " HEAP_ON_HUGE_PAGES);
    } else if (is_freed) {
        text_size(variable->size_bytes / variable->n_blocks, size);
        buf_printf(words, ", %llu blocks of %s freed again: allocate once and reuse%s",
                   (unsigned long long)variable->n_blocks, size, fault_s < HUGE_FAULT_S ? ", or use huge pages" : "");
    } else if (variable->class == CLASS_FILE || fault_s < HUGE_FAULT_S) {
        buf_printf(words, ": %s", advice_touch_cure(variable));
    } else {
        buf_printf(words, ": reuse memory, or touch it in parallel");
    }
}

/* Sums up the page faults, and finds the variable with most of them. */
static double count_faults(const struct advices *advices, size_t *most)
{
    const struct touched *of = advices->touches->variables;
    double sum = 0;
    *most = 0;
    for (size_t i = 0; of && i < advices->report->n_variables; i++) {
        sum += (double)of[i].n_faults;
        *most = of[i].n_faults > of[*most].n_faults ? i : *most;
    }
    return sum;
}

/* --- blocks that are made anew again and again --- */

/* Where a sample of such a block is: the loop, line or function; of a library's function the program's call of it. */
static struct code_spot spot_of_block(const struct model *model, uint32_t scope)
{
    struct code_spot spot = code_spot_of(model, scope);
    uint32_t loop, call = scope, around = 0;
    for (; spot.kind == SPOT_LIBRARY && call; call = model->scopes[call].parent) {
        around = model->scopes[call].kind == SCOPE_CALL ? code_function_around(model, call, &loop) : 0;
        if (around && !code_library(model, model->scopes[around].module))
            break;
    }
    if (spot.kind == SPOT_LIBRARY && call && model->scopes[call].vaddr)
        return (struct code_spot){
            .kind = SPOT_CALL, .module = model->scopes[around].module, .vaddr = model->scopes[call].vaddr};
    return spot;
}

/* Adds a place to spots [n of CHURN_SPOTS], each once; its value sums up. */
static size_t add_spot(struct code_spot *spots, size_t n, const struct code_spot *spot, double value)
{
    size_t i = 0;
    while (i < n && (spots[i].kind != spot->kind || spots[i].module != spot->module || spots[i].vaddr != spot->vaddr ||
                     spots[i].line != spot->line))
        i++;
    if (i == CHURN_SPOTS || spot->kind == SPOT_NONE)
        return n;
    if (i == n) {
        spots[n++] = *spot;
        spots[i].value = 0;
    }
    spots[i].value += value;
    return n;
}

/* Whether what is done at a place is mostly done to the blocks: with others it would go on without them. */
static bool is_for_blocks(struct advices *advices, const struct code_spot *spot, uint8_t *is_inside)
{
    double own = 100 * spot->value / advices->report->total_value;
    return own >= CHURN_OWN_PART * code_spots_share(advices, spot, 1, NULL, is_inside);
}

/* Where the blocks are used, and the calls that make them: spots [CHURN_SPOTS]. is_inside [n_scopes]: scratch. */
static size_t spots_of_blocks(struct advices *advices, const struct variable *variable, uint8_t *is_inside,
                              struct code_spot *spots)
{
    const struct model *model = advices->report->model;
    size_t n = 0, n_kept = 0;
    double all = 0;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + advices->report->metric];
            struct code_spot spot = value > 0 ? spot_of_block(model, i) : (struct code_spot){0};
            n = add_spot(spots, n, &spot, value);
            all += value;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (spots[i].value >= CHURN_SPOT_PART * all && is_for_blocks(advices, &spots[i], is_inside))
            spots[n_kept++] = spots[i];
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t at = model->scopes[variable->scopes[k]].parent, loop;
        while (at && !(model->scopes[at].kind == SCOPE_CALL && model->scopes[at].vaddr &&
                       code_line_of(model, at).function == variable->function))
            at = model->scopes[at].parent;
        struct code_spot call = {.kind = SPOT_CALL, .vaddr = model->scopes[at].vaddr};
        call.module = model->scopes[code_function_around(model, at, &loop)].module;
        n_kept = at ? add_spot(spots, n_kept, &call, 0) : n_kept;
    }
    return n_kept;
}

/* Percent of the CPU time that the blocks take: in user mode and, as first touches and calls, in the kernel. */
static double cost_of_blocks(struct advices *advices, const struct report_row *row)
{
    const struct report *report = advices->report;
    struct code_spot spots[CHURN_SPOTS];
    uint8_t *is_inside = calloc(report->model->n_scopes + 1, sizeof *is_inside);
    size_t most, n = is_inside ? spots_of_blocks(advices, row->variable, is_inside, spots) : 0;
    double kernel = report_kernel_percent(report), n_faults = count_faults(advices, &most);
    double mean = (double)row->variable->size_bytes / (double)row->variable->n_blocks;
    double user = is_inside ? code_spots_share(advices, spots, n, row->variable, is_inside) : 0;
    double part = mean >= MAPPED_BYTES && n_faults <= 0 ? 1 : 0;
    if (n_faults > 0)
        part = (double)advices->touches->variables[row->variable - report->variables].n_faults / n_faults;
    advices->failed |= !is_inside;
    free(is_inside);
    return report_kernel_alone(report) * part + (1 - kernel / 100) * user;
}

void advise_on_churn(struct advices *advices, const struct report_row *row)
{
    const struct report *report = advices->report;
    const struct variable *variable = row->variable;
    struct buf words = {0}, evidence = {0};
    char size[16];
    double mean = variable->n_blocks ? (double)variable->size_bytes / (double)variable->n_blocks : 0;
    bool is_heap = variable->class == CLASS_HEAP && !row->part && variable->n_blocks >= CHURN_BLOCKS;
    double ns_per_byte = row->share / 100 * report->sampled_s * 1e9 / fmax(1, (double)variable->size_bytes);
    if (!is_heap || !report_is_turned_over(row) || mean < CHURN_BYTES || report->sampled_s <= 0 ||
        ns_per_byte > CHURN_NS_PER_BYTE)
        return;
    text_size((uint64_t)mean, size);
    buf_printf(&words,
               "%llu blocks of %s, each given back again: let it grow in large steps (reserve, double), allocate it "
               "once, or reuse it",
               (unsigned long long)variable->n_blocks, size);
    text_size(variable->size_bytes, size);
    buf_printf(&evidence,
               "%s in all, with %.2f ns of time in user mode at each byte: it is filled or copied about once; what is "
               "done where it is made and used has that bound, its page faults in the kernel, too",
               size, ns_per_byte);
    struct advice *made =
        words.data ? advice_add(advices, row, "churn", cost_of_blocks(advices, row), words.data, &evidence) : NULL;
    if (made)
        made->is_of_cpu_time = made->is_verified = true;
    advices->failed |= words.failed;
    buf_fini(&words);
}

/* --- the whole kernel --- */

/* Percent of all samples in functions of libraries that call the kernel: the call belongs to what it takes there. */
static double around_calls(const struct advices *advices, const struct report_row *calls)
{
    const struct report *report = advices->report;
    double sum = calls ? calls->share : 0;
    for (size_t i = 0; calls && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        for (size_t k = 0; row != calls && row->wait == REPORT_NOT_WAITING && row->value > 0 && k < row->n_lines; k++)
            for (size_t c = 0; c < calls->n_lines; c++)
                if (calls->lines[c].function == row->lines[k].function && !calls->lines[c].loop.first) {
                    sum += row->lines[k].value / row->value * row->share;
                    break;
                }
    }
    return sum;
}

/* The page faults that were sampled, of memory without a name, too. */
static double faults_of(const struct model *model)
{
    int64_t faults = model_metric(model, FAULTS_METRIC);
    uint32_t root = model_data_root(model);
    return faults >= 0 && root ? model_value(model, root, (size_t)faults) : 0;
}

/* Percent of the CPU time that the kernel took for page faults of the program: where the profiler has much work of its
 * own, as many as were sampled may take, for some of the time is the profiler's. */
static double share_of_faults(const struct report *report, const struct report_row *profiler, double n_sampled)
{
    double share = report_kernel_alone(report), cpu_s = report->user_s + report->system_s;
    if (n_sampled <= 0 || !profiler || profiler->share < ADVICE_LARGE_PERCENT || cpu_s <= 0)
        return share;
    return fmin(share, 100 * n_sampled * FAULT_MOST_S / cpu_s);
}

void advise_on_kernel(struct advices *advices, double least)
{
    const struct report *report = advices->report;
    double share = report_kernel_alone(report), user = 1 - report_kernel_percent(report) / 100, part = 1;
    double system_s = report->system_s - report->system_waiting_s;
    const struct report_row row = {
        .name = SPECIAL_KERNEL, .class = "kernel", .site = (char *)(uintptr_t) "", .share = share};
    const struct report_row *calls = row_named(advices, WAITS_CALL);
    struct buf words = {0}, evidence = {0}, place = {0};
    size_t most;
    if (share < least || report_kernel_least(report) < ADVICE_LARGE_PERCENT)
        return;
    double n_named = count_faults(advices, &most), n_sampled = fmax(n_named, faults_of(report->model));
    double n_faults = n_sampled > 0 ? n_sampled : (double)report->model->n_page_faults;
    double fault_s = n_faults > 0 ? system_s / n_faults : 0;
    bool has_calls = calls && calls->share >= CALLS_LEAST;
    bool is_by_faults = n_faults > 0 && (fault_s <= FAULT_MOST_S || (!has_calls && fault_s <= FAULTS_MOST_S));
    buf_printf(&evidence, "%.2f s of CPU time in the kernel", system_s);
    if (report->system_waiting_s > 0)
        buf_printf(&evidence, ", without %.2f s for waiting", report->system_waiting_s);
    if (n_faults > 0)
        buf_printf(&evidence, "; about %.0f page faults: %.1f us of that for each", n_faults, 1e6 * fault_s);
    bool is_named = n_named > ADVICE_PART * n_sampled;
    if (is_by_faults && n_sampled > 0 && !is_named) {
        buf_printf(&words,
                   "page faults: %.0f %% at memory of no recorded block, as where the heap grows: " HEAP_ON_HUGE_PAGES,
                   100 * (1 - n_named / n_sampled));
    } else if (is_by_faults && n_sampled <= 0) {
        buf_printf(&words,
                   "page faults: put large data on huge pages, reuse memory, or touch it in parallel; measuring "
                   "FAULTS, too, would tell which");
    } else if (is_by_faults) {
        part = (double)advices->touches->variables[most].n_faults / n_faults;
        put_faults(advices, &report->variables[most], &advices->touches->variables[most], part, fault_s, &words);
    } else {
        if (calls)
            (void)advice_put_caller(advices, calls, &place);
        buf_printf(&words, "system calls: make fewer or larger ones; strace -c -f counts them");
    }
    /* Pages that are not touched anew also save what that takes in user mode; calls, the way there and back. */
    double uncounted = first_touch_uncounted(report), touches = report->causes.first_touch + uncounted;
    double beside = is_by_faults ? (1 + FIRST_TOUCH_DOUBT) * touches : COLD_TIMES * around_calls(advices, calls);
    if (is_by_faults && uncounted <= 0)
        beside = fmin(beside, 100 - report->causes.execution);
    double own = is_by_faults ? share_of_faults(report, row_named(advices, WAITS_PROFILER), n_sampled) : share;
    if (own < share)
        buf_printf(&evidence, "; the profiler works there, too");
    if (is_by_faults && beside > 0)
        buf_printf(&evidence, "; new pages also take %.1f %% of the CPU time in user mode", user * fmin(100, beside));
    double gain = own + (share - report_kernel_least(report)) * own / share + user * fmin(100, beside);
    gain *= part; /* of the variable that is named */
    struct advice *made = words.data ? advice_add(advices, &row, is_by_faults ? "page-faults" : "system-calls", gain,
                                                  words.data, &evidence)
                                     : NULL;
    if (made) {
        made->is_of_cpu_time = true;
        made->variable = is_by_faults && n_sampled > 0 && is_named ? &report->variables[most] : NULL;
    }
    advice_set_place(made, &place);
    advices->failed |= words.failed;
    buf_fini(&words);
}

/* --- the allocator --- */

/* Pages of the heap that the allocator touches first, when it writes how large a block is. */
static void advise_on_heap_pages(struct advices *advices, const struct report_row *at, double touched)
{
    struct buf evidence = {0};
    if (touched < ADVICE_SHARE_MIN)
        return;
    buf_printf(&evidence,
               "%.1f %% of all samples are in the allocator and of first touches of pages, which the heap grows by",
               touched);
    struct advice *made = advice_add(advices, at, "page-touches", fmin(100, touched * (1 + FIRST_TOUCH_DOUBT)),
                                     "new pages of the heap are touched first there: " HEAP_ON_HUGE_PAGES, &evidence);
    if (made)
        made->share = made->rank = touched;
}

/* The allocator's own time, by all lines that call it; said once, of the line with most of it. */
void advise_on_allocator(struct advices *advices)
{
    const struct report_row *at = NULL;
    struct buf evidence = {0}, place = {0};
    double sum = 0, touched = 0;
    size_t n = 0;
    for (size_t i = 0; i < advices->report->n_rows; i++) {
        const struct report_row *row = &advices->report->rows[i];
        if (strcmp(row->name, ALLOCATOR_ROW) != 0)
            continue;
        sum += row->share - row->causes.first_touch;
        touched += row->causes.first_touch;
        n++;
        at = !at || row->share > at->share ? row : at;
    }
    const struct report_row *profiler = row_named(advices, WAITS_PROFILER);
    bool is_disturbed = profiler && profiler->share > sum; /* most of what would be saved is not in the allocator */
    if (at)
        advise_on_heap_pages(advices, at, touched);
    if (!at || sum < ALLOCATOR_LEAST)
        return;
    buf_printf(&evidence,
               "%.1f %% of all samples are in the allocator, called from %zu line%s of the program, most of "
               "all %s (%.1f %%)",
               sum, n, n == 1 ? "" : "s", at->site, at->share);
    if (is_disturbed)
        buf_printf(&evidence, "; the profiler takes %.1f %%, so what it gains is not known", profiler->share);
    struct advice *made = advice_add(
        advices, at, "allocator", is_disturbed ? (double)NAN : sum,
        "allocate less often: reserve() for containers that grow, reuse of buffers, an arena for small blocks",
        &evidence);
    if (made)
        made->share = made->rank = sum;
    (void)advice_put_caller(advices, at, &place);
    advice_set_place(made, &place);
}

/* --- leaks --- */

int advise_find_leaks(struct advices *advices, const struct export_job *job, struct error *err)
{
    struct error ignored;
    int code = leaks_may_be_unused(job->model, job->metric, LEAK_BYTES)
                   ? leaks_make(job->model, job->metric, false, false, &advices->leaks, &ignored)
                   : ERR_NOT_FOUND;
    advices->has_leaks = code == 0;
    return code == ERR_MEMORY ? error_memory(err) : 0;
}

/* Blocks that were never given back and that no sample fell on. */
void advise_on_leaks(struct advices *advices)
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
        struct advice *made =
            advice_add(advices, leak->row, "leak", (double)NAN, "free it, or do not allocate it", &evidence);
        if (made)
            made->live_bytes = leak->live_bytes;
    }
}
