/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON text: see json.h. */
#include "fmt/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/input.h"

#define MAX_EXACT_WORD (UINT64_C(1) << 53)

static bool is_utf8(const char *text)
{
    for (size_t len; *text; text += len)
        if ((len = (unsigned char)*text < 0x80 ? 1 : printable_utf8(text)) == 0)
            return false;
    return true;
}

/* How many bytes at the beginning of a text stand for themselves in a string. */
static size_t count_plain(const char *text)
{
    size_t n = 0;
    while ((unsigned char)text[n] >= ' ' && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

static void put_bytes(struct buf *out, const char *text)
{
    buf_printf(out, "{\"bytes\": \"");
    for (; *text; text++)
        buf_printf(out, "%02x", (unsigned char)*text);
    buf_printf(out, "\"}");
}

void json_put_text(struct buf *out, const char *text)
{
    if (!text)
        buf_printf(out, "null");
    else if (!is_utf8(text))
        put_bytes(out, text);
    else {
        buf_append(out, "\"", 1);
        for (; *text; text++) {
            size_t n_plain = count_plain(text);
            buf_append(out, text, n_plain);
            text += n_plain;
            if (!*text)
                break;
            buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "\\u%04x", (unsigned char)*text);
        }
        buf_append(out, "\"", 1);
    }
}

void json_put_word(struct buf *out, uint64_t value)
{
    buf_append(out, "\"", value > MAX_EXACT_WORD);
    buf_put_word(out, value);
    buf_append(out, "\"", value > MAX_EXACT_WORD);
}

void json_double_text(double value, char *text, size_t size_bytes)
{
    for (int n_digits = 6; n_digits <= 17; n_digits++) {
        (void)snprintf(text, size_bytes, "%.*g", n_digits, value);
        if (bytes_bits_of(strtod(text, NULL)) == bytes_bits_of(value))
            break;
    }
}

void json_put_double(struct buf *out, double value)
{
    if (!isfinite(value)) {
        buf_printf(out, "\"0x%016" PRIx64 "\"", bytes_bits_of(value));
        return;
    }
    char text[40];
    json_double_text(value, text, sizeof text);
    buf_printf(out, strpbrk(text, ".e") ? "%s" : "%s.0", text);
}

void json_put_key(struct buf *out, const char *key, int first)
{
    if (!first)
        buf_append(out, ", ", 2);
    json_put_text(out, key);
    buf_append(out, ": ", 2);
}

void json_put_text_at(struct buf *out, const char *key, const char *text)
{
    json_put_key(out, key, 0);
    json_put_text(out, text);
}

void json_put_word_at(struct buf *out, const char *key, uint64_t value)
{
    json_put_key(out, key, 0);
    json_put_word(out, value);
}

void json_put_double_at(struct buf *out, const char *key, double value)
{
    json_put_key(out, key, 0);
    json_put_double(out, value);
}

void json_put_words(struct buf *out, const uint64_t *values, size_t n_values)
{
    buf_append(out, "[", 1);
    for (size_t i = 0; i < n_values; i++) {
        if (i)
            buf_append(out, ", ", 2);
        json_put_word(out, values[i]);
    }
    buf_append(out, "]", 1);
}

/* --- reading --- */

/* Typed values out of JSON: see json.h. */

int json_take_fail(struct json_take *take, int code, const char *what, const char *reason)
{
    if (take->code)
        return take->code;
    if (take->where)
        take->code =
            error_set(take->err, code, "%.400s: %s[%zu]: %s: %s", take->name, take->where, take->index, what, reason);
    else
        take->code = error_set(take->err, code, "%.400s: %s: %s", take->name, what, reason);
    return take->code;
}

json_t *json_take_parse(struct json_take *take, const char *bytes, size_t len_bytes)
{
    json_error_t failure;
    json_t *root = json_loadb(bytes, len_bytes, JSON_REJECT_DUPLICATES, &failure);
    if (!root && (json_error_code(&failure) == json_error_out_of_memory || !failure.text[0])) {
        json_take_fail(take, ERR_MEMORY, "the file", "out of memory");
        return NULL;
    }
    if (!root) {
        take->code = error_set(take->err, ERR_FORMAT, "%.400s: offset %d (line %d, column %d): not valid JSON: %s",
                               take->name, failure.position, failure.line, failure.column, failure.text);
        return NULL;
    }
    if (!json_is_object(root)) {
        json_take_fail(take, ERR_FORMAT, "the file", "a JSON object is expected");
        json_decref(root);
        return NULL;
    }
    return root;
}

static bool parse_word(const char *text, uint64_t *value)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    return errno == 0 && *end == '\0';
}

