/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints everything that a process can observe of itself, from many threads while they allocate, start threads, fork
 * and exec; the same in every run. What cannot be the same under a profiler is left out here, and nothing else:
 *   descriptors from 256 up; the bit of SIGURG among the signals that are caught; mappings of libhpcrun.so, of
 *   memory files named locus-*, of tables named *.lmt, of perf events, and those in the middle of the address space,
 *   where nobody else's are; the sizes of stack and heap mappings; the variables of the environment named in is_ours;
 *   addresses, times and process ids.
 * usage: mirror [exec] */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define N_WORKERS 6
#define N_ROUNDS 30
#define OUR_DESCRIPTORS 256
#define MIDDLE_LOW 0x300000000000u
#define MIDDLE_HIGH 0x480000000000u

extern char **environ;
static const char *own_path;

/* errno where the program did nothing yet that could have set it. */
static int errno_of_constructor = -1;
static bool is_quiet;

__attribute__((constructor)) static void note_errno(void)
{
    errno_of_constructor = errno;
}

__attribute__((destructor)) static void print_last_errno(void)
{
    int problem = errno;
    if (!is_quiet)
        printf("errno in a destructor %d\n", problem);
}

static void print_errno_at_exit(void)
{
    int problem = errno;
    printf("errno in a function of atexit %d\n", problem);
    errno = problem;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Prints the lines of a file that begin with one of the words; all when there are none. */
static void print_lines(const char *label, const char *path, const char *const *words)
{
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        bool is_wanted = !words;
        for (int i = 0; words && words[i]; i++)
            is_wanted |= has_prefix(line, words[i]);
        if (is_wanted && has_prefix(line, "SigCgt:")) {
            uint64_t caught = strtoull(line + 7, NULL, 16) & ~((uint64_t)1 << (SIGURG - 1));
            printf("%s: SigCgt: %016llx\n", label, (unsigned long long)caught);
        } else if (is_wanted) {
            printf("%s: %s", label, line);
        }
    }
    if (file)
        fclose(file);
}

static void print_limits(void)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit one, two;
        getrlimit((__rlimit_resource_t)i, &one);
        prlimit(0, (__rlimit_resource_t)i, NULL, &two);
        printf("limit %d: %llx %llx, %llx %llx\n", i, (unsigned long long)one.rlim_cur,
               (unsigned long long)one.rlim_max, (unsigned long long)two.rlim_cur, (unsigned long long)two.rlim_max);
    }
    print_lines("limits", "/proc/self/limits", NULL);
}

static void print_mask(const char *label, const sigset_t *set)
{
    printf("%s:", label);
    for (int i = 1; i <= SIGRTMAX; i++)
        if (sigismember(set, i) == 1)
            printf(" %d", i);
    printf("\n");
}

static void print_signals(void)
{
    static const char *const words[] = {"SigPnd",      "SigBlk",      "SigIgn",      "SigCgt",     "Shd",
                                        "Threads",     "Umask",       "Seccomp",     "NoNewPrivs", "Cap",
                                        "VmLck",       "Uid",         "Gid",         "Groups",     "Cpus_allowed_list",
                                        "CoreDumping", "THP_enabled", "Speculation", "TracerPid",  "Name",
                                        NULL};
    sigset_t set;
    stack_t stack;
    for (int i = 1; i <= SIGRTMAX; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) != 0) {
            printf("signal %d: %s\n", i, strerror(errno));
            continue;
        }
        printf("signal %d: %s flags %x", i,
               action.sa_handler == SIG_DFL   ? "default"
               : action.sa_handler == SIG_IGN ? "ignored"
                                              : "caught",
               (unsigned)action.sa_flags & ~0x04000000u);
        print_mask("", &action.sa_mask);
    }
    sigprocmask(SIG_SETMASK, NULL, &set);
    print_mask("mask", &set);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    print_mask("thread mask", &set);
    sigpending(&set);
    print_mask("pending", &set);
    sigaltstack(NULL, &stack);
    printf("alternate stack: flags %d size %zu\n", stack.ss_flags, stack.ss_size);
    print_lines("status", "/proc/thread-self/status", words);
}

