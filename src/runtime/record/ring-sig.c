/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a perf event, and what its records say about memory accesses: see ring.h. Runs in the signal handler. */
#include "runtime/record/ring.h"

#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/ibs.h"
#include "sampling/abi/perf-record.h"
#include "base/sigsafe.h"

/* --- the ring --- */

/* Fields of one 8-byte word each. */
#define WORD_FIELDS                                                                                                    \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |                 \
     PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT |              \
     PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR |              \
     PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

/* data_offset is the size of a page on this machine. */
static struct abi_ring ring_bytes_sig(const struct perf_event_mmap_page *ring, bool is_swapped)
{
    return (struct abi_ring){
        .data = (const unsigned char *)ring + ring->data_offset, .n_bytes = ring->data_size, .is_swapped = is_swapped};
}

static enum ring_status record_at_sig(const struct abi_ring *ring, uint64_t position, uint64_t end, void *buffer,
                                      size_t n_buffer, struct ring_record *record)
{
    const struct perf_event_header *found;
    switch (abi_ring_record_sig(ring, position, end, buffer, n_buffer, &found)) {
    case ABI_RECORD:
        record->header = abi_header_sig(found, ring->is_swapped);
        record->bytes = found;
        return RING_RECORD;
    case ABI_EMPTY:
        return RING_EMPTY;
    case ABI_GARBAGE:
    default:
        return RING_GARBAGE;
    }
}

/* Samples of the reader's own code are never the newest one: the sample that the signal announces came before them. */
static void news_add_sample_sig(const struct ring_view *view, struct ring_news *news, const struct ring_record *record)
{
    uint64_t ip = view->own_high ? ring_word_sig(record, view->ip_word, view->is_swapped) : 0;
    news->n_samples++;
    if (ip >= view->own_low && ip < view->own_high && ip != view->pc) {
        news->n_own++;
    } else if (!news->has_newest) {
        news->has_newest = true;
        news->newest = *record;
    }
}

static void news_add_sig(const struct ring_view *view, struct ring_news *news, const struct ring_record *record)
{
    bool is_swapped = view->is_swapped;
    switch (record->header.type) {
    case PERF_RECORD_SAMPLE:
        news_add_sample_sig(view, news, record);
        break;
    case PERF_RECORD_LOST:
        news->n_lost += ring_word_sig(record, 1, is_swapped);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        news->n_lost += ring_word_sig(record, 0, is_swapped);
        break;
    case PERF_RECORD_THROTTLE:
        news->n_throttles++;
        break;
    default:
        break;
    }
}

/* From position to the older end only the records' headers matter, and the newest sample as a whole. */
static uint64_t news_walk_sig(const struct ring_view *view, const struct abi_ring *ring, uint64_t position,
                              uint64_t end, struct ring_news *news)
{
    struct ring_record record;
    for (;;) {
        size_t n_kept = news->has_newest ? view->n_buffer / 2 : 0;
        enum ring_status status =
            record_at_sig(ring, position, end, (char *)view->buffer + n_kept, view->n_buffer - n_kept, &record);
        if (status != RING_RECORD)
            return position;
        news_add_sig(view, news, &record);
        position += record.header.size;
    }
}

void ring_news_sig(const struct ring_view *view, uint64_t *seen, struct ring_news *news)
{
    struct abi_ring bytes = ring_bytes_sig(view->ring, view->is_swapped);
    uint64_t head = ring_head_sig(view->ring), older = *seen;
    *seen = head;
    news->n_samples = news->n_own = news->n_lost = news->n_throttles = 0;
    news->is_estimate = news->has_newest = false;
    uint64_t end = older - head > bytes.n_bytes ? head + bytes.n_bytes : older;
    uint64_t reached = news_walk_sig(view, &bytes, head, end, news);
    if (reached == older)
        return;
    unsigned n_each = view->n_sample_bytes;
    if (!n_each && news->has_newest)
        n_each = news->newest.header.size;
    news->is_estimate = !view->n_sample_bytes;
    news->n_samples += n_each ? (older - reached) / n_each : 0;
}

enum ring_status ring_next_sig(const struct perf_event_mmap_page *ring, bool is_swapped, uint64_t *position,
                               void *buffer, size_t n_buffer, struct ring_record *record)
{
    struct abi_ring bytes = ring_bytes_sig(ring, is_swapped);
    uint64_t head = ring_head_sig(ring);
    enum ring_status status = record_at_sig(&bytes, *position, head, buffer, n_buffer, record);
    if (status == RING_RECORD)
        *position += record->header.size;
    else if (status == RING_GARBAGE)
        *position = head;
    return status;
}

void ring_release_sig(struct perf_event_mmap_page *ring, uint64_t position)
{
    __atomic_store_n(&ring->data_tail, position, __ATOMIC_RELEASE);
}

