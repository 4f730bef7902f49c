/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs of samples: see events.h. */
#include "fmt/events.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"

#define MAGIC "LOCUS-events______"

enum { ACCESS_BYTES = 16, RECORD_BYTES = 24, SOURCE_BYTES_MIN = 8, OFFSET_BYTES = 6, SOURCES_MAX = 256 };

static const char *const class_names[] = {"memory",      "dependent",  "compute",  "lost",
                                          "system-call", "no-address", "recorded", "waiting"};

enum { N_CLASSES = sizeof class_names / sizeof class_names[0] };

const char *events_class_name(uint8_t class)
{
    return class_names[class];
}

/* --- reading --- */

static int get_head(struct wire_in *in, struct events_file *file)
{
    static const char what[] = "the header";
    if (!wire_accept(in, MAGIC))
        return wire_fail(in, ERR_FORMAT, "not a log of samples: it does not begin with " MAGIC);
    wire_get_bytes(in, file->version, 5, what);
    if (!in->code && strcmp(file->version, EVENTS_VERSION) != 0)
        return wire_fail(in, ERR_UNSUPPORTED,
                         "version '%.5s' of a log of samples is not supported (" EVENTS_VERSION " is)", file->version);
    uint64_t endian = wire_get(in, 1, what);
    if (!in->code && endian != 'b')
        return wire_fail(in, ERR_FORMAT, "byte order 0x%02x is not 'b' (big endian)", (unsigned)endian);
    file->wall_ns = (int64_t)wire_get(in, 8, what);
    file->wall_at_end_ns = (int64_t)wire_get(in, 8, what);
    file->stride = wire_get(in, 8, what);
    if (!in->code && (file->stride == 0 || file->stride & (file->stride - 1)))
        return wire_fail(in, ERR_FORMAT, "stride %llu is not a power of two", (unsigned long long)file->stride);
    file->n_samples = wire_get(in, 8, what);
    file->n_lost = wire_get(in, 8, what);
    return in->code;
}

/* Zeroed memory for n items of item_bytes, of which file_bytes each must still be there. */
static void *get_room(struct wire_in *in, uint64_t n, size_t item_bytes, unsigned file_bytes, const char *what)
{
    if (in->code || !n || !wire_has_items(in, n, file_bytes, what))
        return NULL;
    void *items = calloc((size_t)n, item_bytes);
    if (!items)
        wire_fail(in, ERR_MEMORY, "out of memory for %llu %s", (unsigned long long)n, what);
    return items;
}

static int get_sources(struct wire_in *in, struct events_file *file, uint64_t n)
{
    if (n > SOURCES_MAX)
        return wire_fail(in, ERR_RANGE, "%llu events are more than %d", (unsigned long long)n, SOURCES_MAX);
    file->sources = get_room(in, n, sizeof *file->sources, SOURCE_BYTES_MIN, "events");
    for (; file->sources && file->n_sources < n && !in->code; file->n_sources++) {
        struct events_source *source = &file->sources[file->n_sources];
        source->metric = (uint32_t)wire_get(in, 4, "an event");
        source->name = wire_get_text(in, "an event");
    }
    return in->code;
}

static int get_accesses(struct wire_in *in, struct events_file *file, uint64_t n)
{
    static const char what[] = "an access";
    file->accesses = get_room(in, n, sizeof *file->accesses, ACCESS_BYTES, "accesses");
    for (; file->accesses && file->n_accesses < n && !in->code; file->n_accesses++) {
        struct events_access *access = &file->accesses[file->n_accesses];
        access->node = (uint32_t)wire_get(in, 4, what);
        access->variable = (uint32_t)wire_get(in, 4, what);
        access->metrics = (uint32_t)wire_get(in, 4, what);
        access->source = (uint8_t)wire_get(in, 1, what);
        access->class = (uint8_t)wire_get(in, 1, what);
        access->flags = (uint16_t)wire_get(in, 2, what);
        if (!in->code && access->source >= file->n_sources)
            return wire_fail(in, ERR_FORMAT, "access %zu names event %u of %zu", file->n_accesses, access->source,
                             file->n_sources);
        if (!in->code && (access->class >= N_CLASSES || access->flags & ~EVENTS_INEXACT))
            return wire_fail(in, ERR_FORMAT, "access %zu is of an unknown class (%u, flags 0x%x)", file->n_accesses,
                             access->class, access->flags);
    }
    return in->code;
}

