/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion against a small client that speaks for the runtime: registration, growth, the three ways to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena/arena.h"
#include "companion/state.h"
#include "fnbounds/modtab-cache.h"
#include "fnbounds/recipe.h"
#include "measurement/pending.h"

struct client {
    int arena_fd, recipe_fd, bell_fd;
    struct arena_header *arena;
    struct recipe_store *recipes;
};

struct fixture {
    struct companion_setup setup;
    char name[COMPANION_NAME_MAX];
    pid_t companion;
};

static int dial(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void say(int fd, uint32_t kind, uint32_t version, const char *text)
{
    struct companion_message message = {.magic = COMPANION_MAGIC, .version = version, .kind = kind, .rank = -1};
    message.pid = (uint32_t)getpid();
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    assert_int_equal(send(fd, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
}

/* Reads one message; the descriptors that came with it go to fds [3], -1 where there are none. */
static uint32_t hear(int fd, struct companion_message *message, int fds[3])
{
    char control[CMSG_SPACE(3 * sizeof(int))];
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    fds[0] = fds[1] = fds[2] = -1;
    if (recvmsg(fd, &header, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *message)
        return 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (c)
        memcpy(fds, CMSG_DATA(c), 3 * sizeof(int));
    return message->kind;
}

static void greet(const char *name, uint32_t kind, struct client *client)
{
    struct companion_message welcome;
    int fds[3], fd = dial(name);
    assert_true(fd >= 0);
    say(fd, kind, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &welcome, fds), COMPANION_WELCOME);
    close(fd);
    client->arena_fd = fds[0];
    client->recipe_fd = fds[1];
    client->bell_fd = fds[2];
    client->arena = mmap(NULL, welcome.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert_ptr_not_equal(client->arena, MAP_FAILED);
    assert_int_equal(client->arena->size_bytes, welcome.size_bytes);
    client->recipes = mmap(NULL, welcome.recipe_bytes, PROT_READ, MAP_SHARED, fds[1], 0);
    assert_ptr_not_equal(client->recipes, MAP_FAILED);
}

static void *add_chunk(struct client *client, enum arena_kind kind, uint32_t used_bytes)
{
    struct arena_header *arena = client->arena;
    uint32_t n_chunks = (used_bytes + ARENA_CHUNK_BYTES - 1) / ARENA_CHUNK_BYTES;
    uint32_t i = atomic_fetch_add(&arena->n_chunks, n_chunks);
    struct arena_chunk *chunk = (struct arena_chunk *)(void *)((char *)arena + arena->chunk_table_offset) + i;
    arena_run_begin(chunk, n_chunks, kind, 0);
    atomic_store(&chunk->used_bytes, used_bytes);
    return (char *)arena + arena->chunk_data_offset + (uint64_t)i * ARENA_CHUNK_BYTES;
}

static struct arena_thread *add_thread(struct client *client, uint64_t n_taken)
{
    struct arena_thread *thread = add_chunk(client, ARENA_THREADS, sizeof(struct arena_thread));
    atomic_store(&thread->taken[0], n_taken);
    (void)snprintf(client->arena->argv0, sizeof client->arena->argv0, "fake");
    return thread;
}

static int setup(void **state)
{
    struct error err;
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->setup.dir, sizeof f->setup.dir, "companion-test-XXXXXX");
    assert_non_null(mkdtemp(f->setup.dir));
    char *real = realpath(f->setup.dir, NULL);
    (void)snprintf(f->setup.dir, sizeof f->setup.dir, "%s", real);
    free(real);
    (void)snprintf(f->setup.tables, sizeof f->setup.tables, "%.4000s/tables", f->setup.dir);
    f->setup.launched_pidfd = f->setup.done_fd = -1;
    f->setup.n_events = 1;
    f->setup.min_bytes = 1024;
    (void)snprintf(f->setup.events[0].metric, sizeof f->setup.events[0].metric, "EADDR (usec)");
    int fd = companion_listen(f->name, &err);
    assert_true(fd >= 0);
    f->companion = companion_start(&f->setup, fd, &err);
    assert_true(f->companion > 0);
    *state = f;
    return 0;
}

/* Waits for the companion's own end and returns its exit status. */
static int wait_companion(struct fixture *f)
{
    int status = -1;
    assert_int_equal(waitpid(f->companion, &status, 0), f->companion);
    f->companion = 0;
    return status;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[ARENA_PATH_MAX + 16];
    if (f->companion) {
        /* This process is registered, so its companion would outlive it. */
        (void)kill(f->companion, SIGKILL);
        (void)wait_companion(f);
    }
    (void)snprintf(command, sizeof command, "rm -rf '%s'", f->setup.dir);
    (void)!system(command);
    free(f);
    return 0;
}

/* Number of files in the directory whose name contains part; the last one's content starts text. */
static int count_files(const struct fixture *f, const char *part, char *text, size_t n_text)
{
    int n = 0;
    DIR *dir = opendir(f->setup.dir);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || !strstr(entry->d_name, part))
            continue;
        n++;
        char path[2 * ARENA_PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", f->setup.dir, entry->d_name);
        FILE *file = fopen(path, "r");
        size_t len = fread(text, 1, n_text - 1, file);
        text[len] = '\0';
        fclose(file);
    }
    closedir(dir);
    return n;
}

static void test_normal_end(void **state)
{
    struct fixture *f = *state;
    struct client client;
    struct companion_message message;
    char text[4096];
    int fds[3];
    greet(f->name, COMPANION_HELLO, &client);
    assert_memory_equal(client.arena->magic, ARENA_MAGIC, 8);
    assert_int_equal(client.arena->n_events, 1);
    assert_string_equal(client.arena->events[0].metric, "EADDR (usec)");
    assert_memory_equal(client.recipes->magic, RECIPE_MAGIC, 8);
    assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, client.recipe_fd, 0), MAP_FAILED);
    assert_null(recipe_find_block(client.recipes, 1, 2));
    add_thread(&client, 7);
    for (int i = 0; i < 500 && pending_wait(f->setup.dir, 0) != PENDING_RUNNING; i++)
        usleep(20000);
    assert_int_equal(pending_wait(f->setup.dir, 0), PENDING_RUNNING);
    int fd = dial(f->name);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    assert_string_equal(message.text, "");
    assert_int_equal(count_files(f, ".hpcrun", text, sizeof text), 1);
    assert_memory_equal(text, "HPCRUN-profile____", 18);
    close(fd);
}

