/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun --unsafe-attach: the order of it, and what is refused. What is done in the program is inject.c's. */
#include "hpcrun.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "base/process.h"
#include "inject.h"
#include "running/running.h"

#define LIBRARY "libhpcrun-attach.so"
#define ANSWER_DONE 1 /* enum late_answer of src/runtime/process/late.h */
#define SIGURG_BIT (UINT64_C(1) << (SIGURG - 1))

/* --- what is refused --- */

static bool is_other_namespace(pid_t pid, const char *name)
{
    char theirs[64], ours[64];
    struct stat a, b;
    (void)snprintf(theirs, sizeof theirs, "/proc/%ld/ns/%s", (long)pid, name);
    (void)snprintf(ours, sizeof ours, "/proc/self/ns/%s", name);
    return stat(theirs, &a) == 0 && stat(ours, &b) == 0 && a.st_ino != b.st_ino;
}

static int check_surroundings(pid_t pid, struct error *err)
{
    static const char *const names[] = {"mnt", "pid", "net"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_other_namespace(pid, names[i]))
            return error_set(err, ERR_UNSUPPORTED,
                             "process %ld is in another container (its %s namespace is not this one's); run hpcrun "
                             "inside of it",
                             (long)pid, names[i]);
    return 0;
}

/* Whether one of the threads is like that. */
static bool has_thread(pid_t pid, bool (*is_it)(pid_t pid, pid_t tid))
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir(path);
    bool has_any = false;
    for (const struct dirent *task; tasks && !has_any && (task = readdir(tasks));) {
        pid_t tid = (pid_t)strtol(task->d_name, NULL, 10);
        has_any = tid > 0 && is_it(pid, tid);
    }
    if (tasks)
        (void)closedir(tasks);
    return has_any;
}

/* It runs under a seccomp filter, or in strict mode. */
static bool is_filtered(pid_t pid, pid_t tid)
{
    char text[64];
    (void)pid;
    return proc_status_line(tid, "Seccomp:", text, sizeof text) && strcmp(text, "0") != 0;
}

/* What /proc/PID/status says against it. */
static int check_status(pid_t pid, struct error *err)
{
    char text[512];
    unsigned long real = 0, effective = 0;
    if (!proc_status_line(pid, "Uid:", text, sizeof text))
        return error_set(err, ERR_NOT_FOUND, "there is no process %ld", (long)pid);
    if (sscanf(text, "%lu %lu", &real, &effective) == 2 && (real != geteuid() || effective != geteuid()))
        return error_set(err, ERR_UNSUPPORTED,
                         "process %ld runs as user %lu; only that user can attach to it, not even root", (long)pid,
                         effective);
    if (proc_status_line(pid, "State:", text, sizeof text) && strchr("ZXx", text[0]))
        return error_set(err, ERR_NOT_FOUND, "process %ld has ended", (long)pid);
    if (proc_status_line(pid, "TracerPid:", text, sizeof text) && strcmp(text, "0") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "process %ld is traced by process %s (a debugger or strace); end that first", (long)pid, text);
    if (has_thread(pid, is_filtered))
        return error_set(err, ERR_UNSUPPORTED,
                         "process %ld runs under a seccomp filter, which may end it for a system call of ours; start "
                         "it by hpcrun",
                         (long)pid);
    if (proc_status_line(pid, "x86_Thread_features:", text, sizeof text) && strstr(text, "shstk"))
        return error_set(err, ERR_UNSUPPORTED, "process %ld has shadow stacks, which refuse calls that it did not make",
                         (long)pid);
    return 0;
}

