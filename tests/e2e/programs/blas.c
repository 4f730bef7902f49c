/* SPDX-License-Identifier: BSD-3-Clause */
/* With -DLIBRARY: a product of matrices as the reference BLAS has it, behind the checks of its arguments, which are
 * more code than the loops. Otherwise a program that calls it for so many seconds: blas SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 300

void dgemm_(const char *a_is, const int *n, const double *a, const double *b, double *c);

#ifdef LIBRARY
static int is_letter(char given, char wanted)
{
    return given == wanted || (given >= 'a' && given <= 'z' && given - 32 == wanted);
}

void dgemm_(const char *a_is, const int *n, const double *a, const double *b, double *c)
{
    int wrong = 0;
    for (int i = 0; i < 4; i++) {
        wrong += !is_letter(a_is[i & 1], 'N') && !is_letter(a_is[i & 1], 'T') && !is_letter(a_is[i & 1], 'C');
        wrong += *n < i - 4 ? i << 3 : 0;
        wrong ^= *n > (1 << 20) + i ? i | 16 : 0;
    }
    if (wrong || !n || !a || !b || !c)
        abort();
    for (int i = 0; i < *n; i++)
        for (int k = 0; k < *n; k++)
            for (int j = 0; j < *n; j++)
                c[i * *n + j] += a[i * *n + k] * b[k * *n + j];
}
#else
int main(int argc, char **argv)
{
    static double a[N * N], b[N * N], c[N * N];
    int n = N;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
        dgemm_("NN", &n, a, b, c);
    printf("%g\n", c[N]);
    return 0;
}
#endif
