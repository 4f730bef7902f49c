/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libc that the preloaded library calls, under their own names, hidden: see own-call.h. In a static
 * program libc's are called. Runs in any context: takes no lock, allocates nothing. */
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"

/* --- memory and text --- */

/* Keeps the compiler from making a call to the same function of a loop. */
#define KEEP_LOOP() __asm__ volatile("")

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

static void copy_up(char *to, const char *from, size_t n)
{
    for (; n >= sizeof(word); n -= sizeof(word), to += sizeof(word), from += sizeof(word)) {
        *(word *)(void *)to = *(const word *)(const void *)from;
        KEEP_LOOP();
    }
    for (; n; n--) {
        *to++ = *from++;
        KEEP_LOOP();
    }
}

static void copy_down(char *to, const char *from, size_t n)
{
    for (; n >= sizeof(word); n -= sizeof(word)) {
        *(word *)(void *)(to + n - sizeof(word)) = *(const word *)(const void *)(from + n - sizeof(word));
        KEEP_LOOP();
    }
    while (n--) {
        to[n] = from[n];
        KEEP_LOOP();
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    copy_up(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    if ((uintptr_t)to - (uintptr_t)from < n)
        copy_down(to, from, n);
    else
        copy_up(to, from, n);
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    char *at = to;
    uint64_t bytes = UINT64_C(0x0101010101010101) * (unsigned char)byte;
    for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
        *(word *)(void *)at = bytes;
        KEEP_LOOP();
    }
    for (; n; n--) {
        *at++ = (char)byte;
        KEEP_LOOP();
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *left = a, *right = b;
    for (size_t i = 0; i < n; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* Clang calls it where nothing but equality is asked for. */
int bcmp(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n);
}

void *memmem(const void *text, size_t n_text, const void *wanted, size_t n_wanted)
{
    const char *at = text;
    for (size_t i = 0; n_wanted <= n_text && i <= n_text - n_wanted; i++)
        if (memcmp(at + i, wanted, n_wanted) == 0)
            return (void *)(uintptr_t)(at + i);
    return NULL;
}

size_t strnlen(const char *text, size_t n)
{
    size_t len = 0;
    while (len < n && text[len]) {
        len++;
        KEEP_LOOP();
    }
    return len;
}

size_t strlen(const char *text)
{
    return strnlen(text, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] || !a[i])
            return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
    size_t len = strnlen(from, n);
    copy_up(to, from, len);
    memset(to + len, 0, n - len);
    return to;
}

char *strrchr(const char *text, int byte)
{
    for (size_t len = strlen(text) + 1; len > 0; len--)
        if (text[len - 1] == (char)byte)
            return (char *)(uintptr_t)(text + len - 1);
    return NULL;
}

char *strstr(const char *text, const char *wanted)
{
    return memmem(text, strlen(text), wanted, strlen(wanted));
}

size_t strcspn(const char *text, const char *stops)
{
    size_t len = 0;
    while (text[len]) {
        for (const char *stop = stops; *stop; stop++)
            if (text[len] == *stop)
                return len;
        len++;
    }
    return len;
}

/* --- libc's own definitions --- */

/* The functions whose definition in libc is called. A name that a libc does not have is no loss: what is asked then
 * fails. */
#define FUNCTION_ROWS(ROW)                                                                                             \
    ROW(__cxa_at_quick_exit)                                                                                           \
    ROW(__cxa_atexit)                                                                                                  \
    ROW(__errno_location)                                                                                              \
    ROW(__pthread_register_cancel)                                                                                     \
    ROW(__pthread_unregister_cancel)                                                                                   \
    ROW(__register_atfork)                                                                                             \
    ROW(__waitpid)                                                                                                     \
    ROW(alarm)                                                                                                         \
    ROW(dl_iterate_phdr)                                                                                               \
    ROW(dladdr)                                                                                                        \
    ROW(dladdr1)                                                                                                       \
    ROW(dlerror)                                                                                                       \
    ROW(dlsym)                                                                                                         \
    ROW(getauxval)                                                                                                     \
    ROW(gnu_get_libc_version)                                                                                          \
    ROW(posix_spawnattr_destroy)                                                                                       \
    ROW(posix_spawnattr_init)                                                                                          \
    ROW(posix_spawnattr_setflags)                                                                                      \
    ROW(posix_spawnattr_setsigdefault)                                                                                 \
    ROW(posix_spawnattr_setsigmask)                                                                                    \
    ROW(pthread_attr_destroy)                                                                                          \
    ROW(pthread_attr_getsigmask_np)                                                                                    \
    ROW(pthread_attr_getstacksize)                                                                                     \
    ROW(pthread_getattr_default_np)                                                                                    \
    ROW(pthread_setcancelstate)                                                                                        \
    ROW(sigaddset)                                                                                                     \
    ROW(sigdelset)                                                                                                     \
    ROW(sigemptyset)                                                                                                   \
    ROW(sigfillset)                                                                                                    \
    ROW(sigismember)                                                                                                   \
    ROW(strverscmp)                                                                                                    \
    ROW(sysconf)

#define FUNCTION_INDEX(name) INDEX_##name,
#define FUNCTION_NAME(name) #name,
enum function_index { FUNCTION_ROWS(FUNCTION_INDEX) FUNCTIONS };

#define UNKNOWN_OFFSET INTPTR_MIN

typedef long getcpu_function(unsigned *cpu, unsigned *node, void *unused);

static struct {
    void *_Atomic functions[FUNCTIONS];
    _Atomic(__typeof__(clock_gettime) *) clock; /* of the vdso; NULL: there is none */
    _Atomic(getcpu_function *) cpu;             /* likewise */
    _Atomic intptr_t errno_offset;              /* from the thread pointer: libc's TLS is static */
    _Atomic bool is_complete;
} libc = {.errno_offset = UNKNOWN_OFFSET};

/* The dynamic section of an object. */
struct object {
    uintptr_t bias;
    const ElfW(Sym) * symbols;
    const char *strings, *name;
    const uint32_t *gnu, *sysv;  /* hash tables; NULL: none */
    const ElfW(Half) * versions; /* NULL: none */
};

/* The loader has added the bias in some of these entries, and not in others. */
static const void *pointer_of(uintptr_t bias, const ElfW(Dyn) * entry)
{
    uintptr_t address = entry->d_un.d_ptr;
    return (const void *)(address < bias ? address + bias : address);
}

static struct object object_read(uintptr_t bias, const ElfW(Dyn) * entry)
{
    struct object object = {.bias = bias};
    uintptr_t name = 0;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            object.symbols = pointer_of(bias, entry);
        else if (entry->d_tag == DT_STRTAB)
            object.strings = pointer_of(bias, entry);
        else if (entry->d_tag == DT_GNU_HASH)
            object.gnu = pointer_of(bias, entry);
        else if (entry->d_tag == DT_HASH)
            object.sysv = pointer_of(bias, entry);
        else if (entry->d_tag == DT_VERSYM)
            object.versions = pointer_of(bias, entry);
        else if (entry->d_tag == DT_SONAME)
            name = entry->d_un.d_val;
    }
    object.name = object.strings ? object.strings + name : "";
    return object;
}

/* Of what symbols. */
enum wanted {
    A_FUNCTION, /* that can be called as it is, in the version that a new program gets */
    ANYTHING,   /* of any kind and version */
};

/* The address of symbol i, where it is defined, has the name and is of the wanted kind. */
static void *take_symbol(const struct object *object, uint32_t i, const char *name, enum wanted wanted)
{
    const ElfW(Sym) *symbol = &object->symbols[i];
    bool is_old = object->versions && object->versions[i] & 0x8000;
    unsigned type = symbol->st_info & 0xf;
    bool is_function = !is_old && (type == STT_FUNC || type == STT_NOTYPE);
    if (symbol->st_shndx == SHN_UNDEF || (wanted == A_FUNCTION && !is_function) ||
        strcmp(object->strings + symbol->st_name, name) != 0)
        return NULL;
    return (void *)(object->bias + symbol->st_value);
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static void *find_gnu(const struct object *object, const char *name, enum wanted wanted)
{
    const uint32_t *table = object->gnu;
    uint32_t n_buckets = table[0], first = table[1], n_bloom = table[2], hash = gnu_hash(name);
    const uint32_t *buckets = table + 4 + n_bloom * (sizeof(ElfW(Addr)) / sizeof *table), *chain = buckets + n_buckets;
    uint32_t i = n_buckets ? buckets[hash % n_buckets] : 0;
    for (; i >= first && i; i++) {
        void *found = (chain[i - first] | 1) == (hash | 1) ? take_symbol(object, i, name, wanted) : NULL;
        if (found || chain[i - first] & 1)
            return found;
    }
    return NULL;
}

/* Its table tells the number of symbols. On IBM Z it has wider entries, and there is the other one as well. */
static void *find_sysv(const struct object *object, const char *name, enum wanted wanted)
{
    uint32_t n_symbols = object->sysv[0] ? object->sysv[1] : 0;
    void *found = NULL;
    for (uint32_t i = 1; i < n_symbols && !found; i++)
        found = take_symbol(object, i, name, wanted);
    return found;
}

static void *object_find(const struct object *object, const char *name, enum wanted wanted)
{
    if (!object->symbols || !object->strings)
        return NULL;
    return object->gnu ? find_gnu(object, name, wanted) : object->sysv ? find_sysv(object, name, wanted) : NULL;
}

/* libc, its loader, and what were libraries of their own before glibc 2.34. */
static bool is_of_libc(const char *name)
{
    return !strcmp(name, "libc.so.6") || !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld64.so", 7) ||
           !strcmp(name, "libpthread.so.0") || !strcmp(name, "libdl.so.2");
}

void *own_libc_function(const char *name)
{
    void *found = NULL;
    for (const struct link_map *map = _r_debug.r_map; map && !found; map = map->l_next) {
        struct object object = object_read(map->l_addr, map->l_ld);
        if (is_of_libc(object.name))
            found = object_find(&object, name, A_FUNCTION);
    }
    return found;
}

static void *vdso_function(uintptr_t vdso, const char *name)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)vdso;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(vdso + header->e_phoff);
    uintptr_t bias = vdso, dynamic = 0;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD)
            bias = vdso + segments[i].p_offset - segments[i].p_vaddr;
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic = segments[i].p_offset;
    }
    struct object object = object_read(bias, dynamic ? (const ElfW(Dyn) *)(vdso + dynamic) : NULL);
    return object_find(&object, name, A_FUNCTION);
}

