/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects who touched the variables of a report first: see first-touch.h. */
#include "analysis/report/first-touch.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/search.h"
#include "structure/names/assign-name.h"

/* --- where --- */

static bool begins_with_one(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (text_begins(text, *prefixes))
            return true;
    return false;
}

/* Whether a function works for its caller: it is in a library of the language's, or in one of its name spaces.
 * Statically linked, such functions have names but no lines. */
static bool is_for_caller(const struct model *model, const struct scope *scope, uint32_t line)
{
    static const char *const modules[] = {"libc.so", "libc-2.",      "ld-linux", "ld-musl",    "libstdc++.",
                                          "libc++.", "libgfortran.", "libm.so",  "libpthread", NULL};
    static const char *const spaces[] = {"std::", "__gnu_cxx::", "operator new", NULL};
    static const char *const functions[] = {"mem",     "__mem",     "calloc", "__libc_", "_int_", "malloc",
                                            "realloc", "sysmalloc", "str",    "__str",   NULL};
    const char *function = model_text(model, scope->name);
    return begins_with_one(path_last(model_text(model, scope->module)), modules) ||
           begins_with_one(assign_name_start(function), spaces) || (!line && begins_with_one(function, functions));
}

/* The function around a scope, and the line that it is at there; false at the end of the code. */
static bool next_place(const struct model *model, uint32_t *scope, struct touch_place *place)
{
    *place = (struct touch_place){0};
    for (uint32_t at = *scope; at && model->scopes[at].role == ROLE_NONE; at = model->scopes[at].parent) {
        const struct scope *here = &model->scopes[at];
        bool is_function = here->kind == SCOPE_PROC || here->kind == SCOPE_INLINED;
        if (!is_function && here->kind != SCOPE_LOOP && !place->line) {
            place->file = here->file;
            place->line = here->line;
        }
        if (is_function) {
            place->function = here->name;
            *scope = at;
            return true;
        }
    }
    return false;
}

struct touch_place touch_place_of(const struct model *model, uint32_t scope)
{
    struct touch_place first = {0}, place;
    for (bool is_first = true; next_place(model, &scope, &place); is_first = false) {
        if (is_first)
            first = place;
        if (!is_for_caller(model, &model->scopes[scope], place.line))
            return place;
        scope = model->scopes[scope].parent;
    }
    return first;
}

size_t touch_path_of(const struct model *model, uint32_t scope, struct touch_place *places, size_t max)
{
    struct touch_place place;
    size_t n = 0;
    for (uint32_t at = scope; next_place(model, &at, &place); at = model->scopes[at].parent) {
        if (is_for_caller(model, &model->scopes[at], place.line))
            continue;
        if (n < max)
            places[n] = place;
        n++;
    }
    if (n == 0 && max)
        places[n++] = touch_place_of(model, scope);
    return n;
}

/* --- on which node --- */

static uint32_t node_of_cpu(const struct model *model, uint32_t thread, uint32_t cpu)
{
    const char *host = model->processes[model->threads[thread].process].host_id;
    const struct machine *machine = NULL;
    for (size_t i = 0; !machine && i < model->n_machines; i++)
        if (strcmp(model->machines[i].host_id, host) == 0)
            machine = &model->machines[i];
    if (!machine)
        return PLACE_UNKNOWN;
    size_t i = search_below(machine->cpus, machine->n_cpus, SEARCH_KEY(struct machine_cpu, cpu), cpu);
    return i < machine->n_cpus && machine->cpus[i].cpu == cpu ? machine->cpus[i].node : PLACE_UNKNOWN;
}

static int compare_to_touch(const struct cpu_count *count, const struct touch *touch)
{
    if (count->variable != touch->variable)
        return count->variable < touch->variable ? -1 : 1;
    return count->thread < touch->thread ? -1 : count->thread > touch->thread;
}

/* The node that the thread of a touch ran on at most of its faults on the variable. *at: where its counts begin, which
 * moves on with the touches. */
