/* SPDX-License-Identifier: BSD-3-Clause */
/* What commands do with measured processes that run: hpcrun --status and --control, hpcviewer --live. Ordinary code. */
#include "running/running.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/options.h"

/* --- hpcrun --status --- */

/* Two looks, so that there is a rate. What cannot be read, as that of another version, leaves the list. */
static int look_twice(struct running_list *list, bool is_json, struct error *err)
{
    const struct timespec second = {.tv_sec = 1};
    bool was_empty = !list->n;
    for (int look = 0; look < 2; look++) {
        bool with_sums = is_json || list->n == 1;
        for (size_t i = 0; i < list->n; i++)
            (void)running_look(&list->processes[i], with_sums, err);
        running_keep_readable(list);
        if (list->n && look == 0)
            (void)nanosleep(&second, NULL);
    }
    return list->n || was_empty ? 0 : ERR_FORMAT;
}

static void print_all_json(struct running_list *list, FILE *out)
{
    struct buf text = {0};
    running_print_json(list, &text);
    (void)fwrite(text.data ? text.data : "", 1, text.len_bytes, out);
    buf_fini(&text);
}

static int print(struct running_list *list, bool is_json, bool is_all, FILE *out)
{
    if (is_json)
        print_all_json(list, out);
    else if (list->n == 1 && !is_all)
        (void)running_print_one(&list->processes[0], false, 0, out);
    else if (list->n)
        running_print_list(list, out);
    else
        (void)fprintf(out, "No process of yours is being measured here.\n");
    if (list->silent.n_strings)
        (void)tool_error(list->tool, "%zu companion process%s did not answer", list->silent.n_strings,
                         list->silent.n_strings == 1 ? "" : "es");
    for (size_t i = 0; i < list->skipped.n_strings; i++)
        (void)tool_error(list->tool, "%s", list->skipped.strings[i]);
    return fflush(out) == 0 ? 0 : tool_error(list->tool, "the status cannot be written");
}

int running_status(const char *operand, bool is_json, FILE *out)
{
    struct running_list list = {.tool = "hpcrun"};
    struct error err;
    if (running_find(&list, &err) != 0)
        return tool_error("hpcrun", "%s", err.text);
    const char *const words[] = {operand, NULL};
    int status = running_choose(&list, words, false);
    if (status == 0 && look_twice(&list, is_json, &err) != 0)
        status = tool_error("hpcrun", "%s", err.text);
    if (status == 0)
        status = print(&list, is_json, operand == NULL, out);
    running_fini(&list);
    return status;
}

/* --- hpcrun --control --- */

static int join(char **words, int n, struct buf *command)
{
    for (int i = 0; i < n; i++)
        buf_printf(command, "%s%s", i ? " " : "", words[i]);
    if (command->failed)
        return tool_error("hpcrun", "out of memory");
    if (n == 1 && strcmp(words[0], "mark") == 0) /* what follows is in no phase */
        buf_printf(command, " ");
    return command->len_bytes < ARENA_PATH_MAX ? 0 : tool_usage("hpcrun", "--control: this is too long");
}

static int control_all(const struct running_list *list, const char *command, FILE *out)
{
    char answer[ARENA_PATH_MAX];
    struct error err;
    int status = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct running_process *process = &list->processes[i];
        int code = running_control_process(process, command, answer, &err);
        if (code == ERR_USAGE)
            return tool_usage("hpcrun", "--control: %s", err.text);
        if (code != 0) {
            status = tool_error("hpcrun", "%s", err.text);
        } else if (strcmp(command, "snapshot") == 0) {
            (void)fprintf(out, "process %ld is saved as it is now; hpcprof %s makes a database of it\n",
                          (long)process->pid, answer);
        } else {
            (void)fprintf(out, "process %ld: %s%s%s\n", (long)process->pid, command, *answer ? ": " : "", answer);
        }
    }
    return status;
}

