/* SPDX-License-Identifier: BSD-3-Clause */
/* pprof's profile.proto, compressed or not. Each type of sample is a column: its name, with the unit where that is no
 * count; nanoseconds of "time" are its seconds. A function that was inlined has its kind; the line that a sample fell
 * on is a node of its own. Labels of samples are passed over. Source:
 * https://github.com/google/pprof/blob/main/proto/profile.proto and the encoding of Protocol Buffers. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "frame/make.h"
#include "frame/readers.h"

#if HAVE_ZLIB
#include <zlib.h>
#endif

extern const struct frame_reader reader_pprof;

/* Numbers of fields. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6 };
enum { TYPE_TYPE = 1, TYPE_UNIT = 2, SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3 };
enum { LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_NUMBER = 2, FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4 };
enum { FUNCTION_LINE = 5 };

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static const size_t inflated_max = (size_t)1 << 32;

/* A part of the message. */
struct span {
    const unsigned char *at, *end;
};

/* A field: a number, or bytes. */
struct field {
    uint64_t number, value; /* of the field */
    unsigned wire;
    struct span bytes;
};

/* What has an id of the file; the id comes first, so that all are found alike. */
struct mapping {
    uint64_t id, file;
};
struct function {
    uint64_t id, name, file, line;
};
struct location {
    uint64_t id, mapping, address;
    size_t first_line, n_lines;
};
struct line {
    uint64_t function, number;
};

struct sample_type {
    uint64_t type, unit;
    double scale;
};

struct profile {
    const char *name; /* of the file */
    struct buf bytes;
    struct span *strings; /* [n_strings] */
    size_t n_strings, cap_strings;
    struct sample_type *types; /* [n_types] */
    size_t n_types, cap_types;
    struct mapping *mappings;
    struct function *functions;
    struct location *locations;
    struct line *lines;
    size_t n_mappings, cap_mappings, n_functions, cap_functions, n_locations, cap_locations, n_lines, cap_lines;
    struct slots mapping_slots, function_slots, location_slots;
    uint64_t *path, *values; /* [n] of the sample that is read */
    size_t n_path, cap_path, n_values, cap_values;
    uint64_t n_steps; /* of all paths so far */
    struct strtab texts;
    struct frame_paths paths;
    struct frame_maker maker;
    struct buf name_text, file_text, module_text, place_text;
};

static int bad_at(const struct profile *profile, const unsigned char *at, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: offset %zu: %s", profile->name,
                     (size_t)(at - (const unsigned char *)profile->bytes.data), reason);
}

/* --- the encoding --- */

static bool take_varint(struct span *span, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && span->at < span->end; shift += 7) {
        unsigned char byte = *span->at++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* The next field of a message: 1, 0 at its end, or an error. */
static int take_field(const struct profile *profile, struct span *span, struct field *field, struct error *err)
{
    const unsigned char *begin = span->at;
    uint64_t key;
    if (span->at >= span->end)
        return 0;
    if (!take_varint(span, &key))
        return bad_at(profile, begin, "a field has no number", err);
    *field = (struct field){.number = key >> 3, .wire = key & 7};
    size_t rest = (size_t)(span->end - span->at), n = field->wire == WIRE_64 ? 8 : 4;
    if (field->wire == WIRE_VARINT)
        return take_varint(span, &field->value) ? 1 : bad_at(profile, begin, "a number is cut off", err);
    if (field->wire == WIRE_64 || field->wire == WIRE_32) {
        if (n > rest)
            return bad_at(profile, begin, "a number is cut off", err);
        span->at += n;
        return 1;
    }
    if (field->wire != WIRE_BYTES)
        return bad_at(profile, begin, "a field is of a kind that is not known", err);
    if (!take_varint(span, &field->value) || field->value > (uint64_t)(span->end - span->at))
        return bad_at(profile, begin, "a field is longer than what is left", err);
    field->bytes = (struct span){span->at, span->at + field->value};
    span->at = field->bytes.end;
    return 1;
}

/* Appends the numbers of a field that may be packed. */
static int take_numbers(const struct profile *profile, const struct field *field, uint64_t **numbers, size_t *n,
                        size_t *capacity, struct error *err)
{
    struct span span = field->bytes;
    uint64_t number = field->value;
    do {
        if (field->wire == WIRE_BYTES && span.at == span.end)
            break;
        if (field->wire == WIRE_BYTES && !take_varint(&span, &number))
            return bad_at(profile, span.at, "a number is cut off", err);
        if (!vec_reserve(numbers, capacity, *n + 1, sizeof **numbers))
            return error_memory(err);
        (*numbers)[(*n)++] = number;
    } while (field->wire == WIRE_BYTES);
    return 0;
}

/* --- tables by id --- */

static uint64_t hash_id(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, sizeof(uint64_t));
}

