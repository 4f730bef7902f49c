/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists what stream_open makes of a recording: what it says of itself, its types and tasks, and a line for each event,
 * as stream_put_line has it. --couplebreak: with twins; --buffer NAME: of a recording with several; --head: without the
 * events; --fields: with the fields of each; --filter CONDITION, --show-event NAME, --hide-task ID, and so on: with
 * these filters; --quiet: only counts; --levels OUT: instead, keeps the levels of each in OUT, made of its events, and
 * in OUT.passing, made while it is read, and says whether both are the same bytes. Exit status 1 and one sentence when
 * it cannot be read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/couplebreak.h"
#include "streams/levels.h"
#include "streams/stream.h"

struct list {
    struct stream_options options;
    char **paths;
    size_t n_paths;
    const char *condition, *levels;
    bool head_only, with_fields, is_quiet;
    struct {
        enum stream_filter filter;
        const char *value;
    } filters[16];
    size_t n_filters;
};

static bool take_filter(struct list *list, const char *option, const char *value)
{
    static const char *const names[STREAM_N_FILTERS] = {"--show-event", "--hide-event", "--show-task",
                                                        "--hide-task",  "--show-cpu",   "--hide-cpu"};
    for (int i = 0; i < STREAM_N_FILTERS && list->n_filters < 16; i++)
        if (strcmp(option, names[i]) == 0) {
            list->filters[list->n_filters].filter = (enum stream_filter)i;
            list->filters[list->n_filters++].value = value;
            return true;
        }
    return false;
}

static bool parse(int argc, char **argv, struct list *list)
{
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--couplebreak") == 0)
            list->options.couplebreak = true;
        else if (strcmp(option, "--head") == 0)
            list->head_only = true;
        else if (strcmp(option, "--fields") == 0)
            list->with_fields = true;
        else if (strcmp(option, "--quiet") == 0)
            list->is_quiet = true;
        else if (strcmp(option, "--buffer") == 0 && value)
            list->options.buffer = argv[++i];
        else if (strcmp(option, "--filter") == 0 && value)
            list->condition = argv[++i];
        else if (strcmp(option, "--levels") == 0 && value)
            list->levels = argv[++i];
        else if (value && take_filter(list, option, value))
            i++;
        else
            list->paths[list->n_paths++] = argv[i];
    }
    return list->n_paths > 0;
}

static void list_head(const struct stream *stream)
{
    printf("%s: host %s, clock %s, %u CPUs, tier: %s\n", stream->kind, stream->host ? stream->host : "unknown",
           stream_clock_name(stream->clock), stream->n_cpus, stream_tier_name(stream->tier));
    printf("%zu events, %" PRIu64 " lost in %" PRIu64 " places\n", stream->n_events, stream->n_lost,
           stream->n_lost_places);
    printf("couplebreak %s: %d types, flags 0x%" PRIx64 "\n", stream->couplebreak_on ? "on" : "off",
           stream->n_couplebreak_evts, stream->couplebreak_evts_flags);
    for (size_t i = 0; i < stream->n_types; i++)
        if (stream->types[i].n_events)
            printf("type %" PRId32 " %s: %" PRIu64 "\n", stream->types[i].id, stream->types[i].name,
                   stream->types[i].n_events);
    for (size_t i = 0; i < stream->n_tasks; i++)
        if (stream->tasks[i].n_events)
            printf("task %" PRId32 " %s: %" PRIu64 "\n", stream->tasks[i].task,
                   stream_comm(stream, stream->tasks[i].task), stream->tasks[i].n_events);
}

static void put_fields(const struct stream *stream, const struct stream_event *event, struct buf *out)
{
    const struct stream_type *type = stream_fields_of(stream, event);
    for (size_t i = 0; type && i < type->n_fields; i++) {
        buf_printf(out, "\n  %s %s = ", type->fields[i].type, type->fields[i].name);
        stream_put_field(stream, event, &type->fields[i], out);
    }
}

