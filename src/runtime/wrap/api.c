/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for the program to call: starting and stopping the sampling, marking live blocks, and naming regions.
 * Ordinary code of the program's threads. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/events/events.h"
#include "runtime/hpctoolkit.h"
#include "runtime/locus.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/sample.h"
#include "runtime/wrap/wrap.h"

/* --- starting and stopping (the API of the original) --- */

WRAP_EXPORT void hpctoolkit_sampling_start(void)
{
    if (!process_is_ours_sig())
        return;
    int saved_errno = errno;
    control_start_sig();
    if (thread_self_sig() && sample_is_active_sig())
        events_replay(thread_self_sig());
    errno = saved_errno;
}

WRAP_EXPORT void hpctoolkit_sampling_stop(void)
{
    int saved_errno = errno;
    if (process_is_ours_sig())
        thread_switch_sig(false);
    errno = saved_errno;
}

WRAP_EXPORT int hpctoolkit_sampling_is_active(void)
{
    return process_is_ours_sig() && sample_is_active_sig();
}

/* --- marking what is live --- */

/* Marking live blocks: see locus.h. Uses only plain loads and stores and a clock, so that the program may do it
 * anywhere. */

WRAP_EXPORT void locus_mark_live_event(void)
{
    if (!process_is_ours_sig())
        return;
    arena_mark_live(arena_header_sig(), own_clock_ns_sig(CLOCK_REALTIME));
}

/* --- regions --- */

/* Entering and leaving regions: see sample-path.h. The program's own code calls this often and on any thread: names are
 * found without a lock, and only the arena's copy of each new name is allocated. */

#define NAMES_MAX 4096 /* power of two */
#define NAME_BYTES_MAX 255
#define LOCK_TRIES 1000 /* this may run in a signal handler that interrupted the holder */

/* A region's name by its hash; 0: free. The reference is stored before the hash. */
struct region_name {
    _Atomic uint64_t hash;
    uint32_t ref;
};

static struct {
    struct region_name names[NAMES_MAX];
} known;

static uint64_t hash_of(const char *name)
{
    uint64_t hash = bytes_hash(BYTES_HASH_START, name, strnlen(name, NAME_BYTES_MAX));
    return hash ? hash : 1;
}

/* The name's entry, or the free entry where it belongs; NULL when the table is full. */
static struct region_name *find(uint64_t hash)
{
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        struct region_name *name = &known.names[(hash + i) & (NAMES_MAX - 1)];
        uint64_t found = atomic_load_explicit(&name->hash, memory_order_acquire);
        if (found == hash || !found)
            return name;
    }
    return NULL;
}

static bool lock(void)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (arena_shared_begin_sig())
            return true;
        own_call_sig(SYS_sched_yield);
    }
    return false;
}

/* Adds a name. The caller holds the lock. */
static uint32_t add(const char *text, uint64_t hash)
{
    char copy[NAME_BYTES_MAX + 1];
    struct region_name *name = find(hash);
    if (!name)
        return 0;
    if (atomic_load_explicit(&name->hash, memory_order_relaxed))
        return name->ref;
    size_t len = strnlen(text, NAME_BYTES_MAX);
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!regions_module_sig())
        regions_set_module_sig(loadmap_pseudo_sig(REGION_MODULE, 0));
    name->ref = regions_module_sig() ? arena_shared_string_sig(copy) : 0;
    if (name->ref)
        atomic_store_explicit(&name->hash, hash, memory_order_release);
    return name->ref;
}

/* Reference of the arena's copy of a region's name, the same for equal names; 0 when there is no room, or no arena.
 * ctx: ordinary code or a signal handler of the program */
static uint32_t regions_name(const char *text)
{
    if (!text || !text[0] || !process_is_ours_sig())
        return 0;
    uint64_t hash = hash_of(text);
    const struct region_name *name = find(hash);
    if (name && atomic_load_explicit(&name->hash, memory_order_acquire) == hash)
        return name->ref;
    if (!name || !lock())
        return 0;
    uint32_t ref = add(text, hash);
    arena_shared_end_sig();
    return ref;
}

/* Drains the rings first, because the samples in them are from before the change. */
static struct thread_state *change_begin(void)
{
    struct thread_state *self = process_is_ours_sig() ? thread_self_sig() : NULL;
    if (self)
        events_drain_all_sig(self);
    return self;
}

static void change_end(struct thread_state *self)
{
    atomic_signal_fence(memory_order_seq_cst);
    self->regions.version++;
    atomic_signal_fence(memory_order_seq_cst);
}

