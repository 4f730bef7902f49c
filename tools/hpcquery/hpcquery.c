/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery: reports from a database. */
#include "config.h"

#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/report/report.h"
#include "base/options.h"
#include "export/database/database.h"
#include "export/exporters.h"
#include "export/vars-table.h"

#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 60
#define COLUMNS_MAX 1000

enum {
    OPT_CSV = 1,
    OPT_JSON,
    OPT_HTML,
    OPT_TOP,
    OPT_METRIC,
    OPT_ALL,
    OPT_PATHS,
    OPT_BY,
    OPT_MARK,
    OPT_ORDER,
    OPT_FIELDS,
    OPT_MIN,
    OPT_VERBOSE,
    OPT_LIST_METRICS
};

static const struct option_row rows[] = {
    {OPT_CSV, "--csv", NULL, "Print comma-separated values."},
    {OPT_JSON, "--json", NULL, "Print JSON."},
    {OPT_HTML, "--html", NULL, "vars: print a page for a browser in one file, with the paths to each allocation."},
    {OPT_TOP, "--top", "N",
     "Print at most N rows; 0 prints all. Default: 12 variables, functions, lines or paths, all nodes; all in "
     "CSV and JSON. In text, rows that are no variables (<compute>, ...) follow, from 0.05 % on."},
    {OPT_METRIC, "-M --metric", "NAME",
     "Report about this metric. Default: the latency of accesses where the hardware "
     "reported it, else the first with data addresses."},
    {OPT_ALL, "-a --all", NULL,
     "vars: also list variables without samples. leaks: also list allocation paths without live blocks. annotate: all "
     "lines."},
    {OPT_PATHS, "--paths", NULL, "vars: one row for each allocation path, even where name and site are the same."},
    {OPT_BY, "--by", "region", "vars: for each region that the program names, the variables that cost the time there."},
    {OPT_MARK, "--mark", NULL,
     "leaks: what was live at the mark (hpcrun --leaks-at, locus_mark_live) instead of at the end."},
    {OPT_ORDER, "--order", "time",
     "vars: order the rows by all time at a variable. Default: by the time that waited, or may have waited, for "
     "memory, where that is known."},
    {OPT_FIELDS, "--fields", NULL, "vars: list the fields of each variable; with --csv a table of fields."},
    {OPT_VERBOSE, "-v --verbose", NULL,
     "vars: also print how it was measured: source, CPU time, classes, the fate of every sample, types, skid test."},
    {OPT_MIN, "--min --threshold", "PERCENT",
     "Leave out what is below this part of the total. Default in text: 1 for the tree, 0.5 for annotate; else 0."},
    {OPT_LIST_METRICS, "--list-metrics", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_choice choices[] = {
    {OPT_METRIC, 0, CHOICE_LINES, "--list-metrics"},
    {OPT_BY, 0, CHOICE_WORDS, "region"},
    {0, 1, CHOICE_WORDS, "vars functions lines annotate tree leaks export"},
    {0, 0, CHOICE_DIRECTORIES, DATABASE_FILE},
    {0, 0, CHOICE_WORDS, NULL},
};

/* What the rows in angle brackets are. */
static bool describe_row(size_t i, const char **name, char *text, size_t n_text)
{
    const struct special_row *row = special_rows_at(i);
    if (!row)
        return false;
    *name = row->name;
    (void)snprintf(text, n_text, "%c%s. %s", toupper((unsigned char)row->means[0]), row->means + 1, row->advice);
    return true;
}

static const struct option_spec spec = {
    .tool = "hpcquery",
    .summary = "print reports from a database",
    .synopsis = "vars [options] DB\nfunctions [options] DB\nlines [options] DB\nannotate FILE|FUNCTION [options] "
                "DB\ntree [options] DB\nleaks [options] "
                "DB\nexport json DB",
    .description =
        "vars prints the variables that the samples fell on. A row shows the share of all samples, name, class, size, "
        "number of blocks, where the variable was allocated or declared, on which NUMA nodes the accessing threads "
        "ran, and the lines that access it with the loops around them. Samples without address and addresses without "
        "variable are rows too, so that the shares add up to 100 percent. Where hardware reported each access, the "
        "rows are sorted by latency and show its mean and 95th percentile, the shares of the cache levels, and of "
        "memory of this and of other NUMA nodes. With --fields the fields that its samples lie in follow each "
        "variable: fields of structures, of what was allocated, of local variables. Without debug information they are "
        "offsets.\n\n"
        "functions and lines print what each function and each source line cost, by itself and with the functions that "
        "it "
        "calls, and which variables it spent that on. Recursion counts once, and an inlined function is a function.\n\n"
        "annotate prints the source of a file, or of a function, as the database has a copy of it, with what each line "
        "cost: the lines with samples and a few around them. A file goes by the end of its path, a function by its "
        "name "
        "without parameters; FILE:FUNCTION tells apart those of the same name.\n\n"
        "tree prints the call tree with the data-centric tree below <datacentric>. Regions that the program names "
        "(locus.h, ITT tasks, NVTX ranges) stand above the call paths.\n\n"
        "leaks prints what was still allocated when the program ended, by allocation path: live blocks and bytes, all "
        "that was allocated there, and the share of the samples that fell on it, or that none did. Live means "
        "allocated and not freed; pointers to a block do not matter. Any measurement that recorded allocations will "
        "do.\n\n"
        "export writes all that the database holds in another form; doc/FORMAT.md describes json.\n\n"
        "The first columns of vars --csv are variable, class, alloc_site, size_bytes, n_blocks, samples, share; with "
        "--fields they are variable, class, alloc_site, field, samples, share. Samples are as counted; values are "
        "estimates of all events, scaled where an event shared its counter. threads_ and ranks_ columns show how the "
        "values spread over all threads and all processes: how many have a value, mean, least and greatest value, "
        "standard deviation, and that divided by the mean (cov).",
    .rows = rows,
    .examples = "  hpcquery vars hpctoolkit-app-database\n"
                "  hpcquery vars --csv hpctoolkit-app-database >vars.csv\n"
                "  hpcquery vars --by region hpctoolkit-app-database\n"
                "  hpcquery functions hpctoolkit-app-database\n"
                "  hpcquery tree --metric FAULTS hpctoolkit-app-database\n"
                "  hpcquery leaks --top 0 hpctoolkit-app-database",
    .exit_status = "0 when the report was printed, 1 when it could not be made, 2 for a wrong command line.",
    .see_also = "hpcprof(1), hpcrun(1)",
    .choices = choices,
    .section = "ROWS THAT ARE NO VARIABLES",
    .section_row = describe_row,
};

struct settings {
    const char *form, *metric, *subject;
    long top;
    double least;
    bool by_time, with_unused, with_paths, with_fields, by_region, at_mark, is_verbose, lists_metrics;
};

static int usage(const char *text)
{
    return tool_usage("hpcquery", "%s", text);
}

/* Takes one option; 0 when the program goes on, else its exit status + 1. */
static int take_option(int id, const char *value, struct settings *settings)
{
    char *end = NULL;
    if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
        return 1;
    switch (id) {
    case OPT_CSV:
        settings->form = "csv";
        break;
    case OPT_JSON:
        settings->form = "json";
        break;
    case OPT_HTML:
        settings->form = "html";
        break;
    case OPT_METRIC:
        settings->metric = value;
        break;
    case OPT_ALL:
        settings->with_unused = true;
        break;
    case OPT_PATHS:
        settings->with_paths = true;
        break;
    case OPT_ORDER:
        if (strcmp(value, "time") != 0 && strcmp(value, "memory") != 0)
            return usage("--order takes time or memory") + 1;
        settings->by_time = strcmp(value, "time") == 0;
        break;
    case OPT_MARK:
        settings->at_mark = true;
        break;
    case OPT_LIST_METRICS:
        settings->lists_metrics = true;
        break;
    case OPT_VERBOSE:
        settings->is_verbose = true;
        break;
    case OPT_FIELDS:
        settings->with_fields = true;
        break;
    case OPT_BY:
        settings->by_region = strcmp(value, "region") == 0;
        return settings->by_region ? 0 : 1 + usage("--by takes: region");
    case OPT_TOP:
        settings->top = strtol(value, &end, 10);
        return *end || end == value || settings->top < 0 ? 1 + usage("--top takes a number") : 0;
    default:
        settings->least = strtod(value, &end);
        return *end || end == value || !(settings->least >= 0 && settings->least <= 100)
                   ? 1 + usage("--min takes a percentage, from 0 to 100")
                   : 0;
    }
    return 0;
}

/* COLUMNS, else the terminal's width, else a default. */
static unsigned terminal_columns(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    unsigned long n = columns ? strtoul(columns, &end, 10) : 0;
    if (n == 0 || *end || *columns == '-')
        n = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    if (n == 0)
        return COLUMNS_DEFAULT;
    return n < COLUMNS_MIN ? COLUMNS_MIN : n > COLUMNS_MAX ? COLUMNS_MAX : (unsigned)n;
}

/* Says which metrics there are. */
static int refuse_metric(const struct model *model, const char *name)
{
    struct buf text = {0};
    buf_printf(&text, name ? "the database has no metric '%s'; it has:" : "the database has no metric%.0s",
               name ? name : "");
    for (size_t i = 0; i < model->n_metrics; i++)
        buf_printf(&text, "%s '%s'", i ? "," : "", model->metrics[i].name);
    int status = tool_error("hpcquery", "%s", text.data ? text.data : "out of memory");
    buf_fini(&text);
    return status;
}

/* Of these all rows are shown in text, too, as long as they are not small. */
static bool has_all_rows(const char *report)
{
    return strcmp(report, "tree") == 0 || strcmp(report, "annotate") == 0;
}

static int print_report(const struct settings *settings, const struct exporter *exporter, const struct model *model,
                        const char *directory, const struct thread_values *values)
{
    int64_t metric = model_choose_metric(model, settings->metric);
    if (metric < 0)
        return refuse_metric(model, settings->metric);
    bool text_form = strcmp(settings->form, "text") == 0 || strcmp(settings->form, "html") == 0;
    long top = settings->top >= 0 ? settings->top : text_form && !has_all_rows(exporter->report) ? 12 : 0;
    const char *no_color = getenv("NO_COLOR");
    const struct export_job job = {.model = model,
                                   .values = values,
                                   .directory = directory,
                                   .subject = settings->subject,
                                   .metric = (size_t)metric,
                                   .top = (size_t)top,
                                   .by_time = settings->by_time,
                                   .with_unused = settings->with_unused,
                                   .with_paths = settings->with_paths,
                                   .at_mark = settings->at_mark,
                                   .with_fields = settings->with_fields,
                                   .is_verbose = settings->is_verbose,
                                   .color = isatty(STDOUT_FILENO) && !(no_color && *no_color),
                                   .unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                                   .columns = terminal_columns(),
                                   .least = settings->least};
    struct buf out = {0};
    struct error err = {0};
    int status = 0;
    if (exporter->write(&job, &out, &err) != 0)
        status = tool_error("hpcquery", "%s", err.text);
    else if (out.failed)
        status = tool_error("hpcquery", "out of memory");
    else if (fwrite(out.data ? out.data : "", 1, out.len_bytes, stdout) != out.len_bytes || fflush(stdout) != 0)
        status = tool_error("hpcquery", "the report cannot be written");
    buf_fini(&out);
    return status;
}

static int query(const struct settings *settings, const char *report, const char *path)
{
    bool is_vars = strcmp(report, "vars") == 0;
    if (settings->by_region && !is_vars)
        return usage("--by region goes with vars only; the tree shows regions as nodes");
    bool is_hidden = strcmp(report, "regions") == 0;
    const struct exporter *exporter =
        is_hidden ? NULL : exporters_find(settings->by_region ? "regions" : report, settings->form);
    if (!exporter && strcmp(settings->form, "html") == 0 && !is_hidden)
        return usage("--html goes with vars only, and not with --by region");
    if (!exporter)
        return tool_usage("hpcquery",
                          "there is no report '%s': vars, functions, lines, annotate, tree, leaks or export json",
                          report);
    struct model model;
    struct error err = {0};
    if (model_init(&model, &err) != 0)
        return tool_error("hpcquery", "%s", err.text);
    struct thread_values *values = NULL;
    int status = 0;
    char *directory = database_directory(path);
    if (!directory)
        status = tool_error("hpcquery", "out of memory");
    else if (database_read(path, &model, &err) != 0 || thread_values_open(directory, &model, &values, &err) != 0)
        status = tool_error("hpcquery", "%s", err.text);
    else
        status = print_report(settings, exporter, &model, directory, values);
    thread_values_free(values);
    free(directory);
    model_fini(&model);
    return status;
}

/* For the completion of the shell: the metrics of the first word that is a database. */
static int list_metrics(char **words)
{
    for (; *words; words++) {
        struct model model;
        struct error err;
        if (model_init(&model, &err) != 0)
            return tool_error("hpcquery", "%s", err.text);
        bool is_read = database_read(*words, &model, &err) == 0;
        for (size_t i = 0; is_read && i < model.n_metrics; i++)
            if (!model.metrics[i].hidden)
                (void)puts(model.metrics[i].name);
        model_fini(&model);
        if (is_read)
            break;
    }
    return 0;
}

static int run_tool(int argc, char **argv)
{
    struct option_scan scan = {0};
    struct settings settings = {.form = "text", .top = -1, .least = -1};
    struct error err = {0};
    int id, status = -1;
    (void)setlocale(LC_CTYPE, "");
    (void)signal(SIGPIPE, SIG_DFL);
    while (status < 0 && (id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END)
        status = id == OPTIONS_BAD ? usage(err.text) : take_option(id, scan.value, &settings) - 1;
    if (status < 0 && settings.lists_metrics)
        return list_metrics(argv + scan.index);
    const char *report = scan.n_operands > 0 ? argv[scan.index] : "";
    bool is_export = strcmp(report, "export") == 0, is_about = strcmp(report, "annotate") == 0;
    int n_words = is_export || is_about ? 2 : 1;
    if (status < 0 && scan.n_operands != n_words + 1)
        status = usage(is_export  ? "give a form (json) and a database after export"
                       : is_about ? "give a file or function, and a database after annotate"
                                  : "give a report (vars, functions, lines, annotate, tree or leaks) and a database");
    if (status < 0 && is_export)
        settings.form = argv[scan.index + 1];
    if (status < 0 && is_about)
        settings.subject = argv[scan.index + 1];
    if (status < 0)
        status = query(&settings, report, argv[scan.index + n_words]);
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
