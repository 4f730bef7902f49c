/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime comes into a program that runs already, and leaves it. The launcher calls the two functions in a thread
 * that it has stopped at a safe point (tools/hpcrun/inject.c); the other threads run on. Ordinary code, with raw system
 * calls. */
#include "runtime/process/late.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/events/signals.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/own/zone.h"
#include "runtime/process/start.h"
#include "runtime/process/threads.h"
#include "runtime/record/arena-writer.h"

#define ROUNDS_MAX 20 /* over the list of threads, while there are new ones */
#define MAPS_AT_ONCE 65536
#define NAMED "allocated before hpcrun attached"

/* --- the threads that are there --- */

static bool is_known(uint32_t tid)
{
    for (struct thread_state *state = thread_live_sig(); state; state = thread_live_next_sig(state))
        if (state->record->tid == tid)
            return true;
    return false;
}

/* False when the thread has ended meanwhile, or there is no room. */
static bool take_thread(uint32_t tid)
{
    struct thread_state *state = is_known(tid) ? NULL : thread_prepare();
    if (!state)
        return false;
    if (!thread_begin_absent(state, tid)) {
        thread_discard(state);
        return false;
    }
    thread_facts_leave_out(state);
    return true;
}

struct directory_entry {
    uint64_t inode, offset;
    uint16_t n_bytes;
    uint8_t type;
    char name[];
};

/* Returns how many threads were new. */
static unsigned take_round(void)
{
    _Alignas(struct directory_entry) char entries[2048];
    unsigned n_new = 0;
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n_bytes = 0;
    while (fd >= 0 && (n_bytes = own_call_sig(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < n_bytes;) {
            const struct directory_entry *entry = (const void *)(entries + at);
            uint32_t tid = 0;
            for (const char *digit = entry->name; *digit >= '0' && *digit <= '9'; digit++)
                tid = tid * 10 + (uint32_t)(*digit - '0');
            n_new += tid && take_thread(tid);
            at += entry->n_bytes;
        }
    if (fd >= 0)
        (void)own_call_sig(SYS_close, fd);
    return n_new;
}

static void take_threads(void)
{
    for (int round = 0; round < ROUNDS_MAX && take_round(); round++)
        continue;
}

static void start_others(void)
{
    for (struct thread_state *state = thread_live_sig(); state; state = thread_live_next_sig(state))
        if (state != thread_self_sig())
            thread_switch_new_sig(state);
}

/* The calling thread is in a system call, which a sample that waits until the thread goes on would end: hpcrun has
 * blocked all signals for our call. So its events begin last. A clock's first period is longer than the way back, and
 * what has come by then of other events is thrown away. */
static void start_self(void)
{
    if (thread_self_sig())
        thread_switch_new_sig(thread_self_sig());
    events_clear_pending_sig();
}

/* --- the memory that is there --- */

/* The lines of /proc/self/maps, as they come. */
struct reader {
    int fd;
    char text[4096];
    size_t n, at;
};

/* The next line, without its end; NULL when there is none. */
static char *next_line(struct reader *reader)
{
    for (;;) {
        char *line = reader->text + reader->at;
        char *end = memchr(line, '\n', reader->n - reader->at);
        if (end) {
            *end = '\0';
            reader->at = (size_t)(end - reader->text) + 1;
            return line;
        }
        memmove(reader->text, line, reader->n - reader->at);
        reader->n -= reader->at;
        reader->at = 0;
        size_t room = sizeof reader->text - reader->n;
        long n = room ? own_call_sig(SYS_read, reader->fd, reader->text + reader->n, room) : 0;
        if (n <= 0)
            return NULL;
        reader->n += (size_t)n;
    }
}

static uintptr_t take_hex(char **at)
{
    uintptr_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uintptr_t)(c - 'a' + 10);
        else
            return value;
    }
}

static size_t put_text(char *to, size_t at, size_t n, const char *text)
{
    while (*text && at + 1 < n)
        to[at++] = *text++;
    to[at] = '\0';
    return at;
}

static size_t put_size(char *to, size_t at, size_t n, uintptr_t n_bytes)
{
    static const char *const units[] = {" KiB", " MiB", " GiB"};
    unsigned unit = 0;
    uintptr_t value = n_bytes >> 10;
    for (; value >= 10240 && unit < 2; unit++)
        value >>= 10;
    char digits[24];
    size_t n_digits = 0;
    do
        digits[n_digits++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n_digits && at + 1 < n)
        to[at++] = digits[--n_digits];
    to[at] = '\0';
    return put_text(to, at, n, units[unit]);
}

