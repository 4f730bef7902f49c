/* SPDX-License-Identifier: BSD-3-Clause */
/* How C functions hand new blocks to their callers: through a pointer that they are given, and as parts of an object
 * that they return. Every block has a size of its own; "@block" tells which name the block of that size is to be
 * reported under. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct grid {
    size_t n;
    double *cells;
};

struct box {
    double *data;
    struct grid *grid;
};

struct domain {
    double *u, *next;
    int *mask;
    struct grid grid;
    char *spare;
};

/* What compilers must not leave out. */
static void keep(const volatile void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

__attribute__((noinline)) static int make(int kind, struct grid **out, size_t n)
{
    *out = malloc(n);
    if (!*out)
        return kind;
    (*out)->n = n;
    (*out)->cells = malloc(n + 8);
    keep(*out);
    return 0;
}

static int make_here(struct grid **out, size_t n)
{
    *out = malloc(n);
    keep(*out);
    return 0;
}

__attribute__((noinline)) static int fill(double **out, size_t n, const char *text)
{
    double *p = malloc(n);
    if (!p)
        return -1;
    memset(p, *text, n);
    *out = p;
    return 0;
}

__attribute__((noinline)) static int hand_on(double **result, size_t n)
{
    int status = fill(result, n, "(a, b");
    keep(*result);
    return status;
}

/* Not an allocator for all that it is called so: the parts are its own. */
static struct domain *domain_new(size_t n)
{
    struct domain *d = calloc(1, sizeof *d + 4000);
    d->u = malloc(n);
    d->next = malloc(n + 8);
    d->mask = calloc(n + 16, 1);
    d->grid.cells = malloc(n + 24);
    return d;
}

static char *spare_alloc(struct domain *d, size_t n)
{
    d->spare = malloc(n);
    return d->spare;
}

int main(int argc, char **argv)
{
    size_t n = 100000 + (size_t)argc;
    struct grid *grid;
    struct box box, *boxes = malloc(2 * sizeof *boxes);
    double *plain, *second, *aligned, *table[2];
    char *line = NULL, *spare;
    int ends[2];
    /* @block 100001 grid
     * @block 100009 grid->cells
     * @block 101001 box.grid
     * @block 101009 box.grid->cells
     * @block 102001 boxes->grid
     * @block 102009 boxes->grid->cells
     * @block 103001 box.grid */
    if (make(1, &grid, n) || make('(', &box.grid, n + 1000) || make(argc < 2 ? 1 : 2, &boxes->grid, n + 2000) ||
        make_here(/* kind, */ &box.grid, n + 3000))
        return 1;
    /* @block 110001 plain
     * @block 111001 box.data
     * @block 112001 second
     * @block 113001 table[1] */
    if (fill(&plain, n + 10000, ", ") || fill(&box.data, n + 11000, argv[0]) || hand_on(&second, n + 12000) ||
        fill(&table[1], n + 13000, "x"))
        return 1;
    /* @block 120001 aligned
     * @block 120 line */
    if (posix_memalign((void **)&aligned, 64, n + 20000))
        return 1;
    FILE *file = pipe(ends) == 0 && write(ends[1], "words\n", 6) == 6 ? fdopen(ends[0], "r") : NULL;
    size_t size = 0;
    if (!file || getline(&line, &size, file) < 0)
        return 1;
    /* @block 130001 d->u
     * @block 130009 d->next
     * @block 130017 d->mask
     * @block 130025 d->grid.cells
     * @block 131001 spare */
    /* @block 140001 moved
     * @block 140009 aligned_too */
    char *moved = NULL, *aligned_too = NULL;
    /* clang-format off */
    moved = realloc(moved, n + 40000); if (posix_memalign((void **)&aligned_too, 64, n + 40008)) return 1;
    /* clang-format on */
    keep(moved);
    keep(aligned_too);
    struct domain *domain = domain_new(n + 30000);
    spare = spare_alloc(domain, n + 31000);
    keep(domain);
    keep(spare);
    keep(boxes);
    keep(grid);
    keep(&box);
    keep(plain);
    keep(second);
    keep(aligned);
    keep(table);
    keep(line);
    return 0;
}
