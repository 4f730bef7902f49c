/* SPDX-License-Identifier: BSD-3-Clause */
/* More work with a known cure, and the same work after it; see advice.c, which has those for the order and the place of
 * data. Here it is the kernel, the allocator, another thread or the arithmetic that takes the time.
 *
 * usage: cures CASE plain|changed SECONDS      of CPU time of each thread; prints nanoseconds per step */
#include "kernel.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define BUFFER_BYTES (UINT64_C(16) << 20)
#define N_VALUES UINT64_C(2048) /* stay in the first-level cache */
#define PAGE_BYTES 4096u

static double *values;
double exponent = 2; /* neither is known when it is compiled */
uint64_t n_slots = N_VALUES;
static double seconds;
static volatile double results;

static void make_values(void)
{
    values = kernel_check(malloc(N_VALUES * sizeof *values));
    for (uint64_t i = 0; i < N_VALUES; i++)
        values[i] = 1 + (double)i / (double)N_VALUES;
}

/* --- memory that is mapped and touched anew for each step --- */

static char *buffer;

static void make_buffer(void)
{
    buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        exit(1);
    (void)madvise(buffer, BUFFER_BYTES, MADV_NOHUGEPAGE);
}

static KERNEL_NOINLINE uint64_t use_buffer(void)
{
    for (uint64_t i = 0; i < BUFFER_BYTES; i += 256)
        buffer[i] = (char)i;
    return BUFFER_BYTES / 256;
}

static uint64_t use_new_buffer(void)
{
    make_buffer();
    uint64_t n = use_buffer();
    (void)munmap(buffer, BUFFER_BYTES);
    return n;
}

/* --- a block for each step --- */

static KERNEL_NOINLINE uint64_t sum_with(double *scratch, uint64_t i)
{
    for (unsigned k = 0; k < 8; k++)
        scratch[k] = values[(i + k) & (N_VALUES - 1)];
    results += scratch[i & 7];
    return 1;
}

