/* SPDX-License-Identifier: BSD-3-Clause */
/* The container of trace.dat: nothing in it is believed, every length is compared with what is there. */
#include "streams/trace-dat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/input.h"
#include "config.h"

#if HAVE_LIBZSTD
#include <zstd.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum {
    CPUS_MAX = 65535,
    SECTIONS_MAX = 4096,
    TEXT_BYTES_MAX = 1 << 30,
    CHUNK_BYTES_MAX = 256 << 20,
    RATIO_MAX = 30000
};

/* Ids of options; those of version 7 that name a section have the section's id. */
enum option {
    OPTION_DONE = 0,
    OPTION_DATE = 1,
    OPTION_BUFFER = 3,
    OPTION_CLOCK = 4,
    OPTION_UNAME = 5,
    OPTION_OFFSET = 7,
    OPTION_CPUS = 8,
    OPTION_TRACE_ID = 11,
    OPTION_TIME_SHIFT = 12,
    OPTION_COUNTS = 14,
    OPTION_HEADER = 16,
    OPTION_FTRACE = 17,
    OPTION_EVENTS = 18,
    OPTION_SYMBOLS = 19,
    OPTION_PRINTK = 20,
    OPTION_TASKS = 21
};

int trace_dat_fail(const struct trace_dat *dat, uint64_t offset, const char *text)
{
    return error_set(dat->err, ERR_FORMAT, "%.600s: offset %" PRIu64 ": %s", dat->path, offset, text);
}

/* --- a cursor --- */

/* In the file, or in a section that was inflated; base: what offsets in messages count from. */
struct cursor {
    struct trace_dat *dat;
    const unsigned char *bytes;
    uint64_t n_bytes, at, base;
    int code; /* of the first failure; nothing moves after it */
};

static int cursor_fail(struct cursor *in, const char *text)
{
    if (in->code == 0)
        in->code = trace_dat_fail(in->dat, in->base + in->at, text);
    return in->code;
}

/* The next n_bytes, or NULL. */
static const unsigned char *take(struct cursor *in, uint64_t n_bytes, const char *what)
{
    char text[80];
    if (in->code == 0 && n_bytes > in->n_bytes - in->at) {
        (void)snprintf(text, sizeof text, "truncated in %s", what);
        (void)cursor_fail(in, text);
    }
    if (in->code != 0)
        return NULL;
    in->at += n_bytes;
    return in->bytes + in->at - n_bytes;
}

static uint64_t take_number(struct cursor *in, unsigned n_bytes, const char *what)
{
    const unsigned char *at = take(in, n_bytes, what);
    uint64_t value = 0;
    for (unsigned i = 0; at && i < n_bytes; i++)
        value |= (uint64_t)at[in->dat->is_big_endian ? n_bytes - 1 - i : i] << 8 * i;
    return value;
}

/* The next text and its NUL; "" after a failure. */
static const char *take_string(struct cursor *in, const char *what)
{
    const char *text = in->code == 0 ? (const char *)in->bytes + in->at : "";
    size_t n = in->code == 0 ? strnlen(text, in->n_bytes - in->at) : 0;
    return take(in, n + 1, what) ? text : "";
}

/* Text of a length that n_length bytes tell. */
static struct formats_text take_text(struct cursor *in, unsigned n_length, const char *what)
{
    uint64_t n = take_number(in, n_length, what);
    if (n > TEXT_BYTES_MAX)
        n = UINT64_MAX;
    const unsigned char *at = take(in, n, what);
    return (struct formats_text){(const char *)at, at ? n : 0};
}

static void take_magic(struct cursor *in, const char *magic, size_t n, const char *what)
{
    char text[80];
    const unsigned char *at = take(in, n, what);
    if (at && memcmp(at, magic, n) != 0) {
        in->at -= n;
        (void)snprintf(text, sizeof text, "no %s here", what);
        (void)cursor_fail(in, text);
    }
}

/* --- what both versions have --- */

static void add_event(struct cursor *in, struct formats_text system, struct formats_text text)
{
    struct formats_input *formats = &in->dat->formats;
    if (in->code != 0)
        return;
    if (!vec_reserve(&formats->events, &formats->cap_events, formats->n_events + 1, sizeof *formats->events))
        in->code = error_memory(in->dat->err);
    else
        formats->events[formats->n_events++] = (struct formats_event){system, text};
}

