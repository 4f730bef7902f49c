/* SPDX-License-Identifier: BSD-3-Clause */
/* Expressions: what filters keep, what derived columns are computed by, what queries ask of a node. Ordinary code.
 *
 *     time > 5 and name =~ "^MPI_"             100 * 'remote loads' / loads            any(time > 3 * mean(time))
 *
 * Values: numbers (5, 1.5e-3, inf, missing); texts ("a \"b\""); columns and attributes by name, between '...' where
 * they hold more than letters, digits, '_', '.' and ':'. An unquoted name is first one of name, file, module, kind (a
 * word: "function"), line, depth, node (its number; node_id is the same), leaf (1 or 0), type (the same as kind); then
 * a column; then a further attribute of the file. A quoted one is first a column. Conditions of profiles know name,
 * profile (its number), rank, thread, process and host alone.
 *
 * From weak to strong: or ||; and &&; not !; the comparisons = == != <> < <= > >=, =~ (a regular expression matches
 * anywhere), matches (it matches the whole text), starts with, ends with, contains, is [not] missing (none, nan), is
 * [not] inf, which do not chain; + -; * /; the sign; parentheses. Words are the same in capitals. Functions of values:
 * min(a, ...), max(a, ...), abs, sqrt, log, round (to even), else(a, b, ...): the first that is not missing.
 * children(a): the sum over the children of the node, each once. Over profiles: sum, mean, lowest, highest, std, count,
 * percentile(a, p) with p a number, any(condition) and all(condition) of the profiles where it is not missing,
 * profiles(condition): how many it is true of, so that profiles(time > 5) >= 3 asks for at least three.
 *
 * Missing numbers: what has a missing operand is missing, comparisons included (x != 1 is not true where x is missing,
 * and neither is not x = 1), with the exceptions that formula.h names; only what is true is kept. A division by zero is
 * missing. A line that is not known is missing, as is the rank of a profile that has none.
 *
 * What is not about profiles sees the values of a view: the sum over all profiles where nothing else is said. */
#ifndef LOCUS_FRAME_EXPRESSION_H
#define LOCUS_FRAME_EXPRESSION_H

#include "frame/formula.h"

enum expression_kind { EXPRESSION_NUMBER, EXPRESSION_CONDITION };

/* Compiles an expression over the nodes of a frame. *formula is the caller's. err: ERR_USAGE with what is wrong and the
 * number of the character, ERR_NOT_FOUND for an unknown name, ERR_MEMORY */
int expression_compile(const struct frame *frame, const char *text, enum expression_kind kind, struct formula **formula,
                       struct error *err);

/* The same for a condition on profiles. */
int expression_compile_profiles(const struct frame *frame, const char *text, struct formula **formula,
                                struct error *err);

/* For each node whether the condition is true. *is_true [n_nodes] is malloc'ed.  err: as frame_values */
int expression_test(struct formula *formula, const struct frame_view *view, bool **is_true, struct error *err);

/* Writes a text between quotes, such that an expression reads it again. */
void expression_quote(struct buf *to, char quote, const char *text);

/* --- conditions of queries --- */

/* A condition on one variable of a query. */
struct expression_part {
    size_t variable;
    struct formula *formula;
};

/* Conditions joined by "and", each on one of the variables [n_variables], as p."time" or p.time; texts may stand
 * between
 * '...' here, and =~ matches at the start. text_at is where text begins in what the user wrote, for messages. *parts
 * [*n_parts] is malloc'ed.  err: as expression_compile */
int expression_compile_parts(const struct frame *frame, const char *text, size_t text_at, const char *const *variables,
                             size_t n_variables, struct expression_part **parts, size_t *n_parts, struct error *err);

/* Frees parts [n]. NULL is allowed. */
void expression_parts_free(struct expression_part *parts, size_t n);

#endif
