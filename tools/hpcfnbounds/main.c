/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcfnbounds: lists the functions, variables and unwind rows of a load module, and puts its table into a cache. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/min-bytes.h"
#include "base/options.h"
#include "config.h"
#include "fnbounds/modtab-cache.h"
#include "print.h"
#include "serve.h"

enum {
    OPTION_C = 1,
    OPTION_NO_DISCOVERY,
    OPTION_VARIABLES,
    OPTION_EMPTY,
    OPTION_ROWS,
    OPTION_TABLE,
    OPTION_TEXT,
    OPTION_JOBS,
    OPTION_SERVER,
    OPTION_VERBOSE
};

static const struct option_row rows[] = {
    {OPTION_TEXT, "-t --text", NULL, "Write text. This is the default."},
    {OPTION_C, "-c --c-source", NULL,
     "Write a C array: of the functions' addresses, with -m of the variables' addresses and sizes."},
    {OPTION_VARIABLES, "-m --variables", NULL,
     "Write the variables with address and size instead of the functions: two lines each, those of at least "
     "DATACENTRIC_MIN_BYTES. Parts of data sections that no symbol covers are listed under the name of module and "
     "section."},
    {OPTION_EMPTY, "-x --no-variables", NULL, "With -c: write an array of variables that is empty."},
    {OPTION_NO_DISCOVERY, "-d --no-discovery", NULL,
     "List no code that has neither a symbol nor unwind information (as in stripped assembly)."},
    {OPTION_ROWS, "--rows", NULL, "Write the unwind rows instead of the functions."},
    {OPTION_TABLE, "--table", "DIR",
     "Make the module's table in the cache directory DIR, unless it is there already, and print its path. The "
     "runtime maps these tables. DIR may be \"default\": the cache of this user."},
    {OPTION_JOBS, "-js --jobs-symtab", "N",
     "With --table: make the tables of up to N modules at the same time (default HPCFNBOUNDS_NUM_THREADS, else 1)."},
    {OPTION_SERVER, "-s --server", "FD",
     "Answer requests from the descriptor FD on the descriptor that follows as an argument, instead of listing "
     "modules. The messages are described in FORMAT.md."},
    {OPTION_VERBOSE, "-v --verbose", NULL, "Say on standard error what the module is and how much was found."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcfnbounds",
    .summary = "list functions, variables and unwind rows of a load module",
    .synopsis = "[-c] [-m | -x | --rows] [-d] [-v] [--] MODULE...\n"
                "--table DIR [-js N] [-v] [--] MODULE...\n"
                "-s FDIN FDOUT [-d]",
    .description = "A module is an ELF executable or shared library, or [vdso] for the one that the kernel maps into "
                   "every process. Functions come from the symbol tables, also those of separate debug files "
                   "(/usr/lib/debug) and of the section .gnu_debugdata, the unwind information, the linker's stubs "
                   "and, unless -d is given, from what code is left over; so stripped files work. Each line holds the "
                   "address in the file and the name; the last line tells the number, the address that the file's "
                   "start has (reference offset), and whether the module can be loaded anywhere (relocatable).",
    .rows = rows,
    .examples = "  hpcfnbounds ./app\nThe functions of a program.\n\n"
                "  DATACENTRIC_MIN_BYTES=1 hpcfnbounds -m libfoo.so\nAll variables of a library.\n\n"
                "  hpcfnbounds --table default ./app '[vdso]'\nMakes two tables beforehand.",
    .environment = "DATACENTRIC_MIN_BYTES  the smallest variable that -m lists, in bytes (default 1024).\n"
                   "HPCFNBOUNDS_NUM_THREADS  how many tables are made at the same time, unless -js is given.",
    .exit_status = "0 when all modules were listed, 1 when one could not be read, 2 for a wrong command line.",
    .see_also = "hpcrun(1), hpcstruct(1)",
};

struct request {
    int what; /* an option of the enum, OPTION_TEXT: functions */
    bool is_c, is_empty, discover, verbose;
    const char *cache_dir;
    unsigned n_jobs;
    int fd_in; /* of the server, -1: none */
};

static int fail(int status, const struct error *err)
{
    (void)fprintf(stderr, "hpcfnbounds: %s\n", err->text);
    return status;
}

static int usage(const char *sentence)
{
    (void)fprintf(stderr, "hpcfnbounds: %s\nTry 'hpcfnbounds --help'.\n", sentence);
    return 2;
}

static int make_table(const struct request *request, const char *path, struct error *err)
{
    char file[4096];
    uint64_t id;
    int status = modtab_make(path, request->cache_dir, &id, err);
    if (status == 0)
        status = modtab_cache_path(file, sizeof file, request->cache_dir, id, err);
    if (status == 0)
        printf("%s\n", file);
    return status;
}

static void describe(const struct modtab_elf *m)
{
    struct modtab_symtab t;
    (void)fprintf(stderr, "hpcfnbounds: %s: %s, machine %u, id %016llx (%s), %s\n", m->path,
                  m->header.is_fixed ? "fixed address" : "relocatable", (unsigned)m->header.machine,
                  (unsigned long long)m->header.id, m->header.build_id_bytes ? "build id" : "path, size and time",
                  modtab_symtab_open(&t, m, SHT_SYMTAB)   ? "with .symtab"
                  : modtab_symtab_open(&t, m, SHT_DYNSYM) ? "only .dynsym"
                                                          : "no symbols");
}

static int list(const struct request *request, const char *path, struct error *err)
{
    struct modtab_elf m;
    int status = modtab_elf_open(&m, path, err);
    if (status != 0)
        return status;
    modtab_debug_open(&m);
    if (request->verbose)
        describe(&m);
    switch (request->what) {
    case OPTION_VARIABLES:
    case OPTION_EMPTY:
        status = request->is_c ? print_variables_c(&m, min_bytes_of_environment(), request->is_empty, stdout, err)
                               : print_variables(&m, min_bytes_of_environment(), stdout, err);
        break;
    case OPTION_ROWS:
        status = print_rows(&m, stdout, err);
        break;
    default:
        status = request->is_c ? print_functions_c(&m, request->discover, stdout, err)
                               : print_functions(&m, request->discover, stdout, err);
    }
    modtab_elf_close(&m);
    return status;
}

/* Makes the tables in up to n_jobs processes; what fails there fails again, with its message, where it is listed. */
static void make_tables(const struct request *request, char **paths, int n_paths)
{
    unsigned n_running = 0;
    for (int i = 0; i < n_paths; i++) {
        if (n_running == request->n_jobs && wait(NULL) > 0)
            n_running--;
        pid_t pid = fork();
        if (pid == 0)
            _exit(modtab_make(paths[i], request->cache_dir, NULL, NULL) != 0);
        n_running += pid > 0;
    }
    while (wait(NULL) > 0)
        ;
}

static int run(struct request *request, char **paths, int n_paths)
{
    static char default_dir[4096];
    struct error err = {0};
    int failed = 0;
    if (n_paths == 0)
        return usage("no module is given");
    if (request->cache_dir && strcmp(request->cache_dir, "default") == 0) {
        if (modtab_default_cache_dir(default_dir, sizeof default_dir, &err) != 0)
            return fail(1, &err);
        request->cache_dir = default_dir;
    }
    if (request->cache_dir && request->n_jobs > 1)
        make_tables(request, paths, n_paths);
    for (int i = 0; i < n_paths; i++)
        if ((request->cache_dir ? make_table(request, paths[i], &err) : list(request, paths[i], &err)) != 0)
            failed = fail(1, &err);
    return failed;
}

static bool read_number(const char *text, int max, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > max)
        return false;
    *number = (int)value;
    return true;
}

