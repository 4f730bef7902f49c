/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of the libunwind walker share: libunwind's functions, found when the process begins, and how many
 * threads are inside them. */
#ifndef LOCUS_RUNTIME_UNWIND_UNWIND_LIBUNWIND_H
#define LOCUS_RUNTIME_UNWIND_UNWIND_LIBUNWIND_H

#include <libunwind.h>
#include <stdatomic.h>
#include <stdbool.h>

/* base/sigsafe.h forbids these names; here they are only called through the struct below. */
#undef unw_step
#undef unw_init_local

/* libunwind's functions, and the address space for which we supply memory and registers. */
struct unwind_libunwind {
    unw_addr_space_t space;
    int (*init_remote)(unw_cursor_t *, unw_addr_space_t, void *);
    int (*step)(unw_cursor_t *);
    int (*get_reg)(unw_cursor_t *, unw_regnum_t, unw_word_t *);
    int (*is_signal_frame)(unw_cursor_t *);
    int (*search_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int, void *);
    _Atomic bool is_open;  /* set last */
    _Atomic int n_forking; /* threads; no walk may begin meanwhile, because its locks would stay locked in the child */
    _Atomic int n_inside;
};

/* Stack of one walk, including libunwind's part: what tests/unit/unwind-libunwind-test measures on IBM Z (7720; 3760 on
 * x86-64) plus a quarter. */
#define UNWIND_LIBUNWIND_BYTES 9728

/* The only instance; never NULL.  ctx: any */
struct unwind_libunwind *unwind_libunwind_sig(void);

/* Whether the calling code has interrupted a walk of the same thread.  ctx: any */
bool unwind_libunwind_is_inside_sig(void);

/* Callbacks of libunwind in a walk; their last argument is the walk's state.  ctx: signal handler and hooks */
int unwind_find_proc_sig(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
                         void *walk);
int unwind_memory_sig(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write, void *walk);
int unwind_register_sig(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int is_write, void *walk);

#endif