static int get_records(struct wire_in *in, struct events_file *file, uint64_t n)
{
    static const char what[] = "a sample";
    file->records = get_room(in, n, sizeof *file->records, RECORD_BYTES, "samples");
    for (; file->records && file->n_records < n && !in->code; file->n_records++) {
        struct events_record *record = &file->records[file->n_records];
        record->t_ns = wire_get(in, 8, what);
        record->access = (uint32_t)wire_get(in, 4, what);
        record->lat_cycles = (uint32_t)wire_get(in, 4, what);
        record->offset = wire_get(in, OFFSET_BYTES, what);
        record->cpu = (uint16_t)wire_get(in, 2, what);
        if (!in->code && record->access >= file->n_accesses)
            return wire_fail(in, ERR_FORMAT, "sample %zu names access %u of %zu", file->n_records, record->access,
                             file->n_accesses);
    }
    return in->code;
}

int events_read_memory(const void *bytes, size_t len_bytes, const char *name, struct events_file *file,
                       struct error *err)
{
    struct wire_in in = {.bytes = bytes, .len_bytes = len_bytes, .name = name, .err = err};
    (void)get_head(&in, file);
    uint64_t n_sources = wire_get(&in, 4, "the header");
    uint64_t n_accesses = wire_get(&in, 4, "the header");
    uint64_t n_records = wire_get(&in, 8, "the header");
    if (get_sources(&in, file, n_sources) == 0 && get_accesses(&in, file, n_accesses) == 0)
        (void)get_records(&in, file, n_records);
    if (!in.code && in.offset < len_bytes)
        wire_fail(&in, ERR_FORMAT, "%zu bytes follow the last sample", len_bytes - in.offset);
    if (in.code)
        events_fini(file);
    return in.code;
}

int events_read(const char *path, struct events_file *file, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = events_read_memory(bytes.data, bytes.len_bytes, path, file, err);
    buf_fini(&bytes);
    return code;
}

/* --- writing --- */

static void put_head(const struct events_file *file, struct buf *out)
{
    buf_printf(out, MAGIC EVENTS_VERSION "b");
    wire_put(out, (uint64_t)file->wall_ns, 8);
    wire_put(out, (uint64_t)file->wall_at_end_ns, 8);
    wire_put(out, file->stride, 8);
    wire_put(out, file->n_samples, 8);
    wire_put(out, file->n_lost, 8);
    wire_put(out, file->n_sources, 4);
    wire_put(out, file->n_accesses, 4);
    wire_put(out, file->n_records, 8);
}

static bool put_record(const struct events_record *record, struct buf *out)
{
    wire_put(out, record->t_ns, 8);
    wire_put(out, record->access, 4);
    wire_put(out, record->lat_cycles, 4);
    wire_put(out, record->offset, OFFSET_BYTES);
    wire_put(out, record->cpu, 2);
    return record->offset <= EVENTS_NO_OFFSET;
}

int events_write(const struct events_file *file, struct buf *out, struct error *err)
{
    bool fits = file->n_sources <= SOURCES_MAX && file->n_accesses <= UINT32_MAX && file->stride &&
                !(file->stride & (file->stride - 1));
    put_head(file, out);
    for (size_t i = 0; i < file->n_sources; i++) {
        wire_put(out, file->sources[i].metric, 4);
        wire_put_text(out, file->sources[i].name);
    }
    for (size_t i = 0; i < file->n_accesses; i++) {
        const struct events_access *access = &file->accesses[i];
        fits &= access->source < file->n_sources;
        wire_put(out, access->node, 4);
        wire_put(out, access->variable, 4);
        wire_put(out, access->metrics, 4);
        wire_put(out, access->source, 1);
        wire_put(out, access->class, 1);
        wire_put(out, access->flags, 2);
    }
    for (size_t i = 0; i < file->n_records; i++)
        fits &= put_record(&file->records[i], out) && file->records[i].access < file->n_accesses;
    if (!fits)
        return error_set(err, ERR_RANGE, "a log of samples cannot hold these numbers");
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing a log of samples") : 0;
}

void events_fini(struct events_file *file)
{
    for (size_t i = 0; i < file->n_sources; i++)
        free(file->sources[i].name);
    free(file->sources);
    free(file->accesses);
    free(file->records);
    *file = (struct events_file){0};
}

/* --- as text --- */