static void regions_enter(uint32_t name)
{
    struct thread_state *self = change_begin();
    if (!self)
        return;
    struct thread_regions *mine = &self->regions;
    if (!name)
        regions_count_sig(REGION_NAMELESS, 1);
    if (mine->n_beyond || mine->n == THREAD_REGIONS_MAX) {
        mine->n_beyond++;
        regions_count_sig(REGION_TOO_DEEP, 1);
        return;
    }
    mine->names[mine->n] = name;
    atomic_signal_fence(memory_order_seq_cst);
    mine->n++;
    change_end(self);
}

/* The calling thread enters the region with that reference, or leaves the one that it entered last. Excess or unmatched
 * calls are counted and do no harm.  ctx: as regions_name */
static void regions_leave(void)
{
    struct thread_state *self = change_begin();
    if (!self)
        return;
    struct thread_regions *mine = &self->regions;
    if (mine->n_beyond) {
        mine->n_beyond--;
    } else if (!mine->n) {
        regions_count_sig(REGION_NOT_ENTERED, 1);
    } else {
        mine->n--;
        change_end(self);
    }
}

/* Called by the inline functions of locus.h. */
WRAP_EXPORT void locus_region_begin_event(const char *name)
{
    regions_enter(regions_name(name));
}

WRAP_EXPORT void locus_region_end_event(void)
{
    regions_leave();
}

/* --- ITT tasks as regions --- */

/* ITT tasks as regions: the functions that ITT's static library looks up in the library that INTEL_LIBITTNOTIFY64
 * names. The layouts are those of the public header ittnotify.h. */

#define STRINGS_MAX 4096

struct itt_domain {
    volatile int is_enabled;
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct itt_domain *next;
};

struct itt_string {
    const char *text;
    void *wide_text;
    int extra1; /* for the collector's use: the reference of the name, 0 not looked up yet */
    void *extra2;
    struct itt_string *next;
};

/* Passed by value. */
struct itt_id {
    uint64_t words[3];
};

static struct {
    _Atomic uint32_t n_strings;
    struct itt_string *_Atomic strings; /* [STRINGS_MAX] */
} itt;

/* oneTBB's own domains, "tbb" and "tbb.algorithm": their tasks are its algorithms, and no part of the program's work.
 */
#define ITT_SILENT "tbb"

static bool is_silent(const char *domain_name)
{
    const size_t n = sizeof ITT_SILENT - 1;
    return domain_name && strncmp(domain_name, ITT_SILENT, n) == 0 && (!domain_name[n] || domain_name[n] == '.');
}

WRAP_EXPORT struct itt_domain *__itt_domain_create(const char *name);
WRAP_EXPORT struct itt_domain *__itt_domain_create(const char *name)
{
    static struct itt_domain all = {.is_enabled = 1, .name = ""}; /* they share one stack of tasks per thread */
    static struct itt_domain silent = {.is_enabled = 0, .name = ITT_SILENT};
    return is_silent(name) ? &silent : &all;
}

