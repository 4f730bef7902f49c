/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit test of sampling/abi/perf-record.h against the running kernel: page faults with every field that a software
 * event can have, alone and together. What is found must be true of this process, and fill each record to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampling/abi/perf-record.h"

#if defined(__x86_64__)
enum { REG_SP = 7, REG_PC = 8 };
#elif defined(__aarch64__)
enum { REG_SP = 31, REG_PC = 32 };
#else
enum { REG_SP = 1, REG_PC = 32 };
#endif
#define REGS (1ull << REG_SP | 1ull << REG_PC)

enum { RING_PAGES = 64, N_FAULTS = 8, STACK_BYTES = 2048 };
#define MARK 0x6c6f6375735f6162ull /* lies on the stack when the faults happen */

#define ALONE                                                                                                          \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |       \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER)
#define EVERYTHING                                                                                                     \
    (ALONE | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |                      \
     PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |                    \
     PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |                 \
     PERF_SAMPLE_CODE_PAGE_SIZE)

struct fixture {
    int fd, member;
    uint64_t id;
    struct perf_event_attr attr;
    struct perf_event_mmap_page *ring;
    size_t page_bytes;
};

static int open_event(struct perf_event_attr *attr, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

/* False when this machine allows no such event. */
static bool begin(struct fixture *f, uint64_t sample_type)
{
    *f = (struct fixture){.member = -1, .page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    f->attr = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
                                       .size = sizeof f->attr,
                                       .config = PERF_COUNT_SW_PAGE_FAULTS,
                                       .sample_period = 1,
                                       .sample_type = sample_type,
                                       .read_format = PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
                                       .sample_regs_user = REGS,
                                       .sample_regs_intr = REGS,
                                       .sample_stack_user = STACK_BYTES,
                                       .disabled = 1,
                                       .exclude_kernel = 1,
                                       .exclude_callchain_kernel = 1,
                                       .mmap = 1,
                                       .mmap_data = 1,
                                       .sample_id_all = 1};
    if (sample_type & PERF_SAMPLE_READ)
        f->attr.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING;
    f->fd = open_event(&f->attr, -1);
    if (f->fd < 0)
        return false;
    struct perf_event_attr member = {.type = PERF_TYPE_SOFTWARE,
                                     .size = sizeof member,
                                     .config = PERF_COUNT_SW_TASK_CLOCK,
                                     .read_format = f->attr.read_format,
                                     .exclude_kernel = 1};
    if (sample_type & PERF_SAMPLE_READ)
        f->member = open_event(&member, f->fd);
    assert_int_equal(ioctl(f->fd, PERF_EVENT_IOC_ID, &f->id), 0);
    f->ring = mmap(NULL, (RING_PAGES + 1) * f->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    return f->ring != MAP_FAILED;
}

static void end(struct fixture *f)
{
    if (f->fd >= 0 && f->ring != MAP_FAILED)
        munmap(f->ring, (RING_PAGES + 1) * f->page_bytes);
    if (f->member >= 0)
        close(f->member);
    if (f->fd >= 0)
        close(f->fd);
}

/* Touches N_FAULTS new pages, of 4 KiB or whatever the machine has, while the event counts. */
__attribute__((noinline)) static char *touch(struct fixture *f)
{
    volatile uint64_t mark = MARK;
    size_t n_bytes = N_FAULTS * f->page_bytes;
    ioctl(f->fd, PERF_EVENT_IOC_ENABLE, 0);
    volatile char *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED)
        madvise((void *)(uintptr_t)pages, n_bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; pages != MAP_FAILED && i < N_FAULTS; i++)
        pages[i * f->page_bytes + 8 * i] = (char)mark;
    ioctl(f->fd, PERF_EVENT_IOC_DISABLE, 0);
    return (char *)(uintptr_t)pages;
}

static void check_common(const struct fixture *f, const struct abi_sample *s)
{
    assert_true((s->present & ~f->attr.sample_type) == 0);
    assert_true(!(s->present & PERF_SAMPLE_TID) ||
                (s->pid == (uint32_t)getpid() && s->tid == (uint32_t)syscall(SYS_gettid)));
    assert_true(!(s->present & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER)) || s->id == f->id);
    assert_true(!(s->present & PERF_SAMPLE_STREAM_ID) || s->stream_id == f->id);
    assert_true(!(s->present & PERF_SAMPLE_CPU) || s->cpu < 65536);
    assert_true(!(s->present & PERF_SAMPLE_TIME) || s->time_ns);
}

static void check_registers(const struct fixture *f, const struct abi_sample *s)
{
    bool holds_mark = false;
    assert_int_equal(s->regs_user_abi, PERF_SAMPLE_REGS_ABI_64);
    assert_int_equal(s->regs_user.n_bytes, 16);
    assert_int_equal(abi_word_sig(&s->regs_user, 1, false), s->ip);
    assert_true(!s->regs_intr_abi || s->regs_intr.n_bytes == 16);
    assert_true(s->stack.n_bytes <= STACK_BYTES && s->stack_used_bytes <= s->stack.n_bytes);
    for (size_t i = 0; i < s->stack_used_bytes / 8; i++)
        holds_mark |= abi_word_sig(&s->stack, i, false) == MARK;
    assert_true(holds_mark);
    assert_int_equal(s->code_page_bytes % f->page_bytes, 0);
    assert_int_equal(s->data_page_bytes % f->page_bytes, 0);
    assert_true(!s->phys_addr || s->phys_addr % f->page_bytes == s->addr % f->page_bytes);
}

