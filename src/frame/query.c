/* SPDX-License-Identifier: BSD-3-Clause */
/* Both forms of queries become patterns, and sets of what these find. */
#include "frame/query.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fmt/json.h"
#include "frame/expression.h"
#include "frame/pattern.h"

#define MAX_DEPTH 100

/* What the two parsers share. */
struct asked {
    const struct frame *frame;
    const struct frame_view *view;
    struct error *err;
    const char *text, *at; /* of the text form */
    int depth;
    struct query_paths *paths; /* wanted instead of the nodes, at most max_paths; NULL: nodes are wanted */
    size_t max_paths;
    bool is_longest;
};

/* Lets a pattern run, for what is wanted. */
static int run(const struct asked *asked, struct pattern *pattern, bool **found)
{
    if (asked->paths)
        return pattern_paths(pattern, asked->frame, asked->view, asked->max_paths, asked->is_longest, asked->paths,
                             asked->err);
    return pattern_run(pattern, asked->frame, asked->view, found, asked->err);
}

/* --- sets --- */

enum set_operation { SET_AND, SET_OR, SET_XOR };

static void combine(bool *to, const bool *with, size_t n, enum set_operation operation)
{
    for (size_t i = 0; i < n; i++)
        to[i] = operation == SET_AND ? to[i] && with[i] : operation == SET_OR ? to[i] || with[i] : to[i] != with[i];
}

static void invert(bool *set, size_t n)
{
    for (size_t i = 0; i < n; i++)
        set[i] = !set[i];
}

/* --- the object form --- */

static int run_json(struct asked *asked, const json_t *json, bool **found);

static const struct {
    const char *name, *function;
    bool is_of_condition; /* function(value > 5), not function(value) > 5 */
} aggregates[] = {{"any", "any", true},    {"all", "all", true},     {"sum", "sum", false},
                  {"mean", "mean", false}, {"min", "lowest", false}, {"max", "highest", false},
                  {"std", "std", false},   {"count", "count", false}};

/* Writes "value > 5" for the text of a condition on a number; false when it is none. */
static bool put_comparison(struct buf *to, const char *value, const char *condition)
{
    static const char *const signs[] = {"<=", ">=", "==", "!=", "<>", "<", ">", "="};
    const char *sign = NULL;
    char *end;
    while (isspace((unsigned char)*condition))
        condition++;
    for (size_t i = 0; !sign && i < sizeof signs / sizeof *signs; i++)
        if (strncmp(condition, signs[i], strlen(signs[i])) == 0)
            sign = signs[i];
    if (!sign)
        return false;
    condition += strlen(sign);
    while (isspace((unsigned char)*condition))
        condition++;
    const char *word = condition + (*condition == '-' || *condition == '+');
    word += strncmp(word, "np.", 3) == 0 ? 3 : 0;
    if (!isdigit((unsigned char)*word) && *word != '.' && plain_compare(word, "nan", 3) != 0 &&
        plain_compare(word, "inf", 3) != 0)
        return false;
    double number = plain_number(word, &end) * (*condition == '-' ? -1 : 1);
    while (isspace((unsigned char)*end))
        end++;
    if (*end || end == word)
        return false;
    if (isnan(number) && (*sign == '=' || *sign == '!' || strcmp(sign, "<>") == 0))
        buf_printf(to, "%s is %smissing", value, *sign == '=' ? "" : "not ");
    else
        buf_printf(to, "%s %s %.17g", value, sign, number);
    return true;
}

