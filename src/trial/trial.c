/* SPDX-License-Identifier: BSD-3-Clause */
/* A trial: the program runs in turns as it is and with an action. See trial.h. */
#include "trial/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/scratch.h"

#define TOOL "hpcrun"
#define RUNNING TRIAL_DIRECTORY ".new" /* of the database, while the trial runs */

/* From so many seconds on it is said beforehand how long a trial takes. */
enum { ANNOUNCED_S = 60 };

/* Where so many pairs leave it open whether there is a difference, it goes on up to this number. */
#define PAIRS_MOST(n_pairs) (2 * (n_pairs) + 1)

/* What is under way for one wish. */
struct attempt {
    const struct trial_wish *wish;
    struct trial_result result;
    double *ratios, *bases, *withs; /* [PAIRS_MOST(n_pairs)] */
    unsigned n;
    struct trial_effect effect; /* sums over its runs */
    unsigned n_runs;
    bool has_ended, differs;
    unsigned n_left;
};

struct trial {
    const struct trial_setup *setup;
    struct attempt *attempts; /* [n_attempts] */
    size_t n_attempts;
    int directory;
    char *path; /* of the directory */
    unsigned n_runs, n_all;
    uint64_t begun_ns;          /* of the monotonic clock */
    bool has_progress, is_void; /* is_void: the output is another one each time */
    unsigned n_left;
    char first[64]; /* name of the first run */
    int stopped_by;
};

/* --- output --- */

/* Whether two files of the directory hold the same. */
static bool is_same(int directory, const char *a, const char *b)
{
    int fds[2] = {openat(directory, a, O_RDONLY | O_CLOEXEC), openat(directory, b, O_RDONLY | O_CLOEXEC)};
    char parts[2][16384];
    bool same = fds[0] >= 0 && fds[1] >= 0;
    for (ssize_t n = 1; same && n > 0;) {
        n = read(fds[0], parts[0], sizeof *parts);
        ssize_t m = 0, more = 1;
        while (n > 0 && m < n && (more = read(fds[1], parts[1] + m, (size_t)(n - m))) > 0)
            m += more;
        if (n == 0)
            m = read(fds[1], parts[1], 1);
        same = n >= 0 && m == n && memcmp(parts[0], parts[1], (size_t)n) == 0;
    }
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return same;
}

/* Seconds that the runs which are left take, if they are as long as those so far; 0 before the first. */
static double seconds_left(const struct trial *trial)
{
    double so_far_s = (double)(clock_now_ns(CLOCK_MONOTONIC) - trial->begun_ns) / 1e9;
    unsigned n_left = trial->n_all > trial->n_runs ? trial->n_all - trial->n_runs : 0;
    return trial->n_runs ? so_far_s / trial->n_runs * n_left : 0;
}

/* Writes "40 s" or "3 min". */
static void put_duration(double seconds, char text[32])
{
    bool is_long = seconds >= 100;
    (void)snprintf(text, 32, "%.0f %s", is_long ? seconds / 60 : seconds, is_long ? "min" : "s");
}

static void show_progress(const struct trial *trial, const char *what)
{
    char left[32];
    put_duration(seconds_left(trial), left);
    if (trial->has_progress)
        (void)fprintf(stderr, "\r\033[K" TOOL ": run %u of %u%s%s%s: %.60s", trial->n_runs + 1, trial->n_all,
                      trial->n_runs ? ", about " : "", trial->n_runs ? left : "", trial->n_runs ? " left" : "", what);
}

/* Says after the first run how long all of it takes, where that is long and no progress shows it. */
static void announce(const struct trial *trial)
{
    char left[32];
    double seconds = seconds_left(trial);
    put_duration(seconds, left);
    if (trial->n_runs == 1 && !trial->has_progress && seconds >= ANNOUNCED_S)
        (void)fprintf(stderr, TOOL ": --try: %u more runs, about %s\n", trial->n_all - 1, left);
}

static void end_progress(const struct trial *trial)
{
    if (trial->has_progress)
        (void)fprintf(stderr, "\r\033[K");
}

