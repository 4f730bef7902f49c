/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcprof: one process. */
#include "hpcprof.h"

int main(int argc, char **argv)
{
    return hpcprof_main(argc, argv, NULL);
}
