/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes against the processor: a program is single-stepped, and at every pc the address that the recipe computes from
 * the registers is compared with the address that the instruction before has really used, as worked out by the
 * disassembler's own calculator from the registers before it. Where only one instruction can come before, an exact
 * recipe must be right every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <Zydis/Zydis.h>

#include "fnbounds/modtab-cache.h"
#include "fnbounds/recipe-make.h"
#include "fnbounds/recipe-eval-sig.h"

#define MODULES_MAX 64
#define HISTORY 64
#define STORE_BYTES (256u << 20)

struct module {
    uint64_t start, end, bias;
    const struct modtab_header *table; /* NULL: not a module of code */
    struct recipe_maker *maker;
};

/* What one executed instruction has accessed. */
struct access {
    uint64_t pc, next_pc;
    uint64_t addresses[2];
    unsigned n_addresses;
    bool is_jcc, is_load;
};

struct tally {
    unsigned long n_steps, n_recipes, n_exact, n_exact_right, n_only, n_only_right, n_dependent, n_dependent_right;
};

static struct {
    struct module modules[MODULES_MAX];
    unsigned n_modules;
    struct recipe_store *store;
    struct insn_decoder *insn_decoder;
    struct flow flow; /* of the function last looked at */
    ZydisDecoder decoder;
    char cache[64];
    struct access history[HISTORY];
    struct tally tally;
    char first_wrong[256];
} t;

static uint64_t reg_value(const struct user_regs_struct *r, unsigned i)
{
    const uint64_t values[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
                                 r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
    return values[i];
}

static void add_module(uint64_t start, uint64_t end, const char *path)
{
    struct module *module = &t.modules[t.n_modules++];
    struct error err;
    uint64_t id;
    *module = (struct module){.start = start, .end = end};
    if (modtab_make(path, t.cache, &id, &err) != 0 || modtab_map(t.cache, id, &module->table, &err) != 0)
        return;
    module->bias = start - module->table->base_vaddr;
    if (recipe_maker_open(module->table, path, &module->maker, &err) != 0)
        module->table = NULL;
}

/* The modules of the process as mapped now: one entry from a file's first to its last mapping. */
static void read_modules(pid_t pid)
{
    char name[64], line[1024], path[512], last[512] = "";
    (void)snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    assert_non_null(maps);
    t.n_modules = 0;
    while (fgets(line, sizeof line, maps) && t.n_modules < MODULES_MAX) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %511s", &start, &end, path) != 3 || path[0] != '/')
            continue;
        if (strcmp(path, last) != 0)
            add_module(start, end, path);
        else
            t.modules[t.n_modules - 1].end = end;
        strcpy(last, path);
    }
    (void)fclose(maps);
}

static void close_modules(void)
{
    for (unsigned m = 0; m < t.n_modules; m++) {
        recipe_maker_close(t.modules[m].maker);
        modtab_unmap(t.modules[m].table);
    }
    t.n_modules = 0;
}

static struct module *find_module(uint64_t pc)
{
    for (unsigned m = 0; m < t.n_modules; m++)
        if (pc >= t.modules[m].start && pc < t.modules[m].end)
            return t.modules[m].table ? &t.modules[m] : NULL;
    return NULL;
}

static const struct recipe *recipe_at(uint64_t pc, const struct recipe_block **block)
{
    struct module *module = find_module(pc);
    struct error err;
    int64_t func = module ? modtab_find_func(module->table, pc - module->bias) : -1;
    uint32_t at = module ? (uint32_t)(pc - module->bias - module->table->base_vaddr) : 0;
    if (func < 0 || recipe_maker_place(module->maker, t.store, at, &err) != 0)
        return NULL;
    *block = recipe_find_block(t.store, module->table->id, at);
    return (*block)->recipes;
}

static bool read_child(pid_t pid, uint64_t at, void *bytes, size_t n_bytes)
{
    struct iovec to = {bytes, n_bytes}, from = {(void *)(uintptr_t)at, n_bytes};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)n_bytes;
}

static void fill_context(const struct user_regs_struct *r, ZydisRegisterContext *context)
{
    memset(context, 0, sizeof *context);
    for (unsigned i = 0; i < 16; i++) {
        context->values[ZYDIS_REGISTER_RAX + i] = reg_value(r, i);
        context->values[ZYDIS_REGISTER_EAX + i] = (uint32_t)reg_value(r, i);
    }
    context->values[ZYDIS_REGISTER_RIP] = r->rip;
}

