/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks as texts. Folded ones, a line each: "main;solve;dot 12", as the scripts beside perf and many profilers make
 * them for flame graphs; "_[k]", "_[j]" and "_[i]" behind a name say the kernel, compiled just in time, and inlined.
 * Speedscope's files: frames by number, and profiles of samples with weights, or of calls and returns with times.
 * Sources: the README of FlameGraph; https://www.speedscope.app/file-format-schema.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_folded;
extern const struct frame_reader reader_speedscope;

/* --- folded --- */

struct folding {
    const char *name; /* of the file */
    size_t line;
    struct strtab texts; /* of frames */
    struct frame_paths paths;
    struct frame_maker maker;
    size_t column;
};

/* Cuts the number at the end of a line off: false when there is none, or nothing before it. */
static bool cut_number(char *line, double *number)
{
    char *blank = strrchr(line, ' '), *end;
    if (!blank || blank == line || !blank[1])
        return false;
    *number = plain_number(blank + 1, &end);
    if (*end || !isfinite(*number) || !strchr("+-.0123456789", blank[1]))
        return false;
    while (blank > line && blank[-1] == ' ')
        blank--;
    *blank = 0;
    return blank > line;
}

/* The node of a frame, whose name is cut. */
static uint32_t fold_frame(struct folding *folding, uint32_t parent, char *name)
{
    static const struct {
        const char *end, *module;
        enum frame_kind kind;
    } ends[] = {{"_[k]", "[kernel]", FRAME_FUNCTION}, {"_[j]", "[jit]", FRAME_FUNCTION}, {"_[i]", "", FRAME_INLINED}};
    int64_t text = strtab_intern(&folding->texts, name);
    if (text < 0) {
        folding->maker.failed = true;
        return 0;
    }
    struct made_node node = {.kind = FRAME_FUNCTION, .name = *name ? name : "???", .file = "", .module = ""};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends && len > 4; i++) {
        if (strcmp(name + len - 4, ends[i].end) != 0)
            continue;
        name[len - 4] = 0;
        node.kind = ends[i].kind;
        node.module = ends[i].module;
        break;
    }
    return paths_node(&folding->paths, &folding->maker, parent, (uint32_t)text, &node);
}

static int fold_line(struct folding *folding, char *line, struct error *err)
{
    double number = 0;
    uint32_t node = FRAME_NONE;
    if (!*line || *line == '#')
        return 0;
    if (!cut_number(line, &number))
        return error_set(err, ERR_FORMAT, "%.600s: line %zu: a stack does not end with a number", folding->name,
                         folding->line);
    for (char *at = line; at && !folding->maker.failed;) {
        char *next = strchr(at, ';');
        if (next)
            *next++ = 0;
        node = fold_frame(folding, node, at);
        at = next;
    }
    maker_value(&folding->maker, folding->column, node, 0, number);
    return 0;
}

static int read_folded(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct folding folding = {.name = input->path};
    struct buf text = {0};
    int code = readers_text(input, &text, err);
    maker_init(&folding.maker);
    folding.column = maker_column(&folding.maker, "samples", FRAME_EXCLUSIVE);
    for (char *line = text.data, *end = line ? line + text.len_bytes : line; code == 0 && line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
        folding.line++;
        line[len] = 0;
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = 0;
        code = fold_line(&folding, line, err);
        line += len + 1;
    }
    if (code == 0)
        code = paths_made(&folding.maker, frame, err);
    else
        maker_fini(&folding.maker);
    paths_fini(&folding.paths);
    strtab_fini(&folding.texts);
    buf_fini(&text);
    return code;
}

/* Lines that all end with a number, with a stack of two frames or more among them. */
static bool fits_folded(const struct frame_input *input)
{
    const char *at = input->head.data;
    bool has_stack = false, is_whole = input->head.len_bytes < FRAME_HEAD_BYTES;
    if (input->is_directory || strlen(at) != input->head.len_bytes)
        return false;
    for (const char *end; *at; at = *end ? end + 1 : end) {
        char line[4096];
        double number;
        size_t len = strcspn(at, "\n");
        end = at + len;
        if (!*end && !is_whole)
            break;
        has_stack |= memchr(at, ';', len) != NULL;
        if (len == 0 || *at == '#' || len >= sizeof line)
            continue;
        memcpy(line, at, len);
        line[len - (line[len - 1] == '\r')] = 0;
        if (!cut_number(line, &number))
            return false;
    }
    return has_stack;
}

