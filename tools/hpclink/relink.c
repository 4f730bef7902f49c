/* SPDX-License-Identifier: BSD-3-Clause */
/* The two links. The first shows which functions the program has, so that only those are wrapped: one that it lacks
 * would have to come from somewhere, and one of its own allocator would be there twice. */
#include "hpclink.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/options.h"
#include "base/vec.h"

/* --- reading a link line: what is not known here is the compiler's business and passed on --- */

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

static void link_line_match_output(char *const *words, int i, int *n)
{
    *n = 0;
    if (!strcmp(words[i], "-o") && words[i + 1])
        *n = 2;
    else if (!strncmp(words[i], "-o", 2) && words[i][2] && strncmp(words[i], "-openmp", 7) != 0)
        *n = 1;
}

/* Whether words[i] (and words[i + 1] when *n is set to 2) is the output option, or -s: what the first link replaces or
 * leaves out. *n: number of words, 0 when it is neither. */
static bool link_line_is_strip(const char *word)
{
    static const char *const strips[] = {"-s", "-Wl,-s", "-Wl,--strip-all", "--strip-all", NULL};
    return is_one_of(word, strips);
}

/* ld, x86_64-linux-gnu-ld, ld.gold and the like. */
static bool names_linker(const char *command)
{
    const char *name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
    static const char *const linkers[] = {"ld", "ld.bfd", "ld.gold", "ld.lld", "mold", NULL};
    const char *dash = strrchr(name, '-');
    return is_one_of(name, linkers) || (dash && is_one_of(dash + 1, linkers));
}

int link_line_read(char **words, struct link_line *line, struct error *err)
{
    static const char *const no_links[] = {
        "-c",           "-S",           "-E",   "-M",    "-MM",      "-fsyntax-only", "--version",  "--help",
        "-dumpversion", "-dumpmachine", "-###", "-show", "--showme", "-compile_info", "-link_info", NULL};
    static const char *const no_programs[] = {"-shared", "-r", "-Wl,-r", "-Wl,-shared", "--relocatable", NULL};
    bool has_input = false;
    int n = 0;
    *line = (struct link_line){.words = words, .output = "a.out", .is_link = true};
    line->is_linker = names_linker(words[0]);
    for (int i = 1; words[i]; i += n ? n : 1) {
        link_line_match_output(words, i, &n);
        if (n)
            line->output = n == 2 ? words[i + 1] : words[i] + 2;
        else if (is_one_of(words[i], no_programs))
            return error_set(err, ERR_UNSUPPORTED,
                             "%s: makes a library or an object, not a program; link it without hpclink, and only the "
                             "program with it",
                             words[i]);
        else if (is_one_of(words[i], no_links) || !strncmp(words[i], "-print-", 7))
            line->is_link = false;
        else if (words[i][0] != '-' || !strncmp(words[i], "-l", 2))
            has_input = true;
    }
    line->is_link &= has_input;
    return 0;
}

/* --- building and running command lines --- */

/* All zero is empty. The words are copies, owned. */
struct command {
    char **words; /* NULL-terminated as soon as there is one */
    size_t n_words, capacity;
    bool failed; /* out of memory */
};

/* Appends a word: format and arguments as of printf. */
static void command_add(struct command *command, const char *format, ...)
{
    va_list arguments;
    char *word = NULL;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    if (!word || !vec_reserve(&command->words, &command->capacity, command->n_words + 2, sizeof *command->words)) {
        command->failed = true;
        free(word);
        return;
    }
    command->words[command->n_words++] = word;
    command->words[command->n_words] = NULL;
}

/* Appends an option of the linker, with or without a value that belongs to it ("" for none), in the form in which a
 * compiler passes it on, or bare when the command is the linker. */
static void command_add_linker(struct command *command, bool is_linker, const char *option, const char *value)
{
    command_add(command, "%s%s%s", is_linker ? "" : "-Wl,", option, value);
}

static void drain(int fd, struct buf *output)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_append(output, bytes, (size_t)n);
}

