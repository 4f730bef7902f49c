/* SPDX-License-Identifier: BSD-3-Clause */
/* ptrace: see tracee.h. A run goes from gate to gate; between the marks of a call the watched thread either takes
 * single steps, which are counted, or runs up to a hardware breakpoint at the instruction where something is to happen.
 */
#include "tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dirent.h>
#include <limits.h>

#define START_OPTIONS (PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)
#define FULL_OPTIONS (START_OPTIONS | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)
#define BESIDE_MS 20 /* that the other thread gets while the watched one stands still */
#define NS_PER_MS 1000000

static struct {
    struct symbol {
        uintptr_t start;
        char name[96];
    } * list;
    size_t n;
} symbols;

int64_t explore_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- symbols --- */

void symbols_load(const char *library)
{
    char command[PATH_MAX + 32], line[512];
    snprintf(command, sizeof command, "nm -n '%s'", library);
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof line, pipe)) {
        struct symbol symbol = {0};
        char type = 0;
        if (sscanf(line, "%lx %c %95s", &symbol.start, &type, symbol.name) != 3 || !strchr("tTwWi", type))
            continue;
        if (symbols.n % 256 == 0)
            symbols.list = realloc(symbols.list, (symbols.n + 256) * sizeof *symbols.list);
        symbols.list[symbols.n++] = symbol;
    }
    if (pipe)
        pclose(pipe);
}

void symbols_name(uintptr_t pc, char *text, unsigned n_bytes)
{
    size_t low = 0, high = symbols.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (symbols.list[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low)
        snprintf(text, n_bytes, "%s+%#lx", symbols.list[low - 1].name, pc - symbols.list[low - 1].start);
    else
        snprintf(text, n_bytes, "%#lx", pc);
}

uintptr_t symbols_find(const char *text)
{
    const char *plus = strchr(text, '+');
    size_t len = plus ? (size_t)(plus - text) : strlen(text);
    if (strncmp(text, "0x", 2) == 0)
        return strtoul(text, NULL, 16);
    for (size_t i = 0; i < symbols.n; i++) {
        if (strlen(symbols.list[i].name) == len && strncmp(symbols.list[i].name, text, len) == 0)
            return symbols.list[i].start + (plus ? strtoul(plus + 1, NULL, 16) : 0);
    }
    return 0;
}

/* --- stops --- */

/* The next stop of anything that is traced, 0 after timeout_ms without one. */
static pid_t next_stop(int *status, int64_t until_ns)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t tid = waitpid(-1, status, __WALL | WNOHANG);
        int64_t left_ns = until_ns - explore_now_ns();
        if (tid > 0)
            return tid;
        if (tid < 0 || left_ns <= 0)
            return 0;
        struct timespec timeout = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        (void)sigtimedwait(&child, NULL, &timeout);
    }
}

static void task_add(struct session *session, pid_t tid)
{
    int slot = -1;
    for (int i = 0; i < SESSION_TASKS; i++) {
        if (session->tasks[i] == tid)
            return;
        if (!session->tasks[i])
            slot = i;
    }
    if (slot >= 0)
        session->tasks[slot] = tid;
}

static void task_remove(struct session *session, pid_t tid)
{
    for (int i = 0; i < SESSION_TASKS; i++) {
        if (session->tasks[i] == tid)
            session->tasks[i] = 0;
    }
}

static void breakpoint_set(pid_t tid, uintptr_t address)
{
    ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[7]), 0);
    if (!address)
        return;
    ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[0]), address);
    ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[7]), 1);
}

static void resume(const struct run *run, pid_t tid, int signal_number)
{
    bool steps = run && run->is_stepping && !run->is_skipping && tid == run->target;
    ptrace(steps ? PTRACE_SINGLESTEP : PTRACE_CONT, tid, 0, signal_number);
}

/* --- samples --- */

