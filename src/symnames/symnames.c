/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of /proc/kallsyms and of what just-in-time compilers write; see symnames.h. Symbols of the kernel have no
 * sizes: one ends where the next one begins. */
#include "symnames/symnames.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/search.h"
#include "base/vec.h"

#define FUNCTION_BYTES_MAX (1024 * 1024) /* the end of a module's last function is not known */

struct symbol {
    uint64_t start;
    uint32_t name;    /* offset in the texts */
    bool is_function; /* else only the end of the symbol before */
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

/* Of several names for one address, the function that is listed first comes first. */
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
    return search_upto(names->symbols, names->n, SEARCH_KEY(struct symbol, start), address);
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

/* --- just-in-time compilers --- */

/* Reading maps and jitdumps: see symnames.h. Functions are kept in the order in which they were written; a sweep over
 * their bounds then leaves at each address the last of those that cover it. */

#define DUMP_MAGIC 0x4a695444u /* "JiTD", as its writer stores it */
#define DUMP_HEADER_BYTES 40
#define RECORD_HEADER_BYTES 16
#define LOAD_BYTES (RECORD_HEADER_BYTES + 40)
#define MOVE_BYTES (RECORD_HEADER_BYTES + 48)

enum { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_CLOSE = 3 };

/* A function as it was written, or a part of one that the sweep found. */
struct function {
    uint64_t start, end;
    uint32_t name;
    uint32_t index; /* as written: low half of a jitdump's code_index, for moves; of a part: which function */
};

struct jit_names {
    struct strtab texts;
    struct function *functions; /* [n] in the order of writing */
    size_t n, capacity;
    struct function *parts; /* [n_parts] by start, disjoint */
    size_t n_parts, cap_parts;
};

struct jit_names *jit_names_new(void)
{
    return calloc(1, sizeof(struct jit_names));
}

void jit_names_free(struct jit_names *names)
{
    if (!names)
        return;
    strtab_fini(&names->texts);
    free(names->functions);
    free(names->parts);
    free(names);
}

/* 1 when it was added, 0 when there is nothing to add. */
static int add(struct jit_names *names, uint64_t start, uint64_t size_bytes, const char *text, uint32_t index,
               struct error *err)
{
    if (!size_bytes || !*text || start + size_bytes < start)
        return 0;
    int64_t name = strtab_intern(&names->texts, text);
    if (name < 0 || !vec_reserve(&names->functions, &names->capacity, names->n + 1, sizeof *names->functions))
        return error_set(err, ERR_MEMORY, "out of memory for the functions of generated code");
    names->functions[names->n++] = (struct function){start, start + size_bytes, (uint32_t)name, index};
    return 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A number in hexadecimal, 0x before it or not, and the blanks after it; false when there is none. */
static bool take_hex(const char **at, const char *end, uint64_t *value)
{
    const char *p = *at;
    *value = 0;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    const char *first = p;
    for (; p < end && hex_digit(*p) >= 0; p++)
        *value = *value << 4 | (uint64_t)hex_digit(*p);
    bool is_number = p > first && p - first <= 16 && p < end && *p == ' ';
    while (p < end && *p == ' ')
        p++;
    *at = p;
    return is_number;
}

int64_t jit_names_add_map(struct jit_names *names, const char *bytes, size_t len_bytes, struct error *err)
{
    const char *line = bytes, *end = bytes + len_bytes;
    int64_t n = 0;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *at = line;
        uint64_t start, size_bytes;
        char text[512];
        if (!newline)
            break; /* being written, or never finished */
        if (take_hex(&at, newline, &start) && take_hex(&at, newline, &size_bytes)) {
            size_t len = (size_t)(newline - at) < sizeof text ? (size_t)(newline - at) : sizeof text - 1;
            memcpy(text, at, len);
            len -= len > 0 && text[len - 1] == '\r';
            text[len] = '\0';
            int code = add(names, start, size_bytes, text, 0, err);
            if (code < 0)
                return code;
            n += code;
        }
        line = newline + 1;
    }
    return n;
}

/* A jitdump being read. */
struct dump {
    const char *bytes;
    size_t len_bytes;
    bool is_swapped;
};

static uint32_t word_at(const struct dump *dump, size_t offset)
{
    uint32_t word;
    memcpy(&word, dump->bytes + offset, sizeof word);
    return dump->is_swapped ? __builtin_bswap32(word) : word;
}

static uint64_t long_at(const struct dump *dump, size_t offset)
{
    uint64_t value;
    memcpy(&value, dump->bytes + offset, sizeof value);
    return dump->is_swapped ? __builtin_bswap64(value) : value;
}

/* pid, tid, vma, code address, size, index; then the name. */
static int take_load(struct jit_names *names, const struct dump *dump, size_t at, size_t len_bytes, struct error *err)
{
    char text[512];
    const char *name = dump->bytes + at + LOAD_BYTES;
    size_t n_room = len_bytes - LOAD_BYTES, len = strnlen(name, n_room);
    if (len == n_room)
        return 0;
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, name, len);
    text[len] = '\0';
    return add(names, long_at(dump, at + 32), long_at(dump, at + 40), text, (uint32_t)long_at(dump, at + 48), err);
}

/* pid, tid, vma, old address, new address, size, index: the code is at both places until the next load. */
static int take_move(struct jit_names *names, const struct dump *dump, size_t at, struct error *err)
{
    uint64_t old = long_at(dump, at + 32);
    uint32_t index = (uint32_t)long_at(dump, at + 56);
    for (size_t i = names->n; i-- > 0;)
        if (names->functions[i].index == index && names->functions[i].start == old)
            return add(names, long_at(dump, at + 40), long_at(dump, at + 48),
                       names->texts.strings[names->functions[i].name], index, err);
    return 0;
}

