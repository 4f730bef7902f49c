/* SPDX-License-Identifier: BSD-3-Clause */
/* One sample, from the overflow signal to the records in the arena: see sample.h. Runs in the signal handler. */
#include "runtime/record/sample.h"

#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "fnbounds/recipe-eval-sig.h"
#include "runtime/own/zone.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/trace.h"
#include "base/sigsafe.h"

/* --- recipes --- */

/* How the handler finds recipes: a direct-mapped cache over the shared store. The first miss at a place posts a
 * request, further ones do not. */

#define CACHE_SLOTS 4096
#define ASKED_SLOTS 4096

struct cached {
    _Atomic uint64_t pc;                    /* 0 while it is being changed */
    _Atomic uint64_t recipe_and_generation; /* pointer (48 bits) | low 16 bits of the generation << 48 */
};

static struct {
    const struct recipe_store *store;
    struct cached cache[CACHE_SLOTS];
    _Atomic uint64_t asked[ASKED_SLOTS];
} recipes;

void recipes_map_store_sig(int fd, uint64_t n_bytes)
{
    const struct recipe_store *store = fd < 0 ? NULL : zone_share_sig(ZONE_RECIPES, fd, n_bytes, PROT_READ, 0);
    recipe_eval_init_sig();
    uint64_t n_slot_bytes = store ? store->slots_offset + store->n_slots * sizeof(struct recipe_slot) : 0;
    recipes.store = zone_reach_sig(ZONE_RECIPES, n_slot_bytes) ? store : NULL;
}

void recipes_fork_child_sig(void)
{
    for (unsigned i = 0; i < ASKED_SLOTS; i++)
        atomic_store_explicit(&recipes.asked[i], 0, memory_order_relaxed);
}

static const struct recipe *cache_get_sig(uintptr_t pc, uint64_t generation)
{
    struct cached *slot = &recipes.cache[(pc ^ pc >> 12) & (CACHE_SLOTS - 1)];
    if (atomic_load_explicit(&slot->pc, memory_order_acquire) != pc)
        return NULL;
    uint64_t value = atomic_load_explicit(&slot->recipe_and_generation, memory_order_acquire);
    if (value >> 48 != (generation & 0xffff) || atomic_load_explicit(&slot->pc, memory_order_acquire) != pc)
        return NULL;
    return (const struct recipe *)(uintptr_t)(value << 16 >> 16);
}

static void cache_put_sig(uintptr_t pc, uint64_t generation, const struct recipe *recipe)
{
    struct cached *slot = &recipes.cache[(pc ^ pc >> 12) & (CACHE_SLOTS - 1)];
    atomic_store_explicit(&slot->pc, 0, memory_order_release);
    atomic_store_explicit(&slot->recipe_and_generation, (uint64_t)(uintptr_t)recipe | generation << 48,
                          memory_order_release);
    atomic_store_explicit(&slot->pc, pc, memory_order_release);
}

/* The block of a place, if it lies in the part of the store that is mapped by now. */
static const struct recipe_block *block_find_sig(uint64_t table_id, uint32_t at)
{
    const struct recipe_block *block = recipe_find_block(recipes.store, table_id, at);
    uint64_t n_bytes = (uint64_t)((const char *)block - (const char *)recipes.store) + sizeof *block;
    if (!block || !zone_reach_sig(ZONE_RECIPES, n_bytes))
        return NULL;
    n_bytes += (uint64_t)block->n_recipes * sizeof block->recipes[0];
    return zone_reach_sig(ZONE_RECIPES, n_bytes) ? block : NULL;
}

static void ask_sig(const struct loadmap_module *module, uint32_t at)
{
    uint64_t key = (uint64_t)module->code.ref << 32 | (at + 1u);
    _Atomic uint64_t *slot = &recipes.asked[recipe_hash(module->table_id, at) & (ASKED_SLOTS - 1)];
    if (atomic_exchange(slot, key) != key && !arena_request_sig(REQUEST_RECIPE, module->code.ref, at))
        atomic_store(slot, 0);
}

/* The recipe of a sampled pc.  ctx: signal handler */
static enum recipes_result recipes_find_sig(uintptr_t pc, const struct recipe **recipe)
{
    uint64_t generation = loadmap_generation_sig();
    *recipe = cache_get_sig(pc, generation);
    if (*recipe)
        return RECIPES_FOUND;
    const struct loadmap_module *module = loadmap_find_sig(pc);
    if (!recipes.store || !module || !module->table_id)
        return RECIPES_NEVER;
    const struct modtab_header *table = loadmap_table_sig(module);
    if (!table || !module->code.ref)
        return RECIPES_LATER;
    uint64_t vaddr = pc - module->code.bias;
    if (modtab_find_func(table, vaddr) < 0)
        return RECIPES_NEVER;
    uint32_t at = (uint32_t)(vaddr - table->base_vaddr);
    const struct recipe_block *block = block_find_sig(module->table_id, at);
    if (!block) {
        ask_sig(module, at);
        return RECIPES_LATER;
    }
    if (!block->n_recipes)
        return RECIPES_NEVER;
    *recipe = block->recipes;
    cache_put_sig(pc, generation, *recipe);
    return RECIPES_FOUND;
}

