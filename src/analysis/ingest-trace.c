/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace beside a profile: its records wait in the temporary file until the scopes of their nodes are known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/ingest.h"
#include "fmt/trace.h"

enum { PIECE_BYTES = 1 << 18 };

struct taking {
    struct ingest *ingest;
    const struct raw_ids *ids;
    struct ingested *profile;
    uint64_t ns_per_tick, before_ns;
    struct buf waiting;
};

static int flush(struct taking *taking, struct error *err)
{
    struct ingested *profile = taking->profile;
    struct buf *waiting = &taking->waiting;
    if (waiting->failed || !vec_reserve(&profile->trace_pieces, &profile->cap_trace_pieces, profile->n_trace_pieces + 1,
                                        sizeof *profile->trace_pieces))
        return error_set(err, ERR_MEMORY, "out of memory for a trace");
    int code = spill_append(taking->ingest->spill, waiting->data, waiting->len_bytes,
                            &profile->trace_pieces[profile->n_trace_pieces], err);
    profile->n_trace_pieces += code == 0;
    waiting->len_bytes = 0;
    if (code)
        __atomic_store_n(&taking->ingest->is_spill_full, true, __ATOMIC_RELAXED);
    return code;
}

static int take_records(void *context, const struct trace_record *records, size_t n_records, struct error *err)
{
    struct taking *taking = context;
    struct ingested *profile = taking->profile;
    for (size_t i = 0; i < n_records; i++) {
        struct ingest_event event = {records[i].time * taking->ns_per_tick,
                                     raw_ids_find(taking->ids, records[i].node)};
        if (event.node != RAW_NONE)
            raw_store_mark(taking->ingest->store, event.node, RAW_IS_TRACED);
        char bytes[INGEST_EVENT_BYTES];
        memcpy(bytes, &event.time_ns, 8);
        memcpy(bytes + 8, &event.node, 4);
        buf_append(&taking->waiting, bytes, sizeof bytes);
        if (profile->n_events == 0 || event.time_ns < profile->min_time_ns)
            profile->min_time_ns = event.time_ns;
        if (event.time_ns > profile->max_time_ns)
            profile->max_time_ns = event.time_ns;
        profile->is_disordered |= event.time_ns < taking->before_ns;
        taking->before_ns = event.time_ns;
        profile->n_events++;
    }
    return taking->waiting.failed || taking->waiting.len_bytes > PIECE_BYTES ? flush(taking, err) : 0;
}

int ingest_trace(struct ingest *ingest, const char *profile_path, const struct hpcrun_profile *head,
                 const struct raw_ids *ids, struct ingested *profile, struct error *err)
{
    char path[4400];
    size_t len = strlen(profile_path);
    if (len < 7 || strcmp(profile_path + len - 7, ".hpcrun") != 0 || len + 10 > sizeof path)
        return 0;
    (void)snprintf(path, sizeof path, "%.*s.hpctrace", (int)(len - 7), profile_path);
    if (access(path, F_OK) != 0)
        return 0;
    /* profiles before version 03 have times in microseconds */
    struct taking taking = {.ingest = ingest, .ids = ids, .profile = profile};
    taking.ns_per_tick = strcmp(head->version, "03") < 0 ? 1000 : 1;
    int code = trace_visit(path, take_records, &taking, err);
    if (code == 0 && taking.waiting.len_bytes)
        code = flush(&taking, err);
    buf_fini(&taking.waiting);
    if (code) {
        profile->n_events = profile->n_trace_pieces = 0;
    }
    return code;
}
