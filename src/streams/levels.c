/* SPDX-License-Identifier: BSD-3-Clause */
/* From rows of stays to sums, answers and pictures: see levels.h. */
#include "streams/levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/search.h"

/* --- sums --- */

size_t level_n_blocks(size_t n_stays)
{
    return (n_stays + LEVEL_BLOCK - 1) / LEVEL_BLOCK;
}

size_t level_n_tops(size_t n_stays)
{
    size_t n = level_n_blocks(n_stays), sum = n;
    while (n > 1) {
        n = (n + LEVEL_FAN - 1) / LEVEL_FAN;
        sum += n;
    }
    return sum;
}

/* Sums of times, which fit in what we have written; what else a file says gives some numbers, too. */
static inline int64_t plus(int64_t a_ns, int64_t b_ns)
{
    return (int64_t)((uint64_t)a_ns + (uint64_t)b_ns);
}

static inline int64_t minus(int64_t a_ns, int64_t b_ns)
{
    return (int64_t)((uint64_t)a_ns - (uint64_t)b_ns);
}

/* How long each key ran, of some hundred. */
enum { TALLY_SLOTS = 512, TALLY_MAX = 384 };
struct tally {
    int32_t keys[TALLY_SLOTS];
    int64_t ns[TALLY_SLOTS]; /* 0: the slot is free */
    uint16_t used[TALLY_MAX];
    size_t n;
};

static void tally_clear(struct tally *tally)
{
    for (size_t i = 0; i < tally->n; i++)
        tally->ns[tally->used[i]] = 0;
    tally->n = 0;
}

static void tally_add(struct tally *tally, int32_t key, int64_t ns)
{
    size_t i = (uint32_t)key * UINT32_C(0x9e3779b1) >> 23;
    if (key == LEVEL_NO_KEY || ns <= 0)
        return;
    while (tally->ns[i] && tally->keys[i] != key)
        i = (i + 1) % TALLY_SLOTS;
    if (!tally->ns[i]) {
        if (tally->n == TALLY_MAX)
            return;
        tally->used[tally->n++] = (uint16_t)i;
        tally->keys[i] = key;
    }
    tally->ns[i] = plus(tally->ns[i], ns);
}

/* The key that ran longest, of equal ones the one that came first. */
static struct level_top tally_top(const struct tally *tally)
{
    struct level_top top = {0, LEVEL_NO_KEY, 0};
    for (size_t i = 0; i < tally->n; i++)
        if (tally->ns[tally->used[i]] > top.ns)
            top = (struct level_top){tally->ns[tally->used[i]], tally->keys[tally->used[i]], 0};
    return top;
}

void level_sum_tops(struct level_top *tops, size_t n_blocks)
{
    struct tally tally = {.n = 0};
    size_t first = 0, n = n_blocks;
    while (n > 1) {
        size_t n_above = (n + LEVEL_FAN - 1) / LEVEL_FAN;
        for (size_t i = 0; i < n_above; i++) {
            for (size_t k = i * LEVEL_FAN; k < n && k < (i + 1) * LEVEL_FAN; k++)
                tally_add(&tally, tops[first + k].key, tops[first + k].ns);
            tops[first + n + i] = tally_top(&tally);
            tally_clear(&tally);
        }
        first += n;
        n = n_above;
    }
}

void level_sum_part(const struct level_stay *stays, size_t first, size_t n, struct level_block *sums,
                    struct level_block *blocks, struct level_top *tops)
{
    struct tally tally = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        if (i % LEVEL_BLOCK == 0)
            blocks[(first + i) / LEVEL_BLOCK] = *sums;
        sums->before_ns[stays[i].part] += stays[i].to_ns - stays[i].from_ns;
        if (stays[i].part == LEVEL_RUNNING)
            tally_add(&tally, stays[i].key, stays[i].to_ns - stays[i].from_ns);
        if ((i + 1) % LEVEL_BLOCK == 0 || i + 1 == n) {
            tops[(first + i) / LEVEL_BLOCK] = tally_top(&tally);
            tally_clear(&tally);
        }
    }
}

void level_sum_up(const struct level_stay *stays, size_t n, struct level_block *blocks, struct level_top *tops)
{
    struct level_block sums = {{0}};
    level_sum_part(stays, 0, n, &sums, blocks, tops);
    level_sum_tops(tops, level_n_blocks(n));
}

void levels_fini(struct levels *levels)
{
    if (levels->map) {
        (void)munmap(levels->map, levels->n_map);
    } else {
        free(levels->rows);
        free(levels->stays);
        free(levels->blocks);
        free(levels->tops);
        free(levels->turns);
        free(levels->times);
    }
    *levels = (struct levels){0};
}