static bool is_same_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(uint64_t)) == 0;
}

static const struct slots_kind mappings_kind = {sizeof(struct mapping), hash_id, is_same_id};
static const struct slots_kind functions_kind = {sizeof(struct function), hash_id, is_same_id};
static const struct slots_kind locations_kind = {sizeof(struct location), hash_id, is_same_id};

/* The numbers of a message's members [n], by their numbers as fields; of those that stand there twice the last one. */
static int take_members(const struct profile *profile, struct span span, uint64_t *members, size_t n, struct error *err)
{
    struct field field;
    int found;
    while ((found = take_field(profile, &span, &field, err)) > 0)
        if (field.number < n)
            members[field.number] = field.value;
    return found;
}

#define N_MEMBERS(members) (sizeof(members) / sizeof *(members))

static int take_type(struct profile *profile, struct span span, struct error *err)
{
    uint64_t of[TYPE_UNIT + 1] = {0};
    int code = take_members(profile, span, of, N_MEMBERS(of), err);
    if (code == 0 && !vec_reserve(&profile->types, &profile->cap_types, profile->n_types + 1, sizeof *profile->types))
        return error_memory(err);
    if (code == 0)
        profile->types[profile->n_types++] = (struct sample_type){.type = of[TYPE_TYPE], .unit = of[TYPE_UNIT]};
    return code;
}

static int take_mapping(struct profile *profile, struct span span, struct error *err)
{
    uint64_t of[MAPPING_FILE + 1] = {0};
    int code = take_members(profile, span, of, N_MEMBERS(of), err);
    const struct mapping mapping = {.id = of[MAPPING_ID], .file = of[MAPPING_FILE]};
    if (code == 0 && slots_put(&profile->mapping_slots, &mappings_kind, &profile->mappings, &profile->n_mappings,
                               &profile->cap_mappings, &mapping) == SLOTS_NONE)
        return error_memory(err);
    return code;
}

static int take_function(struct profile *profile, struct span span, struct error *err)
{
    uint64_t of[FUNCTION_LINE + 1] = {0};
    int code = take_members(profile, span, of, N_MEMBERS(of), err);
    const struct function function = {
        .id = of[FUNCTION_ID], .name = of[FUNCTION_NAME], .file = of[FUNCTION_FILE], .line = of[FUNCTION_LINE]};
    if (code == 0 && slots_put(&profile->function_slots, &functions_kind, &profile->functions, &profile->n_functions,
                               &profile->cap_functions, &function) == SLOTS_NONE)
        return error_memory(err);
    return code;
}

static int take_line(struct profile *profile, struct span span, struct error *err)
{
    uint64_t of[LINE_NUMBER + 1] = {0};
    int code = take_members(profile, span, of, N_MEMBERS(of), err);
    if (code == 0 && !vec_reserve(&profile->lines, &profile->cap_lines, profile->n_lines + 1, sizeof *profile->lines))
        return error_memory(err);
    if (code == 0)
        profile->lines[profile->n_lines++] = (struct line){.function = of[LINE_FUNCTION], .number = of[LINE_NUMBER]};
    return code;
}

static int take_location(struct profile *profile, struct span span, struct error *err)
{
    struct location location = {.first_line = profile->n_lines};
    struct field field;
    int found, code = 0;
    while (code == 0 && (found = take_field(profile, &span, &field, err)) > 0) {
        location.id = field.number == LOCATION_ID ? field.value : location.id;
        location.mapping = field.number == LOCATION_MAPPING ? field.value : location.mapping;
        location.address = field.number == LOCATION_ADDRESS ? field.value : location.address;
        if (field.number == LOCATION_LINE && field.wire == WIRE_BYTES)
            code = take_line(profile, field.bytes, err);
    }
    location.n_lines = profile->n_lines - location.first_line;
    if (code != 0 || found < 0)
        return code != 0 ? code : found;
    return slots_put(&profile->location_slots, &locations_kind, &profile->locations, &profile->n_locations,
                     &profile->cap_locations, &location) == SLOTS_NONE
               ? error_memory(err)
               : 0;
}

