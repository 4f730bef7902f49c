/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads meet: see meeting.h. Runs in the signal handler. */
#include "runtime/record/meeting.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/sample.h"
#include "base/sigsafe.h"

#define BOARD 64                     /* 2^6 */
#define AGE_NS (CLOCK_S_NS / 20)     /* of a use that is still worth watching for */
#define WATCH_NS (CLOCK_S_NS / 200)  /* that a watch lasts at least ... */
#define WATCH_MOST_NS (4 * WATCH_NS) /* ... and at most, when it waits for the other to come again */
#define WORD 8

/* --- the board --- */

/* A place of the board. Its members may be read while they are written: version tells, which is odd meanwhile. */
struct posted {
    _Atomic uint32_t version;
    _Atomic uint32_t thread, leaf;
    _Atomic uint32_t cpu_and_access; /* cpu, accesses << 16, bytes << 24 */
    _Atomic uint64_t address, var, t_ns;
};

static struct {
    struct posted board[BOARD];
} meetings;

static uint64_t line_sig(uint64_t address)
{
    return address / PATTERN_LINE_BYTES;
}

static unsigned place_sig(const struct meeting_use *use)
{
    uint64_t hash = (line_sig(use->address) ^ (uint64_t)use->thread << 40) * 0x9e3779b97f4a7c15u;
    return (unsigned)(hash >> 58);
}

static void put_sig(const struct meeting_use *use)
{
    struct posted *place = &meetings.board[place_sig(use)];
    uint32_t version = atomic_load_explicit(&place->version, memory_order_relaxed);
    if (version & 1 || !atomic_compare_exchange_strong(&place->version, &version, version + 1))
        return; /* another thread is writing there */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&place->thread, use->thread, memory_order_relaxed);
    atomic_store_explicit(&place->leaf, use->leaf, memory_order_relaxed);
    atomic_store_explicit(&place->cpu_and_access, use->cpu | (uint32_t)use->accesses << 16 | (uint32_t)use->bytes << 24,
                          memory_order_relaxed);
    atomic_store_explicit(&place->address, use->address, memory_order_relaxed);
    atomic_store_explicit(&place->var, use->var, memory_order_relaxed);
    atomic_store_explicit(&place->t_ns, use->t_ns, memory_order_relaxed);
    atomic_store_explicit(&place->version, version + 2, memory_order_release);
}

/* False: there is nothing, or it is being written. */
static bool get_sig(unsigned at, struct meeting_use *use)
{
    struct posted *place = &meetings.board[at];
    uint32_t version = atomic_load_explicit(&place->version, memory_order_acquire);
    if (!version || version & 1)
        return false;
    uint32_t access = atomic_load_explicit(&place->cpu_and_access, memory_order_relaxed);
    *use = (struct meeting_use){.address = atomic_load_explicit(&place->address, memory_order_relaxed),
                                .var = atomic_load_explicit(&place->var, memory_order_relaxed),
                                .t_ns = atomic_load_explicit(&place->t_ns, memory_order_relaxed),
                                .thread = atomic_load_explicit(&place->thread, memory_order_relaxed),
                                .leaf = atomic_load_explicit(&place->leaf, memory_order_relaxed),
                                .cpu = (uint16_t)access,
                                .accesses = (uint8_t)(access >> 16),
                                .bytes = (uint8_t)(access >> 24)};
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&place->version, memory_order_relaxed) == version;
}

void meeting_post_sig(struct thread_state *self, const struct meeting_use *use)
{
    struct thread_meetings *mine = &self->meetings;
    struct meeting_use posted = *use;
    posted.t_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    posted.thread = self->ref;
    mine->recent[mine->n_recent++ % MEETING_RECENT] = posted;
    put_sig(&posted);
}

void meeting_fork_child_sig(void)
{
    for (unsigned i = 0; i < BOARD; i++)
        atomic_store_explicit(&meetings.board[i].version, 0, memory_order_relaxed);
}

/* --- what to watch --- */

/* The newest use of the line by self, NULL when there is none; of bytes other than those of use if there is one. */
static const struct meeting_use *recent_sig(const struct thread_meetings *mine, const struct meeting_use *use)
{
    const struct meeting_use *found = NULL;
    for (uint32_t i = 1; i <= MEETING_RECENT && i <= mine->n_recent; i++) {
        const struct meeting_use *recent = &mine->recent[(mine->n_recent - i) % MEETING_RECENT];
        if (line_sig(recent->address) == line_sig(use->address) && (!found || found->address == use->address))
            found = recent;
    }
    return found;
}

