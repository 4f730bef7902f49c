/* SPDX-License-Identifier: BSD-3-Clause */
/* The side file of one thread, from its record in the arena and the variables of its tree. Ordinary code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect-internal.h"
#include "fmt/file.h"

/* Everything that the rows point to; the arena's own strings may lack their ends. */
struct side {
    struct objects_file file;
    struct objects_event events[ARENA_EVENTS_MAX];
    char metrics[ARENA_EVENTS_MAX][64], names[ARENA_EVENTS_MAX][64];
    char exe[ARENA_PATH_MAX];
};

static uint64_t load(const _Atomic uint64_t *value)
{
    return __atomic_load_n((const uint64_t *)value, __ATOMIC_RELAXED);
}

/* A process that was killed, still runs or became another program by exec leaves samples that wait for their recipe or
 * whose handler is under way. */
static void fill_undecided(struct objects_event *event)
{
    uint64_t n_decided = 0;
    for (int fate = 0; fate < FATE_TAKEN_MAX; fate++)
        n_decided += event->fates[fate];
    if (event->taken > n_decided)
        event->fates[FATE_DROP_NO_RECIPE] += event->taken - n_decided;
}

/* Samples of threads without files have their fate in the first thread's. */
static void fill_left_out(const struct process *process, struct objects_event *event, uint32_t i)
{
    for (size_t t = process->n_written_threads; t < process->n_threads; t++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[t], ARENA_THREADS, sizeof *record);
        uint64_t n_taken = record ? load(&record->taken[i]) : 0;
        event->taken += n_taken;
        event->fates[FATE_DROP_MAX_SIZE] += n_taken;
    }
}

static void fill_event(struct side *side, const struct thread *thread, uint32_t i)
{
    const struct arena_event *from = &thread->process->view->header->events[i];
    struct objects_event *event = &side->events[i];
    (void)snprintf(side->metrics[i], sizeof side->metrics[i], "%.63s", from->metric);
    (void)snprintf(side->names[i], sizeof side->names[i], "%.63s", from->name);
    *event = (struct objects_event){.metric = side->metrics[i],
                                    .name = side->names[i],
                                    .scale = from->scale,
                                    .taken = load(&thread->record->taken[i]),
                                    .overflows = load(&thread->record->overflows[i]),
                                    .enabled_ns = load(&thread->record->enabled_ns[i]),
                                    .running_ns = load(&thread->record->running_ns[i]),
                                    .n_throttles = load(&thread->record->n_throttles[i]),
                                    .n_no_metric = load(&thread->record->n_no_metric[i]),
                                    .n_truncated = load(&thread->record->n_truncated[i]),
                                    .n_collisions = load(&thread->record->n_collisions[i]),
                                    .has_data_source = (from->flags & EVENT_DATA_SRC) != 0,
                                    .has_address = (from->flags & EVENT_ADDRESS) != 0,
                                    .is_user_only = from->attr.exclude_kernel && !(from->flags & EVENT_TIMER)};
    for (int fate = 0; fate < FATE_MAX; fate++)
        event->fates[fate] = load(&thread->record->fates[i][fate]);
    if (atomic_load(&thread->process->view->header->state) != ARENA_ENDED)
        fill_undecided(event);
    if (thread->ref == thread->process->threads[0])
        fill_left_out(thread->process, event, i);
}

