/* SPDX-License-Identifier: BSD-3-Clause */
/* The page for a browser: see page.h. The application's parts are the same in every page (web/join.sh makes C of them);
 * what is recorded lies between them: each answer in packed columns, deflated, in base 85, under the text of the
 * request that the script asks for. Small answers are deflated together, since their headers are much alike. The first
 * screen is made here, so that it can be read before any script runs.
 *
 * Whatever the measured program chose (names, paths, sources) is data: it lies in base 85, or stands escaped in the
 * first screen, where nothing of it can be a tag. The page's policy lets nothing else run, and loads nothing. */
#include "config.h"

#include "face/page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/input.h"
#include "fmt/json.h"
#include "session/face.h"
#include "table/table.h"

#define ROWS_FIRST 100              /* of the table of the first screen */
#define CARDS_FIRST 8               /* pieces of advice there */
#define SOURCE_BYTES_MAX (4u << 20) /* of all sources in one page */
#define INSTRUCTIONS_FIRST 5        /* functions whose instructions are recorded */
#define SMALL_BYTES_MAX (16u << 10) /* of an answer that is deflated with others */
#define NODES_MIN "0.01"            /* percent: smaller nodes are folded */

/* The parts that are the same in every page: made from the files at build time. Hashes: SHA-256 in base64. */
extern const char page_html[], page_css[], page_js[], page_code[], page_css_hash[], page_js_hash[], page_code_hash[],
    page_time_code[], page_both_hash[];

struct record {
    struct session *session;
    const struct page_choice *choice;
    struct buf sections; /* the recorded answers */
    struct buf small;    /* those of few bytes, one behind the other */
    struct buf first;    /* the first screen */
    size_t source_bytes;
    bool has_time; /* there is a time line */
};

/* --- text --- */

/* Length in bytes of a character that cannot be seen, or that changes the direction of what follows, and its number; 0
 * for others. The same as the script's. */
static size_t hidden_length(const char *text, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80 ? 1 : printable_utf8(text);
    *code = len == 1   ? s[0]
            : len == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
            : len == 3 ? (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu)
                       : 0xffff;
    bool is_hidden = *code < ' ' || (*code >= 0x7f && *code < 0xa0) || *code == 0x61c ||
                     (*code >= 0x200b && *code <= 0x200f) || (*code >= 0x2028 && *code <= 0x202e) ||
                     (*code >= 0x2060 && *code <= 0x206f) || *code == 0xfeff;
    return is_hidden ? len : 0;
}

/* Appends text that is no markup, in an element or in an attribute in single quotes. */
static void put_escaped(struct buf *out, const char *text)
{
    uint32_t code;
    while (text && *text) {
        size_t len = (unsigned char)*text < 0x80 ? 1 : printable_utf8(text),
               n_hidden = len ? hidden_length(text, &code) : 0;
        if (n_hidden)
            buf_printf(out, "\\u%04x", code);
        else if (len == 0)
            buf_append(out, "\xef\xbf\xbd", 3);
        else if (*text == '<' || *text == '>' || *text == '&' || *text == '\'')
            buf_printf(out, "%s", *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : "&#39;");
        else
            buf_append(out, text, len);
        text += len ? len : 1;
    }
}

/* Appends a text as JSON.stringify does. */
static void put_js_text(struct buf *out, const char *text)
{
    static const char names[] = "btn fr";
    buf_append(out, "\"", 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 8 && c <= 13 && c != 11)
            buf_printf(out, "\\%c", names[c - 8]);
        else if (c < ' ')
            buf_printf(out, "\\u%04x", c);
        else
            buf_printf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    buf_append(out, "\"", 1);
}

/* Appends bytes in base 85, as bytesOf of web/unpack.js reads them: five characters for four bytes, the highest digit
 * first, from '(' on, but none of which a tag could be made. So many bytes at the end have one character more. */
static void put_base85(struct buf *out, const unsigned char *bytes, size_t n)
{
    char group[5];
    for (size_t i = 0; i < n; i += 4) {
        size_t n_here = n - i < 4 ? n - i : 4;
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++)
            word = word << 8 | (k < n_here ? bytes[i + k] : 0);
        for (size_t k = 5; k-- > 0; word /= 85) {
            char digit = (char)('(' + word % 85);
            group[k] = digit == '<' ? '}' : digit == '\\' ? '~' : digit;
        }
        buf_append(out, group, n_here + 1);
    }
}

