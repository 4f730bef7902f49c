/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings on one time line, and what its rows are: see timeline.h. */
#include "config.h"

#include "session/timeline.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/streams/sched-report.h"
#include "streams/parts.h"
#include "table/table.h"

enum { KEPT_MIN = 200000 }; /* events, from which on levels are kept in a file */

/* --- opening --- */

/* The name of the topology that a measurement has beside its logs, malloc'ed; NULL: there is none. */
static char *find_topology(const char *directory)
{
    struct dirent *entry;
    struct buf path = {0};
    DIR *opened = opendir(directory);
    while (opened && !path.len_bytes && (entry = readdir(opened)))
        if (strncmp(entry->d_name, "topology-", 9) == 0)
            buf_printf(&path, "%s/%s", directory, entry->d_name);
    if (opened)
        (void)closedir(opened);
    return path.data;
}

/* Takes the topology of a measurement; none is no failure.  err: ERR_MEMORY */
static int take_own(struct time_stream *of, struct error *err)
{
    struct time_topology *own = &of->topologies[TIME_TOPOLOGY_OWN];
    struct error ignored = {0};
    char *path = find_topology(of->stream->path);
    int code = path ? topology_read(path, &own->topology, &ignored) : ERR_NOT_FOUND;
    code = code ? code : brief_topology_make(&own->topology, &own->brief, &ignored);
    own->path = code == 0 ? path : NULL;
    if (code != 0)
        free(path);
    return code == ERR_MEMORY ? error_memory(err) : 0;
}

static void forget_topology(struct time_topology *topology)
{
    free(topology->path);
    brief_topology_fini(&topology->brief);
    topology_fini(&topology->topology);
    *topology = (struct time_topology){0};
}

/* Takes the topology of a file as the given one, instead of the one before; if it is refused, that one stays.
 * err: ERR_NOT_FOUND, ERR_FORMAT, ERR_MEMORY */
static int take_given(struct time_stream *of, const char *path, struct error *err)
{
    struct time_topology *given = &of->topologies[TIME_TOPOLOGY_GIVEN];
    const struct stream *stream = of->stream;
    bool *has_events = calloc((size_t)stream->n_cpus + 1, sizeof *has_events);
    if (!has_events)
        return error_memory(err);
    for (size_t i = 0; i < of->levels.n_cpus; i++) {
        const struct level_row *row = &of->levels.rows[i];
        if ((uint32_t)row->number < stream->n_cpus)
            has_events[row->number] = row->first_ns <= row->last_ns;
    }
    const struct stream_cpus cpus = {stream->n_cpus, has_events};
    struct stream_views views = {0};
    bool is_taken = stream_views_create(&views, 0, &cpus, TOPOLOGY_VIEW_NUMATREE, path, err) == VIEW_DONE;
    if (is_taken) {
        struct stream_view *view = views.all[0]; /* goes, without what it has */
        forget_topology(given);
        *given = (struct time_topology){view->path, view->topology, view->brief};
        view->path = NULL;
        view->topology = (struct topology){0};
        view->brief = (struct brief_topology){0};
    }
    stream_views_clear(&views);
    free(has_events);
    return is_taken ? 0 : err->code ? err->code : error_set(err, ERR_NOT_FOUND, "%.600s: no topology", path);
}

/* Shows a topology that is there, or none. */
static void show_topology(struct time_stream *of, enum time_topology_kind kind)
{
    of->shown = of->topologies[kind].path ? kind : TIME_TOPOLOGY_NONE;
    of->brief = of->topologies[of->shown].brief;
}

static int take_topologies(struct time_stream *of, struct error *err)
{
    const char *given = of->wanted->topology;
    struct error why = {0};
    int code = take_own(of, err);
    if (code == 0 && given && *given && take_given(of, given, &why) != 0) {
        of->refusal = strdup(why.text);
        code = of->refusal && why.code != ERR_MEMORY ? 0 : error_memory(err);
    }
    if (!given) /* its own is shown unless another one is wanted */
        show_topology(of, TIME_TOPOLOGY_OWN);
    else if (of->wanted->view == TOPOLOGY_VIEW_NUMATREE)
        show_topology(of, TIME_TOPOLOGY_GIVEN);
    return code;
}

static bool find_kept(const struct levels_places *kept, const char *path, struct time_stream *of)
{
    const struct buf *places[] = {&kept->beside, &kept->cached};
    for (size_t i = 0; i < sizeof places / sizeof *places && !of->is_shell; i++)
        of->is_shell = places[i]->len_bytes && !places[i]->failed &&
                       levels_map(path, &of->key, places[i]->data, &of->levels, &of->stream, &of->n_events);
    return of->is_shell;
}

/* Makes levels in a file that is kept: making them takes long. ERR_IO: there is no place for it. */
static int make_kept(const struct levels_places *kept, struct time_stream *of, struct error *err)
{
    int code = ERR_IO;
    if (!kept->beside.failed)
        code = levels_make_kept(of->stream, &of->key, kept->beside.data, &of->levels, err);
    if (code == ERR_IO && kept->cached.len_bytes && !kept->cached.failed) {
        code = levels_make_kept(of->stream, &of->key, kept->cached.data, &of->levels, err);
        if (code == 0)
            levels_trim_cache(kept->cached.data);
    }
    return code;
}

