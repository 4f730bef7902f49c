/* SPDX-License-Identifier: BSD-3-Clause */
/* Version 4 files: which of the four one is, reading and freeing it, checked fields, and the writers. */
#include "fmt/v4.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"

/* How often a file's length may be read in all: only few texts and lists are shared. */
#define BUDGET_FACTOR 16
#define BUDGET_LEAST_BYTES 65536

static const struct kind_row {
    const char *name, *mark, *footer;
    unsigned n_sections;
    void (*read)(struct v4_in *in);
} kinds[V4_KINDS] = {
    [V4_META] = {"meta.db", "meta", "_meta.db", 8, v4_read_meta},
    [V4_PROFILE] = {"profile.db", "prof", "_prof.db", 2, v4_read_profiles},
    [V4_CCT] = {"cct.db", "ctxt", "__ctx.db", 1, v4_read_blocks},
    [V4_TRACE] = {"trace.db", "trce", "trace.db", 1, v4_read_traces},
};

const char *v4_file_name(enum v4_kind kind)
{
    return kinds[kind].name;
}

/* Which of the files it is; V4_KINDS after a failure. */
static enum v4_kind kind_of(struct v4_in *in)
{
    size_t begin = strlen(V4_BEGINS);
    if (in->len_bytes < 24 || memcmp(in->bytes, V4_BEGINS, begin) != 0) {
        v4_fail(in, 0, ERR_FORMAT, "not a file of a version 4 database: it does not begin with " V4_BEGINS);
        return V4_KINDS;
    }
    for (enum v4_kind kind = V4_META; kind < V4_KINDS; kind++)
        if (memcmp(in->bytes + begin, kinds[kind].mark, 4) == 0)
            return kind;
    v4_fail(in, begin, ERR_UNSUPPORTED, "not one of meta.db, profile.db, cct.db and trace.db");
    return V4_KINDS;
}

/* Checks its beginning, of 24 bytes. */
static int check_begin(struct v4_in *in, enum v4_kind kind)
{
    enum v4_kind found = kind_of(in);
    if (in->code)
        return in->code;
    if (found != kind)
        return v4_fail(in, strlen(V4_BEGINS), ERR_FORMAT, "this is a %s, not a %s", kinds[found].name,
                       kinds[kind].name);
    if (in->bytes[14] != 4)
        return v4_fail(in, 14, ERR_UNSUPPORTED, "version %u of %s is not supported (4 is)", in->bytes[14],
                       kinds[kind].name);
    return 0;
}

/* Checks the last 8 bytes, which are at an offset in the file. */
static int check_end(struct v4_in *in, enum v4_kind kind, const void *end, uint64_t offset)
{
    if (memcmp(end, kinds[kind].footer, 8) != 0)
        return v4_fail(in, offset, ERR_FORMAT, "the end mark %s is missing: the file is truncated", kinds[kind].footer);
    return 0;
}

int v4_check_head(struct v4_in *in, enum v4_kind kind)
{
    int code = check_begin(in, kind);
    return code ? code : check_end(in, kind, in->bytes + in->len_bytes - 8, in->len_bytes - 8);
}

/* Checks the ends of a file, and reads no more; *is_there: whether there is one. */
static int check_ends(const char *directory, enum v4_kind kind, bool *is_there, struct error *err)
{
    unsigned char begin[24];
    char end[8];
    struct stat info = {0};
    struct buf path = {0};
    buf_printf(&path, "%s/%s", directory, kinds[kind].name);
    if (path.failed)
        return error_memory(err);
    int fd = input_open(AT_FDCWD, path.data, 0, &info), reason = errno;
    *is_there = fd >= 0 || reason != ENOENT;
    ssize_t n = fd >= 0 ? pread(fd, begin, sizeof begin, 0) : -1;
    struct v4_in in = {.bytes = begin, .len_bytes = n > 0 ? (size_t)n : 0, .name = path.data, .err = err};
    if (*is_there && n < 0)
        in.code = error_set(err, ERR_IO, "%s: cannot be read: %s", path.data, input_reason(fd < 0 ? reason : errno));
    else if (*is_there && check_begin(&in, kind) == 0) {
        n = pread(fd, end, sizeof end, info.st_size - (off_t)sizeof end);
        (void)check_end(&in, kind, n == sizeof end ? end : "        ", (uint64_t)info.st_size - sizeof end);
    }
    if (fd >= 0)
        (void)close(fd);
    buf_fini(&path);
    return in.code;
}

