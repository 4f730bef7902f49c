/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets an arena from the companion at the start and hands it over at the end: the messages, and the mappings. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/own/zone.h"
#include "runtime/process/start.h"
#include "runtime/process/waits.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample.h"

/* --- the conversation --- */

/* The runtime's side of the conversation with the companion: one short connection at the start and one at the end, so
 * that the only descriptor of ours that stays open is the inherited socket, called the way. Raw system calls, because
 * the program may wrap the library's functions, and these are cancellation points. */

/* The contents of a WELCOME. The descriptors belong to the caller. */
struct client_welcome {
    int arena_fd, recipe_fd, bell_fd;
    uint64_t arena_bytes, recipe_bytes;
};

/* What a child of fork inherits of its parent's arena. */
struct client_inheritance {
    uint64_t arena_bytes; /* size of that arena, and so of the child's */
    uint64_t used_bytes;  /* how much of it is in use */
};

enum client_answer {
    CLIENT_WELCOME = 0,
    CLIENT_REFUSED,  /* the companion knows of the process, and has noted why it is not measured */
    CLIENT_NO_ANSWER /* there is no companion, or it does not know the process */
};

#define PATIENCE_MS 250
#define SMALL_ARENA_BYTES ((uint64_t)64 << 20)

/* The contents of COMPANION_ENV, read once, because programs overwrite their environment. */
static struct {
    bool is_read;
    char name[sizeof((struct sockaddr_un *)0)->sun_path - 1];
    int fd; /* -1: none was inherited */
    uint64_t device, inode;
} way = {.fd = -1};

/* Reads a comma and a number from *text and moves past them; false when there are none. */
static bool take_number(const char **text, uint64_t *number)
{
    const char *at = *text;
    if (*at++ != ',' || *at < '0' || *at > '9')
        return false;
    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (uint64_t)(*at - '0');
    *text = at;
    return true;
}

static void way_set(const char *text)
{
    uint64_t fd = 0;
    size_t len = text ? strcspn(text, ",") : 0;
    if (way.is_read || !len || len >= sizeof way.name)
        return;
    way.is_read = true;
    memcpy(way.name, text, len);
    text += len;
    if (take_number(&text, &fd) && fd < INT32_MAX && take_number(&text, &way.device) && take_number(&text, &way.inode))
        way.fd = (int)fd;
}

static void way_read(void)
{
    way_set(process_environment(COMPANION_ENV));
}

void attach_over(const char *companion)
{
    way_set(companion);
    way.is_read = true;
}

struct thread_usage attach_launcher_usage(void)
{
    uint64_t numbers[5] = {0};
    const char *text = process_environment(LAUNCHER_USAGE_ENV);
    size_t n = 0;
    while (text && n < sizeof numbers / sizeof *numbers && take_number(&text, &numbers[n]))
        n++;
    if (n < sizeof numbers / sizeof *numbers || numbers[0] != (uint64_t)own_pid_sig())
        return (struct thread_usage){0};
    return (struct thread_usage){
        .cpu_ns = numbers[1], .user_ns = numbers[2], .system_ns = numbers[3], .n_page_faults = numbers[4]};
}

/* Whether the descriptor is still the inherited socket. */
static bool way_is_open(void)
{
    struct stat status;
    return way.fd >= 0 && own_call_sig(SYS_fstat, way.fd, &status) == 0 && (uint64_t)status.st_dev == way.device &&
           (uint64_t)status.st_ino == way.inode;
}

static void close_raw(int fd)
{
    (void)own_call_sig(SYS_close, fd);
}

