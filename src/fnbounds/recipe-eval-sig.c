/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of recipes and the registers of a signal frame. Runs in the signal handler. */
#include "fnbounds/recipe-eval-sig.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/access-pattern.h"
#include "base/sigsafe.h"

/* Reads a word of the interrupted frames: nothing below the red zone, where the stack may not even be mapped. */
static bool read_frame_sig(const struct recipe_regs *regs, uint64_t at, uint64_t *word)
{
    const uint64_t red_zone_bytes = 128;
    if (at < regs->stack_low || at > regs->stack_high || regs->stack_high - at < sizeof *word)
        return false;
    if (at + red_zone_bytes < regs->gpr[RECIPE_RSP])
        return false;
    memcpy(word, (const void *)(uintptr_t)at, sizeof *word);
    return true;
}

static bool base_of_sig(const struct recipe_operand *operand, const struct recipe_regs *regs, uint64_t *base)
{
    uint64_t disp = (uint64_t)(int64_t)operand->disp;
    if (operand->base == RECIPE_NO_REG) {
        *base = disp;
    } else if (operand->base == RECIPE_RIP) {
        *base = regs->rip + disp;
    } else if (operand->base & RECIPE_BASE_DEREF) {
        if (!read_frame_sig(regs, regs->gpr[operand->base & 15] + disp, base))
            return false;
        *base += (uint64_t)(int64_t)operand->offset;
    } else {
        *base = regs->gpr[operand->base & 15] + disp;
    }
    return true;
}

static bool index_of_sig(const struct recipe_operand *operand, const struct recipe_regs *regs, uint64_t *index)
{
    uint64_t scale = operand->scale & 127u;
    if (!scale) {
        *index = 0;
        return true;
    }
    uint64_t value;
    if (operand->index & RECIPE_INDEX_MASKED) {
        value = regs->gpr[operand->index & 15];
        value = operand->offset < 0 ? recipe_field_of(value, recipe_field_unpack(operand->offset))
                                    : value & regs->gpr[operand->offset & 15];
    } else if (operand->index >= RECIPE_VEC) {
        unsigned vec = operand->index & 31u;
        if (!(regs->vec_known >> vec & 1))
            return false;
        value = regs->vec_low[vec];
    } else {
        value = regs->gpr[operand->index & 15];
    }
    if (operand->flags & RECIPE_OP_INDEX32)
        value = (uint64_t)(int64_t)(int32_t)value;
    *index = operand->scale & RECIPE_SCALE_NEGATIVE ? 0 - value * scale : value * scale;
    return true;
}

const struct recipe *recipe_choose_sig(const struct recipe *recipe, const struct recipe_regs *regs)
{
    if (!recipe->entry)
        return recipe;
    const struct recipe *entry = recipe + recipe->entry;
    uint64_t value = regs->gpr[entry->guard_reg & 15];
    if (entry->guard_other != RECIPE_NO_REG)
        return value == regs->gpr[entry->guard_other & 15] ? entry : recipe;
    return (uint32_t)value == entry->guard_value ? entry : recipe;
}

uint64_t recipe_pattern_sig(const struct recipe *recipe, const struct recipe_regs *regs)
{
    uint64_t pattern = (uint64_t)recipe->pattern_high << 32 | recipe->pattern_low;
    uint64_t value = regs->gpr[recipe->step & 15],
             scale = (uint64_t)(recipe->step_scale < 0 ? -recipe->step_scale : recipe->step_scale);
    if (!scale)
        return pattern;
    if (value >> 32 == 0) /* the sum may be one of 32 bits */
        value = (uint64_t)(int64_t)(int32_t)value;
    if (value >> 63)
        value = 0 - value;
    return pattern_with_step(pattern, (value < UINT32_MAX ? value : UINT32_MAX) * scale >> (recipe->step >> 4));
}

bool recipe_address_sig(const struct recipe_operand *operand, const struct recipe_regs *regs, uint64_t *address)
{
    uint64_t base, index;
    if (!base_of_sig(operand, regs, &base) || !index_of_sig(operand, regs, &index))
        return false;
    uint64_t sum = base + index;
    if (operand->flags & RECIPE_OP_ADDR32)
        sum = (uint32_t)sum;
    if (operand->flags & RECIPE_OP_FS)
        sum += regs->fs_base;
    if (operand->flags & RECIPE_OP_GS)
        sum += regs->gs_base;
    *address = sum;
    return true;
}

#if defined(__x86_64__)

/* Offsets in the XSAVE area of a signal frame (standard format) and its marks. */
#define XSAVE_SW_OFFSET 464
#define XSAVE_MAGIC1 0x46505853u
#define XSAVE_HEADER_OFFSET 512
#define XFEATURE_HI16_ZMM 7
#define ZMM_BYTES 64

static uint64_t word_sig(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Where a signal frame holds zmm16-31: it differs between vendors. Written once, before the first sample. */
static struct {
    uint32_t hi16_offset; /* 0: this processor has none, or recipe_eval_init_sig() was not called */
} layout;

void recipe_eval_init_sig(void)
{
    unsigned bytes, offset, flags, unused;
    if (__get_cpuid_count(0xd, XFEATURE_HI16_ZMM, &bytes, &offset, &flags, &unused) && bytes == 16 * ZMM_BYTES)
        layout.hi16_offset = offset;
}

/* zmm16-31 when the frame holds them: their state component was in use. */
static void read_upper_vectors_sig(const char *area, struct recipe_regs *regs)
{
    const uint32_t hi16_offset = layout.hi16_offset, hi16_bytes = 16 * ZMM_BYTES;
    uint32_t magic, xstate_bytes;
    if (!hi16_offset)
        return;
    memcpy(&magic, area + XSAVE_SW_OFFSET, sizeof magic);
    memcpy(&xstate_bytes, area + XSAVE_SW_OFFSET + 16, sizeof xstate_bytes);
    if (magic != XSAVE_MAGIC1 || xstate_bytes < hi16_offset + hi16_bytes)
        return;
    if (!(word_sig(area + XSAVE_HEADER_OFFSET) >> XFEATURE_HI16_ZMM & 1))
        return;
    for (unsigned i = 0; i < 16; i++)
        regs->vec_low[16 + i] = word_sig(area + hi16_offset + i * ZMM_BYTES);
    regs->vec_known |= 0xffff0000u;
}

void recipe_regs_of_ucontext_sig(const ucontext_t *context, struct recipe_regs *regs)
{
    static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *gregs = context->uc_mcontext.gregs;
    for (unsigned i = 0; i < 16; i++)
        regs->gpr[i] = (uint64_t)gregs[order[i]];
    regs->rip = (uint64_t)gregs[REG_RIP];
    regs->gs_base = 0;
    regs->stack_low = regs->stack_high = 0;
    regs->vec_known = 0;
    __asm__("mov %%fs:0, %0" : "=r"(regs->fs_base));
    const char *area = (const char *)context->uc_mcontext.fpregs;
    if (!area)
        return;
    for (unsigned i = 0; i < 16; i++)
        regs->vec_low[i] = word_sig(area + offsetof(struct _libc_fpstate, _xmm) + i * 16);
    regs->vec_known = 0xffff;
    read_upper_vectors_sig(area, regs);
}

#else

void recipe_eval_init_sig(void)
{
}

void recipe_regs_of_ucontext_sig(const ucontext_t *context, struct recipe_regs *regs)
{
    (void)context;
    memset(regs, 0, sizeof *regs);
}

#endif