static int read_one(const struct recording *wanted, const struct stream_namer *namer, struct stream **stream,
                    struct error *err)
{
    const struct stream_options options = {
        .size = sizeof options, .namer = namer, .couplebreak = wanted->has_couplebreak, .buffer = wanted->buffer};
    int code = stream_open(wanted->file, &options, stream, err);
    if (code != 0)
        return code;
    code = stream_follow_names(*stream, err);
    code = code ? code : recording_apply(wanted, *stream, err);
    if (code != 0) {
        stream_close(*stream);
        *stream = NULL;
    }
    return code;
}

/* Reads a recording, and makes its levels; kept: where they are kept if they are worth it, NULL: nowhere. */
static int make_levels(const struct stream_namer *namer, const struct levels_places *kept, struct time_stream *of,
                       struct error *err)
{
    int code = read_one(of->wanted, namer, &of->stream, err);
    const struct levels_key after = levels_key_of(of->wanted->file);
    if (!levels_key_is_same(&of->key, &after)) /* which of them was read? */
        of->key = (struct levels_key){0};
    bool is_kept = code == 0 && kept && of->stream->n_events >= KEPT_MIN && make_kept(kept, of, err) == 0;
    if (code == 0 && !is_kept)
        code = levels_make(of->stream, &of->levels, err);
    of->n_events = code == 0 ? of->stream->n_events : 0;
    return code;
}

/* Makes levels that are kept of a large recording, of which no event is kept: who asks for these reads them then.
 * False: it is none of those, or there is no place for them. */
static bool pass_kept(const struct levels_places *kept, const char *path, struct time_stream *of)
{
    enum { EVENT_BYTES_LEAST = 28 };
    const struct buf *places[] = {&kept->beside, &kept->cached};
    int code = of->key.n_bytes < KEPT_MIN * EVENT_BYTES_LEAST ? ERR_UNSUPPORTED : ERR_IO;
    for (size_t i = 0; i < sizeof places / sizeof *places && code == ERR_IO; i++) {
        struct error ignored = {0};
        if (places[i]->len_bytes && !places[i]->failed)
            code = levels_make_passing(path, &of->key, places[i]->data, KEPT_MIN, &of->levels, &of->stream,
                                       &of->n_events, &ignored);
        if (code == 0 && places[i] == &kept->cached)
            levels_trim_cache(kept->cached.data);
    }
    of->is_shell = code == 0;
    return of->is_shell;
}

static int open_one(struct recording *wanted, const struct stream_namer *namer, struct time_stream *of,
                    struct error *err)
{
    struct levels_places kept;
    int code = 0;
    levels_places_init(&kept, wanted->file, true);
    of->wanted = wanted;
    of->key = levels_key_of(wanted->file);
    bool is_plain = !wanted->has_couplebreak && !wanted->buffer; /* else its levels are not those of the whole file */
    if (!is_plain || (!find_kept(&kept, wanted->file, of) && !pass_kept(&kept, wanted->file, of)))
        code = make_levels(namer, is_plain ? &kept : NULL, of, err);
    code = code ? code : take_topologies(of, err);
    levels_places_fini(&kept);
    return code;
}

/* Puts what was read anew where it was on the axis. */
static void move_to_axis(struct stream *read, int64_t offset_ns)
{
    for (size_t i = 0; i < read->n_events; i++)
        read->events[i].t_ns = time_add(read->events[i].t_ns, offset_ns);
    read->offset_ns = offset_ns;
}

/* A recording of which less is there than was opened: what is read of it lies in the file.  err: ERR_FORMAT */
static int check_whole(const struct timeline *timeline, struct error *err)
{
    for (size_t i = 0; i < timeline->n_streams; i++) {
        const struct time_stream *of = &timeline->streams[i];
        const struct levels_key now = levels_key_of(of->wanted->file);
        bool is_same_file = of->key.n_bytes && now.device == of->key.device && now.inode == of->key.inode;
        if (!of->is_shell && is_same_file && now.n_bytes < of->key.n_bytes)
            return error_set(err, ERR_FORMAT, "%.600s: has been cut short since it was opened", of->wanted->file);
    }
    return 0;
}

/* Takes what was read instead of what there was, if it is of the file that was opened.  err: ERR_FORMAT */
static int take_read(struct timeline *timeline, size_t stream, struct stream *read, struct error *err)
{
    struct time_stream *of = &timeline->streams[stream];
    const struct levels_key now = levels_key_of(of->stream->path);
    if (!levels_key_is_same(&of->key, &now) || read->n_events != of->n_events) {
        stream_close(read);
        return error_set(err, ERR_FORMAT, "%.600s: has been changed since it was opened", of->stream->path);
    }
    stream_close(of->stream);
    of->stream = timeline->axis[stream].stream = read;
    of->is_shell = false;
    return 0;
}

int timeline_load_part(struct timeline *timeline, size_t stream, int64_t from_ns, struct error *err)
{
    struct time_stream *of = &timeline->streams[stream];
    struct stream *read = NULL;
    struct error ignored = {0};
    bool is_plain =
        of->is_shell && of->stream->offset_ns == 0; /* filters of sessions: what is left out is not counted */
    for (size_t list = 0; list < RECORDING_LISTS; list++)
        is_plain = is_plain && of->wanted->lists[list].n == 0;
    if (!of->is_shell)
        stream_part_rest(of->stream);
    struct parts_index *index = is_plain ? levels_find_index(of->wanted->file) : NULL;
    if (index && stream_open_part(of->wanted->file, index, from_ns, from_ns, &read, &ignored) == 0)
        return take_read(timeline, stream, read, err);
    return of->is_shell ? timeline_load(timeline, stream, err) : 0;
}

