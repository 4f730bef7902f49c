/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun's option table and what each row does. Ordinary code. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/environment.h"
#include "hpcrun.h"
#include "sampling/probe.h"
#include "trial/trial.h"

/* --- values of the options that say when a program is sampled --- */

#define SECONDS_MAX (10 * 366 * 86400.0)

/* A time in seconds, decimals allowed, as nanoseconds; more than 0, at most ten years.  err: ERR_USAGE */
static int control_parse_seconds(const char *option, const char *text, uint64_t *ns, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || value > SECONDS_MAX)
        return error_set(err, ERR_USAGE, "%s: '%s' is not a number of seconds above 0, such as 10 or 0.5", option,
                         text);
    *ns = (uint64_t)ceil(value * 1e9);
    return 0;
}

/* The same in whole seconds.  err: ERR_USAGE */
static int control_parse_whole_seconds(const char *option, const char *text, uint32_t *seconds, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 1) || value > SECONDS_MAX || value != floor(value))
        return error_set(err, ERR_USAGE, "%s: '%s' is not a whole number of seconds above 0", option, text);
    *seconds = (uint32_t)value;
    return 0;
}

/* Number, or distance from a real-time signal; -1 when it is something else. */
static long number_of(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    return *text && !*end && strchr("+-0123456789", *text) && labs(value) <= SIGRTMAX ? value : -1;
}

static int signal_named(const char *name)
{
    if (!strncasecmp(name, "SIG", 3))
        name += 3;
    if (!strncasecmp(name, "RTMIN", 5))
        return SIGRTMIN + (name[5] ? (int)number_of(name + 5) : 0);
    if (!strncasecmp(name, "RTMAX", 5))
        return SIGRTMAX + (name[5] ? (int)number_of(name + 5) : 0);
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known && !strcasecmp(known, name))
            return number;
    }
    return (int)number_of(name);
}

