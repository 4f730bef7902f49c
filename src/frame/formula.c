/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that computes formulas, node by node or profile by profile. */
#include "frame/formula.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define N_ANSWERS 1024
#define MAX_COPIES 20000
#define MAX_PATTERN_BYTES 2000

#define MAX_AHEADS 8

/* regcomp knows no look-ahead; those that a pattern begins with are patterns of their own. */
struct formula_pattern {
    regex_t regex;
    struct {
        regex_t regex;
        bool is_negative;
    } aheads[MAX_AHEADS]; /* [n_aheads] */
    size_t n_aheads;
};

/* Answers of the patterns of one formula by the address of the text, which lives as long as the formula: texts of nodes
 * are interned, and few names have many nodes. */
struct formula_answer {
    const char *text;
    bool matches;
};

/* --- making --- */

struct formula *formula_new(const struct frame *frame)
{
    struct formula *formula = calloc(1, sizeof *formula);
    struct formula_program *program = calloc(1, sizeof *program);
    if (!formula || !program) {
        free(formula);
        free(program);
        return NULL;
    }
    program->n_owners = 1;
    *formula = (struct formula){.program = program,
                                .graph = graph_keep(frame->graph),
                                .nodes = nodes_keep(frame->nodes),
                                .profiles = profiles_keep(frame->profiles)};
    return formula;
}

/* Frees a pattern; has_regex: its own regex has been compiled, too. */
static void pattern_drop(struct formula_pattern *pattern, bool has_regex)
{
    if (pattern && has_regex)
        regfree(&pattern->regex);
    for (size_t i = 0; pattern && i < pattern->n_aheads; i++)
        regfree(&pattern->aheads[i].regex);
    free(pattern);
}

static void program_drop(struct formula_program *program)
{
    if (--program->n_owners)
        return;
    for (size_t i = 0; i < program->n_texts; i++)
        free(program->texts[i]);
    for (size_t i = 0; i < program->n_patterns; i++)
        pattern_drop(program->patterns[i], true);
    free(program->texts);
    free(program->patterns);
    free(program->steps);
    free(program);
}

void formula_free(struct formula *formula)
{
    if (!formula)
        return;
    for (size_t i = 0; i < formula->n_slots; i++) {
        column_drop(formula->slots[i].column);
        cells_fini(&formula->slots[i].row);
    }
    program_drop(formula->program);
    graph_drop(formula->graph);
    nodes_drop(formula->nodes);
    profiles_drop(formula->profiles);
    free(formula->slots);
    free(formula->loaded);
    free(formula->stack);
    free(formula->answers);
    free(formula);
}

static int n_operands(enum formula_operation operation)
{
    switch (operation) {
    case DO_SLOT:
    case DO_NUMBER:
    case DO_TEXT:
        return 0;
    case DO_NEGATE:
    case DO_ABS:
    case DO_SQRT:
    case DO_LOG:
    case DO_ROUND:
    case DO_NOT:
    case DO_IS_MISSING:
    case DO_IS_INFINITE:
    case DO_TEXT_MATCHES:
        return 1;
    default:
        return 2;
    }
}

bool formula_step(struct formula *formula, enum formula_operation operation, uint32_t argument, double number)
{
    struct formula_program *program = formula->program;
    if (!vec_reserve(&program->steps, &program->cap_steps, program->n_steps + 1, sizeof *program->steps))
        return false;
    program->steps[program->n_steps++] = (struct formula_step){operation, argument, number};
    program->depth += 1 - (size_t)n_operands(operation);
    program->max_depth = program->depth > program->max_depth ? program->depth : program->max_depth;
    return true;
}

uint32_t formula_slot(struct formula *formula, const struct formula_slot *slot)
{
    if (!vec_reserve(&formula->slots, &formula->cap_slots, formula->n_slots + 1, sizeof *formula->slots))
        return UINT32_MAX;
    formula->slots[formula->n_slots] = *slot;
    if (slot->column)
        column_keep(slot->column);
    return (uint32_t)formula->n_slots++;
}

