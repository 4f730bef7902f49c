/* SPDX-License-Identifier: BSD-3-Clause */
/* The governor: which periods events are given. Sampling may only take its share of a thread's time: a clock that ticks
 * as fast as its ticks can be handled keeps the program, and the handler itself, from ever moving on. On a busy or
 * virtual machine one sample may cost a hundred times what it costs elsewhere, so each thread measures its own.
 *
 * Where the program would get less than four times what a sample costs, the period doubles, and it halves again when
 * there is room. Samples then stand for several periods of the plan, so that weights stay exact. All periods that the
 * preloaded library arms are decided here; tests/meta/governor.py looks for others. */
#ifndef LOCUS_RUNTIME_RECORD_GOVERNOR_H
#define LOCUS_RUNTIME_RECORD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#define GOVERNOR_CLOCK_LEAST_NS UINT64_C(200000) /* between two ticks of a clock, whatever the plan says */
#define GOVERNOR_PLAN_PART 20                    /* no period is shorter than this part of the plan's */
#define GOVERNOR_TICKS 10                        /* nor than so many ticks cost */
#define GOVERNOR_SHARE 4                         /* the program gets so many times what a sample costs */
#define GOVERNOR_CALM 32    /* samples in a row with room for twice as many, before there are twice as many */
#define GOVERNOR_SLOWEST 24 /* at most 2^24 times the period of the plan */
#define GOVERNOR_PAUSE_NS UINT64_C(50000000) /* a clock ticks so seldom while the owner has paused the sampling */

/* What does not change about an event. */
struct governor_plan {
    uint64_t period;     /* of the plan: ns of a clock, events of anything else */
    uint64_t tick_ns;    /* what an empty sample costs here, kernel included, by the self-test; 0: not known */
    bool is_clock;       /* the period is time of the thread */
    bool is_rate;        /* the kernel chooses counts so that samples come at this period, ns: after some samples */
    bool is_exact;       /* each event is asked for, or samples are weighed by counts: never thinned */
    unsigned slow_least; /* the owner wants it at least so slow (struct governor) */
};

/* What a thread has learned about one of its events. */
struct governor {
    uint8_t slow;           /* the period is 2^slow of the plan's */
    uint8_t n_calm;         /* samples in a row that left room for twice as many */
    uint8_t wished;         /* the owner wanted it at least so slow when it was judged last */
    uint32_t stands_for;    /* periods of the plan that the next sample stands for */
    uint64_t before_ns;     /* what the sample before this one cost */
    uint64_t before_got_ns; /* what the program got before that one */
    uint64_t owed;          /* by so much the second period is shorter, because the first one is longer */
};

/* The shortest period that may be armed.  ctx: any */
uint64_t governor_floor_sig(const struct governor_plan *plan, unsigned slow);

/* How slow an event must be at least: the smallest s with period << s >= floor, and what the owner wants.  ctx: any */
unsigned governor_least_sig(const struct governor_plan *plan);

/* A new thread's governor; hint: how slow the event was on the thread that was sampled last.  ctx: any */
struct governor governor_begin_sig(const struct governor_plan *plan, unsigned hint);

/* The period to arm now; a clock's is at least the floor. The next sample stands for 2^slow periods.  ctx: any */
uint64_t governor_period_sig(struct governor *self, const struct governor_plan *plan);

/* The period of a clock in a pause: its ticks only find out whether that is over.  ctx: any */
uint64_t governor_pause_sig(const struct governor_plan *plan);

/* A first period of random length: of a thread that lives for less than a period, as many are sampled as its share of
 * a period demands, if it lives for two floors. One that would end before the floor ends a floor later: what a thread
 * does between one and two floors stands for what it did before. Where ticks are so dear that two floors are longer
 * than a period, fewer are sampled of those that live for one floor and less than two. random: any number.  ctx: any */
uint64_t governor_first_sig(struct governor *self, const struct governor_plan *plan, uint64_t random);

/* The period after the first one: the others begin where they would without a floor, but where that is nearer than a
 * floor, a whole period later. All samples have the same weight then, and a thread has at most one too few.
 * Then the plan's follows.  ctx: any */
uint64_t governor_second_sig(struct governor *self, const struct governor_plan *plan);

/* The period to arm when late of the period has passed, where 0 <= late: what is left of it, or that and a whole one if
 * that is shorter than the floor. The next sample then stands for both.  ctx: any */
uint64_t governor_rest_sig(struct governor *self, const struct governor_plan *plan, uint64_t late);

/* How many events of a kind that the kernel counts one sample shall stand for, where samples are to come every
 * wanted_ns of a thread's CPU time: period up to now, n_counted events in the spent_ns before (0: not known). One step
 * up at most, never above most. Never 0.  ctx: any */
uint64_t governor_pace_sig(uint64_t period, uint64_t n_counted, uint64_t spent_ns, uint64_t wanted_ns, uint64_t most);

/* The events that a thread counts lie in cells of `period`, and one of each cell is sampled, at `offset` from 1:
 * whatever is counted is sampled with the same chance, and each sample stands for its cell. */
struct governor_cell {
    uint64_t period, offset;
    uint64_t due; /* the count at which its sample comes */
};

/* The first cell.  ctx: any */
struct governor_cell governor_first_cell_sig(uint64_t period, uint64_t random);

/* The cell after the one whose sample has come, when count events have happened: of the given period. Another period
 * begins where the old cell ends, at a random offset, so that the samples still stand for all.  ctx: any */
struct governor_cell governor_next_cell_sig(const struct governor_cell *cell, uint64_t count, uint64_t period,
                                            uint64_t random);

/* Whether a sample that has cost so much leaves the program its share.  ctx: any */
bool governor_is_fair_sig(const struct governor *self, const struct governor_plan *plan, uint64_t cost_ns,
                          uint64_t got_ns);

/* A sample has cost cost_ns (without plan->tick_ns), and before it the program had got_ns for itself, of which clocks
 * and rates make no use: their period says it. True when the period changes. One sample alone never slows the event
 * down.  ctx: any */
bool governor_judge_sig(struct governor *self, const struct governor_plan *plan, uint64_t cost_ns, uint64_t got_ns);

#endif
