/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, fork and end of the profiled process, and its description in the arena's header. Ordinary code, without malloc
 * and stdio. */
#include "runtime/process/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "alloc-wrap/alloc-wrap.h"
#include "base/environment.h"
#include "runtime/allocs/alloc-events.h"
#include "runtime/objmap/objmap.h"
#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/thread.h"

/* --- start and end --- */

/* Start and end of the profiled process. Ordinary code, but it may run inside the first malloc of a program, before any
 * constructor. So it uses no malloc and no stdio, and marks what the library allocates for it as our own. */

#define END_WAITERS_MAX 64
#define EXITS 4           /* so many threads may call exit() at the same instant */
#define END_WAIT_MS 20000 /* the first thread may wait COMPANION_END_WAIT_MS each for room and for the answer */

static struct {
    _Atomic bool is_tried;   /* the start has been attempted */
    _Atomic uintptr_t ender; /* thread pointer of the thread that ends the process, 0 none */
    _Atomic bool is_ended;   /* it has ended it */
    _Atomic int n_waiters;   /* handlers registered at exit */
    pid_t pid;
    char **arguments, **environment; /* as given to the constructor */
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
const char *process_reason_not_to_measure(bool *is_of_samples)
{
    const char *preloaded = process_environment("LD_PRELOAD");
    *is_of_samples = preloaded && strstr(preloaded, "vgpreload_");
    if (*is_of_samples)
        return "it runs under Valgrind, and samples would show Valgrind's simulation";
    if (__tsan_init)
        return "it is built with ThreadSanitizer, which would report our work as data races of the program";
    if (__msan_init)
        return "it is built with MemorySanitizer, which would report memory that we write as uninitialised";
    return NULL;
}

/* The name by which the program was started (argv[0]), NULL before the constructor has run.  ctx: ordinary */
static const char *process_argument(void)
{
    return process.arguments ? process.arguments[0] : NULL;
}

/* Makes this process the owner of the arena; false when the kernel cannot wipe the word in children.  ctx: ordinary */
static bool process_own(void)
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

static void process_follow_forks(void);

/* Does everything between attaching the arena and the first sample. */
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
    bool is_attached = attach_start(), is_started = is_attached && start_recording();
    if (is_attached && !is_started)
        attach_give_up(ENOMEM);
    if (is_started)
        zone_reserve_sig();
    DEBUG_NOTE_SIG(DEBUG_PROCESS, 1, is_started ? "process starts" : "process is not measured",
                   {"pid", own_pid_sig(), NULL});
    process_set_running_sig(is_started);
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
    altstack_begin();
    return is_started;
}

/* Two threads may end the process at once: the later one waits as long as the companion may take. */
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
    DEBUG_NOTE_SIG(DEBUG_PROCESS, 1, "process ends",
                   {"exit_code", (uint32_t)exit_code, exit_code ? NULL : "not known"});
    alloc_events_end();
    /* Where a filter does not let a process read its own pid, a child of vfork could not tell that it is not this
     * process. */
    if (atomic_load(&header->is_replaced) == EXEC_UNMEASURED)
        arena_note_child_sig(CHILD_SANDBOXED, 0, header->replaced_by);
    atomic_store(&header->exit_code, (uint32_t)exit_code);
    atomic_store(&header->end_ns, own_clock_ns_sig(CLOCK_REALTIME));
    atomic_store(&header->state, ARENA_ENDED);
    attach_end(exit_code);
    alloc_wrap_guard_leave();
}

/* is_last: the process ends as soon as this returns, and the other threads do nothing any more. */
static void end(int exit_code, bool is_last)
{
    struct shield shield;
    uintptr_t nobody = 0, self = arch_thread_pointer_sig();
    bool is_ours = process_is_ours_sig(); /* asked first: no longer true when the end has begun meanwhile */
    bool was_begun = atomic_load(&process.ender) && !atomic_load(&process.is_ended);
    if ((!is_ours && !was_begun) || (pid_t)own_pid_sig() != process.pid)
        return;
    shield_raise_sig(&shield);
    if (atomic_compare_exchange_strong(&process.ender, &nobody, self)) {
        end_recording(exit_code);
        if (!is_last)
            thread_release_others_sig();
        atomic_store(&process.is_ended, true);
    } else if (nobody != self) {
        wait_for_end();
    }
    shield_lower_sig(&shield);
}

