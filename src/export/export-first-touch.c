/* SPDX-License-Identifier: BSD-3-Clause */
/* Who touched each variable first and who used it, as a sentence for the table of variables and as a report of its own:
 * text, CSV and JSON with a row for each thread and place. */
#include "analysis/report/first-touch.h"

#include <stdio.h>
#include <string.h>

#include "analysis/report/code-table.h"
#include "base/path.h"
#include "export/prepared.h"
#include "export/text-cells.h"
#include "export/vars-table.h"
#include "table/table.h"

#define GROUPS_SAID 3       /* places in a sentence */
#define RANGES_SAID 4       /* of threads and nodes */
#define NODE_SHARE 0.01     /* of the samples: a node with less is not said */
#define EVEN 1.25           /* the largest share may be so many times the mean */
#define SPARSE_BYTES 65536  /* for each fault: more than any page that is not huge */
#define LARGE_BYTES 1048576 /* a variable about which it is worth saying that nothing was seen */
#define PAGES_BYTES 65536   /* less is too few pages to matter in the table of variables */
#define SMALL_BYTES 4096    /* less shares its page with other variables */

/* --- the sentence --- */

/* Items from first to last, "3" or "3-5", behind the n_ranges before. */
static void put_range(struct buf *text, size_t *n_ranges, uint64_t first, uint64_t last)
{
    if (*n_ranges < RANGES_SAID)
        buf_printf(text, first == last ? "%s%llu" : "%s%llu-%llu", *n_ranges ? ", " : "", (unsigned long long)first,
                   (unsigned long long)last);
    ++*n_ranges;
}

/* The threads [n] at a distance of stride bytes from each other, in their order. */
struct thread_list {
    const void *first;
    size_t stride, n;
};

static uint32_t thread_at(const struct thread_list *list, size_t i)
{
    return *(const uint32_t *)(const void *)((const char *)list->first + i * list->stride);
}

static void put_ranges(const struct model *model, const struct thread_list *list, struct buf *text)
{
    size_t n_ranges = 0;
    for (size_t i = 0, begin = 0; i < list->n; i++) {
        uint64_t first = model->threads[thread_at(list, begin)].thread_id,
                 here = model->threads[thread_at(list, i)].thread_id;
        if (i + 1 < list->n && model->threads[thread_at(list, i + 1)].thread_id == here + 1)
            continue;
        put_range(text, &n_ranges, first, here);
        begin = i + 1;
    }
    if (n_ranges > RANGES_SAID)
        buf_printf(text, " and others, %zu in all", list->n);
}

static void put_threads(const struct model *model, const struct thread_list *list, struct buf *text)
{
    const struct split_naming naming = split_naming_of(model);
    size_t n_processes = 0;
    if (list->n == 1) {
        buf_printf(text, "thread ");
        split_put_thread(model, &naming, thread_at(list, 0), text);
    } else if (naming.has_one) {
        buf_printf(text, "threads ");
        put_ranges(model, list, text);
    } else {
        for (size_t i = 0; i < list->n; i++)
            n_processes +=
                i == 0 || model->threads[thread_at(list, i)].process != model->threads[thread_at(list, i - 1)].process;
        buf_printf(text, "%zu threads of %zu process%s", list->n, n_processes, n_processes == 1 ? "" : "es");
    }
}

/* " on nodes 0-3"; nothing on machines with one node. */
static void put_nodes(const struct model *model, const uint64_t *counts, struct buf *text)
{
    uint64_t all = 0;
    size_t n = 0, n_ranges = 0;
    for (uint32_t i = 0; counts && i < model->n_numa_nodes; i++)
        all += counts[i];
    for (uint32_t i = 0; all && i < model->n_numa_nodes; i++)
        n += (double)counts[i] >= NODE_SHARE * (double)all;
    if (n == 0 || model->n_numa_nodes < 2)
        return;
    buf_printf(text, n == 1 ? " on node " : " on nodes ");
    for (uint32_t i = 0, begin = UINT32_MAX; i < model->n_numa_nodes; i++) {
        bool is_said = (double)counts[i] >= NODE_SHARE * (double)all;
        bool goes_on = i + 1 < model->n_numa_nodes && (double)counts[i + 1] >= NODE_SHARE * (double)all;
        begin = is_said && begin == UINT32_MAX ? i : begin;
        if (!is_said || goes_on)
            continue;
        put_range(text, &n_ranges, begin, i);
        begin = UINT32_MAX;
    }
    if (n_ranges > RANGES_SAID)
        buf_printf(text, " and others, %zu in all", n);
}

