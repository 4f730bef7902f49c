/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the variable that an allocation is for by following the returned pointer through the machine code: see
 * alloc-name.h. */
#include "structure/names/alloc-name.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/elf/symbols-dwarf.h"

#define STEPS_MAX 96
#define BACK_MAX 4096
#define BEFORE_MAX 48

/* What is known about a register's value. */
enum origin_kind {
    ORIGIN_NONE,
    ORIGIN_POINTER, /* the block's address */
    ORIGIN_LOADED,  /* loaded from a variable at from */
    ORIGIN_MEMBER,  /* loaded from the member at offset of what the variable at from points to */
    ORIGIN_ADDRESS  /* address of the variable at from */
};
struct origin {
    enum origin_kind kind;
    struct value_place from;
    uint64_t vaddr; /* where from is valid */
    int64_t offset; /* LOADED, ADDRESS: what was added since; MEMBER: offset of the member */
    bool indexed;   /* an unknown index was added */
};

struct flow {
    struct symbols *symbols;
    ZydisDecoder decoder;
    const uint8_t *code; /* of the section that holds the call */
    uint64_t code_vaddr, code_bytes;
    struct origin registers[16];  /* by DWARF number */
    struct value_place spills[8]; /* stack slots that hold the pointer */
    unsigned n_spills;
    int best_depth; /* of the name found so far, -1 none */
    bool is_kept;   /* the pointer was stored outside of the stack frame */
    struct alloc_name *out;
    uint64_t starts[BACK_MAX]; /* of the instructions before the call */
};

static int dwarf_register(ZydisRegister reg)
{
    static const int8_t order[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
        return -1;
    return order[full - ZYDIS_REGISTER_RAX];
}

static bool code_load(struct flow *flow, uint64_t vaddr)
{
    GElf_Addr bias = 0;
    GElf_Ehdr ehdr;
    Elf *elf = dwfl_module_getelf(flow->symbols->module, &bias);
    Elf_Scn *section = NULL;
    if (!elf || !gelf_getehdr(elf, &ehdr) || ehdr.e_machine != EM_X86_64)
        return false;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS || !(header.sh_flags & SHF_EXECINSTR) ||
            vaddr < header.sh_addr || vaddr >= header.sh_addr + header.sh_size)
            continue;
        Elf_Data *data = elf_rawdata(section, NULL);
        if (!data || !data->d_buf)
            return false;
        flow->code = data->d_buf;
        flow->code_vaddr = header.sh_addr;
        flow->code_bytes = data->d_size;
        return true;
    }
    return false;
}

static bool decode(const struct flow *flow, uint64_t vaddr, ZydisDecodedInstruction *insn,
                   ZydisDecodedOperand *operands)
{
    if (vaddr < flow->code_vaddr || vaddr >= flow->code_vaddr + flow->code_bytes)
        return false;
    uint64_t at = vaddr - flow->code_vaddr;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&flow->decoder, flow->code + at, flow->code_bytes - at, insn, operands));
}

/* The place that a memory operand without index refers to; PLACE_NONE when it is neither stack slot nor static
 * address. */
static struct value_place place_of(struct flow *flow, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                                   const ZydisDecodedOperand *operand)
{
    struct value_place place = {.kind = PLACE_NONE};
    int64_t displacement = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
    if (operand->mem.base == ZYDIS_REGISTER_RIP)
        return (struct value_place){.kind = PLACE_STATIC, .offset = (int64_t)(vaddr + insn->length) + displacement};
    int base = dwarf_register(operand->mem.base);
    if (operand->mem.base == ZYDIS_REGISTER_NONE && operand->mem.index == ZYDIS_REGISTER_NONE)
        return (struct value_place){.kind = PLACE_STATIC, .offset = displacement};
    if (operand->mem.index != ZYDIS_REGISTER_NONE || (base != 6 && base != 7))
        return place;
    place.offset = displacement;
    if (symbols_cfa_offset(flow->symbols, vaddr, base, &place.offset))
        place.kind = PLACE_STACK;
    return place;
}

static bool place_equal(const struct value_place *a, const struct value_place *b)
{
    return a->kind == b->kind && a->kind != PLACE_NONE && a->offset == b->offset && a->reg == b->reg;
}

/* Considers a candidate name: the one in the outermost scope wins, among equals the first. */
static void offer(struct flow *flow, uint64_t vaddr, const struct value_place *place, int64_t member, bool indexed,
                  const char *suffix)
{
    struct alloc_name found = {.of_class = flow->out->of_class};
    int depth = 0;
    if (place->kind == PLACE_NONE || !alloc_variable_at(flow->symbols, vaddr, place, member, indexed, &found, &depth) ||
        (flow->best_depth >= 0 && depth >= flow->best_depth))
        return;
    flow->best_depth = depth;
    (void)strncat(found.text, suffix, sizeof found.text - strlen(found.text) - 1);
    *flow->out = found;
}

