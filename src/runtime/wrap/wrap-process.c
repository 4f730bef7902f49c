/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that affect the whole process: its end, entering a sandbox, limits of its memory, and locking it.
 * Ordinary code of the program's threads. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/own/zone.h"
#include "runtime/record/arena-writer.h"
#include "runtime/events/events.h"
#include "runtime/process/start.h"
#include "runtime/wrap/wrap.h"

/* --- ends that run no destructors: the measurement is finished first --- */

static void leave(int status) __attribute__((noreturn));

static void leave(int status)
{
    const long arguments[6] = {status};
    process_end_for_good(status);
    for (;;)
        (void)arch_call_sig(SYS_exit_group, arguments);
}

WRAP_EXPORT void _exit(int status)
{
    leave(status);
}

WRAP_EXPORT void _Exit(int status)
{
    leave(status);
}

#define RELEASE_TRIES 50 /* of 1 ms */

/* --- entering a sandbox: prctl, and seccomp through syscall(2), as libseccomp does --- */

typedef int prctl_function(int, ...);
typedef long syscall_function(long, ...);

static struct {
    syscall_function *syscall;
    _Atomic bool is_logged;
} real;

/* Not done at the first call, which may be before libc is ready or in a signal handler. */
__attribute__((constructor)) static void find_real(void)
{
    real.syscall = (syscall_function *)wrap_real("syscall");
}

static void log_once(const char *text)
{
    if (!atomic_exchange(&real.is_logged, true))
        arena_log_sig(text);
}

/* Notes that the program enters a sandbox. filter: the one that the kernel is about to get; NULL when it is not known.
 */
static void note_entry(const struct sock_fprog *filter)
{
    int saved_errno = errno;
    if (!process_is_ours_sig())
        return;
    /* A sample ends in this system call, which a program without signals need not allow. */
    if (filter && !sandbox_would_allow_sig(filter, SYS_rt_sigreturn)) {
        thread_switch_sig(false);
        log_once(
            "the program entered a seccomp sandbox that allows no signal handlers: from then on it is not sampled, and "
            "it cannot report its own end");
    } else if (thread_self_sig()) {
        events_settle_sig(thread_self_sig());
    }
    sandbox_enter_sig(filter);
    log_once(
        "the program entered a seccomp sandbox: threads started later are not sampled, and it cannot report its own "
        "end");
    errno = saved_errno;
}

/* Seccomp's strict mode, which allows four system calls, also forbids reading the processor's clock. */
static void note_strict_mode(void)
{
    if (process_is_ours_sig())
        sandbox_stop_clocks_sig();
    note_entry(NULL);
}

/* Notes the filter and returns whether programs under it must not be measured. Asked before the call, because the
 * filter's memory may be gone afterwards. */
static bool note_filter(const struct sock_fprog *filter)
{
    if (!sandbox_is_filter_sig(filter))
        return false;
    note_entry(filter);
    return sandbox_would_end_start_sig(filter);
}

/* result: of the call that installs the filter; if positive, a descriptor, or a thread that could not adopt the filter.
 */
static long note_result(bool is_deadly, long result)
{
    if (is_deadly && result >= 0)
        sandbox_set_deadly_sig();
    return result;
}

static long call_real(long number, const long a[6])
{
    if (real.syscall)
        return real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    long result = arch_call_sig(number, a);
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

WRAP_EXPORT int prctl(int option, ...)
{
    static prctl_function *real_prctl;
    unsigned long arguments[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        arguments[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!real_prctl)
        real_prctl = (prctl_function *)wrap_real("prctl");
    if (!real_prctl) {
        errno = ENOSYS;
        return -1;
    }
    bool is_deadly = false;
    if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_FILTER)
        is_deadly = note_filter((const struct sock_fprog *)arguments[1]);
    else if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_STRICT)
        note_strict_mode();
    else if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV && process_is_ours_sig())
        sandbox_stop_clocks_sig();
    int result = real_prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
    return (int)note_result(is_deadly, result);
}

