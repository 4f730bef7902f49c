/* SPDX-License-Identifier: BSD-3-Clause */
/* What looks at measured processes saw, for people and as JSON. Ordinary code. */
#include "running/running.h"

#include <stdlib.h>
#include <string.h>

#include "arena/fate.h"
#include "fmt/json.h"

static uint64_t n_taken(const struct live *live)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < live->n_events; i++)
        n += live->events[i].n_taken;
    return n;
}

static bool is_dropped(int fate)
{
    return !fate_is_recorded(fate) && fate < FATE_TAKEN_MAX;
}

static uint64_t n_dropped(const struct live *live)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < live->n_events; i++)
        for (int fate = 0; fate < FATE_TAKEN_MAX; fate++)
            n += is_dropped(fate) ? live->events[i].fates[fate] : 0;
    return n;
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= (unit ? 1023.95 : 1024) && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    (void)fprintf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* Characters that would move the cursor become '?'. */
static void put_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        (void)fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
}

static void put_fates(FILE *out, const struct live_event *event)
{
    uint64_t n_decided = 0;
    const char *separator = "";
    bool is_beside = false;
    (void)fprintf(out, "          ");
    for (int fate = 0; fate < FATE_MAX; fate++) {
        n_decided += fate < FATE_TAKEN_MAX ? event->fates[fate] : 0;
        if (!event->fates[fate])
            continue;
        if (fate >= FATE_TAKEN_MAX && !is_beside)
            separator = "; not among them: ";
        is_beside |= fate >= FATE_TAKEN_MAX;
        (void)fprintf(out, "%s%llu %s", separator, (unsigned long long)event->fates[fate], fate_row(fate)->name);
        separator = ", ";
    }
    if (event->n_taken > n_decided)
        (void)fprintf(out, "%s%llu under way", separator, (unsigned long long)(event->n_taken - n_decided));
    (void)fprintf(out, "\n");
}

static double share(double part, double all)
{
    return all > 0 ? 100 * part / all : 0;
}

/* What is told, in this order. */
static const struct kind_row {
    enum live_kind kind;
    const char *title, *word, *key, *site_key; /* the last two: in JSON */
    size_t n_rows;
} kinds[] = {
    {LIVE_VARIABLE, "variable", "variables", "variable", "alloc_site", RUNNING_ROWS},
    {LIVE_CODE, "function", "functions", "function", "file", 6},
    {LIVE_THREAD, "thread", "threads_by_samples", "thread", NULL, 6},
    {LIVE_CLASS, "cause", "causes", "cause", NULL, 6},
    {LIVE_WAIT, "waits in", "waiting", "function", "file", 4},
    {LIVE_MEMORY, "memory in use", "memory", "variable", "alloc_site", 6},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, ALL_AT = 3 /* the causes: their sums are of all samples */ };

static void put_memory_row(const struct running_row *row, const struct running_table *table, FILE *out)
{
    (void)fprintf(out, "%5.1f %%  ", share(row->value, table->value_all));
    put_bytes(out, (uint64_t)(row->value > 0 ? row->value : 0));
    (void)fprintf(out, " in %.0f block%s, %c", row->n, row->n == 1 ? "" : "s", row->value_lately < 0 ? '-' : '+');
    put_bytes(out, (uint64_t)(row->value_lately < 0 ? -row->value_lately : row->value_lately));
    (void)fprintf(out, " lately  ");
    put_plain(out, row->name);
    if (*row->site && strcmp(row->site, row->name) != 0)
        (void)fprintf(out, "  ");
    put_plain(out, strcmp(row->site, row->name) ? row->site : "");
    (void)fprintf(out, "\n");
}

/* Behind the names: lately is not known before the second look. */
static void put_shares(const struct running_row *row, const struct running_table *whole, bool has_lately, FILE *out)
{
    (void)fprintf(out, "%5.1f %% ", share(row->value, whole->value_all));
    if (has_lately)
        (void)fprintf(out, "%5.1f %% ", share(row->value_lately, whole->value_all_lately));
    else
        (void)fprintf(out, "      - ");
    (void)fprintf(out, "%9.0f  ", row->n);
}

/* Shares of variables are of all samples, found in data or not. */
static void put_table(const struct kind_row *kind, const struct running_table *table, const struct running_table *whole,
                      bool has_lately, FILE *out)
{
    if (kind->kind == LIVE_MEMORY)
        (void)fprintf(out, "  share  memory in use\n");
    else
        (void)fprintf(out, "  share  lately   samples  %-21s  %s\n", kind->title,
                      kind->kind == LIVE_VARIABLE ? "class         comes from" : "");
    for (size_t i = 0; i < table->n; i++) {
        const struct running_row *row = &table->rows[i];
        if (kind->kind == LIVE_MEMORY) {
            put_memory_row(row, table, out);
            continue;
        }
        put_shares(row, whole, has_lately, out);
        put_plain(out, row->name);
        (void)fprintf(out, "%*s", strlen(row->name) < 21 ? 21 - (int)strlen(row->name) : 0, "");
        if (kind->kind == LIVE_VARIABLE)
            (void)fprintf(out, "  %-12s", row->class);
        (void)fprintf(out, "  ");
        put_plain(out, strcmp(row->site, row->name) ? row->site : "");
        (void)fprintf(out, "\n");
    }
}

