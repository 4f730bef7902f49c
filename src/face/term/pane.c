/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a view: which of its rows are shown, in which order, and where the cursor is. */
#include "face/term/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct view *const views[] = {&view_answer, &view_variables, &view_variable, &view_tree, &view_source,
                                    &view_matrix, &view_timeline,  &view_compare,  &view_trust};
const size_t n_views = sizeof views / sizeof *views;

void pane_close(struct screen *screen)
{
    struct pane *pane = &screen->pane;
    if (pane->close)
        pane->close(pane->own);
    free(pane->rows);
    *pane = (struct pane){0};
    lines_clear(&screen->detail);
}

bool pane_add(struct pane *pane, uint32_t row)
{
    bool ok = vec_reserve(&pane->rows, &pane->cap, pane->n + 1, sizeof *pane->rows);
    if (ok)
        pane->rows[pane->n++] = row;
    return ok;
}

size_t pane_row(const struct screen *screen)
{
    const struct pane *pane = &screen->pane;
    return pane->cursor < pane->n && !*pane->why ? pane->rows[pane->cursor] : SIZE_MAX;
}

char *pane_item(struct screen *screen)
{
    const struct view *view = view_now(screen);
    size_t row = pane_row(screen);
    struct buf item = {0};
    if (view->item && row != SIZE_MAX)
        view->item(screen, row, &item);
    buf_append(&item, "", 0);
    return item.data;
}

/* --- which rows --- */

/* Whether a text has another one in it, in any case of ASCII letters. */
static bool contains(const char *text, const char *words)
{
    size_t n = strlen(words);
    for (; *text; text++)
        if (plain_compare(text, words, n) == 0)
            return true;
    return n == 0;
}

bool pane_has(struct screen *screen, size_t row, const char *words)
{
    const struct view *view = view_now(screen);
    const struct table *table = screen->pane.table;
    struct buf text = {0};
    bool has = false;
    if (view->words) {
        view->words(screen, row, &text);
        has = text.data && contains(text.data, words);
        buf_fini(&text);
        return has;
    }
    for (size_t i = 0; table && !has && i < table_columns(table); i++) {
        const char *cell;
        if (table_kind(table, i) == CELL_TEXT && strcmp(table_key(table, i), "item") != 0 &&
            table_get_texts(table, i, row, 1, &cell) && cell)
            has = contains(cell, words);
    }
    return has;
}

/* What rows are sorted by: there is one screen, and qsort passes nothing on. */
struct sorted {
    uint32_t row;
    double number;
    const char *text;
};

