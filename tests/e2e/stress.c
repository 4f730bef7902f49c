/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers and hooks of a profiler must survive, all at once: 64 threads that create threads, load and unload
 * libraries, fork, run programs, allocate, free each other's blocks, send signals, jump out of handlers and walk their
 * stacks, for so many seconds. Everything that is done has a known result. Arguments: seconds, libraries to load. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_SHARED 1024 /* places where threads leave blocks for others */

struct block {
    size_t n_bytes;
    unsigned char fill, data[];
};

struct role {
    const char *name;
    int n_threads;
    void (*once)(unsigned *seed);
    int n_batch;  /* times without a pause: 64 threads shall not wait for the processor most of the time */
    int pause_ms; /* after them */
    atomic_ulong n_done;
};

static struct {
    atomic_bool is_over;
    atomic_ulong n_wrong;
    int n_libraries;
    char **libraries;
    _Atomic(struct block *) shared[N_SHARED];
    pthread_t threads[64];
    int n_threads;
    atomic_ulong n_signals, n_ticks, n_jumps;
} stress;

static _Thread_local sigjmp_buf jump;
static _Thread_local volatile sig_atomic_t may_jump;

static void expect(bool is_right, const char *what)
{
    if (is_right)
        return;
    if (atomic_fetch_add(&stress.n_wrong, 1) < 10)
        fprintf(stderr, "wrong: %s\n", what);
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* --- blocks --- */

static struct block *block_fill(struct block *block, size_t n_bytes, unsigned char fill)
{
    expect(block, "no memory");
    block->n_bytes = n_bytes;
    block->fill = fill;
    block->data[0] = block->data[n_bytes / 2] = block->data[n_bytes - 1] = fill;
    return block;
}

static void block_check(const struct block *block)
{
    expect(block->data[0] == block->fill && block->data[block->n_bytes / 2] == block->fill, "content of a block");
    expect(block->data[block->n_bytes - 1] == block->fill, "end of a block");
}

/* Sizes on both sides of the threshold, now and then one that malloc maps. */
static size_t random_size(unsigned *seed)
{
    unsigned kind = next(seed) % 64;
    return (kind == 0 ? 200000 : kind < 24 ? 4096 : 512) - next(seed) % 500;
}

static void allocate(unsigned *seed)
{
    size_t n_bytes = random_size(seed);
    struct block *block = block_fill(malloc(sizeof *block + n_bytes), n_bytes, (unsigned char)next(seed));
    if (next(seed) % 4 == 0) {
        size_t n_more = random_size(seed);
        unsigned char fill = block->fill;
        block_check(block);
        block = realloc(block, sizeof *block + n_more);
        expect(block && block->fill == fill && block->data[0] == fill, "content after realloc");
        block = block_fill(block, n_more, fill);
    }
    struct block *old = atomic_exchange(&stress.shared[next(seed) % N_SHARED], block);
    if (old) {
        block_check(old);
        free(old);
    }
}

/* --- libraries, threads --- */

static void load_library(unsigned *seed)
{
    unsigned i = next(seed);
    void *library = dlopen(stress.libraries[i % (unsigned)stress.n_libraries], i & 64 ? RTLD_NOW : RTLD_LAZY);
    long (*work)(void) = library ? (long (*)(void))dlsym(library, "library_work") : NULL;
    expect(work && work() == 8386560, "work of a library");
    expect(library && dlclose(library) == 0, "dlclose");
}

static void *short_life(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < 20; i++)
        allocate(&seed);
    if (seed & 1)
        pthread_exit((void *)7);
    return (void *)7;
}

static void create_thread(unsigned *seed)
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)next(seed)) != 0) {
        expect(false, "pthread_create");
    } else if (next(seed) % 4 == 0) {
        pthread_detach(thread);
        pause_ms(1);
    } else {
        expect(pthread_join(thread, &result) == 0 && result == (void *)7, "result of a thread");
    }
}

/* --- processes --- */

static void run_program(unsigned *seed)
{
    char *const words[] = {"sh", "-c", "exit 9", NULL};
    pid_t pid = -1;
    int status = -1;
    (void)seed;
    expect(posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ) == 0, "posix_spawn");
    expect(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9, "status of a program");
}

static void fork_child(unsigned *seed)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 2000; i++)
            allocate(seed);
        _exit(atomic_load(&stress.n_wrong) ? 1 : 33);
    }
    expect(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 33, "status of a child");
}

/* --- signals, stacks --- */

static void on_count(int number)
{
    atomic_fetch_add(number == SIGALRM ? &stress.n_ticks : &stress.n_signals, 1);
}

static void on_jump(int number)
{
    (void)number;
    if (!may_jump)
        return;
    may_jump = 0;
    siglongjmp(jump, 1);
}

static void send_signal(unsigned *seed)
{
    pthread_t to = stress.threads[next(seed) % (unsigned)stress.n_threads];
    expect(pthread_kill(to, next(seed) & 1 ? SIGUSR1 : SIGUSR2) == 0, "pthread_kill");
}

