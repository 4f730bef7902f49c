/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of streams/topology.h, recordings.h, import/topology.h: the requirements on NUMA topology views by their
 * numbers in doc/streams.md. Machines are described in hwloc's words, and become XML here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmt/file.h"
#include "streams/recordings.h"
#include "streams/topology.h"

static char directory[64], path_of_xml[4][96];

static int make_directory(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "topology-test-XXXXXX");
    return mkdtemp(directory) ? 0 : 1;
}

static int remove_directory(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

/* Writes the XML of a machine in hwloc's words to file number i; returns its path. */
static const char *make_xml(int i, const char *words)
{
    hwloc_topology_t machine;
    (void)snprintf(path_of_xml[i], sizeof *path_of_xml, "%s/%d.xml", directory, i);
    assert_int_equal(hwloc_topology_init(&machine), 0);
    assert_int_equal(hwloc_topology_set_synthetic(machine, words), 0);
    assert_int_equal(hwloc_topology_load(machine), 0);
    assert_int_equal(hwloc_topology_export_xml(machine, path_of_xml[i], 0), 0);
    hwloc_topology_destroy(machine);
    return path_of_xml[i];
}

/* Writes any text to file number i. */
static const char *make_text(int i, const char *text)
{
    struct error err;
    (void)snprintf(path_of_xml[i], sizeof *path_of_xml, "%s/%d.xml", directory, i);
    assert_int_equal(file_replace(path_of_xml[i], text, strlen(text), &err), 0);
    return path_of_xml[i];
}

static void read_brief(const char *words, struct topology *topology, struct brief_topology *brief)
{
    struct error err = {0};
    *brief = (struct brief_topology){0};
    if (topology_read(make_xml(0, words), topology, &err) != 0 || brief_topology_make(topology, brief, &err) != 0)
        fail_msg("%s", err.text);
}

/* The rows as text: "node.core.cpu=os ...". */
static const char *rows_of(const struct brief_topology *brief)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < brief->n_cpus && at < sizeof text - 64; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u.%u.%u=%u", i ? " " : "", brief->cpus[i].node,
                               brief->cpus[i].core, brief->cpus[i].cpu, brief->cpus[i].os);
    return text;
}

/* The tree as text: "M[0+4] NN 0[0+2] C 0[0+1] ..." */
static const char *tree_text(const struct topology_tree *tree)
{
    static char text[4096];
    struct buf out = {0};
    for (size_t i = 0; i < tree->n_blocks; i++) {
        buf_printf(&out, i ? " " : "");
        tree_block_put_label(tree, &tree->blocks[i], &out);
        buf_printf(&out, "[%u+%u]", tree->blocks[i].first_row, tree->blocks[i].n_rows);
    }
    (void)snprintf(text, sizeof text, "%s", out.data ? out.data : "");
    buf_fini(&out);
    return text;
}

/* --- the brief topology --- */

