/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcstruct: writes the structure of load modules: functions, inlining, loops, lines, variables. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/input.h"
#include "base/options.h"
#include "base/path.h"
#include "fmt/hpcrun.h"
#include "fnbounds/modtab-cache.h"
#include "structure/elf/elf-file.h"
#include "structure/xml/structure-file.h"

/* --- which load modules a measurement directory has samples in --- */

static void add_modules(const struct hpcrun_profile *profile, struct strtab *paths)
{
    static const size_t n_ids = (size_t)UINT16_MAX + 1;
    bool *is_sampled = calloc(n_ids, sizeof *is_sampled);
    for (; profile && is_sampled; profile = profile->next) {
        for (size_t i = 0; i < profile->n_nodes; i++)
            is_sampled[profile->nodes[i].module] = true;
        for (size_t i = 0; i < profile->n_modules; i++)
            if (is_sampled[profile->modules[i].id] && profile->modules[i].path && profile->modules[i].path[0] == '/')
                (void)strtab_intern(paths, profile->modules[i].path);
        memset(is_sampled, 0, n_ids * sizeof *is_sampled);
    }
    free(is_sampled);
}

static bool is_profile(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".hpcrun") == 0;
}

/* Adds the paths of the modules that any node of a profile in directory lies in, sorted as they are found. Profiles
 * that cannot be read are left out and counted in *n_bad, the last one's error in *err.
 * err: ERR_IO when the directory cannot be read, ERR_NOT_FOUND when it holds no profile */
static int sampled_modules(const char *directory, struct strtab *paths, size_t *n_bad, struct error *err)
{
    size_t n_profiles = 0;
    *n_bad = 0;
    DIR *dir = opendir(directory);
    if (!dir)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *path = NULL;
        struct hpcrun_profile profile = {0};
        if (!is_profile(entry->d_name) || asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
            continue;
        n_profiles++;
        if (hpcrun_read(path, &profile, err) == 0) {
            add_modules(&profile, paths);
            hpcrun_fini(&profile);
        } else {
            (*n_bad)++;
        }
        free(path);
    }
    (void)closedir(dir);
    return n_profiles ? 0 : error_set(err, ERR_NOT_FOUND, "%s: holds no profile (.hpcrun)", directory);
}

/* --- one structure file: from the cache, or made and put there --- */

struct make_settings {
    struct structure_options options;
    struct structure_output output; /* its out is filled here */
    const char *cache_dir;          /* NULL: none */
};

/* What is reported about one file that was made. */
struct make_report {
    bool from_cache;
    bool has_debug, knows_loops; /* the rest only when not from the cache */
    size_t n_functions, n_variables;
    uint64_t n_loops, n_irreducible, n_unresolved;
};

/* The cache holds one file for each build id, path and threshold; modules without debug information are made anew each
 * time, which is quick, because their debug information may be installed later. */

#define FORM "-2" /* counts what such files of one version have looked like */

