/* SPDX-License-Identifier: BSD-3-Clause */
/* The screen, with ncursesw: drawing, reading keys, and leaving the terminal as it was whatever happens. */
#include "config.h"

#include "face/term/screen.h"

#if HAVE_NCURSESW

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { WIDTH_LEAST = 80, HEIGHT_LEAST = 24, ESCAPE_MS = 25, CTRL_C = 3, CTRL_L = 12, CTRL_Z = 26 };
_Static_assert(KEYS_DOWN == KEY_DOWN && KEYS_UP == KEY_UP && KEYS_LEFT == KEY_LEFT && KEYS_RIGHT == KEY_RIGHT &&
                   KEYS_HOME == KEY_HOME && KEYS_BACK == KEY_BACKSPACE && KEYS_NEXT_PAGE == KEY_NPAGE &&
                   KEYS_LAST_PAGE == KEY_PPAGE && KEYS_ENTER == KEY_ENTER && KEYS_TAB_BACK == KEY_BTAB &&
                   KEYS_END == KEY_END,
               "keys are those of ncurses");

/* --- the terminal as it was --- */

static struct {
    struct termios modes;
    char strings[256]; /* that leave the screen, by the terminal's description */
    size_t n_strings;
    volatile sig_atomic_t is_ours;
    int pipe[2]; /* signals that have come, a letter each */
} terminal = {.pipe = {-1, -1}};

void terminal_restore_sig(void)
{
    if (!terminal.is_ours)
        return;
    terminal.is_ours = 0;
    (void)!write(STDOUT_FILENO, terminal.strings, terminal.n_strings);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.modes);
}

static void on_crash(int number)
{
    terminal_restore_sig();
    (void)raise(number); /* the handler is gone: this time it ends the program */
}

static void on_signal(int number)
{
    int kept = errno;
    char letter = number == SIGWINCH ? 'w' : number == SIGTSTP ? 't' : 'c';
    (void)!write(terminal.pipe[1], &letter, 1);
    errno = kept;
}

static void take_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

static void take_signals(void)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        take_signal(crashes[i], on_crash, SA_RESETHAND);
    take_signal(SIGWINCH, on_signal, SA_RESTART);
    take_signal(SIGTSTP, on_signal, SA_RESTART);
    take_signal(SIGCONT, on_signal, SA_RESTART);
}

/* What leaves the screen: known now, because nobody can ask in a signal handler. */
static void keep_strings(void)
{
    static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
    terminal.n_strings = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = tigetstr(names[i]);
        size_t n = text && text != (char *)-1 ? strlen(text) : 0;
        if (n && terminal.n_strings + n < sizeof terminal.strings) {
            memcpy(terminal.strings + terminal.n_strings, text, n);
            terminal.n_strings += n;
        }
    }
}

const char *term_lacks(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return "standard input and output are no terminal";
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return "the terminal (TERM) cannot be drawn on";
    return NULL;
}

/* --- drawing --- */

static attr_t attributes_of(const struct screen *screen, enum tone tone)
{
    static const short pairs[TONES] = {
        [TONE_MEMORY] = 1, [TONE_EXECUTION] = 2, [TONE_UNKNOWN] = 3, [TONE_LESS] = 4, [TONE_MORE] = 1, [TONE_HIT] = 3};
    attr_t found = tone == TONE_STRONG || tone == TONE_HIT ? A_BOLD : tone == TONE_DIM ? A_DIM : A_NORMAL;
    return screen->has_color && pairs[tone] ? found | (attr_t)COLOR_PAIR(pairs[tone]) : found;
}

static void draw(const struct screen *screen, const struct line *line, unsigned y, unsigned x, attr_t more)
{
    (void)move((int)y, (int)x);
    for (size_t i = 0; i < line->n_spans; i++) {
        size_t begin = line->spans[i].begin,
               end = i + 1 < line->n_spans ? line->spans[i + 1].begin : line->text.len_bytes;
        (void)attrset((int)(attributes_of(screen, line->spans[i].tone) | more));
        (void)addnstr(line->text.data + begin, (int)(end - begin));
    }
    (void)attrset(A_NORMAL);
}

