/* SPDX-License-Identifier: BSD-3-Clause */
/* The collector against arenas made by hand: what must be in the files is known, record by record. Then the same arenas
 * with damage at random places: anything may come out, but nothing may crash, hang or leave half a file. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena-maker.h"
#include "arena/arena.h"
#include "fmt/events.h"
#include "fmt/log.h"
#include "fmt/trace.h"

/* A record of the reach in a variable: 5 samples, 2 of them stores at the start of its second line. */
static void make_reach(struct maker *maker, uint32_t thread, uint64_t var, uint8_t shift, uint64_t start)
{
    uint32_t ref;
    struct arena_reach *reach = make_record(maker, thread, ARENA_REACHES, sizeof *reach, &ref);
    reach->shift = shift;
    reach->var = var;
    reach->first_offset = 1;
    reach->last_offset = 70;
    reach->n_steps = 4;
    reach->n_forward = 3;
    reach->n_loads = 3;
    reach->n_stores = 2;
    reach->bins[0] = 3;
    reach->bins[shift < 64 ? 64 >> shift : 1] += 2;
    reach->blocks[2] = start;
    reach->n_in_blocks[2] = 5;
    reach->lines[7] = start / 64 + 1;
    reach->n_in_lines[7] = 9;
    reach->places[7].written_at = 1;
    reach->places[7].n_stores = 2;
    reach->places[7].slots[0] = 2;
}

static void make_full(struct maker *maker, struct paths p[2])
{
    make_arena(maker);
    maker->header->trace = 1;
    maker->header->start_ns = 100000;
    maker->header->start_mono_ns = 30000;
    p[0] = make_paths(maker, 0);
    p[1] = make_paths(maker, 1);
    uint64_t heap = var_key(VAR_HEAP, 0, p[0].alloc), grid = var_key(VAR_STATIC, 1, 2);
    (void)make_hit(maker, p[0].ref, p[0].alloc, HIT_EVENT_FREE, 0, 0, 3, 6000);
    (void)make_hit(maker, p[0].ref, p[0].alloc, HIT_EVENT_ALLOC, 0, 0, 4, 8192);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t r = p[i].ref, leaf = p[i].leaf;
        struct arena_hit *hit = make_hit(maker, r, leaf, EADDR, HIT_MEMORY, heap, 10, 0);
        hit->flags = i ? HIT_FLAG_INEXACT : 0;
        (void)make_hit(maker, r, leaf, EADDR, HIT_DEPENDENT, grid, 5, 0);
        (void)make_hit(maker, r, leaf, EADDR, HIT_COMPUTE, 0, 3, 0);
        const struct arena_hit *lost_hit = make_hit(maker, r, p[i].work, EADDR, HIT_LOST, 0, 2, 0);
        (void)make_hit(maker, r, p[i].work, EADDR, HIT_SYSCALL, 0, 1, 0);
        (void)make_hit(maker, r, leaf, FAULTS, HIT_KERNEL_ADDR, heap, 7, 0);
        (void)make_hit(maker, r, leaf, FAULTS, HIT_KERNEL_ADDR, var_key(VAR_UNKNOWN, 0, UNKNOWN_NULL), 2, 0);
        const struct arena_hit *plain = make_hit(maker, r, leaf, CPUTIME, HIT_PLAIN, 0, 4, 2000000);
        (void)make_hit(maker, r, leaf, EADDR, HIT_MEMORY, var_key(VAR_STACK, 4, p[i].work), 2, 0);
        (void)make_hit(maker, r, leaf, EADDR, HIT_MEMORY, var_key(VAR_STACK, 9, p[i].work), 1, 0);
        (void)make_hit(maker, r, leaf, EADDR, HIT_MEMORY, var_key(VAR_STACK_OTHER, 0, p[1 - i].ref), 1, 0);
        (void)make_hit(maker, r, leaf, EADDR, HIT_MEMORY, var_key(VAR_TLS, 1, 0), 1, 0);
        uint32_t lost = make_node(maker, r, ARENA_NODES, p[i].thread->partial, 0xdead0000, 0);
        (void)make_hit(maker, r, lost, EADDR, HIT_MEMORY, grid, 1, 0);
        make_place(maker, r, heap, EADDR, 3, 8);
        make_place(maker, r, heap, EADDR, 5, 2);
        make_place(maker, r, heap, FAULTS, 3, 7);
        /* one that had to wait comes late */
        make_trace(maker, p[i].thread, r, hit, 5000, 4096);
        make_trace(maker, p[i].thread, r, plain, 7000, ARENA_TRACE_NO_OFFSET);
        make_trace(maker, p[i].thread, r, lost_hit, 6000, ARENA_TRACE_NO_OFFSET);
        take(&p[i], EADDR, 27);
        take(&p[i], FAULTS, 9);
        take(&p[i], CPUTIME, 4);
    }
    uint32_t name = make_string(maker, "/data/input");
    (void)make_hit(maker, p[0].ref, p[0].leaf, EADDR, HIT_MEMORY, var_key(VAR_FILE, 0, name), 1, 0);
}

