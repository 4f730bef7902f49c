/* SPDX-License-Identifier: BSD-3-Clause */
/* REALTIME: elapsed time, sleeping and waiting included. Its timer interrupts blocking system calls, so it is only used
 * when the user names it, and with a warning. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sampling/machine.h"

#define DEFAULT_HZ 100

static void probe(struct source_probe *out)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    *out = (struct source_probe){.works = machine_is_fixture()};
    if (!out->works && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        out->works = timer_delete(timer) == 0;
    (void)snprintf(out->reason, sizeof out->reason, "%s",
                   out->works ? "a monotonic timer; it interrupts system calls, so only when named" : strerror(errno));
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    uint64_t period_ns;
    int status = source_period_ns(event, threshold, DEFAULT_HZ, &period_ns, err);
    if (status != 0)
        return status;
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_REALTIME, event, "REALTIME (usec)", err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "Elapsed time, waiting included");
    row->flags = SOURCE_TIMER | SOURCE_WALLCLOCK;
    row->timer_interval_ns = period_ns;
    row->scale = (double)period_ns / 1000;
    source_plan_warn(out,
                     "%s interrupts sleeping and blocking system calls: those that cannot be restarted "
                     "(poll, select, nanosleep, ...) return EINTR, which some programs take for an error.",
                     event);
    return 0;
}

const struct sample_source source_realtime = {
    .name = "REALTIME",
    .summary = "Elapsed time by call path, waiting included (interrupts system calls: only when named)",
    .probe = probe,
    .plan = plan,
};
