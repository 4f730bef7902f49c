/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime and the companion process say to each other: SOCK_SEQPACKET datagrams over a connection of its own
 * for each conversation. Plain structs, native byte order, same machine and build.
 *
 * The way to the companion is a descriptor that all processes inherit: one end of a socket pair, over which a process
 * sends COMPANION_KNOCK together with one end of a fresh socket pair. The kernel says who sent it. Where the descriptor
 * is gone, because the program has closed all of them, and where the companion has none left to receive that end with,
 * there is an abstract socket to connect to, which is known in the launcher's network namespace only. COMPANION_ENV
 * tells both.
 *
 * A process opens a connection, sends HELLO and receives WELCOME with three descriptors (SCM_RIGHTS, in this order):
 * its arena, the recipe store (read-only use), and a pipe to write to after posting a request in the arena. It then
 * closes the connection. At its end it opens another, sends END and waits up to COMPANION_END_WAIT_MS for WRITTEN. The
 * companion watches the process itself with a pidfd, so a killed process loses nothing, and a second HELLO from the
 * same pid (exec) or END finishes the earlier arena of that pid. */
#ifndef LOCUS_ARENA_COMPANION_H
#define LOCUS_ARENA_COMPANION_H

#include <stdint.h>

/* Value: NAME or NAME,FD,DEVICE,INODE: the abstract socket's name without the leading NUL; the inherited descriptor and
 * what fstat must say of it, in decimal. */
#define COMPANION_ENV "HPCRUN_COMPANION"
#define COMPANION_FD 940            /* lowest number of the inherited descriptor: away from what programs use */
#define COMPANION_FD_AWAY 256       /* where the limit leaves no such number; below this one there is none */
#define COMPANION_KNOCK 0x4c4f434bu /* uint32_t: with one descriptor, a connection */
#define COMPANION_PREFIX "locus-"   /* of all these names */
#define COMPANION_MAGIC 0x4c4f4331u
#define COMPANION_VERSION 2
#define COMPANION_END_WAIT_MS 5000

enum companion_kind {
    COMPANION_HELLO = 1,
    COMPANION_WELCOME = 2,
    COMPANION_REFUSED = 3, /* text: why; the program then runs without profiling */
    COMPANION_END = 4,
    COMPANION_WRITTEN = 5,
    COMPANION_MODULE = 6, /* text: path; blocks until the module's table is in the cache, answer WRITTEN */
    COMPANION_FORK = 7,  /* like HELLO, from a child of fork, which copies what it needs of its parent's arena itself */
    COMPANION_STATUS = 8 /* exit_code: a process id. Answered by STATUS about the process with the next higher one:
                          * pid, size_bytes, text: measurement directory, and its arena, to be read only; without
                          * arena and with pid 0 after the last. Also root may ask */
};

struct companion_message {
    uint32_t magic;
    uint32_t version;
    uint32_t kind; /* enum companion_kind */
    uint32_t pid;
    int32_t rank;          /* HELLO, FORK, END: MPI rank or -1 */
    int32_t exit_code;     /* END, STATUS; HELLO: 1 when what text says stands against samples only */
    uint64_t size_bytes;   /* WELCOME: of the arena; HELLO: largest arena wanted, 0 = default (RLIMIT_AS); FORK: of
                            * the parent's arena */
    uint64_t recipe_bytes; /* WELCOME: size of the recipe store; FORK: of the parent's arena in use */
    char text[4096];       /* REFUSED, MODULE; HELLO: why the process is better not measured; else empty */
};

#endif