/* --- recorded answers --- */

/* Whether the input has no answer to a question, also where it lacks a file; else the page would lack what there is. */
static bool is_no_answer(int code, const struct error *failure)
{
    return code == ERR_USAGE || code == ERR_NOT_FOUND || code == ERR_UNSUPPORTED ||
           (code == ERR_IO && strstr(failure->text, strerror(ENOENT)));
}

/* Appends bytes, deflated if that can be done here; returns the word for it. */
static const char *put_packed(struct buf *out, const struct buf *bytes)
{
#if HAVE_ZLIB
    uLongf n = compressBound(bytes->len_bytes);
    Bytef *deflated = malloc(n);
    bool is_done =
        deflated && compress2(deflated, &n, (const Bytef *)bytes->data, bytes->len_bytes, Z_BEST_COMPRESSION) == Z_OK;
    if (is_done)
        put_base85(out, deflated, n);
    free(deflated);
    if (is_done)
        return "deflate";
#endif
    put_base85(out, (const unsigned char *)bytes->data, bytes->len_bytes);
    return "plain";
}

/* A section of the page: what was asked, in which form, and what it holds. */
static void put_section(struct record *record, const char *asked, const char *form, const struct buf *held)
{
    struct buf *out = &record->sections;
    buf_printf(out, "<script type=\"text/plain\" class=\"answer\" data-ask='");
    put_escaped(out, asked);
    buf_printf(out, "' data-form=\"%s\">", form);
    buf_append(out, held->data, held->len_bytes);
    buf_printf(out, "</script>\n");
    out->failed |= held->failed;
}

/* Records why there is no answer, as text in which nothing ends a script. */
static void put_failure(struct record *record, const char *asked, const struct error *failure)
{
    struct buf text = {0};
    for (const char *at = failure->text; *at; at++)
        if (*at == '<')
            buf_append(&text, "\xe2\x80\xb9", 3);
        else
            buf_append(&text, at, 1);
    put_section(record, asked, "error", &text);
    buf_fini(&text);
}

static void put_answer(struct record *record, const char *asked, const struct answer *answer)
{
    struct buf packed = {0}, held = {0};
    const char *form = "part";
    answer_print_packed(answer, &packed);
    if (packed.len_bytes <= SMALL_BYTES_MAX) {
        buf_printf(&held, "%zu %zu", record->small.len_bytes, packed.len_bytes);
        buf_append(&record->small, packed.data, packed.len_bytes);
    } else {
        form = put_packed(&held, &packed);
    }
    held.failed |= packed.failed;
    put_section(record, asked, form, &held);
    buf_fini(&packed);
    buf_fini(&held);
}

/* Records the small answers, from which each part is taken. */
static void put_small(struct record *record)
{
    struct buf *out = &record->sections, held = {0};
    const char *form = put_packed(&held, &record->small);
    buf_printf(out, "<script type=\"text/plain\" id=\"small\" data-form=\"%s\">", form);
    buf_append(out, held.data, held.len_bytes);
    buf_printf(out, "</script>\n");
    out->failed |= held.failed || record->small.failed;
    buf_fini(&held);
}

/* What the choice says of a request for variables. */
static void choose(struct request *request, const struct request *chosen)
{
    request->order = chosen->order;
    request->derived = chosen->derived;
    request->n_derived = chosen->n_derived;
    request->top = chosen->top;
    request->least = chosen->least;
    request->has_least = chosen->has_least;
    request->with_paths = chosen->with_paths;
    request->with_unused = chosen->with_unused;
}

/* Asks; *answer is the caller's.  err: as session_ask */
static int ask(struct record *record, const char *asked, bool is_chosen, struct answer **answer, struct error *err)
{
    const struct request *chosen = record->choice ? record->choice->variables : NULL;
    struct request_text parsed;
    *answer = NULL;
    int code = request_of_json(asked, &parsed, err);
    if (code == 0 && chosen && is_chosen)
        choose(&parsed.request, chosen);
    if (code == 0 && chosen && strcmp(parsed.request.report, "items") != 0)
        parsed.request.metric = chosen->metric;
    if (code == 0)
        code = session_ask(record->session, &parsed.request, answer, err);
    request_text_fini(&parsed);
    return code;
}

