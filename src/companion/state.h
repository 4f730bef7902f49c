/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the companion share: its processes, connections and jobs. Ordinary code, one thread. */
#ifndef LOCUS_COMPANION_STATE_H
#define LOCUS_COMPANION_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "arena/arena.h"
#include "base/error.h"
#include "base/process.h"
#include "base/vec.h"
#include "companion/companion.h"
#include "measurement/names.h"
#include "measurement/pending.h"
#include "symnames/symnames.h"

/* A module as its process describes it. */
struct companion_module {
    uint64_t id;    /* of its table, 0 = not known: then its path is all there is */
    uint64_t start; /* where it is mapped */
    uint64_t inode; /* 0 = not known */
    pid_t pid;      /* 0 = of no process */
};

enum process_state {
    PROCESS_LIVE = 0,
    PROCESS_ENDING, /* a worker writes its files */
    PROCESS_DONE    /* written; kept until the process itself is gone */
};

/* What workers report, in memory that is shared with them. */
struct process_shared {
    struct names_file name; /* of the files, once has_name: those of a checkpoint are replaced by the final ones */
    uint32_t has_name;
    uint32_t is_name_local; /* it was claimed in work_dir */
    char trouble[1024];     /* why the last worker failed */
};

struct companion_homes;

/* What a process had used when the watchdog looked last. */
struct companion_watchdog {
    int64_t looked_ms; /* 0: never */
    uint64_t cpu_ns, handler_ns, n_taken;
    unsigned n_bad; /* looks in a row at which it seemed to hang in its own samples */
    bool is_halted;
};

/* One arena and the process that fills it. A pid that calls exec has one after another. */
struct companion_process {
    struct companion_process *next;
    uint32_t pid;    /* as the process sees itself: for names and headers */
    pid_t peer_pid;  /* as we see it */
    uid_t peer_uid;  /* as the kernel reported when it came */
    bool is_foreign; /* of another user, at root's companion: what it says must not lead root to that user's files */
    int pidfd;       /* -1 once the process is known to be gone, or where the kernel has no pidfds */
    bool is_gone;
    uint64_t start; /* without pidfd: when it started, in the kernel's ticks, 0 = not known */
    int arena_fd, bell_fd;
    uint64_t n_bells;           /* rung for requests */
    int64_t bell_due_ms;        /* it is not listened to before */
    int map_fd, dump_fd;        /* files that describe generated code, -1 = none: see write.c */
    struct arena_header *arena; /* NULL when done */
    uint64_t size_bytes;
    /* the layout of its chunks as we made it; the program may have changed its header */
    uint64_t table_offset, data_offset;
    uint32_t chunk_limit;
    uint32_t n_chunks_backed; /* chunks whose memory is allocated */
    uint32_t n_homes;         /* as in its header */
    uint32_t page_bytes;
    struct companion_homes *homes; /* NULL until its first pages: see homes.c */
    uint64_t awaited_bytes;        /* of its arena, in use once a child of fork has copied its parent's */
    uint32_t generation;           /* counts the arenas of one pid */
    enum process_state state;
    const char *end_state;          /* "complete", "killed" */
    char end_note[512];             /* more about its end, for the log */
    uint64_t exe_device, exe_inode; /* of its executable when it came, 0 = not known */
    int64_t replaced_ms;            /* when another executable was first seen in its place, 0 = never */
    char replaced_by[256];
    char left[64];                 /* name of the copy of its arena that it leaves when it takes us for dead */
    struct process_shared *shared; /* NULL before the first worker */
    char *work_dir;                /* where its files are written first, NULL: the measurement directory */
    bool writes_past;              /* work_dir did not take the files: straight into the measurement directory */
    bool is_arena_file;            /* the arena is a file there: checkpoints would add nothing */
    bool has_retried;              /* writing it at the first place has failed */
    bool was_checkpointed;
    bool is_checkpointing;
    bool wants_snapshot;           /* its owner wants its files now */
    char why_unsaved[160];         /* why the last checkpoint failed; empty: it did not */
    uint64_t n_taken_checkpointed; /* samples in the last checkpoint */
    int64_t checkpoint_due_ms;
    int64_t mark_due_ms;                  /* 0: no mark is to be made */
    struct proc_stat at_start, last_seen; /* what it had used when it came, and when it was last checked */
    struct companion_watchdog watchdog;
};

/* A process from which nothing has been heard yet: a child of a measured one, or one that could not be let in. */
struct companion_stray {
    struct companion_stray *next;
    uint32_t pid;                 /* as it sees itself */
    uint32_t parent_pid;          /* likewise; 0: not known, because it knocked when no descriptor was left for it */
    pid_t peer_pid;               /* in that case: as we see it */
    int64_t due_ms;               /* when it is given up */
    enum arena_child_state state; /* as it was noted */
    char name[256];
};

