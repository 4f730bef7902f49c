/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory through layers of functions as solver libraries have them: a macro that casts, a function that chooses where,
 * one that handles errors, one that calls malloc. The names of the blocks are those of their users. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum location { MEMORY_HOST, MEMORY_DEVICE };

static void hypre_OutOfMemory(size_t size)
{
    (void)fprintf(stderr, "Out of memory trying to allocate %zu bytes\n", size);
    abort();
}

__attribute__((noinline)) static void *hypre_HostMalloc(size_t size, int zeroinit)
{
    void *ptr = NULL;
    if (zeroinit)
        ptr = calloc(size, 1);
    else
        ptr = malloc(size);
    return ptr;
}

__attribute__((noinline)) static void *hypre_MAlloc_core(size_t size, int zeroinit, enum location location)
{
    if (size == 0)
        return NULL;
    void *ptr = NULL;
    switch (location) {
    case MEMORY_HOST:
        ptr = hypre_HostMalloc(size, zeroinit);
        break;
    case MEMORY_DEVICE:
        break;
    }
    if (!ptr)
        hypre_OutOfMemory(size);
    return ptr;
}

__attribute__((noinline)) void *hypre_MAlloc(size_t size, enum location location)
{
    return hypre_MAlloc_core(size, 0, location);
}

__attribute__((noinline)) void *hypre_CAlloc(size_t count, size_t elt_size, enum location location)
{
    return hypre_MAlloc_core(count * elt_size, 1, location);
}

__attribute__((noinline)) void *hypre_ReAlloc(void *ptr, size_t size, enum location location)
{
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    if (ptr == NULL)
        return hypre_MAlloc(size, location);
    ptr = realloc(ptr, size);
    if (!ptr)
        hypre_OutOfMemory(size);
    return ptr;
}

#define hypre_TAlloc(type, count, location) ((type *)hypre_MAlloc((size_t)(sizeof(type) * (count)), location))
#define hypre_CTAlloc(type, count, location) ((type *)hypre_CAlloc((size_t)(count), (size_t)sizeof(type), location))
#define hypre_TReAlloc(ptr, type, count, location)                                                                     \
    ((type *)hypre_ReAlloc((char *)(ptr), (size_t)(sizeof(type) * (count)), location))

struct matrix {
    int *i;
    double *data;
};
#define hypre_CSRMatrixData(matrix) ((matrix)->data)

__attribute__((noinline)) static void initialize(struct matrix *matrix, int n)
{
    hypre_CSRMatrixData(matrix) = hypre_CTAlloc(double, n, MEMORY_HOST);
    matrix->i = hypre_TAlloc(int, n, MEMORY_HOST);
}

static volatile double sum;

int main(void)
{
    enum { N = 40000 };
    struct matrix *matrix = hypre_TAlloc(struct matrix, 200, MEMORY_HOST);
    initialize(matrix, N);
    double *x_data = hypre_TAlloc(double, N, MEMORY_HOST);
    double *rhs = hypre_CTAlloc(double, N, MEMORY_HOST);
    rhs = hypre_TReAlloc(rhs, double, 2 * N, MEMORY_HOST);
    memset(x_data, 0, sizeof *x_data * N);
    for (int i = 0; i < N; i++)
        sum += rhs[i] + x_data[i] + matrix->data[i];
    return 0;
}
