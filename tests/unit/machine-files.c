/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines for tests; see machine-files.h. */
#include "machine-files.h"

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampling/machine.h"

static struct {
    char dir[PATH_MAX / 2];
} files;

static void make_parents(char *path)
{
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0777);
            *at = '/';
        }
}

void machine_files_put(const char *path, const char *text)
{
    char whole[PATH_MAX];
    (void)snprintf(whole, sizeof whole, "%s/%s", files.dir, path);
    make_parents(whole);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", text) > 0);
    assert_int_equal(fclose(file), 0);
}

void machine_files_put_pmu(const char *pmu, const char *file, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "sys/bus/event_source/devices/%s/%s", pmu, file);
    machine_files_put(path, text);
}

const char *machine_files_begin(void)
{
    struct error err = {0};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(files.dir, sizeof files.dir, "%s/locus-machine.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(files.dir));
    machine_files_put("sys/README", "made by a test");
    assert_int_equal(machine_use(files.dir, &err), 0);
    return files.dir;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void machine_files_end(void)
{
    assert_int_equal(machine_use(NULL, NULL), 0);
    assert_int_equal(nftw(files.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
