/* SPDX-License-Identifier: BSD-3-Clause */
/* Many runs side by side: what they were, and what their functions cost over all of them, in groups, for more and more
 * threads, and against one of them. A run is an input; of one that does not know a function that is 0. Ordinary code.
 */
#include "session/session.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model.h"
#include "analysis/report/code-table.h"
#include "answer/answer.h"
#include "base/path.h"
#include "base/spelling.h"
#include "database/database.h"
#include "export/text-cells.h"
#include "fmt/file.h"
#include "session/questions.h"

enum { THRESHOLD = 1 }; /* percent of everything */

/* A member of what is known of a run. */
struct fact {
    uint32_t key;
    char *text;
};

struct run_of {
    const char *path;
    double total;
    struct fact *facts; /* [n_facts] */
    size_t n_facts, cap_facts;
    uint32_t group;
};

/* What runs that are alike in a key have in common. */
struct group {
    size_t n;      /* of runs */
    double number, /* the key's value; 0: it is no number */
        total;     /* on average */
};

/* A function in a run. */
struct cost {
    uint32_t function, run;
    double own, inclusive;
};

struct runs {
    const struct request *request;
    struct run_of *all; /* [n] */
    size_t n;
    struct strtab keys;      /* of facts, in the order in which they came */
    struct strtab functions; /* "NAME\nFILE" */
    struct strtab groups;    /* values of the key that they are grouped by */
    struct group *group_of;  /* [groups] */
    uint32_t *group_order;   /* [groups] numbers of them, in order */
    struct cost *costs;      /* [n_costs] by run */
    size_t n_costs, cap_costs;
    double *own, *inclusive; /* [functions][n] */
    uint32_t *order;         /* [functions] the costliest first */
    char *metric;
};

/* --- what is known of a run --- */

static bool add_fact(struct runs *runs, struct run_of *run, const char *key, const char *text)
{
    int64_t id = strtab_intern(&runs->keys, key);
    if (!text || !*text)
        return id >= 0;
    if (id < 0 || !vec_reserve(&run->facts, &run->cap_facts, run->n_facts + 1, sizeof *run->facts))
        return false;
    char *copy = strdup(text);
    if (copy)
        run->facts[run->n_facts++] = (struct fact){(uint32_t)id, copy};
    return copy;
}

static bool add_number(struct runs *runs, struct run_of *run, const char *key, double number)
{
    struct buf text = {0};
    if (number > 0)
        buf_printf(&text, "%.9g", number);
    bool ok = !text.failed && add_fact(runs, run, key, text.data);
    buf_fini(&text);
    return ok;
}

/* What a run is by a key; NULL: not known. */
static const char *fact_of(const struct run_of *run, int64_t key)
{
    for (size_t i = 0; i < run->n_facts; i++)
        if (run->facts[i].key == key)
            return run->facts[i].text;
    return NULL;
}

/* What the launches of a measurement were by a key, each value once: "1, 2". */
static bool add_noted_of(struct runs *runs, struct run_of *run, const json_t *launches, const char *key)
{
    struct buf text = {0};
    for (size_t i = 0; i < json_array_size(launches); i++) {
        const char *value = json_string_value(json_object_get(json_array_get(launches, i), key));
        bool is_new = value != NULL;
        for (size_t before = 0; is_new && before < i; before++) {
            const char *other = json_string_value(json_object_get(json_array_get(launches, before), key));
            is_new = !other || strcmp(other, value) != 0;
        }
        if (is_new)
            buf_printf(&text, "%s%s", text.len_bytes ? ", " : "", value);
    }
    bool ok = !text.failed && add_fact(runs, run, key, text.data);
    buf_fini(&text);
    return ok;
}

