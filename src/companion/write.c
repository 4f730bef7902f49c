/* SPDX-License-Identifier: BSD-3-Clause */
/* From an arena to files in the measurement directory: what the collector needs in addition to the arena, above all
 * module tables, names of generated code, and the allocator. Runs in a worker, except for the claim. */
#include "companion/state.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input.h"
#include "collect/collect.h"
#include "fnbounds/modtab-cache.h"
#include "symnames/symnames.h"

/* --- the files in which a process describes the code that it generates: /tmp/perf-PID.map and a jitdump --- */

/* The companion opens them while the process lives, because many programs remove them at their end. A file counts when
 * the process's user (or root) owns it and it was written after the process began: process ids are used again, and old
 * maps stay. */

#define FILE_BYTES_MAX ((int64_t)512 << 20)
#define CLOCK_SLACK_NS 20000000 /* file times are those of the last tick */

/* Opens path as the process sees it, where that is possible. */
static int open_seen(const struct companion_process *process, const char *path)
{
    char seen[ARENA_PATH_MAX + 64];
    (void)snprintf(seen, sizeof seen, "/proc/%ld/root%s", (long)process->peer_pid, path);
    int fd = input_open(AT_FDCWD, seen, O_NOFOLLOW, NULL);
    return fd >= 0 ? fd : input_open(AT_FDCWD, path, O_NOFOLLOW, NULL);
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file that has been removed stays open. */
static void look_for(const struct companion_process *process, const char *path, int *fd)
{
    int found = open_seen(process, path);
    if (found < 0)
        return;
    if (*fd >= 0 && is_same_file(*fd, found)) {
        (void)close(found);
        return;
    }
    if (*fd >= 0)
        (void)close(*fd);
    *fd = found;
}

void companion_jit_look(struct companion_process *process)
{
    struct arena_header *arena = process->arena;
    char path[ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "/tmp/perf-%u.map", process->pid);
    look_for(process, path, &process->map_fd);
    if (!atomic_load_explicit(&arena->has_jitdump, memory_order_acquire))
        return;
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, arena->jitdump);
    if (path[0] == '/')
        look_for(process, path, &process->dump_fd);
}

/* Whether the file describes code of this process; if not, the log says why. */
static bool is_usable(const struct companion *c, const struct companion_process *process, const char *what,
                      const struct stat *info)
{
    uint64_t written_ns = clock_ns_of(&info->st_mtim);
    if (!S_ISREG(info->st_mode) || info->st_size <= 0)
        return false;
    if (info->st_uid != process->peer_uid && (process->is_foreign || info->st_uid != 0))
        companion_log(c, "The %s of process %u belongs to user %u: not used.", what, process->pid, info->st_uid);
    else if (written_ns + CLOCK_SLACK_NS < process->arena->start_ns)
        companion_log(c, "The %s of process %u is older than the process: not used.", what, process->pid);
    else if (info->st_size > FILE_BYTES_MAX)
        companion_log(c, "The %s of process %u has %lld bytes, at most %lld are read: not used.", what, process->pid,
                      (long long)info->st_size, (long long)FILE_BYTES_MAX);
    else
        return true;
    return false;
}

/* The file's content, malloc'ed; NULL when it is not usable. */
static char *read_whole(const struct companion *c, const struct companion_process *process, const char *what, int fd,
                        size_t *len_bytes)
{
    struct stat info;
    *len_bytes = 0;
    if (fd < 0 || fstat(fd, &info) != 0 || !is_usable(c, process, what, &info))
        return NULL;
    char *bytes = malloc((size_t)info.st_size);
    for (ssize_t n = 1; bytes && n > 0 && *len_bytes<(size_t)info.st_size; *len_bytes += n> 0 ? (size_t)n : 0)
        n = pread(fd, bytes + *len_bytes, (size_t)info.st_size - *len_bytes, (off_t)*len_bytes);
    return bytes;
}

