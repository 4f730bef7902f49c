/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of terminal tables: cells of a fixed width in characters, bars, sizes. Ordinary code. */
#ifndef LOCUS_EXPORT_TEXT_CELLS_H
#define LOCUS_EXPORT_TEXT_CELLS_H

#include "answer/answer.h"
#include "base/vec.h"
#include "fmt/csv.h"

/* Appends text in exactly width characters (UTF-8), cut with an ellipsis when longer, padded with blanks when not;
 * control characters become '?'. right: aligned to the right. */
void text_cell(struct buf *out, const struct export_job *job, const char *text, size_t width, bool right);

/* Same, cut but not padded. */
void text_cut(struct buf *out, const struct export_job *job, const char *text, size_t width);

/* Ends a line without the blanks that it ends with. */
void text_end_line(struct buf *out);

/* Part of the whole in percent; 0 without a whole. */
double percent_of(double part, double whole);
double percent_of_counts(uint64_t part, uint64_t whole);

/* Appends a bar of width characters for 0 <= share <= 100 percent. */
void text_bar(struct buf *out, const struct export_job *job, double share, size_t width);

/* "64.0 MiB"; "-" for 0. text[16]. */
void text_size(uint64_t bytes, char *text);

/* Switches on bold, dim or nothing (0), when colours may be used. */
void text_style(struct buf *out, const struct export_job *job, int style);
enum { TEXT_PLAIN = 0, TEXT_BOLD = 1, TEXT_DIM = 2 };

/* Appends "475", "5.0" or "12.3k", with as many digits as are meaningful; "-" for NAN. */
void text_number(struct buf *out, double value);

/* Number of characters that a terminal shows for the text. */
size_t text_width(const char *text);

/* Takes the next line of at most width characters from *rest, malloc'ed, NULL when out of memory: up to a blank, else
 * up to a character that separates parts of names and paths, else as much as fits. */
char *text_take_line(const char **rest, size_t width);

/* Appends printable words and ends the line. at: number of characters already in the line; what does not fit continues
 * on further lines, indented. */
void text_wrapped(struct buf *out, const struct export_job *job, const char *words, size_t at, size_t indent);

/* The same in at most so many lines, 1 or more; what does not fit is cut. Returns the number of lines. */
size_t text_wrapped_most(struct buf *out, const struct export_job *job, const char *words, size_t at, size_t indent,
                         size_t most);

/* Appends a line of a report's head: a label and text, which is wrapped at the terminal's width. */
void text_labelled(struct buf *out, const struct export_job *job, const char *label, const char *words);
#define TEXT_LABEL_WIDTH 10

/* What a report calls the program: the command that perf recorded, else the program's name, without directories; "?":
 * not known. Valid as long as the model. */
const char *text_program_name(const struct export_job *job);

/* The head's line with that name. */
void text_program(struct buf *out, const struct export_job *job);

/* Appends the names of the programs of the processes, of many only the first ones and how many more there are; returns
 * how many they are. */
size_t text_programs(const struct export_job *job, struct buf *out);

/* Appends lines of a file, "77" or "77-79"; last 0: not known. */
void text_lines(struct buf *out, uint32_t first, uint32_t last);

/* Appends the name of a function: a demangled one, which has parameters, without these, return type and template
 * arguments; any other, such as "func_0x1f780 [libgomp.so.1]", as it is. */
void text_function(struct buf *out, const char *function);

/* Appends a name or a place without the template arguments that the C++ library adds by itself, and with strings as the
 * author writes them: "Array<std::string>::grow" of
 * "Array<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >::grow". */
void text_origin(struct buf *out, const char *origin);

/* The same, and without all template arguments, as short as a name can be: "Array::grow". Rows that are no variables,
 * "<compute>", stay as they are; of a file it is the last part of its path, whatever that is: "a<b>c". */
void text_short_name(struct buf *out, const char *name);

/* The same of a function, or of another node of a tree, whoever wrote it: without parameters and return type, too. */
void text_short_function(struct buf *out, const char *function);

/* export-regions.c: the rows of vars, functions, lines, types or annotate, split by what the job says. */
extern const struct report_forms by_forms;

#endif
