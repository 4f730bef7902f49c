/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as they are, written into a file and read again: whatever operations made, graphs and further attributes
 * included. doc/FORMAT.md, "frame.db", says what lies where. A formula becomes its values: those of each profile, and
 * those of the sums, which are not the sums of the former. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"
#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_saved;

#define BEGINS "LOCUSFRM"
#define VERSION 1

/* --- writing --- */

struct saving {
    struct frame *frame;
    struct strtab texts;
    struct buf *out;
    bool failed; /* out of memory */
};

static void put_text(struct saving *saving, const char *text)
{
    int64_t id = strtab_intern(&saving->texts, text ? text : "");
    saving->failed |= id < 0;
    wire_put(saving->out, id < 0 ? 0 : (uint64_t)id, 4);
}

static void put_double(struct saving *saving, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_put(saving->out, bits, 8);
}

static void put_profiles(struct saving *saving)
{
    wire_put(saving->out, frame_n_profiles(saving->frame), 4);
    for (uint32_t i = 0; i < frame_n_profiles(saving->frame); i++) {
        const struct frame_profile *profile = frame_profile(saving->frame, i);
        put_text(saving, profile->name);
        wire_put(saving->out, (uint64_t)profile->rank, 8);
        wire_put(saving->out, (uint64_t)profile->thread, 8);
        wire_put(saving->out, (uint64_t)profile->process, 8);
        wire_put(saving->out, (uint64_t)profile->node, 8);
    }
}

static void put_nodes(struct saving *saving)
{
    const struct frame *frame = saving->frame;
    size_t n_children;
    wire_put(saving->out, frame_n_nodes(frame), 4);
    for (uint32_t i = 0; i < frame_n_nodes(frame); i++) {
        wire_put(saving->out, frame_kind(frame, i), 1);
        put_text(saving, frame_name(frame, i));
        put_text(saving, frame_file(frame, i));
        put_text(saving, frame_module(frame, i));
        wire_put(saving->out, frame_line(frame, i), 4);
        put_text(saving, frame_identity(frame, i));
        const uint32_t *children = frame_children(frame, i, &n_children);
        wire_put(saving->out, n_children, 4);
        for (size_t k = 0; k < n_children; k++)
            wire_put(saving->out, children[k], 4);
    }
}

static void put_attributes(struct saving *saving)
{
    const struct frame *frame = saving->frame;
    wire_put(saving->out, frame_n_attributes(frame), 4);
    for (size_t a = 0; a < frame_n_attributes(frame); a++) {
        bool is_text = frame_attribute_is_text(frame, a);
        put_text(saving, frame_attribute_name(frame, a));
        wire_put(saving->out, is_text, 1);
        for (uint32_t i = 0; i < frame_n_nodes(frame); i++) {
            if (is_text)
                put_text(saving, frame_attribute_text(frame, a, i));
            else
                put_double(saving, frame_attribute_number(frame, a, i));
        }
    }
}

static int put_column(struct saving *saving, size_t column, struct error *err)
{
    struct frame *frame = saving->frame;
    const struct frame_cell *cells;
    const double *totals;
    size_t n_cells;
    enum frame_sums sums = frame_column_sums(frame, column);
    int code = 0;
    put_text(saving, frame_column_name(frame, column));
    put_text(saving, frame->columns[column]->description);
    wire_put(saving->out, sums, 1);
    wire_put(saving->out, frame_column_is_hidden(frame, column), 1);
    for (uint32_t i = 0; code == 0 && i < frame_n_nodes(frame); i++) {
        code = frame_cells(frame, column, i, &cells, &n_cells, err);
        wire_put(saving->out, n_cells, 4);
        for (size_t k = 0; code == 0 && k < n_cells; k++) {
            wire_put(saving->out, cells[k].profile, 4);
            put_double(saving, cells[k].value);
        }
    }
    if (code == 0 && sums == FRAME_PLAIN)
        code = frame_values(frame, column, NULL, &totals, err);
    for (uint32_t i = 0; code == 0 && sums == FRAME_PLAIN && i < frame_n_nodes(frame); i++)
        put_double(saving, totals[i]);
    return code;
}

