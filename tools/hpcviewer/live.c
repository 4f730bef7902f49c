/* SPDX-License-Identifier: BSD-3-Clause */
/* A session of programs that run, renewed while they do, on the terminal and in browsers. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/json.h"
#include "measurement/names.h"
#include "running/running.h"
#include "serve.h"
#include "session/face.h"

struct live_view {
    struct follow *follow;
    struct served *served;
    struct term_host beside; /* the way to a browser */
    unsigned number;         /* of the session */
    bool is_newer, is_on_terminal;
};

static bool has_files(const char *directory, const char *suffix)
{
    struct names_file *files = NULL;
    struct error ignored;
    size_t n = 0;
    bool has_any = names_list(directory, suffix, &files, &n, &ignored) == 0 && n > 0;
    free(files);
    return has_any;
}

/* Opens the newest database, with the time line of what it was made of, if there is one. */
static int open_session(struct follow *follow, struct session **session, struct error *err)
{
    const char *path = follow_take(follow), *recording = follow_recording(follow);
    struct recordings inputs = {0};
    struct error ignored;
    int code = session_open(&path, 1, session, err);
    if (code == 0)
        session_name_in_full(*session);
    bool has_time = code == 0 && recording && (has_files(recording, "events") || has_files(recording, "sched"));
    if (has_time && recordings_add(&inputs, recording, false, TOPOLOGY_VIEW_NUMATREE, NULL, &ignored) == 0)
        (void)session_add_recordings(*session, &inputs, &ignored);
    recordings_fini(&inputs);
    return code;
}

static struct session *renew(void *context)
{
    struct live_view *live = context;
    struct session *session = NULL;
    struct error ignored;
    live->is_newer = false;
    if (open_session(live->follow, &session, &ignored) != 0)
        return NULL;
    session_close(live->served->session);
    follow_opened(live->follow);
    live->served->session = session;
    live->number++;
    return session;
}

int live_view_begin(struct live_view **live, const char *const *words, struct served *served, struct error *err)
{
    struct live_view *made = *live = calloc(1, sizeof *made);
    if (!made)
        return error_memory(err);
    made->served = served;
    served->live = made;
    int code = follow_begin(words, served->stop_fd, &made->follow, err);
    if (code == 0)
        code = open_session(made->follow, &served->session, err);
    if (code == 0)
        follow_opened(made->follow);
    return code;
}

void live_view_end(struct live_view *live)
{
    if (live)
        follow_end(live->follow);
    free(live);
}

void live_view_step(struct live_view *live)
{
    live->is_newer |= follow_step(live->follow);
}

int live_view_wait_ms(const struct live_view *live)
{
    return follow_wait_ms(live->follow);
}

/* --- in words --- */

