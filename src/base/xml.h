/* SPDX-License-Identifier: BSD-3-Clause */
/* XML element by element: text between elements, comments, processing instructions and the document type are skipped.
 * Ordinary code. */
#ifndef LOCUS_BASE_XML_H
#define LOCUS_BASE_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { XML_ATTRIBUTES_MAX = 24 };

enum xml_event { XML_END_OF_TEXT = 0, XML_OPEN, XML_CLOSE };

/* All zero but text, at = text, end and name. */
struct xml_in {
    char *text, *at, *end; /* changed during reading; a NUL follows at end */
    const char *name;      /* of the file, for messages */
    const char *element;   /* of the last event; borrowed from the text, like the attributes */
    struct {
        const char *name, *value;
    } attributes[XML_ATTRIBUTES_MAX]; /* [n_attributes] of XML_OPEN; more are skipped */
    size_t n_attributes;
    bool is_empty; /* the last element was empty: its XML_CLOSE comes next */
};

/* The next begin or end of an element (enum xml_event), which need not match; negative when the text is not XML.
 * err: ERR_FORMAT (file, offset, reason) */
int xml_next(struct xml_in *xml, struct error *err);

/* Value of an attribute of the element just opened; NULL when it has none with that name. */
const char *xml_attribute(const struct xml_in *xml, const char *name);

/* Reports what is wrong at the reader's position; returns ERR_FORMAT. */
int xml_fail(const struct xml_in *xml, const char *reason, struct error *err);

#endif
