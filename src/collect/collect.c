/* SPDX-License-Identifier: BSD-3-Clause */
/* Collecting a process: names, then thread by thread, then the log. Ordinary code. */
#include "collect/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/collect-internal.h"

static void fill_name(const struct view *view, const struct collect_context *context, struct names_file *name)
{
    const struct arena_header *header = view->header;
    char exe[ARENA_PATH_MAX];
    *name = (struct names_file){.rank = __atomic_load_n((const uint32_t *)&header->rank, __ATOMIC_RELAXED),
                                .host_id = context->host_id,
                                .pid = header->pid};
    (void)snprintf(name->exe, sizeof name->exe, "%.255s", header->argv0);
    if (!name->exe[0]) {
        (void)snprintf(exe, sizeof exe, "%.*s", ARENA_PATH_MAX - 1, header->exe);
        (void)snprintf(name->exe, sizeof name->exe, "%.200s", exe[0] ? names_base(exe) : "unknown");
    }
    for (char *c = name->exe; *c; c++)
        if (*c == '/')
            *c = '_';
}

static int claim(const struct view *view, const struct collect_context *context, struct names_file *name,
                 struct error *err)
{
    fill_name(view, context, name);
    int fd = names_claim(context->dir, name, err);
    if (fd < 0)
        return fd;
    (void)close(fd);
    return 0;
}

int collect_claim(const void *arena, size_t size_bytes, const struct collect_context *context, struct names_file *name,
                  struct error *err)
{
    struct view view;
    int code = view_open(&view, arena, size_bytes, err);
    if (code)
        return code;
    code = claim(&view, context, name, err);
    view_close(&view);
    return code;
}

static void remove_file(const struct collect_context *context, struct names_file *name, const char *suffix)
{
    (void)snprintf(name->suffix, sizeof name->suffix, "%s", suffix);
    char *path = names_path(context->dir, name);
    if (path)
        (void)unlink(path);
    free(path);
}

/* The rank became known after files had been written under another one. */
static void remove_old_files(const struct process *process)
{
    struct names_file name = *process->context->claimed;
    for (size_t i = 0; i < process->n_threads; i++) {
        const struct arena_thread *record =
            view_record(process->view, process->threads[i], ARENA_THREADS, sizeof *record);
        if (!record)
            continue;
        name.thread = record->id;
        remove_file(process->context, &name, "hpcrun");
        remove_file(process->context, &name, "hpctrace");
        remove_file(process->context, &name, "objects");
    }
    name.thread = 0;
    remove_file(process->context, &name, "log");
}

static int choose_name(struct process *process, struct error *err)
{
    const struct names_file *claimed = process->context->claimed;
    if (!claimed)
        return claim(process->view, process->context, &process->name, err);
    process->name = *claimed;
    process->name.rank = __atomic_load_n((const uint32_t *)&process->view->header->rank, __ATOMIC_RELAXED);
    return 0;
}

static int write_process(struct process *process, struct error *err)
{
    int code = choose_name(process, err);
    for (size_t i = 0; i < process->n_written_threads && !code; i++)
        code = thread_write(process, process->threads[i], err);
    if (!code)
        code = process_write_log(process, err);
    if (!code && process->context->claimed && process->context->claimed->rank != process->name.rank)
        remove_old_files(process);
    return code;
}

int collect_write(const void *arena, size_t size_bytes, const struct collect_context *context,
                  struct collect_result *result, struct error *err)
{
    struct view view;
    struct process process;
    *result = (struct collect_result){0};
    int code = view_open(&view, arena, size_bytes, err);
    if (code)
        return code;
    code = process_init(&process, &view, context, err);
    if (!code) {
        result->n_samples = process.n_samples;
        result->was_empty = !process.n_samples && !process.n_blocks;
        if (!result->was_empty)
            code = write_process(&process, err);
        result->n_files = process.n_files;
        result->name = process.name;
        process_fini(&process);
    }
    view_close(&view);
    return code;
}
