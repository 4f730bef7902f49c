/* SPDX-License-Identifier: BSD-3-Clause */
/* The container of a perf.data file: header, events, where records and features lie. See perf-data.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "fmt/file.h"
#include "import/perf-data.h"

#define HEADER_BYTES_OLD 72 /* without the bits of the features */
#define HEADER_BYTES 104
#define HEADER_BYTES_PIPE 16
#define FEATURE_WORDS 4
#define ATTR_BYTES_MIN 64 /* size of perf_event_attr in its first version */

struct section {
    uint64_t offset, n_bytes;
};

struct header {
    uint64_t n_bytes, attr_bytes;
    struct section attrs, data;
    uint64_t features[FEATURE_WORDS];
};

static bool begins_with(const void *bytes, size_t n_bytes, const char *text)
{
    return n_bytes >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

bool perf_data_begins(const void *bytes, size_t n_bytes)
{
    return begins_with(bytes, n_bytes, PERF_DATA_BEGINS) || begins_with(bytes, n_bytes, PERF_DATA_BEGINS_SWAPPED);
}

/* The span [offset, offset + n_bytes) of the file.
 * err: ERR_FORMAT when it is not inside; what names the part in the message */
static int perf_data_span(const struct perf_data *data, uint64_t offset, uint64_t n_bytes, const char *what,
                          struct perf_take *take, struct error *err)
{
    if (offset > data->n_bytes || n_bytes > data->n_bytes - offset)
        return error_set(err, ERR_FORMAT,
                         "%.600s: offset %" PRIu64 ": %s (%" PRIu64 " bytes) reach beyond the file's end at %zu",
                         data->name, offset, what, n_bytes, data->n_bytes);
    *take = (struct perf_take){.bytes = data->bytes + offset, .n_bytes = n_bytes, .is_swapped = data->is_swapped};
    return 0;
}

static struct section take_section(struct perf_take *take)
{
    uint64_t offset = perf_take_number(take, 8);
    return (struct section){offset, perf_take_number(take, 8)};
}

/* The bytes that the header says it has, which are at least those of a pipe. */
static int read_header(struct perf_data *data, struct header *header, struct error *err)
{
    struct perf_take take = {.bytes = data->bytes, .n_bytes = data->n_bytes};
    bool is_little = begins_with(data->bytes, data->n_bytes, PERF_DATA_BEGINS);
    data->is_swapped = take.is_swapped = is_little != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    (void)perf_take_number(&take, 8);
    header->n_bytes = perf_take_number(&take, 8);
    if (header->n_bytes == HEADER_BYTES_PIPE) {
        data->is_pipe = true;
        header->data = (struct section){HEADER_BYTES_PIPE, data->n_bytes - HEADER_BYTES_PIPE};
        return 0;
    }
    if (!take.failed && header->n_bytes != HEADER_BYTES_OLD && header->n_bytes < HEADER_BYTES)
        return perf_data_fail(data, 8, "the header has an impossible length", err);
    header->attr_bytes = perf_take_number(&take, 8);
    header->attrs = take_section(&take);
    header->data = take_section(&take);
    (void)take_section(&take);
    for (size_t i = 0; i < FEATURE_WORDS && header->n_bytes >= HEADER_BYTES; i++)
        header->features[i] = perf_take_number(&take, 8);
    return take.failed ? perf_data_fail(data, data->n_bytes, "the file is truncated in its header", err) : 0;
}

static int read_ids(struct perf_data *data, struct perf_data_event *event, struct section ids, struct error *err)
{
    struct perf_take take;
    int code = perf_data_span(data, ids.offset, ids.n_bytes, "the ids of an event", &take, err);
    for (uint64_t i = 0; i < ids.n_bytes / 8 && !code; i++)
        if (!perf_data_add_id(data, event, perf_take_number(&take, 8)))
            code = perf_data_no_memory(data, err);
    return code;
}

static int read_events(struct perf_data *data, const struct header *header, struct error *err)
{
    struct perf_take take;
    const struct section *attrs = &header->attrs;
    if (header->attr_bytes < ATTR_BYTES_MIN + 16 || attrs->n_bytes % header->attr_bytes)
        return perf_data_fail(data, 16, "the events have an impossible length", err);
    int code = perf_data_span(data, attrs->offset, attrs->n_bytes, "the events", &take, err);
    for (uint64_t i = 0; i < attrs->n_bytes / header->attr_bytes && !code; i++) {
        struct perf_data_event *event = perf_data_add_event(data, &take, header->attr_bytes - 16);
        struct section ids = take_section(&take);
        code = event ? read_ids(data, event, ids, err) : perf_data_no_memory(data, err);
    }
    return code;
}

/* The table of the features follows the records: one section for each bit, in their order. */
static int read_features(struct perf_data *data, const struct header *header, struct error *err)
{
    struct perf_take table, take;
    uint64_t n = 0, offset = header->data.offset + header->data.n_bytes;
    for (size_t i = 0; i < FEATURE_WORDS; i++)
        n += (unsigned)__builtin_popcountll(header->features[i]);
    int code = perf_data_span(data, offset, n * 16, "the sections of the features", &table, err);
    for (unsigned feature = 0; feature < 64 * FEATURE_WORDS && !code; feature++) {
        if (!(header->features[feature / 64] >> feature % 64 & 1))
            continue;
        struct section section = take_section(&table);
        code = perf_data_span(data, section.offset, section.n_bytes, "the bytes of a feature", &take, err);
        if (!code)
            code = perf_data_take_feature(data, feature, &take, section.offset, err);
    }
    return code;
}

static int read_file(struct perf_data *data, struct header *header, struct error *err)
{
    struct perf_take take;
    int code = read_events(data, header, err);
    if (!code && header->data.n_bytes == 0 && header->data.offset <= data->n_bytes) {
        data->is_unfinished = true;
        header->data.n_bytes = data->n_bytes - header->data.offset;
    }
    if (!code)
        code = perf_data_span(data, header->data.offset, header->data.n_bytes, "the records", &take, err);
    if (!code && !data->is_unfinished)
        code = read_features(data, header, err);
    return code;
}

static int read_all(struct perf_data *data, struct error *err)
{
    struct header header = {0};
    if (!perf_data_begins(data->bytes, data->n_bytes))
        return perf_data_fail(data, 0, "not a file of perf: it does not begin with PERFILE2", err);
    int code = read_header(data, &header, err);
    if (!code && !data->is_pipe)
        code = read_file(data, &header, err);
    if (!code && !data->is_pipe && !perf_data_name_events(data))
        code = perf_data_no_memory(data, err);
    if (!code)
        code = perf_data_scan(data, header.data.offset, header.data.n_bytes, err);
    if (!code && data->n_events == 0)
        code = perf_data_fail(data, header.data.offset, "the file names no event", err);
    return code;
}

/* The file's bytes: mapped when it is a regular file, else read to the end. */
static int get_bytes(const char *path, struct perf_data *data, struct error *err)
{
    struct stat info;
    int fd = input_open(AT_FDCWD, path, 0, &info);
    if (fd >= 0 && info.st_size > 0) {
        void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapping != MAP_FAILED) {
            data->bytes = data->mapping = mapping;
            data->n_bytes = (size_t)info.st_size;
            (void)close(fd);
            return 0;
        }
    }
    if (fd >= 0)
        (void)close(fd);
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    data->bytes = data->own_bytes = (unsigned char *)bytes.data;
    data->n_bytes = bytes.len_bytes;
    return code;
}

