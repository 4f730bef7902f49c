/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in readable form. The demangler of the C++ runtime library is loaded when it is first needed, so that the
 * tools run, and names merely stay mangled, where there is none. Ordinary code. */
#ifndef LOCUS_STRUCTURE_DEMANGLE_H
#define LOCUS_STRUCTURE_DEMANGLE_H

/* Readable form of a mangled C++ or Rust name (beginning with "_Z"), Rust's without the hash at its end; malloc'ed, the
 * caller frees it. NULL when the name is not mangled, cannot be demangled, or the C++ runtime library is missing. */
char *demangle_name(const char *name);

/* The name of a variable or procedure of a Fortran module, "fields::parts", from its symbol, "__fields_MOD_parts";
 * malloc'ed, the caller frees it. NULL when it is none. */
char *demangle_module_name(const char *name);

#endif