static void read_header(struct cursor *in)
{
    take_magic(in, "header_page", sizeof "header_page", "header_page");
    in->dat->formats.header_page = take_text(in, 8, "header_page");
    take_magic(in, "header_event", sizeof "header_event", "header_event");
    (void)take_text(in, 8, "header_event");
}

static void read_ftrace(struct cursor *in)
{
    static const struct formats_text system = {"ftrace", sizeof "ftrace" - 1};
    for (uint64_t n = take_number(in, 4, "the number of formats of ftrace"); n > 0 && in->code == 0; n--)
        add_event(in, system, take_text(in, 8, "a format of ftrace"));
}

static void read_events(struct cursor *in)
{
    for (uint64_t n = take_number(in, 4, "the number of systems"); n > 0 && in->code == 0; n--) {
        const char *name = take_string(in, "the name of a system");
        struct formats_text system = {name, strlen(name)};
        for (uint64_t k = take_number(in, 4, "the number of events of a system"); k > 0 && in->code == 0; k--)
            add_event(in, system, take_text(in, 8, "a format of an event"));
    }
}

/* Sections that are one text: of option, whose length has so many bytes. */
static void read_text(struct cursor *in, enum option option)
{
    struct formats_input *formats = &in->dat->formats;
    if (option == OPTION_SYMBOLS)
        formats->kernel_symbols = take_text(in, 4, "the symbols of the kernel");
    else if (option == OPTION_PRINTK)
        formats->printk = take_text(in, 4, "the formats of trace_printk");
    else
        formats->tasks = take_text(in, 8, "the names of the tasks");
}

/* A text in an option: NUL-terminated there, or not at all. */
static const char *option_text(const unsigned char *bytes, size_t n)
{
    return memchr(bytes, 0, n) ? (const char *)bytes : NULL;
}

static void add_buffer(struct cursor *in, struct cursor *option)
{
    struct trace_dat *dat = in->dat;
    struct trace_dat_buffer buffer = {.option = option->bytes, .n_option = option->n_bytes};
    buffer.at = take_number(option, 8, "a buffer");
    buffer.name = take_string(option, "the name of a buffer");
    buffer.cpus_at = option->at;
    in->code = option->code;
    if (in->code == 0 && !vec_reserve(&dat->buffers, &dat->cap_buffers, dat->n_buffers + 1, sizeof *dat->buffers))
        in->code = error_memory(dat->err);
    if (in->code == 0)
        dat->buffers[dat->n_buffers++] = buffer;
}

/* An option that both versions have; others are no matter of this reader. */
static void read_option(struct cursor *in, unsigned id, const unsigned char *bytes, size_t n)
{
    struct trace_dat *dat = in->dat;
    struct cursor option = {dat, bytes, n, 0, in->base + in->at - n, 0};
    const char *text = option_text(bytes, n);
    switch (id) {
    case OPTION_DATE: /* microseconds */
        dat->has_date = text;
        dat->date_ns = text ? (int64_t)((uint64_t)strtoll(text, NULL, 0) * 1000) : 0;
        break;
    case OPTION_OFFSET:
        dat->offset_ns = text ? strtoll(text, NULL, 0) : 0;
        break;
    case OPTION_BUFFER:
        add_buffer(in, &option);
        break;
    case OPTION_CLOCK:
        dat->clock = text;
        break;
    case OPTION_UNAME:
        dat->uname = text;
        break;
    case OPTION_CPUS:
        dat->n_cpus = n >= 4 ? (uint32_t)take_number(&option, 4, "the number of CPUs") : 0;
        break;
    case OPTION_TRACE_ID:
        dat->trace_id = n >= 8 ? take_number(&option, 8, "the id of the trace") : 0;
        break;
    case OPTION_TIME_SHIFT:
        dat->has_time_shift = true;
        break;
    case OPTION_COUNTS:
        dat->mult = (uint32_t)take_number(&option, 4, "the factor of the clock");
        dat->shift = (uint32_t)take_number(&option, 4, "the factor of the clock");
        in->code = option.code;
        break;
    default:
        break;
    }
}

/* --- version 6 --- */

