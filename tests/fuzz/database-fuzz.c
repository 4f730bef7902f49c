/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what hpcprof and hpcquery read: a measurement, whose files may contradict each other, and
 * a database as locus.db or as the text that tests write. What is loaded can be written, read again and reported. The
 * input is text or binary: first byte even: a profile, its side file and its log, each behind its length (u16,
 * little-endian); odd: a locus.db or a text. */
#include <stdint.h>
#include <string.h>

#include "analysis/load/load.h"
#include "database/database.h"
#include "fmt/db-variables.h"

#include "../lib/json-database.h"
#include "database-try.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

/* Frames read the variables of a locus.db alone: they are those of the model. */
static void check_variables(const struct model *model, const void *bytes, size_t len_bytes)
{
    struct db_variables read;
    struct error err = {0};
    check(db_variables_read(bytes, len_bytes, "fuzz", &read, &err) == 0, "a database that is read has no variables");
    check(read.n == model->n_variables, "there are as many variables");
    for (size_t i = 0; i < read.n; i++) {
        const struct variable *variable = &model->variables[i];
        const struct db_variable *same = &read.items[i];
        check(strcmp(same->name, model_text(model, variable->name)) == 0, "the name is another one");
        check(strcmp(same->type, model_text(model, variable->type)) == 0, "the type is another one");
        check(strcmp(same->file, model_text(model, variable->file)) == 0, "the file is another one");
        check(same->class == variable->class && same->line == variable->line, "class or line is another one");
        check(strcmp(db_class_name(same->class), model_class_name(variable->class)) == 0, "the class has another name");
        check(same->size_bytes == variable->size_bytes && same->n_blocks == variable->n_blocks &&
                  same->element_bytes == variable->element_bytes,
              "a size is another one");
        check(same->n_scopes == variable->n_scopes, "there are as many scopes");
        check(same->n_fields == variable->n_fields, "there are as many fields");
        for (size_t k = 0; k < same->n_fields; k++) {
            const struct db_field *field = &read.fields[same->first_field + k];
            const struct variable_field *known = &variable->fields[k];
            check(strcmp(field->name, model_text(model, known->name)) == 0 && field->event == known->event &&
                      field->part == known->part && field->n_samples == known->samples,
                  "a field is another one");
        }
        for (size_t k = 0; k < same->n_scopes; k++)
            check(read.scopes[same->first_scope + k] == variable->scopes[k], "a scope is another one");
    }
    check(read.n_counts == model->n_field_counts, "there are as many counts of fields");
    for (size_t i = 0; i < read.n_counts; i++) {
        const struct db_field_count *count = &read.counts[i];
        const struct field_count *known = &model->field_counts[i];
        check(count->variable == known->variable && count->scope == known->scope && count->field == known->field &&
                  count->n_samples == known->n_samples,
              "a count of a field is another one");
    }
    db_variables_fini(&read);
}

/* The same of the database when it is written again, and of what was read if that is no text. */
static void try_variables(const struct model *model, const void *bytes, size_t len_bytes)
{
    struct buf out = {0};
    if (bytes)
        check_variables(model, bytes, len_bytes);
    check(locus_db_write(model, &out, NULL) == 0, "a database that is read cannot be written");
    check_variables(model, out.data, out.len_bytes);
    buf_fini(&out);
}

static void try_database(const uint8_t *data, size_t len_bytes)
{
    struct model model;
    struct error err = {0};
    check(model_init(&model, &err) == 0, "out of memory");
    bool is_binary = locus_db_is((const char *)data, len_bytes);
    int code = (is_binary ? locus_db_read : json_database_read)((const char *)data, len_bytes, "fuzz", &model, &err);
    if (code == 0)
        try_variables(&model, is_binary ? data : NULL, len_bytes);
    if (code == 0 && database_goes_on(data, len_bytes))
        database_report(&model);
    else
        check(code == 0 || err.text[0] != '\0', "a refusal has no message");
    model_fini(&model);
}

static void try_measurement(const uint8_t *data, size_t len_bytes)
{
    const char *directory = scratch_directory();
    const struct job job = {.n_threads = 1, .scratch = directory};
    const struct load_options options = {.job = &job};
    struct value_source values = {0};
    struct model model;
    struct error err = {0};
    size_t n_skipped = 0;
    bool goes_on = database_goes_on(data, len_bytes);
    database_put_measurement(&data, &len_bytes);
    check(model_init(&model, &err) == 0, "out of memory");
    int code = load_measurements(&directory, 1, &options, &model, &values, &n_skipped, &err);
    if (code == 0 && goes_on)
        database_write_again(&model, &job, &values);
    else
        check(code == 0 || err.text[0] != '\0', "a refusal has no message");
    values_free(&values);
    model_fini(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    if (!len_bytes)
        return 0;
    if (data[0] & 1)
        try_database(data + 1, len_bytes - 1);
    else
        try_measurement(data + 1, len_bytes - 1);
    return 0;
}
