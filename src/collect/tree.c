/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a profile while it is built: its nodes and raw sums, what samples weigh, their latencies, and how call
 * paths and samples enter the tree. Ordinary code. */
#include "collect/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

static uint64_t hash_of_node(const void *item)
{
    const struct profile_node *node = item;
    uint64_t hash = (node->ip ^ (uint64_t)node->module << 48) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29 ^ node->parent;
}

static bool is_same_node(const void *a, const void *b)
{
    const struct profile_node *x = a, *y = b;
    return x->parent == y->parent && x->module == y->module && x->ip == y->ip;
}

static const struct slots_kind nodes_by_key = {sizeof(struct profile_node), hash_of_node, is_same_node};

static uint32_t add_node(struct tree *tree, const struct profile_node *node)
{
    if (tree->n_nodes >= INT32_MAX || !slots_reserve(&tree->slots, &nodes_by_key, tree->nodes, tree->n_nodes) ||
        !vec_reserve(&tree->nodes, &tree->cap_nodes, tree->n_nodes + 1, sizeof *tree->nodes)) {
        tree->failed = true;
        return TREE_NONE;
    }
    tree->nodes[tree->n_nodes] = *node;
    slots_add(&tree->slots, &nodes_by_key, tree->nodes, tree->n_nodes);
    return (uint32_t)tree->n_nodes++;
}

void tree_init(struct tree *tree, size_t n_metrics)
{
    *tree = (struct tree){.n_metrics = n_metrics};
    (void)add_node(tree, &(struct profile_node){.parent = TREE_NONE});
    (void)tree_child(tree, TREE_ROOT, 0, 1, 0);
}

void tree_fini(struct tree *tree)
{
    free(tree->nodes);
    free(tree->values);
    slots_fini(&tree->slots);
    *tree = (struct tree){0};
}

uint32_t tree_child(struct tree *tree, uint32_t parent, uint16_t module, uint64_t ip, uint32_t type)
{
    const struct profile_node node = {.parent = parent, .module = module, .type = (uint16_t)type, .ip = ip};
    if (parent >= tree->n_nodes)
        return TREE_NONE;
    size_t found = slots_find(&tree->slots, &nodes_by_key, tree->nodes, &node);
    if (found != SLOTS_NONE) {
        tree->nodes[found].type |= (uint16_t)type;
        return (uint32_t)found;
    }
    uint32_t index = add_node(tree, &node);
    if (index != TREE_NONE)
        tree->nodes[parent].has_child = true;
    return index;
}

void tree_add(struct tree *tree, uint32_t node, int metric, uint64_t value)
{
    if (node >= tree->n_nodes || metric < 0 || !value)
        return;
    if (!tree->nodes[node].row) {
        size_t n_values = (tree->n_rows + 1) * tree->n_metrics;
        if (!vec_reserve(&tree->values, &tree->cap_values, n_values, sizeof *tree->values)) {
            tree->failed = true;
            return;
        }
        tree->nodes[node].row = (uint32_t)++tree->n_rows;
    }
    tree->values[(tree->nodes[node].row - 1) * tree->n_metrics + (size_t)metric] += value;
}

const uint64_t *tree_values(const struct tree *tree, uint32_t node)
{
    uint32_t row = tree->nodes[node].row;
    return row ? &tree->values[(row - 1) * tree->n_metrics] : NULL;
}

/* --- what a sample weighs --- */

/* What the samples of one thread stand for: an event that shared its counter was seen only part of the time, and events
 * with different periods may add to one metric. Nodes hold raw counts wherever one period is enough. */

#define PERIOD_MAX 1e15 /* a double holds every integer below */

static uint64_t rounded(double value)
{
    return value < 1 ? 1 : value < PERIOD_MAX ? (uint64_t)(value + 0.5) : (uint64_t)PERIOD_MAX;
}

