/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading an arena that may be live, half filled, or garbage: every access goes through the lengths that were published
 * when the view was made. Ordinary code. */
#include "collect/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/search.h"
#include "collect/profile.h"

static int refuse(const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "The memory of a process cannot be read: %s.", reason);
}

static int compare_chunks(const void *a, const void *b)
{
    const struct view_chunk *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void copy_chunks(struct view *view)
{
    const struct arena_chunk *table = (const void *)(view->base + view->header->chunk_table_offset);
    for (uint32_t i = 0; i < view->n_chunks; i++) {
        uint32_t used = arena_run_used(&table[i], view->n_chunks - i);
        uint16_t behind = table[i].behind;
        view->chunks[i] = (struct view_chunk){.index = i,
                                              .thread = table[i].thread,
                                              .used_bytes = behind ? 0 : used,
                                              .kind = table[i].kind,
                                              .behind = behind};
        if (view->chunks[i].used_bytes)
            view->sorted[view->n_sorted++] = view->chunks[i];
    }
    qsort(view->sorted, view->n_sorted, sizeof *view->sorted, compare_chunks);
}

static int compare_modules(const void *a, const void *b)
{
    const struct view_module *x = a, *y = b;
    return x->ref < y->ref ? -1 : x->ref > y->ref;
}

/* A file that is mapped several times may have been found by several names: readers refuse a load map with both. */
static void name_once(struct view *view, size_t i)
{
    struct view_module *module = &view->modules[i];
    for (size_t k = 0; k < i && module->inode && module->table_id; k++)
        if (view->modules[k].inode == module->inode && view->modules[k].table_id == module->table_id) {
            module->path = view->modules[k].path;
            return;
        }
}

static bool list_modules(struct view *view)
{
    size_t capacity = 0;
    struct record_walk walk = {.kind = ARENA_MODULES, .record_bytes = sizeof(struct arena_module)};
    const struct arena_module *module;
    while ((module = view_next(view, &walk))) {
        const char *path = view_string(view, module->path);
        if (!vec_reserve(&view->modules, &capacity, view->n_modules + 1, sizeof *view->modules))
            return false;
        if (path && *path)
            view->modules[view->n_modules++] = (struct view_module){.ref = walk.ref,
                                                                    .id = module->id,
                                                                    .path = path,
                                                                    .bias = module->bias,
                                                                    .table_id = module->table_id,
                                                                    .inode = module->inode};
    }
    if (view->n_modules)
        qsort(view->modules, view->n_modules, sizeof *view->modules, compare_modules);
    for (size_t i = 1; i < view->n_modules; i++)
        name_once(view, i);
    return true;
}

int view_open(struct view *view, const void *arena, size_t size_bytes, struct error *err)
{
    *view = (struct view){.base = arena, .header = arena};
    const char *fault = arena_fault(arena, size_bytes);
    if (fault)
        return refuse(fault, err);
    view->data_offset = view->header->chunk_data_offset;
    view->n_events = view->header->n_events < ARENA_EVENTS_MAX ? view->header->n_events : ARENA_EVENTS_MAX;
    view->n_chunks = arena_count_chunks(view->header, size_bytes);
    view->chunks = calloc(view->n_chunks + 1, sizeof *view->chunks);
    view->sorted = calloc(view->n_chunks + 1, sizeof *view->sorted);
    if (view->chunks && view->sorted) {
        copy_chunks(view);
        if (list_modules(view))
            return 0;
    }
    view_close(view);
    return error_set(err, ERR_MEMORY, "Out of memory for a process with %u chunks of records.", view->n_chunks);
}

void view_close(struct view *view)
{
    free(view->chunks);
    free(view->sorted);
    free(view->modules);
    view->chunks = view->sorted = NULL;
    view->modules = NULL;
}

/* Published bytes from ref to the end of its run, 0 when ref is in no run of the kind. */
static size_t bytes_at(const struct view *view, uint32_t ref, enum arena_kind kind)
{
    uint64_t offset = (uint64_t)ref * ARENA_UNIT;
    if (!ref || offset < view->data_offset)
        return 0;
    uint64_t chunk = (offset - view->data_offset) / ARENA_CHUNK_BYTES;
    if (chunk >= view->n_chunks || view->chunks[chunk].behind > chunk)
        return 0;
    uint64_t first = chunk - view->chunks[chunk].behind;
    uint64_t inside = offset - view->data_offset - first * ARENA_CHUNK_BYTES;
    if (view->chunks[first].kind != kind || inside >= view->chunks[first].used_bytes)
        return 0;
    return view->chunks[first].used_bytes - inside;
}

const void *view_record(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes)
{
    return bytes_at(view, ref, kind) >= len_bytes ? view->base + (uint64_t)ref * ARENA_UNIT : NULL;
}

uint32_t view_owner(const struct view *view, uint32_t ref, enum arena_kind kind, size_t len_bytes)
{
    if (!view_record(view, ref, kind, len_bytes))
        return 0;
    return view->chunks[((uint64_t)ref * ARENA_UNIT - view->data_offset) / ARENA_CHUNK_BYTES].thread;
}

const char *view_string(const struct view *view, uint32_t ref)
{
    size_t n_bytes = bytes_at(view, ref, ARENA_STRINGS);
    const struct arena_string *string = (const void *)(view->base + (uint64_t)ref * ARENA_UNIT);
    if (n_bytes <= sizeof *string || string->len_bytes >= n_bytes - sizeof *string)
        return NULL;
    return memchr(string->text, 0, n_bytes - sizeof *string) ? string->text : NULL;
}

const struct view_module *view_module_at(const struct view *view, uint32_t ref)
{
    const struct view_module key = {.ref = ref};
    return view->n_modules ? bsearch(&key, view->modules, view->n_modules, sizeof key, compare_modules) : NULL;
}

const struct view_module *view_module_with_id(const struct view *view, uint32_t id)
{
    for (size_t i = 0; i < view->n_modules; i++)
        if (view->modules[i].id == id)
            return &view->modules[i];
    return NULL;
}

struct chunk_search {
    const struct view *view;
    struct view_chunk key;
};

static bool is_chunk_before(const void *context, size_t i)
{
    const struct chunk_search *search = context;
    return compare_chunks(&search->view->sorted[i], &search->key) < 0;
}

/* First run of the thread and kind in the sorted table. */
static uint32_t first_chunk(const struct view *view, uint32_t thread, enum arena_kind kind)
{
    const struct chunk_search search = {view, {.thread = thread, .kind = (uint16_t)kind}};
    return (uint32_t)search_where(view->n_sorted, is_chunk_before, &search);
}

/* The run that the walk is in, the next fitting one when it has left one; NULL at the end. */
static const struct view_chunk *walk_chunk(const struct view *view, struct record_walk *walk)
{
    const struct view_chunk *table = walk->thread ? view->sorted : view->chunks;
    uint32_t n_chunks = walk->thread ? view->n_sorted : view->n_chunks;
    for (; walk->chunk < n_chunks; walk->chunk++, walk->offset = 0) {
        const struct view_chunk *chunk = &table[walk->chunk];
        bool fits = chunk->kind == walk->kind && (!walk->thread || chunk->thread == walk->thread);
        if (walk->thread && !fits)
            return NULL;
        if (fits && chunk->used_bytes - walk->offset >= walk->record_bytes)
            return chunk;
    }
    return NULL;
}

const void *view_next(const struct view *view, struct record_walk *walk)
{
    if (walk->thread && !walk->ref)
        walk->chunk = first_chunk(view, walk->thread, walk->kind);
    const struct view_chunk *chunk = walk_chunk(view, walk);
    if (!chunk)
        return NULL;
    uint64_t offset = view->data_offset + (uint64_t)chunk->index * ARENA_CHUNK_BYTES + walk->offset;
    walk->offset += (walk->record_bytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
    walk->offset = walk->offset < chunk->used_bytes ? walk->offset : chunk->used_bytes;
    walk->ref = (uint32_t)(offset / ARENA_UNIT);
    return view->base + offset;
}

bool view_hit(const struct view *view, uint32_t ref, uint32_t newer, struct arena_hit *hit)
{
    const void *record = view_record(view, ref, ARENA_HITS, sizeof *hit);
    if (!record || (newer && ref >= newer))
        return false;
    memcpy(hit, record, sizeof *hit);
    return true;
}

uint64_t view_heap_of_site(const struct view *view, uint64_t var, const struct arena_site **site)
{
    *site = view_record(view, var_key_b(var), ARENA_SITES, sizeof **site);
    uint64_t path = *site ? __atomic_load_n((const uint64_t *)&(*site)->path, __ATOMIC_ACQUIRE) : 0;
    if (var_key_kind(path) == VAR_HEAP)
        return path;
    *site = NULL;
    return var_key(VAR_UNKNOWN, 0, UNKNOWN_SMALL_BLOCK);
}

/* --- files of a bounded size --- */

/* Files of a bounded size: each thread gets a share of what its process may write, by what it recorded, and a tree that
 * is too large for it keeps the nodes that cost most; values of the others go to their callers, so that no sum changes.
 * Everything left out is counted. */

#define LOG_BYTES ((uint64_t)48 << 10)    /* at most: messages are bounded, counters are few */
#define THREAD_BYTES ((uint64_t)16 << 10) /* what the files of a thread take when it recorded next to nothing */
#define NODES_MIN 16u

/* A node, and the share of all costs that it and the nodes below it have. */
struct cost {
    uint32_t node;
    double part;
};

/* Published bytes of the thread, which its files grow with. */
static uint64_t recorded_bytes(const struct view *view, uint32_t thread_ref)
{
    uint64_t sum = THREAD_BYTES;
    size_t i = search_below(view->sorted, view->n_sorted, SEARCH_KEY(struct view_chunk, thread), thread_ref);
    for (; i < view->n_sorted && view->sorted[i].thread == thread_ref; i++)
        sum += view->sorted[i].used_bytes;
    return sum;
}

void process_bound(struct collected_process *process)
{
    uint64_t max_bytes = process->context->max_bytes;
    process->n_written_threads = process->n_threads;
    if (!max_bytes)
        return;
    process->rest_bytes = max_bytes > LOG_BYTES ? max_bytes - LOG_BYTES : 0;
    size_t n_fit = (size_t)(process->rest_bytes / THREAD_BYTES);
    if (process->n_written_threads > n_fit)
        process->n_written_threads = n_fit ? n_fit : 1;
    process->left_out.n_threads = process->n_threads - process->n_written_threads;
    for (size_t i = 0; i < process->n_written_threads; i++)
        process->rest_recorded_bytes += recorded_bytes(process->view, process->threads[i]);
}

uint64_t process_share(struct collected_process *process, uint32_t thread_ref)
{
    if (!process->context->max_bytes)
        return UINT64_MAX;
    uint64_t recorded = recorded_bytes(process->view, thread_ref);
    if (!process->rest_recorded_bytes)
        return process->rest_bytes;
    double share = (double)process->rest_bytes * ((double)recorded / (double)process->rest_recorded_bytes);
    process->rest_recorded_bytes -= recorded < process->rest_recorded_bytes ? recorded : process->rest_recorded_bytes;
    return share < (double)process->rest_bytes ? (uint64_t)share : process->rest_bytes;
}

void process_spend(struct collected_process *process, uint64_t n_bytes)
{
    process->rest_bytes -= n_bytes < process->rest_bytes ? n_bytes : process->rest_bytes;
}

/* Each node's share of the total, summed over all columns, children included; parents precede children. */
static bool add_up(const struct tree *tree, struct cost *costs)
{
    double *totals = calloc(tree->n_metrics + 1, sizeof *totals);
    if (!totals)
        return false;
    for (size_t i = 0; i < tree->n_rows * tree->n_metrics; i++)
        totals[i % tree->n_metrics] += (double)tree->values[i];
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        costs[i] = (struct cost){.node = i};
    for (uint32_t i = (uint32_t)tree->n_nodes; i-- > 0;) {
        const uint64_t *values = tree_values(tree, i);
        for (size_t m = 0; values && m < tree->n_metrics; m++)
            costs[i].part += values[m] ? (double)values[m] / totals[m] : 0;
        if (i != TREE_ROOT)
            costs[tree->nodes[i].parent].part += costs[i].part;
    }
    free(totals);
    return true;
}

static int compare_costs(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;
    if (x->part != y->part)
        return x->part > y->part ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The new index of each node: its own when it stays, else that of the caller that takes its values. */
static uint32_t *choose(const struct collected_thread *thread, size_t n_keep)
{
    const struct tree *tree = &thread->tree;
    struct cost *costs = malloc(tree->n_nodes * sizeof *costs);
    uint32_t *to = calloc(tree->n_nodes, sizeof *to);
    if (!costs || !to || !add_up(tree, costs)) {
        free(costs);
        free(to);
        return NULL;
    }
    /* Without these nodes, values of one tree would fall into the other. */
    costs[TREE_ROOT].part = costs[TREE_PARTIAL].part = 1e300;
    if (thread->data_root != TREE_NONE)
        costs[thread->data_root].part = 1e300;
    qsort(costs, tree->n_nodes, sizeof *costs, compare_costs);
    for (size_t i = 0; i < n_keep; i++)
        to[costs[i].node] = 1;
    free(costs);
    uint32_t n = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        to[i] = to[i] ? n++ : to[tree->nodes[i].parent];
    return to;
}

static bool fold_tree(struct tree *tree, const uint32_t *to)
{
    struct tree folded = {.n_metrics = tree->n_metrics};
    bool has_room = true;
    for (uint32_t i = 0; i < tree->n_nodes && has_room; i++) {
        bool is_kept = to[i] == folded.n_nodes;
        const struct profile_node *from = &tree->nodes[i];
        if (is_kept) {
            has_room = vec_reserve(&folded.nodes, &folded.cap_nodes, folded.n_nodes + 1, sizeof *folded.nodes);
            if (!has_room)
                break;
            struct profile_node *node = &folded.nodes[folded.n_nodes++];
            *node = *from;
            node->row = 0;
            node->has_child = false;
            if (i != TREE_ROOT) {
                node->parent = to[from->parent];
                folded.nodes[node->parent].has_child = true;
            }
        } else {
            folded.nodes[to[i]].type |= from->type & (HPCRUN_NODE_LEAF | HPCRUN_NODE_MEMACCESS);
            folded.nodes[to[i]].is_retained |= from->is_retained;
        }
        const uint64_t *values = tree_values(tree, i);
        for (size_t m = 0; values && m < tree->n_metrics; m++)
            tree_add(&folded, to[i], (int)m, values[m]);
    }
    folded.failed = tree->failed || folded.failed || !has_room;
    tree_fini(tree);
    *tree = folded;
    return !tree->failed;
}

/* Drops the variables whose nodes are gone; the sums of their group still contain them. */
static void fold_variables(struct collected_thread *thread, const uint32_t *to)
{
    size_t n = 0;
    for (size_t i = 0; i < thread->n_variables; i++) {
        struct collected_variable *variable = &thread->variables[i];
        uint32_t node = to[variable->row.node];
        if (thread->tree.nodes[node].variable != i + 1) {
            variable_fini(variable);
            continue;
        }
        variable->row.node = node;
        for (size_t k = 0; k < variable->row.n_touches; k++)
            variable->row.touches[k].node = to[variable->row.touches[k].node];
        for (size_t k = 0; k < variable->row.n_meetings; k++)
            variable->row.meetings[k].node = to[variable->row.meetings[k].node];
        thread->tree.nodes[node].variable = (uint32_t)n + 1;
        thread->variables[n++] = *variable;
    }
    thread->process->left_out.n_variables += thread->n_variables - n;
    thread->n_variables = n;
}

int thread_bound_tree(struct collected_thread *thread, struct events_file *log, size_t max_nodes, struct error *err)
{
    size_t n_nodes = thread->tree.n_nodes, n_keep = max_nodes > NODES_MIN ? max_nodes : NODES_MIN;
    if (n_nodes <= n_keep)
        return 0;
    uint32_t *to = choose(thread, n_keep);
    if (!to || !fold_tree(&thread->tree, to)) {
        free(to);
        return error_set(err, ERR_MEMORY, "Out of memory while the profile of a thread was made smaller.");
    }
    fold_variables(thread, to);
    if (thread->data_root != TREE_NONE)
        thread->data_root = to[thread->data_root];
    for (size_t i = 0; i < log->n_accesses; i++) {
        struct events_access *access = &log->accesses[i];
        access->node = to[access->node];
        access->variable = access->variable == TREE_NONE ? TREE_NONE : to[access->variable];
    }
    thread->process->left_out.n_nodes += n_nodes - n_keep;
    free(to);
    return 0;
}

static uint64_t n_described(const struct objects_variable *variable)
{
    uint64_t n = variable->n_blocks ? 1 : 0;
    for (size_t i = 0; i < variable->n_samples; i++)
        n += variable->samples[i].count;
    return n;
}

static int compare_described(const void *a, const void *b)
{
    uint64_t x = n_described(a), y = n_described(b);
    return x > y ? -1 : x < y;
}

bool process_bound_side(struct collected_process *process, struct objects_file *file, uint64_t *n_details)
{
    if (!file->n_variables)
        return false;
    if (!*n_details) {
        /* First the lists, whose sums stay. */
        for (size_t i = 0; i < file->n_variables; i++) {
            file->variables[i].n_cpus = file->variables[i].n_stack_offsets = file->variables[i].n_latencies = 0;
            file->variables[i].n_accesses = file->variables[i].n_homes = file->variables[i].n_touches = 0;
            file->variables[i].n_meetings = 0;
            file->variables[i].reach = NULL; /* the thread's variable has it */
        }
        *n_details = file->n_variables;
        process->left_out.n_lists += file->n_variables;
        return true;
    }
    qsort(file->variables, file->n_variables, sizeof *file->variables, compare_described);
    size_t n_keep = file->n_variables / 2;
    process->left_out.n_variables += file->n_variables - n_keep;
    file->n_variables = n_keep;
    return true;
}

/* --- names of the kernel --- */

/* Functions in a thread's tree that no file on the reader's machine can name: those of the kernel, because that machine
 * may have another kernel, or the same one at other addresses, and those that the program generated. */

struct list {
    struct objects_function *functions; /* [n] */
    size_t n, capacity;
};

/* Where the names come from. */
struct finder {
    const struct collect_context *context;
    const char *(*find)(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end);
};

static const char *find_kernel(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end)
{
    return context->kernel_function ? context->kernel_function(address, start, end) : NULL;
}

static const char *find_jit(const struct collect_context *context, uint64_t address, uint64_t *start, uint64_t *end)
{
    return context->jit_function ? context->jit_function(context->jit, address, start, end) : NULL;
}

static bool add(struct list *list, const struct finder *finder, uint64_t address)
{
    uint64_t start, end;
    const struct objects_function *last = list->n ? &list->functions[list->n - 1] : NULL;
    if (last && address >= last->start && address < last->end)
        return true;
    const char *name = finder->find(finder->context, address, &start, &end);
    if (!name)
        return true;
    if (!vec_reserve(&list->functions, &list->capacity, list->n + 1, sizeof *list->functions))
        return false;
    list->functions[list->n++] = (struct objects_function){start, end, (char *)(uintptr_t)name};
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct objects_function *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void make_unique(struct list *list)
{
    size_t n = 0;
    if (list->n)
        qsort(list->functions, list->n, sizeof *list->functions, compare);
    for (size_t i = 0; i < list->n; i++)
        if (n == 0 || list->functions[n - 1].start != list->functions[i].start)
            list->functions[n++] = list->functions[i];
    list->n = n;
}

static bool list_functions(const struct collected_thread *thread, uint16_t module, const struct finder *finder,
                           struct objects_function **functions, size_t *n_functions)
{
    struct list list = {0};
    bool is_complete = true;
    for (size_t i = 0; module && i < thread->tree.n_nodes; i++) {
        const struct profile_node *node = &thread->tree.nodes[i];
        if (node->module != module)
            continue;
        /* callers are return addresses: the call lies before */
        is_complete &= add(&list, finder, node->ip) && add(&list, finder, node->ip - 1);
    }
    make_unique(&list);
    *functions = list.functions;
    *n_functions = list.n;
    return is_complete;
}

bool thread_kernel_functions(const struct collected_thread *thread, struct objects_function **functions,
                             size_t *n_functions)
{
    const struct finder finder = {thread->process->context, find_kernel};
    return list_functions(thread, thread->kernel_module, &finder, functions, n_functions);
}

bool thread_jit_functions(const struct collected_thread *thread, struct objects_function **functions,
                          size_t *n_functions)
{
    const struct finder finder = {thread->process->context, find_jit};
    return list_functions(thread, thread->jit_module, &finder, functions, n_functions);
}

/* --- Python --- */

#define FRAMES_MAX 1024 /* that are looked through for one of Python */

static bool is_interpreter(const struct view_python *python, uint32_t module)
{
    bool is = false;
    for (size_t i = 0; i < python->n && !is; i++)
        is = python->interpreters[i] == module;
    return is;
}

void view_find_python(const struct view *view, struct view_python *python)
{
    struct record_walk walk = {.kind = ARENA_NODES, .record_bytes = sizeof(struct arena_node)};
    const struct arena_node *node, *parent;
    *python = (struct view_python){.n = 0};
    for (size_t i = 0; i < view->n_modules; i++)
        if (view->modules[i].path && strcmp(view->modules[i].path, PYTHON_MODULE) == 0)
            python->frames = view->modules[i].ref;
    while (python->frames && python->n < sizeof python->interpreters / sizeof *python->interpreters &&
           (node = view_next(view, &walk))) {
        if (!node->module || node->module == python->frames || is_interpreter(python, node->module))
            continue;
        parent = view_record(view, node->parent, ARENA_NODES, sizeof *parent);
        if (parent && parent->module == python->frames)
            python->interpreters[python->n++] = node->module;
    }
}

const struct arena_node *view_shown_node(const struct view *view, const struct view_python *python,
                                         const struct arena_node *node)
{
    const struct arena_node *up = node;
    for (int i = 0; i < FRAMES_MAX && up && is_interpreter(python, up->module); i++)
        up = view_record(view, up->parent, ARENA_NODES, sizeof *up);
    return up && up != node && up->module == python->frames ? up : node;
}
