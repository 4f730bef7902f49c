/* SPDX-License-Identifier: BSD-3-Clause */
/* The step explorer: finds, by single steps, the instructions of the preloaded library that each entry point runs
 * through, and then makes something happen at each of them in turn: a signal whose handler forks, allocates, jumps out
 * or leaves, a cancel, a sample, a stop, another thread, a kill; or a sample at every one of them in a single call.
 * What is right is not written down anywhere: the same program is run without the profiler, with the same thing
 * happening just before the call and just after it, and every run under the profiler has to end as one of these. What
 * natively dies or hangs is left out, and said.
 *
 * usage: explore --library FILE --subject FILE --hpcrun FILE --scratch DIR [--events LIST] [--check COMMAND]
 *                [--points N] [--again N] [--seed N] [--patience MS] [--only ENTRY] [--inject KIND] [--at WHERE]
 *                [--occurrence N] [--known FILE] [--least N] [--list] */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracee.h"

#define EXIT_SKIP 77
#define RIGHT_MAX 3     /* outcomes of a native call: injected before it, after it, not at all */
#define GIVE_UP_AFTER 3 /* failures of one entry point with one injection */
#define STEP_RUNS 2
#define MISSED_MIN 10 /* points of which at least half must be reached */
#define PLACES 3
#define PROCESS_SHARE 4 /* of the points where an injection costs a process, or may cost a session */

static const char *const kind_names[KIND_COUNT] = {
    "none",   "malloc", "fork",   "longjmp",     "throw",       "exit", "pthread-exit", "cancel",
    "sample", "stop",   "beside", "fork-beside", "exit-beside", "kill", "ticks",
};

/* What natively comes of one entry point with one injection. */
struct truth {
    char right[RIGHT_MAX][EXPLORE_OUTCOME_BYTES];
    unsigned n_right;
    char excluded[64]; /* why it is not tried, empty: it is */
};

/* Sums of one entry point, of one injection, or of all. */
struct sums {
    unsigned long n_injected, n_missed, n_waited, n_failed, n_known, n_left_out, n_given_up;
};

static struct {
    struct session_plan native, profiled;
    const char *library, *check, *only, *inject, *known;
    uintptr_t at;
    unsigned points, again, occurrence;
    unsigned long seed, least;
    bool is_list;

    uint32_t n_entries;
    struct explore_entry_info entries[EXPLORE_ENTRIES_MAX];
    struct truth truths[EXPLORE_ENTRIES_MAX][KIND_COUNT];

    /* Of the library's text, [n_text] bytes from text_start on (relative to the library). */
    uintptr_t text_start;
    size_t n_text;
    uint32_t *counts[PLACES];   /* of the entry point at hand: how often a run comes there, NULL: not known */
    uint8_t *covered, *reached; /* by anything at all */
    uint8_t *covered_here, *reached_here;

    struct session session;
    bool is_running;
    bool was_left; /* a call of this session was, and did not return */
    struct sums sums[KIND_COUNT], all, here;
    unsigned long n_native, n_excluded, n_sessions, n_steps;
} explore;

static unsigned long next_random(void)
{
    explore.seed = explore.seed * 6364136223846793005u + 1442695040888963407u;
    return explore.seed >> 33;
}

static uint32_t place_of(uint32_t entry, uint32_t kind)
{
    uint32_t flags = explore.entries[entry].flags;
    if (flags & ENTRY_IN_CHILD || kind == KIND_EXIT || kind == KIND_KILL || kind == KIND_EXIT_BESIDE)
        return PLACE_CHILD;
    bool is_elsewhere = flags & (ENTRY_NEW_THREAD | ENTRY_NEW_PROCESS);
    return (kind == KIND_PTHREAD_EXIT || kind == KIND_CANCEL) && !is_elsewhere ? PLACE_THREAD : PLACE_MAIN;
}

/* --- what is right --- */

static bool is_right(const struct truth *truth, const char *outcome)
{
    for (unsigned i = 0; i < truth->n_right; i++) {
        if (strcmp(truth->right[i], outcome) == 0)
            return true;
    }
    return false;
}

