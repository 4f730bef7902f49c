/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens libunwind when the process begins, for architectures that have no walker of our own (configure
 * --with-unwinder=libunwind). It is opened and not linked to, so that a program also starts where libunwind is missing,
 * and opened so that it calls the C library directly and not what we or the program put in front of it. Where it is
 * missing, paths end after their first frame, and the log shows that in the reasons why paths ended. Ordinary code. */
#include "runtime/own/own-call.h"
#include "runtime/unwind/unwind-libunwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define LIBRARY "libunwind-" TEXT(UNW_TARGET) ".so.8"
#define FUNCTION(name) TEXT(UNW_OBJ(name))

enum {
    FORK_YIELDS = 100,
    FORK_PAUSE_NS = 100000,
    FORK_PAUSES_MAX = 10000, /* one second */
};

/* A callback that no walk needs: libunwind reports an error for that step. */
static int no_dynamic_code(unw_addr_space_t space, unw_word_t *address, void *walk)
{
    (void)space;
    (void)address;
    (void)walk;
    return -UNW_ENOINFO;
}

static void put_nothing(unw_addr_space_t space, unw_proc_info_t *info, void *walk)
{
    (void)space;
    (void)info;
    (void)walk;
}

static int no_fp_register(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int is_write, void *walk)
{
    (void)space;
    (void)reg;
    (void)value;
    (void)is_write;
    (void)walk;
    return -UNW_EBADREG;
}

static int no_resuming(unw_addr_space_t space, unw_cursor_t *cursor, void *walk)
{
    (void)space;
    (void)cursor;
    (void)walk;
    return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t address, char *name, size_t n, unw_word_t *offset, void *walk)
{
    (void)space;
    (void)address;
    (void)name;
    (void)n;
    (void)offset;
    (void)walk;
    return -UNW_ENOINFO;
}

static bool find_functions(struct unwind_libunwind *lib, void *library)
{
    static unw_accessors_t accessors = {.find_proc_info = unwind_find_proc_sig,
                                        .put_unwind_info = put_nothing,
                                        .get_dyn_info_list_addr = no_dynamic_code,
                                        .access_mem = unwind_memory_sig,
                                        .access_reg = unwind_register_sig,
                                        .access_fpreg = no_fp_register,
                                        .resume = no_resuming,
                                        .get_proc_name = no_name};
    unw_addr_space_t (*create)(unw_accessors_t *, int);
    int (*set_caching)(unw_addr_space_t, unw_caching_policy_t);
    const struct {
        const char *name;
        void *at;
    } wanted[] = {
        {FUNCTION(create_addr_space), &create},
        {FUNCTION(set_caching_policy), &set_caching},
        {FUNCTION(init_remote), &lib->init_remote},
        {FUNCTION(step), &lib->step},
        {FUNCTION(get_reg), &lib->get_reg},
        {FUNCTION(is_signal_frame), &lib->is_signal_frame},
        {FUNCTION(dwarf_search_unwind_table), &lib->search_table},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *function = dlsym(library, wanted[i].name);
        if (!function)
            return false;
        *(void **)wanted[i].at = function;
    }
    lib->space = create(&accessors, 0);
    return lib->space && set_caching(lib->space, UNW_CACHE_NONE) == 0;
}

/* When libunwind starts, it opens a pipe with which it tests whether memory can be read. Our callbacks know what can be
 * read, so we close the pipe and leave the program's descriptors as they were. */
static bool find_functions_without_pipe(struct unwind_libunwind *lib, void *library)
{
    struct stat status;
    int fds[2];
    if (own_call_sig(SYS_pipe2, fds, O_CLOEXEC) != 0)
        return false;
    (void)own_call_sig(SYS_close, fds[0]);
    (void)own_call_sig(SYS_close, fds[1]);
    bool is_found = find_functions(lib, library);
    for (int i = 0; i < 2; i++)
        if (own_call_sig(SYS_fstat, fds[i], &status) == 0 && S_ISFIFO(status.st_mode))
            (void)own_call_sig(SYS_close, fds[i]);
    return is_found;
}

/* The forks that the calling thread has under way: a handler of the program may fork while it interrupts a fork, or a
 * walk. */
static _Thread_local struct {
    struct shield shield; /* of the outermost fork */
    int depth;
    bool is_empty; /* no thread was in libunwind when the wait ended */
} forking __attribute__((tls_model("initial-exec")));

/* Waits until no thread is in libunwind, except for a walk that this thread has interrupted. A walk seldom takes more
 * than some microseconds. If a walking thread is descheduled until the wait ends, the child loses its paths; the
 * program loses nothing. */
static bool wait_until_empty(const struct unwind_libunwind *lib)
{
    struct timespec pause = {.tv_nsec = FORK_PAUSE_NS};
    int n_own = unwind_libunwind_is_inside_sig();
    for (int n = 0; atomic_load(&lib->n_inside) > n_own; n++) {
        if (n == FORK_PAUSES_MAX)
            return false;
        if (n < FORK_YIELDS)
            (void)own_call_sig(SYS_sched_yield);
        else
            (void)own_call_sig(SYS_nanosleep, &pause, NULL);
    }
    return true;
}

static void fork_prepare(void)
{
    struct unwind_libunwind *lib = unwind_libunwind_sig();
    struct shield shield;
    shield_raise_sig(&shield); /* so that no handler jumps out and keeps walks locked out */
    if (forking.depth++ == 0)
        forking.shield = shield;
    atomic_fetch_add(&lib->n_forking, 1);
    forking.is_empty = wait_until_empty(lib);
}

static void fork_done(void)
{
    if (--forking.depth == 0)
        shield_lower_sig(&forking.shield);
}

static void fork_parent(void)
{
    atomic_fetch_sub(&unwind_libunwind_sig()->n_forking, 1);
    fork_done();
}

/* This thread is the only one. A lock in libunwind that another thread held stays locked. */
static void fork_child(void)
{
    struct unwind_libunwind *lib = unwind_libunwind_sig();
    atomic_store(&lib->n_inside, unwind_libunwind_is_inside_sig());
    if (!forking.is_empty)
        atomic_store(&lib->is_open, false);
    atomic_store(&lib->n_forking, forking.depth - 1);
    fork_done();
}

/* We start before the C library, which only then sets the environment that dlopen() reads. */
__attribute__((constructor)) static void open_libunwind(int argc, char **arguments, char **environment)
{
    (void)argc;
    (void)arguments;
    if (!environ)
        environ = environment;
    struct unwind_libunwind *lib = unwind_libunwind_sig();
    int saved = errno;
    int own_scope = dlsym(RTLD_DEFAULT, "__sanitizer_set_report_path") ? 0 : RTLD_DEEPBIND; /* sanitizers forbid it */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | own_scope);
    if (library && find_functions_without_pipe(lib, library) &&
        pthread_atfork(fork_prepare, fork_parent, fork_child) == 0)
        atomic_store(&lib->is_open, true);
    (void)dlerror(); /* the program must not see our failures when it asks for its own */
    errno = saved;
}
