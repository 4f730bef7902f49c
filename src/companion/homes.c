/* SPDX-License-Identifier: BSD-3-Clause */
/* On which memory nodes the sampled pages of a process are. Its handlers note pages in the arena; we take them out now
 * and then, ask the kernel with move_pages, which then only reports, and add the answers to the places of the samples.
 * The last time is when the process says that it ends and waits for us: its memory is still there. Of a process that is
 * killed, what was asked for before remains. Ordinary code. */
#include "companion/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/input.h"

#define EVERY_MS_MIN 10 /* between two looks at a process */
#define EVERY_MS_START 100
#define EVERY_MS_MAX 200
#define COUNT_MS 2000 /* between two counts of the pages of large variables */
#define BATCH 512
#define KNOWN_PAGES 8192u       /* power of two */
#define LARGE_BYTES 65536u      /* smaller variables are known well enough by their samples */
#define COUNTED_PAGES 64u       /* of a large variable, while the process runs ... */
#define COUNTED_PAGES_LAST 512u /* ... and when it ends */
#define SMAPS_BYTES_MAX ((uint64_t)64 << 30)

/* A page and the home that it had last. */
struct known_page {
    uint64_t page, var;
    int32_t home;
    uint32_t pad;
};

struct companion_homes {
    int64_t due_ms, count_due_ms;
    int32_t every_ms;
    bool has_said;
    struct known_page known[KNOWN_PAGES];
    struct arena_page batch[BATCH];
    void *pages[BATCH];
    int status[BATCH];
};

/* --- the machine --- */

/* The numbers in a list such as "0-1,4"; returns how many, and the highest. */
static unsigned count_listed(const char *text, unsigned *highest)
{
    unsigned n = 0, first, last;
    for (int len; *text; text += *text == ',') {
        len = 0;
        if (sscanf(text, "%u%n", &first, &len) != 1)
            break;
        text += len;
        last = first;
        if (*text == '-' && sscanf(text, "-%u%n", &last, &len) == 1)
            text += len;
        if (last < first || last >= 1024)
            break;
        n += last - first + 1;
        *highest = last > *highest ? last : *highest;
    }
    return n;
}

uint32_t companion_homes_nodes(const char *list)
{
    char text[1024] = "";
    unsigned highest = 0;
    FILE *file = input_stream(list ? list : "/sys/devices/system/node/online");
    bool has_line = file && fgets(text, sizeof text, file);
    if (file)
        (void)fclose(file);
    if (!has_line || count_listed(text, &highest) < 2)
        return 0;
    return highest + 1 < ARENA_HOMES_MAX ? highest + 1 : ARENA_HOMES_MAX;
}

/* --- the question --- */

/* Asks for the nodes of the first n of homes->pages; false when the kernel refuses. */
static bool ask(struct companion *c, const struct companion_process *process, size_t n)
{
    struct companion_homes *homes = process->homes;
    if (n == 0 || syscall(SYS_move_pages, process->peer_pid, n, homes->pages, NULL, homes->status, 0) >= 0)
        return n > 0;
    int problem = errno;
    if (problem == ESRCH)
        return false;
    atomic_store(&process->arena->home_errno, problem);
    if (!homes->has_said)
        companion_log(c, "The kernel does not say on which nodes the pages of process %u are: %s.", process->pid,
                      strerror(problem));
    homes->has_said = true;
    return false;
}

/* --- sampled pages --- */

/* The record at ref, when it lies in the published part of a run of that kind; the program may damage its arena. */
static void *record_at(const struct companion_process *process, uint32_t ref, enum arena_kind kind, size_t n_bytes)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT, n_chunks = companion_arena_n_chunks(process);
    uint64_t chunk = offset >= process->data_offset ? (offset - process->data_offset) / ARENA_CHUNK_BYTES : n_chunks;
    if (chunk >= n_chunks)
        return NULL;
    const struct arena_chunk *table = companion_arena_table(process);
    uint16_t behind = __atomic_load_n(&table[chunk].behind, __ATOMIC_RELAXED);
    if (behind > chunk || behind >= ARENA_RUN_CHUNKS)
        return NULL;
    const struct arena_chunk *first = &table[chunk - behind];
    uint64_t start = process->data_offset + (chunk - behind) * ARENA_CHUNK_BYTES;
    uint32_t used = arena_run_used(first, (uint32_t)(n_chunks - (chunk - behind)));
    bool is_inside = first->kind == kind && offset - start + n_bytes <= used;
    return is_inside ? (char *)process->arena + offset : NULL;
}

/* Remembers the block of a sample among the large ones: the largest of each variable, and the largest variables. Counts
 * of an earlier block of the variable stay until those of this one replace them. */
