/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about a process (proc(5)), work in a child process, and what a tool's main needs. Ordinary code.
 */
#ifndef LOCUS_BASE_PROCESS_H
#define LOCUS_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

/* From /proc/PID/stat. */
struct proc_stat {
    char state; /* Z, X: it has ended */
    pid_t parent;
    unsigned long long user_ticks, system_ticks; /* clock ticks of CPU time */
    unsigned long long start; /* clock ticks after the boot: together with the pid it identifies a process */
};

/* Asks the kernel about process pid; false, and all zero, when there is none or /proc cannot be read. */
bool proc_stat_read(pid_t pid, struct proc_stat *stat);

/* Whether a process has ended, and is only waited for. */
static inline bool proc_stat_has_ended(const struct proc_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

/* A line of /proc/PID/status, also of a thread, without its name, such as "Uid:"; false when there is none. */
bool proc_status_line(pid_t pid, const char *name, char *text, size_t n);

/* --- work apart --- */

/* Work that may crash or loop, such as a library's that trusts the file it reads: a child process does it, and sends
 * its answer back as bytes. What comes back is as trustworthy as the file: check it. */

/* Appends the answer. Returns 0 or a negative code (enum error_code), which apart_run then returns, without answer.
 * Runs in the child, which has neither terminal nor core dumps and ends without exit handlers: nothing need be freed.
 */
typedef int apart_work(const void *input, struct buf *answer);

/* Does the work, for at most limit_s seconds; *answer must be empty and is left empty on failure.
 * err: what the work returned (without a sentence), ERR_FORMAT (it crashed, took too long, or the answer is longer than
 * answer_max bytes), ERR_IO (no child), ERR_MEMORY */
int apart_run(apart_work *work, const void *input, unsigned limit_s, size_t answer_max, struct buf *answer,
              struct error *err);

/* --- a tool's main --- */

/* A tool needs two things that its caller may have taken away. Room on the stack: `ulimit -s` is meant for the program
 * that a tool starts, not for the tool. And standard streams: if one is closed, the next file that the tool opens gets
 * its number, and then the tool's messages. So closed ones are opened as /dev/null, which takes messages and refuses
 * reports. */

/* The body of a tool's main. */
typedef int stack_main(int argc, char **argv);

/* Calls body with standard streams, on a stack of at least STACK_BYTES, and gives the threads that it starts as much;
 * without memory for that, on the present stack. Returns the result of body, or 1 with a message if that is 0 but the
 * standard output could not be written. Call it once, first in main.  ctx: ordinary, no other thread */
int stack_run(stack_main *body, int argc, char **argv);

#define STACK_BYTES (1 << 20)

#endif
