/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of a thread when it ends: how much of its CPU time was spent in the program and how much in the
 * kernel, to the nanosecond for the calling thread and in ticks for another one; its page faults; how long it waited
 * for a CPU; its name. And what the process's clock shows beyond the threads that are measured. Ordinary code, with raw
 * system calls, because libc's functions are cancellation points. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/clock.h"
#include "runtime/own/process.h"
#include "runtime/process/threads.h"

#define TICK_NS 10000000u /* USER_HZ is 100 */
#define FIELD_FIRST 10  /* of those of /proc/TID/stat, counted from 1, that are read: faults that needed no disk ... */
#define FIELD_MAJOR 12  /* ... those that did ... */
#define FIELD_USER 14   /* ... utime ... */
#define FIELD_SYSTEM 15 /* ... and stime */

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * CLOCK_S_NS + (uint64_t)time->tv_usec * 1000u;
}

static bool read_own(struct thread_usage *out)
{
    struct rusage usage;
    if (own_call_sig(SYS_getrusage, RUSAGE_THREAD, &usage) != 0)
        return false;
    *out = (struct thread_usage){.user_ns = ns_of(&usage.ru_utime),
                                 .system_ns = ns_of(&usage.ru_stime),
                                 .n_page_faults = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt};
    return true;
}

/* Reads a file of /proc/self/task/TID, behind: "/stat"; returns its length, 0 when there is none. */
static size_t read_file(uint32_t tid, const char *behind, char *text, size_t n)
{
    static const char before[] = "/proc/self/task/";
    char path[64], digits[12];
    size_t n_digits = 0, at = 0;
    do
        digits[n_digits++] = (char)('0' + tid % 10);
    while (tid /= 10);
    for (size_t i = 0; before[i]; i++)
        path[at++] = before[i];
    while (n_digits)
        path[at++] = digits[--n_digits];
    for (size_t i = 0; behind[i] && at + 1 < sizeof path; i++)
        path[at++] = behind[i];
    path[at] = 0;
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long n_read = own_call_sig(SYS_read, fd, text, n);
    own_call_sig(SYS_close, fd);
    return n_read > 0 ? (size_t)n_read : 0;
}

/* The second field of a stat file [n] is the name, in parentheses; it may contain any character. */
static void name_of_stat(const char *text, size_t n, char name[ARENA_COMM_BYTES])
{
    size_t begin = 0, end = n, len = 0;
    while (begin < n && text[begin] != '(')
        begin++;
    while (end > begin && text[end - 1] != ')')
        end--;
    for (size_t i = begin + 1; i + 1 < end && len + 1 < ARENA_COMM_BYTES; i++)
        name[len++] = text[i];
    name[len] = 0;
}

static bool read_other(uint32_t tid, struct thread_usage *out, char name[ARENA_COMM_BYTES])
{
    char text[512];
    size_t n = read_file(tid, "/stat", text, sizeof text), at = n;
    uint64_t fields[FIELD_SYSTEM - FIELD_FIRST + 1] = {0};
    int field = 2;
    name_of_stat(text, n, name);
    while (at > 0 && text[at - 1] != ')')
        at--;
    if (at == 0)
        return false;
    for (; at < n && field <= FIELD_SYSTEM; at++) {
        if (text[at] == ' ')
            field++;
        else if (field >= FIELD_FIRST && field <= FIELD_SYSTEM)
            fields[field - FIELD_FIRST] = fields[field - FIELD_FIRST] * 10 + (uint64_t)(text[at] - '0');
    }
    *out = (struct thread_usage){.user_ns = fields[FIELD_USER - FIELD_FIRST] * TICK_NS,
                                 .system_ns = fields[FIELD_SYSTEM - FIELD_FIRST] * TICK_NS,
                                 .n_page_faults = fields[0] + fields[FIELD_MAJOR - FIELD_FIRST]};
    return field > FIELD_SYSTEM;
}

/* The second number of schedstat: nanoseconds that the thread was ready to run and did not. 0: the kernel does not say.
 */
static uint64_t delay_of(uint32_t tid)
{
    char text[80];
    size_t n = read_file(tid, "/schedstat", text, sizeof text), at = 0;
    uint64_t ns = 0;
    while (at < n && text[at] != ' ')
        at++;
    for (at++; at < n && text[at] >= '0' && text[at] <= '9'; at++)
        ns = ns * 10 + (uint64_t)(text[at] - '0');
    return ns;
}

/* Of threads that share a record, the name is what their names begin with. */
static void name_record(struct arena_thread *record, const char name[ARENA_COMM_BYTES])
{
    bool is_shared = atomic_load(&record->n_merged) > 0 && record->name[0];
    size_t i = 0;
    while (is_shared && i + 2 < ARENA_COMM_BYTES && name[i] && name[i] == record->name[i])
        i++;
    if (is_shared && name[i] != record->name[i]) {
        record->name[i] = '*';
        record->name[i + 1] = 0;
    }
    for (i = 0; !is_shared && i < ARENA_COMM_BYTES; i++)
        record->name[i] = name[i];
}

/* What was left out was known to the nanosecond, and a sum of another thread is in ticks: it may be less. */
static uint64_t sum_of(uint64_t past_ns, uint64_t now_ns)
{
    uint64_t sum_ns = past_ns + now_ns;
    return sum_ns > INT64_MAX ? 0 : sum_ns;
}

