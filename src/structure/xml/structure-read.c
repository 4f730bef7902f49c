/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads structure files element by element: an element sets the place (file, scope) that those inside it refer to. */
#include "structure/xml/structure-file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/search.h"
#include "base/xml.h"

/* --- what the elements say --- */

enum { DEPTH_MAX = 1000 };

/* Addresses [start, end) of a function or variable of a module. */
struct file_range {
    uint64_t start, end;
    uint32_t index; /* into functions or variables */
};

struct file_ranges {
    struct file_range *items; /* [n] by start */
    size_t n, capacity;
};

struct file_module {
    const char *path;
    struct structure_function *functions; /* [n_functions] */
    size_t n_functions, cap_functions;
    struct symbols_data *variables; /* [n_variables] */
    size_t n_variables, cap_variables;
    struct file_ranges code, data;
};

struct structure_file {
    struct strtab texts;
    struct file_module *modules; /* [n_modules] */
    size_t n_modules, cap_modules;
};

/* What an open element sets for those inside it. */
struct level {
    const char *file;
    uint32_t scope;        /* STRUCTURE_NONE: outside functions */
    const char *call_file; /* position of the call, from an element without name, for the function inlined there */
    uint32_t call_line;
};

struct reader {
    struct xml_in xml;
    struct structure_file *file;
    struct level levels[DEPTH_MAX + 1]; /* [depth + 1] */
    size_t depth;
    struct structure_function *function; /* that is being read */
    size_t cap_scopes, cap_spans;
    bool failed; /* out of memory */
};

static const char *keep(struct reader *reader, const char *text)
{
    int64_t id = text ? strtab_intern(&reader->file->texts, text) : 0;
    reader->failed |= id < 0;
    return text && id >= 0 ? reader->file->texts.strings[id] : NULL;
}

static uint32_t take_line(const struct reader *reader)
{
    const char *text = xml_attribute(&reader->xml, "l");
    unsigned long line = text ? strtoul(text, NULL, 10) : 0;
    return line > INT32_MAX ? 0 : (uint32_t)line;
}

static uint32_t take_end_line(const struct reader *reader, uint32_t first)
{
    const char *text = xml_attribute(&reader->xml, "l"), *dash = text ? strchr(text, '-') : NULL;
    unsigned long line = dash ? strtoul(dash + 1, NULL, 10) : first;
    return line > INT32_MAX || line < first ? first : (uint32_t)line;
}

/* The next range of "{[0xa-0xb) [0xc-0xd)}"; false at the end. */
static bool next_range(const char **text, uint64_t *start, uint64_t *end)
{
    const char *open = *text ? strchr(*text, '[') : NULL;
    char *behind = NULL;
    if (!open)
        return false;
    *start = strtoull(open + 1, &behind, 16);
    if (*behind != '-')
        return false;
    *end = strtoull(behind + 1, &behind, 16);
    *text = behind;
    return *end > *start;
}

static uint64_t take_start(const struct reader *reader)
{
    const char *text = xml_attribute(&reader->xml, "v");
    uint64_t start, end;
    return next_range(&text, &start, &end) ? start : 0;
}

static struct file_module *last_module(const struct reader *reader)
{
    return reader->file->n_modules ? &reader->file->modules[reader->file->n_modules - 1] : NULL;
}

static void add_range(struct reader *reader, struct file_ranges *ranges, struct file_range range)
{
    struct file_range *last = ranges->n ? &ranges->items[ranges->n - 1] : NULL;
    if (last && last->end == range.start && last->index == range.index) {
        last->end = range.end;
        return;
    }
    if (vec_reserve(&ranges->items, &ranges->capacity, ranges->n + 1, sizeof *ranges->items))
        ranges->items[ranges->n++] = range;
    else
        reader->failed = true;
}

static void open_module(struct reader *reader)
{
    struct structure_file *file = reader->file;
    const char *name = xml_attribute(&reader->xml, "n");
    if (!vec_reserve(&file->modules, &file->cap_modules, file->n_modules + 1, sizeof *file->modules))
        reader->failed = true;
    else
        file->modules[file->n_modules++] = (struct file_module){.path = keep(reader, name ? name : "")};
}

