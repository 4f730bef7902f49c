/* SPDX-License-Identifier: BSD-3-Clause */
/* The --help text of an option table: see options.h. The man page of the same table is options-man.c. */
#include "base/options.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 80, TEXT_INDENT = 2, OPTION_HELP_COLUMN = 26 };

static void indent_to(FILE *out, int column, int target)
{
    if (column < target)
        (void)fprintf(out, "%*s", target - column, "");
}

/* Prints the words of text[len_bytes] from column on, following lines at indent. Ends with a newline. */
static void print_wrapped(FILE *out, const char *text, size_t len_bytes, int column, int indent)
{
    size_t at = 0;
    bool first_word = true;
    indent_to(out, column, indent);
    column = column < indent ? indent : column;
    while (at < len_bytes) {
        while (at < len_bytes && isspace((unsigned char)text[at]))
            at++;
        size_t start = at;
        while (at < len_bytes && !isspace((unsigned char)text[at]))
            at++;
        int len = (int)(at - start);
        if (len == 0)
            break;
        if (!first_word && column + 1 + len > WIDTH) {
            (void)fprintf(out, "\n%*s", indent, "");
            column = indent;
            first_word = true;
        }
        column += fprintf(out, "%s%.*s", first_word ? "" : " ", len, text + start);
        first_word = false;
    }
    (void)fputc('\n', out);
}

/* The length of the paragraph at text: up to a blank line, or to a line that begins with a blank. */
static size_t paragraph_len(const char *text)
{
    size_t len = strcspn(text, "\n");
    while (text[len] == '\n' && text[len + 1] != '\n' && text[len + 1] != ' ' && text[len + 1] != '\0')
        len += 1 + strcspn(text + len + 1, "\n");
    return len;
}

/* Paragraphs are wrapped; lines that begin with a blank and blank lines stay as they are. */
static void print_text(FILE *out, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        if (len == 0) {
            (void)fputc('\n', out);
        } else if (text[0] == ' ') {
            (void)fprintf(out, "%*s%.*s\n", TEXT_INDENT, "", (int)len, text);
        } else {
            len = paragraph_len(text);
            print_wrapped(out, text, len, 0, TEXT_INDENT);
        }
        text += len;
        if (*text == '\n')
            text++;
    }
}

static void print_section(FILE *out, const char *title, const char *text)
{
    if (!text)
        return;
    (void)fprintf(out, "\n%s:\n", title);
    print_text(out, text);
}

static void print_synopsis(const struct option_spec *spec, FILE *out)
{
    const char *title = "Usage:";
    for (const char *line = spec->synopsis; *line;) {
        size_t len = strcspn(line, "\n");
        (void)fprintf(out, "%s %s %.*s\n", title, spec->tool, (int)len, line);
        title = "      ";
        line += len + (line[len] == '\n');
    }
    (void)fprintf(out, "\n%s\n", spec->summary);
}

/* Prints "-o, --output DIR" and returns the column after it. */
static int print_names(const struct option_row *row, FILE *out)
{
    int column = fprintf(out, "%*s", TEXT_INDENT, "");
    for (const char *name = row->names; *name; name++)
        column += fprintf(out, "%s%c", *name == ' ' ? "," : "", *name);
    if (row->arg)
        column += fprintf(out, "%s%s", options_is_optional(row) ? "" : " ", row->arg);
    return column;
}

static void print_hanging(FILE *out, int column, const char *text, size_t len_bytes)
{
    if (column + 2 > OPTION_HELP_COLUMN) {
        (void)fputc('\n', out);
        column = 0;
    }
    print_wrapped(out, text, len_bytes, column, OPTION_HELP_COLUMN);
}

static void print_options(const struct option_spec *spec, FILE *out)
{
    (void)fputs("\nOptions:\n", out);
    for (const struct option_row *row = spec->rows; row->names; row++)
        if (row->help)
            print_hanging(out, print_names(row, out), row->help, strlen(row->help));
}

static void print_environment(const char *text, FILE *out)
{
    if (!text)
        return;
    (void)fputs("\nEnvironment:\n", out);
    while (*text) {
        size_t len = strcspn(text, "\n");
        size_t len_name = strcspn(text, " \n");
        int column = fprintf(out, "%*s%.*s", TEXT_INDENT, "", (int)len_name, text);
        print_hanging(out, column, text + len_name, len - len_name);
        text += len + (text[len] == '\n');
    }
}

void options_print_help(const struct option_spec *spec, FILE *out)
{
    print_synopsis(spec, out);
    if (spec->description) {
        (void)fputc('\n', out);
        print_text(out, spec->description);
    }
    print_options(spec, out);
    print_section(out, "Examples", spec->examples);
    print_environment(spec->environment, out);
    print_section(out, "Exit status", spec->exit_status);
    print_section(out, "See also", spec->see_also);
}

bool options_standard(const struct option_spec *spec, int id, const char *version, FILE *out)
{
    switch (id) {
    case OPTION_HELP:
        options_print_help(spec, out);
        return true;
    case OPTION_VERSION:
        (void)fprintf(out, "%s (Locus) %s\n", spec->tool, version);
        return true;
    case OPTION_HELP_MAN:
        options_print_man(spec, version, out);
        return true;
    case OPTION_HELP_BASH:
        options_print_bash(spec, out);
        return true;
    case OPTION_HELP_ZSH:
        options_print_zsh(spec, out);
        return true;
    default:
        return false;
    }
}
