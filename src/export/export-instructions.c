/* SPDX-License-Identifier: BSD-3-Clause */
/* annotate --instructions: the machine code of a file or of functions with the source lines between, what each
 * instruction costs and which variables it touches, as text, CSV and JSON. Functions are found by the samples in them;
 * their code is read from the modules that were measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/build/symbolize.h"
#include "base/path.h"
#include "export/annotation.h"
#include "export/text-cells.h"
#include "structure/listing.h"

#define CONTEXT_INSTRUCTIONS 3
#define HOT_SHARE 0.5 /* percent of everything, from which an instruction is shown as text */

/* A module whose code is shown. */
struct code_file {
    uint32_t module; /* string id */
    struct listing *listing;
};

/* A function of a module. */
struct machine_function {
    const struct structure_function *function;
    struct listing *listing;
    uint32_t module;
    bool is_whole; /* all of it is wanted, and not only what is inlined there or in a file */
};

struct instruction {
    uint32_t function; /* index */
    uint32_t line;
    uint64_t vaddr;
    const char *file;           /* NULL: not known */
    const struct code_row *row; /* what it costs, or its line where instructions were not kept; NULL: nothing */
    size_t text;                /* place in texts */
    bool is_shown;
};

struct machine_code {
    const struct export_job *job;
    struct annotation subject;
    struct code_table table; /* of all instructions */
    bool has_costs;          /* of instructions, and not only of lines */
    bool has_lines;          /* where that is false: some instruction has a line */
    struct code_file *files; /* [n_files] */
    size_t n_files, cap_files;
    struct machine_function *functions; /* [n_functions] by module and address */
    size_t n_functions, cap_functions;
    struct slots function_slots;
    struct instruction *list; /* [n] */
    size_t n, capacity;
    struct buf texts; /* of the instructions, each with a zero behind it */
    struct strtab source_names;
    struct source_lines *sources; /* [source_names.n_strings] */
    size_t cap_sources;
    double own, rest; /* of what is listed, and of this what is not shown */
    size_t n_left;
};

static void machine_code_fini(struct machine_code *code)
{
    annotation_fini(&code->subject);
    code_table_fini(&code->table);
    for (size_t i = 0; i < code->n_files; i++)
        listing_close(code->files[i].listing);
    for (size_t i = 0; i < code->source_names.n_strings; i++)
        source_lines_fini(&code->sources[i]);
    free(code->files);
    free(code->functions);
    slots_fini(&code->function_slots);
    free(code->list);
    buf_fini(&code->texts);
    strtab_fini(&code->source_names);
    free(code->sources);
}

/* --- which functions --- */

/* Addresses mean something in the file that was measured only. */
static int check_file(const struct model *model, uint32_t module, struct error *err)
{
    const char *path = model_text(model, module);
    if (*path != '/')
        return error_set(err, ERR_UNSUPPORTED, "%s is no file: its machine code cannot be shown",
                         *path ? path : "the module of the code");
    if (access(path, R_OK) != 0)
        return error_set(err, ERR_NOT_FOUND,
                         "%s is not readable here: its machine code is needed from the file that was measured", path);
    for (size_t i = 0; i < model->n_builds; i++)
        if (model->builds[i].module == module && !symbolizer_is_build(path, model->builds[i].build))
            return error_set(err, ERR_NOT_FOUND, "%s is another build than the one that was measured", path);
    return 0;
}

static int open_file(struct machine_code *code, uint32_t module, struct listing **listing, struct error *err)
{
    for (size_t i = 0; i < code->n_files; i++)
        if (code->files[i].module == module) {
            *listing = code->files[i].listing;
            return 0;
        }
    if (!vec_reserve(&code->files, &code->cap_files, code->n_files + 1, sizeof *code->files))
        return error_memory(err);
    int status = check_file(code->job->model, module, err);
    if (status == 0)
        status = listing_open(model_text(code->job->model, module), listing, err);
    if (status == ERR_FORMAT) /* something else has the name now */
        status = err ? err->code = ERR_NOT_FOUND : ERR_NOT_FOUND;
    if (status == 0)
        code->files[code->n_files++] = (struct code_file){module, *listing};
    return status;
}

static bool is_same_function(const void *one, const void *other)
{
    const struct machine_function *a = one, *b = other;
    return a->function == b->function;
}

static uint64_t hash_of_function(const void *item)
{
    const struct machine_function *function = item;
    return (uintptr_t)function->function * UINT64_C(0x9e3779b97f4a7c15);
}

