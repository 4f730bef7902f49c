/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2 gathers from a big table through an index vector. Accesses: 89 % / 11 %; the time is the table's. Exit status 77
 * where the processor has no AVX2. */
#include "kernel.h"

#ifdef __x86_64__
#include <immintrin.h>

#define N_TABLE (UINT64_C(1) << 26)
#define N_INDEX (UINT64_C(1) << 13)

static uint32_t *table, *indexes;

__attribute__((target("avx2"))) static KERNEL_NOINLINE uint64_t gather(const uint32_t *words, uint32_t mask,
                                                                       const uint32_t *positions, uint64_t n_turns)
{
    __m256i sum = _mm256_setzero_si256(), masks = _mm256_set1_epi32((int)mask);
    __m256i step = _mm256_set1_epi32(0x10001), moved = _mm256_setzero_si256();
    for (uint64_t i = 0; i < n_turns; i++) {
        const __m256i *at = (const __m256i *)(positions + i * 8 % N_INDEX);
        __m256i index = _mm256_and_si256(_mm256_add_epi32(_mm256_loadu_si256(at), moved), masks);
        sum = _mm256_add_epi32(sum, _mm256_i32gather_epi32((const int *)words, index, 4));
        moved = _mm256_add_epi32(moved, step);
    }
    return (uint64_t)_mm256_extract_epi64(sum, 0);
}

static uint64_t run(uint64_t n_turns, unsigned resident)
{
    return gather(table, resident ? 1023 : N_TABLE - 1, indexes, n_turns);
}

int main(int argc, char **argv)
{
    static const struct kernel_loop loop = {run, {"table", NULL}, KERNEL_ALONE};
    uint64_t state = 521288629u;
    if (!__builtin_cpu_supports("avx2"))
        return 77;
    table = kernel_check(malloc(N_TABLE * sizeof *table));
    indexes = kernel_check(malloc(N_INDEX * sizeof *indexes));
    memset(table, 1, N_TABLE * sizeof *table);
    for (uint64_t i = 0; i < N_INDEX; i++)
        indexes[i] = (uint32_t)(kernel_random(&state) >> 32);
    return kernel_loop_main(argc, argv, &loop, 2000000);
}

#else
int main(void)
{
    return 77;
}
#endif