/* One native run; what it cannot do is excluded. False when a new session is needed. */
static bool learn_one(struct session *session, uint32_t entry, uint32_t kind, enum run_where where)
{
    struct truth *truth = &explore.truths[entry][kind];
    struct run run = {.entry = entry, .kind = kind, .place = place_of(entry, kind), .where = where, .occurrence = 1};
    enum run_result result = run_one(session, &run);
    explore.n_native++;
    if (result == RUN_DIED && WIFSIGNALED(run.end_status))
        snprintf(truth->excluded, sizeof truth->excluded, "natively dies of signal %d", WTERMSIG(run.end_status));
    else if (result == RUN_DIED)
        snprintf(truth->excluded, sizeof truth->excluded, "natively ends the program");
    else if (result == RUN_HUNG)
        snprintf(truth->excluded, sizeof truth->excluded, "natively hangs");
    else if (!is_right(truth, session->page->outcome))
        snprintf(truth->right[truth->n_right++], EXPLORE_OUTCOME_BYTES, "%s", session->page->outcome);
    return result == RUN_DONE;
}

/* What makes no sense, whatever the program: the victim of the injection would be another one. */
static const char *senseless(uint32_t entry, uint32_t kind)
{
    uint32_t flags = explore.entries[entry].flags;
    if (kind == KIND_TICKS && flags & ENTRY_SAMPLE)
        return "a sample waits until the one before has been taken";
    if (kind == KIND_CANCEL && flags & ENTRY_NEW_PROCESS)
        return "the child's thread cannot be named by others";
    if ((kind == KIND_EXIT_BESIDE || kind == KIND_FORK_BESIDE) && flags & ENTRY_IN_CHILD)
        return "undefined while the process is ending or replaced";
    if ((kind == KIND_LONGJMP || kind == KIND_THROW) && flags & ENTRY_NEW_THREAD)
        return "undefined: out of a thread's first function";
    if ((kind == KIND_LONGJMP || kind == KIND_THROW) && flags & ENTRY_IN_CHILD &&
        (strcmp(explore.entries[entry].name, "exit") == 0 || strcmp(explore.entries[entry].name, "quick_exit") == 0))
        return "undefined: out of what exit calls";
    /* Which native runs do not show, as they are disturbed at the beginning and at the end alone. */
    if ((kind == KIND_THROW || kind == KIND_PTHREAD_EXIT) && strncmp(explore.entries[entry].name, "_Zn", 3) == 0 &&
        strstr(explore.entries[entry].name, "nothrow"))
        return "the function itself catches what unwinds inside";
    if (kind == KIND_PTHREAD_EXIT && strcmp(explore.entries[entry].name, "thread-exit") == 0)
        return "undefined: pthread_exit inside pthread_exit";
    if ((kind == KIND_LONGJMP || kind == KIND_THROW || kind == KIND_PTHREAD_EXIT) &&
        strncasecmp(explore.entries[entry].name, "MPI_", 4) == 0)
        return "undefined: out of the loader, which holds its lock";
    return NULL;
}

/* list: names with commas between; NULL has them all. */
static bool has_name(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return !list;
}

static bool is_wanted(uint32_t entry, uint32_t kind)
{
    return has_name(explore.only, explore.entries[entry].name) &&
           (has_name(explore.inject, kind_names[kind]) || kind == KIND_NONE);
}

static bool learn(struct session *session, uint32_t entry, uint32_t kind)
{
    struct truth *truth = &explore.truths[entry][kind];
    const char *reason = senseless(entry, kind);
    if (reason) {
        snprintf(truth->excluded, sizeof truth->excluded, "%s", reason);
        return true;
    }
    uint32_t flags = explore.entries[entry].flags;
    if (kind == KIND_NONE || kind == KIND_TICKS) /* natively nobody takes the signal */
        return learn_one(session, entry, kind, RUN_PLAIN);
    /* At its beginning a new process is in the middle of libc's fork. */
    bool has_begin = !(flags & ENTRY_NEW_PROCESS);
    bool has_end =
        !(flags & (ENTRY_NEW_THREAD | ENTRY_IN_CHILD)) || (flags & ENTRY_NEW_THREAD && kind == KIND_EXIT_BESIDE);
    return (!(flags & ENTRY_MAY_MISS) || learn_one(session, entry, kind, RUN_PLAIN)) &&
           (!has_begin || learn_one(session, entry, kind, RUN_AT_BEGIN)) &&
           (!has_end || learn_one(session, entry, kind, RUN_AT_END));
}