/* Adds the function around an address of a module; one that nothing is known of is left out. */
static int add_function(struct machine_code *code, uint32_t module, uint64_t vaddr, bool is_whole, struct error *err)
{
    static const struct slots_kind kind = {sizeof(struct machine_function), hash_of_function, is_same_function};
    struct machine_function like = {.module = module};
    int status = open_file(code, module, &like.listing, err);
    if (status != 0)
        return status;
    like.function = listing_function(like.listing, vaddr);
    if (!like.function)
        return 0;
    size_t at =
        slots_put(&code->function_slots, &kind, &code->functions, &code->n_functions, &code->cap_functions, &like);
    if (at == SLOTS_NONE)
        return error_memory(err);
    code->functions[at].is_whole |= is_whole;
    return 0;
}

static bool is_named(const struct annotation *subject, const struct scope *function)
{
    bool is_one = false;
    for (size_t i = 0; !is_one && i < subject->n_names; i++)
        is_one = function->name == subject->names[i];
    return is_one && function->file == subject->functions.file;
}

/* Adds the function that a scope lies in, if the subject is there. */
static int visit_scope(struct machine_code *code, uint32_t scope, struct error *err)
{
    const struct scope *scopes = code->job->model->scopes, *at = &scopes[scope];
    const struct annotation *subject = &code->subject;
    uint32_t inner = scope;
    while (inner && !model_is_procedure(&scopes[inner]))
        inner = scopes[inner].parent;
    uint32_t outer = inner;
    while (outer && scopes[outer].kind != SCOPE_PROC)
        outer = scopes[outer].parent;
    bool is_wanted = subject->n_names ? is_named(subject, &scopes[inner]) : at->file == subject->file;
    bool has_address = at->kind == SCOPE_CALL || at->kind == SCOPE_LOOP || at->kind == SCOPE_INSTRUCTION;
    uint64_t vaddr = has_address ? at->vaddr : scopes[outer].vaddr;
    if (!is_wanted || !outer || scopes[outer].role != ROLE_NONE || !vaddr)
        return 0;
    return add_function(code, scopes[outer].module, vaddr, subject->n_names && inner == outer, err);
}

static int compare_functions(const void *a, const void *b, void *context)
{
    const struct machine_function *x = a, *y = b;
    if (x->module != y->module)
        return strcmp(model_text(context, x->module), model_text(context, y->module));
    uint64_t one = x->function->scopes[0].vaddr, other = y->function->scopes[0].vaddr;
    return one < other ? -1 : one > other;
}

/* Adds the functions of the rows, where there are no scopes. */
static int visit_rows(struct machine_code *code, struct error *err)
{
    const struct annotation *subject = &code->subject;
    int status = 0;
    if (!code->has_costs)
        return error_set(err, ERR_NOT_FOUND, "%s does not say at which addresses its costs are%s",
                         code->job->model->program, "; callgrind does where it was given --dump-instr=yes");
    for (size_t i = 0; status == 0 && i < code->table.n_rows; i++) {
        const struct code_row *row = &code->table.rows[i];
        if (row->vaddr && (subject->n_names || row->file == subject->file))
            status = add_function(code, row->module, row->vaddr, subject->n_names > 0, err);
    }
    return status;
}

static int find_functions(struct machine_code *code, struct error *err)
{
    struct model *model = (struct model *)(uintptr_t)code->job->model;
    int status = model->code ? visit_rows(code, err) : 0;
    for (uint32_t i = 1; status == 0 && i < model->n_scopes; i++)
        if (model_value(model, i, code->job->metric) != 0)
            status = visit_scope(code, i, err);
    if (status == 0 && code->n_functions == 0)
        return error_set(err, ERR_NOT_FOUND, "no machine code is known of '%s': %s has no symbols for it",
                         code->job->subject, code->n_files ? model_text(model, code->files[0].module) : "its module");
    if (code->n_functions)
        qsort_r(code->functions, code->n_functions, sizeof *code->functions, compare_functions, model);
    return status;
}

/* --- their instructions --- */

