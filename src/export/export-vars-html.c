/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables as a page for a browser. */
#include "export/vars-table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report.h"
#include "base/input.h"
#include "base/path.h"
#include "export/exporters.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2330;--dim:#5b6577;--line:#dfe3ea;--soft:#f4f6f9;"
    "--memory:#c2410c;--execution:#2f6fb3;--unverified:#9aa3b2;--accent:#1f5fa8}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181f;--ink:#e4e8ef;--dim:#98a2b3;--line:#2b323d;"
    "--soft:#1b212a;--memory:#f0803c;--execution:#5b9bdd;--unverified:#6b7484;--accent:#8fbdf0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,'DejaVu Sans',sans-serif}\n"
    "main{max-width:82rem;margin:0 auto;padding:1.2rem 1.4rem 3rem}\n"
    "h1{font-size:1.35rem;margin:.2rem 0 .8rem;overflow-wrap:anywhere}\n"
    "code,.mono{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:.88em;overflow-wrap:anywhere}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:0 0 1.3rem}\n"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;width:100%;margin:0 0 1.4rem}\n"
    "th{position:sticky;top:0;background:var(--paper);text-align:left;font-weight:600;color:var(--dim);"
    "font-size:.85rem;border-bottom:2px solid var(--line);padding:.35rem .6rem;vertical-align:bottom}\n"
    "td{border-bottom:1px solid var(--line);padding:.5rem .6rem;vertical-align:top}\n"
    "th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "td.name{min-width:14rem}td.from{overflow-wrap:anywhere}\n"
    "tr.special{background:var(--soft)}tr.aside td{color:var(--dim)}\n"
    ".bar{display:block;height:.6rem;min-width:7rem;margin-top:.4rem;background:var(--line);border-radius:.2rem;"
    "overflow:hidden;white-space:nowrap;font-size:0;text-align:left}\n"
    ".bar i{display:inline-block;height:100%}\n"
    ".memory{background:var(--memory)}.execution{background:var(--execution)}.unverified{background:var(--unverified)}"
    ".share{background:var(--accent)}\n"
    ".key{display:inline-block;width:.75em;height:.75em;border-radius:.15em;margin:0 .3em 0 .8em}\n"
    ".dim{color:var(--dim);font-size:.9rem}p{margin:.25rem 0}\n"
    "summary{cursor:pointer;color:var(--accent);font-size:.9rem}details{margin:.25rem 0 0}\n"
    "ol,ul{margin:.2rem 0 .4rem;padding-left:1.4rem}pre{margin:.3rem 0;overflow-x:auto;font-size:.82rem}\n"
    "@media(max-width:60rem){main{padding:.8rem}thead{display:none}table,tbody{display:block}"
    "tr{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.5rem,1fr));gap:.1rem .8rem;padding:.6rem .4rem;"
    "border-bottom:1px solid var(--line)}td{border:0;padding:.1rem 0;display:block}"
    "td.n{text-align:left}td.name,td.from,td.wide{grid-column:1/-1;min-width:0}td.name{order:-1}"
    "td[data-label]::before{content:attr(data-label);display:block;color:var(--dim);font-size:.75rem}"
    "dl{grid-template-columns:1fr}dd{margin:0 0 .4rem}}\n"
    "@media print{th{position:static}}\n";

