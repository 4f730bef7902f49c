/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the frames of a thread by libunwind, where we have no walker of our own or the build asks for it. By
 * itself libunwind is unfit for a signal handler, so it works through callbacks of ours: it gets unwind tables from us
 * and not from the loader (whose lock the interrupted code may hold), it reads memory through us, only within the
 * stack's bounds and mapped modules, and it caches nothing. A raw system call blocks all signals while libunwind holds
 * its own locks; where a sandbox refuses that, there is no walk. No thread is inside libunwind when a thread forks. The
 * remaining cost: two system calls and some microseconds per walk, no reuse of the last path, and a few KiB of stack.
 * Signal context. */
#include "runtime/unwind/unwind-libunwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/unwind/unwind.h"
#include "base/sigsafe.h"

#ifdef UNW_TARGET_AARCH64 /* where UNW_REG_IP is the link register */
#define PC_REGISTER UNW_AARCH64_PC
#else
#define PC_REGISTER UNW_REG_IP
#endif
#define HANDLER_BYTES 12288 /* of stack; libunwind has large frames, and so does IBM Z */

enum {
    RED_ZONE_BYTES = 512,
    POOL_BYTES = 16384,  /* the size in which libunwind asks for memory */
    OWN_FRAMES_MAX = 32, /* our own frames, between a walk in a hook and the code that called the hook */
    KERNEL_SIGSET_BYTES = 8,
    HEADER_VERSION = 1, /* of .eh_frame_hdr, see the Linux Standard Base, 10.6.2 */
    POINTER_PCREL_SDATA4 = 0x1b,
    COUNT_UDATA4 = 0x03,
    TABLE_DATAREL_SDATA4 = 0x3b,
    HEADER_BYTES = 12,
    ENTRY_BYTES = 8,
};

/* State of one walk, from which the callbacks answer libunwind. */
struct libunwind_state {
    const struct unwind_start *start;
    const struct unwind_bounds *bounds;
    uintptr_t sp;                 /* of the current frame */
    uintptr_t map_start, map_end; /* the module that was read from last */
};

static struct unwind_libunwind state;

/* If a signal comes all the same (libunwind also sets the mask), its handler must not wait for its own thread. */
static _Thread_local volatile bool is_thread_inside __attribute__((tls_model("initial-exec")));

struct unwind_libunwind *unwind_libunwind_sig(void)
{
    return &state;
}

bool unwind_libunwind_is_inside_sig(void)
{
    return is_thread_inside;
}

static bool is_between(uintptr_t address, uintptr_t low, uintptr_t high)
{
    return address >= low && address < high && high - address >= sizeof(unw_word_t);
}

/* The stack from the current frame upwards: memory below it may not be mapped. */
static bool is_on_stack(const struct libunwind_state *w, uintptr_t address)
{
    const struct unwind_bounds *b = w->bounds;
    bool is_alternate = w->sp >= b->alt_low && w->sp < b->alt_high;
    uintptr_t low = is_alternate ? b->alt_low : b->low, high = is_alternate ? b->alt_high : b->high;
    if (w->sp >= low && w->sp < high && w->sp - low > RED_ZONE_BYTES)
        low = w->sp - RED_ZONE_BYTES;
    return is_between(address, low, high);
}

static bool is_in_module(struct libunwind_state *w, uintptr_t address)
{
    struct dl_find_object found;
    if (is_between(address, w->map_start, w->map_end))
        return true;
    if (_dl_find_object((void *)address, &found) != 0)
        return false;
    w->map_start = (uintptr_t)found.dlfo_map_start;
    w->map_end = (uintptr_t)found.dlfo_map_end;
    return is_between(address, w->map_start, w->map_end);
}

int unwind_memory_sig(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write, void *walk)
{
    (void)space;
    if (is_write || !(is_on_stack(walk, (uintptr_t)address) || is_in_module(walk, (uintptr_t)address)))
        return -UNW_EINVAL;
    memcpy(value, (const void *)(uintptr_t)address, sizeof *value);
    return 0;
}

