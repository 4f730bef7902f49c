/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings of trace-cmd: the pages of the kernel's ring buffers, decoded CPU by CPU and merged by time. Layout of
 * pages and events: events/header_page and events/header_event in tracefs. */
#include "streams/readers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "streams/trace-dat.h"

/* Bits of a page's word of length. */
#define PAGE_LENGTH_MASK UINT64_C(0x7ffffff)
#define PAGE_LOST (UINT64_C(1) << 31)
#define PAGE_LOST_STORED (UINT64_C(1) << 30)

/* Kinds of entries in a page; smaller ones are events of as many words, 0 one whose length is in the next word. */
enum entry { ENTRY_PADDING = 29, ENTRY_EXTEND = 30, ENTRY_STAMP = 31 };

enum { DELTA_BITS = 27, PREFETCH_BYTES = 1024 };

enum { EVENT_BYTES_LIKELY = 28 }; /* few are shorter: a head, the common fields and two more */

/* Records are lost at no known time: libkshark says that much before the next event of the CPU. */
enum { LOST_BEFORE_NS = 10 };
#define STAMP_MASK ((UINT64_C(1) << 59) - 1)

/* What is the same for all pages of a recording. */
struct page_layout {
    uint32_t page_bytes, data_offset, length_offset, length_bytes;
    uint32_t type_offset, task_offset; /* of the common fields in an event */
    bool is_swapped, is_big_endian;
};

/* One CPU: where its decoder stands, and the event that it has found. */
struct cpu_reader {
    const unsigned char *page, *at, *end;
    uint64_t n_bytes_left; /* of pages behind this one */
    uint64_t time;         /* of the last entry */
    uint64_t lost;         /* before the event, with has_lost; 0: not known how many */
    int64_t t_ns, last_ns; /* of the event, and of the one before */
    int64_t next_ns;       /* of what comes next of the CPU: the event, or that records were lost before it */
    const unsigned char *payload;
    const unsigned char *stop; /* the first event that is not wanted, NULL: all are */
    uint32_t n_payload;
    uint16_t cpu;
    bool has_lost;
};

struct loader {
    struct trace_dat *dat;
    struct page_layout layout;
    struct cpu_reader *cpus;
    uint32_t *heap; /* [n_heap] indexes of cpus, the next event's at the top */
    size_t n_heap;
    int code;
    struct names_gathering *names; /* NULL: nobody asks for them */
};

static inline uint32_t get_word(const struct page_layout *layout, const unsigned char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return layout->is_swapped ? __builtin_bswap32(word) : word;
}

static inline uint16_t get_half(const struct page_layout *layout, const unsigned char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return layout->is_swapped ? __builtin_bswap16(half) : half;
}

static uint64_t get_long(const struct page_layout *layout, const unsigned char *at, uint32_t n_bytes)
{
    uint64_t word;
    if (n_bytes == 4)
        return get_word(layout, at);
    memcpy(&word, at, sizeof word);
    return layout->is_swapped ? __builtin_bswap64(word) : word;
}

static bool fail_at(struct loader *loader, const unsigned char *at, const char *text)
{
    loader->code = trace_dat_fail(loader->dat, (uint64_t)(at - loader->dat->data), text);
    return false;
}

/* --- decoding --- */

/* Goes to the CPU's next page; false at the end, or with loader->code. */
static bool open_page(struct loader *loader, struct cpu_reader *cpu)
{
    const struct page_layout *layout = &loader->layout;
    const unsigned char *page = cpu->page + (cpu->end ? layout->page_bytes : 0);
    if (cpu->n_bytes_left == 0)
        return false;
    if (cpu->n_bytes_left < layout->page_bytes)
        return fail_at(loader, page, "truncated in a page");
    uint64_t word = get_long(layout, page + layout->length_offset, layout->length_bytes);
    uint64_t n_bytes = word & PAGE_LENGTH_MASK, n_room = layout->page_bytes - layout->data_offset;
    if (n_bytes > n_room)
        return fail_at(loader, page, "a page has more bytes than there is room for");
    cpu->page = page;
    cpu->at = page + layout->data_offset;
    cpu->end = cpu->at + n_bytes;
    cpu->n_bytes_left -= layout->page_bytes;
    cpu->time = get_long(layout, page, 8);
    if (word & PAGE_LOST) {
        uint64_t n = word & PAGE_LOST_STORED && n_room - n_bytes >= layout->length_bytes
                         ? get_long(layout, cpu->end, layout->length_bytes)
                         : 0;
        cpu->lost = cpu->has_lost && (!n || !cpu->lost) ? 0 : cpu->lost + n;
        cpu->has_lost = true;
    }
    return true;
}

