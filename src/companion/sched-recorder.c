/* SPDX-License-Identifier: BSD-3-Clause */
/* The recorder of the scheduler: a process beside the companion that takes what the kernel says of switches, wake-ups
 * and migrations out of its rings, one for each CPU, and writes what concerns the program's threads into a file
 * (fmt/sched.h). A process of its own, because its events must be open before the program starts, and because whatever
 * happens to it costs this file alone. It ends with its pipe: with all programs, or with the companion. The better ways
 * (tiers) are tried first; the last one asks /proc for totals. Ordinary code. */
#include "companion/state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"
#include "base/path.h"
#include "fmt/sched.h"
#include "sampling/abi/perf-record.h"

enum {
    ROUND_MS = 100,     /* rings that are not full enough to wake us are read so often */
    LATE_NS = 10000000, /* a record is in its ring so long after its time, unless our processor stood still */
    RING_BYTES_ROOT = 4 << 20,
    RINGS_BYTES_ROOT = 64 << 20, /* all of them */
    RING_BYTES = 256 << 10,      /* of ordinary users, whose rings all count against one limit */
    RING_BYTES_MIN = 32 << 10,
    RECORD_BYTES_MAX = 512, /* of those that we ask for; a larger one that goes over a ring's end ends the round */
    TOTALS_FIRST_MS = 20,   /* between looks at /proc: at first, and at most */
    TOTALS_LAST_MS = 1000,
    TOTALS_SHARE = 50, /* a pause is at least so many times as long as the look before it */
    NAME_BYTES = 16,
    READ_FORMAT_LOST = 1 << 4 /* Linux 6.0; newer than the oldest headers that this is compiled with */
};

/* The ring of a CPU, into which all its events write. */
struct ring {
    struct perf_event_mmap_page *page;
    struct abi_ring memory;
    uint64_t head, at; /* of this round: what the kernel had written, and what is next */
    uint64_t t_ns;     /* of the next record; UINT64_MAX: none in this round */
    uint32_t cpu;
    int32_t running; /* who came last, in records of switches; -1: not known */
    int fd;
    size_t first_fd, n_fds; /* of r->fds */
    uint64_t n_lost;        /* that the kernel has said */
    const struct perf_event_header *record;
    uint64_t wrapped[RECORD_BYTES_MAX / sizeof(uint64_t)]; /* it, when it goes over the ring's end */
};

/* A thread that has been seen. */
struct thread {
    uint32_t tid, pid;
    bool is_own;
    bool is_written; /* with this name */
    char name[NAME_BYTES];
    struct sched_total total; /* as it was written last */
    bool has_ended;           /* a process, by /proc */
};

/* Where the tracepoints' fields are. */
struct tracepoint {
    uint32_t id, pid_at, next_at; /* sched_switch: prev_pid and next_pid */
    uint32_t name_at, next_name_at;
    bool has_name; /* as an array of NAME_BYTES */
};

struct recorder {
    const struct companion *c;
    const struct companion_sched *wish;
    struct sched_writer writer;
    enum sched_tier tier;
    char why[1024];
    struct tracepoint points[COMPANION_SCHED_FORMATS];
    struct abi_layout layout;
    struct ring *rings; /* [n_rings] */
    size_t n_rings, cap_rings;
    int *fds; /* [n_fds] all events; rings have the first ones of theirs */
    size_t n_fds, cap_fds;
    struct thread *threads; /* [n_threads] */
    size_t n_threads, cap_threads;
    struct slots slots;
    uint32_t n_cpus; /* possible ones */
    char online[1024];
    int pipe_fd;
};

/* --- threads --- */

