/* SPDX-License-Identifier: BSD-3-Clause */
/* What the time line is coloured by, and how much of a window each colour stands for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session/timeline.h"
#include "table/table.h"

static const char *const words[TIME_BYS] = {"task", "cpu", "node", "variable", "function", "local"};

const struct column time_key_columns[TIME_KEY_COLUMNS] = {
    {"key", NULL, CELL_COUNT},
    {"name", NULL, CELL_TEXT},
    {"colour", NULL, CELL_TEXT},
    {"ns", NULL, CELL_SPAN},
};

const char *time_colours_name(const struct time_colours *colours)
{
    return words[colours->by];
}

/* --- what there is --- */

static int64_t running_ns(const struct time_colours *colours, const struct time_stream *of, size_t row)
{
    const struct level_track track = levels_track(&of->levels, row);
    int64_t sums[LEVEL_PARTS];
    level_sums_of(&track, time_of_levels(of, colours->from_ns), time_of_levels(of, colours->to_ns), sums);
    return sums[LEVEL_RUNNING];
}

/* The key of the node of a CPU: not known where it has none. */
static size_t node_of(const struct time_colours *colours, size_t stream, int32_t cpu)
{
    const struct brief_topology *brief = &colours->timeline->streams[stream].brief;
    size_t unknown = colours->first_node[stream + 1] - 1;
    for (size_t i = 0; i < brief->n_cpus; i++)
        if (brief->cpus[i].os == (uint32_t)cpu && brief->cpus[i].node != TOPOLOGY_UNKNOWN)
            return colours->first_node[stream] + brief->cpus[i].node;
    return unknown;
}

/* What samples are, of all recordings, and the time of each.  err: ERR_NOT_FOUND (there are none), ERR_MEMORY */
static int find_samples(struct time_colours *colours, struct timeline *timeline, struct error *err)
{
    size_t n = 0;
    int code = 0;
    for (size_t i = 0; code == 0 && i < timeline->n_streams; i++) {
        code = timeline_load(timeline, i, err);
        if (code == 0 && !timeline->streams[i].samples)
            code = time_samples_make(&timeline->streams[i], &timeline->words, err);
        if (code == 0)
            code = time_samples_track(timeline->streams[i].samples, colours->by, err);
        n += code == 0 ? time_samples_count(timeline->streams[i].samples) : 0;
    }
    if (code == 0 && n == 0)
        code =
            error_set(err, ERR_NOT_FOUND,
                      "the time line has no samples, which alone say what data were worked on; hpcrun -e datacentric "
                      "-e sched -t records both: give the measurement");
    colours->n_keys = timeline->words.n_strings + 1;
    return code;
}

static void add_samples(struct time_colours *colours)
{
    for (size_t i = 0; i < colours->timeline->n_streams; i++) {
        const struct time_stream *of = &colours->timeline->streams[i];
        time_samples_add(of->samples, colours->by, time_of_levels(of, colours->from_ns),
                         time_of_levels(of, colours->to_ns), colours->keys, &colours->keys[colours->n_keys - 1]);
    }
}

/* Adds the time of all CPUs, or of all tasks. */
static void add_rows(struct time_colours *colours)
{
    const struct timeline *timeline = colours->timeline;
    enum level_kind kind = colours->by == TIME_BY_TASK ? LEVEL_TASK : LEVEL_CPU;
    for (size_t i = 0; i < timeline->n_streams; i++) {
        const struct time_stream *of = &timeline->streams[i];
        for (size_t row = 0; row < of->levels.n_rows; row++) {
            const struct level_row *at = &of->levels.rows[row];
            size_t key =
                colours->by == TIME_BY_NODE && kind == at->kind ? node_of(colours, i, at->number) : of->first_row + row;
            if (at->kind == (uint32_t)kind)
                colours->keys[key].ns += running_ns(colours, of, row);
        }
    }
}