/* Time on the stream's axis. */
static inline int64_t time_of(const struct trace_dat *dat, uint64_t time)
{
    if (__builtin_expect(dat->mult != 0, 0))
        time = (uint64_t)((unsigned __int128)time * dat->mult >> (dat->shift & 127));
    return (int64_t)(time + (uint64_t)dat->date_ns + (uint64_t)dat->offset_ns);
}

/* An absolute stamp has 59 bits; the others are those of the time before. */
static uint64_t stamp_time(uint64_t before, uint64_t stamp)
{
    uint64_t time = (before & ~STAMP_MASK) | stamp;
    return time < before ? time + STAMP_MASK + 1 : time;
}

/* Passes an entry that is no event, or of which the length is in its second word; *n_bytes: of what follows that word.
 * False, with loader->code, when it ends behind its page. */
static bool take_entry(struct loader *loader, struct cpu_reader *cpu, uint32_t kind, uint32_t delta, uint32_t *n_bytes)
{
    size_t n_left = (size_t)(cpu->end - cpu->at);
    uint32_t second = n_left >= 8 ? get_word(&loader->layout, cpu->at + 4) : 0;
    uint64_t wide = (uint64_t)second << DELTA_BITS | delta;
    bool has_length = kind == 0 || kind == ENTRY_PADDING;
    *n_bytes = has_length ? second - 4 : 0; /* the length counts itself */
    if (n_left < 8 || (has_length && (second < 4 || second > n_left - 4)))
        return fail_at(loader, cpu->at, "an entry ends behind its page");
    if (kind == ENTRY_STAMP)
        cpu->time = stamp_time(cpu->time, wide);
    else if (kind == ENTRY_EXTEND)
        cpu->time += wide;
    else
        cpu->time += delta;
    cpu->at += 8;
    return true;
}

/* When records were lost before the CPU's event. */
static int64_t lost_time(const struct cpu_reader *cpu)
{
    int64_t before_ns;
    bool is_early = __builtin_sub_overflow(cpu->t_ns, (int64_t)LOST_BEFORE_NS, &before_ns);
    return !is_early && before_ns > cpu->last_ns ? before_ns : cpu->last_ns;
}

/* Finds the CPU's next event; false at the end, or with loader->code. */
static inline bool next_event(struct loader *loader, struct cpu_reader *cpu)
{
    const struct page_layout *layout = &loader->layout;
    for (;;) {
        if (cpu->end - cpu->at < 4) {
            if (!open_page(loader, cpu))
                return false;
            continue;
        }
        __builtin_prefetch(cpu->at + PREFETCH_BYTES);
        uint32_t word = get_word(layout, cpu->at), kind, delta, n_bytes;
        kind = layout->is_big_endian ? word >> DELTA_BITS : word & 31;
        delta = layout->is_big_endian ? word & ((1u << DELTA_BITS) - 1) : word >> 5;
        if (kind == ENTRY_PADDING && delta == 0) {
            cpu->at = cpu->end;
            continue;
        }
        if (__builtin_expect(kind >= 1 && kind < ENTRY_PADDING, 1)) {
            n_bytes = 4 * kind;
            cpu->at += 4;
            cpu->time += delta;
            if (n_bytes > (size_t)(cpu->end - cpu->at))
                return fail_at(loader, cpu->at - 4, "an event ends behind its page");
        } else if (!take_entry(loader, cpu, kind, delta, &n_bytes)) {
            return false;
        }
        cpu->payload = cpu->at;
        cpu->n_payload = n_bytes;
        cpu->at += (n_bytes + 3) / 4 * 4;
        if (kind < ENTRY_PADDING) {
            cpu->next_ns = cpu->t_ns = time_of(loader->dat, cpu->time);
            if (__builtin_expect(cpu->has_lost, 0))
                cpu->next_ns = lost_time(cpu);
            return true;
        }
    }
}

