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

#include "analysis/build/build.h"
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
                    const struct source_copies *copies, struct error *err)
{
    struct strtab texts = {0};
    struct v4_file file = {.kind = V4_META};
    int code = v4_export_meta(model, columns, title, copies, &texts, &file, err);
    if (code == 0)
        code = put_v4(directory, &file, err);
    if (code == 0)
        code = put_yaml(directory, &file.meta, err);
    v4_fini(&file);
    strtab_fini(&texts);
    return code;
}

/* Metrics and scales of the columns, which the leader tells the others. */
static int share_columns(struct v4_values *values, uint32_t *metrics, double *scales, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->columns->n_pairs;
    struct buf text = {0};
    for (size_t k = 0; team_leads(team) && k < n; k++) {
        metrics[k] = (uint32_t)values->columns->pairs[k].metric;
        scales[k] = v4_export_scale(&values->columns->pairs[k]);
        buf_append(&text, &metrics[k], sizeof *metrics);
        buf_append(&text, &scales[k], sizeof *scales);
    }
    if (team_is_several(team))
        team->broadcast(team, &text);
    bool ok = !text.failed;
    for (size_t k = 0; ok && !team_leads(team) && k < n; k++) {
        const char *at = text.data + k * (sizeof *metrics + sizeof *scales);
        memcpy(&metrics[k], at, sizeof *metrics);
        memcpy(&scales[k], at + sizeof *metrics, sizeof *scales);
    }
    buf_fini(&text);
    values->metrics = metrics;
    values->scales = scales;
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory");
}

