/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose phases are sampled or not as the user says: control.sh. Each way prints what is the same with and
 * without hpcrun, and computes in functions whose names tell whether samples may fall into them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PHASE_S 0.12
#define PATIENCE_S 60

__attribute__((weak)) void hpctoolkit_sampling_start(void);
__attribute__((weak)) void hpctoolkit_sampling_stop(void);
__attribute__((weak)) int hpctoolkit_sampling_is_active(void);

static volatile unsigned long numbers[512];
static volatile sig_atomic_t n_first, n_second;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void compute(void)
{
    for (int i = 0; i < 100000; i++)
        numbers[i % 512] += (unsigned long)i;
}

/* The thread's CPU time of one phase. */
#define PHASE(name)                                                                                                    \
    static __attribute__((noinline)) void name(void)                                                                   \
    {                                                                                                                  \
        double end = now(CLOCK_THREAD_CPUTIME_ID) + PHASE_S;                                                           \
        while (now(CLOCK_THREAD_CPUTIME_ID) < end)                                                                     \
            compute();                                                                                                 \
    }
PHASE(sampled_1)
PHASE(sampled_2)
PHASE(unseen_1)
PHASE(unseen_2)

/* Computes until sampling is as expected; at once without the profiler. */
static __attribute__((noinline)) void until(int is_active)
{
    double end = now(CLOCK_MONOTONIC) + PATIENCE_S;
    while (hpctoolkit_sampling_is_active && hpctoolkit_sampling_is_active() != is_active &&
           now(CLOCK_MONOTONIC) < end)
        compute();
}

static void start(void)
{
    if (hpctoolkit_sampling_start)
        hpctoolkit_sampling_start();
}

static void stop(void)
{
    if (hpctoolkit_sampling_stop)
        hpctoolkit_sampling_stop();
}

static void *other_thread(void *argument)
{
    void (**phases)(void) = argument;
    phases[0]();
    return NULL;
}

static void with_thread(void (*phase)(void))
{
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, &phase);
    phase();
    pthread_join(thread, NULL);
}

static void api(void)
{
    with_thread(sampled_1);
    stop();
    stop();
    with_thread(unseen_1);
    start();
    with_thread(sampled_2);
    stop();
    if (fork() == 0) {
        unseen_2();
        start();
        sampled_1();
        _exit(0);
    }
    wait(NULL);
}

static void first(int number)
{
    (void)number;
    n_first++;
}

static void second(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_signo == number)
        n_second++;
}

/* The handlers stay the program's, with their flags: one of them interrupts a read, and one is for a single time. */
static void signals(void)
{
    int pipe_fds[2];
    char byte;
    struct sigaction action = {.sa_handler = first}, old;
    sigaction(SIGUSR1, &action, &old);
    printf("at first %s\n", old.sa_handler == SIG_DFL ? "the default" : "something else");
    sigaction(SIGUSR1, NULL, &old);
    printf("then %s\n", old.sa_handler == first ? "ours" : "something else");
    unseen_1();
    raise(SIGUSR1);
    sampled_1();
    action = (struct sigaction){.sa_sigaction = second, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    unseen_2();
    sigaction(SIGUSR2, NULL, &old);
    printf("%d first, %d second, %s\n", n_first, n_second, old.sa_handler == SIG_DFL ? "default again" : "still set");
    if (pipe(pipe_fds) != 0)
        return;
    pid_t parent = getpid();
    if (fork() == 0) {
        for (int i = 0; i < 20; i++, usleep(50000))
            kill(parent, SIGUSR1);
        _exit(0);
    }
    ssize_t n = read(pipe_fds[0], &byte, 1);
    printf("read: %s\n", n < 0 ? strerror(errno) : "not interrupted");
    signal(SIGUSR1, SIG_IGN);
    wait(NULL);
    sampled_2();
}

/* One signal for both, from outside. The script sends it when it reads a line. */
static void toggled(void)
{
    unseen_1();
    printf("on\n");
    until(1);
    sampled_1();
    printf("off\n");
    until(0);
    unseen_2();
}

static void delayed(void)
{
    unseen_1();
    until(1);
    with_thread(sampled_1);
}

static void limited(void)
{
    until(0);
    unseen_1();
    start();
    with_thread(unseen_2);
}

static void endless(void)
{
    for (;;)
        sampled_1();
}

static void brief(void)
{
    sampled_1();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"api", api},         {"signals", signals}, {"toggled", toggled},
                {"delayed", delayed}, {"limited", limited}, {"endless", endless},
                {"brief", brief}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (argc == 2 && strcmp(argv[1], ways[i].name) == 0) {
            ways[i].run();
            printf("%s done\n", ways[i].name);
            return 3;
        }
    }
    return 2;
}
