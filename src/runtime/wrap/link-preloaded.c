/* SPDX-License-Identifier: BSD-3-Clause */
/* The part that depends on how the runtime got into the program, for the preloaded library: the real functions come
 * after it in the loader's order, and all code of the library is the profiler's. Also what the stubs of dlopen
 * (wrap-dl-CPU.S) call before they jump on: wrap_dl_target, and what becomes of RTLD_DEEPBIND. link-static.c takes its
 * place in a static program. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc-wrap/real.h"
#include "base/bytes.h"
#include "runtime/objmap/small.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/start.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/thread.h"
#include "runtime/wrap/wrap.h"

void *wrap_real(const char *name)
{
    int saved_errno = errno;
    void *real = alloc_real_find_hook(name);
    if (!real)
        (void)dlerror(); /* the program must not see our failure when it asks for its own */
    errno = saved_errno;
    return real;
}

void *wrap_real_for(const char *name, const void *caller)
{
    Dl_info info;
    void *real = wrap_real(name);
    int saved_errno = errno;
    void *module =
        !real && dladdr(caller, &info) && info.dli_fname ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (module) {
        real = dlsym(module, name);
        dlclose(module);
    }
    if (!real)
        (void)dlerror();
    errno = saved_errno;
    return real;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* the linker's: where this library begins */

void wrap_own_image(uintptr_t *low, uintptr_t *high)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(uintptr_t)__ehdr_start;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
    uintptr_t page_bytes = getauxval(AT_PAGESZ);
    *low = *high = (uintptr_t)header;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t end = *low + segments[i].p_vaddr + segments[i].p_memsz;
        if (segments[i].p_type == PT_LOAD && end > *high)
            *high = (end + page_bytes - 1) / page_bytes * page_bytes;
    }
}

struct loadmap_own loadmap_own_code(void)
{
    return (struct loadmap_own){.address = (uintptr_t)loadmap_own_code};
}

void process_find_launcher(int argc, char **arguments)
{
    (void)argc;
    (void)arguments;
}

/* The handler that runs all destructors is registered after our constructor, so it is called before this one. */
void process_at_exit_last(void (*function)(void))
{
    (void)atexit(function);
}

/* --- RTLD_DEEPBIND --- */

/* Libraries that are loaded with RTLD_DEEPBIND. The loader looks for their symbols in the library and what it needs
 * before the program's global scope, so their calls of malloc and free reach libc's and not ours. After such a library
 * has been loaded, the slots that the loader has filled with the function that ours forwards to get ours instead: what
 * the program observes stays the same. Ordinary code of the program's threads.
 * src: dlopen(3); System V ABI, chapter 5, Relocation and Dynamic Section */

#define LIBRARIES_MAX 24 /* of one call of dlopen that are followed */
#define LOGGED_MAX 32    /* names that are known to be in the log */

#if defined __x86_64__
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define DATA_SLOT R_X86_64_GLOB_DAT
#elif defined __aarch64__
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define DATA_SLOT R_AARCH64_GLOB_DAT
#elif defined __powerpc64__
#define JUMP_SLOT R_PPC64_JMP_SLOT
#define DATA_SLOT R_PPC64_GLOB_DAT
#elif defined __s390x__
#define JUMP_SLOT R_390_JMP_SLOT
#define DATA_SLOT R_390_GLOB_DAT
#endif

static const char *const functions[] = {"malloc",   "free",          "calloc",         "realloc", "reallocarray",
                                        "memalign", "aligned_alloc", "posix_memalign", "valloc",  "pvalloc",
                                        "mmap",     "mmap64",        "munmap",         "mremap"};

#define FUNCTIONS (sizeof functions / sizeof *functions)

/* What of a library's dynamic section is read. */
struct library {
    uintptr_t bias, low, high;
    uintptr_t relro_low, relro_high; /* pages that the loader has made read-only */
    const char *strings, *soname;
    const ElfW(Sym) * symbols;
    const ElfW(Dyn) * dynamic;
    struct {
        const ElfW(Rela) * first;
        size_t n;
    } tables[2]; /* relocations of data and of calls */
    bool has_rpath, has_runpath;
};

static void read_segments(const struct dl_phdr_info *info, struct library *library)
{
    uintptr_t page_mask = (uintptr_t)getpagesize() - 1;
    *library = (struct library){.bias = info->dlpi_addr, .low = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + segment->p_vaddr, high = low + segment->p_memsz;
        if (segment->p_type == PT_LOAD) {
            library->low = low < library->low ? low : library->low;
            library->high = high > library->high ? high : library->high;
        } else if (segment->p_type == PT_DYNAMIC) {
            library->dynamic = (const ElfW(Dyn) *)low;
        } else if (segment->p_type == PT_GNU_RELRO) {
            library->relro_low = low & ~page_mask;
            library->relro_high = high & ~page_mask;
        }
    }
}

