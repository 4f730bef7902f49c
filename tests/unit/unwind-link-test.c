/* SPDX-License-Identifier: BSD-3-Clause */
/* The unwinder of machines with a link register against libdw: a timer interrupts workloads anywhere; in the handler
 * our walk is taken and the stack copied, from which libdw then finds the callers. Also through signal frames, and
 * without any table. */
#include <elfutils/libdwfl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/unwind-load.h"
#include "../lib/unwind-modules.h"
#include "../lib/unwind-stops.h"

#define FRAMES_MAX 400
#define COPY_BYTES 262144
#define INTERVAL_US 700

static struct {
    struct unwind_path path;
    struct unwind_bounds bounds;
    struct unwind_start start;
    uint64_t copy[COPY_BYTES / 8]; /* the stack from the interrupted stack pointer on */
    size_t copy_bytes;
    volatile sig_atomic_t has_sample;
    uintptr_t pcs[FRAMES_MAX];
    uint32_t n_pcs;
    uintptr_t outermost; /* return address into the frame where every path ends */
    Dwfl *dwfl;
    bool has_no_tables;
    struct {
        struct modtab_header header;
        struct modtab_row row;
    } trampoline; /* a table for where signal handlers return to, when no module holds it */
    struct unwind_module trampoline_module, bare;
    unsigned n_shown;
} test;

static struct {
    unsigned n, n_same, n_oracle_lost, n_both_lost, n_different, n_incomplete, n_signal_frames;
    uint64_t n_frames;
} tally;

static const struct unwind_module *find(uintptr_t pc)
{
    const struct unwind_module *module = unwind_modules_find(pc);
    if (!module && pc - test.trampoline_module.start < test.trampoline_module.end - test.trampoline_module.start)
        module = &test.trampoline_module;
    if (!test.has_no_tables || !module)
        return module;
    test.bare = *module;
    test.bare.table = NULL;
    return &test.bare;
}

static void on_sample(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (test.has_sample)
        return;
    test.start = unwind_start_of(context);
    uintptr_t sp = (uintptr_t)test.start.gpr[UNWIND_SP];
    bool is_own = sp >= test.bounds.low && sp < test.bounds.high;
    size_t n = (is_own ? test.bounds.high : test.bounds.alt_high) - sp;
    (void)unwind_walk_sig(&test.start, &test.bounds, find, 1 + test.has_no_tables, &test.path);
    test.copy_bytes = n < COPY_BYTES ? n : COPY_BYTES;
    memcpy(test.copy, (void *)sp, test.copy_bytes);
    test.has_sample = 1;
}

/* What libdw asks for: the one thread, its registers, its stack as it was. */
static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread)
{
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = argument;
    return getpid();
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *argument)
{
    (void)dwfl;
    (void)argument;
    uint64_t offset = address - test.start.gpr[UNWIND_SP];
    if (offset + 8 > test.copy_bytes)
        return false;
    memcpy(word, (char *)test.copy + offset, 8);
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
    Dwarf_Word words[32];
    (void)argument;
    for (int i = 0; i < 32; i++)
        words[i] = test.start.gpr[i];
    if (!dwfl_thread_state_registers(thread, 0, 32, words))
        return false;
#ifdef __powerpc64__
    words[0] = test.start.gpr[UNWIND_LR];
    if (!dwfl_thread_state_registers(thread, 65, 1, words))
        return false;
#endif
    dwfl_thread_state_register_pc(thread, test.start.pc);
    return true;
}

static int add_pc(Dwfl_Frame *frame, void *argument)
{
    Dwarf_Addr pc;
    (void)argument;
    if (!dwfl_frame_pc(frame, &pc, NULL) || pc == 0 || test.n_pcs == FRAMES_MAX)
        return DWARF_CB_ABORT;
    test.pcs[test.n_pcs++] = pc;
    return DWARF_CB_OK;
}

static bool open_oracle(void)
{
    static const Dwfl_Callbacks files = {.find_elf = dwfl_linux_proc_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo};
    static const Dwfl_Thread_Callbacks threads = {
        .next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};
    test.dwfl = dwfl_begin(&files);
    return test.dwfl && dwfl_linux_proc_report(test.dwfl, getpid()) == 0 &&
           dwfl_report_end(test.dwfl, NULL, NULL) == 0 && dwfl_attach_state(test.dwfl, NULL, getpid(), &threads, &test);
}

static void show(const char *what)
{
    if (test.has_no_tables || test.n_shown++ >= 4)
        return;
    printf("  %s (%s):\n", what, unwind_stop_name((enum unwind_stop)test.path.stop));
    for (uint32_t i = 0; i < 14 && (i < test.path.n_frames || i < test.n_pcs); i++) {
        const struct unwind_module *module = i < test.path.n_frames ? test.path.frames[i].module : NULL;
        printf("    %2u ours %12lx (%s+%lx) libdw %lx\n", i,
               i < test.path.n_frames ? (unsigned long)test.path.frames[i].pc : 0,
               module && module->table ? module->table->path : "?",
               module ? (unsigned long)(test.path.frames[i].pc - module->bias) : 0,
               i < test.n_pcs ? (unsigned long)test.pcs[i] : 0);
    }
}

/* Whether all that libdw has found is in our path, in this order. */
static bool is_part_of_ours(void)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < test.path.n_frames && i < test.n_pcs; k++)
        i += test.pcs[i] == test.path.frames[k].pc;
    return i == test.n_pcs;
}