static int take_string(struct profile *profile, struct span span, struct error *err)
{
    if (!vec_reserve(&profile->strings, &profile->cap_strings, profile->n_strings + 1, sizeof span))
        return error_memory(err);
    profile->strings[profile->n_strings++] = span;
    return 0;
}

/* Everything but samples, which come before what they refer to. */
static int read_tables(struct profile *profile, struct error *err)
{
    struct span span = {(const unsigned char *)profile->bytes.data,
                        (const unsigned char *)profile->bytes.data + profile->bytes.len_bytes};
    struct field field;
    int found, code = 0;
    while (code == 0 && (found = take_field(profile, &span, &field, err)) > 0) {
        if (field.wire != WIRE_BYTES)
            continue;
        code = field.number == PROFILE_SAMPLE_TYPE ? take_type(profile, field.bytes, err)
               : field.number == PROFILE_MAPPING   ? take_mapping(profile, field.bytes, err)
               : field.number == PROFILE_LOCATION  ? take_location(profile, field.bytes, err)
               : field.number == PROFILE_FUNCTION  ? take_function(profile, field.bytes, err)
               : field.number == PROFILE_STRING    ? take_string(profile, field.bytes, err)
                                                   : 0;
    }
    if (code == 0 && found < 0)
        code = found;
    if (code == 0 && profile->n_types == 0)
        code = error_set(err, ERR_FORMAT, "%.600s: offset 0: there is no type of samples, as in profiles of pprof",
                         profile->name);
    return code;
}

/* --- the frame --- */

/* Replaces what out holds by a string of the file; "" where there is none. */
static const char *put_string(struct profile *profile, uint64_t number, struct buf *out)
{
    out->len_bytes = 0;
    if (number < profile->n_strings) {
        const struct span *span = &profile->strings[number];
        const void *zero = memchr(span->at, 0, (size_t)(span->end - span->at));
        buf_append(out, span->at,
                   zero ? (size_t)((const unsigned char *)zero - span->at) : (size_t)(span->end - span->at));
    }
    buf_append(out, "", 1);
    profile->maker.failed |= out->failed;
    return out->data ? out->data : "";
}

/* The number of a step of a path: what stands for it as a text. */
static uint32_t step_number(struct profile *profile, const char *format, uint64_t a, uint64_t b)
{
    struct buf text = {0};
    buf_printf(&text, "%s %ju %ju", format, (uintmax_t)a, (uintmax_t)b);
    int64_t number = text.failed ? -1 : strtab_intern(&profile->texts, text.data);
    profile->maker.failed |= number < 0;
    buf_fini(&text);
    return number < 0 ? 0 : (uint32_t)number;
}

/* The node of a function of a location, or of its address where no function is known. */
static uint32_t add_function(struct profile *profile, const struct location *location, const struct line *line,
                             bool is_inlined, uint32_t parent)
{
    struct mapping mapping_like = {.id = location->mapping};
    struct function like = {.id = line ? line->function : 0};
    size_t mapping = slots_find(&profile->mapping_slots, &mappings_kind, profile->mappings, &mapping_like);
    size_t at = line ? slots_find(&profile->function_slots, &functions_kind, profile->functions, &like) : SLOTS_NONE;
    const struct function *function = at == SLOTS_NONE ? NULL : &profile->functions[at];
    struct made_node node = {.kind = is_inlined ? FRAME_INLINED : FRAME_FUNCTION, .file = ""};
    node.module =
        mapping == SLOTS_NONE ? "" : put_string(profile, profile->mappings[mapping].file, &profile->module_text);
    if (function) {
        node.name = put_string(profile, function->name, &profile->name_text);
        node.file = put_string(profile, function->file, &profile->file_text);
        node.line = function->line < UINT32_MAX ? (uint32_t)function->line : 0;
    }
    if (!function || !*node.name) {
        profile->name_text.len_bytes = 0;
        buf_printf(&profile->name_text, "0x%jx", (uintmax_t)location->address);
        node.name = profile->name_text.data;
    }
    if (profile->maker.failed || profile->name_text.failed)
        return 0;
    uint32_t step = function ? step_number(profile, is_inlined ? "i" : "f", like.id, location->mapping)
                             : step_number(profile, "a", location->address, location->mapping);
    return paths_node(&profile->paths, &profile->maker, parent, step, &node);
}

