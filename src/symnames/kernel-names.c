/* SPDX-License-Identifier: BSD-3-Clause */
/* Reader of /proc/kallsyms; see kernel-names.h. Symbols have no sizes there: one ends where the next one begins. */
#include "symnames/kernel-names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/vec.h"

#define FUNCTION_BYTES_MAX (1024 * 1024) /* nothing is known of what lies behind the last one of a module */

struct symbol {
    uint64_t start;
    uint32_t name;    /* offset in the texts */
    bool is_function; /* else only the end of what lies before */
};

struct kernel_names {
    struct symbol *symbols; /* [n] by start */
    size_t n, capacity;
    struct buf texts; /* names, each with its NUL */
};

static bool add_line(struct kernel_names *names, const char *line)
{
    uint64_t start;
    char type, name[512];
    if (sscanf(line, "%" SCNx64 " %c %511s", &start, &type, name) != 3 || start == 0 || start == UINT64_MAX)
        return true;
    if (names->texts.len_bytes > UINT32_MAX - sizeof name ||
        !vec_reserve(&names->symbols, &names->capacity, names->n + 1, sizeof *names->symbols))
        return false;
    names->symbols[names->n++] = (struct symbol){start, (uint32_t)names->texts.len_bytes, strchr("tTwW", type) != NULL};
    buf_append(&names->texts, name, strlen(name) + 1);
    return !names->texts.failed;
}

/* Of several names of one address the function that is listed first comes first. */
static int compare(const void *a, const void *b)
{
    const struct symbol *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->is_function != right->is_function)
        return left->is_function ? -1 : 1;
    return left->name < right->name ? -1 : 1;
}

struct kernel_names *kernel_names_read(const char *path)
{
    char line[1024];
    struct kernel_names *names = calloc(1, sizeof *names);
    FILE *file = names ? input_stream(path) : NULL;
    bool is_good = file != NULL;
    while (is_good && fgets(line, sizeof line, file))
        is_good = add_line(names, line);
    if (file)
        (void)fclose(file);
    if (!is_good || names->n == 0) {
        kernel_names_free(names);
        return NULL;
    }
    qsort(names->symbols, names->n, sizeof *names->symbols, compare);
    return names;
}

void kernel_names_free(struct kernel_names *names)
{
    if (!names)
        return;
    free(names->symbols);
    buf_fini(&names->texts);
    free(names);
}

/* Number of symbols that start at or before address. */
static size_t count_until(const struct kernel_names *names, uint64_t address)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *kernel_names_find(const struct kernel_names *names, uint64_t address, uint64_t *start, uint64_t *end)
{
    size_t behind = names ? count_until(names, address) : 0, first = behind;
    if (behind == 0 || address == UINT64_MAX)
        return NULL;
    while (first > 0 && names->symbols[first - 1].start == names->symbols[behind - 1].start)
        first--;
    const struct symbol *symbol = &names->symbols[first];
    if (!symbol->is_function || address - symbol->start >= FUNCTION_BYTES_MAX)
        return NULL;
    *start = symbol->start;
    *end = symbol->start < UINT64_MAX - FUNCTION_BYTES_MAX ? symbol->start + FUNCTION_BYTES_MAX : UINT64_MAX;
    if (behind < names->n && names->symbols[behind].start < *end)
        *end = names->symbols[behind].start;
    return names->texts.data + symbol->name;
}
