/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the C library that may wait, for BLOCKTIME, and those that read and write files, for IO: a library of
 * its own, preloaded only where one of the events is wanted, so that other measurements never pass through here. Each
 * wrapper calls the next definition, with the arguments as they are, between calls of libhpcrun.so. What the call
 * returns, its errno, that signals interrupt it and that it is a cancellation point stay as they are. Where nothing is
 * measured the wrappers only forward. Ordinary code of the program's threads, signal handlers included. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "runtime/process/waits.h"
#include "runtime/wrap/wrap.h"

#pragma weak locus_wait_leaf_event
#pragma weak locus_wait_begin_event
#pragma weak locus_wait_end_event
#pragma weak locus_wait_moved_event

#define MPI_ERROR_OTHER 15

/* A wrapped function. All are in one section, so that the constructor finds them; compilers like to align variables of
 * this size to 32 bytes. */
struct __attribute__((aligned(32))) slot {
    const char *name;
    void *real; /* the next definition */
    void *leaf; /* libc's own: the end of the call path */
};
extern struct slot slots_begin[] __asm__("__start_wait_slots") __attribute__((visibility("hidden")));
extern struct slot slots_end[] __asm__("__stop_wait_slots") __attribute__((visibility("hidden")));

/* Keeps what was found. Nothing found is not kept: another thread may have found it meanwhile. */
static void keep(struct slot *slot, void *leaf, void *real)
{
    if (!real) {
        (void)dlerror(); /* the program must not see a failure of ours when it asks for its own */
        return;
    }
    __atomic_store_n(&slot->leaf, leaf ? leaf : real, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->real, real, __ATOMIC_RELEASE);
}

/* Finds the functions behind a slot. */
static void *find(struct slot *slot)
{
    int saved_errno = errno;
    void *leaf = locus_wait_leaf_event ? locus_wait_leaf_event(slot->name) : NULL, *real = dlsym(RTLD_NEXT, slot->name);
    keep(slot, leaf, real);
    errno = saved_errno;
    return real;
}

/* Not done at the first call, which may be in a signal handler; but other constructors may come first. Few programs
 * have functions of MPI, and none calls them in a handler. */
__attribute__((constructor)) static void find_all(void)
{
    for (struct slot *slot = slots_begin; slot < slots_end; slot++)
        if (!slot->real && slot->name[0] != 'M')
            (void)find(slot);
}

static void *real_of(struct slot *slot)
{
    void *real = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);
    return real ? real : find(slot);
}

static bool find_beside(struct slot *slot, const void *caller)
{
    Dl_info info;
    if (real_of(slot))
        return true;
    int saved_errno = errno;
    void *module = dladdr(caller, &info) && info.dli_fname ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *real = module ? dlsym(module, slot->name) : NULL;
    if (module)
        dlclose(module);
    keep(slot, real, real);
    errno = saved_errno;
    return real;
}

static bool begin(struct wait_call *call, const struct slot *slot)
{
    if (!locus_wait_begin_event)
        return false;
    call->function = (uintptr_t)slot->leaf;
    return locus_wait_begin_event(call);
}

static void end(void *call)
{
    locus_wait_end_event(call);
}

enum direction { READS = 0, WRITES };

/* A call has moved so many bytes; none where n_bytes is not positive. errno is kept. */
static void moved(struct wait_call *call, const struct slot *slot, enum direction direction, int fd, ssize_t n_bytes)
{
    if (!locus_wait_moved_event || n_bytes <= 0)
        return;
    call->function = (uintptr_t)slot->leaf;
    locus_wait_moved_event(call, direction == WRITES, fd, (uint64_t)n_bytes);
}

/* How many bytes of a message have arrived in n bytes of room: none of one that stays in its queue, and with MSG_TRUNC
 * the call returns the length of the whole message. */