static int spawn(const struct command *command, const int *pipe_fds, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int status = posix_spawn_file_actions_init(&actions);
    if (status != 0)
        return status;
    if (pipe_fds) {
        (void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
        (void)posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
        (void)posix_spawn_file_actions_addclose(&actions, pipe_fds[1]);
    }
    status = posix_spawnp(pid, command->words[0], &actions, NULL, command->words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
}

/* Runs it and waits. output: takes what it writes to both streams, NULL: they are ours. Returns its exit status (128 +
 * signal), or a negative code when it could not be run.  err: ERR_NOT_FOUND, ERR_IO, ERR_MEMORY */
static int command_run(const struct command *command, struct buf *output, struct error *err)
{
    int fds[2] = {-1, -1}, status;
    pid_t pid;
    if (command->failed)
        return error_memory(err);
    if (output && pipe(fds) != 0)
        return error_set(err, ERR_IO, "a pipe cannot be made: %s", strerror(errno));
    status = spawn(command, output ? fds : NULL, &pid);
    if (output)
        (void)close(fds[1]);
    if (status == 0 && output)
        drain(fds[0], output);
    if (output)
        (void)close(fds[0]);
    if (status != 0)
        return error_set(err, ERR_NOT_FOUND, "%s: cannot be run: %s", command->words[0], strerror(status));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Prints it on standard error, one line. */
static void command_print(const struct command *command)
{
    for (size_t i = 0; i < command->n_words; i++)
        (void)fprintf(stderr, "%s%s", command->words[i], i + 1 < command->n_words ? " " : "\n");
}

/* Frees the words and makes the command empty. */
static void command_fini(struct command *command)
{
    for (size_t i = 0; i < command->n_words; i++)
        free(command->words[i]);
    free(command->words);
    *command = (struct command){0};
}

/* --- what an ELF file defines: the program after the first link, and the runtime's object --- */

/* Names of the functions that a file defines. */
struct inspected {
    bool has_loader;      /* PT_INTERP: not static */
    struct strtab names;  /* for others */
    struct strtab locals; /* for itself; in position-independent programs also what was hidden */
};

static bool read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct inspected *inspected)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; data && i < n; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        int type = GELF_ST_TYPE(symbol.st_info);
        if (type != STT_FUNC && type != STT_GNU_IFUNC)
            continue;
        bool is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name && strtab_intern(is_local ? &inspected->locals : &inspected->names, name) < 0)
            return false;
    }
    return true;
}

static int read_elf(Elf *elf, const char *path, struct inspected *inspected, struct error *err)
{
    size_t n_segments = 0;
    bool has_table = false;
    (void)elf_getphdrnum(elf, &n_segments);
    for (size_t i = 0; i < n_segments; i++) {
        GElf_Phdr segment;
        inspected->has_loader |= gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_INTERP;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
            continue;
        has_table = true;
        if (!read_symbols(elf, section, &header, inspected))
            return error_memory(err);
    }
    if (!has_table)
        return error_set(err, ERR_NOT_FOUND, "%s: has no symbol table", path);
    return 0;
}

