/* SPDX-License-Identifier: BSD-3-Clause */
/* Which advice of a database can be tried without the source (src/trial), and where in the program: the paths of the
 * allocations, as short as they can be without being another variable's, or the address of a static variable. See
 * advice.h. */
#include "export/advice/advice-try.h"
#include "export/advice/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database/database.h"
#include "export/vars-table.h"
#include "trial/trial.h"

#define POOL_BYTES 4096 /* larger blocks gain nothing from lying next to each other */
#define WISHES_MOST 8   /* that are taken from the advice: each takes many runs */

/* What can be done without the source for a rule. */
static const struct {
    const char *rule, *action;
} tries[] = {
    {"huge-pages", "huge-pages"},
    {"page-touches", "huge-pages"},
    {"page-faults", "huge-pages"},
    {"page-faults", "prefault"},
    {"interleave", "interleave"},
    {"bind", "bind-to-users"},
    {"first-touch", "bind-to-users"},
    {"parallel-first-touch", "bind-to-users"},
    {"parallel-first-touch", "first-touch-spread"},
    {"pad", "pad"},
    {"shared-lines", "pad"},
    {"small-blocks", "pool"},
    {"chain", "pool"},
};

/* --- where blocks come from --- */

/* Return addresses of an allocation, innermost first. */
struct site_path {
    uint32_t variable; /* of the report */
    bool is_mmap;
    unsigned n;
    uint64_t vaddrs[TRIAL_FRAMES_MAX];
    uint32_t modules[TRIAL_FRAMES_MAX];
};

struct site_paths {
    struct site_path *items; /* [n] */
    size_t n, capacity;
};

/* The calls above a variable's scope; n 0: none is known. */
static struct site_path path_above(const struct model *model, uint32_t scope)
{
    struct site_path path = {0};
    if (!model->scopes[scope].vaddr) /* an older database */
        return path;
    for (uint32_t at = model->scopes[scope].parent; at && path.n < TRIAL_FRAMES_MAX; at = model->scopes[at].parent) {
        const struct scope *call = &model->scopes[at];
        uint32_t loop;
        if (call->role == ROLE_HEAP)
            break;
        if (call->kind != SCOPE_CALL)
            continue;
        uint32_t function = code_function_around(model, at, &loop);
        uint32_t module = function ? model->scopes[function].module : 0;
        if (!call->vaddr || *model_text(model, module) != '/')
            break;
        path.vaddrs[path.n] = path.n ? call->vaddr + 1 : model->scopes[scope].vaddr;
        path.modules[path.n++] = module;
    }
    return path;
}

/* All paths of all blocks. False when out of memory. */
static bool list_paths(const struct report *report, struct site_paths *paths)
{
    const struct model *model = report->model;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        for (size_t k = 0; k < variable->n_scopes && model_is_block(variable); k++) {
            struct site_path path = path_above(model, variable->scopes[k]);
            if (!path.n)
                continue;
            if (!vec_reserve(&paths->items, &paths->capacity, paths->n + 1, sizeof *paths->items))
                return false;
            path.variable = report->variable_of[i];
            path.is_mmap = variable->class == CLASS_MMAP;
            paths->items[paths->n++] = path;
        }
    }
    return true;
}

static unsigned n_common(const struct site_path *a, const struct site_path *b)
{
    unsigned n = 0;
    while (n < a->n && n < b->n && a->vaddrs[n] == b->vaddrs[n] && a->modules[n] == b->modules[n])
        n++;
    return n;
}

/* Appends a line for each path of a variable; the frames are as few as tell it from the paths of others. */
static void put_paths(const struct model *model, const struct site_paths *paths, uint32_t variable, struct buf *out)
{
    for (size_t i = 0; i < paths->n; i++) {
        const struct site_path *path = &paths->items[i];
        unsigned n_needed = 1;
        if (path->variable != variable)
            continue;
        for (size_t k = 0; k < paths->n; k++) {
            unsigned n = n_common(path, &paths->items[k]) + 1;
            if (paths->items[k].variable != variable && n > n_needed)
                n_needed = n;
        }
        buf_printf(out, path->is_mmap ? "mmap" : "heap");
        for (unsigned n = 0; n < n_needed && n < path->n; n++)
            buf_printf(out, "\t%llx@%s", (unsigned long long)path->vaddrs[n], model_text(model, path->modules[n]));
        buf_printf(out, "\n");
    }
}

