/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes experiment.xml: see database.h. */
#include "database/database.h"

#include <stdlib.h>

#include "analysis/build/placeholders.h"

struct experiment_writer {
    const struct model *model;
    const struct columns *columns;
    const struct summary *summary;
    const struct xml_layout *layout;
};

/* Bytes of the UTF-8 character at p that XML allows; 0 when there is none. */
static size_t xml_char(const char *p)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    uint32_t code = n > 1 ? c & (0xffu >> (n + 1)) : c;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 32, 0x80, 0x800, 0x10000};
    bool allowed = code >= least[n] && code < 0x110000 && (code < 0xd800 || code > 0xdfff) && (code & ~1u) != 0xfffe;
    return allowed ? n : 0;
}

/* Appends text as an attribute value; what XML does not allow becomes '?'. */
static void put_escaped(struct buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        size_t n = xml_char(p);
        if (c == '&')
            buf_printf(out, "&amp;");
        else if (c == '<')
            buf_printf(out, "&lt;");
        else if (c == '>')
            buf_printf(out, "&gt;");
        else if (c == '"')
            buf_printf(out, "&quot;");
        else
            buf_append(out, n ? p : "?", n ? n : 1);
        p += n > 1 ? n - 1 : 0;
    }
}

static void put_attribute(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, " %s=\"", name);
    put_escaped(out, text);
    buf_append(out, "\"", 1);
}

/* Metrics of the summary are numbered after the columns of the metric files. */
static size_t summary_id(const struct summary *summary, size_t part, size_t column)
{
    return (1 + part) * summary->n_columns + column;
}

static void put_metric(const struct experiment_writer *writer, size_t part, size_t column, struct buf *out)
{
    const struct column_pair *pair = &writer->columns->pairs[column / 2];
    const struct metric *metric = &writer->model->metrics[pair->metric];
    const char *combine = summary_combine(writer->summary, part);
    size_t id = summary_id(writer->summary, part, column);
    struct buf full = {0};
    buf_printf(&full, "%s", pair->name);
    summary_put_suffix(writer->summary, writer->model, part, &full);
    buf_printf(&full, " (%c)", column % 2 ? 'E' : 'I');
    buf_printf(out, "    <Metric i=\"%zu\"", id);
    put_attribute(out, "n", full.data ? full.data : "");
    out->failed = out->failed || full.failed;
    buf_fini(&full);
    buf_printf(out, " o=\"%d\" v=\"%s\"", column % 2 ? -1 : (int)(part * writer->columns->n_pairs + column / 2),
               combine ? "derived-incr" : "final");
    put_attribute(out, "md", metric->description);
    buf_printf(out, " em=\"%d\" es=\"%llu\" ep=\"%.0f\"", metric->is_multiplexed, (unsigned long long)metric->n_samples,
               metric->per_sample);
    buf_printf(out, " t=\"%s\" partner=\"%zu\" show=\"%d\" show-percent=\"%d\">\n",
               column % 2 ? "exclusive" : "inclusive", summary_id(writer->summary, part, column ^ 1), !metric->hidden,
               combine != NULL || writer->summary->kind == SUMMARY_THREADS);
    if (combine) {
        buf_printf(out, "      <MetricFormula t=\"combine\" frm=\"%s($%zu, $%zu)\"/>\n", combine, id, id);
        buf_printf(out, "      <MetricFormula t=\"finalize\" frm=\"$%zu\"/>\n", id);
    }
    buf_printf(out, "      <Info><NV n=\"units\" v=\"events\"/></Info>\n    </Metric>\n");
}

static void put_metrics(const struct experiment_writer *writer, struct buf *out)
{
    const struct columns *columns = writer->columns;
    buf_printf(out, "  <MetricTable>\n");
    for (size_t part = 0; part < writer->summary->n_parts; part++)
        for (size_t i = 0; i < 2 * columns->n_pairs; i++)
            put_metric(writer, part, i, out);
    buf_printf(out, "  </MetricTable>\n  <MetricDBTable>\n");
    for (size_t i = 0; i < 2 * columns->n_pairs; i++) {
        struct buf name = {0};
        buf_printf(&name, "%s (%c)", columns->pairs[i / 2].name, i % 2 ? 'E' : 'I');
        buf_printf(out, "    <MetricDB i=\"%zu\"", i);
        put_attribute(out, "n", name.data ? name.data : "");
        buf_fini(&name);
        buf_printf(out,
                   " t=\"%s\" partner=\"%zu\" db-glob=\"*.metric-db\" db-id=\"%zu\" db-num-metrics=\"%zu\""
                   " db-header-sz=\"24\"/>\n",
                   i % 2 ? "exclusive" : "inclusive", i ^ 1, i, 2 * columns->n_pairs);
    }
    buf_printf(out, "  </MetricDBTable>\n");
    if (writer->layout->max_time_ns)
        buf_printf(out,
                   "  <TraceDBTable>\n    <TraceDB i=\"0\" u=\"1000000000\" db-glob=\"*.hpctrace\" db-min-time=\"%llu\""
                   " db-max-time=\"%llu\" db-header-sz=\"32\"/>\n  </TraceDBTable>\n",
                   (unsigned long long)writer->layout->min_time_ns, (unsigned long long)writer->layout->max_time_ns);
}

