/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcviewer: what a run was about, as a page for a browser: served while somebody looks, or as one file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "base/options.h"
#include "base/scratch.h"
#include "face/page.h"
#include "fmt/file.h"
#include "fmt/locus-db.h"
#include "measurement/names.h"
#include "running/running.h"
#include "serve.h"
#include "session/face.h"

enum {
    OPTION_OUTPUT = 1,
    OPTION_PORT,
    OPTION_NO_BROWSER,
    OPTION_TUI,
    OPTION_PLAIN,
    OPTION_KEYS,
    OPTION_COUPLEBREAK,
    OPTION_TOPOLOGY,
    OPTION_VIEW,
    OPTION_OFFSET,
    OPTION_BUFFER,
    OPTION_SESSION,
    OPTION_SAVE_SESSION,
    OPTION_LIVE,
    OPTION_ONCE,
    OPTION_JSON
};

static const struct option_row rows[] = {
    {OPTION_OUTPUT, "-o --output", "FILE",
     "Write the page with all its data into one file, which needs neither hpcviewer nor a network; - for standard "
     "output. A file of this name is replaced when the new one is complete."},
    {OPTION_PORT, "--port", "N", "Serve on port N of this machine (default: one that is free)."},
    {OPTION_NO_BROWSER, "--no-browser", NULL, "Only print the address. Without a display that is so anyway."},
    {OPTION_TUI, "--tui", NULL,
     "Show it on the terminal. That is so anyway where standard input and output are a terminal and no browser can be "
     "started, unless --port or --no-browser ask for one elsewhere. A second database is compared with: hpcviewer "
     "--tui "
     "BEFORE AFTER."},
    {OPTION_PLAIN, "--plain", NULL,
     "The same as lines of text without pictures and escape sequences, for screen readers and for terminals that "
     "cannot "
     "be drawn on: keys are typed on a line, and Enter prints what they show."},
    {OPTION_KEYS, "--keys", "KEYS",
     "With --tui and --plain, press these keys first: characters, and <Enter>, <Down>, <Up>, <Left>, <Right>, <Tab>, "
     "<Esc>, <Back>, <Forward>, <Home>, <End>, <PageDown>, <PageUp>."},
    {OPTION_COUPLEBREAK, "--couplebreak", NULL,
     "Of the recording that follows: a switch and a waking are events of the task that they are about, too."},
    {OPTION_TOPOLOGY, "--topology", "FILE",
     "Of the recording that follows: the topology of its machine, as lstopo FILE.xml writes it."},
    {OPTION_VIEW, "--view", "numatree|default",
     "Of the recording that follows: whether a tree of its topology stands beside its CPUs."},
    {OPTION_OFFSET, "--offset", "SECONDS",
     "Of the recording that follows: add this to its times. It is needed where nothing says how its clock lies to that "
     "of the first one."},
    {OPTION_BUFFER, "--buffer", "NAME", "Of the recording that follows: which of its buffers is shown."},
    {OPTION_SESSION, "--session", "FILE",
     "Show the recordings of a session, which hpcquery sched and hpcviewer write with --save-session, and KernelShark "
     "saves: with their options and filters, its window, markers and rows."},
    {OPTION_SAVE_SESSION, "--save-session", "FILE",
     "Write which recordings these are and what was said of them into a session."},
    {OPTION_LIVE, "--live", NULL,
     "Show programs that are being measured while they run, each second anew: INPUT is a process id, with all that it "
     "has started, a measurement directory or a job of Slurm, or several of these; without one all of yours that run "
     "here. They are shown in a browser where one can be started, or with --no-browser or --port; with --tui in the "
     "same views on the terminal; else as a table. What is lately is of the last 10 seconds."},
    {OPTION_ONCE, "--once", NULL, "With --live: print one block, of a second, and end."},
    {OPTION_JSON, "--json", NULL, "With --live: print JSON, a text each second."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_choice choices[] = {
    {OPTION_VIEW, 0, CHOICE_WORDS, "numatree default"},
    {0, 1, CHOICE_DIRECTORIES, DATABASE_FILE},
    {0, 0, CHOICE_WORDS, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcviewer",
    .summary = "look at a measurement in a browser, or on the terminal",
    .synopsis = "[--port N] [--no-browser] [RECORDING-OPTIONS] INPUT...\n"
                "--tui|--plain [--keys KEYS] INPUT [AFTER]\n"
                "[--port N] [--no-browser] --session FILE\n"
                "-o FILE.html [RECORDING-OPTIONS] INPUT...\n"
                "--live [--plain|--json] [--once] [PID|DIR|JOBID]...\n"
                "--live --tui [--plain] [--keys KEYS] [PID|DIR|JOBID]...\n"
                "--live [--port N] [--no-browser] [PID|DIR|JOBID]...",
    .description =
        "Shows what the time of a run went to, its variables, code, threads and memory, in a browser. INPUT is a "
        "database, or a measurement directory or a file of perf, of which hpcprof makes one that lasts as long as "
        "hpcviewer does. What hpcquery reads of other tools (databases of HPCToolkit, files of callgrind and Caliper) "
        "is shown without variables. Recordings of the scheduler (files of trace-cmd and of perf, and measurements "
        "with "
        "logs of samples) are shown as a time line, several of them on one axis; --couplebreak, --topology, --view, "
        "--offset and --buffer are about the one that follows them. Of a recording of 200000 events or more the time "
        "line is kept in RECORDING.locus-time, or, where that cannot be written, in ~/.cache/locus, so that it is "
        "there "
        "at once the next time. Of ~/.cache/locus what was not used for 30 days is removed, and the oldest beyond 2 "
        "GiB.\n\n"
        "hpcviewer prints an address, and opens it where there is a display. On another machine, such as a login node, "
        "the ssh command that it prints makes the address work in a browser at home. Only this machine can connect "
        "(127.0.0.1), and only who has the address is answered: it opens one page and is worth nothing afterwards. "
        "Enter prints another one. hpcviewer ends when the last page is closed, or by Ctrl-C.\n\n"
        "With --tui the same is shown on the terminal, of 80 x 24 or more: a list, and beside or below it what is "
        "known "
        "of the chosen row. 1 to 9 open the views, arrows and Enter move and open, / searches, f filters, s sorts, y "
        "copies the hpcquery line that prints what is shown (lines that were copied are printed at the end), o opens "
        "the same in a browser, ? lists all keys, q ends it.\n\n"
        "With -o the page is written into a file instead, to be kept or sent to somebody.\n\n"
        "With --live programs are looked at while hpcrun measures them: what their data cost since the start and in "
        "the last ten seconds, by variable, function, thread and cause, where they wait, and which memory is in use. "
        "It only reads what the program's companion process hands out, and the program notices nothing. In the views, "
        "with "
        "--tui or in a browser, the numbers become newer each second or two, as far as that takes a tenth of one "
        "processor; what is chosen and open stays. On the terminal p holds the screen, P pauses the sampling and goes "
        "on with it, K begins a phase and W writes the measurement as it is now. When the programs have ended their "
        "last numbers stay. q ends the table on a terminal, too.\n\n"
        "Of a measurement directory the views also have the programs that have ended, and those of other nodes, as "
        "they were when they last saved what they had (10 seconds ago or so): hpcviewer --live --tui DIR shows all "
        "nodes of a job together where they write into one directory, or into several that are named.",
    .rows = rows,
    .examples = "  hpcviewer hpctoolkit-app-database\n"
                "The page, served until it is closed.\n\n"
                "  hpcviewer -o app.html hpctoolkit-app-measurements\n"
                "The page as a file, of a measurement that hpcprof has not seen.\n\n"
                "  hpcviewer --tui hpctoolkit-app-database\n"
                "The same on the terminal of a login node.\n\n"
                "  hpcviewer --tui before-database after-database\n"
                "What has become more or less (view 8).\n\n"
                "  srun --jobid=4711 --overlap hpcviewer --live\n"
                "What runs in a job now, on a node of it.",
    .environment = "TMPDIR  Where the database of a measurement is made; /tmp without it.\n"
                   "DISPLAY, WAYLAND_DISPLAY  Without both no browser is opened.\n"
                   "SSH_CONNECTION  If it is set and DISPLAY is not, the terminal is used.\n"
                   "NO_COLOR  If it is not empty, the terminal shows no colors.\n"
                   "TERM  Of a terminal that is dumb, lines are printed as with --plain.\n"
                   "COLUMNS  How wide the lines of --plain are; 79 without it.",
    .exit_status =
        "0 when the page was written, or what was shown has ended: by q, by Ctrl-C or another signal that "
        "means stop, since the last page was closed or all programs had ended; 1 when that was not possible; "
        "2 for a wrong command line. A signal ends what --live prints without a terminal (--plain, --json) "
        "as it ends other programs.",
    .see_also = "hpcrun(1), hpcprof(1), hpcquery(1)",
    .choices = choices,
};

/* What is being looked at. */
struct viewer {
    const char *output; /* NULL: served */
    struct served served;
    bool on_terminal, is_plain;
    const char *path;     /* of the database, for command lines */
    const char *measured; /* what it is made of, where that is given instead; borrowed */
    const char *before_path;
    const char *keys;       /* that are pressed first; NULL: none */
    struct session *before; /* what the session is compared with; NULL: nothing */
    char scratch[256];      /* directory of the database that was made for this; empty: none */
    const char *from, *to;  /* sessions: that is shown, that is written; NULL: none */
    struct recordings inputs;
    struct session *session;
    bool is_live;
    const char *const *words; /* --live: what is followed, NULL at the end; none: all */
};

/* --- the end --- */

#define GRACE_S 1 /* from a signal to the end, for what is being done; a question that takes longer is given up */

static struct {
    sigset_t signals;
    int event_fd; /* readable when one has come */
    atomic_int signal;
    atomic_int child; /* hpcprof at work; 0: none */
    atomic_bool is_serving, is_said, is_cut;
} life = {.event_fd = -1};

/* What the shell is told when a signal has ended it, or a page, which is as Ctrl-C. */
static int status_of(int number)
{
    return 128 + (number == SIGUSR2 ? SIGINT : number);
}

/* How it ended, once. */
static void say_end(const char *words)
{
    if (!atomic_exchange(&life.is_said, true))
        (void)dprintf(STDOUT_FILENO, "%s\n", words);
}

static const char by_signal[] = "Ended.";

/* Reading a mapped file whose end is gone, or whose disk. This thread can do no more; the one that waits for signals
 * ends the program. */
static void on_bus_error(int number)
{
    static const char words[] = "hpcviewer: a file that is shown was cut short, or cannot be read any more\n";
    (void)number;
    atomic_store(&life.is_cut, true);
    terminal_restore_sig();
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    (void)kill(getpid(), SIGUSR2);
    for (;;)
        (void)pause();
}

/* Waits for a signal that means: stop. The rest of the program ends at its next step; this thread, when that takes
 * long. */
static void *watch(void *unused)
{
    const struct timespec grace = {.tv_sec = GRACE_S};
    const uint64_t one = 1;
    int number;
    (void)unused;
    while (sigwait(&life.signals, &number) != 0)
        ;
    bool is_cut = atomic_load(&life.is_cut);
    atomic_store(&life.signal, number);
    int child = atomic_load(&life.child);
    if (child > 0)
        (void)kill(child, SIGTERM);
    (void)!write(life.event_fd, &one, sizeof one);
    if (!is_cut)
        (void)sigtimedwait(&life.signals, NULL, &grace);
    scratch_remove_noted();
    terminal_restore_sig();
    if (is_cut)
        _exit(1);
    bool is_serving = atomic_load(&life.is_serving);
    if (is_serving)
        say_end(by_signal);
    _exit(is_serving ? 0 : status_of(number));
}

/* Keeps what is opened from the numbers of standard streams that are closed: what is printed would go there. */
static void hold_closed(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDONLY); /* the lowest free number; what is written there fails */
}

/* From here on SIGINT, SIGTERM and SIGHUP mean: stop, as far as the caller has not said that they are nothing. */
static int watch_begin(struct error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    pthread_t watcher;
    (void)sigemptyset(&life.signals);
    (void)sigaddset(&life.signals, SIGUSR2); /* our own */
    (void)signal(SIGBUS, on_bus_error);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler != SIG_IGN)
            (void)sigaddset(&life.signals, numbers[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTTIN, SIG_IGN); /* somebody else reads the terminal: reading fails instead */
    life.event_fd = eventfd(0, EFD_CLOEXEC);
    int code = pthread_sigmask(SIG_BLOCK, &life.signals, NULL);
    code = code == 0 ? pthread_create(&watcher, NULL, watch, NULL) : code;
    if (code != 0 || life.event_fd < 0)
        return error_set(err, ERR_IO, "no thread can be started: %s", strerror(code ? code : errno));
    (void)pthread_detach(watcher);
    return 0;
}

/* --- what is given --- */

enum kind { KIND_OTHER, KIND_DATABASE, KIND_MEASUREMENT, KIND_SCHED };

static bool has_files(const char *directory, const char *suffix)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    bool has_any = names_list(directory, suffix, &files, &n, &ignored) == 0 && n > 0;
    free(files);
    return has_any;
}

static enum kind kind_of_directory(const char *path)
{
    struct buf name = {0};
    buf_printf(&name, "%s/" DATABASE_FILE, path);
    bool is_database = name.data && (access(name.data, F_OK) == 0 || errno == EACCES); /* opening it gives the reason */
    buf_fini(&name);
    return is_database                 ? KIND_DATABASE
           : has_files(path, "hpcrun") ? KIND_MEASUREMENT
           : has_files(path, "sched")  ? KIND_SCHED
                                       : KIND_OTHER;
}

#define HEAD_BYTES 16

/* The first bytes of a regular file, of anything else none. */
static size_t read_head(const char *path, char head[HEAD_BYTES])
{
    memset(head, 0, HEAD_BYTES);
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    ssize_t n = fd >= 0 ? read(fd, head, HEAD_BYTES) : 0;
    if (fd >= 0)
        (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

static bool is_of_perf(const char head[HEAD_BYTES])
{
    return memcmp(head, "PERFILE2", 8) == 0 || memcmp(head, "2ELIFREP", 8) == 0;
}

/* What a path leads to, by its content. Of what cannot be read, opening it as a database gives the reason. */
static enum kind kind_of(const char *path)
{
    static const char trace_dat[] = {0x17, 0x08, 'D', 't', 'r', 'a', 'c', 'i', 'n', 'g'};
    char head[HEAD_BYTES];
    struct stat info;
    if (stat(path, &info) != 0)
        return KIND_DATABASE;
    if (S_ISDIR(info.st_mode))
        return kind_of_directory(path);
    size_t n = read_head(path, head);
    return n == 0 || locus_db_is(head, n)                   ? KIND_DATABASE
           : is_of_perf(head)                               ? KIND_MEASUREMENT
           : memcmp(head, trace_dat, sizeof trace_dat) == 0 ? KIND_SCHED
                                                            : KIND_OTHER;
}

/* --- a database of a measurement --- */

static _Noreturn void run_hpcprof(const char *database, const char *input)
{
    static char name[] = "hpcprof", option[] = "-o", end[] = "--";
    char path[4096], *const arguments[] = {name, option, strdup(database), end, strdup(input), NULL};
    tool_directory(path, sizeof path - sizeof name);
    (void)strcat(path, name);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTTIN, SIG_DFL);
    (void)pthread_sigmask(SIG_UNBLOCK, &life.signals, NULL);
    (void)execv(path, arguments);
    (void)tool_error("hpcviewer", "%s: cannot be run: %s", path, strerror(errno));
    _exit(127);
}

/* Ends the process by the signal that was taken, if one was. */
static void die_if_stopped(struct viewer *viewer)
{
    int number = atomic_load(&life.signal);
    if (number == 0)
        return;
    if (*viewer->scratch)
        scratch_remove(viewer->scratch);
    _exit(status_of(number));
}

/* Runs hpcprof, whose messages and progress are seen; *database, malloc'ed, is what it made. */
static int make_database(struct viewer *viewer, const char *input, char **database, struct error *err)
{
    int status = 0;
    *database = NULL;
    int code = scratch_make(viewer->scratch, sizeof viewer->scratch, "hpcviewer", err);
    if (code != 0)
        return code;
    if (asprintf(database, "%s/database", viewer->scratch) < 0) {
        *database = NULL;
        return error_memory(err);
    }
    (void)fprintf(stderr,
                  "hpcviewer: %s: no database yet; hpcprof makes one for as long as hpcviewer runs, "
                  "and hpcprof %s one that stays\n",
                  input, input);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_hpcprof(*database, input);
    if (child < 0)
        return error_set(err, ERR_IO, "hpcprof cannot be started: %s", strerror(errno));
    atomic_store(&life.child, child);
    if (atomic_load(&life.signal))
        (void)kill(child, SIGTERM);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    atomic_store(&life.child, 0);
    die_if_stopped(viewer);
    if (access(*database, F_OK) == 0) /* what hpcprof left out it has said */
        return 0;
    return error_set(err, ERR_FORMAT, "%s: hpcprof could not make a database of it", input);
}

/* The measurement beside a database that hpcprof named after it, malloc'ed; NULL: there is none. */
static char *measurement_of(const char *database)
{
    static const char suffix[] = "-database";
    struct buf name = {0};
    size_t len = strlen(database);
    while (len > 1 && database[len - 1] == '/')
        len--;
    if (len < sizeof suffix || memcmp(database + len - (sizeof suffix - 1), suffix, sizeof suffix - 1) != 0)
        return NULL;
    buf_printf(&name, "%.*s-measurements", (int)(len - (sizeof suffix - 1)), database);
    if (name.data && !name.failed && (has_files(name.data, "events") || has_files(name.data, "sched")))
        return name.data;
    buf_fini(&name);
    return NULL;
}

/* Whether a path has recordings: it is a directory with logs, or the file of perf that was given. */
static bool has_recordings(const char *path, enum kind kind)
{
    struct stat info;
    bool is_directory = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return is_directory ? has_files(path, "events") || has_files(path, "sched") : kind == KIND_MEASUREMENT;
}

/* Adds the time line of what a database was made of, if it has one, else the one that hpcprof put into it. Without it
 * all else is there, and the page says why. */
static void add_time_line(struct viewer *viewer, enum kind kind)
{
    struct recording *input = &viewer->inputs.streams[0];
    char *found = kind == KIND_DATABASE ? measurement_of(input->file) : NULL;
    struct error said = {0};
    if (found) {
        free(input->file);
        input->file = found;
    }
    if (has_recordings(input->file, kind))
        (void)session_add_recordings(viewer->session, &viewer->inputs, &said);
}

/* Several recordings on one axis of time. */
static int open_inputs(struct viewer *viewer, struct error *err)
{
    for (size_t i = 0; i < viewer->inputs.n_streams; i++) {
        const char *file = viewer->inputs.streams[i].file;
        enum kind kind = kind_of(file);
        if (kind != KIND_SCHED && kind != KIND_MEASUREMENT)
            return error_set(err, ERR_USAGE, "%s: is no recording; several inputs are recordings on one time line",
                             file);
    }
    int code = session_open_recordings(&viewer->inputs, &viewer->session, err);
    die_if_stopped(viewer);
    return code;
}

/* Opens a file of perf that has events of the scheduler alone, of which a database would say nothing; else the session
 * stays NULL, or becomes *samples, which has its recording. */
static void open_of_perf(struct viewer *viewer, struct session **samples)
{
    const char *file = viewer->inputs.streams[0].file;
    struct error ignored;
    struct stat info;
    bool is_file = stat(file, &info) == 0 && S_ISREG(info.st_mode);
    *samples = NULL;
    if (!is_file || session_open_recordings(&viewer->inputs, samples, &ignored) != 0 || session_has_samples(*samples))
        return;
    viewer->session = *samples;
    *samples = NULL;
}

static int open_input(struct viewer *viewer, struct error *err)
{
    const char *input = viewer->inputs.streams[0].file;
    enum kind kind = kind_of(input);
    struct session *samples = NULL;
    char *made = NULL;
    int code = 0;
    if (kind == KIND_MEASUREMENT)
        open_of_perf(viewer, &samples);
    if (viewer->session)
        return 0;
    if (kind == KIND_MEASUREMENT)
        code = make_database(viewer, input, &made, err);
    const char *path = made ? made : input;
    if (code == 0 && kind == KIND_SCHED)
        code = session_open_recordings(&viewer->inputs, &viewer->session, err);
    else if (code == 0 && kind == KIND_OTHER)
        code = session_open_any(path, &viewer->session, err);
    else if (code == 0)
        code = session_open(&path, 1, &viewer->session, err);
    if (code == 0 && samples)
        session_move_recordings(samples, viewer->session);
    else if (code == 0 && (kind == KIND_MEASUREMENT || kind == KIND_DATABASE))
        add_time_line(viewer, kind);
    session_close(samples);
    free(made);
    die_if_stopped(viewer);
    return code;
}

/* How far a large recording has been read: a line on the terminal, and in pages that are served meanwhile. */
struct progress {
    struct viewer *viewer;
    struct timespec begin, last; /* of opening; when it was told */
    bool is_terminal, is_page;   /* who is told */
    bool is_shown, is_served;    /* the line; pages */
};

static void put_progress(const char *path, const char *doing, uint64_t done, uint64_t all)
{
    struct buf name = {0};
    const char *slash = strrchr(path, '/');
    printable_put(&name, slash ? slash + 1 : path);
    if (name.data && !name.failed)
        (void)fprintf(stderr, "\r\033[K%.40s: %s, %d %% (Ctrl-C ends it)", name.data, doing,
                      (int)(100 * (double)done / (double)all));
    buf_fini(&name);
}

/* Serves what there is to be said of opening. Where that fails, it fails again when all is open. */
static void serve_progress(struct progress *progress, const char *path, const char *doing, uint64_t done, uint64_t all)
{
    struct served *served = &progress->viewer->served;
    struct error ignored = {0};
    served->path = path;
    served->doing = doing;
    served->done = done;
    served->all = all;
    if (progress->is_shown && !progress->is_served) /* the address comes */
        (void)fprintf(stderr, "\r\033[K");
    progress->is_served = true;
    if (serve_opening(served, &ignored) != 0) {
        serve_end_opening();
        progress->is_page = false;
    }
    served->path = NULL; /* it may be gone the next time */
    if (!served->is_left)
        return;
    progress->is_page = false; /* what it has answered it has answered */
    (void)fprintf(stderr, "%shpcviewer: %s: a page has ended the reading\n", progress->is_shown ? "\r\033[K" : "",
                  path);
    (void)kill(getpid(), SIGUSR2);
}

static int64_t ms_since(const struct timespec *from, const struct timespec *to)
{
    return (to->tv_sec - from->tv_sec) * 1000 + (to->tv_nsec - from->tv_nsec) / 1000000;
}

static void show_progress(void *context, const char *path, const char *doing, uint64_t done, uint64_t all)
{
    enum { EVERY_MS = 100, PAGE_FROM_MS = 500 };
    struct progress *progress = context;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (ms_since(&progress->last, &now) < EVERY_MS || !all)
        return;
    progress->last = now;
    if (progress->is_page && ms_since(&progress->begin, &now) >= PAGE_FROM_MS)
        serve_progress(progress, path, doing, done, all);
    if (progress->is_terminal) {
        progress->is_shown = true;
        put_progress(path, doing, done, all);
    }
}

/* Opens what is given. */
static int open_given(struct viewer *viewer, struct error *err)
{
    struct progress progress = {
        .viewer = viewer, .is_terminal = isatty(STDERR_FILENO), .is_page = !viewer->output && !viewer->on_terminal};
    (void)clock_gettime(CLOCK_MONOTONIC, &progress.last);
    progress.begin = progress.last;
    session_on_progress(show_progress, &progress);
    int code = viewer->inputs.n_streams == 1 ? open_input(viewer, err) : open_inputs(viewer, err);
    session_on_progress(NULL, NULL);
    if (progress.is_shown)
        (void)fprintf(stderr, "\r\033[K");
    return code;
}

/* Opens what is given, and says which topologies cannot be taken. */
static int open_all(struct viewer *viewer, struct error *err)
{
    int code = viewer->to ? recordings_write(viewer->to, &viewer->inputs, err) : 0;
    if (code == 0 && viewer->before_path)
        code = session_open(&viewer->before_path, 1, &viewer->before, err);
    if (code == 0)
        code = open_given(viewer, err);
    for (size_t i = 0; code == 0 && i < viewer->inputs.n_streams; i++)
        if (session_refusal(viewer->session, i))
            (void)tool_error("hpcviewer", "%s", session_refusal(viewer->session, i));
    return code;
}

/* --- one file --- */

/* Whether a file is what pages are made of, which a slip of the keyboard must not replace. */
static bool is_measured(const char *path)
{
    char head[HEAD_BYTES];
    size_t n = read_head(path, head);
    return n > 0 && (locus_db_is(head, n) || is_of_perf(head) || memcmp(head, "HPC", 3) == 0);
}

/* A file is complete or, on failure, as it was; devices, pipes and links are written to as they are. */
static int put_file(const char *path, const struct buf *out, struct error *err)
{
    struct stat info;
    if (strcmp(path, "-") == 0)
        return fwrite(out->data, 1, out->len_bytes, stdout) == out->len_bytes && fflush(stdout) == 0
                   ? 0
                   : error_set(err, ERR_IO, "the page cannot be written: %s", strerror(errno));
    if (is_measured(path))
        return error_set(err, ERR_USAGE, "%s: holds measured data, and is not replaced; give -o another name", path);
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode))
        return file_replace(path, out->data, out->len_bytes, err);
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(out->data, 1, out->len_bytes, file) == out->len_bytes;
    if (file && fclose(file) != 0)
        ok = false;
    return ok ? 0 : error_set(err, ERR_IO, "%s: cannot write: %s", path, strerror(errno));
}

