/* SPDX-License-Identifier: BSD-3-Clause */
/* locus.db is one long row of numbers and texts: what comes before the variables is gone through, and only the places
 * of the strings are kept. src/database/locus-db.c writes the file and reads all of it. */
#include "fmt/db-variables.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define BEGINS "LOCUS-DB"
#define ENDS "_locusdb"

enum { MARK_BYTES = 8, DOUBLE_BYTES = 8 };

/* Where a string lies. */
struct place {
    size_t at, len;
};

/* Where reading is. After the first failure, nothing more is read. */
struct scan {
    const unsigned char *data; /* [len] */
    size_t at, len;
    const char *name;
    struct error *err;
    int code;
    struct place *strings; /* [n_strings] */
    size_t n_strings;
    uint64_t n_scopes; /* the whole included */
};

static void fail(struct scan *scan, const char *why)
{
    if (scan->code == 0)
        scan->code = error_set(scan->err, ERR_FORMAT, "%.600s: offset %zu: %s", scan->name, scan->at, why);
}

static void no_memory(struct scan *scan)
{
    if (scan->code == 0)
        scan->code = error_set(scan->err, ERR_MEMORY, "out of memory");
}

static uint64_t take(struct scan *scan)
{
    uint64_t value = 0;
    for (unsigned shift = 0; scan->code == 0; shift += 7) {
        if (scan->at == scan->len || shift > 63) {
            fail(scan, scan->at == scan->len ? "the file ends within a number" : "a number is too long");
            return 0;
        }
        unsigned char byte = scan->data[scan->at++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    return 0;
}

static uint32_t take_32(struct scan *scan)
{
    uint64_t value = take(scan);
    if (value > UINT32_MAX)
        fail(scan, "a number is larger than it can be");
    return (uint32_t)value;
}

static void skip_bytes(struct scan *scan, uint64_t n)
{
    if (scan->code == 0 && n > scan->len - scan->at)
        fail(scan, "the file ends here");
    else if (scan->code == 0)
        scan->at += (size_t)n;
}

static void skip_numbers(struct scan *scan, size_t n)
{
    for (size_t i = 0; i < n && scan->code == 0; i++)
        (void)take(scan);
}

/* How many items a list has, each of which takes a byte at least. */
static size_t take_count(struct scan *scan)
{
    uint64_t n = take(scan);
    if (scan->code == 0 && n > scan->len - scan->at)
        fail(scan, "a list is longer than the file");
    return scan->code == 0 ? (size_t)n : 0;
}

static struct place take_text(struct scan *scan)
{
    uint64_t n = take(scan);
    struct place place = {scan->at, n ? (size_t)n - 1 : 0};
    skip_bytes(scan, n ? n - 1 : 0);
    return place;
}

static void skip_texts(struct scan *scan, size_t n)
{
    for (size_t i = 0; i < n && scan->code == 0; i++)
        (void)take_text(scan);
}

/* A list whose items are so many texts, doubles and numbers, in this order. */
static void skip_list(struct scan *scan, size_t n_texts, size_t n_doubles, size_t n_numbers)
{
    size_t n = take_count(scan);
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        skip_texts(scan, n_texts);
        skip_bytes(scan, n_doubles * DOUBLE_BYTES);
        skip_numbers(scan, n_numbers);
    }
}

/* --- what comes before the variables --- */

static void skip_head(struct scan *scan)
{
    skip_texts(scan, 5);
    skip_numbers(scan, 9 + 16 + 2 + 1);
    skip_list(scan, 1, 0, 0); /* notes */
    skip_list(scan, 1, 0, 0); /* runs */
}

static void take_strings(struct scan *scan)
{
    scan->n_strings = take_count(scan);
    scan->strings = malloc((scan->n_strings ? scan->n_strings : 1) * sizeof *scan->strings);
    if (!scan->strings)
        no_memory(scan);
    for (size_t i = 0; i < scan->n_strings && scan->code == 0; i++)
        scan->strings[i] = take_text(scan);
}

static const char *intern(struct scan *scan, struct place place, struct strtab *texts)
{
    char *text = scan->code == 0 ? strndup((const char *)scan->data + place.at, place.len) : NULL;
    int64_t known = text ? strtab_intern(texts, text) : -1;
    free(text);
    if (scan->code == 0 && known < 0)
        no_memory(scan);
    return known < 0 ? "" : texts->strings[known];
}

static void take_events(struct scan *scan, struct db_variables *variables)
{
    variables->n_events = take_count(scan);
    variables->events = calloc(variables->n_events + 1, sizeof *variables->events);
    if (!variables->events)
        no_memory(scan);
    for (size_t i = 0; i < variables->n_events && scan->code == 0; i++) {
        variables->events[i] = intern(scan, take_text(scan), &variables->texts);
        skip_texts(scan, 1);
        skip_bytes(scan, DOUBLE_BYTES);
        skip_numbers(scan, 8 + 3);
        skip_list(scan, 1, 0, 1); /* fates */
    }
}

static void take_runs(struct scan *scan, struct db_variables *variables)
{
    skip_list(scan, 2, 2, 4); /* metrics */
    skip_list(scan, 2, 0, 6); /* processes */
    if (take(scan))
        skip_list(scan, 0, 0, 2); /* threads */
    else
        (void)take(scan);
    take_events(scan, variables);
}

static void skip_tree(struct scan *scan)
{
    scan->n_scopes = take_count(scan);
    skip_numbers(scan, scan->n_scopes * 10);
    scan->n_scopes++;
    uint64_t n_values = take(scan);
    for (uint64_t i = 0; i < n_values && scan->code == 0; i++) {
        skip_numbers(scan, 1);
        skip_bytes(scan, DOUBLE_BYTES);
    }
}

/* --- variables --- */

static const char *string(struct scan *scan, struct strtab *texts)
{
    uint64_t id = take(scan);
    if (id >= scan->n_strings)
        fail(scan, "there is no string of this number");
    if (scan->code != 0)
        return "";
    return intern(scan, scan->strings[id], texts);
}

static void take_scopes(struct scan *scan, struct db_variables *variables, struct db_variable *variable)
{
    size_t n = take_count(scan);
    if (!vec_reserve(&variables->scopes, &variables->cap_scopes, variables->n_scopes + n, sizeof *variables->scopes))
        no_memory(scan);
    variable->first_scope = variables->n_scopes;
    variable->n_scopes = n;
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        uint64_t scope = take(scan);
        if (scope >= scan->n_scopes)
            fail(scan, "there is no scope of this number");
        variables->scopes[variables->n_scopes++] = (uint32_t)scope;
    }
}