static void put_note(struct trial_result *result, const char *sentence)
{
    struct buf text = {0};
    buf_printf(&text, "%s%s%s", result->note ? result->note : "", result->note && *result->note ? "; " : "", sentence);
    free(result->note);
    result->note = text.data;
}

/* Appends how a run ended: "status 3", "signal 11 (Segmentation fault)". */
static void put_status(int wait_status, struct buf *text)
{
    if (WIFSIGNALED(wait_status))
        buf_printf(text, "signal %d (%s)", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    else
        buf_printf(text, "status %d", WEXITSTATUS(wait_status));
}

/* --- one run --- */

static bool write_file(int directory, const char *name, const void *bytes, size_t n_bytes)
{
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool is_whole = fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes;
    return fd >= 0 && close(fd) == 0 && is_whole;
}

/* Writes table and empty record for a run. */
static bool write_table(const struct trial *trial, const struct trial_wish *wish)
{
    static const struct trial_effect none;
    struct buf text = {0};
    buf_printf(&text, TRIAL_TABLE_FIRST "\n%s/record\n%s\n%s\n%s", trial->path, wish->action, wish->argument,
               wish->places);
    bool is_written = text.data && text.len_bytes < TRIAL_TABLE_BYTES &&
                      write_file(trial->directory, "table", text.data, text.len_bytes) &&
                      write_file(trial->directory, "record", &none, sizeof none);
    buf_fini(&text);
    return is_written;
}

/* Adds the record of a run to the sums. */
static void read_record(const struct trial *trial, struct attempt *attempt)
{
    struct trial_effect record;
    int fd = openat(trial->directory, "record", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &record, sizeof record) == (ssize_t)sizeof record) {
        _Atomic uint64_t *sums = (_Atomic uint64_t *)&attempt->effect;
        const _Atomic uint64_t *numbers = (const _Atomic uint64_t *)&record;
        for (size_t i = 0; i < sizeof record / sizeof *sums; i++)
            sums[i] += numbers[i];
        attempt->effect.refused_as = record.refused_as;
        attempt->n_runs++;
    }
    if (fd >= 0)
        (void)close(fd);
}

/* Runs it once more. Returns false when the trial is over: the sentence has been said. */
static bool run_once(struct trial *trial, struct attempt *attempt, struct trial_run *run, char name[64])
{
    const struct trial_wish *wish = attempt ? attempt->wish : NULL;
    struct error err;
    struct buf table = {0}, what = {0};
    buf_printf(&table, "%s/table", trial->path);
    buf_printf(&what, "%s%s%s", wish ? wish->action : "as it is", wish ? " on " : "", wish ? wish->variable : "");
    show_progress(trial, what.data ? what.data : "");
    (void)snprintf(name, 64, "%03u-%s", trial->n_runs, wish ? wish->action : "as-it-is");
    enum trial_end end = TRIAL_CANNOT_RUN;
    if (wish && !write_table(trial, wish))
        (void)error_set(&err, ERR_IO, "%s: cannot be written: %s", trial->path, strerror(errno));
    else
        end = trial_run_once(trial->setup, trial->directory, name, wish ? table.data : NULL, run, &err);
    trial->n_runs++;
    trial->n_left += run->n_left;
    announce(trial);
    if (wish)
        read_record(trial, attempt);
    if (end != TRIAL_RAN)
        end_progress(trial);
    if (end == TRIAL_CANNOT_RUN)
        (void)tool_error(TOOL, "%s", err.text);
    else if (end == TRIAL_STOPPED)
        (void)tool_error(TOOL, "--try: stopped by a signal in run %u of %u: nothing of the trial was kept",
                         trial->n_runs, trial->n_all);
    else if (end == TRIAL_HAS_NO_NUMBER)
        (void)tool_error(TOOL, "--metric: the program's output has no number that matches '%s' (%s)",
                         trial->setup->metric->text, what.data ? what.data : "");
    trial->stopped_by = end == TRIAL_STOPPED ? run->wait_status : 0;
    buf_fini(&table);
    buf_fini(&what);
    return end == TRIAL_RAN;
}

