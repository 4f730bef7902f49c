/* SPDX-License-Identifier: BSD-3-Clause */
/* From an arena to files: what the threads of a process share (the metrics that were recorded at all, the threads in
 * order, which allocation paths stand for mappings), the files of each thread, and the whole process. Ordinary code. */
#include "collect/collect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "collect/profile.h"
#include "fmt/file.h"

/* Sums over all hits of the process. */
struct sums {
    uint64_t counts[ARENA_EVENTS_MAX], weights[ARENA_EVENTS_MAX];
    uint32_t metric_events[MEM_METRICS], latency_events, remote_latency_events; /* one bit for each event */
};

static int compare_refs(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static bool add_mmap_node(struct collected_process *process, size_t *capacity, uint32_t ref)
{
    if (process->n_mmap_nodes && process->mmap_nodes[process->n_mmap_nodes - 1] == ref)
        return true;
    if (!vec_reserve(&process->mmap_nodes, capacity, process->n_mmap_nodes + 1, sizeof ref))
        return false;
    process->mmap_nodes[process->n_mmap_nodes++] = ref;
    return true;
}

/* Notes which events reported which metrics of their accesses. */
static void sum_metrics(const struct collected_process *process, const struct arena_hit *hit, struct sums *sums)
{
    uint32_t bit = 1u << hit->event, metrics = hit->metrics;
    if (!(process->view->header->events[hit->event].flags & EVENT_DATA_SRC))
        return;
    for (int i = 0; i < MEM_METRICS; i++)
        sums->metric_events[i] |= metrics & 1u << i ? bit : 0;
    if (view_count(&hit->latency)) {
        sums->latency_events |= bit;
        sums->remote_latency_events |= metrics & MEM_REMOTE_METRICS ? bit : 0;
    }
}

static bool sum_hits(struct collected_process *process, struct sums *sums)
{
    size_t cap_mmap = 0;
    struct record_walk walk = {.kind = ARENA_HITS, .record_bytes = sizeof(struct arena_hit)};
    const struct arena_hit *hit;
    while ((hit = view_next(process->view, &walk))) {
        uint64_t count = view_count(&hit->count);
        uint64_t weight = view_count(&hit->weight);
        if (hit->event < process->view->n_events) {
            sums->counts[hit->event] += count;
            sums->weights[hit->event] += weight;
            if (count)
                sum_metrics(process, hit, sums);
        }
        if (var_key_kind(hit->var) == VAR_MMAP && !add_mmap_node(process, &cap_mmap, var_key_b(hit->var)))
            return false;
    }
    if (process->n_mmap_nodes)
        qsort(process->mmap_nodes, process->n_mmap_nodes, sizeof *process->mmap_nodes, compare_refs);
    return true;
}

int process_add_column(struct collected_process *process, const struct column *column, const char *name,
                       const char *description)
{
    struct column *added = &process->columns[process->n_columns];
    *added = *column;
    (void)snprintf(added->name, sizeof added->name, "%.63s", name);
    (void)snprintf(added->description, sizeof added->description, "%.191s", description);
    return (int)process->n_columns++;
}

/* A fixed period goes into the metric table, so that the file holds the counts themselves. */
static void add_event_column(struct collected_process *process, uint32_t index, const struct sums *sums)
{
    const struct arena_event *event = &process->view->header->events[index];
    bool is_weighted = event->flags & EVENT_WEIGHTED;
    if (!(is_weighted ? sums->weights[index] : sums->counts[index]))
        return;
    struct column column = {.kind = is_weighted ? COLUMN_WEIGHT : COLUMN_COUNT,
                            .event = index,
                            .events = 1u << index,
                            .format = event->flags & EVENT_INTEGER ? HPCRUN_VALUE_INT : HPCRUN_VALUE_REAL,
                            .period = 1,
                            .scale = event->scale,
                            .is_frequency = event->attr.freq};
    if (!is_weighted && event->scale >= 1 && event->scale < 1e15 && event->scale == (double)(uint64_t)event->scale) {
        column.period = (uint64_t)event->scale;
        column.scale = 1;
    }
    process->column_of_event[index] = process_add_column(process, &column, event->metric, event->description);
}

/* Adds a metric that the hardware reported of accesses; it counts in the period of the events that it comes from. */
static int add_access_column(struct collected_process *process, enum column_kind kind, uint32_t events,
                             const char *name, const char *description)
{
    struct column column = {
        .kind = kind, .events = events, .format = HPCRUN_VALUE_INT, .period = 1, .scale = 1, .is_frequency = false};
    if (!events)
        return -1;
    for (uint32_t i = 0; i < process->view->n_events; i++)
        column.is_frequency |= events & 1u << i && process->view->header->events[i].attr.freq;
    return process_add_column(process, &column, name, description);
}

static void add_access_columns(struct collected_process *process, const struct sums *sums)
{
    for (int i = 0; i < MEM_METRICS; i++) {
        const struct mem_metric_row *row = mem_metric_row((enum mem_metric)i);
        char description[192];
        if (!row)
            continue;
        (void)snprintf(description, sizeof description, "%s%s%s", row->alias ? row->alias : "", row->alias ? ": " : "",
                       row->description);
        process->column_of_metric[i] =
            add_access_column(process, COLUMN_MEMORY, sums->metric_events[i], row->name, description);
    }
    process->latency_column = add_access_column(process, COLUMN_LATENCY, sums->latency_events, MEM_LATENCY_NAME,
                                                "Cycles from issue to data, summed over the accesses");
    process->remote_latency_column =
        add_access_column(process, COLUMN_REMOTE_LATENCY, sums->remote_latency_events, MEM_REMOTE_LATENCY_NAME,
                          "Cycles from issue to data of the accesses that another NUMA node served");
}

static void choose_columns(struct collected_process *process, const struct sums *sums)
{
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        uint32_t flags = process->view->header->events[i].flags;
        process->has_variables |= process->view->header->events[i].source == SOURCE_MEMLEAK || flags & EVENT_FILE;
        if (flags & EVENT_ADDRESS) {
            process->is_data_centric = process->has_variables = true;
            if (process->first_address_event < 0)
                process->first_address_event = (int)i;
        }
    }
    if (process->has_variables)
        process_add_size_column(process);
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        if (process->view->header->events[i].source != SOURCE_MEMLEAK)
            add_event_column(process, i, sums);
        else if (process->allocated_column < 0)
            process_add_leak_columns(process);
    }
    add_access_columns(process, sums);
}

