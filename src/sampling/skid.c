/* SPDX-License-Identifier: BSD-3-Clause */
/* Skid self-test: identifies the machine, measures, and keeps the result in a cache; see skid.h. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/process.h"
#include "sampling/skid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Value of the first line "name : value" of /proc/cpuinfo, or "unknown". */
static void cpuinfo_value(const char *name, char *value, size_t n_bytes)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    (void)snprintf(value, n_bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        size_t n_name = strlen(name);
        if (!colon || strncmp(line, name, n_name) != 0 || line + n_name + strspn(line + n_name, "\t ") != colon)
            continue;
        colon[strcspn(colon, "\n")] = 0;
        (void)snprintf(value, n_bytes, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        (void)fclose(file);
}

static void hypervisor_name(char *name, size_t n_bytes)
{
    (void)snprintf(name, n_bytes, "unknown");
#if defined(__x86_64__)
    unsigned a, b, c, d;
    char signature[13] = "";
    (void)snprintf(name, n_bytes, "none");
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31))
        return;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(signature, &b, 4);
    memcpy(signature + 4, &c, 4);
    memcpy(signature + 8, &d, 4);
    for (char *p = signature; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            *p = '?';
    (void)snprintf(name, n_bytes, "%s", signature[0] ? signature : "unnamed");
#endif
}

/* Reads the key of this machine. Never fails; unknown parts are "unknown". */
static void skid_key_read(struct skid_key *key)
{
    char model[60], family[12], number[12], stepping[12];
    struct utsname names;
    cpuinfo_value("model name", model, sizeof model);
    cpuinfo_value("cpu family", family, sizeof family);
    cpuinfo_value("model", number, sizeof number);
    cpuinfo_value("stepping", stepping, sizeof stepping);
    (void)snprintf(key->cpu, sizeof key->cpu, "%s (family %s, model %s, stepping %s)", model, family, number, stepping);
    cpuinfo_value("microcode", key->microcode, sizeof key->microcode);
    bool is_known = uname(&names) == 0;
    (void)snprintf(key->kernel, sizeof key->kernel, "%.*s", SKID_KEY_BYTES - 1, is_known ? names.release : "unknown");
    hypervisor_name(key->hypervisor, sizeof key->hypervisor);
}

/* --- the loops --- */

/* Table of the self-test's loops (skid-kernels.S). */

#if defined(__x86_64__)

#define LOOP(name)                                                                                                     \
    uint64_t skid_##name(uint64_t position, uint64_t n_turns, void *memory, uint64_t mask);                            \
    extern const char skid_##name##_from[], skid_##name##_stall[], skid_##name##_next[], skid_##name##_to[]
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        skid_##name##_from, skid_##name##_stall, skid_##name##_next, skid_##name##_to, skid_##name                     \
    }

LOOP(chase);
LOOP(mixed);
LOOP(store);
LOOP(random);

const struct skid_loop *skid_loops(void)
{
    static const struct skid_loop loops[SKID_KERNELS] = {ROW(chase), ROW(mixed), ROW(store), ROW(random)};
    return loops;
}

#else

const struct skid_loop *skid_loops(void)
{
    static const struct skid_loop loops[SKID_KERNELS];
    return loops;
}

#endif

/* --- measuring --- */

/* Runs the loops under a sampling signal in a child process and judges the counts. */