/* Records an answer under the text of its request, or why there is none.  err: ERR_MEMORY */
static int put_asked(struct record *record, const char *asked, struct error *err)
{
    struct answer *answer;
    struct error failure = {0};
    int code = ask(record, asked, false, &answer, &failure);
    if (code == 0)
        put_answer(record, asked, answer);
    else if (is_no_answer(code, &failure))
        put_failure(record, asked, &failure);
    else
        *err = failure;
    answer_free(answer);
    return code == 0 || is_no_answer(code, &failure) ? 0 : code;
}

/* The column of a table, SIZE_MAX: there is none; of several with this key the one that is no CSV's alone. */
static size_t column_of(const struct table *table, const char *key)
{
    size_t i = 0;
    while (i < table_columns(table) && (strcmp(table_key(table, i), key) != 0 ||
                                        (table_is_for_csv(table, i) && !(table->columns[i].kind & COLUMN_NO_CSV))))
        i++;
    return i < table_columns(table) ? i : SIZE_MAX;
}

static const char *text_at(const struct table *table, const char *key, size_t row)
{
    const char *text = NULL;
    size_t column = column_of(table, key);
    return column != SIZE_MAX && table_get_texts(table, column, row, 1, &text) ? text : NULL;
}

static double number_at(const struct table *table, const char *key, size_t row)
{
    double number = (double)NAN;
    size_t column = column_of(table, key);
    return column != SIZE_MAX && table_get_numbers(table, column, row, 1, &number) ? number : (double)NAN;
}

/* --- sources and instructions --- */

/* Files with what they cost, in no order. */
struct files {
    struct strtab names;
    double *costs; /* [n] */
    size_t cap;
};

static bool add_file(struct files *files, const char *name, double cost)
{
    int64_t at = strtab_intern(&files->names, name);
    bool ok = at >= 0 && vec_reserve(&files->costs, &files->cap, files->names.n_strings, sizeof *files->costs);
    if (ok)
        files->costs[at] += cost;
    return ok;
}

/* Records one source, unless there are too many bytes of them by now. */
static int put_source(struct record *record, const char *file, struct error *err)
{
    struct buf asked = {0};
    struct answer *answer;
    struct error failure = {0};
    const char *text;
    size_t n_bytes = 0;
    buf_printf(&asked, "{\"report\":\"source\",\"subject\":");
    put_js_text(&asked, file);
    buf_append(&asked, "}", 1);
    int code = asked.failed ? error_memory(&failure) : ask(record, asked.data, false, &answer, &failure);
    for (size_t i = 0; code == 0 && i < table_rows(answer_rows(answer)); i++)
        n_bytes += (text = text_at(answer_rows(answer), "text", i)) ? strlen(text) : 0;
    if (code == 0 && n_bytes > SOURCE_BYTES_MAX - record->source_bytes)
        code = error_set(&failure, ERR_UNSUPPORTED,
                         "the page has many sources, and not this one: hpcviewer shows it from the database");
    if (code == 0) {
        record->source_bytes += n_bytes;
        put_answer(record, asked.data, answer);
    } else if (is_no_answer(code, &failure)) {
        put_failure(record, asked.data, &failure);
        code = 0;
    } else {
        *err = failure;
    }
    if (!asked.failed)
        answer_free(answer);
    buf_fini(&asked);
    return code;
}

/* Records the sources of the lines with values, the costliest first. */
static int put_sources(struct record *record, const struct table *lines, struct error *err)
{
    struct files files = {0};
    bool ok = true;
    int code = 0;
    for (size_t i = 0; ok && i < table_rows(lines); i++) {
        const char *file = text_at(lines, "file", i);
        double own = number_at(lines, "own", i);
        ok = !file || *file == '<' || add_file(&files, file, isnan(own) ? 0 : own);
    }
    for (size_t n = 0; ok && code == 0 && n < files.names.n_strings; n++) {
        size_t most = 0;
        for (size_t i = 1; i < files.names.n_strings; i++)
            most = files.costs[i] > files.costs[most] ? i : most;
        files.costs[most] = -1;
        code = put_source(record, files.names.strings[most], err);
    }
    strtab_fini(&files.names);
    free(files.costs);
    return ok ? code : error_memory(err);
}