/* Name of the module's file in the cache, malloc'ed; NULL when it cannot have one. */
static char *cache_path(const char *path, const struct make_settings *settings)
{
    struct elf_shape shape = {0};
    if (!settings->cache_dir || settings->output.n_replacements || settings->output.with_types ||
        elf_shape_read(path, &shape, NULL) != 0)
        return NULL;
    char id[2 * sizeof shape.build_id + 1] = "", *real = realpath(path, NULL), *name = NULL;
    for (size_t i = 0; i < shape.n_build_id; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", shape.build_id[i]);
    if (shape.n_build_id && real &&
        asprintf(&name, "%s/%s-%016" PRIx64 "-%" PRIu64 "-" PACKAGE_VERSION FORM ".hpcstruct", settings->cache_dir, id,
                 bytes_hash_text(BYTES_HASH_START, real), settings->options.bytes_min) < 0)
        name = NULL;
    free(real);
    elf_shape_fini(&shape);
    return name;
}

static int fail_io(struct error *err, const char *what, const char *path)
{
    return error_set(err, ERR_IO, "%s: cannot be %s: %s", path, what, strerror(errno));
}

/* Copies the rest of in to out. */
static bool copy(FILE *in, FILE *out)
{
    char bytes[65536];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        if (fwrite(bytes, 1, n, out) != n)
            return false;
    return !ferror(in);
}

/* A file that gets its name when it is complete. */
struct output {
    const char *path;
    char *temporary; /* NULL: file is written as it is: standard output, a device, a pipe, what a link leads to */
    FILE *file;
};

static int output_open(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){.path = path, .file = stdout};
    struct stat info;
    if (strcmp(path, "-") == 0)
        return 0;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) { /* /dev/stdout is a link that may lead to a file */
        output->file = fopen(path, "wbe");
        return output->file ? 0 : fail_io(err, "written", path);
    }
    if (asprintf(&output->temporary, "%s.%ld.part", path, (long)getpid()) < 0) {
        output->temporary = NULL;
        return error_memory(err);
    }
    (void)unlink(output->temporary); /* of a killed process with this number */
    output->file = fopen(output->temporary, "wbxe");
    if (output->file)
        return 0;
    int code = fail_io(err, "written", path);
    free(output->temporary);
    return code;
}

static int output_close(struct output *output, int code, struct error *err)
{
    if (output->file == stdout)
        return fflush(stdout) != 0 && code == 0 ? fail_io(err, "written", "standard output") : code;
    bool is_bad = ferror(output->file);
    is_bad |= fclose(output->file) != 0;
    if (code == 0 && (is_bad || (output->temporary && rename(output->temporary, output->path) != 0)))
        code = fail_io(err, "written", output->path);
    if (code != 0 && output->temporary)
        (void)unlink(output->temporary);
    free(output->temporary);
    return code;
}

static int copy_to(FILE *in, const char *path, struct error *err)
{
    struct output output;
    int code = output_open(&output, path, err);
    if (code != 0)
        return code;
    if (!copy(in, output.file))
        code = fail_io(err, "written", path);
    return output_close(&output, code, err);
}

/* 1 when the file was in the cache and has been copied, 0 when it has to be made. */
static int take_cached(const char *cached, const char *path, struct error *err, int *code)
{
    FILE *in = cached ? input_stream(cached) : NULL;
    if (!in)
        return 0;
    *code = copy_to(in, path, err);
    (void)fclose(in);
    return 1;
}

/* Keeps a copy; a cache that cannot be written is as good as none. */
static void put_cached(const char *cached, const struct structure_module *module)
{
    struct output output;
    if (output_open(&output, cached, NULL) != 0)
        return;
    const struct structure_output plain = {.out = output.file};
    (void)output_close(&output, structure_module_write(module, &plain, NULL), NULL);
}

static int write_module(const struct structure_module *module, const char *path, const struct make_settings *settings,
                        struct error *err)
{
    struct output output;
    int code = output_open(&output, path, err);
    if (code != 0)
        return code;
    struct structure_output how = settings->output;
    how.out = output.file;
    code = structure_module_write(module, &how, err);
    return output_close(&output, code, err);
}

/* Writes the structure of the module at path to output ("-": standard output), which appears when it is complete.
 * err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
static int make_structure(const char *path, const char *output, const struct make_settings *settings,
                          struct make_report *report, struct error *err)
{
    int code = 0;
    struct structure_module module;
    char *cached = cache_path(path, settings);
    *report = (struct make_report){.from_cache = take_cached(cached, output, err, &code)};
    if (!report->from_cache) {
        code = structure_module_load(path, &settings->options, &module, err);
        if (code == 0) {
            *report = (struct make_report){.has_debug = module.has_debug,
                                           .knows_loops = module.knows_loops,
                                           .n_functions = module.n_functions,
                                           .n_variables = module.n_variables,
                                           .n_loops = module.n_loops,
                                           .n_irreducible = module.n_irreducible,
                                           .n_unresolved = module.n_unresolved};
            code = write_module(&module, output, settings, err);
            if (code == 0 && cached && module.has_debug)
                put_cached(cached, &module);
            structure_module_fini(&module);
        }
    }
    free(cached);
    return code;
}

/* --- the command line --- */