int timeline_load(struct timeline *timeline, size_t stream, struct error *err)
{
    struct time_stream *of = &timeline->streams[stream];
    const struct stream_namer namer = sched_namer(timeline->names);
    struct stream *read = NULL;
    if (!of->is_shell && !of->stream->part)
        return 0;
    int code = read_one(of->wanted, &namer, &read, err);
    if (code != 0)
        return code;
    move_to_axis(read, of->stream->offset_ns);
    return take_read(timeline, stream, read, err);
}

/* Where the time line begins and ends, and which rows are whose. */
static void set_extent(struct timeline *timeline)
{
    bool has_any = false;
    timeline->n_rows = 0;
    for (size_t i = 0; i < timeline->n_streams; i++) {
        struct time_stream *of = &timeline->streams[i];
        of->first_row = timeline->n_rows;
        timeline->n_rows += of->levels.n_rows;
        if (!of->levels.n_times && !of->levels.n_stays)
            continue;
        int64_t begin_ns = time_add(of->levels.begin_ns, of->stream->offset_ns);
        int64_t end_ns = time_add(of->levels.end_ns, of->stream->offset_ns);
        timeline->begin_ns = !has_any || begin_ns < timeline->begin_ns ? begin_ns : timeline->begin_ns;
        timeline->end_ns = !has_any || end_ns > timeline->end_ns ? end_ns : timeline->end_ns;
        has_any = true;
    }
}

/* Copies what is wanted.  err: ERR_MEMORY */
static int copy_wanted(const struct recordings *from, struct recordings *to, struct error *err)
{
    int code = recordings_copy_view(from, to, err);
    for (size_t i = 0; code == 0 && i < from->n_streams; i++)
        code = recordings_copy_stream(&from->streams[i], to, err);
    return code;
}

int timeline_open(const struct recordings *wanted, struct timeline **timeline, struct error *err)
{
    struct timeline *made = calloc(1, sizeof *made);
    size_t n = wanted->n_streams;
    *timeline = NULL;
    if (!made)
        return error_memory(err);
    made->names = sched_names_new();
    made->path = n ? strdup(wanted->streams[0].file) : NULL;
    made->axis = calloc(n + 1, sizeof *made->axis);
    made->streams = calloc(n + 1, sizeof *made->streams);
    int code = made->names && made->path && made->axis && made->streams ? 0 : error_memory(err);
    const struct stream_namer namer = sched_namer(made->names);
    code = code ? code : copy_wanted(wanted, &made->wanted, err);
    for (; code == 0 && made->n_streams < n; made->n_streams++) {
        struct recording *own = &made->wanted.streams[made->n_streams];
        code = open_one(own, &namer, &made->streams[made->n_streams], err);
        made->axis[made->n_streams] = (struct axis_stream){
            .stream = made->streams[made->n_streams].stream, .is_given = own->has_offset, .given_ns = own->offset_ns};
    }
    if (code == 0)
        code = axis_align(made->axis, made->n_streams, err);
    if (code != 0) {
        timeline_close(made);
        return code;
    }
    set_extent(made);
    *timeline = made;
    return 0;
}

void timeline_close(struct timeline *timeline)
{
    if (!timeline)
        return;
    for (size_t i = 0; i < timeline->n_streams; i++) {
        struct time_stream *of = &timeline->streams[i];
        time_samples_free(of->samples);
        levels_fini(&of->levels);
        for (size_t k = 0; k < TIME_TOPOLOGIES; k++)
            forget_topology(&of->topologies[k]);
        free(of->refusal);
        stream_close(of->stream);
    }
    free(timeline->streams);
    free(timeline->axis);
    strtab_fini(&timeline->words);
    sched_names_free(timeline->names);
    recordings_fini(&timeline->wanted);
    free(timeline->path);
    free(timeline);
}

const char *timeline_refusal(const struct timeline *timeline, size_t stream)
{
    return stream < timeline->n_streams ? timeline->streams[stream].refusal : NULL;
}

static bool has_samples(const struct time_stream *of)
{
    for (size_t row = 0; row < of->levels.n_rows; row++)
        if (of->levels.rows[row].n_times[LEVEL_SAMPLE])
            return true;
    return false;
}

bool timeline_has_samples(const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->n_streams; i++)
        if (has_samples(&timeline->streams[i]))
            return true;
    return false;
}

/* --- changing what is shown of a recording --- */

/* Reads a recording anew, with couplebreak or without.  err: as stream_open; all is as before then */
static int set_couplebreak(struct timeline *timeline, size_t stream, bool is_on, struct error *err)
{
    struct time_stream *of = &timeline->streams[stream], made = {.wanted = of->wanted};
    const struct stream_namer namer = sched_namer(timeline->names);
    if (of->wanted->has_couplebreak == is_on)
        return 0;
    of->wanted->has_couplebreak = is_on;
    made.key = levels_key_of(of->wanted->file);
    int code = make_levels(&namer, NULL, &made, err);
    if (code != 0) {
        stream_close(made.stream);
        levels_fini(&made.levels);
        of->wanted->has_couplebreak = !is_on;
        return code;
    }
    move_to_axis(made.stream, of->stream->offset_ns);
    time_samples_free(of->samples);
    of->samples = NULL;
    levels_fini(&of->levels);
    stream_close(of->stream);
    of->stream = timeline->axis[stream].stream = made.stream;
    of->levels = made.levels;
    of->key = made.key;
    of->n_events = made.n_events;
    of->is_shell = false;
    set_extent(timeline);
    return 0;
}