/* A group of two: number, two times, then value and id of each. */
static void check_group(const struct fixture *f, const struct abi_sample *s)
{
    uint64_t n_members = f->member >= 0 ? 2 : 1;
    assert_int_equal(s->read.n_bytes, 8 * (3 + 2 * n_members));
    assert_int_equal(abi_word_sig(&s->read, 0, false), n_members);
    assert_int_equal(abi_word_sig(&s->read, 4, false), f->id);
    assert_true(s->callchain.n_bytes >= 16);
    assert_int_equal(abi_word_sig(&s->callchain, 0, false), PERF_CONTEXT_USER);
    assert_int_equal(abi_word_sig(&s->callchain, 1, false), s->ip);
}

/* The last field ends where the record does: without 8 bytes, or with a field more, it does not fit. */
static void check_end(const struct perf_event_header *record, const struct abi_layout *layout)
{
    static unsigned char shorter[65536];
    struct abi_layout longer = *layout;
    struct abi_sample s;
    longer.sample_type |= PERF_SAMPLE_AUX;
    assert_false(abi_sample_parse_sig(record, record->size, &longer, &s));
    struct perf_event_header header = *record;
    header.size = (uint16_t)(header.size - 8);
    memcpy(shorter, record, header.size);
    memcpy(shorter, &header, sizeof header);
    assert_false(abi_sample_parse_sig(shorter, header.size, layout, &s));
}

static unsigned check_sample(const struct fixture *f, const struct perf_event_header *record, const char *pages)
{
    struct abi_layout layout = abi_layout_of_sig(&f->attr);
    struct abi_sample s;
    assert_true(abi_sample_parse_sig(record, record->size, &layout, &s));
    assert_int_equal(s.present, f->attr.sample_type);
    check_common(f, &s);
    check_end(record, &layout);
    if (f->attr.sample_type & PERF_SAMPLE_PERIOD)
        assert_int_equal(s.period, 1);
    uint64_t offset = s.addr - (uint64_t)(uintptr_t)pages;
    if (!(f->attr.sample_type & PERF_SAMPLE_ADDR) || offset >= N_FAULTS * f->page_bytes)
        return 0;
    assert_int_equal(offset % f->page_bytes, 8 * (offset / f->page_bytes));
    if ((f->attr.sample_type & PERF_SAMPLE_READ) && (f->attr.sample_type & PERF_SAMPLE_REGS_USER)) {
        check_registers(f, &s);
        check_group(f, &s);
    }
    return 1;
}

/* Samples in what the ring holds; of them, faults on pages. */
static unsigned check_ring(const struct fixture *f, const char *pages, unsigned *n_faults)
{
    static uint64_t buffer[65536 / 8];
    struct abi_layout layout = abi_layout_of_sig(&f->attr);
    struct abi_ring ring = {.data = (const unsigned char *)f->ring + f->page_bytes,
                            .n_bytes = RING_PAGES * f->page_bytes};
    uint64_t position = 0, head = __atomic_load_n(&f->ring->data_head, __ATOMIC_ACQUIRE);
    const struct perf_event_header *record;
    unsigned n_samples = 0, n_others = 0;
    enum abi_status status;
    *n_faults = 0;
    while ((status = abi_ring_record_sig(&ring, position, head, buffer, sizeof buffer, &record)) == ABI_RECORD) {
        struct abi_sample s;
        if (record->type == PERF_RECORD_SAMPLE) {
            *n_faults += check_sample(f, record, pages);
            n_samples++;
        } else if (abi_sample_id_parse_sig(record, record->size, &layout, &s)) {
            check_common(f, &s);
            n_others++;
        }
        position += record->size;
    }
    assert_int_equal(status, ABI_EMPTY);
    assert_true(n_others > 0);
    return n_samples;
}

static bool check_type(uint64_t sample_type)
{
    struct fixture f;
    unsigned n_faults;
    bool is_open = begin(&f, sample_type);
    if (is_open) {
        char *pages = touch(&f);
        assert_true(pages != MAP_FAILED);
        assert_true(check_ring(&f, pages, &n_faults) >= N_FAULTS);
        if (sample_type & PERF_SAMPLE_ADDR)
            assert_int_equal(n_faults, N_FAULTS);
        munmap(pages, N_FAULTS * f.page_bytes);
    }
    end(&f);
    return is_open;
}

static void test_each_field(void **state)
{
    (void)state;
    unsigned n_open = 0;
    for (unsigned bit = 0; bit < 24; bit++)
        if (EVERYTHING & 1u << bit)
            n_open += check_type(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | 1u << bit);
    if (!n_open) {
        printf("SKIP (part): this kernel refuses page-fault events: %s\n", strerror(errno));
        skip();
    }
}

static void test_everything(void **state)
{
    (void)state;
    /* Physical addresses need privilege, some fields a newer kernel. */
    static const uint64_t without[] = {0, PERF_SAMPLE_PHYS_ADDR,
                                       PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |
                                           PERF_SAMPLE_CODE_PAGE_SIZE};
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (check_type(EVERYTHING & ~without[i]))
            return;
    printf("SKIP (part): this kernel refuses page-fault events: %s\n", strerror(errno));
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_field), cmocka_unit_test(test_everything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
