/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing metric files. */
#include "export/metric-files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/metric-db.h"

/* Buffers for one thread's values. */
struct matrices {
    double *own, *inclusive, *exclusive; /* [n_scopes][n_metrics] */
    struct metric_db db;                 /* [n_scopes][2 * n_pairs] */
};

static int make_matrices(const struct model *model, const struct columns *columns, struct matrices *m,
                         struct error *err)
{
    size_t n = model->n_scopes * model->n_metrics + 1;
    m->own = calloc(n, sizeof *m->own);
    m->inclusive = calloc(n, sizeof *m->inclusive);
    m->exclusive = calloc(n, sizeof *m->exclusive);
    m->db.n_nodes = (uint32_t)model->n_scopes;
    m->db.n_metrics = (uint32_t)(2 * columns->n_pairs);
    m->db.values = calloc(model->n_scopes * 2 * columns->n_pairs + 1, sizeof *m->db.values);
    if (m->own && m->inclusive && m->exclusive && m->db.values)
        return 0;
    return error_set(err, ERR_MEMORY, "out of memory for the values of one thread");
}

static void free_matrices(struct matrices *m)
{
    free(m->own);
    free(m->inclusive);
    free(m->exclusive);
    free(m->db.values);
}

struct filling {
    const struct model *model;
    double *own;
};

static int add_cells(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    (void)err;
    const struct filling *filling = context;
    for (size_t i = 0; i < n_cells; i++)
        filling->own[cells[i].scope * filling->model->n_metrics + cells[i].metric] += cells[i].value;
    return 0;
}

/* Fills the file's matrix with the values of thread t; SIZE_MAX gives zeros. */
static int fill(const struct model *model, const struct columns *columns, const struct value_source *source, size_t t,
                struct matrices *m, struct error *err)
{
    size_t n = model->n_metrics, width = 2 * columns->n_pairs;
    struct filling filling = {model, m->own};
    memset(m->own, 0, model->n_scopes * n * sizeof *m->own);
    int code = t == SIZE_MAX ? 0 : source->visit(source->self, model->threads[t].profile, add_cells, &filling, err);
    model_sum_inclusive(model, m->own, m->inclusive);
    columns_exclusive(model, m->own, m->exclusive);
    for (size_t scope = 0; scope < model->n_scopes; scope++)
        for (size_t k = 0; k < columns->n_pairs; k++) {
            size_t at = scope * n + columns->pairs[k].metric;
            m->db.values[scope * width + 2 * k] = m->inclusive[at];
            m->db.values[scope * width + 2 * k + 1] = m->exclusive[at];
        }
    return code;
}

static int write_one(const struct model *model, const char *directory, uint32_t rank, uint32_t thread,
                     const struct metric_db *db, struct error *err)
{
    const struct process *process = &model->processes[rank];
    char *path = NULL, exe[256];
    /* readers count ranks by looking for "-000-": it must not come from the program's name */
    (void)snprintf(exe, sizeof exe, "%s", process->exe);
    for (char *p = exe; strstr(exe, "-000") && *p; p++)
        *p = *p == '-' ? '_' : *p;
    if (asprintf(&path, "%s/1.%s-%06u-%03u-%s-%u-%u.metric-db", directory, exe, rank, thread, process->host_id,
                 process->pid, process->generation % 10) < 0)
        return error_set(err, ERR_MEMORY, "out of memory");
    int code = metric_db_write_file(db, path, err);
    free(path);
    return code;
}

int metric_files_write(const struct model *model, const struct columns *columns, const struct value_source *source,
                       const struct job *job, const char *directory, struct summary *summary, struct error *err)
{
    uint32_t n_threads = 0;
    for (size_t p = 0; p < model->n_processes; p++)
        if (model->processes[p].n_threads > n_threads)
            n_threads = model->processes[p].n_threads;
    if (directory && n_threads >= METRIC_FILES_THREADS_MAX)
        return error_set(err, ERR_RANGE,
                         "A process has %u threads; the XML form of a database holds fewer than %d in each",
                         n_threads, METRIC_FILES_THREADS_MAX);
    struct matrices matrices = {0};
    int code = make_matrices(model, columns, &matrices, err);
    size_t next = 0;
    for (uint32_t rank = 0; code == 0 && rank < model->n_processes; rank++)
        for (uint32_t id = 0; code == 0 && id < n_threads; id++) {
            bool exists = next < model->n_threads && model->threads[next].process == rank;
            if (!job_goes_on(job, err))
                code = ERR_USAGE;
            if (code == 0)
                code = fill(model, columns, source, exists ? next++ : SIZE_MAX, &matrices, err);
            if (code == 0 && exists)
                summary_add(summary, matrices.db.values);
            if (code == 0 && directory)
                code = write_one(model, directory, rank, id, &matrices.db, err);
        }
    free_matrices(&matrices);
    return code;
}
