/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials of what a machine claims: see probe.h. Each is made in a child, because a sandbox may kill who tries, and
 * because nothing of it is to be left in the launcher. Ordinary code of the launcher. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/mount.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "sampling/probe.h"

#define WRITES 500       /* to a watched variable */
#define CALLS 20         /* of a traced function */
#define BURN_NS 20000000 /* CPU time for clocks, which is at least two ticks of the kernel */
#define CLOCK_STEP_NS 1000000
#define TURNS 20000 /* between two looks */

/* What the child sends. */
struct finding {
    bool works;
    char reason[256];
};

static void find(struct finding *finding, bool works, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void find(struct finding *finding, bool works, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    finding->works = works;
    (void)vsnprintf(finding->reason, sizeof finding->reason, format, list);
    va_end(list);
}

static void find_refusal(struct finding *finding, const char *call)
{
    find(finding, false, "%s: %s (%s)", call, strerrorname_np(errno), strerror(errno));
}

static int open_here(struct perf_event_attr *attr)
{
    attr->disabled = 0;
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* --- clocks --- */

static uint64_t cpu_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return clock_ns_of(&now);
}

/* Computes for BURN_NS of CPU time; returns how often the blocked signal has come. */
static unsigned burn_and_count(int number)
{
    const struct timespec at_once = {0};
    volatile unsigned sum = 0;
    unsigned n = 0;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    for (uint64_t end_ns = cpu_ns() + BURN_NS; cpu_ns() < end_ns;) {
        for (unsigned i = 0; i < TURNS; i++)
            sum += i;
        n += sigtimedwait(&set, NULL, &at_once) == number;
    }
    return n;
}

static void block(int number)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void try_perf(struct finding *finding)
{
    struct perf_event_attr attr;
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    source_clock_attr(CLOCK_STEP_NS, &attr);
    int fd = open_here(&attr), number = SIGRTMIN;
    if (fd < 0) {
        find_refusal(finding, "perf_event_open");
        return;
    }
    block(number);
    bool is_set =
        fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, number) == 0 && fcntl(fd, F_SETOWN_EX, &owner) == 0;
    unsigned n = is_set ? burn_and_count(number) : 0;
    find(finding, n > 0, "a clock of %d us sent %u signals in %d ms of CPU time", CLOCK_STEP_NS / 1000, n,
         BURN_NS / 1000000);
}

static void try_timers(struct finding *finding)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    const struct itimerspec interval = {{0, CLOCK_STEP_NS}, {0, CLOCK_STEP_NS}};
    block(SIGRTMIN);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 || timer_settime(timer, 0, &interval, NULL) != 0) {
        find_refusal(finding, "timer_create(CLOCK_THREAD_CPUTIME_ID)");
        return;
    }
    unsigned n = burn_and_count(SIGRTMIN);
    find(finding, n > 0, "a timer of %d us came %u times in %d ms of CPU time", CLOCK_STEP_NS / 1000, n,
         BURN_NS / 1000000);
}

/* --- events of perf --- */

static void try_rings(struct finding *finding)
{
    struct perf_event_attr attr;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    source_attr_init(&attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
    attr.sample_period = 1;
    attr.write_backward = 0;
    volatile char *fresh = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open_here(&attr);
    if (fd < 0) {
        find_refusal(finding, "perf_event_open");
        return;
    }
    struct perf_event_mmap_page *ring = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED || fresh == MAP_FAILED) {
        find_refusal(finding, "mmap of a ring of one page");
        return;
    }
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    *fresh = 1;
    bool has_record = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE) > head;
    find(finding, has_record,
         has_record ? "a page fault left its record in a ring of one page"
                    : "a ring can be mapped, but a page fault leaves no record in it");
}

/* Reads how often an event has happened. */
static uint64_t count_of(int fd)
{
    uint64_t words[4] = {0};
    return read(fd, words, sizeof words) > 0 ? words[0] : 0;
}

static void try_breakpoints(struct finding *finding)
{
    static volatile uint64_t watched;
    struct perf_event_attr attr;
    source_attr_init(&attr, PERF_TYPE_BREAKPOINT, 0);
    attr.sample_period = 1;
    attr.sample_type = 0;
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (uintptr_t)&watched;
    attr.bp_len = sizeof watched;
    int fd = open_here(&attr);
    if (fd < 0) {
        find_refusal(finding, "perf_event_open of a breakpoint");
        return;
    }
    for (unsigned i = 0; i < WRITES; i++)
        watched = i;
    uint64_t n = environment_lacks(trial_name(TRIAL_BREAKPOINTS)) ? 0 : count_of(fd);
    find(finding, n == WRITES,
         n == WRITES ? "a hardware breakpoint counted %llu of %d writes"
                     : "a hardware breakpoint opens, but counts %llu of %d writes",
         (unsigned long long)n, WRITES);
}

