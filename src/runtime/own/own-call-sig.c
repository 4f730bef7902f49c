/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of the runtime, and the seccomp filters that are asked before each; which process owns the arena, which
 * every entry point checks before it touches our data, and whether this is a child of vfork; shields; file descriptors.
 * See own-call.h. Runs anywhere. */
#include "runtime/own/own-call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/own/arch.h"
#include "runtime/own/process.h"
#include "runtime/own/zone.h"
#include "base/sigsafe.h"

/* --- the filters of a sandbox, and our system calls --- */

/* What the filters of a sandbox say: a copy of each filter, and a classic BPF machine that runs it, with the
 * instructions that seccomp accepts (Linux Documentation/userspace-api/seccomp_filter.rst, kernel/seccomp.c:
 * seccomp_check_filter). own_call_sig asks them. */

#define FILTERS_MAX 32
#define ERRNO_MAX 4095 /* the kernel's */

/* A BPF machine; all words are 32 bits wide. */
struct bpf_machine {
    uint32_t a, x, memory[BPF_MEMWORDS];
    const struct seccomp_data *call;
};

static struct {
    _Atomic bool is_entered;
    _Atomic bool is_deadly;  /* a filter would end a program that starts with our runtime */
    _Atomic bool is_unknown; /* there is a filter that we could not copy */
    _Atomic bool has_no_clock;
    _Atomic uint64_t real_ns, monotonic_ns; /* when the clocks were last read */
    _Atomic unsigned n_filters;
    struct sock_fprog filters[FILTERS_MAX];
} sandbox;

bool sandbox_is_entered_sig(void)
{
    return atomic_load_explicit(&sandbox.is_entered, memory_order_relaxed);
}

bool sandbox_is_filter_sig(const struct sock_fprog *filter)
{
    return filter && filter->filter && filter->len && filter->len <= BPF_MAXINSNS;
}

static bool copy_sig(const struct sock_fprog *filter)
{
    unsigned n = atomic_load(&sandbox.n_filters);
    size_t n_bytes = filter->len * sizeof *filter->filter;
    struct sock_filter *copy = n < FILTERS_MAX ? zone_pages_sig(n_bytes) : NULL;
    if (!copy)
        return false;
    memcpy(copy, filter->filter, n_bytes);
    sandbox.filters[n] = (struct sock_fprog){.len = filter->len, .filter = copy};
    /* If two threads enter at once, one has overwritten what the other wrote. */
    return atomic_compare_exchange_strong(&sandbox.n_filters, &n, n + 1);
}

void sandbox_enter_sig(const struct sock_fprog *filter)
{
    if (!sandbox_is_entered_sig())
        zone_reach_all_sig(); /* a later call might be refused */
    if (!filter || !copy_sig(filter))
        atomic_store(&sandbox.is_unknown, true);
    atomic_store(&sandbox.is_entered, true);
}

/* The second operand of an instruction that has one. */
static uint32_t operand_sig(const struct bpf_machine *machine, const struct sock_filter *op)
{
    return BPF_SRC(op->code) == BPF_X ? machine->x : op->k;
}

static uint32_t load_sig(const struct bpf_machine *machine, const struct sock_filter *op)
{
    uint32_t word = 0;
    switch (BPF_MODE(op->code)) {
    case BPF_IMM:
        return op->k;
    case BPF_LEN:
        return sizeof *machine->call;
    case BPF_MEM:
        return op->k < BPF_MEMWORDS ? machine->memory[op->k] : 0;
    case BPF_ABS:
        if (op->k <= sizeof *machine->call - sizeof word)
            memcpy(&word, (const char *)machine->call + op->k, sizeof word);
        return word;
    default:
        return 0;
    }
}

static uint32_t compute_sig(uint32_t a, const struct sock_filter *op, uint32_t b)
{
    switch (BPF_OP(op->code)) {
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_MUL:
        return a * b;
    case BPF_DIV:
        return b ? a / b : 0;
    case BPF_OR:
        return a | b;
    case BPF_AND:
        return a & b;
    case BPF_LSH:
        return b < 32 ? a << b : 0;
    case BPF_RSH:
        return b < 32 ? a >> b : 0;
    case BPF_XOR:
        return a ^ b;
    case BPF_NEG:
        return 0 - a;
    default:
        return a;
    }
}

/* How many instructions a jump skips. */
static uint32_t jump_sig(uint32_t a, const struct sock_filter *op, uint32_t b)
{
    switch (BPF_OP(op->code)) {
    case BPF_JA:
        return op->k;
    case BPF_JEQ:
        return a == b ? op->jt : op->jf;
    case BPF_JGT:
        return a > b ? op->jt : op->jf;
    case BPF_JGE:
        return a >= b ? op->jt : op->jf;
    default: /* BPF_JSET */
        return a & b ? op->jt : op->jf;
    }
}

