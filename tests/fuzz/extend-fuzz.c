/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for hpcprof --extend: a database whose files may contradict each other, and a measurement
 * that is added to it. The input: locus.db (or its text), profile.db and trace.db of the database, then profile, side
 * file and log of the measurement, each behind its length (u16, little-endian). */
#include <stdint.h>
#include <string.h>

#include "analysis/load/load.h"
#include "database/database.h"

#include "database-try.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

/* Adds the measurement of the directory to the model of the database. */
static int extend(const char *directory, struct model *model, const struct job *job, struct value_source *older,
                  bool goes_on, struct error *err)
{
    const struct load_options options = {.job = job, .prior = older};
    struct value_source values = {0};
    size_t n_skipped = 0;
    int code = load_measurements(&directory, 1, &options, model, &values, &n_skipped, err);
    if (code == 0 && goes_on)
        database_write_again(model, job, &values);
    values_free(&values);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    const char *directory = scratch_directory();
    const struct job job = {.n_threads = 1, .scratch = directory};
    struct value_source older = {0};
    struct model model;
    struct error err = {0};
    bool goes_on = database_goes_on(data, len_bytes);
    database_put_part(DATABASE_FILE, &data, &len_bytes);
    database_put_part("profile.db", &data, &len_bytes);
    database_put_part("trace.db", &data, &len_bytes);
    database_put_measurement(&data, &len_bytes);
    check(model_init(&model, &err) == 0, "out of memory");
    int code = database_read(directory, &model, &err);
    if (code == 0)
        code = database_values_open(directory, &model, &older, &err);
    if (code == 0)
        code = extend(directory, &model, &job, &older, goes_on, &err);
    check(code == 0 || err.text[0], "a refusal has no message");
    values_free(&older);
    model_fini(&model);
    return 0;
}
