/* SPDX-License-Identifier: BSD-3-Clause */
/* See database-try.h. */
#include "database-try.h"

#include "database/database.h"
#include "answer/answer.h"

#include "scratch-dir.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
    bool is_fuzzing;
} try;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    try.is_fuzzing = true;
    return 0;
}

bool database_goes_on(const uint8_t *data, size_t len_bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < len_bytes; i++)
        sum = sum * 31 + data[i];
    return !try.is_fuzzing || (sum >> 13) % 8 == 0;
}

void database_put_part(const char *name, const uint8_t **data, size_t *len_bytes)
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

void database_put_measurement(const uint8_t **data, size_t *len_bytes)
{
    database_put_part("app-000000-000-007f0100-11-0.hpcrun", data, len_bytes);
    database_put_part("app-000000-000-007f0100-11-0.objects", data, len_bytes);
    database_put_part("app-000000-000-007f0100-11-0.log", data, len_bytes);
}

void database_report(const struct model *model)
{
    static const char *const forms[][2] = {{"vars", "text"}, {"vars", "csv"}, {"vars", "json"},
                                           {"tree", "text"}, {"tree", "csv"}, {"tree", "json"}};
    int64_t metric = model_choose_metric(model, NULL);
    for (size_t i = 0; metric >= 0 && i < sizeof forms / sizeof forms[0]; i++) {
        const struct report_kind *kind = report_find(forms[i][0]);
        const struct export_job job = {.model = model,
                                       .report = forms[i][0],
                                       .form = forms[i][1],
                                       .metric = (size_t)metric,
                                       .with_unused = true,
                                       .with_paths = i & 1,
                                       .columns = 100};
        struct buf out = {0};
        struct error err = {0};
        check(kind != NULL, "a report has gone");
        check(report_write(&kind->forms, &job, &out, &err) == 0 || err.text[0], "a refusal has no message");
        buf_fini(&out);
    }
}

void database_write_again(struct model *model, const struct job *job, const struct value_source *values)
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
    database_report(&again);
    model_fini(&again);
}