static uint32_t node_of_touch(const struct first_touches *touches, const struct touch *touch, size_t *at)
{
    const struct model *model = touches->report->model;
    uint64_t counts[64] = {0};
    uint32_t most = PLACE_UNKNOWN;
    while (*at < model->n_cpu_counts && compare_to_touch(&model->cpu_counts[*at], touch) < 0)
        ++*at;
    for (size_t i = *at; i < model->n_cpu_counts && compare_to_touch(&model->cpu_counts[i], touch) == 0; i++) {
        const struct cpu_count *count = &model->cpu_counts[i];
        uint32_t node =
            (int64_t)count->metric == touches->faults ? node_of_cpu(model, touch->thread, count->cpu) : PLACE_UNKNOWN;
        if (node >= sizeof counts / sizeof *counts)
            continue;
        counts[node] += count->n_samples;
        if (most == PLACE_UNKNOWN || counts[node] > counts[most])
            most = node;
    }
    return most;
}

/* --- rows and groups --- */

static int compare_words(const uint64_t *xs, const uint64_t *ys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct touch_row *x = a, *y = b;
    const uint64_t xs[] = {x->variable, x->place.function, x->place.file, x->place.line, x->thread};
    const uint64_t ys[] = {y->variable, y->place.function, y->place.file, y->place.line, y->thread};
    return compare_words(xs, ys, sizeof xs / sizeof *xs);
}

static bool is_same_group(const struct touch_row *x, const struct touch_row *y)
{
    return x->variable == y->variable && x->place.function == y->place.function && x->place.file == y->place.file &&
           x->place.line == y->place.line;
}

static void add_row(struct touch_row *into, const struct touch_row *from)
{
    bool has_place = from->low_bytes <= from->high_bytes, had_place = into->low_bytes <= into->high_bytes;
    into->n_samples += from->n_samples;
    into->n_faults += from->n_faults;
    if (from->first_ns && (!into->first_ns || from->first_ns < into->first_ns))
        into->first_ns = from->first_ns;
    if (has_place && (!had_place || from->low_bytes < into->low_bytes))
        into->low_bytes = from->low_bytes;
    if (has_place && (!had_place || from->high_bytes > into->high_bytes))
        into->high_bytes = from->high_bytes;
}

/* Makes the rows of the model's touches; those of one thread at one place become one. */
static bool make_rows(struct first_touches *touches)
{
    const struct model *model = touches->report->model;
    size_t at = 0, n = 0;
    touches->rows = calloc(model->n_touches + 1, sizeof *touches->rows);
    for (size_t i = 0; touches->rows && i < model->n_touches; i++) {
        const struct touch *touch = &model->touches[i];
        touches->rows[i] = (struct touch_row){.variable = touches->report->variable_of[touch->variable],
                                              .thread = touch->thread,
                                              .place = touch_place_of(model, touch->scope),
                                              .node = node_of_touch(touches, touch, &at),
                                              .n_samples = touch->n_samples,
                                              .n_faults = touch->n_faults,
                                              .first_ns = touch->first_ns,
                                              .low_bytes = touch->low_bytes,
                                              .high_bytes = touch->high_bytes};
    }
    if (!touches->rows)
        return false;
    if (model->n_touches)
        qsort(touches->rows, model->n_touches, sizeof *touches->rows, compare_places);
    for (size_t i = 0; i < model->n_touches; i++) {
        if (n && compare_places(&touches->rows[n - 1], &touches->rows[i]) == 0)
            add_row(&touches->rows[n - 1], &touches->rows[i]);
        else
            touches->rows[n++] = touches->rows[i];
    }
    touches->n_rows = n;
    return true;
}

