/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of profiles: the sparse layout (04.00), the dense one (02.00 to 03.10) with its epochs, and profiles node by
 * node. Ordinary code. */
#include "fmt/hpcrun.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "fmt/file.h"

/* --- profiles of 04.00 --- */

/* Reader of sparse profiles (04.00): sections found through a footer, values stored only where they are not zero.
 * In memory they become the same dense matrix as in the other versions. */

#define FOOTER_BYTES 112u
#define FOOTER_MAGIC 0x48504352554E736Du /* "HPCRUNsm" */
#define END_NODE 0x656E6421u             /* "end!" */
#define MAX_DENSE_BYTES (UINT64_C(4) << 30)

enum section { HEADER, LOAD_MAP, CALL_TREE, METRICS, ID_KINDS, VALUES, N_SECTIONS };

static const char *const section_names[N_SECTIONS] = {
    "the header", "the load map", "the call tree", "the metric table", "the id dictionary", "the metric values",
};

struct sections {
    uint64_t start[N_SECTIONS], end[N_SECTIONS];
};

static int get_footer(struct wire_in *in, struct sections *sections)
{
    if (in->len_bytes < FOOTER_BYTES + 24)
        return wire_fail(in, ERR_FORMAT, "the file is truncated: no room for the footer");
    size_t footer_start = in->offset = in->len_bytes - FOOTER_BYTES;
    for (int i = 0; i < N_SECTIONS; i++) {
        sections->start[i] = wire_get(in, 8, "the footer");
        sections->end[i] = wire_get(in, 8, "the footer");
    }
    uint64_t own_start = wire_get(in, 8, "the footer");
    if (wire_get(in, 8, "the footer") != FOOTER_MAGIC || own_start != footer_start) {
        in->offset = footer_start;
        return wire_fail(in, ERR_FORMAT, "the file is truncated or damaged: the footer HPCRUNsm is not at its end");
    }
    for (int i = 0; i < N_SECTIONS; i++)
        if (sections->start[i] > sections->end[i] || sections->end[i] > footer_start)
            return wire_fail(in, ERR_FORMAT,
                             "the footer places %s at bytes %" PRIu64 " to %" PRIu64 " of a file of %zu",
                             section_names[i], sections->start[i], sections->end[i], in->len_bytes);
    return in->code;
}

/* A cursor over one section; failures are remembered in it and carried back by leave_section. */
static struct wire_in enter_section(const struct wire_in *in, const struct sections *sections, enum section section)
{
    struct wire_in part = *in;
    part.offset = sections->start[section];
    part.len_bytes = sections->end[section];
    return part;
}

static int leave_section(struct wire_in *in, struct wire_in *part, enum section section)
{
    if (!part->code && part->offset != part->len_bytes)
        wire_fail(part, ERR_FORMAT, "%s ends %zu bytes before its section does", section_names[section],
                  part->len_bytes - part->offset);
    in->code = part->code;
    return in->code;
}

static void get_sparse_nodes(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the call tree";
    uint64_t n_nodes = wire_get(in, 8, what);
    if (!wire_has_items(in, n_nodes, 19, what) || !n_nodes)
        return;
    profile->nodes = calloc(n_nodes, sizeof *profile->nodes);
    if (!profile->nodes) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_nodes = profile->cap_nodes = n_nodes;
    for (size_t i = 0; i < n_nodes; i++) {
        struct hpcrun_node *node = &profile->nodes[i];
        node->id = (int32_t)wire_get(in, 4, what);
        node->parent = (int32_t)wire_get(in, 4, what);
        node->module = (uint16_t)wire_get(in, 2, what);
        node->ip = wire_get(in, 8, what);
        node->unwound = (uint8_t)wire_get(in, 1, what);
    }
}

static void get_id_kinds(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the id dictionary";
    uint64_t n_kinds = wire_get(in, 2, what);
    if (!wire_has_items(in, n_kinds, 6, what) || !n_kinds)
        return;
    profile->id_kinds = calloc(n_kinds, sizeof *profile->id_kinds);
    profile->id_kind_numbers = calloc(n_kinds, sizeof *profile->id_kind_numbers);
    if (!profile->id_kinds || !profile->id_kind_numbers) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_id_kinds = n_kinds;
    for (size_t i = 0; i < n_kinds; i++) {
        profile->id_kind_numbers[i] = (uint16_t)wire_get(in, 2, what);
        profile->id_kinds[i] = wire_get_text(in, what);
    }
}