static KERNEL_NOINLINE uint64_t sum_in_blocks(void)
{
    for (uint64_t i = 0; i < N_VALUES; i++) {
        double *scratch = kernel_check(malloc(8 * sizeof *scratch + 16 * (i & 63)));
        (void)sum_with(scratch, i);
        free(scratch);
    }
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t sum_in_one_block(void)
{
    double *scratch = kernel_check(malloc(8 * sizeof *scratch + 16 * 64));
    for (uint64_t i = 0; i < N_VALUES; i++)
        (void)sum_with(scratch, i);
    free(scratch);
    return N_VALUES;
}

/* --- a block that grows by one element at a time, and is copied each time --- */

#define N_BEFORE UINT64_C(8192) /* elements: the copy takes longer than the call */

static double *series;

static KERNEL_NOINLINE uint64_t grow_by_one(void)
{
    series = kernel_check(calloc(N_BEFORE, sizeof *series));
    for (uint64_t i = N_BEFORE; i < N_BEFORE + N_VALUES; i++) {
        double *longer = kernel_check(malloc((i + 1) * sizeof *longer));
        memcpy(longer, series, i * sizeof *longer);
        free(series);
        series = longer;
        series[i] = (double)i;
    }
    results += series[N_BEFORE];
    free(series);
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t grow_at_once(void)
{
    series = kernel_check(calloc(N_BEFORE + N_VALUES, sizeof *series));
    for (uint64_t i = N_BEFORE; i < N_BEFORE + N_VALUES; i++)
        series[i] = (double)i;
    results += series[N_BEFORE];
    free(series);
    return N_VALUES;
}

/* --- arithmetic --- */

static KERNEL_NOINLINE uint64_t add_in_a_chain(void)
{
    double sum = 0;
    for (uint64_t i = 0; i < N_VALUES; i++)
        sum += values[i];
    results += sum;
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t add_in_four_chains(void)
{
    double sums[4] = {0};
    for (uint64_t i = 0; i < N_VALUES; i += 4)
        for (unsigned k = 0; k < 4; k++)
            sums[k] += values[i + k];
    results += sums[0] + sums[1] + sums[2] + sums[3];
    return N_VALUES;
}

static uint64_t hash(uint64_t i)
{
    return i * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static KERNEL_NOINLINE uint64_t look_up_by_remainder(void)
{
    double even = 0, odd = 0;
    for (uint64_t i = 0; i < N_VALUES; i += 2) {
        even += values[hash(i) % n_slots];
        odd += values[hash(i + 1) % n_slots];
    }
    results += even + odd;
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t look_up_by_mask(void)
{
    double even = 0, odd = 0;
    for (uint64_t i = 0; i < N_VALUES; i += 2) {
        even += values[hash(i) & (n_slots - 1)];
        odd += values[hash(i + 1) & (n_slots - 1)];
    }
    results += even + odd;
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t square_by_pow(void)
{
    double even = 0, odd = 0;
    for (uint64_t i = 0; i < N_VALUES; i += 2) {
        even += pow(values[i], exponent);
        odd += pow(values[i + 1], exponent);
    }
    results += even + odd;
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t square(void)
{
    double even = 0, odd = 0;
    for (uint64_t i = 0; i < N_VALUES; i += 2) {
        even += values[i] * values[i];
        odd += values[i + 1] * values[i + 1];
    }
    results += even + odd;
    return N_VALUES;
}

/* --- text that grows at its end --- */

static char *text;

static void make_text(void)
{
    text = kernel_check(malloc(16 * N_VALUES + 1));
}

static KERNEL_NOINLINE uint64_t append_behind_all(void)
{
    *text = 0;
    for (uint64_t i = 0; i < N_VALUES; i++)
        (void)strcat(text, "0123456789abcde,");
    return N_VALUES;
}

static KERNEL_NOINLINE uint64_t append_at_end(void)
{
    char *end = text;
    for (uint64_t i = 0; i < N_VALUES; i++)
        end = stpcpy(end, "0123456789abcde,");
    return N_VALUES;
}

/* --- a lock that each step takes --- */

static pthread_spinlock_t lock;
static uint64_t total;

static KERNEL_NOINLINE void count_locked(void)
{
    for (uint64_t i = 0; i < N_VALUES; i++) {
        (void)pthread_spin_lock(&lock);
        total += (uint64_t)values[i];
        (void)pthread_spin_unlock(&lock);
    }
}

static KERNEL_NOINLINE void count_alone(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N_VALUES; i++)
        sum += (uint64_t)values[i];
    (void)pthread_spin_lock(&lock);
    total += sum;
    (void)pthread_spin_unlock(&lock);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counts[256];

static KERNEL_NOINLINE void count_in_mutex(void)
{
    for (uint64_t i = 0; i < N_VALUES; i++) {
        (void)pthread_mutex_lock(&mutex);
        counts[(uint64_t)values[i] & 255]++;
        (void)pthread_mutex_unlock(&mutex);
    }
}

static KERNEL_NOINLINE void count_apart(void)
{
    uint64_t own[256] = {0};
    for (uint64_t i = 0; i < N_VALUES; i++)
        own[(uint64_t)values[i] & 255]++;
    (void)pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < 256; i++)
        counts[i] += own[i];
    (void)pthread_mutex_unlock(&mutex);
}

struct counter {
    void (*count)(void);
    uint64_t n;
};

static void *count_in_thread(void *context)
{
    struct counter *counter = context;
    for (double start = kernel_now(); kernel_now() - start < seconds; counter->n += N_VALUES)
        counter->count();
    return NULL;
}

static uint64_t count_in_threads(void (*count)(void))
{
    struct counter counters[2] = {{count, 0}, {count, 0}};
    pthread_t other;
    if (pthread_create(&other, NULL, count_in_thread, &counters[1]) != 0)
        exit(1);
    (void)count_in_thread(&counters[0]);
    (void)pthread_join(other, NULL);
    return (counters[0].n + counters[1].n) / 2;
}

static uint64_t count_with_lock(void)
{
    return count_in_threads(count_locked);
}

static uint64_t count_without_lock(void)
{
    return count_in_threads(count_alone);
}

static uint64_t count_with_mutex(void)
{
    return count_in_threads(count_in_mutex);
}

static uint64_t count_without_mutex(void)
{
    return count_in_threads(count_apart);
}

static void make_lock(void)
{
    make_values();
    (void)pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
}

static const struct kernel_case cases[] = {
    {"pages-anew", {make_buffer, make_buffer}, {use_new_buffer, use_buffer}},
    {"block-a-step", {make_values, make_values}, {sum_in_blocks, sum_in_one_block}},
    {"grown", {NULL, NULL}, {grow_by_one, grow_at_once}},
    {"chain-of-sums", {make_values, make_values}, {add_in_a_chain, add_in_four_chains}},
    {"divisions", {make_values, make_values}, {look_up_by_remainder, look_up_by_mask}},
    {"powers", {make_values, make_values}, {square_by_pow, square}},
    {"appended", {make_text, make_text}, {append_behind_all, append_at_end}},
    {"lock-a-step", {make_lock, make_lock}, {count_with_lock, count_without_lock}},
    {"mutex-a-step", {make_values, make_values}, {count_with_mutex, count_without_mutex}},
};

int main(int argc, char **argv)
{
    return kernel_cases_main(argc, argv, cases, sizeof cases / sizeof *cases, &seconds);
}