static void test_ordinary_tree(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    assert_false(maker.result.was_empty);
    assert_int_equal(maker.result.n_samples, 80);
    assert_int_equal(maker.result.n_files, 9);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    assert_string_equal(profile.version, "03.10");
    assert_string_equal(hpcrun_pair_value(&profile, "program-path"), "/bin/app");
    assert_string_equal(hpcrun_pair_value(&profile, "host-id"), "abc");
    assert_string_equal(hpcrun_pair_value(&profile, "trace-min-time"), "105000");
    assert_string_equal(hpcrun_pair_value(&profile, "trace-max-time"), "107000");
    assert_int_equal(profile.n_metrics, 4);
    assert_string_equal(profile.metrics[0].name, "Size (byte)");
    assert_int_equal(profile.metrics[0].flags[6], 0);
    assert_int_equal(profile.metrics[1].period, 1000);
    assert_int_equal(profile.nodes[0].parent, 0);
    size_t main = child(&profile, 0, "/bin/app", 0x1105), work = child(&profile, main, "/bin/app", 0x1205);
    size_t leaf = child(&profile, work, "/bin/app", 0x1310), alloc = child(&profile, main, "/bin/app", 0x1420);
    size_t partial = child(&profile, 0, "", 1), lost = child(&profile, partial, "", 0xdead0000);
    assert_int_equal(profile.nodes[leaf].type, HPCRUN_NODE_LEAF);
    assert_int_equal(profile.nodes[alloc].type, HPCRUN_NODE_LEAF | HPCRUN_NODE_ALLOCATION);
    assert_true(value(&profile, leaf, "EADDR (usec)") == 24000);
    assert_true(value(&profile, leaf, "FAULTS") == 9);
    assert_true(value(&profile, leaf, "CPUTIME (usec)") == 2000);
    assert_true(value(&profile, work, "EADDR (usec)") == 3000);
    assert_true(value(&profile, lost, "EADDR (usec)") == 1000);
    assert_true(value(&profile, alloc, "Size (byte)") == 8192);
    for (size_t i = 0; i < profile.n_modules; i++)
        assert_string_not_equal(profile.modules[i].path, "/lib/libunused.so");
    hpcrun_fini(&profile);
    free_arena(&maker);
}

