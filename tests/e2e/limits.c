/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that sets limits of its own and looks at them: the first argument is the name of a way. Every way prints
 * what it saw, in numbers that a profiler must not change, and ends with status 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

#define MIB ((size_t)1 << 20)
#define N_LOOKS 20000
#define N_CHILDREN 60
#define N_CROWD 600
#define N_BELLS 1000

extern char **environ;

/* A line "Name: N kB" of /proc/self/status. */
static long status_kb(const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtol(line + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

static void drop_right_to_lock(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0)
        return;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].effective = data[i].permitted = data[i].inheritable = 0;
    (void)syscall(SYS_capset, &header, data);
}

static void *touch_main(void *argument)
{
    char *block = malloc(20000);
    if (block)
        memset(block, 1, 20000);
    free(block);
    return block ? argument : NULL;
}

/* Allocates after the program has been locked, in blocks and in a thread. */
static void allocate_locked(void)
{
    int n_blocks = 0, n_threads = 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    for (int i = 0; i < 20; i++) {
        char *block = malloc(100000);
        n_blocks += block != NULL;
        if (block)
            memset(block, 1, 100000);
    }
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, &attr, touch_main, &n_blocks) == 0)
            pthread_join(thread, &result);
        n_threads += result != NULL;
    }
    printf("blocks %d of 20, threads %d of 8\n", n_blocks, n_threads);
}

static int way_lock(bool is_raw, bool is_limited)
{
    struct rlimit limit = {24 * MIB, 24 * MIB};
    long resident_kb = status_kb("VmRSS");
    if (is_limited) {
        setrlimit(RLIMIT_MEMLOCK, &limit);
        drop_right_to_lock();
    }
    int status = is_raw ? (int)syscall(SYS_mlockall, MCL_CURRENT | MCL_FUTURE) : mlockall(MCL_CURRENT | MCL_FUTURE);
    printf("mlockall %d\n", status);
    fprintf(stderr, "locked %ld\n", status_kb("VmLck"));
    fprintf(stderr, "grown %ld\n", status_kb("VmRSS") - resident_kb);
    allocate_locked();
    fprintf(stderr, "later %ld\n", status_kb("VmLck"));
    say("burnt", burn(40));
    status = munlockall();
    printf("munlockall %d, locked %ld\n", status, status_kb("VmLck"));
    printf("current %d\n", mlockall(MCL_CURRENT));
    fprintf(stderr, "current %ld\n", status_kb("VmLck"));
    return 0;
}

/* A block of n_bytes under a limit that is set by this process, its child, or another call. */
static int way_memory(int resource, size_t limit_bytes, size_t n_bytes, int how)
{
    struct rlimit limit = {limit_bytes, limit_bytes};
    say("burnt", burn(40));
    if (how == 0)
        setrlimit((__rlimit_resource_t)resource, &limit);
    else if (how == 1)
        prlimit(0, (__rlimit_resource_t)resource, &limit, NULL);
    else if (fork() == 0)
        _exit(prlimit(getppid(), (__rlimit_resource_t)resource, &limit, NULL) != 0);
    else
        wait(NULL);
    char *block = malloc(n_bytes);
    printf("block %s\n", block ? "there" : strerror(errno));
    for (size_t i = 0; block && i < n_bytes; i += 4096)
        block[i] = 1;
    free(block);
    say("burnt", burn(40));
    char *mapping = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("mapping %s\n", mapping == MAP_FAILED ? strerror(errno) : "there");
    return 0;
}

static volatile sig_atomic_t n_urgent;

static void on_urgent(int number)
{
    n_urgent += number == SIGURG;
}