/* Reads path. err: ERR_IO, ERR_FORMAT; ERR_NOT_FOUND when it has no symbol table */
static int inspect_file(const char *path, struct inspected *inspected, struct error *err)
{
    *inspected = (struct inspected){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    (void)elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    int status;
    if (!elf || elf_kind(elf) != ELF_K_ELF)
        status = error_set(err, ERR_FORMAT, "%s: is not an ELF file", path);
    else
        status = read_elf(elf, path, inspected, err);
    (void)elf_end(elf);
    (void)close(fd);
    return status;
}

static bool inspect_defines(const struct inspected *inspected, const char *name)
{
    return strtab_find(&inspected->names, name) >= 0;
}

/* Whether the file defines a function of this name: for others, or in any case. */
static bool inspect_contains(const struct inspected *inspected, const char *name)
{
    return inspect_defines(inspected, name) || strtab_find(&inspected->locals, name) >= 0;
}

/* Frees the names. */
static void inspect_fini(struct inspected *inspected)
{
    strtab_fini(&inspected->names);
    strtab_fini(&inspected->locals);
}

/* --- what the linker says of traced symbols --- */

/* Which files refer to the allocation functions, and which defines malloc, in the lines of --trace-symbol: "ld: FILE:
 * reference to NAME", "FILE: definition of NAME". */

struct references {
    unsigned n_callers; /* references from other files than the C library's own */
    char definer[1024]; /* of malloc; empty when the linker did not say */
};

static const char *const names[] = {
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign",       "aligned_alloc",
    "valloc", "mmap",   "mmap64",  "_Znwm",        "_Znam",    "_ZnwmSt11align_val_t", "_ZnwmRKSt9nothrow_t",
    NULL};

/* Whether name is an allocation function whose callers count. */
static bool references_counts(const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* What every program has: the C library's own calls, and those for exceptions. */
static bool is_of_library(const char *line)
{
    return strstr(line, "libc.a(") || strstr(line, "libgcc_eh.a(") || strstr(line, "(eh_alloc.o)");
}

/* The name behind marker in line, NULL when it is not such a line. */
static const char *name_behind(const char *line, const char *marker)
{
    const char *at = strstr(line, marker);
    return at && references_counts(at + strlen(marker)) ? at + strlen(marker) : NULL;
}

static void note_definer(const char *line, struct references *references)
{
    const char *end = strstr(line, ": definition of ");
    const char *start = line;
    for (const char *colon = line; (colon = strstr(colon, ": ")) && colon < end; colon += 2)
        start = colon + 2;
    (void)snprintf(references->definer, sizeof references->definer, "%.*s", (int)(end - start), start);
}

/* False when the line is none of the linker's traces. */
static bool take_line(const char *line, struct references *references)
{
    const char *defined = name_behind(line, ": definition of ");
    if (defined && !strcmp(defined, "malloc"))
        note_definer(line, references);
    if (defined)
        return true;
    if (!name_behind(line, ": reference to "))
        return false;
    references->n_callers += !is_of_library(line);
    return true;
}

/* Splits the linker's output: the lines of --trace-symbol fill *references, all others are appended to rest. */
static void references_read(const char *output, struct references *references, struct buf *rest)
{
    char line[4096];
    *references = (struct references){0};
    while (output && *output) {
        size_t len = strcspn(output, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)len, output);
        if (!take_line(line, references))
            buf_append(rest, output, len + (output[len] == '\n'));
        output += len + (output[len] == '\n');
    }
}

/* --- the runtime as one object, with the place of hpcrun written into it --- */

/* Finds the object that belongs to this hpclink. path[n]: filled.  err: ERR_NOT_FOUND */
static int runtime_object_find(char *path, size_t n, struct error *err)
{
    char own[PATH_MAX];
    if (tool_find_part("", LOCUS_PREFIX, LOCUS_RUNTIME_OBJECT, path, n))
        return 0;
    tool_directory(own, sizeof own);
    return error_set(
        err, ERR_NOT_FOUND,
        "libhpcrun-static.o is neither in %s../lib/locus/libhpcrun-static.o nor in %s: the installation is "
        "incomplete",
        own, LOCUS_RUNTIME_OBJECT);
}

static int read_whole(const char *path, struct buf *bytes, struct error *err)
{
    char part[65536];
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        buf_append(bytes, part, n);
    bool is_whole = !ferror(file);
    (void)fclose(file);
    if (!is_whole || bytes->failed)
        return error_set(err, ERR_IO, "%s: cannot be read", path);
    return 0;
}

static int write_whole(const char *path, const struct buf *bytes, struct error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set(err, ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    bool is_written = fwrite(bytes->data, 1, bytes->len_bytes, file) == bytes->len_bytes;
    if (fclose(file) != 0 || !is_written)
        return error_set(err, ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

static int put_launcher(struct buf *object, const char *path, struct error *err)
{
    char launcher[PATH_MAX + sizeof "hpcrun"];
    tool_directory(launcher, PATH_MAX);
    (void)strcat(launcher, "hpcrun");
    char *mark = memmem(object->data, object->len_bytes, STATIC_PROGRAM_MARK, sizeof STATIC_PROGRAM_MARK - 1);
    size_t room = mark ? object->len_bytes - (size_t)(mark - object->data) : 0;
    if (room < sizeof STATIC_PROGRAM_MARK + STATIC_PROGRAM_PATH_BYTES)
        return error_set(err, ERR_FORMAT, "%s: is not the runtime's object", path);
    if (strlen(launcher) >= STATIC_PROGRAM_PATH_BYTES)
        return error_set(err, ERR_RANGE, "%s: this path is too long to be written into programs", launcher);
    memcpy(mark + sizeof STATIC_PROGRAM_MARK - 1, launcher, strlen(launcher) + 1);
    return 0;
}

/* Copies the object at path to copy and writes hpcrun's path into it.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
static int runtime_object_copy(const char *path, const char *copy, struct error *err)
{
    struct buf object = {0};
    int status = read_whole(path, &object, err);
    if (status == 0)
        status = put_launcher(&object, path, err);
    if (status == 0)
        status = write_whole(copy, &object, err);
    buf_fini(&object);
    return status;
}

/* --- the links --- */

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
                         "%s: becomes a dynamically linked program, which hpcrun measures as it is; hpclink is for "
                         "static ones (-static, -static-pie)",
                         work->line->output);
    if (inspect_contains(program, "__libc_setup_tls"))
        return 0;
    if (inspect_contains(program, "__init_libc") || inspect_contains(program, "__libc_start_init") ||
        inspect_contains(program, "__init_tp"))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: is linked with the musl C library, which the runtime does not support; link it with the "
                         "GNU C library",
                         work->line->output);
    return error_set(err, ERR_UNSUPPORTED,
                     "%s: is not linked with the GNU C library, which the runtime needs: nothing could be measured",
                     work->line->output);
}

static int inspect_program(struct work *work, struct error *err)
{
    struct error why;
    int status = inspect_file(work->plain, &work->program, &why);
    if (status == ERR_NOT_FOUND)
        return error_set(err, status,
                         "%s: is linked without a symbol table: what it consists of cannot be seen, and nothing could "
                         "be named in a report; link it without stripping",
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

/* The object comes first, so that the linker finds what it needs in the archives that follow. */
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

/* Says now what a report of this program will lack. */
static void say_findings(const struct work *work)
{
    const char *definer = work->references.definer;
    if (!work->references.n_callers)
        (void)fprintf(stderr,
                      "hpclink: warning: only the C library in %s calls an allocation function that can be "
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