int64_t jit_names_add_dump(struct jit_names *names, const char *bytes, size_t len_bytes, const char *name,
                           struct error *err)
{
    struct dump dump = {.bytes = bytes, .len_bytes = len_bytes};
    int64_t n = 0;
    dump.is_swapped = len_bytes >= DUMP_HEADER_BYTES && word_at(&dump, 0) == __builtin_bswap32(DUMP_MAGIC);
    if (len_bytes < DUMP_HEADER_BYTES || word_at(&dump, 0) != DUMP_MAGIC)
        return error_set(err, ERR_FORMAT, "%s: offset 0: this is not a jitdump", name);
    if (word_at(&dump, 4) != 1)
        return error_set(err, ERR_UNSUPPORTED, "%s: offset 4: version %u of jitdumps is not supported", name,
                         word_at(&dump, 4));
    for (size_t at = word_at(&dump, 8); at <= len_bytes && len_bytes - at >= RECORD_HEADER_BYTES;) {
        uint32_t kind = word_at(&dump, at), record_bytes = word_at(&dump, at + 4);
        int code = 0;
        if (record_bytes < RECORD_HEADER_BYTES || record_bytes > len_bytes - at || kind == RECORD_CLOSE)
            break;
        if (kind == RECORD_LOAD && record_bytes > LOAD_BYTES)
            code = take_load(names, &dump, at, record_bytes, err);
        else if (kind == RECORD_MOVE && record_bytes >= MOVE_BYTES)
            code = take_move(names, &dump, at, err);
        if (code < 0)
            return code;
        n += code;
        at += record_bytes;
    }
    return n;
}

/* The sweep: functions that cover the current address, the last written first (a heap of their positions). */
struct sweep {
    const struct function *functions;
    uint32_t *heap; /* [n] */
    size_t n;
};

static void heap_push(struct sweep *sweep, uint32_t index)
{
    size_t i = sweep->n++;
    for (; i > 0 && sweep->heap[(i - 1) / 2] < index; i = (i - 1) / 2)
        sweep->heap[i] = sweep->heap[(i - 1) / 2];
    sweep->heap[i] = index;
}

static void heap_pop(struct sweep *sweep)
{
    uint32_t last = sweep->heap[--sweep->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < sweep->n; i = child) {
        child += child + 1 < sweep->n && sweep->heap[child + 1] > sweep->heap[child];
        if (sweep->heap[child] <= last)
            break;
        sweep->heap[i] = sweep->heap[child];
    }
    sweep->heap[i] = last;
}

/* Appends [start, end) of the function on top; joined to the part before when it continues that one. */
static bool put_part(struct jit_names *names, const struct sweep *sweep, uint64_t start, uint64_t end)
{
    const struct function *function = &sweep->functions[sweep->heap[0]];
    struct function *last = names->n_parts ? &names->parts[names->n_parts - 1] : NULL;
    if (last && last->end == start && last->index == sweep->heap[0]) {
        last->end = end;
        return true;
    }
    if (!vec_reserve(&names->parts, &names->cap_parts, names->n_parts + 1, sizeof *names->parts))
        return false;
    names->parts[names->n_parts++] = (struct function){start, end, function->name, sweep->heap[0]};
    return true;
}

/* Everything from address up to next_start, where the next function begins. */
static bool fill(struct jit_names *names, struct sweep *sweep, uint64_t address, uint64_t next_start)
{
    while (sweep->n && address < next_start) {
        uint64_t end = sweep->functions[sweep->heap[0]].end;
        if (end > address) {
            end = end < next_start ? end : next_start;
            if (!put_part(names, sweep, address, end))
                return false;
            address = end;
        }
        if (address < next_start)
            heap_pop(sweep);
    }
    return true;
}

static int compare_starts(const void *a, const void *b, void *context)
{
    const struct function *functions = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (functions[x].start != functions[y].start)
        return functions[x].start < functions[y].start ? -1 : 1;
    return x < y ? -1 : x > y;
}

int jit_names_order(struct jit_names *names, struct error *err)
{
    size_t n = names->n;
    uint32_t *order = calloc(n + 1, sizeof *order);
    struct sweep sweep = {.functions = names->functions, .heap = calloc(n + 1, sizeof *sweep.heap)};
    bool ok = order && sweep.heap && n < UINT32_MAX;
    names->n_parts = 0;
    for (size_t i = 0; ok && i < n; i++)
        order[i] = (uint32_t)i;
    if (ok && n > 1)
        qsort_r(order, n, sizeof *order, compare_starts, names->functions);
    for (size_t i = 0; ok && i < n; i++) {
        heap_push(&sweep, order[i]);
        uint64_t next = i + 1 < n ? names->functions[order[i + 1]].start : UINT64_MAX;
        ok = fill(names, &sweep, names->functions[order[i]].start, next);
    }
    free(order);
    free(sweep.heap);
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory for the functions of generated code");
}

const char *jit_names_find(const struct jit_names *names, uint64_t address, uint64_t *start, uint64_t *end)
{
    size_t low = names ? search_upto(names->parts, names->n_parts, SEARCH_KEY(struct function, start), address) : 0;
    if (low == 0 || address >= names->parts[low - 1].end)
        return NULL;
    *start = names->parts[low - 1].start;
    *end = names->parts[low - 1].end;
    return names->texts.strings[names->parts[low - 1].name];
}
