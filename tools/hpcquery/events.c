/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery events: the logs of samples of a measurement, all threads and hosts on one axis of time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "export/text-cells.h"
#include "fmt/events.h"
#include "fmt/objects.h"
#include "database/database.h"
#include "hpcquery.h"
#include "measurement/names.h"

/* The log of one thread. */
struct log {
    struct names_file name;
    struct events_file file;
    struct objects_file side; /* empty where it is missing: variables then have no names */
};

/* A sample: which one of which log. */
struct moment {
    uint64_t wall_ns;
    uint32_t log, record;
};

struct logs {
    struct log *all; /* [n] */
    size_t n, capacity;
    struct moment *moments; /* [n_moments] by time */
    size_t n_moments, cap_moments;
};

static void logs_fini(struct logs *logs)
{
    for (size_t i = 0; i < logs->n; i++) {
        events_fini(&logs->all[i].file);
        objects_fini(&logs->all[i].side);
    }
    free(logs->all);
    free(logs->moments);
}

/* Adds a log of the directory, with what the side file beside it says. */
static int add_log(const char *directory, const struct names_file *name, struct logs *logs, struct error *err)
{
    struct error ignored;
    if (!vec_reserve(&logs->all, &logs->capacity, logs->n + 1, sizeof *logs->all))
        return error_set(err, ERR_MEMORY, "out of memory");
    struct log *log = &logs->all[logs->n];
    log->name = *name;
    char *path = names_path(directory, name);
    int code = path ? events_read(path, &log->file, err) : error_set(err, ERR_MEMORY, "out of memory");
    free(path);
    if (code)
        return code;
    struct names_file side = log->name;
    (void)snprintf(side.suffix, sizeof side.suffix, "objects");
    path = names_path(directory, &side);
    if (path)
        (void)objects_read(path, &log->side, &ignored);
    objects_sort_variables(&log->side);
    free(path);
    if (!vec_reserve(&logs->moments, &logs->cap_moments, logs->n_moments + log->file.n_records, sizeof *logs->moments))
        return error_set(err, ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < log->file.n_records; i++)
        logs->moments[logs->n_moments++] =
            (struct moment){events_wall_ns(&log->file, &log->file.records[i]), (uint32_t)logs->n, (uint32_t)i};
    logs->n++;
    return 0;
}

static int compare_moments(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->wall_ns != y->wall_ns)
        return x->wall_ns < y->wall_ns ? -1 : 1;
    return x->log != y->log ? (x->log > y->log) - (x->log < y->log) : (x->record > y->record) - (x->record < y->record);
}

static bool is_database(const char *directory)
{
    struct buf name = {0};
    buf_printf(&name, "%s/" DATABASE_FILE, directory);
    bool is_there = !name.failed && access(name.data, F_OK) == 0;
    buf_fini(&name);
    return is_there;
}

/* Whether logs may be in it. */
static bool may_have_logs(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISDIR(info.st_mode);
}

static int read_logs(const char *directory, struct logs *logs, struct error *err)
{
    struct names_file *names;
    size_t n;
    if (!may_have_logs(directory))
        return error_set(err, ERR_NOT_FOUND,
                         "%.600s is no measurement; of recordings of the scheduler hpcquery sched events lists the "
                         "events",
                         directory);
    int code = names_list(directory, "events", &names, &n, err);
    for (size_t i = 0; i < n && !code; i++)
        code = add_log(directory, &names[i], logs, err);
    free(names);
    if (!code && !n)
        code = error_set(err, ERR_NOT_FOUND,
                         is_database(directory)
                             ? "%.600s is a database: the log of samples is in the measurement that it was made of"
                             : "%.600s: no logs of samples are there; hpcrun -t records them",
                         directory);
    if (!code && logs->n_moments)
        qsort(logs->moments, logs->n_moments, sizeof *logs->moments, compare_moments);
    return code;
}

/* --- rows --- */