/* Draws what a function puts on a line. */
static void draw_put(struct screen *screen, void (*put)(struct screen *screen, struct line *line), unsigned y,
                     unsigned x, unsigned width, attr_t more)
{
    struct line line = {.width = width, .is_ascii = screen->is_ascii};
    put(screen, &line);
    if (more)
        line_to(&line, width);
    draw(screen, &line, y, x, more);
    line_fini(&line);
}

static void draw_list(struct screen *screen, const struct layout *layout)
{
    struct pane *pane = &screen->pane;
    struct line line = {.width = layout->list_w, .is_ascii = screen->is_ascii};
    if (pane->cursor < pane->top)
        pane->top = pane->cursor;
    if (pane->cursor >= pane->top + layout->list_h)
        pane->top = pane->cursor - layout->list_h + 1;
    draw_put(screen, pane_put_head, layout->list_y - 1, 0, layout->list_w, A_UNDERLINE);
    for (size_t i = pane->top; i < pane->n && i < pane->top + layout->list_h; i++) {
        line_clear(&line);
        pane_put_row(screen, i, &line);
        line_to(&line, layout->list_w);
        draw(screen, &line, layout->list_y + (unsigned)(i - pane->top), 0, i == pane->cursor ? A_REVERSE : A_NORMAL);
    }
    line_fini(&line);
}

/* A text in the place of the list. */
static void draw_why(struct screen *screen, const struct layout *layout)
{
    struct lines lines = {.width = layout->list_w, .is_ascii = screen->is_ascii};
    lines_wrap(&lines, TONE_PLAIN, 1, screen->pane.why);
    for (size_t i = 0; i < lines.n && i < layout->list_h; i++)
        draw(screen, &lines.items[i], layout->list_y + (unsigned)i, 0, A_NORMAL);
    lines_fini(&lines);
}

static void draw_detail(struct screen *screen, const struct layout *layout)
{
    const struct lines *lines = screen->overlay.n ? &screen->overlay : &screen->detail;
    bool is_beside = layout->detail_x > 0;
    const char *bar = screen->is_ascii ? (is_beside ? "|" : "-") : (is_beside ? "\u2502" : "\u2500");
    (void)attrset(screen->is_in_detail ? A_BOLD : A_DIM);
    for (unsigned i = 0; i < (is_beside ? layout->detail_h : screen->width); i++)
        (void)(is_beside ? mvaddstr((int)(layout->detail_y + i), (int)layout->detail_x - 2, bar)
                         : mvaddstr((int)layout->detail_y - 1, (int)i, bar));
    (void)attrset(A_NORMAL);
    for (size_t i = 0; i < layout->detail_h && screen->detail_top + i < lines->n; i++)
        draw(screen, &lines->items[screen->detail_top + i], layout->detail_y + (unsigned)i, layout->detail_x, A_NORMAL);
    if (screen->detail_top + layout->detail_h < lines->n) { /* there is more */
        (void)attrset(A_BOLD);
        (void)mvaddstr((int)(layout->detail_y + layout->detail_h - 1), (int)screen->width - 5, "(Tab)");
        (void)attrset(A_NORMAL);
    }
}

static void draw_screen(struct screen *screen)
{
    struct layout layout = layout_of(screen);
    (void)erase();
    if (screen->width < WIDTH_LEAST || screen->height < HEIGHT_LEAST) {
        struct lines lines = {.width = screen->width ? screen->width : 1, .is_ascii = screen->is_ascii};
        char text[80];
        (void)snprintf(text, sizeof text, "The terminal has %u x %u; %d x %d are needed.", screen->width,
                       screen->height, WIDTH_LEAST, HEIGHT_LEAST);
        lines_wrap(&lines, TONE_PLAIN, 0, text);
        for (size_t i = 0; i < lines.n && i < screen->height; i++)
            draw(screen, &lines.items[i], (unsigned)i, 0, A_NORMAL);
        lines_fini(&lines);
    } else {
        draw_put(screen, put_title, 0, 0, screen->width, A_NORMAL);
        draw_put(screen, put_tabs, 1, 0, screen->width, A_NORMAL);
        if (*screen->pane.why)
            draw_why(screen, &layout);
        else
            draw_list(screen, &layout);
        if (screen->pane.is_to_tell)
            pane_tell(screen);
        draw_detail(screen, &layout);
        draw_put(screen, put_foot, screen->height - 1, 0, screen->width, A_NORMAL);
    }
    (void)refresh();
}

