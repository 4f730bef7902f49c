/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.dat, version 6, written: see trace-dat.h. */
#include "config.h"

#include "fmt/trace-dat.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* A page: 8 bytes time, 8 bytes length of what follows, and flags. */
enum { PAGE_BYTES = 4096, HEAD_BYTES = 16, DATA_BYTES = PAGE_BYTES - HEAD_BYTES, COUNT_BYTES = 8 };
#define PAGE_LOST (UINT32_C(1) << 31)       /* events were lost before this page */
#define PAGE_LOST_COUNT (UINT32_C(1) << 30) /* and how many stands behind the data */

/* The first word of an event: 5 bits for its length in words or its kind, the others for the time since the last one.
 */
enum { KIND_BITS = 5, DELTA_BITS = 27, KIND_LONG = 0, KIND_WORDS_MAX = 28, KIND_EXTEND = 30 };

enum {
    OPTION_DONE = 0,
    OPTION_CPUSTAT = 2,
    OPTION_TRACECLOCK = 4,
    OPTION_UNAME = 5,
    OPTION_CPUCOUNT = 8,
    OPTION_VERSION = 9,
    OPTION_TRACEID = 11
};

#define CPUS_MAX 65535u

/* --- what stands before the events --- */

/* Little-endian, as the file says of itself. */
static void put_number(struct buf *out, uint64_t value, unsigned n_bytes)
{
    value = htole64(value);
    buf_append(out, &value, n_bytes);
}

static void put_text(struct buf *out, const char *text, unsigned n_length_bytes)
{
    size_t len = strlen(text);
    put_number(out, len, n_length_bytes);
    buf_append(out, text, len);
}

static void put_option(struct buf *out, unsigned option, const void *bytes, size_t n_bytes)
{
    put_number(out, option, 2);
    put_number(out, n_bytes, 4);
    buf_append(out, bytes, n_bytes);
}

static void put_number_option(struct buf *out, unsigned option, uint64_t value, unsigned n_bytes)
{
    value = htole64(value);
    put_option(out, option, &value, n_bytes);
}

/* How a page and an event of it begin, in the words of tracefs (events/header_page, events/header_event). */
static void put_layout(struct buf *out)
{
    static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                               "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
                               "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                               "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    static const char event[] = "# compressed entry header\n"
                                "\ttype_len    :    5 bits\n"
                                "\ttime_delta  :   27 bits\n"
                                "\tarray       :   32 bits\n"
                                "\n"
                                "\tpadding     : type == 29\n"
                                "\ttime_extend : type == 30\n"
                                "\ttime_stamp : type == 31\n"
                                "\tdata max type_len  == 28\n";
    buf_append(out, "header_page", sizeof "header_page");
    put_text(out, page, 8);
    buf_append(out, "header_event", sizeof "header_event");
    put_text(out, event, 8);
}

static void put_formats(const struct trace_dat_head *head, struct buf *out)
{
    uint32_t n_systems = 0;
    for (size_t i = 0; i < head->n_formats; i++)
        n_systems += i == 0 || strcmp(head->formats[i].system, head->formats[i - 1].system) != 0;
    put_number(out, 0, 4); /* formats of the function tracers */
    put_number(out, n_systems, 4);
    for (size_t i = 0, next; i < head->n_formats; i = next) {
        const char *system = head->formats[i].system;
        for (next = i + 1; next < head->n_formats && strcmp(head->formats[next].system, system) == 0;)
            next++;
        buf_append(out, system, strlen(system) + 1);
        put_number(out, next - i, 4);
        for (size_t at = i; at < next; at++)
            put_text(out, head->formats[at].text, 8);
    }
}

static void put_tasks(const struct trace_dat_head *head, struct buf *out)
{
    struct buf lines = {0};
    put_number(out, 0, 4); /* symbols of the kernel */
    put_number(out, 0, 4); /* formats of trace_printk */
    for (size_t i = 0; i < head->n_tasks; i++)
        buf_printf(&lines, "%d %s\n", (int)head->tasks[i].tid, head->tasks[i].comm);
    put_number(out, lines.len_bytes, 8);
    buf_append(out, lines.data ? lines.data : "", lines.len_bytes);
    out->failed |= lines.failed;
    buf_fini(&lines);
}

