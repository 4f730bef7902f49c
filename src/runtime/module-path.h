/* SPDX-License-Identifier: BSD-3-Clause */
/* The file behind a load module, as the kernel knows it. What the loader says may be relative to a working directory or
 * below a root that the program has left since, may lead through links, and may be the name of another file by now. */
#ifndef LOCUS_RUNTIME_MODULE_PATH_H
#define LOCUS_RUNTIME_MODULE_PATH_H

#include <stdbool.h>
#include <stdint.h>

struct module_file {
    const char *path;    /* real and absolute; valid until the next call */
    uintptr_t low, high; /* the mapping that holds the address; 0 when it was not found */
    uint64_t inode;      /* 0 = not known */
    bool is_deleted;     /* nothing has this name any more: memory files, and libraries that were replaced */
};

/* Finds the file that is mapped at address. loader_name: what the loader calls it, taken for want of something better
 * (no /proc) when it is absolute. file->path is NULL when nothing is known. One call at a time.  ctx: any */
void module_path_find_sig(uintptr_t address, const char *loader_name, struct module_file *file);

#endif
