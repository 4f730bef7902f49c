/* SPDX-License-Identifier: BSD-3-Clause */
/* What keys do, what stands around the list, and how it is begun and ended. */
#include "face/term/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

/* --- parts of the screen --- */

enum { ABOVE = 2, BELOW = 1, SIDE_LEAST = 100 };

struct layout layout_of(const struct screen *screen)
{
    unsigned room =
        screen->height > ABOVE + BELOW + 2 ? screen->height - ABOVE - BELOW - 1 : 1; /* 1: the list's head */
    if (screen->choice->is_plain)
        return (struct layout){0, room, screen->width, 0, 0, screen->width, room};
    if (screen->width >= SIDE_LEAST) {
        unsigned list = screen->width * 3 / 5;
        return (struct layout){ABOVE + 1, room, list, list + 2, ABOVE, screen->width - list - 2, room + 1};
    }
    unsigned list = room * 3 / 5;
    return (struct layout){ABOVE + 1, list, screen->width, 0, ABOVE + 2 + list, screen->width, room - list - 1};
}

void put_title(struct screen *screen, struct line *line)
{
    struct error ignored;
    const struct answer *session = ask_report(screen, "session", NULL, &ignored);
    const char *command = session ? cell_text(answer_head(session), 0, "command") : "";
    if (!*command && session && answer_program(session))
        command = answer_program(session);
    const char *end = command + strcspn(command, " "), *last = end;
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    while (last > command && last[-1] != '/')
        last--;
    line_put_in(line, TONE_STRONG, *last ? last : "Locus",
                text_columns(last, line->is_ascii) < line->width / 2 ? text_columns(last, line->is_ascii)
                                                                     : line->width / 2);
    if (!*metric && session && answer_metric(session))
        metric = answer_metric(session);
    line_put(line, TONE_DIM, *metric ? "  " : "");
    line_put(line, TONE_DIM, metric);
    if (screen->host->live) {
        struct buf told = {0};
        screen->host->live->tell(screen->host->context, screen->choice->is_plain, &told);
        line_put(line, TONE_DIM, "  ");
        line_put(line, TONE_STRONG, told.data ? told.data : "");
        buf_fini(&told);
    }
    if (*screen->pane.note) {
        line_put(line, TONE_DIM, "  ");
        line_put(line, TONE_PLAIN, screen->pane.note);
    }
}

void put_tabs(struct screen *screen, struct line *line)
{
    for (size_t i = 0; i < n_views; i++) {
        bool is_open = i == screen->now.view;
        line_printf(line, is_open ? TONE_STRONG : TONE_DIM, "%s%zu%s",
                    is_open ? "["
                    : i     ? " "
                            : "",
                    i + 1, views[i]->title);
        line_put(line, TONE_STRONG, is_open ? "]" : "");
    }
}

/* What is said of keys, the longest first: the last one is always there. */
static const char *const hints[] = {"  ? keys  Enter open  / search  f filter  s sort  y copy  q quit",
                                    "  ? keys  / search  f filter  s sort  q quit", "  ? keys  q quit"};
enum { HINTS = sizeof hints / sizeof *hints };

static void put_hints(struct line *line)
{
    size_t i = 0;
    while (i + 1 < HINTS && line->at + strlen(hints[i]) > line->width)
        i++;
    line_put(line, TONE_DIM, hints[i]);
}

/* Words of a filter or search; n_parts: so many share the room beside what is said of keys. */
static void put_words(struct line *line, const char *label, const char *words, unsigned n_parts)
{
    size_t taken = line->at + strlen(hints[HINTS - 1]) + n_parts * strlen(label);
    unsigned columns = text_columns(words, line->is_ascii),
             room = line->width > taken ? (unsigned)(line->width - taken) / n_parts : 0;
    if (!*words)
        return;
    line_put(line, TONE_DIM, label);
    line_put_in(line, TONE_PLAIN, words, columns < room ? columns : room);
}

