/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduler records: see sched.h. */
#include "fmt/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fmt/file.h"

enum { CHUNK_HEAD_BYTES = 5, EVENT_BYTES = 13, EVENTS_HEAD_BYTES = 4, CHUNK_EVENTS_BYTES = 32768 };

const char *sched_tier_name(unsigned tier)
{
    static const char *const names[] = {"?", "tracepoints", "switches", "own threads", "none"};
    return names[tier < sizeof names / sizeof *names ? tier : 0];
}

const unsigned char *sched_event_bytes(const struct sched_file *file, const struct sched_event *event)
{
    return (const unsigned char *)file->payload.data + event->at;
}

bool sched_event_switch(const struct sched_file *file, const struct sched_event *event, struct sched_switch *out)
{
    const unsigned char *bytes = sched_event_bytes(file, event);
    if (event->kind != SCHED_SWITCH || event->n_bytes != SCHED_SWITCH_BYTES)
        return false;
    *out = (struct sched_switch){(uint32_t)bytes_get_be(bytes, 4), (uint32_t)bytes_get_be(bytes + 4, 4), bytes[8]};
    return true;
}

void sched_switch_put(const struct sched_switch *what, unsigned char payload[SCHED_SWITCH_BYTES])
{
    bytes_put_be(payload, what->tid, 4);
    bytes_put_be(payload + 4, what->other, 4);
    payload[8] = what->flags;
}

/* --- chunks, written --- */

/* Begins a chunk; chunk_end fills in its length. */
static size_t chunk_begin(struct buf *out, enum sched_chunk kind)
{
    wire_put(out, kind, 1);
    wire_put(out, 0, 4);
    return out->len_bytes;
}

static void chunk_end(struct buf *out, size_t from)
{
    if (!out->failed)
        bytes_put_be(out->data + from - 4, out->len_bytes - from, 4);
}

static void put_head(struct buf *out, const struct sched_head *head)
{
    size_t from = chunk_begin(out, SCHED_HEAD);
    wire_put(out, head->tier, 1);
    wire_put(out, head->has_all, 1);
    wire_put(out, (uint64_t)head->wall_ns, 8);
    wire_put(out, head->limit_bytes, 8);
    wire_put(out, head->n_cpus, 4);
    wire_put(out, head->pid, 4);
    wire_put_text(out, head->online);
    wire_put_text(out, head->host);
    wire_put_text(out, head->boot_id);
    wire_put_text(out, head->kernel);
    wire_put_text(out, head->why);
    chunk_end(out, from);
}

static void put_format(struct buf *out, const struct sched_format *format)
{
    size_t from = chunk_begin(out, SCHED_FORMAT);
    wire_put(out, format->id, 4);
    wire_put_text(out, format->system);
    wire_put_text(out, format->name);
    wire_put_text(out, format->text);
    chunk_end(out, from);
}

static void put_task(struct buf *out, const struct sched_task *task)
{
    size_t from = chunk_begin(out, SCHED_TASK);
    wire_put(out, task->t_ns, 8);
    wire_put(out, task->tid, 4);
    wire_put(out, task->pid, 4);
    wire_put(out, task->is_own, 1);
    wire_put_text(out, task->comm);
    chunk_end(out, from);
}

static void put_lost(struct buf *out, const struct sched_lost *lost)
{
    size_t from = chunk_begin(out, SCHED_LOST);
    wire_put(out, lost->t_ns, 8);
    wire_put(out, lost->n, 8);
    wire_put(out, lost->cpu, 2);
    chunk_end(out, from);
}

static void put_total(struct buf *out, const struct sched_total *total)
{
    size_t from = chunk_begin(out, SCHED_TOTAL);
    wire_put(out, total->t_ns, 8);
    wire_put(out, total->run_ns, 8);
    wire_put(out, total->wait_ns, 8);
    wire_put(out, total->n_slices, 8);
    wire_put(out, total->n_voluntary, 8);
    wire_put(out, total->n_involuntary, 8);
    wire_put(out, total->tid, 4);
    wire_put(out, total->pid, 4);
    wire_put(out, total->cpu, 2);
    wire_put(out, total->has_schedstat, 1);
    chunk_end(out, from);
}