static void get_ids(struct wire_in *in, struct hpcrun_profile *profile)
{
    static const char what[] = "the id tuple";
    uint64_t n_ids = wire_get(in, 2, what);
    if (!wire_has_items(in, n_ids, 18, what) || !n_ids)
        return;
    profile->ids = calloc(n_ids, sizeof *profile->ids);
    if (!profile->ids) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return;
    }
    profile->n_ids = n_ids;
    for (size_t i = 0; i < n_ids; i++) {
        profile->ids[i].kind = (uint16_t)wire_get(in, 2, what);
        profile->ids[i].physical = wire_get(in, 8, what);
        profile->ids[i].logical = wire_get(in, 8, what);
    }
}

struct node_place {
    int32_t id;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    int32_t x = ((const struct node_place *)a)->id, y = ((const struct node_place *)b)->id;
    return (x > y) - (x < y);
}

/* The profile's node ids in order, with their places; NULL when out of memory. */
static struct node_place *sort_nodes(const struct hpcrun_profile *profile)
{
    struct node_place *places = calloc(profile->n_nodes + 1, sizeof *places);
    if (!places)
        return NULL;
    for (size_t i = 0; i < profile->n_nodes; i++)
        places[i] = (struct node_place){profile->nodes[i].id, i};
    qsort(places, profile->n_nodes, sizeof *places, compare_places);
    return places;
}

static int alloc_values(struct wire_in *in, struct hpcrun_profile *profile)
{
    if (!profile->n_nodes || !profile->n_metrics)
        return 0;
    if (profile->n_nodes > MAX_DENSE_BYTES / 8 / profile->n_metrics)
        return wire_fail(in, ERR_RANGE, "%zu nodes with %zu metrics are more than this reader holds", profile->n_nodes,
                         profile->n_metrics);
    profile->cap_values = profile->n_nodes * profile->n_metrics;
    profile->values = calloc(profile->cap_values, sizeof *profile->values);
    return profile->values ? 0 : wire_fail(in, ERR_MEMORY, "out of memory in the metric values");
}

/* The values first..last-1 of the node with this id. values: a cursor at the start of all values. */
static void get_node_values(struct wire_in *values, struct hpcrun_profile *profile, const struct node_place *places,
                            int32_t id, uint64_t first, uint64_t last)
{
    static const char what[] = "the metric values";
    struct node_place key = {id, 0};
    const struct node_place *place = bsearch(&key, places, profile->n_nodes, sizeof key, compare_places);
    if (!place) {
        wire_fail(values, ERR_FORMAT, "values are given for node %" PRId32 ", which is not in the call tree", id);
        return;
    }
    for (; first < last && !values->code; first++) {
        uint64_t value = wire_get(values, 8, what);
        uint64_t metric = wire_get(values, 2, what);
        if (!values->code && metric >= profile->n_metrics)
            wire_fail(values, ERR_FORMAT, "a value is given for metric %" PRIu64 " of %zu", metric, profile->n_metrics);
        else if (!values->code)
            profile->values[place->index * profile->n_metrics + metric] = value;
    }
}

/* Walks the index of non-empty nodes (cursor in) and, beside it, their values. The index has one entry more than
 * nodes, so that the end of the last node's values is known too. */
static void scatter_values(struct wire_in *in, struct wire_in *values, struct hpcrun_profile *profile,
                           const struct node_place *places, uint64_t n_rows, uint64_t n_values)
{
    static const char what[] = "the index of the metric values";
    uint32_t id = (uint32_t)wire_get(in, 4, what);
    uint64_t start = wire_get(in, 8, what);
    if (!in->code && start != 0)
        wire_fail(in, ERR_FORMAT, "%s begins with value %" PRIu64, what, start);
    for (; n_rows && !in->code && !values->code; n_rows--) {
        uint32_t next_id = (uint32_t)wire_get(in, 4, what);
        uint64_t next_start = wire_get(in, 8, what);
        if (!in->code && (next_start < start || next_start > n_values))
            wire_fail(in, ERR_FORMAT, "%s goes from value %" PRIu64 " to %" PRIu64 " of %" PRIu64, what, start,
                      next_start, n_values);
        if (!in->code)
            get_node_values(values, profile, places, (int32_t)id, start, next_start);
        id = next_id;
        start = next_start;
    }
    if (!in->code && !values->code && (id != END_NODE || start != n_values))
        wire_fail(in, ERR_FORMAT, "%s does not end with its end mark", what);
}

