/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas made by hand, and what the collector makes of them: see arena-maker.h. */
#include "arena-maker.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Space for one record in the last run of the thread and kind, published at once. */
void *make_record(struct maker *maker, uint32_t thread, enum arena_kind kind, size_t len_bytes, uint32_t *ref)
{
    uint32_t n_bytes = (uint32_t)(len_bytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT,
             i = atomic_load(&maker->header->n_chunks);
    while (i > 0 &&
           (maker->table[i - 1].thread != thread || maker->table[i - 1].kind != kind || maker->table[i - 1].behind))
        i--;
    if (i == 0 || maker->table[i - 1].used_bytes + n_bytes > RUN * ARENA_CHUNK_BYTES) {
        i = atomic_fetch_add(&maker->header->n_chunks, RUN) + 1;
        assert_true(i + RUN - 1 <= CHUNKS);
        arena_run_begin(&maker->table[i - 1], RUN, kind, thread);
    }
    char *record = maker->base + maker->header->chunk_data_offset + (size_t)(i - 1) * ARENA_CHUNK_BYTES +
                   maker->table[i - 1].used_bytes;
    atomic_fetch_add(&maker->table[i - 1].used_bytes, n_bytes);
    *ref = arena_ref(maker->base, record);
    return record;
}

uint32_t make_string(struct maker *maker, const char *text)
{
    uint32_t ref;
    struct arena_string *string = make_record(maker, 0, ARENA_STRINGS, sizeof *string + strlen(text) + 1, &ref);
    string->len_bytes = (uint32_t)strlen(text);
    memcpy(string->text, text, strlen(text) + 1);
    return ref;
}

uint32_t make_module(struct maker *maker, uint32_t id, const char *path, uint64_t bias)
{
    uint32_t ref;
    struct arena_module *module = make_record(maker, 0, ARENA_MODULES, sizeof *module, &ref);
    *module = (struct arena_module){.id = id, .path = make_string(maker, path), .bias = bias, .table_id = id * 100};
    return ref;
}

uint32_t make_node(struct maker *maker, uint32_t thread, enum arena_kind kind, uint32_t parent, uint64_t ip,
                   uint32_t module)
{
    uint32_t ref;
    struct arena_node *node = make_record(maker, thread, kind, sizeof *node, &ref);
    *node = (struct arena_node){.ip = ip, .parent = parent, .module = module};
    if (parent)
        ((struct arena_node *)arena_at(maker->base, parent))->child = ref;
    return ref;
}

struct arena_hit *make_hit(struct maker *maker, uint32_t thread, uint32_t node, unsigned event, enum hit_class class,
                           uint64_t var, uint64_t count, uint64_t weight)
{
    uint32_t ref;
    struct arena_node *owner = arena_at(maker->base, node);
    struct arena_hit *hit = make_record(maker, thread, ARENA_HITS, sizeof *hit, &ref);
    hit->next = owner->hits;
    hit->event = (uint8_t)event;
    hit->class = (uint8_t) class;
    hit->var = var;
    atomic_store(&hit->count, count);
    atomic_store(&hit->weight, weight);
    owner->hits = ref;
    return hit;
}

struct arena_thread *make_thread(struct maker *maker, uint32_t id, uint32_t *ref)
{
    struct arena_thread *thread = make_record(maker, 0, ARENA_THREADS, sizeof *thread, ref);
    thread->id = id;
    thread->tid = 100 + id;
    thread->start_ns = 1000;
    thread->root = make_node(maker, *ref, ARENA_NODES, 0, 0, 0);
    ((struct arena_node *)arena_at(maker->base, thread->root))->flags = NODE_ROOT;
    thread->partial = make_node(maker, *ref, ARENA_NODES, thread->root, 1, 0);
    ((struct arena_node *)arena_at(maker->base, thread->partial))->flags = NODE_PARTIAL;
    thread->alloc_root = make_node(maker, *ref, ARENA_ALLOC_NODES, 0, 0, 0);
    ((struct arena_node *)arena_at(maker->base, thread->alloc_root))->flags = NODE_ROOT;
    return thread;
}

void make_place(struct maker *maker, uint32_t thread, uint64_t var, unsigned event, unsigned cpu, uint64_t count)
{
    uint32_t ref;
    struct arena_place *place = make_record(maker, thread, ARENA_PLACES, sizeof *place, &ref);
    place->var = var;
    place->event = (uint8_t)event;
    place->cpu = (uint16_t)cpu;
    atomic_store(&place->count, count);
}

void make_trace(struct maker *maker, struct arena_thread *thread, uint32_t thread_ref, const struct arena_hit *hit,
                uint64_t t_ns, uint64_t offset)
{
    uint32_t ref;
    uint64_t number = atomic_fetch_add(&thread->n_traced, 1);
    struct arena_trace *trace = make_record(maker, thread_ref, ARENA_TRACE, sizeof *trace, &ref);
    atomic_store(&trace->hit_and_latency, (uint64_t)7 << 32 | arena_ref(maker->base, hit));
    atomic_store(&trace->place, (uint64_t)3 << 48 | offset);
    atomic_store(&trace->stamp, arena_trace_stamp(t_ns, arena_trace_level(thread->id, number)));
}

void make_event(struct maker *maker, const char *metric, const char *name, uint32_t source, uint32_t flags,
                double scale)
{
    struct arena_event *event = &maker->header->events[maker->header->n_events++];
    (void)snprintf(event->metric, sizeof event->metric, "%s", metric);
    (void)snprintf(event->name, sizeof event->name, "%s", name);
    event->source = source;
    event->flags = flags;
    event->scale = scale;
}

void make_arena(struct maker *maker)
{
    /* The table is behind the chunks; these lie where the fuzzers' arenas have them, so that references stay true. */
    size_t data = ((sizeof *maker->header + 4095) & ~(size_t)4095) + 4096;
    size_t table = data + (size_t)CHUNKS * ARENA_CHUNK_BYTES;
    *maker = (struct maker){.size_bytes = table + (size_t)CHUNKS * sizeof(struct arena_chunk)};
    maker->base = mmap(NULL, maker->size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(maker->base != MAP_FAILED);
    maker->header = (void *)maker->base;
    maker->table = (void *)(maker->base + table);
    memcpy(maker->header->magic, ARENA_MAGIC, 8);
    maker->header->version = ARENA_VERSION;
    maker->header->header_bytes = sizeof *maker->header;
    maker->header->size_bytes = maker->size_bytes;
    maker->header->chunk_table_offset = table;
    maker->header->chunk_data_offset = data;
    maker->header->chunk_limit = CHUNKS;
    maker->header->pid = 4711;
    (void)snprintf(maker->header->exe, sizeof maker->header->exe, "/bin/app");
    (void)snprintf(maker->header->argv0, sizeof maker->header->argv0, "app");
    make_event(maker, "EADDR (usec)", "EADDR", SOURCE_EADDR, EVENT_ADDRESS, 1000);
    make_event(maker, "FAULTS", "FAULTS", SOURCE_FAULTS, EVENT_ADDRESS | EVENT_INTEGER, 1);
    make_event(maker, "CPUTIME (usec)", "CPUTIME", SOURCE_CPUTIME, EVENT_WEIGHTED, 0.001);
    maker->app = make_module(maker, 1, "/bin/app", APP_BIAS);
    maker->lib = make_module(maker, 2, "/lib/libhpcrun.so", LIB_BIAS);
    (void)make_module(maker, 3, "/lib/libunused.so", 0x7ffe00000000u);
    maker->header->libhpcrun_module = maker->lib;
    for (unsigned i = 0; i < PLACEHOLDER_MAX; i++)
        maker->header->placeholders[i] = LIB_BIAS + 0x1000 + 16 * i;
    (void)snprintf(maker->dir, sizeof maker->dir, "/tmp/collect-test-XXXXXX");
    assert_non_null(mkdtemp(maker->dir));
}

void remove_directory(const char *directory)
{
    char path[512];
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(directory), 0);
}

void free_arena(struct maker *maker)
{
    remove_directory(maker->dir);
    (void)munmap(maker->base, maker->size_bytes);
}

static const char *find_symbol(void *ctx, uint64_t table_id, uint32_t index, bool tls, uint64_t *vaddr, uint64_t *size)
{
    (void)ctx;
    if (table_id != 100 || index > 5)
        return NULL;
    *vaddr = tls ? 0x40 : 0x9000 + 0x100 * index;
    *size = 80;
    return tls ? "counter" : "grid";
}

static bool find_function(void *ctx, uint64_t table_id, uint64_t vaddr, uint64_t *start)
{
    (void)ctx;
    *start = vaddr & ~(uint64_t)0xff;
    return table_id == 100;
}

struct collect_context context_of(const struct maker *maker)
{
    return (struct collect_context){.dir = maker->dir,
                                    .host_id = 0xabc,
                                    .host = "node7",
                                    .env_path = "/bin",
                                    .plan = "EADDR: no PMU here",
                                    .skid_json = "{\"after\":0.99}",
                                    .topology = "node7.xml",
                                    .state = "complete",
                                    .symbol = find_symbol,
                                    .function = find_function};
}

void collect(struct maker *maker, const struct collect_context *context)
{
    struct error error = {0};
    int code = collect_write(maker->base, maker->size_bytes, context, &maker->result, &error);
    if (code)
        print_message("%s\n", error.text);
    assert_int_equal(code, 0);
    maker->name = maker->result.name;
}

char *path_of_file(const struct maker *maker, unsigned thread, const char *suffix)
{
    struct names_file name = maker->name;
    name.thread = thread;
    (void)snprintf(name.suffix, sizeof name.suffix, "%s", suffix);
    return names_path(maker->dir, &name);
}

struct hpcrun_profile read_profile(const struct maker *maker, unsigned thread)
{
    struct hpcrun_profile profile = {0};
    struct error error = {0};
    char *path = path_of_file(maker, thread, "hpcrun");
    assert_int_equal(hpcrun_read(path, &profile, &error), 0);
    free(path);
    return profile;
}

struct objects_file read_objects(const struct maker *maker, unsigned thread)
{
    struct objects_file file = {0};
    struct error error = {0};
    char *path = path_of_file(maker, thread, "objects");
    assert_int_equal(objects_read(path, &file, &error), 0);
    free(path);
    return file;
}

int find_metric(const struct hpcrun_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->n_metrics; i++)
        if (strcmp(profile->metrics[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Index of the child of a node (by index) with the module's path and address; fails when there is none. */
size_t child(const struct hpcrun_profile *profile, size_t parent, const char *module, uint64_t ip)
{
    for (size_t i = 0; i < profile->n_nodes; i++) {
        const struct hpcrun_node *node = &profile->nodes[i];
        const char *path = node->module ? profile->modules[node->module - 1].path : "";
        if (node->parent && node->parent == profile->nodes[parent].id && node->ip == ip && strcmp(path, module) == 0)
            return i;
    }
    fail_msg("node %zu has no child %s 0x%llx", parent, module, (unsigned long long)ip);
    return 0;
}

size_t placeholder(const struct hpcrun_profile *profile, size_t parent, unsigned index)
{
    return child(profile, parent, "/lib/libhpcrun.so", 0x1001 + 16 * index);
}

double value(const struct hpcrun_profile *profile, size_t node, const char *metric)
{
    int m = find_metric(profile, metric);
    assert_true(m >= 0);
    uint64_t word = profile->values[node * profile->n_metrics + (size_t)m];
    double real;
    memcpy(&real, &word, sizeof real);
    if (profile->metrics[m].flags[2] == HPCRUN_VALUE_INT)
        real = (double)word;
    return real * (double)profile->metrics[m].period;
}

/* Sums of a metric over the data-centric tree and over everything else; parents precede their children. */
void totals(const struct hpcrun_profile *profile, const char *metric, double *data, double *code)
{
    bool *in_data = calloc(profile->n_nodes, sizeof *in_data);
    *data = *code = 0;
    for (size_t i = 0; i < profile->n_nodes; i++) {
        for (size_t j = 0; j < i && profile->nodes[i].parent; j++)
            if (profile->nodes[j].id == profile->nodes[i].parent)
                in_data[i] = in_data[j];
        in_data[i] |= (profile->nodes[i].type & HPCRUN_NODE_ROOT) != 0;
        *(in_data[i] ? data : code) += value(profile, i, metric);
    }
    free(in_data);
}

struct paths make_paths(struct maker *maker, uint32_t id)
{
    struct paths p;
    p.thread = make_thread(maker, id, &p.ref);
    p.main = make_node(maker, p.ref, ARENA_NODES, p.thread->root, APP_BIAS + 0x1105, maker->app);
    p.work = make_node(maker, p.ref, ARENA_NODES, p.main, APP_BIAS + 0x1205, maker->app);
    p.leaf = make_node(maker, p.ref, ARENA_NODES, p.work, APP_BIAS + 0x1310, maker->app);
    uint32_t top = make_node(maker, p.ref, ARENA_ALLOC_NODES, p.thread->alloc_root, APP_BIAS + 0x1105, maker->app);
    p.alloc = make_node(maker, p.ref, ARENA_ALLOC_NODES, top, APP_BIAS + 0x1420, maker->app);
    return p;
}

void take(struct paths *p, unsigned event, uint64_t n)
{
    atomic_fetch_add(&p->thread->taken[event], n);
    atomic_fetch_add(&p->thread->fates[event][FATE_NAMED], n);
}

const struct objects_variable *variable_of(const struct objects_file *file, unsigned kind, const char *name)
{
    for (size_t i = 0; i < file->n_variables; i++) {
        const struct objects_variable *row = &file->variables[i];
        if (row->kind == kind && (!name || (row->name && strcmp(row->name, name) == 0)))
            return row;
    }
    fail_msg("no variable of kind %u named %s", kind, name ? name : "");
    return NULL;
}