uint32_t formula_text(struct formula *formula, const char *text)
{
    struct formula_program *program = formula->program;
    char *copy = strdup(text);
    if (!copy || !vec_reserve(&program->texts, &program->cap_texts, program->n_texts + 1, sizeof *program->texts)) {
        free(copy);
        return UINT32_MAX;
    }
    program->texts[program->n_texts] = copy;
    return (uint32_t)program->n_texts++;
}

struct frame_column *formula_only_column(const struct formula *formula)
{
    const struct formula_step *step = formula->program->steps;
    const struct formula_slot *slot = formula->slots;
    bool is_only = formula->program->n_steps == 1 && step->operation == DO_SLOT;
    return is_only && slot[step->argument].from == FROM_COLUMN && !slot[step->argument].is_aggregate
               ? slot[step->argument].column
               : NULL;
}

/* --- patterns --- */

/* A pattern on its way to regcomp. regcomp copies what is repeated: the cost is what its copies may come to. */
struct translation {
    const char *at;
    struct buf *to;
    size_t of_groups, of_items; /* product of the copies of groups, sum of those of single characters and sets */
    enum { AFTER_NOTHING, AFTER_ITEM, AFTER_GROUP, AFTER_REPETITION, AFTER_LAZY } last;
};

/* Writes a set for regcomp, which has no escapes in it: what has a meaning is an element by its place, ] as the first
 * one, - as the last, ^ as any but the first, [ where no class follows. rest: the other elements. */
static void write_set(struct buf *to, bool is_inverse, const struct buf *rest, const char *escaped)
{
    const char *bracket = strchr(escaped, ']') ? "]" : "", *open = strchr(escaped, '[') ? "[" : "";
    bool has_dash = strchr(escaped, '-') != NULL, has_caret = strchr(escaped, '^') != NULL;
    bool is_caret_first = has_caret && !is_inverse && !*bracket && !*open && !rest->len_bytes;
    if (is_caret_first) {
        buf_printf(to, "%s", has_dash ? "[-^]" : "\\^");
        return;
    }
    buf_printf(to, "[%s%s", is_inverse ? "^" : "", bracket);
    buf_append(to, rest->data ? rest->data : "", rest->len_bytes);
    buf_printf(to, "%s%s%s]", open, has_caret ? "^" : "", has_dash ? "-" : "");
}

/* The bracket that ends the set which a text begins with, or the end of the text: one that comes first, or stands
 * behind a backslash, is an element. */
static const char *end_of_set(const char *at)
{
    const char *begin = at + 1 + (at[1] == '^');
    for (at = begin; *at && (*at != ']' || at == begin); at++)
        at += *at == '\\' && at[1];
    return at;
}

/* A set, [...]. */
static const char *translate_set(struct translation *translation)
{
    bool is_inverse = translation->at[1] == '^';
    const char *begin = translation->at + 1 + is_inverse, *end = end_of_set(translation->at);
    char escaped[sizeof "][^-"] = ""; /* each once */
    struct buf rest = {0};
    for (translation->at = begin; translation->at < end; translation->at++) {
        char c = *translation->at, next = translation->at[1];
        bool is_escape = c == '\\' && next;
        translation->at += is_escape;
        if (is_escape && next == 'd')
            buf_printf(&rest, "0-9");
        else if (c != ']' && !(is_escape && strchr("][^-", next)))
            buf_append(&rest, translation->at, 1);
        else if (!strchr(escaped, *translation->at))
            escaped[strlen(escaped)] = *translation->at;
    }
    const char *reason = *translation->at ? NULL : "a set, [...], has no end";
    translation->at += *translation->at == ']';
    if (!reason)
        write_set(translation->to, is_inverse, &rest, escaped);
    translation->to->failed |= rest.failed;
    buf_fini(&rest);
    translation->last = AFTER_ITEM;
    return reason;
}

