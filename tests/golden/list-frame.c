/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists what frame_open makes of a file or directory: profiles, columns, nodes with their attributes and sums over all
 * profiles, and with --cells the cells of each; with --query TEXT the numbers that the file itself gives to the nodes
 * which the query finds; --fields opens it with the fields of variables. Exit status 1 and one sentence when it cannot
 * be read. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame/query.h"

static void list_head(const struct frame *frame)
{
    printf("%zu nodes, %s\n", frame_n_nodes(frame), frame_is_tree(frame) ? "a tree" : "no tree");
    for (uint32_t i = 0; i < frame_n_profiles(frame); i++) {
        const struct frame_profile *profile = frame_profile(frame, i);
        printf("profile %u: '%s' rank %" PRId64 " thread %" PRId64 " process %" PRId64 " node %" PRId64 "\n", i,
               profile->name, profile->rank, profile->thread, profile->process, profile->node);
    }
    for (size_t i = 0; i < frame_n_columns(frame); i++)
        printf("column '%s': %s%s\n", frame_column_name(frame, i),
               frame_column_sums(frame, i) == FRAME_INCLUSIVE   ? "inclusive"
               : frame_column_sums(frame, i) == FRAME_EXCLUSIVE ? "exclusive"
                                                                : "plain",
               frame_column_is_hidden(frame, i) ? ", hidden" : "");
}

static void list_attributes(const struct frame *frame, uint32_t node)
{
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        double number = frame_attribute_number(frame, i, node);
        const char *text = frame_attribute_text(frame, i, node);
        if (frame_attribute_is_text(frame, i) && *text)
            printf(" %s=%s", frame_attribute_name(frame, i), text);
        if (!frame_attribute_is_text(frame, i) && !isnan(number))
            printf(" %s=%.10g", frame_attribute_name(frame, i), number);
    }
}

static int list_values(struct frame *frame, uint32_t node, bool with_cells, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < frame_n_columns(frame); i++) {
        const double *values;
        const struct frame_cell *cells;
        size_t n = 0;
        code = frame_values(frame, i, NULL, &values, err);
        if (code == 0 && !isnan(values[node]))
            printf(" | %s %.10g", frame_column_name(frame, i), values[node]);
        if (code == 0 && with_cells)
            code = frame_cells(frame, i, node, &cells, &n, err);
        for (size_t k = 0; k < n; k++)
            printf("%s%u:%.10g%s", k ? " " : " (", cells[k].profile, cells[k].value, k + 1 < n ? "" : ")");
    }
    return code;
}

static int list_nodes(struct frame *frame, bool with_cells, struct error *err)
{
    const uint32_t *depths = frame_depths(frame);
    int code = depths ? 0 : error_set(err, ERR_MEMORY, "out of memory");
    for (uint32_t node = 0; code == 0 && node < frame_n_nodes(frame); node++) {
        size_t n = 0;
        const uint32_t *parents = frame_parents(frame, node, &n);
        printf("%u %*s%s '%s'", node, (int)(depths[node] % 60), "", frame_kind_name(frame_kind(frame, node)),
               frame_name(frame, node));
        if (*frame_file(frame, node) || frame_line(frame, node))
            printf(" %s:%u", frame_file(frame, node), frame_line(frame, node));
        if (*frame_module(frame, node))
            printf(" [%s]", frame_module(frame, node));
        for (size_t i = 0; i < n; i++)
            printf("%s%u", i ? " " : " ^", parents[i]);
        list_attributes(frame, node);
        code = list_values(frame, node, with_cells, err);
        printf("\n");
    }
    return code;
}

/* In databases, the attribute "id". */
static int list_found(struct frame *frame, const char *query, struct error *err)
{
    bool *found = NULL;
    size_t id = 0;
    while (id < frame_n_attributes(frame) && strcmp(frame_attribute_name(frame, id), "id") != 0)
        id++;
    int code = query_run(frame, query, NULL, &found, err);
    for (uint32_t node = 0; code == 0 && node < frame_n_nodes(frame); node++)
        if (found[node])
            printf("%.0f\n", id < frame_n_attributes(frame) ? frame_attribute_number(frame, id, node) : node);
    free(found);
    return code;
}

int main(int argc, char **argv)
{
    struct frame *frame = NULL;
    struct error err = {0};
    bool with_cells = argc == 3 && strcmp(argv[1], "--cells") == 0;
    bool with_fields = argc == 3 && strcmp(argv[1], "--fields") == 0;
    bool with_parts = argc == 3 && strcmp(argv[1], "--parts") == 0;
    int code = (with_fields  ? frame_open_fields
                : with_parts ? frame_open_parts
                             : frame_open)(argv[argc - 1], &frame, &err);
    if (code == 0 && argc == 4 && strcmp(argv[1], "--query") == 0) {
        code = list_found(frame, argv[2], &err);
    } else if (code == 0) {
        list_head(frame);
        code = list_nodes(frame, with_cells, &err);
    }
    if (code != 0)
        fprintf(stderr, "%s\n", err.text);
    frame_close(frame);
    return code != 0;
}