/* --- the sample --- */

/* One sample: unwind, find the address, find the variable, count. */

_Static_assert((int)RECIPE_MEMORY == (int)HIT_MEMORY && (int)RECIPE_DEPENDENT == (int)HIT_DEPENDENT &&
                   (int)RECIPE_COMPUTE == (int)HIT_COMPUTE && (int)RECIPE_LOST == (int)HIT_LOST &&
                   (int)RECIPE_SYSCALL == (int)HIT_SYSCALL && (int)RECIPE_WAITING == (int)HIT_WAITING,
               "a recipe's class is recorded as the hit's class");

#define PENDING_PATIENCE_NS 2000000000u
#define PENDING_GAP_BYTES 65536

static struct {
    _Atomic bool is_active;
} sampling;

/* What is known of the instruction of a sample, beside HIT_FLAG_INEXACT. */
#define SAMPLE_READS 2u
#define SAMPLE_WRITES 4u
_Static_assert(SAMPLE_READS >> 1 == REACH_READS && SAMPLE_WRITES >> 1 == REACH_WRITES, "shifted by one bit");

/* A sample that is being recorded. */
struct current_sample {
    uint32_t leaf;
    uint16_t cpu;
    uint8_t event, class;
    uint16_t flags; /* HIT_FLAG_INEXACT, SAMPLE_* */
    uint32_t metrics;
    uint64_t t_ns; /* CLOCK_MONOTONIC when it was taken, 0: not for the log */
    uint64_t weight, lat_cycles;
    uint64_t pattern, address; /* address: 0 = none */
    bool is_own_code;          /* the profiler's own instruction */
    bool has_frames;           /* the thread's path belongs to this sample */
    bool is_fresh;             /* it is being taken now, and did not wait */
    uint8_t n_bytes;           /* size of the access, 0: not known */
};

void sample_set_active_sig(bool active)
{
    atomic_store(&sampling.is_active, active);
    if (arena_header_sig())
        atomic_store_explicit(&arena_header_sig()->is_sampling, active, memory_order_relaxed);
}

bool sample_is_active_sig(void)
{
    return atomic_load_explicit(&sampling.is_active, memory_order_relaxed);
}

bool sample_is_paused_sig(void)
{
    return atomic_load_explicit(&arena_header_sig()->is_paused, memory_order_relaxed) != 0;
}

static void count_fate_sig(struct thread_state *self, unsigned event, enum fate fate)
{
    atomic_fetch_add_explicit(&self->record->fates[event][fate], 1, memory_order_relaxed);
    if (__builtin_expect(debug_wants_sig(DEBUG_SAMPLE, 1), 0) && fate >= FATE_DROP_REENTERED)
        debug_note_sample_sig("dropped", fate, &(struct debug_word){"event", event, NULL}, 1);
}

/* What became of a sample that is in the trees. */
static void debug_sample_sig(const struct current_sample *taken, const struct resolved *found, enum fate fate)
{
    const struct arena_node *leaf = arena_record_sig(taken->leaf);
    const struct debug_word words[] = {{"pc", leaf->ip, NULL},
                                       {"address", taken->address, NULL},
                                       {"kind", var_key_kind(found->var), NULL},
                                       {"class", taken->class, NULL},
                                       {"weight", taken->weight, NULL}};
    debug_note_sample_sig("taken", fate, words, sizeof words / sizeof *words);
}

/* True when the leaf lies in our own code: an unknown address that it touches is then ours. */
static bool is_own_leaf_sig(uint32_t leaf)
{
    uint32_t own = arena_header_sig()->libhpcrun_module;
    const struct arena_node *node = arena_record_sig(leaf);
    return own && node->module == own && loadmap_is_own_pc_sig(node->ip);
}

/* In a static program our variables are in the program's module, too: what our code touches there is ours. */
static bool is_own_variable_sig(const struct current_sample *taken, uint64_t var)
{
    enum var_kind kind = var_key_kind(var);
    return taken->is_own_code && (kind == VAR_STATIC || kind == VAR_TLS) && taken->leaf && is_own_leaf_sig(taken->leaf);
}

/* Counts the sample at its CPU and notes its page. */
static void record_place_sig(struct thread_state *self, const struct current_sample *taken,
                             const struct resolved *found)
{
    const struct arena_place *place = cct_place_sig(&self->samples, found->var, taken->event, taken->cpu);
    bool has_page = taken->address >= arena_header_sig()->page_bytes && !(taken->address >> 63);
    if (!place || !has_page || !arena_header_sig()->n_homes || found->var == var_key(VAR_UNKNOWN, 0, UNKNOWN_OWN))
        return;
    const struct arena_page page = {.address = taken->address, .start = found->start, .end = found->end};
    cct_page_sig(&self->samples, place, &page);
}

