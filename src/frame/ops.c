/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations: one row each, and how its texts become operands. */
#include "frame/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"
#include "base/vec.h"
#include "frame/op-shape.h"
#include "frame/query.h"

#define HOT_SHARE 0.5 /* of Hatchet's hot_path */
#define N_OUTLIERS 3  /* that an imbalance names */

/* What a row's function gets. */
#define OPERANDS                                                                                                       \
    struct frame *const *frames, size_t n, const char *const *texts, size_t n_texts, struct frame **result,            \
        struct error *err

static int run_filter(OPERANDS)
{
    (void)n, (void)n_texts;
    return frame_filter(frames[0], texts[0], NULL, result, err);
}

static int run_query(OPERANDS)
{
    bool *found;
    (void)n, (void)n_texts;
    int code = query_run(frames[0], texts[0], NULL, &found, err);
    if (code != 0)
        return code;
    code = frame_squash(frames[0], found, result, err);
    free(found);
    return code;
}

static int run_derive(OPERANDS)
{
    (void)n, (void)n_texts;
    return frame_derive(frames[0], texts[0], texts[1], result, err);
}

static int run_sum_up(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_sum_up(frames[0], result, err);
}

static int run_take_apart(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_take_apart(frames[0], result, err);
}

static int run_choose(OPERANDS)
{
    (void)n, (void)n_texts;
    return frame_choose(frames[0], texts[0], result, err);
}

static int run_section(OPERANDS)
{
    (void)n, (void)n_texts;
    return frame_section(frames[0], texts[0], result, err);
}

static int run_hierarchy(OPERANDS)
{
    (void)n, (void)n_texts;
    return frame_hierarchy(frames[0], texts[0], result, err);
}

static const struct {
    const char *name;
    enum frame_aggregate aggregate;
} aggregates[] = {{"sum", FRAME_SUM}, {"mean", FRAME_MEAN}, {"min", FRAME_MIN},
                  {"max", FRAME_MAX}, {"std", FRAME_STD},   {"count", FRAME_COUNT}};

/* What a word says of several values. */
static int parse_way(const char *word, struct frame_view *view, struct error *err)
{
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        if (strcmp(aggregates[i].name, word) == 0) {
            view->aggregate = aggregates[i].aggregate;
            return 0;
        }
    if (word[0] == 'p' && word[1]) {
        char *end;
        view->percentile = plain_number(word + 1, &end);
        view->aggregate = FRAME_PERCENTILE;
        if (!*end && view->percentile >= 0 && view->percentile <= 100)
            return 0;
    }
    return error_set(err, ERR_USAGE,
                     "'%.100s' is no way to make one value of several: sum, mean, min, max, std, count, p50", word);
}

static int run_aggregate(OPERANDS)
{
    struct frame_view view = {0};
    (void)n;
    int code = n_texts > 1 ? parse_way(texts[1], &view, err) : 0;
    return code == 0 ? frame_aggregate(frames[0], texts[0], &view, result, err) : code;
}

static int run_group(OPERANDS)
{
    struct frame_view how = {0};
    bool has_edges = n_texts > 1 && strcmp(texts[1], "edges") == 0;
    const char *way = n_texts > 1 && !has_edges ? texts[1] : n_texts > 2 ? texts[2] : "sum";
    (void)n;
    if (n_texts > 2 && !has_edges)
        return error_set(err, ERR_USAGE, "groups are with 'edges' or without, not with '%.100s'", texts[1]);
    int code = parse_way(way, &how, err);
    if (code != 0)
        return code;
    return (has_edges ? frame_group_graph : frame_group_by)(frames[0], texts[0],
                                                            how.aggregate == FRAME_SUM ? NULL : &how, result, err);
}

static int run_flat(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_flat(frames[0], result, err);
}

static int run_callers(OPERANDS)
{
    char *end = NULL;
    unsigned long depth = n_texts ? strtoul(texts[0], &end, 10) : 0;
    (void)n;
    if (end && (*end || end == texts[0] || depth > UINT32_MAX || strchr(texts[0], '-')))
        return error_set(err, ERR_USAGE, "'%.100s' is no depth", texts[0]);
    return frame_bottom_up(frames[0], (uint32_t)depth, result, err);
}

static int run_callgraph(OPERANDS)
{
    (void)n;
    if (n_texts && strcmp(texts[0], "collapsed") != 0)
        return error_set(err, ERR_USAGE, "a call graph is 'collapsed' or nothing, not '%.100s'", texts[0]);
    return frame_callgraph(frames[0], n_texts, result, err);
}

static int run_imbalance(OPERANDS)
{
    char *end = NULL;
    unsigned long max = n_texts > 1 ? strtoul(texts[1], &end, 10) : N_OUTLIERS;
    (void)n;
    if (end && (*end || end == texts[1] || strchr(texts[1], '-')))
        return error_set(err, ERR_USAGE, "'%.100s' is no number of outliers", texts[1]);
    return frame_imbalance(frames[0], texts[0], max, result, err);
}

