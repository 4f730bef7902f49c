/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of detail against sums over all pieces of the schedule, one by one: 1000 random windows of 1 to 4000 pixels,
 * equal to the nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "streams/levels-file.h"
#include "streams/levels.h"
#include "streams/readers.h"
#include "streams/schedule.h"

enum { ID_SWITCH = 314, ID_WAKING = 317, ID_OTHER = 7, N_CPUS = 4, N_TASKS = 12, N_MAX = 40000, N_WINDOWS = 1000 };
enum { IS_NOTHING = LEVEL_PARTS, N_SORTS = LEVEL_PARTS + 1 };

/* Bytes of an event: those that all types have, and three numbers. */
struct payload {
    uint16_t common_type;
    uint8_t common_flags, common_preempt_count;
    int32_t common_pid;
    int32_t numbers[3];
};

static const struct stream_reader reader = {.name = "test"};

struct made {
    struct stream *stream;
    struct payload payloads[N_MAX];
    size_t n;
    uint64_t random;
};

static uint64_t random_below(struct made *made, uint64_t n)
{
    made->random ^= made->random << 13;
    made->random ^= made->random >> 7;
    made->random ^= made->random << 17;
    return (made->random >> 11) % n;
}

static void add_type(struct stream *stream, int32_t id, const char *name, const char *const *fields)
{
    struct stream_type *type = stream_add_type(stream, id, name);
    assert_non_null(type);
    for (uint32_t i = 0; fields[i]; i++) {
        struct stream_field field = {.name = (char *)fields[i], .type = "int", .n_bytes = 4};
        field.offset = (uint32_t)offsetof(struct payload, numbers) + 4 * i;
        field.flags = STREAM_FIELD_SIGNED;
        assert_true(stream_add_field(type, &field));
    }
}

static void add(struct made *made, int32_t id, int64_t t_ns, uint16_t cpu, int32_t task, const int32_t numbers[3])
{
    struct payload *payload = &made->payloads[made->n];
    *payload = (struct payload){.common_type = (uint16_t)id, .common_pid = task};
    memcpy(payload->numbers, numbers, sizeof payload->numbers);
    struct stream_event *event = stream_add_event(made->stream);
    assert_non_null(event);
    event->t_ns = t_ns;
    event->record = id == STREAM_ID_LOST ? 0 : made->n * sizeof *payload;
    event->task = id == STREAM_ID_LOST ? STREAM_NO_TASK : task;
    event->id = id;
    event->n_bytes = sizeof *payload;
    event->cpu = cpu;
    made->n++;
}

/* The time to the next event: often none, or one nanosecond; now and then long, seldom more than 32 bits. */
static int64_t step(struct made *made)
{
    static const uint64_t most[] = {1, 2, 3, 100, 5000, 5000, 200000, 30000000};
    if (random_below(made, 4000) == 0)
        return (int64_t)random_below(made, UINT64_C(1) << 34);
    return (int64_t)random_below(made, most[random_below(made, sizeof most / sizeof *most)]);
}

/* What happens next: mostly switches of tasks that run nowhere else. */
static void add_any(struct made *made, int64_t t_ns, int32_t current[N_CPUS])
{
    static const int32_t states[] = {0, 0, 1, 1, 1, 2, 4, 0x10};
    uint16_t cpu = (uint16_t)random_below(made, N_CPUS);
    int32_t task = (int32_t)random_below(made, N_TASKS + 1);
    bool is_busy = false;
    for (size_t i = 0; i < N_CPUS; i++)
        is_busy |= task && current[i] == task;
    uint64_t what = random_below(made, 100);
    if (what == 0)
        add(made, STREAM_ID_LOST, t_ns, cpu, 0, (int32_t[3]){0});
    else if (what < 15)
        add(made, ID_OTHER, t_ns, cpu, current[cpu], (int32_t[3]){0});
    else if (is_busy || what < 40)
        add(made, ID_WAKING, t_ns, cpu, current[cpu], (int32_t[3]){task ? task : 1, 0, 0});
    else {
        int32_t state = states[random_below(made, sizeof states / sizeof *states)];
        if (what == 99) /* what does not fit to what was before */
            current[cpu] = (int32_t)random_below(made, N_TASKS + 1);
        add(made, ID_SWITCH, t_ns, cpu, current[cpu], (int32_t[3]){current[cpu], state, task});
        current[cpu] = task;
    }
}