/* Writes the expression of one condition on what `value` is written as. */
static int put_condition(const struct asked *asked, struct buf *to, const char *name, const char *value, bool is_text,
                         const json_t *condition)
{
    size_t i;
    const json_t *item;
    if (json_is_null(condition)) {
        buf_printf(to, "%s is missing", value);
    } else if (json_is_array(condition)) {
        if (json_array_size(condition) == 0)
            return error_set(asked->err, ERR_USAGE, "query: '%.200s' has an empty list of conditions", name);
        json_array_foreach(condition, i, item)
        {
            buf_printf(to, "%s", i ? " and " : "");
            int code = json_is_array(item) ? ERR_USAGE : put_condition(asked, to, name, value, is_text, item);
            if (code != 0)
                return json_is_array(item) ? error_set(asked->err, code, "query: '%.200s' has lists in a list", name)
                                           : code;
        }
    } else if (is_text) {
        if (!json_is_string(condition))
            return error_set(asked->err, ERR_USAGE, "query: '%.200s' holds texts: its condition is a text", name);
        buf_printf(to, "%s matches ", value);
        expression_quote(to, '"', json_string_value(condition));
    } else if (json_is_number(condition)) {
        buf_printf(to, "%s = %.17g", value, json_number_value(condition));
    } else if (!json_is_string(condition) || !put_comparison(to, value, json_string_value(condition))) {
        return error_set(asked->err, ERR_USAGE,
                         "query: '%.200s' holds numbers: its condition is a number or a comparison such as \"> 5\"",
                         name);
    }
    return 0;
}

/* {"at least": [3, "> 5"]} */
static int put_at_least(const struct asked *asked, struct buf *to, const char *name, const char *value,
                        const json_t *operands)
{
    const json_t *least = json_array_get(operands, 0), *condition = json_array_get(operands, 1);
    if (json_array_size(operands) != 2 || !json_is_integer(least))
        return error_set(asked->err, ERR_USAGE, "query: '%.200s': at least is a list of a number and a condition",
                         name);
    buf_printf(to, "profiles(");
    int code = put_condition(asked, to, name, value, false, condition);
    buf_printf(to, ") >= %.17g", (double)json_integer_value(least));
    return code;
}

/* The same with an aggregate, {"any": "> 5"}. */
static int put_aggregate(const struct asked *asked, struct buf *to, const char *name, const char *value,
                         const json_t *object)
{
    const char *key = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)object));
    const json_t *condition = key ? json_object_get(object, key) : NULL;
    for (size_t i = 0; key && json_object_size(object) == 1 && i < sizeof aggregates / sizeof *aggregates; i++) {
        struct buf inner = {0};
        bool is_of_condition = aggregates[i].is_of_condition;
        if (strcmp(aggregates[i].name, key) != 0)
            continue;
        if (is_of_condition)
            buf_printf(&inner, "%s", value);
        else
            buf_printf(&inner, "%s(%s)", aggregates[i].function, value);
        buf_printf(to, "%s(", is_of_condition ? aggregates[i].function : "");
        int code =
            inner.failed ? error_memory(asked->err) : put_condition(asked, to, name, inner.data, false, condition);
        buf_printf(to, ")");
        buf_fini(&inner);
        return code;
    }
    if (key && json_object_size(object) == 1 && strcmp(key, "at least") == 0)
        return put_at_least(asked, to, name, value, condition);
    return error_set(asked->err, ERR_USAGE,
                     "query: the condition of '%.200s' has one of any, all, at least, sum, mean, min, max, std, count",
                     name);
}

/* {"depth": -1}, which is Hatchet's word for leaves. */
static bool means_leaves(const struct asked *asked, const char *name, const json_t *condition)
{
    struct buf text = {0};
    const char *words = json_string_value(condition);
    bool is_depth = strcmp(name, "depth") == 0,
         is_leaf = json_is_number(condition) && json_number_value(condition) == -1;
    for (size_t i = 0; is_depth && i < frame_n_attributes(asked->frame); i++)
        is_depth = strcmp(frame_attribute_name(asked->frame, i), name) != 0; /* one of the file's */
    if (is_depth && words && put_comparison(&text, "", words))
        is_leaf = !text.failed && strcmp(text.data, " == -1") == 0;
    buf_fini(&text);
    return is_depth && is_leaf;
}

