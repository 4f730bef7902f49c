/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what people write: queries in both forms, conditions on nodes and on profiles, formulas
 * of derived columns, on a small frame. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame/expression.h"
#include "frame/ops.h"
#include "frame/query.h"

#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static struct frame *make_frame(void)
{
    struct frame_maker maker;
    struct frame *frame = NULL;
    maker_init(&maker);
    size_t time = maker_column(&maker, "time", FRAME_EXCLUSIVE);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t node = maker_node(&maker, i ? i / 2 : FRAME_NONE,
                                   &(struct made_node){.kind = FRAME_FUNCTION, .name = i % 2 ? "f" : "main"});
        maker_value(&maker, time, node, 0, i);
        maker_text(&maker, "class", node, "heap");
    }
    maker_edge(&maker, 5, 1);
    check(frame_made(&maker, &frame, NULL, NULL) == 0, "no frame");
    return frame;
}

static int try_formula(const struct frame *frame, const char *text, struct error *err)
{
    struct frame *with;
    const double *values;
    const struct frame_cell *cells;
    size_t n;
    int code = frame_derive(frame, "made", text, &with, err);
    if (code != 0)
        return code;
    check(frame_values(with, 1, NULL, &values, err) == 0, "a formula has no values");
    for (uint32_t i = 0; i < frame_n_nodes(with); i++)
        check(frame_cells(with, 1, i, &cells, &n, err) == 0, "a formula has no cells");
    frame_close(with);
    return 0;
}

static int try_condition(const struct frame *frame, const char *text, struct error *err)
{
    struct formula *formula;
    bool *is_true;
    int code = expression_compile(frame, text, EXPRESSION_CONDITION, &formula, err);
    if (code != 0)
        return code;
    check(expression_test(formula, NULL, &is_true, err) == 0, "a condition cannot be tested");
    free(is_true);
    formula_free(formula);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct error err = {0};
    bool *found;
    struct frame *frame = make_frame(), *result;
    char *text = len_bytes ? strndup((const char *)data + 1, len_bytes - 1) : NULL;
    int code = 0;
    if (text && data[0] % 4 == 0) {
        struct query_paths paths = {0};
        code = query_run(frame, text, NULL, &found, &err);
        if (code == 0)
            free(found);
        if (query_paths(frame, text, NULL, 100, data[0] & 4, &paths, NULL) == 0) {
            check(code == 0, "paths of a query that is refused");
            query_paths_fini(&paths);
        }
    } else if (text && data[0] % 4 == 1) {
        code = try_condition(frame, text, &err);
    } else if (text && data[0] % 4 == 2) {
        code = try_formula(frame, text, &err);
    } else if (text) {
        code = frame_choose(frame, text, &result, &err);
        if (code == 0)
            frame_close(result);
    }
    check(code == 0 || err.text[0], "a refusal has no message");
    free(text);
    frame_close(frame);
    return 0;
}