/* The flags of a system call that makes a process; CLONE_VM for other calls. */
static uint64_t clone_flags(long number, const long a[6])
{
    if (number == SYS_clone)
        return (uint64_t)(arch_call_abi_sig() == AUDIT_ARCH_S390X ? a[1] : a[0]);
    if (number == SYS_clone3 && a[0])
        return *(const uint64_t *)a[0];
#ifdef SYS_fork
    if (number == SYS_fork)
        return 0;
#endif
    return CLONE_VM;
}

/* All hardware breakpoints of a thread are in use, perhaps by ours: then the program has them. Another thread gives up
 * its own when it is sampled next. */
static long open_again(const long a[6])
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const struct perf_event_attr *attr = (const struct perf_event_attr *)a[0];
    bool is_of_breakpoints = attr && attr->type == PERF_TYPE_BREAKPOINT;
    long result = -1;
    for (int tries = 0; is_of_breakpoints && result == -1 && errno == ENOSPC && tries < RELEASE_TRIES; tries++) {
        if (!watchpoints_release_sig())
            break;
        if (tries)
            own_call_sig(SYS_nanosleep, &pause, NULL);
        errno = ENOSPC;
        result = call_real(SYS_perf_event_open, a);
    }
    return result;
}

/* libc has no function for seccomp(2), the other call that installs filters. */
WRAP_EXPORT long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    bool is_deadly = false;
    if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_FILTER)
        is_deadly = note_filter((const struct sock_fprog *)a[2]);
    else if (number == SYS_seccomp && a[0] == SECCOMP_SET_MODE_STRICT)
        note_strict_mode();
    long result = note_result(is_deadly, call_real(number, a));
    if (result == -1 && errno == ENOSPC && number == SYS_perf_event_open)
        result = open_again(a);
    if (result > 0)
        wrap_note_clone((int)result, clone_flags(number, a));
    return result;
}

/* --- limits of memory --- */

/* A program that limits its own address space or data counts on what it needs itself. Where the limit leaves it little
 * beside our memory, the measurement ends and the memory is given back; only a process of one thread can do that. */

#define JOINED_TRIES 50 /* of 1 ms: the kernel may still count a thread that has been joined */

typedef int set_limit_function(__rlimit_resource_t, const struct rlimit *);
typedef int process_limit_function(pid_t, __rlimit_resource_t, const struct rlimit *, struct rlimit *);

static struct {
    set_limit_function *setrlimit, *setrlimit64;
    process_limit_function *prlimit, *prlimit64;
} limits;

/* Not done at the first call, which may be in a child of fork whose loader is locked for ever. */
__attribute__((constructor)) static void find_limits(void)
{
    limits.setrlimit = (set_limit_function *)wrap_real("setrlimit");
    limits.setrlimit64 = (set_limit_function *)wrap_real("setrlimit64");
    limits.prlimit = (process_limit_function *)wrap_real("prlimit");
    limits.prlimit64 = (process_limit_function *)wrap_real("prlimit64");
}

