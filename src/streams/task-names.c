/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of tasks: the one that a task has where no time is asked for, and those that it had at times. Switches and
 * wakings tell names beside numbers, and are asked in their order; what readers noted themselves comes in between. */
#include "streams/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/search.h"

enum { PAIRS_MAX = 24, CACHE_SLOTS = 4096, COMM_BYTES = 16, NAMES_SHOWN = 4 };

/* --- which events tell names --- */

/* A pair of fields that name a task. */
struct name_fields {
    int32_t id;
    const struct stream_field *task, *comm;
};

/* The pairs in the types of a stream, of which the events may not be counted yet; how many. */
static size_t find_name_fields(const struct stream *stream, bool is_counted, struct name_fields *pairs)
{
    static const struct {
        const char *type, *task, *comm;
    } rows[] = {
        {"sched/sched_switch", "prev_pid", "prev_comm"}, {"sched/sched_switch", "next_pid", "next_comm"},
        {"sched/sched_wakeup", "pid", "comm"},           {"sched/sched_wakeup_new", "pid", "comm"},
        {"sched/sched_waking", "pid", "comm"},           {"sched/sched_migrate_task", "pid", "comm"},
        {"task/task_rename", "pid", "newcomm"},          {"sched/sched_process_fork", "child_pid", "child_comm"},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < stream->n_types && n < PAIRS_MAX; k++) {
            const struct stream_type *type = &stream->types[k];
            if ((is_counted && !type->n_events) || strcmp(type->name, rows[i].type) != 0)
                continue;
            pairs[n] = (struct name_fields){type->id, stream_field_of(type, rows[i].task),
                                            stream_field_of(type, rows[i].comm)};
            n += pairs[n].task && pairs[n].comm;
        }
    return n;
}

/* From when on a task has a name. */
struct since {
    int64_t t_ns; /* as recorded: before the stream was moved */
    int32_t task;
    int32_t text; /* in texts */
};

struct stream_names {
    struct since *all; /* [n]; by task and time when they have been followed */
    size_t n, capacity;
    struct strtab texts;
    bool is_gathered; /* all names that events tell are there */
    bool is_followed; /* and in order */
};

/* --- one name for all times --- */

/* The name of a task by an event that tells it; how many tasks got one, or -1 when out of memory. */
static int name_by(struct stream *stream, const struct stream_event *event, const struct name_fields *pair,
                   int32_t *settled)
{
    int64_t task;
    struct buf comm = {0};
    if (!stream_field_number(stream, event, pair->task, &task) || settled[(uint32_t)task % CACHE_SLOTS] == task)
        return 0;
    settled[(uint32_t)task % CACHE_SLOTS] = (int32_t)task;
    struct stream_task *found = (struct stream_task *)stream_task_of(stream, (int32_t)task);
    if (!found || found->comm || task <= 0)
        return 0;
    stream_put_field(stream, event, pair->comm, &comm);
    if (comm.failed)
        return -1;
    if (!comm.len_bytes) { /* a later event may tell more */
        settled[(uint32_t)task % CACHE_SLOTS] = 0;
        buf_fini(&comm);
        return 0;
    }
    found->comm = comm.data;
    return 1;
}

bool stream_name_tasks(struct stream *stream)
{
    struct name_fields pairs[PAIRS_MAX];
    size_t n_pairs = find_name_fields(stream, true, pairs), n_missing = 0;
    int32_t settled[CACHE_SLOTS] = {0};
    for (size_t i = 0; i < stream->n_tasks; i++)
        n_missing += !stream->tasks[i].comm && stream->tasks[i].task != 0;
    for (size_t i = 0; i < stream->n_events && n_missing && n_pairs; i++)
        for (size_t k = 0; k < n_pairs; k++) {
            int n = stream->events[i].id == pairs[k].id ? name_by(stream, &stream->events[i], &pairs[k], settled) : 0;
            if (n < 0)
                return false;
            n_missing -= (size_t)n;
        }
    return true;
}

