/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the load map that the handler uses, and the files behind its modules: see loadmap.h. Runs in the signal
 * handler. */
#include "runtime/record/loadmap.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arena/arena.h"
#include "base/clock.h"
#include "base/invariant.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/arena-writer.h"
#include "base/sigsafe.h"

/* --- the file behind a module, from /proc/self/maps --- */

/* Asking /proc/self/maps with raw system calls: see loadmap.h. Runs in the signal handler, under the lock of the
 * load map. */

#define LINE_BYTES_MAX (ARENA_PATH_MAX + 128)
#define DELETED " (deleted)"

static struct {
    char text[2 * LINE_BYTES_MAX]; /* part of the file; too large for a signal stack */
    char path[ARENA_PATH_MAX];
} maps;

static uint64_t number_sig(const char **at, unsigned base)
{
    uint64_t value = 0;
    for (;; (*at)++) {
        unsigned digit = **at >= '0' && **at <= '9' ? (unsigned)(**at - '0') : (unsigned)(**at | 32) - 'a' + 10;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

static void skip_field_sig(const char **at)
{
    while (**at && **at != ' ')
        (*at)++;
    while (**at == ' ')
        (*at)++;
}

/* Takes the first n bytes of maps.path for the file's path. */
static void path_take_sig(size_t n, struct module_file *file)
{
    size_t n_deleted = sizeof DELETED - 1;
    file->is_deleted = n > n_deleted && memcmp(maps.path + n - n_deleted, DELETED, n_deleted) == 0;
    maps.path[file->is_deleted ? n - n_deleted : n] = '\0';
    file->path = maps.path;
}

/* The kernel writes a newline in a name as \012 and escapes nothing else. */
static void path_read_sig(const char *text, struct module_file *file)
{
    size_t n = 0;
    for (; *text && n < sizeof maps.path - 1; text++) {
        bool is_newline = text[0] == '\\' && text[1] == '0' && text[2] == '1' && text[3] == '2';
        maps.path[n++] = is_newline ? '\n' : *text;
        text += is_newline ? 3 : 0;
    }
    path_take_sig(n, file);
}

/* Reads one line: low-high flags offset device inode path. True when its mapping holds the address or lies beyond it.
 */
static bool line_take_sig(const char *line, uintptr_t address, struct module_file *file)
{
    uintptr_t low = number_sig(&line, 16);
    line += *line == '-';
    uintptr_t high = number_sig(&line, 16);
    if (address >= high)
        return false;
    if (address < low)
        return true;
    for (int i = 0; i < 4; i++)
        skip_field_sig(&line);
    file->inode = number_sig(&line, 10);
    skip_field_sig(&line);
    file->low = low;
    file->high = high;
    if (*line == '/')
        path_read_sig(line, file);
    return true;
}

/* Reads the complete lines in the first n bytes of the text. Moves the remaining bytes to the front and returns their
 * number. *is_over: the address has been found or passed. */
static size_t lines_take_sig(size_t n, uintptr_t address, struct module_file *file, bool *is_over)
{
    char *line = maps.text;
    for (char *at = maps.text; !*is_over && at < maps.text + n; at++) {
        if (*at != '\n')
            continue;
        *at = '\0';
        *is_over = line_take_sig(line, address, file);
        line = at + 1;
    }
    size_t n_left = (size_t)(maps.text + n - line);
    memmove(maps.text, line, n_left);
    return n_left;
}

/* struct procmap_query of linux/fs.h, since Linux 6.11. */
struct maps_query {
    uint64_t size_bytes, flags, address; /* flags 0: the mapping that holds the address */
    uint64_t low, high, access, page_bytes, offset, inode;
    uint32_t device[2], name_bytes, build_id_bytes; /* in: room; out: length with the final 0; 0: none */
    uint64_t name, build_id;
};

_Static_assert(sizeof(struct maps_query) == 104, "struct procmap_query has 104 bytes");

#define MAPS_QUERY _IOWR('f', 17, struct maps_query)

/* Asks the kernel for one mapping; false when it cannot answer. The text takes it time for each mapping before that
 * one, and a program that loads hundreds of libraries asks for each. */
static bool maps_ask_sig(int fd, uintptr_t address, struct module_file *file)
{
    struct maps_query query = {
        .size_bytes = sizeof query, .address = address, .name_bytes = sizeof maps.path, .name = (uintptr_t)maps.path};
    if (own_call_sig(SYS_ioctl, fd, MAPS_QUERY, &query) != 0)
        return errno == ENOENT;
    file->inode = query.inode;
    file->low = (uintptr_t)query.low;
    file->high = (uintptr_t)query.high;
    if (query.name_bytes > 1 && query.name_bytes <= sizeof maps.path && maps.path[0] == '/')
        path_take_sig(query.name_bytes - 1, file);
    return true;
}

static void maps_search_sig(uintptr_t address, struct module_file *file)
{
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    bool is_over = fd < 0 || maps_ask_sig(fd, address, file);
    while (!is_over && n < sizeof maps.text) {
        long n_read = own_call_sig(SYS_read, fd, maps.text + n, sizeof maps.text - n);
        if (n_read <= 0)
            break;
        n = lines_take_sig(n + (size_t)n_read, address, file, &is_over);
    }
    if (fd >= 0)
        own_call_sig(SYS_close, fd);
}

/* Finds the file that is mapped at address. loader_name: the loader's name for it, used if it is absolute and /proc is
 * missing. file->path is NULL when nothing is known. One call at a time.  ctx: any */
static void module_path_find_sig(uintptr_t address, const char *loader_name, struct module_file *file)
{
    *file = (struct module_file){0};
    maps_search_sig(address, file);
    size_t n_name = strnlen(loader_name, sizeof maps.path);
    if (file->path || loader_name[0] != '/' || n_name == sizeof maps.path)
        return;
    memcpy(maps.path, loader_name, n_name + 1);
    file->path = maps.path;
}

/* --- the map --- */

/* The load map: see loadmap.h. Runs in the signal handler: it asks the loader only through _dl_find_object, which takes
 * no lock; it reads ELF headers from memory and maps tables with raw system calls. */

#define PAGE_CACHE_BITS 10
#define PAGE_CACHE (1u << PAGE_CACHE_BITS)
#define RETRY_NS 2000000u
#define PATIENCE_MS 300 /* of the whole process */
#define PAGE_BYTES_MAX ((uintptr_t)65536)

static struct {
    struct loadmap_module modules[LOADMAP_MODULES_MAX];
    _Atomic uint32_t n_modules;
    _Atomic uint32_t generation;
    _Atomic int lock; /* for adding modules and mapping tables; the handler never waits for it */
    /* Indexed by the low bits of the page number; holds its other bits << 29 | 17 bits of the generation << 12 | module
     * index + 1. */
    _Atomic uint64_t cache[PAGE_CACHE];
    bool is_started;
    struct loadmap_own own;
    uintptr_t vdso;
    _Atomic uint32_t kernel; /* reference of the kernel's pseudo module */
    _Atomic int patience_ms;
} map = {.generation = 1, .patience_ms = PATIENCE_MS};

uint32_t loadmap_generation_sig(void)
{
    return atomic_load_explicit(&map.generation, memory_order_acquire);
}

void loadmap_changed_sig(void)
{
    atomic_fetch_add(&map.generation, 1);
}

void loadmap_set_own_sig(const struct loadmap_own *own, uintptr_t vdso)
{
    map.own = *own;
    map.vdso = vdso;
}

bool loadmap_is_own_pc_sig(uintptr_t pc)
{
    return !map.own.code_end || (pc >= map.own.code_start && pc < map.own.code_end);
}

bool loadmap_is_own_sig(const struct loadmap_module *module, uintptr_t pc)
{
    return module && module->has_runtime && loadmap_is_own_pc_sig(pc);
}

/* Reads what the ELF header in memory says of a module. False when there is none at start. */
static bool elf_read_sig(uintptr_t start, uintptr_t bias, struct loadmap_module *module)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(start + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type == PT_TLS)
            module->tls_bytes = segment->p_memsz;
        if (segment->p_type != PT_NOTE || module->table_id)
            continue;
        const char *note = (const char *)bias + segment->p_vaddr, *end = note + segment->p_memsz;
        while (note + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)(const void *)note;
            const char *name = note + sizeof *n;
            const char *value = name + ((n->n_namesz + 3u) & ~3u);
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
                module->table_id = modtab_id_of_build_id((const uint8_t *)value, n->n_descsz);
            note = value + ((n->n_descsz + 3u) & ~3u);
        }
    }
    return true;
}