const struct frame_reader reader_folded = {"folded stacks", fits_folded, read_folded};

/* --- speedscope --- */

struct scope_frame {
    uint32_t name, file; /* texts */
    double line;
};

/* A sample, or an event of a profile. */
struct scope_event {
    bool is_open; /* a call; otherwise a return */
    uint32_t frame;
    double at;
};

struct scope_profile {
    uint32_t name, unit;            /* texts */
    size_t first_sample, n_samples; /* of samples */
    size_t first_weight, n_weights; /* of weights */
    size_t first_event, n_events;   /* of events */
    double end;
};

struct scope {
    struct json_in in;
    struct strtab texts;
    struct scope_frame *frames; /* [n_frames] */
    size_t n_frames, cap_frames;
    struct scope_profile *profiles; /* [n_profiles] */
    size_t n_profiles, cap_profiles;
    uint32_t *stacks; /* [n_stacks] frames of all samples */
    size_t n_stacks, cap_stacks;
    size_t *samples; /* [n_samples + 1] their first frames */
    size_t n_samples, cap_samples;
    double *weights;
    size_t n_weights, cap_weights;
    struct scope_event *events;
    size_t n_events, cap_events;
    uint32_t exporter; /* text */
    uint32_t unknown;  /* the number of a frame that is not there */
    struct frame_paths paths;
    struct frame_maker maker;
    struct scope_column {
        size_t number;
        double scale;
    } * columns; /* [texts.n_strings] by unit; number SIZE_MAX: none yet */
};

/* Reads a value into what it is for: a text's number, or a number; anything else is passed over. */
static int scope_value(struct scope *scope, uint32_t *text, double *number, struct error *err)
{
    int piece = json_in_next(&scope->in, err);
    if (piece == JSON_IN_TEXT && text) {
        int64_t id = strtab_intern(&scope->texts, scope->in.value.data);
        *text = id < 0 ? 0 : (uint32_t)id;
        return id < 0 ? error_memory(err) : 0;
    }
    if (piece == JSON_IN_NUMBER && number) {
        *number = scope->in.number;
        return 0;
    }
    return json_in_skip(&scope->in, piece, err);
}

static int scope_read_frames(struct scope *scope, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_LIST, "\"frames\" is a list", err);
    while (code == 0 && (piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
        struct scope_frame frame = {0};
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&scope->in, "a frame is an object", err);
        while (code == 0 && (piece = json_in_next(&scope->in, err)) == JSON_IN_KEY) {
            const char *key = scope->in.value.data;
            code = strcmp(key, "name") == 0   ? scope_value(scope, &frame.name, NULL, err)
                   : strcmp(key, "file") == 0 ? scope_value(scope, &frame.file, NULL, err)
                   : strcmp(key, "line") == 0 ? scope_value(scope, NULL, &frame.line, err)
                                              : scope_value(scope, NULL, NULL, err);
        }
        code = code == 0 && piece < 0 ? piece : code;
        if (code == 0 && !vec_reserve(&scope->frames, &scope->cap_frames, scope->n_frames + 1, sizeof frame))
            return error_memory(err);
        if (code == 0)
            scope->frames[scope->n_frames++] = frame;
    }
    return code;
}

static int scope_read_shared(struct scope *scope, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_OBJECT, "\"shared\" is an object", err);
    while (code == 0 && (piece = json_in_next(&scope->in, err)) == JSON_IN_KEY)
        code = strcmp(scope->in.value.data, "frames") == 0 ? scope_read_frames(scope, err)
                                                           : scope_value(scope, NULL, NULL, err);
    return code == 0 && piece < 0 ? piece : code;
}

/* The number of a frame, whether there is one or not. */
static bool is_frame_number(double number)
{
    return number >= 0 && number < UINT32_MAX && number == floor(number);
}

