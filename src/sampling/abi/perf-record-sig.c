/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses records field by field in the kernel's order: see perf-record.h. Every length in a record is checked against
 * the rest of the record. Runs in the signal handler. */
#include "sampling/abi/perf-record.h"

#include <string.h>

#include "base/sigsafe.h"

/* Newer than the oldest kernel headers that this is compiled with. */
enum { READ_FORMAT_LOST = 1 << 4 };
enum { BRANCH_HAS_INDEX = 1 << 17, BRANCH_HAS_COUNTERS = 1 << 19 };

enum { N_BRANCH_ENTRY_BYTES = 24 };

/* The rest of a record. */
struct record_cursor {
    const unsigned char *start, *at;
    size_t left;
    bool is_swapped;
    bool is_index_left_out; /* the kernel wrote a branch stack of 0 entries without its index */
};

/* How a field is laid out; WORD: 8 bytes, stored at the offset. */
enum kind { WORD, PID_TID, CPU, READ_VALUES, CALLCHAIN, RAW, BRANCHES, REGS_USER, STACK_USER, REGS_INTR, AUX };

struct field {
    uint32_t bit;
    uint16_t kind;
    uint16_t offset;
};
#define WORD_FIELD(bit, member)                                                                                        \
    {                                                                                                                  \
        bit, WORD, offsetof(struct abi_sample, member)                                                                 \
    }

/* In the order of the record, which is not the order of the bits. */
static const struct field fields[] = {
    WORD_FIELD(PERF_SAMPLE_IDENTIFIER, id),
    WORD_FIELD(PERF_SAMPLE_IP, ip),
    {PERF_SAMPLE_TID, PID_TID, 0},
    WORD_FIELD(PERF_SAMPLE_TIME, time_ns),
    WORD_FIELD(PERF_SAMPLE_ADDR, addr),
    WORD_FIELD(PERF_SAMPLE_ID, id),
    WORD_FIELD(PERF_SAMPLE_STREAM_ID, stream_id),
    {PERF_SAMPLE_CPU, CPU, 0},
    WORD_FIELD(PERF_SAMPLE_PERIOD, period),
    {PERF_SAMPLE_READ, READ_VALUES, 0},
    {PERF_SAMPLE_CALLCHAIN, CALLCHAIN, 0},
    {PERF_SAMPLE_RAW, RAW, 0},
    {PERF_SAMPLE_BRANCH_STACK, BRANCHES, 0},
    {PERF_SAMPLE_REGS_USER, REGS_USER, 0},
    {PERF_SAMPLE_STACK_USER, STACK_USER, 0},
    WORD_FIELD(PERF_SAMPLE_WEIGHT, weight),
    WORD_FIELD(PERF_SAMPLE_WEIGHT_STRUCT, weight),
    WORD_FIELD(PERF_SAMPLE_DATA_SRC, data_src),
    WORD_FIELD(PERF_SAMPLE_TRANSACTION, transaction),
    {PERF_SAMPLE_REGS_INTR, REGS_INTR, 0},
    WORD_FIELD(PERF_SAMPLE_PHYS_ADDR, phys_addr),
    WORD_FIELD(PERF_SAMPLE_CGROUP, cgroup),
    WORD_FIELD(PERF_SAMPLE_DATA_PAGE_SIZE, data_page_bytes),
    WORD_FIELD(PERF_SAMPLE_CODE_PAGE_SIZE, code_page_bytes),
    {PERF_SAMPLE_AUX, AUX, 0},
};

/* The fields at the end of other records, in their order. */
static const struct field id_fields[] = {
    {PERF_SAMPLE_TID, PID_TID, 0},  WORD_FIELD(PERF_SAMPLE_TIME, time_ns),
    WORD_FIELD(PERF_SAMPLE_ID, id), WORD_FIELD(PERF_SAMPLE_STREAM_ID, stream_id),
    {PERF_SAMPLE_CPU, CPU, 0},      WORD_FIELD(PERF_SAMPLE_IDENTIFIER, id),
};

bool abi_is_clock_sig(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE &&
           (attr->config == PERF_COUNT_SW_TASK_CLOCK || attr->config == PERF_COUNT_SW_CPU_CLOCK);
}

