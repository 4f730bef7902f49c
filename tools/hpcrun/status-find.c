/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding measured processes: the kernel lists the sockets of all companions, and each companion tells of its
 * processes, one question at a time, and hands out their arenas for reading. */
#include "status.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/vec.h"
#include "fmt/companion.h"

#define ANSWER_MS 3000

enum answer { ANSWER_PROCESS, ANSWER_LAST, ANSWER_GONE, ANSWER_SILENT };

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if (len > sizeof address.sun_path - 2)
        return -1;
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* The socket belongs to who opened it. */
static bool is_foreign(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return geteuid() != 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid != geteuid();
}

/* The one descriptor of a message, -1 when there is none; none is expected beside it. */
static int take_descriptor(struct msghdr *header)
{
    int first = -1, fd;
    const struct cmsghdr *item = CMSG_FIRSTHDR(header);
    size_t n = item && item->cmsg_type == SCM_RIGHTS ? (item->cmsg_len - CMSG_LEN(0)) / sizeof fd : 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
        if (i == 0)
            first = fd;
        else
            (void)close(fd);
    }
    return first;
}

static enum answer receive(int fd, struct companion_message *message, int *arena_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    *arena_fd = -1;
    if (poll(&wait, 1, ANSWER_MS) <= 0)
        return ANSWER_SILENT;
    ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    if (n > 0)
        *arena_fd = take_descriptor(&header);
    if (n != (ssize_t)sizeof *message || message->magic != COMPANION_MAGIC || message->kind != COMPANION_STATUS)
        return ANSWER_GONE;
    message->text[sizeof message->text - 1] = '\0';
    return message->pid ? ANSWER_PROCESS : ANSWER_LAST;
}

static enum answer ask(int fd, pid_t after, struct companion_message *message, int *arena_fd)
{
    *message = (struct companion_message){.magic = COMPANION_MAGIC,
                                          .version = COMPANION_VERSION,
                                          .kind = COMPANION_STATUS,
                                          .pid = (uint32_t)getpid(),
                                          .exit_code = after};
    *arena_fd = -1;
    if (send(fd, message, sizeof *message, MSG_NOSIGNAL) != (ssize_t)sizeof *message)
        return ANSWER_GONE;
    return receive(fd, message, arena_fd);
}

/* What lies behind the end of a file must not be touched, so nobody's word is taken for its size. */
static bool has_bytes(int fd, uint64_t n_bytes)
{
    struct stat info;
    return fd >= 0 && n_bytes && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size >= n_bytes;
}

/* A process that ends meanwhile leaves nothing to map. */
static int add_process(struct status_list *list, const struct companion_message *message, int arena_fd,
                       struct error *err)
{
    void *arena = MAP_FAILED;
    if (has_bytes(arena_fd, message->size_bytes))
        arena = mmap(NULL, message->size_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, arena_fd, 0);
    if (arena == MAP_FAILED)
        return 0;
    if (!vec_reserve(&list->processes, &list->capacity, list->n + 1, sizeof *list->processes)) {
        (void)munmap(arena, message->size_bytes);
        return error_set(err, ERR_MEMORY, "Out of memory for the list of processes.");
    }
    struct status_process *process = &list->processes[list->n++];
    *process = (struct status_process){
        .pid = (pid_t)message->pid, .arena = arena, .size_bytes = message->size_bytes};
    memcpy(process->dir, message->text, sizeof process->dir);
    process->dir[sizeof process->dir - 1] = '\0';
    return 0;
}

int status_ask(struct status_list *list, int fd, struct error *err)
{
    struct companion_message message;
    int code = 0, arena_fd;
    enum answer answer = ANSWER_PROCESS;
    for (pid_t after = 0; code == 0 && answer == ANSWER_PROCESS; after = (pid_t)message.pid) {
        answer = ask(fd, after, &message, &arena_fd);
        if (answer == ANSWER_PROCESS && (pid_t)message.pid <= after)
            answer = ANSWER_GONE;
        if (answer == ANSWER_PROCESS)
            code = add_process(list, &message, arena_fd, err);
        if (arena_fd >= 0)
            (void)close(arena_fd);
    }
    list->n_silent += answer == ANSWER_SILENT;
    return code;
}

/* Names of companions' sockets, each once. */
static bool list_names(struct strtab *names)
{
    char *line = NULL;
    size_t n_line = 0;
    FILE *file = fopen("/proc/net/unix", "re");
    while (file && getline(&line, &n_line, file) > 0) {
        char *name = strrchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (name && strncmp(name, " @" COMPANION_PREFIX, 2 + sizeof COMPANION_PREFIX - 1) == 0)
            (void)strtab_intern(names, name + 2);
    }
    free(line);
    if (file)
        (void)fclose(file);
    return file != NULL;
}

static int compare(const void *a, const void *b)
{
    const struct status_process *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int status_find(struct status_list *list, struct error *err)
{
    struct strtab names = {0};
    int code = 0;
    *list = (struct status_list){0};
    if (!list_names(&names))
        return error_set(err, ERR_IO, "/proc/net/unix cannot be read: %s.", strerror(errno));
    for (size_t i = 0; code == 0 && i < names.n_strings; i++) {
        int fd = connect_to(names.strings[i]);
        if (fd < 0)
            continue;
        if (!is_foreign(fd))
            code = status_ask(list, fd, err);
        (void)close(fd);
    }
    strtab_fini(&names);
    if (list->n)
        qsort(list->processes, list->n, sizeof *list->processes, compare);
    if (code != 0)
        status_fini(list);
    return code;
}

void status_fini(struct status_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        (void)munmap((void *)(uintptr_t)list->processes[i].arena, list->processes[i].size_bytes);
        live_fini(&list->processes[i].live);
    }
    free(list->processes);
    *list = (struct status_list){0};
}
