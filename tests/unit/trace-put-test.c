/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the bounded log of samples (runtime/record/trace.h), in arenas far too small for it: at any moment it
 * holds exactly the samples of every thread whose turn it is. LOCUS_TRACE_SAMPLES changes how many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/record/trace.h"

#define THREADS 5
#define TABLE_AT 131072u
#define DATA_AT 262144u

struct thread {
    struct arena_thread *record;
    struct arena_hit *hit;
    struct trace_writer writer;
    uint32_t ref;
};

static struct {
    struct arena_header *header;
    size_t n_bytes;
    struct thread threads[THREADS];
} log_of;

static uint64_t n_samples(uint64_t n)
{
    const char *wanted = getenv("LOCUS_TRACE_SAMPLES");
    return wanted ? strtoull(wanted, NULL, 10) : n;
}

/* An arena with room for n_log chunks of the log, and threads whose hits are the first records after them. */
static void begin(uint32_t n_log)
{
    uint32_t n_chunks = n_log + 64;
    log_of.n_bytes = DATA_AT + (size_t)n_chunks * ARENA_CHUNK_BYTES;
    log_of.header =
        mmap(NULL, log_of.n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(log_of.header, MAP_FAILED);
    assert_true(sizeof *log_of.header <= TABLE_AT && n_chunks * sizeof(struct arena_chunk) <= DATA_AT - TABLE_AT);
    log_of.header->chunk_table_offset = TABLE_AT;
    log_of.header->chunk_data_offset = DATA_AT;
    log_of.header->chunk_limit = n_chunks;
    log_of.header->trace_chunk_limit = n_log;
    log_of.header->start_mono_ns = 1000;
    arena_attach_sig(log_of.header);
    arena_shared_reset_sig();
    assert_true(arena_shared_begin_sig());
    for (unsigned i = 0; i < THREADS; i++) {
        struct thread *thread = &log_of.threads[i];
        *thread = (struct thread){.record = arena_shared_reserve_sig(ARENA_THREADS, sizeof *thread->record),
                                  .hit = arena_shared_reserve_sig(ARENA_HITS, sizeof *thread->hit)};
        assert_true(thread->record && thread->hit);
        thread->record->id = i;
        thread->ref = arena_ref_sig(thread->record);
    }
    arena_shared_end_sig();
}

static void end(void)
{
    arena_attach_sig(NULL);
    assert_int_equal(munmap(log_of.header, log_of.n_bytes), 0);
}

/* Sample number n of a thread was taken at n, and has n in its other members too. */
static void put(unsigned thread, uint64_t n)
{
    struct thread *to = &log_of.threads[thread];
    const struct trace_sample sample = {
        .t_ns = 1001 + n, .offset = n, .lat_cycles = n, .hit = to->hit, .cpu = (uint16_t)n};
    trace_put_sig(&to->writer, to->record, to->ref, &sample);
}

/* What the log has of each thread: records, all of which are whole, and the sum of their numbers. */
struct found {
    uint64_t n[THREADS], sum[THREADS];
};

static void look(struct found *found)
{
    const struct arena_chunk *table = (const void *)((const char *)log_of.header + TABLE_AT);
    unsigned level = arena_trace_min_level(log_of.header);
    uint32_t n_chunks = atomic_load(&log_of.header->n_chunks);
    memset(found, 0, sizeof *found);
    for (uint32_t i = 0; i < n_chunks; i++) {
        if (table[i].kind != ARENA_TRACE || table[i].behind)
            continue;
        const struct arena_trace *records =
            (const void *)((const char *)log_of.header + DATA_AT + (size_t)i * ARENA_CHUNK_BYTES);
        for (uint32_t k = 0; k < arena_run_used(&table[i], n_chunks - i) / sizeof *records; k++) {
            uint64_t stamp = records[k].stamp, n = arena_trace_time(stamp) - 1;
            if (!stamp || arena_trace_stamp_level(stamp) < level)
                continue;
            unsigned thread = 0;
            while (thread < THREADS &&
                   arena_ref_sig(log_of.threads[thread].hit) != (uint32_t)records[k].hit_and_latency)
                thread++;
            assert_true(thread < THREADS);
            assert_int_equal(records[k].hit_and_latency >> 32, n & UINT32_MAX);
            assert_int_equal(records[k].place, n << 48 | (n & ARENA_TRACE_NO_OFFSET));
            assert_int_equal(arena_trace_stamp_level(stamp), arena_trace_level(thread, n));
            found->n[thread]++;
            found->sum[thread] += n;
        }
    }
}

/* What it should have of a thread that has put n samples, by going through all of them. */
static void expect(unsigned thread, uint64_t n, const struct found *found)
{
    uint64_t n_due = 0, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        if (arena_trace_level(thread, i) >= arena_trace_min_level(log_of.header)) {
            n_due++;
            sum += i;
        }
    assert_int_equal(log_of.threads[thread].record->n_traced, n);
    assert_int_equal(log_of.threads[thread].record->n_untraced, 0);
    assert_int_equal(found->n[thread], n_due);
    assert_true(found->sum[thread] == sum);
}

static uint64_t n_all(const struct found *found)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < THREADS; i++)
        n += found->n[i];
    return n;
}

