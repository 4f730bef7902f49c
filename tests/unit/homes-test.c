/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory nodes of pages: the kernel's answers about pages of this very process, what the collector makes of them,
 * and the files that hold them. */
#include "arena-maker.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "companion/state.h"

#define NODES 2

static struct arena_place *make_place_with_homes(struct maker *maker, uint32_t thread, uint64_t var, unsigned cpu,
                                                 uint64_t count, uint32_t *ref)
{
    struct arena_place *place = make_record(maker, thread, ARENA_PLACES, arena_place_bytes(NODES), ref);
    place->var = var;
    place->event = EADDR;
    place->cpu = (uint16_t)cpu;
    atomic_store(&place->count, count);
    return place;
}

static uint64_t count_of(const struct objects_variable *variable, uint32_t cpu, uint32_t home)
{
    uint64_t n = 0;
    for (size_t i = 0; i < variable->n_homes; i++)
        if (variable->homes[i].cpu == cpu && variable->homes[i].home == home)
            n += variable->homes[i].count;
    return n;
}

static void make_homes(struct maker *maker, struct paths *p)
{
    uint32_t ref;
    uint64_t var = var_key(VAR_HEAP, 0, p->alloc);
    maker->header->n_homes = NODES;
    (void)make_hit(maker, p->ref, p->leaf, EADDR, HIT_MEMORY, var, 100, 0);
    take(p, EADDR, 100);
    struct arena_place *place = make_place_with_homes(maker, p->ref, var, 3, 90, &ref);
    atomic_store(&place->homes[HOME_FIRST], 20);
    atomic_store(&place->homes[HOME_FIRST + 1], 50);
    atomic_store(&place->homes[HOME_MOVED], 4);
    place = make_place_with_homes(maker, p->ref, var, 0, 10, &ref);
    atomic_store(&place->homes[HOME_NONE], 3);
    maker->header->extents[7] = (struct arena_extent){
        .var = var, .n_pages = 1000, .n_asked = 64, .n_none = 4, .huge_bytes = UINT64_MAX, .n_on = {20, 40}};
}

static void test_files(void **state)
{
    (void)state;
    struct maker maker;
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    make_homes(&maker, &p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct objects_file file = read_objects(&maker, 0);
    const struct objects_variable *heap = variable_of(&file, VAR_HEAP, NULL);
    assert_int_equal(heap->n_homes, 3);
    assert_int_equal(count_of(heap, 3, 0), 20);
    assert_int_equal(count_of(heap, 3, 1), 50);
    assert_int_equal(count_of(heap, 0, OBJECTS_NO_HOME), 3);
    assert_int_equal(heap->n_moved, 4);
    assert_non_null(heap->pages);
    assert_int_equal(heap->pages->n_pages, 1000);
    assert_int_equal(heap->pages->n_asked, 64);
    assert_int_equal(heap->pages->n_none, 4);
    assert_true(heap->pages->huge_bytes == UINT64_MAX);
    assert_int_equal(heap->pages->n_on[0], 20);
    assert_int_equal(heap->pages->n_on[1], 40);
    objects_fini(&file);
    free_arena(&maker);
}

static void refuse(const char *part)
{
    struct objects_file file = {0};
    struct error err = {0};
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"format\": \"locus-objects\", \"version\": 1, \"state\": null, \"host\": null, \"exe\": null, "
                   "\"pid\": 0, \"tid\": 0, \"thread_id\": 0, \"rank\": 0, \"start_ns\": 0, \"end_ns\": 0, "
                   "\"cpu_time_ns\": 0, \"plan\": null, \"topology\": null, \"skid\": null, \"n_frames\": 0, "
                   "\"unwind_stops\": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0], \"placeholders\": [], \"events\": [], "
                   "\"variables\": [{\"node\": 1, \"kind\": \"heap\", \"name\": null, \"n_blocks\": 0, \"bytes\": 0, "
                   "\"n_blocks_freed\": 0, \"bytes_freed\": 0, \"max_block_bytes\": 0, "
                   "\"classes\": [0,0,0,0,0,0,0,0], \"n_inexact\": 0, \"cpus\": [], \"stack_offsets\": []%s}]}",
                   part);
    int code = objects_read_memory(text, strlen(text), "side", &file, &err);
    if (!*part) {
        assert_int_equal(code, 0);
        objects_fini(&file);
        return;
    }
    assert_int_equal(code, ERR_FORMAT);
    assert_non_null(strstr(err.text, part[3] == 'h' ? "homes" : "pages"));
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("");
    refuse(", \"homes\": [[0, 0, 64, 1]], \"n_moved\": 0");
    refuse(", \"homes\": [[0, 0, -2, 1]], \"n_moved\": 0");
    refuse(", \"homes\": [[0, 0]], \"n_moved\": 0");
    refuse(", \"homes\": 5, \"n_moved\": 0");
    refuse(", \"pages\": [1, 2, 3]");
    refuse(", \"pages\": [1, 2, 3, 4, 5]");
    refuse(", \"pages\": [1, 2, 3, -1, 64, 1]");
    refuse(", \"pages\": {}");
}

static uint32_t nodes_of(const char *text)
{
    char path[] = "/tmp/homes-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    uint32_t n = companion_homes_nodes(path);
    unlink(path);
    return n;
}

static void test_machine(void **state)
{
    (void)state;
    assert_int_equal(nodes_of("0\n"), 0);
    assert_int_equal(nodes_of("0-1\n"), 2);
    assert_int_equal(nodes_of("0,2-3\n"), 4);
    assert_int_equal(nodes_of("1\n"), 0);
    assert_int_equal(nodes_of("0-511\n"), ARENA_HOMES_MAX);
    assert_int_equal(nodes_of("3-1\n"), 0);
    assert_int_equal(nodes_of("nodes\n"), 0);
    assert_int_equal(nodes_of(""), 0);
    assert_int_equal(companion_homes_nodes("/nonexistent"), 0);
}