/* --- questions --- */

static bool row_is_before(const void *context, size_t i)
{
    const struct level_row *const *search = context;
    const struct level_row *row = &search[0][i], *like = search[1];
    return row->kind != like->kind ? row->kind < like->kind : row->number < like->number;
}

size_t levels_find(const struct levels *levels, enum level_kind kind, int32_t number)
{
    const struct level_row like = {.kind = kind, .number = number}, *search[] = {levels->rows, &like};
    size_t i = search_where(levels->n_rows, row_is_before, search);
    return i < levels->n_rows && levels->rows[i].kind == like.kind && levels->rows[i].number == number ? i : SIZE_MAX;
}

struct level_track levels_track(const struct levels *levels, size_t row)
{
    const struct level_row *of = &levels->rows[row];
    return (struct level_track){levels->stays + of->first_stay, of->n_stays, levels->blocks + of->first_block,
                                levels->tops + of->first_top};
}

static bool ends_upto(const void *context, size_t i)
{
    const struct level_stay *const *search = context;
    return search[0][i].to_ns <= search[1]->to_ns;
}

size_t level_stay_at(const struct level_track *track, int64_t t_ns)
{
    const struct level_stay like = {.to_ns = t_ns}, *search[] = {track->stays, &like};
    if (track->n == 0 || track->stays[0].to_ns > t_ns) /* often: a search would touch pages of a mapped file */
        return 0;
    if (track->stays[track->n - 1].to_ns <= t_ns)
        return track->n;
    return search_where(track->n, ends_upto, search);
}

/* The sums before t_ns, where i is the first stay that ends behind it. */
static void sums_at(const struct level_track *track, size_t i, int64_t t_ns, int64_t sums[LEVEL_PARTS])
{
    size_t block = track->n ? (i < track->n ? i : track->n - 1) / LEVEL_BLOCK : 0;
    memset(sums, 0, LEVEL_PARTS * sizeof *sums);
    if (track->n)
        memcpy(sums, track->blocks[block].before_ns, sizeof track->blocks[block].before_ns);
    for (size_t k = block * LEVEL_BLOCK; k < i; k++) {
        const struct level_stay *stay = &track->stays[k];
        int64_t *sum = &sums[stay->part % LEVEL_PARTS];
        *sum = plus(*sum, minus(stay->to_ns, stay->from_ns));
    }
    if (i < track->n && track->stays[i].from_ns < t_ns) {
        int64_t *sum = &sums[track->stays[i].part % LEVEL_PARTS];
        *sum = plus(*sum, minus(t_ns, track->stays[i].from_ns));
    }
}

void level_sums(const struct level_track *track, int64_t t_ns, int64_t sums[LEVEL_PARTS])
{
    sums_at(track, level_stay_at(track, t_ns), t_ns, sums);
}

void level_sums_of(const struct level_track *track, int64_t from_ns, int64_t to_ns, int64_t sums[LEVEL_PARTS])
{
    int64_t before[LEVEL_PARTS];
    level_sums(track, from_ns, before);
    level_sums(track, to_ns, sums);
    for (size_t part = 0; part < LEVEL_PARTS; part++)
        sums[part] = to_ns > from_ns ? minus(sums[part], before[part]) : 0;
}

/* The times of marks of a row. */
struct times {
    int64_t begin_ns;
    const uint32_t *low; /* [n] */
    size_t n;
    const struct level_turn *turns; /* [n_turns] */
    size_t n_turns;
};

static struct times times_of(const struct levels *levels, const struct level_row *row, unsigned mark)
{
    return (struct times){levels->begin_ns, levels->times + row->first_time[mark], row->n_times[mark],
                          levels->turns + row->first_turn[mark], row->n_turns[mark]};
}

static bool turn_is_upto(const void *context, size_t i)
{
    const struct level_turn *const *search = context;
    return search[0][i].first <= search[1]->first;
}

static bool turn_is_below(const void *context, size_t i)
{
    const struct level_turn *const *search = context;
    return search[0][i].high < search[1]->high;
}

/* The time at an index below n. */
static int64_t time_of(const struct times *times, size_t i)
{
    const struct level_turn like = {.first = i}, *search[] = {times->turns, &like};
    size_t behind = times->n_turns == 1 ? 1 : search_where(times->n_turns, turn_is_upto, search);
    uint64_t high = behind ? times->turns[behind - 1].high : 0;
    return (int64_t)((uint64_t)times->begin_ns + (high << 32 | times->low[i]));
}

