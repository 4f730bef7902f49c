/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of reports about streams, and those of them that are tables: see sched-report.h. */
#include "export/streams/sched-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "table/table.h"

/* What is known of one stream. */
struct known {
    bool switches; /* how often tasks left their CPUs */
    bool runs;     /* when they came and left */
    bool wakings;  /* when they were woken */
    bool all;      /* of all tasks, so that a CPU without one is idle */
    bool cpus;     /* where */
};

static struct known known_of(const struct stream *stream, const struct schedule *sched)
{
    bool runs = sched_knows_runs(stream);
    return (struct known){.switches = stream->tier != STREAM_TIER_NONE,
                          .runs = runs,
                          .wakings = runs && sched->knows_wakings,
                          .all = runs && sched->knows_all_tasks,
                          .cpus = runs && sched->n_cpus > 0};
}

/* The rows of a table from several streams, by a value, the largest first. */
struct rank {
    size_t stream, index; /* of the task or CPU */
    int64_t value, then;  /* then: among equal ones */
    bool is_total;        /* index: of the stream's totals */
};

/* Tasks that ran on CPUs that are wanted. */
struct guests {
    const struct sched_job *job;
    int32_t *tasks; /* [n] sorted when it is full */
    size_t n, capacity;
    bool failed;
};

struct analysis {
    const struct sched_job *job;
    struct schedule *scheds; /* [job->n_streams] */
    struct guests *guests;   /* [job->n_streams] empty when all CPUs are wanted */
    struct rank *ranks;      /* [n_ranks] */
    size_t n_ranks, cap_ranks;
    size_t n_more; /* that were left out, because fewer are wanted */
};

static void analysis_fini(struct analysis *analysis)
{
    for (size_t i = 0; analysis->scheds && i < analysis->job->n_streams; i++)
        schedule_close(&analysis->scheds[i]);
    for (size_t i = 0; analysis->guests && i < analysis->job->n_streams; i++)
        free(analysis->guests[i].tasks);
    free(analysis->scheds);
    free(analysis->guests);
    free(analysis->ranks);
}

static void take_guest(void *context, const struct schedule_piece *piece)
{
    struct guests *guests = context;
    bool is_one =
        piece->state == SCHEDULE_RUNNING && piece->cpu != STREAM_NO_CPU && sched_wants_cpu(guests->job, piece->cpu);
    if (!is_one || (guests->n && guests->tasks[guests->n - 1] == piece->task))
        return;
    if (vec_reserve(&guests->tasks, &guests->capacity, guests->n + 1, sizeof *guests->tasks))
        guests->tasks[guests->n++] = piece->task;
    else
        guests->failed = true;
}