static uint64_t thread_hash(const void *item)
{
    return ((const struct thread *)item)->tid * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool thread_is_same(const void *a, const void *b)
{
    return ((const struct thread *)a)->tid == ((const struct thread *)b)->tid;
}

static const struct slots_kind thread_kind = {sizeof(struct thread), thread_hash, thread_is_same};

static struct thread *find_thread(struct recorder *r, uint32_t tid)
{
    const struct thread like = {.tid = tid};
    size_t i = slots_find(&r->slots, &thread_kind, r->threads, &like);
    return i == SLOTS_NONE ? NULL : &r->threads[i];
}

static struct thread *get_thread(struct recorder *r, uint32_t tid)
{
    const struct thread like = {.tid = tid};
    size_t i = slots_put(&r->slots, &thread_kind, &r->threads, &r->n_threads, &r->cap_threads, &like);
    return i == SLOTS_NONE ? NULL : &r->threads[i];
}

static bool is_own(struct recorder *r, uint32_t tid)
{
    const struct thread *thread = find_thread(r, tid);
    return thread && thread->is_own;
}

static void write_thread(struct recorder *r, struct thread *thread, uint64_t t_ns)
{
    const struct sched_task task = {
        .t_ns = t_ns, .tid = thread->tid, .pid = thread->pid, .is_own = thread->is_own, .comm = thread->name};
    thread->is_written = true;
    sched_writer_task(&r->writer, &task);
}

/* Names a thread; name [at most n_name], with or without NUL. */
static void set_name(struct thread *thread, const void *name, size_t n_name)
{
    size_t n = strnlen(name, n_name < NAME_BYTES - 1 ? n_name : NAME_BYTES - 1);
    memset(thread->name, 0, sizeof thread->name);
    memcpy(thread->name, name, n);
}

/* A number that a line of text names; 0 when it does not. */
static uint32_t number_behind(const char *text, const char *key)
{
    const char *found = text ? strstr(text, key) : NULL;
    return found ? (uint32_t)strtoul(found + strlen(key), NULL, 10) : 0;
}

static void name_from_proc(struct thread *thread, pid_t pid)
{
    char path[64], name[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%" PRIu32 "/comm", (long)pid, thread->tid);
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n > 0)
        name[strcspn(name, "\n")] = '\0';
    set_name(thread, name, sizeof name);
}

/* The program itself, before it starts. */
static void add_program(struct recorder *r)
{
    struct thread *thread = get_thread(r, (uint32_t)r->c->setup->launched_pid);
    if (!thread)
        return;
    thread->pid = thread->tid;
    thread->is_own = true;
    name_from_proc(thread, r->c->setup->launched_pid);
    write_thread(r, thread, clock_now_ns(CLOCK_MONOTONIC));
}

/* --- this machine --- */

/* The numbers of a list such as "0-3,8" as it goes on from *text; false at its end. */
static bool next_range(const char **text, uint32_t *first, uint32_t *last)
{
    char *end;
    while (**text && !isdigit((unsigned char)**text))
        ++*text;
    if (!**text)
        return false;
    *first = *last = (uint32_t)strtoul(*text, &end, 10);
    if (*end == '-')
        *last = (uint32_t)strtoul(end + 1, &end, 10);
    *text = end;
    return true;
}

static void read_line(const char *path, char *line, size_t n_line)
{
    FILE *file = input_stream(path);
    line[0] = '\0';
    if (file && fgets(line, (int)n_line, file))
        line[strcspn(line, "\n")] = '\0';
    if (file)
        (void)fclose(file);
}

static void look_at_cpus(struct recorder *r)
{
    char possible[sizeof r->online];
    uint32_t first, last;
    read_line("/sys/devices/system/cpu/online", r->online, sizeof r->online);
    read_line("/sys/devices/system/cpu/possible", possible, sizeof possible);
    if (!r->online[0])
        (void)snprintf(r->online, sizeof r->online, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
    const char *const lists[] = {possible, r->online};
    for (size_t i = 0; i < 2; i++)
        for (const char *at = lists[i]; next_range(&at, &first, &last);)
            r->n_cpus = last >= r->n_cpus ? last + 1 : r->n_cpus;
    if (r->n_cpus > UINT16_MAX)
        r->n_cpus = UINT16_MAX;
}

/* --- the file --- */

/* Creates the file under the first name that is free. err: ERR_IO, ERR_MEMORY */
static int create_file(struct recorder *r, const struct sched_head *head, struct error *err)
{
    const struct companion_setup *setup = r->c->setup;
    struct names_file name = {
        .rank = r->wish->rank, .host_id = r->c->host_id, .pid = (uint32_t)setup->launched_pid, .suffix = "sched"};
    int code = ERR_IO;
    (void)snprintf(name.exe, sizeof name.exe, "%.255s", setup->exe[0] ? path_last(setup->exe) : "program");
    for (; name.generation <= NAMES_MAX_GENERATION; name.generation++) {
        char *path = names_path(companion_dir(r->c), &name);
        code = path ? sched_writer_open(&r->writer, path, head, err) : error_memory(err);
        int reason = errno;
        free(path);
        if (code == 0 || reason != EEXIST)
            break;
    }
    return code;
}

static int begin_file(struct recorder *r, struct error *err)
{
    struct utsname names = {0};
    char boot[64], host[256] = "", kernel[sizeof names.release + sizeof names.machine + 1];
    (void)uname(&names);
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(kernel, sizeof kernel, "%s %s", names.release, names.machine);
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    int64_t mono_ns = (int64_t)clock_now_ns(CLOCK_MONOTONIC);
    const struct sched_head head = {.tier = (uint8_t)r->tier,
                                    .has_all = r->tier == SCHED_TIER_SWITCHES ||
                                               (r->wish->has_all && r->tier == SCHED_TIER_TRACEPOINTS),
                                    .wall_ns = (int64_t)clock_now_ns(CLOCK_REALTIME) - mono_ns,
                                    .limit_bytes = r->c->setup->max_bytes,
                                    .n_cpus = r->n_cpus,
                                    .pid = (uint32_t)r->c->setup->launched_pid,
                                    .online = r->online,
                                    .host = host,
                                    .boot_id = boot,
                                    .kernel = kernel,
                                    .why = r->why};
    int code = create_file(r, &head, err);
    for (size_t i = 0; !code && r->tier == SCHED_TIER_TRACEPOINTS && i < COMPANION_SCHED_FORMATS; i++) {
        static char names_of[COMPANION_SCHED_FORMATS][24] = {"sched_switch", "sched_waking", "sched_migrate_task"};
        static char system[] = "sched";
        const struct sched_format format = {r->points[i].id, system, names_of[i],
                                            (char *)(uintptr_t)r->wish->formats[i]};
        sched_writer_format(&r->writer, &format);
    }
    return code;
}

/* --- events --- */

/* The place of a field of n_bytes in a format's text; false: there is no such field. */
static bool find_field(const char *format, const char *name, uint32_t n_bytes, uint32_t *at)
{
    char key[64];
    (void)snprintf(key, sizeof key, " %s;\toffset:", name);
    const char *found = strstr(format, key);
    if (!found || number_behind(found, "\tsize:") != n_bytes)
        return false;
    *at = number_behind(found, "\toffset:");
    return *at < RECORD_BYTES_MAX;
}

static bool find_fields(struct recorder *r)
{
    static const char array[] = "[16]";
    bool has_all = true;
    for (size_t i = 0; i < COMPANION_SCHED_FORMATS; i++) {
        struct tracepoint *point = &r->points[i];
        const char *format = r->wish->formats[i], *name = i == 0 ? "prev_comm" : "comm";
        char whole[32];
        *point = (struct tracepoint){.id = number_behind(format, "\nID: ")};
        has_all = has_all && point->id && find_field(format, i == 0 ? "prev_pid" : "pid", 4, &point->pid_at);
        has_all = has_all && (i > 0 || find_field(format, "next_pid", 4, &point->next_at));
        (void)snprintf(whole, sizeof whole, "%s%s", name, array);
        point->has_name = find_field(format, whole, NAME_BYTES, &point->name_at) &&
                          (i > 0 || find_field(format, "next_comm[16]", NAME_BYTES, &point->next_name_at));
    }
    return has_all;
}

static void init_attr(struct perf_event_attr *attr, uint32_t type, uint64_t config, uint32_t ring_bytes)
{
    *attr = (struct perf_event_attr){.type = type,
                                     .size = sizeof *attr,
                                     .config = config,
                                     .sample_id_all = 1,
                                     .use_clockid = 1,
                                     .clockid = CLOCK_MONOTONIC,
                                     .watermark = 1,
                                     .wakeup_watermark = ring_bytes / 4};
}

static int open_event(struct recorder *r, struct perf_event_attr *attr, pid_t pid, uint32_t cpu)
{
    attr->read_format = READ_FORMAT_LOST;
    int fd = (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 && errno == EINVAL) {
        attr->read_format = 0;
        fd = (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    }
    if (fd < 0)
        return -1;
    if (!vec_reserve(&r->fds, &r->cap_fds, r->n_fds + 1, sizeof *r->fds)) {
        (void)close(fd);
        errno = ENOMEM;
        return -1;
    }
    r->fds[r->n_fds++] = fd;
    return fd;
}

/* Event i of a CPU, as its tier has it; -1 with errno. */
static int open_one(struct recorder *r, size_t i, uint32_t cpu, uint32_t ring_bytes)
{
    struct perf_event_attr attr;
    bool is_of_all = r->tier != SCHED_TIER_OWN, has_points = r->tier == SCHED_TIER_TRACEPOINTS;
    if (has_points)
        init_attr(&attr, PERF_TYPE_TRACEPOINT, r->points[i].id, ring_bytes);
    else
        init_attr(&attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, ring_bytes);
    attr.sample_type = has_points ? PERF_SAMPLE_TIME | PERF_SAMPLE_RAW : PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr.sample_period = 1;
    attr.exclude_kernel = attr.exclude_hv = attr.context_switch = !has_points;
    attr.inherit = !is_of_all;
    attr.task = attr.comm = i == 0;
    r->layout = abi_layout_of_sig(&attr);
    return open_event(r, &attr, is_of_all ? -1 : r->c->setup->launched_pid, cpu);
}

/* Opens a CPU; false with errno. One that is offline has no events. */
static bool open_cpu(struct recorder *r, uint32_t cpu, uint32_t ring_bytes)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    int first = open_one(r, 0, cpu, ring_bytes);
    if (first < 0)
        return errno == ENODEV;
    if (!vec_reserve(&r->rings, &r->cap_rings, r->n_rings + 1, sizeof *r->rings))
        return false;
    void *page = mmap(NULL, page_bytes + ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, first, 0);
    if (page == MAP_FAILED)
        return false;
    r->rings[r->n_rings++] = (struct ring){.page = page,
                                           .memory = {(unsigned char *)page + page_bytes, ring_bytes, false},
                                           .cpu = cpu,
                                           .fd = first,
                                           .first_fd = r->n_fds - 1,
                                           .n_fds = 1,
                                           .running = -1};
    for (size_t i = 1; r->tier == SCHED_TIER_TRACEPOINTS && i < COMPANION_SCHED_FORMATS; i++) {
        int fd = open_one(r, i, cpu, ring_bytes);
        if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first) != 0)
            return false;
        r->rings[r->n_rings - 1].n_fds++;
    }
    return true;
}