/* A directory of tracefs that is mounted nowhere, for root; -1. */
static int open_unmounted(void)
{
    int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    bool is_made = syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
    int directory = is_made ? (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0) : -1;
    (void)close(fs);
    return directory;
}

int trial_open_tracefs(void)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    if (environment_lacks(trial_name(TRIAL_TRACEPOINTS))) {
        errno = EPERM;
        return -1;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int directory = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0 && faccessat(directory, "events", R_OK | X_OK, 0) == 0)
            return directory;
        if (directory >= 0)
            (void)close(directory);
    }
    return open_unmounted();
}

unsigned long trial_tracepoint_id(int tracefs, const char *event)
{
    char path[128], text[32];
    (void)snprintf(path, sizeof path, "events/%s/id", event);
    int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strtoul(text, NULL, 10);
}

static void try_tracepoints(struct finding *finding)
{
    struct perf_event_attr attr;
    int tracefs = trial_open_tracefs();
    unsigned long id = tracefs < 0 ? 0 : trial_tracepoint_id(tracefs, "sched/sched_switch");
    if (!id) {
        find(finding, false, "tracefs cannot be read: %s (%s)", strerrorname_np(errno), strerror(errno));
        return;
    }
    source_attr_init(&attr, PERF_TYPE_TRACEPOINT, id);
    attr.sample_type = 0;
    attr.exclude_kernel = attr.exclude_hv = 0;
    attr.sample_period = 1;
    int fd = open_here(&attr);
    if (fd < 0) {
        find_refusal(finding, "perf_event_open of sched:sched_switch");
        return;
    }
    const struct timespec shortly = {0, 100000};
    for (int i = 0; i < CALLS; i++)
        (void)nanosleep(&shortly, NULL);
    uint64_t n = count_of(fd);
    find(finding, n >= CALLS, "sched:sched_switch counted %llu switches of a thread that slept %d times",
         (unsigned long long)n, CALLS);
}

/* --- memory --- */

static int make_memfd(struct finding *finding)
{
    int fd = memfd_create("locus-trial", MFD_CLOEXEC);
    if (fd < 0)
        find_refusal(finding, "memfd_create");
    return fd;
}

static void try_memfd(struct finding *finding)
{
    char back = 0;
    int fd = make_memfd(finding);
    if (fd < 0)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *mapped =
        ftruncate(fd, (off_t)page) == 0 ? mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        find_refusal(finding, "a memory file of one page");
        return;
    }
    mapped[page - 1] = 'x';
    bool is_same = pread(fd, &back, 1, (off_t)page - 1) == 1 && back == 'x';
    find(finding, is_same,
         is_same ? "what was written to a memory file is in it" : "a memory file cannot be read back");
}

static void try_userfaultfd(struct finding *finding)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (fd < 0) {
        find_refusal(finding, "userfaultfd");
        return;
    }
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)memory, page}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (memory == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
        find_refusal(finding, "registration of a page with userfaultfd");
    else
        find(finding, true, "a page was registered");
}

/* --- 32-bit programs --- */

#define IA32_STATUS 7
#define IA32_ADDRESS 0x08048000u

/* A whole program: it leaves with IA32_STATUS by the system calls of i386. */
static size_t make_ia32(unsigned char *file)
{
    static const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xbb, IA32_STATUS, 0, 0, 0, 0xcd, 0x80};
    Elf32_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = EM_386,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof header,
                         .e_ehsize = sizeof header,
                         .e_phentsize = sizeof(Elf32_Phdr),
                         .e_phnum = 1};
    Elf32_Phdr segment = {
        .p_type = PT_LOAD, .p_vaddr = IA32_ADDRESS, .p_paddr = IA32_ADDRESS, .p_flags = PF_R | PF_X, .p_align = 4096};
    size_t n = sizeof header + sizeof segment;
    header.e_entry = (Elf32_Addr)(IA32_ADDRESS + n);
    segment.p_filesz = segment.p_memsz = (Elf32_Word)(n + sizeof code);
    memcpy(file, &header, sizeof header);
    memcpy(file + sizeof header, &segment, sizeof segment);
    memcpy(file + n, code, sizeof code);
    return n + sizeof code;
}

