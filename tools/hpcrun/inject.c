/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in a program that runs: see inject.h. The thread's registers, its state of the floating-point unit, its mask of
 * signals and errno are kept and given back; it is resumed where the kernel decides what becomes of an interrupted
 * system call, so that it goes on as if it had never been interrupted. src: ptrace(2), signal(7), psABI x86-64 */
#include "inject.h"

#include <dirent.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "base/process.h"

#define TRIES_MAX 400
#define PATIENCE_MS 10000      /* a call that takes longer is spoken of, again and again */
#define BEGIN_MS 30            /* that we look whether a wait begins */
#define RUN_NS 200000          /* without going to sleep: then it runs code of the program */
#define STOP_MS 200            /* in the kernel, a thread may not stop for a while */
#define CALL_STACK_BYTES 98304 /* that a call may need */
#define RED_ZONE 128           /* bytes below the stack pointer that belong to the interrupted function */
#define XSTATE_BYTES 16384     /* all that processors have by now, and more */
#define RESTART (-514L)        /* -ERESTARTNOHAND of the kernel: EINTR if a handler runs now, else once more */
#define DIRECTION_FLAG 0x400u
#define SCAN_BYTES ((uint64_t)1 << 20)
#define AROUND_ALLOCATOR                                                                                               \
    24576 /* the functions of libc's allocator lie together, those without names among the others */

struct inject_thread {
    pid_t pid, tid;
    uint64_t wait_began_ms; /* a wait for a given time in which it is now, by now_ms, or later */
    struct user_regs_struct saved;
    unsigned char xstate[XSTATE_BYTES];
    size_t n_xstate;
    uint64_t mask;
    uint64_t gadget; /* a system call instruction, where calls return to */
    int memory_fd;
    bool is_lost; /* has ended */
};

/* What is known of the program. */
struct view {
    pid_t pid;
    struct inject_modules modules;
    const struct inject_module *libc, *loader;
    uint64_t allocator_low, allocator_high; /* of libc */
    const struct inject_module *allocator;  /* another one's */
    uint64_t gadget;
    Dwfl *dwfl;
    const char *why; /* the last reason against a thread */
};

const char *inject_refusal(void)
{
    return NULL;
}

pid_t inject_pid(const struct inject_thread *thread)
{
    return thread->pid;
}

/* Says that the kernel does not let us do something; what an administrator, or the user, can do. */
static int refused(int number, pid_t pid, const char *what, struct error *err)
{
    static const char *const scopes[] = {"",
                                         (": only ancestors of a program, root, or whom it names by PR_SET_PTRACER "
                                          "can attach to it; root can set it to 0"),
                                         ": only root can attach",
                                         ": nobody can attach before the machine is started anew"};
    int scope = 0;
    FILE *file = number == EPERM || number == EACCES ? input_stream("/proc/sys/kernel/yama/ptrace_scope") : NULL;
    if (file && (fscanf(file, "%d", &scope) != 1 || scope < 0 || scope > 3))
        scope = 0;
    if (file)
        (void)fclose(file);
    char hint[200] = "";
    if (scope)
        (void)snprintf(hint, sizeof hint, "; kernel.yama.ptrace_scope is %d here%s", scope, scopes[scope]);
    return error_set(err, ERR_UNSUPPORTED, "%s %ld: %s%s", what, (long)pid, strerror(number), hint);
}