int unwind_register_sig(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int is_write, void *walk)
{
    const struct unwind_start *start = ((struct libunwind_state *)walk)->start;
    (void)space;
    if (is_write)
        return -UNW_EREADONLYREG;
    if (reg == (unw_regnum_t)PC_REGISTER)
        *value = start->pc;
    else if (reg == UNW_REG_SP)
        *value = start->gpr[UNWIND_SP];
    else if (reg >= 0 && reg < UNWIND_REGISTERS && start->known >> reg & 1)
        *value = start->gpr[reg];
    else
        return -UNW_EBADREG;
    return 0;
}

/* The table of the module that holds ip: its .eh_frame_hdr, as every linker writes it. */
int unwind_find_proc_sig(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info, void *walk)
{
    struct dl_find_object found;
    uint32_t n_entries;
    if (_dl_find_object((void *)(uintptr_t)ip, &found) != 0 || !found.dlfo_eh_frame)
        return -UNW_ENOINFO;
    const uint8_t *header = found.dlfo_eh_frame;
    if (header[0] != HEADER_VERSION || header[1] != POINTER_PCREL_SDATA4 || header[2] != COUNT_UDATA4 ||
        header[3] != TABLE_DATAREL_SDATA4)
        return -UNW_ENOINFO;
    memcpy(&n_entries, header + 8, sizeof n_entries);
    unw_dyn_info_t table = {.format = UNW_INFO_FORMAT_REMOTE_TABLE,
                            .start_ip = (uintptr_t)found.dlfo_map_start,
                            .end_ip = (uintptr_t)found.dlfo_map_end};
    table.u.rti.segbase = (uintptr_t)header;
    table.u.rti.table_data = (uintptr_t)header + HEADER_BYTES;
    table.u.rti.table_len = (unw_word_t)n_entries * ENTRY_BYTES / sizeof(unw_word_t);
    return state.search_table(space, ip, &table, info, need_unwind_info, walk);
}

/* Blocks all signals, also those that glibc keeps for itself: a cancelled thread must not leave libunwind's locks
 * locked. */
static bool mask_sig(const uint64_t *mask, uint64_t *old)
{
    return own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, mask, old, KERNEL_SIGSET_BYTES) == 0;
}

