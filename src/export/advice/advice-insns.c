/* SPDX-License-Identifier: BSD-3-Clause */
/* What the instructions of a loop are, from their text, and what to do about such: see advice.h. */
#include "export/advice/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

#define STACK_PART 0.3   /* of the instructions: with so many that use variables in the frame nothing was optimized */
#define INSNS_FEW 4      /* instructions: so few are no loop to be judged */
#define VECTOR_SCALAR 8  /* bytes of the widest number that no vector is needed for */
#define VECTOR_USUAL 32  /* of the widest vectors of a machine of which that is not known */
#define COSTLY_INSNS 40  /* a division, or a square root, among so many instructions costs as much as these */
#define CALL_INSNS 200   /* the same of a call of the mathematical library */
#define CHAIN_COUNTS 8   /* operations take as long as one that has to wait for the one before: 4 cycles, 2 at once */
#define CALLED_PART 0.05 /* of a loop's time: calls that take less are seldom made */
#define NUMBERS_PART 0.1 /* of the instructions that are floating-point arithmetic: with fewer it is not about that */

/* --- one instruction --- */

/* The mnemonic of an instruction, without the v of AVX, and its operands. */
struct insn {
    char name[24];
    const char *operands;
    bool is_avx;
};

static struct insn insn_of(const char *text)
{
    struct insn insn = {0};
    static const char *const prefixes[] = {"lock ", "rep ", "repe ", "repne ", "notrack ", "bnd ", "data16 "};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            text += strlen(prefixes[i]);
    size_t n = strcspn(text, " ");
    insn.is_avx = *text == 'v' && n > 4;
    (void)snprintf(insn.name, sizeof insn.name, "%.*s", (int)(n - insn.is_avx), text + insn.is_avx);
    insn.operands = text + n + strspn(text + n, " ");
    return insn;
}

static bool ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n >= k && strcmp(text + n - k, suffix) == 0;
}

/* The kinds of floating-point arithmetic. */
enum arithmetic {
    ARITHMETIC_NONE = 0,
    ARITHMETIC_SUM,
    ARITHMETIC_PRODUCT,
    ARITHMETIC_FUSED,
    ARITHMETIC_DIVIDE,
    ARITHMETIC_ROOT
};

static enum arithmetic arithmetic_of(const char *name)
{
    bool is_number = ends(name, "sd") || ends(name, "ss") || ends(name, "pd") || ends(name, "ps");
    if (!is_number || text_begins(name, "addsub"))
        return ARITHMETIC_NONE;
    if (text_begins(name, "add") || text_begins(name, "sub") || text_begins(name, "hadd"))
        return ARITHMETIC_SUM;
    if (text_begins(name, "fmadd") || text_begins(name, "fmsub") || text_begins(name, "fnmadd") ||
        text_begins(name, "fnmsub"))
        return ARITHMETIC_FUSED;
    return text_begins(name, "mul")    ? ARITHMETIC_PRODUCT
           : text_begins(name, "div")  ? ARITHMETIC_DIVIDE
           : text_begins(name, "sqrt") ? ARITHMETIC_ROOT
                                       : ARITHMETIC_NONE;
}

/* The number of a vector register that text begins with, -1 for anything else; *bytes: its width. */
static int register_of(const char *text, unsigned *bytes)
{
    static const struct {
        const char *prefix;
        unsigned bytes;
    } files[] = {{"%xmm", 16}, {"%ymm", 32}, {"%zmm", 64}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (text_begins(text, files[i].prefix)) {
            long number = strtol(text + strlen(files[i].prefix), NULL, 10);
            *bytes = files[i].bytes;
            return number >= 0 && number < CODE_REGISTERS ? (int)number : -1;
        }
    return -1;
}

/* The last operand, which an instruction writes to. */
static const char *destination(const char *operands)
{
    const char *last = operands;
    int depth = 0;
    for (const char *at = operands; *at && *at != '#'; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == ',' && depth == 0)
            last = at + 1;
    }
    return last;
}

