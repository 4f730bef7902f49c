/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding measured processes, which of them are meant, what to say when there are none, and asking their companions.
 * Ordinary code. */
#include "running/running.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/process.h"
#include "base/vec.h"
#include "measurement/names.h"
#include "measurement/pending.h"

/* --- finding --- */

/* The kernel lists the sockets of all companions, and each companion lists its processes, one question at a time,
 * and hands out their arenas for reading. */

#define ANSWER_MS 3000        /* for one answer of a companion of our own */
#define SILENT_ANSWER_MS 50   /* of one that was silent before */
#define FOREIGN_ANSWER_MS 500 /* of another user's */
#define FOREIGN_ALL_MS 2000   /* for all answers of one of these, and of all that belong to one user */
#define FOREIGN_PROCESSES 4096
#define USERS_MAX 64

enum answer { ANSWER_PROCESS, ANSWER_LAST, ANSWER_GONE, ANSWER_SILENT, ANSWER_ENDLESS };

int running_dial(const char *name)
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
        int why = errno;
        (void)close(fd);
        errno = why;
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
    return (int64_t)(clock_now_ns(CLOCK_MONOTONIC) / CLOCK_MS_NS);
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

/* Whether another user's companion is believed: about a process of that user, in memory that nobody can cut short while
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

/* The file that a process runs, 0: it cannot be seen. */
static uint64_t program_inode(pid_t pid)
{
    char path[64];
    struct stat info;
    (void)snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

bool running_is_alive(const struct running_process *process)
{
    struct proc_stat stat;
    return process->started && proc_stat_read(process->pid, &stat) && stat.start == process->started &&
           !proc_stat_has_ended(&stat) && program_inode(process->pid) == process->program_inode;
}

bool running_tell_companion(const struct running_process *process, char *text, size_t n_bytes)
{
    if (process->is_kept_by == COMPANION_SILENT && process->ended_at_s == 0)
        (void)snprintf(text, n_bytes, "does not answer (is it stopped?); the program runs on, and nothing is lost");
    else if (process->is_kept_by == COMPANION_DEAD && process->ended_at_s == 0)
        (void)snprintf(text, n_bytes,
                       "has ended; the program runs on, and nothing is lost: when it ends, it leaves its records, and "
                       "then 'hpcrun --collect %s' makes files of them",
                       process->dir);
    else if (process->is_kept_by == COMPANION_DEAD)
        (void)snprintf(text, n_bytes, "had ended before: 'hpcrun --collect %s' makes files of what the program left",
                       process->dir);
    else
        return false;
    return true;
}

/* A process that ends meanwhile leaves nothing to map. */
static int add_process(struct running_list *list, const struct companion_message *message, int arena_fd, uid_t uid,
                       struct error *err)
{
    void *arena = MAP_FAILED;
    struct proc_stat stat;
    if (is_foreign(uid) && !is_credible(message, arena_fd, uid))
        return 0;
    if (has_bytes(arena_fd, message->size_bytes))
        arena = mmap(NULL, message->size_bytes, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, arena_fd, 0);
    if (arena == MAP_FAILED)
        return 0;
    if (!vec_reserve(&list->processes, &list->capacity, list->n + 1, sizeof *list->processes)) {
        (void)munmap(arena, message->size_bytes);
        return error_set(err, ERR_MEMORY, "out of memory for the list of processes");
    }
    struct running_process *process = &list->processes[list->n++];
    *process = (struct running_process){
        .pid = (pid_t)message->pid, .arena = arena, .size_bytes = message->size_bytes, .is_foreign = is_foreign(uid)};
    memcpy(process->dir, message->text, sizeof process->dir);
    process->dir[sizeof process->dir - 1] = '\0';
    process->program_inode = program_inode(process->pid);
    if (proc_stat_read(process->pid, &stat))
        process->started = stat.start;
    return 0;
}

/* The processes from first on are of the companion with this name. */
static void note_companion(struct running_list *list, size_t first, const char *name)
{
    for (size_t i = first; i < list->n; i++)
        (void)snprintf(list->processes[i].companion, sizeof list->processes[i].companion, "%s", name);
}

static void note_skipped(struct running_list *list, const char *who, uid_t uid, const char *what)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s of user %lu %s", who, (unsigned long)uid, what);
    (void)strtab_intern(&list->skipped, text);
}

/* Whether a companion of our own has named all that it has. */
static void note_answer(struct running_list *list, const char *name, enum answer answer)
{
    if (answer == ANSWER_LAST)
        (void)strtab_intern(&list->answered, name);
    else if (answer == ANSWER_SILENT)
        (void)strtab_intern(&list->silent, name);
}

