/* SPDX-License-Identifier: BSD-3-Clause */
/* What files of callgrind say, between their lines (reader-callgrind.c) and the frame made of it (callgrind-frame.c);
 * callgrind-files.c finds them. Ordinary code; for these files. */
#ifndef LOCUS_FRAME_CALLGRIND_H
#define LOCUS_FRAME_CALLGRIND_H

#include "frame/make.h"
#include "frame/readers.h"

struct callgrind_function {
    uint32_t name, file, object, line; /* of texts; line: the first one with a cost, not part of its identity */
};

enum callgrind_place_kind { PLACE_OWN, PLACE_CALL, PLACE_JUMP, PLACE_BRANCH };

/* Where costs are: in a function, a call, a jump. With parts also at which line and address, and where it leads. */
struct callgrind_place {
    uint64_t address, target_address;
    uint32_t function, callee; /* callee: FRAME_NONE of own costs; of jumps the name of another function, or that */
    uint32_t file, line, target_file, target_line;
    uint32_t kind;
    bool has_address, is_zero[3];
};

/* A cost that a place has in a part. event: an index into event_names, or one of these two. */
#define CALLGRIND_COUNT FRAME_NONE           /* calls, jumps */
#define CALLGRIND_FOLLOWED (FRAME_NONE - 1u) /* conditional jumps that were followed */
struct callgrind_cost {
    uint32_t place, profile, event;
    double value;
};

struct callgrind {
    bool with_parts;                      /* places are lines and addresses */
    struct strtab texts;                  /* 0 is "" */
    struct callgrind_function *functions; /* [n_functions] */
    size_t n_functions, cap_functions;
    struct callgrind_place *places; /* [n_places] */
    size_t n_places, cap_places;
    struct callgrind_cost *costs; /* [n_costs] */
    size_t n_costs, cap_costs;
    struct strtab event_names;
};

/* Adds nodes and values to a maker that has the profiles. name, len_bytes: of the input.  err: ERR_FORMAT (more values
 * than such a file can mean), ERR_MEMORY */
int callgrind_make(struct callgrind *callgrind, const char *name, size_t len_bytes, struct frame_maker *maker,
                   struct error *err);

/* Whether a file that begins so is of callgrind. What KCachegrind goes by: the first line, or one near the begin. */
bool callgrind_is(const char *head);

/* Appends the lines of a head that say which run a part is of: "pid:" and "cmd:". */
void callgrind_put_run(const char *head, struct buf *run);

#endif
