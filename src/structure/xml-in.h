/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the elements and attributes of an XML text in memory, without what structure files have no use for: texts
 * between elements, comments, processing instructions and the document type are passed over. Ordinary code, untrusted
 * input. */
#ifndef LOCUS_STRUCTURE_XML_IN_H
#define LOCUS_STRUCTURE_XML_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { XML_ATTRIBUTES_MAX = 24 };

enum xml_event { XML_END_OF_TEXT = 0, XML_OPEN, XML_CLOSE };

/* All zero but text, at = text, end and name. */
struct xml_in {
    char *text, *at, *end; /* changed while it is read; a NUL follows at end */
    const char *name;      /* of the file, for messages */
    const char *element;   /* of the last event; borrowed from the text, as the attributes */
    struct {
        const char *name, *value;
    } attributes[XML_ATTRIBUTES_MAX]; /* [n_attributes] of XML_OPEN; more are passed over */
    size_t n_attributes;
    bool is_empty; /* the last element has ended where it began: its XML_CLOSE comes next */
};

/* The next begin or end of an element, which need not fit each other; negative when the text is no XML.
 * err: ERR_FORMAT */
int xml_in_next(struct xml_in *xml, struct error *err);

/* Value of an attribute of the element just opened; NULL when it has none of that name. */
const char *xml_in_attribute(const struct xml_in *xml, const char *name);

#endif