/* Where in a block or symbol the sample lies, and whether it reads or writes. The places of page faults and of the
 * thread's own stack, and those of neighbours, say nothing about the variable. */
static void record_reach_sig(struct thread_state *self, const struct current_sample *taken, const struct arena_hit *hit,
                             const struct resolved *found)
{
    const struct arena_event *event = &arena_header_sig()->events[taken->event];
    const struct reach_sample sample = {taken->address, found->offset, taken->flags >> 1};
    bool is_place = found->offset != RESOLVE_NO_OFFSET && var_key_kind(found->var) != VAR_STACK &&
                    !(taken->flags & HIT_FLAG_INEXACT);
    if (is_place && event->flags & EVENT_ADDRESS && event->source != SOURCE_FAULTS)
        (void)cct_reach_sig(&self->samples, hit, &sample, found->end - found->start);
}

static void trace_sig(struct thread_state *self, const struct current_sample *taken, const struct arena_hit *hit,
                      uint64_t offset)
{
    _Static_assert(RESOLVE_NO_OFFSET == UINT64_MAX, "the log takes it as it is");
    const struct trace_sample sample = {
        .t_ns = taken->t_ns, .offset = offset, .lat_cycles = taken->lat_cycles, .hit = hit, .cpu = taken->cpu};
    trace_put_sig(&self->trace, self->record, self->ref, &sample);
}

/* Lets other threads know of an access. What lies in the thread's own stack frames, nobody else uses. */
static void post_sig(struct thread_state *self, const struct current_sample *taken, const struct resolved *found)
{
    const struct meeting_use use = {.address = taken->address,
                                    .var = found->var,
                                    .leaf = taken->leaf,
                                    .cpu = taken->cpu,
                                    .accesses = (uint8_t)(taken->flags >> 1),
                                    .bytes = taken->n_bytes};
    enum var_kind kind = var_key_kind(found->var);
    bool is_data = kind != VAR_NONE && kind != VAR_STACK && kind != VAR_UNKNOWN;
    if (taken->is_fresh && is_data && !(taken->flags & HIT_FLAG_INEXACT) && !taken->is_own_code)
        meeting_post_sig(self, &use);
}

/* Counts the sample at its leaf under the variable, with its place in it, and closes it with fate. */
static void record_at_sig(struct thread_state *self, const struct current_sample *taken, const struct resolved *found,
                          enum fate fate)
{
    uint64_t var = found->var;
    struct cct_key key = {.var = var,
                          .event = taken->event,
                          .class = taken->class,
                          .flags = taken->flags & HIT_FLAG_INEXACT,
                          .metrics = taken->metrics,
                          .pattern = taken->pattern};
    struct arena_hit *hit = taken->leaf ? cct_hit_sig(&self->samples, taken->leaf, &key, 1, taken->weight) : NULL;
    if (!hit) {
        count_fate_sig(self, taken->event, FATE_DROP_ARENA_FULL);
        return;
    }
    if (taken->lat_cycles) {
        atomic_fetch_add_explicit(&hit->latency, taken->lat_cycles, memory_order_relaxed);
        (void)cct_sketch_sig(&self->samples, var, taken->event, mem_latency_bin_sig(taken->lat_cycles));
    }
    const struct arena_event *plan = &arena_header_sig()->events[taken->event];
    if (plan->source == SOURCE_FAULTS && !(plan->flags & EVENT_RING_ONLY) && !hit->first_ns)
        atomic_store_explicit(&hit->first_ns, own_clock_ns_sig(CLOCK_REALTIME), memory_order_relaxed);
    /* a proxy address belongs to another element, at the same place in it */
    if (taken->pattern && (found->offset != RESOLVE_NO_OFFSET || var_key_kind(var) > VAR_STACK))
        cct_line_sig(&self->samples, hit, taken->address, found->offset);
    else if (found->offset != RESOLVE_NO_OFFSET)
        cct_offset_sig(&self->samples, hit, found->offset);
    record_reach_sig(self, taken, hit, found);
    record_place_sig(self, taken, found);
    if (taken->t_ns)
        trace_sig(self, taken, hit, found->offset);
    if (arena_header_sig()->watches_per_s)
        post_sig(self, taken, found);
    if (__builtin_expect(debug_wants_sig(DEBUG_SAMPLE, 1), 0))
        debug_sample_sig(taken, found, fate);
    count_fate_sig(self, taken->event, fate);
}

static void record_sig(struct thread_state *self, const struct current_sample *taken, uint64_t var, enum fate fate)
{
    const struct resolved found = {.var = var, .offset = RESOLVE_NO_OFFSET};
    record_at_sig(self, taken, &found, fate);
}

static void record_without_address_sig(struct thread_state *self, struct current_sample *taken, enum hit_class class,
                                       enum fate fate)
{
    taken->class = (uint8_t) class;
    taken->flags = 0;
    taken->pattern = taken->address = 0;
    record_sig(self, taken, var_key(VAR_NONE, 0, 0), fate);
}