static void fill_thread(struct side *side, const struct thread *thread)
{
    const struct arena_header *header = thread->process->view->header;
    const struct arena_thread *record = thread->record;
    (void)snprintf(side->exe, sizeof side->exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    side->file.exe = side->exe;
    side->file.pid = thread->process->name.pid;
    side->file.tid = record->tid;
    side->file.thread_id = record->id;
    side->file.rank = thread->process->name.rank;
    side->file.start_ns = record->start_ns;
    side->file.end_ns = record->end_ns ? record->end_ns : load(&header->end_ns);
    side->file.cpu_time_ns = load(&record->cpu_time_ns);
    side->file.user_ns = load(&record->user_ns);
    side->file.system_ns = load(&record->system_ns);
    side->file.n_frames = load(&record->n_frames);
    for (size_t i = 0; i < sizeof side->file.unwind_stops / sizeof side->file.unwind_stops[0]; i++)
        side->file.unwind_stops[i] = load(&record->unwind_stops[i]);
    side->file.min_bytes = header->min_bytes;
    side->file.sample_bytes = header->sample_bytes;
    side->file.mark_ns = load(&header->mark_ns);
    if (thread->ref == thread->process->threads[0])
        side->file.note = process_note(thread->process);
    side->file.events = side->events;
    side->file.n_events = thread->process->view->n_events;
    for (uint32_t i = 0; i < thread->process->view->n_events; i++)
        fill_event(side, thread, i);
}

/* The file only reads the context's texts. */
static char *borrowed(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void fill_context(struct side *side, const struct collect_context *context)
{
    side->file.host = borrowed(context->host);
    side->file.plan = borrowed(context->plan);
    side->file.skid = borrowed(context->skid_json);
    side->file.state = borrowed(context->state);
    side->file.birth = context->birth;
    side->file.topology = borrowed(context->topology);
}

static bool fill_variables(struct side *side, const struct thread *thread)
{
    side->file.variables = calloc(thread->n_variables + 1, sizeof *side->file.variables);
    if (!side->file.variables)
        return false;
    for (size_t i = 0; i < thread->n_variables; i++) {
        side->file.variables[i] = thread->variables[i].row;
        side->file.variables[i].node = (uint32_t)thread_node_id(thread, thread->variables[i].row.node);
    }
    side->file.n_variables = thread->n_variables;
    return true;
}

static bool fill_placeholders(struct side *side, const struct thread *thread)
{
    const struct arena_header *header = thread->process->view->header;
    const struct view_module *module = view_module_at(thread->process->view, header->libhpcrun_module);
    side->file.placeholders = calloc(PLACEHOLDER_MAX, sizeof *side->file.placeholders);
    if (!side->file.placeholders)
        return false;
    for (unsigned i = 0; module && i < PLACEHOLDER_MAX; i++) {
        if (!header->placeholders[i])
            continue;
        side->file.placeholders[side->file.n_placeholders].ip = header->placeholders[i] - module->bias + 1;
        side->file.placeholders[side->file.n_placeholders++].name = borrowed(placeholder_name(i));
    }
    return true;
}

/* The builds of the files in the load map, so that readers can tell whether they have the same. */
static bool fill_modules(struct side *side, const struct thread *thread)
{
    const struct view *view = thread->process->view;
    side->file.modules = calloc(thread->modules.n_strings + 1, sizeof *side->file.modules);
    if (!side->file.modules)
        return false;
    for (size_t i = 0; i < thread->modules.n_strings; i++) {
        const struct view_module *found = NULL;
        for (size_t k = 0; k < view->n_modules && !found; k++)
            if (strcmp(view->modules[k].path, thread->modules.strings[i]) == 0)
                found = &view->modules[k];
        if (found && found->table_id && found->path[0] == '/')
            side->file.modules[side->file.n_modules++] =
                (struct objects_module){found->table_id, borrowed(found->path)};
    }
    return true;
}

static int write_bounded(struct process *process, struct objects_file *file, const char *path, uint64_t max_bytes,
                         uint64_t *n_bytes, struct error *err)
{
    struct buf text = {0};
    uint64_t n_details = 0;
    int code = objects_write_memory(file, &text, err);
    while (!code && text.len_bytes > max_bytes && process_bound_side(process, file, &n_details)) {
        text.len_bytes = 0;
        code = objects_write_memory(file, &text, err);
    }
    if (!code)
        code = file_replace(path, text.data, text.len_bytes, err);
    *n_bytes = text.len_bytes;
    buf_fini(&text);
    return code;
}

int thread_write_objects(const struct thread *thread, const char *path, uint64_t max_bytes, uint64_t *n_bytes,
                         struct error *err)
{
    struct side *side = calloc(1, sizeof *side);
    int code = ERR_MEMORY;
    if (side) {
        fill_thread(side, thread);
        fill_context(side, thread->process->context);
        side->file.regions = thread->regions;
        side->file.n_regions = thread->n_regions;
        if (fill_variables(side, thread) && fill_placeholders(side, thread) && fill_modules(side, thread) &&
            thread_kernel_functions(thread, &side->file.kernel, &side->file.n_kernel) &&
            thread_jit_functions(thread, &side->file.jit, &side->file.n_jit))
            code = write_bounded(thread->process, &side->file, path, max_bytes, n_bytes, err);
        else
            code = error_set(err, ERR_MEMORY, "Out of memory for the side file of a thread.");
        free(side->file.variables);
        free(side->file.placeholders);
        free(side->file.modules);
        free(side->file.kernel);
        free(side->file.jit);
        free(side->file.note);
    }
    free(side);
    return code;
}