static void put_record_text(const struct events_file *file, const struct events_record *record, struct buf *out)
{
    const struct events_access *access = &file->accesses[record->access];
    buf_printf(
        out, "  [(time: %" PRIu64 ") (cpu: %u) (event: %u) (node: %" PRIu32 ") (variable: %" PRIu32 ") (class: %s)",
        record->t_ns, record->cpu, access->source, access->node, access->variable, events_class_name(access->class));
    if (record->offset != EVENTS_NO_OFFSET)
        buf_printf(out, " (offset: %" PRIu64 "%s)", record->offset, access->flags & EVENTS_INEXACT ? ", inexact" : "");
    if (access->metrics)
        buf_printf(out, " (metrics: 0x%" PRIx32 ")", access->metrics);
    if (record->lat_cycles)
        buf_printf(out, " (latency: %" PRIu32 ")", record->lat_cycles);
    buf_append(out, "]\n", 2);
}

void events_put_text(const struct events_file *file, struct buf *out)
{
    buf_printf(out,
               MAGIC "\n[hdr:\n  (version: %s)\n  (endian: b)\n  (wall-clock: %" PRId64 ")\n"
                     "  (wall-clock-at-end: %" PRId64 ")\n",
               file->version, file->wall_ns, file->wall_at_end_ns);
    buf_printf(
        out, "  (samples: %" PRIu64 ")\n  (stride: %" PRIu64 ")\n  (thinned: %" PRIu64 ")\n  (lost: %" PRIu64 ")\n]\n",
        file->n_samples, file->stride, events_thinned(file), file->n_lost);
    for (size_t i = 0; i < file->n_sources; i++) {
        buf_printf(out, "[event %zu: %s", i, file->sources[i].name);
        if (file->sources[i].metric != EVENTS_NO_METRIC)
            buf_printf(out, " (metric: %" PRIu32 ")", file->sources[i].metric);
        buf_append(out, "]\n", 2);
    }
    buf_printf(out, "[log: (num-records: %zu)\n", file->n_records);
    for (size_t i = 0; i < file->n_records; i++)
        put_record_text(file, &file->records[i], out);
    buf_printf(out, "]\n");
}

/* --- as JSON --- */

void events_put_json(const struct events_file *file, struct buf *out)
{
    buf_printf(out, "{\"format\": \"locus-events\", \"version\": \"%s\"", file->version);
    json_put_word_at(out, "wall_ns", (uint64_t)file->wall_ns);
    json_put_word_at(out, "wall_at_end_ns", (uint64_t)file->wall_at_end_ns);
    json_put_word_at(out, "stride", file->stride);
    json_put_word_at(out, "samples", file->n_samples);
    json_put_word_at(out, "lost", file->n_lost);
    buf_printf(out, ",\n\"events\": [");
    for (size_t i = 0; i < file->n_sources; i++) {
        buf_printf(out, i ? ",\n  {" : "\n  {");
        json_put_key(out, "name", 1);
        json_put_text(out, file->sources[i].name);
        json_put_word_at(out, "metric", file->sources[i].metric);
        buf_append(out, "}", 1);
    }
    buf_printf(out, "],\n\"accesses\": [");
    for (size_t i = 0; i < file->n_accesses; i++) {
        const struct events_access *access = &file->accesses[i];
        uint64_t words[] = {access->node,   access->variable, access->metrics,
                            access->source, access->class,    access->flags};
        buf_printf(out, i ? ",\n  " : "\n  ");
        json_put_words(out, words, 6);
    }
    buf_printf(out, "],\n\"records\": [");
    for (size_t i = 0; i < file->n_records; i++) {
        const struct events_record *record = &file->records[i];
        uint64_t words[] = {record->t_ns, record->access, record->lat_cycles, record->offset, record->cpu};
        buf_printf(out, i ? ",\n  " : "\n  ");
        json_put_words(out, words, 5);
    }
    buf_printf(out, "]}\n");
}

/* Word i of a list of n words. */
static uint64_t word_of(struct json_take *take, const json_t *item, size_t i, uint64_t max, const char *what)
{
    return json_take_word(take, json_array_get(item, i), max, what);
}

static void take_source(struct json_take *take, const json_t *item, struct events_source *source)
{
    source->name = json_take_text_needed_at(take, item, "name");
    source->metric = (uint32_t)json_take_word_at(take, item, "metric", UINT32_MAX);
    json_take_end(take, item, 2);
}

