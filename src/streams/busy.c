/* SPDX-License-Identifier: BSD-3-Clause */
/* Busy times of the parts of a machine: see busy.h. Stretches of running come from schedule.h, and each is added to all
 * rows that its CPU is in. */
#include "streams/busy.h"

#include <stdlib.h>
#include <string.h>

int64_t busy_slice_ns(const struct busy *busy, size_t i)
{
    return schedule_slice_ns(busy->from_ns, busy->to_ns, busy->n_slices, i);
}

static size_t slice_at(const struct busy *busy, int64_t t_ns)
{
    return schedule_slice_at(busy->from_ns, busy->to_ns, busy->n_slices, t_ns);
}

static bool is_shown(const struct busy *busy, uint32_t cpu)
{
    return cpu < busy->n_rows_of && busy->rows_of[cpu];
}

static void take_piece(void *context, const struct schedule_piece *piece)
{
    struct busy *busy = context;
    int64_t from_ns = piece->from_ns > busy->from_ns ? piece->from_ns : busy->from_ns;
    int64_t to_ns = piece->to_ns < busy->to_ns ? piece->to_ns : busy->to_ns;
    if (piece->state != SCHEDULE_RUNNING || !is_shown(busy, piece->cpu) || from_ns >= to_ns)
        return;
    for (size_t i = slice_at(busy, from_ns); i < busy->n_slices && from_ns < to_ns; i++) {
        int64_t end_ns = busy_slice_ns(busy, i + 1);
        end_ns = end_ns < to_ns ? end_ns : to_ns;
        for (const uint32_t *row = busy->rows_of[piece->cpu]; *row != BUSY_NO_ROW; row++) {
            struct busy_cell *cell = &busy->rows[*row].cells[i];
            *(piece->task == 0 ? &cell->idle_ns : &cell->busy_ns) += end_ns - from_ns;
        }
        from_ns = end_ns;
    }
}

static void count_events(const struct stream *stream, struct busy *busy)
{
    for (size_t i = 0; i < stream->n_events; i++) {
        const struct stream_event *event = &stream->events[i];
        if (event->id < 0 || event->t_ns < busy->from_ns || event->t_ns > busy->to_ns || !is_shown(busy, event->cpu))
            continue;
        size_t slice = slice_at(busy, event->t_ns);
        for (const uint32_t *row = busy->rows_of[event->cpu]; *row != BUSY_NO_ROW; row++)
            busy->rows[*row].cells[slice].n_events++;
    }
}

/* Rows of CPUs whose switches were recorded. */
static void mark_known(const struct schedule *sched, struct busy *busy)
{
    for (uint32_t cpu = 0; cpu < busy->n_rows_of && cpu < sched->n_cpus; cpu++)
        for (const uint32_t *row = busy->rows_of[cpu]; row && *row != BUSY_NO_ROW; row++)
            busy->rows[*row].is_known |= schedule_cpu_is_known(&sched->cpus[cpu]);
}

/* --- rows --- */

/* SIZE_MAX when out of memory. */
static size_t add_row(struct busy *busy, enum busy_level level, uint32_t number, uint32_t depth)
{
    if (!vec_reserve(&busy->rows, &busy->cap_rows, busy->n_rows + 1, sizeof *busy->rows))
        return SIZE_MAX;
    busy->rows[busy->n_rows] = (struct busy_row){.level = level, .number = number, .depth = depth};
    return busy->n_rows++;
}

/* Puts a CPU into a row; false when out of memory. A CPU is in few rows: the list is made anew. */
static bool join(struct busy *busy, uint32_t cpu, size_t row)
{
    size_t n = 0;
    if (row == SIZE_MAX)
        return false;
    while (busy->rows_of[cpu] && busy->rows_of[cpu][n] != BUSY_NO_ROW)
        n++;
    uint32_t *longer = realloc(busy->rows_of[cpu], (n + 2) * sizeof *longer);
    if (!longer)
        return false;
    longer[n] = (uint32_t)row;
    longer[n + 1] = BUSY_NO_ROW;
    busy->rows_of[cpu] = longer;
    busy->rows[row].n_cpus++;
    return true;
}

/* Whether a CPU is in a package, or has a node beside its own. */
static bool is_in(const struct stream_view *view, uint32_t os, enum busy_level level, uint32_t number)
{
    const struct topology_cpu *cpu = topology_find(&view->topology, os);
    if (level == BUSY_PACKAGE)
        return cpu && cpu->package == number;
    for (uint32_t i = 0; cpu && i < cpu->n_local; i++)
        if (view->topology.locals[cpu->first_local + i] == number && cpu->node != number)
            return true;
    return false;
}

/* Adds a row with those of the CPUs that are in it, if there are any. */
static bool add_beside(struct busy *busy, const struct stream_view *view, const uint32_t *os, size_t n_os,
                       enum busy_level level, uint32_t number)
{
    size_t row = SIZE_MAX;
    for (size_t i = 0; i < n_os; i++) {
        if (!is_in(view, os[i], level, number))
            continue;
        row = row == SIZE_MAX ? add_row(busy, level, number, 1) : row;
        if (!join(busy, os[i], row))
            return false;
        busy->rows[row].is_beside = level == BUSY_NODE;
    }
    return true;
}

