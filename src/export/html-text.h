/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in pages for browsers: names of variables, files and programs hold any byte, and none of them may be taken for
 * markup. Ordinary code. */
#ifndef LOCUS_EXPORT_HTML_TEXT_H
#define LOCUS_EXPORT_HTML_TEXT_H

#include "base/vec.h"

/* Appends text as content or as the value of an attribute in quotes: printable (base/input.h), and escaped. */
void html_put(struct buf *out, const char *text);

/* Appends an element with this content, which is escaped; class: NULL = none. Both are the caller's own words. */
void html_put_element(struct buf *out, const char *element, const char *class, const char *text);

/* Appends the beginning of a page with its style, up to the first line of the body; and its end. Nothing in the page
 * refers to anything outside, and no script runs in it. */
void html_put_begin(struct buf *out, const char *title);
void html_put_end(struct buf *out);

#endif
