/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks through the code of callees and of a line's function: see cfg.h. */
#include "structure/cfg/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "structure/elf/symbols-dwarf.h"

/* --- functions that never return --- */

/* A bounded walk through a callee's code; the answer is kept. */

#define INSNS_MAX 300 /* of one callee; a larger one counts as returning */
#define PATHS_MAX 32
#define CALLS_MAX 4
#define STUB_INSNS_MAX 3 /* of a linker stub that jumps to an imported function */

struct imported_slot {
    uint64_t slot;
    bool never;
};

struct returns_answer {
    uint64_t callee;
    bool never;
    bool by_name; /* only its name has been checked so far */
};

struct returns {
    const struct code_image *image;
    const struct cfg_decoder *decoder;
    returns_name *name;
    void *context;
    struct imported_slot *imports; /* [n_imports] by slot */
    size_t n_imports, cap_imports;
    struct returns_answer *answers; /* [n_answers] */
    size_t n_answers, cap_answers;
    struct slots slots; /* of the answers, by callee */
};

static bool is_noreturn_name(const char *name)
{
    static const char *const names[] = {"abort",
                                        "exit",
                                        "_exit",
                                        "_Exit",
                                        "quick_exit",
                                        "pthread_exit",
                                        "thrd_exit",
                                        "longjmp",
                                        "_longjmp",
                                        "siglongjmp",
                                        "__longjmp_chk",
                                        "err",
                                        "errx",
                                        "verr",
                                        "verrx",
                                        "panic",
                                        "do_exit",
                                        "make_task_dead",
                                        "__stack_chk_fail",
                                        "__chk_fail",
                                        "__fortify_fail",
                                        "fortify_panic",
                                        "__fortify_panic",
                                        "__libc_fatal",
                                        "__assert",
                                        "__assert_fail",
                                        "__assert_perror_fail",
                                        "_Unwind_Resume",
                                        "__cxa_throw",
                                        "__cxa_rethrow",
                                        "__cxa_bad_cast",
                                        "__cxa_bad_typeid",
                                        "__cxa_throw_bad_array_new_length",
                                        "__cxa_throw_bad_array_length",
                                        "__cxa_pure_virtual",
                                        "__cxa_deleted_virtual",
                                        "__cxa_call_unexpected",
                                        "__cxa_call_terminate",
                                        "__clang_call_terminate",
                                        "_ZSt9terminatev",
                                        "_ZSt10unexpectedv",
                                        ("_ZSt17rethrow_exceptionNSt15__exception_ptr"
                                         "13exception_ptrE"),
                                        "_gfortran_stop_numeric",
                                        "_gfortran_stop_string",
                                        "_gfortran_error_stop_numeric",
                                        "_gfortran_error_stop_string",
                                        "_gfortran_runtime_error",
                                        "_gfortran_runtime_error_at",
                                        "_gfortran_os_error",
                                        "_gfortran_os_error_at"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    const char *digits = strncmp(name, "_ZSt", 4) == 0 ? name + 4 : NULL;
    return digits && strncmp(digits + strspn(digits, "0123456789"), "__throw_", 8) == 0;
}

static int compare_imports(const void *a, const void *b)
{
    const struct imported_slot *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static void add_imports(struct returns *returns, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Scn *linked = elf_getscn(elf, header->sh_link);
    GElf_Shdr table;
    Elf_Data *data = elf_getdata(section, NULL), *symbols = linked ? elf_getdata(linked, NULL) : NULL;
    if (!data || !symbols || !gelf_getshdr(linked, &table) || header->sh_entsize == 0)
        return;
    for (size_t i = 0; i < data->d_size / header->sh_entsize; i++) {
        GElf_Rela rela;
        GElf_Sym symbol;
        if (!gelf_getrela(data, (int)i, &rela) || GELF_R_SYM(rela.r_info) == 0 ||
            !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &symbol))
            continue;
        const char *name = elf_strptr(elf, table.sh_link, symbol.st_name);
        if (!name || !is_noreturn_name(name) ||
            !vec_reserve(&returns->imports, &returns->cap_imports, returns->n_imports + 1, sizeof *returns->imports))
            continue;
        returns->imports[returns->n_imports++] = (struct imported_slot){rela.r_offset, true};
    }
}

struct returns *returns_new(Elf *elf, const struct code_image *image, const struct cfg_decoder *decoder,
                            returns_name *name, void *context)
{
    struct returns *returns = calloc(1, sizeof *returns);
    if (!returns)
        return NULL;
    *returns = (struct returns){.image = image, .decoder = decoder, .name = name, .context = context};
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA && header.sh_flags & SHF_ALLOC)
            add_imports(returns, elf, section, &header);
    }
    if (returns->n_imports)
        qsort(returns->imports, returns->n_imports, sizeof *returns->imports, compare_imports);
    return returns;
}