static int compare_numbers(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int analyse(struct analysis *analysis, const struct sched_job *job, struct error *err)
{
    *analysis = (struct analysis){.job = job,
                                  .scheds = calloc(job->n_streams, sizeof *analysis->scheds),
                                  .guests = calloc(job->n_streams, sizeof *analysis->guests)};
    int code = analysis->scheds && analysis->guests ? 0 : error_memory(err);
    for (size_t i = 0; i < job->n_streams && !code; i++) {
        struct guests *guests = &analysis->guests[i];
        const struct schedule_sink sink = {.piece = take_guest, .context = guests};
        guests->job = job;
        code =
            schedule_analyse(job->streams[i].stream, &job->window, job->cpus ? &sink : NULL, &analysis->scheds[i], err);
        if (!code && guests->failed)
            code = error_memory(err);
        if (guests->n)
            qsort(guests->tasks, guests->n, sizeof *guests->tasks, compare_numbers);
    }
    return code;
}

static bool is_guest(const struct analysis *analysis, size_t i, int32_t task)
{
    const struct guests *guests = &analysis->guests[i];
    return !analysis->job->cpus ||
           (guests->n && bsearch(&task, guests->tasks, guests->n, sizeof *guests->tasks, compare_numbers));
}

static bool add_rank(struct analysis *analysis, struct rank rank)
{
    if (!vec_reserve(&analysis->ranks, &analysis->cap_ranks, analysis->n_ranks + 1, sizeof *analysis->ranks))
        return false;
    analysis->ranks[analysis->n_ranks++] = rank;
    return true;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->then != y->then)
        return x->then > y->then ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the rows and cuts them to as many as are wanted. */
static void sort_ranks(struct analysis *analysis)
{
    if (analysis->n_ranks)
        qsort(analysis->ranks, analysis->n_ranks, sizeof *analysis->ranks, compare_ranks);
    if (analysis->job->top && analysis->n_ranks > analysis->job->top) {
        analysis->n_more = analysis->n_ranks - analysis->job->top;
        analysis->n_ranks = analysis->job->top;
    }
}

/* Of a window that is larger than the streams, what of it they fill. */
static int64_t window_ns(const struct sched_job *job, const struct schedule *sched)
{
    int64_t from_ns = sched->begin_ns > job->window.from_ns ? sched->begin_ns : job->window.from_ns;
    int64_t to_ns = sched->end_ns < job->window.to_ns ? sched->end_ns : job->window.to_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void put_part(struct table *table, bool is_known, int64_t part_ns, int64_t whole_ns)
{
    if (is_known && whole_ns > 0)
        table_put_number(table, 100.0 * (double)part_ns / (double)whole_ns);
    else
        table_put_absent(table);
}

static void put_latency(struct table *table, bool is_known, const struct schedule_latency *latency)
{
    bool has_any = is_known && latency->n;
    table_put_if(table, is_known, (int64_t)latency->n);
    table_put_if(table, has_any, has_any ? latency->sum_ns / (int64_t)latency->n : 0);
    table_put_if(table, has_any, latency->p95_ns);
    table_put_if(table, has_any, latency->max_ns);
    table_put_if(table, has_any, latency->max_at_ns);
}

void sched_put_task_cells(struct table *table, const struct sched_job *job, size_t i, int32_t task, int64_t t_ns)
{
    const struct stream *stream = job->streams[i].stream;
    const struct stream_task *found = stream_task_of(stream, task);
    struct buf text = {0};
    sched_put_task(job, i, task, t_ns, &text);
    table_put_made(table, &text);
    sched_put_stream(table, job, i);
    table_put_text(table, sched_comm(stream, task, t_ns));
    table_put_count(table, task);
    table_put_if(table, found && found->process != STREAM_NO_TASK, found ? found->process : 0);
}

int sched_finish_table(const struct sched_job *job, const char *name, struct table *table, struct buf *out, int code,
                       struct error *err)
{
    if (!code && table->failed)
        code = error_memory(err);
    table->time_form = job->time_form;
    if (!code)
        sched_put_table(job, name, table, out);
    table_fini(table);
    return code;
}

/* --- tasks --- */

static const struct column task_columns[] = {
    SCHED_TASK_COLUMNS,
    {"running_ns", "running", CELL_SPAN},
    {"running_share", "of time", CELL_PERCENT},
    {"runnable_ns", "runnable", CELL_SPAN},
    {"woken_ns", "woken", CELL_SPAN},
    {"preempted_ns", "preempted", CELL_SPAN},
    {"blocked_ns", "blocked", CELL_SPAN},
    {"sleeping_ns", NULL, CELL_SPAN},
    {"uninterruptible_ns", NULL, CELL_SPAN},
    {"stopped_ns", NULL, CELL_SPAN},
    {"off_ns", "off CPU", CELL_SPAN},
    {"longest_run_ns", NULL, CELL_SPAN},
    {"runs", "runs", CELL_COUNT},
    {"switches", NULL, CELL_COUNT},
    {"preemptions", "preemptions", CELL_COUNT},
    {"migrations", "migrations", CELL_COUNT},
    {"wakings", NULL, CELL_COUNT},
    {"latency_mean_ns", NULL, CELL_SPAN},
    {"latency_p95_ns", NULL, CELL_SPAN},
    {"latency_max_ns", NULL, CELL_SPAN},
    {"latency_max_at_ns", NULL, CELL_TIME},
};

/* Whether the task did anything in the window. */
static bool is_active(const struct schedule_task *task)
{
    int64_t sum_ns = task->ns[SCHEDULE_RUNNING] + schedule_off_ns(task);
    return sum_ns > 0 || task->n_runs || task->n_switches;
}

/* The tasks that are wanted, by the time that they ran, or as latencies are ordered. */
static int rank_tasks(struct analysis *analysis, bool by_latency, struct error *err)
{
    for (size_t i = 0; i < analysis->job->n_streams; i++)
        for (size_t j = 0; j < analysis->scheds[i].n_tasks; j++) {
            const struct schedule_task *task = &analysis->scheds[i].tasks[j];
            struct rank rank = {i, j, task->ns[SCHEDULE_RUNNING], (int64_t)task->n_switches, false};
            if (by_latency)
                rank = (struct rank){i, j, task->latency.max_ns, (int64_t)task->latency.n, false};
            bool is_shown = by_latency ? task->latency.n > 0 : is_active(task);
            if (is_shown && sched_wants_task(analysis->job, analysis->job->streams[i].stream, task->task) &&
                is_guest(analysis, i, task->task) && !add_rank(analysis, rank))
                return error_memory(err);
        }
    for (size_t i = 0; i < analysis->job->n_streams && !by_latency; i++) {
        const struct stream *stream = analysis->job->streams[i].stream;
        for (size_t j = 0; j < stream->n_totals && stream->tier == STREAM_TIER_NONE; j++) {
            const struct stream_total *total = &stream->totals[j];
            const struct rank rank = {i, j, total->run_ns, (int64_t)total->n_runs, true};
            if (sched_wants_task(analysis->job, stream, total->task) && !add_rank(analysis, rank))
                return error_memory(err);
        }
    }
    sort_ranks(analysis);
    return 0;
}

/* What the kernel has counted, which is all that is known of the task. */
static void put_total_row(struct table *table, const struct sched_job *job, size_t i, const struct stream_total *total)
{
    enum { N_ABSENT_BETWEEN = 8, N_ABSENT_BEHIND = 6 };
    sched_put_task_cells(table, job, i, total->task, SCHED_ALL_TIMES);
    table_put_if(table, total->run_ns >= 0, total->run_ns);
    table_put_absent(table);
    table_put_if(table, total->wait_ns >= 0, total->wait_ns);
    for (int n = 0; n < N_ABSENT_BETWEEN; n++)
        table_put_absent(table);
    table_put_if(table, total->run_ns >= 0, (int64_t)total->n_runs);
    table_put_count(table, (int64_t)(total->n_voluntary + total->n_involuntary));
    table_put_count(table, (int64_t)total->n_involuntary);
    for (int n = 0; n < N_ABSENT_BEHIND; n++)
        table_put_absent(table);
}

static void put_task_row(struct table *table, const struct analysis *analysis, const struct rank *rank)
{
    const struct sched_job *job = analysis->job;
    const struct schedule *sched = &analysis->scheds[rank->stream];
    const struct schedule_task *task = &sched->tasks[rank->index];
    const struct known known = known_of(job->streams[rank->stream].stream, sched);
    int64_t blocked_ns = task->ns[SCHEDULE_SLEEPING] + task->ns[SCHEDULE_UNINTERRUPTIBLE] + task->ns[SCHEDULE_STOPPED];
    sched_put_task_cells(table, job, rank->stream, task->task, SCHED_ALL_TIMES);
    table_put_if(table, known.runs, task->ns[SCHEDULE_RUNNING]);
    put_part(table, known.runs, task->ns[SCHEDULE_RUNNING], window_ns(job, sched));
    table_put_if(table, known.wakings, task->ns[SCHEDULE_WOKEN] + task->ns[SCHEDULE_PREEMPTED]);
    table_put_if(table, known.wakings, task->ns[SCHEDULE_WOKEN]);
    table_put_if(table, known.runs, task->ns[SCHEDULE_PREEMPTED]);
    table_put_if(table, known.wakings, blocked_ns);
    table_put_if(table, known.wakings, task->ns[SCHEDULE_SLEEPING]);
    table_put_if(table, known.wakings, task->ns[SCHEDULE_UNINTERRUPTIBLE]);
    table_put_if(table, known.wakings, task->ns[SCHEDULE_STOPPED]);
    table_put_if(table, known.runs, schedule_off_ns(task));
    table_put_if(table, known.runs, task->run_max_ns);
    table_put_if(table, known.runs, (int64_t)task->n_runs);
    table_put_if(table, known.switches, (int64_t)task->n_switches);
    table_put_if(table, known.switches, (int64_t)task->n_preemptions);
    table_put_if(table, known.cpus, (int64_t)task->n_migrations);
    put_latency(table, known.wakings, &task->latency);
}

/* The kernel leaves out records of some switches: what is said below the table, so that nobody takes its times for
 * all. */
static void put_unseen(const struct analysis *analysis, struct buf *out)
{
    uint64_t n = 0;
    int64_t ns = 0;
    for (size_t i = 0; i < analysis->job->n_streams; i++) {
        n += analysis->scheds[i].n_unseen;
        ns += analysis->scheds[i].unseen_ns;
    }
    if (!n || strcmp(analysis->job->form, "text") != 0)
        return;
    buf_printf(out, "%" PRIu64 " time%s nobody recorded when a task came onto the CPU that it left; of ", n,
               n == 1 ? "" : "s");
    span_put(out, ns);
    buf_printf(out, " it is not known how much they ran\n");
}

static int fill_tasks(const struct sched_job *job, struct table *table, struct analysis *analysis, struct error *err)
{
    int code = analyse(analysis, job, err);
    code = code ? code : rank_tasks(analysis, false, err);
    for (size_t i = 0; !code && i < analysis->n_ranks; i++)
        if (analysis->ranks[i].is_total)
            put_total_row(table, job, analysis->ranks[i].stream,
                          &job->streams[analysis->ranks[i].stream].stream->totals[analysis->ranks[i].index]);
        else
            put_task_row(table, analysis, &analysis->ranks[i]);
    table->n_more = analysis->n_more;
    return code;
}

static int write_tasks(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = task_columns, .n_columns = sizeof task_columns / sizeof *task_columns};
    struct analysis analysis;
    int code = fill_tasks(job, &table, &analysis, err);
    code = sched_finish_table(job, "tasks", &table, out, code, err);
    if (!code)
        put_unseen(&analysis, out);
    analysis_fini(&analysis);
    return code;
}

/* --- latencies --- */

static const struct column latency_columns[] = {
    SCHED_TASK_COLUMNS,
    {"running_ns", "running", CELL_SPAN},
    {"wakings", "wakings", CELL_COUNT},
    {"latency_mean_ns", "mean", CELL_SPAN},
    {"latency_p95_ns", "95 %", CELL_SPAN},
    {"latency_max_ns", "max", CELL_SPAN},
    {"latency_max_at_ns", "max at", CELL_TIME},
    {"preemptions", "preemptions", CELL_COUNT},
    {"preempted_ns", "waited then", CELL_SPAN},
};

static int fill_latencies(const struct sched_job *job, struct table *table, struct analysis *analysis,
                          struct error *err)
{
    int code = analyse(analysis, job, err);
    code = code ? code : rank_tasks(analysis, true, err);
    for (size_t i = 0; !code && i < analysis->n_ranks; i++) {
        const struct rank *rank = &analysis->ranks[i];
        const struct schedule_task *task = &analysis->scheds[rank->stream].tasks[rank->index];
        sched_put_task_cells(table, job, rank->stream, task->task, SCHED_ALL_TIMES);
        table_put_count(table, task->ns[SCHEDULE_RUNNING]);
        put_latency(table, true, &task->latency);
        table_put_count(table, (int64_t)task->n_preemptions);
        table_put_count(table, task->ns[SCHEDULE_PREEMPTED]);
    }
    table->n_more = analysis->n_more;
    return code;
}

/* Wakings that are in no row, in text. */
static void put_lost_wakings(const struct analysis *analysis, struct buf *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i < analysis->job->n_streams; i++)
        n += analysis->scheds[i].n_unseen_wakings;
    if (n && strcmp(analysis->job->form, "text") == 0)
        buf_printf(
            out, "%" PRIu64 " waking%s in no row: nobody recorded when the task came onto the CPU that it left next\n",
            n, n == 1 ? " is" : "s are");
}

