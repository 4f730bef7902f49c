/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of readers, and the choice among them: the content decides, never the name. Then what several of them
 * share. */
#include "streams/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "streams/parts.h"
#include "streams/schedule.h"

extern const struct stream_reader stream_reader_measurement, stream_reader_perf, stream_reader_sched,
    stream_reader_trace_dat;

static const struct stream_reader *const readers[] = {
    &stream_reader_trace_dat,
    &stream_reader_perf,
    &stream_reader_sched,
    &stream_reader_measurement,
};

const struct stream_reader *stream_readers_at(size_t i)
{
    return i < sizeof readers / sizeof *readers ? readers[i] : NULL;
}

/* What path is: a directory, or a file with a first part, which goes into head [STREAM_HEAD_BYTES + 1]. */
static int look_at(const char *path, struct stream_input *input, unsigned char *head, struct error *err)
{
    struct stat info;
    *input = (struct stream_input){.path = path, .head = head};
    if (stat(path, &info) != 0)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%.600s: cannot open: %s", path,
                         strerror(errno));
    input->is_directory = S_ISDIR(info.st_mode);
    int fd = input->is_directory ? -1 : input_open(AT_FDCWD, path, 0, NULL), code = 0;
    if (!input->is_directory && fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", path, input_reason(errno));
    for (ssize_t n = 1; fd >= 0 && n != 0 && input->n_head < STREAM_HEAD_BYTES;) {
        n = read(fd, head + input->n_head, STREAM_HEAD_BYTES - input->n_head);
        if (n < 0 && errno != EINTR) {
            code = error_set(err, ERR_IO, "%.600s: cannot read: %s", path, strerror(errno));
            break;
        }
        input->n_head += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        (void)close(fd);
    head[input->n_head] = 0;
    return code;
}

static int not_known(const char *path, struct error *err)
{
    struct buf known = {0};
    for (size_t i = 0; stream_readers_at(i); i++)
        buf_printf(&known, "%s%s", i ? ", " : "", stream_readers_at(i)->name);
    int code = error_set(err, ERR_UNSUPPORTED, "%.300s: not a recording that can be read; these can: %s", path,
                         known.data ? known.data : "none");
    buf_fini(&known);
    return code;
}

/* Ends what was begun: brings events into their order, or what is known of those that were handed over. */
static int finish(struct stream *opened, const struct stream_options *known, struct error *err)
{
    if (opened->part)
        return 0;
    return opened->passing ? stream_passing_finish(opened, err) : stream_finish(opened, known->couplebreak, err);
}

/* Opens a recording; part: see stream_open_empty; passing: see schedule_open_passing; both NULL: all of it is read.
 * They belong to the stream, also on failure. */
static int open_with(const char *path, const struct stream_options *known, struct stream_part *part,
                     struct stream_passing *passing, struct stream **stream, struct error *err)
{
    unsigned char head[STREAM_HEAD_BYTES + 1];
    struct stream_input input;
    int code = look_at(path, &input, head, err);
    size_t i = 0;
    while (code == 0 && stream_readers_at(i) && !stream_readers_at(i)->fits(&input))
        i++;
    if (code == 0 && passing && stream_readers_at(i) && !stream_readers_at(i)->hands_over)
        code = error_set(err, ERR_UNSUPPORTED, "%.600s: its events come in no order", path);
    struct stream *opened = code == 0 && stream_readers_at(i) ? calloc(1, sizeof *opened) : NULL;
    if (!opened) {
        stream_part_free(part);
        stream_passing_free(passing);
        return code ? code : stream_readers_at(i) ? error_memory(err) : not_known(path, err);
    }
    opened->part = part;
    opened->passing = passing;
    opened->reader = stream_readers_at(i);
    opened->kind = opened->reader->name;
    opened->path = strdup(path);
    code = opened->path ? opened->reader->read(&input, known, opened, err) : error_memory(err);
    if (passing && !stream_passing_end(passing))
        code = error_set(err, ERR_UNSUPPORTED, "%.600s: its events come in no order", path);
    code = code ? code : finish(opened, known, err);
    if (code != 0)
        stream_close(opened);
    else
        *stream = opened;
    return code;
}

int stream_open(const char *path, const struct stream_options *options, struct stream **stream, struct error *err)
{
    struct stream_options known = {0};
    if (options)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    return open_with(path, &known, NULL, NULL, stream, err);
}

int stream_open_empty(const char *path, struct stream_part *part, struct stream **stream, struct error *err)
{
    const struct stream_options none = {0};
    return open_with(path, &none, part, NULL, stream, err);
}

/* --- progress --- */

static struct {
    stream_told *told;
    void *context;
} progress;

void stream_on_progress(stream_told *told, void *context)
{
    progress.told = told;
    progress.context = context;
}

void stream_tell(const char *path, const char *doing, uint64_t done, uint64_t all)
{
    if (progress.told)
        progress.told(progress.context, path, doing, done, all);
}

/* --- handing events over --- */

enum { BATCH_EVENTS = 4096, N_BATCHES = 8, FREE_BATCHES = 4 };

struct handed {
    struct stream_event event;
    struct schedule_step step;
    bool is_step;
};

/* Events that have been read, for who takes them while the next ones are read. */
struct batch {
    size_t n;
    struct handed all[BATCH_EVENTS];
};

struct handing {
    schedule_taker *take;
    void *context;
    const struct stream *stream;
    struct schedule_source source;
    struct batch *batches; /* [N_BATCHES] that are filled and taken in turn */
    size_t n_filled, n_taken;
    bool has_begun, is_over; /* over: nothing is filled any more */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void take_batch(struct handing *handing, struct batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        const struct handed *one = &batch->all[i];
        handing->take(handing->context, handing->stream, &one->event, one->is_step ? &one->step : NULL);
    }
    batch->n = 0;
}

static void *take_batches(void *context)
{
    struct handing *handing = context;
    (void)pthread_mutex_lock(&handing->lock);
    for (;;) {
        while (handing->n_taken == handing->n_filled && !handing->is_over)
            (void)pthread_cond_wait(&handing->changed, &handing->lock);
        if (handing->n_taken == handing->n_filled)
            break;
        (void)pthread_mutex_unlock(&handing->lock);
        take_batch(handing, &handing->batches[handing->n_taken % N_BATCHES]);
        (void)pthread_mutex_lock(&handing->lock);
        handing->n_taken++;
        if (handing->n_filled - handing->n_taken <= N_BATCHES - FREE_BATCHES)
            (void)pthread_cond_signal(&handing->changed);
    }
    (void)pthread_mutex_unlock(&handing->lock);
    return NULL;
}

/* The batch that is being filled is given away, and the next one is free then. */
static void give_batch(struct handing *handing)
{
    if (!handing->has_thread) {
        take_batch(handing, &handing->batches[handing->n_filled % N_BATCHES]);
        return;
    }
    (void)pthread_mutex_lock(&handing->lock);
    handing->n_filled++;
    (void)pthread_cond_signal(&handing->changed);
    bool is_full = handing->n_filled - handing->n_taken == N_BATCHES; /* one that waits, waits for several */
    while (is_full && handing->n_filled - handing->n_taken > N_BATCHES - FREE_BATCHES)
        (void)pthread_cond_wait(&handing->changed, &handing->lock);
    (void)pthread_mutex_unlock(&handing->lock);
}

/* Starts who takes them; where there is no thread to be had, they are taken by the one that reads. Signals are for
 * others. */
static void handing_begin(struct handing *handing)
{
    sigset_t all, before;
    handing->has_begun = true;
    (void)pthread_mutex_init(&handing->lock, NULL);
    (void)pthread_cond_init(&handing->changed, NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    handing->has_thread = pthread_create(&handing->thread, NULL, take_batches, handing) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void fill_batch(void *context, const struct stream *stream, const struct stream_event *event)
{
    struct handing *handing = context;
    struct batch *batch = &handing->batches[handing->n_filled % N_BATCHES];
    if (!handing->has_begun) {
        handing->stream = stream;
        schedule_source_expect(&handing->source, stream);
        handing_begin(handing);
    }
    struct handed *one = &batch->all[batch->n++];
    one->event = *event;
    one->is_step = schedule_source_step(&handing->source, event, &one->step);
    if (batch->n == BATCH_EVENTS)
        give_batch(handing);
}

/* All have been taken then. */
static void handing_end(void *context)
{
    struct handing *handing = context;
    if (!handing->has_begun)
        return;
    give_batch(handing);
    (void)pthread_mutex_lock(&handing->lock);
    handing->is_over = true;
    (void)pthread_cond_signal(&handing->changed);
    (void)pthread_mutex_unlock(&handing->lock);
    if (handing->has_thread)
        (void)pthread_join(handing->thread, NULL);
    (void)pthread_cond_destroy(&handing->changed);
    (void)pthread_mutex_destroy(&handing->lock);
}

int schedule_open_passing(const char *path, schedule_taker *take, void *context, struct stream **stream,
                          struct error *err)
{
    const struct stream_options none = {0};
    struct handing handing = {.take = take, .context = context, .batches = calloc(N_BATCHES, sizeof *handing.batches)};
    const struct stream_taker filler = {fill_batch, handing_end, &handing};
    struct stream_passing *passing = stream_passing_new(&filler);
    if (!passing || !handing.batches) {
        stream_passing_free(passing);
        free(handing.batches);
        return error_memory(err);
    }
    int code = open_with(path, &none, NULL, passing, stream, err);
    free(handing.batches);
    return code;
}

/* --- switches that are made of the kernel's records of one side --- */

/* Where the fields lie. The thread that leaves has written the record. */
enum { SWITCH_MISC_AT = 4, SWITCH_NEXT_AT = 12, SWITCH_PREV_AT = 20 };

static void put_word(unsigned char *to, uint32_t word, bool is_swapped)
{
    word = is_swapped ? __builtin_bswap32(word) : word;
    memcpy(to, &word, sizeof word);
}

void stream_switch_put_next(unsigned char *bytes, int32_t next, bool is_swapped)
{
    put_word(bytes + SWITCH_NEXT_AT, (uint32_t)next, is_swapped);
}

void stream_switch_put(const struct stream_switch *what, bool is_swapped, unsigned char bytes[STREAM_SWITCH_BYTES])
{
    uint16_t misc = is_swapped ? __builtin_bswap16(what->misc) : what->misc;
    memset(bytes, 0, STREAM_SWITCH_BYTES);
    memcpy(bytes + SWITCH_MISC_AT, &misc, sizeof misc);
    put_word(bytes + SWITCH_PREV_AT, (uint32_t)what->prev, is_swapped);
    stream_switch_put_next(bytes, what->next, is_swapped);
}

int stream_switch_add_type(struct stream *stream, int32_t id, struct error *err)
{
    static const struct stream_field fields[] = {
        {"common_pid", "pid_t", SWITCH_PREV_AT, 4, STREAM_FIELD_SIGNED | STREAM_FIELD_COMMON},
        {"prev_pid", "pid_t", SWITCH_PREV_AT, 4, STREAM_FIELD_SIGNED},
        {SCHEDULE_MISC_FIELD, "u16", SWITCH_MISC_AT, 2, 0},
        {"next_pid", "pid_t", SWITCH_NEXT_AT, 4, STREAM_FIELD_SIGNED},
    };
    struct stream_type *type = stream_add_type(stream, id, "sched/sched_switch");
    for (size_t i = 0; type && i < sizeof fields / sizeof *fields; i++)
        if (!stream_add_field(type, &fields[i]))
            type = NULL;
    return type ? 0 : error_memory(err);
}

static void put_side(const struct stream *stream, const char *which, int64_t task, struct buf *out)
{
    buf_printf(out, "%s_comm=", which);
    printable_put(out, task < 0 ? "<other>" : task == 0 ? "<idle>" : stream_comm(stream, (int32_t)task));
    buf_printf(out, " %s_pid=%" PRId64, which, task);
}

void stream_switch_put_info(const struct stream *stream, const struct stream_event *event, int32_t id, struct buf *out)
{
    const struct stream_type *type = stream_type_of(stream, id);
    int64_t prev = STREAM_NO_TASK, next = STREAM_NO_TASK, misc = 0;
    (void)stream_field_number(stream, event, stream_field_of(type, "prev_pid"), &prev);
    (void)stream_field_number(stream, event, stream_field_of(type, "next_pid"), &next);
    (void)stream_field_number(stream, event, stream_field_of(type, SCHEDULE_MISC_FIELD), &misc);
    put_side(stream, "prev", prev, out);
    buf_printf(out, " prev_state=%s ==> ",
               !(misc & SCHEDULE_MISC_OUT)      ? "?"
               : misc & SCHEDULE_MISC_GONE      ? "X"
               : misc & SCHEDULE_MISC_PREEMPTED ? "R+"
                                                : "blocked");
    put_side(stream, "next", next, out);
}