static const char *const topology_words[TIME_TOPOLOGIES] = {"none", "own", "given"};

/* Another file instead of the one that was given; without a path, there is none any more. */
static int set_given(struct time_stream *of, const char *path, struct error *err)
{
    struct time_topology *given = &of->topologies[TIME_TOPOLOGY_GIVEN];
    bool is_same = given->path && strcmp(given->path, path) == 0;
    int code = *path && !is_same ? take_given(of, path, err) : 0;
    if (!*path)
        forget_topology(given);
    if (code == 0)
        show_topology(of, TIME_TOPOLOGY_GIVEN);
    return code;
}

static int set_topology(struct time_stream *of, const char *word, struct error *err)
{
    static const char file_of[] = "given:";
    size_t kind = 0;
    if (text_begins(word, file_of))
        return set_given(of, word + sizeof file_of - 1, err);
    while (kind < TIME_TOPOLOGIES && strcmp(topology_words[kind], word) != 0)
        kind++;
    if (kind == TIME_TOPOLOGIES)
        return error_set(err, ERR_USAGE, "topology takes own, given, given:FILE or none");
    if (kind != TIME_TOPOLOGY_NONE && !of->topologies[kind].path)
        return error_set(err, ERR_NOT_FOUND, "%.600s: %s", of->stream->path,
                         kind == TIME_TOPOLOGY_OWN ? "no topology lies beside it"
                         : of->refusal             ? of->refusal
                                                   : "no topology was given for it");
    show_topology(of, (enum time_topology_kind)kind);
    return 0;
}

/* Does what a question says of a recording.  err: ERR_USAGE, ERR_NOT_FOUND, as stream_open */
static int arrange(struct timeline *timeline, const struct request *request, struct error *err)
{
    const char *twins = request->couplebreak;
    if (request->stream >= timeline->n_streams)
        return error_set(err, ERR_NOT_FOUND, "there is no recording %" PRIu64 ": there are %zu", request->stream,
                         timeline->n_streams);
    bool is_on = twins && strcmp(twins, "on") == 0;
    if (twins && !is_on && strcmp(twins, "off") != 0)
        return error_set(err, ERR_USAGE, "couplebreak takes on or off");
    int code = twins ? set_couplebreak(timeline, request->stream, is_on, err) : 0;
    if (code == 0 && request->topology)
        code = set_topology(&timeline->streams[request->stream], request->topology, err);
    return code;
}

int timeline_put_session(const struct timeline *timeline, struct buf *out, struct error *err)
{
    struct recordings now = {0};
    int code = 0;
    for (size_t i = 0; code == 0 && i < timeline->n_streams; i++) {
        const struct time_stream *of = &timeline->streams[i];
        struct recording shown = *of->wanted;
        shown.topology = of->topologies[of->shown].path;
        shown.view = of->shown ? TOPOLOGY_VIEW_NUMATREE : TOPOLOGY_VIEW_DEFAULT;
        code = recordings_copy_stream(&shown, &now, err);
    }
    code = code ? code : recordings_put(&now, out, err);
    recordings_fini(&now);
    return code;
}

/* --- rows and times --- */

int64_t time_add(int64_t a_ns, int64_t b_ns)
{
    int64_t sum_ns;
    if (!__builtin_add_overflow(a_ns, b_ns, &sum_ns))
        return sum_ns;
    return b_ns < 0 ? INT64_MIN : INT64_MAX;
}

int64_t time_of_levels(const struct time_stream *of, int64_t t_ns)
{
    return of->stream->offset_ns == INT64_MIN ? INT64_MAX : time_add(t_ns, -of->stream->offset_ns);
}

int timeline_row(const struct timeline *timeline, uint64_t number, struct time_row *row, struct error *err)
{
    size_t i = 0;
    if (number >= timeline->n_rows)
        return error_set(err, ERR_NOT_FOUND, "there is no row %" PRIu64 ": the time line has %zu", number,
                         timeline->n_rows);
    while (i + 1 < timeline->n_streams && timeline->streams[i + 1].first_row <= number)
        i++;
    *row = (struct time_row){&timeline->streams[i], i, (size_t)number - timeline->streams[i].first_row};
    return 0;
}

int timeline_window(const struct timeline *timeline, const struct request *request, int64_t *from_ns, int64_t *to_ns,
                    struct error *err)
{
    *from_ns = request->has_from ? time_add(timeline->begin_ns, request->from_ns) : timeline->begin_ns;
    *to_ns = request->has_to ? time_add(timeline->begin_ns, request->to_ns) : timeline->end_ns;
    int64_t ignored;
    if (*from_ns > *to_ns)
        return error_set(err, ERR_USAGE, "--from is later than --to");
    if (__builtin_sub_overflow(*to_ns, *from_ns, &ignored))
        return error_set(err, ERR_USAGE, "--from and --to are more than 292 years apart");
    return 0;
}

void time_row_put_name(const struct timeline *timeline, const struct time_row *row, struct buf *out)
{
    const struct level_row *of = &row->of->levels.rows[row->row];
    if (of->kind == LEVEL_CPU) {
        buf_printf(out, "CPU %" PRId32, of->number);
    } else {
        stream_put_comms(row->of->stream, of->number, out);
        buf_printf(out, ":%" PRId32, of->number);
    }
    if (timeline->n_streams > 1)
        buf_printf(out, " [%zu]", row->stream);
}

