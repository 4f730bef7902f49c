/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime libraries that wait in loops, and the calls in which they do: see waits.h. If a library has no names for
 * its inner functions, the exported one above them shows what they wait for. */
#include "analysis/build/waits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/placeholders.h"
#include "analysis/metrics.h"
#include "base/path.h"
#include "base/vec.h"

#define PROFILER_LIBRARY "libhpcrun.so"

enum { MODULE_PROGRAM = 0, MODULE_SYSTEM, MODULE_PROFILER, MODULE_ALLOCATOR, MODULE_RUNTIMES };
enum { FUNCTION_INNER = 0, FUNCTION_YIELD, FUNCTION_WORKS, FUNCTION_WAITS };

static const struct {
    const char *prefix, *name;
} libraries[] = {
    {"libgomp.so", "libgomp"}, {"libomp.so", "libomp"},   {"libomp5.so", "libomp"},    {"libiomp5.so", "libomp"},
    {"libmpich", "MPICH"},     {"libmpi.so.12", "MPICH"}, {"libmpi", "Open MPI"},      {"libopen-", "Open MPI"},
    {"libmca_", "Open MPI"},   {"mca_", "Open MPI"},      {"libpmix", "PMIx"},         {"libucp.", "UCX"},
    {"libuct", "UCX"},         {"libucs", "UCX"},         {"libfabric.", "libfabric"}, {"libpsm2.", "PSM2"},
};
#define N_LIBRARIES (sizeof libraries / sizeof libraries[0])

/* By the beginning of the function's name; the first match counts. NULL: a loop in it is work, not waiting. */
static const struct {
    const char *prefix, *what;
} calls[] = {
    {"GOMP_barrier", "barrier"},
    {"GOMP_parallel", "end of parallel"},
    {"GOMP_loop_end_nowait", NULL},
    {"GOMP_loop_end", "end of loop"},
    {"GOMP_sections_end_nowait", NULL},
    {"GOMP_sections_end", "end of sections"},
    {"GOMP_taskwait", "taskwait"},
    {"GOMP_taskgroup_end", "taskgroup"},
    {"GOMP_taskyield", "taskyield"},
    {"GOMP_critical", "critical section"},
    {"GOMP_atomic_start", "atomic section"},
    {"GOMP_ordered", "ordered section"},
    {"GOMP_doacross_wait", "ordered section"},
    {"GOMP_single_copy_start", "single section"},
    {"omp_set_lock", "lock"},
    {"omp_set_nest_lock", "lock"},
    {"__kmpc_barrier", "barrier"},
    {"__kmpc_cancel_barrier", "barrier"},
    {"__kmpc_fork_call", "end of parallel"},
    {"__kmpc_fork_teams", "end of parallel"},
    {"__kmpc_reduce", "reduction"},
    {"__kmpc_end_reduce", "reduction"},
    {"__kmpc_omp_taskwait", "taskwait"},
    {"__kmpc_omp_wait_deps", "taskwait"},
    {"__kmpc_end_taskgroup", "taskgroup"},
    {"__kmpc_omp_taskyield", "taskyield"},
    {"__kmpc_critical", "critical section"},
    {"__kmpc_set_lock", "lock"},
    {"__kmpc_ordered", "ordered section"},
    {"__kmpc_doacross_wait", "ordered section"},
    {"GOMP_", NULL},
    {"__kmpc_", NULL},
    {"omp_", NULL},
};
#define N_CALLS (sizeof calls / sizeof calls[0])

/* Functions of the C library that take or give back a lock, or wait for other threads in another way, by the beginning
 * of their names behind underscores; the first match counts. */
static const struct {
    const char *prefix, *what;
} locks[] = {
    {"pthread_mutex_", "mutex"},
    {"pthread_spin_", "spin lock"},
    {"pthread_rwlock_", "read-write lock"},
    {"pthread_cond_", "condition"},
    {"pthread_barrier_wait", "barrier"},
    {"sem_wait", "semaphore"},
    {"sem_post", "semaphore"},
    {"sem_timedwait", "semaphore"},
    {"sem_clockwait", "semaphore"},
    {"new_sem_", "semaphore"},
    {"pthread_join", "end of a thread"},
    {"pthread_timedjoin", "end of a thread"},
    {"pthread_clockjoin", "end of a thread"},
    {"lll_lock_wa", "lock"},
};
#define N_LOCKS (sizeof locks / sizeof locks[0])

