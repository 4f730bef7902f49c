/* SPDX-License-Identifier: BSD-3-Clause */
/* Room on the stack whatever the limit: `ulimit -s` is meant for the program that a tool starts, not for the tool. */
#ifndef LOCUS_BASE_STACK_H
#define LOCUS_BASE_STACK_H

/* The body of a tool's main. */
typedef int stack_main(int argc, char **argv);

/* Calls body on a stack of at least STACK_BYTES, and gives the threads that it starts as much; where there is no memory
 * for that, on the stack that there is. Returns what body does. Call it first in main, once.  ctx: ordinary, no other
 * thread */
int stack_run(stack_main *body, int argc, char **argv);

#define STACK_BYTES (1 << 20)

#endif
