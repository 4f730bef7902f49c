/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about places: on which memory nodes pages are and threads run, and which cache lines several threads use. See
 * advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <string.h>

#include "export/vars-table.h"

#define REMOTE_PERCENT 25.0 /* of its latency, in accesses to other NUMA nodes */
#define NODE_PART 0.2       /* of its samples: a node from which it is used */
#define NODE_MOST 0.9       /* ... and one from which alone it is */
#define AWAY_PART 0.25      /* of its samples, on other nodes than its pages: less is no wrong place */
#define SPAN_ALL 0.5        /* of what is used: a thread that uses so much has no part of its own */
#define EVEN_PART 0.6       /* of the mean: a node that uses as much as the others */
#define HOMES_SAMPLES 50    /* with known homes: fewer say nothing */
#define PAGES_LEAST 16      /* that were counted: the same */
#define MOVED_PART 0.1      /* of a thread's samples, on a second node: it has moved */
#define NAMED_PERCENT 0.5   /* below it a node is not named */
#define LINE_BYTES 64
#define PAGE_BYTES 4096 /* a part of a variable that is smaller has no page of its own */

/* --- what the hardware says --- */

/* The value of a derived metric, NAN when it is not known. */
static double hardware_value(const struct report_row *row, const char *name)
{
    for (size_t i = 0; row->derived && metrics_row(i); i++)
        if (strcmp(metrics_row(i)->name, name) == 0)
            return row->derived[i];
    return (double)NAN;
}

void advise_on_remote_accesses(struct advices *advices, const struct report_row *row)
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
    double gain = advice_waited(advices, row) * remote / 100;
    if (n_users < 2)
        (void)advice_add(advices, row, "first-touch", gain,
                         "let the threads that use it write it first, so that its pages lie on their node", &evidence);
    else
        (void)advice_add(advices, row, "interleave", gain,
                         "let each thread write first the part that it uses, or interleave the pages over the nodes",
                         &evidence);
}

/* --- where pages and threads are --- */

/* How it is known where pages are: from samples, from the count of a large variable's pages, or, when there is
 * neither, only where they were touched first. */
enum known_from { FROM_SAMPLES = 0, FROM_PAGES, FROM_TOUCHES };

/* Where the pages of a row are, and who uses them. */
struct placement {
    enum known_from from;
    const struct numa_row *homes; /* FROM_SAMPLES, else NULL */
    uint32_t n_nodes;
    uint32_t home, user; /* nodes with most of the pages, and of the use */
    uint32_t toucher;    /* node of most of the first touches; PLACE_UNKNOWN */
    uint32_t n_users;    /* nodes with a good part of the samples */
    double away;         /* part of the samples on other nodes than their pages */
    double at_home;      /* part of the pages, by samples or faults, on home */
    double most;         /* part of the samples on user */
    bool is_even;        /* all nodes use it, about as much each */
};

static double sum_of(const uint64_t *counts, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)counts[i];
    return sum;
}

static uint32_t most_of(const uint64_t *counts, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < n; i++)
        most = counts[i] > counts[most] ? i : most;
    return most;
}

/* Fills in who uses it: samples by node [n_nodes]. False when nobody does. */
static bool set_users(struct placement *placement, const uint64_t *used)
{
    uint32_t n = placement->n_nodes;
    double all = sum_of(used, n);
    if (all <= 0)
        return false;
    placement->user = most_of(used, n);
    placement->most = (double)used[placement->user] / all;
    placement->is_even = true;
    for (uint32_t i = 0; i < n; i++) {
        double part = (double)used[i] / all;
        placement->n_users += part >= NODE_PART;
        placement->is_even = placement->is_even && part >= EVEN_PART / (double)n;
    }
    return true;
}

static const struct numa_row *homes_of(const struct advices *advices, const struct report_row *row)
{
    for (size_t i = 0; advices->has_numa && !row->part && i < advices->numa.n_rows; i++)
        if (advice_is_same(advices->numa.rows[i].row, row))
            return &advices->numa.rows[i];
    return NULL;
}