static ssize_t received(ssize_t result, size_t n, int flags)
{
    if (flags & MSG_PEEK)
        return 0;
    return result > 0 && (size_t)result > n ? (ssize_t)n : result;
}

/* The open file of a stream; -1: it has none. errno is kept. */
static int file_of(FILE *stream)
{
    int saved_errno = errno, fd = fileno(stream);
    errno = saved_errno;
    return fd;
}

#define SLOT(name) static struct slot slot_##name __attribute__((section("wait_slots"), used)) = {#name, NULL, NULL}

/* Calls the real function, as the wait of a slot's leaf where waits are measured. The cleanup handler runs when the
 * thread is cancelled in the call, and else behind it. */
#define CALL(slot, arguments)                                                                                          \
    call.site = alloc_site_here();                                                                                     \
    if (begin(&call, slot)) {                                                                                          \
        pthread_cleanup_push(end, &call);                                                                              \
        result = real arguments;                                                                                       \
        pthread_cleanup_pop(1);                                                                                        \
    } else {                                                                                                           \
        result = real arguments;                                                                                       \
    }

/* The body of a wrapper, with what follows the call. */
#define BODY(type, name, parameters, arguments, after)                                                                 \
    typedef type real_function parameters;                                                                             \
    real_function *real = (real_function *)real_of(&slot_##name);                                                      \
    struct wait_call call;                                                                                             \
    type volatile result;                                                                                              \
    CALL(&slot_##name, arguments)                                                                                      \
    after;                                                                                                             \
    return result

#define WRAPPER(type, name, parameters, arguments, after)                                                              \
    SLOT(name);                                                                                                        \
    WRAP_EXPORT type name parameters;                                                                                  \
    WRAP_EXPORT type name parameters                                                                                   \
    {                                                                                                                  \
        BODY(type, name, parameters, arguments, after);                                                                \
    }

#define NOTHING (void)0

#define WAIT(type, name, parameters, arguments) WRAPPER(type, name, parameters, arguments, NOTHING)

/* Moves n_bytes, which follow from the result, from or to fd. */
#define MOVED(name, direction, fd, n_bytes) moved(&call, &slot_##name, direction, fd, (ssize_t)(n_bytes))
#define MOVE(type, name, parameters, arguments, direction, fd, n_bytes)                                                \
    WRAPPER(type, name, parameters, arguments, MOVED(name, direction, fd, n_bytes))

/* A function of the printf family, by the one that takes a list. */
#define PRINT(name, list_name, parameters, list_parameters, arguments, stream)                                         \
    SLOT(name);                                                                                                        \
    WRAP_EXPORT int name parameters;                                                                                   \
    WRAP_EXPORT int name parameters                                                                                    \
    {                                                                                                                  \
        typedef int real_function list_parameters;                                                                     \
        real_function *real = (real_function *)real_of(&slot_##list_name);                                             \
        struct wait_call call;                                                                                         \
        int volatile result;                                                                                           \
        va_list list;                                                                                                  \
        va_start(list, format);                                                                                        \
        CALL(&slot_##name, arguments)                                                                                  \
        va_end(list);                                                                                                  \
        MOVED(name, WRITES, file_of(stream), result);                                                                  \
        return result;                                                                                                 \
    }

/* Waits only where is_waiting is true. */
#define WAIT_IF(type, name, parameters, arguments, is_waiting)                                                         \
    SLOT(name);                                                                                                        \
    WRAP_EXPORT type name parameters;                                                                                  \
    WRAP_EXPORT type name parameters                                                                                   \
    {                                                                                                                  \
        if (!(is_waiting))                                                                                             \
            return ((type(*) parameters)real_of(&slot_##name))arguments;                                               \
        BODY(type, name, parameters, arguments, NOTHING);                                                              \
    }

/* A lock that is free is taken at once, at the cost of one more call. */
#define LOCK(name, try_name, pointer)                                                                                  \
    SLOT(name);                                                                                                        \
    WRAP_EXPORT int name(pointer lock);                                                                                \
    WRAP_EXPORT int name(pointer lock)                                                                                 \
    {                                                                                                                  \
        int code = locus_wait_begin_event ? try_name(lock) : EBUSY;                                                    \
        if (code == 0 || code == EOWNERDEAD)                                                                           \
            return code;                                                                                               \
        BODY(int, name, (pointer lock), (lock), NOTHING);                                                              \
    }

/* A function of MPI, whose arguments are all handed on as words. It may be in a library that was loaded with
 * RTLD_LOCAL: there is none behind ours then, and it is looked for where its caller would have found it. */
#define MPI(name, parameters, arguments)                                                                               \
    SLOT(name);                                                                                                        \
    WRAP_EXPORT int name parameters;                                                                                   \
    WRAP_EXPORT int name parameters                                                                                    \
    {                                                                                                                  \
        if (!find_beside(&slot_##name, __builtin_return_address(0)))                                                   \
            return MPI_ERROR_OTHER;                                                                                    \
        BODY(int, name, parameters, arguments, NOTHING);                                                               \
    }

/* With checks on, the headers declare some of these as inline functions, or with other types of arguments. */
#undef read
#undef recv
#undef fread_unlocked
#undef fwrite_unlocked

/* --- files and sockets --- */

MOVE(ssize_t, read, (int fd, void *bytes, size_t n), (fd, bytes, n), READS, fd, result)
MOVE(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n), WRITES, fd, result)
MOVE(ssize_t, pread, (int fd, void *bytes, size_t n, off_t at), (fd, bytes, n, at), READS, fd, result)
MOVE(ssize_t, pread64, (int fd, void *bytes, size_t n, off64_t at), (fd, bytes, n, at), READS, fd, result)
MOVE(ssize_t, pwrite, (int fd, const void *bytes, size_t n, off_t at), (fd, bytes, n, at), WRITES, fd, result)
MOVE(ssize_t, pwrite64, (int fd, const void *bytes, size_t n, off64_t at), (fd, bytes, n, at), WRITES, fd, result)
MOVE(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n), READS, fd, result)
MOVE(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), WRITES, fd, result)
MOVE(ssize_t, __read_chk, (int fd, void *bytes, size_t n, size_t room), (fd, bytes, n, room), READS, fd, result)
MOVE(ssize_t, __pread_chk, (int fd, void *bytes, size_t n, off_t at, size_t room), (fd, bytes, n, at, room), READS, fd,
     result)
MOVE(ssize_t, __pread64_chk, (int fd, void *bytes, size_t n, off64_t at, size_t room), (fd, bytes, n, at, room), READS,
     fd, result)
MOVE(ssize_t, recv, (int fd, void *bytes, size_t n, int flags), (fd, bytes, n, flags), READS, fd,
     received(result, n, flags))
MOVE(ssize_t, __recv_chk, (int fd, void *bytes, size_t n, size_t room, int flags), (fd, bytes, n, room, flags), READS,
     fd, received(result, n, flags))
MOVE(ssize_t, recvfrom,
     (int fd, void *restrict bytes, size_t n, int flags, struct sockaddr *restrict from, socklen_t *restrict len),
     (fd, bytes, n, flags, from, len), READS, fd, received(result, n, flags))
MOVE(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), READS, fd,
     received(result, SIZE_MAX, flags))
MOVE(ssize_t, send, (int fd, const void *bytes, size_t n, int flags), (fd, bytes, n, flags), WRITES, fd, result)
MOVE(ssize_t, sendto, (int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t len),
     (fd, bytes, n, flags, to, len), WRITES, fd, result)
MOVE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), WRITES, fd, result)
MOVE(ssize_t, preadv, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), READS, fd, result)
MOVE(ssize_t, preadv64, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), READS, fd, result)
MOVE(ssize_t, pwritev, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), WRITES, fd, result)
MOVE(ssize_t, pwritev64, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), WRITES, fd, result)
WAIT(int, accept, (int fd, struct sockaddr *restrict from, socklen_t *restrict len), (fd, from, len))
WAIT(int, accept4, (int fd, struct sockaddr *restrict from, socklen_t *restrict len, int flags), (fd, from, len, flags))
WAIT(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
WAIT(int, fsync, (int fd), (fd))
WAIT(int, fdatasync, (int fd), (fd))
WAIT(int, msync, (void *start, size_t n, int flags), (start, n, flags))
WAIT(int, flock, (int fd, int operation), (fd, operation))
WAIT(int, lockf, (int fd, int command, off_t n), (fd, command, n))
WAIT(int, close, (int fd), (fd))

/* --- several at a time --- */

WAIT_IF(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout), timeout != 0)
WAIT_IF(int, __poll_chk, (struct pollfd * fds, nfds_t n, int timeout, size_t room), (fds, n, timeout, room),
        timeout != 0)