static __attribute__((noinline)) long compute(long n)
{
    volatile long table[512];
    long sum = 0;
    for (int i = 0; i < 512; i++)
        table[i] = i;
    for (long pass = 0; pass < n; pass++)
        for (int i = 0; i < 512; i++)
            sum += table[i] ^ (pass & 1);
    return sum;
}

static void compute_once(unsigned *seed)
{
    (void)seed;
    expect(compute(64) == 64L * 511 * 256, "a sum");
}

/* Computes until a signal makes it jump out of the computation, for a while at most. */
static void jump_out(unsigned *seed)
{
    (void)seed;
    if (sigsetjmp(jump, 1)) {
        atomic_fetch_add(&stress.n_jumps, 1);
        return;
    }
    may_jump = 1;
    for (int i = 0; i < 400 && may_jump; i++)
        expect(compute(16) == 16L * 511 * 256, "a sum");
    may_jump = 0;
}

static __attribute__((noinline)) int walk(unsigned depth, sigjmp_buf *back)
{
    void *frames[64];
    if (depth == 0) {
        int n = backtrace(frames, 64);
        if (back)
            siglongjmp(*back, n);
        return n;
    }
    return walk(depth - 1, back) + 0 * (int)depth;
}

static void walk_stack(unsigned *seed)
{
    sigjmp_buf back;
    int n = sigsetjmp(back, 0);
    if (n == 0)
        n = walk(next(seed) % 20, next(seed) & 1 ? &back : NULL);
    expect(n > 0, "backtrace");
}

/* --- all of them --- */

static struct role roles[] = {
    {.name = "compute", .n_threads = 10, .once = compute_once, .n_batch = 50, .pause_ms = 20},
    {.name = "allocate", .n_threads = 18, .once = allocate, .n_batch = 1000, .pause_ms = 20},
    {.name = "load", .n_threads = 6, .once = load_library, .n_batch = 3, .pause_ms = 10},
    {.name = "create", .n_threads = 8, .once = create_thread, .n_batch = 2, .pause_ms = 10},
    {.name = "run", .n_threads = 1, .once = run_program, .n_batch = 1, .pause_ms = 100},
    {.name = "fork", .n_threads = 2, .once = fork_child, .n_batch = 1, .pause_ms = 100},
    {.name = "jump", .n_threads = 8, .once = jump_out, .n_batch = 1, .pause_ms = 20},
    {.name = "walk", .n_threads = 7, .once = walk_stack, .n_batch = 300, .pause_ms = 20},
    {.name = "signal", .n_threads = 4, .once = send_signal, .n_batch = 1, .pause_ms = 1},
};
#define N_ROLES (int)(sizeof roles / sizeof roles[0])

static void *play(void *argument)
{
    struct role *role = argument;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    while (!stress.is_over) {
        for (int i = 0; i < role->n_batch; i++)
            role->once(&seed);
        atomic_fetch_add(&role->n_done, (unsigned long)role->n_batch);
        pause_ms(role->pause_ms);
    }
    return NULL;
}

static void start_signals(void)
{
    struct sigaction count = {.sa_handler = on_count, .sa_flags = SA_RESTART};
    struct sigaction jump_action = {.sa_handler = on_jump, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec every = {{0, 5000000}, {0, 5000000}};
    timer_t timer;
    sigaction(SIGUSR1, &count, NULL);
    sigaction(SIGALRM, &count, NULL);
    sigaction(SIGUSR2, &jump_action, NULL);
    expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
    timer_settime(timer, 0, &every, NULL);
}

static void wait_seconds(int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

/* Signals come last and go first: those who get them live. */
int main(int argc, char **argv)
{
    void *frames[4];
    expect(argc > 2 && backtrace(frames, 4) > 0, "usage: stress SECONDS LIBRARY...");
    stress.n_libraries = argc - 2;
    stress.libraries = argv + 2;
    start_signals();
    for (int r = 0; r < N_ROLES; r++)
        for (int i = 0; i < roles[r].n_threads; i++)
            pthread_create(&stress.threads[r + 1 < N_ROLES ? stress.n_threads++ : 60 + i], NULL, play, &roles[r]);
    wait_seconds(argc > 1 ? atoi(argv[1]) : 1);
    stress.is_over = true;
    for (int i = 63; i >= 0; i--)
        pthread_join(stress.threads[i], NULL);
    bool all_worked = !atomic_load(&stress.n_wrong) && stress.n_signals && stress.n_ticks && stress.n_jumps;
    for (int r = 0; r < N_ROLES; r++) {
        fprintf(stderr, "%s %lu\n", roles[r].name, atomic_load(&roles[r].n_done));
        all_worked = all_worked && roles[r].n_done;
    }
    fprintf(stderr, "signals %lu, ticks %lu, jumps %lu\n", stress.n_signals, stress.n_ticks, stress.n_jumps);
    printf("all worked: %d\n", all_worked);
    return 21;
}