static int scope_read_samples(struct scope *scope, struct scope_profile *profile, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_LIST, "\"samples\" is a list", err);
    profile->first_sample = scope->n_samples;
    while (code == 0 && (piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_LIST)
            return piece < 0 ? piece : json_in_fail(&scope->in, "a sample is a list of frames", err);
        if (!vec_reserve(&scope->samples, &scope->cap_samples, scope->n_samples + 2, sizeof *scope->samples))
            return error_memory(err);
        scope->samples[scope->n_samples++] = scope->n_stacks;
        while ((piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
            if (piece != JSON_IN_NUMBER || !is_frame_number(scope->in.number))
                return piece < 0 ? piece : json_in_fail(&scope->in, "a sample is a list of numbers of frames", err);
            if (!vec_reserve(&scope->stacks, &scope->cap_stacks, scope->n_stacks + 1, sizeof *scope->stacks))
                return error_memory(err);
            scope->stacks[scope->n_stacks++] = (uint32_t)scope->in.number;
        }
        scope->samples[scope->n_samples] = scope->n_stacks;
    }
    profile->n_samples = scope->n_samples - profile->first_sample;
    return code;
}

static int scope_read_weights(struct scope *scope, struct scope_profile *profile, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_LIST, "\"weights\" is a list", err);
    profile->first_weight = scope->n_weights;
    while (code == 0 && (piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_NUMBER || !isfinite(scope->in.number))
            return piece < 0 ? piece : json_in_fail(&scope->in, "a weight is a number", err);
        if (!vec_reserve(&scope->weights, &scope->cap_weights, scope->n_weights + 1, sizeof *scope->weights))
            return error_memory(err);
        scope->weights[scope->n_weights++] = scope->in.number;
    }
    profile->n_weights = scope->n_weights - profile->first_weight;
    return code;
}

static int scope_read_event(struct scope *scope, struct error *err)
{
    double frame = -1, at = NAN;
    uint32_t type = 0;
    int piece, code = 0;
    while (code == 0 && (piece = json_in_next(&scope->in, err)) == JSON_IN_KEY) {
        const char *key = scope->in.value.data;
        code = strcmp(key, "type") == 0    ? scope_value(scope, &type, NULL, err)
               : strcmp(key, "frame") == 0 ? scope_value(scope, NULL, &frame, err)
               : strcmp(key, "at") == 0    ? scope_value(scope, NULL, &at, err)
                                           : scope_value(scope, NULL, NULL, err);
    }
    if (code != 0 || piece < 0)
        return code != 0 ? code : piece;
    const char *letter = scope->texts.strings[type];
    if ((strcmp(letter, "O") != 0 && strcmp(letter, "C") != 0) || !isfinite(at) || !is_frame_number(frame))
        return json_in_fail(&scope->in, "an event has \"type\" O or C, \"frame\" and \"at\"", err);
    if (!vec_reserve(&scope->events, &scope->cap_events, scope->n_events + 1, sizeof *scope->events))
        return error_memory(err);
    scope->events[scope->n_events++] = (struct scope_event){*letter == 'O', (uint32_t)frame, at};
    return 0;
}

static int scope_read_events(struct scope *scope, struct scope_profile *profile, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_LIST, "\"events\" is a list", err);
    profile->first_event = scope->n_events;
    while (code == 0 && (piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&scope->in, "an event is an object", err);
        code = scope_read_event(scope, err);
    }
    profile->n_events = scope->n_events - profile->first_event;
    return code;
}

static int scope_read_profile(struct scope *scope, struct error *err)
{
    struct scope_profile profile = {0};
    int piece, code = 0;
    while (code == 0 && (piece = json_in_next(&scope->in, err)) == JSON_IN_KEY) {
        const char *key = scope->in.value.data;
        code = strcmp(key, "name") == 0       ? scope_value(scope, &profile.name, NULL, err)
               : strcmp(key, "unit") == 0     ? scope_value(scope, &profile.unit, NULL, err)
               : strcmp(key, "endValue") == 0 ? scope_value(scope, NULL, &profile.end, err)
               : strcmp(key, "samples") == 0  ? scope_read_samples(scope, &profile, err)
               : strcmp(key, "weights") == 0  ? scope_read_weights(scope, &profile, err)
               : strcmp(key, "events") == 0   ? scope_read_events(scope, &profile, err)
                                              : scope_value(scope, NULL, NULL, err);
    }
    if (code != 0 || piece < 0)
        return code != 0 ? code : piece;
    if (profile.n_samples != profile.n_weights && profile.n_weights > 0)
        return json_in_fail(&scope->in, "a profile has not as many weights as samples", err);
    if (!vec_reserve(&scope->profiles, &scope->cap_profiles, scope->n_profiles + 1, sizeof profile))
        return error_memory(err);
    scope->profiles[scope->n_profiles++] = profile;
    return 0;
}