#define ROWS_LEAST 2 /* before a table goes as a whole */

/* Leaves out rows of the longest table, then the tables that say least, until all have room; n_beside: lines of each
 * beside its rows. Whether something was left out. */
static bool fit_tables(struct running_table tables[N_KINDS], size_t n_beside, size_t n_room)
{
    static const size_t leaves_first[N_KINDS] = {2, 4, 3, 5, 1, 0}; /* threads first, variables last */
    bool has_left = false;
    size_t n_gone = 0;
    for (;;) {
        size_t n_lines = 0, longest = 0;
        for (size_t i = 0; i < N_KINDS; i++) {
            n_lines += tables[i].n ? tables[i].n + n_beside : 0;
            longest = tables[i].n > tables[longest].n ? i : longest;
        }
        if (n_lines <= n_room || !n_lines)
            return has_left;
        has_left = true;
        if (tables[longest].n > ROWS_LEAST)
            tables[longest].n--;
        else
            tables[leaves_first[n_gone++]].n = 0;
    }
}

/* n_room: lines that there are for them. */
static bool put_tables(struct running_process *process, bool by_lately, bool is_short, size_t n_room, FILE *out)
{
    static struct running_table tables[N_KINDS];
    const struct running_table *whole;
    for (size_t i = 0; i < N_KINDS; i++) {
        running_sum(process, kinds[i].kind, by_lately, &tables[i]);
        tables[i].n = tables[i].n < kinds[i].n_rows ? tables[i].n : kinds[i].n_rows;
    }
    bool has_left = fit_tables(tables, is_short ? 1 : 2, n_room);
    for (size_t i = 0; i < N_KINDS; i++) {
        whole = &tables[kinds[i].kind == LIVE_VARIABLE ? ALL_AT : i];
        if (!tables[i].n)
            continue;
        (void)fprintf(out, is_short ? "" : "\n");
        put_table(&kinds[i], &tables[i], whole, running_window_s(process) > 0, out);
    }
    return has_left;
}

/* What its owner has asked for. */
static void put_wishes(const struct live *live, FILE *out)
{
    if (live->paused_ns)
        (void)fprintf(out, "paused    %.1f s in all, from outside\n", (double)live->paused_ns / 1e9);
    if (live->slow_least)
        (void)fprintf(out, "rate      at most 1/%u of what it was started with\n", 1u << live->slow_least);
    if (*live->phase) {
        (void)fprintf(out, "phase     ");
        put_plain(out, live->phase);
        (void)fprintf(out, "\n");
    }
}

#define LINES_SHORT 40 /* fewer: the head says only how it goes */

static void put_events(const struct running_process *process, bool is_short, FILE *out)
{
    const struct live *live = &running_now(process)->live;
    double window_s = running_window_s(process);
    for (uint32_t i = 0; i < live->n_events; i++) {
        const struct live_event *event = &live->events[i];
        put_plain(out, event->name);
        (void)fprintf(out, "%*s %llu samples, %.0f/s since the start",
                      strlen(event->name) < 9 ? (int)(9 - strlen(event->name)) : 0, "",
                      (unsigned long long)event->n_taken, (double)event->n_taken / running_elapsed_s(process));
        if (window_s > 0 && window_s < 1.5)
            (void)fprintf(out, ", %.0f/s in the last second", running_rate_now(process, i));
        else if (window_s > 0)
            (void)fprintf(out, ", %.0f/s in the last %.0f s", running_rate_now(process, i), window_s);
        (void)fprintf(out, "\n");
        if (event->n_taken && !is_short)
            put_fates(out, event);
    }
}

static void put_memory(const struct live *live, FILE *out)
{
    (void)fprintf(out, "dropped   %llu samples\nmemory    ", (unsigned long long)n_dropped(live));
    put_bytes(out, live->used_bytes);
    (void)fprintf(out, " of ");
    put_bytes(out, live->limit_bytes);
    (void)fprintf(out, " for records; %llu blocks (", (unsigned long long)live->n_blocks);
    put_bytes(out, live->bytes);
    (void)fprintf(out, ") recorded so far\n");
}

