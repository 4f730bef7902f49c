/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of a sample in the call tree: the leaf of its call path, below the regions that its thread is in. */
#ifndef LOCUS_RUNTIME_RECORD_SAMPLE_PATH_H
#define LOCUS_RUNTIME_RECORD_SAMPLE_PATH_H

#include <ucontext.h>

#include "runtime/record/thread.h"
#include "sampling/abi/perf-record.h"

/* --- regions --- */

/* Regions: parts of its work that the program names while it does them, nested and per thread. They are nodes of the
 * sample tree above the call paths of the samples taken in them: their module is the pseudo module "[region]", and
 * their address is the reference of the name's arena_string. Around them are phases, which the process's owner begins
 * from outside: arena_header.phase. */

/* The number of regions that the calling thread is in.  ctx: any */
uint32_t regions_depth_sig(void);

/* Forgets the phases of the parent's arena: that of a child numbers its own. self: the only thread.  ctx: at-fork child
 */
void regions_fork_child_sig(struct thread_state *self);

/* Counts the regions that a thread is still in when it ends.  ctx: any */
void regions_thread_ends_sig(const struct thread_state *self);

/* The pseudo module; 0 before the first region.  ctx: any */
uint32_t regions_module_sig(void);
void regions_set_module_sig(uint32_t ref);

/* Adds to one of the counts of the arena.  ctx: any */
void regions_count_sig(enum region_fault fault, uint64_t n);

/* --- work for other threads --- */

/* The node in a tree of self's, below the root, of the path on which work was opened, with a mark that another thread's
 * path follows; that of a path which is not known, if the opener's cannot be walked. path, of self, is used for the
 * walk and is empty then. 0 when the arena is full. *is_early: a table of the path is not there yet.
 * ctx: owner of the tree, while self works on work */
uint32_t work_node_sig(struct thread_state *self, const struct thread_work *work, struct cct_tree *tree,
                       struct unwind_path *path, bool *is_early);

/* What self works on for another thread, NULL: nothing that is known.  ctx: any, of self */
const struct thread_work *work_of_sig(const struct thread_state *self);

/* Makes self, the calling thread, the only one whose outermost regions are worked on by workers who are told of no
 * other, unless there is one; returns whether it is self.  ctx: ordinary */
bool work_claim_sole_sig(struct thread_state *self);

/* Threads that were only supposed to work for that one (maker_is_guess) do not count as such from now on.  ctx: any */
void work_share_sig(void);

/* The thread that was made the only one; NULL: none yet.  ctx: any */
const struct thread_state *work_sole_sig(void);

/* self, the calling thread, works on work from now on, or, NULL, on nothing for others.  ctx: ordinary */
void work_set_sig(struct thread_state *self, const struct thread_work *work);

/* self, the calling thread, runs task from now on.  ctx: ordinary */
void task_set_sig(struct thread_state *self, const struct thread_task *task);

/* The node, in whatever tree of allocations, of the path on which the task was made that self runs; 0: it runs none, or
 * the path is not known.  ctx: any, of self */
uint32_t task_creator_sig(const struct thread_state *self);

/* Takes those frames of path, of self, out of it that are outside of the task which self runs.  ctx: any, of self */
void task_cut_sig(const struct thread_state *self, struct unwind_path *path);

/* --- the leaf of a path --- */

/* The call-tree node of a sample: the interrupted call path, corrected by the record of a precise event, and extended
 * by the frames of the kernel. */

/* Unwinds the interrupted context into the sample tree; 0 when the arena is full. ip, unless 0, is the instruction that
 * a precise event sampled, a little earlier than the interrupted one. If its function is still on the stack, ip
 * replaces that frame's pc. Otherwise its callers are no longer known: the leaf goes below the partial root and
 * *has_frames is false.  ctx: signal handler of self */
uint32_t leaf_of_context_sig(struct thread_state *self, const ucontext_t *context, uintptr_t ip, bool *has_frames);

/* Leaf of a call that was made from *start, of which only the stack and frame pointer are known. The path is walked
 * into wait_path, or sample_path where there is Python.  ctx: ordinary code of self with tree_busy set, or of who ends
 * it */
uint32_t leaf_of_start_sig(struct thread_state *self, const struct unwind_start *start);

/* Leaf of a sample of which only the pc is known, below the partial root. is_own: the profiler's own instruction.
 * ctx: signal handler of self, or its ordinary code with tree_busy set */
uint32_t leaf_of_pc_sig(struct thread_state *self, uintptr_t pc, bool *is_own);

/* Extends the path of leaf by the kernel's part of a record's call chain; returns the new leaf, 0 when the arena is
 * full.  ctx: as leaf_of_pc_sig */
uint32_t leaf_in_kernel_sig(struct thread_state *self, uint32_t leaf, const struct abi_bytes *chain, bool is_swapped);

#endif