static void pause_us(unsigned us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&pause, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- stopping and resuming a thread --- */

/* Waits for the next stop of a thread: 1 it has stopped, 0 not in time, -1 it has ended. */
static int wait_stop(pid_t tid, unsigned ms, int *status)
{
    uint64_t end_ms = now_ms() + ms;
    unsigned us = 20;
    for (;;) {
        pid_t pid = waitpid(tid, status, __WALL | WNOHANG);
        if (pid == tid)
            return WIFSTOPPED(*status) ? 1 : -1;
        if (pid < 0 && errno != EINTR)
            return -1;
        if (now_ms() >= end_ms)
            return 0;
        pause_us(us);
        us = us < 1000 ? us * 2 : us;
    }
}

static bool is_event_stop(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP;
}

enum arrival { HAS_ENDED, BY_INTERRUPT, BY_JOB_CONTROL };

/* Waits until the interrupted thread stands still, and passes on what comes before. Where job control stops it in this
 * moment, that is its stop. */
static enum arrival await_interrupt(pid_t tid)
{
    int status = 0;
    uint64_t end_ms = now_ms() + STOP_MS;
    for (;;) {
        int is_stopped = wait_stop(tid, STOP_MS, &status);
        if (is_stopped < 0)
            return HAS_ENDED;
        if (is_stopped && is_event_stop(status))
            return WSTOPSIG(status) == SIGTRAP ? BY_INTERRUPT : BY_JOB_CONTROL;
        if (is_stopped)
            (void)ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(status));
        /* A thread that has begun to be traced cannot be left before it stops. */
        if (!is_stopped && now_ms() > end_ms)
            pause_us(1000);
    }
}

/* The kernel ends some waits with EINTR when a thread is merely stopped; the program must not see it. */
static bool is_cut(const struct user_regs_struct *regs)
{
    static const long calls[] = {SYS_epoll_wait,
                                 SYS_epoll_pwait,
                                 441 /* epoll_pwait2 */,
                                 SYS_semop,
                                 SYS_semtimedop,
                                 SYS_rt_sigtimedwait,
                                 SYS_io_getevents,
                                 333 /* io_pgetevents */,
                                 426 /* io_uring_enter */,
                                 SYS_read,
                                 SYS_readv,
                                 SYS_write,
                                 SYS_writev,
                                 SYS_accept,
                                 SYS_accept4,
                                 SYS_recvfrom,
                                 SYS_recvmsg,
                                 SYS_recvmmsg,
                                 SYS_sendto,
                                 SYS_sendmsg,
                                 SYS_sendmmsg,
                                 SYS_connect,
                                 SYS_futex,
                                 SYS_msgrcv,
                                 SYS_msgsnd,
                                 SYS_mq_timedsend,
                                 SYS_mq_timedreceive,
                                 SYS_wait4,
                                 SYS_waitid,
                                 SYS_poll,
                                 SYS_ppoll,
                                 SYS_select,
                                 SYS_pselect6,
                                 SYS_flock,
                                 SYS_fcntl};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if ((long)regs->orig_rax == calls[i])
            return (long)regs->rax == -EINTR;
    return false;
}

/* A wait for a given time that would begin anew, and has its time in a register. */
static bool is_timed(long call, uint64_t timeout)
{
    return (call == SYS_epoll_wait || call == SYS_epoll_pwait) && (int)timeout > 0;
}

/* The call is made once more, for the rest of its time. */
static void mend(const struct inject_thread *thread, struct user_regs_struct *regs)
{
    if (!is_cut(regs))
        return;
    regs->rax = (unsigned long long)RESTART;
    if (is_timed((long)regs->orig_rax, regs->r10)) {
        int64_t rest_ms = (int)regs->r10 - (int64_t)(now_ms() - thread->wait_began_ms);
        regs->r10 = rest_ms > 0 ? (uint64_t)rest_ms : 0;
    }
}

/* Lets a thread go that nothing was done to. */
static void let_go(const struct inject_thread *thread)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &regs) == 0 && is_cut(&regs)) {
        mend(thread, &regs);
        (void)ptrace(PTRACE_SETREGS, thread->tid, NULL, &regs);
    }
    (void)ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
}

static bool save(struct inject_thread *thread)
{
    struct iovec part = {thread->xstate, sizeof thread->xstate};
    bool is_saved = ptrace(PTRACE_GETREGS, thread->tid, NULL, &thread->saved) == 0 &&
                    ptrace(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)NT_X86_XSTATE, &part) == 0 &&
                    part.iov_len < sizeof thread->xstate &&
                    ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof thread->mask, &thread->mask) == 0;
    thread->n_xstate = part.iov_len;
    return is_saved;
}

/* To where the kernel looks for signals on the way out: there it also settles what becomes of a system call. A stop by
 * job control is such a place, too, and the kernel keeps it when the thread is let go. */
