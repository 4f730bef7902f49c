/* SPDX-License-Identifier: BSD-3-Clause */
/* The container of a perf.data file: header, events, where records and features lie. See perf-data.h. */
#include "import/perf-data.h"

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
#include "import/perf-data-internal.h"

#define HEADER_BYTES_OLD 72 /* without the bits of the features */
#define HEADER_BYTES 104
#define HEADER_BYTES_PIPE 16
#define FEATURE_WORDS 4
#define ATTR_BYTES_MIN 64 /* the first perf_event_attr that was ever */

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

int perf_data_span(const struct perf_data *data, uint64_t offset, uint64_t n_bytes, const char *what,
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
        if (!perf_data_add_id(event, perf_take_number(&take, 8)))
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
    int code = data->name ? get_bytes(path, data, err) : error_set(err, ERR_MEMORY, "out of memory");
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
    free(data->build_ids);
    free(data->records);
    buf_fini(&data->inflated);
    *data = (struct perf_data){0};
}
