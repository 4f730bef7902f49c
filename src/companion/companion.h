/* SPDX-License-Identifier: BSD-3-Clause */
/* The companion: one process per launched program, in a session of its own, that holds the arenas of the program and of
 * all processes it starts, answers their requests and writes their measurements. It never prints: its messages go into
 * a file of the measurement directory. Ordinary code, single-threaded; long work runs in forked workers, so that a
 * large module or profile never delays an answer and a crash over a corrupt file loses nothing else.
 *
 * The room: companion.c is the loop and may call all others: talk.c answers messages, process.c and memory.c keep
 * processes and their arenas, jobs.c starts workers, of which write.c writes measurements and recipes.c makes recipes;
 * homes.c and watchdog.c look at running processes, detour.c at other places for files, log.c has the messages; copy.c
 * is for those who look at a process from outside.
 * sched-recorder.c is a process of its own. What they share is in state.h. */
#ifndef LOCUS_HPCRUN_COMPANION_H
#define LOCUS_HPCRUN_COMPANION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena/arena.h"
#include "base/error.h"
#include "measurement/pending.h"

#define COMPANION_NAME_MAX 64
#define COMPANION_ENV_MAX (COMPANION_NAME_MAX + 80)

/* What is recorded of the scheduler: see sched-recorder.c. */
enum { COMPANION_SCHED_FORMATS = 3, COMPANION_SCHED_FORMAT_BYTES = 4096 };
struct companion_sched {
    uint32_t tier; /* enum sched_tier: the best one to try; 0: nothing */
    uint32_t rank; /* for the name of the file */
    bool has_all;  /* the threads of other programs, too */
    char why[768]; /* what keeps better tiers away */
    char formats[COMPANION_SCHED_FORMATS][COMPANION_SCHED_FORMAT_BYTES]; /* of sched_switch, sched_waking,
                                                                          * sched_migrate_task, for the first tier */
};

/* What the launcher hands over; plain values, copied by the fork. */
struct companion_setup {
    char dir[ARENA_PATH_MAX];       /* measurement directory, absolute */
    uint64_t dir_device, dir_inode; /* which directory that is, 0 = not checked */
    char tables[ARENA_PATH_MAX];    /* directory of the module-table cache, absolute; empty: none */
    char exe[ARENA_PATH_MAX];       /* executable whose tables are prepared at the start; empty: none */
    char loader[ARENA_PATH_MAX];    /* its dynamic loader, which lists the libraries it needs; empty: none */
    char local[ARENA_PATH_MAX];     /* a place on this node for arenas, and for files that are moved on later; empty:
                                     * none */
    char library[ARENA_PATH_MAX];   /* libhpcrun.so, prepared too; empty: none */
    unsigned n_jobs;                /* modules prepared at the same time, 0 = default */
    char plan[1024];                /* the launcher's line: which source and why */
    char skid_json[4096];           /* figures of the skid self-test, empty when none */
    struct arena_event events[ARENA_EVENTS_MAX];
    uint32_t n_events;
    uint32_t trace, delay_sampling, trust_skid;     /* as in struct arena_header */
    uint64_t tick_ns, test_sample_ns, debug;        /* as in struct arena_header */
    uint32_t start_signal, stop_signal, lifetime_s; /* as in struct arena_header */
    uint64_t delay_ns, duration_ns;   /* sampling begins so long after the first process; ends so long after that */
    double fraction;                  /* the part of the processes that is measured; 0: all */
    uint64_t min_bytes, sample_bytes; /* as in struct arena_header */
    uint64_t raise_most;              /* the same */
    bool has_small_sites;             /* as in struct arena_header */
    uint64_t arena_bytes;             /* wanted size of each arena, 0 = default */
    uint64_t ahead_bytes;             /* kept allocated ahead of what is in use, 0 = default */
    uint64_t max_bytes;               /* all files of one process together, 0 = no limit */
    uint32_t watches_per_s;           /* as in struct arena_header */
    uint32_t lacks;                   /* the same */
    uint32_t deepbind;                /* the same */
    uint64_t trace_bytes;             /* room for the log of samples of one process, 0 = half of the arena */
    uint32_t checkpoint_s;            /* seconds between checkpoints, 0 = default */
    uint64_t mark_ms;                 /* from a process's start to the mark of what is live in it; 0 = none */
    bool writes_topology;             /* hwloc XML of the host, once per host */
    bool writes_memleak;              /* allocations are worth a file without any sample */
    bool leaves_own_kind;             /* processes of this executable, hpcrun, are not measured */
    pid_t launched_pid;               /* the launched program, 0 = none */
    int launched_pidfd; /* its pidfd, -1 = none: where the kernel has none, launched_pid is checked instead */
    int way_fd;         /* the companion's end of the inherited way, 0 = none */
    struct companion_sched sched;
    int ready_fd;      /* closed once the program may start, or cannot be measured; 0 = none */
    char terminal[64]; /* of the launcher, for reporting trouble once the program has ended; empty: none */
    int done_fd;       /* closed once the launched program has ended and is written; -1 = none */
};

