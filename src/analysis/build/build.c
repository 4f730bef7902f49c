/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass over the merged tree, parents first. */
#include "analysis/build/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/placeholders.h"
#include "analysis/load/load.h"
#include "analysis/metrics.h"
#include "base/path.h"

/* The role of a function in which threads begin; ROLE_NONE for other functions. */
static enum scope_role start_role(const char *name)
{
    static const char *const program[] = {"_start", "__libc_start_main", "__libc_start_main_impl",
                                          "__libc_start_call_main", "monitor_main"};
    static const char *const thread[] = {
        "clone", "clone3", "__clone", "__clone3", "__clone_internal", "start_thread", "monitor_begin_thread"};
    for (size_t i = 0; i < sizeof program / sizeof *program; i++)
        if (strcmp(name, program[i]) == 0)
            return ROLE_PROGRAM;
    for (size_t i = 0; i < sizeof thread / sizeof *thread; i++)
        if (strcmp(name, thread[i]) == 0)
            return ROLE_THREAD;
    return ROLE_NONE;
}

static bool in_c_library(const struct build *build, uint32_t module)
{
    const char *base = path_last(symbolizer_path(build->symbolizer, module));
    return strncmp(base, "libc.so", 7) == 0 || strncmp(base, "libc-2", 6) == 0 || strncmp(base, "libpthread", 10) == 0;
}

static uint32_t add_named(struct build *build, uint32_t parent, enum scope_role role, const char *name, uint32_t module,
                          uint32_t type)
{
    struct scope scope = {.kind = SCOPE_PROC,
                          .role = (uint8_t)role,
                          .node_type = (uint16_t)type,
                          .name = model_string(build->model, name),
                          .file = model_string(build->model, "<unknown file>"),
                          .module = model_string(build->model, symbolizer_path(build->symbolizer, module))};
    return scopes_child(&build->builder, parent, &scope);
}

static uint32_t add_titled(struct build *build, uint32_t parent, enum scope_role role, uint32_t module, uint32_t type)
{
    return add_named(build, parent, role, placeholders_title(role), module, type);
}

static uint32_t add_region(struct build *build, uint32_t parent, const struct raw_node *node)
{
    const struct code_frame *frame;
    char title[300];
    (void)symbolizer_lookup(build->symbolizer, node->module, node->ip, &frame);
    (void)snprintf(title, sizeof title, "<region %.256s>", symbolizer_text(build->symbolizer, frame->function));
    return add_named(build, parent, ROLE_REGION, title, node->module, node->type);
}