static void n04_brief_topology(void **state)
{
    struct topology topology;
    struct brief_topology brief;
    (void)state;
    read_brief("numa:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", &topology, &brief);
    assert_string_equal(rows_of(&brief), "0.0.0=0 0.0.1=4 0.1.2=1 0.1.3=5 1.2.4=2 1.2.5=6 1.3.6=3 1.3.7=7");
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n04_cpus_outside_of_cores(void **state)
{
    struct topology topology;
    struct brief_topology brief;
    (void)state;
    read_brief("numa:2 pu:2", &topology, &brief);
    assert_string_equal(rows_of(&brief), "0.0.0=0 0.1.1=1 1.2.2=2 1.3.3=3");
    assert_int_equal(brief_topology_count_cores(&brief), 4);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n05_unreadable(void **state)
{
    static const char *const texts[] = {"", "<", "no topology", "<?xml version=\"1.0\"?><topology version=\"2.0\">",
                                        "<topology version=\"2.0\"><object type=\"Machine\"/></topology>"};
    struct topology topology;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = {0};
        assert_int_equal(topology_read(make_text(0, texts[i]), &topology, &err), ERR_FORMAT);
        assert_non_null(strstr(err.text, "0.xml is not a topology that hwloc can read"));
        assert_int_equal(topology.n_cpus, 0);
        assert_null(topology.cpus);
    }
    struct error err = {0};
    assert_int_equal(topology_read("no/such/file.xml", &topology, &err), ERR_IO);
    assert_null(topology.cpus);
}

static void beyond_n11_nested_nodes(void **state)
{
    struct topology topology;
    struct brief_topology brief;
    (void)state;
    read_brief("pack:2 [numa] l3:2 [numa] core:2 pu:1", &topology, &brief);
    assert_int_equal(topology.n_nodes, 6);
    assert_int_equal(topology.n_packages, 2);
    for (uint32_t i = 0; i < topology.n_cpus; i++) {
        const struct topology_cpu *cpu = &topology.cpus[i];
        assert_int_equal(cpu->n_local, 2);
        uint32_t inner = topology.locals[cpu->first_local], outer = topology.locals[cpu->first_local + 1];
        assert_true(topology.nodes[inner].os < topology.nodes[outer].os);
        assert_int_equal(cpu->node, inner);
        assert_int_equal(topology.nodes[inner].n_local + topology.nodes[outer].n_local, 6);
    }
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void beyond_n11_many_cpus(void **state)
{
    struct topology topology;
    struct brief_topology brief;
    (void)state;
    read_brief("pack:2 numa:4 core:16 pu:2", &topology, &brief);
    assert_int_equal(brief_topology_count_cpus(&brief), 256);
    assert_int_equal(brief_topology_count_cores(&brief), 128);
    assert_int_equal(brief_topology_count_nodes(&brief), 8);
    assert_int_equal(topology.nodes[3].package, 0);
    assert_int_equal(topology.nodes[4].package, 1);
    assert_int_equal(topology_node(&topology, 255), 7);
    assert_int_equal(topology_node(&topology, 256), TOPOLOGY_UNKNOWN);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n26_counts_and_filter(void **state)
{
    static const uint32_t some[] = {7, 0, 99, 4}, none[] = {99};
    struct topology topology;
    struct brief_topology brief, pruned = {0}, empty = {0};
    struct error err;
    (void)state;
    read_brief("numa:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", &topology, &brief);
    assert_int_equal(brief_topology_count_cpus(&brief), 8);
    assert_int_equal(brief_topology_count_cores(&brief), 4);
    assert_int_equal(brief_topology_filter(&brief, some, 4, &pruned, &err), 0);
    assert_string_equal(rows_of(&pruned), "0.0.0=0 0.0.1=4 1.3.7=7");
    assert_int_equal(brief_topology_count_cpus(&pruned), 3);
    assert_int_equal(brief_topology_count_cores(&pruned), 2);
    assert_int_equal(brief_topology_count_nodes(&pruned), 2);
    assert_int_equal(brief_topology_filter(&brief, none, 1, &empty, &err), 0);
    assert_int_equal(brief_topology_count_cores(&empty), 0);
    brief_topology_fini(&empty);
    assert_int_equal(brief_topology_filter(&brief, NULL, 0, &empty, &err), 0);
    assert_int_equal(brief_topology_count_nodes(&empty), 0);
    brief_topology_fini(&empty);
    brief_topology_fini(&pruned);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n26_rearrange(void **state)
{
    uint32_t listed[] = {7, 99, 2, 4, 0, 4, 5};
    struct topology topology;
    struct brief_topology brief;
    (void)state;
    read_brief("numa:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", &topology, &brief);
    assert_int_equal(brief_topology_rearrange(&brief, listed, 7), 5);
    static const uint32_t expected[] = {0, 4, 5, 2, 7};
    assert_memory_equal(listed, expected, sizeof expected);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

/* The example of the design document, with the numbers of the operating system as third ones. */
static void n22_row_order(void **state)
{
    static struct topology_cpu cpus[] = {{.os = 3, .core = 5, .node = 1},
                                         {.os = 20, .core = 0, .node = 0},
                                         {.os = 2, .core = 4, .node = 1},
                                         {.os = 60, .core = 0, .node = 0},
                                         {.os = 1, .core = 1, .node = 0}};
    struct topology topology = {.cpus = cpus, .n_cpus = 5, .n_cores = 6, .n_nodes = 2, .n_os = 61};
    struct brief_topology brief = {0};
    struct error err;
    uint32_t rows[] = {1, 2, 3, 20, 60};
    static const uint32_t expected[] = {20, 60, 1, 2, 3};
    (void)state;
    topology.by_os = malloc(topology.n_os * sizeof *topology.by_os);
    assert_non_null(topology.by_os);
    memset(topology.by_os, 0xff, topology.n_os * sizeof *topology.by_os);
    for (uint32_t i = 0; i < 5; i++)
        topology.by_os[cpus[i].os] = i;
    assert_int_equal(brief_topology_make(&topology, &brief, &err), 0);
    assert_int_equal(brief_topology_rearrange(&brief, rows, 5), 5);
    assert_memory_equal(rows, expected, sizeof expected);
    brief_topology_fini(&brief);
    topology.by_os[1] = 3; /* two CPUs of one number */
    assert_int_equal(brief_topology_make(&topology, &brief, &err), ERR_FORMAT);
    assert_null(brief.cpus);
    free(topology.by_os);
}

/* --- the tree --- */

static void n16_blocks_span_their_rows(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct topology topology;
    struct brief_topology brief;
    struct topology_tree tree = {0};
    struct error err;
    (void)state;
    read_brief("numa:2 core:2 pu:2", &topology, &brief);
    assert_int_equal(topology_tree_make(&brief, all, 8, &tree, &err), 0);
    assert_string_equal(tree_text(&tree), "M[0+8] NN 0[0+4] C 0[0+2] C 1[2+2] NN 1[4+4] C 2[4+2] C 3[6+2]");
    for (size_t i = 1; i < tree.n_blocks; i++) {
        const struct tree_block *block = &tree.blocks[i], *parent = &tree.blocks[block->parent];
        assert_int_equal(parent->level, block->level - 1);
        assert_true(parent->first_row <= block->first_row &&
                    block->first_row + block->n_rows <= parent->first_row + parent->n_rows);
    }
    topology_tree_fini(&tree);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n21_only_shown_cpus(void **state)
{
    static const uint32_t shown[] = {6, 1, 7};
    struct topology topology;
    struct brief_topology brief;
    struct topology_tree tree = {0};
    struct error err;
    (void)state;
    read_brief("numa:2 core:2 pu:2", &topology, &brief);
    assert_int_equal(topology_tree_make(&brief, shown, 3, &tree, &err), 0);
    assert_string_equal(tree_text(&tree), "M[0+3] NN 0[0+1] C 0[0+1] NN 1[1+2] C 3[1+2]");
    topology_tree_fini(&tree);
    assert_int_equal(topology_tree_make(&brief, shown, 0, &tree, &err), 0);
    assert_int_equal(tree.n_blocks, 0);
    topology_tree_fini(&tree);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n17_heights(void **state)
{
    (void)state;
    assert_int_equal(topology_tree_height(0, 80, 20), 0);
    assert_int_equal(topology_tree_height(1, 80, 20), 80);
    assert_int_equal(topology_tree_height(2, 80, 20), 180);
    /* a node is its cores and the spacings between them, the machine its nodes and theirs */
    uint64_t cores = 2 * topology_tree_height(2, 80, 20) + 20;
    assert_int_equal(topology_tree_height(4, 80, 20), cores);
    assert_int_equal(topology_tree_height(8, 80, 20), 2 * cores + 20);
}

static void assert_color(struct tree_color color, int red, int green, int blue)
{
    assert_int_equal(color.red, red);
    assert_int_equal(color.green, green);
    assert_int_equal(color.blue, blue);
}

static void n18_colors(void **state)
{
    static const uint32_t all[] = {0, 1, 2};
    static const struct tree_color cpus[] = {{10, 255, 0}, {21, 254, 0}, {200, 0, 101}};
    struct topology topology;
    struct brief_topology brief;
    struct topology_tree tree = {0};
    struct error err;
    (void)state;
    read_brief("numa:1 core:2 pu:2", &topology, &brief);
    assert_int_equal(topology_tree_make(&brief, all, 3, &tree, &err), 0);
    assert_string_equal(tree_text(&tree), "M[0+3] NN 0[0+3] C 0[0+2] C 1[2+1]");
    topology_tree_paint(&tree, cpus, (struct tree_color){1, 2, 3});
    assert_color(tree.blocks[0].color, 1, 2, 3);
    assert_color(tree.blocks[2].color, 15, 254, 0);
    assert_color(tree.blocks[3].color, 200, 0, 101);
    assert_color(tree.blocks[1].color, 107, 127, 50); /* of the cores, not of the CPUs */
    topology_tree_fini(&tree);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void n19_text_color(void **state)
{
    static const struct {
        struct tree_color background;
        int text;
    } cases[] = {{{0, 0, 0}, 255},     {{255, 255, 255}, 0}, {{128, 128, 128}, 255},
                 {{129, 129, 129}, 0}, {{255, 0, 0}, 255},   {{0, 255, 0}, 0},
                 {{0, 0, 255}, 255},   {{255, 90, 0}, 0},    {{255, 88, 0}, 255}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_color(tree_color_of_text(cases[i].background), cases[i].text, cases[i].text, cases[i].text);
}

static void n20_names(void **state)
{
    static const uint32_t shown[] = {3};
    struct topology topology;
    struct brief_topology brief;
    struct topology_tree tree = {0};
    struct buf out = {0};
    struct error err;
    (void)state;
    read_brief("numa:2 core:2 pu:1", &topology, &brief);
    assert_int_equal(topology_tree_make(&brief, shown, 1, &tree, &err), 0);
    for (size_t i = 0; i < tree.n_blocks; i++) {
        tree_block_put_name(&tree, &tree.blocks[i], &out);
        buf_printf(&out, ";");
    }
    assert_string_equal(out.data, "Machine;NUMA Node 1;Core 3 in NUMA Node 1;");
    buf_fini(&out);
    topology_tree_fini(&tree);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

/* --- views --- */

static const struct stream_cpus four = {.n_cpus = 4}, eight = {.n_cpus = 8};

static void n01_opt_in(void **state)
{
    struct stream_views views = {0};
    uint32_t rows[] = {3, 0, 2};
    static const uint32_t expected[] = {0, 2, 3};
    (void)state;
    assert_null(stream_views_find(&views, 0));
    assert_false(stream_views_wants_topology(&views, 0));
    assert_int_equal(stream_views_order(&views, 0, rows, 3), 3);
    assert_memory_equal(rows, expected, sizeof expected);
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, "", NULL), VIEW_UNCHANGED);
    assert_int_equal(views.n, 0);
    stream_views_clear(&views);
}

static void n02_views(void **state)
{
    struct stream_views views = {0};
    uint32_t rows[] = {0, 1, 2, 3};
    static const uint32_t by_number[] = {0, 1, 2, 3}, by_tree[] = {0, 2, 1, 3};
    (void)state;
    assert_int_equal(TOPOLOGY_VIEW_DEFAULT, 0);
    assert_int_equal(TOPOLOGY_VIEW_NUMATREE, 1);
    const char *path = make_xml(0, "numa:2 core:2 pu:1(indexes=0,2,1,3)");
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_DEFAULT, path, NULL), VIEW_DONE);
    assert_false(stream_views_wants_topology(&views, 0));
    assert_int_equal(stream_views_order(&views, 0, rows, 4), 4);
    assert_memory_equal(rows, by_number, sizeof by_number);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, NULL), VIEW_DONE);
    assert_true(stream_views_wants_topology(&views, 0));
    assert_int_equal(stream_views_order(&views, 0, rows, 4), 4);
    assert_memory_equal(rows, by_tree, sizeof by_tree);
    stream_views_clear(&views);
}

static void n06_count_of_cpus_must_agree(void **state)
{
    struct stream_views views = {0};
    struct error err = {0};
    (void)state;
    const char *wrong = make_xml(1, "numa:2 core:4 pu:2");
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, wrong, &err), VIEW_REFUSED);
    assert_non_null(strstr(err.text, "the topology has 16 CPUs, but the stream has 4"));
    assert_int_equal(views.n, 0);
    const char *right = make_xml(2, "numa:2 core:2 pu:1");
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, right, &err), VIEW_DONE);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_DEFAULT, wrong, &err), VIEW_REFUSED);
    const struct stream_view *kept = stream_views_find(&views, 0);
    assert_string_equal(kept->path, right);
    assert_int_equal(kept->view, TOPOLOGY_VIEW_NUMATREE);
    assert_int_equal(kept->brief.n_cpus, 4);
    stream_views_clear(&views);
}

