/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing into the arena: bump allocation inside runs of chunks that are handed out by one atomic counter, so that the
 * signal handler never waits. Runs in the handler and in malloc hooks. */
#include "runtime/record/arena-writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/invariant.h"
#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "base/sigsafe.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static struct {
    char *base;
    _Atomic int shared_lock;
    struct shield shield; /* of the thread that holds the lock */
    struct arena_cursor shared[ARENA_KINDS];
    int bell_fd;
    dev_t bell_device; /* device and inode identify the pipe */
    ino_t bell_inode;
} writer = {.bell_fd = -1};

void arena_attach_sig(void *base)
{
    writer.base = base;
}

bool arena_map_sig(int fd, uint64_t n_bytes)
{
    const struct arena_header *header = zone_share_sig(ZONE_ARENA, fd, n_bytes, PROT_READ | PROT_WRITE, 0);
    bool is_arena =
        header && memcmp(header->magic, ARENA_MAGIC, 8) == 0 && zone_reach_sig(ZONE_ARENA, header->chunk_data_offset);
    writer.base = is_arena ? (char *)(uintptr_t)header : NULL;
    return is_arena;
}

struct arena_header *arena_header_sig(void)
{
    return (struct arena_header *)(void *)writer.base;
}

uint32_t arena_ref_sig(const void *record)
{
    INVARIANT(((uintptr_t)record - (uintptr_t)writer.base) % ARENA_UNIT == 0);
    return arena_ref(writer.base, record);
}

void *arena_record_sig(uint32_t ref)
{
    return arena_at(writer.base, ref);
}

void arena_range_sig(uintptr_t *low, uintptr_t *high)
{
    struct arena_header *header = arena_header_sig();
    *low = (uintptr_t)writer.base;
    *high = header ? *low + header->size_bytes : 0;
}

/* Number of chunks of the next run: twice that of the run that was filled, if so many are left. */
static uint32_t run_chunks_sig(const struct arena_cursor *cursor, uint32_t n_left, size_t n_bytes)
{
    uint32_t needed = (uint32_t)((n_bytes + ARENA_CHUNK_BYTES - 1) / ARENA_CHUNK_BYTES);
    uint32_t wanted = (uint32_t)((cursor->end - cursor->start) / ARENA_CHUNK_BYTES) * 2;
    if (wanted > ARENA_RUN_CHUNKS)
        wanted = ARENA_RUN_CHUNKS;
    return wanted > needed && wanted <= n_left ? wanted : needed;
}

/* Chunks that are left for a kind. The log grows as long as the program runs: it gets a share and leaves the rest to
 * records that hold sums. */
static uint32_t chunks_left_sig(const struct arena_header *header, enum arena_kind kind, uint32_t index)
{
    uint32_t n_left = index < header->chunk_limit ? header->chunk_limit - index : 0;
    uint32_t n_trace = atomic_load_explicit(&header->n_trace_chunks, memory_order_relaxed);
    uint32_t n_trace_left = n_trace < header->trace_chunk_limit ? header->trace_chunk_limit - n_trace : 0;
    return kind == ARENA_TRACE && n_trace_left < n_left ? n_trace_left : n_left;
}

/* Whether the chunks before end are mapped. */
static bool is_mapped_sig(const struct arena_header *header, uint32_t end)
{
    return zone_reach_sig(ZONE_ARENA, header->chunk_data_offset + (uint64_t)end * ARENA_CHUNK_BYTES);
}

/* Takes n chunks, of those that are left for a kind; false when there are not so many. *cursor: over all of them. */
static bool take_chunks_sig(struct arena_cursor *cursor, enum arena_kind kind, uint32_t n)
{
    struct arena_header *header = arena_header_sig();
    uint32_t limit = header ? header->chunk_limit : 0;
    uint32_t index = header ? atomic_load_explicit(&header->n_chunks, memory_order_relaxed) : 0;
    if (!n || n > (header ? chunks_left_sig(header, kind, index) : 0) || !is_mapped_sig(header, index + n))
        return false;
    if (kind == ARENA_TRACE)
        atomic_fetch_add_explicit(&header->n_trace_chunks, n, memory_order_relaxed);
    index = atomic_fetch_add_explicit(&header->n_chunks, n, memory_order_relaxed);
    if (index >= limit || n > limit - index || !is_mapped_sig(header, index + n))
        return false;
    cursor->chunk = (struct arena_chunk *)(void *)(writer.base + header->chunk_table_offset) + index;
    cursor->start = writer.base + header->chunk_data_offset + (uint64_t)index * ARENA_CHUNK_BYTES;
    cursor->position = cursor->start;
    cursor->end = cursor->start + (size_t)n * ARENA_CHUNK_BYTES;
    return true;
}