static bool learn_all(void)
{
    struct session session;
    if (!session_start(&session, &explore.native, NULL))
        return false;
    explore.n_entries = session.page->n_entries;
    memcpy(explore.entries, session.page->entries, sizeof explore.entries);
    for (uint32_t entry = 0; entry < explore.n_entries; entry++) {
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
            if (!is_wanted(entry, kind) || learn(&session, entry, kind))
                continue;
            (void)session_end(&session, true);
            if (!session_start(&session, &explore.native, NULL))
                return false;
        }
    }
    return session_end(&session, false) == 0;
}

/* --- under the profiler --- */

/* What the tree is known not to stand, which is not tried unless it is asked for: lines ENTRY KIND REASON, the first
 * two patterns of the shell. */
static bool is_known(uint32_t entry, uint32_t kind)
{
    char line[256], names[2][64], reason[160];
    bool is_found = false;
    FILE *file = explore.known && !explore.inject ? fopen(explore.known, "r") : NULL;
    while (file && !is_found && fgets(line, sizeof line, file)) {
        if (line[0] == '#' || sscanf(line, "%63s %63s %159[^\n]", names[0], names[1], reason) != 3)
            continue;
        is_found =
            fnmatch(names[0], explore.entries[entry].name, 0) == 0 && fnmatch(names[1], kind_names[kind], 0) == 0;
    }
    if (file)
        fclose(file);
    if (is_found)
        printf("known, not tried: %s, %s: %s\n", explore.entries[entry].name, kind_names[kind], reason);
    return is_found;
}

static void fail(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail(const struct run *run, const char *format, ...)
{
    char where[128];
    va_list list;
    const char *entry = run->constructor ? "start" : explore.entries[run->entry].name;
    symbols_name(run->pc, where, sizeof where);
    printf("FAIL: %s, %s at %s (%u.): ", entry, kind_names[run->kind], where, run->occurrence);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n    again: --only %s --inject %s --at %s --occurrence %u\n", entry, kind_names[run->kind], where,
           run->occurrence);
    explore.sums[run->kind].n_failed++;
    explore.here.n_failed++;
}

static bool start_profiled(void)
{
    if (explore.is_running)
        return true;
    explore.is_running = session_start(&explore.session, &explore.profiled, NULL);
    if (!explore.is_running) {
        printf("FAIL: the subject did not start under hpcrun\n");
        explore.all.n_failed++;
        return false;
    }
    explore.n_sessions++;
    uintptr_t base = explore.session.base;
    if (!explore.n_text) {
        explore.text_start = explore.session.text_start - base;
        explore.n_text = explore.session.text_end - explore.session.text_start;
        explore.covered = calloc(explore.n_text, 1);
        explore.reached = calloc(explore.n_text, 1);
        explore.covered_here = calloc(explore.n_text, 1);
        explore.reached_here = calloc(explore.n_text, 1);
    }
    return base != 0;
}

/* What was killed is written by the companion, which takes its time. */
static void await_writers(void)
{
    char pattern[PATH_MAX];
    snprintf(pattern, sizeof pattern, "%s/measurement/.writing-*", explore.profiled.scratch);
    for (int waited_ms = 0; waited_ms < explore.profiled.patience_ms; waited_ms += 10) {
        glob_t found;
        int result = glob(pattern, GLOB_PERIOD, NULL, &found);
        globfree(&found);
        if (result == GLOB_NOMATCH)
            return;
        usleep(10000);
    }
}