/* Of a task that no event names the events tell nothing. */
bool stream_name_tasks_by_gathered(struct stream *stream)
{
    const struct stream_names *names = stream->names;
    for (size_t i = 0; names && i < names->n; i++) {
        struct stream_task *found = (struct stream_task *)stream_task_of(stream, names->all[i].task);
        if (!found || found->comm || found->task <= 0)
            continue;
        found->comm = strdup(names->texts.strings[names->all[i].text]);
        if (!found->comm)
            return false;
    }
    return names && names->is_gathered;
}

const char *stream_comm(const struct stream *stream, int32_t task)
{
    const struct stream_task *found = stream_task_of(stream, task);
    return found && found->comm ? found->comm : task == 0 ? "<idle>" : "<...>";
}

/* --- names at times --- */

static struct stream_names *get_names(struct stream *stream)
{
    if (!stream->names)
        stream->names = calloc(1, sizeof *stream->names);
    return stream->names;
}

void stream_names_free(struct stream_names *names)
{
    if (!names)
        return;
    free(names->all);
    strtab_fini(&names->texts);
    free(names);
}

bool stream_add_name(struct stream *stream, int32_t task, int64_t t_ns, const char *comm)
{
    struct stream_names *names = get_names(stream);
    struct buf printable = {0}; /* as events tell it, so that both are one name */
    printable_put(&printable, comm);
    buf_append(&printable, "", 0);
    int64_t text = names && printable.data && !printable.failed ? strtab_intern(&names->texts, printable.data) : -1;
    buf_fini(&printable);
    if (text < 0 || !vec_reserve(&names->all, &names->capacity, names->n + 1, sizeof *names->all))
        return false;
    names->all[names->n++] = (struct since){t_ns, task, (int32_t)text};
    return true;
}

/* The name of a task by the last event that told it. */
struct last_name {
    int32_t task;
    int32_t text; /* in texts; -1: none has */
};

static uint64_t last_hash(const void *item)
{
    const struct last_name *last = item;
    return bytes_hash(BYTES_HASH_START, &last->task, sizeof last->task);
}

static bool last_is_same(const void *a, const void *b)
{
    return ((const struct last_name *)a)->task == ((const struct last_name *)b)->task;
}

/* What recent events told, as they told it: most tell nothing new. */
struct told {
    int32_t task;
    unsigned char comm[COMM_BYTES];
};

struct following {
    struct stream *stream;
    struct told *told; /* [CACHE_SLOTS] by the rest of the task's number */
    struct last_name *lasts;
    size_t n_lasts, cap_lasts;
    struct slots slots;
    struct name_fields pairs[PAIRS_MAX];
    size_t n_pairs;
};

/* Whether an event tells of a task what the one before has told. bytes: of the event. */
static bool is_old(const struct following *following, int32_t task, const struct stream_field *comm,
                   const unsigned char *bytes, size_t n_bytes)
{
    struct told *told = &following->told[(uint32_t)task % CACHE_SLOTS];
    if (comm->n_bytes != COMM_BYTES || comm->flags & STREAM_FIELD_DYNAMIC || comm->offset > n_bytes ||
        n_bytes - comm->offset < COMM_BYTES)
        return false;
    bool is_same = told->task == task && memcmp(told->comm, bytes + comm->offset, COMM_BYTES) == 0;
    if (is_same)
        return true;
    told->task = task;
    memcpy(told->comm, bytes + comm->offset, COMM_BYTES);
    return false;
}

/* What an event, which has these bytes, tells by a pair of fields. False when out of memory. */
static bool follow_pair(struct following *following, const struct stream_event *event, const struct name_fields *pair,
                        const unsigned char *bytes, size_t n_bytes)
{
    static const struct slots_kind kind = {sizeof(struct last_name), last_hash, last_is_same};
    struct stream *stream = following->stream;
    int64_t task;
    struct buf comm = {0};
    if (!stream_number_in(stream, bytes, n_bytes, pair->task, &task) || task <= 0 || task > INT32_MAX ||
        is_old(following, (int32_t)task, pair->comm, bytes, n_bytes))
        return true;
    const struct last_name like = {(int32_t)task, -1};
    size_t i =
        slots_put(&following->slots, &kind, &following->lasts, &following->n_lasts, &following->cap_lasts, &like);
    stream_put_field(stream, event, pair->comm, &comm);
    int64_t text =
        i != SLOTS_NONE && comm.len_bytes && !comm.failed ? strtab_intern(&stream->names->texts, comm.data) : -1;
    bool is_new = text >= 0 && text != following->lasts[i].text;
    bool ok = i != SLOTS_NONE && !comm.failed && (!comm.len_bytes || text >= 0);
    if (ok && is_new) {
        following->lasts[i].text = (int32_t)text;
        ok = stream_add_name(stream, (int32_t)task, event->t_ns - stream->offset_ns, comm.data);
    }
    buf_fini(&comm);
    return ok;
}

