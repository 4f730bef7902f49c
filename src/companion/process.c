/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that the companion serves: registration, requests, end; what becomes of their CPU time, of their
 * children, and of those that become other programs. Ordinary code. */
#include "companion/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"

/* --- CPU time --- */

/* The CPU time of processes that end without reporting it: killed, or ended by a system call of their own. While a
 * process lives, the kernel reports what all its threads have used, in clock ticks. We read that now and then, and once
 * more at the end, which is too late when the parent has waited for the process already. Samples make up for the
 * user-mode time that was missed: each stands for its period. */

#define TIME_UNIT " (usec)" /* at the end of a metric's name */

/* Notes what a process has used before it came. */
static void companion_times_begin(struct companion_process *process)
{
    (void)proc_stat_read(process->peer_pid, &process->at_start);
    process->last_seen = process->at_start;
}

/* Notes what it has used by now, also in the moment between its end and its parent's wait. */
static void companion_times_look(struct companion_process *process)
{
    struct proc_stat now;
    if (proc_stat_read(process->peer_pid, &now) && now.start == process->at_start.start)
        process->last_seen = now;
}

static uint64_t ns_between(unsigned long long from, unsigned long long to)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return to > from && per_second > 0 ? (to - from) * (CLOCK_S_NS / (unsigned long)per_second) : 0;
}

uint64_t companion_times_used(const struct companion_process *process)
{
    const struct proc_stat *from = &process->at_start, *to = &process->last_seen;
    return ns_between(from->user_ticks + from->system_ticks, to->user_ticks + to->system_ticks);
}

/* Whether each sample of the event stands for its period of CPU time. */
static bool is_cpu_time(const struct arena_event *event)
{
    size_t len = strnlen(event->metric, sizeof event->metric), n = sizeof TIME_UNIT - 1;
    return len >= n && memcmp(event->metric + len - n, TIME_UNIT, n) == 0 &&
           !(event->flags & (EVENT_WEIGHTED | EVENT_WALLCLOCK));
}

/* What the thread's samples stand for, ns; 0 when they do not measure time. *is_user_only: in user mode. */
static uint64_t sampled_ns(const struct companion_process *process, const struct arena_thread *thread,
                           bool *is_user_only)
{
    double most = 0;
    *is_user_only = true;
    for (uint32_t i = 0; i < process->arena->n_events && i < ARENA_EVENTS_MAX; i++) {
        const struct arena_event *event = &process->arena->events[i];
        if (!is_cpu_time(event))
            continue;
        double n_periods = (double)atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->taken[i]) +
                           (double)atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->n_spared[i]);
        double ns = n_periods * event->scale * 1000;
        if (!(ns > most) || ns > 1e18)
            continue;
        most = ns;
        *is_user_only = event->attr.exclude_kernel;
    }
    return (uint64_t)most;
}

/* The thread may be storing its own times just now: then those stay. */
static void raise_to(_Atomic uint64_t *word, uint64_t ns)
{
    uint64_t before = atomic_load(word);
    if (ns > before)
        (void)atomic_compare_exchange_strong(word, &before, ns);
}

struct account {
    uint64_t user_ns, system_ns; /* of the threads that have reported them */
    uint64_t n_taken;            /* of the others */
    uint64_t rest_user_ns, rest_system_ns;
    uint64_t most_ns; /* of one thread in user mode */
};

static uint64_t n_taken(const struct arena_thread *thread)
{
    uint64_t n = 1; /* so that threads without samples have a share, too */
    for (int i = 0; i < ARENA_EVENTS_MAX; i++)
        n += atomic_load((_Atomic uint64_t *)(uintptr_t)&thread->taken[i]);
    return n;
}

static void add_up(const struct companion_process *unused, struct arena_thread *thread, struct account *account)
{
    (void)unused;
    if (thread->end_ns) {
        account->user_ns += atomic_load(&thread->user_ns);
        account->system_ns += atomic_load(&thread->system_ns);
    } else {
        account->n_taken += n_taken(thread);
    }
}

