/* SPDX-License-Identifier: BSD-3-Clause */
/* One call comes before another when no way from the function's entry leads to the other without it: the order of the
 * addresses alone says little, since compilers move blocks about. See call-order.h. */
#include "structure/call-order.h"

#include <stdlib.h>

#include "structure/cfg-insn.h"
#include "structure/returns.h"
#include "structure/symbols-internal.h"

#define CALLS_MAX 64 /* of one line */
#define FUNCTION_BYTES_MAX (1u << 20)

/* The function that is looked at. */
struct code {
    struct symbols *symbols;
    struct code_image image;
    struct cfg_decoder *decoder;
    struct returns *returns;
    uint64_t low, high;
    uint64_t calls[CALLS_MAX]; /* [n_calls] addresses of the line's calls */
    size_t n_calls;
};

static const char *name_at(void *context, uint64_t vaddr)
{
    const struct elf_symbol *symbol = symbols_elf_find(context, ELF_SYMBOL_CODE, vaddr);
    return symbol && symbol->vaddr == vaddr ? symbol->name : NULL;
}

static void code_fini(struct code *code)
{
    returns_free(code->returns);
    free(code->decoder);
}

/* Opens the function that contains vaddr; false when its code is not known. */
static bool code_init(struct code *code, struct symbols *symbols, uint64_t vaddr)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    GElf_Addr bias = 0;
    Dwarf_Die function;
    Dwarf_Addr end = 0;
    Elf *elf = symbols->module ? dwfl_module_getelf(symbols->module, &bias) : NULL;
    *code = (struct code){.symbols = symbols};
    if (!elf || symbols_lookup(symbols, vaddr, frames) == 0 || !symbols_dwarf_function(symbols, vaddr, &function) ||
        dwarf_highpc(&function, &end) != 0)
        return false;
    code_image_init(&code->image, elf, bias);
    code->low = frames[0].low_vaddr;
    code->high = end + symbols->dwarf_bias;
    if (code->image.machine != EM_X86_64 || !code->low || vaddr < code->low || vaddr >= code->high ||
        code->high - code->low > FUNCTION_BYTES_MAX)
        return false;
    code->decoder = cfg_decoder_new();
    code->returns = code->decoder ? returns_new(elf, &code->image, code->decoder, name_at, symbols) : NULL;
    return code->returns;
}

/* The instruction at vaddr; a call that does not return is CFG_END. */
static void decode(const struct code *code, uint64_t vaddr, struct cfg_insn *insn)
{
    uint64_t n_bytes = 0;
    const uint8_t *bytes = code_image_bytes(&code->image, vaddr, &n_bytes);
    *insn = (struct cfg_insn){.vaddr = vaddr, .len_bytes = 1, .kind = CFG_END};
    if (!bytes || n_bytes == 0)
        return;
    cfg_decode(code->decoder, bytes, n_bytes, vaddr, insn);
    if (insn->kind == CFG_CALL && insn->value && returns_never(code->returns, insn->value, insn->by_slot, false))
        insn->kind = CFG_END;
}

/* Whether the entry leads to the instruction at wanted by a way without that at avoided. */
static bool reaches(const struct code *code, uint64_t avoided, uint64_t wanted)
{
    size_t n_todo = 0, size = (size_t)(code->high - code->low);
    bool is_found = false;
    uint8_t *seen = calloc(size, 1);
    uint64_t *todo = calloc(size + 1, sizeof *todo); /* each instruction is noted once */
    if (seen && todo)
        todo[n_todo++] = code->low;
    while (n_todo > 0 && !is_found) {
        struct cfg_insn insn;
        decode(code, todo[--n_todo], &insn);
        is_found = insn.vaddr == wanted;
        bool goes_on = insn.kind <= CFG_CALL || insn.kind == CFG_BRANCH;
        bool jumps = (insn.kind == CFG_BRANCH || insn.kind == CFG_JUMP) && !insn.by_slot;
        const uint64_t exits[2] = {goes_on ? insn.vaddr + insn.len_bytes : 0, jumps ? insn.value : 0};
        for (size_t i = 0; i < 2; i++)
            if (exits[i] >= code->low && exits[i] < code->high && exits[i] != avoided && !seen[exits[i] - code->low]) {
                seen[exits[i] - code->low] = 1;
                todo[n_todo++] = exits[i];
            }
    }
    free(seen);
    free(todo);
    return is_found;
}

/* The code before two return addresses is on the same line of the same function, perhaps an inlined one. */
static bool is_same_line(struct symbols *symbols, uint64_t a, uint64_t b)
{
    struct symbols_frame x[SYMBOLS_FRAMES_MAX], y[SYMBOLS_FRAMES_MAX];
    size_t n = symbols_lookup(symbols, a - 1, x), m = symbols_lookup(symbols, b - 1, y);
    return n > 0 && n == m && x[n - 1].line && x[n - 1].line == y[n - 1].line && x[n - 1].die == y[n - 1].die;
}

/* Collects the line's calls; false when the one that returns to return_vaddr is not among them. */
static bool find_calls(struct code *code, uint64_t return_vaddr, size_t *own)
{
    struct cfg_insn insn = {0};
    for (uint64_t at = code->low; at < return_vaddr; at += insn.len_bytes)
        decode(code, at, &insn);
    const struct cfg_insn call = insn;
    if (call.vaddr + call.len_bytes != return_vaddr || call.kind != CFG_CALL || !call.value)
        return false;
    for (uint64_t at = code->low; at < code->high; at += insn.len_bytes) {
        decode(code, at, &insn);
        if (insn.kind != CFG_CALL || insn.value != call.value || insn.by_slot != call.by_slot ||
            !is_same_line(code->symbols, at + insn.len_bytes, return_vaddr))
            continue;
        if (code->n_calls == CALLS_MAX)
            return false;
        if (at == call.vaddr)
            *own = code->n_calls;
        code->calls[code->n_calls++] = at;
    }
    return code->n_calls > 0;
}

size_t call_order_find(struct symbols *symbols, uint64_t return_vaddr, size_t *rank)
{
    struct code code;
    size_t own = 0, n = 0;
    *rank = 0;
    if (code_init(&code, symbols, return_vaddr - 1) && find_calls(&code, return_vaddr, &own))
        n = code.n_calls;
    for (size_t i = 0; i < n; i++) {
        bool is_before = i != own && !reaches(&code, code.calls[i], code.calls[own]);
        bool is_behind = i != own && !reaches(&code, code.calls[own], code.calls[i]);
        if (i != own && is_before == is_behind)
            n = 0; /* different ways, or one object made in two places */
        *rank += is_before;
    }
    code_fini(&code);
    return n;
}
