/* SPDX-License-Identifier: BSD-3-Clause */
/* ask-packed DB REQUEST writes the answer to a request, which is JSON, as packed columns; ask-packed --json DB REQUEST
 * as JSON. Several words before the request are recordings on one axis of time, and --session FILE are those of a
 * session. ASK_BEFORE: a request that is asked before. ASK_AGAIN: how often to open, ask and close
 * instead, which prints the process's pages after each time. For tests. Exit status 1 and one sentence on
 * failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/face.h"
#include "streams/recordings.h"

static int open_session(const char *path, struct session **session, struct error *err)
{
    struct recordings recordings = {0};
    int code = recordings_read(path, &recordings, err);
    code = code ? code : session_open_recordings(&recordings, session, err);
    recordings_fini(&recordings);
    return code;
}

static int open_words(const char *const *words, size_t n, struct session **session, struct error *err)
{
    return strcmp(words[0], "--session") == 0 ? open_session(words[1], session, err)
           : n == 2                           ? session_open_any(words[0], session, err)
                                              : session_open_streams(words, n - 1, session, err);
}

/* Of the address space: what is resident also changes when the kernel makes a large page of small ones. */
static long pages_now(void)
{
    long all = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%ld", &all) != 1)
        all = 0;
    if (file)
        (void)fclose(file);
    return all;
}

/* Opens, asks and closes n_times. */
static int open_again(const char *const *words, size_t n, long n_times, struct error *err)
{
    int code = 0;
    for (long i = 0; code == 0 && i < n_times; i++) {
        struct session *session = NULL;
        struct buf out = {0};
        code = open_words(words, n, &session, err);
        code = code ? code : session_ask_packed(session, words[n - 1], &out, err);
        buf_fini(&out);
        session_close(session);
        printf("%ld\n", pages_now());
    }
    return code;
}

int main(int argc, char **argv)
{
    bool is_json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *const *words = (const char *const *)argv + 1 + is_json;
    struct session *session = NULL;
    struct error err = {0};
    struct buf out = {0};
    char *text = NULL;
    size_t n = (size_t)(argc - 1 - is_json);
    if (argc < 3 + is_json)
        return 2;
    const char *again = getenv("ASK_AGAIN");
    if (again && open_again(words, n, atol(again), &err) != 0) {
        (void)fprintf(stderr, "ask-packed: %s\n", err.text);
        return 1;
    }
    if (again)
        return 0;
    int code = open_words(words, n, &session, &err);
    const char *meanwhile = getenv("ASK_MEANWHILE"); /* a command, run between opening and asking */
    if (code == 0 && meanwhile && system(meanwhile) != 0)
        return 2;
    const char *before = getenv("ASK_BEFORE");
    if (code == 0 && before)
        code = session_ask_packed(session, before, &out, &err);
    buf_fini(&out);
    if (code == 0)
        code = is_json ? session_ask_json(session, words[n - 1], &text, &err)
                       : session_ask_packed(session, words[n - 1], &out, &err);
    if (code == 0)
        (void)fwrite(text ? text : out.data, 1, text ? strlen(text) : out.len_bytes, stdout);
    else
        (void)fprintf(stderr, "ask-packed: %s\n", err.text);
    free(text);
    buf_fini(&out);
    session_close(session);
    return code != 0;
}