static void put_end(struct buf *out, const struct sched_end *end)
{
    size_t from = chunk_begin(out, SCHED_END);
    wire_put(out, end->n_events, 8);
    wire_put(out, end->n_left_out, 8);
    wire_put(out, end->t_full_ns, 8);
    wire_put(out, end->n_lost, 8);
    chunk_end(out, from);
}

static void put_event(struct buf *out, const struct sched_event *event, const void *payload)
{
    char *at = wire_put_room(out, EVENT_BYTES + (size_t)event->n_bytes);
    if (!at)
        return;
    bytes_put_be(at, event->t_ns, 8);
    bytes_put_be(at + 8, event->cpu, 2);
    bytes_put_be(at + 10, event->kind, 1);
    bytes_put_be(at + 11, event->n_bytes, 2);
    memcpy(at + EVENT_BYTES, payload, event->n_bytes);
}

static void put_events(struct buf *out, const struct buf *events, uint32_t n_events)
{
    size_t from = chunk_begin(out, SCHED_EVENTS);
    wire_put(out, n_events, 4);
    buf_append(out, events->data, events->len_bytes);
    out->failed |= events->failed;
    chunk_end(out, from);
}

/* --- reading --- */

static void get_head(struct wire_in *in, struct sched_head *head)
{
    static const char what[] = "the head";
    if (head->online)
        wire_fail(in, ERR_FORMAT, "a second head");
    head->tier = (uint8_t)wire_get(in, 1, what);
    head->has_all = wire_get(in, 1, what) != 0;
    head->wall_ns = (int64_t)wire_get(in, 8, what);
    head->limit_bytes = wire_get(in, 8, what);
    head->n_cpus = (uint32_t)wire_get(in, 4, what);
    head->pid = (uint32_t)wire_get(in, 4, what);
    if (!in->code && (head->tier < SCHED_TIER_TRACEPOINTS || head->tier > SCHED_TIER_NONE || head->n_cpus > UINT16_MAX))
        wire_fail(in, ERR_FORMAT, "tier %u of %u CPUs", head->tier, head->n_cpus);
    char **const texts[] = {&head->online, &head->host, &head->boot_id, &head->kernel, &head->why};
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !in->code; i++)
        *texts[i] = wire_get_text(in, what);
}

/* Room for one more item of an array; NULL after a failure. */
static void *add_item(struct wire_in *in, void *items, size_t *capacity, size_t *n, size_t item_bytes)
{
    char *at;
    if (in->code || !vec_reserve(items, capacity, *n + 1, item_bytes)) {
        wire_fail(in, ERR_MEMORY, "out of memory for %zu items", *n + 1);
        return NULL;
    }
    memcpy(&at, items, sizeof at);
    return at + (*n)++ * item_bytes;
}

static void get_format(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "a format";
    struct sched_format *format =
        add_item(in, &file->formats, &file->cap_formats, &file->n_formats, sizeof *file->formats);
    if (!format)
        return;
    format->id = (uint32_t)wire_get(in, 4, what);
    format->system = wire_get_text(in, what);
    format->name = wire_get_text(in, what);
    format->text = wire_get_text(in, what);
}

static void get_task(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "a thread";
    struct sched_task *task = add_item(in, &file->tasks, &file->cap_tasks, &file->n_tasks, sizeof *file->tasks);
    if (!task)
        return;
    task->t_ns = wire_get(in, 8, what);
    task->tid = (uint32_t)wire_get(in, 4, what);
    task->pid = (uint32_t)wire_get(in, 4, what);
    task->is_own = wire_get(in, 1, what) != 0;
    task->comm = wire_get_text(in, what);
}