static int record(struct viewer *viewer, struct error *err)
{
    struct buf out = {0};
    int code = page_record(viewer->session, NULL, &out, err);
    if (code == 0)
        code = out.failed ? error_memory(err) : put_file(viewer->output, &out, err);
    buf_fini(&out);
    return code;
}

/* --- on the terminal --- */

/* Whether a terminal is all that there is to show something on. */
static bool is_terminal_alone(const struct viewer *viewer)
{
    bool is_said = viewer->output || viewer->served.port || viewer->served.without_browser;
    return !is_said && serve_lacks_browser(&viewer->served) && !term_lacks();
}

/* Whether the terminal gets lines rather than a screen. */
static bool wants_lines(const struct viewer *viewer)
{
    const char *term = getenv("TERM");
    return viewer->is_plain || !term || !*term || strcmp(term, "dumb") == 0;
}

static int show(struct viewer *viewer, struct error *err)
{
    const struct term_choice choice = {.is_plain = wants_lines(viewer),
                                       .keys = viewer->keys,
                                       .other = viewer->before,
                                       .paths = {viewer->path       ? viewer->path
                                                 : viewer->measured ? "measured-database"
                                                                    : "DB",
                                                 viewer->before_path},
                                       .measured = viewer->measured};
    struct term_host host = {.stop_fd = life.event_fd};
    serve_beside(&viewer->served, &host);
    int code = term_run(viewer->session, &choice, &host, err);
    serve_end_beside();
    return code;
}

