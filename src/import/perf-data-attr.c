/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a perf.data file: their attributes in native order, ids, and names where the file gives none. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/perf-data-internal.h"

/* Widths of the fields of struct perf_event_attr, one after the other; the eight bytes of the bit fields are b. */
static const char widths[] = "448888b4488884484224488";

/* A compiler for big-endian machines hands out bit fields from the highest bit on, and those of two bits likewise. */
static uint64_t turn_bits(uint64_t raw)
{
    uint64_t turned = 0;
    for (unsigned i = 0; i < 64; i++)
        turned |= (raw >> i & 1) << (63 - i);
    uint64_t precise = turned >> 15 & 3;
    return (turned & ~(3ull << 15)) | (precise >> 1 | (precise & 1) << 1) << 15;
}

static void put_field(unsigned char *to, uint64_t value, unsigned n_bytes)
{
    uint16_t half = (uint16_t)value;
    uint32_t word = (uint32_t)value;
    const void *from = n_bytes == 8 ? (const void *)&value : n_bytes == 4 ? (const void *)&word : (const void *)&half;
    memcpy(to, from, n_bytes);
}

static void take_attr(struct perf_take *take, struct perf_event_attr *attr)
{
    unsigned char native[sizeof *attr] = {0};
    size_t at = 0;
    for (const char *width = widths; *width && take->at < take->n_bytes; width++) {
        unsigned n_bytes = *width == 'b' ? 8 : (unsigned)(*width - '0');
        uint64_t value = perf_take_number(take, n_bytes);
        if (*width == 'b' && take->is_swapped)
            value = turn_bits(value);
        if (at + n_bytes <= sizeof native)
            put_field(native + at, value, n_bytes);
        at += n_bytes;
    }
    memcpy(attr, native, sizeof native);
}

struct perf_data_event *perf_data_add_event(struct perf_data *data, struct perf_take *take, size_t n_bytes)
{
    const unsigned char *bytes = perf_take_bytes(take, n_bytes);
    if (!bytes || !vec_reserve(&data->events, &data->cap_events, data->n_events + 1, sizeof *data->events))
        return NULL;
    struct perf_take fields = {.bytes = bytes, .n_bytes = n_bytes, .is_swapped = data->is_swapped};
    struct perf_data_event *event = &data->events[data->n_events++];
    take_attr(&fields, &event->attr);
    event->layout = abi_layout_of_sig(&event->attr);
    event->layout.is_swapped = data->is_swapped;
    return event;
}

bool perf_data_add_id(struct perf_data_event *event, uint64_t id)
{
    if (!vec_reserve(&event->ids, &event->cap_ids, event->n_ids + 1, sizeof id))
        return false;
    event->ids[event->n_ids++] = id;
    return true;
}

struct perf_data_event *perf_data_event_with_id(const struct perf_data *data, uint64_t id)
{
    for (size_t i = 0; i < data->n_events; i++)
        for (size_t j = 0; j < data->events[i].n_ids; j++)
            if (data->events[i].ids[j] == id)
                return &data->events[i];
    return NULL;
}

static char *breakpoint_name(const struct perf_event_attr *attr)
{
    struct buf name = {0};
    buf_printf(&name, "mem:0x%" PRIx64 ":%s%s%s", (uint64_t)attr->bp_addr, attr->bp_type & 1 ? "r" : "",
               attr->bp_type & 2 ? "w" : "", attr->bp_type & 4 ? "x" : "");
    return name.data;
}

/* In the words of perf list. */
static char *name_of(const struct perf_event_attr *attr)
{
    static const char *const software[] = {"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
                                           "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
                                           "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    static const char *const hardware[] = {
        "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
        "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
    struct buf name = {0};
    if (attr->type == PERF_TYPE_SOFTWARE && attr->config < sizeof software / sizeof software[0])
        return strdup(software[attr->config]);
    if (attr->type == PERF_TYPE_HARDWARE && attr->config < sizeof hardware / sizeof hardware[0])
        return strdup(hardware[attr->config]);
    if (attr->type == PERF_TYPE_BREAKPOINT)
        return breakpoint_name(attr);
    if (attr->type == PERF_TYPE_RAW)
        buf_printf(&name, "r%" PRIx64, (uint64_t)attr->config);
    else
        buf_printf(&name, "type %u config 0x%" PRIx64, attr->type, (uint64_t)attr->config);
    return name.data;
}

bool perf_data_name_events(struct perf_data *data)
{
    for (size_t i = 0; i < data->n_events; i++) {
        if (!data->events[i].name)
            data->events[i].name = name_of(&data->events[i].attr);
        if (!data->events[i].name)
            return false;
    }
    return true;
}