static bool to_the_way_out(const struct inject_thread *thread)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &regs) != 0)
        return false;
    regs.orig_rax = (unsigned long long)-1;
    return ptrace(PTRACE_SETREGS, thread->tid, NULL, &regs) == 0 &&
           ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0 &&
           ptrace(PTRACE_CONT, thread->tid, NULL, NULL) == 0 && await_interrupt(thread->tid) != HAS_ENDED;
}

static void give_back(struct inject_thread *thread)
{
    struct user_regs_struct regs = thread->saved;
    struct iovec part = {thread->xstate, thread->n_xstate};
    mend(thread, &regs);
    (void)ptrace(PTRACE_SETREGSET, thread->tid, (void *)(uintptr_t)NT_X86_XSTATE, &part);
    (void)ptrace(PTRACE_SETREGS, thread->tid, NULL, &regs);
    (void)ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof thread->mask, &thread->mask);
    (void)ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
}

/* --- calls --- */

void inject_read_text(const struct inject_thread *thread, uint64_t address, char *text, size_t n)
{
    ssize_t n_read = address ? pread(thread->memory_fd, text, n - 1, (off_t)address) : 0;
    text[n_read > 0 ? n_read : 0] = '\0';
}

/* Waits for the next stop of a thread in a call, as long as it takes: a thread that is let go in a call ends the
 * program. False when it has ended. */
static bool wait_in_call(const struct inject_thread *thread, int *status)
{
    int is_stopped;
    for (unsigned ms = PATIENCE_MS; !(is_stopped = wait_stop(thread->tid, PATIENCE_MS, status)); ms += PATIENCE_MS)
        (void)fprintf(
            stderr,
            "hpcrun: thread %ld of process %ld has been in a call of ours for %u s, which may wait for another "
            "thread; it cannot be let go before the end of the call\n",
            (long)thread->tid, (long)thread->pid, ms / 1000);
    return is_stopped > 0;
}

/* Runs the thread until it comes to our instruction, with this stack pointer. Its signals are blocked. */
static int run_to_end(struct inject_thread *thread, uint64_t sp, uint64_t *result, struct error *err)
{
    struct user_regs_struct regs;
    int status = 0, number = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, thread->tid, NULL, (void *)(uintptr_t)number) != 0)
            break;
        number = 0;
        if (!wait_in_call(thread, &status))
            break;
        if (is_event_stop(status)) /* job control: the call goes on */
            continue;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            number = WSTOPSIG(status);
            if (number == SIGSTOP)
                continue;
            return error_set(err, ERR_IO, "a call in thread %ld raised signal %d", (long)thread->tid, number);
        }
        if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &regs) == 0 && regs.rip == thread->gadget + 2 && regs.rsp == sp) {
            *result = regs.orig_rax;
            if (to_the_way_out(thread))
                return 0;
            break;
        }
    }
    thread->is_lost = true;
    return error_set(err, ERR_IO, "thread %ld has ended in a call", (long)thread->tid);
}

int inject_call(struct inject_thread *thread, uint64_t address, const char *text, uint64_t number, uint64_t *result,
                struct error *err)
{
    struct user_regs_struct regs = thread->saved;
    uint64_t data = (thread->saved.rsp - RED_ZONE - INJECT_TEXT_MAX) & ~UINT64_C(63), sp = data - 8;
    size_t n_text = text ? strlen(text) + 1 : 0;
    const uint64_t all = ~UINT64_C(0);
    bool is_written = n_text <= INJECT_TEXT_MAX &&
                      pwrite(thread->memory_fd, text ? text : "", n_text, (off_t)data) == (ssize_t)n_text &&
                      pwrite(thread->memory_fd, &thread->gadget, sizeof thread->gadget, (off_t)sp) == 8;
    regs.rip = address;
    regs.rsp = sp;
    regs.rbp = 0;
    regs.rdi = text ? data : number;
    regs.rsi = number;
    regs.rax = 0;
    regs.orig_rax = (unsigned long long)-1;
    regs.eflags &= ~(unsigned long long)DIRECTION_FLAG;
    if (!is_written || ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof all, &all) != 0 ||
        ptrace(PTRACE_SETREGS, thread->tid, NULL, &regs) != 0)
        return error_set(err, ERR_IO, "thread %ld cannot be made to call: %s", (long)thread->tid, strerror(errno));
    return run_to_end(thread, sp + 8, result, err);
}

