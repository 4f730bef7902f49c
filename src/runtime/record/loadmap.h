/* SPDX-License-Identifier: BSD-3-Clause */
/* The load map: which module holds an address, with its table. Modules are discovered in the signal handler itself by
 * the loader's lock-free _dl_find_object, so that no dlopen has to be intercepted for correctness; dlopen and dlclose
 * only advance a generation that makes cached answers stale. */
#ifndef LOCUS_RUNTIME_RECORD_LOADMAP_H
#define LOCUS_RUNTIME_RECORD_LOADMAP_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/unwind/unwind.h"

#define LOADMAP_MODULES_MAX 4096

struct loadmap_module {
    struct unwind_module code; /* what the unwinder needs; first member */
    uint64_t table_id;
    uint32_t id;        /* arena_module id, dense from 1 */
    int64_t tls_offset; /* of its static TLS block from the thread pointer; 0 = none or dynamic */
    uint64_t tls_bytes;
    bool has_runtime;          /* our functions are in it */
    bool is_own, is_vdso;      /* is_own: nothing else is */
    bool may_go;               /* it came after the start, and may be unloaded */
    _Atomic uint64_t retry_ns; /* when to look for its table again */
    bool has_asked_again;      /* for a table that this process may read */
    char *name;                /* as the loader has it; private copy */
    char *path;                /* real and absolute, of the file that is mapped; NULL = not known */
    uint64_t inode;            /* of that file, 0 = not known */
};

/* Where the profiler's own code is: in the module that holds address; [code_start, code_end) of it, or all of it when
 * they are 0. */
struct loadmap_own {
    uintptr_t address, code_start, code_end;
};

/* The place of this runtime: a library of its own, or a part of the static program it was linked into.  ctx: any */
struct loadmap_own loadmap_own_code(void);

/* Finds the tables directory, registers all modules that are loaded now.  ctx: ordinary */
void loadmap_init(void);

/* Registers what has been loaded since, and waits a little for its tables: soon neither they nor the modules' files may
 * be in reach.  ctx: ordinary */
void loadmap_complete(void);

/* Whether the instruction at pc, in module (may be NULL), is the profiler's.  ctx: any */
bool loadmap_is_own_sig(const struct loadmap_module *module, uintptr_t pc);

/* The same for a pc that is known to lie in the module that holds the runtime.  ctx: any */
bool loadmap_is_own_pc_sig(uintptr_t pc);

/* Module that holds a code or data address, NULL when none does.  ctx: any */
const struct loadmap_module *loadmap_find_sig(uintptr_t address);

/* The same for the unwinder.  ctx: any */
const struct unwind_module *loadmap_find_code_sig(uintptr_t pc);

/* Changes when modules came or went: cached facts about addresses are stale.  ctx: any */
uint32_t loadmap_generation_sig(void);
void loadmap_changed_sig(void);

/* Module whose static TLS block of a thread with this thread pointer holds address; NULL when none does.
 * offset: within the module's TLS segment.  ctx: any */
const struct loadmap_module *loadmap_find_tls_sig(uintptr_t thread_pointer, uintptr_t address, uint64_t *offset);

/* Makes sure that the module's table is asked for, and maps it when it has arrived.  ctx: any */
const struct modtab_header *loadmap_table_sig(const struct loadmap_module *module);

/* Whether all modules that can have a table have theirs; asks for the missing ones.  ctx: any */
bool loadmap_is_complete_sig(void);

/* Writes a pseudo module, which no file is behind, into the arena: its reference, 0 when there is no room. start: of
 * its addresses, which reach to the end; 0: it has none.  ctx: any, between arena_shared_begin_sig and _end */
uint32_t loadmap_pseudo_sig(const char *name, uint64_t start);

/* Reference of the pseudo module "[kernel]" that holds the kernel's frames; 0 before loadmap_add_kernel.
 * ctx: _add ordinary, _kernel any */
void loadmap_add_kernel(void);
uint32_t loadmap_kernel_sig(void);

/* Registers anew all known modules in a fresh arena (child of fork).  ctx: ordinary, single-threaded */
void loadmap_fork_child_sig(void);

/* --- private part: the file behind a module --- */

/* The file behind a load module, as the kernel knows it. What the loader says may be relative to a working directory or
 * below a root that the program has left since, may lead through links, and may be the name of another file by now. */

struct module_file {
    const char *path;    /* real and absolute; valid until the next call */
    uintptr_t low, high; /* the mapping that holds the address; 0 when it was not found */
    uint64_t inode;      /* 0 = not known */
    bool is_deleted;     /* nothing has this name any more: memory files, and libraries that were replaced */
};

/* --- private part: the map --- */

/* The loader's lock-free look-up (glibc >= 2.35); NULL where it is missing. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* Tells where our own code is and where the vdso is.  ctx: ordinary, before the first look-up */
void loadmap_set_own_sig(const struct loadmap_own *own, uintptr_t vdso);

/* Adds a module, or returns the entry it has; NULL when the table is full or busy. tls_offset: see
 * struct loadmap_module.  ctx: any */
const struct loadmap_module *loadmap_add_sig(uintptr_t start, uintptr_t end, uintptr_t bias, const char *name,
                                             int64_t tls_offset);

/* What comes from now on may be unloaded again.  ctx: ordinary */
void loadmap_set_started_sig(void);

/* Makes ref that of the kernel's pseudo module.  ctx: ordinary */
void loadmap_set_kernel_sig(uint32_t ref);

#endif