/* The event's fixed period; 0 when its samples bring weights, or count in fractions. */
static uint64_t fixed_period(const struct arena_event *event)
{
    bool is_whole = event->scale >= 1 && event->scale < PERIOD_MAX && event->scale == (double)(uint64_t)event->scale;
    return !(event->flags & EVENT_WEIGHTED) && is_whole ? (uint64_t)event->scale : 0;
}

static void weigh_event(struct collected_thread *thread, uint32_t i)
{
    const struct arena_event *event = &thread->process->view->header->events[i];
    uint64_t enabled_ns = view_count(&thread->record->enabled_ns[i]),
             running_ns = view_count(&thread->record->running_ns[i]);
    struct weighing *weighing = &thread->weighings[i];
    weighing->ratio = running_ns && running_ns < enabled_ns ? (double)enabled_ns / (double)running_ns : 1;
    weighing->unit = fixed_period(event) ? rounded((double)fixed_period(event) * weighing->ratio) : 1;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Columns of one event keep its counts; the others count in the largest unit that all their events have in common. */
static void weigh_column(struct collected_thread *thread, size_t index)
{
    const struct column *column = &thread->process->columns[index];
    struct thread_column *mine = &thread->columns[index];
    uint64_t unit = 0;
    *mine = (struct thread_column){.period = column->period, .scale = column->scale};
    for (uint32_t i = 0; i < thread->process->view->n_events; i++) {
        if (!(column->events & 1u << i))
            continue;
        unit = common_divisor(unit, thread->weighings[i].unit);
        mine->is_multiplexed |= thread->weighings[i].ratio > 1;
    }
    if (!column->events)
        return;
    if (column->kind == COLUMN_COUNT && column->scale != 1)
        mine->scale = column->scale * thread->weighings[column->event].ratio;
    else
        mine->period = unit;
}

void thread_weigh(struct collected_thread *thread)
{
    for (uint32_t i = 0; i < thread->process->view->n_events; i++)
        weigh_event(thread, i);
    for (size_t i = 0; i < thread->process->n_columns; i++)
        weigh_column(thread, i);
}

static void put(struct hit_values *values, int column, uint64_t value)
{
    if (column < 0)
        return;
    values->columns[values->n] = column;
    values->values[values->n++] = value;
}

/* Weights are scaled hit by hit, so that both trees get the same whole numbers. */
static uint64_t scaled_weight(const struct collected_thread *thread, const struct arena_hit *hit)
{
    double ratio = thread->weighings[hit->event].ratio;
    return ratio > 1 ? collect_whole((double)hit->weight * ratio) : hit->weight;
}

/* How many periods of the plan the samples of a hit stand for, where the period is fixed: one each, and more where
 * there were fewer samples, so that they did not take more than their share. */
static uint64_t n_periods(const struct arena_hit *hit)
{
    return hit->count + hit->weight;
}

/* Samples of a weighted event count as much as they weigh, latencies as much as the hit's samples weigh on average. */
static void weigh_access(const struct collected_thread *thread, const struct arena_hit *hit, struct hit_values *values)
{
    const struct collected_process *process = thread->process;
    bool is_weighted = process->view->header->events[hit->event].flags & EVENT_WEIGHTED;
    uint64_t weight = scaled_weight(thread, hit), unit = thread->weighings[hit->event].unit;
    double mean_weight = hit->count ? (double)weight / (double)hit->count : 0;
    double mean_periods = hit->count ? (double)n_periods(hit) / (double)hit->count : 0;
    for (int i = 0; i < MEM_METRICS; i++) {
        int column = hit->metrics & 1u << i ? process->column_of_metric[i] : -1;
        if (column >= 0)
            put(values, column, is_weighted ? weight : n_periods(hit) * (unit / thread->columns[column].period));
    }
    const int latency_columns[] = {process->latency_column,
                                   hit->metrics & MEM_REMOTE_METRICS ? process->remote_latency_column : -1};
    for (int i = 0; i < 2 && hit->latency; i++) {
        int column = latency_columns[i];
        if (column >= 0)
            put(values, column,
                is_weighted
                    ? collect_whole((double)hit->latency * mean_weight)
                    : collect_whole((double)hit->latency * mean_periods) * (unit / thread->columns[column].period));
    }
}

/* The values of a hit of an event of the view; none when its event has no column. */
static void thread_weigh_hit(const struct collected_thread *thread, const struct arena_hit *hit,
                             struct hit_values *values)
{
    const struct collected_process *process = thread->process;
    values->n = 0;
    if (hit->event >= process->view->n_events || process->column_of_event[hit->event] < 0)
        return;
    int column = process->column_of_event[hit->event];
    bool is_weighted = process->columns[column].kind == COLUMN_WEIGHT;
    if (!hit->count && !(is_weighted && hit->weight))
        return;
    put(values, column, is_weighted ? scaled_weight(thread, hit) : n_periods(hit));
    if (process->view->header->events[hit->event].flags & EVENT_DATA_SRC)
        weigh_access(thread, hit, values);
}

/* --- latencies --- */

/* What the side file says of the samples of a variable: their numbers, metric by metric and never scaled, and the
 * latencies that the hardware reported. */

static void add_samples(struct collected_thread *thread, struct collected_variable *variable, uint32_t metric,
                        uint64_t n_samples)
{
    struct objects_variable *row = &variable->row;
    for (size_t i = 0; i < row->n_samples; i++)
        if (row->samples[i].metric == metric) {
            row->samples[i].count += n_samples;
            return;
        }
    if (!vec_reserve(&row->samples, &variable->cap_samples, row->n_samples + 1, sizeof *row->samples)) {
        thread->tree.failed = true;
        return;
    }
    row->samples[row->n_samples++] = (struct objects_samples){.metric = metric, .count = n_samples};
}

/* The variable's latencies of an event, added when new; NULL when out of memory. */
static struct objects_latency *latency_of(struct collected_thread *thread, struct collected_variable *variable,
                                          uint32_t event)
{
    struct objects_variable *row = &variable->row;
    for (size_t i = 0; i < row->n_latencies; i++)
        if (row->latencies[i].event == event)
            return &row->latencies[i];
    if (!vec_reserve(&row->latencies, &variable->cap_latencies, row->n_latencies + 1, sizeof *row->latencies)) {
        thread->tree.failed = true;
        return NULL;
    }
    row->latencies[row->n_latencies] = (struct objects_latency){.event = event};
    return &row->latencies[row->n_latencies++];
}

/* Adds a hit's samples, metric by metric, and its latency to its variable. */
static void thread_describe_samples(struct collected_thread *thread, struct collected_variable *variable,
                                    const struct arena_hit *hit, const struct hit_values *values)
{
    for (size_t i = 0; i < values->n; i++)
        add_samples(thread, variable, (uint32_t)values->columns[i], hit->count);
    bool has_latency = thread->process->view->header->events[hit->event].flags & EVENT_DATA_SRC && hit->latency;
    struct objects_latency *latency = has_latency ? latency_of(thread, variable, hit->event) : NULL;
    if (!latency)
        return;
    latency->n_samples += hit->count;
    latency->cycles += hit->latency;
    if (hit->metrics & MEM_REMOTE_METRICS) {
        latency->n_remote += hit->count;
        latency->remote_cycles += hit->latency;
    }
}

static void take_sketch(struct collected_thread *thread, const struct arena_sketch *sketch)
{
    const struct view *view = thread->process->view;
    bool is_wanted = sketch->event < view->n_events && thread->process->column_of_event[sketch->event] >= 0 &&
                     view->header->events[sketch->event].flags & EVENT_ADDRESS;
    const struct declaration *declaration = is_wanted ? thread_declare(thread, sketch->var, HIT_LOST) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_latency *latency = latency_of(thread, &thread->variables[declaration->variable], sketch->event);
    /* bin 0: samples without a latency, which are not in n_samples either */
    for (int i = 1; latency && i < ARENA_SKETCH_BINS; i++)
        latency->bins[i] += sketch->bins[i];
}

void thread_take_sketches(struct collected_thread *thread)
{
    struct record_walk walk = {
        .kind = ARENA_SKETCHES, .thread = thread->ref, .record_bytes = sizeof(struct arena_sketch)};
    const void *record;
    while ((record = view_next(thread->process->view, &walk))) {
        struct arena_sketch sketch;
        memcpy(&sketch, record, sizeof sketch);
        take_sketch(thread, &sketch);
    }
}

/* --- call paths --- */

/* From nodes of the arena to paths of a profile's tree: call paths, load-map ids, placeholders. */

#define PATH_FRAMES_MAX 16384 /* deeper than any unwinder goes */
#define CREATORS_MAX 64       /* threads that made one another, on one path */

/* In the order of enum placeholder. */
static const char *const placeholder_names[PLACEHOLDER_MAX] = {
    [PLACEHOLDER_ROOT] = "DATACENTRIC",
    [PLACEHOLDER_DYNAMIC] = "DATACENTRIC_Dynamic",
    [PLACEHOLDER_STATIC] = "DATACENTRIC_Static",
    [PLACEHOLDER_UNKNOWN] = "DATACENTRIC_Unknown",
    [PLACEHOLDER_ACCESS] = "DATACENTRIC_MemoryAccess",
    [PLACEHOLDER_STACK] = "DATACENTRIC_Stack",
    [PLACEHOLDER_TLS] = "DATACENTRIC_ThreadLocal",
    [PLACEHOLDER_FILE] = "DATACENTRIC_FileMapping",
    [PLACEHOLDER_REASON + UNKNOWN_NO_BLOCK] = "DATACENTRIC_Unknown_NoBlock",
    [PLACEHOLDER_REASON + UNKNOWN_FREED] = "DATACENTRIC_Unknown_Freed",
    [PLACEHOLDER_REASON + UNKNOWN_SMALL_BLOCK] = "DATACENTRIC_Unknown_SmallBlock",
    [PLACEHOLDER_REASON + UNKNOWN_OWN] = "DATACENTRIC_Unknown_Profiler",
    [PLACEHOLDER_REASON + UNKNOWN_KERNEL] = "DATACENTRIC_Unknown_Kernel",
    [PLACEHOLDER_REASON + UNKNOWN_NULL] = "DATACENTRIC_Unknown_Null",
    [PLACEHOLDER_REASON + UNKNOWN_VDSO] = "DATACENTRIC_Unknown_Vdso",
    [PLACEHOLDER_REASON + UNKNOWN_UNLOGGED] = "DATACENTRIC_Unknown_HeapWithoutAllocationLog",
    [PLACEHOLDER_NO_COMPUTE] = "DATACENTRIC_No_Compute",
    [PLACEHOLDER_NO_LOST] = "DATACENTRIC_No_AddressLost",
    [PLACEHOLDER_NO_SYSCALL] = "DATACENTRIC_No_SystemCall",
    [PLACEHOLDER_NO_WAITING] = "DATACENTRIC_No_Waiting",
    [PLACEHOLDER_CREATED] = "CREATED_THREAD",
};

const char *placeholder_name(unsigned placeholder)
{
    return placeholder < PLACEHOLDER_MAX ? placeholder_names[placeholder] : NULL;
}

bool path_of(const struct view *view, uint32_t ref, enum arena_kind kind, struct path *path)
{
    struct arena_node node;
    int n_creators = 0;
    uint64_t created = 0;
    path->n = 0;
    path->is_partial = false;
    for (bool is_first = true;; is_first = false) {
        const void *record = view_record(view, ref, kind, sizeof node);
        if (!record) {
            /* The way up is broken: what was found is still a path, but not a whole one. */
            path->is_partial = true;
            return !is_first;
        }
        memcpy(&node, record, sizeof node);
        if (node.flags & NODE_ROOT) {
            created = created ? created : node.ip;
            if (!created || created > UINT32_MAX || path->is_partial || n_creators++ == CREATORS_MAX)
                return true;
            ref = (uint32_t)created;
            created = 0;
            kind = ARENA_ALLOC_NODES;
            continue;
        }
        if (node.flags & NODE_PARTIAL) {
            path->is_partial = true;
        } else if (node.flags & NODE_CREATED) {
            created = created ? created : node.ip;
        } else {
            if (!vec_reserve(&path->frames, &path->capacity, path->n + 1, sizeof *path->frames))
                return false;
            path->frames[path->n++] = (struct raw_frame){ref, node.module, node.ip};
        }
        /* A parent is older than its child: this ends, whatever the memory holds. */
        if (node.parent >= ref || path->n >= PATH_FRAMES_MAX)
            node.parent = 0;
        ref = node.parent;
    }
}

uint16_t thread_module_id(struct collected_thread *thread, const char *path)
{
    if (!path)
        return 0;
    int64_t index = strtab_intern(&thread->modules, path);
    if (index < 0 || index >= UINT16_MAX - 1) {
        thread->tree.failed = true;
        return 0;
    }
    return (uint16_t)(index + 1);
}

/* The kernel's functions lie elsewhere on each machine and after each boot: "[kernel]" becomes "[kernel:<which>]". */
static uint16_t kernel_module_id(struct collected_thread *thread, const char *path)
{
    char text[80];
    const char *kernel = thread->process->context->kernel;
    (void)snprintf(text, sizeof text, "[kernel:%.64s]", kernel ? kernel : "");
    thread->kernel_module = thread_module_id(thread, kernel ? text : path);
    return thread->kernel_module;
}

/* Code outside all modules that the program has described; each process has its own at these addresses. */
static uint16_t jit_module_id(struct collected_thread *thread, uint64_t address)
{
    const struct collect_context *context = thread->process->context;
    const struct arena_header *header = thread->process->view->header;
    uint64_t start, end;
    char text[96];
    if (!context->jit_function || (!context->jit_function(context->jit, address, &start, &end) &&
                                   !context->jit_function(context->jit, address - 1, &start, &end)))
        return 0;
    (void)snprintf(text, sizeof text, "[jit:%08x-%u-%llx]", context->host_id, header->pid,
                   (unsigned long long)header->start_ns);
    if (!thread->jit_module)
        thread->jit_module = thread_module_id(thread, text);
    return thread->jit_module;
}

void thread_place(struct collected_thread *thread, uint32_t module_ref, uint64_t address, uint16_t *module,
                  uint64_t *ip)
{
    if (!module_ref || thread->placed_ref != module_ref) {
        const struct view_module *found = view_module_at(thread->process->view, module_ref);
        bool is_kernel = found && found->path && strcmp(found->path, "[kernel]") == 0;
        thread->placed_module = is_kernel ? kernel_module_id(thread, found->path)
                                : found   ? thread_module_id(thread, found->path)
                                          : jit_module_id(thread, address);
        thread->placed_bias = found ? found->bias : 0;
        thread->placed_ref = module_ref;
        thread->is_placed_region = found && found->path &&
                                   (strcmp(found->path, REGION_MODULE) == 0 || strcmp(found->path, PYTHON_MODULE) == 0);
    }
    *module = thread->placed_module;
    *ip = thread->is_placed_region ? thread_place_region(thread, address) : address - thread->placed_bias;
}

static struct known_path *known_slot(struct collected_thread *thread, uint32_t base, uint32_t ref)
{
    uint64_t hash = ((uint64_t)base << 32 | ref) * 0x9e3779b97f4a7c15u;
    return &thread->known[hash >> 48 & (KNOWN_PATHS - 1)];
}

/* The number of frames, from the innermost on, that are not known to be in the tree below base; *node: the last one
 * that is known. */
static size_t count_unknown(struct collected_thread *thread, const struct path *path, uint32_t base, uint32_t *node)
{
    *node = base;
    if (!thread->known)
        thread->known = calloc(KNOWN_PATHS, sizeof *thread->known);
    if (!thread->known)
        return path->n;
    for (size_t i = 0; i < path->n; i++) {
        const struct known_path *known = known_slot(thread, base, path->frames[i].ref);
        if (known->ref == path->frames[i].ref && known->base == base) {
            *node = known->node;
            return i;
        }
    }
    return path->n;
}

uint32_t path_insert(struct collected_thread *thread, const struct path *path, uint32_t base, uint32_t last_type)
{
    uint32_t node;
    if (base == TREE_NONE)
        return TREE_NONE;
    for (size_t i = count_unknown(thread, path, base, &node); i-- > 0 && node != TREE_NONE;) {
        uint16_t module;
        uint64_t ip;
        const struct raw_frame *frame = &path->frames[i];
        thread_place(thread, frame->module, frame->ip, &module, &ip);
        node = tree_child(&thread->tree, node, module, ip, 0);
        if (thread->known && node != TREE_NONE)
            *known_slot(thread, base, frame->ref) = (struct known_path){base, frame->ref, node};
    }
    if (node != TREE_NONE && path->n)
        thread->tree.nodes[node].type |= (uint16_t)last_type;
    return node;
}

uint32_t thread_placeholder(struct collected_thread *thread, uint32_t parent, unsigned placeholder, uint32_t type)
{
    const struct arena_header *header = thread->process->view->header;
    uint64_t address = header->placeholders[placeholder], ip;
    uint16_t module;
    /* Without an address (the process died before it wrote them) a number that no code has keeps them apart. */
    thread_place(thread, address ? header->libhpcrun_module : 0, address ? address : 16 + placeholder, &module, &ip);
    return tree_child(&thread->tree, parent, module, ip + 1, type);
}

/* --- samples --- */

/* From hits to values: every sample goes to its call path and, when its event yields addresses, below its variable as
 * well, so that the totals of both trees agree. */

static void add_stack_offset(struct collected_thread *thread, struct collected_variable *variable, uint64_t var,
                             uint64_t n_samples)
{
    struct objects_variable *row = &variable->row;
    int64_t offset_bytes = (int64_t)var_key_a(var) * 16;
    for (size_t i = 0; i < row->n_stack_offsets; i++) {
        if (row->stack_offsets[2 * i] == offset_bytes) {
            row->stack_offsets[2 * i + 1] += (int64_t)n_samples;
            return;
        }
    }
    if (!vec_reserve(&row->stack_offsets, &variable->cap_offsets, 2 * row->n_stack_offsets + 2,
                     sizeof *row->stack_offsets)) {
        thread->tree.failed = true;
        return;
    }
    row->stack_offsets[2 * row->n_stack_offsets] = offset_bytes;
    row->stack_offsets[2 * row->n_stack_offsets++ + 1] = (int64_t)n_samples;
}

static void describe_hit(struct collected_thread *thread, const struct declaration *declaration,
                         const struct arena_hit *hit, const struct hit_values *values)
{
    if (declaration->variable == TREE_NONE)
        return;
    struct collected_variable *variable = &thread->variables[declaration->variable];
    uint64_t count = hit->count;
    thread_describe_samples(thread, variable, hit, values);
    thread_describe_offsets(thread, declaration->variable, hit);
    if (hit->event != thread->process->first_address_event)
        return;
    if (hit->class < sizeof variable->row.classes / sizeof variable->row.classes[0])
        variable->row.classes[hit->class] += count;
    if (hit->flags & HIT_FLAG_INEXACT)
        variable->row.n_inexact += count;
    if (var_key_kind(hit->var) == VAR_STACK && hit->n_offsets == 0)
        add_stack_offset(thread, variable, hit->var, count);
}

static void add_values(struct collected_thread *thread, uint32_t node, const struct hit_values *values)
{
    for (size_t i = 0; i < values->n; i++)
        tree_add(&thread->tree, node, values->columns[i], values->values[i]);
}

/* For the metric table: how many samples the columns hold. */
static void count_values(struct collected_thread *thread, const struct hit_values *values, uint64_t n_samples)
{
    for (size_t i = 0; i < values->n; i++) {
        thread->columns[values->columns[i]].n_samples += n_samples;
        thread->columns[values->columns[i]].total += values->values[i];
    }
}

/* *leaf: the path's node in the ordinary tree, TREE_NONE until there is something to put there. */
static void take_hit(struct collected_thread *thread, const struct arena_hit *hit, uint32_t *leaf)
{
    struct collected_process *process = thread->process;
    struct hit_values values;
    thread_weigh_hit(thread, hit, &values);
    if (!values.n)
        return;
    if (*leaf == TREE_NONE)
        *leaf =
            path_insert(thread, &thread->path, thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT, HPCRUN_NODE_LEAF);
    add_values(thread, *leaf, &values);
    count_values(thread, &values, hit->count);
    if (!(process->view->header->events[hit->event].flags & EVENT_VARIABLE))
        return;
    const struct declaration *declaration = thread_declare(thread, hit->var, (enum hit_class)hit->class);
    if (!declaration)
        return;
    describe_hit(thread, declaration, hit, &values);
    uint32_t variable = declaration->variable;
    uint32_t node = path_insert(thread, &thread->path, declaration->base, HPCRUN_NODE_MEMACCESS);
    add_values(thread, node, &values);
    bool is_fault = process->view->header->events[hit->event].source == SOURCE_FAULTS;
    bool is_data = var_key_kind(hit->var) != VAR_NONE && var_key_kind(hit->var) != VAR_UNKNOWN;
    if (is_fault && is_data && node != TREE_NONE && variable != TREE_NONE && hit->count)
        thread_describe_touch(thread, variable, hit, node, values.values[0] * thread->weighings[hit->event].unit);
}

void thread_take_node(struct collected_thread *thread, uint32_t ref, const struct arena_node *node)
{
    struct arena_hit hit;
    uint32_t leaf = TREE_NONE;
    const struct view *view = thread->process->view;
    if (!view_hit(view, node->hits, 0, &hit) || !path_of(view, ref, ARENA_NODES, &thread->path))
        return;
    /* A new hit is put before the older ones: references decrease along the list. */
    for (uint32_t hit_ref = node->hits;;) {
        take_hit(thread, &hit, &leaf);
        uint32_t next = hit.next;
        if (!view_hit(view, next, hit_ref, &hit))
            break;
        hit_ref = next;
    }
}

static void take_place(struct collected_thread *thread, const struct arena_place *place)
{
    int column = place->event < ARENA_EVENTS_MAX ? thread->process->column_of_event[place->event] : -1;
    bool has_variable = var_key_kind(place->var) != VAR_NONE && column >= 0 &&
                        thread->process->view->header->events[place->event].flags & EVENT_ADDRESS;
    const struct declaration *declaration =
        has_variable && place->count ? thread_declare(thread, place->var, HIT_MEMORY) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct collected_variable *variable = &thread->variables[declaration->variable];
    for (size_t i = 0; i < variable->row.n_cpus; i++) {
        if (variable->row.cpus[i].cpu == place->cpu && variable->row.cpus[i].metric == (uint32_t)column) {
            variable->row.cpus[i].count += place->count;
            return;
        }
    }
    if (!vec_reserve(&variable->row.cpus, &variable->cap_cpus, variable->row.n_cpus + 1, sizeof *variable->row.cpus)) {
        thread->tree.failed = true;
        return;
    }
    variable->row.cpus[variable->row.n_cpus++] =
        (struct objects_count){.cpu = place->cpu, .metric = (uint32_t)column, .count = place->count};
}

void thread_take_places(struct collected_thread *thread)
{
    struct record_walk walk = {.kind = ARENA_PLACES,
                               .thread = thread->ref,
                               .record_bytes = arena_place_bytes(thread->process->view->header->n_homes)};
    const void *record;
    while ((record = view_next(thread->process->view, &walk))) {
        struct arena_place place;
        memcpy(&place, record, sizeof place);
        take_place(thread, &place);
    }
}
