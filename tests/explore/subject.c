/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that the explorer traces. At its gate it is told which entry point to call, on which thread, and what its
 * signal handler shall do; the call stands between two marks, and what came of it is described in the shared page.
 * Nothing here knows of the profiler: run without it, the same program says what is right. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entries.h"
#include "protocol.h"

#include <dlfcn.h>

#define STATUS_LANDED 46
#define STATUS_EXIT 44
#define STATUS_FORKED 42

static struct {
    struct explore_page *page;
    sigjmp_buf home;  /* of the call under way */
    pid_t caller;     /* the process that makes it */
    pthread_t thread; /* the thread that makes it */
    unsigned beside;  /* index of the other thread that serves this process */
    const struct entry *entry;
    void *function;
    struct call *call; /* under way */
} subject;

static void use_memory(void)
{
    static const size_t sizes[] = {24, 700, 2000, 5000, 200000};
    char *blocks[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blocks[i] = malloc(sizes[i]);
        if (!blocks[i])
            _exit(1);
        blocks[i][0] = blocks[i][sizes[i] - 1] = 'x';
    }
    blocks[2] = realloc(blocks[2], 9000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        free(blocks[i]);
}

static int fork_and_wait(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        use_memory();
        _exit(STATUS_FORKED);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void handle(int number)
{
    int saved_errno = errno;
    struct explore_page *page = subject.page;
    (void)number;
    page->n_handled++;
    switch (page->kind) {
    case KIND_MALLOC:
        use_memory();
        break;
    case KIND_FORK:
        page->fork_status = fork_and_wait();
        break;
    case KIND_LONGJMP:
        siglongjmp(subject.home, 1);
    case KIND_THROW:
        cxx_throw();
        break;
    case KIND_EXIT:
        _exit(STATUS_EXIT);
    case KIND_PTHREAD_EXIT:
        pthread_exit((void *)45);
    default:
        break;
    }
    errno = saved_errno;
}

/* --- the other thread --- */

static void make_beside(void)
{
    struct call call = {.entry = subject.entry, .function = subject.function, .is_end = true};
    if (subject.entry->prepare)
        subject.entry->prepare(&call);
    (void)subject.entry->make(&call);
    if (subject.entry->finish)
        subject.entry->finish(&call);
}

static void *serve(void *argument)
{
    uint32_t *command = argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) {
        uint32_t wanted = __atomic_load_n(command, __ATOMIC_ACQUIRE);
        if (wanted == BESIDE_NOTHING) {
            syscall(SYS_futex, command, FUTEX_WAIT, BESIDE_NOTHING, NULL, NULL, 0);
            continue;
        }
        if (wanted == BESIDE_CALL)
            make_beside();
        else if (wanted == BESIDE_FORK)
            subject.page->fork_status = fork_and_wait();
        else if (wanted == BESIDE_EXIT)
            exit(7);
        else if (wanted == BESIDE_CANCEL)
            subject.page->cancel_status =
                pthread_cancel(subject.entry->flags & ENTRY_NEW_THREAD ? subject.call->thread : subject.thread);
        else if (wanted == BESIDE_LEAVE) {
            __atomic_store_n(command, BESIDE_NOTHING, __ATOMIC_RELEASE);
            return NULL;
        }
        explore_mark(MARK_BESIDE);
        __atomic_store_n(command, BESIDE_NOTHING, __ATOMIC_RELEASE);
        syscall(SYS_futex, command, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
    }
}

static void start_beside(unsigned index)
{
    pthread_t thread;
    subject.beside = index;
    subject.page->beside[index] = BESIDE_NOTHING;
    if (pthread_create(&thread, NULL, serve, &subject.page->beside[index]) != 0)
        abort();
    pthread_detach(thread);
}

/* What the other thread was asked to do comes to its end, at the latest now that the call is over. */
static void await_beside(void)
{
    uint32_t wanted, *command = &subject.page->beside[subject.beside];
    while ((wanted = __atomic_load_n(command, __ATOMIC_ACQUIRE)) != BESIDE_NOTHING)
        syscall(SYS_futex, command, FUTEX_WAIT, wanted, NULL, NULL, 0);
}

/* What was left in the middle must not stand in the way of others. */
static void ask_beside(enum explore_beside what)
{
    uint32_t *command = &subject.page->beside[subject.beside];
    __atomic_store_n(command, what, __ATOMIC_RELEASE);
    syscall(SYS_futex, command, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
    await_beside();
}

/* --- the call --- */

static void make_call(void *argument)
{
    struct call *call = argument;
    explore_mark(MARK_BEGIN);
    bool is_right = call->entry->make(call);
    subject.page->is_value_right = is_right;
    subject.page->has_returned = 1;
    if (!call->is_end)
        explore_mark(MARK_END);
}

/* A child that has come here by a jump is no second subject. */
static void leave_child(void)
{
    if (getpid() != subject.caller)
        _exit(STATUS_LANDED);
}

static void call_here(struct call *call)
{
    sigset_t before;
    struct explore_page *page = subject.page;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    subject.thread = pthread_self();
    subject.call = call;
    if (call->entry->prepare)
        call->entry->prepare(call);
    if (sigsetjmp(subject.home, 1) != 0)
        page->has_landed = 1;
    else if (page->kind == KIND_THROW)
        page->has_landed = 2 * cxx_catch(make_call, call);
    else
        make_call(call);
    leave_child();
    if (page->kind == KIND_THROW) /* natively, too, the handler's mask stays */
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (call->entry->finish)
        call->entry->finish(call);
}

static void *call_in_thread(void *argument)
{
    call_here(argument);
    await_beside(); /* a cancel that is still to come */
    pthread_testcancel();
    return (void *)1;
}

static long call_and_join(struct call *call)
{
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, call_in_thread, call) != 0)
        abort();
    pthread_join(thread, &result);
    if (call->entry->finish) /* it may have been left */
        call->entry->finish(call);
    return (long)(intptr_t)result;
}

static bool needs_beside(void)
{
    uint32_t kind = subject.page->kind;
    return kind == KIND_BESIDE || kind == KIND_FORK_BESIDE || kind == KIND_EXIT_BESIDE || kind == KIND_CANCEL;
}

static int call_in_child(struct call *call)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        subject.caller = getpid();
        subject.beside = 1;
        subject.page->beside[1] = BESIDE_NOTHING;
        if (needs_beside())
            start_beside(1);
        call_here(call);
        await_beside();
        _exit(subject.page->has_landed ? STATUS_LANDED : 5);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void perform(void)
{
    struct explore_page *page = subject.page;
    subject.entry = &entries_table()[page->entry];
    subject.function = dlsym(RTLD_DEFAULT, subject.entry->symbol);
    struct call call = {.entry = subject.entry, .function = subject.function, .fd = -1, .status = -1};
    long result = 0;
    int status = -1;
    uint64_t mask = 0;
    page->n_handled = page->has_returned = page->is_value_right = page->has_landed = page->cancel_status = 0;
    page->fork_status = -1;
    subject.caller = getpid();
    if (page->place == PLACE_CHILD)
        status = call_in_child(&call);
    else if (page->place == PLACE_THREAD)
        result = call_and_join(&call);
    else
        call_here(&call);
    await_beside();
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    bool is_left = page->has_landed || page->kind == KIND_PTHREAD_EXIT || page->kind == KIND_CANCEL;
    if (is_left && page->place != PLACE_CHILD && !(subject.entry->flags & ENTRY_IN_CHILD)) {
        use_memory(); /* the program goes on, and then the other thread */
        ask_beside(BESIDE_CALL);
    }
    if (page->kind == KIND_EXIT_BESIDE) { /* how far the call comes until its process ends is a matter of time */
        page->is_value_right |= !page->has_returned;
        page->has_returned = 0;
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    snprintf(page->outcome, sizeof page->outcome,
             "returned=%d right=%d handled=%d landed=%d thread=%ld status=%#x made=%#x forked=%#x cancel=%d mask=%#lx",
             page->has_returned, page->is_value_right, page->n_handled, page->has_landed, result, (unsigned)status,
             (unsigned)call.status, (unsigned)page->fork_status, page->cancel_status, (unsigned long)mask);
}

static void describe_entries(void)
{
    const struct entry *entry = entries_table();
    struct explore_page *page = subject.page;
    for (page->n_entries = 0; entry->name && page->n_entries < EXPLORE_ENTRIES_MAX; entry++, page->n_entries++) {
        struct explore_entry_info *info = &page->entries[page->n_entries];
        snprintf(info->name, sizeof info->name, "%s", entry->name);
        snprintf(info->symbol, sizeof info->symbol, "%s", entry->symbol);
        info->flags = entry->flags;
    }
}

int main(void)
{
    const char *path = getenv(EXPLORE_PAGE_ENV);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct sigaction action = {.sa_handler = handle};
    if (fd < 0)
        return 2;
    subject.page = mmap(NULL, sizeof *subject.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (subject.page == MAP_FAILED)
        return 2;
    sigaction(SIGUSR1, &action, NULL);
    describe_entries();
    start_beside(0);
    for (;;) {
        explore_mark(MARK_GATE);
        if (subject.page->is_over)
            return 0;
        perform();
    }
}
