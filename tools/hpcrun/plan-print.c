/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing a plan; see plan-print.h. */
#include "plan-print.h"

#include <inttypes.h>
#include <string.h>

#include "prepare.h"
#include "sampling/machine.h"
#include "sampling/source.h"

struct bit_name {
    uint64_t bit;
    const char *name;
};

#define SAMPLE(name)                                                                                                   \
    {                                                                                                                  \
        PERF_SAMPLE_##name, #name                                                                                      \
    }
#define READ(name)                                                                                                     \
    {                                                                                                                  \
        PERF_FORMAT_##name, #name                                                                                      \
    }
#define OWN(name)                                                                                                      \
    {                                                                                                                  \
        SOURCE_##name, #name                                                                                           \
    }

static const struct bit_name *bits_of(const char *field)
{
    static const struct bit_name sample[] = {
        SAMPLE(IP),
        SAMPLE(TID),
        SAMPLE(TIME),
        SAMPLE(ADDR),
        SAMPLE(READ),
        SAMPLE(CALLCHAIN),
        SAMPLE(ID),
        SAMPLE(CPU),
        SAMPLE(PERIOD),
        SAMPLE(STREAM_ID),
        SAMPLE(RAW),
        SAMPLE(BRANCH_STACK),
        SAMPLE(REGS_USER),
        SAMPLE(STACK_USER),
        SAMPLE(WEIGHT),
        SAMPLE(DATA_SRC),
        SAMPLE(IDENTIFIER),
        SAMPLE(TRANSACTION),
        SAMPLE(REGS_INTR),
        SAMPLE(PHYS_ADDR),
        SAMPLE(AUX),
        SAMPLE(CGROUP),
        SAMPLE(DATA_PAGE_SIZE),
        SAMPLE(CODE_PAGE_SIZE),
        SAMPLE(WEIGHT_STRUCT),
        {0, NULL},
    };
    static const struct bit_name read[] = {
        READ(TOTAL_TIME_ENABLED), READ(TOTAL_TIME_RUNNING), READ(ID), READ(GROUP), READ(LOST), {0, NULL},
    };
    static const struct bit_name own[] = {
        OWN(WEIGHTED), OWN(TIMER), OWN(RING), OWN(ADDRESS), OWN(INTEGER), OWN(WALLCLOCK), OWN(RING_ONLY),
        OWN(DATA_SRC), OWN(BATCH), OWN(AUX),  OWN(SILENT),  OWN(KERNEL),  {0, NULL},
    };
    static const struct bit_name none[] = {{0, NULL}};
    return !strcmp(field, "sample_type")   ? sample
           : !strcmp(field, "read_format") ? read
           : !strcmp(field, "flags")       ? own
                                           : none;
}

static void print_value(FILE *out, const char *name, uint64_t value, bool is_hex)
{
    const char *separator = " # ";
    (void)fprintf(out, is_hex ? "%s=%#" PRIx64 : "%s=%" PRIu64, name, value);
    for (const struct bit_name *row = bits_of(name); row->name; row++)
        if (value & row->bit) {
            (void)fprintf(out, "%s%s", separator, row->name);
            separator = " ";
        }
    (void)fputc('\n', out);
}

static const char *source_name(uint32_t source)
{
    static const char *const names[] = {
        [SOURCE_NUMBER_EADDR] = "EADDR",
        [SOURCE_NUMBER_FAULTS] = "FAULTS",
        [SOURCE_NUMBER_CPUTIME] = "CPUTIME",
        [SOURCE_NUMBER_REALTIME] = "REALTIME",
        [SOURCE_NUMBER_MEMLEAK] = "MEMLEAK",
        [SOURCE_NUMBER_PERF] = "any perf event",
        [SOURCE_NUMBER_PMU_ADDR] = "addresses from the PMU",
    };
    return source < sizeof names / sizeof *names && names[source] ? names[source] : "unknown";
}

static void print_own(FILE *out, const struct source_event *event)
{
    (void)fprintf(out, "metric=%s\ndescription=%s\nname=%s\n", event->metric, event->description, event->name);
    (void)fprintf(out, "source=%" PRIu32 " # %s\n", event->source, source_name(event->source));
    print_value(out, "flags", event->flags, true);
    (void)fprintf(out, "scale=%.17g\n", event->scale);
    print_value(out, "timer_interval_ns", event->timer_interval_ns, false);
    print_value(out, "leader", event->leader, false);
    print_value(out, "decode", event->decode, false);
    print_value(out, "ring_bytes", event->ring_bytes, false);
    print_value(out, "aux_bytes", event->aux_bytes, false);
}

static void print_event(FILE *out, const struct source_event *event)
{
    struct attr_field fields[ATTR_FIELDS_MAX];
    print_own(out, event);
    unsigned n = attr_fields(&event->attr, fields);
    for (unsigned i = 0; i < n; i++)
        print_value(out, fields[i].name, fields[i].value, fields[i].is_hex);
}

int plan_print(const struct hpcrun_options *options, FILE *out, struct error *err)
{
    static struct source_plan plan;
    int status = prepare_plan(options, &plan, err);
    if (status != 0)
        return status;
    (void)fprintf(out, "choice=%s\nwarning=%s\n", plan.choice, plan.warning);
    for (uint32_t i = 0; i < plan.n_events; i++) {
        (void)fprintf(out, "\n[event %" PRIu32 "]\n", i + 1);
        print_event(out, &plan.events[i]);
    }
    return 0;
}
