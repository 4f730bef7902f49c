/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions: parts of its work that the program names while it does them, nested and per thread. They are nodes of the
 * sample tree, above the call paths of the samples that fall into them: in the pseudo module "[region]", with the
 * reference of the name's arena_string as address. */
#ifndef LOCUS_RUNTIME_REGIONS_H
#define LOCUS_RUNTIME_REGIONS_H

#include "runtime/thread.h"

/* Reference of the arena's copy of a region's name, the same for equal names; 0 when there is no room, or no arena.
 * ctx: ordinary code or a signal handler of the program */
uint32_t regions_name(const char *name);

/* The calling thread enters the region of that reference, or leaves the one that it entered last. What is too much or
 * does not match is counted and does no harm.  ctx: as regions_name */
void regions_enter(uint32_t name);
void regions_leave(void);

/* The number of regions that the calling thread is in.  ctx: any */
uint32_t regions_depth_sig(void);

/* Counts the regions in which a thread ends.  ctx: any */
void regions_thread_ends_sig(const struct thread_state *self);

/* Lets the sample tree hang the following paths below the nodes of the regions that self is in.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
void regions_apply_sig(struct thread_state *self);

/* The pseudo module; 0 before the first region.  ctx: any */
uint32_t regions_module_sig(void);
void regions_set_module_sig(uint32_t ref);

/* Adds to one of the counts of the arena.  ctx: any */
void regions_count_sig(enum region_fault fault, uint64_t n);

#endif
