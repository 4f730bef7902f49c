/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding measured processes: the kernel lists the sockets of all companions, and each companion tells of its
 * processes, one question at a time, and hands out their arenas for reading. */
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/vec.h"

#define ANSWER_MS 3000        /* for one answer of a companion of our own */
#define FOREIGN_ANSWER_MS 500 /* of another user's */
#define FOREIGN_ALL_MS 2000   /* for all answers of one of these, and of all that belong to one user */
#define FOREIGN_PROCESSES 4096
#define USERS_MAX 64

enum answer { ANSWER_PROCESS, ANSWER_LAST, ANSWER_GONE, ANSWER_SILENT, ANSWER_ENDLESS };

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if (len > sizeof address.sun_path - 2)
        return -1;
    memcpy(address.sun_path + 1, name, len);
    /* A queue that somebody keeps full would hold us. */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Who opened the socket, as the kernel knows. */
static bool find_peer(int fd, struct ucred *peer)
{
    socklen_t len = sizeof *peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) == 0;
}

static bool is_foreign(uid_t uid)
{
    return uid != geteuid() && uid != 0;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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

static enum answer receive(int fd, int timeout_ms, struct companion_message *message, int *arena_fd)
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
    if (poll(&wait, 1, timeout_ms) <= 0)
        return ANSWER_SILENT;
    ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n > 0)
        *arena_fd = take_descriptor(&header);
    if (n != (ssize_t)sizeof *message || message->magic != COMPANION_MAGIC || message->kind != COMPANION_STATUS)
        return ANSWER_GONE;
    message->text[sizeof message->text - 1] = '\0';
    return message->pid ? ANSWER_PROCESS : ANSWER_LAST;
}

static enum answer ask(int fd, int timeout_ms, pid_t after, struct companion_message *message, int *arena_fd)
{
    *message = (struct companion_message){.magic = COMPANION_MAGIC,
                                          .version = COMPANION_VERSION,
                                          .kind = COMPANION_STATUS,
                                          .pid = (uint32_t)getpid(),
                                          .exit_code = after};
    *arena_fd = -1;
    if (send(fd, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof *message)
        return ANSWER_GONE;
    return receive(fd, timeout_ms, message, arena_fd);
}

/* What lies behind the end of a file must not be touched, so nobody's word is taken for its size. */
static bool has_bytes(int fd, uint64_t n_bytes)
{
    struct stat info;
    return fd >= 0 && n_bytes && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size >= n_bytes;
}

/* Whether another user's companion may tell this: of a process of that user, in memory that nobody can cut short while
 * we look at it. */
static bool is_credible(const struct companion_message *message, int arena_fd, uid_t uid)
{
    char path[64];
    struct stat status;
    int seals = arena_fd >= 0 ? fcntl(arena_fd, F_GET_SEALS) : -1;
    (void)snprintf(path, sizeof path, "/proc/%u", message->pid);
    return seals >= 0 && seals & F_SEAL_SHRINK && stat(path, &status) == 0 &&
           (status.st_uid == uid || status.st_uid == 0);
}

/* A process that ends meanwhile leaves nothing to map. */
static int add_process(struct status_list *list, const struct companion_message *message, int arena_fd, uid_t uid,
                       struct error *err)
{
    void *arena = MAP_FAILED;
    if (is_foreign(uid) && !is_credible(message, arena_fd, uid))
        return 0;
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
        .pid = (pid_t)message->pid, .arena = arena, .size_bytes = message->size_bytes, .is_foreign = is_foreign(uid)};
    memcpy(process->dir, message->text, sizeof process->dir);
    process->dir[sizeof process->dir - 1] = '\0';
    return 0;
}

int status_ask(struct status_list *list, int fd, uid_t uid, struct error *err)
{
    struct companion_message message;
    int code = 0, arena_fd, timeout_ms = is_foreign(uid) ? FOREIGN_ANSWER_MS : ANSWER_MS;
    unsigned n_answers = 0;
    int64_t end_ms = now_ms() + FOREIGN_ALL_MS;
    enum answer answer = ANSWER_PROCESS;
    for (pid_t after = 0; code == 0 && answer == ANSWER_PROCESS; after = (pid_t)message.pid) {
        if (is_foreign(uid) && (n_answers++ == FOREIGN_PROCESSES || now_ms() > end_ms)) {
            answer = ANSWER_ENDLESS;
            break;
        }
        answer = ask(fd, timeout_ms, after, &message, &arena_fd);
        if (answer == ANSWER_PROCESS && (pid_t)message.pid <= after)
            answer = ANSWER_GONE;
        if (answer == ANSWER_PROCESS)
            code = add_process(list, &message, arena_fd, uid, err);
        if (arena_fd >= 0)
            (void)close(arena_fd);
    }
    if (!is_foreign(uid))
        list->n_silent += answer == ANSWER_SILENT;
    else if (answer != ANSWER_LAST)
        buf_printf(&list->skipped, "A companion process of user %lu %s.\n", (unsigned long)uid,
                   answer == ANSWER_SILENT    ? "did not answer"
                   : answer == ANSWER_ENDLESS ? "answered without end"
                                              : "answered what makes no sense");
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

/* Time that each other user's companions have taken. */
struct spent {
    struct {
        uid_t uid;
        int64_t ms;
    } users[USERS_MAX];
    unsigned n;
};

/* The time of a user; NULL when there are too many. */
static int64_t *spent_of(struct spent *spent, uid_t uid)
{
    for (unsigned i = 0; i < spent->n; i++)
        if (spent->users[i].uid == uid)
            return &spent->users[i].ms;
    if (spent->n == USERS_MAX)
        return NULL;
    spent->users[spent->n].uid = uid;
    return &spent->users[spent->n++].ms;
}

/* One user's companions together take no longer than one of them may. */
static int ask_foreign(struct status_list *list, int fd, uid_t uid, struct spent *spent, struct error *err)
{
    int64_t start_ms = now_ms(), *ms = spent_of(spent, uid);
    if (!ms || *ms < 0)
        return 0;
    if (*ms > FOREIGN_ALL_MS) {
        buf_printf(&list->skipped, "Further companion processes of user %lu were not asked.\n", (unsigned long)uid);
        *ms = -1;
        return 0;
    }
    int code = status_ask(list, fd, uid, err);
    *ms += now_ms() - start_ms;
    return code;
}

/* Asks our own companions and root's (is_second: those of other users, which root may look at). */
static int ask_all(struct status_list *list, const struct strtab *names, bool is_second, struct error *err)
{
    struct spent spent = {.n = 0};
    int code = 0;
    for (size_t i = 0; code == 0 && i < names->n_strings; i++) {
        struct ucred peer;
        int fd = connect_to(names->strings[i]);
        if (fd < 0)
            continue;
        bool is_known = find_peer(fd, &peer), is_others = is_known && is_foreign(peer.uid);
        if (is_known && !is_others && !is_second && (peer.uid == geteuid() || geteuid() == 0))
            code = status_ask(list, fd, peer.uid, err);
        else if (is_others && is_second)
            code = ask_foreign(list, fd, peer.uid, &spent, err);
        (void)close(fd);
    }
    return code;
}

int status_find(struct status_list *list, struct error *err)
{
    struct strtab names = {0};
    int code = 0;
    *list = (struct status_list){0};
    if (!list_names(&names))
        return error_set(err, ERR_IO, "/proc/net/unix cannot be read: %s.", strerror(errno));
    code = ask_all(list, &names, false, err);
    if (code == 0 && geteuid() == 0)
        code = ask_all(list, &names, true, err);
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
    buf_fini(&list->skipped);
    *list = (struct status_list){0};
}