int v4_check_files(const char *directory, struct error *err)
{
    bool is_there[V4_KINDS];
    int code = 0;
    for (enum v4_kind kind = V4_META; code == 0 && kind < V4_KINDS; kind++)
        code = check_ends(directory, kind, &is_there[kind], err);
    bool any = code == 0 && (is_there[V4_META] || is_there[V4_PROFILE] || is_there[V4_CCT]);
    for (enum v4_kind kind = V4_META; any && code == 0 && kind < V4_TRACE; kind++)
        if (!is_there[kind])
            code = error_set(err, ERR_NOT_FOUND, "%s/%s is missing: the database is not complete", directory,
                             kinds[kind].name);
    return code;
}

int v4_read_memory(const char *bytes, size_t len_bytes, const char *name, struct v4_file *file, struct error *err)
{
    struct v4_in in = {.len_bytes = len_bytes, .name = name, .err = err, .file = file};
    in.budget_bytes = (uint64_t)len_bytes * BUDGET_FACTOR + BUDGET_LEAST_BYTES;
    file->bytes = v4_alloc(&in, len_bytes + 1, 1);
    if (file->bytes) {
        memcpy(file->bytes, bytes, len_bytes);
        in.bytes = (const unsigned char *)file->bytes;
        enum v4_kind kind = kind_of(&in);
        if (!in.code && v4_check_head(&in, kind) == 0) {
            file->kind = kind;
            kinds[kind].read(&in);
        }
    }
    if (in.code)
        v4_fini(file);
    return in.code;
}

static void free_meta(struct v4_meta *meta)
{
    for (size_t i = 0; meta->metrics && i < meta->n_metrics; i++) {
        free(meta->metrics[i].instances);
        free(meta->metrics[i].summaries);
    }
    free(meta->kinds);
    free(meta->scopes);
    free(meta->metrics);
    free(meta->modules);
    free(meta->files);
    free(meta->functions);
    free(meta->entries);
    free(meta->contexts);
}

void v4_fini(struct v4_file *file)
{
    free_meta(&file->meta);
    for (size_t i = 0; file->profiles && i < file->n_profiles; i++) {
        free(file->profiles[i].ids);
        free(file->profiles[i].cells);
    }
    for (size_t i = 0; file->blocks && i < file->n_blocks; i++)
        free(file->blocks[i].cells);
    for (size_t i = 0; file->traces && i < file->n_traces; i++)
        free(file->traces[i].events);
    free(file->profiles);
    free(file->blocks);
    free(file->traces);
    free(file->bytes);
    strtab_fini(&file->texts);
    *file = (struct v4_file){0};
}

/* --- reading: fields --- */

/* Fields of version 4 files: see v4.h. */

int v4_fail(struct v4_in *in, uint64_t offset, int code, const char *format, ...)
{
    if (in->code)
        return in->code;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    in->code = error_set(in->err, code, "%.600s: offset %" PRIu64 ": %s", in->name, offset, text);
    return in->code;
}

bool v4_has(struct v4_in *in, uint64_t offset, uint64_t n_items, uint64_t item_bytes, const char *what)
{
    uint64_t room = offset <= in->len_bytes ? in->len_bytes - offset : 0;
    if (in->code)
        return false;
    if (offset > in->len_bytes || (item_bytes && n_items > room / item_bytes)) {
        v4_fail(in, offset, ERR_FORMAT, "%s: %" PRIu64 " of %" PRIu64 " bytes each are not in a file of %zu bytes",
                what, n_items, item_bytes, in->len_bytes);
        return false;
    }
    if (n_items * item_bytes > in->budget_bytes) {
        v4_fail(in, offset, ERR_FORMAT, "%s: too many parts of the file lie at the same place", what);
        return false;
    }
    in->budget_bytes -= n_items * item_bytes;
    return true;
}

uint64_t v4_get(struct v4_in *in, uint64_t offset, unsigned n_bytes)
{
    uint64_t value = 0;
    if (in->code)
        return 0;
    if (offset > in->len_bytes || in->len_bytes - offset < n_bytes) {
        v4_fail(in, offset, ERR_FORMAT, "a field lies beyond the end of the file (%zu bytes)", in->len_bytes);
        return 0;
    }
    for (unsigned i = 0; i < n_bytes; i++)
        value |= (uint64_t)in->bytes[offset + i] << (8 * i);
    return value;
}

