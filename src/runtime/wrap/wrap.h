/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wrappers of libc functions share.
 *
 * The room: wrap-x.c is what the program calls, a file for each kind of call; those of signals and masks
 * (wrap-signal.c, wrap-mask.c, wrap-altstack.c) help the others. link-preloaded.c (or link-static.c in a static
 * program) finds the real functions for all of them. api.c is what the program calls on purpose. */
#ifndef LOCUS_RUNTIME_WRAP_WRAP_H
#define LOCUS_RUNTIME_WRAP_WRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/own/own-call.h" /* when to use the environment below: sandbox_is_deadly_sig */

#define WRAP_EXPORT __attribute__((visibility("default")))

/* The next definition of a function after this library's; NULL when there is none. errno is kept.  ctx: ordinary */
void *wrap_real(const char *name);

/* The same for a function of a library that may have been loaded with RTLD_LOCAL: if there is no next definition, that
 * in the scope of the module which calls it, at caller.  ctx: ordinary */
void *wrap_real_for(const char *name, const void *caller);

/* A function that modules call through their slots, and what the slots are to hold. */
struct wrap_change {
    const char *function;
    uintptr_t from, to; /* from 0: left alone */
    bool may_be_lazy;   /* a slot that will be filled at the first call gets to at once */
};

/* Changes the slots of all loaded modules but ours. Data that happens to hold such a function is left alone.  ctx:
 * ordinary, shielded */
void wrap_slots_change(const struct wrap_change *changes, size_t n);

/* Notes a child that was made with these flags of clone and without the handlers of fork, because it is not measured;
 * does nothing if it shares our memory. errno is kept.  ctx: any, the parent */
void wrap_note_clone(int pid, uint64_t flags);

/* The range of the profiler's own code and data if they are a library of their own; else both 0.  ctx: any */
void wrap_own_image(uintptr_t *low, uintptr_t *high);

/* --- signals --- */

/* The real state of signals in the calling thread before wrap_signal_show. */
struct wrap_signal_state {
    uint64_t mask;
    bool has_mask, is_ignored;
};

/* Called when another program is about to be started, by exec or by a function of libc that makes a process. The new
 * program inherits the mask and the ignored signals, so until wrap_signal_hide they are really what the program has
 * set; in a child of vfork, too.  ctx: any */
void wrap_signal_show(struct wrap_signal_state *before);
void wrap_signal_hide(const struct wrap_signal_state *before);

/* A call of system() begins. Returns whether our code runs the command: if the program ignores our signal and can_run.
 * As libc's system() and ours do not know of each other's calls, the first of several at a time decides for all. If our
 * code runs it, SIGINT and SIGQUIT are ignored until the last call ends, and defaults gets those of them that have
 * their default action in the shell. Each call ends with _end, also if it is cancelled.  ctx: ordinary, not in a child
 * of vfork */
bool wrap_system_begin(bool can_run, sigset_t *defaults);
void wrap_system_end(void);

/* libc's sigprocmask as the program sees it: 0, or the error's number.  ctx: any */
int wrap_mask_change(int how, const sigset_t *set, sigset_t *old);

/* --- dlopen --- */

/* Marks the load map as changed and returns the real function to jump to, or one that takes its place. index: 0 dlopen,
 * 1 dlmopen, 2 dlclose. arguments: the first three of the call, as they will be given to it; caller: where the call
 * returns to. Called from the stubs only.  ctx: ordinary */
void *wrap_dl_target(int index, uintptr_t *arguments, uintptr_t caller) __attribute__((visibility("hidden")));

/* --- the environment of a program that must not be measured --- */

/* Bytes that environ_without_us_sig needs as room for this environment (NULL: an empty one), which must not change in
 * between.  ctx: any */
size_t environ_room_sig(char *const *environment);

/* Copies an environment into room, which is aligned as a pointer, without the entries that make a program measured: our
 * library in LD_PRELOAD, and our variables. Other entries are shared with the original. Nothing is allocated.  ctx:
 * any, also in a child of vfork */
char **environ_without_us_sig(char *const *environment, void *room);

#endif
