/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of measurement/names.h: forms, parsing, and many processes that claim the same name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measurement/names.h"

static void test_directory(void **state)
{
    (void)state;
    char *name = names_directory(NULL, "/opt/bin/app", NULL);
    assert_string_equal(name, "./hpctoolkit-app-measurements");
    free(name);
    name = names_directory("", "app", "77[1]/x");
    assert_string_equal(name, "./hpctoolkit-app-measurements-77[1]_x");
    free(name);
    name = names_directory("/scratch/m", "app", "77");
    assert_string_equal(name, "/scratch/m");
    free(name);
}

static void test_job_id(void **state)
{
    (void)state;
    static const char *const all[] = {"LSB_JOBID", "COBALT_JOBID", "PBS_JOBID", "SLURM_JOB_ID", "JOB_ID"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(unsetenv(all[i]), 0);
    assert_null(names_job_id());
    for (int i = 4; i >= 0; i--) {
        assert_int_equal(setenv(all[i], all[i] + 1, 1), 0);
        assert_string_equal(names_job_id(), all[i] + 1);
    }
    assert_int_equal(setenv("LSB_JOBID", "", 1), 0);
    assert_string_equal(names_job_id(), "OBALT_JOBID");
}

static void test_form_and_parse(void **state)
{
    (void)state;
    struct names_file file = {.exe = "a-b.x",
                              .rank = 3,
                              .thread = 1234,
                              .host_id = 0x7f0101,
                              .pid = 19750,
                              .generation = 2,
                              .suffix = "hpcrun"},
                      again;
    struct error err = {0};
    char *path = names_path("/m", &file);
    assert_string_equal(path, "/m/a-b.x-000003-1234-007f0101-19750-2.hpcrun");
    assert_int_equal(names_parse(path, &again, &err), 0);
    assert_memory_equal(&again.rank, &file.rank, sizeof file - offsetof(struct names_file, rank));
    assert_string_equal(again.exe, "a-b.x");
    free(path);
    static const char *const bad[] = {
        "",
        "x",
        "x.hpcrun",
        "-000003-000-007f0101-1-0.hpcrun",
        "x-000003-000-007f0101-1-.hpcrun",
        "x-000003-000-zz-1-0.hpcrun",
        "x-000003-000-1ffffffff-1-0.hpcrun",
        "x-000003-000-00-99999999999-0.hpcrun",
        "x-000003-000-007f0101-1-0",
        "x-000003-000-007f0101-1-0.",
        "x-000003-007f0101-1-0.log",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(names_parse(bad[i], &again, &err), ERR_FORMAT);
    memset(file.exe, 'e', 255);
    path = names_path(NULL, &file);
    assert_int_equal(strlen(path), 255);
    assert_int_equal(names_parse(path, &again, &err), 0);
    assert_int_equal(again.pid, 19750);
    free(path);
}

static void remove_all(const char *dir)
{
    DIR *entries = opendir(dir);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        (void)unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    assert_int_equal(rmdir(dir), 0);
}

static void test_claims_count_up(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-names-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct error err = {0};
    for (int i = 0; i <= 20; i++) {
        struct names_file file = {.exe = "x", .host_id = 7, .pid = 5};
        int fd = names_claim(dir, &file, &err);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(file.generation, i < NAMES_RANDOM_FROM ? i : NAMES_RANDOM_FROM);
        assert_true((file.host_id == 7) == (i < NAMES_RANDOM_FROM));
        char *path = names_path(dir, &file);
        assert_int_equal(access(path, F_OK), 0);
        free(path);
    }
    remove_all(dir);
    struct names_file file = {.exe = "x"};
    assert_int_equal(names_claim(dir, &file, &err), ERR_IO);
    assert_non_null(strstr(err.text, dir));
}

static void test_profile_without_log(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-names-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct names_file file = {.exe = "x", .host_id = 7, .pid = 5, .suffix = "hpcrun"};
    char *path = names_path(dir, &file);
    FILE *profile = fopen(path, "w");
    assert_non_null(profile);
    (void)fclose(profile);
    free(path);
    int fd = names_claim(dir, &file, NULL);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file.generation, 1);
    remove_all(dir);
}

/* Eight processes with one pid and host: as many different names. */
static void test_race(void **state)
{
    (void)state;
    enum { N_PROCESSES = 8 };
    char dir[] = "/tmp/fmt-names-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < N_PROCESSES; i++)
        if (fork() == 0) {
            struct names_file file = {.exe = "x", .host_id = 7, .pid = 5};
            _exit(names_claim(dir, &file, NULL) >= 0 ? 0 : 1);
        }
    for (int i = 0; i < N_PROCESSES; i++) {
        int status = -1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    int n_logs = 0;
    DIR *entries = opendir(dir);
    for (struct dirent *entry; (entry = readdir(entries));)
        n_logs += strstr(entry->d_name, ".log") != NULL;
    closedir(entries);
    assert_int_equal(n_logs, N_PROCESSES);
    remove_all(dir);
}

static void test_directory_make(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-names-test-XXXXXX", path[64], *real = NULL;
    assert_non_null(mkdtemp(dir));
    struct error err = {0};
    (void)snprintf(path, sizeof path, "%s/m", dir);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(names_directory_make(path, false, &real, &err), 0);
        assert_non_null(strstr(real, path));
        free(real);
    }
    (void)snprintf(path, sizeof path, "%s/m/no/such", dir);
    assert_int_equal(names_directory_make(path, false, &real, &err), ERR_IO);
    (void)snprintf(path, sizeof path, "%s/f", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(names_directory_make(path, false, &real, &err), ERR_IO);
    assert_non_null(strstr(err.text, "not a directory"));
    (void)snprintf(path, sizeof path, "%s/m", dir);
    assert_int_equal(rmdir(path), 0);
    remove_all(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory),           cmocka_unit_test(test_job_id),
        cmocka_unit_test(test_form_and_parse),      cmocka_unit_test(test_claims_count_up),
        cmocka_unit_test(test_profile_without_log), cmocka_unit_test(test_race),
        cmocka_unit_test(test_directory_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