static bool cursor_next_run_sig(struct arena_cursor *cursor, enum arena_kind kind, uint32_t thread, size_t n_bytes)
{
    const struct arena_header *header = arena_header_sig();
    uint32_t index =
        header ? atomic_load_explicit(&((struct arena_header *)(uintptr_t)header)->n_chunks, memory_order_relaxed) : 0;
    uint32_t n_left = header ? chunks_left_sig(header, kind, index) : 0;
    uint32_t n = n_left ? run_chunks_sig(cursor, n_left, n_bytes) : 0;
    if (!take_chunks_sig(cursor, kind, n))
        return false;
    arena_run_begin(cursor->chunk, n, kind, thread);
    return true;
}

bool arena_take_sig(struct arena_cursor *all, uint32_t n_chunks)
{
    return take_chunks_sig(all, ARENA_FREE, n_chunks);
}

void arena_touch_sig(const struct arena_cursor *all)
{
    int saved_errno = errno;
    uintptr_t page_bytes = arena_header_sig()->page_bytes;
    char *start = all->start - (uintptr_t)all->start % page_bytes;
    if (all->end > all->start)
        own_call_sig(SYS_madvise, start, (size_t)(all->end - start), MADV_POPULATE_WRITE);
    errno = saved_errno;
}

void arena_part_sig(struct arena_cursor *all, struct arena_cursor *part, enum arena_kind kind, uint32_t thread,
                    uint32_t n_chunks)
{
    size_t n_bytes = (size_t)n_chunks * ARENA_CHUNK_BYTES;
    if (n_bytes > (size_t)(all->end - all->position))
        return;
    INVARIANT((all->position - all->start) % ARENA_CHUNK_BYTES == 0);
    part->chunk = all->chunk + (all->position - all->start) / ARENA_CHUNK_BYTES;
    part->start = part->position = all->position;
    part->end = all->position += n_bytes;
    arena_run_begin(part->chunk, n_chunks, kind, thread);
}

void *arena_reserve_sig(struct arena_cursor *cursor, enum arena_kind kind, uint32_t thread, size_t n_bytes)
{
    size_t size = (n_bytes + ARENA_UNIT - 1) & ~(size_t)(ARENA_UNIT - 1);
    if (size > ARENA_RUN_BYTES)
        return NULL;
    if (size > (size_t)(cursor->end - cursor->position) && !cursor_next_run_sig(cursor, kind, thread, size))
        return NULL;
    void *record = cursor->position;
    INVARIANT(cursor->position >= cursor->start && size <= (size_t)(cursor->end - cursor->position));
    cursor->position += size;
    return record;
}

void arena_publish_sig(struct arena_cursor *cursor)
{
    INVARIANT(cursor->position >= cursor->start && cursor->position <= cursor->end);
    INVARIANT(cursor->end - cursor->start <= ARENA_RUN_BYTES);
    if (cursor->chunk)
        atomic_store_explicit(&cursor->chunk->used_bytes, (uint32_t)(cursor->position - cursor->start),
                              memory_order_release);
}

bool arena_shared_begin_sig(void)
{
    struct shield shield;
    shield_raise_sig(&shield);
    if (atomic_exchange_explicit(&writer.shared_lock, 1, memory_order_acquire)) {
        shield_lower_sig(&shield);
        return false;
    }
    writer.shield = shield;
    return true;
}

void *arena_shared_reserve_sig(enum arena_kind kind, size_t n_bytes)
{
    return arena_reserve_sig(&writer.shared[kind], kind, 0, n_bytes);
}

void arena_shared_end_sig(void)
{
    for (int kind = 0; kind < ARENA_KINDS; kind++)
        arena_publish_sig(&writer.shared[kind]);
    struct shield shield = writer.shield;
    INVARIANT(atomic_load(&writer.shared_lock));
    atomic_store_explicit(&writer.shared_lock, 0, memory_order_release);
    shield_lower_sig(&shield);
}

void arena_shared_reset_sig(void)
{
    memset(writer.shared, 0, sizeof writer.shared);
    atomic_store(&writer.shared_lock, 0);
}