static void test_no_samples_leave_one_line(void **state)
{
    struct fixture *f = *state;
    struct client client;
    struct companion_message message;
    char text[4096];
    int fds[3];
    greet(f->name, COMPANION_HELLO, &client);
    add_thread(&client, 0);
    int fd = dial(f->name);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    assert_int_equal(count_files(f, "fake-", text, sizeof text), 0);
    /* a worker writes lines when there are some */
    for (int i = 0; i < 500 && (count_files(f, "index-", text, sizeof text) == 0 || !strstr(text, "no samples")); i++)
        usleep(20000);
    assert_int_equal(count_files(f, "index-", text, sizeof text), 1);
    assert_non_null(strstr(text, "no samples"));
    close(fd);
}

static void test_killed_process_is_written(void **state)
{
    struct fixture *f = *state;
    struct client client;
    char text[4096];
    pid_t child = fork();
    if (child == 0) {
        greet(f->name, COMPANION_HELLO, &client);
        add_thread(&client, 7);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(wait_companion(f), 0);
    assert_int_equal(count_files(f, ".hpcrun", text, sizeof text), 1);
    assert_int_equal(pending_wait(f->setup.dir, 0), PENDING_NONE);
}

static void test_sigterm_makes_a_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct client client;
    char text[4096];
    greet(f->name, COMPANION_HELLO, &client);
    add_thread(&client, 7);
    assert_int_equal(kill(f->companion, SIGTERM), 0);
    for (int i = 0; i < 500 && count_files(f, ".objects", text, sizeof text) == 0; i++)
        usleep(20000);
    assert_int_equal(count_files(f, ".objects", text, sizeof text), 1);
    assert_non_null(strstr(text, "checkpoint"));
    int fds[3], fd = dial(f->name);
    struct companion_message message;
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
    assert_int_equal(count_files(f, ".objects", text, sizeof text), 1);
    assert_non_null(strstr(text, "complete"));
}

