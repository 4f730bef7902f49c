/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over a function's code records each operand that accesses a slot by the stack or frame pointer: see
 * locals.h. */
#include "structure/types/locals.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

#include "structure/elf/elf-file.h"
#include "structure/elf/symbols-dwarf.h"

#define FUNCTION_BYTES_MAX (1u << 18)
#define FUNCTIONS_MAX 20000
#define LOCAL_NONE UINT32_MAX       /* no store yet */
#define LOCAL_MANY (UINT32_MAX - 1) /* not known, or several */
#define DWARF_RBX 3
#define DWARF_RBP 6
#define DWARF_RSP 7
#define DWARF_XMM0 17

struct slot {
    int64_t offset; /* from the CFA */
    uint32_t size_bytes;
    uint32_t local;      /* index, LOCAL_* */
    int64_t slack_bytes; /* or up to that below: realigned frames */
};

struct frame_function {
    const void *die;
    struct slot *items; /* [n] */
    size_t n, capacity;
};

struct frame_slots {
    struct frame_function *functions; /* [n] */
    size_t n, capacity;
};

/* One pass over a function. */
struct pass {
    struct symbols *symbols;
    const struct local *locals; /* [n] */
    size_t n;
    struct frame_function *function;
    struct frame_bases bases;
};

static void frame_slots_free(struct frame_slots *slots)
{
    for (size_t i = 0; slots && i < slots->n; i++)
        free(slots->functions[i].items);
    if (slots)
        free(slots->functions);
    free(slots);
}

/* DWARF's number of a general or vector register, -1 for others. */
static int number_of(ZydisRegister reg)
{
    static const int8_t order[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
        return order[full - ZYDIS_REGISTER_RAX];
    if (ZydisRegisterGetClass(full) == ZYDIS_REGCLASS_ZMM && ZydisRegisterGetId(full) < 16)
        return DWARF_XMM0 + ZydisRegisterGetId(full);
    return -1;
}

/* The outermost variable that the register holds at vaddr. */
static uint32_t local_in(const struct pass *pass, uint64_t vaddr, int reg)
{
    for (size_t i = 0; i < pass->n && reg >= 0; i++) {
        const struct local *local = &pass->locals[i];
        for (size_t j = 0; local->name && !(local->flags & LOCAL_IS_ARTIFICIAL) && j < local->n_places; j++) {
            const struct local_place *place = &local->places[j];
            if (place->kind == LOCAL_REGISTER && place->reg == reg && vaddr >= place->low && vaddr < place->high)
                return (uint32_t)i;
        }
    }
    return LOCAL_MANY;
}

/* Records an access; local: the variable whose value it stores, LOCAL_NONE for a load. */
static void record_access(struct frame_function *function, const struct slot *access)
{
    uint32_t local = access->local;
    for (size_t i = 0; i < function->n; i++) {
        struct slot *slot = &function->items[i];
        if (slot->offset != access->offset || slot->size_bytes != access->size_bytes ||
            slot->slack_bytes != access->slack_bytes)
            continue;
        if (local != LOCAL_NONE)
            slot->local = slot->local == LOCAL_NONE || slot->local == local ? local : LOCAL_MANY;
        return;
    }
    if (vec_reserve(&function->items, &function->capacity, function->n + 1, sizeof *function->items))
        function->items[function->n++] = *access;
}

/* The slot at a register's value plus displacement. */
static bool slot_by_register(const struct pass *pass, uint64_t vaddr, int reg, int64_t displacement, struct slot *slot)
{
    slot->offset = displacement;
    if ((reg != DWARF_RBP && reg != DWARF_RSP) || symbols_cfa_offset(pass->symbols, vaddr, reg, &slot->offset))
        return reg == DWARF_RBP || reg == DWARF_RSP;
    slot->offset = displacement - pass->bases.bases[reg].distance_bytes;
    slot->slack_bytes = pass->bases.slack_bytes;
    return pass->bases.is_realigned && pass->bases.bases[reg].is_known;
}

static bool take_operands(void *context, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *operands)
{
    const struct pass *pass = context;
    if (insn->mnemonic == ZYDIS_MNEMONIC_LEA || insn->mnemonic == ZYDIS_MNEMONIC_NOP)
        return true;
    for (unsigned i = 0; i < insn->operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        int base = operand->type == ZYDIS_OPERAND_TYPE_MEMORY ? number_of(operand->mem.base) : -1;
        struct slot access = {.size_bytes = operand->size / 8};
        bool is_write = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
        if (base < 0 || operand->mem.index != ZYDIS_REGISTER_NONE || !operand->size ||
            !slot_by_register(pass, vaddr, base, operand->mem.disp.value, &access))
            continue;
        bool has_source = is_write && i == 0 && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
        uint32_t stored = has_source ? local_in(pass, vaddr, number_of(operands[1].reg.value)) : LOCAL_MANY;
        access.local = is_write ? stored : LOCAL_NONE;
        record_access(pass->function, &access);
    }
    return true;
}

/* What reads code: called for each instruction in the order of addresses, until it returns false. */
typedef bool take_insn(void *context, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                       const ZydisDecodedOperand *operands);

/* Takes the code in [low, high), which lies in one section. */
static void take_code(const struct code_image *image, uint64_t low, uint64_t high, take_insn *take, void *context)
{
    ZydisDecoder decoder;
    uint64_t n_bytes = 0;
    const uint8_t *bytes = code_image_bytes(image, low, &n_bytes);
    if (!bytes || high - low > FUNCTION_BYTES_MAX || high - low > n_bytes ||
        !ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return;
    for (uint64_t at = 0; at < high - low;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, high - low - at, &insn, operands)) ||
            !take(context, low + at, &insn, operands))
            return;
        at += insn.length;
    }
}