/* From the homes of its sampled pages. */
static bool place_by_homes(const struct advices *advices, const struct report_row *row, struct placement *placement)
{
    const struct numa_row *homes = homes_of(advices, row);
    uint64_t at[HOMES_MAX] = {0}, on[HOMES_MAX] = {0};
    uint64_t known = homes ? homes->sum.n_local + homes->sum.n_remote : 0;
    if (known < HOMES_SAMPLES || advices->numa.n_nodes < 2)
        return false;
    uint32_t n = placement->n_nodes = advices->numa.n_nodes;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = numa_row_at(&advices->numa, homes, i);
        on[i] = numa_row_on(&advices->numa, homes, i);
    }
    placement->homes = homes;
    placement->home = most_of(at, n);
    placement->at_home = (double)at[placement->home] / (double)known;
    placement->away = (double)homes->sum.n_remote / (double)known;
    return set_users(placement, on);
}

/* Its pages by node, as they were counted; false when that were too few. */
static bool count_pages(const struct advices *advices, const struct report_row *row, uint64_t on[HOMES_MAX])
{
    const struct model *model = advices->job->model;
    memset(on, 0, HOMES_MAX * sizeof *on);
    for (size_t i = 0; i < model->n_pages; i++) {
        const struct variable_pages *pages = &model->pages[i];
        if (&advices->report->variables[advices->report->variable_of[pages->variable]] != row->variable)
            continue;
        for (uint32_t node = 0; node < HOMES_MAX; node++)
            on[node] += pages->n_on[node];
    }
    return sum_of(on, HOMES_MAX) >= PAGES_LEAST;
}

/* From its pages by node, nearly all of them on one: of others it is not known who uses which. */
static bool place_at(const struct report_row *row, const uint64_t *pages, struct placement *placement)
{
    uint32_t n = placement->n_nodes;
    placement->home = most_of(pages, n);
    placement->at_home = (double)pages[placement->home] / fmax(1, sum_of(pages, n));
    if (placement->at_home < NODE_MOST || !set_users(placement, row->places))
        return false;
    placement->away = 1 - (double)row->places[placement->home] / sum_of(row->places, n);
    return true;
}

/* From the count of its pages, which sees policies; without one, from the nodes of the threads that touched it first,
 * which does not. */
static bool place_without_samples(const struct advices *advices, const struct report_row *row,
                                  struct placement *placement)
{
    uint32_t n = placement->n_nodes = advices->job->model->n_numa_nodes;
    const uint64_t *faults = first_touch_nodes(advices->touches, row, false);
    uint64_t on[HOMES_MAX];
    if (n < 2 || n > HOMES_MAX || !row->places)
        return false;
    bool is_counted = !row->part && count_pages(advices, row, on);
    placement->from = is_counted ? FROM_PAGES : FROM_TOUCHES;
    if (!is_counted && (!faults || !first_touch_of(advices->touches, row)))
        return false;
    return place_at(row, is_counted ? on : faults, placement);
}

static bool placement_of(const struct advices *advices, const struct report_row *row, struct placement *placement)
{
    *placement = (struct placement){.toucher = PLACE_UNKNOWN};
    if (!place_by_homes(advices, row, placement)) {
        *placement = (struct placement){.toucher = PLACE_UNKNOWN};
        if (!place_without_samples(advices, row, placement))
            return false;
    }
    const uint64_t *faults = first_touch_nodes(advices->touches, row, false);
    uint32_t n = advices->job->model->n_numa_nodes;
    if (faults && first_touch_of(advices->touches, row) && sum_of(faults, n) > 0)
        placement->toucher = most_of(faults, n);
    return true;
}

/* --- who uses which part --- */

enum parts { PARTS_UNKNOWN = 0, PARTS_OWN, PARTS_ALL, PARTS_ALL_READ };

static const struct pattern_row *pattern_of(const struct advices *advices, const struct report_row *row)
{
    for (size_t i = 0; advices->has_patterns && !row->part && i < advices->patterns.n_rows; i++)
        if (advice_is_same(advices->patterns.rows[i].row, row))
            return &advices->patterns.rows[i];
    return NULL;
}