static void put_place(const struct model *model, const struct touch_place *place, struct buf *text)
{
    if (!place->function) {
        buf_printf(text, "unknown code");
        return;
    }
    text_function(text, model_text(model, place->function));
    if (place->line)
        buf_printf(text, " (%s:%u)", path_last(model_text(model, place->file)), place->line);
}

static struct thread_list threads_of_group(const struct first_touches *touches, const struct touch_group *group)
{
    return (struct thread_list){&touches->rows[group->first].thread, sizeof *touches->rows, group->n};
}

/* One place: its threads, and what each of them has of it when there are several. */
static void put_one_place(const struct first_touches *touches, const struct report_row *row,
                          const struct touch_group *group, struct buf *text)
{
    const struct model *model = touches->report->model;
    const struct thread_list list = threads_of_group(touches, group);
    const struct touch_row *first = &touches->rows[group->first];
    double most = 0;
    put_threads(model, &list, text);
    put_nodes(model, first_touch_nodes(touches, row, false), text);
    buf_printf(text, " in ");
    put_place(model, &first->place, text);
    for (size_t i = 0; i < group->n; i++)
        most = first[i].share > most ? first[i].share : most;
    if (group->n > 1 && most <= EVEN * 100 / (double)group->n)
        buf_printf(text, ", about %.0f %% each", 100 / (double)group->n);
    else if (group->n > 1)
        buf_printf(text, ", up to %.0f %% each", most);
}

static void put_places(const struct first_touches *touches, const struct report_row *row, const struct touched *touched,
                       struct buf *text)
{
    const struct model *model = touches->report->model;
    const struct touch_group *groups = &touches->groups[touched->first_group];
    bool has_one = touched->n_touchers == 1;
    const struct thread_list first = threads_of_group(touches, &groups[0]);
    if (has_one)
        put_threads(model, &first, text);
    else
        buf_printf(text, "%s%zu threads", touches->is_complete ? "" : "at least ", touched->n_touchers);
    put_nodes(model, first_touch_nodes(touches, row, false), text);
    for (size_t i = 0; i < touched->n_groups && i < GROUPS_SAID; i++) {
        const struct thread_list list = threads_of_group(touches, &groups[i]);
        buf_printf(text, i ? ", " : ": ");
        if (!has_one)
            put_threads(model, &list, text);
        buf_printf(text, has_one ? "in " : " in ");
        put_place(model, &touches->rows[groups[i].first].place, text);
        buf_printf(text, " %.0f %%", groups[i].share);
    }
    if (touched->n_groups > GROUPS_SAID)
        buf_printf(text, ", %zu more place%s", touched->n_groups - GROUPS_SAID,
                   touched->n_groups - GROUPS_SAID == 1 ? "" : "s");
}

/* What else can have filled the pages, so that nobody takes a few faults for all of them. */
static void put_gap(const struct first_touches *touches, const struct report_row *row, const struct touched *touched,
                    struct buf *text)
{
    char size[16];
    bool is_counted = touches->is_complete && row->n_blocks == 1 && touched->n_faults;
    uint64_t n_bytes = is_counted ? row->size_bytes / touched->n_faults : 0;
    if (n_bytes < SPARSE_BYTES || row->size_bytes < LARGE_BYTES)
        return;
    text_size(n_bytes, size);
    buf_printf(
        text,
        "; one fault for each %s: it has huge pages, or the kernel filled pages (read, MAP_POPULATE), or not all "
        "of it was touched",
        size);
}

