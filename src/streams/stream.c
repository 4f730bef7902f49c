/* SPDX-License-Identifier: BSD-3-Clause */
/* What a stream is made of: events in the order of time, types, tasks; and the search among them. */
#include "streams/readers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/pages.h"
#include "base/path.h"
#include "base/search.h"
#include "streams/couplebreak.h"
#include "streams/parts.h"

const char *stream_clock_name(enum stream_clock clock)
{
    static const char *const names[] = {"unknown", "local", "monotonic", "boot", "monotonic raw", "wall", "counter"};
    return names[clock];
}

const char *stream_tier_name(enum stream_tier tier)
{
    static const char *const names[] = {
        "switches, wakings and migrations of all tasks",
        "switches of all tasks; wakings are not known",
        "switches, wakings and migrations of the program's threads; other tasks only where these meet them",
        "switches of the recorded threads alone; wakings and other tasks are not known",
        "nothing of scheduling",
    };
    return names[tier];
}

/* --- building --- */

/* Gives memory to the pages of events [from, to): to fault for each of them takes as long as making the events in it.
 * Older kernels do not, and the events fault. */
static void populate(const struct stream *stream, size_t from, size_t to)
{
    enum { PAGE_BYTES = 4096 };
    uintptr_t begin = ((uintptr_t)(stream->events + from) + PAGE_BYTES - 1) & -(uintptr_t)PAGE_BYTES;
    uintptr_t end = (uintptr_t)(stream->events + to) & -(uintptr_t)PAGE_BYTES;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

void stream_pass(const struct stream *stream, size_t i)
{
    enum { EVERY = 1 << 18 };
    if (i % EVERY == EVERY - 1 && stream->is_mapped)
        (void)madvise((void *)(uintptr_t)stream->bytes, stream->n_bytes, MADV_DONTNEED);
}

static bool allocate_events(struct stream *stream, size_t n)
{
    if (n <= stream->room_events)
        return true;
    if (n > SIZE_MAX / 2 / sizeof *stream->events)
        return false;
    struct stream_event *events = realloc(stream->events, n * sizeof *events);
    if (!events)
        return false;
    stream->events = events;
    stream->room_events = n;
    pages_want_large(events + stream->cap_events, (n - stream->cap_events) * sizeof *events);
    return true;
}

void stream_expect_events(struct stream *stream, size_t n)
{
    (void)allocate_events(stream, n);
}

bool stream_reserve_events(struct stream *stream, size_t n)
{
    if (!allocate_events(stream, n))
        return false;
    if (n > stream->cap_events) {
        populate(stream, stream->cap_events, n);
        stream->cap_events = n;
    }
    return true;
}

struct stream_event *stream_add_event_slowly(struct stream *stream)
{
    enum { FIRST = 4096, STEP = 65536 }; /* a large page */
    size_t n = stream->cap_events, step = n < STEP ? FIRST : STEP;
    /* By half: pages without events take no memory, and the rest is given back at the end. */
    if (n + step > stream->room_events && !allocate_events(stream, n + step + n / 2))
        return NULL;
    return stream_reserve_events(stream, n + step) ? stream_add_event(stream) : NULL;
}

/* The place of an id in items sorted by it: ids are compared as if they began at 0. */
static bool type_is_before(const void *context, size_t i)
{
    const struct stream_type *const *search = context; /* the types, and one like the wanted */
    return search[0][i].id < search[1]->id;
}

static size_t type_place(const struct stream *stream, int32_t id)
{
    struct stream_type like = {.id = id};
    const struct stream_type *search[] = {stream->types, &like};
    return search_where(stream->n_types, type_is_before, search);
}

struct stream_type *stream_add_type(struct stream *stream, int32_t id, const char *name)
{
    size_t at = type_place(stream, id);
    if (at < stream->n_types && stream->types[at].id == id)
        return &stream->types[at];
    char *copy = strdup(name);
    if (!copy || !vec_reserve(&stream->types, &stream->cap_types, stream->n_types + 1, sizeof *stream->types)) {
        free(copy);
        return NULL;
    }
    struct stream_type *type = &stream->types[at];
    memmove(type + 1, type, (stream->n_types++ - at) * sizeof *type);
    *type = (struct stream_type){.id = id, .name = copy};
    return type;
}

bool stream_add_field(struct stream_type *type, const struct stream_field *field)
{
    struct stream_field *fields = realloc(type->fields, (type->n_fields + 1) * sizeof *fields);
    if (!fields)
        return false;
    type->fields = fields;
    struct stream_field copy = *field;
    copy.name = strdup(field->name);
    copy.type = strdup(field->type);
    if (!copy.name || !copy.type) {
        free(copy.name);
        free(copy.type);
        return false;
    }
    fields[type->n_fields++] = copy;
    return true;
}

static uint64_t hash_task(const void *item)
{
    const struct stream_task *task = item;
    return bytes_hash(BYTES_HASH_START, &task->task, sizeof task->task);
}

static bool is_same_task(const void *a, const void *b)
{
    const struct stream_task *x = a, *y = b;
    return x->task == y->task;
}

static const struct slots_kind task_kind = {sizeof(struct stream_task), hash_task, is_same_task};

/* Index of the task, added when new; SLOTS_NONE when out of memory. */
static size_t put_task(struct stream *stream, int32_t task)
{
    struct stream_task like = {.task = task, .process = STREAM_NO_TASK};
    return slots_put(&stream->task_slots, &task_kind, &stream->tasks, &stream->n_tasks, &stream->cap_tasks, &like);
}

bool stream_add_task(struct stream *stream, int32_t task, int32_t process, const char *comm)
{
    size_t i = put_task(stream, task);
    char *copy = i != SLOTS_NONE && comm ? strdup(comm) : NULL;
    if (i == SLOTS_NONE || (comm && !copy))
        return false;
    if (comm) {
        free(stream->tasks[i].comm);
        stream->tasks[i].comm = copy;
    }
    if (process != STREAM_NO_TASK)
        stream->tasks[i].process = process;
    return true;
}

bool stream_add_own(struct stream *stream, int32_t task)
{
    size_t i = put_task(stream, task);
    if (i == SLOTS_NONE)
        return false;
    stream->tasks[i].is_own = true;
    return true;
}

void stream_type_fini(struct stream_type *type)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        free(type->fields[i].name);
        free(type->fields[i].type);
    }
    free(type->fields);
    free(type->name);
    *type = (struct stream_type){0};
}

