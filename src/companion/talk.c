/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion's socket: who may connect, and the messages. Every message is one datagram; a client that says anything
 * else is dropped. Ordinary code. */
#include "companion/state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampling/abi/perf-record.h"

#define KNOCKS_AT_ONCE 16
#define CONVERSATIONS_MAX 64 /* of one process at a time */

static unsigned count_of(const struct companion *c, pid_t peer_pid)
{
    unsigned n = 0;
    for (const struct companion_connection *connection = c->connections; connection; connection = connection->next)
        n += connection->fd >= 0 && connection->peer_pid == peer_pid;
    return n;
}

bool companion_connect(struct companion *c, int fd, const struct ucred *peer)
{
    if (count_of(c, peer->pid) >= CONVERSATIONS_MAX)
        return false;
    struct companion_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return false;
    connection->fd = fd;
    connection->peer_pid = peer->pid;
    connection->peer_uid = peer->uid;
    connection->is_guest = peer->uid != geteuid() && geteuid() != 0;
    connection->next = c->connections;
    c->connections = connection;
    return true;
}

void companion_accept(struct companion *c)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    /* A client that cannot be let in keeps waiting, and the next poll would report it at once. */
    c->is_full = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || (peer.uid != geteuid() && peer.uid != 0) ||
        peer.pid <= 0 || !companion_connect(c, fd, &peer))
        (void)close(fd);
}

/* The one descriptor and the sender that came with a message; others are closed. */
static int take_knock(struct msghdr *header, struct ucred *peer)
{
    int first = -1, fd;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level != SOL_SOCKET)
            continue;
        if (item->cmsg_type == SCM_CREDENTIALS && item->cmsg_len == CMSG_LEN(sizeof *peer))
            memcpy(peer, CMSG_DATA(item), sizeof *peer);
        size_t n = item->cmsg_type == SCM_RIGHTS ? (item->cmsg_len - CMSG_LEN(0)) / sizeof fd : 0;
        for (size_t i = 0; i < n; i++) {
            memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
            if (first < 0)
                first = fd;
            else
                (void)close(fd);
        }
    }
    return first;
}

static bool is_connection(int fd)
{
    int domain = 0, type = 0;
    socklen_t len = sizeof domain, len_type = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len_type) == 0 && type == SOCK_SEQPACKET;
}

/* Nobody else holds the way any more. If a process still lives, or nobody has come over it, it was closed on purpose,
 * and those who still come will connect by name. */
static void close_way(struct companion *c)
{
    (void)close(c->way_fd);
    c->way_fd = -1;
    c->is_way_lost = !c->start_ns;
    for (const struct companion_process *p = c->processes; p; p = p->next)
        c->is_way_lost |= p->state == PROCESS_LIVE && !p->is_gone;
}

static void read_exe(pid_t pid, char exe[ARENA_PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    ssize_t len = readlink(link, exe, ARENA_PATH_MAX - 1);
    exe[len > 0 ? len : 0] = '\0';
}

/* A line in the index about a process that is not measured. */
static void index_refused(const struct companion *c, pid_t pid, const char *why)
{
    char exe[ARENA_PATH_MAX];
    read_exe(pid, exe);
    companion_index_refused(c, pid, exe, why);
}

/* A process says that it cannot be measured. */
static void give_up(struct companion *c, pid_t pid, int error)
{
    char exe[ARENA_PATH_MAX], why[256] = "it could not speak to the companion process";
    if (error == EMFILE || error == ENFILE)
        (void)snprintf(why, sizeof why, "it has no descriptors left to begin with (%s; see ulimit -n)",
                       strerror(error));
    else if (error)
        (void)snprintf(why, sizeof why, "the recording could not begin: %s", strerror(error));
    companion_strays_heard(c, (uint32_t)pid, pid);
    read_exe(pid, exe);
    companion_index_unfit(c, pid, exe, why);
    companion_process_supersede(c, companion_process_find(c, pid));
}

/* One message of the way; false when there is none (for now). */
static bool accept_knock(struct companion *c)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    uint32_t words[2] = {0}, knock;
    struct ucred peer = {.pid = 0};
    struct iovec part = {.iov_base = words, .iov_len = sizeof words};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(c->way_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_way(c);
        return false;
    }
    int fd = take_knock(&header, &peer);
    knock = words[0];
    if (n == (ssize_t)sizeof words && knock == COMPANION_UNFIT && peer.pid > 0)
        give_up(c, peer.pid, (int)words[1]);
    if (fd < 0 && header.msg_flags & MSG_CTRUNC && knock == COMPANION_KNOCK && peer.pid > 0) {
        /* No descriptor was left for the connection, so the kernel has closed it: the process that knocked sees that,
         * and connects by name. */
        c->is_full = true;
        companion_strays_turned_away(c, peer.pid);
        return false;
    }
    bool is_ours = n == (ssize_t)sizeof knock && knock == COMPANION_KNOCK && fd >= 0 && is_connection(fd);
    if (!(is_ours && peer.pid > 0 && companion_connect(c, fd, &peer)) && fd >= 0)
        (void)close(fd);
    return true;
}

