/* SPDX-License-Identifier: BSD-3-Clause */
/* The XML is parsed in place: names and values are terminated, and references in values replaced, in the text. */
#include "base/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

int xml_fail(const struct xml_in *xml, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%s: offset %zu: %s", xml->name, (size_t)(xml->at - xml->text), reason);
}

/* Moves past the next occurrence of what; false when there is none. */
static bool skip_past(struct xml_in *xml, const char *what)
{
    size_t len = strlen(what);
    char *found = memmem(xml->at, (size_t)(xml->end - xml->at), what, len);
    if (found)
        xml->at = found + len;
    return found != NULL;
}

/* Moves past a document type, which may contain declarations in brackets. */
static bool skip_doctype(struct xml_in *xml)
{
    char *open = memchr(xml->at, '[', (size_t)(xml->end - xml->at));
    char *close = memchr(xml->at, '>', (size_t)(xml->end - xml->at));
    if (!open || !close || close < open)
        return skip_past(xml, ">");
    while (skip_past(xml, "]")) { /* comments may hold brackets, too */
        char *end = xml->at + strspn(xml->at, BLANKS);
        if (*end == '>') {
            xml->at = end + 1;
            return true;
        }
    }
    return false;
}

/* Appends a character as UTF-8 at p; returns what follows. */
static char *put_character(char *p, unsigned long code)
{
    if (code < 0x80) {
        *p++ = (char)code;
    } else if (code < 0x800) {
        *p++ = (char)(0xc0 | code >> 6);
        *p++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *p++ = (char)(0xe0 | code >> 12);
        *p++ = (char)(0x80 | (code >> 6 & 0x3f));
        *p++ = (char)(0x80 | (code & 0x3f));
    } else {
        *p++ = (char)(0xf0 | code >> 18);
        *p++ = (char)(0x80 | (code >> 12 & 0x3f));
        *p++ = (char)(0x80 | (code >> 6 & 0x3f));
        *p++ = (char)(0x80 | (code & 0x3f));
    }
    return p;
}

/* The character that a reference (behind '&', up to ';') stands for; 0 when it is none. As UTF-8 it takes fewer bytes
 * than the reference. */
static unsigned long reference_value(const char *text, size_t len)
{
    static const struct {
        const char *name;
        char character;
    } names[] = {{"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}, {"quot;", '"'}, {"apos;", '\''}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (len == strlen(names[i].name) && memcmp(text, names[i].name, len) == 0)
            return (unsigned char)names[i].character;
    if (len < 3 || text[0] != '#' || len > 10)
        return 0;
    char *end = NULL;
    unsigned long code = text[1] == 'x' ? strtoul(text + 2, &end, 16) : strtoul(text + 1, &end, 10);
    return end == text + len - 1 && code <= 0x10ffff ? code : 0;
}

/* Replaces the references in a value, which ends with a NUL; to: the first one. */
static void replace_references(char *to)
{
    for (char *from = to; *from;) {
        char *end = *from == '&' ? strchr(from, ';') : NULL;
        unsigned long code = end ? reference_value(from + 1, (size_t)(end - from)) : 0;
        if (code) {
            to = put_character(to, code);
            from = end + 1;
        } else {
            *to++ = *from++;
        }
        if (!*from)
            *to = 0;
    }
}

/* What a character is: most texts are short, and loops over them faster than strspn and its kind. */
enum { IS_BLANK = 1, ENDS_NAME = 2 };
static const uint8_t of_character[UINT8_MAX + 1] = {[0] = ENDS_NAME,
                                                    [' '] = IS_BLANK | ENDS_NAME,
                                                    ['\t'] = IS_BLANK | ENDS_NAME,
                                                    ['\r'] = IS_BLANK | ENDS_NAME,
                                                    ['\n'] = IS_BLANK | ENDS_NAME,
                                                    ['='] = ENDS_NAME,
                                                    ['/'] = ENDS_NAME,
                                                    ['>'] = ENDS_NAME,
                                                    ['"'] = ENDS_NAME,
                                                    ['\''] = ENDS_NAME,
                                                    ['<'] = ENDS_NAME};

static char *behind_blanks(char *at)
{
    while (of_character[(uint8_t)*at] & IS_BLANK)
        at++;
    return at;
}

static char *behind_name(char *at)
{
    while (!(of_character[(uint8_t)*at] & ENDS_NAME))
        at++;
    return at;
}

/* Reads one attribute, name="value". */
static int take_attribute(struct xml_in *xml, struct error *err)
{
    char *name = xml->at, *name_end = behind_name(name);
    xml->at = behind_blanks(name_end);
    if (name_end == name || *xml->at != '=')
        return xml_fail(xml, "an attribute has no value", err);
    xml->at = behind_blanks(xml->at + 1);
    char quote = *xml->at;
    if (quote != '"' && quote != '\'')
        return xml_fail(xml, "the value of an attribute is not quoted", err);
    char *value = ++xml->at, *close = value, *reference = NULL;
    for (; close < xml->end && *close != quote; close++)
        reference = reference || *close != '&' ? reference : close;
    if (close == xml->end)
        return xml_fail(xml, "the text ends in the value of an attribute", err);
    *name_end = 0;
    *close = 0;
    xml->at = close + 1;
    if (reference)
        replace_references(reference);
    if (xml->n_attributes < XML_ATTRIBUTES_MAX) {
        xml->attributes[xml->n_attributes].name = name;
        xml->attributes[xml->n_attributes++].value = value;
    }
    return 0;
}

/* Reads an element whose '<' has been read. */
static int take_element(struct xml_in *xml, struct error *err)
{
    bool is_close = *xml->at == '/';
    char *name = xml->at + is_close, *name_end = behind_name(name);
    if (name_end == name)
        return xml_fail(xml, "an element has no name", err);
    xml->element = name;
    xml->n_attributes = 0;
    xml->at = name_end;
    for (;;) {
        xml->at = behind_blanks(xml->at);
        bool is_empty = *xml->at == '/';
        if (*xml->at == '>' || (is_empty && xml->at[1] == '>')) {
            xml->is_empty = is_empty;
            xml->at += 1 + is_empty;
            *name_end = 0;
            return is_close ? XML_CLOSE : XML_OPEN;
        }
        if (xml->at >= xml->end)
            return xml_fail(xml, "the text ends in an element", err);
        int code = take_attribute(xml, err);
        if (code)
            return code;
    }
}

int xml_next(struct xml_in *xml, struct error *err)
{
    if (xml->is_empty) {
        xml->is_empty = false;
        return XML_CLOSE;
    }
    while (skip_past(xml, "<")) {
        bool ok = true;
        if (*xml->at == '?')
            ok = skip_past(xml, "?>");
        else if (strncmp(xml->at, "!--", 3) == 0)
            ok = skip_past(xml, "-->");
        else if (*xml->at == '!')
            ok = skip_doctype(xml);
        else
            return take_element(xml, err);
        if (!ok)
            return xml_fail(xml, "the text ends in a comment or declaration", err);
    }
    return XML_END_OF_TEXT;
}

const char *xml_attribute(const struct xml_in *xml, const char *name)
{
    for (size_t i = 0; i < xml->n_attributes; i++)
        if (strcmp(xml->attributes[i].name, name) == 0)
            return xml->attributes[i].value;
    return NULL;
}
