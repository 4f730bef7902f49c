/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher: its command line, what it does before and after the program runs, and what it says of a machine.
 * Ordinary code; hpcrun is thin: what lives beside the program is src/companion. */
#ifndef LOCUS_TOOLS_HPCRUN_HPCRUN_H
#define LOCUS_TOOLS_HPCRUN_HPCRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/options.h"
#include "companion/companion.h"
#include "measurement/runs.h"
#include "sampling/source.h"

#define HPCRUN_EVENTS_MAX 32

/* Options that are accepted for older scripts. */
enum { HPCRUN_IGNORED_MERGE, HPCRUN_IGNORED_RECURSION, HPCRUN_IGNORED_FNBOUNDS, HPCRUN_IGNORED };

/* The command line as given; strings are borrowed from argv. All zero is the default. */
struct hpcrun_options {
    const char *events[HPCRUN_EVENTS_MAX];
    unsigned n_events;
    const char *count, *output;
    const char *local;   /* --local, or the environment's; NULL: none */
    const char *collect; /* --collect: a measurement directory */
    const char *copy;    /* --copy: what becomes one */
    const char *fraction, *memleak_prob;
    const char *jobs_symtab;
    struct option_unused unused;         /* those of HPCToolkit that mean nothing here */
    const char *ignored[HPCRUN_IGNORED]; /* sentences about options that were given and do nothing; NULL between */
    uint64_t memsize_bytes, low_memsize_bytes;
    uint64_t max_bytes;     /* --max-size, or its default */
    uint64_t trace_bytes;   /* --trace-size, or its default */
    uint32_t watches_per_s; /* --verify-sharing; 0: not given */
    uint64_t sample_bytes;  /* -ck SAMPLE_BYTES */
    uint32_t checkpoint_s;  /* -ck CHECKPOINT_SECONDS */
    uint64_t mark_ns;       /* --leaks-at; 0 when not given */
    double part;            /* -f, 1 when not given */
    uint64_t delay_ns, duration_ns;
    uint32_t start_signal, stop_signal, lifetime_s;
    bool trace, delay, waits_for_debugger;
    const char *machine;                  /* --machine: directory that describes the machine to look at */
    const char *tries[HPCRUN_EVENTS_MAX]; /* --try: a database, and ACTION:VARIABLE */
    unsigned n_tries;
    unsigned n_pairs;        /* --pairs, or its default */
    const char *metric;      /* --metric; NULL: none */
    const char *trial;       /* --doctor=NAME: only this one (sampling/probe.h); NULL: everything */
    bool allows_foreign;     /* --foreign-directory */
    const char *report_file; /* --report=FILE; NULL: standard error */
    bool lists_names;        /* --list-names, for the completion of shells */
    pid_t attached;          /* --unsafe-attach; 0: none */
    bool appends, lists, doctor, report, leaks, strict, prints_plan, status, control, json;
    uint32_t deepbind; /* enum arena_deep */
    uint64_t debug;    /* HPCRUN_DEBUG, as in struct arena_header */
    char **command;    /* ends with NULL; command[0] NULL when there is none */
};

/* Parses argv. Returns 0, 1 when a standard option (help, version) was answered, or a negative code.
 * err: ERR_USAGE */
int hpcrun_options_parse(int argc, char **argv, struct hpcrun_options *options, struct error *err);

/* --- program.c: where the program is, and whether it can be executed and measured --- */

#define PROGRAM_PATH_MAX 4096
#define PROGRAM_BUILD_ID_MAX 129 /* hexadecimal digits of 64 bytes, and the end */

/* What was found out about a command. */
struct program {
    char path[PROGRAM_PATH_MAX];   /* as it will be executed */
    char binary[PROGRAM_PATH_MAX]; /* the ELF file that runs: itself, or the interpreter of a script; may be empty */
    char loader[PROGRAM_PATH_MAX]; /* its dynamic loader (PT_INTERP), empty when static */
    char sanitizer[64];                  /* a sanitizer's library that must be loaded first, empty when none */
    bool is_ia32;                        /* of 32 bits, where programs have 64 */
    bool is_static;                      /* there is no loader: the runtime is inside, or nothing can be measured */
    int exit_status; /* when it cannot be executed: 127 not found, 126 found but not executable; else 0 */
};

/* Looks for command as execvp(3) does. err: ERR_NOT_FOUND or ERR_IO, with program->exit_status set */
int program_find(const char *command, struct program *program, struct error *err);

/* Whether the program found can be measured; it can be executed in any case.
 * err: ERR_UNSUPPORTED: static (use hpclink), other word size or machine, musl, privileged, sanitizer */
int program_check(struct program *program, struct error *err);

/* The build id of its file, or of the interpreter of a script, in hexadecimal digits; "": it has none. */
void program_build_id(const struct program *program, char id[PROGRAM_BUILD_ID_MAX]);

/* --- run-directory.c: the directory of a launch --- */