/* The bytes of a use as a watchpoint can have them: at most a word, and aligned. */
static struct meeting_watch watch_of_sig(const struct meeting_use *use)
{
    uint8_t bytes = use->bytes;
    if (!bytes || bytes > WORD || bytes & (bytes - 1) || use->address & (bytes - 1u))
        bytes = WORD;
    return (struct meeting_watch){.address = use->address & ~(uint64_t)(bytes - 1u), .bytes = bytes};
}

static bool overlap_sig(const struct meeting_watch *a, const struct meeting_watch *b)
{
    return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

/* The other's bytes, and bytes beside them: those that self uses, or the words of the line in turn. Where the other
 * only reads, only stores matter. */
static void aim_sig(struct thread_meetings *mine)
{
    const struct meeting_use *target = &mine->target, *recent = recent_sig(mine, target);
    struct meeting_watch *same = &mine->watches[0], *beside = &mine->watches[1];
    *same = watch_of_sig(target);
    if (recent)
        *beside = watch_of_sig(recent);
    if (!recent || overlap_sig(same, beside)) {
        uint64_t word = (same->address / WORD + 1 + mine->turn % (PATTERN_LINE_BYTES / WORD - 1)) * WORD;
        uint64_t start = line_sig(target->address) * PATTERN_LINE_BYTES;
        *beside = (struct meeting_watch){.address = start + word % PATTERN_LINE_BYTES, .bytes = WORD};
    }
    same->is_same = true;
    same->is_of_stores = beside->is_of_stores = !(target->accesses & REACH_WRITES);
}

/* A recent use by a thread on another processor: those of one processor take turns and do not disturb each other. Lines
 * that self uses as well go before others. */
static bool choose_sig(struct thread_state *self, uint64_t now_ns, unsigned cpu)
{
    struct thread_meetings *mine = &self->meetings;
    struct meeting_use use;
    bool is_found = false;
    mine->turn += 7;
    for (unsigned i = 0; i < BOARD; i++) {
        if (!get_sig((mine->turn + i) & (BOARD - 1), &use) || use.thread == self->ref || use.cpu == cpu ||
            now_ns - use.t_ns > AGE_NS)
            continue;
        bool is_mine = recent_sig(mine, &use);
        if (is_mine || !is_found)
            mine->target = use;
        is_found = true;
        if (is_mine)
            break;
    }
    return is_found;
}

static uint16_t cpu_sig(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? UINT16_MAX : (uint16_t)cpu;
}

static uint64_t n_samples_sig(uint32_t thread)
{
    const struct arena_thread *record = arena_record_sig(thread);
    uint64_t sum = 0;
    for (unsigned i = 0; i < arena_header_sig()->n_events; i++)
        sum += atomic_load_explicit(&record->taken[i], memory_order_relaxed);
    return sum;
}

bool meeting_begin_sig(struct thread_state *self, uint64_t now_ns)
{
    struct thread_meetings *mine = &self->meetings;
    if (now_ns < mine->begin_ns || !choose_sig(self, now_ns, cpu_sig()))
        return false;
    mine->begin_ns = now_ns + CLOCK_S_NS / arena_header_sig()->watches_per_s;
    mine->start_ns = now_ns;
    mine->n_before = n_samples_sig(mine->target.thread);
    for (unsigned i = 0; i < MEETING_WATCHES; i++)
        mine->traps[i].leaf = 0;
    mine->has_trapped = mine->has_come = false;
    mine->is_watching = true;
    aim_sig(mine);
    atomic_fetch_add_explicit(&self->record->n_watches, 1, memory_order_relaxed);
    return true;
}

/* --- what was found --- */

static bool is_same_record_sig(const struct arena_meeting *a, const struct arena_meeting *b)
{
    uint64_t other = a->leaf ? a->other_address : line_sig(a->other_address);
    return a->leaf == b->leaf && a->other_leaf == b->other_leaf && a->address == b->address &&
           a->accesses == b->accesses && other == (b->leaf ? b->other_address : line_sig(b->other_address));
}

/* The thread's record like this one, made when it is new; NULL where there is no room. */
static struct arena_meeting *record_sig(struct thread_state *self, const struct arena_meeting *like)
{
    struct arena_meeting *record = NULL;
    for (uint32_t ref = self->record->meetings; ref; ref = record->next) {
        record = arena_record_sig(ref);
        if (is_same_record_sig(record, like))
            return record;
    }
    /* what met nobody must not keep out what did */
    if (self->record->n_meetings < (like->leaf ? ARENA_MEETINGS_MAX : ARENA_MEETINGS_MAX / 2))
        record = arena_reserve_sig(&self->samples.meetings, ARENA_MEETINGS, self->ref, sizeof *record);
    else
        record = NULL;
    if (!record) {
        atomic_fetch_add_explicit(&self->record->n_meetings_lost, 1, memory_order_relaxed);
        return NULL;
    }
    *record = *like;
    record->next = self->record->meetings;
    arena_publish_sig(&self->samples.meetings);
    __atomic_store_n(&self->record->meetings, arena_ref_sig(record), __ATOMIC_RELEASE);
    self->record->n_meetings++;
    return record;
}

static struct arena_meeting target_sig(const struct thread_state *self)
{
    const struct meeting_use *target = &self->meetings.target;
    return (struct arena_meeting){.other = target->thread,
                                  .other_leaf = target->leaf,
                                  .other_var = target->var,
                                  .other_address = target->address,
                                  .other_bytes = target->bytes,
                                  .other_accesses = target->accesses};
}

void meeting_take_sig(struct thread_state *self, unsigned watch, const ucontext_t *context)
{
    struct resolved found;
    bool has_frames;
    struct thread_meetings *mine = &self->meetings;
    uint64_t address = mine->watches[watch].address;
    uintptr_t pc = arch_pc_of_context_sig(context);
    if (!mine->is_watching || self->in_hook || loadmap_is_own_sig(loadmap_find_sig(pc), pc) ||
        own_clock_ns_sig(CLOCK_MONOTONIC) > mine->start_ns + WATCH_MOST_NS)
        return;
    mine->has_trapped = true;
    bool is_known = resolve_address_sig(self, address, NULL, 0, &found) == RESOLVE_NAMED;
    mine->traps[watch] = (struct meeting_trap){.var = is_known ? found.var : mine->target.var,
                                               .leaf = leaf_of_context_sig(self, context, 0, &has_frames),
                                               .cpu = cpu_sig()};
}

bool meeting_is_over_sig(struct thread_state *self, uint64_t now_ns)
{
    struct thread_meetings *mine = &self->meetings;
    const struct meeting_use *target = &mine->target;
    struct meeting_use use;
    if (get_sig(place_sig(target), &use) && use.thread == target->thread &&
        line_sig(use.address) == line_sig(target->address) && use.t_ns > mine->start_ns &&
        use.t_ns - mine->start_ns <= WATCH_MOST_NS) {
        mine->has_come = true;
        mine->come_cpu = use.cpu;
    }
    return now_ns - mine->start_ns >= (mine->has_trapped && !mine->has_come ? WATCH_MOST_NS : WATCH_NS);
}

/* What a watchpoint saw, when the other used the line at the same time. */
static void record_trap_sig(struct thread_state *self, unsigned watch)
{
    const struct meeting_watch *watched = &self->meetings.watches[watch];
    const struct meeting_trap *trap = &self->meetings.traps[watch];
    struct arena_meeting like = target_sig(self);
    if (!trap->leaf || trap->cpu == self->meetings.come_cpu)
        return;
    like.leaf = trap->leaf;
    like.address = watched->address;
    like.bytes = watched->bytes;
    like.accesses = watched->is_of_stores ? REACH_WRITES : 0;
    like.var = trap->var;
    struct arena_meeting *record = record_sig(self, &like);
    if (record)
        atomic_fetch_add_explicit(watched->is_same ? &record->n_same : &record->n_beside, 1, memory_order_relaxed);
}

/* One of the two was not there; of another that had samples elsewhere it is not known whether it was. */
static void record_none_sig(struct thread_state *self)
{
    const struct thread_meetings *mine = &self->meetings;
    const struct arena_meeting like = target_sig(self);
    if (mine->has_trapped && n_samples_sig(mine->target.thread) != mine->n_before)
        return;
    struct arena_meeting *record = record_sig(self, &like);
    if (record)
        atomic_fetch_add_explicit(&record->n_none, 1, memory_order_relaxed);
}

void meeting_end_sig(struct thread_state *self)
{
    const struct thread_meetings *mine = &self->meetings;
    self->meetings.is_watching = false;
    if (!mine->has_trapped || !mine->has_come)
        record_none_sig(self);
    else
        for (unsigned i = 0; i < MEETING_WATCHES; i++)
            record_trap_sig(self, i);
}