/* Whether a span of a function is a part of the subject. */
static bool is_span_wanted(const struct machine_code *code, const struct machine_function *of,
                           const struct structure_span *span)
{
    const struct model *model = code->job->model;
    const struct annotation *subject = &code->subject;
    if (of->is_whole)
        return true;
    if (!subject->n_names)
        return span->file && strcmp(span->file, model_text(model, subject->file)) == 0;
    for (uint32_t at = span->scope; at != STRUCTURE_NONE; at = of->function->scopes[at].parent)
        for (size_t i = 0; of->function->scopes[at].kind == STRUCTURE_INLINED && i < subject->n_names; i++)
            if (strcmp(of->function->scopes[at].name, model_text(model, subject->names[i])) == 0)
                return true;
    return false;
}

static bool add_span(struct machine_code *code, uint32_t function, const struct structure_span *span)
{
    const struct machine_function *of = &code->functions[function];
    for (uint64_t at = span->start; at < span->end;) {
        struct instruction made = {.function = function, .line = span->line, .vaddr = at, .file = span->file};
        made.text = code->texts.len_bytes;
        unsigned n = listing_put(of->listing, of->function, at, &code->texts);
        buf_append(&code->texts, "", 1);
        if (n == 0)
            break;
        if (code->texts.failed || !vec_reserve(&code->list, &code->capacity, code->n + 1, sizeof *code->list))
            return false;
        code->list[code->n++] = made;
        at += n;
    }
    return true;
}

static bool list_instructions(struct machine_code *code)
{
    bool ok = true;
    for (uint32_t i = 0; i < code->n_functions; i++) {
        const struct structure_function *function = code->functions[i].function;
        for (size_t k = 0; ok && k < function->n_spans; k++)
            if (is_span_wanted(code, &code->functions[i], &function->spans[k]))
                ok = add_span(code, i, &function->spans[k]);
    }
    return ok;
}

/* --- what they cost --- */

/* Rows of instructions by their addresses; those of lines, which have none, by function and place. */
static int compare_rows(const void *a, const void *b)
{
    const struct code_row *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->vaddr != y->vaddr || x->vaddr)
        return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->file != y->file ? (x->file < y->file ? -1 : 1) : x->line < y->line ? -1 : x->line > y->line;
}

/* The name of the innermost function at an instruction, as a string id; 0: not known. */
static uint32_t function_at(const struct machine_code *code, const struct instruction *at)
{
    const struct structure_function *function = code->functions[at->function].function;
    uint32_t scope = structure_span_at(function, at->vaddr);
    scope = scope == STRUCTURE_NONE ? 0 : function->spans[scope].scope;
    while (function->scopes[scope].kind == STRUCTURE_LOOP)
        scope = function->scopes[scope].parent;
    const char *name = function->scopes[scope].name;
    int64_t id = name ? strtab_find(&code->job->model->strings, name) : -1;
    return id < 0 ? 0 : (uint32_t)id;
}

/* Gives each instruction its row: that of its address, or of its line where instructions were not kept; where the
 * module has no lines, that of the function. */
static void find_costs(struct machine_code *code)
{
    const struct code_table *table = &code->table;
    for (size_t i = 0; table->n_rows && i < code->n; i++) {
        struct instruction *at = &code->list[i];
        struct code_row like = {.module = code->functions[at->function].module, .vaddr = at->vaddr};
        if (!code->has_costs) {
            int64_t file = at->file ? strtab_find(&code->job->model->strings, at->file) : -1;
            like.vaddr = 0;
            like.function = function_at(code, at);
            like.file = !at->file ? code->subject.file : file < 0 ? 0 : (uint32_t)file;
            like.line = at->line;
            code->has_lines |= at->line != 0;
        }
        at->row = bsearch(&like, table->rows, table->n_rows, sizeof *table->rows, compare_rows);
        if (at->row && at->row->own == 0)
            at->row = NULL;
    }
}

static int compare_costs(const void *a, const void *b)
{
    const struct code_row *x = *(const struct code_row *const *)a, *y = *(const struct code_row *const *)b;
    return x->own != y->own ? (x->own < y->own ? 1 : -1) : compare_rows(x, y);
}

/* is_hot [n_rows]: the rows of what is listed that cost the least part and are among the first ones; sums up all. */
static bool find_hot(struct machine_code *code, double least, bool *is_hot)
{
    const struct code_table *table = &code->table;
    const struct code_row **rows = calloc(table->n_rows + 1, sizeof *rows);
    size_t n = 0, n_hot = 0;
    for (size_t i = 0; rows && i < code->n; i++) {
        const struct code_row *row = code->list[i].row;
        if (!row || is_hot[row - table->rows])
            continue;
        is_hot[row - table->rows] = true;
        rows[n++] = row;
    }
    if (n)
        qsort(rows, n, sizeof *rows, compare_costs);
    for (size_t i = 0; i < n; i++) {
        bool is_shown =
            percent_of(rows[i]->own, table->total) >= least && (code->job->top == 0 || n_hot < code->job->top);
        is_hot[rows[i] - table->rows] = is_shown || code->job->with_unused;
        n_hot += is_shown;
        code->own += rows[i]->own;
        code->rest += is_shown || code->job->with_unused ? 0 : rows[i]->own;
        code->n_left += !is_shown && !code->job->with_unused;
    }
    free(rows);
    return rows != NULL;
}