static const char *why_not(int number)
{
    static const int of_errors[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof of_errors / sizeof of_errors[0]; i++)
        if (number == of_errors[i])
            return "reports errors of the program";
    if (number == SIGKILL || number == SIGSTOP)
        return "cannot be caught";
    if (number == SIGURG)
        return "is the one that brings the samples";
    if (number == SIGCHLD || number == SIGCONT || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
        return "has a meaning for parents and shells";
    return number > SIGSYS && number < SIGRTMIN ? "belongs to the C library" : NULL;
}

/* The number of a signal that may switch the sampling: a name with or without SIG, RTMIN+N, RTMAX-N, or a number.
 * Refused are those that cannot be caught, report errors of the program, or are needed by libc or by the sampling
 * itself.  err: ERR_USAGE */
static int control_parse_signal(const char *option, const char *text, uint32_t *number, struct error *err)
{
    int value = signal_named(text);
    if (value < 1 || value > SIGRTMAX)
        return error_set(err, ERR_USAGE, "%s: '%s' is not a signal; write USR1, RTMIN+3 or a number", option, text);
    const char *reason = why_not(value);
    if (reason)
        return error_set(err, ERR_USAGE, "%s: signal %s cannot be taken, because it %s; take USR1, USR2 or RTMIN+3",
                         option, text, reason);
    *number = (uint32_t)value;
    return 0;
}

/* --- the table --- */

enum {
    OPT_EVENT = 1,
    OPT_COUNT,
    OPT_TRACE,
    OPT_OUTPUT,
    OPT_APPEND,
    OPT_DELAY_SAMPLING,
    OPT_DELAY,
    OPT_DURATION,
    OPT_START_SIGNAL,
    OPT_STOP_SIGNAL,
    OPT_LIFETIME,
    OPT_FRACTION,
    OPT_MERGE,
    OPT_RECURSION,
    OPT_MEMSIZE,
    OPT_LOW_MEMSIZE,
    OPT_MAX_SIZE,
    OPT_TRACE_SIZE,
    OPT_VERIFY,
    OPT_MEMLEAK_PROB,
    OPT_FNBOUNDS,
    OPT_JOBS,
    OPT_KNOB,
    OPT_DEBUG,
    OPT_LIST,
    OPT_FOREIGN,
    OPT_DOCTOR,
    OPT_REPORT,
    OPT_LEAKS,
    OPT_LEAKS_AT,
    OPT_STRICT,
    OPT_NO_DEEPBIND,
    OPT_MACHINE,
    OPT_STATUS,
    OPT_CONTROL,
    OPT_JSON,
    OPT_LOCAL,
    OPT_COLLECT,
    OPT_COPY,
    OPT_PRINT_PLAN,
    OPT_LIST_NAMES,
    OPT_TRY,
    OPT_PAIRS,
    OPT_METRIC,
    OPT_AGENT,
    OPT_ATTACH,
    OPT_ATTACH_SAFE,
    OPT_NO_UNWIND = OPTION_UNUSED,
    OPT_NO_GPROF,
    OPT_SERIAL_ONLY,
    OPT_MONITOR_DEBUG,
    OPT_AUDIT_DEBUG,
    OPT_DYNAMIC_DEBUG,
    OPT_NAMESPACE,
    OPT_NAMESPACE_SINGLE,
    OPT_NAMESPACE_MULTIPLE,
    OPT_NO_AUDITOR,
    OPT_AUDITOR,
    OPT_NO_REWRITING,
    OPT_EAGER_SHUTDOWN,
    OPT_LOCAL_RANKS,
    OPT_ROCM
};

#define JOBS_MAX 1024
#define BYTES_MAX ((uint64_t)1 << 60)
#define FILES_BYTES_DEFAULT ((uint64_t)1 << 30)
#define TRACE_BYTES_DEFAULT ((uint64_t)64 << 20)
#define WATCHES_DEFAULT 100 /* a second */
#define WATCHES_MAX 1000
#define FILES_BYTES_MIN ((uint64_t)256 << 10)

static const struct option_row rows[] = {
    {OPT_EVENT, "-e --event", "EVENT[@PERIOD|@fHZ]",
     "Sample this event; may be given several times. fHZ is a rate in samples per second. PERIOD is a number of "
     "events. For the clocks (EADDR, CPUTIME, REALTIME, and datacentric where EADDR is its source) it is a time: "
     "microseconds, or a number with ns, us, ms or s (EADDR@500us, CPUTIME@2ms); the shortest is 200us. The perf "
     "events task-clock and cpu-clock count nanoseconds. Sources of the hardware take terms: PEBS,ldlat=30 for loads "
     "of at least 30 cycles, PEBS,large for large buffers (less overhead, no call paths). The default, datacentric, "
     "takes the best source of data addresses that works on this machine, page faults, and the sizes of variables. "
     "EVENT is a source of hpcrun, any event that the kernel or libpfm4 names (-L), PMU/TERM=VALUE,.../, rHEX, "
     "SUBSYSTEM:TRACEPOINT, mem:ADDRESS[/BYTES][:rwx], or a group {EVENT,EVENT,...}. Modifiers follow a colon, as "
     "for perf: u k h p pp ppp P G H I D e."},
    {OPT_COUNT, "-c --count", "PERIOD|fHZ",
     "Period or rate of events that are given without one; a bare number is microseconds for clocks, as with -e."},
    {OPT_TRACE, "-t --trace -tt --ttrace", NULL,
     "Also record a trace: the call path of every sample over time, and a log that says for each on which CPU it was "
     "taken and which byte of which variable it touched. See --trace-size."},
    {OPT_TRACE_SIZE, "--trace-size", "BYTES",
     "Room for the log of samples of -t in one process (suffixes k, m, g; default 64m, at least 256k; a sample takes "
     "24 bytes). When it is full, every second sample of each thread stays, over the whole time, then every fourth, "
     "and so on; the log file says how many were left out."},
    {OPT_VERIFY, "--verify-sharing", "[=RATE]",
     "Find out whether threads use cache lines at the same time, and the same bytes of them: after a sample in one "
     "thread another one, on another processor, watches these bytes and others of the line with two of its hardware "
     "breakpoints, for 5 to 20 ms and once each, RATE times a second at most (default 100, at most 1000; each costs "
     "some 25 microseconds). hpcquery sharing prints what was found."},
    {OPT_OUTPUT, "-o --output", "DIR",
     "Write the measurements into DIR instead of hpctoolkit-COMMAND-measurements[-JOBID]. Each launch has its own "
     "directory: hpcrun moves an earlier measurement there to DIR.1, the next one to DIR.2. When it cannot move it, "
     "because it is still being written or other files lie beside it, the new measurement takes the next number. The "
     "ranks of an MPI program or Slurm step share one directory."},
    {OPT_APPEND, "--append", NULL,
     "Add this run to the measurement that is in the directory already, so that reports cover both."},
    {OPT_FOREIGN, "--foreign-directory", NULL,
     "Accept a measurement directory that belongs to another user, or to which another user's link leads. Without this "
     "option hpcrun refuses it, because that user decides what becomes of the files there."},
    {OPT_DOCTOR, "--doctor", "[=NAME]",
     "Say for each source whether it works on this machine, exactly why not, and what would help. What the machine "
     "claims is tried: a hardware breakpoint has to count writes, a ring to hold a record. With NAME only that is "
     "tried: perf, rings, breakpoints, tracepoints, timers, memfd, userfaultfd or ia32; the exit status is 0 when it "
     "works, 1 when it does not."},
    {OPT_REPORT, "--report", "[=FILE]",
     "When the program has ended, combine the measurements and print the variables: to standard error, so that the "
     "program's output stays as it is, or into FILE, as a page for a browser if its name ends in .html. With -e sched "
     "a screen of what the scheduler did follows (hpcquery sched summary). In an MPI program or Slurm step the rank "
     "that ends last prints one report for all ranks."},
    {OPT_TRY, "--try", "DB|ACTION:VARIABLE",
     "Try the advice of the database DB: run the program in turns as it is and with one piece of advice followed, "
     "without sampling, and say of each what it gains, whether it took effect, and whether it is worth it. Nothing "
     "is compiled: a library in the program gives the blocks of one variable other memory. Given again as "
     "ACTION:VARIABLE, try this instead of the advice. Actions: " TRIAL_ACTIONS
     ". The results go into DB, and hpcquery advice shows them."},
    {OPT_PAIRS, "--pairs", "N",
     "With --try: run the program N times with each action, and as often as it is (default 5, at least 5), after one "
     "run that does not count."},
    {OPT_METRIC, "--metric", "cpu|user|wall|REGEX",
     "With --try: what is compared: CPU time of the program and all that it starts (cpu, the default), the "
     "same in user mode alone (user), elapsed time (wall), or a number in the program's output, the first group of an "
     "extended regular expression. The less the better; with higher:REGEX the more."},
    {OPT_LEAKS, "--leaks", NULL,
     "Also count bytes allocated, freed and leaked (never freed) by allocation path. This adds the event MEMLEAK to "
     "those of -e, or to the default ones, so that one run shows what is left over and how much it was used. With "
     "--report the list is printed too (hpcquery leaks); with a page (--report=FILE.html) it goes to standard error "
     "as text. Blocks below DATACENTRIC_MIN_BYTES do not count, unless -ck SAMPLE_BYTES=N estimates them."},
    {OPT_LEAKS_AT, "--leaks-at", "SECONDS",
     "As --leaks, and also note in each process which blocks are live this long after its start. A program can note it "
     "at any moment by locus_mark_live() of locus.h."},
    {OPT_LIST, "-L -l --list-events", NULL,
     "List the events of this machine by the unit that counts them, and say which can be opened. Operands are "
     "patterns: those of the shell for whole names (\"cpu/mem-*\"), otherwise parts of names. Tracepoints are listed "
     "for patterns with a colon (\"sched:*\"), sub-events of libpfm4 for any pattern."},
    {OPT_PRINT_PLAN, "--print-plan", NULL,
     "Print what would be sampled, with every field of each event's perf_event_attr as NAME=VALUE, and exit without "
     "running anything."},
    {OPT_MACHINE, "--machine", "DIR",
     "With --doctor, -L and --print-plan: examine the machine that DIR describes instead of this one. DIR holds copies "
     "of its /sys/bus/event_source/devices and /proc/cpuinfo, and a file named opens with what its kernel answers. "
     "No program can run then."},
    {OPT_STATUS, "--status", NULL,
     "Show measured processes without stopping them: process PID and those that it started, those measured into DIR, "
     "of a job of Slurm, or all of yours. Of a single one also what costs most, since its start and in the last "
     "second: variables, functions, threads, causes, waits, memory in use. hpcviewer --live shows that each second."},
    {OPT_CONTROL, "--control", NULL,
     "Ask for something in a running measurement of your own. pause stops the sampling, resume goes on with it; rate N "
     "has clocks tick at most N times in a second of CPU time (1/2, 1/4, ... of what it was started with); mark NAME "
     "begins a phase, by which reports can be split (hpcquery vars --by phase), and mark alone ends it; snapshot "
     "writes the measurement as it is now. Weights stay exact, and reports say what was paused."},
    {OPT_COPY, "--copy", "DIR",
     "Write what is measured so far into DIR, which is new or empty and becomes a measurement directory of its own, "
     "and exit: of process PID and those that it started, of a directory with all that is in it, or of all of yours, "
     "as --status takes them. The measured programs and their companions do nothing for it, and go on."},
    {OPT_JSON, "--json", NULL, "With --status: print JSON."},
    {OPT_ATTACH, "--unsafe-attach", "PID",
     "Measure process PID, which runs already, until it ends, --duration is over, or hpcrun gets SIGINT or SIGTERM; "
     "the program goes on. In rare cases it does not: the guide says in which. Its threads are stopped for a moment, "
     "one at a time, until one is at a safe point, which loads a library. All its threads are sampled. Blocks that "
     "were allocated before are named by their mapping, later ones by their call path. Afterwards the library stays in "
     "the program and does nothing; a process can be attached to once. Refused are static programs, programs for musl "
     "or of 32 bits, those of other users (for root, too), in other containers, with a seccomp filter, under a "
     "debugger, or that handle SIGURG. Events must be such as the kernel signals while the program computes: no "
     "timers, no waiting times, no scheduler."},
    {OPT_ATTACH_SAFE, "--attach", "[=PID]", NULL},
    {OPT_STRICT, "--strict", NULL,
     "Do not run the program at all when it cannot be measured (exit status 1). Without this option it runs "
     "unmeasured, after a message."},
    {OPT_NO_DEEPBIND, "--no-deepbind", NULL,
     "Load libraries without RTLD_DEEPBIND, where the program asks for it. This changes which functions they call, so "
     "what the program does may change as well."},
    {OPT_DELAY_SAMPLING, "-ds --delay-sampling", NULL,
     "Do not sample before the program calls hpctoolkit_sampling_start(), or before a signal of --start-signal."},
    {OPT_DELAY, "--delay", "SECONDS",
     "Begin to sample this long after the start. Blocks that were allocated before keep their names."},
    {OPT_DURATION, "--duration", "SECONDS",
     "End the sampling for good this long after the start, or after the delay. The program goes on."},
    {OPT_START_SIGNAL, "--start-signal", "SIGNAL",
     "Start the sampling of a process when it gets this signal (USR1, RTMIN+3 or a number). A handler of the program's "
     "own for it still runs; its default action does not."},
    {OPT_STOP_SIGNAL, "--stop-signal", "SIGNAL",
     "Stop the sampling when this signal comes. With the same signal as --start-signal it stops and starts in turn."},
    {OPT_LIFETIME, "--lifetime", "SECONDS",
     "Send each process SIGALRM this many seconds after its start. The signal ends a process that does not handle it; "
     "what was measured is written."},
    {OPT_FRACTION, "-f -fp --process-fraction", "FRACTION",
     "Measure only this fraction of the processes, for example 0.1 or 1/10. The others run as they are, and the index "
     "of the measurement directory names them. For MPI the choice of ranks is the same each time, rank 0 first."},
    {OPT_MEMSIZE, "-ms --memsize", "BYTES",
     "Address space for the records of one process (suffixes k, m, g; default 1g; memory is only used as it fills)."},
    {OPT_LOW_MEMSIZE, "-lm --low-memsize", "BYTES", "Memory kept ready ahead of what is in use (default 1m)."},
    {OPT_LOCAL, "--local", "DIR",
     "Write records and files into DIR on this node first, a directory in memory or on a local disk, and move them "
     "into the measurement directory when a process has ended. Records are files there, so they survive up to the "
     "last sample even when everything is killed at once. Default: HPCRUN_LOCAL. Without it, only files that the "
     "measurement directory does not take go through TMPDIR."},
    {OPT_COLLECT, "--collect", "DIR",
     "Move files that are still on their way to the measurement directory DIR on this node into it, and exit. Files "
     "are left when measuring was killed or DIR did not take them. Searches --local, HPCRUN_LOCAL and TMPDIR (/tmp)."},
    {OPT_MAX_SIZE, "--max-size", "BYTES",
     "Largest size of all files of one process together (suffixes k, m, g; default 1g, at least 256k). What does not "
     "fit is left out and counted in the log: first every second sample of traces, and so on, then the call paths that "
     "cost least, whose values go to their callers."},
    {OPT_MEMLEAK_PROB, "-mp --memleak-prob", "P",
     "Record only a sample of the allocations, those of DATACENTRIC_MIN_BYTES with probability P, larger ones more "
     "often; reports are scaled accordingly."},
    {OPT_MERGE, "-m --merge-threads", "0|1", "No effect; accepted for older scripts. Each thread has its own files."},
    {OPT_RECURSION, "-r --retain-recursion", NULL,
     "No effect; accepted for older scripts. Recursive calls are always kept."},
    {OPT_FNBOUNDS, "-fnb --fnbounds", "PATH",
     "No effect; accepted for older scripts. hpcrun makes tables of functions itself."},
    {OPT_JOBS, "-js --jobs-symtab", "N",
     "Processes that prepare tables of libraries at the same time, from 1 to 1024 (default 4)."},
    {OPT_KNOB, "-ck --control-knob", "NAME=VALUE",
     "CHECKPOINT_SECONDS=N: seconds between checkpoints (default 10). SAMPLE_BYTES=N: also record blocks below "
     "DATACENTRIC_MIN_BYTES, one for every N bytes on average."},
    {OPT_DEBUG, "-d --debug", NULL, "Wait for a debugger to attach before the program starts."},
    {OPT_AGENT, "-a --attribution --agent", "python",
     "Attribute costs to the code of Python, which hpcrun does anyway; accepted for older scripts."},
    {OPT_NO_UNWIND, "-nu --no-unwind", NULL, NULL},
    {OPT_NO_GPROF, "--disable-gprof", NULL, NULL},
    {OPT_SERIAL_ONLY, "--omp-serial-only", NULL, NULL},
    {OPT_MONITOR_DEBUG, "-md --monitor-debug", NULL, NULL},
    {OPT_AUDIT_DEBUG, "-ad --audit-debug", NULL, NULL},
    {OPT_DYNAMIC_DEBUG, "-dd --dynamic-debug", "FLAG", NULL},
    {OPT_NAMESPACE, "--namespace", NULL, NULL},
    {OPT_NAMESPACE_SINGLE, "--namespace-single", NULL, NULL},
    {OPT_NAMESPACE_MULTIPLE, "--namespace-multiple", NULL, NULL},
    {OPT_NO_AUDITOR, "--disable-auditor", NULL, NULL},
    {OPT_AUDITOR, "--enable-auditor", NULL, NULL},
    {OPT_NO_REWRITING, "--disable-auditor-got-rewriting", NULL, NULL},
    {OPT_EAGER_SHUTDOWN, "--fnbounds-eager-shutdown", NULL, NULL},
    {OPT_LOCAL_RANKS, "-olr --only-local-ranks", "RANKS", NULL},
    {OPT_ROCM, "--rocprofiler-path --rocm-path", "DIR", NULL},
    {OPT_LIST_NAMES, "--list-names", NULL, NULL},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_choice choices[] = {
    {OPT_EVENT, 0, CHOICE_LINES, "--list-names"},
    {0, 0, CHOICE_WORDS, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcrun",
    .summary = "measure which data and which code cost a program its time",
    .synopsis = "[options] [--] COMMAND [ARG...]\n--status [--json] [PID|DIR|JOBID]\n"
                "--control PID|DIR pause|resume|rate N|mark [NAME]|snapshot\n"
                "--copy DIR [PID|DIR|JOBID]...\n--doctor [--machine DIR]\n"
                "-L [--machine DIR] [PATTERN...]\n"
                "--unsafe-attach PID [--duration SECONDS] [--report] [options]\n--print-plan [-e EVENT]... [--machine "
                "DIR]\n--collect DIR [--local DIR]\n"
                "--try DB [--try ACTION:VARIABLE]... [--pairs N] [--metric cpu|user|wall|REGEX] [--] COMMAND [ARG...]",
    .description =
        "Runs COMMAND and samples it: it records where the time goes, by call path and, with the default event, by the "
        "variable that was touched. The program keeps its process id, its standard streams, its exit status and its "
        "signals. Under Slurm and as process 1 of a container hpcrun stays as the parent and passes them on.\n\n"
        "Measurements go into a directory, one set of files per thread, even when the program is killed. "
        "hpcprof(1) combines them, hpcquery(1) prints reports; --report does both.",
    .rows = rows,
    .examples = "  hpcrun ./app                       data-centric measurement of ./app\n"
                "  hpcrun -e CPUTIME@f500 -t ./app    500 samples per CPU second, with a trace\n"
                "  hpcrun --report ./app              measure, combine, print the variables\n"
                "  srun hpcrun -o DIR ./app           all ranks into one directory\n"
                "  hpcrun --try DB ./app              try what hpcquery advice DB says\n"
                "  hpcrun --unsafe-attach 4711 --report      measure what runs already, until Ctrl-C\n"
                "  hpcrun --status                    what is being measured here, and its progress",
    .environment =
        "HPCRUN_OUT_PATH  Measurement directory, when -o is not given.\n"
        "HPCRUN_EVENT_LIST  Events, separated by blanks or semicolons, when -e is not given; NONE: run unmeasured.\n"
        "HPCRUN_LOCAL  As --local.\n"
        "HPCRUN_MAX_SIZE  As --max-size.\n"
        "HPCRUN_TRACE_SIZE  As --trace-size.\n"
        "HPCRUN_VERIFY_SHARING  As --verify-sharing: RATE.\n"
        "HPCRUN_PMU_TABLE  Table of memory events, read after the installed one and the user's own.\n"
        "HPCRUN_DEBUG  DOMAIN[:LEVEL],... or all[:LEVEL], for work on the profiler itself: what its library does in "
        "the program goes into the program's log. Domains: process, events, sample, unwind, loadmap, blocks; levels: "
        "1 to 3.\n"
        "HPCRUN_DELAY_SAMPLING  When it is set, as -ds.\n"
        "HPCRUN_LIFETIME  As --lifetime, when that is not given.\n"
        "HPCRUN_PROCESS_FRACTION  As -f, when that is not given.\n"
        "DATACENTRIC_MIN_BYTES  Smallest block that is always recorded (default 1024; 4k, 1m, ... as --memsize).\n"
        "DATACENTRIC_SMALL_SITES  0: do not note where smaller blocks come from. 1: note it for MEMLEAK alone, too.\n"
        "HPCRUN_DEEPBIND  0: do not redirect the calls of malloc and free in libraries that are loaded with "
        "RTLD_DEEPBIND.\n"
        "HPCRUN_PYTHON  0: do not read which Python code a block or a sample is for.\n"
        "HPCRUN_DATACENTRIC_PROB  As -mp.\n"
        "XDG_CACHE_HOME  Tables of libraries are kept between runs in its directory locus.",
    .exit_status =
        "That of COMMAND. When a signal kills COMMAND, the caller of hpcrun sees the same signal. 127 when COMMAND "
        "does not exist, 126 when it cannot be executed, 2 for wrong options or events, 1 for other failures "
        "of hpcrun itself. With --try: 0 when something is worth it, 3 when nothing is, 1 when the trial could not be "
        "ended, 128 and its number when a signal stopped it.",
    .see_also = "hpcprof(1), hpcquery(1)",
    .stop_at_operand = 1,
    .choices = choices,
};

static int append(const char **items, unsigned *n, const char *value, struct error *err)
{
    if (*n == HPCRUN_EVENTS_MAX)
        return error_set(err, ERR_USAGE, "one option can be given %d times at most", HPCRUN_EVENTS_MAX);
    items[(*n)++] = value;
    return 0;
}

static int parse_bytes(const char *origin, const char *text, uint64_t *bytes, struct error *err)
{
    if (size_of_text(text, BYTES_MAX, bytes))
        return 0;
    return error_set(err, ERR_USAGE, "%s: '%s' is not a size: a number of bytes, which k, m or g may follow", origin,
                     text);
}

static int parse_max_size(const char *origin, const char *text, const char *of, uint64_t *bytes, struct error *err)
{
    int status = parse_bytes(origin, text, bytes, err);
    if (status == 0 && *bytes < FILES_BYTES_MIN)
        status =
            error_set(err, ERR_USAGE, "%s: %s is too small for the %s of a process: at least 256k", origin, text, of);
    return status;
}

static int parse_knob(const char *text, struct hpcrun_options *options, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_set(err, ERR_USAGE, "-ck: '%s' is not of the form NAME=VALUE", text);
    if (!strncmp(text, "CHECKPOINT_SECONDS=", 19))
        return control_parse_whole_seconds("-ck CHECKPOINT_SECONDS", equals + 1, &options->checkpoint_s, err);
    if (!strncmp(text, "SAMPLE_BYTES=", 13))
        return parse_bytes("-ck SAMPLE_BYTES", equals + 1, &options->sample_bytes, err);
    return error_set(err, ERR_USAGE,
                     "-ck: there is no knob '%.*s': CHECKPOINT_SECONDS and SAMPLE_BYTES are the known ones",
                     (int)(equals - text), text);
}

static int parse_number(const char *option, const char *text, unsigned long min, unsigned long max,
                        unsigned long *number, struct error *err)
{
    bool has_digits_only = text[0] && strspn(text, "0123456789") == strlen(text);
    *number = has_digits_only ? strtoul(text, NULL, 10) : ULONG_MAX;
    if (*number >= min && *number <= max)
        return 0;
    return error_set(err, ERR_USAGE, "%s: '%s' is not a number from %lu to %lu", option, text, min, max);
}

/* A name that cannot be written is refused now, not when the program has run for a day. */
static int check_report(const char *file, struct error *err)
{
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666) : -1;
    if (file && fd < 0)
        return error_set(err, ERR_USAGE, "--report: %s: cannot be written: %s", file, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return 0;
}

/* Options of a trial. */
static int take_trial(int id, const char *value, struct hpcrun_options *options, struct error *err)
{
    unsigned long number = 0;
    if (id == OPT_TRY)
        return append(options->tries, &options->n_tries, value, err);
    if (id == OPT_METRIC) {
        options->metric = value;
        return 0;
    }
    int status = parse_number("--pairs", value, TRIAL_PAIRS_MIN, TRIAL_PAIRS_MAX, &number, err);
    options->n_pairs = (unsigned)number;
    return status;
}

static void set_flag(int id, struct hpcrun_options *options)
{
    options->trace |= id == OPT_TRACE;
    options->appends |= id == OPT_APPEND;
    options->delay |= id == OPT_DELAY_SAMPLING;
    options->waits_for_debugger |= id == OPT_DEBUG;
    options->lists |= id == OPT_LIST;
    options->leaks |= id == OPT_LEAKS;
    options->strict |= id == OPT_STRICT;
    options->deepbind = id == OPT_NO_DEEPBIND ? DEEP_DROPPED : options->deepbind;
    options->allows_foreign |= id == OPT_FOREIGN;
    options->prints_plan |= id == OPT_PRINT_PLAN;
    options->lists_names |= id == OPT_LIST_NAMES;
    options->status |= id == OPT_STATUS;
    options->control |= id == OPT_CONTROL;
    options->json |= id == OPT_JSON;
}

/* Python is read anyway; of no other agent anything is known. */
static int take_agent(const char *value, struct hpcrun_options *options, struct error *err)
{
    if (strcmp(value, "python") != 0 && strcmp(value, "flat") != 0)
        return error_set(err, ERR_USAGE, "-a takes python, not '%s'", value);
    if (strcmp(value, "flat") == 0)
        option_unused_add(&options->unused, &spec, OPT_NO_UNWIND);
    return 0;
}

static int take_attach(const char *value, struct hpcrun_options *options, struct error *err)
{
    unsigned long number;
    int status = parse_number("--unsafe-attach", value, 1, INT_MAX, &number, err);
    options->attached = status == 0 ? (pid_t)number : 0;
    return status;
}

/* Options that say when to sample, those of other tools, and flags. */
static int take_control(int id, const char *value, struct hpcrun_options *options, struct error *err)
{
    if (id >= OPTION_UNUSED) {
        option_unused_add(&options->unused, &spec, id);
        return 0;
    }
    switch (id) {
    case OPT_AGENT:
        return take_agent(value, options, err);
    case OPT_ATTACH_SAFE:
        return error_set(err, ERR_USAGE,
                         "--attach can harm the program in rare cases (in the guide: \"A program that hpcrun did not "
                         "start\"); --unsafe-attach PID attaches all the same");
    case OPT_ATTACH:
        return take_attach(value, options, err);
    case OPT_DELAY:
        return control_parse_seconds("--delay", value, &options->delay_ns, err);
    case OPT_DURATION:
        return control_parse_seconds("--duration", value, &options->duration_ns, err);
    case OPT_START_SIGNAL:
        return control_parse_signal("--start-signal", value, &options->start_signal, err);
    case OPT_STOP_SIGNAL:
        return control_parse_signal("--stop-signal", value, &options->stop_signal, err);
    case OPT_LIFETIME:
        return control_parse_whole_seconds("--lifetime", value, &options->lifetime_s, err);
    default:
        set_flag(id, options);
        return 0;
    }
}

/* Reads a fraction, "0.1" or "1/10", above 0 and at most 1. */
static int parse_fraction(const char *option, const char *text, double *part, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *below = end + 1;
        double divisor = strtod(below, &end);
        value = end != below && divisor > 0 ? value / divisor : -1;
    }
    if (end == text || *end || !(value > 0) || value > 1)
        return error_set(err, ERR_USAGE, "%s: '%s' is not a fraction between 0 and 1, such as 0.1 or 1/10", option,
                         text);
    *part = value;
    return 0;
}

static int take(int id, const char *value, struct hpcrun_options *options, struct error *err)
{
    double part;
    unsigned long number;
    switch (id) {
    case OPT_EVENT:
        return append(options->events, &options->n_events, value, err);
    case OPT_COUNT:
        options->count = value;
        return 0;
    case OPT_MACHINE:
        options->machine = value;
        return 0;
    case OPT_DOCTOR:
        options->doctor = true;
        options->trial = value;
        if (!value || trial_find(value) != TRIAL_COUNT)
            return 0;
        return error_set(err, ERR_USAGE,
                         "--doctor: nothing is tried by the name '%s': perf, rings, breakpoints, tracepoints, timers, "
                         "memfd, userfaultfd or ia32",
                         value);
    case OPT_LOCAL:
        options->local = value;
        return 0;
    case OPT_COLLECT:
        options->collect = value;
        return 0;
    case OPT_COPY:
        options->copy = value;
        return 0;
    case OPT_OUTPUT:
        options->output = value;
        return 0;
    case OPT_REPORT:
        options->report = true;
        options->report_file = value;
        return check_report(value, err);
    case OPT_FRACTION:
        options->fraction = value;
        return parse_fraction("-f", value, &options->part, err);
    case OPT_MERGE:
        options->ignored[HPCRUN_IGNORED_MERGE] = "-m has no effect: each thread has files of its own";
        return parse_number("-m", value, 0, 1, &number, err);
    case OPT_RECURSION:
        options->ignored[HPCRUN_IGNORED_RECURSION] = "-r has no effect: recursive calls are always kept";
        return 0;
    case OPT_MEMSIZE:
        return parse_bytes("-ms", value, &options->memsize_bytes, err);
    case OPT_LOW_MEMSIZE:
        return parse_bytes("-lm", value, &options->low_memsize_bytes, err);
    case OPT_MAX_SIZE:
        return parse_max_size("--max-size", value, "files", &options->max_bytes, err);
    case OPT_TRACE_SIZE:
        return parse_max_size("--trace-size", value, "log of samples", &options->trace_bytes, err);
    case OPT_VERIFY:
        number = WATCHES_DEFAULT;
        if (value && parse_number("--verify-sharing", value, 1, WATCHES_MAX, &number, err))
            return ERR_USAGE;
        options->watches_per_s = (uint32_t)number;
        return 0;
    case OPT_LEAKS_AT:
        options->leaks = true;
        return control_parse_seconds("--leaks-at", value, &options->mark_ns, err);
    case OPT_MEMLEAK_PROB:
        options->memleak_prob = value;
        return parse_fraction("-mp", value, &part, err);
    case OPT_FNBOUNDS:
        options->ignored[HPCRUN_IGNORED_FNBOUNDS] = "-fnb has no effect: hpcrun makes tables of functions itself";
        return 0;
    case OPT_JOBS:
        options->jobs_symtab = value;
        return parse_number("-js", value, 1, JOBS_MAX, &number, err);
    case OPT_KNOB:
        return parse_knob(value, options, err);
    case OPT_TRY:
    case OPT_PAIRS:
    case OPT_METRIC:
        return take_trial(id, value, options, err);
    default:
        return take_control(id, value, options, err);
    }
}

/* HPCRUN_DEBUG: DOMAIN[:LEVEL],... or "all". */
static int parse_debug(const char *text, uint64_t *levels, struct error *err)
{
    *levels = 0;
    while (*text) {
        size_t len = strcspn(text, ",:"), n_domains = 0;
        bool has_level = text[len] == ':';
        unsigned level = has_level ? (unsigned)(text[len + 1] - '0') : 1;
        const char *end = text + len + (has_level ? 2 : 0);
        if (level < 1 || level > DEBUG_LEVEL_MOST || (*end && *end != ','))
            return error_set(err, ERR_USAGE, "HPCRUN_DEBUG: %s: the level must be a number from 1 to %d", text,
                             DEBUG_LEVEL_MOST);
        for (int domain = 0; debug_domain_name(domain); domain++) {
            bool is_all = len == strlen("all") && strncmp(text, "all", len) == 0;
            const char *name = debug_domain_name(domain);
            if (!is_all && (strlen(name) != len || strncmp(text, name, len) != 0))
                continue;
            *levels |= (uint64_t)level << (DEBUG_LEVEL_BITS * domain);
            n_domains++;
        }
        if (!n_domains)
            return error_set(err, ERR_USAGE,
                             "HPCRUN_DEBUG: there is no domain \"%.*s\"; these are: process, events, sample, unwind, "
                             "loadmap, blocks, all",
                             (int)len, text);
        text = *end == ',' ? end + 1 : end;
    }
    return 0;
}

/* Static programs are started with these alone. */
static int take_environment(struct hpcrun_options *options, struct error *err)
{
    const char *fraction = getenv("HPCRUN_PROCESS_FRACTION"), *lifetime = getenv("HPCRUN_LIFETIME");
    const char *max_size = getenv("HPCRUN_MAX_SIZE"), *trace_size = getenv("HPCRUN_TRACE_SIZE");
    const char *follows = getenv("HPCRUN_DEEPBIND");
    const char *local = getenv("HPCRUN_LOCAL"), *watches = getenv("HPCRUN_VERIFY_SHARING");
    const char *debug = getenv("HPCRUN_DEBUG");
    int status = debug ? parse_debug(debug, &options->debug, err) : 0;
    if (!options->local && local && local[0])
        options->local = local;
    options->delay |= getenv("HPCRUN_DELAY_SAMPLING") != NULL;
    if (!options->fraction && fraction && fraction[0]) {
        options->fraction = fraction;
        status = parse_fraction("HPCRUN_PROCESS_FRACTION", fraction, &options->part, err);
    }
    if (status == 0 && !options->lifetime_s && lifetime && lifetime[0])
        status = control_parse_whole_seconds("HPCRUN_LIFETIME", lifetime, &options->lifetime_s, err);
    if (status == 0 && !options->max_bytes && max_size && max_size[0])
        status = parse_max_size("HPCRUN_MAX_SIZE", max_size, "files", &options->max_bytes, err);
    if (status == 0 && !options->trace_bytes && trace_size && trace_size[0])
        status = parse_max_size("HPCRUN_TRACE_SIZE", trace_size, "log of samples", &options->trace_bytes, err);
    if (status == 0 && !options->watches_per_s && watches && watches[0]) {
        unsigned long number;
        status = parse_number("HPCRUN_VERIFY_SHARING", watches, 1, WATCHES_MAX, &number, err);
        options->watches_per_s = (uint32_t)number;
    }
    if (follows && !strcmp(follows, "0") && options->deepbind == DEEP_FOLLOWED)
        options->deepbind = DEEP_UNSEEN;
    if (!options->max_bytes)
        options->max_bytes = FILES_BYTES_DEFAULT;
    if (!options->trace_bytes)
        options->trace_bytes = TRACE_BYTES_DEFAULT;
    return status ? status : min_bytes_check(err);
}

int hpcrun_options_parse(int argc, char **argv, struct hpcrun_options *options, struct error *err)
{
    struct option_scan scan = {0};
    *options = (struct hpcrun_options){.part = 1};
    for (int id; (id = options_next(&spec, &scan, argc, argv, err)) != OPTIONS_END;) {
        if (id == OPTIONS_BAD)
            return ERR_USAGE;
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 1;
        int status = take(id, scan.value, options, err);
        if (status != 0)
            return status;
    }
    options->command = argv + scan.index;
    return take_environment(options, err);
}
