/* SPDX-License-Identifier: BSD-3-Clause */
/* The call instructions of a function, from the same decoding that its loops are found in. */
#include <stdlib.h>

#include "structure/structure-internal.h"

bool structure_collect_calls(const struct structure *structure, struct structure_function *function)
{
    const struct cfg *cfg = &structure->cfg;
    size_t n = 0, s = 0;
    for (size_t i = 0; i < cfg->n_insns; i++)
        n += cfg->insns[i].is_call;
    if (n == 0)
        return true;
    function->calls = malloc(n * sizeof *function->calls);
    if (!function->calls)
        return false;
    for (size_t i = 0; i < cfg->n_insns; i++) {
        const struct cfg_insn *insn = &cfg->insns[i];
        if (!insn->is_call)
            continue;
        while (s < function->n_spans && function->spans[s].end <= insn->vaddr)
            s++;
        if (s == function->n_spans)
            break;
        /* one that a border runs through is no instruction of the compiler's */
        if (insn->vaddr >= function->spans[s].start && insn->vaddr + insn->len_bytes <= function->spans[s].end)
            function->calls[function->n_calls++] =
                (struct structure_call){insn->vaddr, insn->vaddr + insn->len_bytes, insn->by_slot ? 0 : insn->value};
    }
    return true;
}