/* What blocks in the mapping are called; "" when the loader knows what lies there, or it is a stack. */
static void name_mapping(const struct late_mapping *mapping, const char *path, char *name, size_t n)
{
    size_t at = 0;
    name[0] = '\0';
    if (!strcmp(path, "[heap]")) {
        at = put_text(name, at, n, "heap, ");
    } else if (!path[0]) {
        at = put_text(name, at, n, "mapping of ");
        at = put_size(name, at, n, mapping->high - mapping->low);
        at = put_text(name, at, n, ", ");
    } else if (path[0] == '/') {
        (void)put_text(name, at, n, path);
        return;
    } else {
        return;
    }
    (void)put_text(name, at, n, NAMED);
}

static uint32_t keep_name(const char *name)
{
    uint32_t kept = 0;
    if (name[0] && arena_shared_begin_sig()) {
        kept = arena_shared_string_sig(name);
        arena_shared_end_sig();
    }
    return kept;
}

/* Takes a line such as "7f00-7f10 rw-p 00000000 00:00 0   [heap]". Only what can be written is kept, or is a file. */
static bool take_mapping(char *line, struct late_mapping *mapping)
{
    char name[512];
    char *at = line;
    mapping->low = take_hex(&at);
    at++;
    mapping->high = take_hex(&at);
    bool can_write = at[0] && at[1] && at[2] == 'w', can_execute = at[0] && at[1] && at[2] && at[3] == 'x';
    for (int field = 0; field < 4 && *at; field++) {
        while (*at == ' ')
            at++;
        while (*at && *at != ' ')
            at++;
    }
    while (*at == ' ')
        at++;
    if (can_execute || (!can_write && at[0] != '/'))
        return false;
    name_mapping(mapping, at, name, sizeof name);
    mapping->name = keep_name(name);
    return true;
}

static unsigned count_lines(void)
{
    static struct reader reader;
    unsigned n = 0;
    reader = (struct reader){.fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    while (reader.fd >= 0 && next_line(&reader))
        n++;
    if (reader.fd >= 0)
        (void)own_call_sig(SYS_close, reader.fd);
    return n;
}

static void take_mappings(void)
{
    static struct reader reader;
    uint32_t n = 0, n_lines = count_lines() + 64, n_max = n_lines < MAPS_AT_ONCE ? n_lines : MAPS_AT_ONCE;
    struct late_mapping *mappings = zone_pages_sig(n_max * sizeof *mappings);
    reader = (struct reader){.fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (reader.fd < 0)
        return;
    for (char *line; mappings && n < n_max && (line = next_line(&reader));)
        n += take_mapping(line, &mappings[n]);
    (void)own_call_sig(SYS_close, reader.fd);
    if (mappings)
        late_set_mappings_sig(mappings, n);
}

/* --- to come and to leave --- */

static struct {
    bool has_come;
} late;

static bool come(const char *companion)
{
    attach_over(companion);
    alloc_wrap_init();
    if (!process_start_hook())
        return false;
    thread_facts_leave_out(thread_self_sig());
    take_mappings();
    late_meet_sig(thread_self_sig());
    thread_stack_add_sig(thread_self_sig());
    take_threads();
    wrap_slots_take();
    take_threads(); /* those that were made before their maker's slot was ours */
    start_others();
    return true;
}

__attribute__((visibility("default"))) long locus_attach(const char *companion)
{
    int saved_errno = errno;
    struct shield shield;
    if (late.has_come)
        return LATE_AGAIN;
    late.has_come = true;
    shield_raise_sig(&shield);
    alloc_wrap_guard_enter();
    bool has_come = come(companion);
    alloc_wrap_guard_leave();
    shield_lower_sig(&shield);
    if (has_come)
        start_self();
    errno = saved_errno;
    return has_come ? LATE_DONE : LATE_REFUSED;
}

__attribute__((visibility("default"))) long locus_detach(void)
{
    int saved_errno = errno;
    bool is_ours = process_is_ours_sig();
    if (is_ours) {
        (void)thread_adopt_sig();
        wrap_slots_restore();
        process_leave();
    }
    errno = saved_errno;
    return is_ours ? LATE_DONE : LATE_REFUSED;
}
