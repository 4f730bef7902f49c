/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of a sample in the call tree: see sample-path.h. Runs in the signal handler. */
#include "runtime/record/sample-path.h"

#include <stddef.h>
#include <string.h>

#include "runtime/objmap/objmap.h"
#include "runtime/own/arch.h"
#include "runtime/record/loadmap.h"
#include "base/sigsafe.h"

/* --- regions --- */

static struct {
    _Atomic uint32_t module;
} regions;

uint32_t regions_module_sig(void)
{
    return atomic_load_explicit(&regions.module, memory_order_acquire);
}

void regions_set_module_sig(uint32_t ref)
{
    atomic_store_explicit(&regions.module, ref, memory_order_release);
}

void regions_count_sig(enum region_fault fault, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(&arena_header_sig()->n_region_faults[fault], n, memory_order_relaxed);
}

uint32_t regions_depth_sig(void)
{
    const struct thread_state *self = thread_self_sig();
    return self ? self->regions.n + self->regions.n_beyond : 0;
}

void regions_thread_ends_sig(const struct thread_state *self)
{
    regions_count_sig(REGION_LEFT_OPEN, (uint64_t)self->regions.n + self->regions.n_beyond);
}

/* Phases: regions of the whole process that its owner begins from outside, around all others. */
static struct {
    _Atomic uint32_t names[ARENA_PHASES]; /* references of arena_string, 0: not yet */
} phases;

/* Copies the name of a phase into the arena, as that of a region; 0 when there is no room, or not now. */
static uint32_t phase_name_sig(uint32_t index)
{
    char text[sizeof PHASE_PREFIX + ARENA_PHASE_BYTES] = PHASE_PREFIX;
    uint32_t ref = atomic_load_explicit(&phases.names[index], memory_order_relaxed);
    if (ref || !arena_shared_begin_sig())
        return ref;
    memcpy(text + sizeof PHASE_PREFIX - 1, arena_header_sig()->phases[index], ARENA_PHASE_BYTES - 1);
    if (!regions_module_sig())
        regions_set_module_sig(loadmap_pseudo_sig(REGION_MODULE, 0));
    ref = regions_module_sig() ? arena_shared_string_sig(text) : 0;
    arena_shared_end_sig();
    atomic_store_explicit(&phases.names[index], ref, memory_order_relaxed);
    return ref;
}

void regions_fork_child_sig(struct thread_state *self)
{
    for (size_t i = 0; i < ARENA_PHASES; i++)
        atomic_store_explicit(&phases.names[i], 0, memory_order_relaxed);
    self->regions.phase = 0;
    self->regions.phase_seen = UINT32_MAX;
}

/* Goes into the phase that has begun since the last sample; one that cannot be named yet begins at a later one. Apart
 * from its caller, whose stack is needed for more. */
__attribute__((noinline)) static void phase_enter_sig(struct thread_regions *mine, uint32_t phase)
{
    if (phase > ARENA_PHASES)
        return;
    uint32_t name = phase ? phase_name_sig(phase - 1) : 0;
    if (phase && !name)
        return;
    mine->phase_seen = phase;
    mine->phase = name;
    mine->applied = mine->version - 1;
}

/* The node of the innermost region below top; if the arena is full, of the last region that has a node. */
static uint32_t node_of_sig(struct thread_state *self, uint32_t top)
{
    const struct thread_regions *mine = &self->regions;
    uint32_t node = top, module = regions_module_sig(), n = mine->n;
    if (mine->phase && (node = cct_child_sig(&self->samples, top, mine->phase, module)) == 0)
        return top;
    for (uint32_t i = 0; i < n && i < THREAD_REGIONS_MAX; i++) {
        uint32_t child = mine->names[i] ? cct_child_sig(&self->samples, node, mine->names[i], module) : node;
        if (!child)
            break;
        node = child;
    }
    return node;
}

/* --- work for other threads --- */

#define WORK_DEPTH_MAX 16

