/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache holds one file for each build id, path and threshold; modules without debug information are made anew each
 * time, which is quick, because their debug information may be installed later. */
#include "make.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "config.h"
#include "structure/elf-shape.h"

#define FORM "-2" /* counts what such files of one version have looked like */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

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
                 hash_text(real), settings->options.bytes_min) < 0)
        name = NULL;
    free(real);
    elf_shape_fini(&shape);
    return name;
}

static int fail_io(struct error *err, const char *what, const char *path)
{
    return error_set(err, ERR_IO, "%s cannot be %s: %s", path, what, strerror(errno));
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
    char *temporary; /* NULL: file is written as it is: standard output, a device, a pipe */
    FILE *file;
};

static int output_open(struct output *output, const char *path, struct error *err)
{
    *output = (struct output){.path = path, .file = stdout};
    struct stat info;
    if (strcmp(path, "-") == 0)
        return 0;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        output->file = fopen(path, "wb");
        return output->file ? 0 : fail_io(err, "written", path);
    }
    if (asprintf(&output->temporary, "%s.%ld.part", path, (long)getpid()) < 0) {
        output->temporary = NULL;
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    output->file = fopen(output->temporary, "wb");
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

int make_structure(const char *path, const char *output, const struct make_settings *settings,
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
