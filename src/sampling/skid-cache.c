/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the result of the skid self-test in a file per kind of machine: one line per fact, the key first, so that a
 * reader can tell a file that is not its own. */
#include "sampling/skid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX 1000000 /* of a loop: far more than a measurement takes */
#define LOCK_TRIES 200 /* of 10 ms: ten times what a measurement takes */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ '\n') * 0x100000001b3u;
}

static bool cache_path(const char *directory, const struct skid_key *key, const char *ending, char *path)
{
    uint64_t hash = hash_text(0xcbf29ce484222325u, key->cpu);
    hash = hash_text(hash, key->microcode);
    hash = hash_text(hash, key->kernel);
    hash = hash_text(hash, key->hypervisor);
    int n = snprintf(path, PATH_MAX, "%s/skid-%016llx%s", directory, (unsigned long long)hash, ending);
    return n > 0 && n < PATH_MAX;
}

static void write_head(const struct skid_key *key, char *text, size_t n_bytes)
{
    (void)snprintf(text, n_bytes, "locus skid 1\ncpu %s\nmicrocode %s\nkernel %s\nhypervisor %s\n", key->cpu,
                   key->microcode, key->kernel, key->hypervisor);
}

static bool read_counts(FILE *file, struct skid_result *result)
{
    if (fscanf(file, "trigger %31s rule %u", result->trigger, &result->rule) != 2 || result->rule > SKID_FAILS)
        return false;
    if (strcmp(result->trigger, SKID_TRIGGER_PERF) != 0 && strcmp(result->trigger, SKID_TRIGGER_TIMER) != 0)
        return false;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        struct skid_kernel *kernel = &result->kernels[k];
        if (fscanf(file, "%9u %9u %9u", &kernel->n_at, &kernel->n_next, &kernel->n_elsewhere) != 3)
            return false;
        if (kernel->n_at > SAMPLES_MAX || kernel->n_next > SAMPLES_MAX || kernel->n_elsewhere > SAMPLES_MAX)
            return false;
    }
    char end[8] = "";
    return fscanf(file, "%7s", end) == 1 && strcmp(end, "end") == 0;
}

bool skid_cache_read(FILE *file, const struct skid_key *key, struct skid_result *result)
{
    char head[1024], seen[sizeof head] = "";
    write_head(key, head, sizeof head);
    *result = (struct skid_result){.key = *key, .is_from_cache = true};
    return fread(seen, 1, strlen(head), file) == strlen(head) && strcmp(seen, head) == 0 && read_counts(file, result);
}

static bool read_cache(const char *path, const struct skid_key *key, struct skid_result *result)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool ok = skid_cache_read(file, key, result);
    (void)fclose(file);
    return ok;
}

/* Written under another name and renamed: a reader sees all of it or nothing. A failure costs the next one 0.2 s. */
static void write_cache(const char *path, const struct skid_result *result)
{
    char head[1024], temporary[PATH_MAX];
    write_head(&result->key, head, sizeof head);
    int n = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = n > 0 && n < (int)sizeof temporary ? fopen(temporary, "wxe") : NULL;
    if (!file)
        return;
    bool ok = fprintf(file, "%strigger %s rule %u\n", head, result->trigger, result->rule) > 0;
    for (unsigned k = 0; k < SKID_KERNELS; k++) {
        const struct skid_kernel *kernel = &result->kernels[k];
        ok = ok && fprintf(file, "%u %u %u\n", kernel->n_at, kernel->n_next, kernel->n_elsewhere) > 0;
    }
    ok = ok && fputs("end\n", file) >= 0;
    ok = fclose(file) == 0 && ok;
    if (!ok || rename(temporary, path) != 0)
        (void)unlink(temporary);
}

/* Lock file, or -1 where none can be had: then everyone measures for himself. */
static int take_lock(const char *path)
{
    const struct timespec pause = {0, 10000000};
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    for (unsigned n = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; n++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || n == LOCK_TRIES) {
            close(fd);
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    return fd;
}

int skid_get(const char *cache_dir, struct skid_result *result, struct error *err)
{
    char path[PATH_MAX], lock_path[PATH_MAX];
    struct skid_key key;
    skid_key_read(&key);
    if (!cache_dir || !cache_path(cache_dir, &key, ".txt", path) || !cache_path(cache_dir, &key, ".lock", lock_path))
        return skid_measure(result, err);
    if (read_cache(path, &key, result))
        return 0;
    (void)mkdir(cache_dir, 0777);
    int lock = take_lock(lock_path);
    if (lock >= 0 && read_cache(path, &key, result)) {
        close(lock);
        return 0;
    }
    int code = skid_measure(result, err);
    if (code == 0 && lock >= 0)
        write_cache(path, result);
    if (lock >= 0)
        close(lock);
    return code;
}