static bool walk_opener_sig(const struct thread_state *self, const struct thread_work *work, struct unwind_path *path)
{
    struct unwind_start start = {.pc = work->pc, .known = (uint64_t)1 << UNWIND_FP | (uint64_t)1 << UNWIND_SP};
    start.gpr[UNWIND_FP] = work->fp;
    start.gpr[UNWIND_SP] = work->sp;
    struct unwind_bounds bounds = work->opener->bounds;
    struct objmap_block block;
    bounds.alt_low = bounds.alt_high = 0;
    if ((work->sp < bounds.low || work->sp >= bounds.high) && objmap_find_sig(self->reader, work->sp, &block)) {
        bounds.alt_low = block.start;
        bounds.alt_high = block.end;
    }
    path->n_frames = 0; /* the frames that it has are of another stack */
    return unwind_walk_sig(&start, &bounds, loadmap_find_code_sig, loadmap_generation_sig(), path) == UNWIND_COMPLETE;
}

/* Where the paths of the thread go on that opened what all the rest is below. */
static uint64_t creator_sig(const struct thread_work *outermost)
{
    const struct thread_state *opener = outermost->opener;
    bool is_known = opener->creator && opener->creator_of == arena_header_sig();
    return is_known ? opener->creator : NODE_NOWHERE;
}

uint32_t work_node_sig(struct thread_state *self, const struct thread_work *work, struct cct_tree *tree,
                       struct unwind_path *path, bool *is_early)
{
    const struct thread_work *chain[WORK_DEPTH_MAX];
    const struct arena_header *header = arena_header_sig();
    uint32_t n = 0;
    *is_early = false;
    for (; work && n < WORK_DEPTH_MAX; work = work->outer)
        chain[n++] = work;
    uint32_t node = cct_created_sig(tree, tree->root, work ? NODE_NOWHERE : creator_sig(chain[n - 1]));
    while (!work && node && n-- > 0) {
        if (!walk_opener_sig(self, chain[n], path)) {
            *is_early = path->stop == UNWIND_NO_TABLE;
            node = cct_created_sig(tree, tree->root, NODE_NOWHERE);
            break;
        }
        for (uint32_t i = path->n_frames; node && i-- > 0;)
            node =
                cct_child_sig(tree, node, path->frames[i].pc, path->frames[i].module ? path->frames[i].module->ref : 0);
        if (node)
            node = cct_child_sig(tree, node, header->placeholders[PLACEHOLDER_CREATED] + 1, header->libhpcrun_module);
    }
    path->n_frames = 0;
    return node;
}

void work_set_sig(struct thread_state *self, const struct thread_work *work)
{
    self->regions.working = work;
    atomic_signal_fence(memory_order_seq_cst);
    self->regions.version += work != NULL; /* who waits for more stays where he was */
    atomic_signal_fence(memory_order_seq_cst);
}

/* --- tasks --- */

/* A task may run on any thread, inside of whatever that has called to wait there. Its path is the one on which it was
 * made, and from there on that of its own function. */

void task_set_sig(struct thread_state *self, const struct thread_task *task)
{
    atomic_signal_fence(memory_order_seq_cst);
    self->regions.task = *task;
    atomic_signal_fence(memory_order_seq_cst);
    self->regions.version++;
    atomic_signal_fence(memory_order_seq_cst);
}

uint32_t task_creator_sig(const struct thread_state *self)
{
    const struct thread_task *task = &self->regions.task;
    bool is_known = task->pid && task->pid == arena_header_sig()->pid && python_trust_sig() == PYTHON_NONE;
    return is_known ? task->creator : 0;
}

/* A task that has gone on to a stack of its own has no frames of others in its path. */
void task_cut_sig(const struct thread_state *self, struct unwind_path *path)
{
    const struct unwind_frame *frames = path->frames;
    uint32_t i = path->n_frames ? path->n_frames - 1 : 0; /* the outermost one may have no frame address */
    path->n_cut = 0;
    if (!task_creator_sig(self))
        return;
    while (i > 0 && frames[i - 1].cfa > self->regions.task.frame)
        i--;
    const struct unwind_module *module = i > 0 && i < path->n_frames ? frames[i].module : NULL;
    if (module && module->ref == arena_header_sig()->libhpcrun_module)
        path->n_cut = path->n_frames - i;
}

/* --- whose workers they are --- */

static struct {
    const struct thread_state *_Atomic sole;
    atomic_bool is_shared;
} works;

