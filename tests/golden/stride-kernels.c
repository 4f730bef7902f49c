/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose walks through memory are known by construction: for strides.py, compiled by several compilers. */
#include <stdint.h>

struct point {
    double x, y, z;
};
struct wide {
    double x[9];
};
struct particle {
    double mass, position[6], charge, spare[8];
};
struct node {
    struct node *next;
    int64_t value;
};
struct pair {
    double x, y;
    struct pair *next[2];
};
struct vector {
    double *data;
    int64_t n;
};

double chain(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i];
    return sum;
}

void triad(double *restrict a, const double *restrict b, const double *restrict c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
}

void backwards(double *a, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--)
        a[i] *= 1.5;
}

double column(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i * 512];
    return sum;
}

/* How far apart the elements are, only the caller knows. */
double stepped(const double *a, int64_t n, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i * step];
    return sum;
}

double strided_x(const struct point *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i].x;
    return sum;
}

double wide_x(const struct wide *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i].x[0];
    return sum;
}

double indexed(const double *x, const int32_t *index, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[index[i]];
    return sum;
}

/* Whether both parts of an element share a line, only the allocator knows. */
double apart(const struct particle *particles, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += particles[i].mass * particles[i].charge;
    return sum;
}

/* Chains side by side: none waits for the other. */
double indexed_sums(const double *x, const int32_t *index, int64_t n)
{
    double even = 0, odd = 0;
    for (int64_t i = 0; i + 1 < n; i += 2) {
        even += x[index[i]];
        odd += x[index[i + 1]];
    }
    return even - odd;
}

int64_t chase(const struct node *at, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += at->value;
        at = at->next;
    }
    return sum;
}

/* A part of the element is read behind the one that finds the next element. */
double chase_ahead(const struct pair *at)
{
    double sum = 0;
    while (at) {
        const struct pair *next = at->next[0];
        sum += at->x * at->y;
        at = next;
    }
    return sum;
}

int64_t search(const struct pair *at, double x)
{
    int64_t n = 0;
    for (; at && at->x != x; n++)
        at = at->next[at->x < x];
    return n;
}

/* The values are not part of what is chained. */
int64_t chase_index(const int32_t *next, const int64_t *values, int64_t n)
{
    int64_t sum = 0;
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        sum ^= values[at];
        at = next[at];
    }
    return sum;
}

int64_t by_pointer(struct node *const *nodes, int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum ^= nodes[i]->value;
    return sum;
}

uint64_t update(uint64_t *table, uint64_t mask, int64_t n)
{
    uint64_t random = 1;
    for (int64_t i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        table[random >> 20 & mask] ^= random;
    }
    return random;
}

uint64_t scatter(uint64_t *table, uint64_t mask, int64_t n)
{
    uint64_t random = 1;
    for (int64_t i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        table[random >> 20 & mask] = random;
    }
    return random;
}

/* The pointer may be changed by the stores, so compilers load it again in every turn. */
void member(struct vector *v, double by)
{
    for (int64_t i = 0; i < v->n; i++)
        v->data[i] += by;
}

double short_index(const double *a, int32_t first, int32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        sum += a[(int32_t)(i + (uint32_t)first)];
    return sum;
}

/* A loop as clang lays it out where its body has branches: the end in front, from where it goes on into the head. */
#ifdef __x86_64__
__asm__(".text\n.globl rotated\n.type rotated, @function\nrotated:\n.cfi_startproc\n"
        "xor %ecx, %ecx\nxor %eax, %eax\njmp 2f\n"
        "1: xor %rcx, %rax\n3: add $1, %rcx\ncmp %rsi, %rcx\nje 4f\n"
        "2: mov (%rdi, %rcx, 4), %edx\nimul %esi, %edx\ntest %edx, %edx\njns 1b\nadd %rcx, %r8\njmp 3b\n"
        "4: add %r8, %rax\nret\n.cfi_endproc\n.size rotated, .-rotated\n"
        /* as gcc makes the address of a vector: one register, written twice */
        ".globl two_steps\n.type two_steps, @function\ntwo_steps:\n.cfi_startproc\nxor %eax, %eax\n"
        "1: mov %rax, %rcx\nshl $5, %rcx\nadd $1, %rax\naddsd (%rdi, %rcx, 1), %xmm0\n"
        "cmp %rsi, %rax\njb 1b\nret\n.cfi_endproc\n.size two_steps, .-two_steps\n");
#endif

/* Of an inner loop that a compiler lays out in front of the outer one, the entry comes from behind. */
void counted_columns(const int64_t *a, int64_t n_rows, int64_t n_columns, int64_t *count)
{
    for (int64_t j = 1; j <= n_columns; j++)
        for (int64_t i = 1; i <= n_rows; i++)
            if (a[(i - 1) * n_columns + j - 1] > 0)
                ++*count;
}