static void take_function(struct symbols *symbols, Dwarf_Die *function, take_insn *take, void *context)
{
    struct code_image image;
    GElf_Addr elf_bias = 0;
    Dwarf_Addr base = 0, start = 0, end = 0, bias = symbols->dwarf_bias;
    Elf *elf = symbols->module ? dwfl_module_getelf(symbols->module, &elf_bias) : NULL;
    if (!elf)
        return;
    code_image_init(&image, elf, elf_bias);
    if (image.machine != EM_X86_64)
        return;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(function, next, &base, &start, &end)) > 0;)
        take_code(&image, start + bias, end + bias, take, context);
}

/* --- functions that realign their stack pointer --- */

/* One pass over such a function. Distances are CFA - register; from the rounding on, the least possible ones. */
struct realigning {
    struct symbols *symbols;
    struct frame_bases found;
    uint64_t next, last_sub; /* address of the next instruction if nothing jumps; of the last that made room */
    bool has_sub, is_set_up; /* since the rounding: room was made; the body has begun */
};

static bool is_register(const ZydisDecodedOperand *operand, int reg)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(operand->reg.value) == reg;
}

/* The stack pointer is rounded down to a multiple of -mask; the CFA is a multiple of 16. Rounding it twice ends what is
 * known. */
static bool round_down(struct realigning *realigning, int64_t mask)
{
    struct frame_base *sp = &realigning->found.bases[DWARF_RSP];
    bool is_usual = mask <= -16 && mask >= -(1 << 20) && !(-mask & (-mask - 1));
    if (!is_usual || !sp->is_known || realigning->found.is_realigned) {
        realigning->found = (struct frame_bases){.is_realigned = false};
        return false;
    }
    int64_t first = (sp->distance_bytes + 15) & -16, last = (sp->distance_bytes - mask - 1) & -16;
    sp->distance_bytes = first;
    realigning->found.slack_bytes = last - first;
    realigning->found.is_realigned = true;
    return true;
}

/* Follows the stack pointer; in the body it keeps its distance, but for arguments on the stack. */
static void move_sp(struct realigning *realigning, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                    const ZydisDecodedOperand *operands)
{
    struct frame_base *sp = &realigning->found.bases[DWARF_RSP];
    bool is_constant = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    int64_t sum = 0;
    if (insn->mnemonic == ZYDIS_MNEMONIC_PUSH || insn->mnemonic == ZYDIS_MNEMONIC_POP) {
        sum = realigning->has_sub ? 0 : insn->mnemonic == ZYDIS_MNEMONIC_PUSH ? 8 : -8;
    } else if (!insn->operand_count_visible || !is_register(&operands[0], DWARF_RSP) ||
               !(operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
        return;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_SUB && is_constant) {
        sum = operands[1].imm.value.s;
        realigning->has_sub |= realigning->found.is_realigned;
        realigning->last_sub = vaddr;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_ADD && is_constant) {
        sum = -operands[1].imm.value.s;
    } else if (!realigning->found.is_realigned ||
               (insn->mnemonic != ZYDIS_MNEMONIC_LEA && !is_register(&operands[1], DWARF_RBP))) {
        sp->is_known = false; /* an array of variable length */
    }
    sp->distance_bytes += realigning->is_set_up ? 0 : sum;
}

/* The first branch or call ends the set-up. If it jumps back before the last instruction that made room, that is done
 * in steps whose number is not known. */
static void end_set_up(struct realigning *realigning, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                       const ZydisDecodedOperand *operands)
{
    ZyanU64 target = 0;
    bool is_branch = insn->meta.category == ZYDIS_CATEGORY_COND_BR || insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
    if (!is_branch && insn->meta.category != ZYDIS_CATEGORY_CALL && insn->meta.category != ZYDIS_CATEGORY_RET)
        return;
    if (is_branch && !realigning->is_set_up && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, &operands[0], vaddr, &target)) && target <= realigning->last_sub &&
        target <= vaddr)
        realigning->found.bases[DWARF_RSP].is_known = false;
    realigning->is_set_up = realigning->found.is_realigned;
    if (insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR || insn->meta.category == ZYDIS_CATEGORY_RET)
        realigning->next = 0;
}