static void give(const struct companion_process *process, struct arena_thread *thread, struct account *account)
{
    bool is_user_only;
    uint64_t sampled = sampled_ns(process, thread, &is_user_only);
    if (thread->end_ns || !account->n_taken)
        return;
    double share = (double)n_taken(thread) / (double)account->n_taken;
    uint64_t user = (uint64_t)(share * (double)account->rest_user_ns);
    uint64_t system = (uint64_t)(share * (double)account->rest_system_ns);
    uint64_t covered = is_user_only ? user : user + system;
    if (covered < sampled)
        user += sampled - covered;
    raise_to(&thread->user_ns, user);
    raise_to(&thread->system_ns, system);
    raise_to(&thread->cpu_time_ns, user + system);
}

typedef void thread_function(const struct companion_process *, struct arena_thread *, struct account *);

static void each_thread(struct companion_process *process, thread_function *call, struct account *account)
{
    uint32_t n_chunks = companion_arena_n_chunks(process);
    for (uint32_t i = 0; i < n_chunks; i++) {
        size_t n;
        struct arena_thread *threads = companion_arena_threads(process, i, &n);
        for (size_t t = 0; t < n; t++)
            call(process, &threads[t], account);
    }
}

/* A thread notes its own name when it ends. This is for those that are killed. */
static void look_at_name(const struct companion_process *process, struct arena_thread *thread, struct account *unused)
{
    char path[64], name[ARENA_COMM_BYTES] = "";
    (void)unused;
    if (thread->end_ns || thread->name[0])
        return;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%u/comm", (int)process->peer_pid, thread->tid);
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        close(fd);
    if (n > 0 && !thread->end_ns)
        memcpy(thread->name, name, strcspn(name, "\n"));
}

static uint64_t beyond(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

void companion_times_settle(struct companion_process *process)
{
    struct account account = {0};
    const struct proc_stat *from = &process->at_start, *to = &process->last_seen;
    if (!process->arena)
        return;
    each_thread(process, add_up, &account);
    account.rest_user_ns = beyond(ns_between(from->user_ticks, to->user_ticks), account.user_ns);
    account.rest_system_ns = beyond(ns_between(from->system_ticks, to->system_ticks), account.system_ns);
    each_thread(process, give, &account);
}

void companion_times_guess(struct companion_process *process)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t n_chunks = companion_arena_n_chunks(process);
    bool ok = true;
    for (uint32_t i = 0; i < n_chunks; i++) {
        size_t n;
        struct arena_thread *threads = companion_arena_threads(process, i, &n);
        char *low = (char *)threads - (uintptr_t)threads % page;
        ok = ok && (!n || mprotect(low, (size_t)((char *)&threads[n] - low), PROT_READ | PROT_WRITE) == 0);
    }
    companion_times_look(process);
    process->at_start.user_ticks = process->arena->user_ticks_before;
    process->at_start.system_ticks = process->arena->system_ticks_before;
    if (ok)
        companion_times_settle(process);
}

#define TICK_NS 10000000u /* USER_HZ is 100 */
#define LEAST_TICKS 5     /* so that a tick more or less does not matter */

/* Whether a record is of threads that are, on average, shorter than a clock tick. Of such a thread the kernel knows how
 * long it ran, but not where: it looks at each tick, and calls it all user time if it met the thread at none. */
static bool is_brief(const struct arena_thread *thread, uint64_t *used_ns)
{
    *used_ns = atomic_load(&thread->user_ns) + atomic_load(&thread->system_ns);
    return thread->end_ns && *used_ns / (atomic_load(&thread->n_merged) + 1) < TICK_NS;
}

/* rest_user_ns: of the brief threads, both parts. */
static void add_brief(const struct companion_process *unused, struct arena_thread *thread, struct account *account)
{
    uint64_t used_ns;
    (void)unused;
    if (is_brief(thread, &used_ns))
        account->rest_user_ns += used_ns;
    else
        account->system_ns += atomic_load(&thread->system_ns);
}

static void split_brief(const struct companion_process *unused, struct arena_thread *thread, struct account *account)
{
    uint64_t used_ns;
    (void)unused;
    if (!is_brief(thread, &used_ns))
        return;
    uint64_t system_ns = (uint64_t)((double)used_ns * (double)account->rest_system_ns / (double)account->rest_user_ns);
    atomic_store(&thread->user_ns, used_ns - system_ns);
    atomic_store(&thread->system_ns, system_ns);
}

