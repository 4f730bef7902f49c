/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding addresses in a function, wherever its structure comes from. */
#include "structure/structure.h"

uint32_t structure_span_at(const struct structure_function *function, uint64_t vaddr)
{
    size_t low = 0, high = function->n_spans;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (function->spans[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && vaddr < function->spans[low - 1].end ? (uint32_t)low - 1 : STRUCTURE_NONE;
}
