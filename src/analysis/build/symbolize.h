/* SPDX-License-Identifier: BSD-3-Clause */
/* From addresses to scopes of code: the load modules of all profiles by path, opened when first needed, with every
 * address looked up once (symbolizer_); the Debian packages that their files come from; and the source-level
 * tree that the answers are put into (scopes_, in scopes.c). Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_SYMBOLIZE_H
#define LOCUS_ANALYSIS_BUILD_SYMBOLIZE_H

#include <stddef.h>

#include "analysis/model.h"
#include "structure/names/alloc-name.h"
#include "structure/xml/structure-file.h"

struct symbolizer;

/* A loop that an address lies in. */
struct code_loop {
    const struct code_loop *outer; /* the next one around it in the same function; NULL: none */
    uint32_t file, line, end_line; /* its first and last line */
    uint64_t vaddr;                /* first instruction of its header */
};

/* Begins the name of what a module has neither symbols nor unwind tables for, such as assembly in stripped libraries:
 * "code without symbols [libavcodec.so.59]". */
#define CODE_WITHOUT_SYMBOLS "code without symbols "

/* One function at an address; strings are ids of the model. */
struct code_frame {
    uint32_t function, decl_file, decl_line;
    uint32_t file, line, column; /* position inside the function */
    uint64_t low_vaddr, die;
    bool named;                   /* function is a name, not an address */
    const struct code_loop *loop; /* the innermost one of this function around the position; lives as long as the
                                   * symbolizer */
};

/* The symbolizer interns into model's strings; the caller frees it before the model. NULL when out of memory. */
struct symbolizer *symbolizer_new(struct model *model);
void symbolizer_free(struct symbolizer *symbolizer);

/* Makes the symbolizer look up modules in these files [NULL-terminated, borrowed], each in the first file that
 * describes it. Call it before modules are added. */
void symbolizer_use_files(struct symbolizer *symbolizer, const struct structure_file *const *files);

/* Id of the module with this path, from 1; 0 when out of memory. */
uint32_t symbolizer_module(struct symbolizer *symbolizer, const char *path);
/* As shown: "[kernel]" for the kernel of any machine, "[jit]" for the generated code of any process. */
const char *symbolizer_path(const struct symbolizer *symbolizer, uint32_t module);
/* The module's name in reports (model_module_name), once all processes are known. */
const char *symbolizer_name(struct symbolizer *symbolizer, uint32_t module);

/* Says which build of the module a profile was measured with (modtab_header.id). A file is not read if it is another
 * build, or if profiles were measured with several: its code is then shown by offsets. */
void symbolizer_expect(struct symbolizer *symbolizer, uint32_t module, uint64_t id);

/* Adds the build of the module that profiles were measured with to the model, if it is known. */
void symbolizer_note_build(struct symbolizer *symbolizer, uint32_t module);

/* Whether the file at path is this build (modtab_header.id), as far as it can be known: also where it has no build id,
 * or cannot be read. */
bool symbolizer_is_build(const char *path, uint64_t build);

/* 1 when the module is the profiler's own library, which holds the placeholder functions. */
bool symbolizer_is_runtime(const struct symbolizer *symbolizer, uint32_t module);

/* Sets the name of the placeholder at ip in a module; finds it: the name that was set, else by the module's symbols.
 * NULL when there is no placeholder at ip. */
void symbolizer_add_placeholder(struct symbolizer *symbolizer, uint32_t module, uint64_t ip, const char *name);
const char *symbolizer_placeholder(struct symbolizer *symbolizer, uint32_t module, uint64_t ip);

/* Adds a function [start, end) to the module of a kernel, of generated code, or of regions (see below); functions
 * already known are skipped. */
void symbolizer_add_function(struct symbolizer *symbolizer, uint32_t module, uint64_t start, uint64_t end,
                             const char *name);

/* 1 when the module's addresses are regions of the program, which side files name. */
bool symbolizer_is_region(const struct symbolizer *symbolizer, uint32_t module);

/* 1 when the module's addresses are Python functions at a line, which side files name. */
bool symbolizer_is_python(const struct symbolizer *symbolizer, uint32_t module);

/* 1 when the module is the kernel of some machine, whose functions side files name. */
bool symbolizer_is_kernel(const struct symbolizer *symbolizer, uint32_t module);

