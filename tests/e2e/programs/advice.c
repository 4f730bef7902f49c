/* SPDX-License-Identifier: BSD-3-Clause */
/* Data used in a way for which "hpcquery advice" has a rule, and the same work after a change as it advises.
 *
 * usage: advice CASE plain|changed SECONDS      of CPU time of each thread; prints nanoseconds per step
 * What is to be seen is bound by one variable each: steps are as cheap as they can be. "small" and "bare" are to be
 * measured and compiled in another way, and are the same work. */
#include "kernel.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROWS UINT64_C(60000) /* of the matrix: 50 MiB; a line of each does not fit into the second-level cache */
#define COLUMNS UINT64_C(110)
#define N_ITEMS (UINT64_C(1) << 20) /* of 64 bytes */
#define N_BOXES (UINT64_C(1) << 17) /* of 1 KiB and a bit */
#define N_SMALL (UINT64_C(1) << 19)
#define N_NEAR UINT64_C(1024)     /* words that stay in the first-level cache */
#define N_FAR (UINT64_C(1) << 23) /* words of 64 MiB */
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct particle {
    double x, y, z, mass, charge, spin, phase, age;
};

struct box {
    double value, rest[135];
};

struct number {
    double r, i;
};

struct pole {
    struct number energy, total, width, residue;
    double history[20];
};

static struct pole *poles;
static double *masses, *factors;
static struct particle *particles;
static struct box **boxes, *all_boxes;
static uint32_t *order;
static uint64_t *matrix, *table, *pages, *near;
static struct kernel_node *nodes, **small;
static void *forgotten;
static _Alignas(64) long together[8];
static struct {
    _Alignas(64) long count;
} apart[2], published;
static double seconds;
static double results; /* so that no loop is dropped */

static void fill(double *numbers, uint64_t n, double value)
{
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = value;
}

static void make_order(uint64_t n)
{
    uint64_t state = 88172645463325252u;
    order = kernel_check(malloc(n * sizeof *order));
    for (uint64_t i = 0; i < n; i++)
        order[i] = (uint32_t)(kernel_random(&state) % n);
}

/* --- order of loops: sums of integers, for a sum of doubles waits for the addition before, too --- */

static void make_matrix(void)
{
    matrix = kernel_check(malloc(sizeof *matrix * ROWS * COLUMNS));
    memset(matrix, 1, sizeof *matrix * ROWS * COLUMNS);
}

static KERNEL_NOINLINE uint64_t add_by_columns(void)
{
    uint64_t sum = 0;
    for (uint64_t j = 0; j < COLUMNS; j++)
        for (uint64_t i = 0; i < ROWS; i++)
            sum += matrix[i * COLUMNS + j];
    kernel_sink += sum;
    return ROWS * COLUMNS;
}

static KERNEL_NOINLINE uint64_t add_by_rows(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ROWS; i++)
        for (uint64_t j = 0; j < COLUMNS; j++)
            sum += matrix[i * COLUMNS + j];
    kernel_sink += sum;
    return ROWS * COLUMNS;
}

static uint64_t width; /* of the matrix, which only the running program knows, as most of Fortran's do */

static void make_wide_matrix(void)
{
    make_matrix();
    width = COLUMNS;
}

static KERNEL_NOINLINE uint64_t add_by_width(void)
{
    uint64_t sum = 0;
    for (uint64_t j = 0; j < width; j++)
        for (uint64_t i = 0; i < ROWS; i++)
            sum += matrix[i * width + j];
    kernel_sink += sum;
    return ROWS * width;
}

/* --- one field of many --- */

static void make_particles(void)
{
    particles = kernel_check(malloc(N_ITEMS * sizeof *particles));
    for (uint64_t i = 0; i < N_ITEMS; i++)
        particles[i] = (struct particle){.mass = 0.5};
}

static void make_masses(void)
{
    masses = kernel_check(malloc(N_ITEMS * sizeof *masses));
    fill(masses, N_ITEMS, 0.5);
}

