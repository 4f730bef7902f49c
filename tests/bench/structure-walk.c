/* SPDX-License-Identifier: BSD-3-Clause */
/* The yardstick for hpcstruct: a bare walk with libdw over every entry and every line of a file's debug information.
 * Prints the CPU time in seconds and what was seen. */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t n_dies, n_lines;

static void walk(Dwarf_Die *parent)
{
    Dwarf_Die die;
    n_dies++;
    if (dwarf_child(parent, &die) != 0)
        return;
    do
        walk(&die);
    while (dwarf_siblingof(&die, &die) == 0);
}

static void walk_lines(Dwarf_Die *unit)
{
    Dwarf_Lines *lines = NULL;
    size_t n = 0;
    Dwarf_Addr address = 0;
    if (dwarf_getsrclines(unit, &lines, &n) != 0)
        return;
    for (size_t i = 0; i < n; i++)
        n_lines += dwarf_lineaddr(dwarf_onesrcline(lines, i), &address) == 0;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
    if (!dwarf) {
        (void)fprintf(stderr, "structure-walk: no debug information in %s\n", argc == 2 ? argv[1] : "no file");
        return 1;
    }
    Dwarf_CU *cu = NULL;
    Dwarf_Die unit;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
        walk(&unit);
        walk_lines(&unit);
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("%.3f s, %zu entries, %zu lines\n",
                 (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                 n_dies, n_lines);
    (void)dwarf_end(dwarf);
    (void)close(fd);
    return 0;
}
