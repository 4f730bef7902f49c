/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the table maker: no ELF file may crash it, and every table that it makes passes the
 * checks with which tables are mapped. Seeds: small ELF files. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fnbounds/modtab-make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check_table(const char *table, size_t n_bytes)
{
    const struct modtab_header *t = (const struct modtab_header *)(const void *)table;
    const char *wrong = modtab_check_sig(t, n_bytes);
    if (!wrong)
        wrong = modtab_check_code_sig(t);
    if (!wrong)
        return;
    (void)fprintf(stderr, "A table was made, but %s.\n", wrong);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static char path[64];
    struct modtab_elf m;
    char *table;
    size_t n_bytes;
    if (!path[0])
        (void)snprintf(path, sizeof path, "/dev/shm/modtab-fuzz-%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)close(fd);
    if (modtab_elf_open(&m, path, NULL) == 0) {
        if (modtab_make_table(&m, &table, &n_bytes, NULL) == 0)
            check_table(table, n_bytes);
        free(table);
        modtab_elf_close(&m);
    }
    (void)unlink(path);
    return 0;
}
