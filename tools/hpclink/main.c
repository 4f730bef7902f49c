/* SPDX-License-Identifier: BSD-3-Clause */
/* hpclink: relinks a static program with the runtime inside. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/scratch.h"
#include "config.h"
#include "hpclink.h"

enum {
    OPT_DATA = 1,
    OPT_MEMLEAK,
    OPT_UNDEFINED,
    OPT_OUTPUT,
    OPT_VERBOSE,
    OPT_IO = OPTION_UNUSED,
    OPT_GA,
    OPT_DOUBLE_WRAP,
    OPT_FRONT_END,
    OPT_PLUGIN
};

static const struct option_row rows[] = {
    {OPT_DATA, "--datacentric --data-centric -data", NULL,
     "Intercept allocations. No effect, as this is always done; accepted for scripts made for HPCToolkit."},
    {OPT_MEMLEAK, "--memleak", NULL,
     "Prepare for counting leaked bytes (event MEMLEAK). No effect, as this is always done."},
    {OPT_UNDEFINED, "-u --undefined", "SYMBOL",
     "Pull the definition of SYMBOL out of the archives of the link line. May be given several times."},
    {OPT_OUTPUT, "-o", "FILE", "Write the program to FILE, whatever the link line says."},
    {OPT_VERBOSE, "-v --verbose", NULL, "Show both link lines, and where malloc comes from."},
    {OPT_IO, "--io", NULL, NULL},
    {OPT_GA, "--ga", NULL, NULL},
    {OPT_DOUBLE_WRAP, "-dw --double-wrap", NULL, NULL},
    {OPT_FRONT_END, "-fe --front-end", "DIR", NULL},
    {OPT_PLUGIN, "--plugin", "NAME", NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpclink",
    .summary = "relink a static program with the runtime inside",
    .synopsis = "[options] COMPILER ARGUMENT...",
    .description =
        "Nothing can be preloaded into a statically linked program, so hpclink links the runtime into it. Put hpclink "
        "in front of the line that links the program, as in CC=\"hpclink gcc\" or in the rule of a Makefile. C, C++, "
        "Fortran and MPI compilers work, with -static or -static-pie. hpclink links the program twice: first as it is, "
        "to see what it consists of, then with the runtime, which wraps allocation functions and some others (the "
        "linker's --wrap). Lines that only compile go to the compiler unchanged; so do options that hpclink does not "
        "know.\n\n"
        "The result behaves as before. hpcrun measures it like a dynamic program. When it is started alone while "
        "HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH is set, it starts hpcrun itself, from where hpcrun was when the program "
        "was linked, or from PATH.\n\n"
        "Programs linked with musl are refused. When nothing can be intercepted, because the program has an allocator "
        "under names of its own, a warning says so; static and stack variables are still named.",
    .rows = rows,
    .examples = "  hpclink gcc -static -O2 -g -o solver solver.o -lm\n  hpcrun ./solver\n"
                "Links a program and measures it.\n\n"
                "  HPCRUN_OUT_PATH=results HPCRUN_EVENT_LIST=EADDR ./solver\nMeasures it without a launcher.",
    .environment = "TMPDIR  where the first link is made (default /tmp).\n"
                   "HPCRUN_EVENT_LIST  read by the program: the events, separated by blanks.\n"
                   "HPCRUN_OUT_PATH  read by the program: the directory of the measurements.\n"
                   "HPCRUN_PERF_COUNT  read by the program: the period, as of hpcrun -c.\n"
                   "HPCRUN_TRACE  read by the program: 1 records a trace.\n"
                   "HPCRUN_DELAY_SAMPLING  read by the program: 1 waits for hpctoolkit_sampling_start().\n"
                   "HPCRUN_PROCESS_FRACTION  read by the program: the share of processes to measure.",
    .exit_status = "0 when the program was linked, 1 when it cannot be measured, 2 for a wrong command line; otherwise "
                   "that of the compiler.",
    .see_also = "hpcrun(1), hpcprof(1), hpcquery(1)",
    .stop_at_operand = 1,
};

static int usage(const struct error *err)
{
    return tool_usage("hpclink", "%s", err->text);
}

static int take(int id, const char *value, struct hpclink_options *options, struct error *err)
{
    options->verbose |= id == OPT_VERBOSE;
    if (id == OPT_OUTPUT)
        options->output = value;
    if (id != OPT_UNDEFINED)
        return 0;
    if (options->n_undefined == HPCLINK_UNDEFINED_MAX)
        return error_set(err, ERR_USAGE, "-u: there can be at most %d", HPCLINK_UNDEFINED_MAX);
    options->undefined[options->n_undefined++] = value;
    return 0;
}

/* The compiler, then the options that we do not know, then its own arguments. */
static char **make_line(char *const *passed, int n_passed, char **operands)
{
    size_t n = 0;
    while (operands[n])
        n++;
    char **line = calloc(n + (size_t)n_passed + 1, sizeof *line);
    for (size_t i = 0; line && i < n; i++)
        line[i ? i + (size_t)n_passed : 0] = operands[i];
    for (int i = 0; line && i < n_passed; i++)
        line[1 + i] = passed[i];
    return line;
}

