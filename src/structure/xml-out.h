/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing XML quickly: text goes into one block of memory that is written whenever it is full. Ordinary code. */
#ifndef LOCUS_STRUCTURE_XML_OUT_H
#define LOCUS_STRUCTURE_XML_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define XML_OUT_BYTES (UINT32_C(1) << 16)

struct xml_replacement {
    const char *old_prefix, *new_prefix;
};

/* One file while it is written. All zero but out is ready. */
struct xml_out {
    FILE *out;
    const struct xml_replacement *replacements; /* [n_replacements] of the beginnings of paths */
    size_t n_replacements;
    uint64_t id;    /* of the last element */
    bool is_failed; /* out cannot be written */
    size_t n_bytes;
    char bytes[XML_OUT_BYTES];
};

/* Bytes as they are. */
void xml_put_bytes(struct xml_out *xml, const char *bytes, size_t n);
/* Text as it is; inline, because the length of most is known to the compiler. */
static inline void xml_put(struct xml_out *xml, const char *text)
{
    size_t n = strlen(text);
    if (n > XML_OUT_BYTES - xml->n_bytes) {
        xml_put_bytes(xml, text, n);
        return;
    }
    memcpy(xml->bytes + xml->n_bytes, text, n);
    xml->n_bytes += n;
}
/* Text with what XML does not allow in it replaced. */
void xml_put_escaped(struct xml_out *xml, const char *text);
void xml_put_number(struct xml_out *xml, uint64_t value);
/* "[0xstart-0xend)" */
void xml_put_range(struct xml_out *xml, uint64_t start, uint64_t end);

/* Begins an element: its tag and number. */
void xml_open(struct xml_out *xml, const char *tag);
/* Begins an element that covers code of a line, up to the addresses: <tag i="number" l="line" v="{ */
void xml_open_code(struct xml_out *xml, const char *tag, uint32_t line);
/* An attribute: text (NULL: empty), number, address, signed number, path with its beginning replaced. */
void xml_text_attribute(struct xml_out *xml, const char *name, const char *text);
void xml_number_attribute(struct xml_out *xml, const char *name, uint64_t value);
void xml_address_attribute(struct xml_out *xml, const char *name, uint64_t value);
void xml_signed_attribute(struct xml_out *xml, const char *name, int64_t value);
void xml_path_attribute(struct xml_out *xml, const char *name, const char *path);

/* Writes what is left. */
void xml_flush(struct xml_out *xml);

#endif
