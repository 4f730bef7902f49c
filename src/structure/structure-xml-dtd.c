/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements and attributes as HPCToolkit's format has them, version 4.7 with variables; L has two attributes more. */
#include "structure/structure-xml-dtd.h"

const char *structure_xml_dtd(void)
{
    return "<?xml version=\"1.0\"?>\n"
           "<!DOCTYPE HPCToolkitStructure [\n"
           "<!ELEMENT HPCToolkitStructure (LM)*>\n"
           "<!ATTLIST HPCToolkitStructure version CDATA #REQUIRED i CDATA #REQUIRED n CDATA #IMPLIED>\n"
           "<!-- load module -->\n"
           "<!ELEMENT LM (F|P)*>\n"
           "<!ATTLIST LM i CDATA #REQUIRED n CDATA #REQUIRED v CDATA #IMPLIED>\n"
           "<!-- source file -->\n"
           "<!ELEMENT F (P|L|S|V)*>\n"
           "<!ATTLIST F i CDATA #REQUIRED n CDATA #REQUIRED>\n"
           "<!-- variable -->\n"
           "<!ELEMENT V EMPTY>\n"
           "<!ATTLIST V i CDATA #REQUIRED v CDATA #REQUIRED n CDATA #REQUIRED ln CDATA #IMPLIED l CDATA #IMPLIED>\n"
           "<!-- function; ln: link name when it differs -->\n"
           "<!ELEMENT P (P|A|L|S|C|V)*>\n"
           "<!ATTLIST P i CDATA #REQUIRED n CDATA #REQUIRED ln CDATA #IMPLIED l CDATA #IMPLIED s CDATA #IMPLIED\n"
           "  v CDATA #IMPLIED>\n"
           "<!-- inlined function, in one without name that gives the position of the call -->\n"
           "<!ELEMENT A (A|L|S|C)*>\n"
           "<!ATTLIST A i CDATA #REQUIRED f CDATA #IMPLIED n CDATA #IMPLIED ln CDATA #IMPLIED l CDATA #IMPLIED\n"
           "  v CDATA #IMPLIED>\n"
           "<!-- loop; l: first and last line; m: machine loops, when there are several; ir: irreducible -->\n"
           "<!ELEMENT L (A|L|S|C)*>\n"
           "<!ATTLIST L i CDATA #REQUIRED l CDATA #REQUIRED f CDATA #IMPLIED v CDATA #IMPLIED m CDATA #IMPLIED\n"
           "  ir CDATA #IMPLIED>\n"
           "<!-- statement -->\n"
           "<!ELEMENT S EMPTY>\n"
           "<!ATTLIST S i CDATA #REQUIRED l CDATA #REQUIRED v CDATA #IMPLIED>\n"
           "<!-- call -->\n"
           "<!ELEMENT C (C)*>\n"
           "<!ATTLIST C i CDATA #REQUIRED l CDATA #REQUIRED v CDATA #IMPLIED t CDATA #IMPLIED d CDATA #IMPLIED>\n"
           "]>\n";
}