static void offer_registers(struct flow *flow, uint64_t vaddr)
{
    for (int i = 0; i < 16; i++) {
        struct value_place place = {.kind = PLACE_REGISTER, .reg = i};
        if (flow->registers[i].kind == ORIGIN_POINTER)
            offer(flow, vaddr, &place, -1, false, "");
    }
}

/* The origin of a memory operand's base, or of its index when the index is the pointer. */
static struct origin origin_of(const struct flow *flow, uint64_t vaddr, const ZydisDecodedOperand *operand)
{
    int base = dwarf_register(operand->mem.base), index = dwarf_register(operand->mem.index);
    struct origin origin = base >= 0 ? flow->registers[base] : (struct origin){0};
    if (origin.kind == ORIGIN_NONE && index >= 0 && flow->registers[index].kind != ORIGIN_NONE)
        origin = flow->registers[index];
    if (origin.kind == ORIGIN_NONE && base >= 0 && base != 7)
        origin = (struct origin){.kind = ORIGIN_LOADED, .from = {.kind = PLACE_REGISTER, .reg = base}, .vaddr = vaddr};
    origin.indexed |= index >= 0;
    if (origin.kind == ORIGIN_LOADED || origin.kind == ORIGIN_ADDRESS)
        origin.offset += operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
    return origin;
}

/* Handles a store of the pointer to memory. */
static void step_store(struct flow *flow, uint64_t vaddr, uint64_t next, const ZydisDecodedInstruction *insn,
                       const ZydisDecodedOperand *target)
{
    struct value_place place = place_of(flow, vaddr, insn, target);
    if (place.kind != PLACE_NONE) {
        offer(flow, next, &place, -1, false, "");
        if (place.kind == PLACE_STACK && flow->n_spills < 8)
            flow->spills[flow->n_spills++] = place;
        return;
    }
    struct origin origin = origin_of(flow, vaddr, target);
    if (origin.kind == ORIGIN_LOADED) {
        offer(flow, origin.vaddr, &origin.from, origin.offset < 0 ? 0 : origin.offset, origin.indexed, "");
    } else if (origin.kind == ORIGIN_MEMBER) {
        offer(flow, origin.vaddr, &origin.from, origin.offset, false, "[]");
    } else if (origin.kind == ORIGIN_ADDRESS) {
        origin.from.offset += origin.offset;
        offer(flow, origin.vaddr, &origin.from, -1, false, "");
    }
}

/* Goes from the record of a polymorphic variable of Fortran to its object, to which the first field points. */
static bool enter_object(const struct flow *flow, struct origin *origin)
{
    struct value_place inner = origin->from;
    struct alloc_name name = {.of_class = NULL};
    int depth;
    inner.is_inner = true;
    if (origin->kind != ORIGIN_LOADED || origin->offset != 0 || origin->indexed || origin->from.is_inner ||
        !alloc_variable_at(flow->symbols, origin->vaddr, &inner, 0, false, &name, &depth))
        return false;
    origin->from = inner;
    return true;
}

static void step_load(struct flow *flow, uint64_t vaddr, const ZydisDecodedInstruction *insn, int target,
                      const ZydisDecodedOperand *source)
{
    struct value_place place = place_of(flow, vaddr, insn, source);
    struct origin origin = {.kind = ORIGIN_LOADED, .from = place, .vaddr = vaddr};
    if (place.kind == PLACE_NONE) {
        origin = origin_of(flow, vaddr, source);
        if (!enter_object(flow, &origin))
            origin.kind = origin.kind == ORIGIN_LOADED ? ORIGIN_MEMBER : ORIGIN_NONE;
    }
    for (unsigned i = 0; i < flow->n_spills; i++) {
        if (place_equal(&flow->spills[i], &place))
            origin = (struct origin){.kind = ORIGIN_POINTER};
    }
    flow->registers[target] = origin;
}

/* lea: the address of a variable, or an index applied to a pointer. */
static void step_lea(struct flow *flow, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                     const ZydisDecodedOperand *operands)
{
    int target = dwarf_register(operands[0].reg.value);
    if (target < 0)
        return;
    struct value_place place = place_of(flow, vaddr, insn, &operands[1]);
    struct origin origin = {.kind = ORIGIN_ADDRESS, .from = place, .vaddr = vaddr};
    if (place.kind == PLACE_NONE) {
        origin = origin_of(flow, vaddr, &operands[1]);
        int base = dwarf_register(operands[1].mem.base);
        bool is_guess = base >= 0 && flow->registers[base].kind == ORIGIN_NONE;
        if (origin.kind == ORIGIN_POINTER || is_guess)
            origin = (struct origin){0};
    }
    flow->registers[target] = origin;
}

