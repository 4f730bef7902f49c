/* SPDX-License-Identifier: BSD-3-Clause */
/* Expressions are compiled in one pass, by recursive descent; what nests deeper than DEPTH_MAX is refused. */
#include "frame/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/spelling.h"

#define DEPTH_MAX 200
#define NO_VARIABLE SIZE_MAX

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_QUOTED, TOKEN_WORD, TOKEN_SIGN };

/* What a value is. FAILED is none, after an error. */
enum type { FAILED, NUMBER, TEXT, CONDITION };

struct parser {
    const struct frame *frame;
    struct formula *formula; /* that steps are added to */
    const char *text;
    size_t text_at, next; /* next: offset of what is read next */
    struct {
        enum token_kind kind;
        size_t at;
        struct buf text; /* of texts, names and signs */
        double number;
    } token;
    bool of_profiles, is_part;
    const char *const *variables;
    size_t n_variables, variable;
    size_t n_columns; /* that were named so far */
    int depth;
    struct error *err;
    int code;
};

static const char *name_of_type(enum type type)
{
    return type == NUMBER ? "a number" : type == CONDITION ? "a condition" : type == FAILED ? "nothing" : "a text";
}

static enum type parse_or(struct parser *parser);

__attribute__((format(printf, 4, 5))) static enum type fail(struct parser *parser, int code, size_t at,
                                                            const char *format, ...)
{
    if (parser->code != 0)
        return FAILED;
    va_list args;
    char *reason = NULL;
    va_start(args, format);
    if (vasprintf(&reason, format, args) < 0)
        reason = NULL;
    va_end(args);
    parser->code =
        error_set(parser->err, code, "character %zu: %s", parser->text_at + at + 1, reason ? reason : "out of memory");
    free(reason);
    return FAILED;
}

static enum type out_of_memory(struct parser *parser)
{
    if (parser->code == 0)
        parser->code = error_set(parser->err, ERR_MEMORY, "out of memory");
    return FAILED;
}

/* --- tokens --- */

static bool is_name_char(const struct parser *parser, char c)
{
    unsigned char byte = (unsigned char)c;
    return isalnum(byte) || byte == '_' || byte == ':' || byte >= 0x80 || (byte == '.' && !parser->is_part);
}

static void read_quoted(struct parser *parser)
{
    char quote = parser->text[parser->next++];
    while (parser->text[parser->next] != quote) {
        char c = parser->text[parser->next];
        if (c == '\\' && (parser->text[parser->next + 1] == quote || parser->text[parser->next + 1] == '\\'))
            c = parser->text[++parser->next];
        if (!c) {
            (void)fail(parser, ERR_USAGE, parser->token.at, "nothing closes this %c", quote);
            return;
        }
        buf_append(&parser->token.text, &c, 1);
        parser->next++;
    }
    parser->next++;
    parser->token.kind = quote == '"' ? TOKEN_TEXT : TOKEN_QUOTED;
}

static void read_sign(struct parser *parser)
{
    static const char *const signs[] = {"==", "!=", "<>", "<=", ">=", "=~", "&&", "||", "=", "<",
                                        ">",  "+",  "-",  "*",  "/",  "(",  ")",  ",",  "!", "."};
    const char *at = parser->text + parser->next;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(at, signs[i], strlen(signs[i])) == 0) {
            buf_printf(&parser->token.text, "%s", signs[i]);
            parser->next += strlen(signs[i]);
            parser->token.kind = TOKEN_SIGN;
            return;
        }
    (void)fail(parser, ERR_USAGE, parser->next, "'%.1s' means nothing here", at);
}

static void next_token(struct parser *parser)
{
    while (isspace((unsigned char)parser->text[parser->next]))
        parser->next++;
    const char *at = parser->text + parser->next;
    parser->token.at = parser->next;
    parser->token.text.len_bytes = 0;
    buf_append(&parser->token.text, "", 0);
    parser->token.kind = TOKEN_END;
    if (parser->code != 0 || !*at)
        return;
    if (*at == '"' || *at == '\'') {
        read_quoted(parser);
    } else if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
        char *end;
        parser->token.number = plain_number(at, &end);
        parser->token.kind = TOKEN_NUMBER;
        parser->next += (size_t)(end - at);
        if (is_name_char(parser, *end))
            (void)fail(parser, ERR_USAGE, parser->token.at, "'%.*s...' is no number", (int)(end - at) + 1, at);
    } else if (is_name_char(parser, *at)) {
        size_t n = 1;
        while (is_name_char(parser, at[n]))
            n++;
        buf_append(&parser->token.text, at, n);
        parser->token.kind = TOKEN_WORD;
        parser->next += n;
    } else {
        read_sign(parser);
    }
    if (parser->token.text.failed)
        (void)out_of_memory(parser);
}

