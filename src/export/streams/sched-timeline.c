/* SPDX-License-Identifier: BSD-3-Clause */
/* Time lines: what each CPU and each task did in each slice of the time, a character for a slice in text. */
#include "export/streams/sched-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "answer/answer.h"
#include "table/table.h"
#include "export/text-cells.h"

enum { SLICES_IN_TABLES = 100, TASKS_IN_TEXT = 20, LABEL_MAX = 36, SLICES_MIN = 10 };

/* What is added up in a slice. */
enum part { PART_RUNNING, PART_WAITING, PART_BLOCKED, PART_OFF, PART_IDLE, N_PARTS };

struct row {
    bool is_cpu;
    int32_t number;
    int64_t rank_ns;
    int64_t *parts; /* [n_slices][N_PARTS], owned by the lines */
};

/* The rows of one stream: CPUs first. */
struct lines {
    const struct sched_job *job;
    size_t stream;
    int64_t from_ns, to_ns;
    size_t n_slices;
    struct row *rows; /* [n_rows] */
    size_t n_rows, n_cpus;
    bool has_no_cpu;      /* the recording does not say where anything happened */
    struct row **by_task; /* [n_rows - n_cpus] by number */
    struct row **by_cpu;  /* [n_by_cpu] NULL: not shown */
    size_t n_by_cpu;
    int64_t *parts;
};

static void lines_fini(struct lines *lines)
{
    free(lines->rows);
    free(lines->by_task);
    free(lines->by_cpu);
    free(lines->parts);
}

/* Where slice i begins. */
static int64_t slice_ns(const struct lines *lines, size_t i)
{
    return schedule_slice_ns(lines->from_ns, lines->to_ns, lines->n_slices, i);
}

static void add_piece(struct lines *lines, struct row *row, enum part part, int64_t from_ns, int64_t to_ns)
{
    from_ns = from_ns < lines->from_ns ? lines->from_ns : from_ns;
    to_ns = to_ns > lines->to_ns ? lines->to_ns : to_ns;
    if (from_ns >= to_ns)
        return;
    for (size_t i = schedule_slice_at(lines->from_ns, lines->to_ns, lines->n_slices, from_ns);
         i < lines->n_slices && from_ns < to_ns; i++) {
        int64_t end_ns = slice_ns(lines, i + 1);
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        row->parts[i * N_PARTS + part] += end_ns - from_ns;
        from_ns = end_ns;
    }
}

static int compare_row_numbers(const void *a, const void *b)
{
    const struct row *const *x = a, *const *y = b;
    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static struct row *row_of_task(const struct lines *lines, int32_t task)
{
    const struct row like = {.number = task}, *key = &like;
    size_t n = lines->n_rows - lines->n_cpus;
    struct row **found = n ? bsearch(&key, lines->by_task, n, sizeof *lines->by_task, compare_row_numbers) : NULL;
    return found ? *found : NULL;
}

static void take_piece(void *context, const struct schedule_piece *piece)
{
    static const enum part parts[SCHEDULE_N_STATES] = {[SCHEDULE_RUNNING] = PART_RUNNING,
                                                       [SCHEDULE_WOKEN] = PART_WAITING,
                                                       [SCHEDULE_PREEMPTED] = PART_WAITING,
                                                       [SCHEDULE_SLEEPING] = PART_BLOCKED,
                                                       [SCHEDULE_UNINTERRUPTIBLE] = PART_BLOCKED,
                                                       [SCHEDULE_STOPPED] = PART_BLOCKED,
                                                       [SCHEDULE_OFF] = PART_OFF};
    struct lines *lines = context;
    struct row *row = row_of_task(lines, piece->task);
    struct row *cpu =
        piece->state == SCHEDULE_RUNNING && piece->cpu < lines->n_by_cpu ? lines->by_cpu[piece->cpu] : NULL;
    if (cpu)
        add_piece(lines, cpu, piece->task == 0 ? PART_IDLE : PART_RUNNING, piece->from_ns, piece->to_ns);
    if (row && piece->task)
        add_piece(lines, row, parts[piece->state], piece->from_ns, piece->to_ns);
}

/* --- which rows --- */

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->rank_ns != y->rank_ns)
        return x->rank_ns > y->rank_ns ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* CPUs in their order, and the tasks that ran longest. */
