/* SPDX-License-Identifier: BSD-3-Clause */
/* Which allocators a process has, for its log: who takes the calls in our place, and which libraries of allocators are
 * loaded behind us. Ordinary code. */
#include <stdio.h>
#include <string.h>

#include "collect/collect-internal.h"
#include "fmt/log.h"

/* A library of an allocator by the beginning of its file's name, and what becomes of its blocks. */
struct library {
    const char *prefix, *name, *seen;
};

#define SEEN_AS_MALLOC "calls of malloc and operator new go on to it and are seen"
#define SEEN_AS_MAPPINGS "its own functions are not followed: what it hands out is seen as the mappings that it makes"

static const struct library libraries[] = {
    {"libjemalloc.", "jemalloc", SEEN_AS_MALLOC},
    {"libtcmalloc", "tcmalloc", SEEN_AS_MALLOC},
    {"libmimalloc", "mimalloc", SEEN_AS_MALLOC},
    {"libtbbmalloc_proxy.", "TBB's allocator", SEEN_AS_MALLOC},
    {"libtbbmalloc.", "TBB's scalable allocator", SEEN_AS_MAPPINGS},
    {"libhoard.", "Hoard", SEEN_AS_MALLOC},
    {"libsnmalloc", "snmalloc", SEEN_AS_MALLOC},
    {"librpmalloc", "rpmalloc", SEEN_AS_MALLOC},
    {"libmemkind.", "memkind", SEEN_AS_MAPPINGS},
    {"libautohbw.", "memkind's autohbw", SEEN_AS_MALLOC},
    {"libhugetlbfs", "libhugetlbfs", "malloc's heap and the program's data may lie on huge pages; blocks are seen"},
};

static void write_library(const struct process *process, const char *path, struct buf *out)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char text[512];
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (strncmp(base, libraries[i].prefix, strlen(libraries[i].prefix)) != 0)
            continue;
        (void)snprintf(text, sizeof text, "allocator: %s (%.255s): %s.", libraries[i].name, path, libraries[i].seen);
        log_write_message(out, process->name.pid, -1, text);
        return;
    }
}

/* Whether function i of those below is somebody else's operator new or delete that goes on to the malloc that we see.
 */
static bool is_passed_on(const struct process *process, int i)
{
    const struct arena_header *header = process->view->header;
    const char *owner = header->allocator_owner[i];
    char path[ARENA_PATH_MAX];
    if (i < 2 || !owner[0] || header->allocator_owner[0][0] || !process->context->new_is_malloc)
        return false;
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, owner[0] == '/' ? owner : header->exe);
    return process->context->new_is_malloc(path);
}

/* Functions that somebody else takes, and by whose code where that can be told. */
static void write_owners(const struct process *process, struct buf *out)
{
    static const char *const functions[4] = {"malloc", "free", "operator new", "operator delete"};
    const struct arena_header *header = process->view->header;
    const struct collect_context *context = process->context;
    char text[640], exe[ARENA_PATH_MAX];
    (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    for (int i = 0; i < 4; i++) {
        const char *owner = header->allocator_owner[i];
        if (!owner[0] || is_passed_on(process, i))
            continue;
        const char *name = context->allocator && owner[0] != '/' ? context->allocator(exe) : NULL;
        (void)snprintf(text, sizeof text, "%s belongs to %.255s%s%s%s: blocks it hands out are not seen.", functions[i],
                       owner, name ? " (" : "", name ? name : "", name ? ")" : "");
        log_write_message(out, process->name.pid, -1, text);
    }
}

char *process_note(const struct process *process)
{
    const struct arena_header *header = process->view->header;
    bool is_malloc = header->allocator_owner[0][0];
    const char *owner = is_malloc ? header->allocator_owner[0] : header->allocator_owner[2], *name = NULL;
    char *note = NULL, exe[ARENA_PATH_MAX];
    if (!is_malloc && is_passed_on(process, 2))
        owner = "";
    (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
    bool is_inside = owner[0] != '/'; /* in the executable, or nowhere */
    if (process->context->allocator)
        name = process->context->allocator(is_inside ? exe : owner);
    if (!owner[0] && !name)
        return NULL;
    struct buf who = {0};
    if (!owner[0])
        buf_printf(&who, "calls %s inside it by its own names", name);
    else
        buf_printf(&who, "has %s from %.255s%s%s%s", is_malloc ? "malloc" : "operator new", owner, name ? " (" : "",
                   name ? name : "", name ? ")" : "");
    int len = asprintf(&note,
                       "%.200s %s, where calls are not seen: its blocks are shown as the mappings that the allocator "
                       "makes (class mmap). To see them one by one, %s.",
                       header->argv0, who.data ? who.data : "has an allocator of its own",
                       is_inside ? "build it with the C library's malloc, or link the allocator as a shared library"
                                 : "do not preload that, or only behind hpcrun's own library");
    buf_fini(&who);
    return len < 0 ? NULL : note;
}

void process_write_allocators(const struct process *process, struct buf *out)
{
    write_owners(process, out);
    for (size_t i = 0; i < process->view->n_modules; i++)
        if (process->view->modules[i].path)
            write_library(process, process->view->modules[i].path, out);
}