static void print_descriptors(void)
{
    char path[64], target[256];
    for (int i = 0; i < OUR_DESCRIPTORS; i++) {
        struct stat status;
        int flags = fcntl(i, F_GETFD);
        if (flags < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        fstat(i, &status);
        if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISREG(status.st_mode))
            target[0] = '\0';
        printf("descriptor %d: %s type %o flags %x %x\n", i, target, status.st_mode & S_IFMT, (unsigned)flags,
               (unsigned)fcntl(i, F_GETFL));
    }
    int fd = open("/dev/null", O_RDONLY);
    printf("next descriptor: %d\n", fd);
    close(fd);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_sorted(char **lines, size_t n)
{
    qsort(lines, n, sizeof *lines, compare_lines);
    for (size_t i = 0; i < n; i++) {
        puts(lines[i]);
        free(lines[i]);
    }
}

/* Whether a line of the maps is a profiler's. in_library: the mapping before was of our library, to which memory
 * without a name right behind it belongs. */
static bool is_our_mapping(uint64_t start, const char *name, bool *in_library)
{
    bool is_library = strstr(name, "/libhpcrun.so") != NULL;
    bool is_rest = *in_library && !name[0];
    *in_library = is_library;
    return is_library || is_rest || (start >= MIDDLE_LOW && start < MIDDLE_HIGH) || strstr(name, "/memfd:locus-") ||
           strstr(name, ".lmt") || strstr(name, "[perf_event]");
}

static void print_maps(void)
{
    char line[512], *lines[400];
    size_t n = 0;
    bool in_library = false;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && n < 400 && fgets(line, sizeof line, file)) {
        unsigned long long start, end;
        char protection[8], name[400] = "", text[512];
        if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %399[^\n]", &start, &end, protection, name) < 3 ||
            is_our_mapping(start, name, &in_library))
            continue;
        const char *base = strrchr(name, '/');
        bool is_sized = name[0] && name[0] != '[';
        snprintf(text, sizeof text, "mapping %s %s %llu", protection, base ? base + 1 : name,
                 is_sized ? (end - start) / 1024 : 0);
        if (name[0]) /* the allocator's depend on how threads meet */
            lines[n++] = strdup(text);
    }
    if (file)
        fclose(file);
    print_sorted(lines, n);
}

static bool is_ours(const char *entry)
{
    static const char *const names[] = {
        "LD_PRELOAD=",   "HPCRUN_", "INTEL_LIBITTNOTIFY64=", "INTEL_ITTNOTIFY_GROUPS=", "NVTX_INJECTION64_PATH=",
        "ASAN_OPTIONS=", "_="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_prefix(entry, names[i]))
            return true;
    return false;
}

static void print_environment(void)
{
    char *lines[400], text[4096];
    size_t n = 0;
    for (char **entry = environ; *entry && n < 400; entry++)
        if (!is_ours(*entry)) {
            snprintf(text, sizeof text, "environment %s", *entry);
            lines[n++] = strdup(text);
        }
    print_sorted(lines, n);
    n = 0;
    FILE *file = fopen("/proc/self/environ", "r");
    char *entry = NULL;
    size_t capacity = 0;
    while (file && n < 400 && getdelim(&entry, &capacity, 0, file) > 0)
        if (!is_ours(entry)) {
            snprintf(text, sizeof text, "initial environment %.4000s", entry);
            lines[n++] = strdup(text);
        }
    free(entry);
    if (file)
        fclose(file);
    print_sorted(lines, n);
}

static void print_auxiliary(void)
{
    static const unsigned long types[] = {AT_FLAGS,  AT_PAGESZ, AT_CLKTCK, AT_UID,   AT_EUID,  AT_GID,        AT_EGID,
                                          AT_SECURE, AT_HWCAP,  AT_HWCAP2, AT_PHENT, AT_PHNUM, AT_MINSIGSTKSZ};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        printf("auxiliary %lu: %lx\n", types[i], getauxval(types[i]));
    printf("auxiliary program: %s\n", (const char *)getauxval(AT_EXECFN)); // NOLINT
}

static void print_timers(void)
{
    struct itimerval timer;
    for (int i = 0; i < 3; i++) {
        getitimer((__itimer_which_t)i, &timer);
        printf("timer %d: %ld %ld\n", i, (long)timer.it_interval.tv_sec, (long)timer.it_value.tv_sec);
    }
    if (!getenv("MIRROR_TIMERS_ARE_OURS"))
        print_lines("timers", "/proc/self/timers", NULL);
}

