/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fnbounds/recipe.h: address arithmetic, and registers out of a real signal frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>

#include "base/access-pattern.h"
#include "fnbounds/recipe-eval-sig.h"

static struct recipe_regs example(void)
{
    struct recipe_regs regs = {.rip = 0x401000, .fs_base = 0x7f0000000000, .gs_base = 0x600000000000};
    for (unsigned i = 0; i < 16; i++)
        regs.gpr[i] = 0x1000 * (i + 1);
    regs.vec_low[3] = 0xfffffffe00000005;
    regs.vec_known = 8;
    return regs;
}

static uint64_t address_of(struct recipe_operand operand)
{
    struct recipe_regs regs = example();
    uint64_t address = 0xbad;
    return recipe_address_sig(&operand, &regs, &address) ? address : 0xbad;
}

static void test_sums(void **state)
{
    (void)state;
    const uint8_t none = RECIPE_NO_REG;
    assert_int_equal(address_of((struct recipe_operand){.base = 0, .index = 1, .scale = 8, .disp = -16}),
                     0x1000 + 0x2000 * 8 - 16);
    assert_int_equal(
        address_of((struct recipe_operand){.base = 0, .index = 2 | RECIPE_INDEX_MASKED, .scale = 8, .offset = 5}),
        0x1000 + (0x3000 & 0x6000) * 8);
    struct recipe_operand field = {.base = 0, .index = 2 | RECIPE_INDEX_MASKED, .scale = 8};
    field.offset = recipe_field_pack((struct recipe_field){12, 1, false});
    assert_int_equal(address_of(field), 0x1000 + 0x1000 * 8);
    field.offset = recipe_field_pack((struct recipe_field){12, 52, true});
    assert_int_equal(address_of(field), 0x1000 + 3 * 8);
    field.offset = recipe_field_pack((struct recipe_field){0, 64, true});
    assert_int_equal(address_of(field), 0x1000 + 0x3000 * 8);
    assert_int_equal(
        address_of((struct recipe_operand){.base = 15, .index = 1, .scale = 2 | RECIPE_SCALE_NEGATIVE, .disp = 4}),
        0x10000 - 0x4000 + 4);
    assert_int_equal(address_of((struct recipe_operand){.base = RECIPE_RIP, .index = none, .disp = 0x20}), 0x401020);
    assert_int_equal(address_of((struct recipe_operand){.base = none, .index = none, .disp = 0x404040}), 0x404040);
    assert_int_equal(address_of((struct recipe_operand){.base = none, .flags = RECIPE_OP_FS, .disp = -8}),
                     0x7effffffful << 12 | 0xff8);
    assert_int_equal(address_of((struct recipe_operand){.base = none, .flags = RECIPE_OP_GS, .disp = 8}),
                     0x600000000008);
    assert_int_equal(address_of((struct recipe_operand){.base = 0, .flags = RECIPE_OP_ADDR32, .disp = -0x2000}),
                     0xfffff000);
}

static void test_vectors(void **state)
{
    (void)state;
    struct recipe_operand operand = {.base = 0, .index = RECIPE_VEC + 3, .scale = 4, .flags = RECIPE_OP_INDEX32};
    assert_int_equal(address_of(operand), 0x1000 + 5 * 4);
    operand.flags = 0;
    assert_int_equal(address_of(operand), 0x1000 + 0xfffffffe00000005 * 4);
    operand.index = RECIPE_VEC + 4;
    assert_int_equal(address_of(operand), 0xbad);
}

static void test_frame_words(void **state)
{
    (void)state;
    uint64_t words[4] = {1, 2, 0x5000, 4};
    struct recipe_regs regs = example();
    struct recipe_operand operand = {
        .base = RECIPE_RBP | RECIPE_BASE_DEREF, .index = 1, .scale = 1, .disp = -8, .offset = 24};
    uint64_t address = 7;
    regs.gpr[RECIPE_RBP] = (uintptr_t)&words[3];
    assert_false(recipe_address_sig(&operand, &regs, &address));
    assert_int_equal(address, 7);
    regs.stack_low = (uintptr_t)words;
    regs.stack_high = (uintptr_t)(words + 4);
    assert_true(recipe_address_sig(&operand, &regs, &address));
    assert_int_equal(address, 0x5000 + 24 + 0x2000);
    regs.gpr[RECIPE_RSP] = (uintptr_t)&words[2] + 129;
    assert_false(recipe_address_sig(&operand, &regs, &address));
    regs.gpr[RECIPE_RSP]--;
    assert_true(recipe_address_sig(&operand, &regs, &address));
    regs.stack_high = (uintptr_t)(words + 2) + 7;
    assert_false(recipe_address_sig(&operand, &regs, &address));
    regs.stack_high = 1;
    assert_false(recipe_address_sig(&operand, &regs, &address));
}