/* The loader has added the bias to the section's addresses, except in what the kernel maps. */
static uintptr_t address_in(const struct library *library, uintptr_t value)
{
    return value >= library->low && value < library->high ? value : value + library->bias;
}

static void read_dynamic(struct library *library)
{
    uintptr_t soname = 0;
    for (const ElfW(Dyn) *at = library->dynamic; at && at->d_tag != DT_NULL; at++) {
        uintptr_t value = (uintptr_t)at->d_un.d_ptr;
        switch (at->d_tag) {
        case DT_STRTAB:
            library->strings = (const char *)address_in(library, value);
            break;
        case DT_SYMTAB:
            library->symbols = (const ElfW(Sym) *)address_in(library, value);
            break;
        case DT_RELA:
            library->tables[0].first = (const ElfW(Rela) *)address_in(library, value);
            break;
        case DT_RELASZ:
            library->tables[0].n = value / sizeof(ElfW(Rela));
            break;
        case DT_JMPREL:
            library->tables[1].first = (const ElfW(Rela) *)address_in(library, value);
            break;
        case DT_PLTRELSZ:
            library->tables[1].n = value / sizeof(ElfW(Rela));
            break;
        case DT_SONAME:
            soname = value;
            break;
        default:
            library->has_rpath |= at->d_tag == DT_RPATH;
            library->has_runpath |= at->d_tag == DT_RUNPATH;
        }
    }
    library->soname = soname && library->strings ? library->strings + soname : "";
}

struct search {
    uintptr_t caller;
    unsigned n_seen;
    bool is_found, has_rpath, has_runpath; /* has_runpath: the caller's object */
};

static int visit_caller(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    struct library library;
    (void)size;
    read_segments(info, &library);
    read_dynamic(&library);
    bool is_caller = search->caller >= library.low && search->caller < library.high;
    /* the loader looks into the path of the executable for all */
    search->has_rpath |= library.has_rpath && search->n_seen;
    if (is_caller || (!search->n_seen && !search->is_found))
        search->has_runpath = library.has_runpath;
    search->is_found |= is_caller;
    search->n_seen++;
    return 0;
}

/* The loader takes the caller for four things: its paths, those of what has loaded it, $ORIGIN and its namespace, which
 * is ours. */
static bool may_call(const char *name, uintptr_t caller)
{
    struct search search = {.caller = caller};
    if (name[strcspn(name, "$")])
        return false;
    (void)dl_iterate_phdr(visit_caller, &search);
    return !search.has_rpath && (!search.has_runpath || name[strcspn(name, "/")]);
}

/* What to write into slots. */
struct writing {
    const struct wrap_change *changes; /* [n] */
    size_t n;
    bool with_data; /* into words of any kind that hold a function, not only into those that calls go by */
    unsigned n_written, n_failed;
};

static void write_slot(struct writing *writing, const struct library *library, uintptr_t *slot, uintptr_t value)
{
    uintptr_t page_bytes = (uintptr_t)getpagesize(), page = (uintptr_t)slot & ~(page_bytes - 1);
    bool is_locked = (uintptr_t)slot >= library->relro_low && (uintptr_t)slot < library->relro_high;
    if (is_locked && own_call_sig(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        writing->n_failed++;
        return;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (is_locked)
        (void)own_call_sig(SYS_mprotect, page, page_bytes, PROT_READ);
    writing->n_written++;
}

/* A slot for calls that still leads into the library itself will be filled at the first call, with the same function
 * as the others. */
static void change_slot(struct writing *writing, const struct library *library, const ElfW(Rela) * relocation)
{
    const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(relocation->r_info)];
    uintptr_t *slot = (uintptr_t *)(library->bias + relocation->r_offset);
    bool is_call = ELF64_R_TYPE(relocation->r_info) == JUMP_SLOT;
    bool is_wanted = writing->with_data || is_call || ELF64_R_TYPE(relocation->r_info) == DATA_SLOT;
    if (!ELF64_R_SYM(relocation->r_info) || !is_wanted || (uintptr_t)slot < library->low ||
        (uintptr_t)slot >= library->high || (uintptr_t)slot % sizeof *slot)
        return;
    for (size_t i = 0; i < writing->n; i++) {
        const struct wrap_change *change = &writing->changes[i];
        if (!change->from || strcmp(library->strings + symbol->st_name, change->function) != 0)
            continue;
        uintptr_t value = __atomic_load_n(slot, __ATOMIC_RELAXED);
        bool is_lazy = change->may_be_lazy && is_call && symbol->st_shndx == SHN_UNDEF && value >= library->low &&
                       value < library->high;
        if (value == change->from || is_lazy)
            write_slot(writing, library, slot, change->to);
    }
}

static void change_library(struct writing *writing, const struct library *library)
{
    for (int table = 0; library->strings && library->symbols && table < 2; table++)
        for (size_t i = 0; library->tables[table].first && i < library->tables[table].n; i++)
            change_slot(writing, library, &library->tables[table].first[i]);
}

/* --- the slots of all modules, in a running program --- */

static int change_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct library library;
    (void)size;
    read_segments(info, &library);
    read_dynamic(&library);
    uintptr_t ours = (uintptr_t)change_module;
    if (ours < library.low || ours >= library.high)
        change_library(context, &library);
    return 0;
}