static void test_data_tree(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    for (unsigned thread = 0; thread < 2; thread++) {
        double data, code;
        struct hpcrun_profile profile = read_profile(&maker, thread);
        size_t root = placeholder(&profile, 0, PLACEHOLDER_ROOT);
        size_t dynamic = placeholder(&profile, root, PLACEHOLDER_DYNAMIC);
        size_t heap = child(&profile, child(&profile, dynamic, "/bin/app", 0x1105), "/bin/app", 0x1420);
        size_t access = placeholder(&profile, heap, PLACEHOLDER_ACCESS);
        size_t main = child(&profile, access, "/bin/app", 0x1105);
        size_t leaf = child(&profile, child(&profile, main, "/bin/app", 0x1205), "/bin/app", 0x1310);
        size_t grid = child(&profile, placeholder(&profile, root, PLACEHOLDER_STATIC), "/bin/app", 0x9201);
        size_t tls = child(&profile, placeholder(&profile, root, PLACEHOLDER_TLS), "/bin/app", 0x41);
        size_t stack = child(&profile, placeholder(&profile, root, PLACEHOLDER_STACK), "/bin/app", 0x1201);
        size_t unknown = placeholder(&profile, root, PLACEHOLDER_UNKNOWN);
        (void)placeholder(&profile, unknown, PLACEHOLDER_NO_COMPUTE);
        (void)placeholder(&profile, unknown, PLACEHOLDER_NO_LOST);
        (void)placeholder(&profile, unknown, PLACEHOLDER_NO_SYSCALL);
        (void)placeholder(&profile, unknown, PLACEHOLDER_REASON + UNKNOWN_NULL);
        assert_int_equal(profile.nodes[root].type, HPCRUN_NODE_ROOT);
        assert_int_equal(profile.nodes[dynamic].type, 0);
        assert_int_equal(profile.nodes[heap].type, HPCRUN_NODE_ALLOCATION);
        assert_int_equal(profile.nodes[access].type, HPCRUN_NODE_MEMACCESS);
        assert_int_equal(profile.nodes[leaf].type, HPCRUN_NODE_MEMACCESS);
        assert_int_equal(profile.nodes[grid].type, HPCRUN_NODE_GLOBAL_VARIABLE);
        assert_int_equal(profile.nodes[tls].type, HPCRUN_NODE_GLOBAL_VARIABLE);
        assert_int_equal(profile.nodes[stack].type, 0);
        assert_int_equal(profile.nodes[unknown].type, HPCRUN_NODE_UNKNOWN_ATTRIBUTE);
        assert_true(value(&profile, leaf, "EADDR (usec)") == 10000);
        assert_true(value(&profile, leaf, "FAULTS") == 7);
        assert_true(value(&profile, leaf, "CPUTIME (usec)") == 0);
        /* Sizes stand where the blocks were allocated, and statics' once, so that sums over threads are right. */
        assert_true(value(&profile, heap, "Size (byte)") == (thread ? 0 : 8192));
        assert_true(value(&profile, grid, "Size (byte)") == (thread ? 0 : 80));
        totals(&profile, "EADDR (usec)", &data, &code);
        assert_true(data == code && code == 27000 + (thread ? 0 : 1000));
        totals(&profile, "FAULTS", &data, &code);
        assert_true(data == code && code == 9);
        totals(&profile, "CPUTIME (usec)", &data, &code);
        assert_true(data == 0 && code == 2000);
        hpcrun_fini(&profile);
    }
    free_arena(&maker);
}