#define MEMORY_BYTES (8u << 20) /* larger than any second-level cache, yet quick to fill */
#define LINE_BYTES 64u
#define PERIOD_NS 500000 /* 2 kHz */
#define LOOP_NS 40000000 /* of CPU time for each loop */
#define TURNS 2000       /* between two checks of the clock */
#define SAMPLES_MIN 20
#define PERCENT_MIN 90
#define ROUNDS_MAX 3     /* a machine fails only if each does: others' work can spoil one, and what it says is kept */
#define TICK_NS 30000000 /* of CPU time for the cost of a sample */
#define TICKS_MAX 128
#define TICK_MOST_NS 100000000 /* of what is believed */
#define TOUCH_BYTES (4u << 20) /* of pages that are touched for the first time, again and again ... */
#define TOUCH_NS 100000000 /* ... for so much CPU time behind each loop, as that differs from moment to moment ... */
#define TOUCH_PERIOD_NS 100000 /* ... with samples so close together, or where they cost much ... */
#define TOUCH_TICKS 8          /* ... so many times as far apart as one costs */
#define TOUCH_SAMPLES_MIN 10   /* in user mode; fewer say that it is next to nothing */
#define PAGE_BYTES 4096u
#define CACHES_WALL_MS 3000 /* for the curve of the caches, which takes 0.5 s where nobody else works */

/* In memory that parent and child share. */
struct report {
    struct skid_kernel kernels[SKID_KERNELS];
    char trigger[32];
    uint32_t tick_ns, touch_ps;
    int failed_errno; /* from the last trigger that was tried */
};

/* The descriptor, -1: refused. */
static int start_perf(void)
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
    int fd = environment_lacks("perf") ? -1 : (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -1;
    bool ok = fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 &&
              fcntl(fd, F_SETOWN_EX, &owner) == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
    return ok ? fd : -1;
}

static bool start_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    struct itimerspec interval = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    timer_t timer;
    return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &interval, NULL) == 0;
}

/* *perf: the descriptor of a perf event, -1 where it is a timer. */
static bool start_trigger(struct report *report, int *perf)
{
    struct sigaction action = {.sa_sigaction = skid_sample_sig, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)sigaction(SIGURG, &action, NULL);
    *perf = start_perf();
    if (*perf >= 0) {
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

/* Links all lines of the memory into a single cycle in random order (Sattolo's shuffle, which makes no shorter cycles).
 */
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

static int compare_gaps(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Reads the clock again and again: where two readings enclose a sample, they are as far apart as it cost. Only the
 * lower quartile counts, as others may have used the processor meanwhile. */
static uint32_t measure_tick(void)
{
    uint64_t gaps[TICKS_MAX], end_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) + TICK_NS;
    uint32_t n = 0;
    while (n < TICKS_MAX && clock_now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
        uint64_t before_ns = clock_now_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < TURNS && n < TICKS_MAX; i++) {
            uint32_t n_handled = skid_n_handled_sig();
            uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
            if (skid_n_handled_sig() != n_handled) {
                now_ns = clock_now_ns(CLOCK_MONOTONIC);
                gaps[n++] = now_ns - before_ns;
            }
            before_ns = now_ns;
        }
    }
    if (n < SAMPLES_MIN)
        return 0;
    qsort(gaps, n, sizeof gaps[0], compare_gaps);
    return gaps[n / 4] < TICK_MOST_NS ? (uint32_t)gaps[n / 4] : TICK_MOST_NS;
}

/* First touches of pages, in one turn: how many there were, how many samples fell on them in user mode, and the time of
 * all. */
struct touch_turn {
    uint64_t n_pages, n_samples, cpu_ns;
};

struct touches {
    volatile char *memory;
    int perf;
    uint64_t period_ns;
    struct touch_turn turns[SKID_KERNELS];
};

/* The loops and their periods take turns with the first touches and theirs. False where there is nothing to measure. */
static bool touch_pages(struct touches *touches, struct touch_turn *turn)
{
    uint64_t usual_ns = PERIOD_NS;
    if (!touches->memory || ioctl(touches->perf, PERF_EVENT_IOC_PERIOD, &touches->period_ns) != 0)
        return false;
    uint64_t start_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID), now_ns = start_ns;
    uint32_t n_before = skid_n_handled_sig();
    for (; now_ns < start_ns + TOUCH_NS; now_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID)) {
        for (size_t i = 0; i < TOUCH_BYTES; i += PAGE_BYTES)
            touches->memory[i] = 1;
        turn->n_pages += TOUCH_BYTES / PAGE_BYTES;
        (void)madvise((void *)touches->memory, TOUCH_BYTES, MADV_DONTNEED);
    }
    turn->n_samples = skid_n_handled_sig() - n_before;
    turn->cpu_ns = now_ns - start_ns;
    return ioctl(touches->perf, PERF_EVENT_IOC_PERIOD, &usual_ns) == 0;
}

