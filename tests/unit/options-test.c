/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of base/options.h: parsing, help text and man page of one made-up tool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/options.h"

enum { OPT_OUTPUT = 1, OPT_DS, OPT_D, OPT_EVENT, OPT_SECRET };

static const struct option_row option_rows[] = {
    {OPT_OUTPUT, "-o --output", "DIR",
     "Write into DIR. A directory that exists is kept, and the name of the new one gets a number."},
    {OPT_DS, "-ds", NULL, "Delay the sampling."},
    {OPT_D, "-d", "N", "Distance."},
    {OPT_EVENT, "-e --event", "EVENT@PERIOD", "Sample\n.EVENT\\."},
    {OPT_SECRET, "--secret", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec mixed = {
    .tool = "frob",
    .summary = "frobs things",
    .synopsis = "[options] FILE...\n--version",
    .description = "First paragraph,\ngoes on.\n\n  kept  as-is\nSecond.",
    .rows = option_rows,
    .examples = "  frob -o x\nFrobs into x.",
    .environment = "FROB_HOME  Where frobs live.\nFROB  Short.",
    .exit_status = "0 done.",
    .see_also = "frobber(1)",
};

static struct option_spec launcher_spec(void)
{
    struct option_spec spec = mixed;
    spec.stop_at_operand = 1;
    return spec;
}

struct words {
    char *argv[16];
    int argc;
};

/* Splits text at blanks in place, after the tool's name. */
static struct words split(char *text)
{
    struct words words = {{"frob"}, 1};
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words.argv[words.argc++] = word;
    return words;
}

static void test_values(void **state)
{
    (void)state;
    char text[] = "-o a -ob --output c --output=d --output= -ds -d5 -d -ds";
    struct words words = split(text);
    struct option_scan scan = {0};
    struct error err = {0};
    static const struct {
        int id;
        const char *value;
    } expected[] = {{OPT_OUTPUT, "a"}, {OPT_OUTPUT, "b"}, {OPT_OUTPUT, "c"}, {OPT_OUTPUT, "d"},
                    {OPT_OUTPUT, ""},  {OPT_DS, NULL},    {OPT_D, "5"},      {OPT_D, "-ds"}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), expected[i].id);
        if (expected[i].value)
            assert_string_equal(scan.value, expected[i].value);
        else
            assert_null(scan.value);
    }
    assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), OPTIONS_END);
    assert_int_equal(scan.n_operands, 0);
    assert_int_equal(scan.index, words.argc);
}

static void test_operands_are_moved_back(void **state)
{
    (void)state;
    char text[] = "one -o a two -ds - -- -d three";
    struct words words = split(text);
    struct option_scan scan = {0};
    struct error err = {0};
    assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), OPT_OUTPUT);
    assert_string_equal(scan.value, "a");
    assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), OPT_DS);
    assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), OPTIONS_END);
    static const char *const operands[] = {"one", "two", "-", "-d", "three"};
    assert_int_equal(scan.n_operands, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(words.argv[scan.index + i], operands[i]);
}

static void test_launcher_stops_at_the_program(void **state)
{
    (void)state;
    struct option_spec spec = launcher_spec();
    char text[] = "-ds ./app -o x";
    struct words words = split(text);
    struct option_scan scan = {0};
    struct error err = {0};
    assert_int_equal(options_next(&spec, &scan, words.argc, words.argv, &err), OPT_DS);
    assert_int_equal(options_next(&spec, &scan, words.argc, words.argv, &err), OPTIONS_END);
    assert_int_equal(scan.n_operands, 3);
    assert_string_equal(words.argv[scan.index], "./app");
    char dashes[] = "-ds -- -o x";
    words = split(dashes);
    scan = (struct option_scan){0};
    assert_int_equal(options_next(&spec, &scan, words.argc, words.argv, &err), OPT_DS);
    assert_int_equal(options_next(&spec, &scan, words.argc, words.argv, &err), OPTIONS_END);
    assert_int_equal(scan.n_operands, 2);
    assert_string_equal(words.argv[scan.index], "-o");
}