static void print_process(void)
{
    char directory[512], name[32] = "";
    cpu_set_t cpus;
    struct sched_param parameters;
    int value = 0;
    printf("directory: %s\n", getcwd(directory, sizeof directory));
    printf("priority: %d %d, scheduler %d", getpriority(PRIO_PROCESS, 0), getpriority(PRIO_PGRP, 0),
           sched_getscheduler(0));
    sched_getparam(0, &parameters);
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf(" %d, CPUs %d, io %ld\n", parameters.sched_priority, CPU_COUNT(&cpus), syscall(SYS_ioprio_get, 1, 0));
    prctl(PR_GET_NAME, name);
    printf("prctl: name %s, dumpable %d, no new privileges %d", name, prctl(PR_GET_DUMPABLE),
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    prctl(PR_GET_CHILD_SUBREAPER, &value);
    printf(", subreaper %d", value);
    prctl(PR_GET_PDEATHSIG, &value);
    printf(", death signal %d, slack %d, keep %d, bits %d, huge pages %d, kill %d\n", value, prctl(PR_GET_TIMERSLACK),
           prctl(PR_GET_KEEPCAPS), prctl(PR_GET_SECUREBITS), prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0),
           prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
    printf("personality: %x, session leader %d, group leader %d, parent's session %d, group %d\n",
           (unsigned)personality(0xffffffff), getsid(0) == getpid(), getpgrp() == getpid(),
           getsid(getppid()) == getsid(0), getpgid(getppid()) == getpgrp());
    printf("ids: %d %d %d %d %d %d, groups %d\n", (int)getuid(), (int)geteuid(), (int)getgid(), (int)getegid(),
           setfsuid((uid_t)-1), setfsgid((gid_t)-1), getgroups(0, NULL));
}

static void print_tasks(void)
{
    int n_tasks = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300];
        if (entry->d_name[0] == '.')
            continue;
        n_tasks++;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        print_lines("task", path, NULL);
        snprintf(path, sizeof path, "/proc/self/task/%s/children", entry->d_name);
        print_lines("children", path, NULL);
    }
    if (tasks)
        closedir(tasks);
    errno = 0;
    pid_t child = waitpid(-1, NULL, WNOHANG);
    printf("tasks: %d, child %d %s\n", n_tasks, child < 0 ? -1 : child > 0, strerror(errno));
}

static void print_all(const char *title)
{
    printf("== %s\n", title);
    print_limits();
    print_signals();
    print_descriptors();
    print_maps();
    print_environment();
    print_auxiliary();
    print_timers();
    print_process();
    print_tasks();
    fflush(stdout);
}

/* errno and the state of the floating-point unit around a call: neither is ours to change. */
static void *nothing_main(void *argument)
{
    return argument;
}

static int nothing_c11(void *argument)
{
    return argument != NULL;
}

static void on_signal(int number)
{
    (void)number;
}

static unsigned control_word(void)
{
#ifdef __SSE__
    return __builtin_ia32_stmxcsr();
#else
    return 0;
#endif
}

static void before_call(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    fesetround(FE_UPWARD);
    feraiseexcept(FE_UNDERFLOW);
    errno = 77;
}

static void after_call(const char *name, long result)
{
    int problem = errno, rounding = fegetround(), flags = fetestexcept(FE_ALL_EXCEPT);
    unsigned control = control_word();
    fesetround(FE_TONEAREST);
    printf("call %s: %ld errno %d rounding %x flags %x control %x\n", name, result, problem, (unsigned)rounding,
           (unsigned)flags, control);
}

#define CALL(name, expression)                                                                                         \
    do {                                                                                                               \
        before_call();                                                                                                 \
        long result_ = (long)(expression);                                                                             \
        after_call(name, result_);                                                                                     \
    } while (0)

