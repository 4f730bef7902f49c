/* SPDX-License-Identifier: BSD-3-Clause */
/* The form "callgrind" of graphs whose calls have costs of their own: what the reader of callgrind makes with parts.
 * Ordinary code; for the forms of this folder. */
#ifndef LOCUS_EXPORT_FRAMES_CALLGRIND_GRAPH_H
#define LOCUS_EXPORT_FRAMES_CALLGRIND_GRAPH_H

#include "export/frames/forms.h"

/* Whether the frame has such calls: its column "calls made" counts them. */
bool callgrind_graph_has_calls(const struct frame *frame);

/* Writes functions, lines, instructions, calls and jumps as they were read, of the job's profiles together: a part.
 * Costs below zero are 0.  err: as the form */
int callgrind_graph_write(const struct frame_job *job, struct buf *out, struct error *err);

/* --- for form-callgrind.c as well --- */

/* Appends the head of a file up to its positions. */
void callgrind_put_begin(struct buf *out, const char *title, bool has_addresses);

/* A cost as a whole number: value times factor, rounded, at most 9e18; below zero and without a value 0. */
uint64_t callgrind_whole(double value, double factor);

/* Appends the subpositions of a line: "0x10 7", without addresses "7". */
void callgrind_put_position(struct buf *out, bool has_addresses, uint64_t address, uint64_t line);

#endif
