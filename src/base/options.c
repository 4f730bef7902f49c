/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines by a table: parsing, completion in shells, man pages and help; then the error messages of all tools.
 * See options.h. */
#include "base/options.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "base/spelling.h"
#include "base/vec.h"

enum { MAX_NAME = SPELLING_MAX_BYTES, MAX_SUGGESTION_DISTANCE = 2 };

/* One spelling inside option_row.names, not terminated. */
struct spelling {
    const char *text;
    size_t len_bytes;
};

/* What a word on the command line turned out to be. */
struct match {
    const struct option_row *row;
    const char *attached; /* the argument inside the same word, NULL when there is none */
};

/* Steps through names; returns false after the last spelling. *cursor starts at names. */
static bool next_spelling(const char **cursor, struct spelling *spelling)
{
    const char *text = *cursor + strspn(*cursor, " ");
    spelling->text = text;
    spelling->len_bytes = strcspn(text, " ");
    *cursor = text + spelling->len_bytes;
    return spelling->len_bytes > 0;
}

static const struct option_row *find_exact(const struct option_spec *spec, const char *word, size_t len_bytes)
{
    for (const struct option_row *row = spec->rows; row->names; row++) {
        const char *cursor = row->names;
        struct spelling spelling;
        while (next_spelling(&cursor, &spelling))
            if (spelling.len_bytes == len_bytes && memcmp(spelling.text, word, len_bytes) == 0)
                return row;
    }
    return NULL;
}

static struct match match_word(const struct option_spec *spec, const char *word)
{
    struct match match = {find_exact(spec, word, strlen(word)), NULL};
    if (match.row)
        return match;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        if (equals)
            match = (struct match){find_exact(spec, word, (size_t)(equals - word)), equals + 1};
        return match;
    }
    const struct option_row *row = find_exact(spec, word, 2);
    if (row && row->arg)
        match = (struct match){row, word + 2};
    return match;
}

/* The long visible option most like word; its text is NULL when none is near. */
static struct spelling find_nearest(const struct option_spec *spec, const char *word)
{
    struct spelling nearest = {NULL, 0};
    size_t nearest_distance = MAX_SUGGESTION_DISTANCE + 1;
    for (const struct option_row *row = spec->rows; row->names; row++) {
        const char *cursor = row->names;
        struct spelling spelling;
        while (row->help && next_spelling(&cursor, &spelling)) {
            size_t distance = spelling_distance(word, strlen(word), spelling.text, spelling.len_bytes);
            if (distance < nearest_distance && distance < spelling.len_bytes - 1) {
                nearest_distance = distance;
                nearest = spelling;
            }
        }
    }
    return nearest;
}

static int refuse_unknown(const struct option_spec *spec, const char *word, struct error *err)
{
    char name[MAX_NAME + 1];
    size_t len_bytes = strcspn(word, "=");
    if (len_bytes > MAX_NAME)
        len_bytes = MAX_NAME;
    memcpy(name, word, len_bytes);
    name[len_bytes] = '\0';
    struct spelling nearest = find_nearest(spec, name);
    if (nearest.text)
        (void)error_set(err, ERR_USAGE, "unknown option %s; did you mean %.*s?", word, (int)nearest.len_bytes,
                        nearest.text);
    else
        (void)error_set(err, ERR_USAGE, "unknown option %s; see %s --help", word, spec->tool);
    return OPTIONS_BAD;
}

/* Moves the n_words words at index in front of the operands that were skipped, order kept. */
static void move_before_operands(struct option_scan *scan, char **argv, int n_words)
{
    for (int word = 0; word < n_words; word++) {
        int from = scan->index + word;
        char *moved = argv[from];
        memmove(argv + from - scan->n_operands + 1, argv + from - scan->n_operands,
                (size_t)scan->n_operands * sizeof *argv);
        argv[from - scan->n_operands] = moved;
    }
    scan->index += n_words;
}

static int finish(struct option_scan *scan, int argc)
{
    scan->index -= scan->n_operands;
    scan->n_operands = argc - scan->index;
    return OPTIONS_END;
}

