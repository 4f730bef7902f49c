/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that waits. "waits FILE": each function waits for something else, and prints how long it did, as its own
 * clocks have it: time less CPU time. "same FILE": what a program can see of calls that wait, one line each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    int pipe[2];
    char file[256];
    pthread_mutex_t lock;
    pthread_cond_t condition;
    pthread_barrier_t ready;
    sem_t semaphore;
    int is_set;
    double helped; /* how long the helper has lived */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};

static void check(int is_right)
{
    if (!is_right)
        abort();
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double away(void)
{
    return seconds(CLOCK_MONOTONIC) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

__attribute__((noinline)) static void rest(int ms)
{
    struct timespec time = {0, ms * 1000000L};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

/* Computes for a while, and calls nothing that waits. */
__attribute__((noinline)) static void compute(double s)
{
    double until = seconds(CLOCK_THREAD_CPUTIME_ID) + s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < until)
        for (volatile int i = 0; i < 100000; i++)
            ;
}

static void *helper(void *unused)
{
    double began = seconds(CLOCK_MONOTONIC);
    rest(300);
    check(write(shared.pipe[1], "x", 1) == 1);
    pthread_mutex_lock(&shared.lock);
    pthread_barrier_wait(&shared.ready);
    rest(300);
    pthread_mutex_unlock(&shared.lock);
    rest(300);
    pthread_mutex_lock(&shared.lock);
    shared.is_set = 1;
    pthread_cond_signal(&shared.condition);
    pthread_mutex_unlock(&shared.lock);
    rest(300);
    sem_post(&shared.semaphore);
    rest(300);
    shared.helped = seconds(CLOCK_MONOTONIC) - began;
    return unused;
}

__attribute__((noinline)) static double in_pipe(void)
{
    char letter;
    double before = away();
    check(read(shared.pipe[0], &letter, 1) == 1);
    return away() - before;
}

__attribute__((noinline)) static double in_mutex(void)
{
    double before = away();
    pthread_mutex_lock(&shared.lock);
    double waited = away() - before;
    pthread_mutex_unlock(&shared.lock);
    return waited;
}

__attribute__((noinline)) static double in_condition(void)
{
    pthread_mutex_lock(&shared.lock);
    double before = away();
    while (!shared.is_set)
        pthread_cond_wait(&shared.condition, &shared.lock);
    double waited = away() - before;
    pthread_mutex_unlock(&shared.lock);
    return waited;
}

__attribute__((noinline)) static double in_semaphore(void)
{
    double before = away();
    while (sem_wait(&shared.semaphore) != 0)
        ;
    return away() - before;
}

__attribute__((noinline)) static double in_join(pthread_t thread)
{
    double before = away();
    pthread_join(thread, NULL);
    return away() - before;
}

__attribute__((noinline)) static double in_sleep(void)
{
    double before = away();
    rest(200);
    return away() - before;
}

__attribute__((noinline)) static double in_poll(void)
{
    struct pollfd wanted = {.fd = shared.pipe[0], .events = POLLIN};
    double before = away();
    check(poll(&wanted, 1, 200) == 0);
    return away() - before;
}

__attribute__((noinline)) static pid_t make_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        rest(200);
        _exit(0);
    }
    return child;
}

__attribute__((noinline)) static double in_child(pid_t child)
{
    double before = away();
    check(waitpid(child, NULL, 0) == child);
    return away() - before;
}

