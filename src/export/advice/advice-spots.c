/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in the code that can be changed by themselves: which of them has most of a row, and what all is spent there.
 * See advice.h. */
#include "export/advice/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

const char *code_library(const struct model *model, uint32_t module)
{
    static const struct {
        const char *prefix, *name;
    } libraries[] = {{"libm.so", "libm"}, {"libm-", "libm"}, {"libmvec", "libmvec"},
                     {"libc.so", "libc"}, {"libc-", "libc"}, {"libquadmath", "libquadmath"}};
    const char *name = path_last(model_text(model, module));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (text_begins(name, libraries[i].prefix))
            return libraries[i].name;
    return NULL;
}

/* The function of a module that another module called on the way to a function: "qsort_r" of "msort_with_tmp". */
static uint32_t entered(const struct model *model, uint32_t procedure)
{
    uint32_t module = model->scopes[procedure].module, name = model->scopes[procedure].name;
    for (uint32_t at = procedure; at; at = model->scopes[at].parent) {
        const struct scope *here = &model->scopes[at];
        if (here->kind == SCOPE_PROC && (here->role != ROLE_NONE || here->module != module))
            break;
        name = here->kind == SCOPE_PROC ? here->name : name;
    }
    return name;
}

uint32_t code_function_around(const struct model *model, uint32_t scope, uint32_t *loop)
{
    uint32_t at = scope;
    *loop = 0;
    for (; at && model->scopes[at].kind != SCOPE_PROC; at = model->scopes[at].parent)
        if (model->scopes[at].kind == SCOPE_LOOP && model->scopes[at].vaddr && !*loop)
            *loop = at;
    return at;
}

struct code_spot code_spot_of(const struct model *model, uint32_t scope)
{
    uint32_t loop, procedure = code_function_around(model, scope, &loop);
    const struct scope *statement = &model->scopes[scope], *around = &model->scopes[loop ? loop : procedure];
    struct code_spot spot = {.module = model->scopes[procedure].module, .scope = scope};
    if (!procedure || model->scopes[procedure].role != ROLE_NONE)
        return spot;
    spot.function = entered(model, procedure);
    if (code_library(model, spot.module)) {
        spot.kind = SPOT_LIBRARY;
        return spot;
    }
    spot.kind = loop ? SPOT_LOOP : statement->line ? SPOT_LINE : SPOT_FUNCTION;
    spot.function = loop ? code_line_of(model, loop).function : spot.function;
    spot.vaddr = around->vaddr;
    spot.file = loop ? around->file : statement->file;
    spot.line = loop ? around->line : statement->line;
    spot.end_line = loop ? around->end_line : 0;
    return spot;
}

/* Loops of the same lines of a function are one, as where it is inlined in several places: a change is one of all.
 * Those of several functions are not, as where a macro makes them. */
static bool is_by_lines(const struct code_spot *spot)
{
    return spot->kind == SPOT_LINE || (spot->kind == SPOT_LOOP && spot->line);
}

static int compare_spots(const void *a, const void *b)
{
    const struct code_spot *both[] = {a, b};
    uint64_t keys[2][7];
    for (size_t i = 0; i < 2; i++) {
        const struct code_spot *x = both[i];
        bool is_lines = is_by_lines(x);
        const uint64_t key[] = {x->kind,
                                x->module,
                                is_lines && x->kind == SPOT_LOOP ? 0 : x->vaddr,
                                x->kind == SPOT_LIBRARY || (is_lines && x->kind == SPOT_LOOP) ? x->function : 0,
                                is_lines ? x->file : 0,
                                is_lines ? x->line : 0,
                                is_lines ? x->end_line : 0};
        memcpy(keys[i], key, sizeof key);
    }
    for (size_t i = 0; i < sizeof keys[0] / sizeof *keys[0]; i++)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? -1 : 1;
    return both[0]->value > both[1]->value ? -1 : both[0]->value < both[1]->value;
}

/* Whether the statement is one of the row's: of a part of a frame those at its lines are. */
static bool is_of_row(const struct model *model, const struct report_row *row, uint32_t scope)
{
    const struct scope *at = &model->scopes[scope];
    for (size_t i = 0; row->part && i < row->n_lines; i++)
        if (at->line == row->lines[i].line && at->file == row->lines[i].file)
            return true;
    return !row->part;
}