static int compare_rising(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int order = x->text && y->text                     ? strcmp(x->text, y->text)
                : isnan(x->number) || isnan(y->number) ? isnan(x->number) - isnan(y->number)
                                                       : (x->number > y->number) - (x->number < y->number);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int compare_falling(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    bool is_odd = !x->text && (isnan(x->number) || isnan(y->number));
    int order = is_odd ? isnan(x->number) - isnan(y->number) : compare_rising(b, a);
    bool is_same = x->text && y->text ? strcmp(x->text, y->text) == 0
                                      : x->number == y->number || (isnan(x->number) && isnan(y->number));
    return is_same ? (x->row > y->row) - (x->row < y->row) : order;
}

static void sort_rows(struct screen *screen)
{
    struct pane *pane = &screen->pane;
    const char *sort = look_get(&screen->now, LOOK_SORT);
    bool falls = *sort == '-';
    size_t column = column_of(pane->table, sort + falls);
    struct sorted *items = *sort && column != SIZE_MAX ? malloc((pane->n + 1) * sizeof *items) : NULL;
    if (!items)
        return;
    bool is_text = table_kind(pane->table, column) == CELL_TEXT;
    for (size_t i = 0; i < pane->n; i++) {
        items[i] = (struct sorted){.row = pane->rows[i], .number = NAN};
        if (is_text && (!table_get_texts(pane->table, column, pane->rows[i], 1, &items[i].text) || !items[i].text))
            items[i].text = "";
        else if (!is_text)
            (void)table_get_numbers(pane->table, column, pane->rows[i], 1, &items[i].number);
    }
    qsort(items, pane->n, sizeof *items, falls ? compare_falling : compare_rising);
    for (size_t i = 0; i < pane->n; i++)
        pane->rows[i] = items[i].row;
    free(items);
}

void pane_arrange(struct screen *screen)
{
    struct pane *pane = &screen->pane;
    const char *filter = look_get(&screen->now, LOOK_FILTER);
    pane->n = 0;
    if (view_now(screen)->arrange) {
        view_now(screen)->arrange(screen);
    } else {
        for (size_t i = 0; i < pane->n_all; i++)
            if ((!*filter || pane_has(screen, i, filter)) && !pane_add(pane, (uint32_t)i))
                break;
        sort_rows(screen);
    }
    if (pane->cursor >= pane->n)
        pane->cursor = pane->n ? pane->n - 1 : 0;
}

/* --- the cursor --- */

void pane_move(struct screen *screen, size_t cursor)
{
    struct pane *pane = &screen->pane;
    pane->cursor = cursor < pane->n ? cursor : pane->n ? pane->n - 1 : 0;
    screen->now.cursor = pane->cursor;
    char *item = pane_item(screen);
    if (item && *item)
        look_set(&screen->now, LOOK_ACTIVE, item);
    free(item);
    pane_tell(screen);
}

/* The place of the active thing, that of the cursor before if it is the thing; SIZE_MAX: it is not here. */
static size_t find_active(struct screen *screen)
{
    const struct view *view = view_now(screen);
    const char *active = look_get(&screen->now, LOOK_ACTIVE);
    struct buf item = {0};
    size_t found = SIZE_MAX;
    for (size_t i = 0; i <= screen->pane.n && found == SIZE_MAX && *active && view->item; i++) {
        size_t at = i == 0 ? screen->now.cursor : i - 1;
        item.len_bytes = 0;
        if (at < screen->pane.n)
            view->item(screen, screen->pane.rows[at], &item);
        if (item.len_bytes && item.data && strcmp(item.data, active) == 0)
            found = at;
    }
    buf_fini(&item);
    return found;
}

void pane_open(struct screen *screen)
{
    struct pane *pane = &screen->pane;
    struct error err = {0};
    unsigned shift = pane->shift;
    pane_close(screen);
    pane->shift = shift;
    if (view_now(screen)->open(screen, &err) != 0)
        (void)snprintf(pane->why, sizeof pane->why, "%s", err.text);
    if (*pane->why)
        pane->n_all = 0;
    pane_arrange(screen);
    if (pane->n == 0 && !*pane->why && *look_get(&screen->now, LOOK_FILTER))
        (void)snprintf(pane->note, sizeof pane->note, "nothing has the words of the filter (f)");
    size_t active = find_active(screen);
    pane->cursor = active != SIZE_MAX ? active : screen->now.cursor;
    screen->detail_top = 0;
    if (active == SIZE_MAX && pane->cursor >= pane->n)
        pane->cursor = 0;
    screen->now.cursor = pane->cursor;
    pane_tell(screen);
}

void pane_filter(struct screen *screen, const char *words)
{
    bool was_here = find_active(screen) != SIZE_MAX;
    look_set(&screen->now, LOOK_FILTER, words);
    pane_open(screen);
    if (was_here && screen->pane.n && find_active(screen) == SIZE_MAX)
        pane_move(screen, screen->pane.cursor);
}

void pane_tell(struct screen *screen)
{
    size_t row = pane_row(screen);
    struct layout layout = layout_of(screen);
    screen->pane.is_to_tell = false;
    lines_clear(&screen->detail);
    screen->detail.width = layout.detail_w;
    screen->detail.is_ascii = screen->is_ascii;
    if (row != SIZE_MAX && view_now(screen)->detail)
        view_now(screen)->detail(screen, row, &screen->detail);
    if (screen->detail_top >= screen->detail.n)
        screen->detail_top = 0;
}

void pane_finish(struct screen *screen)
{
    void (*later)(struct screen *) = screen->pane.later;
    screen->pane.later = NULL;
    if (!later || *screen->pane.why)
        return;
    later(screen);
    pane_arrange(screen);
    pane_tell(screen);
}

/* --- lines of the list --- */

enum { GAP = 1, GROWS_LEAST = 12 };

/* Which columns fit, from the first on, and how wide the growing one is. */
static size_t fit_columns(const struct view *view, bool is_live, unsigned width, unsigned *grown)
{
    unsigned taken = 2;
    size_t n = 0;
    *grown = 0;
    for (size_t i = 0; i < view->n_columns; i++)
        if (view->columns[i].grows)
            taken += GROWS_LEAST + GAP;
    for (size_t i = 0; i < view->n_columns; i++) {
        unsigned more = view->columns[i].grows ? 0 : view->columns[i].width + GAP;
        bool is_lately = view->columns[i].key && strcmp(view->columns[i].key, LATELY_KEY) == 0;
        if (taken + more > width || (is_lately && !is_live))
            continue;
        taken += more;
        n |= (size_t)1 << i;
    }
    if (width > taken)
        *grown = width - taken;
    return n;
}

static void put_cells(struct screen *screen, size_t row, struct line *line)
{
    const struct view *view = view_now(screen);
    const char *sort = look_get(&screen->now, LOOK_SORT);
    unsigned grown, width = line->width;
    size_t shown = fit_columns(view, screen->host->live != NULL, width, &grown);
    for (size_t i = 0; i < view->n_columns; i++) {
        const struct view_column *column = &view->columns[i];
        if (!(shown >> i & 1))
            continue;
        unsigned columns = column->grows ? GROWS_LEAST + grown : column->width, end = line->at + columns;
        line->width = end < width ? end : width;
        if (row != SIZE_MAX) {
            view->cell(screen, row, i, line);
        } else if (view->head && column->grows) {
            view->head(screen, i, line);
        } else {
            bool is_sorted = column->key && strcmp(sort + (*sort == '-'), column->key) == 0 && *sort;
            char title[40];
            (void)snprintf(title, sizeof title, "%s%s", column->title, !is_sorted ? "" : *sort == '-' ? "-" : "+");
            (column->is_right ? line_put_right : line_put_in)(line, TONE_STRONG, title, columns);
        }
        line->width = width;
        line_to(line, end + GAP);
    }
}

void pane_put_head(struct screen *screen, struct line *line)
{
    line_to(line, 2);
    put_cells(screen, SIZE_MAX, line);
}

void pane_put_row(struct screen *screen, size_t at, struct line *line)
{
    const struct pane *pane = &screen->pane;
    bool is_hit = *screen->search && pane_has(screen, pane->rows[at], screen->search);
    line_put(line, TONE_STRONG, at == pane->cursor ? ">" : " ");
    line_put(line, TONE_HIT, is_hit ? "*" : " ");
    put_cells(screen, pane->rows[at], line);
}