/* Libraries that are nothing but an allocator. */
static const char *const allocators[] = {"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc",
                                         "librpmalloc", "libsnmalloc", "libhoard"};

/* MPI calls that return only when others have done something, with or without the P of the profiling interface. */
static const char *const mpi_calls[] = {
    "Allgather", "Allreduce", "Alltoall", "Barrier",   "Bcast",      "Bsend",  "Exscan",   "Finalize",
    "Gather",    "Ibarrier",  "Init",     "Intercomm", "Iprobe",     "Mprobe", "Neighbor", "Probe",
    "Recv",      "Reduce",    "Rsend",    "Scan",      "Scatter",    "Send",   "Ssend",    "Start",
    "Test",      "Wait",      "Win_",     "Comm_dup",  "Comm_split",
};

static uint8_t module_meaning(const char *path)
{
    const char *name = path_last(path);
    for (size_t i = 0; i < N_LIBRARIES; i++)
        if (text_begins(name, libraries[i].prefix))
            return (uint8_t)(MODULE_RUNTIMES + i);
    if (text_begins(name, PROFILER_LIBRARY))
        return MODULE_PROFILER;
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (text_begins(name, allocators[i]))
            return MODULE_ALLOCATOR;
    bool is_system = text_begins(name, "libc.so") || text_begins(name, "libpthread") || text_begins(name, "ld-linux") ||
                     text_begins(name, "libc-") || text_begins(name, "ld.so");
    return is_system ? MODULE_SYSTEM : MODULE_PROGRAM;
}

static bool is_mpi_wait(const char *name)
{
    name += name[0] == 'P';
    if (!text_begins(name, "MPI_"))
        return false;
    for (size_t i = 0; i < sizeof mpi_calls / sizeof mpi_calls[0]; i++)
        if (text_begins(name + 4, mpi_calls[i]))
            return true;
    return false;
}

static uint8_t function_meaning(const char *name)
{
    if (!strcmp(name, "sched_yield") || !strcmp(name, "__sched_yield"))
        return FUNCTION_YIELD;
    if (is_mpi_wait(name))
        return FUNCTION_WAITS + N_CALLS;
    for (size_t i = 0; i < N_CALLS; i++)
        if (text_begins(name, calls[i].prefix))
            return calls[i].what ? (uint8_t)(FUNCTION_WAITS + i) : FUNCTION_WORKS;
    return text_begins(name, "MPI_") || text_begins(name, "PMPI_") ? FUNCTION_WORKS : FUNCTION_INNER;
}

static uint8_t lock_meaning(const char *name)
{
    while (*name == '_')
        name++;
    for (size_t i = 0; i < N_LOCKS; i++)
        if (text_begins(name, locks[i].prefix))
            return (uint8_t)(i + 1);
    return 0;
}

static void find_contended(struct waits *waits);

int waits_new(struct waits **out, const struct model *model, bool is_time, struct error *err)
{
    size_t n = model->strings.n_strings;
    struct waits *waits = calloc(1, sizeof *waits);
    *out = waits;
    if (waits)
        *waits = (struct waits){.model = model,
                                .is_time = is_time,
                                .modules = calloc(n + 1, 1),
                                .functions = calloc(n + 1, 1),
                                .allocators = calloc(n + 1, 1),
                                .locks = calloc(n + 1, 1),
                                .takers = calloc(n + 1, sizeof *waits->takers),
                                .n_users = calloc(1, sizeof *waits->n_users)};
    if (!waits || !waits->modules || !waits->functions || !waits->allocators || !waits->locks || !waits->takers ||
        !waits->n_users) {
        waits_free(waits);
        *out = NULL;
        return error_memory(err);
    }
    *waits->n_users = 1;
    for (size_t i = 1; i < n; i++) {
        waits->modules[i] = module_meaning(model->strings.strings[i]);
        waits->functions[i] = function_meaning(model->strings.strings[i]);
        waits->allocators[i] = (uint8_t)allocator_role_of(model->strings.strings[i]);
        waits->locks[i] = lock_meaning(model->strings.strings[i]);
        waits->has_locks |= waits->locks[i] && is_time;
        waits->has_allocator |= waits->modules[i] == MODULE_ALLOCATOR || waits->allocators[i] == ALLOCATOR_ENTRY ||
                                waits->allocators[i] == ALLOCATOR_INNER;
        waits->has_profiler |=
            waits->modules[i] == MODULE_PROFILER || strcmp(model->strings.strings[i], WAITS_PROFILER) == 0;
    }
    find_contended(waits);
    return 0;
}

