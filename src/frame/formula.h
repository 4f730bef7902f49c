/* SPDX-License-Identifier: BSD-3-Clause */
/* Formulas: steps of a small stack machine over columns and attributes, and the columns that are computed by them.
 * expression.h makes them from text. Ordinary code; for the files of this folder.
 *
 * A number that is missing is NAN, and so is every result that has none: what follows holds for all steps.
 * - Arithmetic, functions and comparisons with a missing operand are missing; so is a division by zero. But where both
 *   operands of a sum, difference or quotient have columns, a missing one is an absent cost and counts as 0 beside one
 *   that is there; a missing denominator stays missing.
 * - Conditions are 1, 0 or missing: "and" is 0 where one side is 0, "or" is 1 where one side is 1, whatever the other
 *   one; "not" of a missing condition is missing.
 * - Texts are never missing: an unknown one is "". */
#ifndef LOCUS_FRAME_FORMULA_H
#define LOCUS_FRAME_FORMULA_H

#include "frame/columns.h"
#include "frame/make.h"

enum formula_operation {
    DO_SLOT,   /* pushes slot `argument` */
    DO_NUMBER, /* pushes the number */
    DO_TEXT,   /* pushes text `argument` */
    DO_NEGATE,
    DO_ABS,
    DO_SQRT,
    DO_LOG,
    DO_ROUND,
    DO_ADD,
    DO_SUBTRACT,
    DO_MULTIPLY,
    DO_DIVIDE,
    DO_MIN,
    DO_MAX,
    DO_ELSE,         /* the second one where the first is missing */
    DO_ADD_ANY,      /* a missing operand is as none: missing + a = a */
    DO_SUBTRACT_ANY, /* missing - a = -a */
    DO_DIVIDE_ANY,   /* missing / a = 0 */
    DO_LESS,
    DO_LESS_EQUAL,
    DO_EQUAL,
    DO_NOT_EQUAL,
    DO_AND,
    DO_OR,
    DO_NOT,
    DO_IS_MISSING, /* never missing itself, nor is the next */
    DO_IS_INFINITE,
    DO_TEXT_COMPARE, /* -1, 0, 1 as a number, for a comparison with 0 */
    DO_TEXT_STARTS,
    DO_TEXT_ENDS,
    DO_TEXT_CONTAINS,
    DO_TEXT_MATCHES /* pattern `argument` */
};

struct formula_step {
    enum formula_operation operation;
    uint32_t argument;
    double number;
};

/* Where the value of a slot comes from. */
enum formula_source {
    FROM_COLUMN,
    FROM_NAME,
    FROM_FILE,
    FROM_MODULE,
    FROM_KIND,
    FROM_LINE, /* missing where it is 0 */
    FROM_DEPTH,
    FROM_NODE,    /* its number */
    FROM_IS_LEAF, /* 1 or 0 */
    FROM_ATTRIBUTE,
    FROM_PROFILE_NAME, /* of profiles */
    FROM_PROFILE,
    FROM_RANK, /* missing where it is not known, as the next ones are */
    FROM_THREAD,
    FROM_PROCESS,
    FROM_HOST
};

union formula_value {
    double number;
    const char *text;
};

struct formula_slot {
    enum formula_source from;
    size_t attribute;            /* FROM_ATTRIBUTE */
    struct frame_column *column; /* FROM_COLUMN */
    bool is_aggregate;           /* over the profiles, whatever the view */
    enum frame_aggregate aggregate;
    double percentile;
    const double *values; /* while values are computed */
    struct cells row;
    size_t at_cell;
};

struct formula_pattern; /* a compiled regular expression */
struct formula_answer;

/* The steps, which several formulas share. */
struct formula_program {
    unsigned n_owners;
    struct formula_step *steps; /* [n_steps] */
    size_t n_steps, cap_steps;
    char **texts; /* [n_texts] */
    size_t n_texts, cap_texts;
    struct formula_pattern **patterns; /* [n_patterns] */
    size_t n_patterns, cap_patterns;
    size_t depth, max_depth; /* of the stack */
};

struct formula {
    struct formula_program *program;
    struct frame_graph *graph;
    struct frame_nodes *nodes;
    struct frame_profiles *profiles;
    struct formula_slot *slots; /* [n_slots] */
    size_t n_slots, cap_slots;
    union formula_value *loaded, *stack;
    struct formula_answer *answers;
    bool has_failed; /* a pattern ran out of memory */
    /* As a column: profiles without a value of its columns have 0, where the node has one in any. Columns that do not
     * add up stay missing. */
    bool counts_absent;
};

/* An empty formula over the nodes and profiles of a frame. NULL when out of memory. */
struct formula *formula_new(const struct frame *frame);
void formula_free(struct formula *formula);

/* Appends a step; false when out of memory. */
bool formula_step(struct formula *formula, enum formula_operation operation, uint32_t argument, double number);

/* Adds a slot, whose column gets one owner more; UINT32_MAX when out of memory. */
uint32_t formula_slot(struct formula *formula, const struct formula_slot *slot);

/* Adds a text, which is copied; UINT32_MAX when out of memory. */
uint32_t formula_text(struct formula *formula, const char *text);

/* Where a pattern must match. */
enum pattern_place { PATTERN_ANYWHERE, PATTERN_AT_START, PATTERN_WHOLE };

/* Adds a regular expression: POSIX extended, with \d and (?: of others. Back-references, repetitions of
 * repetitions and what copies too much are refused. *index is its number.  err: ERR_USAGE, ERR_MEMORY */
int formula_pattern(struct formula *formula, const char *text, enum pattern_place place, uint32_t *index,
                    struct error *err);

/* The column of a formula that is nothing but this column; NULL: it is more. Borrowed. */
struct frame_column *formula_only_column(const struct formula *formula);

/* The formula for each node of a view (NULL: the sums of all profiles): its columns are aggregated first.
 * values [n_nodes].  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int formula_values(struct formula *formula, const struct frame_view *view, double *values, struct error *err);

/* The formula for each profile. values [n_profiles].  err: ERR_MEMORY */
int formula_of_profiles(struct formula *formula, double *values, struct error *err);

/* A column of a formula, which it takes over, also on failure (NULL). The sum over profiles is the formula over sums
 * (the ratio of sums, not the sum of ratios); the other aggregates are over the values of the profiles. A profile has a
 * value where one of the formula's columns has one and the formula gives one. */
struct frame_column *column_formula(struct formula *formula, const char *name, enum frame_sums sums);

#endif
