/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting the files of the version 4 form in a directory. */
#include "export/v4-export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

int v4_export(const struct model *model, const struct columns *columns, const char *directory, const char *title,
              struct error *err)
{
    struct v4_file profiles = {.kind = V4_PROFILE}, blocks = {.kind = V4_CCT};
    if (V4_IDS_PER_METRIC * columns->n_pairs > UINT16_MAX || model->n_scopes >= UINT32_MAX)
        return error_set(err, ERR_RANGE, "A version 4 database cannot hold %zu metrics of %zu contexts",
                         columns->n_pairs, model->n_scopes);
    int code = put_meta(model, columns, directory, title, err);
    if (code == 0)
        code = v4_export_values(model, columns, &profiles, &blocks, err);
    if (code == 0)
        code = put_v4(directory, &profiles, err);
    if (code == 0)
        code = put_v4(directory, &blocks, err);
    v4_fini(&profiles);
    v4_fini(&blocks);
    return code;
}