#define JOBS_MAX 256
#define LARGE_BYTES (8 << 20) /* files from this size on get all threads, smaller ones one each */

enum {
    OPT_OUTPUT = 1,
    OPT_JOBS,
    OPT_CACHE,
    OPT_NO_CACHE,
    OPT_REPLACE,
    OPT_TYPES,
    OPT_TIME,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_GPUCFG = OPTION_UNUSED,
    OPT_GPU,
    OPT_CPU,
    OPT_GPU_SIZE,
    OPT_SHOW_GAPS,
    OPT_DEBUG,
    OPT_DEBUG_PROC,
    OPT_INCLUDE,
    OPT_PSIZE,
    OPT_STACK,
    OPT_LOOP,
    OPT_NORMALIZE,
    OPT_DEMANGLER,
    OPT_MEAS_DIR,
    OPT_WORKITEM,
    OPT_BINUTILS,
    OPT_PRETTY
};

static const struct option_row rows[] = {
    {OPT_OUTPUT, "-o --output", "FILE",
     "Write the structure to FILE (default: the module's name with .hpcstruct appended, in the current directory); "
     "- means standard output. For one module only."},
    {OPT_JOBS, "-j --jobs --jobs-parse --jobs-symtab --jobs-struct", "N", "Use N threads (default: one for each CPU)."},
    {OPT_CACHE, "-c --cache", "DIR",
     "Keep structure files in the directory DIR, by the build id of the module, and take them from there. "
     "Default: the directory that HPCTOOLKIT_HPCSTRUCT_CACHE names, else one in this user's cache."},
    {OPT_NO_CACHE, "--nocache", NULL, "Use no cache."},
    {OPT_REPLACE, "-R --replace-path", "OLD=NEW",
     "Write source paths that begin with OLD with NEW instead; may be given several times. Such files are not kept in "
     "the cache."},
    {OPT_TYPES, "--types", NULL,
     "Also write local variables with the places where they live, and the types of all variables with their fields. "
     "Other tools do not know these elements. Such files are not kept in the cache."},
    {OPT_TIME, "--time", NULL, "Print CPU time and memory at the end, on standard error."},
    {OPT_QUIET, "-q --quiet", NULL, "Print errors only."},
    {OPT_VERBOSE, "-v --verbose", NULL, "Say what was found in each module."},
    {OPT_GPUCFG, "--gpucfg", "yes|no", NULL},
    {OPT_GPU, "--gpu", "yes|no", NULL},
    {OPT_CPU, "--cpu", "yes|no", NULL},
    {OPT_GPU_SIZE, "--gpu-size", "BYTES", NULL},
    {OPT_SHOW_GAPS, "--show-gaps", NULL, NULL},
    {OPT_DEBUG, "--debug", "[=N]", NULL},
    {OPT_DEBUG_PROC, "--debug-proc", "GLOB", NULL},
    {OPT_INCLUDE, "-I --include", "DIR", NULL},
    {OPT_PSIZE, "--psize --parallel-size", "BYTES", NULL},
    {OPT_STACK, "-s --stack-analysis", NULL, NULL},
    {OPT_LOOP, "-L --loop-intvl --loop-fwd-subst", "yes|no", NULL},
    {OPT_NORMALIZE, "-N --normalize", "all|safe|none", NULL},
    {OPT_DEMANGLER, "--demangle-library --demangle-function", "NAME", NULL},
    {OPT_MEAS_DIR, "-M --meas-dir --meas_dir", "DIR", NULL},
    {OPT_WORKITEM, "-w --workitem", NULL, NULL},
    {OPT_BINUTILS, "--use-binutils", NULL, NULL},
    {OPT_PRETTY, "-p --pretty-print --compact", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcstruct",
    .summary = "write the program structure of load modules",
    .synopsis = "[options] MODULE\n[options] DIR",
    .description =
        "Reads the debug information of a program or library (DWARF 2 to 5, also split, compressed, shared by dwz, or "
        "in a file of its own that the build id or debug link names) and its machine code, and writes a structure "
        "file: source files, functions, the functions inlined into them, loops, lines and calls, each with its "
        "addresses, and the variables of at least DATACENTRIC_MIN_BYTES. Code without debug information appears by its "
        "symbols or "
        "unwind tables, under the name of the module.\n\n"
        "Loops are those of the machine code (x86-64), each under the lines of the source loop that it comes from. "
        "Machine loops that the compiler made of one source loop, such as a vectorised loop and the one for its rest, "
        "are one loop. On other machines there are no loops.\n\n"
        "DIR is a measurement directory: the structure of every module with samples goes into DIR/structs.",
    .rows = rows,
    .examples = "  hpcstruct ./app\nWrites app.hpcstruct.\n\n"
                "  hpcstruct -o - libfoo.so | grep '<L '\nThe loops of a library.\n\n"
                "  hpcstruct hpctoolkit-app-measurements\nThe structure of everything that was sampled.",
    .environment = "DATACENTRIC_MIN_BYTES  the smallest variable that is written, in bytes (default 1024).\n"
                   "HPCTOOLKIT_HPCSTRUCT_CACHE  the cache directory.",
    .exit_status =
        "0 when everything was written, 1 when a module could not be read or a file could not be written, 2 for "
        "a wrong command line.",
    .see_also = "hpcrun(1), hpcprof(1), hpcfnbounds(1)",
};

struct request {
    struct make_settings settings;
    const char *output, *cache;
    bool no_cache, time, quiet, verbose;
    struct option_unused unused;
    struct xml_replacement *replacements;
    size_t n_replacements, cap_replacements;
};

static int usage(const char *sentence)
{
    return tool_usage("hpcstruct", "%s", sentence);
}

static bool add_replacement(struct request *request, char *value)
{
    char *equals = strchr(value, '=');
    if (!equals || equals == value ||
        !vec_reserve(&request->replacements, &request->cap_replacements, request->n_replacements + 1,
                     sizeof *request->replacements))
        return false;
    *equals = 0;
    request->replacements[request->n_replacements++] = (struct xml_replacement){value, equals + 1};
    return true;
}

/* Number of threads in text; 0 when it is none. */
static unsigned parse_jobs(const char *text)
{
    char *end = NULL;
    unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    return end && !*end && n <= JOBS_MAX ? (unsigned)n : 0;
}

/* Takes one option; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, char *value, struct request *request)
{
    if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
        return 1;
    if (id >= OPTION_UNUSED) {
        option_unused_add(&request->unused, &spec, id);
        return 0;
    }
    switch (id) {
    case OPT_OUTPUT:
        request->output = value;
        break;
    case OPT_JOBS:
        request->settings.options.n_jobs = parse_jobs(value);
        if (request->settings.options.n_jobs == 0)
            return 1 + usage("-j takes a number of threads from 1 to 256");
        break;
    case OPT_CACHE:
        request->cache = value;
        break;
    case OPT_NO_CACHE:
        request->no_cache = true;
        break;
    case OPT_REPLACE:
        if (!add_replacement(request, value))
            return 1 + usage("-R takes OLD=NEW");
        break;
    case OPT_TYPES:
        request->settings.output.with_types = true;
        break;
    case OPT_TIME:
        request->time = true;
        break;
    case OPT_QUIET:
        request->quiet = true;
        break;
    default:
        request->verbose = true;
        break;
    }
    return 0;
}

static void report(const struct request *request, const char *path, const char *output, const struct make_report *made)
{
    if (request->quiet || strcmp(output, "-") == 0)
        return;
    if (made->from_cache)
        (void)printf("%s: from the cache\n", output);
    else if (!made->has_debug)
        (void)printf("%s: %zu functions; %s has no debug information\n", output, made->n_functions, path);
    else if (!made->knows_loops)
        (void)printf("%s: %zu functions; loops are found in code for x86-64 only\n", output, made->n_functions);
    else
        (void)printf("%s: %zu functions, %llu loops\n", output, made->n_functions, (unsigned long long)made->n_loops);
    if (request->verbose && !made->from_cache)
        (void)printf("  %zu variables, %llu irreducible loops, %llu indirect jumps with unknown targets\n",
                     made->n_variables, (unsigned long long)made->n_irreducible,
                     (unsigned long long)made->n_unresolved);
}

static int make_one(const struct request *request, const char *path, const char *output,
                    const struct make_settings *settings)
{
    struct error err = {0};
    struct make_report made;
    if (make_structure(path, output, settings, &made, &err) != 0)
        return tool_error("hpcstruct", "%s", err.text);
    report(request, path, output, &made);
    return 0;
}

static int make_module(const struct request *request, const char *path)
{
    char *name = NULL;
    if (!request->output && asprintf(&name, "%s.hpcstruct", path_last(path)) < 0)
        return 1;
    int status = make_one(request, path, request->output ? request->output : name, &request->settings);
    free(name);
    return status;
}

/* The modules of a measurement directory, taken by several threads. */
struct batch {
    const struct request *request;
    const char *directory;
    const struct strtab *paths;
    bool is_large; /* which half is being made */
    struct make_settings settings;
    atomic_size_t next;
    atomic_int status;
};

/* DIR/structs/NAME.hpcstruct; another module of the same name gets its number, too. */
static char *output_name(const struct batch *batch, size_t i)
{
    char *name = NULL, number[24] = "";
    const char *base = path_last(batch->paths->strings[i]);
    for (size_t other = 0; other < i; other++)
        if (strcmp(path_last(batch->paths->strings[other]), base) == 0)
            (void)snprintf(number, sizeof number, "-%zu", i);
    return asprintf(&name, "%s/structs/%s%s.hpcstruct", batch->directory, base, number) < 0 ? NULL : name;
}

static void *make_some(void *context)
{
    struct batch *batch = context;
    for (size_t i; (i = atomic_fetch_add(&batch->next, 1)) < batch->paths->n_strings;) {
        const char *path = batch->paths->strings[i];
        struct stat info;
        if (stat(path, &info) != 0) {
            if (!batch->is_large && !batch->request->quiet)
                (void)printf("%s: left out, not on this machine\n", path);
            continue;
        }
        if ((info.st_size >= LARGE_BYTES) != batch->is_large)
            continue;
        char *output = output_name(batch, i);
        if (!output || make_one(batch->request, path, output, &batch->settings) != 0)
            atomic_store(&batch->status, 1);
        free(output);
    }
    return NULL;
}

/* Large modules one after the other with all threads, then small ones side by side. */
static int make_batch(struct batch *batch)
{
    unsigned n_jobs = batch->settings.options.n_jobs, n_started = 0;
    pthread_t threads[JOBS_MAX];
    batch->is_large = true;
    (void)make_some(batch);
    batch->is_large = false;
    batch->settings.options.n_jobs = 1;
    atomic_store(&batch->next, 0);
    for (unsigned i = 1; i < n_jobs; i++)
        n_started += pthread_create(&threads[n_started], NULL, make_some, batch) == 0;
    (void)make_some(batch);
    for (unsigned i = 0; i < n_started; i++)
        (void)pthread_join(threads[i], NULL);
    return atomic_load(&batch->status);
}

static int make_directory(const struct request *request, const char *directory)
{
    struct strtab paths = {0};
    struct error err = {0};
    size_t n_bad = 0;
    char *structs = NULL;
    int status = sampled_modules(directory, &paths, &n_bad, &err) != 0 ? tool_error("hpcstruct", "%s", err.text) : 0;
    if (status == 0 && n_bad > 0)
        status = tool_error("hpcstruct", "%s", err.text);
    if (asprintf(&structs, "%s/structs", directory) < 0)
        return 1;
    if (paths.n_strings && mkdir(structs, 0777) != 0 && errno != EEXIST) {
        status = tool_error("hpcstruct", "%s: cannot be made: %s", structs, strerror(errno));
    } else {
        struct batch batch = {
            .request = request, .directory = directory, .paths = &paths, .settings = request->settings};
        status |= make_batch(&batch);
    }
    free(structs);
    strtab_fini(&paths);
    return status;
}

static void print_time(void)
{
    struct rusage usage_now;
    if (getrusage(RUSAGE_SELF, &usage_now) == 0)
        (void)fprintf(stderr, "hpcstruct: %.2f s user, %.2f s system, %ld MiB\n",
                      (double)usage_now.ru_utime.tv_sec + (double)usage_now.ru_utime.tv_usec / 1e6,
                      (double)usage_now.ru_stime.tv_sec + (double)usage_now.ru_stime.tv_usec / 1e6,
                      usage_now.ru_maxrss / 1024);
}

/* Chooses the cache; none is used when it cannot be made. */
static void choose_cache(struct request *request, char *buffer, size_t n)
{
    const char *named = request->cache ? request->cache : getenv("HPCTOOLKIT_HPCSTRUCT_CACHE");
    char user[4000];
    if (request->no_cache)
        return;
    if (named && *named)
        (void)snprintf(buffer, n, "%s", named);
    else if (modtab_default_cache_dir(user, sizeof user, NULL) == 0)
        (void)snprintf(buffer, n, "%s/structs", user);
    else
        return;
    if (mkdir(buffer, 0777) == 0 || errno == EEXIST)
        request->settings.cache_dir = buffer;
    else if (request->cache)
        (void)tool_error("hpcstruct", "%s: cannot be used as a cache: %s", buffer, strerror(errno));
}

static int run(struct request *request, const char *operand)
{
    static char cache[4096];
    struct stat info;
    bool is_directory = stat(operand, &info) == 0 && S_ISDIR(info.st_mode);
    if (is_directory && request->output)
        return usage("-o is for one module; the structures of a directory go into its structs");
    choose_cache(request, cache, sizeof cache);
    request->settings.output.replacements = request->replacements;
    request->settings.output.n_replacements = request->n_replacements;
    request->settings.options.bytes_min = min_bytes_of_environment();
    if (request->settings.options.n_jobs == 0) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        request->settings.options.n_jobs = n < 1 ? 1 : n > JOBS_MAX ? JOBS_MAX : (unsigned)n;
    }
    int status = is_directory ? make_directory(request, operand) : make_module(request, operand);
    if (request->time)
        print_time();
    return status;
}

static int run_tool(int argc, char **argv)
{
    struct option_scan scan = {0};
    struct request request = {0};
    struct error err = {0};
    int id, status = -1;
    /* much is allocated and little of it given back before the end */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    (void)mallopt(M_TOP_PAD, 4 << 20);
    while (status < 0 && (id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END)
        status = id == OPTIONS_BAD ? usage(err.text)
                                   : take_option(id, (char *)(uintptr_t)(const void *)scan.value, &request) - 1;
    if (status < 0 && scan.n_operands != 1)
        status = usage(scan.n_operands ? "one module or measurement directory at a time" : "no module is given");
    if (status < 0 && min_bytes_check(&err) != 0)
        status = usage(err.text);
    if (status < 0 && !request.quiet)
        option_unused_say(&request.unused, "hpcstruct");
    if (status < 0)
        status = run(&request, argv[scan.index]);
    free(request.replacements);
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