int frame_save(struct frame *frame, char **bytes, size_t *len_bytes, struct error *err)
{
    struct buf body = {0}, out = {0};
    struct saving saving = {.frame = frame, .out = &body};
    int code = 0;
    put_profiles(&saving);
    put_nodes(&saving);
    put_attributes(&saving);
    wire_put(&body, frame_n_columns(frame), 4);
    for (size_t i = 0; code == 0 && i < frame_n_columns(frame); i++)
        code = put_column(&saving, i, err);
    if (code == 0) {
        buf_append(&out, BEGINS, strlen(BEGINS));
        wire_put(&out, VERSION, 4);
        wire_put(&out, saving.texts.n_strings, 4);
        for (size_t i = 0; i < saving.texts.n_strings; i++)
            wire_put_text(&out, saving.texts.strings[i]);
        buf_append(&out, body.data, body.len_bytes);
        code = saving.failed || body.failed || out.failed ? error_memory(err) : 0;
    }
    strtab_fini(&saving.texts);
    buf_fini(&body);
    if (code != 0) {
        buf_fini(&out);
        return code;
    }
    *bytes = out.data;
    *len_bytes = out.len_bytes;
    return 0;
}

/* --- reading --- */

struct loading {
    struct wire_in in;
    struct frame_maker maker;
    char **texts; /* [n_texts] */
    uint32_t n_texts, n_nodes;
};

static const char *get_text(struct loading *loading, const char *what)
{
    uint64_t id = wire_get(&loading->in, 4, what);
    if (loading->in.code == 0 && id < loading->n_texts)
        return loading->texts[id];
    (void)wire_fail(&loading->in, ERR_FORMAT, "%s: there is no text %ju", what, (uintmax_t)id);
    return "";
}

static double get_double(struct loading *loading, const char *what)
{
    uint64_t bits = wire_get(&loading->in, 8, what);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number below end. */
static uint32_t get_below(struct loading *loading, uint64_t end, const char *what)
{
    uint64_t value = wire_get(&loading->in, 4, what);
    if (loading->in.code == 0 && value >= end)
        (void)wire_fail(&loading->in, ERR_FORMAT, "%s: there is no number %ju", what, (uintmax_t)value);
    return loading->in.code == 0 ? (uint32_t)value : 0;
}

/* How many items of at least item_bytes follow. */
static uint32_t get_count(struct loading *loading, uint64_t item_bytes, const char *what)
{
    uint64_t n = wire_get(&loading->in, 4, what);
    return wire_has_items(&loading->in, n, item_bytes, what) ? (uint32_t)n : 0;
}

static void get_texts(struct loading *loading)
{
    uint32_t n = get_count(loading, 4, "texts");
    loading->texts = calloc((size_t)n + 1, sizeof *loading->texts);
    if (!loading->texts)
        (void)wire_fail(&loading->in, ERR_MEMORY, "out of memory");
    while (loading->in.code == 0 && loading->n_texts < n) {
        loading->texts[loading->n_texts] = wire_get_text(&loading->in, "texts");
        loading->n_texts += loading->in.code == 0;
    }
}

static void get_profiles(struct loading *loading)
{
    uint32_t n = get_count(loading, 36, "profiles");
    for (uint32_t i = 0; loading->in.code == 0 && i < n; i++) {
        struct frame_profile profile = {.name = get_text(loading, "profiles")};
        profile.rank = (int64_t)wire_get(&loading->in, 8, "profiles");
        profile.thread = (int64_t)wire_get(&loading->in, 8, "profiles");
        profile.process = (int64_t)wire_get(&loading->in, 8, "profiles");
        profile.node = (int64_t)wire_get(&loading->in, 8, "profiles");
        (void)maker_profile(&loading->maker, &profile);
    }
}

static void get_nodes(struct loading *loading)
{
    loading->n_nodes = get_count(loading, 25, "nodes");
    for (uint32_t i = 0; loading->in.code == 0 && i < loading->n_nodes; i++) {
        uint64_t kind = wire_get(&loading->in, 1, "nodes");
        struct made_node node = {.kind = kind < FRAME_KINDS ? (enum frame_kind)kind : FRAME_OTHER};
        node.name = get_text(loading, "nodes");
        node.file = get_text(loading, "nodes");
        node.module = get_text(loading, "nodes");
        node.line = (uint32_t)wire_get(&loading->in, 4, "nodes");
        node.identity = get_text(loading, "nodes");
        (void)maker_node(&loading->maker, FRAME_NONE, &node);
        uint32_t n_children = get_count(loading, 4, "children");
        for (uint32_t k = 0; loading->in.code == 0 && k < n_children; k++)
            maker_edge(&loading->maker, i, get_below(loading, loading->n_nodes, "children"));
    }
}

static void get_attributes(struct loading *loading)
{
    uint32_t n = get_count(loading, 5, "attributes");
    for (uint32_t a = 0; loading->in.code == 0 && a < n; a++) {
        const char *name = get_text(loading, "attributes");
        bool is_text = wire_get(&loading->in, 1, "attributes") != 0;
        for (uint32_t i = 0; loading->in.code == 0 && i < loading->n_nodes; i++) {
            if (is_text)
                maker_text(&loading->maker, name, i, get_text(loading, "attributes"));
            else
                maker_number(&loading->maker, name, i, get_double(loading, "attributes"));
        }
    }
}

/* --- columns --- */

/* The values of what was a formula. */
struct saved_column {
    struct frame_column base;
    struct frame_column *cells;
    double *totals; /* [n_nodes] of the sums over all profiles */
};

static int saved_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct frame_column *cells = ((struct saved_column *)column)->cells;
    return cells->class->row(cells, node, row, err);
}

