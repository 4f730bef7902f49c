/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules of the nodes of all profiles: see sampled.h. */
#include "sampled.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/hpcrun.h"

static void add_modules(const struct hpcrun_profile *profile, struct strtab *paths)
{
    static const size_t n_ids = (size_t)UINT16_MAX + 1;
    bool *is_sampled = calloc(n_ids, sizeof *is_sampled);
    for (; profile && is_sampled; profile = profile->next) {
        for (size_t i = 0; i < profile->n_nodes; i++)
            is_sampled[profile->nodes[i].module] = true;
        for (size_t i = 0; i < profile->n_modules; i++)
            if (is_sampled[profile->modules[i].id] && profile->modules[i].path && profile->modules[i].path[0] == '/')
                (void)strtab_intern(paths, profile->modules[i].path);
        memset(is_sampled, 0, n_ids * sizeof *is_sampled);
    }
    free(is_sampled);
}

static bool is_profile(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".hpcrun") == 0;
}

int sampled_modules(const char *directory, struct strtab *paths, size_t *n_bad, struct error *err)
{
    size_t n_profiles = 0;
    *n_bad = 0;
    DIR *dir = opendir(directory);
    if (!dir)
        return error_set(err, ERR_IO, "%s cannot be read: %s", directory, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *path = NULL;
        struct hpcrun_profile profile = {0};
        if (!is_profile(entry->d_name) || asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
            continue;
        n_profiles++;
        if (hpcrun_read(path, &profile, err) == 0) {
            add_modules(&profile, paths);
            hpcrun_fini(&profile);
        } else {
            (*n_bad)++;
        }
        free(path);
    }
    (void)closedir(dir);
    return n_profiles ? 0 : error_set(err, ERR_NOT_FOUND, "%s holds no profile (.hpcrun)", directory);
}
