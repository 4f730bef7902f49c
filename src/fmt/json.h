/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON text without a tree: a file of a million nodes is written as it goes. Each call appends one value to out;
 * commas, brackets and keys are the caller's. Nothing is lost: see each function. Ordinary code. */
#ifndef LOCUS_FMT_JSON_H
#define LOCUS_FMT_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* A string; null for NULL. Bytes that are not UTF-8 become {"bytes": "<hex>"}. */
void json_put_text(struct buf *out, const char *text);

/* An integer: a number up to 2^53 in size, a string of its decimal digits beyond it. */
void json_put_word(struct buf *out, uint64_t value);

/* A double, in the fewest digits that give it back; infinities and NaN as a string "0x<16 hex digits>" of its bits. */
void json_put_double(struct buf *out, double value);

/* The fewest digits (six or more) that give value back, as "%g" writes them, which is not always JSON. */
void json_double_text(double value, char *text, size_t size_bytes);

/* "key": followed by the value; first says whether a comma comes before. */
void json_put_key(struct buf *out, const char *key, int first);
void json_put_text_at(struct buf *out, const char *key, const char *text);
void json_put_word_at(struct buf *out, const char *key, uint64_t value);
void json_put_double_at(struct buf *out, const char *key, double value);

/* [a, b, ...]: value points at n_values words. */
void json_put_words(struct buf *out, const uint64_t *values, size_t n_values);

/* --- reading --- */

/* Typed values out of a JSON tree, with messages that name file, place and what was expected. As in file.h the first
 * failure is remembered and everything after it returns nothing. Ordinary code. */

/* Fill name and err, the rest zero. where and index name the list that is being read, for messages. */
struct json_take {
    const char *name;
    struct error *err;
    const char *where;
    size_t index;
    int code; /* enum error_code of the first failure */
};

/* Parses an object; duplicate keys are refused. The caller decrefs it. NULL after a failure. */
json_t *json_take_parse(struct json_take *take, const char *bytes, size_t len_bytes);

/* Remembers the failure "<name>: <where>[<index>]: <what>: <reason>"; returns take->code. */
int json_take_fail(struct json_take *take, int code, const char *what, const char *reason);

/* The value as an integer 0..max, given as a number, decimal digits in a string, or "0x..." */
uint64_t json_take_word(struct json_take *take, const json_t *value, uint64_t max, const char *what);

/* Same, by the key of an object. */
uint64_t json_take_word_at(struct json_take *take, const json_t *object, const char *key, uint64_t max);

/* A signed integer of 32 bits. */
int32_t json_take_int32_at(struct json_take *take, const json_t *object, const char *key);

/* A number, or "0x<bits>", as json_put_double writes what JSON cannot hold. */
double json_take_double(struct json_take *take, const json_t *value, const char *what);
double json_take_double_at(struct json_take *take, const json_t *object, const char *key);

/* A malloc'ed string; NULL for null or after a failure. _needed refuses null. */
char *json_take_text(struct json_take *take, const json_t *value, const char *what);
char *json_take_text_at(struct json_take *take, const json_t *object, const char *key);
char *json_take_text_needed_at(struct json_take *take, const json_t *object, const char *key);

/* The array under key, borrowed; an empty one is NULL too. *n_items: its length. */
const json_t *json_take_array_at(struct json_take *take, const json_t *object, const char *key, size_t *n_items);

/* Reads the array of n_values words under key. */
void json_take_words_at(struct json_take *take, const json_t *object, const char *key, uint64_t *values,
                        size_t n_values);

/* Fails when the object has other than the n_keys keys that were taken from it. */
void json_take_end(struct json_take *take, const json_t *object, size_t n_keys);

/* Zeroed memory for n_items; NULL when there are none, or after a failure (out of memory is one). */
void *json_take_alloc(struct json_take *take, size_t n_items, size_t item_bytes);

#endif