/* Records a sample without an address, for the reason given by a recipe's class. */
static void record_class_sig(struct thread_state *self, struct current_sample *taken, enum hit_class class)
{
    static const enum fate fates[HIT_CLASSES] = {
        [HIT_COMPUTE] = FATE_NO_ADDRESS_COMPUTE, [HIT_LOST] = FATE_NO_ADDRESS_LOST,
        [HIT_SYSCALL] = FATE_NO_ADDRESS_SYSCALL, [HIT_PLAIN] = FATE_NO_ADDRESS_SOURCE,
        [HIT_WAITING] = FATE_NO_ADDRESS_WAITING,
    };
    record_without_address_sig(self, taken, class, fates[class]);
}

/* Attributes an address; false when that must wait. A proxy address in no known block says nothing. */
static bool record_address_sig(struct thread_state *self, struct current_sample *taken, uint64_t address,
                               const struct thread_frame *frames, unsigned n_frames)
{
    struct resolved found;
    taken->address = address;
    switch (resolve_address_sig(self, address, frames, n_frames, &found)) {
    case RESOLVE_NAMED:
        if (is_own_variable_sig(taken, found.var))
            record_sig(self, taken, var_key(VAR_UNKNOWN, 0, UNKNOWN_OWN), FATE_UNKNOWN_DATA);
        else
            record_at_sig(self, taken, &found, FATE_NAMED);
        return true;
    case RESOLVE_UNKNOWN:
        if (taken->flags & HIT_FLAG_INEXACT)
            record_class_sig(self, taken, HIT_LOST);
        else if (!taken->is_own_code)
            record_at_sig(self, taken, &found, FATE_UNKNOWN_DATA);
        else
            record_sig(self, taken, var_key(VAR_UNKNOWN, 0, UNKNOWN_OWN), FATE_UNKNOWN_DATA);
        return true;
    case RESOLVE_OWN:
        record_sig(self, taken, var_key(VAR_UNKNOWN, 0, UNKNOWN_OWN), FATE_UNKNOWN_DATA);
        return true;
    case RESOLVE_LATER:
    default:
        if (!taken->is_own_code)
            return false;
        record_sig(self, taken, var_key(VAR_UNKNOWN, 0, UNKNOWN_OWN), FATE_UNKNOWN_DATA);
        return true;
    }
}

/* Applies a recipe; false when the address must wait for its object. */
static bool record_recipe_sig(struct thread_state *self, struct current_sample *taken, const struct recipe *recipe,
                              const struct recipe_regs *regs, const struct thread_frame *frames, unsigned n_frames,
                              uint64_t *address)
{
    recipe = recipe_choose_sig(recipe, regs);
    if (!recipe->n_operands) {
        enum hit_class class = recipe->class <= HIT_DEPENDENT ? HIT_LOST : (enum hit_class)recipe->class;
        record_class_sig(self, taken, class);
        return true;
    }
    unsigned which = recipe->n_operands > 1 ? self->toggle++ & 1 : 0;
    const struct recipe_operand *operand = &recipe->operands[which];
    if (!recipe_address_sig(operand, regs, address)) {
        record_class_sig(self, taken, HIT_LOST);
        return true;
    }
    taken->class = recipe->class;
    taken->flags = operand->flags & RECIPE_OP_INEXACT ? HIT_FLAG_INEXACT : 0;
    taken->flags |= operand->flags & RECIPE_OP_READ ? SAMPLE_READS : 0;
    taken->flags |= operand->flags & RECIPE_OP_WRITE ? SAMPLE_WRITES : 0;
    taken->n_bytes = operand->size_bytes <= 64 ? (uint8_t)operand->size_bytes : 0;
    taken->pattern = recipe_pattern_sig(recipe, regs);
    return record_address_sig(self, taken, *address, frames, n_frames);
}

/* Copies the frames of the sample's path; a frame that the hardware's exact leaf has replaced gets that leaf as its
 * node. */
static unsigned frames_copy_sig(const struct thread_state *self, const struct current_sample *taken,
                                struct thread_frame *frames)
{
    const struct unwind_path *path = &self->sample_path;
    unsigned n = path->n_frames < THREAD_PENDING_FRAMES ? path->n_frames : THREAD_PENDING_FRAMES;
    if (!taken->has_frames)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t node = path->frames[i].node;
        frames[i] = (struct thread_frame){.cfa = path->frames[i].cfa, .node = node ? node : taken->leaf};
    }
    return n;
}