/* Table id of the file with this name; 0 if that is not the mapped file but another one that has taken its name. */
static uint64_t file_id_sig(const char *name, uint64_t inode)
{
    struct stat status;
    if (!name || own_call_sig(SYS_newfstatat, AT_FDCWD, name, &status, 0) != 0 || (inode && status.st_ino != inode))
        return 0;
    return modtab_id_of_file(status.st_ino, (uint64_t)status.st_size, clock_ns_of(&status.st_mtim));
}

static void hex_name_sig(char *out, uint64_t id)
{
    for (int i = 0; i < 16; i++)
        out[i] = "0123456789abcdef"[id >> (60 - 4 * i) & 15];
    memcpy(out + 16, ".lmt", 5);
}

/* Maps the table in a file; NULL when there is no file, or it is no valid table. must_be_root: the file has to belong
 * to root. */
static const struct modtab_header *table_map_file_sig(int fd, uint64_t id, bool must_be_root)
{
    struct stat status;
    void *mapped = NULL;
    if (own_call_sig(SYS_fstat, fd, &status) == 0 && S_ISREG(status.st_mode) && (!must_be_root || !status.st_uid) &&
        status.st_size >= (off_t)sizeof(struct modtab_header))
        mapped = zone_map_file_sig(fd, (size_t)status.st_size);
    if (!mapped)
        return NULL;
    const struct modtab_header *table = mapped;
    if (memcmp(table->magic, MODTAB_MAGIC, 8) == 0 && table->version == MODTAB_VERSION && table->id == id &&
        table->file_bytes == (uint64_t)status.st_size)
        return table;
    own_call_sig(SYS_munmap, mapped, status.st_size);
    return NULL;
}