/* The records are whole, whatever happened. A process that a fork left may come to the companion when all seemed to be
 * written. */
static void check_records(void)
{
    char command[PATH_MAX + 1024];
    bool is_whole = !explore.check;
    for (int tries = 0; tries < 3 && !is_whole; tries++) {
        usleep(tries ? 1000000 : 0);
        await_writers();
        snprintf(command, sizeof command, "%s '%s/measurement' >'%s/check' 2>&1", explore.check,
                 explore.profiled.scratch, explore.profiled.scratch);
        is_whole = system(command) == 0;
    }
    if (!is_whole) {
        explore.all.n_failed++;
        printf("FAIL: the records are not whole:\n");
        fflush(stdout);
        snprintf(command, sizeof command, "head -20 '%s/check'", explore.profiled.scratch);
        (void)!system(command);
    }
    snprintf(command, sizeof command, "rm -rf '%s/measurement'", explore.profiled.scratch);
    (void)!system(command);
}

static void end_profiled(bool by_force)
{
    if (!explore.is_running)
        return;
    int status = session_end(&explore.session, by_force);
    explore.is_running = false;
    if (!by_force && status != 0) {
        printf("FAIL: the subject ended with status %#x\n", (unsigned)status);
        explore.all.n_failed++;
    }
    check_records();
}

static bool is_leaving(uint32_t kind)
{
    return kind == KIND_LONGJMP || kind == KIND_THROW || kind == KIND_PTHREAD_EXIT;
}

/* One injection. False when the session is gone. */
static bool try_one(struct run *run)
{
    char outcome[EXPLORE_OUTCOME_BYTES];
    const struct truth *truth = &explore.truths[run->entry][run->kind];
    enum run_result result = run_one(&explore.session, run);
    if (result == RUN_DONE) {
        memcpy(outcome, explore.session.page->outcome, sizeof outcome);
        if (run->is_injected) {
            explore.here.n_injected++;
            explore.sums[run->kind].n_injected++;
            if (run->where == RUN_AT_PC) {
                explore.covered_here[run->pc - explore.text_start] = 1;
                explore.covered[run->pc - explore.text_start] = 1;
            }
        } else {
            explore.sums[run->kind].n_missed++;
        }
        explore.sums[run->kind].n_waited += run->has_waited;
        const struct truth *expected = run->is_injected ? truth : &explore.truths[run->entry][KIND_NONE];
        bool is_quiet = !run->is_injected && run->place != place_of(run->entry, KIND_NONE);
        if (run->where == RUN_AT_PC && !run->is_injected && explore.at)
            printf("not met: %s\n", outcome);
        if (!is_quiet && !is_right(expected, outcome))
            fail(run, "%s\n    instead of %s\n    %s", outcome, expected->right[0], expected->right[1]);
        return true;
    }
    if (result == RUN_HUNG) {
        fail(run, "hung");
        session_describe(&explore.session);
    } else {
        fail(run, "the program died (wait status %#x)", (unsigned)run->end_status);
    }
    end_profiled(true);
    return false;
}

/* Counts how often each instruction is reached by a call in that place. */
static bool step(uint32_t entry, uint32_t place)
{
    if (explore.counts[place])
        return true;
    uint32_t *counts = calloc(explore.n_text, sizeof *counts);
    bool is_done = counts != NULL;
    for (int i = 0; is_done && i < STEP_RUNS; i++) {
        struct run plain = {.entry = entry, .place = place, .occurrence = 1, .pc = explore.text_start};
        struct run run = plain;
        run.where = RUN_STEP;
        run.counts = counts;
        is_done = start_profiled() && try_one(&plain) && start_profiled() && try_one(&run);
    }
    for (size_t i = 0; is_done && i < explore.n_text; i++) {
        explore.n_steps += counts[i];
        explore.reached[i] |= counts[i] != 0;
        explore.reached_here[i] |= counts[i] != 0;
    }
    explore.counts[place] = counts;
    return is_done;
}