/* --- safe points --- */

static bool against(struct view *view, const char *why)
{
    view->why = why;
    return false;
}

/* A line of /proc/PID/task/TID/status as a hexadecimal number. */
static uint64_t status_number(const struct inject_thread *thread, const char *name)
{
    char path[64], line[256];
    unsigned long long value = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", (long)thread->pid, (long)thread->tid);
    FILE *file = input_stream(path);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name), NULL, 16);
    if (file)
        (void)fclose(file);
    return value;
}

static bool has_pending_signal(const struct inject_thread *thread)
{
    uint64_t pending = status_number(thread, "SigPnd:") | status_number(thread, "ShdPnd:");
    return pending & ~thread->mask;
}

#define GET_RSEQ 0x420f /* PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13 */

/* In a restartable sequence the kernel would have to know where the thread really was. */
static bool is_in_rseq(const struct inject_thread *thread)
{
    struct {
        uint64_t address;
        uint32_t n_bytes, signature, flags, pad;
    } rseq = {0};
    uint64_t section = 0;
    if (ptrace((enum __ptrace_request)GET_RSEQ, thread->tid, (void *)sizeof rseq, &rseq) <= 0 || !rseq.address)
        return false;
    return pread(thread->memory_fd, &section, sizeof section, (off_t)(rseq.address + 8)) == 8 && section;
}

/* The bounds of the mapping that holds address. */
static bool mapping_of(pid_t pid, uint64_t address, uint64_t *low, uint64_t *high, bool *is_main_stack)
{
    char path[64], *line = NULL;
    size_t n_line = 0;
    bool is_found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    FILE *file = input_stream(path);
    while (file && !is_found && getline(&line, &n_line, file) > 0) {
        unsigned long long from, to;
        is_found = sscanf(line, "%llx-%llx", &from, &to) == 2 && address >= from && address < to;
        *low = from;
        *high = to;
        *is_main_stack = strstr(line, "[stack]") != NULL;
    }
    free(line);
    if (file)
        (void)fclose(file);
    return is_found;
}

