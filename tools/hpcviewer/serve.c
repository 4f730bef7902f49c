/* SPDX-License-Identifier: BSD-3-Clause */
/* A session served to browsers: the address, the way to a browser, and who has asked for one from a terminal. */
#include "config.h"

#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scratch.h"
#include "face/page.h"
#include "face/serve/http.h"
#include "session/face.h"

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool is_in_path(const char *program)
{
    const char *path = getenv("PATH");
    bool found = false;
    for (const char *p = path ? path : ""; *p && !found; p += *p == ':') {
        struct buf name = {0};
        size_t n = strcspn(p, ":");
        buf_printf(&name, "%.*s/%s", (int)n, p, program);
        found = name.data && access(name.data, X_OK) == 0;
        buf_fini(&name);
        p += n;
    }
    return found;
}

const char *serve_lacks_browser(const struct served *served)
{
    return served->without_browser                            ? "--no-browser"
           : !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") ? "there is no display here"
           : !is_in_path("xdg-open")                          ? "xdg-open is not installed"
                                                              : NULL;
}

#if HAVE_MICROHTTPD

/* The way to a browser: what a browser is given is seen by everybody in the list of processes, so it gets the name of a
 * file that is ours alone, and the file leads to the address. */
struct door {
    char directory[256]; /* empty: there is none, or not any more */
    const char *reason;  /* why there is none */
};

