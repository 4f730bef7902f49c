/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a model's trees in the words that a frame of its database has for them (frame/frame.h), so that what a
 * report or the page shows can be asked for in a query. Ordinary code. */
#ifndef LOCUS_EXPORT_NODES_H
#define LOCUS_EXPORT_NODES_H

#include "analysis/model.h"
#include "frame/frame.h"

/* Its kind; frame_kind_name says the word. Call sites count as lines, as they do in the database. */
enum frame_kind node_kind(const struct scope *scope);

/* Appends its name: loops and lines are called by their places, "Loop@a.c:7". */
void node_put_name(const struct model *model, uint32_t scope, struct buf *name);

#endif