void time_text_put(int64_t t_ns, struct buf *out)
{
    uint64_t size = t_ns < 0 ? -(uint64_t)t_ns : (uint64_t)t_ns;
    buf_printf(out, "%s%" PRIu64 ".%09" PRIu64, t_ns < 0 ? "-" : "", size / 1000000000, size % 1000000000);
}

void time_colour_put(struct table *table, struct tree_color colour)
{
    struct buf text = {0};
    buf_printf(&text, "#%02x%02x%02x", colour.red, colour.green, colour.blue);
    table_put_made(table, &text);
}

/* --- what the rows are --- */

static const struct column row_columns[] = {
    {"row", NULL, CELL_COUNT},     {"stream", NULL, CELL_COUNT}, {"kind", NULL, CELL_TEXT},
    {"number", NULL, CELL_COUNT},  {"name", NULL, CELL_TEXT},    {"process", NULL, CELL_COUNT},
    {"run_ns", NULL, CELL_SPAN},   {"wait_ns", NULL, CELL_SPAN}, {"events", NULL, CELL_COUNT},
    {"first_ns", NULL, CELL_SPAN}, {"last_ns", NULL, CELL_SPAN}, {"samples", NULL, CELL_COUNT},
    {"lost", NULL, CELL_COUNT},    {"colour", NULL, CELL_TEXT},  {"own", NULL, CELL_FLAG},
};

static const struct column head_columns[] = {
    {"from_ns", NULL, CELL_COUNT}, {"from", NULL, CELL_TEXT},      {"length_ns", NULL, CELL_SPAN},
    {"streams", NULL, CELL_TABLE}, {"topology", NULL, CELL_TABLE}, {"lacking", NULL, CELL_TABLE},
    {"view", NULL, CELL_TABLE},    {"nodes", NULL, CELL_TABLE},
};

static const struct column stream_columns[] = {
    {"path", NULL, CELL_TEXT},           {"kind", NULL, CELL_TEXT},       {"host", NULL, CELL_TEXT},
    {"clock", NULL, CELL_TEXT},          {"tier", NULL, CELL_TEXT},       {"knows", NULL, CELL_TEXT},
    {"n_cpus", NULL, CELL_COUNT},        {"events", NULL, CELL_COUNT},    {"note", NULL, CELL_TEXT},
    {"alignment", NULL, CELL_TEXT},      {"offset_ns", NULL, CELL_COUNT}, {"wall_ns", NULL, CELL_COUNT},
    {"couplebreak", NULL, CELL_FLAG},    {"lost", NULL, CELL_COUNT},      {"from_ns", NULL, CELL_SPAN},
    {"to_ns", NULL, CELL_SPAN},          {"topology", NULL, CELL_TEXT},   {"own_topology", NULL, CELL_TEXT},
    {"given_topology", NULL, CELL_TEXT},
};

static const struct column topology_columns[] = {
    {"stream", NULL, CELL_COUNT}, {"package", NULL, CELL_COUNT}, {"node", NULL, CELL_COUNT},
    {"core", NULL, CELL_COUNT},   {"pu", NULL, CELL_COUNT},      {"number", NULL, CELL_COUNT},
};

/* distances: from it to each node in their order, 10 its own, 0 not known, with points between them. */
static const struct column node_columns[] = {
    {"stream", NULL, CELL_COUNT},       {"node", NULL, CELL_COUNT}, {"package", NULL, CELL_COUNT},
    {"memory_bytes", NULL, CELL_COUNT}, {"kind", NULL, CELL_TEXT},  {"cpus", NULL, CELL_COUNT},
    {"local_cpus", NULL, CELL_COUNT},   {"near", NULL, CELL_TEXT},  {"distances", NULL, CELL_TEXT},
};

static const struct column lacking_columns[] = {{"text", NULL, CELL_TEXT}};

/* Since the beginning of the time line. */
static void put_since(struct table *table, const struct timeline *timeline, const struct time_stream *of, bool is_known,
                      int64_t t_ns)
{
    table_put_if(table, is_known, time_add(time_add(t_ns, of->stream->offset_ns), -timeline->begin_ns));
}

static void put_row(struct table *table, const struct timeline *timeline, uint64_t number)
{
    struct time_row at;
    if (timeline_row(timeline, number, &at, NULL) != 0)
        return;
    const struct stream *stream = at.of->stream;
    const struct level_row *row = &at.of->levels.rows[at.row];
    const struct stream_task *task = row->kind == LEVEL_TASK ? stream_task_of(stream, row->number) : NULL;
    int64_t length_ns = at.of->levels.end_ns - at.of->levels.begin_ns;
    bool knows_runs = sched_knows_runs(stream) && row->parts_ns[LEVEL_UNKNOWN] < length_ns;
    bool has_any = row->first_ns <= row->last_ns;
    struct buf name = {0};
    table_put_count(table, (int64_t)number);
    table_put_count(table, (int64_t)at.stream);
    table_put_borrowed(table, row->kind == LEVEL_CPU ? "cpu" : "task");
    table_put_count(table, row->number);
    time_row_put_name(timeline, &at, &name);
    table_put_made(table, &name);
    table_put_if(table, task && task->process != STREAM_NO_TASK, task ? task->process : 0);
    table_put_if(table, knows_runs, row->parts_ns[LEVEL_RUNNING]);
    table_put_if(table, knows_runs && row->kind == LEVEL_TASK,
                 row->parts_ns[LEVEL_WOKEN] + row->parts_ns[LEVEL_PREEMPTED]);
    table_put_count(table, (int64_t)row->n_times[LEVEL_EVENT]);
    put_since(table, timeline, at.of, has_any, row->first_ns);
    put_since(table, timeline, at.of, has_any, row->last_ns);
    table_put_count(table, (int64_t)row->n_times[LEVEL_SAMPLE]);
    table_put_count(table, (int64_t)row->n_times[LEVEL_LOST]);
    time_colour_put(table, tree_color_of_number((uint32_t)row->number));
    table_put_flag(table, task && task->is_own);
}

