/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the loops under a sampling signal in a child process and judges the counts. */
#include "sampling/skid.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sampling/skid-kernels.h"

#define MEMORY_BYTES (8u << 20) /* beyond every second-level cache, yet quick to fill */
#define LINE_BYTES 64u
#define PERIOD_NS 500000 /* 2 kHz */
#define LOOP_NS 40000000 /* of CPU time for each loop */
#define TURNS 2000       /* between two looks at the clock */
#define SAMPLES_MIN 20
#define PERCENT_MIN 90

/* In memory that parent and child share. */
struct report {
    struct skid_kernel kernels[SKID_KERNELS];
    char trigger[32];
    int failed_errno; /* of the last trigger that was tried */
};

static uint64_t cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool start_perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = PERIOD_NS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .disabled = 1,
                                   .wakeup_events = 1};
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    return fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 &&
           fcntl(fd, F_SETOWN_EX, &owner) == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

static bool start_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    struct itimerspec interval = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    timer_t timer;
    return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &interval, NULL) == 0;
}

static bool start_trigger(struct report *report)
{
    struct sigaction action = {.sa_sigaction = skid_sample_sig, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)sigaction(SIGURG, &action, NULL);
    if (start_perf()) {
        strcpy(report->trigger, SKID_TRIGGER_PERF);
        return true;
    }
    if (start_timer()) {
        strcpy(report->trigger, SKID_TRIGGER_TIMER);
        return true;
    }
    report->failed_errno = errno;
    return false;
}

/* Links all lines of the memory into one cycle in random order (Sattolo's shuffle, so that no cycle is short). */
static void link_lines(char *memory)
{
    const uint32_t n_lines = MEMORY_BYTES / LINE_BYTES;
    uint64_t random = 88172645463325252u;
    for (uint32_t i = 0; i < n_lines; i++)
        *(char **)(memory + (size_t)i * LINE_BYTES) = memory + (size_t)i * LINE_BYTES;
    for (uint32_t i = n_lines - 1; i > 0; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char **a = (char **)(memory + (size_t)i * LINE_BYTES);
        char **b = (char **)(memory + (size_t)(random % i) * LINE_BYTES);
        char *swapped = *a;
        *a = *b;
        *b = swapped;
    }
}

static void run_loops(char *memory, struct report *report)
{
    static uint64_t small[8];
    const struct skid_loop *loops = skid_loops();
    link_lines(memory);
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        uint64_t position = (uintptr_t)memory;
        void *base = k == 1 ? (void *)small : memory;
        uint64_t end_ns = cpu_ns() + LOOP_NS;
        skid_count_sig(&loops[k], &report->kernels[k]);
        while (cpu_ns() < end_ns)
            position = loops[k].run(position, TURNS, base, (MEMORY_BYTES - 1) & ~(uint64_t)(LINE_BYTES - 1));
        skid_count_sig(NULL, NULL);
        /* The stores overwrite no link, so the order of the loops does not matter. */
    }
}

static void run_child(struct report *report)
{
    char *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        report->failed_errno = errno;
    else if (start_trigger(report))
        run_loops(memory, report);
    /* Ends the child, and only it: no handler or buffer inherited from the caller may run. */
    (void)syscall(SYS_exit_group, 0);
}

static uint32_t judge(const struct skid_result *result)
{
    uint32_t n = 0, n_next = 0;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        const struct skid_kernel *kernel = &result->kernels[k];
        if (k == 2)
            continue;
        n += kernel->n_at + kernel->n_next + kernel->n_elsewhere;
        n_next += kernel->n_next;
    }
    if (n < SAMPLES_MIN)
        return SKID_UNKNOWN;
    return n_next * 100 >= n * PERCENT_MIN ? SKID_HOLDS : SKID_FAILS;
}

static int run_forked(struct report *report, struct error *err)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        return error_set(err, ERR_IO, "the skid self-test cannot start a process: %s", strerror(errno));
    if (pid == 0)
        run_child(report);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(err, ERR_IO, "the skid self-test was lost: %s", strerror(errno));
    if (!WIFEXITED(status))
        return error_set(err, ERR_IO, "the skid self-test ended by signal %d", WTERMSIG(status));
    if (report->failed_errno)
        return error_set(err, ERR_UNSUPPORTED, "the skid self-test gets no samples here: %s",
                         strerror(report->failed_errno));
    return 0;
}

int skid_measure(struct skid_result *result, struct error *err)
{
    memset(result, 0, sizeof *result);
    skid_key_read(&result->key);
    if (!skid_loops()[0].run)
        return error_set(err, ERR_UNSUPPORTED, "the skid self-test exists for x86-64 only");
    struct report *report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return error_set(err, ERR_IO, "no memory for the skid self-test: %s", strerror(errno));
    int code = run_forked(report, err);
    if (code == 0) {
        memcpy(result->kernels, report->kernels, sizeof result->kernels);
        memcpy(result->trigger, report->trigger, sizeof result->trigger);
        result->rule = judge(result);
    }
    munmap(report, sizeof *report);
    return code;
}