/* Whether a descriptor of the process is one that reads SIGURG. */
static bool reads_signal(pid_t pid)
{
    char path[64], line[256];
    bool has_any = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/fdinfo", (long)pid);
    DIR *descriptors = opendir(path);
    for (const struct dirent *one; descriptors && !has_any && (one = readdir(descriptors));) {
        long number = strtol(one->d_name, NULL, 10);
        (void)snprintf(path, sizeof path, "/proc/%ld/fdinfo/%ld", (long)pid, number);
        FILE *file = one->d_name[0] != '.' ? input_stream(path) : NULL;
        while (file && !has_any && fgets(line, sizeof line, file))
            has_any = strncmp(line, "sigmask:", 8) == 0 && strtoull(line + 8, NULL, 16) & SIGURG_BIT;
        if (file)
            (void)fclose(file);
    }
    if (descriptors)
        (void)closedir(descriptors);
    return has_any;
}

/* Whether the thread, which is not stopped, waits for SIGURG by a call. */
static bool awaits_signal(pid_t pid, pid_t tid)
{
    char path[64];
    uint64_t set = 0;
    struct inject_doing doing = inject_look(pid, tid);
    if (doing.call != SYS_rt_sigtimedwait)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    int fd = open(path, O_RDWR | O_CLOEXEC); /* as inject.c opens it: it is no file of anybody's */
    bool awaits = fd >= 0 && pread(fd, &set, sizeof set, (off_t)doing.arguments[0]) == sizeof set && set & SIGURG_BIT;
    if (fd >= 0)
        (void)close(fd);
    return awaits;
}

static int check_signal(pid_t pid, struct error *err)
{
    char text[512];
    if (proc_status_line(pid, "SigCgt:", text, sizeof text) && strtoull(text, NULL, 16) & SIGURG_BIT)
        return error_set(err, ERR_UNSUPPORTED,
                         "process %ld handles SIGURG, the signal that brings the samples; start it by hpcrun",
                         (long)pid);
    if (reads_signal(pid) || has_thread(pid, awaits_signal))
        return error_set(err, ERR_UNSUPPORTED,
                         "process %ld reads SIGURG, the signal that brings the samples, by signalfd or sigwait; start "
                         "it by hpcrun",
                         (long)pid);
    return 0;
}

static bool has_module(const struct inject_modules *modules, const char *name)
{
    return inject_module_named(modules, &name, 1) != NULL;
}

/* What its modules say against it. */
static int check_modules(pid_t pid, struct error *err)
{
    static const char *const sanitizers[] = {"libasan", "libtsan", "libmsan", "liblsan", "vgpreload_", "libclang_rt"};
    struct inject_modules modules;
    int status = inject_modules_read(pid, &modules, err);
    const struct inject_module *libc = status == 0 ? inject_libc(&modules) : NULL;
    if (status != 0)
        return status;
    if (has_module(&modules, LIBRARY))
        status =
            error_set(err, ERR_UNSUPPORTED,
                      "process %ld has been attached to before; that works once in the life of a process", (long)pid);
    else if (has_module(&modules, "libhpcrun"))
        status = error_set(err, ERR_UNSUPPORTED,
                           "process %ld is measured already: it was started by hpcrun; "
                           "hpcrun --status %ld shows it",
                           (long)pid, (long)pid);
    else if (has_module(&modules, "ld-musl") || has_module(&modules, "libc.musl"))
        status =
            error_set(err, ERR_UNSUPPORTED, "process %ld uses musl, and the profiler's library needs glibc", (long)pid);
    else if (inject_module_named(&modules, sanitizers, sizeof sanitizers / sizeof *sanitizers))
        status = error_set(err, ERR_UNSUPPORTED, "process %ld runs under a sanitizer or Valgrind", (long)pid);
    else if (!libc || !inject_loader(&modules))
        status = error_set(err, ERR_UNSUPPORTED,
                           "process %ld is a static program, into which nothing can be loaded; link it with hpclink",
                           (long)pid);
    else if (strstr(libc->path, " (deleted)"))
        status =
            error_set(err, ERR_UNSUPPORTED, "process %ld still uses a libc that has been replaced since it began (%s)",
                      (long)pid, libc->path);
    inject_modules_fini(&modules);
    return status;
}

