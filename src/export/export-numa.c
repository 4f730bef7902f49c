/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of memory nodes: for a terminal, as CSV and as JSON. On a terminal the matrix of threads' nodes and pages'
 * nodes, then each variable with where its pages are and who asks for them. */
#include "analysis/report/numa.h"

#include <math.h>
#include <stdio.h>

#include "answer/answer.h"
#include "export/text-cells.h"
#include "table/table.h"

#define PART_SHOWN 0.5 /* percent: below it a node is not named */
#define MOST_NODES 12  /* with more, the matrix is left to CSV and JSON */

/* The name of the row's variable, also where the row is about a part of it. */
static const char *name_of(const struct numa *numa, const struct numa_row *row)
{
    return row->row->part ? model_variable_name(numa->report.model, row->row->variable) : row->row->name;
}

static uint64_t n_asked(const struct numa_sum *sum)
{
    return sum->n_local + sum->n_remote + sum->n_none;
}

/* What the report says where there is nothing to report; NULL where there is. */
static const char *reason_for_nothing(const struct numa *numa)
{
    if (numa->n_nodes == 1)
        return "NUMA cannot be seen here: the program ran on machines with one memory node, where every access is "
               "local.";
    if (numa->n_nodes == 0)
        return "The nodes are not known: the measurement has no topology of its machine.";
    if (numa->n_pairs == 0)
        return "It is not known on which nodes the pages are. hpcrun finds it out for events with data addresses, "
               "such as datacentric; where the kernel refused to say it, the log of hpcrun has the reason.";
    return NULL;
}

/* "; 1.7 times as far away as the own node" */
static void put_distance(const struct numa_sum *sum, const char *mean, struct buf *text)
{
    if (sum->n_measured && sum->n_remote)
        buf_printf(text, ";%s %.2f times as far away as the own node's", mean, numa_mean_distance(sum));
}

static void put_head(const struct numa *numa, const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    const struct numa_sum *sum = &numa->sum;
    struct buf text = {0};
    text_program(out, job);
    if (model->topology)
        text_labelled(out, job, "machine", model->topology);
    const char *reason = reason_for_nothing(numa);
    if (reason) {
        text_labelled(out, job, "note", reason);
        return;
    }
    buf_printf(&text, "%s: of %llu samples on variables, the node of the page is known for %llu (%.0f %%)",
               model->metrics[numa->metric].name, (unsigned long long)sum->n_samples,
               (unsigned long long)(sum->n_local + sum->n_remote),
               percent_of_counts(sum->n_local + sum->n_remote, sum->n_samples));
    text_labelled(out, job, "samples", text.data ? text.data : "");
    text.len_bytes = 0;
    buf_printf(&text, "%.1f %% on pages of another node than the thread's, %.1f %% on pages of its own",
               numa_remote_percent(sum), 100 - numa_remote_percent(sum));
    put_distance(sum, " on average", &text);
    if (sum->n_local + sum->n_remote)
        text_labelled(out, job, "remote", text.data ? text.data : "");
    buf_fini(&text);
}

/* --- the matrix --- */

static uint64_t sum_of_row(const struct numa *numa, uint32_t node)
{
    uint64_t n = 0;
    for (uint32_t home = 0; home < numa->n_nodes; home++)
        n += numa->matrix[(size_t)node * numa->n_nodes + home];
    return n;
}

static uint64_t sum_of_column(const struct numa *numa, uint32_t home)
{
    uint64_t n = 0;
    for (uint32_t node = 0; node < numa->n_nodes; node++)
        n += numa->matrix[(size_t)node * numa->n_nodes + home];
    return n;
}

static void put_matrix(const struct numa *numa, const struct export_job *job, struct buf *out)
{
    uint64_t all = numa->sum.n_local + numa->sum.n_remote;
    char text[24];
    if (!all || numa->n_nodes > MOST_NODES)
        return;
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "\nthreads on    pages on");
    for (uint32_t home = 0; home < numa->n_nodes; home++) {
        (void)snprintf(text, sizeof text, "node %u", home);
        text_cell(out, job, text, home ? 10 : 9, true);
    }
    text_cell(out, job, "all", 10, true);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    for (uint32_t node = 0; node <= numa->n_nodes; node++) {
        bool is_sum = node == numa->n_nodes;
        if (!is_sum && !sum_of_row(numa, node))
            continue;
        (void)snprintf(text, sizeof text, is_sum ? "all" : "node %u", node);
        text_cell(out, job, text, 21, false);
        for (uint32_t home = 0; home < numa->n_nodes; home++)
            buf_printf(out, " %7.1f %%",
                       percent_of_counts(is_sum ? sum_of_column(numa, home)
                                                : numa->matrix[(size_t)node * numa->n_nodes + home],
                                         all));
        buf_printf(out, " %7.1f %%\n", percent_of_counts(is_sum ? all : sum_of_row(numa, node), all));
    }
}

/* --- variables --- */