/* The addresses that the instruction at pc is about to use; vector indexes are beyond the calculator. */
static void note_access(pid_t pid, const struct user_regs_struct *r, struct access *access)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisRegisterContext context;
    *access = (struct access){.pc = r->rip};
    if (!read_child(pid, r->rip, bytes, sizeof bytes) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&t.decoder, bytes, sizeof bytes, &insn, operands)))
        return;
    access->next_pc = r->rip + insn.length;
    access->is_jcc = insn.meta.category == ZYDIS_CATEGORY_COND_BR;
    fill_context(r, &context);
    for (unsigned o = 0; o < insn.operand_count && access->n_addresses < 2; o++) {
        const ZydisDecodedOperand *operand = &operands[o];
        ZyanU64 address;
        if (insn.meta.category == ZYDIS_CATEGORY_WIDENOP || insn.meta.category == ZYDIS_CATEGORY_NOP)
            return;
        if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
            !ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(&insn, operand, r->rip, &context, &address)))
            continue;
        if (operand->mem.segment == ZYDIS_REGISTER_FS)
            address += r->fs_base;
        if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && operand->mem.base == ZYDIS_REGISTER_RSP &&
            operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            address -= operand->size / 8;
        access->is_load |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
        access->addresses[access->n_addresses++] = address;
    }
}

static bool evaluate(pid_t pid, const struct recipe_operand *operand, const struct user_regs_struct *r,
                     uint64_t *address)
{
    struct recipe_regs regs = {.rip = r->rip, .fs_base = r->fs_base};
    struct recipe_operand copy = *operand;
    for (unsigned i = 0; i < 16; i++)
        regs.gpr[i] = reg_value(r, i);
    if (copy.base != RECIPE_NO_REG && copy.base & RECIPE_BASE_DEREF) {
        uint64_t at = regs.gpr[copy.base & 15] + (uint64_t)(int64_t)copy.disp;
        if (!read_child(pid, at, &regs.rip, sizeof regs.rip))
            return false;
        copy.base = RECIPE_RIP;
        copy.disp = copy.offset;
    }
    return recipe_address_sig(&copy, &regs, address);
}

static const struct access *ago(unsigned n)
{
    return &t.history[(t.tally.n_steps - n) % HISTORY];
}

static bool has_address(const struct access *access, uint64_t address)
{
    for (unsigned a = 0; a < access->n_addresses; a++)
        if (access->addresses[a] == address)
            return true;
    return false;
}

static bool is_recent_load(uint64_t address)
{
    for (unsigned n = 1; n < HISTORY - 1 && n <= t.tally.n_steps; n++)
        if (ago(n)->is_load && has_address(ago(n), address))
            return true;
    return false;
}

static const uint8_t *no_table(const void *image, uint64_t pc, size_t n_bytes)
{
    (void)image;
    (void)pc;
    (void)n_bytes;
    return NULL;
}

/* True when jumps inside its function lead to pc. */
static bool is_target(pid_t pid, uint64_t pc)
{
    const struct module *module = find_module(pc);
    const struct flow_image image = {no_table, NULL};
    int64_t f = modtab_find_func(module->table, pc - module->bias);
    const struct modtab_func *func = &modtab_funcs(module->table)[f];
    uint32_t at = (uint32_t)(pc - module->bias - module->table->base_vaddr);
    static uint64_t flow_bias;
    if (t.flow.start != func->start || flow_bias != module->bias) {
        uint8_t *bytes = malloc(func->end - func->start);
        assert_true(
            read_child(pid, func->start + module->bias + module->table->base_vaddr, bytes, func->end - func->start));
        assert_true(flow_build(&t.flow, t.insn_decoder, &image, bytes, func->start, func->end));
        free(bytes);
        flow_bias = module->bias;
    }
    uint32_t i = flow_find(&t.flow, at);
    return i == INSN_NONE || flow_is_target(&t.flow, i);
}

/* True when only the instruction before in memory can have run before pc, and has. */
static bool came_straight(pid_t pid, uint64_t pc)
{
    return t.tally.n_steps > 2 && ago(1)->next_pc == pc && !is_target(pid, pc) &&
           (!ago(1)->is_jcc || (ago(2)->next_pc == ago(1)->pc && !is_target(pid, ago(1)->pc)));
}

static void check_memory(pid_t pid, uint64_t pc, uint64_t address)
{
    const struct access *before = ago(1);
    bool is_right = has_address(before, address) || (before->is_jcc && has_address(ago(2), address));
    bool is_only = came_straight(pid, pc) && (before->n_addresses || (before->is_jcc && ago(2)->n_addresses));
    t.tally.n_exact++;
    t.tally.n_exact_right += is_right;
    t.tally.n_only += is_only;
    t.tally.n_only_right += is_only && is_right;
    if (is_only && !is_right && !t.first_wrong[0]) {
        const struct module *module = find_module(pc);
        (void)snprintf(t.first_wrong, sizeof t.first_wrong, "%.150s+%#llx: %#llx, really %#llx",
                       module ? module->table->path : "?", (unsigned long long)(pc - (module ? module->bias : 0)),
                       (unsigned long long)address, (unsigned long long)before->addresses[0]);
    }
}

