/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the making of recipes: any bytes are taken as the code of one function. Nothing may crash
 * or run away, every recipe must be well-formed, and evaluating it must stay inside the given stack. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fnbounds/recipe-make.h"
#include "fnbounds/recipe-eval-sig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

struct code {
    const uint8_t *bytes;
    size_t n_bytes;
};

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

/* The code itself stands for the whole image, so that jump tables are read out of it. */
static const uint8_t *code_bytes(const void *image, uint64_t pc, size_t n_bytes)
{
    const struct code *code = image;
    return pc <= code->n_bytes && n_bytes <= code->n_bytes - pc ? code->bytes + pc : NULL;
}

static void check_operand(const struct recipe_operand *operand)
{
    uint64_t stack[64] = {0}, address;
    struct recipe_regs regs = {
        .vec_known = UINT32_MAX, .stack_low = (uintptr_t)stack, .stack_high = (uintptr_t)(stack + 64)};
    for (unsigned i = 0; i < 16; i++)
        regs.gpr[i] = (uintptr_t)(stack + 4 * i) + (i & 3);
    (void)recipe_address_sig(operand, &regs, &address);
    uint8_t base = operand->base;
    check(base < 16 || base == RECIPE_RIP || base == RECIPE_NO_REG || base == (RECIPE_RSP | RECIPE_BASE_DEREF) ||
              base == (RECIPE_RBP | RECIPE_BASE_DEREF),
          "an operand has an unknown base");
    check(!operand->scale || (operand->index & ~RECIPE_INDEX_MASKED) < 16 ||
              (operand->index >= RECIPE_VEC && operand->index < 64),
          "an operand has an unknown index");
    check(operand->flags & (RECIPE_OP_READ | RECIPE_OP_WRITE), "an operand is neither read nor written");
}

static void check_recipe(const struct recipe *recipe)
{
    int has_address = recipe->class == RECIPE_MEMORY || recipe->class == RECIPE_DEPENDENT;
    check(recipe->class <= RECIPE_SYSCALL || recipe->class == RECIPE_WAITING, "a recipe has an unknown class");
    check(recipe->n_operands <= 2 && (recipe->n_operands > 0) == has_address, "class and operands do not agree");
    for (unsigned o = 0; o < recipe->n_operands; o++)
        check_operand(&recipe->operands[o]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct code code = {data, len_bytes};
    struct flow_image image = {code_bytes, &code};
    struct flow flow = {0};
    struct insn_decoder *decoder = insn_decoder_open();
    if (decoder && len_bytes && flow_build(&flow, decoder, &image, data, 0, (uint32_t)len_bytes) &&
        stride_begin(&flow)) {
        uint32_t end = 0;
        for (uint32_t i = 0; i < flow.n_insns; i++) {
            struct recipe recipe;
            check(flow.insns[i].pc == end, "the instructions do not follow each other");
            end += flow.insns[i].len_bytes;
            recipe_rules_apply(&flow, i, &recipe);
            check_recipe(&recipe);
        }
        check(end == len_bytes, "the instructions do not cover the code");
    }
    flow_fini(&flow);
    insn_decoder_close(decoder);
    return 0;
}
