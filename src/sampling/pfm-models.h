/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of libpfm4's tables describe the CPU of a fixture: libpfm4 itself finds that out for the running CPU only.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PFM_MODELS_H
#define LOCUS_SAMPLING_PFM_MODELS_H

#include "sampling/machine.h"

/* Name of libpfm4's table ("spr"); NULL for a CPU that is not known. The installed libpfm4 may lack it. Static. */
const char *pfm_model_of(const struct machine_cpu *cpu);

#endif