static void put_head(const struct running_process *process, bool is_short, FILE *out)
{
    const struct live *live = &running_now(process)->live;
    char told[RUNNING_TOLD_BYTES];
    (void)fprintf(out, "process   %ld: ", (long)process->pid);
    put_plain(out, live->exe[0] ? live->exe : "(starting)");
    if (!is_short) {
        (void)fprintf(out, "\ninto      ");
        put_plain(out, process->dir);
    }
    (void)fprintf(out, "\n%s %.1f s, %llu thread%s (%llu ended), sampling is %s\n",
                  process->ended_at_s > 0 ? "has ended" : "running  ", running_elapsed_s(process),
                  (unsigned long long)live->n_threads_live, live->n_threads_live == 1 ? "" : "s",
                  (unsigned long long)(live->n_threads - live->n_threads_live),
                  live->is_paused     ? "paused"
                  : live->is_sampling ? "on"
                                      : "off");
    if (running_tell_companion(process, told, sizeof told))
        (void)fprintf(out, "companion %s\n", told);
    put_events(process, is_short, out);
    if (!is_short || n_dropped(live))
        put_memory(live, out);
    put_wishes(live, out);
}

static size_t count_lines(const char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += text[i] == '\n';
    return n;
}

bool running_print_one(struct running_process *process, bool by_lately, size_t n_lines, FILE *out)
{
    bool is_short = n_lines && n_lines < LINES_SHORT;
    char *text = NULL;
    size_t n_bytes = 0, n_head;
    FILE *head = open_memstream(&text, &n_bytes);
    if (!head)
        return false;
    put_head(process, is_short, head);
    (void)fclose(head);
    n_head = text ? count_lines(text, n_bytes) : 0;
    (void)fwrite(text ? text : "", 1, text ? n_bytes : 0, out);
    free(text);
    bool has_left = put_tables(process, by_lately, is_short,
                               !n_lines           ? SIZE_MAX
                               : n_lines > n_head ? n_lines - n_head
                                                  : 0,
                               out);
    return has_left || is_short;
}

static void put_rank(const struct live *live, bool has_ranks, FILE *out)
{
    if (has_ranks)
        (void)fprintf(out, "  rank %u", live->rank);
}

static double rate_now(const struct running_process *process)
{
    double rate = 0;
    for (uint32_t e = 0; e < running_now(process)->live.n_events; e++)
        rate += running_rate_now(process, e);
    return rate;
}

/* Of two, whether the first has less to show: fewer samples lately, or in all. */
static bool is_idler(const struct running_process *a, const struct running_process *b)
{
    double x = rate_now(a), y = rate_now(b);
    return x != y ? x < y : n_taken(&running_now(a)->live) < n_taken(&running_now(b)->live);
}

void running_find_busiest(const struct running_list *list, size_t *order, size_t n)
{
    for (size_t i = 0, n_found = 0; i < list->n; i++) {
        size_t at = n_found < n ? n_found++ : n;
        for (; at > 0 && is_idler(&list->processes[order[at - 1]], &list->processes[i]); at--)
            if (at < n)
                order[at] = order[at - 1];
        if (at < n)
            order[at] = i;
    }
}

static void put_process_line(const struct running_process *process, bool has_ranks, FILE *out)
{
    const struct live *live = &running_now(process)->live;
    (void)fprintf(out, "%7ld %10.1f %8llu %10llu %12.0f %9llu %6.1f MiB  ", (long)process->pid,
                  running_elapsed_s(process), (unsigned long long)live->n_threads_live,
                  (unsigned long long)n_taken(live), rate_now(process), (unsigned long long)n_dropped(live),
                  (double)live->used_bytes / 1048576);
    put_plain(out, live->program);
    (void)fprintf(out, "  ");
    put_plain(out, process->dir);
    put_rank(live, has_ranks, out);
    (void)fprintf(out, process->ended_at_s > 0                   ? "  has ended\n"
                       : process->is_kept_by == COMPANION_DEAD   ? "  without its companion\n"
                       : process->is_kept_by == COMPANION_SILENT ? "  its companion does not answer\n"
                                                                 : "\n");
}

static void put_list(struct running_list *list, const size_t *order, size_t n, FILE *out)
{
    (void)fprintf(out, "    PID    SECONDS  THREADS    SAMPLES   PER SECOND   DROPPED     MEMORY  PROGRAM, "
                       "DIRECTORY\n");
    bool has_ranks = false;
    for (size_t i = 0; i < list->n; i++)
        has_ranks |= running_now(&list->processes[i])->live.rank > 0;
    for (size_t i = 0; i < n; i++)
        put_process_line(&list->processes[order ? order[i] : i], has_ranks, out);
}

void running_print_list(struct running_list *list, FILE *out)
{
    put_list(list, NULL, list->n, out);
}

void running_print_some(struct running_list *list, const size_t *order, size_t n, FILE *out)
{
    put_list(list, order, n, out);
    if (n < list->n)
        (void)fprintf(out, "        %zu more\n", list->n - n);
}