#if defined(__x86_64__)

static struct recipe_regs seen;

static void on_trap(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    recipe_regs_of_ucontext_sig(context, &seen);
}

static void trap_on(int signo)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(signo, &action, NULL), 0);
}

static void test_signal_frame(void **state)
{
    static const uint64_t lanes[2] = {0x1122334455667788, 9};
    (void)state;
    uint64_t stack_pointer;
    trap_on(SIGTRAP);
    __asm__ volatile("movdqu %1, %%xmm5\n\tmovabs $0x0123456789abcdef, %%r13\n\tmov $77, %%ecx\n\tmov %%rsp, %0\n\t"
                     "int3"
                     : "=&r"(stack_pointer)
                     : "m"(lanes)
                     : "rcx", "r13", "xmm5", "memory");
    assert_int_equal(seen.gpr[13], 0x0123456789abcdef);
    assert_int_equal(seen.gpr[1], 77);
    assert_int_equal(seen.gpr[RECIPE_RSP], stack_pointer);
    assert_int_equal(seen.vec_known & 0xffff, 0xffff);
    assert_int_equal(seen.vec_low[5], lanes[0]);
    assert_int_equal(*(uint64_t *)(uintptr_t)seen.fs_base, seen.fs_base);
    assert_true(seen.rip > (uintptr_t)test_signal_frame && seen.rip < (uintptr_t)test_signal_frame + 1024);
}

__attribute__((target("avx512f"))) static void load_upper_and_trap(const uint64_t *word)
{
    __asm__ volatile("vpbroadcastq %0, %%zmm21\n\tint3" : : "m"(*word) : "xmm21");
}

static void test_upper_vectors(void **state)
{
    const uint64_t word = 0x8877665544332211;
    (void)state;
    if (!__builtin_cpu_supports("avx512f")) {
        (void)printf("SKIP: this processor has no AVX-512\n");
        return;
    }
    trap_on(SIGTRAP);
    load_upper_and_trap(&word);
    assert_int_equal(seen.vec_known >> 16, 0);
    recipe_eval_init_sig();
    load_upper_and_trap(&word);
    assert_int_equal(seen.vec_known >> 16, 0xffff);
    assert_int_equal(seen.vec_low[21], word);
}

#endif

/* A stride that is a register's value: what is said of it is never more than it is, and few words say it. */
static void test_steps(void **state)
{
    static const struct {
        uint64_t value;
        int8_t scale;
        uint8_t shift;
        int stride_bytes;
    } cases[] = {{24008, 1, 0, 16383},
                 {3001, 8, 0, 16383},
                 {3001, -8, 0, 16383},
                 {3001, 8, 2, 4095},
                 {1, 8, 0, 0},
                 {511, 1, 0, 0},
                 {512, 1, 0, 511},
                 {1023, 1, 0, 511},
                 {1u << 15, 1, 0, 32767},
                 {1u << 20, 8, 0, 32767},
                 {0, 8, 0, 0},
                 {0u - 24008u, 1, 0, 16383},
                 {UINT64_MAX - 7, 1, 0, 0},
                 {UINT32_MAX - 7, 1, 0, 0},
                 {1ull << 63, 127, 0, 32767},
                 {24008, 0, 0, 0}};
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recipe_regs regs = {.gpr = {[9] = cases[i].value}};
        uint64_t pattern = pattern_make(PATTERN_STRIDED, 77, 0, 8) | PATTERN_MIXED;
        struct recipe recipe = {.pattern_low = (uint32_t)pattern,
                                .pattern_high = (uint32_t)(pattern >> 32),
                                .step = (uint8_t)(cases[i].shift << 4 | 9),
                                .step_scale = cases[i].scale};
        uint64_t found = recipe_pattern_sig(&recipe, &regs);
        assert_int_equal(pattern_stride_bytes(found), cases[i].stride_bytes);
        assert_true(pattern_with_stride(found, 0) == pattern);
        assert_int_equal(pattern_is_least((uint32_t)cases[i].stride_bytes), cases[i].stride_bytes > 0);
    }
    assert_false(pattern_is_least(512) || pattern_is_least(24008) || pattern_is_least(255));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_frame_words),
        cmocka_unit_test(test_steps),
#if defined(__x86_64__)
        cmocka_unit_test(test_signal_frame),
        cmocka_unit_test(test_upper_vectors),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
