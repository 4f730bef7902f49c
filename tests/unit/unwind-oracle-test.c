/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the table unwinder with libunwind on the same interrupted contexts: after each instruction of the workloads
 * (trap flag), then at samples of a task-clock event. Every context is walked twice, with an empty path and with a path
 * that remembers, which must agree. libunwind is opened at run time, apart from the program's own _Unwind functions,
 * and called under a guard: it faults now and then in such places. */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/unwind-load.h"
#include "../lib/unwind-modules.h"
#include "../lib/unwind-stops.h"

#define FRAMES_MAX 400
#define ORACLE_RIP 16 /* UNW_REG_IP */
#define TRAP_FLAG 0x100LL
#define ORACLE_SIGNAL_FRAME 1 /* UNW_INIT_SIGNAL_FRAME */
#define STEPS_FULL 3000       /* compare after each of so many instructions, then after every seventh */

struct tally {
    uint64_t n_contexts, n_same, n_oracle_faults, n_oracle_lost, n_frames, n_reused, n_memory_wrong;
    uint64_t n_stops[UNWIND_STOPS];
};

static struct {
    int (*init)(void *cursor, void *context, int flag);
    int (*step)(void *cursor);
    int (*get)(void *cursor, int reg, uint64_t *value);
    uint64_t cursor[1024];
    sigjmp_buf guard;
    volatile sig_atomic_t guarded;
    struct unwind_path fresh, memory;
    struct unwind_bounds bounds;
    struct tally tally;
    uintptr_t pcs[FRAMES_MAX];
    int n_shown;
    volatile sig_atomic_t want_trace;
    uint64_t n_steps, n_calls;
    uintptr_t outermost; /* return address into the frame where every path of this thread ends */
    int perf_fd;
    const char *program;
    bool is_alone;               /* trace without libunwind */
    uintptr_t known[FRAMES_MAX]; /* [n_known] the outer frames of every path then */
    uint32_t n_known;
} test;

static bool open_oracle(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&test.init = dlsym(library, "_ULx86_64_init_local2");
    *(void **)&test.step = dlsym(library, "_ULx86_64_step");
    *(void **)&test.get = dlsym(library, "_ULx86_64_get_reg");
    return test.init && test.step && test.get;
}

/* Walks with libunwind into pcs; the number of frames, -1 when it faulted. */
static int oracle_walk(ucontext_t *context)
{
    volatile int n = 0;
    uint64_t pc;
    if (sigsetjmp(test.guard, 1)) {
        test.guarded = 0;
        return -1;
    }
    test.guarded = 1;
    if (test.init(test.cursor, context, ORACLE_SIGNAL_FRAME) == 0)
        do {
            if (test.get(test.cursor, ORACLE_RIP, &pc) != 0 || pc == 0)
                break;
            test.pcs[n++] = pc;
        } while (n < FRAMES_MAX && test.step(test.cursor) > 0);
    test.guarded = 0;
    return n;
}

static void on_fault(int number)
{
    if (test.guarded)
        siglongjmp(test.guard, 1);
    (void)signal(number, SIG_DFL);
}

static bool same_paths(const struct unwind_path *a, const struct unwind_path *b)
{
    if (a->n_frames != b->n_frames || a->stop != b->stop)
        return false;
    for (uint32_t i = 0; i < a->n_frames; i++)
        if (a->frames[i].pc != b->frames[i].pc || a->frames[i].cfa != b->frames[i].cfa ||
            a->frames[i].module != b->frames[i].module ||
            (a->frames[i].flags & UNWIND_FRAME_INTERRUPTED) != (b->frames[i].flags & UNWIND_FRAME_INTERRUPTED))
            return false;
    return true;
}

static void show_difference(int n_oracle)
{
    if (test.n_shown++ >= 3)
        return;
    printf("  differs (%s):\n", unwind_stop_name(test.fresh.stop));
    for (uint32_t i = 0; i < 12 && (i < test.fresh.n_frames || i < (uint32_t)n_oracle); i++) {
        const struct unwind_module *module = i < test.fresh.n_frames ? test.fresh.frames[i].module : NULL;
        printf("    %2u ours %12lx (%s+%lx) libunwind %lx\n", i,
               i < test.fresh.n_frames ? (unsigned long)test.fresh.frames[i].pc : 0, module ? module->table->path : "?",
               module ? (unsigned long)(test.fresh.frames[i].pc - module->bias) : 0,
               i < (uint32_t)n_oracle ? (unsigned long)test.pcs[i] : 0);
    }
}

