/* SPDX-License-Identifier: BSD-3-Clause */
/* What structure files hold beyond HPCToolkit's format: local variables with their places, and types. A type is written
 * once, after everything that names it. Ordinary code. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_XML_TYPES_H
#define LOCUS_STRUCTURE_STRUCTURE_XML_TYPES_H

#include "structure/symbols.h"
#include "structure/xml-out.h"

struct structure_types;

/* symbols: the module, borrowed. NULL when out of memory. */
struct structure_types *structure_types_new(struct symbols *symbols);
void structure_types_free(struct structure_types *types);

/* Writes the type of the variable at vaddr as an attribute, if it is known. */
void structure_types_put_static(struct structure_types *types, uint64_t vaddr, struct xml_out *xml);

/* Writes the local variables of the function at vaddr, those of what was inlined into it included. */
void structure_types_put_locals(struct structure_types *types, uint64_t vaddr, struct xml_out *xml);

/* Writes all types that were named so far, and those that they are made of. */
void structure_types_put(struct structure_types *types, struct xml_out *xml);

#endif