static bool is_word(const struct parser *parser, const char *word)
{
    return parser->code == 0 && parser->token.kind == TOKEN_WORD &&
           plain_compare(parser->token.text.data, word, SIZE_MAX) == 0;
}

static bool is_sign(const struct parser *parser, const char *sign)
{
    return parser->code == 0 && parser->token.kind == TOKEN_SIGN && strcmp(parser->token.text.data, sign) == 0;
}

/* Whether the token is this word or sign, and then goes on. sign may be NULL. */
static bool accept(struct parser *parser, const char *word, const char *sign)
{
    bool found = (word && is_word(parser, word)) || (sign && is_sign(parser, sign));
    if (found)
        next_token(parser);
    return found;
}

static enum type expect(struct parser *parser, const char *sign, enum type type)
{
    if (accept(parser, NULL, sign))
        return type;
    if (parser->token.kind == TOKEN_END)
        return fail(parser, ERR_USAGE, parser->token.at, "'%s' is missing at the end", sign);
    return fail(parser, ERR_USAGE, parser->token.at, "'%s' is expected here", sign);
}

static enum type step(struct parser *parser, enum formula_operation operation, uint32_t argument, double number,
                      enum type type)
{
    if (parser->code != 0)
        return FAILED;
    if (argument == UINT32_MAX || !formula_step(parser->formula, operation, argument, number))
        return out_of_memory(parser);
    return type;
}

/* --- names --- */

/* Attributes that every node, or every profile, has. */
static const struct known_name {
    const char *name;
    enum formula_source from;
    enum type type;
    bool of_profiles;
} known_names[] = {
    {"name", FROM_NAME, TEXT, false},        {"file", FROM_FILE, TEXT, false},
    {"module", FROM_MODULE, TEXT, false},    {"kind", FROM_KIND, TEXT, false},
    {"type", FROM_KIND, TEXT, false},        {"line", FROM_LINE, NUMBER, false},
    {"depth", FROM_DEPTH, NUMBER, false},    {"node", FROM_NODE, NUMBER, false},
    {"node_id", FROM_NODE, NUMBER, false},   {"leaf", FROM_IS_LEAF, NUMBER, false},
    {"name", FROM_PROFILE_NAME, TEXT, true}, {"profile", FROM_PROFILE, NUMBER, true},
    {"rank", FROM_RANK, NUMBER, true},       {"thread", FROM_THREAD, NUMBER, true},
    {"process", FROM_PROCESS, NUMBER, true}, {"host", FROM_HOST, NUMBER, true},
};

static enum type push(struct parser *parser, const struct formula_slot *slot, enum type type)
{
    return step(parser, DO_SLOT, formula_slot(parser->formula, slot), 0, type);
}

static const struct known_name *known_name(const struct parser *parser, const char *name)
{
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
        if (known_names[i].of_profiles == parser->of_profiles && strcmp(known_names[i].name, name) == 0)
            return &known_names[i];
    return NULL;
}

/* Fails with the columns and attributes that a name is like. */
static enum type fail_unknown(struct parser *parser, const char *name, size_t at)
{
    const struct frame *frame = parser->frame;
    size_t n = 0, n_attributes = frame_n_attributes(frame);
    const char **others = malloc((n_attributes + sizeof known_names / sizeof *known_names) * sizeof *others);
    struct error unknown;
    if (!others)
        return out_of_memory(parser);
    for (size_t i = 0; i < n_attributes; i++)
        others[n++] = frame_attribute_name(frame, i);
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
        if (!known_names[i].of_profiles)
            others[n++] = known_names[i].name;
    int code = frame_unknown(frame, others, n, "there is no column or attribute", name, &unknown);
    free(others);
    const char *list = strstr(unknown.text, "; there are"); /* nothing is like it: it may be a text */
    if (code == ERR_NOT_FOUND && list)
        return fail(parser, code, at, "%.*s; texts stand in double quotes%.800s", (int)(list - unknown.text),
                    unknown.text, list);
    return fail(parser, code, at, "%.900s", unknown.text);
}

/* Whether profiles are asked for their process and none tells it, as in databases of version 4. */
static bool lacks_process(const struct frame *frame, const struct known_name *known)
{
    if (!known || known->from != FROM_PROCESS)
        return false;
    for (uint32_t i = 0; i < frame->profiles->n; i++)
        if (frame->profiles->items[i].process >= 0)
            return false;
    return frame->profiles->n > 0;
}