static int write_latencies(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = latency_columns, .n_columns = sizeof latency_columns / sizeof *latency_columns};
    struct analysis analysis;
    int code = fill_latencies(job, &table, &analysis, err);
    code = sched_finish_table(job, "latencies", &table, out, code, err);
    if (!code)
        put_lost_wakings(&analysis, out);
    analysis_fini(&analysis);
    return code;
}

/* --- who displaced whom --- */

/* A task that left its CPU although it could go on, and the one that came there. */
struct displacement {
    size_t stream;
    int32_t task, by; /* by: SCHEDULE_NOBODY, not recorded */
    uint64_t n;
    int64_t waited_ns, longest_ns; /* until it ran again, inside the window */
};

struct displacements {
    const struct sched_job *job;
    size_t stream;
    struct schedule_source source; /* of the stream */
    struct displacement *pairs;    /* [n_pairs] */
    size_t n_pairs, cap_pairs;
    struct slots slots;
    bool failed;
};

static uint64_t pair_hash(const void *item)
{
    const struct displacement *pair = item;
    uint64_t tasks = (uint64_t)(uint32_t)pair->task << 32 | (uint32_t)pair->by;
    return (tasks + pair->stream) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool pair_is_same(const void *a, const void *b)
{
    const struct displacement *x = a, *y = b;
    return x->task == y->task && x->by == y->by && x->stream == y->stream;
}

/* A wait of which it is not known how it ended, as the task left a CPU again onto which nobody saw it come, is none. */
static void take_displacement(void *context, const struct schedule_piece *piece)
{
    static const struct slots_kind kind = {sizeof(struct displacement), pair_hash, pair_is_same};
    struct displacements *all = context;
    const struct sched_job *job = all->job;
    const struct stream *stream = job->streams[all->stream].stream;
    if (piece->state != SCHEDULE_PREEMPTED || piece->from_ns < job->window.from_ns ||
        piece->from_ns > job->window.to_ns || !sched_wants_cpu(job, piece->cpu))
        return;
    int32_t by = schedule_next_of(&all->source, piece->task, piece->from_ns);
    if (!sched_wants_task(job, stream, piece->task) && (by == SCHEDULE_NOBODY || !sched_wants_task(job, stream, by)))
        return;
    const struct displacement like = {.stream = all->stream, .task = piece->task, .by = by};
    size_t at = slots_put(&all->slots, &kind, &all->pairs, &all->n_pairs, &all->cap_pairs, &like);
    all->failed |= at == SLOTS_NONE;
    if (all->failed)
        return;
    struct displacement *pair = &all->pairs[at];
    int64_t waited_ns = (piece->to_ns < job->window.to_ns ? piece->to_ns : job->window.to_ns) - piece->from_ns;
    pair->n++;
    pair->waited_ns += waited_ns;
    pair->longest_ns = waited_ns > pair->longest_ns ? waited_ns : pair->longest_ns;
}

static int compare_displacements(const void *a, const void *b)
{
    const struct displacement *x = a, *y = b;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns > y->waited_ns ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    return (x->by > y->by) - (x->by < y->by);
}

/* All pairs, the longest wait first. */
static int find_displacements(struct displacements *all, struct error *err)
{
    const struct schedule_sink sink = {.piece = take_displacement, .context = all};
    int code = 0;
    for (all->stream = 0; all->stream < all->job->n_streams && !code; all->stream++) {
        struct schedule sched = {0};
        const struct stream *stream = all->job->streams[all->stream].stream;
        schedule_source_init(&all->source, stream);
        /* all of it: what ends a wait may lie behind the window */
        code = sched_knows_runs(stream) ? schedule_analyse(stream, NULL, &sink, &sched, err) : 0;
        schedule_close(&sched);
    }
    if (!code && all->failed)
        code = error_memory(err);
    if (!code && all->n_pairs)
        qsort(all->pairs, all->n_pairs, sizeof *all->pairs, compare_displacements);
    return code;
}

static const struct column displacement_columns[] = {
    SCHED_TASK_COLUMNS,
    {"by_name", "displaced by", CELL_TEXT},
    {"by_comm", NULL, CELL_TEXT},
    {"by_tid", NULL, CELL_COUNT},
    {"times", "times", CELL_COUNT},
    {"waited_ns", "waited then", CELL_SPAN},
    {"longest_ns", "longest", CELL_SPAN},
};

static int fill_displacements(const struct sched_job *job, struct table *table, struct error *err)
{
    struct displacements all = {.job = job};
    int code = find_displacements(&all, err);
    size_t n = job->top && all.n_pairs > job->top ? job->top : all.n_pairs;
    for (size_t i = 0; !code && i < n; i++) {
        const struct displacement *pair = &all.pairs[i];
        struct buf by = {0};
        bool is_known = pair->by != SCHEDULE_NOBODY;
        sched_put_task_cells(table, job, pair->stream, pair->task, SCHED_ALL_TIMES);
        if (is_known) {
            sched_put_task(job, pair->stream, pair->by, SCHED_ALL_TIMES, &by);
            table_put_made(table, &by);
            table_put_text(table, sched_comm(job->streams[pair->stream].stream, pair->by, SCHED_ALL_TIMES));
        } else {
            table_put_absents(table, 2);
        }
        table_put_if(table, is_known, pair->by);
        table_put_count(table, (int64_t)pair->n);
        table_put_count(table, pair->waited_ns);
        table_put_count(table, pair->longest_ns);
    }
    table->n_more = code ? 0 : all.n_pairs - n;
    free(all.pairs);
    slots_fini(&all.slots);
    return code;
}

static int write_displaced(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = displacement_columns,
                          .n_columns = sizeof displacement_columns / sizeof *displacement_columns};
    int code = fill_displacements(job, &table, err);
    return sched_finish_table(job, "displaced", &table, out, code, err);
}