/* As it is. False when the trial is over. */
static bool run_base(struct trial *trial, double *value)
{
    struct trial_run run;
    struct buf status = {0};
    char name[64], a[80], b[80];
    if (!run_once(trial, NULL, &run, name))
        return false;
    *value = run.value;
    if (run.wait_status != 0) {
        put_status(run.wait_status, &status);
        end_progress(trial);
        (void)tool_error(TOOL, "--try: the program failed as it is, with %s, in run %u of %u: nothing was kept",
                         status.data ? status.data : "", trial->n_runs, trial->n_all);
        buf_fini(&status);
        return false;
    }
    (void)snprintf(a, sizeof a, "%s.out", name);
    if (!*trial->first)
        (void)snprintf(trial->first, sizeof trial->first, "%s", name);
    (void)snprintf(b, sizeof b, "%s.out", trial->first);
    trial->is_void |= !is_same(trial->directory, a, b);
    return true;
}

/* Ends a wish with a verdict other than those of figures. */
static void end_attempt(struct trial *trial, struct attempt *attempt, enum trial_verdict verdict)
{
    attempt->has_ended = true;
    attempt->result.verdict = verdict;
    if (attempt->n < trial->setup->n_pairs)
        trial->n_all -= 2 * (trial->setup->n_pairs - attempt->n) - 2;
}

/* With the action. False when the trial is over. */
static bool run_with(struct trial *trial, struct attempt *attempt, double base)
{
    struct trial_run run;
    char name[64], a[80], b[80];
    bool is_higher = trial->setup->metric->is_higher_better;
    if (!run_once(trial, attempt, &run, name))
        return false;
    if (run.wait_status != 0) {
        struct buf text = {0};
        buf_printf(&text, "the program failed with the action, with ");
        put_status(run.wait_status, &text);
        buf_printf(&text, ", and not without it (%s/%s.err has what it said)", TRIAL_DIRECTORY, name);
        put_note(&attempt->result, text.data ? text.data : "");
        buf_fini(&text);
        end_attempt(trial, attempt, TRIAL_FAILED);
        return true;
    }
    if (!trial_describe_effect(&attempt->effect, attempt->n_runs, &attempt->result)) {
        end_attempt(trial, attempt, TRIAL_NO_EFFECT);
        return true;
    }
    attempt->bases[attempt->n] = base;
    attempt->withs[attempt->n] = run.value;
    attempt->ratios[attempt->n++] = is_higher ? base / run.value : run.value / base;
    (void)snprintf(a, sizeof a, "%s.out", name);
    (void)snprintf(b, sizeof b, "%s.out", trial->first);
    attempt->differs |= !is_same(trial->directory, a, b);
    return true;
}

/* --- all runs --- */

static void judge(const struct trial *trial, struct attempt *attempt)
{
    struct trial_result *result = &attempt->result;
    char text[160];
    if (!attempt->has_ended) {
        trial_measure(attempt->ratios, attempt->n, result);
        result->base = trial_median(attempt->bases, attempt->n);
        result->with = trial_median(attempt->withs, attempt->n);
        result->verdict = isfinite(result->high) ? trial_judge(result) : TRIAL_NO_DIFFERENCE;
    }
    if (attempt->n && attempt->differs && !trial->is_void)
        put_note(result, "the program's output is another one with the action: look whether it is as good");
    if (attempt->effect.n_forks) {
        (void)snprintf(text, sizeof text,
                       "the program starts processes (%.0f forks in a run): the action was done in them too, and their "
                       "time counts",
                       (double)attempt->effect.n_forks / attempt->n_runs);
        put_note(result, text);
    }
}

/* Whether the pairs of a wish leave it open whether there is a difference: the median says so, and the interval does
 * not.
 */
static bool is_open(const struct trial *trial, const struct attempt *attempt)
{
    struct trial_result result = {0};
    double ratios[PAIRS_MOST(TRIAL_PAIRS_MAX)];
    if (attempt->has_ended || attempt->n < trial->setup->n_pairs)
        return !attempt->has_ended;
    memcpy(ratios, attempt->ratios, attempt->n * sizeof *ratios);
    trial_measure(ratios, attempt->n, &result);
    enum trial_verdict verdict = trial_judge(&result);
    result.low = result.high = result.ratio;
    return verdict != trial_judge(&result);
}

