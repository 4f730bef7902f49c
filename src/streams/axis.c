/* SPDX-License-Identifier: BSD-3-Clause */
/* Which clocks are the same, and how far others are apart: see axis.h. */
#include "streams/axis.h"

#include <string.h>

const char *axis_way_name(enum axis_way way)
{
    static const char *const names[] = {"its own clock", "same clock", "time of day", "given"};
    return names[way];
}

static bool is_same_host(const struct stream *a, const struct stream *b)
{
    return a->host && b->host && strcmp(a->host, b->host) == 0;
}

/* Whether two streams have one clock for certain: that of the world, or of one boot of one host. */
static bool has_same_clock(const struct stream *a, const struct stream *b)
{
    if (a->clock != b->clock || a->clock == STREAM_CLOCK_UNKNOWN)
        return false;
    if (a->clock == STREAM_CLOCK_WALL)
        return true;
    return a->trace_id && a->trace_id == b->trace_id && (!a->host || !b->host || is_same_host(a, b));
}

static int no_way(const struct stream *first, const struct stream *other, struct error *err)
{
    return error_set(err, ERR_USAGE,
                     "%.300s: nothing says how its clock (%s, host %.60s) lies to that of %.300s (%s, host %.60s); "
                     "give --offset SECONDS before it",
                     other->path, stream_clock_name(other->clock), other->host ? other->host : "not known", first->path,
                     stream_clock_name(first->clock), first->host ? first->host : "not known");
}

static int shift(struct stream *stream, int64_t by_ns, struct error *err)
{
    size_t n = stream->n_events;
    int64_t ignored;
    if (n && (__builtin_add_overflow(stream->events[0].t_ns, by_ns, &ignored) ||
              __builtin_add_overflow(stream->events[n - 1].t_ns, by_ns, &ignored)))
        return error_set(err, ERR_RANGE, "%.600s: its times cannot be moved by so much", stream->path);
    for (size_t i = 0; by_ns && i < n; i++)
        stream->events[i].t_ns += by_ns;
    stream->offset_ns += by_ns;
    return 0;
}

int axis_align(struct axis_stream *streams, size_t n, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        struct axis_stream *own = &streams[i];
        const struct stream *first = streams[0].stream;
        int64_t by_ns = own->is_given ? own->given_ns : 0;
        if (own->is_given)
            own->way = AXIS_GIVEN;
        else if (i == 0)
            own->way = AXIS_FIRST;
        else if (has_same_clock(first, own->stream))
            own->way = AXIS_CLOCK;
        else if (first->has_wall && own->stream->has_wall)
            own->way = AXIS_WALL;
        else
            return no_way(first, own->stream, err);
        if (own->way == AXIS_WALL && __builtin_sub_overflow(own->stream->wall_ns, first->wall_ns, &by_ns))
            return error_set(err, ERR_RANGE, "%.600s: its time of day is impossible", own->stream->path);
        /* the first one may have been moved itself, and what lies to it goes with it */
        if (i > 0 && !own->is_given && __builtin_add_overflow(by_ns, first->offset_ns, &by_ns))
            return error_set(err, ERR_RANGE, "%.600s: its times cannot be moved by so much", own->stream->path);
        code = shift(own->stream, by_ns, err);
    }
    return code;
}