/* Its functions have one of two names, by architecture. */
static void *vdso_either(uintptr_t vdso, const char *name, const char *other)
{
    void *found = vdso ? vdso_function(vdso, name) : NULL;
    return vdso && !found ? vdso_function(vdso, other) : found;
}

/* Finds everything at once: later, another thread may be changing the loader's list. Two threads may do it at the same
 * time, with the same result. */
static void find_all(void)
{
    static const char *const names[FUNCTIONS] = {FUNCTION_ROWS(FUNCTION_NAME)};
    for (int i = 0; i < FUNCTIONS; i++)
        atomic_store_explicit(&libc.functions[i], own_libc_function(names[i]), memory_order_relaxed);
    __typeof__(__errno_location) *location = (__typeof__(__errno_location) *)libc.functions[INDEX___errno_location];
    if (location)
        atomic_store(&libc.errno_offset, (intptr_t)((uintptr_t)location() - arch_thread_pointer_sig()));
    __typeof__(getauxval) *get = (__typeof__(getauxval) *)libc.functions[INDEX_getauxval];
    uintptr_t vdso = get ? get(AT_SYSINFO_EHDR) : 0;
    atomic_store(&libc.clock,
                 (__typeof__(clock_gettime) *)vdso_either(vdso, "__vdso_clock_gettime", "__kernel_clock_gettime"));
    atomic_store(&libc.cpu, (getcpu_function *)vdso_either(vdso, "__vdso_getcpu", "__kernel_getcpu"));
    atomic_store_explicit(&libc.is_complete, true, memory_order_release);
}