uint32_t arena_shared_string_sig(const char *text)
{
    size_t len = strnlen(text, ARENA_PATH_MAX - 1);
    struct arena_string *string = arena_shared_reserve_sig(ARENA_STRINGS, sizeof *string + len + 1);
    if (!string)
        return 0;
    string->len_bytes = (uint32_t)len;
    memcpy(string->text, text, len);
    string->text[len] = '\0';
    return arena_ref_sig(string);
}

#define PROBES 16

_Atomic uint32_t *arena_string_place_sig(_Atomic uint32_t *table, uint32_t n, const char *text, size_t len)
{
    uint64_t hash = bytes_hash(BYTES_HASH_START, text, len);
    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic uint32_t *place = &table[(hash + i) & (n - 1)];
        uint32_t ref = atomic_load_explicit(place, memory_order_acquire);
        const struct arena_string *string = ref ? arena_record_sig(ref) : NULL;
        if (!string || (string->len_bytes == len && memcmp(string->text, text, len) == 0))
            return place;
    }
    return NULL;
}

void arena_log_sig(const char *text)
{
    struct arena_header *header = arena_header_sig();
    if (!header)
        return;
    uint32_t len = (uint32_t)strnlen(text, 1000) + 1;
    uint32_t at = atomic_fetch_add(&header->log_len_bytes, len);
    if (at + len > sizeof header->log)
        return;
    memcpy(header->log + at, text, len - 1);
    header->log[at + len - 1] = '\n';
}

bool arena_note_child_sig(enum arena_child_state state, uint32_t pid, const char *name)
{
    struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; header && i < ARENA_CHILDREN; i++) {
        struct arena_child *child = &header->children[i];
        uint32_t none = CHILD_NONE;
        if (!atomic_compare_exchange_strong(&child->state, &none, CHILD_NOTING))
            continue;
        size_t len = name ? strnlen(name, sizeof child->name - 1) : 0;
        if (len)
            memcpy(child->name, name, len);
        child->name[len] = '\0';
        child->pid = pid;
        atomic_store_explicit(&child->state, state, memory_order_release);
        return i >= ARENA_CHILDREN / 2;
    }
    if (header)
        atomic_fetch_add(&header->n_children_lost, 1);
    return header != NULL;
}

void arena_forget_child_sig(uint32_t pid)
{
    struct arena_header *header = arena_header_sig();
    for (unsigned i = 0; header && i < ARENA_CHILDREN; i++) {
        struct arena_child *child = &header->children[i];
        uint32_t started = CHILD_STARTED, sandboxed = CHILD_SANDBOXED;
        if (child->pid == pid && (atomic_compare_exchange_strong(&child->state, &started, CHILD_NONE) ||
                                  atomic_compare_exchange_strong(&child->state, &sandboxed, CHILD_NONE)))
            return;
    }
}

void arena_set_bell_sig(int fd)
{
    struct stat status;
    if (fd >= 0 && (own_call_sig(SYS_fstat, fd, &status) != 0 || !S_ISFIFO(status.st_mode)))
        fd = -1;
    if (fd >= 0) {
        writer.bell_device = status.st_dev;
        writer.bell_inode = status.st_ino;
    }
    writer.bell_fd = fd;
}

int arena_bell_sig(void)
{
    struct stat status;
    int fd = writer.bell_fd;
    if (fd >= 0 && (own_call_sig(SYS_fstat, fd, &status) != 0 || !S_ISFIFO(status.st_mode) ||
                    status.st_dev != writer.bell_device || status.st_ino != writer.bell_inode))
        writer.bell_fd = fd = -1; /* the companion also finds requests by itself */
    return fd;
}

void arena_ring_sig(void)
{
    static const uint64_t one = 1;
    int bell = arena_bell_sig();
    if (bell >= 0)
        (void)own_call_sig(SYS_write, bell, &one, sizeof one);
}

bool arena_request_sig(enum arena_request_kind kind, uint32_t module, uint32_t pc)
{
    struct arena_header *header = arena_header_sig();
    if (!header)
        return false;
    uint32_t slot = atomic_fetch_add(&header->request_tail, 1) & (ARENA_REQUESTS - 1);
    struct arena_request *request = &header->requests[slot];
    uint32_t empty = REQUEST_EMPTY;
    if (!atomic_compare_exchange_strong(&request->state, &empty, REQUEST_FILLING))
        return false;
    request->kind = kind;
    request->module = module;
    request->pc = pc;
    atomic_store_explicit(&request->state, REQUEST_POSTED, memory_order_release);
    arena_ring_sig();
    return true;
}

/* --- lines of HPCRUN_DEBUG --- */

