/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's main loop: waits for whatever comes first and hands it on. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_LOOP_H
#define LOCUS_HPCRUN_COMPANION_LOOP_H

#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "companion-state.h"

/* Serves until the launched program and all registered processes are gone and written. */
void companion_loop(struct companion *c);

/* poll, also of more descriptors than RLIMIT_NOFILE allows by now, as somebody may lower it from outside: they are
 * looked at in parts then, every 50 ms. */
int companion_poll(struct pollfd *fds, size_t n, int timeout_ms);

/* What is to be done between two waits; now_ms as companion_now_ms tells. */
void companion_turn(struct companion *c, int64_t now_ms);

#endif
