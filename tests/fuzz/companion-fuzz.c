/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the companion: clients that say anything in any order, a program that writes anything
 * into its arena, workers that end anyhow. The input is a list of steps (steps.h), one of enum doing each. Whatever
 * happens, each answer is well formed, and once all processes and workers have ended nothing of them is left. Workers
 * are not forked: the linker leads fork and waitpid here (--wrap). */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "companion/state.h"

#include "scratch-dir.h"
#include "steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
pid_t __wrap_fork(void);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

enum { CLIENTS = 4, STEPS_MAX = 60, WORKERS_MAX = 400, TURNS_MAX = 200 };
enum { SAY_RAW = 0x80, SAY_DESCRIPTOR = 0x40 };
enum doing {
    DO_SAY,      /* client a says b (raw: nothing but the bytes); the bytes are its message from pid on */
    DO_SCRIBBLE, /* the program of process a writes the bytes to word b of its header, chunk table or data */
    DO_POST,     /* the program of process a posts the bytes as request b, its module counted from the first chunk on */
    DO_WAIT,     /* b * 16 ms go by */
    DO_FINISH,   /* worker a ends with wait status b */
    DO_DIE,      /* process a is gone */
    DO_HANG_UP,  /* client a closes its connection */
    DO_FAIL,     /* forks fail from now on, or (a even) no longer; SIGTERM comes */
    DOINGS
};

static struct {
    struct companion c;
    struct companion_setup setup;
    struct companion_notes notes;
    int64_t now_ms;
    int clients[CLIENTS]; /* their ends, -1: not connected */
    struct companion_connection *connections[CLIENTS];
    pid_t workers[WORKERS_MAX], last_pid;
    unsigned n_workers;
    pid_t ended; /* told by the next waitpid, 0: none */
    int ended_status;
    bool no_forks;
} world;

pid_t __wrap_fork(void)
{
    if (world.no_forks || world.n_workers == WORKERS_MAX) {
        errno = EAGAIN;
        return -1;
    }
    world.workers[world.n_workers++] = ++world.last_pid;
    return world.last_pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    (void)options;
    for (unsigned i = 0; pid > 0 && i < world.n_workers; i++)
        if (world.workers[i] == pid)
            world.workers[i] = world.workers[--world.n_workers];
    if (pid > 0)
        return pid;
    pid_t ended = world.ended;
    *status = world.ended_status;
    world.ended = 0;
    return ended;
}

static void end_worker(unsigned i, int status)
{
    world.ended = world.workers[i];
    world.ended_status = WIFEXITED(status) || WIFSIGNALED(status) ? status : 0;
    world.workers[i] = world.workers[--world.n_workers];
    companion_job_reap(&world.c);
}

static struct companion_connection *connection_of(unsigned client)
{
    for (struct companion_connection *n = world.c.connections; n; n = n->next)
        if (n == world.connections[client] && n->fd >= 0)
            return n;
    return NULL;
}

static void hang_up(unsigned client)
{
    struct companion_connection *connection = connection_of(client);
    if (world.clients[client] >= 0)
        (void)close(world.clients[client]);
    world.clients[client] = -1;
    if (connection)
        companion_serve(&world.c, connection);
    world.connections[client] = NULL;
}

/* The last client is of another user. */
static void dial(unsigned client)
{
    int ends[2];
    const pid_t pids[CLIENTS] = {getpid(), getppid(), 1, getppid()};
    const struct ucred peer = {.pid = pids[client], .uid = geteuid() + (client == CLIENTS - 1)};
    if (connection_of(client))
        return;
    hang_up(client);
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no sockets");
    check(companion_connect(&world.c, ends[0], &peer), "out of memory");
    world.clients[client] = ends[1];
    world.connections[client] = world.c.connections;
}

static void check_answer(const struct companion_message *answer, ssize_t n, size_t n_fds)
{
    check(n == (ssize_t)sizeof *answer && answer->magic == COMPANION_MAGIC && answer->version == COMPANION_VERSION,
          "an answer is no message");
    check(memchr(answer->text, 0, sizeof answer->text) != NULL, "an answer's text has no end");
    check(n_fds == 0 || answer->kind == COMPANION_WELCOME || answer->kind == COMPANION_STATUS,
          "descriptors come without reason");
    if (answer->kind == COMPANION_WELCOME)
        check(n_fds == 3 && answer->size_bytes >= ARENA_CHUNK_BYTES, "a welcome lacks something");
    else if (answer->kind == COMPANION_REFUSED)
        check(answer->text[0] != '\0', "a refusal has no reason");
    else
        check(answer->kind == COMPANION_WRITTEN || answer->kind == COMPANION_STATUS, "an answer of no kind");
}

/* One answer; false when there is none. */
static bool hear(unsigned client)
{
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control;
    static struct companion_message answer;
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = world.clients[client] >= 0 ? recvmsg(world.clients[client], &header, MSG_CMSG_CLOEXEC) : -1;
    if (n <= 0)
        return false;
    struct cmsghdr *item = CMSG_FIRSTHDR(&header);
    size_t n_fds = item ? (item->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    for (size_t i = 0; i < n_fds; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
        (void)close(fd);
    }
    check_answer(&answer, n, n_fds);
    return true;
}

static void say(const struct step *step, const uint8_t *bytes)
{
    static struct companion_message message;
    unsigned client = step->a % CLIENTS;
    bool is_raw = step->a & SAY_RAW;
    const size_t at = offsetof(struct companion_message, pid), room = sizeof message - at;
    message = (struct companion_message){
        .magic = COMPANION_MAGIC, .version = COMPANION_VERSION + (step->b >> 8), .kind = step->b & 0xff};
    memcpy((char *)&message + at, bytes, step->n_bytes < room ? step->n_bytes : room);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr item;
    } control = {.item = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct iovec part = {.iov_base = is_raw ? (void *)(uintptr_t)bytes : &message,
                         .iov_len = is_raw ? step->n_bytes : sizeof message};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    dial(client);
    memcpy(CMSG_DATA(&control.item), &world.clients[client], sizeof(int));
    if (step->a & SAY_DESCRIPTOR) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
    }
    (void)sendmsg(world.clients[client], &header, MSG_NOSIGNAL);
    companion_serve(&world.c, connection_of(client));
}