static const char *translate_escape(struct translation *translation)
{
    char c = translation->at[1];
    if (c >= '1' && c <= '9')
        return "references to groups are not supported";
    if (c == 'd' || c == 'D')
        buf_printf(translation->to, "%s", c == 'd' ? "[0-9]" : "[^0-9]");
    else
        buf_append(translation->to, translation->at, 2);
    translation->at += 2;
    translation->last = AFTER_ITEM;
    return NULL;
}

/* *, +, ?, {n,m}. What is lazy matches the same: its second sign is left out. */
static const char *translate_repetition(struct translation *translation)
{
    const char *begin = translation->at++;
    size_t times = *begin == '+' ? 2 : 1;
    if (*begin == '{') {
        while (*translation->at && *translation->at != '}')
            translation->at++;
        for (const char *digits = begin + 1; digits < translation->at; digits++)
            if (digits[-1] == '{' || digits[-1] == ',') {
                size_t n = strtoul(digits, NULL, 10);
                times = n > times ? n : times;
            }
        translation->at += *translation->at == '}';
    }
    if (translation->last == AFTER_REPETITION && *begin == '?') {
        translation->last = AFTER_LAZY;
        return NULL;
    }
    if (translation->last == AFTER_REPETITION || translation->last == AFTER_LAZY)
        return "a repetition of a repetition";
    buf_append(translation->to, begin, (size_t)(translation->at - begin));
    if (translation->last == AFTER_GROUP && times <= MAX_COPIES)
        translation->of_groups *= times;
    else
        translation->of_items += times;
    translation->last = AFTER_REPETITION;
    return translation->of_groups > MAX_COPIES || translation->of_items > MAX_COPIES ? "too many repetitions" : NULL;
}

/* Translates a pattern to what regcomp knows; a reason when it is refused. */
static const char *translate(const char *text, enum pattern_place place, struct buf *to)
{
    struct translation translation = {.at = text, .to = to, .of_groups = 1};
    size_t n_bytes = strlen(text);
    const char *reason = n_bytes > MAX_PATTERN_BYTES ? "it is too long" : NULL;
    buf_printf(to, "%s", place == PATTERN_ANYWHERE ? "(" : "^(");
    while (!reason && *translation.at) {
        char c = *translation.at;
        if (c == '\\' && translation.at[1]) {
            reason = translate_escape(&translation);
        } else if (c == '[') {
            reason = translate_set(&translation);
        } else if (strchr("*+?{", c)) {
            reason = translate_repetition(&translation);
        } else {
            buf_append(to, translation.at, 1);
            translation.at += c == '(' && strncmp(translation.at, "(?:", 3) == 0 ? 3 : 1;
            translation.last = c == ')' ? AFTER_GROUP : c == '(' || c == '|' ? AFTER_NOTHING : AFTER_ITEM;
        }
    }
    buf_printf(to, "%s", place == PATTERN_WHOLE ? ")$" : ")");
    if (!reason && translation.of_groups * (n_bytes + translation.of_items) > MAX_COPIES)
        reason = "too many repetitions";
    return to->failed ? "out of memory" : reason;
}

/* Compiles a pattern; whole: the one that it is part of, for messages. */
static int compile(const char *text, const char *whole, enum pattern_place place, regex_t *regex, struct error *err)
{
    struct buf translated = {0};
    char reason[200];
    const char *refused = translate(text, place, &translated);
    int code = 0, failure = refused ? 0 : regcomp(regex, translated.data, REG_EXTENDED | REG_NOSUB);
    if (failure == REG_ESPACE || translated.failed) {
        code = error_memory(err);
    } else if (refused || failure != 0) {
        if (!refused)
            (void)regerror(failure, regex, reason, sizeof reason);
        code = error_set(err, ERR_USAGE, "the pattern \"%.200s\" is no regular expression: %s", whole,
                         refused ? refused : reason);
    }
    buf_fini(&translated);
    return code;
}