/* Which strings are used as names of modules, files and procedures. */
struct tables {
    bool *modules, *files; /* [n_strings] */
    uint32_t *procedures;  /* [n_strings] first scope of that name, 0 = none */
};

/* copies: of these names; NULL = none. */
static void put_table(const struct model *model, const bool *used, const char *table, const char *row,
                      const char *nameless, const struct source_copies *copies, struct buf *out)
{
    buf_printf(out, "  <%s>\n", table);
    for (uint32_t i = 0; i < model->strings.n_strings; i++) {
        if (!used[i])
            continue;
        struct buf name = {0};
        sources_name(copies, model, i, "./", &name);
        buf_printf(out, "    <%s i=\"%u\"", row, i);
        put_attribute(out, "n", i && name.data ? name.data : nameless);
        buf_printf(out, "/>\n");
        out->failed = out->failed || name.failed;
        buf_fini(&name);
    }
    buf_printf(out, "  </%s>\n", table);
}

static void put_procedures(const struct model *model, const uint32_t *procedures, struct buf *out)
{
    buf_printf(out, "  <ProcedureTable>\n");
    for (uint32_t i = 0; i < model->strings.n_strings; i++) {
        if (procedures[i] == 0)
            continue;
        const struct scope *scope = &model->scopes[procedures[i]];
        int code = placeholders_code((enum scope_role)scope->role);
        buf_printf(out, "    <Procedure i=\"%u\"", i);
        put_attribute(out, "n", model_text(model, i));
        if (code)
            buf_printf(out, " f=\"%d\"", code);
        uint64_t entry = scope->role == ROLE_VARIABLE ? 0 : scope->vaddr;
        buf_printf(out, " v=\"0x%llx\"/>\n", (unsigned long long)entry);
    }
    buf_printf(out, "  </ProcedureTable>\n");
}

static bool is_procedure(const struct scope *scope)
{
    return scope->kind == SCOPE_PROC || scope->kind == SCOPE_INLINED || scope->kind == SCOPE_POSITION;
}

static int put_names(const struct model *model, const struct source_copies *copies, struct buf *out, struct error *err)
{
    size_t n = model->strings.n_strings;
    struct tables tables = {calloc(n, sizeof(bool)), calloc(n, sizeof(bool)), calloc(n, sizeof(uint32_t))};
    bool ok = tables.modules && tables.files && tables.procedures;
    for (uint32_t i = 1; ok && i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        if (scope->kind == SCOPE_LOOP)
            tables.files[scope->file] = true;
        if (!is_procedure(scope))
            continue;
        tables.modules[scope->module] = tables.files[scope->file] = true;
        if (!tables.procedures[scope->name])
            tables.procedures[scope->name] = i;
    }
    if (ok) {
        put_table(model, tables.modules, "LoadModuleTable", "LoadModule", "<unknown load module>", NULL, out);
        put_table(model, tables.files, "FileTable", "File", "<unknown file>", copies, out);
        put_procedures(model, tables.procedures, out);
    }
    free(tables.modules);
    free(tables.files);
    free(tables.procedures);
    return ok ? 0 : error_memory(err);
}

/* step: 2 for inclusive values only, 1 for all. */
static void put_values(const struct experiment_writer *writer, size_t scope, size_t step, struct buf *out)
{
    const struct summary *summary = writer->summary;
    bool any = false;
    for (size_t part = 0; part < summary->n_parts; part++)
        for (size_t i = 0; i < summary->n_columns; i += step) {
            double value = summary_value(summary, part, scope, i);
            if (value != 0)
                buf_printf(out, "<M n=\"%zu\" v=\"%.15g\"/>", summary_id(summary, part, i), value);
            any = any || value != 0;
        }
    if (any)
        buf_append(out, "\n", 1);
}