static int list_perf_fds(pid_t pid, int *fds, int n_max)
{
    char path[64], name[NAME_MAX + 80], target[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *directory = opendir(path);
    for (struct dirent *item; directory && (item = readdir(directory)) && n < n_max;) {
        snprintf(name, sizeof name, "%s/%s", path, item->d_name);
        ssize_t len = readlink(name, target, sizeof target - 1);
        if (len > 0 && strncmp(target, "anon_inode:[perf_event]", (size_t)len) == 0)
            fds[n++] = atoi(item->d_name);
    }
    if (directory)
        closedir(directory);
    return n;
}

/* A descriptor of an event of the thread: the main thread's are known, and another one watched has the newest. */
static int sample_fd(const struct session *session, pid_t tid)
{
    int fds[64];
    int n = tid == session->main && session->n_sample_fds ? 0 : list_perf_fds(tid, fds, 64);
    for (int i = 0; i < n; i++) {
        bool is_known = false;
        for (int k = 0; k < session->n_sample_fds; k++)
            is_known |= session->sample_fds[k] == fds[i];
        if (!is_known)
            return fds[i];
    }
    return session->n_sample_fds ? session->sample_fds[0] : -1;
}

/* Makes the stop's signal the one of an overflow. */
static int make_sample(const struct session *session, pid_t tid)
{
    siginfo_t info = {.si_signo = SIGURG, .si_code = POLL_IN};
    info.si_fd = sample_fd(session, tid);
    ptrace(PTRACE_SETSIGINFO, tid, 0, &info);
    return SIGURG;
}

/* --- injections --- */

static void ask_beside(struct session *session, struct run *run, pid_t tid)
{
    static const uint32_t commands[KIND_COUNT] = {[KIND_CANCEL] = BESIDE_CANCEL,
                                                  [KIND_BESIDE] = BESIDE_CALL,
                                                  [KIND_FORK_BESIDE] = BESIDE_FORK,
                                                  [KIND_EXIT_BESIDE] = BESIDE_EXIT};
    uint32_t *command = &session->page->beside[run->place == PLACE_CHILD];
    uint32_t wanted = commands[run->kind];
    if (run->kind == KIND_BESIDE && session->page->entries[run->entry].flags & ENTRY_IN_CHILD)
        wanted = BESIDE_LEAVE;
    __atomic_store_n(command, wanted, __ATOMIC_RELEASE);
    syscall(SYS_futex, command, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
    run->held = tid;
    int wait_ms = session->plan->hpcrun ? BESIDE_MS : session->plan->patience_ms / 2;
    run->held_until_ns = explore_now_ns() + (int64_t)wait_ms * NS_PER_MS;
}

/* tid has stopped with a signal (SIGTRAP), or is new. */
static void inject(struct session *session, struct run *run, pid_t tid, bool is_signal_stop)
{
    int number = run->kind == KIND_STOP ? SIGSTOP : run->kind == KIND_SAMPLE ? SIGURG : SIGUSR1;
    run->is_injected = true;
    run->is_stepping = false;
    run->target = tid;
    switch (run->kind) {
    case KIND_CANCEL:
    case KIND_BESIDE:
    case KIND_FORK_BESIDE:
    case KIND_EXIT_BESIDE:
        ask_beside(session, run, tid);
        return;
    case KIND_KILL:
        syscall(SYS_tkill, tid, SIGKILL);
        return;
    case KIND_NONE:
        resume(run, tid, 0);
        return;
    default:
        break;
    }
    if (!is_signal_stop) {
        syscall(SYS_tkill, tid, number);
        resume(run, tid, 0);
    } else if (run->kind == KIND_SAMPLE) {
        resume(run, tid, make_sample(session, tid));
    } else {
        resume(run, tid, number);
    }
}

/* The thread to be watched stands before its first instruction. */
static void arm(struct session *session, struct run *run, pid_t tid, bool is_signal_stop)
{
    bool is_sample = session->page->entries[run->entry].flags & ENTRY_SAMPLE;
    run->target = tid;
    run->awaits_target = false;
    if (run->where == RUN_AT_BEGIN) {
        inject(session, run, tid, is_signal_stop);
        return;
    }
    run->is_stepping = run->where == RUN_STEP;
    if (run->where == RUN_AT_PC)
        breakpoint_set(tid, session->base + run->pc);
    resume(run, tid, is_sample && is_signal_stop ? make_sample(session, tid) : 0);
}

/* Bytes of a string instruction that is repeated, each time with a trap of its own; 0: it is none. */
static unsigned length_of_repeated(pid_t tid, uintptr_t pc)
{
    unsigned long word = (unsigned long)ptrace(PTRACE_PEEKTEXT, tid, pc, 0);
    unsigned has_rex = (word >> 8 & 0xf8) == 0x48, code = word >> (has_rex ? 16 : 8) & 0xff;
    bool is_string = (code & 0xfe) == 0xa4 || (code & 0xfe) == 0xaa;
    return (word & 0xff) == 0xf3 && is_string ? 2 + has_rex : 0;
}

static uintptr_t peek_stack(pid_t tid)
{
    uintptr_t sp = (uintptr_t)ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user, regs.rsp), 0);
    return (uintptr_t)ptrace(PTRACE_PEEKDATA, tid, sp, 0);
}