double v4_get_double(struct v4_in *in, uint64_t offset)
{
    return bytes_double_of(v4_get(in, offset, 8));
}

const char *v4_get_text(struct v4_in *in, uint64_t offset, const char *what)
{
    if (in->code || offset == 0)
        return NULL;
    const char *text = offset < in->len_bytes ? (const char *)in->bytes + offset : NULL;
    const char *end = text ? memchr(text, '\0', in->len_bytes - offset) : NULL;
    if (!end) {
        v4_fail(in, offset, ERR_FORMAT, "%s: there is no text with an end", what);
        return NULL;
    }
    return v4_has(in, offset, (uint64_t)(end - text) + 1, 1, what) ? text : NULL;
}

struct v4_section v4_get_section(struct v4_in *in, unsigned i, uint64_t least_bytes, const char *what)
{
    uint64_t at = 16 + 16 * (uint64_t)i;
    struct v4_section section = {.len_bytes = v4_get(in, at, 8), .offset = v4_get(in, at + 8, 8)};
    if (in->code)
        return (struct v4_section){0};
    if (section.offset > in->len_bytes || section.len_bytes > in->len_bytes - section.offset)
        v4_fail(in, at, ERR_FORMAT, "section %s (%" PRIu64 " bytes at %" PRIu64 ") is not in a file of %zu bytes", what,
                section.len_bytes, section.offset, in->len_bytes);
    else if (section.len_bytes < least_bytes)
        v4_fail(in, at, ERR_FORMAT, "section %s has %" PRIu64 " bytes, at least %" PRIu64 " are needed", what,
                section.len_bytes, least_bytes);
    return section;
}

struct v4_table v4_get_table(struct v4_in *in, uint64_t offset, uint64_t stride_at, unsigned n_stride,
                             uint64_t least_bytes, const char *what)
{
    struct v4_table table = {.offset = v4_get(in, offset, 8), .stride_bytes = v4_get(in, stride_at, n_stride)};
    uint64_t n = v4_get(in, offset + 8, 4);
    if (!in->code && n && table.stride_bytes < least_bytes)
        v4_fail(in, stride_at, ERR_FORMAT, "%s: elements of %" PRIu64 " bytes, at least %" PRIu64 " are needed", what,
                table.stride_bytes, least_bytes);
    if (n && v4_has(in, table.offset, n, table.stride_bytes, what))
        table.n = n;
    return table;
}

uint32_t v4_get_index(struct v4_in *in, uint64_t pointer, const struct v4_table *table, const char *what)
{
    if (in->code || pointer == 0)
        return 0;
    uint64_t distance = pointer - table->offset;
    if (pointer < table->offset || !table->n || distance % table->stride_bytes ||
        distance / table->stride_bytes >= table->n) {
        v4_fail(in, pointer, ERR_FORMAT, "%s: the pointer leads to no element of its table", what);
        return 0;
    }
    return (uint32_t)(distance / table->stride_bytes) + 1;
}

void *v4_alloc(struct v4_in *in, size_t n_items, size_t item_bytes)
{
    if (in->code || n_items == 0)
        return NULL;
    void *memory = calloc(n_items, item_bytes);
    if (!memory)
        v4_fail(in, 0, ERR_MEMORY, "out of memory for %zu items", n_items);
    return memory;
}

/* --- writing: frame and fields --- */

/* Appends the low n_bytes of value, little-endian. */
static void v4_put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    buf_append(out, bytes, n_bytes);
}

/* Appends zeros up to a multiple of 8 bytes; returns where the next byte will be. */
static uint64_t v4_align(struct buf *out)
{
    buf_append(out, "\0\0\0\0\0\0\0", -out->len_bytes % 8);
    return out->len_bytes;
}

/* Overwrites n_bytes at offset. */
static void v4_patch(struct buf *out, uint64_t offset, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; !out->failed && i < n_bytes; i++)
        out->data[offset + i] = (char)(unsigned char)(value >> (8 * i));
}

/* Section i of the header: from offset to the end of out. */
static void v4_put_section(struct buf *out, unsigned i, uint64_t offset)
{
    v4_patch(out, 16 + 16 * (uint64_t)i, out->len_bytes - offset, 8);
    v4_patch(out, 24 + 16 * (uint64_t)i, offset, 8);
}