/* Adds the condition of an object's member to an element. */
static int take_member(const struct asked *asked, size_t number, struct pattern_element *element, const char *name,
                       const json_t *condition)
{
    struct buf value = {0}, text = {0};
    struct formula *formula;
    struct error reason;
    expression_quote(&value, '\'', name);
    if (value.failed)
        return error_memory(asked->err);
    int code = expression_compile(asked->frame, value.data, EXPRESSION_NUMBER, &formula, &reason);
    bool is_text = code == ERR_USAGE;
    if (code == 0)
        formula_free(formula);
    if (code != 0 && !is_text)
        code = error_set(asked->err, code, "query: element %zu: %.800s", number, reason.text);
    else if (means_leaves(asked, name, condition))
        buf_printf(&text, "leaf = 1");
    else if (json_is_object(condition) && !is_text)
        code = put_aggregate(asked, &text, name, value.data, condition);
    else
        code = put_condition(asked, &text, name, value.data, is_text, condition);
    if (code == 0 && text.failed)
        code = error_memory(asked->err);
    if (code == 0) {
        code = expression_compile(asked->frame, text.data, EXPRESSION_CONDITION, &formula, &reason);
        if (code != 0)
            code = error_set(asked->err, code, "query: '%.200s': %.700s", name, reason.text);
        else
            code = pattern_add_condition(element, formula, asked->err);
    }
    buf_fini(&value);
    buf_fini(&text);
    return code;
}

static int take_quantifier(const struct asked *asked, struct pattern *pattern, size_t number, const json_t *quantifier)
{
    const char *text = json_string_value(quantifier);
    if (json_is_integer(quantifier) && json_integer_value(quantifier) >= 0)
        return pattern_add(pattern, 0, (uint64_t)json_integer_value(quantifier), asked->err);
    if (text && strlen(text) == 1 && strchr(".*+", *text))
        return pattern_add(pattern, *text, 0, asked->err);
    return error_set(asked->err, ERR_USAGE,
                     "query: element %zu: a quantifier is \".\", \"*\", \"+\" or a number of nodes", number);
}

static int take_element(const struct asked *asked, struct pattern *pattern, size_t number, const json_t *json)
{
    const json_t *object = json_is_object(json) ? json : NULL;
    const char *name;
    json_t *condition;
    int code;
    if (json_is_array(json)) {
        object = json_array_get(json, 1);
        if (json_array_size(json) != 2 || !json_is_object(object))
            return error_set(asked->err, ERR_USAGE, "query: element %zu: a list has a quantifier and an object",
                             number);
        code = take_quantifier(asked, pattern, number, json_array_get(json, 0));
    } else {
        code = object ? pattern_add(pattern, '.', 0, asked->err) : take_quantifier(asked, pattern, number, json);
    }
    if (code != 0 || !object)
        return code;
    json_object_foreach((json_t *)(uintptr_t)object, name, condition)
    {
        code = take_member(asked, number, &pattern->elements[pattern->n_elements - 1], name, condition);
        if (code != 0)
            return code;
    }
    return 0;
}

static int run_list(struct asked *asked, const json_t *list, bool **found)
{
    struct pattern pattern = {0};
    size_t i;
    const json_t *item;
    int code = json_array_size(list) ? 0 : error_set(asked->err, ERR_USAGE, "query: there are no elements");
    json_array_foreach(list, i, item)
    {
        code = take_element(asked, &pattern, i + 1, item);
        if (code != 0)
            break;
    }
    if (code == 0)
        code = run(asked, &pattern, found);
    pattern_fini(&pattern);
    return code;
}

static int run_set(struct asked *asked, const char *word, const json_t *of, bool **found)
{
    static const struct {
        const char *name;
        enum set_operation operation;
    } words[] = {{"and", SET_AND},  {"intersection", SET_AND}, {"or", SET_OR},
                 {"union", SET_OR}, {"xor", SET_XOR},          {"symdifference", SET_XOR}};
    size_t n = asked->frame->graph->n, i;
    const json_t *item;
    if (strcmp(word, "not") == 0) {
        int code = run_json(asked, of, found);
        if (code == 0)
            invert(*found, n);
        return code;
    }
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        bool *all = NULL;
        int code = 0;
        if (strcmp(words[w].name, word) != 0 || json_array_size(of) == 0)
            continue;
        json_array_foreach(of, i, item)
        {
            bool *one = NULL;
            code = run_json(asked, item, &one);
            if (code != 0)
                break;
            if (all)
                combine(all, one, n, words[w].operation);
            bool *spare = all ? one : NULL;
            all = all ? all : one;
            free(spare);
        }
        if (code != 0)
            free(all);
        else
            *found = all;
        return code;
    }
    return error_set(asked->err, ERR_USAGE, "query: a set is {\"and\": [query, ...]}, or, xor, or {\"not\": query}");
}