/* Where a pattern has a character outside its groups and sets: ")" that ends the group which the text is in, or "|";
 * NULL when there is none. */
static const char *find_outside(const char *at, char wanted)
{
    size_t depth = 0;
    for (; *at; at++) {
        if (depth == 0 && *at == wanted)
            return at;
        if (*at == '\\' && at[1]) {
            at++;
        } else if (*at == '[') {
            at = end_of_set(at);
            if (!*at)
                break;
        } else if (*at == '(') {
            depth++;
        } else if (*at == ')' && depth > 0) {
            depth--;
        }
    }
    return NULL;
}

/* Adds a look-ahead, which is the text [n]. */
static int add_ahead(struct formula_pattern *pattern, const char *text, size_t n, const char *whole,
                     enum pattern_place place, bool is_negative, struct error *err)
{
    char *inner = strndup(text, n);
    if (!inner)
        return error_memory(err);
    int code = compile(inner, whole, place, &pattern->aheads[pattern->n_aheads].regex, err);
    free(inner);
    if (code == 0)
        pattern->aheads[pattern->n_aheads++].is_negative = is_negative;
    return code;
}

/* ((?!X).)*, with + as well, as a whole pattern: texts without X. What is left is what such a text must have. */
static int take_without(struct formula_pattern *pattern, const char **text, enum pattern_place *place,
                        struct error *err)
{
    const char *whole = *text, *at = whole + (*whole == '^');
    bool is_at_start = at > whole || *place != PATTERN_ANYWHERE;
    const char *end = strncmp(at, "((?!", 4) == 0 ? find_outside(at + 4, ')') : NULL;
    const char *behind = end && strncmp(end, ").)", 3) == 0 && strchr("*+", end[3]) && end[3] ? end + 4 : NULL;
    if (!is_at_start || !behind || !(strcmp(behind, "$") == 0 || (!*behind && *place == PATTERN_WHOLE)))
        return 0;
    *text = end[3] == '+' ? "." : "";
    *place = PATTERN_AT_START;
    return add_ahead(pattern, at + 4, (size_t)(end - at) - 4, whole, PATTERN_ANYWHERE, true, err);
}

/* Takes the look-aheads that a pattern begins with; *text is behind them then. */
static int take_aheads(struct formula_pattern *pattern, const char **text, enum pattern_place place, struct error *err)
{
    const char *whole = *text, *at = whole + (*whole == '^');
    bool is_anchored = at > whole || place != PATTERN_ANYWHERE;
    while (is_anchored && (strncmp(at, "(?=", 3) == 0 || strncmp(at, "(?!", 3) == 0)) {
        const char *end = find_outside(at + 1, ')');
        const char *refused = !end                                 ? "a look-ahead has no end"
                              : pattern->n_aheads == MAX_AHEADS    ? "too many look-aheads"
                              : find_outside(end + 1, '|') != NULL ? "a look-ahead is of one alternative: put brackets "
                                                                     "around those that follow it"
                                                                   : NULL;
        if (refused)
            return error_set(err, ERR_USAGE, "the pattern \"%.200s\" is no regular expression: %s", whole, refused);
        int code = add_ahead(pattern, at + 3, (size_t)(end - at) - 3, whole, PATTERN_AT_START, at[2] == '!', err);
        if (code != 0)
            return code;
        at = end + 1;
    }
    *text = pattern->n_aheads > 0 ? at : whole;
    return 0;
}