WAIT(int, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *set),
     (fds, n, timeout, set))
WAIT(int, select,
     (int n, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict excepts,
      struct timeval *restrict timeout),
     (n, reads, writes, excepts, timeout))
WAIT(int, pselect,
     (int n, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict excepts,
      const struct timespec *restrict timeout, const sigset_t *restrict set),
     (n, reads, writes, excepts, timeout, set))
WAIT_IF(int, epoll_wait, (int fd, struct epoll_event *events, int n, int timeout), (fd, events, n, timeout),
        timeout != 0)
WAIT_IF(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int timeout, const sigset_t *set),
        (fd, events, n, timeout, set), timeout != 0)

/* --- time, processes, signals --- */

WAIT(int, nanosleep, (const struct timespec *wanted, struct timespec *left), (wanted, left))
WAIT(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left),
     (clock, flags, wanted, left))
WAIT(int, usleep, (useconds_t time), (time))
WAIT(unsigned, sleep, (unsigned time), (time))
WAIT(int, thrd_sleep, (const struct timespec *wanted, struct timespec *left), (wanted, left))
WAIT(pid_t, wait, (int *status), (status))
WAIT(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags))
WAIT(pid_t, wait3, (int *status, int flags, struct rusage *usage), (status, flags, usage))
WAIT(pid_t, wait4, (pid_t pid, int *status, int flags, struct rusage *usage), (pid, status, flags, usage))
WAIT(int, waitid, (idtype_t which, id_t id, siginfo_t *info, int flags), (which, id, info, flags))
WAIT(int, pause, (void), ())
WAIT(int, sigsuspend, (const sigset_t *set), (set))
WAIT(int, sigwait, (const sigset_t *restrict set, int *restrict number), (set, number))
WAIT(int, sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict info), (set, info))
WAIT(int, sigtimedwait,
     (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout),
     (set, info, timeout))

