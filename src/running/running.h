/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured processes that run, from outside: finding them, looking at them, telling what was seen, and asking for
 * something in the name of their owner. A look reads the records that their companion hands out, and the program
 * notices nothing. Ordinary code.
 *
 * The room: find.c finds processes, look.c looks at one again and again and names what it
 * sees, print.c tells it, for people and as JSON; watch.c does so with those that come and go; run.c has what commands
 * do with all that, follow.c makes databases. */
#ifndef LOCUS_RUNNING_RUNNING_H
#define LOCUS_RUNNING_RUNNING_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/live.h"

struct names_file;

#define RUNNING_PASTS 12    /* looks that are kept */
#define RUNNING_WINDOW_S 10 /* what is "lately": no more */
#define RUNNING_ROWS 12     /* of each kind */
#define RUNNING_COMPANION_MAX 64

/* One look, and when it was, by CLOCK_MONOTONIC. */
struct running_past {
    double at_s;
    struct live live;
    struct live_sums sums;
};

/* Something with a name for people: since the start of the process, and lately. */
struct running_row {
    char name[192], site[320];
    const char *class; /* of variables, else "" */
    double n, value;   /* as in struct live_sum */
    double n_lately, value_lately;
};

struct running_table {
    struct running_row rows[RUNNING_ROWS];
    size_t n;
    double n_all, value_all; /* of all, with those that are not shown */
    double n_all_lately, value_all_lately;
};

struct buf;
struct running_names;

/* Its companion, which hands out the records: what we have of them stays. */
enum running_companion { COMPANION_ANSWERS = 0, COMPANION_SILENT, COMPANION_DEAD };

/* A measured process, as its companion describes it. */
struct running_process {
    pid_t pid;
    char dir[ARENA_PATH_MAX];              /* measurement directory */
    char companion[RUNNING_COMPANION_MAX]; /* name of its socket */
    const void *arena;                     /* read-only private mapping, which shows what the process writes */
    uint64_t size_bytes;
    struct running_past past[RUNNING_PASTS]; /* [n_past] the oldest first */
    unsigned n_past;
    struct running_names *names; /* NULL until the first is asked for */
    unsigned long long started;  /* as in struct proc_stat; 0: not known */
    uint64_t program_inode;      /* of its executable: exec makes another program of it */
    enum running_companion is_kept_by;
    bool is_foreign;   /* another user's: what it names is not opened */
    double ended_at_s; /* by CLOCK_MONOTONIC: it has ended, and its records stay for a while; 0: it runs */
    bool is_readable;
};

struct running_list {
    const char *tool;                  /* in whose name messages are printed */
    struct running_process *processes; /* [n] by id */
    size_t n, capacity;
    struct strtab answered;           /* names of companions of our own that have named all that they have */
    struct strtab silent;             /* and of those that did not answer in time */
    const struct strtab *were_silent; /* before, NULL: none; they are not waited for again */
    struct strtab skipped;            /* sentences about companions of other users that did not answer as they should */
};

/* --- find.c --- */

/* Connects to a companion by its name. Returns the descriptor, or -1 with errno; EAGAIN: it takes nobody. */
int running_dial(const char *name);
/* Adds the processes of the companion with this name, of user uid, at the other end of fd. Another user's (also root's,
 * for others) is not waited for long, nor listened to without end.  err: ERR_MEMORY */
int running_ask(struct running_list *list, const char *name, int fd, uid_t uid, struct error *err);
/* Whether it still runs, in the same program, whatever its companion says of it. */
bool running_is_alive(const struct running_process *process);
#define RUNNING_TOLD_BYTES (ARENA_PATH_MAX + 200)

/* What there is to say of the companion of a process, behind "its companion process"; false: it does what it should. */
bool running_tell_companion(const struct running_process *process, char *text, size_t n_bytes);
/* All measured processes of this user (of all users, for root) in this network namespace. To be freed with
 * running_fini.  err: ERR_IO, ERR_MEMORY */
int running_find(struct running_list *list, struct error *err);
void running_fini(struct running_list *list);
#define RUNNING_SEEN "?" /* behind a process id: it was seen, and may have ended since */

/* Keeps those that one of the words means, of which the last is NULL: a process id, with all that is below it; a
 * measurement directory; a job of Slurm, where no such process is. No word, or words NULL: all. Each word has to mean
 * something; with_files: a directory does with what ended, or runs elsewhere. An exit status, after a message if it is
 * not 0. */
int running_choose(struct running_list *list, const char *const *words, bool with_files);
/* The same without a message for any words, and those of known, if not NULL, are kept, too; whether any are left. */
bool running_keep(struct running_list *list, const char *const *words, const struct running_list *known);
/* The real path of a word that names a directory, in real [PATH_MAX]; false: it is a number, or there is none. */
bool running_word_directory(const char *word, char *real);
/* Whether a file in a directory (a real path) is of a process of the list, on this host. */
bool running_has_file(const struct running_list *list, const char *directory, const struct names_file *file);
/* Keeps those that can still be read. */
void running_keep_readable(struct running_list *list);
/* --- look.c --- */

/* Looks once more; with_sums: at what running_sum adds up, too.  err: ERR_FORMAT (no arena), ERR_MEMORY */
int running_look(struct running_process *process, bool with_sums, struct error *err);
/* The latest look, and the oldest one that is no longer ago than RUNNING_WINDOW_S; NULL before the first. */
const struct running_past *running_now(const struct running_process *process);
const struct running_past *running_before(const struct running_process *process);
/* Seconds since a process began, to its end if that has come; those that are lately; samples of an event in each of
 * these. */
