/* SPDX-License-Identifier: BSD-3-Clause */
/* NUMA topology views of streams: the brief topology (which core and node each CPU is in), the rows of CPUs in its
 * order, the tree of blocks beside them, and which stream has which view, kept in sessions. What is configured changes
 * by calls alone; what shows it only reads it. Ordinary code. */
#ifndef LOCUS_STREAMS_TOPOLOGY_H
#define LOCUS_STREAMS_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "import/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- the brief topology --- */

/* A CPU with hwloc's logical numbers of its NUMA node (the first of its local ones), core and itself; os: as the
 * operating system numbers it, which is its label. node is TOPOLOGY_UNKNOWN where there is none; a CPU that is in no
 * core is one by itself, with a number behind those of all cores. */
struct brief_cpu {
    uint32_t node, core, cpu, os;
    uint32_t package; /* TOPOLOGY_UNKNOWN: none */
};

/* All CPUs by node, core and CPU: the order of rows. All zero is empty. */
struct brief_topology {
    struct brief_cpu *cpus; /* [n_cpus] */
    size_t n_cpus;
};

/* Extracts it; *brief must be empty.  err: ERR_FORMAT (two CPUs have the same number), ERR_MEMORY */
int brief_topology_make(const struct topology *from, struct brief_topology *brief, struct error *err);
void brief_topology_fini(struct brief_topology *brief);

/* How many CPUs, cores and nodes it has. */
size_t brief_topology_count_cpus(const struct brief_topology *brief);
size_t brief_topology_count_cores(const struct brief_topology *brief);
size_t brief_topology_count_nodes(const struct brief_topology *brief);

/* What is left of it with the CPUs os[n_os] alone: cores and nodes without CPUs are gone, and so are numbers that it
 * does not have. *pruned must be empty.  err: ERR_MEMORY */
int brief_topology_filter(const struct brief_topology *brief, const uint32_t *os, size_t n_os,
                          struct brief_topology *pruned, struct error *err);

/* Puts the CPUs os[n_os] into the order of the rows, each one once; those that it does not have are dropped. Returns
 * how many there are now.  err: SIZE_MAX when out of memory */
size_t brief_topology_rearrange(const struct brief_topology *brief, uint32_t *os, size_t n_os);

/* --- the tree beside the rows --- */

enum tree_level { TREE_MACHINE, TREE_NODE, TREE_CORE, TREE_LEVELS };

struct tree_color {
    uint8_t red, green, blue;
};

/* A block stands beside the rows of its CPUs. */
struct tree_block {
    enum tree_level level;
    uint32_t number; /* hwloc's logical one of the node or core; of the machine 0 */
    uint32_t parent; /* index in blocks; of the machine itself 0 */
    uint32_t first_row, n_rows;
    struct tree_color color;
};

/* A tree of those CPUs that are shown. Without any there are no blocks. */
struct topology_tree {
    struct tree_block *blocks; /* [n_blocks] parents first, then from top to bottom */
    struct brief_cpu *rows;    /* [n_rows] */
    size_t n_blocks, n_rows;
};

/* Makes the tree of the CPUs os[n_os]; *tree must be empty.  err: ERR_MEMORY */
int topology_tree_make(const struct brief_topology *brief, const uint32_t *os, size_t n_os, struct topology_tree *tree,
                       struct error *err);
void topology_tree_fini(struct topology_tree *tree);

/* Height of n_rows graphs of height_px with spacing_px between them; 0 for none. The height of a block follows from its
 * rows, and that of all of a stream from its CPUs and tasks. */
uint64_t topology_tree_height(uint64_t n_rows, uint64_t height_px, uint64_t spacing_px);

/* Gives the blocks their colours: a core the mean of its rows' (cpu_colors[n_rows]), a node that of its cores, each
 * channel cut to an integer, and the machine its own. */
void topology_tree_paint(struct topology_tree *tree, const struct tree_color *cpu_colors, struct tree_color machine);

/* Black where the background is bright, else white.  src: luma of ITU-R BT.601, more than 128 of 255 is bright */
struct tree_color tree_color_of_text(struct tree_color background);

/* A colour for the CPU or stream with this number: neighbours differ. */
struct tree_color tree_color_of_number(uint32_t number);

/* What stands in a block: "M", "NN 1", "C 3"; with its full name: "Machine", "NUMA Node 1", "Core 3 in NUMA Node 1".
 * Without a node: "NN ?". */
void tree_block_put_label(const struct topology_tree *tree, const struct tree_block *block, struct buf *out);
void tree_block_put_name(const struct topology_tree *tree, const struct tree_block *block, struct buf *out);

/* --- views of streams --- */

enum topology_view { TOPOLOGY_VIEW_DEFAULT, TOPOLOGY_VIEW_NUMATREE };

/* What was configured for a stream. */
struct stream_view {
    uint32_t stream; /* its number */
    enum topology_view view;
    char *path; /* of the XML */
    struct topology topology;
    struct brief_topology brief;
};

/* The views of all streams, at most one of each; without one a stream has the default view. All zero is empty. */
struct stream_views {
    struct stream_view **all; /* [n] by number of the stream */
    size_t n, capacity;
};

/* The CPUs of a stream, which the topology must have. */
struct stream_cpus {
    uint32_t n_cpus;        /* that the recording has room for */
    const bool *has_events; /* [n_cpus]; NULL: not known, all of them may have */
};

/* What a change did. A file that cannot be read and one with another number of CPUs are one failure, as in the original
 * design; the sentence says which. */
enum view_change {
    VIEW_DONE = 0,
    VIEW_UNCHANGED = 1,
    VIEW_REFUSED = -1,          /* the file, or its number of CPUs: what was configured before remains */
    VIEW_NO_CONTEXT = -2,       /* views is NULL */
    VIEW_NOTHING_TO_UPDATE = -3 /* the stream has no configuration */
};

/* Configures a view for a stream that has none, or the same as stream_views_update. An empty path, or NULL: see there.
 * The topology must have as many CPUs as the stream, or, with those that were offline, as many as it has room for, none
 * of them with events. Returns an enum view_change; err: for VIEW_REFUSED */
int stream_views_create(struct stream_views *views, uint32_t stream, const struct stream_cpus *cpus,
                        enum topology_view view, const char *path, struct error *err);

/* Changes what is configured: another path replaces all of it, another view with the same path only the view, an empty
 * path or NULL deletes it. Returns as stream_views_create. */
int stream_views_update(struct stream_views *views, uint32_t stream, const struct stream_cpus *cpus,
                        enum topology_view view, const char *path, struct error *err);

/* Forgets what is configured for a stream; VIEW_DONE, VIEW_NO_CONTEXT or VIEW_NOTHING_TO_UPDATE. */
int stream_views_delete(struct stream_views *views, uint32_t stream);

/* Forgets all, as opening another recording and the end do. */
void stream_views_clear(struct stream_views *views);

/* What is configured for a stream, NULL: nothing. Borrowed until the next change. */
const struct stream_view *stream_views_find(const struct stream_views *views, uint32_t stream);

/* Whether a stream wants a tree beside its rows: it has another view than the default. */
bool stream_views_wants_topology(const struct stream_views *views, uint32_t stream);

/* Puts the CPUs os[n_os] into the order of the stream's rows: of its view, and without one by number. Returns how many
 * there are now.  err: SIZE_MAX when out of memory */
size_t stream_views_order(const struct stream_views *views, uint32_t stream, uint32_t *os, size_t n_os);

#ifdef __cplusplus
}
#endif

#endif