/* The first of numbers [n], of which the first at are below number, that is not: near ones are found fast. */
static size_t number_at(const uint32_t *numbers, size_t n, size_t at, uint32_t number)
{
    size_t step = 1, high = at;
    if (n > at && numbers[n - 1] < number)
        return n;
    while (high < n && numbers[high] < number) {
        at = high + 1;
        high += step;
        step *= 2;
    }
    high = high < n ? high : n;
    while (at < high) {
        size_t middle = at + (high - at) / 2;
        if (numbers[middle] < number)
            at = middle + 1;
        else
            high = middle;
    }
    return at;
}

/* The first of the times, of which the first at are before t_ns, that is not. */
static size_t time_at(const struct times *times, size_t at, int64_t t_ns)
{
    if (t_ns <= times->begin_ns || at >= times->n)
        return at;
    uint64_t since_ns = (uint64_t)t_ns - (uint64_t)times->begin_ns;
    const struct level_turn like = {.high = since_ns >> 32}, *search[] = {times->turns, &like};
    size_t turn = search_where(times->n_turns, turn_is_below, search);
    size_t first = turn < times->n_turns ? times->turns[turn].first : times->n;
    size_t end = turn + 1 < times->n_turns ? times->turns[turn + 1].first : times->n;
    first = first < times->n ? first : times->n; /* whatever a file says */
    end = end < times->n ? end : times->n;
    at = at > first ? at : first;
    if (turn == times->n_turns || times->turns[turn].high > like.high || at >= end)
        return at;
    return number_at(times->low, end, at, (uint32_t)since_ns);
}

/* The first of the edges [n] from at on that is not before t_ns. */
static size_t edge_at(const int64_t *edges, size_t n, size_t at, int64_t t_ns)
{
    size_t high = n;
    while (at < high) {
        size_t middle = at + (high - at) / 2;
        if (edges[middle] < t_ns)
            at = middle + 1;
        else
            high = middle;
    }
    return at;
}

uint64_t levels_count(const struct levels *levels, size_t row, enum level_mark mark, int64_t from_ns, int64_t to_ns)
{
    const struct times times = times_of(levels, &levels->rows[row], mark);
    size_t first = time_at(&times, 0, from_ns);
    return to_ns > from_ns ? time_at(&times, first, to_ns) - first : 0;
}

/* --- pictures --- */

/* A track that is gone along: at is the first stay that ends behind the present pixel's begin. */
struct cursor {
    const struct level_track *track;
    size_t at;
};

struct drawing {
    const struct level_picture *picture;
    struct level_track track;
    struct cursor own, keys;
    struct times times[LEVEL_MARKS];
    size_t at[LEVEL_MARKS];
    int64_t next_ns[LEVEL_MARKS]; /* the time at that place, INT64_MAX: there is none */
    bool ends_marked;             /* something happens at the very end of the last pixel, which that one shows */
    struct tally tally;
};

/* The first stay from at on that ends behind t_ns: near ones are found fast. */
static size_t stay_after(const struct level_track *track, size_t at, int64_t t_ns)
{
    size_t step = 1, high = at;
    while (high < track->n && track->stays[high].to_ns <= t_ns) {
        at = high + 1;
        high += step;
        step *= 2;
    }
    high = high < track->n ? high : track->n;
    while (at < high) {
        size_t middle = at + (high - at) / 2;
        if (track->stays[middle].to_ns <= t_ns)
            at = middle + 1;
        else
            high = middle;
    }
    return at;
}

/* The stay that fills [from_ns, to_ns], or NULL: none lies in it, and *is_plain; else it is neither. *until_ns is
 * lowered to where that ends. */
static const struct level_stay *whole(const struct cursor *cursor, int64_t from_ns, int64_t to_ns, int64_t *until_ns,
                                      bool *is_plain)
{
    const struct level_stay *stay = cursor->at < cursor->track->n ? &cursor->track->stays[cursor->at] : NULL;
    bool fills = stay && stay->from_ns <= from_ns && stay->to_ns >= to_ns;
    bool is_apart = !stay || (!fills && stay->from_ns >= to_ns);
    int64_t end_ns = fills ? stay->to_ns : stay ? stay->from_ns : INT64_MAX;
    *is_plain = *is_plain && (fills || is_apart);
    *until_ns = end_ns < *until_ns ? end_ns : *until_ns;
    return fills ? stay : NULL;
}

static int32_t key_for(const struct level_picture *picture, int32_t key)
{
    return key != LEVEL_NO_KEY && picture->key ? picture->key(picture->key_context, key) : key;
}