/* Records the instructions of the costliest functions, where the database has their costs. */
static int put_instructions(struct record *record, const struct table *functions, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < table_rows(functions) && i < INSTRUCTIONS_FIRST; i++) {
        const char *name = text_at(functions, "function", i);
        struct buf asked = {0};
        struct answer *answer = NULL;
        struct error failure = {0};
        buf_printf(&asked, "{\"instructions\":true,\"report\":\"annotate\",\"subject\":");
        put_js_text(&asked, name ? name : "");
        buf_append(&asked, "}", 1);
        code = asked.failed ? error_memory(&failure) : ask(record, asked.data, false, &answer, &failure);
        if (code == 0 && number_at(answer_head(answer), "has_costs", 0) > 0)
            put_answer(record, asked.data, answer);
        if (code != 0 && !is_no_answer(code, &failure))
            *err = failure;
        code = is_no_answer(code, &failure) ? 0 : code;
        answer_free(answer);
        buf_fini(&asked);
    }
    return code;
}

/* --- the first screen --- */

static void put_percent(struct buf *out, double percent)
{
    if (isnan(percent))
        buf_append(out, "-", 1);
    else
        buf_printf(out, "%.1f %%", percent);
}

/* A bar of the parts of a share, in percent of its length, which is so many percent of all. */
static void put_bar(struct buf *out, const struct table *rows, size_t row, double length)
{
    static const char *const keys[] = {"memory_share", "execution_share", "unverified_share", "first_touch_share"};
    static const char *const classes[] = {"memory", "execution", "unverified", "touch"};
    static const char *const words[] = {"waiting for memory", "execution", "not verified", "first touches"};
    struct buf said = {0}, parts = {0};
    double at = 0, share = number_at(rows, "share", row);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double part = number_at(rows, keys[i], row);
        if (isnan(part) || part < 0.05 || length <= 0)
            continue;
        buf_printf(&said, "%s%s %.1f %%", said.len_bytes ? ", " : "", words[i], part);
        buf_printf(&parts, "<rect class=\"%s\" x=\"%.1f\" width=\"%.1f\" height=\"8\"/>", classes[i], at,
                   100 * part / length);
        at += 100 * part / length;
    }
    if (!parts.len_bytes && share > 0 && length > 0)
        buf_printf(&parts, "<rect class=\"other\" width=\"%.1f\" height=\"8\"/>", 100 * share / length);
    buf_printf(out,
               "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">"
               "%s</svg>",
               said.data ? said.data : "share", parts.data ? parts.data : "");
    out->failed |= said.failed || parts.failed;
    buf_fini(&said);
    buf_fini(&parts);
}

/* An element with a text of the program in it. */
static void put_element(struct buf *out, const char *tag, const char *text)
{
    buf_printf(out, "<%s>", tag);
    put_escaped(out, text);
    buf_printf(out, "</%s>", tag);
}

/* The row of the variable that a piece of advice is about, SIZE_MAX: there is none. */
static size_t row_of(const struct table *variables, const char *name, const char *site)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; name && i < table_rows(variables); i++) {
        const char *here = text_at(variables, "variable", i), *from = text_at(variables, "alloc_site", i);
        bool is_site = from && site && strcmp(from, site) == 0;
        if (here && strcmp(here, name) == 0 && (found == SIZE_MAX || is_site))
            found = i;
    }
    return found;
}