static void try_ia32(struct finding *finding)
{
    unsigned char file[256];
    static char name[] = "ia32";
    char *arguments[] = {name, NULL}, *environment[] = {NULL};
    size_t n = make_ia32(file);
    int status, fd = make_memfd(finding);
    if (fd < 0)
        return;
    pid_t child = write(fd, file, n) == (ssize_t)n ? fork() : -1;
    if (child == 0) {
        (void)fexecve(fd, arguments, environment);
        (void)syscall(SYS_exit_group, errno == IA32_STATUS ? 255 : errno);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        find_refusal(finding, "fork");
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == IA32_STATUS)
        find(finding, true, "a 32-bit program ran");
    else if (WIFEXITED(status))
        find(finding, false, "a 32-bit program cannot be run: %s (%s)", strerrorname_np(WEXITSTATUS(status)),
             strerror(WEXITSTATUS(status)));
    else
        find(finding, false, "a 32-bit program dies of signal %d", WTERMSIG(status));
}

/* --- the table --- */

static const struct {
    const char *name, *use;
    void (*run)(struct finding *finding);
    int lacking_errno; /* of the call that a machine without refuses; 0: it refuses none */
    const char *lacking_call;
} trials[TRIAL_COUNT] = {
    [TRIAL_PERF] = {"perf", "for most events", try_perf, EACCES, "perf_event_open"},
    [TRIAL_RINGS] = {"rings", "for FAULTS, context switches and the hardware's addresses", try_rings, EPERM,
                     "mmap of a ring of one page"},
    [TRIAL_BREAKPOINTS] = {"breakpoints", "for --verify-sharing and mem:ADDRESS", try_breakpoints, 0, ""},
    [TRIAL_TRACEPOINTS] = {"tracepoints", "for SUBSYSTEM:NAME and SCHED", try_tracepoints, EPERM, "open of tracefs"},
    [TRIAL_TIMERS] = {"timers", "where perf is refused", try_timers, EAGAIN, "timer_create(CLOCK_THREAD_CPUTIME_ID)"},
    [TRIAL_MEMFD] = {"memfd", "for every measurement", try_memfd, ENOSYS, "memfd_create"},
    [TRIAL_USERFAULTFD] = {"userfaultfd", "for programs that handle page faults", try_userfaultfd, EPERM,
                           "userfaultfd"},
    [TRIAL_IA32] = {"ia32", "for 32-bit programs, which are not measured", try_ia32, ENOEXEC, "execve"},
};

const char *trial_name(enum trial_kind trial)
{
    return trials[trial].name;
}

const char *trial_use(enum trial_kind trial)
{
    return trials[trial].use;
}

enum trial_kind trial_find(const char *name)
{
    unsigned i = 0;
    while (i < TRIAL_COUNT && strcmp(trials[i].name, name) != 0)
        i++;
    return (enum trial_kind)i;
}

/* What is made of perf's events is refused with them. */
static bool is_lacking(enum trial_kind trial)
{
    bool needs_perf = trial == TRIAL_RINGS || trial == TRIAL_BREAKPOINTS || trial == TRIAL_TRACEPOINTS;
    return (trials[trial].lacking_errno && environment_lacks(trials[trial].name)) ||
           (needs_perf && environment_lacks(trials[TRIAL_PERF].name));
}

static void try_in_child(enum trial_kind trial, struct finding *finding)
{
    int ends[2], status = 0;
    find(finding, false, "no process can be started to try it");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        struct finding result = {0};
        trials[trial].run(&result);
        (void)!write(ends[1], &result, sizeof result);
        (void)syscall(SYS_exit_group, 0);
    }
    (void)close(ends[1]);
    bool is_told = child > 0 && read(ends[0], finding, sizeof *finding) == (ssize_t)sizeof *finding;
    (void)close(ends[0]);
    if (child > 0)
        (void)waitpid(child, &status, 0);
    if (child > 0 && !is_told)
        find(finding, false,
             WIFSIGNALED(status) ? "who tries it is killed by signal %d" : "who tries it ends with status %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void trial_run(enum trial_kind trial, struct source_probe *out)
{
    struct finding finding = {0};
    *out = (struct source_probe){0};
#ifndef __x86_64__
    if (trial == TRIAL_IA32) {
        out->is_foreign = true;
        (void)snprintf(out->reason, sizeof out->reason, "this processor has no 32-bit programs of x86");
        return;
    }
#endif
    if (is_lacking(trial)) {
        enum trial_kind why = environment_lacks(trials[trial].name) ? trial : TRIAL_PERF;
        errno = trials[why].lacking_errno;
        find_refusal(&finding, trials[why].lacking_call);
    } else {
        try_in_child(trial, &finding);
    }
    out->works = finding.works;
    (void)snprintf(out->reason, sizeof out->reason, "%s%s", finding.reason,
                   environment_lacks(trials[trial].name) ? " (LOCUS_LACKS)" : "");
}
