/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of a program, joined with when the kernel ran its threads: in which stay on a CPU each was taken, and what
 * the time on CPUs and off them is, by variable and by call path. A thread's time on CPUs belongs to the sample that
 * ends it; the time off CPU behind a stay, and the move to another CPU, to the last sample in that stay: where it was
 * seen before it left. What no sample stands for is a row of its own, so that the sums are those of the threads.
 * Ordinary code. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/waits.h"
#include "analysis/load/load.h"
#include "base/path.h"
#include "base/search.h"
#include "export/streams/sched-report.h"
#include "table/table.h"
#include "measurement/pending.h"

#define SAMPLE_NAME "locus/sample"

/* --- names --- */

struct sched_names {
    char *directory; /* that has been loaded, NULL: none */
    struct model model;
    struct waits *waits;
    struct load_places places;
    size_t last; /* profile that was asked for: samples come thread by thread */
};

struct sched_names *sched_names_new(void)
{
    return calloc(1, sizeof(struct sched_names));
}

static void forget_names(struct sched_names *names)
{
    waits_free(names->waits);
    names->waits = NULL;
    if (names->directory)
        model_fini(&names->model);
    load_places_fini(&names->places);
    free(names->directory);
    names->directory = NULL;
}

void sched_names_free(struct sched_names *names)
{
    if (names)
        forget_names(names);
    free(names);
}

static int load_names(void *context, const char *directory, struct error *err)
{
    struct sched_names *names = context;
    struct value_source values = {0};
    size_t n_skipped = 0;
    const struct job job = {.n_threads = workers_processors(), .scratch = detour_default_place()};
    const struct load_options options = {.job = &job, .places = &names->places};
    forget_names(names);
    int code = model_init(&names->model, err);
    if (code)
        return code;
    names->directory = strdup(directory);
    if (!names->directory) {
        model_fini(&names->model);
        return error_memory(err);
    }
    code = load_measurements(&directory, 1, &options, &names->model, &values, &n_skipped, err);
    values_free(&values);
    code = code ? code : waits_new(&names->waits, &names->model, true, err);
    if (code)
        forget_names(names);
    return code;
}

static const struct load_profile *find_profile(struct sched_names *names, const char *profile)
{
    const struct load_places *places = &names->places;
    for (size_t i = 0, n = places->n; i < n; i++) {
        size_t at = (names->last + i) % n;
        if (strcmp(path_last(places->profiles[at].path), profile) == 0) {
            names->last = at;
            return &places->profiles[at];
        }
    }
    return NULL;
}

static bool place_comes_before(const void *context, size_t i)
{
    const struct load_place *const *search = context;
    return search[0][i].id < search[1]->id;
}

static const struct load_place *find_place(struct sched_names *names, const char *profile, uint32_t node)
{
    const struct load_profile *of = find_profile(names, profile);
    const struct load_place like = {.id = node}, *search[] = {of ? of->places : NULL, &like};
    size_t at = of ? search_where(of->n, place_comes_before, search) : 0;
    return of && at < of->n && of->places[at].id == node ? &of->places[at] : NULL;
}

/* What reports set aside of a variable's samples: waiting for other threads, and the work of the profiler and the
 * allocator. */