/* Binds an abstract SOCK_SEQPACKET socket and fills name with what goes into COMPANION_ENV.
 * Returns the listening descriptor (CLOEXEC) or a negative code.  err: ERR_IO */
int companion_listen(char name[COMPANION_NAME_MAX], struct error *err);

/* Opens the way that the program's processes will inherit: setup->way_fd is the companion's end; the result is the
 * other one (CLOEXEC), -1 when there is none: then the socket remains. */
int companion_way_open(struct companion_setup *setup);

/* For the process that becomes the program: moves its end of the way to a high number, where it is inherited and does
 * not disturb the program, and fills value with what goes into COMPANION_ENV. Without a way (-1), or a free number for
 * it, that is the name alone. */
void companion_way_keep(int way_fd, const char *name, char value[COMPANION_ENV_MAX]);

/* Starts the companion as a double-forked process of a new session, all descriptors but its own closed, and closes the
 * caller's listen_fd and setup->way_fd. It returns when the companion serves and, where the scheduler is to be
 * recorded, when that has begun; if it cannot, err->text says why, else it is empty. Returns the companion's pid or a
 * negative code.  err: ERR_IO */
pid_t companion_start(const struct companion_setup *setup, int listen_fd, struct error *err);

/* The companion's life: serves until the launched program and all registered processes have ended and are written.
 * Returns an exit status. For companion_start and for tests. */
int companion_run(const struct companion_setup *setup, int listen_fd);

/* Adds a line to the index of host_id in dir: process pid, running exe, was not measured. */
void companion_index_unmeasured(const char *dir, uint32_t host_id, pid_t pid, const char *exe, const char *why);

/* Whether a process is measured when only a fraction of them is. rank >= 0: rank 0, and every further one that is
 * needed to bring the number of measured ranks to this fraction, so that the choice is the same in every run; else a
 * hash of the process id decides. fraction 0 means all. */
bool companion_chooses(double fraction, int rank, pid_t pid);

/* Why a process was not chosen, for the index; rank as above. */
void companion_explain_choice(char *text, size_t n_text, int rank);

/* The result of collecting. */
struct companion_collected {
    char dir[DETOUR_PATH_MAX]; /* where everything is now, a real path */
    size_t n_processes;        /* whose files are there now */
    size_t n_arenas;           /* of them, those whose files were made of an arena that was left behind */
    size_t n_problems;         /* something remains: tell was called with a sentence for each */
};

/* Turns arenas that were left behind into files and moves everything that belongs into dir there: from place (NULL:
 * none), from the default place, and from dir itself. dir may be gone: then it is made again. allows_foreign: as
 * names_directory_make.  err: ERR_IO, ERR_MEMORY */
int companion_collect(const char *dir, const char *place, bool allows_foreign, void (*tell)(const char *sentence),
                      struct companion_collected *collected, struct error *err);

/* The same for arenas that processes have left in the measurement directory dir. Returns how many. */
size_t companion_collect_left(const char *dir, void (*tell)(const char *sentence));

/* Writes the files of a process of this user that runs on into directory `to`, as a checkpoint would be written into
 * its measurement directory `from`. arena: its records, mapped for reading, size_bytes long.
 * err: ERR_FORMAT (no arena), ERR_IO, ERR_MEMORY */
int companion_copy(const void *arena, size_t size_bytes, const char *from, const char *to, struct error *err);

#endif