/* The node of a line in the function of the leaf. */
static uint32_t add_place(struct profile *profile, const struct line *line, uint32_t parent)
{
    struct function like = {.id = line->function};
    size_t at = slots_find(&profile->function_slots, &functions_kind, profile->functions, &like);
    if (at == SLOTS_NONE || line->number == 0 || line->number >= UINT32_MAX || profile->maker.failed)
        return parent;
    const char *file = put_string(profile, profile->functions[at].file, &profile->file_text);
    hpctoolkit_place_name(FRAME_LINE, file, (uint32_t)line->number, &profile->place_text);
    struct made_node node = {.kind = FRAME_LINE,
                             .name = profile->place_text.data,
                             .file = file,
                             .module = "",
                             .line = (uint32_t)line->number};
    if (profile->place_text.failed || profile->maker.failed)
        return parent;
    return paths_node(&profile->paths, &profile->maker, parent, step_number(profile, "l", like.id, line->number),
                      &node);
}

/* Reads the locations and values of a sample. */
static int take_sample(struct profile *profile, struct span span, struct error *err)
{
    struct field field;
    int found, code = 0;
    profile->n_path = profile->n_values = 0;
    while (code == 0 && (found = take_field(profile, &span, &field, err)) > 0) {
        if (field.wire != WIRE_BYTES && field.wire != WIRE_VARINT)
            continue;
        if (field.number == SAMPLE_LOCATION)
            code = take_numbers(profile, &field, &profile->path, &profile->n_path, &profile->cap_path, err);
        if (field.number == SAMPLE_VALUE)
            code = take_numbers(profile, &field, &profile->values, &profile->n_values, &profile->cap_values, err);
    }
    return code != 0 ? code : found;
}

static int add_sample(struct profile *profile, const unsigned char *at, struct error *err)
{
    uint32_t node = FRAME_NONE;
    const struct line *last = NULL;
    if (profile->n_values != profile->n_types)
        return bad_at(profile, at, "a sample has not as many values as there are types", err);
    for (size_t i = profile->n_path; i-- && !profile->maker.failed;) {
        struct location like = {.id = profile->path[i]};
        size_t found = slots_find(&profile->location_slots, &locations_kind, profile->locations, &like);
        if (found == SLOTS_NONE)
            return bad_at(profile, at, "the location of a sample is not there", err);
        const struct location *location = &profile->locations[found];
        if (location->n_lines == 0)
            node = add_function(profile, location, NULL, false, node);
        for (size_t k = location->n_lines; k--;) {
            const struct line *line = &profile->lines[location->first_line + k];
            node = add_function(profile, location, line, k + 1 < location->n_lines, node);
        }
        last = location->n_lines > 0 ? &profile->lines[location->first_line] : NULL;
        profile->n_steps += location->n_lines + 1;
        if (readers_check_size(profile->name, profile->n_steps / 16, 1, profile->bytes.len_bytes, NULL) != 0)
            return bad_at(profile, at, "the call paths are too long for so few bytes", err);
    }
    if (last)
        node = add_place(profile, last, node);
    for (size_t i = 0; node != FRAME_NONE && i < profile->n_values; i++)
        if (profile->values[i] != 0)
            maker_value(&profile->maker, i, node, 0, (double)(int64_t)profile->values[i] * profile->types[i].scale);
    return profile->maker.failed ? error_memory(err) : 0;
}

static void add_columns(struct profile *profile)
{
    for (size_t i = 0; i < profile->n_types; i++) {
        const char *type = put_string(profile, profile->types[i].type, &profile->name_text);
        const char *unit = put_string(profile, profile->types[i].unit, &profile->file_text);
        struct buf name = {0};
        bool is_time = strcmp(type, "time") == 0 && strcmp(unit, "nanoseconds") == 0;
        profile->types[i].scale = is_time ? 1e-9 : 1;
        buf_printf(&name, "%s", type);
        if (!is_time && *unit && strcmp(unit, "count") != 0)
            buf_printf(&name, " (%s)", unit);
        profile->maker.failed |= name.failed;
        (void)maker_column(&profile->maker, name.data ? name.data : "", FRAME_EXCLUSIVE);
        buf_fini(&name);
    }
}

