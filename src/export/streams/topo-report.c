/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of topologies: the tree of a machine's nodes, cores and CPUs, and beside it how busy each of them was over
 * time, as text, CSV and JSON. Labels are those of the NUMA topology views. */
#include "export/streams/sched-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "answer/answer.h"
#include "table/table.h"
#include "export/text-cells.h"
#include "fmt/json.h"
#include "streams/busy.h"

enum { AROUND_BARS = 16, SLICES_LEAST = 10, GRAPH_PX = 80, SPACING_PX = 20 };

/* --- the machine --- */

static void put_number(const char *word, uint32_t number, struct buf *out)
{
    if (number == TOPOLOGY_UNKNOWN)
        buf_printf(out, "%s ?", word);
    else
        buf_printf(out, "%s %" PRIu32, word, number);
}

static void put_label(const struct busy_row *row, struct buf *out)
{
    static const char *const words[] = {"M", "P", "NN", "C", "CPU"};
    if (row->level == BUSY_MACHINE)
        buf_printf(out, "M");
    else
        put_number(words[row->level], row->number, out);
}

/* "4.0 GiB HBM" */
static void put_memory(const struct topology_node *node, struct buf *out)
{
    char size[16];
    text_size(node->memory_bytes, size);
    buf_printf(out, "%s", node->memory_bytes ? size : "memory");
    if (node->kind[0]) {
        buf_printf(out, " ");
        printable_put(out, node->kind);
    }
    if (!node->is_allowed)
        buf_printf(out, ", not allowed");
}

/* Nodes that no CPU is in: places for data all the same. */
static void put_places(const struct topology *topology, struct buf *out)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const struct topology_node *node = &topology->nodes[i];
        if (node->n_cpus > 0)
            continue;
        buf_printf(out, "  NN %" PRIu32 " (node %" PRIu32 " of the system): ", i, node->os);
        put_memory(node, out);
        if (node->n_local)
            buf_printf(out, ", near %" PRIu32 " CPU%s of other nodes\n", node->n_local, node->n_local == 1 ? "" : "s");
        else
            buf_printf(out, ", without CPUs\n");
    }
}

static void put_machine_head(const struct stream_view *view, struct buf *out)
{
    const struct topology *topology = &view->topology;
    uint32_t n_disallowed = 0;
    printable_put(out, view->path);
    buf_printf(out, ": ");
    printable_put(out, topology->summary);
    for (uint32_t i = 0; i < topology->n_cpus; i++)
        n_disallowed += !topology->cpus[i].is_allowed;
    if (topology->n_packages > 1)
        buf_printf(out, ", %" PRIu32 " packages", topology->n_packages);
    if (topology->n_offline)
        buf_printf(out, ", %" PRIu32 " CPU%s offline", topology->n_offline, topology->n_offline == 1 ? "" : "s");
    if (n_disallowed)
        buf_printf(out, ", %" PRIu32 " CPU%s outside of the cgroup", n_disallowed, n_disallowed == 1 ? "" : "s");
    buf_printf(out, "\n");
    put_places(topology, out);
}

static void put_node_detail(const struct topology *topology, uint32_t number, struct buf *out)
{
    if (number == TOPOLOGY_UNKNOWN)
        return;
    const struct topology_node *node = &topology->nodes[number];
    buf_printf(out, "  ");
    put_memory(node, out);
    if (node->os != number)
        buf_printf(out, ", node %" PRIu32 " of the system", node->os);
    if (node->package != TOPOLOGY_UNKNOWN && topology->n_packages > 1)
        buf_printf(out, ", package %" PRIu32, node->package);
}

static void put_tree_text(const struct stream_view *view, const struct topology_tree *tree, struct buf *out)
{
    uint32_t row = 0;
    for (size_t i = 0; i < tree->n_blocks; i++) {
        const struct tree_block *block = &tree->blocks[i];
        buf_printf(out, "%*s", 2 * (int)block->level, "");
        tree_block_put_label(tree, block, out);
        if (block->level == TREE_NODE)
            put_node_detail(&view->topology, block->number, out);
        for (; block->level == TREE_CORE && row < block->first_row + block->n_rows; row++) {
            const struct topology_cpu *cpu = topology_find(&view->topology, tree->rows[row].os);
            buf_printf(out, "%s%" PRIu32 "%s", row == block->first_row ? "  CPU " : ", ", tree->rows[row].os,
                       cpu && !cpu->is_allowed ? " (not allowed)" : "");
        }
        buf_printf(out, "\n");
    }
}