/* What hpcrun noted of the launches that the database is of; most are of one. */
static bool add_noted(struct runs *runs, struct run_of *run)
{
    struct buf path = {0}, text = {0};
    struct error ignored;
    const char *key;
    json_t *value, *known = NULL, *list = NULL;
    bool ok = true;
    char *directory = database_directory(run->path);
    if (directory)
        buf_printf(&path, "%s/" DATABASE_RUNS_FILE, directory);
    if (path.data && file_read(path.data, &text, &ignored) == 0 && text.data)
        list = json_loadb(text.data, text.len_bytes, 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!known)
            known = json_object();
        (void)json_object_update_missing(known, json_array_get(list, i));
    }
    json_object_foreach(known, key, value)
    {
        ok = ok && add_noted_of(runs, run, list, key);
    }
    if (json_array_size(list) > 1)
        ok = ok && add_number(runs, run, "launches", (double)json_array_size(list));
    json_decref(known);
    json_decref(list);
    free(directory);
    buf_fini(&path);
    buf_fini(&text);
    return ok;
}

static bool add_facts(struct runs *runs, struct run_of *run, const struct model *model)
{
    const char *program = model->program ? model_module_name(model, model->program) : NULL;
    return add_fact(runs, run, "program", model->code ? NULL : program) && add_noted(runs, run) &&
           add_number(runs, run, "elapsed_s", ((double)model->end_ns - (double)model->start_ns) / 1e9) &&
           add_number(runs, run, "cpu_s", (double)model->cpu_time_ns / 1e9) &&
           add_number(runs, run, "processes", model->code ? 0 : (double)model_count_processes(model)) &&
           add_number(runs, run, "threads", model->code ? 0 : (double)model_count_threads(model));
}

/* --- reading --- */

static int add_costs(struct runs *runs, uint32_t run, const struct code_table *table, struct error *err)
{
    struct buf name = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < table->n_rows; i++) {
        const struct code_row *row = &table->rows[i];
        const char *file = model_text(table->model, row->file);
        name.len_bytes = 0;
        buf_printf(&name, "%s\n%s", model_text(table->model, row->function),
                   *file && *file != '<' ? file : model_text(table->model, row->module));
        int64_t id = name.failed ? -1 : strtab_intern(&runs->functions, name.data);
        ok = id >= 0 && vec_reserve(&runs->costs, &runs->cap_costs, runs->n_costs + 1, sizeof *runs->costs);
        if (ok)
            runs->costs[runs->n_costs++] = (struct cost){(uint32_t)id, run, row->own, row->inclusive};
    }
    buf_fini(&name);
    return ok ? 0 : error_memory(err);
}

static int read_run(struct runs *runs, uint32_t number, struct error *err)
{
    struct run_of *run = &runs->all[number];
    struct session *session;
    struct code_table table;
    const char *wanted = runs->metric ? runs->metric : runs->request->metric;
    int code = session_open_any(run->path, &session, err);
    if (code != 0)
        return code;
    const struct model *model = session_model(session);
    int64_t metric = model ? model_choose_metric(model, wanted) : -1;
    if (metric < 0)
        code = model && wanted ? error_set(err, ERR_NOT_FOUND, "%s has no metric '%s'", run->path, wanted)
                               : error_set(err, ERR_UNSUPPORTED, "%s has no costs of functions", run->path);
    if (code == 0)
        code = code_table_make(model, (size_t)metric, CODE_FUNCTION, NULL, &table, err);
    if (code == 0) {
        run->total = table.total;
        code = add_costs(runs, number, &table, err);
        if (code == 0 &&
            (!add_facts(runs, run, model) || (!runs->metric && !(runs->metric = strdup(model->metrics[metric].name)))))
            code = error_memory(err);
        code_table_fini(&table);
    }
    session_close(session);
    return code;
}

/* The last n parts of the path behind the name of a function. */
static const char *end_of(const char *function, unsigned n)
{
    const char *path = strchr(function, '\n') + 1, *end = path + strlen(path);
    while (end > path && n > 0) {
        end--;
        n -= *end == '/';
    }
    return n == 0 ? end + 1 : path;
}

static bool has_more(const char *function, unsigned n)
{
    return end_of(function, n) != strchr(function, '\n') + 1;
}

/* Names that functions [n] go by: with as much of their paths as kept [n] says. *keys gets them, key_of [n] their
 * numbers. False when out of memory. */