/* The directory of the process's threads has an entry for each, and two more. */
static bool has_one_thread(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct stat status;
    for (int tries = 0; tries < JOINED_TRIES; tries++) {
        if (own_call_sig(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status, 0) != 0)
            return false;
        if (status.st_nlink == 3)
            return true;
        own_call_sig(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

static void give_way(const struct alloc_site *site)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    if (!self || process_is_vfork_child_sig() || zone_leaves_room_sig(ZONE_LEFT_BYTES))
        return;
    if (has_one_thread() && !process_interrupts_us(self, site))
        process_withdraw("the program has set a limit of address space or data that is too small for the recording: "
                         "the measurement ends there");
}

/* After a call: gives way to a limit that it has set for this process. */
static int with_limit(int result, pid_t pid, __rlimit_resource_t resource, const void *limit,
                      const struct alloc_site *site)
{
    int saved_errno = errno;
    bool is_of_memory = resource == RLIMIT_AS || resource == RLIMIT_DATA;
    if (result == 0 && limit && is_of_memory && (pid == 0 || pid == (pid_t)own_pid_sig()))
        give_way(site);
    errno = saved_errno;
    return result;
}

/* A sanitizer sets limits before any constructor has run. */
static int set_limit(set_limit_function **next, __rlimit_resource_t resource, const void *limit,
                     const struct alloc_site *site)
{
    if (!*next)
        find_limits();
    if (*next)
        return with_limit((*next)(resource, limit), 0, resource, limit, site);
    errno = ENOSYS;
    return -1;
}

static int process_limit(process_limit_function **next, pid_t pid, __rlimit_resource_t resource, const void *limit,
                         void *old, const struct alloc_site *site)
{
    if (!*next)
        find_limits();
    if (*next)
        return with_limit((*next)(pid, resource, limit, old), pid, resource, limit, site);
    errno = ENOSYS;
    return -1;
}

/* The functions of both names are the same where numbers have 64 bits. */
_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64), "limits have 64 bits");

WRAP_EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    const struct alloc_site site = alloc_site_here();
    return set_limit(&limits.setrlimit, resource, limit, &site);
}

WRAP_EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
    const struct alloc_site site = alloc_site_here();
    return set_limit(&limits.setrlimit64, resource, limit, &site);
}

WRAP_EXPORT int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *old)
{
    const struct alloc_site site = alloc_site_here();
    return process_limit(&limits.prlimit, pid, resource, limit, old, &site);
}

WRAP_EXPORT int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit, struct rlimit64 *old)
{
    const struct alloc_site site = alloc_site_here();
    return process_limit(&limits.prlimit64, pid, resource, limit, old, &site);
}

/* --- mlockall --- */

/* mlockall locks the program's mappings one by one, and not the profiler's, so that ours do not count against the
 * program's limit on locked memory and cost no time and memory for populating them. Ordinary code of the program's
 * threads; raw system calls, no allocation. */

typedef int all_function(int);
typedef int none_function(void);

struct range {
    uintptr_t low, high;
};

/* The addresses that are ours: the zone and, if the runtime is a library, that library. */
struct own_ranges {
    struct range ranges[2];
};

/* A reader of /proc/self/maps. */
struct maps_reader {
    int fd;
    size_t n, at; /* bytes in the buffer, and how many of them are used */
    char bytes[4096];
};

static struct own_ranges find_ours(void)
{
    struct own_ranges ours = {0};
    zone_range_sig(&ours.ranges[0].low, &ours.ranges[0].high);
    wrap_own_image(&ours.ranges[1].low, &ours.ranges[1].high);
    return ours;
}

static int next_byte(struct maps_reader *maps)
{
    if (maps->at == maps->n) {
        long n = own_call_sig(SYS_read, maps->fd, maps->bytes, sizeof maps->bytes);
        if (n <= 0)
            return -1;
        maps->n = (size_t)n;
        maps->at = 0;
    }
    return (unsigned char)maps->bytes[maps->at++];
}

/* Reads a number and drops the byte after it; false at the end of the file. */
static bool next_number(struct maps_reader *maps, uintptr_t *number)
{
    int byte;
    *number = 0;
    while ((byte = next_byte(maps)) >= 0) {
        bool is_digit = byte >= '0' && byte <= '9';
        if (!is_digit && (byte < 'a' || byte > 'f'))
            return true;
        *number = *number << 4 | (uintptr_t)(is_digit ? byte - '0' : byte - 'a' + 10);
    }
    return false;
}

static bool next_mapping(struct maps_reader *maps, struct range *mapping)
{
    int byte;
    if (!next_number(maps, &mapping->low) || !next_number(maps, &mapping->high))
        return false;
    do
        byte = next_byte(maps);
    while (byte >= 0 && byte != '\n');
    return true;
}