/* The executable, as it would be started. */
static int check_program(pid_t pid, struct program *program, struct error *err)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    ssize_t len = readlink(link, program->path, sizeof program->path - 1);
    if (len <= 0)
        return error_set(err, ERR_UNSUPPORTED, "process %ld cannot be looked at: %s", (long)pid,
                         len < 0 ? strerror(errno) : "it has no executable");
    program->path[len] = '\0';
    if (access(program->path, R_OK) != 0)
        return error_set(err, ERR_UNSUPPORTED, "process %ld: its executable is gone, or cannot be read: %s", (long)pid,
                         program->path);
    int status = program_check(program, err);
    if (status == 0 && program->is_ia32)
        status = error_set(err, ERR_UNSUPPORTED, "process %ld is a program of 32 bits; start it by hpcrun", (long)pid);
    return status;
}

/* Events that could end a system call of the program, or need to know it from its start. */
static int check_plan(const struct source_plan *plan, struct error *err)
{
    for (uint32_t i = 0; i < plan->n_events; i++) {
        const struct source_event *event = &plan->events[i];
        bool is_unfit =
            event->flags & (SOURCE_TIMER | SOURCE_WALLCLOCK | SOURCE_RING_ONLY | SOURCE_BATCH | SOURCE_AUX) ||
            event->file[0] || (event->flags & SOURCE_CALLS && event->source != SOURCE_NUMBER_MEMLEAK);
        if (is_unfit)
            return error_set(err, ERR_UNSUPPORTED, "%s cannot be measured in a program that runs already%s",
                             event->name,
                             event->flags & SOURCE_TIMER
                                 ? ": without perf events (kernel.perf_event_paranoid) it would be a timer, whose "
                                   "signals end system calls"
                                 : "");
    }
    if (plan->wants_waits || plan->sched.tier)
        return error_set(err, ERR_UNSUPPORTED,
                         "waiting times and the scheduler of a program that runs already cannot be "
                         "recorded");
    return 0;
}

/* --- in the program --- */

/* Where the functions are that the program is to call, found before one of its threads is stopped. */
struct attachment {
    const struct prepared *prepared;
    char companion[COMPANION_ENV_MAX];
    uint64_t open_at, open_mode, error_at; /* dlopen, how it is called, and dlerror; 0: there is none */
    uint64_t begin_offset;                 /* of locus_attach in our library */
};

static uint64_t function_of(pid_t pid, const char *const *modules_named, size_t n, const char *name)
{
    struct inject_modules modules;
    struct error err;
    uint64_t address = 0;
    if (inject_modules_read(pid, &modules, &err) == 0) {
        const struct inject_module *module = inject_module_named(&modules, modules_named, n);
        address = module ? inject_function(module, name) : 0;
    }
    inject_modules_fini(&modules);
    return address;
}

/* Before glibc 2.34 it is in a library of its own, which may not be there. */
static uint64_t find_dlopen(pid_t pid, uint64_t *mode)
{
    static const char *const libc[] = {"libc.so.6", "libc-2."}, *const libdl[] = {"libdl.so.2", "libdl-2."};
    uint64_t address = function_of(pid, libc, 2, "dlopen");
    if (!address)
        address = function_of(pid, libdl, 2, "dlopen");
    if (!address) {
        address = function_of(pid, libc, 2, "__libc_dlopen_mode");
        *mode |= UINT64_C(0x80000000); /* as libc's own callers do */
    }
    return address;
}

static void find_functions(pid_t pid, struct attachment *attachment)
{
    static const char *const libc[] = {"libc.so.6", "libc-2.", "libdl"};
    struct inject_module library = {.low = 0}; /* it is not loaded yet */
    (void)snprintf(library.path, sizeof library.path, "%s", attachment->prepared->library);
    attachment->open_mode = RTLD_NOW | RTLD_NODELETE;
    attachment->open_at = find_dlopen(pid, &attachment->open_mode);
    attachment->error_at = function_of(pid, libc, 3, "dlerror");
    attachment->begin_offset = inject_function(&library, "locus_attach");
}