/* While there is room, every sample is there; then the log stays between half full and full. */
static void test_one_thread(void **state)
{
    (void)state;
    struct found found;
    uint64_t n = n_samples(1000000), room = 128 * ARENA_CHUNK_BYTES / sizeof(struct arena_trace);
    begin(128);
    for (uint64_t i = 0; i < 10000; i++)
        put(0, i);
    look(&found);
    assert_int_equal(arena_trace_min_level(log_of.header), 0);
    expect(0, 10000, &found);
    for (uint64_t i = 10000; i < n; i++)
        put(0, i);
    look(&found);
    expect(0, n, &found);
    print_message("%llu samples: level %u, %llu of %llu records\n", (unsigned long long)n,
                  arena_trace_min_level(log_of.header), (unsigned long long)found.n[0], (unsigned long long)room);
    assert_true(found.n[0] <= room && found.n[0] >= room / 2 - room / 64);
    end();
}

/* Threads of very different rates, which take turns: none is thinned more than the others. */
static void test_uneven_threads(void **state)
{
    (void)state;
    struct found found;
    uint64_t n[THREADS] = {0}, total = n_samples(1000000), all = 0;
    begin(64);
    for (uint64_t i = 0; i < total; i++) {
        unsigned thread = i % 1000 == 7 ? 0 : i % 100 == 3 ? 1 : i % 10 == 1 ? 2 : 3 + i % 2;
        put(thread, n[thread]++);
    }
    look(&found);
    for (unsigned i = 0; i < THREADS; i++) {
        expect(i, n[i], &found);
        all += n[i];
    }
    assert_true(all == total && n_all(&found) < total / 4);
    end();
}

/* Runs of threads that have ended are there for others. */
static void test_ended_threads(void **state)
{
    (void)state;
    struct found found;
    begin(48);
    for (unsigned thread = 0; thread < THREADS; thread++) {
        for (uint64_t i = 0; i < 40000; i++)
            put(thread, i);
        trace_leave_sig(&log_of.threads[thread].writer);
    }
    look(&found);
    for (unsigned thread = 0; thread < THREADS; thread++)
        expect(thread, 40000, &found);
    end();
}

/* Where others hold all runs, samples are lost and counted, and what there is stays. */
static void test_no_room(void **state)
{
    (void)state;
    struct found found;
    begin(4);
    for (unsigned thread = 0; thread < 4; thread++)
        put(thread, 0);
    for (uint64_t i = 0; i < 1000; i++)
        put(4, i);
    look(&found);
    unsigned level = arena_trace_min_level(log_of.header);
    assert_true(level <= 1);
    assert_int_equal(found.n[4], 0);
    assert_true(log_of.threads[4].record->n_untraced >= 499);
    for (uint64_t i = 1; i < 20; i++)
        put(0, i);
    look(&found);
    expect(0, 20, &found);
    end();
}

static void *put_many(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;
    for (uint64_t i = 0, n = n_samples(1000000) / 4; i < n; i++)
        put(thread, i);
    return NULL;
}

/* Threads at once. */
static void test_threads_at_once(void **state)
{
    (void)state;
    struct found found;
    pthread_t threads[THREADS];
    begin(128);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    look(&found);
    for (unsigned i = 0; i < THREADS; i++)
        expect(i, n_samples(1000000) / 4, &found);
    end();
}

/* Killed at a random moment: what is there is whole, and each thread lacks at most the sample that it was about to
 * put. */
static void test_kills(void **state)
{
    (void)state;
    for (unsigned try = 0; try < 100; try++) {
        struct found found;
        begin(48);
        pid_t child = fork();
        if (child == 0)
            for (uint64_t i = 0;; i++)
                for (unsigned thread = 0; thread < THREADS; thread++)
                    put(thread, i);
        assert_true(child > 0);
        (void)usleep(200 + try * 97);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        look(&found);
        for (unsigned thread = 0; thread < THREADS; thread++) {
            uint64_t n = log_of.threads[thread].record->n_traced, n_due = 0;
            for (uint64_t i = 0; i < n; i++)
                n_due += arena_trace_level(thread, i) >= arena_trace_min_level(log_of.header);
            assert_true(found.n[thread] == n_due || found.n[thread] + 1 == n_due);
            assert_int_equal(log_of.threads[thread].record->n_untraced, 0);
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread), cmocka_unit_test(test_uneven_threads),  cmocka_unit_test(test_ended_threads),
        cmocka_unit_test(test_no_room),    cmocka_unit_test(test_threads_at_once), cmocka_unit_test(test_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
