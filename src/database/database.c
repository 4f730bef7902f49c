/* SPDX-License-Identifier: BSD-3-Clause */
/* Database directories: statistics over threads, metric files, and putting a database in place. Means and squares are
 * updated thread by thread, so that no precision is lost when values are large and differ little. */
#include "database/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/scratch.h"
#include "database/v4.h"
#include "fmt/file.h"
#include "fmt/metric-db.h"
#include "measurement/names.h"
#include "measurement/runs.h"
#include "trial/trial.h"

enum part { PART_SUM = 0, PART_MEAN, PART_DEVIATION, PART_VARIATION, PART_MIN, PART_MAX, PARTS };

static const struct {
    const char *name, *combine;
} parts[PARTS] = {
    [PART_SUM] = {":Sum", "sum"},          [PART_MEAN] = {":Mean", NULL}, [PART_DEVIATION] = {":StdDev", NULL},
    [PART_VARIATION] = {":CoefVar", NULL}, [PART_MIN] = {":Min", "min"},  [PART_MAX] = {":Max", "max"},
};

static int summary_init(struct summary *summary, enum summary_kind kind, const struct model *model,
                        const struct columns *columns, struct error *err)
{
    *summary = (struct summary){.kind = kind, .n_columns = 2 * columns->n_pairs, .n_scopes = model->n_scopes};
    summary->n_parts = kind == SUMMARY_SUM ? 1 : kind == SUMMARY_STATISTICS ? PARTS : model->n_threads;
    size_t n = summary->n_scopes * summary->n_columns, n_parts = summary->n_parts;
    if (n_parts == 0 || n == 0 || n <= SIZE_MAX / sizeof(double) / n_parts)
        summary->values = calloc(n * n_parts + 1, sizeof *summary->values);
    return summary->values ? 0
                           : error_set(err, ERR_MEMORY, "out of memory for %zu metrics of %zu scopes",
                                       n_parts * summary->n_columns, summary->n_scopes);
}

/* Makes room for what kind needs. The sums are filled in by summary_sum, the rest by summary_add.
 * err: ERR_MEMORY */
static void summary_fini(struct summary *summary)
{
    free(summary->values);
    *summary = (struct summary){0};
}

static double *values_of(const struct summary *summary, size_t part)
{
    return summary->values + part * summary->n_scopes * summary->n_columns;
}

static void add_statistics(const struct summary *summary, const double *values, size_t n)
{
    double *mean = values_of(summary, PART_MEAN), *squares = values_of(summary, PART_DEVIATION);
    double *least = values_of(summary, PART_MIN), *most = values_of(summary, PART_MAX);
    for (size_t i = 0; i < n; i++) {
        double step = values[i] - mean[i];
        mean[i] += step / (double)summary->n_threads;
        squares[i] += step * (values[i] - mean[i]);
        least[i] = summary->n_threads == 1 || values[i] < least[i] ? values[i] : least[i];
        most[i] = summary->n_threads == 1 || values[i] > most[i] ? values[i] : most[i];
    }
}

/* Adds the next thread; values [n_scopes][n_columns] are all of its values. */
static void summary_add(struct summary *summary, const double *values)
{
    size_t n = summary->n_scopes * summary->n_columns;
    summary->n_threads++;
    if (summary->kind == SUMMARY_STATISTICS)
        add_statistics(summary, values, n);
    else if (summary->kind == SUMMARY_THREADS && summary->n_threads <= summary->n_parts)
        memcpy(values_of(summary, summary->n_threads - 1), values, n * sizeof *values);
}

/* Completes the statistics once all threads have been added, and takes the sums from the model. exclusive
 * [n_scopes][n_metrics]: as in columns_exclusive. Statistics are over all threads, including those without value; the
 * standard deviation is divided by their number. */