/* All threads share a run of chunks, in which they claim lines by one addition. */

#define HEX_FROM (1u << 20)

_Static_assert(ARENA_RUN_BYTES % sizeof(struct arena_debug) == 0, "a run holds whole lines");

bool debug_wants_sig(enum debug_domain domain, unsigned level)
{
    const struct arena_header *header = arena_header_sig();
    return header && __builtin_expect(header->debug != 0, 0) && debug_level(header->debug, domain) >= level;
}

/* Adds to the text of a line of *len bytes. */
static void put_sig(struct arena_debug *line, size_t *len, const char *text)
{
    size_t n = strnlen(text, sizeof line->text - *len);
    memcpy(line->text + *len, text, n);
    *len += n;
}

static void put_number_sig(struct arena_debug *line, size_t *len, uint64_t number)
{
    char digits[24];
    unsigned at = sizeof digits - 1, base = number >= HEX_FROM ? 16 : 10;
    digits[at] = '\0';
    for (; number || digits[at] == '\0'; number /= base) {
        digits[--at] = "0123456789abcdef"[number % base];
        if (number < base)
            break;
    }
    if (base == 16)
        put_sig(line, len, "0x");
    put_sig(line, len, digits + at);
}

/* Begins a new run in place of the one that is full, half of the arena is left to samples; *run: which, or the one that
 * another thread has begun meanwhile. False when there is no room. */
static bool next_run_sig(struct arena_header *header, uint32_t *run)
{
    struct arena_cursor all = {0};
    const struct arena_chunk *table = (const void *)((const char *)header + header->chunk_table_offset);
    uint32_t most = header->chunk_limit / 2 / ARENA_RUN_CHUNKS;
    most = most < ARENA_DEBUG_RUNS ? most : ARENA_DEBUG_RUNS;
    if (atomic_load(&header->n_debug_runs) >= most || !arena_take_sig(&all, ARENA_RUN_CHUNKS))
        return false;
    atomic_fetch_add(&header->n_debug_runs, 1);
    arena_run_begin(all.chunk, ARENA_RUN_CHUNKS, ARENA_DEBUG, 0);
    uint32_t begun = (uint32_t)(all.chunk - table) + 1;
    if (atomic_compare_exchange_strong(&header->debug_run, run, begun))
        *run = begun;
    return true;
}

static struct arena_debug *claim_sig(void)
{
    struct arena_header *header = arena_header_sig();
    struct arena_chunk *table = (void *)((char *)header + header->chunk_table_offset);
    uint32_t run = atomic_load_explicit(&header->debug_run, memory_order_acquire);
    for (;;) {
        uint32_t at = ARENA_RUN_BYTES;
        if (run && atomic_load_explicit(&table[run - 1].used_bytes, memory_order_relaxed) < ARENA_RUN_BYTES)
            at =
                atomic_fetch_add_explicit(&table[run - 1].used_bytes, sizeof(struct arena_debug), memory_order_relaxed);
        if (at < ARENA_RUN_BYTES)
            return (void *)((char *)header + header->chunk_data_offset + (uint64_t)(run - 1) * ARENA_CHUNK_BYTES + at);
        if (!next_run_sig(header, &run))
            break;
    }
    atomic_fetch_add_explicit(&header->n_debug_lost, 1, memory_order_relaxed);
    return NULL;
}

static void write_sig(enum debug_domain domain, int fate, const char *what, const struct debug_word *words, unsigned n)
{
    struct arena_debug *line = claim_sig();
    size_t len = 0;
    if (!line)
        return;
    put_sig(line, &len, what);
    for (unsigned i = 0; i < n; i++) {
        put_sig(line, &len, " ");
        put_sig(line, &len, words[i].name);
        put_sig(line, &len, "=");
        if (words[i].text)
            put_sig(line, &len, words[i].text);
        else
            put_number_sig(line, &len, words[i].number);
    }
    line->t_ns = own_clock_ns_sig(CLOCK_MONOTONIC);
    line->tid = own_tid_sig();
    line->domain = (uint8_t)domain;
    line->fate = (uint8_t)(fate + 1);
    atomic_store_explicit(&line->len_bytes, (uint16_t)len, memory_order_release);
}

void debug_note_sig(enum debug_domain domain, const char *what, const struct debug_word *words, unsigned n)
{
    write_sig(domain, -1, what, words, n);
}

void debug_note_sample_sig(const char *what, int fate, const struct debug_word *words, unsigned n)
{
    write_sig(DEBUG_SAMPLE, fate, what, words, n);
}