int waits_like(struct waits **out, const struct waits *other, struct error *err)
{
    struct waits *waits = *out = malloc(sizeof *waits);
    if (!waits)
        return error_memory(err);
    *waits = *other;
    waits->labels = (struct strtab){0};
    waits->kinds = NULL;
    waits->n_kinds = waits->cap_kinds = 0;
    ++*waits->n_users;
    return 0;
}

void waits_free(struct waits *waits)
{
    if (!waits)
        return;
    if (!waits->n_users || --*waits->n_users == 0) {
        free(waits->modules);
        free(waits->functions);
        free(waits->allocators);
        free(waits->locks);
        free(waits->takers);
        free(waits->n_users);
    }
    free(waits->kinds);
    strtab_fini(&waits->labels);
    free(waits);
}

static bool is_no_data(const struct waits *waits, const struct variable *variable)
{
    return variable->class == CLASS_UNATTRIBUTED || variable->class == CLASS_UNKNOWN ||
           variable->class == CLASS_WAITING || variable->class == CLASS_STACK || variable->class == CLASS_TLS ||
           waits->modules[variable->module] >= MODULE_RUNTIMES;
}

/* Samples on the profiler's own memory count as the profiler's wherever they were taken. */
static bool is_profiler(const struct waits *waits, const struct variable *variable)
{
    return variable->class == CLASS_UNKNOWN && strcmp(model_text(waits->model, variable->name), WAITS_PROFILER) == 0;
}

bool waits_are_possible(const struct waits *waits, const struct variable *variable)
{
    return waits->has_profiler || is_profiler(waits, variable) ||
           (waits->is_time && (waits->has_allocator || waits->is_contended || is_no_data(waits, variable)));
}

/* The function that a scope lies in, 0 at the top: variables and placeholders end the path of code. */
static uint32_t function_scope(const struct model *model, uint32_t scope)
{
    while (scope && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    return scope && model->scopes[scope].role == ROLE_NONE ? scope : 0;
}

/* Whether a statement lies in a function of the profiler, which older databases have by its name. */
static bool is_profiler_code(const struct waits *waits, uint32_t scope)
{
    const struct model *model = waits->model;
    while (scope && model->scopes[scope].kind != SCOPE_PROC)
        scope = model->scopes[scope].parent;
    return model->scopes[scope].role == ROLE_PROFILER ||
           (model->scopes[scope].role == ROLE_NONE && waits->modules[model->scopes[scope].module] == MODULE_PROFILER);
}

static uint32_t caller_scope(const struct model *model, uint32_t scope)
{
    return function_scope(model, model->scopes[scope].parent);
}

static int64_t label(struct waits *waits, const char *library, const char *what)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%.100s: %.140s", library, what);
    return strtab_intern(&waits->labels, text);
}

/* Name of the runtime library that a function is in; that of MPI if its calls are linked into the program. */
static const char *library_name(const struct waits *waits, uint32_t scope)
{
    uint8_t module = waits->modules[waits->model->scopes[scope].module];
    return module >= MODULE_RUNTIMES ? libraries[module - MODULE_RUNTIMES].name : "MPI";
}

/* Inside a runtime library: what the innermost of its exported functions waits for. A path without any of those and
 * without code of the program belongs to a thread that has nothing to do. If the program itself seems to call an inner
 * function, an exported one has made a tail call: in OpenMP those are barriers. */
static int64_t runtime_label(struct waits *waits, uint32_t at)
{
    const struct model *model = waits->model;
    const char *library = library_name(waits, at);
    bool is_openmp = !strcmp(library, "libgomp") || !strcmp(library, "libomp");
    for (; at; at = caller_scope(model, at)) {
        const struct scope *scope = &model->scopes[at];
        uint8_t function = waits->functions[scope->name];
        if (function == FUNCTION_WAITS + N_CALLS) {
            const char *name = model_text(model, scope->name);
            return label(waits, library_name(waits, at), name + (name[0] == 'P'));
        }
        if (function >= FUNCTION_WAITS)
            return label(waits, library, calls[function - FUNCTION_WAITS].what);
        if (function == FUNCTION_WORKS)
            return -1;
        if (waits->modules[scope->module] == MODULE_PROGRAM)
            return is_openmp ? label(waits, library, "barrier") : -1;
    }
    return label(waits, library, is_openmp ? "idle threads" : "progress");
}

