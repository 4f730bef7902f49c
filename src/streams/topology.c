/* SPDX-License-Identifier: BSD-3-Clause */
/* The brief topology, rows and trees, and the views of streams: see topology.h. */
#include "streams/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* --- the brief topology --- */

static int compare_cpus(const void *a, const void *b)
{
    const struct brief_cpu *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int brief_topology_make(const struct topology *from, struct brief_topology *brief, struct error *err)
{
    uint32_t n_cores = from->n_cores;
    brief->cpus = calloc((size_t)from->n_cpus + 1, sizeof *brief->cpus);
    if (!brief->cpus)
        return error_memory(err);
    for (uint32_t i = 0; i < from->n_cpus; i++) {
        const struct topology_cpu *cpu = &from->cpus[i];
        if (from->by_os[cpu->os] != i) {
            brief_topology_fini(brief);
            return error_set(err, ERR_FORMAT, "the topology has two CPUs with the number %u", cpu->os);
        }
        uint32_t core = cpu->core == TOPOLOGY_UNKNOWN ? n_cores++ : cpu->core;
        brief->cpus[i] = (struct brief_cpu){cpu->node, core, i, cpu->os, cpu->package};
    }
    brief->n_cpus = from->n_cpus;
    qsort(brief->cpus, brief->n_cpus, sizeof *brief->cpus, compare_cpus);
    return 0;
}

void brief_topology_fini(struct brief_topology *brief)
{
    free(brief->cpus);
    *brief = (struct brief_topology){0};
}

size_t brief_topology_count_cpus(const struct brief_topology *brief)
{
    return brief->n_cpus;
}

static bool begins_node(const struct brief_cpu *cpus, size_t i)
{
    return i == 0 || cpus[i].node != cpus[i - 1].node;
}

static bool begins_core(const struct brief_cpu *cpus, size_t i)
{
    return begins_node(cpus, i) || cpus[i].core != cpus[i - 1].core;
}

size_t brief_topology_count_cores(const struct brief_topology *brief)
{
    size_t n = 0;
    for (size_t i = 0; i < brief->n_cpus; i++)
        n += begins_core(brief->cpus, i);
    return n;
}

size_t brief_topology_count_nodes(const struct brief_topology *brief)
{
    size_t n = 0;
    for (size_t i = 0; i < brief->n_cpus; i++)
        n += begins_node(brief->cpus, i);
    return n;
}

int brief_topology_filter(const struct brief_topology *brief, const uint32_t *os, size_t n_os,
                          struct brief_topology *pruned, struct error *err)
{
    uint32_t *wanted = malloc((n_os + 1) * sizeof *wanted);
    pruned->cpus = malloc((brief->n_cpus + 1) * sizeof *pruned->cpus);
    int code = wanted && pruned->cpus ? 0 : error_memory(err);
    if (code == 0 && n_os) {
        memcpy(wanted, os, n_os * sizeof *wanted);
        qsort(wanted, n_os, sizeof *wanted, compare_numbers);
    }
    for (size_t i = 0; code == 0 && n_os && i < brief->n_cpus; i++)
        if (bsearch(&brief->cpus[i].os, wanted, n_os, sizeof *wanted, compare_numbers))
            pruned->cpus[pruned->n_cpus++] = brief->cpus[i];
    free(wanted);
    if (code != 0)
        brief_topology_fini(pruned);
    return code;
}

size_t brief_topology_rearrange(const struct brief_topology *brief, uint32_t *os, size_t n_os)
{
    struct brief_topology kept = {0};
    if (brief_topology_filter(brief, os, n_os, &kept, NULL) != 0)
        return SIZE_MAX;
    size_t n = kept.n_cpus;
    for (size_t i = 0; i < n; i++)
        os[i] = kept.cpus[i].os;
    brief_topology_fini(&kept);
    return n;
}

/* --- the tree beside the rows --- */

static uint32_t add_block(struct topology_tree *tree, enum tree_level level, uint32_t number, uint32_t parent,
                          size_t row)
{
    tree->blocks[tree->n_blocks] =
        (struct tree_block){.level = level, .number = number, .parent = parent, .first_row = (uint32_t)row};
    return (uint32_t)tree->n_blocks++;
}

int topology_tree_make(const struct brief_topology *brief, const uint32_t *os, size_t n_os, struct topology_tree *tree,
                       struct error *err)
{
    struct brief_topology shown = {0};
    int code = brief_topology_filter(brief, os, n_os, &shown, err);
    if (code != 0)
        return code;
    tree->rows = shown.cpus;
    tree->n_rows = shown.n_cpus;
    tree->blocks = calloc(1 + 2 * tree->n_rows, sizeof *tree->blocks);
    if (!tree->blocks) {
        topology_tree_fini(tree);
        return error_memory(err);
    }
    uint32_t machine = tree->n_rows ? add_block(tree, TREE_MACHINE, 0, 0, 0) : 0, node = 0, core = 0;
    for (size_t i = 0; i < tree->n_rows; i++) {
        if (begins_node(tree->rows, i))
            node = add_block(tree, TREE_NODE, tree->rows[i].node, machine, i);
        if (begins_core(tree->rows, i))
            core = add_block(tree, TREE_CORE, tree->rows[i].core, node, i);
        tree->blocks[machine].n_rows++;
        tree->blocks[node].n_rows++;
        tree->blocks[core].n_rows++;
    }
    return 0;
}

void topology_tree_fini(struct topology_tree *tree)
{
    free(tree->blocks);
    free(tree->rows);
    *tree = (struct topology_tree){0};
}

uint64_t topology_tree_height(uint64_t n_rows, uint64_t height_px, uint64_t spacing_px)
{
    return n_rows ? n_rows * height_px + (n_rows - 1) * spacing_px : 0;
}

/* A sum of colours. */
struct color_sum {
    uint64_t red, green, blue, n;
};

static void add_color(struct color_sum *sum, struct tree_color color)
{
    sum->red += color.red;
    sum->green += color.green;
    sum->blue += color.blue;
    sum->n++;
}

static struct tree_color mean_color(const struct color_sum *sum)
{
    uint64_t n = sum->n ? sum->n : 1;
    return (struct tree_color){(uint8_t)(sum->red / n), (uint8_t)(sum->green / n), (uint8_t)(sum->blue / n)};
}

static struct tree_color core_color(const struct tree_block *core, const struct tree_color *cpu_colors)
{
    struct color_sum sum = {0};
    for (uint32_t row = 0; row < core->n_rows; row++)
        add_color(&sum, cpu_colors[core->first_row + row]);
    return mean_color(&sum);
}

void topology_tree_paint(struct topology_tree *tree, const struct tree_color *cpu_colors, struct tree_color machine)
{
    struct tree_block *node = NULL;
    struct color_sum sum = {0};
    for (size_t i = 0; i < tree->n_blocks; i++) {
        struct tree_block *block = &tree->blocks[i];
        if (block->level == TREE_MACHINE) {
            block->color = machine;
        } else if (block->level == TREE_NODE) {
            node = block;
            sum = (struct color_sum){0};
        } else {
            block->color = core_color(block, cpu_colors);
            add_color(&sum, block->color);
            node->color = mean_color(&sum); /* the last core's stays */
        }
    }
}

struct tree_color tree_color_of_text(struct tree_color background)
{
    unsigned luma = 299u * background.red + 587u * background.green + 114u * background.blue;
    return luma > 128000 ? (struct tree_color){0, 0, 0} : (struct tree_color){255, 255, 255};
}

/* A step of the hue by the golden section keeps neighbours apart. */
struct tree_color tree_color_of_number(uint32_t number)
{
    uint32_t hue = (uint32_t)((uint64_t)(number % 1536) * 949 % 1536), part = hue % 256;
    uint8_t up = (uint8_t)(64 + part * 3 / 4), down = (uint8_t)(64 + (255 - part) * 3 / 4);
    const struct tree_color sixths[] = {{255, up, 64},   {down, 255, 64}, {64, 255, up},
                                        {64, down, 255}, {up, 64, 255},   {255, 64, down}};
    return sixths[hue / 256];
}

static void put_number(const char *before, uint32_t number, struct buf *out)
{
    if (number == TOPOLOGY_UNKNOWN)
        buf_printf(out, "%s ?", before);
    else
        buf_printf(out, "%s %u", before, number);
}

void tree_block_put_label(const struct topology_tree *tree, const struct tree_block *block, struct buf *out)
{
    (void)tree;
    if (block->level == TREE_MACHINE)
        buf_printf(out, "M");
    else
        put_number(block->level == TREE_NODE ? "NN" : "C", block->number, out);
}

void tree_block_put_name(const struct topology_tree *tree, const struct tree_block *block, struct buf *out)
{
    if (block->level == TREE_MACHINE)
        buf_printf(out, "Machine");
    if (block->level == TREE_CORE) {
        put_number("Core", block->number, out);
        buf_printf(out, " in ");
        block = &tree->blocks[block->parent];
    }
    if (block->level == TREE_NODE)
        put_number("NUMA Node", block->number, out);
}

/* --- views of streams --- */

static void free_view(struct stream_view *view)
{
    if (!view)
        return;
    free(view->path);
    topology_fini(&view->topology);
    brief_topology_fini(&view->brief);
    free(view);
}

/* Where the view of a stream is, or would be. */
static size_t place_of(const struct stream_views *views, uint32_t stream)
{
    size_t i = 0;
    while (i < views->n && views->all[i]->stream < stream)
        i++;
    return i;
}

const struct stream_view *stream_views_find(const struct stream_views *views, uint32_t stream)
{
    size_t i = views ? place_of(views, stream) : 0;
    return views && i < views->n && views->all[i]->stream == stream ? views->all[i] : NULL;
}

/* Whether CPUs that were offline when the topology was captured are those without events. */
static bool are_offline_silent(const struct topology *topology, const struct stream_cpus *cpus)
{
    if ((uint64_t)topology->n_cpus + topology->n_offline != cpus->n_cpus || !cpus->has_events)
        return false;
    for (uint32_t cpu = 0; cpu < cpus->n_cpus; cpu++)
        if (cpus->has_events[cpu] && !topology_find(topology, cpu))
            return false;
    return true;
}

static int refuse_count(const struct topology *topology, const struct stream_cpus *cpus, const char *path,
                        struct error *err)
{
    char offline[64] = "";
    if (topology->n_offline)
        (void)snprintf(offline, sizeof offline, " and %u that %s offline", topology->n_offline,
                       topology->n_offline == 1 ? "was" : "were");
    return error_set(err, ERR_RANGE, "%s: the topology has %u CPU%s%s, but the stream has %u", path, topology->n_cpus,
                     topology->n_cpus == 1 ? "" : "s", offline, cpus->n_cpus);
}

/* Makes the view that a file describes; NULL when it is refused. */
static struct stream_view *make_view(uint32_t stream, const struct stream_cpus *cpus, enum topology_view view,
                                     const char *path, struct error *err)
{
    struct error why = {0};
    struct stream_view *made = calloc(1, sizeof *made);
    if (made)
        made->path = strdup(path);
    if (!made || !made->path) {
        (void)error_memory(err);
        free_view(made);
        return NULL;
    }
    made->stream = stream;
    made->view = view;
    int code = topology_read(path, &made->topology, err);
    if (code == 0 && made->topology.n_cpus != cpus->n_cpus && !are_offline_silent(&made->topology, cpus))
        code = refuse_count(&made->topology, cpus, path, err);
    if (code == 0 && (code = brief_topology_make(&made->topology, &made->brief, &why)) != 0)
        (void)error_set(err, code, "%s: %s", path, why.text);
    if (code == 0)
        return made;
    free_view(made);
    return NULL;
}

static int insert_view(struct stream_views *views, struct stream_view *view, struct error *err)
{
    if (!vec_reserve(&views->all, &views->capacity, views->n + 1, sizeof(struct stream_view *)))
        return error_memory(err);
    size_t i = place_of(views, view->stream);
    memmove(&views->all[i + 1], &views->all[i], (views->n - i) * sizeof *views->all);
    views->all[i] = view;
    views->n++;
    return 0;
}

int stream_views_create(struct stream_views *views, uint32_t stream, const struct stream_cpus *cpus,
                        enum topology_view view, const char *path, struct error *err)
{
    if (!views)
        return VIEW_NO_CONTEXT;
    if (stream_views_find(views, stream))
        return stream_views_update(views, stream, cpus, view, path, err);
    if (!path || !*path)
        return VIEW_UNCHANGED; /* the default is what there was */
    struct stream_view *made = make_view(stream, cpus, view, path, err);
    if (made && insert_view(views, made, err) == 0)
        return VIEW_DONE;
    free_view(made);
    return VIEW_REFUSED;
}

int stream_views_update(struct stream_views *views, uint32_t stream, const struct stream_cpus *cpus,
                        enum topology_view view, const char *path, struct error *err)
{
    if (!views)
        return VIEW_NO_CONTEXT;
    size_t i = place_of(views, stream);
    if (!stream_views_find(views, stream))
        return VIEW_NOTHING_TO_UPDATE;
    if (!path || !*path)
        return stream_views_delete(views, stream);
    struct stream_view *present = views->all[i];
    if (strcmp(path, present->path) == 0) {
        if (view == present->view)
            return VIEW_UNCHANGED;
        present->view = view;
        return VIEW_DONE;
    }
    struct stream_view *made = make_view(stream, cpus, view, path, err);
    if (!made)
        return VIEW_REFUSED;
    views->all[i] = made;
    free_view(present);
    return VIEW_DONE;
}

int stream_views_delete(struct stream_views *views, uint32_t stream)
{
    if (!views)
        return VIEW_NO_CONTEXT;
    if (!stream_views_find(views, stream))
        return VIEW_NOTHING_TO_UPDATE;
    size_t i = place_of(views, stream);
    free_view(views->all[i]);
    memmove(&views->all[i], &views->all[i + 1], (views->n - i - 1) * sizeof *views->all);
    views->n--;
    return VIEW_DONE;
}

void stream_views_clear(struct stream_views *views)
{
    for (size_t i = 0; i < views->n; i++)
        free_view(views->all[i]);
    free(views->all);
    *views = (struct stream_views){0};
}

bool stream_views_wants_topology(const struct stream_views *views, uint32_t stream)
{
    const struct stream_view *view = stream_views_find(views, stream);
    return view && view->view != TOPOLOGY_VIEW_DEFAULT;
}

size_t stream_views_order(const struct stream_views *views, uint32_t stream, uint32_t *os, size_t n_os)
{
    if (stream_views_wants_topology(views, stream))
        return brief_topology_rearrange(&stream_views_find(views, stream)->brief, os, n_os);
    if (n_os)
        qsort(os, n_os, sizeof *os, compare_numbers);
    return n_os;
}
