/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of samples of a process, thread by thread: what the arena holds of it becomes a log in the order of time, and
 * that a trace. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "collect/profile.h"
#include "fmt/file.h"
#include "fmt/trace.h"

#define TRACE_HEAD_BYTES 32u
#define LOG_HEAD_BYTES 80u
#define ACCESS_BYTES 16u
#define RECORD_BYTES 24u
#define PIECE_RECORDS 32768u

/* --- finding the records --- */

static int compare_words(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* A copy of a record that may be written again meanwhile; false when it is empty, or was. */
static bool copy_record(const struct arena_trace *record, struct arena_trace *copy)
{
    uint64_t stamp = __atomic_load_n((const uint64_t *)&record->stamp, __ATOMIC_ACQUIRE);
    *copy = (struct arena_trace){
        .stamp = stamp, .hit_and_latency = view_count(&record->hit_and_latency), .place = view_count(&record->place)};
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return stamp && __atomic_load_n((const uint64_t *)&record->stamp, __ATOMIC_RELAXED) == stamp;
}

/* The thread of a record of the log: the one that owns its hit. */
static uint32_t thread_of(const struct view *view, const struct arena_trace *record)
{
    return view_owner(view, (uint32_t)record->hit_and_latency, ARENA_HITS, sizeof(struct arena_hit));
}

/* Leaves out what is below the level that the log has by now. */
static void drop_below_level(struct collected_process *process)
{
    unsigned level = arena_trace_min_level(process->view->header);
    size_t n = 0;
    for (size_t i = 0; i < process->n_logged; i++) {
        const struct arena_trace *record = arena_at(process->view->base, (uint32_t)process->logged[i]);
        if (arena_trace_stamp_level(view_count(&record->stamp)) >= level)
            process->logged[n++] = process->logged[i];
    }
    process->n_logged = n;
}

bool process_list_logged(struct collected_process *process)
{
    const struct view *view = process->view;
    struct record_walk walk = {.kind = ARENA_TRACE, .record_bytes = sizeof(struct arena_trace)};
    const struct arena_trace *record;
    while ((record = view_next(view, &walk))) {
        struct arena_trace copy;
        uint32_t thread = copy_record(record, &copy) ? thread_of(view, &copy) : 0;
        if (!thread)
            continue;
        if (!vec_reserve(&process->logged, &process->cap_logged, process->n_logged + 1, sizeof *process->logged))
            return false;
        process->logged[process->n_logged++] = (uint64_t)thread << 32 | walk.ref;
    }
    drop_below_level(process);
    if (process->n_logged)
        qsort(process->logged, process->n_logged, sizeof *process->logged, compare_words);
    return true;
}

/* --- one thread --- */

#define NO_ACCESS UINT32_MAX

/* A hit of the thread, and what it became. */
struct logged_hit {
    uint32_t ref, node, access;
};

struct logged_hits {
    struct logged_hit *all; /* [n] by ref */
    size_t n, capacity;
};

static bool add_hits(const struct view *view, uint32_t node_ref, uint32_t first, struct logged_hits *hits)
{
    struct arena_hit hit;
    for (uint32_t ref = first, newer = 0; view_hit(view, ref, newer, &hit); newer = ref, ref = hit.next) {
        if (!vec_reserve(&hits->all, &hits->capacity, hits->n + 1, sizeof *hits->all))
            return false;
        hits->all[hits->n++] = (struct logged_hit){ref, node_ref, NO_ACCESS};
    }
    return true;
}

static int compare_hits(const void *a, const void *b)
{
    const struct logged_hit *x = a, *y = b;
    return (x->ref > y->ref) - (x->ref < y->ref);
}

/* All hits of the thread with their nodes. */
static bool list_hits(const struct collected_thread *thread, struct logged_hits *hits)
{
    struct record_walk walk = {.kind = ARENA_NODES, .thread = thread->ref, .record_bytes = sizeof(struct arena_node)};
    const struct arena_node *node;
    while ((node = view_next(thread->process->view, &walk)))
        if (!add_hits(thread->process->view, walk.ref, __atomic_load_n(&node->hits, __ATOMIC_ACQUIRE), hits))
            return false;
    if (hits->n)
        qsort(hits->all, hits->n, sizeof *hits->all, compare_hits);
    return true;
}

static bool list_sources(const struct collected_process *process, struct events_file *log)
{
    log->sources = calloc(process->view->n_events + 1, sizeof *log->sources);
    if (!log->sources)
        return false;
    for (; log->n_sources < process->view->n_events; log->n_sources++) {
        const struct arena_event *event = &process->view->header->events[log->n_sources];
        int column = process->column_of_event[log->n_sources];
        struct events_source *source = &log->sources[log->n_sources];
        source->metric = column < 0 ? EVENTS_NO_METRIC : (uint32_t)column;
        source->name = strndup(event->name, sizeof event->name);
        if (!source->name)
            return false;
    }
    return true;
}

/* Makes the access of a hit; false when out of memory. What is damaged gets none. */
static bool make_access(struct collected_thread *thread, struct logged_hit *of, struct events_file *log)
{
    struct arena_hit hit;
    const struct view *view = thread->process->view;
    if (!view_hit(view, of->ref, 0, &hit) || hit.event >= view->n_events || hit.class >= HIT_CLASSES ||
        !path_of(view, of->node, ARENA_NODES, &thread->path))
        return true;
    uint32_t base = thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT, variable = TREE_NONE;
    uint32_t node = path_insert(thread, &thread->path, base, HPCRUN_NODE_LEAF);
    if (view->header->events[hit.event].flags & EVENT_VARIABLE) {
        const struct declaration *declaration = thread_declare(thread, hit.var, (enum hit_class)hit.class);
        if (declaration && declaration->variable != TREE_NONE)
            variable = thread->variables[declaration->variable].row.node;
        else if (declaration)
            variable = declaration->base;
    }
    if (node == TREE_NONE)
        return false;
    thread->tree.nodes[node].is_retained = true;
    of->access = (uint32_t)log->n_accesses;
    log->accesses[log->n_accesses++] = (struct events_access){.node = node,
                                                              .variable = variable,
                                                              .metrics = hit.metrics,
                                                              .source = hit.event,
                                                              .class = hit.class,
                                                              .flags = hit.flags & HIT_FLAG_INEXACT};
    return true;
}

/* Adds a record of the arena; false when out of memory. */
static bool add_record(struct collected_thread *thread, const struct arena_trace *from, const struct logged_hits *hits,
                       struct events_file *log)
{
    const struct arena_header *header = thread->process->view->header;
    const struct logged_hit key = {.ref = (uint32_t)from->hit_and_latency};
    struct logged_hit *hit = hits->n ? bsearch(&key, hits->all, hits->n, sizeof key, compare_hits) : NULL;
    if (!hit || (hit->access == NO_ACCESS && !make_access(thread, hit, log)))
        return !hit;
    if (hit->access == NO_ACCESS)
        return true;
    uint64_t t_ns = arena_trace_time(from->stamp), offset = from->place & ARENA_TRACE_NO_OFFSET;
    log->records[log->n_records++] = (struct events_record){.t_ns = header->start_mono_ns + t_ns,
                                                            .access = hit->access,
                                                            .lat_cycles = (uint32_t)(from->hit_and_latency >> 32),
                                                            .offset = offset,
                                                            .cpu = (uint16_t)(from->place >> 48)};
    uint64_t wall_ns = header->start_ns + t_ns;
    if (!thread->trace_min_ns || wall_ns < thread->trace_min_ns)
        thread->trace_min_ns = wall_ns;
    if (wall_ns > thread->trace_max_ns)
        thread->trace_max_ns = wall_ns;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const struct events_record *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

/* The records that process->logged has of the thread. */
static bool take_records(struct collected_thread *thread, const struct logged_hits *hits, struct events_file *log)
{
    const struct collected_process *process = thread->process;
    static const struct search_key word = {sizeof(uint64_t), 0, sizeof(uint64_t)};
    size_t first = search_below(process->logged, process->n_logged, word, (uint64_t)thread->ref << 32), end = first;
    while (end < process->n_logged && process->logged[end] >> 32 == thread->ref)
        end++;
    log->records = calloc(end - first + 1, sizeof *log->records);
    log->accesses = calloc(hits->n + 1, sizeof *log->accesses);
    if (!log->records || !log->accesses)
        return false;
    for (size_t i = first; i < end; i++) {
        struct arena_trace copy;
        const struct arena_trace *record = arena_at(process->view->base, (uint32_t)process->logged[i]);
        if (copy_record(record, &copy) && thread_of(process->view, &copy) == thread->ref &&
            !add_record(thread, &copy, hits, log))
            return false;
    }
    if (log->n_records)
        qsort(log->records, log->n_records, sizeof *log->records, compare_times);
    return true;
}

bool thread_build_log(struct collected_thread *thread, struct events_file *log)
{
    const struct collected_process *process = thread->process;
    const struct arena_header *header = process->view->header;
    struct logged_hits hits = {0};
    memcpy(log->version, EVENTS_VERSION, sizeof log->version);
    log->wall_ns = (int64_t)(header->start_ns - header->start_mono_ns);
    log->wall_at_end_ns = process->context->wall_ns ? process->context->wall_ns : log->wall_ns;
    log->stride = (uint64_t)1 << arena_trace_min_level(header);
    log->n_samples = view_count(&thread->record->n_traced);
    log->n_lost = view_count(&thread->record->n_untraced);
    bool is_done = list_sources(process, log) && list_hits(thread, &hits) && take_records(thread, &hits, log);
    free(hits.all);
    if (log->n_samples < log->n_records + log->n_lost) /* of a live process, whose counts are older than its records */
        log->n_samples = log->n_records + log->n_lost;
    return is_done;
}

/* --- its files --- */

static unsigned trace_record_bytes(const struct collected_thread *thread)
{
    return thread->process->is_data_centric ? 16 : 12;
}

uint64_t thread_log_bytes(const struct collected_thread *thread, const struct events_file *log)
{
    uint64_t n_bytes = LOG_HEAD_BYTES + TRACE_HEAD_BYTES + log->n_accesses * ACCESS_BYTES;
    for (size_t i = 0; i < log->n_sources; i++)
        n_bytes += 8 + strlen(log->sources[i].name);
    return n_bytes + log->n_records * (RECORD_BYTES + trace_record_bytes(thread));
}

void thread_bound_log(struct collected_thread *thread, struct events_file *log, uint64_t max_bytes)
{
    while (log->n_records && log->stride < (uint64_t)1 << 62 && thread_log_bytes(thread, log) > max_bytes) {
        size_t n = 0;
        for (size_t i = 0; i < log->n_records; i += 2)
            log->records[n++] = log->records[i];
        thread->process->left_out.n_trace_records += log->n_records - n;
        log->stride *= 2;
        log->n_records = n > 1 ? n : 0;
        thread->trace_max_ns = n > 1 ? events_wall_ns(log, &log->records[n - 1]) : 0;
        thread->trace_min_ns = n > 1 ? thread->trace_min_ns : 0;
    }
}

static int write_log(const struct events_file *log, const char *path, struct error *err)
{
    struct buf bytes = {0};
    int code = events_write(log, &bytes, err);
    if (!code)
        code = file_replace(path, bytes.data, bytes.len_bytes, err);
    buf_fini(&bytes);
    return code;
}

/* The trace of HPCToolkit: its records name metrics where the profile is data-centric. */
static int write_trace(const struct collected_thread *thread, const struct events_file *log, const char *path,
                       struct error *err)
{
    struct buf bytes = {0};
    struct trace_file trace = {.version = "01.01",
                               .flags = thread->process->is_data_centric ? TRACE_FLAG_DATACENTRIC : 0,
                               .records = calloc(log->n_records + 1, sizeof *trace.records)};
    if (!trace.records)
        return error_set(err, ERR_MEMORY, "Out of memory for the trace of a thread.");
    for (; trace.n_records < log->n_records; trace.n_records++) {
        const struct events_record *record = &log->records[trace.n_records];
        const struct events_access *access = &log->accesses[record->access];
        uint32_t metric = log->sources[access->source].metric;
        trace.records[trace.n_records] =
            (struct trace_record){.time = events_wall_ns(log, record),
                                  .node = access->node,
                                  .metric = metric == EVENTS_NO_METRIC ? TRACE_NO_METRIC : metric};
    }
    int code = trace_write(&trace, &bytes, err);
    if (!code)
        code = file_replace(path, bytes.data, bytes.len_bytes, err);
    buf_fini(&bytes);
    trace_fini(&trace);
    return code;
}

int thread_write_log(const struct collected_thread *thread, struct events_file *log, const char *log_path,
                     const char *trace_path, struct error *err)
{
    for (size_t i = 0; i < log->n_accesses; i++) {
        struct events_access *access = &log->accesses[i];
        access->node = (uint32_t)thread_node_id(thread, access->node);
        access->variable = access->variable == TREE_NONE ? 0 : (uint32_t)thread_node_id(thread, access->variable);
    }
    int code = write_log(log, log_path, err);
    return code || !log->n_records ? code : write_trace(thread, log, trace_path, err);
}
