/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that are walked in order. The loop takes a chunk at a time; the twin takes the first chunk every time. */
#include "causes.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define CHUNK UINT64_C(2048) /* numbers of 16 KB */
#define PIECE UINT64_C(512)  /* of each of three arrays */

static double *addends, *lanes, *divisors, *factors;
static double *sums, *first_terms, *second_terms;
static double *rows, *columns;
static uint32_t *coins;
static uint64_t *tiles;
static uint64_t n_addends, n_lanes, n_divisors, n_factors, n_coins, n_sums, n_tiles, n_vectors; /* in chunks */

/* Chunk that thread works on in this turn; several threads walk at a distance from each other. */
static inline uint64_t next_chunk(uint64_t *turn, uint64_t n, unsigned resident, unsigned thread)
{
    uint64_t first = thread * (n / CAUSE_THREADS);
    return resident ? first : (first + (*turn)++) % n;
}

/* --- one number after the other, each result waiting for the one before --- */

static CAUSE_LOOP double add_chain(const double *x, uint64_t n, double sum)
{
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static CAUSE_LOOP double four_sums(const double *x, uint64_t n, double start)
{
    double sum0 = start, sum1 = 0, sum2 = 0, sum3 = 0;
    for (uint64_t i = 0; i < n; i += 4) {
        sum0 += x[i];
        sum1 += x[i + 1];
        sum2 += x[i + 2];
        sum3 += x[i + 3];
    }
    return sum0 + sum1 + sum2 + sum3;
}

static CAUSE_LOOP double divide_chain(const double *x, uint64_t n, double quotient)
{
    for (uint64_t i = 0; i < n; i++)
        quotient = x[i] / quotient;
    return quotient;
}

static CAUSE_LOOP double multiply_chain(const double *x, uint64_t n, double product)
{
    for (uint64_t i = 0; i < n; i++)
        product *= x[i];
    return product;
}

static void run_chunks(double (*loop)(const double *, uint64_t, double), const double *x, uint64_t n, uint64_t n_turns,
                       unsigned resident, unsigned thread)
{
    static struct {
        uint64_t turn;
        char line[KERNEL_LINE];
    } state[CAUSE_THREADS];
    double result = 1;
    for (uint64_t i = 0; i < n_turns; i++)
        result = loop(x + next_chunk(&state[thread].turn, n, resident, thread) * CHUNK, CHUNK, result);
    cause_keep(result);
}

static void make_addends(uint64_t size)
{
    addends = kernel_check(malloc(size * sizeof *addends));
    cause_fill(addends, size, 1, 0.5);
    n_addends = size / CHUNK;
}

static void run_addends(uint64_t n_turns, unsigned resident, unsigned thread)
{
    run_chunks(add_chain, addends, n_addends, n_turns, resident, thread);
}

static void make_lanes(uint64_t size)
{
    lanes = kernel_check(malloc(size * sizeof *lanes));
    cause_fill(lanes, size, 1, 0.5);
    n_lanes = size / CHUNK;
}

static void run_lanes(uint64_t n_turns, unsigned resident, unsigned thread)
{
    run_chunks(four_sums, lanes, n_lanes, n_turns, resident, thread);
}

static void make_divisors(uint64_t size)
{
    divisors = kernel_check(malloc(size * sizeof *divisors));
    cause_fill(divisors, size, 1, 1e-6); /* the quotient stays about 1 */
    n_divisors = size / CHUNK;
}

static void run_divisors(uint64_t n_turns, unsigned resident, unsigned thread)
{
    run_chunks(divide_chain, divisors, n_divisors, n_turns, resident, thread);
}

static void make_factors(uint64_t size)
{
    factors = kernel_check(malloc(size * sizeof *factors));
    cause_fill(factors, size, 1, 1e-12); /* the product stays about 1 */
    n_factors = size / CHUNK;
}

static void run_factors(uint64_t n_turns, unsigned resident, unsigned thread)
{
    run_chunks(multiply_chain, factors, n_factors, n_turns, resident, thread);
}

/* --- branches that nobody foresees: the salt is another one for each chunk, so that the twin's are not learned --- */

static CAUSE_LOOP uint64_t branches(const uint32_t *words, uint64_t n, uint32_t salt, uint64_t start)
{
    uint64_t heads = start, tails = start;
    for (uint64_t i = 0; i < n; i++) {
        if (words[i] * salt >> 31) {
            heads += i;
            __asm__ volatile("" : "+r"(heads)); /* keeps the compiler from doing without a branch */
        } else {
            tails ^= i;
            __asm__ volatile("" : "+r"(tails));
        }
    }
    return heads + tails;
}

static void make_coins(uint64_t size)
{
    coins = kernel_check(malloc(size * sizeof *coins));
    cause_fill_indexes(coins, size, UINT32_MAX);
    n_coins = size / CHUNK;
}

static void run_coins(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn, salt = 1;
    uint64_t result = 0;
    for (uint64_t i = 0; i < n_turns; i++) {
        const uint32_t *chunk = coins + next_chunk(&turn, n_coins, resident, thread) * CHUNK;
        result = branches(chunk, CHUNK, (uint32_t)(cause_random(&salt) >> 32) | 1, result);
    }
    cause_keep_word(result);
}

/* --- triad: in the twin all three pieces fit; each begins in another set of the cache --- */

static CAUSE_LOOP void triad(double *a, const double *b, const double *c, uint64_t n, double scale)
{
    for (uint64_t i = 0; i < n; i++)
        a[i] = b[i] + scale * c[i];
}

static void make_triad(uint64_t size)
{
    sums = kernel_check(malloc(size * sizeof *sums));
    first_terms = kernel_check(malloc((size + 3 * PIECE) * sizeof *first_terms));
    second_terms = kernel_check(malloc((size + 3 * PIECE) * sizeof *second_terms));
    cause_fill(sums, size, 1, 0.5);
    cause_fill(first_terms, size + 3 * PIECE, 1, 0.5);
    cause_fill(second_terms, size + 3 * PIECE, 1, 0.5);
    n_sums = size / PIECE;
}

static void run_triad(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn;
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t first = next_chunk(&turn, n_sums, resident, thread) * PIECE;
        triad(sums + first, first_terms + first + PIECE + 64, second_terms + first + 2 * PIECE + 128, PIECE, 3);
    }
}