/* --- the allocator --- */

/* The function of the allocator that the code at the function scope leaf works for, on its way outwards; 0: none. What
 * fills or copies the block itself (memset in calloc, memcpy in realloc) works on the block. */
static uint32_t allocator_entry(const struct waits *waits, uint32_t leaf)
{
    const struct scope *scopes = waits->model->scopes;
    if (!leaf || waits->allocators[scopes[leaf].name] == ALLOCATOR_BLOCK)
        return 0;
    uint8_t module = waits->modules[scopes[leaf].module];
    uint32_t found = waits->allocators[scopes[leaf].name] == ALLOCATOR_INNER ? leaf : 0;
    if (!found && module != MODULE_ALLOCATOR && module != MODULE_SYSTEM)
        return 0; /* nothing on the way out would count */
    for (uint32_t at = leaf; at && waits->modules[scopes[at].module] == module; at = caller_scope(waits->model, at)) {
        uint8_t is = waits->allocators[scopes[at].name];
        if (module == MODULE_ALLOCATOR || (is == ALLOCATOR_INNER && found))
            found = at;
        if (is == ALLOCATOR_ENTRY && (found || module == MODULE_SYSTEM))
            return at;
    }
    return found;
}

/* Whether the function of a scope is between the allocator and the code that wants a block. */
static bool passes_on(const struct waits *waits, const struct scope *scope)
{
    uint8_t module = scope->module ? waits->modules[scope->module] : MODULE_PROGRAM;
    return module == MODULE_SYSTEM || module == MODULE_ALLOCATOR || waits->allocators[scope->name] ||
           text_begins(model_text(waits->model, scope->name), "__gthread");
}

/* is_wait: libraries that wait pass it on as well. */
static struct waits_caller find_caller(const struct waits *waits, uint32_t entry, bool is_wait)
{
    const struct model *model = waits->model;
    struct waits_caller caller = {.container = ""};
    for (uint32_t at = model->scopes[entry].parent; at && !caller.function; at = model->scopes[at].parent) {
        const struct scope *scope = &model->scopes[at];
        if (scope->role != ROLE_NONE)
            break;
        if ((scope->kind == SCOPE_CALL || scope->kind == SCOPE_POSITION) && scope->line)
            caller.line = scope;
        if (scope->kind != SCOPE_PROC && scope->kind != SCOPE_INLINED)
            continue;
        if (!passes_on(waits, scope) && !(is_wait && waits->modules[scope->module] >= MODULE_RUNTIMES)) {
            caller.function = scope;
            continue;
        }
        caller.line = NULL;
        if (waits->allocators[scope->name] == ALLOCATOR_LIBRARY) {
            caller.is_growth |= allocator_grows(model_text(model, scope->name));
            caller.container = allocator_bare_name(model_text(model, scope->name), &caller.n_container);
        }
    }
    return caller;
}

void waits_put_caller(const struct model *model, const struct waits_caller *caller, const char *before,
                      struct buf *text)
{
    if (caller->function)
        buf_printf(text, "%s%.120s", before, model_text(model, caller->function->name));
    if (caller->function && caller->line)
        buf_printf(text, " (%s:%u)", path_last(model_text(model, caller->line->file)), caller->line->line);
}

/* "malloc: std::vector growth at fill (x.cpp:13)": what was called, for what, and by which line of the program. */
static int64_t allocator_label(struct waits *waits, uint32_t entry)
{
    const struct model *model = waits->model;
    const char *name = model_text(model, model->scopes[entry].name);
    struct waits_caller caller = find_caller(waits, entry, false);
    size_t n = caller.n_container;
    char before[200] = ": ";
    name += text_begins(name, "__libc_") ? strlen("__libc_") : 0;
    if (n && text_begins(caller.container, "std::"))
        (void)snprintf(before, sizeof before, ": %.*s%s at ", (int)(n < 100 ? n : 100), caller.container,
                       caller.is_growth ? " growth" : "");
    struct buf text = {0};
    buf_printf(&text, WAITS_ALLOCATOR "%.40s", strcmp(name, "cfree") == 0 ? "free" : name);
    waits_put_caller(model, &caller, before, &text);
    int64_t found = text.failed ? -1 : strtab_intern(&waits->labels, text.data);
    buf_fini(&text);
    return found;
}

