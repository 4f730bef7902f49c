/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of threads and processes that meet other work at an instant of their own: what a profiler has to do then may be
 * half-way done already, on the same thread or on another one. The first argument is the name of one; each ends by
 * itself in some milliseconds, with the same status and the same words every time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 60
#define CHILDREN 12
#define JUMPS 300
#define BLOCK_BYTES 3000
#define PAUSES 100 /* of the thread that counts, before the end begins */
#define MAPPED_BYTES (size_t)65536

struct ending_way {
    const char *name;
    int (*run)(void);
};

static const char *own_path;
static sigjmp_buf back;
static volatile sig_atomic_t n_signals, n_bad, in_child, may_jump;
static void *volatile block;

/* The signal comes after some microseconds, other ones in each run. */
static void alarm_soon(unsigned most_us)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct itimerval once = {.it_value = {.tv_usec = 1 + (long)((unsigned)now.tv_nsec / 7 % most_us)}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void on_alarm(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
}

static void say(const char *text)
{
    size_t len = strlen(text);
    if (write(STDOUT_FILENO, text, len) != (ssize_t)len)
        _exit(90);
}

static void *ends_at_once(void *argument)
{
    free(malloc(BLOCK_BYTES));
    return argument;
}

static int way_detached(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, ends_at_once, NULL) != 0)
            return 91;
    }
    return 3;
}

static void create_for_ever(void)
{
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends_at_once, NULL) == 0)
            pthread_join(thread, NULL);
    }
}

static void leave_seven(int number)
{
    (void)number;
    _exit(7);
}

static int way_alarm_leaves(void)
{
    on_alarm(leave_seven, 0);
    alarm_soon(6000);
    create_for_ever();
    return 91;
}

static void *exits_too(void *argument)
{
    exit((int)(intptr_t)argument);
}

/* Whoever is first, the status is the same. */
static int way_exit_twice(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i == 1 ? ends_at_once : exits_too, (void *)(intptr_t)8);
    _exit(8);
}

static void *disables_first(void *argument)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    free(malloc(BLOCK_BYTES));
    return before == PTHREAD_CANCEL_ENABLE ? argument : NULL;
}

static int way_cancel_early(void)
{
    int n_own = 0;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, disables_first, &n_own) != 0)
            return 91;
        pthread_cancel(thread);
        pthread_join(thread, &result);
        n_own += result == &n_own;
    }
    return n_own == 20 ? 4 : 92;
}

/* What is no cancellation point does not become one, for a thread that has been cancelled. */
static void *goes_on_cancelled(void *argument)
{
    pthread_barrier_t *cancelled = argument;
    pthread_t thread;
    int status = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(cancelled);
    pthread_barrier_wait(cancelled);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    free(malloc(BLOCK_BYTES));
    munmap(mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAPPED_BYTES);
    int has_thread = pthread_create(&thread, NULL, ends_at_once, NULL) == 0;
    pid_t child = fork();
    if (child == 0)
        _exit(42);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (has_thread)
        pthread_join(thread, NULL);
    waitpid(child, &status, 0);
    return (void *)(intptr_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 93);
}

static int way_cancel_pending(void)
{
    pthread_barrier_t cancelled;
    pthread_t thread;
    void *result = NULL;
    pthread_barrier_init(&cancelled, NULL, 2);
    pthread_create(&thread, NULL, goes_on_cancelled, &cancelled);
    pthread_barrier_wait(&cancelled);
    pthread_cancel(thread);
    pthread_barrier_wait(&cancelled);
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}

/* Every third child leaves at once, the others go on with what the signal has interrupted. */
static void fork_here(int number)
{
    int status = -1;
    (void)number;
    pid_t child = fork();
    if (child == 0) {
        in_child = 1 + n_signals % 3;
        if (in_child == 1)
            _exit(20);
        return;
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 20 + n_signals % 3)
        n_bad++;
    n_signals++;
}