static int scope_read_profiles(struct scope *scope, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_LIST, "\"profiles\" is a list", err);
    while (code == 0 && (piece = json_in_next(&scope->in, err)) != JSON_IN_LIST_END) {
        if (piece != JSON_IN_OBJECT)
            return piece < 0 ? piece : json_in_fail(&scope->in, "a profile is an object", err);
        code = scope_read_profile(scope, err);
    }
    return code;
}

static int scope_read(struct scope *scope, struct error *err)
{
    int piece, code = json_in_expect(&scope->in, JSON_IN_OBJECT, "the text is an object", err);
    while (code == 0 && (piece = json_in_next(&scope->in, err)) == JSON_IN_KEY) {
        const char *key = scope->in.value.data;
        code = strcmp(key, "shared") == 0     ? scope_read_shared(scope, err)
               : strcmp(key, "profiles") == 0 ? scope_read_profiles(scope, err)
               : strcmp(key, "exporter") == 0 ? scope_value(scope, &scope->exporter, NULL, err)
                                              : scope_value(scope, NULL, NULL, err);
    }
    if (code == 0)
        code = piece < 0 ? piece : json_in_expect(&scope->in, JSON_IN_END, "something follows the end", err);
    return code;
}

/* --- what they say --- */

/* The node of a frame; *ok becomes false where there is no such frame. */
static uint32_t scope_node(struct scope *scope, uint32_t parent, uint32_t number, bool *ok)
{
    if (number >= scope->n_frames) {
        scope->unknown = number;
        *ok = false;
        return 0;
    }
    const struct scope_frame *frame = &scope->frames[number];
    const char *name = scope->texts.strings[frame->name];
    bool has_line = frame->line >= 1 && frame->line < UINT32_MAX;
    struct made_node node = {.kind = FRAME_FUNCTION,
                             .name = *name ? name : "???",
                             .file = scope->texts.strings[frame->file],
                             .module = "",
                             .line = has_line ? (uint32_t)frame->line : 0};
    return paths_node(&scope->paths, &scope->maker, parent, number, &node);
}

/* The column of a profile, by its unit: times are "time" in seconds. */
static const struct scope_column *scope_column(struct scope *scope, const struct scope_profile *profile)
{
    static const struct {
        const char *unit, *name;
        double scale;
    } units[] = {{"seconds", "time", 1},        {"milliseconds", "time", 1e-3}, {"microseconds", "time", 1e-6},
                 {"nanoseconds", "time", 1e-9}, {"none", "samples", 1},         {"", "samples", 1}};
    struct scope_column *column = &scope->columns[profile->unit];
    const char *unit = scope->texts.strings[profile->unit];
    size_t i = 0, n = sizeof units / sizeof *units;
    if (column->number != SIZE_MAX)
        return column;
    while (i < n && strcmp(units[i].unit, unit) != 0)
        i++;
    const char *name = i < n ? units[i].name : unit;
    column->scale = i < n ? units[i].scale : 1;
    for (size_t k = 0; k < scope->maker.n_columns && column->number == SIZE_MAX; k++)
        if (strcmp(scope->maker.columns[k].name, name) == 0)
            column->number = k;
    if (column->number == SIZE_MAX)
        column->number = maker_column(&scope->maker, name, FRAME_EXCLUSIVE);
    return column;
}

static bool scope_add_samples(struct scope *scope, const struct scope_profile *profile, uint32_t number)
{
    const struct scope_column *column = scope_column(scope, profile);
    bool ok = true;
    for (size_t i = 0; ok && i < profile->n_samples && !scope->maker.failed; i++) {
        size_t sample = profile->first_sample + i;
        uint32_t node = FRAME_NONE;
        for (size_t k = scope->samples[sample]; ok && k < scope->samples[sample + 1]; k++)
            node = scope_node(scope, node, scope->stacks[k], &ok);
        double weight = profile->n_weights > 0 ? scope->weights[profile->first_weight + i] * column->scale : 1;
        if (ok && node != FRAME_NONE)
            maker_value(&scope->maker, column->number, node, number, weight);
    }
    return ok;
}

