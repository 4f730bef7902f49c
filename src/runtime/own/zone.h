/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiler's memory lies in a zone of the address space far from the addresses that the kernel hands out by itself.
 * Nothing is reserved there. Memory that may become large is mapped only as far as it is used and grows in place, so
 * that only what is used counts against a limit on the address space or is locked by mlockall; and an address in the
 * zone is known not to be the program's. Where there is no such zone (small address spaces, emulators), memory comes
 * from anywhere and files are mapped whole. All functions keep errno.
 *
 * Where the program's address space or data are limited, we take what we need at the start, with a reserve for what is
 * mapped later: a run that takes longer than others does not reach the limit earlier. Once the reserve is used up, or
 * where the limit came later, what is left is the program's: a mapping is refused when less than ZONE_LEFT_BYTES would
 * remain after it. The limits are asked for before each mapping, because the program or another process may change them
 * at any time. */
#ifndef LOCUS_RUNTIME_OWN_ZONE_H
#define LOCUS_RUNTIME_OWN_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZONE_LEFT_BYTES ((uint64_t)32 << 20)

#define ZONE_LARGE_BYTES ((size_t)2 << 20) /* of a large page */

enum zone_file { ZONE_ARENA, ZONE_RECIPES, ZONE_FILES };

/* From here on the limits are looked at. page_bytes: the size of a page. say: gets a sentence at the first refusal, in
 * any context; NULL for none. Again in a child of fork.  ctx: ordinary, one thread */
void zone_begin_sig(size_t page_bytes, void (*say)(const char *text));

/* Whether the limits allow n_bytes more; true before zone_begin_sig.  ctx: any */
bool zone_leaves_room_sig(uint64_t n_bytes);

/* Makes the reserve if there are limits now. To be called when all is mapped that the start needs.  ctx: ordinary, one
 * thread */
void zone_reserve_sig(void);

/* Maps the first first_bytes (or somewhat more, at most all) of the size_bytes of a memory file, shared, at the address
 * for which; zone_reach_sig maps more of it later. Replaces an earlier mapping: in a child of fork, the parent's. Keeps
 * no descriptor. NULL when it cannot be mapped; an earlier mapping is then replaced by private memory.  ctx: ordinary,
 * one thread */
void *zone_share_sig(enum zone_file which, int fd, uint64_t size_bytes, int protection, uint64_t first_bytes);

/* Whether the first n_bytes of a file are mapped. Grows the mapping if they are not, or if little room is left beyond
 * them. False where the file's end, a limit or other mappings are in the way: the caller counts what it cannot record.
 * Always true for a file that was not mapped here.  ctx: any */
bool zone_reach_sig(enum zone_file which, uint64_t n_bytes);

/* Maps all files whole, so that nothing has to grow afterwards.  ctx: any */
void zone_reach_all_sig(void);

/* Private memory, zeroed and never given back; NULL when there is none.  ctx: any */
void *zone_pages_sig(size_t n_bytes);

/* The same, ZONE_LARGE_BYTES that begin at a multiple of that, for the kernel to back by a large page if it does so for
 * those who ask: what is read here and there then needs fewer entries of the processor's table of pages. All of it is
 * resident at the first touch, so it is for those who use most of it. NULL also where the program has limits or locks
 * its memory.  ctx: any */
void *zone_large_sig(void);

/* Maps a file that is only read, such as a table; NULL when it cannot be. To be unmapped with munmap.  ctx: any */
void *zone_map_file_sig(int fd, size_t n_bytes);

/* Unmaps everything in the zone but the first arena_bytes of the arena.  ctx: ordinary, the only thread of the process
 */
void zone_release_sig(uint64_t arena_bytes);

/* The addresses of the zone; both 0 when there is none.  ctx: any */
void zone_range_sig(uintptr_t *low, uintptr_t *high);

/* Notes whether the program has asked for all future mappings to be locked: ours are then unlocked again.  ctx: any */
void zone_set_locking_sig(bool is_locking);
bool zone_is_locking_sig(void);

#endif