static void take_access(struct json_take *take, const json_t *item, const struct events_file *file,
                        struct events_access *access)
{
    if (json_array_size(item) != 6 || !file->n_sources)
        json_take_fail(take, ERR_FORMAT, "an access", "[node, variable, metrics, event, class, flags] is expected");
    access->node = (uint32_t)word_of(take, item, 0, UINT32_MAX, "node");
    access->variable = (uint32_t)word_of(take, item, 1, UINT32_MAX, "variable");
    access->metrics = (uint32_t)word_of(take, item, 2, UINT32_MAX, "metrics");
    access->source = (uint8_t)word_of(take, item, 3, file->n_sources - 1, "event");
    access->class = (uint8_t)word_of(take, item, 4, N_CLASSES - 1, "class");
    access->flags = (uint16_t)word_of(take, item, 5, EVENTS_INEXACT, "flags");
}

static void take_record(struct json_take *take, const json_t *item, const struct events_file *file,
                        struct events_record *record)
{
    if (json_array_size(item) != 5 || !file->n_accesses)
        json_take_fail(take, ERR_FORMAT, "a sample", "[time, access, latency, offset, CPU] is expected");
    record->t_ns = word_of(take, item, 0, UINT64_MAX, "time");
    record->access = (uint32_t)word_of(take, item, 1, file->n_accesses - 1, "access");
    record->lat_cycles = (uint32_t)word_of(take, item, 2, UINT32_MAX, "latency");
    record->offset = word_of(take, item, 3, EVENTS_NO_OFFSET, "offset");
    record->cpu = (uint16_t)word_of(take, item, 4, UINT16_MAX, "CPU");
}

static void take_lists(struct json_take *take, const json_t *root, struct events_file *file)
{
    size_t n_sources = 0, n_accesses = 0, n_records = 0;
    const json_t *sources = json_take_array_at(take, root, "events", &n_sources);
    if (n_sources > SOURCES_MAX)
        json_take_fail(take, ERR_RANGE, "events", "at most 256 are expected");
    file->sources = json_take_alloc(take, n_sources, sizeof *file->sources);
    file->n_sources = file->sources ? n_sources : 0;
    take->where = "events";
    for (take->index = 0; take->index < file->n_sources && !take->code; take->index++)
        take_source(take, json_array_get(sources, take->index), &file->sources[take->index]);
    take->where = NULL;
    const json_t *accesses = json_take_array_at(take, root, "accesses", &n_accesses);
    file->accesses = json_take_alloc(take, n_accesses, sizeof *file->accesses);
    file->n_accesses = file->accesses ? n_accesses : 0;
    take->where = "accesses";
    for (take->index = 0; take->index < file->n_accesses && !take->code; take->index++)
        take_access(take, json_array_get(accesses, take->index), file, &file->accesses[take->index]);
    take->where = NULL;
    const json_t *records = json_take_array_at(take, root, "records", &n_records);
    file->records = json_take_alloc(take, n_records, sizeof *file->records);
    file->n_records = file->records ? n_records : 0;
    take->where = "records";
    for (take->index = 0; take->index < file->n_records && !take->code; take->index++)
        take_record(take, json_array_get(records, take->index), file, &file->records[take->index]);
    take->where = NULL;
}

int events_take_json(struct json_take *take, const json_t *root, struct events_file *file)
{
    const char *version = json_string_value(json_object_get(root, "version"));
    if (!version || strcmp(version, EVENTS_VERSION) != 0)
        return json_take_fail(take, ERR_FORMAT, "version", "\"" EVENTS_VERSION "\" is expected");
    memcpy(file->version, version, 6);
    file->wall_ns = (int64_t)json_take_word_at(take, root, "wall_ns", UINT64_MAX);
    file->wall_at_end_ns = (int64_t)json_take_word_at(take, root, "wall_at_end_ns", UINT64_MAX);
    file->stride = json_take_word_at(take, root, "stride", (uint64_t)1 << 63);
    if (file->stride == 0 || file->stride & (file->stride - 1))
        json_take_fail(take, ERR_FORMAT, "stride", "a power of two is expected");
    file->n_samples = json_take_word_at(take, root, "samples", UINT64_MAX);
    file->n_lost = json_take_word_at(take, root, "lost", UINT64_MAX);
    take_lists(take, root, file);
    json_take_end(take, root, 10);
    if (take->code)
        events_fini(file);
    return take->code;
}
