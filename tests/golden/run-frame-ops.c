/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs operations on frames that are given as JSON, one case a line on the standard input, and prints what becomes of
 * them, one line each: the other side of frame-ops.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/json.h"
#include "frame/make.h"
#include "frame/ops.h"
#include "frame/query.h"

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void read_attributes(struct frame_maker *maker, json_t *attributes)
{
    const char *name;
    json_t *values, *value;
    size_t i;
    json_object_foreach(attributes, name, values) json_array_foreach(values, i, value)
    {
        if (json_is_string(value))
            maker_text(maker, name, (uint32_t)i, json_string_value(value));
        else
            maker_number(maker, name, (uint32_t)i, number_of(value));
    }
}

static struct frame *read_frame(json_t *json)
{
    struct frame_maker maker;
    struct frame *frame;
    struct error err;
    size_t i, k;
    json_t *item, *value;
    maker_init(&maker);
    json_array_foreach(json_object_get(json, "profiles"), i, item)
    {
        struct frame_profile profile = {.name = json_string_value(json_array_get(item, 2)),
                                        .rank = json_integer_value(json_array_get(item, 0)),
                                        .thread = json_integer_value(json_array_get(item, 1)),
                                        .process = -1,
                                        .node = -1};
        (void)maker_profile(&maker, &profile);
    }
    json_array_foreach(json_object_get(json, "nodes"), i, item)
    {
        struct made_node node = {.name = json_string_value(json_array_get(item, 1)),
                                 .file = json_string_value(json_array_get(item, 2)),
                                 .module = json_string_value(json_array_get(item, 4)),
                                 .line = (uint32_t)json_integer_value(json_array_get(item, 3))};
        for (enum frame_kind kind = 0; kind < FRAME_KINDS; kind++)
            if (strcmp(frame_kind_name(kind), json_string_value(json_array_get(item, 0))) == 0)
                node.kind = kind;
        (void)maker_node(&maker, FRAME_NONE, &node);
    }
    json_array_foreach(json_object_get(json, "edges"), i, item)
        maker_edge(&maker, (uint32_t)json_integer_value(json_array_get(item, 0)),
                   (uint32_t)json_integer_value(json_array_get(item, 1)));
    json_array_foreach(json_object_get(json, "columns"), i, item)
    {
        size_t column = maker_column(&maker, json_string_value(json_array_get(item, 0)),
                                     (enum frame_sums)json_integer_value(json_array_get(item, 1)));
        json_array_foreach(json_array_get(item, 2), k, value)
            maker_value(&maker, column, (uint32_t)json_integer_value(json_array_get(value, 0)),
                        (uint32_t)json_integer_value(json_array_get(value, 1)), number_of(json_array_get(value, 2)));
    }
    read_attributes(&maker, json_object_get(json, "attributes"));
    if (frame_made(&maker, &frame, NULL, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return frame;
}

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : isnan(value) ? json_null() : json_string(value > 0 ? "inf" : "-inf");
}

static json_t *list_numbers(const uint32_t *numbers, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(numbers[i]));
    return list;
}

static json_t *list_values(struct frame *frame, size_t column, enum frame_aggregate aggregate)
{
    const double *values = NULL;
    json_t *list = json_array();
    struct error err;
    if (frame_values(frame, column, &(struct frame_view){.aggregate = aggregate}, &values, &err) != 0)
        return list;
    for (size_t i = 0; i < frame_n_nodes(frame); i++)
        json_array_append_new(list, real(values[i]));
    return list;
}

static json_t *list_cells(struct frame *frame, size_t column)
{
    json_t *list = json_array();
    for (uint32_t node = 0; node < frame_n_nodes(frame); node++) {
        const struct frame_cell *cells = NULL;
        size_t n = 0;
        struct error err;
        json_t *row = json_array();
        (void)frame_cells(frame, column, node, &cells, &n, &err);
        for (size_t i = 0; i < n; i++)
            json_array_append_new(row, json_pack("[i, o]", (int)cells[i].profile, real(cells[i].value)));
        json_array_append_new(list, row);
    }
    return list;
}