/* What to change: one card for each variable. */
static void put_card(struct buf *out, const struct table *advice, size_t i, const struct table *variables)
{
    const char *name = text_at(advice, "variable", i), *site = text_at(advice, "alloc_site", i);
    const char *place = text_at(advice, "place", i), *bound = text_at(advice, "bound", i);
    double gain = number_at(advice, "gain_at_most", i);
    size_t row = variables ? row_of(variables, name, site) : SIZE_MAX;
    buf_printf(out, "<li class=\"card\"><div class=\"card-head\"><span class=\"figure\">");
    put_percent(out, number_at(advice, "share", i));
    buf_printf(out, "</span>");
    put_element(out, "bdi", name);
    if (site && (!name || strcmp(site, name) != 0)) {
        buf_printf(out, "<span class=\"dim\">");
        put_escaped(out, site);
        buf_printf(out, "</span>");
    }
    buf_printf(out, "</div>");
    if (row != SIZE_MAX)
        put_bar(out, variables, row, 100);
    buf_printf(out, "<p class=\"do\">");
    put_escaped(out, text_at(advice, "advice", i));
    buf_printf(out, "</p><p class=\"facts\">");
    if (!isnan(gain))
        buf_printf(out, "<strong>Gains at most %.1f %%</strong> of the %stime%s. ", gain,
                   number_at(advice, "of_cpu_time", i) > 0 ? "CPU " : "",
                   bound && strcmp(bound, "not verified") == 0 ? ", not verified" : "");
    put_escaped(out, place);
    buf_printf(out, "</p></li>\n");
}

static bool is_kernel(const struct table *rows, size_t row)
{
    const char *class = text_at(rows, "class", row);
    return class && strcmp(class, "kernel") == 0;
}

/* The first rows of the table of variables. */
static void put_rows(struct buf *out, const struct table *rows)
{
    size_t n = table_rows(rows), n_shown = n < ROWS_FIRST ? n : ROWS_FIRST;
    double longest = n ? number_at(rows, "share", 0) : 0;
    buf_printf(out, "<table class=\"small\"><thead><tr><th scope=\"col\">share</th><th scope=\"col\">causes</th>"
                    "<th scope=\"col\">variable</th><th scope=\"col\">class</th><th scope=\"col\">comes from</th></tr>"
                    "</thead><tbody>\n");
    for (size_t i = 0; i < n_shown; i++) {
        buf_printf(out, "<tr><td class=\"n\">");
        if (is_kernel(rows, i))
            buf_printf(out, "-"); /* it gives no samples */
        else
            put_percent(out, number_at(rows, "share", i));
        buf_printf(out, "</td><td>");
        put_bar(out, rows, i, longest);
        buf_printf(out, "</td><td>");
        put_element(out, "bdi", text_at(rows, "variable", i));
        buf_printf(out, "</td>");
        put_element(out, "td", text_at(rows, "class", i));
        put_element(out, "td", text_at(rows, "alloc_site", i));
        buf_printf(out, "</tr>\n");
    }
    buf_printf(out, "</tbody></table>\n");
    if (n > n_shown)
        buf_printf(out, "<p class=\"dim\">%zu more</p>\n", n - n_shown);
}

/* The lines of text that stand above the report. */
static void put_lines(struct buf *out, const struct table *head)
{
    const struct table *lines = NULL;
    size_t column = column_of(head, "lines");
    if (column == SIZE_MAX || !table_get_tables(head, column, 0, 1, &lines) || !lines)
        return;
    buf_printf(out, "<div class=\"first-head\">\n");
    for (size_t i = 0; i < table_rows(lines); i++) {
        buf_printf(out, "<p><span class=\"dim\">");
        put_escaped(out, text_at(lines, "label", i));
        buf_printf(out, " </span>");
        put_escaped(out, text_at(lines, "words", i));
        buf_printf(out, "</p>\n");
    }
    buf_printf(out, "</div>\n");
}

/* variables, advice: NULL where there are none. */
static void put_first(struct record *record, const struct answer *session, const struct table *variables,
                      const struct table *advice)
{
    struct buf *out = &record->first;
    const struct table *head = answer_head(session);
    const char *command = text_at(head, "command", 0);
    put_element(out, "h1", command ? command : answer_program(session));
    buf_append(out, "\n", 1);
    put_lines(out, head);
    if (advice && table_rows(advice)) {
        buf_printf(out, "<ol class=\"cards\">\n");
        for (size_t i = 0; i < table_rows(advice) && i < CARDS_FIRST; i++)
            put_card(out, advice, i, variables);
        buf_printf(out, "</ol>\n");
    }
    if (variables)
        put_rows(out, variables);
}