/* "options", when there are any, and then "flyrecord", behind which the table of CPUs lies. */
static void read_options_6(struct cursor *in)
{
    bool has_clock = false;
    const unsigned char *kind = take(in, 10, "the kind of data");
    if (kind && memcmp(kind, "options  ", 10) == 0) {
        for (unsigned id = 1; in->code == 0;) {
            id = (unsigned)take_number(in, 2, "an option");
            if (id == 0)
                break;
            uint64_t n = take_number(in, 4, "the length of an option");
            const unsigned char *bytes = take(in, n, "an option");
            has_clock |= id == OPTION_CLOCK;
            if (bytes)
                read_option(in, id, bytes, n);
        }
        kind = take(in, 10, "the kind of data");
    }
    if (kind && memcmp(kind, "latency  ", 10) == 0)
        in->code = error_set(in->dat->err, ERR_UNSUPPORTED, "%.600s: holds the text of a latency tracer, not events",
                             in->dat->path);
    else if (kind && memcmp(kind, "flyrecord", 10) != 0)
        (void)cursor_fail(in, "no kind of data that is known (flyrecord)");
    if (in->code == 0 && (!in->dat->n_buffers || *in->dat->buffers[0].name)) {
        static const struct trace_dat_buffer none;
        struct trace_dat *dat = in->dat;
        if (!vec_reserve(&dat->buffers, &dat->cap_buffers, dat->n_buffers + 1, sizeof *dat->buffers)) {
            in->code = error_memory(dat->err);
            return;
        }
        memmove(dat->buffers + 1, dat->buffers, dat->n_buffers++ * sizeof *dat->buffers);
        dat->buffers[0] = none;
        dat->buffers[0].name = "";
        dat->buffers[0].at = in->at;
    }
    uint64_t n_cpus = in->dat->formats.n_cpus;
    (void)take(in, n_cpus * 16, "the table of CPUs");
    if (has_clock && in->code == 0) {
        struct formats_text clock = take_text(in, 8, "the clock");
        if (clock.n_bytes && memchr(clock.bytes, 0, clock.n_bytes))
            in->dat->clock = clock.bytes;
    }
}

static void read_version_6(struct cursor *in)
{
    read_header(in);
    read_ftrace(in);
    read_events(in);
    read_text(in, OPTION_SYMBOLS);
    read_text(in, OPTION_PRINTK);
    read_text(in, OPTION_TASKS);
    uint64_t n_cpus = take_number(in, 4, "the number of CPUs");
    if (n_cpus > CPUS_MAX) {
        (void)cursor_fail(in, "more than 65535 CPUs");
        return;
    }
    in->dat->formats.n_cpus = (uint32_t)n_cpus;
    read_options_6(in);
}

static void choose_6(struct cursor *in, const struct trace_dat_buffer *buffer)
{
    struct trace_dat *dat = in->dat;
    in->at = buffer->at < in->n_bytes ? buffer->at : in->n_bytes;
    if (*buffer->name)
        take_magic(in, "flyrecord", 10, "table of a buffer");
    for (uint32_t cpu = 0; cpu < dat->formats.n_cpus && in->code == 0; cpu++) {
        uint64_t offset = take_number(in, 8, "the table of CPUs"), n = take_number(in, 8, "the table of CPUs");
        dat->cpus[dat->n_cpu_data++] = (struct trace_dat_cpu){cpu, offset, n};
    }
}

/* --- compression --- */

/* Inflates n_in bytes to exactly n_out; NULL, or what is wrong. */
static const char *inflate_bytes(const struct trace_dat *dat, const unsigned char *in, size_t n_in, unsigned char *out,
                                 size_t n_out)
{
#if HAVE_LIBZSTD
    if (strcmp(dat->compression, "zstd") == 0)
        return ZSTD_decompress(out, n_out, in, n_in) == n_out ? NULL : "damaged compressed bytes";
#endif
#if HAVE_ZLIB
    uLongf n_made = n_out;
    if (strcmp(dat->compression, "zlib") == 0)
        return uncompress(out, &n_made, in, n_in) == Z_OK && n_made == n_out ? NULL : "damaged compressed bytes";
#endif
    (void)dat;
    (void)in;
    (void)out;
    return n_in == n_out ? "compressed in a way that is not known here" : "compressed in a way that is not known";
}

static bool is_known_compression(const char *name)
{
    return (HAVE_LIBZSTD && strcmp(name, "zstd") == 0) || (HAVE_ZLIB && strcmp(name, "zlib") == 0);
}

/* The lengths before a piece that is compressed. */
static void take_lengths(struct cursor *in, uint64_t *n_in, uint64_t *n_out)
{
    *n_in = take_number(in, 4, "a compressed piece");
    *n_out = take_number(in, 4, "a compressed piece");
    if (in->code == 0 && (*n_out > CHUNK_BYTES_MAX || *n_out / RATIO_MAX > *n_in))
        (void)cursor_fail(in, "impossible length of a compressed piece");
}

/* --- version 7 --- */

