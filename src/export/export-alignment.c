/* SPDX-License-Identifier: BSD-3-Clause */
/* Where blocks begin, and what that makes of caches: arrays whose starts or rows are a power of two apart, which meet
 * in the same sets, and elements and blocks that lie in two cache lines or pages. Addresses are those of the blocks
 * that samples fell on, at most four of each thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/patterns.h"
#include "answer/answer.h"
#include "export/text-cells.h"
#include "table/table.h"

#define LINE_BYTES 64
#define PAGE_BYTES 4096
#define APART_LEAST                                                                                                    \
    PAGE_BYTES         /* of starts: addresses that differ by it share a set of a first-level cache of 64 sets,        \
                        * and a load waits for a store to the same place in a page (Intel's optimization manual,       \
                        * 4-KByte aliasing) */
#define ROW_LEAST 1024 /* of rows: a column of 64 lines needs 16 sets or fewer */

/* What is known of one variable. */
struct placed {
    const struct pattern_row *row;
    uint32_t process;
    uint64_t start, block_bytes;      /* of the block with the most samples */
    size_t n_known, n_lines, n_pages; /* blocks; those that would fit a line, or a page, but lie in two */
    const struct placed *other;       /* whose start is apart_bytes, or a multiple of it, from here; NULL: none */
    uint64_t apart_bytes, row_bytes;  /* powers of two; row_bytes 0: none */
    double two_lines;                 /* percent of elements that lie in two lines; NAN: not known, or each must */
};

static bool is_crossed(uint64_t start, uint64_t bytes, uint64_t unit)
{
    return bytes > 1 && bytes <= unit && start % unit + bytes > unit;
}

/* Of elements one behind the other, from the start on, those that lie in two lines: they repeat after 64. */
static double part_in_two_lines(uint64_t start, uint64_t element_bytes)
{
    unsigned n = 0;
    if (element_bytes < 2 || element_bytes > LINE_BYTES)
        return NAN;
    for (unsigned i = 0; i < LINE_BYTES; i++)
        n += is_crossed(start + i * element_bytes, element_bytes, LINE_BYTES);
    return 100.0 * n / LINE_BYTES;
}

/* Takes the blocks of a variable, as its threads saw them; false when none is known. */
static bool place(const struct patterns *patterns, const struct pattern_row *row, struct placed *placed)
{
    uint64_t most = 0, n_blocks = row->row->n_blocks ? row->row->n_blocks : 1;
    *placed = (struct placed){.row = row, .block_bytes = row->row->size_bytes / n_blocks};
    for (size_t i = row->first; i < row->first + row->n; i++) {
        const struct pattern_thread *thread = &patterns->threads[i];
        for (size_t k = 0; k < REACH_BLOCKS && thread->sum.blocks[k].count; k++) {
            const struct reach_block *block = &thread->sum.blocks[k];
            placed->n_known++;
            placed->n_lines += is_crossed(block->address, placed->block_bytes, LINE_BYTES);
            placed->n_pages += is_crossed(block->address, placed->block_bytes, PAGE_BYTES);
            if (block->count > most) {
                most = block->count;
                placed->start = block->address;
                placed->process = thread->process;
            }
        }
    }
    bool is_power = row->step_bytes >= ROW_LEAST && (row->step_bytes & (row->step_bytes - 1)) == 0;
    placed->row_bytes = is_power && !row->is_least ? row->step_bytes : 0;
    placed->two_lines = part_in_two_lines(placed->start, row->row->element_bytes);
    return most > 0;
}

/* Finds the variable whose start is the largest power of two from that of each one, in the same process. */
static void find_apart(struct placed *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && all[i].block_bytes >= PAGE_BYTES; k++) {
            uint64_t distance = all[i].start > all[k].start ? all[i].start - all[k].start : all[k].start - all[i].start;
            uint64_t power = distance & -distance;
            if (all[i].process == all[k].process && all[k].block_bytes >= PAGE_BYTES && power >= APART_LEAST &&
                power > all[i].apart_bytes) {
                all[i].apart_bytes = power;
                all[i].other = &all[k];
            }
        }
}

static void put_finding(const struct placed *placed, struct buf *text)
{
    char size[16];
    if (placed->row_bytes) {
        text_size(placed->row_bytes, size);
        buf_printf(text, "goes on by %s, a power of two: few sets of the caches hold it; pad its rows", size);
    }
    if (placed->other) {
        text_size(placed->apart_bytes, size);
        buf_printf(text, "%sbegins a multiple of %s from %s", text->len_bytes ? "; " : "", size,
                   placed->other->row->row->name);
    }
    if (placed->two_lines > 0)
        buf_printf(text, "%s%.0f %% of its elements lie in two cache lines", text->len_bytes ? "; " : "",
                   placed->two_lines);
    if (placed->n_lines)
        buf_printf(text, "%s%zu of %zu known blocks lie in two cache lines", text->len_bytes ? "; " : "",
                   placed->n_lines, placed->n_known);
    if (placed->n_pages)
        buf_printf(text, "%s%zu of %zu known blocks lie in two pages", text->len_bytes ? "; " : "", placed->n_pages,
                   placed->n_known);
}

