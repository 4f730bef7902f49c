/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of a thread's CPU time was spent in the program and how much in the kernel. The kernel knows: of the calling
 * thread to the nanosecond, of another one in ticks. Ordinary code, with raw system calls: libc's would be cancellation
 * points of the program. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/thread-internal.h"
#include "runtime/own-call.h"

#define TICK_NS 10000000u /* USER_HZ is 100 */
#define USER_FIELD 14     /* of /proc/TID/stat, counted from 1: utime, then stime */

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

static bool read_own(uint64_t *user_ns, uint64_t *system_ns)
{
    struct rusage usage;
    if (own_call_sig(SYS_getrusage, RUSAGE_THREAD, &usage) != 0)
        return false;
    *user_ns = ns_of(&usage.ru_utime);
    *system_ns = ns_of(&usage.ru_stime);
    return true;
}

static size_t read_stat(uint32_t tid, char *text, size_t n)
{
    static const char before[] = "/proc/self/task/", behind[] = "/stat";
    char path[64], digits[12];
    size_t n_digits = 0, at = 0;
    do
        digits[n_digits++] = (char)('0' + tid % 10);
    while (tid /= 10);
    for (size_t i = 0; before[i]; i++)
        path[at++] = before[i];
    while (n_digits)
        path[at++] = digits[--n_digits];
    for (size_t i = 0; i < sizeof behind; i++)
        path[at++] = behind[i];
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long n_read = own_call_sig(SYS_read, fd, text, n);
    own_call_sig(SYS_close, fd);
    return n_read > 0 ? (size_t)n_read : 0;
}

/* The name, the second field, is in parentheses and may hold anything. */
static bool read_other(uint32_t tid, uint64_t *user_ns, uint64_t *system_ns)
{
    char text[512];
    size_t n = read_stat(tid, text, sizeof text), at = n;
    uint64_t ticks[2] = {0, 0};
    int field = 2;
    while (at > 0 && text[at - 1] != ')')
        at--;
    if (at == 0)
        return false;
    for (; at < n && field < USER_FIELD + 2; at++) {
        if (text[at] == ' ')
            field++;
        else if (field >= USER_FIELD && field < USER_FIELD + 2)
            ticks[field - USER_FIELD] = ticks[field - USER_FIELD] * 10 + (uint64_t)(text[at] - '0');
    }
    *user_ns = ticks[0] * TICK_NS;
    *system_ns = ticks[1] * TICK_NS;
    return field >= USER_FIELD + 2;
}

void thread_times_record(struct thread_state *state)
{
    uint64_t user_ns, system_ns;
    bool is_own = state == thread_self_sig();
    if (is_own ? !read_own(&user_ns, &system_ns) : !read_other(state->record->tid, &user_ns, &system_ns))
        return;
    atomic_store(&state->record->user_ns, state->past.user_ns + user_ns);
    atomic_store(&state->record->system_ns, state->past.system_ns + system_ns);
}