/* Starts a program that outlives us and has nothing of ours. */
static void start_apart(const char *program, const char *argument)
{
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        int nowhere = open("/dev/null", O_RDWR);
        (void)sigemptyset(&none);
        (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)signal(SIGTTIN, SIG_DFL);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            (void)dup2(nowhere, fd);
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        (void)execlp(program, program, argument, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void door_close(struct door *door)
{
    if (*door->directory)
        scratch_remove(door->directory);
    *door->directory = 0;
}

/* Opens a browser, if there is one. */
static int door_open(struct door *door, const struct served *served, struct http *http, struct error *err)
{
    struct buf path = {0}, text = {0};
    door->reason = serve_lacks_browser(served);
    if (door->reason)
        return 0;
    int code = scratch_make(door->directory, sizeof door->directory, "hpcviewer-door", err);
    if (code != 0)
        return code;
    buf_printf(&path, "%s/open.html", door->directory);
    buf_printf(&text, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>hpcviewer</title>\n"
                      "<meta http-equiv=\"refresh\" content=\"0;url=");
    code = http_put_address(http, &text, err);
    buf_printf(&text, "%s%s\">\n", served->state ? "&" : "", served->state ? served->state : "");
    if (code == 0 && (path.failed || text.failed))
        code = error_memory(err);
    int fd = code == 0 ? open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (code == 0 && (fd < 0 || write(fd, text.data, text.len_bytes) != (ssize_t)text.len_bytes))
        code = error_set(err, ERR_IO, "%s: cannot be written: %s", path.data, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    if (code == 0)
        start_apart("xdg-open", path.data);
    buf_fini(&path);
    buf_fini(&text);
    return code;
}

static int put_address(struct http *http, struct error *err)
{
    struct buf text = {0};
    int code = http_put_address(http, &text, err);
    if (code == 0 && text.failed)
        code = error_memory(err);
    if (code == 0 && (printf("%s\n", text.data) < 0 || fflush(stdout) != 0))
        code = error_set(err, ERR_IO, "the address cannot be printed on standard output: %s", strerror(errno));
    buf_fini(&text);
    return code;
}

/* The address, and what to do with it. */
static int put_welcome(struct http *http, const struct door *door, bool has_terminal, struct error *err)
{
    char host[256] = "HOST";
    int code = put_address(http, err);
    (void)gethostname(host, sizeof host - 1);
    if (door->reason)
        (void)printf("Open this address in a browser (none was started: %s).\n", door->reason);
    else
        (void)printf("A browser is being started. If none comes, open this address in one.\n");
    (void)printf("For a browser on another machine, run this there first:\n    ssh -L %u:127.0.0.1:%u %s\n",
                 http_port(http), http_port(http), host);
    (void)printf("The address opens one page.%s hpcviewer ends with the last page, or by Ctrl-C.\n",
                 has_terminal ? " Enter prints another one." : "");
    (void)fflush(stdout);
    return code;
}

static bool is_in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Takes what was typed; false: there is no terminal any more. */
static bool take_line(void)
{
    char line[256];
    ssize_t n = read(STDIN_FILENO, line, sizeof line);
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Serves until the last page is closed or a signal comes; who has put hpcviewer into the background types for the shell
 * meanwhile. */
static int serve_on(struct served *served, struct http *http, struct door *door, bool has_terminal, struct error *err)
{
    int code = 0;
    while (code == 0 && !http_has_ended(http)) {
        bool reads = has_terminal && is_in_foreground();
        struct pollfd fds[] = {{.fd = http_fd(http), .events = POLLIN},
                               {.fd = served->stop_fd, .events = POLLIN},
                               {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
        int wait_ms = http_wait_ms(http);
        if (has_terminal && !reads && (wait_ms < 0 || wait_ms > 1000))
            wait_ms = 1000;
        int live_ms = served->live ? live_view_wait_ms(served->live) : -1;
        if (live_ms >= 0 && (wait_ms < 0 || live_ms < wait_ms))
            wait_ms = live_ms;
        if (poll(fds, sizeof fds / sizeof *fds, wait_ms) < 0 && errno != EINTR)
            return error_set(err, ERR_IO, "poll: %s", strerror(errno));
        if (fds[1].revents)
            return 0;
        if (fds[2].revents) {
            has_terminal = take_line();
            code = has_terminal ? put_address(http, err) : 0;
        }
        http_step(http);
        if (served->live)
            live_view_step(served->live);
        if (http_n_opened(http) > 0)
            door_close(door);
    }
    return code;
}

static int ask(void *context, const char *question, struct buf *out, struct error *err)
{
    struct served *served = context;
    if (live_answer_opening(served, question, out))
        return 0;
    if (!served->session)
        return error_set(err, ERR_NOT_FOUND, "it is still being opened");
    if (live_view_answer(served->live, question, out))
        return 0;
    return session_ask_packed(served->session, question, out, err);
}

/* What is served to browsers alone. */
static struct {
    struct http *http; /* NULL: nothing is */
    struct buf page;
    struct door door;
} alone;

void serve_end_opening(void)
{
    door_close(&alone.door);
    http_close(alone.http);
    alone.http = NULL;
    buf_fini(&alone.page);
}

static int begin_alone(struct served *served, struct error *err)
{
    page_served(&alone.page);
    const struct http_home home = {.page = alone.page.data, .ask = ask, .context = served, .port = served->port};
    int code = alone.page.failed ? error_memory(err) : http_open(&home, &alone.http, err);
    code = code ? code : door_open(&alone.door, served, alone.http, err);
    return code ? code : put_welcome(alone.http, &alone.door, isatty(STDIN_FILENO), err);
}

int serve_opening(struct served *served, struct error *err)
{
    int code = alone.http ? 0 : begin_alone(served, err);
    if (code == 0)
        http_step(alone.http);
    return code;
}

int serve(struct served *served, struct error *err)
{
    int code = alone.http ? 0 : begin_alone(served, err);
    code = code ? code : serve_on(served, alone.http, &alone.door, isatty(STDIN_FILENO), err);
    serve_end_opening();
    return code;
}

/* --- served beside the terminal --- */

static struct {
    struct http *http; /* NULL: nobody has asked for a browser */
    struct buf page;
    struct door door;
} beside;

static int begin_beside(struct served *served, struct error *err)
{
    page_served(&beside.page);
    const struct http_home home = {.page = beside.page.data, .ask = ask, .context = served, .port = served->port};
    int code = beside.page.failed ? error_memory(err) : http_open(&home, &beside.http, err);
    if (code != 0)
        buf_fini(&beside.page); /* asked once more, it begins anew */
    return code;
}

static int browse(void *context, const char *state, struct buf *says, struct error *err)
{
    struct served *served = context;
    char host[256] = "HOST";
    int code = beside.http ? 0 : begin_beside(served, err);
    served->state = state;
    if (code == 0 && !serve_lacks_browser(served)) {
        door_close(&beside.door);
        code = door_open(&beside.door, served, beside.http, err);
        buf_printf(says, "A browser is being started. If none comes, open this address in one:\n");
    } else if (code == 0) {
        buf_printf(says, "Open this address in a browser (none was started: %s):\n", serve_lacks_browser(served));
    }
    served->state = NULL;
    code = code ? code : http_put_address(beside.http, says, err);
    (void)gethostname(host, sizeof host - 1);
    if (code == 0)
        buf_printf(says, "&%s\nFor a browser on another machine, run this there first:\nssh -L %u:127.0.0.1:%u %s",
                   state, http_port(beside.http), http_port(beside.http), host);
    return code == 0 && says->failed ? error_memory(err) : code;
}

static bool poll_beside(void *context, struct pollfd *fd, int *wait_ms)
{
    (void)context;
    if (beside.http) {
        *fd = (struct pollfd){.fd = http_fd(beside.http), .events = POLLIN};
        *wait_ms = http_wait_ms(beside.http);
    }
    return beside.http;
}

static void step_beside(void *context)
{
    (void)context;
    if (beside.http)
        http_step(beside.http);
}

void serve_beside(struct served *served, struct term_host *host)
{
    host->context = served;
    host->browse = browse;
    host->poll = poll_beside;
    host->step = step_beside;
}

void serve_end_beside(void)
{
    door_close(&beside.door);
    http_close(beside.http);
    buf_fini(&beside.page);
}

#else

int serve_opening(struct served *served, struct error *err)
{
    (void)served;
    (void)err;
    return 0;
}

void serve_end_opening(void)
{
}

void serve_beside(struct served *served, struct term_host *host)
{
    (void)served;
    (void)host;
}

void serve_end_beside(void)
{
}

int serve(struct served *served, struct error *err)
{
    (void)served;
    return error_set(err, ERR_UNSUPPORTED,
                     "pages cannot be served, because libmicrohttpd-dev was missing when hpcviewer was built; "
                     "-o FILE.html writes a page");
}

#endif
