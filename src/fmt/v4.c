/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files as a whole: which of the four one is, reading and freeing it. */
#include "fmt/v4.h"

#include <stdlib.h>
#include <string.h>

#include "fmt/v4-wire.h"

/* What a part of the file may be read again: shared texts and lists are few. */
#define BUDGET_FACTOR 16
#define BUDGET_LEAST_BYTES 65536

static const struct kind_row {
    const char *name, *mark, *footer;
    void (*read)(struct v4_in *in);
} kinds[V4_KINDS] = {
    [V4_META] = {"meta.db", "meta", "_meta.db", v4_read_meta},
    [V4_PROFILE] = {"profile.db", "prof", "_prof.db", v4_read_profiles},
    [V4_CCT] = {"cct.db", "ctxt", "__ctx.db", v4_read_blocks},
    [V4_TRACE] = {"trace.db", "trce", "trace.db", v4_read_traces},
};

const char *v4_file_name(enum v4_kind kind)
{
    return kinds[kind].name;
}

static int check_frame(struct v4_in *in)
{
    size_t begin = strlen(V4_BEGINS);
    if (in->len_bytes < 24 || memcmp(in->bytes, V4_BEGINS, begin) != 0)
        return v4_fail(in, 0, ERR_FORMAT, "not a file of a version 4 database: it does not begin with " V4_BEGINS);
    for (enum v4_kind kind = V4_META; kind < V4_KINDS; kind++)
        if (memcmp(in->bytes + begin, kinds[kind].mark, 4) == 0) {
            in->file->kind = kind;
            if (in->bytes[14] != 4)
                return v4_fail(in, 14, ERR_UNSUPPORTED, "version %u of %s is not supported (4 is)", in->bytes[14],
                               kinds[kind].name);
            if (memcmp(in->bytes + in->len_bytes - 8, kinds[kind].footer, 8) != 0)
                return v4_fail(in, in->len_bytes - 8, ERR_FORMAT, "the end mark %s is missing: the file is truncated",
                               kinds[kind].footer);
            return 0;
        }
    return v4_fail(in, begin, ERR_UNSUPPORTED, "not one of meta.db, profile.db, cct.db and trace.db");
}

int v4_read_memory(const char *bytes, size_t len_bytes, const char *name, struct v4_file *file, struct error *err)
{
    struct v4_in in = {.len_bytes = len_bytes, .name = name, .err = err, .file = file};
    in.budget_bytes = (uint64_t)len_bytes * BUDGET_FACTOR + BUDGET_LEAST_BYTES;
    file->bytes = v4_alloc(&in, len_bytes + 1, 1);
    if (file->bytes) {
        memcpy(file->bytes, bytes, len_bytes);
        in.bytes = (const unsigned char *)file->bytes;
        if (check_frame(&in) == 0)
            kinds[file->kind].read(&in);
    }
    if (in.code)
        v4_fini(file);
    return in.code;
}

static void free_meta(struct v4_meta *meta)
{
    for (size_t i = 0; meta->metrics && i < meta->n_metrics; i++) {
        free(meta->metrics[i].instances);
        free(meta->metrics[i].summaries);
    }
    free(meta->kinds);
    free(meta->scopes);
    free(meta->metrics);
    free(meta->modules);
    free(meta->files);
    free(meta->functions);
    free(meta->entries);
    free(meta->contexts);
}

void v4_fini(struct v4_file *file)
{
    free_meta(&file->meta);
    for (size_t i = 0; file->profiles && i < file->n_profiles; i++) {
        free(file->profiles[i].ids);
        free(file->profiles[i].cells);
    }
    for (size_t i = 0; file->blocks && i < file->n_blocks; i++)
        free(file->blocks[i].cells);
    for (size_t i = 0; file->traces && i < file->n_traces; i++)
        free(file->traces[i].events);
    free(file->profiles);
    free(file->blocks);
    free(file->traces);
    free(file->bytes);
    strtab_fini(&file->texts);
    *file = (struct v4_file){0};
}
