/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of modules and that of stacks as plain code with threads, also under ThreadSanitizer: readers stand in for
 * signal handlers, writers load, unload, begin and end under them. The loader is a made one that says which of two
 * libraries lies at an address, and tells of a change before it makes it, as the stubs of dlopen and dlclose do.
 * LOCUS_STRESS_S sets the seconds (default 2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/record/thread.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"

#define PLACES 4 /* where libraries are loaded */
#define READERS 3
#define WRITERS 2
#define IMAGE_BYTES 65536
#define N_CHUNKS 512
#define STACKS 0x7f0000000000u

#ifdef __SANITIZE_THREAD__
#define MODEL_ORDER memory_order_relaxed /* so that the model brings no order which the tables must bring */
#else
#define MODEL_ORDER memory_order_seq_cst
#endif

/* Phases: 4 g + one of these, g counting what was there. */
enum phase { PHASE_GONE, PHASE_ENTERING, PHASE_LIVE, PHASE_LEAVING, PHASES };

static struct {
    struct link_map libraries[PLACES][2];
    char names[PLACES][2][128], directory[64];
    char *images; /* [PLACES][IMAGE_BYTES] */
    pthread_mutex_t loader;
    struct link_map *_Atomic loaded[PLACES];
    _Atomic uint64_t phase[PLACES];
    _Atomic bool stop;
    _Atomic uint64_t n_wrong, n_found, n_tables, n_changes;
} model = {.loader = PTHREAD_MUTEX_INITIALIZER};

/* Not exported: the unwinder of the C library asks the real one. */
__attribute__((visibility("hidden"))) int _dl_find_object(void *address, struct dl_find_object *result)
{
    size_t offset = (size_t)((char *)address - model.images);
    struct link_map *library = offset < (size_t)PLACES * IMAGE_BYTES ? model.loaded[offset / IMAGE_BYTES] : NULL;
    if (!library)
        return -1;
    result->dlfo_link_map = library;
    result->dlfo_map_start = model.images + offset / IMAGE_BYTES * IMAGE_BYTES;
    result->dlfo_map_end = (char *)result->dlfo_map_start + IMAGE_BYTES;
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool is_over(void)
{
    return atomic_load_explicit(&model.stop, memory_order_relaxed);
}

static void set_phase(unsigned place, uint64_t generation, enum phase phase)
{
    atomic_store_explicit(&model.phase[place], generation * PHASES + phase, MODEL_ORDER);
}

/* Whether number generation was there at some moment between the phases before and after. */
static bool was_live(uint64_t generation, uint64_t before, uint64_t after)
{
    return generation * PHASES + PHASE_ENTERING <= after && before <= generation * PHASES + PHASE_LEAVING;
}

static void count(_Atomic uint64_t *counter, bool condition)
{
    if (condition)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- modules --- */

static void file_write(const char *path, const void *bytes, size_t n_bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    assert_int_equal(fclose(file), 0);
}

static void make_libraries(void)
{
    const ElfW(Ehdr) header = {.e_ident = ELFMAG, .e_phentsize = sizeof(ElfW(Phdr))};
    (void)strcpy(model.directory, "/tmp/readers-model-XXXXXX");
    assert_non_null(mkdtemp(model.directory));
    model.images = mmap(NULL, (size_t)PLACES * IMAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(model.images, MAP_FAILED);
    for (unsigned place = 0; place < PLACES; place++) {
        memcpy(model.images + (size_t)place * IMAGE_BYTES, &header, sizeof header);
        for (unsigned i = 0; i < 2; i++) {
            (void)snprintf(model.names[place][i], sizeof model.names[place][i], "%s/lib-%u-%u", model.directory, place,
                           i);
            file_write(model.names[place][i], model.names[place][i], strlen(model.names[place][i]));
            model.libraries[place][i] = (struct link_map){
                .l_addr = (uintptr_t)model.images + (size_t)place * IMAGE_BYTES, .l_name = model.names[place][i]};
        }
    }
}

/* What the companion would answer: tables of all libraries, empty ones. */
static void make_tables(void)
{
    for (unsigned i = 0; i < 2 * PLACES; i++) {
        const char *name = model.names[i / 2][i % 2];
        struct stat status;
        char path[128], temporary[128];
        assert_int_equal(stat(name, &status), 0);
        uint64_t mtime_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
        struct modtab_header table = {.version = MODTAB_VERSION, .file_bytes = sizeof table};
        memcpy(table.magic, MODTAB_MAGIC, 8);
        table.id = modtab_id_of_file(status.st_ino, (uint64_t)status.st_size, mtime_ns);
        (void)snprintf(path, sizeof path, "%s/%016llx.lmt", model.directory, (unsigned long long)table.id);
        (void)snprintf(temporary, sizeof temporary, "%s/new", model.directory);
        file_write(temporary, &table, sizeof table);
        assert_int_equal(rename(temporary, path), 0);
    }
}

static struct arena_header *make_arena(void)
{
    size_t table = (sizeof(struct arena_header) + 4095) & ~(size_t)4095;
    size_t data = table + N_CHUNKS * sizeof(struct arena_chunk), size = data + (size_t)N_CHUNKS * ARENA_CHUNK_BYTES;
    struct arena_header *header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(header, MAP_FAILED);
    header->size_bytes = size;
    header->chunk_table_offset = table;
    header->chunk_data_offset = data;
    header->chunk_limit = N_CHUNKS;
    (void)snprintf(header->tables, sizeof header->tables, "%s", model.directory);
    arena_attach_sig(header);
    return header;
}

/* Unloads what is at the place and loads the other one there. */
static void change_library(unsigned place, uint64_t generation)
{
    loadmap_changed_sig();
    pthread_mutex_lock(&model.loader);
    atomic_store(&model.loaded[place], NULL);
    set_phase(place, generation, PHASE_GONE);
    pthread_mutex_unlock(&model.loader);
    loadmap_changed_sig();
    pthread_mutex_lock(&model.loader);
    set_phase(place, generation, PHASE_ENTERING);
    atomic_store(&model.loaded[place], &model.libraries[place][generation % 2]);
    set_phase(place, generation, PHASE_LIVE);
    pthread_mutex_unlock(&model.loader);
}

static void *change_libraries(void *argument)
{
    unsigned writer = (unsigned)(uintptr_t)argument;
    uint64_t random = 5 + writer, generations[PLACES] = {0};
    while (!is_over()) {
        unsigned place = (unsigned)(next_random(&random) % (PLACES / WRITERS)) * WRITERS + writer;
        change_library(place, ++generations[place]);
        atomic_fetch_add(&model.n_changes, 1);
        if (random % 8 == 0)
            (void)usleep(100);
    }
    return NULL;
}

static void find_module(unsigned place, uintptr_t address)
{
    uint64_t before = atomic_load_explicit(&model.phase[place], MODEL_ORDER);
    const struct loadmap_module *module = loadmap_find_sig(address);
    uint64_t after = atomic_load_explicit(&model.phase[place], MODEL_ORDER);
    if (!module)
        return; /* unloaded, or another thread is just adding it */
    unsigned i = strcmp(module->name, model.names[place][1]) == 0;
    uint64_t generation = before / PHASES % 2 == i ? before / PHASES : before / PHASES + 1;
    bool is_right = strcmp(module->name, model.names[place][i]) == 0 && was_live(generation, before, after);
    count(&model.n_wrong, !is_right || module->code.start > address || address >= module->code.end);
    count(&model.n_found, true);
    const struct modtab_header *table = loadmap_table_sig(module);
    count(&model.n_tables, table != NULL);
    count(&model.n_wrong, table && table->id != module->table_id);
}

static void *find_modules(void *argument)
{
    uint64_t random = 99 + (uintptr_t)argument;
    while (!is_over()) {
        unsigned place = (unsigned)(next_random(&random) % PLACES);
        find_module(place, (uintptr_t)model.images + (uintptr_t)place * IMAGE_BYTES + random / 64 % 8 * 4096 + 64);
    }
    return NULL;
}

/* --- stacks --- */

static void stack_bounds(unsigned writer, uint64_t generation, uintptr_t *low, uintptr_t *high)
{
    *low = STACKS + writer * 0x1000000u + generation % 3 * 4096;
    *high = *low + 8192 + generation % 5 * 4096;
}

static void *change_stacks(void *argument)
{
    unsigned writer = (unsigned)(uintptr_t)argument;
    struct thread_state *state = calloc(1, sizeof *state);
    for (uint64_t generation = 1; state && !is_over(); generation++) {
        stack_bounds(writer, generation, &state->bounds.low, &state->bounds.high);
        state->ref = (uint32_t)generation;
        set_phase(writer, generation, PHASE_ENTERING);
        thread_stack_add_sig(state);
        set_phase(writer, generation, PHASE_LIVE);
        set_phase(writer, generation, PHASE_LEAVING);
        thread_stack_remove_sig(state);
        set_phase(writer, generation + 1, PHASE_GONE);
        atomic_fetch_add(&model.n_changes, 1);
    }
    free(state);
    return NULL;
}

static void *find_stacks(void *argument)
{
    uint64_t random = 3 + (uintptr_t)argument;
    while (!is_over()) {
        unsigned writer = (unsigned)(next_random(&random) % WRITERS);
        uintptr_t address = STACKS + writer * 0x1000000u + random / 64 % 40000, low, high;
        uint64_t before = atomic_load_explicit(&model.phase[writer], MODEL_ORDER);
        uint32_t ref = thread_of_stack_sig(address);
        uint64_t after = atomic_load_explicit(&model.phase[writer], MODEL_ORDER);
        if (!ref)
            continue;
        stack_bounds(writer, ref, &low, &high);
        count(&model.n_wrong, !was_live(ref, before, after) || address < low || address >= high);
        count(&model.n_found, true);
    }
    return NULL;
}

/* --- both --- */

static void run(void *(*write)(void *), void *(*read)(void *), void (*meanwhile)(void))
{
    const char *seconds = getenv("LOCUS_STRESS_S");
    pthread_t threads[WRITERS + READERS];
    memset((void *)model.phase, 0, sizeof model.phase);
    model.stop = false;
    model.n_wrong = model.n_found = model.n_tables = model.n_changes = 0;
    for (uintptr_t i = 0; i < WRITERS + READERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < WRITERS ? write : read, (void *)(i < WRITERS ? i : i - WRITERS)), 0);
    (void)usleep(300000);
    if (meanwhile)
        meanwhile();
    (void)sleep(seconds ? (unsigned)atoi(seconds) : 2);
    model.stop = true;
    for (unsigned i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu changes, %llu found, %llu with a table, %llu wrong\n", (unsigned long long)model.n_changes,
           (unsigned long long)model.n_found, (unsigned long long)model.n_tables, (unsigned long long)model.n_wrong);
    assert_true(model.n_found > 0 && model.n_changes > 0);
    assert_int_equal(model.n_wrong, 0);
}

static void test_modules(void **state)
{
    (void)state;
    char command[128];
    make_libraries();
    const struct arena_header *header = make_arena();
    loadmap_set_started_sig();
    run(change_libraries, find_modules, make_tables);
    assert_true(model.n_tables > 0);
    assert_int_equal(header->n_modules, 2 * PLACES);
    (void)snprintf(command, sizeof command, "rm -r %s", model.directory);
    assert_int_equal(system(command), 0);
}

static void test_stacks(void **state)
{
    (void)state;
    run(change_stacks, find_stacks, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_modules), cmocka_unit_test(test_stacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