static void n07_without_a_file(void **state)
{
    struct stream_views views = {0};
    struct error err = {0};
    (void)state;
    const char *path = make_xml(0, "numa:2 core:2 pu:1");
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, "gone.xml", &err), VIEW_REFUSED);
    assert_null(stream_views_find(&views, 0));
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), VIEW_DONE);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, "gone.xml", &err), VIEW_REFUSED);
    assert_true(stream_views_wants_topology(&views, 0));
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, "", &err), VIEW_DONE);
    assert_null(stream_views_find(&views, 0));
    stream_views_clear(&views);
}

static void n08_what_a_change_returns(void **state)
{
    struct stream_views views = {0};
    struct error err = {0};
    (void)state;
    const char *path = make_xml(0, "numa:2 core:2 pu:1"), *other = make_xml(1, "numa:1 core:4 pu:1");
    assert_int_equal(stream_views_create(NULL, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), -2);
    assert_int_equal(stream_views_update(NULL, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), -2);
    assert_int_equal(stream_views_delete(NULL, 0), -2);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), -3);
    assert_int_equal(stream_views_delete(&views, 0), -3);
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), 0);
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), 1);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), 1);
    const struct brief_cpu *before = stream_views_find(&views, 0)->brief.cpus;
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_DEFAULT, path, &err), 0);
    assert_ptr_equal(stream_views_find(&views, 0)->brief.cpus, before); /* only the view has changed */
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_DEFAULT, other, &err), 0);
    assert_int_equal(brief_topology_count_nodes(&stream_views_find(&views, 0)->brief), 1);
    assert_int_equal(stream_views_update(&views, 0, &four, TOPOLOGY_VIEW_DEFAULT, make_text(2, "x"), &err), -1);
    assert_string_equal(stream_views_find(&views, 0)->path, other);
    assert_int_equal(stream_views_delete(&views, 0), 0);
    assert_int_equal(stream_views_delete(&views, 0), -3);
    stream_views_clear(&views);
}