struct code_line code_line_of(const struct model *model, uint32_t scope)
{
    struct code_line line = {.file = model->scopes[scope].file, .line = model->scopes[scope].line};
    while (scope && model->scopes[scope].kind != SCOPE_PROC && model->scopes[scope].kind != SCOPE_INLINED)
        scope = model->scopes[scope].parent;
    line.function = model->scopes[scope].name;
    return line;
}

/* Which part of what a row has at a statement is that of first touches of pages, which other instructions make, too. */
static double touched_part(const struct model *model, const struct report_row *row, uint32_t scope)
{
    double touched = 0, all = 0;
    struct code_line at = row->causes.first_touch > 0 ? code_line_of(model, scope) : (struct code_line){0};
    for (size_t i = 0; row->causes.first_touch > 0 && row->value > 0 && i < row->n_lines; i++) {
        const struct report_line *line = &row->lines[i];
        if (line->function != at.function || line->file != at.file || line->line != at.line)
            continue;
        touched += line->touched;
        all += line->value / row->value * row->share;
    }
    return all > 0 ? fmin(1, touched / all) : 0;
}

/* The places of a row's samples [*n], to be freed; NULL: out of memory, or none. */
static struct code_spot *list_spots(const struct advices *advices, const struct report_row *row, size_t *n)
{
    const struct model *model = advices->report->model;
    struct code_spot *spots = NULL;
    size_t capacity = 0;
    *n = 0;
    for (size_t k = 0; row->variable && k < row->variable->n_scopes; k++) {
        uint32_t first = row->variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + advices->report->metric];
            struct code_spot spot;
            if (value <= 0 || !is_of_row(model, row, i))
                continue;
            spot = code_spot_of(model, i);
            spot.value = value * (1 - touched_part(model, row, i));
            if (spot.kind == SPOT_NONE)
                continue;
            if (!vec_reserve(&spots, &capacity, *n + 1, sizeof *spots))
                return spots;
            spots[(*n)++] = spot;
        }
    }
    return spots;
}

bool code_spot_find(const struct advices *advices, const struct report_row *row, struct code_spot *spot,
                    size_t *n_spots)
{
    size_t n, next;
    struct code_spot *spots = list_spots(advices, row, &n);
    double all = 0;
    *spot = (struct code_spot){0};
    *n_spots = 0;
    if (n)
        qsort(spots, n, sizeof *spots, compare_spots);
    for (size_t i = 0; i < n; i = next) {
        struct code_spot sum = spots[i];
        struct code_spot key = sum;
        for (next = i + 1; next < n; next++) {
            key.value = spots[next].value;
            if (compare_spots(&key, &spots[next]) != 0)
                break;
            sum.value += spots[next].value;
        }
        ++*n_spots;
        all += sum.value;
        if (sum.value > spot->value)
            *spot = sum;
    }
    free(spots);
    spot->value = all > 0 ? spot->value / all * (row->share - row->causes.first_touch) : 0; /* of a part, too */
    return spot->kind != SPOT_NONE;
}

/* --- what a place takes, with all that is called from it --- */

#define CALLS_MAX 64 /* lines that call a function, and are told apart */

/* Which scopes of the model lie in a place, or in one of several. */
struct inside {
    const struct advices *advices;
    const struct code_spot *spots; /* [n_spots] */
    size_t n_spots;
    const struct variable *of; /* whose blocks would not be there; NULL: other code for the same */
    uint8_t *is_inside;        /* [n_scopes] */
    uint32_t *procedures;      /* [n_scopes] the function, as it was called, around each */
    struct code_line calls[CALLS_MAX];
    size_t n_calls;
};

static bool is_call(const struct inside *inside, const struct code_line *line)
{
    for (size_t i = 0; i < inside->n_calls; i++)
        if (inside->calls[i].line == line->line && inside->calls[i].file == line->file &&
            inside->calls[i].function == line->function)
            return true;
    return false;
}

/* Notes the line from which a function is called. */
static void add_call(struct inside *inside, uint32_t procedure)
{
    const struct model *model = inside->advices->report->model;
    uint32_t call = model->scopes[procedure].parent;
    struct code_line line = code_line_of(model, call);
    if (model->scopes[call].kind == SCOPE_CALL && line.line && inside->n_calls < CALLS_MAX && !is_call(inside, &line))
        inside->calls[inside->n_calls++] = line;
}

/* The label of a sample, below one of the variable's scopes, that was taken in the profiler or the allocator, or
 * waited;
 * "": of others. */
static const char *label_of(const struct report *report, const struct variable *variable, uint32_t scope)
{
    int64_t label = report_wait(report, variable, scope);
    return label >= 0 ? report->waits->labels.strings[label] : "";
}

