/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of callgrind, and of whoever writes its format, line by line; callgrind-frame.c says what becomes of
 * them. Each part is a profile. Parts that lie in files of their own beside the one that is named are read with it.
 * Format: the callgrind manual, and what KCachegrind 22.12 reads. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "frame/callgrind.h"

extern const struct frame_reader reader_callgrind;

enum { EVENTS_MAX = 400, FUNCTIONS_MAX = INT32_MAX };

/* What compressed names stand for in a part: objects, files, functions. */
enum { NAMES_OBJECT = 0, NAMES_FILE, NAMES_FUNCTION, NAMES_KINDS };

struct names {
    struct strtab numbers;
    uint32_t *texts; /* [numbers.n_strings] ids */
    size_t capacity;
};

/* The costs of the part that is being read. */
struct part_costs {
    double *rows;   /* [n_places][n_events + 2] the last two: how many calls or jumps, and jumps followed */
    uint32_t *used; /* [n_used] places that have a row there, which is not all zero */
    bool *is_used;  /* [cap_is_used] of each place */
    size_t cap_rows, n_used, cap_used, cap_is_used;
};

enum { N_COUNTS = 2 };

/* Where a line is: what its two subpositions say. */
struct position {
    uint64_t address, line;
};

struct reading {
    const char *name; /* of the file */
    size_t len_bytes;
    char *at; /* in the line that is being read */
    size_t line;
    struct callgrind what;
    struct names names[NAMES_KINDS];
    struct slots function_slots, place_slots;
    uint32_t usual_place; /* without parts: of the own costs of the function that had some last */
    struct part_costs costs;
    uint32_t object, file, file_of_function; /* texts */
    uint32_t function;                       /* FRAME_NONE: none yet */
    uint32_t callee_object, callee_file, callee_name;
    bool has_callee_object, has_callee_file, has_callee;
    double n_called;        /* of a calls= line whose cost comes next; -1: none */
    struct position target; /* of that line, or of a jump */
    uint32_t jump;          /* enum callgrind_place_kind of a jump= line whose place comes next, else PLACE_OWN */
    double n_jumps, n_followed;
    uint32_t jump_file, jump_function; /* names; FRAME_NONE: its own */
    struct position last;
    unsigned n_positions, line_position, address_position;
    uint32_t events[EVENTS_MAX]; /* [n_events] columns of this part, indices into event_names */
    size_t n_events;
    bool has_costs; /* of this part */
    long long part, thread, process;
    char *run; /* what the first part says of the run; NULL: there was no part yet */
    struct frame_maker maker;
};

static int bad_line(const struct reading *reading, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: line %zu: %s", reading->name, reading->line, reason);
}

/* --- functions and places --- */

static uint64_t hash_function(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, 3 * sizeof(uint32_t));
}

static bool is_same_function(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(uint32_t)) == 0;
}

static uint64_t hash_place(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, sizeof(struct callgrind_place));
}

static bool is_same_place(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct callgrind_place)) == 0;
}

static const struct slots_kind functions_kind = {sizeof(struct callgrind_function), hash_function, is_same_function};
static const struct slots_kind places_kind = {sizeof(struct callgrind_place), hash_place, is_same_place};