static void put_node(struct buf *text, uint32_t node, double share, unsigned *n_put)
{
    if (share < PART_SHOWN)
        return;
    buf_printf(text, "%snode %u: %.0f %%", (*n_put)++ ? ", " : " ", node, share);
}

/* "pages live on node 0: 100 %; threads ran on node 0: 33 %, node 1: 67 %; remote 67 %" */
static void put_where(const struct numa *numa, const struct numa_row *row, struct buf *text)
{
    const struct variable_pages *pages = &row->pages;
    uint64_t known = row->sum.n_local + row->sum.n_remote, on_node = 0;
    unsigned n_put = 0;
    for (uint32_t i = 0; i < HOMES_MAX; i++)
        on_node += pages->n_on[i];
    buf_printf(text, on_node ? "pages live on" : "sampled pages live on");
    for (uint32_t i = 0; i < numa->n_nodes; i++)
        put_node(text, i,
                 on_node ? percent_of_counts(pages->n_on[i], on_node)
                         : percent_of_counts(numa_row_at(numa, row, i), known),
                 &n_put);
    if (!n_put)
        buf_printf(text, " no node");
    buf_printf(text, "; threads ran on");
    n_put = 0;
    for (uint32_t i = 0; i < numa->n_nodes; i++)
        put_node(text, i, percent_of_counts(numa_row_on(numa, row, i), n_asked(&row->sum)), &n_put);
    if (known)
        buf_printf(text, "; remote %.0f %%", numa_remote_percent(&row->sum));
    put_distance(&row->sum, "", text);
}

/* What else is known of the pages. */
static void put_pages(const struct numa_row *row, struct buf *text)
{
    const struct variable_pages *pages = &row->pages;
    char size[16];
    if (pages->n_pages)
        buf_printf(text, "; %llu pages", (unsigned long long)pages->n_pages);
    if (pages->n_asked && percent_of_counts(pages->n_none, pages->n_asked) >= PART_SHOWN)
        buf_printf(text, ", %.0f %% of them never written", percent_of_counts(pages->n_none, pages->n_asked));
    if (pages->huge_bytes && pages->huge_bytes != UINT64_MAX) {
        text_size(pages->huge_bytes, size);
        buf_printf(text, ", %s around it in huge pages", size);
    }
    if (pages->n_moved)
        buf_printf(text, "; %llu sample%s on pages that had moved", (unsigned long long)pages->n_moved,
                   pages->n_moved == 1 ? "" : "s");
}

static void put_row(const struct numa *numa, const struct export_job *job, const struct numa_row *row, struct buf *out)
{
    struct buf text = {0};
    char remote[16] = "-";
    if (row->sum.n_local + row->sum.n_remote)
        (void)snprintf(remote, sizeof remote, "%.1f %%", numa_remote_percent(&row->sum));
    text_cell(out, job, remote, 8, true);
    buf_printf(out, " %10llu  ", (unsigned long long)(row->sum.n_local + row->sum.n_remote));
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, name_of(numa, row), 22, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, " %-7s ", row->row->class);
    text_cut(out, job, row->row->site ? row->row->site : "", job->columns > 60 ? job->columns - 52 : 8);
    buf_append(out, "\n", 1);
    put_where(numa, row, &text);
    put_pages(row, &text);
    buf_printf(out, "%*s", TEXT_LABEL_WIDTH + 2, "");
    text_wrapped(out, job, text.data ? text.data : "", TEXT_LABEL_WIDTH + 2, TEXT_LABEL_WIDTH + 2);
    buf_fini(&text);
}