/* Calls and returns: the time between two events is that of the frame on top. stack has room for the events. */
static bool scope_add_events(struct scope *scope, const struct scope_profile *profile, uint32_t number, uint32_t *stack)
{
    const struct scope_column *column = scope_column(scope, profile);
    size_t n = 0;
    double last = 0;
    bool ok = true;
    for (size_t i = 0; ok && i <= profile->n_events && !scope->maker.failed; i++) {
        const struct scope_event *event = i < profile->n_events ? &scope->events[profile->first_event + i] : NULL;
        double at = event ? event->at : profile->end;
        if (n > 0 && at > last)
            maker_value(&scope->maker, column->number, stack[n - 1], number, (at - last) * column->scale);
        last = at > last || i == 0 ? at : last;
        if (event && event->is_open) {
            stack[n] = scope_node(scope, n > 0 ? stack[n - 1] : FRAME_NONE, event->frame, &ok);
            n++;
        } else if (event && n > 0) {
            n--;
        }
    }
    return ok;
}

/* The number behind a word of a name; -1: there is none. */
static int64_t number_behind(const char *name, const char *word)
{
    const char *at = strstr(name, word);
    if (!at || (at > name && at[-1] != ' ') || !strchr("0123456789", at[strlen(word)]) || !at[strlen(word)])
        return -1;
    return strtoll(at + strlen(word), NULL, 10);
}

static uint32_t scope_add_profile(struct scope *scope, const char *name)
{
    struct frame_profile profile = {name, number_behind(name, "rank "), number_behind(name, "thread "), -1, -1};
    return maker_profile(&scope->maker, &profile);
}

static int scope_make(struct scope *scope, struct frame **frame, struct error *err)
{
    uint32_t *stack = malloc((scope->n_events + 1) * sizeof *stack);
    bool ok = true;
    scope->columns = malloc((scope->texts.n_strings + 1) * sizeof *scope->columns);
    if (!stack || !scope->columns) {
        free(stack);
        return error_memory(err);
    }
    for (size_t i = 0; i < scope->texts.n_strings; i++)
        scope->columns[i] = (struct scope_column){SIZE_MAX, 1};
    maker_init(&scope->maker);
    for (size_t i = 0; ok && i < scope->n_profiles && !scope->maker.failed; i++) {
        const struct scope_profile *profile = &scope->profiles[i];
        const char *name = scope->texts.strings[profile->name];
        if (i == 0 && scope->n_profiles > 1 && strcmp(scope->texts.strings[scope->exporter], "Locus") == 0)
            continue; /* the sum of those that follow */
        uint32_t number = scope_add_profile(scope, name);
        ok = scope_add_samples(scope, profile, number) && scope_add_events(scope, profile, number, stack);
    }
    free(stack);
    int code = 0;
    if (!ok)
        code = error_set(err, ERR_FORMAT, "%.600s: the number %u in a profile is that of no frame; there are %zu",
                         scope->in.name, scope->unknown, scope->n_frames);
    if (code == 0)
        code = readers_check_size(scope->in.name, scope->maker.nodes ? scope->maker.nodes->n : 0,
                                  2 * scope->maker.n_columns, (size_t)(scope->in.end - scope->in.text), err);
    if (code == 0)
        return paths_made(&scope->maker, frame, err);
    maker_fini(&scope->maker);
    return code;
}

static int read_speedscope(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct scope scope = {0};
    struct buf text = {0};
    int code = readers_json(input, &text, &scope.texts, &scope.in, err);
    if (code == 0)
        code = scope_read(&scope, err);
    if (code == 0)
        code = scope_make(&scope, frame, err);
    json_in_fini(&scope.in);
    strtab_fini(&scope.texts);
    free(scope.frames);
    free(scope.profiles);
    free(scope.stacks);
    free(scope.samples);
    free(scope.weights);
    free(scope.events);
    free(scope.columns);
    paths_fini(&scope.paths);
    buf_fini(&text);
    return code;
}

/* What names the schema, or has two of the words of one. */
static bool fits_speedscope(const struct frame_input *input)
{
    const char *at = input->head.data;
    at += strspn(at, " \t\r\n");
    return *at == '{' && (strstr(at, "speedscope.app/file-format-schema.json") ||
                          (strstr(at, "\"shared\"") && strstr(at, "\"frames\"") && !strstr(at, "\"frame\"")));
}

const struct frame_reader reader_speedscope = {"a file of speedscope", fits_speedscope, read_speedscope};
