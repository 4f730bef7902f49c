/* SPDX-License-Identifier: BSD-3-Clause */
/* Why much of a program's data may have no name. */
#include <ctype.h>
#include <string.h>

#include "analysis/report.h"

/* The way of each interpreter to do without a compiler. */
static const struct {
    const char *name, *command;
} without_jit[] = {
    {"node", "node --jitless"},       {"nodejs", "nodejs --jitless"}, {"deno", "deno --v8-flags=--jitless"},
    {"d8", "d8 --jitless"},           {"java", "java -Xint"},         {"luajit", "luajit -joff"},
    {"pypy", "pypy --jit off"},       {"ruby", "ruby --disable-jit"}, {"php", "php -d opcache.jit=off"},
    {"julia", "julia --compile=min"},
};

/* What may follow the name of an interpreter: its version, as in java-17, ruby3.1 and luajit-2.1.0-beta3. */
static bool is_version(const char *text)
{
    text += *text == '-';
    return *text == 0 || isdigit((unsigned char)*text);
}

const char *report_without_jit(const char *program)
{
    for (size_t i = 0; program && i < sizeof without_jit / sizeof *without_jit; i++) {
        size_t len = strlen(without_jit[i].name);
        if (strncmp(program, without_jit[i].name, len) == 0 && is_version(program + len))
            return without_jit[i].command;
    }
    return NULL;
}

/* Whether a statement is in a function of no file. */
static bool is_jit(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    const char *module = model_text(model, model->scopes[scope].module);
    return scope && model->scopes[scope].role == ROLE_NONE && (!*module || strcmp(module, "[jit]") == 0);
}

double report_lost_in_jit(const struct report *report)
{
    const struct model *model = report->model;
    double value = 0;
    for (size_t r = 0; r < report->n_rows; r++) {
        const struct variable *variable = report->rows[r].variable;
        for (size_t k = 0; variable && !strcmp(report->rows[r].name, "<address lost>") && k < variable->n_scopes; k++) {
            uint32_t end = model_subtree_end(model, variable->scopes[k]);
            for (uint32_t i = variable->scopes[k] + 1; i < end; i++) {
                double own = model->own[i * model->n_metrics + report->metric];
                value += own != 0 && is_jit(model, i) ? own : 0;
            }
        }
    }
    return report->total_value > 0 ? 100 * value / report->total_value : 0;
}

double report_without_block(const struct report *report)
{
    double share = 0;
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct variable *variable = report->rows[i].variable;
        bool is_mapping = variable && variable->class == CLASS_MMAP;
        share += is_mapping || strcmp(report->rows[i].name, "<no block>") == 0 ? report->rows[i].share : 0;
    }
    return share;
}