int stream_take_formats(struct stream *stream, struct stream_formats *formats, struct error *err)
{
    size_t n = 0;
    struct stream_type *types = formats_take_types(formats, &n);
    stream->formats = formats;
    if (stream->n_types == 0) {
        free(stream->types);
        stream->types = types;
        stream->n_types = stream->cap_types = n;
        return 0;
    }
    int code = 0;
    for (size_t i = 0; i < n; i++) {
        struct stream_type *type = code == 0 ? stream_add_type(stream, types[i].id, types[i].name) : NULL;
        if (code == 0 && !type)
            code = error_memory(err);
        if (type && type->n_fields == 0) {
            type->fields = types[i].fields;
            type->n_fields = types[i].n_fields;
            types[i].fields = NULL;
            types[i].n_fields = 0;
        }
        stream_type_fini(&types[i]);
    }
    free(types);
    return code;
}

bool stream_count_task(struct stream *stream, int32_t task, uint64_t n)
{
    size_t i = put_task(stream, task);
    if (i == SLOTS_NONE)
        return false;
    stream->tasks[i].n_events += n;
    return true;
}

enum stream_clock stream_clock_of(const char *name)
{
    static const struct {
        const char *name;
        enum stream_clock clock;
    } rows[] = {
        {"local", STREAM_CLOCK_LOCAL},     {"global", STREAM_CLOCK_LOCAL},     {"perf", STREAM_CLOCK_LOCAL},
        {"mono", STREAM_CLOCK_MONOTONIC},  {"mono_raw", STREAM_CLOCK_RAW},     {"boot", STREAM_CLOCK_BOOT},
        {"tai", STREAM_CLOCK_UNKNOWN},     {"counter", STREAM_CLOCK_COUNTER},  {"uptime", STREAM_CLOCK_COUNTER},
        {"x86-tsc", STREAM_CLOCK_COUNTER}, {"ppc-tb", STREAM_CLOCK_COUNTER},   {"tsc2nsec", STREAM_CLOCK_LOCAL},
        {"x86-tod", STREAM_CLOCK_COUNTER}, {"s390-tod", STREAM_CLOCK_COUNTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name, rows[i].name) == 0)
            return rows[i].clock;
    return STREAM_CLOCK_UNKNOWN;
}

/* --- finishing what a reader has filled --- */

/* Whether b belongs before a. */
static bool is_after(const struct stream_event *a, const struct stream_event *b)
{
    return a->t_ns != b->t_ns ? a->t_ns > b->t_ns : a->cpu > b->cpu;
}