/* The allocator touches a block that it clears or copies page after page: such samples share one entry. */
static bool pending_extend_sig(struct thread_state *self, const struct current_sample *taken, uint64_t address)
{
    for (uint32_t i = self->n_pending; i-- > 0;) {
        struct thread_pending *pending = &self->pending[(self->first_pending + i) & (THREAD_PENDING_MAX - 1)];
        if (pending->leaf != taken->leaf || pending->event != taken->event || pending->class != taken->class ||
            pending->flags != taken->flags || pending->pattern != taken->pattern || !pending->has_address ||
            pending->cpu != taken->cpu || pending->metrics || taken->metrics || taken->lat_cycles ||
            address + PENDING_GAP_BYTES < pending->address || address > pending->last_address + PENDING_GAP_BYTES)
            continue;
        pending->address = address < pending->address ? address : pending->address;
        pending->last_address = address > pending->last_address ? address : pending->last_address;
        pending->last_t_ns = taken->t_ns ? taken->t_ns : pending->last_t_ns;
        pending->weight += taken->weight;
        pending->n_samples++;
        return true;
    }
    return false;
}

static struct thread_pending *pending_at_sig(struct thread_state *self, uint32_t i)
{
    return &self->pending[(self->first_pending + i) & (THREAD_PENDING_MAX - 1)];
}

/* Gives up the oldest sample that waits for a recipe: a function whose recipe never comes must not keep out others.
 * False when all wait for objects. */
static bool pending_evict_sig(struct thread_state *self)
{
    uint32_t oldest = 0;
    while (oldest < self->n_pending && pending_at_sig(self, oldest)->has_address)
        oldest++;
    if (oldest == self->n_pending)
        return false;
    count_fate_sig(self, pending_at_sig(self, oldest)->event, FATE_DROP_RAW_FULL);
    for (uint32_t i = oldest; i > 0; i--)
        *pending_at_sig(self, i) = *pending_at_sig(self, i - 1);
    self->first_pending = (self->first_pending + 1) & (THREAD_PENDING_MAX - 1);
    self->n_pending--;
    return true;
}

static struct thread_pending *pending_push_sig(struct thread_state *self, const struct current_sample *taken)
{
    if (self->n_pending == THREAD_PENDING_MAX && !pending_evict_sig(self)) {
        count_fate_sig(self, taken->event, FATE_DROP_RAW_FULL);
        return NULL;
    }
    struct thread_pending *pending =
        &self->pending[(self->first_pending + self->n_pending++) & (THREAD_PENDING_MAX - 1)];
    pending->leaf = taken->leaf;
    pending->cpu = taken->cpu;
    pending->event = taken->event;
    pending->class = taken->class;
    pending->flags = taken->flags;
    pending->pattern = taken->pattern;
    pending->weight = taken->weight;
    pending->metrics = taken->metrics;
    pending->lat_cycles = taken->lat_cycles;
    pending->has_address = false;
    pending->n_samples = 1;
    pending->t_ns = taken->t_ns ? taken->t_ns : own_clock_ns_sig(CLOCK_MONOTONIC);
    pending->last_t_ns = pending->t_ns;
    pending->is_traced = taken->t_ns != 0;
    pending->n_frames = (uint8_t)frames_copy_sig(self, taken, pending->frames);
    return pending;
}

/* The earliest sample of an entry has been dealt with. */
static void pending_step_sig(struct thread_pending *pending, struct current_sample *taken)
{
    pending->weight -= taken->weight;
    pending->n_samples--;
    pending->address += (pending->last_address - pending->address) / pending->n_samples;
    if (taken->t_ns)
        taken->t_ns += (pending->last_t_ns - taken->t_ns) / pending->n_samples;
}

/* Attributes the samples of an entry one by one, spread evenly over their addresses and times; false when a sample must
 * wait. */
static bool pending_record_sig(struct thread_state *self, struct thread_pending *pending, struct current_sample *taken)
{
    while (pending->n_samples > 1) {
        taken->weight = pending->weight / pending->n_samples;
        if (!record_address_sig(self, taken, pending->address, pending->frames, pending->n_frames))
            return false;
        pending_step_sig(pending, taken);
    }
    taken->weight = pending->weight;
    return record_address_sig(self, taken, pending->address, pending->frames, pending->n_frames);
}