static int work_in_child(void)
{
    for (int i = 0; i < 200; i++) {
        char *own = malloc(BLOCK_BYTES + (size_t)i);
        memset(own, i, BLOCK_BYTES);
        free(own);
    }
    if (in_child == 2)
        exit(21);
    _exit(22);
}

static int way_fork_in_malloc(void)
{
    on_alarm(fork_here, SA_RESTART);
    for (int n_seen = 0; n_seen < CHILDREN; n_seen++) {
        alarm_soon(300);
        for (unsigned i = 0; n_signals == n_seen; i++) {
            block = malloc(2000 + i % 3000);
            free(block);
            if (in_child)
                return work_in_child();
        }
    }
    return n_bad ? 94 : 5;
}

static int way_leave_in_malloc(void)
{
    on_alarm(leave_seven, 0);
    alarm_soon(2000);
    for (unsigned i = 0;; i++) {
        block = malloc(2000 + i % 3000);
        free(block);
    }
    return 91;
}

static void exit_nine(int number)
{
    (void)number;
    exit(9);
}

static void map_for_ever(void)
{
    for (;;) {
        block = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(block, MAPPED_BYTES);
    }
}

static int way_exit_in_map(void)
{
    on_alarm(exit_nine, 0);
    alarm_soon(2000);
    map_for_ever();
    return 91;
}

static void become_another(int number)
{
    (void)number;
    execl(own_path, own_path, "detached", (char *)NULL);
    _exit(95);
}

static int way_exec_in_malloc(void)
{
    on_alarm(become_another, SA_NODEFER);
    alarm_soon(2000);
    for (unsigned i = 0;; i++) {
        block = malloc(2000 + i % 3000);
        free(block);
    }
    return 91;
}

static void jump_out(int number)
{
    (void)number;
    n_signals++;
    if (may_jump)
        siglongjmp(back, 1);
}

/* System calls alone: natively nothing is left half-way by a jump out of them. Another thread maps at the same time. */
static void *maps_while_asked(void *argument)
{
    atomic_int *is_asked = argument;
    while (atomic_load(is_asked))
        munmap(mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAPPED_BYTES);
    return NULL;
}

static int way_jump_out(void)
{
    atomic_int is_asked = 1;
    pthread_t thread;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* the other thread inherits it */
    pthread_create(&thread, NULL, maps_while_asked, &is_asked);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    on_alarm(jump_out, 0);
    while (n_signals < JUMPS) {
        if (sigsetjmp(back, 1) == 0) {
            may_jump = 1;
            alarm_soon(60);
            map_for_ever();
        }
        may_jump = 0;
        free(malloc(BLOCK_BYTES));
    }
    atomic_store(&is_asked, 0);
    pthread_join(thread, NULL);
    return 6;
}

static void end_thread_here(int number)
{
    (void)number;
    pthread_exit(&back);
}

static void *maps_till_signal(void *argument)
{
    (void)argument;
    map_for_ever();
    return NULL;
}

/* The signal is sent to the thread, which never returns from its handler. */
static int way_pthread_exit_in_map(void)
{
    on_alarm(end_thread_here, 0);
    for (int i = 0; i < 20; i++) {
        struct timespec pause = {.tv_nsec = 20000 + i * 17000};
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, maps_till_signal, NULL) != 0)
            return 91;
        nanosleep(&pause, NULL);
        pthread_kill(thread, SIGALRM);
        pthread_join(thread, &result);
        if (result != &back)
            return 96;
        free(malloc(BLOCK_BYTES));
    }
    return 10;
}

/* A handler maps and unmaps on top of doing so. */
static void map_here(int number)
{
    (void)number;
    n_signals++;
    munmap(mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAPPED_BYTES);
}

static int way_map_in_map(void)
{
    on_alarm(map_here, 0);
    for (int n_seen = 0; n_seen < JUMPS; n_seen++) {
        alarm_soon(60);
        while (n_signals == n_seen) {
            block = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(block, MAPPED_BYTES);
        }
    }
    return 11;
}

static void *leaves_process(void *argument)
{
    (void)argument;
    quick_exit(12);
}

