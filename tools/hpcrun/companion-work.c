/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparations done by workers of the companion. Apart because they pull in the large libraries. Ordinary code. */
#include "companion-work.h"

#include "topology.h"

int companion_work_topology(const struct companion *c)
{
    struct error err;
    if (topology_write(c->setup->dir, &err) == 0)
        return 0;
    companion_log(c, "%s", err.text);
    return 1;
}

int companion_work_module(const struct companion *c, const char *path)
{
    companion_log(c, "%s: this build makes no module tables.", path);
    return 1;
}

int companion_work_prepare(const struct companion *c, const char *path)
{
    return companion_work_module(c, path);
}
