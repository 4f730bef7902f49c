/* SPDX-License-Identifier: BSD-3-Clause */
/* Which functions never return: by the names of well-known ones, and by their code, when no way through it leads to a
 * return. Without this the code behind a call of abort() would seem to continue the code before it. Ordinary code,
 * untrusted input. */
#ifndef LOCUS_STRUCTURE_RETURNS_H
#define LOCUS_STRUCTURE_RETURNS_H

#include <stdbool.h>

#include "structure/cfg-insn.h"
#include "structure/code-image.h"

struct returns;

/* What is asked of the module: the name of the function that begins at vaddr, NULL when there is none. */
typedef const char *returns_name(void *context, uint64_t vaddr);

/* elf: the module, for the names of imported functions; everything is borrowed. NULL when out of memory. */
struct returns *returns_new(Elf *elf, const struct code_image *image, const struct cfg_decoder *decoder,
                            returns_name *name, void *context);
void returns_free(struct returns *returns);

/* True when the function at callee (by_slot: whose address is in the word at callee) is known not to return: by_name
 * only when that can be told from its name, which is quick. */
bool returns_never(struct returns *returns, uint64_t callee, bool by_slot, bool by_name);

#endif
