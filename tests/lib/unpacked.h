/* SPDX-License-Identifier: BSD-3-Clause */
/* For unit tests: inputs that are kept as texts, unpacked for as long as the test runs. After cmocka.h. */
#ifndef LOCUS_TESTS_UNPACKED_H
#define LOCUS_TESTS_UNPACKED_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* The scratch directory, made at the first call; static. */
static inline const char *unpacked_scratch(void)
{
    static char dir[PATH_MAX / 4];
    const char *tmp = getenv("TMPDIR");
    if (!dir[0]) {
        (void)snprintf(dir, sizeof dir, "%s/locus-unpacked.XXXXXX", tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(dir));
    }
    return dir;
}

/* Runs the command with $source (the sources), $scratch and $name in its environment; it must succeed. */
static inline void unpacked_run(const char *command, const char *name)
{
    const char *source = getenv("LOCUS_SRCDIR");
    assert_int_equal(setenv("source", source ? source : ".", 1), 0);
    assert_int_equal(setenv("scratch", unpacked_scratch(), 1), 0);
    assert_int_equal(setenv("name", name, 1), 0);
    assert_int_equal(system(command), 0);
}

/* Writes into path (PATH_MAX bytes) the folder that tests/golden/NAME.txt describes (see tests/lib/bundle.py), unpacked
 * at the first call. */
static inline void unpacked_golden(const char *name, char *path)
{
    (void)snprintf(path, PATH_MAX, "%s/%s", unpacked_scratch(), name);
    unpacked_run("to=$scratch/$name; [ -d \"$to\" ] || "
                 "python3 -B \"$source/tests/lib/bundle.py\" unpack \"$source/tests/golden/$name.txt\" \"$to\"",
                 name);
}

/* Group teardown: removes what was unpacked. */
static inline int unpacked_remove(void **state)
{
    (void)state;
    unpacked_run("rm -rf \"$scratch\"", "");
    return 0;
}

#endif