/* --- writing: meta.db --- */

/* Writing meta.db. All texts are in one section, each once; whatever is pointed to lies before its pointer, except for
 * contexts: their places follow from the lengths of those before them. */

enum {
    SECTION_GENERAL,
    SECTION_KINDS,
    SECTION_METRICS,
    SECTION_TREE,
    SECTION_TEXTS,
    SECTION_MODULES,
    SECTION_FILES,
    SECTION_FUNCTIONS
};

/* Where things are in the file that grows. */
struct writing {
    const struct v4_meta *meta;
    struct buf *out;
    struct strtab texts;
    uint64_t *text_places; /* [texts.n_strings] */
    uint64_t scopes, modules, files, functions;
    bool failed; /* out of memory */
};

static void note(struct writing *w, const char *text)
{
    w->failed = (text && strtab_intern(&w->texts, text) < 0) || w->failed;
}

static void put_pointer(struct writing *w, const char *text)
{
    int64_t i = text ? strtab_find(&w->texts, text) : -1;
    v4_put(w->out, i < 0 ? 0 : w->text_places[i], 8);
}

/* Pointer to element i - 1 of an array; null for 0. */
static void put_element(struct writing *w, uint64_t array, uint64_t stride_bytes, uint32_t i)
{
    v4_put(w->out, i ? array + (i - 1) * stride_bytes : 0, 8);
}

static void note_texts(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    note(w, meta->title);
    note(w, meta->description);
    for (size_t i = 0; i < meta->n_kinds; i++)
        note(w, meta->kinds[i]);
    for (size_t i = 0; i < meta->n_scopes; i++)
        note(w, meta->scopes[i].name);
    for (size_t i = 0; i < meta->n_metrics; i++) {
        note(w, meta->metrics[i].name);
        for (size_t k = 0; k < meta->metrics[i].n_summaries; k++)
            note(w, meta->metrics[i].summaries[k].formula);
    }
    for (size_t i = 0; i < meta->n_modules; i++)
        note(w, meta->modules[i].path);
    for (size_t i = 0; i < meta->n_files; i++)
        note(w, meta->files[i].path);
    for (size_t i = 0; i < meta->n_functions; i++)
        note(w, meta->functions[i].name);
    for (size_t i = 0; i < meta->n_entries; i++)
        note(w, meta->entries[i].name);
}

static void write_texts(struct writing *w)
{
    uint64_t at = v4_align(w->out);
    note_texts(w);
    w->text_places = calloc(w->texts.n_strings + 1, sizeof *w->text_places);
    w->failed = w->failed || !w->text_places;
    for (size_t i = 0; !w->failed && i < w->texts.n_strings; i++) {
        w->text_places[i] = w->out->len_bytes;
        buf_printf(w->out, "%s", w->texts.strings[i]);
        buf_append(w->out, "", 1);
    }
    v4_put_section(w->out, SECTION_TEXTS, at);
}

static void write_general(struct writing *w)
{
    uint64_t at = v4_align(w->out);
    put_pointer(w, w->meta->title);
    put_pointer(w, w->meta->description);
    v4_put_section(w->out, SECTION_GENERAL, at);
    at = v4_align(w->out);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, w->meta->n_kinds, 8);
    for (size_t i = 0; i < w->meta->n_kinds; i++)
        put_pointer(w, w->meta->kinds[i]);
    v4_put_section(w->out, SECTION_KINDS, at);
}

static void put_lists(struct writing *w, const struct v4_metric *metric)
{
    for (size_t i = 0; i < metric->n_instances; i++) {
        put_element(w, w->scopes, 16, metric->instances[i].scope);
        v4_put(w->out, metric->instances[i].metric_id, 8);
    }
    for (size_t i = 0; i < metric->n_summaries; i++) {
        put_element(w, w->scopes, 16, metric->summaries[i].scope);
        put_pointer(w, metric->summaries[i].formula);
        v4_put(w->out, metric->summaries[i].combine, 2);
        v4_put(w->out, metric->summaries[i].metric_id, 6);
    }
}

