/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of a process: its allocators, regions and allocations, where each variable of a thread is declared in
 * the data-centric tree, and the side file. Ordinary code. */
#include "collect/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/search.h"
#include "fmt/file.h"
#include "fmt/log.h"

/* --- allocators --- */

/* Which allocators a process has, for its log: who takes the calls in our place, and which libraries of allocators are
 * loaded after ours. */

/* A library of an allocator by the beginning of its file's name, and what becomes of its blocks. */
struct library {
    const char *prefix, *name, *seen;
};

#define SEEN_AS_MALLOC "calls of malloc and operator new go on to it and are seen"
#define SEEN_AS_MAPPINGS "its own functions are not followed: what it hands out is seen as the mappings that it makes"

static const struct library libraries[] = {
    {"libjemalloc.", "jemalloc", SEEN_AS_MALLOC},
    {"libtcmalloc", "tcmalloc", SEEN_AS_MALLOC},
    {"libmimalloc", "mimalloc", SEEN_AS_MALLOC},
    {"libtbbmalloc_proxy.", "TBB's allocator", SEEN_AS_MALLOC},
    {"libtbbmalloc.", "TBB's scalable allocator", SEEN_AS_MAPPINGS},
    {"libhoard.", "Hoard", SEEN_AS_MALLOC},
    {"libsnmalloc", "snmalloc", SEEN_AS_MALLOC},
    {"librpmalloc", "rpmalloc", SEEN_AS_MALLOC},
    {"libmemkind.", "memkind", SEEN_AS_MAPPINGS},
    {"libautohbw.", "memkind's autohbw", SEEN_AS_MALLOC},
    {"libhugetlbfs", "libhugetlbfs", "malloc's heap and the program's data may lie on huge pages; blocks are seen"},
};

static void write_library(const struct collected_process *process, const char *path, struct buf *out)
{
    const char *base = path_last(path);
    char text[512];
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (strncmp(base, libraries[i].prefix, strlen(libraries[i].prefix)) != 0)
            continue;
        (void)snprintf(text, sizeof text, "allocator: %s (%.255s): %s.", libraries[i].name, path, libraries[i].seen);
        log_write_message(out, process->name.pid, -1, text);
        return;
    }
}

/* Whether function i of those below is somebody else's operator new or delete that calls the malloc that we see. */
static bool is_passed_on(const struct collected_process *process, int i)
{
    const struct arena_header *header = process->view->header;
    const char *owner = header->allocator_owner[i];
    char path[ARENA_PATH_MAX];
    if (i < 2 || !owner[0] || header->allocator_owner[0][0] || !process->context->new_is_malloc)
        return false;
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, owner[0] == '/' ? owner : header->exe);
    return process->context->new_is_malloc(path);
}