/* --- at a glance --- */

/* Ends a table of it; report: the one that has all of its rows. */
static int put_glance(const char *title, const char *report, struct table *table, struct buf *out, int code,
                      struct error *err)
{
    if (!code && table->failed)
        code = error_memory(err);
    if (!code && table_rows(table)) {
        buf_printf(out, "%s\n", title);
        table_print_text(table, out);
        if (table->n_more)
            buf_printf(out, "%zu more (hpcquery sched %s)\n", table->n_more, report);
        buf_append(out, "\n", 1);
    }
    table_fini(table);
    return code;
}

/* Short enough for the end of a run. */
static int write_summary(const struct sched_job *job, struct buf *out, struct error *err)
{
    enum { N_TASKS = 5, N_OTHERS = 3 };
    struct table tasks = {.columns = task_columns, .n_columns = sizeof task_columns / sizeof *task_columns};
    struct table pairs = {.columns = displacement_columns,
                          .n_columns = sizeof displacement_columns / sizeof *displacement_columns};
    struct table waits = {.columns = latency_columns, .n_columns = sizeof latency_columns / sizeof *latency_columns};
    struct sched_job part = *job;
    struct analysis analysis;
    if (strcmp(job->form, "text") != 0)
        return error_set(err, ERR_USAGE, "the summary is text; tasks, displaced and latencies have other forms");
    tasks.time_form = pairs.time_form = waits.time_form = job->time_form;
    sched_put_head(job, out);
    part.top = N_TASKS;
    int code = fill_tasks(&part, &tasks, &analysis, err);
    analysis_fini(&analysis);
    code = put_glance("Tasks that ran longest:", "tasks", &tasks, out, code, err);
    part.top = N_OTHERS;
    code = code ? code : fill_displacements(&part, &pairs, err);
    code = put_glance("Who took whose CPU:", "displaced", &pairs, out, code, err);
    if (code)
        return code;
    code = fill_latencies(&part, &waits, &analysis, err);
    analysis_fini(&analysis);
    return put_glance("From waking to running:", "latencies", &waits, out, code, err);
}