/* The watched thread stands before another instruction. What takes long and is not the library's is left to run. */
static void count_step(const struct session *session, struct run *run, pid_t tid)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0)
        return;
    uintptr_t skip_to = 0;
    bool is_inside = regs.rip >= session->text_start && regs.rip < session->text_end;
    if (is_inside && run->counts) {
        unsigned len = length_of_repeated(tid, regs.rip);
        run->counts[regs.rip - session->text_start]++;
        skip_to = len ? regs.rip + len : 0;
    } else if (run->was_inside) {
        uintptr_t back = peek_stack(tid);
        skip_to = back >= session->text_start && back < session->text_end ? back : 0;
    }
    run->was_inside = is_inside;
    if (run->until && regs.rip == run->until)
        run->is_stepping = false;
    if (skip_to || run->is_skipping) /* a call to ptrace is most of what a step costs */
        breakpoint_set(tid, skip_to);
    run->is_skipping = skip_to != 0;
}

/* The signal of a sample is about to be delivered, or is sent to be, where the registers say. */
static void note_tick(struct run *run, pid_t tid)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0)
        return;
    run->tick_pc = regs.rip;
    run->tick_sp = regs.rsp;
    run->is_tick_sent = true;
}

/* The watched thread stands before another instruction, of the handler or of what it interrupts. The handler runs
 * freely up to the instruction that it has interrupted, and that one runs before the next tick: so the call comes to
 * its end. */
static void step_with_ticks(const struct session *session, struct run *run, pid_t tid)
{
    static uintptr_t handler;
    struct user_regs_struct regs;
    if (!handler)
        handler = symbols_find("events_handler_sig");
    if (ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0)
        return;
    bool has_come_back = run->is_in_tick && regs.rip == run->tick_pc && regs.rsp == run->tick_sp;
    if (has_come_back) {
        run->is_in_tick = run->is_skipping = false;
        breakpoint_set(tid, 0);
    } else if (run->is_tick_sent && regs.rip == session->base + handler) {
        run->is_in_tick = run->is_skipping = true;
        run->n_ticks++;
        run->is_injected = true;
        breakpoint_set(tid, run->tick_pc);
    }
    if (has_come_back || run->is_in_tick) {
        resume(run, tid, 0);
        return;
    }
    run->is_tick_sent = false;
    count_step(session, run, tid);
    if (run->is_stepping && !run->is_skipping && run->was_inside) {
        note_tick(run, tid);
        resume(run, tid, make_sample(session, tid));
    } else {
        resume(run, tid, 0);
    }
}

