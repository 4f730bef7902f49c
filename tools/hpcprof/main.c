/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof: one process. */
#include "base/process.h"
#include "hpcprof.h"

static int run_tool(int argc, char **argv)
{
    return hpcprof_main(argc, argv, NULL);
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
