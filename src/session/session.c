/* SPDX-License-Identifier: BSD-3-Clause */
/* An open database: its model, the values of its threads and its frames, each read once. */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#include "answer/state.h"
#include "base/spelling.h"
#include "database/database.h"
#include "database/v4.h"
#include "export/vars-table.h"
#include "fmt/json.h"
#include "frame/ops.h"
#include "session/face.h"
#include "session/questions.h"

struct session {
    char *path, *directory;
    struct foreign *foreign;   /* of another tool's file; NULL: it is a database, or recordings */
    struct timeline *timeline; /* NULL: there are no recordings */
    char *why_no_timeline;     /* those that there are could not be read; NULL: there are none */
    bool has_streams_alone;    /* there is no model */
    struct model model;
    struct thread_values *values;
    struct frame *frames[SESSION_FIELDS + 1]; /* by enum session_tree; NULL: not opened yet */
    struct items items;                       /* of the metric that a state named last */
    bool has_items;
    char *condition;       /* on the threads that a request chose last; NULL: none did */
    struct session *parts; /* the database as if there had been these alone */
    struct session *older; /* of parts: an earlier choice, of which there are answers */
    size_t n_answers;      /* of parts: those that are not freed yet */
};

int session_open(const char *const *paths, size_t n_paths, struct session **session, struct error *err)
{
    *session = NULL;
    if (n_paths != 1)
        return error_set(err, ERR_UNSUPPORTED, "a session has one database, not %zu", n_paths);
    struct session *made = calloc(1, sizeof *made);
    int code = made ? model_init(&made->model, err) : error_memory(err);
    if (code != 0) {
        free(made);
        return code;
    }
    made->path = strdup(paths[0]);
    made->directory = database_directory(paths[0]);
    code = made->path && made->directory ? database_read(made->path, &made->model, err) : error_memory(err);
    if (code == 0 && !(made->model.kept = kept_reports_new()))
        code = error_memory(err);
    if (code == 0)
        code = thread_values_open(made->directory, &made->model, &made->values, err);
    if (code == 0)
        *session = made;
    else
        session_close(made);
    return code;
}

/* A session on what another tool wrote. */
static int open_foreign(const char *path, struct session **session, struct error *err)
{
    struct session *made = calloc(1, sizeof *made);
    if (!made || model_init(&made->model, err) != 0) {
        free(made);
        return error_memory(err);
    }
    made->path = strdup(path);
    int code = made->path ? foreign_open(made->path, &made->model, &made->foreign, err) : error_memory(err);
    if (code == 0)
        *session = made;
    else
        session_close(made);
    return code;
}

int session_add_recordings(struct session *session, const struct recordings *recordings, struct error *err)
{
    struct timeline *made;
    int code = timeline_open(recordings, &made, err);
    free(session->why_no_timeline);
    session->why_no_timeline = code != 0 ? strdup(err->text) : NULL;
    if (code != 0)
        return code;
    timeline_close(session->timeline);
    session->timeline = made;
    return 0;
}

void session_move_recordings(struct session *from, struct session *to)
{
    to->timeline = from->timeline;
    from->timeline = NULL;
}

bool session_has_samples(const struct session *session)
{
    return session->timeline && timeline_has_samples(session->timeline);
}

void session_on_progress(void (*told)(void *context, const char *path, const char *doing, uint64_t done, uint64_t all),
                         void *context)
{
    stream_on_progress(told, context);
}

const char *session_refusal(const struct session *session, size_t stream)
{
    return session->timeline ? timeline_refusal(session->timeline, stream) : NULL;
}

int session_open_recordings(const struct recordings *recordings, struct session **session, struct error *err)
{
    struct session *made = calloc(1, sizeof *made);
    *session = NULL;
    if (!made || model_init(&made->model, err) != 0) {
        free(made);
        return error_memory(err);
    }
    made->has_streams_alone = true;
    made->path = recordings->n_streams ? strdup(recordings->streams[0].file) : NULL;
    int code = made->path ? session_add_recordings(made, recordings, err) : error_memory(err);
    if (code == 0)
        *session = made;
    else
        session_close(made);
    return code;
}

int session_open_streams(const char *const *paths, size_t n_paths, struct session **session, struct error *err)
{
    struct recordings recordings = {0};
    int code = 0;
    *session = NULL;
    for (size_t i = 0; code == 0 && i < n_paths; i++)
        code = recordings_add(&recordings, paths[i], false, TOPOLOGY_VIEW_DEFAULT, NULL, err);
    code = code ? code : session_open_recordings(&recordings, session, err);
    recordings_fini(&recordings);
    return code;
}

