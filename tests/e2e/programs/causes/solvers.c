/* SPDX-License-Identifier: BSD-3-Clause */
/* The inner loops of sparse solvers and of a transport code. What streams has its twin in a few rows that are taken
 * every time; then the indexes are shifted, another way each time, so that they lead to other elements. */
#include "causes.h"

enum { STREAMED = 1, PICKED = 2 }; /* bits of resident */

#define PICKED_MASK UINT64_C(1023) /* 8 KB of numbers */

/* --- a sparse matrix times a vector: rows of equal length at random columns --- */

#define ROW_LENGTH UINT64_C(16)
#define CSR_ROWS (UINT64_C(1) << 18)
#define CSR_CHUNK UINT64_C(32) /* rows: 6 KB */

static double *values, *vector, *product;
static uint32_t *columns;
static uint32_t *row_starts;
static uint64_t vector_mask;

static CAUSE_LOOP void multiply(double *y, const double *a, const uint32_t *column, const uint32_t *start,
                                const double *x, uint64_t n, uint64_t shift, uint64_t mask)
{
    for (uint64_t row = 0; row < n; row++) {
        double sum = 0;
        for (uint64_t k = start[row]; k < start[row + 1]; k++)
            sum += a[k] * x[(column[k] + shift) & mask];
        y[row] = sum;
    }
}

static void make_csr(uint64_t size)
{
    uint64_t n = CSR_ROWS * ROW_LENGTH;
    values = kernel_check(malloc(n * sizeof *values));
    columns = kernel_check(malloc(n * sizeof *columns));
    row_starts = kernel_check(malloc((CSR_ROWS + 1) * sizeof *row_starts));
    vector = kernel_check(malloc(size * sizeof *vector));
    product = kernel_check(calloc(CSR_ROWS, sizeof *product));
    cause_fill(values, n, 1, 0.5);
    cause_fill(vector, size, 1, 0.5);
    cause_fill_indexes(columns, n, size);
    for (uint64_t i = 0; i <= CSR_ROWS; i++)
        row_starts[i] = (uint32_t)(i * ROW_LENGTH);
    vector_mask = size - 1;
}

static void run_csr(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static struct {
        uint64_t turn, shift;
        char line[KERNEL_LINE];
    } state[CAUSE_THREADS];
    uint64_t n_chunks = CSR_ROWS / CSR_CHUNK, mask = vector_mask;
    if (resident & PICKED && mask > PICKED_MASK)
        mask = PICKED_MASK;
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t first = thread * (n_chunks / CAUSE_THREADS);
        uint64_t row = (resident & STREAMED ? first : (first + state[thread].turn++) % n_chunks) * CSR_CHUNK;
        multiply(product + row, values, columns, row_starts + row, vector, CSR_CHUNK,
                 cause_random(&state[thread].shift) >> 32, mask);
    }
}

/* --- conjugate gradients as in the NAS benchmark: a matrix of random columns, larger than the second-level cache, and
 * a vector that is not --- */

#define CG_SIZE (UINT64_C(1) << 14)
#define CG_LENGTH UINT64_C(64)
#define CG_CHUNK UINT64_C(8) /* rows: 6 KB */

static double *a, *p, *q, *r, *z;
static uint32_t *colidx, *rowstr;

static CAUSE_LOOP double row_sum(const double *matrix, const uint32_t *column, const double *x, uint64_t start,
                                 uint64_t end, uint64_t shift, uint64_t mask)
{
    double sum = 0;
    for (uint64_t k = start; k < end; k++)
        sum += matrix[k] * x[(column[k] + shift) & mask];
    return sum;
}

