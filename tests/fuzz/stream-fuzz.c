/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for recordings of trace-cmd and perf, for scheduler records, for topologies as XML (inputs
 * that begin with <) and for sessions (with {): no input may crash or leak the reader or what is made of its events;
 * times are in order, CPUs have rows, twins have origins, and what is refused is refused with a message. Of trace.dat
 * the levels are kept, damaged with sums that fit, and looked at. In the place of libtraceevent, which works in another
 * process, stands one table of types. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "streams/couplebreak.h"
#include "streams/stream.h"
#include "streams/formats.h"
#include "streams/levels.h"
#include "streams/parts.h"
#include "streams/schedule.h"
#include "streams/recordings.h"
#include "streams/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

/* --- instead of libtraceevent --- */

struct stream_formats {
    struct stream_type *types;
};

enum { N_TYPES = 3 };

int formats_open(const struct formats_input *input, struct stream_formats **formats, struct error *err)
{
    static const struct {
        const char *name, *fields[3];
        uint32_t offsets[3];
    } rows[N_TYPES] = {{"sched/sched_switch", {"prev_pid", "prev_comm", "next_pid"}, {24, 8, 56}},
                       {"sched/sched_waking", {"pid", "comm", "target_cpu"}, {24, 8, 32}},
                       {"sched/sched_migrate_task", {"pid", "comm", "dest_cpu"}, {24, 8, 36}}};
    size_t n_bytes = input->tasks.n_bytes + input->kernel_symbols.n_bytes + input->printk.n_bytes;
    uint64_t sum = n_bytes;
    for (size_t i = 0; i < input->n_events; i++)
        for (size_t k = 0; k < input->events[i].text.n_bytes; k++)
            sum += (unsigned char)input->events[i].text.bytes[k];
    if (sum == 0)
        return error_set(err, ERR_FORMAT, "no formats");
    struct stream_formats *made = calloc(1, sizeof *made);
    made->types = calloc(N_TYPES, sizeof *made->types);
    for (int32_t i = 0; i < N_TYPES; i++) {
        made->types[i] = (struct stream_type){.id = 300 + 3 * i, .name = strdup(rows[i].name)};
        for (int k = 0; k < 3; k++) {
            struct stream_field field = {
                .name = (char *)rows[i].fields[k], .type = "int", .offset = rows[i].offsets[k]};
            field.n_bytes = k == 1 ? 16 : 4;
            field.flags = k == 1 ? STREAM_FIELD_TEXT | STREAM_FIELD_ARRAY : STREAM_FIELD_SIGNED;
            check(stream_add_field(&made->types[i], &field), "out of memory");
        }
    }
    *formats = made;
    return 0;
}

void formats_close(struct stream_formats *formats)
{
    free(formats);
}

struct stream_type *formats_take_types(struct stream_formats *formats, size_t *n)
{
    struct stream_type *types = formats->types;
    *n = N_TYPES;
    return types;
}

/* Reads what it would print. */
int formats_print(struct stream_formats *formats, const struct formats_record *records, size_t n, struct buf *out,
                  struct error *err)
{
    (void)formats;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        unsigned sum = 0;
        for (size_t k = 0; k < records[i].n_bytes; k++)
            sum += records[i].bytes[k];
        buf_printf(out, "%u%c%zu%c", sum, 0, records[i].n_bytes, 0);
    }
    return 0;
}

int formats_set_condition(struct stream_formats *formats, const char *condition, struct error *err)
{
    (void)formats;
    return error_set(err, ERR_USAGE, "%s", condition);
}

int formats_match(struct stream_formats *formats, const struct formats_record *records, size_t n, bool *is_hidden,
                  struct error *err)
{
    (void)formats;
    (void)records;
    (void)n;
    (void)is_hidden;
    return error_set(err, ERR_USAGE, "no condition");
}

/* --- the target --- */

static void check_event(struct stream *stream, size_t i, struct buf *out)
{
    const struct stream_event *event = &stream->events[i], *origin = couplebreak_origin(stream, event);
    const struct stream_type *type = stream_fields_of(stream, event);
    struct error err = {0};
    int32_t task;
    check(i == 0 || event[-1].t_ns <= event->t_ns, "times are not in order");
    check(event->cpu < stream->n_cpus || event->cpu == STREAM_NO_CPU, "a CPU has no row");
    check(!origin || origin == event - 1, "a twin is not behind its origin");
    check(couplebreak_is_twin(event->id) == (origin != NULL), "a twin has no origin");
    (void)couplebreak_switch_in(stream, event, &task);
    (void)couplebreak_task(stream, event);
    out->len_bytes = 0;
    check(stream_put_line(stream, 0, event, out, &err) == 0, "an event has no line");
    for (size_t k = 0; type && k < type->n_fields; k++)
        stream_put_field(stream, event, &type->fields[k], out);
}