static bool has_stack_room(const struct inject_thread *thread, uint64_t *high)
{
    uint64_t low = 0;
    bool is_main = false;
    struct rlimit limit = {0};
    if (!mapping_of(thread->pid, thread->saved.rsp, &low, high, &is_main))
        return false;
    if (is_main && prlimit(thread->pid, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < *high)
        low = *high - limit.rlim_cur;
    return thread->saved.rsp - low > CALL_STACK_BYTES + RED_ZONE + INJECT_TEXT_MAX + 64;
}

static bool is_in_code(const struct inject_module *module, uint64_t address)
{
    return module && address >= module->code_low && address < module->code_high;
}

/* Whether the address lies where a lock of the loader or of an allocator may be held. */
static bool is_forbidden(const struct view *view, uint64_t address)
{
    return is_in_code(view->loader, address) || is_in_code(view->allocator, address) ||
           (address >= view->allocator_low && address < view->allocator_high);
}

/* Functions in which something may be half done that dlopen, or a child of fork, would meet; a star at the end stands
 * for more letters, and only names that no program gives to its own functions have one. */
static bool is_name_forbidden(const char *name)
{
    static const char *const names[] = {"malloc",
                                        "calloc",
                                        "realloc",
                                        "reallocarray",
                                        "free",
                                        "memalign",
                                        "posix_memalign",
                                        "aligned_alloc",
                                        "valloc",
                                        "pvalloc",
                                        "_Znw*",
                                        "_Zna*",
                                        "_Zdl*",
                                        "_Zda*",
                                        "dlopen",
                                        "dlclose",
                                        "dlsym",
                                        "dlvsym",
                                        "dlmopen",
                                        "dladdr",
                                        "dladdr1",
                                        "dlinfo",
                                        "dlerror",
                                        "dl_iterate_phdr",
                                        "_dl_*",
                                        "__libc_dl*",
                                        "__tls_get_addr",
                                        "fork",
                                        "vfork",
                                        "_Fork",
                                        "__fork",
                                        "__vfork",
                                        "__libc_fork",
                                        "__libc_vfork",
                                        "posix_spawn",
                                        "posix_spawnp",
                                        "__posix_spawn*",
                                        "system",
                                        "popen",
                                        "pthread_create*",
                                        "thrd_create",
                                        "exit",
                                        "_exit",
                                        "quick_exit",
                                        "abort",
                                        "pthread_exit",
                                        "__pthread_exit",
                                        "__cxa_atexit",
                                        "__cxa_finalize",
                                        "_Unwind_*",
                                        "__cxa_throw",
                                        "__cxa_rethrow",
                                        "__libc_system",
                                        "__libc_malloc",
                                        "__libc_free",
                                        "__libc_calloc",
                                        "__libc_realloc",
                                        "__libc_memalign",
                                        "__register_atfork",
                                        "__pthread_create*"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        bool is_begin = names[i][n - 1] == '*';
        if (is_begin ? strncmp(name, names[i], n - 1) == 0 : strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

struct walk {
    struct view *view;
    const struct inject_thread *thread;
    unsigned n;
    bool is_bad;
};

static bool is_after_system_call(const struct inject_thread *thread, uint64_t pc)
{
    unsigned char code[2] = {0};
    return pread(thread->memory_fd, code, sizeof code, (off_t)(pc - 2)) == 2 && code[0] == 0x0f && code[1] == 0x05;
}

static int visit_frame(Dwfl_Frame *frame, void *context)
{
    struct walk *walk = context;
    struct view *view = walk->view;
    Dwarf_Addr pc = 0;
    bool is_interrupted = false;
    if (!dwfl_frame_pc(frame, &pc, &is_interrupted))
        return DWARF_CB_ABORT;
    bool is_leaf = walk->n++ == 0;
    uint64_t at = is_interrupted ? pc : pc - 1;
    Dwfl_Module *module = dwfl_addrmodule(view->dwfl, at);
    const char *name = module ? dwfl_module_addrname(module, at) : NULL;
    if (is_interrupted && !is_leaf)
        walk->is_bad = !against(view, "a signal handler runs");
    else if (is_forbidden(view, at) || (name && is_name_forbidden(name)))
        walk->is_bad =
            !against(view, "it is in the loader, the allocator, or about to make or end a thread or process");
    else if (is_leaf && is_in_code(view->libc, at) && !is_after_system_call(walk->thread, pc))
        walk->is_bad = !against(view, "it is in a function of libc");
    return walk->is_bad ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* Where the callers are not known to the end, every word of the stack counts that could be a return address. */
static bool is_stack_clean(struct view *view, const struct inject_thread *thread, uint64_t high)
{
    uint64_t low = thread->saved.rsp, n = high - low < SCAN_BYTES ? high - low : SCAN_BYTES;
    uint64_t *words = malloc(n);
    bool is_clean = words && pread(thread->memory_fd, words, n, (off_t)low) == (ssize_t)n;
    for (size_t i = 0; is_clean && i < n / sizeof *words; i++)
        is_clean = !is_forbidden(view, words[i]);
    free(words);
    return is_clean || against(view, "its callers are not known, and may be the loader or the allocator");
}

/* Whether it changes what memory there is. The C library does so with its locks held: those of its heaps, and that of
 * the stacks it keeps, which the loader wants too. */
static bool is_mapping(const struct inject_thread *thread)
{
    static const long calls[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_brk};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if ((long)thread->saved.orig_rax == calls[i])
            return true;
    return false;
}

static bool is_safe(struct view *view, const struct inject_thread *thread)
{
    struct walk walk = {.view = view, .thread = thread};
    uint64_t high = 0;
    if (has_pending_signal(thread))
        return against(view, "a signal is about to be handled");
    if (is_mapping(thread))
        return against(view, "it changes its memory");
    if (is_in_rseq(thread))
        return against(view, "it is in a restartable sequence");
    if (!has_stack_room(thread, &high))
        return against(view, "its stack has no room for a call");
    int status = dwfl_getthread_frames(view->dwfl, thread->tid, visit_frame, &walk);
    if (walk.is_bad)
        return false;
    if (!walk.n)
        return against(view, "its callers are not known");
    return status == 0 || is_stack_clean(view, thread, high);
}

/* --- what is known of the program --- */

static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word crc, char **found)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)file;
    (void)link;
    (void)crc;
    (void)found;
    return -1;
}

static uint64_t find_gadget(const struct inject_module *libc, int memory_fd)
{
    unsigned char page[4096 + 1];
    for (uint64_t at = libc->code_low; at < libc->code_high; at += 4096) {
        ssize_t n = pread(memory_fd, page, sizeof page, (off_t)at);
        for (ssize_t i = 0; i + 1 < n; i++)
            if (page[i] == 0x0f && page[i + 1] == 0x05)
                return at + (uint64_t)i;
    }
    return 0;
}

static void find_allocator(struct view *view)
{
    static const char *const names[] = {"malloc",   "free",        "calloc",      "realloc",
                                        "memalign", "malloc_trim", "malloc_info", "posix_memalign"};
    static const char *const others[] = {"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc",
                                         "libhoard",    "libsnmalloc", "librpmalloc"};
    view->allocator_low = UINT64_MAX;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t at = inject_function(view->libc, names[i]);
        if (at && at < view->allocator_low)
            view->allocator_low = at;
        if (at > view->allocator_high)
            view->allocator_high = at;
    }
    view->allocator_low -= AROUND_ALLOCATOR;
    view->allocator_high += AROUND_ALLOCATOR;
    view->allocator = inject_module_named(&view->modules, others, sizeof others / sizeof *others);
    if (!view->allocator && view->modules.n && inject_function(&view->modules.modules[0], "malloc"))
        view->allocator = &view->modules.modules[0]; /* the executable has one */
}

static void view_fini(struct view *view)
{
    if (view->dwfl)
        dwfl_end(view->dwfl);
    view->dwfl = NULL;
    inject_modules_fini(&view->modules);
}

static int view_make(struct view *view, pid_t pid, int memory_fd, struct error *err)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = no_debuginfo};
    *view = (struct view){.pid = pid};
    int status = inject_modules_read(pid, &view->modules, err);
    if (status != 0)
        return status;
    view->libc = inject_libc(&view->modules);
    view->loader = inject_loader(&view->modules);
    view->dwfl = dwfl_begin(&callbacks);
    bool is_known = view->libc && view->loader && view->dwfl && dwfl_linux_proc_report(view->dwfl, pid) == 0 &&
                    dwfl_report_end(view->dwfl, NULL, NULL) == 0 && dwfl_linux_proc_attach(view->dwfl, pid, true) == 0;
    if (!is_known) {
        view_fini(view);
        return error_set(err, ERR_UNSUPPORTED, "process %ld: its modules cannot be read", (long)pid);
    }
    view->gadget = find_gadget(view->libc, memory_fd);
    find_allocator(view);
    return 0;
}

