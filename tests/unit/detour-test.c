/* SPDX-License-Identifier: BSD-3-Clause */
/* Files on their way into a measurement directory: names are claimed anew, an interrupted move is finished without
 * doubles, and what is left is found by its target only once its owner is gone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "fmt/file.h"
#include "measurement/pending.h"
#include "measurement/runs.h"

static char from[64], to[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(from, sizeof from, "/tmp/detour-test-XXXXXX");
    (void)snprintf(to, sizeof to, "/tmp/detour-test-XXXXXX");
    return mkdtemp(from) && mkdtemp(to) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[256];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s %s", from, to);
    return system(command);
}

static void put(const char *directory, const char *name, const char *text)
{
    char path[512];
    struct error err;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(file_replace(path, text, strlen(text), &err), 0);
}

/* Text of a file, "" when there is none; until the next call. */
static const char *get(const char *directory, const char *name)
{
    static char text[64];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return text;
}

static size_t gather(void)
{
    struct error err;
    struct gather_result result = {0};
    assert_int_equal(gather_files(from, to, &result, &err), 0);
    return result.n_processes;
}

static void put_process(const char *text)
{
    put(from, "app-000001-000-000000ab-77-0.hpcrun", text);
    put(from, "app-000001-001-000000ab-77-0.hpcrun", text);
    put(from, "app-000001-000-000000ab-77-0.objects", text);
    put(from, "app-000001-000-000000ab-77-0.log", text);
}

static void test_names_are_claimed_anew(void **state)
{
    (void)state;
    put(to, "app-000001-000-000000ab-77-0.log", "theirs");
    put_process("ours");
    put(from, "setup", "stays");
    assert_int_equal(gather(), 1);
    assert_string_equal(get(to, "app-000001-000-000000ab-77-0.log"), "theirs");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-1.log"), "ours");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-1.hpcrun"), "ours");
    assert_string_equal(get(to, "app-000001-001-000000ab-77-1.hpcrun"), "ours");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-1.objects"), "ours");
    assert_string_equal(get(from, "app-000001-000-000000ab-77-0.log"), "");
    assert_string_equal(get(from, "setup"), "stays");
    assert_int_equal(gather(), 0);
}

static void test_interrupted_move_is_finished(void **state)
{
    struct error err;
    struct gather_result result = {0};
    char path[512];
    (void)state;
    put_process("first");
    /* A profile that cannot be replaced: the last step of the move fails. */
    (void)snprintf(path, sizeof path, "%s/app-000001-001-000000ab-77-0.hpcrun", to);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(gather_files(from, to, &result, &err), ERR_IO);
    assert_int_equal(result.n_processes, 0);
    assert_string_equal(get(from, "app-000001-000-000000ab-77-0.hpcrun"), "first");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(gather(), 1);
    assert_string_equal(get(to, "app-000001-001-000000ab-77-0.hpcrun"), "first");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-1.log"), "");
}

static void test_checkpoint_is_replaced(void **state)
{
    struct error err;
    struct names_file name, claimed;
    (void)state;
    put(to, "app-000001-000-000000ab-77-2.log", "checkpoint");
    put(to, "app-000001-000-000000ab-77-2.hpcrun", "checkpoint");
    put_process("final");
    assert_int_equal(names_parse("app-000001-000-000000ab-77-0.log", &name, &err), 0);
    assert_int_equal(names_parse("app-000001-000-000000ab-77-2.log", &claimed, &err), 0);
    assert_int_equal(gather_note(from, &name, &claimed, &err), 0);
    assert_int_equal(gather(), 1);
    assert_string_equal(get(to, "app-000001-000-000000ab-77-2.log"), "final");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-2.hpcrun"), "final");
    assert_string_equal(get(to, "app-000001-000-000000ab-77-0.log"), "");
}

static int count(void *ctx, const char *path)
{
    (void)path;
    ++*(int *)ctx;
    return 0;
}

static void keep(void *ctx, const char *place)
{
    (void)snprintf(ctx, DETOUR_PATH_MAX, "%s", place);
}

static int n_found(const char *target)
{
    int n = 0;
    assert_int_equal(detour_each(from, target, count, &n), 0);
    return n;
}

static void test_left_over_is_found(void **state)
{
    static struct detour detour;
    struct error err;
    char place[DETOUR_PATH_MAX] = "", target[DETOUR_PATH_MAX], path[DETOUR_PATH_MAX];
    (void)state;
    assert_int_equal(detour_open(&detour, from, to, &err), 0);
    (void)snprintf(path, sizeof path, "%s", detour.path);
    assert_true(detour_target(path, target));
    assert_string_equal(target, to);
    detour_point(&detour);
    detour_each_pointer(to, keep, place);
    assert_non_null(strstr(place, path));
    assert_int_equal(n_found(to), 0); /* its owner lives */
    put(path, "something", "left");
    detour_unpoint(&detour);
    detour_close(&detour);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(n_found(to), 1);
    assert_int_equal(n_found("/elsewhere"), 0);
    assert_false(detour_remove(path, to));
    put(path, "something", "");
    (void)snprintf(place, sizeof place, "%.4000s/something", path);
    assert_int_equal(unlink(place), 0);
    assert_true(detour_remove(path, to));
    place[0] = '\0';
    detour_each_pointer(to, keep, place);
    assert_string_equal(place, "");
}

static void test_used_up_directory_goes(void **state)
{
    static struct detour detour;
    struct error err;
    char path[DETOUR_PATH_MAX];
    (void)state;
    assert_int_equal(detour_open(&detour, "/no/such/place", to, &err), ERR_IO);
    assert_string_equal(detour.path, "");
    assert_int_equal(detour_open(&detour, from, to, &err), 0);
    (void)snprintf(path, sizeof path, "%s", detour.path);
    put(path, DETOUR_SETUP, "note");
    detour_close(&detour);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names_are_claimed_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupted_move_is_finished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_over_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_used_up_directory_goes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