static void summary_end(struct summary *summary, const struct model *model, const struct columns *columns,
                        const double *exclusive)
{
    size_t n = summary->n_scopes * summary->n_columns;
    for (size_t i = 0; summary->kind != SUMMARY_THREADS && i < n; i++) {
        size_t scope = i / summary->n_columns, column = i % summary->n_columns;
        const double *from = column % 2 ? exclusive : model->inclusive;
        summary->values[i] = from[scope * model->n_metrics + columns->pairs[column / 2].metric];
    }
    if (summary->kind != SUMMARY_STATISTICS || summary->n_threads == 0)
        return;
    double *mean = values_of(summary, PART_MEAN), *deviation = values_of(summary, PART_DEVIATION);
    double *variation = values_of(summary, PART_VARIATION);
    for (size_t i = 0; i < n; i++) {
        deviation[i] = sqrt(deviation[i] / (double)summary->n_threads);
        variation[i] = mean[i] != 0 ? deviation[i] / mean[i] : 0;
    }
}

void summary_put_suffix(const struct summary *summary, const struct model *model, size_t part, struct buf *out)
{
    if (summary->kind != SUMMARY_THREADS) {
        buf_printf(out, "%s", parts[part].name);
        return;
    }
    const struct thread *thread = &model->threads[part];
    buf_printf(out, ".[%u,%u]", (unsigned)model->processes[thread->process].rank, (unsigned)thread->thread_id);
}

const char *summary_combine(const struct summary *summary, size_t part)
{
    return summary->kind == SUMMARY_THREADS ? NULL : parts[part].combine;
}

double summary_value(const struct summary *summary, size_t part, size_t scope, size_t column)
{
    return values_of(summary, part)[scope * summary->n_columns + column];
}

/* --- files of metrics --- */

/* Writes metric files. */

#define METRIC_FILES_THREADS_MAX 500 /* readers take threads from this number on for GPU streams */

/* Buffers for one thread's values. */
struct matrices {
    double *own, *inclusive, *exclusive; /* [n_scopes][n_metrics] */
    double *values;                      /* [n_scopes][2 * n_pairs] */
    struct metric_db db;                 /* the same by element; those without a scope stay zero */
};

static int make_matrices(const struct model *model, const struct columns *columns, const struct xml_layout *layout,
                         struct matrices *m, struct error *err)
{
    size_t n = model->n_scopes * model->n_metrics + 1;
    m->own = calloc(n, sizeof *m->own);
    m->inclusive = calloc(n, sizeof *m->inclusive);
    m->exclusive = calloc(n, sizeof *m->exclusive);
    m->values = calloc(model->n_scopes * 2 * columns->n_pairs + 1, sizeof *m->values);
    m->db.n_nodes = layout->n_elements;
    m->db.n_metrics = (uint32_t)(2 * columns->n_pairs);
    m->db.values = calloc((size_t)layout->n_elements * 2 * columns->n_pairs + 1, sizeof *m->db.values);
    if (m->own && m->inclusive && m->exclusive && m->values && m->db.values)
        return 0;
    return error_set(err, ERR_MEMORY, "out of memory for the values of one thread");
}

static void free_matrices(struct matrices *m)
{
    free(m->own);
    free(m->inclusive);
    free(m->exclusive);
    free(m->values);
    free(m->db.values);
}

struct own_values {
    const struct model *model;
    double *own;
};

static int add_cells(void *context, const struct cell *cells, size_t n_cells, struct error *err)
{
    (void)err;
    const struct own_values *to = context;
    for (size_t i = 0; i < n_cells; i++)
        to->own[cells[i].scope * to->model->n_metrics + cells[i].metric] += cells[i].value;
    return 0;
}

/* Fills m->values with the values of thread t; SIZE_MAX gives zeros. */
static int fill(const struct model *model, const struct columns *columns, const struct value_source *source, size_t t,
                struct matrices *m, struct error *err)
{
    size_t n = model->n_metrics, width = 2 * columns->n_pairs;
    struct own_values to = {model, m->own};
    memset(m->own, 0, model->n_scopes * n * sizeof *m->own);
    int code = t == SIZE_MAX ? 0 : source->visit(source->self, model->threads[t].profile, add_cells, &to, err);
    model_sum_inclusive(model, m->own, m->inclusive);
    columns_exclusive(model, m->own, m->exclusive);
    for (size_t scope = 0; scope < model->n_scopes; scope++)
        for (size_t k = 0; k < columns->n_pairs; k++) {
            size_t at = scope * n + columns->pairs[k].metric;
            m->values[scope * width + 2 * k] = m->inclusive[at];
            m->values[scope * width + 2 * k + 1] = m->exclusive[at];
        }
    return code;
}

