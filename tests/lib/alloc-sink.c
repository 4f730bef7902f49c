/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording sink under the allocation wrappers, without a profiler: preloaded, it lets the wrappers be tested alone
 * on real programs. Keeps every live block in a table, checks the order of the events, and appends one line of counts
 * per process to $ALLOC_SINK_OUT. $ALLOC_SINK_MIN and $ALLOC_SINK_SAMPLE are the threshold and the sampling distance.
 * $ALLOC_SINK_SITES: blocks below the threshold are noted by their sites, all of which have one number. Runs inside the
 * program's malloc. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc-wrap/alloc-wrap.h"
#include "alloc-wrap/small-sites.h"
#include "runtime/objmap/small.h"

#define SLOTS (1u << 20)

/* One live block; address 0: free slot. */
struct sink_block {
    uintptr_t start;
    size_t n_bytes;
    uintptr_t site_pc;
    unsigned kind;
};

static struct {
    struct sink_block blocks[SLOTS];
    _Atomic uint8_t starts[1u << START_FILTER_BITS];
    struct start_filter filter;
    atomic_flag lock;
    unsigned n_blocks;
    _Atomic uint64_t n_alloc[5], n_release, n_resize, n_resize_failed, n_unmapped, n_skipped[ALLOC_SKIPS];
    _Atomic uint64_t n_overwritten; /* a block came where one was live: its release was missed */
    _Atomic uint64_t n_unknown;     /* release or end of resizing without a block */
    _Atomic uint64_t n_full;
    _Atomic int64_t n_inside; /* entered and not left */
    uint64_t min_bytes;
    bool is_child;
    char out[256], owner[4][256];
} sink_state = {.lock = ATOMIC_FLAG_INIT, .filter = {.counts = sink_state.starts, .shift = 7}};

static unsigned hash_address(uintptr_t p)
{
    return (unsigned)((p >> 4) * 0x9e3779b97f4a7c15ull >> 44);
}

static void lock_table(void)
{
    while (atomic_flag_test_and_set_explicit(&sink_state.lock, memory_order_acquire))
        (void)sched_yield();
}

static void unlock_table(void)
{
    atomic_flag_clear_explicit(&sink_state.lock, memory_order_release);
}

/* With the table locked. */
static void count_start(uintptr_t start, int change)
{
    _Atomic uint8_t *byte = start_filter_at(&sink_state.filter, start);
    *byte = change > 0 ? start_filter_with(*byte, start_filter_place(&sink_state.filter, start))
                       : start_filter_without(*byte);
}

static struct sink_block *find_slot(uintptr_t p)
{
    unsigned slot = hash_address(p);
    while (sink_state.blocks[slot].start && sink_state.blocks[slot].start != p)
        slot = (slot + 1) % SLOTS;
    return &sink_state.blocks[slot];
}

/* Closes the gap that a removed block leaves in its probe sequence. */
static void remove_slot(struct sink_block *block)
{
    unsigned hole = (unsigned)(block - sink_state.blocks);
    count_start(block->start, -1);
    sink_state.n_blocks--;
    for (unsigned next = (hole + 1) % SLOTS; sink_state.blocks[next].start; next = (next + 1) % SLOTS) {
        unsigned home = hash_address(sink_state.blocks[next].start);
        if ((next - home) % SLOTS >= (next - hole) % SLOTS) {
            sink_state.blocks[hole] = sink_state.blocks[next];
            hole = next;
        }
    }
    sink_state.blocks[hole].start = 0;
}

static void insert_block(unsigned kind, uintptr_t p, size_t n_bytes, uintptr_t site_pc)
{
    lock_table();
    struct sink_block *block = find_slot(p);
    if (block->start) {
        atomic_fetch_add(&sink_state.n_overwritten, 1);
    } else if (sink_state.n_blocks > SLOTS / 2) {
        atomic_fetch_add(&sink_state.n_full, 1);
        unlock_table();
        return;
    } else {
        count_start(p, 1);
        sink_state.n_blocks++;
    }
    *block = (struct sink_block){.start = p, .n_bytes = n_bytes, .site_pc = site_pc, .kind = kind};
    unlock_table();
}

static bool remove_block(uintptr_t p)
{
    lock_table();
    struct sink_block *block = find_slot(p);
    bool found = block->start != 0;
    if (found)
        remove_slot(block);
    unlock_table();
    return found;
}

/* A child of fork keeps the copied table, but records nothing new. */
static bool sink_ready(void)
{
    return !sink_state.is_child;
}

static void sink_in_child(void)
{
    sink_state.is_child = true;
}

static void sink_alloc(enum alloc_kind kind, void *p, size_t n_bytes, double weight, const struct alloc_site *site)
{
    atomic_fetch_add(&sink_state.n_alloc[kind], 1);
    (void)weight;
    insert_block(kind, (uintptr_t)p, n_bytes, site->pc);
}

static bool sink_maybe_recorded(const void *p)
{
    return start_filter_has(&sink_state.filter, (uintptr_t)p);
}

static void sink_release(enum alloc_kind kind, void *p)
{
    (void)kind;
    if (remove_block((uintptr_t)p))
        atomic_fetch_add(&sink_state.n_release, 1);
}

static bool sink_resize_begin(void *p)
{
    lock_table();
    bool found = find_slot((uintptr_t)p)->start != 0;
    unlock_table();
    return found;
}