/* Where to inject: every instruction when there are at most so many points, else evenly spread ones. [n_text] */
static size_t choose(uintptr_t *points, const uint32_t *counts, size_t n_wanted)
{
    size_t n = 0, n_chosen = 0;
    for (size_t i = 0; i < explore.n_text; i++) {
        if (counts[i])
            points[n++] = explore.text_start + i;
    }
    if (!explore.points || n <= n_wanted)
        return n;
    size_t phase = next_random() % n;
    for (; n_chosen < n_wanted; n_chosen++)
        points[n_chosen] = points[n_chosen * n / n_wanted + phase / n_wanted];
    return n_chosen;
}

static bool costs_process(uint32_t entry, uint32_t kind)
{
    return place_of(entry, kind) == PLACE_CHILD || kind == KIND_FORK || kind == KIND_FORK_BESIDE || is_leaving(kind) ||
           explore.entries[entry].flags & ENTRY_NEW_PROCESS;
}

/* Where a call is left while the object map is being changed, the library gives the map up, as it has to: such a
 * session is over, and a new one tries the next point. */
static void try_point(struct run *run)
{
    struct run again = *run;
    bool is_here = start_profiled() && try_one(run);
    if (is_here && !run->is_injected && explore.was_left) {
        end_profiled(false);
        explore.was_left = false;
        explore.sums[run->kind].n_missed--;
        explore.sums[run->kind].n_given_up++;
        is_here = start_profiled() && try_one(&again);
    }
    explore.was_left |= is_leaving(run->kind);
    if (!is_here)
        explore.was_left = false;
    fflush(stdout);
}

/* The call once, with a sample at every instruction of the library that it comes through. */
static void try_ticks(uint32_t entry)
{
    struct run run = {.entry = entry, .kind = KIND_TICKS, .place = place_of(entry, KIND_TICKS), .where = RUN_STEP};
    run.counts = calloc(explore.n_text, sizeof *run.counts);
    run.occurrence = 1;
    run.pc = explore.text_start;
    if (run.counts && start_profiled() && try_one(&run))
        printf("ticks: %s, %lu samples\n", explore.entries[entry].name, run.n_ticks);
    for (size_t i = 0; run.counts && i < explore.n_text; i++) {
        explore.covered_here[i] |= run.counts[i] != 0;
        explore.covered[i] |= run.counts[i] != 0;
        explore.reached[i] |= run.counts[i] != 0;
        explore.reached_here[i] |= run.counts[i] != 0;
    }
    free(run.counts);
}

static void try_kind(uint32_t entry, uint32_t kind)
{
    struct truth *truth = &explore.truths[entry][kind];
    if ((kind == KIND_SAMPLE || kind == KIND_TICKS) && !explore.session.n_sample_fds)
        snprintf(truth->excluded, sizeof truth->excluded, "no perf events here");
    if (truth->excluded[0]) {
        explore.n_excluded++;
        printf("excluded: %s, %s: %s\n", explore.entries[entry].name, kind_names[kind], truth->excluded);
        return;
    }
    if (is_known(entry, kind)) {
        explore.here.n_known++;
        explore.sums[kind].n_known++;
        return;
    }
    if (kind == KIND_TICKS) {
        try_ticks(entry);
        return;
    }
    uint32_t place = place_of(entry, kind);
    if (!step(entry, place))
        return;
    const uint32_t *counts = explore.counts[place];
    uintptr_t *points = calloc(explore.n_text, sizeof *points);
    size_t n_wanted = costs_process(entry, kind) ? explore.points / PROCESS_SHARE + 1 : explore.points;
    size_t n_points = explore.at ? 1 : choose(points, counts, n_wanted);
    if (explore.at)
        points[0] = explore.at;
    unsigned long n_before = explore.here.n_failed, n_missed = explore.sums[kind].n_missed;
    for (size_t i = 0; i < n_points; i++) {
        uint32_t count = explore.at ? 1 : counts[points[i] - explore.text_start] / STEP_RUNS;
        for (unsigned k = 0; k <= (count > 1 ? explore.again : 0); k++) {
            struct run run = {.entry = entry, .kind = kind, .place = place, .where = RUN_AT_PC, .pc = points[i]};
            run.occurrence = k ? (unsigned)(2 + next_random() % (count - 1)) : explore.occurrence;
            try_point(&run);
        }
        if (explore.here.n_failed >= n_before + GIVE_UP_AFTER) {
            explore.sums[kind].n_left_out += n_points - i - 1;
            break;
        }
    }
    n_missed = explore.sums[kind].n_missed - n_missed;
    bool settles = explore.entries[entry].flags & ENTRY_SETTLES;
    if (n_points >= MISSED_MIN && n_missed > n_points / 2 && !settles) {
        struct run run = {.entry = entry, .kind = kind, .pc = points[0], .occurrence = explore.occurrence};
        fail(&run, "%lu of %zu instructions were not reached: after such injections the library is idle", n_missed,
             n_points);
    }
    free(points);
}