int formula_pattern(struct formula *formula, const char *text, enum pattern_place place, uint32_t *index,
                    struct error *err)
{
    struct formula_program *program = formula->program;
    struct formula_pattern *pattern = calloc(1, sizeof *pattern);
    const char *rest = text;
    int code = !pattern || !vec_reserve(&program->patterns, &program->cap_patterns, program->n_patterns + 1,
                                        sizeof(struct formula_pattern *))
                   ? error_memory(err)
                   : 0;
    if (code == 0)
        code = take_without(pattern, &rest, &place, err);
    if (code == 0 && rest == text)
        code = take_aheads(pattern, &rest, place, err);
    if (code == 0 && rest != text && place == PATTERN_ANYWHERE)
        place = PATTERN_AT_START;
    if (code == 0)
        code = compile(rest, text, place, &pattern->regex, err);
    if (code != 0) {
        pattern_drop(pattern, false);
        return code;
    }
    program->patterns[program->n_patterns] = pattern;
    *index = (uint32_t)program->n_patterns++;
    return 0;
}

/* Whether a text matches a pattern, and what must, or must not, lie ahead. */
static bool does_match(const struct formula_pattern *pattern, const char *text)
{
    for (size_t i = 0; i < pattern->n_aheads; i++)
        if ((regexec(&pattern->aheads[i].regex, text, 0, NULL, 0) == 0) == pattern->aheads[i].is_negative)
            return false;
    return regexec(&pattern->regex, text, 0, NULL, 0) == 0;
}

static double matches(struct formula *formula, uint32_t pattern, const char *text)
{
    struct formula_answer *answer =
        &formula->answers[pattern * N_ANSWERS + ((uintptr_t)text >> 4) * 0x9e3779b1u / 64 % N_ANSWERS];
    if (answer->text != text) {
        errno = 0; /* glibc says "no match" when it runs out of memory, too */
        answer->matches = does_match(formula->program->patterns[pattern], text);
        formula->has_failed |= !answer->matches && errno == ENOMEM;
        answer->text = text;
    }
    return answer->matches;
}

/* --- the machine --- */

static double truth(bool is_true, double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : is_true;
}

static double of_two(enum formula_operation operation, double a, double b)
{
    switch (operation) {
    case DO_ADD:
        return a + b;
    case DO_SUBTRACT:
        return a - b;
    case DO_MULTIPLY:
        return a * b;
    case DO_DIVIDE:
        return b == 0 ? NAN : a / b;
    case DO_MIN:
        return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case DO_MAX:
        return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case DO_ELSE:
        return isnan(a) ? b : a;
    case DO_ADD_ANY:
        return isnan(a) ? b : isnan(b) ? a : a + b;
    case DO_SUBTRACT_ANY:
        return isnan(a) ? -b : isnan(b) ? a : a - b;
    case DO_DIVIDE_ANY:
        return isnan(b) || b == 0 ? NAN : isnan(a) ? 0 : a / b;
    case DO_LESS:
        return truth(a < b, a, b);
    case DO_LESS_EQUAL:
        return truth(a <= b, a, b);
    case DO_EQUAL:
        return truth(a == b, a, b);
    case DO_NOT_EQUAL:
        return truth(a != b, a, b);
    case DO_AND:
        return a == 0 || b == 0 ? 0 : truth(true, a, b);
    case DO_OR:
        return (!isnan(a) && a != 0) || (!isnan(b) && b != 0) ? 1 : truth(false, a, b);
    default:
        return NAN;
    }
}

static double of_one(enum formula_operation operation, double a)
{
    switch (operation) {
    case DO_NEGATE:
        return -a;
    case DO_ABS:
        return fabs(a);
    case DO_SQRT:
        return a < 0 ? NAN : sqrt(a);
    case DO_LOG:
        return a <= 0 ? NAN : log(a);
    case DO_ROUND:
        return nearbyint(a);
    case DO_NOT:
        return isnan(a) ? NAN : a == 0;
    case DO_IS_MISSING:
        return isnan(a);
    case DO_IS_INFINITE:
        return isinf(a) != 0;
    default:
        return NAN;
    }
}