/* Passes operands until an option or the end stands at index; true when there is an option. */
static bool skip_operands(const struct option_spec *spec, struct option_scan *scan, int argc, char **argv)
{
    while (scan->index < argc) {
        const char *word = argv[scan->index];
        if (word[0] == '-' && word[1] != '\0')
            return true;
        if (spec->stop_at_operand)
            return false;
        scan->index++;
        scan->n_operands++;
    }
    return false;
}

/* Whether the row's argument may be left out. */
static bool options_is_optional(const struct option_row *row)
{
    return row->arg && row->arg[0] == '[' && row->arg[1] == '=';
}

void option_unused_add(struct option_unused *unused, const struct option_spec *spec, int id)
{
    for (size_t i = 0; i < unused->n; i++)
        if (unused->rows[i]->id == id)
            return;
    for (const struct option_row *row = spec->rows; row->names; row++)
        if (row->id == id && unused->n < OPTION_UNUSED_MAX)
            unused->rows[unused->n++] = row;
}

void option_unused_say(const struct option_unused *unused, const char *tool)
{
    char text[1000];
    size_t n = 0;
    for (size_t i = 0; i < unused->n && n < sizeof text - 1; i++) {
        int len_bytes = (int)strcspn(unused->rows[i]->names, " ");
        int more = snprintf(text + n, sizeof text - n, "%s%.*s", i ? ", " : "", len_bytes, unused->rows[i]->names);
        n += more > 0 ? (size_t)more : 0;
    }
    if (unused->n)
        (void)tool_error(tool, "no effect here: %s", text);
}

bool options_is_known(const struct option_spec *spec, const char *word)
{
    return match_word(spec, word).row != NULL;
}

int options_next(const struct option_spec *spec, struct option_scan *scan, int argc, char **argv, struct error *err)
{
    scan->value = NULL;
    if (scan->index == 0)
        scan->index = 1;
    if (!skip_operands(spec, scan, argc, argv))
        return finish(scan, argc);
    char *word = argv[scan->index];
    if (strcmp(word, "--") == 0) {
        move_before_operands(scan, argv, 1);
        return finish(scan, argc);
    }
    struct match match = match_word(spec, word);
    if (!match.row)
        return refuse_unknown(spec, word, err);
    if (match.attached && !match.row->arg) {
        (void)error_set(err, ERR_USAGE, "option %.*s takes no argument", (int)(match.attached - 1 - word), word);
        return OPTIONS_BAD;
    }
    bool wants_next = match.row->arg && !match.attached && !options_is_optional(match.row);
    if (wants_next && scan->index + 1 >= argc) {
        (void)error_set(err, ERR_USAGE, "option %s needs an argument: %s", word, match.row->arg);
        return OPTIONS_BAD;
    }
    scan->value = wants_next ? argv[scan->index + 1] : match.attached;
    move_before_operands(scan, argv, wants_next ? 2 : 1);
    return match.row->id;
}

/* --- completion in shells --- */

/* Shell completion of an option table, for bash and zsh: see options.h. Written at build time and installed where the
 * shells look for it, so that nothing has to be started to complete a word. */

/* True when the argument has a name that our tables give to files and directories. */
static bool is_file(const char *arg)
{
    static const char *const names[] = {"FILE", "DIR", "PATH", "DB", "DATABASE", "MACHINE", NULL};
    for (unsigned i = 0; arg && names[i]; i++)
        if (strstr(arg, names[i]))
            return true;
    return false;
}

/* Prints the names of a row, joined by separator. */
static void print_names(const struct option_row *row, char separator, FILE *out)
{
    for (const char *name = row->names; *name; name++)
        (void)fputc(*name == ' ' ? separator : *name, out);
}

/* Prints a case for the rows that wanted selects, with action as its body. */
static void print_case(const struct option_spec *spec, bool (*wanted)(const struct option_row *row), const char *action,
                       FILE *out)
{
    bool is_first = true;
    for (const struct option_row *row = spec->rows; row->names; row++) {
        if (!row->help || !wanted(row))
            continue;
        (void)fputs(is_first ? "    " : "|", out);
        print_names(row, '|', out);
        is_first = false;
    }
    if (!is_first)
        (void)fprintf(out, ") %s ;;\n", action);
}