/* Whether each thread has parts of its own that are whole pages, or uses all of it. */
static enum parts parts_of(const struct advices *advices, const struct report_row *row)
{
    const struct pattern_row *pattern = pattern_of(advices, row);
    enum use_class class = pattern ? pattern->class : USE_TOO_FEW;
    double span = row->variable && advices->touches->variables
                      ? advices->touches->variables[row->variable - advices->report->variables].span
                      : (double)NAN;
    if (class == USE_SINGLE || class == USE_BLOCKED)
        return PARTS_OWN;
    if (class == USE_INTERLEAVED) {
        uint64_t bin_bytes = UINT64_C(1) << advices->patterns.threads[pattern->first].sum.shift;
        bool by_place = pattern->by_place >= 0.5 && bin_bytes >= PAGE_BYTES;
        return by_place || pattern->chunk_bytes >= PAGE_BYTES ? PARTS_OWN : PARTS_ALL;
    }
    if (!isnan(span) && span < SPAN_ALL)
        return PARTS_OWN;
    if (class == USE_READ_ONLY || ((class == USE_STREAMING || class == USE_RANDOM) && !pattern->n_stores))
        return PARTS_ALL_READ;
    return class != USE_TOO_FEW || span >= SPAN_ALL ? PARTS_ALL : PARTS_UNKNOWN;
}

uint32_t advice_node_of_cpu(const struct model *model, uint32_t thread, uint32_t cpu)
{
    const char *host_id = model->processes[model->threads[thread].process].host_id;
    for (size_t m = 0; m < model->n_machines; m++) {
        const struct machine *machine = &model->machines[m];
        if (strcmp(machine->host_id, host_id) != 0)
            continue;
        for (size_t i = 0; i < machine->n_cpus; i++)
            if (machine->cpus[i].cpu == cpu)
                return machine->cpus[i].node;
    }
    return PLACE_UNKNOWN;
}

/* The part of the row's samples of threads that ran on a second node for a good part of theirs. */
static double moved_part(const struct advices *advices, const struct placement *placement, const struct report_row *row)
{
    const struct model *model = advices->job->model;
    double all = 0, moved = 0;
    size_t n = model->n_home_counts, next;
    for (size_t i = 0; placement->homes && i < n; i = next) {
        const struct home_count *first = &model->home_counts[i];
        uint64_t on[HOMES_MAX] = {0};
        bool is_here = first->variable < advices->report->model->n_variables &&
                       &advices->report->variables[advices->report->variable_of[first->variable]] == row->variable;
        for (next = i; next < n && model->home_counts[next].variable == first->variable &&
                       model->home_counts[next].thread == first->thread;
             next++) {
            const struct home_count *count = &model->home_counts[next];
            uint32_t node = is_here && count->metric == advices->numa.metric
                                ? advice_node_of_cpu(model, count->thread, count->cpu)
                                : PLACE_UNKNOWN;
            if (node < HOMES_MAX)
                on[node] += count->n_samples;
        }
        double sum = sum_of(on, HOMES_MAX);
        all += sum;
        moved += sum - (double)on[most_of(on, HOMES_MAX)] >= MOVED_PART * sum ? sum : 0;
    }
    return all > 0 ? moved / all : 0;
}

/* --- what follows --- */

static void put_nodes(const struct advices *advices, const struct numa_row *homes, struct buf *text)
{
    double known = (double)(homes->sum.n_local + homes->sum.n_remote);
    double all = known + (double)homes->sum.n_none;
    unsigned n_put = 0;
    buf_printf(text, "its sampled pages live on");
    for (uint32_t i = 0; i < advices->numa.n_nodes; i++) {
        double part = percent_of((double)numa_row_at(&advices->numa, homes, i), known);
        if (part >= NAMED_PERCENT)
            buf_printf(text, "%s node %u: %.0f %%", n_put++ ? "," : "", i, part);
    }
    buf_printf(text, ", threads ran on");
    n_put = 0;
    for (uint32_t i = 0; i < advices->numa.n_nodes; i++) {
        double part = percent_of((double)numa_row_on(&advices->numa, homes, i), all);
        if (part >= NAMED_PERCENT)
            buf_printf(text, "%s node %u: %.0f %%", n_put++ ? "," : "", i, part);
    }
    buf_printf(text, "; ");
}

