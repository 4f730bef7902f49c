/* SPDX-License-Identifier: BSD-3-Clause */
/* The zone of the profiler's memory; see zone.h. Raw system calls. Used in the handler, in malloc hooks and at the
 * start. */
#include "runtime/own/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/own/own-call.h"
#include "base/sigsafe.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PART_BYTES ((uintptr_t)1 << 35) /* address space for each file, for the tables and for private memory */
#define PARTS 4
#define PART_TABLES 2
#define PART_PRIVATE 3
#define PAGE_BYTES_MAX ((uintptr_t)65536)
#define STEP_BYTES ((uint64_t)1 << 20)
#define AHEAD_BYTES (STEP_BYTES / 2) /* growing begins when less is left, so that other threads still have room */
#define TRIES 100 /* of 10 ms, while another thread grows the file: on a busy machine that may take long */
#define NO_ZONE ((uintptr_t)1)
#define FAILED_ABOVE ((uintptr_t)-4096)
#define UNLIMITED UINT64_MAX
#define SKIPS_MAX 4096u
#define RESERVE_BYTES ((uint64_t)8 << 20)

struct shared_file {
    char *base;
    uint64_t size_bytes;
    _Atomic uint64_t mapped_bytes;
    _Atomic int growing; /* enum growing, a futex */
};

enum growing { GROWN = 0, GROWING, AWAITED };

static struct {
    _Atomic uintptr_t base; /* 0: not yet known */
    struct shared_file files[ZONE_FILES];
    _Atomic uint64_t table_bytes, private_bytes; /* handed out */
    _Atomic bool is_locking;
    uint64_t page_bytes; /* 0: the limits of the program are not looked at */
    void (*say)(const char *text);
    _Atomic bool is_said;
    uintptr_t reserve;
    _Atomic uint64_t reserve_bytes; /* what is left of it, at its end */
    _Atomic unsigned n_refusals;    /* since the last mapping */
    _Atomic unsigned n_skips;       /* requests that are refused before the kernel is asked again */
} zone;

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static void *map_sig(uintptr_t at, size_t n_bytes, int protection, int flags, int fd)
{
    uintptr_t p = (uintptr_t)own_mmap_sig((const void *)at, n_bytes, protection, flags, fd, 0L);
    return p > FAILED_ABOVE ? NULL : (void *)p;
}

/* --- the program's limits --- */

void zone_begin_sig(size_t page_bytes, void (*say)(const char *text))
{
    zone.page_bytes = page_bytes;
    zone.say = say;
    atomic_store(&zone.is_said, false);
    atomic_store(&zone.n_refusals, 0);
    atomic_store(&zone.n_skips, 0);
}

static uint64_t limit_sig(int resource)
{
    struct rlimit limit;
    bool is_known = own_call_sig(SYS_prlimit64, 0, resource, NULL, &limit) == 0;
    return is_known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UNLIMITED;
}

/* Fills what counts against RLIMIT_AS and against RLIMIT_DATA: the first and the sixth number of statm, see proc(5).
 * The latter includes the stack, which does not count. */
static bool usage_sig(uint64_t *space_bytes, uint64_t *data_bytes)
{
    enum { SPACE = 0, DATA = 5, N_FIELDS };
    uint64_t n_pages[N_FIELDS + 1] = {0};
    char text[128];
    int field = 0, fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long n_read = own_call_sig(SYS_read, fd, text, sizeof text);
    own_call_sig(SYS_close, fd);
    for (long i = 0; i < n_read && field < N_FIELDS; i++) {
        field += text[i] == ' ';
        if (text[i] >= '0' && text[i] <= '9')
            n_pages[field] = n_pages[field] * 10 + (uint64_t)(text[i] - '0');
    }
    *space_bytes = n_pages[SPACE] * zone.page_bytes;
    *data_bytes = n_pages[DATA] * zone.page_bytes;
    return field == N_FIELDS;
}

static uint64_t less_sig(uint64_t limit, uint64_t used)
{
    return limit == UNLIMITED ? UNLIMITED : limit > used ? limit - used : 0;
}