static int say_why_not(struct inject_thread *thread, uint64_t error_at, struct error *err)
{
    char text[512] = "";
    uint64_t said = 0;
    struct error ignored;
    if (error_at && inject_call(thread, error_at, NULL, 0, &said, &ignored) == 0)
        inject_read_text(thread, said, text, sizeof text);
    return error_set(err, ERR_UNSUPPORTED, "the program's loader does not load the library: %s",
                     text[0] ? text : "it does not say why");
}

/* Calls a function of our library. */
static int call_ours(struct inject_thread *thread, uint64_t address, const char *text, const char *failure,
                     struct error *err)
{
    uint64_t answer = 0;
    int status = inject_call(thread, address, text, 0, &answer, err);
    return status == 0 && answer != ANSWER_DONE ? error_set(err, ERR_IO, "%s", failure) : status;
}

/* Where our library has been loaded to; 0: nowhere. */
static uint64_t library_base(pid_t pid)
{
    static const char *const ours[] = {LIBRARY};
    struct inject_modules modules;
    struct error err;
    const struct inject_module *module =
        inject_modules_read(pid, &modules, &err) == 0 ? inject_module_named(&modules, ours, 1) : NULL;
    uint64_t base = module ? module->low : 0;
    inject_modules_fini(&modules);
    return base;
}

static int attach_work(struct inject_thread *thread, void *context, struct error *err)
{
    const struct attachment *attachment = context;
    uint64_t handle = 0;
    int status = attachment->open_at ? inject_call(thread, attachment->open_at, attachment->prepared->library,
                                                   attachment->open_mode, &handle, err)
                                     : error_set(err, ERR_UNSUPPORTED, "its libc has no dlopen");
    if (status == 0 && !handle)
        status = say_why_not(thread, attachment->error_at, err);
    uint64_t base = status == 0 ? library_base(inject_pid(thread)) : 0;
    if (status == 0 && (!base || !attachment->begin_offset))
        return error_set(err, ERR_NOT_FOUND, "%s has no locus_attach", LIBRARY);
    return status == 0 ? call_ours(thread, base + attachment->begin_offset, attachment->companion,
                                   "the library could not begin to measure; the messages in the measurement directory "
                                   "say more",
                                   err)
                       : status;
}

static int detach_work(struct inject_thread *thread, void *context, struct error *err)
{
    const uint64_t *detach_at = context;
    return *detach_at ? call_ours(thread, *detach_at, NULL, "the measurement had ended before", err)
                      : error_set(err, ERR_NOT_FOUND, "%s has no locus_detach", LIBRARY);
}

/* --- the order --- */

/* A process of ours stands for the program in the companion's eyes: the companion ends when the program, or we, have
 * left. */
static pid_t make_stand_in(void)
{
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        (void)pause();
    _exit(0);
}

/* The signals that end a measurement: we leave the program before they may end us. SIGPIPE is one of them, as nobody
 * may read what we say. */
static void ends_fill(sigset_t *ends)
{
    (void)sigemptyset(ends);
    (void)sigaddset(ends, SIGINT);
    (void)sigaddset(ends, SIGTERM);
    (void)sigaddset(ends, SIGHUP);
    (void)sigaddset(ends, SIGPIPE);
}

/* Whether one of them has come since the last time that somebody has sent. */
static bool is_told_to_end(void)
{
    const struct timespec none = {0};
    sigset_t ends;
    bool is_told = false;
    ends_fill(&ends);
    for (int number; (number = sigtimedwait(&ends, NULL, &none)) > 0;)
        is_told |= number != SIGPIPE;
    return is_told;
}