int running_ask(struct running_list *list, const char *name, int fd, uid_t uid, struct error *err)
{
    struct companion_message message;
    bool was_silent = list->were_silent && strtab_find(list->were_silent, name) >= 0;
    int code = 0, arena_fd,
        timeout_ms = was_silent        ? SILENT_ANSWER_MS
                     : is_foreign(uid) ? FOREIGN_ANSWER_MS
                                       : ANSWER_MS;
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
        note_answer(list, name, answer);
    else if (answer != ANSWER_LAST)
        note_skipped(list, "a companion process", uid,
                     answer == ANSWER_SILENT    ? "did not answer"
                     : answer == ANSWER_ENDLESS ? "answered without end"
                                                : "gave an answer that makes no sense");
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
    const struct running_process *x = a, *y = b;
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
static int ask_foreign(struct running_list *list, const char *name, int fd, uid_t uid, struct spent *spent,
                       struct error *err)
{
    int64_t start_ms = now_ms(), *ms = spent_of(spent, uid);
    if (!ms || *ms < 0)
        return 0;
    if (*ms > FOREIGN_ALL_MS) {
        note_skipped(list, "further companion processes", uid, "were not asked");
        *ms = -1;
        return 0;
    }
    int code = running_ask(list, name, fd, uid, err);
    *ms += now_ms() - start_ms;
    return code;
}

/* Asks our own companions and root's (is_second: those of other users, which root may look at). */
static int ask_all(struct running_list *list, const struct strtab *names, bool is_second, struct error *err)
{
    struct spent spent = {.n = 0};
    int code = 0;
    for (size_t i = 0; code == 0 && i < names->n_strings; i++) {
        struct ucred peer;
        int fd = running_dial(names->strings[i]);
        if (fd < 0 && errno == EAGAIN) /* it has not taken those who came before */
            (void)strtab_intern(&list->silent, names->strings[i]);
        if (fd < 0)
            continue;
        size_t n_before = list->n;
        bool is_known = find_peer(fd, &peer), is_others = is_known && is_foreign(peer.uid);
        if (is_known && !is_others && !is_second && (peer.uid == geteuid() || geteuid() == 0))
            code = running_ask(list, names->strings[i], fd, peer.uid, err);
        else if (is_others && is_second)
            code = ask_foreign(list, names->strings[i], fd, peer.uid, &spent, err);
        note_companion(list, n_before, names->strings[i]);
        (void)close(fd);
    }
    return code;
}

int running_find(struct running_list *list, struct error *err)
{
    struct strtab names = {0};
    int code = 0;
    *list = (struct running_list){.tool = list->tool, .were_silent = list->were_silent};
    if (!list_names(&names))
        return error_set(err, ERR_IO, "/proc/net/unix: cannot be read: %s", strerror(errno));
    code = ask_all(list, &names, false, err);
    if (code == 0 && geteuid() == 0)
        code = ask_all(list, &names, true, err);
    strtab_fini(&names);
    if (list->n)
        qsort(list->processes, list->n, sizeof *list->processes, compare);
    if (code != 0)
        running_fini(list);
    return code;
}

void running_fini(struct running_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->processes[i].arena) /* else it was moved elsewhere */
            (void)munmap((void *)(uintptr_t)list->processes[i].arena, list->processes[i].size_bytes);
        running_process_fini(&list->processes[i]);
    }
    free(list->processes);
    strtab_fini(&list->answered);
    strtab_fini(&list->silent);
    strtab_fini(&list->skipped);
    *list = (struct running_list){.tool = list->tool};
}

/* --- which ones are meant --- */

enum { DEPTH_MAX = 256 };

static pid_t parent_of(pid_t pid)
{
    struct proc_stat stat;
    (void)proc_stat_read(pid, &stat);
    return stat.parent;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
        if (pid == ancestor)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

/* Keeps those that a test accepts. */
static void keep(struct running_list *list, bool (*accepts)(const struct running_process *, const void *),
                 const void *argument)
{
    size_t n = 0;
    struct running_list rest = (struct running_list){.processes = calloc(list->n + 1, sizeof *rest.processes)};
    for (size_t i = 0; i < list->n; i++) {
        bool is_kept = accepts(&list->processes[i], argument) || !rest.processes;
        if (is_kept)
            list->processes[n++] = list->processes[i];
        else
            rest.processes[rest.n++] = list->processes[i];
    }
    list->n = n;
    running_fini(&rest);
}

/* Whether a process belongs to a job of Slurm, by its environment when it began. */
static bool is_of_job(const struct running_process *process, const void *job)
{
    static const char name[] = "SLURM_JOB_ID=";
    char path[64], *text = NULL;
    size_t n_text = 0;
    bool is_found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)process->pid);
    FILE *file = fopen(path, "re");
    while (file && !is_found && getdelim(&text, &n_text, 0, file) > 0)
        is_found = strncmp(text, name, sizeof name - 1) == 0 && strcmp(text + sizeof name - 1, job) == 0;
    free(text);
    if (file)
        (void)fclose(file);
    return is_found;
}