static int choose_rows(struct lines *lines, const struct schedule *sched, size_t top, struct error *err)
{
    const struct sched_job *job = lines->job;
    uint32_t *cpus = NULL;
    int code = sched_cpu_rows(job, lines->stream, sched, &cpus, &lines->n_cpus, err);
    if (!code && !(lines->rows = calloc(lines->n_cpus + sched->n_tasks + 1, sizeof *lines->rows)))
        code = error_memory(err);
    lines->n_cpus = lines->has_no_cpu ? 0 : lines->n_cpus;
    for (size_t i = 0; !code && i < lines->n_cpus; i++)
        lines->rows[lines->n_rows++] = (struct row){.is_cpu = true, .number = (int32_t)cpus[i]};
    free(cpus);
    for (size_t i = 0; !code && i < sched->n_tasks; i++) {
        const struct schedule_task *task = &sched->tasks[i];
        int64_t known_ns = task->ns[SCHEDULE_RUNNING] + schedule_off_ns(task);
        if (known_ns > 0 && sched_wants_task(job, job->streams[lines->stream].stream, task->task))
            lines->rows[lines->n_rows++] = (struct row){.number = task->task, .rank_ns = task->ns[SCHEDULE_RUNNING]};
    }
    size_t n_tasks = lines->n_rows - lines->n_cpus;
    if (!code && n_tasks)
        qsort(lines->rows + lines->n_cpus, n_tasks, sizeof *lines->rows, compare_rows);
    if (top && n_tasks > top)
        lines->n_rows = lines->n_cpus + top;
    return code;
}

static int index_rows(struct lines *lines, struct error *err)
{
    size_t n_tasks = lines->n_rows - lines->n_cpus;
    lines->by_task = calloc(n_tasks + 1, sizeof *lines->by_task);
    for (size_t i = 0; i < lines->n_cpus; i++)
        lines->n_by_cpu =
            (size_t)lines->rows[i].number >= lines->n_by_cpu ? (size_t)lines->rows[i].number + 1 : lines->n_by_cpu;
    lines->by_cpu = calloc(lines->n_by_cpu + 1, sizeof *lines->by_cpu);
    lines->parts = calloc((lines->n_rows + 1) * lines->n_slices, N_PARTS * sizeof *lines->parts);
    if (!lines->by_task || !lines->by_cpu || !lines->parts)
        return error_memory(err);
    for (size_t i = 0; i < lines->n_rows; i++) {
        lines->rows[i].parts = lines->parts + i * lines->n_slices * N_PARTS;
        if (lines->rows[i].is_cpu)
            lines->by_cpu[lines->rows[i].number] = &lines->rows[i];
        else
            lines->by_task[i - lines->n_cpus] = &lines->rows[i];
    }
    if (n_tasks)
        qsort(lines->by_task, n_tasks, sizeof *lines->by_task, compare_row_numbers);
    return 0;
}

static int make_lines(struct lines *lines, size_t top, struct error *err)
{
    const struct stream *stream = lines->job->streams[lines->stream].stream;
    const struct schedule_sink sink = {.piece = take_piece, .context = lines};
    struct schedule sched = {0};
    int code = schedule_analyse(stream, &lines->job->window, NULL, &sched, err);
    lines->has_no_cpu = sched.n_cpus == 0;
    code = code ? code : choose_rows(lines, &sched, top, err);
    code = code ? code : index_rows(lines, err);
    schedule_close(&sched);
    code = code ? code : schedule_analyse(stream, &lines->job->window, &sink, &sched, err);
    schedule_close(&sched);
    return code;
}

/* --- text --- */

/* The characters of a share of a slice, from little to all. */
static void put_level(const struct sched_job *job, double share, struct buf *out)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {"-", "-", "-", "+", "+", "+", "#", "#"};
    size_t level = share >= 1 ? 7 : (size_t)(share * 8);
    buf_printf(out, "%s", (job->unicode ? blocks : letters)[level]);
}

static void put_slice(const struct lines *lines, const struct row *row, size_t i, struct buf *out)
{
    const int64_t *parts = row->parts + i * N_PARTS;
    int64_t length_ns = slice_ns(lines, i + 1) - slice_ns(lines, i);
    int64_t off_ns = parts[PART_BLOCKED] + parts[PART_OFF] + parts[PART_IDLE];
    double share = length_ns > 0 ? (double)parts[PART_RUNNING] / (double)length_ns : 0;
    if (share >= 1.0 / 16 || (parts[PART_RUNNING] > 0 && !off_ns && !parts[PART_WAITING]))
        put_level(lines->job, share, out);
    else if (parts[PART_WAITING] > 0 && parts[PART_WAITING] >= off_ns)
        buf_printf(out, "w");
    else if (off_ns > 0)
        buf_printf(out, lines->job->unicode ? "·" : ".");
    else
        buf_printf(out, parts[PART_RUNNING] > 0 ? "-" : " ");
}