bool first_touch_put_sentence(const struct first_touches *touches, const struct report_row *row, struct buf *text)
{
    const struct model *model = touches->report->model;
    const struct touched *touched = first_touch_of(touches, row);
    bool is_memory = row->variable && !row->part && row->variable->class <= CLASS_TLS;
    if (!touched && (!touches->is_measured || !is_memory || row->size_bytes < LARGE_BYTES))
        return false;
    if (!touched) {
        buf_printf(text,
                   "no first touch was seen: %sthe memory was in use before, has huge pages, or the kernel filled it "
                   "(read, MAP_POPULATE)",
                   touches->is_complete ? "" : "none of its page faults was sampled, ");
        return true;
    }
    const struct thread_list users = {&touches->users[touched->first_user], sizeof *touches->users, touched->n_users};
    buf_printf(text, "first touched by ");
    if (touched->n_groups == 1)
        put_one_place(touches, row, &touches->groups[touched->first_group], text);
    else
        put_places(touches, row, touched, text);
    if (users.n) {
        buf_printf(text, ", used by ");
        put_threads(model, &users, text);
        put_nodes(model, first_touch_nodes(touches, row, true), text);
    }
    put_gap(touches, row, touched, text);
    return true;
}

bool first_touch_matters(const struct first_touches *touches, const struct report_row *row)
{
    return touches->is_measured && row->variable && row->size_bytes >= PAGES_BYTES &&
           row->variable->class != CLASS_STACK && !report_is_special(row);
}

/* --- the report --- */

struct touch_report {
    struct prepared prepared;
    struct split_naming naming;
};

static int make(const struct export_job *job, struct touch_report *made, struct error *err)
{
    const struct model *model = job->model;
    if (model_metric(model, FAULTS_METRIC) < 0 || !model->n_touches)
        return error_set(err, ERR_NOT_FOUND,
                         "the database does not say who touched its variables first: no page faults were sampled "
                         "(hpcrun -e FAULTS), or an older version made it");
    int code = prepared_make(job, PREPARED_UNUSED | PREPARED_ORDER | PREPARED_TOUCHES, &made->prepared, err);
    if (code != 0)
        return code;
    made->naming = split_naming_of(model);
    return 0;
}

static void touch_report_fini(struct touch_report *made)
{
    prepared_fini(&made->prepared);
}

/* Whether a row is shown: memory of its own that was touched, or that is too large for nobody to have touched it. */
static bool is_shown(const struct touch_report *made, const struct report_row *row)
{
    bool is_memory = row->variable && !row->part && row->variable->class != CLASS_STACK && !report_is_special(row) &&
                     row->variable->class <= CLASS_FILE;
    return is_memory && row->size_bytes >= SMALL_BYTES &&
           (first_touch_of(&made->prepared.touches, row) || row->size_bytes >= LARGE_BYTES);
}

/* The rows of a variable, group by group; NULL behind the last. */
static const struct touch_row *row_at(const struct first_touches *touches, const struct touched *touched, size_t i)
{
    for (size_t g = 0; touched && g < touched->n_groups; g++) {
        const struct touch_group *group = &touches->groups[touched->first_group + g];
        if (i < group->n)
            return &touches->rows[group->first + i];
        i -= group->n;
    }
    return NULL;
}

static double after_ms(const struct model *model, uint64_t first_ns)
{
    return first_ns > model->start_ns && model->start_ns ? (double)(first_ns - model->start_ns) / 1e6 : 0;
}

static void put_toucher(const struct touch_report *made, const struct export_job *job, const struct touch_row *touch,
                        uint64_t size_bytes, struct buf *out)
{
    const struct model *model = job->model;
    struct buf text = {0};
    buf_printf(&text, "%5.1f %%  thread ", touch->share);
    split_put_thread(model, &made->naming, touch->thread, &text);
    if (touch->node != PLACE_UNKNOWN && model->n_numa_nodes > 1)
        buf_printf(&text, " on node %u", touch->node);
    if (touch->first_ns)
        buf_printf(&text, ", after %.1f ms", after_ms(model, touch->first_ns));
    if (touch->low_bytes <= touch->high_bytes && size_bytes)
        buf_printf(&text, ", %.0f-%.0f %% of the block", 100 * (double)touch->low_bytes / (double)size_bytes,
                   100 * (double)(touch->high_bytes + 1) / (double)size_bytes);
    buf_printf(&text, ": ");
    put_place(model, &touch->place, &text);
    buf_printf(out, "%9s", "");
    text_style(out, job, TEXT_DIM);
    text_wrapped(out, job, text.data ? text.data : "", 9, 18);
    text_style(out, job, TEXT_PLAIN);
    buf_fini(&text);
}