static struct itt_string *strings_map(void)
{
    struct itt_string *strings = itt.strings, *none = NULL;
    size_t n_bytes = STRINGS_MAX * sizeof *strings;
    if (strings)
        return strings;
    strings = (struct itt_string *)own_mmap_sig(NULL, n_bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if ((uintptr_t)strings >= (uintptr_t)-4095)
        return NULL;
    if (atomic_compare_exchange_strong(&itt.strings, &none, strings))
        return strings;
    own_call_sig(SYS_munmap, strings, n_bytes);
    return none;
}

/* Two threads may get different handles for one name; both mean the same. */
static struct itt_string *string_of(uint32_t name)
{
    struct itt_string *strings = strings_map();
    uint32_t n = atomic_load(&itt.n_strings);
    for (uint32_t i = 0; strings && i < n && i < STRINGS_MAX; i++)
        if ((uint32_t)strings[i].extra1 == name)
            return &strings[i];
    uint32_t at = strings && n < STRINGS_MAX ? atomic_fetch_add(&itt.n_strings, 1) : STRINGS_MAX;
    if (at >= STRINGS_MAX)
        return NULL;
    const struct arena_string *copy = arena_record_sig(name);
    strings[at].text = copy->text;
    strings[at].extra1 = (int)name;
    return &strings[at];
}

WRAP_EXPORT struct itt_string *__itt_string_handle_create(const char *text);
WRAP_EXPORT struct itt_string *__itt_string_handle_create(const char *text)
{
    static struct itt_string nameless = {.text = ""};
    uint32_t name = regions_name(text);
    struct itt_string *string = name ? string_of(name) : NULL;
    return string ? string : &nameless;
}

WRAP_EXPORT void __itt_task_begin(const struct itt_domain *domain, struct itt_id task, struct itt_id parent,
                                  struct itt_string *name);
WRAP_EXPORT void __itt_task_begin(const struct itt_domain *domain, struct itt_id task, struct itt_id parent,
                                  struct itt_string *name)
{
    (void)task;
    (void)parent;
    if (domain && is_silent(domain->name)) /* some versions of the static library make domains themselves, */
        return;                            /* and oneTBB enables them whatever we say */
    /* Some versions of the static library make handles themselves. */
    if (name && !name->extra1)
        name->extra1 = (int)regions_name(name->text);
    regions_enter(name ? (uint32_t)name->extra1 : 0);
}

WRAP_EXPORT void __itt_task_end(const struct itt_domain *domain);
WRAP_EXPORT void __itt_task_end(const struct itt_domain *domain)
{
    if (!domain || !is_silent(domain->name))
        regions_leave();
}

/* --- NVTX ranges as regions --- */

/* NVTX ranges as regions. A program that uses NVTX contains the code of its header. At its first call that code loads
 * the library that NVTX_INJECTION64_PATH names and passes it tables of pointers; from then on it calls the functions
 * that the library has put there.
 * src: nvtxTypes.h and nvToolsExt.h of NVTX 3 (table and callback numbers, layout of event attributes). */

enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { CORE_PUSH_EX = 8, CORE_PUSH = 9, CORE_POP = 11 };
enum { CORE2_PUSH_EX = 4, CORE2_POP = 5, CORE2_REGISTER_STRING = 10 };
enum { MESSAGE_TEXT = 1, MESSAGE_REGISTERED = 3 };

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t n_bytes;
    int (*find_table)(uint32_t module, nvtx_function ***table, unsigned *n_entries);
};

struct nvtx_attributes {
    uint16_t version, n_bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* text, or a handle from register_string */
};

/* The level of the range, which NVTX expects as the result; the outermost is 0. */
static int level(void)
{
    return (int)regions_depth_sig() - 1;
}

static int push(const char *text)
{
    regions_enter(regions_name(text));
    return level();
}

static int push_attributes(const struct nvtx_attributes *attributes)
{
    if (attributes && attributes->message_type == MESSAGE_REGISTERED)
        regions_enter((uint32_t)(uintptr_t)attributes->message);
    else
        regions_enter(attributes && attributes->message_type == MESSAGE_TEXT ? regions_name(attributes->message) : 0);
    return level();
}

static int pop(void)
{
    int left = level();
    regions_leave();
    return left;
}

static int push_in_domain(const void *domain, const struct nvtx_attributes *attributes)
{
    (void)domain; /* all domains share one stack of ranges per thread */
    return push_attributes(attributes);
}

static int pop_in_domain(const void *domain)
{
    (void)domain;
    return pop();
}

static const void *register_string(const void *domain, const char *text)
{
    (void)domain;
    return (const void *)(uintptr_t)regions_name(text);
}

static void take(const struct nvtx_callbacks *callbacks, uint32_t module, unsigned index, nvtx_function *function)
{
    nvtx_function ***table = NULL; /* [n_entries] addresses of the pointers to fill */
    unsigned n_entries = 0;
    if (callbacks->find_table(module, (nvtx_function ***)(void *)&table, &n_entries) && table && index < n_entries &&
        table[index])
        *table[index] = function;
}

WRAP_EXPORT int InitializeInjectionNvtx2(const void *(*find_export)(uint32_t id));
WRAP_EXPORT int InitializeInjectionNvtx2(const void *(*find_export)(uint32_t id))
{
    const struct nvtx_callbacks *callbacks = find_export ? find_export(TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->n_bytes < sizeof *callbacks || !callbacks->find_table)
        return 0;
    take(callbacks, MODULE_CORE, CORE_PUSH_EX, (nvtx_function *)push_attributes);
    take(callbacks, MODULE_CORE, CORE_PUSH, (nvtx_function *)push);
    take(callbacks, MODULE_CORE, CORE_POP, (nvtx_function *)pop);
    take(callbacks, MODULE_CORE2, CORE2_PUSH_EX, (nvtx_function *)push_in_domain);
    take(callbacks, MODULE_CORE2, CORE2_POP, (nvtx_function *)pop_in_domain);
    take(callbacks, MODULE_CORE2, CORE2_REGISTER_STRING, (nvtx_function *)register_string);
    return 1;
}
