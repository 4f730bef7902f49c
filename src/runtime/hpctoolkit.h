/* SPDX-License-Identifier: BSD-3-Clause */
/* API for profiled programs: choose the part of a run that is sampled. There is nothing to link: hpcrun's library
 * brings the functions. Declare them weak if the program should also run without it. */
#ifndef LOCUS_HPCTOOLKIT_H
#define LOCUS_HPCTOOLKIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the sampling of all threads of the process: after hpcrun -ds, after a stop, or before a delay is over. Does
 * nothing when sampling is already on, or when the time given by hpcrun --duration is over. May be called from any
 * thread and in a signal handler. */
void hpctoolkit_sampling_start(void);

/* Stops the sampling of all threads; blocks allocated in the meantime are still recorded. Calls do not nest: one start
 * undoes any number of stops. */
void hpctoolkit_sampling_stop(void);

/* 1 while samples are being taken, 0 otherwise; also 0 when the process is not measured. */
int hpctoolkit_sampling_is_active(void);

#ifdef __cplusplus
}
#endif

#endif