/* is_new: to be created. */
static int open_file(const char *directory, enum v4_kind kind, bool is_new, char **path, int *fd, struct error *err)
{
    if (!*path && asprintf(path, "%s/%s", directory, v4_file_name(kind)) < 0) {
        *path = NULL;
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    *fd = open(*path, is_new ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0644);
    return *fd < 0 ? error_set(err, ERR_IO, "%.600s: cannot %s: %s", *path, is_new ? "create" : "open", strerror(errno))
                   : 0;
}

static int close_file(const char *path, int fd, int code, struct error *err)
{
    if (fd >= 0 && close(fd) != 0 && code == 0)
        return error_set(err, ERR_IO, "%.600s: cannot write: %s", path, strerror(errno));
    return code;
}

static int open_files(struct v4_values *values, const char *directory, bool is_new, struct error *err)
{
    int code = open_file(directory, V4_PROFILE, is_new, &values->profile_path, &values->profile_fd, err);
    return code ? code : open_file(directory, V4_CCT, is_new, &values->context_path, &values->context_fd, err);
}

/* In a team: what others have written is certain to be seen in files that are opened afterwards. */
static int reopen(struct v4_values *values, const char *directory, struct error *err)
{
    int code = close_file(values->profile_path, values->profile_fd, 0, err);
    values->profile_fd = -1;
    code = team_agree(values->job->team, code, err);
    return code ? code : open_file(directory, V4_PROFILE, false, &values->profile_path, &values->profile_fd, err);
}

static int write_values(struct v4_values *values, const char *directory, struct error *err)
{
    const struct team *team = values->job->team;
    int code = team_leads(team) ? open_files(values, directory, true, err) : 0;
    code = team_agree(team, code, err);
    if (code == 0 && !team_leads(team))
        code = open_files(values, directory, false, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = v4_values_by_profile(values, err);
    if (code == 0 && team_is_several(team))
        code = reopen(values, directory, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = v4_values_by_context(values, err);
    code = close_file(values->profile_path, values->profile_fd, code, err);
    code = close_file(values->context_path, values->context_fd, code, err);
    free(values->profile_path);
    free(values->context_path);
    return team_agree(team, code, err);
}

static int put_values(struct model *model, const struct columns *columns, const struct value_source *source,
                      const struct job *job, const char *directory, struct error *err)
{
    const struct team *team = job->team;
    size_t n_pairs = columns->n_pairs;
    struct v4_values values = {.model = model,
                               .columns = columns,
                               .source = source,
                               .job = job,
                               .profile_fd = -1,
                               .context_fd = -1,
                               .n_contexts = (uint32_t)model->n_scopes + 1,
                               .n_ids = (uint32_t)(V4_IDS_PER_METRIC * n_pairs)};
    uint32_t *metrics = calloc(n_pairs + 1, sizeof *metrics);
    double *scales = calloc(n_pairs + 1, sizeof *scales);
    values.places = calloc(values.model->n_threads + 1, sizeof *values.places);
    values.n_values = calloc(values.n_contexts, sizeof *values.n_values);
    values.layout.n_words = values.n_ids / 64 + 1;
    if (team_is_several(team))
        values.layout.present = calloc(values.n_contexts * values.layout.n_words, sizeof(uint64_t));
    bool ok =
        metrics && scales && values.places && values.n_values && (!team_is_several(team) || values.layout.present);
    int code = ok ? 0 : error_set(err, ERR_MEMORY, "out of memory");
    code = team_agree(team, code, err);
    if (code == 0)
        code = share_columns(&values, metrics, scales, err);
    code = team_agree(team, code, err);
    if (code == 0)
        code = write_values(&values, directory, err);
    free(metrics);
    free(scales);
    free(values.places);
    free(values.n_values);
    free(values.layout.present);
    buf_fini(&values.head);
    return code;
}

/* What the leader tells before values are written: the directory and the number of columns; or that there is nothing to
 * do. */
static int announce(const struct job *job, const char *directory, size_t n_pairs, int code, struct error *err)
{
    struct buf text = {0};
    if (!team_is_several(job->team))
        return code;
    uint64_t n = n_pairs;
    char *path = code == 0 ? realpath(directory, NULL) : NULL;
    buf_append(&text, &n, sizeof n);
    if (path)
        buf_append(&text, path, strlen(path) + 1);
    if (code == 0 && (!path || text.failed))
        code = error_set(err, ERR_IO, "%s cannot be shared: %s", directory, strerror(errno));
    if (code != 0)
        text.len_bytes = 0;
    free(path);
    job->team->broadcast(job->team, &text);
    buf_fini(&text);
    return team_agree(job->team, code, err);
}

int v4_give_up(const struct job *job, int code, struct error *err)
{
    return announce(job, "", 0, code, err);
}

static int join(struct model *model, const struct value_source *source, const struct job *job, const struct buf *text,
                struct error *err)
{
    uint64_t n_pairs;
    memcpy(&n_pairs, text->data, sizeof n_pairs);
    struct columns columns = {.n_pairs = n_pairs};
    const char *directory = text->data + sizeof n_pairs;
    int code = put_values(model, &columns, source, job, directory, err);
    return code ? code : v4_export_traces(model, source, job, directory, err);
}

int v4_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err)
{
    struct buf text = {0};
    job->team->broadcast(job->team, &text);
    bool ok = !text.failed;
    int code = team_agree(job->team, ok ? 0 : error_set(err, ERR_MEMORY, "out of memory"), err);
    if (code == 0)
        code = join(model, source, job, &text, err);
    buf_fini(&text);
    return code;
}

int v4_export(struct model *model, const struct value_source *source, const struct job *job, const char *directory,
              const char *title, const struct source_copies *copies, struct error *err)
{
    struct columns columns;
    /* The numbers of these files are copied as they lie in memory. */
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return error_set(err, ERR_UNSUPPORTED,
                         "Databases are written by little-endian machines only: run "
                         "hpcprof on one of those, which can read this machine's measurements");
    int code = columns_make(model, &columns, err);
    size_t n_ids = V4_IDS_PER_METRIC * columns.n_pairs;
    if (code == 0 && (V4_STATISTICS * n_ids > UINT16_MAX || model->n_scopes >= UINT32_MAX))
        code = error_set(err, ERR_RANGE, "A version 4 database cannot hold %zu metrics of %zu contexts",
                         columns.n_pairs, model->n_scopes);
    if (code == 0) {
        job_begin(job, "writing the call tree");
        code = put_meta(model, &columns, directory, title, copies, err);
    }
    code = announce(job, directory, columns.n_pairs, code, err);
    if (code == 0)
        code = put_values(model, &columns, source, job, directory, err);
    if (code == 0)
        code = v4_export_traces(model, source, job, directory, err);
    if (code == 0)
        code = build_sums(model, err);
    columns_fini(&columns);
    return code;
}