/* A column: sums with it take what is missing as 0. */
static enum type push_column(struct parser *parser, const struct formula_slot *slot)
{
    parser->n_columns++;
    return push(parser, slot, NUMBER);
}

/* Takes "= -1", which behind a depth is Hatchet's word for leaves. */
static bool accept_minus_one(struct parser *parser)
{
    const char *at = parser->text + parser->next;
    if (!is_sign(parser, "=") && !is_sign(parser, "=="))
        return false;
    at += strspn(at, " \t\n");
    if (strncmp(at, "-1", 2) != 0 || is_name_char(parser, at[2]) || at[2] == '.')
        return false;
    parser->next = (size_t)(at + 2 - parser->text);
    next_token(parser);
    return parser->code == 0;
}

/* A name: attributes of the file come before names that all nodes have, and these before columns of the same name that
 * are not quoted. */
static enum type push_name(struct parser *parser, const char *name, bool is_quoted, size_t at)
{
    const struct frame *frame = parser->frame;
    const struct known_name *known = known_name(parser, name);
    if (lacks_process(frame, known))
        return fail(parser, ERR_NOT_FOUND, at,
                    "no profile here tells its process, but rank or thread; reports have --by process");
    if (parser->of_profiles && known)
        return push(parser, &(struct formula_slot){.from = known->from}, known->type);
    if (parser->of_profiles)
        return fail(parser, ERR_NOT_FOUND, at,
                    "profiles have no '%s', but name, profile, rank, thread, process and host", name);
    size_t column = known && !is_quoted ? SIZE_MAX : frame_find_column(frame, name, NULL);
    if (column != SIZE_MAX)
        return push_column(parser, &(struct formula_slot){.from = FROM_COLUMN, .column = frame->columns[column]});
    for (size_t i = 0; i < frame_n_attributes(frame); i++)
        if (strcmp(frame_attribute_name(frame, i), name) == 0)
            return push(parser, &(struct formula_slot){.from = FROM_ATTRIBUTE, .attribute = i},
                        frame_attribute_is_text(frame, i) ? TEXT : NUMBER);
    if (known && known->from == FROM_DEPTH && parser->is_part && accept_minus_one(parser))
        return push(parser, &(struct formula_slot){.from = FROM_IS_LEAF}, CONDITION);
    if (known)
        return push(parser, &(struct formula_slot){.from = known->from}, known->type);
    return fail_unknown(parser, name, at);
}

/* --- functions --- */

static enum type need(struct parser *parser, enum type type, enum type needed, size_t at)
{
    bool fits = type == needed || (needed == NUMBER && type == CONDITION);
    if (type == FAILED || fits)
        return type;
    bool is_quoted = type == TEXT && needed == NUMBER && parser->text[at] == '"';
    return fail(parser, ERR_USAGE, at, "this is %s, where %s is needed%s", name_of_type(type), name_of_type(needed),
                is_quoted ? "; columns stand in single quotes" : "");
}

static const struct function {
    const char *name;
    enum formula_operation operation;
    unsigned min_operands, max_operands;
} functions[] = {
    {"min", DO_MIN, 1, UINT32_MAX}, {"max", DO_MAX, 1, UINT32_MAX}, {"else", DO_ELSE, 2, UINT32_MAX},
    {"abs", DO_ABS, 1, 1},          {"sqrt", DO_SQRT, 1, 1},        {"log", DO_LOG, 1, 1},
    {"round", DO_ROUND, 1, 1},
};

/* Over the profiles. */
static const struct over_profiles {
    const char *name;
    enum frame_aggregate aggregate;
    enum type operand, type;
    bool is_count; /* of profiles where the operand is true: 0 where it nowhere is */
} over_profiles[] = {
    {"sum", FRAME_SUM, NUMBER, NUMBER, false},          {"mean", FRAME_MEAN, NUMBER, NUMBER, false},
    {"lowest", FRAME_MIN, NUMBER, NUMBER, false},       {"highest", FRAME_MAX, NUMBER, NUMBER, false},
    {"std", FRAME_STD, NUMBER, NUMBER, false},          {"count", FRAME_COUNT, NUMBER, NUMBER, false},
    {"profiles", FRAME_COUNT, CONDITION, NUMBER, true}, {"any", FRAME_MAX, CONDITION, CONDITION, false},
    {"all", FRAME_MIN, CONDITION, CONDITION, false},    {"percentile", FRAME_PERCENTILE, NUMBER, NUMBER, false},
};

