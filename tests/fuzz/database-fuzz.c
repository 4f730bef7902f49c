/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what hpcprof and hpcquery read: a measurement, whose files may contradict each other, and
 * a database as locus.db or as the text that tests write. What is loaded can be written, read again and reported. The
 * input is text or binary: first byte even: a profile, its side file and its log, each behind its length (u16,
 * little-endian); odd: a locus.db or a text. */
#include <stdint.h>
#include <string.h>

#include "analysis/load/load.h"
#include "database/database.h"

#include "../lib/json-database.h"
#include "database-try.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

/* Reads what a model was written as, and writes that: all of it, or what frames want. */
static void write_again(const struct buf *bytes, enum db_part wanted, struct buf *again)
{
    struct model model;
    struct error err = {0};
    check(model_init(&model, &err) == 0, "out of memory");
    check(locus_db_read(bytes->data, bytes->len_bytes, "fuzz", wanted, &model, &err) == 0,
          "what is written is not read");
    if (wanted == DB_ALL)
        check(locus_db_write(&model, again, NULL) == 0, "a database that is read cannot be written");
    for (size_t i = 0; i < model.n_variables; i++)
        for (size_t k = 0; k < model.variables[i].n_scopes; k++)
            check(model.variables[i].scopes[k] < model.n_scopes, "a scope is not in the tree");
    model_fini(&model);
}

/* What is read can be written, and that reads as the same. */
static void try_codec(const struct model *model)
{
    struct buf out = {0}, again = {0};
    check(locus_db_write(model, &out, NULL) == 0, "a database that is read cannot be written");
    write_again(&out, DB_ALL, &again);
    check(out.len_bytes == again.len_bytes && memcmp(out.data, again.data, out.len_bytes) == 0,
          "it reads as another one");
    write_again(&out, DB_VARIABLES, NULL);
    buf_fini(&out);
    buf_fini(&again);
}

static int read_either(const char *bytes, size_t len_bytes, struct model *model, struct error *err)
{
    if (!locus_db_is(bytes, len_bytes))
        return json_database_read(bytes, len_bytes, "fuzz", model, err);
    int code = locus_db_read(bytes, len_bytes, "fuzz", DB_ALL, model, err);
    return code == 0 ? model_sum(model, err) : code;
}

static void try_database(const uint8_t *data, size_t len_bytes)
{
    struct model model;
    struct error err = {0};
    check(model_init(&model, &err) == 0, "out of memory");
    int code = read_either((const char *)data, len_bytes, &model, &err);
    if (code == 0)
        try_codec(&model);
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
