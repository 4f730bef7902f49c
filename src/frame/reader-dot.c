/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs in DOT, as gprof2dot writes them: a node's label has lines for module, name, "12.50%" with and "(2.50%)"
 * without what it calls, and "7x" calls, with a multiplication sign. Other graphs are read as well, without values.
 * Grammar: the DOT language of Graphviz; subgraphs group, and make no edges of their own. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frame/make.h"
#include "frame/readers.h"

extern const struct frame_reader reader_dot;

enum token { TOKEN_END = 0, TOKEN_ID, TOKEN_EDGE, TOKEN_MARK };

struct reading {
    const char *name;
    const char *at, *end;
    size_t line;
    enum token token;
    char mark;       /* of TOKEN_MARK */
    struct buf text; /* of TOKEN_ID; data is not NULL then */
    bool is_quoted;
    struct strtab ids; /* of nodes, in the order in which they come */
    struct buf id;     /* of the node that is being read */
    char **labels;     /* [ids.n_strings] NULL: none */
    size_t cap_labels;
    struct frame_edge *edges; /* [n_edges] */
    size_t n_edges, cap_edges;
    size_t depth;
};

static int fail(const struct reading *reading, const char *reason, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%.600s: line %zu: %s", reading->name, reading->line, reason);
}

/* --- words --- */

static void skip_to(struct reading *reading, const char *to)
{
    for (; reading->at < to; reading->at++)
        reading->line += *reading->at == '\n';
}

/* Blanks, comments, and lines of a preprocessor. */
static void skip_blanks(struct reading *reading)
{
    for (;;) {
        const char *at = reading->at, *stop = NULL;
        if (at < reading->end && strchr(" \t\r\n", *at) && *at)
            stop = at + 1;
        else if ((at[0] == '/' && at[1] == '/') || *at == '#')
            stop = at + strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*') {
            stop = strstr(at + 2, "*/");
            stop = stop ? stop + 2 : reading->end;
        }
        if (!stop)
            return;
        skip_to(reading, stop);
    }
}

/* A quoted text. Escapes stay as they are, except \", which becomes a quote. */
static int take_quoted(struct reading *reading, struct error *err)
{
    reading->is_quoted = true;
    for (const char *at = reading->at + 1; at < reading->end && *at; at++) {
        if (*at == '"') {
            skip_to(reading, at + 1);
            return 0;
        }
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\')) {
            if (at[1] == '\\')
                buf_append(&reading->text, "\\", 1);
            at++;
        }
        buf_append(&reading->text, at, 1);
    }
    return fail(reading, "a text has no end", err);
}

/* A text between angle brackets, which may nest. */
static int take_html(struct reading *reading, struct error *err)
{
    size_t depth = 0;
    for (const char *at = reading->at; at < reading->end && *at; at++) {
        depth += *at == '<';
        depth -= *at == '>';
        if (depth == 0) {
            skip_to(reading, at + 1);
            return 0;
        }
    }
    return fail(reading, "a text has no end", err);
}

/* Reads the next token.  err: ERR_FORMAT, ERR_MEMORY */
static int next(struct reading *reading, struct error *err)
{
    int code = 0;
    skip_blanks(reading);
    reading->text.len_bytes = 0;
    buf_append(&reading->text, "", 0);
    reading->is_quoted = false;
    const char *at = reading->at;
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.' || (unsigned char)at[n] >= 0x80 ||
           (n == 0 && *at == '-' && (isdigit((unsigned char)at[1]) || at[1] == '.')))
        n++;
    reading->token = TOKEN_ID;
    if (at >= reading->end) {
        reading->token = TOKEN_END;
    } else if (n > 0) {
        buf_append(&reading->text, at, n);
        reading->at += n;
    } else if (*at == '"') {
        code = take_quoted(reading, err);
    } else if (*at == '<') {
        code = take_html(reading, err);
    } else if (at[0] == '-' && (at[1] == '>' || at[1] == '-')) {
        reading->token = TOKEN_EDGE;
        reading->at += 2;
    } else if (*at && strchr("{}[];,=:+", *at)) {
        reading->token = TOKEN_MARK;
        reading->mark = *at;
        reading->at++;
    } else {
        code = fail(reading, "this belongs to no graph", err);
    }
    return code == 0 && reading->text.failed ? error_memory(err) : code;
}

static bool is_mark(const struct reading *reading, char mark)
{
    return reading->token == TOKEN_MARK && reading->mark == mark;
}