static void put_evidence(const struct advices *advices, const struct placement *placement, const struct report_row *row,
                         double gain, struct buf *evidence)
{
    const struct touched *touched = first_touch_of(advices->touches, row);
    if (placement->homes)
        put_nodes(advices, placement->homes, evidence);
    else if (placement->from == FROM_PAGES)
        buf_printf(evidence, "%.0f %% of its pages, counted, live on node %u; ", 100 * placement->at_home,
                   placement->home);
    else
        buf_printf(evidence, "too few samples say where its pages live: they are taken to be where they were touched "
                             "first, which a policy such as interleaving would change; ");
    if (touched) {
        (void)first_touch_put_sentence(advices->touches, row, evidence);
        buf_printf(evidence, "; ");
    }
    buf_printf(evidence,
               "%.0f %% of its samples are on other nodes than its pages, so that better places gain at most "
               "%.1f %% of the time",
               100 * placement->away, gain);
    if (touched && !isnan(touched->span))
        buf_printf(evidence, "; a thread uses %.0f %% of what is used of it", 100 * touched->span);
    if (placement->homes && placement->homes->pages.n_moved)
        buf_printf(evidence, "; %llu samples are on pages that had moved",
                   (unsigned long long)placement->homes->pages.n_moved);
}

/* A rule and its words. */
struct finding {
    const char *rule, *words;
};

/* Nearly all of it is used from one node, and pages are on another one. */
static struct finding find_for_one_node(const struct placement *placement)
{
    if (placement->from != FROM_TOUCHES && placement->toucher == placement->user)
        return (struct finding){"bind", "bind its pages to the node of the threads that use it (numactl, mbind): they "
                                        "were touched first there, and a policy or a full node put them elsewhere"};
    return (struct finding){"first-touch",
                            "let the threads that use it write it first, so that its pages lie on their node"};
}

/* Several nodes use it. rule NULL: its pages are where they should be. */
static struct finding find_for_several(const struct placement *placement, enum parts parts)
{
    static const struct finding none,
        own = {"parallel-first-touch", "let each thread write first the part that it uses"},
        copies = {"interleave", "interleave its pages over the nodes, or keep a copy on each: the "
                                "threads of all nodes read all of it"},
        spread = {"interleave", "interleave its pages over the nodes: the threads of "
                                "all nodes use all of it"},
        either = {"parallel-first-touch", "let each thread write first the part that it uses; if all threads "
                                          "use all of it, interleave its pages over the nodes"},
        majority = {"first-touch", "let a thread of the node that uses it most write it "
                                   "first, so that its pages lie there"},
        stay = {"not-worth-it", "leave its pages where they are, on the node that uses "
                                "them most: all threads use all of it"};
    bool is_concentrated = placement->at_home >= NODE_MOST;
    if (parts == PARTS_OWN)
        return own;
    if (parts == PARTS_UNKNOWN)
        return is_concentrated ? either : none;
    if (!is_concentrated)
        return none;
    if (!placement->is_even)
        return placement->home == placement->user ? stay : majority;
    return parts == PARTS_ALL_READ ? copies : spread;
}

bool advise_on_places(struct advices *advices, const struct report_row *row)
{
    struct placement placement;
    struct finding finding;
    struct buf evidence = {0};
    if (!placement_of(advices, row, &placement) || placement.away < AWAY_PART)
        return false;
    double gain = fmin(advice_waited(advices, row), placement.away * row->share);
    if (moved_part(advices, &placement, row) > 0.5)
        finding =
            (struct finding){"bind-threads", "keep its threads on their nodes (OMP_PROC_BIND=true, taskset): they "
                                             "moved away from the pages that they use"};
    else if (placement.most >= NODE_MOST)
        finding = find_for_one_node(&placement);
    else
        finding = find_for_several(&placement, parts_of(advices, row));
    if (!finding.rule)
        return true;
    if (gain < ADVICE_WORTH_PERCENT)
        finding = (struct finding){"not-worth-it", "leave its pages where they are: to move them is not worth it"};
    put_evidence(advices, &placement, row, gain, &evidence);
    (void)advice_add(advices, row, finding.rule, gain, finding.words, &evidence);
    return true;
}