/* One measurement is one run. A launch gets a directory of its own, unless it is asked to add to the one there is, or
 * belongs to what has begun there: the ranks of one MPI program or Slurm step, and hpcruns that a measured program
 * starts. Nothing is ever removed. */

#define LAUNCH_ENV "HPCRUN_LAUNCH" /* the id of the launch, for the hpcruns that its programs start */

struct run_directory {
    bool adds;           /* to the measurement that is there: no directory of its own is wanted */
    bool is_inherited;   /* the name is that of the launch that this one was started in, if it was */
    bool allows_foreign; /* as names_directory_make */
};

/* Makes the directory name for this launch. An earlier measurement there is moved to name.1, or name.2 and so on, the
 * lowest number being the oldest. Where it cannot be moved, because it is still being written or other files lie in it,
 * the new one takes the number.
 * Writes the real path, malloc'ed, to *real_path, the launch to *run, and to note [n_note] a sentence for the user when
 * the measurement is not where it was wanted, else "".  err: ERR_IO, ERR_MEMORY */
int run_directory_make(const char *name, const struct run_directory *how, char **real_path, struct run *run, char *note,
                       size_t n_note, struct error *err);

/* The rank in this process's environment, -1 when there is none. */
int launch_rank(void);

/* --- prepare.c: what a launch needs before the companion and the program start --- */

/* One launch. */
struct prepared {
    struct program program;
    struct source_plan plan;
    struct companion_setup setup;
    char library[PROGRAM_PATH_MAX];      /* libhpcrun.so */
    char wait_library[PROGRAM_PATH_MAX]; /* libhpcrun-wait.so; "": not wanted */
    char socket[COMPANION_NAME_MAX];
    int listen_fd;
    int way_fd;                        /* the program's end of the inherited way, -1: none */
    struct run run;                    /* as the measurement directory has it */
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

/* Finds a library that is preloaded, NAME.so: beside this executable in a build tree, else where it is installed. Its
 * path goes into path [n].  err: ERR_NOT_FOUND, ERR_UNSUPPORTED (the path cannot be preloaded) */
int prepare_library(const char *name, char *path, size_t n, struct error *err);

/* --- launch.c: the only part of a run that writes to the terminal --- */

/* Plans, checks, starts the companion and executes options->command. Returns only when hpcrun stayed as the parent
 * (the program's exit status; a signal that killed it has been raised again) or when the program could not be
 * executed (an exit status). */
int launch_run(const struct hpcrun_options *options);

/* hpcrun --collect: turns arenas that were left behind into files and moves everything that belongs into
 * options->collect there; says on standard output what came of it.
 * Returns the exit status: 0, also when there was nothing, 1 when something remains. */
int launch_collect(const struct hpcrun_options *options);

/* hpcrun --unsafe-attach: measures process options->attached, which runs already, until it ends, --duration is over, or
 * this process is told to end; then leaves it. Returns an exit status: 0, 1 when it could not be measured, or not be
 * left, 2 for wrong events. */
int launch_attach(const struct hpcrun_options *options);

/* --- report.c: --report, what a user would type next, once for all ranks of a run --- */

struct report_wish {
    const char *dir;  /* measurement directory, real path */
    const char *file; /* NULL: standard error */
    bool with_leaks;
};

/* Notes that the program of this run has ended, as a rank among others if it is one, and prints the report if all of
 * them have. is_measured: of this one there is something to report. Returns 0, or 1 when that failed, after a message.
 */
int report_end(const struct report_wish *wish, const struct run *run, bool is_measured);

/* Whether this run speaks for all ranks when there is something to say at the start. */
bool report_speaks(const char *dir, const struct run *run);

/* --- describe.c: what hpcrun says of a machine: --print-plan, --doctor, -L --- */

/* Resolves the events of options and environment and prints choice and warnings, then for each event a line "[event N]"
 * (from 1, as leader counts) and NAME=VALUE lines: our own fields first, then every field of perf_event_attr in the
 * order of the struct. Behind " # " a line may explain its value.
 * err: as prepare_plan; nothing is printed then */
int plan_print(const struct hpcrun_options *options, FILE *out, struct error *err);

/* Prints for each source whether it works, exactly why not, and the fix; then the skid figures and what else a
 * measurement rests on. Returns an exit status: 1 when no source of data addresses works. */
int doctor_print(FILE *out);

/* Prints the line of one trial (sampling/probe.h). Returns an exit status: 0 it works, 1 it does not, 2 there is no
 * such trial. */
int doctor_try(const char *name, FILE *out);

/* Prints the events that match one of the patterns (ended by NULL; none: all), those that open here with a plus sign;
 * why the others do not stands at the end. Returns their number. */
unsigned list_events(const char *const *patterns, FILE *out);

/* Prints the names of those that open here, one a line. Returns 0, or 1 when out cannot be written. */
int list_event_names(FILE *out);

#endif