int perf_data_open(const char *path, struct perf_data *data, struct error *err)
{
    data->name = strdup(path);
    int code = data->name ? get_bytes(path, data, err) : error_memory(err);
    if (!code)
        code = read_all(data, err);
    if (code)
        perf_data_fini(data);
    return code;
}

int perf_data_read_memory(const void *bytes, size_t n_bytes, const char *name, struct perf_data *data,
                          struct error *err)
{
    data->name = strdup(name);
    data->own_bytes = malloc(n_bytes + 1);
    if (!data->name || !data->own_bytes) {
        perf_data_fini(data);
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", name);
    }
    if (n_bytes)
        memcpy(data->own_bytes, bytes, n_bytes);
    data->bytes = data->own_bytes;
    data->n_bytes = n_bytes;
    int code = read_all(data, err);
    if (code)
        perf_data_fini(data);
    return code;
}

void perf_data_fini(struct perf_data *data)
{
    for (size_t i = 0; i < data->n_events; i++) {
        free(data->events[i].name);
        free(data->events[i].ids);
    }
    for (size_t i = 0; i < data->n_build_ids; i++)
        free(data->build_ids[i].path);
    if (data->mapping)
        (void)munmap(data->mapping, data->n_bytes);
    char **const texts[] = {&data->name, &data->hostname, &data->os_release,   &data->arch,
                            &data->cpu,  &data->cpu_id,   &data->perf_version, &data->command};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(*texts[i]);
    free(data->own_bytes);
    free(data->events);
    free(data->ids);
    slots_fini(&data->id_slots);
    free(data->build_ids);
    free(data->runs);
    buf_fini(&data->inflated);
    *data = (struct perf_data){0};
}