/* Puts each scope's values into the rows of its elements. */
static void lay_out(const struct model *model, const struct xml_layout *layout, struct matrices *m)
{
    size_t width = m->db.n_metrics;
    for (size_t scope = 0; scope < model->n_scopes; scope++) {
        const double *from = m->values + scope * width;
        if (model->scopes[scope].kind == SCOPE_INSTRUCTION)
            continue;
        memcpy(m->db.values + (layout->elements[scope] - 1) * width, from, width * sizeof *from);
        for (size_t i = 0; layout->calls[scope] && i < width; i += 2)
            m->db.values[(layout->calls[scope] - 1) * width + i] = from[i];
    }
}

int xml_file_name(const struct model *model, const char *directory, const char *prefix, uint32_t rank, uint32_t thread,
                  const char *suffix, char **path, struct error *err)
{
    const struct process *process = &model->processes[rank];
    char exe[256];
    /* readers count ranks by looking for "-000-": it must not come from the program's name */
    (void)snprintf(exe, sizeof exe, "%s", process->exe);
    for (char *p = exe; strstr(exe, "-000") && *p; p++)
        *p = *p == '-' ? '_' : *p;
    if (asprintf(path, "%s/%s%s-%06u-%03u-%s-%u-%u.%s", directory, prefix, exe, rank, thread, process->host_id,
                 process->pid, process->generation % 10, suffix) >= 0)
        return 0;
    *path = NULL;
    return error_memory(err);
}

static int write_one(const struct model *model, const char *directory, uint32_t rank, uint32_t thread,
                     const struct metric_db *db, struct error *err)
{
    char *path = NULL;
    int code = xml_file_name(model, directory, "1.", rank, thread, "metric-db", &path, err);
    if (code == 0)
        code = metric_db_write_file(db, path, err);
    free(path);
    return code;
}

/* Writes "1.<exe>-RANK-THREAD-HOST-PID-G.metric-db" files into directory. Ranks are dense numbers of the processes, in
 * the model's order; a thread that a process lacks but another one has gets a file of zeros. Every thread is added to
 * *summary. directory: NULL = only add to *summary.
 * err: ERR_RANGE (too many threads or values), ERR_IO, ERR_MEMORY, ERR_USAGE (stopped) */
static int metric_files_write(const struct model *model, const struct columns *columns,
                              const struct value_source *source, const struct job *job, const struct xml_layout *layout,
                              const char *directory, struct summary *summary, struct error *err)
{
    uint32_t n_threads = 0;
    for (size_t p = 0; p < model->n_processes; p++)
        if (model->processes[p].n_threads > n_threads)
            n_threads = model->processes[p].n_threads;
    if (directory && n_threads >= METRIC_FILES_THREADS_MAX)
        return error_set(err, ERR_RANGE,
                         "A process has %u threads; the XML form of a database holds fewer than %d in each", n_threads,
                         METRIC_FILES_THREADS_MAX);
    struct matrices matrices = {0};
    int code = make_matrices(model, columns, layout, &matrices, err);
    size_t next = 0;
    for (uint32_t rank = 0; code == 0 && rank < model->n_processes; rank++)
        for (uint32_t id = 0; code == 0 && id < n_threads; id++) {
            bool exists = next < model->n_threads && model->threads[next].process == rank;
            if (!job_goes_on(job, err))
                code = ERR_USAGE;
            if (code == 0)
                code = fill(model, columns, source, exists ? next++ : SIZE_MAX, &matrices, err);
            if (code == 0 && exists)
                summary_add(summary, matrices.values);
            if (code == 0 && directory)
                lay_out(model, layout, &matrices);
            if (code == 0 && directory)
                code = write_one(model, directory, rank, id, &matrices.db, err);
        }
    free_matrices(&matrices);
    return code;
}

/* --- the directory --- */

/* Puts a database in place. */

