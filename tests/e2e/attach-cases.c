/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for hpcrun --unsafe-attach: each letter of the first argument is a thread that does one thing where being
 * attached to could be noticed, the second argument is how often. It prints how often something was not as it has to
 * be. c: system calls that EINTR would show; l: dlopen and dlclose; m: malloc, realloc and free; h: signal handlers;
 * v: vfork and posix_spawn; f: floating-point state and errno. In capitals: the first thread does it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static struct {
    int rounds;
    atomic_long wrong[16], handled;
} test = {.rounds = 400};

static void expect(int number, int is_right)
{
    if (!is_right)
        atomic_fetch_add(&test.wrong[number], 1);
}

static void *calls(void *argument)
{
    struct epoll_event event = {.events = EPOLLIN}, got;
    int fd = eventfd(0, 0), set = epoll_create1(0), word = 0;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const struct timespec pause = {.tv_nsec = 300000};
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR2);
    (void)epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    for (int i = 0; i < test.rounds; i++) {
        expect(0, syscall(SYS_epoll_wait, set, &got, 1, 1) == 0);
        expect(1, syscall(SYS_nanosleep, &pause, NULL) == 0);
        expect(2, poll(&wait, 1, 1) == 0);
        expect(3, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause, NULL, 0) == -1 && errno == ETIMEDOUT);
        expect(4, sigtimedwait(&signals, NULL, &pause) == -1 && errno == EAGAIN);
    }
    return argument;
}

static void *loads(void *argument)
{
    for (int i = 0; i < test.rounds; i++) {
        void *math = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
        expect(5, math != NULL);
        if (math)
            (void)dlclose(math);
        if (other)
            (void)dlclose(other);
    }
    return argument;
}

static void *blocks(void *argument)
{
    unsigned char *kept[256] = {0};
    unsigned random = 7;
    for (long i = 0; i < test.rounds * 800L; i++) {
        random = random * 1664525 + 1013904223;
        unsigned k = random >> 24;
        size_t n = 1 + (random >> 8 & 8191);
        expect(6, !kept[k] || kept[k][0] == k);
        if (kept[k] && random & 64) {
            kept[k] = realloc(kept[k], n);
        } else {
            free(kept[k]);
            kept[k] = malloc(n);
        }
        kept[k][0] = (unsigned char)k;
    }
    for (int k = 0; k < 256; k++)
        free(kept[k]);
    return argument;
}

static void handle(int number)
{
    volatile double sum = number;
    for (int i = 0; i < 20000; i++)
        sum += i;
    atomic_fetch_add(&test.handled, 1);
}

static void *handlers(void *argument)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGALRM);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    for (int i = 0; i < test.rounds * 2; i++)
        (void)pthread_kill(pthread_self(), SIGALRM);
    return argument;
}

static void *children(void *argument)
{
    char name[] = "true", *arguments[] = {name, NULL};
    for (int i = 0; i < test.rounds / 3; i++) {
        pid_t child = -1;
        int status = -1;
        if (i % 2) {
            child = vfork();
            if (child == 0) {
                (void)execv("/bin/true", arguments);
                _exit(9);
            }
        } else {
            expect(7, posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        }
        expect(8, waitpid(child, &status, 0) == child && status == 0);
    }
    return argument;
}

static void *figures(void *argument)
{
    double sum = 0;
    long double product = 1;
    for (long i = 1; i < test.rounds * 20000L; i++) {
        errno = 77;
        sum += 1.0 / (double)i;
        product = product * 0.999999L + (long double)i;
        expect(9, errno == 77);
    }
    printf("%.12f %.10Lg\n", sum, product);
    return argument;
}

static void *(*kind_of(int letter))(void *)
{
    switch (tolower(letter)) {
    case 'c':
        return calls;
    case 'l':
        return loads;
    case 'm':
        return blocks;
    case 'h':
        return handlers;
    case 'v':
        return children;
    default:
        return figures;
    }
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = handle};
    pthread_t threads[32];
    size_t n = 0;
    sigset_t signals;
    const char *kinds = argc > 1 ? argv[1] : "clmhf";
    if (argc > 2)
        test.rounds = atoi(argv[2]);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGALRM);
    (void)sigaddset(&signals, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)sigaction(SIGALRM, &action, NULL);
    for (const char *kind = kinds; *kind && n < 32; kind++)
        if (islower((unsigned char)*kind))
            (void)pthread_create(&threads[n++], NULL, kind_of(*kind), NULL);
    for (const char *kind = kinds; *kind; kind++)
        if (isupper((unsigned char)*kind))
            (void)kind_of (*kind)(NULL);
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 10; i++)
        printf("%ld ", atomic_load(&test.wrong[i]));
    puts("");
    return 3;
}
