/* SPDX-License-Identifier: BSD-3-Clause */
/* Generates two functions in memory, of which the outer calls the inner, describes them for profilers, and spends its
 * time in the inner one.
 * usage: jit map|dump|removed|stale|undescribed SECONDS; "removed" takes the description away before it ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define N_BYTES (4u << 20)
#define OUTER_OFFSET 256
#define MOVED_OFFSET 512

/* unsigned inner(unsigned char *p, uint64_t n): the sum of n bytes, with a frame pointer. */
static const unsigned char inner_code[] = {0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x31, 0xc9, 0x0f, 0xb6, 0x14, 0x0f,
                                           0x01, 0xd0, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xf1, 0x72, 0xf2, 0x5d, 0xc3};
/* outer: calls the address in bytes 6 to 13 with its own arguments. */
static const unsigned char outer_code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0,
                                           0x5d, 0xc3};

typedef unsigned (*generated)(unsigned char *p, uint64_t n);

static char path[256];

static void write_map(const unsigned char *code)
{
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        exit(3);
    /* The first line is of a function that was there before; the last was never finished. */
    fprintf(file, "%lx %x old_function\n", (unsigned long)code, 128);
    fprintf(file, "%lx %zx inner(unsigned char*, unsigned long)\n", (unsigned long)code, sizeof inner_code);
    fprintf(file, "0x%lx 0x%zx LazyCompile:~outer app.js:3\n", (unsigned long)(code + OUTER_OFFSET), sizeof outer_code);
    fprintf(file, "%lx 4", (unsigned long)code);
    fclose(file);
}

static void make_old(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    (void)utimensat(AT_FDCWD, path, times, 0);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put(FILE *file, uint64_t value, size_t n_bytes)
{
    fwrite(&value, n_bytes, 1, file);
}

static void put_load(FILE *file, const void *code, size_t n_bytes, uint64_t index, const char *name)
{
    put(file, 0, 4);
    put(file, 56 + strlen(name) + 1 + n_bytes, 4);
    put(file, now_ns(), 8);
    put(file, (uint64_t)getpid(), 4);
    put(file, (uint64_t)gettid(), 4);
    for (int i = 0; i < 2; i++)
        put(file, (uintptr_t)code, 8);
    put(file, n_bytes, 8);
    put(file, index, 8);
    fwrite(name, strlen(name) + 1, 1, file);
    fwrite(code, n_bytes, 1, file);
}

/* The inner function is said to have been elsewhere first. */
static void write_dump(const unsigned char *code)
{
    (void)snprintf(path, sizeof path, "jit-%d.dump", getpid());
    FILE *file = fopen(path, "w+");
    if (!file)
        exit(3);
    put(file, 0x4a695444, 4);
    put(file, 1, 4);
    put(file, 40, 4);
    put(file, 62, 4);
    put(file, 0, 4);
    put(file, (uint64_t)getpid(), 4);
    put(file, now_ns(), 8);
    put(file, 0, 8);
    put_load(file, code + MOVED_OFFSET, sizeof inner_code, 1, "dumped_inner");
    put_load(file, code + OUTER_OFFSET, sizeof outer_code, 2, "dumped outer");
    put(file, 1, 4);
    put(file, 64, 4);
    put(file, now_ns(), 8);
    put(file, (uint64_t)getpid(), 4);
    put(file, (uint64_t)gettid(), 4);
    put(file, (uintptr_t)code, 8);
    put(file, (uintptr_t)(code + MOVED_OFFSET), 8);
    put(file, (uintptr_t)code, 8);
    put(file, sizeof inner_code, 8);
    put(file, 1, 8);
    fflush(file);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
        exit(4);
    fclose(file);
}

static unsigned char *generate(void)
{
    unsigned char *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        exit(5);
    memcpy(code, inner_code, sizeof inner_code);
    memcpy(code + MOVED_OFFSET, inner_code, sizeof inner_code);
    memcpy(code + OUTER_OFFSET, outer_code, sizeof outer_code);
    memcpy(code + OUTER_OFFSET + 6, &code, sizeof code);
    return code;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "map";
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.3;
    unsigned sum = 0;
    unsigned char *code = generate(), *bytes = calloc(1, N_BYTES);
    generated outer;
    void *entry = code + OUTER_OFFSET;
    memcpy(&outer, &entry, sizeof outer);
    if (strcmp(mode, "dump") == 0)
        write_dump(code);
    else if (strcmp(mode, "undescribed") != 0)
        write_map(code);
    if (strcmp(mode, "stale") == 0)
        make_old();
    for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;)
        sum += outer(bytes, N_BYTES);
    if (strcmp(mode, "removed") == 0)
        (void)unlink(path);
    printf("%u\n", sum);
    return 0;
}