/* Takes the first part of a mapping that belongs to the program off its beginning; false when none is left. */
static bool take_part(struct range *mapping, const struct own_ranges *ours, struct range *part)
{
    for (int i = 0; i < 2; i++) /* twice, because our two ranges may be adjacent */
        for (int k = 0; k < 2; k++)
            if (mapping->low >= ours->ranges[k].low && mapping->low < ours->ranges[k].high)
                mapping->low = ours->ranges[k].high;
    *part = *mapping;
    for (int k = 0; k < 2; k++)
        if (ours->ranges[k].low > part->low && ours->ranges[k].low < part->high)
            part->high = ours->ranges[k].low;
    mapping->low = part->high;
    return part->low < part->high;
}

/* Size of the program's mappings in bytes, 0 when they cannot be read; also locks them if asked to. */
static uint64_t visit_mappings(const struct own_ranges *ours, bool locks, unsigned lock_flags)
{
    struct maps_reader maps = {.fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct range mapping, part;
    uint64_t n_bytes = 0;
    if (maps.fd < 0)
        return 0;
    while (next_mapping(&maps, &mapping)) {
        if (mapping.high > (uintptr_t)-1 / 2) /* vsyscall */
            continue;
        while (take_part(&mapping, ours, &part)) {
            n_bytes += part.high - part.low;
            if (locks) /* memory that cannot be populated is no error in mlockall, either */
                own_call_sig(SYS_mlock2, part.low, part.high - part.low, lock_flags);
        }
    }
    own_call_sig(SYS_close, maps.fd);
    return n_bytes;
}

static bool may_lock_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return own_call_sig(SYS_capget, &header, data) == 0 && data[0].effective & 1u << CAP_IPC_LOCK;
}

/* Whether the kernel would allow it, not counting our memory. */
static bool fits_limit(const struct own_ranges *ours)
{
    struct rlimit limit;
    if (may_lock_all() || own_call_sig(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) != 0)
        return true;
    return visit_mappings(ours, false, 0) <= limit.rlim_cur;
}

static int real_all(int flags)
{
    static all_function *next;
    if (!next)
        next = (all_function *)wrap_real("mlockall");
    return next ? next(flags) : (int)syscall(SYS_mlockall, flags);
}

static int real_none(void)
{
    static none_function *next;
    if (!next)
        next = (none_function *)wrap_real("munlockall");
    return next ? next() : (int)syscall(SYS_munlockall);
}

/* Locks the existing mappings. */
static int lock_current(int flags)
{
    int saved_errno = errno;
    struct own_ranges ours = find_ours();
    if (!fits_limit(&ours)) {
        errno = ENOMEM;
        return -1;
    }
    /* Future mappings first, so that none is missed that another thread makes meanwhile. */
    bool is_future = flags & MCL_FUTURE, is_known = !is_future && !zone_is_locking_sig();
    bool was_future = zone_is_locking_sig();
    zone_set_locking_sig(is_future);
    int status = is_future ? real_all(flags & ~MCL_CURRENT) : is_known ? 0 : real_none();
    if (status == 0)
        (void)visit_mappings(&ours, true, flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
    if (status == 0)
        errno = saved_errno;
    else
        zone_set_locking_sig(was_future);
    return status;
}

/* Whether the kernel would accept the request. */
static bool is_valid(int flags)
{
    struct rlimit limit;
    return !(flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) &&
           (may_lock_all() || (own_call_sig(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) == 0 && limit.rlim_cur));
}

WRAP_EXPORT int mlockall(int flags)
{
    if (flags & MCL_CURRENT && process_is_ours_sig() && is_valid(flags) &&
        visit_mappings(&(struct own_ranges){0}, false, 0))
        return lock_current(flags);
    int status = real_all(flags);
    if (status == 0)
        zone_set_locking_sig(flags & MCL_FUTURE);
    return status;
}

WRAP_EXPORT int munlockall(void)
{
    int status = real_none();
    if (status == 0)
        zone_set_locking_sig(false);
    return status;
}
