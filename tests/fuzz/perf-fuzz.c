/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for files of perf: no input may crash or leak the reader, the dumps or the import, and what
 * is refused is refused with a message. Seeds: files of the tests' generator and, where perf is, recordings. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/load/perf-import.h"
#include "import/perf-data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static void empty_directory(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
}

static void import(const uint8_t *data, size_t len_bytes)
{
    static char directory[64];
    char path[64];
    struct model model;
    struct error err = {0};
    if (!directory[0])
        (void)snprintf(directory, sizeof directory, "/dev/shm/locus-fuzz-XXXXXX");
    if (access(directory, W_OK) != 0 && !mkdtemp(directory))
        abort();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes || model_init(&model, &err) != 0)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (perf_import(path, directory, &model, &err) != 0)
        check(err.text[0] != '\0', "an import fails without a message");
    model_fini(&model);
    (void)close(fd);
    empty_directory(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct perf_data file = {0};
    struct error err = {0};
    if (perf_data_read_memory(data, len_bytes, "fuzz", &file, &err) != 0) {
        check(err.text[0] != '\0' && !file.name, "a refusal has no message");
        return 0;
    }
    if (perf_data_check(&file, &err) != 0)
        check(err.text[0] != '\0', "a refusal has no message");
    struct buf text = {0}, json = {0};
    perf_data_put_text(&file, &text);
    perf_data_put_json(&file, &json);
    check(text.failed || text.len_bytes > 0, "a file has no dump");
    buf_fini(&text);
    buf_fini(&json);
    perf_data_fini(&file);
    import(data, len_bytes);
    return 0;
}
