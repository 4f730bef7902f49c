/* SPDX-License-Identifier: BSD-3-Clause */
/* Where execution is spent, and what its instructions are: see advice.h. They are read from the file that was measured,
 * if it is still the same; else nothing is said about them. */
#include "export/advice/advice.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "export/text-cells.h"
#include "structure/listing.h"

#define PLACE_LEAST ADVICE_WORTH_PERCENT /* percent of all samples: a place with less is not worth a change */

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
    const char *path = model_text(advices->report->model, module);
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
    if (is_as_measured(advices->report->model, path) && listing_open(path, &file->listing, &ignored) != 0)
        file->listing = NULL;
    return file->listing;
}

/* --- its instructions --- */

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

/* Whether other loops lie in a loop. */
static bool has_loops(const struct structure_function *function, uint32_t loop)
{
    for (uint32_t i = 1; i < function->n_scopes; i++) {
        uint32_t around = function->scopes[i].kind == STRUCTURE_LOOP ? function->scopes[i].parent : STRUCTURE_NONE;
        while (around != STRUCTURE_NONE && around != loop)
            around = function->scopes[around].parent;
        if (around != STRUCTURE_NONE)
            return true;
    }
    return false;
}

static unsigned depth_of(const struct structure_function *function, uint32_t scope)
{
    unsigned depth = 0;
    for (; scope != STRUCTURE_NONE; scope = function->scopes[scope].parent)
        depth += function->scopes[scope].kind == STRUCTURE_LOOP;
    return depth;
}

/* Marks the loops that lie in most others: is_marked [n_scopes], zeroed. Returns whether there are loops. */
static bool mark_deepest(const struct structure_function *function, bool *is_marked)
{
    unsigned deepest = 0;
    for (uint32_t i = 1; i < function->n_scopes; i++)
        if (function->scopes[i].kind == STRUCTURE_LOOP && depth_of(function, i) > deepest)
            deepest = depth_of(function, i);
    for (uint32_t i = 1; i < function->n_scopes; i++)
        is_marked[i] = function->scopes[i].kind == STRUCTURE_LOOP && depth_of(function, i) == deepest;
    return deepest > 0;
}

/* Whether the scope of a span is one of these, or inlined there. */
static bool is_in_marked(const struct structure_function *function, uint32_t scope, const bool *is_marked)
{
    while (scope != STRUCTURE_NONE && !is_marked[scope] && function->scopes[scope].kind == STRUCTURE_INLINED)
        scope = function->scopes[scope].parent;
    return scope != STRUCTURE_NONE && is_marked[scope];
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

static unsigned vector_bytes(const struct model *model)
{
    json_t *figures = model->skid ? json_loads(model->skid, 0, NULL) : NULL;
    unsigned bytes = (unsigned)json_integer_value(json_object_get(figures, "vector_bytes"));
    json_decref(figures);
    return bytes;
}

/* Takes in the instructions of a function whose lines are not known: of the loops that lie in most others, where its
 * time is most likely, if it has loops. */
static void take_function(struct advices *advices, struct listing *listing, const struct structure_function *function,
                          struct code_facts *facts)
{
    bool *is_deepest = calloc(function->n_scopes, sizeof *is_deepest);
    facts->is_loop = is_deepest && mark_deepest(function, is_deepest);
    advices->failed |= !is_deepest;
    for (size_t i = 0; is_deepest && i < function->n_spans; i++)
        if (!facts->is_loop || is_in_marked(function, function->spans[i].scope, is_deepest))
            take_span(listing, function, &function->spans[i], facts);
    free(is_deepest);
}

/* Fills in the facts of the place's loop, or of the function's line, where most of it is. False when they are not
 * known: the file is not there, is another one, or the machine's code cannot be read. */
static bool facts_of(struct advices *advices, const struct code_spot *spot, struct code_facts *facts)
{
    const struct model *model = advices->report->model;
    const struct scope *statement = &model->scopes[spot->scope];
    uint32_t around, procedure = code_function_around(model, spot->scope, &around);
    uint64_t vaddr = model->scopes[around ? around : procedure].vaddr;
    const char *file = statement->file ? model_text(model, statement->file) : NULL;
    *facts = (struct code_facts){.machine_bytes = vector_bytes(model)};
    struct listing *listing = vaddr ? listing_of(advices, spot->module) : NULL;
    const struct structure_function *function = listing ? listing_function(listing, vaddr) : NULL;
    if (!function)
        return false;
    uint32_t loop = around ? loop_at(function, vaddr) : STRUCTURE_NONE;
    facts->is_loop = loop != STRUCTURE_NONE;
    facts->has_loops = facts->is_loop && has_loops(function, loop);
    if (!facts->is_loop && !statement->line) {
        take_function(advices, listing, function, facts);
        return facts->n_insns > 0;
    }
    for (size_t i = 0; i < function->n_spans; i++) {
        const struct structure_span *span = &function->spans[i];
        bool is_line = span->line == statement->line && span->file && file && strcmp(span->file, file) == 0;
        if (facts->is_loop ? is_in_scope(function, span->scope, loop) : is_line)
            take_span(listing, function, span, facts);
    }
    return facts->n_insns > 0;
}

/* Appends the name that programs call a library's function by: "exp" of "__ieee754_exp_fma". */
static void put_public_name(const char *name, struct buf *out)
{
    static const char *const before[] = {"__ieee754_", "__libc_", "__GI_", "__"};
    static const char *const behind[] = {"_fma4",   "_fma",  "_avx2", "_avx",      "_sse2",
                                         "_sse4_1", "_evex", "_erms", "_unaligned"};
    size_t n;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        name += text_begins(name, before[i]) ? strlen(before[i]) : 0;
    n = strlen(name);
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        const char *at = strstr(name, behind[i]);
        n = at && at > name && (size_t)(at - name) < n ? (size_t)(at - name) : n;
    }
    buf_printf(out, "%.*s", (int)n, name);
}

