/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a unit's line table that cover one function. */
#include "structure/structure-internal.h"

#define ROWS_BACK_MAX 16 /* how far a position is sought before code that the compiler gave line 0 */

const char *structure_path(struct structure *structure, const char *path)
{
    if (path == structure->last_raw)
        return structure->last_path;
    const void **known = path ? memo_of(&structure->paths, path) : NULL;
    if (known && !*known)
        *known = symbols_own_file(structure->symbols, structure->unit, path);
    structure->last_raw = path;
    structure->last_path = known ? *known : NULL;
    return structure->last_path;
}

static uint64_t row_address(Dwarf_Lines *lines, size_t i)
{
    Dwarf_Addr address = 0;
    (void)dwarf_lineaddr(dwarf_onesrcline(lines, i), &address);
    return address;
}

/* Number of rows at or before address. */
static size_t rows_until(Dwarf_Lines *lines, size_t n, uint64_t address)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (row_address(lines, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Position of row i or, when it has none, of the nearest row before it in its sequence. False at the end of one. */
static bool position_of(struct structure *structure, Dwarf_Lines *lines, size_t i, struct line_piece *piece)
{
    for (size_t tries = 0; tries < ROWS_BACK_MAX; tries++) {
        Dwarf_Line *row = dwarf_onesrcline(lines, i);
        int line = 0, column = 0;
        bool end = false;
        if (!row || (dwarf_lineendsequence(row, &end) == 0 && end))
            return false;
        if (dwarf_lineno(row, &line) == 0 && line > 0) {
            (void)dwarf_linecol(row, &column);
            piece->file = structure_path(structure, dwarf_linesrc(row, NULL, NULL));
            piece->line = (uint32_t)line;
            piece->column = (uint32_t)column;
            return true;
        }
        if (i-- == 0)
            return false;
    }
    return false;
}

static bool add_line(struct structure *structure, const struct line_piece *piece)
{
    if (structure->n_lines == structure->cap_lines &&
        !vec_reserve(&structure->lines, &structure->cap_lines, structure->n_lines + 1, sizeof *structure->lines))
        return false;
    structure->lines[structure->n_lines++] = *piece;
    return true;
}

/* Adds the rows of [start, end), addresses as in the debug information. */
static bool add_range(struct structure *structure, Dwarf_Lines *lines, size_t n, uint64_t start, uint64_t end)
{
    uint64_t bias = structure->symbols->dwarf_bias;
    size_t i = rows_until(lines, n, start);
    i -= i > 0;
    for (uint64_t next = i < n ? row_address(lines, i) : end; i < n && next < end; i++) {
        uint64_t from = next < start ? start : next, to = end;
        next = i + 1 < n ? row_address(lines, i + 1) : end;
        to = next > end ? end : next;
        struct line_piece piece = {.start = from + bias, .end = to + bias};
        if (from < to && position_of(structure, lines, i, &piece) && !add_line(structure, &piece))
            return false;
    }
    return true;
}

bool structure_read_lines(struct structure *structure, struct dwarf_unit *unit)
{
    Dwarf_Lines *lines = NULL;
    size_t n = 0;
    uint64_t bias = structure->symbols->dwarf_bias;
    structure->n_lines = 0;
    if (!unit || dwarf_getsrclines(&unit->die, &lines, &n) != 0)
        return true;
    for (size_t i = 0; i < structure->n_ranges; i++)
        if (!add_range(structure, lines, n, structure->ranges[i].start - bias, structure->ranges[i].end - bias))
            return false;
    return true;
}