int session_open_any(const char *path, struct session **session, struct error *err)
{
    struct error of_frame = {0};
    int code = session_open(&path, 1, session, err);
    if (code == 0 || code == ERR_MEMORY || database_is_at(path))
        return code;
    if (open_foreign(path, session, &of_frame) == 0)
        return 0;
    if (session_open_streams(&path, 1, session, err) == 0)
        return 0;
    *err = of_frame;
    return err->code;
}

void session_close(struct session *session)
{
    if (!session)
        return;
    for (size_t i = 0; i < sizeof session->frames / sizeof *session->frames; i++)
        frame_close(session->frames[i]);
    if (session->has_items)
        items_fini(&session->items);
    session_close(session->parts);
    session_close(session->older);
    free(session->condition);
    timeline_close(session->timeline);
    free(session->why_no_timeline);
    thread_values_free(session->values);
    kept_reports_free(session->model.kept);
    model_fini(&session->model);
    foreign_close(session->foreign);
    free(session->directory);
    free(session->path);
    free(session);
}

void session_name_in_full(struct session *session)
{
    session->model.names_in_full = true;
}

const struct model *session_model(const struct session *session)
{
    return session->has_streams_alone ? NULL : &session->model;
}

const char *session_report(size_t i)
{
    size_t n;
    const struct report_kind *const *all = reports(&n);
    return i < n ? all[i]->name : NULL;
}

const char *session_report_summary(size_t i)
{
    size_t n;
    const struct report_kind *const *all = reports(&n);
    return i < n ? all[i]->summary : NULL;
}

const char *session_metric(const struct session *session, size_t i)
{
    const struct model *model = &session->model;
    for (size_t m = 0; m < model->n_metrics; m++)
        if (!model->metrics[m].hidden && i-- == 0)
            return model->metrics[m].name;
    return NULL;
}

const char *session_note(const struct session *session, size_t i)
{
    return i < session->model.n_notes ? session->model.notes[i] : NULL;
}

/* --- reports --- */

/* Says which metrics there are, or which the name is like. */
static int refuse_metric(const struct model *model, const char *name, struct error *err)
{
    struct buf text = {0};
    const char **names = calloc(model->n_metrics + 1, sizeof *names);
    for (size_t i = 0; names && i < model->n_metrics; i++)
        names[i] = model->metrics[i].name;
    buf_printf(&text, name ? "the %s has no metric '%s'" : "the %s has no metric%.0s",
               model->code ? "file" : "database", name ? name : "");
    if (names)
        spelling_suggest(&text, name ? name : "", names, model->n_metrics);
    int code = text.data && names ? error_set(err, ERR_NOT_FOUND, "%s", text.data) : error_memory(err);
    free(names);
    buf_fini(&text);
    return code;
}

/* What a request asks of the session. */
static int make_job(const struct session *session, const struct report_kind *kind, const struct request *request,
                    struct export_job *job, struct error *err)
{
    int64_t metric = model_choose_metric(&session->model, request->metric);
    if (metric < 0)
        return refuse_metric(&session->model, request->metric, err);
    *job = (struct export_job){.model = &session->model,
                               .report = kind->name,
                               .form = "json",
                               .values = session->values,
                               .directory = session->directory,
                               .subject = request->subject,
                               .metric = (size_t)metric,
                               .top = request->top,
                               .by_time = request->order && strcmp(request->order, "time") == 0,
                               .with_unused = request->with_unused,
                               .with_paths = request->with_paths,
                               .with_fields = request->with_fields,
                               .at_mark = request->at_mark,
                               .by = request->by ? split_by_named(request->by) : SPLIT_NONE,
                               .derived = request->derived,
                               .n_derived = request->n_derived,
                               .least = request->has_least ? request->least : -1};
    return 0;
}

