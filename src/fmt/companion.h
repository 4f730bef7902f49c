/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime and the companion process say to each other: SOCK_SEQPACKET datagrams over an abstract Unix socket
 * whose name the launcher puts into the environment. Plain structs, native byte order, same machine and build.
 *
 * A process connects, sends HELLO and receives WELCOME with three descriptors (SCM_RIGHTS, in this order): its arena,
 * the recipe store (read-only use), and a pipe to write to after posting a request in the arena. It then closes the
 * connection. At its end it connects again, sends END and waits up to COMPANION_END_WAIT_MS for WRITTEN. The companion
 * watches the process itself with a pidfd, so a killed process loses nothing, and a second HELLO from the same pid
 * (exec) or END finishes the earlier arena of that pid. */
#ifndef LOCUS_FMT_COMPANION_H
#define LOCUS_FMT_COMPANION_H

#include <stdint.h>

#define COMPANION_ENV "HPCRUN_COMPANION" /* value: socket name without the leading NUL */
#define COMPANION_PREFIX "locus-"        /* of all these names */
#define COMPANION_MAGIC 0x4c4f4331u
#define COMPANION_VERSION 1
#define COMPANION_END_WAIT_MS 5000

enum companion_kind {
    COMPANION_HELLO = 1,
    COMPANION_WELCOME = 2,
    COMPANION_REFUSED = 3, /* text: why; the program then runs without profiling */
    COMPANION_END = 4,
    COMPANION_WRITTEN = 5,
    COMPANION_MODULE = 6, /* text: path; blocks until the module's table is in the cache, answer WRITTEN */
    COMPANION_FORK = 7,   /* like HELLO, from a child of fork that goes on with a copy of its parent's arena */
    COMPANION_STATUS = 8  /* exit_code: a process id. Answered by STATUS about the process with the next higher one:
                           * pid, size_bytes, text: measurement directory, and its arena, to be read only; without
                           * arena and with pid 0 after the last. Also root may ask */
};

struct companion_message {
    uint32_t magic;
    uint32_t version;
    uint32_t kind; /* enum companion_kind */
    uint32_t pid;
    int32_t rank;      /* HELLO, FORK, END: MPI rank or -1 */
    int32_t exit_code; /* END, STATUS */
    uint64_t size_bytes; /* WELCOME: of the arena; HELLO: largest arena wanted, 0 = default (RLIMIT_AS) */
    uint64_t recipe_bytes; /* WELCOME: size of the recipe store */
    char text[4096];   /* REFUSED, MODULE; HELLO: why the process is better not measured; else empty */
};

#endif
