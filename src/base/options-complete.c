/* SPDX-License-Identifier: BSD-3-Clause */
/* Shell completion of an option table, for bash and zsh: see options.h. Written at build time and installed where the
 * shells look for it, so that nothing has to be started to complete a word. */
#include "base/options.h"

#include <string.h>

/* True when the argument is called what files and directories are called in our tables. */
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

/* A case that lists the rows for which wanted holds, and does action. */
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

/* What is offered behind an option that has a row among the choices. */
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

void options_print_bash(const struct option_spec *spec, FILE *out)
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
    (void)fputs("    esac\n    case $n:$cur in\n    *:-*) mapfile -t COMPREPLY < <(compgen -W '", out);
    for (const struct option_row *row = spec->rows; row->names; row++) {
        if (row->help) {
            print_names(row, ' ', out);
            (void)fputc(' ', out);
        }
    }
    (void)fputs("' -- \"$cur\") ;;\n", out);
    print_bash_operand(spec, out);
    (void)fprintf(out, "    esac\n}\ncomplete -o filenames -F _%s %s\n", spec->tool, spec->tool);
}

/* What zsh offers for an argument or operand: an action of _arguments. */
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

/* The first sentence of help, as it may stand in a specification of zsh. */
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

void options_print_zsh(const struct option_spec *spec, FILE *out)
{
    (void)fprintf(out, "#compdef %s\n# made from its table of options\n_arguments -S \\\n", spec->tool);
    for (const struct option_row *row = spec->rows; row->names; row++)
        if (row->help)
            print_zsh_row(spec, row, out);
    print_zsh_operands(spec, out);
}