static void get_lost(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "lost records";
    struct sched_lost *lost = add_item(in, &file->lost, &file->cap_lost, &file->n_lost, sizeof *file->lost);
    if (!lost)
        return;
    lost->t_ns = wire_get(in, 8, what);
    lost->n = wire_get(in, 8, what);
    lost->cpu = (uint16_t)wire_get(in, 2, what);
    if (!in->code && lost->cpu >= file->head.n_cpus)
        wire_fail(in, ERR_FORMAT, "lost records on CPU %u of %u", lost->cpu, file->head.n_cpus);
}

static void get_total(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "a total";
    struct sched_total *total = add_item(in, &file->totals, &file->cap_totals, &file->n_totals, sizeof *file->totals);
    if (!total)
        return;
    total->t_ns = wire_get(in, 8, what);
    total->run_ns = wire_get(in, 8, what);
    total->wait_ns = wire_get(in, 8, what);
    total->n_slices = wire_get(in, 8, what);
    total->n_voluntary = wire_get(in, 8, what);
    total->n_involuntary = wire_get(in, 8, what);
    total->tid = (uint32_t)wire_get(in, 4, what);
    total->pid = (uint32_t)wire_get(in, 4, what);
    total->cpu = (uint16_t)wire_get(in, 2, what);
    total->has_schedstat = wire_get(in, 1, what) != 0;
}

static void get_event(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "an event";
    struct sched_event *event = add_item(in, &file->events, &file->cap_events, &file->n_events, sizeof *file->events);
    if (!event)
        return;
    event->t_ns = wire_get(in, 8, what);
    event->cpu = (uint16_t)wire_get(in, 2, what);
    event->kind = (uint8_t)wire_get(in, 1, what);
    event->n_bytes = (uint16_t)wire_get(in, 2, what);
    event->at = file->payload.len_bytes;
    if (in->code || !wire_has(in, event->n_bytes, what))
        return;
    if ((event->kind != SCHED_RAW && event->kind != SCHED_SWITCH) || event->cpu >= file->head.n_cpus ||
        (event->kind == SCHED_RAW ? event->n_bytes < 8 : event->n_bytes != SCHED_SWITCH_BYTES))
        wire_fail(in, ERR_FORMAT, "an event of kind %u on CPU %u of %u, %u bytes", event->kind, event->cpu,
                  file->head.n_cpus, event->n_bytes);
    buf_append(&file->payload, in->bytes + in->offset, event->n_bytes);
    in->offset += event->n_bytes;
    if (file->payload.failed)
        wire_fail(in, ERR_MEMORY, "out of memory for events");
}

static uint32_t get_events(struct wire_in *in, struct sched_file *file)
{
    uint32_t n = (uint32_t)wire_get(in, EVENTS_HEAD_BYTES, "events");
    if (!wire_has_items(in, n, EVENT_BYTES, "events"))
        return 0;
    for (uint32_t i = 0; i < n && !in->code; i++)
        get_event(in, file);
    return n;
}

static void get_end(struct wire_in *in, struct sched_file *file)
{
    static const char what[] = "the end";
    file->end.n_events = wire_get(in, 8, what);
    file->end.n_left_out = wire_get(in, 8, what);
    file->end.t_full_ns = wire_get(in, 8, what);
    file->end.n_lost = wire_get(in, 8, what);
    file->has_end = true;
}

