/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the arena writer and the call trees (runtime/record/arena-writer.h, runtime/record/cct.h). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/record/cct.h"

#define N_CHUNKS 128

static struct arena_header *arena_make(uint32_t n_chunks)
{
    size_t table = (sizeof(struct arena_header) + 4095) & ~(size_t)4095;
    size_t data = (table + n_chunks * sizeof(struct arena_chunk) + 65535) & ~(size_t)65535;
    size_t n_bytes = (data + (size_t)n_chunks * ARENA_CHUNK_BYTES + 65535) & ~(size_t)65535;
    struct arena_header *header = aligned_alloc(65536, n_bytes);
    assert_non_null(header);
    memset(header, 0, data + (size_t)n_chunks * ARENA_CHUNK_BYTES);
    header->size_bytes = data + (size_t)n_chunks * ARENA_CHUNK_BYTES;
    header->chunk_table_offset = table;
    header->chunk_data_offset = data;
    header->chunk_limit = n_chunks;
    atomic_store(&header->n_chunks, 1); /* reference 0 is "none" only because the header is there; keep chunk 0 free */
    arena_attach_sig(header);
    arena_shared_reset_sig();
    return header;
}

/* A new arena for a child, laid out as header's, in a memory file. */
static int child_make(const struct arena_header *header, struct arena_header **child)
{
    int fd = memfd_create("cct-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)header->size_bytes), 0);
    *child = mmap(NULL, header->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(*child, MAP_FAILED);
    (*child)->size_bytes = header->size_bytes;
    (*child)->chunk_table_offset = header->chunk_table_offset;
    (*child)->chunk_data_offset = header->chunk_data_offset;
    (*child)->chunk_limit = header->chunk_limit;
    memcpy((*child)->magic, ARENA_MAGIC, sizeof(*child)->magic);
    return fd;
}

static void arena_drop(struct arena_header *header)
{
    arena_attach_sig(NULL);
    free(header);
}

static void test_children_are_found_again(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, true));
    uint32_t refs[2000];
    uint64_t seed = 12345;
    for (int i = 0; i < 2000; i++) {
        uint64_t ip = (uint64_t)i * 7919 % 2003;
        refs[i] = cct_child_sig(&tree, tree.root, ip + 10, i % 3 ? 8 : 16);
        assert_int_not_equal(refs[i], 0);
    }
    for (int n = 0; n < 20000; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int i = (int)(seed >> 33) % 2000;
        assert_int_equal(cct_child_sig(&tree, tree.root, (uint64_t)i * 7919 % 2003 + 10, i % 3 ? 8 : 16), refs[i]);
    }
    const struct arena_node *node = arena_record_sig(refs[5]);
    assert_int_equal(node->parent, tree.root);
    assert_int_equal(node->ip, 5 * 7919 % 2003 + 10);
    arena_drop(header);
}

static void fill_path(struct unwind_path *path, const uintptr_t *pcs, uint32_t n, uint32_t n_reused)
{
    path->frames = path->store;
    path->n_frames = n;
    path->n_reused = n_reused;
    path->stop = UNWIND_COMPLETE;
    for (uint32_t i = 0; i < n; i++)
        path->frames[i].pc = pcs[i];
}

static void test_paths_share_their_callers(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    static struct unwind_path path;
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, true));
    fill_path(&path, (const uintptr_t[]){30, 20, 10}, 3, 0);
    uint32_t leaf = cct_insert_sig(&tree, &path);
    assert_int_equal(((struct arena_node *)arena_record_sig(leaf))->ip, 30);
    uint32_t middle = path.frames[1].node;
    path.frames[0].pc = 31;
    path.n_reused = 2;
    uint32_t other = cct_insert_sig(&tree, &path);
    assert_int_not_equal(other, leaf);
    assert_int_equal(((struct arena_node *)arena_record_sig(other))->parent, middle);
    path.n_reused = 3;
    assert_int_equal(cct_insert_sig(&tree, &path), other);
    fill_path(&path, (const uintptr_t[]){30, 20}, 2, 0);
    path.stop = UNWIND_GAP;
    (void)cct_insert_sig(&tree, &path);
    assert_int_equal(((struct arena_node *)arena_record_sig(path.frames[1].node))->parent, tree.partial);
    arena_drop(header);
}

