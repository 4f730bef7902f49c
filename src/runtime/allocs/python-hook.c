/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of Python that ask for a block. See alloc-events.h. Runs inside the program's malloc: no malloc, no stdio.
 */
#include <stdbool.h>
#include <stddef.h>

#include "runtime/allocs/alloc-events.h"
#include "runtime/record/python.h"
#include "runtime/record/thread.h"

#define ALLOCATION_FRAMES_MAX 16

/* A function of its own because of its large stack frame: programs without Python pay only for a load. */
static __attribute__((noinline)) uint32_t add_frames(struct thread_state *self, uint32_t node, enum python_trust trust)
{
    static _Thread_local struct python_cursor cursor __attribute__((tls_model("initial-exec")));
    const struct python_api *api = python_api_sig();
    const struct python_layout *layout = &api->layout;
    uint32_t refs[ALLOCATION_FRAMES_MAX];
    size_t n = 0;
    struct python_text text;
    uintptr_t thread = api->own();
    if (!thread)
        return node;
    /* without the interpreter's lock another thread may end the interpreter and free the state */
    python_text_begin_sig(&text, &cursor, trust == PYTHON_TRYING || api->current() != thread);
    uintptr_t frame = python_pointer_sig(text.guarded, thread + layout->thread_top);
    if (layout->cframe_previous)
        frame = python_pointer_sig(text.guarded, frame + layout->cframe_current);
    for (; frame && n < ALLOCATION_FRAMES_MAX;
         frame = python_pointer_sig(text.guarded, frame + layout->frame_previous)) {
        uint8_t owner = 0;
        bool is_bad = false;
        if (layout->linkage == PYTHON_TRAMPOLINES &&
            python_fetch_sig(text.guarded, frame + layout->frame_owner, &owner, 1) && owner == PYTHON_C_STACK)
            continue;
        refs[n] = python_string_sig(&text, frame, python_place_sig(&text, frame), &is_bad);
        if (is_bad) {
            if (trust == PYTHON_TRYING)
                python_set_trust_sig(PYTHON_NONE);
            break;
        }
        if (trust == PYTHON_TRYING)
            python_set_trust_sig(PYTHON_READ);
        if (!refs[n++]) {
            atomic_fetch_add_explicit(&arena_header_sig()->n_python_lost, 1, memory_order_relaxed);
            return node;
        }
    }
    while (n > 0) {
        uint32_t child = cct_child_sig(&self->allocs, node, refs[--n], python_module_sig());
        if (!child)
            break;
        node = child;
    }
    return node;
}

uint32_t python_path_hook(struct thread_state *self, uint32_t node)
{
    enum python_trust trust = python_trust_sig();
    return trust != PYTHON_NONE && node ? add_frames(self, node, trust) : node;
}