void screen_copy(struct screen *screen, const char *text)
{
    const char *term = getenv("TERM");
    struct buf out = {0};
    if (screen->choice->is_plain || !terminal.is_ours || !term || strncmp(term, "linux", 5) == 0 ||
        strncmp(term, "vt", 2) == 0)
        return;
    buf_printf(&out, "\033]52;c;");
    buf_put_base64(&out, text, strlen(text));
    buf_append(&out, "\a", 1);
    if (!out.failed)
        (void)!write(STDOUT_FILENO, out.data, out.len_bytes);
    buf_fini(&out);
}

/* --- sizes and signals --- */

#define CELLS_MOST 2000 /* lines, and columns: beyond them nothing is drawn. ncurses counts them in short integers */

static void take_size(struct screen *screen)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
        int n_rows = size.ws_row < CELLS_MOST ? size.ws_row : CELLS_MOST;
        int n_columns = size.ws_col < CELLS_MOST ? size.ws_col : CELLS_MOST;
        if (n_rows != LINES || n_columns != COLS)
            (void)resizeterm(n_rows, n_columns);
    }
    screen->width = (unsigned)COLS;
    screen->height = (unsigned)LINES;
    pane_tell(screen);
}

/* Comes back to the screen, whatever was done to the terminal meanwhile. */
static void come_back(struct screen *screen)
{
    terminal.is_ours = 1;
    (void)reset_prog_mode();
    (void)clearok(curscr, TRUE);
    take_size(screen);
}

/* Stops as other programs do, until the shell goes on with it. */
static void stop(struct screen *screen)
{
    (void)endwin();
    terminal.is_ours = 0;
    take_signal(SIGTSTP, SIG_DFL, 0);
    (void)kill(0, SIGTSTP);
    take_signal(SIGTSTP, on_signal, SA_RESTART);
    come_back(screen);
}

static void take_letters(struct screen *screen)
{
    char letters[64];
    ssize_t n = read(terminal.pipe[0], letters, sizeof letters);
    bool stops = n > 0 && memchr(letters, 't', (size_t)n), goes_on = n > 0 && memchr(letters, 'c', (size_t)n);
    if (stops)
        stop(screen);
    else if (goes_on) {
        (void)endwin();
        come_back(screen);
    } else if (n > 0)
        take_size(screen);
}

/* --- keys --- */

/* A click puts the cursor on a row, the wheel moves it. */
static void take_mouse(struct screen *screen)
{
    struct layout layout = layout_of(screen);
    MEVENT event;
    if (getmouse(&event) != OK)
        return;
    if (event.bstate & BUTTON4_PRESSED)
        term_key(screen, KEYS_UP);
    else if (event.bstate & BUTTON5_PRESSED)
        term_key(screen, KEYS_DOWN);
    else if (event.y >= (int)layout.list_y && event.y < (int)(layout.list_y + layout.list_h) &&
             event.x < (int)layout.list_w)
        pane_move(screen, screen->pane.top + (size_t)event.y - layout.list_y);
}

