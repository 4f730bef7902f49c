/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that names the parts of its work: regions.sh. API 1: our header, 2: tasks of ITT, 3: ranges of NVTX, both
 * as their code in programs finds the collector. "grid" costs two thirds of "solve" and all of "setup"; "table" a third
 * of "solve", in "smooth" inside of it. What does not match is in "odd". */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PHASE_S 0.12
#define N_BYTES (8ul << 20)

#if API == 1
#include "runtime/locus.h"

static void begin(const char *name)
{
    locus_region_begin(name);
}

static void end(void)
{
    locus_region_end();
}
#elif API == 2
struct id {
    uint64_t words[3];
};

/* The static library of ITT asks for these in the library of the collector. */
static void *find(const char *name)
{
    const char *library = getenv("INTEL_LIBITTNOTIFY64"), *groups = getenv("INTEL_ITTNOTIFY_GROUPS");
    void *handle = library && groups && strstr(groups, "structure") ? dlopen(library, RTLD_LAZY) : NULL;
    return handle ? dlsym(handle, name) : NULL;
}

static void begin(const char *name)
{
    void *(*create)(const char *) = find("__itt_string_handle_create");
    void *(*domain)(const char *) = find("__itt_domain_create");
    void (*task)(void *, struct id, struct id, void *) = find("__itt_task_begin");
    if (create && domain && task)
        task(domain("test"), (struct id){{1, 2, 3}}, (struct id){{0}}, create(name));
}

static void end(void)
{
    void *(*domain)(const char *) = find("__itt_domain_create");
    void (*task)(void *) = find("__itt_task_end");
    if (domain && task)
        task(domain("test"));
}
#else
/* The tables that NVTX hands to the library; one that is not filled does nothing. */
static struct {
    void (*core[16])(void), (*core2[16])(void);
    void (**core_entries[16])(void), (**core2_entries[16])(void);
} nvtx;

static int find_table(uint32_t module, void (****table)(void), unsigned *n)
{
    *n = 16;
    *table = module == 1 ? nvtx.core_entries : module == 5 ? nvtx.core2_entries : NULL;
    return *table != NULL;
}

static const void *find_export(uint32_t id)
{
    static const struct {
        size_t n_bytes;
        int (*find)(uint32_t, void (****)(void), unsigned *);
    } callbacks = {sizeof callbacks, find_table};
    return id == 1 ? &callbacks : NULL;
}

static void initialize(void)
{
    static int is_done;
    const char *library = getenv("NVTX_INJECTION64_PATH");
    if (is_done++)
        return;
    for (int i = 0; i < 16; i++) {
        nvtx.core_entries[i] = &nvtx.core[i];
        nvtx.core2_entries[i] = &nvtx.core2[i];
    }
    void *handle = library ? dlopen(library, RTLD_LAZY) : NULL;
    int (*inject)(const void *(*)(uint32_t)) = handle ? dlsym(handle, "InitializeInjectionNvtx2") : NULL;
    if (inject && inject(find_export) != 1)
        abort();
}

/* By text, by attributes, and in a domain with a registered text, in turn. */
static void begin(const char *name)
{
    static unsigned turn;
    struct {
        uint16_t version, n_bytes;
        uint32_t words[5];
        uint64_t payload;
        int32_t type;
        const void *message;
    } attributes = {.version = 3, .n_bytes = 48, .type = 1, .message = name};
    initialize();
    unsigned way = turn++ % 3;
    if (way == 0 && nvtx.core[9])
        ((int (*)(const char *))nvtx.core[9])(name);
    else if (way == 1 && nvtx.core[8])
        ((int (*)(const void *))nvtx.core[8])(&attributes);
    else if (nvtx.core2[10] && nvtx.core2[4]) {
        attributes.type = 3;
        attributes.message = ((const void *(*)(void *, const char *))nvtx.core2[10])(NULL, name);
        ((int (*)(void *, const void *))nvtx.core2[4])(NULL, &attributes);
    }
}

static void end(void)
{
    initialize();
    if (nvtx.core[11])
        ((int (*)(void))nvtx.core[11])();
}
#endif

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) unsigned long work(volatile unsigned long *data, double phases)
{
    double until = cpu_now() + phases * PHASE_S;
    unsigned long sum = 0;
    while (cpu_now() < until)
        for (size_t i = 0; i < N_BYTES / sizeof *data; i += 8)
            sum += data[i];
    return sum;
}

static __attribute__((noinline)) unsigned long solve(volatile unsigned long *grid, volatile unsigned long *table)
{
    unsigned long sum = 0;
    begin("solve");
    for (int i = 0; i < 4; i++) {
        sum += work(grid, 0.5);
        char name[16]; /* a name need not stay */
        strcpy(name, "smooth");
        begin(name);
        memset(name, 'x', sizeof name - 1);
        sum += work(table, 0.25);
        end();
    }
    end();
    return sum;
}

static void *other_thread(void *argument)
{
    volatile unsigned long *table = argument;
    begin("other, \"quoted\"");
    unsigned long sum = work(table, 1);
    begin("left open");
    return sum ? argument : NULL;
}

/* Deeper than anybody goes, ended once too often, and without a name. */
static void odd(volatile unsigned long *table)
{
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i % 7);
        begin(i ? name : "odd");
    }
    work(table, 1);
    for (int i = 0; i < 101; i++)
        end();
    begin("");
    work(table, 1);
    end();
}

int main(void)
{
    volatile unsigned long *grid = calloc(1, N_BYTES), *table = calloc(1, N_BYTES);
    pthread_t thread;
    if (!grid || !table)
        return 1;
    begin("setup");
    work(grid, 1);
    if (fork() == 0) { /* goes on in the region */
        work(grid, 1);
        _exit(0);
    }
    wait(NULL);
    end();
    solve(grid, table);
    pthread_create(&thread, NULL, other_thread, (void *)(uintptr_t)table);
    pthread_join(thread, NULL);
    odd(table);
    work(table, 1);
    printf("done\n");
    return 5;
}
