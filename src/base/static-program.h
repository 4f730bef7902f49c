/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpclink and the runtime inside a static program agree on. */
#ifndef LOCUS_BASE_STATIC_PROGRAM_H
#define LOCUS_BASE_STATIC_PROGRAM_H

/* In the runtime's data: hpclink writes the path of hpcrun behind it, and hpcrun knows the program by it. */
#define STATIC_PROGRAM_MARK "Locus runtime inside, launched by:"
#define STATIC_PROGRAM_PATH_BYTES 4096

/* Set in the environment by a program that replaces itself by hpcrun; value: its process id. */
#define STATIC_PROGRAM_ENV "HPCRUN_SELF_LAUNCHED"

#endif