static int saved_values(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                        struct error *err)
{
    (void)err;
    *done = view->aggregate == FRAME_SUM && !view->profiles;
    if (*done)
        memcpy(values, ((struct saved_column *)column)->totals, column->n_nodes * sizeof *values);
    return 0;
}

static void saved_fini(struct frame_column *column)
{
    column_drop(((struct saved_column *)column)->cells);
    free(((struct saved_column *)column)->totals);
}

static const struct column_class saved_class = {saved_row, saved_values, saved_fini};

/* The cells of a column: an array of all, and where each node's begin. NULL after a failure. */
static struct frame_column *get_cells(struct loading *loading, const char *name, enum frame_sums sums,
                                      uint32_t n_profiles)
{
    uint64_t *starts = calloc((size_t)loading->n_nodes + 1, sizeof *starts);
    struct cells cells = {0};
    for (uint32_t i = 0; starts && loading->in.code == 0 && i < loading->n_nodes; i++) {
        uint32_t n = get_count(loading, 12, "values");
        for (uint32_t k = 0; loading->in.code == 0 && k < n; k++) {
            uint32_t profile = get_below(loading, n_profiles, "values");
            double value = get_double(loading, "values");
            if (loading->in.code == 0 && (isnan(value) || (k > 0 && profile <= cells.items[cells.n - 1].profile)))
                (void)wire_fail(&loading->in, ERR_FORMAT, "the values of a node are out of order");
            else if (loading->in.code == 0 && !cells_add(&cells, profile, value))
                (void)wire_fail(&loading->in, ERR_MEMORY, "out of memory");
        }
        starts[i + 1] = cells.n;
    }
    if (loading->in.code == 0 && cells.n == 0)
        (void)cells_add(&cells, 0, 0); /* column_stored takes no empty array */
    if (loading->in.code == 0 && starts && cells.items)
        return column_stored(name, sums, loading->n_nodes, n_profiles, starts, cells.items);
    free(starts);
    cells_fini(&cells);
    return NULL;
}