static inline void *function_of(enum function_index index)
{
    if (!atomic_load_explicit(&libc.is_complete, memory_order_acquire))
        find_all();
    return atomic_load_explicit(&libc.functions[index], memory_order_relaxed);
}

/* --- the functions --- */

#define FUNCTION(name) ((__typeof__(name) *)function_of(INDEX_##name))

extern int __cxa_atexit(void (*function)(void *), void *argument, void *module);
extern int __cxa_at_quick_exit(void (*function)(void *), void *module);
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *module);
extern void __pthread_register_cancel(__pthread_unwind_buf_t *buffer);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer);
extern pid_t __waitpid(pid_t pid, int *status, int options);
extern int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *set);

int *__errno_location(void)
{
    static _Thread_local int own __attribute__((tls_model("initial-exec"))); /* where libc's is not known */
    intptr_t offset = atomic_load_explicit(&libc.errno_offset, memory_order_relaxed);
    if (offset == UNKNOWN_OFFSET) {
        if (!FUNCTION(__errno_location))
            return &own;
        offset = atomic_load(&libc.errno_offset);
    }
    return (int *)(arch_thread_pointer_sig() + (uintptr_t)offset);
}

int __cxa_atexit(void (*function)(void *), void *argument, void *module)
{
    return FUNCTION(__cxa_atexit) ? FUNCTION(__cxa_atexit)(function, argument, module) : -1;
}