/* --- a thread at a safe point --- */

struct inject_doing inject_look(pid_t pid, pid_t tid)
{
    struct inject_doing doing = {.call = -1};
    struct proc_stat stat;
    char path[64], text[256];
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/syscall", (long)pid, (long)tid);
    FILE *file = input_stream(path);
    char *at = file ? fgets(text, sizeof text, file) : NULL;
    if (file)
        (void)fclose(file);
    if (at && *at != 'r')
        doing.call = strtol(at, &at, 10);
    for (unsigned i = 0; doing.call >= 0 && i < 6; i++)
        doing.arguments[i] = strtoull(at, &at, 16);
    (void)proc_stat_read(tid, &stat);
    doing.state = stat.state;
    return doing;
}

/* Whether a call that sleeps may have done a part of its work, which it would return when the thread is stopped. One
 * that reads returns with what there is, unless it was told to wait for all. */
static bool has_part_done(const struct inject_doing *doing)
{
    static const long calls[] = {SYS_write,          SYS_writev,          SYS_pwrite64,         SYS_pwritev,
                                 328 /* pwritev2 */, SYS_sendto,          SYS_sendmsg,          SYS_sendmmsg,
                                 SYS_sendfile,       SYS_splice,          SYS_vmsplice,         SYS_tee,
                                 SYS_recvmmsg,       SYS_copy_file_range, SYS_process_vm_readv, SYS_vfork};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (doing->call == calls[i])
            return true;
    return (doing->call == SYS_recvfrom && doing->arguments[3] & MSG_WAITALL) ||
           (doing->call == SYS_recvmsg && doing->arguments[2] & MSG_WAITALL);
}

