/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: what they hold, and how they are written as JSON. See recordings.h; they are read in recordings-read.c.
 * Views are in a document with the name, type and keys of the original design. */
#include "streams/recordings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmt/file.h"
#include "fmt/json.h"
#include "streams/recordings-keys.h"

int recordings_add(struct recordings *recordings, const char *file, bool has_couplebreak, enum topology_view view,
                   const char *topology, struct error *err)
{
    if (!vec_reserve(&recordings->streams, &recordings->capacity, recordings->n_streams + 1,
                     sizeof *recordings->streams))
        return error_memory(err);
    struct recording *stream = &recordings->streams[recordings->n_streams];
    *stream = (struct recording){.file = strdup(file),
                                 .has_couplebreak = has_couplebreak,
                                 .view = view,
                                 .topology = topology ? strdup(topology) : NULL};
    recordings->n_streams++;
    return stream->file && (!topology || stream->topology) ? 0 : error_memory(err);
}

int recording_list_add(struct recording_list *list, const char *text, struct error *err)
{
    char *copy = strdup(text);
    if (!copy || !vec_reserve(&list->texts, &list->capacity, list->n + 1, sizeof *list->texts)) {
        free(copy);
        return error_memory(err);
    }
    list->texts[list->n++] = copy;
    return 0;
}