/* A directory of tables; its path has at most len_max bytes and is "" for none. */
struct tables_place {
    const char *directory;
    size_t len_max;
    bool must_be_root; /* other users could put another directory in its place */
};

/* Maps a table from the cache; the caller holds the lock. *is_kept_out becomes true when the process has no access
 * there because it has changed its user. */
static const struct modtab_header *table_map_sig(const struct tables_place *place, uint64_t id, bool *is_kept_out)
{
    static char path[ARENA_PATH_MAX + 32]; /* under the lock; too large for a signal stack */
    size_t len = strnlen(place->directory, place->len_max);
    if (len == 0)
        return NULL;
    memcpy(path, place->directory, len);
    path[len] = '/';
    hex_name_sig(path + len + 1, id);
    int fd = (int)own_call_sig(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *is_kept_out |= fd < 0 && errno == EACCES;
    if (fd < 0)
        return NULL;
    const struct modtab_header *table = table_map_file_sig(fd, id, place->must_be_root);
    own_call_sig(SYS_close, fd);
    return table;
}

/* The table if another entry of the same file has already mapped it. */
static const struct modtab_header *table_shared_sig(uint64_t id)
{
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++) {
        const struct modtab_header *table = map.modules[i].code.table;
        if (map.modules[i].table_id == id && table)
            return table;
    }
    return NULL;
}