/* Merges [first, middle) and [middle, end) of from into the same places of to. */
static void merge_runs(const struct stream_event *from, struct stream_event *to, size_t first, size_t middle,
                       size_t end)
{
    size_t a = first, b = middle;
    for (size_t i = first; i < end; i++)
        to[i] = b == end || (a < middle && !is_after(&from[a], &from[b])) ? from[a++] : from[b++];
}

/* The end of the run of ordered events that begins at first. */
static size_t run_end(const struct stream_event *events, size_t n, size_t first)
{
    size_t end = first + 1;
    while (end < n && !is_after(&events[end - 1], &events[end]))
        end++;
    return end < n ? end : n;
}

/* Most readers deliver them in order. */
bool stream_sort(struct stream *stream)
{
    struct stream_event *from = stream->events, *to = NULL;
    size_t n = stream->n_events;
    while (n && run_end(from, n, 0) < n) {
        to = to ? to : malloc(n * sizeof *to);
        if (!to)
            return false;
        for (size_t first = 0, middle, end; first < n; first = end) {
            middle = run_end(from, n, first);
            end = middle < n ? run_end(from, n, middle) : n;
            merge_runs(from, to, first, middle, end);
        }
        struct stream_event *swapped = from;
        from = to;
        to = swapped;
        stream->events = from;
        stream->cap_events = stream->room_events = n;
    }
    free(to);
    return true;
}

/* Where the counters of recently met ids are, so that few of many events search. */
struct count_cache {
    int32_t id;
    uint32_t index;
};

enum { CACHE_SLOTS = 4096 };

static bool count_task(struct stream *stream, struct count_cache *cache, int32_t task)
{
    struct count_cache *slot = &cache[(uint32_t)task % CACHE_SLOTS];
    if (slot->id != task || slot->index >= stream->n_tasks) {
        size_t i = put_task(stream, task);
        if (i == SLOTS_NONE || i >= UINT32_MAX)
            return false;
        *slot = (struct count_cache){task, (uint32_t)i};
    }
    stream->tasks[slot->index].n_events++;
    return true;
}

static void count_type(struct stream *stream, struct count_cache *cache, int32_t id)
{
    struct count_cache *slot = &cache[(uint32_t)id % CACHE_SLOTS];
    if (slot->id != id || slot->index >= stream->n_types || stream->types[slot->index].id != id) {
        size_t i = type_place(stream, id);
        if (i == stream->n_types || stream->types[i].id != id)
            return;
        *slot = (struct count_cache){id, (uint32_t)i};
    }
    stream->types[slot->index].n_events++;
}