static void add_scope(struct reader *reader, struct structure_scope scope, struct level *level)
{
    struct structure_function *function = reader->function;
    if (!vec_reserve(&function->scopes, &reader->cap_scopes, function->n_scopes + 1, sizeof *function->scopes)) {
        reader->failed = true;
        return;
    }
    level->scope = (uint32_t)function->n_scopes;
    level->call_file = NULL;
    level->call_line = 0;
    function->scopes[function->n_scopes++] = scope;
}

static void open_function(struct reader *reader, struct level *level)
{
    struct file_module *module = last_module(reader);
    if (!module || level->scope != STRUCTURE_NONE ||
        !vec_reserve(&module->functions, &module->cap_functions, module->n_functions + 1, sizeof *module->functions)) {
        reader->failed |= module && level->scope == STRUCTURE_NONE;
        return;
    }
    reader->function = &module->functions[module->n_functions++];
    *reader->function = (struct structure_function){0};
    reader->cap_scopes = reader->cap_spans = 0;
    add_scope(reader,
              (struct structure_scope){.kind = STRUCTURE_FUNCTION,
                                       .parent = STRUCTURE_NONE,
                                       .name = keep(reader, xml_attribute(&reader->xml, "n")),
                                       .linkage = keep(reader, xml_attribute(&reader->xml, "ln")),
                                       .file = level->file,
                                       .line = take_line(reader),
                                       .vaddr = take_start(reader)},
              level);
}

/* An inlined function or, without name, the position of a call. */
static void open_alien(struct reader *reader, struct level *level)
{
    const char *name = xml_attribute(&reader->xml, "n"), *file = keep(reader, xml_attribute(&reader->xml, "f"));
    struct structure_scope scope = {.kind = STRUCTURE_INLINED,
                                    .parent = level->scope,
                                    .name = keep(reader, name),
                                    .linkage = keep(reader, xml_attribute(&reader->xml, "ln")),
                                    .file = file,
                                    .line = take_line(reader),
                                    .call_file = level->call_file ? level->call_file : level->file,
                                    .call_line = level->call_line};
    if (file)
        level->file = file;
    if (name && *name) {
        add_scope(reader, scope, level);
    } else {
        level->call_file = level->file;
        level->call_line = scope.line;
    }
}

static void open_loop(struct reader *reader, struct level *level)
{
    const char *file = keep(reader, xml_attribute(&reader->xml, "f"));
    const char *n_machine = xml_attribute(&reader->xml, "m");
    uint32_t line = take_line(reader);
    if (file)
        level->file = file;
    add_scope(reader,
              (struct structure_scope){.kind = STRUCTURE_LOOP,
                                       .parent = level->scope,
                                       .file = level->file,
                                       .line = line,
                                       .end_line = take_end_line(reader, line),
                                       .vaddr = take_start(reader),
                                       .n_machine = n_machine ? (uint32_t)strtoul(n_machine, NULL, 10) : 1,
                                       .is_irreducible = xml_attribute(&reader->xml, "ir") != NULL},
              level);
}

static void add_spans(struct reader *reader, const struct level *level)
{
    const char *text = xml_attribute(&reader->xml, "v");
    struct structure_function *function = reader->function;
    struct structure_span span = {.file = level->file, .line = take_line(reader), .scope = level->scope};
    while (next_range(&text, &span.start, &span.end)) {
        if (!vec_reserve(&function->spans, &reader->cap_spans, function->n_spans + 1, sizeof *function->spans)) {
            reader->failed = true;
            return;
        }
        function->spans[function->n_spans++] = span;
    }
    function->has_lines |= span.line > 0;
}

