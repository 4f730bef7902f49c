/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes under real sampling: loops in which one access misses the caches and its neighbours hit. At least nine of ten
 * addresses that the recipes recover must lie in the array that causes the misses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fnbounds/recipe-eval-sig.h"
#include "recipe-lib.h"

#define SAMPLES_MAX 20000
#define SAMPLES_WANTED 300
#define ROUNDS_MAX 5000 /* where no signal comes */
#define BIG_BYTES (64u << 20)
#define PERIOD_NS 250000

typedef uint64_t loop(uint64_t position, uint64_t n_turns, void *first, uint64_t mask, void *second);

static struct {
    struct recipe_regs regs[SAMPLES_MAX];
    volatile unsigned n;
    int fd;
    char *big;
    uint64_t small[8];
} t = {.fd = -1};

static void on_sample(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    if (t.n < SAMPLES_MAX)
        recipe_regs_of_ucontext_sig(context, &t.regs[t.n++]);
}

static bool start_sampling(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = PERIOD_NS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .wakeup_events = 1};
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigaction(SIGURG, &action, NULL);
    t.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (t.fd < 0)
        (void)printf("SKIP: perf is refused here: %s\n", strerror(errno));
    return t.fd >= 0 && fcntl(t.fd, F_SETFL, O_ASYNC) == 0 && fcntl(t.fd, F_SETSIG, SIGURG) == 0 &&
           fcntl(t.fd, F_SETOWN_EX, &owner) == 0;
}

/* A cycle through all lines in random order, linked by the second word of each. */
static void link_big(void)
{
    const size_t n = BIG_BYTES / 64;
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < n; i++)
        *(char **)(t.big + i * 64 + 8) = t.big + i * 64;
    for (size_t i = n - 1; i > 0; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char **a = (char **)(t.big + i * 64 + 8), **b = (char **)(t.big + random % i * 64 + 8);
        char *swapped = *a;
        *a = *b;
        *b = swapped;
    }
}

static int setup(void **state)
{
    (void)state;
    t.big = malloc(BIG_BYTES);
    if (!t.big)
        return -1;
    memset(t.big, 0, BIG_BYTES);
    link_big();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(t.big);
    return 0;
}

struct shares {
    unsigned n_inside, n_recovered, n_big;
};

/* Addresses of the samples inside the loop [start, end), every pc's recipe made once. */
static struct shares judge(const char *start, const char *end)
{
    static struct recipe recipes[256];
    static bool is_made[256];
    struct shares shares = {0};
    memset(is_made, 0, sizeof is_made);
    for (unsigned i = 0; i < t.n; i++) {
        uint64_t at = t.regs[i].rip - (uintptr_t)start, address;
        if (at >= (uint64_t)(end - start))
            continue;
        shares.n_inside++;
        if (!is_made[at])
            recipes[at] = recipe_lib_at(start, end, start + at);
        is_made[at] = true;
        const struct recipe *recipe = &recipes[at];
        if (!recipe->n_operands || !recipe_address_sig(&recipe->operands[0], &t.regs[i], &address))
            continue;
        bool is_big = address >= (uintptr_t)t.big && address < (uintptr_t)t.big + BIG_BYTES;
        shares.n_recovered++;
        shares.n_big += is_big;
    }
    return shares;
}

/* On a crowded machine other programs empty the caches, and then samples wait elsewhere too. */
#define TRIES 4

/* A load is waited for where it retires. A store is waited for by what finds the store buffer full, most often the
 * next store, so that its rule is weaker, and how much so depends on the processor: two thirds, where a wrong rule
 * gives next to nothing. */
enum least { LEAST_OF_LOADS = 90, LEAST_OF_STORES = 67 };

static bool is_big_enough(const struct shares *shares, enum least least)
{
    return shares->n_inside > SAMPLES_WANTED / 2 && shares->n_recovered * 10 >= shares->n_inside * 7 &&
           shares->n_big * 100 >= shares->n_recovered * (unsigned)least;
}

static void expect_big(const char *name, loop *run, const char *start, const char *end, uint64_t position, void *first,
                       uint64_t mask, void *second, enum least least)
{
    struct shares shares = {0};
    if (t.fd < 0 && !start_sampling())
        return;
    for (unsigned i = 0; i < TRIES && !is_big_enough(&shares, least); i++) {
        t.n = 0;
        (void)ioctl(t.fd, PERF_EVENT_IOC_ENABLE, 0);
        for (unsigned round = 0; t.n < SAMPLES_WANTED && round < ROUNDS_MAX; round++)
            position = run(position, 100000, first, mask, second);
        (void)ioctl(t.fd, PERF_EVENT_IOC_DISABLE, 0);
        shares = judge(start, end);
        (void)printf("%s: %u samples in the loop, %u with an address, %u of these in the array that misses\n", name,
                     shares.n_inside, shares.n_recovered, shares.n_big);
    }
    assert_true(is_big_enough(&shares, least));
}

#define LOOP(name)                                                                                                     \
    loop name;                                                                                                         \
    extern const char name##_end[]

LOOP(rs_chase);
LOOP(rs_random);
LOOP(rs_store);

static void test_chase(void **state)
{
    (void)state;
    expect_big("chase", rs_chase, (const char *)rs_chase, rs_chase_end, (uintptr_t)t.big, t.small, 0, NULL,
               LEAST_OF_LOADS);
}

static void test_random_loads(void **state)
{
    (void)state;
    expect_big("random loads", rs_random, (const char *)rs_random, rs_random_end, 1, t.big, (BIG_BYTES - 1) & ~63u,
               t.small, LEAST_OF_LOADS);
}

static void test_random_stores(void **state)
{
    (void)state;
    expect_big("random stores", rs_store, (const char *)rs_store, rs_store_end, 1, t.big, (BIG_BYTES - 1) & ~63u,
               t.small, LEAST_OF_STORES);
}

int main(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* the figures above the verdict on them */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chase),
        cmocka_unit_test(test_random_loads),
        cmocka_unit_test(test_random_stores),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