static double of_texts(enum formula_operation operation, const char *a, const char *b)
{
    size_t n_a = strlen(a), n_b = strlen(b);
    int order;
    switch (operation) {
    case DO_TEXT_STARTS:
        return strncmp(a, b, n_b) == 0;
    case DO_TEXT_ENDS:
        return n_a >= n_b && strcmp(a + n_a - n_b, b) == 0;
    case DO_TEXT_CONTAINS:
        return strstr(a, b) != NULL;
    default:
        order = strcmp(a, b);
        return order < 0 ? -1 : order > 0;
    }
}

/* The program with what is loaded in the slots. */
static double run(struct formula *formula)
{
    const struct formula_program *program = formula->program;
    union formula_value *top = formula->stack - 1;
    for (size_t i = 0; i < program->n_steps; i++) {
        const struct formula_step *step = &program->steps[i];
        int n = n_operands(step->operation);
        switch (step->operation) {
        case DO_SLOT:
            *++top = formula->loaded[step->argument];
            break;
        case DO_NUMBER:
            (++top)->number = step->number;
            break;
        case DO_TEXT:
            (++top)->text = program->texts[step->argument];
            break;
        case DO_TEXT_MATCHES:
            top->number = matches(formula, step->argument, top->text);
            break;
        default:
            if (n == 1) {
                top->number = of_one(step->operation, top->number);
            } else {
                top--;
                top->number = step->operation >= DO_TEXT_COMPARE
                                  ? of_texts(step->operation, top[0].text, top[1].text)
                                  : of_two(step->operation, top[0].number, top[1].number);
            }
        }
    }
    return top->number;
}

static bool make_room(struct formula *formula)
{
    size_t depth = formula->program->max_depth + 1;
    if (!formula->loaded) {
        formula->loaded = calloc(formula->n_slots + 1, sizeof *formula->loaded);
        formula->stack = calloc(depth, sizeof *formula->stack);
        formula->answers = calloc(formula->program->n_patterns * N_ANSWERS + 1, sizeof *formula->answers);
    }
    return formula->loaded && formula->stack && formula->answers;
}

/* The attribute of a node; numbers are missing where they are not known. */
static union formula_value attribute_of(const struct formula *formula, const struct formula_slot *slot, uint32_t node)
{
    const struct frame_nodes *nodes = formula->nodes;
    char *const *texts = nodes->strings->table.strings;
    const struct frame_attribute *further = slot->from == FROM_ATTRIBUTE ? &nodes->attributes[slot->attribute] : NULL;
    switch (slot->from) {
    case FROM_NAME:
        return (union formula_value){.text = texts[nodes->names[node]]};
    case FROM_FILE:
        return (union formula_value){.text = texts[nodes->files[node]]};
    case FROM_MODULE:
        return (union formula_value){.text = texts[nodes->modules[node]]};
    case FROM_KIND:
        return (union formula_value){.text = frame_kind_name(nodes->kinds[node])};
    case FROM_LINE:
        return (union formula_value){.number = nodes->lines[node] ? (double)nodes->lines[node] : (double)NAN};
    case FROM_DEPTH:
        return (union formula_value){.number = formula->graph->depths[node]};
    case FROM_IS_LEAF:
        return (union formula_value){.number =
                                         formula->graph->child_starts[node] == formula->graph->child_starts[node + 1]};
    case FROM_ATTRIBUTE:
        if (further->texts)
            return (union formula_value){.text = texts[further->texts[node]]};
        return (union formula_value){.number = further->numbers[node]};
    default:
        return (union formula_value){.number = node};
    }
}