/* Whether the name is that of a file of a database; src and the note on formats count only beside the others. */
static bool is_ours(const char *name)
{
    struct names_file file;
    size_t len = strlen(name);
    for (enum v4_kind kind = V4_META; kind < V4_KINDS; kind++)
        if (strcmp(name, v4_file_name(kind)) == 0)
            return true;
    return strcmp(name, DATABASE_FILE) == 0 || strcmp(name, "experiment.xml") == 0 ||
           (len > 10 && strcmp(name + len - 10, ".metric-db") == 0) ||
           (len > 9 && strcmp(name + len - 9, ".hpctrace") == 0) ||
           (len > 6 && strcmp(name + len - 6, ".sched") == 0 && names_parse(name, &file, NULL) == 0);
}

/* True for a directory "metrics" that holds nothing but ours. */
static bool is_metrics(int parent, const char *name)
{
    int fd = strcmp(name, V4_METRICS_DIRECTORY) == 0
                 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    bool all = directory != NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        all = all && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                      strcmp(entry->d_name, V4_METRICS_YAML) == 0 || strcmp(entry->d_name, V4_METRICS_EXAMPLE) == 0);
    if (directory)
        (void)closedir(directory);
    else if (fd >= 0)
        (void)close(fd);
    return all;
}

/* Whether an entry is of this kind itself: we must not replace or remove what links and the like lead to. */
static bool is_of_kind(int directory, const char *name, mode_t kind)
{
    struct stat info;
    return fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && (info.st_mode & S_IFMT) == kind;
}

/* Whether a directory is a complete database in either form: only there do we remove files that others may have, too.
 */
static bool is_database(int directory)
{
    return is_of_kind(directory, DATABASE_FILE, S_IFREG) || is_of_kind(directory, "experiment.xml", S_IFREG);
}

static bool belongs(int directory, const char *name, bool is_complete)
{
    if (is_ours(name))
        return is_of_kind(directory, name, S_IFREG);
    if (strcmp(name, SOURCES_DIRECTORY) == 0 || strcmp(name, TRIAL_DIRECTORY) == 0)
        return is_complete && is_of_kind(directory, name, S_IFDIR);
    if (strcmp(name, V4_FORMATS) == 0 || strcmp(name, DATABASE_RUNS_FILE) == 0)
        return is_complete && is_of_kind(directory, name, S_IFREG);
    return is_metrics(directory, name);
}

/* Whether an entry has a name of ours and is something else, such as a link: that says most about what is wrong. */
static bool is_in_place_of_ours(const char *name)
{
    return is_ours(name) || strcmp(name, SOURCES_DIRECTORY) == 0 || strcmp(name, TRIAL_DIRECTORY) == 0 ||
           strcmp(name, V4_METRICS_DIRECTORY) == 0;
}

static DIR *open_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory && fd >= 0)
        (void)close(fd);
    return directory;
}

/* Counts the entries of a directory that are not files of a database, and copies the name of one into foreign
 * [size_bytes]; -1 when it cannot be read. */
static int count_foreign(const char *path, char *foreign, size_t size_bytes)
{
    DIR *directory = open_directory(path);
    int n = 0;
    if (!directory)
        return -1;
    bool is_complete = is_database(dirfd(directory));
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            belongs(dirfd(directory), entry->d_name, is_complete))
            continue;
        if (n++ == 0 || is_in_place_of_ours(entry->d_name))
            (void)snprintf(foreign, size_bytes, "%s", entry->d_name);
    }
    (void)closedir(directory);
    return n;
}

/* Removes a database that has been moved from its name; if others have put files into it, those stay, and so does the
 * directory. */
static void remove_database(const char *path)
{
    DIR *directory = open_directory(path);
    if (!directory)
        return;
    if (is_of_kind(dirfd(directory), SOURCES_DIRECTORY, S_IFDIR))
        scratch_remove_tree(dirfd(directory), SOURCES_DIRECTORY);
    if (is_of_kind(dirfd(directory), TRIAL_DIRECTORY, S_IFDIR))
        scratch_remove_tree(dirfd(directory), TRIAL_DIRECTORY);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (is_ours(entry->d_name) || strcmp(entry->d_name, V4_FORMATS) == 0 ||
            strcmp(entry->d_name, DATABASE_RUNS_FILE) == 0)
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (is_metrics(dirfd(directory), V4_METRICS_DIRECTORY))
        scratch_remove_tree(dirfd(directory), V4_METRICS_DIRECTORY);
    (void)closedir(directory);
    (void)rmdir(path);
}