/* What tasks did, and what CPUs did, fits into the time of the stream. */
static void check_schedule(const struct stream *stream)
{
    struct schedule sched = {0};
    struct error err = {0};
    check(schedule_analyse(stream, NULL, NULL, &sched, &err) == 0, "a stream cannot be followed");
    for (size_t i = 0; i < sched.n_tasks; i++)
        for (int k = 0; k < SCHEDULE_N_STATES; k++)
            check(sched.tasks[i].ns[k] >= 0, "a task has less than no time");
    schedule_close(&sched);
}

/* CPUs are in nodes, cores and packages that there are. */
static void try_topology(const char *path)
{
    struct topology topology = {0};
    struct brief_topology brief = {0};
    struct error err = {0};
    int code = topology_read(path, &topology, &err);
    check(code == 0 || err.text[0] != '\0', "a refusal has no message");
    for (uint32_t i = 0; code == 0 && i < topology.n_cpus; i++)
        check((topology.cpus[i].node == TOPOLOGY_UNKNOWN || topology.cpus[i].node < topology.n_nodes) &&
                  (uint64_t)topology.cpus[i].first_local + topology.cpus[i].n_local <= topology.n_locals &&
                  topology.cpus[i].os < TOPOLOGY_CPUS_MAX,
              "a CPU lies nowhere");
    if (code == 0)
        (void)brief_topology_make(&topology, &brief, &err);
    brief_topology_fini(&brief);
    topology_fini(&topology);
}

static void try_session(const char *path)
{
    struct recordings session = {0};
    struct error err = {0};
    check(recordings_read(path, &session, &err) == 0 || err.text[0] != '\0', "a refusal has no message");
    for (size_t i = 0; i < session.n_streams; i++)
        check(session.streams[i].file != NULL, "a stream of a session has no file");
    struct buf out = {0};
    (void)recordings_put(&session, &out, &err);
    buf_fini(&out);
    recordings_fini(&session);
}

/* --- files of levels --- */

/* Places in the file: in its header, in the index at its end, and in what that says of a place. */
enum { AT_HEADER_BYTES = 12, AT_SUM = 48, AT_OWN_SUM = 56, AT_CPUS = 40, AT_N_PLACES = 64, INDEX_HEAD = 112 };
enum { PLACE_BYTES = 80, PLACE_TASKS = 24, PLACE_CPUS = 40, PLACE_AT = 64, PLACE_SUM = 72 };