/* For the whole process the ticks add up, whichever thread they met. So what the longer threads leave of its time in
 * the kernel is that of the brief ones, by their CPU time. */
static void companion_times_split(struct companion_process *process)
{
    struct account account = {0};
    if (atomic_load(&process->arena->n_threads) < 2)
        return;
    each_thread(process, add_brief, &account);
    if (account.rest_user_ns < LEAST_TICKS * (uint64_t)TICK_NS)
        return;
    companion_times_look(process);
    /* The first program's record leaves out the launcher and its own start. */
    uint64_t left_out_ticks = process->generation ? 0 : process->at_start.system_ticks;
    account.rest_system_ns = beyond(ns_between(left_out_ticks, process->last_seen.system_ticks), account.system_ns);
    if (account.rest_system_ns > account.rest_user_ns)
        account.rest_system_ns = account.rest_user_ns;
    each_thread(process, split_brief, &account);
}

/* --- registration and end --- */

#define CHECKPOINT_S_DEFAULT 10

struct companion_process *companion_process_find(const struct companion *c, pid_t peer_pid)
{
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == peer_pid && p->state == PROCESS_LIVE)
            return p;
    return NULL;
}

static uint32_t next_generation(const struct companion *c, pid_t peer_pid)
{
    uint32_t n = 0;
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == peer_pid && p->generation >= n)
            n = p->generation + 1;
    return n;
}

bool companion_is_gone(pid_t pid, uint64_t *start)
{
    struct proc_stat now;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return true;
    if (!proc_stat_read(pid, &now))
        return false;
    if (!*start)
        *start = now.start;
    return proc_stat_has_ended(&now) || now.start != *start;
}

int64_t companion_checkpoint_ms(const struct companion *c)
{
    return 1000 * (int64_t)(c->setup->checkpoint_s ? c->setup->checkpoint_s : CHECKPOINT_S_DEFAULT);
}

static void process_free(struct companion_process *process)
{
    companion_arena_close(process);
    companion_jit_close(process);
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    if (process->shared)
        (void)munmap(process->shared, sizeof *process->shared);
    free(process->homes);
    free(process->work_dir);
    free(process);
}

/* It could not begin to record: its arena holds nothing. */
static void forget(struct companion_process *process)
{
    process->state = PROCESS_DONE;
    companion_detour_leave(process);
    companion_arena_close(process);
}

void companion_process_supersede(struct companion *c, struct companion_process *process)
{
    if (process && atomic_load(&process->arena->state) == ARENA_FRESH && !companion_arena_n_taken(process))
        forget(process);
    else if (process)
        companion_process_end(c, process, "complete");
}

static void companion_exec_note_start(struct companion_process *process);

struct companion_process *companion_process_add(struct companion *c, const struct companion_message *hello,
                                                const struct ucred *peer, struct error *err)
{
    pid_t peer_pid = peer->pid;
    struct companion_process *before = companion_process_find(c, peer_pid);
    struct companion_wishes wishes = companion_wishes_of(before);
    bool is_new = !before;
    companion_process_supersede(c, before);
    struct companion_process *process = calloc(1, sizeof *process);
    if (!process) {
        (void)error_set(err, ERR_MEMORY, "The companion is out of memory.");
        return NULL;
    }
    if (!c->start_ns)
        c->start_ns = 1000000 * (uint64_t)companion_now_ms();
    process->pid = hello->pid;
    process->peer_pid = peer_pid;
    process->peer_uid = peer->uid;
    process->is_foreign = peer->uid != geteuid();
    process->arena_fd = process->bell_fd = process->map_fd = process->dump_fd = -1;
    process->generation = next_generation(c, peer_pid);
    process->checkpoint_due_ms = companion_now_ms() + companion_checkpoint_ms(c);
    process->mark_due_ms = c->setup->mark_ms ? companion_now_ms() + (int64_t)c->setup->mark_ms : 0;
    process->pidfd = (int)syscall(SYS_pidfd_open, peer_pid, 0);
    if (process->pidfd < 0 && companion_is_gone(peer_pid, &process->start)) {
        (void)error_set(err, ERR_IO, "Process %ld cannot be watched: %s.", (long)peer_pid, strerror(errno));
        process_free(process);
        return NULL;
    }
    companion_exec_note_start(process);
    companion_times_begin(process);
    if (is_new)
        wishes = companion_wishes_of(companion_process_find(c, process->at_start.parent));
    /* A file could be cut short under our mapping; memory is sealed. */
    if (c->setup->local[0] && c->detour.path[0] && !process->is_foreign)
        (void)companion_detour_process(c, process);
    if (process->is_foreign)
        companion_tables_need(c);
    process->awaited_bytes = hello->kind == COMPANION_FORK ? hello->recipe_bytes : 0;
    if (companion_arena_create(c, process, hello->size_bytes, err) != 0) {
        process_free(process);
        return NULL;
    }
    companion_wishes_grant(process, &wishes);
    if (c->room_until_ms)
        atomic_store(&process->arena->room, ROOM_GIVEN);
    process->next = c->processes;
    c->processes = process;
    return process;
}