/* Appends the name of the function: "libm's exp", "solve". */
static void put_function(const struct model *model, const struct code_spot *spot, struct buf *out)
{
    if (spot->kind == SPOT_LIBRARY) {
        buf_printf(out, "%s's ", code_library(model, spot->module));
        put_public_name(model_text(model, spot->function), out);
    } else {
        text_function(out, model_text(model, code_line_of(model, spot->scope).function));
    }
}

/* Appends the place as struct advice has it: of a library's function the line of the program with most of its calls, if
 * one has most. */
static void put_spot(const struct advices *advices, const struct code_spot *spot, const struct report_row *row,
                     const uint8_t *is_inside, struct buf *out)
{
    const struct model *model = advices->report->model;
    const char *file = path_last(model_text(model, spot->file));
    if (spot->kind == SPOT_LIBRARY) {
        (void)advice_put_caller_of(advices, row, is_inside, out);
    } else if (spot->kind == SPOT_LOOP && spot->line) {
        buf_printf(out, "loop %s:", file);
        text_lines(out, spot->line, spot->end_line);
    } else if (spot->kind == SPOT_LINE) {
        buf_printf(out, "%s:%u", file, spot->line);
    } else if (strncmp(model_text(model, code_line_of(model, spot->scope).function), "0x", 2) != 0) {
        put_function(model, spot, out);
    } else {
        (void)advice_put_caller_of(advices, row, is_inside, out);
    }
}

/* What to do about a library's function. */
static void put_library(const struct advices *advices, const struct code_spot *spot, const struct code_facts *facts,
                        struct buf *words, struct buf *evidence)
{
    const struct model *model = advices->report->model;
    const char *library = code_library(model, spot->module);
    if (facts->n_insns)
        code_facts_put_evidence(facts, evidence);
    else
        buf_printf(evidence, "its costliest code is in %s", library);
    put_function(model, spot, words);
    buf_printf(words, "%s: call it less often%s",
               facts->n_rounding ? ", which switches the rounding mode each time" : "",
               text_begins(library, "libm") ? ", or have vectors of it (-O3 -ffast-math -march=native)"
                                            : ", or for more at once");
}

/* Whether the module is Netlib's BLAS or LAPACK, which is written to be read. The optimized ones of distributions have
 * the same file names, in folders of their own. */
static bool is_reference_blas(const char *path)
{
    static const char *const names[] = {"libblas.so", "liblapack.so", "libblas64.so", "liblapack64.so"};
    static const char *const others[] = {"openblas", "blis", "atlas", "mkl", "flexiblas", "essl"};
    const char *name = path_last(path);
    bool is_such = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_such = is_such || text_begins(name, names[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is_such = is_such && !strstr(path, others[i]);
    return is_such;
}

/* Whether the instructions of a spot tell more than its name: not those of libc, which nobody is to change, and whose
 * debug information takes a quarter of a second to read. Functions of libm may switch the rounding mode. */
static bool tells(const struct model *model, const struct code_spot *spot)
{
    return spot->kind != SPOT_LIBRARY || text_begins(code_library(model, spot->module), "libm");
}

struct code_advice advice_on_code(struct advices *advices, const struct report_row *row, bool with_words,
                                  struct buf *words, struct buf *evidence)
{
    const struct model *model = advices->report->model;
    struct code_advice advice = {.share = (double)NAN};
    struct code_spot spot;
    struct code_facts facts = {0};
    double called_part = 1;
    size_t n_spots;
    if (!code_spot_find(advices, row, &spot, &n_spots))
        return advice;
    if (n_spots > 1 && spot.value < PLACE_LEAST) {
        advice.is_spread = true;
        buf_printf(words, "it is spread over %zu loops and functions, of which the largest, ", n_spots);
        put_function(model, &spot, words);
        buf_printf(words, ", has %.1f %% of the time: no one of them is worth a change", spot.value);
        return advice;
    }
    uint8_t *is_inside = calloc(model->n_scopes + 1, sizeof *is_inside);
    advice.spot = spot;
    if (is_inside) {
        advice.share = advice.all = code_spots_share(advices, &spot, 1, NULL, is_inside);
        called_part = code_called_part(advices, is_inside);
        put_spot(advices, &spot, row, is_inside, &advice.place);
    }
    advices->failed |= !is_inside || advice.place.failed;
    free(is_inside);
    buf_printf(evidence, "; %.1f %% of the time is spent at that place, with all that is called there", advice.share);
    bool is_known = with_words && tells(model, &spot) && facts_of(advices, &spot, &facts);
    facts.called_part = called_part;
    if (with_words && (is_known || spot.kind == SPOT_LIBRARY))
        buf_printf(evidence, "; ");
    if (with_words && spot.kind == SPOT_LIBRARY)
        put_library(advices, &spot, &facts, words, evidence);
    else if (is_known && is_reference_blas(model_text(model, spot.module))) {
        code_facts_put_evidence(&facts, evidence);
        buf_printf(words,
                   "%s is the reference BLAS or LAPACK, which is not optimized: install and use another, such as "
                   "OpenBLAS or BLIS",
                   path_last(model_text(model, spot.module)));
    } else if (is_known) {
        double part = code_facts_put(&facts, words, evidence);
        advice.stores = facts.n_stores > 0;
        advice.is_unsure = part < 1;
        advice.share *= part;
    }
    return advice;
}