static void begin_touches(struct touches *touches, int perf, uint32_t tick_ns)
{
    uint64_t wanted_ns = (uint64_t)TOUCH_TICKS * tick_ns;
    void *memory = mmap(NULL, TOUCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *touches = (struct touches){.perf = perf,
                                .period_ns = wanted_ns < TOUCH_PERIOD_NS ? TOUCH_PERIOD_NS
                                             : wanted_ns > PERIOD_NS     ? PERIOD_NS
                                                                         : wanted_ns};
    if (perf < 0 || memory == MAP_FAILED || tick_ns >= touches->period_ns)
        return;
    (void)madvise(memory, TOUCH_BYTES, MADV_NOHUGEPAGE);
    touches->memory = memory;
}

static int compare_turns(const void *a, const void *b)
{
    const struct touch_turn *one = a, *other = b;
    uint64_t x = one->n_samples * other->n_pages, y = other->n_samples * one->n_pages;
    return (x > y) - (x < y);
}

/* What of the first touch of a page is sampled as time in user mode, picoseconds: the way back from the kernel, and in
 * virtual machines whose page tables are followed by the host, what the host does when the instruction is run again.
 * The samples of user mode are counted, for nothing else says what samples will say. They took tick_ns each of the time
 * of all, from both modes alike. Only the half of the turns that took least counts, as others may have used the caches
 * meanwhile. 0: next to nothing, or not known. */
static uint32_t touch_ps(struct touches *touches, uint32_t tick_ns)
{
    struct touch_turn sum = {0};
    qsort(touches->turns, SKID_KERNELS, sizeof touches->turns[0], compare_turns);
    for (unsigned k = 0; k < SKID_KERNELS / 2; k++) {
        sum.n_pages += touches->turns[k].n_pages;
        sum.n_samples += touches->turns[k].n_samples;
        sum.cpu_ns += touches->turns[k].cpu_ns;
    }
    if (sum.n_samples < TOUCH_SAMPLES_MIN || !sum.cpu_ns)
        return 0;
    double user_ns = (double)(sum.n_samples * touches->period_ns), part = user_ns / (double)sum.cpu_ns;
    double own_ns = (double)(sum.n_samples * tick_ns) * (part < 1 ? part : 1);
    return (uint32_t)((user_ns - own_ns) * 1000 / (double)sum.n_pages);
}

static void run_loops(char *memory, struct touches *touches, struct report *report)
{
    static uint64_t small[8];
    const struct skid_loop *loops = skid_loops();
    link_lines(memory);
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        uint64_t position = (uintptr_t)memory;
        void *base = k == 1 ? (void *)small : memory;
        uint64_t end_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) + LOOP_NS;
        skid_count_sig(&loops[k], &report->kernels[k]);
        while (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
            position = loops[k].run(position, TURNS, base, (MEMORY_BYTES - 1) & ~(uint64_t)(LINE_BYTES - 1));
        skid_count_sig(NULL, NULL);
        /* The stores do not overwrite links, so the order of the loops does not matter. */
        if (!touch_pages(touches, &touches->turns[k]))
            touches->memory = NULL;
    }
}

static void run_child(struct report *report)
{
    int perf = -1;
    char *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        report->failed_errno = errno;
    else if (start_trigger(report, &perf)) {
        struct touches touches;
        report->tick_ns = measure_tick();
        begin_touches(&touches, perf, report->tick_ns);
        run_loops(memory, &touches, report);
        report->touch_ps = touch_ps(&touches, report->tick_ns);
    }
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
    int code = 0;
    for (int i = 0; i < ROUNDS_MAX && code == 0 && (i == 0 || result->rule == SKID_FAILS); i++) {
        memset(report, 0, sizeof *report);
        code = run_forked(report, err);
        memcpy(result->kernels, report->kernels, sizeof result->kernels);
        result->rule = judge(result);
    }
    if (code == 0) {
        memcpy(result->trigger, report->trigger, sizeof result->trigger);
        result->tick_ns = report->tick_ns;
        result->touch_ps = report->touch_ps;
        cache_curve_measure(&result->caches, CACHES_WALL_MS);
    }
    munmap(report, sizeof *report);
    return code;
}