/* Header, scopes, metrics, then the lists of each metric. */
static void write_metrics(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    uint64_t at = v4_align(w->out), lists;
    w->scopes = at + 32;
    v4_put(w->out, w->scopes + 16 * meta->n_scopes, 8);
    v4_put(w->out, meta->n_metrics, 4);
    v4_put(w->out, 32 | 16 << 8 | 24 << 16, 4);
    v4_put(w->out, w->scopes, 8);
    v4_put(w->out, meta->n_scopes, 2);
    v4_put(w->out, 16, 6);
    for (size_t i = 0; i < meta->n_scopes; i++) {
        put_pointer(w, meta->scopes[i].name);
        v4_put(w->out, meta->scopes[i].type, 1);
        v4_put(w->out, meta->scopes[i].propagation, 7);
    }
    lists = w->scopes + 16 * meta->n_scopes + 32 * meta->n_metrics;
    for (size_t i = 0; i < meta->n_metrics; i++) {
        const struct v4_metric *metric = &meta->metrics[i];
        uint64_t summaries = lists + 16 * (uint64_t)metric->n_instances;
        put_pointer(w, metric->name);
        v4_put(w->out, lists, 8);
        v4_put(w->out, summaries, 8);
        v4_put(w->out, metric->n_instances, 2);
        v4_put(w->out, metric->n_summaries, 6);
        lists = summaries + 24 * (uint64_t)metric->n_summaries;
    }
    for (size_t i = 0; i < meta->n_metrics; i++)
        put_lists(w, &meta->metrics[i]);
    v4_put_section(w->out, SECTION_METRICS, at);
}

/* Header of a table: it follows at once. */
static uint64_t put_table(struct writing *w, size_t n, unsigned stride_bytes)
{
    uint64_t at = v4_align(w->out);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, n, 4);
    v4_put(w->out, stride_bytes, 4);
    return at;
}

static uint64_t write_paths(struct writing *w, const struct v4_path *paths, size_t n_paths, unsigned section)
{
    uint64_t at = put_table(w, n_paths, 16);
    for (size_t i = 0; i < n_paths; i++) {
        v4_put(w->out, paths[i].flags, 8);
        put_pointer(w, paths[i].path);
    }
    v4_put_section(w->out, section, at);
    return at + 16;
}

static void write_functions(struct writing *w)
{
    uint64_t at = put_table(w, w->meta->n_functions, 40);
    w->functions = at + 16;
    for (size_t i = 0; i < w->meta->n_functions; i++) {
        const struct v4_function *function = &w->meta->functions[i];
        put_pointer(w, function->name);
        put_element(w, w->modules, 16, function->module);
        v4_put(w->out, function->offset, 8);
        put_element(w, w->files, 16, function->file);
        v4_put(w->out, function->line, 4);
        v4_put(w->out, function->flags, 4);
    }
    v4_put_section(w->out, SECTION_FUNCTIONS, at);
}

static unsigned n_flex_words(const struct v4_context *context)
{
    return (context->flags & V4_HAS_FUNCTION ? 1u : 0) + (context->flags & V4_HAS_SOURCE ? 2u : 0) +
           (context->flags & V4_HAS_POINT ? 2u : 0);
}

/* places [n_contexts + 1]. */
static void put_children(struct writing *w, const uint64_t *places, uint32_t first, uint32_t n)
{
    v4_put(w->out, n ? places[first + n] - places[first] : 0, 8);
    v4_put(w->out, n ? places[first] : 0, 8);
}

static void put_context(struct writing *w, const uint64_t *places, const struct v4_context *context)
{
    put_children(w, places, context->first_child, context->n_children);
    v4_put(w->out, context->ctx_id, 4);
    v4_put(w->out, context->flags, 1);
    v4_put(w->out, context->relation, 1);
    v4_put(w->out, context->lexical, 1);
    v4_put(w->out, n_flex_words(context), 1);
    v4_put(w->out, context->propagation, 8);
    if (context->flags & V4_HAS_FUNCTION)
        put_element(w, w->functions, 40, context->function);
    if (context->flags & V4_HAS_SOURCE) {
        put_element(w, w->files, 16, context->file);
        v4_put(w->out, context->line, 8);
    }
    if (context->flags & V4_HAS_POINT) {
        put_element(w, w->modules, 16, context->module);
        v4_put(w->out, context->offset, 8);
    }
}