static void compare_context(ucontext_t *context)
{
    struct tally *t = &test.tally;
    struct unwind_start start = unwind_start_of(context);
    test.fresh.n_frames = 0;
    enum unwind_stop stop = unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.fresh);
    (void)unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.memory);
    t->n_contexts++;
    t->n_stops[stop]++;
    t->n_frames += test.memory.n_frames;
    t->n_reused += test.memory.n_reused;
    t->n_memory_wrong += !same_paths(&test.fresh, &test.memory);
    int n = oracle_walk(context);
    if (n < 0) {
        t->n_oracle_faults++;
        return;
    }
    bool same = true;
    uint32_t i = 0;
    for (; same && i < (uint32_t)n && i < test.fresh.n_frames; i++)
        same = test.pcs[i] == test.fresh.frames[i].pc;
    bool ours_is_whole = stop == UNWIND_COMPLETE && test.fresh.frames[test.fresh.n_frames - 1].pc == test.outermost;
    if (test.pcs[n - 1] != test.outermost && (ours_is_whole || (same && stop != UNWIND_COMPLETE))) {
        t->n_oracle_lost++; /* it went astray, where ours came through or stopped and said so */
        return;
    }
    same = same && (uint32_t)n == test.fresh.n_frames;
    t->n_same += same;
    if (!same)
        show_difference(n);
}

/* For assembly, where libunwind has no rule: every path must lead through the function that has called the assembly
 * (the frame behind it is known) to the outermost frame. */
static bool is_whole(const struct unwind_path *path)
{
    uint32_t n = path->n_frames, n_known = test.n_known;
    if (path->stop != UNWIND_COMPLETE || n <= n_known)
        return false;
    for (uint32_t i = 0; i < n_known; i++)
        if (path->frames[n - n_known + i].pc != test.known[i])
            return false;
    return true;
}

static void check_alone(ucontext_t *context)
{
    struct tally *t = &test.tally;
    struct unwind_start start = unwind_start_of(context);
    test.fresh.n_frames = 0;
    enum unwind_stop stop = unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.fresh);
    (void)unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.memory);
    t->n_contexts++;
    t->n_stops[stop]++;
    t->n_frames += test.memory.n_frames;
    t->n_reused += test.memory.n_reused;
    t->n_same += is_whole(&test.fresh);
    t->n_memory_wrong += !same_paths(&test.fresh, &test.memory);
    if (!is_whole(&test.fresh))
        show_difference(0);
}

/* Sets or clears the trap flag as is wanted: the tested code must not do it itself, between pushes that no unwind
 * information describes. */
static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)number;
    (void)info;
    if (test.want_trace && (test.n_steps++ < STEPS_FULL || test.n_steps % 7 == 0))
        (test.is_alone ? check_alone : compare_context)(u);
    if (test.want_trace)
        u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    else
        u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void on_sample(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    compare_context(context);
}

static void trace_on(void)
{
    test.want_trace = 1;
    (void)raise(SIGTRAP);
}

static void trace_off(void)
{
    test.want_trace = 0;
}

static void do_nothing(void)
{
}

/* True when enough of the contexts agree; prints the tally. */
static bool report(const char *what, double share_min)
{
    const struct tally *t = &test.tally;
    uint64_t n = t->n_contexts - t->n_oracle_faults - t->n_oracle_lost;
    double share = n ? (double)t->n_same / (double)n : 0;
    printf("%s: %lu contexts, %.3f %% identical, %.1f frames (%.0f %% taken over), libunwind: %lu faults, %lu lost; "
           "%lu wrong with memory;",
           what, (unsigned long)t->n_contexts, 100 * share,
           t->n_contexts ? (double)t->n_frames / (double)t->n_contexts : 0,
           t->n_frames ? 100 * (double)t->n_reused / (double)t->n_frames : 0, (unsigned long)t->n_oracle_faults,
           (unsigned long)t->n_oracle_lost, (unsigned long)t->n_memory_wrong);
    for (int i = 0; i < UNWIND_STOPS; i++)
        if (t->n_stops[i])
            printf(" %s %lu", unwind_stop_name((enum unwind_stop)i), (unsigned long)t->n_stops[i]);
    printf("\n");
    bool good = n > 100 && share >= share_min && t->n_memory_wrong == 0 && t->n_oracle_lost * 50 <= t->n_contexts;
    memset(&test.tally, 0, sizeof test.tally);
    test.n_shown = 0;
    return good;
}

static bool open_samples(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = 100000,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .wakeup_events = 1};
    struct f_owner_ex owner = {F_OWNER_TID, (int)syscall(SYS_gettid)};
    test.perf_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return test.perf_fd >= 0 && fcntl(test.perf_fd, F_SETOWN_EX, &owner) == 0 &&
           fcntl(test.perf_fd, F_SETSIG, SIGURG) == 0 && fcntl(test.perf_fd, F_SETFL, O_ASYNC) == 0;
}

static void install(void)
{
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct sigaction sample = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    (void)sigaltstack(&stack, NULL);
    (void)sigaction(SIGTRAP, &trap, NULL);
    (void)sigaction(SIGURG, &sample, NULL);
    (void)sigaction(SIGSEGV, &fault, NULL);
    (void)sigaction(SIGBUS, &fault, NULL);
    test.bounds = unwind_stack_bounds();
    test.bounds.alt_low = (uintptr_t)alternate;
    test.bounds.alt_high = (uintptr_t)alternate + sizeof alternate;
}

