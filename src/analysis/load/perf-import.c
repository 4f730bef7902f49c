/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through the records of a perf.data file in order of time: mapping records change address spaces, samples go into
 * the arena of their process, and the collector writes what is in the arenas. */
#include "analysis/load/perf-import.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/input.h"
#include "collect/collect.h"
#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"
#include "sampling/abi/perf-record.h"

/* What all samples of an event have in common. */
struct event_state {
    uint64_t n_samples, period; /* period 0: it varies */
    bool has_address, has_metrics, has_dump;
    int index; /* in the arenas, -1: no samples, or no room */
};

struct import {
    const char *path;
    struct perf_data data;
    struct perf_files files;
    struct perf_process *processes; /* [n_processes] */
    size_t n_processes, cap_processes;
    struct event_state *events; /* [data.n_events] */
    uint64_t n_addresses, n_unlogged, n_left_out;
    uint64_t end_ns; /* of the recording, CLOCK_REALTIME */
    uint64_t last_ns;
    struct error *err;
};

static int fail_memory(struct import *import)
{
    return error_set(import->err, ERR_MEMORY, "%.600s: out of memory", import->path);
}

/* --- events --- */

/* What the hardware says about a sample, from AMD's registers if the kernel did not make a data source of them. */
struct hardware_access {
    uint64_t data_src, address, lat_cycles;
};

static struct hardware_access access_of(const struct perf_data_event *event, const struct abi_sample *sample)
{
    struct ibs_op op;
    struct hardware_access access = {sample->data_src, sample->addr, sample->weight};
    if (!mem_metrics_sig(access.data_src) && strncmp(event->name, "ibs_op", 6) == 0 &&
        ibs_op_parse_sig(sample->raw.data, sample->raw.n_bytes, false, &op)) {
        access.data_src = op.data_src;
        access.address = access.address ? access.address : op.address;
        access.lat_cycles = access.lat_cycles ? access.lat_cycles : op.lat_cycles;
    }
    return access;
}

static int survey_sample(struct import *import, const struct perf_data_record *record)
{
    const struct perf_data_event *event;
    struct abi_sample sample;
    int code = perf_data_sample(&import->data, record, &event, &sample, import->err);
    if (code)
        return code;
    struct event_state *state = &import->events[event - import->data.events];
    struct hardware_access access = access_of(event, &sample);
    if (state->n_samples++ == 0)
        state->period = sample.period;
    else if (state->period != sample.period)
        state->period = 0;
    state->has_address |= access.address != 0;
    state->has_metrics |= mem_metrics_sig(access.data_src) != 0;
    state->has_dump |= sample.stack_used_bytes != 0;
    return 0;
}

static int survey_record(struct import *import, const struct perf_data_record *record)
{
    int code = record->type == PERF_RECORD_SAMPLE ? survey_sample(import, record) : 0;
    if (record->time_ns > import->last_ns)
        import->last_ns = record->time_ns;
    return code;
}

/* In the order of time. */
static int for_each_record(struct import *import,
                           int (*act)(struct import *import, const struct perf_data_record *record))
{
    struct perf_data_walk walk;
    int code = perf_data_walk_open(&import->data, &walk, import->err);
    if (code)
        return code;
    for (const struct perf_data_record *record; !code && (record = perf_data_walk_next(&walk));)
        code = act(import, record);
    int closed = perf_data_walk_close(&walk, import->err);
    return code ? code : closed;
}

/* The first pass: which events have samples, and of which kind. */
static int survey(struct import *import)
{
    int code = 0, n_used = 0;
    uint64_t n_samples = 0;
    import->events = calloc(import->data.n_events, sizeof *import->events);
    if (!import->events)
        return fail_memory(import);
    code = for_each_record(import, survey_record);
    for (size_t i = 0; i < import->data.n_events; i++) {
        struct event_state *state = &import->events[i];
        state->index = state->n_samples && n_used < ARENA_EVENTS_MAX ? n_used++ : -1;
        n_samples += state->n_samples;
        import->n_left_out += state->index < 0 ? state->n_samples : 0;
    }
    if (!code && n_samples == 0)
        code = error_set(import->err, ERR_NOT_FOUND, "%.600s holds no samples", import->path);
    return code;
}