/* Waits until fd is ready; false on a timeout. Signals do not shorten the wait much. */
static bool wait_for(int fd, short events, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    long n;
    /* Linux subtracts the time that has passed from timeout. */
    while ((n = own_call_sig(SYS_ppoll, &wait, 1, &timeout, NULL, 0)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

/* Sends one end of a new connection over the way and returns the other end; -1 when nobody listens there. */
static int knock(void)
{
    static const uint32_t word = COMPANION_KNOCK;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&word, .iov_len = sizeof word};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    int ends[2];
    long n = -1;
    if (!way_is_open() || own_call_sig(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    struct cmsghdr *item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(item), &ends[1], sizeof(int));
    do
        n = own_call_sig(SYS_sendmsg, way.fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_for(way.fd, POLLOUT, COMPANION_END_WAIT_MS))));
    close_raw(ends[1]);
    if (n == (long)sizeof word)
        return ends[0];
    close_raw(ends[0]);
    return -1;
}

/* Connects with repeated tries: the companion's queue may be full for a while, and a blocking connect may never end. */
static bool connect_to(int fd, const struct sockaddr_un *address, size_t len_bytes)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int tries = 0; tries < COMPANION_END_WAIT_MS; tries++) {
        if (own_call_sig(SYS_connect, fd, address, len_bytes) == 0)
            return own_call_sig(SYS_fcntl, fd, F_SETFL, 0) == 0;
        if (errno != EAGAIN && errno != EINTR)
            return false;
        (void)own_call_sig(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

/* Connects by name, for a program that has closed all its descriptors. */
static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(way.name);
    if (!len)
        return -1;
    memcpy(address.sun_path + 1, way.name, len);
    int fd = (int)own_call_sig(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !connect_to(fd, &address, offsetof(struct sockaddr_un, sun_path) + 1 + len)) {
        close_raw(fd);
        fd = -1;
    }
    return fd;
}

static bool client_send(int fd, enum companion_kind kind, struct companion_message *message)
{
    message->magic = COMPANION_MAGIC;
    message->version = COMPANION_VERSION;
    message->kind = kind;
    message->pid = own_pid_sig();
    return own_call_sig(SYS_sendto, fd, message, sizeof *message, MSG_NOSIGNAL, NULL, 0) == (long)sizeof *message;
}

/* Takes the descriptors out of a message: as many as the limits allow. */
static void take_descriptors(struct msghdr *header, int fds[3])
{
    const struct cmsghdr *item = CMSG_FIRSTHDR(header);
    if (item && item->cmsg_type == SCM_RIGHTS && item->cmsg_len <= CMSG_LEN(3 * sizeof(int)))
        memcpy(fds, CMSG_DATA(item), item->cmsg_len - CMSG_LEN(0));
}

/* Receives one message with up to three descriptors; false when there is none, or it does not follow our protocol. */
static bool client_receive(int fd, struct companion_message *message, int fds[3])
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (own_call_sig(SYS_recvmsg, fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (long)sizeof *message)
        return false;
    take_descriptors(&header, fds);
    return message->magic == COMPANION_MAGIC && message->version == COMPANION_VERSION;
}

/* The outcome of a conversation. */
enum talk { TALK_ANSWERED, TALK_SILENT /* in time */, TALK_HUNG_UP /* or nobody was there */ };

static bool is_stopped(pid_t pid)
{
    char path[32] = "/proc/", text[512], digits[12];
    size_t len = strlen(path), n_digits = 0;
    for (; pid > 0; pid /= 10)
        digits[n_digits++] = (char)('0' + pid % 10);
    while (n_digits)
        path[len++] = digits[--n_digits];
    memcpy(path + len, "/stat", sizeof "/stat");
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long n = fd >= 0 ? own_call_sig(SYS_read, fd, text, sizeof text) : 0, state = n + 1;
    if (fd >= 0)
        close_raw(fd);
    while (state > 1 && text[state - 2] != ')') /* the name before it may hold anything */
        state--;
    return state > 1 && state < n && (text[state] == 'T' || text[state] == 't');
}

/* Whether the companion is stopped by a signal or a debugger. Its socket says which process it is. */
static bool companion_is_stopped(void)
{
    struct ucred peer = {0};
    socklen_t n_bytes = sizeof peer;
    int fd = dial();
    bool is_known = fd >= 0 && own_call_sig(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) == 0;
    if (fd >= 0)
        close_raw(fd);
    return is_known && peer.pid > 0 && is_stopped(peer.pid);
}

/* Waits for the companion's answer, but not for one that cannot answer. */
static bool wait_for_answer(int fd)
{
    for (int waited_ms = 0; waited_ms < COMPANION_END_WAIT_MS; waited_ms += PATIENCE_MS)
        if (wait_for(fd, POLLIN, PATIENCE_MS))
            return true;
        else if (companion_is_stopped())
            return false;
    return false;
}

/* Sends one message over a connection of its own, fd, and stores the answer in its place. */
static enum talk talk_over(int fd, enum companion_kind kind, struct companion_message *message, int fds[3])
{
    enum talk talk = TALK_HUNG_UP;
    if (fd < 0)
        return talk;
    if (client_send(fd, kind, message)) {
        bool is_heard = wait_for_answer(fd);
        talk = !is_heard ? TALK_SILENT : client_receive(fd, message, fds) ? TALK_ANSWERED : TALK_HUNG_UP;
    }
    close_raw(fd);
    return talk;
}

/* Talks over the way; if nobody listens there, or the companion has no descriptor left for it, connects by name. */
static enum talk client_talk(enum companion_kind kind, struct companion_message *message, int fds[3])
{
    way_read();
    enum talk talk = talk_over(knock(), kind, message, fds);
    return talk == TALK_HUNG_UP ? talk_over(dial(), kind, message, fds) : talk;
}

/* Sends the first message and takes the companion's answer. */
static enum client_answer greet(const struct client_inheritance *inheritance, struct client_welcome *welcome)
{
    struct companion_message message = {.rank = process_rank()};
    bool is_of_samples;
    const char *why = process_reason_not_to_measure(&is_of_samples);
    zone_begin_sig(getauxval(AT_PAGESZ), arena_log_sig);
    if (!why && !zone_leaves_room_sig(inheritance ? inheritance->used_bytes : START_ROOM_BYTES))
        why = "its limit of address space or data (ulimit -v, -d) is too small for the recording";
    if (why)
        strncpy(message.text, why, sizeof message.text - 1);
    message.exit_code = why && is_of_samples;
    struct rlimit limit;
    if (own_call_sig(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        message.size_bytes = SMALL_ARENA_BYTES;
    if (inheritance) {
        message.size_bytes = inheritance->arena_bytes;
        message.recipe_bytes = inheritance->used_bytes;
    }
    int fds[3] = {-1, -1, -1};
    bool is_answered = client_talk(inheritance ? COMPANION_FORK : COMPANION_HELLO, &message, fds) == TALK_ANSWERED;
    bool is_welcome = is_answered && message.kind == COMPANION_WELCOME && fds[0] >= 0;
    for (int i = 0; !is_welcome && i < 3; i++) {
        if (fds[i] >= 0)
            close_raw(fds[i]);
    }
    if (!is_welcome)
        return is_answered && message.kind == COMPANION_REFUSED ? CLIENT_REFUSED : CLIENT_NO_ANSWER;
    *welcome = (struct client_welcome){.arena_fd = fds[0],
                                       .recipe_fd = fds[1],
                                       .bell_fd = descriptors_move_up_sig(fds[2], DESCRIPTOR_WAY),
                                       .arena_bytes = message.size_bytes,
                                       .recipe_bytes = message.recipe_bytes};
    return CLIENT_WELCOME;
}

/* Sends HELLO (or, with a inheritance, FORK) and fills *welcome if the answer is WELCOME.  ctx: ordinary or hook; no
 * malloc */
static enum client_answer client_hello(const struct client_inheritance *inheritance, struct client_welcome *welcome)
{
    int saved_errno = errno;
    if (inheritance && sandbox_is_entered_sig())
        return CLIENT_NO_ANSWER;
    enum client_answer answer = greet(inheritance, welcome);
    errno = saved_errno;
    return answer;
}

static bool part(int exit_code, int rank)
{
    struct companion_message message = {.rank = rank, .exit_code = exit_code};
    int fds[3] = {-1, -1, -1};
    /* A companion that is late with its answer has the arena and will write it; one that has hung up will not. */
    return client_talk(COMPANION_END, &message, fds) != TALK_HUNG_UP;
}

/* Sends END and waits for WRITTEN, but not for ever. False when no companion can write the files: it has died or cannot
 * be reached.  ctx: ordinary; no malloc */
static bool client_end(int exit_code, int rank)
{
    int saved_errno = errno;
    if (sandbox_is_entered_sig())
        return true;
    bool is_there = part(exit_code, rank);
    errno = saved_errno;
    return is_there;
}

/* --- the arena --- */

/* Gets an arena from the companion: descriptors are mapped and closed at once, except for the bell. */

#define PART_BYTES ((size_t)16 << 20)

/* Maps what came with the WELCOME; a child's arena replaces its parent's. */
static bool adopt_welcome(const struct client_welcome *welcome)
{
    bool has_arena = welcome->arena_fd >= 0 && arena_map_sig(welcome->arena_fd, welcome->arena_bytes);
    if (has_arena)
        recipes_map_store_sig(welcome->recipe_fd, welcome->recipe_bytes);
    if (has_arena)
        arena_set_bell_sig(welcome->bell_fd);
    else if (welcome->bell_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->bell_fd);
    if (welcome->arena_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->arena_fd);
    if (welcome->recipe_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->recipe_fd);
    return has_arena;
}

void attach_give_up(int error)
{
    const struct {
        uint32_t word;
        int32_t error;
    } unfit = {COMPANION_UNFIT, error};
    int saved_errno = errno;
    if (way_is_open())
        (void)own_call_sig(SYS_sendto, way.fd, &unfit, sizeof unfit, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    errno = saved_errno;
}

/* Why there was no conversation: an errno if no descriptors are left for it, else 0. */
static int descriptors_error(void)
{
    long fds[COMPANION_FDS];
    int n = 0;
    while (n < COMPANION_FDS && (fds[n] = own_call_sig(SYS_fcntl, way.fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        n++;
    int error = n < COMPANION_FDS ? errno : 0;
    while (n > 0)
        close_raw((int)fds[--n]);
    return error;
}

bool attach_start(void)
{
    struct client_welcome welcome;
    enum client_answer answer = client_hello(NULL, &welcome);
    bool is_attached = answer == CLIENT_WELCOME && adopt_welcome(&welcome);
    if (!is_attached && answer != CLIENT_REFUSED && way_is_open())
        attach_give_up(answer == CLIENT_WELCOME ? ENOMEM : descriptors_error());
    if (!is_attached)
        return false;
    process_describe();
    loadmap_init();
    return true;
}

bool attach_fork_child(void)
{
    struct client_welcome welcome;
    const struct client_inheritance inheritance = {arena_header_sig()->size_bytes, arena_used_bytes()};
    int bell = sandbox_is_entered_sig() ? -1 : arena_bell_sig();
    if (bell >= 0)
        (void)own_call_sig(SYS_close, bell);
    arena_set_bell_sig(-1);
    enum client_answer answer = client_hello(&inheritance, &welcome);
    bool has_heritage = answer == CLIENT_WELCOME && welcome.arena_fd >= 0 && arena_inherit(welcome.arena_fd);
    if (answer == CLIENT_NO_ANSWER || (answer == CLIENT_WELCOME && !has_heritage))
        arena_note_child_sig(sandbox_is_entered_sig() ? CHILD_SANDBOXED : CHILD_UNHEARD, own_pid_sig(), NULL);
    if (answer != CLIENT_WELCOME || !adopt_welcome(&welcome) || !has_heritage)
        return false;
    arena_shared_reset_sig();
    loadmap_fork_child_sig();
    recipes_fork_child_sig();
    waits_fork_child();
    process_describe();
    return true;
}

/* Checked because exceeding the limit would raise a signal. */
static bool fits_file_limit(uint64_t n_bytes)
{
    struct rlimit limit;
    return own_call_sig(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && n_bytes <= limit.rlim_cur;
}

static bool write_all(int fd, const char *bytes, uint64_t n_bytes)
{
    while (n_bytes) {
        size_t part = n_bytes < PART_BYTES ? n_bytes : PART_BYTES;
        long n = own_call_sig(SYS_write, fd, bytes, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EFAULT) /* handed out but never mapped, so nothing was written there */
            return true;
        if (n <= 0)
            return false;
        bytes += n;
        n_bytes -= (uint64_t)n;
    }
    return true;
}

/* The companion is gone, so only this process has the arena: writes a copy of it to the measurement directory, where
 * hpcrun --collect makes files of it. */
static void save_arena(void)
{
    const struct arena_header *header = arena_header_sig();
    uint64_t used = arena_used_bytes();
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    if (!header->left[0] || !fits_file_limit(header->size_bytes))
        return;
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, header->left, flags, 0600);
    if (fd < 0)
        return;
    (void)own_call_sig(SYS_flock, fd, LOCK_EX); /* hpcrun --collect leaves it alone until it is complete */
    if (!write_all(fd, (const char *)header, used) || own_call_sig(SYS_ftruncate, fd, header->size_bytes) != 0)
        (void)own_call_sig(SYS_unlinkat, AT_FDCWD, header->left, 0);
    (void)own_call_sig(SYS_close, fd);
}

void attach_end(int exit_code)
{
    int saved_errno = errno;
    if (!client_end(exit_code, (int)atomic_load(&arena_header_sig()->rank)))
        save_arena();
    errno = saved_errno;
}

void attach_leave(void)
{
    struct companion_message message = {.rank = (int)atomic_load(&arena_header_sig()->rank)};
    int saved_errno = errno, fd = dial();
    bool is_sent = fd >= 0 && client_send(fd, COMPANION_END, &message);
    if (fd >= 0)
        close_raw(fd);
    if (!is_sent)
        save_arena();
    int bell = arena_bell_sig();
    arena_set_bell_sig(-1);
    if (bell >= 0)
        close_raw(bell);
    errno = saved_errno;
}

#define ROOM_TRIES 1000 /* of 1 ms */

bool attach_make_room(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int saved_errno = errno;
    struct arena_header *header = process_is_ours_sig() && !process_is_vfork_child_sig() ? arena_header_sig() : NULL;
    if (!header || sandbox_is_entered_sig() || atomic_load(&header->room) == ROOM_GIVEN)
        return false;
    atomic_store(&header->room, ROOM_WANTED);
    arena_ring_sig();
    for (int tries = 0; tries < ROOM_TRIES && atomic_load(&header->room) == ROOM_WANTED; tries++)
        (void)own_call_sig(SYS_nanosleep, &pause, NULL);
    bool is_given = atomic_load(&header->room) != ROOM_WANTED;
    if (!is_given)
        atomic_store(&header->room, ROOM_GIVEN); /* there is no answer: it is not waited for again */
    errno = saved_errno;
    return is_given;
}