/* Sums up the rows of each variable. */
static void sum_rows(struct first_touches *touches)
{
    touches->is_complete = true;
    for (size_t i = 0; i < touches->n_rows; i++) {
        struct touch_row *row = &touches->rows[i];
        struct touched *sum = &touches->variables[row->variable];
        touches->is_complete = touches->is_complete && row->n_samples == row->n_faults;
        sum->n_samples += row->n_samples;
        sum->n_faults += row->n_faults;
        if (row->first_ns && (!sum->first_ns || row->first_ns < sum->first_ns))
            sum->first_ns = row->first_ns;
    }
    for (size_t i = 0; i < touches->n_rows; i++) {
        struct touch_row *row = &touches->rows[i];
        uint64_t all = touches->variables[row->variable].n_faults;
        row->share = all ? 100 * (double)row->n_faults / (double)all : 0;
    }
}

static int compare_groups(const void *a, const void *b, void *context)
{
    const struct touch_group *x = a, *y = b;
    const struct touch_row *rows = context;
    if (rows[x->first].variable != rows[y->first].variable)
        return rows[x->first].variable < rows[y->first].variable ? -1 : 1;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool make_groups(struct first_touches *touches)
{
    for (size_t i = 0; i < touches->n_rows; i++) {
        if (i == 0 || !is_same_group(&touches->rows[i - 1], &touches->rows[i])) {
            if (!vec_reserve(&touches->groups, &touches->cap_groups, touches->n_groups + 1, sizeof *touches->groups))
                return false;
            touches->groups[touches->n_groups++] = (struct touch_group){.first = i};
        }
        struct touch_group *group = &touches->groups[touches->n_groups - 1];
        group->n++;
        group->share += touches->rows[i].share;
    }
    if (touches->n_groups)
        qsort_r(touches->groups, touches->n_groups, sizeof *touches->groups, compare_groups, touches->rows);
    for (size_t i = touches->n_groups; i-- > 0;) {
        struct touched *sum = &touches->variables[touches->rows[touches->groups[i].first].variable];
        sum->first_group = i;
        sum->n_groups++;
    }
    return true;
}

/* --- threads --- */

/* A thread at a variable. */
struct visit {
    uint32_t variable, thread;
};

static int compare_visits(const void *a, const void *b)
{
    const struct visit *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Sorts the visits; returns how many different ones there are. */
static size_t sort_visits(struct visit *visits, size_t n)
{
    size_t n_kept = 0;
    if (n)
        qsort(visits, n, sizeof *visits, compare_visits);
    for (size_t i = 0; i < n; i++)
        if (n_kept == 0 || compare_visits(&visits[n_kept - 1], &visits[i]) != 0)
            visits[n_kept++] = visits[i];
    return n_kept;
}

static bool count_touchers(struct first_touches *touches)
{
    struct visit *visits = calloc(touches->n_rows + 1, sizeof *visits);
    for (size_t i = 0; visits && i < touches->n_rows; i++)
        visits[i] = (struct visit){touches->rows[i].variable, touches->rows[i].thread};
    size_t n = visits ? sort_visits(visits, touches->n_rows) : 0;
    for (size_t i = 0; i < n; i++)
        touches->variables[visits[i].variable].n_touchers++;
    free(visits);
    return visits != NULL;
}

static bool list_users(struct first_touches *touches)
{
    const struct model *model = touches->report->model;
    struct visit *visits = calloc(model->n_cpu_counts + 1, sizeof *visits);
    size_t n = 0;
    for (size_t i = 0; visits && i < model->n_cpu_counts; i++) {
        const struct cpu_count *count = &model->cpu_counts[i];
        if ((int64_t)count->metric != touches->faults && count->n_samples)
            visits[n++] = (struct visit){touches->report->variable_of[count->variable], count->thread};
    }
    n = visits ? sort_visits(visits, n) : 0;
    touches->users = calloc(n + 1, sizeof *touches->users);
    for (size_t i = n; touches->users && i-- > 0;) {
        struct touched *sum = &touches->variables[visits[i].variable];
        touches->users[i] = visits[i].thread;
        sum->first_user = i;
        sum->n_users++;
    }
    touches->n_users = touches->users ? n : 0;
    free(visits);
    return touches->users != NULL;
}

/* What is used of a variable. */
struct extent {
    uint64_t first, last;
    double weighted, n_samples;
};

static void span_variable(const struct report *report, const struct extent *extent, size_t variable,
                          struct touched *touched)
{
    touched->span = (double)NAN;
    if (extent->n_samples > 0 && extent->last > extent->first && report->variables[variable].n_blocks == 1)
        touched->span = extent->weighted / extent->n_samples / (double)(extent->last - extent->first);
}

/* The mean over the samples, so that a thread with few of them, as from the beginning, does not matter. */
static bool find_spans(struct first_touches *touches)
{
    const struct report *report = touches->report;
    struct extent *extents = calloc(report->n_variables + 1, sizeof *extents);
    for (size_t i = 0; extents && i < report->model->n_reaches; i++) {
        const struct reach_row *row = &report->model->reaches[i];
        struct extent *extent = &extents[report->variable_of[row->variable]];
        double n = (double)reach_total(&row->sum);
        if (n <= 0)
            continue;
        bool is_new = extent->n_samples <= 0;
        extent->first = is_new || row->sum.first < extent->first ? row->sum.first : extent->first;
        extent->last = is_new || row->sum.last > extent->last ? row->sum.last : extent->last;
        extent->weighted += n * (double)(row->sum.last - row->sum.first);
        extent->n_samples += n;
    }
    for (size_t v = 0; extents && v < report->n_variables; v++)
        span_variable(report, &extents[v], v, &touches->variables[v]);
    free(extents);
    return extents != NULL;
}

/* --- the whole --- */

/* The metric whose nodes say from where variables are used: the report's own, unless that is the faults. */
static int64_t metric_of_use(const struct report *report, int64_t faults)
{
    const struct model *model = report->model;
    if ((int64_t)report->metric != faults && !model->metrics[report->metric].hidden)
        return (int64_t)report->metric;
    int64_t first = model_first_metric(model);
    return first == faults ? -1 : first;
}

int first_touches_make(const struct report *report, struct first_touches *touches, struct error *err)
{
    const struct model *model = report->model;
    int64_t faults = model_metric(model, FAULTS_METRIC);
    *touches = (struct first_touches){.report = report,
                                      .is_measured = faults >= 0 && model->n_touches > 0,
                                      .faults = faults,
                                      .use = metric_of_use(report, faults),
                                      .variables = calloc(report->n_variables + 1, sizeof *touches->variables)};
    bool ok = touches->variables && make_rows(touches);
    if (ok)
        sum_rows(touches);
    ok = ok && make_groups(touches) && count_touchers(touches) && list_users(touches) && find_spans(touches);
    if (ok)
        return 0;
    first_touches_fini(touches);
    return error_memory(err);
}

void first_touches_fini(struct first_touches *touches)
{
    free(touches->rows);
    free(touches->groups);
    free(touches->users);
    free(touches->variables);
    *touches = (struct first_touches){0};
}

const struct touched *first_touch_of(const struct first_touches *touches, const struct report_row *row)
{
    if (!row->variable || row->part || !touches->variables)
        return NULL;
    const struct touched *found = &touches->variables[row->variable - touches->report->variables];
    return found->n_groups ? found : NULL;
}

const uint64_t *first_touch_nodes(const struct first_touches *touches, const struct report_row *row, bool used)
{
    int64_t metric = used ? touches->use : touches->faults;
    if (metric < 0 || !row->variable || !row->variable->places)
        return NULL;
    return &row->variable->places[(size_t)metric * touches->report->model->n_numa_nodes];
}

/* --- what first touches take of the time in user mode --- */

#define TOUCH_SHARE_LEAST 0.5 /* percent of all samples: less is not told */
#define TOUCH_PLACES_MAX 64   /* of a variable */

/* What one takes on the machine that was measured, by the skid self-test, nanoseconds; 0: not known, or next to
 * nothing. */
static double first_touch_ns(const struct model *model)
{
    json_t *figures = model->skid ? json_loads(model->skid, 0, NULL) : NULL;
    double ns = json_number_value(json_object_get(figures, "first_touch_ns"));
    json_decref(figures);
    return ns > 0 ? ns : 0;
}

/* Where pages of a variable are touched: some of the places, each once. */
struct touched_at {
    struct touch_place places[TOUCH_PLACES_MAX];
    bool is_library[TOUCH_PLACES_MAX]; /* the line works for many callers, as those of memset */
    size_t n;
};

/* Adds the place of a scope. */
static void add_place(const struct model *model, uint32_t scope, struct touched_at *at)
{
    struct touch_place place;
    size_t k = 0;
    if (!next_place(model, &scope, &place))
        return;
    while (k < at->n && (at->places[k].function != place.function || at->places[k].line != place.line))
        k++;
    if (k == at->n && k < TOUCH_PLACES_MAX) {
        at->is_library[k] = is_for_caller(model, &model->scopes[scope], place.line);
        at->places[at->n++] = place;
    }
}

/* The page faults on a variable, or on memory without a name, and where they are. */
static double touched_at_of(const struct model *model, const struct variable *variable, size_t faults,
                            struct touched_at *at)
{
    double sum = 0;
    at->n = 0;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + faults];
            if (value <= 0)
                continue;
            sum += value;
            add_place(model, i, at);
        }
    }
    return sum;
}

