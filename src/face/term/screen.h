/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share. See term.h for who does what. */
#ifndef LOCUS_FACE_TERM_SCREEN_H
#define LOCUS_FACE_TERM_SCREEN_H

#include "face/term/term.h"
#include "table/columns.h"

/* --- lines --- */

/* What a piece of a line is; a terminal without colours tells them apart by what they say. */
enum tone {
    TONE_PLAIN,
    TONE_DIM,
    TONE_STRONG,
    TONE_MEMORY,
    TONE_EXECUTION,
    TONE_UNKNOWN,
    TONE_LESS,
    TONE_MORE,
    TONE_HIT,
    TONES
};

struct span {
    size_t begin; /* byte of the text */
    enum tone tone;
};

/* A line of at most `width` columns: what does not fit is left out. All zero but for the width is empty. */
struct line {
    struct buf text; /* UTF-8, or ASCII where is_ascii */
    struct span *spans;
    size_t n_spans, cap_spans;
    unsigned at, width; /* columns */
    bool is_ascii;
};

struct lines {
    struct line *items; /* [n] */
    size_t n, cap;
    unsigned width;
    bool is_ascii;
};

/* Append a text: `line_put` as far as there is room, `line_put_in` in so many columns, with blanks behind it, or before
 * it. Control characters become visible ones, whoever chose the text; characters that the terminal does not have, '?'.
 */