static KERNEL_NOINLINE uint64_t add_particles(void)
{
    double sums[4] = {0};
    for (uint64_t i = 0; i < N_ITEMS; i += 4)
        for (uint64_t k = 0; k < 4; k++)
            sums[k] += particles[i + k].mass;
    results += sums[0] + sums[1] + sums[2] + sums[3];
    return N_ITEMS;
}

static KERNEL_NOINLINE uint64_t add_masses(void)
{
    double sums[4] = {0};
    for (uint64_t i = 0; i < N_ITEMS; i += 4)
        for (uint64_t k = 0; k < 4; k++)
            sums[k] += masses[i + k];
    results += sums[0] + sums[1] + sums[2] + sums[3];
    return N_ITEMS;
}

/* --- fields that one loop uses together, halves of complex numbers among them --- */

static void make_poles(void)
{
    poles = kernel_check(calloc(N_ITEMS / 4, sizeof *poles));
    for (uint64_t i = 0; i < N_ITEMS / 4; i++)
        poles[i].energy = poles[i].width = poles[i].residue = (struct number){1, 1};
    make_order(N_ITEMS / 4);
}

static KERNEL_NOINLINE uint64_t add_poles(void)
{
    double sum = 0, imaginary = 0;
    for (uint64_t i = 0; i < N_ITEMS / 4; i++) {
        const struct pole *pole = &poles[order[i]];
        sum += pole->energy.r * pole->width.r - pole->energy.i * pole->width.i + pole->residue.r;
        imaginary += pole->energy.r * pole->width.i + pole->energy.i * pole->width.r + pole->residue.i;
    }
    results += sum + imaginary;
    return N_ITEMS / 4;
}

/* --- many blocks --- */

static void make_boxes(void)
{
    boxes = kernel_check(malloc(N_BOXES * sizeof *boxes));
    for (uint64_t i = 0; i < N_BOXES; i++) {
        boxes[i] = kernel_check(malloc(sizeof *boxes[i]));
        boxes[i]->value = 0.5;
    }
    make_order(N_BOXES);
}

static void make_all_boxes(void)
{
    all_boxes = kernel_check(malloc(N_BOXES * sizeof *all_boxes));
    for (uint64_t i = 0; i < N_BOXES; i++)
        all_boxes[i].value = 0.5;
    make_order(N_BOXES);
}

static KERNEL_NOINLINE uint64_t add_boxes(void)
{
    double sum = 0;
    for (uint64_t i = 0; i < N_BOXES; i++)
        sum += boxes[order[i]]->value;
    results += sum;
    return N_BOXES;
}

static KERNEL_NOINLINE uint64_t add_all_boxes(void)
{
    double sum = 0;
    for (uint64_t i = 0; i < N_BOXES; i++)
        sum += all_boxes[order[i]].value;
    results += sum;
    return N_BOXES;
}

/* --- reads that jump --- */

static uint64_t position = 1;

static KERNEL_NOINLINE uint64_t look_up(const uint64_t *words, uint64_t n)
{
    uint64_t sum = 0, at = position;
    for (uint64_t i = 0; i < N_ITEMS; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        sum += words[at >> 32 & (n - 1)];
    }
    position = at;
    kernel_sink += sum;
    return N_ITEMS;
}

static void make_table(void)
{
    table = kernel_check(malloc(N_FAR * sizeof *table));
    memset(table, 1, N_FAR * sizeof *table);
}

static void make_near(void)
{
    near = kernel_check(malloc(N_NEAR * sizeof *near));
    memset(near, 1, N_NEAR * sizeof *near);
}

static uint64_t look_up_table(void)
{
    return look_up(table, N_FAR);
}

/* The index is sorted: it is there once more, in order. */
static KERNEL_NOINLINE uint64_t read_table(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N_FAR; i++)
        sum += table[i];
    kernel_sink += sum;
    return N_FAR;
}

static uint64_t look_up_near(void)
{
    return look_up(near, N_NEAR);
}

