/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduler records as text and JSON: see sched.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/sched.h"

/* --- as text --- */

static void put_hex(struct buf *out, const unsigned char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        buf_printf(out, "%02x", bytes[i]);
}

/* The name of a tracepoint's event: its id is its first two bytes, in the order of the machine that recorded it. */
static const char *name_of(const struct sched_file *file, const unsigned char *payload)
{
    for (size_t i = 0; i < file->n_formats; i++)
        if (file->formats[i].id == (unsigned)(payload[0] | payload[1] << 8) ||
            file->formats[i].id == (unsigned)(payload[1] | payload[0] << 8))
            return file->formats[i].name;
    return "?";
}

static void put_event_text(const struct sched_file *file, const struct sched_event *event, struct buf *out)
{
    struct sched_switch what;
    buf_printf(out, "  [(time: %" PRIu64 ") (cpu: %u)", event->t_ns, event->cpu);
    if (sched_event_switch(file, event, &what)) {
        buf_printf(out, " (%s: %" PRIu32 ")", what.flags & SCHED_OUT ? "out" : "in", what.tid);
        if (what.other != SCHED_NO_TID)
            buf_printf(out, " (%s: %" PRIu32 ")", what.flags & SCHED_OUT ? "next" : "previous", what.other);
        buf_printf(out, "%s%s", what.flags & SCHED_PREEMPT ? " (preempted)" : "",
                   what.flags & SCHED_GONE ? " (ended)" : "");
    } else {
        buf_printf(out, " (event: %s) (bytes: ", name_of(file, sched_event_bytes(file, event)));
        put_hex(out, sched_event_bytes(file, event), event->n_bytes);
        buf_append(out, ")", 1);
    }
    buf_append(out, "]\n", 2);
}

static void put_head_text(const struct sched_file *file, struct buf *out)
{
    const struct sched_head *head = &file->head;
    buf_printf(out, SCHED_BEGINS "\n[hdr:\n  (version: " SCHED_VERSION ")\n  (endian: b)\n");
    buf_printf(out, "  (tier: %u, %s)\n", head->tier, sched_tier_name(head->tier));
    if (head->why[0])
        buf_printf(out, "  (no better one: %s)\n", head->why);
    buf_printf(out, "  (threads: %s)\n", head->has_all ? "all" : "of the program");
    buf_printf(out, "  (wall-clock: %" PRId64 ")\n  (program: %" PRIu32 ")\n", head->wall_ns, head->pid);
    buf_printf(out, "  (cpus: %" PRIu32 ", online: %s)\n", head->n_cpus, head->online);
    buf_printf(out, "  (host: %s)\n  (boot: %s)\n  (kernel: %s)\n", head->host, head->boot_id, head->kernel);
    buf_printf(out, "  (limit: %" PRIu64 ")\n]\n", head->limit_bytes);
}

static void put_lists_text(const struct sched_file *file, struct buf *out)
{
    for (size_t i = 0; i < file->n_formats; i++)
        buf_printf(out, "[format: %s/%s (id: %" PRIu32 ")]\n%s\n", file->formats[i].system, file->formats[i].name,
                   file->formats[i].id, file->formats[i].text);
    for (size_t i = 0; i < file->n_tasks; i++) {
        const struct sched_task *task = &file->tasks[i];
        buf_printf(out, "[thread: %" PRIu32 " %s (time: %" PRIu64 ") (process: %" PRIu32 ")%s]\n", task->tid,
                   task->comm, task->t_ns, task->pid, task->is_own ? "" : " (not the program's)");
    }
    for (size_t i = 0; i < file->n_totals; i++) {
        const struct sched_total *total = &file->totals[i];
        buf_printf(out, "[total: %" PRIu32 " (time: %" PRIu64 ") (process: %" PRIu32 ") (cpu: %u)", total->tid,
                   total->t_ns, total->pid, total->cpu);
        if (total->has_schedstat)
            buf_printf(out, " (ran: %" PRIu64 ") (waited: %" PRIu64 ") (slices: %" PRIu64 ")", total->run_ns,
                       total->wait_ns, total->n_slices);
        buf_printf(out, " (switches: %" PRIu64 " voluntary, %" PRIu64 " not)]\n", total->n_voluntary,
                   total->n_involuntary);
    }
    for (size_t i = 0; i < file->n_lost; i++)
        buf_printf(out, "[lost: %" PRIu64 " (time: %" PRIu64 ") (cpu: %u)]\n", file->lost[i].n, file->lost[i].t_ns,
                   file->lost[i].cpu);
}