/* Whether the companion has made the table, or found that there will be none. */
static bool is_answered_sig(const struct loadmap_module *module)
{
    const struct arena_module *record = module->code.ref ? arena_record_sig(module->code.ref) : NULL;
    return record && atomic_load_explicit(&record->answer, memory_order_acquire) != MODULE_UNANSWERED;
}

/* Asks the companion for a table, once; and once more when it has made one that this process cannot read because it has
 * changed its user. The caller holds the lock. */
static void ask_for_table_sig(struct loadmap_module *module, bool is_answered)
{
    if (module->retry_ns && !is_answered)
        return;
    if (is_answered) {
        struct arena_module *record = arena_record_sig(module->code.ref);
        module->has_asked_again = true;
        atomic_store_explicit(&record->answer, MODULE_UNANSWERED, memory_order_release);
    }
    arena_request_sig(REQUEST_MODULE, module->code.ref, 0);
}

const struct modtab_header *loadmap_table_sig(const struct loadmap_module *found)
{
    struct loadmap_module *module = &map.modules[found - map.modules];
    const struct modtab_header *table = atomic_load_explicit(&module->code.table, memory_order_acquire);
    if (table || !module->table_id || !arena_header_sig())
        return table;
    uint64_t now = own_clock_ns_sig(CLOCK_MONOTONIC);
    if (now < atomic_load_explicit(&module->retry_ns, memory_order_relaxed) || atomic_exchange(&map.lock, 1))
        return NULL;
    bool is_answered = is_answered_sig(module); /* asked before the look-up, since a table may be made meanwhile */
    table = module->code.table;
    if (!table)
        table = table_shared_sig(module->table_id);
    bool is_kept_out = false;
    const struct arena_header *header = arena_header_sig();
    const struct tables_place places[] = {{header->tables, sizeof header->tables, false},
                                          {header->open_tables, sizeof header->open_tables, true}};
    for (int i = 0; i < 2 && !table; i++)
        table = table_map_sig(&places[i], module->table_id, &is_kept_out);
    DEBUG_NOTE_SIG(DEBUG_LOADMAP, 2, table ? "table found" : "table missing", {"module", module->id, NULL});
    if (table) {
        atomic_store_explicit(&module->code.table, table, memory_order_release);
        atomic_fetch_add(&map.generation, 1);
    } else if (is_answered && (!is_kept_out || module->has_asked_again)) {
        module->table_id = 0; /* there is no table, or it cannot be read: samples no longer wait for it */
        atomic_fetch_add(&map.generation, 1);
    } else {
        ask_for_table_sig(module, is_answered);
        module->retry_ns = now + RETRY_NS;
    }
    atomic_store(&map.lock, 0);
    return table;
}

bool loadmap_ask_tables_sig(bool only_needed)
{
    bool has_all = true;
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++)
        if (!only_needed || map.modules[i].is_needed)
            has_all &= !map.modules[i].table_id || loadmap_table_sig(&map.modules[i]);
    return has_all;
}

/* Sleeps for a part of the time that is left; false when it is used up. */
static bool wait_sig(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    if (atomic_fetch_sub_explicit(&map.patience_ms, 1, memory_order_relaxed) <= 0) {
        atomic_store_explicit(&map.patience_ms, 0, memory_order_relaxed);
        return false;
    }
    own_call_sig(SYS_nanosleep, &pause, NULL);
    return true;
}

bool loadmap_await_table_sig(const struct unwind_module *code)
{
    const struct loadmap_module *module = (const struct loadmap_module *)(const void *)code;
    const struct modtab_header *table = loadmap_table_sig(module);
    while (!table && module->table_id && wait_sig())
        table = loadmap_table_sig(module);
    return table != NULL;
}

void loadmap_await_tables_sig(bool only_needed)
{
    while (!loadmap_ask_tables_sig(only_needed) && wait_sig())
        ;
}

