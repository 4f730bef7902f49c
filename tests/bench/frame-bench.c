/* SPDX-License-Identifier: BSD-3-Clause */
/* Times operations on frames, in seconds of the best of three, a line each:
 *
 *     frame-bench DATABASE            opening and operations on it
 *     frame-bench --nodes N PROFILES  operations on a made frame: a tree of N nodes
 *
 * Every operation ends with the values of all nodes of its result; nothing that a run has computed is there in the
 * next. The last line is the peak of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "frame/make.h"
#include "frame/ops.h"
#include "frame/query.h"

static struct error err;

static void check(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "frame-bench: %s\n", err.text);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- frames --- */

/* A tree as profiles have them: a function, lines of it, and calls from some of these; the same one for the same n. */
static struct frame *make(uint32_t n, uint32_t n_profiles)
{
    struct frame_maker maker;
    struct frame *frame;
    uint64_t random = 1;
    uint32_t path[40], depth = 0;
    maker_init(&maker);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t i = 0; i < n_profiles; i++)
        (void)maker_profile(&maker, &(struct frame_profile){"", i, 0, -1, -1});
    for (uint32_t i = 0; i < n; i++) {
        char name[40];
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t dice = (uint32_t)(random >> 33);
        depth = i ? 1 + dice % (depth + 1 < 40 ? depth + 1 : 39) : 0;
        (void)snprintf(name, sizeof name, "function_%u", dice / 64 % 2000);
        path[depth] = maker_node(&maker, depth ? path[depth - 1] : FRAME_NONE,
                                 &(struct made_node){.kind = FRAME_FUNCTION, .name = name, .file = "a.c"});
        for (uint32_t k = 0; k < n_profiles; k++)
            if ((dice >> k % 16 & 3) == 0)
                maker_value(&maker, time, path[depth], k, 1 + dice % 100);
    }
    check(frame_made(&maker, &frame, NULL, &err));
    return frame;
}

/* What is measured: a database that is opened anew for each run, or a made frame. */
struct subject {
    const char *path;
    uint32_t n, n_profiles;
};

static struct frame *fresh(const struct subject *subject)
{
    struct frame *frame;
    if (!subject->path)
        return make(subject->n, subject->n_profiles);
    check(frame_open(subject->path, &frame, &err));
    return frame;
}

/* Values of the first exclusive column and of its inclusive one. */
static void touch(struct frame *frame)
{
    size_t column = frame_default_column(frame), pair = frame_column_pair(frame, column);
    const double *values;
    check(frame_values(frame, column, NULL, &values, &err));
    if (pair != SIZE_MAX)
        check(frame_values(frame, pair, NULL, &values, &err));
}

/* --- operations --- */

static void do_filter(struct frame *frame)
{
    struct frame *result;
    check(frame_filter(frame, "depth != 3", NULL, &result, &err));
    touch(result);
    frame_close(result);
}

static void do_query(struct frame *frame)
{
    struct frame *result;
    bool *found;
    check(query_run(frame, "MATCH (p)->(\"*\") WHERE p.\"name\" =~ \"f.*[02468]\"", NULL, &found, &err));
    check(frame_squash(frame, found, &result, &err));
    touch(result);
    frame_close(result);
    free(found);
}

static void do_union(struct frame *frame)
{
    struct frame *result;
    check(frame_union((struct frame *[]){frame, frame}, 2, &result, &err));
    touch(result);
    frame_close(result);
}

static void do_add(struct frame *frame)
{
    struct frame *result;
    check(frame_arithmetic(frame, frame, FRAME_ADD, &result, &err));
    touch(result);
    frame_close(result);
}

static void do_flat(struct frame *frame)
{
    struct frame *result;
    check(frame_flat(frame, &result, &err));
    touch(result);
    frame_close(result);
}

static void do_hierarchy(struct frame *frame)
{
    struct frame *result;
    check(frame_hierarchy(frame, "file function", &result, &err));
    touch(result);
    frame_close(result);
}

static const struct {
    const char *name;
    void (*run)(struct frame *frame);
} operations[] = {{"filter and squash", do_filter},
                  {"query and squash", do_query},
                  {"union", do_union},
                  {"add", do_add},
                  {"flat", do_flat},
                  {"hierarchy", do_hierarchy}};

/* Opening with the values of the first tree, then each operation on a frame that nothing was asked of. */
static void measure(const struct subject *subject)
{
    double best = 1e9;
    size_t n = 0;
    for (int k = 0; subject->path && k < 3; k++) {
        double begin = now_s();
        struct frame *frame = fresh(subject);
        touch(frame);
        best = now_s() - begin < best ? now_s() - begin : best;
        n = frame_n_nodes(frame);
        frame_close(frame);
    }
    if (subject->path)
        printf("nodes\t%zu\nopen and first tree\t%.6f\n", n, best);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        best = 1e9;
        for (int k = 0; k < 3; k++) {
            struct frame *frame = fresh(subject);
            double begin = now_s();
            operations[i].run(frame);
            best = now_s() - begin < best ? now_s() - begin : best;
            frame_close(frame);
        }
        printf("%s\t%.6f\n", operations[i].name, best);
    }
}

int main(int argc, char **argv)
{
    struct rusage usage;
    bool is_made = argc == 4 && strcmp(argv[1], "--nodes") == 0;
    if (!is_made && argc != 2) {
        fputs("usage: frame-bench DATABASE | --nodes N PROFILES\n", stderr);
        return 2;
    }
    measure(&(struct subject){.path = is_made ? NULL : argv[1],
                              .n = is_made ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
                              .n_profiles = is_made ? (uint32_t)strtoul(argv[3], NULL, 10) : 0});
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("peak MiB\t%ld\n", usage.ru_maxrss / 1024);
    return 0;
}