static CAUSE_LOOP double row_four_sums(const double *matrix, const uint32_t *column, const double *x, uint64_t start,
                                       uint64_t end, uint64_t shift, uint64_t mask)
{
    double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (uint64_t k = start; k < end; k += 4) {
        sum0 += matrix[k] * x[(column[k] + shift) & mask];
        sum1 += matrix[k + 1] * x[(column[k + 1] + shift) & mask];
        sum2 += matrix[k + 2] * x[(column[k + 2] + shift) & mask];
        sum3 += matrix[k + 3] * x[(column[k + 3] + shift) & mask];
    }
    return sum0 + sum1 + sum2 + sum3;
}

static CAUSE_LOOP double inner_product(const double *x, const double *y, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static CAUSE_LOOP void add_scaled(double *y, const double *x, double scale, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

static CAUSE_LOOP void scale_and_add(double *y, const double *x, double scale, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i] + scale * y[i];
}

static void make_cg(uint64_t size)
{
    a = kernel_check(malloc(size * CG_LENGTH * sizeof *a));
    colidx = kernel_check(malloc(size * CG_LENGTH * sizeof *colidx));
    rowstr = kernel_check(malloc((size + 1) * sizeof *rowstr));
    p = kernel_check(malloc(size * sizeof *p));
    q = kernel_check(malloc(size * sizeof *q));
    r = kernel_check(malloc(size * sizeof *r));
    z = kernel_check(malloc(size * sizeof *z));
    cause_fill(a, size * CG_LENGTH, 0, 1.0 / 128);
    cause_fill_indexes(colidx, size * CG_LENGTH, size);
    for (uint64_t i = 0; i <= size; i++)
        rowstr[i] = (uint32_t)(i * CG_LENGTH);
    for (uint64_t i = 0; i < size; i++) {
        colidx[rowstr[i]] = (uint32_t)i; /* the diagonal, which outweighs the rest of its row */
        a[rowstr[i]] = 2;
    }
    cause_fill(p, size, 0, 1);
    memcpy(r, p, size * sizeof *r);
    memset(z, 0, size * sizeof *z);
}

typedef double cg_row(const double *, const uint32_t *, const double *, uint64_t, uint64_t, uint64_t, uint64_t);

/* A turn is a part of an iteration: so many rows of q = A p, and as many elements of the vectors. The residual is
 * replaced, not reduced, from one iteration to the next: numbers that vanish would change what an addition takes. */
static void run_cg_rows(cg_row *row_of, uint64_t n_turns, unsigned resident)
{
    static uint64_t turn, shift = 1;
    uint64_t mask = resident & PICKED ? PICKED_MASK : CG_SIZE - 1;
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t row = turn++ % (CG_SIZE / CG_CHUNK) * CG_CHUNK, start = resident & STREAMED ? 0 : row;
        uint64_t vectors = resident & PICKED ? row & PICKED_MASK : row;
        uint64_t moved = cause_random(&shift) >> 32 & (resident & STREAMED ? UINT64_MAX : 0);
        for (uint64_t k = 0; k < CG_CHUNK; k++)
            q[vectors + k] = row_of(a, colidx, p, rowstr[start + k], rowstr[start + k + 1], moved, mask);
        double alpha = inner_product(p + vectors, q + vectors, CG_CHUNK) * 1e-3;
        add_scaled(z + vectors, p + vectors, alpha, CG_CHUNK);
        add_scaled(r + vectors, q + vectors, -alpha, CG_CHUNK);
        double beta = 1e-3 / (1 + inner_product(r + vectors, r + vectors, CG_CHUNK));
        scale_and_add(p + vectors, r + vectors, beta, CG_CHUNK);
    }
}

static void run_cg(uint64_t n_turns, unsigned resident, unsigned thread)
{
    (void)thread;
    run_cg_rows(row_sum, n_turns, resident);
}

static void run_cg_four(uint64_t n_turns, unsigned resident, unsigned thread)
{
    (void)thread;
    run_cg_rows(row_four_sums, n_turns, resident);
}

/* --- 27 points in space, the rows of the matrix allocated one by one --- */

#define SIDE UINT64_C(64)
#define POINTS 27
#define STENCIL_CHUNK UINT64_C(16) /* rows: 6 KB */