struct numbered_thread {
    uint32_t id, ref;
};

static int compare_threads(const void *a, const void *b)
{
    const struct numbered_thread *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->ref < y->ref ? -1 : x->ref > y->ref;
}

/* Threads by id; of two with the same id (which no runtime writes) only the first. */
static bool list_threads(struct collected_process *process)
{
    struct numbered_thread *threads = NULL;
    size_t n = 0, capacity = 0;
    struct record_walk walk = {.kind = ARENA_THREADS, .record_bytes = sizeof(struct arena_thread)};
    const struct arena_thread *record;
    while ((record = view_next(process->view, &walk))) {
        if (!vec_reserve(&threads, &capacity, n + 1, sizeof *threads))
            break;
        threads[n++] = (struct numbered_thread){record->id, walk.ref};
        for (uint32_t i = 0; i < process->view->n_events; i++)
            process->n_samples += view_count(&record->taken[i]);
    }
    process->threads = calloc(n + 1, sizeof *process->threads);
    if (record || !process->threads) {
        free(threads);
        return false;
    }
    if (n)
        qsort(threads, n, sizeof *threads, compare_threads);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || threads[i].id != threads[i - 1].id)
            process->threads[process->n_threads++] = threads[i].ref;
    free(threads);
    return true;
}

static void process_fini(struct collected_process *process)
{
    free(process->threads);
    free(process->mmap_nodes);
    free(process->sized);
    free(process->logged);
    process->threads = process->mmap_nodes = NULL;
    process->sized = process->logged = NULL;
}

/* One pass over all hits and threads: what was recorded, and which columns follow.  err: ERR_MEMORY */
static int process_init(struct collected_process *process, const struct view *view,
                        const struct collect_context *context, struct error *err)
{
    struct sums sums = {0};
    *process = (struct collected_process){.view = view,
                                          .context = context,
                                          .size_column = -1,
                                          .allocated_column = -1,
                                          .freed_column = -1,
                                          .leaked_column = -1,
                                          .marked_column = -1,
                                          .latency_column = -1,
                                          .remote_latency_column = -1,
                                          .first_address_event = -1,
                                          .is_skid_json = objects_skid_is_json(context->skid_json),
                                          .next_id = 12};
    for (int i = 0; i < ARENA_EVENTS_MAX; i++)
        process->column_of_event[i] = -1;
    for (int i = 0; i < MEM_METRICS; i++)
        process->column_of_metric[i] = -1;
    if (!sum_hits(process, &sums) || !list_threads(process) || !process_list_logged(process)) {
        process_fini(process);
        return error_set(err, ERR_MEMORY, "Out of memory for the measurement of a process.");
    }
    process_sum_blocks(process);
    choose_columns(process, &sums);
    process_bound(process);
    return 0;
}