static void close_all(struct recorder *r)
{
    for (size_t i = 0; i < r->n_rings; i++)
        (void)munmap(r->rings[i].page, (size_t)sysconf(_SC_PAGESIZE) + r->rings[i].memory.n_bytes);
    for (size_t i = 0; i < r->n_fds; i++)
        (void)close(r->fds[i]);
    r->n_rings = r->n_fds = 0;
}

/* Opens all CPUs with rings of this size; false with errno, and nothing is open. */
static bool open_all(struct recorder *r, uint32_t ring_bytes)
{
    uint32_t first, last;
    for (const char *at = r->online; next_range(&at, &first, &last);)
        for (uint32_t cpu = first; cpu <= last && cpu < r->n_cpus; cpu++)
            if (!open_cpu(r, cpu, ring_bytes)) {
                int saved = errno;
                close_all(r);
                errno = saved;
                return false;
            }
    return r->n_rings > 0;
}

static uint32_t wanted_ring_bytes(const struct recorder *r)
{
    uint32_t n_bytes = RING_BYTES_ROOT;
    if (geteuid() != 0)
        return RING_BYTES;
    while (n_bytes > RING_BYTES && (uint64_t)n_bytes * r->n_cpus > RINGS_BYTES_ROOT)
        n_bytes /= 2;
    return n_bytes;
}

