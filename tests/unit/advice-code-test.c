/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of what export/advice/advice-code.c makes of instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "export/advice/advice.h"

static struct code_facts facts_of(const char *const *texts)
{
    struct code_facts facts = {.is_loop = true, .called_part = 1};
    for (size_t i = 0; texts[i]; i++)
        code_facts_take(&facts, texts[i]);
    return facts;
}

/* That the words about these instructions hold a text. */
static void expect_words(const char *const *texts, const char *wanted)
{
    struct code_facts facts = facts_of(texts);
    struct buf words = {0}, evidence = {0};
    code_facts_put(&facts, &words, &evidence);
    if (!strstr(words.data, wanted))
        fail_msg("\"%s\" is not in \"%s\"", wanted, words.data);
    assert_true(evidence.len_bytes > 0);
    buf_fini(&words);
    buf_fini(&evidence);
}

static void expect_chains(const char *const *texts, unsigned n, unsigned n_steps)
{
    struct code_facts facts = facts_of(texts);
    unsigned steps;
    assert_int_equal(code_facts_chains(&facts, &steps), n);
    assert_int_equal(steps, n_steps);
}

/* What gcc and clang make of s += a[i], of four sums, of s = s * x + a[i], and of a sum that begins anew in each turn.
 */
static const char *const one_sum[] = {"addsd  (%rax),%xmm0", "add    $0x8,%rax", "cmp    %rdx,%rax", "jne    0x1310",
                                      NULL};
static const char *const unrolled[] = {"vaddsd 0x10(%rax,%rdi,8),%xmm0,%xmm0", "vaddsd 0x18(%rax,%rdi,8),%xmm0,%xmm0",
                                       "add    $0x10,%rax", "jne    0x1310", NULL};
static const char *const four_sums[] = {"addsd  (%rax),%xmm0",
                                        "addsd  0x8(%rax),%xmm1",
                                        "addsd  0x10(%rax),%xmm2",
                                        "addsd  0x18(%rax),%xmm3",
                                        "add    $0x20,%rax",
                                        "jne    0x1310",
                                        NULL};
static const char *const recurrence[] = {"mulsd  %xmm1,%xmm0", "addsd  (%rax),%xmm0", "add    $0x8,%rax", "jne    0x20",
                                         NULL};
static const char *const anew[] = {"movsd  (%rax),%xmm0",
                                   "mulsd  %xmm2,%xmm0",
                                   "addsd  %xmm1,%xmm0",
                                   "movsd  %xmm0,(%rdx)",
                                   "add    $0x8,%rax",
                                   "jne    0x20",
                                   NULL};
static const char *const three_operands[] = {"vmulsd (%rax),%xmm2,%xmm0",
                                             "vaddsd %xmm1,%xmm0,%xmm3",
                                             "vmovsd %xmm3,(%rdx)",
                                             "add    $0x8,%rax",
                                             "jne    0x20",
                                             NULL};
static const char *const fused[] = {"vmovsd (%rax),%xmm1", "vfmadd231sd (%rdx),%xmm1,%xmm0", "add    $0x8,%rax",
                                    "jne    0x20", NULL};