static bool name_functions(const struct runs *runs, const unsigned *kept, struct strtab *keys, uint32_t *key_of)
{
    struct buf text = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < runs->functions.n_strings; i++) {
        const char *name = runs->functions.strings[i];
        text.len_bytes = 0;
        buf_printf(&text, "%.*s\n%s", (int)strcspn(name, "\n"), name, end_of(name, kept[i]));
        int64_t key = text.failed ? -1 : strtab_intern(keys, text.data);
        ok = key >= 0;
        key_of[i] = ok ? (uint32_t)key : 0;
    }
    buf_fini(&text);
    return ok;
}

/* The last function of a key, and whether its run has another one of it. */
struct seen {
    uint32_t function, run;
    bool is_there, has_others;
};

/* Says that functions of the same name are told apart by one part more of their paths, where one run has two of them.
 * seen [keys] is zero. Whether there were any. */
static bool tell_apart(const struct runs *runs, const uint32_t *key_of, struct seen *seen, unsigned *kept)
{
    bool has_any = false;
    char *const *names = runs->functions.strings;
    for (size_t i = 0; i < runs->n_costs; i++) {
        const struct cost *cost = &runs->costs[i];
        struct seen *of = &seen[key_of[cost->function]];
        bool is_other = of->is_there && of->run == cost->run && of->function != cost->function;
        if (is_other && (has_more(names[cost->function], kept[cost->function]) ||
                         has_more(names[of->function], kept[of->function])))
            has_any = of->has_others = true;
        *of = (struct seen){cost->function, cost->run, true, of->has_others};
    }
    for (size_t i = 0; has_any && i < runs->functions.n_strings; i++)
        kept[i] += seen[key_of[i]].has_others;
    return has_any;
}

/* Functions are the same in two runs that have the same name and the same end of the path of their file: the last part,
 * as a program may have been built elsewhere, and as many more as tell those of one run apart. */