static void print_memory_calls(void)
{
    void *volatile p, *q = NULL;
    static const size_t sizes[] = {64, 5000, 300000};
    for (int i = 0; i < 3; i++) {
        CALL("malloc", (p = malloc(sizes[i])) != NULL);
        CALL("realloc", (p = realloc(p, sizes[i] * 2)) != NULL);
        CALL("usable", malloc_usable_size(p) >= sizes[i]);
        CALL("free", (free(p), 0));
        CALL("calloc", (p = calloc(2, sizes[i])) != NULL);
        CALL("reallocarray", (p = reallocarray(p, 3, sizes[i])) != NULL);
        CALL("free", (free(p), 0));
        CALL("posix_memalign", posix_memalign(&q, 64, sizes[i]));
        free(q);
        CALL("aligned_alloc", (p = aligned_alloc(64, sizes[i] / 64 * 64)) != NULL);
        free(p);
        CALL("memalign", (p = memalign(128, sizes[i])) != NULL);
        free(p);
        CALL("valloc", (p = valloc(sizes[i])) != NULL);
        free(p);
    }
    CALL("malloc too much", (p = malloc(PTRDIFF_MAX)) != NULL);
    CALL("mmap", (p = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
    CALL("mremap", (p = mremap(p, 65536, 131072, MREMAP_MAYMOVE)) != MAP_FAILED);
    CALL("munmap", munmap(p, 131072));
    CALL("munmap nothing", munmap((void *)1, 1));
    CALL("sbrk", sbrk(0) != (void *)-1);
    int id = shmget(IPC_PRIVATE, 65536, 0600 | IPC_CREAT);
    CALL("shmat", (p = shmat(id, NULL, 0)) != (void *)-1);
    CALL("shmdt", shmdt(p));
    shmctl(id, IPC_RMID, NULL);
    CALL("mlockall wrong", mlockall(64));
    CALL("munlockall", munlockall());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void print_older_signal_calls(void)
{
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, small = {.ss_sp = memory, .ss_size = 1}, old;
    struct timespec none = {0};
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    CALL("sigaltstack", sigaltstack(&stack, &old));
    CALL("sigaltstack too small", sigaltstack(&small, NULL));
    CALL("sigaltstack back", sigaltstack(&old, NULL));
    CALL("sighold", sighold(SIGUSR1));
    CALL("sighold wrong", sighold(-1));
    CALL("sigrelse", sigrelse(SIGUSR1));
    CALL("sigset", sigset(SIGUSR1, on_signal) == SIG_DFL);
    CALL("sigset SIGURG", sigset(SIGURG, on_signal) == SIG_DFL);
    CALL("siginterrupt SIGURG", siginterrupt(SIGURG, 1));
    CALL("sigignore", sigignore(SIGUSR1));
    CALL("sigtimedwait", sigtimedwait(&set, &info, &none));
    signal(SIGUSR1, SIG_DFL);
    signal(SIGURG, SIG_DFL);
}
#pragma GCC diagnostic pop

/* What the calls say of the action that was in force. */
static void print_action(const char *name, int number)
{
    struct sigaction old;
    CALL(name, sigaction(number, NULL, &old));
    printf("%s: %s flags %x", name,
           old.sa_handler == SIG_DFL     ? "default"
           : old.sa_handler == SIG_IGN   ? "ignored"
           : old.sa_handler == on_signal ? "the program's"
                                         : "another",
           (unsigned)old.sa_flags & ~0x04000000u);
    print_mask("", &old.sa_mask);
}

/* The profiler's signal, before and after the program has an action of its own for it. */
static void print_own_signal_calls(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER}, old;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    print_action("SIGURG at first", SIGURG);
    CALL("signal SIGURG default", signal(SIGURG, SIG_DFL) == SIG_DFL);
    print_action("SIGURG after default", SIGURG);
    CALL("sigaction SIGURG own", sigaction(SIGURG, &action, &old));
    CALL("sigaction SIGURG was default", old.sa_handler == SIG_DFL);
    print_action("SIGURG of the program", SIGURG);
    CALL("signal SIGURG default again", signal(SIGURG, SIG_DFL) == on_signal);
    print_action("SIGURG after default again", SIGURG);
    CALL("signal SIGURG ignored", signal(SIGURG, SIG_IGN) == SIG_DFL);
    print_action("SIGURG ignored", SIGURG);
    CALL("signal SIGURG own", signal(SIGURG, on_signal) == SIG_IGN);
    print_action("SIGURG of the program again", SIGURG);
    CALL("signal SIGURG wrong", signal(SIGURG, SIG_ERR) == on_signal);
    CALL("signal SIGURG last", signal(SIGURG, SIG_DFL) != SIG_ERR);
}

static void print_signal_calls(void)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    struct timespec none = {0};
    struct pollfd nobody = {.fd = -1};
    struct epoll_event event;
    sigset_t set, before;
    print_own_signal_calls();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGURG);
    CALL("sigaction", sigaction(SIGUSR1, &action, &old));
    CALL("sigaction wrong", sigaction(99, &action, NULL));
    CALL("signal", signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    CALL("sigaction SIGURG", sigaction(SIGURG, &action, &old));
    CALL("sigaction read", (sigaction(SIGURG, NULL, &old), old.sa_handler == on_signal));
    old.sa_handler = SIG_DFL;
    CALL("sigaction back", sigaction(SIGURG, &old, NULL));
    CALL("sigprocmask", sigprocmask(SIG_BLOCK, &set, &before));
    CALL("pthread_sigmask", pthread_sigmask(SIG_SETMASK, NULL, &set));
    print_mask("blocked", &set);
    raise(SIGUSR1);
    CALL("sigsuspend", sigsuspend(&before));
    CALL("sigprocmask", sigprocmask(SIG_SETMASK, &before, NULL));
    CALL("ppoll", ppoll(&nobody, 1, &none, &before));
    CALL("pselect", pselect(0, NULL, NULL, NULL, &none, &before));
    int fd = epoll_create1(EPOLL_CLOEXEC);
    CALL("epoll_pwait", epoll_pwait(fd, &event, 1, 0, &before));
    close(fd);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    print_older_signal_calls();
}

static int spawn_self(const char *argument)
{
    char *arguments[] = {(char *)(uintptr_t)own_path, (char *)(uintptr_t)argument, NULL};
    pid_t child;
    int status = -1;
    int problem = posix_spawn(&child, own_path, NULL, NULL, arguments, environ);
    if (problem == 0)
        waitpid(child, &status, 0);
    return status;
}

static int fork_and_wait(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(42);
    waitpid(child, &status, 0);
    return status;
}

static void print_process_calls(void)
{
    pthread_t thread;
    thrd_t c11;
    char *arguments[] = {(char *)(uintptr_t) "none", NULL};
    CALL("pthread_create", pthread_create(&thread, NULL, nothing_main, NULL));
    CALL("pthread_join", pthread_join(thread, NULL));
    CALL("thrd_create", thrd_create(&c11, nothing_c11, NULL));
    CALL("thrd_join", thrd_join(c11, NULL));
    CALL("dlopen none", dlopen("/none/there.so", RTLD_NOW) != NULL);
    CALL("dlopen self", dlopen(NULL, RTLD_NOW) != NULL);
    CALL("fork", fork_and_wait());
    CALL("execve none", execve("/none/there", arguments, environ));
    CALL("execvp none", execvp("none-there", arguments));
    CALL("posix_spawn", spawn_self("quiet"));
    CALL("system", system("exit 3"));
    CALL("popen", pclose(popen("exit 3", "r")));
    CALL("chroot none", chroot("/none/there"));
    CALL("quick fork", (fork() ? wait(NULL) > 0 : (_exit(0), 0)));
    CALL("dlclose", dlclose(dlopen(NULL, RTLD_NOW)));
    CALL("prctl", prctl(PR_SET_TIMERSLACK, 50000));
    CALL("prctl wrong", prctl(-1, 0, 0, 0, 0));
}

/* Called when a thread ends, with the errno that it ended with. */
static void print_errno_of_thread(void *name)
{
    int problem = errno;
    printf("errno in %s %d\n", (const char *)name, problem);
    errno = problem;
}

extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library);
extern void *__dso_handle;
static pthread_key_t key;