/* --- threads --- */

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t *)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t *)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t *)
WAIT(int, pthread_mutex_timedlock, (pthread_mutex_t *restrict lock, const struct timespec *restrict until),
     (lock, until))
WAIT(int, pthread_mutex_clocklock,
     (pthread_mutex_t *restrict lock, clockid_t clock, const struct timespec *restrict until), (lock, clock, until))
WAIT(int, pthread_cond_wait, (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock), (condition, lock))
WAIT(int, pthread_cond_timedwait,
     (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, const struct timespec *restrict until),
     (condition, lock, until))
WAIT(int, pthread_cond_clockwait,
     (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, clockid_t clock,
      const struct timespec *restrict until),
     (condition, lock, clock, until))
WAIT(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier))
WAIT(int, pthread_join, (pthread_t thread, void **result_of), (thread, result_of))
WAIT(int, sem_wait, (sem_t * semaphore), (semaphore))
WAIT(int, sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict until), (semaphore, until))
WAIT(int, sem_clockwait, (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until),
     (semaphore, clock, until))

/* --- streams: libc reads and writes for them by itself. Its header makes getline a call of __getdelim --- */

MOVE(size_t, fread, (void *restrict bytes, size_t size, size_t n, FILE *restrict stream), (bytes, size, n, stream),
     READS, file_of(stream), result *size)
