/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of perf.data files. Text and JSON have the same fields, so one list of calls writes both. */
#include "import/perf-data.h"

#include <inttypes.h>

#include "fmt/json.h"

/* A list of fields: "(key: value) ..." in text. */
struct fields {
    struct buf *out;
    bool is_json;
    int is_first;
};

static void begin_key(struct fields *fields, const char *key)
{
    if (fields->is_json)
        json_put_key(fields->out, key, fields->is_first);
    else
        buf_printf(fields->out, "%s(%s: ", fields->is_first ? "" : " ", key);
    fields->is_first = 0;
}

static void end_value(struct fields *fields)
{
    if (!fields->is_json)
        buf_append(fields->out, ")", 1);
}

static void put_number(struct fields *fields, const char *key, uint64_t value)
{
    begin_key(fields, key);
    if (fields->is_json)
        json_put_word(fields->out, value);
    else
        buf_printf(fields->out, "%" PRIu64, value);
    end_value(fields);
}

static void put_hex(struct fields *fields, const char *key, uint64_t value)
{
    begin_key(fields, key);
    if (fields->is_json)
        json_put_word(fields->out, value);
    else
        buf_printf(fields->out, "0x%" PRIx64, value);
    end_value(fields);
}

/* Nothing for NULL. */
static void put_text(struct fields *fields, const char *key, const char *text)
{
    if (!text)
        return;
    begin_key(fields, key);
    if (fields->is_json)
        json_put_text(fields->out, text);
    else
        buf_printf(fields->out, "%s", text);
    end_value(fields);
}

static void put_words(struct fields *fields, const char *key, const struct abi_bytes *words, bool is_swapped)
{
    begin_key(fields, key);
    buf_printf(fields->out, fields->is_json ? "[" : "");
    for (size_t i = 0; i < words->n_bytes / 8; i++) {
        uint64_t word = abi_word_sig(words, i, is_swapped);
        if (fields->is_json) {
            buf_printf(fields->out, i ? ", " : "");
            json_put_word(fields->out, word);
        } else {
            buf_printf(fields->out, "%s0x%" PRIx64, i ? " " : "", word);
        }
    }
    buf_printf(fields->out, fields->is_json ? "]" : "");
    end_value(fields);
}

static void put_bytes(struct fields *fields, const char *key, const unsigned char *bytes, size_t n_bytes)
{
    begin_key(fields, key);
    buf_printf(fields->out, fields->is_json ? "\"" : "");
    for (size_t i = 0; i < n_bytes; i++)
        buf_printf(fields->out, "%02x", bytes[i]);
    buf_printf(fields->out, fields->is_json ? "\"" : "");
    end_value(fields);
}

/* A field of a sample that is one number. */
struct number_row {
    uint64_t bit;
    const char *key;
    size_t offset; /* in struct abi_sample, of a uint64_t */
    bool is_hex;
};