/* --- merging --- */

static inline bool comes_before(const struct cpu_reader *a, const struct cpu_reader *b)
{
    return a->next_ns != b->next_ns ? a->next_ns < b->next_ns : a->cpu < b->cpu;
}

/* Brings the CPU at index i down to its place. */
static inline void sift_down(struct loader *loader, size_t i)
{
    uint32_t moved = loader->heap[i];
    for (size_t child; (child = 2 * i + 1) < loader->n_heap; i = child) {
        child += child + 1 < loader->n_heap &&
                 comes_before(&loader->cpus[loader->heap[child + 1]], &loader->cpus[loader->heap[child]]);
        if (!comes_before(&loader->cpus[loader->heap[child]], &loader->cpus[moved]))
            break;
        loader->heap[i] = loader->heap[child];
    }
    loader->heap[i] = moved;
}

/* Adds the event that a CPU has found, or first that others were lost before it. */
static inline bool put_event(struct loader *loader, struct stream *stream, struct cpu_reader *cpu)
{
    const struct page_layout *layout = &loader->layout;
    if (cpu->n_payload < layout->type_offset + 2 || cpu->n_payload < layout->task_offset + 4)
        return fail_at(loader, cpu->payload, "an event is too short for its type and task");
    struct stream_event event = {.t_ns = cpu->next_ns,
                                 .task = (int32_t)get_word(layout, cpu->payload + layout->task_offset),
                                 .cpu = cpu->cpu,
                                 .visible = STREAM_VISIBLE_ALL};
    if (__builtin_expect(cpu->has_lost, 0)) {
        event.record = cpu->lost;
        event.id = STREAM_ID_LOST;
        cpu->has_lost = false;
        cpu->lost = 0;
        cpu->next_ns = cpu->t_ns;
        return stream_emit(stream, &event);
    }
    cpu->last_ns = cpu->t_ns;
    event.record = (uint64_t)(cpu->payload - loader->dat->data);
    event.id = get_half(layout, cpu->payload + layout->type_offset);
    event.n_bytes = cpu->n_payload;
    stream_names_event(loader->names, &event);
    return stream_emit(stream, &event);
}

/* Tells how much of all pages has been passed. */
static void tell(const struct loader *loader, const struct stream *stream)
{
    uint64_t n_left = 0, n_all = 0;
    for (size_t i = 0; i < loader->dat->n_cpu_data; i++) {
        n_left += loader->cpus[i].n_bytes_left;
        n_all += loader->dat->cpus[i].n_bytes;
    }
    stream_tell(stream->path, "reading", n_all - n_left, n_all);
}

static int merge_cpus(struct loader *loader, struct stream *stream)
{
    enum { TELL_EVENTS = 1 << 17 };
    for (size_t i = loader->n_heap / 2; i-- > 0;)
        sift_down(loader, i);
    while (loader->n_heap && loader->code == 0) {
        struct cpu_reader *cpu = &loader->cpus[loader->heap[0]];
        bool is_lost = cpu->has_lost;
        if (!put_event(loader, stream, cpu))
            return loader->code ? loader->code : error_memory(loader->dat->err);
        stream_pass(stream, stream->n_events);
        if (stream->n_events % TELL_EVENTS == 0)
            tell(loader, stream);
        if (!is_lost && (!next_event(loader, cpu) || cpu->payload == cpu->stop))
            loader->heap[0] = loader->heap[--loader->n_heap];
        if (loader->n_heap)
            sift_down(loader, 0);
    }
    return loader->code;
}

/* --- a recording --- */