/* Marks what is shown: what is hot, some instructions around it, or all. */
static bool choose_shown(struct machine_code *code, double least, size_t context)
{
    const struct code_table *table = &code->table;
    bool *is_hot = calloc(table->n_rows + 1, sizeof *is_hot), ok = is_hot && find_hot(code, least, is_hot);
    size_t reach = 0; /* so many instructions from here on are shown as context */
    uint32_t function = UINT32_MAX;
    for (size_t i = 0; ok && i < code->n; i++) {
        struct instruction *at = &code->list[i];
        bool is_one = at->row && is_hot[at->row - table->rows];
        reach = is_one ? context + 1 : function == at->function ? reach : 0;
        function = at->function;
        at->is_shown = code->job->with_unused || reach > 0;
        reach -= reach > 0;
        for (size_t k = 1; is_one && k <= context && k <= i && code->list[i - k].function == at->function; k++)
            code->list[i - k].is_shown = true;
    }
    free(is_hot);
    return ok;
}

static int machine_code_make(struct machine_code *code, const struct export_job *job, double least, size_t context,
                             struct error *err)
{
    const struct code_source *source = job->model->code;
    *code = (struct machine_code){.job = job, .has_costs = model_has_instructions(job->model)};
    int status = annotation_find(&code->subject, job, err);
    if (status != 0)
        return status;
    status = code_table_make(job->model, job->metric, CODE_INSTRUCTION,
                             source && code->subject.n_names ? &code->subject.functions : NULL, &code->table, err);
    if (status == 0)
        status = find_functions(code, err);
    if (status == 0 && code->table.n_rows)
        qsort(code->table.rows, code->table.n_rows, sizeof *code->table.rows, compare_rows);
    if (status == 0 && !list_instructions(code))
        status = error_memory(err);
    if (status == 0 && code->n == 0)
        status = error_set(err, ERR_NOT_FOUND, "%s holds no machine code of '%s': it is cut off, or another build",
                           model_text(job->model, code->functions[0].module), job->subject);
    if (status == 0)
        find_costs(code);
    if (status == 0 && !choose_shown(code, least, context))
        status = error_memory(err);
    if (status != 0)
        machine_code_fini(code);
    return status;
}

static const char *text_of(const struct machine_code *code, const struct instruction *at)
{
    return code->texts.data + at->text;
}

/* --- text --- */

#define ADDRESS_LEAST 8 /* characters */
#define SOFTWARE_METRIC "EADDR (usec)"

/* The copy of a file, read when it is first needed; NULL when out of memory. */
static const struct source_lines *source_of(struct machine_code *code, const char *file)
{
    int64_t known = strtab_find(&code->source_names, file);
    if (known >= 0)
        return &code->sources[known];
    if (!vec_reserve(&code->sources, &code->cap_sources, code->source_names.n_strings + 1, sizeof *code->sources))
        return NULL;
    struct source_lines lines = {0};
    bool ok = source_lines_read(code->job->directory, file, &lines);
    int64_t i = ok ? strtab_intern(&code->source_names, file) : -1;
    if (i < 0) {
        source_lines_fini(&lines);
        return NULL;
    }
    code->sources[i] = lines;
    return &code->sources[i];
}

static void put_head(const struct machine_code *code, struct buf *out)
{
    const struct export_job *job = code->job;
    const struct model *model = job->model;
    struct buf text = {0};
    text_program(out, job);
    annotation_put_functions(&code->subject, &text);
    if (text.len_bytes)
        text_labelled(out, job, code->subject.n_names == 1 ? "function" : "functions", text.data);
    text_labelled(out, job, "file", model_text(model, code->subject.file));
    for (size_t i = 0; i < code->n_files; i++)
        text_labelled(out, job, i ? "" : "module", model_text(model, code->files[i].module));
    buf_fini(&text);
    buf_printf(&text, "%.1f %% of %s", percent_of(code->own, code->table.total), model->metrics[job->metric].name);
    if (!code->has_costs)
        buf_printf(&text, ", known by %s only: hpcprof --instructions keeps what each instruction costs",
                   code->has_lines ? "line" : "function");
    text_labelled(out, job, "share", text.data ? text.data : "");
    buf_fini(&text);
    if (code->has_costs && strcmp(model->metrics[job->metric].name, SOFTWARE_METRIC) == 0)
        text_labelled(out, job, "note",
                      "the time of an access that waits stands at the instruction behind it, where the program was "
                      "interrupted");
}