/* --- the files of a thread --- */

/* The files of one thread: its tree as a profile, its trace, its side file. */

#define PIECE_BYTES (1 << 20)
#define NUMBERS_BYTES 64u /* for the times of the trace, which are not known yet when the head is measured */

struct profile_size {
    uint64_t head_bytes, node_bytes;
};

static int out_of_memory(struct error *err)
{
    return error_set(err, ERR_MEMORY, "Out of memory for the profile of a thread.");
}

/* Path of a file of the thread, malloc'ed. */
static char *file_path(const struct collected_thread *thread, const char *suffix)
{
    struct names_file name = thread->process->name;
    name.thread = thread->record->id;
    (void)snprintf(name.suffix, sizeof name.suffix, "%s", suffix);
    return names_path(thread->process->context->dir, &name);
}

static void build_tree(struct collected_thread *thread)
{
    const struct view *view = thread->process->view;
    struct arena_node node;
    const void *record;
    struct record_walk samples = {.kind = ARENA_NODES, .thread = thread->ref, .record_bytes = sizeof node};
    while ((record = view_next(view, &samples))) {
        memcpy(&node, record, sizeof node);
        thread_take_node(thread, samples.ref, &node);
    }
    struct record_walk allocations = {.kind = ARENA_ALLOC_NODES, .thread = thread->ref, .record_bytes = sizeof node};
    while ((record = view_next(view, &allocations))) {
        memcpy(&node, record, sizeof node);
        thread_take_allocations(thread, allocations.ref, &node);
    }
    thread_take_places(thread);
    thread_take_homes(thread);
    thread_take_sketches(thread);
    thread_take_reaches(thread);
    thread_take_meetings(thread);
    thread_finish_offsets(thread);
}

static bool add_number(struct hpcrun_profile *profile, const char *name, const char *format, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, *format == 'x' ? "%" PRIx64 : "%" PRIu64, value);
    return hpcrun_add_pair(profile, name, text) >= 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static bool add_pairs(const struct collected_thread *thread, struct hpcrun_profile *profile)
{
    const struct collected_process *process = thread->process;
    const struct collect_context *context = process->context;
    char exe[ARENA_PATH_MAX];
    (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, process->view->header->exe);
    return hpcrun_add_pair(profile, "program-name", process->name.exe) >= 0 &&
           hpcrun_add_pair(profile, "program-path", exe) >= 0 &&
           hpcrun_add_pair(profile, "env-path", or_empty(context->env_path)) >= 0 &&
           hpcrun_add_pair(profile, "job-id", or_empty(context->job_id)) >= 0 &&
           add_number(profile, "mpi-rank", "d", process->name.rank) &&
           add_number(profile, "thread-id", "d", thread->record->id) &&
           add_number(profile, "host-id", "x", process->name.host_id) &&
           add_number(profile, "process-id", "d", process->name.pid) &&
           add_number(profile, "trace-min-time", "d", thread->trace_min_ns) &&
           add_number(profile, "trace-max-time", "d", thread->trace_max_ns) &&
           hpcrun_add_epoch_pair(profile, "TODO:epoch-name", "TODO:epoch-value") >= 0;
}

/* What a sample was worth on average, in the unit of the values that readers get. */
static double mean_period(const struct thread_column *column)
{
    double period = (double)column->period * column->scale;
    return column->n_samples ? period * (double)column->total / (double)column->n_samples : (double)column->period;
}

static bool add_columns(const struct collected_thread *thread, struct hpcrun_profile *profile)
{
    for (size_t i = 0; i < thread->process->n_columns; i++) {
        const struct column *column = &thread->process->columns[i];
        const struct thread_column *mine = &thread->columns[i];
        bool is_shown = column->kind != COLUMN_SIZE;
        int64_t index = hpcrun_add_metric(profile, column->name, column->description, column->format, mine->period,
                                          is_shown, is_shown);
        if (index < 0)
            return false;
        profile->metrics[index].is_frequency = column->is_frequency;
        profile->metrics[index].is_multiplexed = mine->is_multiplexed;
        profile->metrics[index].mean_period = mean_period(mine);
        profile->metrics[index].n_samples = column->events ? mine->n_samples : column->n_samples;
    }
    return true;
}