/* --- compressed records --- */

/* Compressed records of perf.data files (perf record -z): one zstd stream over all of them, in which a record may begin
 * in one of them and end in the next. Without libzstd such files are refused. */

#if HAVE_LIBZSTD
#include <zstd.h>
#endif

#if HAVE_LIBZSTD

#define PIECE_BYTES (1 << 17)

struct perf_inflate {
    ZSTD_DStream *stream;
    char piece[PIECE_BYTES];
};

struct perf_inflate *perf_inflate_new(void)
{
    struct perf_inflate *inflate = malloc(sizeof *inflate);
    if (inflate && !(inflate->stream = ZSTD_createDStream())) {
        free(inflate);
        return NULL;
    }
    return inflate;
}

void perf_inflate_free(struct perf_inflate *inflate)
{
    if (inflate)
        (void)ZSTD_freeDStream(inflate->stream);
    free(inflate);
}

/* The compressed bytes of a record: to its end, or as many as the newer form states. */
static struct perf_take compressed_of(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = {
        .bytes = perf_data_bytes(data, record), .n_bytes = record->n_bytes, .at = 8, .is_swapped = data->is_swapped};
    uint64_t n_bytes = record->n_bytes - 8;
    if (record->type == PERF_DATA_COMPRESSED2)
        n_bytes = perf_take_number(&take, 8);
    const unsigned char *bytes = perf_take_bytes(&take, n_bytes);
    return (struct perf_take){.bytes = bytes, .n_bytes = n_bytes, .failed = take.failed};
}

int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err)
{
    struct perf_take from = compressed_of(data, record);
    ZSTD_inBuffer in = {.src = from.bytes, .size = from.n_bytes};
    bool is_full = false;
    while (!from.failed && (in.pos < in.size || is_full)) {
        ZSTD_outBuffer out = {.dst = inflate->piece, .size = PIECE_BYTES};
        size_t before = in.pos, result = ZSTD_decompressStream(inflate->stream, &out, &in);
        from.failed = ZSTD_isError(result) || (in.pos == before && out.pos == 0 && !is_full);
        is_full = out.pos == out.size;
        buf_append(&data->inflated, inflate->piece, from.failed ? 0 : out.pos);
        if (data->inflated.failed)
            return perf_data_no_memory(data, err);
    }
    return from.failed ? perf_data_fail_record(data, record, "the compressed records cannot be decompressed", err) : 0;
}

#else

struct perf_inflate {
    char nothing;
};

struct perf_inflate *perf_inflate_new(void)
{
    return calloc(1, sizeof(struct perf_inflate));
}

void perf_inflate_free(struct perf_inflate *inflate)
{
    free(inflate);
}

int perf_inflate(struct perf_inflate *inflate, struct perf_data *data, const struct perf_data_record *record,
                 struct error *err)
{
    (void)inflate;
    (void)perf_data_fail_record(data, record, "the records are compressed, and this program was built without libzstd",
                                err);
    if (err)
        err->code = ERR_UNSUPPORTED;
    return ERR_UNSUPPORTED;
}

#endif

/* --- attributes --- */

/* Events of a perf.data file: their attributes in native order, ids, and names where the file gives none. */

/* Widths of the fields of struct perf_event_attr, one after the other; the eight bytes of the bit fields are b. */
static const char widths[] = "448888b4488884484224488";

/* A compiler for big-endian machines assigns bit fields from the highest bit on, and those of two bits likewise. */
static uint64_t turn_bits(uint64_t raw)
{
    uint64_t turned = 0;
    for (unsigned i = 0; i < 64; i++)
        turned |= (raw >> i & 1) << (63 - i);
    uint64_t precise = turned >> 15 & 3;
    return (turned & ~(3ull << 15)) | (precise >> 1 | (precise & 1) << 1) << 15;
}