/* Where all paths of this thread end, as both see it from here. */
static bool find_outermost(void)
{
    ucontext_t context;
    if (getcontext(&context) != 0)
        return false;
    int n = oracle_walk(&context);
    struct unwind_start start = unwind_start_of(&context);
    (void)unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.fresh);
    if (n < 2 || test.fresh.n_frames < 2)
        return false;
    test.outermost = test.fresh.frames[test.fresh.n_frames - 1].pc;
    return test.fresh.stop == UNWIND_COMPLETE && test.pcs[n - 1] == test.outermost;
}

static bool run_traced(const char *what, void (*work)(void), double share_min)
{
    test.n_steps = 0;
    trace_on();
    work();
    trace_off();
    return report(what, share_min);
}

static bool run_sampled(const char *what, void (*work)(void), double share_min)
{
    (void)ioctl(test.perf_fd, PERF_EVENT_IOC_ENABLE, 0);
    while (test.tally.n_contexts < 1500)
        work();
    (void)ioctl(test.perf_fd, PERF_EVENT_IOC_DISABLE, 0);
    return report(what, share_min);
}

static void work_c_traced(void)
{
    unwind_load_c(3, trace_on);
}

static void work_plain_traced(void)
{
    unwind_load_c(1, do_nothing);
}

static void work_c_sampled(void)
{
    unwind_load_c(50, do_nothing);
}

static void work_cxx(void)
{
    unwind_load_cxx(2);
}

static __attribute__((noinline)) void callback(void)
{
    test.n_calls++;
}

/* The frames outside of the caller of this function are those of all paths that begin below it. */
static __attribute__((noinline)) void note_known(void)
{
    ucontext_t context;
    if (getcontext(&context) != 0)
        return;
    struct unwind_start start = unwind_start_of(&context);
    (void)unwind_walk_sig(&start, &test.bounds, unwind_modules_find, 1, &test.fresh);
    test.n_known = test.fresh.n_frames - 2;
    for (uint32_t i = 0; i < test.n_known; i++)
        test.known[i] = test.fresh.frames[i + 2].pc;
}

static __attribute__((noinline)) void work_asm(void)
{
    note_known();
    trace_on();
    asm_pushes(callback);
    asm_slots(callback);
    asm_aligned(callback);
    asm_framed(callback);
    asm_silent(callback);
    trace_off();
}

static bool run_asm(void)
{
    test.is_alone = true;
    test.n_steps = 0;
    work_asm();
    test.is_alone = false;
    return test.n_calls % 7 == 0 && report("assembly, every instruction", 1.0);
}

/* In a thread of its own: another stack, another outermost frame. */
static void *run_thread(void *good)
{
    test.bounds = unwind_stack_bounds();
    *(bool *)good = find_outermost() && run_traced("C in a thread, every instruction", work_plain_traced, 1.0);
    return NULL;
}

static bool run_in_thread(void)
{
    pthread_t thread;
    bool good = false;
    struct unwind_bounds bounds = test.bounds;
    uintptr_t outermost = test.outermost;
    if (pthread_create(&thread, NULL, run_thread, &good) != 0)
        return false;
    (void)pthread_join(thread, NULL);
    test.bounds = bounds;
    test.outermost = outermost;
    return good;
}

/* The same with the table of a stripped copy of this program. */
static bool run_stripped(const char *dir)
{
    char command[256], path[128];
    (void)snprintf(path, sizeof path, "%s/stripped", dir);
    (void)snprintf(command, sizeof command, "strip -o %s /proc/%d/exe", path, (int)getpid());
    if (system(command) != 0) {
        printf("SKIP: no strip here\n");
        return true;
    }
    (void)snprintf(command, sizeof command, "%s/cache-stripped", dir);
    if (!unwind_modules_replace(command, test.program, path))
        return false;
    bool good = run_traced("C, stripped, every instruction", work_c_traced, 1.0);
    return run_asm() && good;
}

static bool run_all_sampled(void)
{
    if (!open_samples()) {
        printf("SKIP: no task-clock event here; single-stepped only\n");
        return true;
    }
    bool good = run_sampled("C, sampled", work_c_sampled, 1.0);
    return run_sampled("C++, sampled", work_cxx, 0.995) && good;
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/unwind-oracle-XXXXXX", command[64];
    struct error err;
    (void)argc;
    test.program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    if (!open_oracle()) {
        printf("SKIP: libunwind.so.8 cannot be opened: %s\n", dlerror());
        return 77;
    }
    if (!mkdtemp(dir) || unwind_modules_load(dir, &err) != 0) {
        printf("FAIL: %s\n", err.text);
        return 1;
    }
    install();
    if (!find_outermost()) {
        printf("FAIL: the two disagree already in main\n");
        return 1;
    }
    bool good = run_traced("C, every instruction", work_c_traced, 1.0);
    good = run_traced("C++, every instruction", work_cxx, 0.995) && good;
    good = run_asm() && good;
    good = run_in_thread() && good;
    good = run_all_sampled() && good;
    good = run_stripped(dir) && good;
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    (void)system(command);
    return good ? 0 : 1;
}