static void put_color(struct buf *out, const char *key, struct tree_color color)
{
    json_put_key(out, key, 0);
    buf_printf(out, "\"#%02x%02x%02x\"", color.red, color.green, color.blue);
}

static void put_known(struct buf *out, const char *key, uint32_t number)
{
    json_put_key(out, key, 0);
    if (number == TOPOLOGY_UNKNOWN)
        buf_printf(out, "null");
    else
        buf_printf(out, "%" PRIu32, number);
}

static void put_text_of(struct buf *out, const char *key, const struct topology_tree *tree,
                        const struct tree_block *block,
                        void (*put)(const struct topology_tree *, const struct tree_block *, struct buf *))
{
    struct buf text = {0};
    put(tree, block, &text);
    json_put_text_at(out, key, text.data ? text.data : "");
    out->failed |= text.failed;
    buf_fini(&text);
}

static void put_blocks_json(const struct topology_tree *tree, struct buf *out)
{
    static const char *const levels[TREE_LEVELS] = {"machine", "node", "core"};
    for (size_t i = 0; i < tree->n_blocks; i++) {
        const struct tree_block *block = &tree->blocks[i];
        buf_printf(out, "%s\n   {\"level\": \"%s\"", i ? "," : "", levels[block->level]);
        put_known(out, "number", block->number);
        put_text_of(out, "label", tree, block, tree_block_put_label);
        put_text_of(out, "name", tree, block, tree_block_put_name);
        buf_printf(out, ", \"parent\": %" PRIu32 ", \"first_row\": %" PRIu32 ", \"n_rows\": %" PRIu32, block->parent,
                   block->first_row, block->n_rows);
        buf_printf(out, ", \"height_px\": %" PRIu64, topology_tree_height(block->n_rows, GRAPH_PX, SPACING_PX));
        put_color(out, "color", block->color);
        put_color(out, "text_color", tree_color_of_text(block->color));
        buf_printf(out, "}");
    }
}

static void put_rows_json(const struct stream_view *view, const struct topology_tree *tree, struct buf *out)
{
    for (size_t i = 0; i < tree->n_rows; i++) {
        const struct brief_cpu *cpu = &tree->rows[i];
        const struct topology_cpu *whole = topology_find(&view->topology, cpu->os);
        buf_printf(out, "%s\n   {\"cpu\": %" PRIu32 ", \"logical\": %" PRIu32, i ? "," : "", cpu->os, cpu->cpu);
        put_known(out, "core", cpu->core);
        put_known(out, "node", cpu->node);
        put_known(out, "package", cpu->package);
        buf_printf(out, ", \"allowed\": %s, \"local_nodes\": [", whole->is_allowed ? "true" : "false");
        for (uint32_t j = 0; j < whole->n_local; j++)
            buf_printf(out, "%s%" PRIu32, j ? ", " : "", view->topology.locals[whole->first_local + j]);
        buf_printf(out, "]}");
    }
}

static void put_nodes_json(const struct topology *topology, struct buf *out)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        const struct topology_node *node = &topology->nodes[i];
        buf_printf(out, "%s\n   {\"number\": %" PRIu32 ", \"os\": %" PRIu32, i ? "," : "", i, node->os);
        put_known(out, "package", node->package);
        json_put_word_at(out, "cpus", node->n_cpus);
        json_put_word_at(out, "local_cpus", node->n_local);
        json_put_word_at(out, "memory_bytes", node->memory_bytes);
        json_put_text_at(out, "kind", node->kind[0] ? node->kind : NULL);
        buf_printf(out, ", \"allowed\": %s}", node->is_allowed ? "true" : "false");
    }
}