/* Adds what lies in a window of a stay that runs. */
static void add_clipped(struct drawing *drawing, const struct level_stay *stay, int64_t from_ns, int64_t to_ns)
{
    from_ns = stay->from_ns > from_ns ? stay->from_ns : from_ns;
    to_ns = stay->to_ns < to_ns ? stay->to_ns : to_ns;
    if (stay->part == LEVEL_RUNNING)
        tally_add(&drawing->tally, key_for(drawing->picture, stay->key), minus(to_ns, from_ns));
}

/* Adds what ran in blocks [first, end). */
static void add_blocks(struct drawing *drawing, const struct level_track *track, size_t first, size_t end)
{
    size_t level = 0, n = level_n_blocks(track->n);
    while (first < end) {
        for (; first < end && first % LEVEL_FAN; first++)
            tally_add(&drawing->tally, key_for(drawing->picture, track->tops[level + first].key),
                      track->tops[level + first].ns);
        for (; first < end && end % LEVEL_FAN; end--)
            tally_add(&drawing->tally, key_for(drawing->picture, track->tops[level + end - 1].key),
                      track->tops[level + end - 1].ns);
        first /= LEVEL_FAN;
        end /= LEVEL_FAN;
        level += n;
        n = (n + LEVEL_FAN - 1) / LEVEL_FAN;
    }
}

/* The key that ran longest in a window, of the stays [first, end) that have a part in it. */
static struct level_top heaviest(struct drawing *drawing, const struct level_track *track, size_t first, size_t end,
                                 int64_t from_ns, int64_t to_ns)
{
    size_t first_block = (first + LEVEL_BLOCK) / LEVEL_BLOCK, end_block = end ? (end - 1) / LEVEL_BLOCK : 0;
    bool has_blocks = end_block > first_block + LEVEL_FAN;
    size_t low = has_blocks ? first_block * LEVEL_BLOCK : end, high = has_blocks ? end_block * LEVEL_BLOCK : end;
    tally_clear(&drawing->tally);
    for (size_t i = first; i < low; i++)
        add_clipped(drawing, &track->stays[i], from_ns, to_ns);
    if (has_blocks)
        add_blocks(drawing, track, first_block, end_block);
    for (size_t i = high; i < end; i++)
        add_clipped(drawing, &track->stays[i], from_ns, to_ns);
    return tally_top(&drawing->tally);
}

/* Index behind the last stay that begins before to_ns. */
static size_t end_of(const struct cursor *cursor, int64_t to_ns)
{
    size_t end = stay_after(cursor->track, cursor->at, to_ns);
    return end < cursor->track->n && cursor->track->stays[end].from_ns < to_ns ? end + 1 : end;
}

/* The sums of one pixel in which several stays lie. */
static void draw_mixed(struct drawing *drawing, int64_t from_ns, int64_t to_ns, struct level_cell *cell)
{
    const struct level_track *track = &drawing->track;
    int64_t before[LEVEL_PARTS];
    size_t after = stay_after(track, drawing->own.at, to_ns);
    sums_at(track, drawing->own.at, from_ns, before);
    sums_at(track, after, to_ns, cell->parts_ns);
    for (size_t part = 0; part < LEVEL_PARTS; part++)
        cell->parts_ns[part] = minus(cell->parts_ns[part], before[part]);
    size_t end = end_of(&drawing->keys, to_ns);
    struct level_top top = heaviest(drawing, drawing->keys.track, drawing->keys.at, end, from_ns, to_ns);
    cell->key = top.key;
    cell->key_ns = top.ns;
}

/* Counts the marks of a pixel; where there are none, *until_ns is lowered to where the next one is. */
static bool draw_marks(struct drawing *drawing, int64_t to_ns, struct level_cell *cell, int64_t *until_ns)
{
    bool has_any = false;
    for (unsigned mark = 0; mark < LEVEL_MARKS; mark++) {
        const struct times *times = &drawing->times[mark];
        size_t end = drawing->next_ns[mark] < to_ns ? time_at(times, drawing->at[mark], to_ns) : drawing->at[mark];
        cell->n_marks[mark] = end - drawing->at[mark];
        if (end > drawing->at[mark]) {
            has_any = true;
            drawing->at[mark] = end;
            drawing->next_ns[mark] = end < times->n ? time_of(times, end) : INT64_MAX;
        }
        if (drawing->next_ns[mark] < *until_ns)
            *until_ns = drawing->next_ns[mark];
    }
    return has_any;
}