/* The operands of a function, one after the other, behind its "(". */
static enum type parse_operands(struct parser *parser, const struct function *function)
{
    unsigned n = 0;
    size_t at;
    do {
        at = parser->token.at;
        (void)need(parser, parse_or(parser), NUMBER, at);
        bool is_done = ++n == 1 && function->max_operands != 1;
        (void)(is_done ? NUMBER : step(parser, function->operation, 0, 0, NUMBER));
        if (n > function->max_operands)
            return fail(parser, ERR_USAGE, at, "%s has one operand", function->name);
    } while (parser->code == 0 && accept(parser, NULL, ","));
    if (n < function->min_operands)
        return fail(parser, ERR_USAGE, parser->token.at, "%s needs %u operands", function->name,
                    function->min_operands);
    return expect(parser, ")", NUMBER);
}

/* Parses an operand into a column of its own; NULL after a failure. over: the function that it is for, NULL: one of
 * each profile by itself. What is counted is 1 where it is true, and missing elsewhere; of what all profiles must
 * fulfill, those without a value have cost 0. */
static struct frame_column *parse_column(struct parser *parser, const struct over_profiles *over)
{
    enum type needed = over ? over->operand : NUMBER;
    bool is_count = over && over->is_count;
    struct formula *outer = parser->formula, *inner = formula_new(parser->frame);
    struct frame_column *column = NULL;
    size_t at = parser->token.at, n_columns = parser->n_columns;
    if (parser->of_profiles) {
        (void)fail(parser, ERR_USAGE, at, "a condition on profiles has no values of nodes");
    } else if (!inner) {
        (void)out_of_memory(parser);
    } else {
        parser->formula = inner;
        if (is_count)
            (void)step(parser, DO_NUMBER, 0, 1, NUMBER);
        (void)need(parser, parse_or(parser), needed, at);
        if (is_count)
            (void)step(parser, DO_DIVIDE, 0, 0, NUMBER);
        parser->formula = outer;
        parser->n_columns = n_columns;
        inner->counts_absent = over && over->type == CONDITION && over->aggregate == FRAME_MIN;
    }
    if (parser->code == 0) {
        column = formula_only_column(inner);
        if (column) {
            column_keep(column);
        } else {
            column = column_formula(inner, "", FRAME_PLAIN);
            inner = NULL;
        }
        if (!column)
            (void)out_of_memory(parser);
    }
    formula_free(inner);
    return column;
}

static enum type parse_children(struct parser *parser)
{
    struct frame_column *of = parse_column(parser, NULL);
    struct frame_column *sum = of ? column_children(of, parser->frame->graph) : NULL;
    enum type type = !of   ? FAILED
                     : sum ? push_column(parser, &(struct formula_slot){.from = FROM_COLUMN, .column = sum})
                           : out_of_memory(parser);
    column_drop(of);
    column_drop(sum);
    return expect(parser, ")", type);
}

static enum type parse_over_profiles(struct parser *parser, const struct over_profiles *over)
{
    struct formula_slot slot = {
        .from = FROM_COLUMN, .is_aggregate = true, .aggregate = over->aggregate, .column = parse_column(parser, over)};
    if (over->aggregate == FRAME_PERCENTILE && slot.column) {
        (void)expect(parser, ",", NUMBER);
        if (parser->token.kind != TOKEN_NUMBER || parser->token.number < 0 || parser->token.number > 100)
            (void)fail(parser, ERR_USAGE, parser->token.at, "a number from 0 to 100 is needed here");
        slot.percentile = parser->token.number;
        next_token(parser);
    }
    parser->n_columns += over->type == NUMBER;
    enum type type = slot.column ? push(parser, &slot, over->type) : FAILED;
    if (over->is_count && type != FAILED) {
        (void)step(parser, DO_NUMBER, 0, 0, NUMBER);
        type = step(parser, DO_ELSE, 0, 0, NUMBER);
    }
    column_drop(slot.column);
    return expect(parser, ")", type);
}

static enum type fail_function(struct parser *parser, const char *name, size_t at)
{
    enum { N_FUNCTIONS = sizeof functions / sizeof *functions, N_OVER = sizeof over_profiles / sizeof *over_profiles };
    const char *names[N_FUNCTIONS + N_OVER + 1] = {"children"};
    struct buf text = {0};
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        names[1 + i] = functions[i].name;
    for (size_t i = 0; i < N_OVER; i++)
        names[1 + N_FUNCTIONS + i] = over_profiles[i].name;
    spelling_suggest(&text, name, names, sizeof names / sizeof *names);
    (void)(text.failed ? out_of_memory(parser)
                       : fail(parser, ERR_NOT_FOUND, at, "there is no function '%s'%s", name, text.data));
    buf_fini(&text);
    return FAILED;
}