static int put_machine_json(const struct stream_view *view, struct topology_tree *tree, struct buf *out,
                            struct error *err)
{
    struct tree_color *colors = calloc(tree->n_rows + 1, sizeof *colors);
    if (!colors)
        return error_memory(err);
    for (size_t i = 0; i < tree->n_rows; i++)
        colors[i] = tree_color_of_number(tree->rows[i].os);
    topology_tree_paint(tree, colors, tree_color_of_number(view->stream));
    free(colors);
    buf_printf(out, "{\"stream\": %" PRIu32 ", \"view\": %d", view->stream, (int)view->view);
    json_put_text_at(out, "topology", view->path);
    json_put_text_at(out, "summary", view->topology.summary);
    buf_printf(out, ", \"offline\": [");
    for (uint32_t i = 0; i < view->topology.n_offline; i++)
        buf_printf(out, "%s%" PRIu32, i ? ", " : "", view->topology.offline[i]);
    buf_printf(out, "],\n  \"nodes\": [");
    put_nodes_json(&view->topology, out);
    buf_printf(out, "],\n  \"rows\": [");
    put_rows_json(view, tree, out);
    buf_printf(out, "],\n  \"blocks\": [");
    put_blocks_json(tree, out);
    buf_printf(out, "]}");
    return 0;
}

static void put_machine_csv(const struct topology_tree *tree, struct buf *out)
{
    static const struct column columns[] = {
        {"node", "", CELL_COUNT}, {"package", "", CELL_COUNT}, {"core", "", CELL_COUNT}, {"cpu", "", CELL_COUNT}};
    struct table table = {.columns = columns, .n_columns = sizeof columns / sizeof *columns};
    for (size_t i = 0; i < tree->n_rows; i++) {
        const struct brief_cpu *cpu = &tree->rows[i];
        table_put_if(&table, cpu->node != TOPOLOGY_UNKNOWN, cpu->node);
        table_put_if(&table, cpu->package != TOPOLOGY_UNKNOWN, cpu->package);
        table_put_count(&table, cpu->core);
        table_put_count(&table, cpu->os);
    }
    table_print_csv(&table, out);
    out->failed |= table.failed;
    table_fini(&table);
}

/* The tree of all CPUs, or of those that are wanted. */
static int make_tree(const struct sched_job *job, const struct stream_view *view, struct topology_tree *tree,
                     struct error *err)
{
    uint32_t *os = calloc(view->brief.n_cpus + 1, sizeof *os);
    size_t n = 0;
    if (!os)
        return error_memory(err);
    for (size_t i = 0; i < view->brief.n_cpus; i++)
        if (view->brief.cpus[i].os < STREAM_NO_CPU ? sched_wants_cpu(job, (uint16_t)view->brief.cpus[i].os)
                                                   : !job->cpus)
            os[n++] = view->brief.cpus[i].os;
    int code = topology_tree_make(&view->brief, os, n, tree, err);
    free(os);
    return code;
}

int topo_write_machine(const struct sched_job *job, const struct stream_view *view, struct buf *out, struct error *err)
{
    struct topology_tree tree = {0};
    int code = make_tree(job, view, &tree, err);
    if (code == 0 && strcmp(job->form, "json") == 0) {
        buf_printf(out, "{\"report\": \"topo\", \"streams\": [], \"topologies\": [\n ");
        code = put_machine_json(view, &tree, out, err);
        buf_printf(out, "]}\n");
    } else if (code == 0 && strcmp(job->form, "csv") == 0) {
        put_machine_csv(&tree, out);
    } else if (code == 0) {
        put_machine_head(view, out);
        put_tree_text(view, &tree, out);
    }
    topology_tree_fini(&tree);
    return code;
}

/* --- how busy it was --- */

static int make_busy(const struct sched_job *job, size_t i, size_t n_slices, struct busy *busy, struct error *err)
{
    const struct schedule no_more = {0};
    uint32_t *os = NULL;
    size_t n = 0;
    int64_t from_ns = 0, to_ns = 0;
    (void)sched_extent(job, &from_ns, &to_ns);
    int code = sched_cpu_rows(job, i, &no_more, &os, &n, err);
    if (code == 0)
        code = busy_make(job->streams[i].stream, stream_views_find(job->views, (uint32_t)i), os, n, from_ns, to_ns,
                         n_slices, busy, err);
    free(os);
    return code;
}