/* The number that follows key in the line of a field. */
static bool line_number(const char *line, const char *key, uint32_t *value)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, key);
    if (!at || (end && at > end))
        return false;
    *value = (uint32_t)strtoul(at + strlen(key), NULL, 10);
    return true;
}

/* The layout of pages as the kernel describes it; without a description, as kernels have had it since 2.6.30. */
static void read_page_layout(const struct trace_dat *dat, struct page_layout *layout)
{
    const struct formats_text *text = &dat->formats.header_page;
    char *copy = strndup(text->n_bytes ? text->bytes : "", text->n_bytes);
    const char *length = copy ? strstr(copy, " commit;") : NULL, *data = copy ? strstr(copy, " data;") : NULL;
    layout->length_offset = 8;
    layout->length_bytes = dat->long_bytes;
    if (length) {
        (void)line_number(length, "offset:", &layout->length_offset);
        (void)line_number(length, "size:", &layout->length_bytes);
    }
    layout->data_offset = layout->length_offset + layout->length_bytes;
    if (data)
        (void)line_number(data, "offset:", &layout->data_offset);
    free(copy);
}

/* Where the type and the task of an event are: the same place in all formats of a kernel. */
static int read_common(const struct stream *stream, struct page_layout *layout, struct error *err)
{
    const struct stream_type *type = stream->n_types ? &stream->types[0] : NULL;
    const struct stream_field *id = type ? stream_field_of(type, "common_type") : NULL;
    const struct stream_field *task = type ? stream_field_of(type, "common_pid") : NULL;
    layout->type_offset = id ? id->offset : 0;
    layout->task_offset = task ? task->offset : 4;
    if ((id && (id->n_bytes != 2 || id->offset > UINT16_MAX)) ||
        (task && (task->n_bytes != 4 || task->offset > UINT16_MAX)))
        return error_set(err, ERR_FORMAT, "%.600s: its formats have no type of 2 and no task of 4 bytes", stream->path);
    return 0;
}

static int check_layout(const struct trace_dat *dat, const struct page_layout *layout)
{
    if ((layout->length_bytes != 4 && layout->length_bytes != 8) || layout->length_offset > 64 ||
        layout->data_offset > 128 || layout->data_offset < layout->length_offset + layout->length_bytes ||
        layout->data_offset >= layout->page_bytes || layout->length_offset < 8)
        return error_set(dat->err, ERR_FORMAT, "%.600s: its header_page describes impossible pages", dat->path);
    return 0;
}

/* Tasks from lines "PID COMM". */
static int read_tasks(struct stream *stream, const struct formats_text *text, struct error *err)
{
    const char *end = text->n_bytes ? text->bytes + text->n_bytes : text->bytes;
    for (const char *line = text->bytes, *next; line < end; line = next) {
        char copy[80], *name;
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        size_t n = (size_t)(next - line) - (next[-1] == '\n');
        n = n < sizeof copy - 1 ? n : sizeof copy - 1;
        memcpy(copy, line, n);
        copy[n] = 0;
        long task = strtol(copy, &name, 10);
        if (name == copy || *name != ' ' || task < 0 || task > INT32_MAX)
            continue;
        if (!stream_add_task(stream, (int32_t)task, STREAM_NO_TASK, name + 1))
            return error_memory(err);
    }
    return 0;
}

/* The clock in use stands in brackets: "local [mono] global". */
static bool set_clock(struct stream *stream, const struct trace_dat *dat)
{
    const char *open = dat->clock ? strchr(dat->clock, '[') : NULL, *close = open ? strchr(open, ']') : NULL;
    const char *name = close ? open + 1 : dat->clock;
    size_t n = close ? (size_t)(close - name) : name ? strlen(name) : 0;
    if (n && !(stream->clock_text = strndup(name, n)))
        return false;
    stream->clock = n ? stream_clock_of(stream->clock_text) : STREAM_CLOCK_LOCAL;
    if (dat->has_date)
        stream->clock = STREAM_CLOCK_WALL;
    stream->has_wall = dat->has_date;
    return true;
}