/* --- CPUs --- */

static const struct column cpu_columns[] = {
    {"cpu", "CPU", CELL_COUNT},
    SCHED_STREAM_COLUMNS,
    {"running_ns", "running", CELL_SPAN},
    {"running_share", "of time", CELL_PERCENT},
    {"idle_ns", "idle", CELL_SPAN},
    {"idle_share", NULL, CELL_PERCENT},
    {"unknown_ns", "not known", CELL_SPAN},
    {"waited_ns", "waited for it", CELL_SPAN},
    {"switches", "switches", CELL_COUNT},
    {"preemptions", "preemptions", CELL_COUNT},
    {"migrations", "migrations", CELL_COUNT},
    {"wakings", "wakings", CELL_COUNT},
    {"latency_mean_ns", "mean", CELL_SPAN},
    {"latency_p95_ns", "95 %", CELL_SPAN},
    {"latency_max_ns", "max", CELL_SPAN},
    {"latency_max_at_ns", NULL, CELL_TIME},
    {"lost", "lost", CELL_COUNT},
};

static void put_cpu_row(struct table *table, const struct sched_job *job, size_t i, const struct schedule *sched,
                        uint32_t number)
{
    static const struct schedule_cpu nothing;
    const struct schedule_cpu *cpu = schedule_cpu_of(sched, (uint16_t)number);
    bool is_met = cpu; /* something happened there, or on one with a higher number */
    int64_t n_lost = cpu ? (int64_t)cpu->n_lost_places : 0;
    cpu = cpu && schedule_cpu_is_known(cpu) ? cpu : NULL;
    struct known known = known_of(job->streams[i].stream, sched);
    int64_t whole_ns = window_ns(job, sched), unknown_ns = cpu ? cpu->unknown_ns : whole_ns;
    bool knows_unknown = known.all;
    known.runs = known.runs && cpu; /* nothing was recorded of others */
    known.all = known.all && cpu;
    known.switches = known.switches && cpu;
    known.wakings = known.wakings && cpu;
    cpu = cpu ? cpu : &nothing;
    table_put_count(table, number);
    sched_put_stream(table, job, i);
    table_put_if(table, known.runs, cpu->running_ns);
    put_part(table, known.runs, cpu->running_ns, whole_ns);
    table_put_if(table, known.all, cpu->idle_ns);
    put_part(table, known.all, cpu->idle_ns, whole_ns);
    table_put_if(table, knows_unknown, unknown_ns);
    table_put_if(table, known.wakings, cpu->waited_ns);
    table_put_if(table, known.switches, (int64_t)cpu->n_switches);
    table_put_if(table, known.switches, (int64_t)cpu->n_preemptions);
    table_put_if(table, known.runs, (int64_t)cpu->n_migrations);
    put_latency(table, known.wakings, &cpu->latency);
    table_put_if(table, is_met, n_lost);
}