/* The content of the section at an offset, as a cursor; of id, or it fails. */
static struct cursor open_section(struct trace_dat *dat, uint64_t offset, unsigned id)
{
    struct cursor in = {dat, dat->map, dat->n_map, offset < dat->n_map ? offset : dat->n_map, 0, 0};
    uint64_t found = take_number(&in, 2, "a section"), flags = take_number(&in, 2, "a section");
    (void)take_number(&in, 4, "a section");
    uint64_t n = take_number(&in, 8, "a section"), n_in, n_out;
    if (in.code == 0 && found != id)
        (void)cursor_fail(&in, "another section than the options say");
    const unsigned char *bytes = take(&in, n, "a section");
    struct cursor section = {dat, bytes, n, 0, in.at - n, in.code};
    if (in.code != 0 || !(flags & 1))
        return section;
    take_lengths(&section, &n_in, &n_out);
    bytes = take(&section, n_in, "a compressed section");
    char *made = bytes ? malloc(n_out + 1) : NULL;
    if (bytes && (!made || !vec_reserve(&dat->inflated, &dat->cap_inflated, dat->n_inflated + 1, sizeof made))) {
        free(made);
        section.code = error_memory(dat->err);
    }
    if (section.code != 0)
        return section;
    dat->inflated[dat->n_inflated++] = made;
    made[n_out] = 0;
    const char *wrong = inflate_bytes(dat, bytes, n_in, (unsigned char *)made, n_out);
    if (wrong)
        (void)cursor_fail(&section, wrong);
    return (struct cursor){dat, (unsigned char *)made, n_out, 0, section.base, section.code};
}

static int read_section(struct trace_dat *dat, uint64_t offset, unsigned id)
{
    struct cursor in = open_section(dat, offset, id);
    if (id == OPTION_HEADER)
        read_header(&in);
    else if (id == OPTION_FTRACE)
        read_ftrace(&in);
    else if (id == OPTION_EVENTS)
        read_events(&in);
    else
        read_text(&in, id);
    return in.code;
}

/* The options of one section; the offset of the next one, 0: none. */
static uint64_t read_options_7(struct trace_dat *dat, uint64_t offset, int *code)
{
    struct cursor in = open_section(dat, offset, OPTION_DONE);
    uint64_t next = 0;
    for (unsigned id = 1; id != OPTION_DONE && in.code == 0;) {
        id = (unsigned)take_number(&in, 2, "an option");
        uint64_t n = take_number(&in, 4, "the length of an option");
        const unsigned char *bytes = take(&in, n, "an option");
        struct cursor option = {dat, bytes, n, 0, in.base + in.at - n, in.code};
        if (in.code == 0 && id == OPTION_DONE)
            next = take_number(&option, 8, "the last option");
        else if (in.code == 0 && id >= OPTION_HEADER && id <= OPTION_TASKS)
            option.code = read_section(dat, take_number(&option, 8, "the place of a section"), id);
        else if (in.code == 0)
            read_option(&in, id, bytes, n);
        in.code = in.code ? in.code : option.code;
    }
    *code = in.code;
    return next;
}

static void read_version_7(struct cursor *in)
{
    struct trace_dat *dat = in->dat;
    const char *name = take_string(in, "the kind of compression");
    (void)take_string(in, "the version of the compression");
    uint64_t offset = take_number(in, 8, "the place of the options");
    unsigned n_sections = 0;
    (void)snprintf(dat->compression, sizeof dat->compression, "%s", name);
    if (in->code == 0 && strcmp(name, "none") != 0 && !is_known_compression(name))
        in->code = error_set(dat->err, ERR_UNSUPPORTED,
                             "%.600s: compressed by %.40s, which this build cannot read; "
                             "rewrite it with: trace-cmd convert --compression none",
                             dat->path, name);
    while (in->code == 0 && offset != 0) {
        offset = read_options_7(dat, offset, &in->code);
        if (++n_sections > SECTIONS_MAX)
            (void)cursor_fail(in, "sections of options without an end");
    }
    dat->formats.n_cpus = dat->n_cpus < CPUS_MAX ? dat->n_cpus : CPUS_MAX;
}

