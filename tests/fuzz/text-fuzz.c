/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the small readers of text: symbols of the kernel, names of files, markers of what is
 * being written, source files and the statements in them. The first byte chooses the reader. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>

#include "fmt/kernel-names.h"
#include "fmt/names.h"
#include "fmt/pending.h"
#include "structure/assign-name.h"
#include "structure/source-text.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[SCRATCH_PATH_MAX];
    const char *directory = scratch_directory();
    char *text = malloc(len_bytes + 1);
    check(text != NULL, "out of memory");
    size_t n_text = len_bytes ? len_bytes - 1 : 0;
    memcpy(text, data + (len_bytes ? 1 : 0), n_text);
    text[n_text] = '\0';
    switch (len_bytes ? data[0] % 4 : 0) {
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
    default:
        scratch_file("source.c", text, n_text, path);
        try_source(path);
    }
    free(text);
    return 0;
}