/* --- locks of the C library --- */

/* Of the time in the functions of a lock: in a loop, or on the way back from the kernel. */
#define CONTENDED_PART 0.005

/* The function of the C library around the function scope leaf that takes a lock or gives it back; 0: none. The
 * outermost one, which the program called. */
static uint32_t lock_entry(const struct waits *waits, uint32_t leaf)
{
    const struct scope *scopes = waits->model->scopes;
    uint32_t found = 0;
    for (uint32_t at = leaf; at && waits->modules[scopes[at].module] == MODULE_SYSTEM;
         at = caller_scope(waits->model, at))
        if (waits->locks[scopes[at].name])
            found = at;
    return found;
}

bool waits_is_call(const struct waits *waits, const struct variable *variable)
{
    return variable->class == CLASS_UNATTRIBUTED && strcmp(model_text(waits->model, variable->name), WAITS_CALL) == 0;
}

/* Notes what one of the variable's samples, of so much time at a scope, says about the locks of a function. */
static void note_lock(struct waits *waits, const struct variable *variable, uint32_t scope, double time)
{
    uint32_t entry = lock_entry(waits, function_scope(waits->model, scope));
    struct waits_caller caller = entry ? find_caller(waits, entry, true) : (struct waits_caller){0};
    if (!caller.function)
        return;
    struct lock_taker *taker = &waits->takers[caller.function->name];
    bool is_data = !is_no_data(waits, variable);
    taker->time += time;
    taker->waited += waits_is_call(waits, variable) || variable->class == CLASS_WAITING ? time : 0;
    if (is_data && taker->last != variable->name) {
        taker->last = variable->name;
        taker->last_time = 0;
    }
    taker->last_time += is_data ? time : 0;
    if (is_data && taker->last_time > taker->most) {
        taker->most = taker->last_time;
        taker->name = variable->name;
    }
}

/* Finds the functions whose locks others hold: taking a free lock is work, and neither turns in a loop nor enters the
 * kernel. */
static void find_contended(struct waits *waits)
{
    const struct model *model = waits->model;
    for (size_t i = 0; waits->has_locks && model->own && i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        for (size_t k = 0; k < variable->n_scopes; k++)
            for (uint32_t at = variable->scopes[k] + 1, end = model_subtree_end(model, variable->scopes[k]); at < end;
                 at++)
                for (size_t m = 0; m < model->n_metrics; m++)
                    if (model->own[at * model->n_metrics + m] > 0 && metrics_is_time(model->metrics[m].name))
                        note_lock(waits, variable, at, model->own[at * model->n_metrics + m]);
    }
    for (size_t i = 0; waits->has_locks && i < model->strings.n_strings; i++) {
        struct lock_taker *taker = &waits->takers[i];
        taker->is_contended = taker->waited > CONTENDED_PART * taker->time;
        waits->is_contended |= taker->is_contended;
    }
}

/* "mutex m: work (x.c:10)": what is waited for, and by which line of the program; -1: nothing is. All that a contended
 * lock costs is waiting: the calls of the kernel, and the lock's cache line that goes from core to core. */
static int64_t lock_label(struct waits *waits, const struct variable *variable, uint32_t leaf)
{
    const struct model *model = waits->model;
    uint32_t entry = lock_entry(waits, leaf);
    struct waits_caller caller = entry ? find_caller(waits, entry, true) : (struct waits_caller){0};
    const struct lock_taker *taker = caller.function ? &waits->takers[caller.function->name] : NULL;
    bool is_wait = (taker && taker->is_contended) || waits_is_call(waits, variable);
    if (!entry || !is_wait)
        return -1;
    struct buf text = {0};
    buf_printf(&text, "%s", locks[waits->locks[model->scopes[entry].name] - 1].what);
    if (taker && taker->name)
        buf_printf(&text, " %.80s", model_text(model, taker->name));
    if (!caller.function)
        buf_printf(&text, ": a library");
    waits_put_caller(model, &caller, ": ", &text);
    int64_t found = text.failed ? -1 : strtab_intern(&waits->labels, text.data);
    buf_fini(&text);
    return found;
}

struct waits_caller waits_caller_of(const struct waits *waits, uint32_t scope)
{
    uint32_t function = function_scope(waits->model, scope);
    return function ? find_caller(waits, function, true) : (struct waits_caller){0};
}

