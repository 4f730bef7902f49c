/* SPDX-License-Identifier: BSD-3-Clause */
/* Phases of equal length, each of which reads one field of one variable at random places: structures in arrays, arrays
 * in a structure, unions, bit fields, arrays behind a structure, blocks of no declared type, locals of callers.
 * usage: fields [SECONDS]      CPU seconds of each phase, default 0.12 */
#include "kernel.h"

#define N (UINT64_C(1) << 15)
#define TURNS 4096

struct vector {
    double x, y, z;
};
struct particle {
    struct vector position, velocity;
    double mass;
    int id, kind;
};
struct cell {
    int count;
    struct vector field;
};
struct planes {
    double x[N], y[N], z[N];
};
struct value {
    int kind;
    union {
        double real;
        long whole;
        char text[8];
    } u;
};
struct packed {
    unsigned low : 4, middle : 12, high : 16;
    unsigned other[7];
};
struct item {
    int key;
    double value;
};
struct message {
    uint64_t n_items;
    struct item items[];
};
struct header {
    uint64_t n_numbers;
};

struct matrix {
    int rows;
    double cells[3][5];
};

static struct particle *particles;
static struct cell cells[N];
static struct planes *planes;
static struct value *values;
static struct packed *packed;
static struct message *message;
static struct header *header;
static struct matrix *matrices;
static struct packed low_bits[N], high_bits[N];
static struct value counts[N];
static struct planes fixed;
static void *measured, *opaque;
static double seconds = 0.12;

/* Reads expression, which is 0, at random places i until the phase is over. */
#define WALK(expression)                                                                                               \
    do {                                                                                                               \
        double end = kernel_now() + seconds;                                                                           \
        uint64_t i = 0;                                                                                                \
        while (kernel_now() < end)                                                                                     \
            for (int turn = 0; turn < TURNS; turn++)                                                                   \
                i = (i * 5 + 12345 + (uint64_t)(expression)) & (N - 1);                                                \
        kernel_sink += i;                                                                                              \
    } while (0)

static KERNEL_NOINLINE void walk_particles(const struct particle *p)
{
    WALK(p[i].mass);
}

static KERNEL_NOINLINE void walk_cells(void)
{
    WALK(cells[i].field.y);
}

static KERNEL_NOINLINE void walk_planes(const struct planes *p)
{
    WALK(p->y[i]);
}

static KERNEL_NOINLINE void walk_values(const struct value *v)
{
    WALK(v[i].u.real);
}

static KERNEL_NOINLINE void walk_packed(const struct packed *p)
{
    WALK(p[i].middle);
}

static KERNEL_NOINLINE void walk_low(const struct packed *p)
{
    WALK(p[i].low);
}

static KERNEL_NOINLINE void walk_high(const struct packed *p)
{
    WALK(p[i].high);
}

static KERNEL_NOINLINE void walk_counts(const struct value *v)
{
    WALK(v[i].u.whole);
}

static KERNEL_NOINLINE void walk_fixed(void)
{
    WALK(fixed.z[i]);
}

static KERNEL_NOINLINE void walk_matrices(const struct matrix *m)
{
    WALK(m[i].cells[1][2]);
}

static KERNEL_NOINLINE void walk_message(const struct message *m)
{
    WALK(m->items[i].value);
}

static KERNEL_NOINLINE void walk_numbers(const double *numbers)
{
    WALK(numbers[i]);
}

static KERNEL_NOINLINE void walk_vectors(const struct vector *vectors)
{
    WALK(vectors[i].z);
}

static KERNEL_NOINLINE void hand_on(const struct vector *vectors)
{
    walk_vectors(vectors);
    kernel_check(vectors);
}

static KERNEL_NOINLINE void with_locals(void)
{
    struct vector local[N];
    kernel_end(); /* the first touch of all fields is not the phase */
    memset(local, 0, sizeof local);
    kernel_begin();
    hand_on(local);
}

static void fill(void)
{
    particles = calloc(N, sizeof *particles);
    planes = calloc(1, sizeof *planes);
    values = calloc(N, sizeof *values);
    packed = calloc(N, sizeof *packed);
    message = malloc(sizeof *message + N * sizeof(struct item));
    header = malloc(sizeof(struct header) + N * sizeof(double));
    measured = malloc(N * sizeof(struct vector));
    opaque = calloc(N, 24);
    kernel_check(opaque);
    memset(particles, 0, N * sizeof *particles);
    memset(cells, 0, sizeof cells);
    memset(planes, 0, sizeof *planes);
    memset(values, 0, N * sizeof *values);
    memset(packed, 0, N * sizeof *packed);
    memset(message, 0, sizeof *message + N * sizeof(struct item));
    memset(header, 0, sizeof *header + N * sizeof(double));
    memset(measured, 0, N * sizeof(struct vector));
    memset(opaque, 0, N * 24);
    matrices = calloc(N, sizeof *matrices);
    memset(matrices, 0, N * sizeof *matrices);
    memset(low_bits, 0, sizeof low_bits);
    memset(high_bits, 0, sizeof high_bits);
    memset(counts, 0, sizeof counts);
    memset(&fixed, 0, sizeof fixed);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seconds = atof(argv[1]);
    fill();
    kernel_begin();
    walk_particles(particles);
    walk_cells();
    walk_planes(planes);
    walk_values(values);
    walk_packed(packed);
    walk_low(low_bits);
    walk_high(high_bits);
    walk_counts(counts);
    walk_fixed();
    walk_matrices(matrices);
    walk_message(message);
    walk_numbers((const double *)(header + 1));
    walk_vectors(measured);
    walk_vectors(opaque);
    with_locals();
    kernel_end();
    return 0;
}