void line_put(struct line *line, enum tone tone, const char *text);
void line_put_in(struct line *line, enum tone tone, const char *text, unsigned columns);
void line_put_right(struct line *line, enum tone tone, const char *text, unsigned columns);
void line_printf(struct line *line, enum tone tone, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends blanks up to a column. */
void line_to(struct line *line, unsigned column);
void line_clear(struct line *line);
void line_fini(struct line *line);

/* Columns that a text takes when it is put. */
unsigned text_columns(const char *text, bool is_ascii);

/* Appends bars one behind the other; [n] parts of `columns`, 0 to 1, in tones; each with a pattern of its own. */
void line_put_bar(struct line *line, const double *parts, const enum tone *tones, size_t n, unsigned columns);

/* Appends how dark a part, 0 to 1, is, as one character. */
void line_put_shade(struct line *line, double part);

/* A new line at the end, NULL when out of memory; a text in as many lines as it needs, the first one behind a label;
 * all zero but for width and is_ascii is empty. */
struct line *lines_add(struct lines *lines);
void lines_wrap(struct lines *lines, enum tone tone, unsigned indent, const char *text);
void lines_label(struct lines *lines, const char *label, const char *text);
void lines_clear(struct lines *lines);
void lines_fini(struct lines *lines);

/* --- numbers as reports print them; "-" is not known --- */
enum { NUMBER_BYTES = 40 };

/* They are in text, but for what is constant; a place is the last part of a path and a line. */
const char *percent_text(double value, char text[NUMBER_BYTES]);
const char *short_text(double value, char text[NUMBER_BYTES]);
const char *bytes_text(double value, char text[NUMBER_BYTES]);
const char *place_text(const char *file, double line, char *text, size_t n);

/* --- what is looked at --- */

/* Words of a state (answer/state.h); those behind LOOK_OWN are in its key "layout". */
enum look_key {
    LOOK_ACTIVE,
    LOOK_METRIC,
    LOOK_BY,
    LOOK_FILTER,
    LOOK_OWN,
    LOOK_SORT = LOOK_OWN,
    LOOK_ROWS,
    LOOK_GRAPH,
    LOOK_TIME,
    LOOK_KEYS
};

struct look {
    size_t view;
    char *words[LOOK_KEYS]; /* NULL: nothing is said */
    size_t cursor;
};

/* "" where nothing is said. */
const char *look_get(const struct look *look, enum look_key key);
void look_set(struct look *look, enum look_key key, const char *text);
void look_fini(struct look *look);

/* --- the screen --- */

struct screen;

#define LATELY_KEY "lately" /* of a column that is shown where the program runs */

/* A column of a list. key: of the answer's table, by which it is sorted; NULL: it is not. */
struct view_column {
    const char *key, *title;
    unsigned width;
    bool is_right, grows;
};

/* A view: one file, and one row in views.c. */
struct view {
    const char *name, *title; /* its word in the state; on its tab */
    bool is_of_code;          /* the key of the state is then "code", in its layout, else "view" */
    const struct view_column *columns;
    size_t n_columns;
    const char *keys; /* what keys do here alone, for the help; NULL: none */
    /* Fills the pane. err: why there is nothing to show */
    int (*open)(struct screen *screen, struct error *err);
    /* Puts a cell of a row of the pane, within its column; the title of a column where that is not all. */
    void (*cell)(struct screen *screen, size_t row, size_t column, struct line *line);
    void (*head)(struct screen *screen, size_t column, struct line *line);
    /* Appends what filters and searches look at; NULL: the texts of the table's row. */
    void (*words)(struct screen *screen, size_t row, struct buf *out);
    /* What is known of a row. */
    void (*detail)(struct screen *screen, size_t row, struct lines *lines);
    /* Appends which thing a row is about, if any. */
    void (*item)(struct screen *screen, size_t row, struct buf *out);
    /* Chooses the rows that are shown, where that is not all that the filter keeps in their order. */
    void (*arrange)(struct screen *screen);
    bool (*key)(struct screen *screen, int key);
    /* Adds the places that are open, by texts that mean the same in a newer session, and opens these; the text of a
     * row's place. NULL: items say which row is which. */
    void (*keep)(struct screen *screen, struct strtab *places);
    void (*reopen)(struct screen *screen, const struct strtab *places);
    void (*place)(struct screen *screen, size_t row, struct buf *out);
    /* Appends the command line behind "hpcquery" that prints the same, without the database. */
    void (*command)(struct screen *screen, struct buf *out);
};

extern const struct view view_answer, view_variables, view_variable, view_tree, view_source, view_matrix, view_timeline,
    view_compare, view_trust;
extern const struct view *const views[];
extern const size_t n_views;

/* A list of rows. */
struct pane {
    const struct table *table; /* whose rows these are; NULL: the view's own */
    size_t n_all;
    uint32_t *rows; /* [n] those that are shown, in their order */
    size_t n, cap;
    size_t cursor, top;
    unsigned shift;                       /* of what is wider than its column */
    bool is_to_tell;                      /* what was drawn says more of the row */
    void *own;                            /* the view's */
    void (*later)(struct screen *screen); /* what takes longer, done once nobody types; NULL: nothing */
    void (*close)(void *own);
    char why[1024]; /* there is nothing to show; "": there is */
    char note[256]; /* behind the title */
};

#define LATELY_S 10
#define LATELY_LOOKS 12

/* What variables had cost at some time, of a program that runs. */
struct past {
    double at_s; /* CLOCK_MONOTONIC */
    char metric[64];
    struct strtab items;
    double *values; /* [n] by item */
    size_t n;
    double more; /* of all items together, since the oldest look that was kept then */
};

/* An answer that was asked for. */
struct asked_answer {
    char *key;
    struct answer *answer; /* NULL: there is none */
    struct error err;
};

struct screen {
    struct session *session;
    const struct term_choice *choice;
    const struct term_host *host;
    struct asked_answer *answers; /* [n_answers] */
    size_t n_answers, cap_answers;
    struct look now, *history; /* history [n_history]: before and behind now */
    size_t n_history, cap_history, at_history;
    struct pane pane;
    struct lines detail, overlay; /* overlay: stands over the detail; n 0: nothing does */
    size_t detail_top;
    bool is_in_detail; /* where arrows go */
    unsigned width, height;
    bool is_ascii, has_color, is_over;
    char typed[256]; /* of a search or filter that is being typed */
    char typing;     /* '/', 'f', 'K'; 0: nothing */
    char search[256];
    char message[512];
    struct error reason;            /* why nothing stands for a thing */
    struct buf copied;              /* command lines */
    struct past past[LATELY_LOOKS]; /* [n_past] the oldest first */
    size_t n_past;
};

/* --- ask.c --- */

/* The answer to a question, which is kept; about the metric that is chosen, where the report has one. NULL: there is
 * none, and *err says why. It is the screen's. */
const struct answer *ask(struct screen *screen, const struct request *request, struct error *err);
const struct answer *ask_report(struct screen *screen, const char *report, const char *by, struct error *err);

/* Lets go of all answers. */
void answers_clear(struct screen *screen);

/* Appends the words of a request, for a command line. */
void request_put_words(const struct screen *screen, const struct request *request, struct buf *out);

/* Appends a word as a shell reads it, behind a blank. */
void word_put(struct buf *out, const char *word);

/* A cell by the key of its column: "" and NAN where nothing is known, or there is no such column. in: the object whose
 * member it is, NULL: it is of no object. */
const char *cell_text(const struct table *table, size_t row, const char *key);
double cell_number(const struct table *table, size_t row, const char *key);
double cell_number_in(const struct table *table, size_t row, const char *in, const char *key);
/* The same of a column that was looked up before, for tables of very many rows; SIZE_MAX: there is none. */
const char *cell_text_at(const struct table *table, size_t row, size_t column);
double cell_number_at(const struct table *table, size_t row, size_t column);
const struct table *cell_table(const struct table *table, size_t row, const char *key);
size_t rows_of(const struct table *table);
size_t column_of(const struct table *table, const char *key);

/* The row of a table whose column "item" has a text; SIZE_MAX: none. */
size_t row_of_item(const struct table *table, const char *item);

/* The tables that views link by; NULL: there is none. */
const struct table *vars_table(struct screen *screen);
const struct table *lines_table(struct screen *screen);

/* What stands for the active thing as a thing of another kind, "" and NULL: nothing.  *why says what is lacking */
const char *stand_in(struct screen *screen, const char *kind, const char **why);

/* --- pane.c --- */

/* Opens the view of the look; the cursor goes to the active thing. */
void pane_open(struct screen *screen);
void pane_close(struct screen *screen);
void pane_arrange(struct screen *screen);
bool pane_add(struct pane *pane, uint32_t row);

/* The row under the cursor, SIZE_MAX: none; and with its cursor there, what it is about, "": nothing, malloc'ed. */
size_t pane_row(const struct screen *screen);
char *pane_item(struct screen *screen);

/* Shows the rows alone that have these words. Where the active thing is not among them any more, what is under the
 * cursor becomes it. */
void pane_filter(struct screen *screen, const char *words);

/* Puts the cursor on a place of the list, or where there is one; what is there becomes the active thing. */
void pane_move(struct screen *screen, size_t cursor);

/* Whether a row has the words, in any case of letters. */
bool pane_has(struct screen *screen, size_t row, const char *words);

/* Does what was left for later, if there is something; what takes long leaves the rest of it for later again. */
void pane_finish(struct screen *screen);

/* The lines of the list as they are drawn: its head, a row. */
void pane_put_head(struct screen *screen, struct line *line);
void pane_put_row(struct screen *screen, size_t at, struct line *line);

/* Makes the detail of the row under the cursor anew. */
void pane_tell(struct screen *screen);

/* The view that is open. */
const struct view *view_now(const struct screen *screen);

/* --- live.c --- */

/* Remembers what variables cost, where the program runs. Shows the newer session: the view, its cursor and what is open
 * stay. */
void live_remember(struct screen *screen);
void live_renew(struct screen *screen);
/* Percent of all that was spent in the last seconds, by the item of a variable; NAN: it is not known. */
double live_lately(struct screen *screen, const char *item);
/* Keys about the program, K with a name that was typed; false: it is another one. */
bool live_key(struct screen *screen, int key);
void live_mark(struct screen *screen, const char *name);
void live_fini(struct screen *screen);

/* --- look.c --- */

/* Opens another view, about a thing ("": the active one stays); the same with another word (copied; "" takes it away).
 * Both are steps that Back undoes. step -1: goes back, 1: forward, as far as there is something. */
void go_to(struct screen *screen, const struct view *view, const char *item);
void go_set(struct screen *screen, enum look_key key, const char *text);
void go_history(struct screen *screen, int step);

/* Appends what is looked at as the text of a state, for browsers and hpcquery --at. */
void look_put_state(const struct screen *screen, struct buf *out);

/* Appends the command line that prints the same numbers. */
void look_put_command(struct screen *screen, struct buf *out);

/* --- term.c --- */

/* Does what a key does; a number of those below, or a byte of a character. */
void term_key(struct screen *screen, int key);

/* The same of a text: characters, and keys by name such as "<Down>". */
void term_keys(struct screen *screen, const char *keys);

/* Numbers of keys, whoever reads them. */
enum {
    KEYS_DOWN = 0402,
    KEYS_UP,
    KEYS_LEFT,
    KEYS_RIGHT,
    KEYS_HOME,
    KEYS_BACK = 0407,
    KEYS_NEXT_PAGE = 0522,
    KEYS_LAST_PAGE,
    KEYS_ENTER = 0527,
    KEYS_TAB_BACK = 0541,
    KEYS_END = 0550,
    KEYS_FORWARD = 0700, /* Alt with an arrow */
    KEYS_BACKWARD
};

/* The sizes of the parts: the list, and the detail beside or below it. */
struct layout {
    unsigned list_y, list_h, list_w, detail_x, detail_y, detail_w, detail_h;
};

/* Those of the size that the screen has. */
struct layout layout_of(const struct screen *screen);

/* What stands above and below: tabs, the state and keys. */
void put_title(struct screen *screen, struct line *line);
void put_tabs(struct screen *screen, struct line *line);
void put_foot(struct screen *screen, struct line *line);

/* --- screen.c, plain.c --- */

/* Shows it until it is over; as term_run. */
int screen_run(struct screen *screen, struct error *err);
int plain_run(struct screen *screen, struct error *err);

/* Gives a text to who has the terminal, for pasting. */
void screen_copy(struct screen *screen, const char *text);

/* What several views say of a variable: its share by cause as a bar, in how many columns; everything, by its row. */
void put_cause_bar(const struct table *vars, size_t row, double whole, unsigned columns, struct line *line);
void tell_variable(struct screen *screen, size_t row, struct lines *lines);
/* The source around a thing that is a line, and what the line costs. */
void tell_source(struct screen *screen, const char *item, struct lines *lines);

/* Appends over how many threads or processes a variable spreads. */
void tell_spread(const struct table *vars, size_t row, struct buf *out);

#endif