static void reached_mark(struct session *session, struct run *run, pid_t tid, unsigned mark)
{
    uint32_t flags = session->page->entries[run->entry].flags;
    if (mark == MARK_BEGIN && flags & (ENTRY_NEW_THREAD | ENTRY_NEW_PROCESS)) {
        run->awaits_target = true;
        resume(run, tid, 0);
    } else if (mark == MARK_BEGIN) {
        arm(session, run, tid, true);
    } else if (mark == MARK_END) {
        if (tid == run->target) {
            breakpoint_set(tid, 0);
            run->is_stepping = run->is_skipping = false;
        }
        bool is_watched = tid == run->target || flags & (ENTRY_NEW_THREAD | ENTRY_NEW_PROCESS);
        bool is_first = is_watched && !run->has_ended;
        run->has_ended |= is_watched;
        if (run->where == RUN_AT_END && is_first)
            inject(session, run, tid, true);
        else
            resume(run, tid, 0);
    } else {
        resume(run, tid, 0);
        if (run->held)
            resume(run, run->held, 0);
        run->held = 0;
    }
}

/* A stop by one of our own traps. True at the gate. */
static bool handle_trap(struct session *session, struct run *run, pid_t tid)
{
    siginfo_t info = {0};
    ptrace(PTRACE_GETSIGINFO, tid, 0, &info);
    if (info.si_code == SI_KERNEL) {
        uintptr_t rax = (uintptr_t)ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user, regs.rax), 0);
        unsigned mark = (unsigned)rax - EXPLORE_MARK_BASE;
        if (mark == MARK_GATE)
            return true;
        reached_mark(session, run, tid, mark);
        return false;
    }
    if (run->where == RUN_AT_PC && info.si_code == TRAP_HWBKPT && tid == run->target && !run->is_injected &&
        !run->has_ended) {
        if (++run->n_hits >= run->occurrence) {
            breakpoint_set(tid, 0);
            inject(session, run, tid, true);
            return false;
        }
    } else if (tid == run->target && (run->is_stepping || run->constructor)) {
        if (!run->is_stepping) { /* it is at the constructor */
            run->until = peek_stack(tid);
            breakpoint_set(tid, 0);
        }
        if (!run->is_stepping && run->ticks_from) { /* before that nobody takes a tick: the way there is not stepped */
            breakpoint_set(tid, session->base + run->ticks_from);
            run->is_stepping = run->is_skipping = true;
            resume(run, tid, 0);
            return false;
        }
        run->is_stepping = run->where == RUN_STEP;
        if (run->kind == KIND_TICKS) {
            step_with_ticks(session, run, tid);
            return false;
        }
        count_step(session, run, tid);
    }
    resume(run, tid, 0);
    return false;
}

/* New, or stopped as a part of its process, or going on after that. */
static void handle_event_stop(struct session *session, struct run *run, pid_t tid, int signal_number)
{
    if (signal_number != SIGTRAP) {
        ptrace(PTRACE_LISTEN, tid, 0, 0);
        if (tid == run->target && !run->has_continued) {
            run->has_continued = true;
            syscall(SYS_tkill, tid, SIGCONT);
        }
        return;
    }
    bool is_new = true;
    for (int i = 0; i < SESSION_TASKS; i++)
        is_new &= session->tasks[i] != tid;
    task_add(session, tid);
    if (is_new && run->awaits_target)
        arm(session, run, tid, false);
    else
        resume(run, tid, 0);
}

/* True at the gate. */
static bool handle_stop(struct session *session, struct run *run, pid_t tid, int status)
{
    int event = status >> 16, number = WSTOPSIG(status);
    bool may_leave = run->kind == KIND_BESIDE && session->page->entries[run->entry].flags & ENTRY_IN_CHILD;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        task_remove(session, tid);
        if (tid == run->held)
            run->held = 0;
        if (tid == session->main) {
            run->end_status = status;
            session->main = 0;
        } else if (run->held && may_leave) { /* it has left, as it was asked to */
            resume(run, run->held, 0);
            run->held = 0;
        }
        return false;
    }
    if (event == PTRACE_EVENT_EXEC && tid == run->target && !run->constructor)
        run->is_stepping = false;
    if (event == PTRACE_EVENT_STOP)
        handle_event_stop(session, run, tid, number);
    else if (event)
        resume(run, tid, 0);
    else if (number == SIGTRAP)
        return handle_trap(session, run, tid);
    else {
        if (run->kind == KIND_TICKS && number == SIGURG && tid == run->target && run->is_stepping && !run->is_in_tick)
            note_tick(run, tid); /* it was blocked when it was sent */
        resume(run, tid, number);
    }
    return false;
}