static void test_hits_sum_by_key(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, false));
    struct cct_key a = {.var = var_key(VAR_HEAP, 0, 77), .event = 1};
    struct cct_key b = {.var = var_key(VAR_STATIC, 3, 77), .event = 1};
    for (int i = 0; i < 10; i++) {
        assert_non_null(cct_hit_sig(&tree, tree.root, &a, 1, 5));
        assert_non_null(cct_hit_sig(&tree, tree.root, &b, 2, 0));
    }
    struct arena_hit *hit_a = cct_hit_sig(&tree, tree.root, &a, 0, 0), *hit_b = cct_hit_sig(&tree, tree.root, &b, 0, 0);
    assert_int_equal(atomic_load(&hit_a->count), 10);
    assert_int_equal(atomic_load(&hit_a->weight), 50);
    assert_int_equal(atomic_load(&hit_b->count), 20);
    arena_drop(header);
}

/* Counts what a hit keeps: values below limit and all. */
static size_t kept_offsets(const struct arena_hit *hit, uint64_t limit, size_t *n_below)
{
    size_t n = 1;
    *n_below = atomic_load(&hit->first_offset) < limit;
    for (uint32_t ref = hit->offsets; ref;) {
        const struct arena_offsets *record = arena_record_sig(ref);
        for (uint32_t i = 0; i < record->n_values; i++, n++)
            *n_below += atomic_load(&record->values[i]) < limit;
        ref = record->next;
    }
    return n;
}

static void test_offsets_are_kept_fairly(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct cct_tree tree;
    size_t n_below = 0;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, false));
    struct cct_key key = {.var = var_key(VAR_HEAP, 0, 77)};
    struct arena_hit *hit = cct_hit_sig(&tree, tree.root, &key, 1, 0);
    cct_offset_sig(&tree, hit, 40);
    assert_int_equal(hit->offsets, 0); /* one is kept in the hit itself */
    assert_int_equal(atomic_load(&hit->first_offset), 40);
    for (uint64_t i = 1; i < ARENA_OFFSETS_MAX; i++)
        cct_offset_sig(&tree, hit, 40 + i);
    assert_int_equal(kept_offsets(hit, 40 + 32, &n_below), ARENA_OFFSETS_MAX);
    assert_int_equal(n_below, 32); /* all of them */
    for (uint64_t i = ARENA_OFFSETS_MAX; i < 40000; i++)
        cct_offset_sig(&tree, hit, 40 + i);
    assert_int_equal(atomic_load(&hit->n_offsets), 40000);
    assert_int_equal(kept_offsets(hit, 20000, &n_below), ARENA_OFFSETS_MAX);
    assert_in_range(n_below, 12, 52); /* half of them, five deviations wide */
    arena_drop(header);
}

static unsigned n_bits(const struct arena_lines *lines)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < lines->n_words; i++)
        n += (unsigned)__builtin_popcountll(atomic_load(&lines->bits[i]));
    return n;
}

