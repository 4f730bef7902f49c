/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcfnbounds: lists the functions, variables and unwind rows of a load module, and puts its table into a cache. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/min-bytes.h"
#include "base/options.h"
#include "config.h"
#include "fnbounds/modtab-cache.h"
#include "print.h"

enum { OPTION_C = 1, OPTION_NO_DISCOVERY, OPTION_VARIABLES, OPTION_ROWS, OPTION_TABLE, OPTION_TEXT, OPTION_VERBOSE };

static const struct option_row rows[] = {
    {OPTION_TEXT, "-t --text", NULL, "Write text. This is the default."},
    {OPTION_C, "-c --c-source", NULL, "Write the function addresses as a C array."},
    {OPTION_VARIABLES, "-m --variables", NULL,
     "Write the variables with address and size instead of the functions: two lines each, those of at least "
     "DATACENTRIC_MIN_BYTES. Parts of data sections that no symbol covers are listed under the name of module and "
     "section."},
    {OPTION_NO_DISCOVERY, "-d --no-discovery", NULL,
     "List no code that has neither a symbol nor unwind information (as in stripped assembly)."},
    {OPTION_ROWS, "--rows", NULL, "Write the unwind rows instead of the functions."},
    {OPTION_TABLE, "--table", "DIR",
     "Make the module's table in the cache directory DIR, unless it is there already, and print its path. The "
     "runtime maps these tables. DIR may be \"default\": the cache of this user."},
    {OPTION_VERBOSE, "-v --verbose", NULL, "Say on standard error what the module is and how much was found."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcfnbounds",
    .summary = "list functions, variables and unwind rows of a load module",
    .synopsis = "[-c | -m | --rows | --table DIR] [-d] [-v] [--] MODULE...",
    .description = "A module is an ELF executable or shared library, or [vdso] for the one that the kernel maps into "
                   "every process. Functions come from the symbol tables, the unwind information, the linker's stubs "
                   "and, unless -d is given, from what code is left over; so stripped files work. Each line holds the "
                   "address in the file and the name; the last line tells the number, the address that the file's "
                   "start has (reference offset), and whether the module can be loaded anywhere (relocatable).",
    .rows = rows,
    .examples = "  hpcfnbounds ./app\nThe functions of a program.\n\n"
                "  DATACENTRIC_MIN_BYTES=1 hpcfnbounds -m libfoo.so\nAll variables of a library.\n\n"
                "  hpcfnbounds --table default ./app '[vdso]'\nMakes two tables beforehand.",
    .environment = "DATACENTRIC_MIN_BYTES  the smallest variable that -m lists, in bytes (default 1024).",
    .exit_status = "0 when all modules were listed, 1 when one could not be read, 2 for a wrong command line.",
    .see_also = "hpcrun(1), hpcstruct(1)",
};

struct request {
    int what; /* an option of the enum, OPTION_TEXT: functions */
    bool discover, verbose;
    const char *cache_dir;
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
    if (request->verbose)
        describe(&m);
    switch (request->what) {
    case OPTION_C:
        status = print_functions_c(&m, request->discover, stdout, err);
        break;
    case OPTION_VARIABLES:
        status = print_variables(&m, min_bytes_of_environment(), stdout, err);
        break;
    case OPTION_ROWS:
        status = print_rows(&m, stdout, err);
        break;
    default:
        status = print_functions(&m, request->discover, stdout, err);
    }
    modtab_elf_close(&m);
    return status;
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
    for (int i = 0; i < n_paths; i++)
        if ((request->cache_dir ? make_table(request, paths[i], &err) : list(request, paths[i], &err)) != 0)
            failed = fail(1, &err);
    return failed;
}

int main(int argc, char **argv)
{
    struct request request = {.what = OPTION_TEXT, .discover = true};
    struct option_scan scan = {0};
    struct error err = {0};
    int id;
    while ((id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            return usage(err.text);
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 0;
        if (id == OPTION_NO_DISCOVERY)
            request.discover = false;
        else if (id == OPTION_VERBOSE)
            request.verbose = true;
        else if (request.what != OPTION_TEXT && request.what != id)
            return usage("-c, -m, --rows and --table exclude each other");
        else
            request.what = id;
        if (id == OPTION_TABLE)
            request.cache_dir = scan.value;
    }
    int status = run(&request, argv + scan.index, scan.n_operands);
    if (fflush(stdout) != 0)
        status = fail(1, (error_set(&err, ERR_IO, "cannot write to standard output"), &err));
    return status;
}