static int write_cpus(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = cpu_columns, .n_columns = sizeof cpu_columns / sizeof *cpu_columns};
    struct analysis analysis;
    int code = analyse(&analysis, job, err);
    for (size_t i = 0; !code && i < job->n_streams; i++) {
        uint32_t *cpus = NULL;
        size_t n = 0;
        code = sched_cpu_rows(job, i, &analysis.scheds[i], &cpus, &n, err);
        for (size_t j = 0; !code && j < n; j++)
            if (!job->top || table_rows(&table) < job->top)
                put_cpu_row(&table, job, i, &analysis.scheds[i], cpus[j]);
            else
                table.n_more++;
        free(cpus);
    }
    analysis_fini(&analysis);
    return sched_finish_table(job, "cpus", &table, out, code, err);
}

/* --- runs and migrations --- */

/* A stay of a task on a CPU, of a stream. */
struct stay {
    struct schedule_run run;
    size_t stream;
};

struct stays {
    const struct sched_job *job;
    size_t stream;
    bool only_moves;
    struct stay *all; /* [n] */
    size_t n, capacity;
    size_t n_more; /* that were left out, because fewer are wanted */
    bool failed;
};

static void take_run(void *context, const struct schedule_run *run)
{
    struct stays *stays = context;
    const struct stream *stream = stays->job->streams[stays->stream].stream;
    bool is_wanted =
        stays->only_moves
            ? run->from_cpu >= 0 && run->cpu != STREAM_NO_CPU && run->from_cpu != run->cpu &&
                  run->from_ns >= stays->job->window.from_ns && run->from_ns <= stays->job->window.to_ns &&
                  (sched_wants_cpu(stays->job, run->cpu) || sched_wants_cpu(stays->job, (uint16_t)run->from_cpu))
            : sched_wants_cpu(stays->job, run->cpu);
    if (!is_wanted || !sched_wants_task(stays->job, stream, run->task))
        return;
    if (!vec_reserve(&stays->all, &stays->capacity, stays->n + 1, sizeof *stays->all)) {
        stays->failed = true;
        return;
    }
    stays->all[stays->n++] = (struct stay){*run, stays->stream};
}