static const char *tag_of(const struct scope *scope)
{
    static const char *const tags[] = {
        [SCOPE_TOP] = "",   [SCOPE_PROC] = "PF", [SCOPE_INLINED] = "Pr", [SCOPE_POSITION] = "Pr",
        [SCOPE_CALL] = "C", [SCOPE_LINE] = "S",  [SCOPE_LOOP] = "L"};
    return tags[scope->kind];
}

static void open_element(const char *tag, uint32_t number, uint32_t line, struct buf *out)
{
    buf_printf(out, "<%s i=\"%u\" s=\"%u\" l=\"%u\"", tag, number, number, line);
}

/* The element of a scope, in its call site if it has one of this form only, with its values. */
static void open_scope(const struct experiment_writer *writer, uint32_t i, struct buf *out)
{
    const struct scope *scope = &writer->model->scopes[i];
    const struct xml_layout *layout = writer->layout;
    if (layout->calls[i]) {
        open_element("C", layout->calls[i], 0, out);
        buf_printf(out, " v=\"0x0\">\n");
        put_values(writer, i, 2, out);
    }
    open_element(tag_of(scope), layout->elements[i], scope->line, out);
    if (is_procedure(scope))
        buf_printf(out, " lm=\"%u\" f=\"%u\" n=\"%u\"", scope->module, scope->file, scope->name);
    if (scope->kind == SCOPE_POSITION || scope->kind == SCOPE_INLINED)
        buf_printf(out, " a=\"1\"");
    if (scope->kind == SCOPE_LOOP)
        buf_printf(out, " f=\"%u\"", scope->file);
    if (scope->kind == SCOPE_CALL || scope->kind == SCOPE_LOOP)
        buf_printf(out, " v=\"0x%llx\"", (unsigned long long)scope->vaddr);
    if (scope->kind == SCOPE_PROC && scope->node_type)
        buf_printf(out, " t=\"%u\"", scope->node_type);
    if (layout->statements[i] == layout->elements[i])
        buf_printf(out, " it=\"%u\"", layout->statements[i]);
    buf_printf(out, ">\n");
    put_values(writer, i, 1, out);
    if (layout->statements[i] > layout->elements[i]) {
        open_element("S", layout->statements[i], scope->line, out);
        buf_printf(out, " it=\"%u\"/>\n", layout->statements[i]);
    }
}

static void close_scope(const struct experiment_writer *writer, uint32_t i, struct buf *out)
{
    buf_printf(out, "</%s>\n%s", tag_of(&writer->model->scopes[i]), writer->layout->calls[i] ? "</C>\n" : "");
}

static void put_tree(const struct experiment_writer *writer, struct buf *out)
{
    const struct model *model = writer->model;
    uint32_t open = 0;
    buf_printf(out, "<SecCallPathProfileData>\n");
    put_values(writer, 0, 1, out);
    for (uint32_t i = 1; i < model->n_scopes; i++) {
        if (model->scopes[i].kind == SCOPE_INSTRUCTION)
            continue;
        for (; open != model->scopes[i].parent; open = model->scopes[open].parent)
            close_scope(writer, open, out);
        open_scope(writer, i, out);
        open = i;
    }
    for (; open; open = model->scopes[open].parent)
        close_scope(writer, open, out);
    buf_printf(out, "</SecCallPathProfileData>\n");
}

int experiment_write(const struct model *model, const struct columns *columns, const struct summary *summary,
                     const struct xml_layout *layout, const char *title, const struct source_copies *copies,
                     struct buf *out, struct error *err)
{
    const struct experiment_writer writer = {model, columns, summary, layout};
    buf_printf(out, "<?xml version=\"1.0\"?>\n<HPCToolkitExperiment version=\"2.2\">\n<Header");
    put_attribute(out, "n", title);
    buf_printf(out, ">\n  <Info/>\n</Header>\n<SecCallPathProfile i=\"0\"");
    put_attribute(out, "n", title);
    buf_printf(out, ">\n<SecHeader>\n");
    put_metrics(&writer, out);
    int code = put_names(model, copies, out, err);
    buf_printf(out, "  <Info/>\n</SecHeader>\n");
    put_tree(&writer, out);
    buf_printf(out, "</SecCallPathProfile>\n</HPCToolkitExperiment>\n");
    if (code == 0 && out->failed)
        code = error_set(err, ERR_MEMORY, "out of memory while writing experiment.xml");
    return code;
}