static void n09_clearing(void **state)
{
    struct stream_views views = {0};
    (void)state;
    const char *small = make_xml(0, "numa:2 core:2 pu:1"), *large = make_xml(1, "numa:2 core:2 pu:2");
    assert_int_equal(stream_views_create(&views, 7, &eight, TOPOLOGY_VIEW_NUMATREE, large, NULL), 0);
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, small, NULL), 0);
    assert_int_equal(views.all[0]->stream, 0);
    assert_int_equal(views.all[1]->stream, 7);
    assert_int_equal(stream_views_find(&views, 7)->brief.n_cpus, 8);
    stream_views_clear(&views);
    assert_null(stream_views_find(&views, 0));
    assert_null(stream_views_find(&views, 7));
    assert_int_equal(stream_views_create(&views, 0, &four, TOPOLOGY_VIEW_NUMATREE, small, NULL), 0);
    stream_views_clear(&views);
}

/* What shows a view gets it constant, and leaves the rows of other streams alone. */
static void n27_showing_changes_nothing(void **state)
{
    struct stream_views views = {0};
    struct topology_tree tree = {0};
    struct error err;
    uint32_t rows[] = {3, 2, 1, 0}, others[] = {3, 2, 1, 0};
    static const uint32_t by_number[] = {0, 1, 2, 3};
    (void)state;
    const char *path = make_xml(0, "numa:2 core:2 pu:1(indexes=0,2,1,3)");
    assert_int_equal(stream_views_create(&views, 1, &four, TOPOLOGY_VIEW_NUMATREE, path, &err), 0);
    const struct stream_view *view = stream_views_find(&views, 1);
    char before[256];
    (void)snprintf(before, sizeof before, "%s", rows_of(&view->brief));
    assert_int_equal(stream_views_order(&views, 0, others, 4), 4);
    assert_memory_equal(others, by_number, sizeof by_number);
    assert_int_equal(stream_views_order(&views, 1, rows, 4), 4);
    assert_int_equal(topology_tree_make(&view->brief, rows, 2, &tree, &err), 0);
    topology_tree_paint(&tree, (const struct tree_color[2]){{0, 0, 0}}, (struct tree_color){0, 0, 0});
    topology_tree_fini(&tree);
    assert_ptr_equal(stream_views_find(&views, 1), view);
    assert_string_equal(rows_of(&view->brief), before);
    stream_views_clear(&views);
}