uint64_t ring_head_sig(const struct perf_event_mmap_page *ring)
{
    return __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
}

uint64_t ring_word_sig(const struct ring_record *record, size_t i, bool is_swapped)
{
    uint64_t word;
    if (record->header.size < sizeof record->header + 8 * (i + 1))
        return 0;
    memcpy(&word, (const char *)record->bytes + sizeof record->header + 8 * i, sizeof word);
    return is_swapped ? __builtin_bswap64(word) : word;
}

unsigned ring_sample_bytes_sig(uint64_t sample_type)
{
    unsigned n_bytes = sizeof(struct perf_event_header);
    if (sample_type & ~(uint64_t)WORD_FIELDS)
        return 0;
    for (uint64_t left = sample_type; left; left &= left - 1)
        n_bytes += 8;
    return n_bytes;
}

/* --- one record as a memory access --- */

#define IBS_CAPS_ZEN4 (1u << 11) /* src: arch/x86/include/asm/amd-ibs.h, IBS_CAPS_ZEN4 */
#define OP_MASK 31u              /* mem_op of a data source */
#define OP_NONE 1u               /* PERF_MEM_OP_NA */
#define LOADS_AND_STORES (1u << MEM_LOAD | 1u << MEM_STORE)

bool access_is_swapped_sig(const struct arena_event *plan)
{
    return plan->flags & EVENT_SWAPPED;
}

/* Completes an access: if there is no address and the instruction neither loads nor stores, it is no access. */
static void access_close_sig(struct access *access)
{
    if (!access->has_address && !(access->metrics & LOADS_AND_STORES))
        access->is_no_access = true;
    if (access->is_no_access) {
        access->metrics = 0;
        access->lat_cycles = 0;
    }
}

static void take_ibs_sig(const struct abi_sample *sample, bool is_swapped, struct access *access)
{
    uint32_t capabilities = 0;
    struct ibs_op op;
    if (sample->raw.n_bytes >= sizeof capabilities)
        memcpy(&capabilities, sample->raw.data, sizeof capabilities);
    if (is_swapped || !ibs_op_parse_sig(sample->raw.data, sample->raw.n_bytes, capabilities & IBS_CAPS_ZEN4, &op))
        return;
    uint64_t data_src = sample->data_src;
    if (!(data_src & OP_MASK & ~OP_NONE))
        data_src = op.data_src;
    access->has_address = op.has_address;
    access->address = op.address;
    access->is_no_access = !op.is_load && !op.is_store && !op.is_swpf;
    access->metrics = mem_metrics_sig(data_src);
    if (!access->lat_cycles)
        access->lat_cycles = op.lat_cycles;
}

bool access_of_record_sig(const struct arena_event *plan, const struct ring_record *record, struct access *access)
{
    struct abi_sample sample;
    struct abi_layout layout = abi_layout_of_sig(&plan->attr);
    layout.is_swapped = access_is_swapped_sig(plan);
    if (!abi_sample_parse_sig(record->bytes, record->header.size, &layout, &sample))
        return false;
    unsigned mode = record->header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
    bool has_address = plan->flags & EVENT_ADDRESS && sample.present & PERF_SAMPLE_ADDR;
    *access = (struct access){.has_address = has_address && (sample.addr || !(plan->flags & EVENT_DATA_SRC)),
                              .is_exact = record->header.misc & PERF_RECORD_MISC_EXACT_IP,
                              .is_in_kernel = mode == PERF_RECORD_MISC_KERNEL,
                              .has_cpu = sample.present & PERF_SAMPLE_CPU,
                              .cpu = sample.cpu,
                              .address = sample.addr,
                              .ip = sample.ip,
                              .period = sample.period,
                              .lat_cycles = sample.weight,
                              .callchain = sample.callchain};
    if (!(plan->flags & EVENT_DATA_SRC))
        return true;
    if (sample.present & PERF_SAMPLE_DATA_SRC)
        access->metrics = mem_metrics_sig(sample.data_src);
    if ((plan->decode & EVENT_DECODE_MASK) == MEM_DECODE_IBS_RAW)
        take_ibs_sig(&sample, layout.is_swapped, access);
    access_close_sig(access);
    return true;
}

void access_of_spe_sig(const struct arena_event *plan, const struct spe_record *record, struct access *access)
{
    uint64_t data_src = spe_data_src_sig(record, (enum spe_sources)(plan->decode >> EVENT_DECODE_SHIFT));
    *access = (struct access){.has_address = record->has_address && record->address,
                              .is_exact = true,
                              .is_no_access = !record->is_load && !record->is_store && !record->is_atomic,
                              .address = record->address,
                              .ip = record->pc,
                              .period = plan->attr.sample_period,
                              .lat_cycles = record->total_cycles};
    access->metrics = mem_metrics_sig(data_src);
    access_close_sig(access);
}