/* "CPU 3", with its core and node where the stream is shown as a tree. */
static void put_label(const struct lines *lines, const struct row *row, struct buf *out)
{
    const struct stream_view *view = stream_views_find(lines->job->views, (uint32_t)lines->stream);
    if (!row->is_cpu) {
        sched_put_task(lines->job, lines->stream, row->number, SCHED_ALL_TIMES, out);
        return;
    }
    for (size_t i = 0; view && view->view == TOPOLOGY_VIEW_NUMATREE && i < view->brief.n_cpus; i++)
        if (view->brief.cpus[i].os == (uint32_t)row->number && view->brief.cpus[i].node != TOPOLOGY_UNKNOWN)
            buf_printf(out, "NN %" PRIu32 "  C %" PRIu32 "  ", view->brief.cpus[i].node, view->brief.cpus[i].core);
    buf_printf(out, "CPU %" PRId32, row->number);
}

static int64_t running_ns(const struct lines *lines, const struct row *row)
{
    int64_t sum_ns = 0;
    for (size_t i = 0; i < lines->n_slices; i++)
        sum_ns += row->parts[i * N_PARTS + PART_RUNNING];
    return sum_ns;
}

static bool put_row(const struct lines *lines, const struct row *row, size_t label_width, struct buf *out)
{
    const struct export_job cells = {.unicode = lines->job->unicode, .columns = lines->job->columns};
    struct buf label = {0};
    put_label(lines, row, &label);
    bool ok = !label.failed;
    text_cell(out, &cells, label.data ? label.data : "", label_width, false);
    buf_fini(&label);
    buf_printf(out, " |");
    for (size_t i = 0; i < lines->n_slices; i++)
        put_slice(lines, row, i, out);
    int64_t length_ns = lines->to_ns - lines->from_ns;
    buf_printf(out, "| %5.1f %%\n", length_ns > 0 ? 100.0 * (double)running_ns(lines, row) / (double)length_ns : 0.0);
    return ok;
}

static size_t widest_label(const struct lines *lines)
{
    size_t width = 0;
    struct buf label = {0};
    for (size_t i = 0; i < lines->n_rows; i++) {
        label.len_bytes = 0;
        put_label(lines, &lines->rows[i], &label);
        size_t own = label.len_bytes ? text_width(label.data) : 0;
        width = own > width ? own : width;
    }
    buf_fini(&label);
    return width < LABEL_MAX ? width : LABEL_MAX;
}

/* Appends a line of times, to stand below a line of n_slices (> 0) characters from from_ns to to_ns: a bar at the first
 * character of a slice, and behind it when the slice begins, in seconds, as --from and --to take them. */
static void ticks_put(struct buf *out, int64_t from_ns, int64_t to_ns, size_t n_slices)
{
    enum { APART = 16 }; /* slices between times at least */
    int64_t step_ns = (int64_t)((double)(to_ns - from_ns) * APART / (double)n_slices);
    int n_digits = 0;
    for (int64_t unit_ns = 1000000000; n_digits < 9 && step_ns < 10 * unit_ns; unit_ns /= 10)
        n_digits++;
    for (size_t i = 0; i < n_slices && !out->failed;) {
        size_t before = out->len_bytes;
        buf_printf(out, "|+%.*f", n_digits, (double)schedule_slice_ns(from_ns, to_ns, n_slices, i) * 1e-9);
        size_t len = out->len_bytes - before;
        if (i + len > n_slices) {
            out->len_bytes = before;
            break;
        }
        buf_printf(out, "%*s", len < APART ? (int)(APART - len) : 1, "");
        i += len < APART ? APART : len + 1;
    }
    buf_printf(out, " s\n");
}