/* The width of the column of addresses and line numbers. */
static int address_width(const struct machine_code *code)
{
    size_t width = ADDRESS_LEAST;
    for (size_t i = 0; i < code->n; i++)
        for (uint64_t rest = code->list[i].vaddr >> (4 * width); rest; rest >>= 4)
            width++;
    return (int)width;
}

static void put_share(const struct machine_code *code, const struct code_row *row, struct buf *out)
{
    if (row)
        buf_printf(out, "%5.1f %%  ", percent_of(row->own, code->table.total));
    else
        buf_printf(out, "%9s", "");
}

/* Appends the two last cells of a row, a text and the data of the costs beside it. */
static void put_cells(const struct machine_code *code, const char *text, const struct code_row *row, size_t used,
                      struct buf *out)
{
    const struct export_job *job = code->job;
    size_t of_data = job->columns / 4, left = job->columns > used ? job->columns - used : 1;
    struct buf data = {0};
    if (row)
        code_put_data(&code->table, row, &data);
    if (data.len_bytes && left > of_data + 2) {
        text_cell(out, job, text, left - of_data - 2, false);
        buf_printf(out, "  ");
        text_cut(out, job, data.data, of_data);
    } else {
        text_cut(out, job, text, left);
    }
    text_end_line(out);
    buf_fini(&data);
}

/* The line of the source that the instructions below it were made from, with its costs if only these are known. */
static void put_source_line(struct machine_code *code, const struct instruction *at, int width, bool is_first,
                            struct buf *out)
{
    const struct export_job *job = code->job;
    const struct source_lines *source = at->file ? source_of(code, at->file) : NULL;
    const struct code_row *row = code->has_costs || !is_first ? NULL : at->row;
    bool is_elsewhere = at->file && strcmp(at->file, model_text(job->model, code->subject.file)) != 0;
    struct buf text = {0};
    out->failed |= at->file && !source;
    if (!at->file || !at->line)
        return;
    if (is_elsewhere)
        buf_printf(&text, "%s: ", path_last(at->file));
    if (source)
        source_lines_put(source, at->line, &text);
    put_share(code, row, out);
    buf_printf(out, "%*u  ", width, at->line);
    text_style(out, job, row ? TEXT_PLAIN : TEXT_DIM);
    put_cells(code, text.data ? text.data : "", row, 9 + (size_t)width + 2, out);
    text_style(out, job, TEXT_PLAIN);
    out->failed |= text.failed;
    buf_fini(&text);
}

static void put_function_line(const struct machine_code *code, const struct instruction *at, struct buf *out)
{
    const struct structure_scope *function = &code->functions[at->function].function->scopes[0];
    struct buf name = {0};
    text_function(&name, function->name ? function->name : "?");
    text_style(out, code->job, TEXT_BOLD);
    buf_printf(out, "\n%s\n", name.data ? name.data : "");
    text_style(out, code->job, TEXT_PLAIN);
    buf_fini(&name);
}

static bool is_same_line(const struct instruction *a, const struct instruction *b)
{
    return a->line == b->line && a->file && b->file && strcmp(a->file, b->file) == 0;
}

/* Puts what is shown. is_seen [n_rows], all false: the rows of lines that were shown. */
static void put_list(struct machine_code *code, bool *is_seen, struct buf *out)
{
    int width = address_width(code);
    const struct instruction *last = NULL;
    for (size_t i = 0; i < code->n; i++) {
        const struct instruction *at = &code->list[i];
        if (!at->is_shown)
            continue;
        bool is_new = !last || last->function != at->function, is_gap = !is_new && last != at - 1;
        if (is_new)
            put_function_line(code, at, out);
        if (is_gap || (is_new && i && code->list[i - 1].function == at->function))
            buf_printf(out, "%*s\n", 9 + width, "...");
        if (is_new || is_gap || !is_same_line(last, at)) {
            bool *is_known = at->row ? &is_seen[at->row - code->table.rows] : NULL;
            put_source_line(code, at, width, !is_known || !*is_known, out);
            if (is_known)
                *is_known = true;
        }
        put_share(code, code->has_costs ? at->row : NULL, out);
        buf_printf(out, "%*llx    ", width, (unsigned long long)at->vaddr);
        put_cells(code, text_of(code, at), code->has_costs ? at->row : NULL, 9 + (size_t)width + 4, out);
        last = at;
    }
}