static struct made *begin(uint64_t seed, size_t n)
{
    static const char *const switches[] = {"prev_pid", "prev_state", "next_pid", NULL};
    static const char *const wakings[] = {"pid", NULL};
    static const char *const others[] = {"value", NULL};
    struct made *made = calloc(1, sizeof *made);
    int32_t current[N_CPUS] = {0};
    made->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    made->stream = calloc(1, sizeof *made->stream);
    made->stream->reader = &reader;
    made->stream->n_cpus = N_CPUS;
    made->stream->bytes = (const unsigned char *)made->payloads;
    made->stream->n_bytes = sizeof made->payloads;
    add_type(made->stream, ID_SWITCH, "sched/sched_switch", switches);
    add_type(made->stream, ID_WAKING, "sched/sched_waking", wakings);
    add_type(made->stream, ID_OTHER, "test/other", others);
    for (int64_t t_ns = 1000000; made->n < n; t_ns += step(made))
        add_any(made, t_ns, current);
    assert_int_equal(stream_finish(made->stream, false, NULL), 0);
    return made;
}

static void end(struct made *made)
{
    stream_close(made->stream);
    free(made);
}

/* --- the slow way --- */

/* What is known of a stretch of a row; IS_NOTHING: idle, blocked or gone. */
struct piece {
    int64_t from_ns, to_ns;
    int32_t key;
    int sort;
};

struct slow {
    enum level_kind kind;
    int32_t number;
    struct piece *all; /* [n] */
    size_t n;
    bool is_gone;
    int64_t gone_ns;
};

static void slow_add(struct slow *slow, struct piece piece)
{
    if (slow->is_gone)
        slow->all[slow->n++] = (struct piece){slow->gone_ns, piece.from_ns, 0, IS_NOTHING};
    slow->is_gone = false;
    slow->all[slow->n++] = piece;
}

static void slow_piece(void *context, const struct schedule_piece *piece)
{
    struct slow *slow = context;
    bool is_run = piece->state == SCHEDULE_RUNNING;
    struct piece own = {piece->from_ns, piece->to_ns, piece->task, LEVEL_RUNNING};
    if (slow->kind == LEVEL_CPU && is_run && piece->cpu == slow->number) {
        own.sort = piece->task ? LEVEL_RUNNING : IS_NOTHING;
        slow_add(slow, own);
    } else if (slow->kind == LEVEL_TASK && piece->task == slow->number) {
        own.key = piece->cpu == STREAM_NO_CPU ? LEVEL_NO_KEY : piece->cpu;
        own.sort = is_run                               ? LEVEL_RUNNING
                   : piece->state == SCHEDULE_WOKEN     ? LEVEL_WOKEN
                   : piece->state == SCHEDULE_PREEMPTED ? LEVEL_PREEMPTED
                                                        : IS_NOTHING;
        slow_add(slow, own);
    }
}

static void slow_run(void *context, const struct schedule_run *run)
{
    struct slow *slow = context;
    if (slow->kind != LEVEL_TASK || run->task != slow->number)
        return;
    if (slow->is_gone) /* it came again, for no time */
        slow->all[slow->n++] = (struct piece){slow->gone_ns, run->from_ns, 0, IS_NOTHING};
    slow->is_gone = run->state == SCHEDULE_DEAD;
    slow->gone_ns = run->to_ns;
}

static void slow_make(const struct stream *stream, const struct level_row *row, struct slow *slow)
{
    const struct schedule_sink sink = {.piece = slow_piece, .run = slow_run, .context = slow};
    struct schedule sched = {0};
    *slow = (struct slow){.kind = (enum level_kind)row->kind, .number = row->number};
    slow->all = calloc(3 * stream->n_events + 8, sizeof *slow->all);
    assert_int_equal(schedule_analyse(stream, NULL, &sink, &sched, NULL), 0);
    if (slow->is_gone)
        slow_add(slow, (struct piece){sched.end_ns, sched.end_ns, 0, IS_NOTHING});
    schedule_close(&sched);
}

/* Compares the cells of a picture, pixel by pixel. */
struct comparison {
    const struct made *made;
    const struct slow *slow;
    const struct level_row *row;
    const int64_t *edges;
    size_t width, x, piece, event, n_inexact;
    int64_t sums[LEVEL_PARTS];
};

