/* SPDX-License-Identifier: BSD-3-Clause */
/* The walker by libunwind: what stack a walk takes, that nobody is in libunwind when a thread forks, that no fork waits
 * for ever, and that a sandbox which refuses what libunwind needs is not tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/own/arch.h"
#include "runtime/unwind/unwind.h"
#include "runtime/own/own-call.h"
#include "runtime/unwind/unwind-libunwind.h"

#define STACK_BYTES 65536
#define PAINT 0xa5
#define CPU_S 30 /* who waits for ever does so with all signals blocked */

static struct {
    struct unwind_path path;
    struct unwind_bounds bounds;
    struct unwind_module anywhere;
    size_t stack_bytes;         /* of the last walk */
    pid_t (*fork_inside)(void); /* called in the next walk */
    pid_t forked;
    void (*while_forking)(void); /* called by the next fork, when libunwind's gate is closed */
    char stack[STACK_BYTES] __attribute__((aligned(64)));
} test;

static const struct unwind_module *find(uintptr_t pc)
{
    (void)pc;
    pid_t (*fork_inside)(void) = test.fork_inside;
    test.fork_inside = NULL;
    if (fork_inside)
        test.forked = fork_inside();
    return &test.anywhere;
}

static void late_prepare(void)
{
    void (*act)(void) = test.while_forking;
    test.while_forking = NULL;
    if (act)
        act();
}

/* Before libunwind's constructor: of what is called before a fork, the first that was registered is the last. */
__attribute__((constructor(101))) static void register_first(void)
{
    (void)pthread_atfork(late_prepare, NULL, NULL);
}

static __attribute__((noinline)) void walk_from(const ucontext_t *context)
{
    struct unwind_start start;
    arch_start_of_context_sig(context, &start);
    (void)unwind_walk_sig(&start, &test.bounds, find, 1, &test.path);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const char *here = __builtin_frame_address(0);
    bool is_on_test_stack = here >= test.stack && here < test.stack + sizeof test.stack;
    if (is_on_test_stack) /* what was below belongs to nobody */
        memset(test.stack, PAINT, (size_t)(here - test.stack) - 1024);
    walk_from(context);
    size_t at = 0;
    while (is_on_test_stack && at < sizeof test.stack && (unsigned char)test.stack[at] == PAINT)
        at++;
    test.stack_bytes = is_on_test_stack ? (size_t)(here - (test.stack + at)) : 0;
}

static void handle(int number, int flags)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

static int by_signal(const void *a, const void *b)
{
    (void)a;
    (void)b;
    raise(SIGUSR1);
    return 0;
}

static __attribute__((noinline)) int deep(int n)
{
    int pair[2] = {n, n + 1};
    if (n)
        return deep(n - 1) + pair[0];
    qsort(pair, 2, sizeof *pair, by_signal);
    return pair[0];
}

/* A handler of the program's, in which the sample comes. */
static void on_outer_signal(int number)
{
    (void)number;
    (void)deep(5);
}

static bool is_walked(void)
{
    (void)deep(5);
    return test.path.n_frames > 8;
}

/* Without a signal: in a fork they are blocked. */
static __attribute__((noinline)) bool is_walked_here(void)
{
    ucontext_t context;
    memset(&context, 0, sizeof context);
    test.path.n_frames = 0;
    if (getcontext(&context) == 0)
        walk_from(&context);
    return test.path.n_frames > 2;
}

static int prepare(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    void *low;
    size_t n_bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return -1;
    pthread_attr_getstack(&attributes, &low, &n_bytes);
    pthread_attr_destroy(&attributes);
    test.bounds = (struct unwind_bounds){.low = (uintptr_t)low,
                                         .high = (uintptr_t)low + n_bytes,
                                         .alt_low = (uintptr_t)test.stack,
                                         .alt_high = (uintptr_t)test.stack + sizeof test.stack};
    const struct rlimit limit = {.rlim_cur = CPU_S, .rlim_max = CPU_S};
    if (setrlimit(RLIMIT_CPU, &limit) != 0)
        return -1;
    stack_t stack = {.ss_sp = test.stack, .ss_size = sizeof test.stack};
    return sigaltstack(&stack, NULL);
}