/* Serves until it ends, and says how that was. */
static int serve_alone(struct viewer *viewer, struct error *err)
{
    atomic_store(&life.is_serving, true);
    int code = serve(&viewer->served, err);
    if (code == 0)
        say_end(atomic_load(&life.signal) ? by_signal : "The last page was closed.");
    return code;
}

/* --live: what runs, in the views of a database. */
static int follow(struct viewer *viewer, struct error *err)
{
    const struct term_choice choice = {
        .is_plain = wants_lines(viewer), .keys = viewer->keys, .paths = {"live-database", NULL}};
    struct live_view *live;
    int code = live_view_begin(&live, viewer->words, &viewer->served, err);
    if (code == 0)
        code = viewer->on_terminal ? live_view_show(live, &choice, err) : serve_alone(viewer, err);
    session_close(viewer->served.session);
    live_view_end(live);
    return code;
}

/* --- the program --- */

static int run(struct viewer *viewer)
{
    struct error err = {0};
    hold_closed();
    scratch_sweep("hpcviewer");
    scratch_sweep("hpcviewer-door");
    int code = watch_begin(&err);
    if (code == 0 && !viewer->is_live)
        code = open_all(viewer, &err);
    viewer->served.session = viewer->session;
    viewer->served.stop_fd = life.event_fd;
    if (code == 0)
        code = viewer->is_live       ? follow(viewer, &err)
               : viewer->output      ? record(viewer, &err)
               : viewer->on_terminal ? show(viewer, &err)
                                     : serve_alone(viewer, &err);
    serve_end_opening();
    session_close(viewer->session);
    session_close(viewer->before);
    recordings_fini(&viewer->inputs);
    if (*viewer->scratch)
        scratch_remove(viewer->scratch);
    if (code && !err.text[0]) /* it was said already */
        return 1;
    return code == 0 ? 0 : tool_error("hpcviewer", "%s", err.text);
}

