/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what hpcprof and hpcquery read: a measurement, whose files may contradict each other, and
 * a database as locus.db or as its text. What is loaded can be written, read again and reported. The input is text or
 * binary: first byte even: a profile, its side file and its log, each behind its length (u16, little-endian); odd: a
 * locus.db or locus.json. */
#include <stdint.h>
#include <string.h>

#include "analysis/load/load.h"
#include "export/database/database.h"

#include "database-try.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void try_database(const uint8_t *data, size_t len_bytes)
{
    struct model model;
    struct error err = {0};
    check(model_init(&model, &err) == 0, "out of memory");
    bool is_binary = locus_db_is((const char *)data, len_bytes);
    int code = (is_binary ? locus_db_read : locus_json_read)((const char *)data, len_bytes, "fuzz", &model, &err);
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