/* --- the whole --- */

/* What is recorded beside the answers that the first screen needs, as the script asks for it. */
static const char *const recorded[] = {
    "{\"by\":\"thread\",\"report\":\"vars\"}",
    "{\"by\":\"thread\",\"report\":\"functions\"}",
    "{\"min\":" NODES_MIN ",\"report\":\"nodes\"}",
    "{\"report\":\"numa\"}",
    "{\"report\":\"first-touch\"}",
    "{\"report\":\"patterns\"}",
    "{\"report\":\"sharing\"}",
    "{\"report\":\"trust\"}",
    "{\"report\":\"items\",\"subject\":\"thread\"}",
    "{\"report\":\"items\",\"subject\":\"file\"}",
    "{\"report\":\"items\",\"subject\":\"module\"}",
    "{\"report\":\"items\",\"subject\":\"type\"}",
    "{\"report\":\"items\",\"subject\":\"field\"}",
    "{\"report\":\"items\",\"subject\":\"site\"}",
    "{\"report\":\"items\",\"subject\":\"region\"}",
};

/* What is recorded where there are several of them. */
static const struct {
    const char *by;
    const char *asked;
} recorded_by[] = {
    {"node", "{\"by\":\"node\",\"report\":\"vars\"}"},
    {"rank", "{\"by\":\"rank\",\"report\":\"vars\"}"},
    {"process", "{\"by\":\"process\",\"report\":\"vars\"}"},
};

/* Records how variables are spread over what there are at least two of. */
static int put_spreads(struct record *record, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof recorded_by / sizeof *recorded_by; i++) {
        struct answer *answer;
        struct error failure = {0};
        const struct table *columns = NULL;
        code = ask(record, recorded_by[i].asked, false, &answer, &failure);
        if (code == 0 &&
            table_get_tables(answer_head(answer), column_of(answer_head(answer), "columns"), 0, 1, &columns) &&
            columns && table_rows(columns) > 1)
            put_answer(record, recorded_by[i].asked, answer);
        if (code != 0 && !is_no_answer(code, &failure))
            *err = failure;
        code = is_no_answer(code, &failure) ? 0 : code;
        answer_free(answer);
    }
    return code;
}

/* Records the time line, where something says what ran when: its rows, all of it as one picture for each kind of
 * colours, from which the page draws any window, and the first events. */
static int put_time(struct record *record, struct error *err)
{
    static const char rows[] = "{\"report\":\"streams\"}";
    static const char *const pictures[] = {"{\"by\":\"task\",\"report\":\"timeline\",\"width\":16384}",
                                           "{\"by\":\"cpu\",\"report\":\"timeline\",\"width\":16384}",
                                           "{\"count\":200000,\"report\":\"events\"}"};
    struct answer *answer;
    struct error failure = {0};
    int code = ask(record, rows, false, &answer, &failure);
    record->has_time = code == 0 && table_rows(answer_rows(answer)) > 0;
    if (record->has_time)
        put_answer(record, rows, answer);
    answer_free(answer);
    if (code != 0 && !is_no_answer(code, &failure)) {
        *err = failure;
        return code;
    }
    code = 0;
    for (size_t i = 0; code == 0 && record->has_time && i < sizeof pictures / sizeof *pictures; i++)
        code = put_asked(record, pictures[i], err);
    return code;
}

/* The answers that the first screen and the sources are made of. */
enum { ANSWER_SESSION, ANSWER_VARIABLES, ANSWER_ADVICE, ANSWER_FUNCTIONS, ANSWER_LINES, N_ANSWERS };
static const char *const asked_first[N_ANSWERS] = {
    "{\"report\":\"session\"}", "{\"fields\":true,\"report\":\"vars\"}",
    "{\"report\":\"advice\"}",  "{\"report\":\"functions\"}",
    "{\"report\":\"lines\"}",
};

/* Asks for them, and records them. Nothing may lack but reports of data and lines, which files of other tools have not
 * got, or of code where there is a time line alone. */
