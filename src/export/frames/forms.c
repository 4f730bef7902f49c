/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of forms of frames, what several forms need, and frames in directories. */
#include "export/frames/forms.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch.h"
#include "base/spelling.h"
#include "fmt/file.h"

extern const struct frame_form form_tree, form_table, form_csv, form_json;
extern const struct frame_form form_callgrind, form_callgrind_data, form_chrome, form_dot, form_flamegraph;
extern const struct frame_form form_folded, form_literal, form_pprof, form_speedscope;

static const struct frame_form *const forms[] = {
    &form_tree,      &form_table,          &form_csv,   &form_json,       &form_flamegraph, &form_folded,  &form_dot,
    &form_callgrind, &form_callgrind_data, &form_pprof, &form_speedscope, &form_chrome,     &form_literal,
};

const struct frame_form *const *frame_forms(size_t *n)
{
    *n = sizeof forms / sizeof *forms;
    return forms;
}

const struct frame_form *frame_form_find(const char *name, struct error *err)
{
    const char *names[sizeof forms / sizeof *forms];
    struct buf text = {0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        names[i] = forms[i]->name;
        if (strcmp(names[i], name) == 0)
            return forms[i];
    }
    spelling_suggest(&text, name, names, sizeof forms / sizeof *forms);
    (void)error_set(err, ERR_NOT_FOUND, "there is no form '%s'%s", name, text.data ? text.data : "");
    buf_fini(&text);
    return NULL;
}

bool frames_is_data(const struct frame *frame, uint32_t node)
{
    return frame_kind(frame, node) == FRAME_GROUP && strcmp(frame_name(frame, node), "<datacentric>") == 0;
}

/* The end of the subtree of a root in pre-order: where the next root begins. */
static uint32_t end_of_root(const struct frame *frame, const uint32_t *roots, size_t n_roots, size_t i)
{
    return i + 1 < n_roots ? roots[i + 1] : (uint32_t)frame_n_nodes(frame);
}

int frame_job_total(const struct frame_job *job, size_t column, double *total, struct error *err)
{
    const double *values;
    size_t n_roots;
    double code_total = 0, data_total = 0;
    const uint32_t *roots = frame_roots(job->frame, &n_roots);
    size_t pair = frame_column_pair(job->frame, column);
    bool is_inclusive = frame_column_sums(job->frame, column) == FRAME_INCLUSIVE;
    /* groups may hold each other's costs; and what is in a circle with the root is above it as well */
    if (is_inclusive && pair != SIZE_MAX && (n_roots > 1 || !frame_is_tree(job->frame)))
        column = pair;
    enum frame_sums sums = frame_column_sums(job->frame, column);
    *total = 0;
    if (sums == FRAME_PLAIN)
        return 0;
    int code = frame_values(job->frame, column, &job->view, &values, err);
    for (size_t i = 0; code == 0 && i < n_roots; i++) {
        double *sum = frames_is_data(job->frame, roots[i]) ? &data_total : &code_total;
        uint32_t end = sums == FRAME_INCLUSIVE ? roots[i] + 1 : end_of_root(job->frame, roots, n_roots, i);
        for (uint32_t node = roots[i]; node < end; node++)
            *sum += isnan(values[node]) ? 0 : values[node];
    }
    *total = fabs(code_total != 0 ? code_total : data_total);
    return code;
}

void frames_find_columns(const struct frame *frame, size_t column, size_t *with, size_t *without)
{
    bool is_exclusive = frame_column_sums(frame, column) == FRAME_EXCLUSIVE;
    size_t pair = frame_column_pair(frame, column);
    *with = is_exclusive && pair != SIZE_MAX ? pair : column;
    *without = is_exclusive ? column : pair;
}

double *frames_with_lines(const struct frame *frame, const double *own)
{
    size_t n = frame_n_nodes(frame), n_children;
    const uint32_t *order = frame_post_order(frame);
    double *sums = order ? calloc(n + 1, sizeof *sums) : NULL;
    for (size_t i = 0; sums && i < n; i++) {
        uint32_t node = order[i];
        const uint32_t *children = frame_children(frame, node, &n_children);
        sums[node] = own[node];
        for (size_t k = 0; k < n_children; k++) {
            double value = sums[children[k]];
            if (frame_kind_is_part(frame_kind(frame, children[k])) && !isnan(value))
                sums[node] = isnan(sums[node]) ? value : sums[node] + value;
        }
    }
    return sums;
}

/* --- saved --- */

static int save_file(struct frame *frame, const char *directory, struct error *err)
{
    struct buf path = {0};
    char *bytes = NULL;
    size_t len_bytes = 0;
    int code = frame_save(frame, &bytes, &len_bytes, err);
    buf_printf(&path, "%s/" FRAME_FILE, directory);
    if (code == 0)
        code = path.failed ? error_memory(err) : file_write_new(path.data, bytes, len_bytes, err);
    free(bytes);
    buf_fini(&path);
    return code;
}

/* Gives the directory its name and the usual mode. */
static int put_in_place(const char *temporary, const char *path, struct error *err)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    if (chmod(temporary, 0777 & ~mask) != 0 || rename(temporary, path) != 0)
        return error_set(err, ERR_IO, "%.600s: cannot make the directory: %s", path, strerror(errno));
    scratch_forget(temporary);
    return 0;
}

int frames_save(struct frame *frame, const char *path, const char *title, struct error *err)
{
    char *temporary = NULL;
    struct stat info;
    if (lstat(path, &info) == 0)
        return error_set(err, ERR_IO, "%.600s: cannot make the directory: %s", path, strerror(EEXIST));
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (asprintf(&temporary, "%.*s.XXXXXX", (int)len, path) < 0)
        return error_memory(err);
    if (!mkdtemp(temporary)) {
        int code = error_set(err, ERR_IO, "%.600s: cannot make the directory: %s", path, strerror(errno));
        free(temporary);
        return code;
    }
    scratch_note(temporary);
    int code = save_file(frame, temporary, err);
    if (code == 0 && frame_is_tree(frame))
        code = frames_save_v4(frame, temporary, title, err);
    if (code == 0)
        code = vec_has_failed() ? error_memory(err) : put_in_place(temporary, path, err);
    if (code != 0)
        scratch_remove(temporary);
    free(temporary);
    return code;
}
