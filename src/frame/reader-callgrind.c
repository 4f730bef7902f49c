/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of callgrind, and of whoever writes its format: a node for each function (name, file and object), which calls
 * others, so that nodes have several parents and there are cycles. Each part is a profile. For each event there is the
 * function's own cost, with that of code inlined into it from other files, and the inclusive one: its own and that of
 * its calls, without calls among functions that call each other in a cycle. Lines, addresses and jumps are passed over.
 * Format: the callgrind manual, and what KCachegrind 22.12 reads. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_callgrind;

enum { EVENTS_MAX = 400, FUNCTIONS_MAX = INT32_MAX };

/* What compressed names stand for in a part: objects, files, functions. */
enum { NAMES_OBJECT = 0, NAMES_FILE, NAMES_FUNCTION, NAMES_KINDS };

struct names {
    struct strtab numbers;
    uint32_t *texts; /* [numbers.n_strings] ids */
    size_t capacity;
};

struct function {
    uint32_t name, file, object, line;
};

struct call {
    uint32_t caller, callee;
};

/* A cost that a function or call has in a part; event: an index into event_names, FRAME_NONE for the number of calls.
 */
struct cost {
    uint32_t item, profile, event;
    double value;
};

struct costs {
    struct cost *items; /* [n] of the parts before */
    size_t n, capacity;
    double *part; /* [n_items][n_events + 1] of the part that is being read; the last is the number of calls */
    size_t cap_part;
    uint32_t *used; /* [n_used] items that have a row there, which is not all zero */
    size_t n_used, cap_used;
    bool *is_used; /* [cap_is_used] of each item */
    size_t cap_is_used;
};

struct reading {
    const char *name; /* of the file */
    size_t len_bytes;
    char *at; /* in the line that is being read */
    size_t line;
    struct strtab texts;
    struct names names[NAMES_KINDS];
    struct function *functions; /* [n_functions] */
    struct call *calls;         /* [n_calls] */
    size_t n_functions, cap_functions, n_calls, cap_calls;
    struct slots function_slots, call_slots;
    struct costs own, called;
    uint32_t object, file, file_of_function; /* texts */
    uint32_t function;                       /* FRAME_NONE: none yet */
    uint32_t callee_object, callee_file, callee_name;
    bool has_callee_object, has_callee_file, has_callee;
    double n_called; /* of a calls= line whose cost comes next; -1: none */
    uint64_t last_line;
    unsigned n_positions, line_position;
    uint32_t events[EVENTS_MAX]; /* [n_events] columns of this part, indices into event_names */
    size_t n_events;
    struct strtab event_names;
    bool has_costs; /* of this part */
    long long part, thread, process;
    struct frame_maker maker;
};

static int bad_line(const struct reading *reading, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: line %zu: %s", reading->name, reading->line, reason);
}

/* --- functions and calls --- */

static uint64_t hash_function(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, 3 * sizeof(uint32_t));
}

static bool is_same_function(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(uint32_t)) == 0;
}

static uint64_t hash_call(const void *item)
{
    return bytes_hash(BYTES_HASH_START, item, sizeof(struct call));
}

static bool is_same_call(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct call)) == 0;
}

static const struct slots_kind functions_kind = {sizeof(struct function), hash_function, is_same_function};
static const struct slots_kind calls_kind = {sizeof(struct call), hash_call, is_same_call};

