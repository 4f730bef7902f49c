/* SPDX-License-Identifier: BSD-3-Clause */
/* A state for each open bracket takes the place of recursion. */
#include "frame/json-in.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int json_in_fail(const struct json_in *in, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: line %zu: %s", in->name, in->line, reason);
}

void json_in_fini(struct json_in *in)
{
    buf_fini(&in->value);
    free(in->open);
    in->open = NULL;
}

static void skip_blanks(struct json_in *in)
{
    for (; in->at < in->end && strchr(" \t\r\n\f", *in->at) && *in->at; in->at++)
        in->line += *in->at == '\n';
}

/* The number of n hexadecimal digits, which are moved past; -1 when they are not there. */
static long take_hex(struct json_in *in, unsigned n)
{
    long value = 0;
    for (unsigned i = 0; i < n; i++, in->at++) {
        const char *digit = memchr("0123456789abcdef", tolower((unsigned char)*in->at), 16);
        if (in->at >= in->end || !digit)
            return -1;
        value = 16 * value + (digit - strchr("0123456789abcdef", '0'));
    }
    return value;
}

static void put_character(struct buf *out, unsigned long code)
{
    if (code < 0x80)
        buf_printf(out, "%c", (int)code);
    else if (code < 0x800)
        buf_printf(out, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 0x3f)));
    else if (code < 0x10000)
        buf_printf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
                   (int)(0x80 | (code & 0x3f)));
    else
        buf_printf(out, "%c%c%c%c", (int)(0xf0 | code >> 18), (int)(0x80 | (code >> 12 & 0x3f)),
                   (int)(0x80 | (code >> 6 & 0x3f)), (int)(0x80 | (code & 0x3f)));
}

/* What follows a backslash. */
static int take_escape(struct json_in *in, struct error *err)
{
    static const char letters[] = "bfnrt\"'\\/", meanings[] = "\b\f\n\r\t\"'\\/";
    char letter = *in->at++;
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (found) {
        buf_append(&in->value, &meanings[found - letters], 1);
        return 0;
    }
    long code = letter == 'u'   ? take_hex(in, 4)
                : letter == 'x' ? take_hex(in, 2)
                : letter == 'U' ? take_hex(in, 8)
                                : -1;
    if (code >= 0xd800 && code < 0xdc00 && in->at[0] == '\\' && in->at[1] == 'u') {
        in->at += 2;
        long low = take_hex(in, 4);
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : -1;
    }
    if (code <= 0 || code > 0x10ffff)
        return json_in_fail(in, "a text has a bad escape", err);
    put_character(&in->value, (unsigned long)code);
    return 0;
}

/* A text whose quote is at the reader's position. */
static int take_text(struct json_in *in, struct error *err)
{
    char quote = *in->at++;
    in->value.len_bytes = 0;
    buf_append(&in->value, "", 0);
    for (;;) {
        size_t n = strcspn(in->at, quote == '"' ? "\"\\\n" : "'\\\n");
        buf_append(&in->value, in->at, n);
        in->at += n;
        if (in->at >= in->end || *in->at == '\n' || *in->at == 0)
            return json_in_fail(in, "a text has no end", err);
        if (*in->at++ == quote)
            break;
        int code = take_escape(in, err);
        if (code != 0)
            return code;
    }
    buf_append(&in->value, "", 0);
    return in->value.failed ? error_memory(err) : 0;
}

static int take_number(struct json_in *in, struct error *err)
{
    char *end;
    in->number = plain_number(in->at, &end);
    if (end == in->at || isalnum((unsigned char)*end) || *end == '_')
        return json_in_fail(in, "a value is expected", err);
    in->at = end;
    return JSON_IN_NUMBER;
}

