/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the profiler's memory lies: in a zone of the address space far from all that the kernel hands out by itself.
 * Nothing is reserved there. What may become large is mapped as far as it is used and grows in place, so that neither a
 * limit on the address space nor locking all of it (mlockall) meets more than what is used; and what lies in the zone
 * is known not to be the program's. Where there is no such zone (small address spaces, emulators), memory comes from
 * anywhere and files are mapped whole. errno is kept by all. */
#ifndef LOCUS_RUNTIME_OWN_ZONE_H
#define LOCUS_RUNTIME_OWN_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zone_file { ZONE_ARENA, ZONE_RECIPES, ZONE_FILES };

/* Maps the first first_bytes (or somewhat more; at most all) of the size_bytes of a memory file, shared, at the place
 * of which, and what can be reached of it from then on by zone_reach_sig. Takes the place of an earlier one, so in a
 * child of fork that of the parent's. Keeps no descriptor. NULL when it cannot be mapped: where there was an earlier
 * one, memory of nobody's stands in its place then.  ctx: ordinary, one thread */
void *zone_share_sig(enum zone_file which, int fd, uint64_t size_bytes, int protection, uint64_t first_bytes);

/* Whether the first n_bytes of a file are mapped, growing the mapping where they are not yet, or soon will not be.
 * False where its end, a limit, or other mappings are in the way: the caller counts what it cannot record. Always true
 * for what was not mapped here.  ctx: any */
bool zone_reach_sig(enum zone_file which, uint64_t n_bytes);

/* Maps all files whole: afterwards nothing has to grow.  ctx: any */
void zone_reach_all_sig(void);

/* Private memory, all zero, never given back; NULL when there is none.  ctx: any */
void *zone_pages_sig(size_t n_bytes);

/* Maps a file that is only read, such as a table; NULL when it cannot be. To be unmapped with munmap.  ctx: any */
void *zone_map_file_sig(int fd, size_t n_bytes);

/* The addresses of the zone; both 0 when there is none.  ctx: any */
void zone_range_sig(uintptr_t *low, uintptr_t *high);

/* Whether the program has asked that all future mappings be locked: ours then are unlocked again.  ctx: any */
void zone_set_locking_sig(bool is_locking);
bool zone_is_locking_sig(void);

#endif
