/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry points of the preloaded library, as the explorer's subject calls them: by name, so that natively the same
 * row calls libc's own function, and one that libc does not have does nothing. */
#include "entries.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>
#include <wordexp.h>

#include "protocol.h"

#define A(call, i) ((call)->entry->arguments[i])
#define BYTES 2000
#define LARGE 300000
#define PAGES ((uintptr_t)1 << 20)

typedef void *allocate_function(uintptr_t a, uintptr_t b, uintptr_t c);
struct task_id {
    uint64_t words[3];
};
typedef int clone_function(int (*)(void *), void *, int, void *, ...);
typedef void jump_function(struct __jmp_buf_tag *, int);
typedef uintptr_t any_function(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* --- memory --- */

__attribute__((noinline)) static bool make_block_again(struct call *call)
{
    call->p = ((allocate_function *)call->function)(A(call, 0), A(call, 1), A(call, 2));
    return call->p != NULL;
}

/* By a call path that differs from the last one, which the library would know again. */
static bool make_block(struct call *call)
{
    static volatile unsigned n_calls;
    if (n_calls++ % 2)
        return make_block_again(call);
    call->p = ((allocate_function *)call->function)(A(call, 0), A(call, 1), A(call, 2));
    return call->p != NULL;
}

static void finish_block(struct call *call)
{
    free(call->p);
    call->p = NULL;
}

/* Blocks for the release of which the alignment may count. */
static void prepare_block(struct call *call)
{
    call->p = A(call, 3) ? aligned_alloc(A(call, 3), A(call, 0)) : malloc(A(call, 0));
}

static bool make_release(struct call *call)
{
    char *p = call->p;
    call->p = NULL;
    if (call->function)
        ((any_function *)call->function)((uintptr_t)p, A(call, 1), A(call, 2), 0);
    else
        free(p);
    return true;
}

static void finish_nothing(struct call *call)
{
    call->p = NULL; /* if the call was left it may have gone or not */
}

static bool make_realloc(struct call *call)
{
    char *p = call->p;
    call->p = NULL;
    p = ((allocate_function *)call->function)((uintptr_t)p, A(call, 1), A(call, 2));
    call->p = p;
    return p != NULL;
}

static bool make_posix_memalign(struct call *call)
{
    return posix_memalign((void **)&call->p, 64, A(call, 0)) == 0;
}

static bool make_usable_size(struct call *call)
{
    return ((any_function *)call->function)((uintptr_t)call->p, 0, 0, 0) >= A(call, 0);
}

static bool make_mapping(struct call *call)
{
    call->p = mmap(NULL, A(call, 0), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return call->p != MAP_FAILED;
}

static bool make_file_mapping(struct call *call)
{
    call->p = mmap64(NULL, A(call, 0), PROT_READ | PROT_EXEC, MAP_PRIVATE, call->fd, 0);
    return call->p != MAP_FAILED;
}

static void prepare_file(struct call *call)
{
    call->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static void finish_mapping(struct call *call)
{
    if (call->p && call->p != MAP_FAILED)
        munmap(call->p, A(call, 0));
    if (call->fd >= 0)
        close(call->fd);
    call->p = NULL;
    call->fd = -1;
}

static void prepare_mapping(struct call *call)
{
    (void)make_mapping(call);
}

/* arguments 1 and 2: what of the mapping goes */
static bool make_unmapping(struct call *call)
{
    char *p = call->p;
    call->p = NULL; /* whose the range is if the call is left, nobody knows */
    return munmap(p + A(call, 1), A(call, 2)) == 0;
}

static bool make_remapping(struct call *call)
{
    char *p = call->p;
    call->p = NULL;
    p = mremap(p, A(call, 0), A(call, 1), MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return false;
    munmap(p, A(call, 1));
    return true;
}

/* The segment goes with its last process, however that ends. */
static void prepare_segment(struct call *call)
{
    call->fd = shmget(IPC_PRIVATE, 65536, IPC_CREAT | 0600);
    call->q = shmat(call->fd, NULL, 0);
    shmctl(call->fd, IPC_RMID, NULL);
}

static void prepare_attached(struct call *call)
{
    prepare_segment(call);
    call->p = shmat(call->fd, NULL, 0);
}

static bool make_attached(struct call *call)
{
    call->p = shmat(call->fd, NULL, 0);
    return call->p != (char *)-1;
}

static bool make_detached(struct call *call)
{
    char *p = call->p;
    call->p = NULL;
    return shmdt(p) == 0;
}

static void finish_segment(struct call *call)
{
    if (call->p && call->p != (char *)-1)
        (void)shmdt(call->p);
    if (call->q && call->q != (char *)-1)
        (void)shmdt(call->q);
    call->p = call->q = NULL;
}

/* The break is libc's, too: it only goes up, beyond what a handler may have taken in the meantime. */
static bool make_break(struct call *call)
{
    char *end = sbrk(0);
    (void)call;
    return brk(end + ((size_t)1 << 20)) == 0;
}

static bool make_growing_break(struct call *call)
{
    (void)call;
    return sbrk(8192) != (void *)-1;
}

/* --- threads and processes --- */

static void *work(void *argument)
{
    char *p = malloc(3000);
    free(p);
    return argument;
}

static int work_c11(void *argument)
{
    return work(argument) ? 3 : 0;
}

static void *leave_thread(void *argument)
{
    pthread_exit(argument);
}

static void *(*const thread_functions[])(void *) = {work, leave_thread};

static bool make_thread(struct call *call)
{
    return pthread_create(&call->thread, NULL, thread_functions[A(call, 0)], (void *)9) == 0;
}

static bool make_joined_thread(struct call *call)
{
    void *result = NULL;
    if (!make_thread(call))
        return false;
    pthread_join(call->thread, &result);
    call->thread = 0;
    call->status = (int)(intptr_t)result;
    return true;
}

static bool make_c11_thread(struct call *call)
{
    return thrd_create(&call->thread, work_c11, (void *)9) == thrd_success;
}

static void finish_thread(struct call *call)
{
    if (call->thread)
        pthread_join(call->thread, NULL);
    call->thread = 0;
}

static int be_child(void *argument)
{
    const struct call *call = argument;
    if (!call->is_end)
        explore_mark(MARK_END);
    free(malloc(3000));
    _exit(7);
}

static bool make_child(struct call *call, pid_t child)
{
    call->child = child;
    if (child == 0)
        be_child(call);
    while (call->child > 0 && waitpid(call->child, &call->status, 0) < 0 && errno == EINTR)
        continue;
    return call->child > 0;
}

static bool make_fork(struct call *call)
{
    return make_child(call, fork());
}

static bool make_bare_fork(struct call *call)
{
    return make_child(call, ((pid_t(*)(void))call->function)());
}

static bool make_clone(struct call *call)
{
    return make_child(call, ((clone_function *)call->function)(be_child, call->p + PAGES, SIGCHLD, call));
}

/* By name: longjmp is a macro where the header checks. */
static bool make_jump(struct call *call)
{
    sigjmp_buf place;
    if (sigsetjmp(place, (int)A(call, 0)) == 0) {
        ((jump_function *)call->function)(place, 1);
        return false;
    }
    return true;
}

static bool make_exit(struct call *call)
{
    ((void (*)(int))call->function)(7);
    return false;
}

static char *const no_arguments[] = {(char *)"true", NULL};

static void execute(const struct call *call, const char *path)
{
    int form = (int)A(call, 0);
    if (form == 0)
        execv(path, no_arguments);
    else if (form == 1)
        execve(path, no_arguments, environ);
    else if (form == 2)
        execvp(path, no_arguments);
    else if (form == 3)
        execvpe(path, no_arguments, environ);
    else if (form == 4)
        execl(path, "true", "x", (char *)NULL);
    else if (form == 5)
        execle(path, "true", "x", (char *)NULL, environ);
    else if (form == 6)
        execlp(path, "true", "x", (char *)NULL);
    else if (form == 7)
        execveat(AT_FDCWD, path, no_arguments, environ, 0);
    else
        fexecve(call->fd, no_arguments, environ);
}

static bool make_failing_exec(struct call *call)
{
    execute(call, "/nonexistent/program");
    return errno == ENOENT || errno == EBADF || errno == EINVAL;
}

static bool make_exec(struct call *call)
{
    execute(call, "/bin/true");
    return false;
}

/* --- loader, signals, the rest --- */

static bool make_loaded(struct call *call)
{
    call->p = dlopen("libm.so.6", RTLD_NOW);
    return call->p != NULL;
}

static bool make_loaded_in_base(struct call *call)
{
    call->p = dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW);
    return call->p != NULL;
}

static void prepare_loaded(struct call *call)
{
    (void)make_loaded(call);
}

static bool make_unloaded(struct call *call)
{
    char *p = call->p;
    call->p = NULL;
    return dlclose(p) == 0;
}

static void finish_loaded(struct call *call)
{
    if (call->p)
        dlclose(call->p);
    call->p = NULL;
}

static void ignore(int number)
{
    (void)number;
}

static bool make_action(struct call *call)
{
    struct sigaction action = {.sa_handler = ignore}, old;
    (void)call;
    return sigaction((int)A(call, 0), &action, &old) == 0;
}

static bool make_signal(struct call *call)
{
    return signal((int)A(call, 0), ignore) != SIG_ERR;
}

/* The explorer's own signal stays as it is. */
static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR2);
    sigaddset(set, SIGURG);
}

static bool make_mask(struct call *call)
{
    sigset_t set;
    fill(&set);
    bool is_done = ((int (*)(int, const sigset_t *, sigset_t *))call->function)(SIG_BLOCK, &set, NULL) == 0;
    return is_done && ((int (*)(int, const sigset_t *, sigset_t *))call->function)(SIG_UNBLOCK, &set, NULL) == 0;
}

static void finish_mask(struct call *call)
{
    sigset_t set;
    (void)call;
    fill(&set);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* SIGUSR2 waits until the call lets it in. */
static void prepare_waiting(struct call *call)
{
    sigset_t set;
    struct sigaction action = {.sa_handler = ignore};
    (void)call;
    sigaction(SIGUSR2, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_kill(pthread_self(), SIGUSR2);
}

static bool make_suspended(struct call *call)
{
    sigset_t set;
    (void)call;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    return sigsuspend(&set) == -1 && errno == EINTR;
}

static bool make_poll(struct call *call)
{
    struct timespec none = {0};
    sigset_t set;
    (void)call;
    fill(&set);
    return ppoll(NULL, 0, &none, &set) >= -1;
}

static bool make_select(struct call *call)
{
    struct timespec none = {0};
    sigset_t set;
    (void)call;
    fill(&set);
    return pselect(0, NULL, NULL, NULL, &none, &set) >= -1;
}

static void prepare_epoll(struct call *call)
{
    call->fd = epoll_create1(EPOLL_CLOEXEC);
}

static bool make_epoll(struct call *call)
{
    struct epoll_event event;
    sigset_t set;
    fill(&set);
    return epoll_pwait(call->fd, &event, 1, 0, &set) >= -1;
}

static void finish_fd(struct call *call)
{
    if (call->fd >= 0)
        close(call->fd);
    call->fd = -1;
}

static bool make_prctl(struct call *call)
{
    (void)call;
    return prctl(PR_GET_DUMPABLE) >= 0;
}

/* Signals of which one waits, SIGUSR2: arguments are the set or the number. */
static bool make_sigtimedwait(struct call *call)
{
    struct timespec none = {0};
    sigset_t set;
    fill(&set);
    return ((int (*)(const sigset_t *, siginfo_t *, const struct timespec *))call->function)(&set, NULL, &none) ==
           SIGUSR2;
}

static bool make_sigwait(struct call *call)
{
    int number = 0;
    sigset_t set;
    (void)call;
    fill(&set);
    return sigwait(&set, &number) == 0 && number == SIGUSR2;
}

static bool make_spawned(struct call *call)
{
    int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
                 char *const *) = call->function;
    int status = -1;
    if (spawn(&call->child, "/bin/true", NULL, NULL, no_arguments, environ) != 0)
        return false;
    while (waitpid(call->child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static bool make_system(struct call *call)
{
    (void)call;
    return system("exit 3") == 3 << 8;
}

static bool make_pipe(struct call *call)
{
    FILE *pipe = popen("exit 3", "r");
    (void)call;
    return pipe && pclose(pipe) == 3 << 8;
}

static bool make_words(struct call *call)
{
    wordexp_t words;
    (void)call;
    if (wordexp("a b", &words, WRDE_NOCMD) != 0)
        return false;
    wordfree(&words);
    return true;
}

/* Our own interface, and functions of libraries that are not there: what they return is nothing to the program. */
static bool make_any(struct call *call)
{
    if (call->function)
        (void)((any_function *)call->function)(A(call, 0), A(call, 1), A(call, 2), A(call, 3));
    return true;
}

static bool make_with_block(struct call *call)
{
    if (call->function)
        (void)((any_function *)call->function)((uintptr_t)call->p, A(call, 0), (uintptr_t)call->p, A(call, 2));
    return true;
}

/* ITT tells of the address of the pointer. */
static bool make_with_pointer(struct call *call)
{
    if (call->function && A(call, 0))
        (void)((any_function *)call->function)(0, (uintptr_t)call->p, (uintptr_t)&call->p, BYTES);
    else if (call->function)
        (void)((any_function *)call->function)(0, (uintptr_t)&call->p, BYTES, 0);
    return true;
}

static bool make_task(struct call *call)
{
    typedef void begin_function(void *domain, struct task_id task, struct task_id parent, void *name);
    struct task_id none = {{0}};
    if (call->function)
        ((begin_function *)call->function)(NULL, none, none, NULL);
    return true;
}

/* What a sample interrupts. */
static bool make_sampled(struct call *call)
{
    static volatile unsigned sum;
    for (unsigned i = 0; i < 20; i++)
        sum += i;
    (void)call;
    return true;
}

/* --- the table --- */

#define BLOCK(name, symbol, ...)                                                                                       \
    {                                                                                                                  \
        name, symbol, 0, NULL, make_block, finish_block,                                                               \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define RELEASE(name, symbol, ...)                                                                                     \
    {                                                                                                                  \
        name, symbol, 0, prepare_block, make_release, finish_nothing,                                                  \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define REALLOC(name, symbol, ...)                                                                                     \
    {                                                                                                                  \
        name, symbol, 0, prepare_block, make_realloc, finish_nothing,                                                  \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define EXEC(symbol, form)                                                                                             \
    {symbol "-fails", symbol, 0, NULL, make_failing_exec, NULL, {form}},                                               \
    {                                                                                                                  \
        symbol, symbol, ENTRY_IN_CHILD, NULL, make_exec, NULL,                                                         \
        {                                                                                                              \
            form                                                                                                       \
        }                                                                                                              \
    }
#define ANY(symbol, ...)                                                                                               \
    {                                                                                                                  \
        symbol, symbol, 0, NULL, make_any, NULL,                                                                       \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define NAME ((uintptr_t) "explored")

static int numbers[4];
static const struct rlimit no_core;
static const struct sigaction ignoring = {.sa_handler = ignore};

static const struct entry entries[] = {
    BLOCK("malloc", "malloc", BYTES),
    {"malloc-small", "malloc", ENTRY_SETTLES, NULL, make_block, finish_block, {64}},
    {"malloc-again", "malloc", ENTRY_SETTLES, NULL, make_block_again, finish_block, {BYTES}},
    BLOCK("malloc-large", "malloc", LARGE),
    BLOCK("calloc", "calloc", BYTES, 1),
    BLOCK("memalign", "memalign", 64, BYTES),
    BLOCK("aligned_alloc", "aligned_alloc", 64, BYTES),
    {"posix_memalign", "posix_memalign", 0, NULL, make_posix_memalign, finish_block, {BYTES}},
    BLOCK("valloc", "valloc", BYTES),
    BLOCK("pvalloc", "pvalloc", BYTES),
    REALLOC("realloc", "realloc", BYTES, 2 * BYTES),
    REALLOC("realloc-large", "realloc", LARGE, 2 * LARGE),
    {"realloc-smaller", "realloc", ENTRY_SETTLES, prepare_block, make_realloc, finish_nothing, {BYTES, 64}},
    REALLOC("reallocarray", "reallocarray", BYTES, 100, 70),
    RELEASE("free", "free", BYTES),
    RELEASE("free-small", "free", 64),
    RELEASE("free-large", "free", LARGE),
    RELEASE("cfree", "cfree", BYTES),
    {"malloc_usable_size", "malloc_usable_size", 0, prepare_block, make_usable_size, finish_block, {BYTES}},
    BLOCK("_Znwm", "_Znwm", BYTES),
    BLOCK("_ZnwmRKSt9nothrow_t", "_ZnwmRKSt9nothrow_t", BYTES, 1),
    BLOCK("_ZnwmSt11align_val_t", "_ZnwmSt11align_val_t", BYTES, 64),
    BLOCK("_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnwmSt11align_val_tRKSt9nothrow_t", BYTES, 64, 1),
    BLOCK("_Znam", "_Znam", BYTES),
    BLOCK("_ZnamRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", BYTES, 1),
    BLOCK("_ZnamSt11align_val_t", "_ZnamSt11align_val_t", BYTES, 64),
    BLOCK("_ZnamSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t", BYTES, 64, 1),
    RELEASE("_ZdlPv", "_ZdlPv", BYTES),
    RELEASE("_ZdlPvRKSt9nothrow_t", "_ZdlPvRKSt9nothrow_t", BYTES, 1),
    RELEASE("_ZdlPvm", "_ZdlPvm", BYTES, BYTES),
    RELEASE("_ZdlPvSt11align_val_t", "_ZdlPvSt11align_val_t", BYTES + 48, 64, 0, 64),
    RELEASE("_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t", BYTES + 48, 64, 1, 64),
    RELEASE("_ZdlPvmSt11align_val_t", "_ZdlPvmSt11align_val_t", BYTES + 48, BYTES + 48, 64, 64),
    RELEASE("_ZdaPv", "_ZdaPv", BYTES),
    RELEASE("_ZdaPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", BYTES, 1),
    RELEASE("_ZdaPvm", "_ZdaPvm", BYTES, BYTES),
    RELEASE("_ZdaPvSt11align_val_t", "_ZdaPvSt11align_val_t", BYTES + 48, 64, 0, 64),
    RELEASE("_ZdaPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t", BYTES + 48, 64, 1, 64),
    RELEASE("_ZdaPvmSt11align_val_t", "_ZdaPvmSt11align_val_t", BYTES + 48, BYTES + 48, 64, 64),
    {"mmap", "mmap", 0, NULL, make_mapping, finish_mapping, {PAGES}},
    {"mmap64", "mmap64", 0, prepare_file, make_file_mapping, finish_mapping, {4096}},
    {"munmap", "munmap", 0, prepare_mapping, make_unmapping, finish_mapping, {PAGES, 0, PAGES}},
    {"munmap-middle", "munmap", 0, prepare_mapping, make_unmapping, finish_mapping, {PAGES, 65536, 131072}},
    {"mremap", "mremap", 0, prepare_mapping, make_remapping, finish_mapping, {PAGES, 4 * PAGES}},
    {"mremap-smaller", "mremap", 0, prepare_mapping, make_remapping, finish_mapping, {PAGES, 4096}},
    {"shmat", "shmat", 0, prepare_segment, make_attached, finish_segment, {0}},
    {"shmdt", "shmdt", 0, prepare_attached, make_detached, finish_segment, {0}},
    {"brk", "brk", 0, NULL, make_break, NULL, {0}},
    {"sbrk", "sbrk", 0, NULL, make_growing_break, NULL, {0}},
    {"pthread_create", "pthread_create", 0, NULL, make_thread, finish_thread, {0}},
    {"thrd_create", "thrd_create", 0, NULL, make_c11_thread, finish_thread, {0}},
    {"thread", "pthread_create", ENTRY_NEW_THREAD | ENTRY_MAY_MISS, NULL, make_joined_thread, finish_thread, {0}},
    {"thread-exit", "pthread_exit", ENTRY_NEW_THREAD | ENTRY_MAY_MISS, NULL, make_joined_thread, finish_thread, {1}},
    {"fork", "fork", 0, NULL, make_fork, NULL, {0}},
    {"fork-child", "fork", ENTRY_NEW_PROCESS | ENTRY_MAY_MISS, NULL, make_fork, NULL, {0}},
    {"_Fork", "_Fork", 0, NULL, make_bare_fork, NULL, {0}},
    {"clone", "clone", 0, prepare_mapping, make_clone, finish_mapping, {PAGES}},
    {"__clone", "__clone", 0, prepare_mapping, make_clone, finish_mapping, {PAGES}},
    {"longjmp", "longjmp", 0, NULL, make_jump, NULL, {0}},
    {"_longjmp", "_longjmp", 0, NULL, make_jump, NULL, {0}},
    {"siglongjmp", "siglongjmp", 0, NULL, make_jump, NULL, {1}},
    {"__longjmp_chk", "__longjmp_chk", 0, NULL, make_jump, NULL, {0}},
    {"exit", "exit", ENTRY_IN_CHILD | ENTRY_MAY_MISS, NULL, make_exit, NULL, {0}},
    {"_exit", "_exit", ENTRY_IN_CHILD | ENTRY_MAY_MISS, NULL, make_exit, NULL, {0}},
    {"_Exit", "_Exit", ENTRY_IN_CHILD | ENTRY_MAY_MISS, NULL, make_exit, NULL, {0}},
    {"quick_exit", "quick_exit", ENTRY_IN_CHILD | ENTRY_MAY_MISS, NULL, make_exit, NULL, {0}},
    EXEC("execv", 0),
    EXEC("execve", 1),
    EXEC("execvp", 2),
    EXEC("execvpe", 3),
    EXEC("execl", 4),
    EXEC("execle", 5),
    EXEC("execlp", 6),
    EXEC("execveat", 7),
    {"fexecve-fails", "fexecve", 0, NULL, make_failing_exec, NULL, {8}},
    {"dlopen", "dlopen", 0, NULL, make_loaded, finish_loaded, {0}},
    {"dlmopen", "dlmopen", 0, NULL, make_loaded_in_base, finish_loaded, {0}},
    {"dlclose", "dlclose", 0, prepare_loaded, make_unloaded, finish_nothing, {0}},
    {"sigaction", "sigaction", 0, NULL, make_action, NULL, {SIGUSR2}},
    {"sigaction-ours", "sigaction", 0, NULL, make_action, NULL, {SIGURG}},
    {"signal", "signal", 0, NULL, make_signal, NULL, {SIGUSR2}},
    {"signal-ours", "signal", 0, NULL, make_signal, NULL, {SIGURG}},
    {"sigprocmask", "sigprocmask", 0, NULL, make_mask, finish_mask, {0}},
    {"pthread_sigmask", "pthread_sigmask", 0, NULL, make_mask, finish_mask, {0}},
    {"sigsuspend", "sigsuspend", 0, prepare_waiting, make_suspended, finish_mask, {0}},
    {"ppoll", "ppoll", 0, NULL, make_poll, NULL, {0}},
    {"pselect", "pselect", 0, NULL, make_select, NULL, {0}},
    {"epoll_pwait", "epoll_pwait", 0, prepare_epoll, make_epoll, finish_fd, {0}},
    ANY("__sigaction", SIGUSR2, (uintptr_t)&ignoring),
    ANY("bsd_signal", SIGUSR2, (uintptr_t)ignore),
    ANY("ssignal", SIGUSR2, (uintptr_t)ignore),
    ANY("sysv_signal", SIGUSR2, (uintptr_t)ignore),
    ANY("__sysv_signal", SIGUSR2, (uintptr_t)ignore),
    ANY("sigset", SIGUSR2, (uintptr_t)ignore),
    {"sigset-ours", "sigset", 0, NULL, make_any, NULL, {SIGURG, (uintptr_t)ignore}},
    ANY("sigignore", SIGUSR2),
    ANY("siginterrupt", SIGUSR2, 1),
    {"sighold", "sighold", 0, NULL, make_any, finish_mask, {SIGUSR2}},
    ANY("sigrelse", SIGUSR2),
    ANY("sigblock", 0),
    ANY("siggetmask", 0),
    ANY("sigsetmask", 0),
    {"sigpause", "sigpause", 0, prepare_waiting, make_any, finish_mask, {0}},
    {"__sigpause", "__sigpause", 0, prepare_waiting, make_any, finish_mask, {0, 0}},
    {"__xpg_sigpause", "__xpg_sigpause", 0, prepare_waiting, make_any, finish_mask, {SIGUSR2}},
    {"sigtimedwait", "sigtimedwait", 0, prepare_waiting, make_sigtimedwait, finish_mask, {0}},
    {"sigwaitinfo", "sigwaitinfo", 0, prepare_waiting, make_sigtimedwait, finish_mask, {0}},
    {"sigwait", "sigwait", 0, prepare_waiting, make_sigwait, finish_mask, {0}},
    ANY("sigaltstack", 0, 0),
    ANY("setrlimit", RLIMIT_CORE, (uintptr_t)&no_core),
    ANY("setrlimit64", RLIMIT_CORE, (uintptr_t)&no_core),
    ANY("prlimit", 0, RLIMIT_CORE, (uintptr_t)&no_core, 0),
    ANY("prlimit64", 0, RLIMIT_CORE, (uintptr_t)&no_core, 0),
    ANY("mlockall", 0),
    ANY("munlockall", 0),
    {"posix_spawn", "posix_spawn", 0, NULL, make_spawned, NULL, {0}},
    {"posix_spawnp", "posix_spawnp", 0, NULL, make_spawned, NULL, {0}},
    {"system", "system", 0, NULL, make_system, NULL, {0}},
    {"popen", "popen", 0, NULL, make_pipe, NULL, {0}},
    {"wordexp", "wordexp", 0, NULL, make_words, NULL, {0}},
    {"prctl", "prctl", 0, NULL, make_prctl, NULL, {0}},
    ANY("syscall", SYS_getuid),
    ANY("hpctoolkit_sampling_is_active", 0),
    ANY("hpctoolkit_sampling_stop", 0),
    ANY("hpctoolkit_sampling_start", 0),
    ANY("locus_mark_live_event", 0),
    ANY("locus_region_begin_event", NAME),
    ANY("locus_region_end_event", NAME),
    {"locus_pool_alloc_event", "locus_pool_alloc_event", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    {"locus_pool_free_event", "locus_pool_free_event", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    {"heaptrack_malloc", "heaptrack_malloc", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    {"heaptrack_realloc", "heaptrack_realloc", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    {"heaptrack_free", "heaptrack_free", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    {"heaptrack_realloc2", "heaptrack_realloc2", 0, prepare_block, make_with_block, finish_block, {BYTES}},
    ANY("__itt_heap_allocate_begin", 0, BYTES),
    {"__itt_heap_allocate_end", "__itt_heap_allocate_end", 0, prepare_block, make_with_pointer, finish_block, {0}},
    {"__itt_heap_free_begin", "__itt_heap_free_begin", 0, prepare_block, make_with_pointer, finish_block, {1}},
    {"__itt_heap_free_end", "__itt_heap_free_end", 0, prepare_block, make_with_pointer, finish_block, {1}},
    {"__itt_heap_reallocate_begin",
     "__itt_heap_reallocate_begin",
     0,
     prepare_block,
     make_with_pointer,
     finish_block,
     {1}},
    {"__itt_heap_reallocate_end", "__itt_heap_reallocate_end", 0, prepare_block, make_with_pointer, finish_block, {1}},
    {"__itt_task_begin", "__itt_task_begin", 0, NULL, make_task, NULL, {0}},
    ANY("__itt_task_end", 0),
    ANY("DATACENTRIC", 0),
    ANY("DATACENTRIC_Dynamic", 0),
    ANY("DATACENTRIC_Static", 0),
    ANY("DATACENTRIC_Unknown", 0),
    ANY("DATACENTRIC_MemoryAccess", 0),
    ANY("chroot", (uintptr_t) "/nonexistent/directory"),
    ANY("__itt_domain_create", NAME),
    ANY("__itt_string_handle_create", NAME),
    ANY("__itt_heap_function_create", NAME, NAME),
    ANY("__itt_api_version", 0),
    ANY("MPI_Init", 0),
    ANY("MPI_Init_thread", 0),
    ANY("mpi_init_", (uintptr_t)numbers),
    ANY("mpi_init_thread_", (uintptr_t)numbers, (uintptr_t)numbers, (uintptr_t)numbers),
    {"sample", "signal", ENTRY_SAMPLE | ENTRY_SETTLES, NULL, make_sampled, NULL, {0}},
    {NULL, NULL, 0, NULL, NULL, NULL, {0}},
};

const struct entry *entries_table(void)
{
    return entries;
}
