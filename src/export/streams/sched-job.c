/* SPDX-License-Identifier: BSD-3-Clause */
/* What all reports about streams share: what is wanted of them, and the head that says what they can know. */
#include "export/streams/sched-report.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "table/table.h"
#include "fmt/json.h"
#include "streams/couplebreak.h"

/* --- lists --- */

/* The next word of a list separated by commas, without blanks around; false at its end. word [256] */
static bool next_word(const char **list, char *word)
{
    size_t len;
    do {
        *list += strspn(*list, ", ");
        len = strcspn(*list, ",");
        if (len > 255)
            len = 255;
        memcpy(word, *list, len);
        *list += len;
        while (len && word[len - 1] == ' ')
            len--;
        word[len] = 0;
    } while (!len && **list);
    return len > 0;
}

static bool is_number(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == 0;
}

/* Whether a task ever had a name like this, or has it where the recording names tasks. */
static bool is_called(const struct stream *stream, int32_t task, const char *pattern)
{
    const char *name;
    for (size_t i = 0; (name = stream_comm_number(stream, task, i)) != NULL; i++)
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    return fnmatch(pattern, stream_comm(stream, task), 0) == 0;
}

/* Whether a task is called so as rows are: "NAME:42", or with all its names, "alpha, then beta:42". */
static bool is_row_name(const struct stream *stream, int32_t task, const char *word)
{
    const char *colon = strrchr(word, ':');
    struct buf names = {0};
    if (!colon || !is_number(colon + 1) || strtol(colon + 1, NULL, 10) != task)
        return false;
    char *name = strndup(word, (size_t)(colon - word));
    stream_put_comms(stream, task, &names);
    bool is_one = name && (is_called(stream, task, name) || (!names.failed && strcmp(names.data, name) == 0));
    buf_fini(&names);
    free(name);
    return is_one;
}

static bool is_named(const struct stream *stream, int32_t task, const char *word)
{
    return is_number(word) ? strtol(word, NULL, 10) == task
                           : is_called(stream, task, word) || is_row_name(stream, task, word);
}

bool sched_wants_task(const struct sched_job *job, const struct stream *stream, int32_t task)
{
    char word[256];
    if (job->tasks && strchr(job->tasks, ',') && is_named(stream, task, job->tasks)) /* a name may have commas */
        return true;
    for (const char *list = job->tasks; list && next_word(&list, word);)
        if (is_named(stream, task, word))
            return true;
    return !job->tasks;
}

/* A number or a range; false when it is neither. */
static bool take_range(const char *word, unsigned long *first, unsigned long *last)
{
    char *end;
    *first = *last = strtoul(word, &end, 10);
    if (end == word || !strchr("0123456789", *word))
        return false;
    if (*end == '-' && strchr("0123456789", end[1]) && end[1])
        *last = strtoul(end + 1, &end, 10);
    return !*end && *first <= *last;
}

bool sched_wants_cpu(const struct sched_job *job, uint16_t cpu)
{
    char word[256];
    unsigned long first, last;
    for (const char *list = job->cpus; list && next_word(&list, word);)
        if (take_range(word, &first, &last) && cpu >= first && cpu <= last && cpu != STREAM_NO_CPU)
            return true;
    return !job->cpus;
}

bool sched_wants_event(const struct sched_job *job, const char *name)
{
    char word[256];
    for (const char *list = job->events; list && next_word(&list, word);) {
        char *colon = strchr(word, ':'); /* as perf writes them */
        if (colon)
            *colon = '/';
        /* brackets are part of the names of twins */
        if (strcmp(word, name) == 0 || strcmp(word, path_last(name)) == 0 || fnmatch(word, name, 0) == 0 ||
            fnmatch(word, path_last(name), 0) == 0)
            return true;
    }
    return !job->events;
}

int sched_job_check(const struct sched_job *job, struct error *err)
{
    char word[256];
    unsigned long first, last;
    for (const char *list = job->cpus; list && next_word(&list, word);)
        if (!take_range(word, &first, &last))
            return error_set(err, ERR_USAGE, "--cpu takes numbers and ranges such as 0-3,8, not '%s'", word);
    const char *const lists[] = {job->tasks, job->cpus, job->events};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *list = lists[i];
        if (list && !next_word(&list, word))
            return error_set(err, ERR_USAGE, "%s takes a list", i == 0 ? "--task" : i == 1 ? "--cpu" : "--event");
    }
    return 0;
}

/* --- streams --- */