/* A hit keeps the places of its first samples as they are, then all of them in a record of its lines. */
static void test_lines_of_all_samples_are_kept(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, false));
    uint64_t strided = pattern_with_slots(pattern_make(PATTERN_STRIDED, 0, 8, 8), 8, 1);
    struct cct_key keys[] = {{.var = 1, .pattern = strided},
                             {.var = 1, .pattern = pattern_make(PATTERN_IRREGULAR, 0, 0, 8)},
                             {.var = 1, .pattern = pattern_make(PATTERN_FIXED, 0, 0, 8)}};
    struct arena_hit *hits[3];
    for (int k = 0; k < 3; k++) {
        hits[k] = cct_hit_sig(&tree, tree.root, &keys[k], 1, 0);
        for (uint64_t i = 0; i < ARENA_OFFSETS_MAX; i++)
            cct_line_sig(&tree, hits[k], 0x700000000000 + i % 50 * 64 + 24, i * 8);
        assert_int_equal(hits[k]->lines, 0);
        assert_true(pattern_place_offset(atomic_load(&hits[k]->first_offset)) == 0);
        assert_int_equal(pattern_place_slot(atomic_load(&hits[k]->first_offset)), 6);
        for (uint64_t i = 0; i < 36; i++)
            cct_line_sig(&tree, hits[k], 0x700000000000 + (50 + i) * 64, PATTERN_NO_OFFSET);
    }
    assert_true(hits[0]->lines && hits[1]->lines && !hits[2]->lines);
    for (int k = 0; k < 2; k++) {
        const struct arena_lines *lines = arena_record_sig(hits[k]->lines);
        assert_int_equal(atomic_load(&lines->slots[6]), ARENA_OFFSETS_MAX);
        assert_int_equal(atomic_load(&lines->slots[0]), 36);
        assert_int_equal(atomic_load(&lines->last_line), 0x700000000000 / 64 + 85);
        assert_int_equal(atomic_load(&lines->n_paced), 27); /* all once the lines span 8 */
        assert_int_equal(lines->n_words, k ? ARENA_LINES_WORDS : 0);
        assert_in_range(n_bits(lines), k ? 80 : 0, k ? 86 : 0); /* 86 lines, some of which may share a bin */
    }
    arena_drop(header);
}

static struct arena_thread *thread_make(void)
{
    struct arena_cursor cursor = {0};
    struct arena_thread *thread = arena_reserve_sig(&cursor, ARENA_THREADS, 0, sizeof *thread);
    assert_non_null(thread);
    arena_publish_sig(&cursor);
    return thread;
}

static const struct arena_reach *reach_of(const struct arena_thread *thread, uint64_t var)
{
    for (unsigned i = 0; i < ARENA_REACH_BUCKETS; i++)
        if (thread->reaches[i] && ((const struct arena_reach *)arena_record_sig(thread->reaches[i]))->var == var)
            return arena_record_sig(thread->reaches[i]);
    return NULL;
}

static uint64_t bins_of(const struct arena_reach *reach)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < ARENA_REACH_BINS; i++)
        n += atomic_load(&reach->bins[i]);
    return n;
}

/* Loads and stores all over a block: bins, both ends, steps; and one line among thousands that has a sixth of all. */
static void test_reaches_of_a_block(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct arena_thread *thread = thread_make();
    struct cct_tree tree;
    const uint64_t start = 0x7f0000000000;
    assert_true(cct_init_sig(&tree, ARENA_NODES, arena_ref_sig(thread), false));
    struct cct_key key = {.var = var_key(VAR_HEAP, 0, 77)};
    struct arena_hit *hit = cct_hit_sig(&tree, tree.root, &key, CCT_REACH_LEAST - 1, 0);
    struct reach_sample sample = {start, 0, REACH_READS};
    assert_true(cct_reach_sig(&tree, hit, &sample, 1 << 20));
    assert_null(reach_of(thread, key.var));
    (void)cct_hit_sig(&tree, tree.root, &key, 1, 0);
    for (uint64_t i = 0; i < 4096; i++) {
        sample = (struct reach_sample){start + i * 256, i * 256, i % 4 ? REACH_READS : REACH_READS | REACH_WRITES};
        assert_true(cct_reach_sig(&tree, hit, &sample, 1 << 20));
        if (i % 5)
            continue;
        sample = (struct reach_sample){start + 640 + 12, 640 + 12, 0};
        assert_true(cct_reach_sig(&tree, hit, &sample, 1 << 20));
    }
    const struct arena_reach *reach = reach_of(thread, key.var);
    assert_non_null(reach);
    assert_int_equal(reach->shift, 14);
    assert_int_equal(bins_of(reach), 4096 + 820);
    assert_true(reach->n_loads == 3072 && reach->n_stores == 1024);
    assert_int_equal(reach->bins[63], 64);
    assert_int_equal(reach->bins[0], 64 + 820);
    assert_true(reach->first_offset == 0 && reach->last_offset == 4095 * 256);
    assert_true(reach->n_steps == 4096 + 820 - 1);
    /* all but those back to the hot line, or from it back to the second place; to it forward from the first */
    assert_int_equal(reach->n_forward, 4096 + 820 - 1 - 820);
    assert_true(reach->blocks[0] == start && reach->n_in_blocks[0] == 4096 + 820 && reach->n_in_blocks[1] == 0);
    unsigned hot = 0;
    while (hot < ARENA_REACH_LINES && reach->lines[hot] != (start + 640) / 64)
        hot++;
    assert_in_range(hot, 0, ARENA_REACH_LINES - 1);
    assert_in_range(reach->places[hot].slots[3], 800, 820);
    assert_int_equal(reach->places[hot].read_at, UINT64_C(1) << 12);
    assert_int_equal(reach->places[hot].written_at, 0);
    arena_drop(header);
}