static const struct number_row number_rows[] = {
    {PERF_SAMPLE_IP, "ip", offsetof(struct abi_sample, ip), true},
    {PERF_SAMPLE_ADDR, "addr", offsetof(struct abi_sample, addr), true},
    {PERF_SAMPLE_STREAM_ID, "stream_id", offsetof(struct abi_sample, stream_id), false},
    {PERF_SAMPLE_DATA_SRC, "data_src", offsetof(struct abi_sample, data_src), true},
    {PERF_SAMPLE_TRANSACTION, "transaction", offsetof(struct abi_sample, transaction), true},
    {PERF_SAMPLE_PHYS_ADDR, "phys_addr", offsetof(struct abi_sample, phys_addr), true},
    {PERF_SAMPLE_CGROUP, "cgroup", offsetof(struct abi_sample, cgroup), false},
    {PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_bytes", offsetof(struct abi_sample, data_page_bytes), false},
    {PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_bytes", offsetof(struct abi_sample, code_page_bytes), false},
};

static void put_place(struct fields *fields, const struct abi_sample *sample)
{
    if (sample->present & PERF_SAMPLE_TID) {
        put_number(fields, "pid", sample->pid);
        put_number(fields, "tid", sample->tid);
    }
    if (sample->present & PERF_SAMPLE_CPU)
        put_number(fields, "cpu", sample->cpu);
}

static void put_registers(struct fields *fields, const struct perf_data *data, const struct perf_data_event *event,
                          const struct abi_sample *sample)
{
    if (sample->present & PERF_SAMPLE_REGS_USER) {
        put_number(fields, "regs_user_abi", sample->regs_user_abi);
        put_hex(fields, "regs_user_mask", event->layout.regs_user);
        put_words(fields, "regs_user", &sample->regs_user, data->is_swapped);
    }
    if (sample->present & PERF_SAMPLE_REGS_INTR) {
        put_number(fields, "regs_intr_abi", sample->regs_intr_abi);
        put_hex(fields, "regs_intr_mask", event->layout.regs_intr);
        put_words(fields, "regs_intr", &sample->regs_intr, data->is_swapped);
    }
}

static void put_sample(struct fields *fields, const struct perf_data *data, const struct perf_data_record *record)
{
    const struct perf_data_event *event;
    struct abi_sample sample;
    if (perf_data_sample(data, record, &event, &sample, NULL) != 0)
        return;
    put_text(fields, "event", event->name);
    put_number(fields, "misc", record->misc);
    put_place(fields, &sample);
    put_number(fields, "period", sample.period);
    for (size_t i = 0; i < sizeof number_rows / sizeof number_rows[0]; i++) {
        const struct number_row *row = &number_rows[i];
        uint64_t value = *(const uint64_t *)(const void *)((const char *)&sample + row->offset);
        if (sample.present & row->bit && row->is_hex)
            put_hex(fields, row->key, value);
        else if (sample.present & row->bit)
            put_number(fields, row->key, value);
    }
    if (sample.present & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
        put_number(fields, "weight", sample.weight);
    if (sample.present & PERF_SAMPLE_WEIGHT_STRUCT) {
        put_number(fields, "weight2", sample.weight2);
        put_number(fields, "weight3", sample.weight3);
    }
    if (sample.present & PERF_SAMPLE_CALLCHAIN)
        put_words(fields, "callchain", &sample.callchain, data->is_swapped);
    put_registers(fields, data, event, &sample);
    if (sample.present & PERF_SAMPLE_STACK_USER)
        put_number(fields, "stack_bytes", sample.stack_used_bytes);
    if (sample.present & PERF_SAMPLE_RAW)
        put_bytes(fields, "raw", sample.raw.data, sample.raw.n_bytes);
}

static void put_mapping(struct fields *fields, const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_data_mmap mapping;
    if (perf_data_mmap(data, record, &mapping, NULL) != 0)
        return;
    put_number(fields, "pid", mapping.pid);
    put_number(fields, "tid", mapping.tid);
    put_hex(fields, "start", mapping.start);
    put_hex(fields, "bytes", mapping.n_bytes);
    put_hex(fields, "file_offset", mapping.file_offset);
    if (mapping.has_protection)
        put_number(fields, "protection", mapping.protection);
    if (mapping.build_id)
        put_bytes(fields, "build_id", mapping.build_id, mapping.n_build_id);
    put_text(fields, "path", mapping.path);
}

static void put_task(struct fields *fields, const struct perf_data *data, const struct perf_data_record *record)
{
    struct perf_data_task task;
    if (perf_data_task(data, record, &task, NULL) != 0)
        return;
    put_number(fields, "pid", task.pid);
    put_number(fields, "tid", task.tid);
    if (record->type != PERF_RECORD_COMM) {
        put_number(fields, "parent_pid", task.parent_pid);
        put_number(fields, "parent_tid", task.parent_tid);
    }
    put_text(fields, "name", task.name);
}

static void put_record(struct fields *fields, const struct perf_data *data, const struct perf_data_record *record)
{
    char text[32];
    struct abi_sample trailer;
    put_text(fields, "type", perf_data_type_name(record->type, text));
    put_number(fields, "time", record->time_ns);
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        put_sample(fields, data, record);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        put_mapping(fields, data, record);
        break;
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        put_task(fields, data, record);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        put_number(fields, "lost", perf_data_lost(data, record));
        break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        perf_data_trailer(data, record, &trailer);
        put_place(fields, &trailer);
        break;
    default:
        put_number(fields, "bytes", record->n_bytes);
        break;
    }
}

static void put_event(struct fields *fields, const struct perf_data_event *event)
{
    const struct perf_event_attr *attr = &event->attr;
    const struct abi_bytes ids = {(const unsigned char *)event->ids, 8 * event->n_ids};
    put_text(fields, "name", event->name);
    put_number(fields, "type", attr->type);
    put_hex(fields, "config", attr->config);
    put_hex(fields, "config1", attr->config1);
    put_hex(fields, "config2", attr->config2);
    put_number(fields, attr->freq ? "sample_freq" : "sample_period", attr->sample_period);
    put_hex(fields, "sample_type", attr->sample_type);
    put_hex(fields, "read_format", attr->read_format);
    put_number(fields, "precise_ip", attr->precise_ip);
    put_number(fields, "exclude_user", attr->exclude_user);
    put_number(fields, "exclude_kernel", attr->exclude_kernel);
    put_words(fields, "ids", &ids, false);
}

static void put_build_id(struct fields *fields, const struct perf_data_build_id *id)
{
    put_number(fields, "pid", id->pid);
    put_bytes(fields, "build_id", id->bytes, id->n_bytes);
    put_text(fields, "path", id->path);
}

static void put_head(struct fields *fields, const struct perf_data *data)
{
    bool is_big = data->is_swapped != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    put_text(fields, "byte_order", is_big ? "big" : "little");
    put_text(fields, "kind", data->is_pipe ? "pipe" : data->is_unfinished ? "unfinished file" : "file");
    put_text(fields, "hostname", data->hostname);
    put_text(fields, "os_release", data->os_release);
    put_text(fields, "arch", data->arch);
    put_text(fields, "cpu", data->cpu);
    put_text(fields, "cpu_id", data->cpu_id);
    put_text(fields, "perf_version", data->perf_version);
    put_text(fields, "command", data->command);
    put_number(fields, "lost", data->n_lost);
    put_number(fields, "throttles", data->n_throttles);
    if (data->is_unfinished)
        put_number(fields, "unfinished_bytes", data->n_unfinished_bytes);
}

static void begin_item(struct fields *fields, size_t i)
{
    buf_printf(fields->out, fields->is_json ? "%s\n  {" : "%s\n  [", fields->is_json && i ? "," : "");
    fields->is_first = 1;
}

static void end_item(struct fields *fields)
{
    buf_append(fields->out, fields->is_json ? "}" : "]", 1);
}

static void begin_list(struct fields *fields, const char *key, size_t n)
{
    if (fields->is_json)
        buf_printf(fields->out, ",\n\"%s\": [", key);
    else
        buf_printf(fields->out, "]\n[%s: (number: %zu)", key, n);
}

static void put_records(struct fields *fields, const struct perf_data *data)
{
    struct perf_data_walk walk;
    struct error ignored;
    size_t i = 0;
    begin_list(fields, "records", data->n_records);
    if (perf_data_walk_open(data, &walk, &ignored) != 0) {
        fields->out->failed = true;
        return;
    }
    for (const struct perf_data_record *record; (record = perf_data_walk_next(&walk));) {
        begin_item(fields, i++);
        put_record(fields, data, record);
        end_item(fields);
    }
    fields->out->failed |= perf_data_walk_close(&walk, &ignored) != 0;
}

static void put_all(struct fields *fields, const struct perf_data *data)
{
    put_head(fields, data);
    begin_list(fields, "events", data->n_events);
    for (size_t i = 0; i < data->n_events; i++) {
        begin_item(fields, i);
        put_event(fields, &data->events[i]);
        end_item(fields);
    }
    buf_printf(fields->out, fields->is_json ? "]" : "\n");
    begin_list(fields, "build_ids", data->n_build_ids);
    for (size_t i = 0; i < data->n_build_ids; i++) {
        begin_item(fields, i);
        put_build_id(fields, &data->build_ids[i]);
        end_item(fields);
    }
    buf_printf(fields->out, fields->is_json ? "]" : "\n");
    put_records(fields, data);
}

void perf_data_put_text(const struct perf_data *data, struct buf *out)
{
    struct fields fields = {.out = out, .is_first = 1};
    buf_printf(out, "PERFILE2\n[hdr: ");
    put_all(&fields, data);
    buf_printf(out, "\n]\n");
}

void perf_data_put_json(const struct perf_data *data, struct buf *out)
{
    struct fields fields = {.out = out, .is_json = true};
    buf_printf(out, "{\"format\": \"perf-data\"");
    put_all(&fields, data);
    buf_printf(out, "]}\n");
}