void returns_free(struct returns *returns)
{
    if (!returns)
        return;
    free(returns->imports);
    free(returns->answers);
    slots_fini(&returns->slots);
    free(returns);
}

static bool slot_never_returns(const struct returns *returns, uint64_t slot)
{
    const struct imported_slot key = {.slot = slot};
    return returns->n_imports &&
           bsearch(&key, returns->imports, returns->n_imports, sizeof key, compare_imports) != NULL;
}

static uint64_t hash_answer(const void *item)
{
    return ((const struct returns_answer *)item)->callee;
}

static bool is_same_callee(const void *a, const void *b)
{
    return ((const struct returns_answer *)a)->callee == ((const struct returns_answer *)b)->callee;
}

static const struct slots_kind by_callee = {sizeof(struct returns_answer), hash_answer, is_same_callee};

/* One walk: the paths still to follow and how far it may go. */
struct callee_walk {
    struct returns *returns;
    uint64_t paths[PATHS_MAX]; /* still to follow: where they begin */
    uint64_t added[PATHS_MAX]; /* where all that were added so far begin */
    unsigned n_paths, n_added, n_insns, depth;
};

static bool callee_never_returns(struct returns *returns, uint64_t callee, bool by_slot, unsigned depth);

/* Whether the code at callee is a stub that leads to a function which never returns. */
static bool stub_never_returns(const struct returns *returns, uint64_t callee)
{
    for (unsigned i = 0; i < STUB_INSNS_MAX; i++) {
        uint64_t n_bytes = 0;
        const uint8_t *bytes = code_image_bytes(returns->image, callee, &n_bytes);
        struct cfg_insn insn;
        if (!bytes)
            return false;
        cfg_decode(returns->decoder, bytes, n_bytes, callee, &insn);
        if (insn.kind != CFG_PLAIN)
            return insn.kind == CFG_JUMP && insn.by_slot && slot_never_returns(returns, insn.value);
        callee += insn.len_bytes;
    }
    return false;
}

/* Adds a path; false when there are too many to follow. */
static bool add_path(struct callee_walk *walk, uint64_t vaddr)
{
    for (unsigned i = 0; i < walk->n_added; i++)
        if (walk->added[i] == vaddr)
            return true;
    if (walk->n_added == PATHS_MAX)
        return false;
    walk->added[walk->n_added++] = walk->paths[walk->n_paths++] = vaddr;
    return true;
}

