/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions from JSON: of ours in all versions, and of KernelShark. See recordings.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "fmt/file.h"
#include "fmt/json.h"
#include "streams/recordings-keys.h"

enum { STREAMS_MAX = 1 << 16, ROWS_MAX = 1 << 24 };

/* What is read, and from where. */
struct reading {
    struct json_take take;
    struct recordings *recordings;
    struct buf notes;
};

/* --- values --- */

/* A flag, false where it is missing. */
static bool take_flag(struct json_take *take, const json_t *object, const char *key)
{
    const json_t *flag = json_object_get(object, key);
    if (flag && !json_is_boolean(flag))
        (void)json_take_fail(take, ERR_FORMAT, key, "true or false is expected");
    return json_is_true(flag);
}

/* Nanoseconds, as a number or as text; false where they are missing. */
static bool take_ns(struct json_take *take, const json_t *object, const char *key, int64_t *ns)
{
    const json_t *value = json_object_get(object, key);
    char *end = NULL;
    if (!value || json_is_null(value))
        return false;
    if (json_is_integer(value)) {
        *ns = json_integer_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    *ns = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end)
        (void)json_take_fail(take, ERR_FORMAT, key, "a number of nanoseconds is expected");
    return take->code == 0;
}

/* Where a file is: where it was or, when it is gone, beside the session. Malloc'ed; NULL: in neither place. */
static char *find_file(struct reading *reading, const char *path)
{
    const char *session = reading->take.name, *slash = strrchr(session, '/');
    struct buf beside = {0};
    if (access(path, F_OK) == 0)
        return strdup(path);
    buf_printf(&beside, "%.*s%s", slash ? (int)(slash + 1 - session) : 0, session, path_last(path));
    if (!beside.failed && access(beside.data, F_OK) == 0)
        return beside.data;
    buf_fini(&beside);
    return NULL;
}

/* --- streams --- */

