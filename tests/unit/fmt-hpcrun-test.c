/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fmt/hpcrun.h: round trips of every dense version, every truncation, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unpacked.h"
#include "base/bytes.h"
#include "base/vec.h"
#include "fmt/file.h"
#include "fmt/hpcrun.h"

/* A profile with two metrics, two modules and a data-centric node. */
static void build(struct hpcrun_profile *profile, const char *version)
{
    memcpy(profile->version, version, sizeof profile->version);
    profile->granularity = 1;
    assert_int_equal(hpcrun_add_pair(profile, "program-name", "demo"), 0);
    assert_int_equal(hpcrun_add_pair(profile, "job-id", NULL), 1);
    assert_int_equal(hpcrun_add_epoch_pair(profile, "TODO:epoch-name", "TODO:epoch-value"), 0);
    assert_int_equal(hpcrun_add_metric(profile, "Size (byte)", "size", HPCRUN_VALUE_INT, 1, 0, 1), 0);
    assert_int_equal(hpcrun_add_metric(profile, "FAULTS", "faults", HPCRUN_VALUE_REAL, 7, 1, 1), 1);
    profile->metrics[1].mean_period = 2.5;
    profile->metrics[1].n_samples = 40;
    profile->metrics[1].is_frequency = 1;
    assert_int_equal(hpcrun_add_module(profile, 1, "/bin/demo", 0), 0);
    assert_int_equal(hpcrun_add_module(profile, 2, "/lib/libc.so.6", 0), 1);
    struct hpcrun_node root = {.id = 12}, leaf = {.id = -14, .parent = 12, .module = 1, .ip = 0x401201};
    if (version[3] == '1')
        leaf.type = HPCRUN_NODE_MEMACCESS;
    assert_int_equal(hpcrun_add_node(profile, &root), 0);
    assert_int_equal(hpcrun_add_node(profile, &leaf), 1);
    profile->values[1 * 2 + 0] = UINT64_MAX;
    profile->values[1 * 2 + 1] = bytes_bits_of(511.25);
}

static struct buf written(const struct hpcrun_profile *profile)
{
    struct buf bytes = {0};
    struct error err = {0};
    assert_int_equal(hpcrun_write(profile, &bytes, &err), 0);
    return bytes;
}

static void check_round_trip(const char *version, int short_metrics)
{
    struct hpcrun_profile profile = {0}, again = {0};
    struct error err = {0};
    build(&profile, version);
    profile.short_metrics = (uint8_t)short_metrics;
    struct buf bytes = written(&profile);
    assert_int_equal(hpcrun_read_memory(bytes.data, bytes.len_bytes, "x", &again, &err), 0);
    assert_string_equal(again.version, version);
    assert_int_equal(again.short_metrics, short_metrics);
    assert_string_equal(hpcrun_pair_value(&again, "program-name"), "demo");
    assert_null(hpcrun_pair_value(&again, "nothing"));
    assert_int_equal(again.n_nodes, 2);
    assert_int_equal(again.nodes[1].id, -14);
    assert_int_equal(again.nodes[1].type, profile.nodes[1].type);
    assert_true(again.values[2] == UINT64_MAX && again.values[3] == bytes_bits_of(511.25));
    assert_string_equal(again.metrics[1].name, "FAULTS");
    assert_true(again.metrics[1].period == 7 && again.metrics[1].n_samples == (short_metrics ? 0u : 40u));
    struct buf twice = written(&again);
    assert_int_equal(twice.len_bytes, bytes.len_bytes);
    assert_memory_equal(twice.data, bytes.data, bytes.len_bytes);
    buf_fini(&bytes);
    buf_fini(&twice);
    hpcrun_fini(&profile);
    hpcrun_fini(&again);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip("02.00", 0);
    check_round_trip("02.00", 1);
    check_round_trip("02.10", 0);
    check_round_trip("03.00", 0);
    check_round_trip("03.10", 0);
}

/* Every prefix is refused with file, offset and reason, from a buffer of exactly that size (for the sanitizers). */
static void check_truncations(const char *version, int short_metrics)
{
    struct hpcrun_profile profile = {0};
    build(&profile, version);
    profile.short_metrics = (uint8_t)short_metrics;
    struct buf bytes = written(&profile);
    for (size_t len_bytes = 0; len_bytes < bytes.len_bytes; len_bytes++) {
        char *prefix = malloc(len_bytes + !len_bytes);
        assert_non_null(prefix);
        memcpy(prefix, bytes.data, len_bytes);
        struct hpcrun_profile again = {0};
        struct error err = {0};
        assert_int_equal(hpcrun_read_memory(prefix, len_bytes, "cut.hpcrun", &again, &err), ERR_FORMAT);
        assert_non_null(strstr(err.text, "cut.hpcrun: offset "));
        assert_true(again.n_pairs == 0 && !again.pairs && !again.nodes);
        free(prefix);
    }
    buf_fini(&bytes);
    hpcrun_fini(&profile);
}

static void test_truncations(void **state)
{
    (void)state;
    check_truncations("03.10", 0);
    check_truncations("02.00", 0);
    check_truncations("02.00", 1);
}

/* No single changed byte may crash the reader, and what it accepts must write back to the same bytes. */
static void test_changed_bytes(void **state)
{
    (void)state;
    struct hpcrun_profile profile = {0};
    build(&profile, "03.10");
    struct buf bytes = written(&profile);
    size_t n_accepted = 0;
    for (size_t i = 0; i < bytes.len_bytes; i++)
        for (unsigned change = 1; change < 256; change = change * 2 + 1) {
            struct hpcrun_profile again = {0};
            bytes.data[i] = (char)(bytes.data[i] ^ (char)change);
            if (hpcrun_read_memory(bytes.data, bytes.len_bytes, "x", &again, NULL) == 0 && ++n_accepted) {
                struct buf twice = written(&again);
                assert_int_equal(twice.len_bytes, bytes.len_bytes);
                assert_memory_equal(twice.data, bytes.data, bytes.len_bytes);
                buf_fini(&twice);
            }
            hpcrun_fini(&again);
            bytes.data[i] = (char)(bytes.data[i] ^ (char)change);
        }
    assert_true(n_accepted > 100);
    buf_fini(&bytes);
    hpcrun_fini(&profile);
}