int __cxa_at_quick_exit(void (*function)(void *), void *module)
{
    return FUNCTION(__cxa_at_quick_exit) ? FUNCTION(__cxa_at_quick_exit)(function, module) : -1;
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *module)
{
    return FUNCTION(__register_atfork) ? FUNCTION(__register_atfork)(prepare, parent, child, module) : -1;
}

void __pthread_register_cancel(__pthread_unwind_buf_t *buffer)
{
    if (FUNCTION(__pthread_register_cancel))
        FUNCTION(__pthread_register_cancel)(buffer);
}

void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer)
{
    if (FUNCTION(__pthread_unregister_cancel))
        FUNCTION(__pthread_unregister_cancel)(buffer);
}

pid_t __waitpid(pid_t pid, int *status, int options)
{
    return FUNCTION(__waitpid) ? FUNCTION(__waitpid)(pid, status, options) : -1;
}

unsigned alarm(unsigned seconds)
{
    return FUNCTION(alarm) ? FUNCTION(alarm)(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    __typeof__(clock_gettime) *read = function_of(INDEX_getauxval) ? atomic_load(&libc.clock) : NULL;
    if (read && read(clock, now) == 0)
        return 0;
    return (int)own_call_sig(SYS_clock_gettime, clock, now);
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    return FUNCTION(dl_iterate_phdr) ? FUNCTION(dl_iterate_phdr)(callback, argument) : 0;
}

int dladdr(const void *address, Dl_info *info)
{
    return FUNCTION(dladdr) ? FUNCTION(dladdr)(address, info) : 0;
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
    return FUNCTION(dladdr1) ? FUNCTION(dladdr1)(address, info, extra, flags) : 0;
}

char *dlerror(void)
{
    return FUNCTION(dlerror) ? FUNCTION(dlerror)() : NULL;
}

struct wanted_name {
    const char *name;
    bool is_elsewhere; /* in another object than ours */
};

/* dl_iterate_phdr callback: true (stop) at an object that defines the name. */
static int defines(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct wanted_name *wanted = context;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Dyn) *dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC || (wanted->is_elsewhere && dynamic == _DYNAMIC))
            continue;
        struct object object = object_read(info->dlpi_addr, dynamic);
        if (object_find(&object, wanted->name, ANYTHING))
            return 1;
    }
    return 0;
}

/* RTLD_NEXT is after the caller's library: this one. Where nothing has the name the loader would make words of that,
 * with the malloc of a program whose constructors have not run. */
void *dlsym(void *restrict handle, const char *restrict name)
{
    struct wanted_name wanted = {name, handle == RTLD_NEXT};
    if ((handle == RTLD_NEXT || handle == RTLD_DEFAULT) && !dl_iterate_phdr(defines, &wanted))
        return NULL;
    return FUNCTION(dlsym) ? FUNCTION(dlsym)(handle, name) : NULL;
}

unsigned long getauxval(unsigned long type)
{
    return FUNCTION(getauxval) ? FUNCTION(getauxval)(type) : 0;
}

const char *gnu_get_libc_version(void)
{
    return FUNCTION(gnu_get_libc_version) ? FUNCTION(gnu_get_libc_version)() : "";
}

int getpagesize(void)
{
    return (int)getauxval(AT_PAGESZ);
}

pid_t getppid(void)
{
    return (pid_t)own_call_sig(SYS_getppid);
}

uid_t getuid(void)
{
    return (uid_t)own_call_sig(SYS_getuid);
}

int posix_spawnattr_destroy(posix_spawnattr_t *attributes)
{
    return FUNCTION(posix_spawnattr_destroy) ? FUNCTION(posix_spawnattr_destroy)(attributes) : ENOSYS;
}