/* --- what the curve of the caches means --- */

#define SLOWER 1.3     /* by which the next level is, if there is one */
#define LEVEL_2_AT 3.0 /* times what the first level is said to have */
#define LEVEL_3_AT 2.0 /* times what the second level is said to have */

void cache_claims(uint64_t claimed[CACHE_LEVELS])
{
    static const int names[CACHE_LEVELS] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    for (unsigned i = 0; i < CACHE_LEVELS; i++) {
        long n_bytes = sysconf(names[i]);
        claimed[i] = n_bytes > 0 ? (uint64_t)n_bytes : 0;
    }
}

/* Picoseconds by size, without what disturbed the measurement: larger data are not served faster, so what is slower
 * than a larger size was not the caches' time. 0: not measured. */
static void take_times(const struct cache_curve *curve, bool is_all, double times[CACHE_SIZES_MAX])
{
    double least = 0;
    for (uint32_t i = curve->n_sizes; i-- > 0;) {
        double ps = is_all ? curve->sizes[i].all_ps : curve->sizes[i].alone_ps;
        least = ps > 0 && (least <= 0 || ps < least) ? ps : least;
        times[i] = ps > 0 ? least : 0;
    }
}

/* At the smallest size of at least kib; 0: there is none. */
static double time_at(const struct cache_curve *curve, const double times[CACHE_SIZES_MAX], double kib)
{
    for (uint32_t i = 0; i < curve->n_sizes; i++)
        if (curve->sizes[i].kib >= kib && times[i] > 0)
            return times[i];
    return 0;
}

/* The size where loads begin to take limit_ps, between two sizes in the proportion of their logarithms; 0: they never
 * do, or always. */
static uint32_t size_until(const struct cache_curve *curve, const double times[CACHE_SIZES_MAX], double limit_ps)
{
    uint32_t before = UINT32_MAX;
    for (uint32_t i = 0; i < curve->n_sizes; i++) {
        if (times[i] > limit_ps && before == UINT32_MAX)
            return 0;
        if (times[i] > limit_ps) {
            double low = curve->sizes[before].kib, ratio = curve->sizes[i].kib / low;
            return (uint32_t)(low * pow(ratio, log(limit_ps / times[before]) / log(times[i] / times[before])));
        }
        before = times[i] > 0 ? i : before;
    }
    return 0;
}

void cache_curve_judge(const struct cache_curve *curve, const uint64_t claimed[CACHE_LEVELS],
                       struct cache_effect *effect)
{
    const uint64_t common[CACHE_LEVELS] = {32 << 10, 512 << 10, 0};
    double kib[CACHE_LEVELS], alone[CACHE_SIZES_MAX], all[CACHE_SIZES_MAX];
    *effect = (struct cache_effect){0};
    if (!curve->n_sizes)
        return;
    take_times(curve, false, alone);
    take_times(curve, true, all);
    for (unsigned i = 0; i < CACHE_LEVELS; i++)
        kib[i] = (double)(claimed[i] ? claimed[i] : common[i]) / 1024;
    const double seen[CACHE_LEVELS + 1] = {alone[0], time_at(curve, alone, LEVEL_2_AT * kib[0]),
                                           time_at(curve, alone, LEVEL_3_AT * kib[1]), alone[curve->n_sizes - 1]};
    /* Of data that much larger than a level, that level may still serve a part. */
    const double pure[CACHE_LEVELS + 1] = {seen[0], (seen[1] - seen[0] / LEVEL_2_AT) / (1 - 1 / LEVEL_2_AT),
                                           (seen[2] - seen[1] / LEVEL_3_AT) / (1 - 1 / LEVEL_3_AT), seen[3]};
    for (unsigned i = 0; i <= CACHE_LEVELS; i++)
        effect->level_ps[i] = (uint32_t)seen[i];
    for (unsigned i = 0; i < CACHE_LEVELS; i++)
        if (seen[i] > 0 && pure[i] * SLOWER < pure[i + 1])
            effect->kib[i] = size_until(curve, alone, sqrt(pure[i] * pure[i + 1]));
    effect->all_kib = effect->kib[2] ? size_until(curve, all, sqrt(pure[2] * pure[3])) : 0;
}

