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
#define DWARF_RBP 6
#define DWARF_RSP 7
#define DWARF_XMM0 17

struct slot {
    int64_t offset; /* from the CFA */
    uint32_t size_bytes;
    uint32_t local; /* index, LOCAL_* */
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
static void record_access(struct frame_function *function, int64_t offset, uint32_t size_bytes, uint32_t local)
{
    for (size_t i = 0; i < function->n; i++) {
        struct slot *slot = &function->items[i];
        if (slot->offset != offset || slot->size_bytes != size_bytes)
            continue;
        if (local != LOCAL_NONE)
            slot->local = slot->local == LOCAL_NONE || slot->local == local ? local : LOCAL_MANY;
        return;
    }
    if (vec_reserve(&function->items, &function->capacity, function->n + 1, sizeof *function->items))
        function->items[function->n++] = (struct slot){offset, size_bytes, local};
}

static void take_operands(const struct pass *pass, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *operands)
{
    if (insn->mnemonic == ZYDIS_MNEMONIC_LEA || insn->mnemonic == ZYDIS_MNEMONIC_NOP)
        return;
    for (unsigned i = 0; i < insn->operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        int base = operand->type == ZYDIS_OPERAND_TYPE_MEMORY ? number_of(operand->mem.base) : -1;
        int64_t offset = operand->mem.disp.value;
        bool is_write = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
        if ((base != DWARF_RBP && base != DWARF_RSP) || operand->mem.index != ZYDIS_REGISTER_NONE || !operand->size ||
            !symbols_cfa_offset(pass->symbols, vaddr, base, &offset))
            continue;
        bool has_source = is_write && i == 0 && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
        uint32_t stored = has_source ? local_in(pass, vaddr, number_of(operands[1].reg.value)) : LOCAL_MANY;
        record_access(pass->function, offset, operand->size / 8, is_write ? stored : LOCAL_NONE);
    }
}

/* Takes the code in [low, high), which lies in one section. */
static void take_code(const struct pass *pass, const struct code_image *image, uint64_t low, uint64_t high)
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
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, high - low - at, &insn, operands)))
            return;
        take_operands(pass, low + at, &insn, operands);
        at += insn.length;
    }
}

static void take_function(const struct pass *pass, Dwarf_Die *function)
{
    struct code_image image;
    GElf_Addr elf_bias = 0;
    Dwarf_Addr base = 0, start = 0, end = 0, bias = pass->symbols->dwarf_bias;
    Elf *elf = pass->symbols->module ? dwfl_module_getelf(pass->symbols->module, &elf_bias) : NULL;
    if (!elf)
        return;
    code_image_init(&image, elf, elf_bias);
    if (image.machine != EM_X86_64)
        return;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(function, next, &base, &start, &end)) > 0;)
        take_code(pass, &image, start + bias, end + bias);
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
    const struct pass pass = {symbols, locals, n, function};
    take_function(&pass, &die);
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
        if (cfa_offset < slot->offset || cfa_offset >= slot->offset + (int64_t)slot->size_bytes)
            continue;
        use = SLOT_VALUE;
        if (slot->local == LOCAL_NONE)
            continue;
        local = local == LOCAL_NONE || local == slot->local ? slot->local : LOCAL_MANY;
        *offset_bytes = (uint64_t)(cfa_offset - slot->offset);
    }
    *index = local;
    bool is_local = local < n && *offset_bytes < locals[local].size_bytes;
    return is_local ? SLOT_LOCAL : use;
}
