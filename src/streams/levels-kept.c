/* SPDX-License-Identifier: BSD-3-Clause */
/* Where files of levels lie: see levels.h. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "streams/levels.h"

/* What the cache may hold: files that were used in so many days, of so many bytes together. */
#define CACHE_DAYS 30
#define CACHE_BYTES (INT64_C(2) << 30)

void levels_places_init(struct levels_places *places, const char *recording, bool make)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *real = realpath(recording, NULL);
    uint64_t hash = bytes_hash_text(BYTES_HASH_START, real ? real : "");
    *places = (struct levels_places){.beside = {0}};
    buf_printf(&places->beside, "%s" LEVELS_SUFFIX, recording);
    bool is_set = cache && *cache == '/';
    if (real && (is_set || (home && *home == '/')))
        buf_printf(&places->cached, "%s%s/locus", is_set ? cache : home, is_set ? "" : "/.cache");
    if (places->cached.len_bytes && !places->cached.failed) {
        char *slash = strrchr(places->cached.data, '/');
        *slash = 0; /* the user's cache itself may not be there yet */
        if (make)
            (void)mkdir(places->cached.data, 0700);
        *slash = '/';
        if (make)
            (void)mkdir(places->cached.data, 0700);
        buf_printf(&places->cached, "/%016" PRIx64 LEVELS_SUFFIX, hash);
    }
    free(real);
}

void levels_places_fini(struct levels_places *places)
{
    buf_fini(&places->beside);
    buf_fini(&places->cached);
}

/* A file of the cache. */
struct cached_file {
    char name[64];
    int64_t n_bytes, used_s;
};

static int compare_used(const void *a, const void *b)
{
    const struct cached_file *x = a, *y = b;
    return (x->used_s < y->used_s) - (x->used_s > y->used_s);
}

void levels_trim_cache(const char *newest)
{
    char *directory = strndup(newest, (size_t)(strrchr(newest, '/') - newest));
    DIR *opened = directory ? opendir(directory) : NULL;
    struct cached_file *all = NULL;
    size_t n = 0, capacity = 0;
    struct dirent *entry;
    struct stat info;
    int64_t sum_bytes = 0, now_s = time(NULL);
    while (opened && (entry = readdir(opened))) {
        const char *suffix = strstr(entry->d_name, LEVELS_SUFFIX);
        if (!suffix || suffix[sizeof LEVELS_SUFFIX - 1] || strlen(entry->d_name) >= sizeof all->name ||
            fstatat(dirfd(opened), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
            !vec_reserve(&all, &capacity, n + 1, sizeof *all))
            continue;
        int64_t used_s = info.st_atim.tv_sec > info.st_mtim.tv_sec ? info.st_atim.tv_sec : info.st_mtim.tv_sec;
        all[n] = (struct cached_file){.n_bytes = info.st_size, .used_s = used_s};
        (void)snprintf(all[n++].name, sizeof all->name, "%s", entry->d_name);
    }
    if (n)
        qsort(all, n, sizeof *all, compare_used);
    for (size_t i = 0; i < n; i++) {
        bool is_newest = strcmp(all[i].name, strrchr(newest, '/') + 1) == 0;
        sum_bytes += all[i].n_bytes;
        if (!is_newest && (sum_bytes > CACHE_BYTES || now_s - all[i].used_s > CACHE_DAYS * INT64_C(86400)))
            (void)unlinkat(dirfd(opened), all[i].name, 0);
    }
    free(all);
    free(directory);
    if (opened)
        (void)closedir(opened);
}

struct parts_index *levels_find_index(const char *recording)
{
    const struct levels_key key = levels_key_of(recording);
    struct levels_places places;
    struct parts_index *index = NULL;
    levels_places_init(&places, recording, false);
    const struct buf *all[] = {&places.beside, &places.cached};
    for (size_t i = 0; i < sizeof all / sizeof *all && !index; i++)
        if (all[i]->len_bytes && !all[i]->failed)
            index = levels_read_index(&key, all[i]->data);
    levels_places_fini(&places);
    return index;
}