/* Ids are even; odd ones are kept by readers, negative ones have no children. */
int32_t thread_node_id(const struct collected_thread *thread, uint32_t node)
{
    return (thread->process->next_id + 2 * (int32_t)node) | (thread->tree.nodes[node].is_retained ? 1 : 0);
}

static uint64_t value_word(const struct collected_thread *thread, size_t column, uint64_t raw)
{
    double scale = thread->columns[column].scale;
    if (thread->process->columns[column].format == HPCRUN_VALUE_INT)
        return scale == 1 ? raw : collect_whole((double)raw * scale);
    double value = (double)raw * scale;
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static bool add_modules(const struct collected_thread *thread, struct hpcrun_profile *profile)
{
    for (size_t i = 0; i < thread->modules.n_strings; i++)
        if (hpcrun_add_module(profile, (uint16_t)(i + 1), thread->modules.strings[i], 0) < 0)
            return false;
    return true;
}

static void put_node(const struct collected_thread *thread, uint32_t i, const struct hpcrun_profile *profile,
                     struct buf *bytes)
{
    uint64_t words[COLUMNS_MAX];
    const struct tree *tree = &thread->tree;
    const uint64_t *values = tree_values(tree, i);
    const struct profile_node *from = &tree->nodes[i];
    int32_t id = thread_node_id(thread, i);
    struct hpcrun_node node = {.id = from->has_child ? id : -id,
                               .parent = i == TREE_ROOT ? 0 : thread_node_id(thread, from->parent),
                               .type = from->type,
                               .module = from->module,
                               .ip = from->ip};
    for (size_t m = 0; m < tree->n_metrics; m++)
        words[m] = value_word(thread, m, values ? values[m] : 0);
    hpcrun_write_node(profile, &node, words, bytes);
}

/* Nodes are written in pieces: a tree may be too large to be held in memory twice. */
static int put_nodes(const struct collected_thread *thread, const struct hpcrun_profile *profile, struct buf *bytes,
                     int fd, const char *path, struct error *err)
{
    int code = 0;
    for (uint32_t i = 0; i < thread->tree.n_nodes && !code; i++) {
        put_node(thread, i, profile, bytes);
        bool is_last = i + 1 == thread->tree.n_nodes;
        if (bytes->failed)
            return out_of_memory(err);
        if (is_last || bytes->len_bytes >= PIECE_BYTES) {
            code = file_append(fd, path, bytes->data, bytes->len_bytes, err);
            bytes->len_bytes = 0;
        }
    }
    return code;
}

static int write_head(const struct collected_thread *thread, struct hpcrun_profile *profile, struct buf *bytes,
                      struct error *err)
{
    *profile = (struct hpcrun_profile){.version = "03.10", .granularity = 1};
    if (!add_pairs(thread, profile) || !add_columns(thread, profile) || !add_modules(thread, profile))
        return out_of_memory(err);
    return hpcrun_write_head(profile, thread->tree.n_nodes, bytes, err);
}

/* Bytes of the profile's head, and of each node. */
static int measure_profile(const struct collected_thread *thread, struct profile_size *size, struct error *err)
{
    struct hpcrun_profile profile;
    struct buf bytes = {0};
    int code = write_head(thread, &profile, &bytes, err);
    size->head_bytes = bytes.len_bytes + NUMBERS_BYTES;
    bytes.len_bytes = 0;
    if (!code) {
        put_node(thread, TREE_ROOT, &profile, &bytes);
        size->node_bytes = bytes.len_bytes;
        code = bytes.failed ? out_of_memory(err) : 0;
    }
    buf_fini(&bytes);
    hpcrun_fini(&profile);
    return code;
}

static int write_profile(const struct collected_thread *thread, const char *path, struct error *err)
{
    struct hpcrun_profile profile;
    struct buf bytes = {0};
    char *temporary = NULL;
    int fd = -1, code = write_head(thread, &profile, &bytes, err);
    if (!code)
        code = file_begin(path, &temporary, &fd, err);
    if (!code)
        code = put_nodes(thread, &profile, &bytes, fd, path, err);
    if (!code)
        code = file_end_replacing(&fd, &temporary, path, err);
    file_abandon(&fd, &temporary);
    buf_fini(&bytes);
    hpcrun_fini(&profile);
    return code;
}

void variable_fini(struct collected_variable *variable)
{
    free(variable->row.name);
    free(variable->row.cpus);
    free(variable->row.homes);
    free(variable->row.pages);
    free(variable->row.stack_offsets);
    free(variable->row.samples);
    free(variable->row.latencies);
    for (size_t i = 0; i < variable->row.n_accesses; i++) {
        spread_fini(&variable->row.accesses[i].offsets);
        if (variable->row.accesses[i].lines)
            free(variable->row.accesses[i].lines->hashes);
        free(variable->row.accesses[i].lines);
    }
    free(variable->row.accesses);
    free(variable->row.touches);
    free(variable->row.meetings);
    free(variable->row.reach);
}

static void thread_fini(struct collected_thread *thread)
{
    tree_fini(&thread->tree);
    strtab_fini(&thread->modules);
    free(thread->path.frames);
    free(thread->declared.frames);
    free(thread->declarations);
    slots_fini(&thread->declaration_slots);
    free(thread->known);
    free(thread->regions);
    for (size_t i = 0; i < thread->n_variables; i++)
        variable_fini(&thread->variables[i]);
    free(thread->variables);
    free(thread->accesses);
    slots_fini(&thread->access_slots);
    thread_free_lines(thread);
}

static bool build(struct collected_thread *thread, struct events_file *log)
{
    thread_weigh(thread);
    tree_init(&thread->tree, thread->process->n_columns);
    build_tree(thread);
    return (!thread->process->view->header->trace || thread_build_log(thread, log)) && !thread->tree.failed;
}

static uint64_t less(uint64_t from, uint64_t n)
{
    return from > n ? from - n : 0;
}

/* The profile may take half of the share, or three quarters where there is no trace. *rest_bytes: what it leaves. */
static int bound_profile(struct collected_thread *thread, struct events_file *log, uint64_t share_bytes,
                         uint64_t *rest_bytes, struct error *err)
{
    struct profile_size size = {0};
    int code = measure_profile(thread, &size, err);
    if (code)
        return code;
    uint64_t part_bytes = log->n_records ? share_bytes / 2 : share_bytes - share_bytes / 4;
    code = thread_bound_tree(thread, log, (size_t)(less(part_bytes, size.head_bytes) / size.node_bytes), err);
    *rest_bytes = less(share_bytes, size.head_bytes + size.node_bytes * thread->tree.n_nodes);
    return code;
}

static int write_objects(struct collected_thread *thread, uint64_t *rest_bytes, struct error *err)
{
    char *path = file_path(thread, "objects");
    uint64_t n_bytes = 0;
    int code =
        path ? thread_write_objects(thread, path, *rest_bytes - *rest_bytes / 8, &n_bytes, err) : out_of_memory(err);
    *rest_bytes = less(*rest_bytes, n_bytes);
    free(path);
    return code;
}

static int write_logged(struct collected_thread *thread, struct events_file *log, uint64_t *rest_bytes,
                        struct error *err)
{
    thread_bound_log(thread, log, *rest_bytes);
    char *log_path = file_path(thread, "events"), *trace_path = file_path(thread, "hpctrace");
    int code = log_path && trace_path ? thread_write_log(thread, log, log_path, trace_path, err) : out_of_memory(err);
    *rest_bytes = less(*rest_bytes, thread_log_bytes(thread, log));
    free(log_path);
    free(trace_path);
    return code;
}

static int write_last(const struct collected_thread *thread, struct error *err)
{
    char *path = file_path(thread, "hpcrun");
    int code = path ? write_profile(thread, path, err) : out_of_memory(err);
    free(path);
    return code;
}

/* The profile comes last: whoever finds it finds the other files too. */
static int write_files(struct collected_thread *thread, struct events_file *log, struct error *err)
{
    struct collected_process *process = thread->process;
    uint64_t share_bytes = process_share(process, thread->ref), rest_bytes = 0;
    int code = bound_profile(thread, log, share_bytes, &rest_bytes, err);
    int64_t last_id = process->next_id + 2 * (int64_t)thread->tree.n_nodes;
    if (!code && last_id > INT32_MAX)
        code = error_set(err, ERR_RANGE, "A process has more call-path nodes than a profile can number.");
    if (!code)
        code = write_objects(thread, &rest_bytes, err);
    if (!code && log->n_samples)
        code = write_logged(thread, log, &rest_bytes, err);
    if (!code)
        code = write_last(thread, err);
    process->n_files += code ? 0 : 2 + (log->n_samples != 0) + (log->n_records != 0);
    process->next_id = (int32_t)last_id;
    process_spend(process, share_bytes - rest_bytes);
    return code;
}

/* Builds and writes the files of one thread.  err: ERR_IO, ERR_MEMORY, ERR_RANGE */
static int thread_write(struct collected_process *process, uint32_t thread_ref, struct error *err)
{
    struct events_file log = {0};
    struct collected_thread thread = {.process = process, .ref = thread_ref, .data_root = TREE_NONE};
    thread.record = view_record(process->view, thread_ref, ARENA_THREADS, sizeof *thread.record);
    if (!thread.record)
        return 0;
    int code = build(&thread, &log) ? write_files(&thread, &log, err) : out_of_memory(err);
    events_fini(&log);
    thread_fini(&thread);
    return code;
}

/* --- a whole process --- */

/* Collecting a process: names, then thread by thread, then the log. */

static void fill_name(const struct view *view, const struct collect_context *context, struct names_file *name)
{
    const struct arena_header *header = view->header;
    char exe[ARENA_PATH_MAX];
    *name = (struct names_file){.rank = __atomic_load_n((const uint32_t *)&header->rank, __ATOMIC_RELAXED),
                                .host_id = context->host_id,
                                .pid = header->pid};
    (void)snprintf(name->exe, sizeof name->exe, "%.255s", header->argv0);
    if (!name->exe[0]) {
        (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
        (void)snprintf(name->exe, sizeof name->exe, "%.200s", exe[0] ? path_last(exe) : "unknown");
    }
    for (char *c = name->exe; *c; c++)
        if (*c == '/')
            *c = '_';
}

static int claim(const struct view *view, const struct collect_context *context, struct names_file *name,
                 struct error *err)
{
    fill_name(view, context, name);
    int fd = names_claim(context->dir, name, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    return 0;
}

int collect_claim(const void *arena, size_t size_bytes, const struct collect_context *context, struct names_file *name,
                  struct error *err)
{
    struct view view;
    int code = view_open(&view, arena, size_bytes, err);
    if (code)
        return code;
    code = claim(&view, context, name, err);
    view_close(&view);
    return code;
}

static void remove_file(const struct collect_context *context, struct names_file *name, const char *suffix)
{
    (void)snprintf(name->suffix, sizeof name->suffix, "%s", suffix);
    char *path = names_path(context->dir, name);
    if (path)
        (void)unlink(path);
    free(path);
}

/* For a process whose rank became known after files had been written under another one. */
static void remove_old_files(const struct collected_process *process)
{
    struct names_file name = *process->context->claimed;
    for (size_t i = 0; i < process->n_threads; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        if (!record)
            continue;
        name.thread = record->id;
        remove_file(process->context, &name, "hpcrun");
        remove_file(process->context, &name, "hpctrace");
        remove_file(process->context, &name, "events");
        remove_file(process->context, &name, "objects");
    }
    name.thread = 0;
    remove_file(process->context, &name, "log");
}

static int choose_name(struct collected_process *process, struct error *err)
{
    const struct names_file *claimed = process->context->claimed;
    if (!claimed)
        return claim(process->view, process->context, &process->name, err);
    process->name = *claimed;
    process->name.rank = __atomic_load_n((const uint32_t *)&process->view->header->rank, __ATOMIC_RELAXED);
    return 0;
}

static int write_process(struct collected_process *process, struct error *err)
{
    int code = choose_name(process, err);
    for (size_t i = 0; i < process->n_written_threads && !code; i++)
        code = thread_write(process, process->threads[i], err);
    if (!code)
        code = process_write_log(process, err);
    if (!code && process->context->claimed && process->context->claimed->rank != process->name.rank)
        remove_old_files(process);
    return code;
}

int collect_write(const void *arena, size_t size_bytes, const struct collect_context *context,
                  struct collect_result *result, struct error *err)
{
    struct view view;
    struct collected_process process;
    *result = (struct collect_result){0};
    int code = view_open(&view, arena, size_bytes, err);
    if (code)
        return code;
    code = process_init(&process, &view, context, err);
    if (!code) {
        result->n_samples = process.n_samples;
        result->was_empty = !process.n_samples && !process.n_blocks && !process.view->header->debug_run;
        if (!result->was_empty)
            code = write_process(&process, err);
        result->n_files = process.n_files;
        result->name = process.name;
        process_fini(&process);
    }
    view_close(&view);
    return code;
}
