/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for descriptions of generated code: any bytes are a map, and a jitdump, and both together.
 * What is found at an address must hold it, and its neighbours must not overlap it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symnames/symnames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

static void check_at(const struct jit_names *names, uint64_t address)
{
    uint64_t start = 0, end = 0, low = 0, high = 0;
    const char *name = jit_names_find(names, address, &start, &end);
    if (!name)
        return;
    check(name[0] != '\0', "a function has no name");
    check(start <= address && address < end, "what is found does not hold the address");
    check(jit_names_find(names, end - 1, &low, &high) == name && low == start && high == end, "a part is not whole");
    if (jit_names_find(names, end, &low, &high))
        check(low == end, "parts overlap");
    if (start > 0 && jit_names_find(names, start - 1, &low, &high))
        check(high == start, "parts overlap");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct error err = {0};
    const char *bytes = (const char *)data;
    for (int way = 1; way < 4; way++) {
        struct jit_names *names = jit_names_new();
        if (!names)
            return 0;
        if (way & 1)
            check(jit_names_add_map(names, bytes, len_bytes, &err) >= 0, "a map is refused");
        if (way & 2 && jit_names_add_dump(names, bytes, len_bytes, "fuzz", &err) < 0)
            check(err.text[0] != '\0', "a refusal has no message");
        check(jit_names_order(names, &err) == 0, "no order can be made");
        for (size_t i = 0; i + 8 <= len_bytes; i++) {
            uint64_t address;
            memcpy(&address, data + i, sizeof address);
            check_at(names, address);
            check_at(names, address & 0xffff);
        }
        for (uint64_t address = 0; address < 0x1000; address += 7)
            check_at(names, address);
        jit_names_free(names);
    }
    return 0;
}