/* What a chunk holds; in ends where the chunk does. */
static void get_chunk(struct wire_in *in, unsigned kind, struct sched_file *file)
{
    uint64_t n = 1;
    if (kind != SCHED_HEAD && !file->head.online)
        wire_fail(in, ERR_FORMAT, "a chunk of kind %u before the head", kind);
    if (file->has_end)
        wire_fail(in, ERR_FORMAT, "a chunk of kind %u after the end", kind);
    switch ((enum sched_chunk)kind) {
    case SCHED_HEAD:
        get_head(in, &file->head);
        break;
    case SCHED_FORMAT:
        get_format(in, file);
        break;
    case SCHED_TASK:
        get_task(in, file);
        break;
    case SCHED_EVENTS:
        n = get_events(in, file);
        break;
    case SCHED_LOST:
        get_lost(in, file);
        break;
    case SCHED_TOTAL:
        get_total(in, file);
        break;
    case SCHED_END:
        get_end(in, file);
        break;
    default:
        wire_fail(in, ERR_FORMAT, "a chunk of unknown kind %u", kind);
    }
    uint64_t *order = add_item(in, &file->order, &file->cap_order, &file->n_order, sizeof *file->order);
    if (order)
        *order = (uint64_t)kind << 32 | n;
}

int sched_read_memory(const void *bytes, size_t len_bytes, const char *name, struct sched_file *file, struct error *err)
{
    char version[6] = "";
    struct wire_in in = {.bytes = bytes, .len_bytes = len_bytes, .name = name, .err = err};
    if (!wire_accept(&in, SCHED_BEGINS))
        return wire_fail(&in, ERR_FORMAT, "not a file of scheduler records: it does not begin with " SCHED_BEGINS);
    wire_get_bytes(&in, version, 5, "the version");
    if (!in.code && strcmp(version, SCHED_VERSION) != 0)
        return wire_fail(&in, ERR_UNSUPPORTED,
                         "version '%.5s' of scheduler records is not supported (" SCHED_VERSION " is)", version);
    if (wire_get(&in, 1, "the byte order") != 'b' && !in.code)
        wire_fail(&in, ERR_FORMAT, "the byte order is not 'b' (big endian)");
    while (!in.code && len_bytes - in.offset >= CHUNK_HEAD_BYTES) {
        unsigned kind = in.bytes[in.offset];
        uint64_t n = bytes_get_be(in.bytes + in.offset + 1, 4);
        if (n > len_bytes - in.offset - CHUNK_HEAD_BYTES)
            break;
        in.offset += CHUNK_HEAD_BYTES;
        size_t end = in.len_bytes = in.offset + (size_t)n;
        get_chunk(&in, kind, file);
        if (!in.code && in.offset < end)
            wire_fail(&in, ERR_FORMAT, "%zu bytes too many in a chunk of kind %u", end - in.offset, kind);
        in.len_bytes = len_bytes;
    }
    file->n_unfinished_bytes = len_bytes - in.offset;
    if (!in.code && !file->head.online)
        wire_fail(&in, ERR_FORMAT, "truncated in the head");
    if (!in.code && file->has_end && file->n_unfinished_bytes)
        wire_fail(&in, ERR_FORMAT, "%zu bytes follow the end", file->n_unfinished_bytes);
    if (in.code)
        sched_fini(file);
    return in.code;
}

int sched_read(const char *path, struct sched_file *file, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = sched_read_memory(bytes.data, bytes.len_bytes, path, file, err);
    buf_fini(&bytes);
    return code;
}

static void head_fini(struct sched_head *head)
{
    free(head->online);
    free(head->host);
    free(head->boot_id);
    free(head->kernel);
    free(head->why);
}

void sched_fini(struct sched_file *file)
{
    head_fini(&file->head);
    for (size_t i = 0; i < file->n_formats; i++) {
        free(file->formats[i].system);
        free(file->formats[i].name);
        free(file->formats[i].text);
    }
    for (size_t i = 0; i < file->n_tasks; i++)
        free(file->tasks[i].comm);
    free(file->formats);
    free(file->tasks);
    free(file->events);
    free(file->lost);
    free(file->totals);
    free(file->order);
    buf_fini(&file->payload);
    *file = (struct sched_file){0};
}

/* --- a file from memory --- */

/* Items of each kind that have been written. */
struct progress {
    size_t formats, tasks, events, lost, totals;
};