static int merge_functions(struct runs *runs, struct error *err)
{
    size_t n = runs->functions.n_strings;
    unsigned *kept = calloc(n + 1, sizeof *kept);
    uint32_t *key_of = calloc(n + 1, sizeof *key_of);
    struct seen *seen = NULL;
    struct strtab keys = {0};
    bool ok = kept && key_of, is_done = false;
    for (size_t i = 0; ok && i < n; i++)
        kept[i] = 1;
    while (ok && !is_done) {
        strtab_fini(&keys);
        ok = name_functions(runs, kept, &keys, key_of);
        free(seen);
        seen = ok ? calloc(keys.n_strings + 1, sizeof *seen) : NULL;
        ok = seen;
        is_done = !ok || !tell_apart(runs, key_of, seen, kept);
    }
    for (size_t i = 0; ok && i < runs->n_costs; i++)
        runs->costs[i].function = key_of[runs->costs[i].function];
    if (ok) {
        strtab_fini(&runs->functions);
        runs->functions = keys;
    } else {
        strtab_fini(&keys);
    }
    free(kept);
    free(key_of);
    free(seen);
    return ok ? 0 : error_memory(err);
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct runs *runs = context;
    const double *x = &runs->own[*(const uint32_t *)a * runs->n], *y = &runs->own[*(const uint32_t *)b * runs->n];
    double one = 0, other = 0;
    for (size_t i = 0; i < runs->n; i++) {
        one += x[i];
        other += y[i];
    }
    return one != other ? (one < other ? 1 : -1) : *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Puts the costs side by side. */
static int arrange(struct runs *runs, struct error *err)
{
    size_t n = runs->functions.n_strings;
    runs->own = calloc(n * runs->n + 1, sizeof *runs->own);
    runs->inclusive = calloc(n * runs->n + 1, sizeof *runs->inclusive);
    runs->order = calloc(n + 1, sizeof *runs->order);
    if (!runs->own || !runs->inclusive || !runs->order)
        return error_memory(err);
    for (size_t i = 0; i < runs->n_costs; i++) {
        const struct cost *cost = &runs->costs[i];
        runs->own[cost->function * runs->n + cost->run] += cost->own;
        double *inclusive = &runs->inclusive[cost->function * runs->n + cost->run];
        *inclusive = fmax(*inclusive, cost->inclusive); /* one of this name may have called another */
    }
    for (size_t i = 0; i < n; i++)
        runs->order[i] = (uint32_t)i;
    if (n)
        qsort_r(runs->order, n, sizeof *runs->order, compare_functions, runs);
    return 0;
}

/* --- groups --- */

/* Numbers by their values, other texts behind them. */
static int compare_groups(const void *a, const void *b, void *context)
{
    const struct strtab *groups = context;
    const char *x = groups->strings[*(const uint32_t *)a], *y = groups->strings[*(const uint32_t *)b];
    char *end_x, *end_y;
    double one = strtod(x, &end_x), other = strtod(y, &end_y);
    bool is_one = *x && !*end_x, is_other = *y && !*end_y;
    if (is_one != is_other)
        return is_one ? -1 : 1;
    return is_one && one != other ? (one < other ? -1 : 1) : strcmp(x, y);
}

static int refuse_key(const struct runs *runs, const char *key, struct error *err)
{
    struct buf text = {0};
    buf_printf(&text, "nothing called '%s' is known of the runs", key);
    spelling_suggest(&text, key, (const char *const *)runs->keys.strings, runs->keys.n_strings);
    int code = text.data ? error_set(err, ERR_NOT_FOUND, "%s", text.data) : error_memory(err);
    buf_fini(&text);
    return code;
}

/* Groups the runs by a key; NULL: all are one. */
static int make_groups(struct runs *runs, const char *by, struct error *err)
{
    int64_t key = by ? strtab_find(&runs->keys, by) : -1;
    if (by && key < 0)
        return refuse_key(runs, by, err);
    for (size_t i = 0; i < runs->n; i++) {
        const char *text = by ? fact_of(&runs->all[i], key) : NULL;
        int64_t group = strtab_intern(&runs->groups, text ? text : by ? "?" : "all");
        if (group < 0)
            return error_memory(err);
        runs->all[i].group = (uint32_t)group;
    }
    runs->group_of = calloc(runs->groups.n_strings + 1, sizeof *runs->group_of);
    runs->group_order = calloc(runs->groups.n_strings + 1, sizeof *runs->group_order);
    if (!runs->group_of || !runs->group_order)
        return error_memory(err);
    for (size_t i = 0; i < runs->n; i++) {
        struct group *group = &runs->group_of[runs->all[i].group];
        group->n++;
        group->total += runs->all[i].total;
    }
    for (size_t i = 0; i < runs->groups.n_strings; i++) {
        runs->group_order[i] = (uint32_t)i;
        runs->group_of[i].number = strtod(runs->groups.strings[i], NULL);
        runs->group_of[i].total /= (double)runs->group_of[i].n;
    }
    qsort_r(runs->group_order, runs->groups.n_strings, sizeof *runs->group_order, compare_groups, &runs->groups);
    return 0;
}

/* What values [n] of runs come to in a group; group UINT32_MAX: in all. */
struct statistics {
    size_t n;
    double mean, least, most, deviation;
};

static struct statistics statistics_of(const struct runs *runs, const double *values, uint32_t group)
{
    struct statistics found = {.least = INFINITY, .most = -INFINITY};
    double squares = 0;
    for (size_t i = 0; i < runs->n; i++) {
        if (runs->all[i].group != group)
            continue;
        found.n++;
        found.mean += values[i];
        found.least = fmin(found.least, values[i]);
        found.most = fmax(found.most, values[i]);
    }
    found.mean /= found.n ? (double)found.n : 1;
    for (size_t i = 0; i < runs->n; i++)
        if (runs->all[i].group == group)
            squares += (values[i] - found.mean) * (values[i] - found.mean);
    found.deviation = sqrt(squares / (found.n ? (double)found.n : 1));
    return found;
}

/* --- the reports --- */

/* The two cells of what a function is called. */
static void put_function(const struct runs *runs, uint32_t function, struct table *rows)
{
    const char *name = runs->functions.strings[function], *end = strchr(name, '\n');
    struct buf text = {0};
    buf_append(&text, name, (size_t)(end - name));
    table_put_made(rows, &text);
    table_put_text(rows, end + 1);
}

static const struct column unit_head[] = {{"unit", "unit", CELL_TEXT}};

/* What costs are counted in, as the name of the metric says it: "usec" of "CPUTIME (usec)". */
static void put_unit(const struct runs *runs, struct table *head)
{
    struct buf text = {0};
    const char *at = strrchr(runs->metric, '('), *end = at ? strchr(at, ')') : NULL;
    if (!end) {
        table_put_absent(head);
        return;
    }
    buf_append(&text, at + 1, (size_t)(end - at - 1));
    table_put_made(head, &text);
}

/* Whether the runs differ in a key. */
static bool differs(const struct runs *runs, int64_t key)
{
    const char *first = fact_of(&runs->all[0], key);
    for (size_t i = 1; i < runs->n; i++) {
        const char *text = fact_of(&runs->all[i], key);
        if (!text != !first || (text && strcmp(text, first) != 0))
            return true;
    }
    return false;
}

/* A row for each run: what it was, as far as they differ, and what it cost. */
static int list_runs(const struct runs *runs, struct answer *answer, struct error *err)
{
    (void)err;
    column_list_make(&answer->columns, "run", "run", CELL_TEXT);
    for (size_t k = 0; k < runs->keys.n_strings; k++)
        if (runs->request->with_unused || differs(runs, (int64_t)k))
            column_list_make(&answer->columns, runs->keys.strings[k], runs->keys.strings[k], CELL_TEXT);
    column_list_make(&answer->columns, "total", "total", CELL_NUMBER);
    answer_begin(answer, "runs", NULL, 0);
    put_unit(runs, answer_set_head(answer, COLUMNS(unit_head)));
    for (size_t i = 0; i < runs->n; i++) {
        table_put_text(&answer->rows, runs->all[i].path);
        for (size_t k = 0; k < runs->keys.n_strings; k++)
            if (runs->request->with_unused || differs(runs, (int64_t)k))
                table_put_text(&answer->rows, fact_of(&runs->all[i], (int64_t)k));
        table_put_number(&answer->rows, runs->all[i].total);
    }
    return 0;
}

/* Whether a row with a share of the total is shown, which counts those that are. */
static bool is_shown(const struct runs *runs, double share, size_t *n_shown, struct table *rows)
{
    const struct request *request = runs->request;
    if (request->has_least && share < request->least)
        return false;
    if (request->top && *n_shown >= request->top) {
        rows->n_more++;
        return false;
    }
    ++*n_shown;
    return true;
}

static const struct column statistics_columns[] = {
    {"group", "group", CELL_TEXT},
    {"function", "function", CELL_TEXT},
    {"file", "file", CELL_TEXT},
    {"runs", "runs", CELL_COUNT},
    {"mean", "mean", CELL_NUMBER},
    {"share", "share", CELL_PERCENT},
    {"min", "min", CELL_NUMBER},
    {"max", "max", CELL_NUMBER},
    {"deviation", "deviation", CELL_NUMBER},
    {"inclusive", "inclusive", CELL_NUMBER},
};

/* What each function costs in the runs of each group. */
static int list_functions(const struct runs *runs, struct answer *answer, struct error *err)
{
    (void)err;
    answer_begin(answer, "functions", COLUMNS(statistics_columns));
    put_unit(runs, answer_set_head(answer, COLUMNS(unit_head)));
    for (size_t g = 0; g < runs->groups.n_strings; g++) {
        uint32_t group = runs->group_order[g];
        double total = runs->group_of[group].total;
        size_t n_shown = 0;
        for (size_t i = 0; i < runs->functions.n_strings; i++) {
            uint32_t function = runs->order[i];
            const struct statistics of = statistics_of(runs, &runs->own[function * runs->n], group);
            double inclusive = statistics_of(runs, &runs->inclusive[function * runs->n], group).mean;
            if ((of.mean == 0 && inclusive == 0) ||
                !is_shown(runs, percent_of(fmax(of.mean, inclusive), total), &n_shown, &answer->rows))
                continue;
            table_put_text(&answer->rows, runs->groups.strings[group]);
            put_function(runs, function, &answer->rows);
            table_put_count(&answer->rows, (int64_t)of.n);
            table_put_number(&answer->rows, of.mean);
            table_put_number(&answer->rows, percent_of(of.mean, total));
            table_put_number(&answer->rows, of.least);
            table_put_number(&answer->rows, of.most);
            table_put_number(&answer->rows, of.deviation);
            table_put_number(&answer->rows, inclusive);
        }
    }
    return 0;
}

static const struct column scaling_columns[] = {
    {"function", "function", CELL_TEXT},
    {"file", "file", CELL_TEXT},
    {"workers", "workers", CELL_NUMBER},
    {"runs", "runs", CELL_COUNT},
    {"cost", "cost", CELL_NUMBER},
    {"share", "share", CELL_PERCENT},
    {"time", "time", CELL_NUMBER},
    {"speed_up", "speed-up", CELL_NUMBER},
    {"efficiency", "efficiency", CELL_PERCENT},
};

/* The rows of something: costs [groups] in the order of the groups. has_time: they are times. Else they are sums over
 * all workers, which say whether the work has grown, but not which of them did it: no time and no speed-up. */
static void put_scaling(const struct runs *runs, int64_t function, const double *costs, bool has_time,
                        struct table *rows)
{
    double first = runs->group_of[runs->group_order[0]].number;
    for (size_t g = 0; g < runs->groups.n_strings; g++) {
        const struct group *group = &runs->group_of[runs->group_order[g]];
        double workers = group->number;
        double speed_up = has_time ? costs[0] / costs[g] : (double)NAN;
        double efficiency = has_time ? 100 * speed_up * first / workers : 100 * costs[0] / costs[g];
        bool is_known = costs[0] > 0 && costs[g] > 0;
        if (function >= 0) {
            put_function(runs, (uint32_t)function, rows);
        } else {
            table_put_borrowed(rows, has_time ? "<elapsed>" : "<all>");
            table_put_absent(rows);
        }
        table_put_number(rows, workers);
        table_put_count(rows, (int64_t)group->n);
        table_put_number(rows, has_time ? (double)NAN : costs[g]);
        table_put_number(rows, has_time ? (double)NAN : percent_of(costs[g], group->total));
        table_put_number(rows, has_time ? costs[g] : (double)NAN);
        table_put_number(rows, is_known ? round(1000 * speed_up) / 1000 : (double)NAN);
        table_put_number(rows, is_known ? efficiency : (double)NAN);
    }
}

/* How long the runs of each group took, [groups]; false: of one it is not known. */
static bool find_elapsed(const struct runs *runs, double *elapsed)
{
    int64_t key = strtab_find(&runs->keys, "elapsed_s");
    bool ok = true;
    for (size_t g = 0; g < runs->groups.n_strings; g++) {
        size_t n = 0;
        elapsed[g] = 0;
        for (size_t i = 0; ok && i < runs->n; i++) {
            const char *text = runs->all[i].group == runs->group_order[g] ? fact_of(&runs->all[i], key) : "";
            ok = text != NULL;
            elapsed[g] += text ? strtod(text, NULL) : 0;
            n += runs->all[i].group == runs->group_order[g];
        }
        elapsed[g] /= n ? (double)n : 1;
    }
    return ok && key >= 0;
}

/* How costs grow with the number of workers: the first group is what the others are compared with. */
static int list_scaling(const struct runs *runs, struct answer *answer, struct error *err)
{
    size_t n = runs->groups.n_strings, n_shown = 0;
    double *costs = calloc(n + 1, sizeof *costs);
    if (!costs)
        return error_memory(err);
    for (size_t g = 0; g < n; g++)
        if (!(runs->group_of[g].number > 0)) {
            free(costs);
            return error_set(err, ERR_UNSUPPORTED, "scaling needs a number of each run: one has '%s'",
                             runs->groups.strings[g]);
        }
    answer_begin(answer, "scaling", COLUMNS(scaling_columns));
    put_unit(runs, answer_set_head(answer, COLUMNS(unit_head)));
    if (find_elapsed(runs, costs))
        put_scaling(runs, -1, costs, true, &answer->rows);
    for (size_t g = 0; g < n; g++)
        costs[g] = runs->group_of[runs->group_order[g]].total;
    put_scaling(runs, -1, costs, false, &answer->rows);
    for (size_t i = 0; i < runs->functions.n_strings; i++) {
        const double *own = &runs->own[runs->order[i] * runs->n];
        double most = 0;
        for (size_t g = 0; g < n; g++) {
            costs[g] = statistics_of(runs, own, runs->group_order[g]).mean;
            most = fmax(most, percent_of(costs[g], runs->group_of[runs->group_order[g]].total));
        }
        if (most > 0 && is_shown(runs, most, &n_shown, &answer->rows))
            put_scaling(runs, runs->order[i], costs, false, &answer->rows);
    }
    free(costs);
    return 0;
}

static const struct column regression_columns[] = {
    {"run", "run", CELL_TEXT},
    {"function", "function", CELL_TEXT},
    {"file", "file", CELL_TEXT},
    {"before", "before", CELL_NUMBER},
    {"after", "after", CELL_NUMBER},
    {"change", "change", CELL_NUMBER},
    {"percent", "percent", CELL_PERCENT},
    {"noise", "noise", CELL_NUMBER},
};
static const struct column regression_head[] = {
    {"base", "base", CELL_TEXT}, {"total_before", "total-before", CELL_NUMBER}, {"unit", "unit", CELL_TEXT}};

/* The run that others are compared with, by its path or the end of it; the first one for NULL. SIZE_MAX: there is none
 * of that name. */
static size_t find_base(const struct runs *runs)
{
    const char *name = runs->request->subject;
    size_t i = 0;
    while (name && i < runs->n && strcmp(runs->all[i].path, name) != 0 &&
           strcmp(path_last(runs->all[i].path), name) != 0)
        i++;
    return i < runs->n ? i : SIZE_MAX;
}

struct change {
    uint32_t run, function;
    double before, after, noise; /* NAN: no run was made twice */
};

/* How far apart a function's costs are in runs that are alike: those of one group, that of either run. NAN: each is
 * alone there, or nobody said what makes runs alike. */
static double noise_of(const struct runs *runs, const double *own, size_t one, size_t other)
{
    double noise = NAN;
    const size_t both[] = {one, other};
    for (size_t i = 0; i < 2 && runs->request->by; i++) {
        const struct statistics of = statistics_of(runs, own, runs->all[both[i]].group);
        if (of.n > 1)
            noise = isnan(noise) ? of.most - of.least : fmax(noise, of.most - of.least);
    }
    return noise;
}

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    double one = fabs(x->after - x->before), other = fabs(y->after - y->before);
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return one != other ? (one < other ? 1 : -1) : x->function < y->function ? -1 : x->function > y->function;
}

