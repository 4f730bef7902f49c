/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the metrics of allocations, the first three as in the original. Shared by who writes them and who reads
 * them. Any context. */
#ifndef LOCUS_FMT_LEAK_COLUMNS_H
#define LOCUS_FMT_LEAK_COLUMNS_H

#define LEAK_ALLOCATED_NAME "Bytes Allocated"
#define LEAK_FREED_NAME "Bytes Freed"
#define LEAK_LEAKED_NAME "Bytes Leaked"
#define LEAK_MARKED_NAME "Bytes Live at Mark"
#define LEAK_NAMES_PREFIX "Bytes " /* of all of them, and of no other metric of ours */

#endif
