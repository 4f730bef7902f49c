/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs to keep, beside a sample's count, where in its variable it lies (cct_reach_sig), and its record in the
 * log (trace_put_sig, with the clock that it needs): the fastest of some rounds, ns for each sample. Variables and
 * places are drawn at random, which is the worst case for caches. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/record/cct.h"
#include "runtime/record/trace.h"

#define SAMPLES 200000u
#define ROUNDS 15
#define VARIABLES 64u
#define BLOCK_BYTES (1u << 20)
#define LOG_CHUNKS 1024u
#define CHUNKS (LOG_CHUNKS + 1024u)

static struct {
    struct arena_header *header;
    struct cct_tree tree;
    struct trace_writer writer;
    struct arena_thread *thread;
    uint32_t hits[VARIABLES];
} bench;

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void begin(void)
{
    size_t table = (sizeof *bench.header + 4095) & ~(size_t)4095;
    size_t data = (table + CHUNKS * sizeof(struct arena_chunk) + 65535) & ~(size_t)65535;
    size_t n_bytes = data + (size_t)CHUNKS * ARENA_CHUNK_BYTES;
    bench.header = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (bench.header == MAP_FAILED)
        abort();
    bench.header->size_bytes = n_bytes;
    bench.header->chunk_table_offset = table;
    bench.header->chunk_data_offset = data;
    bench.header->chunk_limit = CHUNKS;
    bench.header->trace_chunk_limit = LOG_CHUNKS;
    arena_attach_sig(bench.header);
    arena_shared_reset_sig();
    if (!arena_shared_begin_sig())
        abort();
    bench.thread = arena_shared_reserve_sig(ARENA_THREADS, sizeof *bench.thread);
    arena_shared_end_sig();
    if (!bench.thread || !cct_init_sig(&bench.tree, ARENA_NODES, arena_ref_sig(bench.thread), true))
        abort();
    for (uint32_t i = 0; i < VARIABLES; i++) {
        const struct cct_key key = {.var = var_key(VAR_STATIC, 1, i)};
        struct arena_hit *hit = cct_hit_sig(&bench.tree, bench.tree.root, &key, CCT_REACH_LEAST, 0);
        if (!hit)
            abort();
        bench.hits[i] = arena_ref_sig(hit);
    }
}

/* A sample of the draw: which variable, and where in it. Half of the samples lie in the variable's first lines. */
static const struct arena_hit *draw(uint64_t *chance, struct reach_sample *sample)
{
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    uint32_t variable = (uint32_t)(*chance >> 58);
    uint64_t offset = (*chance >> 20) % (*chance >> 40 & 1 ? 256 : BLOCK_BYTES) & ~(uint64_t)7;
    *sample = (struct reach_sample){((uint64_t)variable + 1) * BLOCK_BYTES + offset, offset, 1 + (*chance >> 41 & 1)};
    return arena_record_sig(bench.hits[variable]);
}

static double round_ns(bool with_reach, bool with_log, uint64_t *chance)
{
    uint64_t sum = 0;
    double before = now_ns();
    for (uint32_t i = 0; i < SAMPLES; i++) {
        struct reach_sample sample;
        const struct arena_hit *hit = draw(chance, &sample);
        sum += hit->var ^ sample.address;
        if (with_reach && !cct_reach_sig(&bench.tree, hit, &sample, BLOCK_BYTES))
            abort();
        if (!with_log)
            continue;
        const struct trace_sample logged = {.t_ns = wall_ns(), .offset = sample.offset, .hit = hit};
        trace_put_sig(&bench.writer, bench.thread, arena_ref_sig(bench.thread), &logged);
    }
    double after = now_ns();
    if (sum == 1)
        (void)puts("");
    return (after - before) / SAMPLES;
}

int main(void)
{
    double best[3] = {1e30, 1e30, 1e30};
    uint64_t chance = 88172645463325252u;
    begin();
    for (int i = 0; i < ROUNDS; i++)
        for (int what = 0; what < 3; what++) {
            double ns = round_ns(what == 1, what == 2, &chance);
            best[what] = ns < best[what] ? ns : best[what];
        }
    printf("%.1f %.1f\n", best[1] - best[0], best[2] - best[0]);
    return 0;
}