/* --- static variables --- */

/* Appends a line for each address of a static variable. */
static void put_static(const struct model *model, const struct variable *variable, struct buf *out)
{
    const char *module = model_text(model, variable->module);
    for (size_t i = 0; i < variable->n_scopes && *module == '/'; i++)
        if (model->scopes[variable->scopes[i]].vaddr)
            buf_printf(out, "static\t%llu\t%llx@%s\n", (unsigned long long)variable->size_bytes,
                       (unsigned long long)model->scopes[variable->scopes[i]].vaddr, module);
}

/* --- who uses which part --- */

#define PARTS 32      /* of a block, that are told apart */
#define NODES_MOST 64 /* of a machine */

/* The node of most of a thread's samples on a variable of the model; PLACE_UNKNOWN. */
static uint32_t node_of_thread(const struct model *model, uint32_t variable, uint32_t thread)
{
    uint64_t on[NODES_MOST] = {0};
    uint32_t most = 0;
    for (size_t i = 0; i < model->n_cpu_counts; i++) {
        const struct cpu_count *count = &model->cpu_counts[i];
        uint32_t node = count->variable == variable && count->thread == thread
                            ? advice_node_of_cpu(model, thread, count->cpu)
                            : PLACE_UNKNOWN;
        if (node < NODES_MOST)
            on[node] += count->n_samples;
    }
    for (uint32_t i = 1; i < NODES_MOST; i++)
        most = on[i] > on[most] ? i : most;
    return on[most] ? most : PLACE_UNKNOWN;
}

/* Adds the samples of a thread to its node, by the part of a block of n_bytes that they lie in. */
static void add_samples(const struct reach_sum *sum, uint64_t n_bytes, uint32_t node, double votes[PARTS][NODES_MOST])
{
    for (size_t i = 0; i < REACH_BINS; i++) {
        double offset = ldexp((double)i + 0.5, (int)sum->shift);
        size_t part = (size_t)(offset / (double)n_bytes * PARTS);
        votes[part < PARTS ? part : PARTS - 1][node] += (double)sum->bins[i];
    }
}

/* Appends the argument of bind-to-users; "-" when nothing is known of it. */
static void put_users(const struct report *report, const struct variable *variable, struct buf *out)
{
    const struct model *model = report->model;
    uint64_t n_bytes = variable->max_block_bytes ? variable->max_block_bytes : variable->size_bytes;
    double votes[PARTS][NODES_MOST] = {{0}};
    uint32_t users[PARTS], last = PLACE_UNKNOWN;
    for (size_t i = 0; n_bytes && i < model->n_reaches; i++) {
        const struct reach_row *row = &model->reaches[i];
        bool is_of = report->variable_of[row->variable] == (uint32_t)(variable - report->variables);
        uint32_t node = is_of ? node_of_thread(model, row->variable, row->thread) : PLACE_UNKNOWN;
        if (node != PLACE_UNKNOWN)
            add_samples(&row->sum, n_bytes, node, votes);
    }
    for (size_t i = 0; i < PARTS; i++) {
        uint32_t most = 0;
        for (uint32_t node = 1; node < NODES_MOST; node++)
            most = votes[i][node] > votes[i][most] ? node : most;
        users[i] = votes[i][most] > 0 ? most : last; /* nobody was seen there */
        last = users[i];
    }
    for (size_t i = PARTS - 1; i-- > 0;)
        users[i] = users[i] == PLACE_UNKNOWN ? users[i + 1] : users[i];
    for (size_t i = 0, from = 0; i < PARTS && users[0] != PLACE_UNKNOWN; i++)
        if (i + 1 == PARTS || users[i + 1] != users[i]) {
            buf_printf(out, "%s%zu-%zu:%u", from ? "," : "", from * 1000 / PARTS, (i + 1) * 1000 / PARTS, users[i]);
            from = i + 1;
        }
    if (!out->len_bytes)
        buf_printf(out, "-");
}