static int run_json(struct asked *asked, const json_t *json, bool **found)
{
    if (json_is_array(json))
        return run_list(asked, json, found);
    const char *word = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)json));
    if (!word || json_object_size(json) != 1)
        return error_set(asked->err, ERR_USAGE, "query: a list of elements is expected, or {\"and\": [query, ...]}");
    if (++asked->depth > MAX_DEPTH)
        return error_set(asked->err, ERR_USAGE, "query: this nests too deep");
    int code = run_set(asked, word, json_object_get(json, word), found);
    asked->depth--;
    return code;
}

/* --- the text form --- */

__attribute__((format(printf, 3, 4))) static int fail_at(const struct asked *asked, const char *at, const char *format,
                                                         ...)
{
    char reason[300];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return error_set(asked->err, ERR_USAGE, "query: character %td: %s", at - asked->text + 1, reason);
}

static void skip_blanks(struct asked *asked)
{
    while (isspace((unsigned char)*asked->at))
        asked->at++;
}

static bool accept(struct asked *asked, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(asked);
    if (plain_compare(asked->at, word, n) != 0 ||
        (isalpha((unsigned char)*word) && isalnum((unsigned char)asked->at[n])))
        return false;
    asked->at += n;
    return true;
}

/* (quantifier, name), each of which may be left out */
static int parse_node(struct asked *asked, struct pattern *pattern)
{
    char quantifier = '.';
    uint64_t times = 0;
    bool has_quantifier = true;
    if (!accept(asked, "("))
        return fail_at(asked, asked->at, "'(' is expected here");
    skip_blanks(asked);
    if (*asked->at == '"' || *asked->at == '\'') {
        quantifier = asked->at[1];
        if (!quantifier || !strchr(".*+", quantifier) || asked->at[2] != *asked->at)
            return fail_at(asked, asked->at, "a quantifier is \".\", \"*\", \"+\" or a number of nodes");
        asked->at += 3;
    } else if (isdigit((unsigned char)*asked->at)) {
        char *end;
        quantifier = 0;
        errno = 0;
        times = strtoull(asked->at, &end, 10);
        times = errno ? UINT64_MAX : times;
        asked->at = end;
    } else {
        has_quantifier = false;
    }
    int code = pattern_add(pattern, quantifier, times, asked->err);
    skip_blanks(asked);
    if (code == 0 && has_quantifier && *asked->at != ')' && !accept(asked, ","))
        return fail_at(asked, asked->at, "',' or ')' is expected here");
    skip_blanks(asked);
    const char *name = asked->at;
    while (isalnum((unsigned char)*asked->at) || *asked->at == '_')
        asked->at++;
    if (code == 0 && asked->at != name) {
        struct pattern_element *element = &pattern->elements[pattern->n_elements - 1];
        element->variable = strndup(name, (size_t)(asked->at - name));
        if (!element->variable)
            return error_memory(asked->err);
        for (size_t i = 0; i + 1 < pattern->n_elements; i++)
            if (pattern->elements[i].variable && strcmp(pattern->elements[i].variable, element->variable) == 0)
                return fail_at(asked, name, "'%.100s' is the name of two parts", element->variable);
    }
    if (code == 0 && !accept(asked, ")"))
        return fail_at(asked, asked->at, "')' is expected here");
    return code;
}

/* Where the conditions end that begin here: at a } that no quotes hold, or at the end. */
static const char *end_of_conditions(const char *at)
{
    char quote = 0;
    for (; *at && (quote || *at != '}'); at++)
        if (quote && *at == '\\' && at[1])
            at++;
        else if (quote ? *at == quote : *at == '"' || *at == '\'')
            quote = quote ? 0 : *at;
    return at;
}