/* Executes an instruction that only changes the machine's state. */
static void step_sig(struct bpf_machine *machine, const struct sock_filter *op)
{
    switch (BPF_CLASS(op->code)) {
    case BPF_LD:
        machine->a = load_sig(machine, op);
        break;
    case BPF_LDX:
        machine->x = load_sig(machine, op);
        break;
    case BPF_ST:
    case BPF_STX:
        if (op->k < BPF_MEMWORDS)
            machine->memory[op->k] = BPF_CLASS(op->code) == BPF_ST ? machine->a : machine->x;
        break;
    case BPF_ALU:
        machine->a = compute_sig(machine->a, op, operand_sig(machine, op));
        break;
    default: /* BPF_MISC */
        if (BPF_MISCOP(op->code) == BPF_TXA)
            machine->a = machine->x;
        else
            machine->x = machine->a;
    }
}

/* The result of the filter. Jumps only go forward, so it ends. */
static uint32_t run_sig(const struct sock_fprog *filter, const struct seccomp_data *call)
{
    struct bpf_machine machine = {.call = call};
    for (uint32_t i = 0; i < filter->len; i++) {
        const struct sock_filter *op = &filter->filter[i];
        if (BPF_CLASS(op->code) == BPF_RET)
            return BPF_RVAL(op->code) == BPF_A ? machine.a : op->k;
        if (BPF_CLASS(op->code) == BPF_JMP)
            i += jump_sig(machine.a, op, operand_sig(&machine, op));
        else
            step_sig(&machine, op);
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static uint32_t answer_sig(const struct sock_fprog *filter, long number)
{
    const struct seccomp_data call = {.nr = (int)number, .arch = arch_call_abi_sig()};
    return run_sig(filter, &call) & SECCOMP_RET_ACTION_FULL;
}

bool sandbox_would_allow_sig(const struct sock_fprog *filter, long number)
{
    return answer_sig(filter, number) == SECCOMP_RET_ALLOW;
}

/* The calls that our start, sampling and end make in addition to those of the C library's start. It does no harm if one
 * is refused with an error. */
bool sandbox_would_end_start_sig(const struct sock_fprog *filter)
{
    static const short calls[] = {SYS_perf_event_open,
                                  SYS_socket,
                                  SYS_connect,
                                  SYS_sendmsg,
                                  SYS_recvmsg,
                                  SYS_ppoll,
                                  SYS_fcntl,
                                  SYS_ioctl,
                                  SYS_write,
                                  SYS_madvise,
                                  SYS_mremap,
                                  SYS_getpid,
                                  SYS_gettid,
                                  SYS_getppid,
                                  SYS_getuid,
                                  SYS_readlinkat,
                                  SYS_prlimit64,
                                  SYS_getrusage,
                                  SYS_clock_gettime,
                                  SYS_nanosleep,
                                  SYS_sched_yield,
                                  SYS_rt_sigaction,
                                  SYS_rt_sigprocmask,
                                  SYS_rt_sigreturn,
                                  SYS_sigaltstack,
                                  SYS_rt_tgsigqueueinfo,
                                  SYS_timer_create,
                                  SYS_timer_settime,
                                  SYS_timer_delete,
                                  SYS_process_vm_readv,
                                  SYS_sched_getaffinity};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        uint32_t answer = answer_sig(filter, calls[i]);
        if (answer == SECCOMP_RET_KILL_PROCESS || answer == SECCOMP_RET_KILL_THREAD || answer == SECCOMP_RET_TRAP)
            return true;
    }
    return false;
}

void sandbox_set_deadly_sig(void)
{
    atomic_store(&sandbox.is_deadly, true);
}

bool sandbox_is_deadly_sig(void)
{
    return atomic_load_explicit(&sandbox.is_deadly, memory_order_relaxed);
}

bool sandbox_allows_sig(long number, const long arguments[6])
{
    struct seccomp_data call = {.nr = (int)number, .arch = arch_call_abi_sig()};
    if (!sandbox_is_entered_sig())
        return true;
    if (atomic_load_explicit(&sandbox.is_unknown, memory_order_relaxed))
        return false;
    for (int i = 0; i < 6; i++)
        call.args[i] = (uint64_t)arguments[i];
    unsigned n = atomic_load(&sandbox.n_filters);
    for (unsigned i = 0; i < n; i++)
        if ((run_sig(&sandbox.filters[i], &call) & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ALLOW)
            return false;
    return true;
}

/* Takes six arguments, also where fewer are given: AddressSanitizer takes the rest for a fault. */
__attribute__((no_sanitize("address"))) long own_call_sig(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (!sandbox_allows_sig(number, arguments)) {
        errno = ENOSYS;
        return -1;
    }
    long result = arch_call_sig(number, arguments);
    if (result < 0 && result >= -ERRNO_MAX) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

long own_mmap_sig(const void *address, size_t len_bytes, int protection, int flags, int fd, long offset)
{
    const long arguments[6] = {(long)address, (long)len_bytes, protection, flags, fd, offset};
    if (!sandbox_allows_sig(SYS_mmap, arguments)) {
        errno = ENOSYS;
        return -1;
    }
    long result = arch_call_sig(SYS_mmap, arguments);
    if (result < 0 && result >= -ERRNO_MAX) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Clocks below 0 and two others count CPU time; all other clocks are read in user space. */
uint64_t own_clock_ns_sig(clockid_t clock)
{
    struct timespec now = {0};
    int saved_errno = errno;
    if (clock < 0 || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
        (void)own_call_sig(SYS_clock_gettime, clock, &now);
    else if (atomic_load_explicit(&sandbox.has_no_clock, memory_order_relaxed))
        return atomic_load(clock == CLOCK_REALTIME ? &sandbox.real_ns : &sandbox.monotonic_ns);
    else
        clock_gettime(clock, &now);
    errno = saved_errno;
    return clock_ns_of(&now);
}

void sandbox_stop_clocks_sig(void)
{
    atomic_store(&sandbox.real_ns, own_clock_ns_sig(CLOCK_REALTIME));
    atomic_store(&sandbox.monotonic_ns, own_clock_ns_sig(CLOCK_MONOTONIC));
    atomic_store(&sandbox.has_no_clock, true);
}

uint32_t own_tid_sig(void)
{
    int saved_errno = errno;
    long tid = own_call_sig(SYS_gettid);
    errno = saved_errno;
    return tid > 0 ? (uint32_t)tid : 0;
}

/* --- who owns the process, and shields --- */

static struct {
    volatile uint32_t *owner_word; /* pid; the kernel wipes its page in a child of fork */
    _Atomic bool is_running;
} owner;

bool process_is_ours_sig(void)
{
    return owner.is_running && owner.owner_word && *owner.owner_word;
}

bool process_is_vfork_child_sig(void)
{
    return process_is_ours_sig() && *owner.owner_word != own_pid_sig();
}

void process_set_running_sig(bool is_running)
{
    owner.is_running = is_running;
}

void *process_owner_page_sig(void)
{
    return (void *)(uintptr_t)owner.owner_word;
}

void process_set_owner_sig(void *page, uint32_t pid)
{
    owner.owner_word = page;
    *owner.owner_word = pid;
}

uint32_t own_pid_sig(void)
{
    int saved_errno = errno;
    long pid = own_call_sig(SYS_getpid);
    errno = saved_errno;
    if (pid > 0)
        return (uint32_t)pid;
    return owner.owner_word ? *owner.owner_word : 0;
}

void shield_raise_sig(struct shield *shield)
{
    static const uint64_t all = UINT64_MAX;
    shield->saved_errno = errno;
    shield->is_up = !sandbox_is_entered_sig();
    if (shield->is_up)
        own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, &all, &shield->blocked, sizeof all);
}

void shield_lower_sig(const struct shield *shield)
{
    if (shield->is_up)
        own_call_sig(SYS_rt_sigprocmask, SIG_SETMASK, &shield->blocked, NULL, sizeof shield->blocked);
    errno = shield->saved_errno;
}

/* --- descriptors --- */

/* The runtime's file descriptors: see own-call.h. Raw system calls, because the program may wrap the library functions.
 */

#define LEAST 256 /* a program that may open fewer may need each of them */
#define TOP 4096  /* higher numbers enlarge the descriptor table, which every fork copies */

/* How many descriptors the program may open, up to TOP. */
static uint64_t top_sig(void)
{
    struct rlimit limit = {0};
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0)
        return 0;
    return limit.rlim_cur < TOP ? limit.rlim_cur : TOP;
}

/* The kernel gives the lowest free number above a given one. We try quarter by quarter from the top, so that the
 * numbers that programs use first are used last. Beyond TOP only the soft limit is the bound. */
int descriptors_move_up_sig(int fd, enum descriptor_use use)
{
    if (fd < 0)
        return -1;
    uint64_t top = top_sig(), lowest = use == DESCRIPTOR_EVENT ? top / 2 : top / 4;
    int moved = -1;
    for (uint64_t from = top / 4 * 3; top >= LEAST && moved < 0 && from >= lowest; from -= top / 4)
        moved = (int)own_call_sig(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
    own_call_sig(SYS_close, fd);
    return moved < 0 ? -1 : moved;
}

uint64_t descriptors_event_id_sig(int fd)
{
    uint64_t id = 0;
    return fd >= 0 && own_call_sig(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

bool descriptors_path_sig(int fd, char *path, size_t n)
{
    char link[32] = "/proc/self/fd/", digits[12];
    size_t n_digits = 0, len = strlen(link);
    for (unsigned value = (unsigned)fd; value || !n_digits; value /= 10)
        digits[n_digits++] = (char)('0' + value % 10);
    while (n_digits)
        link[len++] = digits[--n_digits];
    long len_path = own_call_sig(SYS_readlinkat, AT_FDCWD, link, path, n - 1);
    path[len_path > 0 ? len_path : 0] = '\0';
    return len_path > 0;
}