/* The table id of a file from another of its entries: where a program has gaps between its segments, the loader reports
 * each segment by itself, and only the first one holds the ELF header. */
static uint64_t table_id_of_file_sig(uintptr_t bias, const char *name)
{
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++)
        if (map.modules[i].table_id && map.modules[i].code.bias == bias && strcmp(map.modules[i].name, name) == 0)
            return map.modules[i].table_id;
    return 0;
}

/* Publishes the module in the arena; its reference stays 0 if that is not possible now. */
static void module_record_sig(struct loadmap_module *module)
{
    if (!arena_header_sig() || !arena_shared_begin_sig())
        return;
    bool is_new = !module->code.ref; /* false if another thread was faster */
    struct arena_module *record = is_new ? arena_shared_reserve_sig(ARENA_MODULES, sizeof *record) : NULL;
    uint32_t path = record ? arena_shared_string_sig(module->path ? module->path : module->name) : 0;
    if (path) {
        record->id = atomic_fetch_add(&arena_header_sig()->n_modules, 1) + 1;
        record->path = path;
        record->start = module->code.start;
        record->end = module->code.end;
        record->bias = module->code.bias;
        record->table_id = module->table_id;
        record->inode = module->inode;
        module->id = record->id;
        INVARIANT(module->code.start < module->code.end);
        atomic_store_explicit(&module->code.ref, arena_ref_sig(record), memory_order_release);
        if (module->has_runtime)
            arena_header_sig()->libhpcrun_module = module->code.ref;
    }
    arena_shared_end_sig();
    if (path)
        DEBUG_NOTE_SIG(DEBUG_LOADMAP, 1, "module", {"id", module->id, NULL}, {"start", module->code.start, NULL},
                       {"table", module->table_id, NULL}, {"path", 0, module->name});
}

/* The loader rounds the end of a module up to pages, dl_iterate_phdr does not: ends that differ by less than 64 KiB are
 * the same. */
static bool same_end(uintptr_t a, uintptr_t b)
{
    return (a + PAGE_BYTES_MAX - 1) / PAGE_BYTES_MAX == (b + PAGE_BYTES_MAX - 1) / PAGE_BYTES_MAX;
}

static struct loadmap_module *module_known_sig(uintptr_t start, uintptr_t end, const char *name)
{
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++) {
        struct loadmap_module *module = &map.modules[i];
        if (module->code.start == start && same_end(module->code.end, end) && strcmp(module->name, name) == 0)
            return module;
    }
    return NULL;
}

/* Makes a private copy of a name: bump allocation in one static area. */
static char *name_copy_sig(const char *name)
{
    static char area[512 * 1024];
    static size_t used;
    size_t len = strnlen(name, ARENA_PATH_MAX - 1);
    if (used + len + 1 > sizeof area)
        return NULL;
    char *copy = memcpy(area + used, name, len);
    copy[len] = '\0';
    used += len + 1;
    return copy;
}

/* Finds out which file the module is, and so which table it has. */
static void module_identify_sig(struct loadmap_module *module)
{
    struct module_file file = {0};
    bool has_header = elf_read_sig(module->code.start, module->code.bias, module);
    if (module->is_vdso)
        return;
    module_path_find_sig(module->code.start, module->name, &file);
    module->path = file.path && strcmp(file.path, module->name) != 0 ? name_copy_sig(file.path) : module->name;
    module->inode = file.inode;
    if (!has_header)
        module->table_id = table_id_of_file_sig(module->code.bias, module->name);
    else if (!module->table_id)
        module->table_id = file_id_sig(module->path, file.inode);
    if (has_header && !module->table_id && module->path != module->name)
        module->table_id = file_id_sig(module->name, file.inode);
}

