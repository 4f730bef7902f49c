/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of profiles: versions, the dense layout (02.00 to 03.10) and its epochs. The sparse layout is in
 * hpcrun-read-sparse.c. Ordinary code. */
#include "fmt/hpcrun.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fmt/file.h"
#include "fmt/hpcrun-parts.h"

static int get_epoch_pairs(struct wire_in *in, struct hpcrun_profile *epoch)
{
    uint64_t n_pairs = wire_get(in, 4, "the epoch header");
    wire_has_items(in, n_pairs, 8, "the epoch header");
    while (!in->code && n_pairs--) {
        char *name = wire_get_text(in, "the epoch header");
        char *value = wire_get_text(in, "the epoch header");
        if (!in->code && hpcrun_add_epoch_pair(epoch, name, value) < 0)
            wire_fail(in, ERR_MEMORY, "out of memory in the epoch header");
        free(name);
        free(value);
    }
    return in->code;
}

static int get_epoch_header(struct wire_in *in, struct hpcrun_profile *epoch)
{
    if (!wire_accept(in, HPCRUN_EPOCH_MAGIC))
        return wire_fail(in, ERR_FORMAT, "the file is truncated or damaged: " HPCRUN_EPOCH_MAGIC " expected");
    epoch->epoch_flags = wire_get(in, 8, "the epoch header");
    if (epoch->epoch_flags & HPCRUN_EPOCH_FLAG_LOGICAL)
        return wire_fail(in, ERR_UNSUPPORTED, "profiles with logical (LUSH) unwinding are not supported");
    epoch->granularity = wire_get(in, 8, "the epoch header");
    epoch->ra_to_callsite = (uint32_t)wire_get(in, 4, "the epoch header");
    return get_epoch_pairs(in, epoch);
}

const unsigned char *hpcrun_decode_node(const unsigned char *bytes, bool has_type, struct hpcrun_node *node)
{
    if (has_type) {
        node->type = (uint32_t)bytes_get_be(bytes, 4);
        bytes += 4;
    }
    node->id = (int32_t)bytes_get_be(bytes, 4);
    node->parent = (int32_t)bytes_get_be(bytes + 4, 4);
    node->module = (uint16_t)bytes_get_be(bytes + 8, 2);
    node->ip = bytes_get_be(bytes + 10, 8);
    return bytes + 18;
}

/* The count has been checked against the bytes left, so the tables are no larger than a small multiple of the file. */
static int get_nodes(struct wire_in *in, const struct hpcrun_layout *layout, struct hpcrun_profile *epoch)
{
    uint64_t n_nodes = wire_get(in, 8, "the call tree");
    size_t n_metrics = epoch->n_metrics, node_bytes = hpcrun_node_bytes(layout) + 8 * n_metrics;
    if (!wire_has_items(in, n_nodes, node_bytes, "the call tree") || !n_nodes)
        return in->code;
    epoch->nodes = calloc(n_nodes, sizeof *epoch->nodes);
    epoch->values = n_metrics ? malloc(n_nodes * n_metrics * sizeof *epoch->values) : NULL;
    if (!epoch->nodes || (n_metrics && !epoch->values))
        return wire_fail(in, ERR_MEMORY, "out of memory in the call tree");
    epoch->n_nodes = epoch->cap_nodes = n_nodes;
    epoch->cap_values = n_nodes * n_metrics;
    const unsigned char *bytes = in->bytes + in->offset;
    uint64_t *value = epoch->values;
    for (size_t i = 0; i < n_nodes; i++) {
        bytes = hpcrun_decode_node(bytes, layout->has_type, &epoch->nodes[i]);
        for (size_t k = 0; k < n_metrics; k++, bytes += 8)
            *value++ = bytes_get_be(bytes, 8);
    }
    in->offset += n_nodes * node_bytes;
    return in->code;
}

int hpcrun_get_epoch_head(struct wire_in *in, struct hpcrun_profile *epoch)
{
    if (get_epoch_header(in, epoch) || hpcrun_get_metrics(in, epoch))
        return in->code;
    return hpcrun_get_modules(in, epoch);
}

static int get_epoch(struct wire_in *in, const struct hpcrun_layout *layout, struct hpcrun_profile *epoch)
{
    return hpcrun_get_epoch_head(in, epoch) ? in->code : get_nodes(in, layout, epoch);
}

