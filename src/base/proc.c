/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading proc(5); see proc.h. */
#include "base/proc.h"

#include <stdio.h>
#include <string.h>

#include "base/input.h"

bool proc_stat_read(pid_t pid, struct proc_stat *stat)
{
    char path[64], text[1024];
    *stat = (struct proc_stat){0};
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = input_stream(path);
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        (void)fclose(file);
    text[n] = '\0';
    const char *after_name = strrchr(text, ')'); /* which may hold anything */
    struct proc_stat found = {0};
    if (!after_name ||
        sscanf(after_name + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
               &found.state, &found.parent, &found.user_ticks, &found.system_ticks, &found.start) != 5)
        return false;
    *stat = found;
    return true;
}