/* hwloc's XML of a machine with a CPU that is switched off: it is in the complete set alone. */
static void beyond_n06_offline_cpus(void **state)
{
    static const bool silent[] = {true, true, true, false}, busy[] = {true, true, false, true};
    struct stream_views views = {0};
    struct error err = {0};
    struct buf text = {0};
    (void)state;
    assert_int_equal(file_read(make_xml(0, "numa:1 core:3 pu:1"), &text, &err), 0);
    for (char *at = text.data; (at = strstr(at, " complete_cpuset=\"0x00000007\"")); at++)
        memcpy(at, " complete_cpuset=\"0x0000000f\"", 29);
    const char *path = make_text(1, text.data);
    struct stream_cpus cpus = {4, silent};
    assert_int_equal(stream_views_create(&views, 0, &cpus, TOPOLOGY_VIEW_NUMATREE, path, &err), VIEW_DONE);
    assert_int_equal(views.all[0]->topology.n_offline, 1);
    assert_int_equal(views.all[0]->topology.offline[0], 3);
    stream_views_clear(&views);
    cpus.has_events = busy;
    assert_int_equal(stream_views_create(&views, 0, &cpus, TOPOLOGY_VIEW_NUMATREE, path, &err), VIEW_REFUSED);
    assert_non_null(strstr(err.text, "has 3 CPUs and 1 that was offline, but the stream has 4"));
    cpus.has_events = NULL;
    assert_int_equal(stream_views_create(&views, 0, &cpus, TOPOLOGY_VIEW_NUMATREE, path, &err), VIEW_REFUSED);
    buf_fini(&text);
    stream_views_clear(&views);
}