static void note_extent(const struct companion_process *process, uint64_t var, const struct arena_page *page)
{
    struct arena_extent *extents = process->arena->extents, *smallest = &extents[0];
    uint64_t n_bytes = page->end - page->start;
    if (page->end <= page->start || n_bytes < LARGE_BYTES || page->address - page->start >= n_bytes)
        return;
    for (unsigned i = 0; i < ARENA_EXTENTS; i++) {
        if (extents[i].var == var) {
            smallest = &extents[i];
            break;
        }
        if (extents[i].end - extents[i].start < smallest->end - smallest->start)
            smallest = &extents[i];
    }
    if (n_bytes <= smallest->end - smallest->start)
        return;
    if (smallest->var != var)
        *smallest = (struct arena_extent){.var = var, .huge_bytes = UINT64_MAX};
    smallest->start = page->start;
    smallest->end = page->end;
}

/* What was known of the page; it is noted which home it has now (negative: none). */
static int32_t exchange_known(struct companion_homes *homes, uint64_t page, uint64_t var, int32_t home)
{
    uint64_t hash = page * 0x9e3779b97f4a7c15u;
    struct known_page *known = &homes->known[(hash >> 40) % KNOWN_PAGES];
    int32_t before = known->page == page && known->var == var ? known->home : -1;
    if (home >= 0)
        *known = (struct known_page){.page = page, .var = var, .home = home};
    return before;
}

static void add_answer(const struct companion_process *process, const struct arena_page *page, int home)
{
    uint32_t n_homes = process->n_homes, n_bytes = arena_place_bytes(n_homes);
    struct arena_place *place = record_at(process, page->place, ARENA_PLACES, n_bytes);
    if (!place)
        return;
    uint64_t number = page->address / process->arena->page_bytes, var = place->var;
    int32_t before = exchange_known(process->homes, number, var, home);
    if (home >= 0 && before >= 0 && before != home)
        atomic_fetch_add_explicit(&place->homes[HOME_MOVED], 1, memory_order_relaxed);
    if (home < 0) /* released since: it was where it was */
        home = before;
    if (home < (int)n_homes)
        atomic_fetch_add_explicit(&place->homes[home < 0 ? HOME_NONE : HOME_FIRST + home], 1, memory_order_relaxed);
    note_extent(process, var, page);
}

static void answer_batch(struct companion *c, const struct companion_process *process, size_t n)
{
    struct companion_homes *homes = process->homes;
    uint64_t mask = ~((uint64_t)process->page_bytes - 1);
    for (size_t i = 0; i < n; i++)
        homes->pages[i] = (void *)(uintptr_t)(homes->batch[i].address & mask);
    if (!ask(c, process, n))
        return;
    for (size_t i = 0; i < n; i++)
        add_answer(process, &homes->batch[i], homes->status[i]);
}

/* Takes what a ring holds; returns how many pages it held. */
static uint64_t take_ring(struct companion *c, const struct companion_process *process, struct arena_pages *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), n_held = head - tail;
    size_t n = 0;
    if (n_held > ARENA_PAGES_MAX)
        tail = head; /* damaged */
    for (; tail != head; tail++)
        process->homes->batch[n++] = ring->pages[tail % ARENA_PAGES_MAX];
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
    answer_batch(c, process, n);
    return n_held;
}
_Static_assert(BATCH >= ARENA_PAGES_MAX, "a ring fits into a batch");

/* Takes all rings; returns what the fullest one held. */
static uint64_t take_rings(struct companion *c, const struct companion_process *process)
{
    uint64_t most = 0;
    uint32_t ref = atomic_load_explicit(&process->arena->pages, memory_order_acquire);
    for (uint32_t n = 0; ref && n < process->chunk_limit; n++) {
        struct arena_pages *ring = record_at(process, ref, ARENA_PAGES, sizeof *ring);
        uint64_t n_held = ring ? take_ring(c, process, ring) : 0;
        most = n_held > most ? n_held : most;
        ref = ring ? __atomic_load_n(&ring->next, __ATOMIC_RELAXED) : 0;
    }
    return most;
}

/* --- large variables --- */

/* Which page to ask for as number i of n_asked: the pages lie in n_asked parts of one length, and of each part it is
 * any one, because pages at a regular distance may all be on the node that the interleaving chose for them. */
static uint64_t chosen_page(uint32_t i, uint32_t n_asked, uint64_t n_pages)
{
    uint64_t from = (uint64_t)((double)i * (double)n_pages / n_asked);
    uint64_t to = (uint64_t)((double)(i + 1) * (double)n_pages / n_asked);
    uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u;
    return from + (to > from + 1 ? (hash >> 33) % (to - from) : 0);
}