static bool follow_event(struct following *following, const struct stream_event *event)
{
    const struct stream *stream = following->stream;
    const unsigned char *bytes = NULL;
    size_t n_bytes = 0;
    bool is_plain = stream->reader && !stream->reader->payload && event->id >= 0;
    for (size_t k = 0; k < following->n_pairs; k++) {
        if (event->id != following->pairs[k].id)
            continue;
        if (!bytes && !(is_plain ? stream_plain_bytes(stream, event, &bytes, &n_bytes)
                                 : stream_event_bytes(stream, event, &bytes, &n_bytes)))
            return true;
        if (!follow_pair(following, event, &following->pairs[k], bytes, n_bytes))
            return false;
    }
    return true;
}

static bool following_init(struct following *following, struct stream *stream, bool is_counted)
{
    *following = (struct following){.stream = stream, .told = calloc(CACHE_SLOTS, sizeof *following->told)};
    following->n_pairs = find_name_fields(stream, is_counted, following->pairs);
    return following->told && get_names(stream);
}

static void following_fini(struct following *following)
{
    free(following->told);
    free(following->lasts);
    slots_fini(&following->slots);
}

/* Of a stream that is being read. */
struct names_gathering {
    struct following following;
    int64_t last_ns;
    size_t n_before; /* names that were there */
    bool failed;     /* by an event that comes after a later one, too: what tells something new depends on the order */
};

struct names_gathering *stream_names_gather(struct stream *stream)
{
    struct names_gathering *gathering = calloc(1, sizeof *gathering);
    if (gathering) {
        gathering->last_ns = INT64_MIN;
        gathering->failed = !following_init(&gathering->following, stream, false);
        gathering->n_before = stream->names ? stream->names->n : 0;
    }
    return gathering;
}

void stream_names_event(struct names_gathering *gathering, const struct stream_event *event)
{
    if (!gathering || gathering->failed)
        return;
    gathering->failed = event->t_ns < gathering->last_ns || !follow_event(&gathering->following, event);
    gathering->last_ns = event->t_ns;
}

void stream_names_gathered(struct names_gathering *gathering)
{
    struct stream_names *names = gathering ? gathering->following.stream->names : NULL;
    if (!gathering)
        return;
    if (names && gathering->failed)
        names->n = gathering->n_before;
    else if (names)
        names->is_gathered = true;
    following_fini(&gathering->following);
    free(gathering);
}