static int put_needed(struct record *record, struct answer **answers, struct error *err)
{
    for (int i = 0; i < N_ANSWERS; i++) {
        struct error failure = {0};
        bool may_lack = i == ANSWER_VARIABLES || i == ANSWER_ADVICE || i == ANSWER_LINES ||
                        (record->has_time && i != ANSWER_SESSION);
        int code = ask(record, asked_first[i], i == ANSWER_VARIABLES, &answers[i], &failure);
        if (code != 0 && !(may_lack && is_no_answer(code, &failure))) {
            *err = failure;
            return code;
        }
        if (code == 0)
            put_answer(record, asked_first[i], answers[i]);
        else
            put_failure(record, asked_first[i], &failure);
    }
    return 0;
}

static int put_all(struct record *record, struct error *err)
{
    struct answer *answers[N_ANSWERS] = {0};
    int code = put_time(record, err);
    if (code == 0)
        code = put_needed(record, answers, err);
    if (code == 0)
        put_first(record, answers[ANSWER_SESSION],
                  answers[ANSWER_VARIABLES] ? answer_rows(answers[ANSWER_VARIABLES]) : NULL,
                  answers[ANSWER_ADVICE] ? answer_rows(answers[ANSWER_ADVICE]) : NULL);
    for (size_t i = 0; code == 0 && i < sizeof recorded / sizeof *recorded; i++)
        code = put_asked(record, recorded[i], err);
    if (code == 0)
        code = put_spreads(record, err);
    if (code == 0 && answers[ANSWER_LINES])
        code = put_sources(record, answer_rows(answers[ANSWER_LINES]), err);
    if (code == 0 && answers[ANSWER_FUNCTIONS])
        code = put_instructions(record, answer_rows(answers[ANSWER_FUNCTIONS]), err);
    if (code == 0)
        put_small(record);
    for (int i = 0; i < N_ANSWERS; i++)
        answer_free(answers[i]);
    return code;
}

/* Appends page_html, in which a word between @s stands for each of the other parts. has_time: the script of the time
 * line is one of them. */
static void put_page(struct buf *out, const struct buf *first, const struct buf *data, bool has_time)
{
    static const char served[] = "connect-src 'self'; ",
                      time_begin[] = "\n<script type=\"text/plain\" id=\"time-code\">";
    const struct {
        const char *word, *text;
    } parts[] = {{"@css-hash@", page_css_hash},
                 {"@js-hash@", page_js_hash},
                 {"@code-hash@", has_time ? page_both_hash : page_code_hash},
                 {"@connect@", data ? "" : served},
                 {"@css@", page_css},
                 {"@js@", page_js},
                 {"@code@", page_code},
                 {"@time@", has_time ? time_begin : ""},
                 {"@time-code@", has_time ? page_time_code : ""},
                 {"@time-end@", has_time ? "</script>" : ""},
                 {"@first@", first && first->data ? first->data : ""},
                 {"@data@", data && data->data ? data->data : ""}};
    const char *at = page_html;
    for (const char *mark; (mark = strchr(at, '@'));) {
        size_t i = 0;
        buf_append(out, at, (size_t)(mark - at));
        while (i < sizeof parts / sizeof *parts && strncmp(mark, parts[i].word, strlen(parts[i].word)) != 0)
            i++;
        bool is_word = i < sizeof parts / sizeof *parts;
        at = mark + (is_word ? strlen(parts[i].word) : 1);
        buf_append(out, is_word ? parts[i].text : "@", is_word ? strlen(parts[i].text) : 1);
    }
    buf_append(out, at, strlen(at));
}

int page_record(struct session *session, const struct page_choice *choice, struct buf *out, struct error *err)
{
    struct record record = {.session = session, .choice = choice};
    bool has_failed = vec_has_failed();
    int code = put_all(&record, err);
    if (code == 0)
        put_page(out, &record.first, &record.sections, record.has_time);
    if (code == 0 &&
        (out->failed || record.first.failed || record.sections.failed || (vec_has_failed() && !has_failed)))
        code = error_memory(err);
    buf_fini(&record.first);
    buf_fini(&record.sections);
    buf_fini(&record.small);
    return code;
}

void page_served(struct buf *out)
{
    put_page(out, NULL, NULL, true);
}