static int compare_stays(const void *a, const void *b)
{
    const struct stay *x = a, *y = b;
    if (x->run.from_ns != y->run.from_ns)
        return x->run.from_ns < y->run.from_ns ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->run.cpu != y->run.cpu)
        return x->run.cpu < y->run.cpu ? -1 : 1;
    return x->run.to_ns < y->run.to_ns ? -1 : x->run.to_ns > y->run.to_ns;
}

/* All stays, or all that began on another CPU than the one before, by their beginnings. */
static int find_stays(struct stays *stays, struct error *err)
{
    const struct schedule_sink sink = {.run = take_run, .context = stays};
    int code = 0;
    for (stays->stream = 0; stays->stream < stays->job->n_streams && !code; stays->stream++) {
        struct schedule sched = {0};
        const struct stream *stream = stays->job->streams[stays->stream].stream;
        code = sched_knows_runs(stream) ? schedule_analyse(stream, &stays->job->window, &sink, &sched, err) : 0;
        schedule_close(&sched);
    }
    if (!code && stays->failed)
        code = error_memory(err);
    if (!code && stays->n)
        qsort(stays->all, stays->n, sizeof *stays->all, compare_stays);
    if (stays->job->top && stays->n > stays->job->top) {
        stays->n_more = stays->n - stays->job->top;
        stays->n = stays->job->top;
    }
    return code;
}

static const struct column run_columns[] = {
    {"from_ns", "from", CELL_TIME},
    {"to_ns", "to", CELL_TIME},
    {"cpu", "CPU", CELL_COUNT},
    SCHED_TASK_COLUMNS,
    {"off_ns", "off CPU before", CELL_SPAN},
    {"latency_ns", "since woken", CELL_SPAN},
    {"waker_name", "woken by", CELL_TEXT},
    {"waker_comm", NULL, CELL_TEXT},
    {"waker_tid", NULL, CELL_COUNT},
    {"waker_cpu", "on CPU", CELL_COUNT},
    {"running_ns", "ran", CELL_SPAN},
    {"then", "then", CELL_TEXT},
    {"next_tid", NULL, CELL_COUNT},
};

/* Who woke the task before a stay, and where that was. */
static void put_waker(struct table *table, const struct sched_job *job, const struct schedule_source *source,
                      const struct stay *stay)
{
    const struct schedule_run *run = &stay->run;
    const struct stream_event *waking =
        run->latency_ns >= 0 ? schedule_waking_of(source, run->task, run->from_ns - run->latency_ns) : NULL;
    struct buf name = {0};
    bool has_cpu = waking && waking->cpu != STREAM_NO_CPU;
    if (waking && waking->task != STREAM_NO_TASK) {
        sched_put_task(job, stay->stream, waking->task, waking->t_ns, &name);
        table_put_made(table, &name);
        table_put_text(table, sched_comm(source->stream, waking->task, waking->t_ns));
        table_put_count(table, waking->task);
    } else {
        table_put_absents(table, 3);
    }
    table_put_if(table, has_cpu, has_cpu ? waking->cpu : 0);
}

static int write_runs(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = run_columns, .n_columns = sizeof run_columns / sizeof *run_columns};
    struct stays stays = {.job = job};
    struct schedule_source *sources = calloc(job->n_streams + 1, sizeof *sources);
    int code = sources ? find_stays(&stays, err) : error_memory(err);
    for (size_t i = 0; !code && i < job->n_streams; i++)
        schedule_source_init(&sources[i], job->streams[i].stream);
    for (size_t i = 0; !code && i < stays.n; i++) {
        const struct schedule_run *run = &stays.all[i].run;
        bool has_ended = run->state != SCHEDULE_UNKNOWN;
        table_put_count(&table, run->from_ns);
        table_put_if(&table, has_ended, run->to_ns);
        table_put_if(&table, run->cpu != STREAM_NO_CPU, run->cpu);
        sched_put_task_cells(&table, job, stays.all[i].stream, run->task, run->to_ns);
        table_put_if(&table, run->off_ns >= 0, run->off_ns);
        table_put_if(&table, run->latency_ns >= 0, run->latency_ns);
        put_waker(&table, job, &sources[stays.all[i].stream], &stays.all[i]);
        table_put_count(&table, run->to_ns - run->from_ns);
        if (has_ended)
            table_put_text(&table, schedule_state_name(run->state));
        else
            table_put_absent(&table);
        table_put_if(&table, run->next != SCHEDULE_NOBODY, run->next);
    }
    free(stays.all);
    free(sources);
    table.n_more = stays.n_more;
    return sched_finish_table(job, "runs", &table, out, code, err);
}

static const struct column move_columns[] = {
    {"time_ns", "time", CELL_TIME},          SCHED_TASK_COLUMNS,
    {"from_cpu", "from CPU", CELL_COUNT},    {"to_cpu", "to CPU", CELL_COUNT},
    {"from_node", "from node", CELL_COUNT},  {"to_node", "to node", CELL_COUNT},
    {"off_ns", "off CPU before", CELL_SPAN},
};