static void put_options(const struct trace_dat_head *head, struct buf *out)
{
    static const char version[] = PACKAGE_NAME " " PACKAGE_VERSION;
    buf_append(out, "options  ", sizeof "options  ");
    for (uint32_t cpu = 0; cpu < head->n_cpus; cpu++) {
        struct buf line = {0};
        buf_printf(&line, "CPU: %u\n", cpu);
        put_option(out, OPTION_CPUSTAT, line.data ? line.data : "", line.len_bytes);
        buf_fini(&line);
    }
    put_option(out, OPTION_TRACECLOCK, "", 0);
    if (head->uname)
        put_option(out, OPTION_UNAME, head->uname, strlen(head->uname) + 1);
    put_number_option(out, OPTION_CPUCOUNT, head->n_cpus, 4);
    put_option(out, OPTION_VERSION, version, sizeof version);
    put_number_option(out, OPTION_TRACEID, head->trace_id, 8);
    put_number(out, OPTION_DONE, 2);
}

/* Everything up to the first page; *table: where in out the CPUs' offsets and sizes go. */
static void put_head(const struct trace_dat_head *head, struct buf *out, size_t *table)
{
    size_t begin = out->len_bytes;
    static const unsigned char begins[] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g', '6', 0, 0, 8};
    buf_append(out, begins, sizeof begins);
    put_number(out, PAGE_BYTES, 4);
    put_layout(out);
    put_formats(head, out);
    put_tasks(head, out);
    put_number(out, head->n_cpus, 4);
    put_options(head, out);
    buf_append(out, "flyrecord", sizeof "flyrecord");
    *table = out->len_bytes;
    for (uint32_t cpu = 0; cpu < head->n_cpus; cpu++) {
        put_number(out, 0, 8);
        put_number(out, 0, 8);
    }
    put_number(out, strlen(head->clock) + 2, 8);
    buf_printf(out, "[%s]", head->clock);
    while ((out->len_bytes - begin) % PAGE_BYTES && !out->failed)
        buf_append(out, "", 1);
}

/* --- pages --- */

static void page_put(struct trace_dat_writer *writer, uint32_t word)
{
    word = htole32(word);
    memcpy(writer->page + HEAD_BYTES + writer->n_used, &word, sizeof word);
    writer->n_used += sizeof word;
}

static void page_write(struct trace_dat_writer *writer)
{
    if (!writer->n_used)
        return;
    uint64_t length = writer->n_used;
    if (writer->has_lost)
        length |= PAGE_LOST;
    if (writer->has_lost && writer->page_lost) {
        uint64_t n = htole64(writer->page_lost);
        length |= PAGE_LOST_COUNT;
        memcpy(writer->page + HEAD_BYTES + writer->n_used, &n, sizeof n);
    }
    length = htole64(length);
    memcpy(writer->page + 8, &length, sizeof length);
    buf_append(writer->out, writer->page, PAGE_BYTES);
    memset(writer->page, 0, PAGE_BYTES);
    writer->n_used = 0;
    writer->has_lost = false;
}

static void page_begin(struct trace_dat_writer *writer, uint64_t t_ns)
{
    uint64_t time = htole64(t_ns);
    memcpy(writer->page, &time, sizeof time);
    writer->t_ns = t_ns;
    writer->has_lost = writer->is_losing;
    writer->page_lost = writer->n_lost;
    writer->is_losing = false;
    writer->n_lost = 0;
}

/* The pages of the CPU are complete: its offset and size go into the table. */
static void cpu_end(struct trace_dat_writer *writer)
{
    page_write(writer);
    uint64_t end = writer->out->len_bytes - writer->begin;
    const uint64_t place[] = {htole64(writer->data_offset), htole64(end - writer->data_offset)};
    if (!writer->out->failed)
        memcpy(writer->out->data + writer->table + writer->cpu * sizeof place, place, sizeof place);
}