static void test_side_file(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct objects_file file = read_objects(&maker, 0), second = read_objects(&maker, 1);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    const struct objects_variable *heap = variable_of(&file, VAR_HEAP, NULL);
    size_t dynamic = placeholder(&profile, placeholder(&profile, 0, PLACEHOLDER_ROOT), PLACEHOLDER_DYNAMIC);
    size_t node = child(&profile, child(&profile, dynamic, "/bin/app", 0x1105), "/bin/app", 0x1420);
    assert_int_equal(heap->node, profile.nodes[node].id);
    assert_int_equal(heap->n_blocks, 4);
    assert_int_equal(heap->bytes, 8192);
    assert_int_equal(heap->n_blocks_freed, 3);
    assert_int_equal(heap->bytes_freed, 6000);
    assert_int_equal(heap->classes[HIT_MEMORY], 10);
    assert_int_equal(heap->n_inexact, 0);
    assert_int_equal(variable_of(&second, VAR_HEAP, NULL)->n_inexact, 10);
    assert_int_equal(variable_of(&second, VAR_HEAP, NULL)->n_blocks, 0);
    assert_int_equal(heap->n_cpus, 3);
    assert_int_equal(heap->cpus[1].cpu, 5);
    assert_int_equal(heap->cpus[1].count, 2);
    assert_int_equal(variable_of(&file, VAR_STATIC, "grid")->bytes, 80);
    assert_int_equal(variable_of(&file, VAR_STATIC, "grid")->classes[HIT_DEPENDENT], 5);
    assert_int_equal(variable_of(&file, VAR_STACK, NULL)->n_stack_offsets, 2);
    (void)variable_of(&file, VAR_TLS, "counter");
    (void)variable_of(&file, VAR_FILE, "/data/input");
    (void)variable_of(&file, VAR_STACK_OTHER, "stack of thread 1");
    assert_int_equal(file.n_events, 3);
    assert_int_equal(file.events[EADDR].taken, 27);
    assert_int_equal(file.n_placeholders, PLACEHOLDER_MAX);
    assert_int_equal(file.placeholders[0].ip, 0x1001);
    assert_string_equal(file.placeholders[0].name, "DATACENTRIC");
    assert_string_equal(file.host, "node7");
    hpcrun_fini(&profile);
    objects_fini(&file);
    objects_fini(&second);
    free_arena(&maker);
}

/* Traced nodes keep their (odd) ids, and ids are unique in the process. */
static void test_trace_and_ids(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    int32_t last_id = 11;
    for (unsigned thread = 0; thread < 2; thread++) {
        struct trace_file trace = {0};
        struct error error = {0};
        struct hpcrun_profile profile = read_profile(&maker, thread);
        char *path = path_of_file(&maker, thread, "hpctrace");
        assert_int_equal(trace_read(path, &trace, &error), 0);
        size_t main = child(&profile, 0, "/bin/app", 0x1105), work = child(&profile, main, "/bin/app", 0x1205);
        size_t leaf = child(&profile, work, "/bin/app", 0x1310);
        assert_int_equal(trace.n_records, 3);
        assert_int_equal(trace.records[0].time, 105000);
        assert_int_equal(trace.flags, TRACE_FLAG_DATACENTRIC);
        assert_int_equal(trace.records[0].metric, find_metric(&profile, "EADDR (usec)"));
        assert_int_equal(trace.records[2].metric, find_metric(&profile, "CPUTIME (usec)"));
        assert_int_equal(trace.records[0].node, -profile.nodes[leaf].id);
        assert_int_equal(trace.records[1].node, profile.nodes[work].id);
        for (size_t i = 0; i < profile.n_nodes; i++) {
            int32_t id = abs(profile.nodes[i].id);
            assert_true(id > last_id && (id & 1) == (i == leaf || i == work));
            last_id = id;
        }
        trace_fini(&trace);
        hpcrun_fini(&profile);
        free(path);
    }
    free_arena(&maker);
}

/* The same samples with all that is known of them; the variable is that of the side file. */
static void test_events(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    atomic_store(&p[1].thread->n_untraced, 1);
    atomic_store(&p[1].thread->n_traced, 9);
    struct collect_context context = context_of(&maker);
    context.wall_ns = 70500;
    collect(&maker, &context);
    for (unsigned thread = 0; thread < 2; thread++) {
        struct events_file log = {0};
        struct error error = {0};
        struct objects_file side = read_objects(&maker, thread);
        char *path = path_of_file(&maker, thread, "events");
        assert_int_equal(events_read(path, &log, &error), 0);
        assert_int_equal(log.n_records, 3);
        assert_true(log.wall_ns == 70000 && log.wall_at_end_ns == 70500 && log.stride == 1);
        assert_int_equal(events_thinned(&log), thread ? 5 : 0);
        const struct events_record *first = &log.records[0];
        const struct events_access *access = &log.accesses[first->access], *last = &log.accesses[log.records[2].access];
        assert_true(first->t_ns == 35000 && first->cpu == 3 && first->lat_cycles == 7 && first->offset == 4096);
        assert_int_equal(access->variable, variable_of(&side, VAR_HEAP, NULL)->node);
        assert_int_equal(access->flags, thread ? EVENTS_INEXACT : 0);
        assert_string_equal(log.sources[access->source].name, "EADDR");
        assert_true(log.accesses[log.records[1].access].class == HIT_LOST && log.records[1].t_ns == 36000);
        assert_true(log.records[2].offset == EVENTS_NO_OFFSET && last->variable == 0 && last->node == access->node);
        assert_string_equal(log.sources[last->source].name, "CPUTIME");
        events_fini(&log);
        objects_fini(&side);
        free(path);
    }
    free_arena(&maker);
}

