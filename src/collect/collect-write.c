/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of one thread: its tree as a profile, its trace, its side file. Ordinary code. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"
#include "fmt/file.h"
#include "fmt/trace.h"

#define PIECE_BYTES (1 << 20)
#define NUMBERS_BYTES 64u /* the times of the trace, which are not known yet when the head is measured */
#define TRACE_HEAD_BYTES 64u
#define TRACE_RECORD_BYTES 12u

struct profile_size {
    uint64_t head_bytes, node_bytes;
};

static int out_of_memory(struct error *err)
{
    return error_set(err, ERR_MEMORY, "Out of memory for the profile of a thread.");
}

/* Path of a file of the thread, malloc'ed. */
static char *file_path(const struct thread *thread, const char *suffix)
{
    struct names_file name = thread->process->name;
    name.thread = thread->record->id;
    (void)snprintf(name.suffix, sizeof name.suffix, "%s", suffix);
    return names_path(thread->process->context->dir, &name);
}

/* The tree's node of a traced sample; nodes are often traced several times in a row. */
static uint32_t traced_node(struct thread *thread, uint32_t ref, uint32_t *last_ref, uint32_t last_node)
{
    if (ref == *last_ref)
        return last_node;
    *last_ref = ref;
    if (!path_of(thread->process->view, ref, ARENA_NODES, &thread->path))
        return TREE_NONE;
    uint32_t parent = thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT;
    return path_insert(thread, &thread->path, parent, HPCRUN_NODE_LEAF);
}

/* Trace records with the indexes of their nodes, which are marked to keep their ids. */
static bool build_trace(struct thread *thread, struct trace_file *trace)
{
    struct view_walk walk = {.kind = ARENA_TRACE, .thread = thread->ref, .record_bytes = sizeof(struct arena_trace)};
    const struct arena_trace *record;
    uint32_t last_ref = 0, node = TREE_NONE;
    while ((record = view_next(thread->process->view, &walk))) {
        node = record->node && record->t_ns ? traced_node(thread, record->node, &last_ref, node) : TREE_NONE;
        if (node == TREE_NONE) {
            last_ref = 0;
            continue;
        }
        if (!vec_reserve(&trace->records, &trace->cap_records, trace->n_records + 1, sizeof *trace->records))
            return false;
        trace->records[trace->n_records++] =
            (struct trace_record){.time = record->t_ns, .node = node, .metric = TRACE_NO_METRIC};
        thread->tree.nodes[node].is_retained = true;
        if (!thread->trace_min_ns || record->t_ns < thread->trace_min_ns)
            thread->trace_min_ns = record->t_ns;
        if (record->t_ns > thread->trace_max_ns)
            thread->trace_max_ns = record->t_ns;
    }
    return true;
}

