/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as far as a database has evidence for it: a sentence for each variable, and for what is no variable.
 * Where it is not verified that a row waits for memory, the rules about data apply to it all the same, and say so. A
 * large row about which no rule says anything gets the reason, and which run would tell. The rules about the order and
 * size of accesses are in advice-data.c, about the order of loops and about Python in advice-loops.c, those about
 * places and cache lines in advice-places.c, about rows that are no variables in advice-rows.c, about all rows together
 * in advice-whole.c, about instructions in advice-code.c and advice-insns.c; advice.c puts them in order,
 * export-advice.c and, behind a report, advice-short.c print them; advice-try.c says what of it can be tried. Ordinary
 * code. */
#ifndef LOCUS_EXPORT_ADVICE_H
#define LOCUS_EXPORT_ADVICE_H

#include "analysis/report/leaks.h"
#include "analysis/report/numa.h"
#include "analysis/report/patterns.h"
#include "export/prepared.h"
#include "trial/trial.h"

/* A place in the code that can be changed by itself: a loop, with all that it calls; a function of the language's
 * libraries, with all that it calls and the lines that call it; else a line, with all that it calls; where no lines are
 * known, a function with what it calls of those libraries, since of others' functions nothing is said. */
enum spot_kind { SPOT_NONE = 0, SPOT_LIBRARY, SPOT_LOOP, SPOT_LINE, SPOT_FUNCTION, SPOT_CALL };

struct code_spot {
    enum spot_kind kind;
    uint32_t module, function; /* string ids; the function is the one that another module called */
    uint64_t vaddr; /* of the loop's first instruction, else of the function's; 0: SPOT_LIBRARY; of the call */
    uint32_t file, line, end_line;
    uint32_t scope; /* of its costliest statement */
    double value;   /* of the row there */
};

/* One piece of advice. */
struct advice {
    const char *rule; /* "interleave" */
    const char *name, *class, *site;
    const struct variable *variable; /* that it is about, of the report; NULL: none */
    double share, memory;            /* percent of all samples; memory NAN: not known */
    double gain;           /* percent of the samples that are not the profiler's: it saves no more; NAN: not known */
    bool is_verified;      /* it is known that much of the row's time waits, or does not, as the rule says */
    bool is_of_cpu_time;   /* share and gain are percent of the CPU time, of which samples are a part */
    double rank;           /* advice of a higher one comes first */
    char *place;           /* of most of the row's samples: "loop cg.c:12-14", "cg.c:12", "daxpy"; "": not known */
    uint64_t live_bytes;   /* of a leak: the memory that following it saves; else 0 */
    size_t number;         /* in the order of the report */
    struct code_spot spot; /* of advice about code; SPOT_NONE: none is known */
    char *words, *evidence;
    char *programs; /* that use it: "cc1, as"; NULL: not known */
};

struct code_files;

struct advices {
    const struct export_job *job;
    struct leaks leaks;
    struct prepared prepared;
    struct report *report;         /* what was prepared */
    struct first_touches *touches; /* the same */
    struct numa numa;
    struct patterns patterns;
    bool has_leaks, has_numa, has_patterns;
    const char **programs; /* [n_programs] names of the measured programs, all different, borrowed from the model */
    size_t n_programs, cap_programs;
    uint32_t *program_of; /* [strings] which of them a string names as a module, 1 + index; 0: none */
    struct advice *items; /* [n_items] what may gain most first, see advices_make; leaks last */
    size_t n_items, cap_items;
    struct trial_results tried; /* what came of trying it (hpcrun --try) */
    struct code_files *code;    /* the modules whose instructions were asked for; NULL: none yet */
    bool failed;
};

/* Makes all advice about the job's metric, for its rows from job->least percent on. Its order is that of what it may
 * gain, where what is not verified counts for three quarters; advice whose gain is not known counts as much as its row
 * may wait; what is about debug information comes behind all that, and leaks last. It must not outlive the model.
 * err: ERR_MEMORY, those of trial_results_read */
int advices_make(const struct export_job *job, struct advices *advices, struct error *err);
void advices_fini(struct advices *advices);

/* Appends one piece of advice for each row of 10 % and more, a line or two each, behind a report about time: the one
 * that may gain most; of reports without such rows, or of other metrics, the first pieces that are worth it. Nothing
 * when there are none.
 * err: ERR_MEMORY */
int advices_put_short(const struct export_job *job, struct buf *out, struct error *err);

/* advice-try.c: what came of trying a piece of advice, the best where there are several; NULL: it has not been tried.
 */
const struct trial_result *advice_tried(const struct trial_results *results, const struct advice *advice);

/* --- for the rules --- */

#define ADVICE_SHARE_MIN 5.0         /* percent of all samples that a row must have, unless the job says otherwise */
#define ADVICE_LARGE_PERCENT 10.0    /* ... and from which it gets an answer in any case */
#define ADVICE_WORTH_PERCENT 3.0     /* of all time: what a change must be able to gain ... */
#define ADVICE_WORTHLESS_PERCENT 1.0 /* ... and the share of a variable about which it is said that it cannot */
#define ADVICE_ARITHMETIC "change the arithmetic, not the data" /* begins advice about execution that data feed */
#define ADVICE_PART 0.5 /* of a row's samples that must be of a kind for a rule about that */