static void test_exec_ends_the_earlier_arena(void **state)
{
    struct fixture *f = *state;
    char text[4096];
    pid_t child = fork();
    if (child == 0) {
        struct client first, second;
        greet(f->name, COMPANION_HELLO, &first);
        add_thread(&first, 7);
        greet(f->name, COMPANION_HELLO, &second);
        add_thread(&second, 9);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(wait_companion(f), 0);
    assert_int_equal(count_files(f, ".hpcrun", text, sizeof text), 2);
}

/* What the child takes over it copies itself (runtime/record/arena-inherit.c). */
static void check_child(const struct client *child, const struct arena_header *parent)
{
    if (child->arena->size_bytes < parent->size_bytes)
        _exit(1);
    if (child->arena->chunk_data_offset != parent->chunk_data_offset || atomic_load(&child->arena->n_chunks) != 0)
        _exit(2);
    if (child->arena->pid != (uint32_t)getpid())
        _exit(3);
    _exit(0);
}

static void test_fork_begins_with_an_arena_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct client parent;
    int status = -1;
    greet(f->name, COMPANION_HELLO, &parent);
    struct arena_hit *hit = add_chunk(&parent, ARENA_HITS, sizeof *hit);
    atomic_store(&hit->count, 7);
    pid_t pid = fork();
    if (pid == 0) {
        struct client child;
        greet(f->name, COMPANION_FORK, &child);
        check_child(&child, parent.arena);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&hit->count), 7);
    int fds[3], fd = dial(f->name);
    struct companion_message message;
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
}

static uint64_t allocated_bytes(int fd)
{
    struct stat s;
    assert_int_equal(fstat(fd, &s), 0);
    return (uint64_t)s.st_blocks * 512;
}

static void test_memory_is_allocated_ahead(void **state)
{
    struct fixture *f = *state;
    struct client client;
    greet(f->name, COMPANION_HELLO, &client);
    uint64_t before = allocated_bytes(client.arena_fd);
    uint64_t in_use = client.arena->chunk_data_offset + 3200 * (uint64_t)ARENA_CHUNK_BYTES;
    assert_true(before < in_use);
    atomic_store(&client.arena->n_chunks, 3200);
    for (int i = 0; i < 500 && allocated_bytes(client.arena_fd) <= 3200 * (uint64_t)ARENA_CHUNK_BYTES; i++)
        usleep(20000);
    assert_true(allocated_bytes(client.arena_fd) > 3200 * (uint64_t)ARENA_CHUNK_BYTES);
    int fds[3], fd = dial(f->name);
    struct companion_message message;
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
}

/* While helpers are ended to make room for a program's processes, nobody waits for what they would answer. */
static void test_room_is_given_to_later_processes(void **state)
{
    static const uint64_t one = 1;
    struct fixture *f = *state;
    struct client first, later;
    greet(f->name, COMPANION_HELLO, &first);
    for (int i = 0; i < 500; i++) {
        atomic_store(&first.arena->room, ROOM_WANTED);
        assert_int_equal(write(first.bell_fd, &one, sizeof one), sizeof one);
        for (int n = 0; n < 500 && atomic_load(&first.arena->room) != ROOM_GIVEN; n++)
            usleep(20000);
        assert_int_equal(atomic_load(&first.arena->room), ROOM_GIVEN);
        pid_t child = fork();
        if (child == 0) {
            greet(f->name, COMPANION_HELLO, &later);
            _exit(atomic_load(&later.arena->room) != ROOM_GIVEN);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status == 0)
            return;
        /* On a busy machine the room may have been taken back between the two. */
        assert_int_equal(atomic_load(&first.arena->room), ROOM_KEPT);
    }
    fail_msg("a later process was never told");
}

/* A module record of this very program; table_id once it is known. */
static struct arena_module *add_module(struct client *client, const char *path)
{
    char *strings = add_chunk(client, ARENA_STRINGS, 1024);
    struct arena_string *string = (struct arena_string *)(void *)strings;
    string->len_bytes = (uint32_t)strlen(path);
    memcpy(string->text, path, strlen(path) + 1);
    struct arena_module *module = add_chunk(client, ARENA_MODULES, sizeof *module);
    module->id = 1;
    module->path = arena_ref(client->arena, string);
    return module;
}

static void post(struct client *client, enum arena_request_kind kind, uint32_t module, uint32_t pc)
{
    const uint64_t one = 1;
    uint32_t slot = atomic_fetch_add(&client->arena->request_tail, 1) & (ARENA_REQUESTS - 1);
    struct arena_request *request = &client->arena->requests[slot];
    request->kind = kind;
    request->module = module;
    request->pc = pc;
    atomic_store(&request->state, REQUEST_POSTED);
    assert_int_equal(write(client->bell_fd, &one, sizeof one), sizeof one);
}