static double **matrix_values, *grid, *grid_product;
static uint32_t **matrix_columns;

static CAUSE_LOOP void apply(double *y, double *const *row_values, uint32_t *const *row_columns, const double *x,
                             uint64_t n, uint64_t shift, uint64_t mask)
{
    for (uint64_t row = 0; row < n; row++) {
        const double *value = row_values[row];
        const uint32_t *column = row_columns[row];
        double sum = 0;
        for (int k = 0; k < POINTS; k++)
            sum += value[k] * x[(column[k] + shift) & mask];
        y[row] = sum;
    }
}

static void make_stencil(uint64_t side)
{
    uint64_t n = side * side * side;
    matrix_values = kernel_check(malloc(n * sizeof *matrix_values));
    matrix_columns = kernel_check(malloc(n * sizeof *matrix_columns));
    grid = kernel_check(malloc(n * sizeof *grid));
    grid_product = kernel_check(calloc(n, sizeof *grid_product));
    cause_fill(grid, n, 1, 0.5);
    for (uint64_t row = 0; row < n; row++) {
        matrix_values[row] = kernel_check(malloc(POINTS * sizeof **matrix_values));
        matrix_columns[row] = kernel_check(malloc(POINTS * sizeof **matrix_columns));
        for (uint64_t k = 0; k < POINTS; k++) {
            uint64_t across = k % 3 + side * (k / 3 % 3) + side * side * (k / 9) - 1 - side - side * side;
            matrix_values[row][k] = k == POINTS / 2 ? 26 : -1;
            matrix_columns[row][k] = (uint32_t)((row + across) & (n - 1));
        }
    }
}

static void run_stencil(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t turn;
    uint64_t n = SIDE * SIDE * SIDE, mask = resident & PICKED ? PICKED_MASK : n - 1;
    (void)thread;
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t row = turn++ % (n / STENCIL_CHUNK) * STENCIL_CHUNK, taken = resident & STREAMED ? 0 : row;
        apply(grid_product + (resident & PICKED ? 0 : row), matrix_values + taken, matrix_columns + taken, grid,
              STENCIL_CHUNK, row - taken, mask);
    }
}

/* --- cross sections of materials at random energies: a search in the energies of all nuclides, a row of indexes, and
 * for each nuclide two points between which to interpolate --- */

#define NUCLIDES UINT64_C(32)
#define MATERIAL UINT64_C(12) /* nuclides in it */
#define GRID_POINTS (UINT64_C(1) << 14)
#define UNION_POINTS (UINT64_C(1) << 19)

struct point {
    double energy, total, elastic, absorption, fission, spare[3];
};

static uint64_t *energies;
static uint32_t *index_grid;
static struct point *nuclide_grid;
static const uint32_t material[MATERIAL] = {0, 3, 5, 8, 11, 14, 17, 19, 22, 26, 29, 31};

struct lens {
    uint64_t energy_mask, row_mask, point_mask; /* the data that is used, of the sizes above */
};

/* As in irregular.c: entry i of the sorted table stands for 8 i + its number. */
static inline uint64_t find_energy(const uint64_t *sorted, uint64_t mask, uint64_t key)
{
    uint64_t low = 0, high = UNION_POINTS;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (key < 8 * middle + sorted[middle & mask])
            high = middle;
        else
            low = middle;
    }
    return low;
}

static CAUSE_LOOP double cross_section(const struct point *points, const uint32_t *row, uint64_t row_nuclides,
                                       uint64_t shift, double energy, uint64_t mask, double *results)
{
    for (uint64_t i = 0; i < row_nuclides; i++) {
        uint64_t nuclide = material[i];
        const struct point *low = &points[(nuclide * GRID_POINTS + row[nuclide] + shift) & mask], *high = low + 1;
        double part = (high->energy - energy) / (high->energy - low->energy);
        results[0] += high->total - part * (high->total - low->total);
        results[1] += high->elastic - part * (high->elastic - low->elastic);
        results[2] += high->absorption - part * (high->absorption - low->absorption);
        results[3] += high->fission - part * (high->fission - low->fission);
    }
    return results[0];
}