static void take_keys(struct screen *screen)
{
    int key, n = 0;
    static bool has_mouse;
    while (!screen->is_over && (key = getch()) != ERR) {
        n++;
        if (key == CTRL_C)
            screen->is_over = true;
        else if (key == CTRL_Z)
            stop(screen);
        else if (key == CTRL_L)
            (void)clearok(curscr, TRUE);
        else if (key == KEY_MOUSE)
            take_mouse(screen);
        else if (key == 'M' && !screen->typing)
            (void)mousemask((has_mouse = !has_mouse) ? BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, NULL);
        else if (key != KEY_RESIZE)
            term_key(screen, key);
    }
    if (n == 0)
        screen->is_over = true; /* readable, and nothing to be read: the terminal is gone */
}

/* Waits for a key, a signal, work of the host, or the time to ask whether there are other answers. */
static int wait_for(struct screen *screen, struct error *err)
{
    const struct term_host *host = screen->host;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = terminal.pipe[0], .events = POLLIN},
                           {.fd = host->stop_fd, .events = POLLIN},
                           {.fd = -1}};
    int wait_ms = -1;
    if (host->poll && !host->poll(host->context, &fds[3], &wait_ms))
        fds[3].fd = -1;
    if (screen->pane.later)
        wait_ms = 0;
    int n_ready = poll(fds, sizeof fds / sizeof *fds, wait_ms);
    if (n_ready < 0) {
        if (errno == EINTR)
            return 0;
        return error_set(err, ERR_IO, "poll: %s", strerror(errno));
    }
    if (n_ready == 0)
        pane_finish(screen);
    if (fds[2].revents || fds[0].revents & (POLLERR | POLLNVAL) ||
        (fds[0].revents & POLLHUP && !(fds[0].revents & POLLIN)))
        screen->is_over = true;
    if (fds[1].revents)
        take_letters(screen);
    if (fds[0].revents & POLLIN && !screen->is_over)
        take_keys(screen);
    if (host->step)
        host->step(host->context);
    if (host->live && host->live->is_newer(host->context))
        live_renew(screen);
    return 0;
}

/* --- begin and end --- */

static void begin_colors(struct screen *screen)
{
    static const short colors[] = {COLOR_RED, COLOR_BLUE, COLOR_YELLOW, COLOR_GREEN};
    const char *without = getenv("NO_COLOR");
    screen->has_color = has_colors() && !(without && *without) && start_color() == OK;
    if (!screen->has_color)
        return;
    short back = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (short i = 0; i < (short)(sizeof colors / sizeof *colors); i++)
        (void)init_pair((short)(i + 1), colors[i], back);
}

int screen_run(struct screen *screen, struct error *err)
{
    const char *lacks = term_lacks();
    if (lacks)
        return error_set(err, ERR_UNSUPPORTED, "%s; --plain prints lines instead", lacks);
    if (tcgetattr(STDIN_FILENO, &terminal.modes) != 0 || pipe2(terminal.pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return error_set(err, ERR_IO, "the terminal cannot be used: %s", strerror(errno));
    SCREEN *made = newterm(NULL, stdout, stdin);
    if (!made)
        return error_set(
            err, ERR_UNSUPPORTED,
            "the terminal %s is not known here (package ncurses-term has more); --plain prints lines instead",
            getenv("TERM"));
    keep_strings();
    terminal.is_ours = 1;
    take_signals();
    (void)raw();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    (void)define_key("\033[1;3D", KEYS_BACKWARD);
    (void)define_key("\033[1;3C", KEYS_FORWARD);
    (void)curs_set(0);
    begin_colors(screen);
    take_size(screen);
    pane_open(screen);
    int code = 0;
    while (code == 0 && !screen->is_over) {
        draw_screen(screen);
        code = wait_for(screen, err);
    }
    (void)endwin();
    terminal.is_ours = 0;
    delscreen(made);
    return code;
}

#else

const char *term_lacks(void)
{
    return "libncurses-dev (ncursesw) was missing when hpcviewer was built";
}

void terminal_restore_sig(void)
{
}

void screen_copy(struct screen *screen, const char *text)
{
    (void)screen;
    (void)text;
}

int screen_run(struct screen *screen, struct error *err)
{
    (void)screen;
    return error_set(err, ERR_UNSUPPORTED, "%s; --plain prints lines instead", term_lacks());
}

#endif