/* --- sessions --- */

static void n10_session(void **state)
{
    struct recordings session = {0}, again = {0};
    struct error err = {0};
    char path[96];
    (void)state;
    const char *xml = make_xml(0, "numa:2 core:2 pu:1"), *stream = make_text(1, "not read here");
    (void)snprintf(path, sizeof path, "%s/session.json", directory);
    assert_int_equal(recordings_add(&session, stream, true, TOPOLOGY_VIEW_NUMATREE, xml, &err), 0);
    assert_int_equal(recordings_add(&session, stream, false, TOPOLOGY_VIEW_DEFAULT, NULL, &err), 0);
    assert_int_equal(recordings_write(path, &session, &err), 0);
    assert_int_equal(recordings_read(path, &again, &err), 0);
    assert_int_equal(again.n_streams, 2);
    assert_int_equal(again.streams[0].file[0], '/');
    assert_true(again.streams[0].has_couplebreak);
    assert_int_equal(again.streams[0].view, TOPOLOGY_VIEW_NUMATREE);
    assert_non_null(strstr(again.streams[0].topology, "/0.xml"));
    assert_false(again.streams[1].has_couplebreak);
    assert_null(again.streams[1].topology);
    recordings_fini(&again);
    assert_int_equal(unlink(xml), 0); /* a topology that is gone is left out */
    assert_int_equal(recordings_read(path, &again, &err), 0);
    assert_null(again.streams[0].topology);
    assert_int_equal(again.streams[0].view, TOPOLOGY_VIEW_DEFAULT);
    recordings_fini(&again);
    recordings_fini(&session);
}