static void describe_event(const struct import *import, size_t index, struct arena_event *to)
{
    const struct perf_data_event *event = &import->data.events[index];
    const struct event_state *state = &import->events[index];
    unsigned n_same = 0;
    for (size_t i = 0; i < index; i++)
        n_same += import->events[i].index >= 0 && strcmp(import->data.events[i].name, event->name) == 0;
    (void)snprintf(to->name, sizeof to->name, "%.60s", event->name);
    (void)snprintf(to->metric, sizeof to->metric, "%.48s%s", event->name,
                   abi_is_clock_sig(&event->attr) ? " (usec)" : "");
    if (n_same)
        (void)snprintf(to->metric + strlen(to->metric), sizeof to->metric - strlen(to->metric), " #%u", n_same + 1);
    (void)snprintf(to->description, sizeof to->description, "%.100s, recorded by perf", event->name);
    to->source = state->has_metrics ? SOURCE_PMU_ADDR : SOURCE_PERF;
    to->flags = (state->has_address ? EVENT_ADDRESS : 0) | (state->has_metrics ? EVENT_DATA_SRC : 0) |
                (state->period ? 0 : EVENT_WEIGHTED) | (abi_is_clock_sig(&event->attr) ? 0 : EVENT_INTEGER);
    to->decode = state->has_metrics ? MEM_DECODE_DATA_SRC : MEM_DECODE_NONE;
    to->scale = (state->period ? (double)state->period : 1) * (abi_is_clock_sig(&event->attr) ? 1e-3 : 1);
    to->attr = event->attr;
}

/* --- processes --- */

static struct perf_process *find_process(struct import *import, uint32_t pid)
{
    for (size_t i = import->n_processes; i-- > 0;)
        if (import->processes[i].pid == pid)
            return &import->processes[i];
    if (!vec_reserve(&import->processes, &import->cap_processes, import->n_processes + 1, sizeof *import->processes))
        return NULL;
    import->processes[import->n_processes] = (struct perf_process){.pid = pid};
    return &import->processes[import->n_processes++];
}

/* Makes the arena of a process, with its events, at the first sample. */
static int begin_process(struct import *import, struct perf_process *process)
{
    int code = process->has_arena ? 0 : perf_process_begin(process, import->err);
    struct arena_header *header = perf_arena_header(&process->arena);
    if (code || header->n_events)
        return code;
    for (size_t i = 0; i < import->data.n_events; i++)
        if (import->events[i].index >= 0)
            describe_event(import, i, &header->events[header->n_events++]);
    return 0;
}

static const struct perf_data_build_id *find_build_id(const struct import *import, const char *path)
{
    for (size_t i = 0; i < import->data.n_build_ids; i++)
        if (strcmp(import->data.build_ids[i].path, path) == 0)
            return &import->data.build_ids[i];
    return NULL;
}

static void name_process(struct perf_process *process, const char *name, bool is_path)
{
    (void)snprintf(process->exe, sizeof process->exe, "%s", name);
    process->is_named = is_path;
    if (process->has_arena)
        memcpy(perf_arena_header(&process->arena)->exe, process->exe, sizeof process->exe);
}

static int take_mapping(struct import *import, const struct perf_data_record *record)
{
    struct perf_data_mmap mapping;
    int code = perf_data_mmap(&import->data, record, &mapping, import->err);
    if (code || mapping.pid == UINT32_MAX)
        return code;
    struct perf_process *process = find_process(import, mapping.pid);
    const struct perf_data_build_id *id = mapping.build_id ? NULL : find_build_id(import, mapping.path);
    int64_t file = -1;
    if (mapping.path[0] == '/' && mapping.path[1] != '/')
        file = perf_files_find(&import->files, mapping.path, id ? id->bytes : mapping.build_id,
                               id ? id->n_bytes : mapping.n_build_id);
    if (!process || !perf_space_map(&process->space, &import->files, &mapping, file))
        return fail_memory(import);
    if (!process->is_named && file >= 0)
        name_process(process, mapping.path, true);
    return 0;
}

static int take_fork(struct import *import, const struct perf_data_task *task)
{
    struct perf_process *process = find_process(import, task->pid);
    if (!process)
        return fail_memory(import);
    if (task->pid == task->parent_pid) {
        perf_space_begin_thread(&process->space, task->tid);
        return 0;
    }
    const struct perf_process *parent = find_process(import, task->parent_pid);
    process = find_process(import, task->pid);
    if (!parent || !process)
        return fail_memory(import);
    perf_space_fini(&process->space);
    if (!process->is_named && parent->exe[0])
        name_process(process, parent->exe, parent->is_named);
    return perf_space_copy(&process->space, &parent->space) ? 0 : fail_memory(import);
}

static bool name_thread(struct perf_process *process, const struct perf_data_task *task)
{
    if (!vec_reserve(&process->names, &process->cap_names, process->n_names + 1, sizeof *process->names))
        return false;
    struct perf_thread_name *named = &process->names[process->n_names++];
    named->tid = task->tid;
    (void)snprintf(named->name, sizeof named->name, "%s", task->name);
    return true;
}