static void explore_entry(uint32_t entry)
{
    explore.here = (struct sums){0};
    int64_t start_ns = explore_now_ns();
    if (start_profiled()) {
        memset(explore.covered_here, 0, explore.n_text);
        memset(explore.reached_here, 0, explore.n_text);
        for (uint32_t kind = 1; kind < KIND_COUNT; kind++) {
            if (is_wanted(entry, kind))
                try_kind(entry, kind);
        }
    }
    end_profiled(false);
    size_t n_reached = 0, n_covered = 0;
    for (size_t i = 0; i < explore.n_text; i++) {
        n_reached += explore.reached_here[i];
        n_covered += explore.covered_here[i];
    }
    for (int place = 0; place < PLACES; place++) {
        free(explore.counts[place]);
        explore.counts[place] = NULL;
    }
    printf("%-36s %6zu of %6zu instructions, %7lu injections, %3lu failed, %3lu known, %.1f s\n",
           explore.entries[entry].name, n_covered, n_reached, explore.here.n_injected, explore.here.n_failed,
           explore.here.n_known, (double)(explore_now_ns() - start_ns) / 1e9);
    fflush(stdout);
}

/* --- the start of a program --- */

/* The subject is started once, with something on the way to its gate; no handler of its own is there yet. */
static void try_start(struct run *run)
{
    end_profiled(false);
    bool is_there = session_start(&explore.session, &explore.profiled, run);
    explore.n_sessions++;
    explore.is_running = is_there;
    bool is_killed = run->kind == KIND_KILL && run->is_injected;
    if (is_there == is_killed || (is_killed && run->end_status != SIGKILL))
        fail(run, "the program came %s its gate (wait status %#x)", is_there ? "to" : "not to",
             (unsigned)run->end_status);
    if (run->is_injected) {
        explore.here.n_injected++;
        explore.sums[run->kind].n_injected++;
        if (run->where == RUN_AT_PC) {
            explore.covered_here[run->pc - explore.text_start] = 1;
            explore.covered[run->pc - explore.text_start] = 1;
        }
    } else if (run->where == RUN_AT_PC) {
        explore.sums[run->kind].n_missed++;
    }
    if (!is_there)
        check_records();
}