void sched_put_text(const struct sched_file *file, struct buf *out)
{
    put_head_text(file, out);
    put_lists_text(file, out);
    buf_printf(out, "[events: (num-records: %zu)\n", file->n_events);
    for (size_t i = 0; i < file->n_events; i++)
        put_event_text(file, &file->events[i], out);
    buf_append(out, "]\n", 2);
    if (file->has_end)
        buf_printf(out,
                   "[end: (events: %" PRIu64 ") (left-out: %" PRIu64 ") (full-at: %" PRIu64 ") (lost: %" PRIu64 ")]\n",
                   file->end.n_events, file->end.n_left_out, file->end.t_full_ns, file->end.n_lost);
    else
        buf_printf(out, "[the recorder did not finish: %zu bytes follow the last whole chunk]\n",
                   file->n_unfinished_bytes);
}

/* --- as JSON --- */

static void put_head_json(const struct sched_head *head, struct buf *out)
{
    buf_printf(out, "{\"format\": \"locus-sched\", \"version\": \"" SCHED_VERSION "\"");
    json_put_word_at(out, "tier", head->tier);
    json_put_word_at(out, "all_threads", head->has_all);
    json_put_word_at(out, "wall_ns", (uint64_t)head->wall_ns);
    json_put_word_at(out, "limit_bytes", head->limit_bytes);
    json_put_word_at(out, "cpus", head->n_cpus);
    json_put_word_at(out, "pid", head->pid);
    json_put_text_at(out, "online", head->online);
    json_put_text_at(out, "host", head->host);
    json_put_text_at(out, "boot_id", head->boot_id);
    json_put_text_at(out, "kernel", head->kernel);
    json_put_text_at(out, "why", head->why);
}