/* --- a matrix product that walks the second factor down its columns; the twin's columns are a few lines --- */

#define N_ROWS UINT64_C(16)
#define N_INNER UINT64_C(1024)
#define N_ACROSS UINT64_C(8200)

static CAUSE_LOOP double dot(const double *row, const double *column, uint64_t n, uint64_t stride)
{
    double sum = 0;
    for (uint64_t k = 0; k < n; k++)
        sum += row[k] * column[k * stride];
    return sum;
}

static void make_columns(uint64_t size)
{
    rows = kernel_check(malloc(N_ROWS * N_INNER * sizeof *rows));
    columns = kernel_check(malloc(size * sizeof *columns));
    cause_fill(rows, N_ROWS * N_INNER, 1, 0.5);
    cause_fill(columns, size, 1, 0.5);
}

/* One turn is one element of the product; each comes from a column a line further on. */
static void run_columns(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t element;
    (void)thread;
    for (uint64_t i = 0; i < n_turns; i++, element++) {
        const double *row = rows + (resident ? 0 : element / (N_ACROSS / 8) % N_ROWS * N_INNER);
        const double *column = columns + (resident ? 0 : element % (N_ACROSS / 8) * 8);
        cause_keep(dot(row, column, N_INNER, resident ? 1 : N_ACROSS));
    }
}

/* --- a tile of 8 KB that is worked on at random, then moved on --- */

#define TILE UINT64_C(1024)
#define VISITS UINT64_C(8192)

static CAUSE_LOOP uint64_t visit(const uint64_t *tile, uint64_t n, uint64_t seed)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += tile[cause_random(&seed) >> 40 & (TILE - 1)];
    return sum ^ seed;
}

static void make_tiles(uint64_t size)
{
    tiles = kernel_check(malloc(size * sizeof *tiles));
    kernel_fill(tiles, size);
    n_tiles = size / TILE;
}

