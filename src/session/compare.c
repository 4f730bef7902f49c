/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sessions, compared by the rules of hpcquery diff. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "export/frames/forms.h"
#include "fmt/json.h"
#include "frame/ops.h"
#include "session/face.h"

#define THRESHOLD 1 /* percent of what was before */

static const struct column columns[] = {
    {"name", "name", CELL_TEXT},       {"file", "file", CELL_TEXT},         {"line", "line", CELL_COUNT},
    {"module", "module", CELL_TEXT},   {"before", "before", CELL_NUMBER},   {"after", "after", CELL_NUMBER},
    {"change", "change", CELL_NUMBER}, {"percent", "of all", CELL_PERCENT}, {"noise", "noise", CELL_NUMBER},
};
static const struct column head_columns[] = {{"total_before", NULL, CELL_NUMBER}, {"total_after", NULL, CELL_NUMBER}};

/* A number of an object, NAN: there is none. */
static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void fill(const json_t *object, struct answer *answer)
{
    const json_t *rows = json_object_get(object, "differences"), *row;
    size_t i;
    answer_begin(answer, "differences", COLUMNS(columns));
    struct table *head = answer_set_head(answer, COLUMNS(head_columns));
    table_put_number(head, number_at(object, "total_before"));
    table_put_number(head, number_at(object, "total_after"));
    json_array_foreach(rows, i, row)
    {
        double line = number_at(row, "line");
        table_put_text(&answer->rows, json_string_value(json_object_get(row, "name")));
        table_put_text(&answer->rows, json_string_value(json_object_get(row, "file")));
        table_put_if(&answer->rows, line > 0, (int64_t)line);
        table_put_text(&answer->rows, json_string_value(json_object_get(row, "module")));
        for (size_t k = 4; k < sizeof columns / sizeof *columns; k++)
            table_put_number(&answer->rows, number_at(row, columns[k].key));
    }
}

static int diff(struct session *const *sessions, struct frame *const *frames, const char *by, const char *metric,
                struct buf *out, struct error *err)
{
    size_t shown = frame_default_column(frames[0]), n_found;
    const char *column = metric ? metric : shown == SIZE_MAX ? "" : frame_column_name(frames[0], shown);
    struct diff_job job = {
        .before = frames[0], .after = frames[1], .column = metric, .by = by, .form = "json", .threshold = THRESHOLD};
    int code = 0;
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = session_sample_cost(sessions[i], column, &job.sample_costs[i], err);
    return code ? code : frames_diff(&job, out, &n_found, err);
}

int session_compare(struct session *before, struct session *after, const char *by, const char *metric,
                    struct answer **answer, struct error *err)
{
    struct session *const sessions[] = {before, after};
    struct frame *frames[2] = {NULL, NULL};
    struct json_take take = {.name = "diff", .err = err};
    struct buf text = {0};
    json_t *object = NULL;
    *answer = NULL;
    int code = 0;
    for (size_t i = 0; code == 0 && i < 2; i++)
        code = session_frame(sessions[i], SESSION_BOTH, &frames[i], err);
    code = code ? code : diff(sessions, frames, by, metric, &text, err);
    if (code == 0 && (object = json_take_parse(&take, text.data, text.len_bytes)) == NULL)
        code = take.code;
    if (code == 0) {
        *answer = calloc(1, sizeof **answer);
        code = *answer ? 0 : error_memory(err);
    }
    if (code == 0)
        fill(object, *answer);
    if (code == 0 && ((*answer)->rows.failed || (*answer)->head.failed)) {
        answer_free(*answer);
        *answer = NULL;
        code = error_memory(err);
    }
    json_decref(object);
    buf_fini(&text);
    frame_close(frames[0]);
    frame_close(frames[1]);
    return code;
}