void thread_facts_record(struct thread_state *state)
{
    struct thread_usage usage;
    char name[ARENA_COMM_BYTES] = "";
    bool is_own = state == thread_self_sig();
    /* The name of a thread without samples is never shown, but others are compared with the first one's. */
    if (is_own && (state->samples.root || state->record->id == 0))
        (void)own_call_sig(SYS_prctl, PR_GET_NAME, name);
    if (is_own ? !read_own(&usage) : !read_other(state->record->tid, &usage, name))
        return;
    name_record(state->record, name);
    atomic_store(&state->record->user_ns, sum_of(state->past.user_ns, usage.user_ns));
    atomic_store(&state->record->system_ns, sum_of(state->past.system_ns, usage.system_ns));
    uint64_t n_page_faults = sum_of(state->past.n_page_faults, usage.n_page_faults);
    atomic_store(&state->record->n_page_faults, n_page_faults < UINT32_MAX ? (uint32_t)n_page_faults : UINT32_MAX);
    if (state->samples.root) /* what threads without samples wait for hardly matters */
        atomic_store(&state->record->delay_ns, state->past.delay_ns + delay_of(state->record->tid));
}

/* Made as in glibc's pthread_getcpuclockid: ~tid << 3 | per-thread | sched. */
clockid_t thread_facts_clock(const struct thread_state *state)
{
    return (clockid_t)(~state->record->tid << 3 | 6u);
}

struct thread_usage thread_facts_now(void)
{
    struct thread_usage now = {0};
    (void)read_own(&now);
    now.cpu_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
    return now;
}

static void take_off(struct thread_past *past, const struct thread_usage *usage)
{
    past->cpu_time_ns -= usage->cpu_ns;
    past->user_ns -= usage->user_ns;
    past->system_ns -= usage->system_ns;
    past->n_page_faults -= usage->n_page_faults;
}

void thread_facts_leave_out(struct thread_state *state)
{
    struct thread_usage usage = {0};
    char name[ARENA_COMM_BYTES] = "";
    bool is_known = read_other(state->record->tid, &usage, name);
    usage.cpu_ns = own_clock_ns_sig(thread_facts_clock(state));
    take_off(&state->past, &usage);
    if (is_known)
        state->past.delay_ns -= delay_of(state->record->tid);
}

/* --- threads that are not measured --- */

/* A program can make threads by a system call of its own; no wrapper of ours sees them. The process's CPU clock counts
 * them, too: what it shows beyond the clocks of the measured threads is theirs, or that of threads for which the arena
 * had no room. */

/* Each measured thread also runs before and after its record: the kernel's end of it, mostly unmapping. On a busy
 * virtual machine that took up to 0.1 ms of CPU time for each of 4000 threads. And clocks are not read all at the same
 * moment. */
#define UNMEASURED_LEAST_NS 20000000u
#define UNMEASURED_THREAD_NS 500000u
#define UNMEASURED_PART 50 /* of the process's time, too */

static struct {
    uint64_t before_ns; /* of the process's clock when its first thread began: of threads before exec */
} unmeasured;

void thread_unmeasured_begin(bool is_forked)
{
    if (is_forked) {
        unmeasured.before_ns = 0;
        return;
    }
    uint64_t process_ns = own_clock_ns_sig(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t thread_ns = own_clock_ns_sig(CLOCK_THREAD_CPUTIME_ID);
    if (process_is_attached_sig())
        thread_ns = 0; /* it met the runtime just now */
    unmeasured.before_ns = process_ns > thread_ns ? process_ns - thread_ns : 0;
}

/* The sum of all records' CPU times, and how many threads they are of. */
static uint64_t measured_ns(uint64_t *n_threads)
{
    struct arena_header *header = arena_header_sig();
    struct arena_chunk *chunks = (struct arena_chunk *)(void *)((char *)header + header->chunk_table_offset);
    uint32_t n_chunks = atomic_load(&header->n_chunks);
    uint64_t sum_ns = 0;
    if (n_chunks > header->chunk_limit)
        n_chunks = header->chunk_limit;
    for (uint32_t i = 0; i < n_chunks; i++) {
        char *data = (char *)header + header->chunk_data_offset + (uint64_t)i * ARENA_CHUNK_BYTES;
        struct arena_thread *records = (struct arena_thread *)(void *)data;
        uint32_t used_bytes = chunks[i].kind == ARENA_THREADS ? arena_run_used(&chunks[i], n_chunks - i) : 0;
        for (uint32_t k = 0; k < used_bytes / sizeof *records; k++) {
            sum_ns += atomic_load(&records[k].cpu_time_ns);
            *n_threads += 1 + atomic_load(&records[k].n_merged);
        }
    }
    return sum_ns;
}

void thread_unmeasured_record(uint64_t process_ns)
{
    uint64_t n_threads = 0, known_ns = measured_ns(&n_threads) + unmeasured.before_ns;
    uint64_t least_ns = UNMEASURED_LEAST_NS + n_threads * UNMEASURED_THREAD_NS + process_ns / UNMEASURED_PART;
    if (process_ns > known_ns && process_ns - known_ns > least_ns)
        atomic_store(&arena_header_sig()->unmeasured_ns, process_ns - known_ns);
}

void thread_leave_out(const struct thread_usage *usage)
{
    struct thread_state *self = thread_self_sig();
    if (!self)
        return;
    take_off(&self->past, usage);
    unmeasured.before_ns += usage->cpu_ns;
}