static const struct modtab_header *await_table(const char *dir, const char *path)
{
    uint64_t id = 0;
    struct error err;
    const struct modtab_header *table = NULL;
    char other[ARENA_PATH_MAX + 8];
    (void)snprintf(other, sizeof other, "%s/other", dir);
    assert_int_equal(modtab_make(path, other, &id, &err), 0);
    for (int i = 0; i < 500 && modtab_map(dir, id, &table, &err) != 0; i++)
        usleep(20000);
    assert_non_null(table);
    return table;
}

static void test_requests_are_answered(void **state)
{
    struct fixture *f = *state;
    struct client client;
    char path[ARENA_PATH_MAX];
    char *real = realpath("/proc/self/exe", NULL);
    (void)snprintf(path, sizeof path, "%s", real);
    free(real);
    greet(f->name, COMPANION_HELLO, &client);
    struct arena_module *module = add_module(&client, path);
    uint32_t ref = arena_ref(client.arena, module);
    post(&client, REQUEST_MODULE, 0x7fffffff, 0);
    post(&client, REQUEST_MODULE, ref, 0);
    const struct modtab_header *table = await_table(f->setup.tables, path);
    module->table_id = table->id;
    post(&client, REQUEST_RECIPE, ref, UINT32_MAX);
#ifdef __x86_64__
    uint32_t n_found = 0, n_asked = table->n_funcs < 100 ? (uint32_t)table->n_funcs : 100;
    for (uint32_t i = 0; i < n_asked; i++)
        post(&client, REQUEST_RECIPE, ref, modtab_funcs(table)[i].start);
    for (int i = 0; i < 500 && n_found < n_asked / 2; i++) {
        usleep(20000);
        n_found = 0;
        for (uint32_t k = 0; k < n_asked; k++)
            n_found += recipe_find_block(client.recipes, table->id, modtab_funcs(table)[k].start) != NULL;
    }
    assert_true(n_found >= n_asked / 2);
#endif
    modtab_unmap(table);
}

static void test_module_message_waits_for_the_table(void **state)
{
    struct fixture *f = *state;
    struct companion_message message;
    int fds[3], fd = dial(f->name);
    say(fd, COMPANION_MODULE, COMPANION_VERSION, "/proc/self/exe");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
    int n = 0;
    DIR *dir = opendir(f->setup.tables);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strstr(entry->d_name, ".lmt") != NULL;
    closedir(dir);
    assert_int_equal(n, 1);
}

static bool refuse_call(unsigned number, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void test_written_even_without_workers(void **state)
{
    struct fixture *f = *state;
    struct client client;
    struct companion_message message;
    struct error err;
    char name[COMPANION_NAME_MAX], text[4096];
    int fds[3], status, listen_fd = companion_listen(name, &err);
    assert_true(listen_fd >= 0);
    pid_t poor = fork();
    if (poor == 0)
        _exit(refuse_call(SYS_clone, EAGAIN) ? companion_run(&f->setup, listen_fd) : 77);
    close(listen_fd);
    if (waitpid(poor, &status, WNOHANG) == poor) {
        printf("SKIP: seccomp filters cannot be installed here\n");
        skip();
    }
    greet(name, COMPANION_HELLO, &client);
    add_thread(&client, 7);
    /* Whoever cannot fork says so to the programs, which do not wait then. */
    for (int i = 0; i < 500 && atomic_load(&client.arena->room) != ROOM_GIVEN; i++) {
        assert_int_equal(kill(poor, SIGTERM), 0); /* a checkpoint, which takes a worker */
        usleep(20000);
    }
    assert_int_equal(atomic_load(&client.arena->room), ROOM_GIVEN);
    int fd = dial(name);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
    assert_int_equal(count_files(f, ".hpcrun", text, sizeof text), 1);
    assert_int_equal(kill(poor, SIGKILL), 0);
    assert_int_equal(waitpid(poor, &status, 0), poor);
}

/* Kernels before 5.3, and containers that do not know the call. */
static void test_processes_without_pidfds(void **state)
{
    struct fixture *f = *state;
    struct client client;
    struct error err;
    char name[COMPANION_NAME_MAX], text[4096];
    int status, listen_fd = companion_listen(name, &err);
    assert_true(listen_fd >= 0);
    f->setup.launched_pid = fork();
    if (f->setup.launched_pid == 0) {
        greet(name, COMPANION_HELLO, &client);
        add_thread(&client, 7);
        _exit(0);
    }
    pid_t old = fork();
    if (old == 0)
        _exit(refuse_call(SYS_pidfd_open, ENOSYS) ? companion_run(&f->setup, listen_fd) : 77);
    close(listen_fd);
    assert_int_equal(waitpid(f->setup.launched_pid, &status, 0), f->setup.launched_pid);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(old, &status, 0), old);
    assert_int_equal(status, 0);
    assert_int_equal(count_files(f, ".hpcrun", text, sizeof text), 1);
}

