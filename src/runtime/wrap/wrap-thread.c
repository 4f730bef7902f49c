/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: every thread that pthread_create starts is registered before its first instruction and ended after its last,
 * however it ends. Ordinary code of the program's threads. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <threads.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/events/signals.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/start.h"
#include "runtime/process/threads.h"
#include "runtime/wrap/wrap.h"

#define LEFT_FRAMES_BYTES ((uintptr_t)128 * 1024)

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* glibc 2.32; 0 if the attribute gives the mask. */
extern int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *set) __attribute__((weak));

extern void __asan_unpoison_memory_region(const volatile void *start, size_t n_bytes) __attribute__((weak));

/* In a program with AddressSanitizer, frames that pthread_exit has left still have marks on the stack, and functions of
 * libc that we call would report that our data lies on them. */
static void forget_left_frames(const struct thread_state *self)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t low = here - LEFT_FRAMES_BYTES > self->bounds.low ? here - LEFT_FRAMES_BYTES : self->bounds.low;
    if (__asan_unpoison_memory_region && low < here)
        __asan_unpoison_memory_region((void *)low, here - low);
}

static void end_thread(void *context)
{
    struct thread_state *self = thread_self_sig();
    (void)context;
    if (!self || !process_is_ours_sig())
        return;
    struct shield shield;
    forget_left_frames(self);
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    alloc_wrap_thread_ends();
    thread_end(self);
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
}

void *monitor_begin_thread(void *context) __attribute__((visibility("hidden"), noinline));

/* The first frame of every thread; the original tools show a function of this name as the root of a thread. */
void *monitor_begin_thread(void *context)
{
    struct thread_state *state = context;
    void *(*start)(void *) = state->start;
    int (*start_c11)(void *) = state->start_c11;
    void *argument = state->argument;
    void *result;
    struct shield shield;
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    if (!process_is_ours_sig() || !thread_begin(state, state->stack_bytes))
        thread_discard(state);
    bool is_ready = altstack_begin_quickly(&shield);
    alloc_wrap_guard_leave();
    if (is_ready)
        thread_start_events();
    shield_lower_sig(&shield);
    if (!is_ready) {
        altstack_begin();
        thread_start_events_unshielded();
    }
    pthread_cleanup_push(end_thread, NULL);
    result = start_c11 ? (void *)(intptr_t)start_c11(argument) : start(argument);
    pthread_cleanup_pop(1);
    return result;
}

static size_t stack_size_of(const pthread_attr_t *attr)
{
    size_t size = 0;
    pthread_attr_t defaults;
    if (attr && pthread_attr_getstacksize(attr, &size) == 0 && size)
        return size;
    if (pthread_getattr_default_np(&defaults) == 0) {
        pthread_attr_getstacksize(&defaults, &size);
        pthread_attr_destroy(&defaults);
    }
    return size ? size : (size_t)8 << 20;
}

static bool gives_mask(const pthread_attr_t *attr)
{
    sigset_t set;
    return attr && pthread_attr_getsigmask_np && pthread_attr_getsigmask_np(attr, &set) == 0;
}

/* The state for a thread that the calling one is about to start, at site; NULL if that will not be measured. start: its
 * function. */
static struct thread_state *prepare(uintptr_t start, const struct alloc_site *site)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    struct shield shield;
    if (!self)
        return NULL;
    shield_raise_sig(&shield);
    struct thread_state *state = thread_prepare();
    if (state) {
        process_note_creator(state, self, start, site);
        state->begins_blocked = shield.is_up && mask_blocks_ours_sig(self, shield.blocked);
        state->has_given_mask = false;
    }
    shield_lower_sig(&shield);
    return state;
}

static void discard(struct thread_state *state)
{
    struct shield shield;
    shield_raise_sig(&shield);
    thread_discard(state);
    shield_lower_sig(&shield);
}

WRAP_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
    static create_function *real;
    const struct alloc_site site = alloc_site_here();
    if (!real)
        real = (create_function *)wrap_real("pthread_create");
    if (!real)
        return EAGAIN;
    int saved_errno = errno;
    struct thread_state *state = prepare((uintptr_t)start, &site);
    errno = saved_errno;
    if (!state)
        return real(thread, attr, start, argument);
    state->start = start;
    state->start_c11 = NULL;
    state->argument = argument;
    alloc_wrap_guard_enter();
    state->stack_bytes = stack_size_of(attr);
    state->has_given_mask = gives_mask(attr);
    alloc_wrap_guard_leave();
    errno = saved_errno;
    int result = real(thread, attr, monitor_begin_thread, state);
    if (result == EAGAIN && attach_make_room())
        result = real(thread, attr, monitor_begin_thread, state);
    if (result != 0)
        discard(state);
    return result;
}

typedef int create_c11_function(thrd_t *, thrd_start_t, void *);

/* Like monitor_begin_thread, for a C11 thread, whose function returns an int. */
static int begin_c11_thread(void *context)
{
    return (int)(intptr_t)monitor_begin_thread(context);
}

/* libc starts C11 threads without calling the public pthread_create. */
WRAP_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    static create_c11_function *real;
    const struct alloc_site site = alloc_site_here();
    if (!real)
        real = (create_c11_function *)wrap_real("thrd_create");
    if (!real)
        return thrd_error;
    int saved_errno = errno;
    struct thread_state *state = prepare((uintptr_t)start, &site);
    errno = saved_errno;
    if (!state)
        return real(thread, start, argument);
    state->start_c11 = start;
    state->argument = argument;
    alloc_wrap_guard_enter();
    state->stack_bytes = stack_size_of(NULL);
    alloc_wrap_guard_leave();
    errno = saved_errno;
    int result = real(thread, begin_c11_thread, state);
    if (result != thrd_success && attach_make_room())
        result = real(thread, begin_c11_thread, state);
    if (result != thrd_success)
        discard(state);
    return result;
}