/* Opens the events of the best tier that there is, from the wanted one on. */
static void open_tier(struct recorder *r)
{
    (void)snprintf(r->why, sizeof r->why, "%s", r->wish->why);
    for (r->tier = (enum sched_tier)r->wish->tier; r->tier < SCHED_TIER_NONE; r->tier++) {
        bool is_open = false;
        errno = EINVAL;
        if (r->tier != SCHED_TIER_TRACEPOINTS || find_fields(r))
            for (uint32_t n = wanted_ring_bytes(r); n >= RING_BYTES_MIN && !is_open; n /= 2) {
                is_open = open_all(r, n);
                if (!is_open && errno != EPERM && errno != ENOMEM && errno != EINVAL)
                    break;
            }
        if (is_open)
            return;
        size_t len = strlen(r->why);
        (void)snprintf(r->why + len, sizeof r->why - len, "%s%s: %s", len ? "; " : "", sched_tier_name(r->tier),
                       strerror(errno));
    }
}

/* --- records --- */

/* The time of a record, and its thread where the layout has it. */
static bool time_of(const struct recorder *r, const struct perf_event_header *record, struct abi_sample *fields)
{
    return record->type == PERF_RECORD_SAMPLE ? abi_sample_parse_sig(record, record->size, &r->layout, fields)
                                              : abi_sample_id_parse_sig(record, record->size, &r->layout, fields);
}

/* Makes the next record of a ring the one at hand. */
static void advance(const struct recorder *r, struct ring *ring)
{
    struct abi_sample fields;
    for (;;) {
        ring->t_ns = UINT64_MAX;
        enum abi_status status = abi_ring_record_sig(&ring->memory, ring->at, ring->head, ring->wrapped,
                                                     sizeof ring->wrapped, &ring->record);
        if (status == ABI_GARBAGE)
            ring->at = ring->head;
        if (status != ABI_RECORD)
            return;
        if (time_of(r, ring->record, &fields)) {
            ring->t_ns = fields.time_ns;
            return;
        }
        ring->at += ring->record->size;
    }
}

static uint32_t word_of(const void *bytes, size_t at)
{
    uint32_t word;
    memcpy(&word, (const char *)bytes + at, sizeof word);
    return word;
}

/* A thread begins: it is the program's if the one that made it is. */
static void take_fork(struct recorder *r, const struct perf_event_header *record, uint64_t t_ns)
{
    if (record->size < sizeof *record + 16)
        return;
    uint32_t pid = word_of(record, 8), tid = word_of(record, 16);
    struct thread *parent = find_thread(r, word_of(record, 20));
    bool is_own_too = r->tier == SCHED_TIER_OWN || (parent && parent->is_own);
    char name[NAME_BYTES] = "";
    if (parent)
        memcpy(name, parent->name, sizeof name);
    struct thread *thread = is_own_too || r->wish->has_all ? get_thread(r, tid) : find_thread(r, tid);
    if (!thread)
        return;
    thread->pid = pid;
    thread->is_own = is_own_too;
    thread->is_written = false;
    memcpy(thread->name, name, sizeof name);
    if (is_own_too)
        write_thread(r, thread, t_ns);
}