/* The size that the places in a block are parts of; 0 when blocks differ. */
static uint64_t block_bytes(const struct report_row *row)
{
    return row->n_blocks == 1 ? row->size_bytes : row->variable->max_block_bytes;
}

static void put_variable(const struct touch_report *made, const struct export_job *job, const struct report_row *row,
                         struct buf *out)
{
    const struct touched *touched = first_touch_of(&made->prepared.touches, row);
    struct buf text = {0};
    char size[16];
    text_size(row->size_bytes, size);
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%5.1f %%  ", row->share);
    text_cut(out, job, row->name, job->columns > 60 ? job->columns - 40 : 20);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  %s, %s", row->class, size);
    if (*row->site) {
        buf_printf(out, ", ");
        text_cut(out, job, row->site, 40);
    }
    buf_printf(out, "\n%9s", "");
    (void)first_touch_put_sentence(&made->prepared.touches, row, &text);
    text_wrapped(out, job, text.data ? text.data : "", 9, 9);
    const struct touch_row *touch = row_at(&made->prepared.touches, touched, 1);
    for (size_t i = 0; touch && (i < 8 || job->top == 0) && (touch = row_at(&made->prepared.touches, touched, i)); i++)
        put_toucher(made, job, touch, block_bytes(row), out);
    buf_fini(&text);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct touch_report made = {0};
    size_t n = 0;
    int code = make(job, &made, err);
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(
        out, job, "note",
        made.prepared.touches.is_complete
            ? "Every page fault was taken. Those in system calls, such as read(), are not seen, and a huge page "
              "has one for all of it. What calloc or memset do, their callers do."
            : "Page faults were sampled at a limited rate: shares and parts of blocks are rough where many pages "
              "are touched in a short time (FAULTS@1 takes every one). Those in system calls, such as read(), are "
              "not seen, and a huge page has one for all of it. What calloc or memset do, their callers do.");
    for (size_t i = 0; i < made.prepared.report.n_rows; i++) {
        const struct report_row *row = &made.prepared.report.rows[i];
        if (!is_shown(&made, row) || !job_shows(job, row->share, 0))
            continue;
        if (job_shows(job, row->share, n))
            put_variable(&made, job, row, out);
        n++;
    }
    if (job->top && n > job->top)
        buf_printf(out, "\n         %zu more (--top 0 shows all)\n", n - job->top);
    touch_report_fini(&made);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column head_columns[] = {
    {"threads_are", NULL, CELL_TEXT},
};

/* Behind the thread. */
static const struct column touch_columns[] = {
    {"node", NULL, CELL_COUNT | COLUMN_LEFT_OUT},
    PLACE_COLUMNS,
    {"samples", NULL, CELL_WORD},
    {"faults", NULL, CELL_WORD},
    {"faults_share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"first_ns", NULL, CELL_WORD},
    {"low_byte", NULL, CELL_WORD | COLUMN_LEFT_OUT},
    {"high_byte", NULL, CELL_WORD | COLUMN_LEFT_OUT},
};

static const struct column user_columns[] = {{"thread", NULL, CELL_TEXT}};

static const struct column row_columns[] = {
    VARIABLE_COLUMNS,
    {"size_bytes", NULL, CELL_WORD},
    {"share", NULL, CELL_PERCENT | COLUMN_6_DIGITS},
    {"first_touch", NULL, CELL_TEXT | COLUMN_NO_CSV},
    {"touchers", NULL, CELL_TABLE | COLUMN_JOINED},
    {"users", NULL, CELL_TABLE | COLUMN_BARE},
    {"touchers", NULL, CELL_COUNT | COLUMN_NO_JSON},
    {"users", NULL, CELL_COUNT | COLUMN_NO_JSON},
};

static void fill_thread(struct table *table, const struct touch_report *made, uint32_t thread)
{
    struct buf name = {0};
    split_put_thread(made->prepared.report.model, &made->naming, thread, &name);
    table_put_made(table, &name);
}

static void fill_touch(struct table *table, const struct touch_report *made, const struct touch_row *touch)
{
    const struct model *model = made->prepared.report.model;
    bool has_part = touch->low_bytes <= touch->high_bytes;
    fill_thread(table, made, touch->thread);
    table_put_if(table, touch->node != PLACE_UNKNOWN, touch->node);
    table_put_place(table, model_text(model, touch->place.function), model_text(model, touch->place.file),
                    touch->place.line);
    table_put_word(table, touch->n_samples);
    table_put_word(table, touch->n_faults);
    table_put_number(table, touch->share);
    table_put_word_if(table, touch->first_ns > 0, touch->first_ns);
    table_put_word_if(table, has_part, touch->low_bytes);
    table_put_word_if(table, has_part, touch->high_bytes);
}

static void fill_touches(struct table *table, const struct touch_report *made, const struct touched *touched)
{
    const struct touch_row *touch;
    for (size_t i = 0; (touch = row_at(&made->prepared.touches, touched, i)); i++)
        fill_touch(table, made, touch);
}

static void fill_row(struct table *table, const struct touch_report *made, const struct report_row *row)
{
    const struct touched *touched = first_touch_of(&made->prepared.touches, row);
    struct buf text = {0};
    bool has_sentence = first_touch_put_sentence(&made->prepared.touches, row, &text);
    table_put_variable(table, row->name, row->class, row->site);
    table_put_word(table, row->size_bytes);
    table_put_number(table, row->share);
    if (has_sentence)
        table_put_made(table, &text);
    else
        table_put_absent(table);
    if (!touched) {
        table_put_absents(table, 4);
        return;
    }
    fill_touches(table_put_table(table, table->joined, table->n_joined), made, touched);
    struct table *users = table_put_table(table, COLUMNS(user_columns));
    for (size_t i = 0; i < touched->n_users; i++)
        fill_thread(users, made, made->prepared.touches.users[touched->first_user + i]);
    table_put_count(table, (int64_t)touched->n_touchers);
    table_put_count(table, (int64_t)touched->n_users);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct touch_report made = {0};
    size_t n = 0;
    int code = make(job, &made, err);
    if (code != 0)
        return code;
    column_list_make(&answer->cells, "thread", split_thread_key(&made.naming), CELL_TEXT | COLUMN_CSV_TITLE);
    column_list_add(&answer->cells, COLUMNS(touch_columns));
    answer_begin(answer, "variables", COLUMNS(row_columns));
    table_put_text(answer_set_head(answer, COLUMNS(head_columns)), split_thread_key(&made.naming));
    for (size_t i = 0; i < made.prepared.report.n_rows; i++) {
        const struct report_row *row = &made.prepared.report.rows[i];
        if (!is_shown(&made, row) || !job_shows(job, row->share, 0))
            continue;
        if (job_shows(job, row->share, n++))
            fill_row(&answer->rows, &made, row);
        else
            answer->rows.n_more++;
    }
    touch_report_fini(&made);
    return 0;
}

const struct report_kind answer_first_touch = {
    .name = "first-touch",
    .operands = "DB",
    .summary = "which threads touched the pages of each variable first, and where",
    .manual =
        "first-touch prints which threads touched the pages of each variable first, where in the program, when and "
        "in which part of the block, and which threads used it: a page lies on the NUMA node of the thread that "
        "touched it first. It takes a measurement with page faults, which hpcrun samples by default where it can "
        "(FAULTS).",
    .example = "first-touch hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(PATHS) | ASK(ORDER),
    .forms = {.make = make_answer, .text = write_text},
};