static int compare_tasks(const void *a, const void *b)
{
    const struct stream_task *x = a, *y = b;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* Of tasks, then of types. NULL: out of memory. */
static struct count_cache *caches_new(void)
{
    struct count_cache *caches = malloc(2 * CACHE_SLOTS * sizeof *caches);
    if (caches)
        memset(caches, 0xff, 2 * CACHE_SLOTS * sizeof *caches);
    return caches;
}

/* Counts an event by type and task, or lost records. */
static inline bool count_event(struct stream *stream, struct count_cache *caches, const struct stream_event *event)
{
    if (event->id == STREAM_ID_LOST) {
        stream->n_lost_places++;
        stream->n_lost += event->record ? event->record : 1;
    }
    if (event->id >= 0)
        count_type(stream, caches + CACHE_SLOTS, event->id);
    return event->task == STREAM_NO_TASK || count_task(stream, caches, event->task);
}

static bool count_events(struct stream *stream)
{
    struct count_cache *caches = caches_new();
    bool is_done = caches;
    for (size_t i = 0; i < stream->n_events && is_done; i++)
        is_done = count_event(stream, caches, &stream->events[i]);
    free(caches);
    return is_done;
}

/* No task comes any more. */
static void sort_tasks(struct stream *stream)
{
    slots_fini(&stream->task_slots);
    if (stream->n_tasks)
        qsort(stream->tasks, stream->n_tasks, sizeof *stream->tasks, compare_tasks);
}

/* Gives back what the array of events has too much. */
static void trim_events(struct stream *stream)
{
    if (stream->n_events == stream->room_events)
        return;
    struct stream_event *events = realloc(stream->events, (stream->n_events + !stream->n_events) * sizeof *events);
    if (events) {
        stream->events = events;
        stream->cap_events = stream->room_events = stream->n_events;
    }
}

/* Everybody subtracts times from each other. */
static int check_extent(const struct stream *stream, int64_t begin_ns, int64_t end_ns, struct error *err)
{
    int64_t ignored;
    if (__builtin_sub_overflow(end_ns, begin_ns, &ignored))
        return error_set(err, ERR_FORMAT, "%.600s: its first and its last event are more than 292 years apart",
                         stream->path);
    return 0;
}

int stream_finish(struct stream *stream, bool couplebreak, struct error *err)
{
    size_t n = stream->n_events;
    int code = stream_sort(stream) ? 0 : error_memory(err);
    if (code == 0 && n)
        code = check_extent(stream, stream->events[0].t_ns, stream->events[n - 1].t_ns, err);
    couplebreak_find_origins(stream);
    if (code == 0 && !count_events(stream))
        code = error_memory(err);
    if (code == 0 && couplebreak)
        code = couplebreak_apply(stream, err);
    sort_tasks(stream);
    if (code == 0 && !stream_name_tasks(stream))
        code = error_memory(err);
    if (code == 0)
        trim_events(stream);
    return code;
}

/* --- handing events over --- */

struct stream_passing {
    struct stream_taker taker;
    struct count_cache *caches;
    struct stream_event last; /* that was handed over */
    int64_t begin_ns;         /* of the first one */
    bool is_unordered;
};

struct stream_passing *stream_passing_new(const struct stream_taker *taker)
{
    struct stream_passing *passing = calloc(1, sizeof *passing);
    if (!passing)
        return NULL;
    passing->taker = *taker;
    passing->caches = caches_new();
    if (passing->caches)
        return passing;
    free(passing);
    return NULL;
}

bool stream_hand_over(struct stream *stream, const struct stream_event *event)
{
    struct stream_passing *passing = stream->passing;
    if (stream->n_events == 0)
        passing->begin_ns = event->t_ns;
    else if (is_after(&passing->last, event))
        passing->is_unordered = true;
    if (passing->is_unordered || !count_event(stream, passing->caches, event))
        return false;
    passing->last = *event;
    stream->n_events++;
    passing->taker.event(passing->taker.context, stream, event);
    return true;
}

bool stream_passing_end(const struct stream_passing *passing)
{
    passing->taker.end(passing->taker.context);
    return !passing->is_unordered;
}

int stream_passing_finish(struct stream *stream, struct error *err)
{
    const struct stream_passing *passing = stream->passing;
    int code = stream->n_events ? check_extent(stream, passing->begin_ns, passing->last.t_ns, err) : 0;
    couplebreak_find_origins(stream);
    sort_tasks(stream);
    if (code == 0 && !stream_name_tasks_by_gathered(stream))
        code = error_memory(err);
    return code ? code : stream_follow_names(stream, err);
}

void stream_passing_free(struct stream_passing *passing)
{
    if (passing)
        free(passing->caches);
    free(passing);
}

void stream_close(struct stream *stream)
{
    if (!stream)
        return;
    if (stream->reader && stream->reader->close)
        stream->reader->close(stream);
    formats_close(stream->formats);
    stream_filters_free(stream->filters);
    stream_texts_free(stream->texts);
    stream_names_free(stream->names);
    stream_part_free(stream->part);
    stream_passing_free(stream->passing);
    for (size_t i = 0; i < stream->n_types; i++)
        stream_type_fini(&stream->types[i]);
    for (size_t i = 0; i < stream->n_tasks; i++)
        free(stream->tasks[i].comm);
    slots_fini(&stream->task_slots);
    free(stream->types);
    free(stream->tasks);
    free(stream->events);
    free(stream->path);
    free(stream->host);
    free(stream->system);
    free(stream->clock_text);
    free(stream->topology);
    free(stream->possible);
    free(stream->online);
    free(stream->totals);
    free(stream->note);
    free(stream);
}

/* --- types and tasks --- */

const struct stream_type *stream_type_of(const struct stream *stream, int32_t id)
{
    size_t at = type_place(stream, id);
    return at < stream->n_types && stream->types[at].id == id ? &stream->types[at] : NULL;
}

/* The type whose name is text, or ends in it behind its slash when one alone does. */
static int32_t find_type(const struct stream *stream, const char *text)
{
    int32_t found = STREAM_ID_NONE;
    size_t n_found = 0;
    for (size_t i = 0; i < stream->n_types; i++) {
        if (strcmp(stream->types[i].name, text) == 0)
            return stream->types[i].id;
        if (strcmp(path_last(stream->types[i].name), text) == 0) {
            found = stream->types[i].id;
            n_found++;
        }
    }
    return n_found == 1 ? found : STREAM_ID_NONE;
}

int32_t stream_find_id(const struct stream *stream, const char *name)
{
    int32_t twins[COUPLEBREAK_N];
    int n_twins = couplebreak_ids(stream, twins);
    for (int i = 0; i < n_twins; i++)
        if (strcmp(couplebreak_name(twins[i]), name) == 0)
            return twins[i];
    return strcmp(name, STREAM_LOST_NAME) == 0 ? STREAM_ID_LOST : find_type(stream, name);
}

const char *stream_event_name(const struct stream *stream, const struct stream_event *event)
{
    if (couplebreak_is_twin(event->id))
        return couplebreak_name(event->id);
    if (event->id == STREAM_ID_LOST)
        return STREAM_LOST_NAME;
    const struct stream_type *type = stream_type_of(stream, event->id);
    return type ? type->name : "[UNKNOWN EVENT]";
}

static bool task_is_before(const void *context, size_t i)
{
    const struct stream_task *const *search = context;
    return search[0][i].task < search[1]->task;
}

const struct stream_task *stream_task_of(const struct stream *stream, int32_t task)
{
    struct stream_task like = {.task = task};
    const struct stream_task *search[] = {stream->tasks, &like};
    size_t at = search_where(stream->n_tasks, task_is_before, search);
    return at < stream->n_tasks && stream->tasks[at].task == task ? &stream->tasks[at] : NULL;
}

/* --- search --- */

static inline bool fulfills(const struct stream_event *event, const struct stream_match *match)
{
    return (!match->by_id || event->id == match->id) && (!match->by_task || event->task == match->task) &&
           (!match->by_cpu || event->cpu == match->cpu) && (event->visible & match->visible) == match->visible;
}

size_t stream_next(const struct stream *stream, size_t from, const struct stream_match *match)
{
    for (size_t i = from; i < stream->n_events; i++)
        if (fulfills(&stream->events[i], match))
            return i;
    return STREAM_NONE;
}

size_t stream_previous(const struct stream *stream, size_t from, const struct stream_match *match)
{
    for (size_t i = from < stream->n_events ? from : stream->n_events; i-- > 0;)
        if (fulfills(&stream->events[i], match))
            return i;
    return STREAM_NONE;
}

int stream_list(const struct stream *stream, const struct stream_match *match, size_t **indexes, size_t *n,
                struct error *err)
{
    size_t n_found = 0;
    for (size_t i = 0; i < stream->n_events; i++)
        n_found += fulfills(&stream->events[i], match);
    *indexes = malloc((n_found + 1) * sizeof **indexes);
    *n = 0;
    if (!*indexes)
        return error_memory(err);
    for (size_t i = 0; i < stream->n_events; i++)
        if (fulfills(&stream->events[i], match))
            (*indexes)[(*n)++] = i;
    return 0;
}

static bool event_is_before(const void *context, size_t i)
{
    const struct stream_event *const *search = context;
    return search[0][i].t_ns < search[1]->t_ns;
}

size_t stream_at(const struct stream *stream, int64_t t_ns)
{
    struct stream_event like = {.t_ns = t_ns};
    const struct stream_event *search[] = {stream->events, &like};
    if (stream->part)
        return stream_part_at(stream, t_ns);
    return search_where(stream->n_events, event_is_before, search);
}

/* --- what it is --- */

const struct stream_event *stream_events(const struct stream *stream, size_t *n)
{
    *n = stream->n_events;
    return stream->events;
}

const struct stream_type *stream_types(const struct stream *stream, size_t *n)
{
    *n = stream->n_types;
    return stream->types;
}

const struct stream_task *stream_tasks(const struct stream *stream, size_t *n)
{
    *n = stream->n_tasks;
    return stream->tasks;
}

const char *stream_kind(const struct stream *stream)
{
    return stream->kind;
}

const char *stream_host(const struct stream *stream)
{
    return stream->host;
}

const char *stream_note(const struct stream *stream)
{
    return stream->note;
}

enum stream_tier stream_get_tier(const struct stream *stream)
{
    return stream->tier;
}

enum stream_clock stream_get_clock(const struct stream *stream)
{
    return stream->clock;
}

uint32_t stream_n_cpus(const struct stream *stream)
{
    return stream->n_cpus;
}

uint64_t stream_n_lost(const struct stream *stream)
{
    return stream->n_lost;
}

bool stream_knows_cpus(const struct stream *stream)
{
    for (size_t i = 0; i < stream->n_events; i++)
        if (stream->events[i].cpu != STREAM_NO_CPU)
            return true;
    return stream->n_events == 0;
}

const char *stream_topology(const struct stream *stream)
{
    return stream->topology;
}