uint32_t waits_lock_taker(const struct waits *waits, uint32_t scope)
{
    uint32_t entry = waits->has_locks ? lock_entry(waits, function_scope(waits->model, scope)) : 0;
    struct waits_caller caller = entry ? find_caller(waits, entry, true) : (struct waits_caller){0};
    return caller.function ? caller.function->name : 0;
}

bool waits_gives_back(const struct waits *waits, uint32_t scope)
{
    static const char *const parts[] = {"unlock", "lock_wake", "_end", "unset"};
    const struct model *model = waits->model;
    for (uint32_t at = function_scope(model, scope); at && waits->modules[model->scopes[at].module] != MODULE_PROGRAM;
         at = caller_scope(model, at))
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (strstr(model_text(model, model->scopes[at].name), parts[i]))
                return true;
    return false;
}

int64_t waits_label(struct waits *waits, const struct variable *variable, uint32_t scope)
{
    const struct model *model = waits->model;
    uint32_t leaf = function_scope(model, scope), at = leaf;
    if (is_profiler(waits, variable) || is_profiler_code(waits, scope))
        return strtab_intern(&waits->labels, WAITS_PROFILER);
    uint32_t entry = waits->is_time && waits->has_allocator ? allocator_entry(waits, leaf) : 0;
    if (entry)
        return allocator_label(waits, entry);
    int64_t lock = waits->is_time && waits->has_locks ? lock_label(waits, variable, leaf) : -1;
    if (lock >= 0)
        return lock;
    if (!waits->is_time || !is_no_data(waits, variable))
        return -1;
    if (!leaf)
        return variable->class == CLASS_WAITING ? label(waits, "spin loop", "") : -1;
    bool is_yield = waits->functions[model->scopes[leaf].name] == FUNCTION_YIELD;
    if (is_yield)
        at = caller_scope(model, leaf);
    if (at && waits->modules[model->scopes[at].module] >= MODULE_RUNTIMES) {
        int64_t found = runtime_label(waits, at);
        if (found >= 0)
            return found;
    }
    if (is_yield && variable->class == CLASS_UNATTRIBUTED)
        return label(waits, "sched_yield", at ? model_text(model, model->scopes[at].name) : "");
    if (variable->class != CLASS_WAITING)
        return -1;
    const char *function = model_text(model, model->scopes[leaf].name);
    bool is_library = waits->modules[model->scopes[leaf].module] == MODULE_SYSTEM;
    uint32_t caller = is_library ? caller_scope(model, leaf) : 0;
    return label(waits, is_library ? function : "spin loop",
                 caller ? model_text(model, model->scopes[caller].name) : function);
}

/* --- kinds of waiting --- */

const char *waits_family(const char *label)
{
    static const char *const libraries_of_mpi[] = {
        "MPI: ", "MPICH: ", "Open MPI: ", "PMIx: ", "UCX: ", "libfabric: ", "PSM2: "};
    for (size_t i = 0; i < sizeof libraries_of_mpi / sizeof *libraries_of_mpi; i++)
        if (strncmp(label, libraries_of_mpi[i], strlen(libraries_of_mpi[i])) == 0)
            return "MPI";
    return NULL;
}

/* Whether two labels are of one kind: what stands before the colon is the same, or both are of MPI. */
static bool is_one_kind(const char *a, const char *b)
{
    const char *colon = strstr(a, ": ");
    bool is_same = colon && strncmp(a, b, (size_t)(colon - a) + 2) == 0;
    return is_same || (waits_family(a) && waits_family(b));
}

int64_t waits_kind(struct waits *waits, int64_t label)
{
    size_t n = (size_t)label + 1;
    if (label < 0 || !vec_reserve(&waits->kinds, &waits->cap_kinds, n, sizeof *waits->kinds))
        return label;
    for (; waits->n_kinds < n; waits->n_kinds++) {
        const char *text = waits->labels.strings[waits->n_kinds];
        int64_t kind = (int64_t)waits->n_kinds;
        bool is_wait = *text != '<';
        for (int64_t i = 0; is_wait && i < (int64_t)waits->n_kinds && kind == (int64_t)waits->n_kinds; i++)
            if (waits->kinds[i] == i && is_one_kind(text, waits->labels.strings[i]))
                kind = i;
        waits->kinds[waits->n_kinds] = kind;
    }
    return waits->kinds[label];
}