static bool takes_file(const struct option_row *row)
{
    return is_file(row->arg) && !options_is_optional(row);
}

static bool takes_other(const struct option_row *row)
{
    return row->arg && !is_file(row->arg) && !options_is_optional(row);
}

static bool takes_any(const struct option_row *row)
{
    return row->arg && !options_is_optional(row);
}

static const struct option_choice *find_choice(const struct option_spec *spec, int id, unsigned operand)
{
    const struct option_choice *choice = spec->choices;
    while (choice && choice->what && (choice->id != id || (id == 0 && choice->operand != operand)))
        choice++;
    return choice && choice->what ? choice : NULL;
}

static void print_bash_choice(const struct option_choice *choice, FILE *out)
{
    switch (choice->kind) {
    case CHOICE_WORDS:
        (void)fprintf(out, "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")", choice->what);
        break;
    case CHOICE_LINES:
        (void)fprintf(out,
                      "mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" %s -- \"${COMP_WORDS[@]:1}\" 2>/dev/null |\n"
                      "        while IFS= read -r i; do [[ $i != \"$cur\"* ]] || printf '%%s\\n' \"$i\"; done)",
                      choice->what);
        break;
    default:
        (void)fprintf(out,
                      "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\" |\n"
                      "        while IFS= read -r i; do [ ! -e \"$i/%s\" ] || printf '%%s\\n' \"$i\"; done)\n"
                      "        [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
                      choice->what);
    }
}

/* Counts the operands before the word. After the first operand a launcher's words belong to the program. */
static void print_bash_operands(const struct option_spec *spec, FILE *out)
{
    (void)fputs("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n", out);
    print_case(spec, takes_any, "i=$((i + 1))", out);
    (void)fprintf(out, "    -*) ;;\n    *)%s ;;\n        esac\n    done\n",
                  spec->stop_at_operand ? "\n        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n        return"
                                        : " n=$((n + 1))");
}

/* Prints what the shell offers after the options that have a row among the choices. */
static void print_bash_arguments(const struct option_spec *spec, FILE *out)
{
    for (const struct option_row *row = spec->rows; row->names; row++) {
        const struct option_choice *choice = find_choice(spec, row->id, 0);
        if (!choice)
            continue;
        (void)fputs("    ", out);
        print_names(row, '|', out);
        (void)fputs(") ", out);
        print_bash_choice(choice, out);
        (void)fputs("; return ;;\n", out);
    }
}

static void print_bash_operand(const struct option_spec *spec, FILE *out)
{
    bool has_any = false;
    for (const struct option_choice *choice = spec->choices; choice && choice->what; choice++) {
        if (choice->id != 0)
            continue;
        if (choice->operand)
            (void)fprintf(out, "    %u:*) ", choice->operand - 1);
        else
            (void)fputs("    *) ", out);
        print_bash_choice(choice, out);
        (void)fputs(" ;;\n", out);
        has_any |= choice->operand == 0;
    }
    if (!has_any)
        (void)fprintf(out, "    *) mapfile -t COMPREPLY < <(compgen -%s -- \"$cur\") ;;\n",
                      spec->stop_at_operand ? "c -f" : "f");
}

/* Prints what the shell offers behind a dash: the options, or what the tool says of those that go with the words. */
static void print_bash_options(const struct option_spec *spec, FILE *out)
{
    const struct option_choice *choice = find_choice(spec, OPTIONS_THEMSELVES, 0);
    if (choice) {
        print_bash_choice(choice, out);
        (void)fputs(" ;;\n", out);
        return;
    }
    (void)fputs("mapfile -t COMPREPLY < <(compgen -W '", out);
    for (const struct option_row *row = spec->rows; row->names; row++) {
        if (row->help) {
            print_names(row, ' ', out);
            (void)fputc(' ', out);
        }
    }
    (void)fputs("' -- \"$cur\") ;;\n", out);
}