static void step_mov(struct flow *flow, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                     const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *to = &operands[0], *from = &operands[1];
    bool is_wide = insn->operand_width == 64;
    int source = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? dwarf_register(from->reg.value) : -1;
    if (to->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        if (is_wide && source >= 0 && flow->registers[source].kind == ORIGIN_POINTER) {
            flow->is_kept |= to->mem.base != ZYDIS_REGISTER_RSP && to->mem.base != ZYDIS_REGISTER_RBP;
            step_store(flow, vaddr, vaddr + insn->length, insn, to);
        }
        return;
    }
    int target = to->type == ZYDIS_OPERAND_TYPE_REGISTER ? dwarf_register(to->reg.value) : -1;
    if (target < 0)
        return;
    if (is_wide && source >= 0)
        flow->registers[target] = flow->registers[source];
    else if (is_wide && from->type == ZYDIS_OPERAND_TYPE_MEMORY)
        step_load(flow, vaddr, insn, target, from);
    else
        flow->registers[target] = (struct origin){0};
}

/* add: an element of what a loaded pointer points to. */
static void step_add(struct flow *flow, const ZydisDecodedOperand *operands)
{
    int target = operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? dwarf_register(operands[0].reg.value) : -1;
    if (target < 0)
        return;
    struct origin *origin = &flow->registers[target];
    if (operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && origin->kind == ORIGIN_LOADED) {
        origin->offset += operands[1].imm.value.s;
        return;
    }
    int source = operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? dwarf_register(operands[1].reg.value) : -1;
    if (origin->kind <= ORIGIN_POINTER)
        *origin = source >= 0 ? flow->registers[source] : (struct origin){0};
    if (origin->kind == ORIGIN_POINTER)
        *origin = (struct origin){0};
    origin->indexed = true;
}

/* Marks as unknown what the instruction writes, for writes that were not handled. */
static void forget_written(struct flow *flow, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    for (unsigned i = 0; i < insn->operand_count; i++) {
        int reg = operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? dwarf_register(operands[i].reg.value) : -1;
        if (reg >= 0 && operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            flow->registers[reg] = (struct origin){0};
    }
}

static void step_call(struct flow *flow)
{
    static const uint8_t clobbered[] = {0, 1, 2, 4, 5, 8, 9, 10, 11}; /* System V caller-saved, DWARF numbers */
    for (size_t i = 0; i < sizeof clobbered; i++)
        flow->registers[clobbered[i]] = (struct origin){0};
}

/* Starts of the instructions from the function's entry to the call; returns their number. */
static size_t linear_starts(struct flow *flow, uint64_t entry, uint64_t return_vaddr)
{
    uint64_t *starts = flow->starts;
    size_t n = 0;
    for (uint64_t vaddr = entry; vaddr < return_vaddr;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (!decode(flow, vaddr, &insn, operands))
            return 0;
        if (n == BACK_MAX) {
            memmove(starts, starts + BACK_MAX / 2, BACK_MAX / 2 * sizeof *starts);
            n = BACK_MAX / 2;
        }
        starts[n++] = vaddr;
        vaddr += insn.length;
    }
    return n;
}

/* Handles one instruction that is neither a return nor a jump. */
static void step(struct flow *flow, uint64_t vaddr, const ZydisDecodedInstruction *insn,
                 const ZydisDecodedOperand *operands)
{
    if (insn->mnemonic == ZYDIS_MNEMONIC_MOV)
        step_mov(flow, vaddr, insn, operands);
    else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA)
        step_lea(flow, vaddr, insn, operands);
    else if (insn->mnemonic == ZYDIS_MNEMONIC_ADD)
        step_add(flow, operands);
    else if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
        step_call(flow);
    else
        forget_written(flow, insn, operands);
}

/* Follows the pointer from vaddr; RETURNED when the function returns it. */
static enum alloc_name_result follow(struct flow *flow, uint64_t vaddr)
{
    for (int n = 0; n < STEPS_MAX; n++) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        offer_registers(flow, vaddr);
        if (!decode(flow, vaddr, &insn, operands))
            break;
        if (insn.mnemonic == ZYDIS_MNEMONIC_RET)
            return flow->registers[0].kind == ORIGIN_POINTER ? ALLOC_NAME_RETURNED : ALLOC_NAME_UNKNOWN;
        if (insn.mnemonic == ZYDIS_MNEMONIC_JMP) {
            ZyanU64 target;
            if (operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
                !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operands[0], vaddr, &target)))
                break;
            vaddr = target;
            continue;
        }
        step(flow, vaddr, &insn, operands);
        vaddr += insn.length;
    }
    return ALLOC_NAME_UNKNOWN;
}