static int64_t inside(const struct piece *piece, int64_t from_ns, int64_t to_ns)
{
    from_ns = piece->from_ns > from_ns ? piece->from_ns : from_ns;
    to_ns = piece->to_ns < to_ns ? piece->to_ns : to_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* The sums of one pixel from all pieces; *longest: what the key that ran longest ran. */
static void slow_sums(struct comparison *of, int64_t from_ns, int64_t to_ns, int64_t sums[LEVEL_PARTS], int64_t *key_ns,
                      int64_t *longest, int32_t key)
{
    int64_t known_ns = 0, by_key[64] = {0}, total_from = from_ns, total_to = to_ns;
    const struct stream *stream = of->made->stream;
    memset(sums, 0, LEVEL_PARTS * sizeof *sums);
    while (of->piece < of->slow->n && of->slow->all[of->piece].to_ns <= from_ns)
        of->piece++;
    for (size_t i = of->piece; i < of->slow->n && of->slow->all[i].from_ns < to_ns; i++) {
        const struct piece *piece = &of->slow->all[i];
        int64_t ns = inside(piece, from_ns, to_ns);
        known_ns += ns;
        if (piece->sort != IS_NOTHING)
            sums[piece->sort] += ns;
        if (piece->sort == LEVEL_RUNNING && piece->key >= 0)
            by_key[piece->key] += ns;
    }
    total_from = stream->events[0].t_ns > from_ns ? stream->events[0].t_ns : from_ns;
    total_to = stream->events[stream->n_events - 1].t_ns < to_ns ? stream->events[stream->n_events - 1].t_ns : to_ns;
    sums[LEVEL_UNKNOWN] = total_to > total_from ? total_to - total_from - known_ns : 0;
    *longest = 0;
    *key_ns = key == LEVEL_NO_KEY ? 0 : by_key[key];
    for (size_t i = 0; i < 64; i++)
        *longest = by_key[i] > *longest ? by_key[i] : *longest;
}

static uint64_t slow_events(struct comparison *of, int64_t from_ns, int64_t to_ns, bool are_lost)
{
    uint64_t n = 0;
    for (size_t i = stream_at(of->made->stream, from_ns);
         i < of->made->stream->n_events && of->made->stream->events[i].t_ns < to_ns; i++) {
        const struct stream_event *event = &of->made->stream->events[i];
        bool is_own = of->row->kind == LEVEL_CPU ? event->cpu == of->row->number : event->task == of->row->number;
        n += is_own && (event->id == STREAM_ID_LOST) == are_lost;
    }
    return n;
}

static void compare_pixel(struct comparison *of, const struct level_cell *cell, size_t x)
{
    int64_t from_ns = of->edges[x], to_ns = of->edges[x + 1], sums[LEVEL_PARTS], key_ns, longest_ns;
    bool is_last = x + 1 == of->width;
    if (to_ns == from_ns) { /* it shows what is there */
        slow_sums(of, from_ns, from_ns + 1, sums, &key_ns, &longest_ns, cell->key);
        assert_int_equal(cell->length_ns, 1);
    } else {
        slow_sums(of, from_ns, to_ns, sums, &key_ns, &longest_ns, cell->key);
    }
    for (size_t part = 0; part < LEVEL_PARTS; part++) {
        bool is_all = cell->n > 1 && cell->parts_ns[part] == cell->length_ns; /* the first pixel's length */
        int64_t length_ns = to_ns > from_ns ? to_ns - from_ns : 1;
        if (from_ns < of->made->stream->events[0].t_ns && part == LEVEL_UNKNOWN && to_ns == from_ns)
            continue;
        assert_int_equal(is_all ? length_ns : cell->parts_ns[part], sums[part]);
    }
    assert_int_equal(cell->key == LEVEL_NO_KEY, longest_ns == 0);
    assert_true(key_ns <= longest_ns);
    of->n_inexact += key_ns < longest_ns;
    if (to_ns - from_ns < 20000)
        assert_int_equal(key_ns, longest_ns);
    for (int lost = 0; lost < 2; lost++)
        assert_int_equal(cell->n_marks[lost ? LEVEL_LOST : LEVEL_EVENT],
                         slow_events(of, from_ns, to_ns + is_last, lost));
}

static void compare_cell(void *context, const struct level_cell *cell)
{
    struct comparison *of = context;
    assert_int_equal(cell->x, of->x);
    assert_true(cell->n > 0 && cell->x + cell->n <= of->width);
    for (size_t i = 0; i < cell->n; i++)
        compare_pixel(of, cell, cell->x + i);
    of->x += cell->n;
}

static void pictures_are_sums(void **state)
{
    (void)state;
    struct made *made = begin(7, N_MAX);
    struct levels levels = {0};
    struct slow slow[N_CPUS + N_TASKS];
    size_t n_inexact = 0, n_pixels = 0;
    assert_int_equal(levels_make(made->stream, &levels, NULL), 0);
    assert_int_equal(levels.n_cpus, N_CPUS);
    assert_int_equal(levels.n_rows, N_CPUS + N_TASKS);
    assert_int_equal(levels.n_cut, 0);
    for (size_t i = 0; i < levels.n_rows; i++)
        slow_make(made->stream, &levels.rows[i], &slow[i]);
    int64_t all_ns = levels.end_ns - levels.begin_ns;
    for (size_t i = 0; i < N_WINDOWS; i++) {
        size_t row = random_below(made, levels.n_rows), width = 1 + random_below(made, i % 3 ? 400 : 4000);
        int64_t length_ns = (int64_t)random_below(made, UINT64_C(1) << random_below(made, 40)) % (all_ns + 2000);
        int64_t from_ns = levels.begin_ns - 1000 + (int64_t)random_below(made, (uint64_t)(all_ns + 2000 - length_ns));
        int64_t *edges = calloc(width + 1, sizeof *edges);
        if (length_ns < 1000) /* around an event, else nothing would be seen */
            from_ns = made->stream->events[random_below(made, N_MAX)].t_ns - length_ns / 2;
        for (size_t x = 0; x <= width; x++)
            edges[x] = schedule_slice_ns(from_ns, from_ns + length_ns, width, x);
        struct comparison of = {
            .made = made, .slow = &slow[row], .row = &levels.rows[row], .edges = edges, .width = width};
        const struct level_picture picture = {.edges = edges, .width = width, .cell = compare_cell, .context = &of};
        levels_draw(&levels, row, &picture);
        assert_int_equal(of.x, width);
        n_inexact += of.n_inexact;
        n_pixels += width;
        free(edges);
    }
    assert_true(n_inexact < n_pixels / 1000);
    for (size_t i = 0; i < levels.n_rows; i++)
        free(slow[i].all);
    levels_fini(&levels);
    end(made);
}

/* One nanosecond on a CPU in all of the recording is seen at each width. */
static void seen(void *context, const struct level_cell *cell)
{
    *(int64_t *)context += cell->parts_ns[LEVEL_RUNNING] * (int64_t)cell->n;
}

static void a_nanosecond_is_seen(void **state)
{
    (void)state;
    struct made *made = begin(1, 0);
    int32_t on[3] = {0, 1, 5}, off[3] = {5, 1, 0}, other[3] = {0};
    add(made, ID_OTHER, 0, 0, 1, other);
    add(made, ID_SWITCH, 500000000, 0, 0, on);
    add(made, ID_SWITCH, 500000001, 0, 5, off);
    add(made, ID_OTHER, 1000000000, 0, 1, other);
    assert_int_equal(stream_finish(made->stream, false, NULL), 0);
    struct levels levels = {0};
    assert_int_equal(levels_make(made->stream, &levels, NULL), 0);
    for (size_t width = 1; width <= 4000; width += 7)
        for (size_t row = 0; row < 2; row++) {
            size_t at = levels_find(&levels, row ? LEVEL_TASK : LEVEL_CPU, row ? 5 : 0);
            int64_t *edges = calloc(width + 1, sizeof *edges), sum_ns = 0;
            for (size_t x = 0; x <= width; x++)
                edges[x] = schedule_slice_ns(0, 1000000000, width, x);
            const struct level_picture picture = {.edges = edges, .width = width, .cell = seen, .context = &sum_ns};
            levels_draw(&levels, at, &picture);
            assert_int_equal(sum_ns, 1);
            free(edges);
        }
    levels_fini(&levels);
    end(made);
}

/* What a window holds of a row is what its pixels hold. */
static void sums_of_windows(void **state)
{
    (void)state;
    struct made *made = begin(3, 5000);
    struct levels levels = {0};
    assert_int_equal(levels_make(made->stream, &levels, NULL), 0);
    for (size_t i = 0; i < N_WINDOWS; i++) {
        size_t row = random_below(made, levels.n_rows);
        const struct level_track track = levels_track(&levels, row);
        int64_t all_ns = levels.end_ns - levels.begin_ns, sums[LEVEL_PARTS], wanted[LEVEL_PARTS] = {0};
        int64_t from_ns = levels.begin_ns + (int64_t)random_below(made, (uint64_t)all_ns);
        int64_t to_ns = from_ns + (int64_t)random_below(made, (uint64_t)(levels.end_ns - from_ns) + 1);
        level_sums_of(&track, from_ns, to_ns, sums);
        for (size_t k = 0; k < track.n; k++) {
            const struct piece piece = {track.stays[k].from_ns, track.stays[k].to_ns, 0, 0};
            wanted[track.stays[k].part] += inside(&piece, from_ns, to_ns);
        }
        assert_memory_equal(sums, wanted, sizeof sums);
    }
    levels_fini(&levels);
    end(made);
}

/* What waits for its place in the file is not changed by lying in a file meanwhile, of which nothing is left. */
static void room_in_a_file(void **state)
{
    (void)state;
    enum { N = 40000, WORDS = 600 };
    char directory[] = "/tmp/levels-test.XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/x", directory);
    const struct levels_file file = {.path = path};
    struct levels_room room = {.file = &file, .n_bytes = 1 << 30}; /* so that it is full */
    uint64_t **pieces = calloc(N, sizeof *pieces), wrong = 0;
    for (size_t i = 0; i < N; i++) {
        size_t n = 1 + i * 7919 % WORDS;
        pieces[i] = levels_room_take(&room, n * sizeof **pieces - (i % 2 ? 4 : 0));
        assert_non_null(pieces[i]);
        for (size_t k = 0; k < n; k++)
            pieces[i][k] = i * WORDS + k;
    }
    assert_true(room.n_in_file > 64 << 20);
    assert_true(room.n_bytes - (1 << 30) == room.n_in_file);
    for (size_t i = 0; i < N; i++) {
        size_t n = 1 + i * 7919 % WORDS;
        for (size_t k = 0; k < n; k++)
            wrong += pieces[i][k] != i * WORDS + k;
        levels_room_pass(&room, n * sizeof **pieces);
    }
    assert_int_equal(wrong, 0);
    levels_room_free(&room);
    free(pieces);
    assert_int_equal(rmdir(directory), 0);
}