int running_command(char **words, int n, FILE *out)
{
    struct running_list list = {.tool = "hpcrun"};
    struct buf command = {0};
    struct error err;
    if (n < 2)
        return tool_usage("hpcrun", "--control takes a process id or a measurement directory, and pause, resume, rate "
                                    "N, mark NAME or snapshot");
    int status = join(words + 1, n - 1, &command);
    if (status == 0 && running_find(&list, &err) != 0)
        status = tool_error("hpcrun", "%s", err.text);
    if (status == 0)
        status = running_choose(&list, (const char *const[]){words[0], NULL}, false);
    if (status == 0)
        status = control_all(&list, command.data, out);
    buf_fini(&command);
    running_fini(&list);
    return status;
}

/* --- hpcviewer --live --- */

#define VIEWER "hpcviewer"
#define FIND_MS 250 /* short programs are noticed that have this long */
#define FINDS 4     /* of which a look is one */

/* The terminal whose keys are read one by one, and what it was like before; signals put it back. */
static struct {
    struct termios before;
    volatile sig_atomic_t is_raw, is_over;
} keys;

static void keys_restore(void)
{
    if (keys.is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys.before);
    keys.is_raw = 0;
}

/* Only in the foreground: else the shell's terminal would change. */
static void keys_take(void)
{
    struct termios raw;
    if (keys.is_raw || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &keys.before) != 0)
        return;
    raw = keys.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    keys.is_raw = 1; /* before: a signal between the two restores what is */
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void on_end(int number)
{
    keys.is_over = number;
}

static void on_stop(int number)
{
    (void)number;
    keys_restore();
    (void)raise(SIGSTOP);
}

