/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions on the command line: their streams become operands, and what they say of them options, as far as the report
 * has these and nothing else was given. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "hpcquery.h"
#include "streams/recordings.h"

/* Which options choices of a session stand for. */
static const enum ask choice_asks[RECORDING_CHOICES] = {[RECORDING_TASK] = ASK_TASK,
                                                        [RECORDING_CPU] = ASK_CPU,
                                                        [RECORDING_EVENT] = ASK_EVENT,
                                                        [RECORDING_FILTER] = ASK_FILTER};

/* Sets an option of the report unless it has none, or something was given. */
static void set_option(struct settings *settings, uint64_t uses, enum ask what, const char *value)
{
    if (!value || !(uses >> what & 1) || settings_ask(settings, what))
        return;
    settings->given |= UINT64_C(1) << what;
    settings->values[what] = value;
}

/* Nanoseconds as options take them: texts [32] */
static const char *put_ns(char *text, bool is_set, int64_t ns)
{
    (void)snprintf(text, 32, "%" PRId64 "ns", ns);
    return is_set ? text : NULL;
}

static bool add_stream(struct kept_session *session, size_t i)
{
    static const char *const view_names[] = {"default", "numatree"};
    struct recording *stream = &session->session.streams[i];
    int operand = (int)i + 1;
    struct settings *own = &session->settings;
    bool ok = true;
    session->words[operand] = stream->file;
    if (stream->has_couplebreak)
        ok = streams_take_option(own, ASK_COUPLEBREAK, NULL, operand);
    if (ok && stream->topology)
        ok = streams_take_option(own, ASK_TOPOLOGY, stream->topology, operand) &&
             streams_take_option(own, ASK_VIEW, view_names[stream->view], operand);
    if (ok && stream->buffer)
        ok = streams_take_option(own, ASK_BUFFER, stream->buffer, operand);
    if (ok && stream->has_offset)
        ok = streams_take_option(own, ASK_OFFSET, put_ns(session->texts[2 + i], true, stream->offset_ns), operand);
    return ok;
}

int kept_open(const struct settings *settings, uint64_t uses, struct kept_session *session)
{
    struct error err = {0};
    const char *path = settings->values[ASK_SESSION];
    struct recordings *read = &session->session;
    *session = (struct kept_session){.settings = *settings};
    session->settings.stream_options = NULL;
    session->settings.n_stream_options = session->settings.cap_stream_options = 0;
    if (settings->n_stream_options)
        return tool_usage("hpcquery", "a session has the options of its streams");
    if (recordings_read(path, read, &err) != 0)
        return tool_error("hpcquery", "%s", err.text);
    if (!read->n_streams)
        return tool_error("hpcquery", "%s: the session has no streams", path);
    for (const char *note = read->notes; note && *note; note += strcspn(note, "\n"), note += *note == '\n')
        (void)tool_error("hpcquery", "%s: %.*s", path, (int)strcspn(note, "\n"), note);
    session->n_words = read->n_streams + 1;
    session->words = calloc(session->n_words, sizeof *session->words);
    session->texts = calloc(2 + read->n_streams, sizeof *session->texts);
    bool ok = session->words && session->texts;
    for (size_t i = 0; ok && i < read->n_streams; i++)
        ok = add_stream(session, i);
    if (!ok)
        return tool_error("hpcquery", "out of memory");
    for (size_t i = 0; i < RECORDING_CHOICES; i++)
        set_option(&session->settings, uses, choice_asks[i], read->choices[i]);
    set_option(&session->settings, uses, ASK_FROM, put_ns(session->texts[0], read->has_from, read->from_ns));
    set_option(&session->settings, uses, ASK_TO, put_ns(session->texts[1], read->has_to, read->to_ns));
    return 0;
}

void kept_close(struct kept_session *session)
{
    free(session->settings.stream_options);
    free(session->words);
    free(session->texts);
    recordings_fini(&session->session);
}

int kept_apply(const struct kept_session *session, const struct opened_streams *opened)
{
    struct error err = {0};
    int code = 0;
    for (size_t i = 0; session && !code && i < opened->n && i < session->session.n_streams; i++)
        code = recording_apply(&session->session.streams[i], opened->all[i].stream, &err);
    return code ? tool_error("hpcquery", "%s", err.text) : 0;
}

static int add_opened(const struct kept_session *before, const struct opened_streams *opened, size_t i,
                      struct recordings *session, struct error *err)
{
    const struct axis_stream *axis = &opened->all[i];
    const struct stream_view *view = stream_views_find(&opened->views, (uint32_t)i);
    int code = recordings_add(session, axis->stream->path, axis->stream->couplebreak_on,
                              view ? view->view : TOPOLOGY_VIEW_DEFAULT, view ? view->path : NULL, err);
    if (code)
        return code;
    struct recording *stream = &session->streams[i];
    stream->has_offset = axis->is_given;
    stream->offset_ns = axis->given_ns;
    if (opened->buffers[i] && !(stream->buffer = strdup(opened->buffers[i])))
        return error_memory(err);
    return before && i < before->session.n_streams ? recording_copy_lists(&before->session.streams[i], stream, err) : 0;
}

int kept_save(const struct settings *settings, const struct kept_session *before, const struct opened_streams *opened,
              const struct schedule_window *window)
{
    struct recordings session = {0};
    struct error err = {0};
    int code = before ? recordings_copy_view(&before->session, &session, &err) : 0;
    for (size_t i = 0; !code && i < opened->n; i++)
        code = add_opened(before, opened, i, &session, &err);
    for (size_t i = 0; !code && i < RECORDING_CHOICES; i++) {
        const char *chosen = settings->values[choice_asks[i]];
        if (!chosen)
            continue;
        free(session.choices[i]);
        session.choices[i] = strdup(chosen);
        code = session.choices[i] ? 0 : error_memory(&err);
    }
    if (settings->values[ASK_FROM]) {
        session.has_from = true;
        session.from_ns = window->from_ns;
    }
    if (settings->values[ASK_TO]) {
        session.has_to = true;
        session.to_ns = window->to_ns;
    }
    code = code ? code : recordings_write(settings->values[ASK_SAVE_SESSION], &session, &err);
    recordings_fini(&session);
    return code ? tool_error("hpcquery", "%s", err.text) : 0;
}