static void put_clock(double seconds, struct buf *out)
{
    unsigned long s = (unsigned long)seconds;
    if (s >= 3600)
        buf_printf(out, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        buf_printf(out, "%lu:%02lu", s / 60, s % 60);
}

/* How old numbers are is told from here on. */
#define OLD_S 5

static void tell(void *context, bool in_full, struct buf *out)
{
    const struct live_view *live = context;
    struct follow_state state;
    follow_state(live->follow, &state);
    buf_printf(out, "%s", state.is_over ? "has ended after " : state.is_held ? "held at " : "live ");
    put_clock(state.elapsed_s, out);
    if (!state.is_over && state.age_s >= OLD_S) {
        buf_printf(out, ", ");
        put_clock(state.age_s, out);
        buf_printf(out, " ago");
    }
    if (state.n_processes > 1)
        buf_printf(out, ", %zu processes", state.n_processes);
    if (state.n_files)
        buf_printf(out, ", %zu %sby %s files", state.n_files, state.n_processes ? "more " : "",
                   state.n_files == 1 ? "its" : "their");
    if (state.is_paused && !state.is_over)
        buf_printf(out, ", sampling paused");
    if (*state.phase && !state.is_over)
        buf_printf(out, ", phase %s", state.phase);
    if (state.trouble)
        buf_printf(out, in_full ? ", no newer numbers: %s" : ", no newer numbers (?)", state.trouble);
}

/* --- on the terminal --- */

static bool is_newer(void *context)
{
    return ((const struct live_view *)context)->is_newer;
}

static const char *directory(void *context, size_t i)
{
    return follow_directory(((const struct live_view *)context)->follow, i);
}

static void hold(void *context)
{
    struct live_view *live = context;
    struct follow_state state;
    follow_state(live->follow, &state);
    follow_hold(live->follow, !state.is_held);
}

static bool is_paused(void *context)
{
    struct follow_state state;
    follow_state(((const struct live_view *)context)->follow, &state);
    return state.is_paused;
}

static int control(void *context, const char *command, struct buf *says, struct error *err)
{
    return follow_control(((struct live_view *)context)->follow, command, says, err);
}

static int browse(void *context, const char *state, struct buf *says, struct error *err)
{
    struct live_view *live = context;
    return live->beside.browse ? live->beside.browse(live->beside.context, state, says, err)
                               : error_set(err, ERR_UNSUPPORTED, "There is no browser here.");
}

static bool poll_all(void *context, struct pollfd *fd, int *wait_ms)
{
    struct live_view *live = context;
    bool has = live->beside.poll && live->beside.poll(live->beside.context, fd, wait_ms);
    int live_ms = live_view_wait_ms(live);
    if (live_ms >= 0 && (*wait_ms < 0 || live_ms < *wait_ms))
        *wait_ms = live_ms;
    return has;
}

static void step_all(void *context)
{
    struct live_view *live = context;
    if (live->beside.step)
        live->beside.step(live->beside.context);
    live_view_step(live);
}

int live_view_show(struct live_view *live, const struct term_choice *choice, struct error *err)
{
    static const struct term_live functions = {is_newer, renew, tell, directory, hold, is_paused, control};
    const struct term_host host = {.context = live,
                                   .browse = browse,
                                   .poll = poll_all,
                                   .step = step_all,
                                   .stop_fd = live->served->stop_fd,
                                   .live = &functions};
    live->is_on_terminal = true;
    serve_beside(live->served, &live->beside);
    int code = term_run(live->served->session, choice, &host, err);
    serve_end_beside();
    return code;
}

/* --- in browsers --- */

/* Asks for what a page wants of the programs, and says in the answer what came of it. */
static void answer_control(struct live_view *live, const char *command, json_t *answer)
{
    struct buf says = {0};
    struct error err = {0};
    bool ok = strlen(command) < ARENA_PATH_MAX && control(live, command, &says, &err) == 0;
    const char *text = ok ? (says.data ? says.data : command) : err.text[0] ? err.text : "this is too long";
    json_t *said = json_string(text); /* NULL where it is no UTF-8 */
    (void)json_object_set_new(answer, "says", said ? said : json_string(ok ? command : "it is refused"));
    (void)json_object_set_new(answer, "done", json_boolean(ok));
    buf_fini(&says);
}

bool live_view_answer(struct live_view *live, const char *question, struct buf *out)
{
    json_t *asked = json_loads(question, JSON_REJECT_DUPLICATES, NULL);
    const char *report = json_string_value(json_object_get(asked, "report"));
    const char *command = json_string_value(json_object_get(asked, "control"));
    bool is_live = report && strcmp(report, "live") == 0;
    struct follow_state state;
    struct buf words = {0};
    if (!is_live || !live) {
        buf_printf(out, "%s", is_live ? "{}" : "");
        json_decref(asked);
        return is_live;
    }
    /* where a terminal shows the session, too, the terminal renews it */
    if (json_is_true(json_object_get(asked, "take")) && live->is_newer && !live->is_on_terminal)
        (void)renew(live);
    follow_state(live->follow, &state);
    tell(live, true, &words);
    json_t *said = json_string(words.data ? words.data : ""); /* NULL where a name in it is no UTF-8 */
    json_t *answer = json_pack("{s:i,s:b,s:b,s:o}", "number", (int)live->number, "over", state.is_over, "paused",
                               state.is_paused, "words", said ? said : json_string(""));
    if (answer && command)
        answer_control(live, command, answer);
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    buf_printf(out, "%s", text ? text : "{}");
    free(text);
    json_decref(answer);
    json_decref(asked);
    buf_fini(&words);
    return true;
}

bool live_answer_opening(struct served *served, const char *question, struct buf *out)
{
    json_t *asked = json_loads(question, JSON_REJECT_DUPLICATES, NULL);
    const char *report = json_string_value(json_object_get(asked, "report"));
    bool is_opening = report && strcmp(report, "opening") == 0, is_end = json_is_true(json_object_get(asked, "end"));
    json_decref(asked);
    if (!is_opening)
        return false;
    served->is_left |= !served->session && is_end;
    const char *slash = served->path ? strrchr(served->path, '/') : NULL;
    buf_printf(out, "{\"open\": %s, \"ended\": %s, \"share\": %.3f", served->session ? "true" : "false",
               served->is_left ? "true" : "false", served->all ? (double)served->done / (double)served->all : 0);
    json_put_text_at(out, "path", slash ? slash + 1 : served->path ? served->path : "");
    json_put_text_at(out, "doing", served->doing ? served->doing : "");
    buf_append(out, "}", 1);
    return true;
}
