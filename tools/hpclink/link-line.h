/* SPDX-License-Identifier: BSD-3-Clause */
/* A compiler's command line as far as hpclink must understand it. */
#ifndef LOCUS_HPCLINK_LINK_LINE_H
#define LOCUS_HPCLINK_LINK_LINE_H

#include <stdbool.h>

#include "base/error.h"

struct link_line {
    char **words;       /* compiler and arguments, NULL-terminated; borrowed */
    const char *output; /* of -o, or a.out */
    bool is_link;       /* false: only compiles, preprocesses or prints */
    bool is_linker;     /* the command is ld itself: options go to it without -Wl, */
};

/* Looks at words. err: ERR_UNSUPPORTED when the result is no program (-shared, -r) */
int link_line_read(char **words, struct link_line *line, struct error *err);

/* Whether words[i] (and words[i + 1] when *n is set to 2) is the output option, or -s: what the first link replaces or
 * leaves out. *n: number of words, 0 when it is neither. */
void link_line_match_output(char *const *words, int i, int *n);
bool link_line_is_strip(const char *word);

#endif
