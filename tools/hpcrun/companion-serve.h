/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to what processes ask of the companion: module tables and recipes. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_SERVE_H
#define LOCUS_HPCRUN_COMPANION_SERVE_H

#include "companion-state.h"

/* Acts on one request of process's arena; anything that does not name a module of the arena is ignored. Returns false
 * when it must stay posted for a later look. */
bool companion_serve_request(struct companion *c, struct companion_process *process,
                             const struct arena_request *request);

#endif