void process_end(int exit_code)
{
    end(exit_code, false);
}

void process_end_for_good(int exit_code)
{
    end(exit_code, true);
}

void process_leave(void)
{
    struct shield shield;
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    struct arena_header *header = arena_header_sig();
    thread_leave_all();
    process_set_running_sig(false);
    alloc_wrap_connect(NULL, 0, 0);
    alloc_events_end();
    atomic_store(&header->end_ns, own_clock_ns_sig(CLOCK_REALTIME));
    atomic_store(&header->state, ARENA_ENDED);
    attach_leave();
    atomic_store(&process.is_ended, true);
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
}

/* Workers of a pool that a library makes at the first parallel region belong to no one place of the program: each
 * region that they work for begins elsewhere. What opens one is wrapped for some of these libraries: a worker then
 * learns what it works for, and until it begins, it waits for what made it. */
enum pool { POOL_NONE, POOL_LIBGOMP, POOL_LIBOMP, POOL_TBB };

/* The library that a thread begins in, if its threads are such workers. */
static enum pool pool_of(uintptr_t start)
{
    static const struct {
        const char *name; /* a file's name begins so */
        enum pool pool;
    } libraries[] = {
        {"libgomp", POOL_LIBGOMP}, {"libomp", POOL_LIBOMP}, {"libiomp", POOL_LIBOMP}, {"libtbb", POOL_TBB}};
    const struct loadmap_module *module = loadmap_find_sig(start);
    const char *name = module && module->name ? module->name : "";
    for (const char *p = name; *p; p++)
        name = *p == '/' ? p + 1 : name;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strncmp(name, libraries[i].name, strlen(libraries[i].name)) == 0)
            return libraries[i].pool;
    return POOL_NONE;
}

void process_note_creator(struct thread_state *state, struct thread_state *self, uintptr_t start,
                          const struct alloc_site *site)
{
    alloc_wrap_guard_enter();
    uint32_t n_open = self->regions.n_open;
    enum pool pool = pool_of(start);
    /* oneTBB's workers work for any region, not only for the one in which they were made. */
    bool is_creator_known = pool == POOL_NONE || (n_open && pool != POOL_TBB);
    state->creator = is_creator_known ? alloc_events_creator(self, site) : 0;
    /* In libgomp each thread that opens regions has a pool of its own, and nested regions have theirs. */
    if (n_open && pool == POOL_LIBGOMP) {
        state->maker = self;
        state->maker_depth = n_open;
    } else if (pool == POOL_LIBOMP || pool == POOL_TBB) {
        state->maker = work_sole_sig();
        state->maker_depth = 1;
        state->maker_is_guess = pool == POOL_TBB;
    }
    alloc_wrap_guard_leave();
}

#define TASKS_MAX 500      /* that are noted between two samples of a thread: one takes some 60 ns */
#define TASK_STACK_PART 16 /* of a thread's stack: where more is used, a task takes only what it takes by itself */

/* Whether a task that the thread makes at sp may be noted: the program goes on as fast as before, and as deep. */
static bool may_note_task(struct thread_state *self, uintptr_t sp)
{
    const struct unwind_bounds *stack = &self->bounds;
    const struct arena_thread *record = self->record;
    uint64_t n_taken = record ? atomic_load_explicit(&record->taken[0], memory_order_relaxed) : 0;
    if (n_taken != self->regions.n_taken)
        self->regions.n_tasks = 0;
    self->regions.n_taken = n_taken;
    return self->regions.n_tasks++ < TASKS_MAX && sp > stack->low && sp < stack->high &&
           stack->high - sp < (stack->high - stack->low) / TASK_STACK_PART;
}