static void explore_start(void)
{
    static const uint32_t kinds[] = {KIND_STOP, KIND_SAMPLE, KIND_KILL};
    uintptr_t constructor = symbols_find("process_constructor");
    explore.here = (struct sums){0};
    if (!constructor || !start_profiled())
        return;
    const struct session *session = &explore.session;
    struct run plan = {.where = RUN_STEP,
                       .base = session->base,
                       .text_start = session->text_start,
                       .text_end = session->text_end,
                       .constructor = constructor,
                       .occurrence = 1,
                       .pc = explore.text_start,
                       .counts = calloc(explore.n_text, sizeof(uint32_t))};
    struct run stepped = plan;
    try_start(&stepped);
    memset(explore.covered_here, 0, explore.n_text);
    if (has_name(explore.inject, kind_names[KIND_TICKS])) {
        struct run ticks = plan;
        ticks.kind = KIND_TICKS;
        ticks.ticks_from = symbols_find("events_install_handler");
        try_start(&ticks);
        printf("ticks: start, %lu samples\n", ticks.n_ticks);
        if (ticks.n_ticks == 0)
            fail(&ticks, "no sample was taken");
    }
    uintptr_t *points = calloc(explore.n_text, sizeof *points);
    size_t n_points = choose(points, plan.counts, explore.points / PROCESS_SHARE + 1);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t i = 0; i < n_points && explore.here.n_failed < GIVE_UP_AFTER; i++) {
            struct run run = plan;
            run.where = RUN_AT_PC;
            run.kind = kinds[k];
            run.pc = explore.at ? explore.at : points[i];
            run.constructor = constructor;
            if (has_name(explore.inject, kind_names[kinds[k]]))
                try_start(&run);
        }
    }
    end_profiled(false);
    size_t n_reached = 0, n_covered = 0;
    for (size_t i = 0; i < explore.n_text; i++) {
        n_reached += plan.counts[i] != 0;
        explore.reached[i] |= plan.counts[i] != 0;
        n_covered += explore.covered_here[i];
    }
    printf("%-36s %6zu of %6zu instructions, %7lu injections, %3lu failed\n", "start", n_covered, n_reached,
           explore.here.n_injected, explore.here.n_failed);
    free(plan.counts);
    free(points);
}

/* --- the report --- */

static void print_sums(void)
{
    size_t n_reached = 0, n_covered = 0;
    printf("\n%-14s %10s %10s %10s %10s %10s %10s %10s\n", "injection", "made", "not met", "waited", "given up",
           "failed", "known", "left out");
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const struct sums *sums = &explore.sums[kind];
        printf("%-14s %10lu %10lu %10lu %10lu %10lu %10lu %10lu\n", kind_names[kind], sums->n_injected, sums->n_missed,
               sums->n_waited, sums->n_given_up, sums->n_failed, sums->n_known, sums->n_left_out);
        explore.all.n_injected += sums->n_injected;
        explore.all.n_failed += sums->n_failed;
        explore.all.n_known += sums->n_known;
        explore.all.n_left_out += sums->n_left_out;
    }
    for (size_t i = 0; i < explore.n_text; i++) {
        n_reached += explore.reached[i];
        n_covered += explore.covered[i];
    }
    printf("\n%u entry points, %lu injections, %zu of %zu reached instructions covered; %lu native runs, %lu pairs "
           "excluded, %lu known and not tried, %lu sessions, %lu failures, %lu points left out\n",
           explore.n_entries, explore.all.n_injected, n_covered, n_reached, explore.n_native, explore.n_excluded,
           explore.all.n_known, explore.n_sessions, explore.all.n_failed, explore.all.n_left_out);
}

/* What the library exports and no row calls. */
static void print_uncalled(void)
{
    char command[PATH_MAX + 64], name[128];
    unsigned n = 0;
    snprintf(command, sizeof command, "nm -D --defined-only '%s' | sed 's/.* //'", explore.library);
    FILE *pipe = popen(command, "r");
    while (pipe && fscanf(pipe, "%127s", name) == 1) {
        bool is_called = false;
        for (uint32_t entry = 0; entry < explore.n_entries; entry++)
            is_called |= strcmp(explore.entries[entry].symbol, name) == 0;
        if (!is_called)
            printf("%s %s", n++ ? "," : "not called:", name);
    }
    printf("%s", n ? "\n" : "");
    if (pipe)
        pclose(pipe);
}

/* --- start --- */

enum {
    OPTION_FIRST = 256,
    LIBRARY,
    SUBJECT,
    HPCRUN,
    SCRATCH,
    EVENTS,
    CHECK,
    POINTS,
    AGAIN,
    SEED,
    PATIENCE,
    ONLY,
    INJECT,
    AT,
    OCCURRENCE,
    KNOWN,
    LEAST,
    LIST
};