/* Adds advice about a row, unless following it gains nothing. words: copied. evidence is taken over, and empty
 * afterwards. Returns the piece, to be changed before the next one is added; NULL: none was added. */
struct advice *advice_add(struct advices *advices, const struct report_row *row, const char *rule, double gain,
                          const char *words, struct buf *evidence);

/* advice-short.c: the program's part, without the profiler's own, of the CPU time, or of all samples. */
double advice_program_part(const struct advices *advices, bool is_of_cpu_time);

/* Percent of all samples that waited for memory at the row, at most; all of its samples where that is not known. */
double advice_waited(const struct advices *advices, const struct report_row *row);

enum row_verdict { ROW_IS_OTHER = 0, ROW_WAITS, ROW_MAY_WAIT, ROW_COMPUTES, ROW_TOUCHES };

/* Whether it is known that most of the row's samples waited for memory; that they may have; that they
 * did not; or that they are first touches of pages. */
enum row_verdict advice_verdict(const struct advices *advices, const struct report_row *row);

/* Whether two rows of different reports are about the same variable. */
bool advice_is_same(const struct report_row *a, const struct report_row *b);

/* Appends where most of the row's samples are, as in struct advice; nothing when that is not known. */
void advice_put_place(const struct advices *advices, const struct report_row *row, struct buf *out);

/* advice-data.c: advice about a variable from how it is used; then, where a large row has none, the reason.
 * has_shared_lines: its time is that of lines that go from core to core, whatever its causes are. */
void advise_on_data(struct advices *advices, const struct report_row *row, bool has_shared_lines);
void advise_on_rest(struct advices *advices, const struct report_row *row);

/* advice-loops.c: advice about the order of loops, of nests with at least so many percent of all samples. */
void advise_on_loops(struct advices *advices, double least);

/* advice-loops.c: whether most of the row's samples are in such nests. */
bool advice_has_loops(const struct advices *advices, const struct report_row *row);

/* advice-loops.c: advice about the Python that the interpreter runs, where it did most of the row's work: the data are
 * its own then, and nothing else is to be said of the row. False: it did not. */
bool advise_on_python(struct advices *advices, const struct report_row *row);

/* advice-places.c: advice from where its pages are and who uses them. True if more is known than the hardware says. */
bool advise_on_places(struct advices *advices, const struct report_row *row);

/* advice-places.c: the memory node of a CPU of the thread's host; PLACE_UNKNOWN. */
uint32_t advice_node_of_cpu(const struct model *model, uint32_t thread, uint32_t cpu);

/* advice-places.c: advice from what the hardware says about its accesses to other nodes. */
void advise_on_remote_accesses(struct advices *advices, const struct report_row *row);

/* advice-places.c: advice about cache lines that several threads use. True if there is any. */
bool advise_on_lines(struct advices *advices, const struct report_row *row);

/* advice-rows.c: advice about a row that is no variable. */
void advise_on_special(struct advices *advices, const struct report_row *row);

/* advice-whole.c: advice about large blocks that are allocated, used once and given back, again and again, as where
 * something grows by one element at a time. */
void advise_on_churn(struct advices *advices, const struct report_row *row);

/* advice-whole.c: advice about time in the kernel, for rows of least percent together, the allocator's, and about
 * leaks. advice-rows.c: about waiting for threads, locks that are free, and debug information. */
void advise_on_kernel(struct advices *advices, double least);
void advise_on_allocator(struct advices *advices);
void advise_on_waiting(struct advices *advices, double least);
void advise_on_locks(struct advices *advices);
void advise_on_debug_information(struct advices *advices, double least);
void advise_on_leaks(struct advices *advices);

/* advice-whole.c: looks for leaks where there may be advice on one.  err: ERR_MEMORY */
int advise_find_leaks(struct advices *advices, const struct export_job *job, struct error *err);

/* --- instructions --- */

#define CODE_REGISTERS 32
#define CODE_CALLEES 3

/* What the instructions of a loop, or of a function's line, are. */
struct code_facts {
    unsigned n_insns, n_stack; /* ... and of these, those that use a variable in the frame: code without optimization */
    unsigned n_scalar, n_packed, packed_bytes; /* floating-point arithmetic; bytes of the widest */
    unsigned n_packed_integers;
    unsigned n_divides, n_roots, n_integer_divides;
    unsigned n_rounding; /* reads and writes of the control register of floating-point arithmetic */
    unsigned n_stores;   /* to memory other than the frame */
    unsigned n_calls;
    double called_part;             /* of the place's time, in what is called there; 1 where that is not known */
    char callees[CODE_CALLEES][48]; /* names of functions that are called, "" where there are no more */
    struct {
        unsigned n_sums, n_products; /* that add to the register, or multiply or divide it */
        bool is_set, is_packed;      /* something else sets it: no chain from turn to turn */
    } registers[CODE_REGISTERS];
    bool is_loop;           /* else a line of a function, or all of it */
    bool has_loops;         /* of a loop: there are others in it */
    unsigned machine_bytes; /* of the widest vectors of the machine that was measured; 0: not known */
};