static void add_variable(struct reader *reader)
{
    struct file_module *module = last_module(reader);
    const char *text = xml_attribute(&reader->xml, "v");
    uint64_t start, end;
    if (!module || !next_range(&text, &start, &end))
        return;
    if (!vec_reserve(&module->variables, &module->cap_variables, module->n_variables + 1, sizeof *module->variables)) {
        reader->failed = true;
        return;
    }
    module->variables[module->n_variables++] = (struct symbols_data){
        .name = keep(reader, xml_attribute(&reader->xml, "n")), .vaddr = start, .size_bytes = end - start};
    add_range(reader, &module->data, (struct file_range){start, end, (uint32_t)module->n_variables - 1});
}

static void open_element(struct reader *reader, struct level *level)
{
    const char *name = reader->xml.element;
    bool is_inside = level->scope != STRUCTURE_NONE;
    if (strcmp(name, "LM") == 0)
        open_module(reader);
    else if (strcmp(name, "F") == 0)
        level->file = keep(reader, xml_attribute(&reader->xml, "n"));
    else if (strcmp(name, "P") == 0)
        open_function(reader, level);
    else if (strcmp(name, "V") == 0)
        add_variable(reader);
    else if (is_inside && strcmp(name, "A") == 0)
        open_alien(reader, level);
    else if (is_inside && strcmp(name, "L") == 0)
        open_loop(reader, level);
    else if (is_inside && (strcmp(name, "S") == 0 || strcmp(name, "C") == 0))
        add_spans(reader, level);
}

static int compare_spans(const void *a, const void *b)
{
    const struct structure_span *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start ? 1 : -1) : (x->end > y->end) - (x->end < y->end);
}

/* Sorts the spans, cuts off where they overlap, and lists their addresses. */
static void end_function(struct reader *reader)
{
    struct structure_function *function = reader->function;
    struct file_module *module = last_module(reader);
    size_t n = 0;
    if (function->n_spans)
        qsort(function->spans, function->n_spans, sizeof *function->spans, compare_spans);
    for (size_t i = 0; i < function->n_spans; i++) {
        struct structure_span span = function->spans[i];
        if (n > 0 && span.start < function->spans[n - 1].end)
            span.start = function->spans[n - 1].end;
        if (span.start >= span.end)
            continue;
        function->spans[n++] = span;
        add_range(reader, &module->code,
                  (struct file_range){span.start, span.end, (uint32_t)(function - module->functions)});
    }
    function->n_spans = n;
    reader->function = NULL;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct file_range *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start ? 1 : -1) : (x->index > y->index) - (x->index < y->index);
}

static void sort_ranges(struct file_ranges *ranges)
{
    if (ranges->n)
        qsort(ranges->items, ranges->n, sizeof *ranges->items, compare_ranges);
}

static int take_elements(struct reader *reader, struct error *err)
{
    int event;
    reader->levels[0] = (struct level){.scope = STRUCTURE_NONE};
    while ((event = xml_next(&reader->xml, err)) > 0 && !reader->failed) {
        if (event == XML_OPEN && reader->depth >= DEPTH_MAX)
            return error_set(err, ERR_FORMAT, "%s: more than %d elements inside each other", reader->xml.name,
                             DEPTH_MAX);
        if (event == XML_OPEN) {
            reader->levels[reader->depth + 1] = reader->levels[reader->depth];
            reader->depth++;
            open_element(reader, &reader->levels[reader->depth]);
        } else if (reader->depth > 0) {
            reader->depth--;
            if (reader->function && reader->levels[reader->depth].scope == STRUCTURE_NONE)
                end_function(reader);
        }
    }
    if (event == 0 && !reader->failed && (reader->depth > 0 || reader->file->n_modules == 0))
        return error_set(err, ERR_FORMAT, "%s: %s", reader->xml.name,
                         reader->depth ? "the text ends in an element" : "not a structure file: it has no load module");
    return event;
}