static bool write_events(const struct sched_file *file, struct progress *at, uint32_t n, struct buf *out)
{
    struct buf events = {0};
    if (n > file->n_events - at->events)
        return false;
    for (uint32_t i = 0; i < n; i++, at->events++)
        put_event(&events, &file->events[at->events], sched_event_bytes(file, &file->events[at->events]));
    put_events(out, &events, n);
    buf_fini(&events);
    return true;
}

/* False when the order names what is not there. */
static bool write_chunk(const struct sched_file *file, uint64_t order, struct progress *at, struct buf *out)
{
    switch ((enum sched_chunk)(order >> 32)) {
    case SCHED_HEAD:
        put_head(out, &file->head);
        return true;
    case SCHED_FORMAT:
        if (at->formats == file->n_formats)
            return false;
        put_format(out, &file->formats[at->formats++]);
        return true;
    case SCHED_TASK:
        if (at->tasks == file->n_tasks)
            return false;
        put_task(out, &file->tasks[at->tasks++]);
        return true;
    case SCHED_EVENTS:
        return write_events(file, at, (uint32_t)order, out);
    case SCHED_LOST:
        if (at->lost == file->n_lost)
            return false;
        put_lost(out, &file->lost[at->lost++]);
        return true;
    case SCHED_TOTAL:
        if (at->totals == file->n_totals)
            return false;
        put_total(out, &file->totals[at->totals++]);
        return true;
    case SCHED_END:
        put_end(out, &file->end);
        return true;
    }
    return false;
}

int sched_write(const struct sched_file *file, struct buf *out, struct error *err)
{
    struct progress at = {0};
    bool fits = file->n_order && file->order[0] >> 32 == SCHED_HEAD;
    buf_printf(out, SCHED_BEGINS SCHED_VERSION "b");
    for (size_t i = 0; fits && i < file->n_order; i++)
        fits = write_chunk(file, file->order[i], &at, out);
    if (!fits || at.formats != file->n_formats || at.tasks != file->n_tasks || at.events != file->n_events ||
        at.lost != file->n_lost || at.totals != file->n_totals)
        return error_set(err, ERR_RANGE, "the order of scheduler records does not name all of them once");
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing scheduler records") : 0;
}

/* --- writing while it is recorded --- */

int sched_writer_open(struct sched_writer *writer, const char *path, const struct sched_head *head, struct error *err)
{
    *writer = (struct sched_writer){.fd = -1, .limit_bytes = head->limit_bytes, .path = strdup(path)};
    if (!writer->path)
        return error_memory(err);
    writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (writer->fd < 0) {
        int saved = errno;
        (void)error_set(err, ERR_IO, "%.600s: cannot be created: %s", path, strerror(saved));
        free(writer->path);
        *writer = (struct sched_writer){.fd = -1};
        errno = saved;
        return ERR_IO;
    }
    buf_printf(&writer->pending, SCHED_BEGINS SCHED_VERSION "b");
    put_head(&writer->pending, head);
    writer->n_bytes = writer->pending.len_bytes;
    return 0;
}

/* Ends the chunk of events that is being filled, so that what follows stands behind them. */
static void writer_settle(struct sched_writer *writer)
{
    if (!writer->n_events)
        return;
    size_t before = writer->pending.len_bytes;
    put_events(&writer->pending, &writer->events, writer->n_events);
    writer->n_bytes += writer->pending.len_bytes - before - writer->events.len_bytes;
    writer->events.len_bytes = 0;
    writer->n_events = 0;
}

/* Whether there is room beyond that of events. */
static bool writer_may(const struct sched_writer *writer)
{
    return !writer->limit_bytes || writer->n_bytes < writer->limit_bytes + writer->limit_bytes / 8;
}

void sched_writer_format(struct sched_writer *writer, const struct sched_format *format)
{
    writer_settle(writer);
    size_t before = writer->pending.len_bytes;
    put_format(&writer->pending, format);
    writer->n_bytes += writer->pending.len_bytes - before;
}