/* Refuses to replace what is not a database. */
static int check_target(const char *path, struct error *err)
{
    struct stat info;
    char foreign[256] = "";
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? 0 : error_set(err, ERR_IO, "%s: cannot be used: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return error_set(err, ERR_IO, "%s exists and is not a directory", path);
    int n_foreign = count_foreign(path, foreign, sizeof foreign);
    if (n_foreign < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (n_foreign > 0)
        return error_set(err, ERR_IO, "%s exists and holds other files than a database (%s): choose another name", path,
                         foreign);
    return 0;
}

/* Where the database goes: path itself, or where path leads if it is a link of this user or the administrator;
 * malloc'ed. */
static int find_target(const char *path, char **target, struct error *err)
{
    struct stat info;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    *target = strndup(path, len);
    if (!*target)
        return error_memory(err);
    if (lstat(*target, &info) != 0 || !S_ISLNK(info.st_mode))
        return 0;
    char *real = info.st_uid == geteuid() || info.st_uid == 0 ? realpath(*target, NULL) : NULL;
    int code = real
                   ? 0
                   : error_set(err, ERR_IO, "%s is a symbolic link %s", *target,
                               info.st_uid == geteuid() || info.st_uid == 0 ? "that leads nowhere" : "of another user");
    free(*target);
    *target = real;
    return code;
}

char *database_parent(const char *path)
{
    const char *end = path + strlen(path);
    while (end > path + 1 && end[-1] == '/')
        end--;
    while (end > path && end[-1] != '/')
        end--;
    return end == path ? strdup(".") : strndup(path, (size_t)(end - path));
}

static int check_place(const char *path, struct error *err)
{
    int code = check_target(path, err);
    char *parent = code == 0 ? database_parent(path) : NULL;
    if (code == 0 && !parent)
        return error_memory(err);
    if (code == 0 && access(parent, W_OK | X_OK) != 0)
        code = error_set(err, ERR_IO, "the database directory %s cannot be made: %s", path, strerror(errno));
    free(parent);
    return code;
}

int database_check(const char *path, struct error *err)
{
    char *target = NULL;
    int code = find_target(path, &target, err);
    if (code == 0)
        code = check_place(target, err);
    free(target);
    return code;
}

static int write_text(const char *directory, const char *name, const struct buf *text, struct error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return error_memory(err);
    int code = file_write_new(path, text->data, text->len_bytes, err);
    free(path);
    return code;
}

/* older: the database that the new one replaces. */
static int copy_sources(const struct model *model, const char *older, const char *directory,
                        const struct database_job *how, struct error *err)
{
    struct source_finder *find =
        how->copies && !how->without_sources ? source_finder_new(how->search, how->replace) : NULL;
    int code = 0;
    if (find)
        code = sources_copy(model, find, how->extends ? older : NULL, directory, how->job, how->copies, err);
    source_finder_free(find);
    return code;
}

/* Writes the metrics of experiment.xml and the metric files, for which the values are read once. */
static int write_metrics(struct model *model, const struct columns *columns, const struct xml_layout *layout,
                         const char *directory, const struct database_job *how, struct summary *summary,
                         struct error *err)
{
    double *exclusive = calloc(model->n_scopes * model->n_metrics + 1, sizeof *exclusive);
    bool needs_threads = how->xml_metrics != SUMMARY_SUM || !how->without_metric_files;
    int code = exclusive ? summary_init(summary, how->xml_metrics, model, columns, err) : error_memory(err);
    if (code == 0 && needs_threads)
        code = metric_files_write(model, columns, how->source, how->job, layout,
                                  how->without_metric_files ? NULL : directory, summary, err);
    if (code == 0) {
        columns_exclusive(model, model->own, exclusive);
        summary_end(summary, model, columns, exclusive);
    }
    free(exclusive);
    return code;
}

static int write_xml(struct model *model, const char *older, const char *directory, const struct database_job *how,
                     struct error *err)
{
    struct columns columns;
    struct summary summary = {0};
    struct xml_layout layout = {0};
    struct buf text = {0};
    int code = columns_make(model, &columns, err);
    if (code == 0)
        code = xml_layout_make(model, how->source, &layout, err);
    if (code == 0)
        code = copy_sources(model, older, directory, how, err);
    if (code == 0)
        code = write_metrics(model, &columns, &layout, directory, how, &summary, err);
    if (code == 0)
        code = xml_traces_write(model, how->source, how->job, &layout, directory, err);
    if (code == 0)
        code = experiment_write(model, &columns, &summary, &layout, how->title, how->copies, &text, err);
    if (code == 0)
        code = write_text(directory, "experiment.xml", &text, err);
    buf_fini(&text);
    xml_layout_fini(&layout);
    summary_fini(&summary);
    columns_fini(&columns);
    return code;
}

/* Copies the scheduler records of a directory, unless there are some of this name already. */
static int copy_records_of(const char *from, const char *directory, struct error *err)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    int code = 0;
    if (names_list(from, "sched", &files, &n, &ignored) != 0)
        return 0;
    for (size_t i = 0; i < n && !code; i++) {
        char *source = names_path(from, &files[i]), *target = names_path(directory, &files[i]);
        struct buf bytes = {0};
        code = source && target ? file_read(source, &bytes, err) : error_memory(err);
        if (!code && access(target, F_OK) != 0)
            code = file_write_new(target, bytes.data, bytes.len_bytes, err);
        buf_fini(&bytes);
        free(source);
        free(target);
    }
    free(files);
    return code;
}

/* So that what ran when can be asked of a database, too. older: as in copy_sources. */
static int copy_records(const char *older, const char *directory, const struct database_job *how, struct error *err)
{
    int code = how->extends ? copy_records_of(older, directory, err) : 0;
    for (size_t i = 0; i < how->n_measurements && !code; i++)
        code = copy_records_of(how->measurements[i], directory, err);
    return code;
}

/* Appends the list that a database has, without its brackets. */
static void put_older_runs(const char *older, struct buf *out)
{
    struct buf path = {0}, text = {0};
    struct error ignored;
    buf_printf(&path, "%s/" DATABASE_RUNS_FILE, older);
    if (path.data && file_read(path.data, &text, &ignored) == 0 && text.len_bytes > 4)
        buf_append(out, text.data + 2, text.len_bytes - 5); /* "[\n" and "\n]\n" */
    buf_fini(&path);
    buf_fini(&text);
}

/* Appends the runs of a list, each of which is a line, that are not there yet. */
static void add_runs(const char *list, struct buf *out)
{
    for (const char *line = list; line && *line;) {
        const char *end = strstr(line, ",\n");
        size_t len = end ? (size_t)(end - line) : strlen(line);
        if (!out->len_bytes || !memmem(out->data, out->len_bytes, line, len)) {
            buf_append(out, ",\n", out->len_bytes ? 2 : 0);
            buf_append(out, line, len);
        }
        line = end ? end + 2 : NULL;
    }
}

/* What the runs were, as far as it can be read: there is a database without. */
static int write_runs(const char *older, const char *directory, const struct database_job *how, struct error *err)
{
    struct buf out = {0}, all = {0};
    int code = 0;
    if (how->extends)
        put_older_runs(older, &out);
    for (size_t i = 0; i < how->n_measurements && code == 0; i++) {
        struct buf text = {0}, list = {0};
        struct stat info;
        struct error ignored;
        bool is_directory = stat(how->measurements[i], &info) == 0 && S_ISDIR(info.st_mode);
        int status = is_directory ? runs_text(how->measurements[i], &text, &ignored) : ERR_NOT_FOUND;
        if (status == 0 && text.data)
            runs_put_descriptions(text.data, &list);
        code = status == ERR_MEMORY ? error_memory(err) : 0;
        if (!list.failed)
            add_runs(list.data, &out);
        out.failed |= list.failed;
        buf_fini(&text);
        buf_fini(&list);
    }
    if (code == 0 && out.len_bytes) {
        buf_printf(&all, "[\n%s\n]\n", out.data);
        all.failed |= out.failed;
        code = write_text(directory, DATABASE_RUNS_FILE, &all, err);
    }
    buf_fini(&all);
    buf_fini(&out);
    return code;
}

static int write_files(struct model *model, const char *older, const char *directory, const struct database_job *how,
                       struct error *err)
{
    struct buf text = {0};
    int code = copy_sources(model, older, directory, how, err);
    if (code != 0)
        return v4_give_up(how->job, code, err);
    code = v4_export(model, how->source, how->job, directory, how->title, how->copies, err);
    if (code == 0)
        job_begin(how->job, "writing " DATABASE_FILE);
    if (code == 0)
        code = job_goes_on(how->job, err) ? locus_db_write(model, &text, err) : ERR_USAGE;
    if (code == 0)
        code = write_text(directory, DATABASE_FILE, &text, err);
    if (code == 0)
        code = copy_records(older, directory, how, err);
    if (code == 0)
        code = write_runs(older, directory, how, err);
    buf_fini(&text);
    return code;
}

/* Whether another user can move what lies in the directory of path. */
static bool is_parent_foreign(const char *path)
{
    struct stat info;
    char *parent = database_parent(path);
    bool is_known = parent && stat(parent, &info) == 0;
    free(parent);
    bool is_ours_to_move = is_known && (info.st_uid == geteuid() || info.st_uid == 0);
    return !is_ours_to_move || ((info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & S_ISVTX));
}

/* A directory beside the target that is being filled. */
struct building {
    char *temporary; /* its path; registered for removal as long as it exists */
    int fd;
    char own[64]; /* its name through fd, if path may come to mean something else */
};

static int begin_building(const char *target, const struct team *team, struct building *building, struct error *err)
{
    struct stat info;
    *building = (struct building){.fd = -1};
    if (asprintf(&building->temporary, "%s.new-%d", target, (int)getpid()) < 0) {
        building->temporary = NULL;
        return error_memory(err);
    }
    int n_tries = 0;
    for (size_t len = strlen(building->temporary); mkdir(building->temporary, 0755) != 0;) {
        if (errno != EEXIST || ++n_tries == 10)
            return error_set(err, ERR_IO, "the database directory %s cannot be made: %s", target, strerror(errno));
        building->temporary[len - 1] = (char)('a' + n_tries); /* it is taken: a process with this pid was killed */
    }
    scratch_note(building->temporary);
    building->fd = open(building->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (building->fd < 0 || fstat(building->fd, &info) != 0 || info.st_uid != geteuid())
        return error_set(err, ERR_IO, "the database directory %s cannot be made: another user is moving files there",
                         target);
    if (!team_is_several(team) && is_parent_foreign(target))
        (void)snprintf(building->own, sizeof building->own, "/proc/self/fd/%d", building->fd);
    return 0;
}

static void end_building(struct building *building)
{
    if (building->fd >= 0)
        (void)close(building->fd);
    if (building->temporary)
        scratch_forget(building->temporary);
    free(building->temporary);
}

/* For file systems that cannot exchange two names: for a moment the older database has another name. */
static int move_in_place(const char *temporary, const char *target, struct error *err)
{
    char *older = NULL;
    if (asprintf(&older, "%s.old-%d", target, (int)getpid()) < 0)
        return error_memory(err);
    int code = rename(target, older) == 0 || errno == ENOENT ? 0 : ERR_IO;
    if (code == 0 && rename(temporary, target) != 0) {
        int number = errno;
        (void)rename(older, target);
        errno = number;
        code = ERR_IO;
    }
    if (code != 0)
        (void)error_set(err, code, "%s: cannot be put in place: %s", target, strerror(errno));
    else
        remove_database(older);
    free(older);
    return code;
}

/* Gives the complete directory the name of the target, in one step; the older one is removed afterwards. */
static int put_in_place(const char *temporary, const char *target, struct error *err)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, target, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST && renameat2(AT_FDCWD, temporary, AT_FDCWD, target, RENAME_EXCHANGE) == 0) {
        remove_database(temporary);
        return 0;
    }
    if (errno == EINVAL || errno == ENOSYS)
        return move_in_place(temporary, target, err);
    return error_set(err, ERR_IO, "%s: cannot be put in place: %s", target, strerror(errno));
}