/* A process of the companion whose program is this one. */
static struct companion_process *begin(struct maker *maker)
{
    struct companion_process *process = calloc(1, sizeof *process);
    maker->header->n_homes = NODES;
    maker->header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    process->peer_pid = getpid();
    process->arena = maker->header;
    process->size_bytes = maker->size_bytes;
    process->table_offset = maker->header->chunk_table_offset;
    process->data_offset = maker->header->chunk_data_offset;
    process->chunk_limit = maker->header->chunk_limit;
    process->n_homes = NODES;
    process->page_bytes = maker->header->page_bytes;
    return process;
}

static struct arena_pages *make_ring(struct maker *maker, uint32_t thread)
{
    uint32_t ref;
    struct arena_pages *ring = make_record(maker, thread, ARENA_PAGES, sizeof *ring, &ref);
    ring->next = atomic_load(&maker->header->pages);
    atomic_store(&maker->header->pages, ref);
    return ring;
}

static void put(struct arena_pages *ring, const char *block, size_t n_bytes, size_t at, uint32_t place)
{
    uint64_t head = atomic_load(&ring->head);
    ring->pages[head % ARENA_PAGES_MAX] = (struct arena_page){
        .address = (uintptr_t)block + at, .start = (uintptr_t)block, .end = (uintptr_t)block + n_bytes, .place = place};
    atomic_store(&ring->head, head + 1);
}

/* The node of a page of ours, as the kernel says it. */
static int home_of(const char *address)
{
    void *page = (void *)((uintptr_t)address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
    int status = -1;
    return syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0) == 0 ? status : -1;
}

static void test_questions(void **state)
{
    (void)state;
    struct maker maker;
    struct companion c = {0};
    uint32_t ref, page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    size_t n_bytes = 64 * (size_t)page_bytes;
    char *block = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 1, n_bytes / 2);
    int home = home_of(block);
    if (home < 0 || home >= NODES) {
        munmap(block, n_bytes);
        skip();
    }
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    struct companion_process *process = begin(&maker);
    uint64_t var = var_key(VAR_HEAP, 0, p.alloc);
    struct arena_place *place = make_place_with_homes(&maker, p.ref, var, 0, 10, &ref);
    companion_homes_look(&c, process, 1000); /* nothing has been noted */
    assert_null(process->homes);
    struct arena_pages *ring = make_ring(&maker, p.ref);
    for (size_t i = 0; i < 4; i++)
        put(ring, block, n_bytes, i * page_bytes + 100, ref);
    put(ring, block, n_bytes, n_bytes - 1, ref); /* never written */
    companion_homes_look(&c, process, 2000);
    assert_int_equal(atomic_load(&place->homes[HOME_FIRST + home]), 4);
    assert_int_equal(atomic_load(&place->homes[HOME_NONE]), 1);
    assert_int_equal(atomic_load(&place->homes[HOME_MOVED]), 0);
    assert_int_equal(atomic_load(&ring->tail), 5);
    const struct arena_extent *extent = &maker.header->extents[0];
    assert_true(extent->var == var);
    assert_int_equal(extent->n_pages, 64);
    assert_int_equal(extent->n_asked, 64);
    assert_int_equal(extent->n_none, 32);
    assert_int_equal(extent->n_on[home], 32);
    put(ring, block, n_bytes, 100, ref);
    companion_homes_look(&c, process, 2001); /* not due yet */
    assert_int_equal(atomic_load(&ring->tail), 5);
    munmap(block, n_bytes);
    put(ring, block, n_bytes, 2 * page_bytes + 7, ref);
    companion_homes_end(&c, process); /* released meanwhile: what was known of the pages counts */
    assert_int_equal(atomic_load(&place->homes[HOME_FIRST + home]), 6);
    assert_int_equal(extent->n_on[home], 32);
    free(process->homes);
    free(process);
    free_arena(&maker);
}

/* Rings and places that the program has damaged are left alone. */
static void test_damage(void **state)
{
    (void)state;
    struct maker maker;
    struct companion c = {0};
    uint32_t ref;
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    struct companion_process *process = begin(&maker);
    struct arena_place *place = make_place_with_homes(&maker, p.ref, var_key(VAR_HEAP, 0, p.alloc), 0, 10, &ref);
    struct arena_pages *ring = make_ring(&maker, p.ref), *other = make_ring(&maker, p.ref);
    const uint32_t wrong[] = {0, 1, p.ref, ref + 1000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        put(ring, maker.base, 4096, 0, wrong[i]);
    atomic_store(&other->head, 1 << 20);            /* more than it can hold */
    ring->next = atomic_load(&maker.header->pages); /* a circle */
    companion_homes_look(&c, process, 1);
    assert_int_equal(atomic_load(&ring->tail), sizeof wrong / sizeof wrong[0]);
    assert_int_equal(atomic_load(&other->tail), 1 << 20);
    for (unsigned i = 0; i < HOME_FIRST + NODES; i++)
        assert_int_equal(atomic_load(&place->homes[i]), 0);
    atomic_store(&maker.header->pages, p.ref); /* no ring */
    companion_homes_end(&c, process);
    atomic_store(&maker.header->pages, UINT32_MAX);
    companion_homes_end(&c, process);
    free(process->homes);
    free(process);
    free_arena(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),     cmocka_unit_test(test_refusals), cmocka_unit_test(test_machine),
        cmocka_unit_test(test_questions), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
