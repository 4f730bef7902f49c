// SPDX-License-Identifier: BSD-3-Clause
// Programs whose time goes to blocks far below the threshold; what they walk, and how often, is known. One argument:
// rows: a sparse matrix whose rows are allocated one by one, of two sizes; containers: nodes of a map, an unordered_map
// and a list; callers: two functions allocate through one wrapper, in turn, and what the second has made is walked
// three times as often; late: a second function allocates by the same operator new when the first has long ceased;
// threads: the blocks are made by threads and freed by main; fork: the child walks what its parent made.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct item {
    double value[7];
};

struct pile {
    item *items[150001]; /* recorded: not what is looked for here */
    int n;
};

static volatile double result;

/* In an order that no cache foresees. */
NOINLINE static double walk(const pile *pile)
{
    double sum = 0;
    for (int i = 0, at = 0; i < pile->n; i++, at = (at + 70001) % pile->n)
        sum += pile->items[at]->value[2];
    return sum;
}

NOINLINE static void walk_often(const pile *pile, int n_times)
{
    for (int i = 0; i < n_times; i++) {
        __asm__ volatile("" ::: "memory"); /* each time anew */
        result = result + walk(pile);
    }
}

NOINLINE static void *checked_malloc(size_t n_bytes)
{
    void *p = malloc(n_bytes);
    if (!p)
        abort();
    return p;
}

static void add(pile *pile, void *memory)
{
    item *made = static_cast<item *>(memory);
    memset(made->value, 0, sizeof made->value);
    pile->items[pile->n++] = made;
}

NOINLINE static void add_to_first(pile *pile)
{
    void *memory = checked_malloc(sizeof(item));
    add(pile, memory);
}

/* Another size, so that compilers do not take the two for one. */
NOINLINE static void add_to_second(pile *pile)
{
    void *memory = checked_malloc(sizeof(item) + 8);
    add(pile, memory);
}

static double cpu_seconds()
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/* On standard error: the part of the time of the walks that goes to the second pile. */
static int callers()
{
    static pile first, second;
    for (int i = 0; i < 150001; i++) {
        add_to_first(&first);
        add_to_second(&second);
    }
    double of_first = 0, of_second = 0; /* how often a block comes from memory is a matter of the machine's caches */
    for (int i = 0; i < 30; i++) {
        double start = cpu_seconds();
        walk_often(&first, 3);
        double middle = cpu_seconds();
        walk_often(&second, 9);
        of_first += middle - start;
        of_second += cpu_seconds() - middle;
    }
    std::fprintf(stderr, "truth %.4f\n", of_second / (of_first + of_second));
    return 0;
}

NOINLINE static item *made()
{
    return new item();
}

NOINLINE static void make_early(pile *pile)
{
    pile->items[pile->n++] = made();
    __asm__ volatile("" ::: "memory"); /* no jump in place of the call */
}

NOINLINE static void make_late(pile *pile)
{
    pile->items[pile->n++] = made();
    __asm__ volatile("nop" ::: "memory"); /* another function than the first */
}

static int late()
{
    static pile pile;
    while (pile.n < 1000)
        make_early(&pile);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 1490; i++)
            make_late(&pile);
        walk_often(&pile, 12);
    }
    return 0;
}

struct matrix {
    int n_rows;
    double **values;
    int **columns;
};

NOINLINE static matrix fill(int n_rows, int n_in_row)
{
    matrix a = {n_rows, new double *[n_rows], new int *[n_rows]};
    for (int i = 0; i < n_rows; i++) {
        a.values[i] = new double[n_in_row];
        a.columns[i] = new int[n_in_row];
        for (int k = 0; k < n_in_row; k++) {
            a.values[i][k] = k;
            a.columns[i][k] = (i + k) % n_rows;
        }
    }
    return a;
}

NOINLINE static double multiply(const matrix &a, const double *x)
{
    double sum = 0;
    for (int i = 0; i < a.n_rows; i++)
        for (int k = 0; k < 27; k++)
            sum += a.values[i][k] * x[a.columns[i][k]];
    return sum;
}

static int rows()
{
    matrix a = fill(150000, 27);
    std::vector<double> x(a.n_rows, 1.0);
    for (int i = 0; i < 200; i++)
        result = result + multiply(a, x.data());
    return 0;
}

static int containers()
{
    std::unordered_map<long, double> table;
    std::map<long, double> tree;
    std::list<double> list;
    for (long i = 0; i < 150000; i++) {
        table[i * 7919] = 1;
        tree[i * 7919 % 150000] = 1;
        list.push_back(1);
    }
    for (int n = 0; n < 4; n++) {
        for (long i = 0; i < 150000; i++)
            result = result + table.find(i * 31 % 150000 * 7919)->second + tree.find(i * 31 % 150000)->second;
        for (double value : list)
            result = result + value;
    }
    return 0;
}

NOINLINE static void make_in_thread(pile *pile)
{
    for (int i = 0; i < 150001; i++) {
        item *made = new item;
        add(pile, made);
    }
}

static int threads()
{
    static pile piles[3];
    std::vector<std::thread> makers;
    for (pile &pile : piles)
        makers.emplace_back(make_in_thread, &pile);
    for (std::thread &maker : makers)
        maker.join();
    for (const pile &pile : piles)
        walk_often(&pile, 300);
    for (const pile &pile : piles)
        for (int i = 0; i < pile.n; i++)
            delete pile.items[i];
    return 0;
}

static int with_fork()
{
    static pile before, after;
    for (int i = 0; i < 150001; i++)
        add_to_first(&before);
    pid_t child = fork();
    if (child == 0) {
        walk_often(&before, 150);
        for (int i = 0; i < 150001; i++)
            add_to_second(&after);
        walk_often(&after, 150);
        _exit(0);
    }
    int status = 1;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int status = !strcmp(way, "rows")         ? rows()
                 : !strcmp(way, "containers") ? containers()
                 : !strcmp(way, "callers")    ? callers()
                 : !strcmp(way, "late")       ? late()
                 : !strcmp(way, "threads")    ? threads()
                 : !strcmp(way, "fork")       ? with_fork()
                                              : 2;
    std::printf("%s %d %g\n", way, status, result);
    return status;
}