static void take_list(struct reading *reading, const json_t *filters, size_t list, struct recording *stream)
{
    struct json_take *take = &reading->take;
    size_t n;
    const json_t *items = json_object_get(filters, recordings_list_keys[list])
                              ? json_take_array_at(take, filters, recordings_list_keys[list], &n)
                              : NULL;
    for (size_t i = 0; items && take->code == 0 && i < n; i++) {
        char number[24];
        const json_t *item = json_array_get(items, i);
        const char *text = recordings_list_has_names(list) ? json_string_value(item) : NULL;
        if (!recordings_list_has_names(list) && json_is_integer(item) && json_integer_value(item) >= 0) {
            (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
            text = number;
        }
        if (!text)
            (void)json_take_fail(take, ERR_FORMAT, recordings_list_keys[list],
                                 "names, or numbers from 0, are expected");
        else
            take->code = recording_list_add(&stream->lists[list], text, take->err);
    }
}

/* Conditions on fields as KernelShark keeps them. */
static void take_conditions(struct reading *reading, const json_t *filters, struct recording *stream)
{
    struct json_take *take = &reading->take;
    size_t n;
    const json_t *items =
        json_object_get(filters, "adv event filter") ? json_take_array_at(take, filters, "adv event filter", &n) : NULL;
    for (size_t i = 0; items && take->code == 0 && i < n; i++) {
        const json_t *item = json_array_get(items, i);
        char *name = json_take_text_needed_at(take, item, "name");
        char *condition = json_take_text_needed_at(take, item, "condition");
        struct buf text = {0};
        if (take->code == 0) {
            buf_printf(&text, "%s:%s", name, condition);
            take->code = text.failed ? error_memory(take->err)
                                     : recording_list_add(&stream->lists[RECORDING_FIELDS], text.data, take->err);
        }
        buf_fini(&text);
        free(name);
        free(condition);
    }
}

static void take_filters(struct reading *reading, const json_t *of_stream, struct recording *stream)
{
    const json_t *filters = json_object_get(of_stream, "filters");
    for (size_t list = 0; filters && list < RECORDING_LISTS; list++)
        take_list(reading, filters, list, stream);
    if (filters)
        take_conditions(reading, filters, stream);
}

/* Adds a stream; *stream is the one, valid until the next. False after a failure. */
static bool add_stream(struct reading *reading, const char *file, bool has_couplebreak, struct recording **stream)
{
    struct json_take *take = &reading->take;
    char *found = file ? find_file(reading, file) : NULL;
    if (take->code == 0)
        take->code = recordings_add(reading->recordings, found ? found : file, has_couplebreak, TOPOLOGY_VIEW_DEFAULT,
                                    NULL, take->err);
    free(found);
    *stream = take->code == 0 ? &reading->recordings->streams[reading->recordings->n_streams - 1] : NULL;
    return take->code == 0;
}

static void take_streams(struct reading *reading, const json_t *root)
{
    struct json_take *take = &reading->take;
    struct recording *stream;
    size_t n;
    const json_t *list = json_take_array_at(take, root, "streams", &n);
    take->where = "streams";
    for (take->index = 0; take->code == 0 && take->index < n; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        if (json_take_word_at(take, item, "stream_id", STREAMS_MAX) != take->index && take->code == 0)
            (void)json_take_fail(take, ERR_FORMAT, "stream_id", "streams are numbered from 0 in their order");
        bool has_couplebreak = take_flag(take, item, "couplebreak");
        char *file = json_take_text_needed_at(take, item, "file");
        if (take->code == 0 && add_stream(reading, file, has_couplebreak, &stream)) {
            stream->buffer = json_object_get(item, "buffer") ? json_take_text_at(take, item, "buffer") : NULL;
            stream->has_offset = take_ns(take, item, "offset_ns", &stream->offset_ns);
            take_filters(reading, item, stream);
        }
        free(file);
    }
}

static void take_view(struct reading *reading, uint64_t number, uint64_t view, const char *path)
{
    if (number >= reading->recordings->n_streams)
        return;
    struct recording *stream = &reading->recordings->streams[number];
    char *found = find_file(reading, path);
    if (!found) {
        buf_printf(&reading->notes, "%s%s: the topology of stream %" PRIu64 " is gone, and is left out",
                   reading->notes.len_bytes ? "\n" : "", path, number);
        return;
    }
    free(stream->topology);
    stream->topology = found;
    stream->view = (enum topology_view)view;
}

static void take_views(struct reading *reading, const json_t *root)
{
    struct json_take *take = &reading->take;
    size_t n;
    const json_t *views = json_object_get(root, RECORDINGS_VIEWS);
    if (!views || take->code != 0)
        return;
    take->where = NULL;
    char *type = json_take_text_needed_at(take, views, "type");
    if (take->code == 0 && strcmp(type, RECORDINGS_VIEWS_TYPE) != 0)
        (void)json_take_fail(take, ERR_FORMAT, "type", "\"" RECORDINGS_VIEWS_TYPE "\" is expected");
    free(type);
    const json_t *list = json_take_array_at(take, views, "topologies", &n);
    take->where = "topologies";
    for (take->index = 0; take->code == 0 && take->index < n; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        uint64_t number = json_take_word_at(take, item, "stream_id", STREAMS_MAX);
        uint64_t view = json_take_word_at(take, item, "view", TOPOLOGY_VIEW_NUMATREE);
        char *path = json_take_text_needed_at(take, item, "topology_xml_fpath");
        if (take->code == 0)
            take_view(reading, number, view, path);
        free(path);
    }
    take->where = NULL;
}

/* --- what is of all streams together --- */

static bool add_row(struct reading *reading, struct recording_row row)
{
    struct recordings *recordings = reading->recordings;
    if (!vec_reserve(&recordings->rows, &recordings->cap_rows, recordings->n_rows + 1, sizeof *recordings->rows)) {
        reading->take.code = error_memory(reading->take.err);
        return false;
    }
    recordings->rows[recordings->n_rows++] = row;
    return true;
}

static void take_rows(struct reading *reading, const json_t *root)
{
    struct json_take *take = &reading->take;
    size_t n;
    const json_t *list = json_object_get(root, "rows") ? json_take_array_at(take, root, "rows", &n) : NULL;
    take->where = "rows";
    for (take->index = 0; list && take->code == 0 && take->index < n && take->index < ROWS_MAX; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        bool is_cpu = json_object_get(item, "cpu") != NULL;
        struct recording_row row = {.stream = json_take_word_at(take, item, "stream_id", STREAMS_MAX),
                                    .number = json_take_int32_at(take, item, is_cpu ? "cpu" : "task"),
                                    .is_cpu = is_cpu,
                                    .is_hidden = take_flag(take, item, "hidden"),
                                    .is_pinned = take_flag(take, item, "pinned")};
        if (take->code == 0 && row.stream < reading->recordings->n_streams)
            (void)add_row(reading, row);
    }
    take->where = NULL;
}

static void take_markers(struct reading *reading, const json_t *root)
{
    const json_t *markers = json_object_get(root, "markers");
    const char *active = json_string_value(json_object_get(markers, "active"));
    reading->recordings->b_is_active = active && strcmp(active, "b") == 0;
    for (size_t i = 0; i < 2; i++) {
        const json_t *item = json_object_get(markers, recordings_marker_keys[i]);
        struct recording_marker *marker = &reading->recordings->markers[i];
        marker->is_row = item && json_object_get(item, "row");
        marker->is_set = item && take_ns(&reading->take, item, marker->is_row ? "row" : "ns", &marker->at);
    }
}

static void take_shown(struct reading *reading, const json_t *root)
{
    struct recordings *recordings = reading->recordings;
    struct json_take *take = &reading->take;
    recordings->has_from = take_ns(take, root, "from_ns", &recordings->from_ns);
    recordings->has_to = take_ns(take, root, "to_ns", &recordings->to_ns);
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        if (json_object_get(root, recordings_choice_keys[i]))
            recordings->choices[i] = json_take_text_at(take, root, recordings_choice_keys[i]);
    take_rows(reading, root);
    take_markers(reading, root);
    recordings->colors = json_object_get(root, "colors") ? json_take_text_at(take, root, "colors") : NULL;
}

/* --- KernelShark's --- */

/* The rows that it shows of a stream. */
static void take_plots(struct reading *reading, const json_t *item, const char *key, bool is_cpu)
{
    struct json_take *take = &reading->take;
    size_t n;
    const json_t *list = json_object_get(item, key) ? json_take_array_at(take, item, key, &n) : NULL;
    for (size_t i = 0; list && take->code == 0 && i < n && i < ROWS_MAX; i++) {
        json_int_t number = json_integer_value(json_array_get(list, i));
        const struct recording_row row = {
            .stream = reading->recordings->n_streams - 1, .number = (int32_t)number, .is_cpu = is_cpu};
        if (!json_is_integer(json_array_get(list, i)) || number < 0 || number > INT32_MAX)
            (void)json_take_fail(take, ERR_FORMAT, key, "numbers are expected");
        else
            (void)add_row(reading, row);
    }
}

static void take_kernelshark_stream(struct reading *reading, const json_t *item, bool is_alone)
{
    struct json_take *take = &reading->take;
    const json_t *data = json_object_get(item, "data"), *moved = json_object_get(item, "calib. array");
    struct recording *stream;
    if (!json_is_object(data)) {
        (void)json_take_fail(take, ERR_FORMAT, "data", "an object is expected");
        return;
    }
    char *file = json_take_text_needed_at(take, data, "file");
    char *buffer = json_object_get(data, "name") ? json_take_text_at(take, data, "name") : NULL;
    bool has_couplebreak = take_flag(take, item, "couplebreak");
    if (take->code == 0 && add_stream(reading, file, has_couplebreak, &stream)) {
        const json_t *offset = json_array_get(moved, 0);
        /* streams that it does not move stand on one axis as they are */
        stream->has_offset = json_is_integer(offset) || !is_alone;
        stream->offset_ns = json_integer_value(offset);
        if (buffer && strcmp(buffer, "top buffer") != 0) {
            stream->buffer = buffer;
            buffer = NULL;
        }
        take_filters(reading, item, stream);
        take_plots(reading, item, "CPUPlots", true);
        take_plots(reading, item, "TaskPlots", false);
    }
    free(buffer);
    free(file);
}

static void take_kernelshark_markers(struct reading *reading, const json_t *root)
{
    static const char *const names[] = {"markA", "markB"};
    const json_t *markers = json_object_get(root, "Markers");
    const char *active = json_string_value(json_object_get(markers, "Active"));
    reading->recordings->b_is_active = active && strcmp(active, "B") == 0;
    for (size_t i = 0; i < 2; i++) {
        const json_t *item = json_object_get(markers, names[i]), *row = json_object_get(item, "row");
        bool is_set = json_is_true(json_object_get(item, "isSet")) && json_is_integer(row);
        reading->recordings->markers[i] =
            (struct recording_marker){.is_set = is_set, .is_row = is_set, .at = json_integer_value(row)};
    }
}

static void take_kernelshark(struct reading *reading, const json_t *root)
{
    struct recordings *recordings = reading->recordings;
    size_t n;
    const json_t *list = json_take_array_at(&reading->take, root, "data streams", &n);
    const json_t *range = json_object_get(json_object_get(root, "Model"), "range");
    const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1);
    reading->take.where = "data streams";
    for (reading->take.index = 0; reading->take.code == 0 && reading->take.index < n; reading->take.index++)
        take_kernelshark_stream(reading, json_array_get(list, reading->take.index), n == 1);
    reading->take.where = NULL;
    recordings->has_from = json_is_integer(from) && json_is_integer(to);
    recordings->has_to = recordings->has_from;
    recordings->from_ns = json_integer_value(from);
    recordings->to_ns = json_integer_value(to);
    take_kernelshark_markers(reading, root);
}

