/* SPDX-License-Identifier: BSD-3-Clause */
/* How the threads of a program use its variables, and which cache lines they share. Made of the records of where each
 * thread's samples lie (struct reach of fmt/objects.h). Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_PATTERNS_H
#define LOCUS_ANALYSIS_REPORT_PATTERNS_H

#include "analysis/report/first-touch.h"
#include "analysis/report/report.h"

/* The class of a variable is the first of these that holds. N is the number of its samples in the records. A thread
 * counts if it has a quarter of the mean of the threads that have any. Threads are compared within their process, and
 * what is found is summed over the processes.
 *
 * Agreement: samples are sorted into bins; P is the part of the pairs of samples in one bin that are of one thread, Q
 * that of all pairs; the agreement is (P - Q) / (1 - Q): 1 when each bin is one thread's, 0 when the bins tell nothing
 * about threads, whatever the number of samples.
 *
 *   too few samples     N < 64, or fewer than 8 for each thread that counts
 *   single owner        one thread has 90 % of the samples of each process; or the variable is thread-local; or most
 *                       blocks are used by one thread each: agreement by block >= 0.8
 *   blocked by thread   agreement by place >= 0.5, in 64 bins over the variable or, if that is used in one sixteenth or
 *                       less, over what is used; and the owners of the bins change at most twice per thread
 *   interleaved         the same with more changes; or agreement >= 0.5 by (offset modulo T * c), in 4 * T bins, for T
 *                       threads and some chunk c: multiples of 4 up to 64, of 8 up to 512, of an element up to 16,
 *                       powers of two up to what is used / 2T. The offsets are the exact ones that are kept, 64 a
 *                       thread, each counted once
 *   streaming           the threads use more than 1 MiB, all of it together, and in order: 80 % of the samples whose
 *                       instruction's walk is known are of constant stride; or, where less than half are known, 80 % of
 *                       the steps from sample to sample of a thread go the same way
 *   random              the same, but 70 % of the known walks are irregular; or 35 to 65 % of the steps go forward
 *   shared read-write   of the threads that count, 3 samples and 1 % of those whose instruction is known are of one
 *                       that writes: few, because a processor seldom waits for a store
 *   shared read-only    else
 *
 * Confidence is low if the rule holds by less than 0.1 of an agreement or 5 points of a percentage, or if N < 128. It
 * is high if the rule holds by twice that and N >= 512, else medium. */
enum use_class {
    USE_TOO_FEW = 0,
    USE_SINGLE,
    USE_BLOCKED,
    USE_INTERLEAVED,
    USE_STREAMING,
    USE_RANDOM,
    USE_READ_WRITE,
    USE_READ_ONLY,
    USE_CLASSES
};

#define USE_SAMPLES_MIN 64
#define USE_THREAD_SAMPLES_MIN 8
#define USE_LARGE_BYTES (1u << 20)

/* How a variable's samples follow each other. */
enum use_order { ORDER_UNKNOWN = 0, ORDER_FORWARD, ORDER_RANDOM };

