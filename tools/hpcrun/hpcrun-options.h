/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun's command line. Ordinary code of the launcher. */
#ifndef LOCUS_HPCRUN_OPTIONS_H
#define LOCUS_HPCRUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"

#define HPCRUN_EVENTS_MAX 32

/* The command line as given; strings are borrowed from argv. All zero is the default. */
struct hpcrun_options {
    const char *events[HPCRUN_EVENTS_MAX];
    unsigned n_events;
    const char *count, *output;
    const char *local;   /* --local, or the environment's; NULL: none */
    const char *collect; /* --collect: a measurement directory */
    const char *fraction, *memleak_prob;
    const char *merge_threads, *fnbounds, *jobs_symtab;
    const char *knobs[HPCRUN_EVENTS_MAX];
    unsigned n_knobs;
    const char *debug_flags[HPCRUN_EVENTS_MAX];
    unsigned n_debug_flags;
    uint64_t memsize_bytes, low_memsize_bytes;
    uint64_t max_bytes;    /* --max-size, or its default */
    uint64_t sample_bytes; /* -ck SAMPLE_BYTES */
    uint32_t checkpoint_s; /* -ck CHECKPOINT_SECONDS */
    uint64_t mark_ns;      /* --leaks-at; 0 when not given */
    double part;           /* -f, 1 when not given */
    uint64_t delay_ns, duration_ns;
    uint32_t start_signal, stop_signal, lifetime_s;
    bool trace, delay, retain_recursion, waits_for_debugger;
    const char *machine;     /* --machine: directory that describes the machine to look at */
    bool allows_foreign;     /* --foreign-directory */
    const char *report_file; /* --report=FILE; NULL: standard error */
    bool lists_names;        /* --list-names, for the completion of shells */
    bool appends, lists, doctor, report, leaks, strict, prints_plan, status, json;
    char **command; /* ends with NULL; command[0] NULL when there is none */
};

/* The option table, for help and man page. */
const struct option_spec *hpcrun_option_spec(void);

/* Parses argv. Returns 0, 1 when a standard option (help, version) was answered, or a negative code.
 * err: ERR_USAGE */
int hpcrun_options_parse(int argc, char **argv, struct hpcrun_options *options, struct error *err);

#endif