/* True when the pending sample is done (recorded or dropped). */
static bool pending_try_sig(struct thread_state *self, struct thread_pending *pending, bool final)
{
    struct current_sample taken = {.leaf = pending->leaf,
                                   .cpu = pending->cpu,
                                   .event = pending->event,
                                   .class = pending->class,
                                   .flags = pending->flags,
                                   .pattern = pending->pattern,
                                   .t_ns = pending->is_traced ? pending->t_ns : 0,
                                   .weight = pending->weight,
                                   .metrics = pending->metrics,
                                   .lat_cycles = pending->lat_cycles};
    taken.is_own_code = is_own_leaf_sig(taken.leaf);
    if (!pending->has_address) {
        const struct recipe *recipe = NULL;
        enum recipes_result result = recipes_find_sig(pending->regs.rip, &recipe);
        if (result == RECIPES_NEVER) {
            record_class_sig(self, &taken, HIT_LOST);
            return true;
        }
        if (result == RECIPES_FOUND) {
            if (record_recipe_sig(self, &taken, recipe, &pending->regs, pending->frames, pending->n_frames,
                                  &pending->address))
                return true;
            pending->has_address = true;
            pending->class = taken.class;
            pending->flags = taken.flags;
            pending->pattern = taken.pattern;
        }
    } else if (pending_record_sig(self, pending, &taken)) {
        return true;
    }
    if (!final && own_clock_ns_sig(CLOCK_MONOTONIC) - pending->t_ns < PENDING_PATIENCE_NS)
        return false;
    taken.weight = pending->weight / pending->n_samples;
    if (pending->has_address)
        for (uint32_t n = pending->n_samples; n > 0; n--) {
            record_sig(self, &taken, var_key(VAR_UNKNOWN, 0, UNKNOWN_NO_BLOCK), FATE_UNKNOWN_DATA);
            taken.t_ns += n > 1 && taken.t_ns ? (pending->last_t_ns - taken.t_ns) / (n - 1) : 0;
        }
    else
        count_fate_sig(self, pending->event, FATE_DROP_NO_RECIPE);
    return true;
}

/* Tries the pending samples again, or only those that wait for an object, and closes the gaps in the list. */
static void pending_retry_sig(struct thread_state *self, bool only_parked, bool final)
{
    uint32_t n = self->n_pending, kept = 0, n_parked = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct thread_pending *pending = &self->pending[(self->first_pending + i) & (THREAD_PENDING_MAX - 1)];
        if ((pending->has_address || !only_parked) && pending_try_sig(self, pending, final))
            continue;
        struct thread_pending *target = &self->pending[(self->first_pending + kept++) & (THREAD_PENDING_MAX - 1)];
        if (target != pending)
            *target = *pending;
        n_parked += target->has_address;
    }
    self->n_pending = kept;
    self->n_parked = n_parked;
}

void sample_resolve_pending_sig(struct thread_state *self, bool final)
{
    pending_retry_sig(self, false, final);
}

void sample_forget_pending_sig(struct thread_state *self)
{
    self->n_pending = self->n_parked = 0;
    for (unsigned event = 0; event < arena_header_sig()->n_events; event++) {
        uint64_t n_left = atomic_load(&self->record->taken[event]);
        for (unsigned fate = 0; fate < FATE_TAKEN_MAX; fate++)
            n_left -= atomic_load(&self->record->fates[event][fate]);
        atomic_fetch_add(&self->record->fates[event][FATE_DROP_STOPPED], n_left);
    }
}

void sample_resolve_parked_sig(struct thread_state *self)
{
    pending_retry_sig(self, true, false);
}

bool sample_has_parked_sig(const struct thread_state *self)
{
    return self->n_parked > 0;
}

void sample_drop_sig(struct thread_state *self, unsigned event, enum fate fate)
{
    atomic_fetch_add_explicit(&self->record->taken[event], 1, memory_order_relaxed);
    count_fate_sig(self, event, fate);
}

/* True when the sample cannot be recorded at all; its fate has been counted. */
static bool refuse_sig(struct thread_state *self, unsigned event)
{
    atomic_fetch_add_explicit(&self->record->taken[event], 1, memory_order_relaxed);
    if (!sample_is_active_sig() || sample_is_paused_sig() || self->ending) {
        count_fate_sig(self, event, FATE_DROP_STOPPED);
        return true;
    }
    if (self->tree_busy) {
        count_fate_sig(self, event, FATE_DROP_REENTERED);
        return true;
    }
    return false;
}

static struct arena_node *node_of_sig(uint32_t ref)
{
    return arena_record_sig(ref);
}

/* The first sample of a thread begins its tree. False when the arena is full. */
static bool need_tree_sig(struct thread_state *self)
{
    struct cct_tree *tree = &self->samples;
    struct arena_cursor chunks = {0};
    if (tree->root)
        return true;
    if (arena_take_sig(&chunks, CCT_CHUNKS) && self->sees_faults)
        arena_touch_sig(&chunks);
    if (!cct_init_in_sig(tree, ARENA_NODES, self->ref, true, &chunks)) {
        tree->root = 0;
        return false;
    }
    node_of_sig(tree->root)->ip = node_of_sig(self->allocs.root)->ip;
    self->record->root = tree->root;
    self->record->partial = tree->partial;
    return true;
}

static unsigned cpu_sig(const struct sample_event *event)
{
    int cpu = event->has_access && event->access.has_cpu ? (int)event->access.cpu : sched_getcpu();
    return cpu < 0 ? 0 : (unsigned)cpu;
}