static void keys_begin(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction old, end = {.sa_handler = on_end}, stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(ends[i], &end, NULL);
    if (sigaction(SIGTSTP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(SIGTSTP, &stop, NULL);
}

/* Waits, or until q is pressed or a signal comes; whether to go on. */
static bool keys_wait(bool has_keys, int wait_ms)
{
    char typed[64];
    if (has_keys)
        keys_take();
    struct pollfd input = {.fd = keys.is_raw ? STDIN_FILENO : -1, .events = POLLIN};
    if (keys.is_over)
        return false;
    if (poll(&input, 1, wait_ms) > 0) {
        ssize_t n = read(STDIN_FILENO, typed, sizeof typed);
        if (n <= 0) /* the terminal is gone, or somebody else reads it */
            (void)poll(NULL, 0, wait_ms);
        for (ssize_t i = 0; i < n; i++)
            if (typed[i] == 'q' || typed[i] == 'Q')
                return false;
    }
    return !keys.is_over;
}

#define LINES_EACH 16 /* of a process on a screen, or there is none of it */
#define SHOWN_MAX 4   /* processes that are told in full */
#define LIST_PART 3   /* of a screen, one line in so many is of the list of processes */

/* The list of processes, and those that had most samples lately in full. n_lines: so many there are for it, 0: as many
 * as it takes. Whether something was left out. */
static bool show_processes(struct running_list *list, size_t n_lines, FILE *out)
{
    size_t order[SHOWN_MAX + 64], n_max = sizeof order / sizeof *order;
    size_t n_listed = !n_lines || list->n <= n_lines / LIST_PART ? list->n : n_lines / LIST_PART;
    size_t n_used = list->n > 1 ? 1 + n_listed + (n_listed < list->n) : 0,
           n_left = n_lines > n_used ? n_lines - n_used : 0;
    size_t n_shown = list->n < SHOWN_MAX ? list->n : SHOWN_MAX, n_fit = n_left / LINES_EACH ? n_left / LINES_EACH : 1;
    n_listed = n_listed < n_max || n_listed == list->n ? n_listed : n_max;
    n_shown = n_lines && n_fit < n_shown ? n_fit : n_shown;
    running_find_busiest(list, order, n_max);
    if (list->n > 1 && n_listed == list->n)
        running_print_list(list, out);
    else if (list->n > 1)
        running_print_some(list, order, n_listed, out);
    bool has_left = n_listed < list->n || n_shown < list->n;
    for (size_t i = 0; i < n_shown; i++) {
        size_t n_room = n_lines && n_left / n_shown ? n_left / n_shown : n_lines;
        bool is_apart = i > 0 || list->n > 1;
        (void)fprintf(out, is_apart ? "\n" : "");
        has_left |= running_print_one(&list->processes[order[i]], true, n_room > 1 ? n_room - is_apart : n_room, out);
    }
    return has_left;
}

static bool show_all(struct running_watch *watch, size_t n_lines, FILE *out)
{
    bool has_left = show_processes(&watch->list, n_lines, out);
    if (watch->n_ended)
        (void)fprintf(out, "\n%zu process%s ended meanwhile; what they measured is in the directory\n", watch->n_ended,
                      watch->n_ended == 1 ? " has" : "es have");
    return has_left;
}

/* Writes a line, as far as there are columns. */
static void put_cropped(const char *line, size_t n_bytes, size_t n_columns, FILE *out)
{
    size_t n = 0, at = 0;
    for (; at < n_bytes; at++) {
        n += ((unsigned char)line[at] & 0xc0) != 0x80; /* else it goes on with a character */
        if (n > n_columns)
            break;
    }
    (void)fwrite(line, 1, at, out);
}

/* What fits the screen; the last line says what there is to do. */
static void show_screen(struct running_watch *watch, FILE *out)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    char *text = NULL;
    size_t n_bytes = 0, n_rows;
    (void)ioctl(fileno(out), TIOCGWINSZ, &size);
    n_rows = size.ws_row > 2 ? size.ws_row - 1u : 1;
    FILE *made = open_memstream(&text, &n_bytes);
    if (!made)
        return;
    bool has_left = show_all(watch, n_rows, made);
    if (fclose(made) == 0) {
        (void)fprintf(out, "\033[H\033[2J");
        const char *line = text;
        for (size_t row = 0; row < n_rows && *line; row++) {
            size_t n = strcspn(line, "\n");
            put_cropped(line, n, size.ws_col ? size.ws_col : 80, out);
            (void)fputc('\n', out);
            line += n + (line[n] == '\n');
        }
        (void)fprintf(out, "%s", has_left || *line ? "q ends; --plain has all lines" : "q ends");
    }
    free(text);
}

static void show(struct running_watch *watch, const struct running_show *how, FILE *out)
{
    if (how->is_json) {
        print_all_json(&watch->list, out);
        return;
    }
    if (!how->is_plain && !how->is_once) {
        show_screen(watch, out);
        return;
    }
    (void)show_all(watch, 0, out);
    (void)fprintf(out, "\n");
}

/* A second, in which processes that come are taken up, so that the next look sees also those that end at once. */
static bool wait_second(struct running_watch *watch, bool has_keys)
{
    for (int i = 0; i < FINDS; i++) {
        if (i)
            running_watch_find(watch);
        if (!keys_wait(has_keys, FIND_MS))
            return false;
    }
    return true;
}

/* Whether what is written goes to a terminal that can be cleared. */
static bool is_screen(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
}

int running_show(const char *const *words, const struct running_show *asked, FILE *out)
{
    struct running_show show_as = *asked, *how = &show_as;
    how->is_plain |= !is_screen(out);
    struct running_watch watch = {.list.tool = VIEWER, .words = words, .keeps_ended = true};
    bool has_keys = !how->is_plain && !how->is_once && !how->is_json && isatty(STDIN_FILENO) && isatty(fileno(out));
    int status = running_watch_begin(&watch);
    bool is_first = true, runs = true;
    if (has_keys && status == 0)
        keys_begin();
    while (status == 0 && runs && !keys.is_over) {
        runs = running_watch_step(&watch, true) > 0;
        if (watch.list.n && (!is_first || !how->is_once || !runs)) /* once: what is lately takes a second */
            show(&watch, how, out);
        if (fflush(out) != 0)
            status = tool_error(VIEWER, "what is seen cannot be written");
        if (status != 0 || !runs || (how->is_once && !is_first) || !wait_second(&watch, has_keys))
            break;
        is_first = false;
    }
    keys_restore();
    if (has_keys && status == 0)
        (void)fprintf(out, "\n");
    running_fini(&watch.list);
    return status;
}
