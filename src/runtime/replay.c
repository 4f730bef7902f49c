/* SPDX-License-Identifier: BSD-3-Clause */
/* Replays: a file takes the place of kernel and hardware. The ring lies in private memory; pieces of the file are
 * written into it as the kernel would write them, and signals are raised where it would raise them, so that everything
 * behind the ring is the ordinary code. Ordinary code. The file's form: doc/replay.md. */
#include "runtime/events-internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/arena-writer.h"
#include "runtime/own-call.h"

enum piece_kind { PIECE_WRITE = 1, PIECE_SIGNAL = 2, PIECE_AUX = 3 };

/* The part of the file that is still to come. */
struct replay {
    const unsigned char *at, *end;
};

static void *map_private(size_t n_bytes)
{
    void *mapped = (void *)own_mmap_sig(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return (uintptr_t)mapped >= (uintptr_t)-4095 ? NULL : mapped;
}

bool replay_open(struct thread_event *event, const struct arena_event *plan)
{
    uint64_t page_bytes = arena_header_sig()->page_bytes;
    event->fd = (int)own_call_sig(SYS_openat, AT_FDCWD, plan->file, O_RDONLY | O_CLOEXEC);
    event->ring_bytes = (uint32_t)(page_bytes + plan->ring_bytes);
    event->ring = map_private(event->ring_bytes);
    if (plan->flags & EVENT_AUX) {
        event->aux_bytes = plan->aux_bytes;
        event->aux = map_private(plan->aux_bytes);
    }
    if (event->fd < 0 || !event->ring || (plan->flags & EVENT_AUX && !event->aux)) {
        event_close(event);
        return false;
    }
    struct perf_event_mmap_page *page = event->ring;
    page->data_offset = page_bytes;
    page->data_size = plan->ring_bytes;
    return true;
}

static void copy_in(unsigned char *area, uint64_t n_area, uint64_t position, const unsigned char *bytes, size_t n)
{
    uint64_t offset = position % n_area;
    size_t first = n < n_area - offset ? n : (size_t)(n_area - offset);
    memcpy(area + offset, bytes, first);
    memcpy(area, bytes + first, n - first);
}

/* The signal as the kernel would send it for the descriptor; it is taken before this returns. */
static void raise_signal(int fd)
{
    siginfo_t info = {.si_signo = EVENTS_SIGNAL, .si_code = POLL_IN};
    info.si_fd = fd;
    events_note_descriptor_sig(fd);
    own_call_sig(SYS_rt_tgsigqueueinfo, (pid_t)own_pid_sig(), own_tid_sig(), EVENTS_SIGNAL, &info);
}

/* False when there is no room, also after the reader has been called. */
static bool write_ring(struct thread_event *event, bool is_drained, const unsigned char *bytes, size_t n_bytes)
{
    struct perf_event_mmap_page *page = event->ring;
    unsigned char *data = (unsigned char *)page + page->data_offset;
    if (n_bytes > page->data_size)
        return false;
    if (!is_drained) {
        uint64_t head = page->data_head - n_bytes;
        copy_in(data, page->data_size, head, bytes, n_bytes);
        __atomic_store_n(&page->data_head, head, __ATOMIC_RELEASE);
        return true;
    }
    if (page->data_head - page->data_tail + n_bytes > page->data_size)
        raise_signal(event->fd);
    if (page->data_head - page->data_tail + n_bytes > page->data_size)
        return false;
    copy_in(data, page->data_size, page->data_head, bytes, n_bytes);
    __atomic_store_n(&page->data_head, page->data_head + n_bytes, __ATOMIC_RELEASE);
    return true;
}

static bool write_aux(struct thread_event *event, const unsigned char *bytes, size_t n_bytes)
{
    struct perf_event_mmap_page *page = event->ring;
    if (!event->aux || n_bytes > event->aux_bytes)
        return false;
    if (page->aux_head - page->aux_tail + n_bytes > event->aux_bytes)
        raise_signal(event->fd);
    if (page->aux_head - page->aux_tail + n_bytes > event->aux_bytes)
        return false;
    copy_in(event->aux, event->aux_bytes, page->aux_head, bytes, n_bytes);
    __atomic_store_n(&page->aux_head, page->aux_head + n_bytes, __ATOMIC_RELEASE);
    return true;
}

/* One piece: kind and length as little-endian words of 4 bytes, then the bytes, padded to a multiple of 8. */
static bool feed_piece(struct thread_event *event, bool is_drained, struct replay *replay)
{
    uint32_t words[2];
    if (replay->end - replay->at < (ptrdiff_t)sizeof words)
        return false;
    memcpy(words, replay->at, sizeof words);
    size_t n_bytes = le32toh(words[1]), n_padded = (n_bytes + 7) & ~(size_t)7;
    const unsigned char *bytes = replay->at + sizeof words;
    if (n_padded > (size_t)(replay->end - bytes))
        return false;
    replay->at = bytes + n_padded;
    switch (le32toh(words[0])) {
    case PIECE_AUX:
        return write_aux(event, bytes, n_bytes);
    case PIECE_WRITE:
        return write_ring(event, is_drained, bytes, n_bytes);
    case PIECE_SIGNAL:
        if (!write_ring(event, is_drained, bytes, n_bytes))
            return false;
        raise_signal(event->fd);
        return true;
    default:
        return false;
    }
}

/* Where the pieces begin: behind the empty line that ends the text, at a multiple of 8 bytes. */
static const unsigned char *pieces_begin(const unsigned char *file, size_t n_bytes)
{
    const unsigned char *found = memmem(file, n_bytes, "\n\n", 2);
    size_t offset = found ? ((size_t)(found - file) + 2 + 7) & ~(size_t)7 : n_bytes;
    return file + (offset < n_bytes ? offset : n_bytes);
}

void replay_run(struct thread_state *self, unsigned index)
{
    struct thread_event *event = &self->events[index];
    struct perf_event_mmap_page *page = event->ring;
    struct stat status;
    if (self != thread_self_sig() || page->data_head || page->aux_head ||
        own_call_sig(SYS_fstat, event->fd, &status) != 0 || status.st_size <= 0)
        return;
    size_t n_bytes = (size_t)status.st_size;
    const unsigned char *file =
        (const unsigned char *)own_mmap_sig(NULL, n_bytes, PROT_READ, MAP_PRIVATE, event->fd, 0);
    if ((uintptr_t)file >= (uintptr_t)-4095)
        return;
    struct replay replay = {.at = pieces_begin(file, n_bytes), .end = file + n_bytes};
    bool is_drained = arena_header_sig()->events[index].flags & EVENT_DRAINED;
    while (replay.at < replay.end && feed_piece(event, is_drained, &replay))
        continue;
    if (replay.at < replay.end)
        arena_log_sig("the replay ends early: a piece of its file does not fit the ring, or is damaged");
    own_call_sig(SYS_munmap, (void *)(uintptr_t)file, n_bytes);
}