static void put_csv(const struct log *log, const struct moment *moment, struct buf *out)
{
    const struct events_record *record = &log->file.records[moment->record];
    const struct events_access *access = &log->file.accesses[record->access];
    struct buf text = {0};
    buf_printf(out, "%" PRIu64 ",%08x,%u,%u,%u,%u,", moment->wall_ns, log->name.host_id, log->name.rank, log->name.pid,
               log->name.thread, record->cpu);
    csv_put_text(out, log->file.sources[access->source].name);
    buf_printf(out, ",%s,", events_class_name(access->class));
    objects_put_variable(&log->side, access->variable, &text);
    csv_put_text(out, text.data ? text.data : "");
    buf_printf(out, ",%" PRIu32 ",%" PRIu32 ",", access->variable, access->node);
    if (record->offset != EVENTS_NO_OFFSET)
        buf_printf(out, "%" PRIu64, record->offset);
    buf_append(out, ",", 1);
    if (record->lat_cycles)
        buf_printf(out, "%" PRIu32, record->lat_cycles);
    buf_append(out, ",", 1);
    text.len_bytes = 0;
    events_put_metrics(access->metrics, &text);
    csv_put_text(out, text.len_bytes ? text.data : "");
    buf_append(out, "\n", 1);
    out->failed |= text.failed;
    buf_fini(&text);
}

static void put_line(const struct log *log, const struct moment *moment, uint64_t start_ns, struct buf *out)
{
    const struct events_record *record = &log->file.records[moment->record];
    const struct events_access *access = &log->file.accesses[record->access];
    buf_printf(out, "%12.6f s  %7u.%-3u  CPU %-3u  %-12s  ", (double)(moment->wall_ns - start_ns) * 1e-9, log->name.pid,
               log->name.thread, record->cpu, log->file.sources[access->source].name);
    size_t before = out->len_bytes;
    objects_put_variable(&log->side, access->variable, out);
    if (out->len_bytes == before)
        buf_printf(out, "<%s>", events_class_name(access->class));
    if (record->offset != EVENTS_NO_OFFSET)
        buf_printf(out, " + %" PRIu64, record->offset);
    if (record->lat_cycles)
        buf_printf(out, "  %" PRIu32 " cycles", record->lat_cycles);
    if (access->metrics) {
        buf_append(out, "  ", 2);
        events_put_metrics(access->metrics, out);
    }
    buf_append(out, "\n", 1);
}

/* What is not there, in text. */
static void put_sums(const struct logs *logs, struct buf *out)
{
    uint64_t n_samples = 0, n_kept = 0, stride = 1;
    for (size_t i = 0; i < logs->n; i++) {
        n_samples += logs->all[i].file.n_samples;
        n_kept += logs->all[i].file.n_records;
        stride = logs->all[i].file.stride > stride ? logs->all[i].file.stride : stride;
    }
    buf_printf(out, "%" PRIu64 " sample%s of %zu thread%s", n_samples, n_samples == 1 ? "" : "s", logs->n,
               logs->n == 1 ? "" : "s");
    if (n_kept < n_samples)
        buf_printf(out, "; the log has %" PRIu64 " of them, one of up to %" PRIu64, n_kept, stride);
    buf_append(out, "\n", 1);
}

static int print_logs(const struct settings *settings, const struct logs *logs)
{
    struct buf out = {0};
    bool is_csv = strcmp(settings->form, "csv") == 0;
    size_t n = logs->n_moments;
    if (settings->top > 0 && (size_t)settings->top < n)
        n = (size_t)settings->top;
    if (is_csv)
        buf_printf(&out, "time_ns,host,rank,process,thread,cpu,event,class,variable,variable_node,path_node,offset,"
                         "latency,metrics\n");
    else
        put_sums(logs, &out);
    for (size_t i = 0; i < n; i++) {
        const struct moment *moment = &logs->moments[i];
        if (is_csv)
            put_csv(&logs->all[moment->log], moment, &out);
        else
            put_line(&logs->all[moment->log], moment, logs->moments[0].wall_ns, &out);
    }
    int status = put_output(settings, &out);
    buf_fini(&out);
    return status;
}

const struct report_kind events_kind = {
    .name = "events",
    .operands = "MEASUREMENT",
    .summary = "the log of samples of a measurement, in the order of time",
    .manual =
        "events prints the log of samples of a measurement that hpcrun -t recorded, of all threads and hosts in the "
        "order of time: when and on which CPU a sample was taken, and which byte of which variable it touched.",
    .example = "events --top 20 hpctoolkit-app-measurements",
    .options = ASK(TOP) | ASK(CSV),
};

int events_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words)
{
    struct logs logs = {0};
    struct error err = {0};
    if (n_words != 2)
        return tool_usage("hpcquery", "give one measurement directory after %s", kind->name);
    int status =
        read_logs(words[1], &logs, &err) ? tool_error("hpcquery", "%s", err.text) : print_logs(settings, &logs);
    logs_fini(&logs);
    return status;
}