static void put_stream(struct table *table, const struct timeline *timeline, size_t i)
{
    static const char *const tiers[] = {"full", "switches", "program", "own", "none"};
    const struct time_stream *of = &timeline->streams[i];
    const struct stream *stream = of->stream;
    table_put_text(table, stream->path);
    table_put_borrowed(table, stream->kind);
    table_put_text(table, stream->host);
    table_put_borrowed(table, stream_clock_name(stream->clock));
    table_put_borrowed(table, tiers[stream->tier]);
    table_put_borrowed(table, stream_tier_name(stream->tier));
    table_put_count(table, stream->n_cpus);
    table_put_count(table, (int64_t)of->n_events);
    table_put_text(table, stream->note);
    table_put_borrowed(table, axis_way_name(timeline->axis[i].way));
    table_put_count(table, stream->offset_ns);
    table_put_if(table, stream->has_wall, stream->wall_ns);
    table_put_flag(table, stream->couplebreak_on);
    table_put_count(table, (int64_t)stream->n_lost);
    put_since(table, timeline, of, of->levels.n_rows > 0, of->levels.begin_ns);
    put_since(table, timeline, of, of->levels.n_rows > 0, of->levels.end_ns);
    table_put_borrowed(table, topology_words[of->shown]);
    table_put_text(table, of->topologies[TIME_TOPOLOGY_OWN].path);
    table_put_text(table, of->topologies[TIME_TOPOLOGY_GIVEN].path);
}

static void put_unknown(struct table *table, uint32_t number)
{
    table_put_if(table, number != TOPOLOGY_UNKNOWN, number);
}

static void put_topology(struct table *table, const struct timeline *timeline, size_t i)
{
    const struct brief_topology *brief = &timeline->streams[i].brief;
    for (size_t k = 0; k < brief->n_cpus; k++) {
        table_put_count(table, (int64_t)i);
        put_unknown(table, brief->cpus[k].package);
        put_unknown(table, brief->cpus[k].node);
        table_put_count(table, brief->cpus[k].core);
        table_put_count(table, brief->cpus[k].cpu);
        table_put_count(table, brief->cpus[k].os);
    }
}

/* Appends the other nodes that are as near to the CPUs of a node as it is. */
static void put_near(const struct topology *topology, uint32_t node, struct buf *out)
{
    for (uint32_t other = 0; other < topology->n_nodes; other++) {
        bool is_near = false;
        for (uint32_t i = 0; i < topology->n_cpus && other != node && !is_near; i++) {
            const struct topology_cpu *cpu = &topology->cpus[i];
            for (uint32_t k = 0; k < cpu->n_local && cpu->node == node; k++)
                is_near |= topology->locals[cpu->first_local + k] == other;
        }
        if (is_near)
            buf_printf(out, "%s%" PRIu32, out->len_bytes ? "." : "", other);
    }
}

static void put_nodes(struct table *table, const struct timeline *timeline, size_t i)
{
    const struct time_stream *of = &timeline->streams[i];
    const struct topology *topology = &of->topologies[of->shown].topology;
    for (uint32_t node = 0; node < topology->n_nodes; node++) {
        const struct topology_node *own = &topology->nodes[node];
        struct buf near = {0}, distances = {0};
        put_near(topology, node, &near);
        for (uint32_t other = 0; other < topology->n_nodes && topology->n_distances; other++) {
            uint32_t to = topology->nodes[other].os, n = topology->n_distances;
            buf_printf(&distances, "%s%" PRIu32, other ? "." : "",
                       own->os < n && to < n ? topology->distances[own->os * n + to] : 0);
        }
        table_put_count(table, (int64_t)i);
        table_put_count(table, node);
        put_unknown(table, own->package);
        table_put_if(table, own->memory_bytes > 0, (int64_t)own->memory_bytes);
        table_put_text(table, own->kind);
        table_put_count(table, own->n_cpus);
        table_put_count(table, own->n_local);
        table_put_made(table, &near);
        table_put_made(table, &distances);
    }
}