MOVE(size_t, fwrite, (const void *restrict bytes, size_t size, size_t n, FILE *restrict stream),
     (bytes, size, n, stream), WRITES, file_of(stream), result *size)
MOVE(char *, fgets, (char *restrict text, int n, FILE *restrict stream), (text, n, stream), READS, file_of(stream),
     result ? strlen(result) : 0)
MOVE(ssize_t, getline, (char **restrict text, size_t *restrict n, FILE *restrict stream), (text, n, stream), READS,
     file_of(stream), result)
MOVE(ssize_t, getdelim, (char **restrict text, size_t *restrict n, int end_of, FILE *restrict stream),
     (text, n, end_of, stream), READS, file_of(stream), result)
MOVE(ssize_t, __getdelim, (char **restrict text, size_t *restrict n, int end_of, FILE *restrict stream),
     (text, n, end_of, stream), READS, file_of(stream), result)
MOVE(size_t, __fread_chk, (void *restrict bytes, size_t room, size_t size, size_t n, FILE *restrict stream),
     (bytes, room, size, n, stream), READS, file_of(stream), result *size)
MOVE(char *, __fgets_chk, (char *restrict text, size_t room, int n, FILE *restrict stream), (text, room, n, stream),
     READS, file_of(stream), result ? strlen(result) : 0)
MOVE(size_t, fread_unlocked, (void *restrict bytes, size_t size, size_t n, FILE *restrict stream),
     (bytes, size, n, stream), READS, file_of(stream), result *size)
MOVE(size_t, fwrite_unlocked, (const void *restrict bytes, size_t size, size_t n, FILE *restrict stream),
     (bytes, size, n, stream), WRITES, file_of(stream), result *size)
MOVE(int, fputs_unlocked, (const char *restrict text, FILE *restrict stream), (text, stream), WRITES, file_of(stream),
     result >= 0 ? strlen(text) : 0)
MOVE(int, fputs, (const char *restrict text, FILE *restrict stream), (text, stream), WRITES, file_of(stream),
     result >= 0 ? strlen(text) : 0)
MOVE(int, puts, (const char *text), (text), WRITES, file_of(stdout), result >= 0 ? strlen(text) + 1 : 0)
MOVE(int, vprintf, (const char *restrict format, va_list list), (format, list), WRITES, file_of(stdout), result)
MOVE(int, vfprintf, (FILE *restrict stream, const char *restrict format, va_list list), (stream, format, list), WRITES,
     file_of(stream), result)
MOVE(int, __vprintf_chk, (int level, const char *restrict format, va_list list), (level, format, list), WRITES,
     file_of(stdout), result)
MOVE(int, __vfprintf_chk, (FILE *restrict stream, int level, const char *restrict format, va_list list),
     (stream, level, format, list), WRITES, file_of(stream), result)
WAIT(int, pclose, (FILE * stream), (stream))

/* --- MPI: what it waits without a processor. Libraries that poll until a message is there take CPU time instead --- */

typedef uintptr_t word;
#define WORDS_1 (word a)
#define GIVEN_1 (a)
#define WORDS_2 (word a, word b)
#define GIVEN_2 (a, b)
#define WORDS_3 (word a, word b, word c)
#define GIVEN_3 (a, b, c)
#define WORDS_4 (word a, word b, word c, word d)
#define GIVEN_4 (a, b, c, d)
#define WORDS_5 (word a, word b, word c, word d, word e)
#define GIVEN_5 (a, b, c, d, e)
#define WORDS_6 (word a, word b, word c, word d, word e, word f)
#define GIVEN_6 (a, b, c, d, e, f)
#define WORDS_7 (word a, word b, word c, word d, word e, word f, word g)
#define GIVEN_7 (a, b, c, d, e, f, g)
#define WORDS_8 (word a, word b, word c, word d, word e, word f, word g, word h)
#define GIVEN_8 (a, b, c, d, e, f, g, h)
#define WORDS_9 (word a, word b, word c, word d, word e, word f, word g, word h, word i)
#define GIVEN_9 (a, b, c, d, e, f, g, h, i)
#define WORDS_12 (word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l)
#define GIVEN_12 (a, b, c, d, e, f, g, h, i, j, k, l)