bool sched_knows_runs(const struct stream *stream)
{
    return stream->tier == STREAM_TIER_FULL || stream->tier == STREAM_TIER_SWITCHES ||
           stream->tier == STREAM_TIER_PROGRAM || (stream->tier == STREAM_TIER_OWN && stream->is_synthesised);
}

bool sched_extent(const struct sched_job *job, int64_t *from_ns, int64_t *to_ns)
{
    bool has_any = false;
    for (size_t i = 0; i < job->n_streams; i++) {
        const struct stream *stream = job->streams[i].stream;
        if (!stream->n_events)
            continue;
        int64_t first_ns = stream->events[0].t_ns, last_ns = stream->events[stream->n_events - 1].t_ns;
        *from_ns = !has_any || first_ns < *from_ns ? first_ns : *from_ns;
        *to_ns = !has_any || last_ns > *to_ns ? last_ns : *to_ns;
        has_any = true;
    }
    if (!has_any)
        return false;
    *from_ns = *from_ns < job->window.from_ns ? job->window.from_ns : *from_ns;
    *to_ns = *to_ns > job->window.to_ns ? job->window.to_ns : *to_ns;
    return *from_ns <= *to_ns;
}

const char *sched_comm(const struct stream *stream, int32_t task, int64_t t_ns)
{
    const char *last = stream_comm_at(stream, task, t_ns), *next;
    for (size_t i = 0; t_ns == SCHED_ALL_TIMES && (next = stream_comm_number(stream, task, i)) != NULL; i++)
        last = next;
    return last;
}

void sched_put_task(const struct sched_job *job, size_t i, int32_t task, int64_t t_ns, struct buf *out)
{
    const struct stream *stream = job->streams[i].stream;
    if (task == STREAM_NO_TASK)
        buf_printf(out, "<none>");
    else if (t_ns == SCHED_ALL_TIMES)
        stream_put_comms(stream, task, out);
    else
        buf_printf(out, "%s", stream_comm_at(stream, task, t_ns));
    if (task != STREAM_NO_TASK)
        buf_printf(out, ":%" PRId32, task);
    if (job->n_streams > 1)
        buf_printf(out, " [%zu]", i);
}

static int compare_words(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int sched_cpu_rows(const struct sched_job *job, size_t i, const struct schedule *sched, uint32_t **cpus, size_t *n,
                   struct error *err)
{
    size_t n_all = job->streams[i].stream->n_cpus > sched->n_cpus ? job->streams[i].stream->n_cpus : sched->n_cpus;
    *n = 0;
    *cpus = calloc(n_all + 1, sizeof **cpus);
    if (!*cpus)
        return error_memory(err);
    for (size_t cpu = 0; cpu < n_all && cpu < STREAM_NO_CPU; cpu++)
        if (sched_wants_cpu(job, (uint16_t)cpu))
            (*cpus)[(*n)++] = (uint32_t)cpu;
    if (*n)
        qsort(*cpus, *n, sizeof **cpus, compare_words);
    size_t n_ordered = stream_views_order(job->views, (uint32_t)i, *cpus, *n);
    if (n_ordered == SIZE_MAX)
        return error_memory(err);
    *n = n_ordered;
    return 0;
}

/* --- heads --- */

/* The tier in a word. */
static const char *tier_word(const struct stream *stream)
{
    static const char *const words[] = {"full", "switches", "program", "own", "none"};
    return words[stream->tier];
}

static void put_stream_text(const struct sched_job *job, size_t i, struct buf *out)
{
    const struct axis_stream *axis = &job->streams[i];
    const struct stream *stream = axis->stream;
    if (job->n_streams > 1)
        buf_printf(out, "[%zu] ", i);
    printable_put(out, stream->path);
    buf_printf(out, ": %s", stream->kind);
    if (stream->host) {
        buf_printf(out, ", host ");
        printable_put(out, stream->host);
    }
    buf_printf(out, ", %" PRIu32 " CPU%s, %zu events", stream->n_cpus, stream->n_cpus == 1 ? "" : "s",
               stream->n_events);
    if (couplebreak_is_on(stream))
        buf_printf(out, ", couplebreak with %d type%s of twins", couplebreak_n_types(stream),
                   couplebreak_n_types(stream) == 1 ? "" : "s");
    if (stream->n_lost_places)
        buf_printf(out, ", at least %" PRIu64 " lost at %" PRIu64 " places", stream->n_lost, stream->n_lost_places);
    buf_printf(out, "\n  clock: %s", stream_clock_name(stream->clock));
    if (axis->way != AXIS_FIRST || stream->offset_ns) {
        buf_printf(out, "; moved by ");
        span_put(out, stream->offset_ns);
        buf_printf(out, " (%s)", axis_way_name(axis->way));
    }
    bool has_totals = stream->tier == STREAM_TIER_NONE && stream->n_totals;
    buf_printf(out, "\n  known: %s%s\n",
               has_totals ? "what the kernel counted of threads until they were looked at last"
                          : stream_tier_name(stream->tier),
               stream->is_synthesised ? " (joined from records of single threads)" : "");
    if (stream->note) {
        buf_printf(out, "  note: ");
        printable_put(out, stream->note);
        buf_append(out, "\n", 1);
    }
}

void sched_put_head(const struct sched_job *job, struct buf *out)
{
    int64_t from_ns, to_ns;
    for (size_t i = 0; i < job->n_streams; i++)
        put_stream_text(job, i, out);
    if (sched_extent(job, &from_ns, &to_ns)) {
        buf_printf(out, "time:   ");
        time_put(out, from_ns, job->time_form);
        buf_printf(out, " - ");
        time_put(out, to_ns, job->time_form);
        buf_printf(out, " s (");
        span_put(out, to_ns - from_ns);
        buf_printf(out, ")\n");
    }
    buf_append(out, "\n", 1);
}

static void put_number_at(struct buf *out, const char *key, int64_t value)
{
    json_put_key(out, key, 0);
    buf_printf(out, "%" PRId64, value);
}

static void put_couplebreak(struct buf *out, const struct stream *stream)
{
    int32_t ids[COUPLEBREAK_N];
    int n = couplebreak_ids(stream, ids);
    json_put_key(out, "couplebreak", 0);
    buf_printf(out, "{\"on\": %s, \"types\": %d, \"flags\": %" PRIu64 ", \"ids\": {",
               couplebreak_is_on(stream) ? "true" : "false", couplebreak_n_types(stream), couplebreak_flags(stream));
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s\"%s\": %" PRId32, i ? ", " : "", couplebreak_name(ids[i]), ids[i]);
    buf_printf(out, "}}");
}

