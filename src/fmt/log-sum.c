/* SPDX-License-Identifier: BSD-3-Clause */
/* Many logs added up: see log-sum.h. */
#include "fmt/log-sum.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_log(struct log_sum *sum, const char *path, struct error *err)
{
    struct log_summary log = {0};
    int code = log_read(path, &log, err);
    if (!code)
        code = log_add(&sum->total, &log, err);
    if (!code && !log.n_complete)
        buf_printf(&sum->incomplete, "    %s\n", path);
    for (size_t i = 0; !code && i < log.n_messages; i++)
        buf_printf(&sum->messages, "    %s: %s\n", path, log.messages[i]);
    log_fini(&log);
    return code;
}

static int is_log(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".log") == 0;
}

static int add_entry(struct log_sum *sum, const char *directory, const char *name, struct error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return error_set(err, ERR_MEMORY, "%.600s: out of memory", directory);
    int code = add_log(sum, path, err);
    free(path);
    return code;
}

static int add_directory(struct log_sum *sum, const char *directory, struct error *err)
{
    struct dirent **entries = NULL;
    int code = 0, n_entries = scandir(directory, &entries, is_log, alphasort);
    if (n_entries < 0)
        return error_set(err, ERR_IO, "%.600s: cannot read the directory: %s", directory, strerror(errno));
    if (!n_entries)
        code = error_set(err, ERR_NOT_FOUND, "%.600s: there are no logs (*.log) in this directory", directory);
    for (int i = 0; i < n_entries; i++) {
        if (!code)
            code = add_entry(sum, directory, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int log_sum_add(struct log_sum *sum, const char *path, struct error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_directory(sum, path, err);
    return add_log(sum, path, err);
}

static void put_event(const struct log_event *event, struct buf *out)
{
    buf_printf(out, "EVENT %s\n    %12" PRIu64 "  overflows\n    %12" PRIu64 "  samples taken\n", event->name,
               event->overflows, event->taken);
    for (int fate = 0; fate < FATE_MAX; fate++)
        if (event->fates[fate])
            buf_printf(out, "    %12" PRIu64 "  %s: %s\n", event->fates[fate], fate_row(fate)->name,
                       fate_row(fate)->sentence);
    if (event->n_no_metric)
        buf_printf(out, "    %12" PRIu64 "  of them without metric: the data source names neither load nor store\n",
                   event->n_no_metric);
    if (event->n_throttles)
        buf_printf(out, "    %12" PRIu64 "  times stopped by the kernel for the rest of a tick (throttled)\n",
                   event->n_throttles);
    if (event->n_truncated)
        buf_printf(out, "    %12" PRIu64 "  times the AUX area was too small for what the hardware wrote\n",
                   event->n_truncated);
    if (event->n_collisions)
        buf_printf(out, "    %12" PRIu64 "  pieces of the AUX area in which the hardware gave up samples\n",
                   event->n_collisions);
    if (event->running_ns < event->enabled_ns)
        buf_printf(out, "    %11.1f%%  of the time counted: it shared its counter with other events\n",
                   100 * (double)event->running_ns / (double)event->enabled_ns);
}

void log_sum_put_text(const struct log_sum *sum, struct buf *out)
{
    const struct log_summary *total = &sum->total;
    struct log_summary counters = *total;
    buf_printf(out, "LOGS: %" PRIu64 " (complete: %" PRIu64 ")\n", total->n_logs, total->n_complete);
    if (sum->incomplete.len_bytes)
        buf_printf(out, "Without a summary, because the process still runs or was killed:\n%s", sum->incomplete.data);
    for (size_t i = 0; i < total->n_events; i++)
        put_event(&total->events[i], out);
    counters.n_events = 0;
    log_write_summary(&counters, out);
    if (sum->messages.len_bytes)
        buf_printf(out, "MESSAGES:\n%s", sum->messages.data);
    out->failed |= sum->incomplete.failed || sum->messages.failed;
}

void log_sum_fini(struct log_sum *sum)
{
    log_fini(&sum->total);
    buf_fini(&sum->incomplete);
    buf_fini(&sum->messages);
}
