/* SPDX-License-Identifier: BSD-3-Clause */
/* Escaping what a terminal would obey: see printable.h. */
#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>

size_t printable_utf8(const char *text)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (len < 2)
        return len;
    uint32_t code = s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

/* Of a character of len bytes: C0, DEL, C1 (U+0080 to U+009F), and U+200E, F, U+2028 to U+202E, U+2066 to U+2069. */
static bool is_control(const unsigned char *s, size_t len)
{
    if (len == 1)
        return s[0] < ' ' || s[0] == 0x7f;
    if (len == 2)
        return s[0] == 0xc2 && s[1] < 0xa0;
    if (len != 3 || s[0] != 0xe2)
        return false;
    bool turns = s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae));
    return turns || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

void printable_put(struct buf *out, const char *text)
{
    while (*text) {
        size_t len = printable_utf8(text), n = len ? len : 1;
        if (len && !is_control((const unsigned char *)text, len))
            buf_append(out, text, len);
        else
            for (size_t i = 0; i < n; i++)
                buf_printf(out, "\\x%02x", (unsigned char)text[i]);
        text += n;
    }
}