static int run_server(const struct request *request, char **operands, int n_operands)
{
    struct serve_options options = {request->fd_in, 0, request->discover, min_bytes_of_environment()};
    struct error err = {0};
    if (n_operands != 1 || !read_number(operands[0], INT_MAX, &options.fd_out))
        return usage("-s takes two descriptors, such as -s 3 4");
    return serve(&options, &err) == 0 ? 0 : fail(1, &err);
}

/* Takes what excludes everything else of its kind; a sentence when it comes after another. */
static const char *choose(struct request *request, int what)
{
    if (request->what != OPTION_TEXT && request->what != what)
        return "-m, -x, --rows and --table exclude each other";
    request->what = what;
    return NULL;
}

/* Takes one option; a sentence when it is wrong. */
static const char *take(struct request *request, int id, const char *value)
{
    int n_jobs;
    switch (id) {
    case OPTION_TEXT:
        return NULL;
    case OPTION_C:
        request->is_c = true;
        return NULL;
    case OPTION_NO_DISCOVERY:
        request->discover = false;
        return NULL;
    case OPTION_VERBOSE:
        request->verbose = true;
        return NULL;
    case OPTION_JOBS:
        if (!read_number(value, 1024, &n_jobs) || n_jobs < 1)
            return "-js takes a number from 1 to 1024";
        request->n_jobs = (unsigned)n_jobs;
        return NULL;
    case OPTION_SERVER:
        return read_number(value, INT_MAX, &request->fd_in) ? NULL : "-s takes two descriptors, such as -s 3 4";
    case OPTION_TABLE:
        request->cache_dir = value;
        return choose(request, id);
    default:
        request->is_empty = id == OPTION_EMPTY;
        return choose(request, id);
    }
}

static int run_tool(int argc, char **argv)
{
    struct request request = {.what = OPTION_TEXT, .discover = true, .fd_in = -1};
    struct option_scan scan = {0};
    struct error err = {0};
    int id, n_jobs = 0;
    if (getenv("HPCFNBOUNDS_NUM_THREADS") && read_number(getenv("HPCFNBOUNDS_NUM_THREADS"), 1024, &n_jobs))
        request.n_jobs = (unsigned)n_jobs;
    while ((id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            return usage(err.text);
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 0;
        const char *wrong = take(&request, id, scan.value);
        if (wrong)
            return usage(wrong);
    }
    if (request.is_c && (request.what == OPTION_ROWS || request.what == OPTION_TABLE))
        return usage("-c does not go with --rows and --table");
    if (request.what == OPTION_EMPTY && !request.is_c)
        return usage("-x needs -c");
    if (min_bytes_check(&err) != 0)
        return usage(err.text);
    char **operands = argv + scan.index;
    int status =
        request.fd_in >= 0 ? run_server(&request, operands, scan.n_operands) : run(&request, operands, scan.n_operands);
    if (fflush(stdout) != 0)
        status = fail(1, (error_set(&err, ERR_IO, "cannot write to standard output"), &err));
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
