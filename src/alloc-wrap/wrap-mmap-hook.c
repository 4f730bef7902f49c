/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings: mmap, munmap, mremap, System V shared memory and the break, as called by the program itself. Memory that
 * the allocator maps for its own blocks is not reported, because the blocks are. A range is removed from the records
 * before it is unmapped, because another thread may get it at once. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "alloc-wrap/hook.h"
#include "alloc-wrap/real.h"

/* The sink and the thread if the call is to be reported: not nested, not by the allocator, not our own. Else NULL. */
static const struct alloc_sink *mapping_sink(uintptr_t pc, struct alloc_thread **thread)
{
    const struct alloc_sink *sink = alloc_sink_hook();
    const struct alloc_real *real = alloc_real_hook();
    *thread = alloc_thread_hook();
    if (!sink || (*thread)->n_guard)
        return NULL;
    if (ALLOC_UNLIKELY((*thread)->in_hook || (*thread)->nest))
        alloc_check_left_hook(*thread, (uintptr_t)__builtin_frame_address(0));
    if ((*thread)->in_hook) {
        sink->skipped(ALLOC_SKIP_REENTERED);
        return NULL;
    }
    if ((*thread)->nest || (pc >= real->allocator_start && pc < real->allocator_end)) {
        sink->skipped(ALLOC_SKIP_NESTED);
        return NULL;
    }
    return sink;
}

static size_t round_to_pages(size_t n_bytes)
{
    size_t page_bytes = (size_t)getpagesize();
    return (n_bytes + page_bytes - 1) & ~(page_bytes - 1);
}

/* Reports a new mapping; fd >= 0: of that file. */
static void report(const struct alloc_sink *sink, struct alloc_thread *thread, enum alloc_kind kind, void *p,
                   size_t n_bytes, int fd, const struct alloc_site *site)
{
    int saved_errno = alloc_work_enter_hook(thread);
    if (n_bytes && n_bytes >= alloc_min_bytes_hook() && sink->ready()) {
        if (kind == ALLOC_FILE)
            sink->mapped_file(p, n_bytes, fd, site);
        else
            sink->alloc(kind, p, n_bytes, 1, site);
    }
    alloc_work_leave_hook(thread, saved_errno);
}

static void report_unmapped(const struct alloc_sink *sink, struct alloc_thread *thread, void *p, size_t n_bytes)
{
    int saved_errno = alloc_work_enter_hook(thread);
    if (n_bytes)
        sink->unmapped(p, n_bytes);
    alloc_work_leave_hook(thread, saved_errno);
}

/* Reports code: programs that generate code map the file that describes it, so that profilers see the file's name. */
static void report_code(const struct alloc_sink *sink, struct alloc_thread *thread, int fd)
{
    int saved_errno = alloc_work_enter_hook(thread);
    if (sink->mapped_code && sink->ready())
        sink->mapped_code(fd);
    alloc_work_leave_hook(thread, saved_errno);
}

/* The arguments of one mmap that say what was mapped. */
struct mapping {
    size_t n_bytes;
    int prot, flags, fd;
};

static void report_mmap(void *p, const struct mapping *mapping, const struct alloc_site *site)
{
    int flags = mapping->flags;
    size_t n_bytes = mapping->n_bytes;
    struct alloc_thread *thread;
    const struct alloc_sink *sink = p == MAP_FAILED ? NULL : mapping_sink(site->pc, &thread);
    if (!sink)
        return;
    if (flags & MAP_FIXED)
        report_unmapped(sink, thread, p, round_to_pages(n_bytes));
    enum alloc_kind kind = flags & MAP_ANONYMOUS ? ALLOC_MMAP : ALLOC_FILE;
    report(sink, thread, kind, p, n_bytes, mapping->fd, site);
    if (mapping->prot & PROT_EXEC && !(flags & MAP_ANONYMOUS))
        report_code(sink, thread, mapping->fd);
}

ALLOC_EXPORT void *mmap(void *address, size_t len_bytes, int prot, int flags, int fd, off_t offset)
{
    const struct alloc_site site = alloc_site_here();
    (void)alloc_sink_hook();
    void *p = alloc_real_hook()->mmap(address, len_bytes, prot, flags, fd, offset);
    report_mmap(p, &(struct mapping){len_bytes, prot, flags, fd}, &site);
    return p;
}

/* The same function, because off_t has 64 bits. */
ALLOC_EXPORT void *mmap64(void *address, size_t len_bytes, int prot, int flags, int fd, off64_t offset)
{
    const struct alloc_site site = alloc_site_here();
    (void)alloc_sink_hook();
    void *p = alloc_real_hook()->mmap(address, len_bytes, prot, flags, fd, offset);
    report_mmap(p, &(struct mapping){len_bytes, prot, flags, fd}, &site);
    return p;
}

/* A record must not be lost by arguments that the kernel refuses. */
static bool munmap_is_valid(const void *address, size_t len_bytes)
{
    uintptr_t start = (uintptr_t)address, end;
    return len_bytes && !(start & ((uintptr_t)getpagesize() - 1)) && !__builtin_add_overflow(start, len_bytes, &end);
}

ALLOC_EXPORT int munmap(void *address, size_t len_bytes)
{
    struct alloc_thread *thread;
    const struct alloc_sink *sink = mapping_sink((uintptr_t)__builtin_return_address(0), &thread);
    if (sink && munmap_is_valid(address, len_bytes))
        report_unmapped(sink, thread, address, round_to_pages(len_bytes));
    return alloc_real_hook()->munmap(address, len_bytes);
}

