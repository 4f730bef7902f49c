/* SPDX-License-Identifier: BSD-3-Clause */
/* The load map: which module holds an address, with its table. The signal handler itself discovers modules with the
 * loader's lock-free _dl_find_object, so correctness does not depend on intercepting dlopen; the wrappers of dlopen and
 * dlclose only advance a generation, which makes cached answers stale. */
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
    bool is_own, is_vdso;      /* is_own: it holds nothing else */
    bool is_needed;            /* its table is asked for at the start */
    bool may_go;               /* it was loaded after the start and may be unloaded */
    _Atomic bool is_gone;      /* it was found unloaded, and not loaded again since as far as is known */
    _Atomic uint64_t retry_ns; /* when to look for its table again */
    bool has_asked_again;      /* asked a second time, for a table that this process may read */
    char *name;                /* the loader's name; private copy */
    char *path;                /* real absolute path of the mapped file; NULL = not known */
    uint64_t inode;            /* of that file, 0 = not known */
};

/* Where the profiler's own code lies: in the module that holds address, at [code_start, code_end), or everywhere in the
 * module if these are 0. */
struct loadmap_own {
    uintptr_t address, code_start, code_end;
};

/* Where this runtime's code lies: in a library of its own, or in part of the static program that it was linked into.
 * ctx: any */
struct loadmap_own loadmap_own_code(void);

/* Registers all modules that are loaded now, and waits a little for the tables of those that nearly every path leads
 * through: the program, its loader, the C library, and the profiler. Others are asked for when a path or a sample meets
 * them.  ctx: ordinary */
void loadmap_init(void);

/* Registers the modules that have been loaded since and waits a little for their tables, because soon neither the
 * tables nor the modules' files may be accessible.  ctx: ordinary */
void loadmap_complete(void);

/* Whether the instruction at pc, in module (may be NULL), belongs to the profiler.  ctx: any */
bool loadmap_is_own_sig(const struct loadmap_module *module, uintptr_t pc);

/* The same for a pc that is known to lie in the module that holds the runtime.  ctx: any */
bool loadmap_is_own_pc_sig(uintptr_t pc);

#define LOADMAP_IDS_MAX (2 * LOADMAP_MODULES_MAX) /* pseudo modules have ids, too */

/* A set of modules, by id. */
struct loadmap_gone {
    uint64_t ids[LOADMAP_IDS_MAX / 64];
};

/* Fills in the modules that have been unloaded since they were last loaded or found gone; returns their number. Takes
 * one look-up for each module that was loaded after the start.  ctx: any */
unsigned loadmap_find_gone_sig(struct loadmap_gone *gone);

/* Module that holds a code or data address, NULL when none does.  ctx: any */
const struct loadmap_module *loadmap_find_sig(uintptr_t address);

/* The same for the unwinder.  ctx: any */
const struct unwind_module *loadmap_find_code_sig(uintptr_t pc);

/* The generation: it changes when modules are loaded or unloaded, and cached facts about addresses are then stale.
 * ctx: any */
uint32_t loadmap_generation_sig(void);
void loadmap_changed_sig(void);

/* The module whose static TLS block, for the thread with this thread pointer, holds address; NULL when none does.
 * offset: within the module's TLS segment.  ctx: any */
const struct loadmap_module *loadmap_find_tls_sig(uintptr_t thread_pointer, uintptr_t address, uint64_t *offset);

/* The module's table, mapped when it has arrived and asked for if it was not yet; NULL until then.  ctx: any */
const struct modtab_header *loadmap_table_sig(const struct loadmap_module *module);

/* Gives the companion a little time to make the table of a module on the path of an allocation, which cannot be walked
 * later: a fixed time in all, which the start takes part of. True when the module has its table now.  ctx: ordinary
 * code and hooks, never the handler */
bool loadmap_await_table_sig(const struct unwind_module *code);

/* Waits until loadmap_ask_tables_sig finds them all, with what is left of that time.  ctx: ordinary, as the load map is
 * set up */
void loadmap_await_tables_sig(bool only_needed);

/* Asks for the tables that are missing, of all modules or of those that are needed from the start; true when none is.
 * ctx: any */
bool loadmap_ask_tables_sig(bool only_needed);

/* Writes a pseudo module, which has no file, into the arena. Returns its reference, 0 when there is no room. start: its
 * lowest address, from which it reaches to the end of the address space; 0: it has no addresses.  ctx: any, between
 * arena_shared_begin_sig and _end */
uint32_t loadmap_pseudo_sig(const char *name, uint64_t start);

/* Reference of the pseudo module "[kernel]" that holds the kernel's frames; 0 before loadmap_add_kernel.
 * ctx: _add ordinary, _kernel any */
void loadmap_add_kernel(void);
uint32_t loadmap_kernel_sig(void);

/* Registers all known modules again, in a fresh arena (child of fork).  ctx: ordinary, single-threaded */
void loadmap_fork_child_sig(void);

/* --- private part: the file behind a module --- */

/* The file behind a load module, as the kernel knows it. The loader's name may be relative to a working directory, or
 * below a root, that the program has left since; it may contain links, and it may by now be the name of another file.
 */

struct module_file {
    const char *path;    /* real and absolute; valid until the next call */
    uintptr_t low, high; /* the mapping that holds the address; 0 when it was not found */
    uint64_t inode;      /* 0 = not known */
    bool is_deleted;     /* no file has this name: a memory file, or a library that was replaced */
};

/* --- private part: the map --- */

/* The loader's lock-free look-up (glibc >= 2.35); NULL where it is missing. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* Sets where our own code is and where the vdso is.  ctx: ordinary, before the first look-up */
void loadmap_set_own_sig(const struct loadmap_own *own, uintptr_t vdso);

/* Adds a module, or returns its entry if it has one; NULL when the table is full or busy. tls_offset: see
 * struct loadmap_module.  ctx: any */
const struct loadmap_module *loadmap_add_sig(uintptr_t start, uintptr_t end, uintptr_t bias, const char *name,
                                             int64_t tls_offset);

/* The module's table is needed from the start.  ctx: ordinary */
void loadmap_set_needed_sig(const struct loadmap_module *module);

/* Modules that are loaded from now on may be unloaded again.  ctx: ordinary */
void loadmap_set_started_sig(void);

/* Sets the reference of the kernel's pseudo module.  ctx: ordinary */
void loadmap_set_kernel_sig(uint32_t ref);

#endif