struct thread_task process_make_task(const struct alloc_site *site)
{
    struct thread_state *self = thread_self_sig();
    struct thread_task task = {0};
    if (self && process_is_ours_sig() && may_note_task(self, site->sp))
        task.creator = alloc_events_task_creator(self, site);
    if (task.creator)
        task.pid = arena_header_sig()->pid;
    return task;
}

/* What is interrupted goes on later with what it has in its registers. And a handler's end sets the alternate stack
 * again that was there at its beginning. */
bool process_interrupts_us(struct thread_state *self, const struct alloc_site *site)
{
    if (thread_is_changing_trees_sig(self) || !thread_is_on_own_stack(self, site->sp, site->sp))
        return true;
    self->in_hook = 1;
    alloc_events_walk_hook(self, site);
    const struct unwind_path *path = &self->alloc_path;
    bool is_found = path->stop != UNWIND_COMPLETE;
    for (uint32_t i = 0; i < path->n_frames; i++)
        is_found |= path->frames[i].flags & UNWIND_FRAME_SIGNAL ||
                    loadmap_is_own_sig(loadmap_find_sig(path->frames[i].pc), path->frames[i].pc);
    self->in_hook = 0;
    return is_found;
}

/* The arena's header is read as long as the process lives. */
void process_withdraw(const char *why)
{
    struct shield shield;
    const struct thread_state *self = thread_self_sig();
    bool is_blocked = self && self->lacks_stack_room;
    arena_log_sig(why);
    process_end(0);
    if (is_blocked) /* there are no samples any more for which the stack is too small */
        mask_set_sig(mask_get_sig() & ~MASK_OURS);
    shield_raise_sig(&shield);
    alloc_wrap_connect(NULL, 0, 0);
    zone_release_sig(sizeof(struct arena_header));
    shield_lower_sig(&shield);
}

/* Registered first, so it runs after the program's own handlers. */
static void process_quick_exit(void)
{
    process_end(0);
}

/* A thread in exit() ends the process as soon as it finds no handler left to call, whatever another thread is doing:
 * that may be in exit() as well, in destructors of the program or in ours. So there are handlers of ours that are
 * called after all others, and each registers itself again for the next thread. Who calls one ends the process, or
 * waits for the thread that does. */
static void end_at_exit(void)
{
    if (atomic_load(&process.is_ended) || (pid_t)own_pid_sig() != process.pid ||
        atomic_fetch_add(&process.n_waiters, 1) >= END_WAITERS_MAX)
        return;
    (void)atexit(end_at_exit);
    process_end(0);
}

/* What the launcher had used before it became the program, and what the start of the runtime takes, is no time of the
 * program: 20 to 40 ms, nearly all in the kernel, which a short program's report would give to its system calls. What
 * the loader needs for our libraries stays in it, and the start of the first thread's events. */
static void leave_out_start(const struct thread_usage *begin)
{
    struct thread_usage now = thread_facts_now(), ours = attach_launcher_usage();
    if (ours.cpu_ns > begin->cpu_ns || ours.user_ns > begin->user_ns || ours.system_ns > begin->system_ns)
        ours = (struct thread_usage){0}; /* another process had the number */
    ours.cpu_ns += now.cpu_ns - begin->cpu_ns;
    ours.user_ns += now.user_ns - begin->user_ns;
    ours.system_ns += now.system_ns - begin->system_ns;
    ours.n_page_faults += now.n_page_faults - begin->n_page_faults;
    thread_leave_out(&ours);
}

/* Runs before the constructors of all other objects (-z initfirst), so that their allocations are recorded, and so that
 * the real functions are never looked up inside a libc function that holds a lock and allocates (setlocale). */