enum use_confidence { CONFIDENCE_LOW = 0, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

/* One thread's part of a variable. */
struct pattern_thread {
    uint32_t row;             /* index into the report's rows */
    uint32_t process, thread; /* indexes into the model's lists */
    bool counts;              /* has enough samples */
    uint64_t n_samples;
    uint64_t n_strided, n_irregular;
    struct reach_sum sum;         /* the bins of all threads of a variable are equally wide */
    const struct reach_row *from; /* its offsets; of several allocation paths those of the first */
};

/* A variable. */
struct pattern_row {
    const struct report_row *row;
    size_t first, n; /* its threads */
    size_t n_counting;
    enum use_class class;
    enum use_order order;
    enum use_confidence confidence;
    uint64_t n_samples, n_loads, n_stores;
    uint64_t first_offset, last_offset;
    double owner;    /* part of the samples that the first threads of the processes have */
    double by_place; /* agreements; NAN: not known */
    double by_chunk;
    double by_block;
    uint64_t chunk_bytes; /* of by_chunk; 0: none */
    size_t n_changes;     /* of owners from bin to bin */
    uint64_t step_bytes;  /* of ORDER_FORWARD: most samples go on by so much or, is_least, by that or more; 0: by less
                           * than  a cache line, or not known */
    bool is_least;
};

/* What watchpoints found about a line (hpcrun --verify-sharing): threads on several processors used it within 20
 * milliseconds. With fewer than two traps and fewer than four watches that did not see both, it is not verified. More
 * than 70 % of the traps at the bytes of the other thread's sample are true sharing, less than 30 % false sharing. */
enum line_verdict { VERDICT_NOT_VERIFIED = 0, VERDICT_NONE, VERDICT_TRUE, VERDICT_FALSE, VERDICT_BOTH };

/* One of the two accesses that met at a line most often. */
struct line_side {
    uint32_t row;      /* of the report; UINT32_MAX: the side is not known */
    uint32_t thread;   /* index into the model's list */
    uint32_t accesses; /* 1: reads, 2: writes; 0: not known */
    uint64_t address, n_bytes;
    uint64_t offset_bytes; /* in its block or symbol; UINT64_MAX: not known */
    uint32_t scope;        /* the place in the code: of the model */
    const char *field;     /* borrowed from the report; NULL: none is known */
};

/* A line that several threads of a process use, at least one of which writes: a candidate, since it is not known
 * whether they did so at the same time. It has 16 samples or more. A thread counts that has 3 of them and 5 %; it
 * writes if 2 of its samples and 0.5 % do. For each two threads of which one writes, what they have in common is the
 * sum over the places of 4 bytes of the lesser of both parts, where they began accesses at the same byte. The mean of
 * all pairs by samples is below 0.3 for false sharing, above 0.7 for true sharing.
 *
 * Where the hardware found the variable's lines modified in other cores' caches (report_is_seen_modified), threads need
 * not be known to write, and one thread with samples is enough: many events are of loads alone. If no line of such a
 * variable has 16 samples, there is an entry for all of it. */
#define LINE_ALL UINT64_MAX
struct shared_line {
    uint32_t process;
    uint64_t line; /* address / 64; LINE_ALL: all of the variable, whose n_samples are those of modified lines */
    uint32_t row, other_row; /* of the report: the variable with most of the samples, and another one if there is one */
    enum line_sharing sharing;
    double in_common;
    uint64_t n_samples, n_stores;
    uint64_t n_own; /* of the samples, those of row */
    size_t n_threads, n_writers;
    uint64_t
        offset_bytes;  /* of the line's first sampled byte in the first block of the variable; UINT64_MAX: not known */
    bool is_candidate; /* else only watchpoints say something about it; in_common is NAN */
    bool is_seen_modified; /* by the hardware, of the variable as a whole */
    enum line_verdict verdict;
    uint64_t n_same, n_beside,
        n_none;                /* watches that saw the same bytes used, others of the line, or not both threads */
    uint64_t n_most;           /* of the traps, those of one pair of accesses: */
    struct line_side sides[2]; /* the sample, and the access that was trapped; not with n_most 0 */
};

struct patterns {
    const struct report *report;    /* borrowed, or made */
    struct report *made;            /* NULL: report is borrowed */
    struct pattern_thread *threads; /* [n_threads] by row, process and thread */
    size_t n_threads, cap_threads;
    struct pattern_row *rows; /* [n_rows] in the report's order */
    size_t n_rows;
    struct shared_line *lines; /* [n_lines] by samples, most first */
    size_t n_lines, cap_lines;
    bool is_watched; /* lines were watched */
};

/* Fills *patterns with the variables of a report, which must outlive it and may not be ordered anew.  err: ERR_MEMORY
 */
int patterns_of_report(const struct report *report, struct patterns *patterns, struct error *err);

/* The same with a report of its own about a metric. It must not outlive the model.  err: ERR_MEMORY */
int patterns_make(const struct model *model, size_t metric, bool with_paths, struct patterns *patterns,
                  struct error *err);

/* The same, where the report has this variable; NULL: in any case.  err: also ERR_NOT_FOUND, with the names like it */
int patterns_make_of(const struct model *model, size_t metric, bool with_paths, const char *variable,
                     struct patterns *patterns, struct error *err);

/* The error of a variable without places that were sampled; frees *patterns. Returns ERR_NOT_FOUND.  ctx: ordinary */
int patterns_refuse_variable(struct patterns *patterns, const char *name, struct error *err);
void patterns_fini(struct patterns *patterns);

/* "blocked by thread", "low", "false sharing". Static storage. */
const char *use_class_name(enum use_class class);
const char *use_confidence_name(enum use_confidence confidence);
const char *line_sharing_name(enum line_sharing sharing);
const char *line_verdict_name(enum line_verdict verdict);

/* The lines of a variable that threads share in one way, and which no watchpoint found otherwise. */
struct shared_part {
    size_t n_lines, n_verified;
    size_t n_threads; /* the most of any line */
    double percent;   /* of the variable's samples */
};

/* Whether a walk goes so far from access to access that the lines between are not used: unrolled loops make smaller
 * strides of dense walks, and so do walks along one field. element_bytes: of the variable; 0: not known */
bool patterns_is_far(const struct variable_walk *walk, uint64_t element_bytes);

/* shared-lines.c: fills *part for lines of false sharing; for those of true sharing that several threads write; with
 * SHARING_BOTH, for these and those of both together; or, with SHARING_SEEN, for those of true sharing that one thread
 * writes and others read. Whether that is much: 32 samples, and 30 % of the
 * variable's. */
bool shared_lines_part(const struct patterns *patterns, const struct pattern_row *row, enum line_sharing sharing,
                       struct shared_part *part);

/* shared-lines.c: sets is_shared of the rows of a report: the time at such lines is a matter of the data, whatever its
 * causes are. Costs little where there are no causes. err: ERR_MEMORY */
int shared_lines_mark(struct report *report, struct error *err);

/* shared-lines.c: opens the intervals of what the rows were spent on, once these are known, by their samples on lines
 * that threads share and one of them writes: whether these waited is not verified, wherever else their lines come from.
 * What watchpoints saw not shared at the same time is left out.  err: ERR_MEMORY */
int shared_lines_add_causes(struct report *report, struct error *err);

/* shared-lines.c: fills in the lines, once the rows are there. False when out of memory. */
bool shared_lines_find(struct patterns *patterns);

#endif