static int usage(const char *sentence)
{
    return tool_usage("hpcviewer", "%s", sentence);
}

/* The number of a port; 0: it is none. */
static unsigned port_of(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && port <= 65535 ? (unsigned)port : 0;
}

/* An option, and how many inputs stood before it. */
struct said {
    int id;
    const char *value;
    int place;
};

struct command {
    struct viewer viewer;
    struct running_show show;
    bool is_live, is_screen; /* --live; --tui */
    struct said *said;       /* [n_said] of recordings */
    size_t n_said, cap_said;
};

/* --offset */
static bool take_seconds(const char *text, int64_t *ns)
{
    int64_t first_ns, last_ns;
    return time_take(text + (*text == '+'), TIME_WHOLE, ns, &first_ns, &last_ns);
}

static int take_said(const struct said *said, struct recording *recording)
{
    bool ok = true;
    if (said->id == OPTION_COUPLEBREAK)
        recording->has_couplebreak = true;
    if (said->id == OPTION_VIEW) {
        ok = strcmp(said->value, "numatree") == 0 || strcmp(said->value, "default") == 0;
        recording->view = *said->value == 'd' ? TOPOLOGY_VIEW_DEFAULT : TOPOLOGY_VIEW_NUMATREE;
    }
    if (!ok)
        return usage("--view takes numatree or default");
    if (said->id == OPTION_OFFSET) {
        recording->has_offset = true;
        ok = take_seconds(said->value, &recording->offset_ns);
    }
    if (!ok)
        return usage("--offset takes seconds, such as -0.25");
    char **text = said->id == OPTION_TOPOLOGY ? &recording->topology
                  : said->id == OPTION_BUFFER ? &recording->buffer
                                              : NULL;
    if (text) {
        free(*text);
        *text = strdup(said->value);
    }
    return text && !*text ? tool_error("hpcviewer", "out of memory") : 0;
}