void put_foot(struct screen *screen, struct line *line)
{
    const struct pane *pane = &screen->pane;
    const char *filter = look_get(&screen->now, LOOK_FILTER);
    if (screen->typing) {
        line_put(line, TONE_STRONG,
                 screen->typing == '/'   ? "search: "
                 : screen->typing == 'f' ? "filter: "
                                         : "phase: ");
        line_put(line, TONE_PLAIN, screen->typed);
        return;
    }
    if (*screen->message) {
        line_put(line, TONE_STRONG, screen->message);
        return;
    }
    line_printf(line, TONE_STRONG, "%zu/%zu", pane->n ? pane->cursor + 1 : 0, pane->n);
    if (pane->n < pane->n_all && *filter)
        line_printf(line, TONE_DIM, " of %zu", pane->n_all);
    put_words(line, "  filter ", filter, *screen->search ? 2 : 1);
    put_words(line, "  search ", screen->search, 1);
    put_hints(line);
}

/* --- keys --- */

static const char help[] = "1 to 9  the view of that number\n"
                           "Up Down PageUp PageDown Home End  (k j)  move\n"
                           "Enter  open: the variable, its source, what is below\n"
                           "Tab  arrows scroll the detail, and the list again\n"
                           "Backspace, Alt-Left  back    Alt-Right  forward\n"
                           "u  up: from a line to its function, from a function to all\n"
                           "Escape  closes what is open, ends the filter; then nothing is chosen\n"
                           "/  search    n N  the next hit, the one before\n"
                           "f  filter: only rows with these words (Ctrl-U takes them away)\n"
                           "s  sort by the next column    S  the other way\n"
                           "m  the next metric\n"
                           "y  copy the hpcquery line that prints this; c  show it\n"
                           "o  open this in a browser\n"
                           "Ctrl-L  draw anew    Ctrl-Z  stop    q  quit";

static void show_lines(struct screen *screen, const char *title, const char *text)
{
    struct lines *lines = &screen->overlay;
    lines_clear(lines);
    lines->width = layout_of(screen).detail_w;
    lines->is_ascii = screen->is_ascii;
    lines_wrap(lines, TONE_STRONG, 0, title);
    while (*text) {
        size_t n = strcspn(text, "\n");
        struct buf line = {0};
        buf_append(&line, text, n);
        lines_wrap(lines, TONE_PLAIN, 0, line.data ? line.data : "");
        buf_fini(&line);
        text += n + (text[n] == '\n');
    }
    screen->detail_top = 0;
    screen->is_in_detail = true;
}

/* What the title has no room for. */
static void put_trouble(struct screen *screen, struct buf *out)
{
    const struct term_live *live = screen->host->live;
    struct buf brief = {0}, full = {0};
    live->tell(screen->host->context, false, &brief);
    live->tell(screen->host->context, true, &full);
    if (brief.data && full.data && strcmp(brief.data, full.data) != 0)
        buf_printf(out, "%s\n\n", full.data);
    buf_fini(&brief);
    buf_fini(&full);
}

static void show_help(struct screen *screen)
{
    const struct view *view = view_now(screen);
    struct buf text = {0};
    if (view->keys)
        buf_printf(&text, "%s\n", view->keys);
    if (screen->host->live) {
        put_trouble(screen, &text);
        buf_printf(&text, "p  the screen stays as it is, and goes on\nP  no samples are taken, and they are again\n"
                          "K  a phase begins: its name is typed\nW  the measurement is written as it is now\n");
    }
    buf_printf(&text, "%s", help);
    show_lines(screen, "Keys (Tab: back to the list)", text.data ? text.data : "");
    buf_fini(&text);
}

/* The command line of what is shown; it is kept for the end, and given to who copies it. */
static void copy(struct screen *screen, bool is_shown)
{
    struct buf line = {0};
    look_put_command(screen, &line);
    if (!line.len_bytes || !line.data) {
        (void)snprintf(screen->message, sizeof screen->message, "No report of hpcquery prints this.");
    } else if (is_shown) {
        show_lines(screen, "The same numbers by hpcquery", line.data);
    } else {
        buf_printf(&screen->copied, "%s\n", line.data);
        (void)snprintf(screen->message, sizeof screen->message, "copied: %.400s", line.data);
        screen_copy(screen, line.data);
    }
    buf_fini(&line);
}