static bool take_realigning(void *context, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                            const ZydisDecodedOperand *operands)
{
    struct realigning *realigning = context;
    struct frame_bases *found = &realigning->found;
    int64_t offset = 0;
    int to = insn->operand_count_visible && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER
                 ? number_of(operands[0].reg.value)
                 : -1;
    if (!found->is_realigned && vaddr != realigning->next) {
        bool is_known = symbols_cfa_offset(realigning->symbols, vaddr, DWARF_RSP, &offset);
        found->bases[DWARF_RSP] = (struct frame_base){is_known, -offset};
    }
    realigning->next = vaddr + insn->length;
    if (insn->mnemonic == ZYDIS_MNEMONIC_AND && to == DWARF_RSP && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return round_down(realigning, operands[1].imm.value.s);
    end_set_up(realigning, vaddr, insn, operands);
    bool is_copy = insn->mnemonic == ZYDIS_MNEMONIC_MOV && is_register(&operands[1], DWARF_RSP);
    if (is_copy && (to == DWARF_RBP || to == DWARF_RBX) && found->is_realigned && !realigning->is_set_up)
        found->bases[to] = found->bases[DWARF_RSP];
    else if (found->is_realigned || !is_copy)
        move_sp(realigning, vaddr, insn, operands);
    return true;
}

void frame_bases_find(struct symbols *symbols, uint64_t vaddr, struct frame_bases *bases)
{
    Dwarf_Die die;
    struct realigning realigning = {.symbols = symbols};
    if (symbols_dwarf_function(symbols, vaddr, &die))
        take_function(symbols, &die, take_realigning, &realigning);
    *bases = realigning.found;
}

/* The table of the function that contains vaddr, made when first needed; NULL when there is none. */
static const struct frame_function *function_at(struct symbols *symbols, uint64_t vaddr, const struct local *locals,
                                                size_t n)
{
    Dwarf_Die die;
    if (!symbols->slots)
        symbols->slots = calloc(1, sizeof *symbols->slots);
    symbols->slots_free = frame_slots_free;
    struct frame_slots *slots = symbols->slots;
    if (!slots || !symbols_dwarf_function(symbols, vaddr, &die))
        return NULL;
    for (size_t i = slots->n; i-- > 0;)
        if (slots->functions[i].die == die.addr)
            return &slots->functions[i];
    if (slots->n >= FUNCTIONS_MAX ||
        !vec_reserve(&slots->functions, &slots->capacity, slots->n + 1, sizeof *slots->functions))
        return NULL;
    struct frame_function *function = &slots->functions[slots->n++];
    *function = (struct frame_function){.die = die.addr};
    struct pass pass = {symbols, locals, n, function, {0}};
    frame_bases_find(symbols, vaddr, &pass.bases);
    take_function(symbols, &die, take_operands, &pass);
    return function;
}

enum frame_slot_use frame_slots_find(struct symbols *symbols, uint64_t vaddr, const struct local *locals, size_t n,
                                     int64_t cfa_offset, size_t *index, uint64_t *offset_bytes)
{
    const struct frame_function *function = function_at(symbols, vaddr, locals, n);
    enum frame_slot_use use = SLOT_NONE;
    uint32_t local = LOCAL_NONE;
    for (size_t i = 0; function && i < function->n; i++) {
        const struct slot *slot = &function->items[i];
        if (cfa_offset < slot->offset - slot->slack_bytes || cfa_offset >= slot->offset + (int64_t)slot->size_bytes)
            continue;
        use = SLOT_VALUE;
        if (slot->local == LOCAL_NONE || slot->slack_bytes)
            continue;
        local = local == LOCAL_NONE || local == slot->local ? slot->local : LOCAL_MANY;
        *offset_bytes = (uint64_t)(cfa_offset - slot->offset);
    }
    *index = local;
    bool is_local = local < n && *offset_bytes < locals[local].size_bytes;
    return is_local ? SLOT_LOCAL : use;
}