/* A golden file, since sparse profiles are only read: cut anywhere it is refused, and no changed byte may crash. */
static void test_sparse(void **state)
{
    (void)state;
    char dir[PATH_MAX], path[PATH_MAX + 128];
    unpacked_golden("formats", dir);
    (void)snprintf(path, sizeof path, "%s/profile-04.00/input.hpcrun", dir);
    struct buf bytes = {0};
    struct error err = {0};
    struct hpcrun_profile profile = {0};
    assert_int_equal(file_read(path, &bytes, &err), 0);
    assert_int_equal(hpcrun_read_memory(bytes.data, bytes.len_bytes, "s", &profile, &err), 0);
    assert_true(profile.n_nodes == 6 && profile.n_metrics == 4 && profile.n_ids == 4 && profile.n_id_kinds == 8);
    assert_true(profile.nodes[2].id == 19 && profile.values[2 * 4 + 1] == bytes_bits_of(2.5));
    assert_true(profile.values[3 * 4 + 2] == 77 && profile.values[5 * 4 + 2] == 0);
    hpcrun_fini(&profile);
    for (size_t len = 0; len < bytes.len_bytes; len++) {
        char *prefix = malloc(len + !len);
        assert_non_null(prefix);
        memcpy(prefix, bytes.data, len);
        assert_int_equal(hpcrun_read_memory(prefix, len, "s", &profile, &err), ERR_FORMAT);
        free(prefix);
    }
    size_t n_refused = 0;
    for (size_t i = 0; i < bytes.len_bytes; i++) {
        bytes.data[i] = (char)~bytes.data[i];
        n_refused += hpcrun_read_memory(bytes.data, bytes.len_bytes, "s", &profile, &err) != 0;
        hpcrun_fini(&profile);
        bytes.data[i] = (char)~bytes.data[i];
    }
    assert_true(n_refused > 300);
    buf_fini(&bytes);
}

static void test_epochs(void **state)
{
    (void)state;
    struct hpcrun_profile profile = {0}, again = {0};
    build(&profile, "03.10");
    profile.next = calloc(1, sizeof *profile.next);
    assert_non_null(profile.next);
    profile.next->granularity = 9;
    struct buf bytes = written(&profile);
    assert_int_equal(hpcrun_read_memory(bytes.data, bytes.len_bytes, "x", &again, NULL), 0);
    assert_non_null(again.next);
    assert_int_equal(again.next->granularity, 9);
    assert_null(again.next->next);
    buf_fini(&bytes);
    hpcrun_fini(&profile);
    hpcrun_fini(&again);
}

static void expect_refusal(const char *bytes, size_t len_bytes, int code, const char *words)
{
    struct hpcrun_profile profile = {0};
    struct error err = {0};
    assert_int_equal(hpcrun_read_memory(bytes, len_bytes, "f", &profile, &err), code);
    assert_non_null(strstr(err.text, words));
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal("HPCRUN-profile____09.99b\0\0\0\0", 28, ERR_UNSUPPORTED, "09.99");
    expect_refusal("HPCRUN-profile____03.10l\0\0\0\0", 28, ERR_FORMAT, "byte order");
    expect_refusal("HPCRUN-profile____03.10b\0\0\0\0", 28, ERR_FORMAT, "ends after its header");
    expect_refusal("HPCRUN-profile____03.10b\xff\xff\xff\xff", 28, ERR_FORMAT, "4294967295 entries");
    expect_refusal("\x7f"
                   "ELF and so on and so forth",
                   26, ERR_FORMAT, "not a profile");
    struct hpcrun_profile profile = {0};
    struct buf out = {0};
    struct error err = {0};
    build(&profile, "03.10");
    memcpy(profile.version, "04.00", 6);
    assert_int_equal(hpcrun_write(&profile, &out, &err), ERR_UNSUPPORTED);
    memcpy(profile.version, "03.10", 6);
    profile.metrics[0].flags[3] = 1;
    assert_int_equal(hpcrun_write(&profile, &out, &err), ERR_RANGE);
    assert_non_null(strstr(err.text, "Size (byte)"));
    hpcrun_fini(&profile);
    buf_fini(&out);
    assert_int_equal(hpcrun_read("/", &profile, &err), ERR_IO);
    assert_int_equal(hpcrun_read("/nonexistent/file", &profile, &err), ERR_IO);
}

static void test_write_file(void **state)
{
    (void)state;
    char dir[] = "/tmp/fmt-hpcrun-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a.hpcrun", dir);
    struct hpcrun_profile profile = {0}, again = {0};
    struct error err = {0};
    build(&profile, "03.10");
    assert_int_equal(hpcrun_write_file(&profile, path, &err), 0);
    assert_int_equal(hpcrun_read(path, &again, &err), 0);
    assert_int_equal(again.n_modules, 2);
    assert_int_equal(hpcrun_write_file(&profile, path, &err), ERR_IO);
    assert_non_null(strstr(err.text, path));
    hpcrun_fini(&profile);
    hpcrun_fini(&again);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_truncations), cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_sparse),     cmocka_unit_test(test_epochs),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_write_file),
    };
    return cmocka_run_group_tests(tests, NULL, unpacked_remove);
}
