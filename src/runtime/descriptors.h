/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's own file descriptors: out of the way of the program's, within its limit, which is never changed; and
 * never taken for ours when the program has closed them and opened something else under their numbers. */
#ifndef LOCUS_RUNTIME_DESCRIPTORS_H
#define LOCUS_RUNTIME_DESCRIPTORS_H

#include <stdint.h>

enum descriptor_use {
    DESCRIPTOR_EVENT = 0, /* one or more a thread: in the upper half of what the soft limit allows */
    DESCRIPTOR_WAY = 1    /* one or two a process: above the lowest quarter */
};

/* Moves fd to a number out of the program's way, close-on-exec; returns it. Where none is left for this use, or the
 * limit is so low that the program would miss any number, fd is closed and the result is -1; so for fd -1.  ctx: any */
int descriptors_move_up_sig(int fd, enum descriptor_use use);

/* Identity of a perf event behind its descriptor, 0 when fd is no perf event.  ctx: any */
uint64_t descriptors_event_id_sig(int fd);

#endif