/* Index of a function; FRAME_NONE when out of memory. */
static uint32_t find_function(struct reading *reading, uint32_t name, uint32_t file, uint32_t object)
{
    struct function like = {name, file, object, 0};
    if (reading->n_functions >= FUNCTIONS_MAX)
        return FRAME_NONE;
    size_t at = slots_put(&reading->function_slots, &functions_kind, &reading->functions, &reading->n_functions,
                          &reading->cap_functions, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

static uint32_t find_call(struct reading *reading, uint32_t caller, uint32_t callee)
{
    struct call like = {caller, callee};
    if (reading->n_calls >= FUNCTIONS_MAX)
        return FRAME_NONE;
    size_t at =
        slots_put(&reading->call_slots, &calls_kind, &reading->calls, &reading->n_calls, &reading->cap_calls, &like);
    return at == SLOTS_NONE ? FRAME_NONE : (uint32_t)at;
}

/* The costs of an item in the part that is being read; NULL when out of memory. */
static double *costs_of(const struct reading *reading, struct costs *costs, uint32_t item)
{
    size_t width = reading->n_events + 1;
    if (item == FRAME_NONE || !vec_reserve(&costs->part, &costs->cap_part, (item + 1) * width, sizeof *costs->part) ||
        !vec_reserve(&costs->is_used, &costs->cap_is_used, (size_t)item + 1, sizeof *costs->is_used) ||
        !vec_reserve(&costs->used, &costs->cap_used, costs->n_used + 1, sizeof *costs->used))
        return NULL;
    if (!costs->is_used[item])
        costs->used[costs->n_used++] = item;
    costs->is_used[item] = true;
    return costs->part + item * width;
}

/* --- parts --- */

/* Keeps the costs of a part that has been read, and clears them: the rows that it used, for there may be many parts. */
static bool keep_costs(const struct reading *reading, struct costs *costs, uint32_t profile)
{
    size_t width = reading->n_events + 1;
    for (size_t i = 0; i < costs->n_used; i++) {
        uint32_t item = costs->used[i];
        double *row = costs->part + item * width;
        for (size_t k = 0; k < width; k++) {
            if (row[k] == 0)
                continue;
            if (!vec_reserve(&costs->items, &costs->capacity, costs->n + 1, sizeof *costs->items))
                return false;
            costs->items[costs->n++] =
                (struct cost){item, profile, k < reading->n_events ? reading->events[k] : FRAME_NONE, row[k]};
            row[k] = 0;
        }
        costs->is_used[item] = false;
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
    bool ok = !name.failed && !reading->maker.failed && keep_costs(reading, &reading->own, number) &&
              keep_costs(reading, &reading->called, number);
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

/* A line of a header after costs begins a new part. */
static bool begin_part(struct reading *reading)
{
    if (!reading->has_costs)
        return true;
    bool ok = end_part(reading);
    clear_names(reading);
    reading->has_costs = false;
    reading->part = reading->thread = -1;
    reading->object = reading->file = reading->file_of_function = 0;
    reading->function = FRAME_NONE;
    reading->last_line = 0;
    reading->n_called = -1;
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
        int64_t event = strtab_intern(&reading->event_names, word);
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
    reading->line_position = UINT32_MAX;
    while ((word = next_word(reading)) && reading->n_positions < 8) {
        if (strcmp(word, "line") == 0)
            reading->line_position = reading->n_positions;
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
    int64_t found = strtab_intern(&reading->texts, text);
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

static int take_calls(struct reading *reading, struct error *err)
{
    char *end;
    reading->n_called = plain_number(reading->at, &end);
    if (end == reading->at || !(reading->n_called >= 0) || isinf(reading->n_called) || !reading->has_callee)
        return bad_line(reading, "a call has no number, or nothing that is called", err);
    return 0;
}

/* KEY=VALUE */
static int take_assignment(struct reading *reading, const char *key, struct error *err)
{
    uint32_t ignored;
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
        return take_name(reading, NAMES_FILE, &ignored, err);
    if (strcmp(key, "jfn") == 0)
        return take_name(reading, NAMES_FUNCTION, &ignored, err);
    return strcmp(key, "jump") == 0 || strcmp(key, "jcnd") == 0
               ? 0
               : bad_line(reading, "this is neither a cost nor a known assignment", err);
}

/* --- lines of costs --- */

/* A position: absolute, relative to the one before, or the same; of a range, its begin. */
static int take_position(struct reading *reading, unsigned i, struct error *err)
{
    char *word = next_word(reading), *end = word;
    if (!word || !strchr("+-*0123456789", *word))
        return bad_line(reading, "a position is missing", err);
    uint64_t number = *word == '*' ? 0 : strtoull(word + (*word == '+' || *word == '-'), &end, 0);
    if (i != reading->line_position)
        return 0;
    if (*word == '+')
        number = reading->last_line + number;
    else if (*word == '-')
        number = reading->last_line - number;
    else if (*word == '*')
        number = reading->last_line;
    reading->last_line = number;
    return 0;
}

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

static int take_costs(struct reading *reading, struct error *err)
{
    int code = reading->n_events ? 0 : bad_line(reading, "there are costs before the line \"events:\"", err);
    if (code == 0)
        code = readers_check_size(reading->name, reading->n_functions + reading->n_calls, reading->n_events,
                                  reading->len_bytes, err);
    for (unsigned i = 0; code == 0 && i < reading->n_positions; i++)
        code = take_position(reading, i, err);
    if (code == 0 && reading->function == FRAME_NONE)
        reading->function = find_function(reading, 0, reading->file, reading->object);
    if (code != 0 || reading->function == FRAME_NONE)
        return code != 0 ? code : error_memory(err);
    struct function *function = &reading->functions[reading->function];
    if (!function->line && reading->file == function->file && reading->last_line < UINT32_MAX)
        function->line = (uint32_t)reading->last_line;
    reading->has_costs = true;
    double *own = costs_of(reading, &reading->own, reading->function);
    if (reading->n_called < 0)
        return own ? add_costs(reading, own, err) : error_memory(err);
    uint32_t callee =
        find_function(reading, reading->callee_name, reading->has_callee_file ? reading->callee_file : reading->file,
                      reading->has_callee_object ? reading->callee_object : reading->object);
    uint32_t call = callee == FRAME_NONE ? FRAME_NONE : find_call(reading, reading->function, callee);
    double *called = costs_of(reading, &reading->called, call), *of_callee = costs_of(reading, &reading->own, callee);
    if (!called || !of_callee)
        return error_memory(err);
    called[reading->n_events] += reading->n_called;
    of_callee[reading->n_events] += reading->n_called;
    reading->n_called = -1;
    reading->has_callee_file = reading->has_callee_object = false;
    return add_costs(reading, called, err);
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
    bool is_jump = false;
    for (char *line = text->data, *end = line ? line + text->len_bytes : line; code == 0 && line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
        reading->line++;
        line[len] = 0;
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = 0;
        bool is_place = is_jump && *line && strchr("+-*0123456789", *line);
        is_jump = *line == 'j' && (strncmp(line, "jump=", 5) == 0 || strncmp(line, "jcnd=", 5) == 0)
                      ? true
                      : is_jump && !is_place;
        if (is_place) { /* where a jump starts: a position without costs, which those that follow count from */
            reading->at = line;
            for (unsigned i = 0; code == 0 && i < reading->n_positions; i++)
                code = take_position(reading, i, err);
        } else {
            code = take_line(reading, line, err);
        }
        line += len + 1;
    }
    if (code == 0 && !reading->n_events)
        code = bad_line(reading, "there is no line \"events:\"", err);
    return code == 0 && !end_part(reading) ? error_memory(err) : code;
}

/* --- the frame --- */

/* Tarjan's search for functions that call each other, with a stack of its own. */
struct search {
    uint32_t *starts, *callees;  /* [n + 1], [n_calls]: the calls by caller */
    uint32_t *index, *low, *set; /* [n] number of the visit + 1; the least that can be reached; the cycle */
    uint32_t *stack, *path;      /* [n] functions whose cycle is open; functions whose calls are being followed */
    size_t n_stack, n_path;
    uint32_t n_visited;
};

static void visit(struct search *search, uint32_t function)
{
    search->index[function] = search->low[function] = ++search->n_visited;
    search->stack[search->n_stack++] = function;
    search->path[search->n_path++] = function;
}

/* Everything that can be reached from a function. next [n]: the call of each function that comes next. */
static void search_from(struct search *search, uint32_t first, uint32_t *next)
{
    visit(search, first);
    while (search->n_path > 0) {
        uint32_t function = search->path[search->n_path - 1];
        if (next[function] < search->starts[function + 1]) {
            uint32_t callee = search->callees[next[function]++];
            if (!search->index[callee])
                visit(search, callee);
            else if (search->set[callee] == FRAME_NONE && search->index[callee] < search->low[function])
                search->low[function] = search->index[callee];
            continue;
        }
        search->n_path--;
        uint32_t caller = search->n_path > 0 ? search->path[search->n_path - 1] : function;
        if (search->low[function] < search->low[caller])
            search->low[caller] = search->low[function];
        if (search->low[function] != search->index[function])
            continue;
        uint32_t member;
        do {
            member = search->stack[--search->n_stack];
            search->set[member] = function;
        } while (member != function);
    }
}

/* For each function the cycle that it is in: the number of one of its functions. NULL when out of memory. */
static uint32_t *find_cycles(const struct reading *reading)
{
    size_t n = reading->n_functions;
    struct node_groups *calls = NULL;
    uint32_t *caller_of = calloc(reading->n_calls + 1, sizeof *caller_of), *memory = calloc(6 * n + 1, sizeof *memory);
    for (size_t i = 0; caller_of && i < reading->n_calls; i++)
        caller_of[i] = reading->calls[i].caller;
    if (caller_of && memory)
        calls = groups_of(caller_of, (uint32_t)reading->n_calls, (uint32_t)n);
    free(caller_of);
    if (!calls) {
        free(memory);
        return NULL;
    }
    for (size_t i = 0; i < reading->n_calls; i++) /* from calls to those that are called */
        calls->members[i] = reading->calls[calls->members[i]].callee;
    struct search search = {
        calls->starts, calls->members, memory + n, memory + 2 * n, memory, memory + 3 * n, memory + 4 * n, 0, 0, 0};
    memset(search.set, 0xff, n * sizeof *search.set);
    memcpy(memory + 5 * n, calls->starts, n * sizeof *memory);
    for (uint32_t i = 0; i < n; i++)
        if (!search.index[i])
            search_from(&search, i, memory + 5 * n);
    groups_drop(calls);
    return memory; /* begins with the sets */
}

static const char *text_at(const struct reading *reading, uint32_t id)
{
    const char *text = reading->texts.strings[id];
    return strcmp(text, "???") == 0 ? "" : text;
}

static void add_nodes(struct reading *reading)
{
    struct frame_maker *maker = &reading->maker;
    for (uint32_t i = 0; i < reading->n_functions; i++) {
        const struct function *from = &reading->functions[i];
        const char *name = reading->texts.strings[from->name];
        (void)maker_node(maker, FRAME_NONE,
                         &(struct made_node){.kind = FRAME_FUNCTION,
                                             .name = *name ? name : "???",
                                             .file = text_at(reading, from->file),
                                             .module = text_at(reading, from->object),
                                             .line = from->line});
    }
    for (size_t i = 0; i < reading->n_calls; i++)
        maker_edge(maker, reading->calls[i].caller, reading->calls[i].callee);
}

static int add_values(struct reading *reading, struct error *err)
{
    struct frame_maker *maker = &reading->maker;
    size_t n_events = reading->event_names.n_strings;
    int code = readers_check_size(reading->name, reading->n_functions, 2 * n_events + 1, reading->len_bytes, err);
    uint32_t *cycles = code == 0 ? find_cycles(reading) : NULL;
    struct buf name = {0};
    if (!cycles)
        return code != 0 ? code : error_memory(err);
    for (size_t i = 0; i < n_events; i++) {
        name.len_bytes = 0;
        buf_printf(&name, "%s (inc)", reading->event_names.strings[i]);
        (void)maker_column(maker, reading->event_names.strings[i], FRAME_EXCLUSIVE);
        (void)maker_column(maker, name.failed ? "" : name.data, FRAME_INCLUSIVE);
    }
    size_t calls = maker_column(maker, "calls", FRAME_EXCLUSIVE);
    for (size_t i = 0; !maker->failed && i < reading->own.n; i++) {
        const struct cost *cost = &reading->own.items[i];
        bool is_event = cost->event != FRAME_NONE;
        maker_value(maker, is_event ? 2 * cost->event : calls, cost->item, cost->profile, cost->value);
        if (is_event)
            maker_value(maker, 2 * cost->event + 1, cost->item, cost->profile, cost->value);
    }
    for (size_t i = 0; !maker->failed && i < reading->called.n; i++) {
        const struct cost *cost = &reading->called.items[i];
        const struct call *call = &reading->calls[cost->item];
        if (cost->event != FRAME_NONE && cycles[call->caller] != cycles[call->callee])
            maker_value(maker, 2 * cost->event + 1, call->caller, cost->profile, cost->value);
    }
    free(cycles);
    maker->failed |= name.failed;
    buf_fini(&name);
    return 0;
}

static void costs_fini(struct costs *costs)
{
    free(costs->items);
    free(costs->part);
    free(costs->used);
    free(costs->is_used);
}

static void fini(struct reading *reading)
{
    clear_names(reading);
    strtab_fini(&reading->texts);
    strtab_fini(&reading->event_names);
    slots_fini(&reading->function_slots);
    slots_fini(&reading->call_slots);
    free(reading->functions);
    free(reading->calls);
    costs_fini(&reading->own);
    costs_fini(&reading->called);
    free(reading);
}

static int read_callgrind(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct reading *reading = calloc(1, sizeof *reading);
    struct buf text = {0};
    if (!reading)
        return error_memory(err);
    *reading = (struct reading){.name = input->path,
                                .function = FRAME_NONE,
                                .n_called = -1,
                                .n_positions = 1,
                                .part = -1,
                                .thread = -1,
                                .process = -1};
    maker_init(&reading->maker);
    int code = strtab_intern(&reading->texts, "") < 0 ? error_memory(err) : readers_text(input, &text, err);
    reading->len_bytes = text.len_bytes;
    if (code == 0)
        code = read_lines(reading, &text, err);
    if (code == 0) {
        add_nodes(reading);
        code = add_values(reading, err);
    }
    if (code == 0)
        code = frame_made(&reading->maker, frame, NULL, err);
    else
        maker_fini(&reading->maker);
    fini(reading);
    buf_fini(&text);
    return code;
}

/* What KCachegrind goes by: the first line, or one that begins so near the file's begin. */
static bool fits_callgrind(const struct frame_input *input)
{
    const char *head = input->is_directory ? "" : input->head.data;
    static const char *const begins[] = {"# callgrind format", "events:", "creator: callgrind"};
    for (const char *line = head; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            if (strncmp(line, begins[i], strlen(begins[i])) == 0)
                return true;
    return false;
}

const struct frame_reader reader_callgrind = {"a file of callgrind", fits_callgrind, read_callgrind};
