/* SPDX-License-Identifier: BSD-3-Clause */
/* A session whose program runs: the newer one in place of the one before, what was spent lately, and keys about it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "face/term/screen.h"

static double now_s(void)
{
    return (double)clock_now_ns(CLOCK_MONOTONIC) / (double)CLOCK_S_NS;
}

/* --- lately --- */

static void past_fini(struct past *past)
{
    strtab_fini(&past->items);
    free(past->values);
    *past = (struct past){0};
}

static void drop_oldest(struct screen *screen)
{
    past_fini(&screen->past[0]);
    screen->n_past--;
    memmove(screen->past, screen->past + 1, screen->n_past * sizeof *screen->past);
    screen->past[screen->n_past] = (struct past){0};
}

/* What an item had in an earlier look. */
static double value_before(const struct past *before, const char *item)
{
    int64_t at = strtab_find(&before->items, item);
    return at < 0 ? 0 : before->values[at];
}

/* What an item was given since. What it lost, as where a process has ended, is not taken from others. */
static double more_since(const struct past *before, const struct past *now, size_t at)
{
    return fmax(now->values[at] - value_before(before, now->items.strings[at]), 0);
}

void live_remember(struct screen *screen)
{
    const struct table *vars = screen->host->live ? vars_table(screen) : NULL;
    size_t n = rows_of(vars);
    if (!vars)
        return;
    while (screen->n_past == LATELY_LOOKS || (screen->n_past > 1 && now_s() - screen->past[1].at_s > LATELY_S))
        drop_oldest(screen);
    struct past *past = &screen->past[screen->n_past];
    past->at_s = now_s();
    (void)snprintf(past->metric, sizeof past->metric, "%s", look_get(&screen->now, LOOK_METRIC));
    past->values = calloc(n + 1, sizeof *past->values);
    for (size_t i = 0; i < n && past->values; i++) {
        int64_t at = strtab_intern(&past->items, cell_text(vars, i, "item"));
        double value = cell_number(vars, i, "value");
        if (at < 0 || (size_t)at >= n || strcmp(cell_text(vars, i, "class"), "kernel") == 0) /* no part of the whole */
            continue;
        past->values[at] = isnan(value) ? 0 : value;
    }
    past->n = past->values ? past->items.n_strings < n ? past->items.n_strings : n : 0;
    for (size_t i = 0; i < past->n && screen->n_past > 0; i++)
        past->more += more_since(&screen->past[0], past, i);
    screen->n_past += past->values != NULL;
}

double live_lately(struct screen *screen, const char *item)
{
    const struct past *before = &screen->past[0], *now = screen->n_past ? &screen->past[screen->n_past - 1] : NULL;
    if (screen->n_past < 2 || strcmp(before->metric, now->metric) != 0 || !(now->more > 0))
        return NAN;
    int64_t at = strtab_find(&now->items, item);
    if (at < 0 || (size_t)at >= now->n || !(now->values[at] > 0))
        return NAN;
    return 100 * more_since(before, now, (size_t)at) / now->more;
}

void live_fini(struct screen *screen)
{
    while (screen->n_past)
        drop_oldest(screen);
}

/* --- the newer session --- */

/* What a pane is put back to. */
struct kept {
    struct strtab open;
    struct buf place;
    size_t cursor, offset, detail_top;
    bool is_in_detail;
};

static void keep(struct screen *screen, struct kept *kept)
{
    const struct view *view = view_now(screen);
    size_t row = pane_row(screen);
    *kept = (struct kept){.cursor = screen->pane.cursor,
                          .offset = screen->pane.cursor - screen->pane.top,
                          .detail_top = screen->detail_top,
                          .is_in_detail = screen->is_in_detail};
    if (*screen->pane.why)
        return;
    if (view->keep)
        view->keep(screen, &kept->open);
    if (view->place && row != SIZE_MAX)
        view->place(screen, row, &kept->place);
}

/* Where a place is now, SIZE_MAX: it is gone. */
static size_t find_place(struct screen *screen, const char *place)
{
    struct buf text = {0};
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < screen->pane.n && found == SIZE_MAX; i++) {
        text.len_bytes = 0;
        view_now(screen)->place(screen, screen->pane.rows[i], &text);
        if (text.data && strcmp(text.data, place) == 0)
            found = i;
    }
    buf_fini(&text);
    return found;
}

static void put_back(struct screen *screen, struct kept *kept)
{
    const struct view *view = view_now(screen);
    struct pane *pane = &screen->pane;
    if (view->reopen && !*pane->why) {
        view->reopen(screen, &kept->open);
        pane_arrange(screen);
    }
    size_t at =
        kept->place.len_bytes && kept->place.data && !*pane->why ? find_place(screen, kept->place.data) : SIZE_MAX;
    if (at != SIZE_MAX)
        pane->cursor = screen->now.cursor = at;
    size_t page = layout_of(screen).list_h, last = pane->n > page ? pane->n - page : 0;
    pane->top = pane->cursor > kept->offset ? pane->cursor - kept->offset : 0;
    pane->top = pane->top < last ? pane->top : last; /* what is above the cursor now is not hidden for nothing */
    pane_tell(screen);
    screen->is_in_detail = kept->is_in_detail;
    if (screen->overlay.n || kept->detail_top < screen->detail.n)
        screen->detail_top = kept->detail_top;
    strtab_fini(&kept->open);
    buf_fini(&kept->place);
}

void live_renew(struct screen *screen)
{
    struct kept kept;
    keep(screen, &kept);
    pane_close(screen);
    answers_clear(screen);
    struct session *newer = screen->host->live->renew(screen->host->context);
    if (newer)
        screen->session = newer;
    live_remember(screen);
    pane_open(screen);
    put_back(screen, &kept);
}

/* --- keys --- */

static void control(struct screen *screen, const char *command)
{
    struct buf says = {0};
    struct error err = {0};
    if (screen->host->live->control(screen->host->context, command, &says, &err) != 0)
        (void)snprintf(screen->message, sizeof screen->message, "%.500s", err.text);
    else
        (void)snprintf(screen->message, sizeof screen->message, "%.500s", says.data ? says.data : "");
    buf_fini(&says);
}

void live_mark(struct screen *screen, const char *name)
{
    struct buf command = {0};
    buf_printf(&command, "mark %s", name);
    control(screen, command.data ? command.data : "mark ");
    buf_fini(&command);
}

bool live_key(struct screen *screen, int key)
{
    const struct term_live *live = screen->host->live;
    void *context = screen->host->context;
    if (!live || (key != 'p' && key != 'P' && key != 'K' && key != 'W'))
        return false;
    if (key == 'p') {
        live->hold(context);
    } else if (key == 'K') {
        screen->typing = 'K';
        *screen->typed = 0;
    } else {
        control(screen, key == 'W' ? "snapshot" : live->is_paused(context) ? "resume" : "pause");
    }
    return true;
}
