/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the name of a variable in the statement that allocates memory for it. Works on text alone, in C, C++ and
 * Fortran; a statement that it does not understand gives no name. Ordinary code. */
#ifndef LOCUS_STRUCTURE_NAMES_ASSIGN_NAME_H
#define LOCUS_STRUCTURE_NAMES_ASSIGN_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum assign_kind {
    ASSIGN_NONE = 0, /* nothing recognised */
    ASSIGN_NAME,     /* name is what the memory is assigned to: "a", "s->field", "v" of v.push_back(x) */
    ASSIGN_RETURN    /* the statement returns the memory: its caller knows the name */
};

/* Name that a statement gives to the memory allocated by its call of callee (unqualified name; "operator new" stands
 * for new-expressions; NULL = unknown). offset: roughly where in statement the call is, to choose among several;
 * name[size] is filled for ASSIGN_NAME. */
enum assign_kind assign_name_find(const char *statement, const char *callee, size_t offset, char *name, size_t size);

/* Argument number index, from 0, of the call of callee (unqualified name) in a statement, without blanks around it; of
 * several calls the one nearest to offset. False when there is none, or it does not fit into argument[size]. */
bool assign_name_argument(const char *statement, const char *callee, size_t offset, size_t index, char *argument,
                          size_t size);

/* The object of Fortran for which a statement calls a type-bound procedure, "blocks(:)" of "call blocks(i)%init(n)"; of
 * several calls the last before offset. The binding has the procedure's name, or one of its own if the statement does
 * not contain that name. False when there is none, or it does not fit into object[size]. */
bool assign_name_passed_object(const char *statement, const char *procedure, size_t offset, char *object, size_t size);

/* Name of the n-th object of the Fortran allocate statements in a line, from 0, with "(:)" for its subscripts; false
 * when there is none. */
bool assign_name_fortran(const char *statement, size_t n, char *name, size_t size);

/* Whether a Fortran name, perhaps with the module that declares it ("fields::rho"), is the name b. */
bool assign_name_is_same(const char *a, const char *b);

/* True when the text of one line is a statement that returns the variable (casts allowed). */
bool assign_name_returns(const char *line, const char *variable);

/* True when a line stores the variable where a pointer points to, "*out = p;" (casts allowed): pointer[size] is "out".
 */
bool assign_name_stores(const char *line, const char *variable, char *pointer, size_t size);

/* Where the parameters of a readable (demangled) name begin, at a '('; its end when there are none. Anonymous
 * namespaces and parentheses in template arguments do not count. */
const char *assign_name_parameters(const char *readable);

/* Where the function begins in a readable (demangled) name: after the return type, which the names of templates
 * have. */
const char *assign_name_start(const char *readable);

/* The function of a readable (demangled) name without return type, parameters and template arguments:
 * "std::vector<int>::resize(unsigned long)" gives "std::vector::resize". Fills qualified[size] and returns the last
 * component inside it. */
const char *assign_name_function(const char *readable, char *qualified, size_t size);

#endif