static void taken_start_sig(struct thread_state *self, struct current_sample *taken, const struct sample_event *event)
{
    *taken = (struct current_sample){
        .event = event->index, .weight = event->weight, .cpu = (uint16_t)cpu_sig(event), .class = HIT_KERNEL_ADDR};
    if (event->has_access && arena_header_sig()->events[event->index].flags & EVENT_DATA_SRC) {
        taken->metrics = event->access.metrics;
        taken->lat_cycles = event->access.lat_cycles;
        if (taken->metrics >> MEM_LOAD & 1)
            taken->flags |= SAMPLE_READS;
        if ((taken->metrics >> MEM_STORE | taken->metrics >> MEM_LOCKED) & 1)
            taken->flags |= SAMPLE_WRITES;
        if (!taken->metrics && !event->access.is_no_access)
            atomic_fetch_add_explicit(&self->record->n_no_metric[event->index], 1, memory_order_relaxed);
    }
    if (self->n_pending)
        sample_resolve_pending_sig(self, false);
}

static void take_known_address_sig(struct thread_state *self, struct current_sample *taken, uint64_t address)
{
    struct thread_frame frames[THREAD_PENDING_FRAMES];
    unsigned n_frames = frames_copy_sig(self, taken, frames);
    if (record_address_sig(self, taken, address, frames, n_frames) || pending_extend_sig(self, taken, address))
        return;
    struct thread_pending *pending = pending_push_sig(self, taken);
    if (pending) {
        pending->address = pending->last_address = address;
        pending->has_address = true;
        self->n_parked++;
    }
}

static void record_earlier_sig(struct thread_state *self, struct current_sample *taken, uint64_t var)
{
    record_sig(self, taken, var, var_key_kind(var) == VAR_UNKNOWN ? FATE_UNKNOWN_DATA : FATE_NAMED);
}

/* Takes the address from the event's record, or the reason why the record has none. */
static void take_access_sig(struct thread_state *self, struct current_sample *taken, const struct sample_event *event)
{
    const struct access *access = &event->access;
    if (event->earlier_var)
        record_earlier_sig(self, taken, event->earlier_var);
    else if (event->has_access && access->has_address)
        take_known_address_sig(self, taken, access->address);
    else if (event->has_access && access->is_no_access)
        record_without_address_sig(self, taken, HIT_COMPUTE, FATE_NO_ADDRESS_NO_ACCESS);
    else if (arena_header_sig()->events[event->index].flags & EVENT_ADDRESS)
        record_without_address_sig(self, taken, HIT_LOST, FATE_NO_ADDRESS_LOST);
    else
        record_without_address_sig(self, taken, HIT_PLAIN, FATE_NO_ADDRESS_SOURCE);
}

static void take_by_recipe_sig(struct thread_state *self, struct current_sample *taken, const ucontext_t *context)
{
    struct recipe_regs regs;
    struct thread_frame frames[THREAD_PENDING_FRAMES];
    const struct recipe *recipe = NULL;
    uint64_t address = 0;
    bool has_address = false;
    recipe_regs_of_ucontext_sig(context, &regs);
    regs.fs_base = self->thread_pointer;
    uintptr_t sp = (uintptr_t)regs.gpr[RECIPE_RSP];
    if (sp >= self->bounds.low && sp < self->bounds.high) {
        regs.stack_low = self->bounds.low;
        regs.stack_high = self->bounds.high;
    }
    taken->is_own_code = self->in_hook || is_own_leaf_sig(taken->leaf);
    enum recipes_result result = recipes_find_sig(regs.rip, &recipe);
    if (result == RECIPES_NEVER) {
        record_class_sig(self, taken, HIT_LOST);
        return;
    }
    if (result == RECIPES_FOUND) {
        unsigned n_frames = frames_copy_sig(self, taken, frames);
        if (record_recipe_sig(self, taken, recipe, &regs, frames, n_frames, &address))
            return;
        has_address = true;
    }
    struct thread_pending *pending = pending_push_sig(self, taken);
    if (pending) {
        pending->regs = regs;
        pending->regs.stack_low = pending->regs.stack_high = 0; /* the stack's words will have changed by then */
        pending->address = pending->last_address = address;
        pending->has_address = has_address;
        self->n_parked += has_address;
    }
}

static void leaf_sig(struct thread_state *self, struct current_sample *taken, const struct sample_event *event,
                     const ucontext_t *context)
{
    const struct arena_event *plan = &arena_header_sig()->events[event->index];
    const struct access *access = &event->access;
    uintptr_t pc = arch_pc_of_context_sig(context);
    bool is_exact = event->has_access && access->is_exact && !access->is_in_kernel && access->ip;
    taken->leaf = leaf_of_context_sig(self, context, is_exact ? (uintptr_t)access->ip : 0, &taken->has_frames);
    if (event->has_access) {
        uintptr_t at = is_exact ? (uintptr_t)access->ip : pc;
        taken->is_own_code = self->in_hook || loadmap_is_own_sig(loadmap_find_sig(at), at);
    }
    if (event->has_access && plan->flags & EVENT_KERNEL && taken->leaf)
        taken->leaf = leaf_in_kernel_sig(self, taken->leaf, &access->callchain, access_is_swapped_sig(plan));
}