/* --- wishes --- */

struct wishes {
    struct trial_wish *items; /* [n] */
    size_t n, capacity;
    const struct report *report;
    struct site_paths paths;
    bool failed;
};

static char *copy(struct wishes *wishes, const char *text)
{
    char *made = strdup(text ? text : "");
    wishes->failed |= !made;
    return made;
}

static void add(struct wishes *wishes, const char *action, const struct variable *variable, const char *name,
                const char *site, double predicted)
{
    const struct model *model = wishes->report->model;
    struct buf places = {0}, argument = {0};
    if (variable->class == CLASS_STATIC && trial_is_for_statics(action))
        put_static(model, variable, &places);
    else if (model_is_block(variable))
        put_paths(model, &wishes->paths, (uint32_t)(variable - wishes->report->variables), &places);
    for (size_t i = 0; i < wishes->n; i++) {
        struct trial_wish *wish = &wishes->items[i];
        if (strcmp(wish->action, action) != 0 || strcmp(wish->variable, name) != 0 || !places.data ||
            strcmp(wish->places, places.data) != 0)
            continue;
        wish->predicted = fmax(wish->predicted, predicted); /* two rules say the same of it */
        if (!*wish->site && site) {
            free(wish->site);
            wish->site = copy(wishes, site);
        }
        buf_fini(&places);
        return;
    }
    if (!vec_reserve(&wishes->items, &wishes->capacity, wishes->n + 1, sizeof *wishes->items)) {
        wishes->failed = true;
        buf_fini(&places);
        return;
    }
    if (strcmp(action, "bind-to-users") == 0)
        put_users(wishes->report, variable, &argument);
    if (argument.data && strcmp(argument.data, "-") == 0)
        buf_fini(&places); /* nobody knows where it should be */
    wishes->failed |= places.failed || argument.failed;
    wishes->items[wishes->n++] = (struct trial_wish){.action = copy(wishes, action),
                                                     .argument = copy(wishes, argument.data ? argument.data : "-"),
                                                     .variable = copy(wishes, name),
                                                     .site = copy(wishes, site),
                                                     .places = copy(wishes, places.data),
                                                     .predicted = predicted};
    buf_fini(&argument);
    buf_fini(&places);
}

static bool is_tried_by(const char *rule, const char *action)
{
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (strcmp(tries[i].rule, rule) == 0 && strcmp(tries[i].action, action) == 0)
            return true;
    return false;
}

const struct trial_result *advice_tried(const struct trial_results *results, const struct advice *advice)
{
    const struct trial_result *best = NULL;
    for (size_t i = 0; i < results->n; i++) {
        const struct trial_result *result = &results->items[i];
        bool is_about = strcmp(result->variable, advice->name) == 0 && strcmp(result->site, advice->site) == 0;
        bool is_of_kernel = advice->variable && strcmp(advice->class, "kernel") == 0;
        bool is_better = !best || result->verdict < best->verdict ||
                         (result->verdict == best->verdict && result->ratio < best->ratio);
        if ((is_about || is_of_kernel) && is_tried_by(advice->rule, result->action) && is_better)
            best = result;
    }
    return best;
}

/* Whether an action can do anything to a variable. */
static bool is_fit(const char *action, const struct variable *variable)
{
    bool is_pool = strcmp(action, "pool") == 0;
    if (variable->class == CLASS_STATIC)
        return trial_is_for_statics(action);
    if (variable->class != CLASS_HEAP && variable->class != CLASS_MMAP)
        return false;
    return !is_pool || !variable->n_blocks || variable->size_bytes / variable->n_blocks < POOL_BYTES;
}

