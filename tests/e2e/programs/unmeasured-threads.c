/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that libc does not know. With the argument "raw" the program makes 8 of them by the clone instruction of the
 * kernel, each of which adds up an array for a while; the main thread does a little, too. With "libc" it makes 200
 * threads through libc that live for a moment only, so that nearly all that a thread costs is its beginning and its
 * end. Prints the CPU time of the process less that of its main thread, in nanoseconds. x86-64 only. */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RAW_THREADS 8
#define LIBC_THREADS 200
#define STACK_BYTES 65536
#define LONGS (1 << 18)

static volatile long array[LONGS];
static volatile long sum;
static int n_done;

static long add_up(int n_passes)
{
    long result = 0;
    for (int pass = 0; pass < n_passes; pass++)
        for (int i = 0; i < LONGS; i += 8)
            result += array[i];
    return result;
}

/* Runs without thread-local storage of its own and without libc. */
__attribute__((noinline, used, noreturn)) static void raw_body(void)
{
    long result = 0;
    for (int pass = 0; pass < 2500; pass++)
        for (int i = 0; i < LONGS; i += 8)
            result += array[i];
    sum = result;
    __atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
    for (;;)
        __asm__ volatile("syscall" ::"a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
}

static void make_raw(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    struct clone_args arguments = {.flags = flags, .stack = (uintptr_t)stack, .stack_size = STACK_BYTES};
    register void (*body)(void) __asm__("r12") = raw_body;
    long result;
    if (stack == MAP_FAILED)
        exit(3);
    __asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tcall *%%r12\n1:"
                     : "=a"(result)
                     : "0"(SYS_clone3), "D"(&arguments), "S"(sizeof arguments), "r"(body)
                     : "rcx", "r11", "memory");
    if (result < 0)
        exit(77);
}

static void *brief(void *unused)
{
    sum = add_up(1);
    return unused;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int is_raw = argc > 1 && strcmp(argv[1], "raw") == 0;
    for (int i = 0; is_raw && i < RAW_THREADS; i++)
        make_raw();
    for (int i = 0; !is_raw && i < LIBC_THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, brief, NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 3;
    }
    sum = add_up(800);
    while (is_raw && __atomic_load_n(&n_done, __ATOMIC_SEQ_CST) < RAW_THREADS)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    printf("%llu\n", (unsigned long long)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID)));
    return 0;
}
