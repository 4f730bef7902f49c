/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a link line; see link-line.h. What is not known here is the compiler's business and passed on. */
#include "link-line.h"

#include <stddef.h>
#include <string.h>

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

void link_line_match_output(char *const *words, int i, int *n)
{
    *n = 0;
    if (!strcmp(words[i], "-o") && words[i + 1])
        *n = 2;
    else if (!strncmp(words[i], "-o", 2) && words[i][2] && strncmp(words[i], "-openmp", 7) != 0)
        *n = 1;
}

bool link_line_is_strip(const char *word)
{
    static const char *const strips[] = {"-s", "-Wl,-s", "-Wl,--strip-all", "--strip-all", NULL};
    return is_one_of(word, strips);
}

/* ld, x86_64-linux-gnu-ld, ld.gold and the like. */
static bool names_linker(const char *command)
{
    const char *name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
    static const char *const linkers[] = {"ld", "ld.bfd", "ld.gold", "ld.lld", "mold", NULL};
    const char *dash = strrchr(name, '-');
    return is_one_of(name, linkers) || (dash && is_one_of(dash + 1, linkers));
}

int link_line_read(char **words, struct link_line *line, struct error *err)
{
    static const char *const no_links[] = {"-c",          "-S",        "-E",        "-M",     "-MM",  "-fsyntax-only",
                                           "--version",   "--help",    "-dumpversion", "-dumpmachine", "-###", "-show",
                                           "--showme",    "-compile_info", "-link_info", NULL};
    static const char *const no_programs[] = {"-shared", "-r", "-Wl,-r", "-Wl,-shared", "--relocatable", NULL};
    bool has_input = false;
    int n = 0;
    *line = (struct link_line){.words = words, .output = "a.out", .is_link = true};
    line->is_linker = names_linker(words[0]);
    for (int i = 1; words[i]; i += n ? n : 1) {
        link_line_match_output(words, i, &n);
        if (n)
            line->output = n == 2 ? words[i + 1] : words[i] + 2;
        else if (is_one_of(words[i], no_programs))
            return error_set(err, ERR_UNSUPPORTED,
                             "%s makes a library or an object, not a program: link it without hpclink, and only the "
                             "program with it.",
                             words[i]);
        else if (is_one_of(words[i], no_links) || !strncmp(words[i], "-print-", 7))
            line->is_link = false;
        else if (words[i][0] != '-' || !strncmp(words[i], "-l", 2))
            has_input = true;
    }
    line->is_link &= has_input;
    return 0;
}