/* What it was paused for counts until now, and that it was paused stays to be seen. */
static void note_end(struct arena_header *arena)
{
    uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), pause_ns = arena_pause_ns(arena, now_ns);
    if (pause_ns) {
        atomic_fetch_add(&arena->paused_ns, pause_ns);
        atomic_store(&arena->paused_since_ns, now_ns);
    }
    if (!atomic_load(&arena->end_ns))
        atomic_store(&arena->end_ns, clock_now_ns(CLOCK_REALTIME));
}

static bool deserves_files(const struct companion *c, const struct companion_process *process)
{
    if (companion_arena_n_taken(process) || process->watchdog.is_halted) /* whose reports say so */
        return true;
    return c->setup->writes_memleak && atomic_load(&process->arena->n_blocks_recorded);
}

/* Whether none of the events that give samples could be opened on any thread. */
static bool lacks_events(struct arena_header *arena)
{
    uint32_t n_threads = atomic_load(&arena->n_threads);
    bool has_any = false;
    for (uint32_t i = 0; i < arena->n_events && i < ARENA_EVENTS_MAX; i++) {
        if (arena->events[i].source == SOURCE_MEMLEAK)
            continue;
        uint32_t n_unopened = atomic_load(&arena->n_unopened[i]);
        if (!n_unopened || n_unopened < n_threads)
            return false;
        has_any = true;
    }
    return has_any;
}

/* Adds up CPU time in user mode. A record may be that of several threads. */
static void add_spent(const struct companion_process *unused, struct arena_thread *thread, struct account *account)
{
    (void)unused;
    uint64_t user_ns = atomic_load(&thread->user_ns), n_merged = atomic_load(&thread->n_merged);
    if (!user_ns && !atomic_load(&thread->system_ns))
        user_ns = atomic_load(&thread->cpu_time_ns);
    account->user_ns += user_ns;
    if (user_ns / (n_merged + 1) > account->most_ns)
        account->most_ns = user_ns / (n_merged + 1);
}

/* The shortest period at which time is sampled, ns; 0: time is not sampled. */
static uint64_t period_ns(const struct arena_header *arena)
{
    double least = 0;
    for (uint32_t i = 0; i < arena->n_events && i < ARENA_EVENTS_MAX; i++)
        if (is_cpu_time(&arena->events[i]) && (!(least > 0) || arena->events[i].scale * 1000 < least))
            least = arena->events[i].scale * 1000;
    return least < 1e18 ? (uint64_t)least : 0;
}