/* How near a line is to places where pages are touched: in the same loop, at the same line, at such of a library. */
enum nearness { TOUCHED_ELSEWHERE = 0, TOUCHED_IN_LOOP, TOUCHED_THERE, TOUCHED_BY_LIBRARY };

static enum nearness nearness_of(const struct touched_at *at, const struct report_line *line)
{
    enum nearness nearest = TOUCHED_ELSEWHERE;
    for (size_t i = 0; i < at->n && nearest < TOUCHED_THERE; i++) {
        const struct touch_place *place = &at->places[i];
        bool is_in_loop = line->loop.first && place->line >= line->loop.first && place->line <= line->loop.last;
        if (place->function != line->function)
            continue;
        if (place->line == line->line)
            nearest = at->is_library[i] ? TOUCHED_BY_LIBRARY : TOUCHED_THERE;
        else if (is_in_loop)
            nearest = TOUCHED_IN_LOOP;
    }
    return nearest;
}

static bool is_near(const struct touched_at *at, const struct report_line *line, enum nearness near)
{
    enum nearness found = nearness_of(at, line);
    return found == near || (near == TOUCHED_THERE && found == TOUCHED_BY_LIBRARY);
}

/* Percent of all samples that a line of a row has, without those that are known to be of first touches. */
static double share_left(const struct report_row *row, const struct report_line *line)
{
    return row->value > 0 ? fmax(0, line->value / row->value * row->share - line->touched) : 0;
}

