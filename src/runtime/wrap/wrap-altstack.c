/* SPDX-License-Identifier: BSD-3-Clause */
/* Alternate signal stacks of our own, and the program's view of them: see threads.h. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/events/events.h"
#include "runtime/events/signals.h"
#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/process/threads.h"
#include "runtime/record/arena-writer.h"
#include "runtime/wrap/wrap.h"

#define OWN_BYTES 65536
#define PROGRAM_BYTES 16384 /* for the program's handler on a stack where samples may come, too */
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static struct {
    _Atomic bool is_begun, is_used, is_small, is_logged;
} altstacks;

/* Size of the kernel's signal frame; it grows with the vector registers. */
static size_t frame_bytes(void)
{
    size_t n_bytes = getauxval(AT_MINSIGSTKSZ);
    return n_bytes ? n_bytes : MINSIGSTKSZ;
}

static int kernel_altstack(const stack_t *new, stack_t *old)
{
    return (int)own_call_sig(SYS_sigaltstack, new, old);
}

bool altstack_is_used(void)
{
    return atomic_load_explicit(&altstacks.is_used, memory_order_relaxed);
}

bool altstack_is_small(void)
{
    return atomic_load_explicit(&altstacks.is_small, memory_order_relaxed);
}

/* A guard that divides no mapping, where the kernel has that (Linux 6.13). */
static void guard(char *page, size_t page_bytes)
{
    if (own_call_sig(SYS_madvise, page, page_bytes, MADV_GUARD_INSTALL) != 0)
        own_call_sig(SYS_mprotect, page, page_bytes, PROT_NONE);
}

static void touch_path(struct unwind_path *path)
{
    size_t page_bytes = getauxval(AT_PAGESZ);
    uintptr_t start = (uintptr_t)path & ~(page_bytes - 1), regs = (uintptr_t)path->regs & ~(page_bytes - 1);
    own_call_sig(SYS_madvise, start, page_bytes, MADV_POPULATE_WRITE);
    own_call_sig(SYS_madvise, regs, page_bytes, MADV_POPULATE_WRITE);
}

void altstack_touch(struct thread_state *state)
{
    size_t page_bytes = getauxval(AT_PAGESZ);
    size_t below = (frame_bytes() + unwind_handler_bytes_sig() + page_bytes - 1) / page_bytes * page_bytes;
    if (below < OWN_BYTES)
        own_call_sig(SYS_madvise, (char *)state - below, below + 2 * page_bytes, MADV_POPULATE_WRITE);
    touch_path(&state->sample_path);
    touch_path(&state->alloc_path);
}

char *altstack_map(size_t n_bytes, unsigned *n, size_t *own_stack_bytes, size_t *stride_bytes)
{
    size_t page_bytes = getauxval(AT_PAGESZ), below = page_bytes + OWN_BYTES;
    size_t stride = (below + n_bytes + page_bytes - 1) / page_bytes * page_bytes;
    char *memory = zone_pages_sig(*n * stride);
    if (!memory) {
        *n = 1;
        memory = zone_pages_sig(stride);
    }
    for (unsigned i = 0; memory && i < *n; i++)
        guard(memory + i * stride, page_bytes);
    *own_stack_bytes = OWN_BYTES;
    *stride_bytes = stride;
    return memory ? memory + below : NULL;
}

static bool is_own(const struct thread_state *self, const stack_t *stack)
{
    return self->own_stack && (uintptr_t)stack->ss_sp == self->own_stack && !(stack->ss_flags & SS_DISABLE);
}

static bool set_own(struct thread_state *self, stack_t *old)
{
    stack_t own = {.ss_sp = (void *)self->own_stack, .ss_size = self->own_stack_bytes};
    if (!self->own_stack || kernel_altstack(&own, old) != 0)
        return false;
    self->has_own_stack = true;
    return true;
}

/* Notes that the program has an alternate stack. True when that is new. */
static bool note_use(void)
{
    return !atomic_exchange(&altstacks.is_used, true);
}

/* Puts the program's stack back after it was replaced under a shield. */
static void put_back(stack_t *stack)
{
    stack->ss_flags &= ~SS_ONSTACK;
    (void)kernel_altstack(stack, NULL);
}

