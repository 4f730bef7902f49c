/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the collector: whatever a process leaves in its arena, its files are written or refused
 * with a message, and what was written is read again. Inputs: arena-input.h; seeds: arena-seeds.c. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "collect/collect.h"
#include "import/any.h"

#include "arena-input.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static const char *symbol(void *ctx, uint64_t table_id, uint32_t index, bool tls, uint64_t *vaddr, uint64_t *size_bytes)
{
    (void)ctx;
    *vaddr = tls ? 0x40 : 0x9000 + 0x100 * (uint64_t)index;
    *size_bytes = 80;
    return table_id == 100 && index < 6 ? "grid" : NULL;
}

static bool function(void *ctx, uint64_t table_id, uint64_t vaddr, uint64_t *start)
{
    (void)ctx;
    *start = vaddr & ~(uint64_t)0xff;
    return table_id == 100;
}

static const char *kernel_function(uint64_t address, uint64_t *start, uint64_t *end)
{
    *start = address & ~(uint64_t)0xfff;
    *end = *start + 0x800;
    return address & 0x800 ? NULL : "do_sys";
}

static void read_again(const char *directory)
{
    DIR *dir = opendir(directory);
    check(dir != NULL, "the directory has gone");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[SCRATCH_PATH_MAX];
        struct any_file file = {0};
        struct error err = {0};
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int code = any_read(path, &file, &err);
        check(code == 0, err.text);
        any_fini(&file);
    }
    (void)closedir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    size_t size_bytes;
    char *arena = arena_input_fill(data, len_bytes, &size_bytes);
    struct collect_result result = {0};
    struct error err = {0};
    const char *directory = scratch_directory();
    struct collect_context context = {.dir = directory,
                                      .host_id = 0xabc,
                                      .host = "node7",
                                      .env_path = "/bin",
                                      .plan = "EADDR: no PMU here",
                                      .topology = "node7.xml",
                                      .state = "complete",
                                      .symbol = symbol,
                                      .function = function,
                                      .kernel_function = kernel_function};
    check(arena != NULL, "out of memory");
    int code = collect_write(arena, size_bytes, &context, &result, &err);
    check(code == 0 || err.text[0] != '\0', "a refusal has no message");
    if (code == 0)
        read_again(directory);
    free(arena);
    return 0;
}