static const struct option options[] = {
    {"library", required_argument, NULL, LIBRARY},
    {"subject", required_argument, NULL, SUBJECT},
    {"hpcrun", required_argument, NULL, HPCRUN},
    {"scratch", required_argument, NULL, SCRATCH},
    {"events", required_argument, NULL, EVENTS},
    {"check", required_argument, NULL, CHECK},
    {"points", required_argument, NULL, POINTS},
    {"again", required_argument, NULL, AGAIN},
    {"seed", required_argument, NULL, SEED},
    {"patience", required_argument, NULL, PATIENCE},
    {"only", required_argument, NULL, ONLY},
    {"inject", required_argument, NULL, INJECT},
    {"at", required_argument, NULL, AT},
    {"occurrence", required_argument, NULL, OCCURRENCE},
    {"known", required_argument, NULL, KNOWN},
    {"least", required_argument, NULL, LEAST},
    {"list", no_argument, NULL, LIST},
    {NULL, 0, NULL, 0},
};

static const char *at_text;

static bool take_option(int option)
{
    switch (option) {
    case LIBRARY:
        explore.library = optarg;
        return true;
    case SUBJECT:
        explore.native.subject = optarg;
        return true;
    case HPCRUN:
        explore.profiled.hpcrun = optarg;
        return true;
    case SCRATCH:
        explore.native.scratch = optarg;
        return true;
    case EVENTS:
        explore.profiled.events = optarg;
        return true;
    case CHECK:
        explore.check = optarg;
        return true;
    case POINTS:
        explore.points = (unsigned)strtoul(optarg, NULL, 0);
        return true;
    case AGAIN:
        explore.again = (unsigned)strtoul(optarg, NULL, 0);
        return true;
    case SEED:
        explore.seed = strtoul(optarg, NULL, 0);
        return true;
    case PATIENCE:
        explore.native.patience_ms = atoi(optarg);
        return true;
    case ONLY:
        explore.only = optarg;
        return true;
    case INJECT:
        explore.inject = optarg;
        return true;
    case AT:
        at_text = optarg;
        return true;
    case OCCURRENCE:
        explore.occurrence = (unsigned)strtoul(optarg, NULL, 0);
        return true;
    case KNOWN:
        explore.known = optarg;
        return true;
    case LEAST:
        explore.least = strtoul(optarg, NULL, 0);
        return true;
    case LIST:
        explore.is_list = true;
        return true;
    default:
        return false;
    }
}

static bool take_options(int argc, char **argv)
{
    int option;
    explore.native.patience_ms = 15000;
    explore.profiled.events = "EADDR@f2";
    explore.occurrence = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take_option(option))
            return false;
    }
    if (!explore.library || !explore.native.subject || !explore.profiled.hpcrun || !explore.native.scratch)
        return false;
    explore.profiled.subject = explore.native.subject;
    explore.profiled.scratch = explore.native.scratch;
    explore.profiled.patience_ms = explore.native.patience_ms;
    symbols_load(explore.library);
    explore.at = at_text ? symbols_find(at_text) : 0;
    return !at_text || explore.at;
}

static bool can_trace(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    sigset_t child;
    if (!take_options(argc, argv)) {
        fprintf(stderr, "explore: see the head of explore.c for its options\n");
        return 2;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (!can_trace()) {
        printf("SKIP: programs may not be traced here\n");
        return EXIT_SKIP;
    }
    sigprocmask(SIG_BLOCK, &child, NULL);
    (void)personality(ADDR_NO_RANDOMIZE); /* the same run again is then the same */
    if (!learn_all()) {
        printf("FAIL: the subject does not run natively\n");
        return 1;
    }
    for (uint32_t entry = 0; entry < explore.n_entries; entry++) {
        if (explore.is_list)
            printf("%s\n", explore.entries[entry].name);
        else if (is_wanted(entry, KIND_NONE))
            explore_entry(entry);
    }
    if (!explore.is_list && has_name(explore.only, "start"))
        explore_start();
    print_sums();
    print_uncalled();
    if (explore.all.n_injected < explore.least) {
        printf("FAIL: fewer than %lu injections\n", explore.least);
        return 1;
    }
    return explore.all.n_failed ? 1 : 0;
}