int structure_file_read(struct buf *text, const char *name, struct structure_file **out, struct error *err)
{
    struct reader *reader = calloc(1, sizeof *reader);
    struct structure_file *file = calloc(1, sizeof *file);
    int code = 0;
    *out = NULL;
    if (!reader || !file)
        code = error_set(err, ERR_MEMORY, "%s: out of memory", name);
    else if (!text->data)
        code = error_set(err, ERR_FORMAT, "%s: offset 0: the file is empty", name);
    if (code == 0) {
        reader->file = file;
        reader->xml =
            (struct xml_in){.text = text->data, .at = text->data, .end = text->data + text->len_bytes, .name = name};
        code = take_elements(reader, err);
        if (reader->failed)
            code = error_set(err, ERR_MEMORY, "%s: out of memory", name);
    }
    for (size_t i = 0; code == 0 && i < file->n_modules; i++) {
        sort_ranges(&file->modules[i].code);
        sort_ranges(&file->modules[i].data);
    }
    free(reader);
    if (code == 0)
        *out = file;
    else
        structure_file_free(file);
    return code;
}

void structure_file_free(struct structure_file *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->n_modules; i++) {
        struct file_module *module = &file->modules[i];
        for (size_t k = 0; k < module->n_functions; k++) {
            free(module->functions[k].scopes);
            free(module->functions[k].spans);
        }
        free(module->functions);
        free(module->variables);
        free(module->code.items);
        free(module->data.items);
    }
    free(file->modules);
    strtab_fini(&file->texts);
    free(file);
}

size_t structure_file_module(const struct structure_file *file, const char *path)
{
    for (size_t i = 0; i < file->n_modules; i++) {
        const char *other = file->modules[i].path;
        if (strcmp(other, path) == 0 || (*other != '/' && strcmp(path_last(other), path_last(path)) == 0))
            return i;
    }
    return SIZE_MAX;
}

/* The range that contains vaddr, NULL when none does. */
static const struct file_range *find_range(const struct file_ranges *ranges, uint64_t vaddr)
{
    size_t low = search_upto(ranges->items, ranges->n, SEARCH_KEY(struct file_range, start), vaddr);
    return low > 0 && vaddr < ranges->items[low - 1].end ? &ranges->items[low - 1] : NULL;
}

const struct structure_function *structure_file_function_at(const struct structure_file *file, size_t module,
                                                            uint64_t vaddr)
{
    const struct file_range *range = find_range(&file->modules[module].code, vaddr);
    return range ? &file->modules[module].functions[range->index] : NULL;
}

/* "[app]" and "<unknown file>" stand for no file. */
static const char *known_file(const char *file)
{
    return file && *file && *file != '[' && *file != '<' ? file : NULL;
}

size_t structure_file_lookup(const struct structure_file *file, size_t module, uint64_t vaddr,
                             struct symbols_frame *frames)
{
    const struct structure_function *function = structure_file_function_at(file, module, vaddr);
    uint32_t at = function ? structure_span_at(function, vaddr) : STRUCTURE_NONE;
    size_t n = 0, i = 0;
    if (at == STRUCTURE_NONE)
        return 0;
    const struct structure_span *span = &function->spans[at];
    for (uint32_t k = span->scope; k != STRUCTURE_NONE; k = function->scopes[k].parent)
        n += function->scopes[k].kind != STRUCTURE_LOOP;
    const char *place = span->file;
    uint32_t line = span->line;
    for (uint32_t k = span->scope; k != STRUCTURE_NONE; k = function->scopes[k].parent) {
        const struct structure_scope *scope = &function->scopes[k];
        if (scope->kind == STRUCTURE_LOOP)
            continue;
        size_t depth = n - 1 - i++;
        if (depth < SYMBOLS_FRAMES_MAX)
            frames[depth] = (struct symbols_frame){.function = scope->name,
                                                   .decl_file = known_file(scope->file),
                                                   .decl_line = scope->line,
                                                   .file = known_file(place),
                                                   .line = line,
                                                   .low_vaddr = scope->vaddr};
        place = scope->call_file;
        line = scope->call_line;
    }
    return n < SYMBOLS_FRAMES_MAX ? n : SYMBOLS_FRAMES_MAX;
}

bool structure_file_data_at(const struct structure_file *file, size_t module, uint64_t vaddr, struct symbols_data *data)
{
    const struct file_range *range = find_range(&file->modules[module].data, vaddr);
    if (range)
        *data = file->modules[module].variables[range->index];
    return range && data->name;
}