/* 1 when the module is the code that some process generated, whose functions side files name. */
bool symbolizer_is_jit(const struct symbolizer *symbolizer, uint32_t module);

/* The functions at vaddr, outermost first; at least one, named after the address when nothing is known, and without a
 * name in the profiler's own library. Returns the count; *frames is valid until the next lookup. */
size_t symbolizer_lookup(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr,
                         const struct code_frame **frames);

/* The same with the names of the profiler's own library: the path of a pool's block ends in the function that announces
 * it. */
size_t symbolizer_lookup_any(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr,
                             const struct code_frame **frames);

/* How many bytes the call instruction has that vaddr, a return address - 1, lies in; 0: not known. */
unsigned symbolizer_call_bytes(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr);

/* A nest of loops, whose files are strings of the model. */
struct code_nest {
    struct structure_nest nest;
    uint32_t file, outer_file; /* string ids */
};

/* Fills *nest for a sample at vaddr: structure_nest_at of the module. False where nothing is known. */
bool symbolizer_nest(struct symbolizer *symbolizer, uint32_t module, uint64_t vaddr, struct code_nest *nest);

/* Text of a string id of the model. */
const char *symbolizer_text(const struct symbolizer *symbolizer, uint32_t id);

/* The opened module for data lookups; NULL when it cannot be opened. */
struct symbols *symbolizer_symbols(struct symbolizer *symbolizer, uint32_t module);

/* alloc_name_find for a call in a module, whose answer is kept: many blocks come from one call, of an interpreter above
 * all. UNKNOWN without symbols. out->of_class must be NULL. */
enum alloc_name_result symbolizer_alloc_name(struct symbolizer *symbolizer, uint32_t module, uint64_t return_vaddr,
                                             enum alloc_name_value value, struct alloc_name *out);

/* The variable at vaddr, or, is_tls, at the offset in the module's TLS segment. False when none is known. */
bool symbolizer_data_at(struct symbolizer *symbolizer, uint32_t module, bool is_tls, uint64_t vaddr,
                        struct symbols_data *data);

/* Counts samples in a module, for the next function: which modules matter. */
void symbolizer_count(struct symbolizer *symbolizer, uint32_t module, double n_samples);

/* Adds a note that names the modules with samples whose files are missing or have no debug information, and one when a
 * kernel's functions are not known. */
void symbolizer_note_missing(struct symbolizer *symbolizer);

/* --- Debian packages --- */

/* Which Debian packages files belong to, from the lists of files that dpkg keeps. Ordinary code. */

#define PACKAGES_DIRECTORY "/var/lib/dpkg/info"
#define PACKAGES_NAME_BYTES 128

/* A file and the package that it belongs to. */
struct package_file {
    const char *path;               /* set by the caller: absolute */
    char name[PACKAGES_NAME_BYTES]; /* "coreutils"; "" when no package has it */
};

/* --- scopes of code --- */

/* Builds the source-level tree: children are found or added by their content; at the end the tree is put into its
 * canonical order, which does not depend on the order of the profiles. Ordinary code. */

struct scope_builder {
    struct model *model;
    uint32_t *slots; /* [n_slots] hash; index + 1, 0 empty */
    size_t n_slots;
    bool failed; /* out of memory; scope 0 was returned */
};

/* The child of parent equal to proto in kind, role, name, file, module and line (PROC: line is not compared), added
 * when new. Returns 0 and sets failed when out of memory. */
uint32_t scopes_child(struct scope_builder *builder, uint32_t parent, const struct scope *proto);

/* Adds the functions at an address, frames [n] outermost first, and their loops below parent; returns the scope in
 * which the position of the innermost lies: its function or loop, or a SCOPE_POSITION when that is in another file. */
uint32_t scopes_add_frames(struct scope_builder *builder, uint32_t parent, const struct code_frame *frames, size_t n,
                           uint32_t module_name);

/* Sorts the tree and renumbers it in pre-order. *renumber [n_scopes] (old index to new) is malloc'ed; the caller
 * applies it to everything that refers to scopes and frees it.  err: ERR_MEMORY */
int scopes_sort(struct model *model, uint32_t **renumber, struct error *err);

/* Frees the hash table; the scopes stay with the model. */
void scopes_builder_fini(struct scope_builder *builder);

#endif