static bool add_tree(struct busy *busy, const struct stream_view *view, const uint32_t *os, size_t n_os)
{
    struct topology_tree tree = {0};
    size_t node = SIZE_MAX, core = SIZE_MAX;
    bool ok = topology_tree_make(&view->brief, os, n_os, &tree, NULL) == 0;
    for (uint32_t i = 0; ok && view->topology.n_packages > 1 && i < view->topology.n_packages; i++)
        ok = add_beside(busy, view, os, n_os, BUSY_PACKAGE, i);
    for (uint32_t i = 0; ok && i < view->topology.n_nodes; i++)
        if (view->topology.nodes[i].n_local > view->topology.nodes[i].n_cpus)
            ok = add_beside(busy, view, os, n_os, BUSY_NODE, i);
    for (size_t i = 0; ok && i < tree.n_rows; i++) {
        const struct brief_cpu *cpu = &tree.rows[i], *before = i ? &tree.rows[i - 1] : NULL;
        bool begins = !before || cpu->node != before->node;
        node = begins ? add_row(busy, BUSY_NODE, cpu->node, 1) : node;
        core = begins || cpu->core != before->core ? add_row(busy, BUSY_CORE, cpu->core, 2) : core;
        ok = join(busy, cpu->os, node) && join(busy, cpu->os, core) &&
             join(busy, cpu->os, add_row(busy, BUSY_CPU, cpu->os, 3));
    }
    topology_tree_fini(&tree);
    return ok;
}

static bool add_rows(struct busy *busy, const struct stream_view *view, const uint32_t *os, size_t n_os)
{
    for (size_t i = 0; i < n_os; i++)
        busy->n_rows_of = os[i] >= busy->n_rows_of ? (size_t)os[i] + 1 : busy->n_rows_of;
    busy->rows_of = calloc(busy->n_rows_of + 1, sizeof *busy->rows_of);
    bool ok = busy->rows_of && add_row(busy, BUSY_MACHINE, 0, 0) == 0;
    for (size_t i = 0; ok && i < n_os; i++)
        ok = join(busy, os[i], 0);
    if (view && view->view == TOPOLOGY_VIEW_NUMATREE)
        return ok && add_tree(busy, view, os, n_os);
    for (size_t i = 0; ok && i < n_os; i++)
        ok = join(busy, os[i], add_row(busy, BUSY_CPU, os[i], 1));
    return ok;
}

int busy_make(const struct stream *stream, const struct stream_view *view, const uint32_t *os, size_t n_os,
              int64_t from_ns, int64_t to_ns, size_t n_slices, struct busy *busy, struct error *err)
{
    const struct schedule_window window = {from_ns, to_ns};
    const struct schedule_sink sink = {.piece = take_piece, .context = busy};
    struct schedule sched = {0};
    *busy = (struct busy){.from_ns = from_ns,
                          .to_ns = to_ns,
                          .n_slices = n_slices,
                          .knows_idle = stream->tier == STREAM_TIER_FULL || stream->tier == STREAM_TIER_SWITCHES,
                          .knows_busy = stream->tier != STREAM_TIER_NONE,
                          .knows_cpus = stream_knows_cpus(stream)};
    if (add_rows(busy, view, os, n_os))
        busy->cells = calloc(busy->n_rows * n_slices, sizeof *busy->cells);
    int code = busy->cells ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < busy->n_rows; i++)
        busy->rows[i].cells = busy->cells + i * n_slices;
    if (code == 0 && busy->knows_busy)
        code = schedule_analyse(stream, &window, &sink, &sched, err);
    if (code == 0)
        mark_known(&sched, busy);
    schedule_close(&sched);
    if (code == 0)
        count_events(stream, busy);
    else
        busy_fini(busy);
    return code;
}

void busy_fini(struct busy *busy)
{
    for (size_t i = 0; busy->rows_of && i < busy->n_rows_of; i++)
        free(busy->rows_of[i]);
    free(busy->rows_of);
    free(busy->rows);
    free(busy->cells);
    *busy = (struct busy){0};
}

struct busy_cell busy_sum(const struct busy *busy, const struct busy_row *row)
{
    struct busy_cell sum = {0};
    for (size_t i = 0; i < busy->n_slices; i++) {
        sum.busy_ns += row->cells[i].busy_ns;
        sum.idle_ns += row->cells[i].idle_ns;
        sum.n_events += row->cells[i].n_events;
    }
    return sum;
}

bool busy_is_known(const struct busy *busy, const struct busy_row *row, const struct busy_cell *cell)
{
    return busy->knows_busy && row->is_known && (!busy->knows_idle || cell->busy_ns || cell->idle_ns);
}

double busy_percent(const struct busy *busy, const struct busy_row *row, const struct busy_cell *cell,
                    int64_t length_ns)
{
    double known_ns =
        busy->knows_idle ? (double)cell->busy_ns + (double)cell->idle_ns : (double)length_ns * (double)row->n_cpus;
    return busy_is_known(busy, row, cell) && known_ns > 0 ? 100 * (double)cell->busy_ns / known_ns : -1;
}