/* A character for a slice: nothing where nothing is known. */
static void put_bar(const struct sched_job *job, const struct busy *busy, double share, struct buf *out)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    if (share < 0)
        buf_printf(out, " ");
    else if (share < 100.0 / 16)
        buf_printf(out, busy->knows_idle ? job->unicode ? "·" : "." : share > 0 ? "-" : " ");
    else if (job->unicode)
        buf_printf(out, "%s", blocks[share >= 100 ? 7 : (size_t)(share * 8 / 100)]);
    else
        buf_printf(out, "%c", share >= 95 ? '#' : (char)('0' + (int)(share / 10)));
}

/* Without switches: events, as a share of the slice of a CPU that has most of them. */
static uint64_t most_events(const struct busy *busy, enum busy_level level)
{
    uint64_t most = 0;
    for (size_t i = 0; i < busy->n_rows; i++)
        for (size_t slice = 0; busy->rows[i].level == level && slice < busy->n_slices; slice++)
            if (busy->rows[i].cells[slice].n_events > most)
                most = busy->rows[i].cells[slice].n_events;
    return most;
}

static void put_bars(const struct sched_job *job, const struct busy *busy, const struct busy_row *row, struct buf *out)
{
    uint64_t most = busy->knows_busy ? 0 : most_events(busy, row->level);
    for (size_t i = 0; i < busy->n_slices; i++) {
        int64_t length_ns = busy_slice_ns(busy, i + 1) - busy_slice_ns(busy, i);
        double share = most ? 100 * (double)row->cells[i].n_events / (double)most
                            : busy_percent(busy, row, &row->cells[i], length_ns);
        put_bar(job, busy, share, out);
    }
}

static void put_busy_row(const struct sched_job *job, const struct busy *busy, const struct busy_row *row, int width,
                         struct buf *out)
{
    struct busy_cell sum = busy_sum(busy, row);
    double share = busy_percent(busy, row, &sum, busy->to_ns - busy->from_ns);
    size_t before = out->len_bytes;
    buf_printf(out, "%*s", 2 * (int)row->depth, "");
    put_label(row, out);
    if (row->is_beside)
        buf_printf(out, " beside");
    buf_printf(out, "%*s", width - (int)(out->len_bytes - before), "");
    if (!busy->knows_busy && busy->knows_cpus)
        buf_printf(out, "%9" PRIu64 " |", sum.n_events);
    else if (share < 0)
        buf_printf(out, "        - |");
    else
        buf_printf(out, "%7.1f %% |", share);
    put_bars(job, busy, row, out);
    buf_printf(out, "|\n");
}

static int put_stream_text(const struct sched_job *job, size_t i, struct buf *out, struct error *err)
{
    enum { LABEL_WIDTH = 18 };
    const struct stream_view *view = stream_views_find(job->views, (uint32_t)i);
    size_t room = job->columns > LABEL_WIDTH + AROUND_BARS ? job->columns - LABEL_WIDTH - AROUND_BARS : 0;
    size_t n_slices = job->slices ? job->slices : room > SLICES_LEAST ? room : SLICES_LEAST;
    struct busy busy = {0};
    int code = make_busy(job, i, n_slices, &busy, err);
    if (code)
        return code;
    if (job->n_streams > 1)
        buf_printf(out, "[%zu]\n", i);
    const struct stream *stream = job->streams[i].stream;
    if (view)
        put_machine_head(view, out);
    else if (stream->topology)
        buf_printf(out, "The measurement has the topology of its host: --view numatree shows it as a tree.\n");
    buf_printf(out, "%-*s%9s\n", LABEL_WIDTH, "", busy.knows_busy ? busy.knows_idle ? "busy" : "at least" : "events");
    for (size_t row = 0; row < busy.n_rows; row++)
        put_busy_row(job, &busy, &busy.rows[row], LABEL_WIDTH, out);
    if (!busy.knows_cpus)
        buf_printf(out, "The recording does not say on which CPUs its events happened (perf record --sample-cpu).\n");
    else if (!busy.knows_busy)
        buf_printf(out, "The recording has no switches: these are events, which say where something was recorded, not "
                        "how busy it was.\n");
    busy_fini(&busy);
    return 0;
}

