/* SPDX-License-Identifier: BSD-3-Clause */
/* What main.c takes from the command line, and the work that relink.c does with it. */
#ifndef LOCUS_TOOLS_HPCLINK_HPCLINK_H
#define LOCUS_TOOLS_HPCLINK_HPCLINK_H

#include <stdbool.h>

#include "base/error.h"

/* A compiler's command line as far as hpclink must understand it. */
struct link_line {
    char **words;       /* compiler and arguments, NULL-terminated; borrowed */
    const char *output; /* of -o, or a.out */
    bool is_link;       /* false: only compiles, preprocesses or prints */
    bool is_linker;     /* the command is ld itself: options go to it without -Wl, */
};

/* Looks at words. err: ERR_UNSUPPORTED when the result is no program (-shared, -r) */
int link_line_read(char **words, struct link_line *line, struct error *err);

#define HPCLINK_UNDEFINED_MAX 64

struct hpclink_options {
    bool verbose;
    const char *output;                           /* NULL: as the link line says */
    const char *undefined[HPCLINK_UNDEFINED_MAX]; /* symbols to pull out of archives */
    unsigned n_undefined;
    char **line; /* compiler and arguments, NULL-terminated */
};

/* Does the link of line twice: as it is, to see what the program consists of, then with the runtime. The output file
 * appears when both have succeeded; directory is an empty one for what lies between them. Returns the exit status of
 * hpclink: the compiler's own when it failed (it has said why), else negative with *err filled when the program cannot
 * be measured.  ctx: ordinary */
int hpclink_relink(const struct hpclink_options *options, const struct link_line *line, const char *directory,
                   struct error *err);

#endif
