/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting an arena from the companion: descriptors become mappings and are closed at once, but for the bell. */
#include "runtime/attach.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/arena-writer.h"
#include "runtime/client.h"
#include "runtime/loadmap.h"
#include "runtime/process-internal.h"
#include "runtime/recipes.h"

static void *map_and_close(int fd, uint64_t size_bytes, int protection, void *fixed)
{
    int flags = MAP_SHARED | MAP_NORESERVE | (fixed ? MAP_FIXED : 0);
    void *memory = fd < 0 ? NULL : (void *)syscall(SYS_mmap, fixed, size_bytes, protection, flags, fd, 0);
    if (fd >= 0)
        close(fd);
    return (uintptr_t)memory >= (uintptr_t)-4095 ? NULL : memory;
}

/* Maps what the WELCOME brought; the arena at a fixed place when fixed is not NULL. */
static bool adopt_welcome(const struct client_welcome *welcome, void *fixed)
{
    void *arena = map_and_close(welcome->arena_fd, welcome->arena_bytes, PROT_READ | PROT_WRITE, fixed);
    void *store = map_and_close(welcome->recipe_fd, welcome->recipe_bytes, PROT_READ, NULL);
    arena_set_bell_sig(welcome->bell_fd);
    recipes_set_store_sig(store);
    if (!arena)
        return false;
    syscall(SYS_madvise, arena, welcome->arena_bytes, MADV_DONTDUMP);
    arena_attach_sig(arena);
    return memcmp(arena_header_sig()->magic, ARENA_MAGIC, 8) == 0;
}

bool attach_start(void)
{
    struct client_welcome welcome;
    if (!client_hello(false, &welcome) || !adopt_welcome(&welcome, NULL))
        return false;
    process_describe();
    loadmap_init();
    return true;
}

bool attach_fork_child(void)
{
    struct client_welcome welcome;
    int bell = arena_bell_sig();
    if (bell >= 0)
        close(bell);
    arena_set_bell_sig(-1);
    if (!client_hello(true, &welcome) || !adopt_welcome(&welcome, arena_header_sig()))
        return false;
    arena_shared_reset_sig();
    loadmap_fork_child_sig();
    process_describe();
    return true;
}

void attach_end(int exit_code)
{
    (void)client_end(exit_code, (int)atomic_load(&arena_header_sig()->rank));
}