static int read_samples(struct profile *profile, struct error *err)
{
    struct span span = {(const unsigned char *)profile->bytes.data,
                        (const unsigned char *)profile->bytes.data + profile->bytes.len_bytes};
    struct field field;
    int found,
        code = readers_check_size(profile->name, profile->n_types, profile->n_types, profile->bytes.len_bytes, err);
    if (code == 0)
        add_columns(profile);
    while (code == 0 && (found = take_field(profile, &span, &field, err)) > 0) {
        if (field.number != PROFILE_SAMPLE || field.wire != WIRE_BYTES)
            continue;
        code = take_sample(profile, field.bytes, err);
        if (code == 0)
            code = add_sample(profile, field.bytes.at, err);
    }
    if (code == 0 && profile->maker.nodes)
        code = readers_check_size(profile->name, profile->maker.nodes->n, 2 * profile->n_types,
                                  profile->bytes.len_bytes, err);
    return code;
}

/* --- the file --- */

static bool is_compressed(const struct buf *bytes)
{
    return bytes->len_bytes > 2 && (unsigned char)bytes->data[0] == 0x1f && (unsigned char)bytes->data[1] == 0x8b;
}

#if HAVE_ZLIB
/* Puts what compressed bytes hold in their place; several parts may follow each other. */
static int inflate_bytes(struct profile *profile, struct error *err)
{
    struct buf whole = {0};
    z_stream stream = {.next_in = (Bytef *)profile->bytes.data, .avail_in = (uInt)profile->bytes.len_bytes};
    enum { STEP = 1 << 16 };
    unsigned char *step = malloc(STEP);
    int code = 0, status = step && profile->bytes.len_bytes < UINT32_MAX ? inflateInit2(&stream, 15 + 16) : Z_MEM_ERROR;
    bool has_begun = status == Z_OK;
    while (status == Z_OK) {
        stream.next_out = step;
        stream.avail_out = STEP;
        status = inflate(&stream, Z_NO_FLUSH);
        buf_append(&whole, step, STEP - stream.avail_out);
        if (whole.failed || whole.len_bytes > inflated_max)
            status = Z_MEM_ERROR;
        else if (status == Z_STREAM_END && stream.avail_in > 0)
            status = inflateReset(&stream);
        else if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0))
            status = Z_DATA_ERROR;
    }
    if (status == Z_MEM_ERROR)
        code = error_memory(err);
    else if (status != Z_STREAM_END)
        code = error_set(err, ERR_FORMAT, "%.600s: offset %zu: the compressed bytes are damaged, or cut off",
                         profile->name, (size_t)(profile->bytes.len_bytes - stream.avail_in));
    if (has_begun)
        (void)inflateEnd(&stream);
    free(step);
    buf_append(&whole, "", 0);
    buf_fini(&profile->bytes);
    profile->bytes = whole;
    return code;
}
#else
static int inflate_bytes(struct profile *profile, struct error *err)
{
    return error_set(err, ERR_UNSUPPORTED,
                     "%.600s: this program was built without zlib; gunzip makes a file that can be read",
                     profile->name);
}
#endif

static void fini(struct profile *profile)
{
    free(profile->strings);
    free(profile->types);
    free(profile->mappings);
    free(profile->functions);
    free(profile->locations);
    free(profile->lines);
    free(profile->path);
    free(profile->values);
    slots_fini(&profile->mapping_slots);
    slots_fini(&profile->function_slots);
    slots_fini(&profile->location_slots);
    strtab_fini(&profile->texts);
    paths_fini(&profile->paths);
    buf_fini(&profile->bytes);
    buf_fini(&profile->name_text);
    buf_fini(&profile->file_text);
    buf_fini(&profile->module_text);
    buf_fini(&profile->place_text);
}

static int read_pprof(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct profile profile = {.name = input->path};
    int code = readers_text(input, &profile.bytes, err);
    maker_init(&profile.maker);
    if (code == 0 && is_compressed(&profile.bytes))
        code = inflate_bytes(&profile, err);
    if (code == 0)
        code = read_tables(&profile, err);
    if (code == 0)
        code = read_samples(&profile, err);
    if (code == 0)
        code = paths_made(&profile.maker, frame, err);
    else
        maker_fini(&profile.maker);
    fini(&profile);
    return code;
}

/* Compressed bytes, or a message that begins with a type of samples: a field 1 with two numbers. */
static bool fits_pprof(const struct frame_input *input)
{
    const unsigned char *at = input->is_directory ? (const unsigned char *)"" : (const unsigned char *)input->head.data;
    if (input->is_directory || input->head.len_bytes < 4)
        return false;
    return is_compressed(&input->head) || (at[0] == 0x0a && at[1] >= 2 && at[1] <= 22 && at[2] == 0x08);
}

const struct frame_reader reader_pprof = {"a profile of pprof", fits_pprof, read_pprof};
