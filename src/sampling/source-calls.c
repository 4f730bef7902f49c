/* SPDX-License-Identifier: BSD-3-Clause */
/* BLOCKTIME: the time that threads wait in calls of the C library, by call path; IO: the bytes that they read and
 * write, by call path and file. No call is interrupted: a second preloaded library brackets the calls
 * (runtime/wrap/wrap-wait.c), and the kernel says when a page has come from a disk. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <stdio.h>

static void probe(struct source_probe *out)
{
    *out = (struct source_probe){.works = true, .reason = "wrappers of calls; needs nothing of the machine"};
}

static int plan_waits(const char *event, const struct source_threshold *threshold, struct source_plan *out,
                      struct error *err)
{
    if (threshold->is_given && !threshold->is_standard)
        return error_set(err, ERR_RANGE, "%s takes no period: each wait is measured.", event);
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_BLOCKTIME, event, "BLOCKTIME (usec)", err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "Time without a processor in calls that wait");
    row->flags = SOURCE_WEIGHTED | SOURCE_CALLS;
    row->scale = 1e-3; /* of nanoseconds */
    out->wants_waits = true;
    return 0;
}

const struct sample_source source_blocktime = {
    .name = "BLOCKTIME",
    .summary = "Time that threads wait in calls of the C library, by call path",
    .probe = probe,
    .plan = plan_waits,
};

static int plan_row(const char *event, bool is_write, struct source_plan *out, struct error *err)
{
    struct source_event *row = source_plan_add(out, is_write ? SOURCE_NUMBER_IO_WRITE : SOURCE_NUMBER_IO_READ, event,
                                               is_write ? "IO Bytes Written" : "IO Bytes Read", err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "Bytes %s by calls of the C library",
                   is_write ? "written" : "read");
    row->flags = SOURCE_WEIGHTED | SOURCE_INTEGER | SOURCE_FILE | SOURCE_CALLS;
    return 0;
}

static int plan_bytes(const char *event, const struct source_threshold *threshold, struct source_plan *out,
                      struct error *err)
{
    if (threshold->is_given && !threshold->is_standard)
        return error_set(err, ERR_RANGE, "%s takes no period: each call is measured.", event);
    int status = plan_row(event, false, out, err);
    if (status == 0)
        status = plan_row(event, true, out, err);
    out->wants_waits = true;
    return status;
}

const struct sample_source source_io = {
    .name = "IO",
    .summary = "Bytes read and written by calls of the C library, by call path and file",
    .probe = probe,
    .plan = plan_bytes,
};