/* The names in the files, those of earlier processes of the same pid left out; NULL when there are none. c: for
 * messages.  To be freed with jit_names_free. */
static struct jit_names *companion_jit_read(const struct companion *c, const struct companion_process *process)
{
    struct error err;
    size_t map_bytes, dump_bytes;
    int64_t n = 0, n_dumped = 0;
    char path[ARENA_PATH_MAX];
    (void)snprintf(path, sizeof path, "%.*s", ARENA_PATH_MAX - 1, process->arena->jitdump);
    char *map = read_whole(c, process, "map of generated code", process->map_fd, &map_bytes);
    char *dump = read_whole(c, process, "jitdump", process->dump_fd, &dump_bytes);
    struct jit_names *names = map || dump ? jit_names_new() : NULL;
    if (names && map)
        n = jit_names_add_map(names, map, map_bytes, &err);
    if (names && dump)
        n_dumped = jit_names_add_dump(names, dump, dump_bytes, path, &err);
    if (names && (n < 0 || n_dumped < 0 || jit_names_order(names, &err) != 0))
        companion_log(c, "Process %u: %s.", process->pid, err.text);
    free(map);
    free(dump);
    return names;
}

void companion_jit_close(struct companion_process *process)
{
    if (process->map_fd >= 0)
        (void)close(process->map_fd);
    if (process->dump_fd >= 0)
        (void)close(process->dump_fd);
    process->map_fd = process->dump_fd = -1;
}

/* --- the allocator that is linked into an executable: by functions that only one has --- */

#define STUB_BYTES 16 /* of an entry of the procedure linkage table */

static const struct {
    const char *function, *name;
} rows[] = {
    {"mallctl", "jemalloc"},
    {"je_mallctl", "jemalloc"},
    {"tc_version", "tcmalloc"},
    {"TCMalloc_Internal_GetHeapSizeHardLimit", "tcmalloc"},
    {"mi_version", "mimalloc"},
    {"mi_malloc", "mimalloc"},
    {"scalable_malloc", "TBB's scalable allocator"},
    {"memkind_malloc", "memkind"},
    {"rpmalloc_initialize", "rpmalloc"},
};

/* Name of the allocator that the first telling function of a symbol table belongs to; NULL when there is none. */
static const char *search_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name = gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF
                               ? elf_strptr(elf, header->sh_link, symbol.st_name)
                               : NULL;
        for (size_t k = 0; name && k < sizeof rows / sizeof rows[0]; k++)
            if (strcmp(name, rows[k].function) == 0)
                return rows[k].name;
    }
    return NULL;
}

/* Name of the allocator that the ELF file's symbols show, NULL when they show none that is known; static storage. */
static const char *allocator_name(const char *path)
{
    const char *found = NULL;
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            found = search_table(elf, section, &header);
    }
    (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* The code at an address, NULL when there is none. *n_bytes: as far as its section goes. */
static const unsigned char *code_at(Elf *elf, uint64_t address, size_t *n_bytes)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR) || address < header.sh_addr ||
            address - header.sh_addr >= header.sh_size)
            continue;
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (!data || !data->d_buf || address - header.sh_addr >= data->d_size)
            return NULL;
        *n_bytes = data->d_size - (size_t)(address - header.sh_addr);
        return (const unsigned char *)data->d_buf + (address - header.sh_addr);
    }
    return NULL;
}

/* Whether the loader puts the address of the malloc that it finds into the slot at address. */
static bool is_malloc_slot(Elf *elf, uint64_t address)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header, symbols;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        Elf_Scn *table = elf_getscn(elf, header.sh_link);
        Elf_Data *table_data = table && gelf_getshdr(table, &symbols) ? elf_getdata(table, NULL) : NULL;
        size_t n = data && table_data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
        for (size_t i = 0; i < n && i < INT32_MAX; i++) {
            GElf_Rela entry;
            GElf_Sym symbol;
            if (!gelf_getrela(data, (int)i, &entry) || entry.r_offset != address ||
                !gelf_getsym(table_data, (int)GELF_R_SYM(entry.r_info), &symbol))
                continue;
            const char *name = elf_strptr(elf, symbols.sh_link, symbol.st_name);
            return name && strcmp(name, "malloc") == 0;
        }
    }
    return false;
}