/* Opens the database once more, for some of its threads. */
static int open_parts(struct session *session, const char *condition, struct error *err)
{
    const char *path = session->path;
    struct frame *frame = NULL;
    uint32_t *threads = NULL;
    size_t n;
    int code = session_frame(session, SESSION_BOTH, &frame, err);
    if (code == 0)
        code = frame_find_profiles(frame, condition, &threads, &n, err);
    if (code == 0 && frame_n_profiles(frame) != session->model.n_threads)
        code = error_set(err, ERR_UNSUPPORTED, "%s: it does not say which thread its costs are of", path);
    if (code == 0)
        code = session_open(&path, 1, &session->parts, err);
    if (code == 0) { /* of contexts only what all threads have together is known */
        struct session *parts = session->parts;
        thread_values_free(parts->values);
        parts->values = NULL;
        parts->model.names_in_full = session->model.names_in_full;
        code = database_choose_threads(&parts->model, parts->directory, condition, threads, n, err);
    }
    if (code != 0) {
        session_close(session->parts);
        session->parts = NULL;
    }
    free(threads);
    frame_close(frame);
    return code;
}

/* Ends the choice that there is, unless somebody has an answer with its texts: then it ends with the session. */
static void let_go_of_parts(struct session *session)
{
    struct session *parts = session->parts;
    session->parts = NULL;
    free(session->condition);
    session->condition = NULL;
    if (!parts || parts->n_answers == 0) {
        session_close(parts);
        return;
    }
    parts->older = session->older;
    session->older = parts;
}

/* The threads that a request chooses, as a session that is kept for the next request; without a choice the session
 * itself. */
static int choose_parts(struct session **session, struct request *request, struct error *err)
{
    struct session *whole = *session;
    const char *condition = request->profiles;
    if (!condition)
        return 0;
    if (whole->foreign || whole->has_streams_alone)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s does not say which thread a cost is of: it is no database of "
                         "hpcprof",
                         whole->path);
    if (!whole->condition || strcmp(whole->condition, condition) != 0) {
        let_go_of_parts(whole);
        int code = open_parts(whole, condition, err);
        if (code != 0)
            return code;
        if (!(whole->condition = strdup(condition)))
            return error_memory(err);
    }
    *session = whole->parts;
    request->profiles = NULL;
    return 0;
}

static const struct report_forms *forms_of(const struct report_kind *kind, const struct request *request)
{
    return report_forms_of(kind, request->by, request->with_instructions);
}

int session_write(struct session *session, const struct report_kind *kind, const struct request *request,
                  const struct face *face, struct buf *out, struct error *err)
{
    struct export_job job;
    struct request known = *request;
    if (choose_parts(&session, &known, err) != 0)
        return err->code;
    request = &known;
    if (session->has_streams_alone)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is a recording: hpcprof makes a database of what perf sampled, and hpcquery events, sched "
                         "and topo show what ran when",
                         session->path);
    int code = session->foreign ? foreign_check(session->path, request, err) : 0;
    if (code == 0)
        code = make_job(session, kind, request, &job, err);
    if (code != 0)
        return code;
    job.form = face->form;
    job.fits_screen = face->fits_screen;
    job.is_verbose = face->is_verbose;
    job.color = face->color;
    job.unicode = face->unicode;
    job.columns = face->columns;
    return report_write(forms_of(kind, request), &job, out, err);
}

/* What a caller of any version says. */
static struct request request_known(const struct request *request)
{
    struct request known = {0};
    memcpy(&known, request, request->size < sizeof known ? request->size : sizeof known);
    return known;
}

/* The things of the database, for a metric, NULL: the usual one. */
static int keep_items(struct session *session, const char *metric, struct error *err)
{
    int64_t number = model_choose_metric(&session->model, metric);
    if (number < 0)
        return refuse_metric(&session->model, metric, err);
    if (session->has_items && session->items.metric == (size_t)number)
        return 0;
    if (session->has_items)
        items_fini(&session->items);
    int code = items_init(&session->items, &session->model, (size_t)number, err);
    session->has_items = code == 0;
    return code;
}

/* Answers a report or a question of viewers. */
static int make_answer(struct session *session, const struct report_kind *kind, const struct request *request,
                       struct export_job *job, struct answer *answer, struct error *err)
{
    const struct asked asked = {job, session->path, request->tree};
    if (timeline_find(kind->name))
        return timeline_answer(session->timeline, session->why_no_timeline, request, answer, err);
    if (session->has_streams_alone)
        return timeline_answer_session(session->timeline, request, answer, err);
    if (session->foreign && foreign_has(kind->name))
        return foreign_answer(session->foreign, session->path, request, answer, err);
    bool is_question = question_find(kind->name) != NULL, takes_items = is_question || kind->takes_items;
    int code = takes_items ? keep_items(session, request->metric, err) : 0;
    if (code != 0)
        return code;
    job->items = takes_items ? &session->items : NULL;
    return is_question ? question_answer(&asked, answer, err)
                       : report_answer(forms_of(kind, request), job, answer, err);
}