/* What the advice says that can be tried, what may gain most first. */
static void wish_for_advice(struct wishes *wishes, const struct advices *advices)
{
    for (size_t i = 0; i < advices->n_items; i++)
        for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
            const struct advice *advice = &advices->items[i];
            const struct variable *variable = advice->variable;
            bool is_kernel = strcmp(advice->class, "kernel") == 0; /* the advice is about the kernel's time there */
            if (!variable || strcmp(advice->rule, tries[k].rule) != 0 || wishes->n >= WISHES_MOST ||
                !is_fit(tries[k].action, variable))
                continue;
            const char *name = is_kernel ? model_variable_name(wishes->report->model, variable) : advice->name;
            add(wishes, tries[k].action, variable, name, advice->site, advice->gain);
        }
}

/* What the user asks for: ACTION:VARIABLE. Of several variables of a name, the one with most of the samples.
 * err: ERR_NOT_FOUND, ERR_USAGE */
static int wish_for(struct wishes *wishes, const struct advices *advices, const char *asked, struct error *err)
{
    const char *name = strchr(asked, ':') + 1;
    char action[32];
    (void)snprintf(action, sizeof action, "%.*s", (int)(name - 1 - asked < 31 ? name - 1 - asked : 31), asked);
    if (!trial_is_action(action))
        return error_set(err, ERR_USAGE, "--try: '%s' is no action: %s", action, TRIAL_ACTIONS);
    for (size_t i = 0; i < advices->report->n_rows; i++) {
        const struct report_row *row = &advices->report->rows[i];
        const struct variable *variable = row->part ? NULL : row->variable;
        if (!variable || strcmp(row->name, name) != 0)
            continue;
        double predicted = (double)NAN;
        for (size_t k = 0; k < advices->n_items; k++)
            if (advices->items[k].variable == row->variable && is_tried_by(advices->items[k].rule, action))
                predicted = advices->items[k].gain;
        add(wishes, action, variable, row->name, row->site, predicted);
        return 0;
    }
    for (size_t i = 0; i < advices->report->n_variables; i++) { /* no sample fell on it */
        const struct variable *variable = &advices->report->variables[i];
        if (strcmp(model_variable_name(advices->report->model, variable), name) != 0)
            continue;
        add(wishes, action, variable, name, "", (double)NAN);
        return 0;
    }
    return error_set(err, ERR_NOT_FOUND, "--try: the database has no variable '%s' (hpcquery vars --top 0 lists them)",
                     name);
}

int advice_wishes(const char *database, const char *const *asked, size_t n_asked, struct trial_wish **made, size_t *n,
                  struct error *err)
{
    struct model model;
    struct advices advices;
    int code = model_init(&model, err);
    *n = 0;
    *made = NULL;
    if (code != 0)
        return code;
    code = database_read(database, &model, err);
    int64_t metric = code == 0 ? model_choose_metric(&model, NULL) : -1;
    if (code == 0 && metric < 0)
        code = error_set(err, ERR_NOT_FOUND, "%s: has no metric of data", database);
    const struct export_job job = {
        .model = &model, .directory = database, .metric = (size_t)metric, .columns = 80, .least = -1};
    if (code == 0)
        code = advices_make(&job, &advices, err);
    if (code != 0) {
        model_fini(&model);
        return code;
    }
    struct wishes wishes = {.report = advices.report};
    wishes.failed = !list_paths(advices.report, &wishes.paths);
    for (size_t i = 0; code == 0 && i < n_asked; i++)
        code = wish_for(&wishes, &advices, asked[i], err);
    if (!n_asked)
        wish_for_advice(&wishes, &advices);
    code = code == 0 && wishes.failed ? error_memory(err) : code;
    *made = wishes.items;
    *n = wishes.n;
    free(wishes.paths.items);
    advices_fini(&advices);
    model_fini(&model);
    return code;
}
