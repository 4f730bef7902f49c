/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that calls read and write, by call path and file: see waits.h. Ordinary code of the program's threads, which
 * may be in a signal handler that interrupted ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "runtime/own/process.h"
#include "runtime/process/waits.h"
#include "runtime/record/sample.h"

#define NAMES 4096                /* a power of two */
#define MORE_FILES "<more files>" /* the name of those that the table below has no room for */
#define FILE_CLOCK_NS 50000000    /* at least what the kernel's clock for times of files may be late */
#define TRIES 1000                /* to begin a name while another thread adds one */

static struct {
    _Atomic uint32_t names[NAMES]; /* references of arena_string, by the hash of the text; 0: free */
    _Atomic uint32_t more;
    _Atomic uint64_t known[NAMES]; /* files: the upper half of file_key() above the reference of the name; 0: free */
} files;

void waits_fork_child(void)
{
    for (size_t i = 0; i < NAMES && atomic_load(&files.more); i++) {
        atomic_store_explicit(&files.names[i], 0, memory_order_relaxed);
        atomic_store_explicit(&files.known[i], 0, memory_order_relaxed);
    }
    atomic_store(&files.more, 0);
}

/* The name's place in the table: its own or a free one; that of MORE_FILES when neither is near. */
static _Atomic uint32_t *place_of(const char *name)
{
    _Atomic uint32_t *place = arena_string_place_sig(files.names, NAMES, name, strlen(name));
    return place ? place : &files.more;
}

static bool begin_name(void)
{
    for (int i = 0; i < TRIES; i++)
        if (arena_shared_begin_sig())
            return true;
    return false;
}

/* The reference of a name in the arena; 0 when there is no room. */
static uint32_t name_ref(const char *name)
{
    uint32_t ref = atomic_load_explicit(place_of(name), memory_order_acquire);
    if (ref || !begin_name())
        return ref;
    if (!atomic_load(&files.more))
        atomic_store(&files.more, arena_shared_string_sig(MORE_FILES));
    _Atomic uint32_t *place = place_of(name); /* another thread may have added it, or another name here */
    ref = atomic_load(place);
    if (!ref && (ref = arena_shared_string_sig(name)))
        atomic_store_explicit(place, ref, memory_order_release);
    arena_shared_end_sig();
    return ref;
}

/* What tells an open file from all others that there will be; 0: nothing does. A file that gets the number of a removed
 * one is made later, which shows when the other one is older than what the clock of files tells apart. The number of a
 * socket goes to another socket at most. */
static uint64_t file_key(int fd)
{
    struct statx about;
    if (own_call_sig(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_BTIME,
                     &about) != 0)
        return 0;
    uint64_t made_ns = (uint64_t)about.stx_btime.tv_sec * 1000000000 + about.stx_btime.tv_nsec;
    bool is_old = about.stx_mask & STATX_BTIME && own_clock_ns_sig(CLOCK_REALTIME) > made_ns + FILE_CLOCK_NS;
    if (!is_old && !S_ISSOCK(about.stx_mode))
        return 0;
    const uint64_t words[] = {about.stx_ino, (uint64_t)about.stx_dev_major << 32 | about.stx_dev_minor, made_ns};
    return bytes_hash(BYTES_HASH_START, words, sizeof words);
}

/* The reference of an open file's name; what has no path, as pipes and sockets, has the name of its kind. 0: it has
 * none, or there is no room. */
static uint32_t file_ref(int fd)
{
    char path[ARENA_PATH_MAX];
    uint64_t key = file_key(fd);
    _Atomic uint64_t *place = &files.known[key & (NAMES - 1)];
    uint64_t known = atomic_load_explicit(place, memory_order_acquire);
    if (key && known && known >> 32 == key >> 32)
        return (uint32_t)known;
    if (!descriptors_path_sig(fd, path, sizeof path))
        return 0;
    if (path[0] != '/')
        path[strcspn(path, ":")] = '\0';
    uint32_t ref = name_ref(path);
    if (ref && key)
        atomic_store_explicit(place, key >> 32 << 32 | ref, memory_order_release);
    return ref;
}

__attribute__((visibility("default"))) void locus_wait_moved_event(const struct wait_call *call, bool is_write, int fd,
                                                                   uint64_t n_bytes)
{
    struct thread_state *self = n_bytes ? waits_measured_thread() : NULL;
    int saved_errno = errno;
    if (!self || self->waits.transfers[is_write] < 0 || fd < 0)
        return;
    uint32_t file = file_ref(fd);
    const struct unwind_start start = waits_start_at(call->site.pc, call->site.sp, call->site.fp);
    const struct sample_call moved = {.event = (uint8_t)self->waits.transfers[is_write],
                                      .weight = n_bytes,
                                      .var = file ? var_key(VAR_FILE, 0, file) : 0,
                                      .function = call->function,
                                      .start = &start};
    self->tree_busy = 1;
    atomic_thread_fence(memory_order_seq_cst); /* see record() of waits.c */
    if (!self->ending)
        sample_take_call_sig(self, &moved);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->tree_busy = 0;
    errno = saved_errno;
}