/* The process has left no samples: a line in the index says why, as far as that is known. */
static void index_without_samples(struct companion *c, struct companion_process *process)
{
    char why[192] = "no samples";
    struct account account = {0};
    uint64_t period = period_ns(process->arena);
    unsigned n_threads = atomic_load(&process->arena->n_threads);
    each_thread(process, add_spent, &account);
    if (lacks_events(process->arena)) {
        companion_index_unfit(c, process->peer_pid, process->arena->exe,
                              "none of its events could be opened: no descriptors or timers were left (ulimit -n, "
                              "-i), or the kernel refused them");
        return;
    }
    c->has_measured = true;
    if (n_threads > 1 && account.user_ns >= period && account.most_ns < period)
        (void)snprintf(why, sizeof why,
                       "no samples: its %u threads used %.3g s of CPU time, but each of them less than the sampling "
                       "period of %g ms",
                       n_threads, (double)account.user_ns / 1e9, (double)period / 1e6);
    companion_index(c, process, why);
}

void companion_process_end(struct companion *c, struct companion_process *process, const char *end_state)
{
    if (process->state != PROCESS_LIVE)
        return;
    note_end(process->arena);
    companion_times_split(process);
    companion_strays_take(c, process);
    companion_strays_look(c, companion_now_ms(), false);
    companion_jit_look(process);
    process->end_state = end_state;
    process->state = PROCESS_ENDING;
    if (deserves_files(c, process) || process->was_checkpointed) {
        c->has_measured = true;
        if (companion_write_prepare(process) && companion_job_add(c, JOB_WRITE, process, NULL))
            return;
        companion_index(c, process, "lost: the companion is out of memory");
    } else {
        index_without_samples(c, process);
        companion_detour_leave(process);
    }
    process->state = PROCESS_DONE;
    companion_arena_close(process);
    companion_answer_waiting(c, process, NULL, "");
}

/* From linux/pidfd.h of Linux 6.13 on, which older systems do not have. */
struct pidfd_ids {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, parent;
    uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
#define PIDFD_GET_IDS _IOWR(0xFF, 11, struct pidfd_ids)
#define PIDFD_HAS_IDS 2u

static bool ids_by_pidfd(const struct companion_process *process, unsigned long ids[4])
{
    struct pidfd_ids all = {.mask = PIDFD_HAS_IDS};
    if (process->pidfd < 0 || ioctl(process->pidfd, PIDFD_GET_IDS, &all) != 0 || !(all.mask & PIDFD_HAS_IDS))
        return false;
    ids[0] = all.ruid;
    ids[1] = all.euid;
    ids[2] = all.suid;
    ids[3] = all.fsuid;
    return true;
}

static void ids_by_status(const struct companion_process *process, unsigned long ids[4])
{
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)process->peer_pid);
    FILE *file = input_stream(path);
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Uid: %lu %lu %lu %lu", &ids[0], &ids[1], &ids[2], &ids[3]) == 4)
            break;
    if (file)
        (void)fclose(file);
}

/* Asked for each round of requests, because a program may change its user at any time. */
bool companion_process_is_foreign(struct companion *c, struct companion_process *process)
{
    unsigned long ids[4] = {0, 0, 0, 0};
    if (process->is_foreign || geteuid() != 0)
        return process->is_foreign;
    if (!ids_by_pidfd(process, ids))
        ids_by_status(process, ids);
    process->is_foreign = ids[0] || ids[1] || ids[2] || ids[3];
    if (process->is_foreign)
        companion_tables_need(c);
    return process->is_foreign;
}

static bool is_waited_for(const struct companion *c, const struct companion_process *process)
{
    for (const struct companion_connection *n = c->connections; n; n = n->next)
        if (n->waits_process == process)
            return true;
    for (const struct companion_job *j = c->jobs; j; j = j->next)
        if (j->process == process)
            return true;
    return false;
}

/* The process has gone on with another arena: this one only cost a descriptor for each call of exec. */
static bool is_superseded(const struct companion *c, const struct companion_process *process)
{
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->peer_pid == process->peer_pid && p->generation > process->generation)
            return true;
    return false;
}

void companion_process_sweep(struct companion *c)
{
    for (struct companion_process **link = &c->processes; *link;) {
        struct companion_process *process = *link;
        bool is_over = process->state == PROCESS_DONE && (process->is_gone || is_superseded(c, process));
        if (is_over && !is_waited_for(c, process)) {
            *link = process->next;
            process_free(process);
        } else {
            link = &process->next;
        }
    }
}

/* --- other programs, and children that say nothing --- */