/* A larger block gets a record with wider bins, which takes the small one's samples from then on, too. */
static void test_reaches_of_blocks_of_two_sizes(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    struct arena_thread *thread = thread_make();
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, arena_ref_sig(thread), false));
    struct cct_key key = {.var = var_key(VAR_STATIC, 1, 3)};
    struct arena_hit *hit = cct_hit_sig(&tree, tree.root, &key, 9, 0);
    const uint64_t sizes[] = {64, 8192, 64, 0};
    const unsigned shifts[] = {0, 7, 7, 7};
    for (unsigned i = 0; i < 4; i++) {
        struct reach_sample sample = {0x500000 + i * 65536 + 63, 63, REACH_WRITES};
        assert_true(cct_reach_sig(&tree, hit, &sample, sizes[i]));
        assert_int_equal(reach_of(thread, key.var)->shift, shifts[i]);
    }
    const struct arena_reach *reach = reach_of(thread, key.var);
    assert_int_equal(reach->bins[0], 3);
    const struct arena_reach *older = arena_record_sig(reach->next);
    assert_true(older->shift == 0 && older->bins[63] == 1 && older->next == 0);
    for (unsigned i = 0; i < 70000; i++) { /* a slot holds 65535 */
        struct reach_sample sample = {0x500000, 0, i % 2 ? REACH_WRITES : REACH_READS};
        assert_true(cct_reach_sig(&tree, hit, &sample, 64));
    }
    for (unsigned i = 0; i < ARENA_REACH_LINES; i++)
        if (reach->lines[i] == 0x500000 / 64) {
            assert_in_range(reach->places[i].slots[0], 30000, 40000);
            assert_in_range(reach->places[i].n_stores, 15000, 20000);
        }
    arena_drop(header);
}

static void test_full_arena_keeps_few_offsets(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(3);
    struct cct_tree tree;
    size_t n_below = 0;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, false));
    struct cct_key key = {.var = var_key(VAR_HEAP, 0, 77)};
    struct arena_hit *hit = cct_hit_sig(&tree, tree.root, &key, 1, 0);
    for (uint64_t i = 0; i < 1000; i++)
        cct_offset_sig(&tree, hit, i);
    assert_int_equal(atomic_load(&hit->n_offsets), 1000);
    assert_int_equal(kept_offsets(hit, 1000, &n_below), 1);
    arena_drop(header);
}

/* In builds for tests, whoever writes beyond a run of the arena is stopped on the spot. */
static void test_a_broken_invariant_stops(void **state)
{
    (void)state;
#ifdef LOCUS_ASSERTS
    struct arena_header *header = arena_make(N_CHUNKS);
    struct arena_cursor cursor = {0};
    assert_non_null(arena_reserve_sig(&cursor, ARENA_HITS, 0, sizeof(struct arena_hit)));
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGILL, SIG_DFL); /* cmocka has handlers */
        (void)signal(SIGTRAP, SIG_DFL);
        cursor.position = cursor.end + ARENA_UNIT;
        arena_publish_sig(&cursor);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    arena_publish_sig(&cursor);
    arena_drop(header);