static void options_print_bash(const struct option_spec *spec, FILE *out)
{
    (void)fprintf(
        out,
        "# bash completion of %s, made from its table of options\n_%s()\n{\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i n=0\n    COMPREPLY=()\n",
        spec->tool, spec->tool);
    print_bash_operands(spec, out);
    (void)fputs("    case $prev in\n", out);
    print_bash_arguments(spec, out);
    print_case(spec, takes_file, "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return", out);
    print_case(spec, takes_other, "return", out);
    (void)fputs("    esac\n    case $n:$cur in\n    *:-*) ", out);
    print_bash_options(spec, out);
    print_bash_operand(spec, out);
    (void)fprintf(out, "    esac\n}\ncomplete -o filenames -F _%s %s\n", spec->tool, spec->tool);
}

/* Prints what zsh offers for an argument or operand: an action of _arguments. */
static void print_zsh_action(const struct option_choice *choice, bool is_file_name, FILE *out)
{
    if (!choice)
        (void)fputs(is_file_name ? "_files" : "", out);
    else if (choice->kind == CHOICE_WORDS)
        (void)fprintf(out, "(%s)", choice->what);
    else if (choice->kind == CHOICE_LINES)
        (void)fprintf(out, "{compadd -- ${(f)\"$(${words[1]} %s -- ${(Q)words[2,-1]} 2>/dev/null)\"}}", choice->what);
    else
        (void)fputs("_files -/", out);
}