static enum type parse_function(struct parser *parser, const char *name, size_t at)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (plain_compare(functions[i].name, name, SIZE_MAX) == 0)
            return parse_operands(parser, &functions[i]);
    for (size_t i = 0; i < sizeof over_profiles / sizeof *over_profiles; i++)
        if (plain_compare(over_profiles[i].name, name, SIZE_MAX) == 0)
            return parse_over_profiles(parser, &over_profiles[i]);
    if (plain_compare(name, "children", SIZE_MAX) == 0)
        return parse_children(parser);
    return fail_function(parser, name, at);
}

/* --- operands --- */

/* A name behind the name of a variable, p."time", where there are variables. */
static enum type parse_of_variable(struct parser *parser, const char *name, size_t at)
{
    size_t variable = 0;
    while (variable < parser->n_variables &&
           (!parser->variables[variable] || strcmp(parser->variables[variable], name) != 0))
        variable++;
    if (variable == parser->n_variables)
        return fail(parser, ERR_NOT_FOUND, at, "the pattern has no '%s'", name);
    if (parser->variable != NO_VARIABLE && parser->variable != variable)
        return fail(parser, ERR_USAGE, at,
                    "one condition cannot be about '%s' and '%s'; join conditions on each by AND",
                    parser->variables[parser->variable], name);
    parser->variable = variable;
    if (accept(parser, "is", NULL)) {
        bool is_not = accept(parser, "not", NULL);
        if (!accept(parser, "leaf", NULL))
            return fail(parser, ERR_USAGE, parser->token.at, "LEAF is expected here");
        (void)push(parser, &(struct formula_slot){.from = FROM_IS_LEAF}, CONDITION);
        return is_not ? step(parser, DO_NOT, 0, 0, CONDITION) : parser->code == 0 ? CONDITION : FAILED;
    }
    if (expect(parser, ".", NUMBER) == FAILED)
        return FAILED;
    if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_TEXT && parser->token.kind != TOKEN_QUOTED)
        return fail(parser, ERR_USAGE, parser->token.at, "a name is expected here");
    char *of = strdup(parser->token.text.data);
    at = parser->token.at;
    next_token(parser);
    enum type type = of ? push_name(parser, of, false, at) : out_of_memory(parser);
    free(of);
    return type;
}

static enum type parse_word(struct parser *parser)
{
    size_t at = parser->token.at;
    bool is_quoted = parser->token.kind == TOKEN_QUOTED;
    char *name = strdup(parser->token.text.data);
    enum type type;
    next_token(parser);
    if (!name)
        type = out_of_memory(parser);
    else if (!is_quoted && (plain_compare(name, "missing", SIZE_MAX) == 0 || plain_compare(name, "nan", SIZE_MAX) == 0))
        type = step(parser, DO_NUMBER, 0, NAN, NUMBER);
    else if (!is_quoted && plain_compare(name, "inf", SIZE_MAX) == 0)
        type = step(parser, DO_NUMBER, 0, HUGE_VAL, NUMBER);
    else if (!is_quoted && accept(parser, NULL, "("))
        type = parse_function(parser, name, at);
    else if (parser->is_part)
        type = parse_of_variable(parser, name, at);
    else
        type = push_name(parser, name, is_quoted, at);
    free(name);
    return type;
}

static enum type parse_primary(struct parser *parser)
{
    enum token_kind kind = parser->token.kind;
    if (parser->code != 0)
        return FAILED;
    if (kind == TOKEN_NUMBER) {
        double number = parser->token.number;
        next_token(parser);
        return step(parser, DO_NUMBER, 0, number, NUMBER);
    }
    if (kind == TOKEN_TEXT || (kind == TOKEN_QUOTED && parser->is_part)) {
        uint32_t text = formula_text(parser->formula, parser->token.text.data);
        next_token(parser);
        return step(parser, DO_TEXT, text, 0, TEXT);
    }
    if (kind == TOKEN_WORD || kind == TOKEN_QUOTED)
        return parse_word(parser);
    if (accept(parser, NULL, "(")) {
        enum type type = parse_or(parser);
        return expect(parser, ")", type);
    }
    return fail(parser, ERR_USAGE, parser->token.at,
                kind == TOKEN_END ? "the end comes where a value is expected" : "a value is expected here");
}

