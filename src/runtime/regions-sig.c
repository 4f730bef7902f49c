/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions in the sample tree: see regions.h. Runs in the signal handler. */
#include "runtime/regions.h"

#include <stddef.h>

#include "base/sigsafe.h"

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

/* The node of the innermost region below top; where the arena is full, of the last one that has a node. */
static uint32_t node_of_sig(struct thread_state *self, uint32_t top)
{
    const struct thread_regions *mine = &self->regions;
    uint32_t node = top, module = regions_module_sig(), n = mine->n;
    for (uint32_t i = 0; i < n && i < THREAD_REGIONS_MAX; i++) {
        uint32_t child = mine->names[i] ? cct_child_sig(&self->samples, node, mine->names[i], module) : node;
        if (!child)
            break;
        node = child;
    }
    return node;
}

void regions_apply_sig(struct thread_state *self)
{
    struct thread_regions *mine = &self->regions;
    struct cct_tree *tree = &self->samples;
    if (mine->applied == mine->version)
        return;
    mine->applied = mine->version;
    uint32_t below = node_of_sig(self, tree->root);
    if (below == tree->below)
        return;
    tree->below = below;
    tree->below_partial = node_of_sig(self, tree->partial);
    /* Nothing of the last sample's path is below the new node. */
    self->last_pc.leaf = 0;
    self->sample_path.n_reused = 0;
    for (uint32_t i = 0; i < self->sample_path.n_frames; i++)
        self->sample_path.frames[i].node = 0;
}