static void put_formats_json(const struct sched_file *file, struct buf *out)
{
    buf_printf(out, ",\n\"formats\": [");
    for (size_t i = 0; i < file->n_formats; i++) {
        buf_printf(out, i ? ",\n  {" : "\n  {");
        json_put_key(out, "id", 1);
        json_put_word(out, file->formats[i].id);
        json_put_text_at(out, "system", file->formats[i].system);
        json_put_text_at(out, "name", file->formats[i].name);
        json_put_text_at(out, "text", file->formats[i].text);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "],\n\"threads\": [");
    for (size_t i = 0; i < file->n_tasks; i++) {
        buf_printf(out, i ? ",\n  {" : "\n  {");
        json_put_key(out, "t_ns", 1);
        json_put_word(out, file->tasks[i].t_ns);
        json_put_word_at(out, "tid", file->tasks[i].tid);
        json_put_word_at(out, "pid", file->tasks[i].pid);
        json_put_word_at(out, "own", file->tasks[i].is_own);
        json_put_text_at(out, "comm", file->tasks[i].comm);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_events_json(const struct sched_file *file, struct buf *out)
{
    buf_printf(out, ",\n\"events\": [");
    for (size_t i = 0; i < file->n_events; i++) {
        const struct sched_event *event = &file->events[i];
        buf_printf(out, i ? ",\n  [" : "\n  [");
        json_put_word(out, event->t_ns);
        buf_printf(out, ", %u, %u, \"", event->cpu, event->kind);
        put_hex(out, sched_event_bytes(file, event), event->n_bytes);
        buf_append(out, "\"]", 2);
    }
    buf_append(out, "]", 1);
}

enum { N_TOTAL = 10, N_LOST = 3 };

static void put_numbers_json(const struct sched_file *file, struct buf *out)
{
    buf_printf(out, ",\n\"lost\": [");
    for (size_t i = 0; i < file->n_lost; i++) {
        const uint64_t words[N_LOST] = {file->lost[i].t_ns, file->lost[i].n, file->lost[i].cpu};
        buf_printf(out, i ? ",\n  " : "\n  ");
        json_put_words(out, words, N_LOST);
    }
    buf_printf(out, "],\n\"totals\": [");
    for (size_t i = 0; i < file->n_totals; i++) {
        const struct sched_total *total = &file->totals[i];
        const uint64_t words[N_TOTAL] = {total->t_ns,        total->run_ns,        total->wait_ns, total->n_slices,
                                         total->n_voluntary, total->n_involuntary, total->tid,     total->pid,
                                         total->cpu,         total->has_schedstat};
        buf_printf(out, i ? ",\n  " : "\n  ");
        json_put_words(out, words, N_TOTAL);
    }
    buf_printf(out, "],\n\"end\": ");
    const uint64_t end[] = {file->end.n_events, file->end.n_left_out, file->end.t_full_ns, file->end.n_lost};
    json_put_words(out, end, file->has_end ? 4 : 0);
    buf_printf(out, ",\n\"order\": ");
    json_put_words(out, file->order, file->n_order);
}

void sched_put_json(const struct sched_file *file, struct buf *out)
{
    put_head_json(&file->head, out);
    put_formats_json(file, out);
    put_events_json(file, out);
    put_numbers_json(file, out);
    buf_append(out, "}\n", 2);
}

static void take_head(struct json_take *take, const json_t *root, struct sched_head *head)
{
    head->tier = (uint8_t)json_take_word_at(take, root, "tier", SCHED_TIER_NONE);
    head->has_all = json_take_word_at(take, root, "all_threads", 1) != 0;
    head->wall_ns = (int64_t)json_take_word_at(take, root, "wall_ns", UINT64_MAX);
    head->limit_bytes = json_take_word_at(take, root, "limit_bytes", UINT64_MAX);
    head->n_cpus = (uint32_t)json_take_word_at(take, root, "cpus", UINT16_MAX);
    head->pid = (uint32_t)json_take_word_at(take, root, "pid", UINT32_MAX);
    head->online = json_take_text_needed_at(take, root, "online");
    head->host = json_take_text_needed_at(take, root, "host");
    head->boot_id = json_take_text_needed_at(take, root, "boot_id");
    head->kernel = json_take_text_needed_at(take, root, "kernel");
    head->why = json_take_text_needed_at(take, root, "why");
    if (!take->code && head->tier == 0)
        json_take_fail(take, ERR_FORMAT, "tier", "1 to 4 is expected");
}

static void take_formats(struct json_take *take, const json_t *root, struct sched_file *file)
{
    size_t n = 0;
    const json_t *items = json_take_array_at(take, root, "formats", &n);
    file->formats = json_take_alloc(take, n, sizeof *file->formats);
    file->n_formats = file->formats ? n : 0;
    take->where = "formats";
    for (take->index = 0; take->index < file->n_formats && !take->code; take->index++) {
        const json_t *item = json_array_get(items, take->index);
        struct sched_format *format = &file->formats[take->index];
        format->id = (uint32_t)json_take_word_at(take, item, "id", UINT32_MAX);
        format->system = json_take_text_needed_at(take, item, "system");
        format->name = json_take_text_needed_at(take, item, "name");
        format->text = json_take_text_needed_at(take, item, "text");
        json_take_end(take, item, 4);
    }
    take->where = NULL;
}

static void take_tasks(struct json_take *take, const json_t *root, struct sched_file *file)
{
    size_t n = 0;
    const json_t *items = json_take_array_at(take, root, "threads", &n);
    file->tasks = json_take_alloc(take, n, sizeof *file->tasks);
    file->n_tasks = file->tasks ? n : 0;
    take->where = "threads";
    for (take->index = 0; take->index < file->n_tasks && !take->code; take->index++) {
        const json_t *item = json_array_get(items, take->index);
        struct sched_task *task = &file->tasks[take->index];
        task->t_ns = json_take_word_at(take, item, "t_ns", UINT64_MAX);
        task->tid = (uint32_t)json_take_word_at(take, item, "tid", UINT32_MAX);
        task->pid = (uint32_t)json_take_word_at(take, item, "pid", UINT32_MAX);
        task->is_own = json_take_word_at(take, item, "own", 1) != 0;
        task->comm = json_take_text_needed_at(take, item, "comm");
        json_take_end(take, item, 5);
    }
    take->where = NULL;
}

static unsigned digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (unsigned)(at - digits) : 16;
}

/* Appends the bytes that the hexadecimal digits stand for. */
static uint16_t take_hex(struct json_take *take, const char *text, struct buf *out)
{
    size_t n = text ? strlen(text) : 1;
    if (n % 2 || n / 2 > UINT16_MAX) {
        json_take_fail(take, ERR_FORMAT, "bytes", "pairs of hexadecimal digits are expected");
        return 0;
    }
    for (size_t i = 0; i < n && !take->code; i += 2) {
        unsigned high = digit_of(text[i]), low = digit_of(text[i + 1]);
        unsigned char byte = (unsigned char)(high << 4 | low);
        if (high > 15 || low > 15)
            json_take_fail(take, ERR_FORMAT, "bytes", "pairs of hexadecimal digits are expected");
        buf_append(out, &byte, 1);
    }
    if (out->failed)
        json_take_fail(take, ERR_MEMORY, "bytes", "out of memory");
    return (uint16_t)(n / 2);
}

static void take_event(struct json_take *take, const json_t *item, struct sched_file *file, struct sched_event *event)
{
    if (json_array_size(item) != 4)
        json_take_fail(take, ERR_FORMAT, "an event", "[time, CPU, kind, bytes] is expected");
    event->t_ns = json_take_word(take, json_array_get(item, 0), UINT64_MAX, "time");
    event->cpu = (uint16_t)json_take_word(take, json_array_get(item, 1), UINT16_MAX, "CPU");
    event->kind = (uint8_t)json_take_word(take, json_array_get(item, 2), SCHED_SWITCH, "kind");
    event->at = file->payload.len_bytes;
    event->n_bytes = take_hex(take, json_string_value(json_array_get(item, 3)), &file->payload);
    if (!take->code && (event->cpu >= file->head.n_cpus || event->kind == 0 ||
                        (event->kind == SCHED_RAW ? event->n_bytes < 8 : event->n_bytes != SCHED_SWITCH_BYTES)))
        json_take_fail(take, ERR_RANGE, "an event", "its CPU, kind or length is none that a file may have");
}

static void take_numbers(struct json_take *take, const json_t *root, struct sched_file *file)
{
    uint64_t words[N_TOTAL] = {0};
    size_t n_lost = 0, n_totals = 0;
    const json_t *lost = json_take_array_at(take, root, "lost", &n_lost);
    file->lost = json_take_alloc(take, n_lost, sizeof *file->lost);
    file->n_lost = file->lost ? n_lost : 0;
    for (size_t i = 0; i < file->n_lost && !take->code; i++) {
        for (size_t k = 0; k < N_LOST; k++)
            words[k] = json_take_word(take, json_array_get(json_array_get(lost, i), k), UINT64_MAX, "lost");
        file->lost[i] = (struct sched_lost){words[0], words[1], (uint16_t)words[2]};
    }
    const json_t *totals = json_take_array_at(take, root, "totals", &n_totals);
    file->totals = json_take_alloc(take, n_totals, sizeof *file->totals);
    file->n_totals = file->totals ? n_totals : 0;
    for (size_t i = 0; i < file->n_totals && !take->code; i++) {
        for (size_t k = 0; k < N_TOTAL; k++)
            words[k] = json_take_word(take, json_array_get(json_array_get(totals, i), k), UINT64_MAX, "totals");
        file->totals[i] = (struct sched_total){.t_ns = words[0],
                                               .run_ns = words[1],
                                               .wait_ns = words[2],
                                               .n_slices = words[3],
                                               .n_voluntary = words[4],
                                               .n_involuntary = words[5],
                                               .tid = (uint32_t)words[6],
                                               .pid = (uint32_t)words[7],
                                               .cpu = (uint16_t)words[8],
                                               .has_schedstat = words[9] != 0};
    }
}

static void take_end(struct json_take *take, const json_t *root, struct sched_file *file)
{
    uint64_t words[4] = {0};
    size_t n = 0;
    const json_t *end = json_take_array_at(take, root, "end", &n);
    if (n != 0 && n != 4)
        json_take_fail(take, ERR_FORMAT, "end", "four numbers or none are expected");
    for (size_t i = 0; i < 4 && n == 4; i++)
        words[i] = json_take_word(take, json_array_get(end, i), UINT64_MAX, "end");
    file->end = (struct sched_end){words[0], words[1], words[2], words[3]};
    file->has_end = n == 4;
    const json_t *order = json_take_array_at(take, root, "order", &n);
    file->order = json_take_alloc(take, n, sizeof *file->order);
    file->n_order = file->order ? n : 0;
    for (size_t i = 0; i < file->n_order && !take->code; i++)
        file->order[i] = json_take_word(take, json_array_get(order, i), UINT64_MAX, "order");
}

int sched_take_json(struct json_take *take, const json_t *root, struct sched_file *file)
{
    size_t n = 0;
    const char *version = json_string_value(json_object_get(root, "version"));
    if (!version || strcmp(version, SCHED_VERSION) != 0)
        return json_take_fail(take, ERR_FORMAT, "version", "\"" SCHED_VERSION "\" is expected");
    take_head(take, root, &file->head);
    take_formats(take, root, file);
    take_tasks(take, root, file);
    const json_t *events = json_take_array_at(take, root, "events", &n);
    file->events = json_take_alloc(take, n, sizeof *file->events);
    file->n_events = file->events ? n : 0;
    take->where = "events";
    for (take->index = 0; take->index < file->n_events && !take->code; take->index++)
        take_event(take, json_array_get(events, take->index), file, &file->events[take->index]);
    take->where = NULL;
    take_numbers(take, root, file);
    take_end(take, root, file);
    json_take_end(take, root, 20);
    if (take->code)
        sched_fini(file);
    return take->code;
}