/* --- operators --- */

static enum type parse_signed(struct parser *parser)
{
    size_t n_minus = 0;
    bool is_signed = false;
    for (; is_sign(parser, "-") || is_sign(parser, "+"); next_token(parser)) {
        n_minus += is_sign(parser, "-");
        is_signed = true;
    }
    size_t at = parser->token.at;
    enum type type = parse_primary(parser);
    if (is_signed)
        type = need(parser, type, NUMBER, at);
    return n_minus % 2 ? step(parser, DO_NEGATE, 0, 0, NUMBER) : type;
}

/* Operators that bind equally: they take and give the same type, from left to right. */
struct level {
    enum type type;
    enum type (*parse_operand)(struct parser *parser);
    struct level_operator {
        const char *word, *sign;                    /* word: NULL: none */
        enum formula_operation operation, of_costs; /* of_costs: where both operands have columns */
    } operators[2];                                 /* sign NULL: one only */
};

/* Goes on behind the level's operator, if there is one; what stands before it must have the level's type. */
static const struct level_operator *accept_operator(struct parser *parser, const struct level *level, enum type left,
                                                    size_t left_at)
{
    for (size_t i = 0; i < 2 && level->operators[i].sign; i++) {
        const struct level_operator *found = &level->operators[i];
        if (!is_sign(parser, found->sign) && !(found->word && is_word(parser, found->word)))
            continue;
        (void)need(parser, left, level->type, left_at);
        next_token(parser);
        return found;
    }
    return NULL;
}

static enum type parse_level(struct parser *parser, const struct level *level)
{
    size_t at = parser->token.at, n_before = parser->n_columns;
    enum type type = level->parse_operand(parser);
    const struct level_operator *found;
    while ((found = accept_operator(parser, level, type, at))) {
        size_t n_left = parser->n_columns - n_before, n_so_far = parser->n_columns;
        at = parser->token.at;
        (void)need(parser, level->parse_operand(parser), level->type, at);
        bool is_of_costs = n_left > 0 && parser->n_columns > n_so_far;
        type = step(parser, is_of_costs ? found->of_costs : found->operation, 0, 0, level->type);
    }
    return type;
}

static enum type parse_product(struct parser *parser)
{
    static const struct level product = {
        NUMBER, parse_signed, {{NULL, "*", DO_MULTIPLY, DO_MULTIPLY}, {NULL, "/", DO_DIVIDE, DO_DIVIDE_ANY}}};
    return parse_level(parser, &product);
}

static enum type parse_sum(struct parser *parser)
{
    static const struct level sum = {
        NUMBER, parse_product, {{NULL, "+", DO_ADD, DO_ADD_ANY}, {NULL, "-", DO_SUBTRACT, DO_SUBTRACT_ANY}}};
    return parse_level(parser, &sum);
}

/* is [not] missing, none, nan, inf */
static enum type parse_is(struct parser *parser, enum type left, size_t at)
{
    bool is_not = accept(parser, "not", NULL);
    bool is_infinite = is_word(parser, "inf");
    if (!is_infinite && !is_word(parser, "missing") && !is_word(parser, "none") && !is_word(parser, "nan"))
        return fail(parser, ERR_USAGE, parser->token.at, "missing, none, nan or inf is expected here");
    next_token(parser);
    if (left == TEXT && !is_infinite) { /* an unknown text is "" */
        (void)step(parser, DO_TEXT, formula_text(parser->formula, ""), 0, TEXT);
        (void)step(parser, DO_TEXT_COMPARE, 0, 0, NUMBER);
        (void)step(parser, DO_NUMBER, 0, 0, NUMBER);
        (void)step(parser, DO_EQUAL, 0, 0, CONDITION);
    } else {
        (void)need(parser, left, NUMBER, at);
        (void)step(parser, is_infinite ? DO_IS_INFINITE : DO_IS_MISSING, 0, 0, CONDITION);
    }
    return is_not ? step(parser, DO_NOT, 0, 0, CONDITION) : parser->code == 0 ? CONDITION : FAILED;
}