/* --- as text and JSON --- */

/* Names of the self-test's loops and its result as JSON. */

static const struct {
    const char *name, *text;
} rows[SKID_KERNELS] = {
    {"k1", "dependent loads"},
    {"k2", "dependent loads among loads that hit"},
    {"k3", "random stores"},
    {"k4", "independent random loads"},
};

const char *skid_kernel_name(unsigned i)
{
    return rows[i].name;
}

const char *skid_kernel_text(unsigned i)
{
    return rows[i].text;
}

/* Text under construction; len_bytes beyond n_bytes means that it did not fit. */
struct text {
    char *bytes;
    size_t n_bytes, len_bytes;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
    va_list args;
    size_t at = text->len_bytes < text->n_bytes ? text->len_bytes : text->n_bytes;
    va_start(args, format);
    int n = vsnprintf(text->bytes + at, text->n_bytes - at, format, args);
    va_end(args);
    text->len_bytes += n < 0 ? text->n_bytes : (size_t)n;
}

static void put_string(struct text *text, const char *name, const char *value)
{
    put(text, "\"%s\": \"", name);
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            put(text, "\\%c", c);
        else if (c < ' ')
            put(text, "\\u%04x", c);
        else
            put(text, "%c", c);
    }
    put(text, "\", ");
}

static double percent(uint32_t part, uint32_t whole)
{
    return whole ? 100.0 * part / whole : 0.0;
}

static void put_kernel(struct text *text, const struct skid_kernel *kernel, unsigned i)
{
    uint32_t n = kernel->n_at + kernel->n_next + kernel->n_elsewhere;
    put(text, "%s{\"name\": \"%s\", \"loop\": \"%s\", \"samples\": %u, ", i ? ", " : "", rows[i].name, rows[i].text, n);
    put(text, "\"percent_at\": %.1f, \"percent_next\": %.1f, \"percent_elsewhere\": %.1f}", percent(kernel->n_at, n),
        percent(kernel->n_next, n), percent(kernel->n_elsewhere, n));
}

static void put_times(struct text *text, const char *name, const struct cache_curve *curve, bool is_all)
{
    put(text, ", \"%s\": [", name);
    for (uint32_t i = 0; i < curve->n_sizes; i++) {
        double ps = is_all ? curve->sizes[i].all_ps : curve->sizes[i].alone_ps;
        put(text, "%s%.1f", i ? ", " : "", ps / 1000);
    }
    put(text, "]");
}

static void put_walks(struct text *text, const struct cache_curve *curve)
{
    put(text, ", \"walks\": [");
    for (uint32_t i = 0; i < curve->n_walks; i++) {
        const struct cache_walk *walk = &curve->walks[i];
        put(text, "%s[%u, %.1f, %.1f, %.2f, %.2f]", i ? ", " : "", walk->kib, walk->small_ps / 1000.0,
            walk->huge_ps / 1000.0, walk->small_apart_ps / 1000.0, walk->huge_apart_ps / 1000.0);
    }
    put(text, "]");
}