/* Reads the session that is to be shown, and says what of it is not there. */
static int take_session(struct viewer *viewer)
{
    struct error err = {0};
    if (recordings_read(viewer->from, &viewer->inputs, &err) != 0)
        return tool_error("hpcviewer", "%s", err.text);
    if (!viewer->inputs.n_streams)
        return tool_error("hpcviewer", "%s: the session has no streams", viewer->from);
    for (const char *note = viewer->inputs.notes; note && *note; note += strcspn(note, "\n"), note += *note == '\n')
        (void)tool_error("hpcviewer", "%s: %.*s", viewer->from, (int)strcspn(note, "\n"), note);
    return 0;
}

/* Makes the inputs of the operands and of what was said of them. */
static int take_inputs(struct command *command, char **inputs, int n)
{
    struct viewer *viewer = &command->viewer;
    struct error err = {0};
    int status = 0;
    if (viewer->from && (n > 0 || command->n_said))
        return usage("--session goes without inputs and their options: it has them");
    if (viewer->from)
        return take_session(viewer);
    if (n < 1)
        return usage("no input is given");
    if (viewer->on_terminal && n == 2 && kind_of(inputs[0]) == KIND_DATABASE && kind_of(inputs[1]) == KIND_DATABASE) {
        viewer->before_path = *inputs++;
        n--;
    }
    bool is_made = n == 1 && kind_of(inputs[0]) == KIND_MEASUREMENT;
    viewer->path = n == 1 && !is_made ? inputs[0] : NULL;
    viewer->measured = is_made ? inputs[0] : NULL;
    for (int i = 0; i < n && !status; i++)
        if (recordings_add(&viewer->inputs, inputs[i], false, TOPOLOGY_VIEW_NUMATREE, NULL, &err) != 0)
            status = tool_error("hpcviewer", "%s", err.text);
    for (size_t i = 0; i < command->n_said && !status; i++) {
        const struct said *said = &command->said[i];
        status = said->place < n ? take_said(said, &viewer->inputs.streams[said->place])
                                 : usage("options of a recording precede it");
    }
    return status;
}