bool abi_is_counted_sig(const struct perf_event_attr *attr)
{
    return (attr->type == PERF_TYPE_SOFTWARE && !abi_is_clock_sig(attr)) || attr->type == PERF_TYPE_TRACEPOINT ||
           attr->type == PERF_TYPE_BREAKPOINT;
}

struct abi_layout abi_layout_of_sig(const struct perf_event_attr *attr)
{
    return (struct abi_layout){
        .sample_type = attr->sample_type,
        .read_format = attr->read_format,
        .branch_sample_type = attr->branch_sample_type,
        .regs_user = attr->sample_regs_user,
        .regs_intr = attr->sample_regs_intr,
        .has_sample_id_all = attr->sample_id_all,
    };
}

static uint64_t load64_sig(const unsigned char *at, bool is_swapped)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return is_swapped ? __builtin_bswap64(word) : word;
}

static uint32_t load32_sig(const unsigned char *at, bool is_swapped)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return is_swapped ? __builtin_bswap32(word) : word;
}

uint64_t abi_word_sig(const struct abi_bytes *words, size_t i, bool is_swapped)
{
    return load64_sig(words->data + 8 * i, is_swapped);
}

static bool take_word_sig(struct record_cursor *cursor, uint64_t *word)
{
    if (cursor->left < 8)
        return false;
    *word = load64_sig(cursor->at, cursor->is_swapped);
    cursor->at += 8;
    cursor->left -= 8;
    return true;
}

static bool take_pair_sig(struct record_cursor *cursor, uint32_t *first, uint32_t *second)
{
    if (cursor->left < 8)
        return false;
    *first = load32_sig(cursor->at, cursor->is_swapped);
    *second = load32_sig(cursor->at + 4, cursor->is_swapped);
    cursor->at += 8;
    cursor->left -= 8;
    return true;
}

static bool take_items_sig(struct record_cursor *cursor, uint64_t n_items, size_t n_item_bytes, struct abi_bytes *bytes)
{
    if (n_items > cursor->left / n_item_bytes)
        return false;
    *bytes = (struct abi_bytes){cursor->at, (size_t)n_items * n_item_bytes};
    cursor->at += bytes->n_bytes;
    cursor->left -= bytes->n_bytes;
    return true;
}

/* Takes n_bytes, with padding so that the cursor stays at a multiple of 8 bytes. */
static bool take_padded_sig(struct record_cursor *cursor, uint64_t n_bytes, struct abi_bytes *bytes)
{
    struct abi_bytes found, padding;
    if (!take_items_sig(cursor, n_bytes, 1, &found))
        return false;
    size_t n_over = (size_t)(cursor->at - cursor->start) % 8;
    if (!take_items_sig(cursor, n_over ? 8 - n_over : 0, 1, &padding))
        return false;
    *bytes = found;
    return true;
}