int posix_spawnattr_init(posix_spawnattr_t *attributes)
{
    return FUNCTION(posix_spawnattr_init) ? FUNCTION(posix_spawnattr_init)(attributes) : ENOSYS;
}

int posix_spawnattr_setflags(posix_spawnattr_t *attributes, short flags)
{
    return FUNCTION(posix_spawnattr_setflags) ? FUNCTION(posix_spawnattr_setflags)(attributes, flags) : ENOSYS;
}

int posix_spawnattr_setsigdefault(posix_spawnattr_t *restrict attributes, const sigset_t *restrict set)
{
    return FUNCTION(posix_spawnattr_setsigdefault) ? FUNCTION(posix_spawnattr_setsigdefault)(attributes, set) : ENOSYS;
}

int posix_spawnattr_setsigmask(posix_spawnattr_t *restrict attributes, const sigset_t *restrict set)
{
    return FUNCTION(posix_spawnattr_setsigmask) ? FUNCTION(posix_spawnattr_setsigmask)(attributes, set) : ENOSYS;
}

int pthread_attr_destroy(pthread_attr_t *attr)
{
    return FUNCTION(pthread_attr_destroy) ? FUNCTION(pthread_attr_destroy)(attr) : ENOSYS;
}

int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *set)
{
    return FUNCTION(pthread_attr_getsigmask_np) ? FUNCTION(pthread_attr_getsigmask_np)(attr, set) : ENOSYS;
}

int pthread_attr_getstacksize(const pthread_attr_t *restrict attr, size_t *restrict n_bytes)
{
    return FUNCTION(pthread_attr_getstacksize) ? FUNCTION(pthread_attr_getstacksize)(attr, n_bytes) : ENOSYS;
}

int pthread_getattr_default_np(pthread_attr_t *attr)
{
    return FUNCTION(pthread_getattr_default_np) ? FUNCTION(pthread_getattr_default_np)(attr) : ENOSYS;
}

int pthread_setcancelstate(int state, int *old)
{
    return FUNCTION(pthread_setcancelstate) ? FUNCTION(pthread_setcancelstate)(state, old) : ENOSYS;
}

ssize_t readlink(const char *restrict path, char *restrict text, size_t n)
{
    return own_call_sig(SYS_readlinkat, AT_FDCWD, path, text, n);
}

/* The restartable sequence that glibc registers for each thread (2.35) holds the processor's number. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

#define RSEQ_CPU 4 /* offset of cpu_id, bytes; src: linux/rseq.h */

int sched_getcpu(void)
{
    unsigned cpu = UINT_MAX;
    if (&__rseq_size && __rseq_size)
        cpu = *(const volatile unsigned *)(arch_thread_pointer_sig() + (uintptr_t)__rseq_offset + RSEQ_CPU);
    if (cpu <= INT_MAX) /* not yet registered otherwise */
        return (int)cpu;
    getcpu_function *ask = function_of(INDEX_getauxval) ? atomic_load(&libc.cpu) : NULL;
    if (ask ? ask(&cpu, NULL, NULL) != 0 : own_call_sig(SYS_getcpu, &cpu, NULL, NULL) != 0)
        return -1;
    return (int)cpu;
}

int shmctl(int id, int command, struct shmid_ds *segment)
{
    return (int)own_call_sig(SYS_shmctl, id, command, segment);
}

int sigaddset(sigset_t *set, int number)
{
    return FUNCTION(sigaddset) ? FUNCTION(sigaddset)(set, number) : -1;
}

int sigdelset(sigset_t *set, int number)
{
    return FUNCTION(sigdelset) ? FUNCTION(sigdelset)(set, number) : -1;
}

int sigemptyset(sigset_t *set)
{
    return FUNCTION(sigemptyset) ? FUNCTION(sigemptyset)(set) : -1;
}

int sigfillset(sigset_t *set)
{
    return FUNCTION(sigfillset) ? FUNCTION(sigfillset)(set) : -1;
}

int sigismember(const sigset_t *set, int number)
{
    return FUNCTION(sigismember) ? FUNCTION(sigismember)(set, number) : -1;
}

int strverscmp(const char *a, const char *b)
{
    return FUNCTION(strverscmp) ? FUNCTION(strverscmp)(a, b) : strcmp(a, b);
}

long sysconf(int name)
{
    return FUNCTION(sysconf) ? FUNCTION(sysconf)(name) : -1;
}
