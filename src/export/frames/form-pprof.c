/* SPDX-License-Identifier: BSD-3-Clause */
/* pprof's profile.proto, compressed where zlib is there; what reads it takes both. Every exclusive column is a type of
 * sample. Where a frame has a tree of data its samples are written, as they have the call paths of the code as well:
 * the stack is the path of the access, and labels say the variable, its storage class, and where it was allocated.
 * Each stack is written in full, so that the file grows with depth times paths.
 * Source: https://github.com/google/pprof/blob/main/proto/profile.proto and the encoding of Protocol Buffers. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "export/frames/stacks.h"

#if HAVE_ZLIB
#include <zlib.h>
#endif

extern const struct frame_form form_pprof;

/* Numbers of fields. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_COMMENT = 13, PROFILE_DEFAULT_TYPE = 14 };
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2 };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES = 8, MAPPING_HAS_LINES = 9 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4, FUNCTION_LINE = 5 };

static const double frames_max = 1 << 28;

/* Stands between a variable and the paths that access it. */
#define ACCESS "<memory access call-path>"

struct function {
    uint32_t name, file, module; /* of texts */
    uint32_t line;               /* not part of its identity */
};

struct location {
    uint32_t function, line;
};

struct type {
    size_t column;
    const double *values; /* [n_nodes] */
    double factor;
    const char *unit;
};

/* What a node's samples have, from its parent's. */
struct state {
    uint32_t caller; /* the node of the function that it is in, FRAME_NONE: none */
    uint32_t data;   /* the variable that it is below, a node */
    uint32_t class;  /* storage class, a node */
};

struct writing {
    const struct frame_job *job;
    struct strtab texts;
    struct function *functions; /* [n_functions] */
    size_t n_functions, cap_functions;
    struct location *locations; /* [n_locations] */
    size_t n_locations, cap_locations;
    struct slots function_slots, location_slots;
    struct type *types; /* [n_types] */
    size_t n_types;
    struct state *states;  /* [n_nodes] */
    uint32_t *location_of; /* [n_nodes] of a function: of the place where its caller is, FRAME_NONE: none */
    uint32_t *mapping_of;  /* [n_functions] number of the module, from 1 */
    struct buf text, packed, message;
    double n_frames;
    struct buf *out;
};

/* --- encoding --- */

static void put_varint(struct buf *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    buf_append(out, bytes, n);
}

/* A number, left out when it is 0. */
static void put_number(struct buf *out, unsigned field, uint64_t value)
{
    if (!value)
        return;
    put_varint(out, field << 3);
    put_varint(out, value);
}

/* A text, a message, or packed numbers. */
static void put_bytes(struct buf *out, unsigned field, const char *bytes, size_t n)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, n);
    buf_append(out, bytes, n);
}

/* Ends a message of the profile and clears it. */
static void put_message(struct writing *writing, unsigned field)
{
    put_bytes(writing->out, field, writing->message.data ? writing->message.data : "", writing->message.len_bytes);
    writing->out->failed |= writing->message.failed;
    writing->message.len_bytes = 0;
}

/* --- texts, functions, locations --- */

/* The number of a text in the table of strings; FRAME_NONE when out of memory. */
static uint32_t find_text(struct writing *writing, const char *text)
{
    writing->text.len_bytes = 0;
    if (*text)
        stacks_put_name(&writing->text, text);
    else
        buf_append(&writing->text, "", 0);
    int64_t id = writing->text.failed ? -1 : strtab_intern(&writing->texts, writing->text.data);
    writing->out->failed |= id < 0;
    return id < 0 ? FRAME_NONE : (uint32_t)id;
}

static uint64_t hash_function(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, 3 * sizeof(uint32_t));
}

static bool is_same_function(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(uint32_t)) == 0;
}

static uint64_t hash_location(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, sizeof(struct location));
}

static bool is_same_location(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct location)) == 0;
}

static const struct slots_kind functions_kind = {sizeof(struct function), hash_function, is_same_function};
static const struct slots_kind locations_kind = {sizeof(struct location), hash_location, is_same_location};

/* The function of a node, for a place in it: where that is in another file (an included one, #line), a second function
 * of the same name stands for the lines there, as pprof knows the files of functions alone. */
