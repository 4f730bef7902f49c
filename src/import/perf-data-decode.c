/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of a perf.data file taken apart. Samples are left to the parser of the kernel's records. */
#include <stdio.h>

#include "import/perf-data-internal.h"

#define HEADER_BYTES 8
#define MISC_MMAP_DATA 0x2000
#define MISC_COMM_EXEC 0x2000
#define MISC_MMAP_BUILD_ID 0x4000

const unsigned char *perf_data_bytes(const struct perf_data *data, const struct perf_data_record *record)
{
    const unsigned char *bytes = record->is_inflated ? (const unsigned char *)data->inflated.data : data->bytes;
    return bytes + record->offset;
}

/* The fields behind the header; those of a trailer are left out when there is one. */
static struct perf_take fields_of(const struct perf_data *data, const struct perf_data_record *record)
{
    return (struct perf_take){.bytes = perf_data_bytes(data, record),
                              .n_bytes = record->n_bytes,
                              .at = HEADER_BYTES,
                              .is_swapped = data->is_swapped};
}

/* Position of the id in a sample, or from the end of another record; 0: it has none. All events of a file agree. */
static size_t id_position(const struct abi_layout *layout, bool is_sample)
{
    uint64_t type = layout->sample_type, behind = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    if (type & PERF_SAMPLE_IDENTIFIER)
        return HEADER_BYTES;
    if (!(type & PERF_SAMPLE_ID))
        return 0;
    return HEADER_BYTES + 8 * (size_t)__builtin_popcountll(type & (is_sample ? before : behind));
}

const struct perf_data_event *perf_data_event_of(const struct perf_data *data, const struct perf_data_record *record)
{
    if (data->n_events <= 1)
        return data->events;
    const struct abi_layout *first = &data->events[0].layout;
    bool is_sample = record->type == PERF_RECORD_SAMPLE;
    size_t position = id_position(first, is_sample);
    if (!position || (!is_sample && !first->has_sample_id_all))
        return &data->events[0];
    struct perf_take take = fields_of(data, record);
    if (position > record->n_bytes - HEADER_BYTES + (is_sample ? 0 : HEADER_BYTES))
        return NULL;
    take.at = is_sample ? position : record->n_bytes - position;
    uint64_t id = perf_take_number(&take, 8);
    return id || is_sample ? perf_data_event_with_id(data, id) : &data->events[0];
}

int perf_data_sample(const struct perf_data *data, const struct perf_data_record *record,
                     const struct perf_data_event **event, struct abi_sample *sample, struct error *err)
{
    *event = perf_data_event_of(data, record);
    if (!*event)
        return perf_data_fail_record(data, record, "a sample names an event that the file does not", err);
    if (!abi_sample_parse_sig(perf_data_bytes(data, record), record->n_bytes, &(*event)->layout, sample))
        return perf_data_fail_record(data, record, "the fields of a sample do not fit into its record", err);
    if (!(sample->present & PERF_SAMPLE_PERIOD))
        sample->period = (*event)->attr.freq ? 1 : (*event)->attr.sample_period;
    return 0;
}

void perf_data_trailer(const struct perf_data *data, const struct perf_data_record *record, struct abi_sample *out)
{
    const struct perf_data_event *event = perf_data_event_of(data, record);
    *out = (struct abi_sample){0};
    if (event)
        (void)abi_sample_id_parse_sig(perf_data_bytes(data, record), record->n_bytes, &event->layout, out);
}

/* Device, inode and generation, or instead of them the build id. */
static void take_identity(struct perf_take *take, bool is_build_id, struct perf_data_mmap *mapping)
{
    if (!is_build_id) {
        (void)perf_take_bytes(take, 24);
        return;
    }
    uint8_t n_bytes = (uint8_t)perf_take_number(take, 1);
    (void)perf_take_bytes(take, 3);
    mapping->build_id = perf_take_bytes(take, 20);
    mapping->n_build_id = n_bytes <= 20 ? n_bytes : 20;
}

int perf_data_mmap(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_mmap *mmap,
                   struct error *err)
{
    struct perf_take take = fields_of(data, record);
    *mmap = (struct perf_data_mmap){.is_data = record->misc & MISC_MMAP_DATA};
    mmap->pid = (uint32_t)perf_take_number(&take, 4);
    mmap->tid = (uint32_t)perf_take_number(&take, 4);
    mmap->start = perf_take_number(&take, 8);
    mmap->n_bytes = perf_take_number(&take, 8);
    mmap->file_offset = perf_take_number(&take, 8);
    if (record->type == PERF_RECORD_MMAP2) {
        take_identity(&take, record->misc & MISC_MMAP_BUILD_ID, mmap);
        mmap->protection = (uint32_t)perf_take_number(&take, 4);
        mmap->has_protection = true;
        (void)perf_take_number(&take, 4);
    }
    mmap->path = perf_take_string(&take);
    return take.failed ? perf_data_fail_record(data, record, "a mapping does not fit into its record", err) : 0;
}

int perf_data_task(const struct perf_data *data, const struct perf_data_record *record, struct perf_data_task *task,
                   struct error *err)
{
    struct perf_take take = fields_of(data, record);
    bool is_comm = record->type == PERF_RECORD_COMM;
    *task = (struct perf_data_task){.is_exec = is_comm && record->misc & MISC_COMM_EXEC};
    task->pid = (uint32_t)perf_take_number(&take, 4);
    if (!is_comm)
        task->parent_pid = (uint32_t)perf_take_number(&take, 4);
    task->tid = (uint32_t)perf_take_number(&take, 4);
    if (is_comm)
        task->name = perf_take_string(&take);
    else
        task->parent_tid = (uint32_t)perf_take_number(&take, 4);
    return take.failed ? perf_data_fail_record(data, record, "a task does not fit into its record", err) : 0;
}

uint64_t perf_data_lost(const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_take take = fields_of(data, record);
    if (record->type == PERF_RECORD_LOST)
        (void)perf_take_number(&take, 8);
    return perf_take_number(&take, 8);
}

const char *perf_data_type_name(unsigned type, char text[static 32])
{
    static const char *const kernel[] = {NULL,           "MMAP",
                                         "LOST",         "COMM",
                                         "EXIT",         "THROTTLE",
                                         "UNTHROTTLE",   "FORK",
                                         "READ",         "SAMPLE",
                                         "MMAP2",        "AUX",
                                         "ITRACE_START", "LOST_SAMPLES",
                                         "SWITCH",       "SWITCH_CPU_WIDE",
                                         "NAMESPACES",   "KSYMBOL",
                                         "BPF_EVENT",    "CGROUP",
                                         "TEXT_POKE",    "AUX_OUTPUT_HW_ID"};
    static const char *const user[] = {"ATTR",      "EVENT_TYPE",    "TRACING_DATA", "BUILD_ID",       "FINISHED_ROUND",
                                       "ID_INDEX",  "AUXTRACE_INFO", "AUXTRACE",     "AUXTRACE_ERROR", "THREAD_MAP",
                                       "CPU_MAP",   "STAT_CONFIG",   "STAT",         "STAT_ROUND",     "EVENT_UPDATE",
                                       "TIME_CONV", "FEATURE",       "COMPRESSED",   "FINISHED_INIT",  "COMPRESSED2"};
    if (type > 0 && type < sizeof kernel / sizeof kernel[0])
        return kernel[type];
    if (type >= PERF_DATA_ATTR && type - PERF_DATA_ATTR < sizeof user / sizeof user[0])
        return user[type - PERF_DATA_ATTR];
    (void)snprintf(text, 32, "RECORD %u", type);
    return text;
}