double running_elapsed_s(const struct running_process *process);
double running_window_s(const struct running_process *process);
double running_rate_now(const struct running_process *process, uint32_t event);
/* Fills a table of those that cost most, by what they cost lately or since the start, with names. */
void running_sum(struct running_process *process, enum live_kind kind, bool by_lately, struct running_table *table);
void running_process_fini(struct running_process *process);

/* --- watch.c --- */

/* Processes that are looked at again and again. */
struct running_watch {
    struct running_list list;
    const char *const *words; /* as in running_choose, borrowed */
    bool keeps_ended;         /* processes that have ended stay in the list for some seconds */
    size_t n_ended;           /* so many have ended since the beginning */
};

/* Finds them. An exit status, after a message if not 0; also where there are none. Ended by running_fini of the list.
 */
int running_watch_begin(struct running_watch *watch);
/* Whether a process fills the same arena as before: after exec it is another one. */
bool running_is_same(const struct running_process *a, const struct running_process *b);
/* Takes up processes that have come, of which the records stay to be looked at, and lets go of those that have ended.
 */
void running_watch_find(struct running_watch *watch);
/* The same, and looks at all, as running_look. Returns how many run. */
size_t running_watch_step(struct running_watch *watch, bool with_sums);

/* Asks the companion for something (COMPANION_CONTROL) about a process, 0: all of its; answer: what it says, in words.
 * err: ERR_IO (no answer), ERR_USAGE (the words are wrong), ERR_UNSUPPORTED (it refuses: why) */
int running_control(const char *companion, pid_t pid, const char *command, char answer[ARENA_PATH_MAX],
                    struct error *err);
/* The same about one that was found; another user's is refused (ERR_UNSUPPORTED). */
int running_control_process(const struct running_process *process, const char *command, char answer[ARENA_PATH_MAX],
                            struct error *err);

/* Has everything saved that runs here and is measured into a directory. Returns how many companions have done so, or a
 * code.
 * err: ERR_IO, ERR_MEMORY */
int running_save(const char *directory, struct error *err);

/* --- follow.c --- */

/* A database of programs that run, made anew again and again by hpcrun --copy and hpcprof, which take a tenth of one
 * processor at most; programs and companions do nothing for it. */
struct follow;

struct follow_state {
    double elapsed_s;   /* of the program that began first: to what is shown, or to the end when it is over */
    double age_s;       /* of what is shown */
    size_t n_processes; /* that run here */
    size_t n_files;     /* processes that have ended, or run on other nodes, by what they have saved */
    bool is_over;       /* none does any more: what is shown is the last */
    bool is_held;       /* by follow_hold */
    bool is_paused;     /* the sampling, by its owner */
    char phase[ARENA_PHASE_BYTES]; /* that the owner has begun last; empty: none */
    const char *trouble;           /* why there is nothing newer; NULL: nothing */
};

/* Begins with the processes that words mean (as in running_choose, borrowed), and waits for their first database.
 * stop_fd readable: end. err: ERR_NOT_FOUND (nothing runs: a message was printed), ERR_IO, ERR_MEMORY */
int follow_begin(const char *const *words, int stop_fd, struct follow **follow, struct error *err);
/* Ends it, and removes what it made. NULL is allowed. */
void follow_end(struct follow *follow);
/* For poll(2): after how many milliseconds there is work, -1: never. */
int follow_wait_ms(const struct follow *follow);
/* Does what there is to be done; true: there is a newer database. None is made while one is not taken. */
bool follow_step(struct follow *follow);
/* The newest database; the one that was opened before stays. */
const char *follow_take(struct follow *follow);
/* What was taken is open now, in place of the one before, which goes. */
void follow_opened(struct follow *follow);
/* The measurement of the one that was taken, for its time line; NULL: it is not there. It stays as long as that. */
const char *follow_recording(struct follow *follow);
/* Measurement directory i of all that was seen, NULL behind the last. */
const char *follow_directory(const struct follow *follow, size_t i);
/* Makes none any more, or again. */
void follow_hold(struct follow *follow, bool is_held);
void follow_state(const struct follow *follow, struct follow_state *state);
/* Asks the companions of all that run for something, as running_control does; says: appends what came of it.
 * err: as running_control */
int follow_control(struct follow *follow, const char *command, struct buf *says, struct error *err);

/* --- print.c --- */

/* One process, or a line for each; by_lately: sorted by what things cost lately. n_lines: what says least is left out
 * until it has no more than so many, and true returned; 0: in full. */
bool running_print_one(struct running_process *process, bool by_lately, size_t n_lines, FILE *out);
void running_print_list(struct running_list *list, FILE *out);
/* The n processes that had most samples lately, those that had more first: order [n] receives their places in the list,
 * as many as there are. */
void running_find_busiest(const struct running_list *list, size_t *order, size_t n);
/* A line for each of these, [n], and how many there are beside them. */
void running_print_some(struct running_list *list, const size_t *order, size_t n, FILE *out);
void running_print_json(struct running_list *list, struct buf *out);

/* --- run.c --- */

/* Answers hpcrun --status about what operand means, NULL: all. Returns the tool's exit status, 1 after a message about
 * a process that is not measured. */
int running_status(const char *operand, bool is_json, FILE *out);
/* hpcrun --control: words[0] is a process id or measurement directory, what follows is the command. An exit status. */
int running_command(char **words, int n, FILE *out);
/* How hpcviewer --live shows it without a browser. */
struct running_show {
    bool is_plain; /* a block each second, as where out is no screen; else the screen is cleared before each */
    bool is_once;  /* only the first */
    bool is_json;
};
/* Shows the processes each second until none is left. An exit status. */
int running_show(const char *const *words, const struct running_show *asked, FILE *out);

#endif