/* Index of a function; FRAME_NONE when out of memory. */
static uint32_t find_function(struct reading *reading, uint32_t name, uint32_t file, uint32_t object)
{
    struct callgrind *what = &reading->what;
    struct callgrind_function like = {name, file, object, 0};
    if (what->n_functions >= FUNCTIONS_MAX)
        return FRAME_NONE;
    size_t at = slots_put(&reading->function_slots, &functions_kind, &what->functions, &what->n_functions,
                          &what->cap_functions, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

static uint32_t line_of(uint64_t line)
{
    return line < UINT32_MAX ? (uint32_t)line : 0;
}

/* The place of the line that is being read; with parts, at its line and address. FRAME_NONE when out of memory. */
static uint32_t find_place(struct reading *reading, enum callgrind_place_kind kind, uint32_t callee,
                           uint32_t target_file)
{
    struct callgrind *what = &reading->what;
    struct callgrind_place like;
    bool is_usual = kind == PLACE_OWN && !what->with_parts; /* most lines: the one of the line before is fast */
    if (is_usual && reading->usual_place < what->n_places &&
        what->places[reading->usual_place].function == reading->function)
        return reading->usual_place;
    memset(&like, 0, sizeof like); /* it is compared as bytes */
    like.function = reading->function;
    like.callee = callee;
    like.kind = kind;
    if (what->with_parts) {
        like.file = reading->file;
        like.line = line_of(reading->last.line);
        like.has_address = reading->address_position < reading->n_positions;
        like.address = reading->last.address;
        if (kind != PLACE_OWN) {
            like.target_file = target_file;
            like.target_line = line_of(reading->target.line);
            like.target_address = reading->target.address;
        }
    }
    if (what->n_places >= FUNCTIONS_MAX)
        return FRAME_NONE;
    size_t at =
        slots_put(&reading->place_slots, &places_kind, &what->places, &what->n_places, &what->cap_places, &like);
    if (is_usual && at != SLOTS_NONE)
        reading->usual_place = (uint32_t)at;
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* The costs of a place in the part that is being read; NULL when out of memory. */
static double *costs_of(struct reading *reading, uint32_t place)
{
    struct part_costs *costs = &reading->costs;
    size_t width = reading->n_events + N_COUNTS;
    if (place == FRAME_NONE ||
        !vec_reserve(&costs->rows, &costs->cap_rows, (place + (size_t)1) * width, sizeof *costs->rows) ||
        !vec_reserve(&costs->is_used, &costs->cap_is_used, (size_t)place + 1, sizeof *costs->is_used) ||
        !vec_reserve(&costs->used, &costs->cap_used, costs->n_used + 1, sizeof *costs->used))
        return NULL;
    if (!costs->is_used[place])
        costs->used[costs->n_used++] = place;
    costs->is_used[place] = true;
    return costs->rows + place * width;
}

/* --- parts --- */

/* Keeps the costs of a part that has been read, and clears them: the rows that it used, for there may be many parts. */
static bool keep_costs(struct reading *reading, uint32_t profile)
{
    struct part_costs *costs = &reading->costs;
    struct callgrind *what = &reading->what;
    size_t n = reading->n_events;
    for (size_t i = 0; i < costs->n_used; i++) {
        uint32_t place = costs->used[i];
        double *row = costs->rows + place * (n + N_COUNTS);
        for (size_t k = 0; k < n + N_COUNTS; k++) {
            if (row[k] == 0)
                continue;
            if (!vec_reserve(&what->costs, &what->cap_costs, what->n_costs + 1, sizeof *what->costs))
                return false;
            uint32_t event = k < n ? reading->events[k] : k == n ? CALLGRIND_COUNT : CALLGRIND_FOLLOWED;
            what->costs[what->n_costs++] = (struct callgrind_cost){place, profile, event, row[k]};
            row[k] = 0;
        }
        costs->is_used[place] = false;
    }
    costs->n_used = 0;
    return true;
}

static bool end_part(struct reading *reading)
{
    struct frame_profile profile = {NULL, -1, reading->thread, reading->process, -1};
    struct buf name = {0};
    buf_printf(&name, "%s", reading->part < 0 && reading->thread < 0 ? "" : "part");
    if (reading->part >= 0)
        buf_printf(&name, " %lld", reading->part);
    if (reading->thread >= 0)
        buf_printf(&name, "%s thread %lld", reading->part < 0 ? " ?" : "", reading->thread);
    profile.name = name.failed ? "" : name.data;
    uint32_t number = maker_profile(&reading->maker, &profile);
    bool ok = !name.failed && !reading->maker.failed && keep_costs(reading, number);
    buf_fini(&name);
    return ok;
}

static void clear_names(struct reading *reading)
{
    for (size_t i = 0; i < NAMES_KINDS; i++) {
        strtab_fini(&reading->names[i].numbers);
        free(reading->names[i].texts);
        reading->names[i] = (struct names){0};
    }
}

static void clear_part(struct reading *reading)
{
    clear_names(reading);
    reading->has_costs = false;
    reading->part = reading->thread = -1;
    reading->object = reading->file = reading->file_of_function = 0;
    reading->function = FRAME_NONE;
    reading->last = (struct position){0, 0};
    reading->n_called = -1;
    reading->jump = PLACE_OWN;
    reading->jump_file = reading->jump_function = FRAME_NONE;
}

/* A line of a header after costs begins a new part; so it does after jumps, whose counts have a row of costs, too. */
static bool begin_part(struct reading *reading)
{
    if (!reading->has_costs && !reading->costs.n_used)
        return true;
    bool ok = end_part(reading);
    clear_part(reading);
    return ok;
}

/* --- lines of headers --- */

/* The next word of the line, which is ended in place; NULL at its end. Words are short: a loop is faster than strcspn.
 */
static char *next_word(struct reading *reading)
{
    char *at = reading->at;
    while (*at == ' ' || *at == '\t')
        at++;
    char *word = at;
    while (*at && *at != ' ' && *at != '\t')
        at++;
    reading->at = *at ? at + 1 : at;
    *at = 0;
    return *word ? word : NULL;
}

/* The number that a word of up to 15 digits is; any other word is left to plain_number: false. */
static bool take_digits(const char *word, double *value)
{
    uint64_t number = 0;
    const char *at = word;
    for (; *at >= '0' && *at <= '9' && at - word < 15; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    *value = (double)number;
    return at > word && !*at;
}

static int take_events(struct reading *reading, struct error *err)
{
    char *word;
    reading->n_events = 0;
    while ((word = next_word(reading))) {
        int64_t event = strtab_intern(&reading->what.event_names, word);
        if (event < 0)
            return error_memory(err);
        if (reading->n_events == EVENTS_MAX)
            return bad_line(reading, "there are too many events", err);
        reading->events[reading->n_events++] = (uint32_t)event;
    }
    return reading->n_events ? 0 : bad_line(reading, "there is no event", err);
}

static void take_positions(struct reading *reading)
{
    char *word;
    reading->n_positions = 0;
    reading->line_position = reading->address_position = UINT32_MAX;
    while ((word = next_word(reading)) && reading->n_positions < 8) {
        if (strcmp(word, "line") == 0)
            reading->line_position = reading->n_positions;
        else if (strcmp(word, "instr") == 0)
            reading->address_position = reading->n_positions;
        reading->n_positions++;
    }
}

/* KEY: VALUE */
static int take_header(struct reading *reading, const char *key, struct error *err)
{
    static const char *const of_parts[] = {"part", "thread", "pid", "positions", "events"};
    bool is_of_part = false;
    for (size_t i = 0; i < sizeof of_parts / sizeof *of_parts; i++)
        is_of_part |= strcmp(key, of_parts[i]) == 0;
    if (is_of_part && !begin_part(reading))
        return error_memory(err);
    if (strcmp(key, "events") == 0)
        return take_events(reading, err);
    if (strcmp(key, "positions") == 0)
        take_positions(reading);
    else if (strcmp(key, "part") == 0)
        reading->part = strtoll(reading->at, NULL, 10);
    else if (strcmp(key, "thread") == 0)
        reading->thread = strtoll(reading->at, NULL, 10);
    else if (strcmp(key, "pid") == 0)
        reading->process = strtoll(reading->at, NULL, 10);
    return 0;
}

/* --- names --- */

/* "(7) name" defines, "(7)" repeats, anything else is itself. */
static int take_name(struct reading *reading, unsigned kind, uint32_t *id, struct error *err)
{
    struct names *names = &reading->names[kind];
    char *text = reading->at, *close = *text == '(' && isdigit((unsigned char)text[1]) ? strchr(text, ')') : NULL;
    int64_t number = -1, known = -1;
    if (close) {
        *close = 0;
        size_t n = names->numbers.n_strings;
        number = strtab_intern(&names->numbers, text + 1);
        if (number < 0 || !vec_reserve(&names->texts, &names->capacity, (size_t)number + 1, sizeof *names->texts))
            return error_memory(err);
        known = names->numbers.n_strings > n ? -1 : (int64_t)names->texts[number];
        text = close + 1 + strspn(close + 1, " \t");
        if (!*text && known < 0)
            return bad_line(reading, "a compressed name has not been defined", err);
    }
    if (close && !*text) {
        *id = (uint32_t)known;
        return 0;
    }
    int64_t found = strtab_intern(&reading->what.texts, text);
    if (found < 0)
        return error_memory(err);
    if (known >= 0 && known != found)
        return bad_line(reading, "a compressed name is defined again as another one", err);
    if (close)
        names->texts[number] = (uint32_t)found;
    *id = (uint32_t)found;
    return 0;
}

static int take_callee_name(struct reading *reading, unsigned kind, uint32_t *id, bool *has, struct error *err)
{
    *has = true;
    return take_name(reading, kind, id, err);
}

/* --- positions --- */

/* A subposition: absolute, relative to the one before, or the same; of a range, its begin. */
static int take_number(struct reading *reading, uint64_t before, uint64_t *number, struct error *err)
{
    char *word = next_word(reading), *end = word;
    if (!word || !strchr("+-*0123456789", *word))
        return bad_line(reading, "a position is missing", err);
    *number = *word == '*' ? 0 : strtoull(word + (*word == '+' || *word == '-'), &end, 0);
    if (*word == '+')
        *number = before + *number;
    else if (*word == '-')
        *number = before - *number;
    else if (*word == '*')
        *number = before;
    return 0;
}

/* All subpositions of a line, which count from those of the last line with a cost or jump. */
static int take_position(struct reading *reading, struct position *position, struct error *err)
{
    struct position last = reading->last;
    int code = 0;
    for (unsigned i = 0; code == 0 && i < reading->n_positions; i++) {
        bool is_line = i == reading->line_position;
        uint64_t number = 0;
        code = take_number(reading, is_line ? last.line : last.address, &number, err);
        if (code == 0 && is_line)
            position->line = number;
        else if (code == 0 && i == reading->address_position)
            position->address = number;
    }
    return code;
}

/* Where a call or jump leads: some writers leave out what they do not know. */
static void take_target(struct reading *reading)
{
    struct error ignored;
    reading->target = (struct position){0, 0};
    if (reading->what.with_parts && take_position(reading, &reading->target, &ignored) != 0)
        reading->target = (struct position){0, 0};
}

static int take_calls(struct reading *reading, struct error *err)
{
    char *end;
    reading->n_called = plain_number(reading->at, &end);
    if (end == reading->at || !(reading->n_called >= 0) || isinf(reading->n_called) || !reading->has_callee)
        return bad_line(reading, "a call has no number, or nothing that is called", err);
    reading->at = end;
    take_target(reading);
    return 0;
}

/* "jump=COUNT TARGET", "jcnd=FOLLOWED/COUNT TARGET"; the manual writes a blank for the slash. */
static int take_jump(struct reading *reading, enum callgrind_place_kind kind, struct error *err)
{
    char *end;
    reading->jump = kind;
    reading->n_followed = plain_number(reading->at, &end);
    reading->n_jumps = reading->n_followed;
    bool ok = end != reading->at && reading->n_followed >= 0;
    if (ok && kind == PLACE_BRANCH) {
        char *second = end + (*end == '/' || *end == ' ');
        reading->n_jumps = plain_number(second, &end);
        ok = end != second && reading->n_jumps >= 0;
    }
    if (!ok || isinf(reading->n_jumps) || isinf(reading->n_followed))
        return bad_line(reading, "a jump has no number", err);
    reading->at = end;
    take_target(reading);
    return 0;
}

/* KEY=VALUE */
static int take_assignment(struct reading *reading, const char *key, struct error *err)
{
    int code = 0;
    if (strcmp(key, "ob") == 0)
        return take_name(reading, NAMES_OBJECT, &reading->object, err);
    if (strcmp(key, "fl") == 0) {
        code = take_name(reading, NAMES_FILE, &reading->file, err);
        reading->file_of_function = reading->file;
        return code;
    }
    if (strcmp(key, "fi") == 0 || strcmp(key, "fe") == 0)
        return take_name(reading, NAMES_FILE, &reading->file, err);
    if (strcmp(key, "fn") == 0) {
        uint32_t name;
        code = take_name(reading, NAMES_FUNCTION, &name, err);
        reading->file = reading->file_of_function;
        if (code == 0)
            reading->function = find_function(reading, name, reading->file, reading->object);
        return code == 0 && reading->function == FRAME_NONE ? error_memory(err) : code;
    }
    if (strcmp(key, "cob") == 0)
        return take_callee_name(reading, NAMES_OBJECT, &reading->callee_object, &reading->has_callee_object, err);
    if (strcmp(key, "cfi") == 0 || strcmp(key, "cfl") == 0)
        return take_callee_name(reading, NAMES_FILE, &reading->callee_file, &reading->has_callee_file, err);
    if (strcmp(key, "cfn") == 0)
        return take_callee_name(reading, NAMES_FUNCTION, &reading->callee_name, &reading->has_callee, err);
    if (strcmp(key, "calls") == 0)
        return take_calls(reading, err);
    if (strcmp(key, "jfi") == 0)
        return take_name(reading, NAMES_FILE, &reading->jump_file, err);
    if (strcmp(key, "jfn") == 0)
        return take_name(reading, NAMES_FUNCTION, &reading->jump_function, err);
    if (strcmp(key, "jump") == 0 || strcmp(key, "jcnd") == 0)
        return take_jump(reading, key[1] == 'u' ? PLACE_JUMP : PLACE_BRANCH, err);
    return bad_line(reading, "this is neither a cost nor a known assignment", err);
}

/* --- lines of costs --- */

/* Adds the costs at the reader's position to sums [n_events]; trailing zeros may be left out. */
static int add_costs(struct reading *reading, double *sums, struct error *err)
{
    char *word;
    for (size_t i = 0; (word = next_word(reading)); i++) {
        char *end = word;
        double value;
        bool is_whole = take_digits(word, &value);
        if (!is_whole)
            value = plain_number(word, &end);
        if (i == reading->n_events || (!is_whole && (*end || end == word)) || !isfinite(value))
            return bad_line(reading, "a cost is no number, or belongs to no event", err);
        sums[i] += value;
    }
    return 0;
}

/* Where a jump starts: a position without costs, which those that follow count from. */
static int take_jump_place(struct reading *reading, struct error *err)
{
    enum callgrind_place_kind kind = reading->jump;
    uint32_t target = reading->jump_function;
    uint32_t file = reading->jump_file == FRAME_NONE ? reading->file : reading->jump_file;
    reading->jump = PLACE_OWN;
    reading->jump_file = reading->jump_function = FRAME_NONE;
    if (!reading->what.with_parts)
        return 0;
    double *costs = costs_of(reading, find_place(reading, kind, target, file));
    if (!costs)
        return error_memory(err);
    costs[reading->n_events] += reading->n_jumps;
    if (kind == PLACE_BRANCH)
        costs[reading->n_events + 1] += reading->n_followed;
    return 0;
}

static int take_call_costs(struct reading *reading, struct error *err)
{
    uint32_t file = reading->has_callee_file ? reading->callee_file : reading->file;
    uint32_t callee = find_function(reading, reading->callee_name, file,
                                    reading->has_callee_object ? reading->callee_object : reading->object);
    uint32_t place = callee == FRAME_NONE ? FRAME_NONE : find_place(reading, PLACE_CALL, callee, file);
    double *costs = costs_of(reading, place);
    if (!costs)
        return error_memory(err);
    costs[reading->n_events] += reading->n_called;
    reading->n_called = -1;
    reading->has_callee_file = reading->has_callee_object = false;
    return add_costs(reading, costs, err);
}

static int take_costs(struct reading *reading, struct error *err)
{
    const struct callgrind *what = &reading->what;
    int code = reading->n_events ? 0 : bad_line(reading, "there are costs before the line \"events:\"", err);
    if (code == 0)
        code = readers_check_size(reading->name, what->n_functions + what->n_places, reading->n_events,
                                  reading->len_bytes, err);
    if (code == 0)
        code = take_position(reading, &reading->last, err);
    if (code == 0 && reading->function == FRAME_NONE)
        reading->function = find_function(reading, 0, reading->file, reading->object);
    if (code != 0 || reading->function == FRAME_NONE)
        return code != 0 ? code : error_memory(err);
    if (reading->jump != PLACE_OWN)
        return take_jump_place(reading, err);
    struct callgrind_function *function = &what->functions[reading->function];
    if (!function->line && reading->file == function->file)
        function->line = line_of(reading->last.line);
    reading->has_costs = true;
    if (reading->n_called >= 0)
        return take_call_costs(reading, err);
    const char *word = reading->at + strspn(reading->at, " \t"); /* writers put "0" to say where a function is */
    if (what->with_parts && (!*word || strcmp(word, "0") == 0))
        return 0;
    double *own = costs_of(reading, find_place(reading, PLACE_OWN, FRAME_NONE, 0));
    return own ? add_costs(reading, own, err) : error_memory(err);
}

/* One line, without its end. */
static int take_line(struct reading *reading, char *line, struct error *err)
{
    size_t n = 0;
    while ((line[n] >= 'a' && line[n] <= 'z') || (line[n] >= 'A' && line[n] <= 'Z') || line[n] == '_')
        n++;
    reading->at = line;
    if (!*line || *line == '#')
        return 0;
    if (n == 0)
        return take_costs(reading, err);
    char end = line[n];
    if (end != '=' && end != ':')
        return bad_line(reading, "this is neither a cost nor a known assignment", err);
    line[n] = 0;
    reading->at = line + n + 1;
    reading->at += strspn(reading->at, " \t");
    return end == '=' ? take_assignment(reading, line, err) : take_header(reading, line, err);
}

static int read_lines(struct reading *reading, struct buf *text, struct error *err)
{
    int code = 0;
    for (char *line = text->data, *end = line ? line + text->len_bytes : line; code == 0 && line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
        reading->line++;
        line[len] = 0;
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = 0;
        code = take_line(reading, line, err);
        line += len + 1;
    }
    if (code == 0 && !reading->n_events)
        code = bad_line(reading, "there is no line \"events:\"", err);
    return code == 0 && !end_part(reading) ? error_memory(err) : code;
}

/* --- files --- */

static void fini(struct reading *reading)
{
    clear_names(reading);
    strtab_fini(&reading->what.texts);
    strtab_fini(&reading->what.event_names);
    slots_fini(&reading->function_slots);
    slots_fini(&reading->place_slots);
    free(reading->what.functions);
    free(reading->what.places);
    free(reading->what.costs);
    free(reading->costs.rows);
    free(reading->costs.used);
    free(reading->costs.is_used);
    free(reading->run);
    free(reading);
}

/* Whether the file is one more part of the run whose first part has been read. Without a process nobody knows. */
static bool is_of_run(struct reading *reading, const char *text)
{
    struct buf run = {0};
    callgrind_put_run(text, &run);
    bool is_first = !reading->run, is_same = run.data && !is_first && strcmp(run.data, reading->run) == 0;
    bool has_process = run.data && (strncmp(run.data, "pid:", 4) == 0 || strstr(run.data, "\npid:"));
    if (is_first) {
        reading->run = run.failed ? NULL : strdup(run.data ? run.data : "");
        reading->maker.failed |= !reading->run;
        is_same = true;
    } else {
        is_same = is_same && has_process;
    }
    buf_fini(&run);
    return is_same;
}

/* Reads a file if it is a part of the run. */
static int read_file(struct reading *reading, const char *path, struct error *err)
{
    const struct frame_input input = {.path = path};
    struct buf text = {0};
    int code = readers_text(&input, &text, err);
    if (code != 0 || !is_of_run(reading, text.data)) {
        buf_fini(&text);
        return code;
    }
    clear_part(reading);
    reading->name = path;
    reading->len_bytes += text.len_bytes;
    reading->line = reading->n_events = 0;
    reading->n_positions = 1;
    reading->line_position = 0;
    reading->address_position = UINT32_MAX;
    reading->process = -1;
    if (code == 0)
        code = read_lines(reading, &text, err);
    buf_fini(&text);
    return code;
}

/* The file, if there is one with something in it, and its other parts. */
static int read_files(struct reading *reading, const char *path, struct error *err)
{
    struct strtab parts = {0};
    struct stat info;
    bool is_there = stat(path, &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size > 0);
    int code = callgrind_parts(path, &parts) ? 0 : error_memory(err);
    if (code == 0 && (is_there || parts.n_strings == 0))
        code = read_file(reading, path, err);
    for (size_t i = 0; code == 0 && i < parts.n_strings; i++)
        code = read_file(reading, parts.strings[i], err);
    strtab_fini(&parts);
    return code;
}

static int read_callgrind(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return error_memory(err);
    reading->what.with_parts = input->with_parts;
    maker_init(&reading->maker);
    int code = strtab_intern(&reading->what.texts, "") < 0 ? error_memory(err) : 0;
    if (code == 0)
        code = read_files(reading, input->path, err);
    if (code == 0)
        code = callgrind_make(&reading->what, input->path, reading->len_bytes, &reading->maker, err);
    if (code == 0)
        code = frame_made(&reading->maker, frame, NULL, err);
    else
        maker_fini(&reading->maker);
    fini(reading);
    return code;
}

static bool fits_callgrind(const struct frame_input *input)
{
    return callgrind_is(input->head.data);
}

const struct frame_reader reader_callgrind = {"a file of callgrind", fits_callgrind, read_callgrind};