/* The turns: as it is, with one action, as it is, with the next one, and so on; one run to begin with is not counted.
 */
static bool run_all(struct trial *trial)
{
    unsigned n_least = trial->setup->n_pairs;
    double base;
    if (!run_base(trial, &base))
        return false;
    for (unsigned pair = 0; pair < PAIRS_MOST(n_least); pair++)
        for (size_t i = 0; i < trial->n_attempts; i++) {
            if (!is_open(trial, &trial->attempts[i]))
                continue;
            trial->n_all += pair >= n_least ? 2 : 0;
            if (!run_base(trial, &base) || !run_with(trial, &trial->attempts[i], base))
                return false;
        }
    return true;
}

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static bool begin_attempt(const struct trial *trial, const struct trial_wish *wish, struct attempt *attempt)
{
    const struct trial_metric *metric = trial->setup->metric;
    unsigned n = PAIRS_MOST(trial->setup->n_pairs);
    *attempt = (struct attempt){.wish = wish};
    attempt->ratios = calloc(3 * (size_t)n, sizeof *attempt->ratios);
    attempt->bases = attempt->ratios + n;
    attempt->withs = attempt->bases + n;
    attempt->result = (struct trial_result){.action = copy(wish->action),
                                            .variable = copy(wish->variable),
                                            .site = copy(wish->site),
                                            .metric = copy(metric->is_user   ? "CPU time in user mode"
                                                           : metric->is_cpu  ? "CPU time"
                                                           : metric->is_wall ? "elapsed time"
                                                                             : metric->text),
                                            .effect = copy(""),
                                            .note = copy(""),
                                            .predicted = wish->predicted};
    if (*wish->places)
        return attempt->ratios && attempt->result.note;
    free(attempt->result.effect);
    attempt->result.effect =
        copy("the database does not say where in the program it comes from, or who uses it: measure "
             "again, with hpcprof of this version, or try another variable");
    attempt->result.verdict = TRIAL_NO_EFFECT;
    attempt->has_ended = true;
    return attempt->ratios && attempt->result.effect;
}

/* --- the directory --- */

