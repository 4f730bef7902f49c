/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting the files of the version 4 form in a directory. */
#include "export/v4-export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/build.h"
#include "export/v4-values.h"
#include "fmt/file.h"

const char *v4_export_name(const struct column_pair *pair)
{
    return strcmp(pair->name, "CPUTIME (usec)") == 0 ? "CPUTIME (sec)" : pair->name;
}

double v4_export_scale(const struct column_pair *pair)
{
    return strcmp(pair->name, "CPUTIME (usec)") == 0 ? 1e-6 : 1;
}

static int put_file(const char *directory, const char *name, const struct buf *text, struct error *err)
{
    char *path = NULL;
    if (text->failed || asprintf(&path, "%s/%s", directory, name) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    int code = file_write_new(path, text->data, text->len_bytes, err);
    free(path);
    return code;
}

static int put_v4(const char *directory, const struct v4_file *file, struct error *err)
{
    struct buf out = {0};
    int code = v4_write(file, &out, err);
    if (code == 0)
        code = put_file(directory, v4_file_name(file->kind), &out, err);
    buf_fini(&out);
    return code;
}

static int put_yaml(const char *directory, const struct v4_meta *meta, struct error *err)
{
    char *path = NULL;
    struct buf out = {0};
    int code = 0;
    if (asprintf(&path, "%s/metrics", directory) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    if (mkdir(path, 0755) != 0)
        code = error_set(err, ERR_IO, "The directory %s cannot be made: %s", path, strerror(errno));
    v4_export_yaml(meta, &out);
    if (code == 0)
        code = put_file(path, "default.yaml", &out, err);
    buf_fini(&out);
    free(path);
    return code;
}

static int put_meta(const struct model *model, const struct columns *columns, const char *directory, const char *title,
                    struct error *err)
{
    struct strtab texts = {0};
    struct v4_file file = {.kind = V4_META};
    int code = v4_export_meta(model, columns, title, &texts, &file, err);
    if (code == 0)
        code = put_v4(directory, &file, err);
    if (code == 0)
        code = put_yaml(directory, &file.meta, err);
    v4_fini(&file);
    strtab_fini(&texts);
    return code;
}

/* Metrics and scales of the columns. */
static bool fill_columns(struct v4_values *values, uint32_t *metrics, double *scales)
{
    if (!metrics || !scales)
        return false;
    for (size_t k = 0; k < values->columns->n_pairs; k++) {
        metrics[k] = (uint32_t)values->columns->pairs[k].metric;
        scales[k] = v4_export_scale(&values->columns->pairs[k]);
    }
    values->metrics = metrics;
    values->scales = scales;
    return true;
}

static int open_file(const char *directory, enum v4_kind kind, char **path, int *fd, struct error *err)
{
    if (asprintf(path, "%s/%s", directory, v4_file_name(kind)) < 0) {
        *path = NULL;
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    *fd = open(*path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return *fd < 0 ? error_set(err, ERR_IO, "%.600s: cannot create: %s", *path, strerror(errno)) : 0;
}

static int close_file(const char *path, int fd, int code, struct error *err)
{
    if (fd >= 0 && close(fd) != 0 && code == 0)
        return error_set(err, ERR_IO, "%.600s: cannot write: %s", path, strerror(errno));
    return code;
}

static int write_values(struct v4_values *values, const char *directory, struct error *err)
{
    int code = open_file(directory, V4_PROFILE, &values->profile_path, &values->profile_fd, err);
    if (code == 0)
        code = open_file(directory, V4_CCT, &values->context_path, &values->context_fd, err);
    if (code == 0)
        code = v4_values_by_profile(values, err);
    if (code == 0)
        code = v4_values_by_context(values, err);
    code = close_file(values->profile_path, values->profile_fd, code, err);
    code = close_file(values->context_path, values->context_fd, code, err);
    free(values->profile_path);
    free(values->context_path);
    return code;
}

static int put_values(struct v4_values *values, const char *directory, struct error *err)
{
    size_t n_pairs = values->columns->n_pairs;
    uint32_t *metrics = calloc(n_pairs + 1, sizeof *metrics);
    double *scales = calloc(n_pairs + 1, sizeof *scales);
    values->places = calloc(values->model->n_threads + 1, sizeof *values->places);
    values->n_values = calloc(values->n_contexts, sizeof *values->n_values);
    int code = fill_columns(values, metrics, scales) && values->places && values->n_values
                   ? write_values(values, directory, err)
                   : error_set(err, ERR_MEMORY, "out of memory");
    free(metrics);
    free(scales);
    free(values->places);
    free(values->n_values);
    buf_fini(&values->head);
    return code;
}

int v4_export(struct model *model, const struct value_source *source, const struct job *job, const char *directory,
              const char *title, struct error *err)
{
    struct columns columns;
    int code = columns_make(model, &columns, err);
    size_t n_ids = V4_IDS_PER_METRIC * columns.n_pairs;
    if (code == 0 && (V4_STATISTICS * n_ids > UINT16_MAX || model->n_scopes >= UINT32_MAX))
        code = error_set(err, ERR_RANGE, "A version 4 database cannot hold %zu metrics of %zu contexts",
                         columns.n_pairs, model->n_scopes);
    struct v4_values values = {.model = model,
                               .columns = &columns,
                               .source = source,
                               .job = job,
                               .profile_fd = -1,
                               .context_fd = -1,
                               .n_contexts = (uint32_t)model->n_scopes + 1,
                               .n_ids = (uint32_t)n_ids};
    if (code == 0) {
        job_begin(job, "writing the call tree");
        code = put_meta(model, &columns, directory, title, err);
    }
    if (code == 0)
        code = put_values(&values, directory, err);
    if (code == 0)
        code = v4_export_traces(model, source, job, directory, err);
    if (code == 0)
        code = build_sums(model, err);
    columns_fini(&columns);
    return code;
}