/* Follows what a node costs with those below it, if there is such a column. */
static int run_hot_path(OPERANDS)
{
    (void)n;
    size_t column = n_texts > 0 ? frame_find_column(frames[0], texts[0], err) : frame_default_column(frames[0]);
    if (column == SIZE_MAX)
        return n_texts > 0 ? ERR_NOT_FOUND : error_set(err, ERR_NOT_FOUND, "there is no column to follow");
    size_t pair = frame_column_pair(frames[0], column);
    if (frame_column_sums(frames[0], column) == FRAME_EXCLUSIVE && pair != SIZE_MAX)
        column = pair;
    return shape_hot_path(frames[0], column, HOT_SHARE, result, err);
}

static int run_union(OPERANDS)
{
    (void)n_texts, (void)texts;
    return frame_union(frames, n, result, err);
}

static int run_add(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_arithmetic(frames[0], frames[1], FRAME_ADD, result, err);
}

static int run_subtract(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_arithmetic(frames[0], frames[1], FRAME_SUBTRACT, result, err);
}

static int run_multiply(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_arithmetic(frames[0], frames[1], FRAME_MULTIPLY, result, err);
}

static int run_divide(OPERANDS)
{
    (void)n, (void)n_texts, (void)texts;
    return frame_arithmetic(frames[0], frames[1], FRAME_DIVIDE, result, err);
}

static const struct frame_operation operations[] = {
    {"filter", 1, "CONDITION", "nodes for which the condition is true; the nearest caller that stays adopts the others",
     run_filter},
    {"query", 1, "QUERY", "nodes on the call paths that the query names", run_query},
    {"derive", 1, "NAME EXPRESSION", "one more column, which the expression computes", run_derive},
    {"inclusive", 1, "", "inclusive columns, computed from the exclusive ones", run_sum_up},
    {"exclusive", 1, "", "exclusive columns, computed from the inclusive ones", run_take_apart},
    {"choose", 1, "CONDITION", "profiles for which the condition on rank, thread, process, host, name is true",
     run_choose},
    {"section", 1, "CONDITION", "the same, as one profile with their sums", run_section},
    {"aggregate", 1, "BY [HOW]",
     "one profile for each rank, thread, process or host, or for all; HOW: sum, mean, min, max, std, count, p50",
     run_aggregate},
    {"group", 1, "ATTRIBUTE [edges] [HOW]",
     "one node for each name, file, module, line, kind, or other attribute; edges: with who calls whom among them; "
     "HOW: "
     "sum, mean, min, max, std, count, p50 of all nodes, where sums count inclusive costs of the outermost ones alone",
     run_group},
    {"hierarchy", 1, "LEVELS", "what belongs to what, such as 'module file function line' or 'class variable function'",
     run_hierarchy},
    {"flat", 1, "", "one node for each function", run_flat},
    {"callers", 1, "[DEPTH]", "upside down: functions, below them who calls them", run_callers},
    {"callgraph", 1, "[collapsed]", "functions and who calls them, with the circles that they form", run_callgraph},
    {"hotpath", 1, "[COLUMN]", "the path on which each node has at least half of what its caller costs", run_hot_path},
    {"imbalance", 1, "COLUMN [N]",
     "mean and largest value over the profiles, their ratio, and the N (3) profiles with the largest values above the "
     "mean",
     run_imbalance},
    {"union", 0, "", "all nodes of all, with the profiles of all", run_union},
    {"add", 2, "", "sums by node and profile", run_add},
    {"subtract", 2, "", "differences by node and profile", run_subtract},
    {"multiply", 2, "", "products by node and profile", run_multiply},
    {"divide", 2, "", "quotients by node and profile", run_divide},
};

const struct frame_operation *frame_operations(size_t *n)
{
    *n = sizeof operations / sizeof *operations;
    return operations;
}

void frame_count_operands(const char *operands, size_t *n_least, size_t *n_most)
{
    *n_least = *n_most = 0;
    for (const char *at = operands; *at; at += strcspn(at, " ")) {
        at += *at == ' ';
        *n_least += *at != '[';
        ++*n_most;
    }
}

int frame_run(const char *name, struct frame *const *frames, size_t n, const char *const *texts, size_t n_texts,
              struct frame **result, struct error *err)
{
    enum { N = sizeof operations / sizeof *operations };
    const char *names[N];
    struct buf text = {0};
    for (size_t i = 0; i < N; i++) {
        const struct frame_operation *found = &operations[i];
        size_t n_least, n_most;
        names[i] = found->name;
        if (strcmp(found->name, name) != 0)
            continue;
        frame_count_operands(found->operands, &n_least, &n_most);
        if (n == 0 || (found->n_frames && n != found->n_frames))
            return error_set(err, ERR_USAGE, "%s works on %zu profiles, not on %zu", name,
                             found->n_frames ? found->n_frames : 1, n);
        if (n_texts < n_least || n_texts > n_most)
            return error_set(err, ERR_USAGE, "%s has the operands: %s", name,
                             *found->operands ? found->operands : "none");
        return found->run(frames, n, texts, n_texts, result, err);
    }
    spelling_suggest(&text, name, names, N);
    int code = text.failed ? error_memory(err)
                           : error_set(err, ERR_NOT_FOUND, "there is no operation '%.100s'%s", name, text.data);
    buf_fini(&text);
    return code;
}
