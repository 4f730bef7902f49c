/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads a library in one of many ways and has it work for some milliseconds.
 * usage: module-paths MS [open NAME | delete NAME | replace NAME BY | memory NAME | root NAME]; without a way the
 * library is linked. Each way first loads the library called NAME, then goes somewhere else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

extern unsigned library_work(int ms) __attribute__((weak));

static void check(int is_good, const char *what)
{
    if (is_good)
        return;
    perror(what);
    exit(3);
}

/* The library as a file in memory that has no name and, once it is loaded, no descriptor. */
static void *open_memory(const char *name)
{
    char path[64];
    int from = open(name, O_RDONLY), to = memfd_create("library", 0);
    check(from >= 0 && to >= 0 && sendfile(to, from, NULL, 1 << 24) > 0, name);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", to);
    void *library = dlopen(path, RTLD_NOW);
    close(from);
    close(to);
    return library;
}

int main(int argc, char **argv)
{
    int ms = argc > 1 ? atoi(argv[1]) : 300;
    const char *way = argc > 3 ? argv[2] : "";
    unsigned (*work)(int) = library_work;
    if (way[0]) {
        void *library = strcmp(way, "memory") == 0 ? open_memory(argv[3]) : dlopen(argv[3], RTLD_NOW);
        if (!library)
            fprintf(stderr, "%s\n", dlerror());
        check(library != NULL, argv[3]);
        work = (unsigned (*)(int))(unsigned long)dlsym(library, "library_work");
    }
    if (strcmp(way, "delete") == 0)
        check(unlink(argv[3]) == 0, "unlink");
    if (strcmp(way, "replace") == 0)
        check(argc > 4 && rename(argv[4], argv[3]) == 0, "rename");
    if (strcmp(way, "root") == 0)
        check(chroot("/usr") == 0, "chroot");
    check(chdir("/") == 0, "chdir");
    printf("%u\n", work(ms));
    return 0;
}