const struct thread_work *work_of_sig(const struct thread_state *self)
{
    const struct thread_regions *made_by = self->maker ? &self->maker->regions : NULL;
    if (self->maker_is_guess && atomic_load_explicit(&works.is_shared, memory_order_relaxed))
        return NULL;
    if (self->regions.working || !made_by || self->maker_depth > made_by->n_open || self->maker_depth > THREAD_OPEN_MAX)
        return self->regions.working;
    return &made_by->open[self->maker_depth - 1];
}

void work_share_sig(void)
{
    atomic_store_explicit(&works.is_shared, true, memory_order_relaxed);
}

const struct thread_state *work_sole_sig(void)
{
    return atomic_load_explicit(&works.sole, memory_order_relaxed);
}

bool work_claim_sole_sig(struct thread_state *self)
{
    const struct thread_state *none = NULL;
    if (!work_sole_sig())
        (void)atomic_compare_exchange_strong(&works.sole, &none, self);
    self->regions.is_sole = work_sole_sig() == self;
    return self->regions.is_sole;
}

static bool is_frame_of_sig(const struct unwind_frame *frame, const struct unwind_module *c_library)
{
    return frame->module && (frame->module == c_library || frame->module->ref == arena_header_sig()->libhpcrun_module);
}

/* Whether a thread of a library's pool is in a function that the library calls for the program: then what it works on
 * does not end meanwhile. From the outside there are frames of the C library and of ours, of that library, and then
 * this function or what the library calls for itself. */
static bool is_called_back_sig(const struct unwind_path *path)
{
    if (path->stop != UNWIND_COMPLETE || !path->n_frames)
        return false;
    uint32_t i = path->n_frames;
    const struct unwind_module *c_library = path->frames[i - 1].module;
    while (i > 0 && is_frame_of_sig(&path->frames[i - 1], c_library))
        i--;
    const struct unwind_module *library = i > 0 ? path->frames[i - 1].module : NULL;
    while (i > 0 && path->frames[i - 1].module == library)
        i--;
    return i > 0 && !is_frame_of_sig(&path->frames[i - 1], c_library);
}

/* Whether self, whose path has been walked, is seen working on another region of its maker than at its last sample, or,
 * where that is a guess, on none; its paths are entered below that from now on, and its path has to be walked again. */
static bool follow_maker_sig(struct thread_state *self)
{
    struct thread_regions *mine = &self->regions;
    bool is_working = self->maker && is_called_back_sig(&self->sample_path), is_early = false;
    const struct thread_work *work = is_working ? work_of_sig(self) : NULL;
    if (is_working && !work && self->maker_is_guess && mine->seen) {
        mine->top = mine->top_of = self->samples.root;
        mine->seen = NULL;
        mine->version++;
        return true;
    }
    if (!work || (work == mine->seen && work->serial == mine->seen_serial && mine->top_of == self->samples.root))
        return false;
    mine->top = work_node_sig(self, work, &self->samples, &self->sample_path, &is_early);
    mine->top_of = self->samples.root;
    mine->seen = is_early ? NULL : work;
    mine->seen_serial = work->serial;
    mine->version++;
    return true;
}

/* The node below which self's paths are entered. */
static uint32_t top_sig(struct thread_state *self)
{
    struct thread_regions *mine = &self->regions;
    const struct thread_work *work = mine->working;
    uint32_t root = self->samples.root;
    bool is_early = false;
    if (mine->top_of != root)
        mine->top = mine->top_of = root;
    if (work)
        mine->top = work_node_sig(self, work, &self->samples, &self->sample_path, &is_early);
    if (is_early)
        mine->applied = mine->version - 1; /* once more at the next sample */
    return mine->top ? mine->top : root;
}

/* Makes the sample tree enter the following paths below the nodes of the regions that self is in.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
static void regions_apply_sig(struct thread_state *self)
{
    struct thread_regions *mine = &self->regions;
    struct cct_tree *tree = &self->samples;
    uint32_t phase = atomic_load_explicit(&arena_header_sig()->phase, memory_order_acquire);
    if (__builtin_expect(phase != mine->phase_seen, 0))
        phase_enter_sig(mine, phase);
    if (mine->applied == mine->version)
        return;
    mine->applied = mine->version;
    uint32_t creator = task_creator_sig(self);
    uint32_t top = creator ? cct_created_sig(tree, tree->root, creator) : top_sig(self);
    uint32_t below = node_of_sig(self, top ? top : tree->root);
    if (below == tree->below)
        return;
    tree->below = below;
    tree->below_partial = node_of_sig(self, tree->partial);
    /* The last sample's path is not below the new node. */
    self->last_pc.leaf = 0;
    self->sample_path.n_reused = 0;
    for (uint32_t i = 0; i < self->sample_path.n_frames; i++)
        self->sample_path.frames[i].node = 0;
}