static const struct column busy_columns[] = {
    SCHED_STREAM_COLUMNS,          {"level", NULL, CELL_TEXT},   {"name", NULL, CELL_TEXT},
    {"number", NULL, CELL_COUNT},  {"cpus", NULL, CELL_COUNT},   {"from_ns", NULL, CELL_TIME},
    {"to_ns", NULL, CELL_TIME},    {"busy_ns", NULL, CELL_SPAN}, {"idle_ns", NULL, CELL_SPAN},
    {"share", NULL, CELL_PERCENT}, {"events", NULL, CELL_COUNT},
};

static void add_cells(const struct sched_job *job, size_t stream, const struct busy *busy, const struct busy_row *row,
                      struct table *table)
{
    static const char *const levels[] = {"machine", "package", "node", "core", "cpu"};
    struct buf label = {0};
    put_label(row, &label);
    for (size_t i = 0; i < busy->n_slices; i++) {
        const struct busy_cell *cell = &row->cells[i];
        int64_t from_ns = busy_slice_ns(busy, i), to_ns = busy_slice_ns(busy, i + 1);
        double share = busy_percent(busy, row, cell, to_ns - from_ns);
        sched_put_stream(table, job, stream);
        table_put_text(table, row->is_beside ? "beside" : levels[row->level]);
        table_put_text(table, label.data ? label.data : "");
        table_put_if(table, row->number != TOPOLOGY_UNKNOWN, row->number);
        table_put_count(table, row->n_cpus);
        table_put_count(table, from_ns);
        table_put_count(table, to_ns);
        table_put_if(table, busy_is_known(busy, row, cell), cell->busy_ns);
        table_put_if(table, busy->knows_idle && busy_is_known(busy, row, cell), cell->idle_ns);
        if (share < 0)
            table_put_absent(table);
        else
            table_put_number(table, share);
        table_put_if(table, busy->knows_cpus, (int64_t)cell->n_events);
    }
    table->failed |= label.failed;
    buf_fini(&label);
}

static int fill_table(const struct sched_job *job, struct table *table, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < job->n_streams; i++) {
        struct busy busy = {0};
        code = make_busy(job, i, job->slices ? job->slices : 1, &busy, err);
        for (size_t row = 0; row < busy.n_rows; row++)
            add_cells(job, i, &busy, &busy.rows[row], table);
        busy_fini(&busy);
    }
    return code == 0 && table->failed ? error_memory(err) : code;
}

static int put_topologies_json(const struct sched_job *job, struct buf *out, struct error *err)
{
    int code = 0;
    const char *between = "";
    buf_printf(out, ",\n \"topologies\": [");
    for (size_t i = 0; code == 0 && i < job->n_streams; i++) {
        const struct stream_view *view = stream_views_find(job->views, (uint32_t)i);
        struct topology_tree tree = {0};
        if (!view)
            continue;
        code = make_tree(job, view, &tree, err);
        buf_printf(out, "%s\n  ", between);
        if (code == 0)
            code = put_machine_json(view, &tree, out, err);
        topology_tree_fini(&tree);
        between = ",";
    }
    buf_printf(out, "],\n \"rows\": ");
    return code;
}

int topo_write(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct table table = {.columns = busy_columns, .n_columns = sizeof busy_columns / sizeof *busy_columns};
    bool is_json = strcmp(job->form, "json") == 0;
    int code = 0;
    if (strcmp(job->form, "text") == 0) {
        sched_put_head(job, out);
        for (size_t i = 0; code == 0 && i < job->n_streams; i++)
            code = put_stream_text(job, i, out, err);
        return code;
    }
    code = fill_table(job, &table, err);
    if (code == 0 && is_json) {
        sched_put_json_head(job, "topo", out);
        code = put_topologies_json(job, out, err);
        table_print_json(&table, "\n  ", out);
        buf_printf(out, "}\n");
    } else if (code == 0) {
        table_print_csv(&table, out);
    }
    table_fini(&table);
    return code;
}