/* sums_first: whether the sums are asked for before the cells, which should not matter. */
static json_t *show_columns(struct frame *frame, bool sums_first)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < frame_n_columns(frame); i++) {
        json_t *sums = sums_first ? list_values(frame, i, FRAME_SUM) : NULL, *cells = list_cells(frame, i);
        sums = sums ? sums : list_values(frame, i, FRAME_SUM);
        json_array_append_new(columns, json_pack("[s, i, o, o, o]", frame_column_name(frame, i),
                                                 (int)frame_column_sums(frame, i), cells, sums,
                                                 list_values(frame, i, FRAME_MAX)));
    }
    return columns;
}

static json_t *show(struct frame *frame, bool sums_first)
{
    json_t *nodes = json_array(), *children = json_array(), *profiles = json_array(), *attributes = json_object();
    size_t n, n_roots;
    for (uint32_t i = 0; i < frame_n_nodes(frame); i++) {
        const uint32_t *below = frame_children(frame, i, &n);
        json_array_append_new(children, list_numbers(below, n));
        json_array_append_new(nodes, json_pack("[s, s, s, i]", frame_kind_name(frame_kind(frame, i)),
                                               frame_name(frame, i), frame_file(frame, i), (int)frame_line(frame, i)));
    }
    for (uint32_t i = 0; i < frame_n_profiles(frame); i++) {
        const struct frame_profile *profile = frame_profile(frame, i);
        json_array_append_new(
            profiles, json_pack("[I, I, s]", (json_int_t)profile->rank, (json_int_t)profile->thread, profile->name));
    }
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        json_t *list = json_array();
        for (uint32_t k = 0; k < frame_n_nodes(frame); k++)
            json_array_append_new(list, frame_attribute_is_text(frame, i)
                                            ? json_string(frame_attribute_text(frame, i, k))
                                            : real(frame_attribute_number(frame, i, k)));
        json_object_set_new(attributes, frame_attribute_name(frame, i), list);
    }
    const uint32_t *roots = frame_roots(frame, &n_roots);
    return json_pack("{s: o, s: o, s: o, s: o, s: o, s: o}", "nodes", nodes, "children", children, "roots",
                     list_numbers(roots, n_roots), "profiles", profiles, "attributes", attributes, "columns",
                     show_columns(frame, sums_first));
}

static json_t *list_found(const struct frame *frame, bool *found)
{
    json_t *list = json_array();
    for (size_t i = 0; i < frame_n_nodes(frame); i++)
        if (found[i])
            json_array_append_new(list, json_integer((json_int_t)i));
    free(found);
    return list;
}

static json_t *ask_paths(const struct frame *frame, const char *const *texts, int *code, struct error *err)
{
    struct query_paths paths = {0};
    json_t *answer = json_array();
    *code =
        query_paths(frame, texts[0], NULL, strtoul(texts[1], NULL, 10), strcmp(texts[2], "longest") == 0, &paths, err);
    for (size_t i = 0; *code == 0 && i < paths.n; i++)
        json_array_append_new(answer, list_numbers(paths.nodes + paths.items[i].first, paths.items[i].n));
    query_paths_fini(&paths);
    return answer;
}

/* The nodes of a list of numbers become a query, and what that finds is the answer. */
static json_t *ask_select(const struct frame *frame, const char *const *texts, int *code, struct error *err)
{
    uint32_t nodes[256];
    size_t n = 0;
    char *end, *query = NULL;
    bool *found;
    for (const char *at = texts[1]; *at && n < 256; at = end + (*end == ' '))
        nodes[n++] = (uint32_t)strtoul(at, &end, 10);
    *code = query_select(frame, nodes, n, *texts[0] == 'p' ? QUERY_BY_PATH : QUERY_BY_NODE, &query, err);
    if (*code == 0)
        *code = query_run(frame, query, NULL, &found, err);
    free(query);
    return *code == 0 ? list_found(frame, found) : NULL;
}

