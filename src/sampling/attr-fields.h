/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of struct perf_event_attr by name, for rules of fixtures and for printing plans. Bit fields have no
 * address, so a table of offsets will not do. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_ATTR_FIELDS_H
#define LOCUS_SAMPLING_ATTR_FIELDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#define ATTR_FIELDS_MAX 72

struct attr_field {
    const char *name; /* as in the header; of a union the member in use (sample_freq, wakeup_watermark), else config1 */
    uint64_t value;
    bool is_hex;      /* people read it in hexadecimal */
};

/* All fields of attr in the order of the struct; returns their number. */
unsigned attr_fields(const struct perf_event_attr *attr, struct attr_field fields[ATTR_FIELDS_MAX]);

/* The field of this name; every member of a union is known. False when there is none. */
bool attr_field_get(const struct perf_event_attr *attr, const char *name, uint64_t *value);

#endif