/* Steps through the code before the call, where the address of the later store is often computed; leaves out the last
 * n_left instructions. */
static void prepare(struct flow *flow, uint64_t entry, uint64_t return_vaddr, size_t n_left)
{
    uint64_t *starts = flow->starts;
    size_t n = linear_starts(flow, entry, return_vaddr);
    for (size_t i = n > BEFORE_MAX ? n - BEFORE_MAX : 0; i + n_left < n; i++) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (decode(flow, starts[i], &insn, operands))
            step(flow, starts[i], &insn, operands);
    }
}

/* Searches backwards for the value that the first argument register was given. */
static void follow_argument_back(struct flow *flow, uint64_t entry, uint64_t return_vaddr)
{
    uint64_t *starts = flow->starts;
    size_t n = linear_starts(flow, entry, return_vaddr);
    int wanted = 5; /* rdi */
    for (size_t i = n ? n - 1 : 0; i-- > 0;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        if (!decode(flow, starts[i], &insn, operands) || insn.mnemonic == ZYDIS_MNEMONIC_CALL)
            return;
        if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || dwarf_register(operands[0].reg.value) != wanted ||
            !(operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            continue;
        if (insn.mnemonic == ZYDIS_MNEMONIC_MOV && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            wanted = dwarf_register(operands[1].reg.value);
            if (wanted < 0)
                return;
            continue;
        }
        if (operands[1].type != ZYDIS_OPERAND_TYPE_MEMORY)
            return;
        struct value_place place = place_of(flow, starts[i], &insn, &operands[1]);
        if (place.kind == PLACE_NONE && insn.mnemonic == ZYDIS_MNEMONIC_LEA) {
            place = (struct value_place){.kind = PLACE_REGISTER, .reg = dwarf_register(operands[1].mem.base)};
            offer(flow, starts[i], &place, operands[1].mem.disp.value, false, "");
            return;
        }
        if (insn.mnemonic == ZYDIS_MNEMONIC_LEA || insn.mnemonic == ZYDIS_MNEMONIC_MOV)
            offer(flow, starts[i], &place, -1, false, "");
        return;
    }
}

/* Names the object whose address was in the first argument register at the call. */
static void follow_argument(struct flow *flow, uint64_t entry, uint64_t return_vaddr)
{
    prepare(flow, entry, return_vaddr, 1);
    struct origin *argument = &flow->registers[5]; /* rdi */
    if (argument->kind == ORIGIN_ADDRESS) {
        argument->from.offset += argument->offset;
        offer(flow, argument->vaddr, &argument->from, -1, argument->indexed, "");
    } else if (argument->kind == ORIGIN_LOADED && argument->offset >= 0) {
        offer(flow, argument->vaddr, &argument->from, argument->offset, argument->indexed, "");
    }
    if (flow->best_depth < 0)
        follow_argument_back(flow, entry, return_vaddr);
}

enum alloc_name_result alloc_name_find(struct symbols *symbols, uint64_t return_vaddr, enum alloc_name_value value,
                                       struct alloc_name *out)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct flow flow = {.symbols = symbols, .best_depth = -1, .out = out};
    if (!symbols->module || !code_load(&flow, return_vaddr) ||
        !ZYAN_SUCCESS(ZydisDecoderInit(&flow.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return ALLOC_NAME_UNKNOWN;
    bool has_entry = symbols_lookup(symbols, return_vaddr - 1, frames) > 0 && frames[0].low_vaddr;
    if (value == ALLOC_NAME_FIRST_ARGUMENT) {
        if (has_entry)
            follow_argument(&flow, frames[0].low_vaddr, return_vaddr);
    } else {
        if (has_entry)
            prepare(&flow, frames[0].low_vaddr, return_vaddr, 0);
        flow.registers[0] = (struct origin){.kind = ORIGIN_POINTER};
        enum alloc_name_result result = follow(&flow, return_vaddr);
        /* without debug information a function that keeps the pointer seems to return what is left in the register */
        bool is_left = flow.is_kept && !symbols_has_debug(symbols);
        if (result == ALLOC_NAME_RETURNED && !is_left && alloc_returns_pointer(symbols, return_vaddr))
            return result;
    }
    return flow.best_depth >= 0 ? ALLOC_NAME_FOUND : ALLOC_NAME_UNKNOWN;
}