void sched_put_json_head(const struct sched_job *job, const char *name, struct buf *out)
{
    buf_printf(out, "{\"report\": ");
    json_put_text(out, name);
    buf_printf(out, ", \"streams\": [");
    for (size_t i = 0; i < job->n_streams; i++) {
        const struct axis_stream *axis = &job->streams[i];
        const struct stream *stream = axis->stream;
        buf_printf(out, "%s\n  {\"path\": ", i ? "," : "");
        json_put_text(out, stream->path);
        json_put_text_at(out, "kind", stream->kind);
        json_put_text_at(out, "host", stream->host);
        json_put_text_at(out, "clock", stream_clock_name(stream->clock));
        json_put_text_at(out, "tier", tier_word(stream));
        json_put_text_at(out, "knows", stream_tier_name(stream->tier));
        json_put_key(out, "synthesised", 0);
        buf_printf(out, stream->is_synthesised ? "true" : "false");
        json_put_text_at(out, "note", stream->note);
        json_put_text_at(out, "topology", stream->topology);
        json_put_text_at(out, "alignment", axis_way_name(axis->way));
        put_number_at(out, "offset_ns", stream->offset_ns);
        put_number_at(out, "cpus", stream->n_cpus);
        put_number_at(out, "events", (int64_t)stream->n_events);
        put_number_at(out, "lost", (int64_t)stream->n_lost);
        put_couplebreak(out, stream);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

void sched_put_stream(struct table *table, const struct sched_job *job, size_t i)
{
    table_put_count(table, (int64_t)i);
    table_put_text(table, stream_clock_name(job->streams[i].stream->clock));
    table_put_text(table, tier_word(job->streams[i].stream));
}

void sched_put_table(const struct sched_job *job, const char *name, const struct table *table, struct buf *out)
{
    if (strcmp(job->form, "csv") == 0) {
        table_print_csv(table, out);
    } else if (strcmp(job->form, "json") == 0) {
        sched_put_json_head(job, name, out);
        buf_printf(out, ",\n\"rows\": ");
        table_print_json(table, "\n  ", out);
        buf_printf(out, "}\n");
    } else {
        sched_put_head(job, out);
        table_print_text(table, out);
        if (table->n_more)
            buf_printf(out, "%zu more (--top 0 shows all)\n", table->n_more);
    }
}