/* libdw does not know the trampolines that qemu makes, and behind code without unwind information (the linker's stubs)
 * it goes astray or skips a frame: then ours must lead to the outermost frame nevertheless. Where an exception replaces
 * the saved registers of a frame by those of its handler's, nobody can tell. */
static void compare_sample(void)
{
    uint32_t i = 0, n_ours = test.path.n_frames;
    test.n_pcs = 0;
    (void)dwfl_getthread_frames(test.dwfl, getpid(), add_pc, NULL);
    while (i < test.n_pcs && i < n_ours && test.pcs[i] == test.path.frames[i].pc)
        i++;
    for (uint32_t k = 0; k < n_ours; k++)
        tally.n_signal_frames += !!(test.path.frames[k].flags & UNWIND_FRAME_SIGNAL);
    tally.n_frames += n_ours;
    bool is_whole = test.path.stop == UNWIND_COMPLETE && test.path.frames[n_ours - 1].pc == test.outermost;
    bool is_lost = !test.n_pcs || test.pcs[test.n_pcs - 1] != test.outermost;
    tally.n++;
    if (!is_whole && is_lost) {
        tally.n_both_lost++;
    } else if (!is_whole) {
        tally.n_incomplete++;
        show("not complete");
    } else if (i == n_ours && i >= test.n_pcs) {
        tally.n_same++;
    } else if (is_lost || is_part_of_ours()) {
        tally.n_oracle_lost++;
    } else {
        tally.n_different++;
        show("differs");
    }
}

static void set_timer(long interval_us)
{
    struct itimerval interval = {.it_interval = {0, interval_us}, .it_value = {0, interval_us}};
    (void)setitimer(ITIMER_REAL, &interval, NULL);
}

static void do_nothing(void)
{
}

static void run(unsigned n_wanted)
{
    memset(&tally, 0, sizeof tally);
    set_timer(INTERVAL_US);
    for (unsigned n = 0; n < n_wanted;) {
        unwind_load_c(1, do_nothing);
        unwind_load_cxx(1);
        if (!test.has_sample)
            continue;
        compare_sample();
        test.has_sample = 0;
        n++;
    }
    set_timer(0);
}

static void report(const char *what)
{
    printf("%s: %u contexts, %u identical, %u where libdw was lost, %u where both were, %u different, %u not complete; "
           "%.1f frames, %u through signal frames\n",
           what, tally.n, tally.n_same, tally.n_oracle_lost, tally.n_both_lost, tally.n_different, tally.n_incomplete,
           tally.n ? (double)tally.n_frames / tally.n : 0, tally.n_signal_frames);
}

static bool run_with_tables(void)
{
    run(1500);
    report("by tables");
    return tally.n_different == 0 && tally.n_incomplete == 0 && tally.n_same * 5 >= tally.n * 4 &&
           tally.n_both_lost * 50 <= tally.n && tally.n_signal_frames > 0;
}

/* By frame records or the back chain alone: the caller of a leaf may be missing, and signal frames end the path. */
static bool run_without_tables(void)
{
    test.has_no_tables = true;
    run(300);
    report("without tables");
    return (tally.n_incomplete + tally.n_both_lost) * 5 <= tally.n;
}

/* Where this handler returns to is the trampoline. Unwinders look at the byte before a return address. */
static void on_probe(int number)
{
    (void)number;
    uintptr_t trampoline = (uintptr_t)__builtin_return_address(0);
    if (unwind_modules_find(trampoline - 1))
        return;
    struct modtab_header *table = &test.trampoline.header;
    table->end_vaddr = 64;
    table->n_rows = 1;
    table->rows_offset = (uint64_t)((char *)&test.trampoline.row - (char *)table);
    test.trampoline.row.kind = MODTAB_SIGNAL;
    test.trampoline_module = (struct unwind_module){trampoline - 8, trampoline + 8, trampoline - 8, table, 0};
}

/* Where all paths end, as both see it from here. */
static bool find_outermost(void)
{
    (void)raise(SIGALRM);
    test.n_pcs = 0;
    (void)dwfl_getthread_frames(test.dwfl, getpid(), add_pc, NULL);
    test.has_sample = 0;
    if (test.n_pcs < 3 || test.path.n_frames != test.n_pcs)
        return false;
    test.outermost = test.path.frames[test.path.n_frames - 1].pc;
    return test.path.stop == UNWIND_COMPLETE && test.pcs[test.n_pcs - 1] == test.outermost;
}

static void install(void)
{
    static char alternate[131072];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction sample = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction probe = {.sa_handler = on_probe};
    (void)sigaltstack(&stack, NULL);
    (void)sigaction(SIGUSR2, &probe, NULL);
    (void)raise(SIGUSR2);
    (void)sigaction(SIGALRM, &sample, NULL);
    test.bounds = unwind_stack_bounds();
    test.bounds.alt_low = (uintptr_t)alternate;
    test.bounds.alt_high = (uintptr_t)alternate + sizeof alternate;
}

int main(void)
{
    char dir[] = "/tmp/unwind-link-XXXXXX", command[64];
    struct error err;
    if (!mkdtemp(dir) || unwind_modules_load(dir, &err) != 0) {
        printf("FAIL: %s\n", err.text);
        return 1;
    }
    install();
    if (!open_oracle()) {
        printf("FAIL: libdw cannot look at this process: %s\n", dwfl_errmsg(-1));
        return 1;
    }
    if (!find_outermost()) {
        printf("FAIL: the two disagree already in main\n");
        return 1;
    }
    bool good = run_with_tables();
    good = run_without_tables() && good;
    dwfl_end(test.dwfl);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    (void)system(command);
    return good ? 0 : 1;
}