static void put_field(unsigned char *to, uint64_t value, unsigned n_bytes)
{
    uint16_t half = (uint16_t)value;
    uint32_t word = (uint32_t)value;
    const void *from = n_bytes == 8 ? (const void *)&value : n_bytes == 4 ? (const void *)&word : (const void *)&half;
    memcpy(to, from, n_bytes);
}

static void take_attr(struct perf_take *take, struct perf_event_attr *attr)
{
    unsigned char native[sizeof *attr] = {0};
    size_t at = 0;
    for (const char *width = widths; *width && take->at < take->n_bytes; width++) {
        unsigned n_bytes = *width == 'b' ? 8 : (unsigned)(*width - '0');
        uint64_t value = perf_take_number(take, n_bytes);
        if (*width == 'b' && take->is_swapped)
            value = turn_bits(value);
        if (at + n_bytes <= sizeof native)
            put_field(native + at, value, n_bytes);
        at += n_bytes;
    }
    memcpy(attr, native, sizeof native);
}

/* Where the fields are that records of all events have; event: the last of them. */
static void note_places(struct perf_data *data, const struct abi_layout *layout)
{
    uint64_t type = layout->sample_type,
             id_bits = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    uint64_t behind_time =
        PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    uint64_t before_time = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
    struct perf_data_places *places = &data->places, own = {0};
    if (type & PERF_SAMPLE_TIME)
        own.sample_time = 8 + 8 * (uint32_t)__builtin_popcountll(type & before_time);
    if (type & PERF_SAMPLE_IDENTIFIER)
        own.sample_id = 8;
    else if (type & PERF_SAMPLE_ID)
        own.sample_id = 8 + 8 * (uint32_t)__builtin_popcountll(type & id_bits);
    if (layout->has_sample_id_all) {
        own.n_trailer = 8 * (uint32_t)__builtin_popcountll(type & (behind_time | PERF_SAMPLE_TID));
        own.trailer_time = type & PERF_SAMPLE_TIME ? 8 * (uint32_t)__builtin_popcountll(type & behind_time) : 0;
    }
    if (data->n_events == 1) {
        *places = own;
        return;
    }
    bool is_same = places->n_trailer == own.n_trailer && places->trailer_time == own.trailer_time;
    places->sample_time = places->sample_time == own.sample_time ? own.sample_time : 0;
    places->trailer_time = is_same ? own.trailer_time : 0;
    places->n_trailer = is_same ? own.n_trailer : UINT32_MAX;
}

struct perf_data_event *perf_data_add_event(struct perf_data *data, struct perf_take *take, size_t n_bytes)
{
    const unsigned char *bytes = perf_take_bytes(take, n_bytes);
    if (!bytes || !vec_reserve(&data->events, &data->cap_events, data->n_events + 1, sizeof *data->events))
        return NULL;
    struct perf_take fields = {.bytes = bytes, .n_bytes = n_bytes, .is_swapped = data->is_swapped};
    struct perf_data_event *event = &data->events[data->n_events++];
    take_attr(&fields, &event->attr);
    event->layout = abi_layout_of_sig(&event->attr);
    event->layout.is_swapped = data->is_swapped;
    note_places(data, &event->layout);
    return event;
}

static uint64_t id_hash(const void *item)
{
    return ((const struct perf_data_id *)item)->id * 0x9e3779b97f4a7c15u >> 32;
}

static bool id_is_same(const void *a, const void *b)
{
    return ((const struct perf_data_id *)a)->id == ((const struct perf_data_id *)b)->id;
}

static const struct slots_kind id_kind = {sizeof(struct perf_data_id), id_hash, id_is_same};

bool perf_data_add_id(struct perf_data *data, struct perf_data_event *event, uint64_t id)
{
    const struct perf_data_id item = {id, (size_t)(event - data->events)};
    if (!vec_reserve(&event->ids, &event->cap_ids, event->n_ids + 1, sizeof id))
        return false;
    event->ids[event->n_ids++] = id;
    return slots_put(&data->id_slots, &id_kind, &data->ids, &data->n_ids, &data->cap_ids, &item) != SLOTS_NONE;
}

struct perf_data_event *perf_data_event_with_id(const struct perf_data *data, uint64_t id)
{
    const struct perf_data_id like = {.id = id};
    size_t i = slots_find(&data->id_slots, &id_kind, data->ids, &like);
    return i == SLOTS_NONE ? NULL : &data->events[data->ids[i].event];
}