static void browse(struct screen *screen)
{
    struct buf state = {0}, says = {0};
    struct error err = {0};
    look_put_state(screen, &state);
    if (!screen->host->browse)
        (void)snprintf(screen->message, sizeof screen->message, "There is no browser here.");
    else if (screen->host->browse(screen->host->context, state.data ? state.data : "", &says, &err) != 0)
        (void)snprintf(screen->message, sizeof screen->message, "%.500s", err.text);
    else
        show_lines(screen, "In the browser", says.data ? says.data : "");
    buf_fini(&state);
    buf_fini(&says);
}

/* Sorts by the column behind the one that it is sorted by, behind the last one as the report does. */
static void sort_next(struct screen *screen)
{
    const struct view *view = view_now(screen);
    const char *sort = look_get(&screen->now, LOOK_SORT);
    size_t at = 0;
    struct buf word = {0};
    for (size_t i = 0; *sort && i < view->n_columns; i++)
        if (view->columns[i].key && strcmp(view->columns[i].key, sort + (*sort == '-')) == 0)
            at = i + 1;
    while (at < view->n_columns &&
           (!view->columns[at].key || column_of(screen->pane.table, view->columns[at].key) == SIZE_MAX))
        at++;
    if (at < view->n_columns && !view->arrange)
        buf_printf(&word, "%s%s", view->columns[at].is_right ? "-" : "", view->columns[at].key);
    look_set(&screen->now, LOOK_SORT, word.data);
    pane_open(screen);
    buf_fini(&word);
}

static void sort_other_way(struct screen *screen)
{
    const char *sort = look_get(&screen->now, LOOK_SORT);
    struct buf word = {0};
    buf_printf(&word, "%s%s", *sort == '-' ? "" : "-", sort + (*sort == '-'));
    if (*sort)
        look_set(&screen->now, LOOK_SORT, word.data);
    pane_open(screen);
    buf_fini(&word);
}

static void next_metric(struct screen *screen)
{
    const char *now = look_get(&screen->now, LOOK_METRIC), *first = session_metric(screen->session, 0);
    size_t i = 0;
    if (!first || !session_metric(screen->session, 1)) {
        (void)snprintf(screen->message, sizeof screen->message, "There is one metric.");
        return;
    }
    while (*now && session_metric(screen->session, i) && strcmp(session_metric(screen->session, i), now) != 0)
        i++;
    const char *next = session_metric(screen->session, *now ? i + 1 : 0);
    go_set(screen, LOOK_METRIC, next ? next : "");
}

/* From hit to hit, round about. */
static void find(struct screen *screen, int step, bool with_this)
{
    const struct pane *pane = &screen->pane;
    if (!*screen->search || !pane->n)
        return;
    size_t at = pane->cursor;
    for (size_t i = 0; i < pane->n; i++) {
        if (i || !with_this)
            at = step > 0 ? (at + 1) % pane->n : (at + pane->n - 1) % pane->n;
        if (pane_has(screen, pane->rows[at], screen->search)) {
            pane_move(screen, at);
            return;
        }
    }
    (void)snprintf(screen->message, sizeof screen->message, "Nothing here has \"%.200s\".", screen->search);
}

#define CTRL_U 21