/* Whether the allocator works there for a function. */
static bool is_for(const struct model *model, const char *label, uint32_t scope, uint32_t function)
{
    if (!text_begins(label, WAITS_ALLOCATOR))
        return false;
    for (uint32_t at = scope; at; at = model->scopes[at].parent)
        if ((model->scopes[at].kind == SCOPE_PROC || model->scopes[at].kind == SCOPE_INLINED) &&
            model->scopes[at].name == function)
            return true;
    return false;
}

/* Whether the place begins at the scope, in this function. */
static bool begins_at(const struct model *model, const struct code_spot *spot, uint32_t scope, uint32_t around)
{
    const struct scope *at = &model->scopes[scope], *procedure = &model->scopes[around];
    if (procedure->module != spot->module)
        return false;
    if (spot->kind == SPOT_LIBRARY || spot->kind == SPOT_FUNCTION)
        return at->kind == SCOPE_PROC &&
               (spot->vaddr ? at->vaddr == spot->vaddr : entered(model, scope) == spot->function);
    if (spot->kind == SPOT_LOOP && is_by_lines(spot))
        return at->kind == SCOPE_LOOP && at->file == spot->file && at->line == spot->line &&
               at->end_line == spot->end_line && code_line_of(model, scope).function == spot->function;
    if (spot->kind == SPOT_LOOP || spot->kind == SPOT_CALL)
        return at->kind == (spot->kind == SPOT_LOOP ? SCOPE_LOOP : SCOPE_CALL) && at->vaddr == spot->vaddr;
    bool is_statement = at->kind == SCOPE_LINE || at->kind == SCOPE_CALL || at->kind == SCOPE_INSTRUCTION;
    return is_statement && procedure->vaddr == spot->vaddr && at->line == spot->line && at->file == spot->file;
}

/* Marks which scopes below a variable lie in the place. */
static void mark_scopes(struct inside *inside, uint32_t first, uint32_t end)
{
    const struct model *model = inside->advices->report->model;
    enum spot_kind kind = inside->of ? SPOT_NONE : inside->spots->kind;
    inside->is_inside[first] = false;
    inside->procedures[first] = 0;
    for (uint32_t i = first + 1; i < end; i++) {
        const struct scope *at = &model->scopes[i];
        bool is_left = at->kind == SCOPE_PROC && kind == SPOT_FUNCTION && !code_library(model, at->module);
        bool is_new = false;
        inside->procedures[i] = at->kind == SCOPE_PROC ? i : inside->procedures[at->parent];
        for (size_t k = 0; k < inside->n_spots && !is_new; k++)
            is_new = begins_at(model, &inside->spots[k], i, inside->procedures[i]);
        inside->is_inside[i] = is_new || (inside->is_inside[at->parent] && !is_left);
        if (is_new && kind == SPOT_LIBRARY && !inside->is_inside[at->parent])
            add_call(inside, i);
    }
}

/* The row of a variable, if some of it is that of first touches, which stay whatever the code is; else NULL. */
static const struct report_row *touched_row(const struct inside *inside, const struct variable *variable)
{
    const struct report *report = inside->advices->report;
    bool stays = !inside->of && inside->spots->kind != SPOT_LIBRARY;
    for (size_t i = 0; stays && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        if (row->variable == variable && !row->part && !row->is_waiting && row->causes.first_touch > 0)
            return row;
    }
    return NULL;
}

/* The samples of a variable in the place, and at lines that call it. */
static double value_inside(const struct inside *inside, const struct variable *variable)
{
    const struct report *report = inside->advices->report;
    const struct model *model = report->model;
    const struct report_row *touched = touched_row(inside, variable);
    double sum = 0;
    for (size_t k = 0; k < variable->n_scopes; k++) {
        uint32_t first = variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + report->metric];
            const char *label = value > 0 ? label_of(report, variable, i) : WAITS_PROFILER;
            struct code_line line;
            if (strcmp(label, WAITS_PROFILER) == 0)
                continue;
            line = inside->n_calls && !inside->is_inside[i] ? code_line_of(model, i) : (struct code_line){0};
            if (inside->is_inside[i] || variable == inside->of || (line.line && is_call(inside, &line)) ||
                (inside->of && is_for(model, label, i, inside->of->function)))
                sum += touched ? value * (1 - touched_part(model, touched, i)) : value;
        }
    }
    return sum;
}

/* What of each variable's time may be saved, [n_variables of the report], to be freed: with other instructions what
 * waits for memory for certain goes on waiting. A call that is not made, or a block that is not there, saves all. */