/* --- all of it --- */

static void take_ours(struct reading *reading, const json_t *root)
{
    struct json_take *take = &reading->take;
    char *format = json_take_text_needed_at(take, root, "format");
    if (take->code == 0 && strcmp(format, RECORDINGS_FORMAT) != 0)
        (void)json_take_fail(take, ERR_FORMAT, "format", "\"" RECORDINGS_FORMAT "\" is expected");
    free(format);
    uint64_t version = take->code == 0 ? json_take_word_at(take, root, "version", 1 << 30) : 0;
    if (take->code == 0 && (version < 1 || version > RECORDINGS_VERSION))
        (void)json_take_fail(take, ERR_FORMAT, "version", "versions 1 and 2 can be read");
    if (take->code == 0)
        take_streams(reading, root);
    if (take->code == 0 && version > 1)
        take_shown(reading, root);
}

int recordings_read(const char *path, struct recordings *recordings, struct error *err)
{
    struct buf text = {0};
    struct reading reading = {.take = {.name = path, .err = err}, .recordings = recordings};
    int code = file_read(path, &text, err);
    if (code != 0)
        return code;
    json_t *root = json_take_parse(&reading.take, text.data, text.len_bytes);
    const char *type = root ? json_string_value(json_object_get(root, "type")) : NULL;
    if (root && type && strcmp(type, RECORDINGS_KERNELSHARK) == 0)
        take_kernelshark(&reading, root);
    else if (root)
        take_ours(&reading, root);
    take_views(&reading, root);
    json_decref(root);
    buf_fini(&text);
    recordings->notes = reading.notes.data;
    if (reading.take.code == 0 && reading.notes.failed)
        reading.take.code = error_memory(err);
    if (reading.take.code != 0)
        recordings_fini(recordings);
    return reading.take.code;
}