static struct companion_process *process_at(unsigned i)
{
    struct companion_process *process = world.c.processes;
    for (i %= 8; process && i; i--)
        process = process->next;
    return process;
}

static void scribble(struct companion_process *process, const struct step *step, const uint8_t *bytes)
{
    const uint64_t places[] = {0, 0, process->table_offset, process->data_offset};
    uint64_t place = places[step->a >> 6], at = place + (uint64_t)step->b * 8;
    if (at + step->n_bytes <= process->size_bytes)
        memcpy((char *)process->arena + at, bytes, step->n_bytes);
}

static void post(struct companion_process *process, const struct step *step, const uint8_t *bytes)
{
    struct arena_request *request = &process->arena->requests[step->b % ARENA_REQUESTS];
    memcpy(request, bytes, step->n_bytes < sizeof *request ? step->n_bytes : sizeof *request);
    request->module += (uint32_t)(process->data_offset / ARENA_UNIT);
    atomic_store(&request->state, REQUEST_POSTED);
    if (process->state == PROCESS_LIVE)
        (void)companion_process_requests(&world.c, process);
}

static void go_on(const struct step *step, const uint8_t *bytes)
{
    struct companion_process *process = process_at(step->a);
    enum doing doing = step->kind % DOINGS;
    if (doing == DO_SAY) {
        say(step, bytes);
    } else if (doing == DO_SCRIBBLE && process && process->arena) {
        scribble(process, step, bytes);
    } else if (doing == DO_POST && process && process->arena) {
        post(process, step, bytes);
    } else if (doing == DO_WAIT) {
        world.now_ms += step->b * 16;
        companion_turn(&world.c, world.now_ms);
    } else if (doing == DO_FINISH && world.n_workers) {
        end_worker(step->a % world.n_workers, step->b);
    } else if (doing == DO_DIE && process && process->pidfd >= 0) {
        companion_process_gone(&world.c, process);
    } else if (doing == DO_HANG_UP) {
        hang_up(step->a % CLIENTS);
    } else if (doing == DO_FAIL) {
        world.no_forks = step->a & 1;
        world.c.must_checkpoint = true;
    }
}

/* Everything that lives once and for all; true at the first call. */
static void begin_once(void)
{
    static bool has_begun;
    struct error err;
    if (has_begun)
        return;
    has_begun = true;
    (void)signal(SIGPIPE, SIG_IGN);
    world.last_pid = 1 << 24;
    check(companion_store_open(&world.c, &err), "no store of recipes");
}

static void begin(void)
{
    const char *directory = scratch_directory();
    struct companion_store store;
    (void)setenv("TMPDIR", directory, 1);
    begin_once();
    store = world.c.store;
    world.setup = (struct companion_setup){.arena_bytes = 1,
                                           .ahead_bytes = 1,
                                           .n_events = 1,
                                           .mark_ms = 100,
                                           .writes_memleak = true,
                                           .launched_pidfd = -1,
                                           .done_fd = -1};
    (void)snprintf(world.setup.dir, sizeof world.setup.dir, "%s", directory);
    world.c = (struct companion){.setup = &world.setup,
                                 .store = store,
                                 .listen_fd = -1,
                                 .way_fd = -1,
                                 .signal_fd = -1,
                                 .launched_pidfd = -1,
                                 .done_fd = -1,
                                 .recipes_fd = -1,
                                 .mark = {.fd = -1},
                                 .has_no_mark = true,
                                 .notes = &world.notes};
    world.now_ms = companion_now_ms();
    world.n_workers = 0;
    world.no_forks = false;
    for (unsigned i = 0; i < CLIENTS; i++)
        world.clients[i] = -1;
    companion_recipes_start(&world.c);
}

/* All processes and workers end, but for the one that makes recipes. */
static void end_all(void)
{
    for (struct companion_process *p = world.c.processes; p; p = p->next)
        if (p->pidfd >= 0)
            companion_process_gone(&world.c, p);
    for (unsigned i = world.n_workers; i-- > 0;)
        if (world.workers[i] != world.c.recipes_pid)
            end_worker(i, 0);
    world.now_ms += 100000;
    companion_turn(&world.c, world.now_ms);
}

static void end(void)
{
    struct companion *c = &world.c;
    world.no_forks = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        while (hear(i))
            ;
        hang_up(i);
    }
    for (unsigned turn = 0; turn < TURNS_MAX && (c->processes || c->strays || c->jobs || companion_has_notes(c));
         turn++)
        end_all();
    check(!c->processes && !c->strays && !c->jobs && !companion_has_notes(c),
          "something is left when everything has ended");
    companion_connections_sweep(c);
    check(!c->connections, "a connection is left that was closed");
    companion_detour_end(c);
    companion_recipes_end(c);
    companion_tables_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct step step;
    const uint8_t *bytes;
    begin_once();
    int lowest = scratch_descriptor();
    begin();
    for (unsigned n = 0; n < STEPS_MAX && (bytes = step_next(&data, &len_bytes, &step)); n++) {
        go_on(&step, bytes);
        for (unsigned i = 0; i < CLIENTS; i++)
            while (hear(i))
                ;
    }
    end();
    check(scratch_descriptor() == lowest, "a descriptor is left open");
    return 0;
}
