/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun: see hpcrun-options.c for what it does and launch.c for how. */
#include <stdio.h>

#include "doctor.h"
#include "hpcrun-options.h"
#include "launch.h"

enum { STATUS_USAGE = 2 };

int main(int argc, char **argv)
{
    struct hpcrun_options options;
    struct error err;
    int status = hpcrun_options_parse(argc, argv, &options, &err);
    if (status == 1)
        return 0;
    if (status != 0) {
        (void)fprintf(stderr, "hpcrun: %s\n", err.text);
        return STATUS_USAGE;
    }
    if (options.doctor)
        return doctor_print(stdout);
    if (options.lists) {
        doctor_list_events(stdout);
        return 0;
    }
    if (!options.command[0]) {
        (void)fprintf(stderr, "hpcrun: There is no command to run; see hpcrun --help.\n");
        return STATUS_USAGE;
    }
    return launch_run(&options);
}
