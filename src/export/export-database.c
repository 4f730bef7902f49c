/* SPDX-License-Identifier: BSD-3-Clause */
/* A database as one JSON text, for other programs: everything that locus.db holds. Ordinary code. */
#include "export/database/database.h"
#include "export/exporters.h"

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return locus_json_write(job->model, out, err);
}

const struct exporter export_database_json = {"export", "json", write_json};