/* Bytes of files that are mapped here and resident. */
static int64_t resident_bytes(void)
{
    long long n_pages = 0, n_shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %lld %lld", &n_pages, &n_shared), 2);
    assert_int_equal(fclose(file), 0);
    return n_shared * sysconf(_SC_PAGESIZE);
}

/* Of a large file little stays resident, whatever has been looked at. */
static void what_was_seen_is_let_go(void **state)
{
    (void)state;
    enum { N = 5 << 20, WIDTH = 40000, MIB = 1 << 20 };
    char path[] = "/tmp/levels-test.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0);
    struct level_row row = {.kind = LEVEL_CPU, .n_stays = N, .last_ns = 2 * N};
    struct levels levels = {.end_ns = 2 * N, .rows = &row, .n_rows = 1, .n_cpus = 1, .n_stays = N};
    levels.n_map = N * sizeof *levels.stays;
    assert_int_equal(ftruncate(fd, (off_t)levels.n_map), 0);
    struct level_stay *stays = mmap(NULL, levels.n_map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(stays, MAP_FAILED);
    for (int64_t i = 0; i < N; i++)
        stays[i] = (struct level_stay){.from_ns = 2 * i, .to_ns = 2 * i + 1, .key = 1 + (int32_t)(i % 3)};
    levels.n_blocks = level_n_blocks(N);
    levels.blocks = calloc(levels.n_blocks, sizeof *levels.blocks);
    levels.tops = calloc(level_n_tops(N), sizeof *levels.tops);
    level_sum_up(stays, N, levels.blocks, levels.tops);
    assert_int_equal(munmap(stays, levels.n_map), 0);
    levels.map = mmap(NULL, levels.n_map, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(levels.map, MAP_FAILED);
    levels.stays = levels.map;
    int64_t *edges = calloc(WIDTH + 1, sizeof *edges), before = resident_bytes(), sum_ns = 0;
    for (size_t x = 0; x <= WIDTH; x++)
        edges[x] = schedule_slice_ns(0, levels.end_ns, WIDTH, x);
    const struct level_picture picture = {.edges = edges, .width = WIDTH, .cell = seen, .context = &sum_ns};
    levels_draw(&levels, 0, &picture);
    assert_int_equal(sum_ns, N);
    assert_true(levels.n_map >= 120 * MIB);
    assert_in_range(resident_bytes() - before, 0, 64 * MIB);
    assert_int_equal(munmap(levels.map, levels.n_map), 0);
    free(levels.blocks);
    free(levels.tops);
    free(edges);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_seen_is_let_go), cmocka_unit_test(room_in_a_file),
        cmocka_unit_test(pictures_are_sums),       cmocka_unit_test(a_nanosecond_is_seen),
        cmocka_unit_test(sums_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
