/* SPDX-License-Identifier: BSD-3-Clause */
/* Nests of loops whose best order is known by construction: for nests.py, compiled by several compilers. "outer" and
 * "inner" mark the loops that should change places, or the ones of a transposition, which should be blocked. Names
 * begin with what is to be found: swap, tile, fine. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define N 700

double a_fixed[N][N], b_fixed[N][N];
double cube_fixed[300][300][300];

struct wide {
    double x[16];
};

void swap_fixed(double s)
{
    for (int j = 0; j < N; j++)     /* outer */
        for (int i = 0; i < N; i++) /* inner */
            b_fixed[i][j] += s * a_fixed[i][j];
}

double (*line_a)[N], (*line_b)[N];

/* Two nests, each on a line of its own. The lines of the first, and of the allocation, are not those of the second,
 * although compilers move some of their instructions into it. */
void swap_one_line(void)
{
    line_a = malloc(sizeof(double[N][N])), line_b = malloc(sizeof(double[N][N]));
    /* clang-format off */
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { line_a[i][j] = 1; line_b[i][j] = 0; }
    for (int k = 0; k < 100; k++)
        for (int j = 0; j < N; j++) /* outer */ for (int i = 0; i < N; i++) /* inner */ line_b[i][j] += line_a[i][j];
    /* clang-format on */
}

void fine_fixed(double s)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            b_fixed[i][j] += s * a_fixed[i][j];
}

void swap_width(double *a, const double *b, int n, int m)
{
    for (int j = 0; j < m; j++)     /* outer */
        for (int i = 0; i < n; i++) /* inner */
            a[i * m + j] += 2 * b[i * m + j];
}

void fine_width(double *a, const double *b, int n, int m)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            a[i * m + j] += 2 * b[i * m + j];
}

void swap_wide_index(float *restrict a, const float *restrict b, size_t n, size_t m)
{
    for (size_t j = 0; j < m; j++)     /* outer */
        for (size_t i = 0; i < n; i++) /* inner */
            a[i * m + j] = 2 * b[i * m + j] + 1;
}

void fine_wide_index(float *restrict a, const float *restrict b, size_t n, size_t m)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            a[i * m + j] = 2 * b[i * m + j] + 1;
}

void swap_variable_length(int n, double a[n][n], double b[n][n])
{
    for (int j = 0; j < n; j++)     /* outer */
        for (int i = 0; i < n; i++) /* inner */
            a[i][j] += 2 * b[i][j];
}

void swap_rows(double **a, double **b, int n, int m)
{
    for (int j = 0; j < m; j++)     /* outer */
        for (int i = 0; i < n; i++) /* inner */
            a[i][j] += 2 * b[i][j];
}

void fine_rows(double **a, double **b, int n, int m)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            a[i][j] += 2 * b[i][j];
}

void swap_product(double *restrict c, const double *restrict a, const double *restrict b, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {   /* outer */
            double sum = 0;
            for (int k = 0; k < n; k++) /* inner */
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

void fine_product(double *restrict c, const double *restrict a, const double *restrict b, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

void swap_column_sums(double *sums, const double *a, long n, long width)
{
    for (long j = 0; j < n; j++) {     /* outer */
        double sum = 0;
        for (long i = 0; i < n; i++)   /* inner */
            sum += a[i * width + j];
        sums[j] = sum;
    }
}

void fine_row_sums(double *sums, const double *a, long n, long width)
{
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long j = 0; j < n; j++)
            sum += a[i * width + j];
        sums[i] = sum;
    }
}

/* The two inner loops of three. */
void swap_cube(double s)
{
    for (int i = 0; i < 300; i++)
        for (int k = 0; k < 300; k++)     /* outer */
            for (int j = 0; j < 300; j++) /* inner */
                cube_fixed[i][j][k] *= s;
}

void fine_cube(double s)
{
    for (int i = 0; i < 300; i++)
        for (int j = 0; j < 300; j++)
            for (int k = 0; k < 300; k++)
                cube_fixed[i][j][k] *= s;
}

/* One of the two arrays always goes by lines. */
void tile_transposed(double *restrict a, const double *restrict b, long n)
{
    for (long i = 0; i < n; i++)     /* outer */
        for (long j = 0; j < n; j++) /* inner */
            a[j * n + i] = b[i * n + j];
}

void tile_transposed_fixed(void)
{
    for (int i = 0; i < N; i++)     /* outer */
        for (int j = 0; j < N; j++) /* inner */
            a_fixed[j][i] = b_fixed[i][j];
}

/* The same in tiles, whose lines stay in the cache. */
void fine_tiled(double *restrict a, const double *restrict b, long n)
{
    for (long ii = 0; ii < n; ii += 16)
        for (long jj = 0; jj < n; jj += 16)
            for (long i = ii; i < ii + 16; i++)
                for (long j = jj; j < jj + 16; j++)
                    a[j * n + i] = b[i * n + j];
}

/* One field of wide elements: no order is better. */
double fine_field(const struct wide *a, int n, int n_times)
{
    double sum = 0;
    for (int t = 0; t < n_times; t++)
        for (int i = 0; i < n; i++)
            sum += a[i].x[3];
    return sum;
}

void fine_stencil(double *restrict a, const double *restrict b, long n)
{
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            a[i * n + j] = b[(i - 1) * n + j] + b[(i + 1) * n + j] + b[i * n + j - 1] + b[i * n + j + 1];
}

void swap_stencil(double *restrict a, const double *restrict b, long n)
{
    for (long j = 1; j < n - 1; j++)     /* outer */
        for (long i = 1; i < n - 1; i++) /* inner */
            a[i * n + j] = b[(i - 1) * n + j] + b[(i + 1) * n + j] + b[i * n + j - 1] + b[i * n + j + 1];
}

/* Three arrays behind each other: the inner loop takes three turns, and its lines are those of the next. */
double fine_short(const double *a, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            sum = sum * 0.5 + a[c * 100000 + i];
    return sum;
}

double fine_gather(const double *x, const int32_t *index, long n, long n_times)
{
    double sum = 0;
    for (long t = 0; t < n_times; t++)
        for (long i = 0; i < n; i++)
            sum += x[index[i]];
    return sum;
}

void fine_sparse(double *y, const double *values, const int32_t *columns, const int32_t *rows, const double *x, int n)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int k = rows[i]; k < rows[i + 1]; k++)
            sum += values[k] * x[columns[k]];
        y[i] = sum;
    }
}