/* --- cache lines --- */

/* The hardware saw loads of lines that another core had just written. */
static bool advise_on_modified_lines(struct advices *advices, const struct report_row *row)
{
    double loads, modified = report_is_seen_modified(advices->report, row, &loads);
    struct buf evidence = {0};
    if (!(modified > 0))
        return false;
    buf_printf(&evidence,
               "%.0f %% of its loads (%.0f of %.0f samples) found their line modified in another core's cache",
               100 * modified / loads, modified, loads);
    (void)advice_add(advices, row, "shared-lines", (double)NAN,
                     "give what each thread writes cache lines of its own, or write it less often where others read it",
                     &evidence);
    return true;
}

/* What is said of lines that threads share in one way. The same bytes may be a counter or a lock: both are changed by
 * atomic instructions. */
struct line_words {
    const char *rule, *use, *words;
};
static const struct line_words line_words[LINE_SHARINGS + 1] = {
    [SHARING_FALSE] = {"pad", "different bytes, some writing",
                       "give what each thread writes cache lines of its own: pad it to 64 bytes, or sum up in a local "
                       "variable"},
    [SHARING_TRUE] =
        {"shared-writes", "the same bytes, several writing",
         "if it is a counter or a sum, let each thread write a copy of its own; if it is a lock, take it less "
         "often, or use several"},
    [SHARING_BOTH] =
        {"shared-writes", "the same bytes and different ones, some writing",
         "give counters and sums to each thread, on cache lines of its own; pad locks to 64 bytes, and take "
         "them less often"},
    [SHARING_SEEN] = {"shared-writes", "the same bytes, one of them writing",
                      "one thread writes what others read: let it write less often, or let them read copies of their "
                      "own"}};

/* Threads write, and use different bytes of the same lines, or the same ones. */
static bool advise_on_candidates(struct advices *advices, const struct report_row *row, enum line_sharing sharing)
{
    const struct pattern_row *pattern = pattern_of(advices, row);
    const struct line_words *said = &line_words[sharing];
    struct shared_part part;
    struct buf evidence = {0};
    if (!pattern || !shared_lines_part(&advices->patterns, pattern, sharing, &part))
        return false;
    double gain = fmin(row->share * fmin(part.percent, 100) / 100, advice_waited(advices, row));
    buf_printf(
        &evidence,
        "%.0f %% of its samples are on %zu cache line%s of %d bytes, which up to %zu threads use at %s (hpcquery "
        "sharing); ",
        part.percent, part.n_lines, part.n_lines == 1 ? "" : "s", LINE_BYTES, part.n_threads, said->use);
    if (part.n_verified == part.n_lines)
        buf_printf(&evidence, "watchpoints saw them do so at the same time; ");
    else
        buf_printf(&evidence, "whether at the same time is not known%s (hpcrun --verify-sharing would tell); ",
                   part.n_verified ? " of all" : "");
    buf_printf(&evidence, "without that it gains at most %.1f %% of the time", gain);
    struct advice *made = advice_add(advices, row, said->rule, gain, said->words, &evidence);
    if (made)
        made->is_verified = part.n_verified == part.n_lines;
    return true;
}

bool advise_on_lines(struct advices *advices, const struct report_row *row)
{
    return advise_on_modified_lines(advices, row) || advise_on_candidates(advices, row, SHARING_FALSE) ||
           advise_on_candidates(advices, row, SHARING_TRUE) || advise_on_candidates(advices, row, SHARING_BOTH) ||
           advise_on_candidates(advices, row, SHARING_SEEN);
}
