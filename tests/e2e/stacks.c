/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks on which a signal of the program itself would not fit, or should not be seen: coroutines with 2 KiB and no
 * guard, stacks that end at a page which cannot be touched, alternate signal stacks of the program, none of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "burn.h"

#define N_COROUTINES 64
#define STACK_BYTES 2048
#define ROUNDS 40

static struct {
    unsigned char below[8192]; /* somebody's data */
    unsigned char stack[STACK_BYTES] __attribute__((aligned(16)));
} coroutines[N_COROUTINES];
static ucontext_t home, contexts[N_COROUTINES];
static volatile unsigned spun;

static int current;

static void spin_one(void)
{
    for (;;) {
        for (unsigned i = 0; i < 300000; i++)
            spun = spun * 1664525u + i;
        swapcontext(&contexts[current], &home);
    }
}

static int way_coroutines(void)
{
    unsigned n_intact = 0;
    memset(coroutines, 0xa5, sizeof coroutines);
    for (int i = 0; i < N_COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = coroutines[i].stack;
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&contexts[i], spin_one, 0);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (current = 0; current < N_COROUTINES; current++)
            swapcontext(&home, &contexts[current]);
    for (int i = 0; i < N_COROUTINES; i++) {
        bool is_intact = true;
        for (size_t k = 0; k < sizeof coroutines[i].below; k++)
            is_intact &= coroutines[i].below[k] == 0xa5;
        n_intact += is_intact;
    }
    say("intact", n_intact);
    return 1;
}

static void spin_in_page(void)
{
    for (unsigned i = 0; i < 300000000; i++)
        spun = spun * 1664525u + i;
}

/* A page of stack, of which the coroutine leaves little, above one that cannot be touched. */
static int way_guarded(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, page, PROT_NONE);
    getcontext(&contexts[0]);
    contexts[0].uc_stack.ss_sp = memory + page;
    contexts[0].uc_stack.ss_size = 1024;
    contexts[0].uc_link = &home;
    makecontext(&contexts[0], spin_in_page, 0);
    swapcontext(&home, &contexts[0]);
    say("came back", 1);
    return 2;
}

static void say_stack(const char *what)
{
    stack_t stack;
    memset(&stack, 1, sizeof stack);
    say(what, (unsigned)sigaltstack(NULL, &stack));
    say("  flags", (unsigned)stack.ss_flags);
    say("  bytes", (unsigned)stack.ss_size);
    say("  is there", stack.ss_sp != NULL);
}

static char *alternate;
static size_t alternate_bytes;
static uintptr_t top_of_main;
static volatile bool burns_in_handler;

static bool is_on_alternate(const void *address)
{
    return alternate && (uintptr_t)address - (uintptr_t)alternate < alternate_bytes;
}

static unsigned deep(unsigned n)
{
    volatile char block[1024];
    block[n % sizeof block] = (char)n;
    return n ? deep(n - 1) + (unsigned char)block[n % sizeof block] % 2 : 1;
}

static void on_signal(int number)
{
    char here;
    (void)number;
    say("on the alternate stack", is_on_alternate(&here));
    say("on the thread's own", top_of_main - (uintptr_t)&here < 8 << 20);
    if (!alternate)
        say("deep", deep(600) != 0);
    if (burns_in_handler)
        for (unsigned i = 0; i < 60000000; i++)
            spun = spun * 1664525u + i;
}

static void show_action(void)
{
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    say("SA_ONSTACK", (action.sa_flags & SA_ONSTACK) != 0);
    say("SIGURG in its mask", (unsigned)sigismember(&action.sa_mask, SIGURG));
}

/* What the program sees of alternate stacks, when it has none, has one, and has none again. */
static int way_alternate(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    stack_t stack, none = {.ss_flags = SS_DISABLE}, old;
    char here;
    top_of_main = (uintptr_t)&here + 4096;
    (void)burn(20);
    say_stack("at first");
    sigaction(SIGUSR1, &action, NULL);
    show_action();
    raise(SIGUSR1);
    alternate_bytes = 65536;
    alternate = malloc(alternate_bytes);
    stack = (stack_t){.ss_sp = alternate, .ss_size = alternate_bytes};
    say("set", (unsigned)sigaltstack(&stack, &old));
    say("  old flags", (unsigned)old.ss_flags);
    say_stack("with one");
    show_action();
    raise(SIGUSR1);
    (void)burn(20);
    say("disable", (unsigned)sigaltstack(&none, &old));
    say("  was mine", old.ss_sp == alternate);
    say_stack("without");
    (void)burn(20);
    stack.ss_size = 100;
    say("too small", (unsigned)sigaltstack(&stack, NULL));
    say_stack("still without");
    if (fork() == 0) {
        say_stack("child");
        (void)burn(20);
        _exit(0);
    }
    wait(NULL);
    return 3;
}

static void *read_mask(void *argument)
{
    sigset_t mask;
    (void)argument;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    say("blocked in a thread", (unsigned)sigismember(&mask, SIGURG));
    return NULL;
}

/* Alternate stacks with just enough room for the program: samples come within the handler, too. */
static int way_small(void)
{
    size_t frame = getauxval(51), sizes[] = {(frame ? frame : 4096) + 4000, 8192, 12288};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    (void)burn(40); /* which is sampled; with the stacks that follow hardly anything is */
    burns_in_handler = true;
    for (int i = 0; i < 3; i++) {
        unsigned char *memory = malloc(16384 + sizes[i]);
        memset(memory, 0xa5, 16384);
        alternate = (char *)memory + 16384;
        alternate_bytes = sizes[i];
        stack_t stack = {.ss_sp = alternate, .ss_size = alternate_bytes}, none = {.ss_flags = SS_DISABLE};
        if (sigaltstack(&stack, NULL))
            continue;
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        show_action();
        (void)burn(40);
        raise(SIGUSR1);
        unsigned n_changed = 0;
        for (int k = 0; k < 16384; k++)
            n_changed += memory[k] != 0xa5;
        say("bytes below that were changed", n_changed);
        pthread_t thread; /* which has no alternate stack, and the mask of this one */
        pthread_create(&thread, NULL, read_mask, NULL);
        pthread_join(thread, NULL);
        sigaltstack(&none, NULL);
    }
    return 4;
}

static sigjmp_buf back;

static void leave(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void *end_in_handler(void *argument)
{
    if (argument)
        pthread_exit(NULL);
    raise(SIGUSR2);
    return NULL;
}

static void exit_thread(int number)
{
    (void)number;
    (void)end_in_handler(&back);
}

/* Jumps out of handlers and threads that end in one, with and without an alternate stack. */
static int way_leave(void)
{
    static char memory[65536];
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    volatile unsigned n_jumps = 0;
    for (int with = 0; with < 2; with++) {
        if (with)
            sigaltstack(&stack, NULL);
        action.sa_handler = leave;
        sigaction(SIGSEGV, &action, NULL);
        for (volatile int i = 0; i < 20; i++) {
            if (!sigsetjmp(back, 1))
                *(volatile int *)(uintptr_t)8 = 1;
            n_jumps++;
            (void)burn(2);
        }
        action.sa_handler = exit_thread;
        sigaction(SIGUSR2, &action, NULL);
        for (int i = 0; i < 20; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, end_in_handler, NULL);
            pthread_join(thread, NULL);
        }
    }
    say("jumps", n_jumps);
    (void)burn(40);
    return 5;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {{"coroutines", way_coroutines},
                {"guarded", way_guarded},
                {"alternate", way_alternate},
                {"small", way_small},
                {"leave", way_leave}};
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 99;
}