static void *errno_main(void *argument)
{
    static char key_name[] = "a destructor of a key", local_name[] = "a destructor of a thread_local object";
    int problem = errno;
    printf("errno in a new thread %d\n", problem);
    pthread_setspecific(key, key_name);
    __cxa_thread_atexit_impl(print_errno_of_thread, local_name, &__dso_handle);
    errno = 79;
    if (argument)
        pthread_exit(NULL);
    return NULL;
}

static void print_errno_at_quick_exit(void)
{
    print_errno_of_thread((void *)(uintptr_t) "a function of at_quick_exit");
    fflush(stdout);
}

static void print_errno_of_child(bool is_quick)
{
    fflush(stdout);
    errno = 78;
    pid_t child = fork();
    int problem = errno;
    if (child == 0) {
        printf("errno in a child of fork %d\n", problem);
        fflush(stdout);
        if (is_quick)
            quick_exit(3);
        _exit(3);
    }
    waitpid(child, NULL, 0);
    printf("errno in a parent %d\n", problem);
}

/* Where errno is not the result of a call: it is what it was before. */
static void print_errno(int of_main)
{
    pthread_t thread;
    printf("errno in a constructor %d, in main %d\n", errno_of_constructor, of_main);
    pthread_key_create(&key, print_errno_of_thread);
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, errno_main, (void *)i);
        pthread_join(thread, NULL);
    }
    pthread_key_delete(key);
    at_quick_exit(print_errno_at_quick_exit);
    print_errno_of_child(false);
    print_errno_of_child(true);
}

