/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of module tables: a directory with one file <id>.lmt per load module, shared by all processes of a node
 * (and by others that have no better place than a common home). Ordinary code of companion, launcher and tools. */
#ifndef LOCUS_FNBOUNDS_MODTAB_CACHE_H
#define LOCUS_FNBOUNDS_MODTAB_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fnbounds/modtab.h"

/* Makes sure that the table of the ELF file at path (or MODTAB_VDSO: the caller's own vdso) is in cache_dir, which is
 * created when it does not exist. A good table that is there is kept; one that is damaged, of another version, of
 * another layout, or made from a file without .symtab while this one has it, is made again. Concurrent makers of one
 * module wait for each other (at most 30 s), so that it is parsed once. *id (may be NULL) gets the module's id as soon
 * as the file could be identified. Takes some MiB of memory for large modules, freed on return.
 * ctx: ordinary code   err: ERR_IO, ERR_FORMAT, ERR_MEMORY, ERR_RANGE */
int modtab_make(const char *path, const char *cache_dir, uint64_t *id, struct error *err);

/* *id gets the id that the table of the ELF file at path has or would have.
 * ctx: ordinary code   err: ERR_IO, ERR_FORMAT, ERR_MEMORY, ERR_RANGE */
int modtab_identify(const char *path, uint64_t *id, struct error *err);

/* Maps the table of a module read-only and checks it. *table is valid until modtab_unmap.
 * ctx: ordinary code   err: ERR_NOT_FOUND, ERR_IO, ERR_FORMAT */
int modtab_map(const char *cache_dir, uint64_t id, const struct modtab_header **table, struct error *err);

/* Unmaps what modtab_map returned; NULL is ignored. */
void modtab_unmap(const struct modtab_header *table);

/* Writes the name of a module's table file to out [n].  err: ERR_RANGE when it does not fit */
int modtab_cache_path(char *out, size_t n, const char *cache_dir, uint64_t id, struct error *err);

/* The cache directory of this user, created and writable: $XDG_CACHE_HOME/locus, else ~/.cache/locus, else
 * /tmp/locus-<uid>, /var/tmp/locus-<uid>, /dev/shm/locus-<uid> (the last three only when they belong to this user);
 * the first that works is written to dir [n].
 * ctx: ordinary code   err: ERR_IO when none works */
int modtab_default_cache_dir(char *dir, size_t n, struct error *err);

#endif