static int instructions_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct machine_code code;
    int status = machine_code_make(&code, job, job->least < 0 ? HOT_SHARE : job->least, CONTEXT_INSTRUCTIONS, err);
    if (status != 0)
        return status;
    bool *is_seen = calloc(code.table.n_rows + 1, sizeof *is_seen);
    put_head(&code, out);
    text_style(out, job, TEXT_BOLD);
    int width = address_width(&code), of_text = (int)(job->columns - job->columns / 4) - width - 13;
    buf_printf(out, "\n    own  %*s  %-*s  %s", width, "line", of_text > 0 ? of_text : 0, "source and machine code",
               code_data_title(job->model));
    text_end_line(out);
    text_style(out, job, TEXT_PLAIN);
    if (is_seen)
        put_list(&code, is_seen, out);
    if (code.n_left)
        buf_printf(out, "%5.1f %%  %zu more with samples (--%s 0 shows all)\n", percent_of(code.rest, code.table.total),
                   code.n_left, job->top ? "top" : "min");
    status = !is_seen || out->failed ? error_memory(err) : 0;
    free(is_seen);
    machine_code_fini(&code);
    return status;
}

/* --- CSV and JSON --- */

static const struct column head_columns[] = {
    {"total", NULL, CELL_NUMBER},
    {"own", NULL, CELL_NUMBER},
    {"has_costs", NULL, CELL_FLAG},
};

static const struct column place_columns[] = {
    {"function", NULL, CELL_TEXT},
    {"module", NULL, CELL_TEXT},
    {"address", NULL, CELL_TEXT},
    {"file", NULL, CELL_TEXT},
    {"line", NULL, CELL_COUNT},
    {"own", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_ALL_DIGITS},
    {"own_share", NULL, CELL_PERCENT | COLUMN_LEFT_OUT | COLUMN_6_DIGITS},
    {"line_own", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_ALL_DIGITS},
};

static const struct column text_columns[] = {{"instruction", NULL, CELL_TEXT}};

static void fill_instruction(struct table *rows, const struct machine_code *code, const struct instruction *at)
{
    static const struct code_row none = {0};
    const struct machine_function *of = &code->functions[at->function];
    const struct code_row *row = at->row ? at->row : &none;
    struct buf address = {0};
    buf_printf(&address, "0x%llx", (unsigned long long)at->vaddr);
    table_put_name(rows, of->function->scopes[0].name);
    table_put_name(rows, model_text(code->job->model, of->module));
    table_put_made(rows, &address);
    table_put_name(rows, at->file);
    table_put_if(rows, at->line > 0, at->line);
    table_put_number(rows, code->has_costs ? row->own : NAN);
    table_put_number(rows, code->has_costs ? percent_of(row->own, code->table.total) : NAN);
    table_put_number(rows, code->has_costs || !at->line ? NAN : row->own);
    code_fill_data(&code->table, code->has_costs ? row : &none, rows); /* those of a line are not its own */
    table_put_text(rows, text_of(code, at));
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct machine_code code;
    int status = machine_code_make(&code, job, job->least, 0, err);
    if (status != 0)
        return status;
    column_list_add(&answer->columns, COLUMNS(place_columns));
    column_list_add(&answer->columns, &code_cost_columns[CODE_COSTS], CODE_DATA);
    column_list_add(&answer->columns, COLUMNS(text_columns));
    answer_begin(answer, "instructions", NULL, 0);
    answer->rows.n_more = code.n_left;
    struct table *head = answer_set_head(answer, COLUMNS(head_columns));
    table_put_number(head, code.table.total);
    table_put_number(head, code.own);
    table_put_flag(head, code.has_costs);
    for (size_t i = 0; i < code.n; i++)
        if (code.list[i].is_shown)
            fill_instruction(&answer->rows, &code, &code.list[i]);
    machine_code_fini(&code);
    return 0;
}

const struct report_forms instructions_forms = {.make = make_answer, .text = instructions_text};