/* Whether the register that is written to is also read: always by the two operands of SSE and by fused ones. */
static bool reads_destination(const struct insn *insn, enum arithmetic arithmetic, const char *to)
{
    size_t n = strcspn(to, " ,#");
    if (!insn->is_avx || arithmetic == ARITHMETIC_FUSED)
        return true;
    for (const char *at = insn->operands; at < to; at++)
        if (strncmp(at, to, n) == 0 && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}

static void take_arithmetic(struct code_facts *facts, const struct insn *insn, enum arithmetic arithmetic)
{
    bool is_packed = ends(insn->name, "pd") || ends(insn->name, "ps");
    const char *to = destination(insn->operands);
    unsigned bytes = 0;
    int number = register_of(to, &bytes);
    facts->n_scalar += !is_packed;
    facts->n_packed += is_packed;
    if (is_packed && bytes > facts->packed_bytes)
        facts->packed_bytes = bytes;
    facts->n_divides += arithmetic == ARITHMETIC_DIVIDE;
    facts->n_roots += arithmetic == ARITHMETIC_ROOT;
    if (number < 0)
        return;
    facts->registers[number].is_packed |= is_packed;
    if (arithmetic == ARITHMETIC_ROOT || !reads_destination(insn, arithmetic, to))
        facts->registers[number].is_set = true;
    else if (arithmetic == ARITHMETIC_SUM || arithmetic == ARITHMETIC_FUSED)
        facts->registers[number].n_sums++;
    else
        facts->registers[number].n_products++;
}

/* Notes the name of what a call leads to, behind the address: " <exp>". */
static void take_call(struct code_facts *facts, const char *operands)
{
    const char *name = strchr(operands, '<');
    const char *last = name ? strrchr(name, '>') : NULL, *stub = name ? strstr(name, "@plt>") : NULL;
    size_t n = last ? (size_t)((stub ? stub : last) - name) - 1 : 0;
    facts->n_calls++;
    if (n == 0 || name[1] == '_') /* of a stub of another library's function only what lies before it has a name */
        return;
    size_t i = 0;
    while (i < CODE_CALLEES && *facts->callees[i] &&
           (strncmp(facts->callees[i], name + 1, n) != 0 || facts->callees[i][n]))
        i++;
    if (i < CODE_CALLEES)
        (void)snprintf(facts->callees[i], sizeof facts->callees[i], "%.*s", (int)n, name + 1);
}

/* Whether the instruction writes to memory that is not the frame's. */
static bool is_store(const struct insn *insn)
{
    static const char *const readers[] = {"cmp", "test",     "ucomi", "comi", "ptest", "call", "jmp",
                                          "nop", "prefetch", "mul",   "imul", "div",   "idiv", "push"};
    const char *to = destination(insn->operands);
    bool is_memory = strchr(to, '(') && !strstr(to, "(%rbp") && !strstr(to, "(%rsp") && !strstr(to, "(%rip");
    for (size_t i = 0; is_memory && i < sizeof readers / sizeof *readers; i++)
        is_memory = !text_begins(insn->name, readers[i]);
    return is_memory || text_begins(insn->name, "stos") || text_begins(insn->name, "movs ");
}

void code_facts_take(struct code_facts *facts, const char *text)
{
    struct insn insn = insn_of(text);
    enum arithmetic arithmetic = arithmetic_of(insn.name);
    unsigned bytes = 0;
    facts->n_insns++;
    facts->n_stack += strstr(insn.operands, "(%rbp)") != NULL;
    facts->n_stores += is_store(&insn);
    facts->n_rounding +=
        ends(insn.name, "mxcsr") || text_begins(insn.name, "fldcw") || text_begins(insn.name, "fnstcw");
    facts->n_integer_divides += text_begins(insn.name, "idiv") || (text_begins(insn.name, "div") && !arithmetic);
    if (text_begins(insn.name, "call")) {
        take_call(facts, insn.operands);
        return;
    }
    if (arithmetic) {
        take_arithmetic(facts, &insn, arithmetic);
        return;
    }
    bool is_test = text_begins(insn.name, "ucomi") || text_begins(insn.name, "comi") || text_begins(insn.name, "ptest");
    int number = is_test ? -1 : register_of(destination(insn.operands), &bytes);
    if (number >= 0) {
        facts->registers[number].is_set = true;
        facts->n_packed_integers += text_begins(insn.name, "padd") || text_begins(insn.name, "psub") ||
                                    text_begins(insn.name, "pmul") || text_begins(insn.name, "pcmp") ||
                                    text_begins(insn.name, "pand") || text_begins(insn.name, "por");
    }
}

/* Whether a register is computed with from turn to turn, and by nothing else. */
static bool is_chained(const struct code_facts *facts, size_t i)
{
    return !facts->registers[i].is_set && !facts->registers[i].is_packed &&
           facts->registers[i].n_sums + facts->registers[i].n_products > 0;
}

unsigned code_facts_chains(const struct code_facts *facts, unsigned *n_steps)
{
    unsigned n = 0, n_longest = 0;
    bool has_products = false;
    for (size_t i = 0; facts->is_loop && i < CODE_REGISTERS; i++) {
        unsigned n_sums = facts->registers[i].n_sums, n_products = facts->registers[i].n_products;
        if (!is_chained(facts, i))
            continue;
        n++;
        has_products |= n_products > 0;
        n_longest = n_sums > n_longest ? n_sums : n_longest;
    }
    *n_steps = has_products ? 0 : n_longest;
    return n;
}

/* --- what to do --- */

/* Appends the names of called functions. */
static void put_callees(const struct code_facts *facts, struct buf *out)
{
    for (size_t i = 0; i < CODE_CALLEES && *facts->callees[i]; i++)
        buf_printf(out, "%s%.40s", i ? ", " : "", facts->callees[i]);
}

/* Whether one of the callees is a function of the mathematical library that there are vectors of. */
static bool calls_mathematics(const struct code_facts *facts)
{
    static const char *const names[] = {"sin",  "cos",   "sincos", "tan",  "exp",   "exp2", "log",
                                        "log2", "log10", "pow",    "atan", "atan2", "asin", "acos",
                                        "sinh", "cosh",  "tanh",   "cbrt", "erf",   "hypot"};
    for (size_t i = 0; i < CODE_CALLEES; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            size_t n = strlen(names[k]);
            const char *callee = facts->callees[i];
            if (strncmp(callee, names[k], n) == 0 && (!callee[n] || strcmp(callee + n, "f") == 0))
                return true;
        }
    return false;
}

/* Whether its calls take a good part of its time: others are seldom made. */
static bool calls_count(const struct code_facts *facts)
{
    return facts->n_calls && facts->called_part >= CALLED_PART;
}

void code_facts_put_evidence(const struct code_facts *facts, struct buf *out)
{
    unsigned n_steps, n_chains = code_facts_chains(facts, &n_steps);
    buf_printf(out, "%s of %u instructions: %u scalar and %u packed floating-point operations",
               facts->is_loop ? "a loop" : "code", facts->n_insns, facts->n_scalar, facts->n_packed);
    if (facts->packed_bytes)
        buf_printf(out, " (%u bytes wide)", facts->packed_bytes);
    if (facts->n_divides + facts->n_roots)
        buf_printf(out, ", of these %u division%s and %u square root%s", facts->n_divides,
                   facts->n_divides == 1 ? "" : "s", facts->n_roots, facts->n_roots == 1 ? "" : "s");
    if (facts->n_integer_divides)
        buf_printf(out, "; %u division%s of integers", facts->n_integer_divides,
                   facts->n_integer_divides == 1 ? "" : "s");
    if (n_chains)
        buf_printf(out, "; %u chain%s of computations from turn to turn", n_chains, n_chains == 1 ? "" : "s");
    if (facts->n_calls) {
        buf_printf(out, "; %u call%s ", facts->n_calls, facts->n_calls == 1 ? "" : "s");
        put_callees(facts, out);
        if (!calls_count(facts))
            buf_printf(out, ", which take %.1f %% of its time", 100 * facts->called_part);
    }
}

/* Whether a turn of the loop takes as long as the one chain through it: others of its computations fit in beside. */
static bool is_bound_by_chain(const struct code_facts *facts)
{
    unsigned n = 0, n_steps;
    for (size_t i = 0; i < CODE_REGISTERS; i++)
        n += is_chained(facts, i) ? facts->registers[i].n_sums + facts->registers[i].n_products : 0;
    return code_facts_chains(facts, &n_steps) == 1 && n * CHAIN_COUNTS >= facts->n_scalar + facts->n_packed;
}

/* Whether it calls nothing but sqrt, as compilers do for negative numbers, beside the instruction. */
static bool calls_roots(const struct code_facts *facts)
{
    size_t i = 0;
    while (i < CODE_CALLEES && text_begins(facts->callees[i], "sqrt"))
        i++;
    return facts->n_roots && i > 0 && (i == CODE_CALLEES || !*facts->callees[i]);
}

/* Appends what to do about floating-point arithmetic; returns the part of its time that this saves at most. */
static double put_arithmetic(const struct code_facts *facts, struct buf *words)
{
    unsigned n_steps, machine_bytes = facts->machine_bytes ? facts->machine_bytes : VECTOR_USUAL;
    bool has_chain = is_bound_by_chain(facts);
    (void)code_facts_chains(facts, &n_steps);
    if ((facts->n_divides + facts->n_roots) * COSTLY_INSNS >= facts->n_insns && facts->n_divides + facts->n_roots) {
        buf_printf(words, "it %s: have fewer, as by multiplying with a reciprocal made once (-O3 -ffast-math)",
                   facts->n_divides ? "divides" : "takes square roots");
    } else if (has_chain && n_steps) {
        buf_printf(words, "each addition waits for the one before: use several sums, or compile with -O3 -ffast-math");
    } else if (has_chain) {
        buf_printf(words, "each turn waits for the result of the one before: work on several at once");
    } else if (facts->n_scalar > facts->n_packed && (!facts->is_loop || calls_count(facts))) {
        buf_printf(words, "scalar arithmetic%s: have less of it, or call it in a loop where it can be inlined",
                   calls_count(facts) ? ", with calls" : "");
    } else if (facts->n_scalar > facts->n_packed && facts->n_calls && !facts->has_loops) {
        buf_printf(words, "it is not vectorized, which its calls, seldom made, prevent: %s",
                   calls_roots(facts) ? "compile with -O3 -march=native -fno-math-errno, or -ffast-math: then sqrt is "
                                        "never called"
                                      : "have them in a loop of their own, and compile with -O3 -march=native");
        return 1 - VECTOR_SCALAR / 2.0 / machine_bytes;
    } else if (facts->n_scalar > facts->n_packed) {
        buf_printf(words,
                   "it is not vectorized: compile with -O3 -march=native, and -ffast-math if its sums may change "
                   "order");
        return 1 - VECTOR_SCALAR / 2.0 / machine_bytes;
    } else if (facts->packed_bytes < machine_bytes) {
        buf_printf(words, "its vectors have %u bytes: -march=native may make them wider", facts->packed_bytes);
        return 1 - (double)facts->packed_bytes / machine_bytes;
    } else {
        buf_printf(words, "it is vectorized, %u bytes at once: only fewer operations save time", facts->packed_bytes);
    }
    return 1;
}

double code_facts_put(const struct code_facts *facts, struct buf *words, struct buf *evidence)
{
    code_facts_put_evidence(facts, evidence);
    if (facts->n_insns >= INSNS_FEW && facts->n_stack >= STACK_PART * facts->n_insns) {
        buf_printf(words, "it was compiled without optimization: compile with -O2 or -O3");
    } else if (facts->n_rounding) {
        buf_printf(words,
                   "it switches the rounding mode each time: have fewer such calls, or vectors (-O3 -ffast-math)");
    } else if (calls_mathematics(facts) && calls_count(facts) && facts->n_insns <= CALL_INSNS) {
        buf_printf(words, "it calls ");
        put_callees(facts, words);
        buf_printf(words, " for each element: -O3 -ffast-math -march=native takes the library's vector functions");
    } else if (facts->n_integer_divides && facts->n_integer_divides * COSTLY_INSNS >= facts->n_insns) {
        buf_printf(words, "it divides integers: divide less often, or by a constant or a power of two");
    } else if (facts->n_scalar + facts->n_packed > NUMBERS_PART * facts->n_insns) {
        return put_arithmetic(facts, words);
    } else {
        buf_printf(words, "integers and branches%s: do less there (a better algorithm, fewer turns%s)",
                   facts->n_packed_integers ? ", in vectors" : "", calls_count(facts) ? ", inlined calls" : "");
    }
    return 1;
}
