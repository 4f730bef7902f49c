/* SPDX-License-Identifier: BSD-3-Clause */
/* The same without a screen: lines for who listens to them, and for terminals that cannot be drawn on. What is typed on
 * a line are keys; after them the list around its cursor is printed, and what is known of that row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "face/term/screen.h"

enum { ROWS = 20 };

static void print(const struct line *line)
{
    size_t n = line->text.len_bytes;
    while (n && line->text.data[n - 1] == ' ')
        n--;
    (void)fwrite(line->text.data ? line->text.data : "", 1, n, stdout);
    (void)putchar('\n');
}

static void print_list(struct screen *screen)
{
    struct pane *pane = &screen->pane;
    struct line line = {.width = screen->width, .is_ascii = true};
    pane_put_head(screen, &line);
    print(&line);
    pane->top = pane->cursor - pane->cursor % ROWS;
    for (size_t i = pane->top; i < pane->n && i < pane->top + ROWS; i++) {
        line_clear(&line);
        pane_put_row(screen, i, &line);
        print(&line);
    }
    if (pane->top + ROWS < pane->n)
        printf("%zu more rows (G: the last, <PageDown>)\n", pane->n - pane->top - ROWS);
    line_fini(&line);
}

static void print_all(struct screen *screen)
{
    const struct lines *lines = screen->overlay.n ? &screen->overlay : &screen->detail;
    struct line line = {.width = screen->width, .is_ascii = true};
    printf("%s: ", view_now(screen)->title);
    put_title(screen, &line);
    print(&line);
    if (*screen->message)
        printf("%s\n", screen->message);
    if (*screen->pane.why) {
        line_clear(&line);
        line.width = sizeof screen->pane.why;
        line_put(&line, TONE_PLAIN, screen->pane.why);
        print(&line);
    } else if (!screen->overlay.n) {
        print_list(screen);
    }
    if (lines->n)
        (void)putchar('\n');
    for (size_t i = 0; i < lines->n; i++)
        print(&lines->items[i]);
    line_fini(&line);
}

/* Reads a line of keys; false: there is none any more. */
static bool read_keys(struct screen *screen, char *keys, size_t n_keys)
{
    struct pollfd fds[] = {
        {.fd = STDIN_FILENO, .events = POLLIN}, {.fd = screen->host->stop_fd, .events = POLLIN}, {.fd = -1}};
    size_t n = 0;
    char c = 0;
    while (c != '\n') {
        int wait_ms = -1;
        if (screen->host->poll && !screen->host->poll(screen->host->context, &fds[2], &wait_ms))
            fds[2].fd = -1;
        if (poll(fds, 3, wait_ms) < 0)
            return false;
        if (fds[1].revents)
            return false;
        if (screen->host->step)
            screen->host->step(screen->host->context);
        if (!fds[0].revents)
            continue;
        if (read(STDIN_FILENO, &c, 1) != 1)
            return false;
        if (c != '\n' && n + 1 < n_keys)
            keys[n++] = c;
    }
    keys[n] = 0;
    return true;
}

int plain_run(struct screen *screen, struct error *err)
{
    char keys[256];
    const char *columns = getenv("COLUMNS");
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    screen->is_ascii = true;
    screen->width = width >= 40 && width <= 1000 ? (unsigned)width : 79;
    pane_tell(screen);
    while (!screen->is_over) {
        while (screen->pane.later)
            pane_finish(screen);
        print_all(screen);
        (void)printf("\nkeys, and Enter (? lists them, q ends): ");
        if (fflush(stdout) != 0)
            return error_set(err, ERR_IO, "standard output cannot be written");
        if (!read_keys(screen, keys, sizeof keys))
            break;
        if (screen->host->live && screen->host->live->is_newer(screen->host->context))
            live_renew(screen);
        term_keys(screen, *keys ? keys : "<Enter>");
        if (screen->typing) /* the line ended the words */
            term_key(screen, '\n');
    }
    (void)putchar('\n');
    return fflush(stdout) == 0 ? 0 : error_set(err, ERR_IO, "standard output cannot be written");
}