/* A process that has sent HELLO: its parent may note it only afterwards. */
#define HEARD_MAX 1024
struct companion_heard {
    uint32_t pid;
    int64_t at_ms;
};

/* What the owner of a process has asked for from outside. */
struct companion_wishes {
    uint32_t is_paused, slow_least;
    char phase[ARENA_PHASE_BYTES];
};

struct companion_connection {
    struct companion_connection *next;
    int fd; /* -1: to be removed */
    pid_t peer_pid;
    uid_t peer_uid;
    bool is_guest;                           /* of another user, where ours is not root: root may ask for the status */
    struct companion_process *waits_process; /* END: answered once it is written */
    struct companion_job *waits_job;         /* MODULE: answered once the job has ended */
    bool waits_snapshot; /* CONTROL: answered once the files of snapshot_pid, 0: of all, are there: */
    pid_t snapshot_pid;
};

#define COMPANION_TROUBLE_MAX 1024

enum job_kind {
    JOB_MODULE = 0,
    JOB_WRITE,
    JOB_CHECKPOINT,
    JOB_GATHER, /* from work_dir into the measurement directory */
    JOB_NOTES,  /* lines into the log and the index */
    JOB_TOPOLOGY,
    JOB_PREPARE
};

/* Work in a forked child. */
struct companion_job {
    struct companion_job *next;
    enum job_kind kind;
    pid_t pid;                         /* 0: waits for its turn */
    struct companion_process *process; /* JOB_WRITE, JOB_CHECKPOINT, JOB_GATHER; JOB_MODULE: the one that reported it */
    struct companion_module module;    /* JOB_MODULE */
    uint32_t module_ref;               /* in its arena; 0 = in none */
    int64_t start_ms;
    bool has_ended;
    bool is_placeless;         /* JOB_WRITE: the directory kept it from writing */
    bool is_foreign;           /* JOB_MODULE: another user asks */
    char path[ARENA_PATH_MAX]; /* JOB_MODULE, JOB_PREPARE */
};

/* Lines that wait for a worker: the measurement directory may be slow, the companion must not be. */
struct companion_notes {
    struct buf log, index;
    uint64_t n_lost;
    char unmeasured[512]; /* the first process that is not measured though it was wanted, and why; empty: none */
};

/* The shared memory of recipes: see fnbounds/recipe.h. */
struct companion_store {
    int fd, read_fd; /* read_fd: what clients get, not writable */
    void *base;
    uint64_t size_bytes;
};

struct companion {
    const struct companion_setup *setup;
    char dir[64]; /* another path of the measurement directory, by which files are made; empty: setup->dir */
    int listen_fd, signal_fd;
    bool is_full;                /* no descriptor is left for another client: none is accepted until the next look */
    int way_fd;                  /* our end of the inherited way, -1: none, or nobody has the other one any more */
    bool is_way_lost;            /* it was closed by processes that may have children yet */
    int launched_pidfd, done_fd; /* -1 once seen */
    bool is_launched;            /* the launched program has not ended yet */
    uint64_t launched_start;     /* as start of a process */
    struct companion_store store;
    struct companion_process *processes;
    struct companion_connection *connections;
    struct companion_stray *strays;
    struct companion_heard heard[HEARD_MAX]; /* the last ones, as a ring */
    unsigned n_heard;
    struct companion_job *jobs;
    struct pending_mark mark;
    bool has_no_mark;            /* the directory does not take one */
    pid_t recipes_pid;           /* the maker of recipes, 0 = none */
    int recipes_fd;              /* pipe to it, -1 = none */
    struct inlet *recipes_inlet; /* its end of the pipe: see recipes.c */
    bool is_tight;               /* the user may have few processes: of ours there are no more than need be */
    int64_t room_until_ms; /* until then no helpers are started, because a program asked for theirs; 0: they may be */
    unsigned n_recipe_restarts;
    pid_t sched_pid;           /* the recorder of the scheduler, 0 = none */
    char *sched_trouble;       /* [COMPANION_TROUBLE_MAX], shared with it: why it has given up; empty: it has not */
    int sched_fd;              /* pipe to it: it ends when that is closed; -1 = it is */
    int ready_fd;              /* as in the setup, -1 = none */
    uint32_t host_id, n_homes; /* n_homes: of each arena's header */
    uint64_t start_ns;         /* CLOCK_MONOTONIC when the first process registered, 0: none yet */
    int64_t busy_ms;           /* when something last happened */
    int tick_ms;               /* time until the next check of the arenas */
    int64_t looked_ms;         /* when the last one was */
    bool must_checkpoint;      /* SIGTERM asked for it */
    struct companion_notes *notes;
    bool is_worker; /* this process is one: it writes its lines itself */
    struct detour detour;
    uint32_t n_detours;       /* directories made in it */
    char foreign_tables[128]; /* directory of tables that other users' processes may read, empty: none */
    int foreign_fd;           /* it, locked as long as we live */
    bool has_needed_tables;   /* it has been made, or cannot be */
    bool lacks_room;          /* at the limit of processes nothing could be forked */
    bool has_measured;        /* a process took part, even without a sample */
    uint32_t n_unfit;         /* processes that their limits kept from it */
    bool has_said, has_said_trouble, has_said_checkpoint, has_said_unmeasured;
    char *trouble; /* message that still has to go to the terminal, NULL: none */
};