static uint64_t after(uint64_t next, const unsigned char *distance)
{
    int32_t value;
    memcpy(&value, distance, sizeof value);
    return next + (uint64_t)(int64_t)value;
}

/* Whether the code at address begins with a jump through malloc's slot: an entry of the procedure linkage table. */
static bool is_malloc_stub(Elf *elf, uint64_t address)
{
    size_t n = 0;
    const unsigned char *code = code_at(elf, address, &n);
    for (size_t i = 0; code && i < STUB_BYTES && i + 6 <= n; i++)
        if (code[i] == 0xff && code[i + 1] == 0x25)
            return is_malloc_slot(elf, after(address + i + 6, code + i + 2));
    return false;
}

/* Whether a call or jump of the function leads to such a stub. A byte that only looks like one leads somewhere else. */
static bool calls_malloc(Elf *elf, const GElf_Sym *function)
{
    size_t n = 0;
    uint64_t at = function->st_value;
    const unsigned char *code = code_at(elf, at, &n);
    if (n > function->st_size)
        n = (size_t)function->st_size;
    for (size_t i = 0; code && i + 5 <= n; i++) {
        bool is_direct = code[i] == 0xe8 || code[i] == 0xe9;
        bool is_by_slot = i + 6 <= n && code[i] == 0xff && (code[i + 1] == 0x15 || code[i + 1] == 0x25);
        if (is_direct && is_malloc_stub(elf, after(at + i + 5, code + i + 1)))
            return true;
        if (is_by_slot && is_malloc_slot(elf, after(at + i + 6, code + i + 2)))
            return true;
    }
    return false;
}

static bool find_function(Elf *elf, const char *wanted, GElf_Sym *symbol)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t n = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
        for (size_t i = 0; i < n && i < INT32_MAX; i++) {
            const char *name = gelf_getsym(data, (int)i, symbol) && symbol->st_shndx != SHN_UNDEF
                                   ? elf_strptr(elf, header.sh_link, symbol->st_name)
                                   : NULL;
            if (name && strcmp(name, wanted) == 0)
                return true;
        }
    }
    return false;
}

/* Whether the operator new that the ELF file exports calls the malloc that the file imports, as that of a static
 * libstdc++ does; false where that cannot be told (other processors than x86-64). */
static bool allocator_new_is_malloc(const char *path)
{
    GElf_Ehdr header;
    GElf_Sym function;
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    bool is = elf && gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64 &&
              find_function(elf, "_Znwm", &function) && calls_malloc(elf, &function);
    (void)elf_end(elf);
    if (fd >= 0)
        (void)close(fd);
    return is;
}

/* --- the files --- */

/* A module table mapped by this worker; NULL when it is not in the cache. */
struct table {
    struct table *next;
    uint64_t id;
    const struct modtab_header *header;
};

/* The context of the callbacks. */
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

static bool find_arena_function(void *ctx, uint64_t table_id, uint64_t vaddr, uint64_t *start)
{
    const struct modtab_header *header = find_table(ctx, table_id);
    int64_t index = header ? modtab_find_func(header, vaddr) : -1;
    if (index < 0)
        return false;
    *start = header->base_vaddr + modtab_funcs(header)[index].start;
    return true;
}

/* Reads the list when it is needed first: it is long, and most processes have no samples in the kernel. */
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

/* The path comes from a process that may have given up rights that we have. */
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
        .wall_ns = (int64_t)(clock_now_ns(CLOCK_REALTIME) - clock_now_ns(CLOCK_MONOTONIC)),
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
        context.function = find_arena_function;
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
