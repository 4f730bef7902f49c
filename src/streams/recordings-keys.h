/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of session files, for who writes and who reads them (doc/FORMAT.md). Those with blanks are KernelShark's.
 */
#ifndef LOCUS_STREAMS_RECORDINGS_KEYS_H
#define LOCUS_STREAMS_RECORDINGS_KEYS_H

#include "streams/recordings.h"

#define RECORDINGS_FORMAT "locus-session"
#define RECORDINGS_VIEWS "NUMA TV"
#define RECORDINGS_VIEWS_TYPE "kshark.config.topology"
#define RECORDINGS_FILTER_TYPE "kshark.config.filter"
#define RECORDINGS_KERNELSHARK "kshark.config.session"

enum { RECORDINGS_VERSION = 2 };

static const char *const recordings_list_keys[RECORDING_LISTS] = {[STREAM_SHOW_EVENT] = "show event filter",
                                                                  [STREAM_HIDE_EVENT] = "hide event filter",
                                                                  [STREAM_SHOW_TASK] = "show task filter",
                                                                  [STREAM_HIDE_TASK] = "hide task filter",
                                                                  [STREAM_SHOW_CPU] = "show cpu filter",
                                                                  [STREAM_HIDE_CPU] = "hide cpu filter",
                                                                  [RECORDING_FIELDS] = "fields"};

static const char *const recordings_choice_keys[RECORDING_CHOICES] = {"task", "cpu", "event", "filter"};
static const char *const recordings_marker_keys[2] = {"a", "b"};

/* Whether the texts of a list are names, or conditions; else they are numbers. */
static inline bool recordings_list_has_names(size_t list)
{
    return list == STREAM_SHOW_EVENT || list == STREAM_HIDE_EVENT || list == RECORDING_FIELDS;
}

#endif