static const char *aside(const struct sched_names *names, const struct variable *variable, uint32_t scope)
{
    const struct model *model = &names->model;
    if (variable && waits_are_possible(names->waits, variable)) {
        int64_t label = waits_label(names->waits, variable, scope);
        const char *text = label < 0 ? "" : names->waits->labels.strings[label];
        bool is_allocator = strncmp(text, WAITS_ALLOCATOR, strlen(WAITS_ALLOCATOR)) == 0;
        return label < 0                           ? NULL
               : strcmp(text, WAITS_PROFILER) == 0 ? WAITS_PROFILER
               : is_allocator                      ? "<allocator>"
                                                   : "<waiting>";
    }
    while (!variable && scope && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    return !variable && model->scopes[scope].role == ROLE_PROFILER ? WAITS_PROFILER : NULL;
}

static bool put_variable_name(void *context, const char *profile, uint32_t number, uint32_t node, struct buf *out)
{
    struct sched_names *names = context;
    const struct load_place *place = find_place(names, profile, number), *code = find_place(names, profile, node);
    bool is_known = place && place->variable < names->model.n_variables;
    const struct variable *variable = is_known ? &names->model.variables[place->variable] : NULL;
    const char *name = aside(names, variable, code ? code->scope : 0);
    if (!name)
        name = variable ? model_variable_name(&names->model, variable) : "";
    buf_printf(out, "%s", name);
    return *name;
}

/* "function (file:line)" of the innermost function around a node's code, inlined ones included. */
static bool put_code_name(void *context, const char *profile, uint32_t node, struct buf *out)
{
    struct sched_names *names = context;
    const struct model *model = &names->model;
    const struct load_place *place = find_place(names, profile, node);
    uint32_t at = place ? place->scope : 0, file = 0, line = 0;
    for (; at && model->scopes[at].kind != SCOPE_PROC && model->scopes[at].kind != SCOPE_INLINED;
         at = model->scopes[at].parent)
        if (!line) {
            line = model->scopes[at].line;
            file = model->scopes[at].file;
        }
    const char *name = at ? model_text(model, model->scopes[at].name) : "";
    if (!*name)
        return false;
    buf_printf(out, "%s", name);
    if (line && file)
        buf_printf(out, " (%s:%" PRIu32 ")", path_last(model_text(model, file)), line);
    return true;
}

struct stream_namer sched_namer(struct sched_names *names)
{
    return (struct stream_namer){load_names, put_variable_name, put_code_name, names};
}

/* A sample; from_ns, to_ns: the stay that it was taken in. */
struct seen {
    size_t event;
    int64_t t_ns, from_ns, to_ns;
    int32_t task;
    uint8_t then; /* what the thread did behind the stay */
    bool is_inside, has_ended;
};

/* What samples stand for. */
struct share {
    uint64_t n_samples, n_preemptions, n_migrations;
    int64_t on_ns, runnable_ns, blocked_ns, off_ns; /* off: all of it, however it is divided */
};

/* Samples of one key: a text, or a call path of a thread. */
struct group {
    int64_t key;  /* in texts; -1: no sample */
    int32_t task; /* or the process, STREAM_NO_TASK: not known */
    size_t stream;
    struct share share;
};

struct join {
    const struct sched_job *job;
    const struct stream *stream;
    size_t i;      /* of the stream */
    bool has_both; /* it has samples and says when threads ran, in whatever window */
    bool knows_wakings;
    uint64_t n_unseen;    /* as in struct schedule */
    struct seen *samples; /* [n_samples] by task and time */
    size_t n_samples, cap_samples;
    struct schedule_run *runs; /* [n_runs] by task and time */
    size_t n_runs, cap_runs;
    bool failed, by_path;
    struct strtab texts;
    struct group *groups; /* [n_groups] */
    size_t n_groups, cap_groups;
    struct slots slots;
};

/* --- samples and stays --- */

static int compare_samples(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void take_run(void *context, const struct schedule_run *run)
{
    struct join *join = context;
    if (!sched_wants_task(join->job, join->stream, run->task))
        return;
    if (!vec_reserve(&join->runs, &join->cap_runs, join->n_runs + 1, sizeof *join->runs))
        join->failed = true;
    else
        join->runs[join->n_runs++] = *run;
}

bool sched_is_sample(const struct stream *stream, const struct stream_event *event)
{
    return event->id >= 0 && strcmp(stream_event_name(stream, event), SAMPLE_NAME) == 0;
}

/* Takes the samples and stays of a stream.  err: ERR_MEMORY */
static int collect(struct join *join, struct error *err)
{
    const struct schedule_sink sink = {.run = take_run, .context = join};
    const struct stream *stream = join->stream;
    struct schedule sched = {0};
    int code = schedule_analyse(stream, &join->job->window, &sink, &sched, err);
    join->knows_wakings = sched.knows_wakings;
    join->n_unseen = sched.n_unseen;
    schedule_close(&sched);
    for (size_t i = stream_at(stream, join->job->window.from_ns);
         i < stream->n_events && stream->events[i].t_ns <= join->job->window.to_ns && !code && !join->failed; i++) {
        const struct stream_event *event = &stream->events[i];
        if (!sched_is_sample(stream, event) || !sched_wants_task(join->job, stream, event->task))
            continue;
        join->failed = !vec_reserve(&join->samples, &join->cap_samples, join->n_samples + 1, sizeof *join->samples);
        if (!join->failed)
            join->samples[join->n_samples++] = (struct seen){.event = i, .t_ns = event->t_ns, .task = event->task};
    }
    if (!code && join->failed)
        return error_memory(err);
    if (join->n_samples)
        qsort(join->samples, join->n_samples, sizeof *join->samples, compare_samples);
    if (join->n_runs)
        qsort(join->runs, join->n_runs, sizeof *join->runs, schedule_compare_runs);
    return code;
}

/* --- groups --- */

static uint64_t group_hash(const void *item)
{
    const struct group *group = item;
    return ((uint64_t)group->key * 31 + (uint32_t)group->task) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool group_is_same(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->key == y->key && x->task == y->task;
}

static struct share *share_of(struct join *join, int64_t key, int32_t task)
{
    static const struct slots_kind kind = {sizeof(struct group), group_hash, group_is_same};
    static struct share spare;
    const struct group like = {.key = key, .task = task, .stream = join->i};
    size_t i = slots_put(&join->slots, &kind, &join->groups, &join->n_groups, &join->cap_groups, &like);
    join->failed |= i == SLOTS_NONE;
    return i == SLOTS_NONE ? &spare : &join->groups[i].share;
}

void sched_put_variable(const struct stream *stream, const struct stream_event *event, struct buf *out)
{
    const struct stream_type *type = stream_type_of(stream, event->id);
    const struct stream_field *variable = stream_field_of(type, "variable"), *class = stream_field_of(type, "class");
    size_t before = out->len_bytes;
    if (variable)
        stream_put_field(stream, event, variable, out);
    if (out->len_bytes > before || !class)
        return;
    buf_printf(out, "<");
    stream_put_field(stream, event, class, out);
    buf_printf(out, ">");
}

/* Appends what a sample is counted for: its variable, or its call path. */
static void put_key(const struct join *join, const struct stream_event *event, struct buf *out)
{
    const struct stream_type *type = stream_type_of(join->stream, event->id);
    if (!join->by_path) {
        sched_put_variable(join->stream, event, out);
        return;
    }
    stream_put_field(join->stream, event, stream_field_of(type, "path_node"), out);
    buf_append(out, " ", 1);
    stream_put_field(join->stream, event, stream_field_of(type, "place"), out);
}

static int32_t process_of(const struct join *join, int32_t task)
{
    const struct stream_task *found = stream_task_of(join->stream, task);
    return found ? found->process : STREAM_NO_TASK;
}

/* The group of a sample, NULL: of what has none. */
static struct share *share_at(struct join *join, const struct seen *sample, int32_t task)
{
    struct buf text = {0};
    int64_t key = -1;
    if (sample) {
        put_key(join, &join->stream->events[sample->event], &text);
        key = text.failed ? -1 : strtab_intern(&join->texts, text.data);
        join->failed |= text.failed || key < 0;
    }
    buf_fini(&text);
    return share_of(join, key, join->by_path ? task : process_of(join, task));
}

/* What of a stretch lies in the window. */
static int64_t inside_ns(const struct join *join, int64_t from_ns, int64_t to_ns)
{
    const struct schedule_window *window = &join->job->window;
    from_ns = from_ns > window->from_ns ? from_ns : window->from_ns;
    to_ns = to_ns < window->to_ns ? to_ns : window->to_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static bool is_inside(const struct join *join, int64_t t_ns)
{
    return t_ns >= join->job->window.from_ns && t_ns <= join->job->window.to_ns;
}

/* The time from a stay to the next one of its task. */
static void add_off(struct join *join, const struct schedule_run *run, const struct schedule_run *next,
                    const struct seen *last)
{
    struct share *share = share_at(join, last, run->task);
    if (next->off_ns < 0)
        return;
    int64_t off_ns = inside_ns(join, next->from_ns - next->off_ns, next->from_ns);
    share->off_ns += off_ns;
    if (run->state == SCHEDULE_PREEMPTED) {
        share->runnable_ns += off_ns;
    } else if (next->latency_ns >= 0) {
        int64_t woken_ns = inside_ns(join, next->from_ns - next->latency_ns, next->from_ns);
        share->runnable_ns += woken_ns;
        share->blocked_ns += off_ns - woken_ns;
    }
}

/* How a stay begins and ends, each as the reports of tasks count it; before: the last sample in the stay before. */
static void count_ends(struct join *join, const struct schedule_run *run, const struct seen *before,
                       const struct seen *last)
{
    if (run->from_cpu >= 0 && run->cpu != STREAM_NO_CPU && run->from_cpu != run->cpu && is_inside(join, run->from_ns))
        share_at(join, before, run->task)->n_migrations++;
    if (run->state == SCHEDULE_PREEMPTED && is_inside(join, run->to_ns))
        share_at(join, last, run->task)->n_preemptions++;
}

/* Goes through the stays and samples of all tasks side by side. */
static void add_all(struct join *join)
{
    const struct schedule_window *window = &join->job->window;
    size_t at = 0;
    int64_t rest_ns = 0; /* on CPUs since the last sample */
    const struct seen *before = NULL;
    for (size_t i = 0; i < join->n_runs && !join->failed; i++) {
        const struct schedule_run *run = &join->runs[i], *next = run + 1;
        bool is_last = i + 1 == join->n_runs || next->task != run->task;
        int64_t since_ns = run->from_ns > window->from_ns ? run->from_ns : window->from_ns;
        int64_t to_ns = run->to_ns < window->to_ns ? run->to_ns : window->to_ns;
        const struct seen *last = NULL;
        while (at < join->n_samples && (join->samples[at].task < run->task ||
                                        (join->samples[at].task == run->task && join->samples[at].t_ns < since_ns)))
            at++;
        for (; at < join->n_samples && join->samples[at].task == run->task && join->samples[at].t_ns <= to_ns; at++) {
            struct seen *sample = &join->samples[at];
            struct share *share = share_at(join, sample, run->task);
            sample->is_inside = true;
            sample->has_ended = run->state != SCHEDULE_UNKNOWN;
            sample->from_ns = run->from_ns;
            sample->to_ns = run->to_ns;
            sample->then = run->state;
            share->n_samples++;
            share->on_ns += rest_ns + sample->t_ns - since_ns;
            rest_ns = 0;
            since_ns = sample->t_ns;
            last = sample;
        }
        rest_ns += to_ns > since_ns ? to_ns - since_ns : 0;
        count_ends(join, run, before, last);
        before = is_last ? NULL : last;
        if (!is_last)
            add_off(join, run, next, last);
        if (is_last && rest_ns) {
            share_at(join, NULL, run->task)->on_ns += rest_ns;
            rest_ns = 0;
        }
    }
}

static void join_fini(struct join *join)
{
    free(join->samples);
    free(join->runs);
    free(join->groups);
    strtab_fini(&join->texts);
    slots_fini(&join->slots);
}

/* Joins a stream, if it has samples and says when threads ran.  err: ERR_MEMORY, ERR_UNSUPPORTED */
static int make_join(struct join *join, bool by_path, size_t i, const struct sched_job *job, struct error *err)
{
    const struct stream *stream = job->streams[i].stream;
    const struct stream_type *type = stream_type_of(stream, stream_find_id(stream, SAMPLE_NAME));
    *join = (struct join){.job = job, .stream = stream, .i = i, .by_path = by_path};
    if (!type || !type->n_events || !sched_knows_runs(stream))
        return 0;
    if (!stream_field_of(type, "variable"))
        return error_set(err, ERR_UNSUPPORTED, "%.600s: fields of samples cannot be read: built without libtraceevent",
                         stream->path);
    join->has_both = true;
    int code = collect(join, err);
    if (!code)
        add_all(join);
    return code || !join->failed ? code : error_memory(err);
}

static int nothing_to_join(struct error *err)
{
    return error_set(err, ERR_NOT_FOUND,
                     "no recording here has both samples and what the scheduler did; hpcrun -t -e sched with another "
                     "event makes one: give the measurement, as its database has no samples");
}

/* --- reports --- */

static const struct column sample_columns[] = {
    {"time_ns", "time", CELL_TIME},      {"cpu", "CPU", CELL_COUNT},        SCHED_TASK_COLUMNS,
    {"variable", "variable", CELL_TEXT}, {"path_node", "path", CELL_COUNT}, {"place", "at", CELL_TEXT},
    {"from_ns", "ran from", CELL_TIME},  {"to_ns", "to", CELL_TIME},        {"before_ns", "ran before", CELL_SPAN},
    {"then", "then", CELL_TEXT},
};

static void put_sample(struct table *table, const struct join *join, const struct seen *sample)
{
    const struct stream_event *event = &join->stream->events[sample->event];
    const struct stream_type *type = stream_type_of(join->stream, event->id);
    struct buf variable = {0}, place = {0};
    int64_t node = 0;
    put_key(join, event, &variable);
    table_put_count(table, event->t_ns);
    table_put_if(table, event->cpu != STREAM_NO_CPU, event->cpu);
    sched_put_task_cells(table, join->job, join->i, event->task, event->t_ns);
    table_put_text(table, variable.len_bytes ? variable.data : "");
    bool has_node = stream_field_number(join->stream, event, stream_field_of(type, "path_node"), &node);
    table_put_if(table, has_node, node);
    stream_put_field(join->stream, event, stream_field_of(type, "place"), &place);
    table_put_text(table, place.len_bytes ? place.data : "");
    table_put_if(table, sample->is_inside, sample->from_ns);
    table_put_if(table, sample->is_inside && sample->has_ended, sample->to_ns);
    table_put_if(table, sample->is_inside, sample->t_ns - sample->from_ns);
    if (sample->is_inside && sample->has_ended)
        table_put_text(table, schedule_state_name(sample->then));
    else
        table_put_absent(table);
    table->failed |= variable.failed || place.failed;
    buf_fini(&variable);
    buf_fini(&place);
}

static int compare_by_time(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->event < y->event ? -1 : x->event > y->event;
}

int sched_write_samples(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = sample_columns, .n_columns = sizeof sample_columns / sizeof *sample_columns};
    int code = 0;
    bool has_both = false;
    for (size_t i = 0; i < job->n_streams && !code; i++) {
        struct join join;
        code = make_join(&join, false, i, job, err);
        has_both |= join.has_both;
        if (!code && join.n_samples)
            qsort(join.samples, join.n_samples, sizeof *join.samples, compare_by_time);
        for (size_t j = 0; j < join.n_samples && !code; j++)
            if (sched_wants_cpu(job, join.stream->events[join.samples[j].event].cpu)) {
                if (!job->top || table_rows(&table) < job->top)
                    put_sample(&table, &join, &join.samples[j]);
                else
                    table.n_more++;
            }
        join_fini(&join);
    }
    code = code || has_both ? code : nothing_to_join(err);
    return sched_finish_table(job, "samples", &table, out, code, err);
}

#define SHARE_COLUMNS                                                                                                  \
    {"samples", "samples", CELL_COUNT}, {"on_ns", "on CPU", CELL_SPAN}, {"on_share", "of it", CELL_PERCENT},           \
        {"runnable_ns", "then runnable", CELL_SPAN}, {"blocked_ns", "then blocked", CELL_SPAN},                        \
        {"off_ns", "then off CPU", CELL_SPAN}, {"preemptions", "preemptions", CELL_COUNT},                             \
    {                                                                                                                  \
        "migrations", "migrations", CELL_COUNT                                                                         \
    }

static const struct column variable_columns[] = {
    {"variable", "variable", CELL_TEXT},
    {"process", "process", CELL_TEXT},
    {"pid", NULL, CELL_COUNT},
    SCHED_STREAM_COLUMNS,
    SHARE_COLUMNS,
};

static const struct column path_columns[] = {
    SCHED_TASK_COLUMNS,
    {"path_node", "path", CELL_COUNT},
    {"place", "at", CELL_TEXT},
    SHARE_COLUMNS,
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->share.on_ns != y->share.on_ns)
        return x->share.on_ns > y->share.on_ns ? -1 : 1;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void put_group(struct table *table, const struct join *join, const struct group *group, int64_t all_ns)
{
    const char *text = group->key < 0 ? "(no sample)" : join->texts.strings[group->key];
    const struct share *share = &group->share;
    if (join->by_path) {
        sched_put_task_cells(table, join->job, join->i, group->task, SCHED_ALL_TIMES);
        table_put_if(table, group->key >= 0, group->key < 0 ? 0 : strtoll(text, NULL, 10));
        table_put_text(table, group->key < 0 ? text : strchr(text, ' ') + 1);
    } else {
        struct buf process = {0};
        sched_put_task(join->job, join->i, group->task, SCHED_ALL_TIMES, &process);
        table_put_text(table, text);
        table_put_text(table, process.failed ? "" : process.data);
        table_put_if(table, group->task != STREAM_NO_TASK, group->task);
        table->failed |= process.failed;
        buf_fini(&process);
        sched_put_stream(table, join->job, join->i);
    }
    table_put_count(table, (int64_t)share->n_samples);
    table_put_count(table, share->on_ns);
    table_put_number(table, all_ns > 0 ? 100.0 * (double)share->on_ns / (double)all_ns : 0);
    table_put_if(table, join->knows_wakings, share->runnable_ns);
    table_put_if(table, join->knows_wakings, share->blocked_ns);
    table_put_count(table, share->off_ns);
    table_put_count(table, (int64_t)share->n_preemptions);
    table_put_count(table, (int64_t)share->n_migrations);
}

static int write_groups(const struct sched_job *job, bool by_path, struct buf *out, struct error *err)
{
    struct table table = {.columns = by_path ? path_columns : variable_columns,
                          .n_columns = by_path ? sizeof path_columns / sizeof *path_columns
                                               : sizeof variable_columns / sizeof *variable_columns};
    bool has_both = false;
    int code = 0;
    uint64_t n_unseen = 0;
    for (size_t i = 0; i < job->n_streams && !code; i++) {
        struct join join;
        int64_t all_ns = 0;
        code = make_join(&join, by_path, i, job, err);
        n_unseen += join.n_unseen;
        has_both |= join.has_both;
        if (!code && join.n_groups)
            qsort(join.groups, join.n_groups, sizeof *join.groups, compare_groups);
        for (size_t j = 0; j < join.n_groups; j++)
            all_ns += join.groups[j].share.on_ns;
        for (size_t j = 0; j < join.n_groups && !code; j++)
            if (!job->top || table_rows(&table) < job->top)
                put_group(&table, &join, &join.groups[j], all_ns);
            else
                table.n_more++;
        join_fini(&join);
    }
    code = code || has_both ? code : nothing_to_join(err);
    code = sched_finish_table(job, by_path ? "paths" : "variables", &table, out, code, err);
    if (!code && n_unseen && strcmp(job->form, "text") == 0)
        buf_printf(out,
                   "%" PRIu64 " stay%s on CPUs nobody recorded: the preemptions and the time at their ends are in the "
                   "report of tasks, and in no row here\n",
                   n_unseen, n_unseen == 1 ? "" : "s");
    return code;
}

int sched_write_variables(const struct sched_job *job, struct buf *out, struct error *err)
{
    return write_groups(job, false, out, err);
}

int sched_write_paths(const struct sched_job *job, struct buf *out, struct error *err)
{
    return write_groups(job, true, out, err);
}