static double take_double(struct scan *scan)
{
    double value = 0;
    size_t at = scan->at;
    skip_bytes(scan, DOUBLE_BYTES);
    if (scan->code == 0) {
        uint64_t bits;
        memcpy(&bits, scan->data + at, sizeof bits);
        value = bytes_double_of(le64toh(bits));
    }
    return value;
}

static void take_parts(struct scan *scan, struct db_variables *variables, struct db_variable *variable)
{
    size_t n = take_count(scan);
    if (!vec_reserve(&variables->parts, &variables->cap_parts, variables->n_parts + n, sizeof *variables->parts))
        no_memory(scan);
    variable->first_part = variables->n_parts;
    variable->n_parts = n;
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        struct db_part *part = &variables->parts[variables->n_parts++];
        part->name = string(scan, &variables->texts);
        part->file = string(scan, &variables->texts);
        part->type = string(scan, &variables->texts);
        part->line = take_32(scan);
        part->element_bytes = take(scan);
        part->size_bytes = take(scan);
        part->fraction = take_double(scan);
        if (scan->code == 0 && !(part->fraction >= 0 && part->fraction <= 1 + 1e-9))
            fail(scan, "a part is no fraction");
    }
    n = take_count(scan);
    if (!vec_reserve(&variables->lines, &variables->cap_lines, variables->n_lines + n, sizeof *variables->lines))
        no_memory(scan);
    variable->first_line = variables->n_lines;
    variable->n_lines = n;
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        struct db_part_line *line = &variables->lines[variables->n_lines++];
        line->part = take_32(scan);
        skip_numbers(scan, 1); /* function */
        line->file = string(scan, &variables->texts);
        line->line = take_32(scan);
        skip_numbers(scan, 3); /* loop */
        line->n_samples = take(scan);
        if (scan->code == 0 && line->part >= variable->n_parts)
            fail(scan, "there is no part of this number");
    }
}

