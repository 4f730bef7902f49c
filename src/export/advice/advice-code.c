/* SPDX-License-Identifier: BSD-3-Clause */
/* Where execution is spent, and what its instructions are: see advice.h. They are read from the file that was measured,
 * if it is still the same; else nothing is said about them. */
#include "export/advice/advice.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "structure/listing.h"

/* A module whose instructions were asked for. */
struct code_file {
    uint32_t module;         /* string id */
    struct listing *listing; /* NULL: they cannot be read */
};

struct code_files {
    struct code_file *items; /* [n] */
    size_t n, capacity;
};

void code_files_free(struct code_files *files)
{
    for (size_t i = 0; files && i < files->n; i++)
        listing_close(files->items[i].listing);
    if (files)
        free(files->items);
    free(files);
}

/* Whether the file has not changed since the measurement began. */
static bool is_as_measured(const struct model *model, const char *path)
{
    struct stat status;
    if (*path != '/' || stat(path, &status) != 0 || !S_ISREG(status.st_mode) || model->start_ns == 0)
        return false;
    uint64_t changed_ns = (uint64_t)status.st_ctim.tv_sec * 1000000000u + (uint64_t)status.st_ctim.tv_nsec;
    return changed_ns <= model->start_ns;
}

static struct listing *listing_of(struct advices *advices, uint32_t module)
{
    const char *path = model_text(advices->report.model, module);
    struct error ignored;
    if (!advices->code)
        advices->code = calloc(1, sizeof *advices->code);
    struct code_files *files = advices->code;
    for (size_t i = 0; files && i < files->n; i++)
        if (files->items[i].module == module)
            return files->items[i].listing;
    if (!files || !vec_reserve(&files->items, &files->capacity, files->n + 1, sizeof *files->items)) {
        advices->failed = true;
        return NULL;
    }
    struct code_file *file = &files->items[files->n++];
    *file = (struct code_file){.module = module};
    if (is_as_measured(advices->report.model, path) && listing_open(path, &file->listing, &ignored) != 0)
        file->listing = NULL;
    return file->listing;
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where the samples of a row's costliest line are. */
struct code_spot {
    uint32_t module, function; /* string ids; the function is the one that another module called */
    uint64_t vaddr;            /* in the function; of the loop's first instruction, if there is one */
    bool is_loop;
    const char *file; /* of the line; NULL: not known */
    uint32_t line;
};

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

/* The scope that a scope lies in: the function that was called, or the loop around it there. */
static struct code_spot spot_of(const struct model *model, uint32_t scope)
{
    struct code_spot spot = {.line = model->scopes[scope].line};
    spot.file = model->scopes[scope].file ? model_text(model, model->scopes[scope].file) : NULL;
    for (uint32_t at = scope; at; at = model->scopes[at].parent) {
        const struct scope *here = &model->scopes[at];
        if (here->kind == SCOPE_LOOP && !spot.is_loop && here->vaddr) {
            spot.vaddr = here->vaddr;
            spot.is_loop = true;
        }
        if (here->kind != SCOPE_PROC)
            continue;
        spot.module = here->module;
        spot.function = entered(model, at);
        spot.vaddr = spot.is_loop ? spot.vaddr : here->vaddr;
        break;
    }
    return spot;
}

static bool is_of_line(const struct model *model, uint32_t scope, const struct report_line *line)
{
    const struct scope *at = &model->scopes[scope];
    if (at->line != line->line || at->file != line->file)
        return false;
    while (scope && model->scopes[scope].kind != SCOPE_PROC && model->scopes[scope].kind != SCOPE_INLINED)
        scope = model->scopes[scope].parent;
    return model->scopes[scope].name == line->function;
}

/* The costliest statement of the row's first line. */
static bool find_spot(const struct advices *advices, const struct report_row *row, struct code_spot *spot)
{
    const struct model *model = advices->report.model;
    uint32_t found = 0;
    double most = 0;
    for (size_t k = 0; row->variable && row->n_lines && k < row->variable->n_scopes; k++) {
        uint32_t first = row->variable->scopes[k], end = model_subtree_end(model, first);
        for (uint32_t i = first + 1; i < end; i++) {
            double value = model->own[i * model->n_metrics + advices->report.metric];
            if (value <= most || !is_of_line(model, i, &row->lines[0]))
                continue;
            most = value;
            found = i;
        }
    }
    *spot = found ? spot_of(model, found) : (struct code_spot){0};
    return found && spot->vaddr;
}

/* Whether the scope of a span is the wanted one, or inlined there; loops inside are others. */
static bool is_in_scope(const struct structure_function *function, uint32_t scope, uint32_t wanted)
{
    while (scope != STRUCTURE_NONE && scope != wanted && function->scopes[scope].kind == STRUCTURE_INLINED)
        scope = function->scopes[scope].parent;
    return scope == wanted;
}

/* The loop of a function that begins at vaddr; STRUCTURE_NONE when there is none. */
static uint32_t loop_at(const struct structure_function *function, uint64_t vaddr)
{
    for (uint32_t i = 1; i < function->n_scopes; i++)
        if (function->scopes[i].kind == STRUCTURE_LOOP && function->scopes[i].vaddr == vaddr)
            return i;
    return STRUCTURE_NONE;
}

static void take_span(struct listing *listing, const struct structure_function *function,
                      const struct structure_span *span, struct code_facts *facts)
{
    struct buf text = {0};
    for (uint64_t at = span->start; at < span->end;) {
        text.len_bytes = 0;
        unsigned n = listing_put(listing, function, at, &text);
        if (n == 0 || text.failed || !text.data)
            break;
        code_facts_take(facts, text.data);
        at += n;
    }
    buf_fini(&text);
}

bool code_facts_of_row(struct advices *advices, const struct report_row *row, struct code_facts *facts)
{
    struct code_spot spot;
    *facts = (struct code_facts){0};
    if (!find_spot(advices, row, &spot))
        return false;
    struct listing *listing = listing_of(advices, spot.module);
    const struct structure_function *function = listing ? listing_function(listing, spot.vaddr) : NULL;
    if (!function)
        return false;
    uint32_t loop = spot.is_loop ? loop_at(function, spot.vaddr) : STRUCTURE_NONE;
    facts->is_loop = loop != STRUCTURE_NONE;
    for (size_t i = 0; i < function->n_spans; i++) {
        const struct structure_span *span = &function->spans[i];
        bool is_line =
            !spot.line || (span->line == spot.line && span->file && spot.file && strcmp(span->file, spot.file) == 0);
        if (facts->is_loop ? is_in_scope(function, span->scope, loop) : is_line)
            take_span(listing, function, span, facts);
    }
    return facts->n_insns > 0;
}

/* --- code of the language's libraries --- */

/* The library, as people call it, that a function is in; NULL: another one, or the program. */
static const char *library_of(const struct model *model, uint32_t module)
{
    static const struct {
        const char *prefix, *name;
    } libraries[] = {{"libm.so", "libm"}, {"libm-", "libm"}, {"libmvec", "libmvec"},
                     {"libc.so", "libc"}, {"libc-", "libc"}, {"libquadmath", "libquadmath"}};
    const char *name = path_last(model_text(model, module));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (begins(name, libraries[i].prefix))
            return libraries[i].name;
    return NULL;
}

/* Appends the name that programs call a library's function by: "exp" of "__ieee754_exp_fma". */
static void put_public_name(const char *name, struct buf *out)
{
    static const char *const before[] = {"__ieee754_", "__libc_", "__GI_", "__"};
    static const char *const behind[] = {"_fma4",   "_fma",  "_avx2", "_avx",      "_sse2",
                                         "_sse4_1", "_evex", "_erms", "_unaligned"};
    size_t n;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        name += begins(name, before[i]) ? strlen(before[i]) : 0;
    n = strlen(name);
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        const char *at = strstr(name, behind[i]);
        n = at && at > name && (size_t)(at - name) < n ? (size_t)(at - name) : n;
    }
    buf_printf(out, "%.*s", (int)n, name);
}

void advice_put_code(struct advices *advices, const struct report_row *row, struct buf *words, struct buf *evidence,
                     struct buf *place)
{
    struct code_facts facts;
    struct code_spot spot;
    const struct model *model = advices->report.model;
    const char *library = find_spot(advices, row, &spot) ? library_of(model, spot.module) : NULL;
    bool is_known = code_facts_of_row(advices, row, &facts);
    if (!library && !is_known)
        return;
    buf_printf(evidence, "; ");
    if (!library) {
        code_facts_put(&facts, words, evidence);
        return;
    }
    if (is_known)
        code_facts_put_evidence(&facts, evidence);
    else
        buf_printf(evidence, "its costliest code is in %s", library);
    buf_printf(words, "%s's ", library);
    put_public_name(model_text(model, spot.function), words);
    buf_printf(
        words, "%s: call it less often%s", facts.n_rounding ? ", which switches the rounding mode each time" : "",
        begins(library, "libm") ? ", or have vectors of it (-O3 -ffast-math -march=native)" : ", or for more at once");
    (void)advice_put_caller(advices, row, place);
}