static void json_events(const struct running_process *process, struct buf *out)
{
    const struct live *live = &running_now(process)->live;
    json_put_key(out, "events", 0);
    buf_printf(out, "[");
    for (uint32_t i = 0; i < live->n_events; i++) {
        const struct live_event *event = &live->events[i];
        bool is_first = true;
        buf_printf(out, i ? ", {\"name\": " : "{\"name\": ");
        json_put_text(out, event->name);
        json_put_word_at(out, "taken", event->n_taken);
        json_put_double_at(out, "per_second", (double)event->n_taken / running_elapsed_s(process));
        json_put_double_at(out, "per_second_now", running_rate_now(process, i));
        json_put_key(out, "fates", 0);
        buf_printf(out, "{");
        for (int fate = 0; fate < FATE_MAX; fate++) {
            if (!event->fates[fate])
                continue;
            json_put_key(out, fate_row(fate)->name, is_first);
            json_put_word(out, event->fates[fate]);
            is_first = false;
        }
        buf_printf(out, "}}");
    }
    buf_printf(out, "]");
}

static void json_rows(struct running_process *process, const struct kind_row *kind, struct buf *out)
{
    static struct running_table table;
    running_sum(process, kind->kind, false, &table);
    json_put_key(out, kind->word, 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < table.n; i++) {
        const struct running_row *row = &table.rows[i];
        buf_printf(out, i ? ", {" : "{");
        json_put_key(out, kind->key, 1);
        json_put_text(out, row->name);
        if (*row->class)
            json_put_text_at(out, "class", row->class);
        if (kind->site_key)
            json_put_text_at(out, kind->site_key, row->site);
        bool is_memory = kind->kind == LIVE_MEMORY;
        json_put_word_at(out, is_memory ? "blocks" : "samples", (uint64_t)(row->n > 0 ? row->n + 0.5 : 0));
        json_put_double_at(out, is_memory ? "bytes" : "value", row->value);
        json_put_double_at(out, is_memory ? "blocks_lately" : "samples_lately", row->n_lately);
        json_put_double_at(out, is_memory ? "bytes_lately" : "value_lately", row->value_lately);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void json_sums(struct running_process *process, struct buf *out)
{
    static struct running_table all;
    running_sum(process, LIVE_CLASS, false, &all);
    json_put_double_at(out, "window_s", running_window_s(process));
    json_put_word_at(out, "address_samples", (uint64_t)(all.n_all + 0.5));
    json_put_double_at(out, "samples_lately", all.n_all_lately);
    json_put_double_at(out, "value", all.value_all);
    json_put_double_at(out, "value_lately", all.value_all_lately);
    for (size_t i = 0; i < N_KINDS; i++)
        json_rows(process, &kinds[i], out);
}

static void put_bool_at(struct buf *out, const char *key, bool is)
{
    json_put_key(out, key, 0);
    buf_printf(out, is ? "true" : "false");
}

static void json_process(struct running_process *process, struct buf *out)
{
    static const char *const companions[] = {"answers", "silent", "dead"};
    const struct live *live = &running_now(process)->live;
    buf_printf(out, "{\"pid\": ");
    json_put_word(out, (uint64_t)process->pid);
    json_put_text_at(out, "program", live->program);
    json_put_text_at(out, "executable", live->exe);
    json_put_text_at(out, "directory", process->dir);
    json_put_word_at(out, "rank", live->rank);
    json_put_double_at(out, "elapsed_s", running_elapsed_s(process));
    put_bool_at(out, "ended", process->ended_at_s > 0);
    json_put_text_at(out, "companion", companions[process->is_kept_by]);
    json_put_word_at(out, "threads", live->n_threads_live);
    json_put_word_at(out, "threads_ended", live->n_threads - live->n_threads_live);
    put_bool_at(out, "sampling", live->is_sampling);
    json_put_word_at(out, "dropped", n_dropped(live));
    json_put_word_at(out, "memory_bytes", live->used_bytes);
    json_put_word_at(out, "memory_limit_bytes", live->limit_bytes);
    json_put_word_at(out, "blocks", live->n_blocks);
    json_put_word_at(out, "block_bytes", live->bytes);
    json_events(process, out);
    put_bool_at(out, "paused", live->is_paused);
    json_put_double_at(out, "paused_s", (double)live->paused_ns / 1e9);
    json_put_word_at(out, "rate_divisor", UINT64_C(1) << live->slow_least);
    json_put_text_at(out, "phase", live->phase);
    json_sums(process, out);
    buf_printf(out, "}");
}

void running_print_json(struct running_list *list, struct buf *out)
{
    buf_printf(out, "{\"processes\": [");
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        json_process(&list->processes[i], out);
    }
    buf_printf(out, "]}\n");
}