/* Takes one option; an exit status. */
static int take_option(struct command *command, const struct option_scan *scan, int id)
{
    struct viewer *viewer = &command->viewer;
    if (id == OPTION_OUTPUT)
        viewer->output = scan->value;
    if (id == OPTION_PORT && (viewer->served.port = port_of(scan->value)) == 0)
        return tool_usage("hpcviewer", "--port %s is no number from 1 to 65535", scan->value);
    viewer->served.without_browser |= id == OPTION_NO_BROWSER;
    viewer->on_terminal |= id == OPTION_TUI || id == OPTION_PLAIN;
    viewer->is_plain |= id == OPTION_PLAIN;
    if (id == OPTION_KEYS)
        viewer->keys = scan->value;
    command->is_live |= id == OPTION_LIVE;
    command->is_screen |= id == OPTION_TUI;
    command->show.is_plain |= id == OPTION_PLAIN;
    command->show.is_once |= id == OPTION_ONCE;
    command->show.is_json |= id == OPTION_JSON;
    if (id == OPTION_SESSION)
        viewer->from = scan->value;
    if (id == OPTION_SAVE_SESSION)
        viewer->to = scan->value;
    if (id < OPTION_COUPLEBREAK || id > OPTION_BUFFER)
        return 0;
    if (!vec_reserve(&command->said, &command->cap_said, command->n_said + 1, sizeof *command->said))
        return tool_error("hpcviewer", "out of memory");
    command->said[command->n_said++] = (struct said){id, scan->value, scan->n_operands};
    return 0;
}