static void put_thread_names(struct perf_process *process)
{
    for (size_t i = 0; i < process->arena.n_threads; i++)
        for (size_t k = process->n_names; k-- > 0;)
            if (process->names[k].tid == process->arena.threads[i].tid) {
                memcpy(perf_arena_thread_record(&process->arena, i)->name, process->names[k].name, ARENA_COMM_BYTES);
                break;
            }
}

static int take_task(struct import *import, const struct perf_data_record *record)
{
    struct perf_data_task task;
    int code = perf_data_task(&import->data, record, &task, import->err);
    if (code)
        return code;
    if (record->type == PERF_RECORD_FORK)
        return take_fork(import, &task);
    struct perf_process *process = find_process(import, task.pid);
    if (!process)
        return fail_memory(import);
    if (record->type == PERF_RECORD_COMM && !name_thread(process, &task))
        return fail_memory(import);
    if (record->type == PERF_RECORD_EXIT) {
        perf_space_end_thread(&process->space, task.tid);
    } else if (task.is_exec) {
        perf_space_fini(&process->space);
        name_process(process, task.name, false);
    } else if (!process->is_named && task.tid == task.pid) {
        name_process(process, task.name, false);
    }
    return 0;
}

/* --- samples --- */

struct frame {
    uint64_t ip;
    bool is_kernel, is_first; /* is_first: the interrupted instruction in user or kernel code, not a return address */
};

/* Lists the frames of a sample, innermost first, without the markers in the chain. False when out of memory. */
static bool list_frames(const struct import *import, const struct perf_data_record *record,
                        const struct abi_sample *sample, struct frame **frames, size_t *n)
{
    size_t n_words = sample->callchain.n_bytes / 8;
    bool is_kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL, is_first = true;
    *n = 0;
    *frames = calloc(n_words + 1, sizeof **frames);
    if (!*frames)
        return false;
    for (size_t i = 0; i < n_words; i++) {
        uint64_t word = abi_word_sig(&sample->callchain, i, import->data.is_swapped);
        if (word < PERF_CONTEXT_MAX) {
            (*frames)[(*n)++] = (struct frame){word, is_kernel, is_first};
            is_first = false;
            continue;
        }
        is_kernel = word == PERF_CONTEXT_KERNEL;
        is_first = true;
    }
    if (*n == 0)
        (*frames)[(*n)++] = (struct frame){sample->ip, is_kernel, true};
    return true;
}

/* How many frames are credible: a caller outside all mappings comes from a register that was no frame pointer. */
static size_t count_mapped(const struct perf_process *process, const struct frame *frames, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!frames[i].is_kernel && !frames[i].is_first && !perf_space_at(&process->space, frames[i].ip))
            return i;
    return n;
}

/* The node of the sample's call path. A path that does not reach the start of the thread is partial. */
static uint32_t path_node(struct import *import, struct perf_process *process, size_t thread,
                          const struct abi_sample *sample, const struct frame *frames, size_t n)
{
    struct perf_arena *arena = &process->arena;
    size_t n_mapped = count_mapped(process, frames, n);
    uint32_t node = sample->callchain.n_bytes && n_mapped == n ? 0 : perf_arena_partial(arena, thread);
    for (size_t i = n_mapped; i-- > 0;) {
        const struct perf_loaded *loaded =
            perf_process_code(process, &import->files, frames[i].ip, frames[i].is_kernel);
        /* callers stand for the instruction before their address */
        uint64_t ip = frames[i].ip + (i > 0 && frames[i].is_first ? 1 : 0);
        node = perf_arena_node(arena, thread, node, loaded ? loaded->module : 0, ip);
        if (!node)
            return 0;
    }
    return node;
}

/* Updates the numbers of the thread for its side file. */
static void count_sample(struct perf_process *process, size_t thread, int event, unsigned fate, bool has_metric,
                         const struct abi_sample *sample)
{
    struct arena_thread *record = perf_arena_thread_record(&process->arena, thread);
    atomic_fetch_add(&record->taken[event], 1);
    atomic_fetch_add(&record->overflows[event], 1);
    atomic_fetch_add(&record->fates[event][fate], 1);
    if (!has_metric)
        atomic_fetch_add(&record->n_no_metric[event], 1);
    if (!process->first_ns || sample->time_ns < process->first_ns)
        process->first_ns = sample->time_ns;
    if (sample->time_ns > process->last_ns)
        process->last_ns = sample->time_ns;
}