/* Processes that become other programs. One that is measured registers anew; one that is not (static, with more rights,
 * without our environment) is recognised by the runtime's mark in the arena and by its executable. */

#define REPLACED_MS 5000                           /* a program that is measured has registered by then */
#define HEARD_MS 30000                             /* a parent has noted its child by then */
#define TURNED_AWAY_MS (2 * COMPANION_END_WAIT_MS) /* for one that has to come again, and waits for our answer */

static void path_of_exe(const struct companion_process *process, char path[64])
{
    (void)snprintf(path, 64, "/proc/%ld/exe", (long)process->peer_pid);
}

/* Notes which executable a new process runs. */
static void companion_exec_note_start(struct companion_process *process)
{
    char path[64];
    struct stat status;
    path_of_exe(process, path);
    if (stat(path, &status) != 0)
        return;
    process->exe_device = status.st_dev;
    process->exe_inode = status.st_ino;
}

static bool is_another(const struct companion_process *process)
{
    char path[64];
    struct stat status;
    path_of_exe(process, path);
    return process->exe_inode && stat(path, &status) == 0 &&
           (status.st_ino != process->exe_inode || status.st_dev != process->exe_device);
}

static void read_name(struct companion_process *process)
{
    char path[64];
    path_of_exe(process, path);
    ssize_t n = readlink(path, process->replaced_by, sizeof process->replaced_by - 1);
    process->replaced_by[n > 0 ? n : 0] = '\0';
}

/* True when the last entry in the arena is a call of exec that did not return. */
static bool is_marked(const struct companion_process *process)
{
    return process->arena && atomic_load(&process->arena->is_replaced);
}

static void end_replaced(struct companion *c, struct companion_process *process)
{
    char name[sizeof process->arena->replaced_by];
    memcpy(name, process->arena->replaced_by, sizeof name);
    name[sizeof name - 1] = '\0';
    const char *by = process->replaced_by[0] ? process->replaced_by : name[0] ? name : "another program";
    bool is_sandboxed = process->arena && atomic_load(&process->arena->is_replaced) == EXEC_UNMEASURED;
    (void)snprintf(process->end_note, sizeof process->end_note, "replaced by %s, which was not measured%s", by,
                   is_sandboxed ? ": it is in a sandbox" : "");
    companion_times_settle(process);
    companion_process_end(c, process, "complete");
    if (process->state != PROCESS_DONE) /* else the index says it already */
        companion_index_refused(c, process->peer_pid, by,
                                is_sandboxed ? "it is in a sandbox; the process became it by exec, and was measured up "
                                               "to there"
                                             : "the process became it by exec, and was measured up to there");
}

void companion_process_look(struct companion *c, struct companion_process *process, int64_t now_ms)
{
    if (!is_another(process)) {
        companion_times_look(process);
        each_thread(process, look_at_name, NULL);
        return;
    }
    if (!process->replaced_ms) {
        process->replaced_ms = now_ms;
        read_name(process);
    } else if (now_ms - process->replaced_ms >= REPLACED_MS) {
        end_replaced(c, process);
    }
}

/* What the child becomes by exec may say HELLO. */
static bool may_be_heard(enum arena_child_state state)
{
    return state == CHILD_STARTED || state == CHILD_CLONED;
}

static void stray_add(struct companion *c, const struct companion_process *process, const struct arena_child *child,
                      enum arena_child_state state)
{
    struct companion_stray *stray = calloc(1, sizeof *stray);
    if (!stray)
        return;
    stray->pid = child->pid;
    stray->parent_pid = process->pid;
    stray->due_ms = companion_now_ms() + (may_be_heard(state) ? REPLACED_MS : 0);
    stray->state = state;
    (void)snprintf(stray->name, sizeof stray->name, "%.*s", (int)sizeof child->name - 1,
                   child->name[0] ? child->name : process->arena->exe);
    stray->next = c->strays;
    c->strays = stray;
}

/* Whether the child of a note has been heard of already. */
static bool take_heard(struct companion *c, uint32_t pid)
{
    int64_t now_ms = companion_now_ms();
    for (unsigned i = 0; i < HEARD_MAX; i++) {
        struct companion_heard *heard = &c->heard[i];
        if (heard->pid != pid || now_ms - heard->at_ms > HEARD_MS)
            continue;
        heard->pid = 0;
        return true;
    }
    return false;
}