/* Sends the bytes along the way, with fd when it is not negative. */
static void knock(int way_fd, const void *bytes, size_t n_bytes, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        struct cmsghdr *item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(item), &fd, sizeof fd);
    }
    assert_int_equal(sendmsg(way_fd, &header, MSG_NOSIGNAL), n_bytes);
}

/* Until the index has a line with these words. */
static void await_line(const struct fixture *f, const char *words)
{
    char text[4096] = "";
    for (int waited_ms = 0; waited_ms < 30000 && !strstr(text, words); waited_ms += 50) {
        text[0] = '\0';
        (void)count_files(f, "index-", text, sizeof text);
        (void)usleep(50000);
    }
    assert_non_null(strstr(text, words));
}

/* What is no knock is closed and forgotten; who knocks is asked of the kernel. */
static void test_inherited_way(void **state)
{
    static const uint32_t word = COMPANION_KNOCK;
    struct fixture *f = *state;
    struct error err;
    struct companion_message message;
    char name[COMPANION_NAME_MAX], byte;
    int ends[2], pipe_fds[2], fds[3], listen_fd = companion_listen(name, &err);
    int way_fd = companion_way_open(&f->setup);
    assert_true(listen_fd >= 0 && way_fd >= 0);
    assert_true(companion_start(&f->setup, listen_fd, &err) > 0);
    assert_int_equal(pipe(pipe_fds), 0);
    knock(way_fd, "nonsense", 8, -1);
    knock(way_fd, &word, sizeof word, -1);
    knock(way_fd, &word, sizeof word, pipe_fds[1]);
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    knock(way_fd, &word, sizeof word, ends[1]);
    close(ends[1]);
    say(ends[0], COMPANION_HELLO, COMPANION_VERSION, "");
    assert_int_equal(hear(ends[0], &message, fds), COMPANION_WELCOME);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    say(ends[0], COMPANION_STATUS, COMPANION_VERSION, "");
    assert_int_equal(hear(ends[0], &message, fds), COMPANION_STATUS);
    assert_int_equal(message.pid, getpid());
    close(fds[0]);
    say(ends[0], COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(ends[0], &message, fds), COMPANION_WRITTEN);
    close(ends[0]);
    close(way_fd);
}