/* "Linux HOST 6.1.0 ... x86_64": the second word is the host. */
static bool set_host(struct stream *stream, const struct trace_dat *dat)
{
    const char *host = dat->uname ? strchr(dat->uname, ' ') : NULL;
    if (dat->uname && !(stream->system = strdup(dat->uname)))
        return false;
    return !host || (stream->host = strndup(host + 1, strcspn(host + 1, " ")));
}

static int set_up_stream(struct stream *stream, const struct trace_dat *dat, struct error *err)
{
    stream->is_swapped = dat->is_swapped;
    stream->bytes = dat->data;
    stream->n_bytes = dat->n_data;
    stream->is_mapped = !dat->pages;
    stream->trace_id = dat->trace_id;
    stream->n_cpus = dat->formats.n_cpus;
    for (size_t i = 0; i < dat->n_cpu_data; i++)
        if (dat->cpus[i].cpu >= stream->n_cpus)
            stream->n_cpus = dat->cpus[i].cpu + 1;
    static const char shifted[] = "TIME_SHIFT is not applied: times are the guest's own";
    bool ok = set_clock(stream, dat) && set_host(stream, dat);
    ok = ok && (!dat->has_time_shift || (stream->note = strdup(shifted)));
    int code = ok ? 0 : error_memory(err);
    return code ? code : read_tasks(stream, &dat->formats.tasks, err);
}

/* Makes ready for decoding; loader_fini frees what it has.  err: ERR_FORMAT, ERR_MEMORY */
static int loader_init(struct loader *loader, const struct stream *stream, struct trace_dat *dat, struct error *err)
{
    *loader = (struct loader){.dat = dat};
    loader->layout = (struct page_layout){
        .page_bytes = dat->page_bytes, .is_swapped = dat->is_swapped, .is_big_endian = dat->is_big_endian};
    read_page_layout(dat, &loader->layout);
    int code = check_layout(dat, &loader->layout);
    if (code == 0)
        code = read_common(stream, &loader->layout, err);
    loader->cpus = calloc(dat->n_cpu_data + 1, sizeof *loader->cpus);
    loader->heap = calloc(dat->n_cpu_data + 1, sizeof *loader->heap);
    return code == 0 && (!loader->cpus || !loader->heap) ? error_memory(err) : code;
}

static void loader_fini(struct loader *loader)
{
    free(loader->cpus);
    free(loader->heap);
}

/* Lets the CPU of pages [i] go on behind so many bytes of them. */
static void set_pages(struct loader *loader, size_t i, uint64_t n_passed)
{
    const struct trace_dat_cpu *pages = &loader->dat->cpus[i];
    loader->cpus[i] = (struct cpu_reader){.cpu = (uint16_t)pages->cpu,
                                          .last_ns = INT64_MIN,
                                          .page = loader->dat->data + pages->offset + n_passed,
                                          .n_bytes_left = pages->n_bytes - n_passed};
}

static int load_events(struct stream *stream, struct trace_dat *dat, struct error *err)
{
    struct loader loader;
    uint64_t n_bytes = 0;
    int code = loader_init(&loader, stream, dat, err);
    for (size_t i = 0; i < dat->n_cpu_data && code == 0; i++) {
        set_pages(&loader, i, 0);
        n_bytes += dat->cpus[i].n_bytes;
        if (next_event(&loader, &loader.cpus[i]))
            loader.heap[loader.n_heap++] = (uint32_t)i;
        code = loader.code;
    }
    if (code == 0) {
        if (!stream->passing)
            stream_expect_events(stream, n_bytes / EVENT_BYTES_LIKELY);
        loader.names = stream_names_gather(stream);
        code = merge_cpus(&loader, stream);
        stream_names_gathered(loader.names);
    }
    loader_fini(&loader);
    return code;
}

