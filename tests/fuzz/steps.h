/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs of fuzzers that are lists of steps: u8 kind, u8 a, u16 b, u16 n, n bytes. What the rest means is the target's
 * affair. */
#ifndef LOCUS_FUZZ_STEPS_H
#define LOCUS_FUZZ_STEPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct step {
    uint8_t kind, a;
    uint16_t b, n_bytes;
};

/* Takes the next step off the input and returns its bytes, step->n_bytes of which are there; NULL at the end. */
static inline const uint8_t *step_next(const uint8_t **data, size_t *len_bytes, struct step *step)
{
    if (*len_bytes < sizeof *step)
        return NULL;
    memcpy(step, *data, sizeof *step);
    const uint8_t *bytes = *data + sizeof *step;
    *len_bytes -= sizeof *step;
    step->n_bytes = step->n_bytes < *len_bytes ? step->n_bytes : (uint16_t)*len_bytes;
    *data = bytes + step->n_bytes;
    *len_bytes -= step->n_bytes;
    return bytes;
}

#endif
