/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packages of a Debian system files belong to, from the lists of files that dpkg keeps. Ordinary code. */
#ifndef LOCUS_ANALYSIS_PACKAGES_H
#define LOCUS_ANALYSIS_PACKAGES_H

#include <stddef.h>

#define PACKAGES_DIRECTORY "/var/lib/dpkg/info"
#define PACKAGES_NAME_BYTES 128

/* A file and the package that it came with. */
struct package_file {
    const char *path;               /* set by the caller: absolute */
    char name[PACKAGES_NAME_BYTES]; /* "coreutils"; "" when no package has it */
};

/* Fills the names of files [n] from the lists NAME.list or NAME:ARCHITECTURE.list in a directory; where that cannot be
 * read they have none. /usr/lib and /lib are the same, whatever the lists say. */
void packages_find(const char *directory, struct package_file *files, size_t n);

#endif
