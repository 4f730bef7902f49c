/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of a process: the runtime's messages, who owns the allocator, what was not recorded, and the counters over
 * all threads. Ordinary code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/profile.h"
#include "fmt/file.h"
#include "fmt/log.h"

static void write_messages(const struct collected_process *process, struct buf *out)
{
    const struct arena_header *header = process->view->header;
    uint32_t len_bytes = __atomic_load_n((const uint32_t *)&header->log_len_bytes, __ATOMIC_ACQUIRE);
    const char *line = header->log, *end = line + (len_bytes < sizeof header->log ? len_bytes : sizeof header->log);
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        char text[1024];
        (void)snprintf(text, sizeof text, "%.*s", (int)(line_end - line), line);
        if (*text)
            log_write_message(out, process->name.pid, -1, text);
        line = line_end + 1;
    }
}

static int compare_debug(const void *a, const void *b)
{
    const struct arena_debug *x = *(const struct arena_debug *const *)a, *y = *(const struct arena_debug *const *)b;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void write_debug_line(const struct collected_process *process, const struct arena_debug *line, struct buf *out)
{
    const struct arena_header *header = process->view->header;
    const char *domain = debug_domain_name(line->domain);
    uint32_t len = __atomic_load_n((const uint16_t *)&line->len_bytes, __ATOMIC_ACQUIRE);
    len = len < sizeof line->text ? len : sizeof line->text;
    double t_s = ((double)line->t_ns - (double)header->start_mono_ns) / 1e9;
    char text[sizeof line->text + 64];
    const struct fate_row *fate = line->fate ? fate_row(line->fate - 1) : NULL;
    (void)snprintf(text, sizeof text, "debug %.6f %s: %.*s%s%s", t_s, domain ? domain : "?", (int)len, line->text,
                   fate ? " fate=" : "", fate ? fate->name : "");
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    log_write_message(out, process->name.pid, line->tid, text);
}

/* What HPCRUN_DEBUG asked for, in the order of time. */
static bool write_debug(const struct collected_process *process, struct buf *out)
{
    struct record_walk walk = {.kind = ARENA_DEBUG, .record_bytes = sizeof(struct arena_debug)};
    const struct arena_debug **lines = NULL, *line;
    uint32_t n_lost = __atomic_load_n((const uint32_t *)&process->view->header->n_debug_lost, __ATOMIC_RELAXED);
    size_t n = 0, capacity = 0;
    bool ok = true;
    while (ok && (line = view_next(process->view, &walk)))
        if (line->len_bytes && (ok = vec_reserve(&lines, &capacity, n + 1, sizeof(void *))))
            lines[n++] = line;
    if (n)
        qsort(lines, n, sizeof(void *), compare_debug);
    for (size_t i = 0; ok && i < n; i++)
        write_debug_line(process, lines[i], out);
    char text[96];
    (void)snprintf(text, sizeof text, "debug: there was no room for %u lines more", n_lost);
    if (n_lost)
        log_write_message(out, process->name.pid, -1, text);
    free(lines);
    return ok;
}

static void write_blocks(const struct collected_process *process, struct buf *out)
{
    const struct arena_header *header = process->view->header;
    char text[512];
    uint64_t n_unrecorded = 0;
    for (size_t i = 0; i < sizeof header->n_alloc_unrecorded / sizeof *header->n_alloc_unrecorded; i++)
        n_unrecorded += view_count(&header->n_alloc_unrecorded[i]);
    (void)snprintf(text, sizeof text,
                   "blocks: %llu recorded (%llu bytes), %llu of them not freed (%llu bytes), %llu more not recorded",
                   (unsigned long long)view_count(&header->n_blocks_recorded),
                   (unsigned long long)view_count(&header->bytes_recorded), (unsigned long long)process->n_blocks_live,
                   (unsigned long long)process->bytes_live, (unsigned long long)n_unrecorded);
    log_write_message(out, process->name.pid, -1, text);
}

/* When there are very many threads, they share records, and so files. */
static void write_merged(const struct collected_process *process, struct buf *out)
{
    char text[128];
    uint64_t n_merged = 0;
    for (size_t i = 0; i < process->n_threads; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        n_merged += record ? __atomic_load_n((const uint32_t *)&record->n_merged, __ATOMIC_RELAXED) : 0;
    }
    if (!n_merged)
        return;
    (void)snprintf(text, sizeof text, "threads: %llu, in %llu profiles: many continued that of one that had ended",
                   (unsigned long long)(process->n_threads + n_merged), (unsigned long long)process->n_threads);
    log_write_message(out, process->name.pid, -1, text);
}

/* Events that could not be opened, for lack of descriptors or permission. */
static void write_unopened(const struct collected_process *process, struct buf *out)
{
    const struct arena_header *header = process->view->header;
    char text[192];
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        uint32_t n_timers = __atomic_load_n((const uint32_t *)&header->n_on_timer[i], __ATOMIC_RELAXED);
        if (n_timers) {
            (void)snprintf(text, sizeof text, "event %.63s: a timer replaces it on %u thread%s, with fewer samples",
                           header->events[i].name, n_timers, n_timers > 1 ? "s" : "");
            log_write_message(out, process->name.pid, -1, text);
        }
        uint32_t n = __atomic_load_n((const uint32_t *)&header->n_unopened[i], __ATOMIC_RELAXED);
        if (!n)
            continue;
        (void)snprintf(text, sizeof text, "event %.63s could not be opened on %u thread%s: samples are missing there",
                       header->events[i].name, n, n > 1 ? "s" : "");
        log_write_message(out, process->name.pid, -1, text);
    }
}