/* The shift leads to the points of the right row where a row of the cache stands in for it. */
static CAUSE_LOOP double look_up(const struct lens *lens, uint64_t n, uint64_t *seed)
{
    double results[4] = {0};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = (cause_random(seed) >> 20) % (8 * UNION_POINTS);
        uint64_t row = find_energy(energies, lens->energy_mask, key), taken = row & lens->row_mask;
        (void)cross_section(nuclide_grid, index_grid + taken * NUCLIDES, MATERIAL,
                            (row - taken) / (UNION_POINTS / GRID_POINTS), (double)key / (8 * UNION_POINTS),
                            lens->point_mask, results);
    }
    return results[0] + results[1] + results[2] + results[3];
}

static void make_sections(uint64_t size)
{
    energies = kernel_check(malloc(UNION_POINTS * sizeof *energies));
    index_grid = kernel_check(malloc(UNION_POINTS * NUCLIDES * sizeof *index_grid));
    nuclide_grid = kernel_check(malloc((size + 1) * sizeof *nuclide_grid));
    kernel_fill(energies, UNION_POINTS);
    for (uint64_t i = 0; i < UNION_POINTS; i++)
        energies[i] &= 7;
    for (uint64_t i = 0; i < UNION_POINTS * NUCLIDES; i++)
        index_grid[i] = (uint32_t)(i / NUCLIDES / (UNION_POINTS / GRID_POINTS));
    cause_fill((double *)nuclide_grid, (size + 1) * sizeof *nuclide_grid / sizeof(double), 1, 0.5);
    for (uint64_t i = 0; i <= size; i++)
        nuclide_grid[i].energy = (double)(i % GRID_POINTS) / GRID_POINTS + (double)(i / GRID_POINTS);
}

/* In the twin of the points they are 64, all in the cache, and which of them still depends on energy and nuclide. */
static void run_sections(uint64_t n_turns, unsigned resident, unsigned thread)
{
    static uint64_t seed = 1;
    struct lens lens = {UNION_POINTS - 1, UNION_POINTS - 1, NUCLIDES * GRID_POINTS - 1};
    (void)thread;
    if (resident & 1)
        lens.point_mask = 63;
    if (resident & 2)
        lens.row_mask = 31;
    if (resident & 4)
        lens.energy_mask = 511;
    cause_keep(look_up(&lens, n_turns * 10, &seed));
}

const struct cause_row cause_solvers[] = {
    {.name = "csr_256m",
     .groups = {"values+columns", "vector"},
     .make = make_csr,
     .run = run_csr,
     .size = UINT64_C(1) << 25},
    {.name = "csr_112k",
     .groups = {"values+columns", "vector"},
     .make = make_csr,
     .run = run_csr,
     .size = UINT64_C(1) << 14},
    {.name = "csr_256m_threads",
     .groups = {"values+columns", "vector"},
     .make = make_csr,
     .run = run_csr,
     .size = UINT64_C(1) << 25,
     .n_threads = CAUSE_THREADS},
    {.name = "cg", .groups = {"a+colidx", "p+q+r+z"}, .make = make_cg, .run = run_cg, .size = CG_SIZE},
    {.name = "cg_four_sums", .groups = {"a+colidx", "p+q+r+z"}, .make = make_cg, .run = run_cg_four, .size = CG_SIZE},
    {.name = "stencil",
     .groups = {"matrix_values+matrix_columns", "grid"},
     .make = make_stencil,
     .run = run_stencil,
     .size = SIDE},
    {.name = "cross_sections",
     .groups = {"nuclide_grid", "index_grid", "energies"},
     .make = make_sections,
     .run = run_sections,
     .size = NUCLIDES * GRID_POINTS},
    {.name = NULL},
};