/* --live: in the views of a database where that is asked for, or in a browser where there is one, else as a table. */
static int show_live(struct command *command, char **inputs)
{
    struct viewer *viewer = &command->viewer;
    bool is_served = viewer->served.port || viewer->served.without_browser ||
                     (isatty(STDOUT_FILENO) && !serve_lacks_browser(&viewer->served));
    viewer->words = (const char *const *)inputs; /* NULL behind them, as behind all arguments */
    viewer->on_terminal = command->is_screen;
    if (viewer->keys && !viewer->on_terminal)
        return usage("--keys goes with --tui");
    if (!viewer->on_terminal &&
        (!is_served || command->show.is_plain || command->show.is_once || command->show.is_json))
        return running_show(viewer->words, &command->show, stdout);
    if (command->show.is_once || command->show.is_json || viewer->output)
        return usage("--once, --json and -o do not go with the views of --live");
    viewer->is_live = true;
    return run(viewer);
}

static int run_command(struct command *command, int argc, char **argv)
{
    struct viewer *viewer = &command->viewer;
    struct option_scan scan = {0};
    struct error err = {0};
    int id, status = 0;
    while (!status && (id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            return usage(err.text);
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 0;
        status = take_option(command, &scan, id);
    }
    if (!status && command->is_live)
        return show_live(command, argv + scan.index);
    if (!status && (command->show.is_once || command->show.is_json))
        return usage("--once and --json go with --live only");
    if (!status && viewer->keys && !viewer->on_terminal)
        return usage("--keys goes with --tui or --plain");
    if (!status && viewer->output && viewer->on_terminal)
        return usage("-o writes a file, and goes with neither --tui nor --plain");
    viewer->on_terminal |= is_terminal_alone(viewer);
    status = status ? status : take_inputs(command, argv + scan.index, scan.n_operands);
    if (!status && viewer->output && (viewer->served.port || viewer->served.without_browser))
        return usage("-o writes a file, and goes with neither --port nor --no-browser");
    return status ? status : run(viewer);
}

static int run_tool(int argc, char **argv)
{
    struct command command = {0};
    int status = run_command(&command, argc, argv);
    recordings_fini(&command.viewer.inputs);
    free(command.said);
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
