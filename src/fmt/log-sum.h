/* SPDX-License-Identifier: BSD-3-Clause */
/* Many logs added up: what the processes of a measurement directory had to say. Ordinary code. */
#ifndef LOCUS_FMT_LOG_SUM_H
#define LOCUS_FMT_LOG_SUM_H

#include "base/error.h"
#include "base/vec.h"
#include "fmt/log.h"

/* Logs added up. All zero is empty. */
struct log_sum {
    struct log_summary total;
    struct buf incomplete; /* one line per log without a SUMMARY: its path */
    struct buf messages;   /* one line per message: path of the log, then the message */
};

/* Adds every *.log of the directory path, in the order of their names, or the log path.
 * err: ERR_NOT_FOUND (a directory without logs), else as log_read */
int log_sum_add(struct log_sum *sum, const char *path, struct error *err);

/* Appends the sums as text; events that lost samples say how many and why. */
void log_sum_put_text(const struct log_sum *sum, struct buf *out);

/* Frees everything and makes the sum empty. */
void log_sum_fini(struct log_sum *sum);

#endif