/* What has become more or less than in one run, by at least so much of all that it cost. */
static int list_regression(const struct runs *runs, struct answer *answer, struct error *err)
{
    size_t base = find_base(runs), n = 0, n_shown = 0;
    double threshold = runs->request->has_least ? runs->request->least : THRESHOLD;
    if (base == SIZE_MAX)
        return error_set(err, ERR_NOT_FOUND, "no input is called '%s'", runs->request->subject);
    double total = runs->all[base].total;
    struct change *changes = calloc(runs->functions.n_strings * runs->n + 1, sizeof *changes);
    if (!changes)
        return error_memory(err);
    for (uint32_t run = 0; run < runs->n; run++)
        for (uint32_t i = 0; run != base && i < runs->functions.n_strings; i++) {
            const double *own = &runs->own[i * runs->n];
            double change = fabs(own[run] - own[base]), noise = noise_of(runs, own, base, run);
            if (change > 0 && percent_of(change, total) >= threshold &&
                !(runs->request->beyond_noise && change <= noise))
                changes[n++] = (struct change){run, i, own[base], own[run], noise};
        }
    qsort(changes, n, sizeof *changes, compare_changes);
    answer_begin(answer, "regression", COLUMNS(regression_columns));
    struct table *head = answer_set_head(answer, COLUMNS(regression_head));
    table_put_text(head, runs->all[base].path);
    table_put_number(head, total);
    put_unit(runs, head);
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &changes[i];
        n_shown = i && changes[i - 1].run == change->run ? n_shown : 0;
        if (runs->request->top && n_shown++ >= runs->request->top) {
            answer->rows.n_more++;
            continue;
        }
        table_put_text(&answer->rows, runs->all[change->run].path);
        put_function(runs, change->function, &answer->rows);
        table_put_number(&answer->rows, change->before);
        table_put_number(&answer->rows, change->after);
        table_put_number(&answer->rows, change->after - change->before);
        table_put_number(&answer->rows, total > 0 ? 100 * (change->after - change->before) / total : (double)NAN);
        table_put_number(&answer->rows, change->noise);
    }
    free(changes);
    return 0;
}