static bool copy_text(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

int recording_copy_lists(const struct recording *from, struct recording *to, struct error *err)
{
    int code = 0;
    for (size_t list = 0; list < RECORDING_LISTS; list++)
        for (size_t i = 0; !code && i < from->lists[list].n; i++)
            code = recording_list_add(&to->lists[list], from->lists[list].texts[i], err);
    return code;
}

int recordings_copy_stream(const struct recording *from, struct recordings *to, struct error *err)
{
    int code = recordings_add(to, from->file, from->has_couplebreak, from->view, from->topology, err);
    if (code)
        return code;
    struct recording *made = &to->streams[to->n_streams - 1];
    made->has_offset = from->has_offset;
    made->offset_ns = from->offset_ns;
    if (!copy_text(from->buffer, &made->buffer))
        return error_memory(err);
    return recording_copy_lists(from, made, err);
}

int recordings_copy_view(const struct recordings *from, struct recordings *to, struct error *err)
{
    bool ok = copy_text(from->colors, &to->colors);
    to->has_from = from->has_from;
    to->has_to = from->has_to;
    to->from_ns = from->from_ns;
    to->to_ns = from->to_ns;
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        ok = copy_text(from->choices[i], &to->choices[i]) && ok;
    memcpy(to->markers, from->markers, sizeof to->markers);
    to->b_is_active = from->b_is_active;
    if (from->n_rows && !vec_reserve(&to->rows, &to->cap_rows, from->n_rows, sizeof *to->rows))
        return error_memory(err);
    if (from->n_rows)
        memcpy(to->rows, from->rows, from->n_rows * sizeof *to->rows);
    to->n_rows = from->n_rows;
    return ok ? 0 : error_memory(err);
}

void recordings_fini(struct recordings *recordings)
{
    for (size_t i = 0; i < recordings->n_streams; i++) {
        struct recording *stream = &recordings->streams[i];
        for (size_t list = 0; list < RECORDING_LISTS; list++) {
            for (size_t k = 0; k < stream->lists[list].n; k++)
                free(stream->lists[list].texts[k]);
            free(stream->lists[list].texts);
        }
        free(stream->file);
        free(stream->topology);
        free(stream->buffer);
    }
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        free(recordings->choices[i]);
    free(recordings->streams);
    free(recordings->rows);
    free(recordings->colors);
    free(recordings->notes);
    *recordings = (struct recordings){0};
}

/* --- applying --- */

/* The number that a text of a list stands for; false: the stream has no such type, or it is no number. */
static bool find_value(const struct stream *stream, size_t list, const char *text, int32_t *value)
{
    char *end;
    if (list == STREAM_SHOW_EVENT || list == STREAM_HIDE_EVENT) {
        *value = stream_find_id(stream, text);
        return *value != STREAM_ID_NONE;
    }
    long number = strtol(text, &end, 10);
    *value = (int32_t)number;
    return end != text && !*end && number >= 0 && number <= INT32_MAX;
}

int recording_apply(const struct recording *recording, struct stream *stream, struct error *err)
{
    const struct recording_list *fields = &recording->lists[RECORDING_FIELDS];
    bool has_any = fields->n > 0;
    struct buf conditions = {0};
    int32_t value;
    int code = 0;
    for (size_t list = 0; list < STREAM_N_FILTERS; list++)
        for (size_t i = 0; i < recording->lists[list].n && !code; i++)
            if (find_value(stream, list, recording->lists[list].texts[i], &value)) {
                code = stream_filter_add(stream, (enum stream_filter)list, value, err);
                has_any = true;
            }
    for (size_t i = 0; i < fields->n; i++)
        buf_printf(&conditions, "%s%s", i ? "\n" : "", fields->texts[i]);
    if (!code && conditions.failed)
        code = error_memory(err);
    if (!code && fields->n)
        code = stream_filter_fields(stream, conditions.data, err);
    buf_fini(&conditions);
    return code || !has_any ? code : stream_filter_apply(stream, err);
}

/* --- writing --- */

static int put_path(struct buf *out, const char *key, const char *path, struct error *err)
{
    char *whole = realpath(path, NULL);
    if (!whole)
        return error_set(err, errno == ENOMEM ? ERR_MEMORY : ERR_IO, "%s: cannot be found: %s", path, strerror(errno));
    json_put_text_at(out, key, whole);
    free(whole);
    return 0;
}

/* Nanoseconds, as text where readers with doubles would round them. */
static void put_ns(struct buf *out, const char *key, int64_t ns)
{
    const int64_t most = INT64_C(1) << 53;
    json_put_key(out, key, 0);
    buf_printf(out, ns > most || ns < -most ? "\"%" PRId64 "\"" : "%" PRId64, ns);
}

static void put_flag(struct buf *out, const char *key, bool flag)
{
    json_put_key(out, key, 0);
    buf_printf(out, flag ? "true" : "false");
}

static void put_lists(const struct recording *stream, struct buf *out)
{
    bool has_any = false;
    for (size_t list = 0; list < RECORDING_LISTS; list++)
        has_any |= stream->lists[list].n > 0;
    if (!has_any)
        return;
    json_put_key(out, "filters", 0);
    buf_printf(out, "{\"type\": \"" RECORDINGS_FILTER_TYPE "\"");
    for (size_t list = 0; list < RECORDING_LISTS; list++) {
        if (!stream->lists[list].n)
            continue;
        json_put_key(out, recordings_list_keys[list], 0);
        for (size_t i = 0; i < stream->lists[list].n; i++) {
            buf_printf(out, i ? ", " : "[");
            if (recordings_list_has_names(list))
                json_put_text(out, stream->lists[list].texts[i]);
            else
                buf_printf(out, "%s", stream->lists[list].texts[i]);
        }
        buf_printf(out, "]");
    }
    buf_printf(out, "}");
}

static int put_streams(const struct recordings *recordings, struct buf *out, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < recordings->n_streams; i++) {
        const struct recording *stream = &recordings->streams[i];
        buf_printf(out, "%s\n  {\"stream_id\": %zu", i ? "," : "", i);
        code = put_path(out, "file", stream->file, err);
        put_flag(out, "couplebreak", stream->has_couplebreak);
        if (stream->buffer)
            json_put_text_at(out, "buffer", stream->buffer);
        if (stream->has_offset)
            put_ns(out, "offset_ns", stream->offset_ns);
        put_lists(stream, out);
        buf_append(out, "}", 1);
    }
    return code;
}

