/* SPDX-License-Identifier: BSD-3-Clause */
/* The call instructions of a function, from the same decoding that its loops are found in. */
#include "structure/structure-internal.h"

size_t structure_calls_max(const struct structure *structure)
{
    size_t n = 0;
    for (size_t t = 0; t < structure->cfg.n_transfers; t++)
        n += structure->cfg.insns[structure->cfg.transfers[t]].is_call;
    return n;
}

void structure_take_calls(const struct structure *structure, struct structure_function *function)
{
    const struct cfg *cfg = &structure->cfg;
    size_t s = 0;
    for (size_t t = 0; t < cfg->n_transfers; t++) {
        const struct cfg_insn *insn = &cfg->insns[cfg->transfers[t]];
        if (!insn->is_call)
            continue;
        while (s < function->n_spans && function->spans[s].end <= insn->vaddr)
            s++;
        if (s == function->n_spans)
            return;
        /* one that a border runs through is no instruction of the compiler's */
        if (insn->vaddr >= function->spans[s].start && insn->vaddr + insn->len_bytes <= function->spans[s].end)
            function->calls[function->n_calls++] =
                (struct structure_call){insn->vaddr, insn->vaddr + insn->len_bytes, insn->by_slot ? 0 : insn->value};
    }
}