static void test_log(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    struct log_summary summary = {0};
    struct error error = {0};
    make_full(&maker, p);
    (void)snprintf(maker.header->log, sizeof maker.header->log, "first line\nsecond line\n");
    atomic_store(&maker.header->log_len_bytes, 23);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    char *path = path_of_file(&maker, 0, "log");
    assert_int_equal(log_read(path, &summary, &error), 0);
    assert_int_equal(summary.n_complete, 1);
    assert_int_equal(summary.samples, 80);
    assert_int_equal(summary.recorded, 80);
    assert_int_equal(summary.n_events, 3);
    assert_non_null(strstr(summary.messages[1], "second line"));
    log_fini(&summary);
    free(path);
    free_arena(&maker);
}

static void test_leaks(void **state)
{
    (void)state;
    struct maker maker;
    make_arena(&maker);
    maker.header->n_events = 0;
    make_event(&maker, "Bytes Allocated", "MEMLEAK", SOURCE_MEMLEAK, EVENT_WEIGHTED | EVENT_INTEGER, 1);
    struct paths p = make_paths(&maker, 0);
    (void)make_hit(&maker, p.ref, p.alloc, HIT_EVENT_FREE, 0, 0, 1, 1000);
    (void)make_hit(&maker, p.ref, p.alloc, HIT_EVENT_ALLOC, 0, 0, 5, 5000);
    arena_mark_live(maker.header, 17);
    (void)make_hit(&maker, p.ref, p.alloc, HIT_EVENT_FREE, 0, 0, 2, 2000);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    assert_int_equal(profile.n_metrics, 5);
    size_t alloc = child(&profile, child(&profile, 0, "/bin/app", 0x1105), "/bin/app", 0x1420);
    assert_true(value(&profile, alloc, "Bytes Allocated") == 5000);
    assert_true(value(&profile, alloc, "Bytes Freed") == 3000);
    assert_true(value(&profile, alloc, "Bytes Leaked") == 2000);
    assert_true(value(&profile, alloc, "Bytes Live at Mark") == 4000);
    /* The data-centric tree has the same, below the variable. */
    size_t n_roots = 0, n_same = 0;
    for (size_t i = 0; i < profile.n_nodes; i++) {
        n_roots += (profile.nodes[i].type & HPCRUN_NODE_ROOT) != 0;
        n_same += i != alloc && value(&profile, i, "Bytes Leaked") == 2000;
    }
    assert_int_equal(n_roots, 1);
    assert_int_equal(n_same, 1);
    hpcrun_fini(&profile);
    free_arena(&maker);
}

static void test_empty(void **state)
{
    (void)state;
    struct maker maker;
    struct error error = {0};
    make_arena(&maker);
    (void)make_paths(&maker, 0);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    assert_true(maker.result.was_empty);
    assert_int_equal(maker.result.n_files, 0);
    maker.header->magic[0] = 'x';
    assert_int_equal(collect_write(maker.base, maker.size_bytes, &context, &maker.result, &error), ERR_FORMAT);
    assert_int_equal(collect_write(maker.base, 100, &context, &maker.result, &error), ERR_FORMAT);
    free_arena(&maker);
}