static struct hpcrun_profile *add_epoch(struct wire_in *in, struct hpcrun_profile *last)
{
    last->next = calloc(1, sizeof *last->next);
    if (!last->next) {
        wire_fail(in, ERR_MEMORY, "out of memory in an epoch");
        return NULL;
    }
    memcpy(last->next->version, last->version, sizeof last->version);
    last->next->short_metrics = last->short_metrics;
    return last->next;
}

static int get_dense(struct wire_in *in, const struct hpcrun_layout *layout, struct hpcrun_profile *profile)
{
    if (hpcrun_get_header(in, profile))
        return in->code;
    if (in->offset == in->len_bytes)
        return wire_fail(in, ERR_FORMAT, "the file is truncated: it ends after its header");
    struct hpcrun_profile *epoch = profile;
    while (epoch && !get_epoch(in, layout, epoch) && in->offset < in->len_bytes)
        epoch = add_epoch(in, epoch);
    return in->code;
}

/* One attempt, with or without the last 20 bytes of the metric entries. */
static int try_dense(struct wire_in *in, const struct hpcrun_layout *layout, struct hpcrun_profile *profile, int old)
{
    memcpy(profile->version, layout->version, sizeof profile->version);
    profile->short_metrics = (uint8_t)old;
    int code = get_dense(in, layout, profile);
    if (code)
        hpcrun_fini(profile);
    return code;
}

/* Of two failed readings of one file, true when the second is the likelier one: the wrong one stumbles over flags or
 * strings that are none, the right one comes to where the file is cut. */
static bool second_is_likelier(const struct wire_in *first, const struct wire_in *second)
{
    if ((first->code == ERR_FORMAT) != (second->code == ERR_FORMAT))
        return second->code == ERR_FORMAT;
    return second->offset > first->offset;
}

/* 02.00 files changed their metric entries in 2017 without a new version number. Only one of the two readings ends
 * exactly at the end of the file. */
static int get_either(struct wire_in *in, const struct hpcrun_layout *layout, struct hpcrun_profile *profile)
{
    struct error new_err = {0}, old_err = {0};
    struct wire_in new_in = *in, old_in = *in;
    new_in.err = &new_err;
    old_in.err = &old_err;
    if (try_dense(&new_in, layout, profile, 0) == 0)
        return 0;
    if (new_in.code != ERR_MEMORY && try_dense(&old_in, layout, profile, 1) == 0)
        return 0;
    bool take_old = old_in.code == ERR_MEMORY || (new_in.code != ERR_MEMORY && second_is_likelier(&new_in, &old_in));
    const struct error *likelier = take_old ? &old_err : &new_err;
    in->code = error_set(in->err, likelier->code, "%s", likelier->text);
    return in->code;
}

int hpcrun_read_memory(const void *bytes, size_t len_bytes, const char *name, struct hpcrun_profile *profile,
                       struct error *err)
{
    struct wire_in in = {.bytes = bytes, .len_bytes = len_bytes, .name = name, .err = err};
    if (!wire_accept(&in, HPCRUN_MAGIC))
        return wire_fail(&in, ERR_FORMAT, "not a profile: it does not begin with " HPCRUN_MAGIC);
    char version[6] = "";
    wire_get_bytes(&in, version, 5, "the header");
    if (in.code)
        return in.code;
    const struct hpcrun_layout *layout = hpcrun_layout_of(version);
    if (!layout)
        return wire_fail(&in, ERR_UNSUPPORTED,
                         "profile version '%.5s' is not supported (02.00, 02.10, 03.00, 03.10 and 04.00 are)", version);
    if (layout->may_be_old)
        return get_either(&in, layout, profile);
    if (!layout->sparse)
        return try_dense(&in, layout, profile, 0);
    memcpy(profile->version, layout->version, sizeof profile->version);
    if (hpcrun_get_sparse(&in, profile))
        hpcrun_fini(profile);
    return in.code;
}

int hpcrun_read(const char *path, struct hpcrun_profile *profile, struct error *err)
{
    struct buf bytes = {0};
    int code = file_read(path, &bytes, err);
    if (code)
        return code;
    code = hpcrun_read_memory(bytes.data, bytes.len_bytes, path, profile, err);
    buf_fini(&bytes);
    return code;
}