/* =~ and matches: what follows must be a literal. */
static enum type parse_pattern(struct parser *parser, enum type left, size_t left_at, bool is_whole)
{
    struct error reason;
    uint32_t index = 0;
    size_t at = parser->token.at;
    enum pattern_place place = is_whole ? PATTERN_WHOLE : parser->is_part ? PATTERN_AT_START : PATTERN_ANYWHERE;
    (void)need(parser, left, TEXT, left_at);
    if (parser->code != 0)
        return FAILED;
    if (parser->token.kind != TOKEN_TEXT && (parser->token.kind != TOKEN_QUOTED || !parser->is_part))
        return fail(parser, ERR_USAGE, at, "a pattern between \"...\" is expected here");
    int code = formula_pattern(parser->formula, parser->token.text.data, place, &index, &reason);
    if (code != 0)
        return fail(parser, code, at, "%.800s", reason.text);
    next_token(parser);
    return step(parser, DO_TEXT_MATCHES, index, 0, CONDITION);
}

static const struct comparison {
    const char *sign;
    enum formula_operation operation;
    bool is_swapped; /* the operands change places */
} comparisons[] = {
    {"==", DO_EQUAL, false},      {"=", DO_EQUAL, false}, {"!=", DO_NOT_EQUAL, false}, {"<>", DO_NOT_EQUAL, false},
    {"<=", DO_LESS_EQUAL, false}, {"<", DO_LESS, false},  {">=", DO_LESS_EQUAL, true}, {">", DO_LESS, true},
};

/* left comparison right; a > b is computed as -a < -b, so that the operands stay in their order. */
static enum type parse_compared(struct parser *parser, enum type left, size_t left_at, const struct comparison *found)
{
    size_t at = parser->token.at;
    if (left == NUMBER && found->is_swapped)
        (void)step(parser, DO_NEGATE, 0, 0, NUMBER);
    enum type right = parse_sum(parser);
    if (left == TEXT || right == TEXT) {
        (void)need(parser, right, left == TEXT ? TEXT : NUMBER, at);
        (void)step(parser, DO_TEXT_COMPARE, 0, 0, NUMBER);
        if (found->is_swapped)
            (void)step(parser, DO_NEGATE, 0, 0, NUMBER);
        (void)step(parser, DO_NUMBER, 0, 0, NUMBER);
        return step(parser, found->operation, 0, 0, CONDITION);
    }
    (void)need(parser, left, NUMBER, left_at);
    if (found->is_swapped)
        (void)step(parser, DO_NEGATE, 0, 0, NUMBER);
    return step(parser, found->operation, 0, 0, CONDITION);
}

static enum type parse_text_test(struct parser *parser, enum type left, size_t left_at,
                                 enum formula_operation operation)
{
    size_t at = parser->token.at;
    (void)need(parser, left, TEXT, left_at);
    (void)need(parser, parse_sum(parser), TEXT, at);
    return step(parser, operation, 0, 0, CONDITION);
}

static enum type parse_comparison(struct parser *parser)
{
    size_t at = parser->token.at;
    enum type left = parse_sum(parser);
    if (left == CONDITION && parser->token.kind == TOKEN_SIGN && strchr("=<>", *parser->token.text.data))
        left = NUMBER;
    if (accept(parser, NULL, "=~"))
        return parse_pattern(parser, left, at, false);
    if (accept(parser, "matches", NULL))
        return parse_pattern(parser, left, at, true);
    if (accept(parser, "is", NULL))
        return parse_is(parser, left, at);
    if (accept(parser, "contains", NULL))
        return parse_text_test(parser, left, at, DO_TEXT_CONTAINS);
    bool is_start = is_word(parser, "starts");
    if (is_start || is_word(parser, "ends")) {
        next_token(parser);
        if (!accept(parser, "with", NULL))
            return fail(parser, ERR_USAGE, parser->token.at, "'with' is expected here");
        return parse_text_test(parser, left, at, is_start ? DO_TEXT_STARTS : DO_TEXT_ENDS);
    }
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (accept(parser, NULL, comparisons[i].sign))
            return parse_compared(parser, left, at, &comparisons[i]);
    return left;
}

static enum type parse_not(struct parser *parser)
{
    size_t n = 0, at = parser->token.at;
    while (accept(parser, "not", "!")) {
        n++;
        at = parser->token.at;
    }
    if (++parser->depth > DEPTH_MAX)
        return fail(parser, ERR_USAGE, at, "this nests too deep");
    enum type type = parse_comparison(parser);
    parser->depth--;
    if (n)
        type = need(parser, type, CONDITION, at);
    return n % 2 ? step(parser, DO_NOT, 0, 0, CONDITION) : type;
}

static enum type parse_and(struct parser *parser)
{
    static const struct level all_of = {CONDITION, parse_not, {{"and", "&&", DO_AND, DO_AND}}};
    return parse_level(parser, &all_of);
}

static enum type parse_or(struct parser *parser)
{
    static const struct level any_of = {CONDITION, parse_and, {{"or", "||", DO_OR, DO_OR}}};
    return parse_level(parser, &any_of);
}