void wrap_slots_change(const struct wrap_change *changes, size_t n)
{
    struct writing writing = {.changes = changes, .n = n};
    (void)dl_iterate_phdr(change_module, &writing);
}

/* --- the slots of what dlopen has loaded --- */

/* One call of dlopen: what to write, and into which libraries. */
struct follow {
    const struct link_map *map;
    struct wrap_change changes[FUNCTIONS];
    struct writing writing;                  /* of these */
    struct library libraries[LIBRARIES_MAX]; /* the library, and those that it needs and that came after it */
    unsigned n_libraries;
};

/* Whether the library, of this name, is what dlopen has loaded, or needed by it. */
static bool is_needed(const struct follow *follow, const struct library *library, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    for (unsigned i = 0; i < follow->n_libraries; i++)
        for (const ElfW(Dyn) *at = follow->libraries[i].dynamic; at && at->d_tag != DT_NULL; at++) {
            const char *needed = follow->libraries[i].strings + at->d_un.d_val;
            if (at->d_tag == DT_NEEDED && (!strcmp(needed, library->soname) || !strcmp(needed, base)))
                return true;
        }
    return false;
}

/* Slots are written under the lock of dl_iterate_phdr, so no two threads change the same page's protection at a time.
 * The loader lists libraries in the order in which they were loaded, and one after those that need it. Other libraries
 * are not touched: another thread may be loading them at this moment. */
static int visit_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    struct follow *follow = context;
    struct library *library = &follow->libraries[follow->n_libraries];
    (void)size;
    if (follow->n_libraries == LIBRARIES_MAX)
        return 1;
    read_segments(info, library);
    read_dynamic(library);
    bool is_first = !follow->n_libraries && library->dynamic == follow->map->l_ld;
    if (!is_first && !is_needed(follow, library, info->dlpi_name))
        return 0;
    follow->n_libraries++;
    change_library(&follow->writing, library);
    return 0;
}

/* True the first time. */
static bool is_new(const char *name, enum arena_deep way)
{
    static _Atomic uint64_t logged[LOGGED_MAX];
    uint64_t hash = bytes_hash_text(BYTES_HASH_START + way, name);
    for (unsigned i = 0; i < LOGGED_MAX; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&logged[i], &none, hash))
            return true;
        if (none == hash)
            return false;
    }
    return false;
}

/* True the first time. */
static bool note(const char *name, enum arena_deep way)
{
    static const char *const said[DEEP_WAYS] = {
        "its calls of malloc and free were redirected to the profiler",
        "the profiler does not see its calls of malloc and free, nor which blocks it frees",
        "the flag was dropped (--no-deepbind)",
        "the profiler does not see what it asks of the libc there: blocks, threads, signals, how it ends",
    };
    static const char deep[] = " is loaded with RTLD_DEEPBIND: ", apart[] = " is loaded into a namespace of its own: ";
    const char *with = way == DEEP_APART ? apart : deep;
    struct arena_header *header = arena_header_sig();
    char text[512];
    if (!header || !process_is_ours_sig() || !is_new(name, way))
        return false;
    if (atomic_fetch_add(&header->n_deep[way], 1) == 0)
        strncpy(header->deep_name[way], name, sizeof header->deep_name[way] - 1);
    size_t n = strnlen(name, 255), n_with = strlen(with);
    memcpy(text, name, n);
    memcpy(text + n, with, n_with);
    memcpy(text + n + n_with, said[way], strlen(said[way]) + 1);
    arena_log_sig(text);
    return true;
}

/* Fills in what is looked for; false when the library has an allocator of its own, or calls another one than we. */
static bool find_functions(struct follow *follow, void *handle)
{
    for (size_t i = 0; i < FUNCTIONS; i++) {
        uintptr_t real = (uintptr_t)wrap_real(functions[i]), ours = (uintptr_t)dlsym(RTLD_DEFAULT, functions[i]);
        uintptr_t bound = (uintptr_t)dlsym(handle, functions[i]);
        if (bound && bound == real && ours != real) {
            follow->changes[i] = (struct wrap_change){functions[i], real, ours, true};
        } else if (bound && i < 2) {
            return false;
        }
    }
    return true;
}