static int parse_conditions(struct asked *asked, struct pattern *pattern)
{
    const char *end = end_of_conditions(asked->at);
    char *text = strndup(asked->at, (size_t)(end - asked->at));
    const char **variables = calloc(pattern->n_elements, sizeof *variables);
    struct expression_part *parts = NULL;
    size_t n_parts = 0;
    struct error reason;
    int code = text && variables ? 0 : error_memory(asked->err);
    for (size_t i = 0; code == 0 && i < pattern->n_elements; i++)
        variables[i] = pattern->elements[i].variable;
    if (code == 0) {
        code = expression_compile_parts(asked->frame, text, (size_t)(asked->at - asked->text), variables,
                                        pattern->n_elements, &parts, &n_parts, &reason);
        if (code != 0)
            code = error_set(asked->err, code, "query: %.900s", reason.text);
    }
    for (size_t i = 0; i < n_parts; i++) {
        if (code == 0)
            code = pattern_add_condition(&pattern->elements[parts[i].variable], parts[i].formula, asked->err);
        else
            formula_free(parts[i].formula);
    }
    free(parts);
    free(variables);
    free(text);
    asked->at = end;
    return code;
}

static int parse_nodes(struct asked *asked, struct pattern *pattern)
{
    int code = parse_node(asked, pattern);
    while (code == 0 && accept(asked, "->"))
        code = parse_node(asked, pattern);
    return code;
}

/* {conditions} OR {conditions}, each about the whole pattern, whose nodes are at begin: the nodes that are found with
 * one, or the other. They are joined in the order in which they stand. */
static int parse_alternatives(struct asked *asked, const char *begin, bool **found)
{
    static const char *const words[] = {"or", "xor", "and"};
    static const enum set_operation operations[] = {SET_OR, SET_XOR, SET_AND};
    bool *all = NULL;
    int code = asked->paths ? fail_at(asked, asked->at, "paths are those of one pattern with conditions") : 0;
    for (size_t operation = SIZE_MAX; code == 0;) {
        struct pattern pattern = {0};
        bool *one = NULL;
        if (!accept(asked, "{")) {
            code = fail_at(asked, asked->at, "'{' is expected here");
            break;
        }
        const char *conditions = asked->at;
        asked->at = begin;
        code = parse_nodes(asked, &pattern);
        asked->at = conditions;
        code = code == 0 ? parse_conditions(asked, &pattern) : code;
        if (code == 0 && !accept(asked, "}"))
            code = fail_at(asked, asked->at, "'}' is expected here");
        code = code == 0 ? run(asked, &pattern, &one) : code;
        pattern_fini(&pattern);
        if (code == 0 && all)
            combine(all, one, asked->frame->graph->n, operations[operation]);
        bool *spare = all ? one : NULL;
        all = all ? all : one;
        free(spare);
        for (operation = 0; operation < sizeof words / sizeof *words && !accept(asked, words[operation]);)
            operation++;
        if (operation == sizeof words / sizeof *words)
            break;
    }
    if (code == 0)
        *found = all;
    else
        free(all);
    return code;
}

static int parse_match(struct asked *asked, bool **found)
{
    struct pattern pattern = {0};
    int code = accept(asked, "match") ? 0 : fail_at(asked, asked->at, "MATCH is expected here");
    const char *begin = asked->at;
    if (code == 0)
        code = parse_nodes(asked, &pattern);
    bool has_conditions = code == 0 && accept(asked, "where");
    skip_blanks(asked);
    if (has_conditions && *asked->at == '{') {
        pattern_fini(&pattern);
        code = parse_alternatives(asked, begin, found);
        skip_blanks(asked);
        if (code == 0 && *asked->at && *asked->at != '}') {
            free(*found);
            *found = NULL;
            code = fail_at(asked, asked->at, "AND, OR, XOR or the end is expected here");
        }
        return code;
    }
    if (has_conditions)
        code = parse_conditions(asked, &pattern);
    skip_blanks(asked);
    if (code == 0 && *asked->at && *asked->at != '}')
        code = fail_at(asked, asked->at, "->, WHERE or the end is expected here");
    if (code == 0)
        code = run(asked, &pattern, found);
    pattern_fini(&pattern);
    return code;
}

static int parse_set(struct asked *asked, int level, bool **found);

