/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun: see hpcrun-options.c for what it does and launch.c for how. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "doctor.h"
#include "hpcrun-options.h"
#include "launch.h"

enum { STATUS_USAGE = 2 };

/* Where standard streams are closed, their numbers must not become those of our sockets. CLOEXEC: the program finds
 * them closed, as they were. */
static void hold_standard_streams(void)
{
    for (int fd = open("/dev/null", O_RDWR | O_CLOEXEC); fd >= 0; fd = open("/dev/null", O_RDWR | O_CLOEXEC))
        if (fd > STDERR_FILENO) {
            (void)close(fd);
            break;
        }
}

int main(int argc, char **argv)
{
    struct hpcrun_options options;
    struct error err;
    hold_standard_streams();
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