/* Whether libunwind may make its other system calls, those for memory. */
static bool may_allocate_sig(void)
{
    const long arguments[6] = {0, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
    return sandbox_allows_sig(SYS_mmap, arguments);
}

static void leave_sig(const uint64_t *old)
{
    atomic_fetch_sub(&state.n_inside, 1);
    is_thread_inside = false;
    (void)mask_sig(old, NULL);
}

static bool enter_sig(uint64_t *old)
{
    static const uint64_t all = UINT64_MAX;
    if (!atomic_load_explicit(&state.is_open, memory_order_acquire) || is_thread_inside || !may_allocate_sig() ||
        !mask_sig(&all, old))
        return false;
    is_thread_inside = true;
    atomic_fetch_add(&state.n_inside, 1);
    if (!atomic_load(&state.n_forking))
        return true;
    leave_sig(old);
    return false;
}

static uintptr_t register_of(unw_cursor_t *cursor, unw_regnum_t reg)
{
    unw_word_t value = 0;
    return state.get_reg(cursor, reg, &value) == 0 ? (uintptr_t)value : 0;
}

static enum unwind_stop stop_of(int error)
{
    if (error == -UNW_EBADREG)
        return UNWIND_LOST_REGISTER;
    return error == -UNW_ENOINFO ? UNWIND_GAP : UNWIND_BAD_STACK;
}

/* Adds the frames from the cursor outwards. */
static void add_frames(struct libunwind_state *w, unw_cursor_t *cursor, unwind_find_module find, bool is_interrupted,
                       struct unwind_path *path)
{
    path->stop = UNWIND_TOO_DEEP;
    while (path->n_frames < UNWIND_FRAMES_MAX) {
        uintptr_t pc = register_of(cursor, PC_REGISTER);
        struct unwind_frame *frame = &path->store[path->n_frames];
        if (!pc && path->n_frames) {
            path->stop = UNWIND_COMPLETE;
            return;
        }
        *frame = (struct unwind_frame){.pc = pc,
                                       .module = find(is_interrupted ? pc : pc - 1),
                                       .flags = is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
        path->n_frames++;
        bool is_signal = frame->module && state.is_signal_frame(cursor) > 0;
        int stepped = state.step(cursor);
        if (stepped <= 0) {
            path->stop = stepped == 0 ? UNWIND_COMPLETE : frame->module ? stop_of(stepped) : UNWIND_NO_MODULE;
            return;
        }
        w->sp = frame->cfa = register_of(cursor, UNW_REG_SP);
        frame->flags |= is_signal ? UNWIND_FRAME_SIGNAL : 0;
        is_interrupted = is_signal;
    }
}

static void first_frame_only(const struct unwind_start *start, unwind_find_module find, struct unwind_path *path)
{
    path->store[0] = (struct unwind_frame){.pc = start->pc,
                                           .module = find(start->is_interrupted ? start->pc : start->pc - 1),
                                           .flags = start->is_interrupted ? UNWIND_FRAME_INTERRUPTED : 0};
    path->n_frames = 1;
    path->stop = UNWIND_NO_TABLE;
}

static bool walk_from_context(const struct unwind_start *start, const struct unwind_bounds *bounds,
                              unwind_find_module find, struct unwind_path *path)
{
    struct libunwind_state w = {.start = start, .bounds = bounds, .sp = (uintptr_t)start->gpr[UNWIND_SP]};
    unw_cursor_t cursor;
    if (state.init_remote(&cursor, state.space, &w) != 0)
        return false;
    add_frames(&w, &cursor, find, true, path);
    return true;
}

/* In a hook: finds the code that called the hook by walking from here through our own frames, because its registers
 * were not saved. False when it is not found. */
static bool walk_from_here(const struct unwind_start *start, const struct unwind_bounds *bounds,
                           unwind_find_module find, struct unwind_path *path)
{
    struct unwind_start here;
    struct libunwind_state w = {.start = &here, .bounds = bounds};
    ucontext_t context;
    unw_cursor_t cursor;
    memset(&context, 0, sizeof context);
    if (getcontext(&context) != 0)
        return false;
    arch_start_of_context_sig(&context, &here);
    w.sp = (uintptr_t)here.gpr[UNWIND_SP];
    if (state.init_remote(&cursor, state.space, &w) != 0)
        return false;
    for (int i = 0; i < OWN_FRAMES_MAX && state.step(&cursor) > 0; i++) {
        w.sp = register_of(&cursor, UNW_REG_SP);
        if (register_of(&cursor, PC_REGISTER) == start->pc) {
            add_frames(&w, &cursor, find, false, path);
            return true;
        }
    }
    return false;
}

size_t unwind_handler_bytes_sig(void)
{
    return HANDLER_BYTES;
}

enum unwind_stop unwind_walk_sig(const struct unwind_start *start, const struct unwind_bounds *bounds,
                                 unwind_find_module find, uint32_t generation, struct unwind_path *path)
{
    uint64_t mask;
    int saved_errno = errno;
    bool is_inside = enter_sig(&mask);
    path->n_frames = 0;
    if (!is_inside || !(start->is_interrupted ? walk_from_context : walk_from_here)(start, bounds, find, path))
        first_frame_only(start, find, path);
    if (is_inside)
        leave_sig(&mask);
    errno = saved_errno;
    path->frames = path->store;
    path->n_reused = path->first_plain = 0;
    path->start_sp = start->gpr[UNWIND_SP];
    path->generation = generation;
    return (enum unwind_stop)path->stop;
}

/* Not available with libunwind: callers do a walk instead. */
bool unwind_is_same_sig(uintptr_t pc, uintptr_t sp, uintptr_t fp, const struct unwind_bounds *bounds,
                        uint32_t generation, struct unwind_path *path)
{
    (void)pc;
    (void)sp;
    (void)fp;
    (void)bounds;
    (void)generation;
    (void)path;
    return false;
}

bool unwind_hop_sig(uintptr_t pc, unwind_find_module find, uint32_t generation, struct unwind_hop *hop)
{
    (void)pc;
    (void)find;
    (void)generation;
    (void)hop;
    return false;
}