static void make_pages(int advice)
{
    pages = kernel_check(aligned_alloc(HUGE_PAGE_BYTES, N_FAR * sizeof *pages));
    (void)madvise(pages, N_FAR * sizeof *pages, advice);
    memset(pages, 1, N_FAR * sizeof *pages);
}

static void make_small_pages(void)
{
    make_pages(MADV_NOHUGEPAGE);
}

static void make_huge_pages(void)
{
    make_pages(MADV_HUGEPAGE);
}

static uint64_t look_up_pages(void)
{
    return look_up(pages, N_FAR);
}

/* --- lists --- */

static void make_list(void)
{
    nodes = kernel_check(malloc(N_ITEMS * sizeof *nodes));
    kernel_link(nodes, N_ITEMS);
}

static void make_list_in_order(void)
{
    nodes = kernel_check(malloc(N_ITEMS * sizeof *nodes));
    for (uint64_t i = 0; i < N_ITEMS; i++)
        nodes[i] = (struct kernel_node){i, &nodes[(i + 1) % N_ITEMS], {0}};
}

static KERNEL_NOINLINE uint64_t follow(void)
{
    static struct kernel_node *at;
    struct kernel_node *node = at ? at : nodes;
    for (uint64_t i = 0; i < N_ITEMS / 8; i++)
        node = node->next;
    at = node;
    kernel_sink += node->payload;
    return N_ITEMS / 8;
}

static KERNEL_NOINLINE uint64_t read_in_order(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N_ITEMS; i++)
        sum += nodes[i].payload;
    kernel_sink += sum;
    return N_ITEMS;
}

/* --- arithmetic --- */

static void make_factors(void)
{
    factors = kernel_check(malloc(N_FAR / 2 * sizeof *factors));
    fill(factors, N_FAR / 2, 1.0000001);
}

static KERNEL_NOINLINE uint64_t divide(void)
{
    double value = 1;
    for (uint64_t i = 0; i < N_FAR / 2; i++)
        value = 1 + value / factors[i];
    results += value;
    return N_FAR / 2;
}

/* Without data, so that the rule about what is no variable applies. */
static KERNEL_NOINLINE uint64_t compute(void)
{
    uint64_t state = position;
    for (uint64_t i = 0; i < N_ITEMS; i++)
        state = state * 6364136223846793005u + 1442695040888963407u;
    position = state;
    return N_ITEMS;
}

/* The same in a hundred functions: no one of them is worth a change. */
#define MIX(n)                                                                                                         \
    static KERNEL_NOINLINE uint64_t mix_##n(uint64_t state)                                                            \
    {                                                                                                                  \
        for (uint64_t i = 0; i < 1000; i++)                                                                            \
            state = state * 6364136223846793005u + 1##n;                                                               \
        return state;                                                                                                  \
    }