/* The NUMA node of a CPU, as the topology of its stream numbers it. */
static void put_node(struct table *table, const struct sched_job *job, size_t i, int32_t cpu)
{
    const struct stream_view *view = stream_views_find(job->views, (uint32_t)i);
    for (size_t j = 0; view && j < view->brief.n_cpus; j++)
        if (view->brief.cpus[j].os == (uint32_t)cpu && view->brief.cpus[j].node != TOPOLOGY_UNKNOWN) {
            table_put_count(table, view->brief.cpus[j].node);
            return;
        }
    table_put_absent(table);
}

static int write_migrations(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = move_columns, .n_columns = sizeof move_columns / sizeof *move_columns};
    struct stays stays = {.job = job, .only_moves = true};
    int code = find_stays(&stays, err);
    for (size_t i = 0; !code && i < stays.n; i++) {
        const struct schedule_run *run = &stays.all[i].run;
        size_t stream = stays.all[i].stream;
        table_put_count(&table, run->from_ns);
        sched_put_task_cells(&table, job, stream, run->task, run->from_ns);
        table_put_count(&table, run->from_cpu);
        table_put_count(&table, run->cpu);
        put_node(&table, job, stream, run->from_cpu);
        put_node(&table, job, stream, run->cpu);
        table_put_if(&table, run->off_ns >= 0, run->off_ns);
    }
    free(stays.all);
    table.n_more = stays.n_more;
    return sched_finish_table(job, "migrations", &table, out, code, err);
}

/* --- the table --- */

#define OF_TASKS (ASK(TASK) | ASK(CPU) | ASK(TOP))
#define OF_EVENTS (ASK(TASK) | ASK(CPU) | ASK(EVENT) | ASK(FILTER))

static const struct sched_report all_reports[] = {
    {"tasks", "how long each task ran, waited for a CPU and was blocked, the longest running one first", write_tasks,
     SCHED_PART, OF_TASKS},
    {"cpus", "how long each CPU ran tasks and was idle, and how long tasks waited for it", write_cpus,
     SCHED_ALL_ROWS | SCHED_PART, ASK(CPU) | ASK(TOP)},
    {"latencies", "how long tasks waited from their waking until they ran, the longest wait first", write_latencies,
     SCHED_PART, OF_TASKS},
    {"displaced", "who took whose CPU, how often, and how long those waited then, the longest wait first",
     write_displaced, 0, OF_TASKS},
    {"summary", "a screen of it: the tasks that ran longest, who displaced whom, the longest latencies", write_summary,
     0, ASK(TASK) | ASK(CPU)},
    {"runs", "every stay of a task on a CPU: how long it had been away, since when woken and by whom, how long it ran",
     write_runs, SCHED_ALL_ROWS | SCHED_PART, OF_TASKS},
    {"migrations", "every stay of a task that began on another CPU than the one before", write_migrations,
     SCHED_ALL_ROWS | SCHED_PART, OF_TASKS},
    {"samples", "every sample of a measurement, and the stay on a CPU in which it was taken", sched_write_samples,
     SCHED_NAMES | SCHED_PART, OF_TASKS},
    {"variables", "the time on CPUs and off them by the variables that samples touched", sched_write_variables,
     SCHED_NAMES | SCHED_PART, ASK(TASK) | ASK(TOP)},
    {"paths", "the same by threads and their call paths", sched_write_paths, SCHED_NAMES | SCHED_PART,
     ASK(TASK) | ASK(TOP)},
    {"events", "all events in the order of time, with what they say; --find, --next and --previous search among them",
     sched_write_events, SCHED_NAMES | SCHED_ALL_ROWS | SCHED_PART,
     OF_EVENTS | ASK(TOP) | ASK(FIND) | ASK(NEXT) | ASK(PREVIOUS) | ASK(LINES)},
    {"timeline", "a line for each CPU and each task over time", sched_write_timeline, SCHED_ALL_ROWS | SCHED_PART,
     OF_TASKS | ASK(SLICES)},
    {"chrome", "trace events for Perfetto and chrome://tracing, with tracks for CPUs and tasks", sched_write_chrome,
     SCHED_NAMES | SCHED_ALL_ROWS, OF_EVENTS},
    {"trace-dat", "a file for KernelShark and trace-cmd, of one recording; give -o FILE", sched_write_trace_dat,
     SCHED_ALL_ROWS | SCHED_NO_GAPS, OF_EVENTS},
};

const struct sched_report *sched_report_at(size_t i)
{
    return i < sizeof all_reports / sizeof *all_reports ? &all_reports[i] : NULL;
}

const struct sched_report *sched_report_find(const char *name)
{
    for (size_t i = 0; sched_report_at(i); i++)
        if (strcmp(all_reports[i].name, name) == 0)
            return &all_reports[i];
    return NULL;
}