/* The first thread has ended when another one ends the process. */
static int way_main_is_gone(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, leaves_process, NULL);
    pthread_exit(NULL);
}

/* What a thread does while another one ends the process, in a file that others see. */
struct ending_counts {
    atomic_int n_pauses, n_cut; /* sleeps of the thread, and those that ended early */
    int before_end, cut_before; /* both when the end began */
    pid_t self, companion;      /* companion: stopped, so that the end waits for it as long as it ever does; 0 none */
};

static void *pauses_for_ever(void *argument)
{
    struct ending_counts *counts = argument;
    struct timespec pause = {.tv_nsec = 1000000};
    for (;;) {
        if (nanosleep(&pause, NULL) != 0)
            atomic_fetch_add(&counts->n_cut, 1);
        atomic_fetch_add(&counts->n_pauses, 1);
    }
}

static pid_t stop_companion(void)
{
    const char *marker = getenv("ENDINGS_MARKER");
    glob_t found;
    pid_t companion = 0;
    if (marker && glob(marker, GLOB_PERIOD, NULL, &found) == 0 && found.gl_pathc == 1)
        companion = (pid_t)atoi(strrchr(found.gl_pathv[0], '-') + 1);
    if (companion > 0 && kill(companion, SIGSTOP) != 0)
        _exit(97);
    return companion;
}

static struct ending_counts *begin_to_count(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    pthread_t thread;
    int fd = open("counts", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, sizeof(struct ending_counts)) != 0)
        _exit(98);
    struct ending_counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_create(&thread, NULL, pauses_for_ever, counts);
    while (atomic_load(&counts->n_pauses) < PAUSES)
        nanosleep(&pause, NULL);
    counts->companion = stop_companion();
    counts->self = getpid();
    counts->cut_before = atomic_load(&counts->n_cut);
    counts->before_end = atomic_load(&counts->n_pauses);
    return counts;
}

static int way_stand_till_exit(void)
{
    return begin_to_count() ? 13 : 91;
}

static int way_stand_for_good(void)
{
    _exit(begin_to_count() ? 14 : 91);
}

/* The first thread in exit() is in a destructor; a second one finds no handler left and ends the process. Where libc
 * lets one thread after the other into exit(), the first one goes on. */
static atomic_int n_destroying;

static void *exits_while_destroying(void *argument)
{
    struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load(&n_destroying) < 2)
        nanosleep(&pause, NULL);
    exit((int)(intptr_t)argument);
}

__attribute__((destructor)) static void destroy(void)
{
    struct timespec pause = {.tv_sec = 3};
    if (atomic_load(&n_destroying) != 1)
        return;
    atomic_store(&n_destroying, 2);
    nanosleep(&pause, NULL);
}

static int way_exit_in_destructor(void)
{
    pthread_t thread;
    atomic_store(&n_destroying, 1);
    if (pthread_create(&thread, NULL, exits_while_destroying, (void *)(intptr_t)13) != 0)
        return 91;
    exit(13);
}

static const struct ending_way ways[] = {
    {"detached", way_detached},
    {"alarm-leaves", way_alarm_leaves},
    {"exit-twice", way_exit_twice},
    {"cancel-early", way_cancel_early},
    {"cancel-pending", way_cancel_pending},
    {"fork-in-malloc", way_fork_in_malloc},
    {"leave-in-malloc", way_leave_in_malloc},
    {"exit-in-map", way_exit_in_map},
    {"exec-in-malloc", way_exec_in_malloc},
    {"jump-out", way_jump_out},
    {"pthread-exit-in-map", way_pthread_exit_in_map},
    {"map-in-map", way_map_in_map},
    {"main-is-gone", way_main_is_gone},
    {"stand-till-exit", way_stand_till_exit},
    {"stand-for-good", way_stand_for_good},
    {"exit-in-destructor", way_exit_in_destructor},
};

int main(int argc, char **argv)
{
    own_path = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) == 0) {
            say(argv[1]);
            say("\n");
            return ways[i].run();
        }
    }
    return 99;
}