void process_count_watches(const struct collected_process *process, struct watch_counts *counts)
{
    const struct arena_header *header = process->view->header;
    *counts = (struct watch_counts){
        .n_full = __atomic_load_n((const uint32_t *)&header->n_watch_full, __ATOMIC_RELAXED),
        .n_refused = __atomic_load_n((const uint32_t *)&header->n_watch_refused, __ATOMIC_RELAXED),
        .error = __atomic_load_n((const int32_t *)&header->watch_errno, __ATOMIC_RELAXED),
        .is_released = __atomic_load_n((const uint32_t *)&header->is_watch_released, __ATOMIC_RELAXED) != 0};
    for (size_t i = 0; i < process->n_threads; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        counts->n_watches += record ? view_count(&record->n_watches) : 0;
        counts->n_lost += record ? view_count(&record->n_meetings_lost) : 0;
    }
}

/* How often threads watched cache lines, and why some did not. */
static void write_watches(const struct collected_process *process, struct buf *out)
{
    struct watch_counts counts;
    char text[192];
    if (!process->view->header->watches_per_s)
        return;
    process_count_watches(process, &counts);
    (void)snprintf(text, sizeof text,
                   "sharing: threads watched lines %llu times; there was no room for %llu of the results",
                   (unsigned long long)counts.n_watches, (unsigned long long)counts.n_lost);
    log_write_message(out, process->name.pid, -1, text);
    (void)snprintf(text, sizeof text,
                   "sharing: %u thread%s watched no lines: the program or a debugger uses the breakpoints",
                   counts.n_full, counts.n_full == 1 ? "" : "s");
    if (counts.n_full)
        log_write_message(out, process->name.pid, -1, text);
    (void)snprintf(text, sizeof text, "sharing: %u thread%s watched no lines: the kernel refuses breakpoints: %s",
                   counts.n_refused, counts.n_refused == 1 ? "" : "s", strerror(counts.error));
    if (counts.n_refused)
        log_write_message(out, process->name.pid, -1, text);
    if (counts.is_released)
        log_write_message(out, process->name.pid, -1,
                          "sharing: the program asked for breakpoints of its own: no lines were watched after that");
}

static void write_children(const struct collected_process *process, struct buf *out)
{
    const struct arena_header *header = process->view->header;
    uint32_t n = __atomic_load_n((const uint32_t *)&header->n_children_lost, __ATOMIC_RELAXED);
    char text[128];
    (void)snprintf(text, sizeof text, "children: %u %s not measured (see the index of the host)", n,
                   n == 1 ? "was" : "were");
    if (n)
        log_write_message(out, process->name.pid, -1, text);
}

static void write_python(const struct collected_process *process, struct buf *out)
{
    char text[160];
    uint64_t n = view_count(&process->view->header->n_python_lost);
    (void)snprintf(text, sizeof text,
                   "Python: %llu block%s named by native code, for lack of room for more lines of code",
                   (unsigned long long)n, n == 1 ? " is" : "s are");
    if (n)
        log_write_message(out, process->name.pid, -1, text);
    n = view_count(&process->view->header->n_python_unfit);
    (void)snprintf(text, sizeof text, "Python: %llu sample%s without Python code, as the interpreter was in between",
                   (unsigned long long)n, n == 1 ? " is" : "s are");
    if (n)
        log_write_message(out, process->name.pid, -1, text);
}

static void write_regions(const struct collected_process *process, struct buf *out)
{
    static const char *const sentences[REGION_FAULTS] = {
        [REGION_TOO_DEEP] = "entered more than 64 deep: their samples went to the region at that depth",
        [REGION_NAMELESS] = "without a name, or beyond the room for names: their samples went to the enclosing region",
        [REGION_NOT_ENTERED] = "left without having been entered",
        [REGION_LEFT_OPEN] = "not left when their thread ended",
    };
    for (int i = 0; i < REGION_FAULTS; i++) {
        char text[160];
        uint64_t n = view_count(&process->view->header->n_region_faults[i]);
        (void)snprintf(text, sizeof text, "regions: %llu %s", (unsigned long long)n, sentences[i]);
        if (n)
            log_write_message(out, process->name.pid, -1, text);
    }
}

static void add_left_out(const struct arena_thread *record, uint32_t i, struct log_event *event)
{
    event->taken += view_count(&record->taken[i]);
    event->fates[FATE_DROP_MAX_SIZE] += view_count(&record->taken[i]);
}