/* The same under a limit that leaves no room for a profiler, and then what programs do. */
static int way_close(int resource, size_t limit_bytes, int how)
{
    static char small[8192]; /* with no room for a sample */
    const stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    pthread_t thread;
    sigset_t mask;
    if (resource == RLIMIT_DATA)
        sigaltstack(&stack, NULL);
    int status = way_memory(resource, limit_bytes, 6 * MIB, how);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("blocked %d\n", sigismember(&mask, SIGURG));
    allocate_locked();
    pid_t child = fork();
    if (child == 0)
        _exit(burn(1) ? 21 : 22);
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    signal(SIGURG, on_urgent);
    raise(SIGURG);
    raise(SIGURG);
    printf("urgent %d\n", (int)n_urgent);
    printf("shell %d\n", system("exit 23") >> 8);
    printf("thread %d\n", pthread_create(&thread, NULL, touch_main, &status) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}

static struct rlimit close_limit;

static void on_limit(int number)
{
    (void)number;
    setrlimit(RLIMIT_AS, &close_limit);
}

/* Whether the profiler still records: not what the program prints. */
static void say_recording(const char *when)
{
    int (*is_active)(void) = (int (*)(void))(intptr_t)dlsym(RTLD_DEFAULT, "hpctoolkit_sampling_is_active");
    fprintf(stderr, "%s: recording %d\n", when, is_active ? is_active() : -1);
}

/* Sets a limit that leaves little room, first in a handler of a signal: what that interrupts goes on afterwards. Then
 * asks for it, limits another process, and sets it where nothing is interrupted. */
static int way_handler(void)
{
    struct sigaction action = {.sa_handler = on_urgent, .sa_flags = SA_ONSTACK};
    struct rlimit seen = {0, 0}, low = {64 * MIB, 64 * MIB};
    sigset_t set;
    int status = -1;
    close_limit.rlim_cur = ((size_t)status_kb("VmSize") << 10) + 24 * MIB;
    close_limit.rlim_max = RLIM_INFINITY;
    signal(SIGUSR1, on_limit);
    sigaction(SIGURG, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    say("burnt", burn(40));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGURG);
    say_recording("handler");
    prlimit(0, RLIMIT_AS, NULL, &seen);
    say_recording("question");
    pid_t child = fork();
    if (child == 0)
        _exit(pause());
    printf("another's %d\n", prlimit(child, RLIMIT_AS, &low, NULL));
    say_recording("another's");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("own %d\n", setrlimit(RLIMIT_AS, &close_limit));
    say_recording("own");
    raise(SIGURG);
    printf("limit %d, urgent %d\n", seen.rlim_cur == close_limit.rlim_cur, (int)n_urgent);
    return 0;
}

#define LATER_BYTES ((size_t)960 << 10)
#define MORE_BYTES ((size_t)1000 << 10)
#define MOST_BYTES (1024 * MIB)
#define STEP_BYTES ((size_t)4096)
#define PATH_BITS 14

/* Allocates and frees a block, by another call path for each number of n_bits bits. */
__attribute__((noinline)) static int block_by_path(unsigned number, int n_bits)
{
    int n_frames = 1;
    static char *volatile block;
    if (n_bits == 0)
        free(block = malloc(20000));
    else if (number & 1)
        n_frames += block_by_path(number / 2, n_bits - 1);
    else
        n_frames -= block_by_path(number / 2, n_bits - 1);
    return n_frames;
}

/* Works for a moment or for long, which makes the profiler record more, and then needs a block. */
static int way_needs(size_t n_bytes, bool is_long)
{
    unsigned n_paths = is_long ? 1u << PATH_BITS : 1, sum = is_long ? burn(40) : 0;
    for (unsigned i = 0; i < n_paths; i++)
        sum += (unsigned)block_by_path(i, PATH_BITS);
    return malloc(n_bytes) ? 0 : 3 + (sum == 0);
}

/* Whether a program that needs a block of n_bytes gets it under the limit. */
static bool fits(int resource, size_t limit_bytes, size_t n_bytes, bool is_long)
{
    char number[32];
    char *arguments[] = {"limits", "needs", number, is_long ? "long" : "short", NULL};
    int status = -1;
    snprintf(number, sizeof number, "%zu", n_bytes);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {limit_bytes, limit_bytes};
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO); /* the loader's words when even the program does not fit */
        setrlimit((__rlimit_resource_t)resource, &limit);
        execv("/proc/self/exe", arguments);
        _exit(4);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The smallest limit with which a short run succeeds, and a little more: a long run needs somewhat less than that. */
static int way_smallest(int resource, size_t n_bytes)
{
    size_t high = MOST_BYTES, low = 0;
    while (high - low > STEP_BYTES) {
        size_t middle = (low + high) / 2 / STEP_BYTES * STEP_BYTES;
        *(fits(resource, middle, n_bytes, false) ? &high : &low) = middle;
    }
    say("burnt", burn(40));
    fprintf(stderr, "smallest %zu\n", high >> 10);
    printf("long run: %d\n", fits(resource, high + MORE_BYTES, n_bytes + LATER_BYTES, true));
    return 0;
}

static atomic_bool is_over;

static void *churn_main(void *argument)
{
    while (!atomic_load(&is_over)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, touch_main, argument) == 0)
            pthread_join(thread, NULL);
    }
    return argument;
}

