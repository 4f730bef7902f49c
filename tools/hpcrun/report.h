/* SPDX-License-Identifier: BSD-3-Clause */
/* --report: what a user would type next, once for all ranks of a run. Ordinary code of the launcher. */
#ifndef LOCUS_HPCRUN_REPORT_H
#define LOCUS_HPCRUN_REPORT_H

#include <stdbool.h>

#include "measurement/runs.h"

struct report_wish {
    const char *dir;  /* measurement directory, real path */
    const char *file; /* NULL: standard error */
    bool with_leaks;
};

/* Runs hpcprof on the measurement directory and hpcquery vars (with_leaks: and hpcquery leaks) on the database beside
 * it ("-measurements" in the name becomes "-database"), with messages of their own on stderr. Returns 0, or 1 when one
 * of them failed, after a message. */
int report_print(const struct report_wish *wish);

/* Notes that the program of this run has ended, as a rank among others if it is one, and prints the report if all of
 * them have. is_measured: of this one there is something to report. As report_print. */
int report_end(const struct report_wish *wish, const struct run *run, bool is_measured);

/* Whether this run speaks for all ranks when there is something to say at the start. */
bool report_speaks(const char *dir, const struct run *run);

#endif
