/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the first inputs of arena-fuzz.c: arena-seeds DIRECTORY. They are arenas of the tests' maker, turned into
 * steps (arena-input.h). */
#include <stdio.h>
#include <string.h>

#include "arena-maker.h"

#include "arena-input.h"

static void put_step(FILE *out, uint8_t kind, uint8_t a, size_t b, const void *bytes, size_t n_bytes)
{
    struct step step = {kind, a, (uint16_t)b, (uint16_t)n_bytes};
    (void)fwrite(&step, sizeof step, 1, out);
    (void)fwrite(bytes, 1, n_bytes, out);
}

/* The words that are not zero, from runs separated by two zero words at least. */
static void put_words(FILE *out, uint8_t kind, const char *base, size_t from_bytes, size_t to_bytes)
{
    static const char zeros[16];
    size_t start = from_bytes;
    while (start < to_bytes) {
        if (!memcmp(base + start, zeros, 8)) {
            start += 8;
            continue;
        }
        size_t end = start;
        while (end < to_bytes && memcmp(base + end, zeros, end + 16 <= to_bytes ? 16 : 8) != 0)
            end += 8;
        end = end < to_bytes ? end : to_bytes;
        put_step(out, kind, 0, start / 8, base + start, end - start);
        start = end;
    }
}

static void save(struct maker *maker, const char *directory, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/seed-%s", directory, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(maker->header->chunk_data_offset, arena_input_data());
    put_words(out, ARENA_STEP_HEADER, maker->base, offsetof(struct arena_header, pid) & ~(size_t)7,
              sizeof *maker->header / 8 * 8);
    for (uint32_t i = 0; i < atomic_load(&maker->header->n_chunks); i++) {
        const struct arena_chunk *chunk = &maker->table[i];
        uint32_t used_bytes = atomic_load(&chunk->used_bytes);
        put_step(out, ARENA_STEP_CHUNK, (uint8_t)chunk->kind, used_bytes, &chunk->thread, chunk->thread ? 4 : 0);
        put_words(out, ARENA_STEP_BYTES, maker->base + arena_input_data() + (size_t)i * ARENA_CHUNK_BYTES, 0,
                  (used_bytes + 7) / 8 * 8);
    }
    (void)fclose(out);
    free_arena(maker);
}

static void save_samples(const char *directory)
{
    struct maker maker;
    make_arena(&maker);
    for (uint32_t id = 0; id < 2; id++) {
        struct paths p = make_paths(&maker, id);
        const struct arena_hit *hit =
            make_hit(&maker, p.ref, p.leaf, EADDR, HIT_MEMORY, var_key(VAR_HEAP, 0, p.alloc), 5, 0);
        make_hit(&maker, p.ref, p.leaf, EADDR, HIT_MEMORY, var_key(VAR_STATIC, 1, 2), 3, 0);
        make_hit(&maker, p.ref, p.leaf, EADDR, HIT_DEPENDENT, var_key(VAR_STACK, 4, p.work), 2, 0);
        make_hit(&maker, p.ref, p.leaf, EADDR, HIT_COMPUTE, 0, 7, 0);
        make_hit(&maker, p.ref, p.work, CPUTIME, HIT_PLAIN, 0, 2, 2000);
        make_hit(&maker, p.ref, p.alloc, HIT_EVENT_ALLOC, HIT_PLAIN, 0, 1, 4096);
        take(&p, EADDR, 17);
        take(&p, CPUTIME, 2);
        make_place(&maker, p.ref, var_key(VAR_HEAP, 0, p.alloc), EADDR, 1, 5);
        make_trace(&maker, p.thread, p.ref, hit, 1234, 64);
    }
    maker.header->trace = 1;
    save(&maker, directory, "samples");
}

static void save_one(const char *directory, const char *name, uint64_t var, enum hit_class class, unsigned event)
{
    struct maker maker;
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    make_hit(&maker, p.ref, p.leaf, event, class, var, 1, 10);
    take(&p, event, 1);
    save(&maker, directory, name);
}

int main(int argc, char **argv)
{
    static const char *const kinds[VAR_KINDS] = {"none",  "heap",  "mmap", "static", "tls",
                                                 "stack", "other", "file", "unknown"};
    if (argc != 2)
        return 2;
    save_samples(argv[1]);
    for (unsigned kind = 0; kind < VAR_KINDS; kind++)
        save_one(argv[1], kinds[kind], var_key(kind, 1, 1), HIT_MEMORY, EADDR);
    save_one(argv[1], "fault", var_key(VAR_UNKNOWN, 0, UNKNOWN_SMALL_BLOCK), HIT_KERNEL_ADDR, FAULTS);
    return 0;
}