/* Writes which functions belong to somebody else, and to whose code where that is known. */
static void write_owners(const struct collected_process *process, struct buf *out)
{
    static const char *const functions[4] = {"malloc", "free", "operator new", "operator delete"};
    const struct arena_header *header = process->view->header;
    const struct collect_context *context = process->context;
    char text[640], exe[ARENA_PATH_MAX];
    (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    for (int i = 0; i < 4; i++) {
        const char *owner = header->allocator_owner[i];
        if (!owner[0] || is_passed_on(process, i))
            continue;
        const char *name = context->allocator && owner[0] != '/' ? context->allocator(exe) : NULL;
        (void)snprintf(text, sizeof text, "%s belongs to %.255s%s%s%s: blocks it hands out are not seen.", functions[i],
                       owner, name ? " (" : "", name ? name : "", name ? ")" : "");
        log_write_message(out, process->name.pid, -1, text);
    }
}

/* A sentence for reports when the companion has stopped the sampling. */
static char *halt_note(const struct collected_process *process)
{
    const struct arena_header *header = process->view->header;
    char *note = NULL;
    if (!atomic_load(&header->is_halted))
        return NULL;
    int len =
        asprintf(&note,
                 "the sampling of %.200s was stopped, because it did nothing any more but handle its own samples: "
                 "what it did later is missing. Please report this.",
                 header->argv0);
    return len < 0 ? NULL : note;
}

/* Sentences about libraries that are loaded with RTLD_DEEPBIND or by dlmopen, and about blocks whose release was not
 * seen; none of either: appends nothing. */
static void put_deep_notes(const struct arena_header *header, struct buf *out)
{
    static const char *const said[DEEP_WAYS] = {
        "whose calls of malloc and free were redirected to the profiler (HPCRUN_DEEPBIND=0 leaves them)",
        "whose calls of malloc and free are not seen: its blocks have no names, and blocks that it frees count as live "
        "(hpcrun --no-deepbind loads it without the flag, which may change what the program does)",
        "but for --no-deepbind",
        "which has a libc of its own: what it asks of that one is not seen, so its blocks have no names",
    };
    for (int way = 0; way < DEEP_WAYS; way++) {
        uint32_t n = __atomic_load_n((const uint32_t *)&header->n_deep[way], __ATOMIC_RELAXED);
        if (!n)
            continue;
        buf_printf(out, "%s%.200s loads %.255s", out->len_bytes ? " " : "", header->argv0, header->deep_name[way]);
        if (n > 1)
            buf_printf(out, " and %u more", n - 1);
        buf_printf(out, " %s, %s.", way == DEEP_APART ? "into a namespace of its own (dlmopen)" : "with RTLD_DEEPBIND",
                   said[way]);
    }
    uint64_t n_unseen = view_count(&header->n_freed_unseen);
    if (n_unseen)
        buf_printf(out,
                   "%s%.200s: %llu block%s freed unseen, as others took their places: some of those that count as live "
                   "may have been freed as well.",
                   out->len_bytes ? " " : "", header->argv0, (unsigned long long)n_unseen,
                   n_unseen == 1 ? " was" : "s were");
}

/* A sentence for reports when the blocks of the process's allocator are not seen; NULL when they are, or when out of
 * memory. The caller frees it. */
static char *allocator_note(const struct collected_process *process)
{
    const struct arena_header *header = process->view->header;
    bool is_malloc = header->allocator_owner[0][0];
    const char *owner = is_malloc ? header->allocator_owner[0] : header->allocator_owner[2], *name = NULL;
    char *note = NULL, exe[ARENA_PATH_MAX];
    if (!is_malloc && is_passed_on(process, 2))
        owner = "";
    (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    bool is_inside = owner[0] != '/'; /* in the executable, or nowhere */
    if (process->context->allocator)
        name = process->context->allocator(is_inside ? exe : owner);
    if (!owner[0] && !name)
        return NULL;
    struct buf who = {0};
    if (!owner[0])
        buf_printf(&who, "calls %s inside it by its own names", name);
    else
        buf_printf(&who, "has %s from %.255s%s%s%s", is_malloc ? "malloc" : "operator new", owner, name ? " (" : "",
                   name ? name : "", name ? ")" : "");
    int len = asprintf(&note,
                       "%.200s %s, where calls are not seen: its blocks are shown as the mappings that the allocator "
                       "makes (class mmap). To see them one by one, %s.",
                       header->argv0, who.data ? who.data : "has an allocator of its own",
                       is_inside ? "build it with the C library's malloc, or link the allocator as a shared library"
                                 : "do not preload that, or only behind hpcrun's own library");
    buf_fini(&who);
    return len < 0 ? NULL : note;
}

/* A sentence about pauses that the owner made, and how often he let clocks tick; none: appends nothing. */
static void put_control_notes(const struct arena_header *header, struct buf *out)
{
    uint64_t paused_ns = view_count(&header->paused_ns), since_ns = view_count(&header->paused_since_ns);
    unsigned slow = atomic_load(&header->slow_least), slow_most = atomic_load(&header->slow_most);
    bool is_running = atomic_load(&header->state) != ARENA_ENDED;
    paused_ns += is_running ? arena_pause_ns(header, clock_now_ns(CLOCK_MONOTONIC)) : 0;
    if (paused_ns || since_ns)
        buf_printf(out, "%s%.200s: its sampling was paused from outside for %.1f s%s: what it did then is missing.",
                   out->len_bytes ? " " : "", header->argv0, (double)paused_ns / CLOCK_S_NS,
                   since_ns ? ", and still was at the end" : "");
    if (slow_most)
        buf_printf(out, "%s%.200s: its owner had its clocks tick 1/%u as often as planned%s.",
                   out->len_bytes ? " " : "", header->argv0, 1u << (slow_most & 31),
                   slow == slow_most ? "" : " for a while");
}

static void put_churn_note(const struct arena_header *header, struct buf *out)
{
    uint64_t raised = view_count(&header->raised_bytes);
    if (raised)
        buf_printf(out,
                   "%s%.200s: blocks of malloc below %llu bytes came and went so often that they got no records of "
                   "their own after a while: they are named by where they come from, as small ones are, and neither "
                   "counted nor known to be live. DATACENTRIC_MIN_BYTES=1k records them all.",
                   out->len_bytes ? " " : "", header->argv0, (unsigned long long)raised);
}

/* What reports say of the process's blocks; NULL: nothing, or out of memory. The caller frees it. */
static char *process_note(const struct collected_process *process)
{
    struct buf text = {0};
    char *note = allocator_note(process);
    if (note)
        buf_printf(&text, "%s", note);
    free(note);
    put_deep_notes(process->view->header, &text);
    put_control_notes(process->view->header, &text);
    put_churn_note(process->view->header, &text);
    note = text.len_bytes && !text.failed ? strdup(text.data) : NULL;
    buf_fini(&text);
    return note;
}

/* A sentence for reports when threads were to watch cache lines and could not, or never saw a reason; NULL when they
 * did, when nobody asked, or when out of memory. The caller frees it. */
static char *sharing_note(const struct collected_process *process)
{
    const struct arena_header *header = process->view->header;
    struct watch_counts counts;
    char *note = NULL;
    int len = 0;
    if (!header->watches_per_s)
        return NULL;
    process_count_watches(process, &counts);
    if (header->lacks & ARENA_LACKS_BREAKPOINTS)
        len =
            asprintf(&note,
                     SHARING_NOTE "threads of %.200s watched no line, because hardware breakpoints do not work on this "
                                  "machine (hpcrun --doctor says why).",
                     header->argv0);
    else if (counts.n_refused)
        len = asprintf(&note, SHARING_NOTE "the kernel refused breakpoints to threads of %.200s: %s.", header->argv0,
                       strerror(counts.error));
    else if (counts.n_full)
        len = asprintf(
            &note, SHARING_NOTE "threads of %.200s got no breakpoints, because the program or a debugger uses them.",
            header->argv0);
    else if (counts.is_released)
        len = asprintf(&note,
                       SHARING_NOTE "threads of %.200s watched no more lines after the program had asked for "
                                    "breakpoints of its own.",
                       header->argv0);
    else if (!counts.n_watches && process->n_threads > 1)
        len = asprintf(&note,
                       SHARING_NOTE "threads of %.200s watched no line, because none was in use by another thread on "
                                    "another processor when they were sampled.",
                       header->argv0);
    return len < 0 ? NULL : note;
}

void process_write_allocators(const struct collected_process *process, struct buf *out)
{
    write_owners(process, out);
    for (size_t i = 0; i < process->view->n_modules; i++)
        if (process->view->modules[i].path)
            write_library(process, process->view->modules[i].path, out);
}

/* --- regions --- */

/* Regions of the program in a profile: an address for each name, made from the name itself, so that profiles of many
 * processes agree, and the table by which readers find the names. */

#define ADDRESS_BITS 47 /* as those of a program */

/* Even and not 0: readers look one byte before it, too. */
static uint64_t address_of(const char *name)
{
    uint64_t hash = bytes_hash_text(BYTES_HASH_START, name);
    hash = (hash ^ hash >> ADDRESS_BITS) & (((uint64_t)1 << ADDRESS_BITS) - 2);
    return hash ? hash : 2;
}

uint64_t thread_place_region(struct collected_thread *thread, uint64_t ref)
{
    const char *name = ref <= UINT32_MAX ? view_string(thread->process->view, (uint32_t)ref) : NULL;
    uint64_t address = address_of(name ? name : "");
    size_t at =
        search_below(thread->regions, thread->n_regions, SEARCH_KEY(struct objects_function, start), address - 1);
    if (at < thread->n_regions && thread->regions[at].start == address - 1)
        return address;
    if (!vec_reserve(&thread->regions, &thread->cap_regions, thread->n_regions + 1, sizeof *thread->regions)) {
        thread->tree.failed = true;
        return address;
    }
    memmove(thread->regions + at + 1, thread->regions + at, (thread->n_regions - at) * sizeof *thread->regions);
    thread->regions[at] = (struct objects_function){address - 1, address + 1, (char *)(uintptr_t)(name ? name : "?")};
    thread->n_regions++;
    return address;
}

/* --- allocations and leaks --- */

/* From the counts of allocations and frees to bytes by allocation path: allocated, freed, still there at the end, and
 * live at the mark. What is live is a difference of counts at one path, whichever threads freed the blocks. Ordinary
 * code. */

/* Blocks and bytes of one allocation path. */
struct blocks {
    uint64_t n_allocated, bytes_allocated, n_freed, bytes_freed;
    uint64_t n_live, bytes_live, n_marked, bytes_marked;
};

static uint64_t rest_of(uint64_t n, uint64_t n_gone)
{
    return n > n_gone ? n - n_gone : 0;
}

/* False when the path has none. */
static bool sum_blocks(const struct view *view, const struct arena_node *node, struct blocks *blocks)
{
    struct arena_hit hit;
    uint64_t n_gone = 0, bytes_gone = 0; /* at the mark */
    *blocks = (struct blocks){0};
    for (uint32_t newer = 0, at = node->hits; view_hit(view, at, newer, &hit); newer = at, at = hit.next) {
        if (hit.event == HIT_EVENT_ALLOC) {
            blocks->n_allocated += hit.count;
            blocks->bytes_allocated += hit.weight;
            blocks->n_marked += hit.marked_blocks;
            blocks->bytes_marked += hit.marked_bytes;
        } else if (hit.event == HIT_EVENT_FREE) {
            blocks->n_freed += hit.count;
            blocks->bytes_freed += hit.weight;
            n_gone += hit.marked_blocks;
            bytes_gone += hit.marked_bytes;
        }
    }
    blocks->n_live = rest_of(blocks->n_allocated, blocks->n_freed);
    blocks->bytes_live = rest_of(blocks->bytes_allocated, blocks->bytes_freed);
    blocks->n_marked = rest_of(blocks->n_marked, n_gone);
    blocks->bytes_marked = rest_of(blocks->bytes_marked, bytes_gone);
    return blocks->n_allocated || blocks->n_freed;
}

void process_sum_blocks(struct collected_process *process)
{
    struct record_walk walk = {.kind = ARENA_ALLOC_NODES, .record_bytes = sizeof(struct arena_node)};
    struct arena_node node;
    struct blocks blocks;
    for (const void *record; (record = view_next(process->view, &walk));) {
        memcpy(&node, record, sizeof node);
        if (!sum_blocks(process->view, &node, &blocks))
            continue;
        process->n_blocks += blocks.n_allocated;
        process->bytes_allocated += blocks.bytes_allocated;
        process->bytes_freed += blocks.bytes_freed;
        process->n_blocks_live += blocks.n_live;
        process->bytes_live += blocks.bytes_live;
        process->bytes_marked += blocks.bytes_marked;
    }
}

static int add_bytes_column(struct collected_process *process, enum column_kind kind, const char *name,
                            const char *description, uint64_t bytes)
{
    if (!bytes)
        return -1;
    const struct column column = {
        .kind = kind, .format = HPCRUN_VALUE_INT, .period = 1, .scale = 1, .n_samples = process->n_blocks};
    return process_add_column(process, &column, name, description);
}

void process_add_size_column(struct collected_process *process)
{
    process->size_column = add_bytes_column(process, COLUMN_SIZE, SIZE_NAME, SIZE_NAME, 1);
}

void process_add_leak_columns(struct collected_process *process)
{
    process->allocated_column = add_bytes_column(process, COLUMN_ALLOCATED, LEAK_ALLOCATED_NAME,
                                                 "Bytes allocated in recorded blocks", process->bytes_allocated);
    process->freed_column = add_bytes_column(process, COLUMN_FREED, LEAK_FREED_NAME,
                                             "Bytes of recorded blocks freed again", process->bytes_freed);
    process->leaked_column = add_bytes_column(process, COLUMN_LEAKED, LEAK_LEAKED_NAME,
                                              "Bytes allocated and never freed", process->bytes_live);
    process->marked_column = add_bytes_column(process, COLUMN_MARKED, LEAK_MARKED_NAME,
                                              "Bytes allocated and not freed at the mark", process->bytes_marked);
}

static bool is_mapping(const struct collected_process *process, uint32_t ref)
{
    const struct search_key whole = {sizeof ref, 0, sizeof ref};
    size_t i = search_below(process->mmap_nodes, process->n_mmap_nodes, whole, ref);
    return i < process->n_mmap_nodes && process->mmap_nodes[i] == ref;
}

/* The totals of the ordinary and of the data-centric tree agree. */
static void add_bytes(struct collected_thread *thread, uint32_t node, const struct blocks *blocks)
{
    const struct collected_process *process = thread->process;
    tree_add(&thread->tree, node, process->size_column, blocks->bytes_allocated);
    tree_add(&thread->tree, node, process->allocated_column, blocks->bytes_allocated);
    tree_add(&thread->tree, node, process->freed_column, blocks->bytes_freed);
    tree_add(&thread->tree, node, process->leaked_column, blocks->bytes_live);
    tree_add(&thread->tree, node, process->marked_column, blocks->bytes_marked);
}

void thread_take_allocations(struct collected_thread *thread, uint32_t ref, const struct arena_node *node)
{
    struct collected_process *process = thread->process;
    struct blocks blocks;
    if (!sum_blocks(process->view, node, &blocks) || !path_of(process->view, ref, ARENA_ALLOC_NODES, &thread->path))
        return;
    uint32_t parent = thread->path.is_partial ? TREE_PARTIAL : TREE_ROOT;
    uint32_t leaf = path_insert(thread, &thread->path, parent, HPCRUN_NODE_LEAF | HPCRUN_NODE_ALLOCATION);
    add_bytes(thread, leaf, &blocks);
    if (!process->has_variables)
        return;
    uint64_t var = var_key(is_mapping(process, ref) ? VAR_MMAP : VAR_HEAP, 0, ref);
    const struct declaration *declaration = thread_declare(thread, var, HIT_MEMORY);
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[declaration->variable].row;
    row->n_blocks += blocks.n_allocated;
    row->bytes += blocks.bytes_allocated;
    row->n_blocks_freed += blocks.n_freed;
    row->bytes_freed += blocks.bytes_freed;
    row->n_blocks_marked += blocks.n_marked;
    row->bytes_marked += blocks.bytes_marked;
    add_bytes(thread, row->node, &blocks);
}

/* --- variables --- */

/* The variables of one thread: where each is declared in the data-centric tree, and its row of the side file. */

static uint32_t data_root(struct collected_thread *thread)
{
    if (thread->data_root == TREE_NONE)
        thread->data_root = thread_placeholder(thread, TREE_ROOT, PLACEHOLDER_ROOT, HPCRUN_NODE_ROOT);
    return thread->data_root;
}

/* The variable that the node declares, added when it is the first; TREE_NONE when out of memory. */
static uint32_t variable_at(struct collected_thread *thread, uint32_t node, enum var_kind kind)
{
    if (node == TREE_NONE)
        return TREE_NONE;
    uint32_t known = thread->tree.nodes[node].variable;
    if (known)
        return known - 1;
    if (!vec_reserve(&thread->variables, &thread->cap_variables, thread->n_variables + 1, sizeof *thread->variables)) {
        thread->tree.failed = true;
        return TREE_NONE;
    }
    thread->variables[thread->n_variables] = (struct collected_variable){.row = {.node = node, .kind = kind}};
    thread->tree.nodes[node].variable = (uint32_t)++thread->n_variables;
    return (uint32_t)thread->n_variables - 1;
}

static void name_variable(struct collected_thread *thread, uint32_t variable, const char *name)
{
    if (variable == TREE_NONE || !name || thread->variables[variable].row.name)
        return;
    thread->variables[variable].row.name = strdup(name);
    if (!thread->variables[variable].row.name)
        thread->tree.failed = true;
}

static struct declaration declare_reason(struct collected_thread *thread, unsigned placeholder, enum var_kind kind)
{
    uint32_t unknown =
        thread_placeholder(thread, data_root(thread), PLACEHOLDER_UNKNOWN, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
    uint32_t node = thread_placeholder(thread, unknown, placeholder, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
    return (struct declaration){.base = node, .variable = variable_at(thread, node, kind)};
}

static struct declaration declare_lost(struct collected_thread *thread)
{
    return declare_reason(thread, PLACEHOLDER_REASON + UNKNOWN_NO_BLOCK, VAR_UNKNOWN);
}

/* The sizes of the blocks that have no record. */
static void note_small(struct collected_thread *thread, uint32_t variable, const struct arena_site *site)
{
    if (variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[variable].row;
    uint32_t least = __atomic_load_n((const uint32_t *)&site->min_bytes, __ATOMIC_RELAXED);
    uint32_t most = __atomic_load_n((const uint32_t *)&site->max_bytes, __ATOMIC_RELAXED);
    if (!row->max_small_bytes || least < row->min_small_bytes)
        row->min_small_bytes = least;
    if (most > row->max_small_bytes)
        row->max_small_bytes = most;
    if (most > row->max_block_bytes)
        row->max_block_bytes = most;
}

static struct declaration declare_heap(struct collected_thread *thread, uint64_t var)
{
    if (!path_of(thread->process->view, var_key_b(var), ARENA_ALLOC_NODES, &thread->declared) || !thread->declared.n)
        return declare_lost(thread);
    uint32_t dynamic = thread_placeholder(thread, data_root(thread), PLACEHOLDER_DYNAMIC, 0);
    uint32_t node = path_insert(thread, &thread->declared, dynamic, HPCRUN_NODE_ALLOCATION);
    return (struct declaration){.base = thread_placeholder(thread, node, PLACEHOLDER_ACCESS, HPCRUN_NODE_MEMACCESS),
                                .variable = variable_at(thread, node, var_key_kind(var))};
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The size of a static variable is written once for a process, so that sums over threads are right. */
static void size_once(struct collected_thread *thread, uint32_t node, uint64_t var, uint64_t size_bytes)
{
    struct collected_process *process = thread->process;
    if (process->n_sized && bsearch(&var, process->sized, process->n_sized, sizeof var, compare_keys))
        return;
    if (!vec_reserve(&process->sized, &process->cap_sized, process->n_sized + 1, sizeof var)) {
        thread->tree.failed = true;
        return;
    }
    size_t at = process->n_sized++;
    for (; at > 0 && process->sized[at - 1] > var; at--)
        process->sized[at] = process->sized[at - 1];
    process->sized[at] = var;
    tree_add(&thread->tree, node, process->size_column, size_bytes);
}

static struct declaration declare_static(struct collected_thread *thread, uint64_t var)
{
    bool is_tls = var_key_kind(var) == VAR_TLS;
    const struct collect_context *context = thread->process->context;
    const struct view_module *module = view_module_with_id(thread->process->view, var_key_a(var));
    uint64_t vaddr = 0, size_bytes = 0;
    const char *name = NULL;
    if (module && context->symbol)
        name = context->symbol(context->ctx, module->table_id, var_key_b(var), is_tls, &vaddr, &size_bytes);
    if (!module || (!name && !is_tls))
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), is_tls ? PLACEHOLDER_TLS : PLACEHOLDER_STATIC, 0);
    uint32_t node = tree_child(&thread->tree, group, thread_module_id(thread, module->path), (name ? vaddr : 0) + 1,
                               HPCRUN_NODE_GLOBAL_VARIABLE);
    uint32_t variable = variable_at(thread, node, var_key_kind(var));
    name_variable(thread, variable, name);
    if (name && variable != TREE_NONE) {
        struct objects_variable *row = &thread->variables[variable].row;
        row->n_blocks = 1;
        row->bytes = row->max_block_bytes = size_bytes;
        size_once(thread, node, var, size_bytes);
    }
    return (struct declaration){.base = node, .variable = variable};
}

/* Address that stands for the function of a frame, such that the address - 1 lies inside: the function's start + 1, or
 * else the return address; an interrupted pc has no children and is moved by one. */
static uint64_t frame_address(struct collected_thread *thread, const struct arena_node *frame)
{
    const struct collect_context *context = thread->process->context;
    const struct view_module *module = view_module_at(thread->process->view, frame->module);
    uint64_t start, address = frame->ip + (frame->child ? 0 : 1);
    if (module && context->function &&
        context->function(context->ctx, module->table_id, address - 1 - module->bias, &start))
        return start + module->bias + 1;
    return address;
}

static struct declaration declare_stack(struct collected_thread *thread, uint64_t var)
{
    struct arena_node frame;
    const void *record = view_record(thread->process->view, var_key_b(var), ARENA_NODES, sizeof frame);
    if (!record)
        return declare_lost(thread);
    memcpy(&frame, record, sizeof frame);
    uint16_t module;
    uint64_t ip;
    thread_place(thread, frame.module, frame_address(thread, &frame), &module, &ip);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_STACK, 0);
    uint32_t node = tree_child(&thread->tree, group, module, ip, 0);
    return (struct declaration){.base = node, .variable = variable_at(thread, node, VAR_STACK)};
}

static struct declaration declare_other_stack(struct collected_thread *thread, uint64_t var)
{
    char name[64];
    const struct arena_thread *other = view_record(thread->process->view, var_key_b(var), ARENA_THREADS, sizeof *other);
    if (!other)
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_STACK, 0);
    uint32_t node = tree_child(&thread->tree, group, 0, (uint64_t)other->id + 1, 0);
    uint32_t variable = variable_at(thread, node, VAR_STACK_OTHER);
    (void)snprintf(name, sizeof name, "stack of thread %u", other->id);
    name_variable(thread, variable, name);
    return (struct declaration){.base = node, .variable = variable};
}

static struct declaration declare_file(struct collected_thread *thread, uint64_t var)
{
    const char *path = view_string(thread->process->view, var_key_b(var));
    if (!path || !*path)
        return declare_lost(thread);
    uint32_t group = thread_placeholder(thread, data_root(thread), PLACEHOLDER_FILE, 0);
    uint32_t node = tree_child(&thread->tree, group, thread_module_id(thread, path), 1, HPCRUN_NODE_GLOBAL_VARIABLE);
    uint32_t variable = variable_at(thread, node, VAR_FILE);
    name_variable(thread, variable, path);
    return (struct declaration){.base = node, .variable = variable};
}

static struct declaration declare_none(struct collected_thread *thread, enum hit_class class)
{
    if (class == HIT_COMPUTE)
        return declare_reason(thread, PLACEHOLDER_NO_COMPUTE, VAR_NONE);
    if (class == HIT_WAITING)
        return declare_reason(thread, PLACEHOLDER_NO_WAITING, VAR_NONE);
    if (class == HIT_SYSCALL)
        return declare_reason(thread, PLACEHOLDER_NO_SYSCALL, VAR_NONE);
    return declare_reason(thread, PLACEHOLDER_NO_LOST, VAR_NONE);
}

static struct declaration declare(struct collected_thread *thread, uint64_t var, enum hit_class class)
{
    switch (var_key_kind(var)) {
    case VAR_NONE:
        return declare_none(thread, class);
    case VAR_HEAP:
    case VAR_MMAP:
        return declare_heap(thread, var);
    case VAR_STATIC:
    case VAR_TLS:
        return declare_static(thread, var);
    case VAR_STACK:
        return declare_stack(thread, var);
    case VAR_STACK_OTHER:
        return declare_other_stack(thread, var);
    case VAR_FILE:
        return declare_file(thread, var);
    case VAR_UNKNOWN:
        if (var_key_b(var) < UNKNOWN_REASONS)
            return declare_reason(thread, PLACEHOLDER_REASON + var_key_b(var), VAR_UNKNOWN);
        return declare_lost(thread);
    default:
        return declare_lost(thread);
    }
}

static uint64_t hash_of_declaration(const void *item)
{
    return ((const struct declaration *)item)->key;
}

static bool is_same_declaration(const void *a, const void *b)
{
    return ((const struct declaration *)a)->key == ((const struct declaration *)b)->key;
}

static const struct slots_kind declarations_by_key = {sizeof(struct declaration), hash_of_declaration,
                                                      is_same_declaration};

/* The key of a declaration: without the offset in a stack frame, and with the class where there is no variable. */
static uint64_t declaration_key(uint64_t var, enum hit_class class)
{
    if (var_key_kind(var) == VAR_STACK)
        return var_key(VAR_STACK, 0, var_key_b(var));
    if (var_key_kind(var) == VAR_NONE)
        return var_key(VAR_NONE, 0, (uint32_t) class);
    return var;
}

const struct declaration *thread_declared(const struct collected_thread *thread, uint64_t var)
{
    const struct declaration like = {.key = declaration_key(var, HIT_MEMORY)};
    size_t found = slots_find(&thread->declaration_slots, &declarations_by_key, thread->declarations, &like);
    return found == SLOTS_NONE ? NULL : &thread->declarations[found];
}

const struct declaration *thread_declare(struct collected_thread *thread, uint64_t var, enum hit_class class)
{
    struct declaration made = {.key = declaration_key(var, class)};
    uint64_t key = made.key, of = key;
    const struct arena_site *site = NULL;
    struct slots *slots = &thread->declaration_slots;
    size_t found = slots_find(slots, &declarations_by_key, thread->declarations, &made);
    if (found != SLOTS_NONE)
        return &thread->declarations[found];
    if (!slots_reserve(slots, &declarations_by_key, thread->declarations, thread->n_declarations) ||
        !vec_reserve(&thread->declarations, &thread->cap_declarations, thread->n_declarations + 1, sizeof made)) {
        thread->tree.failed = true;
        return NULL;
    }
    if (var_key_kind(key) == VAR_SMALL)
        of = view_heap_of_site(thread->process->view, key, &site);
    made = declare(thread, of, class);
    if (made.base == TREE_NONE)
        return NULL;
    if (site)
        note_small(thread, made.variable, site);
    made.key = key;
    thread->declarations[thread->n_declarations] = made;
    slots_add(slots, &declarations_by_key, thread->declarations, thread->n_declarations);
    return &thread->declarations[thread->n_declarations++];
}

/* --- the side file --- */

/* The side file of one thread, from its record in the arena and the variables of its tree. */

/* Everything that the rows point to; the arena's own strings may lack their ends. */
struct side {
    struct objects_file file;
    struct objects_event events[ARENA_EVENTS_MAX];
    char metrics[ARENA_EVENTS_MAX][64], names[ARENA_EVENTS_MAX][64];
    char exe[ARENA_PATH_MAX], thread_name[ARENA_COMM_BYTES];
};

/* A process that was killed, still runs or became another program by exec leaves samples that wait for their recipe or
 * whose handler is under way. */
static void fill_undecided(struct objects_event *event)
{
    uint64_t n_decided = 0;
    for (int fate = 0; fate < FATE_TAKEN_MAX; fate++)
        n_decided += event->fates[fate];
    if (event->taken > n_decided)
        event->fates[FATE_DROP_NO_RECIPE] += event->taken - n_decided;
}

/* The first thread's file counts the samples of threads without files. */
static void fill_left_out(const struct collected_process *process, struct objects_event *event, uint32_t i)
{
    for (size_t t = process->n_written_threads; t < process->n_threads; t++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[t], ARENA_THREADS, sizeof *record);
        uint64_t n_taken = record ? view_count(&record->taken[i]) : 0;
        event->taken += n_taken;
        event->fates[FATE_DROP_MAX_SIZE] += n_taken;
    }
}

static void fill_event(struct side *side, const struct collected_thread *thread, uint32_t i)
{
    const struct arena_event *from = &thread->process->view->header->events[i];
    struct objects_event *event = &side->events[i];
    (void)snprintf(side->metrics[i], sizeof side->metrics[i], "%.63s", from->metric);
    (void)snprintf(side->names[i], sizeof side->names[i], "%.63s", from->name);
    *event = (struct objects_event){.metric = side->metrics[i],
                                    .name = side->names[i],
                                    .scale = from->scale,
                                    .taken = view_count(&thread->record->taken[i]),
                                    .overflows = view_count(&thread->record->overflows[i]),
                                    .enabled_ns = view_count(&thread->record->enabled_ns[i]),
                                    .running_ns = view_count(&thread->record->running_ns[i]),
                                    .n_throttles = view_count(&thread->record->n_throttles[i]),
                                    .n_no_metric = view_count(&thread->record->n_no_metric[i]),
                                    .n_truncated = view_count(&thread->record->n_truncated[i]),
                                    .n_collisions = view_count(&thread->record->n_collisions[i]),
                                    .has_data_source = (from->flags & EVENT_DATA_SRC) != 0,
                                    .has_address = (from->flags & EVENT_ADDRESS) != 0,
                                    .is_user_only = from->attr.exclude_kernel && !(from->flags & EVENT_TIMER),
                                    .n_spared = view_count(&thread->record->n_spared[i])};
    uint64_t cost_ns = view_count(&thread->record->spared_cost_ns); /* 0: slow from the start, for what a tick costs */
    event->sample_cost_ns = !event->n_spared ? 0 : cost_ns ? cost_ns : thread->process->view->header->tick_ns;
    for (int fate = 0; fate < FATE_MAX; fate++)
        event->fates[fate] = view_count(&thread->record->fates[i][fate]);
    if (atomic_load(&thread->process->view->header->state) != ARENA_ENDED)
        fill_undecided(event);
    if (thread->ref == thread->process->threads[0])
        fill_left_out(thread->process, event, i);
}

/* The name that the program gave a thread: one that is not the main thread's, which each has at first. A process that
 * was killed may have been about to note it, so nothing of it is believed. */
static void fill_thread_name(struct side *side, const struct collected_thread *thread)
{
    const struct collected_process *process = thread->process;
    const struct arena_thread *record = thread->record, *first;
    char program[ARENA_COMM_BYTES];
    first = view_record(process->view, process->threads[0], ARENA_THREADS, sizeof *first);
    (void)snprintf(program, sizeof program, "%.*s", ARENA_COMM_BYTES - 1,
                   *first->name ? first->name : path_last(side->exe));
    (void)snprintf(side->thread_name, sizeof side->thread_name, "%.*s", ARENA_COMM_BYTES - 1, record->name);
    if (*side->thread_name && record != first && strcmp(side->thread_name, program) != 0)
        side->file.thread_name = side->thread_name;
}

static void fill_thread(struct side *side, const struct collected_thread *thread)
{
    const struct arena_header *header = thread->process->view->header;
    const struct arena_thread *record = thread->record;
    (void)snprintf(side->exe, sizeof side->exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    side->file.exe = side->exe;
    side->file.pid = thread->process->name.pid;
    side->file.tid = record->tid;
    side->file.thread_id = record->id;
    fill_thread_name(side, thread);
    side->file.rank = thread->process->name.rank;
    side->file.start_ns = record->start_ns;
    side->file.end_ns = record->end_ns ? record->end_ns : view_count(&header->end_ns);
    side->file.cpu_time_ns = view_count(&record->cpu_time_ns);
    side->file.user_ns = view_count(&record->user_ns);
    side->file.system_ns = view_count(&record->system_ns);
    side->file.delay_ns = view_count(&record->delay_ns);
    side->file.n_page_faults = atomic_load(&record->n_page_faults);
    side->file.unmeasured_ns = record->id == 0 ? view_count(&header->unmeasured_ns) : 0;
    side->file.n_frames = view_count(&record->n_frames);
    for (size_t i = 0; i < sizeof side->file.unwind_stops / sizeof side->file.unwind_stops[0]; i++)
        side->file.unwind_stops[i] = view_count(&record->unwind_stops[i]);
    side->file.min_bytes = header->min_bytes;
    side->file.sample_bytes = header->sample_bytes;
    side->file.mark_ns = view_count(&header->mark_ns);
    if (thread->ref == thread->process->threads[0])
        side->file.note = atomic_load(&header->is_halted) ? halt_note(thread->process) : process_note(thread->process);
    if (thread->ref == thread->process->threads[0])
        side->file.sharing_note = sharing_note(thread->process);
    side->file.events = side->events;
    side->file.n_events = thread->process->view->n_events;
    for (uint32_t i = 0; i < thread->process->view->n_events; i++)
        fill_event(side, thread, i);
}

/* The writer only reads these texts. */
static char *borrowed(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void fill_context(struct side *side, const struct collect_context *context)
{
    side->file.host = borrowed(context->host);
    side->file.plan = borrowed(context->plan);
    side->file.skid = borrowed(context->skid_json);
    side->file.state = borrowed(context->state);
    side->file.birth = context->birth;
    side->file.topology = borrowed(context->topology);
}

static bool fill_variables(struct side *side, const struct collected_thread *thread)
{
    side->file.variables = calloc(thread->n_variables + 1, sizeof *side->file.variables);
    if (!side->file.variables)
        return false;
    for (size_t i = 0; i < thread->n_variables; i++) {
        side->file.variables[i] = thread->variables[i].row;
        side->file.variables[i].node = (uint32_t)thread_node_id(thread, thread->variables[i].row.node);
        for (size_t k = 0; k < thread->variables[i].row.n_touches; k++) {
            struct objects_touch *touch = &thread->variables[i].row.touches[k];
            touch->node = (uint32_t)thread_node_id(thread, touch->node);
        }
        for (size_t k = 0; k < thread->variables[i].row.n_meetings; k++) {
            struct objects_meeting *meeting = &thread->variables[i].row.meetings[k];
            meeting->node = (uint32_t)thread_node_id(thread, meeting->node);
        }
    }
    side->file.n_variables = thread->n_variables;
    return true;
}

static bool fill_placeholders(struct side *side, const struct collected_thread *thread)
{
    const struct arena_header *header = thread->process->view->header;
    const struct view_module *module = view_module_at(thread->process->view, header->libhpcrun_module);
    side->file.placeholders = calloc(PLACEHOLDER_MAX, sizeof *side->file.placeholders);
    if (!side->file.placeholders)
        return false;
    for (unsigned i = 0; module && i < PLACEHOLDER_MAX; i++) {
        if (!header->placeholders[i])
            continue;
        side->file.placeholders[side->file.n_placeholders].ip = header->placeholders[i] - module->bias + 1;
        side->file.placeholders[side->file.n_placeholders++].name = borrowed(placeholder_name(i));
    }
    return true;
}

/* The builds of the files in the load map, so that readers can check that they have the same. */
static bool fill_modules(struct side *side, const struct collected_thread *thread)
{
    const struct view *view = thread->process->view;
    side->file.modules = calloc(thread->modules.n_strings + 1, sizeof *side->file.modules);
    if (!side->file.modules)
        return false;
    for (size_t i = 0; i < thread->modules.n_strings; i++) {
        const struct view_module *found = NULL;
        for (size_t k = 0; k < view->n_modules && !found; k++)
            if (strcmp(view->modules[k].path, thread->modules.strings[i]) == 0)
                found = &view->modules[k];
        if (found && found->table_id && found->path[0] == '/')
            side->file.modules[side->file.n_modules++] =
                (struct objects_module){found->table_id, borrowed(found->path)};
    }
    return true;
}

static int write_bounded(struct collected_process *process, struct objects_file *file, const char *path,
                         uint64_t max_bytes, uint64_t *n_bytes, struct error *err)
{
    struct buf text = {0};
    uint64_t n_details = 0;
    int code = objects_write_memory(file, &text, err);
    while (!code && text.len_bytes > max_bytes && process_bound_side(process, file, &n_details)) {
        text.len_bytes = 0;
        code = objects_write_memory(file, &text, err);
    }
    if (!code)
        code = file_replace(path, text.data, text.len_bytes, err);
    *n_bytes = text.len_bytes;
    buf_fini(&text);
    return code;
}

int thread_write_objects(const struct collected_thread *thread, const char *path, uint64_t max_bytes, uint64_t *n_bytes,
                         struct error *err)
{
    struct side *side = calloc(1, sizeof *side);
    int code = ERR_MEMORY;
    if (side) {
        fill_thread(side, thread);
        fill_context(side, thread->process->context);
        side->file.is_skid_json = thread->process->is_skid_json;
        side->file.regions = thread->regions;
        side->file.n_regions = thread->n_regions;
        if (fill_variables(side, thread) && fill_placeholders(side, thread) && fill_modules(side, thread) &&
            thread_kernel_functions(thread, &side->file.kernel, &side->file.n_kernel) &&
            thread_jit_functions(thread, &side->file.jit, &side->file.n_jit))
            code = write_bounded(thread->process, &side->file, path, max_bytes, n_bytes, err);
        else
            code = error_set(err, ERR_MEMORY, "Out of memory for the side file of a thread.");
        free(side->file.variables);
        free(side->file.placeholders);
        free(side->file.modules);
        free(side->file.kernel);
        free(side->file.jit);
        free(side->file.note);
        free(side->file.sharing_note);
    }
    free(side);
    return code;
}
