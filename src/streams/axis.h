/* SPDX-License-Identifier: BSD-3-Clause */
/* Several streams on one axis of time, which is the clock of the first one. How the others lie to it is either known,
 * or the user says it: it is never guessed, and always stated. Ordinary code. */
#ifndef LOCUS_STREAMS_AXIS_H
#define LOCUS_STREAMS_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "streams/stream.h"

/* How it is known where a stream lies on the axis. */
enum axis_way {
    AXIS_FIRST, /* the axis is its clock */
    AXIS_CLOCK, /* it has the same clock: the same one of the same boot, or the same recording */
    AXIS_WALL,  /* by the time of day, which both recordings know */
    AXIS_GIVEN  /* somebody said so */
};

/* The name of a way for people, such as "time of day". */
const char *axis_way_name(enum axis_way way);

/* A stream that is to be brought onto the axis. */
struct axis_stream {
    struct stream *stream; /* borrowed */
    bool is_given;
    int64_t given_ns;  /* what is to be added to its times */
    enum axis_way way; /* the answer; what was added is in stream->offset_ns */
};

/* Moves the events of all streams [n] onto the clock of the first.
 * err: ERR_USAGE (it is not known how two of them lie to each other), ERR_RANGE (times would overflow) */
int axis_align(struct axis_stream *streams, size_t n, struct error *err);

#endif
