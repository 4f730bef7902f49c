/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions as JSON: see recordings.h. Views are in a document with the name, type and keys of the original design. */
#include "streams/recordings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmt/file.h"
#include "fmt/json.h"

#define FORMAT "locus-session"
#define VIEWS "NUMA TV"
#define VIEWS_TYPE "kshark.config.topology"

enum { SESSION_VERSION = 1, STREAMS_MAX = 1 << 16 };

int recordings_add(struct recordings *recordings, const char *file, bool has_couplebreak, enum topology_view view,
                   const char *topology, struct error *err)
{
    if (!vec_reserve(&recordings->streams, &recordings->capacity, recordings->n_streams + 1,
                     sizeof *recordings->streams))
        return error_memory(err);
    struct recording *stream = &recordings->streams[recordings->n_streams];
    *stream = (struct recording){strdup(file), has_couplebreak, view, topology ? strdup(topology) : NULL};
    recordings->n_streams++;
    return stream->file && (!topology || stream->topology) ? 0 : error_memory(err);
}

void recordings_fini(struct recordings *recordings)
{
    for (size_t i = 0; i < recordings->n_streams; i++) {
        free(recordings->streams[i].file);
        free(recordings->streams[i].topology);
    }
    free(recordings->streams);
    *recordings = (struct recordings){0};
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

static int put_streams(const struct recordings *recordings, struct buf *out, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < recordings->n_streams; i++) {
        buf_printf(out, "%s\n  {\"stream_id\": %zu", i ? "," : "", i);
        code = put_path(out, "file", recordings->streams[i].file, err);
        json_put_key(out, "couplebreak", 0);
        buf_printf(out, "%s}", recordings->streams[i].has_couplebreak ? "true" : "false");
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

int recordings_write(const char *path, const struct recordings *recordings, struct error *err)
{
    struct buf out = {0};
    int code = check_place(path, err);
    if (code != 0)
        return code;
    buf_printf(&out, "{\"format\": \"" FORMAT "\", \"version\": %d, \"streams\": [", SESSION_VERSION);
    code = put_streams(recordings, &out, err);
    buf_printf(&out, "],\n \"" VIEWS "\": {\"type\": \"" VIEWS_TYPE "\", \"topologies\": [");
    if (code == 0)
        code = put_views(recordings, &out, err);
    buf_printf(&out, "]}}\n");
    if (code == 0 && out.failed)
        code = error_memory(err);
    if (code == 0)
        code = file_replace(path, out.data, out.len_bytes, err);
    buf_fini(&out);
    return code;
}

/* --- reading --- */

static void take_streams(struct json_take *take, const json_t *root, struct recordings *recordings)
{
    size_t n;
    const json_t *list = json_take_array_at(take, root, "streams", &n);
    take->where = "streams";
    for (take->index = 0; take->code == 0 && take->index < n; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        const json_t *couplebreak = json_object_get(item, "couplebreak");
        if (json_take_word_at(take, item, "stream_id", STREAMS_MAX) != take->index && take->code == 0)
            (void)json_take_fail(take, ERR_FORMAT, "stream_id", "streams are numbered from 0 in their order");
        if (couplebreak && !json_is_boolean(couplebreak))
            (void)json_take_fail(take, ERR_FORMAT, "couplebreak", "true or false is expected");
        char *file = json_take_text_needed_at(take, item, "file");
        if (take->code == 0)
            take->code =
                recordings_add(recordings, file, json_is_true(couplebreak), TOPOLOGY_VIEW_DEFAULT, NULL, take->err);
        free(file);
    }
}

static void take_views(struct json_take *take, const json_t *root, struct recordings *recordings)
{
    size_t n;
    const json_t *views = json_object_get(root, VIEWS);
    if (!views || take->code != 0)
        return;
    take->where = NULL;
    char *type = json_take_text_needed_at(take, views, "type");
    if (take->code == 0 && strcmp(type, VIEWS_TYPE) != 0)
        (void)json_take_fail(take, ERR_FORMAT, "type", "\"" VIEWS_TYPE "\" is expected");
    free(type);
    const json_t *list = json_take_array_at(take, views, "topologies", &n);
    take->where = "topologies";
    for (take->index = 0; take->code == 0 && take->index < n; take->index++) {
        const json_t *item = json_array_get(list, take->index);
        uint64_t number = json_take_word_at(take, item, "stream_id", STREAMS_MAX);
        uint64_t view = json_take_word_at(take, item, "view", TOPOLOGY_VIEW_NUMATREE);
        char *path = json_take_text_needed_at(take, item, "topology_xml_fpath");
        if (take->code == 0 && number < recordings->n_streams && access(path, F_OK) == 0) {
            struct recording *stream = &recordings->streams[number];
            free(stream->topology);
            stream->topology = path;
            stream->view = (enum topology_view)view;
            path = NULL;
        }
        free(path);
    }
}

int recordings_read(const char *path, struct recordings *recordings, struct error *err)
{
    struct buf text = {0};
    struct json_take take = {.name = path, .err = err};
    int code = file_read(path, &text, err);
    if (code != 0)
        return code;
    json_t *root = json_take_parse(&take, text.data, text.len_bytes);
    char *format = root ? json_take_text_needed_at(&take, root, "format") : NULL;
    if (take.code == 0 && strcmp(format, FORMAT) != 0)
        (void)json_take_fail(&take, ERR_FORMAT, "format", "\"" FORMAT "\" is expected");
    if (take.code == 0 && json_take_word_at(&take, root, "version", 1 << 30) != SESSION_VERSION)
        (void)json_take_fail(&take, ERR_FORMAT, "version", "only version 1 can be read");
    free(format);
    if (take.code == 0)
        take_streams(&take, root, recordings);
    take_views(&take, root, recordings);
    json_decref(root);
    buf_fini(&text);
    if (take.code != 0)
        recordings_fini(recordings);
    return take.code;
}