/* Gets ready what the slots take their values from; view NULL: rows. */
static int prepare(struct formula *formula, const struct frame_view *view, struct error *err)
{
    if (!make_room(formula))
        return error_memory(err);
    for (size_t i = 0; i < formula->n_slots; i++) {
        struct formula_slot *slot = &formula->slots[i];
        struct frame_view own = view ? *view : (struct frame_view){0};
        if (slot->from == FROM_DEPTH && !graph_depths(formula->graph))
            return error_memory(err);
        if (slot->is_aggregate) {
            own.aggregate = slot->aggregate;
            own.percentile = slot->percentile;
        }
        slot->values = NULL;
        if (slot->from == FROM_COLUMN && (view || slot->is_aggregate)) {
            int code = column_values(slot->column, &own, &slot->values, err);
            if (code != 0)
                return code;
        }
    }
    return 0;
}

static void load(struct formula *formula, uint32_t node)
{
    for (size_t i = 0; i < formula->n_slots; i++) {
        const struct formula_slot *slot = &formula->slots[i];
        if (slot->values)
            formula->loaded[i].number = slot->values[node];
        else if (slot->from != FROM_COLUMN)
            formula->loaded[i] = attribute_of(formula, slot, node);
    }
}

int formula_values(struct formula *formula, const struct frame_view *view, double *values, struct error *err)
{
    static const struct frame_view everything = {0};
    int code = prepare(formula, view ? view : &everything, err);
    for (uint32_t node = 0; code == 0 && node < formula->graph->n; node++) {
        load(formula, node);
        values[node] = run(formula);
    }
    return formula->has_failed ? error_memory(err) : code;
}

static union formula_value of_profile(const struct frame_profile *profile, uint32_t number, enum formula_source from)
{
    int64_t value = number;
    if (from == FROM_PROFILE_NAME)
        return (union formula_value){.text = profile->name};
    if (from == FROM_RANK)
        value = profile->rank;
    else if (from == FROM_THREAD)
        value = profile->thread;
    else if (from == FROM_PROCESS)
        value = profile->process;
    else if (from == FROM_HOST)
        value = profile->node;
    return (union formula_value){.number = value < 0 ? NAN : (double)value};
}

int formula_of_profiles(struct formula *formula, double *values, struct error *err)
{
    if (!make_room(formula))
        return error_memory(err);
    for (uint32_t profile = 0; profile < formula->profiles->n; profile++) {
        for (size_t i = 0; i < formula->n_slots; i++)
            formula->loaded[i] = of_profile(&formula->profiles->items[profile], profile, formula->slots[i].from);
        values[profile] = run(formula);
    }
    return formula->has_failed ? error_memory(err) : 0;
}

/* --- columns --- */

struct formula_column {
    struct frame_column base;
    struct formula *formula;
    bool is_ready;
};

/* Whether one of the slots has a cell that is not loaded yet. */
static bool has_cells(const struct formula *formula)
{
    for (size_t i = 0; i < formula->n_slots; i++)
        if (formula->slots[i].at_cell < formula->slots[i].row.n)
            return true;
    return false;
}

/* What a column has where it has no cell. */
static double absent(const struct formula *formula, const struct formula_slot *slot)
{
    return formula->counts_absent && slot->column->sums != FRAME_PLAIN ? 0 : NAN;
}

/* The next profile that one of the slots has a cell of, but `at` if all profiles count; FRAME_NONE: none. Loads what
 * they have of it. */
static uint32_t load_next(struct formula *formula, uint32_t at)
{
    uint32_t profile = formula->counts_absent ? at : FRAME_NONE;
    for (size_t i = 0; i < formula->n_slots; i++) {
        const struct formula_slot *slot = &formula->slots[i];
        if (slot->at_cell < slot->row.n && slot->row.items[slot->at_cell].profile < profile)
            profile = slot->row.items[slot->at_cell].profile;
    }
    for (size_t i = 0; i < formula->n_slots; i++) {
        struct formula_slot *slot = &formula->slots[i];
        bool has_cell = slot->at_cell < slot->row.n && slot->row.items[slot->at_cell].profile == profile;
        if (slot->from == FROM_COLUMN && !slot->values)
            formula->loaded[i].number = has_cell ? slot->row.items[slot->at_cell].value : absent(formula, slot);
        slot->at_cell += has_cell;
    }
    return profile;
}

