/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of perf_event_attr; see attr-fields.h.  src: include/uapi/linux/perf_event.h */
#include "sampling/attr-fields.h"

#include <stddef.h>
#include <string.h>

#define ROW(field) {#field, (uint64_t)attr->field, false}
#define HEX(field) {#field, (uint64_t)attr->field, true}

static unsigned append(const struct attr_field *rows, unsigned n_rows, struct attr_field *fields, unsigned n)
{
    memcpy(fields + n, rows, n_rows * sizeof *rows);
    return n + n_rows;
}

static unsigned words_before_flags(const struct perf_event_attr *attr, struct attr_field *fields)
{
    const struct attr_field rows[] = {
        ROW(type),
        ROW(size),
        HEX(config),
        {attr->freq ? "sample_freq" : "sample_period", attr->sample_period, false},
        HEX(sample_type),
        HEX(read_format),
    };
    return append(rows, sizeof rows / sizeof *rows, fields, 0);
}

static unsigned flags(const struct perf_event_attr *attr, struct attr_field *fields, unsigned n)
{
    const struct attr_field rows[] = {
        ROW(disabled), ROW(inherit), ROW(pinned), ROW(exclusive), ROW(exclude_user), ROW(exclude_kernel),
        ROW(exclude_hv), ROW(exclude_idle), ROW(mmap), ROW(comm), ROW(freq), ROW(inherit_stat), ROW(enable_on_exec),
        ROW(task), ROW(watermark), ROW(precise_ip), ROW(mmap_data), ROW(sample_id_all), ROW(exclude_host),
        ROW(exclude_guest), ROW(exclude_callchain_kernel), ROW(exclude_callchain_user), ROW(mmap2), ROW(comm_exec),
        ROW(use_clockid), ROW(context_switch), ROW(write_backward), ROW(namespaces), ROW(ksymbol), ROW(bpf_event),
        ROW(aux_output), ROW(cgroup), ROW(text_poke), ROW(build_id), ROW(inherit_thread), ROW(remove_on_exec),
        ROW(sigtrap),
    };
    return append(rows, sizeof rows / sizeof *rows, fields, n);
}

static unsigned words_after_flags(const struct perf_event_attr *attr, struct attr_field *fields, unsigned n)
{
    const struct attr_field rows[] = {
        {attr->watermark ? "wakeup_watermark" : "wakeup_events", attr->wakeup_events, false},
        ROW(bp_type),
        HEX(config1),
        HEX(config2),
        HEX(branch_sample_type),
        HEX(sample_regs_user),
        ROW(sample_stack_user),
        ROW(clockid),
        HEX(sample_regs_intr),
        ROW(aux_watermark),
        ROW(sample_max_stack),
        ROW(aux_sample_size),
        HEX(sig_data),
#ifdef PERF_ATTR_SIZE_VER8
        HEX(config3),
#endif
    };
    return append(rows, sizeof rows / sizeof *rows, fields, n);
}

unsigned attr_fields(const struct perf_event_attr *attr, struct attr_field fields[ATTR_FIELDS_MAX])
{
    unsigned n = words_before_flags(attr, fields);
    n = flags(attr, fields, n);
    return words_after_flags(attr, fields, n);
}

bool attr_field_get(const struct perf_event_attr *attr, const char *name, uint64_t *value)
{
    static const struct {
        const char *name, *same;
    } unions[] = {{"sample_freq", "sample_period"}, {"wakeup_watermark", "wakeup_events"},
                  {"bp_addr", "config1"},           {"bp_len", "config2"}};
    struct attr_field fields[ATTR_FIELDS_MAX];
    struct perf_event_attr plain = *attr;
    plain.freq = plain.watermark = 0;
    for (size_t i = 0; i < sizeof unions / sizeof *unions; i++)
        if (!strcmp(unions[i].name, name))
            name = unions[i].same;
    if (!strcmp(name, "freq") || !strcmp(name, "watermark"))
        plain = *attr;
    unsigned n = attr_fields(&plain, fields);
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(fields[i].name, name)) {
            *value = fields[i].value;
            return true;
        }
    return false;
}