enum run_result run_one(struct session *session, struct run *run)
{
    struct explore_page *page = session->page;
    int64_t factor = run->kind == KIND_TICKS ? 2 : run->where == RUN_STEP ? 10 : 1;
    int64_t limit_ns = explore_now_ns() + factor * session->plan->patience_ms * NS_PER_MS;
    page->entry = run->entry;
    page->kind = run->kind;
    page->place = run->place;
    resume(run, session->main, 0);
    for (;;) {
        int status;
        bool is_held = run->held != 0;
        pid_t tid = next_stop(&status, is_held && run->held_until_ns < limit_ns ? run->held_until_ns : limit_ns);
        if (tid && handle_stop(session, run, tid, status)) {
            if (run->held) /* it is in another process than the one that has ended */
                resume(run, run->held, 0);
            return RUN_DONE;
        }
        if (!session->main)
            return RUN_DIED;
        if (!tid && is_held && run->held && explore_now_ns() < limit_ns) {
            run->has_waited = true;
            resume(run, run->held, 0);
            run->held = 0;
        } else if (!tid) {
            return RUN_HUNG;
        }
    }
}

/* --- a session --- */

static void find_library(struct session *session)
{
    char path[64], line[PATH_MAX + 128], protection[8];
    uintptr_t start, end;
    snprintf(path, sizeof path, "/proc/%d/maps", session->main);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/libhpcrun.so") || sscanf(line, "%lx-%lx %7s", &start, &end, protection) != 3)
            continue;
        if (!session->base)
            session->base = start;
        if (protection[2] == 'x') {
            session->text_start = start;
            session->text_end = end;
        }
    }
    if (maps)
        fclose(maps);
}

static void run_subject(const struct session_plan *plan, int go_fd)
{
    char page[PATH_MAX], output[PATH_MAX], byte;
    sigset_t none;
    snprintf(page, sizeof page, "%s/page", plan->scratch);
    snprintf(output, sizeof output, "%s/measurement", plan->scratch);
    setenv(EXPLORE_PAGE_ENV, page, 1);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (read(go_fd, &byte, 1) != 1)
        _exit(127);
    close(go_fd);
    if (plan->hpcrun)
        execl(plan->hpcrun, "hpcrun", "-e", plan->events, "-t", "-o", output, plan->subject, (char *)NULL);
    else
        execl(plan->subject, plan->subject, (char *)NULL);
    _exit(127);
}

static bool map_page(struct session *session)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/page", session->plan->scratch);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *session->page) != 0)
        return false;
    session->page = mmap(NULL, sizeof *session->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return session->page != MAP_FAILED;
}