static void write_tree(struct writing *w)
{
    const struct v4_meta *meta = w->meta;
    uint64_t at = v4_align(w->out);
    uint64_t *places = calloc(meta->n_contexts + 1, sizeof *places);
    w->failed = w->failed || !places;
    if (!places)
        return;
    places[0] = at + 16 + 32 * meta->n_entries;
    for (size_t i = 0; i < meta->n_contexts; i++)
        places[i + 1] = places[i] + 32 + 8 * (uint64_t)n_flex_words(&meta->contexts[i]);
    v4_put(w->out, at + 16, 8);
    v4_put(w->out, meta->n_entries, 2);
    v4_put(w->out, 32, 6);
    for (size_t i = 0; i < meta->n_entries; i++) {
        put_children(w, places, meta->entries[i].first_child, meta->entries[i].n_children);
        v4_put(w->out, meta->entries[i].ctx_id, 4);
        v4_put(w->out, meta->entries[i].kind, 4);
        put_pointer(w, meta->entries[i].name);
    }
    for (size_t i = 0; i < meta->n_contexts; i++)
        put_context(w, places, &meta->contexts[i]);
    free(places);
    v4_put_section(w->out, SECTION_TREE, at);
}

static int v4_write_meta(const struct v4_meta *meta, struct buf *out, struct error *err)
{
    struct writing w = {.meta = meta, .out = out};
    if (meta->n_kinds > UINT8_MAX || meta->n_scopes > UINT16_MAX || meta->n_entries > UINT16_MAX ||
        meta->n_metrics > UINT32_MAX || meta->n_contexts > UINT32_MAX || meta->n_functions > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A meta.db cannot hold that many metrics, functions or contexts");
    write_texts(&w);
    if (!w.failed) {
        write_general(&w);
        write_metrics(&w);
        w.modules = write_paths(&w, meta->modules, meta->n_modules, SECTION_MODULES);
        w.files = write_paths(&w, meta->files, meta->n_files, SECTION_FILES);
        write_functions(&w);
        write_tree(&w);
    }
    strtab_fini(&w.texts);
    free(w.text_places);
    return w.failed ? error_set(err, ERR_MEMORY, "out of memory while writing a meta.db") : 0;
}

/* --- writing: profile.db, cct.db and trace.db --- */

/* Writing profile.db, cct.db and trace.db: first the table of all profiles, contexts or traces, then their lists. */

/* Appends the values of a list and their index, and fills the row of the table: number and place of the values, number
 * and place of the index. major_bytes: 4 in profile.db (context before metric), 2 in cct.db (metric before profile). */
static int write_cells(const struct v4_cell *cells, size_t n_cells, unsigned major_bytes, uint64_t row, struct buf *out,
                       struct error *err)
{
    unsigned minor_bytes = 6 - major_bytes;
    uint64_t values = v4_align(out), n_indices = 0, before = 0;
    for (size_t i = 0; i < n_cells; i++) {
        uint64_t minor = major_bytes == 4 ? cells[i].metric_id : cells[i].id;
        uint64_t major = major_bytes == 4 ? cells[i].id : cells[i].metric_id;
        if (i && (major << 32 | minor) <= before)
            return error_set(err, ERR_RANGE, "the values of a database are not in ascending order");
        n_indices += i == 0 || major != before >> 32;
        before = major << 32 | minor;
        v4_put(out, minor, minor_bytes);
        v4_put(out, bytes_bits_of(cells[i].value), 8);
    }
    v4_patch(out, row, n_cells, 8);
    v4_patch(out, row + 8, values, 8);
    v4_patch(out, row + 16, n_indices, major_bytes == 4 ? 4 : 2);
    v4_patch(out, row + 24, v4_align(out), 8);
    for (size_t i = 0; i < n_cells; i++) {
        uint32_t major = major_bytes == 4 ? cells[i].id : cells[i].metric_id;
        if (i && major == (major_bytes == 4 ? cells[i - 1].id : cells[i - 1].metric_id))
            continue;
        v4_put(out, major, major_bytes);
        v4_put(out, i, 8);
    }
    return 0;
}

/* Header of a section and room for its rows, to be filled later; returns where the first row is. */
static uint64_t put_rows(struct buf *out, size_t n, unsigned stride_bytes)
{
    uint64_t at = v4_align(out);
    v4_put(out, at + 16, 8);
    v4_put(out, n, 4);
    v4_put(out, stride_bytes, 4);
    for (size_t i = 0; i < n * (stride_bytes / 8); i++)
        v4_put(out, 0, 8);
    v4_put_section(out, 0, at);
    return at + 16;
}

static void put_ids(const struct v4_profile *profile, struct buf *out)
{
    v4_put(out, profile->n_ids, 8);
    for (size_t i = 0; i < profile->n_ids; i++) {
        v4_put(out, profile->ids[i].kind, 2);
        v4_put(out, profile->ids[i].flags, 2);
        v4_put(out, profile->ids[i].logical, 4);
        v4_put(out, profile->ids[i].physical, 8);
    }
}

static int v4_write_profiles(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 48 };
    if (file->n_profiles > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A profile.db cannot hold %zu profiles", file->n_profiles);
    uint64_t rows = put_rows(out, file->n_profiles, ROW_BYTES), ids = v4_align(out);
    for (size_t i = 0; i < file->n_profiles; i++) {
        const struct v4_profile *profile = &file->profiles[i];
        v4_patch(out, rows + i * ROW_BYTES + 32, profile->n_ids ? out->len_bytes : 0, 8);
        v4_patch(out, rows + i * ROW_BYTES + 40, profile->flags, 4);
        if (profile->n_ids)
            put_ids(profile, out);
    }
    v4_put_section(out, 1, ids);
    int code = 0;
    /* the summary of all comes last: it is complete when all others are */
    for (uint32_t is_summary = 0; is_summary < 2; is_summary++)
        for (size_t i = 0; code == 0 && i < file->n_profiles; i++)
            if ((file->profiles[i].flags & 1) == is_summary)
                code =
                    write_cells(file->profiles[i].cells, file->profiles[i].n_cells, 4, rows + i * ROW_BYTES, out, err);
    return code;
}

static int v4_write_blocks(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 32 };
    if (file->n_blocks > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A cct.db cannot hold %zu contexts", file->n_blocks);
    uint64_t rows = put_rows(out, file->n_blocks, ROW_BYTES);
    int code = 0;
    for (size_t i = 0; code == 0 && i < file->n_blocks; i++)
        if (file->blocks[i].n_cells)
            code = write_cells(file->blocks[i].cells, file->blocks[i].n_cells, 2, rows + i * ROW_BYTES, out, err);
    return code;
}

/* Each appends the sections of one kind of file.  err: as v4_write */
static int v4_write_traces(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 24 };
    uint64_t at = v4_align(out), rows = at + 32;
    if (file->n_traces > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A trace.db cannot hold %zu traces", file->n_traces);
    v4_put(out, rows, 8);
    v4_put(out, file->n_traces, 4);
    v4_put(out, ROW_BYTES, 4);
    v4_put(out, file->min_time_ns, 8);
    v4_put(out, file->max_time_ns, 8);
    for (size_t i = 0; i < file->n_traces * (ROW_BYTES / 8); i++)
        v4_put(out, 0, 8);
    v4_put_section(out, 0, at);
    for (size_t i = 0; i < file->n_traces; i++) {
        const struct v4_trace *trace = &file->traces[i];
        v4_patch(out, rows + i * ROW_BYTES, trace->profile, 4);
        v4_patch(out, rows + i * ROW_BYTES + 8, v4_align(out), 8);
        for (size_t k = 0; k < trace->n_events; k++) {
            v4_put(out, trace->events[k].time_ns, 8);
            v4_put(out, trace->events[k].ctx_id, 4);
        }
        v4_patch(out, rows + i * ROW_BYTES + 16, out->len_bytes, 8);
    }
    return 0;
}

int v4_write(const struct v4_file *file, struct buf *out, struct error *err)
{
    const struct kind_row *row = &kinds[file->kind];
    buf_append(out, V4_BEGINS, strlen(V4_BEGINS));
    buf_append(out, row->mark, 4);
    buf_append(out, "\4", 2); /* version 4.0 */
    for (unsigned i = 0; i < 2 * row->n_sections; i++)
        v4_put(out, 0, 8);
    int code = file->kind == V4_META      ? v4_write_meta(&file->meta, out, err)
               : file->kind == V4_PROFILE ? v4_write_profiles(file, out, err)
               : file->kind == V4_CCT     ? v4_write_blocks(file, out, err)
                                          : v4_write_traces(file, out, err);
    v4_align(out);
    buf_append(out, row->footer, 8);
    if (code == 0 && out->failed)
        code = error_set(err, ERR_MEMORY, "out of memory while writing a %s", v4_file_name(file->kind));
    return code;
}
