/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading dpkg's lists of files: one text file for each package, one path a line. See packages.h. */
#include "analysis/packages.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"

#define LINE_BYTES 4096

/* Systems whose /lib is a link to /usr/lib still have packages that list files in /lib. */
static const char *without_usr(const char *path)
{
    return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

/* Notes the package of each wanted file in a list; returns how many there were. */
static size_t read_list(FILE *list, const char *package, size_t len, struct package_file *files, size_t n)
{
    char line[LINE_BYTES];
    size_t n_found = 0;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        const char *path = without_usr(line);
        for (size_t i = 0; i < n; i++) {
            if (files[i].name[0] || strcmp(path, without_usr(files[i].path)) != 0)
                continue;
            (void)snprintf(files[i].name, sizeof files[i].name, "%.*s", (int)len, package);
            n_found++;
        }
    }
    return n_found;
}

void packages_find(const char *directory, struct package_file *files, size_t n)
{
    DIR *entries = n ? opendir(directory) : NULL;
    size_t n_left = n;
    for (size_t i = 0; i < n; i++)
        files[i].name[0] = 0;
    for (struct dirent *entry; entries && n_left > 0 && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        size_t len = strlen(name);
        if (len <= 5 || strcmp(name + len - 5, ".list") != 0)
            continue;
        int fd = input_open(dirfd(entries), name, 0, NULL);
        FILE *list = fd >= 0 ? fdopen(fd, "r") : NULL;
        size_t end = strcspn(name, ":");
        if (list)
            n_left -= read_list(list, name, end < len - 5 ? end : len - 5, files, n);
        if (list)
            (void)fclose(list);
    }
    if (entries)
        (void)closedir(entries);
}
