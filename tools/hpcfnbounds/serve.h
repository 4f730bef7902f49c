/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcfnbounds as a server: other programs ask for the functions and variables of load modules over two descriptors. */
#ifndef LOCUS_TOOLS_HPCFNBOUNDS_SERVE_H
#define LOCUS_TOOLS_HPCFNBOUNDS_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Every message, in both directions, is a head of 16 bytes and n_bytes of contents; all numbers are big-endian:
 *   bytes 0-3 "LFNB", 4-5 version (1), 6-7 type, 8-15 n_bytes.
 * Requests; contents: the path of the module, or [vdso]: */
enum serve_type {
    SERVE_FUNCTIONS = 1,
    SERVE_VARIABLES = 2,
    SERVE_EXIT = 3, /* without contents and without answer */
    /* Answers: */
    SERVE_OK = 16,   /* contents as below */
    SERVE_ERROR = 17 /* contents: a sentence */
};
/* Functions: n, reference offset, 1 if relocatable else 0; then n times start and end: 64 bits each.
 * Variables: n; then n times address, size, kind (enum modtab_sym_kind) and offset of the name: 64 bits each; then the
 * names, each with a 0 behind it. */

#define SERVE_VERSION 1
#define SERVE_HEAD_BYTES 16
#define SERVE_PATH_BYTES_MAX 65536

struct serve_options {
    int fd_in, fd_out;
    bool discover;      /* code that neither symbols nor unwind information cover, too */
    uint64_t bytes_min; /* the smallest variable */
};

/* Answers until the end of input or SERVE_EXIT. A module that cannot be read is answered with an error; a message that
 * breaks the protocol ends the server.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int serve(const struct serve_options *options, struct error *err);

#endif