/* Makes the directory of the runs in the database, which nobody else may use meanwhile.  err: ERR_IO */
static int make_directory(struct trial *trial, struct error *err)
{
    struct buf path = {0};
    char *real = realpath(trial->setup->database, NULL);
    buf_printf(&path, "%s/" RUNNING, real ? real : trial->setup->database);
    free(real);
    trial->path = path.data;
    if (!trial->path)
        return error_memory(err);
    if (mkdir(trial->path, 0777) != 0 && errno != EEXIST)
        return error_set(err, ERR_IO, "%s: cannot be made: %s", trial->path, strerror(errno));
    trial->directory = open(trial->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (trial->directory < 0)
        return error_set(err, ERR_IO, "%s: cannot be used: %s", trial->path, strerror(errno));
    if (flock(trial->directory, LOCK_EX | LOCK_NB) != 0) {
        (void)close(trial->directory);
        trial->directory = -1;
        return error_set(err, ERR_IO, "%s: another trial is under way there", trial->setup->database);
    }
    scratch_note(trial->path);
    return 0;
}

/* Whether results [n] has the wish of another one. */
static bool has_wish(const struct trial_results *results, const struct trial_result *like)
{
    for (size_t i = 0; i < results->n; i++)
        if (strcmp(results->items[i].action, like->action) == 0 &&
            strcmp(results->items[i].variable, like->variable) == 0 && strcmp(results->items[i].site, like->site) == 0)
            return true;
    return false;
}

/* The new results, and those of earlier trials of other wishes. Takes both over. */
static int keep(struct trial *trial, struct trial_results *made, struct error *err)
{
    struct trial_results older;
    struct buf target = {0};
    int code = trial_results_read(trial->setup->database, &older, err);
    for (size_t i = 0; code == 0 && i < older.n; i++) {
        if (has_wish(made, &older.items[i]))
            continue;
        if (!vec_reserve(&made->items, &made->capacity, made->n + 1, sizeof *made->items))
            code = error_memory(err);
        else
            made->items[made->n++] = older.items[i];
        older.items[i] = (struct trial_result){0};
    }
    (void)unlinkat(trial->directory, "table", 0);
    (void)unlinkat(trial->directory, "record", 0);
    if (code == 0)
        code = trial_results_write(trial->path, made, err);
    buf_printf(&target, "%.*s", (int)(strlen(trial->path) - strlen(".new")), trial->path);
    if (code == 0 && target.data) {
        scratch_remove(target.data);
        if (rename(trial->path, target.data) != 0)
            code = error_set(err, ERR_IO, "%s: cannot be put in place: %s", target.data, strerror(errno));
        else
            scratch_forget(trial->path);
    }
    trial_results_fini(&older);
    buf_fini(&target);
    return code;
}

static int say(struct trial *trial, FILE *out)
{
    struct trial_results made = {0};
    struct error err;
    struct buf text = {0};
    int status = TRIAL_EXIT_NOTHING;
    for (size_t i = 0; i < trial->n_attempts; i++) {
        struct attempt *attempt = &trial->attempts[i];
        judge(trial, attempt);
        buf_printf(&text, "%s", i ? "\n" : "");
        trial_put(&attempt->result, &text);
        status = attempt->result.verdict == TRIAL_WORTH_IT ? TRIAL_EXIT_WORTH_IT : status;
        if (vec_reserve(&made.items, &made.capacity, made.n + 1, sizeof *made.items)) {
            made.items[made.n++] = attempt->result;
            attempt->result = (struct trial_result){0};
        }
    }
    if (trial->is_void)
        buf_printf(&text, "\nThe program's output differs from run to run as it is, so it does not tell whether an "
                          "action changes it.\n");
    if (trial->n_left)
        buf_printf(
            &text,
            "\nThe program left processes behind that did not end by themselves (%u in %u runs): they were ended.\n",
            trial->n_left, trial->n_runs);
    buf_printf(&text, "\nThe output of all runs is in %s/" TRIAL_DIRECTORY ".\n", trial->setup->database);
    int code = keep(trial, &made, &err);
    if (text.data)
        (void)fputs(text.data, out);
    trial_results_fini(&made);
    buf_fini(&text);
    return code == 0 ? status : tool_error(TOOL, "%s", err.text);
}

/* Signals that end a program wait until they are asked for. */
static void block_signals(sigset_t *before)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGTTOU};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        (void)sigaddset(&set, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &set, before);
}

int trial_perform(const struct trial_setup *setup, const struct trial_wish *wishes, size_t n, FILE *out)
{
    struct trial trial = {.setup = setup, .n_attempts = n, .directory = -1, .has_progress = isatty(STDERR_FILENO) == 1};
    struct error err;
    sigset_t before;
    trial.begun_ns = clock_now_ns(CLOCK_MONOTONIC);
    trial.n_all = 1 + 2 * setup->n_pairs * (unsigned)n;
    trial.attempts = calloc(n + 1, sizeof *trial.attempts);
    int code = trial.attempts ? 0 : error_memory(&err);
    for (size_t i = 0; code == 0 && i < n; i++)
        code = begin_attempt(&trial, &wishes[i], &trial.attempts[i]) ? 0 : error_memory(&err);
    block_signals(&before);
    if (code == 0)
        code = make_directory(&trial, &err);
    int status = code == 0 ? TRIAL_EXIT_ERROR : tool_error(TOOL, "--try: %s", err.text);
    bool has_run = code == 0 && run_all(&trial);
    end_progress(&trial);
    if (has_run)
        status = say(&trial, out);
    if (trial.directory >= 0)
        scratch_remove_noted();
    for (size_t i = 0; trial.attempts && i < n; i++) {
        struct trial_results one = {.items = malloc(sizeof *one.items), .n = 1};
        free(trial.attempts[i].ratios);
        if (one.items) {
            *one.items = trial.attempts[i].result;
            trial_results_fini(&one);
        }
    }
    free(trial.attempts);
    free(trial.path);
    if (trial.directory >= 0)
        (void)close(trial.directory);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return trial.stopped_by ? 128 + trial.stopped_by : status;
}