static void cpu_begin(struct trace_dat_writer *writer, uint32_t cpu)
{
    writer->cpu = cpu;
    writer->data_offset = writer->out->len_bytes - writer->begin;
    writer->t_ns = 0;
    writer->is_losing = false;
    writer->n_lost = 0;
}

int trace_dat_cpu(struct trace_dat_writer *writer, uint32_t cpu, struct error *err)
{
    if (cpu >= writer->n_cpus || cpu < writer->cpu)
        return error_set(err, ERR_RANGE, "CPU %u of %u is out of order in a trace", cpu, writer->n_cpus);
    cpu_end(writer);
    cpu_begin(writer, cpu);
    return 0;
}

int trace_dat_add(struct trace_dat_writer *writer, uint64_t t_ns, const void *payload, uint32_t n_bytes,
                  struct error *err)
{
    uint32_t n_words = (n_bytes + 3) / 4, room = DATA_BYTES - COUNT_BYTES;
    uint32_t n_needed = 4 * n_words + (n_words > KIND_WORDS_MAX ? 8 : 4);
    if (n_bytes == 0 || n_bytes > TRACE_DAT_PAYLOAD_MAX || t_ns < writer->t_ns)
        return error_set(err, ERR_RANGE, "an event of %u bytes at %llu ns on CPU %u has no place in a trace", n_bytes,
                         (unsigned long long)t_ns, writer->cpu);
    uint64_t delta = writer->n_used ? t_ns - writer->t_ns : 0;
    bool is_far = delta >> DELTA_BITS != 0;
    if (writer->n_used && (writer->is_losing || writer->n_used + n_needed + (is_far ? 8 : 0) > room))
        page_write(writer);
    if (!writer->n_used) {
        page_begin(writer, t_ns);
        delta = 0;
    } else if (is_far) {
        page_put(writer, KIND_EXTEND | (uint32_t)(delta & ((UINT32_C(1) << DELTA_BITS) - 1)) << KIND_BITS);
        page_put(writer, (uint32_t)(delta >> DELTA_BITS));
        delta = 0;
    }
    writer->t_ns = t_ns;
    page_put(writer, (n_words > KIND_WORDS_MAX ? KIND_LONG : n_words) | (uint32_t)delta << KIND_BITS);
    if (n_words > KIND_WORDS_MAX)
        page_put(writer, 4 * n_words + 4);
    memcpy(writer->page + HEAD_BYTES + writer->n_used, payload, n_bytes);
    writer->n_used += 4 * n_words;
    return 0;
}

void trace_dat_lost(struct trace_dat_writer *writer, uint64_t n)
{
    bool is_known = n && (!writer->is_losing || writer->n_lost);
    writer->n_lost = is_known ? writer->n_lost + n : 0;
    writer->is_losing = true;
}

/* --- a file --- */

int trace_dat_begin(struct trace_dat_writer *writer, struct buf *out, const struct trace_dat_head *head,
                    struct error *err)
{
    *writer = (struct trace_dat_writer){.out = out, .begin = out->len_bytes, .n_cpus = head->n_cpus};
    if (head->n_cpus == 0 || head->n_cpus > CPUS_MAX)
        return error_set(err, ERR_RANGE, "a trace of %u CPUs cannot be written", head->n_cpus);
    put_head(head, out, &writer->table);
    writer->page = calloc(1, PAGE_BYTES);
    if (!writer->page || out->failed)
        return error_memory(err);
    cpu_begin(writer, 0);
    return 0;
}

int trace_dat_end(struct trace_dat_writer *writer, struct error *err)
{
    bool is_whole = writer->page && !writer->out->failed;
    if (is_whole)
        cpu_end(writer);
    is_whole = is_whole && !writer->out->failed;
    free(writer->page);
    *writer = (struct trace_dat_writer){0};
    return is_whole ? 0 : error_memory(err);
}
