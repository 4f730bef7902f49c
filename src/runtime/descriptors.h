/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's own file descriptors: out of the way of the program's, and never taken for ours when the program has
 * closed them and opened something else under their numbers. */
#ifndef LOCUS_RUNTIME_DESCRIPTORS_H
#define LOCUS_RUNTIME_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* Between the two, descriptors can be opened although the program has used up its limit: the soft limit is raised as
 * far as the hard one allows. Not nested; holds a lock of its own.  ctx: ordinary */
void descriptors_widen(void);
void descriptors_narrow(void);

/* In a child of fork, before anything else here: undoes what another thread of the parent had under way.
 * ctx: ordinary, single-threaded */
void descriptors_fork_child(void);

/* Moves fd to a number of at least lowest, close-on-exec, or where the limits leave none to one that is still out of
 * the way; returns the new number. Under limits so low that the program would miss any number fd is closed and the
 * result is -1, as for fd -1.  ctx: between descriptors_widen and _narrow */
int descriptors_move_up(int fd, int lowest);

/* Identity of a perf event behind its descriptor, 0 when fd is no perf event.  ctx: any */
uint64_t descriptors_event_id(int fd);

#endif
