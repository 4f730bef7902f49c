/* SPDX-License-Identifier: BSD-3-Clause */
/* The document type at the head of structure files. */
#ifndef LOCUS_STRUCTURE_STRUCTURE_XML_DTD_H
#define LOCUS_STRUCTURE_STRUCTURE_XML_DTD_H

/* XML declaration and document type, to be written before the root element. */
const char *structure_xml_dtd(void);

#endif