void companion_way_accept(struct companion *c)
{
    for (int i = 0; i < KNOCKS_AT_ONCE && c->way_fd >= 0; i++)
        if (!accept_knock(c))
            break;
}

static void send_message(int fd, const struct companion_message *message, const int *fds, size_t n_fds)
{
    union {
        char space[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fds) {
        memset(&control, 0, sizeof control);
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    (void)sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_text(int fd, enum companion_kind kind, const char *text)
{
    struct companion_message message = {.magic = COMPANION_MAGIC, .version = COMPANION_VERSION, .kind = kind};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    send_message(fd, &message, NULL, 0);
}

static void drop(struct companion_connection *connection)
{
    if (connection->fd >= 0)
        (void)close(connection->fd);
    connection->fd = -1;
    connection->waits_process = NULL;
    connection->waits_job = NULL;
}

static bool takes_samples(const struct companion_setup *setup)
{
    for (uint32_t i = 0; i < setup->n_events; i++)
        if (setup->events[i].source != SOURCE_MEMLEAK)
            return true;
    return false;
}

#define SLACK 1e-9 /* 1/3 is not exact */

bool companion_chooses(double fraction, int rank, pid_t pid)
{
    if (!(fraction > 0) || fraction >= 1)
        return true;
    if (rank >= 0)
        return rank == 0 || floor(rank * fraction + SLACK) > floor((rank - 1) * fraction + SLACK);
    uint64_t hash = (uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(hash >> 11) * 0x1p-53 < fraction;
}

void companion_explain_choice(char *text, size_t n_text, int rank)
{
    if (rank >= 0)
        (void)snprintf(text, n_text, "rank %d is outside of the fraction that was asked for", rank);
    else
        (void)snprintf(text, n_text, "outside of the fraction that was asked for");
}

/* Whether a process is outside of the fraction that is measured, or says why it should not be; then it gets a line in
 * the index. */
static bool is_left_out(const struct companion *c, const struct companion_message *hello, pid_t pid)
{
    char why[256];
    bool is_unfit = hello->text[0] && !(hello->exit_code == 1 && !takes_samples(c->setup));
    if (!is_unfit && companion_chooses(c->setup->fraction, hello->rank, pid))
        return false;
    if (is_unfit)
        (void)snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, hello->text);
    else
        companion_explain_choice(why, sizeof why, hello->rank);
    for (char *at = why; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 127 ? '?' : *at;
    index_refused(c, pid, why);
    return true;
}

/* A program with the rights of another user may hold what ours must not see. */
static void refuse_guest(const struct companion *c, const struct companion_connection *connection)
{
    char why[128];
    (void)snprintf(why, sizeof why, "it runs as user %lu, its measurement belongs to user %lu",
                   (unsigned long)connection->peer_uid, (unsigned long)geteuid());
    index_refused(c, connection->peer_pid, why);
    send_text(connection->fd, COMPANION_REFUSED, why);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* An hpcrun that the program has started: it and its helpers are no part of what is measured, and what it runs has a
 * companion of its own. Under an emulator all programs are the emulator to the kernel, but not by the name that it
 * gives for the own one: then nothing is known of others. */
static bool is_another_hpcrun(pid_t pid)
{
    struct stat own, other, named;
    char link[64], path[ARENA_PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    if (stat(link, &other) != 0 || stat("/proc/self/exe", &own) != 0 || !is_same_file(&own, &other))
        return false;
    read_exe(getpid(), path);
    return stat(path, &named) != 0 || is_same_file(&own, &named);
}

static void refuse_hpcrun(struct companion *c, const struct companion_connection *connection)
{
    static const char why[] = "it is an hpcrun itself, which measures the program that it runs";
    c->has_measured = true;
    index_refused(c, connection->peer_pid, why);
    send_text(connection->fd, COMPANION_REFUSED, why);
}

static void serve_hello(struct companion *c, struct companion_connection *connection,
                        const struct companion_message *hello)
{
    struct error err;
    const struct ucred peer = {.pid = connection->peer_pid, .uid = connection->peer_uid};
    companion_strays_heard(c, hello->pid, connection->peer_pid);
    if (connection->is_guest) {
        refuse_guest(c, connection);
        return;
    }
    if (c->setup->leaves_own_kind && is_another_hpcrun(connection->peer_pid)) {
        refuse_hpcrun(c, connection);
        return;
    }
    if (is_left_out(c, hello, connection->peer_pid)) {
        send_text(connection->fd, COMPANION_REFUSED, "This process was not chosen.");
        return;
    }
    struct companion_process *process = companion_process_add(c, hello, &peer, &err);
    if (!process) {
        companion_log(c, "Process %u was refused: %s", hello->pid, err.text);
        index_refused(c, connection->peer_pid, err.text);
        send_text(connection->fd, COMPANION_REFUSED, err.text);
        return;
    }
    struct companion_message welcome = {
        .magic = COMPANION_MAGIC,
        .version = COMPANION_VERSION,
        .kind = COMPANION_WELCOME,
        .pid = process->pid,
        .size_bytes = process->size_bytes,
        .recipe_bytes = c->store.size_bytes,
    };
    const int fds[3] = {process->arena_fd, c->store.read_fd, process->bell_fd};
    send_message(connection->fd, &welcome, fds, 3);
}

static void serve_end(struct companion *c, struct companion_connection *connection, const struct companion_message *end)
{
    struct companion_process *process = companion_process_find(c, connection->peer_pid);
    if (!process) {
        send_text(connection->fd, COMPANION_WRITTEN, "");
        return;
    }
    if (end->rank >= 0)
        atomic_store(&process->arena->rank, (uint32_t)end->rank);
    connection->waits_process = process;
    companion_homes_end(c, process);
    companion_process_end(c, process, "complete");
}

static void serve_module(struct companion *c, struct companion_connection *connection, const char *path)
{
    bool is_ours = connection->peer_uid == geteuid();
    connection->waits_job = is_ours && path[0] == '/' ? companion_job_add(c, JOB_MODULE, NULL, path) : NULL;
    if (!connection->waits_job)
        send_text(connection->fd, COMPANION_WRITTEN, "");
}

/* The live process with the lowest id above after; NULL when there is none. */
static const struct companion_process *next_live(const struct companion *c, pid_t after)
{
    const struct companion_process *next = NULL;
    for (const struct companion_process *p = c->processes; p; p = p->next)
        if (p->state == PROCESS_LIVE && p->peer_pid > after && (!next || p->peer_pid < next->peer_pid))
            next = p;
    return next;
}

static void serve_status(const struct companion *c, const struct companion_connection *connection, pid_t after)
{
    struct companion_message status = {
        .magic = COMPANION_MAGIC, .version = COMPANION_VERSION, .kind = COMPANION_STATUS};
    const struct companion_process *process = next_live(c, after);
    int arena_fd = process ? companion_memory_reopen(process->arena_fd) : -1;
    if (process) {
        status.pid = (uint32_t)process->peer_pid;
        status.size_bytes = arena_fd >= 0 ? process->size_bytes : 0;
    }
    (void)snprintf(status.text, sizeof status.text, "%s", c->setup->dir);
    send_message(connection->fd, &status, &arena_fd, arena_fd >= 0);
    if (arena_fd >= 0)
        (void)close(arena_fd);
}

/* --- what the owner asks for --- */

static bool is_meant(const struct companion_process *process, pid_t pid)
{
    return process->state == PROCESS_LIVE && (!pid || process->peer_pid == pid);
}

/* The time of a pause counts by the clock. */
static void set_paused(struct arena_header *arena, bool is_paused)
{
    uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
    if (!is_paused)
        atomic_fetch_add(&arena->paused_ns, arena_pause_ns(arena, now_ns));
    if (!atomic_load(&arena->paused_since_ns) || !is_paused)
        atomic_store(&arena->paused_since_ns, is_paused ? now_ns : 0);
    atomic_store(&arena->is_paused, is_paused);
}

/* How often the plan's first clock ticks in a second, 0: there is none. */
static uint64_t clock_rate(const struct companion_setup *setup)
{
    for (uint32_t i = 0; i < setup->n_events; i++) {
        const struct arena_event *event = &setup->events[i];
        if (event->flags & EVENT_TIMER && event->timer_interval_ns)
            return CLOCK_S_NS / event->timer_interval_ns;
        if (abi_is_clock_sig(&event->attr) && event->attr.sample_period)
            return event->attr.freq ? event->attr.sample_freq : CLOCK_S_NS / event->attr.sample_period;
    }
    return 0;
}

/* Samples a second; 0: it is no such number. */
static unsigned long take_rate(const char *text)
{
    char *end;
    unsigned long rate = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end ? rate : 0;
}

/* Samples stand for 1, 2, 4 ... periods of the plan, so that weights stay exact. */
static bool find_rate(const struct companion *c, const char *text, uint32_t *slow, char *answer, size_t n_answer)
{
    uint64_t planned = clock_rate(c->setup);
    unsigned long wanted = take_rate(text);
    *slow = 0;
    if (!wanted) {
        (void)snprintf(answer, n_answer, "rate takes samples a second, 1 or more");
        return false;
    }
    while (*slow < 20 && planned >> *slow > wanted)
        ++*slow;
    if (!planned)
        (void)snprintf(answer, n_answer, "no event of this measurement is a clock: its rate cannot be changed");
    else if (planned < wanted)
        (void)snprintf(answer, n_answer, "%llu samples a second of CPU time: no more than what it was started with",
                       (unsigned long long)planned);
    else
        (void)snprintf(answer, n_answer, "%g samples a second of CPU time at most, 1/%u of what it was started with",
                       (double)planned / (double)(1u << *slow), 1u << *slow);
    return planned != 0;
}

/* Begins a phase; an empty name: what follows is in none. */
static bool begin_phase(struct arena_header *arena, const char *name)
{
    uint32_t n = atomic_load(&arena->n_phases), at = 0;
    n = n < ARENA_PHASES ? n : ARENA_PHASES;
    while (at < n && strncmp(arena->phases[at], name, ARENA_PHASE_BYTES) != 0)
        at++;
    if (*name && at == ARENA_PHASES)
        return false;
    if (*name && at == n) {
        (void)snprintf(arena->phases[at], ARENA_PHASE_BYTES, "%s", name);
        atomic_store(&arena->n_phases, n + 1);
    }
    atomic_store(&arena->phase, *name ? at + 1 : 0);
    return true;
}

static void set_slow(struct arena_header *arena, uint32_t slow)
{
    atomic_store(&arena->slow_least, slow);
    if (slow > atomic_load(&arena->slow_most))
        atomic_store(&arena->slow_most, slow);
}

struct companion_wishes companion_wishes_of(const struct companion_process *process)
{
    struct companion_wishes wishes = {0};
    struct arena_header *arena = process ? process->arena : NULL;
    uint32_t phase = arena ? atomic_load(&arena->phase) : 0;
    wishes.is_paused = arena && atomic_load(&arena->is_paused);
    wishes.slow_least = arena ? atomic_load(&arena->slow_least) : 0;
    if (phase && phase <= ARENA_PHASES)
        (void)snprintf(wishes.phase, sizeof wishes.phase, "%.*s", ARENA_PHASE_BYTES - 1, arena->phases[phase - 1]);
    return wishes;
}

void companion_wishes_grant(struct companion_process *process, const struct companion_wishes *wishes)
{
    set_slow(process->arena, wishes->slow_least);
    if (wishes->is_paused)
        set_paused(process->arena, true);
    (void)begin_phase(process->arena, wishes->phase);
}

static bool is_phase_name(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127 || *at == '<' || *at == '>')
            return false;
    return strlen(name) < ARENA_PHASE_BYTES;
}

/* Why a process cannot be saved while it runs; NULL: it can. */
static const char *why_unsaved(const struct companion_process *process)
{
    return process->work_dir && !process->writes_past
               ? "its files are written elsewhere first (--local), and come to the measurement at its end"
               : NULL;
}

enum wish { WISH_PAUSE, WISH_RESUME, WISH_SNAPSHOT, WISH_RATE, WISH_MARK, WISHES };

/* A wish, as it was read. */
struct wished {
    enum wish wish;       /* WISHES: it is none */
    const char *argument; /* of a rate and of a mark: what stands behind it */
    uint32_t slow;        /* of a rate */
    bool is_misused;      /* the words are wrong, whatever is measured */
};

/* Does what was asked with one process; false with *answer: why not. */
static bool control_one(struct companion_process *process, const struct wished *wished, char *answer, size_t n_answer)
{
    const char *why = NULL;
    if (wished->wish == WISH_PAUSE || wished->wish == WISH_RESUME)
        set_paused(process->arena, wished->wish == WISH_PAUSE);
    else if (wished->wish == WISH_RATE)
        set_slow(process->arena, wished->slow);
    else if (wished->wish == WISH_MARK)
        why = begin_phase(process->arena, wished->argument) ? NULL : "it has as many phases as there is room for";
    else if (!(why = why_unsaved(process)))
        process->wants_snapshot = true;
    if (why)
        (void)snprintf(answer, n_answer, "process %ld: %s", (long)process->peer_pid, why);
    return !why;
}

/* Reads what was asked; false with *answer: why it cannot be done. */
static bool read_wish(const struct companion *c, const char *command, struct wished *wished, char *answer,
                      size_t n_answer)
{
    static const char *const words[WISHES] = {"pause", "resume", "snapshot", "rate ", "mark "};
    *wished = (struct wished){.is_misused = true};
    for (; wished->wish < WISHES; wished->wish++) {
        size_t len = strlen(words[wished->wish]);
        bool has_argument = wished->wish >= WISH_RATE;
        wished->argument = command + len;
        if (strncmp(command, words[wished->wish], len) == 0 && (has_argument || !command[len]))
            break;
    }
    if (wished->wish == WISH_RATE) {
        wished->is_misused = !take_rate(wished->argument);
        return find_rate(c, wished->argument, &wished->slow, answer, n_answer);
    }
    if (wished->wish == WISHES)
        (void)snprintf(answer, n_answer, "what can be asked for is pause, resume, rate N, mark NAME and snapshot");
    else if (wished->wish == WISH_MARK && !is_phase_name(wished->argument))
        (void)snprintf(answer, n_answer,
                       "the name of a phase has at most %d bytes, without < and > or control characters",
                       ARENA_PHASE_BYTES - 1);
    else
        wished->is_misused = false;
    return !wished->is_misused;
}

static void serve_control(struct companion *c, struct companion_connection *connection,
                          const struct companion_message *message)
{
    char answer[256] = "";
    struct wished wished;
    unsigned n = 0;
    bool ok = read_wish(c, message->text, &wished, answer, sizeof answer);
    for (struct companion_process *p = c->processes; ok && p; p = p->next) {
        if (!is_meant(p, message->exit_code))
            continue;
        ok = control_one(p, &wished, answer, sizeof answer);
        n++;
    }
    if (ok && !n)
        (void)snprintf(answer, sizeof answer, "no process that runs is meant");
    if (ok && n && wished.wish == WISH_SNAPSHOT) {
        connection->waits_snapshot = true;
        connection->snapshot_pid = message->exit_code;
        return;
    }
    if (ok && n)
        companion_log(c, "Asked from outside: %s", message->text);
    struct companion_message said = {.magic = COMPANION_MAGIC,
                                     .version = COMPANION_VERSION,
                                     .kind = ok && n ? COMPANION_WRITTEN : COMPANION_REFUSED,
                                     .exit_code = wished.is_misused ? COMPANION_MISUSED : 0};
    (void)snprintf(said.text, sizeof said.text, "%s", answer);
    send_message(connection->fd, &said, NULL, 0);
}

void companion_answer_snapshots(struct companion *c)
{
    for (struct companion_connection *n = c->connections; n; n = n->next) {
        bool is_done = n->fd >= 0 && n->waits_snapshot;
        char why[256] = "";
        for (const struct companion_process *p = c->processes; is_done && p; p = p->next) {
            if (!is_meant(p, n->snapshot_pid))
                continue;
            is_done = !(p->wants_snapshot || p->is_checkpointing);
            if (p->why_unsaved[0])
                (void)snprintf(why, sizeof why, "process %ld could not be saved: %s", (long)p->peer_pid,
                               p->why_unsaved);
        }
        if (!is_done)
            continue;
        send_text(n->fd, why[0] ? COMPANION_REFUSED : COMPANION_WRITTEN, why[0] ? why : c->setup->dir);
        n->waits_snapshot = false;
    }
}

void companion_serve(struct companion *c, struct companion_connection *connection)
{
    struct companion_message message;
    ssize_t n = recv(connection->fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof message || message.magic != COMPANION_MAGIC) {
        drop(connection);
        return;
    }
    message.text[sizeof message.text - 1] = '\0';
    bool is_hello = message.kind == COMPANION_HELLO || message.kind == COMPANION_FORK;
    bool is_trusted = connection->peer_uid == geteuid() || connection->peer_uid == 0;
    if (connection->is_guest && message.kind != COMPANION_STATUS && !is_hello)
        drop(connection);
    else if (message.kind == COMPANION_STATUS && !is_trusted)
        drop(connection); /* root's measurements are not for everybody */
    else if (message.version != COMPANION_VERSION)
        send_text(connection->fd, COMPANION_REFUSED, "hpcrun and libhpcrun.so are of different versions.");
    else if (is_hello)
        serve_hello(c, connection, &message);
    else if (message.kind == COMPANION_STATUS)
        serve_status(c, connection, message.exit_code);
    else if (message.kind == COMPANION_CONTROL && connection->peer_uid == geteuid())
        serve_control(c, connection, &message);
    else if (message.kind == COMPANION_END)
        serve_end(c, connection, &message);
    else if (message.kind == COMPANION_MODULE)
        serve_module(c, connection, message.text);
    else
        drop(connection);
}

void companion_connections_sweep(struct companion *c)
{
    for (struct companion_connection **link = &c->connections; *link;) {
        struct companion_connection *connection = *link;
        if (connection->fd < 0) {
            *link = connection->next;
            free(connection);
        } else {
            link = &connection->next;
        }
    }
}

void companion_answer_waiting(struct companion *c, const struct companion_process *process,
                              const struct companion_job *job, const char *text)
{
    for (struct companion_connection *n = c->connections; n; n = n->next) {
        bool is_answered = (process && n->waits_process == process) || (job && n->waits_job == job);
        if (n->fd < 0 || !is_answered)
            continue;
        send_text(n->fd, COMPANION_WRITTEN, text);
        n->waits_process = NULL;
        n->waits_job = NULL;
    }
}
