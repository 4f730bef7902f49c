/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON text without a tree: a file of a million nodes is written as it goes. Each call appends one value to out;
 * commas, brackets and keys are the caller's. Nothing is lost: see each function. Ordinary code. */
#ifndef LOCUS_FMT_JSON_PUT_H
#define LOCUS_FMT_JSON_PUT_H

#include <stdint.h>

#include "base/vec.h"

/* A string; null for NULL. Bytes that are not UTF-8 become {"bytes": "<hex>"}. */
void json_put_text(struct buf *out, const char *text);

/* An integer: a number up to 2^53 in size, a string of its decimal digits beyond it. */
void json_put_word(struct buf *out, uint64_t value);

/* A double, in the fewest digits that give it back; infinities and NaN as a string "0x<16 hex digits>" of its bits. */
void json_put_double(struct buf *out, double value);

/* The fewest digits (six or more) that give value back, as "%g" writes them, without what JSON asks for. */
void json_double_text(double value, char *text, size_t size_bytes);

/* "key": followed by the value; first says whether a comma comes before. */
void json_put_key(struct buf *out, const char *key, int first);
void json_put_text_at(struct buf *out, const char *key, const char *text);
void json_put_word_at(struct buf *out, const char *key, uint64_t value);
void json_put_double_at(struct buf *out, const char *key, double value);

/* [a, b, ...]: value points at n_values words. */
void json_put_words(struct buf *out, const uint64_t *values, size_t n_values);

#endif