__attribute__((constructor)) static void process_constructor(int argc, char **arguments, char **environment)
{
    int saved_errno = errno;
    if (process_is_attached_sig()) /* then the launcher begins (process/late.h) */
        return;
    struct thread_usage begin = thread_facts_now();
    process.arguments = arguments;
    process.environment = environment;
    process_find_launcher(argc, arguments);
    alloc_wrap_init();
    for (int i = 0; process_start_hook() && i < EXITS; i++) {
        process_at_exit_last(end_at_exit);
        (void)at_quick_exit(process_quick_exit);
    }
    leave_out_start(&begin);
    thread_start_events_unshielded();
    errno = saved_errno;
}

__attribute__((destructor)) static void process_destructor(void)
{
    if (process_is_ours_sig() || atomic_load(&process.ender))
        end_at_exit();
    process_end(0);
}

/* --- the description in the arena's header --- */

static struct {
    bool is_from_mpi; /* MPI itself has given the rank */
    int rank;
} mpi;

/* Kept because programs overwrite their arguments: a child of fork has the name that its parent had at the start. */
static struct {
    char name[sizeof((struct arena_header *)0)->argv0];
} described;

int process_rank(void)
{
    return mpi.is_from_mpi ? mpi.rank : mpi_rank_of_environment(process_environment);
}

void process_take_rank(int rank, int size)
{
    bool is_alone = size == 1 && mpi_rank_of_environment(process_environment) >= 0;
    if (rank < 0 || size <= rank || is_alone)
        return;
    mpi.is_from_mpi = true;
    mpi.rank = rank;
    atomic_store(&arena_header_sig()->rank, (uint32_t)rank);
}

void process_describe(void)
{
    struct arena_header *header = arena_header_sig();
    ssize_t len = readlink("/proc/self/exe", header->exe, sizeof header->exe - 1);
    header->exe[len < 0 ? 0 : len] = '\0';
    const char *name = process_argument() && process_argument()[0] ? process_argument() : header->exe;
    if (strrchr(name, '/'))
        name = strrchr(name, '/') + 1;
    if (!described.name[0])
        memcpy(described.name, name, strnlen(name, sizeof described.name - 1));
    memset(header->argv0, 0, sizeof header->argv0);
    memcpy(header->argv0, described.name, strnlen(described.name, sizeof header->argv0 - 1));
    header->pid = own_pid_sig();
    header->parent_pid = (uint32_t)getppid();
    header->uid = (uint32_t)getuid();
    header->start_ns = own_clock_ns_sig(CLOCK_REALTIME);
    header->start_mono_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    header->page_bytes = (uint32_t)getauxval(AT_PAGESZ);
    placeholders_fill(header->placeholders);
    int rank = process_rank();
    atomic_store(&header->rank, (uint32_t)(rank < 0 ? 0 : rank));
}

/* --- fork --- */

/* A child of fork continues with a copy of its parent's arena under its own name, so that blocks allocated before the
 * fork keep their allocation paths. What the parent has counted remains the parent's. */

#define COPY_WAIT_MS 1000

/* The fork under way on this thread. Our handlers are registered first, so libc calls them last before the fork and
 * first after it, and no code of the program runs under the shield. */
static _Thread_local struct {
    struct shield shield;
    bool was_ours;                /* process_is_ours_sig() in the parent */
    _Atomic uint32_t *has_copied; /* shared with the child, if the parent waits for it */
} forking __attribute__((tls_model("initial-exec")));

/* If the fork interrupts code of the runtime that is changing the thread's trees, the child's copy of the arena must
 * match what that code has in its registers. So this thread of the parent continues only when the copy has been made.
 */
static void prepare_to_wait(void)
{
    const struct thread_state *self = thread_self_sig();
    forking.has_copied = NULL;
    if (!self || !thread_is_changing_trees_sig(self))
        return;
    void *page = (void *)own_mmap_sig(NULL, sizeof *forking.has_copied, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if ((uintptr_t)page < (uintptr_t)-4095)
        forking.has_copied = page;
}

static void wait_for_copy(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int waited_ms = 0; waited_ms < COPY_WAIT_MS && !atomic_load(forking.has_copied); waited_ms++)
        own_call_sig(SYS_nanosleep, &pause, NULL);
    own_call_sig(SYS_munmap, forking.has_copied, sizeof *forking.has_copied);
}