static void sink_resize_done(void *old_p, void *new_p, size_t n_bytes, const struct alloc_site *site)
{
    atomic_fetch_add(&sink_state.n_resize, 1);
    if (!remove_block((uintptr_t)old_p))
        atomic_fetch_add(&sink_state.n_unknown, 1);
    if (n_bytes >= sink_state.min_bytes && site)
        insert_block(ALLOC_HEAP, (uintptr_t)new_p, n_bytes, site->pc);
}

static void sink_resize_failed(void *old_p)
{
    atomic_fetch_add(&sink_state.n_resize_failed, 1);
    if (!sink_resize_begin(old_p))
        atomic_fetch_add(&sink_state.n_unknown, 1);
}

static void sink_unmapped(void *p, size_t n_bytes)
{
    (void)n_bytes;
    atomic_fetch_add(&sink_state.n_unmapped, 1);
    (void)remove_block((uintptr_t)p);
}

static void sink_inside(bool entering)
{
    atomic_fetch_add(&sink_state.n_inside, entering ? 1 : -1);
}

static void sink_mapped_file(void *p, size_t n_bytes, int fd, const struct alloc_site *site)
{
    (void)fd;
    sink_alloc(ALLOC_FILE, p, n_bytes, 1, site);
}

static void sink_skipped(enum alloc_skip reason)
{
    atomic_fetch_add(&sink_state.n_skipped[reason], 1);
}

/* The first caller that hashes to a slot has it for good; of the others each block is noted here. */
static void sink_small(void *p, size_t n_bytes, const struct alloc_site *site)
{
    struct small_slot *slot = &small_state_sig()->slots[small_slot_at(site ? site->pc : 0, 0)];
    uint64_t none = 0;
    if (site && atomic_compare_exchange_strong(&slot->key, &none, site->pc)) {
        small_code_hook(1, 1);
        atomic_store(&slot->cells, small_cells_sig(1));
        atomic_store(&slot->min_bytes, 1);
        atomic_store(&slot->n_sizes, SMALL_BYTES_MAX);
    }
    small_note_hook(p, n_bytes, 1);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

__attribute__((constructor)) static void sink_start(void)
{
    static struct alloc_sink sink = {
        .ready = sink_ready,
        .alloc = sink_alloc,
        .maybe_recorded = sink_maybe_recorded,
        .release = sink_release,
        .resize_begin = sink_resize_begin,
        .resize_done = sink_resize_done,
        .resize_failed = sink_resize_failed,
        .unmapped = sink_unmapped,
        .inside = sink_inside,
        .mapped_file = sink_mapped_file,
        .skipped = sink_skipped,
        .small = sink_small,
        .small_note = small_note_cells_hook,
        .filter = &sink_state.filter,
    };
    const char *out = getenv("ALLOC_SINK_OUT");
    if (out)
        (void)snprintf(sink_state.out, sizeof sink_state.out, "%s", out);
    (void)pthread_atfork(NULL, NULL, sink_in_child);
    sink_state.min_bytes = number_of("ALLOC_SINK_MIN", 1024);
    if (getenv("ALLOC_SINK_SITES") && small_shadow_init_hook())
        sink.small_sites = small_sites_sig();
    alloc_wrap_owners(sink_state.owner);
    alloc_wrap_connect(&sink, sink_state.min_bytes, number_of("ALLOC_SINK_SAMPLE", 0));
}

/* For test programs, which find it with dlsym: blocks reported, blocks released, live blocks, inside() entered and not
 * left. */
__attribute__((visibility("default"))) void alloc_sink_counts(uint64_t counts[4]);

void alloc_sink_counts(uint64_t counts[4])
{
    counts[0] = sink_state.n_alloc[ALLOC_HEAP];
    counts[1] = sink_state.n_release;
    counts[2] = sink_state.n_blocks;
    counts[3] = (uint64_t)sink_state.n_inside;
}

static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!*path)
        return "ours";
    return slash ? slash + 1 : path;
}

/* A fork child that ends without exec also writes its line; its counts include the parent's until then. */
__attribute__((destructor)) static void sink_stop(void)
{
    char line[1600];
    if (!sink_state.out[0])
        return;
    alloc_wrap_guard_enter();
    int len = snprintf(
        line, sizeof line,
        "exe=%s heap=%lu mmap=%lu file=%lu shm=%lu brk=%lu released=%lu resized=%lu resize_failed=%lu unmapped=%lu "
        "live=%u overwritten=%lu unknown=%lu full=%lu inside=%ld nested=%lu early=%lu reentered=%lu malloc=%s free=%s "
        "new=%s delete=%s\n",
        program_invocation_short_name, sink_state.n_alloc[0], sink_state.n_alloc[1], sink_state.n_alloc[2],
        sink_state.n_alloc[3], sink_state.n_alloc[4], sink_state.n_release, sink_state.n_resize,
        sink_state.n_resize_failed, sink_state.n_unmapped, sink_state.n_blocks, sink_state.n_overwritten,
        sink_state.n_unknown, sink_state.n_full, sink_state.n_inside, sink_state.n_skipped[ALLOC_SKIP_NESTED],
        sink_state.n_skipped[ALLOC_SKIP_EARLY], sink_state.n_skipped[ALLOC_SKIP_REENTERED],
        short_name(sink_state.owner[0]), short_name(sink_state.owner[1]), short_name(sink_state.owner[2]),
        short_name(sink_state.owner[3]));
    int fd = open(sink_state.out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)!write(fd, line, (size_t)len);
        (void)close(fd);
    }
    alloc_wrap_guard_leave();
}
