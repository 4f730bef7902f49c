/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what hpcprof and hpcquery read: a measurement, whose files may contradict each other, and
 * the text of a database. What is loaded can be written, read again and reported. The input is text or binary: first
 * byte even: a profile, its side file and its log, each behind its length (u16, little-endian); odd: a locus.json. */
#include <stdint.h>
#include <string.h>

#include "analysis/load.h"
#include "analysis/values.h"
#include "export/database.h"
#include "export/exporters.h"

#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void report(const struct model *model)
{
    static const char *const forms[][2] = {{"vars", "text"}, {"vars", "csv"}, {"vars", "json"},
                                           {"tree", "text"}, {"tree", "csv"}, {"tree", "json"}};
    int64_t metric = model_choose_metric(model, NULL);
    for (size_t i = 0; metric >= 0 && i < sizeof forms / sizeof forms[0]; i++) {
        const struct exporter *exporter = exporters_find(forms[i][0], forms[i][1]);
        const struct export_job job = {
            .model = model, .metric = (size_t)metric, .with_unused = true, .with_paths = i & 1, .columns = 100};
        struct buf out = {0};
        struct error err = {0};
        check(exporter != NULL, "an exporter has gone");
        check(exporter->write(&job, &out, &err) == 0 || err.text[0], "a refusal has no message");
        buf_fini(&out);
    }
}

/* What is written of a model is read again. */
static void write_again(struct model *model, const struct job *job, const struct value_source *values)
{
    char path[SCRATCH_PATH_MAX];
    struct model again;
    struct error err = {0};
    const struct database_job how = {.job = job, .source = values, .title = "fuzz"};
    (void)snprintf(path, sizeof path, "%s/database", job->scratch);
    if (database_write(model, path, &how, &err) != 0) {
        check(err.text[0] != '\0', "a refusal has no message");
        return;
    }
    check(model_init(&again, &err) == 0, "out of memory");
    int code = database_read(path, &again, &err);
    check(code == 0, err.text);
    report(&again);
    model_fini(&again);
}

static void try_database(const uint8_t *data, size_t len_bytes)
{
    struct model model;
    struct error err = {0};
    check(model_init(&model, &err) == 0, "out of memory");
    if (locus_json_read((const char *)data, len_bytes, "fuzz", &model, &err) == 0)
        report(&model);
    else
        check(err.text[0] != '\0', "a refusal has no message");
    model_fini(&model);
}

static void put_part(const char *name, const uint8_t **data, size_t *len_bytes)
{
    size_t n = *len_bytes >= 2 ? (size_t)((*data)[0] | (*data)[1] << 8) : 0;
    *data += *len_bytes >= 2 ? 2 : 0;
    *len_bytes -= *len_bytes >= 2 ? 2 : 0;
    n = n < *len_bytes ? n : *len_bytes;
    if (n)
        scratch_file(name, *data, n, NULL);
    *data += n;
    *len_bytes -= n;
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
    put_part("app-000000-000-007f0100-11-0.hpcrun", &data, &len_bytes);
    put_part("app-000000-000-007f0100-11-0.objects", &data, &len_bytes);
    put_part("app-000000-000-007f0100-11-0.log", &data, &len_bytes);
    check(model_init(&model, &err) == 0, "out of memory");
    if (load_measurements(&directory, 1, &options, &model, &values, &n_skipped, &err) == 0)
        write_again(&model, &job, &values);
    else
        check(err.text[0] != '\0', "a refusal has no message");
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
