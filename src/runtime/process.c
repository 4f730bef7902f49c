/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the profiled process: start and end. Ordinary code, but it may run inside the first malloc of a program,
 * before any constructor: so it uses no malloc and no stdio, and guards what the library does for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/alloc-events.h"
#include "runtime/arena-writer.h"
#include "runtime/attach.h"
#include "runtime/process-internal.h"
#include "runtime/thread.h"

#define END_WAITERS_MAX 64
#define END_WAIT_MS 20000 /* the first thread may wait COMPANION_END_WAIT_MS for room and for the answer */

static struct {
    _Atomic bool is_tried;   /* the start has been tried */
    _Atomic uintptr_t ender; /* thread pointer of the thread that ends it, 0 none */
    _Atomic bool is_ended;   /* it has done so */
    _Atomic int n_waiters;   /* registered at exit */
    pid_t pid;
    char **arguments, **environment; /* of the constructor */
} process;

const char *process_environment(const char *name)
{
    char **entry = process.environment ? process.environment : environ;
    size_t len = strlen(name);
    for (; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    }
    return NULL;
}

extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

/* Valgrind preloads libraries of its own into the program that it simulates. */
const char *process_reason_to_leave(bool *is_of_samples)
{
    const char *preloaded = process_environment("LD_PRELOAD");
    *is_of_samples = preloaded && strstr(preloaded, "vgpreload_");
    if (*is_of_samples)
        return "it runs under Valgrind, whose simulation the samples would show";
    if (__tsan_init)
        return "it is built with ThreadSanitizer, which takes our work for races of the program's";
    if (__msan_init)
        return "it is built with MemorySanitizer, which takes what we write for uninitialised";
    return NULL;
}

const char *process_argument(void)
{
    return process.arguments ? process.arguments[0] : NULL;
}

bool process_own(void)
{
    void *page = process_owner_page_sig();
    size_t page_bytes = getauxval(AT_PAGESZ);
    if (!page) {
        page = (void *)own_mmap_sig(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if ((uintptr_t)page >= (uintptr_t)-4095)
            return false;
        if (own_call_sig(SYS_madvise, page, page_bytes, MADV_WIPEONFORK) != 0) {
            own_call_sig(SYS_munmap, page, page_bytes);
            return false;
        }
    }
    process.pid = (pid_t)own_pid_sig();
    atomic_store(&process.ender, 0);
    atomic_store(&process.is_ended, false);
    atomic_store(&process.n_waiters, 0);
    process_set_owner_sig(page, (uint32_t)process.pid);
    return true;
}

/* Everything between an attached arena and the first sample. */
static bool start_recording(void)
{
    struct arena_header *header = arena_header_sig();
    if (!process_own() || !alloc_events_prepare())
        return false;
    process_set_running_sig(true);
    atomic_store(&header->state, ARENA_RUNNING);
    if (!thread_begin_first(control_begins_active_sig()))
        return false;
    control_init();
    alloc_events_connect();
    process_follow_forks();
    return true;
}

bool process_start_hook(void)
{
    if (atomic_exchange(&process.is_tried, true))
        return process_is_ours_sig();
    struct shield shield;
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    bool is_started = attach_start() && start_recording();
    process_set_running_sig(is_started);
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
    altstack_begin();
    return is_started;
}

/* Two threads may end the process at once: the later one gives the first the time that the companion may take. */
static void wait_for_end(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int waited_ms = 0; !atomic_load(&process.is_ended) && waited_ms < END_WAIT_MS; waited_ms++)
        own_call_sig(SYS_nanosleep, &pause, NULL);
}

static void end_recording(int exit_code)
{
    alloc_wrap_guard_enter();
    thread_end_all();
    process_set_running_sig(false);
    struct arena_header *header = arena_header_sig();
    alloc_events_end();
    /* Behind a filter that keeps the own pid secret, a child of vfork took itself for the process. */
    if (atomic_load(&header->is_replaced) == EXEC_UNMEASURED)
        arena_note_child_sig(CHILD_SANDBOXED, 0, header->replaced_by);
    atomic_store(&header->exit_code, (uint32_t)exit_code);
    atomic_store(&header->end_ns, own_clock_ns_sig(CLOCK_REALTIME));
    atomic_store(&header->state, ARENA_ENDED);
    attach_end(exit_code);
    alloc_wrap_guard_leave();
}

void process_end(int exit_code)
{
    struct shield shield;
    uintptr_t nobody = 0, self = arch_thread_pointer_sig();
    bool was_begun = atomic_load(&process.ender) && !atomic_load(&process.is_ended);
    if ((!process_is_ours_sig() && !was_begun) || (pid_t)own_pid_sig() != process.pid)
        return;
    shield_raise_sig(&shield);
    if (atomic_compare_exchange_strong(&process.ender, &nobody, self)) {
        end_recording(exit_code);
        atomic_store(&process.is_ended, true);
    } else if (nobody != self) {
        wait_for_end();
    }
    shield_lower_sig(&shield);
}

/* Registered first, so it comes after the program's own. */
static void process_quick_exit(void)
{
    process_end(0);
}

/* Runs before the constructors of all other objects (-z initfirst), so that their allocations are seen, and so that the
 * look-up of the real functions never happens inside a libc function that holds a lock and allocates (setlocale). */
__attribute__((constructor)) static void process_constructor(int argc, char **arguments, char **environment)
{
    int saved_errno = errno;
    process.arguments = arguments;
    process.environment = environment;
    process_find_launcher(argc, arguments);
    alloc_wrap_init();
    if (process_start_hook())
        (void)at_quick_exit(process_quick_exit);
    errno = saved_errno;
}

/* A second thread in exit() ends the process as soon as it finds nothing left to call. So while one is in our
 * destructor there is always this to call, again for the next one. */
static void wait_at_exit(void)
{
    if (atomic_load(&process.is_ended) || (pid_t)own_pid_sig() != process.pid ||
        atomic_fetch_add(&process.n_waiters, 1) >= END_WAITERS_MAX)
        return;
    (void)atexit(wait_at_exit);
    process_end(0);
}

__attribute__((destructor)) static void process_destructor(void)
{
    if (process_is_ours_sig() || atomic_load(&process.ender))
        wait_at_exit();
    process_end(0);
}
