/* SPDX-License-Identifier: BSD-3-Clause */
/* The two links; see hpclink.h. The first tells which functions the program has, so that only those are wrapped: one
 * that it lacks would have to come from somewhere, and one of its own allocator would be there twice. */
#include "hpclink.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "inspect.h"
#include "references.h"
#include "runtime-object.h"

#define WRAP_PREFIX "__wrap_"

struct work {
    const struct hpclink_options *options;
    const struct link_line *line;
    char object[PATH_MAX], plain[PATH_MAX + 16], copy[PATH_MAX + 32];
    struct inspected runtime, program;
    struct references references;
};

/* The words of the link line without its output and, where strips is false, without its stripping. */
static void add_line(struct command *command, const struct work *work, bool strips)
{
    char **words = work->line->words;
    for (int i = 1, n; words[i]; i += n ? n : 1) {
        link_line_match_output(words, i, &n);
        if (n == 0 && (strips || !link_line_is_strip(words[i])))
            command_add(command, "%s", words[i]);
    }
}

static void add_undefined(struct command *command, const struct work *work)
{
    for (unsigned i = 0; i < work->options->n_undefined; i++)
        command_add_linker(command, work->line->is_linker, "--undefined=", work->options->undefined[i]);
}

/* The n-th function that the runtime can stand in for; NULL for its other symbols. */
static const char *wrapped_name(const struct work *work, size_t n)
{
    const char *name = work->runtime.names.strings[n];
    return strncmp(name, WRAP_PREFIX, strlen(WRAP_PREFIX)) == 0 ? name + strlen(WRAP_PREFIX) : NULL;
}

static int run_plain(struct work *work, struct error *err)
{
    struct command command = {0};
    struct buf output = {0}, rest = {0};
    command_add(&command, "%s", work->line->words[0]);
    add_line(&command, work, false);
    command_add(&command, "-o");
    command_add(&command, "%s", work->plain);
    add_undefined(&command, work);
    for (size_t i = 0; i < work->runtime.names.n_strings; i++) {
        const char *name = wrapped_name(work, i);
        if (name && references_counts(name))
            command_add_linker(&command, work->line->is_linker, "--trace-symbol=", name);
    }
    if (work->options->verbose)
        command_print(&command);
    int status = command_run(&command, &output, err);
    references_read(output.data, &work->references, &rest);
    if (rest.data && (status != 0 || work->options->verbose))
        (void)fputs(rest.data, stderr);
    buf_fini(&output);
    buf_fini(&rest);
    command_fini(&command);
    return status;
}

static int check_program(const struct work *work, struct error *err)
{
    const struct inspected *program = &work->program;
    if (program->has_loader)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s becomes a dynamically linked program, which hpcrun measures as it is; hpclink is for "
                         "static ones (-static, -static-pie).",
                         work->line->output);
    if (inspect_contains(program, "__libc_setup_tls"))
        return 0;
    if (inspect_contains(program, "__init_libc") || inspect_contains(program, "__libc_start_init") ||
        inspect_contains(program, "__init_tp"))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is linked with the musl C library, which the runtime does not support; link it with the "
                         "GNU C library.",
                         work->line->output);
    return error_set(err, ERR_UNSUPPORTED,
                     "%s is not linked with the GNU C library, which the runtime needs: nothing could be measured.",
                     work->line->output);
}

static int inspect_program(struct work *work, struct error *err)
{
    struct error why;
    int status = inspect_file(work->plain, &work->program, &why);
    if (status == ERR_NOT_FOUND)
        return error_set(err, status,
                         "%s is linked without a symbol table: what it consists of cannot be seen, and nothing could "
                         "be named in a report; link it without stripping.",
                         work->line->output);
    if (status != 0)
        return error_set(err, status, "%s", why.text);
    return check_program(work, err);
}

/* The runtime itself needs sigaction, whether the program calls it or not. Some archives (libgfortran) hide what they
 * call, and the first link then makes it local. */
static bool is_wanted(const struct work *work, const char *name)
{
    return inspect_contains(&work->program, name) || !strcmp(name, "sigaction");
}

static void add_wraps(struct command *command, const struct work *work)
{
    for (size_t i = 0; i < work->runtime.names.n_strings; i++) {
        const char *name = wrapped_name(work, i);
        if (!name || !is_wanted(work, name))
            continue;
        command_add_linker(command, work->line->is_linker, "--wrap=", name);
        command_add_linker(command, work->line->is_linker, "--undefined=", name);
    }
}

/* The object comes first: what it needs is looked for in all archives that follow. */
static int run_with_runtime(const struct work *work, struct error *err)
{
    struct command command = {0};
    command_add(&command, "%s", work->line->words[0]);
    command_add(&command, "%s", work->copy);
    add_line(&command, work, true);
    command_add(&command, "-o");
    command_add(&command, "%s", work->line->output);
    add_undefined(&command, work);
    add_wraps(&command, work);
    command_add_linker(&command, work->line->is_linker, "--build-id", "");
    if (work->options->verbose)
        command_print(&command);
    int status = command_run(&command, NULL, err);
    command_fini(&command);
    return status;
}

/* What a report of this program can lack is said now and not left to be wondered about. */
static void say_findings(const struct work *work)
{
    const char *definer = work->references.definer;
    if (!work->references.n_callers)
        (void)fprintf(stderr,
                      "hpclink: warning: nothing in %s but the C library calls an allocation function that can be "
                      "intercepted (malloc, operator new, mmap and the like): its heap blocks will not be named, only "
                      "static and stack variables.\n",
                      work->line->output);
    if (work->options->verbose && definer[0])
        (void)fprintf(stderr, "hpclink: malloc is that of %s; it is called from %u places outside the C library.\n",
                      definer, work->references.n_callers);
}

static int link_twice(struct work *work, struct error *err)
{
    int status = run_plain(work, err);
    if (status != 0)
        return status;
    status = inspect_program(work, err);
    if (status == 0)
        status = runtime_object_copy(work->object, work->copy, err);
    if (status != 0)
        return status;
    status = run_with_runtime(work, err);
    if (status == 0)
        say_findings(work);
    return status;
}

static int prepare(struct work *work, const char *directory, struct error *err)
{
    (void)snprintf(work->plain, sizeof work->plain, "%s/plain", directory);
    (void)snprintf(work->copy, sizeof work->copy, "%s/libhpcrun-static.o", directory);
    int status = runtime_object_find(work->object, sizeof work->object, err);
    return status ? status : inspect_file(work->object, &work->runtime, err);
}

int hpclink_relink(const struct hpclink_options *options, const struct link_line *line, const char *directory,
                   struct error *err)
{
    static struct work work; /* large */
    work.options = options;
    work.line = line;
    int status = prepare(&work, directory, err);
    if (status == 0)
        status = link_twice(&work, err);
    inspect_fini(&work.runtime);
    inspect_fini(&work.program);
    return status;
}