void sched_writer_task(struct sched_writer *writer, const struct sched_task *task)
{
    writer_settle(writer);
    size_t before = writer->pending.len_bytes;
    if (writer_may(writer))
        put_task(&writer->pending, task);
    writer->n_bytes += writer->pending.len_bytes - before;
}

void sched_writer_lost(struct sched_writer *writer, const struct sched_lost *lost)
{
    writer_settle(writer);
    size_t before = writer->pending.len_bytes;
    writer->end.n_lost += lost->n;
    if (writer_may(writer))
        put_lost(&writer->pending, lost);
    writer->n_bytes += writer->pending.len_bytes - before;
}

void sched_writer_total(struct sched_writer *writer, const struct sched_total *total)
{
    writer_settle(writer);
    size_t before = writer->pending.len_bytes;
    if (writer_may(writer))
        put_total(&writer->pending, total);
    writer->n_bytes += writer->pending.len_bytes - before;
}

void sched_writer_event(struct sched_writer *writer, const struct sched_event *event, const void *payload)
{
    size_t n_bytes = EVENT_BYTES + (size_t)event->n_bytes;
    writer->end.n_events++;
    if (writer->end.t_full_ns || (writer->limit_bytes && writer->n_bytes + n_bytes > writer->limit_bytes)) {
        writer->end.n_left_out++;
        if (!writer->end.t_full_ns)
            writer->end.t_full_ns = event->t_ns ? event->t_ns : 1;
        return;
    }
    put_event(&writer->events, event, payload);
    writer->n_bytes += n_bytes;
    writer->n_events++;
    if (!writer->n_since++)
        writer->since_ns = event->t_ns ? event->t_ns : 1;
    if (writer->events.len_bytes >= CHUNK_EVENTS_BYTES)
        writer_settle(writer);
}

/* What did not get into the file is left out as a whole, so that the rest can be read, and what follows with it. */
static void writer_fail(struct sched_writer *writer)
{
    writer->has_failed = true;
    writer->end.n_left_out += writer->n_since;
    if (!writer->end.t_full_ns)
        writer->end.t_full_ns = writer->n_since ? writer->since_ns : 1;
    (void)!ftruncate(writer->fd, (off_t)writer->n_flushed);
    (void)lseek(writer->fd, (off_t)writer->n_flushed, SEEK_SET);
}

int sched_writer_flush(struct sched_writer *writer, struct error *err)
{
    writer_settle(writer);
    int code = writer->pending.failed || writer->events.failed ? error_memory(err) : 0;
    if (writer->has_failed) {
        writer->pending.len_bytes = 0;
        return error_set(err, ERR_IO, "%.600s: nothing more is written", writer->path);
    }
    if (code == 0)
        code = file_append(writer->fd, writer->path, writer->pending.data, writer->pending.len_bytes, err);
    if (code == 0)
        writer->n_flushed += writer->pending.len_bytes;
    else
        writer_fail(writer);
    writer->pending.len_bytes = 0;
    writer->n_since = 0;
    return code;
}

/* On a full disk there is often room for the few bytes of the end, in the last block of the file. */
static void write_end_alone(struct sched_writer *writer)
{
    struct error ignored;
    struct buf end = {0};
    put_end(&end, &writer->end);
    if (end.failed || file_append(writer->fd, writer->path, end.data, end.len_bytes, &ignored) != 0)
        (void)!ftruncate(writer->fd, (off_t)writer->n_flushed);
    buf_fini(&end);
}

int sched_writer_close(struct sched_writer *writer, struct error *err)
{
    int code = sched_writer_flush(writer, err);
    if (writer->has_failed)
        write_end_alone(writer);
    else {
        put_end(&writer->pending, &writer->end);
        code = sched_writer_flush(writer, err);
    }
    (void)close(writer->fd);
    free(writer->path);
    buf_fini(&writer->pending);
    buf_fini(&writer->events);
    *writer = (struct sched_writer){.fd = -1};
    return code;
}
