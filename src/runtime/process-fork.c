/* SPDX-License-Identifier: BSD-3-Clause */
/* Following fork: the child goes on with a copy of its parent's arena under its own name, so that blocks allocated
 * before the fork keep their allocation paths; what the parent had counted stays the parent's. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/alloc-events.h"
#include "runtime/arena-writer.h"
#include "runtime/attach.h"
#include "runtime/objmap.h"
#include "runtime/process-internal.h"
#include "runtime/thread.h"

#define COPY_WAIT_MS 1000

/* The fork under way on this thread. Ours are the first handlers that were registered: so of all, libc calls them last
 * before the fork and first after it, and no code of the program meets the shield. */
static _Thread_local struct {
    struct shield shield;
    bool was_ours;                /* in the parent */
    _Atomic uint32_t *has_copied; /* shared with the child, when that is waited for */
} forking __attribute__((tls_model("initial-exec")));

/* Forked on top of code of ours that was changing the thread's trees, the child must find in its copy of the arena what
 * that code has in its registers: so the same thread of the parent goes on only when the copy has been made. */
static void prepare_to_wait(void)
{
    const struct thread_state *self = thread_self_sig();
    forking.has_copied = NULL;
    if (!self || !thread_is_half_way_sig(self))
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

/* The child has no arena of its own; what it was forked on top of may still write into the parent's. */
static void write_nowhere(void)
{
    uintptr_t low, high;
    arena_range_sig(&low, &high);
    if (!low) /* lost on the way to one of its own */
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
        else if (chunks[i].kind == ARENA_TRACE || chunks[i].kind == ARENA_PLACES || chunks[i].kind == ARENA_SKETCHES)
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
}

void process_follow_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
