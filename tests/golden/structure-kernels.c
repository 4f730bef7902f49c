/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops that structure.py knows: "loop NAME" marks the line on which a loop begins (of a loop with its test at the end,
 * its first statement), "last NAME" its last line with code; A.B is the loop B in the loop A. Trip counts are never
 * constants, so that no loop is unrolled away. */
#include <stddef.h>

/* clang-format off: the marks belong to their lines */

#define KERNEL __attribute__((noinline))

struct item {
    struct item *next;
    int value;
};

double grid[512][512], table[512][512], out[4096];
long counts[8];

KERNEL double sum(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) /* loop A */
        s += x[i];              /* last A */
    return s;
}

KERNEL void scale(double *restrict y, const double *restrict x, int n)
{
    for (int i = 0; i < n; i++) { /* loop A */
        double v = x[i] * 3;
        y[i] = v + 1; /* last A */
    }
}

KERNEL int list(const struct item *at)
{
    int total = 0;
    while (at) { /* loop A */
        total += at->value;
        at = at->next; /* last A */
    }
    return total;
}

KERNEL unsigned digits(unsigned long value)
{
    unsigned n = 0;
    do {
        n++;         /* loop A */
        value /= 10; /* the division */
    } while (value); /* last A */
    return n;
}

KERNEL void stencil(int n, int steps)
{
    for (int t = 0; t < steps; t++) {        /* loop A */
        for (int i = 1; i < n - 1; i++) {    /* loop A.B */
            for (int j = 1; j < n - 1; j++)  /* loop A.B.C */
                grid[i][j] = (table[i][j - 1] + table[i][j + 1]) * 0.5; /* last A last A.B last A.B.C */
        }
    }
}

KERNEL void matmul(double *restrict c, const double *restrict a, const double *restrict b, int n)
{
    for (int i = 0; i < n; i++) {         /* loop A */
        for (int j = 0; j < n; j++) {     /* loop A.B */
            double s = 0;
            for (int k = 0; k < n; k++)   /* loop A.B.C */
                s += a[i * n + k] * b[k * n + j]; /* last A.B.C */
            c[i * n + j] = s;             /* last A.B last A */
        }
    }
}

KERNEL double triangle(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)      /* loop A */
        for (int j = 0; j < i; j++)  /* loop A.B */
            s += x[i] * x[j];        /* last A last A.B */
    return s;
}

KERNEL double two(const double *x, int n)
{
    double s = 0, p = 1;
    for (int i = 0; i < n; i++) /* loop A */
        s += x[i];              /* last A */
    for (int i = 0; i < n; i++) /* loop B */
        p *= x[i];              /* last B */
    return s + p;
}

KERNEL void choose(const unsigned char *text, int n)
{
    for (int i = 0; i < n; i++) { /* loop A */
        switch (text[i]) {
        case 0:
            counts[0]++;
            break;
        case 1:
            counts[1] += i;
            break;
        case 2:
            counts[2] -= i;
            break;
        case 3:
            counts[3] ^= i;
            break;
        case 4:
            counts[4] |= i;
            break;
        case 5:
            counts[5] *= i;
            break;
        default:
            counts[6] += 2; /* last A */
        }
    }
}

KERNEL int find(const int *x, int n, int wanted)
{
    int skipped = 0;
    for (int i = 0; i < n; i++) { /* loop A */
        if (x[i] < 0) {
            skipped++;
            continue;
        }
        if (x[i] == wanted)
            return i - skipped; /* not in the loop: it leaves */
        out[i & 4095] = x[i];   /* last A */
    }
    return -1;
}

KERNEL unsigned collatz(unsigned n)
{
    unsigned steps = 0;
again:
    n = n & 1 ? 3 * n + 1 : n / 2; /* loop A */
    steps++;
    if (n > 1) goto again; /* last A */
    return steps;
}

static inline __attribute__((always_inline)) double dot(const double *x, const double *y, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) /* loop dot */
        s += x[i] * y[i];       /* last dot */
    return s;
}

KERNEL void gemv(double *restrict y, const double *restrict a, const double *restrict x, int n)
{
    for (int i = 0; i < n; i++)         /* loop A */
        y[i] = dot(a + i * n, x, n);    /* last A; dot is A.dot */
}

extern void work(int i);
KERNEL void work(int i)
{
    counts[7] += i;
    __asm__ volatile("" ::: "memory");
}

KERNEL void calls(int n)
{
    for (int i = 0; i < n; i++) { /* loop A */
        work(i);
        for (int j = i; j > 0; j /= 2) /* loop A.B */
            work(j);                   /* last A.B */
        work(-i);                      /* last A */
    }
}

KERNEL int jump_in(int n, int first)
{
    int i = 0, s = 0;
    if (first)
        goto middle;
top:
    work(s); /* loop A */
    s += 2;
middle:
    work(i);
    if (++i < n) goto top; /* last A: irreducible */
    return s;
}

int main(int argc, char **argv)
{
    static const unsigned char text[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct item items[2] = {{&items[1], 1}, {NULL, 2}};
    (void)argv;
    scale(out, grid[0], argc);
    stencil(argc + 1, argc);
    matmul(grid[0], table[0], out, argc);
    choose(text, argc);
    gemv(out, grid[0], table[0], argc);
    calls(argc);
    return (int)(sum(out, argc) + list(items) + digits((unsigned long)argc) + triangle(out, argc) + two(out, argc) +
                 find((const int *)items, argc, 1) + collatz((unsigned)argc) + jump_in(argc, argc > 2));
}