/* hpcrun has become the subject, or was it from the beginning. */
static bool is_subject(const struct session *session)
{
    char link[64], path[PATH_MAX], wanted[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", session->main);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    return realpath(session->plan->subject, wanted) && strcmp(path, wanted) == 0;
}

/* The subject begins: nothing of its libraries is there yet. */
static void begin_start(struct session *session, struct run *start, pid_t tid)
{
    ptrace(PTRACE_SETOPTIONS, tid, 0, FULL_OPTIONS);
    if (!start->constructor)
        return;
    session->base = start->base;
    session->text_start = start->text_start;
    session->text_end = start->text_end;
    start->target = tid;
    breakpoint_set(tid, start->base + (start->where == RUN_STEP ? start->constructor : start->pc));
}

static bool come_to_gate(struct session *session, struct run *start)
{
    int64_t factor = start->where == RUN_STEP ? 10 : 3;
    int64_t limit_ns = explore_now_ns() + factor * session->plan->patience_ms * NS_PER_MS;
    for (;;) {
        int status;
        pid_t tid = next_stop(&status, limit_ns);
        if (!tid)
            return false;
        if (tid == session->main && status >> 16 == PTRACE_EVENT_EXEC && is_subject(session))
            begin_start(session, start, tid);
        if (handle_stop(session, start, tid, status)) {
            breakpoint_set(tid, 0);
            return true;
        }
        if (!session->main)
            return false;
    }
}

bool session_start(struct session *session, const struct session_plan *plan, struct run *start)
{
    struct run none = {0};
    int go[2];
    *session = (struct session){.plan = plan};
    if (!map_page(session) || pipe(go) != 0)
        return false;
    session->main = fork();
    if (session->main == 0)
        run_subject(plan, go[0]);
    close(go[0]);
    bool is_ours = session->main > 0 && ptrace(PTRACE_SEIZE, session->main, 0, START_OPTIONS) == 0;
    is_ours = is_ours && write(go[1], "x", 1) == 1;
    close(go[1]);
    if (session->main > 0)
        task_add(session, session->main);
    if (!is_ours || !come_to_gate(session, start ? start : &none)) {
        session_end(session, true);
        return false;
    }
    session->base = 0;
    find_library(session);
    session->n_sample_fds = list_perf_fds(session->main, session->sample_fds, 16);
    return true;
}

static void kill_tasks(const struct session *session)
{
    for (int i = 0; i < SESSION_TASKS; i++) {
        if (session->tasks[i])
            syscall(SYS_tkill, session->tasks[i], SIGKILL);
    }
}

int session_end(struct session *session, bool by_force)
{
    struct run run = {0};
    int64_t limit_ns = explore_now_ns() + (int64_t)3 * session->plan->patience_ms * NS_PER_MS;
    if (by_force) {
        kill_tasks(session);
    } else if (session->main) {
        session->page->is_over = 1;
        resume(NULL, session->main, 0);
    }
    bool is_alone = false, has_ended = false;
    while (!is_alone) {
        int status;
        pid_t tid = next_stop(&status, limit_ns);
        if (tid)
            (void)handle_stop(session, &run, tid, status);
        is_alone = !session->main;
        for (int i = 0; i < SESSION_TASKS; i++)
            is_alone &= !session->tasks[i];
        if (!session->main && !has_ended) { /* its children may still be about to end: their stops are ours */
            has_ended = true;
            limit_ns = explore_now_ns() + 2000 * (int64_t)NS_PER_MS;
        }
        if (!tid && !is_alone && !by_force) {
            run.end_status = has_ended ? run.end_status : -1;
            kill_tasks(session);
            by_force = true;
            limit_ns = explore_now_ns() + 2000 * (int64_t)NS_PER_MS;
        } else if (!tid) {
            break;
        }
    }
    munmap(session->page, sizeof *session->page);
    return run.end_status;
}

/* Return addresses in the library that lie on the stack: most of them are of calls under way. */
static void describe_stack(const struct session *session, pid_t tid, uintptr_t sp)
{
    uintptr_t words[512] = {0};
    char name[128];
    struct iovec here = {words, sizeof words}, there = {(void *)sp, sizeof words};
    if (process_vm_readv(tid, &here, 1, &there, 1, 0) <= 0)
        return;
    for (unsigned i = 0, n = 0; i < 512 && n < 12; i++) {
        if (words[i] < session->text_start || words[i] >= session->text_end)
            continue;
        symbols_name(words[i] - session->base, name, sizeof name);
        printf("        %s\n", name);
        n++;
    }
}

void session_describe(struct session *session)
{
    for (int i = 0; i < SESSION_TASKS; i++) {
        pid_t tid = session->tasks[i];
        struct user_regs_struct regs;
        char name[128];
        int status;
        if (!tid)
            continue;
        if (ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0) {
            if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || waitpid(tid, &status, __WALL) != tid ||
                ptrace(PTRACE_GETREGS, tid, 0, &regs) != 0)
                continue;
        }
        if (regs.rip >= session->text_start && regs.rip < session->text_end)
            symbols_name(regs.rip - session->base, name, sizeof name);
        else
            snprintf(name, sizeof name, "%#llx", regs.rip);
        printf("    task %d at %s, system call %lld\n", tid, name, (long long)regs.orig_rax);
        describe_stack(session, tid, regs.rsp);
    }
}