static int list_events(struct list *list, struct stream *stream, struct error *err)
{
    struct buf line = {0};
    int code = 0;
    for (size_t i = 0; i < stream->n_events && code == 0; i++) {
        line.len_bytes = 0;
        code = stream_put_line(stream, 0, &stream->events[i], &line, err);
        if (list->with_fields)
            put_fields(stream, &stream->events[i], &line);
        if (code == 0)
            printf("%s\n", line.data);
    }
    buf_fini(&line);
    return code;
}

static int filter(struct list *list, struct stream *stream, struct error *err)
{
    int code = list->condition ? stream_filter_fields(stream, list->condition, err) : 0;
    for (size_t i = 0; i < list->n_filters && code == 0; i++) {
        const char *value = list->filters[i].value;
        int32_t id = list->filters[i].filter <= STREAM_HIDE_EVENT ? stream_find_id(stream, value) : atoi(value);
        code = stream_filter_add(stream, list->filters[i].filter, id, err);
    }
    return code == 0 && (list->condition || list->n_filters) ? stream_filter_apply(stream, err) : code;
}

/* Keeps levels of a recording; their bytes are appended.  err: as levels_make_kept */
static int keep(const char *path, const char *kept, bool passing, struct buf *bytes, struct error *err)
{
    const struct levels_key key = levels_key_of(path);
    struct levels levels = {0};
    struct stream *stream = NULL;
    uint64_t n_events;
    int code = passing ? levels_make_passing(path, &key, kept, 1, &levels, &stream, &n_events, err)
                       : stream_open(path, NULL, &stream, err);
    if (code == 0 && !passing)
        code = stream_follow_names(stream, err);
    if (code == 0 && !passing)
        code = levels_make_kept(stream, &key, kept, &levels, err);
    if (code == 0)
        buf_append(bytes, levels.map, levels.n_map);
    levels_fini(&levels);
    stream_close(stream);
    return code;
}

/* Says of a recording what its levels are worth that are made in two ways. */
static int list_levels(const struct list *list, const char *path, struct error *err)
{
    struct buf whole = {0}, passed = {0}, name = {0};
    struct error why = {0};
    buf_printf(&name, "%s.passing", list->levels);
    int code = keep(path, list->levels, false, &whole, err), other = keep(path, name.data, true, &passed, &why);
    bool is_same = whole.len_bytes == passed.len_bytes &&
                   (!whole.len_bytes || memcmp(whole.data, passed.data, whole.len_bytes) == 0);
    if (code == 0 || code == ERR_UNSUPPORTED)
        printf("%s\n", other ? why.text : code ? "none, but while it is read" : is_same ? "the same" : "different");
    buf_fini(&whole);
    buf_fini(&passed);
    buf_fini(&name);
    return code == ERR_UNSUPPORTED ? 0 : code;
}

static int list_one(struct list *list, const char *path, struct error *err)
{
    if (list->levels)
        return list_levels(list, path, err);
    struct stream *stream = NULL;
    int code = stream_open(path, &list->options, &stream, err);
    if (code == 0)
        code = filter(list, stream, err);
    if (code == 0)
        list_head(stream);
    if (code == 0 && !list->head_only && !list->is_quiet)
        code = list_events(list, stream, err);
    stream_close(stream);
    return code;
}

int main(int argc, char **argv)
{
    struct list list = {.options.size = sizeof list.options, .paths = calloc((size_t)argc + 1, sizeof *list.paths)};
    struct error err = {0};
    int status = 0;
    if (!list.paths || !parse(argc, argv, &list)) {
        fprintf(stderr, "usage: list-stream [OPTION...] FILE...\n");
        return 2;
    }
    for (size_t i = 0; i < list.n_paths; i++) {
        if (list.n_paths > 1)
            printf("== %s\n", list.paths[i]);
        if (list_one(&list, list.paths[i], &err) != 0) {
            status = 1;
            fprintf(stderr, "%s\n", err.text);
        }
    }
    free(list.paths);
    return status;
}