MPI(MPI_Recv, WORDS_7, GIVEN_7)
MPI(MPI_Send, WORDS_6, GIVEN_6)
MPI(MPI_Ssend, WORDS_6, GIVEN_6)
MPI(MPI_Sendrecv, WORDS_12, GIVEN_12)
MPI(MPI_Probe, WORDS_4, GIVEN_4)
MPI(MPI_Wait, WORDS_2, GIVEN_2)
MPI(MPI_Waitall, WORDS_3, GIVEN_3)
MPI(MPI_Waitany, WORDS_4, GIVEN_4)
MPI(MPI_Waitsome, WORDS_5, GIVEN_5)
MPI(MPI_Barrier, WORDS_1, GIVEN_1)
MPI(MPI_Bcast, WORDS_5, GIVEN_5)
MPI(MPI_Reduce, WORDS_7, GIVEN_7)
MPI(MPI_Allreduce, WORDS_6, GIVEN_6)
MPI(MPI_Scan, WORDS_6, GIVEN_6)
MPI(MPI_Gather, WORDS_8, GIVEN_8)
MPI(MPI_Gatherv, WORDS_9, GIVEN_9)
MPI(MPI_Scatter, WORDS_8, GIVEN_8)
MPI(MPI_Scatterv, WORDS_9, GIVEN_9)
MPI(MPI_Allgather, WORDS_7, GIVEN_7)
MPI(MPI_Allgatherv, WORDS_8, GIVEN_8)
MPI(MPI_Alltoall, WORDS_7, GIVEN_7)
MPI(MPI_Alltoallv, WORDS_9, GIVEN_9)

/* --- from one file to another --- */

/* Moves what the result says from one file to another. */
#define COPY(name, parameters, arguments, from, to)                                                                    \
    WRAPPER(ssize_t, name, parameters, arguments, (MOVED(name, READS, from, result), MOVED(name, WRITES, to, result)))

COPY(sendfile, (int out, int in, off_t *at, size_t n), (out, in, at, n), in, out)
COPY(sendfile64, (int out, int in, off64_t *at, size_t n), (out, in, at, n), in, out)
COPY(copy_file_range, (int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, n, flags), in, out)
COPY(splice, (int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, n, flags), in, out)

/* --- calls with a variable number of arguments --- */

SLOT(fcntl);
WRAP_EXPORT int fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (command != F_SETLKW && command != F_OFD_SETLKW)
        return ((int (*)(int, int, ...))real_of(&slot_fcntl))(fd, command, argument);
    BODY(int, fcntl, (int, int, ...), (fd, command, argument), NOTHING);
}

PRINT(printf, vprintf, (const char *restrict format, ...), (const char *restrict, va_list), (format, list), stdout)
PRINT(fprintf, vfprintf, (FILE *restrict stream, const char *restrict format, ...),
      (FILE *restrict, const char *restrict, va_list), (stream, format, list), stream)
PRINT(__printf_chk, __vprintf_chk, (int level, const char *restrict format, ...), (int, const char *restrict, va_list),
      (level, format, list), stdout)
PRINT(__fprintf_chk, __vfprintf_chk, (FILE *restrict stream, int level, const char *restrict format, ...),
      (FILE *restrict, int, const char *restrict, va_list), (stream, level, format, list), stream)
