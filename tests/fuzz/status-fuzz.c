/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for hpcrun --status, which reads what others have written. First byte even: an arena
 * (arena-input.h), looked at and told in all forms; odd: a companion's answers as steps (steps.h), each of kind
 * descriptors and the bytes from pid on, or when b is not 0 of nothing but the bytes. */
#include <jansson.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "arena/arena.h"
#include "running/running.h"

#include "arena-input.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { ANSWERS_MAX = 16 };

static void check_text(struct running_list *list, void (*print)(struct running_list *, FILE *), bool is_json)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    check(out != NULL, "out of memory");
    print(list, out);
    check(fclose(out) == 0 && n > 0, "nothing is told");
    json_t *root = is_json ? json_loadb(text, n, 0, NULL) : NULL;
    check(!is_json || root, "what is told is no JSON");
    json_decref(root);
    for (size_t i = 0; !is_json && i < n; i++)
        check(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 127), "a terminal would be driven");
    free(text);
}

static void print_one(struct running_list *list, FILE *out)
{
    (void)running_print_one(&list->processes[0], false, 0, out);
}

static void print_json(struct running_list *list, FILE *out)
{
    struct buf text = {0};
    running_print_json(list, &text);
    (void)fwrite(text.data, 1, text.len_bytes, out);
    buf_fini(&text);
}

static void look(const uint8_t *data, size_t len_bytes)
{
    size_t size_bytes;
    struct error err = {0};
    char *arena = arena_input_fill(data, len_bytes, &size_bytes);
    struct running_process process = {.pid = 7, .dir = "/m\033", .arena = arena, .size_bytes = size_bytes};
    struct running_list list = {.tool = "status-fuzz", .processes = &process, .n = 1};
    check(arena != NULL, "out of memory");
    if (running_look(&process, true, &err) == 0 && running_look(&process, true, &err) == 0) {
        check_text(&list, print_one, false);
        check_text(&list, running_print_list, false);
        check_text(&list, print_json, true);
    } else {
        check(err.text[0] != '\0', "a refusal has no message");
    }
    running_process_fini(&process);
    free(arena);
}

/* Memory with an arena, as a companion hands out; its header tells of chunks that are not there. */
static int make_memory(void)
{
    size_t size_bytes;
    char *arena = arena_input_fill(NULL, 0, &size_bytes);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    check(arena != NULL, "out of memory");
    ((struct arena_header *)(void *)arena)->chunk_limit = 1 << 20;
    atomic_store(&((struct arena_header *)(void *)arena)->n_chunks, 1 << 20);
    check(fd >= 0 && write(fd, arena, size_bytes) == (ssize_t)size_bytes, "no memory");
    free(arena);
    return fd;
}

static void answer(int fd, const struct step *step, const uint8_t *bytes, int memory_fd)
{
    struct companion_message message = {
        .magic = COMPANION_MAGIC, .version = COMPANION_VERSION, .kind = COMPANION_STATUS};
    const size_t at = offsetof(struct companion_message, pid), room = sizeof message - at;
    const size_t n_fds = step->kind % 4;
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr item;
    } control = {
        .item = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_fds * sizeof(int))}};
    memcpy((char *)&message + at, bytes, step->n_bytes < room ? step->n_bytes : room);
    for (size_t i = 0; i < n_fds; i++)
        memcpy(CMSG_DATA(&control.item) + i * sizeof(int), &memory_fd, sizeof memory_fd);
    struct iovec part = {.iov_base = step->b ? (void *)(uintptr_t)bytes : &message,
                         .iov_len = step->b ? step->n_bytes : sizeof message};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = n_fds ? control.bytes : NULL,
                            .msg_controllen = n_fds ? CMSG_SPACE(n_fds * sizeof(int)) : 0};
    (void)sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void talk(const uint8_t *data, size_t len_bytes)
{
    int ends[2], memory_fd = make_memory();
    struct step step;
    const uint8_t *bytes;
    struct running_list list = {.tool = "status-fuzz"};
    struct error err = {0};
    check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
    for (unsigned n = 0; n < ANSWERS_MAX && (bytes = step_next(&data, &len_bytes, &step)); n++)
        answer(ends[1], &step, bytes, memory_fd);
    (void)shutdown(ends[1], SHUT_WR);
    check(running_ask(&list, "fuzz", ends[0], geteuid(), &err) == 0, err.text);
    for (size_t i = 0; i < list.n; i++)
        (void)running_look(&list.processes[i], true, &err);
    running_keep_readable(&list);
    if (list.n)
        check_text(&list, running_print_list, false);
    running_fini(&list);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(memory_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    int lowest = scratch_descriptor();
    if (len_bytes && data[0] & 1)
        talk(data + 1, len_bytes - 1);
    else if (len_bytes)
        look(data + 1, len_bytes - 1);
    check(scratch_descriptor() == lowest, "a descriptor is left open");
    return 0;
}
