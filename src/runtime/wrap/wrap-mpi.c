/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init and MPI_Init_thread, from C and from Fortran: once they have returned, MPI itself can give the rank, also if
 * no launcher has left it in the environment. No MPI header is used: the two families of MPI libraries are
 * distinguished by the symbols that they export and their version string; with any other library the rank from the
 * environment counts. Ordinary code. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "runtime/process/start.h"
#include "runtime/wrap/wrap.h"

#define MPICH_COMM_WORLD 0x44000000 /* in every library of the MPICH ABI */
#define VERSION_BYTES 8192          /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the largest */
#define MPI_ERROR_OTHER 15

/* All forms are called with four integer arguments; a form with fewer parameters ignores the rest. */
typedef int init_function(void *first, void *second, void *third, void *fourth);
typedef int mpich_function(int communicator, int *result);
typedef int open_mpi_function(const void *communicator, int *result);
typedef int version_function(char *text, int *len_bytes);

/* The functions that programs call; programs have their declarations from mpi.h. */
WRAP_EXPORT int MPI_Init(void *argc, void *argv);
WRAP_EXPORT int MPI_Init_thread(void *argc, void *argv, int required, void *provided);
WRAP_EXPORT void mpi_init_(int *code);
WRAP_EXPORT void mpi_init_thread_(void *required, void *provided, int *code);

/* A handle of the module that contains an address, or NULL. */
static void *open_module(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static bool is_mpich(void *library)
{
    static char text[VERSION_BYTES];
    int len_bytes = 0;
    version_function *version = (version_function *)dlsym(library, "PMPI_Get_library_version");
    if (!version || version(text, &len_bytes) != 0)
        return false;
    text[sizeof text - 1] = '\0';
    return strstr(text, "MPICH") || strstr(text, "MVAPICH") || strstr(text, "Intel(R) MPI");
}

/* Open MPI's communicator of all ranks; NULL in another library. A program that refers to it may have its own copy,
 * which the library then uses, too; so the global scope comes first. */
static const void *find_world(void *library)
{
    const void *world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    return world ? world : dlsym(library, "ompi_mpi_comm_world");
}

/* The rank in the world, or its size; -1 when this library cannot be asked. */
static int ask(void *library, const char *function)
{
    int result = -1;
    void *question = dlsym(library, function);
    const void *open_mpi_world = find_world(library);
    if (!question)
        return -1;
    if (open_mpi_world)
        return ((open_mpi_function *)question)(open_mpi_world, &result) == 0 ? result : -1;
    if (is_mpich(library))
        return ((mpich_function *)question)(MPICH_COMM_WORLD, &result) == 0 ? result : -1;
    return -1;
}

static void take_rank(init_function *real)
{
    void *library = process_is_ours_sig() ? open_module((const void *)(uintptr_t)real) : NULL;
    if (!library)
        return;
    process_take_rank(ask(library, "PMPI_Comm_rank"), ask(library, "PMPI_Comm_size"));
    dlclose(library);
    (void)dlerror(); /* the program must not see our failures when it asks for its own */
}

int MPI_Init(void *argc, void *argv)
{
    init_function *real = (init_function *)wrap_real_for("MPI_Init", __builtin_return_address(0));
    int code = real ? real(argc, argv, NULL, NULL) : MPI_ERROR_OTHER;
    if (code == 0)
        take_rank(real);
    return code;
}

int MPI_Init_thread(void *argc, void *argv, int required, void *provided)
{
    init_function *real = (init_function *)wrap_real_for("MPI_Init_thread", __builtin_return_address(0));
    int code = real ? real(argc, argv, (void *)(intptr_t)required, provided) : MPI_ERROR_OTHER;
    if (code == 0)
        take_rank(real);
    return code;
}

void mpi_init_(int *code)
{
    init_function *real = (init_function *)wrap_real_for("mpi_init_", __builtin_return_address(0));
    *code = MPI_ERROR_OTHER;
    if (real)
        (void)real(code, NULL, NULL, NULL);
    if (*code == 0)
        take_rank(real);
}

void mpi_init_thread_(void *required, void *provided, int *code)
{
    init_function *real = (init_function *)wrap_real_for("mpi_init_thread_", __builtin_return_address(0));
    *code = MPI_ERROR_OTHER;
    if (real)
        (void)real(required, provided, code, NULL);
    if (*code == 0)
        take_rank(real);
}