/* What a thread looks at again and again while the others work. */
struct look {
    struct rlimit files, memory, pending;
    sigset_t mask;
    int next_descriptor;
};

static void take_look(struct look *look)
{
    memset(look, 0, sizeof *look);
    getrlimit(RLIMIT_NOFILE, &look->files);
    getrlimit(RLIMIT_AS, &look->memory);
    getrlimit(RLIMIT_SIGPENDING, &look->pending);
    pthread_sigmask(SIG_SETMASK, NULL, &look->mask);
}

static atomic_int n_changes, n_wrong_children, n_wrong_threads;

static void work_once(int round)
{
    char *volatile blocks[40];
    pthread_t thread;
    for (int i = 0; i < 40; i++) {
        blocks[i] = malloc((size_t)(i * 311 + round * 17 + 1));
        if (blocks[i])
            blocks[i][0] = (char)i;
    }
    for (int i = 0; i < 40; i++)
        free(blocks[i]);
    if (pthread_create(&thread, NULL, nothing_main, NULL) != 0 || pthread_join(thread, NULL) != 0)
        atomic_fetch_add(&n_wrong_threads, 1);
    int status = round % 10 == 3 ? fork_and_wait() : round % 15 == 7 ? spawn_self("quiet") : 42 << 8;
    if (WEXITSTATUS(status) != 42)
        atomic_fetch_add(&n_wrong_children, 1);
}

static void *worker_main(void *argument)
{
    struct look first, now;
    double sum = 0;
    take_look(&first);
    for (int round = 0; round < N_ROUNDS; round++) {
        work_once(round);
        for (int i = 0; i < 200; i++) {
            for (int k = 0; k < 500; k++)
                sum += k * 0.5;
            take_look(&now);
            if (memcmp(&first, &now, sizeof now) != 0)
                atomic_fetch_add(&n_changes, 1);
        }
    }
    return sum < 0 ? argument : NULL;
}

static void work_in_threads(void)
{
    pthread_t threads[N_WORKERS];
    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&threads[i], NULL, worker_main, NULL);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("changes %d, wrong children %d, wrong threads %d\n", n_changes, n_wrong_children, n_wrong_threads);
}

static void *print_main(void *argument)
{
    prctl(PR_SET_NAME, "of its own");
    print_all(argument);
    return NULL;
}

static void print_children(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        print_all("child of fork");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("status %d\n", spawn_self("exec"));
    fflush(stdout);
    printf("status %d\n",
           system("env | cut -d= -f1 | grep -Ev '^(LD_PRELOAD|HPCRUN_.*|INTEL_.*|NVTX_.*|ASAN_OPTIONS|_)$' | sort"));
}

int main(int argc, char **argv)
{
    int of_main = errno;
    pthread_t thread;
    static char titles[2][20] = {"thread", "thread at the end"};
    own_path = argv[0];
    is_quiet = argc > 1 && strcmp(argv[1], "quiet") == 0;
    if (is_quiet)
        return 42;
    atexit(print_errno_at_exit);
    const char *failure = dlerror();
    printf("dlerror in main: %s\n", failure ? failure : "none");
    print_errno(of_main);
    print_all(argc > 1 ? argv[1] : "start");
    if (argc > 1)
        return 0;
    print_memory_calls();
    print_signal_calls();
    print_process_calls();
    pthread_create(&thread, NULL, print_main, titles[0]);
    pthread_join(thread, NULL);
    work_in_threads();
    print_children();
    pthread_create(&thread, NULL, print_main, titles[1]);
    pthread_join(thread, NULL);
    print_all("end");
    errno = 76;
    return 7;
}
