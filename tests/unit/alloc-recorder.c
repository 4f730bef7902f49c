/* SPDX-License-Identifier: BSD-3-Clause */
/* The recording sink of the unit tests: see alloc-recorder.h. Single-threaded use. */
#include "alloc-recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_MAX 4096

static struct {
    struct recorder recorder;
    void *live[LIVE_MAX];
    unsigned n_live;
} state;

static struct recorder_event *add_event(enum recorder_what what)
{
    static struct recorder_event overflow;
    struct recorder_event *event =
        state.recorder.n_events < 256 ? &state.recorder.events[state.recorder.n_events] : &overflow;
    state.recorder.n_events++;
    event->what = what;
    errno = E2BIG;
    return event;
}

static unsigned find_live(const void *p)
{
    unsigned i = 0;
    while (i < state.n_live && state.live[i] != p)
        i++;
    return i;
}

static bool remove_live(const void *p)
{
    unsigned i = find_live(p);
    if (i == state.n_live)
        return false;
    state.live[i] = state.live[--state.n_live];
    return true;
}

static void add_live(void *p)
{
    if (find_live(p) == state.n_live && state.n_live < LIVE_MAX)
        state.live[state.n_live++] = p;
}

static bool on_ready(void)
{
    errno = E2BIG;
    return !state.recorder.not_ready;
}

static void on_alloc(enum alloc_kind kind, void *p, size_t n_bytes, double weight, const struct alloc_site *site)
{
    struct recorder_event *event = add_event(RECORD_ALLOC);
    event->kind = kind;
    event->p = p;
    event->n_bytes = n_bytes;
    event->weight = weight;
    event->site = *site;
    state.recorder.weight_sum += weight;
    state.recorder.weight_bytes_sum += weight * (double)n_bytes;
    add_live(p);
    if (state.recorder.during_alloc)
        state.recorder.during_alloc();
}

static bool on_maybe(const void *p)
{
    return find_live(p) < state.n_live;
}

static void on_release(enum alloc_kind kind, void *p)
{
    struct recorder_event *event = add_event(RECORD_RELEASE);
    event->kind = kind;
    event->p = p;
    (void)remove_live(p);
}

static bool on_resize_begin(void *p)
{
    add_event(RECORD_RESIZE_BEGIN)->p = p;
    return on_maybe(p);
}

static void on_resize_done(void *old_p, void *new_p, size_t n_bytes, const struct alloc_site *site)
{
    struct recorder_event *event = add_event(RECORD_RESIZE_DONE);
    event->p = old_p;
    event->new_p = new_p;
    event->n_bytes = n_bytes;
    (void)remove_live(old_p);
    if (site)
        event->site = *site;
    if (n_bytes >= 1024 && site)
        add_live(new_p);
}

static void on_resize_failed(void *old_p)
{
    add_event(RECORD_RESIZE_FAILED)->p = old_p;
}

static void on_unmapped(void *p, size_t n_bytes)
{
    struct recorder_event *event = add_event(RECORD_UNMAPPED);
    event->p = p;
    event->n_bytes = n_bytes;
    (void)remove_live(p);
}

static void on_inside(bool entering)
{
    state.recorder.n_inside += entering ? 1 : -1;
    state.recorder.n_entered += entering;
    errno = E2BIG;
}

static void on_file(void *p, size_t n_bytes, int fd, const struct alloc_site *site)
{
    struct recorder_event *event = add_event(RECORD_FILE);
    event->p = p;
    event->n_bytes = n_bytes;
    event->fd = fd;
    event->site = *site;
    add_live(p);
}

static void on_skipped(enum alloc_skip reason)
{
    state.recorder.n_skipped[reason]++;
}

struct recorder *recorder_connect(uint64_t min_bytes, uint64_t sample_bytes)
{
    static const struct alloc_sink sink = {
        .ready = on_ready,
        .alloc = on_alloc,
        .maybe_recorded = on_maybe,
        .release = on_release,
        .resize_begin = on_resize_begin,
        .resize_done = on_resize_done,
        .resize_failed = on_resize_failed,
        .unmapped = on_unmapped,
        .inside = on_inside,
        .mapped_file = on_file,
        .skipped = on_skipped,
    };
    alloc_wrap_connect(NULL, 0, 0);
    memset(&state, 0, sizeof state);
    alloc_wrap_connect(&sink, min_bytes, sample_bytes);
    memset(&state, 0, sizeof state);
    return &state.recorder;
}

const struct recorder_event *recorder_last(const struct recorder *recorder, unsigned i)
{
    if (i >= recorder->n_events || recorder->n_events > 256)
        abort();
    return &recorder->events[recorder->n_events - 1 - i];
}
