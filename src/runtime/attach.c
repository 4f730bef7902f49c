/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting an arena from the companion: descriptors become mappings and are closed at once, but for the bell. */
#include "runtime/attach.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/arena-writer.h"
#include "runtime/client.h"
#include "runtime/loadmap.h"
#include "runtime/process-internal.h"
#include "runtime/recipes.h"

/* Maps what the WELCOME brought; a child's arena takes the place of its parent's. */
static bool adopt_welcome(const struct client_welcome *welcome)
{
    bool has_arena = welcome->arena_fd >= 0 && arena_map_sig(welcome->arena_fd, welcome->arena_bytes);
    recipes_map_store_sig(welcome->recipe_fd, welcome->recipe_bytes);
    arena_set_bell_sig(welcome->bell_fd);
    if (welcome->arena_fd >= 0)
        (void)syscall(SYS_close, welcome->arena_fd);
    if (welcome->recipe_fd >= 0)
        (void)syscall(SYS_close, welcome->recipe_fd);
    return has_arena;
}

bool attach_start(void)
{
    struct client_welcome welcome;
    if (client_hello(false, &welcome) != CLIENT_WELCOME || !adopt_welcome(&welcome))
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
        (void)syscall(SYS_close, bell);
    arena_set_bell_sig(-1);
    enum client_answer answer = client_hello(true, &welcome);
    if (answer == CLIENT_NO_ANSWER) /* what is mapped here is still the parent's arena */
        arena_note_child_sig(CHILD_UNHEARD, (uint32_t)getpid(), NULL);
    if (answer != CLIENT_WELCOME || !adopt_welcome(&welcome))
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