/* --- the leaf of a path --- */

/* The call-tree node of a sample: see sample-path.h. Runs in the signal handler. */

#define KERNEL_FRAMES_MAX 64
#define NO_FUNCTION (-1)

/* Fills the bounds of the stack; if sp is neither on the thread's stack nor on the alternate signal stack, the stack is
 * a recorded block. */
static void bounds_fill_sig(const struct thread_state *self, const ucontext_t *context, struct unwind_bounds *bounds)
{
    uintptr_t sp = arch_sp_of_context_sig(context);
    *bounds = self->bounds;
    if (context->uc_stack.ss_sp && !(context->uc_stack.ss_flags & SS_DISABLE)) {
        bounds->alt_low = (uintptr_t)context->uc_stack.ss_sp;
        bounds->alt_high = bounds->alt_low + context->uc_stack.ss_size;
    }
    struct objmap_block block;
    if ((sp < bounds->low || sp >= bounds->high) && (sp < bounds->alt_low || sp >= bounds->alt_high) &&
        objmap_find_sig(self->reader, sp, &block)) {
        bounds->alt_low = block.start;
        bounds->alt_high = block.end;
    }
}

_Static_assert((int)UNWIND_COMPLETE == ARENA_STOP_COMPLETE && (int)UNWIND_NO_TABLE == ARENA_STOP_NO_TABLE,
               "what others know of the stops");

static void walk_sig(struct thread_state *self, const ucontext_t *context)
{
    struct unwind_start start;
    arch_start_of_context_sig(context, &start);
    struct unwind_bounds bounds;
    bounds_fill_sig(self, context, &bounds);
    enum unwind_stop stop =
        unwind_walk_sig(&start, &bounds, loadmap_find_code_sig, loadmap_generation_sig(), &self->sample_path);
    atomic_fetch_add_explicit(&self->record->unwind_stops[stop], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->record->n_frames, self->sample_path.n_frames, memory_order_relaxed);
    const struct unwind_path *path = &self->sample_path;
    DEBUG_NOTE_SIG(DEBUG_UNWIND, stop == UNWIND_COMPLETE ? 2 : 1, "path", {"pc", path->frames[0].pc, NULL},
                   {"frames", path->n_frames, NULL}, {"reused", path->n_reused, NULL}, {"stop", stop, NULL},
                   {"outermost", path->frames[path->n_frames - 1].pc, NULL});
}

/* Number of the function at pc in its module's table, NO_FUNCTION when it is not known. */
static int64_t function_at_sig(const struct unwind_module *module, uintptr_t pc)
{
    return module && module->table ? modtab_find_func(module->table, pc - module->bias) : NO_FUNCTION;
}

/* The innermost frame in the function of ip; n_frames when there is none. */
static uint32_t frame_of_sig(const struct unwind_path *path, const struct unwind_module *module, uintptr_t ip)
{
    int64_t function = function_at_sig(module, ip);
    for (uint32_t i = 0; function != NO_FUNCTION && i < path->n_frames; i++) {
        const struct unwind_frame *frame = &path->frames[i];
        bool is_return = !(frame->flags & UNWIND_FRAME_INTERRUPTED);
        if (frame->module == module && function_at_sig(module, frame->pc - is_return) == function)
            return i;
    }
    return path->n_frames;
}

static uint32_t leaf_at_sig(struct thread_state *self, uintptr_t ip, bool *has_frames)
{
    struct unwind_path *path = &self->sample_path;
    const struct unwind_module *module = loadmap_find_code_sig(ip);
    uint32_t found = frame_of_sig(path, module, ip);
    if (found == path->n_frames) {
        *has_frames = false;
        return cct_child_sig(&self->samples, self->samples.below_partial, ip, module ? module->ref : 0);
    }
    uint32_t above = python_trust_sig() != PYTHON_NONE ? python_insert_sig(self, found + 1, true)
                                                       : cct_insert_from_sig(&self->samples, path, found + 1);
    return above ? cct_child_sig(&self->samples, above, ip, module ? module->ref : 0) : 0;
}