static void put_caches(struct text *text, const struct cache_curve *curve)
{
    uint64_t claimed[CACHE_LEVELS];
    struct cache_effect effect;
    cache_claims(claimed);
    cache_curve_judge(curve, claimed, &effect);
    put(text, ", \"caches\": {\"effective_kib\": [%u, %u, %u], \"all_kib\": %u, ", effect.kib[0], effect.kib[1],
        effect.kib[2], effect.all_kib);
    put(text, "\"claimed_kib\": [%llu, %llu, %llu], ", (unsigned long long)claimed[0] / 1024,
        (unsigned long long)claimed[1] / 1024, (unsigned long long)claimed[2] / 1024);
    put(text, "\"level_ns\": [%.1f, %.1f, %.1f, %.1f], \"tlb_kib\": %u, \"huge_pages\": %s, \"cpus\": %u, \"kib\": [",
        effect.level_ps[0] / 1000.0, effect.level_ps[1] / 1000.0, effect.level_ps[2] / 1000.0,
        effect.level_ps[3] / 1000.0, curve->tlb_kib, curve->is_huge ? "true" : "false", curve->n_cpus);
    for (uint32_t i = 0; i < curve->n_sizes; i++)
        put(text, "%s%u", i ? ", " : "", curve->sizes[i].kib);
    put(text, "]");
    put_times(text, "alone_ns", curve, false);
    put_times(text, "all_ns", curve, true);
    put_walks(text, curve);
    put(text, "}");
}

/* Bytes of the widest vectors that this machine computes with; 0: not known. */
static unsigned vector_bytes(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx") ? 32 : 16;
#else
    return 0;
#endif
}

int skid_to_json(const struct skid_result *result, char *bytes, size_t n_bytes)
{
    static const char *const rules[] = {"unknown", "holds", "fails"};
    struct text text = {bytes, n_bytes, 0};
    put(&text, "{");
    put_string(&text, "cpu", result->key.cpu);
    put_string(&text, "microcode", result->key.microcode);
    put_string(&text, "kernel", result->key.kernel);
    put_string(&text, "hypervisor", result->key.hypervisor);
    put_string(&text, "trigger", result->trigger);
    if (result->tick_ns)
        put(&text, "\"sample_cost_ns\": %u, ", result->tick_ns);
    if (vector_bytes())
        put(&text, "\"vector_bytes\": %u, ", vector_bytes());
    if (result->touch_ps)
        put(&text, "\"first_touch_ns\": %.3f, ", result->touch_ps / 1000.0);
    put(&text, "\"rule\": \"%s\", \"kernels\": [", rules[result->rule <= SKID_FAILS ? result->rule : SKID_UNKNOWN]);
    for (unsigned k = 0; k < SKID_KERNELS; k++)
        put_kernel(&text, &result->kernels[k], k);
    put(&text, "]");
    if (result->caches.n_sizes)
        put_caches(&text, &result->caches);
    put(&text, "}");
    return text.len_bytes < n_bytes ? (int)text.len_bytes : -1;
}

/* --- the cache of results --- */

/* Keeps the result of the skid self-test in a file per kind of machine: one line per fact, with the key first, so that
 * a reader recognises a file of another kind. */

#define SAMPLES_MAX 1000000 /* of one loop: far more than a measurement takes */
#define LOCK_TRIES 3000     /* of 10 ms: some times what a measurement takes beside a load of ten ... */
#define LOCK_TRIES_BLIND                                                                                               \
    600                    /* ... and ten times what it takes alone: of an owner that is stopped, or of another host */
#define CURVE_AGAIN_S 3600 /* after which a curve is tried again that the machine was too busy for */

static uint64_t hash_line(uint64_t hash, const char *text)
{
    return bytes_hash(bytes_hash_text(hash, text), "\n", 1);
}

static bool cache_path(const char *directory, const struct skid_key *key, const char *ending, char *path)
{
    uint64_t hash = hash_line(BYTES_HASH_START, key->cpu);
    hash = hash_line(hash, key->microcode);
    hash = hash_line(hash, key->kernel);
    hash = hash_line(hash, key->hypervisor);
    int n = snprintf(path, PATH_MAX, "%s/skid-%016llx%s", directory, (unsigned long long)hash, ending);
    return n > 0 && n < PATH_MAX;
}