static void assert_refused(const char *line, const char *sentence)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s", line);
    struct words words = split(text);
    struct option_scan scan = {0};
    struct error err = {0};
    assert_int_equal(options_next(&mixed, &scan, words.argc, words.argv, &err), OPTIONS_BAD);
    assert_int_equal(err.code, ERR_USAGE);
    assert_string_equal(err.text, sentence);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused("--otput=x", "unknown option --otput=x; did you mean --output?");
    assert_refused("--evetn", "unknown option --evetn; did you mean --event?");
    assert_refused("--secrt", "unknown option --secrt; see frob --help");
    assert_refused("-z", "unknown option -z; see frob --help");
    assert_refused("-o", "option -o needs an argument: DIR");
    assert_refused("--event", "option --event needs an argument: EVENT@PERIOD");
    assert_refused("--help=x", "option --help takes no argument");
    char text[200] = "--";
    memset(text + 2, 'x', sizeof text - 3);
    char sentence[256];
    (void)snprintf(sentence, sizeof sentence, "unknown option %s; see frob --help", text);
    assert_refused(text, sentence);
}

typedef void printer(const struct option_spec *spec, FILE *out);

static void print_man_0(const struct option_spec *spec, FILE *out)
{
    options_print_man(spec, "0", out);
}

/* What print writes, malloc'ed. */
static char *printed(printer *print)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(&mixed, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_help(void **state)
{
    (void)state;
    static const char expected[] = "Usage: frob [options] FILE...\n"
                                   "       frob --version\n"
                                   "\n"
                                   "frobs things\n"
                                   "\n"
                                   "  First paragraph, goes on.\n"
                                   "\n"
                                   "    kept  as-is\n"
                                   "  Second.\n"
                                   "\n"
                                   "Options:\n"
                                   "  -o, --output DIR        Write into DIR. A directory that exists is kept, and\n"
                                   "                          the name of the new one gets a number.\n"
                                   "  -ds                     Delay the sampling.\n"
                                   "  -d N                    Distance.\n"
                                   "  -e, --event EVENT@PERIOD\n"
                                   "                          Sample .EVENT\\.\n"
                                   "  -h, --help              Print this help and exit.\n"
                                   "  -V, --version           Print the version and exit.\n"
                                   "\n"
                                   "Examples:\n"
                                   "    frob -o x\n"
                                   "  Frobs into x.\n"
                                   "\n"
                                   "Environment:\n"
                                   "  FROB_HOME               Where frobs live.\n"
                                   "  FROB                    Short.\n"
                                   "\n"
                                   "Exit status:\n"
                                   "  0 done.\n"
                                   "\n"
                                   "See also:\n"
                                   "  frobber(1)\n";
    char *text = printed(options_print_help);
    assert_string_equal(text, expected);
    free(text);
}

static void test_man(void **state)
{
    (void)state;
    static const char expected[] =
        ".TH FROB 1 \"\" \"Locus 0\" \"Locus manual\"\n"
        ".SH NAME\nfrob \\- frobs things\n"
        ".SH SYNOPSIS\n.B frob\n[options] FILE...\n.br\n.B frob\n\\-\\-version\n"
        ".SH DESCRIPTION\nFirst paragraph,\ngoes on.\n.PP\n"
        ".PP\n.nf\n  kept  as\\-is\n.fi\n.PP\nSecond.\n"
        ".SH OPTIONS\n"
        ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIDIR\\fR\n"
        "Write into DIR. A directory that exists is kept, and the name of the new one gets a "
        "number.\n"
        ".TP\n\\fB\\-ds\\fR\nDelay the sampling.\n"
        ".TP\n\\fB\\-d\\fR \\fIN\\fR\nDistance.\n"
        ".TP\n\\fB\\-e\\fR, \\fB\\-\\-event\\fR \\fIEVENT@PERIOD\\fR\n"
        "Sample\n\\&.EVENT\\e.\n"
        ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nPrint this help and exit.\n"
        ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nPrint the version and exit.\n"
        ".SH EXAMPLES\n.PP\n.nf\n  frob \\-o x\n.fi\n.PP\nFrobs into x.\n"
        ".SH ENVIRONMENT\n.TP\n.B FROB_HOME\nWhere frobs live.\n.TP\n.B FROB\nShort.\n"
        ".SH EXIT STATUS\n0 done.\n"
        ".SH SEE ALSO\nfrobber(1)\n";
    char *text = printed(print_man_0);
    assert_string_equal(text, expected);
    free(text);
}

static void print_version(const struct option_spec *spec, FILE *out)
{
    assert_true(options_standard(spec, OPTION_VERSION, "1.2.3", out));
    assert_false(options_standard(spec, OPT_OUTPUT, "1.2.3", out));
}

static void test_standard(void **state)
{
    (void)state;
    char *text = printed(print_version);
    assert_string_equal(text, "frob (Locus) 1.2.3\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_operands_are_moved_back),
        cmocka_unit_test(test_launcher_stops_at_the_program),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_man),
        cmocka_unit_test(test_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