/* Lets write fill a directory beside path, which then takes its place. */
static int write_directory(int (*write)(struct model *, const char *older, const char *directory,
                                        const struct database_job *, struct error *),
                           struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    char *target = NULL;
    struct building building = {.fd = -1};
    int code = find_target(path, &target, err);
    if (code == 0)
        code = check_target(target, err);
    if (code == 0)
        code = begin_building(target, how->job->team, &building, err);
    if (code != 0)
        code = v4_give_up(how->job, code, err);
    else
        code = write(model, target, *building.own ? building.own : building.temporary, how, err);
    if (code == 0)
        code = check_target(target, err);
    if (code == 0)
        code = put_in_place(building.temporary, target, err);
    if (code != 0 && building.fd >= 0)
        scratch_remove(building.temporary);
    end_building(&building);
    free(target);
    return code;
}

int database_write(struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    return write_directory(write_files, model, path, how, err);
}

int database_join(struct model *model, const struct value_source *source, const struct job *job, struct error *err)
{
    return v4_join(model, source, job, err);
}

int database_write_xml(struct model *model, const char *path, const struct database_job *how, struct error *err)
{
    return write_directory(write_xml, model, path, how, err);
}

/* Path of the file that holds a database's model; the path itself when it is no directory. NULL when out of memory. */
static char *model_path(const char *path, bool is_directory)
{
    char *name = NULL;
    if (!is_directory)
        return strdup(path);
    return asprintf(&name, "%s/" DATABASE_FILE, path) < 0 ? NULL : name;
}