static void write_head(const struct skid_key *key, char *text, size_t n_bytes)
{
    (void)snprintf(text, n_bytes, "locus skid 7\ncpu %s\nmicrocode %s\nkernel %s\nhypervisor %s\n", key->cpu,
                   key->microcode, key->kernel, key->hypervisor);
}

static bool read_curve(FILE *file, struct cache_curve *curve)
{
    if (fscanf(file, " caches %2u cpus %9u huge %1u tlb %9u", &curve->n_sizes, &curve->n_cpus, &curve->is_huge,
               &curve->tlb_kib) != 4 ||
        curve->n_sizes > CACHE_SIZES_MAX)
        return false;
    for (uint32_t i = 0; i < curve->n_sizes; i++) {
        struct cache_point *point = &curve->sizes[i];
        if (fscanf(file, "%9u %9u %9u", &point->kib, &point->alone_ps, &point->all_ps) != 3 || !point->alone_ps ||
            (i && point->kib <= curve->sizes[i - 1].kib))
            return false;
    }
    if (fscanf(file, " walks %1u", &curve->n_walks) != 1 || curve->n_walks > CACHE_WALKS_MAX)
        return false;
    for (uint32_t i = 0; i < curve->n_walks; i++) {
        struct cache_walk *walk = &curve->walks[i];
        if (fscanf(file, "%9u %9u %9u %9u %9u", &walk->kib, &walk->small_ps, &walk->huge_ps, &walk->small_apart_ps,
                   &walk->huge_apart_ps) != 5 ||
            (i && walk->kib <= curve->walks[i - 1].kib))
            return false;
    }
    return true;
}

static bool write_curve(FILE *file, const struct cache_curve *curve)
{
    bool ok = fprintf(file, "caches %u cpus %u huge %u tlb %u\n", curve->n_sizes, curve->n_cpus, curve->is_huge,
                      curve->tlb_kib) > 0;
    for (uint32_t i = 0; i < curve->n_sizes; i++) {
        const struct cache_point *point = &curve->sizes[i];
        ok = ok && fprintf(file, "%u %u %u\n", point->kib, point->alone_ps, point->all_ps) > 0;
    }
    ok = ok && fprintf(file, "walks %u\n", curve->n_walks) > 0;
    for (uint32_t i = 0; i < curve->n_walks; i++) {
        const struct cache_walk *walk = &curve->walks[i];
        ok = ok && fprintf(file, "%u %u %u %u %u\n", walk->kib, walk->small_ps, walk->huge_ps, walk->small_apart_ps,
                           walk->huge_apart_ps) > 0;
    }
    return ok;
}

static bool read_counts(FILE *file, struct skid_result *result)
{
    if (fscanf(file, "trigger %31s rule %u tick %10u touch %10u", result->trigger, &result->rule, &result->tick_ns,
               &result->touch_ps) != 4 ||
        result->rule > SKID_FAILS || result->tick_ns > TICK_MOST_NS)
        return false;
    if (strcmp(result->trigger, SKID_TRIGGER_PERF) != 0 && strcmp(result->trigger, SKID_TRIGGER_TIMER) != 0)
        return false;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        struct skid_kernel *kernel = &result->kernels[k];
        if (fscanf(file, "%9u %9u %9u", &kernel->n_at, &kernel->n_next, &kernel->n_elsewhere) != 3)
            return false;
        if (kernel->n_at > SAMPLES_MAX || kernel->n_next > SAMPLES_MAX || kernel->n_elsewhere > SAMPLES_MAX)
            return false;
    }
    char end[8] = "";
    if (!read_curve(file, &result->caches))
        return false;
    return fscanf(file, "%7s", end) == 1 && strcmp(end, "end") == 0;
}