static bool is_word(const struct reading *reading, const char *word)
{
    return reading->token == TOKEN_ID && !reading->is_quoted && plain_compare(reading->text.data, word, SIZE_MAX) == 0;
}

/* --- statements --- */

/* Keeps the identifier just read, and reads on. */
static int take_id(struct reading *reading, struct error *err)
{
    struct buf swap = reading->id;
    reading->id = reading->text;
    reading->text = swap;
    return next(reading, err);
}

/* The node of the identifier that was kept; what follows it behind a colon is passed over. */
static int take_node(struct reading *reading, uint32_t *node, struct error *err)
{
    int64_t id = strtab_intern(&reading->ids, reading->id.data);
    if (id < 0 || !vec_reserve(&reading->labels, &reading->cap_labels, (size_t)id + 1, sizeof *reading->labels))
        return error_memory(err);
    *node = (uint32_t)id;
    int code = 0;
    while (code == 0 && is_mark(reading, ':')) {
        code = next(reading, err);
        code = code ? code : next(reading, err);
    }
    return code;
}

/* [ KEY = VALUE ... ], at its bracket: keeps the label of a node; node FRAME_NONE: of nothing that is kept. */
static int take_attributes(struct reading *reading, uint32_t node, struct error *err)
{
    int code = next(reading, err);
    while (code == 0 && !is_mark(reading, ']')) {
        bool is_label = is_word(reading, "label");
        if (reading->token == TOKEN_END)
            return fail(reading, "the text ends among attributes", err);
        code = next(reading, err);
        if (code != 0 || !is_mark(reading, '='))
            continue;
        code = next(reading, err);
        if (code == 0 && is_label && node != FRAME_NONE && reading->token == TOKEN_ID) {
            free(reading->labels[node]);
            reading->labels[node] = strdup(reading->text.data);
            if (!reading->labels[node])
                return error_memory(err);
        }
        code = code ? code : next(reading, err);
    }
    return code ? code : next(reading, err);
}

/* Nodes with edges between them, and their attributes; the first identifier is kept. */
static int take_statement(struct reading *reading, struct error *err)
{
    uint32_t node, before = FRAME_NONE;
    int code = take_node(reading, &node, err);
    while (code == 0 && reading->token == TOKEN_EDGE) {
        code = next(reading, err);
        if (code == 0 && reading->token != TOKEN_ID)
            code = fail(reading, "an edge leads to no node", err);
        before = node;
        code = code ? code : take_id(reading, err);
        code = code ? code : take_node(reading, &node, err);
        if (code == 0 &&
            !vec_reserve(&reading->edges, &reading->cap_edges, reading->n_edges + 1, sizeof *reading->edges))
            code = error_memory(err);
        if (code == 0)
            reading->edges[reading->n_edges++] = (struct frame_edge){before, node};
    }
    while (code == 0 && is_mark(reading, '['))
        code = take_attributes(reading, before == FRAME_NONE ? node : FRAME_NONE, err);
    return code;
}

/* What begins with a word: attributes of the graph or of all nodes, a subgraph, or nodes. */
static int take_words(struct reading *reading, struct error *err)
{
    bool is_default = is_word(reading, "node") || is_word(reading, "edge") || is_word(reading, "graph");
    bool is_subgraph = is_word(reading, "subgraph");
    int code = take_id(reading, err);
    if (code == 0 && is_subgraph && reading->token == TOKEN_ID)
        return next(reading, err);
    if (code != 0 || is_subgraph)
        return code;
    if (is_mark(reading, '=')) {
        code = next(reading, err);
        return code ? code : next(reading, err);
    }
    if (is_default && is_mark(reading, '['))
        return take_attributes(reading, FRAME_NONE, err);
    return take_statement(reading, err);
}

static int read_graph(struct reading *reading, struct error *err)
{
    int code = next(reading, err);
    while (code == 0 && reading->token == TOKEN_ID) /* strict digraph NAME */
        code = next(reading, err);
    if (code == 0 && !is_mark(reading, '{'))
        code = fail(reading, "a graph begins with a brace", err);
    while (code == 0 && reading->token != TOKEN_END) {
        if (reading->token == TOKEN_ID) {
            code = take_words(reading, err);
            continue;
        }
        reading->depth += is_mark(reading, '{');
        if (is_mark(reading, '}') && --reading->depth == 0)
            return 0;
        if (reading->token == TOKEN_EDGE || !strchr("{};,", reading->mark))
            return fail(reading, "a node is missing", err);
        code = next(reading, err);
    }
    return code ? code : fail(reading, "the text ends within a graph", err);
}