#define TEN(WITH, t)                                                                                                   \
    WITH(t##0) WITH(t##1) WITH(t##2) WITH(t##3) WITH(t##4) WITH(t##5) WITH(t##6) WITH(t##7) WITH(t##8) WITH(t##9)
#define HUNDRED(WITH)                                                                                                  \
    TEN(WITH, 0)                                                                                                       \
    TEN(WITH, 1)                                                                                                       \
    TEN(WITH, 2) TEN(WITH, 3) TEN(WITH, 4) TEN(WITH, 5) TEN(WITH, 6) TEN(WITH, 7) TEN(WITH, 8) TEN(WITH, 9)
#define CALL_MIX(n) state = mix_##n(state);
HUNDRED(MIX)

static KERNEL_NOINLINE uint64_t mix(void)
{
    uint64_t state = position;
    HUNDRED(CALL_MIX)
    position = state;
    return 100;
}

/* More constants than there are registers: they are read from memory in each turn, and are nobody's variables. */
static KERNEL_NOINLINE uint64_t use_constants(void)
{
    double sum = results;
    for (uint64_t i = 0; i < N_ITEMS / 8; i++) {
        double x = (double)(i & 1023) * 0x1p-11, y = 0.013;
        y = ((((((((y * x + 0.11) * x + 0.17) * x + 0.19) * x + 0.23) * x + 0.29) * x + 0.31) * x + 0.37) * x + 0.41);
        y = ((((((((y * x + 0.43) * x + 0.47) * x + 0.53) * x + 0.59) * x + 0.61) * x + 0.67) * x + 0.71) * x + 0.73);
        y = ((((((((y * x + 0.79) * x + 0.83) * x + 0.89) * x + 0.97) * x + 1.01) * x + 1.03) * x + 1.07) * x + 1.09);
        sum += y;
    }
    results = sum;
    return N_ITEMS / 8;
}

/* --- blocks below the threshold, each by itself --- */

static void make_small(void)
{
    uint64_t state = 88172645463325252u;
    small = kernel_check(malloc(N_SMALL * sizeof *small));
    for (uint64_t i = 0; i < N_SMALL; i++) {
        small[i] = kernel_check(malloc(sizeof *small[i]));
        *small[i] = (struct kernel_node){.payload = i, .next = small[i]};
    }
    for (uint64_t i = N_SMALL - 1; i > 0; i--) { /* one cycle, as kernel_link() makes it */
        struct kernel_node *other = small[kernel_random(&state) % i], *next = small[i]->next;
        small[i]->next = other->next;
        other->next = next;
    }
}

static KERNEL_NOINLINE uint64_t add_small(void)
{
    static struct kernel_node *at;
    struct kernel_node *node = at ? at : small[0];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < N_SMALL / 8; i++) {
        sum += node->payload;
        node = node->next;
    }
    at = node;
    kernel_sink += sum;
    return N_SMALL / 8;
}

/* --- threads --- */

static KERNEL_NOINLINE long count(long *word)
{
    double start = kernel_now();
    while (kernel_now() - start < seconds)
        for (int i = 0; i < 100000; i++)
            (void)__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    return *word;
}

static void *count_together(void *thread)
{
    return (void *)count(&together[thread ? 1 : 0]);
}

static void *count_apart(void *thread)
{
    return (void *)count(&apart[thread ? 1 : 0].count);
}

static KERNEL_NOINLINE long watch(void)
{
    double start = kernel_now();
    long n = 0, sum = 0;
    for (; kernel_now() - start < seconds; n += 100000)
        for (int i = 0; i < 100000; i++)
            sum += __atomic_load_n(&published.count, __ATOMIC_RELAXED) & 1;
    kernel_sink += (uint64_t)sum;
    return n;
}

static void *count_and_watch(void *thread)
{
    return (void *)(thread ? watch() : count(&published.count));
}

static uint64_t run_threads(void *(*work)(void *))
{
    pthread_t other;
    void *counted;
    if (pthread_create(&other, NULL, work, &seconds) != 0)
        exit(1);
    uint64_t n = (uint64_t)work(NULL);
    (void)pthread_join(other, &counted);
    return (n + (uint64_t)counted) / 2;
}

static uint64_t run_and_watch(void)
{
    return run_threads(count_and_watch);
}

static uint64_t run_together(void)
{
    return run_threads(count_together);
}

static uint64_t run_apart(void)
{
    return run_threads(count_apart);
}

/* One thread waits in a loop until the other one has worked. */
static int is_done;

static void *work_alone(void *ignored)
{
    (void)ignored;
    (void)count(&apart[1].count);
    __atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
    return (void *)apart[1].count;
}

static KERNEL_NOINLINE void spin(void)
{
    while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
#if defined __x86_64__
        __builtin_ia32_pause();
#else
        ;
#endif
}

static void *spin_or_work(void *thread)
{
    if (thread)
        return work_alone(thread);
    spin();
    return NULL;
}

static uint64_t run_and_spin(void)
{
    __atomic_store_n(&is_done, 0, __ATOMIC_RELEASE);
    return run_threads(spin_or_work);
}

/* --- what is never used --- */

static void forget(void)
{
    make_near();
    forgotten = kernel_check(calloc(1, HUGE_PAGE_BYTES));
}