/* One word that says which processes are meant. */
struct operand {
    const char *text;
    pid_t pid;           /* that one and those below it; 0: no number */
    bool is_job;         /* nothing below that process is measured: a job of Slurm */
    bool may_be_gone;    /* it was seen running: it may mean nothing by now */
    char real[PATH_MAX]; /* directory; empty: no name of one */
};

/* What becomes of a program without its companion: nothing is lost. */
#define RUNS_ON "the program runs on and its records are kept: ask again when it goes on"
#define LEAVES                                                                                                         \
    "the program runs on, and nothing is lost: when it ends, it leaves its records in %s, and then 'hpcrun --collect " \
    "%s' makes files of them"

/* Whether a process has the memory of a measurement. */
static bool has_arena(pid_t pid)
{
    char path[64], *line = NULL;
    size_t n_line = 0;
    bool has = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    FILE *file = fopen(path, "re");
    while (file && !has && getline(&line, &n_line, file) > 0)
        has = strstr(line, "/memfd:locus-arena") != NULL;
    free(line);
    if (file)
        (void)fclose(file);
    return has;
}

/* Says why there is nothing to show of a directory. */
static int explain_directory(const struct running_list *list, const struct operand *operand)
{
    struct pending_trouble trouble;
    if (pending_find_trouble(operand->real, &trouble) && trouble.is_dead)
        return tool_error(list->tool, "%s: the companion process of process %ld has ended; " LEAVES, operand->text,
                          (long)trouble.program, operand->text, operand->text);
    if (trouble.companion)
        return tool_error(list->tool,
                          "%s: the companion process %ld is stopped (kill -CONT %ld lets it go on); " RUNS_ON,
                          operand->text, (long)trouble.companion, (long)trouble.companion);
    return tool_error(list->tool, "no running process of this host is being measured into %s%s", operand->text,
                      pending_wait(operand->real, 0) == PENDING_NONE
                          ? ""
                          : "; of other hosts hpcviewer --live --tui shows what they have saved there");
}

/* Says why there is nothing to show of a process. */
static int explain_pid(const struct running_list *list, pid_t pid)
{
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    if (stat(path, &status) != 0)
        return tool_error(list->tool,
                          "there is no process %ld here; if it is a job of Slurm, ask on its nodes: srun --jobid=%ld "
                          "--overlap hpcrun --status",
                          (long)pid, (long)pid);
    if (status.st_uid != geteuid() && geteuid() != 0)
        return tool_error(list->tool,
                          "process %ld belongs to another user (%lu): only that user and root may see its measurement",
                          (long)pid, (unsigned long)status.st_uid);
    if (has_arena(pid))
        return list->silent.n_strings
                   ? tool_error(list->tool,
                                "process %ld is being measured, but its companion process does not answer; " RUNS_ON,
                                (long)pid)
                   : tool_error(list->tool,
                                "process %ld is being measured, but its companion process has ended; " LEAVES,
                                (long)pid, "its measurement directory", "DIR");
    if (list->silent.n_strings)
        return tool_error(list->tool, "process %ld is not known to be measured; %zu companion process%s did not answer",
                          (long)pid, list->silent.n_strings, list->silent.n_strings == 1 ? "" : "es");
    return tool_error(list->tool, "process %ld is not being measured, nor is any process that it started", (long)pid);
}

struct wanted {
    struct operand *operands; /* [n] */
    size_t n;
    const struct running_list *known; /* those that were chosen before are meant as well; NULL: none */
};

/* Numbers of jobs are process ids as well, mostly of others. */
static bool has_below(const struct running_list *list, const struct operand *operand)
{
    bool has = false;
    for (size_t i = 0; i < list->n && !has; i++)
        has = descends_from(list->processes[i].pid, operand->pid);
    return has;
}

static bool is_number(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word);
}