/* --- the frame --- */

/* What a label says. */
struct labelled {
    char *names[2]; /* [n_names] lines before the first number */
    size_t n_names;
    double inclusive, exclusive, calls; /* -1: not said */
};

/* One line of a label. */
static void take_line(char *line, struct labelled *label)
{
    bool is_exclusive = *line == '(';
    char *end, *begin = line + is_exclusive;
    double number = plain_number(begin, &end);
    if (end > begin && *end == '%' && !isspace((unsigned char)*begin)) {
        if (is_exclusive)
            label->exclusive = number;
        else
            label->inclusive = number;
    } else if (end > begin && strcmp(end, "\xc3\x97") == 0) {
        label->calls = number;
    } else if (label->inclusive < 0 && label->n_names < 2) {
        label->names[label->n_names++] = line;
    }
}

/* Takes a label apart, in place: its lines end with \n, \l or \r as they stand there. */
static struct labelled take_label(char *text)
{
    struct labelled label = {.inclusive = -1, .exclusive = -1, .calls = -1};
    while (text) {
        char *stop = strchr(text, '\\');
        while (stop && !(stop[1] && strchr("nlr", stop[1])))
            stop = strchr(stop + 1 + (stop[1] == '\\'), '\\');
        if (stop)
            *stop = 0;
        take_line(text, &label);
        text = stop ? stop + 2 : NULL;
    }
    return label;
}

static void add_node(const struct reading *reading, uint32_t i, const size_t *columns, struct frame_maker *maker)
{
    struct labelled label = take_label(reading->labels[i]);
    const char *id = reading->ids.strings[i];
    const char *digits = *id == 'n' || *id == 'N' ? id + 1 : id; /* "n7": our own graphs, and pprof's */
    bool is_number = *digits && digits[strspn(digits, "0123456789")] == 0;
    bool has_values = label.inclusive >= 0;
    struct made_node node = {.kind = FRAME_FUNCTION, .name = id};
    if (is_number && label.n_names > 0)
        node.name = label.names[label.n_names - 1];
    if (has_values && label.n_names == 2)
        node.module = label.names[0];
    uint32_t number = maker_node(maker, FRAME_NONE, &node);
    const double values[] = {label.exclusive, label.inclusive, label.calls};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        if (values[k] >= 0)
            maker_value(maker, columns[k], number, 0, values[k]);
}

static int make_frame(const struct reading *reading, struct frame **frame, struct error *err)
{
    struct frame_maker maker;
    maker_init(&maker);
    const size_t columns[] = {maker_column(&maker, "time", FRAME_EXCLUSIVE),
                              maker_column(&maker, "time (inc)", FRAME_INCLUSIVE),
                              maker_column(&maker, "calls", FRAME_EXCLUSIVE)};
    for (uint32_t i = 0; i < reading->ids.n_strings && !maker.failed; i++)
        add_node(reading, i, columns, &maker);
    for (size_t i = 0; i < reading->n_edges; i++)
        maker_edge(&maker, reading->edges[i].parent, reading->edges[i].child);
    return frame_made(&maker, frame, NULL, err);
}

static int read_dot(const struct frame_input *input, struct frame **frame, struct error *err)
{
    struct reading reading = {.name = input->path, .line = 1};
    struct buf text = {0};
    int code = readers_text(input, &text, err);
    if (code == 0) {
        reading.at = text.data;
        reading.end = text.data + text.len_bytes;
        code = read_graph(&reading, err);
    }
    if (code == 0)
        code = make_frame(&reading, frame, err);
    for (size_t i = 0; i < reading.ids.n_strings && i < reading.cap_labels; i++)
        free(reading.labels[i]);
    strtab_fini(&reading.ids);
    free(reading.labels);
    free(reading.edges);
    buf_fini(&reading.text);
    buf_fini(&reading.id);
    buf_fini(&text);
    return code;
}

/* The words that a graph begins with, behind comments. */
static bool fits_dot(const struct frame_input *input)
{
    struct reading reading = {.line = 1};
    if (input->is_directory)
        return false;
    reading.at = input->head.data;
    reading.end = reading.at + input->head.len_bytes;
    int code = next(&reading, NULL);
    bool fits =
        code == 0 && (is_word(&reading, "digraph") || is_word(&reading, "strict") || is_word(&reading, "graph"));
    buf_fini(&reading.text);
    return fits || code == ERR_MEMORY; /* without memory it says so, rather than that nobody can read it */
}

const struct frame_reader reader_dot = {"a graph in DOT", fits_dot, read_dot};