/* Brings the CPU of pages [i] to a place; false, with loader->code, when there is no such event. */
static bool go_to(struct loader *loader, size_t i, const struct stream_place *from)
{
    const struct trace_dat_cpu *pages = &loader->dat->cpus[i];
    struct cpu_reader *cpu = &loader->cpus[i];
    if (from->record < pages->offset || from->record - pages->offset >= pages->n_bytes)
        return fail_at(loader, loader->dat->data, "an event is not where it was");
    const unsigned char *record = loader->dat->data + from->record;
    set_pages(loader, i, (from->record - pages->offset) / loader->layout.page_bytes * loader->layout.page_bytes);
    while (next_event(loader, cpu) && cpu->payload < record) /* the page has it, unless it is another one */
        ;
    if (loader->code == 0 && cpu->payload != record)
        (void)fail_at(loader, record, "there is no event any more");
    cpu->last_ns = from->last_ns;
    cpu->lost = from->lost;
    cpu->has_lost = from->has_lost;
    cpu->next_ns = cpu->has_lost ? lost_time(cpu) : cpu->t_ns;
    return loader->code == 0;
}

static int read_trace_dat_part(struct stream *stream, const struct stream_place *from, const struct stream_place *to,
                               size_t n_cpus, struct stream *read, struct error *err)
{
    struct trace_dat *dat = stream->reader_data;
    struct loader loader;
    dat->err = err;
    int code = loader_init(&loader, stream, dat, err);
    for (size_t i = 0; i < dat->n_cpu_data && code == 0; i++) {
        uint32_t number = dat->cpus[i].cpu;
        if (number >= n_cpus || from[number].record == to[number].record)
            continue;
        bool has_end = to[number].record != UINT64_MAX;
        if (has_end && to[number].record >= dat->n_data)
            (void)fail_at(&loader, dat->data, "an event is not where it was");
        else if (go_to(&loader, i, &from[number]))
            loader.heap[loader.n_heap++] = (uint32_t)i;
        code = loader.code;
        loader.cpus[i].stop = has_end && code == 0 ? dat->data + to[number].record : NULL;
    }
    code = code ? code : merge_cpus(&loader, read);
    loader_fini(&loader);
    dat->err = NULL;
    return code;
}

/* How much of scheduling the recorded events tell. */
static enum stream_tier tier_of(const struct stream *stream)
{
    bool has_switch = false, has_waking = false;
    for (size_t i = 0; i < stream->n_types; i++) {
        has_switch |= strcmp(stream->types[i].name, "sched/sched_switch") == 0;
        has_waking |= strcmp(stream->types[i].name, "sched/sched_waking") == 0 ||
                      strcmp(stream->types[i].name, "sched/sched_wakeup") == 0;
    }
    return !has_switch ? STREAM_TIER_NONE : has_waking ? STREAM_TIER_FULL : STREAM_TIER_SWITCHES;
}

static bool fits_trace_dat(const struct stream_input *input)
{
    static const char magic[] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
    return !input->is_directory && input->n_head >= sizeof magic && memcmp(input->head, magic, sizeof magic) == 0;
}

static int read_trace_dat(const struct stream_input *input, const struct stream_options *options, struct stream *stream,
                          struct error *err)
{
    struct stream_formats *formats;
    struct trace_dat *dat = calloc(1, sizeof *dat);
    if (!dat)
        return error_memory(err);
    stream->reader_data = dat;
    int code = trace_dat_open(input->path, dat, err);
    if (code == 0)
        code = trace_dat_choose(dat, options->buffer, err);
    if (code == 0)
        code = formats_open(&dat->formats, &formats, err);
    if (code == 0)
        code = stream_take_formats(stream, formats, err);
    if (code == 0)
        code = set_up_stream(stream, dat, err);
    stream->tier = tier_of(stream);
    if (code == 0 && !stream->part)
        code = load_events(stream, dat, err);
    dat->err = NULL;
    return code;
}

static void close_trace_dat(struct stream *stream)
{
    if (stream->reader_data)
        trace_dat_close(stream->reader_data);
    free(stream->reader_data);
}

const struct stream_reader stream_reader_trace_dat = {.name = "trace.dat",
                                                      .fits = fits_trace_dat,
                                                      .read = read_trace_dat,
                                                      .hands_over = true,
                                                      .close = close_trace_dat,
                                                      .read_part = read_trace_dat_part};