static void get_values(struct wire_in *in, struct hpcrun_profile *profile)
{
    get_ids(in, profile);
    uint64_t n_values = wire_get(in, 8, "the metric values");
    uint64_t n_rows = wire_get(in, 4, "the metric values");
    if (!wire_has_items(in, n_values, 10, "the metric values"))
        return;
    struct wire_in values = *in;
    in->offset += n_values * 10;
    values.len_bytes = in->offset;
    if (!wire_has_items(in, n_rows + 1, 12, "the index of the metric values") || alloc_values(in, profile))
        return;
    struct node_place *places = sort_nodes(profile);
    if (!places) {
        wire_fail(in, ERR_MEMORY, "out of memory in the metric values");
        return;
    }
    scatter_values(in, &values, profile, places, n_rows, n_values);
    if (!in->code)
        in->code = values.code;
    free(places);
}

/* A whole sparse file (04.00). */
static int hpcrun_get_sparse(struct wire_in *in, struct hpcrun_profile *profile)
{
    static void (*const readers[N_SECTIONS])(struct wire_in *, struct hpcrun_profile *) = {
        [CALL_TREE] = get_sparse_nodes, [ID_KINDS] = get_id_kinds, [VALUES] = get_values};
    static int (*const shared_readers[N_SECTIONS])(struct wire_in *, struct hpcrun_profile *) = {
        [HEADER] = hpcrun_get_header, [LOAD_MAP] = hpcrun_get_modules, [METRICS] = hpcrun_get_metrics};
    struct sections sections;
    if (get_footer(in, &sections))
        return in->code;
    for (enum section i = 0; i < N_SECTIONS && !in->code; i++) {
        struct wire_in part = enter_section(in, &sections, i);
        if (shared_readers[i])
            shared_readers[i](&part, profile);
        else
            readers[i](&part, profile);
        leave_section(in, &part, i);
    }
    return in->code;
}

/* --- profiles of 02.00 --- */

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

/* Decodes one node of a dense file at bytes, without its values; returns where those begin. The caller has checked that
 * the bytes are there. */
static const unsigned char *hpcrun_decode_node(const unsigned char *bytes, bool has_type, struct hpcrun_node *node)
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

/* What comes before the nodes of an epoch of a dense file: epoch header, metric table, load map. */
static int hpcrun_get_epoch_head(struct wire_in *in, struct hpcrun_profile *epoch)
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

/* Of two failed readings of one file, true when the second is more likely the right one: the wrong one fails at invalid
 * flags or strings, the right one gets to the place where the file is cut off. */
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

/* --- a profile node by node --- */

/* Profiles node by node: see hpcrun.h. */

#define PIECE_BYTES (256u << 10)
#define HEAD_BYTES_MAX (64u << 20)

struct stream {
    int fd;
    const struct hpcrun_layout *layout;
    unsigned char *bytes; /* [capacity] a piece of the file; the first holds the whole head */
    size_t capacity, len_bytes, offset;
    uint64_t file_bytes;
    struct hpcrun_profile head;
    uint64_t n_nodes;
    size_t node_bytes;
    struct hpcrun_value *values; /* [head.n_metrics] of a node */
};