int session_ask(struct session *session, const struct request *request, struct answer **answer, struct error *err)
{
    const struct report_kind *kind;
    struct request known = request_known(request);
    struct export_job job = {0};
    const struct session *whole = session;
    *answer = NULL;
    int code = request_check(&known, &kind, err);
    if (code == 0)
        code = choose_parts(&session, &known, err);
    bool is_timeline = code == 0 && timeline_find(kind->name);
    if (code == 0 && session->foreign && !is_timeline)
        code = foreign_check(session->path, &known, err);
    if (code == 0 && !session->has_streams_alone && !is_timeline && !(session->foreign && foreign_has(kind->name)))
        code = make_job(session, kind, &known, &job, err);
    if (code != 0)
        return code;
    bool has_failed = vec_has_failed();
    struct answer *made = calloc(1, sizeof *made);
    code = made ? make_answer(session, kind, &known, &job, made, err) : error_memory(err);
    if (code == 0 && vec_has_failed() && !has_failed) { /* in a small text on the way */
        answer_fini(made);
        code = error_memory(err);
    }
    if (code == 0) {
        session->n_answers++;
        made->n_users = session == whole ? NULL : &session->n_answers;
        *answer = made;
    } else {
        free(made);
    }
    return code;
}

/* Appends the answer to a request that is JSON, as a printer prints it. */
static int ask_printed(struct session *session, const char *request,
                       void (*print)(const struct answer *answer, struct buf *out), struct buf *out, struct error *err)
{
    struct request_text parsed;
    struct answer *answer = NULL;
    int code = request_of_json(request, &parsed, err);
    if (code == 0)
        code = session_ask(session, &parsed.request, &answer, err);
    if (code == 0)
        print(answer, out);
    if (code == 0 && out->failed)
        code = error_memory(err);
    answer_free(answer);
    request_text_fini(&parsed);
    return code;
}

int session_ask_json(struct session *session, const char *request, char **text, struct error *err)
{
    struct buf out = {0};
    int code = ask_printed(session, request, answer_print_json, &out, err);
    if (code != 0)
        buf_fini(&out);
    *text = out.data;
    return code;
}

int session_ask_packed(struct session *session, const char *request, struct buf *out, struct error *err)
{
    return ask_printed(session, request, answer_print_packed, out, err);
}

int session_ask_text(struct session *session, const struct request *request, unsigned columns, char **text,
                     struct error *err)
{
    const struct report_kind *kind;
    struct request known = request_known(request);
    const struct face face = {.form = "text", .unicode = true, .columns = columns};
    struct buf out = {0};
    *text = NULL;
    int code = request_check(&known, &kind, err);
    if (code == 0 && (question_find(kind->name) || timeline_find(kind->name)))
        code = error_set(err, ERR_UNSUPPORTED, "%s is no text: it is asked by viewers", kind->name);
    if (code == 0)
        code = session_write(session, kind, &known, &face, &out, err);
    if (code == 0)
        buf_append(&out, "", 0); /* a text of nothing is one, too */
    if (code == 0 && out.failed)
        code = error_memory(err);
    if (code == 0)
        *text = out.data;
    else
        buf_fini(&out);
    return code;
}

/* --- states --- */

/* Reads a state and finds what it shows. state_fini and state_query_fini free them, also after a failure. */
static int resolve(struct session *session, const char *text, struct state *state, struct state_query *query,
                   struct error *err)
{
    *query = (struct state_query){0};
    int code = state_of_text(text, state, err);
    if (code == 0)
        code = keep_items(session, state_get(state, "metric"), err);
    return code ? code : state_resolve(state, &session->items, query, err);
}

int session_state_words(struct session *session, const char *text, struct state_words *words, struct error *err)
{
    struct state state;
    struct state_query query;
    *words = (struct state_words){0};
    int code = resolve(session, text, &state, &query, err);
    if (code == 0)
        code = state_put_words(&state, &query, words, err);
    state_query_fini(&query);
    state_fini(&state);
    return code;
}

