/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON piece by piece, without a tree and without recursion: files of any depth and length are read as they come. What
 * Python prints of lists and dictionaries is read as well: single quotes, None, True, nan, tuples, a comma at the end.
 * Ordinary code; for the readers of this folder. */
#ifndef LOCUS_FRAME_JSON_IN_H
#define LOCUS_FRAME_JSON_IN_H

#include "base/vec.h"
#include "frame/frame.h"

enum json_piece {
    JSON_IN_END = 0, /* of the text */
    JSON_IN_OBJECT,
    JSON_IN_OBJECT_END,
    JSON_IN_LIST,
    JSON_IN_LIST_END,
    JSON_IN_KEY,    /* text */
    JSON_IN_TEXT,   /* text */
    JSON_IN_NUMBER, /* number; true and false are 1 and 0 */
    JSON_IN_NULL
};

/* Fill text, which a NUL follows, at = text, end, name, line = 1; the rest zero. */
struct json_in {
    const char *text, *at, *end;
    const char *name; /* of the file, for messages */
    size_t line;
    struct buf value; /* of the last key or text; data is never NULL then */
    double number;
    char *open; /* [n_open] brackets that wait for their end, as they began */
    size_t n_open, cap_open;
    enum { JSON_IN_ITEM = 0, JSON_IN_VALUE, JSON_IN_COMMA } expects;
};

/* The next piece (enum json_piece), negative on failure.  err: ERR_FORMAT (file, line, reason), ERR_MEMORY */
int json_in_next(struct json_in *in, struct error *err);

/* Reads the next piece, which has to be this one; reason: why, "a row is a list".  err: as json_in_next */
int json_in_expect(struct json_in *in, int piece, const char *reason, struct error *err);

/* Skips the value that begins with piece, the last one: all of a list or object.  Returns 0.  err: as json_in_next */
int json_in_skip(struct json_in *in, int piece, struct error *err);

/* Reports what is wrong at the reader's position; returns ERR_FORMAT. */
int json_in_fail(const struct json_in *in, const char *reason, struct error *err);

/* Frees what the reader has allocated; the text is the caller's. */
void json_in_fini(struct json_in *in);

#endif
