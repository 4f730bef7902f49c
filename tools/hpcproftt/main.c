/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcproftt: dumps measurement and database files as text or JSON, makes files of JSON, and adds up logs. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "base/options.h"
#include "fmt/file.h"
#include "fmt/log.h"
#include "import/any.h"

enum { OPTION_JSON = 1, OPTION_FROM_JSON, OPTION_LOG, OPTION_OUTPUT };

static const struct option_row rows[] = {
    {OPTION_JSON, "--json", NULL,
     "Write JSON instead of text. It holds everything that the file does: integers beyond 2^53 as strings of digits, "
     "metric values of profiles as raw 64-bit words, strings that are not UTF-8 as {\"bytes\": \"<hex>\"}."},
    {OPTION_FROM_JSON, "--from-json", NULL,
     "Read JSON as --json writes it, of one profile, trace, log of samples, file of a database or side file, and make "
     "that file "
     "again. Needs -o. Unchanged JSON gives the same bytes (of version 4 files of other programs, the same content). "
     "A changed value arrives in the file or is refused."},
    {OPTION_LOG, "--log", NULL,
     "Add up the logs of measurement directories (or single logs): counters, what became of "
     "the samples of each event, messages."},
    {OPTION_OUTPUT, "-o --output", "FILE", "Write to FILE, which must not exist yet, instead of to standard output."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcproftt",
    .summary = "dump measurement files as text or JSON",
    .synopsis = "[--json] [-o FILE] FILE|DATABASE...\n"
                "--from-json -o FILE FILE.json\n"
                "--log [--json] [-o FILE] DIR|LOG...",
    .description =
        "Prints profiles (.hpcrun, versions 02.00, 02.10, 03.00, 03.10 and 04.00), traces (.hpctrace, 01.00 and "
        "01.01), logs of samples (.events), metric files of databases (.metric-db), the files of version 4 databases "
        "(meta.db, profile.db, "
        "cct.db, trace.db; all of them for the directory of a database), side files (.objects), logs (.log) and files "
        "of the perf tool (perf.data, of either byte order, compressed or piped; every record in order of time). The "
        "content of a file decides which kind it is. A file that is damaged or of another kind is refused with its "
        "name, the offset and the reason; the others are still printed.",
    .rows = rows,
    .examples = "  hpcproftt m/app-000000-000-007f0100-4711-0.hpcrun\n"
                "A profile as text.\n\n"
                "  hpcproftt --json a.hpcrun >a.json; hpcproftt --from-json -o b.hpcrun a.json\n"
                "The same profile again.\n\n"
                "  hpcproftt --log hpctoolkit-app-measurements\n"
                "What became of the samples of a run.",
    .exit_status =
        "0 when everything was printed, 1 when a file could not be read or written, 2 for a wrong command line.",
    .see_also = "hpcrun(1), hpcprof(1)",
};

struct request {
    bool json, from_json, log;
    const char *output;
};

static int usage(const char *sentence)
{
    return tool_usage("hpcproftt", "%s", sentence);
}

/* Writes what has been gathered; *out is emptied. */
static int emit(const struct request *request, struct buf *out)
{
    struct error err = {0};
    int status = 0;
    if (out->failed)
        status = tool_error("hpcproftt", "out of memory");
    else if (request->output && file_write_new(request->output, out->data, out->len_bytes, &err))
        status = tool_error("hpcproftt", "%s", err.text);
    else if (!request->output && out->len_bytes && fwrite(out->data, 1, out->len_bytes, stdout) != out->len_bytes)
        status = tool_error("hpcproftt", "standard output cannot be written");
    buf_fini(out);
    return status;
}

static void put_title(const char *path, struct buf *out)
{
    static const char line[] = "=============================================================================\n";
    buf_printf(out, "%s%s\n%s", line, path, line);
}

static int dump_one(const struct request *request, const char *path, struct buf *out)
{
    struct any_file file = {0};
    struct error err = {0};
    if (any_read(path, &file, &err))
        return tool_error("hpcproftt", "%s", err.text);
    if (request->json)
        any_put_json(&file, out);
    else {
        put_title(path, out);
        any_put_text(&file, out);
    }
    any_fini(&file);
    return 0;
}

/* A directory that has a meta.db is a database: its files, of which only trace.db may be missing. */
static int dump_path(const struct request *request, const char *path, struct buf *out)
{
    int status = 0;
    for (enum v4_kind kind = V4_META; kind < V4_KINDS; kind++) {
        char *name = NULL;
        if (asprintf(&name, "%s/%s", path, v4_file_name(kind)) < 0)
            return tool_error("hpcproftt", "out of memory");
        bool is_there = access(name, F_OK) == 0;
        if (is_there || (kind != V4_META && kind != V4_TRACE))
            status |= dump_one(request, name, out);
        free(name);
        if (!is_there && kind == V4_META)
            return dump_one(request, path, out);
    }
    return status;
}

/* One file after the other, so that one dump at a time is in memory; with -o all go into one file. */
static int dump(const struct request *request, char **paths, int n_paths)
{
    struct buf out = {0};
    int status = 0;
    for (int i = 0; i < n_paths; i++) {
        status |= dump_path(request, paths[i], &out);
        if (!request->output)
            status |= emit(request, &out);
    }
    if (request->output && out.len_bytes)
        status |= emit(request, &out);
    return status;
}

static int from_json(const struct request *request, const char *path)
{
    struct any_file file = {0};
    struct error err = {0};
    struct buf out = {0};
    int code = any_read_json(path, &file, &err);
    if (!code)
        code = any_write(&file, &out, &err);
    any_fini(&file);
    if (!code)
        return emit(request, &out);
    buf_fini(&out);
    return tool_error("hpcproftt", "%s", err.text);
}

static int sum_logs(const struct request *request, char **paths, int n_paths)
{
    struct log_sum sum = {0};
    struct error err = {0};
    struct buf out = {0};
    int status = 0;
    for (int i = 0; i < n_paths; i++)
        if (log_sum_add(&sum, paths[i], &err))
            status = tool_error("hpcproftt", "%s", err.text);
    if (sum.total.n_logs && request->json)
        log_put_json(&sum.total, &out);
    else if (sum.total.n_logs)
        log_sum_put_text(&sum, &out);
    log_sum_fini(&sum);
    return out.len_bytes ? status | emit(request, &out) : status;
}

static int run(const struct request *request, char **operands, int n_operands)
{
    if (!n_operands)
        return usage("no file is given");
    if (request->from_json && (request->json || request->log))
        return usage("--from-json goes with neither --json nor --log");
    if (request->from_json && (!request->output || n_operands != 1))
        return usage("--from-json needs -o FILE and one JSON file");
    if (request->from_json)
        return from_json(request, operands[0]);
    return request->log ? sum_logs(request, operands, n_operands) : dump(request, operands, n_operands);
}

static int run_tool(int argc, char **argv)
{
    struct request request = {0};
    struct option_scan scan = {0};
    struct error err = {0};
    int id;
    while ((id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            return usage(err.text);
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 0;
        request.json |= id == OPTION_JSON;
        request.from_json |= id == OPTION_FROM_JSON;
        request.log |= id == OPTION_LOG;
        if (id == OPTION_OUTPUT)
            request.output = scan.value;
    }
    int status = run(&request, argv + scan.index, scan.n_operands);
    if (fflush(stdout) != 0)
        status = tool_error("hpcproftt", "standard output cannot be written");
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