static void write_left_out(const struct collected_process *process, struct buf *out)
{
    const struct left_out *left_out = &process->left_out;
    const uint64_t counts[] = {left_out->n_nodes, left_out->n_variables, left_out->n_lists, left_out->n_trace_records,
                               left_out->n_threads};
    static const char *const texts[] = {"nodes of call paths, whose values their callers have",
                                        "variables, whose values their groups have",
                                        "variables' CPUs, stack offsets and latencies", "samples of the log",
                                        "threads, whose samples count as dropped-max-size"};
    struct buf text = {0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i])
            buf_printf(&text, "%s%llu %s", text.len_bytes ? "; " : "", (unsigned long long)counts[i], texts[i]);
    if (text.len_bytes) {
        struct buf line = {0};
        buf_printf(&line, "left out, because the files of a process may have %llu bytes (--max-size): %s",
                   (unsigned long long)process->context->max_bytes, text.data);
        log_write_message(out, process->name.pid, -1, line.data ? line.data : "");
        buf_fini(&line);
    }
    buf_fini(&text);
}

static void write_thinned(const struct collected_process *process, struct buf *out)
{
    char text[160];
    uint64_t n_traced = 0, n_untraced = 0, n_kept = process->n_logged;
    unsigned long long stride = (uint64_t)1 << arena_trace_min_level(process->view->header);
    for (size_t i = 0; i < process->n_threads; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        n_traced += record ? view_count(&record->n_traced) : 0;
        n_untraced += record ? view_count(&record->n_untraced) : 0;
    }
    n_kept = n_kept + n_untraced < n_traced ? n_kept + n_untraced : n_traced;
    (void)snprintf(
        text, sizeof text,
        "the log of samples was full (--trace-size): it has one of %llu samples, %llu are only in the profiles", stride,
        (unsigned long long)(n_traced - n_kept));
    if (stride > 1)
        log_write_message(out, process->name.pid, -1, text);
    (void)snprintf(text, sizeof text, "the log of samples had no room for %llu samples, which are only in the profiles",
                   (unsigned long long)n_untraced);
    if (n_untraced)
        log_write_message(out, process->name.pid, -1, text);
}

static bool add_thread(const struct collected_process *process, const struct arena_thread *record, bool is_left_out,
                       struct log_summary *summary)
{
    for (uint32_t i = 0; i < process->view->n_events; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.63s", process->view->header->events[i].name);
        struct log_event *event = log_event_named(summary, name);
        if (!event)
            return false;
        if (is_left_out) {
            add_left_out(record, i, event);
            continue;
        }
        event->taken += view_count(&record->taken[i]);
        event->overflows += view_count(&record->overflows[i]);
        for (int fate = 0; fate < FATE_MAX; fate++)
            event->fates[fate] += view_count(&record->fates[i][fate]);
        event->enabled_ns += view_count(&record->enabled_ns[i]);
        event->running_ns += view_count(&record->running_ns[i]);
        event->n_throttles += view_count(&record->n_throttles[i]);
        event->n_no_metric += view_count(&record->n_no_metric[i]);
        event->n_truncated += view_count(&record->n_truncated[i]);
        event->n_collisions += view_count(&record->n_collisions[i]);
        event->n_spared += view_count(&record->n_spared[i]);
    }
    summary->frames += view_count(&record->n_frames);
    summary->unwind_frames += view_count(&record->n_frames);
    /* Stop 0 is the outermost frame: all others ended early. */
    for (size_t i = 0; i < sizeof record->unwind_stops / sizeof record->unwind_stops[0]; i++) {
        summary->unwind_samples += view_count(&record->unwind_stops[i]);
        summary->unwind_errant += i ? view_count(&record->unwind_stops[i]) : 0;
    }
    return true;
}

static bool write_counters(const struct collected_process *process, struct buf *out)
{
    struct log_summary summary = {.n_logs = 1, .n_complete = 1};
    bool is_complete = true;
    for (size_t i = 0; i < process->n_threads && is_complete; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        is_complete = !record || add_thread(process, record, i >= process->n_written_threads, &summary);
    }
    log_count_events(&summary);
    log_write_summary(&summary, out);
    log_fini(&summary);
    return is_complete;
}

int process_write_log(struct collected_process *process, struct error *err)
{
    struct buf text = {0};
    struct names_file name = process->name;
    name.thread = 0;
    (void)snprintf(name.suffix, sizeof name.suffix, "log");
    char *path = names_path(process->context->dir, &name);
    int code = 0;
    write_messages(process, &text);
    process_write_allocators(process, &text);
    write_blocks(process, &text);
    write_merged(process, &text);
    write_unopened(process, &text);
    write_watches(process, &text);
    write_children(process, &text);
    write_python(process, &text);
    write_regions(process, &text);
    bool ok = write_debug(process, &text);
    if (process->context->note && process->context->note[0])
        log_write_message(&text, process->name.pid, -1, process->context->note);
    write_thinned(process, &text);
    write_left_out(process, &text);
    if (!path || !ok || !write_counters(process, &text) || text.failed)
        code = error_set(err, ERR_MEMORY, "Out of memory for the log of a process.");
    if (!code)
        code = file_replace(path, text.data, text.len_bytes, err);
    if (!code)
        process->n_files++;
    buf_fini(&text);
    free(path);
    return code;
}
