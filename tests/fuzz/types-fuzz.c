/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the model of types and locals: whatever the debug information says, walking over
 * everything that can be asked for ends, within bounds. Seeds: small ELF files with debug information. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "structure/types/locals.h"
#include "structure/types/types.h"

#define TYPES_LOOKED_AT 96
/* where the linker puts code and data of the seeds, which fuzz.sh makes */
#define CODE_START 0x4001c0
#define CODE_END 0x400340
#define DATA_START 0x401000
#define DATA_END 0x401380

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void walk_types(struct symbols *symbols)
{
    char text[300];
    for (uint32_t id = 0; id < TYPES_LOOKED_AT; id++) {
        struct type_spot spot;
        const struct type *type = types_get(symbols, id);
        (void)types_spell(symbols, id, text, sizeof text);
        (void)types_template_argument(symbols, id);
        for (uint64_t offset = 0; offset < 96; offset += 5) {
            types_spot(symbols, id, offset, "p->x.y[i]", &spot);
            types_spot_in_block(symbols, id, offset * type->size_bytes, 8, offset, NULL, &spot);
        }
        for (size_t i = 0; i < type->n_fields; i++)
            (void)types_size(symbols, type->fields[i].type);
    }
}

static void walk_code(struct symbols *symbols)
{
    static const char *const names[] = {"p->next", "table[i].x.y", "*p", "s->items[]", "this->data", "n"};
    for (uint64_t vaddr = CODE_START; vaddr < CODE_END; vaddr += 16) {
        const struct local *locals;
        struct local_spot spot;
        size_t n = locals_of_function(symbols, vaddr, &locals);
        for (size_t i = 0; i < n; i++)
            (void)types_get(symbols, locals[i].type);
        for (int64_t distance = 1; n && distance < 400; distance += 24)
            (void)locals_at(symbols, vaddr, vaddr, distance, &spot);
        for (size_t i = 0; n && i < sizeof names / sizeof *names; i++)
            (void)types_of_expression(symbols, vaddr, names[i]);
        if (n)
            (void)types_find(symbols, vaddr, "struct particle");
    }
}

static void walk_data(struct symbols *symbols)
{
    for (uint64_t offset = 0; offset < DATA_END - DATA_START; offset += 40) {
        uint64_t start;
        const char *name;
        (void)types_of_static(symbols, DATA_START + offset, false, &start, &name);
        (void)types_of_static(symbols, offset, true, &start, &name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static char path[64];
    struct symbols *symbols = NULL;
    if (!path[0])
        (void)snprintf(path, sizeof path, "/dev/shm/types-fuzz-%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)close(fd);
    if (symbols_open(path, &symbols, NULL) == 0) {
        walk_code(symbols);
        walk_data(symbols);
        walk_types(symbols);
        symbols_close(symbols);
    }
    (void)unlink(path);
    return 0;
}
