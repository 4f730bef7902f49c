/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a program that is about to be started and must not be measured. */
#ifndef LOCUS_RUNTIME_ENVIRON_H
#define LOCUS_RUNTIME_ENVIRON_H

#include <stddef.h>

#include "runtime/sandbox.h" /* which tells when that is so: sandbox_is_deadly_sig */

/* Bytes of room that environ_without_us_sig needs for this environment (NULL: an empty one), which must not change in
 * between.  ctx: any */
size_t environ_room_sig(char *const *environment);

/* Copies an environment into room, aligned as a pointer, without what makes the program be measured: our entry in
 * LD_PRELOAD, and our variables. Other entries are shared with the original. Nothing is allocated.  ctx: any, also in a
 * child of vfork */
char **environ_without_us_sig(char *const *environment, void *room);

#endif
