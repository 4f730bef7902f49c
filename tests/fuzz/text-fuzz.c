/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the small readers of text: symbols of the kernel, names of files, markers of what is
 * being written, source files and the statements in them, structure files. The first byte chooses the reader. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>

#include "measurement/names.h"
#include "measurement/pending.h"
#include "structure/names/assign-name.h"
#include "structure/names/source-text.h"
#include "structure/xml/structure-file.h"
#include "symnames/symnames.h"

#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { LINES = 12 };

static void try_kernel_names(const char *path, const char *text)
{
    struct kernel_names *names = kernel_names_read(path);
    uint64_t start, end, address;
    for (const char *line = text; names && line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        address = strtoull(line, NULL, 16);
        const char *name = kernel_names_find(names, address, &start, &end);
        check(!name || (start <= address && address < end && strlen(name) > 0), "a function does not hold its address");
    }
    kernel_names_free(names);
}

static void try_names(const char *text)
{
    struct names_file file = {0};
    struct error err = {0};
    if (names_parse(text, &file, &err) != 0) {
        check(err.text[0] != '\0', "a refusal has no message");
        return;
    }
    char *path = names_path("dir", &file);
    struct names_file again = {0};
    check(path && names_parse(path, &again, &err) == 0, "a name that was made is refused");
    check(again.pid == file.pid && again.rank == file.rank && again.thread == file.thread, "a name changes");
    free(path);
}

/* The marker is held, so that its words count. */
static void try_marker(const char *directory, const char *text, size_t len_bytes)
{
    char path[SCRATCH_PATH_MAX], name[64];
    (void)snprintf(name, sizeof name, ".writing-%x-1", names_host_id());
    scratch_file(name, text, len_bytes, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && flock(fd, LOCK_EX) == 0, "the marker cannot be held");
    check(pending_wait(directory, 0) != PENDING_NONE, "a held marker is overlooked");
    (void)close(fd);
}

static void try_statement(const struct buf *statement, size_t offset)
{
    char name[64];
    const char *text = statement->data ? statement->data : "";
    for (unsigned i = 0; i < 3; i++) {
        static const char *const callees[] = {"malloc", "operator new", NULL};
        if (assign_name_find(text, callees[i], offset, name, sizeof name) == ASSIGN_NAME)
            check(name[0] && memchr(name, 0, sizeof name), "a variable has no name");
        (void)assign_name_fortran(text, i, name, sizeof name);
    }
    (void)assign_name_returns(text, "p");
    check(assign_name_function(text, name, sizeof name) != NULL, "a function has no name");
}

static void try_source(const char *path)
{
    struct source_text *source = source_text_new(NULL, NULL);
    for (uint32_t line = 0; source && line < LINES; line++) {
        struct buf statement = {0};
        size_t offset = 0;
        (void)source_text_line(source, path, line);
        if (source_text_statement(source, path, line, line * 3, &statement, &offset)) {
            check(offset <= statement.len_bytes, "a statement is shorter than its column");
            try_statement(&statement, offset);
        }
        buf_fini(&statement);
    }
    source_text_free(source);
}

static void try_structure(const char *text, size_t len_bytes)
{
    struct structure_file *file = NULL;
    struct buf copy = {0};
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct symbols_data variable;
    struct error err = {0};
    buf_append(&copy, text, len_bytes);
    int code = structure_file_read(&copy, "fuzz", &file, &err);
    buf_fini(&copy);
    if (code != 0) {
        check(err.text[0] != '\0', "a refusal has no message");
        return;
    }
    for (uint64_t vaddr = 0; vaddr < 64; vaddr++) {
        size_t n = structure_file_lookup(file, 0, vaddr, frames);
        check((n > 0) == (structure_file_function_at(file, 0, vaddr) != NULL), "an address has a function or not");
        if (structure_file_data_at(file, 0, vaddr, &variable))
            check(vaddr - variable.vaddr < variable.size_bytes, "a variable does not hold its address");
    }
    structure_file_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[SCRATCH_PATH_MAX];
    const char *directory = scratch_directory();
    char *text = malloc(len_bytes + 1);
    check(text != NULL, "out of memory");
    size_t n_text = len_bytes ? len_bytes - 1 : 0;
    memcpy(text, data + (len_bytes ? 1 : 0), n_text);
    text[n_text] = '\0';
    switch (len_bytes ? data[0] % 5 : 0) {
    case 0:
        scratch_file("kallsyms", text, n_text, path);
        try_kernel_names(path, text);
        break;
    case 1:
        try_names(text);
        break;
    case 2:
        try_marker(directory, text, n_text);
        break;
    case 3:
        scratch_file("source.c", text, n_text, path);
        try_source(path);
        break;
    default:
        try_structure(text, n_text);
    }
    free(text);
    return 0;
}
