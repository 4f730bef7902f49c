/* SPDX-License-Identifier: BSD-3-Clause */
/* The man page of an option table, in man(7) macros: see options.h. It carries no date, so that equal sources give
 * equal pages. */
#include "base/options.h"

#include <ctype.h>
#include <string.h>

/* Prints text[len_bytes] so that roff shows it unchanged: dashes that can be pasted, no accidental requests. */
static void print_escaped(FILE *out, const char *text, size_t len_bytes)
{
    if (len_bytes && (text[0] == '.' || text[0] == '\''))
        (void)fputs("\\&", out);
    for (size_t i = 0; i < len_bytes; i++) {
        if (text[i] == '\\')
            (void)fputs("\\e", out);
        else if (text[i] == '-')
            (void)fputs("\\-", out);
        else
            (void)fputc(text[i], out);
    }
}

static void print_line(FILE *out, const char *text, size_t len_bytes)
{
    print_escaped(out, text, len_bytes);
    (void)fputc('\n', out);
}

/* Blank lines part paragraphs; lines that begin with a blank are shown unfilled. */
static void print_text(FILE *out, const char *text)
{
    bool unfilled = false;
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool literal = text[0] == ' ';
        if (literal != unfilled && len)
            (void)fputs(literal ? ".PP\n.nf\n" : ".fi\n.PP\n", out);
        unfilled = len ? literal : unfilled;
        if (len)
            print_line(out, text, len);
        else if (!unfilled)
            (void)fputs(".PP\n", out);
        text += len + (text[len] == '\n');
    }
    if (unfilled)
        (void)fputs(".fi\n", out);
}

static void print_section(FILE *out, const char *title, const char *text)
{
    if (!text)
        return;
    (void)fprintf(out, ".SH %s\n", title);
    print_text(out, text);
}

static void print_heading(const struct option_spec *spec, const char *version, FILE *out)
{
    (void)fputs(".TH ", out);
    for (const char *letter = spec->tool; *letter; letter++)
        (void)fputc(toupper((unsigned char)*letter), out);
    (void)fprintf(out, " 1 \"\" \"Locus %s\" \"Locus manual\"\n", version);
    (void)fprintf(out, ".SH NAME\n%s \\- ", spec->tool);
    print_line(out, spec->summary, strlen(spec->summary));
}

static void print_synopsis(const struct option_spec *spec, FILE *out)
{
    (void)fputs(".SH SYNOPSIS\n", out);
    for (const char *line = spec->synopsis; *line;) {
        size_t len = strcspn(line, "\n");
        (void)fprintf(out, "%s.B %s\n", line == spec->synopsis ? "" : ".br\n", spec->tool);
        print_line(out, line, len);
        line += len + (line[len] == '\n');
    }
}

static void print_option(const struct option_row *row, FILE *out)
{
    (void)fputs(".TP\n", out);
    for (const char *name = row->names; *name;) {
        size_t len = strcspn(name, " ");
        (void)fputs(name == row->names ? "\\fB" : ", \\fB", out);
        print_escaped(out, name, len);
        (void)fputs("\\fR", out);
        name += len + strspn(name + len, " ");
    }
    if (row->arg) {
        (void)fputs(options_is_optional(row) ? "\\fI" : " \\fI", out);
        print_escaped(out, row->arg, strlen(row->arg));
        (void)fputs("\\fR", out);
    }
    (void)fputc('\n', out);
    print_text(out, row->help);
}

static void print_environment(const char *text, FILE *out)
{
    if (!text)
        return;
    (void)fputs(".SH ENVIRONMENT\n", out);
    while (*text) {
        size_t len = strcspn(text, "\n");
        size_t len_name = strcspn(text, " \n");
        size_t start = len_name + strspn(text + len_name, " ");
        (void)fprintf(out, ".TP\n.B %.*s\n", (int)len_name, text);
        print_line(out, text + start, len > start ? len - start : 0);
        text += len + (text[len] == '\n');
    }
}

/* A table of the tool's own. */
static void print_table(const struct option_spec *spec, FILE *out)
{
    char text[512];
    const char *name;
    if (!spec->section)
        return;
    (void)fprintf(out, ".SH %s\n", spec->section);
    for (size_t i = 0; spec->section_row(i, &name, text, sizeof text); i++) {
        (void)fputs(".TP\n.B ", out);
        print_escaped(out, name, strlen(name));
        (void)fputc('\n', out);
        print_line(out, text, strlen(text));
    }
}

void options_print_man(const struct option_spec *spec, const char *version, FILE *out)
{
    print_heading(spec, version, out);
    print_synopsis(spec, out);
    print_section(out, "DESCRIPTION", spec->description);
    (void)fputs(".SH OPTIONS\n", out);
    for (const struct option_row *row = spec->rows; row->names; row++)
        if (row->help)
            print_option(row, out);
    print_table(spec, out);
    print_section(out, "EXAMPLES", spec->examples);
    print_environment(spec->environment, out);
    print_section(out, "EXIT STATUS", spec->exit_status);
    print_section(out, "SEE ALSO", spec->see_also);
}