/* Waits for the program's end (true), the end of the duration, or a signal to end. */
static bool wait_for_end(int program_fd, uint64_t duration_ns)
{
    sigset_t ends;
    ends_fill(&ends);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    struct pollfd wait[2] = {{.fd = program_fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct timespec rest = {.tv_sec = (time_t)(duration_ns / 1000000000), .tv_nsec = (long)(duration_ns % 1000000000)};
    while (ppoll(wait, 2, duration_ns ? &rest : NULL, NULL) < 0 && errno == EINTR)
        continue;
    if (signals >= 0)
        (void)close(signals);
    (void)is_told_to_end(); /* the next one means something else */
    return wait[0].revents & POLLIN;
}

static void block_ends(void)
{
    sigset_t ends;
    ends_fill(&ends);
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
}

/* Prints what the companion says until all is written. */
static void await_written(int fd)
{
    char text[4096];
    for (ssize_t n; (n = read(fd, text, sizeof text - 1)) > 0 || (n < 0 && errno == EINTR);) {
        if (n <= 0)
            continue;
        text[n] = '\0';
        (void)fprintf(stderr, "hpcrun: %s\n", text);
    }
}

/* Seconds since the process began. */
static double age_of(pid_t pid)
{
    struct proc_stat stat;
    double now = 0;
    (void)proc_stat_read(pid, &stat);
    FILE *file = input_stream("/proc/uptime");
    if (file && fscanf(file, "%lf", &now) != 1)
        now = 0;
    if (file)
        (void)fclose(file);
    return now - (double)stat.start / (double)sysconf(_SC_CLK_TCK);
}

/* The reports tell it, too: the plan goes into all files. */
static void note_in_plan(struct source_plan *plan, pid_t pid)
{
    char when[32] = "";
    time_t now = time(NULL);
    struct tm local;
    size_t len = strlen(plan->choice);
    if (localtime_r(&now, &local))
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    (void)snprintf(
        plan->choice + len, sizeof plan->choice - len,
        "; attached to process %ld at %s, %.0f s after its start: blocks that were allocated before have the "
        "names of their mappings",
        (long)pid, when, age_of(pid));
}

static int start_companion(struct prepared *prepared, pid_t stand_in, int done[2], struct error *err)
{
    if (pipe2(done, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, "pipe failed: %s", strerror(errno));
    prepared->setup.launched_pid = stand_in;
    prepared->setup.launched_pidfd = (int)syscall(SYS_pidfd_open, stand_in, 0);
    prepared->setup.done_fd = done[1];
    pid_t companion = companion_start(&prepared->setup, prepared->listen_fd, err);
    if (prepared->setup.launched_pidfd >= 0)
        (void)close(prepared->setup.launched_pidfd);
    (void)close(done[1]);
    if (prepared->way_fd >= 0)
        (void)close(prepared->way_fd);
    return companion > 0 ? 0 : ERR_IO;
}

/* Leaves the program. Where no thread comes to a safe point the sampling would go on unseen, so this is tried until the
 * user gives up; then at least no more samples are taken. */
static int leave(pid_t pid, int program_fd, const char *companion, struct error *err)
{
    static const char *const ours[] = {LIBRARY};
    struct pollfd gone = {.fd = program_fd, .events = POLLIN};
    uint64_t detach_at = function_of(pid, ours, 1, "locus_detach");
    char answer[ARENA_PATH_MAX];
    struct error why;
    int status;
    bool is_said = false;
    do {
        status = inject_run(pid, detach_work, &detach_at, err);
        if (poll(&gone, 1, status == ERR_UNSUPPORTED ? 200 : 0) > 0) /* it has ended meanwhile */
            return 0;
        if (status == ERR_UNSUPPORTED && !is_said)
            (void)fprintf(stderr, "hpcrun: cannot leave yet: %s; trying on, until Ctrl-C\n", err->text);
        is_said = true;
    } while (status == ERR_UNSUPPORTED && !is_told_to_end());
    if (status != ERR_UNSUPPORTED)
        return status;
    bool is_paused = running_control(companion, 0, "pause", answer, &why) == 0;
    return error_set(err, ERR_IO,
                     "process %ld could not be left: until it ends, the library stays in it, and its events and the "
                     "functions that it put in place of malloc and others do; %s",
                     (long)pid, is_paused ? "the sampling is paused" : "the sampling goes on");
}

/* Measures, when all is prepared. */
static int measure(const struct hpcrun_options *options, struct prepared *prepared, int program_fd, struct error *err)
{
    struct attachment attachment = {.prepared = prepared};
    int done[2] = {-1, -1};
    pid_t pid = options->attached, stand_in = make_stand_in();
    companion_way_keep(-1, prepared->socket, attachment.companion);
    int status = stand_in > 0 ? start_companion(prepared, stand_in, done, err)
                              : error_set(err, ERR_IO, "fork failed: %s", strerror(errno));
    if (status == 0) {
        find_functions(pid, &attachment);
        status = inject_run(pid, attach_work, &attachment, err);
    }
    if (status == 0) {
        (void)fprintf(stderr, "hpcrun: attached to process %ld; it is measured until %s\n", (long)pid,
                      options->duration_ns ? "the duration is over" : "it ends, or this hpcrun does (Ctrl-C)");
        if (!wait_for_end(program_fd, options->duration_ns))
            status = leave(pid, program_fd, prepared->socket, err);
    }
    if (stand_in > 0) {
        (void)kill(stand_in, SIGKILL);
        (void)waitpid(stand_in, NULL, 0);
    }
    if (done[0] >= 0)
        await_written(done[0]);
    return status;
}

static int prepare(const struct hpcrun_options *options, struct prepared *prepared, struct error *err)
{
    pid_t pid = options->attached;
    int status = check_status(pid, err);
    if (status == 0)
        status = check_surroundings(pid, err);
    if (status == 0)
        status = check_program(pid, &prepared->program, err);
    if (status == 0)
        status = check_modules(pid, err);
    if (status == 0)
        status = check_signal(pid, err);
    if (status == 0)
        status = prepare_plan(options, &prepared->plan, err);
    if (status == 0)
        status = check_plan(&prepared->plan, err);
    if (status != 0)
        return status;
    note_in_plan(&prepared->plan, pid);
    return prepare_rest(options, prepared, err);
}

int launch_attach(const struct hpcrun_options *given)
{
    static struct prepared prepared; /* large */
    struct hpcrun_options options = *given;
    struct error err = {0};
    char *command[2] = {NULL, NULL};
    const char *refusal = inject_refusal();
    if (refusal)
        return tool_error("hpcrun", "%s", refusal);
    if (options.delay || options.delay_ns || options.start_signal || options.stop_signal || options.lifetime_s ||
        options.mark_ns)
        return tool_usage("hpcrun",
                          "--delay, -ds, --lifetime, --leaks-at and signals that switch the sampling do not go "
                          "with --unsafe-attach");
    uint64_t duration_ns = options.duration_ns;
    int program_fd = (int)syscall(SYS_pidfd_open, options.attached, 0);
    if (program_fd < 0)
        return tool_error("hpcrun", "process %ld cannot be attached to: %s", (long)options.attached, strerror(errno));
    command[0] = prepared.program.path;
    options.command = command;
    options.duration_ns = 0; /* we end it ourselves */
    int status = prepare(&options, &prepared, &err);
    bool is_usage = status == ERR_USAGE || status == ERR_RANGE;
    options.duration_ns = duration_ns;
    if (status == 0) {
        (void)fprintf(stderr, "hpcrun: %.*s\n", (int)strcspn(prepared.plan.choice, ";("), prepared.plan.choice);
        block_ends();
        status = measure(&options, &prepared, program_fd, &err);
    }
    if (status != 0) {
        (void)tool_error("hpcrun", "%s", err.text);
        return is_usage ? 2 : 1;
    }
    const struct report_wish wish = {prepared.setup.dir, options.report_file, options.leaks};
    (void)fprintf(stderr, "hpcrun: the measurement is in %s\n", prepared.setup.dir);
    return options.report ? report_end(&wish, &prepared.run, true) : 0;
}