#else
    skip();
#endif
}

static void test_full_arena_refuses(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(3);
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, true));
    uint32_t n = 0;
    while (cct_child_sig(&tree, tree.root, n + 10, 0))
        n++;
    assert_in_range(n, ARENA_CHUNK_BYTES / sizeof(struct arena_node) - 3,
                    3 * ARENA_CHUNK_BYTES / sizeof(struct arena_node));
    assert_int_not_equal(cct_child_sig(&tree, tree.root, 10, 0), 0);
    arena_drop(header);
}

static void test_strings_are_published(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS);
    assert_true(arena_shared_begin_sig());
    assert_false(arena_shared_begin_sig());
    uint32_t ref = arena_shared_string_sig("/usr/lib/libx.so");
    arena_shared_end_sig();
    const struct arena_string *string = arena_record_sig(ref);
    assert_string_equal(string->text, "/usr/lib/libx.so");
    assert_int_equal(string->len_bytes, 16);
    arena_drop(header);
}

/* Paths and strings go to the child under the same references, counts stay with the parent. */
static void test_child_inherits_paths_without_counts(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS), *child;
    struct cct_tree tree;
    assert_true(cct_init_sig(&tree, ARENA_NODES, 0, true));
    uint32_t ref = cct_child_sig(&tree, tree.root, 0x1234, 8);
    struct arena_cursor cursor = {0};
    struct arena_hit *hit = arena_reserve_sig(&cursor, ARENA_HITS, 0, sizeof *hit);
    assert_non_null(hit);
    atomic_store(&hit->count, 7);
    arena_publish_sig(&cursor);
    struct arena_node *node = arena_record_sig(ref);
    node->hits = arena_ref_sig(hit);
    assert_true(arena_shared_begin_sig());
    uint32_t string_ref = arena_shared_string_sig("/usr/lib/libx.so");
    arena_shared_end_sig();
    int fd = child_make(header, &child);
    assert_true(arena_inherit(fd));
    const struct arena_node *copy = arena_at(child, ref);
    assert_int_equal(copy->ip, 0x1234);
    assert_int_equal(copy->hits, 0);
    const struct arena_string *string = arena_at(child, string_ref);
    assert_string_equal(string->text, "/usr/lib/libx.so");
    const struct arena_hit *none = arena_at(child, arena_ref_sig(hit));
    assert_int_equal(atomic_load(&none->count), 0);
    assert_int_equal(atomic_load(&child->n_chunks), atomic_load(&header->n_chunks));
    assert_int_equal(atomic_load(&hit->count), 7);
    close(fd);
    munmap(child, header->size_bytes);
    arena_drop(header);
}

/* References mean nothing in an arena that is laid out otherwise. */
static void test_child_refuses_another_layout(void **state)
{
    (void)state;
    struct arena_header *header = arena_make(N_CHUNKS), *child;
    int fd = child_make(header, &child);
    child->chunk_data_offset += ARENA_CHUNK_BYTES;
    assert_false(arena_inherit(fd));
    close(fd);
    munmap(child, header->size_bytes);
    arena_drop(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_are_found_again),
        cmocka_unit_test(test_paths_share_their_callers),
        cmocka_unit_test(test_hits_sum_by_key),
        cmocka_unit_test(test_offsets_are_kept_fairly),
        cmocka_unit_test(test_lines_of_all_samples_are_kept),
        cmocka_unit_test(test_reaches_of_a_block),
        cmocka_unit_test(test_reaches_of_blocks_of_two_sizes),
        cmocka_unit_test(test_a_broken_invariant_stops),
        cmocka_unit_test(test_full_arena_refuses),
        cmocka_unit_test(test_full_arena_keeps_few_offsets),
        cmocka_unit_test(test_strings_are_published),
        cmocka_unit_test(test_child_inherits_paths_without_counts),
        cmocka_unit_test(test_child_refuses_another_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