/* Whether first touches of a variable may lie in a row. An instruction that is run again stands in front of itself, and
 * an interrupt there finds the one before it, whose data are any: at its line, all rows may have some. In its loop, the
 * variable's own and those without data. In functions such as memset, where all lines touch pages, the one before has
 * the same data. The allocator touches pages when it writes how large a block is. */
static bool may_touch(const struct variable *variable, const struct report_row *row, enum nearness near)
{
    bool is_own = row->variable == variable && !row->part;
    if (near == TOUCHED_BY_LIBRARY)
        return is_own && report_aside(row) == REPORT_CAUSES && !row->fate;
    if (report_aside(row) == REPORT_CAUSES && !row->fate)
        return near == TOUCHED_THERE || is_own || strcmp(row->name, "<compute>") == 0;
    return report_aside(row) == REPORT_ALLOCATOR;
}

/* Takes first touches out of what the row was spent on. Waiting for memory comes first: they look like it. */
static void take_first_touches(struct cause_sum *sum, double share)
{
    double from_memory = fmin(sum->memory, share), left = share - from_memory;
    double from_unverified = fmin(sum->unverified, left), doubt = FIRST_TOUCH_DOUBT * share;
    double *const lows[] = {&sum->memory_low, &sum->memory_least};
    double *const highs[] = {&sum->memory_high, &sum->memory_most};
    sum->memory -= from_memory;
    sum->unverified -= from_unverified;
    sum->execution = fmax(0, sum->execution - (left - from_unverified));
    sum->resident = fmin(sum->resident, sum->execution);
    sum->first_touch += share;
    for (size_t i = 0; i < 2; i++) {
        *lows[i] = fmax(0, *lows[i] - share - doubt);
        *highs[i] = fmax(*highs[i] - share + doubt, fmax(sum->memory + sum->unverified, *lows[i]));
    }
}