/* NOT, (...), {MATCH ...} */
static int parse_one(struct asked *asked, bool **found)
{
    bool is_inverted = false;
    int code;
    while (accept(asked, "not"))
        is_inverted = !is_inverted;
    const char *begin = asked->at;
    if (accept(asked, "(")) {
        if (++asked->depth > MAX_DEPTH)
            return fail_at(asked, begin, "this nests too deep");
        code = parse_set(asked, 0, found);
        asked->depth--;
        if (code == 0 && !accept(asked, ")"))
            code = fail_at(asked, asked->at, "')' is expected here");
    } else if (accept(asked, "{")) {
        code = parse_match(asked, found);
        if (code == 0 && !accept(asked, "}"))
            code = fail_at(asked, asked->at, "'}' is expected here");
    } else {
        return fail_at(asked, asked->at, "{MATCH ...} is expected here");
    }
    if (code == 0 && is_inverted)
        invert(*found, asked->frame->graph->n);
    return code;
}

/* Sets joined by OR (level 0), XOR (1), AND (2). What was found is freed after a failure. */
static int parse_set(struct asked *asked, int level, bool **found)
{
    static const char *const words[] = {"or", "xor", "and"};
    static const enum set_operation operations[] = {SET_OR, SET_XOR, SET_AND};
    bool *all = NULL;
    int code = level == 2 ? parse_one(asked, &all) : parse_set(asked, level + 1, &all);
    while (code == 0 && accept(asked, words[level])) {
        bool *one = NULL;
        code = level == 2 ? parse_one(asked, &one) : parse_set(asked, level + 1, &one);
        if (code == 0)
            combine(all, one, asked->frame->graph->n, operations[level]);
        free(one);
    }
    if (code != 0)
        free(all);
    *found = code == 0 ? all : NULL;
    return code;
}

static int run_text(struct asked *asked, bool **found)
{
    skip_blanks(asked);
    bool is_match = plain_compare(asked->at, "match", 5) == 0;
    int code = is_match ? parse_match(asked, found) : parse_set(asked, 0, found);
    skip_blanks(asked);
    if (code == 0 && *asked->at) {
        free(*found);
        code = fail_at(asked, asked->at, "the query should end before this");
    }
    return code;
}

/* A query in either form. */
static int run_query(struct asked *asked, bool **found)
{
    skip_blanks(asked);
    const char *behind = asked->at + (*asked->at == '{');
    while (isspace((unsigned char)*behind))
        behind++;
    bool is_json = *asked->at == '[' || (*asked->at == '{' && (*behind == '"' || *behind == '}'));
    if (asked->paths && *asked->at != '[' && plain_compare(asked->at, "match", 5) != 0)
        return error_set(asked->err, ERR_USAGE, "query: character %td: paths are those of one pattern, not of a set",
                         asked->at - asked->text + 1);
    if (!is_json)
        return run_text(asked, found);
    json_error_t reason;
    json_t *json = json_loads(asked->text, JSON_REJECT_DUPLICATES, &reason);
    if (!json && (json_error_code(&reason) == json_error_out_of_memory || reason.line < 1))
        return error_memory(asked->err);
    if (!json)
        return error_set(asked->err, ERR_USAGE, "query: line %d, character %d: %s", reason.line, reason.column,
                         reason.text);
    int code = run_json(asked, json, found);
    json_decref(json);
    return code;
}

int query_run(const struct frame *frame, const char *text, const struct frame_view *view, bool **found,
              struct error *err)
{
    return run_query(&(struct asked){.frame = frame, .view = view, .err = err, .text = text, .at = text}, found);
}

int query_paths(const struct frame *frame, const char *text, const struct frame_view *view, size_t max, bool is_longest,
                struct query_paths *paths, struct error *err)
{
    struct asked asked = {.frame = frame,
                          .view = view,
                          .err = err,
                          .text = text,
                          .at = text,
                          .paths = paths,
                          .max_paths = max,
                          .is_longest = is_longest};
    bool *none = NULL;
    int code = run_query(&asked, &none);
    if (code != 0)
        query_paths_fini(paths);
    return code;
}

void query_paths_fini(struct query_paths *paths)
{
    free(paths->nodes);
    free(paths->items);
    *paths = (struct query_paths){0};
}