/* How much the program may still map: of data, or of what is no data. 0 where that is limited but not known. */
static uint64_t room_sig(bool is_data)
{
    uint64_t space = limit_sig(RLIMIT_AS), data = is_data ? limit_sig(RLIMIT_DATA) : UNLIMITED;
    uint64_t used_space, used_data;
    if (space == UNLIMITED && data == UNLIMITED)
        return UNLIMITED;
    if (!usage_sig(&used_space, &used_data))
        return 0;
    space = less_sig(space, used_space);
    data = less_sig(data, used_data);
    return space < data ? space : data;
}

bool zone_leaves_room_sig(uint64_t n_bytes)
{
    int saved_errno = errno;
    bool leaves_room = !zone.page_bytes || room_sig(true) >= n_bytes;
    errno = saved_errno;
    return leaves_room;
}

/* Whether a mapping can take the place of a part of the reserve, which is then unmapped. The end of it goes last, so
 * that the next mapping, which follows it, can grow out of it. */
static bool takes_reserve_sig(uint64_t n_bytes)
{
    uint64_t n = round_up(n_bytes, PAGE_BYTES_MAX), left = atomic_load(&zone.reserve_bytes);
    while (left >= n)
        if (atomic_compare_exchange_weak(&zone.reserve_bytes, &left, left - n)) {
            own_call_sig(SYS_munmap, zone.reserve + RESERVE_BYTES - left, n);
            return true;
        }
    return false;
}

/* Refusals may be as frequent as blocks and samples: the more there are in a row, the more are made without asking. */
__attribute__((noinline, cold)) static void refuse_sig(void)
{
    unsigned n = atomic_fetch_add(&zone.n_refusals, 1);
    atomic_store(&zone.n_skips, n > 12 ? SKIPS_MAX : (1u << n) - 1);
    if (zone.say && !atomic_exchange(&zone.is_said, true))
        zone.say("the program's limit of address space or data (ulimit -v, -d) is nearly reached: the rest is left to "
                 "the program, and what needs more memory for its record is not recorded");
}

/* Uses up one of the requests that are refused without asking; false when none is left. */
static bool use_skip_sig(void)
{
    unsigned n_skips = atomic_load_explicit(&zone.n_skips, memory_order_relaxed);
    if (n_skips)
        atomic_store_explicit(&zone.n_skips, n_skips - 1, memory_order_relaxed);
    return n_skips > 0;
}

/* Whether a mapping of n_bytes leaves the program enough. */
static bool may_map_sig(uint64_t n_bytes, bool is_data)
{
    if (!zone.page_bytes || takes_reserve_sig(n_bytes))
        return true;
    if (use_skip_sig())
        return false;
    uint64_t room = room_sig(is_data);
    bool may = room >= ZONE_LEFT_BYTES && n_bytes <= room - ZONE_LEFT_BYTES;
    if (!may)
        refuse_sig();
    else if (atomic_load_explicit(&zone.n_refusals, memory_order_relaxed))
        atomic_store_explicit(&zone.n_refusals, 0, memory_order_relaxed);
    return may;
}

/* --- mappings --- */

/* Maps at exactly this address if nothing is there; older kernels treat the address as a hint. */
static void *map_at_sig(uintptr_t at, size_t n_bytes, int protection, int flags, int fd)
{
    void *p = map_sig(at, n_bytes, protection, flags | MAP_FIXED_NOREPLACE, fd);
    if (!p || (uintptr_t)p == at)
        return p;
    own_call_sig(SYS_munmap, p, n_bytes);
    return NULL;
}

/* The kernel maps from the top of the address space down. Halfway is far from there, and below the addresses that
 * programs choose for themselves. */