static void take_comm(struct recorder *r, const struct perf_event_header *record, uint64_t t_ns)
{
    if (record->size < sizeof *record + 16)
        return;
    uint32_t pid = word_of(record, 8), tid = word_of(record, 12);
    bool makes = r->tier == SCHED_TIER_OWN || r->tier == SCHED_TIER_SWITCHES;
    struct thread *thread = makes ? get_thread(r, tid) : find_thread(r, tid);
    if (!thread)
        return;
    thread->pid = pid;
    thread->is_own |= r->tier == SCHED_TIER_OWN;
    set_name(thread, (const char *)record + 16, record->size - 16u);
    if (thread->is_own || thread->is_written || makes)
        write_thread(r, thread, t_ns);
}

/* The same where the records have no names. */
static void note_by_number(struct recorder *r, uint32_t tid, uint64_t t_ns)
{
    struct thread *thread = tid && tid <= INT32_MAX ? get_thread(r, tid) : NULL;
    if (!thread || thread->is_written)
        return;
    name_from_proc(thread, (pid_t)tid);
    if (thread->name[0])
        write_thread(r, thread, t_ns);
}

static void put_switch(struct recorder *r, const struct ring *ring, uint64_t t_ns, const struct sched_switch *what)
{
    unsigned char payload[SCHED_SWITCH_BYTES];
    const struct sched_event event = {
        .t_ns = t_ns, .cpu = (uint16_t)ring->cpu, .kind = SCHED_SWITCH, .n_bytes = SCHED_SWITCH_BYTES};
    sched_switch_put(what, payload);
    sched_writer_event(&r->writer, &event, payload);
}

/* A thread of the program is followed until it ends, which is before it leaves its CPU for the last time. */
static void take_exit(struct recorder *r, const struct ring *ring, const struct perf_event_header *record,
                      uint64_t t_ns)
{
    if (r->tier != SCHED_TIER_OWN || record->size < sizeof *record + 16)
        return;
    put_switch(r, ring, t_ns, &(struct sched_switch){word_of(record, 16), SCHED_NO_TID, SCHED_OUT | SCHED_GONE});
}

static void take_lost(struct recorder *r, struct ring *ring, const struct perf_event_header *record, uint64_t t_ns)
{
    struct sched_lost lost = {.t_ns = t_ns, .cpu = (uint16_t)ring->cpu};
    if (record->size < sizeof *record + 16)
        return;
    memcpy(&lost.n, (const char *)record + 16, sizeof lost.n);
    ring->n_lost += lost.n;
    sched_writer_lost(&r->writer, &lost);
}

/* The kernel says what was lost in the next record that it writes; of the last ones it only has the number. */
static void take_last_lost(struct recorder *r)
{
    for (size_t i = 0; i < r->n_rings; i++) {
        const struct ring *ring = &r->rings[i];
        uint64_t n_lost = 0;
        for (size_t k = 0; k < ring->n_fds; k++) {
            uint64_t values[2] = {0, 0}; /* events, lost */
            if (read(r->fds[ring->first_fd + k], values, sizeof values) == (ssize_t)sizeof values)
                n_lost += values[1];
        }
        const struct sched_lost lost = {
            .t_ns = clock_now_ns(CLOCK_MONOTONIC), .n = n_lost - ring->n_lost, .cpu = (uint16_t)ring->cpu};
        if (n_lost > ring->n_lost)
            sched_writer_lost(&r->writer, &lost);
    }
}

/* Names a thread of another program that an event is about. */
static void note_other(struct recorder *r, uint32_t tid, const void *name, uint64_t t_ns)
{
    struct thread *thread = tid && tid <= INT32_MAX ? get_thread(r, tid) : NULL;
    if (!thread || thread->is_written)
        return;
    set_name(thread, name, NAME_BYTES);
    write_thread(r, thread, t_ns);
}

/* Whether an event of a tracepoint concerns the program. */
static bool concerns(struct recorder *r, const struct tracepoint *point, const unsigned char *bytes)
{
    enum { COMMON_PID_AT = 4 };
    return is_own(r, word_of(bytes, point->pid_at)) || is_own(r, word_of(bytes, COMMON_PID_AT)) ||
           (point->next_at && is_own(r, word_of(bytes, point->next_at)));
}