/* Follows one path to its end; false when it reaches, or may reach, a return. */
static bool follow(struct callee_walk *walk, uint64_t vaddr)
{
    for (uint64_t n_bytes = 0; walk->n_insns++ < INSNS_MAX;) {
        const uint8_t *bytes = code_image_bytes(walk->returns->image, vaddr, &n_bytes);
        struct cfg_insn insn;
        if (!bytes)
            return false;
        cfg_decode(walk->returns->decoder, bytes, n_bytes, vaddr, &insn);
        vaddr += insn.len_bytes;
        if (insn.kind == CFG_END)
            return true;
        if (insn.kind == CFG_RETURN || insn.kind == CFG_INDIRECT)
            return false;
        if (insn.kind == CFG_BRANCH && !add_path(walk, insn.value))
            return false;
        if (insn.kind == CFG_CALL && insn.value &&
            callee_never_returns(walk->returns, insn.value, insn.by_slot, walk->depth + 1))
            return true;
        if (insn.kind == CFG_JUMP)
            return insn.by_slot ? slot_never_returns(walk->returns, insn.value) : add_path(walk, insn.value);
    }
    return false;
}

static bool code_never_returns(struct returns *returns, uint64_t callee, unsigned depth)
{
    struct callee_walk walk = {.returns = returns, .depth = depth};
    (void)add_path(&walk, callee);
    while (walk.n_paths > 0)
        if (!follow(&walk, walk.paths[--walk.n_paths]))
            return false;
    return true;
}

/* Index of the answer, by name when it is new; SLOTS_NONE when out of memory. */
static size_t answer_for(struct returns *returns, uint64_t callee)
{
    const struct returns_answer like = {.callee = callee};
    size_t index = slots_find(&returns->slots, &by_callee, returns->answers, &like);
    if (callee == 0 || index != SLOTS_NONE)
        return callee == 0 ? SLOTS_NONE : index;
    if (!slots_reserve(&returns->slots, &by_callee, returns->answers, returns->n_answers) ||
        !vec_reserve(&returns->answers, &returns->cap_answers, returns->n_answers + 1, sizeof *returns->answers))
        return SLOTS_NONE;
    const char *name = returns->name(returns->context, callee);
    bool is_never = (name && is_noreturn_name(name)) || (!name && stub_never_returns(returns, callee));
    index = returns->n_answers++;
    returns->answers[index] = (struct returns_answer){.callee = callee, .never = is_never, .by_name = !is_never};
    slots_add(&returns->slots, &by_callee, returns->answers, index);
    return index;
}

static bool callee_never_returns(struct returns *returns, uint64_t callee, bool by_slot, unsigned depth)
{
    size_t index = by_slot ? SLOTS_NONE : answer_for(returns, callee);
    if (index == SLOTS_NONE)
        return by_slot && slot_never_returns(returns, callee);
    if (!returns->answers[index].by_name || depth > CALLS_MAX)
        return returns->answers[index].never;
    /* a function that calls itself counts as returning while it is being examined */
    returns->answers[index].by_name = false;
    bool is_never = code_never_returns(returns, callee, depth);
    returns->answers[index].never = is_never;
    return is_never;
}

bool returns_never(struct returns *returns, uint64_t callee, bool by_slot, bool by_name)
{
    if (!by_name)
        return callee_never_returns(returns, callee, by_slot, 0);
    if (by_slot)
        return slot_never_returns(returns, callee);
    size_t index = answer_for(returns, callee);
    return index != SLOTS_NONE && returns->answers[index].never;
}

/* --- the order of calls --- */

/* One call comes before another when every path from the function's entry to the other goes through it. The order of
 * the addresses alone says little, since compilers move blocks around. */

#define LINE_CALLS_MAX 64 /* of one line */
#define FUNCTION_BYTES_MAX (1u << 20)