static void check(pid_t pid, const struct user_regs_struct *r)
{
    const struct recipe_block *block;
    const struct recipe *recipe = recipe_at(r->rip, &block);
    uint64_t address;
    if (!recipe || ago(1)->pc == r->rip)
        return;
    t.tally.n_recipes++;
    for (unsigned o = 0; o < recipe->n_operands; o++) {
        const struct recipe_operand *operand = &recipe->operands[o];
        bool is_vector = operand->scale && operand->index >= RECIPE_VEC && !(operand->index & RECIPE_INDEX_MASKED);
        if (operand->flags & RECIPE_OP_INEXACT || is_vector || !evaluate(pid, operand, r, &address))
            continue;
        if (recipe->class == RECIPE_MEMORY) {
            check_memory(pid, r->rip, address);
        } else {
            t.tally.n_dependent++;
            t.tally.n_dependent_right += is_recent_load(address);
        }
    }
}

/* Waits until the program has had 60 ms of CPU time, at most for half a minute: by then it works, and loads nothing
 * more.
 */
static void let_run(pid_t pid)
{
    const struct timespec pause = {0, 10000000};
    struct timespec used = {0};
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0)
        fail();
    for (int i = 0; i < 3000 && used.tv_sec == 0 && used.tv_nsec < 60000000; i++) {
        (void)nanosleep(&pause, NULL);
        (void)clock_gettime(clock, &used);
    }
}

/* Starts the program under tracing, lets it run for a while, and stops it wherever it is then. */
static pid_t start_program(char *const *argv, int *status)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout) || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(99);
        execv(argv[0], argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, status, 0), pid);
    (void)ptrace(PTRACE_CONT, pid, NULL, NULL);
    let_run(pid);
    (void)kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return pid;
}

static void step_program(char *const *argv, unsigned long n_steps)
{
    int status;
    memset(&t.tally, 0, sizeof t.tally);
    t.first_wrong[0] = 0;
    pid_t pid = start_program(argv, &status);
    if (WIFSTOPPED(status))
        read_modules(pid);
    for (unsigned long n = 0; WIFSTOPPED(status) && n < n_steps; n++) {
        struct user_regs_struct r;
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
        check(pid, &r);
        note_access(pid, &r, &t.history[t.tally.n_steps++ % HISTORY]);
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid)
            break;
    }
    if (WIFSTOPPED(status)) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
    close_modules();
}

static double percent(unsigned long part, unsigned long whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void expect_right(char *const *argv, unsigned long n_steps)
{
    if (access(argv[0], X_OK) != 0) {
        (void)printf("SKIP: no %s\n", argv[0]);
        return;
    }
    step_program(argv, n_steps);
    const struct tally *s = &t.tally;
    (void)printf("%s: %lu steps, %lu recipes; operand of the instruction before: %.2f %% of %lu right, where it alone "
                 "can come before %.3f %% of %lu; of a load before: %.2f %% of %lu\n",
                 argv[0], s->n_steps, s->n_recipes, percent(s->n_exact_right, s->n_exact), s->n_exact,
                 percent(s->n_only_right, s->n_only), s->n_only, percent(s->n_dependent_right, s->n_dependent),
                 s->n_dependent);
    if (t.first_wrong[0])
        (void)printf("first wrong one: %s\n", t.first_wrong);
    assert_true(s->n_only > s->n_steps / 20);
    assert_true(percent(s->n_only_right, s->n_only) >= 99.5);
    assert_true(percent(s->n_exact_right, s->n_exact) >= 90);
    if (s->n_dependent > 500)
        assert_true(percent(s->n_dependent_right, s->n_dependent) >= 90);
}

static int setup(void **state)
{
    (void)state;
    strcpy(t.cache, "/tmp/locus-step-XXXXXX");
    t.store = calloc(1, STORE_BYTES);
    t.insn_decoder = insn_decoder_open();
    ZydisDecoderInit(&t.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!mkdtemp(t.cache) || !t.store || !t.insn_decoder)
        return -1;
    return recipe_store_init(t.store, STORE_BYTES, 1 << 16);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    free(t.store);
    insn_decoder_close(t.insn_decoder);
    flow_fini(&t.flow);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", t.cache);
    return system(command);
}

static char self[4096]; /* this program's file: something to compress, so often that a busy machine stops it in time */

static void test_xz(void **state)
{
    char *const argv[] = {"/usr/bin/xz", "-6", "-k", "-c", self, self, self, self, NULL};
    (void)state;
    expect_right(argv, 20000);
}

static void test_gzip(void **state)
{
    char *const argv[] = {"/usr/bin/gzip", "-9", "-k", "-c", self, self, self, self, self, self, self, self, NULL};
    (void)state;
    expect_right(argv, 20000);
}

static void test_python(void **state)
{
    char *const argv[] = {"/usr/bin/python3", "-c",
                          "d = {}\nfor i in range(10**9): d[str(i % 5000)] = [i] + sorted(d)[:3]", NULL};
    (void)state;
    expect_right(argv, 20000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xz),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_python),
    };
    if (argc > 2 && setup(NULL) == 0) { /* by hand: recipe-step-test N_STEPS PROGRAM [ARGUMENT...] */
        expect_right(argv + 2, strtoul(argv[1], NULL, 0));
        return teardown(NULL);
    }
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return 1;
    return cmocka_run_group_tests(tests, setup, teardown);
}