static void take_point(struct recorder *r, const struct ring *ring, const struct perf_event_header *record)
{
    struct abi_sample fields;
    if (!abi_sample_parse_sig(record, record->size, &r->layout, &fields) || fields.raw.n_bytes < 8 ||
        fields.raw.n_bytes > UINT16_MAX)
        return;
    const unsigned char *bytes = fields.raw.data;
    size_t n_bytes = fields.raw.n_bytes, i = 0;
    uint16_t id;
    memcpy(&id, bytes, sizeof id);
    while (i < COMPANION_SCHED_FORMATS && r->points[i].id != id)
        i++;
    const struct tracepoint *point = &r->points[i < COMPANION_SCHED_FORMATS ? i : 0];
    if (i == COMPANION_SCHED_FORMATS || point->pid_at + 4 > n_bytes || point->next_at + 4 > n_bytes ||
        (!r->wish->has_all && !concerns(r, point, bytes)))
        return;
    bool has_name = point->has_name && point->name_at + NAME_BYTES <= n_bytes;
    if (has_name)
        note_other(r, word_of(bytes, point->pid_at), bytes + point->name_at, fields.time_ns);
    if (has_name && point->next_at && point->next_name_at + NAME_BYTES <= n_bytes)
        note_other(r, word_of(bytes, point->next_at), bytes + point->next_name_at, fields.time_ns);
    const struct sched_event event = {
        .t_ns = fields.time_ns, .cpu = (uint16_t)ring->cpu, .kind = SCHED_RAW, .n_bytes = (uint16_t)n_bytes};
    sched_writer_event(&r->writer, &event, bytes);
}

static void take_own_switch(struct recorder *r, const struct ring *ring, const struct perf_event_header *record,
                            const struct abi_sample *fields)
{
    bool is_out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
    uint32_t flags = is_out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? SCHED_PREEMPT : 0;
    const struct sched_switch what = {fields->tid, SCHED_NO_TID, (uint8_t)(is_out ? SCHED_OUT | flags : 0)};
    if (fields->tid != SCHED_NO_TID)
        put_switch(r, ring, fields->time_ns, &what);
}

/* Of the two records of a switch the one of the thread that leaves names both. A thread that has ended has no id any
 * more: it is the one that came before. */
static void take_wide_switch(struct recorder *r, struct ring *ring, const struct perf_event_header *record,
                             const struct abi_sample *fields)
{
    if (record->size < sizeof *record + 8)
        return;
    uint32_t tid = fields->tid, other = word_of(record, 12);
    bool is_out = record->misc & PERF_RECORD_MISC_SWITCH_OUT, is_gone = is_out && tid == SCHED_NO_TID;
    int32_t before = ring->running;
    ring->running = (int32_t)(is_out ? other : tid);
    if (!is_out && (before < 0 || before == ring->running)) {
        if (before < 0)
            put_switch(r, ring, fields->time_ns, &(struct sched_switch){tid, other, 0});
        return;
    }
    if (!is_out)
        return;
    if (is_gone && before > 0)
        tid = (uint32_t)before;
    uint32_t flags = SCHED_OUT | (record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? SCHED_PREEMPT : 0) |
                     (is_gone ? SCHED_GONE : 0);
    note_by_number(r, other, fields->time_ns);
    put_switch(r, ring, fields->time_ns, &(struct sched_switch){tid, other, (uint8_t)flags});
}

static void take_record(struct recorder *r, struct ring *ring)
{
    const struct perf_event_header *record = ring->record;
    struct abi_sample fields;
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        take_point(r, ring, record);
        break;
    case PERF_RECORD_FORK:
        take_fork(r, record, ring->t_ns);
        break;
    case PERF_RECORD_COMM:
        take_comm(r, record, ring->t_ns);
        break;
    case PERF_RECORD_EXIT:
        take_exit(r, ring, record, ring->t_ns);
        break;
    case PERF_RECORD_LOST:
        ring->running = -1;
        take_lost(r, ring, record, ring->t_ns);
        break;
    case PERF_RECORD_SWITCH:
        if (time_of(r, record, &fields))
            take_own_switch(r, ring, record, &fields);
        break;
    case PERF_RECORD_SWITCH_CPU_WIDE:
        if (time_of(r, record, &fields))
            take_wide_switch(r, ring, record, &fields);
        break;
    default:
        break;
    }
}

/* The ring with the earliest record, and in *then the time of the next ring's; NULL: there is none. */
static struct ring *earliest(struct recorder *r, uint64_t *then)
{
    struct ring *first = NULL;
    *then = UINT64_MAX;
    for (size_t i = 0; i < r->n_rings; i++) {
        struct ring *ring = &r->rings[i];
        if (ring->t_ns == UINT64_MAX)
            continue;
        if (!first || ring->t_ns < first->t_ns) {
            *then = first ? first->t_ns : UINT64_MAX;
            first = ring;
        } else if (ring->t_ns < *then) {
            *then = ring->t_ns;
        }
    }
    return first;
}