/* Counts the pages of a block, or most_pages of them, spread evenly. A block that is gone keeps its last count. */
static void count_pages(struct companion *c, const struct companion_process *process, struct arena_extent *extent,
                        uint64_t most_pages)
{
    struct companion_homes *homes = process->homes;
    struct arena_extent counted = *extent;
    uint64_t page_bytes = process->page_bytes, first = counted.start / page_bytes;
    if (!counted.var || counted.end <= counted.start)
        return;
    counted.n_pages = (counted.end - 1) / page_bytes - first + 1;
    counted.n_asked = (uint32_t)(counted.n_pages < most_pages ? counted.n_pages : most_pages);
    counted.n_none = 0;
    memset(counted.n_on, 0, sizeof counted.n_on);
    for (uint32_t i = 0; i < counted.n_asked; i++)
        homes->pages[i] = (void *)(uintptr_t)((first + chosen_page(i, counted.n_asked, counted.n_pages)) * page_bytes);
    if (!ask(c, process, counted.n_asked))
        return;
    for (uint32_t i = 0; i < counted.n_asked; i++) {
        int home = homes->status[i];
        counted.n_none += home < 0;
        if (home >= 0 && home < ARENA_HOMES_MAX)
            counted.n_on[home]++;
    }
    if (counted.n_none < counted.n_asked)
        *extent = counted;
    else
        extent->end = extent->start; /* the block is gone: the next one takes its place */
}
_Static_assert(BATCH >= COUNTED_PAGES_LAST, "the pages of a variable fit into a batch");

/* Bytes of the process that are in memory; 0: not known. */
static uint64_t resident_bytes(const struct companion_process *process)
{
    char path[64];
    unsigned long long total, resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)process->peer_pid);
    FILE *file = input_stream(path);
    if (file && fscanf(file, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    if (file)
        (void)fclose(file);
    return resident * process->page_bytes;
}

static void add_huge(const struct companion_process *process, uint64_t low, uint64_t high, uint64_t huge_bytes)
{
    for (unsigned i = 0; i < ARENA_EXTENTS; i++) {
        struct arena_extent *extent = &process->arena->extents[i];
        if (extent->var && extent->start >= low && extent->start < high)
            extent->huge_bytes = huge_bytes;
    }
}

/* Looks up which of the blocks are in huge pages. The kernel goes through all page tables for this: only once, and not
 * for the largest processes. */
static void find_huge(const struct companion_process *process)
{
    char path[64], line[512];
    unsigned long long low = 0, high = 0, from, to, kb, huge_kb = 0;
    uint64_t bytes = resident_bytes(process);
    (void)snprintf(path, sizeof path, "/proc/%ld/smaps", (long)process->peer_pid);
    FILE *file = bytes && bytes <= SMAPS_BYTES_MAX ? input_stream(path) : NULL;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
            add_huge(process, low, high, huge_kb * 1024);
            low = from;
            high = to;
            huge_kb = 0;
        } else if (sscanf(line, "AnonHugePages: %llu", &kb) == 1 || sscanf(line, "ShmemPmdMapped: %llu", &kb) == 1 ||
                   sscanf(line, "Private_Hugetlb: %llu", &kb) == 1 || sscanf(line, "Shared_Hugetlb: %llu", &kb) == 1) {
            huge_kb += kb;
        }
    }
    if (!file)
        return;
    add_huge(process, low, high, huge_kb * 1024);
    (void)fclose(file);
}

static bool count_large(struct companion *c, const struct companion_process *process, uint64_t most_pages)
{
    bool has_large = false;
    for (unsigned i = 0; i < ARENA_EXTENTS; i++) {
        has_large |= process->arena->extents[i].var != 0;
        count_pages(c, process, &process->arena->extents[i], most_pages);
    }
    return has_large;
}

/* --- when --- */

/* Makes what a process's pages are noted in. False when there is nothing to ask, or the memory is no longer that of the
 * program in the arena. */
static bool begin_homes(struct companion_process *process)
{
    if (process->state != PROCESS_LIVE || !process->n_homes || process->is_gone || process->replaced_ms ||
        !atomic_load(&process->arena->pages) || atomic_load(&process->arena->is_replaced))
        return false;
    if (!process->homes)
        process->homes = calloc(1, sizeof *process->homes);
    return process->homes != NULL;
}

int64_t companion_homes_due(const struct companion_process *process)
{
    return process->homes ? process->homes->due_ms : INT64_MAX;
}

void companion_homes_look(struct companion *c, struct companion_process *process, int64_t now_ms)
{
    if ((process->homes && now_ms < process->homes->due_ms) || !begin_homes(process))
        return;
    struct companion_homes *homes = process->homes;
    uint64_t most = take_rings(c, process);
    if (now_ms >= homes->count_due_ms) {
        (void)count_large(c, process, COUNTED_PAGES);
        homes->count_due_ms = now_ms + COUNT_MS;
    }
    if (!homes->every_ms)
        homes->every_ms = EVERY_MS_START;
    if (most > ARENA_PAGES_MAX / 2 && homes->every_ms > EVERY_MS_MIN)
        homes->every_ms /= 2;
    else if (most < ARENA_PAGES_MAX / 16 && homes->every_ms < EVERY_MS_MAX)
        homes->every_ms *= 2;
    homes->due_ms = now_ms + homes->every_ms;
}

void companion_homes_end(struct companion *c, struct companion_process *process)
{
    if (!begin_homes(process))
        return;
    (void)take_rings(c, process);
    if (count_large(c, process, COUNTED_PAGES_LAST))
        find_huge(process);
}
