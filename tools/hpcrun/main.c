/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun: see options.c for what it does and launch.c for how. */
#include <stdio.h>
#include <string.h>

#include "hpcrun.h"
#include "sampling/machine.h"
#include "status.h"

static int print_events(const struct hpcrun_options *options)
{
    const char *const *patterns = (const char *const *)options->command;
    if (list_events(patterns, stdout) > 0)
        return 0;
    return tool_error("hpcrun",
                      "no event of this machine matches; hpcrun -L lists all events, hpcrun -L 'sched:*' tracepoints");
}

static int print_plan(const struct hpcrun_options *options)
{
    struct error err;
    int status = plan_print(options, stdout, &err);
    if (status == 0)
        return 0;
    int failed = tool_error("hpcrun", "%s", err.text);
    return status == ERR_USAGE || status == ERR_RANGE ? 2 : failed; /* as launch_run says and ends */
}

/* Options end at the first operand; here one may still follow. */
static int print_status(const struct hpcrun_options *options)
{
    const char *operand = NULL;
    bool is_json = options->json;
    for (char **word = options->command; *word; word++) {
        if (strcmp(*word, "--json") == 0)
            is_json = true;
        else if (operand)
            return tool_usage("hpcrun", "--status takes one process id, one measurement directory, or nothing");
        else
            operand = *word;
    }
    return status_run(operand, is_json, stdout);
}

static int run_tool(int argc, char **argv)
{
    struct hpcrun_options options;
    struct error err;
    int status = hpcrun_options_parse(argc, argv, &options, &err);
    if (status == 1)
        return 0;
    if (status == 0)
        status = machine_use(options.machine, &err);
    if (status != 0)
        return tool_usage("hpcrun", "%s", err.text);
    if (options.trial)
        return doctor_try(options.trial, stdout);
    if (options.doctor)
        return doctor_print(stdout);
    if (options.status)
        return print_status(&options);
    if (options.json)
        return tool_usage("hpcrun", "--json goes with --status only");
    if (options.lists_names)
        return list_event_names(stdout);
    if (options.lists)
        return print_events(&options);
    if (options.prints_plan)
        return print_plan(&options);
    if (options.collect)
        return launch_collect(&options);
    if (options.machine)
        return tool_usage("hpcrun", "--machine goes with --doctor, -L and --print-plan only: a program cannot run on a "
                                    "machine that is merely described");
    if (!options.command[0])
        return tool_usage("hpcrun", "no command is given");
    return launch_run(&options);
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