static bool take_read_sig(struct record_cursor *cursor, uint64_t read_format, struct abi_bytes *read)
{
    struct record_cursor start = *cursor;
    bool is_group = read_format & PERF_FORMAT_GROUP;
    uint64_t n_times =
        !!(read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(read_format & PERF_FORMAT_TOTAL_TIME_RUNNING);
    size_t n_entry_bytes = 8 + (read_format & PERF_FORMAT_ID ? 8 : 0) + (read_format & READ_FORMAT_LOST ? 8 : 0);
    uint64_t n_entries = 1;
    struct abi_bytes part;
    if ((is_group && !take_word_sig(cursor, &n_entries)) || !take_items_sig(cursor, n_times, 8, &part) ||
        !take_items_sig(cursor, n_entries, n_entry_bytes, &part))
        return false;
    *read = (struct abi_bytes){start.at, start.left - cursor->left};
    return true;
}

static bool take_counted_sig(struct record_cursor *cursor, size_t n_item_bytes, struct abi_bytes *bytes)
{
    uint64_t n_items;
    return take_word_sig(cursor, &n_items) && take_items_sig(cursor, n_items, n_item_bytes, bytes);
}

static bool take_raw_sig(struct record_cursor *cursor, struct abi_bytes *raw)
{
    if (cursor->left < 4)
        return false;
    uint32_t n_bytes = load32_sig(cursor->at, cursor->is_swapped);
    cursor->at += 4;
    cursor->left -= 4;
    return take_padded_sig(cursor, n_bytes, raw);
}

static bool take_branches_sig(struct record_cursor *cursor, uint64_t branch_type, struct abi_bytes *branches)
{
    uint64_t n_entries, index;
    struct abi_bytes entries, counters;
    if (!take_word_sig(cursor, &n_entries))
        return false;
    bool has_index = branch_type & BRANCH_HAS_INDEX && (n_entries || !cursor->is_index_left_out);
    if ((has_index && !take_word_sig(cursor, &index)) ||
        !take_items_sig(cursor, n_entries, N_BRANCH_ENTRY_BYTES, &entries) ||
        !take_items_sig(cursor, branch_type & BRANCH_HAS_COUNTERS ? n_entries : 0, 8, &counters))
        return false;
    *branches = entries;
    return true;
}

static bool take_regs_sig(struct record_cursor *cursor, uint64_t mask, uint64_t *abi, struct abi_bytes *regs)
{
    uint64_t n_regs = 0, found;
    if (!take_word_sig(cursor, &found) || found > PERF_SAMPLE_REGS_ABI_64)
        return false;
    for (uint64_t rest = found == PERF_SAMPLE_REGS_ABI_NONE ? 0 : mask; rest; rest &= rest - 1)
        n_regs++;
    if (!take_items_sig(cursor, n_regs, 8, regs))
        return false;
    *abi = found;
    return true;
}

static bool take_stack_sig(struct record_cursor *cursor, struct abi_sample *out)
{
    uint64_t n_bytes;
    struct abi_bytes stack;
    if (!take_word_sig(cursor, &n_bytes) || !take_padded_sig(cursor, n_bytes, &stack) ||
        (n_bytes && !take_word_sig(cursor, &out->stack_used_bytes)))
        return false;
    out->stack = stack;
    return true;
}

static bool take_aux_sig(struct record_cursor *cursor, struct abi_bytes *aux)
{
    uint64_t n_bytes;
    return take_word_sig(cursor, &n_bytes) && take_padded_sig(cursor, n_bytes, aux);
}

static bool take_field_sig(struct record_cursor *cursor, const struct field *field, const struct abi_layout *layout,
                           struct abi_sample *out)
{
    uint32_t unused;
    switch ((enum kind)field->kind) {
    case WORD:
        return take_word_sig(cursor, (uint64_t *)(void *)((char *)out + field->offset));
    case PID_TID:
        return take_pair_sig(cursor, &out->pid, &out->tid);
    case CPU:
        return take_pair_sig(cursor, &out->cpu, &unused);
    case READ_VALUES:
        return take_read_sig(cursor, layout->read_format, &out->read);
    case CALLCHAIN:
        return take_counted_sig(cursor, 8, &out->callchain);
    case RAW:
        return take_raw_sig(cursor, &out->raw);
    case BRANCHES:
        return take_branches_sig(cursor, layout->branch_sample_type, &out->branches);
    case REGS_USER:
        return take_regs_sig(cursor, layout->regs_user, &out->regs_user_abi, &out->regs_user);
    case STACK_USER:
        return take_stack_sig(cursor, out);
    case REGS_INTR:
        return take_regs_sig(cursor, layout->regs_intr, &out->regs_intr_abi, &out->regs_intr);
    case AUX:
        return take_aux_sig(cursor, &out->aux);
    }
    return false;
}

/* The second and third number of PERF_SAMPLE_WEIGHT_STRUCT are in the same word as the first, in either byte order. */
static void split_weight_sig(struct abi_sample *out)
{
    out->weight3 = (uint16_t)(out->weight >> 48);
    out->weight2 = (uint16_t)(out->weight >> 32);
    out->weight = (uint32_t)out->weight;
}

static bool take_fields_sig(struct record_cursor *cursor, const struct abi_layout *layout, const struct field *list,
                            size_t n_list, struct abi_sample *out)
{
    for (size_t i = 0; i < n_list; i++) {
        if (!(layout->sample_type & list[i].bit))
            continue;
        if (!take_field_sig(cursor, &list[i], layout, out))
            return false;
        out->present |= list[i].bit;
        if (list[i].bit == PERF_SAMPLE_WEIGHT_STRUCT)
            split_weight_sig(out);
    }
    return true;
}

struct perf_event_header abi_header_sig(const void *record, bool is_swapped)
{
    struct perf_event_header header;
    memcpy(&header, record, sizeof header);
    if (is_swapped) {
        header.type = __builtin_bswap32(header.type);
        header.misc = __builtin_bswap16(header.misc);
        header.size = __builtin_bswap16(header.size);
    }
    return header;
}

static bool parse_sig(struct record_cursor *cursor, const struct abi_layout *layout, struct abi_sample *out)
{
    *out = (struct abi_sample){0};
    return take_fields_sig(cursor, layout, fields, sizeof fields / sizeof fields[0], out);
}

bool abi_sample_parse_sig(const void *record, size_t n_bytes, const struct abi_layout *layout, struct abi_sample *out)
{
    *out = (struct abi_sample){0};
    if (n_bytes < sizeof(struct perf_event_header) || abi_header_sig(record, layout->is_swapped).size != n_bytes)
        return false;
    struct record_cursor start = {.start = record,
                                  .at = (const unsigned char *)record + sizeof(struct perf_event_header),
                                  .left = n_bytes - sizeof(struct perf_event_header),
                                  .is_swapped = layout->is_swapped};
    struct record_cursor cursor = start;
    bool is_whole = parse_sig(&cursor, layout, out);
    bool has_index = layout->sample_type & PERF_SAMPLE_BRANCH_STACK && layout->branch_sample_type & BRANCH_HAS_INDEX;
    if ((is_whole && !cursor.left) || !has_index || out->branches.n_bytes)
        return is_whole;
    cursor = start;
    cursor.is_index_left_out = true;
    struct abi_sample other;
    if (parse_sig(&cursor, layout, &other) && !cursor.left) {
        *out = other;
        return true;
    }
    return is_whole;
}

bool abi_sample_id_parse_sig(const void *record, size_t n_bytes, const struct abi_layout *layout,
                             struct abi_sample *out)
{
    *out = (struct abi_sample){0};
    size_t n_id_bytes = 0;
    for (size_t i = 0; i < sizeof id_fields / sizeof id_fields[0]; i++)
        n_id_bytes += layout->sample_type & id_fields[i].bit ? 8 : 0;
    if (!layout->has_sample_id_all || n_bytes < sizeof(struct perf_event_header) + n_id_bytes ||
        abi_header_sig(record, layout->is_swapped).size != n_bytes)
        return false;
    struct record_cursor cursor = {.at = (const unsigned char *)record + n_bytes - n_id_bytes,
                                   .left = n_id_bytes,
                                   .is_swapped = layout->is_swapped};
    return take_fields_sig(&cursor, layout, id_fields, sizeof id_fields / sizeof id_fields[0], out);
}

/* Copies n_bytes from position on, which may wrap at the ring's end. */
static void ring_copy_sig(const struct abi_ring *ring, uint64_t position, void *to, size_t n_bytes)
{
    size_t offset = (size_t)(position & (ring->n_bytes - 1));
    size_t first = n_bytes < ring->n_bytes - offset ? n_bytes : (size_t)(ring->n_bytes - offset);
    memcpy(to, ring->data + offset, first);
    memcpy((char *)to + first, ring->data, n_bytes - first);
}

enum abi_status abi_ring_record_sig(const struct abi_ring *ring, uint64_t position, uint64_t head, void *buffer,
                                    size_t n_buffer, const struct perf_event_header **record)
{
    uint64_t start, n_written = head - position;
    *record = NULL;
    if (!n_written)
        return ABI_EMPTY;
    if (n_written < sizeof start || n_written > ring->n_bytes)
        return ABI_GARBAGE;
    ring_copy_sig(ring, position, &start, sizeof start);
    struct perf_event_header header = abi_header_sig(&start, ring->is_swapped);
    if (header.size < sizeof header || header.size % 8 || header.size > n_written)
        return ABI_GARBAGE;
    size_t offset = (size_t)(position & (ring->n_bytes - 1));
    if (offset % 8 == 0 && header.size <= ring->n_bytes - offset) {
        *record = (const struct perf_event_header *)(const void *)(ring->data + offset);
        return ABI_RECORD;
    }
    if (header.size > n_buffer)
        return ABI_GARBAGE;
    ring_copy_sig(ring, position, buffer, header.size);
    *record = buffer;
    return ABI_RECORD;
}