static void test_stack_of_a_walk(void **state)
{
    (void)state;
    size_t most = 0;
#ifdef __SANITIZE_THREAD__
    print_message("SKIP (part): ThreadSanitizer calls the handlers itself, from elsewhere\n");
    skip();
#endif
    handle(SIGUSR1, SA_ONSTACK);
    assert_int_not_equal(signal(SIGUSR2, on_outer_signal), SIG_ERR);
    for (int round = 0; round < 2; round++) { /* in the first, functions may be looked up */
        assert_true(is_walked());
        most = test.stack_bytes;
        raise(SIGUSR2);
        assert_true(test.path.n_frames > 12);
        most = test.stack_bytes > most ? test.stack_bytes : most;
    }
    print_message("a walk takes %zu bytes of stack, %d are reckoned with\n", most, UNWIND_LIBUNWIND_BYTES);
    assert_true(most > 512);
    assert_true(most <= UNWIND_LIBUNWIND_BYTES);
}

static int status_of(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void *fork_once(void *is_good)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    *(bool *)is_good = child > 0 && waitpid(child, NULL, 0) == child;
    return NULL;
}

static struct {
    bool has_other_forked, was_walked;
} meanwhile;

static void let_another_fork(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fork_once, &meanwhile.has_other_forked) == 0)
        pthread_join(thread, NULL);
    meanwhile.was_walked = is_walked_here();
}

/* A fork that ends in another thread does not open the gate under one that is still to come. */
static void test_two_forks(void **state)
{
    (void)state;
    handle(SIGUSR1, 0);
    meanwhile.has_other_forked = false;
    meanwhile.was_walked = true;
    test.while_forking = let_another_fork;
    pid_t child = fork();
    if (child == 0)
        _exit(!is_walked());
    assert_int_equal(status_of(child), 0);
    assert_true(meanwhile.has_other_forked);
    assert_false(meanwhile.was_walked);
    assert_true(is_walked() && is_walked_here());
}

static void fork_again(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(is_walked_here()); /* on top of the first fork: not now */
    meanwhile.was_walked = is_walked_here() || status_of(child) != 0;
}

static void test_fork_in_fork(void **state)
{
    (void)state;
    handle(SIGUSR1, 0);
    test.while_forking = fork_again;
    pid_t child = fork();
    if (child == 0)
        _exit(!is_walked());
    assert_int_equal(status_of(child), 0);
    assert_false(meanwhile.was_walked);
    assert_true(is_walked());
}

/* On top of a walk: neither waits for itself. */
static void test_fork_in_walk(void **state)
{
    (void)state;
    handle(SIGUSR1, 0);
    test.fork_inside = fork;
    bool is_first_good = is_walked(), is_second_good = is_walked();
    bool is_empty = atomic_load(&unwind_libunwind_sig()->n_inside) == 0;
    if (test.forked == 0)
        _exit(!(is_first_good && is_second_good && is_empty));
    assert_int_equal(status_of(test.forked), 0);
    assert_true(is_first_good && is_second_good && is_empty);
}

/* The fork waits a while for another thread in libunwind; the child, where that is lost, does without it. */
static void test_fork_beside_walk(void **state)
{
    (void)state;
    struct unwind_libunwind *lib = unwind_libunwind_sig();
    handle(SIGUSR1, 0);
    atomic_fetch_add(&lib->n_inside, 1);
    pid_t child = fork();
    if (child == 0)
        _exit(is_walked() || test.path.n_frames != 1);
    atomic_fetch_sub(&lib->n_inside, 1);
    assert_int_equal(status_of(child), 0);
    assert_true(is_walked());
}

/* A filter that refuses one call is known, though not installed: what is asked is the walker. */
static int walks_without(unsigned number)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {.len = 4, .filter = code};
    pid_t child = fork();
    if (child == 0) {
        sandbox_enter_sig(&filter);
        _exit(is_walked());
    }
    return status_of(child);
}

static void test_sandbox(void **state)
{
    (void)state;
    handle(SIGUSR1, 0);
    assert_int_equal(walks_without(SYS_rt_sigprocmask), 0);
    assert_int_equal(walks_without(SYS_mmap), 0);
    assert_int_not_equal(walks_without(SYS_reboot), 0);
}

int main(void)
{
    if (!atomic_load(&unwind_libunwind_sig()->is_open)) {
        printf("SKIP: libunwind's library is not installed\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stack_of_a_walk),  cmocka_unit_test(test_two_forks),
                                       cmocka_unit_test(test_fork_in_fork),     cmocka_unit_test(test_fork_in_walk),
                                       cmocka_unit_test(test_fork_beside_walk), cmocka_unit_test(test_sandbox)};
    return cmocka_run_group_tests_name("unwind-libunwind", tests, prepare, NULL);
}
