/* SPDX-License-Identifier: BSD-3-Clause */
/* --report: what a user would type next. Ordinary code. */
#ifndef LOCUS_HPCRUN_REPORT_H
#define LOCUS_HPCRUN_REPORT_H

#include <stdbool.h>

/* Runs hpcprof on the measurement directory and hpcquery vars (with_leaks: and hpcquery leaks) on the database beside
 * it ("-measurements" in the name becomes "-database"), with messages of their own on stderr. Returns 0, or 1 when one
 * of them failed. */
int report_print(const char *dir, bool with_leaks);

#endif
