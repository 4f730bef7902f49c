/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the row, lets original and twins take turns, and says what the medians are. See causes.h. */
#include <pthread.h>

#include "causes.h"

#define VARIANTS (1u << CAUSE_GROUPS)
#define ROUNDS_MAX 1000
#define TURN_S 0.02   /* of the original, in a round */
#define ROUNDS_MIN 11 /* below them a median says little */

/* Threads that wait for a turn; the main thread waits for them. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t ids[CAUSE_THREADS];
    unsigned n_working, turn, is_ending;
    const struct cause_row *row;
    uint64_t n_turns;
    unsigned resident;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* What is known of a row, and of its parts. */
struct measured {
    const struct cause_row *row, *parts[CAUSE_PARTS];
    unsigned n_groups, n_parts, n_rounds;
    uint64_t n_turns[CAUSE_PARTS];
    double part_s[CAUSE_PARTS];           /* of the originals */
    double seconds[ROUNDS_MAX][VARIANTS]; /* [n_rounds][1 << n_groups]: CPU time with these groups resident */
};

void cause_fill(double *numbers, uint64_t n, double centre, double spread)
{
    uint64_t state = 2463534242u;
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = centre + spread * ((double)(int64_t)kernel_random(&state) * 0x1p-63);
}

void cause_fill_indexes(uint32_t *indexes, uint64_t n_indexes, uint64_t n)
{
    uint64_t state = 521288629u;
    for (uint64_t i = 0; i < n_indexes; i++)
        indexes[i] = (uint32_t)((kernel_random(&state) >> 32) * n >> 32);
}

static double process_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *work(void *argument)
{
    unsigned thread = *(const unsigned *)argument, turn = 0;
    (void)pthread_mutex_lock(&pool.mutex);
    while (1) {
        while (pool.turn == turn && !pool.is_ending)
            (void)pthread_cond_wait(&pool.changed, &pool.mutex);
        if (pool.is_ending)
            break;
        turn = pool.turn;
        (void)pthread_mutex_unlock(&pool.mutex);
        pool.row->run(pool.n_turns, pool.resident, thread);
        (void)pthread_mutex_lock(&pool.mutex);
        if (--pool.n_working == 0)
            (void)pthread_cond_broadcast(&pool.changed);
    }
    (void)pthread_mutex_unlock(&pool.mutex);
    return NULL;
}

static void open_pool(void)
{
    static const unsigned numbers[CAUSE_THREADS] = {0, 1};
    for (unsigned i = 0; i < CAUSE_THREADS; i++)
        if (pthread_create(&pool.ids[i], NULL, work, (void *)&numbers[i]) != 0) {
            (void)fprintf(stderr, "no thread\n");
            exit(1);
        }
}

static void close_pool(void)
{
    (void)pthread_mutex_lock(&pool.mutex);
    pool.is_ending = 1;
    (void)pthread_cond_broadcast(&pool.changed);
    (void)pthread_mutex_unlock(&pool.mutex);
    for (unsigned i = 0; i < CAUSE_THREADS; i++)
        (void)pthread_join(pool.ids[i], NULL);
}

static void run_in_pool(const struct cause_row *row, uint64_t n_turns, unsigned resident)
{
    (void)pthread_mutex_lock(&pool.mutex);
    pool.row = row;
    pool.n_turns = n_turns;
    pool.resident = resident;
    pool.n_working = CAUSE_THREADS;
    pool.turn++;
    (void)pthread_cond_broadcast(&pool.changed);
    while (pool.n_working > 0)
        (void)pthread_cond_wait(&pool.changed, &pool.mutex);
    (void)pthread_mutex_unlock(&pool.mutex);
}

/* CPU time that a loop takes. */
static double run_part(const struct cause_row *row, uint64_t n_turns, unsigned resident)
{
    double start = process_now();
    if (row->n_threads > 1)
        run_in_pool(row, n_turns, resident);
    else
        row->run(n_turns, resident, 0);
    return process_now() - start;
}

static double run_variant(struct measured *m, unsigned variant)
{
    double sum = 0;
    for (unsigned p = 0; p < m->n_parts; p++) {
        unsigned group = m->row->parts[p].group, resident = variant;
        if (m->row->parts[0].loop)
            resident = group < CAUSE_GROUPS && variant >> group & 1 ? CAUSE_ALL : 0;
        double seconds = run_part(m->parts[p], m->n_turns[p], resident);
        m->part_s[p] += variant == 0 ? seconds : 0;
        sum += seconds;
    }
    return sum;
}

static const struct cause_row *find_row(const char *name)
{
    const struct cause_row *const files[] = {cause_streams, cause_irregular, cause_solvers, cause_programs};
    for (unsigned f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct cause_row *row = files[f]; row->name; row++) {
            if (!name)
                puts(row->name);
            else if (strcmp(row->name, name) == 0)
                return row;
        }
    return NULL;
}

/* How many turns of the loop take so many seconds: the shortest of a few attempts, as other programs only lengthen it.
 */
static uint64_t turns_for(const struct cause_row *row, double seconds)
{
    uint64_t n = 1;
    double took = run_part(row, n, 0);
    while (took < 0.004) {
        n *= 2;
        took = run_part(row, n, 0);
    }
    for (int attempt = 0; attempt < 3; attempt++) {
        double again = run_part(row, n, 0);
        took = again < took ? again : took;
    }
    uint64_t turns = (uint64_t)((double)n * seconds / took);
    return turns ? turns : 1;
}