static int write_text(struct lines *lines, struct buf *out, struct error *err)
{
    enum { AROUND = 11 }; /* bars, blanks and the share behind */
    const struct sched_job *job = lines->job;
    int code = make_lines(lines, job->top ? job->top : TASKS_IN_TEXT, err);
    if (code)
        return code;
    size_t width = widest_label(lines), room = job->columns > width + AROUND ? job->columns - width - AROUND : 0;
    struct lines fitted = *lines;
    lines_fini(lines);
    *lines = (struct lines){.job = job,
                            .stream = fitted.stream,
                            .from_ns = fitted.from_ns,
                            .to_ns = fitted.to_ns,
                            .n_slices = job->slices         ? job->slices
                                        : room > SLICES_MIN ? room
                                                            : SLICES_MIN};
    code = make_lines(lines, job->top ? job->top : TASKS_IN_TEXT, err);
    for (size_t i = 0; !code && i < lines->n_rows; i++) {
        if (i == lines->n_cpus && i > 0)
            buf_append(out, "\n", 1);
        if (!put_row(lines, &lines->rows[i], width, out))
            code = error_memory(err);
    }
    int64_t begin_ns = 0, end_ns;
    const struct sched_job whole = {
        .streams = job->streams, .n_streams = job->n_streams, .window = {INT64_MIN, INT64_MAX}};
    (void)sched_extent(&whole, &begin_ns, &end_ns);
    buf_printf(out, "%*s", (int)width + 2, "");
    if (!code)
        ticks_put(out, lines->from_ns - begin_ns, lines->to_ns - begin_ns, lines->n_slices);
    return code;
}

/* --- tables --- */

static const struct column columns[] = {
    {"row", NULL, CELL_TEXT},        SCHED_STREAM_COLUMNS,         {"number", NULL, CELL_COUNT},
    {"name", NULL, CELL_TEXT},       {"from_ns", NULL, CELL_TIME}, {"to_ns", NULL, CELL_TIME},
    {"running_ns", NULL, CELL_SPAN}, {"idle_ns", NULL, CELL_SPAN}, {"waiting_ns", NULL, CELL_SPAN},
    {"blocked_ns", NULL, CELL_SPAN}, {"off_ns", NULL, CELL_SPAN},
};

static void add_slices(const struct lines *lines, const struct row *row, struct table *table)
{
    const struct stream *stream = lines->job->streams[lines->stream].stream;
    bool knows_idle = row->is_cpu && (stream->tier == STREAM_TIER_FULL || stream->tier == STREAM_TIER_SWITCHES);
    bool knows_wakings = !row->is_cpu && (stream->tier == STREAM_TIER_FULL || stream->tier == STREAM_TIER_PROGRAM);
    struct buf name = {0};
    if (!row->is_cpu)
        stream_put_comms(stream, row->number, &name);
    for (size_t i = 0; i < lines->n_slices; i++) {
        const int64_t *parts = row->parts + i * N_PARTS;
        table_put_text(table, row->is_cpu ? "cpu" : "task");
        sched_put_stream(table, lines->job, lines->stream);
        table_put_count(table, row->number);
        table_put_text(table, name.len_bytes ? name.data : "");
        table_put_count(table, slice_ns(lines, i));
        table_put_count(table, i + 1 < lines->n_slices ? slice_ns(lines, i + 1) : lines->to_ns);
        table_put_count(table, parts[PART_RUNNING]);
        table_put_if(table, knows_idle, parts[PART_IDLE]);
        table_put_if(table, knows_wakings, parts[PART_WAITING]);
        table_put_if(table, knows_wakings, parts[PART_BLOCKED]);
        table_put_if(table, !row->is_cpu, parts[PART_WAITING] + parts[PART_BLOCKED] + parts[PART_OFF]);
    }
    table->failed |= name.failed;
    buf_fini(&name);
}

int sched_write_timeline(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = columns, .n_columns = sizeof columns / sizeof *columns};
    bool is_text = strcmp(job->form, "text") == 0;
    int64_t from_ns = 0, to_ns = 0;
    bool has_any = sched_extent(job, &from_ns, &to_ns);
    int code = 0;
    if (is_text)
        sched_put_head(job, out);
    for (size_t i = 0; has_any && !code && i < job->n_streams; i++) {
        struct lines lines = {.job = job,
                              .stream = i,
                              .from_ns = from_ns,
                              .to_ns = to_ns,
                              .n_slices = job->slices ? job->slices : SLICES_IN_TABLES};
        if (is_text && i)
            buf_append(out, "\n", 1);
        code = is_text ? write_text(&lines, out, err) : make_lines(&lines, job->top, err);
        for (size_t j = 0; !code && !is_text && j < lines.n_rows; j++)
            add_slices(&lines, &lines.rows[j], &table);
        lines_fini(&lines);
    }
    if (is_text)
        buf_printf(
            out, "\n%s part of the slice that it ran; w: it waited for a CPU; %s blocked, or idle; blank: not known\n",
            job->unicode ? "▁ to █:" : "- + #:", job->unicode ? "·:" : ".:");
    else if (!code)
        sched_put_table(job, "timeline", &table, out);
    if (!code && table.failed)
        code = error_memory(err);
    table_fini(&table);
    return code;
}