static void set_descriptor_limit(pid_t pid, rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = n;
    assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* The lowest number that process pid has no descriptor of. */
static rlim_t first_free_descriptor(pid_t pid)
{
    char path[64], target[256];
    rlim_t n = 0;
    do
        (void)snprintf(path, sizeof path, "/proc/%ld/fd/%lu", (long)pid, (unsigned long)n++);
    while (readlink(path, target, sizeof target) >= 0);
    return n - 1;
}

/* Whether process pid waits for something. */
static bool is_asleep(pid_t pid)
{
    char path[64], text[512] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *behind_name = strrchr(text, ')');
    return behind_name && strncmp(behind_name, ") S", 3) == 0;
}

/* Takes all free descriptors from a process that is at rest: what it opens for a moment would make room later. */
static void fill_descriptors(pid_t pid)
{
    rlim_t n = 0;
    for (unsigned quiet = 0; quiet < 20; quiet = is_asleep(pid) && first_free_descriptor(pid) == n ? quiet + 1 : 0) {
        if (quiet == 0)
            set_descriptor_limit(pid, n = first_free_descriptor(pid));
        usleep(1000);
    }
}

static int count_descriptors(pid_t pid)
{
    char path[64];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A knock for which the companion has no descriptor left: who knocked is hung up on at once, and can come by name when
 * there are some again; who does not come again stands in the index. */
static void test_knock_without_descriptors(void **state)
{
    static const uint32_t word = COMPANION_KNOCK;
    struct fixture *f = *state;
    struct error err;
    struct companion_message message;
    char name[COMPANION_NAME_MAX], text[4096];
    int ends[2], fds[3], status, listen_fd = companion_listen(name, &err);
    int way_fd = companion_way_open(&f->setup);
    pid_t companion = companion_start(&f->setup, listen_fd, &err);
    assert_true(companion > 0);
    int fd = dial(name);
    say(fd, COMPANION_HELLO, COMPANION_VERSION + 1, ""); /* it is up */
    assert_int_equal(hear(fd, &message, fds), COMPANION_REFUSED);
    int n_descriptors = count_descriptors(companion);
    close(fd);
    while (count_descriptors(companion) >= n_descriptors) /* until it has closed its end, too */
        usleep(1000);
    fill_descriptors(companion);
    pid_t quiet = fork();
    if (quiet == 0) {
        (void)!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
        knock(way_fd, &word, sizeof word, ends[1]);
        close(ends[1]);
        _exit(hear(ends[0], &message, fds) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(quiet, &status, 0), quiet);
    assert_int_equal(status, 0);
    set_descriptor_limit(companion, 1024);
    fd = dial(name);
    say(fd, COMPANION_HELLO, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WELCOME);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
    close(way_fd);
    await_line(f, "no descriptor left");
    char expected[64];
    (void)snprintf(expected, sizeof expected, "%ld ", (long)quiet);
    assert_int_equal(count_files(f, "index-", text, sizeof text), 1);
    assert_non_null(strstr(text, expected));
    (void)kill(companion, SIGKILL);
    assert_int_equal(waitpid(companion, &status, 0), companion);
}

static void test_strangers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct companion_message message;
    int fds[3], fd = dial(f->name);
    say(fd, COMPANION_HELLO, COMPANION_VERSION + 1, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_REFUSED);
    assert_non_null(strstr(message.text, "version"));
    close(fd);
    fd = dial(f->name);
    assert_int_equal(send(fd, "x", 1, 0), 1);
    assert_int_equal(hear(fd, &message, fds), 0);
    close(fd);
    fd = dial(f->name);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    close(fd);
}

static void test_directory_that_vanishes(void **state)
{
    struct fixture *f = *state;
    struct client client;
    char command[ARENA_PATH_MAX + 16];
    int fds[3];
    struct companion_message message;
    greet(f->name, COMPANION_HELLO, &client);
    add_thread(&client, 7);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", f->setup.dir);
    assert_int_equal(system(command), 0);
    int fd = dial(f->name);
    say(fd, COMPANION_END, COMPANION_VERSION, "");
    assert_int_equal(hear(fd, &message, fds), COMPANION_WRITTEN);
    assert_string_not_equal(message.text, "");
    close(fd);
    assert_int_equal(rmdir(f->setup.dir), -1);
}

/* Somebody lowers the limit below what is open: what is ready is found, and where nothing is, it is waited. */
static void test_poll_beyond_the_limit(void **state)
{
    (void)state;
    int pipes[20][2];
    struct pollfd fds[20];
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        fds[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN, .revents = -1};
    }
    for (rlim_t n_allowed = 0; n_allowed < 20; n_allowed += 6) {
        struct rlimit low = {n_allowed, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        assert_int_equal(companion_poll(fds, 20, 1), 0);
        assert_int_equal(write(pipes[19][1], "x", 1), 1);
        assert_int_equal(companion_poll(fds, 20, 1), n_allowed ? 1 : 0);
        assert_int_equal(fds[19].revents, n_allowed ? POLLIN : 0);
        assert_int_equal(fds[0].revents, 0);
        char byte;
        assert_int_equal(read(pipes[19][0], &byte, 1), 1);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 20; i++) {
        (void)close(pipes[i][0]);
        (void)close(pipes[i][1]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    /* What a directory does not take has nowhere else to go. */
    (void)setenv("TMPDIR", "/no/such/place", 1);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        printf("SKIP: PR_SET_CHILD_SUBREAPER is refused here (qemu-user does not know it)\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        TEST(test_normal_end),
        TEST(test_no_samples_leave_one_line),
        TEST(test_killed_process_is_written),
        TEST(test_sigterm_makes_a_checkpoint),
        TEST(test_exec_ends_the_earlier_arena),
        TEST(test_fork_begins_with_an_arena_of_its_own),
        TEST(test_memory_is_allocated_ahead),
        TEST(test_room_is_given_to_later_processes),
        TEST(test_requests_are_answered),
        TEST(test_module_message_waits_for_the_table),
        TEST(test_written_even_without_workers),
        TEST(test_processes_without_pidfds),
        TEST(test_inherited_way),
        TEST(test_knock_without_descriptors),
        TEST(test_strangers_are_refused),
        TEST(test_directory_that_vanishes),
        cmocka_unit_test(test_poll_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
