/* SPDX-License-Identifier: BSD-3-Clause */
/* Features of a perf.data file: who recorded, names of events, build ids of the files that were mapped. Those not named
 * here are not needed. */
#include <stdlib.h>
#include <string.h>

#include "import/perf-data-internal.h"

enum feature {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OS_RELEASE = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_CPU = 8,
    FEATURE_CPU_ID = 9,
    FEATURE_COMMAND = 11,
    FEATURE_EVENTS = 12
};

#define BUILD_ID_FIELD_BYTES 24
#define MISC_BUILD_ID_SIZE 0x8000 /* byte 20 of the field tells how long the id is */

/* A string behind its length, padded with NULs; borrowed, NULL when it does not end inside. */
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

/* One event of the list; the first id tells which of the file's it is, or without ids its number. */
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
