/* SPDX-License-Identifier: BSD-3-Clause */
/* What hpcprof and hpcprof-mpi have in common: everything but main and the team. */
#ifndef LOCUS_TOOLS_HPCPROF_HPCPROF_H
#define LOCUS_TOOLS_HPCPROF_HPCPROF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "base/workers.h"
#include "database/database.h"

/* The whole program; team: the processes that share the work, NULL for hpcprof. Returns the exit status. */
int hpcprof_main(int argc, char **argv, const struct team *team);

/* --- settings.c: the command line --- */

struct list {
    const char **items; /* NULL-terminated, or NULL */
    size_t n, capacity;
};

struct settings {
    const struct option_spec *spec;
    const struct team *team;
    const char *output, *xml, *title;
    struct list search, replace, structures;
    struct list only_exes;       /* names of programs; empty: all */
    struct option_unused unused; /* those of HPCToolkit that mean nothing here */
    struct list without_effect;  /* sentences about options that were given and do nothing */
    size_t n_threads;
    enum summary_kind xml_metrics;
    bool has_metric, forces_metrics, without_metric_files;
    bool extends, no_sources, keeps_instructions, shows_interpreter, quiet, verbose;
};

/* Reads the command line into *settings, whose team is set. The first operand's index goes into *first. Returns -1 when
 * the program goes on, else its exit status. */
int settings_take(struct settings *settings, int argc, char **argv, int *first);
void settings_fini(struct settings *settings);

#endif