static void test_chains(void **state)
{
    (void)state;
    expect_chains(one_sum, 1, 1);
    expect_chains(unrolled, 1, 2);
    expect_chains(four_sums, 4, 1);
    expect_chains(recurrence, 1, 0);
    expect_chains(anew, 0, 0);
    expect_chains(three_operands, 0, 0);
    expect_chains(fused, 1, 1);
    struct code_facts facts = facts_of(one_sum);
    unsigned steps;
    /* one sum beside much that does not wait for it */
    facts = facts_of(anew);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; anew[k]; k++)
            code_facts_take(&facts, anew[k]);
    code_facts_take(&facts, "addsd  %xmm0,%xmm7");
    struct buf words = {0}, evidence = {0};
    code_facts_put(&facts, &words, &evidence);
    assert_int_equal(code_facts_chains(&facts, &steps), 1);
    assert_non_null(strstr(words.data, "it is not vectorized"));
    buf_fini(&words);
    buf_fini(&evidence);
    facts = facts_of(one_sum);
    facts.is_loop = false; /* one turn of nothing */
    assert_int_equal(code_facts_chains(&facts, &steps), 0);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const narrow[] = {"movupd (%rax),%xmm0", "mulpd  %xmm1,%xmm0", "addpd  %xmm2,%xmm0",
                                         "jne    0x20", NULL};
    static const char *const wide[] = {"vmulpd (%rax),%ymm1,%ymm0", "vaddpd %ymm2,%ymm0,%ymm0", "vmovupd %ymm0,(%rdx)",
                                       "jne    0x20", NULL};
    static const char *const divides[] = {"movapd %xmm1,%xmm0", "divsd  (%rax),%xmm0", "movsd  %xmm0,(%rdx)",
                                          "jne    0x20", NULL};
    static const char *const bare[] = {"mov    -0x8(%rbp),%eax", "movsd  -0x10(%rbp),%xmm0", "addsd  (%rax),%xmm0",
                                       "movsd  %xmm0,-0x10(%rbp)", NULL};
    static const char *const calls[] = {"movsd  (%rbx),%xmm0", "call   0x1030 <exp>", "movsd  %xmm0,(%rbp)",
                                        "jne    0x20", NULL};
    static const char *const whole[] = {"mov    %rdi,%rax", "idivq  %rcx", "add    $1,%rsi", "jne    0x20", NULL};
    static const char *const index[] = {"div    %rsi", "addsd  (%rdi,%rdx,8),%xmm0", "addsd  %xmm0,%xmm1",
                                        "jne    0x20", NULL};
    static const char *const branches[] = {"lea    0x1(%rax,%rax,2),%rdx", "test   $1,%al", "cmove  %rdx,%rax",
                                           "jne    0x20", NULL};
    static const char *const rounding[] = {"stmxcsr 0x8(%rsp)", "ldmxcsr 0xc(%rsp)", "mulsd  %xmm1,%xmm0", NULL};
    expect_words(one_sum, "each addition waits for the one before: use several sums");
    expect_words(four_sums, "it is not vectorized");
    expect_words(recurrence, "each turn waits for the result of the one before");
    expect_words(anew, "it is not vectorized");
    expect_words(narrow, "its vectors have 16 bytes");
    expect_words(wide, "it is vectorized, 32 bytes at once");
    expect_words(divides, "it divides: have fewer");
    expect_words(bare, "compiled without optimization");
    expect_words(calls, "it calls exp for each element");
    expect_words(whole, "it divides integers");
    expect_words(index, "it divides integers");
    expect_words(branches, "integers and branches");
    expect_words(rounding, "switches the rounding mode");
}

/* One division among very many instructions is not what they are about. */
static void test_few(void **state)
{
    (void)state;
    struct code_facts facts = {.is_loop = true, .called_part = 1};
    struct buf words = {0}, evidence = {0};
    code_facts_take(&facts, "divsd  %xmm1,%xmm0");
    code_facts_take(&facts, "idivq  %rcx");
    for (int i = 0; i < 500; i++)
        code_facts_take(&facts, "add    $0x8,%rax");
    code_facts_put(&facts, &words, &evidence);
    assert_non_null(strstr(words.data, "integers and branches"));
    buf_fini(&words);
    buf_fini(&evidence);
}

static void test_evidence(void **state)
{
    (void)state;
    struct code_facts facts = facts_of(unrolled);
    struct buf words = {0}, evidence = {0};
    code_facts_put(&facts, &words, &evidence);
    assert_string_equal(evidence.data,
                        "a loop of 4 instructions: 2 scalar and 0 packed floating-point operations; 1 chain of "
                        "computations from turn to turn");
    buf_fini(&words);
    buf_fini(&evidence);
}