static const struct column columns[] = {
    {"share", "share", CELL_PERCENT | COLUMN_6_DIGITS},
    {"variable", "variable", CELL_TEXT},
    {"class", NULL, CELL_TEXT},
    {"alloc_site", NULL, CELL_TEXT},
    {"block_bytes", "block", CELL_WORD},
    {"element_bytes", "element", CELL_WORD},
    {"address", NULL, CELL_ADDRESS},
    {"line_offset", "in line", CELL_WORD},
    {"page_offset", "in page", CELL_WORD},
    {"apart_bytes", NULL, CELL_WORD},
    {"apart_from", NULL, CELL_TEXT},
    {"row_bytes", NULL, CELL_WORD},
    {"elements_in_two_lines", NULL, CELL_PERCENT},
    {"known_blocks", NULL, CELL_COUNT},
    {"blocks_in_two_lines", NULL, CELL_COUNT},
    {"blocks_in_two_pages", NULL, CELL_COUNT},
    {"finding", "finding", CELL_TEXT},
};

static void fill_row(struct table *table, const struct placed *placed)
{
    const struct report_row *row = placed->row->row;
    struct buf finding = {0};
    put_finding(placed, &finding);
    table_put_number(table, row->share);
    table_put_text(table, row->name);
    table_put_text(table, row->class);
    table_put_text(table, row->site);
    bool has_size = placed->block_bytes > 0;
    table_put_word_if(table, has_size, placed->block_bytes);
    table_put_word_if(table, row->element_bytes > 0, row->element_bytes);
    table_put_word(table, placed->start);
    table_put_word(table, placed->start % LINE_BYTES);
    table_put_word(table, placed->start % PAGE_BYTES);
    table_put_word_if(table, placed->other, placed->apart_bytes);
    table_put_text(table, placed->other ? placed->other->row->row->name : NULL);
    table_put_word_if(table, placed->row_bytes > 0, placed->row_bytes);
    table_put_number(table, placed->two_lines);
    table_put_count(table, (int64_t)placed->n_known);
    table_put_if(table, has_size, (int64_t)placed->n_lines);
    table_put_if(table, has_size, (int64_t)placed->n_pages);
    table_put_text(table, finding.data);
    table->failed |= finding.failed;
    buf_fini(&finding);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct patterns patterns;
    size_t n_all = 0, n = 0;
    int code = patterns_make_of(job->model, job->metric, job->with_paths, job->subject, &patterns, err);
    if (code != 0)
        return code;
    struct placed *all = calloc(patterns.n_rows + 1, sizeof *all);
    for (size_t i = 0; all && i < patterns.n_rows; i++)
        n_all += place(&patterns, &patterns.rows[i], &all[n_all]);
    if (all)
        find_apart(all, n_all);
    answer_begin(answer, "variables", COLUMNS(columns));
    answer->rows.failed = !all;
    bool is_found = !job->subject || !all;
    for (size_t i = 0; all && i < n_all; i++) {
        const struct report_row *row = all[i].row->row;
        bool is_meant = !job->subject || report_is_named(row, job->subject);
        is_found |= is_meant;
        if (is_meant && job_shows(job, row->share, n)) {
            fill_row(&answer->rows, &all[i]);
            n++;
        } else {
            answer->rows.n_more += is_meant && job_shows(job, row->share, 0);
        }
    }
    free(all);
    if (!is_found)
        return patterns_refuse_variable(&patterns, job->subject, err);
    patterns_fini(&patterns);
    return 0;
}

const struct report_kind answer_alignment = {
    .name = "alignment",
    .operands = "DB",
    .summary = "where blocks begin: starts and rows a power of two apart, elements in two cache lines",
    .manual =
        "alignment prints where the blocks of each variable begin in a cache line and in a page, and what follows: "
        "arrays whose starts or rows are a power of two apart, so that they use few sets of a cache, and elements "
        "or small blocks that lie in two cache lines or pages. Addresses are those of the blocks that most "
        "samples fell on; rows are known where a walk goes on by as many bytes each time.",
    .example = "alignment --variable grid hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(VARIABLE),
    .about = about_variable,
    .forms = {.make = make_answer},
};