const struct loadmap_module *loadmap_add_sig(uintptr_t start, uintptr_t end, uintptr_t bias, const char *name,
                                             int64_t tls_offset)
{
    struct loadmap_module *module = module_known_sig(start, end, name);
    if (module) {
        atomic_store_explicit(&module->is_gone, false, memory_order_relaxed);
        return module;
    }
    if (atomic_exchange(&map.lock, 1))
        return NULL;
    uint32_t index = atomic_load(&map.n_modules);
    INVARIANT(start < end && index <= LOADMAP_MODULES_MAX);
    module = module_known_sig(start, end, name);
    char *copy = !module && index < LOADMAP_MODULES_MAX ? name_copy_sig(name) : NULL;
    if (copy) {
        module = &map.modules[index];
        module->code = (struct unwind_module){.start = start, .end = end, .bias = bias};
        module->name = copy;
        module->has_runtime = map.own.address >= start && map.own.address < end;
        module->is_own = module->has_runtime && !map.own.code_end;
        module->is_vdso = map.vdso >= start && map.vdso < end;
        module->tls_offset = tls_offset;
        module->may_go = map.is_started;
        module_identify_sig(module);
        module_record_sig(module);
        atomic_store_explicit(&map.n_modules, index + 1, memory_order_release);
    }
    atomic_store(&map.lock, 0);
    return module;
}

/* The listed module that holds the address, among all or only among those that the loader does not report. */
static const struct loadmap_module *find_listed_sig(uintptr_t address, bool all)
{
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++) {
        const struct loadmap_module *module = &map.modules[i];
        bool is_wanted = all || module->is_vdso || (module->has_runtime && !module->is_own);
        if (is_wanted && address >= module->code.start && address < module->code.end)
            return module;
    }
    return NULL;
}

/* The name of an object in the loader's list. */
static const char *name_of_sig(const struct dl_find_object *found)
{
    const char *name = found->dlfo_link_map->l_name;
    if ((uintptr_t)found->dlfo_map_start == map.vdso && map.vdso)
        return "[vdso]";
    return name[0] || !arena_header_sig() ? name : arena_header_sig()->exe;
}

/* Asks the loader which object holds the address. It knows only the code of a static program, and nothing of the vdso.
 */