/* Checks whether a sample fits on the program's stack: a signal frame that does not fit would kill the program. */
static void check_room(struct thread_state *self, const stack_t *stack)
{
    bool lacked_room = self->lacks_stack_room;
    bool is_programs = !(stack->ss_flags & SS_DISABLE) && !is_own(self, stack);
    size_t needed = frame_bytes() + unwind_handler_bytes_sig();
    self->lacks_stack_room = is_programs && stack->ss_size < needed;
    if (self->lacks_stack_room && !lacked_room) {
        mask_set_sig(mask_get_sig() | MASK_OURS);
        if (!atomic_exchange(&altstacks.is_logged, true))
            arena_log_sig("the program's alternate signal stack has no room for a sample: its thread takes no samples "
                          "while that stack is set");
    } else if (!self->lacks_stack_room && lacked_room) {
        mask_set_sig(mask_get_sig() & ~MASK_OURS);
    }
    if (!is_programs)
        return;
    bool changes = note_use();
    if (stack->ss_size < frame_bytes() + PROGRAM_BYTES + needed)
        changes |= !atomic_exchange(&altstacks.is_small, true);
    if (changes)
        wrap_signal_refit();
}

void altstack_begin(void)
{
    struct thread_state *self = mask_is_translated_sig() ? thread_self_sig() : NULL;
    stack_t current = {0};
    int saved_errno = errno;
    if (!self || sandbox_is_entered_sig())
        return;
    bool is_first = !atomic_exchange(&altstacks.is_begun, true);
    mask_adopt_sig(self, is_first || self->has_given_mask);
    bool is_known = kernel_altstack(NULL, &current) == 0;
    if (is_known && current.ss_flags & SS_DISABLE)
        (void)set_own(self, NULL);
    else if (is_known)
        check_room(self, &current);
    errno = saved_errno;
}

bool altstack_begin_quickly(const struct shield *shield)
{
    struct thread_state *self = mask_is_translated_sig() ? thread_self_sig() : NULL;
    stack_t old = {.ss_flags = SS_DISABLE};
    if (!self)
        return true;
    if (!shield->is_up || shield->blocked & MASK_OURS || self->has_given_mask || !atomic_load(&altstacks.is_begun))
        return false;
    self->begins_blocked = false;
    if (!events_can_signal_sig(self))
        return true;
    if (!set_own(self, &old))
        return false;
    if (old.ss_flags & SS_DISABLE)
        return true;
    put_back(&old); /* another was already set in this thread */
    return false;
}

/* A thread that runs on the stack cannot take it away. */
void altstack_end(struct thread_state *self)
{
    stack_t old = {0}, none = {.ss_flags = SS_DISABLE};
    if (!self->has_own_stack)
        return;
    self->has_own_stack = false;
    if (sandbox_is_entered_sig())
        self->own_stack = 0;
    else if (kernel_altstack(&none, &old) != 0)
        self->own_stack = kernel_altstack(NULL, &old) == 0 && !is_own(self, &old) ? self->own_stack : 0;
    else if (!is_own(self, &old) && !(old.ss_flags & SS_DISABLE))
        put_back(&old);
}

/* The program sets a stack while the thread has one of ours to fall back on. */
static int change(struct thread_state *self, const stack_t *new, const stack_t *current)
{
    bool disables = new->ss_flags &SS_DISABLE;
    if (disables && is_own(self, current))
        return 0;
    if (kernel_altstack(new, NULL) != 0)
        return -1;
    if (disables)
        (void)set_own(self, NULL);
    check_room(self, new);
    return 0;
}

/* The program sets a stack in a thread that has none of ours, and that may not have begun yet. */
static int change_unknown(const stack_t *new, stack_t *old)
{
    const long arguments[6] = {(long)new, (long)old};
    long result = arch_call_sig(SYS_sigaltstack, arguments); /* the program's own: no sandbox of its is asked */
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    if (new && !(new->ss_flags &SS_DISABLE) && mask_is_translated_sig() && note_use())
        wrap_signal_refit();
    return 0;
}

WRAP_EXPORT int sigaltstack(const stack_t *new, stack_t *old)
{
    struct thread_state *self = thread_self_sig();
    stack_t current = {0}, shown = {.ss_flags = SS_DISABLE};
    if (!self || !self->own_stack || kernel_altstack(NULL, &current) != 0)
        return change_unknown(new, old);
    if (!is_own(self, &current))
        shown = current;
    if (new &&change(self, new, &current) != 0)
        return -1;
    if (old)
        *old = shown;
    return 0;
}