/* Whether a call that sleeps has a time in memory after which it gives up, and would begin to wait anew. */
static bool has_time_in_memory(const struct inject_doing *doing)
{
    return (doing->call == SYS_rt_sigtimedwait && doing->arguments[2]) ||
           (doing->call == SYS_semtimedop && doing->arguments[3]) ||
           (doing->call == SYS_io_getevents && doing->arguments[4]) ||
           (doing->call == 333 /* io_pgetevents */ && doing->arguments[4]) ||
           (doing->call == 441 /* epoll_pwait2 */ && doing->arguments[3]);
}

/* How often the thread has gone to sleep. */
static uint64_t n_sleeps(pid_t tid)
{
    char text[64];
    return proc_status_line(tid, "voluntary_ctxt_switches:", text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* Waits a little for the thread to begin another wait; when that was, 0: it has not. */
static uint64_t await_begin(pid_t tid)
{
    uint64_t before = n_sleeps(tid);
    for (uint64_t last_ms = now_ms(), end_ms = last_ms + BEGIN_MS; last_ms < end_ms;) {
        pause_us(1000);
        if (n_sleeps(tid) != before)
            return last_ms;
        last_ms = now_ms();
    }
    return 0;
}

/* CPU time of the thread, ns. */
static uint64_t cpu_ns(pid_t pid, pid_t tid)
{
    char path[64];
    unsigned long long ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/schedstat", (long)pid, (long)tid);
    FILE *file = input_stream(path);
    if (file && fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    if (file)
        (void)fclose(file);
    return ns;
}

/* Whether the thread has run for a while without going to sleep. One that can run may also have been woken inside of a
 * call, and go on there. */
static bool runs_freely(pid_t pid, pid_t tid)
{
    uint64_t before = n_sleeps(tid), before_ns = cpu_ns(pid, tid);
    for (uint64_t end_ms = now_ms() + BEGIN_MS; now_ms() < end_ms;) {
        pause_us(500);
        if (n_sleeps(tid) != before)
            return false;
        if (cpu_ns(pid, tid) - before_ns >= RUN_NS)
            return true;
    }
    return false;
}

/* Whether the thread can be stopped without that anything shows of it; not when it sleeps in a call that would return
 * something else then. A wait for a given time is known from its beginning. */
static bool may_stop(struct inject_thread *thread)
{
    struct inject_doing doing = inject_look(thread->pid, thread->tid);
    thread->wait_began_ms = now_ms();
    if (is_timed(doing.call, doing.arguments[3])) {
        thread->wait_began_ms = await_begin(thread->tid);
        if (!thread->wait_began_ms)
            return false;
        doing = inject_look(thread->pid, thread->tid);
    }
    if (doing.state == 'R')
        return runs_freely(thread->pid, thread->tid);
    return doing.state == 'S' && doing.call >= 0 && !has_part_done(&doing) && !has_time_in_memory(&doing);
}

/* Stops the thread, asks whether it is at a safe point, and if so lets work make its calls. 1: it has. */
static int try_thread(struct view *view, struct inject_thread *thread, inject_work *work, void *context, int *result,
                      struct error *err)
{
    if (!may_stop(thread)) {
        (void)against(view, "it sleeps in a call that would return something else, or is stopped");
        return 0;
    }
    if (ptrace(PTRACE_SEIZE, thread->tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD) != 0)
        return errno == ESRCH ? 0 : refused(errno, thread->tid, "the kernel does not let hpcrun trace thread", err);
    enum arrival arrival =
        ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0 ? await_interrupt(thread->tid) : HAS_ENDED;
    if (arrival == HAS_ENDED)
        return 0;
    if (arrival == BY_JOB_CONTROL) { /* nothing was changed yet, and it stays stopped */
        (void)ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
        return 0;
    }
    if (!save(thread) || !is_safe(view, thread)) {
        let_go(thread);
        return 0;
    }
    *result = work(thread, context, err);
    if (!thread->is_lost)
        give_back(thread);
    return 1;
}

static int errno_kept(struct inject_thread *thread, const struct view *view, uint64_t *address, int *value,
                      struct error *err)
{
    uint64_t function = inject_function(view->libc, "__errno_location");
    int status = function ? inject_call(thread, function, NULL, 0, address, err)
                          : error_set(err, ERR_UNSUPPORTED, "its libc has no errno");
    if (status == 0 && pread(thread->memory_fd, value, sizeof *value, (off_t)*address) != sizeof *value)
        status =
            error_set(err, ERR_IO, "the memory of process %ld cannot be read: %s", (long)thread->pid, strerror(errno));
    return status;
}

/* The wish of a caller of inject_run, and what is around it. */
struct wish {
    const struct view *view;
    inject_work *work;
    void *context;
};

static int work_with_errno(struct inject_thread *thread, void *context, struct error *err)
{
    const struct wish *wish = context;
    uint64_t address = 0;
    int value = 0, status = errno_kept(thread, wish->view, &address, &value, err);
    if (status != 0)
        return status;
    status = wish->work(thread, wish->context, err);
    if (!thread->is_lost)
        (void)!pwrite(thread->memory_fd, &value, sizeof value, (off_t)address);
    return status;
}

/* Whoever ends or stops us while a thread is ours ends the program: our signals wait until the thread goes on. */
static int try_undisturbed(struct view *view, struct inject_thread *thread, struct wish *wish, int *result,
                           struct error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    int tried = try_thread(view, thread, work_with_errno, wish, result, err);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return tried;
}

/* The thread of the process that comes next in turn: the first one, then the others. */
static pid_t nth_thread(pid_t pid, unsigned n)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *directory = opendir(path);
    pid_t tid = pid;
    unsigned n_threads = 0, n_seen = 0;
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        n_threads += atol(entry->d_name) > 0;
    if (directory)
        rewinddir(directory);
    for (const struct dirent *entry; directory && n_threads && (entry = readdir(directory));)
        if (atol(entry->d_name) > 0 && n_seen++ == n % n_threads)
            tid = (pid_t)atol(entry->d_name);
    if (directory)
        (void)closedir(directory);
    return tid;
}

int inject_run(pid_t pid, inject_work *work, void *context, struct error *err)
{
    char path[64];
    static struct inject_thread thread;
    struct view view;
    int result = 0, tried = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    int memory_fd = open(path, O_RDWR | O_CLOEXEC);
    if (memory_fd < 0 && (errno == ENOENT || errno == ESRCH))
        return error_set(err, ERR_IO, "process %ld has ended", (long)pid);
    if (memory_fd < 0)
        return refused(errno, pid, "the kernel does not let hpcrun reach the memory of process", err);
    int status = view_make(&view, pid, memory_fd, err);
    struct wish wish = {&view, work, context};
    for (unsigned i = 0; status == 0 && !tried && i < TRIES_MAX; i++) {
        pid_t tid = i % 2 ? nth_thread(pid, i / 2) : pid;
        thread = (struct inject_thread){.pid = pid, .tid = tid, .gadget = view.gadget, .memory_fd = memory_fd};
        if (kill(pid, 0) != 0 && errno == ESRCH)
            status = error_set(err, ERR_IO, "process %ld has ended", (long)pid);
        else
            tried = try_undisturbed(&view, &thread, &wish, &result, err);
        if (tried < 0)
            status = tried;
        if (!tried)
            pause_us(1000 + i % 16 * 1000);
    }
    if (status == 0 && tried <= 0)
        status =
            error_set(err, ERR_UNSUPPORTED, "process %ld: no thread came to a safe point in %d tries; the last one: %s",
                      (long)pid, TRIES_MAX, view.why ? view.why : "it has ended");
    view_fini(&view);
    (void)close(memory_fd);
    return status == 0 ? result : status;
}