static void add_heard(struct companion *c, uint32_t pid)
{
    c->heard[c->n_heard++ % HEARD_MAX] = (struct companion_heard){pid, companion_now_ms()};
}

void companion_strays_take(struct companion *c, struct companion_process *process)
{
    for (unsigned i = 0; process->arena && i < ARENA_CHILDREN; i++) {
        struct arena_child *child = &process->arena->children[i];
        uint32_t state = atomic_load_explicit(&child->state, memory_order_acquire);
        if (state == CHILD_NONE || state == CHILD_NOTING)
            continue;
        if (!may_be_heard((enum arena_child_state)state) || !take_heard(c, child->pid))
            stray_add(c, process, child, (enum arena_child_state)state);
        atomic_store_explicit(&child->state, CHILD_NONE, memory_order_release);
    }
}

void companion_strays_turned_away(struct companion *c, pid_t peer_pid)
{
    char link[64];
    struct companion_stray *stray = companion_process_find(c, peer_pid) ? NULL : calloc(1, sizeof *stray);
    if (!stray)
        return;
    stray->pid = (uint32_t)peer_pid;
    stray->peer_pid = peer_pid;
    stray->due_ms = companion_now_ms() + TURNED_AWAY_MS;
    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)peer_pid);
    ssize_t n = readlink(link, stray->name, sizeof stray->name - 1);
    stray->name[n > 0 ? n : 0] = '\0';
    stray->next = c->strays;
    c->strays = stray;
}

void companion_strays_heard(struct companion *c, uint32_t pid, pid_t peer_pid)
{
    bool was_noted = false;
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE)
            companion_strays_take(c, p);
    for (struct companion_stray **link = &c->strays; *link;) {
        struct companion_stray *stray = *link;
        bool is_noted = !stray->peer_pid && (stray->pid == pid || stray->pid == (uint32_t)peer_pid);
        was_noted |= is_noted;
        if (stray->peer_pid ? stray->peer_pid == peer_pid : is_noted) {
            *link = stray->next;
            free(stray);
        } else {
            link = &stray->next;
        }
    }
    if (!was_noted)
        add_heard(c, pid);
    if (!was_noted && pid != (uint32_t)peer_pid)
        add_heard(c, (uint32_t)peer_pid);
}

/* The parent's log counts it, unless that is written already. */
static void stray_give_up(struct companion *c, const struct companion_stray *stray)
{
    for (struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE && stray->parent_pid && p->pid == stray->parent_pid)
            (void)atomic_fetch_add(&p->arena->n_children_lost, 1);
    companion_index_stray(c, stray);
}

void companion_strays_look(struct companion *c, int64_t now_ms, bool is_over)
{
    for (struct companion_stray **link = &c->strays; *link;) {
        struct companion_stray *stray = *link;
        bool is_dead = is_over && kill((pid_t)stray->pid, 0) != 0 && errno == ESRCH;
        if (now_ms < stray->due_ms && !is_dead) {
            link = &stray->next;
            continue;
        }
        *link = stray->next;
        stray_give_up(c, stray);
        free(stray);
    }
}

/* The process could not report its CPU times. */
static void end_killed(struct companion *c, struct companion_process *process)
{
    companion_times_look(process);
    companion_times_settle(process);
    companion_process_end(c, process, "killed");
}

static void end_gone(struct companion *c, struct companion_process *process)
{
    /* A program in a sandbox cannot send END, but the arena shows that it has ended. */
    if (atomic_load(&process->arena->state) == ARENA_ENDED)
        companion_process_end(c, process, "complete");
    else if (process->replaced_ms || is_marked(process))
        end_replaced(c, process);
    else
        end_killed(c, process);
}

void companion_process_gone(struct companion *c, struct companion_process *process)
{
    if (process->state == PROCESS_LIVE)
        end_gone(c, process);
    if (process->pidfd >= 0)
        (void)close(process->pidfd);
    process->pidfd = -1;
    process->is_gone = true;
}