uint64_t sample_rest_sig(const struct thread_state *self, uint64_t cpu_ns)
{
    const struct thread_waits *waits = &self->waits;
    uint64_t away_ns = own_clock_ns_sig(CLOCK_MONOTONIC) - cpu_ns - waits->began_ns;
    return cpu_ns && waits->began_ns && away_ns > waits->blocked_ns && away_ns < INT64_MAX ? away_ns - waits->blocked_ns
                                                                                           : 0;
}

/* How often the thread has left a processor, and 1; 0: not known. */
static uint64_t n_left_sig(void)
{
    struct rusage usage;
    bool is_known = !sandbox_is_entered_sig() && own_call_sig(SYS_getrusage, RUSAGE_THREAD, &usage) == 0;
    return is_known ? 1 + (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw) : 0;
}

void sample_look_sig(struct thread_state *self)
{
    if (self->page_ins.fd < 0)
        return;
    self->waits.away_ns = sample_rest_sig(self, own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID));
    self->waits.n_left = n_left_sig();
    self->waits.fault_pc = 0;
}

/* A page fault that is sampled before the kernel handles it may begin to wait, and does so again: it is no new look. */
static void look_sig(struct thread_state *self, const struct sample_event *event, const ucontext_t *context)
{
    if (arena_header_sig()->events[event->index].source == SOURCE_FAULTS)
        self->waits.fault_pc = arch_pc_of_context_sig(context);
    else
        sample_look_sig(self);
}

void sample_take_sig(struct thread_state *self, const struct sample_event *event, const ucontext_t *context)
{
    struct current_sample taken;
    if (refuse_sig(self, event->index))
        return;
    taken_start_sig(self, &taken, event);
    taken.is_fresh = true;
    if (arena_header_sig()->trace)
        taken.t_ns = event->t_ns ? event->t_ns : own_clock_ns_sig(CLOCK_MONOTONIC);
    if (need_tree_sig(self))
        leaf_sig(self, &taken, event, context);
    if (!taken.leaf)
        count_fate_sig(self, event->index, FATE_DROP_ARENA_FULL);
    else if (arena_header_sig()->events[event->index].source == SOURCE_EADDR)
        take_by_recipe_sig(self, &taken, context);
    else
        take_access_sig(self, &taken, event);
    look_sig(self, event, context);
}

void sample_take_call_sig(struct thread_state *self, const struct sample_call *call)
{
    struct current_sample taken = {.event = call->event, .weight = call->weight, .class = HIT_PLAIN};
    atomic_fetch_add_explicit(&self->record->taken[call->event], 1, memory_order_relaxed);
    if (need_tree_sig(self))
        taken.leaf = call->start ? leaf_of_start_sig(self, call->start) : self->samples.root;
    const struct unwind_module *module = loadmap_find_code_sig(call->function);
    if (taken.leaf && call->function)
        taken.leaf = cct_child_sig(&self->samples, taken.leaf, call->function, module ? module->ref : 0);
    if (call->var)
        record_sig(self, &taken, call->var, FATE_NAMED);
    else
        record_without_address_sig(self, &taken, HIT_PLAIN, FATE_NO_ADDRESS_SOURCE);
}

void sample_take_page_in_sig(struct thread_state *self, const ucontext_t *context)
{
    struct thread_waits *waits = &self->waits;
    struct current_sample taken = {.event = (uint8_t)waits->event, .class = HIT_PLAIN};
    uint64_t rest_ns = sample_rest_sig(self, own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID)), n_left = n_left_sig();
    taken.weight = rest_ns > waits->away_ns ? rest_ns - waits->away_ns : 0;
    uint64_t n_most = arch_pc_of_context_sig(context) == waits->fault_pc ? 2 : 1;
    /* In a call that is bracketed, the page-in is part of the call's wait. */
    bool is_sure = waits->n_left && n_left > waits->n_left && n_left - waits->n_left <= n_most &&
                   !waits->now.since_ns && taken.weight;
    if (is_sure && !refuse_sig(self, taken.event)) {
        if (need_tree_sig(self))
            taken.leaf = leaf_of_context_sig(self, context, 0, &taken.has_frames);
        record_without_address_sig(self, &taken, HIT_PLAIN, FATE_NO_ADDRESS_SOURCE);
        waits->blocked_ns += taken.weight;
        rest_ns -= taken.weight;
    }
    waits->away_ns = rest_ns;
    waits->n_left = n_left;
    waits->fault_pc = 0;
}

void sample_take_plain_sig(struct thread_state *self, const struct sample_event *event)
{
    struct current_sample taken;
    atomic_fetch_add_explicit(&self->record->taken[event->index], 1, memory_order_relaxed);
    taken_start_sig(self, &taken, event);
    if (need_tree_sig(self))
        taken.leaf = leaf_of_pc_sig(self, (uintptr_t)event->access.ip, &taken.is_own_code);
    if (!taken.leaf)
        count_fate_sig(self, event->index, FATE_DROP_ARENA_FULL);
    else
        take_access_sig(self, &taken, event);
}
