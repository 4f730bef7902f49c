/* SPDX-License-Identifier: BSD-3-Clause */
/* What is looked at, and what was before: as steps, as the text of a state, and as a command line. */
#include <stdlib.h>
#include <string.h>

#include "answer/state.h"
#include "face/term/screen.h"

const char *look_get(const struct look *look, enum look_key key)
{
    return look->words[key] ? look->words[key] : "";
}

void look_set(struct look *look, enum look_key key, const char *text)
{
    char *copy = text && *text ? strdup(text) : NULL;
    free(look->words[key]);
    look->words[key] = copy;
}

/* What has no memory is not said in the copy. */
static void look_copy(struct look *to, const struct look *from)
{
    *to = *from;
    for (int i = 0; i < LOOK_KEYS; i++)
        to->words[i] = from->words[i] ? strdup(from->words[i]) : NULL;
}

void look_fini(struct look *look)
{
    for (int i = 0; i < LOOK_KEYS; i++)
        free(look->words[i]);
    *look = (struct look){0};
}

const struct view *view_now(const struct screen *screen)
{
    return views[screen->now.view];
}

/* --- steps --- */

/* Forgets what Forward would show. */
static void cut_history(struct screen *screen)
{
    while (screen->n_history > screen->at_history)
        look_fini(&screen->history[--screen->n_history]);
}

/* Opens what a look says, as a step that Back undoes; the look is taken. */
static void look_go(struct screen *screen, struct look *next)
{
    cut_history(screen);
    if (vec_reserve(&screen->history, &screen->cap_history, screen->n_history + 1, sizeof *screen->history)) {
        screen->history[screen->n_history++] = screen->now;
        screen->at_history = screen->n_history;
        screen->now = (struct look){0};
    }
    look_fini(&screen->now);
    screen->now = *next;
    *next = (struct look){0};
    pane_open(screen);
}

void go_history(struct screen *screen, int step)
{
    size_t to = screen->at_history + (size_t)step;
    if ((step < 0 && screen->at_history == 0) || (step > 0 && to >= screen->n_history))
        return;
    if (screen->at_history == screen->n_history) { /* now is the last of all: it becomes one of them */
        if (!vec_reserve(&screen->history, &screen->cap_history, screen->n_history + 1, sizeof *screen->history))
            return;
        screen->n_history++;
    }
    screen->history[screen->at_history] = screen->now;
    screen->now = screen->history[to];
    screen->history[to] = (struct look){0};
    screen->at_history = to;
    pane_open(screen);
}

void go_to(struct screen *screen, const struct view *view, const char *item)
{
    struct look next;
    look_copy(&next, &screen->now);
    for (size_t i = 0; i < n_views; i++)
        if (views[i] == view)
            next.view = i;
    if (*item)
        look_set(&next, LOOK_ACTIVE, item);
    if (next.view != screen->now.view) {
        look_set(&next, LOOK_FILTER, "");
        look_set(&next, LOOK_SORT, "");
        next.cursor = 0;
    }
    look_go(screen, &next);
}

void go_set(struct screen *screen, enum look_key key, const char *text)
{
    struct look next;
    look_copy(&next, &screen->now);
    look_set(&next, key, text);
    look_go(screen, &next);
}

/* --- as text --- */

static void put_layout(const struct screen *screen, struct buf *out)
{
    static const char *const names[LOOK_KEYS] = {[LOOK_SORT] = "sort", [LOOK_ROWS] = "rows", [LOOK_GRAPH] = "graph"};
    const struct view *view = view_now(screen);
    if (view->is_of_code)
        buf_printf(out, "code:%s", view->name);
    for (int i = LOOK_OWN; i < LOOK_KEYS; i++)
        if (names[i] && screen->now.words[i])
            buf_printf(out, "%s%s:%s", out->len_bytes ? "," : "", names[i], screen->now.words[i]);
}

void look_put_state(const struct screen *screen, struct buf *out)
{
    static const char *const keys[LOOK_OWN] = {"active", "metric", "by", "filter"};
    const struct view *view = view_now(screen);
    struct state state = {0};
    struct buf layout = {0};
    put_layout(screen, &layout);
    if (!view->is_of_code)
        (void)state_set(&state, "view", view->name, NULL);
    for (int i = 0; i < LOOK_OWN; i++)
        if (screen->now.words[i])
            (void)state_set(&state, keys[i], screen->now.words[i], NULL);
    if (layout.data && layout.len_bytes)
        (void)state_set(&state, "layout", layout.data, NULL);
    state_put_text(&state, out);
    state_fini(&state);
    buf_fini(&layout);
}

/* A path that begins with - would be an option. */
static void put_path(const char *path, struct buf *out)
{
    struct buf word = {0};
    buf_printf(&word, "%s%s", *path == '-' ? "./" : "", path);
    word_put(out, word.data ? word.data : "");
    buf_fini(&word);
}

static const char *made_of(const struct screen *screen, size_t i)
{
    if (screen->host->live)
        return screen->host->live->directory(screen->host->context, i);
    return i == 0 ? screen->choice->measured : NULL;
}

/* Of a program that runs, and of a measurement, there is no database: what makes one. */
static void put_making(const struct screen *screen, struct buf *out)
{
    const char *directory;
    buf_printf(out, "hpcprof -q -o");
    put_path(screen->choice->paths[0], out);
    for (size_t i = 0; (directory = made_of(screen, i)); i++)
        put_path(directory, out);
    buf_printf(out, " && ");
}

void look_put_command(struct screen *screen, struct buf *out)
{
    const struct view *view = view_now(screen);
    /* a sentence of the answer is not a line of its report */
    const char *filter = view == &view_answer ? "" : look_get(&screen->now, LOOK_FILTER);
    struct buf words = {0};
    if (view->command && !*screen->pane.why)
        view->command(screen, &words);
    if (words.len_bytes && words.data) {
        if (made_of(screen, 0))
            put_making(screen, out);
        buf_printf(out, "hpcquery%s%s", words.data, *filter ? " --top=0" : "");
        if (view == &view_compare && screen->choice->paths[1])
            put_path(screen->choice->paths[1], out);
        put_path(screen->choice->paths[0], out);
    }
    if (words.len_bytes && words.data && *filter) {
        buf_printf(out, " | grep -iF --");
        word_put(out, filter);
    }
    buf_fini(&words);
}