static size_t count_files(const char *directory)
{
    size_t n = 0;
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

/* A process that is written again and again, and learns its rank on the way, has one set of files. */
static void test_checkpoints(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    struct error error = {0};
    struct names_file name;
    make_full(&maker, p);
    struct collect_context context = context_of(&maker);
    assert_int_equal(collect_claim(maker.base, maker.size_bytes, &context, &name, &error), 0);
    context.claimed = &name;
    collect(&maker, &context);
    assert_int_equal(count_files(maker.dir), 9);
    (void)make_hit(&maker, p[0].ref, p[0].leaf, EADDR, HIT_COMPUTE, 0, 100, 0);
    atomic_store(&maker.header->rank, 3);
    collect(&maker, &context);
    assert_int_equal(maker.name.rank, 3);
    assert_int_equal(maker.name.generation, name.generation);
    assert_int_equal(count_files(maker.dir), 9);
    struct hpcrun_profile profile = read_profile(&maker, 0);
    assert_string_equal(hpcrun_pair_value(&profile, "mpi-rank"), "3");
    double data, code;
    totals(&profile, "EADDR (usec)", &data, &code);
    assert_true(data == code && code == 128000);
    hpcrun_fini(&profile);
    free_arena(&maker);
}

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Overwrites words of the records, of the chunk table or of the header with values that look like references. */
static void damage(struct maker *maker, uint64_t *random)
{
    uint32_t n_chunks = atomic_load(&maker->header->n_chunks);
    uint64_t n_words = next_random(random) % 40 + 1;
    for (uint64_t i = 0; i < n_words; i++) {
        uint64_t start = maker->header->chunk_data_offset, length = (uint64_t)n_chunks * ARENA_CHUNK_BYTES;
        uint64_t where = next_random(random) % 8;
        if (where == 0) {
            start = maker->header->chunk_table_offset;
            length = n_chunks * sizeof(struct arena_chunk);
        } else if (where == 1) {
            start = 64;
            length = sizeof(struct arena_header) - 64;
        } else {
            uint64_t chunk = next_random(random) % n_chunks;
            start += chunk * ARENA_CHUNK_BYTES;
            length = maker->table[chunk].used_bytes < 64 || maker->table[chunk].used_bytes > RUN * ARENA_CHUNK_BYTES
                         ? 64
                         : maker->table[chunk].used_bytes;
        }
        uint32_t value = (uint32_t)next_random(random);
        if (value % 4)
            value =
                (uint32_t)((maker->header->chunk_data_offset + value % ((uint64_t)n_chunks * ARENA_CHUNK_BYTES)) / 8);
        memcpy(maker->base + start + next_random(random) % (length / 4) * 4, &value, sizeof value);
    }
}

/* Records of one variable with bins of two widths become one summary; of an unknown width they are left out. */
static void test_reaches(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    make_full(&maker, p);
    uint64_t grid = var_key(VAR_STATIC, 1, 2);
    make_reach(&maker, p[0].ref, grid, 3, 0x9200);
    make_reach(&maker, p[0].ref, grid, 6, 0x9200);
    make_reach(&maker, p[0].ref, grid, 200, 0x9200);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct objects_file file = read_objects(&maker, 0);
    const struct reach *reach = variable_of(&file, VAR_STATIC, "grid")->reach;
    assert_non_null(reach);
    assert_null(variable_of(&file, VAR_HEAP, NULL)->reach);
    assert_true(reach->sum.shift == 6 && reach->sum.first == 1 && reach->sum.last == 70);
    assert_true(reach->sum.bins[0] == 6 && reach->sum.bins[1] == 4 && reach_total(&reach->sum) == 10);
    assert_true(reach->sum.n_loads == 6 && reach->sum.n_stores == 4);
    assert_true(reach->sum.n_steps == 8 && reach->sum.n_forward == 6);
    assert_true(reach->sum.blocks[0].address == 0x9200 && reach->sum.blocks[0].count == 10);
    assert_int_equal(reach->n_lines, 1);
    assert_true(reach->lines[0].line == 0x9200 / 64 + 1 && reach->lines[0].slots[0] == 4);
    assert_true(reach->lines[0].n_stores == 4 && reach->lines[0].written_at == 1 && reach->lines[0].read_at == 0);
    objects_fini(&file);
    free_arena(&maker);
}

static void test_damage(void **state)
{
    (void)state;
    struct maker maker;
    struct paths p[2];
    uint64_t random = 88172645463325252u;
    size_t n_written = 0;
    make_full(&maker, p);
    maker.header->events[EADDR].flags |= EVENT_DATA_SRC;
    uint32_t ref;
    ((struct arena_sketch *)make_record(&maker, p[0].ref, ARENA_SKETCHES, sizeof(struct arena_sketch), &ref))->bins[9] =
        3;
    make_reach(&maker, p[1].ref, var_key(VAR_STATIC, 1, 2), 3, 0x9200);
    char *whole = malloc(maker.size_bytes);
    assert_non_null(whole);
    memcpy(whole, maker.base, maker.size_bytes);
    const char *rounds = getenv("LOCUS_DAMAGE_ROUNDS");
    for (int i = 0; i < (rounds ? atoi(rounds) : 300); i++) {
        struct error error = {0};
        struct collect_context context = context_of(&maker);
        memcpy(maker.base, whole, maker.size_bytes);
        damage(&maker, &random);
        int code = collect_write(maker.base, maker.size_bytes, &context, &maker.result, &error);
        assert_true(code == 0 || error.text[0]);
        n_written += code == 0 && !maker.result.was_empty;
        for (unsigned thread = 0; thread < 2 && code == 0 && !maker.result.was_empty; thread++) {
            struct hpcrun_profile profile = {0};
            maker.name = maker.result.name;
            char *path = path_of_file(&maker, thread, "hpcrun");
            if (access(path, R_OK) == 0)
                assert_int_equal(hpcrun_read(path, &profile, &error), 0);
            hpcrun_fini(&profile);
            free(path);
        }
        remove_directory(maker.dir);
        assert_non_null(mkdtemp(strcpy(maker.dir, "/tmp/collect-test-XXXXXX")));
    }
    assert_true(n_written > 0);
    free(whole);
    free_arena(&maker);
}

/* A sample of the first 64 lines of an array, at element i. */
static uint64_t place_of(unsigned i)
{
    return pattern_place(0x7f0000000000 + 8 * (uint64_t)i, 8 * (uint64_t)i);
}

/* A hit with one sample for each of n elements from the first on; more than a few have a record of their lines. */
static void make_walk(struct maker *maker, const struct paths *p, uint32_t node, uint64_t pattern, unsigned first,
                      unsigned n)
{
    uint64_t heap = var_key(VAR_HEAP, 0, p->alloc);
    struct arena_hit *hit = make_hit(maker, p->ref, node, EADDR, HIT_MEMORY, heap, n, 0);
    uint32_t n_words = pattern_has_footprint(pattern) ? ARENA_LINES_WORDS : 0;
    hit->pattern = pattern;
    atomic_store(&hit->n_offsets, n);
    atomic_store(&hit->first_offset, place_of(first));
    if (n == 1)
        return;
    struct arena_lines *lines =
        make_record(maker, p->ref, ARENA_LINES, sizeof *lines + n_words * sizeof lines->bits[0], &hit->lines);
    lines->n_words = n_words;
    lines->n_paced = 9;
    lines->first_line = 0x7f0000000000 / 64 + first / 8;
    lines->last_line = 0x7f0000000000 / 64 + (first + n - 1) / 8;
    for (unsigned i = first; i < first + n; i++) {
        unsigned bin = pattern_place_hash(place_of(i));
        lines->slots[pattern_place_slot(place_of(i))]++;
        if (n_words)
            lines->bits[bin / 64] |= UINT64_C(1) << bin % 64;
    }
}

/* The lines of one instruction are put together over its call paths, pattern by pattern. */
static void test_lines(void **state)
{
    (void)state;
    struct maker maker;
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    uint64_t strided = pattern_with_slots(pattern_make(PATTERN_STRIDED, 1, 8, 8), 8, 1);
    uint64_t irregular = pattern_make(PATTERN_IRREGULAR, 1, 0, 8);
    uint64_t ip = ((struct arena_node *)arena_at(maker.base, p.leaf))->ip;
    uint32_t other = make_node(&maker, p.ref, ARENA_NODES, p.main, ip, maker.app);
    make_walk(&maker, &p, p.leaf, strided, 0, 80);
    make_walk(&maker, &p, other, strided, 80, 1);
    make_walk(&maker, &p, p.leaf, irregular, 0, 80);
    make_walk(&maker, &p, other, irregular, 88, 1);
    take(&p, EADDR, 162);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct objects_file file = read_objects(&maker, 0);
    const struct objects_variable *heap = variable_of(&file, VAR_HEAP, NULL);
    assert_int_equal(heap->n_accesses, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct objects_access *access = &heap->accesses[i];
        bool is_strided = access->pattern == strided;
        assert_true(access->n_samples == 81 && access->lines && (is_strided || access->pattern == irregular));
        assert_int_equal(access->lines->n_bins, is_strided ? 0 : 11);
        assert_int_equal(access->lines->slots[0], 11);
        assert_int_equal(access->lines->slots[14], 10);
        assert_int_equal(access->lines->slots[1], 0);
        assert_true(access->lines->n_lines == 10 && access->lines->n_spanned == 16);
        assert_true(access->lines->n_followed == 16 && access->lines->n_paced == 9);
        assert_int_equal(spread_total(&access->offsets), 81);
    }
    objects_fini(&file);
    free_arena(&maker);
}

/* Instructions of one pool share their bins: each counts those that none before it has. */
static void test_pooled_lines(void **state)
{
    (void)state;
    struct maker maker;
    make_arena(&maker);
    struct paths p = make_paths(&maker, 0);
    uint64_t irregular = pattern_make(PATTERN_IRREGULAR, 1, 0, 8), apart = pattern_make(PATTERN_IRREGULAR, 2, 0, 8);
    uint64_t ip = ((struct arena_node *)arena_at(maker.base, p.leaf))->ip;
    uint32_t copies[3];
    for (unsigned i = 0; i < 3; i++)
        copies[i] = make_node(&maker, p.ref, ARENA_NODES, p.main, ip + 8 + i, maker.app);
    make_walk(&maker, &p, copies[0], irregular, 0, 80);
    make_walk(&maker, &p, copies[1], irregular, 40, 80);
    make_walk(&maker, &p, copies[2], apart, 40, 80);
    take(&p, EADDR, 240);
    struct collect_context context = context_of(&maker);
    collect(&maker, &context);
    struct objects_file file = read_objects(&maker, 0);
    const struct objects_variable *heap = variable_of(&file, VAR_HEAP, NULL);
    uint64_t n_shared = 0;
    assert_int_equal(heap->n_accesses, 3);
    for (size_t i = 0; i < 3; i++) {
        if (heap->accesses[i].pattern == irregular)
            n_shared += heap->accesses[i].lines->n_bins;
        else
            assert_int_equal(heap->accesses[i].lines->n_bins, 10);
    }
    assert_int_equal(n_shared, 15);
    for (size_t i = 0; i < 3; i++) { /* of many samples on a path only the bins are known */
        assert_int_equal(heap->accesses[i].lines->n_hashes, 10);
        assert_int_equal(heap->accesses[i].lines->hash_bits, PATTERN_HASH_BITS);
    }
    objects_fini(&file);
    free_arena(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooled_lines), cmocka_unit_test(test_ordinary_tree), cmocka_unit_test(test_data_tree),
        cmocka_unit_test(test_side_file),    cmocka_unit_test(test_trace_and_ids), cmocka_unit_test(test_events),
        cmocka_unit_test(test_log),          cmocka_unit_test(test_leaks),         cmocka_unit_test(test_lines),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_checkpoints),   cmocka_unit_test(test_reaches),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