static void build_tree(struct thread *thread)
{
    const struct view *view = thread->process->view;
    struct arena_node node;
    const void *record;
    struct view_walk samples = {.kind = ARENA_NODES, .thread = thread->ref, .record_bytes = sizeof node};
    while ((record = view_next(view, &samples))) {
        memcpy(&node, record, sizeof node);
        thread_take_node(thread, samples.ref, &node);
    }
    struct view_walk allocations = {.kind = ARENA_ALLOC_NODES, .thread = thread->ref, .record_bytes = sizeof node};
    while ((record = view_next(view, &allocations))) {
        memcpy(&node, record, sizeof node);
        thread_take_allocations(thread, allocations.ref, &node);
    }
    thread_take_places(thread);
    thread_take_sketches(thread);
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

static bool add_pairs(const struct thread *thread, struct hpcrun_profile *profile)
{
    const struct process *process = thread->process;
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

static bool add_columns(const struct thread *thread, struct hpcrun_profile *profile)
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
int32_t thread_node_id(const struct thread *thread, uint32_t node)
{
    return (thread->process->next_id + 2 * (int32_t)node) | (thread->tree.nodes[node].is_retained ? 1 : 0);
}

static uint64_t value_word(const struct thread *thread, size_t column, uint64_t raw)
{
    double scale = thread->columns[column].scale;
    if (thread->process->columns[column].format == HPCRUN_VALUE_INT)
        return scale == 1 ? raw : collect_whole((double)raw * scale);
    double value = (double)raw * scale;
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static bool add_modules(const struct thread *thread, struct hpcrun_profile *profile)
{
    for (size_t i = 0; i < thread->modules.n_strings; i++)
        if (hpcrun_add_module(profile, (uint16_t)(i + 1), thread->modules.strings[i], 0) < 0)
            return false;
    return true;
}

static void put_node(const struct thread *thread, uint32_t i, const struct hpcrun_profile *profile, struct buf *bytes)
{
    uint64_t words[COLUMNS_MAX];
    const struct tree *tree = &thread->tree;
    const uint64_t *values = tree_values(tree, i);
    const struct tree_node *from = &tree->nodes[i];
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

/* The nodes go out in pieces: a tree may be much larger than what a companion should hold twice. */
static int put_nodes(const struct thread *thread, const struct hpcrun_profile *profile, struct buf *bytes, int fd,
                     const char *path, struct error *err)
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

static int write_head(const struct thread *thread, struct hpcrun_profile *profile, struct buf *bytes, struct error *err)
{
    *profile = (struct hpcrun_profile){.version = "03.10", .granularity = 1};
    if (!add_pairs(thread, profile) || !add_columns(thread, profile) || !add_modules(thread, profile))
        return out_of_memory(err);
    return hpcrun_write_head(profile, thread->tree.n_nodes, bytes, err);
}

/* Bytes of the profile's head, and of each node. */
static int measure_profile(const struct thread *thread, struct profile_size *size, struct error *err)
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

static int write_profile(const struct thread *thread, const char *path, struct error *err)
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

static int write_trace(const struct thread *thread, struct trace_file *trace, const char *path, struct error *err)
{
    struct buf bytes = {0};
    memcpy(trace->version, "01.01", 6);
    for (size_t i = 0; i < trace->n_records; i++)
        trace->records[i].node = (uint32_t)thread_node_id(thread, trace->records[i].node);
    int code = trace_write(trace, &bytes, err);
    if (!code)
        code = file_replace(path, bytes.data, bytes.len_bytes, err);
    buf_fini(&bytes);
    return code;
}

void variable_fini(struct variable *variable)
{
    free(variable->row.name);
    free(variable->row.cpus);
    free(variable->row.stack_offsets);
    free(variable->row.samples);
    free(variable->row.latencies);
    for (size_t i = 0; i < variable->row.n_accesses; i++) {
        spread_fini(&variable->row.accesses[i].offsets);
        free(variable->row.accesses[i].lines);
    }
    free(variable->row.accesses);
}

static void thread_fini(struct thread *thread)
{
    tree_fini(&thread->tree);
    strtab_fini(&thread->modules);
    free(thread->path.frames);
    free(thread->declared.frames);
    free(thread->declarations);
    free(thread->known);
    free(thread->regions);
    for (size_t i = 0; i < thread->n_variables; i++)
        variable_fini(&thread->variables[i]);
    free(thread->variables);
    free(thread->access_slots);
    thread_free_lines(thread);
}

static bool build(struct thread *thread, struct trace_file *trace)
{
    thread_weigh(thread);
    tree_init(&thread->tree, thread->process->n_columns);
    build_tree(thread);
    return (!thread->process->view->header->trace || build_trace(thread, trace)) && !thread->tree.failed;
}

static uint64_t less(uint64_t from, uint64_t n)
{
    return from > n ? from - n : 0;
}

/* Half of the share is the profile's, or more where there is no trace. *rest_bytes: what it leaves. */
static int bound_profile(struct thread *thread, struct trace_file *trace, uint64_t share_bytes, uint64_t *rest_bytes,
                         struct error *err)
{
    struct profile_size size = {0};
    int code = measure_profile(thread, &size, err);
    if (code)
        return code;
    uint64_t part_bytes = trace->n_records ? share_bytes / 2 : share_bytes - share_bytes / 4;
    code = thread_bound_tree(thread, trace, (size_t)(less(part_bytes, size.head_bytes) / size.node_bytes), err);
    *rest_bytes = less(share_bytes, size.head_bytes + size.node_bytes * thread->tree.n_nodes);
    return code;
}

static int write_objects(struct thread *thread, uint64_t *rest_bytes, struct error *err)
{
    char *path = file_path(thread, "objects");
    uint64_t n_bytes = 0;
    int code =
        path ? thread_write_objects(thread, path, *rest_bytes - *rest_bytes / 8, &n_bytes, err) : out_of_memory(err);
    *rest_bytes = less(*rest_bytes, n_bytes);
    free(path);
    return code;
}

static int write_traced(struct thread *thread, struct trace_file *trace, uint64_t *rest_bytes, struct error *err)
{
    thread_bound_trace(thread, trace, (size_t)(less(*rest_bytes, TRACE_HEAD_BYTES) / TRACE_RECORD_BYTES));
    char *path = file_path(thread, "hpctrace");
    int code = path ? write_trace(thread, trace, path, err) : out_of_memory(err);
    *rest_bytes = less(*rest_bytes, TRACE_HEAD_BYTES + TRACE_RECORD_BYTES * trace->n_records);
    free(path);
    return code;
}

static int write_last(const struct thread *thread, struct error *err)
{
    char *path = file_path(thread, "hpcrun");
    int code = path ? write_profile(thread, path, err) : out_of_memory(err);
    free(path);
    return code;
}

/* The profile comes last: who finds it finds what belongs to it. */
static int write_files(struct thread *thread, struct trace_file *trace, struct error *err)
{
    struct process *process = thread->process;
    uint64_t share_bytes = process_share(process, thread->ref), rest_bytes = 0;
    int code = bound_profile(thread, trace, share_bytes, &rest_bytes, err);
    int64_t last_id = process->next_id + 2 * (int64_t)thread->tree.n_nodes;
    if (!code && last_id > INT32_MAX)
        code = error_set(err, ERR_RANGE, "A process has more call-path nodes than a profile can number.");
    if (!code)
        code = write_objects(thread, &rest_bytes, err);
    if (!code && trace->n_records)
        code = write_traced(thread, trace, &rest_bytes, err);
    if (!code)
        code = write_last(thread, err);
    process->n_files += code ? 0 : 2 + (trace->n_records != 0);
    process->next_id = (int32_t)last_id;
    process_spend(process, share_bytes - rest_bytes);
    return code;
}

int thread_write(struct process *process, uint32_t thread_ref, struct error *err)
{
    struct trace_file trace = {0};
    struct thread thread = {.process = process, .ref = thread_ref, .data_root = TREE_NONE};
    thread.record = view_record(process->view, thread_ref, ARENA_THREADS, sizeof *thread.record);
    if (!thread.record)
        return 0;
    int code = build(&thread, &trace) ? write_files(&thread, &trace, err) : out_of_memory(err);
    trace_fini(&trace);
    thread_fini(&thread);
    return code;
}
