/* SPDX-License-Identifier: BSD-3-Clause */
/* API for profiled programs: choose the part of a run that is sampled. Link with nothing: the functions come with
 * hpcrun's library; declare them weak if the program shall also run without it. */
#ifndef LOCUS_HPCTOOLKIT_H
#define LOCUS_HPCTOOLKIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the sampling, after hpcrun --delay-sampling or a stop. Takes effect on all threads. */
void hpctoolkit_sampling_start(void);

/* Stops the sampling of the whole process. */
void hpctoolkit_sampling_stop(void);

/* 1 while samples are being taken, 0 otherwise. */
int hpctoolkit_sampling_is_active(void);

#ifdef __cplusplus
}
#endif

#endif