/* --- the whole --- */

static void expect_end(struct parser *parser)
{
    if (parser->token.kind != TOKEN_END)
        (void)fail(parser, ERR_USAGE, parser->token.at, "the expression should end before this");
}

static int compile(struct parser *parser, enum type needed, struct formula **formula)
{
    parser->formula = formula_new(parser->frame);
    if (parser->formula) {
        next_token(parser);
        (void)need(parser, parse_or(parser), needed, 0);
        expect_end(parser);
    } else {
        (void)out_of_memory(parser);
    }
    if (parser->code == 0)
        *formula = parser->formula;
    else
        formula_free(parser->formula);
    buf_fini(&parser->token.text);
    return parser->code;
}

int expression_compile(const struct frame *frame, const char *text, enum expression_kind kind, struct formula **formula,
                       struct error *err)
{
    struct parser parser = {.frame = frame, .text = text, .variable = NO_VARIABLE, .err = err};
    return compile(&parser, kind == EXPRESSION_NUMBER ? NUMBER : CONDITION, formula);
}

int expression_compile_profiles(const struct frame *frame, const char *text, struct formula **formula,
                                struct error *err)
{
    struct parser parser = {.frame = frame, .text = text, .variable = NO_VARIABLE, .of_profiles = true, .err = err};
    return compile(&parser, CONDITION, formula);
}

int expression_test(struct formula *formula, const struct frame_view *view, bool **is_true, struct error *err)
{
    uint32_t n = formula->graph->n;
    double *values = malloc((n ? n : 1) * sizeof *values);
    bool *tested = calloc(n ? n : 1, sizeof *tested);
    int code = values && tested ? formula_values(formula, view, values, err) : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < n; i++)
        tested[i] = !isnan(values[i]) && values[i] != 0;
    free(values);
    if (code != 0)
        free(tested);
    else
        *is_true = tested;
    return code;
}

void expression_quote(struct buf *to, char quote, const char *text)
{
    buf_append(to, &quote, 1);
    for (; *text; text++) {
        if (*text == quote || *text == '\\')
            buf_append(to, "\\", 1);
        buf_append(to, text, 1);
    }
    buf_append(to, &quote, 1);
}

/* --- conditions of queries --- */

void expression_parts_free(struct expression_part *parts, size_t n)
{
    for (size_t i = 0; parts && i < n; i++)
        formula_free(parts[i].formula);
    free(parts);
}

/* One more part: a condition without "and", or the whole of one with "or". */
static void parse_part(struct parser *parser, bool is_whole, struct expression_part **parts, size_t *n,
                       size_t *capacity)
{
    size_t at = parser->token.at;
    parser->variable = NO_VARIABLE;
    parser->formula = formula_new(parser->frame);
    if (!parser->formula || !vec_reserve(parts, capacity, *n + 1, sizeof **parts)) {
        formula_free(parser->formula);
        (void)out_of_memory(parser);
        return;
    }
    (void)need(parser, is_whole ? parse_or(parser) : parse_not(parser), CONDITION, at);
    if (parser->code == 0 && parser->variable == NO_VARIABLE)
        (void)fail(parser, ERR_USAGE, at, "this condition is about no part of the pattern");
    (*parts)[(*n)++] = (struct expression_part){parser->variable, parser->formula};
}

int expression_compile_parts(const struct frame *frame, const char *text, size_t text_at, const char *const *variables,
                             size_t n_variables, struct expression_part **parts, size_t *n_parts, struct error *err)
{
    struct parser parser = {.frame = frame,
                            .text = text,
                            .text_at = text_at,
                            .is_part = true,
                            .variables = variables,
                            .n_variables = n_variables,
                            .err = err};
    struct expression_part *made = NULL;
    size_t n = 0, capacity = 0;
    next_token(&parser);
    do
        parse_part(&parser, false, &made, &n, &capacity);
    while (parser.code == 0 && accept(&parser, "and", "&&"));
    if (is_word(&parser, "or") || is_sign(&parser, "||")) { /* "or" binds weaker than what was taken apart */
        expression_parts_free(made, n);
        made = NULL;
        n = capacity = parser.next = 0;
        next_token(&parser);
        parse_part(&parser, true, &made, &n, &capacity);
    }
    expect_end(&parser);
    buf_fini(&parser.token.text);
    if (parser.code != 0) {
        expression_parts_free(made, n);
        return parser.code;
    }
    *parts = made;
    *n_parts = n;
    return 0;
}