/* How many nodes the recordings have, with one of each that is not known. */
static size_t count_nodes(struct time_colours *colours)
{
    const struct timeline *timeline = colours->timeline;
    size_t n = 0;
    for (size_t i = 0; i < timeline->n_streams; i++) {
        const struct brief_topology *brief = &timeline->streams[i].brief;
        uint32_t n_own = 0;
        for (size_t k = 0; k < brief->n_cpus; k++)
            if (brief->cpus[k].node != TOPOLOGY_UNKNOWN && brief->cpus[k].node >= n_own)
                n_own = brief->cpus[k].node + 1;
        colours->first_node[i] = n;
        n += n_own + 1;
    }
    colours->first_node[timeline->n_streams] = n;
    return n;
}

static int compare_keys(const void *a, const void *b, void *context)
{
    const struct time_colours *colours = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (colours->keys[i].ns != colours->keys[j].ns)
        return colours->keys[i].ns < colours->keys[j].ns ? 1 : -1;
    return (i > j) - (i < j);
}

/* Those that have time, the longest first. */
static void make_order(struct time_colours *colours)
{
    for (size_t i = 0; i < colours->n_keys; i++) {
        colours->keys[i].place = -1;
        if (colours->keys[i].ns > 0)
            colours->order[colours->n_order++] = (uint32_t)i;
    }
    if (colours->n_order)
        qsort_r(colours->order, colours->n_order, sizeof *colours->order, compare_keys, colours);
    for (size_t i = 0; i < colours->n_order; i++)
        colours->keys[colours->order[i]].place = (int64_t)i;
}

int time_colours_init(struct time_colours *colours, struct timeline *timeline, const char *by, int64_t from_ns,
                      int64_t to_ns, struct error *err)
{
    unsigned which = 0;
    while (by && which < TIME_BYS && strcmp(words[which], by) != 0)
        which++;
    if (which == TIME_BYS)
        return error_set(err, ERR_USAGE, "timeline --by takes task, cpu, node, variable, function or local");
    *colours = (struct time_colours){
        .timeline = timeline, .by = (enum time_by)which, .from_ns = from_ns, .to_ns = to_ns, .last_key = LEVEL_NO_KEY};
    colours->first_node = calloc(timeline->n_streams + 1, sizeof *colours->first_node);
    colours->n_keys = timeline->n_rows;
    int code = colours->first_node ? 0 : error_memory(err);
    if (code == 0 && which == TIME_BY_NODE)
        colours->n_keys = count_nodes(colours);
    else if (code == 0 && which >= TIME_BY_VARIABLE)
        code = find_samples(colours, timeline, err);
    colours->keys = calloc(colours->n_keys + 1, sizeof *colours->keys);
    colours->order = calloc(colours->n_keys + 1, sizeof *colours->order);
    if (code == 0 && (!colours->keys || !colours->order))
        code = error_memory(err);
    if (code != 0) {
        time_colours_fini(colours);
        return code;
    }
    if (which >= TIME_BY_VARIABLE)
        add_samples(colours);
    else
        add_rows(colours);
    make_order(colours);
    return 0;
}

void time_colours_fini(struct time_colours *colours)
{
    free(colours->keys);
    free(colours->order);
    free(colours->first_node);
}

/* --- what a cell is --- */

/* The node of a CPU; -1: not known. */
static int32_t key_of_cpu(const void *context, int32_t key)
{
    const struct time_row *row = context;
    const struct brief_topology *brief = &row->of->brief;
    for (size_t i = 0; i < brief->n_cpus; i++)
        if (brief->cpus[i].os == (uint32_t)key)
            return (int32_t)brief->cpus[i].node; /* TOPOLOGY_UNKNOWN is -1 then */
    return -1;
}

void time_colours_set(const struct time_colours *colours, const struct time_row *row, struct level_picture *picture)
{
    if (colours->by == TIME_BY_NODE && row->of->levels.rows[row->row].kind == LEVEL_TASK) {
        picture->key = key_of_cpu;
        picture->key_context = row;
    }
    if (colours->by >= TIME_BY_VARIABLE)
        picture->keys = time_samples_row(row->of->samples, colours->by, row->row);
}