static void run_tiles(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn;
    uint64_t result = 1;
    for (uint64_t i = 0; i < n_turns; i++)
        result = visit(tiles + next_chunk(&turn, n_tiles, resident, thread) * TILE, VISITS, result);
    cause_keep_word(result);
}

/* --- whole vectors --- */

static double *vectors;

#ifdef __x86_64__
__attribute__((target("avx2"))) static CAUSE_LOOP double vector_sum(const double *x, uint64_t n, double start)
{
    __m256d sum0 = _mm256_set1_pd(start), sum1 = _mm256_setzero_pd(), sum2 = sum1, sum3 = sum1;
    for (uint64_t i = 0; i < n; i += 16) {
        sum0 = _mm256_add_pd(sum0, _mm256_loadu_pd(x + i));
        sum1 = _mm256_add_pd(sum1, _mm256_loadu_pd(x + i + 4));
        sum2 = _mm256_add_pd(sum2, _mm256_loadu_pd(x + i + 8));
        sum3 = _mm256_add_pd(sum3, _mm256_loadu_pd(x + i + 12));
    }
    sum0 = _mm256_add_pd(_mm256_add_pd(sum0, sum1), _mm256_add_pd(sum2, sum3));
    return _mm256_cvtsd_f64(sum0);
}
#else
static double vector_sum(const double *x, uint64_t n, double start)
{
    return four_sums(x, n, start);
}
#endif

static void make_vectors(uint64_t size)
{
    vectors = kernel_check(malloc(size * sizeof *vectors));
    cause_fill(vectors, size, 1, 0.5);
    n_vectors = size / CHUNK;
}

static void run_vectors(uint64_t n_turns, unsigned resident, unsigned thread)
{
    run_chunks(vector_sum, vectors, n_vectors, n_turns, resident, thread);
}

#define MB_OF_DOUBLES (UINT64_C(1) << 17)

const struct cause_row cause_streams[] = {
    {.name = "add_16k", .groups = {"addends"}, .make = make_addends, .run = run_addends, .size = CHUNK},
    {.name = "add_256m", .groups = {"addends"}, .make = make_addends, .run = run_addends, .size = 256 * MB_OF_DOUBLES},
    {.name = "four_sums", .groups = {"lanes"}, .make = make_lanes, .run = run_lanes, .size = 256 * MB_OF_DOUBLES},
    {.name = "four_sums_threads",
     .groups = {"lanes"},
     .make = make_lanes,
     .run = run_lanes,
     .size = 256 * MB_OF_DOUBLES,
     .n_threads = CAUSE_THREADS},
    {.name = "divide_16k", .groups = {"divisors"}, .make = make_divisors, .run = run_divisors, .size = CHUNK},
    {.name = "divide_16m",
     .groups = {"divisors"},
     .make = make_divisors,
     .run = run_divisors,
     .size = 16 * MB_OF_DOUBLES},
    {.name = "multiply_16k", .groups = {"factors"}, .make = make_factors, .run = run_factors, .size = CHUNK},
    {.name = "multiply_256m",
     .groups = {"factors"},
     .make = make_factors,
     .run = run_factors,
     .size = 256 * MB_OF_DOUBLES},
    {.name = "branches_16k", .groups = {"coins"}, .make = make_coins, .run = run_coins, .size = CHUNK},
    {.name = "branches_16m", .groups = {"coins"}, .make = make_coins, .run = run_coins, .size = 32 * MB_OF_DOUBLES},
    {.name = "triad",
     .groups = {"sums+first_terms+second_terms"},
     .make = make_triad,
     .run = run_triad,
     .size = 64 * MB_OF_DOUBLES},
    {.name = "matmul_columns",
     .groups = {"columns"},
     .make = make_columns,
     .run = run_columns,
     .size = N_INNER * N_ACROSS},
    {.name = "tile", .groups = {"tiles"}, .make = make_tiles, .run = run_tiles, .size = 256 * MB_OF_DOUBLES},
    {.name = "avx2_sum",
     .groups = {"vectors"},
     .make = make_vectors,
     .run = run_vectors,
     .size = 256 * MB_OF_DOUBLES,
     .needs_avx2 = 1},
    {.name = NULL},
};
