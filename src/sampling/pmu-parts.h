/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files pmu-*.c share. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_PMU_PARTS_H
#define LOCUS_SAMPLING_PMU_PARTS_H

#include "sampling/pmu.h"

/* PMU/TERMS/MODIFIERS taken apart. */
struct pmu_text {
    char pmu[64];
    char terms[256];
    char modifiers[32]; /* without the colon */
};

/* Takes "PMU/TERMS/[:]MODIFIERS" apart; false when the text has no such form or
 * is too long. */
bool pmu_text_parse(const char *event, struct pmu_text *text);

/* Finds the PMU by its name, or by its name without the number at its end.  err: ERR_USAGE with the PMUs there are */
int pmu_find_near(const char *name, struct pmu *pmu, struct error *err);

/* Applies the terms "mem-loads,ldlat=30" to attr->config...: those of named events first.
 * err: ERR_USAGE, ERR_RANGE, ERR_UNSUPPORTED */
int pmu_apply_terms(const struct pmu *pmu, const char *terms, struct perf_event_attr *attr, struct error *err);

/* True when letters are modifiers, each as often as it may be. */
bool pmu_modifiers_are_valid(const char *letters);

/* Sets what the modifiers say; max_precise: what P means.  err: ERR_USAGE letters that are none */
int pmu_apply_modifiers(const char *event, const char *letters, unsigned max_precise, struct perf_event_attr *attr,
                        struct error *err);

/* The first PMU that has this event in its events directory: the CPU's own first. */
bool pmu_of_event(const char *name, struct pmu *pmu);

#endif
