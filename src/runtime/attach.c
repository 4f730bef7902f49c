/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting an arena from the companion: descriptors become mappings and are closed at once, but for the bell. */
#include "runtime/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/arena-writer.h"
#include "runtime/client.h"
#include "runtime/loadmap.h"
#include "runtime/process-internal.h"
#include "runtime/recipes.h"

#define PART_BYTES ((size_t)16 << 20)

/* Maps what the WELCOME brought; a child's arena takes the place of its parent's. */
static bool adopt_welcome(const struct client_welcome *welcome)
{
    bool has_arena = welcome->arena_fd >= 0 && arena_map_sig(welcome->arena_fd, welcome->arena_bytes);
    if (has_arena)
        recipes_map_store_sig(welcome->recipe_fd, welcome->recipe_bytes);
    if (has_arena)
        arena_set_bell_sig(welcome->bell_fd);
    else if (welcome->bell_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->bell_fd);
    if (welcome->arena_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->arena_fd);
    if (welcome->recipe_fd >= 0)
        (void)own_call_sig(SYS_close, welcome->recipe_fd);
    return has_arena;
}

bool attach_start(void)
{
    struct client_welcome welcome;
    if (client_hello(NULL, &welcome) != CLIENT_WELCOME || !adopt_welcome(&welcome))
        return false;
    process_describe();
    loadmap_init();
    return true;
}

bool attach_fork_child(void)
{
    struct client_welcome welcome;
    const struct client_heritage heritage = {arena_header_sig()->size_bytes, arena_used_bytes()};
    int bell = sandbox_is_entered_sig() ? -1 : arena_bell_sig();
    if (bell >= 0)
        (void)own_call_sig(SYS_close, bell);
    arena_set_bell_sig(-1);
    enum client_answer answer = client_hello(&heritage, &welcome);
    bool has_heritage = answer == CLIENT_WELCOME && welcome.arena_fd >= 0 && arena_inherit(welcome.arena_fd);
    if (answer == CLIENT_NO_ANSWER || (answer == CLIENT_WELCOME && !has_heritage))
        arena_note_child_sig(sandbox_is_entered_sig() ? CHILD_SANDBOXED : CHILD_UNHEARD, own_pid_sig(), NULL);
    if (answer != CLIENT_WELCOME || !adopt_welcome(&welcome) || !has_heritage)
        return false;
    arena_shared_reset_sig();
    loadmap_fork_child_sig();
    recipes_fork_child_sig();
    process_describe();
    return true;
}

/* A limit would answer with a signal. */
static bool fits_file_limit(uint64_t n_bytes)
{
    struct rlimit limit;
    return own_call_sig(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && n_bytes <= limit.rlim_cur;
}

static bool write_all(int fd, const char *bytes, uint64_t n_bytes)
{
    while (n_bytes) {
        size_t part = n_bytes < PART_BYTES ? n_bytes : PART_BYTES;
        long n = own_call_sig(SYS_write, fd, bytes, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EFAULT) /* handed out, but never mapped: nothing was written there */
            return true;
        if (n <= 0)
            return false;
        bytes += n;
        n_bytes -= (uint64_t)n;
    }
    return true;
}

/* Nobody else holds the arena any more: a copy of it goes into the measurement directory, where hpcrun --collect makes
 * files of it. */
static void leave_arena(void)
{
    const struct arena_header *header = arena_header_sig();
    uint64_t used = arena_used_bytes();
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    if (!header->left[0] || !fits_file_limit(header->size_bytes))
        return;
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, header->left, flags, 0600);
    if (fd < 0)
        return;
    (void)own_call_sig(SYS_flock, fd, LOCK_EX); /* who collects leaves it alone until it is whole */
    if (!write_all(fd, (const char *)header, used) || own_call_sig(SYS_ftruncate, fd, header->size_bytes) != 0)
        (void)own_call_sig(SYS_unlinkat, AT_FDCWD, header->left, 0);
    (void)own_call_sig(SYS_close, fd);
}

void attach_end(int exit_code)
{
    int saved_errno = errno;
    if (!client_end(exit_code, (int)atomic_load(&arena_header_sig()->rank)))
        leave_arena();
    errno = saved_errno;
}