/* A key while words are typed. */
static void type_key(struct screen *screen, int key)
{
    size_t n = strlen(screen->typed);
    if (key == KEYS_BACK || key == 127 || key == '\b') {
        while (n && (screen->typed[n - 1] & 0xc0) == 0x80)
            n--;
        screen->typed[n ? n - 1 : 0] = 0;
    } else if (key == CTRL_U) {
        screen->typed[0] = 0;
    } else if (key == '\n' || key == '\r' || key == KEYS_ENTER || key == 27) {
        char what = screen->typing;
        screen->typing = 0;
        if (key == 27)
            return;
        if (what == '/') {
            memcpy(screen->search, screen->typed, sizeof screen->search);
            find(screen, 1, true);
        } else if (what == 'K') {
            live_mark(screen, screen->typed);
        } else {
            pane_filter(screen, screen->typed);
        }
    } else if (key >= ' ' && key < 256 && n + 1 < sizeof screen->typed) {
        screen->typed[n] = (char)key;
        screen->typed[n + 1] = 0;
    }
}

static void begin_typing(struct screen *screen, char what)
{
    screen->typing = what;
    (void)snprintf(screen->typed, sizeof screen->typed, "%s",
                   what == '/' ? "" : look_get(&screen->now, LOOK_FILTER)); /* a filter is changed, a search is new */
}

/* To what a thing is in: from a line to its function, from anything else to all. */
static void go_up(struct screen *screen)
{
    const char *active = look_get(&screen->now, LOOK_ACTIVE), *why;
    const char *above = strncmp(active, "line:", 5) == 0 || strncmp(active, "loop:", 5) == 0
                            ? stand_in(screen, "function", &why)
                            : NULL;
    char *item = strdup(above ? above : "");
    if (item)
        go_set(screen, LOOK_ACTIVE, item);
    free(item);
}

static void close_overlay(struct screen *screen)
{
    lines_clear(&screen->overlay);
    screen->is_in_detail = false;
    screen->detail_top = 0;
}

/* The thing of the row, in the view that says most of it. */
static void open_row(struct screen *screen)
{
    char *item = pane_item(screen);
    bool is_variable = item && strncmp(item, "variable:", 9) == 0;
    const struct view *view = is_variable ? &view_variable : &view_source;
    if (item && *item && view != view_now(screen))
        go_to(screen, view, item);
    else if (item && *item && view == &view_source)
        go_to(screen, &view_variable, "");
    free(item);
}

static bool move_key(struct screen *screen, int key)
{
    const struct pane *pane = &screen->pane;
    const struct lines *lines = screen->overlay.n ? &screen->overlay : &screen->detail;
    struct layout layout = layout_of(screen);
    size_t page = screen->is_in_detail ? layout.detail_h : layout.list_h, n = screen->is_in_detail ? lines->n : pane->n;
    size_t at = screen->is_in_detail ? screen->detail_top : pane->cursor, last = n ? n - 1 : 0;
    if (key == KEYS_UP || key == 'k')
        at = at ? at - 1 : 0;
    else if (key == KEYS_DOWN || key == 'j')
        at = at < last ? at + 1 : last;
    else if (key == KEYS_LAST_PAGE)
        at = at > page ? at - page : 0;
    else if (key == KEYS_NEXT_PAGE)
        at = at + page < last ? at + page : last;
    else if (key == KEYS_HOME || key == 'g')
        at = 0;
    else if (key == KEYS_END || key == 'G')
        at = last;
    else
        return false;
    if (screen->is_in_detail)
        screen->detail_top = at;
    else
        pane_move(screen, at);
    return true;
}

/* Keys that open something else. */
static bool step_key(struct screen *screen, int key)
{
    if (key >= '1' && key <= '9' && (size_t)(key - '1') < n_views)
        go_to(screen, views[key - '1'], "");
    else if (key == '\n' || key == '\r' || key == KEYS_ENTER)
        open_row(screen);
    else if (key == KEYS_BACK || key == 127 || key == '\b' || key == KEYS_BACKWARD)
        go_history(screen, -1);
    else if (key == KEYS_FORWARD)
        go_history(screen, 1);
    else if (key == 'u')
        go_up(screen);
    else if (key == 27 && *look_get(&screen->now, LOOK_FILTER))
        pane_filter(screen, "");
    else if (key == 27)
        go_set(screen, LOOK_ACTIVE, "");
    else if (key == 's')
        sort_next(screen);
    else if (key == 'S')
        sort_other_way(screen);
    else if (key == 'm')
        next_metric(screen);
    else
        return false;
    return true;
}