bool running_word_directory(const char *word, char *real)
{
    struct stat status;
    return !is_number(word) && realpath(word, real) && stat(real, &status) == 0 && S_ISDIR(status.st_mode);
}

static void read_operand(const struct running_list *list, const char *text, struct operand *operand)
{
    size_t n_digits = strspn(text, "0123456789");
    *operand = (struct operand){.text = text, .may_be_gone = n_digits && strcmp(text + n_digits, RUNNING_SEEN) == 0};
    errno = 0;
    long value = strtol(text, NULL, 10);
    if (is_number(text) || operand->may_be_gone) {
        operand->pid = errno || value <= 0 || value != (long)(pid_t)value ? 0 : (pid_t)value;
        operand->is_job = operand->pid && !operand->may_be_gone && !has_below(list, operand);
    } else if (!running_word_directory(text, operand->real)) {
        operand->real[0] = '\0';
    }
}

bool running_has_file(const struct running_list *list, const char *directory, const struct names_file *file)
{
    bool has = false;
    for (size_t i = 0; i < list->n && !has; i++)
        has = file->host_id == names_host_id() && file->pid == (uint32_t)list->processes[i].pid &&
              strcmp(list->processes[i].dir, directory) == 0;
    return has;
}

bool running_is_same(const struct running_process *a, const struct running_process *b)
{
    const struct arena_header *x = a->arena, *y = b->arena;
    return a->pid == b->pid && a->size_bytes == b->size_bytes && x->start_ns == y->start_ns;
}

static bool is_meant(const struct running_process *process, const struct operand *operand)
{
    return operand->real[0]  ? strcmp(process->dir, operand->real) == 0
           : operand->is_job ? is_of_job(process, operand->text)
                             : operand->pid && descends_from(process->pid, operand->pid);
}

static bool is_wanted(const struct running_process *process, const void *argument)
{
    const struct wanted *wanted = argument;
    bool is = false;
    for (size_t i = 0; i < wanted->n && !is; i++)
        is = is_meant(process, &wanted->operands[i]);
    for (size_t i = 0; wanted->known && i < wanted->known->n && !is; i++)
        is = running_is_same(&wanted->known->processes[i], process);
    return is;
}

/* Says why one word means nothing that runs. */
static int explain(const struct running_list *list, const struct operand *operand)
{
    if (operand->pid)
        return explain_pid(list, operand->pid);
    if (operand->real[0])
        return explain_directory(list, operand);
    return tool_usage(list->tool, "%s: neither a process id nor a directory", operand->text);
}

static size_t count_words(const char *const *words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

/* Whether a directory has files of some process, or will have. */
static bool has_measurement(const char *directory)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    bool has = names_list(directory, "hpcrun", &files, &n, &ignored) == 0 && n > 0;
    free(files);
    return has || pending_wait(directory, 0) != PENDING_NONE;
}

static bool means_something(const struct running_list *list, const struct operand *operand, bool with_files)
{
    bool does = operand->may_be_gone || (with_files && operand->real[0] && has_measurement(operand->real));
    for (size_t i = 0; i < list->n && !does; i++)
        does = is_meant(&list->processes[i], operand);
    return does;
}

int running_choose(struct running_list *list, const char *const *words, bool with_files)
{
    struct wanted wanted = {.n = count_words(words)};
    int status = 0;
    if (!wanted.n)
        return 0;
    wanted.operands = calloc(wanted.n, sizeof *wanted.operands);
    if (!wanted.operands)
        return tool_error(list->tool, "out of memory");
    for (size_t i = 0; i < wanted.n; i++) {
        read_operand(list, words[i], &wanted.operands[i]);
        if (!status && !means_something(list, &wanted.operands[i], with_files))
            status = explain(list, &wanted.operands[i]);
    }
    if (!status)
        keep(list, is_wanted, &wanted);
    free(wanted.operands);
    return status;
}

bool running_keep(struct running_list *list, const char *const *words, const struct running_list *known)
{
    struct wanted wanted = {.n = count_words(words), .known = known};
    if (!wanted.n)
        return list->n > 0;
    wanted.operands = calloc(wanted.n, sizeof *wanted.operands);
    for (size_t i = 0; i < wanted.n && wanted.operands; i++)
        read_operand(list, words[i], &wanted.operands[i]);
    if (wanted.operands)
        keep(list, is_wanted, &wanted);
    free(wanted.operands);
    return list->n > 0;
}

static bool is_readable(const struct running_process *process, const void *unused)
{
    (void)unused;
    return process->is_readable;
}

void running_keep_readable(struct running_list *list)
{
    keep(list, is_readable, NULL);
}