/* What is no operation of the table. */
static json_t *ask(const char *question, struct frame *const *frames, const char *const *texts, int *code,
                   struct error *err)
{
    json_t *answer = NULL;
    if (strcmp(question, "find") == 0) {
        bool *found;
        *code = query_run(frames[0], texts[0], NULL, &found, err);
        answer = *code == 0 ? list_found(frames[0], found) : NULL;
    } else if (strcmp(question, "paths") == 0) {
        answer = ask_paths(frames[0], texts, code, err);
    } else if (strcmp(question, "select") == 0) {
        answer = ask_select(frames[0], texts, code, err);
    } else if (strcmp(question, "equal") == 0) {
        bool is_equal;
        *code = frame_equal(frames[0], frames[1], 1e-12, &is_equal, NULL, err);
        answer = json_boolean(is_equal);
    } else if (strcmp(question, "hot") == 0) {
        uint32_t *path;
        size_t n;
        *code = frame_hot_path(frames[0], frame_find_column(frames[0], texts[0], NULL), NULL, FRAME_NONE,
                               strtod(texts[1], NULL), &path, &n, err);
        answer = *code == 0 ? list_numbers(path, n) : NULL;
        if (*code == 0)
            free(path);
    } else {
        struct frame_difference *found;
        size_t n;
        struct frame *result;
        *code = frame_diff(frames[0], frames[1], texts[0], strtod(texts[1], NULL), &result, &found, &n, err);
        answer = *code == 0 ? json_array() : NULL;
        for (size_t i = 0; answer && i < n; i++)
            json_array_append_new(answer, json_pack("[i, f, f]", (int)found[i].node, found[i].before, found[i].after));
        if (*code == 0) {
            answer = json_pack("[o, o]", answer, show(result, true));
            frame_close(result);
            free(found);
        }
    }
    return answer;
}

enum { MAX_FRAMES = 16, MAX_TEXTS = 4 };

static bool is_question(const char *name)
{
    static const char *const names[] = {"find", "equal", "hot", "diff", "paths", "select"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The steps of a case: each takes frames by number, and its result is one more. The last one's answer. */
static json_t *run_case(json_t *json)
{
    struct frame *frames[MAX_FRAMES];
    size_t n = 0, i, k;
    json_t *item, *value, *answer = NULL;
    struct error err = {0};
    int code = 0;
    json_array_foreach(json_object_get(json, "frames"), i, item) frames[n++] = read_frame(item);
    json_array_foreach(json_object_get(json, "steps"), i, item)
    {
        struct frame *operands[MAX_FRAMES];
        const char *texts[MAX_TEXTS], *name = json_string_value(json_array_get(item, 0));
        size_t n_operands = 0, n_texts = 0;
        json_array_foreach(json_array_get(item, 1), k, value) operands[n_operands++] =
            frames[json_integer_value(value)];
        json_array_foreach(json_array_get(item, 2), k, value) texts[n_texts++] = json_string_value(value);
        if (is_question(name)) {
            answer = ask(name, operands, texts, &code, &err);
        } else {
            code = frame_run(name, operands, n_operands, texts, n_texts, &frames[n], &err);
            n += code == 0;
        }
        if (code != 0)
            break;
    }
    if (code != 0)
        answer = json_pack("{s: i, s: s}", "code", code, "error", err.text);
    else if (!answer)
        answer = show(frames[n - 1], json_is_true(json_object_get(json, "sums_first")));
    for (i = 0; i < n; i++)
        frame_close(frames[i]);
    return answer;
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        json_error_t reason;
        json_t *json = json_loads(line, 0, &reason);
        if (!json) {
            fprintf(stderr, "%s\n", reason.text);
            return 1;
        }
        json_t *answer = run_case(json);
        char *text = json_dumps(answer, JSON_COMPACT | JSON_ENCODE_ANY);
        puts(text);
        free(text);
        json_decref(answer);
        json_decref(json);
    }
    free(line);
    return 0;
}
