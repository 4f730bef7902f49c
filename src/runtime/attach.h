/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting an arena from the companion, and giving it back. */
#ifndef LOCUS_RUNTIME_ATTACH_H
#define LOCUS_RUNTIME_ATTACH_H

#include <stdbool.h>

/* Says HELLO, maps arena and recipe store, describes the process and registers its modules. False when there is no
 * companion, or it refused.  ctx: ordinary or the program's first malloc; uses no malloc */
bool attach_start(void);

/* In a child of fork: takes over a copy of the parent's arena, at the same address.  ctx: ordinary */
bool attach_fork_child(void);

/* Says that the process ends and waits for the files.  ctx: ordinary */
void attach_end(int exit_code);

#endif
