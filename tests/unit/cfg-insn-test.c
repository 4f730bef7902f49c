/* SPDX-License-Identifier: BSD-3-Clause */
/* The quick decoder of cfg-usual.c says of every encoding that it takes what the disassembler says: all opcodes with
 * and without the prefixes and REX bytes that it knows, with every ModRM and several SIB bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "structure/cfg/cfg.h"

#define VADDR UINT64_C(0x401000)

struct sweep {
    struct cfg_decoder *decoder;
    size_t n_taken, n_all;
};

/* Compares the two decoders on 16 bytes. */
static void compare(struct sweep *sweep, const uint8_t bytes[16])
{
    struct cfg_insn quick = {0}, slow = {0};
    sweep->n_all++;
    if (!cfg_decode_usual(bytes, 16, VADDR, &quick))
        return;
    sweep->n_taken++;
    cfg_decode_any(sweep->decoder, bytes, 16, VADDR, &slow);
    if (quick.vaddr == slow.vaddr && quick.value == slow.value && quick.len_bytes == slow.len_bytes &&
        quick.kind == slow.kind && quick.by_slot == slow.by_slot)
        return;
    fail_msg("%02x %02x %02x %02x %02x %02x: %u bytes of kind %u, value %#llx; the disassembler has %u, %u, %#llx",
             bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], quick.len_bytes, quick.kind,
             (unsigned long long)quick.value, slow.len_bytes, slow.kind, (unsigned long long)slow.value);
}

/* All opcodes of a map behind n bytes of prefixes, with each ModRM. */
static void sweep_map(struct sweep *sweep, uint8_t bytes[16], unsigned n, bool is_two)
{
    static const uint8_t sibs[] = {0x00, 0x24, 0x25, 0xc5, 0xe5};
    if (is_two)
        bytes[n++] = 0x0f;
    for (unsigned opcode = 0; opcode < 256; opcode++)
        for (unsigned modrm = 0; modrm < 256; modrm++) {
            unsigned n_sibs = (modrm & 7) == 4 && modrm >> 6 != 3 ? sizeof sibs : 1;
            bytes[n] = (uint8_t)opcode;
            bytes[n + 1] = (uint8_t)modrm;
            for (unsigned s = 0; s < n_sibs; s++) {
                bytes[n + 2] = sibs[s];
                compare(sweep, bytes);
            }
        }
}

static void test_usual_is_any(void **state)
{
    static const uint8_t prefixes[] = {0, 0x66, 0xf3, 0xf2, 0xf0, 0x67, 0x2e};
    static const uint8_t rexes[] = {0, 0x40, 0x41, 0x42, 0x44, 0x48, 0x4c, 0x4f};
    struct sweep sweep = {.decoder = cfg_decoder_new()};
    (void)state;
    assert_non_null(sweep.decoder);
    for (size_t p = 0; p < sizeof prefixes; p++)
        for (size_t r = 0; r < sizeof rexes; r++)
            for (int is_two = 0; is_two < 2; is_two++) {
                uint8_t bytes[16];
                unsigned n = 0;
                /* constants and displacements are negative in one half, positive in the other */
                memset(bytes, is_two == (int)(r & 1) ? 0x81 : 0x12, sizeof bytes);
                if (prefixes[p])
                    bytes[n++] = prefixes[p];
                if (rexes[r])
                    bytes[n++] = rexes[r];
                sweep_map(&sweep, bytes, n, is_two);
            }
    /* the tables are of use, and do not take everything */
    assert_true(sweep.n_taken > sweep.n_all / 8);
    assert_true(sweep.n_taken < sweep.n_all / 2);
    free(sweep.decoder);
}

static void test_ends(void **state)
{
    static const uint8_t nops[16] = {0x90};
    struct cfg_decoder *decoder = cfg_decoder_new();
    struct cfg_insn insn;
    (void)state;
    assert_non_null(decoder);
    assert_false(cfg_decode_usual(nops, 15, VADDR, &insn)); /* could run over the end */
    cfg_decode(decoder, nops, 1, VADDR, &insn);
    assert_int_equal(insn.len_bytes, 1);
    assert_int_equal(insn.kind, CFG_PLAIN);
    /* a call cut off after two bytes is no instruction */
    cfg_decode(decoder, (const uint8_t[]){0xe8, 0x01}, 2, VADDR, &insn);
    assert_int_equal(insn.kind, CFG_END);
    assert_int_equal(insn.len_bytes, 1);
    free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_usual_is_any), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