/* While threads come and go: limits as they are read, as children get them, and as they are set. */
static int way_looks(const char *self)
{
    struct rlimit limit, seen, wanted;
    int n_changed = 0, n_kept = 0, n_undone = 0;
    pthread_t thread;
    getrlimit(RLIMIT_NOFILE, &limit);
    pthread_create(&thread, NULL, churn_main, NULL);
    for (int i = 0; i < N_LOOKS; i++) {
        getrlimit(RLIMIT_NOFILE, &seen);
        n_changed += seen.rlim_cur != limit.rlim_cur || seen.rlim_max != limit.rlim_max;
    }
    for (int i = 0; i < N_CHILDREN; i++) {
        char number[32];
        char *arguments[] = {(char *)(uintptr_t)self, "told", number, NULL};
        pid_t child;
        int status = 0;
        snprintf(number, sizeof number, "%llu", (unsigned long long)limit.rlim_cur);
        if (posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0)
            waitpid(child, &status, 0);
        n_kept += status != 0;
    }
    for (int i = 0; i < N_LOOKS; i++) {
        wanted = (struct rlimit){limit.rlim_cur - 1 - (unsigned)i % 50, limit.rlim_max};
        setrlimit(RLIMIT_NOFILE, &wanted);
        sched_yield();
        getrlimit(RLIMIT_NOFILE, &seen);
        n_undone += seen.rlim_cur != wanted.rlim_cur;
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    printf("changed %d, children %d, undone %d\n", n_changed, n_kept, n_undone);
    return 0;
}

static int way_told(const char *number)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur != strtoull(number, NULL, 10);
}

static pthread_barrier_t crowd;

static void *crowd_main(void *argument)
{
    pthread_barrier_wait(&crowd);
    (void)burn(10);
    pthread_barrier_wait(&crowd);
    pthread_barrier_wait(&crowd);
    return argument;
}