/* The cell that begins with pixel x. */
static struct level_cell draw_cell(struct drawing *drawing, size_t x)
{
    const int64_t *edges = drawing->picture->edges;
    int64_t from_ns = edges[x], to_ns = edges[x + 1], until_ns = INT64_MAX;
    bool is_last = x + 1 == drawing->picture->width, is_plain = true;
    struct level_cell cell = {.x = x, .n = 1, .key = LEVEL_NO_KEY, .length_ns = to_ns > from_ns ? to_ns - from_ns : 1};
    drawing->own.at = stay_after(drawing->own.track, drawing->own.at, from_ns);
    drawing->keys.at = stay_after(drawing->keys.track, drawing->keys.at, from_ns);
    bool has_marks = draw_marks(drawing, to_ns + (is_last && to_ns < INT64_MAX), &cell, &until_ns);
    const struct level_stay *stay = whole(&drawing->own, from_ns, to_ns, &until_ns, &is_plain);
    const struct level_stay *keyed = whole(&drawing->keys, from_ns, to_ns, &until_ns, &is_plain);
    if (!is_plain) {
        draw_mixed(drawing, from_ns, to_ns, &cell);
        return cell;
    }
    if (stay)
        cell.parts_ns[stay->part % LEVEL_PARTS] = cell.length_ns;
    if (keyed && keyed->part == LEVEL_RUNNING) {
        cell.key = key_for(drawing->picture, keyed->key);
        cell.key_ns = cell.length_ns;
    }
    size_t end = x + 1;
    if (!has_marks) { /* pixels without length where it ends are of what is there then */
        end = edge_at(edges, drawing->picture->width + 1, x + 1, until_ns);
        end -= end > drawing->picture->width || edges[end] > until_ns;
    }
    end -= end == drawing->picture->width && end > x + 1 && drawing->ends_marked;
    cell.n = end > x ? end - x : 1;
    return cell;
}

/* Pages of files that are resident; 0: the system does not say. */
static uint64_t resident_pages(void)
{
    unsigned long long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*s %*s %llu", &n_pages) != 1)
        n_pages = 0;
    if (file)
        (void)fclose(file);
    return n_pages;
}

/* A page fault makes sixteen pages of a file resident or, where the system keeps them together, 2 MiB. */
void levels_rest(const struct levels *levels)
{
    enum { LARGE_BYTES = 64 << 20, FAULTS = 16, REST_BYTES = 48 << 20 };
    struct levels *own = (struct levels *)(uintptr_t)levels; /* they are the same, of which less is resident */
    struct rusage usage;
    if (!levels->map || levels->n_map < LARGE_BYTES || getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    uint64_t n_faults = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
    if (n_faults - levels->n_faults < FAULTS)
        return;
    own->n_faults = n_faults;
    uint64_t n_pages = resident_pages();
    own->n_least = n_pages < own->n_least || !own->n_least ? n_pages : own->n_least;
    if (n_pages && (n_pages - own->n_least) * (uint64_t)sysconf(_SC_PAGESIZE) < REST_BYTES)
        return;
    (void)madvise(levels->map, levels->n_map, MADV_DONTNEED);
    own->n_least = resident_pages();
}

void levels_draw(const struct levels *levels, size_t row, const struct level_picture *picture)
{
    enum { REST_CELLS = 64 };
    const struct level_row *of = &levels->rows[row];
    struct drawing drawing = {.picture = picture, .track = levels_track(levels, row)};
    drawing.own = (struct cursor){&drawing.track, level_stay_at(&drawing.track, picture->edges[0])};
    drawing.keys = drawing.own;
    if (picture->keys)
        drawing.keys = (struct cursor){picture->keys, level_stay_at(picture->keys, picture->edges[0])};
    for (unsigned mark = 0; mark < LEVEL_MARKS; mark++) {
        const struct times *times = &drawing.times[mark];
        drawing.times[mark] = times_of(levels, of, mark);
        drawing.at[mark] = time_at(times, 0, picture->edges[0]);
        drawing.next_ns[mark] = drawing.at[mark] < times->n ? time_of(times, drawing.at[mark]) : INT64_MAX;
        size_t end = time_at(times, drawing.at[mark], picture->edges[picture->width]);
        drawing.ends_marked |= end < times->n && time_of(times, end) == picture->edges[picture->width];
    }
    for (size_t x = 0, n_cells = 1; x < picture->width; n_cells++) {
        struct level_cell cell = draw_cell(&drawing, x);
        picture->cell(picture->context, &cell);
        x += cell.n;
        if (n_cells % REST_CELLS == 0)
            levels_rest(levels);
    }
    levels_rest(levels);
}