/* What a recording lacks for a full time line, and how to record it. */
static void put_lacking(struct table *table, const struct timeline *timeline, size_t i)
{
    const struct time_stream *of = &timeline->streams[i];
    bool has_any_topology = of->topologies[TIME_TOPOLOGY_OWN].path || of->topologies[TIME_TOPOLOGY_GIVEN].path;
    struct buf text = {0};
    static const char *const words[] = {
        [STREAM_TIER_FULL] = NULL,
        [STREAM_TIER_SWITCHES] = "when tasks were woken is not recorded: perf record -e sched:sched_switch,"
                                 "sched:sched_waking -a, or trace-cmd record -e sched, records it",
        [STREAM_TIER_PROGRAM] = "what other programs did is not recorded: perf record -e sched:sched_switch,"
                                "sched:sched_waking -a, or hpcrun -e sched,all as root, records it",
        [STREAM_TIER_OWN] = "who ran instead of these threads is not recorded: perf record -e sched:sched_switch,"
                            "sched:sched_waking -a, or hpcrun -e sched as root, records it",
        [STREAM_TIER_NONE] = "when tasks ran is not recorded: perf record -e sched:sched_switch,sched:sched_waking -a, "
                             "trace-cmd record -e sched, or hpcrun -e sched -t, records it"};
    static const char no_samples[] = "no samples, so that nothing says which data were worked on: hpcrun -e "
                                     "datacentric -e sched -t records both";
    static const char no_topology[] = "no topology: hpcrun records one, and lstopo FILE.xml on its machine makes one "
                                      "for --topology";
    const char *const sentences[] = {words[of->stream->tier], has_samples(of) ? NULL : no_samples,
                                     has_any_topology ? NULL
                                     : of->refusal    ? of->refusal
                                                      : no_topology};
    for (size_t what = 0; what < sizeof sentences / sizeof *sentences; what++) {
        const char *sentence = sentences[what];
        if (!sentence)
            continue;
        if (timeline->n_streams > 1)
            buf_printf(&text, "[%zu] ", i);
        buf_printf(&text, "%s", sentence);
        table_put_made(table, &text);
    }
}

/* What a session says of all recordings together. */
static const struct column view_columns[] = {
    {"from_ns", NULL, CELL_SPAN}, {"to_ns", NULL, CELL_SPAN}, {"a_ns", NULL, CELL_SPAN},  {"b_ns", NULL, CELL_SPAN},
    {"on", NULL, CELL_TEXT},      {"by", NULL, CELL_TEXT},    {"hide", NULL, CELL_TEXT},  {"pin", NULL, CELL_TEXT},
    {"task", NULL, CELL_TEXT},    {"cpu", NULL, CELL_TEXT},   {"event", NULL, CELL_TEXT},
};

/* A time of the axis. */
static void put_time_if(struct table *table, const struct timeline *timeline, bool is_known, int64_t t_ns)
{
    table_put_if(table, is_known, time_add(t_ns, -timeline->begin_ns));
}

/* A marker; the number of an event means something where there is one list. */
static void put_marker(struct table *table, const struct timeline *timeline, const struct recording_marker *marker)
{
    const struct stream *only = timeline->n_streams == 1 ? timeline->streams[0].stream : NULL;
    bool is_there = only && marker->at >= 0 && (uint64_t)marker->at < only->n_events;
    int64_t t_ns = !marker->is_row ? marker->at : is_there ? only->events[marker->at].t_ns : 0;
    put_time_if(table, timeline, marker->is_set && (!marker->is_row || is_there), t_ns);
}

/* Puts the numbers of rows that are hidden, or pinned, with points between them. */
static void put_rows_of(struct table *table, const struct timeline *timeline, bool hidden)
{
    struct buf text = {0};
    for (size_t i = 0; i < timeline->wanted.n_rows; i++) {
        const struct recording_row *row = &timeline->wanted.rows[i];
        if ((hidden ? row->is_hidden : row->is_pinned) && row->stream < timeline->n_streams) {
            const struct time_stream *of = &timeline->streams[row->stream];
            size_t found = levels_find(&of->levels, row->is_cpu ? LEVEL_CPU : LEVEL_TASK, row->number);
            if (found != SIZE_MAX)
                buf_printf(&text, "%s%zu", text.len_bytes ? "." : "", of->first_row + found);
        }
    }
    table_put_made(table, &text);
}

static void put_view(struct table *table, const struct timeline *timeline)
{
    const struct recordings *wanted = &timeline->wanted;
    bool has_choice = false;
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        has_choice |= wanted->choices[i] != NULL;
    if (!wanted->has_from && !wanted->has_to && !wanted->markers[0].is_set && !wanted->markers[1].is_set &&
        !wanted->colors && !wanted->n_rows && !has_choice)
        return;
    put_time_if(table, timeline, wanted->has_from, wanted->from_ns);
    put_time_if(table, timeline, wanted->has_to, wanted->to_ns);
    put_marker(table, timeline, &wanted->markers[0]);
    put_marker(table, timeline, &wanted->markers[1]);
    table_put_borrowed(table, wanted->b_is_active ? "b" : "a");
    table_put_text(table, wanted->colors);
    put_rows_of(table, timeline, true);
    put_rows_of(table, timeline, false);
    table_put_text(table, wanted->choices[RECORDING_TASK]);
    table_put_text(table, wanted->choices[RECORDING_CPU]);
    table_put_text(table, wanted->choices[RECORDING_EVENT]);
}

