/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fuzz targets: a directory in memory for the files that readers want to open, and a check. */
#ifndef LOCUS_FUZZ_SCRATCH_DIR_H
#define LOCUS_FUZZ_SCRATCH_DIR_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_PATH_MAX 512

static inline void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static inline int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    return where->level ? remove(path) : 0;
}

/* Ends the process's directory. */
static inline void scratch_end(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/dev/shm/locus-fuzz-%d", (int)getpid());
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    (void)rmdir(path);
}

/* The process's own directory: made at the first call, emptied at each. */
static inline const char *scratch_directory(void)
{
    static char path[64];
    if (!path[0]) {
        (void)snprintf(path, sizeof path, "/dev/shm/locus-fuzz-%d", (int)getpid());
        (void)atexit(scratch_end);
    }
    if (mkdir(path, 0700) != 0)
        (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return path;
}

/* Writes a file of that name into the directory, and its whole path into path [SCRATCH_PATH_MAX]. */
static inline void scratch_file(const char *name, const void *bytes, size_t len_bytes, char *path)
{
    char whole[SCRATCH_PATH_MAX];
    (void)snprintf(whole, sizeof whole, "/dev/shm/locus-fuzz-%d/%s", (int)getpid(), name);
    FILE *file = fopen(whole, "we");
    check(file && fwrite(bytes, 1, len_bytes, file) == len_bytes, "a scratch file cannot be written");
    (void)fclose(file);
    if (path)
        (void)snprintf(path, SCRATCH_PATH_MAX, "%s", whole);
}

/* The lowest free descriptor: another one than before tells of a leak. */
static inline int scratch_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return fd;
}

#endif