static uintptr_t base_sig(void)
{
    uintptr_t base = atomic_load_explicit(&zone.base, memory_order_relaxed), none = 0;
    if (base)
        return base == NO_ZONE ? 0 : base;
    void *probe = map_sig(0, PAGE_BYTES_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (probe)
        own_call_sig(SYS_munmap, probe, PAGE_BYTES_MAX);
    base = (uintptr_t)probe / 2 / PART_BYTES * PART_BYTES;
    if (base < PART_BYTES || base + (PARTS + 1) * PART_BYTES > (uintptr_t)probe)
        base = NO_ZONE;
    if (!atomic_compare_exchange_strong(&zone.base, &none, base))
        base = none;
    return base == NO_ZONE ? 0 : base;
}

void zone_range_sig(uintptr_t *low, uintptr_t *high)
{
    *low = base_sig();
    *high = *low ? *low + PARTS * PART_BYTES : 0;
}

void zone_set_locking_sig(bool is_locking)
{
    atomic_store(&zone.is_locking, is_locking);
}

bool zone_is_locking_sig(void)
{
    return atomic_load_explicit(&zone.is_locking, memory_order_relaxed);
}

/* A mapping grows without its descriptor. Growing does not lock a mapping that is not locked. */
static bool grow_sig(uintptr_t end, uint64_t n_bytes)
{
    uintptr_t last = end - PAGE_BYTES_MAX;
    return (uintptr_t)own_call_sig(SYS_mremap, last, PAGE_BYTES_MAX, PAGE_BYTES_MAX + n_bytes, 0) == last;
}

static void unlock_sig(void *p, size_t n_bytes)
{
    if (p && zone_is_locking_sig())
        own_call_sig(SYS_munlock, p, n_bytes);
}

/* Unmaps the rest of an earlier mapping, including what another thread of the parent had just added to it. */
static void unmap_shared(struct shared_file *file)
{
    uint64_t n_bytes = atomic_load(&file->mapped_bytes);
    if (!file->base)
        return;
    if (atomic_load(&file->growing) != GROWN)
        n_bytes += 2 * STEP_BYTES + n_bytes / 8;
    own_call_sig(SYS_munmap, file->base, n_bytes);
}

static void *share_window(struct shared_file *file, uintptr_t at, int fd, int protection, uint64_t first_bytes)
{
    uint64_t n_bytes = round_up(first_bytes < STEP_BYTES ? STEP_BYTES : first_bytes, PAGE_BYTES_MAX);
    if (!at || n_bytes >= file->size_bytes)
        return NULL;
    if (!map_at_sig(at, n_bytes - PAGE_BYTES_MAX, protection, MAP_SHARED | MAP_NORESERVE, fd))
        return NULL;
    if (grow_sig(at + n_bytes - PAGE_BYTES_MAX, PAGE_BYTES_MAX)) {
        atomic_store(&file->mapped_bytes, n_bytes);
        return (void *)at;
    }
    own_call_sig(SYS_munmap, at, n_bytes - PAGE_BYTES_MAX);
    return NULL;
}

void *zone_share_sig(enum zone_file which, int fd, uint64_t size_bytes, int protection, uint64_t first_bytes)
{
    struct shared_file *file = &zone.files[which];
    int saved_errno = errno;
    char *before = file->base;
    uint64_t mapped_before = atomic_load(&file->mapped_bytes);
    uintptr_t at = base_sig() ? base_sig() + (uintptr_t)which * PART_BYTES : 0;
    if (before && first_bytes < mapped_before)
        first_bytes = mapped_before;
    unmap_shared(file);
    file->size_bytes = size_bytes;
    atomic_store(&file->growing, GROWN);
    file->base = size_bytes <= PART_BYTES ? share_window(file, at, fd, protection, first_bytes) : NULL;
    if (!file->base) {
        /* References into a file must survive the change of files, so the address stays. */
        file->base = before ? map_at_sig((uintptr_t)before, size_bytes, protection, MAP_SHARED | MAP_NORESERVE, fd)
                            : map_sig(0, size_bytes, protection, MAP_SHARED | MAP_NORESERVE, fd);
        atomic_store(&file->mapped_bytes, file->base ? size_bytes : 0);
    }
    if (file->base) { /* a mapping that grows stays out of core files */
        own_call_sig(SYS_madvise, file->base, atomic_load(&file->mapped_bytes), MADV_DONTDUMP);
        unlock_sig(file->base, atomic_load(&file->mapped_bytes));
    } else if (before) { /* code that the fork interrupted may still write to the parent's */
        (void)map_at_sig((uintptr_t)before, mapped_before, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    }
    errno = saved_errno;
    return file->base;
}

/* Grows a file to hold n_bytes and room for more, or where that is refused at least n_bytes. */
static void extend_sig(struct shared_file *file, uint64_t n_bytes)
{
    uint64_t mapped = atomic_load(&file->mapped_bytes), size = file->size_bytes;
    uint64_t wanted = round_up((n_bytes > mapped ? n_bytes : mapped) + STEP_BYTES + mapped / 8, PAGE_BYTES_MAX);
    for (int tries = 0; tries < 2 && wanted > mapped; tries++) {
        if (wanted > size)
            wanted = size;
        if (may_map_sig(wanted - mapped, false) && grow_sig((uintptr_t)file->base + mapped, wanted - mapped)) {
            atomic_store_explicit(&file->mapped_bytes, wanted, memory_order_release);
            return;
        }
        wanted = round_up(n_bytes, PAGE_BYTES_MAX);
    }
}

/* Sleeps until the file has grown; thousands of threads that looked again and again would leave no CPU time to the one
 * that grows it. True when the caller shall grow it. */
static bool await_growth_sig(struct shared_file *file, uint64_t n_bytes)
{
    const struct timespec limit = {.tv_nsec = 10000000};
    for (int tries = 0; tries < TRIES && n_bytes > atomic_load(&file->mapped_bytes); tries++) {
        if (atomic_exchange(&file->growing, AWAITED) == GROWN)
            return true;
        if (own_call_sig(SYS_futex, &file->growing, FUTEX_WAIT_PRIVATE, AWAITED, &limit) != 0 && errno != EAGAIN &&
            errno != EINTR && errno != ETIMEDOUT)
            own_call_sig(SYS_sched_yield);
    }
    return false;
}

static void end_growth_sig(struct shared_file *file)
{
    if (atomic_exchange(&file->growing, GROWN) == AWAITED)
        own_call_sig(SYS_futex, &file->growing, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* Blocks all signals meanwhile, so that a thread that grows a file finishes and no handler on it starts the same. A
 * caller that cannot go on without the room waits a little for another thread; a caller that only grows ahead does not.
 */
static void grow_once_sig(struct shared_file *file, uint64_t n_bytes)
{
    struct shield shield;
    int grown = GROWN;
    shield_raise_sig(&shield);
    if (atomic_compare_exchange_strong(&file->growing, &grown, GROWING) || await_growth_sig(file, n_bytes)) {
        if (n_bytes + AHEAD_BYTES > atomic_load(&file->mapped_bytes))
            extend_sig(file, n_bytes);
        end_growth_sig(file);
    }
    shield_lower_sig(&shield);
}

bool zone_reach_sig(enum zone_file which, uint64_t n_bytes)
{
    struct shared_file *file = &zone.files[which];
    uint64_t mapped = atomic_load_explicit(&file->mapped_bytes, memory_order_acquire), size = file->size_bytes;
    if (!file->base || mapped >= size)
        return n_bytes <= mapped || !file->base;
    if (n_bytes + AHEAD_BYTES <= mapped)
        return true;
    if (n_bytes <= size && !use_skip_sig())
        grow_once_sig(file, n_bytes);
    return n_bytes <= atomic_load_explicit(&file->mapped_bytes, memory_order_acquire);
}

void zone_reach_all_sig(void)
{
    for (int i = 0; i < ZONE_FILES; i++)
        if (zone.files[i].base)
            (void)zone_reach_sig((enum zone_file)i, zone.files[i].size_bytes);
}

/* Takes the next n_bytes of a part, beginning at a multiple of unit; 0 when there is no room. */
static uintptr_t take_sig(_Atomic uint64_t *n_taken, int part, size_t n_bytes, uint64_t unit)
{
    uintptr_t base = base_sig();
    uint64_t n = round_up(n_bytes, PAGE_BYTES_MAX), taken = atomic_load(n_taken), at;
    do {
        at = round_up(taken, unit);
        if (!base || n >= PART_BYTES || at + n >= PART_BYTES)
            return 0;
    } while (!atomic_compare_exchange_weak(n_taken, &taken, at + n));
    return base + (uintptr_t)part * PART_BYTES + at;
}

void *zone_pages_sig(size_t n_bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, saved_errno = errno;
    size_t n = round_up(n_bytes, PAGE_BYTES_MAX);
    bool may_map = may_map_sig(n, true);
    uintptr_t at = may_map ? take_sig(&zone.private_bytes, PART_PRIVATE, n, PAGE_BYTES_MAX) : 0;
    void *p = NULL;
    /* Memory added by growing does not count against the limit of a program that locks all future mappings. */
    if (at && zone_is_locking_sig() && grow_sig(at, n))
        return (void *)at;
    if (at)
        p = map_at_sig(at, n, PROT_READ | PROT_WRITE, flags, -1);
    if (!p && may_map)
        p = map_sig(0, n, PROT_READ | PROT_WRITE, flags, -1);
    unlock_sig(p, n);
    errno = saved_errno;
    return p;
}

void *zone_large_sig(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, saved_errno = errno;
    bool may_map = !zone_is_locking_sig() && (!zone.page_bytes || room_sig(true) == UNLIMITED);
    uintptr_t at = may_map ? take_sig(&zone.private_bytes, PART_PRIVATE, ZONE_LARGE_BYTES, ZONE_LARGE_BYTES) : 0;
    void *p = at ? map_at_sig(at, ZONE_LARGE_BYTES, PROT_READ | PROT_WRITE, flags, -1) : NULL;
    if (p)
        own_call_sig(SYS_madvise, p, ZONE_LARGE_BYTES, MADV_HUGEPAGE);
    errno = saved_errno;
    return p;
}

void zone_reserve_sig(void)
{
    if (zone.reserve || room_sig(true) == UNLIMITED)
        return;
    zone.reserve = (uintptr_t)zone_pages_sig(RESERVE_BYTES);
    atomic_store(&zone.reserve_bytes, zone.reserve ? RESERVE_BYTES : 0);
}

void *zone_map_file_sig(int fd, size_t n_bytes)
{
    int saved_errno = errno;
    bool may_map = may_map_sig(round_up(n_bytes, PAGE_BYTES_MAX), false);
    uintptr_t at = may_map ? take_sig(&zone.table_bytes, PART_TABLES, n_bytes, PAGE_BYTES_MAX) : 0;
    void *p = at ? map_at_sig(at, n_bytes, PROT_READ, MAP_PRIVATE, fd) : NULL;
    if (!p && may_map)
        p = map_sig(0, n_bytes, PROT_READ, MAP_PRIVATE, fd);
    unlock_sig(p, n_bytes);
    errno = saved_errno;
    return p;
}

void zone_release_sig(uint64_t arena_bytes)
{
    uintptr_t base = base_sig();
    int saved_errno = errno;
    if (!base)
        return;
    for (int i = 0; i < ZONE_FILES; i++) {
        struct shared_file *file = &zone.files[i];
        uint64_t mapped = atomic_load(&file->mapped_bytes), kept = i == ZONE_ARENA ? arena_bytes : 0;
        kept = round_up(kept, PAGE_BYTES_MAX);
        if (!file->base || mapped <= kept || (uintptr_t)file->base != base + (uintptr_t)i * PART_BYTES)
            continue;
        own_call_sig(SYS_munmap, file->base + kept, mapped - kept);
        atomic_store(&file->mapped_bytes, kept);
        file->size_bytes = kept;
    }
    atomic_store(&zone.reserve_bytes, 0);
    own_call_sig(SYS_munmap, base + PART_TABLES * PART_BYTES, atomic_load(&zone.table_bytes));
    own_call_sig(SYS_munmap, base + PART_PRIVATE * PART_BYTES, atomic_load(&zone.private_bytes));
    errno = saved_errno;
}