bool database_is_at(const char *path)
{
    char head[8] = "";
    struct stat info;
    struct buf name = {0};
    if (strcmp(path, "-") == 0)
        return false;
    if (stat(path, &info) != 0)
        return true;
    if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))
        return false;
    if (!S_ISDIR(info.st_mode)) {
        int fd = input_open(AT_FDCWD, path, 0, NULL);
        ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : 0;
        if (fd >= 0)
            (void)close(fd);
        return n < 0 || locus_db_is(head, (size_t)n); /* valgrind leaves a file empty that has parts beside it */
    }
    buf_printf(&name, "%s/" DATABASE_FILE, path);
    bool is_there = name.data && access(name.data, F_OK) == 0;
    buf_fini(&name);
    return is_there;
}

char *database_directory(const char *path)
{
    struct stat info;
    bool is_file = stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    return is_file ? database_parent(path) : strdup(path);
}

int database_read(const char *path, struct model *model, struct error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set(err, ERR_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
    char *name = model_path(path, S_ISDIR(info.st_mode));
    if (!name)
        return error_memory(err);
    struct buf text = {0};
    int code = 0;
    if (access(name, F_OK) == 0)
        code = file_read(name, &text, err);
    else if (errno == ENOENT)
        code = error_set(
            err, ERR_NOT_FOUND,
            "%s is not a database: it has no " DATABASE_FILE " (hpcprof makes one from a measurement directory)", path);
    else
        code = error_set(err, ERR_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (code == 0 && !S_ISDIR(info.st_mode) && !text.len_bytes)
        code = error_set(err, ERR_FORMAT, "%s: the file is empty", path);
    if (code == 0 && !S_ISDIR(info.st_mode) && !locus_db_is(text.data, text.len_bytes))
        code = error_set(err, ERR_FORMAT,
                         "%s is not a database of Locus; operations and forms read what other tools wrote: hpcquery "
                         "flat : table %s",
                         path, path);
    if (code == 0)
        code = locus_db_read(text.data, text.len_bytes, name, DB_ALL, model, err);
    if (code == 0 && S_ISDIR(info.st_mode))
        code = v4_check_files(path, err);
    if (code == 0)
        code = model_sum(model, err);
    buf_fini(&text);
    free(name);
    return code;
}