/* The arguments and the result of one mremap. */
struct remap {
    void *old_p, *new_p;
    size_t old_bytes, new_bytes;
    int flags;
    bool recorded; /* the record that starts at old_p was flagged */
};

static void report_remap(const struct alloc_sink *sink, struct alloc_thread *thread, const struct remap *remap,
                         const struct alloc_site *site)
{
    char *old_p = remap->old_p;
    size_t old_bytes = round_to_pages(remap->old_bytes), new_bytes = round_to_pages(remap->new_bytes);
    bool moved = remap->new_p != remap->old_p;
    if (moved && remap->flags & MREMAP_FIXED)
        report_unmapped(sink, thread, remap->new_p, new_bytes);
    if (remap->recorded) {
        int saved_errno = alloc_work_enter_hook(thread);
        sink->resize_done(remap->old_p, remap->new_p, remap->new_bytes, site);
        alloc_work_leave_hook(thread, saved_errno);
    } else if (moved) {
        if (!(remap->flags & MREMAP_DONTUNMAP))
            report_unmapped(sink, thread, remap->old_p, old_bytes);
        report(sink, thread, ALLOC_MMAP, remap->new_p, remap->new_bytes, -1, site);
    } else if (new_bytes > old_bytes) {
        report(sink, thread, ALLOC_MMAP, old_p + old_bytes, new_bytes - old_bytes, -1, site);
    } else {
        report_unmapped(sink, thread, old_p + new_bytes, old_bytes - new_bytes);
    }
}

static void *remap_reported(void *old_p, size_t old_bytes, size_t new_bytes, int flags, void *wanted,
                            const struct alloc_site *site)
{
    struct remap remap = {.old_p = old_p, .old_bytes = old_bytes, .new_bytes = new_bytes, .flags = flags};
    struct alloc_thread *thread;
    const struct alloc_sink *sink = mapping_sink(site->pc, &thread);
    if (sink && old_bytes && !(flags & MREMAP_DONTUNMAP) && sink->maybe_recorded(old_p)) {
        int saved_errno = alloc_work_enter_hook(thread);
        remap.recorded = sink->resize_begin(old_p);
        alloc_work_leave_hook(thread, saved_errno);
    }
    remap.new_p = alloc_real_hook()->mremap(old_p, old_bytes, new_bytes, flags, wanted);
    if (sink && remap.new_p != MAP_FAILED) {
        report_remap(sink, thread, &remap, site);
    } else if (remap.recorded) {
        int saved_errno = alloc_work_enter_hook(thread);
        sink->resize_failed(old_p);
        alloc_work_leave_hook(thread, saved_errno);
    }
    return remap.new_p;
}

ALLOC_EXPORT void *mremap(void *old_p, size_t old_bytes, size_t new_bytes, int flags, ...)
{
    const struct alloc_site site = alloc_site_here();
    void *wanted = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list arguments;
        va_start(arguments, flags);
        wanted = va_arg(arguments, void *);
        va_end(arguments);
    }
    return remap_reported(old_p, old_bytes, new_bytes, flags, wanted, &site);
}

ALLOC_EXPORT void *shmat(int id, const void *address, int flags)
{
    const struct alloc_site site = alloc_site_here();
    struct alloc_thread *thread;
    struct shmid_ds segment;
    const struct alloc_sink *sink = mapping_sink(site.pc, &thread);
    void *p = alloc_real_hook()->shmat(id, address, flags);
    if (!sink || p == (void *)-1)
        return p;
    int saved_errno = errno;
    if (shmctl(id, IPC_STAT, &segment) == 0) {
        if (flags & SHM_REMAP)
            report_unmapped(sink, thread, p, round_to_pages(segment.shm_segsz));
        report(sink, thread, ALLOC_SHM, p, segment.shm_segsz, -1, &site);
    }
    errno = saved_errno;
    return p;
}

ALLOC_EXPORT int shmdt(const void *address)
{
    struct alloc_thread *thread;
    const struct alloc_sink *sink = mapping_sink((uintptr_t)__builtin_return_address(0), &thread);
    if (sink && sink->maybe_recorded(address)) {
        int saved_errno = alloc_work_enter_hook(thread);
        sink->release(ALLOC_SHM, (void *)address);
        alloc_work_leave_hook(thread, saved_errno);
    }
    return alloc_real_hook()->shmdt(address);
}

/* Reports that the break has moved from old_end to new_end. */
static void report_break(char *old_end, char *new_end, const struct alloc_site *site)
{
    struct alloc_thread *thread;
    const struct alloc_sink *sink = old_end == new_end ? NULL : mapping_sink(site->pc, &thread);
    if (sink && new_end > old_end)
        report(sink, thread, ALLOC_BRK, old_end, (size_t)(new_end - old_end), -1, site);
    else if (sink)
        report_unmapped(sink, thread, new_end, (size_t)(old_end - new_end));
}

ALLOC_EXPORT int brk(void *address)
{
    const struct alloc_site site = alloc_site_here();
    (void)alloc_sink_hook();
    char *old_end = alloc_real_hook()->sbrk(0);
    int status = alloc_real_hook()->brk(address);
    if (status == 0)
        report_break(old_end, address, &site);
    return status;
}

ALLOC_EXPORT void *sbrk(intptr_t increment_bytes)
{
    const struct alloc_site site = alloc_site_here();
    (void)alloc_sink_hook();
    char *old_end = alloc_real_hook()->sbrk(increment_bytes);
    if (old_end != (char *)-1)
        report_break(old_end, old_end + increment_bytes, &site);
    return old_end;
}