/* The row of a CPU or task, which cells of one row have again and again; SIZE_MAX: none. */
static size_t row_of(struct time_colours *colours, const struct time_stream *of, enum level_kind kind, int32_t number)
{
    if (colours->last_key != number || colours->last_of != of || of->levels.rows[colours->last_row].kind != kind) {
        size_t row = levels_find(&of->levels, kind, number);
        if (row == SIZE_MAX)
            return SIZE_MAX;
        colours->last_key = number;
        colours->last_of = of;
        colours->last_row = row;
    }
    return of->first_row + colours->last_row;
}

int64_t time_colours_place(struct time_colours *colours, const struct time_row *row, int32_t key, bool runs)
{
    const struct level_row *at = &row->of->levels.rows[row->row];
    size_t own = row->of->first_row + row->row, found;
    bool is_of_samples = colours->by >= TIME_BY_VARIABLE;
    if (!runs || (key == LEVEL_NO_KEY && !is_of_samples))
        return -1;
    if (is_of_samples)
        found = key == LEVEL_NO_KEY ? colours->n_keys - 1 : (size_t)key;
    else if (colours->by == TIME_BY_NODE && at->kind == LEVEL_CPU)
        found = node_of(colours, row->stream, at->number);
    else if (colours->by == TIME_BY_NODE)
        found = key < 0 ? colours->first_node[row->stream + 1] - 1 : colours->first_node[row->stream] + (size_t)key;
    else if ((colours->by == TIME_BY_TASK) == (at->kind == LEVEL_TASK))
        found = own;
    else
        found = row_of(colours, row->of, at->kind == LEVEL_TASK ? LEVEL_CPU : LEVEL_TASK, key);
    if (found >= colours->n_keys)
        return -1;
    if (colours->keys[found].place < 0) { /* it is seen in no time */
        colours->keys[found].place = (int64_t)colours->n_order;
        colours->order[colours->n_order++] = (uint32_t)found;
    }
    return colours->keys[found].place;
}

/* --- the list --- */

static void put_node(const struct time_colours *colours, uint32_t key, struct table *table)
{
    const struct timeline *timeline = colours->timeline;
    struct buf name = {0};
    size_t i = 0;
    while (i + 1 < timeline->n_streams && colours->first_node[i + 1] <= key)
        i++;
    if (key + 1 == colours->first_node[i + 1])
        buf_printf(&name, "node not known");
    else
        buf_printf(&name, "NUMA node %zu", (size_t)key - colours->first_node[i]);
    if (timeline->n_streams > 1)
        buf_printf(&name, " [%zu]", i);
    table_put_made(table, &name);
    time_colour_put(table, tree_color_of_number((uint32_t)(key - colours->first_node[i])));
}

static void put_word(const struct time_colours *colours, uint32_t key, struct table *table)
{
    static const struct tree_color grey = {0x9a, 0x9a, 0x9a};
    bool is_none = key + 1 == colours->n_keys;
    table_put_text(table, is_none ? "(no sample)" : colours->timeline->words.strings[key]);
    time_colour_put(table, is_none ? grey : tree_color_of_number(key));
}

void time_colours_put_keys(const struct time_colours *colours, struct table *table)
{
    for (size_t i = 0; i < colours->n_order; i++) {
        uint32_t key = colours->order[i];
        struct buf name = {0};
        struct time_row row;
        table_put_count(table, (int64_t)i);
        if (colours->by >= TIME_BY_VARIABLE) {
            put_word(colours, key, table);
        } else if (colours->by == TIME_BY_NODE) {
            put_node(colours, key, table);
        } else if (timeline_row(colours->timeline, key, &row, NULL) == 0) {
            time_row_put_name(colours->timeline, &row, &name);
            table_put_made(table, &name);
            time_colour_put(table, tree_color_of_number((uint32_t)row.of->levels.rows[row.row].number));
        }
        table_put_count(table, colours->keys[key].ns);
    }
}