void term_key(struct screen *screen, int key)
{
    const struct view *view = view_now(screen);
    *screen->message = 0;
    if (screen->typing) {
        type_key(screen, key);
    } else if (key == 'q') {
        screen->is_over = true;
    } else if (key == '\t' || key == KEYS_TAB_BACK) {
        bool was_open = screen->overlay.n > 0;
        close_overlay(screen);
        screen->is_in_detail = !was_open && !screen->is_in_detail && screen->detail.n > 0;
    } else if (key == 27 && (screen->overlay.n || screen->is_in_detail)) {
        close_overlay(screen);
    } else if (key == '?') {
        show_help(screen);
    } else if (key == 'y' || key == 'c') {
        copy(screen, key == 'c');
    } else if (key == 'o') {
        browse(screen);
    } else if (live_key(screen, key)) {
        return;
    } else if (key == '/' || key == 'f') {
        begin_typing(screen, (char)key);
    } else if (key == 'n' || key == 'N') {
        find(screen, key == 'n' ? 1 : -1, false);
    } else if (!move_key(screen, key)) {
        int own = key == '\n' || key == '\r' ? KEYS_ENTER : key;
        close_overlay(screen);
        if (!view->key || *screen->pane.why || !view->key(screen, own))
            (void)step_key(screen, key);
    }
}

/* --- begin and end --- */

/* Keys by name for those who write them down: "<Down>". */
static int named_key(const char **text)
{
    static const struct {
        const char *name;
        int key;
    } names[] = {
        {"<Down>", KEYS_DOWN},       {"<Up>", KEYS_UP},     {"<Left>", KEYS_LEFT}, {"<Right>", KEYS_RIGHT},
        {"<Enter>", KEYS_ENTER},     {"<Tab>", '\t'},       {"<Esc>", 27},         {"<Back>", KEYS_BACK},
        {"<Forward>", KEYS_FORWARD}, {"<Home>", KEYS_HOME}, {"<End>", KEYS_END},   {"<PageDown>", KEYS_NEXT_PAGE},
        {"<PageUp>", KEYS_LAST_PAGE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(*text, names[i].name, strlen(names[i].name)) == 0) {
            *text += strlen(names[i].name);
            return names[i].key;
        }
    return (unsigned char)*(*text)++;
}

void term_keys(struct screen *screen, const char *keys)
{
    while (*keys && !screen->is_over)
        term_key(screen, named_key(&keys));
}

/* The first view that shows anything. */
static void open_first(struct screen *screen)
{
    struct error ignored;
    pane_open(screen);
    if (vars_table(screen))
        return;
    screen->now.view =
        ask_report(screen, "functions", NULL, &ignored) ? 3 : 6; /* of another tool; of recordings alone */
    pane_open(screen);
}

static void close_screen(struct screen *screen)
{
    pane_close(screen);
    answers_clear(screen);
    free(screen->answers);
    look_fini(&screen->now);
    for (size_t i = 0; i < screen->n_history; i++)
        look_fini(&screen->history[i]);
    free(screen->history);
    lines_fini(&screen->detail);
    lines_fini(&screen->overlay);
    buf_fini(&screen->copied);
    live_fini(screen);
}

int term_run(struct session *session, const struct term_choice *choice, const struct term_host *host, struct error *err)
{
    (void)setlocale(LC_CTYPE, "");
    struct screen screen = {.session = session, .choice = choice, .host = host, .width = 80, .height = 24};
    screen.is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    open_first(&screen);
    live_remember(&screen);
    if (choice->keys)
        term_keys(&screen, choice->keys);
    int code = choice->is_plain ? plain_run(&screen, err) : screen_run(&screen, err);
    if (code == 0 && screen.copied.data && !choice->is_plain)
        (void)!write(STDOUT_FILENO, screen.copied.data, screen.copied.len_bytes);
    close_screen(&screen);
    return code;
}