/* Many threads at once with few descriptors: half of them are the program's, and the lowest. */
static int way_crowd(void)
{
    struct rlimit limit = {1024, 1024};
    pthread_attr_t attr;
    pthread_t threads[N_CROWD];
    int n_low = 0, fd;
    setrlimit(RLIMIT_NOFILE, &limit);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    pthread_barrier_init(&crowd, NULL, N_CROWD + 1);
    for (int i = 0; i < N_CROWD; i++)
        if (pthread_create(&threads[i], &attr, crowd_main, NULL) != 0)
            return 1;
    pthread_barrier_wait(&crowd);
    pthread_barrier_wait(&crowd);
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        n_low += fd < 512;
    printf("opened %d below 512\n", n_low);
    pthread_barrier_wait(&crowd);
    for (int i = 0; i < N_CROWD; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* Code that was never run before, so that the profiler has something to ask for. */
static void *cold_main(void *argument)
{
    char text[64];
    double sum = 0;
    regex_t regex;
    for (int i = 0; i < 60000; i++) {
        snprintf(text, sizeof text, "%d.%05d", i, i * 7);
        sum += strtod(text, NULL);
    }
    for (int i = 0; i < 3000; i++) {
        if (regcomp(&regex, "a(b|c)*[d-f]+x?", REG_EXTENDED) == 0) {
            sum += regexec(&regex, "zzabcbcddeefx", 0, NULL, 0);
            regfree(&regex);
        }
    }
    return sum == 1 ? argument : NULL;
}

/* A pipe that is read and written through one descriptor. */
static int open_pipe(void)
{
    char path[64];
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    close(ends[1]);
    int fd = open(path, O_RDWR | O_NONBLOCK);
    dup2(fd, ends[0]);
    close(fd);
    return ends[0];
}

/* Closes all descriptors and takes their numbers for others, of the same kinds as a profiler's may be. */
static int way_bells(bool are_pipes)
{
    static int fds[N_BELLS];
    int n_rung = 0, n_made = 0, n_bytes;
    pthread_t thread;
    say("burnt", burn(60));
    (void)syscall(SYS_close_range, 3, ~0u, 0);
    for (int i = 0; i < N_BELLS; i++) {
        fds[i] = are_pipes ? open_pipe() : eventfd(0, EFD_NONBLOCK);
        n_made += fds[i] >= 0;
    }
    pthread_create(&thread, NULL, cold_main, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < N_BELLS; i++) {
        uint64_t value = 0;
        if (are_pipes)
            n_rung += ioctl(fds[i], FIONREAD, &n_bytes) == 0 && n_bytes > 0;
        else
            n_rung += read(fds[i], &value, sizeof value) > 0;
    }
    printf("descriptors %d, rung %d\n", n_made, n_rung);
    return 0;
}

#define N_THREADS 60

static void *wait_for_lock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* How many threads the limit of processes allows at a time. The first samples make the profiler's helpers work. */
static int way_threads(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[N_THREADS];
    int n = 0, code = 0;
    (void)burn(0.05);
    pthread_mutex_lock(&lock);
    while (n < N_THREADS && (code = pthread_create(&threads[n], NULL, wait_for_lock, &lock)) == 0)
        n++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("%d threads, then %s\n", n, code == EAGAIN ? "EAGAIN" : "another end");
    return 0;
}

/* Runs another program where no memory files can be made, as in some containers. */
static int way_refuse(char **arguments)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        execv(arguments[0], arguments);
    return 77;
}

/* Computes for a moment, and ends with a status of its own. */
static int way_brief(void)
{
    printf("burnt %d\n", burn(30) != 0);
    return 7;
}

/* Computes, then becomes itself by exec where one descriptor is left and the companion cannot be found by name. */
static int way_become(char **arguments)
{
    struct rlimit limit;
    int fd, last = -1;
    int what = burn(300);
    if (unshare(CLONE_NEWNET) != 0)
        return 77;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    limit.rlim_cur = 24;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    close(last);
    execl("/proc/self/exe", arguments[0], what ? "brief" : "", (char *)NULL);
    return 1;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(way, "brief") == 0)
        return way_brief();
    if (strcmp(way, "become") == 0)
        return way_become(argv);
    if (strcmp(way, "refuse") == 0 && argc > 2)
        return way_refuse(argv + 2);
    if (strcmp(way, "lock") == 0)
        return way_lock(false, false);
    if (strcmp(way, "lock-limited") == 0)
        return way_lock(false, true);
    if (strcmp(way, "lock-raw") == 0)
        return way_lock(true, false);
    if (strcmp(way, "space") == 0)
        return way_memory(RLIMIT_AS, 512 * MIB, 100 * MIB, 0);
    if (strcmp(way, "space-small") == 0)
        return way_memory(RLIMIT_AS, 96 * MIB, 24 * MIB, 1);
    if (strcmp(way, "space-outside") == 0)
        return way_memory(RLIMIT_AS, 512 * MIB, 100 * MIB, 2);
    if (strcmp(way, "data") == 0)
        return way_memory(RLIMIT_DATA, 96 * MIB, 24 * MIB, 0);
    if (strcmp(way, "close-space") == 0)
        return way_close(RLIMIT_AS, 24 * MIB, 0);
    if (strcmp(way, "close-space-again") == 0)
        return way_close(RLIMIT_AS, 24 * MIB, 1);
    if (strcmp(way, "close-data") == 0)
        return way_close(RLIMIT_DATA, 24 * MIB, 0);
    if (strcmp(way, "close-handler") == 0)
        return way_handler();
    if (strcmp(way, "needs") == 0)
        return argc > 3 ? way_needs(strtoull(argv[2], NULL, 10), argv[3][0] == 'l') : 2;
    if (strcmp(way, "smallest-space") == 0)
        return way_smallest(RLIMIT_AS, 4 * MIB);
    if (strcmp(way, "smallest-data") == 0)
        return way_smallest(RLIMIT_DATA, 4 * MIB);
    if (strcmp(way, "smallest-large-space") == 0)
        return way_smallest(RLIMIT_AS, 320 * MIB);
    if (strcmp(way, "smallest-large-data") == 0)
        return way_smallest(RLIMIT_DATA, 320 * MIB);
    if (strcmp(way, "looks") == 0)
        return way_looks("/proc/self/exe");
    if (strcmp(way, "told") == 0)
        return way_told(argc > 2 ? argv[2] : "");
    if (strcmp(way, "crowd") == 0)
        return way_crowd();
    if (strcmp(way, "threads") == 0)
        return way_threads();
    if (strcmp(way, "bells") == 0)
        return way_bells(false);
    if (strcmp(way, "pipes") == 0)
        return way_bells(true);
    return 2;
}