static void choose_7(struct trace_dat *dat, const struct trace_dat_buffer *buffer, int *code)
{
    struct cursor in = {dat, buffer->option, buffer->n_option, buffer->cpus_at, (uint64_t)(buffer->option - dat->map),
                        0};
    const char *clock = take_string(&in, "the clock of a buffer");
    uint64_t page_bytes = take_number(&in, 4, "the size of a page"), n = take_number(&in, 4, "the number of CPUs");
    if (in.code == 0 && n > CPUS_MAX)
        (void)cursor_fail(&in, "more than 65535 CPUs");
    for (uint64_t i = 0; i < n && in.code == 0; i++) {
        uint64_t cpu = take_number(&in, 4, "the table of CPUs"), offset = take_number(&in, 8, "the table of CPUs");
        uint64_t n_bytes = take_number(&in, 8, "the table of CPUs");
        if (cpu >= CPUS_MAX)
            (void)cursor_fail(&in, "a CPU above 65534");
        if (in.code == 0)
            dat->cpus[dat->n_cpu_data++] = (struct trace_dat_cpu){(uint32_t)cpu, offset, n_bytes};
    }
    if (*clock)
        dat->clock = clock;
    dat->page_bytes = (uint32_t)page_bytes;
    *code = in.code;
}

/* --- pages --- */

/* The length of a CPU's pages once they are inflated. */
static uint64_t inflated_bytes(struct cursor *in)
{
    uint64_t n_all = 0, n_in, n_out;
    for (uint64_t n = take_number(in, 4, "the number of compressed pieces"); n > 0 && in->code == 0; n--) {
        take_lengths(in, &n_in, &n_out);
        (void)take(in, n_in, "a compressed piece");
        n_all += in->code == 0 ? n_out : 0;
    }
    return n_all;
}

static void inflate_cpu(struct cursor *in, unsigned char *to)
{
    uint64_t n_in, n_out;
    for (uint64_t n = take_number(in, 4, "the number of compressed pieces"); n > 0 && in->code == 0; n--) {
        take_lengths(in, &n_in, &n_out);
        const unsigned char *bytes = take(in, n_in, "a compressed piece");
        const char *wrong = bytes ? inflate_bytes(in->dat, bytes, n_in, to, n_out) : NULL;
        if (wrong)
            (void)cursor_fail(in, wrong);
        to += n_out;
    }
}

/* Where the compressed pieces of a CPU are. The length in the table leaves out their number, which comes first. */
static struct cursor cpu_cursor(struct trace_dat *dat, const struct trace_dat_cpu *cpu)
{
    enum { NUMBER_BYTES = 4 };
    uint64_t n_left = dat->n_map - cpu->offset, n = cpu->n_bytes + NUMBER_BYTES;
    struct cursor in = {dat, dat->map + cpu->offset, n < n_left ? n : n_left, 0, cpu->offset, 0};
    return in;
}