/* Prints the first sentence of help, quoted for a specification of zsh. */
static void print_zsh_help(const char *help, FILE *out)
{
    for (const char *c = help; *c && !(c[0] == '.' && (c[1] == ' ' || !c[1])); c++) {
        if (*c == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fputc(*c == '[' ? '(' : *c == ']' ? ')' : *c == '\n' ? ' ' : *c, out);
    }
}

static void print_zsh_row(const struct option_spec *spec, const struct option_row *row, FILE *out)
{
    bool has_several = strchr(row->names, ' ') != NULL;
    (void)fputs("    ", out);
    if (has_several && row->arg) { /* may be given again */
        (void)fputs("'*'{", out);
        print_names(row, ',', out);
        (void)fputs("}'[", out);
    } else if (has_several) {
        (void)fprintf(out, "'(%s)'{", row->names);
        print_names(row, ',', out);
        (void)fputs("}'[", out);
    } else {
        (void)fprintf(out, "'%s%s%s[", row->arg ? "*" : "", row->names, options_is_optional(row) ? "=-" : "");
    }
    print_zsh_help(row->help, out);
    (void)fputc(']', out);
    if (row->arg) {
        (void)fprintf(out, ":%s:", options_is_optional(row) ? ":FILE" : row->arg);
        print_zsh_action(find_choice(spec, row->id, 0), is_file(row->arg), out);
    }
    (void)fputs("' \\\n", out);
}

static void print_zsh_operands(const struct option_spec *spec, FILE *out)
{
    bool has_any = false;
    for (const struct option_choice *choice = spec->choices; choice && choice->what; choice++) {
        if (choice->id != 0)
            continue;
        if (choice->operand)
            (void)fprintf(out, "    '%u:operand:", choice->operand);
        else
            (void)fputs("    '*:file:", out);
        print_zsh_action(choice, true, out);
        (void)fputs("' \\\n", out);
        has_any |= choice->operand == 0;
    }
    if (!has_any)
        (void)fprintf(out, "    %s \\\n", spec->stop_at_operand ? "'*::program:_normal'" : "'*:file:_files'");
}

/* Prints the completion function of zsh. */
static void options_print_zsh(const struct option_spec *spec, FILE *out)
{
    (void)fprintf(out, "#compdef %s\n# made from its table of options\n_arguments -S \\\n", spec->tool);
    for (const struct option_row *row = spec->rows; row->names; row++)
        if (row->help)
            print_zsh_row(spec, row, out);
    print_zsh_operands(spec, out);
}

/* --- man pages --- */

/* The man page of an option table, in man(7) macros: see options.h. It carries no date, so that equal sources give
 * equal pages. */

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

/* Blank lines separate paragraphs; lines that begin with a blank are shown unfilled. */
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

/* Prints a table of the tool's own. */
static void print_table(const struct option_section *section, FILE *out)
{
    char text[512];
    const char *name;
    (void)fprintf(out, ".SH %s\n", section->title);
    for (size_t i = 0; section->row(i, &name, text, sizeof text); i++) {
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
    for (const struct option_section *section = spec->sections; section && section->title; section++)
        print_table(section, out);
    print_section(out, "EXAMPLES", spec->examples);
    print_environment(spec->environment, out);
    print_section(out, "EXIT STATUS", spec->exit_status);
    print_section(out, "SEE ALSO", spec->see_also);
}

/* --- help --- */

/* The --help text of an option table: see options.h. */

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
static void help_text(FILE *out, const char *text)
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

static void help_section(FILE *out, const char *title, const char *text)
{
    if (!text)
        return;
    (void)fprintf(out, "\n%s:\n", title);
    help_text(out, text);
}

static void help_synopsis(const struct option_spec *spec, FILE *out)
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
static int help_names(const struct option_row *row, FILE *out)
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
            print_hanging(out, help_names(row, out), row->help, strlen(row->help));
}

static void help_table(const struct option_section *section, FILE *out)
{
    char text[512];
    const char *name;
    (void)fprintf(out, "\n%c", section->title[0]);
    for (const char *letter = section->title + 1; *letter; letter++)
        (void)fputc(tolower((unsigned char)*letter), out);
    (void)fputs(":\n", out);
    for (size_t i = 0; section->row(i, &name, text, sizeof text); i++)
        print_hanging(out, fprintf(out, "%*s%s", TEXT_INDENT, "", name), text, strlen(text));
}

static void help_environment(const char *text, FILE *out)
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
    help_synopsis(spec, out);
    if (spec->description) {
        (void)fputc('\n', out);
        help_text(out, spec->description);
    }
    print_options(spec, out);
    for (const struct option_section *section = spec->sections; section && section->title; section++)
        if (section->is_in_help)
            help_table(section, out);
    help_section(out, "Examples", spec->examples);
    help_environment(spec->environment, out);
    help_section(out, "Exit status", spec->exit_status);
    help_section(out, "See also", spec->see_also);
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

/* --- error messages of all tools --- */

static void print_error(const char *tool, const char *hint, const char *format, va_list args)
{
    char sentence[4096];
    struct buf text = {0};
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    size_t len = strlen(sentence);
    if (len > 1 && sentence[len - 1] == '.' && sentence[len - 2] != '.')
        sentence[len - 1] = '\0';
    printable_put(&text, sentence);
    (void)fprintf(stderr, "%s: %s", tool, text.data ? text.data : "out of memory");
    if (hint && !strstr(sentence, "--help") && !strstr(sentence, "did you mean"))
        (void)fprintf(stderr, "; see %s %s", hint, "--help");
    (void)fputc('\n', stderr);
    buf_fini(&text);
}

int tool_error(const char *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(tool, NULL, format, args);
    va_end(args);
    return 1;
}

int tool_usage(const char *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(tool, tool, format, args);
    va_end(args);
    return 2;
}

void tool_directory(char *path, size_t n)
{
    ssize_t len = readlink("/proc/self/exe", path, n - 1);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    path[slash ? slash + 1 - path : 0] = '\0';
}

bool tool_find_part(const char *folder, const char *prefix, const char *file, char *path, size_t n)
{
    const char *const places[] = {folder, "../lib/locus/", "../lib64/locus/"};
    size_t n_prefix = strlen(prefix);
    char own[PATH_MAX];
    tool_directory(own, sizeof own);
    for (size_t i = 0; own[0] && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path, n, "%s%s%s", own, places[i], path_last(file));
        if (access(path, R_OK) == 0)
            return true;
    }
    if (own[0] && strncmp(file, prefix, n_prefix) == 0 && file[n_prefix] == '/') {
        (void)snprintf(path, n, "%s..%s", own, file + n_prefix);
        if (access(path, R_OK) == 0)
            return true;
    }
    (void)snprintf(path, n, "%s", file);
    return access(path, R_OK) == 0;
}