/* Appends text as content or as the value of an attribute in quotes: printable (base/input.h), and escaped. */
static void html_put(struct buf *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    struct buf plain = {0};
    printable_put(&plain, text);
    for (const char *p = plain.data ? plain.data : ""; *p; p++) {
        size_t i = 0;
        while (special[i] && special[i] != *p)
            i++;
        if (special[i])
            buf_printf(out, "%s", escaped[i]);
        else
            buf_append(out, p, 1);
    }
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

/* Appends an element with this content, which is escaped; class: NULL = none. Element and class are not escaped. */
static void html_put_element(struct buf *out, const char *element, const char *class, const char *text)
{
    buf_printf(out, class ? "<%s class=\"%s\">" : "<%s>", element, class);
    html_put(out, text);
    buf_printf(out, "</%s>", element);
}

static void html_put_begin(struct buf *out, const char *title)
{
    buf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                    "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html_put_element(out, "title", NULL, title);
    buf_printf(out, "\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
}

/* Appends the beginning of a page with its style, up to the first line of the body; and its end. The page refers to
 * nothing outside and has no scripts. */
static void html_put_end(struct buf *out)
{
    buf_printf(out, "</main>\n</body>\n</html>\n");
}

/* --- the page --- */

/* The page says what the text says, with the parts of each share as a bar and the paths to each allocation in sections
 * that unfold. */

#define LINES_SHOWN 1 /* the others unfold */
#define LINES_MAX 40
#define PATHS_MAX 20
#define ONE_LINE 1000000u /* columns of a terminal on which nothing is wrapped */

/* One table being written. */
struct page {
    const struct report *report;
    const struct export_job *job; /* for a very wide terminal */
    struct buf *out;
};

static void put_percent(struct buf *out, const char *title, const char *class, double percent)
{
    buf_printf(out, "<td class=\"n %s\" data-label=\"%s\">%.1f %%", class, title, percent);
}

/* Turns lines of the text report into items: a label and words, or the name of a row and what it means. */
static void put_labelled(struct buf *out, const char *text)
{
    buf_printf(out, "<dl>\n");
    while (text && *text) {
        const char *end = text + strcspn(text, "\n"), *colon = *text == '<' ? strstr(text, ">: ") : NULL;
        size_t len = colon && colon < end ? (size_t)(colon + 1 - text) : TEXT_LABEL_WIDTH;
        size_t n = len < (size_t)(end - text) ? len : (size_t)(end - text);
        char *label = strndup(text, n), *words = strndup(text + n, (size_t)(end - text) - n);
        while (label && *label && label[strlen(label) - 1] == ' ')
            label[strlen(label) - 1] = 0;
        if (end > text && label && words) {
            html_put_element(out, "dt", NULL, label);
            html_put_element(out, "dd", NULL, words + strspn(words, ": "));
            buf_append(out, "\n", 1);
        }
        out->failed = out->failed || !label || !words;
        free(label);
        free(words);
        text = *end ? end + 1 : end;
    }
    buf_printf(out, "</dl>\n");
}

static void put_titles(const struct page *page)
{
    const struct report *report = page->report;
    struct buf *out = page->out;
    buf_printf(out, "<table>\n<thead><tr><th class=\"n\">%s</th>", report->has_too_few ? "samples" : "share");
    if (report->has_causes && !report->has_too_few)
        buf_printf(out, "<th class=\"n\">memory</th><th class=\"n\">execution</th><th class=\"n\">unverified</th>");
    buf_printf(out, "<th>variable</th><th>class</th>");
    for (size_t m = 0; report->is_hardware && metrics_row(m); m++)
        if (metrics_row(m)->title) {
            buf_printf(out, "<th class=\"n\" title=\"");
            html_put(out, metrics_row(m)->description);
            buf_printf(out, "\">%s</th>", metrics_row(m)->title);
        }
    buf_printf(out, "<th class=\"n\">size</th><th class=\"n\">blocks</th><th>comes from</th></tr></thead>\n<tbody>\n");
}

static size_t count_columns(const struct report *report)
{
    size_t n = report->has_causes && !report->has_too_few ? 9 : 6;
    for (size_t m = 0; report->is_hardware && metrics_row(m); m++)
        n += metrics_row(m)->title != NULL;
    return n;
}

static void put_part(struct buf *out, const char *class, double percent)
{
    if (percent >= 0.05)
        buf_printf(out, "<i class=\"%s\" style=\"width:%.1f%%\"></i>", class, percent > 100 ? 100 : percent);
}

/* The share, and what that time was spent on. */
static void put_shares(const struct page *page, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    struct buf *out = page->out;
    if (page->report->has_too_few) {
        buf_printf(out, "<td class=\"n\" data-label=\"samples\">%.0f</td>", row->samples);
        return;
    }
    put_percent(out, "share", "share-cell", row->share);
    buf_printf(out, "<span class=\"bar\" aria-hidden=\"true\">");
    if (page->report->has_causes) {
        put_part(out, "memory", sum->memory);
        put_part(out, "execution", sum->execution);
        put_part(out, "unverified", sum->unverified);
    } else {
        put_part(out, "share", row->share);
    }
    buf_printf(out, "</span></td>");
    if (!page->report->has_causes)
        return;
    if (report_is_memory_unknown(sum))
        buf_printf(out, "<td class=\"n \" data-label=\"memory\">unknown");
    else
        put_percent(out, "memory", "", sum->memory);
    buf_printf(out, "</td>");
    put_percent(out, "execution", "", sum->execution);
    buf_printf(out, "</td>");
    put_percent(out, "unverified", "", sum->unverified);
    buf_printf(out, "</td>");
}

/* Lines that access the variable: the first ones, and the others in a section that unfolds. */
static void put_lines(const struct page *page, const struct report_row *row)
{
    struct buf *out = page->out, places = {0};
    size_t n = row->n_lines < LINES_MAX ? row->n_lines : LINES_MAX;
    lines_put_places(page->report, row, &places);
    if (places.len_bytes)
        html_put_element(out, "p", "dim", places.data);
    buf_fini(&places);
    while (n > 1 && row->lines[n - 1].value < 0.005 * row->value)
        n--;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        struct buf line = {0};
        if (i == LINES_SHOWN)
            buf_printf(out, "<details><summary>%zu more line%s</summary>", n - i, n - i == 1 ? "" : "s");
        lines_put_place(page->report, row, i, &line);
        html_put_element(out, "p", "dim mono", line.data ? line.data : "");
        buf_fini(&line);
    }
    buf_printf(out, n > LINES_SHOWN ? "</details>" : "");
}

static void put_name(const struct page *page, const struct report_row *row)
{
    struct buf *out = page->out, fields = {0};
    const char *meaning =
        row->share >= MEANING_PERCENT && !page->report->has_too_few ? report_meaning(page->report, row) : NULL;
    buf_printf(out, "<td class=\"name\"><b class=\"mono\">");
    html_put(out, row->name);
    buf_printf(out, "</b>");
    if (meaning)
        html_put_element(out, "p", "dim", meaning);
    put_lines(page, row);
    fields_put_row(page->job, row, 0, &fields);
    if (fields.len_bytes) {
        buf_printf(out, "<pre>");
        for (char *line = fields.data, *end; *line; line = end) { /* html_put knows no lines */
            end = line + strcspn(line, "\n");
            bool is_end = !*end;
            *end = 0;
            html_put(out, line);
            buf_append(out, "\n", 1);
            end += !is_end;
        }
        buf_printf(out, "</pre>");
    }
    buf_fini(&fields);
    buf_printf(out, "</td>");
}

/* The functions on one allocation path, innermost first, each with the line of its call. */
static void put_path(const struct page *page, uint32_t scope)
{
    const struct model *model = page->report->model;
    uint32_t line = 0, file = 0;
    buf_printf(page->out, "<ol>");
    while ((scope = model->scopes[scope].parent) != 0 && model->scopes[scope].role <= ROLE_PARTIAL) {
        const struct scope *at = &model->scopes[scope];
        if (at->kind == SCOPE_CALL || at->kind == SCOPE_POSITION) {
            line = at->line;
            file = at->file;
        }
        if (at->kind != SCOPE_PROC && at->kind != SCOPE_INLINED)
            continue;
        struct buf text = {0};
        text_function(&text, model_text(model, at->name));
        if (line && at->role == ROLE_NONE)
            buf_printf(&text, " %s:%u", path_last(model_text(model, file)), line);
        html_put_element(page->out, "li", "mono", text.data ? text.data : "");
        buf_fini(&text);
        line = 0;
    }
    buf_printf(page->out, "</ol>");
}

/* Where the blocks come from, by call path. */
static void put_paths(const struct page *page, const struct variable *variable)
{
    const struct report *report = page->report;
    const uint32_t *scopes = variable->scopes; /* the costliest first */
    size_t n = variable->n_scopes;
    double all = 0;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        all += model_value(report->model, scopes[i], report->metric);
    buf_printf(page->out, "<details><summary>%zu allocation path%s</summary>", n, n == 1 ? "" : "s");
    for (size_t i = 0; i < n && i < PATHS_MAX; i++) {
        if (n > 1 && all > 0)
            buf_printf(page->out, "<p class=\"dim\">%.1f %%</p>",
                       100 * model_value(report->model, scopes[i], report->metric) / all);
        put_path(page, scopes[i]);
    }
    if (n > PATHS_MAX)
        buf_printf(page->out, "<p class=\"dim\">%zu more</p>", n - PATHS_MAX);
    buf_printf(page->out, "</details>");
}

static void put_derived(const struct page *page, const struct report_row *row)
{
    for (size_t m = 0; page->report->is_hardware && metrics_row(m); m++) {
        const struct metric_derived *metric = metrics_row(m);
        double value = row->derived ? row->derived[m] : (double)NAN;
        struct buf number = {0};
        if (!metric->title)
            continue;
        buf_printf(&number, metrics_is_beyond(metric, value) ? "> " : "");
        text_number(&number, value);
        buf_printf(page->out, "<td class=\"n\" data-label=\"%s\">", metric->title);
        html_put(page->out, number.data ? number.data : "");
        buf_printf(page->out, "</td>");
        buf_fini(&number);
    }
}

static void put_row(const struct page *page, const struct report_row *row)
{
    struct buf *out = page->out, origin = {0};
    const struct variable *variable = row->variable;
    bool is_special = report_is_special(row);
    bool is_block = variable && (variable->class == CLASS_HEAP || variable->class == CLASS_MMAP);
    buf_printf(out, "<tr class=\"%s\">", is_special ? "special" : "variable");
    put_shares(page, row);
    put_name(page, row);
    buf_printf(out, "<td data-label=\"class\">");
    html_put(out, is_special ? "-" : row->class);
    buf_printf(out, "</td>");
    put_derived(page, row);
    buf_printf(out, "<td class=\"n\" data-label=\"size\">");
    vars_table_put_size(row, out);
    buf_printf(out, "</td><td class=\"n\" data-label=\"blocks\">");
    vars_table_put_blocks(row, out);
    buf_printf(out, "</td>");
    vars_table_put_origin(page->report, row, &origin);
    buf_printf(out, "<td class=\"from\" data-label=\"comes from\"><span class=\"mono\">");
    html_put(out, origin.data ? origin.data : "-");
    buf_printf(out, "</span>");
    if (is_block)
        put_paths(page, variable);
    buf_printf(out, "</td></tr>\n");
    buf_fini(&origin);
}

/* A row that consists of a share and words. */
static void put_aside(const struct page *page, double share, const char *name, const char *words)
{
    buf_printf(page->out, "<tr class=\"aside\"><td class=\"n\">%.1f %%</td><td class=\"wide\" colspan=\"%zu\">", share,
               count_columns(page->report) - 1);
    html_put_element(page->out, "b", "mono", name);
    buf_append(page->out, " ", 1);
    html_put(page->out, words);
    buf_printf(page->out, "</td></tr>\n");
}

static void put_kernel(const struct page *page)
{
    const struct report *report = page->report;
    double share = report_kernel_percent(report);
    char words[128];
    if (share <= 0)
        return;
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s in system calls and page faults", report->system_s);
    put_aside(page, share, SPECIAL_KERNEL, words);
    (void)snprintf(words, sizeof words, "of the CPU time: %.2f s, whose samples are the rows below", report->user_s);
    put_aside(page, 100 - share, "user code", words);
}

static void put_table(const struct page *page, size_t n)
{
    const struct report *report = page->report;
    double rest = 0;
    char count[32];
    put_titles(page);
    put_kernel(page);
    for (size_t i = 0; i < n; i++)
        put_row(page, &report->rows[i]);
    for (size_t i = n; i < report->n_rows; i++)
        rest += report->rows[i].share;
    (void)snprintf(count, sizeof count, "%zu", report->n_rows - n);
    if (n < report->n_rows)
        put_aside(page, rest, count, "more (--top 0 shows all)");
    buf_printf(page->out, "</tbody>\n</table>\n");
    if (report->has_causes && !report->has_too_few)
        buf_printf(page->out, "<p class=\"dim\">bars:<span class=\"key memory\"></span>waiting for memory"
                              "<span class=\"key execution\"></span>computation (data is only its input)"
                              "<span class=\"key unverified\"></span>not verified</p>\n");
}

static int write_html(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct export_job wide = *job;
    struct buf head = {0}, foot = {0};
    const char *program = job->model->command ? job->model->command : job->model->program ? job->model->program : "?";
    int code = report_make(job->model, job->metric, job->with_unused, job->with_paths, &report, err);
    if (code != 0)
        return code;
    wide.columns = ONE_LINE;
    wide.color = false;
    wide.unicode = true;
    if (!job->by_time)
        report_order_by_memory(&report);
    const struct page page = {&report, &wide, out};
    size_t n_first, n = report_choose(&report, job->top, &n_first);
    html_put_begin(out, program);
    buf_printf(out, "<h1>Which data does <span class=\"mono\">");
    html_put(out, program);
    buf_printf(out, "</span> spend its time on?</h1>\n");
    head_put(&report, &wide, &head);
    put_labelled(out, head.data);
    put_table(&page, n);
    foot_put(&report, &wide, n, &foot);
    put_labelled(out, foot.data);
    html_put_end(out);
    out->failed = out->failed || head.failed || foot.failed;
    buf_fini(&head);
    buf_fini(&foot);
    report_fini(&report);
    return 0;
}

const struct exporter export_vars_html = {"vars", "html", write_html};