/* The variable of a sample. An operation without memory access has no address to lose. */
static struct perf_target target_of(struct import *import, struct perf_process *process,
                                    const struct event_state *state, const struct hardware_access *access, uint32_t tid)
{
    if (!state->has_address)
        return (struct perf_target){.class = HIT_PLAIN, .fate = FATE_NO_ADDRESS_SOURCE};
    if (state->has_metrics && !access->address && !mem_metrics_sig(access->data_src))
        return (struct perf_target){.class = HIT_COMPUTE, .fate = FATE_NO_ADDRESS_COMPUTE};
    return perf_process_data(process, &import->files, access->address, tid);
}

/* Adds the sample to the arena of its process. */
static bool put_sample(struct import *import, struct perf_process *process, const struct perf_data_record *record,
                       const struct perf_data_event *event, const struct abi_sample *sample)
{
    struct frame *frames;
    const struct event_state *state = &import->events[event - import->data.events];
    size_t n_frames, thread = perf_arena_thread(&process->arena, sample->tid);
    if (thread == SIZE_MAX || !list_frames(import, record, sample, &frames, &n_frames))
        return false;
    struct hardware_access access = access_of(event, sample);
    struct perf_target target = target_of(import, process, state, &access, sample->tid);
    struct arena_hit like = {.event = (uint8_t)state->index, .class = target.class, .var = target.var};
    atomic_store(&like.first_offset, target.offset);
    atomic_store(&like.n_offsets, target.has_offset);
    like.metrics = state->has_metrics ? mem_metrics_sig(access.data_src) : 0;
    uint32_t node = path_node(import, process, thread, sample, frames, n_frames);
    free(frames);
    perf_arena_hit(&process->arena, thread, node, &like, state->period ? 0 : sample->period,
                   state->has_metrics ? access.lat_cycles : 0);
    if (state->has_address && sample->present & PERF_SAMPLE_CPU)
        perf_arena_place(&process->arena, thread, like.event, like.var, (uint16_t)sample->cpu);
    count_sample(process, thread, state->index, target.fate, !state->has_metrics || like.metrics, sample);
    atomic_fetch_add(&perf_arena_thread_record(&process->arena, thread)->n_frames, n_frames);
    import->n_addresses += access.address != 0;
    import->n_unlogged += target.is_unlogged;
    return !process->arena.is_full;
}

static int take_sample(struct import *import, const struct perf_data_record *record)
{
    const struct perf_data_event *event;
    struct abi_sample sample;
    int code = perf_data_sample(&import->data, record, &event, &sample, import->err);
    if (code || import->events[event - import->data.events].index < 0)
        return code;
    struct perf_process *process = find_process(import, sample.pid);
    if (!process)
        return fail_memory(import);
    code = begin_process(import, process);
    if (!code && !put_sample(import, process, record, event, &sample))
        code = fail_memory(import);
    return code;
}

/* Counts samples that the kernel had no room for, and events that it throttled, for the thread that ran then. */
static void take_loss(struct import *import, const struct perf_data_record *record)
{
    struct abi_sample trailer;
    const struct perf_data_event *event = perf_data_event_of(&import->data, record);
    perf_data_trailer(&import->data, record, &trailer);
    int index = event ? import->events[event - import->data.events].index : -1;
    struct perf_process *process = trailer.present & PERF_SAMPLE_TID ? find_process(import, trailer.pid) : NULL;
    if (index < 0 || !process || !process->has_arena)
        return;
    size_t thread = perf_arena_thread(&process->arena, trailer.tid);
    if (thread == SIZE_MAX)
        return;
    struct arena_thread *to = perf_arena_thread_record(&process->arena, thread);
    if (record->type == PERF_RECORD_THROTTLE) {
        atomic_fetch_add(&to->n_throttles[index], 1);
        return;
    }
    uint64_t n_lost = perf_data_lost(&import->data, record);
    atomic_fetch_add(&to->fates[index][FATE_NOT_DELIVERED], n_lost);
    atomic_fetch_add(&to->overflows[index], n_lost);
}

static int take_record(struct import *import, const struct perf_data_record *record)
{
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        return take_sample(import, record);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return take_mapping(import, record);
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return take_task(import, record);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_THROTTLE:
        take_loss(import, record);
        return 0;
    default:
        return 0;
    }
}

/* --- writing --- */

static const char *symbol_of(void *context, uint64_t table_id, uint32_t index, bool tls, uint64_t *vaddr,
                             uint64_t *size_bytes)
{
    const struct perf_files *files = context;
    (void)table_id;
    if (tls || index >= files->n_statics)
        return NULL;
    *vaddr = files->statics[index].vaddr;
    *size_bytes = files->statics[index].size_bytes;
    return files->statics[index].name;
}