uint32_t leaf_of_context_sig(struct thread_state *self, const ucontext_t *context, uintptr_t ip, bool *has_frames)
{
    regions_apply_sig(self);
    walk_sig(self, context);
    if (follow_maker_sig(self)) {
        regions_apply_sig(self);
        walk_sig(self, context);
    }
    task_cut_sig(self, &self->sample_path);
    *has_frames = true;
    if (ip && ip != arch_pc_of_context_sig(context))
        return leaf_at_sig(self, ip, has_frames);
    return python_trust_sig() != PYTHON_NONE ? python_insert_sig(self, 0, false)
                                             : cct_insert_sig(&self->samples, &self->sample_path);
}

uint32_t leaf_of_start_sig(struct thread_state *self, const struct unwind_start *start)
{
    struct thread_waits *waits = &self->waits;
    bool has_python = python_trust_sig() != PYTHON_NONE && self == thread_self_sig();
    struct unwind_path *path = has_python ? &self->sample_path : &self->wait_path;
    uintptr_t sp = start->gpr[UNWIND_SP];
    struct unwind_bounds bounds = self->bounds;
    struct objmap_block block;
    if ((sp < bounds.low || sp >= bounds.high) && objmap_find_sig(self->reader, sp, &block)) {
        bounds.alt_low = block.start;
        bounds.alt_high = block.end;
    }
    const struct unwind_module *outermost;
    regions_apply_sig(self);
    do {
        (void)unwind_walk_sig(start, &bounds, loadmap_find_code_sig, loadmap_generation_sig(), path);
        outermost = path->n_frames ? path->frames[path->n_frames - 1].module : NULL;
    } while (path->stop == UNWIND_NO_TABLE && outermost && loadmap_await_table_sig(outermost));
    atomic_fetch_add_explicit(&self->record->unwind_stops[path->stop], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->record->n_frames, path->n_frames, memory_order_relaxed);
    if (!has_python && waits->below != self->samples.below) {
        waits->below = self->samples.below;
        path->n_reused = 0;
        for (uint32_t i = 0; i < path->n_frames; i++)
            path->frames[i].node = 0;
    }
    task_cut_sig(self, path);
    return has_python ? python_insert_sig(self, 0, false) : cct_insert_sig(&self->samples, path);
}

uint32_t leaf_of_pc_sig(struct thread_state *self, uintptr_t pc, bool *is_own)
{
    struct thread_last_pc *last = &self->last_pc;
    uint32_t generation = loadmap_generation_sig();
    regions_apply_sig(self);
    if (last->pc != pc || !last->leaf || last->generation != generation) {
        const struct loadmap_module *module = loadmap_find_sig(pc);
        *last = (struct thread_last_pc){.pc = pc, .generation = generation, .is_own = loadmap_is_own_sig(module, pc)};
        last->leaf = cct_child_sig(&self->samples, self->samples.below_partial, pc, module ? module->code.ref : 0);
    }
    *is_own = last->is_own;
    return last->leaf;
}

/* The kernel's part of a call chain: words [*first, *end), innermost first. */
static void kernel_part_sig(const struct abi_bytes *chain, bool is_swapped, size_t *first, size_t *end)
{
    size_t n_words = chain->n_bytes / 8, i = 0;
    *first = *end = 0;
    while (i < n_words && abi_word_sig(chain, i, is_swapped) != (uint64_t)PERF_CONTEXT_KERNEL)
        i++;
    if (i == n_words)
        return;
    *first = *end = i + 1;
    while (*end < n_words && *end - *first < KERNEL_FRAMES_MAX &&
           abi_word_sig(chain, *end, is_swapped) < (uint64_t)PERF_CONTEXT_MAX)
        (*end)++;
}

uint32_t leaf_in_kernel_sig(struct thread_state *self, uint32_t leaf, const struct abi_bytes *chain, bool is_swapped)
{
    size_t first, end;
    kernel_part_sig(chain, is_swapped, &first, &end);
    uint32_t module = end > first ? loadmap_kernel_sig() : 0;
    for (size_t i = end; leaf && i > first; i--)
        leaf = cct_child_sig(&self->samples, leaf, abi_word_sig(chain, i - 1, is_swapped), module);
    return leaf;
}