/* Puts the totals of a formula beside its cells, which it takes over. */
static struct frame_column *get_totals(struct loading *loading, struct frame_column *cells, const char *name)
{
    uint32_t n = loading->n_nodes;
    struct saved_column *column = NULL;
    if (cells && wire_has_items(&loading->in, n, 8, "totals"))
        column =
            (struct saved_column *)column_new(&saved_class, sizeof *column, name, FRAME_PLAIN, n, cells->n_profiles);
    if (column)
        column->totals = malloc(((size_t)n + 1) * sizeof *column->totals);
    if (!column || !column->totals) {
        column_drop(column ? &column->base : NULL);
        column_drop(cells);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        column->totals[i] = get_double(loading, "totals");
    column->cells = cells;
    return &column->base;
}

static int get_column(struct loading *loading, struct frame *frame, struct error *err)
{
    const char *name = get_text(loading, "columns"), *description = get_text(loading, "columns");
    uint64_t sums = wire_get(&loading->in, 1, "columns"), is_hidden = wire_get(&loading->in, 1, "columns");
    if (loading->in.code == 0 && sums > FRAME_INCLUSIVE)
        (void)wire_fail(&loading->in, ERR_FORMAT, "a column adds up in a way that is not known");
    if (loading->in.code != 0)
        return loading->in.code;
    struct frame_column *column = get_cells(loading, name, (enum frame_sums)sums, (uint32_t)frame_n_profiles(frame));
    if (sums == FRAME_PLAIN)
        column = get_totals(loading, column, name);
    char *copy = column ? strdup(description) : NULL;
    if (loading->in.code != 0 || !copy) {
        free(copy);
        column_drop(column);
        return loading->in.code ? loading->in.code : error_memory(err);
    }
    free(column->description);
    column->description = copy;
    column->is_hidden = is_hidden != 0;
    return frame_add_column(frame, column, err);
}

/* --- the file --- */

/* All before the columns, as a frame without any. */
static int get_frame(struct loading *loading, struct frame **frame, struct error *err)
{
    uint32_t *new_of = NULL;
    if (!wire_accept(&loading->in, BEGINS))
        (void)wire_fail(&loading->in, ERR_FORMAT, "this is no frame of Locus");
    uint64_t version = wire_get(&loading->in, 4, "version");
    if (loading->in.code == 0 && version != VERSION)
        (void)wire_fail(&loading->in, ERR_UNSUPPORTED, "version %ju is not known", (uintmax_t)version);
    get_texts(loading);
    get_profiles(loading);
    get_nodes(loading);
    get_attributes(loading);
    int code = loading->in.code;
    if (code != 0) {
        maker_fini(&loading->maker);
        return code;
    }
    code = frame_made(&loading->maker, frame, &new_of, err);
    for (uint32_t i = 0; code == 0 && i < loading->n_nodes; i++)
        if (new_of[i] != i)
            code = wire_fail(&loading->in, ERR_FORMAT, "node %u is not in pre-order", i);
    free(new_of);
    return code;
}

static int load(struct loading *loading, struct frame **frame, struct error *err)
{
    struct frame *made = NULL;
    int code = get_frame(loading, &made, err);
    uint32_t n = code == 0 ? get_count(loading, 10, "columns") : 0;
    code = code ? code : loading->in.code;
    for (uint32_t i = 0; code == 0 && i < n; i++)
        code = get_column(loading, made, err);
    if (code == 0 && loading->in.offset != loading->in.len_bytes)
        code = wire_fail(&loading->in, ERR_FORMAT, "something follows the end");
    if (code != 0)
        frame_close(made);
    else
        *frame = made;
    return code;
}

static int read_saved(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct buf bytes = {0}, path = {0};
    buf_printf(&path, input->is_directory ? "%s/" FRAME_FILE : "%s", input->path);
    int code = path.failed ? error_memory(err) : file_read(path.data, &bytes, err);
    if (code == 0) {
        struct loading loading = {.in = {.bytes = (const unsigned char *)bytes.data,
                                         .len_bytes = bytes.len_bytes,
                                         .name = path.data,
                                         .err = err}};
        maker_init(&loading.maker);
        code = load(&loading, frame, err);
        while (loading.n_texts)
            free(loading.texts[--loading.n_texts]);
        free(loading.texts);
    }
    buf_fini(&bytes);
    buf_fini(&path);
    return code;
}

static bool fits_saved(const struct frame_input *input)
{
    if (input->is_directory)
        return readers_begins(input->path, FRAME_FILE, BEGINS);
    return strncmp(input->head.data, BEGINS, strlen(BEGINS)) == 0;
}

const struct frame_reader reader_saved = {"a saved result (" FRAME_FILE ")", fits_saved, read_saved};