/* Takes all records of before end_ns out of the rings, in the order of time. A ring that is rather full is emptied
 * whatever their times. */
static void drain(struct recorder *r, uint64_t end_ns)
{
    uint64_t then;
    for (size_t i = 0; i < r->n_rings; i++) {
        struct ring *ring = &r->rings[i];
        ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
        if (ring->head - ring->at > ring->memory.n_bytes / 2)
            end_ns = UINT64_MAX;
        advance(r, ring);
    }
    for (struct ring *ring; (ring = earliest(r, &then)) && ring->t_ns < end_ns;)
        while (ring->t_ns < end_ns && ring->t_ns <= then) {
            take_record(r, ring);
            ring->at += ring->record->size;
            advance(r, ring);
        }
    for (size_t i = 0; i < r->n_rings; i++)
        __atomic_store_n(&r->rings[i].page->data_tail, r->rings[i].at, __ATOMIC_RELEASE);
}

/* --- totals --- */

/* Reads what the kernel has counted of a thread of process pid; false when it is gone. */
static bool read_total(uint32_t pid, uint32_t tid, struct sched_total *total)
{
    char path[96], text[4096];
    *total = (struct sched_total){.t_ns = clock_now_ns(CLOCK_MONOTONIC), .tid = tid, .pid = pid};
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/schedstat", pid, tid);
    read_line(path, text, sizeof text);
    total->has_schedstat =
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &total->run_ns, &total->wait_ns, &total->n_slices) == 3;
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
    read_line(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 39; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    total->cpu = (uint16_t)strtoul(at, NULL, 10);
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/status", pid, tid);
    FILE *file = input_stream(path);
    while (file && fgets(text, sizeof text, file)) {
        (void)sscanf(text, "voluntary_ctxt_switches: %" SCNu64, &total->n_voluntary);
        (void)sscanf(text, "nonvoluntary_ctxt_switches: %" SCNu64, &total->n_involuntary);
    }
    if (file)
        (void)fclose(file);
    return true;
}

static void look_at_thread(struct recorder *r, uint32_t pid, uint32_t tid)
{
    struct sched_total total;
    struct thread *thread = get_thread(r, tid);
    if (!thread || !read_total(pid, tid, &total))
        return;
    char before[NAME_BYTES];
    memcpy(before, thread->name, sizeof before);
    name_from_proc(thread, (pid_t)pid);
    if (!thread->is_written || strcmp(before, thread->name) != 0) {
        thread->pid = pid;
        thread->is_own = true;
        write_thread(r, thread, total.t_ns);
    }
    bool is_same = thread->total.tid && thread->total.run_ns == total.run_ns &&
                   thread->total.n_voluntary == total.n_voluntary &&
                   thread->total.n_involuntary == total.n_involuntary && thread->total.wait_ns == total.wait_ns;
    if (!is_same)
        sched_writer_total(&r->writer, &total);
    thread->total = total;
}

/* The threads of a process. Returns their number; 0: it is gone. */
static unsigned look_at_process(struct recorder *r, uint32_t pid)
{
    char path[64];
    unsigned n = 0;
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/task", pid);
    DIR *directory = opendir(path);
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        if (isdigit((unsigned char)entry->d_name[0])) {
            look_at_thread(r, pid, (uint32_t)strtoul(entry->d_name, NULL, 10));
            n++;
        }
    if (directory)
        (void)closedir(directory);
    return n;
}

/* A process whose parent is the program's is the program's as well. */
static void find_children(struct recorder *r)
{
    struct proc_stat stat;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        uint32_t pid = isdigit((unsigned char)entry->d_name[0]) ? (uint32_t)strtoul(entry->d_name, NULL, 10) : 0;
        if (!pid || find_thread(r, pid) || !proc_stat_read((pid_t)pid, &stat))
            continue;
        const struct thread *parent = find_thread(r, (uint32_t)stat.parent);
        struct thread *thread = parent && parent->is_own ? get_thread(r, pid) : NULL;
        if (thread) {
            thread->pid = pid;
            thread->is_own = true;
        }
    }
    if (directory)
        (void)closedir(directory);
}

static void look_at_totals(struct recorder *r)
{
    find_children(r);
    for (size_t i = 0; i < r->n_threads; i++)
        if (r->threads[i].is_own && r->threads[i].pid == r->threads[i].tid && !r->threads[i].has_ended &&
            look_at_process(r, r->threads[i].pid) == 0)
            r->threads[i].has_ended = true;
}

/* --- the process --- */

#define NOT_RECORDED "What the scheduler does cannot be recorded"

/* Leaves the reason with the companion, which tells the user: the directory may not take lines either. */
static void fail(const struct recorder *r, const char *what, const struct error *err)
{
    companion_log(r->c, "%s: %s", what, err->text);
    (void)snprintf(r->c->sched_trouble, COMPANION_TROUBLE_MAX, "%s: %.800s", what, err->text);
}