/* What wider vectors save is a matter of the width that the machine has. */
static void test_width(void **state)
{
    (void)state;
    static const char *const narrow[] = {"mulpd  %xmm1,%xmm0", "addpd  %xmm2,%xmm0", "movupd %xmm0,(%rdx)",
                                         "jne    0x20", NULL};
    static const char *const wide[] = {"vmulpd %ymm1,%ymm3,%ymm0", "vaddpd %ymm2,%ymm0,%ymm0", "vmovupd %ymm0,(%rdx)",
                                       "jne    0x20", NULL};
    static const char *const called[] = {"movsd  (%rdx),%xmm0", "mulsd  %xmm1,%xmm0", "call   0x20 <weight>",
                                         "jne    0x20", NULL};
    static const char *const stub[] = {"movss  (%rdx),%xmm0", "mulss  %xmm1,%xmm0", "call   0x20 <expf@plt>",
                                       "jne    0x20", NULL};
    static const struct {
        const char *const *texts;
        unsigned machine_bytes;
        double part;
        const char *wanted;
    } cases[] = {
        {narrow, 64, 0.75, "-march=native"},
        {narrow, 32, 0.5, "-march=native"},
        {narrow, 16, 1, "only fewer operations"},
        {wide, 64, 0.5, "-march=native"},
        {wide, 32, 1, "only fewer operations"},
        {anew, 32, 0.875, "it is not vectorized"},
        {called, 32, 1, "scalar arithmetic, with calls"},
        {stub, 32, 1, "it calls expf for each element"},
        {one_sum, 32, 1, "use several sums"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct code_facts facts = facts_of(cases[i].texts);
        struct buf words = {0}, evidence = {0};
        facts.machine_bytes = cases[i].machine_bytes;
        double part = code_facts_put(&facts, &words, &evidence);
        if (!strstr(words.data, cases[i].wanted) || fabs(part - cases[i].part) > 1e-9)
            fail_msg("case %zu: \"%s\", %.3f", i, words.data, part);
        buf_fini(&words);
        buf_fini(&evidence);
    }
}

/* Calls that are seldom made are not what takes the time; the compiler makes no vectors beside them. */
static void test_seldom_calls(void **state)
{
    (void)state;
    static const char *const texts[] = {"movsd  (%rdx),%xmm0", "mulsd  %xmm1,%xmm0",
                                        "call   0x20 <std::vector<int>::at(int)@plt>", "jne    0x20", NULL};
    static const char *const roots[] = {"vsqrtsd %xmm1,%xmm1,%xmm1", "mulsd  %xmm1,%xmm0", "addsd  %xmm2,%xmm0",
                                        "call   0x20 <sqrt@plt>",    "jne    0x20",        NULL};
    static const struct {
        bool has_loops;
        double called_part;
        const char *wanted, *evidence;
        bool is_of_roots;
    } cases[] = {
        {false, 0.0, "-fno-math-errno", "1 call sqrt, which take 0.0 %", true},
        {false, 0.3, "scalar arithmetic, with calls", "1 call std::vector<int>::at(int)", false},
        {false, 0.01, "which its calls, seldom made, prevent", "which take 1.0 % of its time", false},
        {true, 0.01, "it is not vectorized: compile", "which take 1.0 % of its time", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct code_facts facts = facts_of(cases[i].is_of_roots ? roots : texts);
        for (unsigned k = 0; cases[i].is_of_roots && k < 40;
             k++) /* so that the square root is not what takes the time */
            code_facts_take(&facts, k % 2 ? "mulsd  %xmm1,%xmm0" : "movsd  (%rdx),%xmm0");
        struct buf words = {0}, evidence = {0};
        facts.called_part = cases[i].called_part;
        facts.has_loops = cases[i].has_loops;
        (void)code_facts_put(&facts, &words, &evidence);
        if (!strstr(words.data, cases[i].wanted) || !strstr(evidence.data, cases[i].evidence))
            fail_msg("case %zu: \"%s\", \"%s\"", i, words.data, evidence.data);
        buf_fini(&words);
        buf_fini(&evidence);
    }
}

/* Small pages take what huge ones save by the self-test, of data of any size, and three quarters more. */
static void test_small_pages(void **state)
{
    (void)state;
    static char measured[] = "{\"caches\": {\"walks\": [[16384, 100, 80, 10, 10], [65536, 100, 60, 10, 5]]}}";
    static char none[] = "{\"caches\": {\"walks\": []}}", same[] = "{\"caches\": {\"walks\": [[16384, 9, 9, 3, 4]]}}";
    static const struct {
        char *skid;
        uint64_t mib;
        bool is_chained;
        double part;
    } cases[] = {
        {measured, 16, true, 0.35},      {measured, 8, true, 0.35},   {measured, 32, true, 0.525},
        {measured, 64, true, 0.7},       {measured, 64, false, 0.75}, {measured, 128, true, 0.75},
        {measured, 1 << 20, true, 0.75}, {none, 64, true, 0.75},      {NULL, 64, true, 0.75},
        {same, 64, false, 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model model = {.skid = cases[i].skid};
        double part = first_touch_small_pages(&model, cases[i].mib << 20, cases[i].is_chained);
        if (fabs(part - cases[i].part) > 1e-9)
            fail_msg("case %zu: %.3f", i, part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains),      cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_width),       cmocka_unit_test(test_seldom_calls),
                                       cmocka_unit_test(test_small_pages), cmocka_unit_test(test_few),
                                       cmocka_unit_test(test_evidence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
