/* SPDX-License-Identifier: BSD-3-Clause */
/* Any stretch of a profile's contexts comes back as it was written, however it falls into pieces; an index that is not
 * sound is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "database/v4.h"

enum { N_CONTEXTS = 9000, GREAT = 4000, GREAT_VALUES = 50000 };

struct made {
    struct spill file;
    struct v4_place place;
};

/* Context 3 i + 5 has i % 7 + 1 values, one of them very many; each tells its context and number. */
static uint64_t count_of(uint32_t i)
{
    return i == GREAT ? GREAT_VALUES : i % 7 + 1;
}

static uint32_t id_of(uint32_t i)
{
    return 3 * i + 5;
}

static void make(struct made *made)
{
    struct buf values = {0}, index = {0};
    struct error err;
    struct spill_piece piece;
    for (uint32_t i = 0; i < N_CONTEXTS; i++) {
        uint32_t id = id_of(i);
        buf_append(&index, &id, 4);
        buf_append(&index, &made->place.n_values, 8);
        for (uint64_t k = 0; k < count_of(i); k++, made->place.n_values++) {
            double value = i + (double)k / 65536;
            buf_append(&values, &(uint16_t){(uint16_t)k}, 2);
            buf_append(&values, &value, 8);
        }
    }
    made->place.n_indices = N_CONTEXTS;
    assert_int_equal(spill_open(&made->file, "/tmp", &err), 0);
    assert_int_equal(spill_append(&made->file, "before", 6, &piece, &err), 0);
    assert_int_equal(spill_append(&made->file, values.data, values.len_bytes, &piece, &err), 0);
    made->place.values = piece.offset;
    assert_int_equal(spill_append(&made->file, index.data, index.len_bytes, &piece, &err), 0);
    made->place.indices = piece.offset;
    buf_fini(&values);
    buf_fini(&index);
}

static void check_stretch(struct v4_slices *slices, const struct v4_place *place, uint32_t first, uint32_t end)
{
    struct error err;
    uint32_t i = first, at = first;
    while (at < end) {
        struct v4_piece piece;
        assert_int_equal(v4_slice_next(slices, place, &at, end, &piece, &err), 0);
        assert_true(piece.n > 0);
        for (uint32_t n = 0; n < piece.n; n++, i++) {
            struct v4_run run = v4_piece_run(&piece, n);
            double last;
            memcpy(&last, run.values + 10 * (run.n - 1) + 2, 8);
            assert_int_equal(run.context, id_of(i));
            assert_int_equal(run.n, count_of(i));
            assert_true(last == i + (double)(run.n - 1) / 65536);
        }
        assert_int_equal(i, at);
    }
    assert_int_equal(i, end);
}

static void test_find(void **state)
{
    (void)state;
    struct made made = {0};
    make(&made);
    struct v4_slices slices = {.fd = made.file.fd, .path = "made"};
    struct error err;
    uint32_t found;
    for (uint32_t id = 0; id < id_of(N_CONTEXTS); id += 11) {
        uint32_t expected = id < 5 ? 0 : (id - 5 + 2) / 3;
        assert_int_equal(v4_slice_find(&slices, &made.place, expected / 2, id, &found, &err), 0);
        assert_int_equal(found, expected);
    }
    assert_int_equal(v4_slice_find(&slices, &made.place, 0, UINT32_MAX, &found, &err), 0);
    assert_int_equal(found, N_CONTEXTS);
    v4_slices_fini(&slices);
    spill_close(&made.file);
}

static void test_walk(void **state)
{
    (void)state;
    struct made made = {0};
    make(&made);
    struct v4_slices slices = {.fd = made.file.fd, .path = "made"};
    check_stretch(&slices, &made.place, 0, N_CONTEXTS);
    check_stretch(&slices, &made.place, 17, 18);
    check_stretch(&slices, &made.place, GREAT - 1, GREAT + 2);
    check_stretch(&slices, &made.place, N_CONTEXTS - 1, N_CONTEXTS);
    v4_slices_fini(&slices);
    spill_close(&made.file);
}

static void test_unsound(void **state)
{
    (void)state;
    struct made made = {0};
    make(&made);
    struct v4_slices slices = {.fd = made.file.fd, .path = "made"};
    struct v4_piece piece;
    struct error err;
    uint32_t at = 100;
    assert_int_equal(
        spill_write_at(made.file.fd, "made", made.place.indices + 12 * 150 + 4, &(uint64_t){UINT64_MAX / 2}, 8, &err),
        0);
    assert_int_equal(v4_slice_next(&slices, &made.place, &at, 200, &piece, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "made"));
    at = 10;
    assert_int_equal(v4_slice_next(&slices, &made.place, &at, 20, &piece, &err), 0);
    v4_slices_fini(&slices);
    spill_close(&made.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_unsound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
