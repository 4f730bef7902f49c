/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists what libkshark makes of a recording, in the form of list-stream: for each event the line of its dump, and with
 * --fields its fields; with --rows, CPU, time, thread, id, name, task and text between tabs. --filter CONDITION,
 * --show-event ID, --hide-task ID, and so on: with these filters. Compiled by the test that uses it, where libkshark is
 * installed. */
#include <inttypes.h>
#include <libkshark-tepdata.h>
#include <libkshark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *option;
    int filter;
} filters[] = {
    {"--show-event", KS_SHOW_EVENT_FILTER}, {"--hide-event", KS_HIDE_EVENT_FILTER},
    {"--show-task", KS_SHOW_TASK_FILTER},   {"--hide-task", KS_HIDE_TASK_FILTER},
    {"--show-cpu", KS_SHOW_CPU_FILTER},     {"--hide-cpu", KS_HIDE_CPU_FILTER},
};

static void set_filter(struct kshark_context *context, int sd, const char *option, const char *value)
{
    struct kshark_data_stream *stream = kshark_get_data_stream(context, sd);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(option, filters[i].option) == 0) {
            int id = i < 2 ? kshark_find_event_id(stream, value) : atoi(value);
            kshark_filter_add_id(context, sd, filters[i].filter, id);
        }
    if (strcmp(option, "--filter") == 0 && kshark_tep_add_filter_str(stream, value) < 0)
        exit(3);
}

/* The line of an event. libkshark has none for lost records, but all that is in it. */
static void list_line(const struct kshark_entry *entry)
{
    char *line = kshark_dump_entry(entry);
    if (line)
        printf("%s\n", line);
    else
        printf("%d; %" PRId64 "; %s-%d; CPU %d; ; %s; %s; 0x%x\n", entry->stream_id, entry->ts, kshark_get_task(entry),
               kshark_get_pid(entry), entry->cpu, kshark_get_event_name(entry), kshark_get_info(entry), entry->visible);
    free(line);
}

static void list_row(const struct kshark_entry *entry)
{
    char *name = kshark_get_event_name(entry), *task = kshark_get_task(entry), *info = kshark_get_info(entry);
    printf("%d\t%" PRId64 "\t%d\t%d\t%s\t%s\t%s\n", entry->cpu, entry->ts, kshark_get_pid(entry), entry->event_id,
           name ? name : "", task ? task : "", info ? info : "");
    free(name);
    free(task);
    free(info);
}

static void list_fields(const struct kshark_entry *entry)
{
    char **names = NULL;
    int n = entry->event_id >= 0 ? kshark_get_all_event_field_names(entry, &names) : 0;
    for (int i = 0; i < n; i++) {
        int64_t value = 0;
        int type = kshark_get_event_field_type(entry, names[i]);
        printf("  %s", names[i]);
        if (type == KS_INTEGER_FIELD && kshark_read_event_field_int(entry, names[i], &value) == 0)
            printf(" = %" PRId64, value);
        printf("\n");
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    struct kshark_context *context = NULL;
    struct kshark_entry **entries = NULL;
    if (argc < 2 || !kshark_instance(&context))
        return 2;
    context->filter_mask = KS_TEXT_VIEW_FILTER_MASK | KS_GRAPH_VIEW_FILTER_MASK | KS_EVENT_VIEW_FILTER_MASK;
    int sd = kshark_open(context, argv[argc - 1]), with_fields = 0, in_rows = 0;
    if (sd < 0)
        return 1;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--fields") == 0)
            with_fields = 1;
        else if (strcmp(argv[i], "--rows") == 0)
            in_rows = 1;
        else
            set_filter(context, sd, argv[i], argv[i + 1]);
    }
    ssize_t n = kshark_load_entries(context, sd, &entries);
    if (argc > 2 && kshark_filter_is_set(context, sd) && !kshark_tep_filter_is_set(kshark_get_data_stream(context, sd)))
        kshark_filter_stream_entries(context, sd, entries, (size_t)n);
    /* Names of tasks are learned while events are printed. */
    for (ssize_t i = 0; i < n; i++)
        free(kshark_get_info(entries[i]));
    for (ssize_t i = 0; i < n && in_rows; i++)
        list_row(entries[i]);
    if (in_rows)
        return n < 0;
    printf("%zd events, %d CPUs\n", n, kshark_get_data_stream(context, sd)->n_cpus);
    for (ssize_t i = 0; i < n; i++) {
        list_line(entries[i]);
        if (with_fields)
            list_fields(entries[i]);
    }
    return 0;
}
