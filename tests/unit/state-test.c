/* SPDX-License-Identifier: BSD-3-Clause */
/* A state as text: what is written is read as the same, whatever is in it, and what is wrong is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "answer/state.h"

static void expect_text(const struct state *state, const char *wanted)
{
    struct buf text = {0};
    state_put_text(state, &text);
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_fini(&text);
}

static void test_known(void **unused)
{
    (void)unused;
    struct state state;
    struct error err = {0};
    assert_int_equal(
        state_of_text("#top=5&view=annotate&active=line%3acg.c:52&metric=EADDR+(usec)&selected=b&selected=a", &state,
                      &err),
        0);
    assert_string_equal(state_get(&state, "active"), "line:cg.c:52");
    assert_string_equal(state_get(&state, "metric"), "EADDR (usec)");
    assert_null(state_get(&state, "by"));
    expect_text(&state, "view=annotate&active=line:cg.c:52&selected=b&selected=a&metric=EADDR%20(usec)&top=5");
    assert_int_equal(state_set(&state, "view", "vars", &err), 0);
    assert_int_equal(state_set(&state, "selected", "", &err), 0);
    assert_int_equal(state_set(&state, "active", "variable:a&b=<c> 100%", &err), 0);
    expect_text(&state, "view=vars&active=variable:a%26b%3D%3Cc%3E%20100%25&metric=EADDR%20(usec)&top=5");
    assert_int_equal(state_set(&state, "vew", "vars", &err), ERR_USAGE);
    assert_string_equal(err.text, "a state has no 'vew'; did you mean 'view'?");
    state_fini(&state);
    assert_int_equal(state_of_text("", &state, &err), 0);
    assert_int_equal(state.n, 0);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const char *const bad[][2] = {
        {"actve=1", "a state has no 'actve'; did you mean 'active'?"},
        {"view", "a state is KEY=VALUE, joined by &; this is none: 'view'"},
        {"=x", "a state is KEY=VALUE, joined by &; this is none: '=x'"},
        {"view=vars&view=tree", "a state has one 'view', not two"},
        {"view=", "a state: 'view' takes a value"},
        {"paths=yes", "a state: 'paths' takes 1"},
        {"top=5&filter=%4", "a state: % needs two hexadecimal digits, not 00, at byte 13"},
        {"filter=%00", "a state: % needs two hexadecimal digits, not 00, at byte 7"},
        {"top=0x10", "a state: 'top' takes a number of rows"},
        {"top=18446744073709551618", "a state: 'top' takes a number of rows"},
        {"min=1e1", "a state: 'min' takes a percentage, from 0 to 100"},
        {"min=100.5", "a state: 'min' takes a percentage, from 0 to 100"},
        {"min=1.2.3", "a state: 'min' takes a percentage, from 0 to 100"},
        {"order=name", "a state: 'order' takes time or memory"},
        {"filter=%zz", "a state: % needs two hexadecimal digits, not 00, at byte 7"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct state state;
        struct error err = {0};
        assert_int_equal(state_of_text(bad[i][0], &state, &err), ERR_USAGE);
        assert_string_equal(err.text, bad[i][1]);
        assert_int_equal(state.n, 0);
    }
}

/* Random states: the text of a text is the text. */
static void test_round_trips(void **unused)
{
    (void)unused;
    srandom(7);
    for (int round = 0; round < 2000; round++) {
        struct state state = {0}, again;
        struct error err = {0};
        struct buf one = {0}, two = {0};
        for (long n = random() % 12; n > 0; n--) {
            const struct state_key *key;
            char value[20] = {0};
            do
                key = state_key_at((size_t)random() % 32);
            while (!key);
            for (long i = 1 + random() % 18; i > 0; i--)
                value[i - 1] = (char)(1 + random() % 255);
            const char *taken = key->kind == STATE_FLAG    ? "1"
                                : key->option == ASK_TOP   ? "12"
                                : key->option == ASK_MIN   ? "2.50"
                                : key->option == ASK_ORDER ? "time"
                                                           : value;
            assert_int_equal(state_set(&state, key->name, taken, &err), 0);
        }
        state_put_text(&state, &one);
        assert_int_equal(state_of_text(one.data ? one.data : "", &again, &err), 0);
        assert_int_equal(again.n, state.n);
        for (size_t i = 0; i < state.n; i++) {
            assert_ptr_equal(again.pairs[i].key, state.pairs[i].key);
            assert_string_equal(again.pairs[i].value, state.pairs[i].value);
        }
        state_put_text(&again, &two);
        assert_string_equal(one.data ? one.data : "", two.data ? two.data : "");
        buf_fini(&one);
        buf_fini(&two);
        state_fini(&state);
        state_fini(&again);
    }
}

static void test_line(void **unused)
{
    (void)unused;
    char a[] = "vars", b[] = "--metric", c[] = "EADDR (usec)", d[] = "it's", e[] = "";
    char *all[] = {a, b, c, d, e};
    const struct state_words words = {.words = all, .n = 5};
    struct buf line = {0};
    state_put_line(&words, &line);
    assert_string_equal(line.data, "vars --metric 'EADDR (usec)' 'it'\\''s' ''");
    buf_fini(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
