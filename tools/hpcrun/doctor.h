/* SPDX-License-Identifier: BSD-3-Clause */
/* --doctor: what works on this machine. Ordinary code. */
#ifndef LOCUS_HPCRUN_DOCTOR_H
#define LOCUS_HPCRUN_DOCTOR_H

#include <stdio.h>

/* Prints for each source whether it works, exactly why not, and the fix; then the skid figures and what else a
 * measurement rests on. Returns an exit status: 1 when no source of data addresses works. */
int doctor_print(FILE *out);

#endif