int session_state_line(struct session *session, const char *text, char **line, struct error *err)
{
    char tool[] = "hpcquery", *before[] = {tool}, *behind[] = {session->path};
    const struct state_words first = {.words = before, .n = 1}, last = {.words = behind, .n = 1};
    struct state_words words;
    struct buf out = {0};
    *line = NULL;
    int code = session_state_words(session, text, &words, err);
    if (code != 0)
        return code;
    state_put_line(&first, &out);
    buf_append(&out, " ", 1);
    state_put_line(&words, &out);
    buf_printf(&out, *session->path == '-' ? " ./" : " "); /* no option */
    state_put_line(&last, &out);
    state_words_fini(&words);
    if (out.failed) {
        buf_fini(&out);
        return error_memory(err);
    }
    *line = out.data;
    return 0;
}

int session_state_request(struct session *session, const char *text, char **request, struct error *err)
{
    struct state state;
    struct state_query query;
    struct buf out = {0};
    int code = resolve(session, text, &state, &query, err);
    if (code == 0)
        state_put_request(&state, &query, &out);
    if (code == 0 && out.failed)
        code = error_memory(err);
    if (code != 0)
        buf_fini(&out);
    *request = out.data;
    state_query_fini(&query);
    state_fini(&state);
    return code;
}

int session_ask_state(struct session *session, const char *text, struct answer **answer, struct error *err)
{
    struct request_text parsed = {0};
    char *request;
    *answer = NULL;
    int code = session_state_request(session, text, &request, err);
    if (code == 0)
        code = request_of_json(request, &parsed, err);
    if (code == 0)
        code = session_ask(session, &parsed.request, answer, err);
    request_text_fini(&parsed);
    free(request);
    return code;
}

/* --- answers --- */

const char *answer_program(const struct answer *answer)
{
    return answer->program;
}

const char *answer_metric(const struct answer *answer)
{
    return answer->metric;
}

const char *answer_name(const struct answer *answer)
{
    return answer->name;
}

const struct table *answer_rows(const struct answer *answer)
{
    return &answer->rows;
}

const struct table *answer_head(const struct answer *answer)
{
    return &answer->head;
}

uint64_t answer_n_left(const struct answer *answer)
{
    return answer->rows.n_more;
}

void answer_free(struct answer *answer)
{
    if (answer && answer->n_users)
        --*answer->n_users;
    if (answer)
        answer_fini(answer);
    free(answer);
}

/* --- frames --- */

int session_frame(struct session *session, enum session_tree tree, struct frame **frame, struct error *err)
{
    struct frame **kept = &session->frames[tree];
    *frame = NULL;
    int code = 0;
    if (session->foreign && !*kept)
        *kept = frame_keep(foreign_frame(session->foreign));
    if (!*kept && tree >= SESSION_BOTH)
        code = (tree == SESSION_FIELDS ? frame_open_fields : frame_open)(session->path, kept, err);
    if (!*kept && tree < SESSION_BOTH) {
        struct frame *both;
        code = session_frame(session, SESSION_BOTH, &both, err);
        if (code == 0)
            code = frame_choose_tree(both, tree == SESSION_CODE ? "code" : "data", kept, err);
        if (code == 0)
            frame_close(both);
    }
    if (code == 0)
        *frame = frame_keep(*kept);
    return code;
}

/* Whether a column of a frame, with or without callees, is that of a pair of a database. */
static bool is_column_of(const char *column, const struct column_pair *pair)
{
    static const char *const scopes[] = {"", " (inc)", " (function)"};
    const char *name = strncmp(pair->name, "CPUTIME (", 9) == 0 ? "time" : pair->name;
    size_t len = strlen(name);
    for (size_t i = 0; strncmp(column, name, len) == 0 && i < sizeof scopes / sizeof *scopes; i++)
        if (strcmp(column + len, scopes[i]) == 0)
            return true;
    return false;
}

int session_sample_cost(const struct session *session, const char *column, double *cost, struct error *err)
{
    struct columns columns = {0};
    *cost = 0;
    int code = columns_make(&session->model, &columns, err);
    for (size_t i = 0; code == 0 && i < columns.n_pairs; i++) {
        const struct column_pair *pair = &columns.pairs[i];
        double per_sample = session->model.metrics[pair->metric].per_sample;
        if (per_sample > 1 && is_column_of(column, pair))
            *cost = per_sample * v4_export_scale(pair);
    }
    columns_fini(&columns);
    return code;
}