uint64_t json_take_word(struct json_take *take, const json_t *value, uint64_t max, const char *what)
{
    uint64_t word = 0;
    bool known = json_is_integer(value) && json_integer_value(value) >= 0;
    if (known)
        word = (uint64_t)json_integer_value(value);
    else if (json_is_string(value))
        known = parse_word(json_string_value(value), &word);
    if (take->code || (known && word <= max))
        return take->code ? 0 : word;
    char reason[80];
    (void)snprintf(reason, sizeof reason, "an integer from 0 to %" PRIu64 " is expected", max);
    json_take_fail(take, ERR_FORMAT, what, reason);
    return 0;
}

uint64_t json_take_word_at(struct json_take *take, const json_t *object, const char *key, uint64_t max)
{
    return json_take_word(take, json_object_get(object, key), max, key);
}

int32_t json_take_int32_at(struct json_take *take, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= INT32_MIN && number <= INT32_MAX)
        return (int32_t)number;
    json_take_fail(take, ERR_FORMAT, key, "a signed integer of 32 bits is expected");
    return 0;
}

double json_take_double(struct json_take *take, const json_t *value, const char *what)
{
    uint64_t bits = 0;
    if (json_is_number(value))
        return json_number_value(value);
    if (json_is_string(value) && parse_word(json_string_value(value), &bits))
        return bytes_double_of(bits);
    json_take_fail(take, ERR_FORMAT, what, "a number, or its bits as \"0x...\", is expected");
    return 0;
}

double json_take_double_at(struct json_take *take, const json_t *object, const char *key)
{
    return json_take_double(take, json_object_get(object, key), key);
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static bool is_hex(const char *hex)
{
    for (; *hex; hex += 2) {
        int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
        if (low < 0 || high + low == 0)
            return false;
    }
    return true;
}

/* The bytes that pairs of hex digits name, malloc'ed. */
static char *bytes_of_hex(const char *hex)
{
    size_t n_bytes = strlen(hex) / 2;
    char *bytes = calloc(n_bytes + 1, 1);
    for (size_t i = 0; bytes && i < n_bytes; i++)
        bytes[i] = (char)(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
    return bytes;
}

char *json_take_text(struct json_take *take, const json_t *value, const char *what)
{
    if (take->code || json_is_null(value))
        return NULL;
    const char *hex = json_string_value(json_object_get(value, "bytes"));
    if (hex ? !is_hex(hex) : !json_is_string(value)) {
        json_take_fail(take, ERR_FORMAT, what, "a string or {\"bytes\": \"<hex>\"} is expected");
        return NULL;
    }
    char *text = hex ? bytes_of_hex(hex) : strdup(json_string_value(value));
    if (!text)
        json_take_fail(take, ERR_MEMORY, what, "out of memory");
    return text;
}

char *json_take_text_at(struct json_take *take, const json_t *object, const char *key)
{
    return json_take_text(take, json_object_get(object, key), key);
}

char *json_take_text_needed_at(struct json_take *take, const json_t *object, const char *key)
{
    char *text = json_take_text_at(take, object, key);
    if (!text)
        json_take_fail(take, ERR_FORMAT, key, "a string is expected");
    return text;
}

const json_t *json_take_array_at(struct json_take *take, const json_t *object, const char *key, size_t *n_items)
{
    const json_t *array = json_object_get(object, key);
    *n_items = json_array_size(array);
    if (!json_is_array(array))
        json_take_fail(take, ERR_FORMAT, key, "a list is expected");
    return *n_items ? array : NULL;
}

void json_take_words_at(struct json_take *take, const json_t *object, const char *key, uint64_t *values,
                        size_t n_values)
{
    size_t n_items = 0;
    const json_t *array = json_take_array_at(take, object, key, &n_items);
    if (!take->code && n_items != n_values)
        json_take_fail(take, ERR_FORMAT, key, "the list has the wrong length");
    for (size_t i = 0; i < n_values && !take->code; i++)
        values[i] = json_take_word(take, json_array_get(array, i), UINT64_MAX, key);
}

void json_take_end(struct json_take *take, const json_t *object, size_t n_keys)
{
    if (json_object_size(object) != n_keys)
        json_take_fail(take, ERR_FORMAT, "an object", "it has an unknown key");
}

void *json_take_alloc(struct json_take *take, size_t n_items, size_t item_bytes)
{
    if (take->code || !n_items || !item_bytes)
        return NULL;
    void *items = calloc(n_items, item_bytes);
    if (!items)
        json_take_fail(take, ERR_MEMORY, "the file", "out of memory");
    return items;
}