/* Counts a part of what a row has left at lines that are as near as that as first touches; returns how much. */
static double take_part(const struct variable *variable, struct report_row *row, const struct touched_at *at,
                        enum nearness near, double part)
{
    double taken = 0;
    for (size_t i = 0; i < row->n_lines; i++) {
        struct report_line *line = &row->lines[i];
        double share = is_near(at, line, near) ? part * share_left(row, line) : 0;
        line->touched += share;
        taken += share;
    }
    if (taken <= 0)
        return 0;
    take_first_touches(&row->causes, taken);
    if (taken > row->touches_share) {
        row->touches = variable;
        row->touches_share = taken;
    }
    return taken;
}

/* What was found at other rows, in front of the instructions that touch, may be more by the doubt; then it is behind
 * them, at the variable's own row, and looks like waiting for memory there. */
static void doubt_memory(struct report *report, const struct variable *variable, double beside)
{
    for (size_t i = 0; beside > 0 && i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        if (row->variable != variable || row->part || report_aside(row) != REPORT_CAUSES || row->fate)
            continue;
        row->causes.memory_low = fmax(0, row->causes.memory_low - FIRST_TOUCH_DOUBT * beside);
        row->causes.memory_least = fmax(0, row->causes.memory_least - FIRST_TOUCH_DOUBT * beside);
    }
}

/* Pages of one variable: share percent of all samples. They are at lines that are so near to those that touch them, as
 * far as these have so many. Returns how many were found there. */
static double share_out(struct report *report, const struct variable *variable, const struct touched_at *at,
                        enum nearness near, double share)
{
    double all = 0, taken = 0;
    for (size_t i = 0; i < report->n_rows; i++)
        for (size_t k = 0; may_touch(variable, &report->rows[i], near) && k < report->rows[i].n_lines; k++)
            if (is_near(at, &report->rows[i].lines[k], near))
                all += share_left(&report->rows[i], &report->rows[i].lines[k]);
    double part = all > 0 ? fmin(share, all) / all : 0, beside = 0;
    for (size_t i = 0; part > 0 && i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        double here = may_touch(variable, row, near) ? take_part(variable, row, at, near, part) : 0;
        taken += here;
        beside += row->variable == variable ? 0 : here;
    }
    doubt_memory(report, variable, beside);
    return fmin(share, taken);
}

/* First touches of all variables, each of share [n_variables] percent of all samples. touched [n_variables]: 0,
 * receives how many were found. */
static void share_out_all(struct report *report, size_t faults, const double *share, double *touched)
{
    struct touched_at at;
    for (size_t i = 0; i < report->n_variables; i++) {
        if (share[i] <= 0)
            continue;
        (void)touched_at_of(report->model, &report->variables[i], faults, &at);
        touched[i] = share_out(report, &report->variables[i], &at, TOUCHED_BY_LIBRARY, share[i]);
    }
    for (size_t i = 0; i < report->n_variables; i++) {
        if (share[i] <= touched[i])
            continue;
        (void)touched_at_of(report->model, &report->variables[i], faults, &at);
        for (enum nearness near = TOUCHED_THERE; near > TOUCHED_ELSEWHERE && share[i] > touched[i]; near--)
            touched[i] += share_out(report, &report->variables[i], &at, near, share[i] - touched[i]);
    }
}

