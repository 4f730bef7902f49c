/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of measurement/pending.h: what a reader of a measurement directory sees of its writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measurement/names.h"
#include "measurement/pending.h"

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "pending-test-XXXXXX");
    return mkdtemp(directory) ? 0 : 1;
}

static int remove_directory(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

/* A process that holds a marker in the given state until it is killed. */
static pid_t hold(pid_t program, bool is_writing)
{
    int fds[2];
    char ready;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        struct pending_mark mark;
        if (pending_mark_open(&mark, directory, program, NULL) != 0)
            _exit(1);
        pending_mark_set(&mark, is_writing, program);
        if (write(fds[1], "x", 1) != 1)
            _exit(2);
        for (;;)
            (void)pause();
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &ready, 1), 1);
    (void)close(fds[0]);
    return child;
}

static void end(pid_t child)
{
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(pending_wait(directory, 0), PENDING_NONE);
    pid_t running = hold(getpid(), false);
    assert_int_equal(pending_wait(directory, 0), PENDING_RUNNING);
    pid_t writing = hold(getpid(), true);
    assert_int_equal(pending_wait(directory, 0), PENDING_WRITING);
    end(writing);
    assert_int_equal(pending_wait(directory, 0), PENDING_RUNNING);
    end(running);
    assert_int_equal(pending_wait(directory, 0), PENDING_NONE);
}

/* The program has just died, its companion does not know yet: its files are about to be written. */
static void test_dead_program_means_writing(void **state)
{
    (void)state;
    pid_t program = fork();
    if (program == 0)
        _exit(0);
    assert_int_equal(waitpid(program, NULL, 0), program);
    pid_t companion = hold(program, false);
    assert_int_equal(pending_wait(directory, 0), PENDING_WRITING);
    end(companion);
}

static void test_wait_ends_when_it_is_written(void **state)
{
    int seen[2];
    char byte = 0;
    (void)state;
    assert_int_equal(pipe(seen), 0);
    pid_t child = fork();
    if (child == 0) {
        struct pending_mark mark;
        (void)pending_mark_open(&mark, directory, 0, NULL);
        pending_mark_set(&mark, true, 0);
        (void)!read(seen[0], &byte, 1);
        (void)usleep(300000);
        pending_mark_close(&mark);
        _exit(0);
    }
    while (pending_wait(directory, 0) != PENDING_WRITING)
        (void)usleep(1000);
    assert_int_equal(write(seen[1], &byte, 1), 1);
    assert_int_equal(pending_wait(directory, 60000), PENDING_NONE);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(seen[0]);
    (void)close(seen[1]);
}

static void test_other_hosts_are_believed(void **state)
{
    char path[256];
    (void)state;
    (void)snprintf(path, sizeof path, "%s/.writing-%08x-1", directory, names_host_id() ^ 1u);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("writing 5\n", file);
    (void)fclose(file);
    assert_int_equal(pending_wait(directory, 0), PENDING_WRITING);
    assert_int_equal(unlink(path), 0);
}

static void test_no_directory(void **state)
{
    struct pending_mark mark;
    struct error err;
    (void)state;
    assert_int_equal(pending_wait("no/such/directory", 0), PENDING_NONE);
    assert_int_equal(pending_mark_open(&mark, "no/such/directory", 0, &err), ERR_IO);
    assert_non_null(strstr(err.text, "no/such/directory"));
    pending_mark_set(&mark, true, 0);
    pending_mark_close(&mark);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_dead_program_means_writing),
        cmocka_unit_test(test_wait_ends_when_it_is_written),
        cmocka_unit_test(test_other_hosts_are_believed),
        cmocka_unit_test(test_no_directory),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