static void give_back(void)
{
    forget();
    free(forgotten);
    forgotten = NULL;
}

/* --- the kernel: pages that are given back and faulted in anew, and calls for one byte each --- */

#define BUFFER_BYTES (UINT64_C(32) << 20)
#define PAGE_BYTES UINT64_C(4096)

static unsigned char *buffer;
static int zeros;

static KERNEL_NOINLINE void map_buffer(void)
{
    buffer = kernel_check(mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    (void)madvise(buffer, BUFFER_BYTES, MADV_NOHUGEPAGE);
}

static KERNEL_NOINLINE uint64_t touch_buffer(void)
{
    for (uint64_t at = 0; at < BUFFER_BYTES; at += PAGE_BYTES)
        buffer[at]++;
    return BUFFER_BYTES / PAGE_BYTES;
}

static uint64_t touch_anew(void)
{
    map_buffer();
    uint64_t n = touch_buffer();
    (void)munmap(buffer, BUFFER_BYTES);
    return n;
}

static void open_zeros(void)
{
    zeros = open("/dev/zero", O_RDONLY);
    if (zeros < 0)
        exit(1);
}

static KERNEL_NOINLINE uint64_t work_on(const unsigned char *bytes, uint64_t n)
{
    uint64_t state = position;
    for (uint64_t i = 0; i < n; i++)
        state = (state ^ bytes[i]) * 6364136223846793005u + 1442695040888963407u;
    position = state;
    return n;
}

static KERNEL_NOINLINE uint64_t read_bytes(void)
{
    unsigned char byte;
    for (uint64_t i = 0; i < PAGE_BYTES; i++) {
        if (read(zeros, &byte, 1) != 1)
            exit(1);
        (void)work_on(&byte, 1);
    }
    return PAGE_BYTES;
}

static KERNEL_NOINLINE uint64_t read_page(void)
{
    unsigned char bytes[PAGE_BYTES];
    if (read(zeros, bytes, PAGE_BYTES) != (ssize_t)PAGE_BYTES)
        exit(1);
    return work_on(bytes, PAGE_BYTES);
}

static const struct kernel_case cases[] = {
    {"loop-order", {make_matrix, make_matrix}, {add_by_columns, add_by_rows}},
    {"width", {make_wide_matrix, make_matrix}, {add_by_width, add_by_rows}},
    {"hot-field", {make_particles, make_masses}, {add_particles, add_masses}},
    {"blocks", {make_boxes, make_all_boxes}, {add_boxes, add_all_boxes}},
    {"index", {make_table, make_table}, {look_up_table, read_table}},
    {"pages", {make_small_pages, make_huge_pages}, {look_up_pages, look_up_pages}},
    {"list", {make_list, make_list_in_order}, {follow, read_in_order}},
    {"near", {make_near, make_table}, {look_up_near, look_up_table}},
    {"division", {make_factors, make_table}, {divide, look_up_table}},
    {"arithmetic", {make_table, make_table}, {compute, look_up_table}},
    {"mixed", {NULL, NULL}, {mix, mix}},
    {"constants", {NULL, NULL}, {use_constants, use_constants}},
    {"small", {make_small, make_small}, {add_small, add_small}},
    {"bare", {make_near, make_near}, {look_up_near, look_up_near}},
    {"counters", {NULL, NULL}, {run_together, run_apart}},
    {"published", {NULL, NULL}, {run_and_watch, run_and_watch}},
    {"forgotten", {forget, give_back}, {look_up_near, look_up_near}},
    {"spinning", {NULL, NULL}, {run_and_spin, run_apart}},
    {"poles", {make_poles, make_poles}, {add_poles, add_poles}},
    {"faults", {NULL, map_buffer}, {touch_anew, touch_buffer}},
    {"calls", {open_zeros, open_zeros}, {read_bytes, read_page}},
};

int main(int argc, char **argv)
{
    return kernel_cases_main(argc, argv, cases, sizeof cases / sizeof *cases, &seconds);
}