/* Redirects what the library that was opened as handle calls. True if it does so the first time. */
static bool follow_library(void *handle, const char *name)
{
    const struct arena_header *header = arena_header_sig();
    bool is_seen = !header->allocator_owner[0][0] && !header->allocator_owner[1][0];
    struct follow follow = {0};
    if (is_seen && find_functions(&follow, handle)) {
        follow.writing = (struct writing){.changes = follow.changes, .n = FUNCTIONS, .with_data = true};
        follow.map = handle; /* in glibc the handle is the entry of the loader's list */
        (void)dl_iterate_phdr(visit_loaded, &follow);
    } else {
        follow.writing.n_failed++;
    }
    (void)dlerror(); /* the program must not see our failures when it asks for its own */
    if (follow.writing.n_failed || follow.n_libraries == LIBRARIES_MAX)
        (void)note(name, DEEP_UNSEEN);
    else if (follow.writing.n_written)
        return note(name, DEEP_FOLLOWED);
    return false;
}

typedef void *dlopen_function(const char *name, int mode);

/* Takes the place of dlopen where it does not matter who calls it. The library may allocate at once, and the path of an
 * allocation cannot be unwound later: so it waits a little for new tables, as the start does. */
static void *open_deep(const char *name, int mode)
{
    struct shield shield;
    void *handle = ((dlopen_function *)wrap_real("dlopen"))(name, mode);
    if (!handle)
        return NULL;
    int saved_errno = errno;
    shield_raise_sig(&shield);
    bool is_first = follow_library(handle, name);
    shield_lower_sig(&shield);
    if (is_first)
        loadmap_complete();
    errno = saved_errno;
    return handle;
}

static void *deepbind_target(void *real, bool is_dlopen, uintptr_t *arguments, uintptr_t caller)
{
    uintptr_t *mode = &arguments[is_dlopen ? 1 : 2];
    const char *name = (const char *)arguments[is_dlopen ? 0 : 1];
    const struct arena_header *header = arena_header_sig();
    bool is_apart = !is_dlopen && (Lmid_t)arguments[0] != LM_ID_BASE;
    if (!(is_apart || *mode & RTLD_DEEPBIND) || *mode & RTLD_NOLOAD || !name || !header || !process_is_ours_sig() ||
        process_is_vfork_child_sig())
        return real;
    if (is_apart) {
        (void)note(name, DEEP_APART);
        return real;
    }
    if (header->deepbind == DEEP_DROPPED) {
        *mode &= ~(uintptr_t)RTLD_DEEPBIND;
        (void)note(name, DEEP_DROPPED);
        return real;
    }
    if (is_dlopen && header->deepbind == DEEP_FOLLOWED && may_call(name, caller))
        return (void *)open_deep;
    (void)note(name, DEEP_UNSEEN);
    return real;
}

/* --- dlopen, dlclose and chroot --- */

/* The functions that the dlopen stubs jump to: they find the real function once and make the load map's cached answers
 * stale. And chroot, after which loaded files have other names, or none. Ordinary code of the program's threads. */

#define OPENS 0  /* index of dlopen ... */
#define CLOSES 2 /* ... and of dlclose */

typedef int chroot_function(const char *);

/* Only when the next library is loaded is it certain what dlclose has unloaded; the new library's code may lie at the
 * same addresses. */
static void find_unloaded(void)
{
    struct thread_state *self = thread_self_sig();
    if (self && process_is_ours_sig() && !process_is_vfork_child_sig())
        small_modules_gone_hook(self);
}

void *wrap_dl_target(int index, uintptr_t *arguments, uintptr_t caller)
{
    static const char *const names[] = {"dlopen", "dlmopen", "dlclose"};
    static void *real[3];
    static _Atomic bool has_closed;
    void *target = __atomic_load_n(&real[index], __ATOMIC_RELAXED);
    if (!target) {
        target = wrap_real(names[index]);
        __atomic_store_n(&real[index], target, __ATOMIC_RELAXED);
    }
    loadmap_changed_sig();
    if (index == CLOSES)
        atomic_store(&has_closed, true);
    else if (atomic_load_explicit(&has_closed, memory_order_relaxed) && atomic_exchange(&has_closed, false))
        find_unloaded();
    return index == CLOSES ? target : deepbind_target(target, index == OPENS, arguments, caller);
}

WRAP_EXPORT int chroot(const char *path);
WRAP_EXPORT int chroot(const char *path)
{
    chroot_function *real = (chroot_function *)wrap_real("chroot");
    int saved_errno = errno;
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (process_is_ours_sig())
        loadmap_complete();
    errno = saved_errno;
    return real(path);
}