/* --- the list --- */

static const struct {
    const char *name, *summary, *by;
    int (*make)(const struct runs *runs, struct answer *answer, struct error *err);
} kinds[] = {
    {"list", "what the runs were, as far as they differ, and what they cost", NULL, list_runs},
    {"functions", "what each function costs over the runs, or over those of a group", NULL, list_functions},
    {"scaling", "how costs change with the number of threads, or another key", "threads", list_scaling},
    {"regression", "what has become more or less than in the first run, or another one", NULL, list_regression},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

const char *session_runs_report(size_t i)
{
    return i < N_KINDS ? kinds[i].name : NULL;
}

const char *session_runs_summary(size_t i)
{
    return i < N_KINDS ? kinds[i].summary : NULL;
}

static void runs_fini(struct runs *runs)
{
    for (size_t i = 0; runs->all && i < runs->n; i++) {
        for (size_t k = 0; k < runs->all[i].n_facts; k++)
            free(runs->all[i].facts[k].text);
        free(runs->all[i].facts);
    }
    free(runs->all);
    strtab_fini(&runs->keys);
    strtab_fini(&runs->functions);
    strtab_fini(&runs->groups);
    free(runs->group_of);
    free(runs->group_order);
    free(runs->costs);
    free(runs->own);
    free(runs->inclusive);
    free(runs->order);
    free(runs->metric);
}

static int read_runs(struct runs *runs, const char *const *paths, size_t n, struct error *err)
{
    runs->all = calloc(n + 1, sizeof *runs->all);
    if (!runs->all)
        return error_memory(err);
    runs->n = n;
    for (size_t i = 0; i < n; i++)
        runs->all[i].path = paths[i];
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < n; i++)
        code = read_run(runs, i, err);
    if (code == 0)
        code = merge_functions(runs, err);
    return code ? code : arrange(runs, err);
}