static void take_fields(struct scan *scan, struct db_variables *variables, struct db_variable *variable)
{
    size_t n = take_count(scan);
    if (!vec_reserve(&variables->fields, &variables->cap_fields, variables->n_fields + n, sizeof *variables->fields))
        no_memory(scan);
    variable->first_field = variables->n_fields;
    variable->n_fields = n;
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        struct db_field *field = &variables->fields[variables->n_fields++];
        field->event = take_32(scan);
        uint32_t part = take_32(scan);
        field->part = part ? part - 1 : DB_NO_PART;
        field->name = string(scan, &variables->texts);
        field->type = string(scan, &variables->texts);
        skip_numbers(scan, 2); /* flags, offset */
        field->size_bytes = take(scan);
        field->n_samples = take(scan);
        if (scan->code == 0 && (field->event >= variables->n_events || part > variable->n_parts))
            fail(scan, "there is no event or part of this number");
    }
}

static void skip_sums(struct scan *scan)
{
    skip_list(scan, 0, 0, 1);          /* samples */
    skip_list(scan, 0, 0, 1);          /* places */
    skip_list(scan, 0, 0, 1 + 4 + 64); /* latencies */
    size_t n = take_count(scan);
    for (size_t i = 0; i < n && scan->code == 0; i++) { /* causes */
        skip_numbers(scan, 1);
        skip_bytes(scan, 8 * DOUBLE_BYTES);
    }
    n = take_count(scan);
    for (size_t i = 0; i < n && scan->code == 0; i++) { /* walks */
        skip_numbers(scan, 3);
        skip_bytes(scan, 2 * DOUBLE_BYTES);
    }
}

static void take_variable(struct scan *scan, struct db_variables *variables, struct db_variable *variable)
{
    variable->name = string(scan, &variables->texts);
    variable->class = (uint8_t)take_32(scan);
    variable->function = string(scan, &variables->texts);
    variable->file = string(scan, &variables->texts);
    variable->line = take_32(scan);
    skip_numbers(scan, 1); /* module */
    variable->size_bytes = take(scan);
    variable->n_blocks = take(scan);
    skip_numbers(scan, 6);
    take_scopes(scan, variables, variable);
    take_parts(scan, variables, variable);
    variable->type = string(scan, &variables->texts);
    skip_numbers(scan, 1);
    variable->element_bytes = take(scan);
    take_fields(scan, variables, variable);
    skip_sums(scan);
}

static void take_counts(struct scan *scan, struct db_variables *variables)
{
    size_t n = take_count(scan);
    uint64_t variable = 0;
    if (variables->counts)
        fail(scan, "the table is there twice");
    if (scan->code == 0)
        variables->counts = calloc(n + 1, sizeof *variables->counts);
    if (scan->code == 0 && !variables->counts)
        no_memory(scan);
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        struct db_field_count *count = &variables->counts[i];
        uint64_t further = take(scan);
        variable = further < variables->n ? variable + further : UINT64_MAX;
        count->scope = take_32(scan);
        count->field = take_32(scan);
        count->n_samples = take(scan);
        if (scan->code == 0 && (variable >= variables->n || count->scope >= scan->n_scopes ||
                                count->field >= variables->items[variable].n_fields))
            fail(scan, "there is no variable, scope or field of this number");
        count->variable = (uint32_t)variable;
        variables->n_counts = i + (scan->code == 0);
    }
}

static void take_thread_names(struct scan *scan, struct db_variables *variables)
{
    size_t n = take_count(scan);
    if (variables->threads)
        fail(scan, "the table is there twice");
    if (scan->code == 0)
        variables->threads = calloc(n + 1, sizeof *variables->threads);
    if (scan->code == 0 && !variables->threads)
        no_memory(scan);
    for (; scan->code == 0 && variables->n_threads < n; variables->n_threads++)
        variables->threads[variables->n_threads] = string(scan, &variables->texts);
}