static uint32_t find_function(struct writing *writing, uint32_t node, uint32_t place)
{
    const struct frame *frame = writing->job->frame;
    const char *file = frame_file(frame, node), *of_place = place == FRAME_NONE ? "" : frame_file(frame, place);
    bool is_elsewhere = *of_place && strcmp(of_place, file) != 0;
    struct function like = {find_text(writing, *frame_name(frame, node) ? frame_name(frame, node) : "?"),
                            find_text(writing, is_elsewhere ? of_place : file),
                            find_text(writing, frame_module(frame, node)), is_elsewhere ? 0 : frame_line(frame, node)};
    if (like.name == FRAME_NONE || like.file == FRAME_NONE || like.module == FRAME_NONE)
        return FRAME_NONE;
    size_t at = slots_put(&writing->function_slots, &functions_kind, &writing->functions, &writing->n_functions,
                          &writing->cap_functions, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* The line of a place in the function that a node stands for. FRAME_NONE when out of memory. */
static uint32_t find_location(struct writing *writing, uint32_t function_node, uint32_t place)
{
    struct location like = {find_function(writing, function_node, place), frame_line(writing->job->frame, place)};
    if (like.function == FRAME_NONE)
        return FRAME_NONE;
    size_t at = slots_put(&writing->location_slots, &locations_kind, &writing->locations, &writing->n_locations,
                          &writing->cap_locations, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* --- samples --- */

static bool is_function(enum frame_kind kind)
{
    return frame_kind_is_function(kind) || kind == FRAME_GROUP;
}

/* Whether a node is a variable, or a group directly below a storage class that stands for one: "<compute>". */
static bool is_variable(const struct frame *frame, uint32_t node, uint32_t parent, const struct state *above)
{
    enum frame_kind kind = frame_kind(frame, node);
    bool is_in_class = above->class != FRAME_NONE && above->class == parent;
    return kind == FRAME_VARIABLE ||
           (kind == FRAME_GROUP && is_in_class && strcmp(frame_name(frame, node), ACCESS) != 0 &&
            strcmp(frame_name(frame, parent), "<unknown attribute>") == 0);
}

/* The state of a node, from its parent's: a variable ends the path of its allocation, and what touches it begins
 * anew. */
static bool find_state(struct writing *writing, uint32_t node, bool is_data)
{
    const struct frame *frame = writing->job->frame;
    size_t n;
    const uint32_t *parents = frame_parents(frame, node, &n);
    uint32_t parent = n ? parents[0] : FRAME_NONE;
    enum frame_kind kind = frame_kind(frame, node);
    struct state *state = &writing->states[node];
    const struct state none = {FRAME_NONE, FRAME_NONE, FRAME_NONE}, *above = n ? &writing->states[parent] : &none;
    *state = *above;
    writing->location_of[node] = FRAME_NONE;
    if (is_variable(frame, node, parent, above)) {
        state->data = node;
        state->caller = FRAME_NONE;
        return true;
    }
    if (is_data && (!n || strcmp(frame_name(frame, parent), "<datacentric>") == 0)) {
        state->class = n ? node : FRAME_NONE;
        return true;
    }
    bool is_separator = kind == FRAME_GROUP && strcmp(frame_name(frame, node), ACCESS) == 0;
    if (!is_function(kind) || is_separator)
        return true;
    if (above->caller != FRAME_NONE) {
        bool is_in_function = !is_function(frame_kind(frame, parent));
        writing->location_of[node] = find_location(writing, above->caller, is_in_function ? parent : above->caller);
        if (writing->location_of[node] == FRAME_NONE)
            return false;
    }
    state->caller = node;
    return true;
}

/* The node above a variable: the end of the path of its allocation. */
static uint32_t allocation_of(const struct writing *writing, uint32_t variable)
{
    size_t n;
    const uint32_t *parents = frame_parents(writing->job->frame, variable, &n);
    return n ? parents[0] : FRAME_NONE;
}

/* Packs the stack of a node, its own line first. What is no access has the path of the allocation. */
static bool put_stack(struct writing *writing, uint32_t node)
{
    const struct frame *frame = writing->job->frame;
    const struct state *state = &writing->states[node];
    writing->packed.len_bytes = 0;
    if (state->caller == FRAME_NONE && state->data != FRAME_NONE)
        node = allocation_of(writing, state->data);
    uint32_t caller = node == FRAME_NONE ? FRAME_NONE : writing->states[node].caller;
    if (caller == FRAME_NONE)
        return true;
    uint32_t location = find_location(writing, caller, node);
    while (location != FRAME_NONE) {
        put_varint(&writing->packed, (uint64_t)location + 1);
        writing->n_frames++;
        location = writing->location_of[caller];
        size_t n;
        const uint32_t *parents = frame_parents(frame, caller, &n);
        caller = n ? writing->states[parents[0]].caller : FRAME_NONE;
    }
    put_bytes(&writing->message, SAMPLE_LOCATION, writing->packed.data ? writing->packed.data : "",
              writing->packed.len_bytes);
    return !writing->packed.failed;
}

static bool put_label(struct writing *writing, const char *key, const char *text)
{
    uint32_t of_key = find_text(writing, key), of_text = find_text(writing, text);
    writing->packed.len_bytes = 0;
    put_number(&writing->packed, LABEL_KEY, of_key);
    put_number(&writing->packed, LABEL_TEXT, of_text);
    put_bytes(&writing->message, SAMPLE_LABEL, writing->packed.data ? writing->packed.data : "",
              writing->packed.len_bytes);
    return of_key != FRAME_NONE && of_text != FRAME_NONE && !writing->packed.failed;
}

static bool put_labels(struct writing *writing, uint32_t node)
{
    const struct frame *frame = writing->job->frame;
    const struct state *state = &writing->states[node];
    bool ok = true;
    if (state->data != FRAME_NONE) {
        struct buf place = {0};
        ok = put_label(writing, "variable", frame_name(frame, state->data));
        if (frame_line(frame, state->data)) {
            buf_printf(&place, "%s:%u", frame_file(frame, state->data), frame_line(frame, state->data));
            ok = ok && !place.failed && put_label(writing, "place", place.data);
        }
        buf_fini(&place);
    }
    if (state->class != FRAME_NONE)
        ok = ok && put_label(writing, "storage", frame_name(frame, state->class));
    return ok;
}

static int64_t whole_of(const struct type *type, uint32_t node)
{
    double whole = rint(type->values[node] * type->factor);
    return !(fabs(whole) < 9e18) ? 0 : (int64_t)whole;
}

static bool has_value(const struct writing *writing, uint32_t node)
{
    size_t i = 0;
    while (i < writing->n_types && whole_of(&writing->types[i], node) == 0)
        i++;
    return i < writing->n_types;
}

static bool put_sample(struct writing *writing, uint32_t node)
{
    bool ok = put_stack(writing, node);
    writing->packed.len_bytes = 0;
    for (size_t i = 0; i < writing->n_types; i++)
        put_varint(&writing->packed, (uint64_t)whole_of(&writing->types[i], node));
    put_bytes(&writing->message, SAMPLE_VALUE, writing->packed.data ? writing->packed.data : "",
              writing->packed.len_bytes);
    ok = ok && put_labels(writing, node) && !writing->message.failed;
    put_message(writing, PROFILE_SAMPLE);
    return ok;
}

static int put_samples(struct writing *writing, struct error *err)
{
    const struct frame *frame = writing->job->frame;
    uint32_t n = (uint32_t)frame_n_nodes(frame), n_samples = 0;
    bool has_code, has_data = false, ok;
    bool *is_data = stacks_data_nodes(frame, &has_code);
    writing->states = malloc(((size_t)n + 1) * sizeof *writing->states);
    writing->location_of = malloc(((size_t)n + 1) * sizeof *writing->location_of);
    ok = is_data && writing->states && writing->location_of;
    for (uint32_t node = 0; ok && node < n; node++)
        has_data |= is_data[node] && has_value(writing, node);
    for (uint32_t node = 0; ok && node < n && writing->n_frames <= frames_max; node++) {
        ok = find_state(writing, node, is_data[node]);
        if (ok && is_data[node] == has_data && has_value(writing, node)) {
            ok = put_sample(writing, node);
            n_samples++;
        }
    }
    free(is_data);
    if (!ok)
        return error_memory(err);
    if (writing->n_frames > frames_max)
        return error_set(err, ERR_RANGE,
                         "this form writes each path in full, here more than %.0f names; leave out small costs, or "
                         "choose speedscope",
                         frames_max);
    return n_samples ? 0 : error_set(err, ERR_NOT_FOUND, "there is nothing to show: no node has a cost of its own");
}

/* --- the tables --- */

static int find_types(struct writing *writing, struct error *err)
{
    struct frame *frame = writing->job->frame;
    size_t n_columns = frame_n_columns(frame), n = frame_n_nodes(frame);
    int code = 0;
    writing->types = calloc(n_columns + 1, sizeof *writing->types);
    if (!writing->types)
        return error_memory(err);
    for (size_t i = 0; code == 0 && i < n_columns; i++) {
        struct type *type = &writing->types[writing->n_types];
        if (frame_column_sums(frame, i) != FRAME_EXCLUSIVE || !stacks_shows(writing->job, i))
            continue;
        type->column = i;
        code = frame_values(frame, i, &writing->job->view, &type->values, err);
        if (code != 0)
            break;
        type->factor = stacks_scale(type->values, n);
        type->unit = stacks_unit(frame_column_name(frame, i), type->factor == 1);
        if (strcmp(type->unit, "seconds") == 0 || (strcmp(type->unit, "microseconds") == 0 && type->factor > 1)) {
            type->factor = *type->unit == 's' ? 1e9 : 1e3;
            type->unit = "nanoseconds";
        }
        writing->n_types++;
    }
    if (code == 0 && writing->n_types == 0)
        code = error_set(err, ERR_UNSUPPORTED, "this form needs the nodes' own costs, and no column has them");
    return code;
}

static bool put_types(struct writing *writing)
{
    const struct frame *frame = writing->job->frame;
    uint32_t shown = FRAME_NONE;
    for (size_t i = 0; i < writing->n_types; i++) {
        const struct type *type = &writing->types[i];
        struct buf unit = {0};
        uint32_t name = find_text(writing, frame_column_name(frame, type->column));
        buf_printf(&unit, "%s", type->unit);
        if (strcmp(type->unit, "nanoseconds") != 0 && type->factor > 1)
            buf_printf(&unit, "/%.0f", type->factor);
        uint32_t of_unit = unit.failed ? FRAME_NONE : find_text(writing, unit.data);
        buf_fini(&unit);
        if (name == FRAME_NONE || of_unit == FRAME_NONE)
            return false;
        put_number(&writing->message, TYPE_TYPE, name);
        put_number(&writing->message, TYPE_UNIT, of_unit);
        put_message(writing, PROFILE_SAMPLE_TYPE);
        bool is_shown =
            type->column == writing->job->column || frame_column_pair(frame, type->column) == writing->job->column;
        shown = is_shown ? name : shown;
    }
    put_number(writing->out, PROFILE_DEFAULT_TYPE, shown == FRAME_NONE ? 0 : shown);
    return true;
}

/* Modules get numbers in the order of the functions in them. */
static bool put_mappings(struct writing *writing)
{
    uint32_t *number_of = calloc(writing->texts.n_strings + 1, sizeof *number_of), n = 0;
    writing->mapping_of = calloc(writing->n_functions + 1, sizeof *writing->mapping_of);
    for (size_t i = 0; number_of && writing->mapping_of && i < writing->n_functions; i++) {
        uint32_t module = writing->functions[i].module;
        if (module && !number_of[module]) {
            number_of[module] = ++n;
            put_number(&writing->message, MAPPING_ID, n);
            put_number(&writing->message, MAPPING_FILE, module);
            put_number(&writing->message, MAPPING_HAS_FUNCTIONS, 1);
            put_number(&writing->message, MAPPING_HAS_FILES, 1);
            put_number(&writing->message, MAPPING_HAS_LINES, 1);
            put_message(writing, PROFILE_MAPPING);
        }
        writing->mapping_of[i] = number_of[module];
    }
    bool ok = number_of && writing->mapping_of;
    free(number_of);
    return ok;
}

/* Functions have no system name: pprof takes a name for one to be demangled where both are the same, and would cut
 * "<program root>" and the arguments of templates. */
static void put_tables(struct writing *writing)
{
    struct buf *message = &writing->message;
    for (size_t i = 0; i < writing->n_locations; i++) {
        const struct location *location = &writing->locations[i];
        writing->packed.len_bytes = 0;
        put_number(&writing->packed, LINE_FUNCTION, (uint64_t)location->function + 1);
        put_number(&writing->packed, LINE_NUMBER, location->line);
        put_number(message, LOCATION_ID, i + 1);
        put_number(message, LOCATION_MAPPING, writing->mapping_of[location->function]);
        put_bytes(message, LOCATION_LINE, writing->packed.data ? writing->packed.data : "", writing->packed.len_bytes);
        put_message(writing, PROFILE_LOCATION);
    }
    for (size_t i = 0; i < writing->n_functions; i++) {
        const struct function *function = &writing->functions[i];
        put_number(message, FUNCTION_ID, i + 1);
        put_number(message, FUNCTION_NAME, function->name);
        put_number(message, FUNCTION_FILE, function->file);
        put_number(message, FUNCTION_LINE, function->line);
        put_message(writing, PROFILE_FUNCTION);
    }
    for (size_t i = 0; i < writing->texts.n_strings; i++)
        put_bytes(writing->out, PROFILE_STRING, writing->texts.strings[i], strlen(writing->texts.strings[i]));
}

/* --- the file --- */

#if HAVE_ZLIB
/* Appends the profile to out, compressed: windowBits 15 + 16 makes gzip's header. */
static int compress_to(struct buf *out, const struct buf *plain, struct error *err)
{
    z_stream stream = {0};
    unsigned char chunk[65536];
    size_t left = plain->len_bytes;
    int state = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    if (state != Z_OK)
        return error_memory(err);
    stream.next_in = (unsigned char *)plain->data;
    while (state == Z_OK) {
        if (stream.avail_in == 0) {
            stream.avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left;
            left -= stream.avail_in;
        }
        stream.next_out = chunk;
        stream.avail_out = sizeof chunk;
        state = deflate(&stream, left ? Z_NO_FLUSH : Z_FINISH);
        buf_append(out, chunk, sizeof chunk - stream.avail_out);
    }
    (void)deflateEnd(&stream);
    return state == Z_STREAM_END ? 0 : error_memory(err);
}
#else
static int compress_to(struct buf *out, const struct buf *plain, struct error *err)
{
    (void)err;
    buf_append(out, plain->data ? plain->data : "", plain->len_bytes);
    return 0;
}
#endif

static void fini(struct writing *writing)
{
    strtab_fini(&writing->texts);
    slots_fini(&writing->function_slots);
    slots_fini(&writing->location_slots);
    free(writing->functions);
    free(writing->locations);
    free(writing->types);
    free(writing->states);
    free(writing->location_of);
    free(writing->mapping_of);
    buf_fini(&writing->text);
    buf_fini(&writing->packed);
    buf_fini(&writing->message);
}

static int write_pprof(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct buf plain = {0};
    struct writing writing = {.job = job, .out = &plain};
    int code =
        frame_is_tree(job->frame)
            ? 0
            : error_set(err, ERR_UNSUPPORTED, "this form needs call paths, and a node of the graph has two callers");
    if (code == 0 && find_text(&writing, "") != 0)
        code = error_memory(err);
    if (code == 0)
        code = find_types(&writing, err);
    if (code == 0 && !put_types(&writing))
        code = error_memory(err);
    if (code == 0)
        code = put_samples(&writing, err);
    if (code == 0 && !put_mappings(&writing))
        code = error_memory(err);
    if (code == 0) {
        put_number(&plain, PROFILE_COMMENT, find_text(&writing, job->title ? job->title : ""));
        put_tables(&writing);
        code = plain.failed ? error_memory(err) : compress_to(out, &plain, err);
    }
    fini(&writing);
    buf_fini(&plain);
    return code;
}

const struct frame_form form_pprof = {
    .name = "pprof", .summary = "profile.proto, for pprof: all columns, variables as labels", .write = write_pprof};
