/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the collector: whatever a process leaves in its arena, its files are written or refused
 * with a message, and what was written is read again. Inputs: arena-input.h; seeds: arena-seeds.c. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "fmt/any.h"
#include "fmt/collect.h"

#include "arena-input.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

struct filling {
    char *base;
    size_t size_bytes;
    struct arena_header *header;
    struct arena_chunk *table;
    uint32_t n_chunks;
};

/* The next step; NULL at the end. */
static const uint8_t *next_step(const uint8_t **data, size_t *len_bytes, struct arena_step_head *head)
{
    if (*len_bytes < sizeof *head)
        return NULL;
    memcpy(head, *data, sizeof *head);
    const uint8_t *bytes = *data + sizeof *head;
    *len_bytes -= sizeof *head;
    head->kind %= ARENA_STEPS;
    head->n_bytes = head->n_bytes < *len_bytes ? head->n_bytes : (uint16_t)*len_bytes;
    *data = bytes + head->n_bytes;
    *len_bytes -= head->n_bytes;
    return bytes;
}

static uint32_t count_chunks(const uint8_t *data, size_t len_bytes)
{
    struct arena_step_head head;
    uint32_t n = 0;
    while (next_step(&data, &len_bytes, &head))
        n += head.kind == ARENA_STEP_CHUNK;
    return n < ARENA_INPUT_CHUNKS ? n : ARENA_INPUT_CHUNKS;
}

static void begin(struct filling *filling, uint32_t n_chunks)
{
    filling->size_bytes = arena_input_data() + (size_t)n_chunks * ARENA_CHUNK_BYTES;
    filling->base = calloc(1, filling->size_bytes);
    check(filling->base != NULL, "out of memory");
    filling->header = (void *)filling->base;
    filling->table = (void *)(filling->base + arena_input_table());
    memcpy(filling->header->magic, ARENA_MAGIC, 8);
    filling->header->version = ARENA_VERSION;
    filling->header->header_bytes = sizeof *filling->header;
    filling->header->size_bytes = filling->size_bytes;
    filling->header->chunk_table_offset = arena_input_table();
    filling->header->chunk_data_offset = arena_input_data();
    filling->header->chunk_limit = n_chunks;
    atomic_store(&filling->header->n_chunks, n_chunks);
}

static void add_chunk(struct filling *filling, const struct arena_step_head *head, const uint8_t *bytes)
{
    struct arena_chunk *chunk = &filling->table[filling->n_chunks++];
    atomic_store(&chunk->used_bytes, head->b ? head->b : ARENA_CHUNK_BYTES);
    chunk->kind = head->a;
    memcpy(&chunk->thread, bytes, head->n_bytes < 4 ? head->n_bytes : 4);
}

static void put(char *to, size_t limit_bytes, const struct arena_step_head *head, const uint8_t *bytes)
{
    size_t at = (size_t)head->b * 8 % limit_bytes;
    memcpy(to + at, bytes, head->n_bytes < limit_bytes - at ? head->n_bytes : limit_bytes - at);
}

static void fill(struct filling *filling, const uint8_t *data, size_t len_bytes)
{
    struct arena_step_head head;
    const uint8_t *bytes;
    while ((bytes = next_step(&data, &len_bytes, &head))) {
        if (head.kind == ARENA_STEP_HEADER)
            put(filling->base, sizeof *filling->header, &head, bytes);
        else if (head.kind == ARENA_STEP_CHUNK && filling->n_chunks < ARENA_INPUT_CHUNKS)
            add_chunk(filling, &head, bytes);
        else if (head.kind == ARENA_STEP_BYTES && filling->n_chunks)
            put(filling->base + arena_input_data() + (size_t)(filling->n_chunks - 1) * ARENA_CHUNK_BYTES,
                ARENA_CHUNK_BYTES, &head, bytes);
    }
}

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
    struct filling filling = {0};
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
    begin(&filling, count_chunks(data, len_bytes));
    fill(&filling, data, len_bytes);
    int code = collect_write(filling.base, filling.size_bytes, &context, &result, &err);
    check(code == 0 || err.text[0] != '\0', "a refusal has no message");
    if (code == 0)
        read_again(directory);
    free(filling.base);
    return 0;
}