typedef void table_function(struct scan *, struct db_variables *);

static table_function *table_of(const struct scan *scan, const struct place *name)
{
    static const struct {
        const char *name;
        table_function *take;
    } tables[] = {{"field_counts", take_counts}, {"thread_names", take_thread_names}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (name->len == strlen(tables[i].name) && memcmp(scan->data + name->at, tables[i].name, name->len) == 0)
            return tables[i].take;
    return NULL;
}

/* Tables: each a name, a length, and so many bytes. */
static void take_tables(struct scan *scan, struct db_variables *variables)
{
    size_t n = take_count(scan), len = scan->len;
    for (size_t i = 0; i < n && scan->code == 0; i++) {
        struct place name = take_text(scan);
        uint64_t len_table = take(scan);
        size_t at = scan->at;
        skip_bytes(scan, len_table);
        table_function *take_table = scan->code == 0 ? table_of(scan, &name) : NULL;
        if (!take_table)
            continue;
        scan->len = scan->at;
        scan->at = at;
        take_table(scan, variables);
        if (scan->code == 0 && scan->at != scan->len)
            fail(scan, "the table goes on");
        scan->len = len;
    }
}

static void take_variables(struct scan *scan, struct db_variables *variables)
{
    variables->n = take_count(scan);
    variables->items = calloc(variables->n ? variables->n : 1, sizeof *variables->items);
    if (!variables->items)
        no_memory(scan);
    for (size_t i = 0; i < variables->n && scan->code == 0; i++)
        take_variable(scan, variables, &variables->items[i]);
    skip_list(scan, 0, 0, 2); /* builds */
    take_tables(scan, variables);
    if (scan->code == 0 && scan->at != scan->len)
        fail(scan, "the file goes on");
}

const char *db_class_name(uint8_t class)
{
    static const char *const names[] = {"heap", "mmap",    "static",       "thread-local", "stack",
                                        "file", "unknown", "unattributed", "waiting"};
    return class < sizeof names / sizeof *names ? names[class] : "unknown";
}

int db_check_version(uint64_t version, const char *name, struct error *err)
{
    if (version == DB_VERSION)
        return 0;
    return error_set(err, ERR_UNSUPPORTED, "%.600s: offset %d: version %" PRIu64 ", while this program reads %d: %s",
                     name, MARK_BYTES, version, DB_VERSION,
                     version < DB_VERSION ? "make the database anew, with hpcprof from its measurements"
                                          : "a newer version of Locus reads it");
}

int db_variables_read(const void *bytes, size_t len_bytes, const char *name, struct db_variables *variables,
                      struct error *err)
{
    struct scan scan = {.data = bytes, .len = len_bytes, .name = name, .err = err};
    *variables = (struct db_variables){0};
    if (len_bytes < 2 * MARK_BYTES || memcmp(bytes, BEGINS, MARK_BYTES) != 0 ||
        memcmp(scan.data + len_bytes - MARK_BYTES, ENDS, MARK_BYTES) != 0)
        return error_set(err, ERR_FORMAT, "%.600s: offset %zu: it does not begin and end as a database of Locus", name,
                         len_bytes);
    scan.at = MARK_BYTES;
    scan.len -= MARK_BYTES;
    uint64_t version = take(&scan);
    if (scan.code == 0)
        scan.code = db_check_version(version, name, err);
    skip_head(&scan);
    take_strings(&scan);
    take_runs(&scan, variables);
    skip_tree(&scan);
    take_variables(&scan, variables);
    free(scan.strings);
    if (scan.code != 0)
        db_variables_fini(variables);
    return scan.code;
}

void db_variables_fini(struct db_variables *variables)
{
    free(variables->items);
    free(variables->scopes);
    free(variables->parts);
    free(variables->lines);
    free(variables->fields);
    free(variables->counts);
    free(variables->threads);
    free(variables->events);
    strtab_fini(&variables->texts);
    *variables = (struct db_variables){0};
}