/* The function being examined. */
struct code {
    struct symbols *symbols;
    struct code_image image;
    struct cfg_decoder *decoder;
    struct returns *returns;
    uint64_t low, high;
    uint64_t calls[LINE_CALLS_MAX]; /* [n_calls] addresses of the line's calls */
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

/* The instruction at vaddr; a call that is known not to return is CFG_END. */
static void decode(const struct code *code, uint64_t vaddr, struct cfg_insn *insn)
{
    uint64_t n_bytes = 0;
    const uint8_t *bytes = code_image_bytes(&code->image, vaddr, &n_bytes);
    *insn = (struct cfg_insn){.vaddr = vaddr, .len_bytes = 1, .kind = CFG_END};
    if (!bytes || n_bytes == 0)
        return;
    cfg_decode(code->decoder, bytes, n_bytes, vaddr, insn);
    if (code->returns && insn->kind == CFG_CALL && insn->value &&
        returns_never(code->returns, insn->value, insn->by_slot, false))
        insn->kind = CFG_END;
}

/* Whether a path leads from the entry to the instruction at wanted without the one at avoided. */
static bool reaches(const struct code *code, uint64_t avoided, uint64_t wanted)
{
    size_t n_todo = 0, size = (size_t)(code->high - code->low);
    bool is_found = false;
    uint8_t *seen = calloc(size, 1);
    uint64_t *todo = calloc(size + 1, sizeof *todo); /* each instruction is entered once */
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

/* Whether the code before two return addresses is on the same line of the same function, perhaps an inlined one. */
static bool is_same_line(struct symbols *symbols, uint64_t a, uint64_t b)
{
    struct symbols_frame x[SYMBOLS_FRAMES_MAX], y[SYMBOLS_FRAMES_MAX];
    size_t n = symbols_lookup(symbols, a - 1, x), m = symbols_lookup(symbols, b - 1, y);
    return n > 0 && n == m && x[n - 1].line && x[n - 1].line == y[n - 1].line && x[n - 1].die == y[n - 1].die;
}

/* The last instruction that begins before end, of those in a row from start on. */
static struct cfg_insn insn_before(const struct code *code, uint64_t start, uint64_t end)
{
    struct cfg_insn insn = {0};
    for (uint64_t at = start; at < end; at += insn.len_bytes)
        decode(code, at, &insn);
    return insn;
}

/* Collects the line's calls; false when the one that returns to return_vaddr is not among them. */
static bool find_calls(struct code *code, uint64_t return_vaddr, size_t *own)
{
    struct cfg_insn insn = {0};
    const struct cfg_insn call = insn_before(code, code->low, return_vaddr);
    if (call.vaddr + call.len_bytes != return_vaddr || call.kind != CFG_CALL || !call.value)
        return false;
    for (uint64_t at = code->low; at < code->high; at += insn.len_bytes) {
        decode(code, at, &insn);
        if (insn.kind != CFG_CALL || insn.value != call.value || insn.by_slot != call.by_slot ||
            !is_same_line(code->symbols, at + insn.len_bytes, return_vaddr))
            continue;
        if (code->n_calls == LINE_CALLS_MAX)
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
            n = 0; /* on different paths, or one object made in two places */
        *rank += is_before;
    }
    code_fini(&code);
    return n;
}

unsigned call_bytes(struct symbols *symbols, uint64_t return_vaddr)
{
    GElf_Addr bias = 0;
    uint64_t start = 0, end = 0;
    struct code code = {.symbols = symbols};
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    Elf *elf = symbols->module ? dwfl_module_getelf(symbols->module, &bias) : NULL;
    if (!elf)
        return 0;
    code_image_init(&code.image, elf, bias);
    if (code.image.machine == EM_AARCH64 || code.image.machine == EM_PPC64)
        return 4;
    if (!symbols_unwind_range(symbols, return_vaddr - 1, &start, &end) &&
        symbols_lookup(symbols, return_vaddr - 1, frames) > 0)
        start = frames[0].low_vaddr;
    if (code.image.machine != EM_X86_64 || !start || return_vaddr - start > FUNCTION_BYTES_MAX)
        return 0;
    code.decoder = cfg_decoder_new();
    const struct cfg_insn call = code.decoder ? insn_before(&code, start, return_vaddr) : (struct cfg_insn){0};
    free(code.decoder);
    return call.kind == CFG_CALL && call.vaddr + call.len_bytes == return_vaddr ? call.len_bytes : 0;
}
