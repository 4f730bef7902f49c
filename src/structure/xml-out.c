/* SPDX-License-Identifier: BSD-3-Clause */
/* The block, numbers and escapes: see xml-out.h. */
#include "structure/xml-out.h"

#include <string.h>

#define ROOM_BYTES 128 /* for the longest text that is put in one go: the beginning of an element */
#define DIGITS_MAX 20

void xml_flush(struct xml_out *xml)
{
    if (!xml->is_failed && fwrite(xml->bytes, 1, xml->n_bytes, xml->out) != xml->n_bytes)
        xml->is_failed = true;
    xml->n_bytes = 0;
}

void xml_put_bytes(struct xml_out *xml, const char *bytes, size_t n)
{
    if (n <= XML_OUT_BYTES - xml->n_bytes) {
        memcpy(xml->bytes + xml->n_bytes, bytes, n);
        xml->n_bytes += n;
        return;
    }
    while (n > 0) {
        if (xml->n_bytes == XML_OUT_BYTES)
            xml_flush(xml);
        size_t part = n < XML_OUT_BYTES - xml->n_bytes ? n : XML_OUT_BYTES - xml->n_bytes;
        memcpy(xml->bytes + xml->n_bytes, bytes, part);
        xml->n_bytes += part;
        bytes += part;
        n -= part;
    }
}

/* Where the next text of at most ROOM_BYTES goes. */
static char *room(struct xml_out *xml)
{
    if (XML_OUT_BYTES - xml->n_bytes < ROOM_BYTES)
        xml_flush(xml);
    return xml->bytes + xml->n_bytes;
}

/* at has room for DIGITS_MAX. */
static char *add_number(char *at, uint64_t value)
{
    char digits[2 * DIGITS_MAX] = "";
    unsigned first = DIGITS_MAX;
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    memcpy(at, digits + first, DIGITS_MAX);
    return at + DIGITS_MAX - first;
}

static char *add_text(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

static char *add_address(char *at, uint64_t value)
{
    unsigned n = value ? (67u - (unsigned)__builtin_clzll(value)) / 4 : 1;
    *at++ = '0';
    *at++ = 'x';
    for (unsigned i = n; i-- > 0; value >>= 4)
        at[i] = "0123456789abcdef"[value & 15];
    return at + n;
}

void xml_put_number(struct xml_out *xml, uint64_t value)
{
    char *at = room(xml);
    xml->n_bytes += (size_t)(add_number(at, value) - at);
}

void xml_put_range(struct xml_out *xml, uint64_t start, uint64_t end)
{
    char *from = room(xml), *at = from;
    *at++ = '[';
    at = add_address(at, start);
    *at++ = '-';
    at = add_address(at, end);
    *at++ = ')';
    xml->n_bytes += (size_t)(at - from);
}

/* Length of the UTF-8 character at text, 0 when it is none that XML may hold. */
static size_t character_bytes(const unsigned char *text)
{
    if (text[0] < 0x80)
        return text[0] >= 0x20 || text[0] == '\t';
    size_t n = text[0] >= 0xf0 && text[0] < 0xf5 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc2 ? 2 : 0;
    if (text[0] >= 0xf5)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool is_odd = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90) ||
                  (text[0] == 0xf4 && text[1] > 0x8f) || (text[0] == 0xed && text[1] > 0x9f) ||
                  (text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe);
    return is_odd ? 0 : n;
}

void xml_put_escaped(struct xml_out *xml, const char *text)
{
    const char *from = text;
    for (;;) {
        size_t n = character_bytes((const unsigned char *)text);
        const char *instead = *text == '&'   ? "&amp;"
                              : *text == '<' ? "&lt;"
                              : *text == '>' ? "&gt;"
                              : *text == '"' ? "&quot;"
                              : n == 0       ? "?"
                                             : NULL;
        if (!instead) {
            text += n;
            continue;
        }
        xml_put_bytes(xml, from, (size_t)(text - from));
        if (*text == 0)
            return;
        xml_put(xml, instead);
        from = ++text;
    }
}

void xml_open(struct xml_out *xml, const char *tag)
{
    xml_put(xml, "<");
    xml_put(xml, tag);
    xml_number_attribute(xml, "i", ++xml->id);
}

void xml_open_code(struct xml_out *xml, const char *tag, uint32_t line)
{
    char *from = room(xml), *at = add_text(from, "<");
    at = add_text(at, tag);
    at = add_number(add_text(at, " i=\""), ++xml->id);
    at = add_number(add_text(at, "\" l=\""), line);
    at = add_text(at, "\" v=\"{");
    xml->n_bytes += (size_t)(at - from);
}

static void open_attribute(struct xml_out *xml, const char *name)
{
    xml_put(xml, " ");
    xml_put(xml, name);
    xml_put(xml, "=\"");
}

void xml_text_attribute(struct xml_out *xml, const char *name, const char *text)
{
    open_attribute(xml, name);
    xml_put_escaped(xml, text ? text : "");
    xml_put(xml, "\"");
}

void xml_number_attribute(struct xml_out *xml, const char *name, uint64_t value)
{
    open_attribute(xml, name);
    xml_put_number(xml, value);
    xml_put(xml, "\"");
}

void xml_address_attribute(struct xml_out *xml, const char *name, uint64_t value)
{
    open_attribute(xml, name);
    char *from = room(xml);
    xml->n_bytes += (size_t)(add_address(from, value) - from);
    xml_put(xml, "\"");
}

void xml_signed_attribute(struct xml_out *xml, const char *name, int64_t value)
{
    open_attribute(xml, name);
    if (value < 0)
        xml_put(xml, "-");
    xml_put_number(xml, value < 0 ? -(uint64_t)value : (uint64_t)value);
    xml_put(xml, "\"");
}

void xml_path_attribute(struct xml_out *xml, const char *name, const char *path)
{
    open_attribute(xml, name);
    for (size_t i = 0; path && i < xml->n_replacements; i++) {
        size_t len = strlen(xml->replacements[i].old_prefix);
        if (strncmp(path, xml->replacements[i].old_prefix, len) == 0) {
            xml_put_escaped(xml, xml->replacements[i].new_prefix);
            path += len;
            break;
        }
    }
    xml_put_escaped(xml, path ? path : "");
    xml_put(xml, "\"");
}