static void make_row(struct measured *m)
{
    double weights = 0;
    while (m->row->groups[m->n_groups])
        m->n_groups++;
    m->parts[0] = m->row;
    for (; m->row->parts[m->n_parts].loop; m->n_parts++) {
        m->parts[m->n_parts] = find_row(m->row->parts[m->n_parts].loop);
        weights += m->row->parts[m->n_parts].weight;
    }
    m->n_parts += m->n_parts == 0;
    for (unsigned p = 0; p < m->n_parts; p++) {
#ifdef __x86_64__
        if (m->parts[p]->needs_avx2 && !__builtin_cpu_supports("avx2"))
            exit(77);
#else
        if (m->parts[p]->needs_avx2)
            exit(77);
#endif
        m->parts[p]->make(m->parts[p]->size);
        m->n_turns[p] = turns_for(m->parts[p], TURN_S * (weights > 0 ? m->row->parts[p].weight / weights : 1));
        m->part_s[p] = 0;
    }
}

/* Rounds of the original, sampled, and, for the truth, of each variant, not sampled: what a sample costs is neither
 * execution nor memory of the loop. */
static void take_turns(struct measured *m, const struct kernel_options *options)
{
    double done = 0;
    for (m->n_rounds = 0; m->n_rounds < ROUNDS_MAX && (done < options->seconds || m->n_rounds < ROUNDS_MIN);
         m->n_rounds++) {
        double *seconds = m->seconds[m->n_rounds];
        kernel_begin();
        seconds[0] = run_variant(m, 0);
        kernel_end();
        done += seconds[0];
        for (unsigned v = hpctoolkit_sampling_start ? 0 : 1; options->is_truth && v < 1u << m->n_groups; v++)
            seconds[v] = run_variant(m, v);
    }
}

/* Time that group saves in a round when it is made resident after the others have been, of which each bit is one;
 * group = n_groups: what all of them save together. */
static double saved_after(const struct measured *m, const double *seconds, unsigned group, unsigned others)
{
    if (group == m->n_groups)
        return seconds[0] - seconds[(1u << m->n_groups) - 1];
    return seconds[others] - seconds[others | 1u << group];
}

/* Time that group costs in a round: what it saves in the mean over all orders in which the groups can be made resident
 * one after the other (the Shapley value). */
static double saved(const struct measured *m, const double *seconds, unsigned group)
{
    static const double weights[CAUSE_GROUPS][CAUSE_GROUPS] = {{1}, {1. / 2, 1. / 2}, {1. / 3, 1. / 6, 1. / 3}};
    double sum = 0;
    if (group == m->n_groups)
        return saved_after(m, seconds, group, 0);
    for (unsigned others = 0; others < 1u << m->n_groups; others++)
        if (!(others >> group & 1))
            sum += weights[m->n_groups - 1][__builtin_popcount(others)] * saved_after(m, seconds, group, others);
    return sum;
}

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double percent(double share)
{
    return share < 0 ? 0 : share > 1 ? 100 : 100 * share;
}

/* Least and most, in percent, that group saves by the order in which the groups are made resident: medians each. */
static void find_range(const struct measured *m, unsigned group, double *least, double *most)
{
    double shares[ROUNDS_MAX];
    *least = 100;
    *most = 0;
    for (unsigned others = 0; others < 1u << m->n_groups; others++) {
        if (group < m->n_groups && others >> group & 1)
            continue;
        for (unsigned i = 0; i < m->n_rounds; i++)
            shares[i] = saved_after(m, m->seconds[i], group, others) / m->seconds[i][0];
        qsort(shares, m->n_rounds, sizeof *shares, compare);
        double middle = percent(shares[m->n_rounds / 2]);
        *least = middle < *least ? middle : *least;
        *most = middle > *most ? middle : *most;
    }
}

static void print_group(const struct measured *m, unsigned group)
{
    double shares[ROUNDS_MAX], least, most;
    for (unsigned i = 0; i < m->n_rounds; i++)
        shares[i] = saved(m, m->seconds[i], group) / m->seconds[i][0];
    qsort(shares, m->n_rounds, sizeof *shares, compare);
    find_range(m, group, &least, &most);
    printf("truth: loop %s variable %s memory %.1f low %.1f high %.1f least %.1f most %.1f\n", m->row->name,
           group == m->n_groups ? "all" : m->row->groups[group], percent(shares[m->n_rounds / 2]),
           percent(shares[m->n_rounds / 4]), percent(shares[m->n_rounds * 3 / 4]), least, most);
}

static void print_truth(const struct measured *m)
{
    double sum = 0;
    for (unsigned g = m->n_groups + 1; g-- > 0;)
        print_group(m, g);
    for (unsigned p = 0; p < m->n_parts; p++)
        sum += m->part_s[p];
    for (unsigned p = 0; p < m->n_parts && m->row->parts[0].loop; p++)
        printf("timer: loop %s variable %s time %.1f\n", m->row->name, m->row->parts[p].timers,
               percent(m->part_s[p] / sum));
}

int main(int argc, char **argv)
{
    static struct measured measured;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        (void)find_row(NULL);
        return 0;
    }
    measured.row = argc > 1 ? find_row(argv[1]) : NULL;
    if (!measured.row) {
        (void)fprintf(stderr, "usage: causes LOOP [--truth] [SECONDS], or causes --list\n");
        return 2;
    }
    struct kernel_options options = kernel_options(argc - 1, argv + 1);
    open_pool();
    make_row(&measured);
    take_turns(&measured, &options);
    close_pool();
    if (options.is_truth)
        print_truth(&measured);
    return 0;
}
