/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what is read from modules by debug information and symbol tables: no file may crash or
 * hang it, whatever address is asked for. Seeds: small programs with debug information. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "structure/elf/symbols.h"
#include "structure/types/locals.h"
#include "structure/names/alloc-name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { LOOKUPS = 24 };

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

static size_t look_up(struct symbols *symbols, uint64_t vaddr)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct symbols_data data;
    struct alloc_name name;
    size_t n = symbols_lookup(symbols, vaddr, frames), sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += text_bytes(frames[i].function) + text_bytes(frames[i].file) + text_bytes(frames[i].decl_file);
        if (frames[i].die)
            sum += (size_t)symbols_returns_pointer(symbols, frames[i].die);
    }
    sum += symbols_data_at(symbols, vaddr, &data) ? text_bytes(data.name) + text_bytes(data.decl_file) : 0;
    for (int64_t distance = -64; distance <= 256; distance += 32)
        sum += symbols_stack_at(symbols, vaddr, distance, &data) ? text_bytes(data.name) : 0;
    for (int value = ALLOC_NAME_RETURN_VALUE; value <= ALLOC_NAME_FIRST_ARGUMENT; value++)
        sum += alloc_name_find(symbols, vaddr, value, &name) == ALLOC_NAME_FOUND ? strlen(name.text) : 0;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[64];
    struct symbols *symbols = NULL;
    struct symbols_data found;
    struct error err = {0};
    size_t sum = 0;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (symbols_open(path, &symbols, &err) == 0) {
        sum += (size_t)symbols_has_debug(symbols);
        for (uint64_t i = 0; i < LOOKUPS; i++) {
            sum += look_up(symbols, i < LOOKUPS / 2 ? 0x1000 + 13 * i : 0x401000 + 13 * (i - LOOKUPS / 2));
            sum += symbols_tls_at(symbols, 8 * i, &found) ? text_bytes(found.name) : 0;
        }
        for (uint64_t vaddr = 0x2000; vaddr < 0x6000; vaddr += 0x80)
            sum += symbols_data_at(symbols, vaddr, &found) ? text_bytes(found.name) : 0;
        symbols_close(symbols);
    } else if (!err.text[0]) {
        (void)fprintf(stderr, "a refusal has no message\n");
        abort();
    }
    (void)close(fd);
    return sum == SIZE_MAX;
}