/* Libraries that run functions of the program on several threads. */
static bool is_parallel_library(const struct build *build, uint32_t module)
{
    static const char *const libraries[] = {"libgomp",  "libomp.", "libomp-", "libomp5",
                                            "libiomp5", "libtbb.", "libtbb-"};
    const char *base = path_last(symbolizer_path(build->symbolizer, module));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strncmp(base, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

/* What such a library calls for its own purposes stays below it. */
static bool is_called_back(const struct build *build, const struct raw_node *node)
{
    static const char *const system[] = {"ld-",      "ld.",       "libm.",      "libm-", "libdl",
                                         "libgcc_s", "libstdc++", "linux-vdso", "[vdso"};
    const char *base = path_last(symbolizer_path(build->symbolizer, node->module));
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (strncmp(base, system[i], strlen(system[i])) == 0)
            return false;
    return node->role == ROLE_NONE && node->module && !in_c_library(build, node->module) &&
           !is_parallel_library(build, node->module) && !symbolizer_is_runtime(build->symbolizer, node->module) &&
           !symbolizer_is_kernel(build->symbolizer, node->module);
}

/* A thread of the pool of such a library stands below the call that it works for; what it runs for that call stands
 * there directly, as on the thread that made the call. Both see the library's own frames on the way differently. */
static void note_parallel(struct build *build, uint32_t index, uint32_t parent)
{
    const struct raw_node *node = &build->tree->nodes[index];
    const struct called_from *above = &build->called_from[node->parent];
    struct called_from *here = &build->called_from[index];
    if (is_parallel_library(build, node->module))
        *here = (struct called_from){above->scope ? above->scope : parent, true};
    else if (!here->scope && (build->elided[index] || symbolizer_is_runtime(build->symbolizer, node->module)))
        *here = *above;
}

/* --- the interpreter of Python --- */

/* How a node lies to the frames of Python. */
enum python_side { PYTHON_ABOVE = 1, PYTHON_BELOW = 2, PATH_OF_BLOCK = 4 };

static bool is_python(const struct build *build, uint32_t index)
{
    const struct raw_node *node = &build->tree->nodes[index];
    return node->role == ROLE_NONE && symbolizer_is_python(build->symbolizer, node->module);
}

/* The modules of interpreters, by id: a frame of Python stands above the native one that executes it. */
static uint8_t *find_interpreters(const struct build *build)
{
    const struct raw_tree *tree = build->tree;
    uint32_t n_modules = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++)
        n_modules = tree->nodes[i].module > n_modules ? tree->nodes[i].module : n_modules;
    uint8_t *is_interpreter = calloc(n_modules + 1, 1);
    for (uint32_t i = 1; is_interpreter && i < tree->n_nodes; i++)
        if (tree->nodes[i].role == ROLE_NONE && is_python(build, tree->nodes[i].parent) && !is_python(build, i) &&
            !symbolizer_is_runtime(build->symbolizer, tree->nodes[i].module))
            is_interpreter[tree->nodes[i].module] = 1;
    if (is_interpreter)
        is_interpreter[0] = 0;
    return is_interpreter;
}

/* Notes which native frames the frames of Python on their path stand for: those of the interpreter. */
static bool hide_interpreter(struct build *build)
{
    const struct raw_tree *tree = build->tree;
    build->hidden = calloc(tree->n_nodes + 1, 1);
    uint8_t *is_interpreter = build->hidden ? find_interpreters(build) : NULL;
    if (!is_interpreter)
        return false;
    for (uint32_t i = 1; i < tree->n_nodes && !build->shows_interpreter; i++)
        if (tree->nodes[i].role == ROLE_NONE && (is_python(build, i) || build->hidden[tree->nodes[i].parent]))
            build->hidden[i] = PYTHON_ABOVE;
    for (uint32_t i = (uint32_t)tree->n_nodes; i-- > 1 && !build->shows_interpreter;)
        if (tree->nodes[i].role == ROLE_NONE && (is_python(build, i) || build->hidden[i] & PYTHON_BELOW))
            build->hidden[tree->nodes[i].parent] |= PYTHON_BELOW;
    for (uint32_t i = (uint32_t)tree->n_nodes; i-- > 1;) {
        bool is_allocation = tree->nodes[i].type & HPCRUN_NODE_ALLOCATION || build->hidden[i] & PATH_OF_BLOCK;
        if (is_allocation) /* without its frames, blocks of several kinds would be one, as those of a line */
            build->hidden[tree->nodes[i].parent] |= PATH_OF_BLOCK;
        if (is_allocation || tree->nodes[i].role != ROLE_NONE || !is_interpreter[tree->nodes[i].module])
            build->hidden[i] = 0;
    }
    free(is_interpreter);
    return true;
}

/* The scope that takes the children of the node's parent. */
static uint32_t parent_scope(struct build *build, const struct raw_node *node)
{
    const struct raw_node *parent = &build->tree->nodes[node->parent];
    const struct called_from *called = &build->called_from[node->parent];
    if (called->is_parallel && called->scope && is_called_back(build, node))
        return called->scope;
    if (parent->role == ROLE_UNKNOWN && node->role == ROLE_NONE)
        return variables_add_unknown(build, parent->inner);
    if (parent->role == ROLE_VARIABLE && symbolizer_is_python(build->symbolizer, node->module))
        return build->model->scopes[parent->inner].parent; /* a longer path to other blocks */
    return parent->inner;
}

/* True when the frame is start-up code that a root placeholder stands for; *inner is that placeholder then. */
static bool elide_start(struct build *build, uint32_t index, uint32_t parent, const struct code_frame *frame,
                        uint32_t *inner)
{
    const struct raw_node *node = &build->tree->nodes[index], *above = &build->tree->nodes[node->parent];
    bool outermost = node->parent == 0 || (above->role != ROLE_NONE && above->role != ROLE_PROGRAM);
    if (!outermost && !build->elided[node->parent])
        return false;
    bool nameless = !frame->named && in_c_library(build, node->module);
    enum scope_role role = nameless ? ROLE_THREAD : start_role(symbolizer_text(build->symbolizer, frame->function));
    if (role == ROLE_NONE)
        return false;
    build->elided[index] = 1;
    *inner = outermost ? add_titled(build, parent, role, 0, 0) : parent;
    return true;
}

static uint32_t module_name(struct build *build, uint32_t module)
{
    return model_string(build->model, symbolizer_path(build->symbolizer, module));
}

/* The profiler's functions are nobody's business: what they call hangs below what called them, and samples in them are
 * those of one placeholder, without a source line. */
static uint32_t add_profiler(struct build *build, uint32_t parent)
{
    return add_titled(build, parent, ROLE_PROFILER, 0, 0);
}

/* Whether a node stands between the path to the call that made a thread and the thread's own. */
static bool is_created_thread(const struct build *build, const struct raw_node *node)
{
    const char *placeholder = symbolizer_placeholder(build->symbolizer, node->module, node->ip);
    return placeholder && strcmp(placeholder, "CREATED_THREAD") == 0;
}

/* Whether instructions of a module have scopes. Code without a file is somewhere else in each run. */
static bool keeps_instructions_of(const struct build *build, uint32_t module)
{
    return build->keeps_instructions && *symbolizer_path(build->symbolizer, module) == '/';
}

uint32_t build_add_call(struct build *build, uint32_t module, uint32_t parent, const struct code_frame *frame,
                        uint64_t vaddr)
{
    struct scope call = {.kind = SCOPE_CALL, .file = frame->file, .line = frame->line, .vaddr = vaddr};
    if (keeps_instructions_of(build, module)) {
        call.module = module_name(build, module);
        call.end_line = symbolizer_call_bytes(build->symbolizer, module, vaddr);
    }
    return scopes_child(&build->builder, parent, &call);
}

static void add_interior(struct build *build, uint32_t index, uint32_t parent)
{
    struct raw_node *node = &build->tree->nodes[index];
    const struct code_frame *frames;
    if (is_created_thread(build, node)) {
        node->inner = add_titled(build, parent, ROLE_THREAD, 0, 0);
        build->elided[index] = 1;
        build->called_from[index].scope = parent;
        return;
    }
    if (symbolizer_is_runtime(build->symbolizer, node->module)) {
        node->inner = parent;
        build->elided[index] = build->elided[node->parent];
        return;
    }
    uint64_t vaddr = node->ip ? node->ip - 1 : 0;
    size_t n = symbolizer_lookup(build->symbolizer, node->module, vaddr, &frames);
    if (n == 1 && elide_start(build, index, parent, frames, &node->inner))
        return;
    if (build->hidden[index]) {
        node->inner = parent;
        return;
    }
    uint32_t at = scopes_add_frames(&build->builder, parent, frames, n, module_name(build, node->module));
    node->inner = build_add_call(build, node->module, at, &frames[n - 1], vaddr);
}

/* The scope of a sampled address: its statement, or its instruction there if these are kept. The end of an allocation
 * path is no instruction. */
static uint32_t add_statement(struct build *build, const struct raw_node *node, uint32_t at, const struct scope *line)
{
    uint32_t statement = scopes_child(&build->builder, at, line);
    if (node->type & HPCRUN_NODE_ALLOCATION || !keeps_instructions_of(build, node->module))
        return statement;
    const struct scope instruction = {.kind = SCOPE_INSTRUCTION,
                                      .file = line->file,
                                      .line = line->line,
                                      .module = module_name(build, node->module),
                                      .vaddr = node->ip};
    symbolizer_note_build(build->symbolizer, node->module);
    return scopes_child(&build->builder, statement, &instruction);
}

/* The scope of an address in the profiler: its own work, or what a thread did at its root, such as waits in no call. */
static uint32_t add_runtime(struct build *build, const struct raw_node *node, uint32_t parent)
{
    return is_created_thread(build, node) ? add_titled(build, parent, ROLE_THREAD, 0, 0) : add_profiler(build, parent);
}

static void add_sampled(struct build *build, uint32_t index, uint32_t parent)
{
    struct raw_node *node = &build->tree->nodes[index];
    const struct code_frame *frames;
    if (symbolizer_is_runtime(build->symbolizer, node->module)) {
        struct scope line = {.kind = SCOPE_LINE, .file = model_string(build->model, "<unknown file>")};
        node->own = scopes_child(&build->builder, add_runtime(build, node, parent), &line);
        return;
    }
    /* the innermost address of an allocation path is a return address, that of a sample is not */
    uint64_t vaddr = node->type & HPCRUN_NODE_ALLOCATION && node->ip ? node->ip - 1 : node->ip;
    size_t n = symbolizer_lookup(build->symbolizer, node->module, vaddr, &frames);
    struct scope line = {.kind = SCOPE_LINE};
    uint32_t at = parent;
    if (build->hidden[index] && build->model->scopes[parent].kind == SCOPE_CALL) {
        const struct scope call = build->model->scopes[parent]; /* the line that the interpreter executes */
        at = call.parent;
        line.file = call.file;
        line.line = call.line;
        node->own = scopes_child(&build->builder, at, &line);
    } else {
        at = scopes_add_frames(&build->builder, parent, frames, n, module_name(build, node->module));
        line.file = frames[n - 1].file;
        line.line = frames[n - 1].line;
        node->own = add_statement(build, node, at, &line);
    }
    if (node->type & HPCRUN_NODE_MEMACCESS)
        for (uint32_t up = at; up; up = build->model->scopes[up].parent)
            if (build->model->scopes[up].kind == SCOPE_PROC) {
                build->model->scopes[up].node_type |= HPCRUN_NODE_MEMACCESS;
                break;
            }
}

/* Adds the statement for values of a placeholder or variable itself, such as its size. */
static void add_own_line(struct build *build, struct raw_node *node)
{
    struct scope line = {.kind = SCOPE_LINE, .file = build->model->scopes[node->inner].file};
    line.line = build->model->scopes[node->inner].line;
    node->own = scopes_child(&build->builder, node->inner, &line);
}

/* Adds the scope for a node that traces refer to: it stands for a function, mostly by its entry, not for a line. */
static void add_traced(struct build *build, uint32_t index, uint32_t parent)
{
    struct raw_node *node = &build->tree->nodes[index];
    const struct code_frame *frames;
    node->traced = node->own ? node->own : node->inner;
    if (node->traced || node->role != ROLE_NONE)
        return;
    if (symbolizer_is_runtime(build->symbolizer, node->module)) {
        node->traced = add_runtime(build, node, parent);
        return;
    }
    (void)symbolizer_lookup(build->symbolizer, node->module, node->ip, &frames);
    uint32_t at = scopes_add_frames(&build->builder, parent, frames, 1, module_name(build, node->module));
    while (at && build->model->scopes[at].kind != SCOPE_PROC)
        at = build->model->scopes[at].parent;
    node->traced = at;
}

static void add_node(struct build *build, uint32_t index)
{
    struct raw_node *node = &build->tree->nodes[index];
    uint32_t parent = parent_scope(build, node);
    node->variable = build->tree->nodes[node->parent].variable;
    if (node->role == ROLE_VARIABLE || node->role == ROLE_REASON)
        node->inner = variables_add(build, index, parent);
    else if (node->role == ROLE_REGION)
        node->inner = add_region(build, parent, node);
    else if (node->role != ROLE_NONE)
        node->inner = add_titled(build, parent, (enum scope_role)node->role, node->module, node->type);
    if (node->role != ROLE_NONE) {
        if (node->has_values)
            add_own_line(build, node);
        return;
    }
    if (node->has_children) {
        add_interior(build, index, parent);
        note_parallel(build, index, parent);
    }
    if (node->has_values)
        add_sampled(build, index, parent);
    if (node->is_traced)
        add_traced(build, index, parent);
}

static int list_scopes(const struct build *build, const uint32_t *new_of, struct build_scopes *scopes,
                       struct error *err)
{
    size_t n = build->tree->n_nodes;
    scopes->own = calloc(n + 1, sizeof *scopes->own);
    scopes->traced = calloc(n + 1, sizeof *scopes->traced);
    scopes->prior = calloc(build->prior->n_scopes + 1, sizeof *scopes->prior);
    if (!scopes->own || !scopes->traced || !scopes->prior)
        return error_memory(err);
    for (size_t i = 0; i < n; i++) {
        scopes->own[i] = new_of[build->tree->nodes[i].own];
        scopes->traced[i] = new_of[build->tree->nodes[i].traced];
    }
    memcpy(scopes->prior, new_of, build->prior->n_scopes * sizeof *new_of);
    return 0;
}

static void renumber(struct model *model, const uint32_t *new_of)
{
    for (size_t v = 0; v < model->n_variables; v++)
        for (size_t i = 0; i < model->variables[v].n_scopes; i++)
            model->variables[v].scopes[i] = new_of[model->variables[v].scopes[i]];
    for (size_t i = 0; i < model->n_field_counts; i++)
        model->field_counts[i].scope = new_of[model->field_counts[i].scope];
    model_order_field_counts(model);
}

static int compare_sides(const void *a, const void *b)
{
    const struct side_row *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Number of samples of a metric in the trees: from the fates in side files, else from the variables, else from the
 * profiles; 0 = not known. */
static double count_samples(const struct model *model, size_t m)
{
    const struct metric *metric = &model->metrics[m];
    double n = 0;
    for (size_t i = 0; i < model->n_events; i++)
        for (int fate = 0; fate < FATE_MAX && strcmp(model->events[i].metric, metric->name) == 0; fate++)
            n += fate_is_recorded(fate) ? (double)model->events[i].fates[fate] : 0;
    bool has_samples = n == 0 && model->has_samples && metric->used_by_data && !metric->hidden;
    for (size_t i = 0; has_samples && i < model->n_variables; i++)
        n += model->variables[i].samples ? (double)model->variables[i].samples[m] : 0;
    return n > 0 || metric->is_integer ? n : (double)metric->n_samples;
}

/* Sets the value of one sample to the mean of all: the period, or the mean weight. */
static void weigh_samples(struct model *model)
{
    for (size_t m = 0; m < model->n_metrics; m++) {
        struct metric *metric = &model->metrics[m];
        if (metric->period > 0)
            metric->per_sample = metric->period;
        double total = model_value(model, 0, m), n = count_samples(model, m);
        /* a few samples whose values are still being written do not change the value of one */
        if (n > 0 && total > 0 && (total / n < 0.98 * metric->per_sample || total / n > 1.02 * metric->per_sample))
            metric->per_sample = total / n;
    }
    for (size_t m = 0; m < model->n_metrics; m++)
        for (int k = 0; k < CAUSE_PARTS; k++) {
            int64_t part = cause_metrics_part(model, m, (enum cause_part)k);
            if (part >= 0)
                model->metrics[part].per_sample = model->metrics[m].per_sample;
        }
}

int build_sums(struct model *model, struct error *err)
{
    int code = model_sum(model, err);
    if (code == 0)
        weigh_samples(model);
    return code;
}

static bool apply_causes(struct build *build)
{
    uint32_t *variable_of = malloc((build->tree->n_nodes + 1) * sizeof *variable_of);
    for (uint32_t i = 0; variable_of && i < build->tree->n_nodes; i++)
        variable_of[i] = build->tree->nodes[i].variable;
    bool ok = variable_of && causes_apply(build->causes, build->model, variable_of, build->tree->n_nodes);
    free(variable_of);
    return ok;
}

int build_model(struct build *build, struct build_scopes *scopes, struct error *err)
{
    build->builder.model = build->model;
    build->elided = calloc(build->tree->n_nodes + 1, 1);
    build->called_from = calloc(build->tree->n_nodes + 1, sizeof *build->called_from);
    if (!build->elided || !build->called_from || !hide_interpreter(build) || !prior_variables(build->prior, build)) {
        free(build->elided);
        free(build->called_from);
        free(build->hidden);
        strtab_fini(&build->keys);
        return error_memory(err);
    }
    if (build->sides->n)
        qsort(build->sides->rows, build->sides->n, sizeof *build->sides->rows, compare_sides);
    accesses_sort(build->accesses);
    for (uint32_t i = 1; i < build->tree->n_nodes; i++)
        add_node(build, i);
    if (build->tree->n_nodes && build->tree->nodes[0].has_values)
        add_own_line(build, &build->tree->nodes[0]);
    variables_apply_sides(build);
    fields_apply(build);
    build->builder.failed = !apply_causes(build) || build->builder.failed;
    nests_apply(build);
    uint32_t *new_of = NULL;
    int code = build->builder.failed ? error_set(err, ERR_MEMORY, "out of memory while building the call tree") : 0;
    if (code == 0)
        code = cause_metrics_split(build, scopes->splits, err);
    if (code == 0)
        code = scopes_sort(build->model, &new_of, err);
    if (code == 0) {
        renumber(build->model, new_of);
        code = list_scopes(build, new_of, scopes, err);
    }
    free(new_of);
    free(build->elided);
    free(build->called_from);
    free(build->hidden);
    scopes_builder_fini(&build->builder);
    strtab_fini(&build->keys);
    return code;
}
