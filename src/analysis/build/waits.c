/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime libraries that wait in loops, and the calls in which they do: see waits.h. If a library has no names for
 * its inner functions, the exported one above them shows what they wait for. */
#include "analysis/build/waits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/build/placeholders.h"
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

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static uint8_t module_meaning(const char *path)
{
    const char *name = path_last(path);
    for (size_t i = 0; i < N_LIBRARIES; i++)
        if (begins(name, libraries[i].prefix))
            return (uint8_t)(MODULE_RUNTIMES + i);
    if (begins(name, PROFILER_LIBRARY))
        return MODULE_PROFILER;
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        if (begins(name, allocators[i]))
            return MODULE_ALLOCATOR;
    bool is_system = begins(name, "libc.so") || begins(name, "libpthread") || begins(name, "ld-linux") ||
                     begins(name, "libc-") || begins(name, "ld.so");
    return is_system ? MODULE_SYSTEM : MODULE_PROGRAM;
}

static bool is_mpi_wait(const char *name)
{
    name += name[0] == 'P';
    if (!begins(name, "MPI_"))
        return false;
    for (size_t i = 0; i < sizeof mpi_calls / sizeof mpi_calls[0]; i++)
        if (begins(name + 4, mpi_calls[i]))
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
        if (begins(name, calls[i].prefix))
            return calls[i].what ? (uint8_t)(FUNCTION_WAITS + i) : FUNCTION_WORKS;
    return begins(name, "MPI_") || begins(name, "PMPI_") ? FUNCTION_WORKS : FUNCTION_INNER;
}

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
                                .allocators = calloc(n + 1, 1)};
    if (!waits || !waits->modules || !waits->functions || !waits->allocators) {
        waits_free(waits);
        *out = NULL;
        return error_memory(err);
    }
    for (size_t i = 1; i < n; i++) {
        waits->modules[i] = module_meaning(model->strings.strings[i]);
        waits->functions[i] = function_meaning(model->strings.strings[i]);
        waits->allocators[i] = (uint8_t)allocator_role_of(model->strings.strings[i]);
        waits->has_allocator |= waits->modules[i] == MODULE_ALLOCATOR || waits->allocators[i] == ALLOCATOR_ENTRY ||
                                waits->allocators[i] == ALLOCATOR_INNER;
        waits->has_profiler |=
            waits->modules[i] == MODULE_PROFILER || strcmp(model->strings.strings[i], WAITS_PROFILER) == 0;
    }
    return 0;
}

void waits_free(struct waits *waits)
{
    if (!waits)
        return;
    free(waits->modules);
    free(waits->functions);
    free(waits->allocators);
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
           (waits->is_time && (waits->has_allocator || is_no_data(waits, variable)));
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
    return module == MODULE_SYSTEM || module == MODULE_ALLOCATOR || waits->allocators[scope->name];
}

/* "malloc: std::vector growth at fill (x.cpp:13)": what was called, for what, and by which line of the program. */
static int64_t allocator_label(struct waits *waits, uint32_t entry)
{
    const struct model *model = waits->model;
    const struct scope *line = NULL, *function = NULL;
    const char *name = model_text(model, model->scopes[entry].name), *container = "";
    size_t n_container = 0;
    bool is_growth = false;
    name += begins(name, "__libc_") ? strlen("__libc_") : 0;
    for (uint32_t at = model->scopes[entry].parent; at && !function; at = model->scopes[at].parent) {
        const struct scope *scope = &model->scopes[at];
        if (scope->role != ROLE_NONE)
            break;
        if ((scope->kind == SCOPE_CALL || scope->kind == SCOPE_POSITION) && scope->line)
            line = scope;
        if (scope->kind != SCOPE_PROC && scope->kind != SCOPE_INLINED)
            continue;
        if (!passes_on(waits, scope)) {
            function = scope;
            continue;
        }
        line = NULL;
        if (waits->allocators[scope->name] == ALLOCATOR_LIBRARY) {
            is_growth |= allocator_grows(model_text(model, scope->name));
            container = allocator_bare_name(model_text(model, scope->name), &n_container);
        }
    }
    char what[200] = "";
    if (n_container && begins(container, "std::"))
        (void)snprintf(what, sizeof what, "%.*s%s at ", (int)(n_container < 100 ? n_container : 100), container,
                       is_growth ? " growth" : "");
    struct buf text = {0};
    buf_printf(&text, WAITS_ALLOCATOR "%.40s", strcmp(name, "cfree") == 0 ? "free" : name);
    if (function)
        buf_printf(&text, ": %s%.120s", what, model_text(model, function->name));
    if (function && line)
        buf_printf(&text, " (%s:%u)", path_last(model_text(model, line->file)), line->line);
    int64_t found = text.failed ? -1 : strtab_intern(&waits->labels, text.data);
    buf_fini(&text);
    return found;
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