bool skid_cache_read(FILE *file, const struct skid_key *key, struct skid_result *result)
{
    char head[1024], seen[sizeof head] = "";
    write_head(key, head, sizeof head);
    *result = (struct skid_result){.key = *key, .is_from_cache = true};
    return fread(seen, 1, strlen(head), file) == strlen(head) && strcmp(seen, head) == 0 && read_counts(file, result);
}

static bool read_cache(const char *path, const struct skid_key *key, struct skid_result *result)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    struct stat status;
    bool ok = skid_cache_read(file, key, result) && fstat(fileno(file), &status) == 0;
    if (ok && (!result->caches.n_sizes || (result->caches.is_huge && !result->caches.n_walks)))
        ok = time(NULL) < status.st_mtime + CURVE_AGAIN_S;
    (void)fclose(file);
    return ok;
}

/* Writes the file under another name and renames it, so that a reader sees all of it or nothing. After a failure the
 * next process measures again. */
static void write_cache(const char *path, const struct skid_result *result)
{
    char head[1024], temporary[PATH_MAX];
    write_head(&result->key, head, sizeof head);
    int n = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = n > 0 && n < (int)sizeof temporary ? fopen(temporary, "wxe") : NULL;
    if (!file)
        return;
    bool ok = fprintf(file, "%strigger %s rule %u tick %u touch %u\n", head, result->trigger, result->rule,
                      result->tick_ns, result->touch_ps) > 0;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        const struct skid_kernel *kernel = &result->kernels[k];
        ok = ok && fprintf(file, "%u %u %u\n", kernel->n_at, kernel->n_next, kernel->n_elsewhere) > 0;
    }
    ok = ok && write_curve(file, &result->caches);
    ok = ok && fputs("end\n", file) >= 0;
    ok = fclose(file) == 0 && ok;
    if (!ok || rename(temporary, path) != 0)
        (void)unlink(temporary);
}

/* The owner of the lock says who it is: id and start of its process. */
static void sign_lock(int fd)
{
    char text[64];
    struct proc_stat self;
    (void)proc_stat_read(getpid(), &self);
    int n = snprintf(text, sizeof text, "%ld %llu\n", (long)getpid(), self.start);
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)n, 0);
}

/* Whether the owner of the lock is known to go on: not where it is stopped, or unknown here. */
static bool is_owner_going(int fd)
{
    char text[64] = "", *end;
    struct proc_stat owner;
    if (pread(fd, text, sizeof text - 1, 0) <= 0)
        return false;
    pid_t pid = (pid_t)strtol(text, &end, 10);
    return pid > 0 && proc_stat_read(pid, &owner) && owner.start == strtoull(end, NULL, 10) &&
           !proc_stat_has_ended(&owner) && owner.state != 'T' && owner.state != 't';
}

/* Opens and locks the lock file; -1 if that is not possible: then every process measures for itself. */
static int take_lock(const char *path)
{
    const struct timespec pause = {0, 10000000};
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    for (unsigned n = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; n++) {
        bool is_taken = errno == EWOULDBLOCK || errno == EINTR;
        bool is_late = n == LOCK_TRIES || (n >= LOCK_TRIES_BLIND && n % 100 == 0 && !is_owner_going(fd));
        if (!is_taken || is_late) {
            close(fd);
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    if (fd >= 0)
        sign_lock(fd);
    return fd;
}

int skid_get(const char *cache_dir, struct skid_result *result, struct error *err)
{
    char path[PATH_MAX], lock_path[PATH_MAX];
    struct skid_key key;
    skid_key_read(&key);
    if (!cache_dir || !cache_path(cache_dir, &key, ".txt", path) || !cache_path(cache_dir, &key, ".lock", lock_path))
        return skid_measure(result, err);
    if (read_cache(path, &key, result))
        return 0;
    (void)mkdir(cache_dir, 0777);
    int lock = take_lock(lock_path);
    if (lock >= 0 && read_cache(path, &key, result)) {
        close(lock);
        return 0;
    }
    int code = skid_measure(result, err);
    if (code == 0 && lock >= 0)
        write_cache(path, result);
    if (lock >= 0)
        close(lock);
    return code;
}