/* Waits until there is something to do. Returns false when the companion has closed the pipe. */
static bool wait_for_more(struct recorder *r, struct pollfd *fds, int timeout_ms)
{
    fds[0] = (struct pollfd){.fd = r->pipe_fd, .events = POLLIN};
    for (size_t i = 0; i < r->n_rings; i++)
        fds[i + 1] = (struct pollfd){.fd = r->rings[i].fd, .events = POLLIN};
    int n = companion_poll(fds, r->n_rings + 1, timeout_ms);
    /* events of threads that have all ended are always ready */
    for (size_t i = 0; n > 0 && i < r->n_rings; i++)
        if (fds[i + 1].revents & (POLLHUP | POLLERR))
            r->rings[i].fd = -1;
    return n <= 0 || !fds[0].revents;
}

static void record(struct recorder *r)
{
    struct error err;
    int timeout_ms = r->tier == SCHED_TIER_NONE ? TOTALS_FIRST_MS : ROUND_MS;
    struct pollfd *fds = calloc(r->n_rings + 1, sizeof *fds);
    bool goes_on = fds != NULL;
    while (goes_on) {
        goes_on = wait_for_more(r, fds, timeout_ms);
        if (r->tier == SCHED_TIER_NONE) {
            int64_t begin_ms = companion_now_ms();
            look_at_totals(r);
            int64_t cost_ms = TOTALS_SHARE * (companion_now_ms() - begin_ms);
            timeout_ms = timeout_ms * 5 / 4 < TOTALS_LAST_MS ? timeout_ms * 5 / 4 : TOTALS_LAST_MS;
            timeout_ms = cost_ms > timeout_ms ? (int)cost_ms : timeout_ms;
        }
        drain(r, goes_on ? clock_now_ns(CLOCK_MONOTONIC) - LATE_NS : UINT64_MAX);
        if (!goes_on)
            take_last_lost(r);
        if (sched_writer_flush(&r->writer, &err) != 0 && !r->c->sched_trouble[0])
            fail(r, "What the scheduler does is not recorded any more", &err); /* only counted from now on */
    }
    free(fds);
    if (sched_writer_close(&r->writer, &err) != 0 && !r->c->sched_trouble[0])
        fail(r, "The record of what the scheduler does has no end", &err);
}

static void run(const struct companion *c, int pipe_fd)
{
    struct error err = {0};
    struct recorder r = {.c = c, .wish = &c->setup->sched, .pipe_fd = pipe_fd};
    look_at_cpus(&r);
    open_tier(&r);
    int code = begin_file(&r, &err);
    if (code == 0) {
        add_program(&r);
        code = sched_writer_flush(&r.writer, &err);
        if (code != 0 && r.writer.path)
            (void)unlink(r.writer.path);
    }
    if (code != 0) {
        companion_log(c, NOT_RECORDED ": %s", err.text);
        if (c->ready_fd >= 0)
            (void)!write(c->ready_fd, err.text, strlen(err.text));
        return;
    }
    if (c->ready_fd >= 0)
        (void)close(c->ready_fd);
    record(&r);
    close_all(&r);
}

void companion_sched_start(struct companion *c)
{
    int fds[2];
    c->sched_fd = -1;
    if (!c->setup->sched.tier)
        return;
    c->sched_trouble = mmap(NULL, COMPANION_TROUBLE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->sched_trouble == MAP_FAILED || pipe2(fds, O_CLOEXEC) != 0)
        return;
    c->sched_pid = fork();
    if (c->sched_pid == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGTERM, SIG_IGN); /* the program may take its time to end */
        const int others[] = {fds[1], c->listen_fd, c->way_fd, c->mark.fd, c->done_fd, c->signal_fd, c->recipes_fd};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (others[i] >= 0)
                (void)close(others[i]);
        c->is_worker = true;
        run(c, fds[0]);
        _exit(0);
    }
    (void)close(fds[0]);
    if (c->sched_pid < 0) {
        companion_log(c, NOT_RECORDED ": %s.", strerror(errno));
        (void)close(fds[1]);
        c->sched_pid = 0;
    } else {
        c->sched_fd = fds[1];
    }
}

void companion_sched_end(struct companion *c)
{
    if (c->sched_fd >= 0)
        (void)close(c->sched_fd);
    c->sched_fd = -1;
}

void companion_sched_reaped(struct companion *c, pid_t pid, int status)
{
    if (pid != c->sched_pid)
        return;
    if (status != 0)
        companion_log(c, "The recorder of the scheduler ended (wait status %#x); its file ends there.",
                      (unsigned)status);
    if (c->sched_trouble[0])
        companion_say(c, c->sched_trouble);
    companion_sched_end(c);
    c->sched_pid = 0;
}