/* 0, or the exit status plus one when there is nothing more to do. */
static int parse(int argc, char **argv, struct hpclink_options *options, struct error *err)
{
    struct option_scan scan = {.index = 1};
    char **passed = calloc((size_t)argc, sizeof *passed);
    int n_passed = 0;
    struct option_unused unused = {0};
    while (passed && scan.index < argc) {
        char *word = argv[scan.index];
        if (word[0] == '-' && word[1] && !(word[1] == '-' && !word[2]) && !options_is_known(&spec, word)) {
            passed[n_passed++] = word;
            scan.index++;
            continue;
        }
        int id = options_next(&spec, &scan, argc, argv, err);
        if (id == OPTIONS_END)
            break;
        if (id == OPTIONS_BAD ||
            (!options_standard(&spec, id, PACKAGE_VERSION, stdout) && take(id, scan.value, options, err) != 0)) {
            free(passed);
            return 1 + usage(err);
        }
        if (id >= OPTION_HELP) {
            free(passed);
            return 1;
        }
        if (id >= OPTION_UNUSED)
            option_unused_add(&unused, &spec, id);
    }
    option_unused_say(&unused, "hpclink");
    options->line = passed ? make_line(passed, n_passed, argv + scan.index) : NULL;
    free(passed);
    if (scan.index < argc)
        return 0;
    (void)error_set(err, ERR_USAGE, "a compiler's link line is missing");
    return 1 + usage(err);
}

/* What is no link is the compiler's business alone. */
static int run_line(const struct hpclink_options *options, struct error *err)
{
    struct link_line line;
    char directory[PATH_MAX];
    struct error why;
    int status = link_line_read(options->line, &line, err);
    if (status != 0)
        return status;
    if (!line.is_link) {
        (void)execvp(options->line[0], options->line);
        return error_set(err, ERR_NOT_FOUND, "%s: cannot be run: %s", options->line[0], strerror(errno));
    }
    if (options->output)
        line.output = options->output;
    status = scratch_make(directory, sizeof directory, "hpclink", &why);
    if (status != 0)
        return error_set(err, status, "%s", why.text);
    status = hpclink_relink(options, &line, directory, err);
    scratch_remove(directory);
    return status;
}

static int run_tool(int argc, char **argv)
{
    struct hpclink_options options = {0};
    struct error err = {0};
    int status = parse(argc, argv, &options, &err);
    if (status != 0)
        return status - 1;
    if (!options.line)
        status = error_set(&err, ERR_MEMORY, "out of memory");
    else
        status = run_line(&options, &err);
    free(options.line);
    if (status >= 0)
        return status;
    return tool_error("hpclink", "%s", err.text);
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
