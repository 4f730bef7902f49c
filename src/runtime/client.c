/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime's side of the conversation with the companion: one short connection for the start, one for the end, so
 * that no descriptor of ours stays open for the program to close or inherit. */
#include "runtime/client.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fmt/companion.h"
#include "runtime/descriptors.h"
#include "runtime/process.h"
#include "runtime/sandbox.h"

#define SMALL_ARENA_BYTES ((uint64_t)64 << 20)

/* A connection to the companion, -1 when there is none. */
static int client_connect(void)
{
    const char *name = process_environment(COMPANION_ENV);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!name || !name[0] || strlen(name) > sizeof address.sun_path - 2)
        return -1;
    memcpy(address.sun_path + 1, name, strlen(name));
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (fd >= 0 && syscall(SYS_connect, fd, &address, len) != 0) {
        (void)syscall(SYS_close, fd);
        fd = -1;
    }
    return fd;
}

static bool client_send(int fd, enum companion_kind kind, struct companion_message *message)
{
    message->magic = COMPANION_MAGIC;
    message->version = COMPANION_VERSION;
    message->kind = kind;
    message->pid = (uint32_t)getpid();
    return syscall(SYS_sendto, fd, message, sizeof *message, MSG_NOSIGNAL, NULL, 0) == (long)sizeof *message;
}

/* Takes over the descriptors of a message: as many as the limits let in. */
static void take_descriptors(struct msghdr *header, int fds[3])
{
    const struct cmsghdr *item = CMSG_FIRSTHDR(header);
    if (item && item->cmsg_type == SCM_RIGHTS && item->cmsg_len <= CMSG_LEN(3 * sizeof(int)))
        memcpy(fds, CMSG_DATA(item), item->cmsg_len - CMSG_LEN(0));
}

/* Receives one message with up to three descriptors, waiting at most timeout_ms. */
static bool client_receive(int fd, struct companion_message *message, int fds[3], int timeout_ms)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    struct timespec patience = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    long ready = syscall(SYS_ppoll, &wait, 1, &patience, NULL, 0);
    if (ready <= 0 || syscall(SYS_recvmsg, fd, &header, MSG_CMSG_CLOEXEC) != (long)sizeof *message)
        return false;
    take_descriptors(&header, fds);
    return message->magic == COMPANION_MAGIC && message->version == COMPANION_VERSION;
}

/* The conversation of the start. */
static bool greet(bool is_fork, struct client_welcome *welcome)
{
    struct companion_message message = {.rank = process_rank()};
    const char *why = process_reason_to_leave();
    if (why)
        strncpy(message.text, why, sizeof message.text - 1);
    struct rlimit limit;
    int fd = client_connect();
    if (fd < 0)
        return false;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        message.size_bytes = SMALL_ARENA_BYTES;
    int fds[3] = {-1, -1, -1};
    bool is_welcome = client_send(fd, is_fork ? COMPANION_FORK : COMPANION_HELLO, &message) &&
                      client_receive(fd, &message, fds, COMPANION_END_WAIT_MS) && message.kind == COMPANION_WELCOME &&
                      fds[0] >= 0;
    (void)syscall(SYS_close, fd);
    for (int i = 0; !is_welcome && i < 3; i++) {
        if (fds[i] >= 0)
            (void)syscall(SYS_close, fds[i]);
    }
    if (!is_welcome)
        return false;
    *welcome = (struct client_welcome){.arena_fd = fds[0],
                                       .recipe_fd = fds[1],
                                       .bell_fd = descriptors_move_up_sig(fds[2], DESCRIPTOR_WAY),
                                       .arena_bytes = message.size_bytes,
                                       .recipe_bytes = message.recipe_bytes};
    return true;
}

bool client_hello(bool is_fork, struct client_welcome *welcome)
{
    return greet(is_fork, welcome);
}

static bool part(int exit_code, int rank)
{
    struct companion_message message = {.rank = rank, .exit_code = exit_code};
    int fd = client_connect();
    int fds[3] = {-1, -1, -1};
    if (fd < 0)
        return false;
    bool is_written = client_send(fd, COMPANION_END, &message) &&
                      client_receive(fd, &message, fds, COMPANION_END_WAIT_MS) && message.kind == COMPANION_WRITTEN;
    (void)syscall(SYS_close, fd);
    return is_written;
}

bool client_end(int exit_code, int rank)
{
    if (sandbox_is_entered_sig())
        return false;
    return part(exit_code, rank);
}
