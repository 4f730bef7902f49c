/* SPDX-License-Identifier: BSD-3-Clause */
/* kshark-list FILE: the entries of a trace as libkshark has them, one a line: CPU, time, thread, id, name, task, text.
 * For tests that compare files of ours with what KernelShark makes of them; built where libkshark is installed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <libkshark.h>

int main(int argc, char **argv)
{
    struct kshark_context *context = NULL;
    struct kshark_entry **rows = NULL;
    if (argc < 2 || !kshark_instance(&context))
        return 2;
    int stream = kshark_open(context, argv[1]);
    if (stream < 0)
        return 1;
    ssize_t n_rows = kshark_load_entries(context, stream, &rows);
    if (n_rows < 0)
        return 1;
    for (ssize_t i = 0; i < n_rows; i++) {
        const struct kshark_entry *row = rows[i];
        char *name = kshark_get_event_name(row), *task = kshark_get_task(row), *info = kshark_get_info(row);
        printf("%d\t%" PRId64 "\t%d\t%d\t%s\t%s\t%s\n", row->cpu, row->ts, kshark_get_pid(row), row->event_id,
               name ? name : "", task ? task : "", info ? info : "");
        free(name);
        free(task);
        free(info);
    }
    for (ssize_t i = 0; i < n_rows; i++)
        free(rows[i]);
    free(rows);
    kshark_close(context, stream);
    kshark_free(context);
    return 0;
}