static void fork_prepare(void)
{
    forking.was_ours = process_is_ours_sig();
    if (!forking.was_ours)
        return;
    shield_raise_sig(&forking.shield);
    prepare_to_wait();
    objmap_fork_prepare_hook();
}

static void fork_parent(void)
{
    if (!forking.was_ours)
        return;
    objmap_fork_done_hook();
    if (forking.has_copied)
        wait_for_copy();
    shield_lower_sig(&forking.shield);
}

/* The child has no arena of its own, but code that the fork interrupted may still write to the parent's: maps private
 * memory there. */
static void write_nowhere(void)
{
    uintptr_t low, high;
    arena_range_sig(&low, &high);
    if (!low) /* already unmapped in the attempt to map the child's own */
        return;
    (void)own_mmap_sig((const void *)low, high - low, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void clear_hits(char *data, uint32_t used_bytes)
{
    struct arena_hit *hits = (void *)data;
    for (uint32_t i = 0; i < used_bytes / sizeof *hits; i++) {
        atomic_store(&hits[i].count, 0);
        atomic_store(&hits[i].weight, 0);
        atomic_store(&hits[i].latency, 0);
        atomic_store(&hits[i].n_offsets, 0);
        hits[i].lines = 0;
    }
}

static void clear_threads(char *data, uint32_t used_bytes)
{
    struct arena_thread *threads = (void *)data;
    for (uint32_t i = 0; i < used_bytes / sizeof *threads; i++) {
        memset(threads[i].taken, 0, sizeof *threads - offsetof(struct arena_thread, taken));
        threads[i].end_ns = threads[i].start_ns;
    }
}

static void clear_counts(void)
{
    struct arena_header *header = arena_header_sig();
    struct arena_chunk *chunks = (struct arena_chunk *)(void *)((char *)header + header->chunk_table_offset);
    uint32_t n_chunks = atomic_load(&header->n_chunks);
    if (n_chunks > header->chunk_limit)
        n_chunks = header->chunk_limit;
    for (uint32_t i = 0; i < n_chunks; i++) {
        char *data = (char *)header + header->chunk_data_offset + (uint64_t)i * ARENA_CHUNK_BYTES;
        uint32_t used_bytes = arena_run_used(&chunks[i], n_chunks - i);
        if (chunks[i].kind == ARENA_HITS)
            clear_hits(data, used_bytes);
        else if (chunks[i].kind == ARENA_THREADS)
            clear_threads(data, used_bytes);
        else if (chunks[i].kind == ARENA_TRACE || chunks[i].kind == ARENA_DEBUG || chunks[i].kind == ARENA_PLACES ||
                 chunks[i].kind == ARENA_SKETCHES || chunks[i].kind == ARENA_REACHES ||
                 chunks[i].kind == ARENA_MEETINGS)
            atomic_store(&chunks[i].used_bytes, 0);
    }
}

static void fork_child(void)
{
    if (!forking.was_ours)
        return;
    alloc_wrap_guard_enter();
    objmap_fork_done_hook();
    small_fork_child_hook();
    if (attach_fork_child() && process_own()) {
        clear_counts();
        thread_fork_child();
        control_fork_child();
        DEBUG_NOTE_SIG(DEBUG_PROCESS, 1, "process starts by fork", {"pid", own_pid_sig(), NULL});
    } else {
        process_set_running_sig(false);
        if (forking.has_copied)
            write_nowhere();
    }
    if (forking.has_copied)
        atomic_store(forking.has_copied, 1);
    alloc_wrap_guard_leave();
    shield_lower_sig(&forking.shield);
    altstack_begin();
    thread_start_events_unshielded();
}

/* Registers the handlers for fork.  ctx: ordinary, once */
static void process_follow_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