/* So that the files of each host get a number of their own. */
static uint32_t number_of_host(const char *host)
{
    return bytes_hash_32(host ? host : "", host ? strlen(host) : 0);
}

static int write_process(struct import *import, struct perf_process *process, const char *directory, const char *plan)
{
    struct collect_result result;
    struct arena_header *header = perf_arena_header(&process->arena);
    const struct collect_context context = {.dir = directory,
                                            .host_id = number_of_host(import->data.hostname),
                                            .host = import->data.hostname,
                                            .plan = plan,
                                            .state = "complete",
                                            .symbol = symbol_of,
                                            .ctx = &import->files};
    header->start_ns = import->end_ns - (import->last_ns - process->first_ns);
    atomic_store(&header->end_ns, import->end_ns - (import->last_ns - process->last_ns));
    for (size_t i = 0; i < process->arena.n_threads; i++)
        perf_arena_thread_record(&process->arena, i)->start_ns = header->start_ns;
    put_thread_names(process);
    return collect_write(process->arena.base, process->arena.size_bytes, &context, &result, import->err);
}

static int write_all(struct import *import, const char *directory)
{
    struct buf plan = {0};
    int code = 0;
    const struct perf_data *data = &import->data;
    buf_printf(&plan, "recorded by perf%s%s%s%s", data->perf_version ? " " : "",
               data->perf_version ? data->perf_version : "", data->command ? ": " : "",
               data->command ? data->command : "");
    for (size_t i = 0; i < import->n_processes && !code; i++)
        if (import->processes[i].has_arena)
            code = write_process(import, &import->processes[i], directory, plan.data);
    buf_fini(&plan);
    return code;
}

static void note_files(const struct import *import, struct model *model)
{
    struct buf others = {0};
    for (size_t i = 0; i < import->files.keys.n_strings; i++)
        if (import->files.files[i].is_other)
            buf_printf(&others, "%s%s", others.len_bytes ? ", " : "", import->files.files[i].path);
    if (others.len_bytes)
        model_note(model, "%s: build id differs, so nothing is named in: %s.", import->path, others.data);
    buf_fini(&others);
}

static void note_all(const struct import *import, struct model *model)
{
    bool has_dump = false, has_mappings = false;
    for (size_t i = 0; i < import->data.n_events; i++) {
        has_dump |= import->events[i].has_dump;
        has_mappings |= import->data.events[i].attr.mmap_data;
    }
    if (import->n_unlogged)
        model_note(model,
                   "%s: heap: no allocation log beside it, so %" PRIu64 " of %" PRIu64
                   " samples with addresses lie in heap blocks and anonymous mappings that have no names.",
                   import->path, import->n_unlogged, import->n_addresses);
    if (import->n_addresses && !has_mappings)
        model_note(model, "%s: recorded without -d, so only mappings of code are known.", import->path);
    if (has_dump)
        model_note(model,
                   "%s: the dumped stacks (--call-graph dwarf) are not unwound: call paths are what the kernel walked.",
                   import->path);
    if (import->data.is_unfinished)
        model_note(model, "%s: perf did not end properly: %" PRIu64 " bytes after the last whole record are left out.",
                   import->path, import->data.n_unfinished_bytes);
    if (import->n_left_out)
        model_note(model, "%s: more than %d events: %" PRIu64 " samples of the others are left out.", import->path,
                   ARENA_EVENTS_MAX, import->n_left_out);
    note_files(import, model);
}

bool perf_import_is_file(const char *path)
{
    char bytes[8];
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    bool is_file = fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes && perf_data_begins(bytes, sizeof bytes);
    if (fd >= 0)
        (void)close(fd);
    return is_file;
}

int perf_import(const char *path, const char *directory, struct model *model, struct error *err)
{
    struct stat info;
    struct import import = {.path = path, .err = err};
    int code = perf_data_open(path, &import.data, err);
    code = code ? code : perf_data_check(&import.data, err);
    if (!code)
        code = survey(&import);
    if (!code && stat(path, &info) == 0)
        import.end_ns = clock_ns_of(&info.st_mtim);
    code = code ? code : for_each_record(&import, take_record);
    if (!code)
        code = write_all(&import, directory);
    if (!code)
        note_all(&import, model);
    for (size_t i = 0; i < import.n_processes; i++)
        perf_process_fini(&import.processes[i]);
    free(import.processes);
    free(import.events);
    perf_files_fini(&import.files);
    perf_data_fini(&import.data);
    return code;
}