static bool is_shown(const struct numa *numa, const struct export_job *job, size_t i)
{
    const struct numa_sum *sum = &numa->rows[i].sum;
    return job_shows(job, percent_of_counts(sum->n_local + sum->n_remote, numa->sum.n_local + numa->sum.n_remote), i);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct numa numa;
    int code = numa_make(job->model, job->metric, &numa, err);
    if (code != 0)
        return code;
    put_head(&numa, job, out);
    if (!reason_for_nothing(&numa)) {
        size_t n = 0;
        put_matrix(&numa, job, out);
        text_style(out, job, TEXT_BOLD);
        buf_printf(out, "\n  remote    samples  variable               class   comes from");
        text_style(out, job, TEXT_PLAIN);
        buf_append(out, "\n", 1);
        for (; n < numa.n_rows && is_shown(&numa, job, n); n++)
            put_row(&numa, job, &numa.rows[n], out);
        if (n < numa.n_rows)
            buf_printf(out, "%zu more variables (--top 0 shows all)\n", numa.n_rows - n);
    }
    numa_fini(&numa);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column count_columns[] = {{"samples", NULL, CELL_WORDS}};

static const struct column pair_columns[] = {
    {"thread_node", NULL, CELL_COUNT},
    {"page_node", NULL, CELL_COUNT},
    {"samples", NULL, CELL_WORD},
};

/* Those of struct numa_sum; CSV has none, as the pairs that it has add up to them. no_page: n_none. */
#define SUM_COLUMNS                                                                                                    \
    {"samples", NULL, CELL_WORD | COLUMN_NO_CSV}, {"local", NULL, CELL_WORD | COLUMN_NO_CSV},                          \
        {"remote", NULL, CELL_WORD | COLUMN_NO_CSV}, {"no_page", NULL, CELL_WORD | COLUMN_NO_CSV},                     \
        {"remote_share", NULL, CELL_PERCENT | COLUMN_NO_CSV | COLUMN_LEFT_OUT},                                        \
    {                                                                                                                  \
        "mean_distance", NULL, CELL_NUMBER | COLUMN_NO_CSV | COLUMN_LEFT_OUT                                           \
    }

static const struct column numa_columns[] = {
    VARIABLE_COLUMNS,
    SUM_COLUMNS,
    {"moved", NULL, CELL_WORD | COLUMN_NO_CSV},
    {"pages", NULL, CELL_WORD | COLUMN_NO_CSV | COLUMN_LEFT_OUT},
    {"pages_asked", NULL, CELL_WORD | COLUMN_NO_CSV | COLUMN_LEFT_OUT},
    {"pages_without_memory", NULL, CELL_WORD | COLUMN_NO_CSV | COLUMN_LEFT_OUT},
    {"huge_bytes", NULL, CELL_WORD | COLUMN_NO_CSV | COLUMN_LEFT_OUT},
    {"pages_on", NULL, CELL_WORDS | COLUMN_NO_CSV | COLUMN_LEFT_OUT},
    {"pairs", NULL, CELL_TABLE | COLUMN_JOINED | COLUMN_BARE},
};

static const struct column head_columns[] = {
    {"n_nodes", NULL, CELL_COUNT},
    {"note", NULL, CELL_TEXT},
    SUM_COLUMNS,
    {"matrix", NULL, CELL_TABLE | COLUMN_BARE},
};

static void fill_sum(struct table *table, const struct numa_sum *sum)
{
    table_put_word(table, sum->n_samples);
    table_put_word(table, sum->n_local);
    table_put_word(table, sum->n_remote);
    table_put_word(table, sum->n_none);
    table_put_number(table, numa_remote_percent(sum));
    table_put_number(table, numa_mean_distance(sum));
}

static void fill_pages(struct table *table, const struct numa *numa, const struct variable_pages *pages)
{
    bool is_asked = pages->n_asked > 0;
    table_put_word(table, pages->n_moved);
    table_put_word_if(table, is_asked, pages->n_pages);
    table_put_word_if(table, is_asked, pages->n_asked);
    table_put_word_if(table, is_asked, pages->n_none);
    table_put_word_if(table, is_asked && pages->huge_bytes != UINT64_MAX, pages->huge_bytes);
    if (is_asked)
        table_put_words(table, pages->n_on, numa->n_nodes);
    else
        table_put_absent(table);
}

/* In CSV one row for each variable, node of the threads and home of the pages. */
static void fill_row(struct table *table, const struct numa *numa, const struct numa_row *row)
{
    table_put_variable(table, name_of(numa, row), row->row->class, row->row->site);
    fill_sum(table, &row->sum);
    fill_pages(table, numa, &row->pages);
    struct table *pairs = table_put_table(table, COLUMNS(pair_columns));
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct numa_pair *pair = &numa->pairs[i];
        table_put_count(pairs, pair->node);
        table_put_if(pairs, pair->home != PLACE_UNKNOWN, pair->home);
        table_put_word(pairs, pair->n_samples);
    }
}

static void fill_head(struct table *head, const struct numa *numa)
{
    table_put_count(head, numa->n_nodes);
    table_put_text(head, reason_for_nothing(numa));
    fill_sum(head, &numa->sum);
    struct table *matrix = table_put_table(head, COLUMNS(count_columns));
    for (uint32_t node = 0; node < numa->n_nodes; node++)
        table_put_words(matrix, &numa->matrix[(size_t)node * numa->n_nodes], numa->n_nodes);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct numa numa;
    int code = numa_make(job->model, job->metric, &numa, err);
    if (code != 0)
        return code;
    answer_begin(answer, "variables", COLUMNS(numa_columns));
    answer_join(answer, COLUMNS(pair_columns));
    answer->metric = job->model->metrics[numa.metric].name;
    fill_head(answer_set_head(answer, COLUMNS(head_columns)), &numa);
    for (size_t i = 0; i < numa.n_rows && is_shown(&numa, job, i); i++)
        fill_row(&answer->rows, &numa, &numa.rows[i]);
    numa_fini(&numa);
    return 0;
}

const struct report_kind answer_numa = {
    .name = "numa",
    .operands = "DB",
    .summary = "on which memory nodes threads ran, and on which ones the pages that they touched were",
    .manual =
        "numa prints, for machines with several memory nodes, on which nodes the threads ran and on which ones the "
        "pages were that they touched: for all samples and for each variable. hpcrun finds that out by itself for "
        "events with data addresses.",
    .example = "numa hpctoolkit-app-database",
    .options = ASK_ROWS,
    .forms = {.make = make_answer, .text = write_text},
};