/* advice-insns.c: takes one instruction in, from its text as listing_put gives it. */
void code_facts_take(struct code_facts *facts, const char *text);

/* Number of chains of computations that each turn of the loop continues; *n_steps: of additions alone the number of
 * additions in the longest chain, 0 where there is something else in one. Packed ones do not count. */
unsigned code_facts_chains(const struct code_facts *facts, unsigned *n_steps);

/* Appends what the instructions are; and what to do about such, in a few words, with that as evidence. Returns the part
 * of their time that this saves at most, 1 where they might not be there at all. */
void code_facts_put_evidence(const struct code_facts *facts, struct buf *out);
double code_facts_put(const struct code_facts *facts, struct buf *words, struct buf *evidence);

/* The language's library, as people call it, that a module (string id) is; NULL: another one, or the program. */
const char *code_library(const struct model *model, uint32_t module);

/* The function, as it was called, that a scope lies in, and the innermost loop around it there; 0: none. */
uint32_t code_function_around(const struct model *model, uint32_t scope, uint32_t *loop);

struct code_line {
    uint32_t function, file, line; /* string ids; the function may be inlined */
};

/* The line of a statement or a call. */
struct code_line code_line_of(const struct model *model, uint32_t scope);

/* The place that a statement lies in. */
struct code_spot code_spot_of(const struct model *model, uint32_t scope);

/* advice-spots.c: the place with most of the row's samples, and how many there are. False: none is known. */
bool code_spot_find(const struct advices *advices, const struct report_row *row, struct code_spot *spot,
                    size_t *n_spots);

/* Percent of all samples that are in one of the places [n], whatever their data, as far as other code may save them:
 * the profiler's own are not among them, nor what waits for memory for certain, but where the call of a library is
 * saved. of: a variable whose blocks would not be there; then all is saved, its own samples anywhere and what the
 * allocator does for its function, too. is_inside [n_scopes] receives which scopes lie in the places. */
double code_spots_share(struct advices *advices, const struct code_spot *spots, size_t n, const struct variable *of,
                        uint8_t *is_inside);

/* advice-spots.c: the part of what a place takes that is called from another place, or lies in it. is_inside as above.
 */
double code_spot_part(struct advices *advices, const struct code_spot *spot, const struct code_spot *around,
                      uint8_t *is_inside);

/* advice-spots.c: the part of what a place takes (is_inside, as filled in for it) that is spent in functions called
 * from there. */
double code_called_part(const struct advices *advices, const uint8_t *is_inside);

/* What is known of the code that a row's samples are in. */
struct code_advice {
    struct code_spot spot;
    double share;     /* percent of all samples that the place has, with what is called there: following advice about it
                       * saves no more; NAN: no place is known, or none is large enough */
    bool is_unsure;   /* whether it saves anything, as where a compiler may find no way */
    bool is_spread;   /* none is large enough */
    bool stores;      /* it stores to memory: pages may be touched first there */
    double all;       /* percent of all samples that it has, of which share is what may be saved */
    struct buf place; /* of advice, to be taken over */
};

/* advice-code.c: finds the loop, the function of a library, or the line that has most of the row's samples. Where none
 * is worth a change by itself, appends that to words. Else, with_words, what to do there, and as evidence what the
 * instructions are; nothing when that is not known. */
struct code_advice advice_on_code(struct advices *advices, const struct report_row *row, bool with_words,
                                  struct buf *words, struct buf *evidence);

/* advice.c: adds advice about the code that a row's samples are in, as advice_on_code found it, which it empties. Its
 * bound is that of the place, else share; it ranks by what of that is the row's own, share at most. */
void advice_add_of_code(struct advices *advices, const struct report_row *row, const char *rule, double share,
                        const char *words, struct buf *evidence, struct code_advice *at);

/* The piece (NULL: none) gets this place, which is taken over, unless it is empty. */
void advice_set_place(struct advice *advice, struct buf *place);

/* advice-rows.c: whether the function has a name, rather than an address alone: "0x1139 [app]", "func_0x1130 [app]". */
bool advice_has_name(const char *function);

/* advice-rows.c: appends the line of the program that most of a row is from, or calls it: "solve (cg.c:12)"; false when
 * there is none. */
bool advice_put_caller(const struct advices *advices, const struct report_row *row, struct buf *out);

/* advice-rows.c: the same of the row's samples in some scopes [n_scopes]; false also when no line has most of them. */
bool advice_put_caller_of(const struct advices *advices, const struct report_row *row, const uint8_t *is_inside,
                          struct buf *out);

/* advice-rows.c: what to do about first touches of a variable's pages; NULL: of the heap's. Static text. */
const char *advice_touch_cure(const struct variable *variable);

/* Closes the modules; NULL is fine. */
void code_files_free(struct code_files *files);

#endif