/* Appends to the piece as much as fits; false at the end of the file and on failure. */
static bool read_more(struct stream *s)
{
    ssize_t n;
    do
        n = read(s->fd, s->bytes + s->len_bytes, s->capacity - s->len_bytes);
    while (n < 0 && errno == EINTR);
    s->len_bytes += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool fill(struct stream *s)
{
    while (s->len_bytes < s->capacity)
        if (!read_more(s))
            return false;
    return true;
}

/* Takes the part before the nodes from the piece; false when it is incomplete or damaged. */
static bool take_head(struct stream *s)
{
    struct error err;
    struct wire_in in = {.bytes = s->bytes, .len_bytes = s->len_bytes, .name = "", .err = &err};
    char version[6] = "";
    if (!wire_accept(&in, HPCRUN_MAGIC))
        return false;
    wire_get_bytes(&in, version, 5, "");
    s->layout = in.code ? NULL : hpcrun_layout_of(version);
    if (!s->layout || s->layout->sparse || s->layout->may_be_old)
        return false;
    memcpy(s->head.version, s->layout->version, sizeof s->head.version);
    if (hpcrun_get_header(&in, &s->head) || hpcrun_get_epoch_head(&in, &s->head))
        return false;
    s->n_nodes = wire_get(&in, 8, "");
    s->offset = in.offset;
    s->node_bytes = hpcrun_node_bytes(s->layout) + 8 * s->head.n_metrics;
    return !in.code;
}

/* True when the file is one that can be walked through: dense, of one epoch, and complete. */
static bool begin(struct stream *s, const char *path)
{
    struct stat st;
    s->fd = input_open(AT_FDCWD, path, 0, &st);
    if (s->fd < 0)
        return false;
    s->file_bytes = (uint64_t)st.st_size;
    for (s->capacity = PIECE_BYTES; s->capacity <= HEAD_BYTES_MAX; s->capacity *= 2) {
        unsigned char *bytes = realloc(s->bytes, s->capacity);
        if (!bytes)
            return false;
        s->bytes = bytes;
        bool more = fill(s);
        if (take_head(s))
            break;
        hpcrun_fini(&s->head);
        if (!more || !s->layout || s->layout->sparse || s->layout->may_be_old)
            return false;
    }
    if (!s->node_bytes || s->offset > s->file_bytes || s->n_nodes != (s->file_bytes - s->offset) / s->node_bytes ||
        s->n_nodes * s->node_bytes != s->file_bytes - s->offset)
        return false;
    s->values = calloc(s->head.n_metrics + 1, sizeof *s->values);
    return s->values != NULL;
}

/* Reads on until the bytes of the next node are there. */
static int need_node(struct stream *s, const char *path, struct error *err)
{
    if (s->len_bytes - s->offset >= s->node_bytes)
        return 0;
    memmove(s->bytes, s->bytes + s->offset, s->len_bytes - s->offset);
    s->len_bytes -= s->offset;
    s->offset = 0;
    if (s->capacity < s->node_bytes) {
        unsigned char *bytes = realloc(s->bytes, s->node_bytes);
        if (!bytes)
            return error_set(err, ERR_MEMORY, "out of memory while reading %.600s", path);
        s->bytes = bytes;
        s->capacity = s->node_bytes;
    }
    while (s->len_bytes < s->node_bytes)
        if (!read_more(s))
            return error_set(err, ERR_IO, "%.600s: the file became shorter while it was read", path);
    (void)fill(s);
    return 0;
}

/* Values that are not zero of the n_metrics words at bytes. */
static size_t take_values(const unsigned char *bytes, size_t n_metrics, struct hpcrun_value *values)
{
    size_t n = 0;
    for (size_t m = 0; m < n_metrics; m++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * m, 8);
        if (word)
            values[n++] = (struct hpcrun_value){(uint32_t)m, bytes_get_be(bytes + 8 * m, 8)};
    }
    return n;
}

static int visit_nodes(struct stream *s, const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < s->n_nodes; i++) {
        struct hpcrun_node node = {0};
        code = need_node(s, path, err);
        if (code)
            break;
        const unsigned char *bytes = hpcrun_decode_node(s->bytes + s->offset, s->layout->has_type, &node);
        size_t n = take_values(bytes, s->head.n_metrics, s->values);
        s->offset += s->node_bytes;
        code = visitor->node(visitor->context, &node, s->values, n, err);
    }
    return code;
}

/* The same for a profile in memory. */
static int visit_epoch(const struct hpcrun_profile *epoch, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct hpcrun_value *values = calloc(epoch->n_metrics + 1, sizeof *values);
    int code = values ? visitor->epoch(visitor->context, epoch, epoch->n_nodes, err) : error_memory(err);
    for (size_t i = 0; code == 0 && i < epoch->n_nodes; i++) {
        size_t n = 0;
        for (size_t m = 0; m < epoch->n_metrics; m++)
            if (epoch->values[i * epoch->n_metrics + m])
                values[n++] = (struct hpcrun_value){(uint32_t)m, epoch->values[i * epoch->n_metrics + m]};
        code = visitor->node(visitor->context, &epoch->nodes[i], values, n, err);
    }
    free(values);
    return code ? code : visitor->end(visitor->context, epoch, err);
}

static int visit_whole(const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct hpcrun_profile profile = {0};
    int code = hpcrun_read(path, &profile, err);
    for (const struct hpcrun_profile *epoch = &profile; code == 0 && epoch; epoch = epoch->next)
        code = visit_epoch(epoch, visitor, err);
    hpcrun_fini(&profile);
    return code;
}

int hpcrun_visit(const char *path, const struct hpcrun_visitor *visitor, struct error *err)
{
    struct stream stream = {.fd = -1};
    bool walks = begin(&stream, path);
    int code = 0;
    if (walks) {
        code = visitor->epoch(visitor->context, &stream.head, stream.n_nodes, err);
        if (code == 0)
            code = visit_nodes(&stream, path, visitor, err);
        if (code == 0)
            code = visitor->end(visitor->context, &stream.head, err);
    }
    if (stream.fd >= 0)
        (void)close(stream.fd);
    hpcrun_fini(&stream.head);
    free(stream.bytes);
    free(stream.values);
    return walks ? code : visit_whole(path, visitor, err);
}