int session_ask_runs(const char *const *paths, size_t n_paths, const struct request *request, struct answer **answer,
                     struct error *err)
{
    struct request known = {0};
    size_t kind = 0;
    memcpy(&known, request, request->size < sizeof known ? request->size : sizeof known);
    struct runs runs = {.request = &known};
    *answer = NULL;
    while (kind < N_KINDS && known.report && strcmp(kinds[kind].name, known.report) != 0)
        kind++;
    if (kind == N_KINDS || n_paths == 0)
        return error_set(err, ERR_USAGE, kind == N_KINDS ? "there is no report '%s' of runs" : "there are no runs%.0s",
                         known.report ? known.report : "");
    if (known.has_least && !(known.least >= 0 && known.least <= 100))
        return error_set(err, ERR_USAGE, "--min and --threshold take a percentage, from 0 to 100");
    int code = read_runs(&runs, paths, n_paths, err);
    if (code == 0)
        code = make_groups(&runs, known.by ? known.by : kinds[kind].by, err);
    struct answer *made = code == 0 ? calloc(1, sizeof *made) : NULL;
    if (code == 0 && !made)
        code = error_memory(err);
    if (code == 0) { /* the metric is kept beside the titles that were made */
        int64_t metric = strtab_intern(&made->columns.words, runs.metric);
        made->metric = metric < 0 ? NULL : made->columns.words.strings[metric];
        code = metric < 0 ? error_memory(err) : kinds[kind].make(&runs, made, err);
    }
    if (code == 0 && (made->rows.failed || made->head.failed))
        code = error_memory(err);
    if (code == 0)
        *answer = made;
    else
        answer_free(made);
    runs_fini(&runs);
    return code;
}