static int formula_row(struct frame_column *column, uint32_t node, struct cells *row, struct error *err)
{
    struct formula_column *of = (struct formula_column *)column;
    struct formula *formula = of->formula;
    bool has_rows = false;
    int code = of->is_ready ? 0 : prepare(formula, NULL, err);
    of->is_ready = code == 0;
    for (size_t i = 0; code == 0 && i < formula->n_slots; i++) {
        struct formula_slot *slot = &formula->slots[i];
        slot->row.n = slot->at_cell = 0;
        if (slot->from == FROM_COLUMN && !slot->values) {
            has_rows = true;
            code = slot->column->class->row(slot->column, node, &slot->row, err);
        }
    }
    if (code == 0)
        load(formula, node);
    bool is_bounded = !has_rows || formula->counts_absent;
    if (has_rows && !has_cells(formula))
        return code;
    for (uint32_t profile = 0; code == 0 && (!is_bounded || profile < column->n_profiles); profile++) {
        uint32_t next = has_rows ? load_next(formula, profile) : profile;
        if (next == FRAME_NONE)
            break;
        double value = run(formula);
        if (formula->has_failed || (!isnan(value) && !cells_add(row, next, value)))
            code = error_memory(err);
    }
    return code;
}

static int formula_view(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                        struct error *err)
{
    struct formula_column *of = (struct formula_column *)column;
    *done = view->aggregate == FRAME_SUM;
    of->is_ready = false;
    return *done ? formula_values(of->formula, view, values, err) : 0;
}

static void formula_fini(struct frame_column *column)
{
    formula_free(((struct formula_column *)column)->formula);
}

/* The same program over the changed columns. */
static struct frame_column *formula_remake(struct frame_column *column, struct column_change *change)
{
    const struct formula *from = ((struct formula_column *)column)->formula;
    struct formula *to = calloc(1, sizeof *to);
    bool ok = to;
    if (!to)
        return NULL;
    *to = (struct formula){.program = from->program,
                           .graph = graph_keep(change->graph ? change->graph : from->graph),
                           .nodes = nodes_keep(change->nodes ? change->nodes : from->nodes),
                           .profiles = profiles_keep(change->profiles ? change->profiles : from->profiles),
                           .counts_absent = from->counts_absent};
    to->program->n_owners++;
    for (size_t i = 0; ok && i < from->n_slots; i++) {
        struct formula_slot slot = from->slots[i];
        struct frame_column *changed = slot.column ? column_changed(change, slot.column) : NULL;
        ok = !slot.column || changed;
        slot.column = changed;
        slot.row = (struct cells){0};
        slot.values = NULL;
        ok = ok && formula_slot(to, &slot) != UINT32_MAX;
        column_drop(changed);
    }
    if (!ok) {
        formula_free(to);
        return NULL;
    }
    struct frame_column *made = column_formula(to, column->name, column->sums);
    if (made)
        made->is_hidden = column->is_hidden;
    return made;
}

static const struct column_class formula_class = {formula_row, formula_view, formula_fini};

struct frame_column *column_formula(struct formula *formula, const char *name, enum frame_sums sums)
{
    uint32_t n_profiles = (uint32_t)formula->profiles->n;
    for (size_t i = 0; i < formula->n_slots; i++)
        if (formula->slots[i].column)
            n_profiles = formula->slots[i].column->n_profiles;
    struct frame_column *column =
        column_new(&formula_class, sizeof(struct formula_column), name, sums, formula->graph->n, n_profiles);
    if (!column) {
        formula_free(formula);
        return NULL;
    }
    ((struct formula_column *)column)->formula = formula;
    column->remake = formula_remake;
    for (size_t i = 0; i < formula->n_slots; i++)
        if (formula->slots[i].column)
            column_deepen(column, formula->slots[i].column);
    return column;
}
