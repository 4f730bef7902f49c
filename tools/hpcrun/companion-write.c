/* SPDX-License-Identifier: BSD-3-Clause */
/* From an arena to files in the measurement directory: what the collector must know besides the arena, module tables
 * above all. Runs in a worker (but for the claim). Ordinary code. */
#include "allocator-name.h"
#include "companion-jit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/collect.h"
#include "fnbounds/modtab-cache.h"
#include "symnames/symnames.h"
#include "topology.h"

/* A module table mapped by this worker; NULL when it is not in the cache. */
struct table {
    struct table *next;
    uint64_t id;
    const struct modtab_header *header;
};

/* What the callbacks get. */
struct tables {
    const char *dir;
    struct table *first;
};

static const struct modtab_header *find_table(struct tables *tables, uint64_t id)
{
    struct error err;
    for (struct table *table = tables->first; table; table = table->next)
        if (table->id == id)
            return table->header;
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->id = id;
    if (modtab_map(tables->dir, id, &table->header, &err) != 0)
        table->header = NULL;
    table->next = tables->first;
    tables->first = table;
    return table->header;
}

static const char *find_symbol(void *ctx, uint64_t table_id, uint32_t index, bool tls, uint64_t *vaddr,
                               uint64_t *size_bytes)
{
    const struct modtab_header *header = find_table(ctx, table_id);
    if (!header || index >= (tls ? header->n_tls_syms : header->n_syms))
        return NULL;
    const struct modtab_sym *symbol = (tls ? modtab_tls_syms(header) : modtab_syms(header)) + index;
    *vaddr = symbol->vaddr;
    *size_bytes = symbol->size_bytes;
    return modtab_string(header, symbol->name);
}

static bool find_function(void *ctx, uint64_t table_id, uint64_t vaddr, uint64_t *start)
{
    const struct modtab_header *header = find_table(ctx, table_id);
    int64_t index = header ? modtab_find_func(header, vaddr) : -1;
    if (index < 0)
        return false;
    *start = header->base_vaddr + modtab_funcs(header)[index].start;
    return true;
}

/* The list is long, and most processes have no samples in the kernel. */
static const char *find_kernel_function(uint64_t address, uint64_t *start, uint64_t *end)
{
    static struct {
        bool has_tried;
        struct kernel_names *names;
    } kernel;
    if (!kernel.has_tried)
        kernel.names = kernel_names_read("/proc/kallsyms");
    kernel.has_tried = true;
    return kernel_names_find(kernel.names, address, start, end);
}

static const char *find_jit_function(void *jit, uint64_t address, uint64_t *start, uint64_t *end)
{
    return jit_names_find(jit, address, start, end);
}

/* The kernel chooses its addresses at each boot. */
static const char *find_boot(char *text, size_t n_text)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, n_text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "-\n")] = '\0';
    return text[0] ? text : NULL;
}

static bool is_local(const struct companion_process *process)
{
    return process->work_dir && !process->writes_past;
}

static bool has_claimed(const struct companion_process *process)
{
    const struct process_shared *shared = process->shared;
    return shared && shared->has_name && shared->is_name_local == is_local(process);
}

/* The path is the word of a process that may have given up rights which we have. */
static const char *allocator_of_safe(const char *path)
{
    return companion_is_safe_path(path) ? allocator_name(path) : NULL;
}

static bool new_is_malloc_of_safe(const char *path)
{
    return companion_is_safe_path(path) && allocator_new_is_malloc(path);
}

static void fill_context(const struct companion *c, const struct companion_process *process, const char *state,
                         struct collect_context *context)
{
    static char host[256], topology[64], boot[64];
    const struct companion_setup *setup = c->setup;
    (void)gethostname(host, sizeof host - 1);
    topology_file_name(topology, sizeof topology);
    *context = (struct collect_context){
        .dir = is_local(process) ? process->work_dir : companion_dir(c),
        .host_id = c->host_id,
        .host = host,
        .job_id = names_job_id(),
        .env_path = getenv("PATH"),
        .plan = setup->plan[0] ? setup->plan : NULL,
        .skid_json = setup->skid_json[0] ? setup->skid_json : NULL,
        .topology = setup->writes_topology ? topology : NULL,
        .state = state,
        .note = process->end_note[0] ? process->end_note : NULL,
        .birth = process->at_start.start,
        .max_bytes = setup->max_bytes,
        .allocator = process->is_foreign || geteuid() == 0 ? allocator_of_safe : allocator_name,
        .new_is_malloc = process->is_foreign || geteuid() == 0 ? new_is_malloc_of_safe : allocator_new_is_malloc,
        .kernel_function = find_kernel_function,
        .kernel = find_boot(boot, sizeof boot),
        .claimed = has_claimed(process) ? &process->shared->name : NULL,
    };
}

bool companion_write_prepare(struct companion_process *process)
{
    if (process->shared)
        return true;
    void *memory = mmap(NULL, sizeof *process->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    process->shared = memory == MAP_FAILED ? NULL : memory;
    return process->shared != NULL;
}

/* Files that are written more than once keep their name. */
static int claim_name(const struct companion_process *process, struct collect_context *context, struct error *err)
{
    struct process_shared *shared = process->shared;
    if (has_claimed(process))
        return 0;
    int code = collect_claim(process->arena, process->size_bytes, context, &shared->name, err);
    if (code)
        return code;
    shared->is_name_local = is_local(process);
    shared->has_name = 1;
    context->claimed = &shared->name;
    return 0;
}

int companion_write_files(const struct companion *c, const struct companion_process *process, bool is_checkpoint)
{
    struct error err;
    struct collect_context context;
    struct collect_result result;
    struct tables tables = {.dir = c->setup->tables};
    fill_context(c, process, is_checkpoint ? "checkpoint" : process->end_state, &context);
    if (c->setup->tables[0]) {
        context.symbol = find_symbol;
        context.function = find_function;
        context.ctx = &tables;
    }
    context.jit = companion_jit_read(c, process);
    context.jit_function = context.jit ? find_jit_function : NULL;
    int code = is_checkpoint ? claim_name(process, &context, &err) : 0;
    if (!code)
        code = collect_write(process->arena, process->size_bytes, &context, &result, &err);
    jit_names_free(context.jit);
    if (!code && !is_checkpoint)
        code = companion_detour_note(process, &result.name, &err);
    if (!code)
        return 0;
    (void)snprintf(process->shared->trouble, sizeof process->shared->trouble, "%s", err.text);
    return code == ERR_IO ? WRITE_NO_PLACE : 1;
}