static int make_streams(struct timeline *timeline, const struct request *request, struct answer *answer,
                        struct error *err)
{
    int code = request->stream || request->couplebreak || request->topology ? arrange(timeline, request, err) : 0;
    if (code != 0)
        return code;
    answer_begin(answer, "rows", COLUMNS(row_columns));
    for (uint64_t i = 0; i < timeline->n_rows; i++)
        put_row(&answer->rows, timeline, i);
    struct table *head = answer_set_head(answer, COLUMNS(head_columns)), *inner;
    struct buf from = {0};
    time_text_put(timeline->begin_ns, &from);
    table_put_count(head, timeline->begin_ns);
    table_put_made(head, &from);
    table_put_count(head, timeline->end_ns - timeline->begin_ns);
    inner = table_put_table(head, COLUMNS(stream_columns));
    for (size_t i = 0; i < timeline->n_streams; i++)
        put_stream(inner, timeline, i);
    inner = table_put_table(head, COLUMNS(topology_columns));
    for (size_t i = 0; i < timeline->n_streams; i++)
        put_topology(inner, timeline, i);
    inner = table_put_table(head, COLUMNS(lacking_columns));
    for (size_t i = 0; i < timeline->n_streams; i++)
        put_lacking(inner, timeline, i);
    put_view(table_put_table(head, COLUMNS(view_columns)), timeline);
    inner = table_put_table(head, COLUMNS(node_columns));
    for (size_t i = 0; i < timeline->n_streams; i++)
        put_nodes(inner, timeline, i);
    return 0;
}

/* The same of a session without recordings; why: those that there are cannot be read, NULL: there are none. */
static void make_no_streams(const char *why, struct answer *answer)
{
    answer_begin(answer, "rows", COLUMNS(row_columns));
    struct table *head = answer_set_head(answer, COLUMNS(head_columns));
    struct buf text = {0};
    table_put_absents(head, 3);
    (void)table_put_table(head, COLUMNS(stream_columns));
    (void)table_put_table(head, COLUMNS(topology_columns));
    if (why)
        buf_printf(&text, "the recording of what ran when cannot be shown: %s", why);
    else
        buf_printf(&text, "no time line was recorded: hpcrun -e datacentric -e sched -t records what ran when, and "
                          "hpcviewer MEASUREMENT shows it with its data");
    table_put_made(table_put_table(head, COLUMNS(lacking_columns)), &text);
    (void)table_put_table(head, COLUMNS(view_columns));
    (void)table_put_table(head, COLUMNS(node_columns));
}

/* --- the list --- */

static const struct time_question {
    struct report_kind kind;
    time_maker *make;
} questions[] = {
    {{.name = "streams", .operands = "STREAM", .options = ASK(STREAM) | ASK(COUPLEBREAK) | ASK(TOPOLOGY)},
     make_streams},
    {{.name = "timeline", .operands = "STREAM", .options = ASK(FROM) | ASK(TO) | ASK(WIDTH) | ASK(ROWS_OF) | ASK(BY)},
     time_make_picture},
    {{.name = "events",
      .operands = "STREAM",
      .options =
          ASK(FROM) | ASK(TO) | ASK(AT) | ASK(START) | ASK(COUNT) | ASK(TASK) | ASK(CPU) | ASK(EVENT) | ASK(FIND)},
     time_make_events},
    {{.name = "window", .operands = "STREAM", .options = ASK(FROM) | ASK(TO) | ASK(BY)}, time_make_window},
    {{.name = "file",
      .operands = "FORM STREAM",
      .options = ASK(FROM) | ASK(TO) | ASK(TASK) | ASK(CPU) | ASK(EVENT) | ASK(STREAM)},
     time_make_file},
    {{.name = "stay", .operands = "STREAM", .options = ASK(ROW) | ASK(AT)}, time_make_stay},
};

static const struct time_question *find(const char *name)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(questions[i].kind.name, name) == 0)
            return &questions[i];
    return NULL;
}

const struct report_kind *timeline_find(const char *name)
{
    const struct time_question *found = find(name);
    return found ? &found->kind : NULL;
}

int timeline_answer(struct timeline *timeline, const char *why, const struct request *request, struct answer *answer,
                    struct error *err)
{
    const struct time_question *question = find(request->report);
    *answer = (struct answer){.program = timeline ? timeline->path : NULL};
    int code = 0;
    if (!timeline && question->make != make_streams)
        return error_set(err, ERR_UNSUPPORTED, "%s",
                         why ? why : "there is no recording of the scheduler; hpcrun -e sched -t makes one");
    if (timeline) {
        code = check_whole(timeline, err);
        code = code ? code : question->make(timeline, request, answer, err);
    } else {
        make_no_streams(why, answer);
    }
    if (code == 0 && (answer->head.failed || answer->rows.failed))
        code = error_memory(err);
    if (code != 0)
        answer_fini(answer);
    return code;
}

/* --- what it is --- */

static const struct column report_columns[] = {{"report", NULL, CELL_TEXT}, {"summary", NULL, CELL_TEXT}};
static const struct column session_head[] = {{"version", NULL, CELL_TEXT},
                                             {"command", NULL, CELL_TEXT},
                                             {"path", NULL, CELL_TEXT},
                                             {"metrics", NULL, CELL_TABLE}};

int timeline_answer_session(const struct timeline *timeline, const struct request *request, struct answer *answer,
                            struct error *err)
{
    const char *path = timeline->path;
    *answer = (struct answer){.program = path};
    if (strcmp(request->report, "session") != 0)
        return error_set(err, ERR_UNSUPPORTED, "%.600s has no samples: it is a recording of what ran where", path);
    answer_begin(answer, "reports", COLUMNS(report_columns));
    struct table *head = answer_set_head(answer, COLUMNS(session_head));
    table_put_text(head, PACKAGE_VERSION);
    table_put_text(head, path);
    table_put_text(head, path);
    (void)table_put_table(head, COLUMNS(lacking_columns));
    if (!head->failed && !answer->rows.failed)
        return 0;
    answer_fini(answer);
    return error_memory(err);
}