__attribute__((noinline)) static double in_sync(void)
{
    static char bytes[1 << 20];
    int fd = open(shared.file, O_CREAT | O_RDWR | O_TRUNC, 0600);
    double waited = 0;
    for (int i = 0; i < 10; i++) {
        double before = away(); /* a write waits, too, where much is still to be written */
        check(write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
        check(fsync(fd) == 0);
        waited += away() - before;
    }
    close(fd);
    unlink(shared.file);
    return waited;
}

enum { FILE_BYTES = 16 << 20, PAGE_BYTES = 4096 };

/* A file of which nothing is in memory, mapped. */
__attribute__((noinline)) static const volatile char *make_pages(void)
{
    int fd = open(shared.file, O_CREAT | O_RDWR | O_TRUNC, 0600);
    char *bytes = malloc(FILE_BYTES);
    check(fd >= 0 && bytes != NULL);
    memset(bytes, 1, FILE_BYTES);
    check(write(fd, bytes, FILE_BYTES) == FILE_BYTES && fsync(fd) == 0);
    check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    free(bytes);
    const volatile char *mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    check(mapped != MAP_FAILED && madvise((void *)mapped, FILE_BYTES, MADV_RANDOM) == 0);
    close(fd);
    unlink(shared.file);
    return mapped;
}

__attribute__((noinline)) static double in_pages(const volatile char *pages)
{
    double before = away();
    for (long i = 0; i < FILE_BYTES; i += PAGE_BYTES)
        (void)pages[i];
    return away() - before;
}

static void waits(void)
{
    pthread_t thread;
    double began = seconds(CLOCK_MONOTONIC);
    pthread_create(&thread, NULL, helper, NULL);
    printf("in_pipe %.6f\n", in_pipe());
    pthread_barrier_wait(&shared.ready);
    printf("in_mutex %.6f\n", in_mutex());
    printf("in_condition %.6f\n", in_condition());
    printf("in_semaphore %.6f\n", in_semaphore());
    printf("in_join %.6f\n", in_join(thread));
    printf("in_sleep %.6f\n", in_sleep());
    printf("in_poll %.6f\n", in_poll());
    double waited = in_child(make_child());
    printf("in_child %.6f\n", waited);
    printf("in_sync %.6f\n", in_sync());
    const volatile char *pages = make_pages();
    compute(0.5);
    printf("in_pages %.6f\n", in_pages(pages));
    /* The child has lived about as long as it was waited for. Clocks do not tick in the kernel. */
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double in_kernel = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
    printf("all %.6f\n", seconds(CLOCK_MONOTONIC) - began + shared.helped + waited - in_kernel);
}

/* --- what the program can see --- */

static sigjmp_buf place;
static volatile sig_atomic_t n_handled;

static void count(int number)
{
    (void)number;
    n_handled++;
}

/* Waits in a handler, and changes errno. */
static void wait_inside(int number)
{
    int inner[2];
    char letter;
    (void)number;
    check(pipe(inner) == 0 && write(inner[1], "y", 1) == 1 && read(inner[0], &letter, 1) == 1);
    rest(20);
    close(inner[0]);
    close(inner[1]);
    n_handled++;
}

static void leave(int number)
{
    (void)number;
    siglongjmp(place, 7);
}

static void handle(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
}

static void alarm_ms(int ms)
{
    struct itimerval timer = {.it_value = {.tv_usec = ms * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupted(const char *name, void (*handler)(int))
{
    struct pollfd wanted = {.fd = shared.pipe[0], .events = POLLIN};
    struct timespec time = {5, 0}, left = {0, 0};
    char letter;
    handle(handler, 0);
    n_handled = 0;
    alarm_ms(30);
    errno = 0;
    ssize_t got = read(shared.pipe[0], &letter, 1);
    printf("%s read %zd %s, ", name, got, strerror(errno));
    alarm_ms(30);
    int code = poll(&wanted, 1, 5000);
    printf("poll %d %s, ", code, strerror(errno));
    alarm_ms(30);
    code = nanosleep(&time, &left);
    printf("nanosleep %d %s with %d left, ", code, strerror(errno), left.tv_sec >= 3);
    alarm_ms(30);
    code = sem_wait(&shared.semaphore);
    printf("sem_wait %d %s, ", code, strerror(errno));
    alarm_ms(30);
    code = pause();
    printf("pause %d %s, handled %d\n", code, strerror(errno), (int)n_handled);
}

static void *write_later(void *unused)
{
    rest(100);
    check(write(shared.pipe[1], "z", 1) == 1);
    return unused;
}

static void restarted(void)
{
    pthread_t thread;
    char letter = 0;
    handle(count, SA_RESTART);
    n_handled = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, write_later, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm_ms(20);
    errno = 5;
    ssize_t got = read(shared.pipe[0], &letter, 1);
    printf("restarted read %zd %c, errno %d, handled %d\n", got, letter, errno, (int)n_handled);
    pthread_join(thread, NULL);
}

static void jumped(void)
{
    char letter;
    handle(leave, 0);
    int code = sigsetjmp(place, 1);
    if (code == 0) {
        alarm_ms(20);
        (void)!read(shared.pipe[0], &letter, 1);
    }
    printf("jumped with %d\n", code);
    errno = 0;
    ssize_t got = read(-1, &letter, 1);
    printf("read of nothing %zd %s\n", got, strerror(errno));
}

static void note(void *text)
{
    printf("cleaned up: %s\n", (char *)text);
}

static void *read_for_ever(void *unused)
{
    char letter;
    (void)unused;
    pthread_cleanup_push(note, "read");
    (void)!read(shared.pipe[0], &letter, 1);
    pthread_cleanup_pop(0);
    return NULL;
}

static void unlock(void *lock)
{
    printf("cleaned up: lock held %d\n", pthread_mutex_trylock(lock) == EBUSY);
    pthread_mutex_unlock(lock);
}

static void *await_for_ever(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&shared.lock);
    pthread_cleanup_push(unlock, &shared.lock);
    for (;;)
        pthread_cond_wait(&shared.condition, &shared.lock);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(void *(*function)(void *))
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, function, NULL);
    rest(50);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
}

static void checked(void)
{
    pthread_mutex_t lock;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &kind);
    int first = pthread_mutex_lock(&lock), second = pthread_mutex_lock(&lock);
    printf("checked %d %d\n", first, second == EDEADLK);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
    first = pthread_mutex_lock(&lock);
    second = pthread_mutex_lock(&lock);
    printf("recursive %d %d\n", first, second);
    struct flock region = {.l_type = F_WRLCK};
    int fd = open(shared.file, O_CREAT | O_RDWR, 0600), flags = fcntl(fd, F_GETFL);
    printf("fcntl %d %d\n", fcntl(fd, F_SETLKW, &region), (flags & O_ACCMODE) == O_RDWR);
    close(fd);
    unlink(shared.file);
}

/* A stream without a file, which has no descriptor to ask for. */
static void streamed(void)
{
    char from[] = "text", to[sizeof from] = "";
    FILE *stream = fmemopen(from, sizeof from, "r");
    check(stream != NULL);
    errno = 77;
    size_t n = fread(to, 1, sizeof from, stream);
    printf("streamed %zu %s %d\n", n, to, errno);
    fclose(stream);
}

static void same(void)
{
    interrupted("counted", count);
    interrupted("waiting handler", wait_inside);
    restarted();
    jumped();
    cancelled(read_for_ever);
    cancelled(await_for_ever);
    checked();
    streamed();
}

int main(int argc, char **argv)
{
    if (argc != 3 || pipe(shared.pipe) != 0)
        return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(shared.file, sizeof shared.file, "%s", argv[2]);
    pthread_barrier_init(&shared.ready, NULL, 2);
    sem_init(&shared.semaphore, 0, 0);
    if (strcmp(argv[1], "waits") == 0)
        waits();
    else
        same();
    return 0;
}