static void n10_and_c19_what_is_missing_is_off(void **state)
{
    struct recordings session = {0};
    struct error err = {0};
    (void)state;
    const char *path = make_text(
        0, "{\"format\": \"locus-session\", \"version\": 1, \"streams\": [{\"stream_id\": 0, \"file\": \"x\"}]}");
    assert_int_equal(recordings_read(path, &session, &err), 0);
    assert_false(session.streams[0].has_couplebreak);
    assert_int_equal(session.streams[0].view, TOPOLOGY_VIEW_DEFAULT);
    assert_null(session.streams[0].topology);
    recordings_fini(&session);
}

static void n10_damaged_sessions(void **state)
{
#define BEGIN "{\"format\": \"locus-session\", \"version\": 1, "
#define TWO "{\"format\": \"locus-session\", \"version\": 2, \"streams\": [{\"stream_id\": 0, \"file\": \"x\"}], "
#define ONE BEGIN "\"streams\": [{\"stream_id\": 0, \"file\": \"x\"}], "
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        BEGIN "\"streams\": 4}",
        "{\"format\": \"locus-session\", \"version\": 3, \"streams\": []}",
        TWO "\"from_ns\": \"x\"}",
        TWO "\"rows\": [{\"stream_id\": 0}]}",
        TWO "\"rows\": 4}",
        TWO "\"task\": 4}",
        TWO "\"markers\": {\"a\": {\"ns\": true}}}",
        "{\"format\": \"locus-session\", \"version\": 2, \"streams\": [{\"stream_id\": 0, \"file\": \"x\", "
        "\"filters\": "
        "{\"show task filter\": [\"x\"]}}]}",
        "{\"type\": \"kshark.config.session\"}",
        "{\"type\": \"kshark.config.session\", \"data streams\": [{}]}",
        "{\"type\": \"kshark.config.session\", \"data streams\": [{\"data\": {\"file\": 4}}]}",
        BEGIN "\"streams\": [{\"stream_id\": 1, \"file\": \"x\"}]}",
        BEGIN "\"streams\": [{\"stream_id\": 0}]}",
        BEGIN "\"streams\": [{\"stream_id\": 0, \"file\": \"x\", \"couplebreak\": 1}]}",
        ONE "\"NUMA TV\": {}}",
        ONE "\"NUMA TV\": {\"type\": \"other\", \"topologies\": []}}",
        ONE "\"NUMA TV\": {\"type\": \"kshark.config.topology\", \"topologies\": [{\"stream_id\": 0, \"view\": 2, "
            "\"topology_xml_fpath\": \"/\"}]}}",
        ONE "\"NUMA TV\": {\"type\": \"kshark.config.topology\", \"topologies\": [{\"stream_id\": 0, \"view\": 1}]}}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct recordings session = {0};
        struct error err = {0};
        assert_int_equal(recordings_read(make_text(0, texts[i]), &session, &err), ERR_FORMAT);
        assert_null(session.streams);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n01_opt_in),
        cmocka_unit_test(n02_views),
        cmocka_unit_test(n04_brief_topology),
        cmocka_unit_test(n04_cpus_outside_of_cores),
        cmocka_unit_test(n05_unreadable),
        cmocka_unit_test(n06_count_of_cpus_must_agree),
        cmocka_unit_test(beyond_n06_offline_cpus),
        cmocka_unit_test(n07_without_a_file),
        cmocka_unit_test(n08_what_a_change_returns),
        cmocka_unit_test(n09_clearing),
        cmocka_unit_test(n10_session),
        cmocka_unit_test(n10_and_c19_what_is_missing_is_off),
        cmocka_unit_test(n10_damaged_sessions),
        cmocka_unit_test(beyond_n11_nested_nodes),
        cmocka_unit_test(beyond_n11_many_cpus),
        cmocka_unit_test(n16_blocks_span_their_rows),
        cmocka_unit_test(n17_heights),
        cmocka_unit_test(n18_colors),
        cmocka_unit_test(n19_text_color),
        cmocka_unit_test(n20_names),
        cmocka_unit_test(n21_only_shown_cpus),
        cmocka_unit_test(n22_row_order),
        cmocka_unit_test(n26_counts_and_filter),
        cmocka_unit_test(n26_rearrange),
        cmocka_unit_test(n27_showing_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