static char *breakpoint_name(const struct perf_event_attr *attr)
{
    struct buf name = {0};
    buf_printf(&name, "mem:0x%" PRIx64 ":%s%s%s", (uint64_t)attr->bp_addr, attr->bp_type & 1 ? "r" : "",
               attr->bp_type & 2 ? "w" : "", attr->bp_type & 4 ? "x" : "");
    return name.data;
}

/* In the words of perf list. */
static char *name_of(const struct perf_event_attr *attr)
{
    static const char *const software[] = {"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
                                           "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
                                           "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    static const char *const hardware[] = {
        "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
        "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
    struct buf name = {0};
    if (attr->type == PERF_TYPE_SOFTWARE && attr->config < sizeof software / sizeof software[0])
        return strdup(software[attr->config]);
    if (attr->type == PERF_TYPE_HARDWARE && attr->config < sizeof hardware / sizeof hardware[0])
        return strdup(hardware[attr->config]);
    if (attr->type == PERF_TYPE_BREAKPOINT)
        return breakpoint_name(attr);
    if (attr->type == PERF_TYPE_RAW)
        buf_printf(&name, "r%" PRIx64, (uint64_t)attr->config);
    else
        buf_printf(&name, "type %u config 0x%" PRIx64, attr->type, (uint64_t)attr->config);
    return name.data;
}

bool perf_data_name_events(struct perf_data *data)
{
    for (size_t i = 0; i < data->n_events; i++) {
        if (!data->events[i].name)
            data->events[i].name = name_of(&data->events[i].attr);
        if (!data->events[i].name)
            return false;
    }
    return true;
}

/* --- features --- */

/* Features of a perf.data file: who recorded, names of events, build ids of the files that were mapped. Those not named
 * here are not needed. */

enum feature {
    FEATURE_TRACING_DATA = 1,
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OS_RELEASE = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_N_CPUS = 7,
    FEATURE_CPU = 8,
    FEATURE_CPU_ID = 9,
    FEATURE_COMMAND = 11,
    FEATURE_EVENTS = 12,
    FEATURE_CLOCKID = 23, /* which clock; what follows is the time of a tick */
    FEATURE_CLOCK_DATA = 29
};

#define BUILD_ID_FIELD_BYTES 24
#define MISC_BUILD_ID_SIZE 0x8000 /* byte 20 of the field is the length of the id */

/* A string that follows its length, padded with NULs; borrowed, NULL when it does not end inside. */
static const char *take_text(struct perf_take *take)
{
    uint64_t len_bytes = perf_take_number(take, 4);
    const unsigned char *text = perf_take_bytes(take, len_bytes);
    if (text && memchr(text, 0, len_bytes))
        return (const char *)text;
    take->failed = true;
    return NULL;
}

static int keep_text(struct perf_data *data, char **target, const char *text, struct error *err)
{
    if (!text)
        return 0;
    free(*target);
    *target = strdup(text);
    return *target ? 0 : perf_data_no_memory(data, err);
}

static int take_command(struct perf_data *data, struct perf_take *take, struct error *err)
{
    struct buf line = {0};
    uint64_t n_words = perf_take_number(take, 4);
    for (uint64_t i = 0; i < n_words && !take->failed; i++) {
        const char *word = take_text(take);
        if (word)
            buf_printf(&line, "%s%s", i ? " " : "", word);
    }
    int code = line.data ? keep_text(data, &data->command, line.data, err) : 0;
    buf_fini(&line);
    return code;
}

/* One event of the list; its first id shows which of the file's events it is, or without ids its number. */
static int take_event(struct perf_data *data, struct perf_take *take, uint64_t attr_bytes, size_t index,
                      struct error *err)
{
    (void)perf_take_bytes(take, attr_bytes);
    uint64_t n_ids = perf_take_number(take, 4);
    const char *name = take_text(take);
    struct perf_data_event *event = index < data->n_events ? &data->events[index] : NULL;
    if (n_ids > (take->n_bytes - take->at) / 8)
        take->failed = true;
    for (uint64_t i = 0; i < n_ids && !take->failed; i++) {
        uint64_t id = perf_take_number(take, 8);
        struct perf_data_event *found = i == 0 ? perf_data_event_with_id(data, id) : NULL;
        event = found ? found : event;
    }
    return event && name && !take->failed ? keep_text(data, &event->name, name, err) : 0;
}

static int take_events(struct perf_data *data, struct perf_take *take, struct error *err)
{
    int code = 0;
    uint64_t n_events = perf_take_number(take, 4), attr_bytes = perf_take_number(take, 4);
    for (uint64_t i = 0; i < n_events && !take->failed && !code; i++)
        code = take_event(data, take, attr_bytes, i, err);
    return code;
}

/* A build-id record without its 8-byte header. */
static int take_build_id(struct perf_data *data, struct perf_take *take, unsigned misc, struct error *err)
{
    uint32_t pid = (uint32_t)perf_take_number(take, 4);
    const unsigned char *field = perf_take_bytes(take, BUILD_ID_FIELD_BYTES);
    const char *path = perf_take_string(take);
    if (!path)
        return 0;
    if (!vec_reserve(&data->build_ids, &data->cap_build_ids, data->n_build_ids + 1, sizeof *data->build_ids))
        return perf_data_no_memory(data, err);
    struct perf_data_build_id *id = &data->build_ids[data->n_build_ids];
    *id = (struct perf_data_build_id){.path = strdup(path), .pid = pid, .n_bytes = sizeof id->bytes};
    if (!id->path)
        return perf_data_no_memory(data, err);
    if (misc & MISC_BUILD_ID_SIZE && field[20] <= sizeof id->bytes)
        id->n_bytes = field[20];
    memcpy(id->bytes, field, id->n_bytes);
    data->n_build_ids++;
    return 0;
}

int perf_data_take_build_id(struct perf_data *data, struct perf_take *take, uint64_t offset, struct error *err)
{
    (void)perf_take_number(take, 4);
    unsigned misc = (unsigned)perf_take_number(take, 2);
    uint64_t n_bytes = perf_take_number(take, 2);
    const unsigned char *bytes = n_bytes >= 8 ? perf_take_bytes(take, n_bytes - 8) : NULL;
    struct perf_take inner = {.bytes = bytes, .n_bytes = n_bytes - 8, .is_swapped = take->is_swapped};
    int code = bytes ? take_build_id(data, &inner, misc, err) : 0;
    if (!code && (!bytes || inner.failed))
        code = perf_data_fail(data, offset, "a build id does not fit into its record", err);
    return code;
}

static int take_build_ids(struct perf_data *data, struct perf_take *take, uint64_t offset, struct error *err)
{
    int code = 0;
    while (!code && take->at < take->n_bytes)
        code = perf_data_take_build_id(data, take, offset + take->at, err);
    return code;
}

/* Version, clock, and the time of day with that of the clock. */
static void take_clock(struct perf_data *data, struct perf_take *take)
{
    uint64_t version = perf_take_number(take, 4);
    data->clockid = (int32_t)perf_take_number(take, 4);
    data->wall_ns = perf_take_number(take, 8);
    data->clock_ns = perf_take_number(take, 8);
    data->has_clock = version == 1 && !take->failed;
}

static char **text_of(struct perf_data *data, unsigned feature)
{
    switch (feature) {
    case FEATURE_HOSTNAME:
        return &data->hostname;
    case FEATURE_OS_RELEASE:
        return &data->os_release;
    case FEATURE_VERSION:
        return &data->perf_version;
    case FEATURE_ARCH:
        return &data->arch;
    case FEATURE_CPU:
        return &data->cpu;
    case FEATURE_CPU_ID:
        return &data->cpu_id;
    default:
        return NULL;
    }
}

int perf_data_take_feature(struct perf_data *data, unsigned feature, struct perf_take *take, uint64_t offset,
                           struct error *err)
{
    int code = 0;
    char **text = text_of(data, feature);
    if (text)
        code = keep_text(data, text, take_text(take), err);
    else if (feature == FEATURE_TRACING_DATA)
        data->tracing = (struct perf_data_tracing){take->bytes, take->n_bytes, offset};
    else if (feature == FEATURE_N_CPUS) {
        data->n_possible = (uint32_t)perf_take_number(take, 4);
        data->n_online = (uint32_t)perf_take_number(take, 4);
    } else if (feature == FEATURE_CLOCK_DATA)
        take_clock(data, take);
    else if (feature == FEATURE_COMMAND)
        code = take_command(data, take, err);
    else if (feature == FEATURE_EVENTS)
        code = take_events(data, take, err);
    else if (feature == FEATURE_BUILD_ID)
        code = take_build_ids(data, take, offset, err);
    if (!code && take->failed)
        code = perf_data_fail(data, offset, "a feature of the header ends in the middle of a field", err);
    return code;
}