static double *parts_of_code(const struct inside *inside)
{
    const struct report *report = inside->advices->report;
    double *parts = calloc(report->n_variables + 1, sizeof *parts);
    double *shares = calloc(report->n_variables + 1, sizeof *shares);
    bool is_all = inside->of || inside->spots->kind == SPOT_LIBRARY;
    for (size_t i = 0; parts && shares && !is_all && i < report->n_rows; i++) {
        const struct report_row *row = &report->rows[i];
        size_t at =
            row->variable && !row->is_waiting ? (size_t)(row->variable - report->variables) : report->n_variables;
        shares[at] += row->share;
        parts[at] += row->causes.memory_low;
    }
    for (size_t v = 0; parts && shares && v < report->n_variables; v++)
        parts[v] = shares[v] > 0 ? 1 - parts[v] / shares[v] : 1;
    bool ok = shares;
    free(shares);
    if (ok)
        return parts;
    free(parts);
    return NULL;
}

/* Marks which scopes of the model lie in the places. */
static bool mark_places(struct inside *inside)
{
    const struct report *report = inside->advices->report;
    inside->procedures = calloc(report->model->n_scopes + 1, sizeof *inside->procedures);
    for (size_t v = 0; inside->procedures && v < report->n_variables; v++)
        for (size_t k = 0; k < report->variables[v].n_scopes; k++) {
            uint32_t first = report->variables[v].scopes[k];
            mark_scopes(inside, first, model_subtree_end(report->model, first));
        }
    return inside->procedures;
}

double code_spots_share(struct advices *advices, const struct code_spot *spots, size_t n, const struct variable *of,
                        uint8_t *is_inside)
{
    const struct report *report = advices->report;
    struct inside inside = {.advices = advices, .spots = spots, .n_spots = n, .of = of, .is_inside = is_inside};
    double sum = 0;
    double *parts = parts_of_code(&inside);
    bool ok = parts && mark_places(&inside);
    advices->failed |= !ok;
    for (size_t v = 0; ok && v < report->n_variables; v++)
        sum += parts[v] * value_inside(&inside, &report->variables[v]);
    free(inside.procedures);
    free(parts);
    return report->total_value > 0 ? fmin(100, 100 * sum / report->total_value) : 0;
}

double code_spot_part(struct advices *advices, const struct code_spot *spot, const struct code_spot *around,
                      uint8_t *is_inside)
{
    const struct report *report = advices->report;
    struct inside inside = {.advices = advices, .spots = around, .n_spots = 1, .is_inside = is_inside};
    double all = 0, part = 0;
    bool ok = mark_places(&inside);
    advices->failed |= !ok;
    for (size_t v = 0; ok && v < report->n_variables; v++)
        for (size_t k = 0; k < report->variables[v].n_scopes; k++) {
            uint32_t first = report->variables[v].scopes[k], end = model_subtree_end(report->model, first);
            for (uint32_t i = first + 1; i < end; i++) {
                double value = report->model->own[i * report->model->n_metrics + report->metric];
                struct code_spot at = value > 0 ? code_spot_of(report->model, i) : (struct code_spot){0};
                at.value = spot->value;
                if (value <= 0 || compare_spots(&at, spot) != 0)
                    continue;
                all += value;
                part += is_inside[i] ? value : 0;
            }
        }
    free(inside.procedures);
    return all > 0 ? part / all : 0;
}

/* Whether a scope in the place lies in a function that is called from there. */
static bool is_called(const struct model *model, const uint8_t *is_inside, uint32_t scope)
{
    for (; scope && is_inside[scope]; scope = model->scopes[scope].parent)
        if (model->scopes[scope].kind == SCOPE_PROC && is_inside[model->scopes[scope].parent])
            return true;
    return false;
}

double code_called_part(const struct advices *advices, const uint8_t *is_inside)
{
    const struct report *report = advices->report;
    double all = 0, called = 0;
    for (size_t v = 0; v < report->n_variables; v++)
        for (size_t k = 0; k < report->variables[v].n_scopes; k++) {
            uint32_t first = report->variables[v].scopes[k], end = model_subtree_end(report->model, first);
            for (uint32_t i = first + 1; i < end; i++) {
                double value = is_inside[i] ? report->model->own[i * report->model->n_metrics + report->metric] : 0;
                all += value;
                called += value > 0 && is_called(report->model, is_inside, i) ? value : 0;
            }
        }
    return all > 0 ? called / all : 1;
}