static int put_views(const struct recordings *recordings, struct buf *out, struct error *err)
{
    int code = 0;
    const char *between = "";
    for (size_t i = 0; code == 0 && i < recordings->n_streams; i++) {
        if (!recordings->streams[i].topology)
            continue;
        buf_printf(out, "%s\n  {\"stream_id\": %zu, \"view\": %d", between, i, (int)recordings->streams[i].view);
        code = put_path(out, "topology_xml_fpath", recordings->streams[i].topology, err);
        buf_append(out, "}", 1);
        between = ",";
    }
    return code;
}

static void put_rows(const struct recordings *recordings, struct buf *out)
{
    json_put_key(out, "rows", 0);
    for (size_t i = 0; i < recordings->n_rows; i++) {
        const struct recording_row *row = &recordings->rows[i];
        buf_printf(out, "%s\n  {\"stream_id\": %zu, \"%s\": %" PRId32, i ? "," : "[", row->stream,
                   row->is_cpu ? "cpu" : "task", row->number);
        if (row->is_hidden)
            put_flag(out, "hidden", true);
        if (row->is_pinned)
            put_flag(out, "pinned", true);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_markers(const struct recordings *recordings, struct buf *out)
{
    json_put_key(out, "markers", 0);
    buf_printf(out, "{\"active\": \"%s\"", recordings->b_is_active ? "b" : "a");
    for (size_t i = 0; i < 2; i++)
        if (recordings->markers[i].is_set) {
            json_put_key(out, recordings_marker_keys[i], 0);
            buf_append(out, "{", 1);
            buf_printf(out, "\"%s\": ", recordings->markers[i].is_row ? "row" : "ns");
            buf_printf(out, "\"%" PRId64 "\"}", recordings->markers[i].at);
        }
    buf_append(out, "}", 1);
}

/* What is of all streams together, as far as anything was said. */
static void put_view(const struct recordings *recordings, struct buf *out)
{
    if (recordings->has_from)
        put_ns(out, "from_ns", recordings->from_ns);
    if (recordings->has_to)
        put_ns(out, "to_ns", recordings->to_ns);
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        if (recordings->choices[i])
            json_put_text_at(out, recordings_choice_keys[i], recordings->choices[i]);
    if (recordings->n_rows)
        put_rows(recordings, out);
    if (recordings->markers[0].is_set || recordings->markers[1].is_set)
        put_markers(recordings, out);
    if (recordings->colors)
        json_put_text_at(out, "colors", recordings->colors);
}

/* Only another session is replaced: a slip of the keyboard must not cost a recording, or root a device. */
static int check_place(const char *path, struct error *err)
{
    struct stat info;
    struct recordings there = {0};
    struct error why;
    if (lstat(path, &info) != 0)
        return 0;
    bool is_session = S_ISREG(info.st_mode) && (info.st_size == 0 || recordings_read(path, &there, &why) == 0);
    recordings_fini(&there);
    return is_session ? 0 : error_set(err, ERR_IO, "%s: is no session, and is not replaced; give another name", path);
}

int recordings_put(const struct recordings *recordings, struct buf *out, struct error *err)
{
    buf_printf(out, "{\"format\": \"" RECORDINGS_FORMAT "\", \"version\": %d, \"streams\": [", RECORDINGS_VERSION);
    int code = put_streams(recordings, out, err);
    buf_printf(out, "],\n \"" RECORDINGS_VIEWS "\": {\"type\": \"" RECORDINGS_VIEWS_TYPE "\", \"topologies\": [");
    if (code == 0)
        code = put_views(recordings, out, err);
    buf_printf(out, "]}");
    put_view(recordings, out);
    buf_printf(out, "}\n");
    return code == 0 && out->failed ? error_memory(err) : code;
}

int recordings_write(const char *path, const struct recordings *recordings, struct error *err)
{
    struct buf out = {0};
    int code = check_place(path, err);
    code = code ? code : recordings_put(recordings, &out, err);
    if (code == 0)
        code = file_replace(path, out.data, out.len_bytes, err);
    buf_fini(&out);
    return code;
}
