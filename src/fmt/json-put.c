/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON text: see json-put.h. */
#include "fmt/json-put.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"

#define MAX_EXACT_WORD (UINT64_C(1) << 53)

static bool is_utf8(const char *text)
{
    for (size_t len; *text; text += len)
        if ((len = printable_utf8(text)) == 0)
            return false;
    return true;
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
            size_t n_plain = strcspn(text, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11"
                                           "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
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
    buf_printf(out, value > MAX_EXACT_WORD ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
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
