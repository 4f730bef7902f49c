/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that a launch needs before the companion and the program start. Ordinary code. */
#ifndef LOCUS_HPCRUN_PREPARE_H
#define LOCUS_HPCRUN_PREPARE_H

#include "companion/companion.h"
#include "hpcrun-options.h"
#include "program.h"
#include "run-directory.h"
#include "sampling/source.h"

/* One launch. */
struct prepared {
    struct program program;
    struct source_plan plan;
    struct companion_setup setup;
    char library[PROGRAM_PATH_MAX]; /* libhpcrun.so */
    char socket[COMPANION_NAME_MAX];
    int listen_fd;
    int way_fd; /* the program's end of the inherited way, -1: none */
    struct run run;      /* as the measurement directory has it */
    char note[PROGRAM_PATH_MAX + 128]; /* about that directory, for the user; "" for none */
};

/* Resolves the events of options and environment into *plan.
 * err: ERR_USAGE and ERR_RANGE wrong events, ERR_UNSUPPORTED refused on this machine */
int prepare_plan(const struct hpcrun_options *options, struct source_plan *plan, struct error *err);

/* Finds the library, makes the measurement directory, measures the skid where that matters (kept per machine), fills
 * the companion's setup and opens its socket.  err: ERR_IO, ERR_NOT_FOUND, ERR_MEMORY */
int prepare_rest(const struct hpcrun_options *options, struct prepared *prepared, struct error *err);

/* For a program that is not measured, because its rank was not chosen: makes the directory and writes a line into its
 * index.  err: ERR_IO, ERR_MEMORY */
int prepare_left_out(const struct hpcrun_options *options, struct prepared *prepared, int rank, struct error *err);

/* Finds libhpcrun.so: beside this executable in a build tree, else where it is installed.  err: ERR_NOT_FOUND */
int prepare_library(char *path, size_t n, struct error *err);

/* Directory of the running executable, with a final slash; empty when it cannot be told. */
void prepare_own_directory(char *path, size_t n);

#endif