/* A number, or a word that stands for a value. */
static int take_word(struct json_in *in, struct error *err)
{
    static const struct {
        const char *word;
        int piece;
        double number;
    } words[] = {{"null", JSON_IN_NULL, 0},   {"None", JSON_IN_NULL, 0},    {"true", JSON_IN_NUMBER, 1},
                 {"True", JSON_IN_NUMBER, 1}, {"false", JSON_IN_NUMBER, 0}, {"False", JSON_IN_NUMBER, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if (strncmp(in->at, words[i].word, n) == 0 && !isalnum((unsigned char)in->at[n])) {
            in->at += n;
            in->number = words[i].number;
            return words[i].piece;
        }
    }
    return take_number(in, err);
}

static int open_bracket(struct json_in *in, struct error *err)
{
    if (!vec_reserve(&in->open, &in->cap_open, in->n_open + 1, 1))
        return error_memory(err);
    in->open[in->n_open++] = *in->at;
    in->expects = JSON_IN_ITEM;
    return *in->at++ == '{' ? JSON_IN_OBJECT : JSON_IN_LIST;
}

static int close_bracket(struct json_in *in, struct error *err)
{
    static const char pairs[] = "{}[]()";
    char open = in->n_open > 0 ? in->open[in->n_open - 1] : 0;
    if (!open || strchr(pairs, open)[1] != *in->at || in->expects == JSON_IN_VALUE)
        return json_in_fail(in, "a bracket ends what has not begun, or has no value", err);
    in->at++;
    in->n_open--;
    in->expects = JSON_IN_COMMA;
    return open == '{' ? JSON_IN_OBJECT_END : JSON_IN_LIST_END;
}

/* The end of the text, where nothing is open and a value has been. */
static int end_text(const struct json_in *in, struct error *err)
{
    if (in->at < in->end)
        return json_in_fail(in, "there is a NUL character", err);
    return in->n_open > 0 || in->expects != JSON_IN_COMMA ? json_in_fail(in, "the text ends too early", err)
                                                          : JSON_IN_END;
}

int json_in_next(struct json_in *in, struct error *err)
{
    skip_blanks(in);
    if (in->expects == JSON_IN_COMMA && *in->at == ',' && in->n_open > 0) {
        in->at++;
        in->expects = JSON_IN_ITEM;
        skip_blanks(in);
    }
    char first = *in->at;
    if (!first)
        return end_text(in, err);
    if (strchr("}])", first))
        return close_bracket(in, err);
    if (in->expects == JSON_IN_COMMA)
        return json_in_fail(in, in->n_open > 0 ? "a comma is missing" : "something follows the end", err);
    bool is_key = in->expects == JSON_IN_ITEM && in->n_open > 0 && in->open[in->n_open - 1] == '{';
    if (is_key) {
        int code = first == '"' || first == '\'' ? take_text(in, err) : json_in_fail(in, "a key is expected", err);
        skip_blanks(in);
        if (code == 0 && *in->at != ':')
            return json_in_fail(in, "a key has no value", err);
        in->at += code == 0;
        in->expects = JSON_IN_VALUE;
        return code == 0 ? JSON_IN_KEY : code;
    }
    if (strchr("{[(", first))
        return open_bracket(in, err);
    in->expects = JSON_IN_COMMA;
    if (first == '"' || first == '\'') {
        int code = take_text(in, err);
        return code == 0 ? JSON_IN_TEXT : code;
    }
    return take_word(in, err);
}

int json_in_expect(struct json_in *in, int piece, const char *reason, struct error *err)
{
    int found = json_in_next(in, err);
    if (found < 0)
        return found;
    return found == piece ? 0 : json_in_fail(in, reason, err);
}

int json_in_skip(struct json_in *in, int piece, struct error *err)
{
    size_t depth = in->n_open;
    if (piece != JSON_IN_OBJECT && piece != JSON_IN_LIST)
        return piece < 0 ? piece : 0;
    while (in->n_open >= depth) {
        piece = json_in_next(in, err);
        if (piece < 0)
            return piece;
    }
    return 0;
}