/* Pages that are compressed: all of them into memory, which then is what offsets count from. */
static int inflate_pages(struct trace_dat *dat)
{
    uint64_t n_all = 0;
    int code = 0;
    for (size_t i = 0; i < dat->n_cpu_data && code == 0; i++) {
        struct cursor in = cpu_cursor(dat, &dat->cpus[i]);
        n_all += dat->cpus[i].n_bytes ? inflated_bytes(&in) : 0;
        code = in.code;
    }
    if (code != 0 || n_all == 0)
        return code;
    dat->pages = mmap(NULL, n_all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (dat->pages == MAP_FAILED) {
        dat->pages = NULL;
        return error_memory(dat->err);
    }
    dat->data = dat->pages;
    dat->n_data = n_all;
    for (size_t i = 0, at = 0; i < dat->n_cpu_data && code == 0; i++) {
        struct trace_dat_cpu *cpu = &dat->cpus[i];
        struct cursor in = cpu_cursor(dat, cpu), again = in;
        uint64_t n = cpu->n_bytes ? inflated_bytes(&in) : 0;
        if (cpu->n_bytes)
            inflate_cpu(&again, dat->pages + at);
        code = again.code;
        *cpu = (struct trace_dat_cpu){cpu->cpu, at, n};
        at += n;
    }
    return code;
}

static int check_cpus(struct trace_dat *dat)
{
    uint64_t page = dat->page_bytes;
    if (page < 64 || page > (1 << 26) || (page & (page - 1)))
        return error_set(dat->err, ERR_FORMAT, "%.600s: %" PRIu64 " bytes are no size of a page", dat->path, page);
    for (size_t i = 0; i < dat->n_cpu_data; i++) {
        struct trace_dat_cpu *cpu = &dat->cpus[i];
        if (cpu->n_bytes == 0)
            cpu->offset = 0;
        if (cpu->offset > dat->n_map || cpu->n_bytes > dat->n_map - cpu->offset)
            return trace_dat_fail(dat, dat->n_map, "truncated in the pages of a CPU");
    }
    return 0;
}

static int not_found(const struct trace_dat *dat, const char *name)
{
    struct buf names = {0};
    for (size_t i = 0; i < dat->n_buffers; i++)
        if (*dat->buffers[i].name) {
            buf_printf(&names, "%s", names.len_bytes ? ", " : "");
            printable_put(&names, dat->buffers[i].name);
        }
    int code = error_set(dat->err, ERR_NOT_FOUND, "%.300s: has no buffer %.100s; it has: %.300s", dat->path,
                         *name ? name : "at the top", names.len_bytes ? names.data : "none with a name");
    buf_fini(&names);
    return code;
}

int trace_dat_choose(struct trace_dat *dat, const char *name, struct error *err)
{
    size_t i = 0;
    dat->err = err;
    name = name ? name : "";
    while (i < dat->n_buffers && strcmp(dat->buffers[i].name, name) != 0)
        i++;
    if (i == dat->n_buffers)
        return not_found(dat, name);
    struct cursor in = {dat, dat->map, dat->n_map, 0, 0, 0};
    dat->cpus = calloc(CPUS_MAX + 1, sizeof *dat->cpus);
    if (!dat->cpus)
        return error_memory(err);
    dat->data = dat->map;
    dat->n_data = dat->n_map;
    if (dat->version == 6)
        choose_6(&in, &dat->buffers[i]);
    else
        choose_7(dat, &dat->buffers[i], &in.code);
    int code = in.code ? in.code : check_cpus(dat);
    return code == 0 && dat->version == 7 && strcmp(dat->compression, "none") != 0 ? inflate_pages(dat) : code;
}

/* --- all of it --- */

static int map_file(const char *path, struct trace_dat *dat)
{
    struct stat info;
    int fd = input_open(AT_FDCWD, path, 0, &info), code = 0;
    if (fd < 0)
        return error_set(dat->err, ERR_IO, "%.600s: cannot open: %s", path, input_reason(errno));
    dat->n_map = (uint64_t)info.st_size;
    if (dat->n_map)
        dat->map = mmap(NULL, dat->n_map, PROT_READ, MAP_PRIVATE, fd, 0);
    if (dat->map == MAP_FAILED) {
        dat->map = NULL;
        code = error_set(dat->err, ERR_IO, "%.600s: cannot map: %s", path, strerror(errno));
    }
    (void)close(fd);
    return code;
}

int trace_dat_open(const char *path, struct trace_dat *dat, struct error *err)
{
    static const char magic[] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
    *dat = (struct trace_dat){.path = path, .err = err};
    int code = map_file(path, dat);
    if (code != 0)
        return code;
    struct cursor in = {dat, dat->map, dat->n_map, 0, 0, 0};
    take_magic(&in, magic, sizeof magic, "trace.dat");
    const char *version = take_string(&in, "the version");
    if (in.code == 0 && strcmp(version, "6") != 0 && strcmp(version, "7") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "%.600s: version %.20s of trace.dat cannot be read; versions 6 and 7 can", path, version);
    dat->version = *version == '7' ? 7 : 6;
    dat->is_big_endian = take_number(&in, 1, "the byte order") == 1;
    dat->is_swapped = dat->is_big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    dat->long_bytes = (uint8_t)take_number(&in, 1, "the size of a word");
    dat->page_bytes = (uint32_t)take_number(&in, 4, "the size of a page");
    if (in.code == 0 && dat->long_bytes != 4 && dat->long_bytes != 8)
        (void)cursor_fail(&in, "a word has neither 4 nor 8 bytes");
    if (in.code == 0 && dat->version == 6)
        read_version_6(&in);
    else if (in.code == 0)
        read_version_7(&in);
    dat->formats.path = path;
    dat->formats.is_big_endian = dat->is_big_endian;
    dat->formats.long_bytes = dat->long_bytes;
    dat->formats.page_bytes = dat->page_bytes;
    return in.code;
}

void trace_dat_close(struct trace_dat *dat)
{
    if (dat->map)
        (void)munmap(dat->map, dat->n_map);
    if (dat->pages)
        (void)munmap(dat->pages, dat->n_data);
    for (size_t i = 0; i < dat->n_inflated; i++)
        free(dat->inflated[i]);
    free(dat->inflated);
    free(dat->formats.events);
    free(dat->buffers);
    free(dat->cpus);
    *dat = (struct trace_dat){0};
}