static int compare_since(const void *a, const void *b)
{
    const struct since *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

/* Whether a name is the one that a task had before it became the program. */
static bool is_of_launcher(const struct stream *stream, size_t i)
{
    const struct stream_names *names = stream->names;
    const struct since *since = &names->all[i];
    const struct stream_task *task = stream->launcher ? stream_task_of(stream, since->task) : NULL;
    return task && task->is_own && (i == 0 || since[-1].task != since->task) && i + 1 < names->n &&
           since[1].task == since->task && strcmp(names->texts.strings[since->text], stream->launcher) == 0;
}

/* Leaves of what follows each other what is another name, and no launcher's. */
static void compress(struct stream *stream)
{
    struct stream_names *names = stream->names;
    size_t n = 0, n_left = 0;
    if (names->n)
        qsort(names->all, names->n, sizeof *names->all, compare_since);
    for (size_t i = 0; i < names->n; i++)
        if (!n || names->all[n - 1].task != names->all[i].task || names->all[n - 1].text != names->all[i].text)
            names->all[n++] = names->all[i];
    names->n = n;
    for (size_t i = 0; i < n; i++)
        if (!is_of_launcher(stream, i))
            names->all[n_left++] = names->all[i];
    names->n = n_left;
}

int stream_follow_names(struct stream *stream, struct error *err)
{
    struct stream_names *names = get_names(stream);
    struct following following = {0};
    if (names && names->is_followed)
        return 0;
    bool ok = names && following_init(&following, stream, true);
    for (size_t i = 0; ok && following.n_pairs && !names->is_gathered && i < stream->n_events; i++) {
        ok = follow_event(&following, &stream->events[i]);
        stream_pass(stream, i);
    }
    if (ok)
        compress(stream);
    if (ok)
        names->is_followed = names->is_gathered = true;
    following_fini(&following);
    return ok ? 0 : error_memory(err);
}

static bool since_is_before(const void *context, size_t i)
{
    const struct since *const *search = context;
    return compare_since(&search[0][i], search[1]) < 0;
}

/* Index of the first name of a task from t_ns on. */
static size_t name_at(const struct stream_names *names, int32_t task, int64_t t_ns)
{
    const struct since like = {.t_ns = t_ns, .task = task}, *search[] = {names->all, &like};
    return search_where(names->n, since_is_before, search);
}

static bool has_name(const struct stream_names *names, int32_t task, size_t i)
{
    return i < names->n && names->all[i].task == task;
}

const char *stream_comm_at(const struct stream *stream, int32_t task, int64_t t_ns)
{
    const struct stream_names *names = stream->names;
    int64_t recorded_ns;
    if (!names || !names->is_followed || __builtin_sub_overflow(t_ns, stream->offset_ns, &recorded_ns) ||
        recorded_ns == INT64_MAX)
        return stream_comm(stream, task);
    size_t behind = name_at(names, task, recorded_ns + 1);
    size_t i = behind && has_name(names, task, behind - 1) ? behind - 1 : behind;
    return has_name(names, task, i) ? names->texts.strings[names->all[i].text] : stream_comm(stream, task);
}

const char *stream_comm_number(const struct stream *stream, int32_t task, size_t i)
{
    const struct stream_names *names = stream->names;
    size_t first = names && names->is_followed ? name_at(names, task, INT64_MIN) : 0;
    if (!names || !names->is_followed || !has_name(names, task, first))
        return i == 0 ? stream_comm(stream, task) : NULL;
    return has_name(names, task, first + i) ? names->texts.strings[names->all[first + i].text] : NULL;
}

void stream_put_comms(const struct stream *stream, int32_t task, struct buf *out)
{
    size_t n = 0;
    while (stream_comm_number(stream, task, n))
        n++;
    for (size_t i = 0; i < n; i++) {
        if (n > NAMES_SHOWN && i == 2)
            buf_printf(out, ", then %zu others", n - 3);
        if (n <= NAMES_SHOWN || i < 2 || i + 1 == n)
            buf_printf(out, "%s%s", i ? ", then " : "", stream_comm_number(stream, task, i));
    }
}

void stream_names_put(const struct stream *stream, struct buf *out)
{
    const struct stream_names *names = stream->names;
    uint64_t n = names && names->is_followed ? names->n : 0;
    buf_append(out, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        const char *text = names->texts.strings[names->all[i].text];
        buf_append(out, &names->all[i], sizeof names->all[i]);
        buf_append(out, text, strlen(text) + 1);
    }
}

bool stream_names_take(struct stream *stream, const char *bytes, size_t n_bytes)
{
    struct stream_names *names = get_names(stream);
    struct since since;
    uint64_t n = 0;
    const char *at = bytes + sizeof n, *end = bytes + n_bytes, *zero;
    if (!names || n_bytes < sizeof n)
        return false;
    memcpy(&n, bytes, sizeof n);
    names->n = 0;
    for (; n && (size_t)(end - at) > sizeof since; n--) {
        memcpy(&since, at, sizeof since);
        at += sizeof since;
        zero = memchr(at, 0, (size_t)(end - at));
        int64_t text = zero ? strtab_intern(&names->texts, at) : -1;
        if (text < 0 || !vec_reserve(&names->all, &names->capacity, names->n + 1, sizeof *names->all))
            return false;
        names->all[names->n++] = (struct since){since.t_ns, since.task, (int32_t)text};
        at = zero + 1;
    }
    names->is_followed = n == 0;
    return names->is_followed;
}
