/* SPDX-License-Identifier: BSD-3-Clause */
/* A sink that writes down what it is told, for the unit tests of the allocation wrappers. */
#ifndef LOCUS_TESTS_ALLOC_RECORDER_H
#define LOCUS_TESTS_ALLOC_RECORDER_H

#include "alloc-wrap/alloc-wrap.h"

enum recorder_what {
    RECORD_ALLOC,
    RECORD_RELEASE,
    RECORD_RESIZE_BEGIN,
    RECORD_RESIZE_DONE,
    RECORD_RESIZE_FAILED,
    RECORD_UNMAPPED,
    RECORD_FILE
};

/* One event. */
struct recorder_event {
    enum recorder_what what;
    enum alloc_kind kind;
    void *p, *new_p;
    size_t n_bytes;
    double weight;
    int fd;
    struct alloc_site site;
};

/* Everything since recorder_connect. */
struct recorder {
    struct recorder_event events[256];
    unsigned n_events; /* further events are counted only */
    int n_inside;      /* entered minus left */
    unsigned n_entered, n_skipped[ALLOC_SKIPS];
    double weight_sum, weight_bytes_sum;
    bool not_ready;
    void (*during_alloc)(void); /* called in the middle of alloc */
};

/* Connects a cleared recorder with this threshold and sampling distance; the sink spoils errno in every call. */
struct recorder *recorder_connect(uint64_t min_bytes, uint64_t sample_bytes);

/* Event i counted from the last (0), which must be there. */
const struct recorder_event *recorder_last(const struct recorder *recorder, unsigned i);

#endif