static const struct loadmap_module *find_by_loader_sig(uintptr_t address)
{
    struct dl_find_object found;
    const struct loadmap_module *listed = map.own.code_end ? find_listed_sig(address, false) : NULL;
    if (listed)
        return listed;
    if (!_dl_find_object || _dl_find_object((void *)address, &found) != 0)
        return find_listed_sig(address, !_dl_find_object);
    return loadmap_add_sig((uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, found.dlfo_link_map->l_addr,
                           name_of_sig(&found), 0);
}

/* Whether the module that was found at the address is still there. The generation changes before the loader starts its
 * work, so an answer from that time may be stale although the generation is the same. */
static bool is_there_sig(const struct loadmap_module *module, uintptr_t address)
{
    struct dl_find_object found;
    if (!module->may_go || !_dl_find_object)
        return true;
    return _dl_find_object((void *)address, &found) == 0 && (uintptr_t)found.dlfo_map_start == module->code.start &&
           found.dlfo_link_map->l_addr == module->code.bias && strcmp(name_of_sig(&found), module->name) == 0;
}

unsigned loadmap_find_gone_sig(struct loadmap_gone *gone)
{
    unsigned n = 0;
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    *gone = (struct loadmap_gone){0};
    for (uint32_t i = 0; i < n_modules; i++) {
        struct loadmap_module *module = &map.modules[i];
        if (!module->may_go || atomic_load_explicit(&module->is_gone, memory_order_relaxed) ||
            is_there_sig(module, module->code.start))
            continue;
        atomic_store_explicit(&module->is_gone, true, memory_order_relaxed);
        if (module->id < LOADMAP_IDS_MAX)
            gone->ids[module->id / 64] |= (uint64_t)1 << module->id % 64;
        n++;
    }
    return n;
}

/* The word that the page cache would hold for the page now (see map.cache), with 0 in its lowest 12 bits, where the
 * module's index + 1 belongs. */
static uint64_t cache_word_sig(uint64_t page)
{
    return page >> PAGE_CACHE_BITS << 29 | (uint64_t)(loadmap_generation_sig() & 0x1ffff) << 12;
}

const struct loadmap_module *loadmap_find_sig(uintptr_t address)
{
    uint64_t page = address >> 12, word = cache_word_sig(page);
    _Atomic uint64_t *entry = &map.cache[page & (PAGE_CACHE - 1)];
    uint64_t cached = atomic_load_explicit(entry, memory_order_acquire);
    if (cached >> 12 == word >> 12 && cached != word) {
        INVARIANT((cached & 0xfff) - 1 < atomic_load_explicit(&map.n_modules, memory_order_acquire));
        const struct loadmap_module *module = &map.modules[(cached & 0xfff) - 1];
        bool is_there = is_there_sig(module, address);
        if (is_there && (module->code.table || !module->table_id))
            return module;
        if (!is_there)
            loadmap_changed_sig();
    }
    const struct loadmap_module *module = find_by_loader_sig(address);
    if (!module)
        return NULL;
    if (!module->code.ref)
        module_record_sig(&map.modules[module - map.modules]);
    if (!module->code.table)
        (void)loadmap_table_sig(module);
    uint64_t number = (uint64_t)(module - map.modules) + 1;
    if (number < 0x1000)
        atomic_store_explicit(entry, word | number, memory_order_release);
    return module;
}

const struct unwind_module *loadmap_find_code_sig(uintptr_t pc)
{
    const struct loadmap_module *module = loadmap_find_sig(pc);
    if (!module)
        return NULL;
    (void)loadmap_table_sig(module); /* call paths lead through modules that never get a sample themselves */
    return &module->code;
}

const struct loadmap_module *loadmap_find_tls_sig(uintptr_t thread_pointer, uintptr_t address, uint64_t *offset)
{
    int64_t distance = (int64_t)(address - thread_pointer);
    if (!arch_is_static_tls_sig(distance))
        return NULL;
    uint32_t n_modules = atomic_load_explicit(&map.n_modules, memory_order_acquire);
    for (uint32_t i = 0; i < n_modules; i++) {
        const struct loadmap_module *module = &map.modules[i];
        if (module->tls_offset && distance >= module->tls_offset &&
            distance < module->tls_offset + (int64_t)module->tls_bytes) {
            *offset = (uint64_t)(distance - module->tls_offset);
            return module;
        }
    }
    return NULL;
}

void loadmap_fork_child_sig(void)
{
    atomic_store(&map.lock, 0);
    uint32_t n_modules = atomic_load(&map.n_modules);
    for (uint32_t i = 0; i < n_modules; i++)
        atomic_store_explicit(&map.modules[i].retry_ns, 0, memory_order_relaxed);
}

void loadmap_set_needed_sig(const struct loadmap_module *module)
{
    map.modules[module - map.modules].is_needed = true;
}

void loadmap_set_started_sig(void)
{
    map.is_started = true;
}

uint32_t loadmap_pseudo_sig(const char *name, uint64_t start)
{
    struct arena_module *record = arena_shared_reserve_sig(ARENA_MODULES, sizeof *record);
    uint32_t path = arena_shared_string_sig(name);
    if (!record || !path)
        return 0;
    record->id = atomic_fetch_add(&arena_header_sig()->n_modules, 1) + 1;
    record->path = path;
    record->start = start;
    record->end = start ? UINT64_MAX : 0;
    return arena_ref_sig(record);
}

void loadmap_set_kernel_sig(uint32_t ref)
{
    atomic_store_explicit(&map.kernel, ref, memory_order_release);
}

uint32_t loadmap_kernel_sig(void)
{
    return atomic_load_explicit(&map.kernel, memory_order_acquire);
}
