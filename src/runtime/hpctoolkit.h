/* SPDX-License-Identifier: BSD-3-Clause */
/* API for profiled programs: choose the part of a run that is sampled. Link with nothing: the functions come with
 * hpcrun's library; declare them weak if the program shall also run without it. */
#ifndef LOCUS_HPCTOOLKIT_H
#define LOCUS_HPCTOOLKIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the sampling of all threads of the process, after hpcrun -ds, a stop, or before a delay is over; nothing
 * happens when it runs already, or when the time of hpcrun --duration is over. From any thread, also in a handler. */
void hpctoolkit_sampling_start(void);

/* Stops the sampling of all threads; blocks that are allocated meanwhile are still known afterwards. Calls do not nest:
 * one start undoes any number of stops. */
void hpctoolkit_sampling_stop(void);

/* 1 while samples are being taken, 0 otherwise, also where the process is not measured. */
int hpctoolkit_sampling_is_active(void);

#ifdef __cplusplus
}
#endif

#endif