int first_touch_add_causes(struct report *report, struct error *err)
{
    const struct model *model = report->model;
    double ns = report->has_causes && report->sampled_s > 0 ? first_touch_ns(model) : 0;
    int64_t faults = model_metric(model, FAULTS_METRIC);
    if (ns <= 0 || faults < 0)
        return 0;
    double *touched = calloc(report->n_variables + 1, sizeof *touched);
    double *share = calloc(report->n_variables + 1, sizeof *share);
    for (size_t i = 0; touched && share && i < report->n_variables; i++) {
        struct touched_at at;
        double n = touched_at_of(model, &report->variables[i], (size_t)faults, &at);
        double found = 100 * n * ns / (report->sampled_s * 1e9);
        share[i] = found >= TOUCH_SHARE_LEAST ? found : 0;
    }
    if (touched && share)
        share_out_all(report, (size_t)faults, share, touched);
    for (size_t i = 0; touched && share && i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        bool is_own = row->variable && !row->part && !report_is_special(row);
        row->touched = is_own ? touched[row->variable - report->variables] : 0;
    }
    bool ok = touched && share;
    free(touched);
    free(share);
    return ok ? 0 : error_memory(err);
}

double first_touch_uncounted(const struct report *report)
{
    const struct model *model = report->model;
    bool is_sampled = model->n_touches || model_metric(model, FAULTS_METRIC) >= 0;
    double ns = report->has_causes && report->sampled_s > 0 && !is_sampled ? first_touch_ns(model) : 0;
    return ns > 0 ? fmin(100, 100 * (double)model->n_page_faults * ns / (report->sampled_s * 1e9)) : 0;
}

/* --- what small pages take of waiting for memory --- */

#define WALK_MARGIN 1.75 /* of what was measured: programs on two virtual machines saved up to so much more */
#define WALK_LEAST 0.1   /* of a load: less is not told from disturbances */
#define WALK_MOST 0.75   /* translations in four steps, one of which is the load's own */

/* The part of a load that huge pages save, by one row of the self-test: [KiB, small, huge, the same of loads apart]. */
static double saved_at(const json_t *walk, bool is_chained)
{
    double saved = 0;
    for (size_t i = 1; i < (is_chained ? 2 : 4); i += 2) {
        double small = json_number_value(json_array_get(walk, i)),
               huge = json_number_value(json_array_get(walk, i + 1));
        saved = small > 0 ? fmax(saved, 1 - huge / small) : saved;
    }
    return saved;
}

/* The same for data of so many KiB: between two rows, or as it goes on behind the last ones. NAN: not measured. */
static double saved_by_size(const json_t *walks, double kib, bool is_chained)
{
    size_t n = json_array_size(walks), k = 1;
    if (n == 0)
        return (double)NAN;
    while (k + 1 < n && json_number_value(json_array_get(json_array_get(walks, k), 0)) < kib)
        k++;
    const json_t *low = json_array_get(walks, n > 1 ? k - 1 : 0), *high = json_array_get(walks, n > 1 ? k : 0);
    double from = json_number_value(json_array_get(low, 0)), to = json_number_value(json_array_get(high, 0));
    double before = saved_at(low, is_chained), behind = saved_at(high, is_chained);
    double steps = kib > from && to > from ? log2(kib / from) / log2(to / from) : 0;
    double saved = before + (steps > 1 ? fmax(0, behind - before) : behind - before) * steps;
    return steps > 1 ? fmax(saved, behind) : saved;
}

double first_touch_small_pages(const struct model *model, uint64_t n_bytes, bool is_chained)
{
    json_t *figures = model->skid ? json_loads(model->skid, 0, NULL) : NULL;
    const json_t *walks = json_object_get(json_object_get(figures, "caches"), "walks");
    double saved = saved_by_size(walks, (double)n_bytes / 1024, is_chained);
    json_decref(figures);
    return isnan(saved) ? WALK_MOST : fmin(WALK_MOST, fmax(WALK_LEAST, WALK_MARGIN * saved));
}