/* The path by which files of the measurement directory are made. */
static inline const char *companion_dir(const struct companion *c)
{
    return c->dir[0] ? c->dir : c->setup->dir;
}

/* --- log.c --- */

/* Adds a line to the companion's file in the measurement directory (created by the first line), through the notes. */
void companion_log(const struct companion *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line to the host's index: a process that leaves no files, or whose files could not be written. */
void companion_index(const struct companion *c, const struct companion_process *process, const char *what);
/* One about a process that was never heard of, or not again. */
void companion_index_stray(const struct companion *c, const struct companion_stray *stray);
/* One about a process that is not measured, and why. */
void companion_index_refused(const struct companion *c, pid_t pid, const char *exe, const char *why);
/* The same about one that could not be measured because of its limits, which the terminal is told as well. */
void companion_index_unfit(struct companion *c, pid_t pid, const char *exe, const char *why);
/* Whether there are lines to be written. */
bool companion_has_notes(const struct companion *c);
/* In a worker: writes them. Returns an exit status. */
int companion_notes_write(const struct companion *c);
/* Empties them: a worker has them. */
void companion_notes_clear(struct companion *c);
/* Milliseconds of CLOCK_MONOTONIC. */
int64_t companion_now_ms(void);

/* --- memory.c --- */

/* A descriptor of the same memory file that it can only be read through; -1. */
int companion_memory_reopen(int fd);
/* A memory file with the loaded segments of the ELF module that process pid has mapped at start, where the file had
 * them, and no sections; -1 when it cannot be read. */
int companion_memory_image(pid_t pid, uint64_t start);
/* Creates and maps the recipe store; false when it cannot be had.  err: ERR_IO */
bool companion_store_open(struct companion *c, struct error *err);
/* Makes foreign_tables when a program first has another user, and says so to the programs; and removes it. Only root
 * measures programs that become other users; for others there is none. */
void companion_tables_need(struct companion *c);
void companion_tables_close(struct companion *c);
/* Gives process an arena of at most wanted_bytes (0: default) filled in up to state FRESH.  err: ERR_IO, ERR_MEMORY */
int companion_arena_create(const struct companion *c, struct companion_process *process, uint64_t wanted_bytes,
                           struct error *err);
/* Allocates memory ahead of what is in use. Returns true when the arena had grown. */
bool companion_arena_back(const struct companion *c, struct companion_process *process);
/* The chunks of process's arena: their table, the data of one, and how many are in use. */
struct arena_chunk *companion_arena_table(const struct companion_process *process);
char *companion_arena_data(const struct companion_process *process, uint32_t chunk);
uint32_t companion_arena_n_chunks(const struct companion_process *process);
/* The threads of the run that begins with a chunk, *n; of another kind of run there are none. */
struct arena_thread *companion_arena_threads(const struct companion_process *process, uint32_t chunk, size_t *n);
/* Samples taken by all threads of the arena so far. */
uint64_t companion_arena_n_taken(const struct companion_process *process);
void companion_arena_close(struct companion_process *process);

/* --- talk.c --- */

/* Accepts one client of our own user, or of root; adds it to the connections. */
void companion_accept(struct companion *c);
/* Takes the connections that processes have sent over the inherited way. */
void companion_way_accept(struct companion *c);
/* Takes over a client's descriptor; false when out of memory, or when the client has too many. */
bool companion_connect(struct companion *c, int fd, const struct ucred *peer);
/* Reads one message and acts on it. */
void companion_serve(struct companion *c, struct companion_connection *connection);
/* They hold for what the process becomes by exec, and for its children. process may be NULL. */
struct companion_wishes companion_wishes_of(const struct companion_process *process);
void companion_wishes_grant(struct companion_process *process, const struct companion_wishes *wishes);
/* Answers those who waited for snapshots that are there now. */
void companion_answer_snapshots(struct companion *c);
/* Removes the connections that are closed. */
void companion_connections_sweep(struct companion *c);
/* Answers those who waited for process or job (either may be NULL) and closes their connections. */
void companion_answer_waiting(struct companion *c, const struct companion_process *process,
                              const struct companion_job *job, const char *text);

/* --- process.c --- */

/* Gives the threads that have not reported their CPU times the last ones that were seen, and at least what their
 * samples stand for. */
void companion_times_settle(struct companion_process *process);
/* The same in a private mapping of its records, by somebody who looks at it; those of the process stay as they are. */
void companion_times_guess(struct companion_process *process);
/* CPU time that it had used when it was looked at last, since it came, ns. */
uint64_t companion_times_used(const struct companion_process *process);
/* Registers a process; one that sends FORK continues with a copy of its parent's arena. NULL with *err filled. */
struct companion_process *companion_process_add(struct companion *c, const struct companion_message *hello,
                                                const struct ucred *peer, struct error *err);
/* Where there are no pidfds: whether process pid has ended. *start tells it from a later one of the same id: 0 at the
 * first call. */
bool companion_is_gone(pid_t pid, uint64_t *start);
/* The process that is filling an arena under this pid, NULL when there is none. */
struct companion_process *companion_process_find(const struct companion *c, pid_t peer_pid);
/* The arena is final: write it (or, without samples, a line into the index). */
void companion_process_end(struct companion *c, struct companion_process *process, const char *end_state);
/* Takes over what process has noted of its children. */
void companion_strays_take(struct companion *c, struct companion_process *process);
/* A process has sent HELLO: it is no stray. pid: as it sees itself; peer_pid: as we do, and its parent may. */
void companion_strays_heard(struct companion *c, uint32_t pid, pid_t peer_pid);
/* A process has knocked that could not be let in: it may come again. Nothing happens for one that is measured. */
void companion_strays_turned_away(struct companion *c, pid_t peer_pid);
/* Gives up those whose time is over, with a line in the index for each. is_over: nobody else is left, so those that
 * have ended are not waited for. */
void companion_strays_look(struct companion *c, int64_t now_ms, bool is_over);
/* Checks whether the process has become another program by exec that is not measured: then its arena is final. */
void companion_process_look(struct companion *c, struct companion_process *process, int64_t now_ms);

/* --- watchdog.c --- */

/* Stops the sampling of a process that has been doing nothing but handle its own samples. */
void companion_watchdog_look(const struct companion *c, struct companion_process *process, int64_t now_ms);
/* The process says HELLO anew, or that it cannot be measured: what was recorded under its number so far, by the program
 * that it was before exec, is final. An arena that it has been sent and could not begin to record in is forgotten.
 * process may be NULL. */
void companion_process_supersede(struct companion *c, struct companion_process *process);
/* The process is gone; its pidfd is closed. */
void companion_process_gone(struct companion *c, struct companion_process *process);
/* Whether process is, or has become meanwhile, one of another user: see is_foreign. */
bool companion_process_is_foreign(struct companion *c, struct companion_process *process);
/* Milliseconds between two checkpoints. */
int64_t companion_checkpoint_ms(const struct companion *c);
/* Removes those that are written and gone. */
void companion_process_sweep(struct companion *c);

/* --- homes.c --- */

/* Memory nodes of this machine, counted up to the highest number, at most ARENA_HOMES_MAX; 0 when there is only one, or
 * when it is not known. list: the file with their numbers, NULL: the kernel's own */
uint32_t companion_homes_nodes(const char *list);
/* When the process's pages are due again, in milliseconds of CLOCK_MONOTONIC; INT64_MAX: not before the next look at
 * all arenas. */
int64_t companion_homes_due(const struct companion_process *process);
/* Asks where the pages are that the process has noted, if it is time. */
void companion_homes_look(struct companion *c, struct companion_process *process, int64_t now_ms);
/* The same for the last time, while the process still waits for us. */
void companion_homes_end(struct companion *c, struct companion_process *process);

/* --- jobs.c --- */

/* File name (without directory) of this host's topology: "topology-<hostid>.xml". */
void topology_file_name(char *name, size_t n_name);
/* Takes up the requests that process has posted; false when there are none. */
bool companion_process_requests(struct companion *c, struct companion_process *process);
/* Starts a job, or queues it; path may be NULL. A module that is already under way is not started twice. NULL when out
 * of memory, or when too many modules wait already. */
struct companion_job *companion_job_add(struct companion *c, enum job_kind kind, struct companion_process *process,
                                        const char *path);
/* Whether only root or our own user can change what path leads to: the file, and all directories on the way. */
bool companion_is_safe_path(const char *path);
/* Collects workers that have ended, acts on the results, starts waiting ones. */
void companion_job_reap(struct companion *c);
/* Ends the workers that prepare tables and describe the machine; they begin anew when there is room again. */
void companion_jobs_suspend(struct companion *c);
/* The same for good. */
void companion_jobs_drop(struct companion *c);

/* --- companion.c --- */

/* poll, even of more descriptors than RLIMIT_NOFILE allows by now, because somebody may lower it from outside: then
 * they are polled in parts, every 50 ms. */
int companion_poll(struct pollfd *fds, size_t n, int timeout_ms);
/* Does what is due between two waits; now_ms: companion_now_ms(). */
void companion_turn(struct companion *c, int64_t now_ms);

/* --- detour.c --- */

/* Removes the copy of the arena of a process that could not reach us: its files are written. */
void companion_drop_left(const struct companion *c, const struct companion_process *process);
/* In a worker: a checkpoint that stands in the measurement directory is to be replaced when the files called name get
 * there.  err: ERR_IO, ERR_MEMORY */
int companion_detour_note(const struct companion_process *process, const struct names_file *name, struct error *err);
/* Reports c->trouble on the terminal, once the launched program has ended. */
void companion_tell(struct companion *c);
/* Makes the detour directory below place, unless there is one; false with a line in the log when that fails. */
bool companion_detour_start(struct companion *c, const char *place);
/* Gives process a directory of its own in it; false when that fails. */
bool companion_detour_process(struct companion *c, struct companion_process *process);
/* Removes the directory of process: it is empty, or what is in it is not wanted any more. */
void companion_detour_leave(struct companion_process *process);
/* The arena of process has been turned into files. */
void companion_detour_drop_arena(const struct companion_process *process);
/* In a worker: moves the files of process on. Returns an exit status, and why in process->shared. */
int companion_detour_gather(const struct companion *c, const struct companion_process *process);
/* Tells the user on the terminal, once the program has ended, or through the launcher that waits for us. */
void companion_say(struct companion *c, const char *text);
/* Reports once, in the log and, where the launcher waits for us, on the terminal, that the measurement directory does
 * not take its files, and where they are now. why: a sentence without its full stop */
void companion_trouble(struct companion *c, const char *why);
/* Last of all: moves on what can be moved, and removes the directory when it is empty. */
void companion_detour_end(struct companion *c);
/* --- recipes.c --- */

/* Writes to found a name under which this process can open the module, with the right id: the path, the path below the
 * process's root, the file that it has mapped, one that it has open, else an image made of its memory (held open until
 * this process ends). False when there is none.  ctx: ordinary */
bool companion_module_find(const struct companion_module *module, const char *path, char found[ARENA_PATH_MAX]);
/* Starts the worker; without it requests stay unanswered, which a line in the log says. */
void companion_recipes_start(struct companion *c);
/* Hands one request to the worker. Returns false when it has too much to do: ask again later. */
bool companion_recipes_ask(struct companion *c, const struct companion_module *module, uint32_t pc, const char *path);
/* Ends the worker, and waits for it; requests that it has not taken stay where the next one finds them, which the next
 * request starts once there is room again. */
void companion_recipes_suspend(struct companion *c);
/* Ends the worker for good, and waits for it: so that no orphan is left.  ctx: once, at the companion's end */
void companion_recipes_end(struct companion *c);
/* To be called with every child that has ended: starts the worker again when it was the one, unless it keeps dying. */
void companion_recipes_reaped(struct companion *c, pid_t pid, int status);

/* --- sched-recorder.c --- */

/* Starts the recorder, if it is wanted. c->ready_fd stays open in it until its events are. */
void companion_sched_start(struct companion *c);
/* Lets it take what there is, and end. */
void companion_sched_end(struct companion *c);
/* To be called with every child that has ended. */
void companion_sched_reaped(struct companion *c, pid_t pid, int status);

/* --- write.c --- */

/* Opens the files that have appeared or been replaced since the last time.  process: with its arena */
void companion_jit_look(struct companion_process *process);
/* Closes the files. */
void companion_jit_close(struct companion_process *process);
/* Exit status of a worker that the directory kept from writing. */
#define WRITE_NO_PLACE 3
/* Gives process the memory that its workers share; false when there is none. */
bool companion_write_prepare(struct companion_process *process);
/* The work itself, inside a worker; returns its exit status, and why in process->shared. */
int companion_write_files(const struct companion *c, const struct companion_process *process, bool is_checkpoint);

#endif