static uint64_t word_at(const unsigned char *bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

static void put_word_at(unsigned char *bytes, size_t at, uint64_t word)
{
    memcpy(bytes + at, &word, sizeof word);
}

/* Makes the sums of blocks and core fit, as far as these lie in the index. */
static void sum_index(unsigned char *index, size_t n)
{
    uint64_t n_core = word_at(index, 0), n_places = word_at(index, AT_N_PLACES), n_cpus = word_at(index, AT_CPUS);
    if (n_core > n || n_core % 8 || n_places > n / PLACE_BYTES || INDEX_HEAD + n_places * PLACE_BYTES > n_core ||
        n_cpus > UINT16_MAX)
        return;
    for (size_t i = 0; i < n_places; i++) {
        size_t place = INDEX_HEAD + i * PLACE_BYTES;
        uint64_t n_tasks = word_at(index, place + PLACE_TASKS), n_on = word_at(index, place + PLACE_CPUS);
        uint64_t at = word_at(index, place + PLACE_AT);
        uint64_t n_block = n_cpus * sizeof(struct stream_place) + n_tasks * sizeof(struct schedule_task_stand) +
                           n_on * sizeof(struct schedule_cpu_stand);
        if (n_tasks < n && n_on < n && at < n - n_core && n_block <= n - n_core - at)
            put_word_at(index, place + PLACE_SUM, levels_sum(index + n_core + at, n_block));
    }
    put_word_at(index, 8, 0);
    put_word_at(index, 8, levels_sum(index, n_core));
}

/* Changes some words of a file of levels, by chance, and makes its sums fit. */
static void damage(unsigned char *bytes, size_t n, uint64_t random)
{
    uint32_t n_header;
    memcpy(&n_header, bytes + AT_HEADER_BYTES, sizeof n_header);
    size_t at_index = n - word_at(bytes, n_header - 8);
    for (unsigned i = 0; i < 1 + (random >> 60); i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t at = (random >> 33) % (random >> 7 & 1 ? n_header : n) / 8 * 8;
        uint64_t word =
            random >> 8 & 1 ? random >> (random >> 9 & 63) : word_at(bytes, at) ^ UINT64_C(1) << (random >> 9 & 63);
        if (at != AT_HEADER_BYTES / 8 * 8 && at != n_header - 8)
            put_word_at(bytes, at, word);
    }
    sum_index(bytes + at_index, n - at_index);
    put_word_at(bytes, AT_SUM, 0);
    put_word_at(bytes, AT_OWN_SUM, 0);
    put_word_at(bytes, AT_OWN_SUM, levels_sum(bytes, n_header));
    put_word_at(bytes, AT_SUM, levels_sum(bytes, n));
}

static void take_cell(void *context, const struct level_cell *cell)
{
    *(size_t *)context += cell->n;
}

/* Looks at all that a file of levels says. */
static void try_file(const char *path, const struct levels_key *key, const char *kept)
{
    struct levels levels = {0};
    struct stream *shell = NULL, *part = NULL;
    struct error err = {0};
    struct schedule sched = {0};
    uint64_t n_events;
    size_t n = 0;
    if (levels_map(path, key, kept, &levels, &shell, &n_events)) {
        const int64_t middle_ns = levels.begin_ns + (levels.end_ns - levels.begin_ns) / 2;
        const int64_t edges[] = {levels.begin_ns, middle_ns, levels.end_ns};
        const struct level_picture picture = {.edges = edges, .width = 2, .cell = take_cell, .context = &n};
        for (size_t row = 0; row < levels.n_rows; row++)
            levels_draw(&levels, row, &picture);
        levels_fini(&levels);
        stream_close(shell);
    }
    struct parts_index *index = levels_read_index(key, kept);
    if (!index || stream_open_part(path, index, 1000, 2000, &part, &err) != 0)
        return;
    const struct schedule_window window = {1000, 2000};
    (void)schedule_analyse(part, &window, NULL, &sched, &err);
    schedule_close(&sched);
    for (size_t i = stream_at(part, 1000); i < part->n_events && part->events[i].t_ns <= 2000; i++)
        (void)stream_comm_at(part, part->events[i].task, part->events[i].t_ns);
    stream_close(part);
}

/* Levels that are made while a recording is read, if it can be read so, are those that were kept. */
static void try_passing(const char *path, const struct levels_key *key, const char *kept)
{
    struct levels levels = {0};
    struct stream *shell = NULL;
    struct error err = {0};
    struct stat info;
    uint64_t n_events;
    char name[80];
    (void)snprintf(name, sizeof name, "%s.passing", kept);
    if (levels_make_passing(path, key, name, 1, &levels, &shell, &n_events, &err) != 0)
        return;
    int fd = open(kept, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && fstat(fd, &info) == 0 && (size_t)info.st_size == levels.n_map, "levels of other sizes");
    void *bytes = mmap(NULL, levels.n_map, PROT_READ, MAP_PRIVATE, fd, 0);
    check(bytes != MAP_FAILED && memcmp(bytes, levels.map, levels.n_map) == 0, "levels differ");
    (void)munmap(bytes, levels.n_map);
    (void)close(fd);
    levels_fini(&levels);
    stream_close(shell);
    (void)unlink(name);
}

/* Keeps the levels of a recording, and looks at them when they are damaged as well. */
static void try_levels(const char *path, uint64_t random)
{
    struct stream *stream = NULL;
    struct levels levels = {0};
    struct error err = {0};
    const struct levels_key key = levels_key_of(path);
    char kept[64];
    struct stat info;
    (void)snprintf(kept, sizeof kept, "/tmp/fuzz-levels.%d", (int)getpid());
    if (stream_open(path, NULL, &stream, &err) != 0 || stream_follow_names(stream, &err) != 0 ||
        levels_make_kept(stream, &key, kept, &levels, &err) != 0) {
        stream_close(stream);
        return;
    }
    levels_fini(&levels);
    stream_close(stream);
    try_passing(path, &key, kept);
    try_file(path, &key, kept);
    int fd = open(kept, O_RDWR | O_CLOEXEC);
    check(fd >= 0 && fstat(fd, &info) == 0, "levels are not kept");
    unsigned char *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(bytes != MAP_FAILED, "levels cannot be mapped");
    damage(bytes, (size_t)info.st_size, random);
    (void)munmap(bytes, (size_t)info.st_size);
    (void)close(fd);
    try_file(path, &key, kept);
    (void)unlink(kept);
}

static void try_stream(const char *path)
{
    static const struct stream_options options = {.size = sizeof options, .couplebreak = true};
    struct stream *stream = NULL;
    struct error err = {0};
    struct buf out = {0};
    if (stream_open(path, &options, &stream, &err) != 0)
        check(err.text[0] != '\0', "a refusal has no message");
    for (size_t i = 0; stream && i < stream->n_events; i++)
        check_event(stream, i, &out);
    if (stream)
        check_schedule(stream);
    buf_fini(&out);
    stream_close(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (len_bytes && data[0] == '<')
        try_topology(path);
    else if (len_bytes && data[0] == '{')
        try_session(path);
    else
        try_stream(path);
    if (len_bytes > 8 && data[0] == 0x17)
        for (uint64_t i = 0; i < 4; i++)
            try_levels(path, (levels_sum(data, len_bytes) + i) * UINT64_C(0x9e3779b97f4a7c15));
    (void)close(fd);
    return 0;
}
