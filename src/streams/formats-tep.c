/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats by libtraceevent, in a process of its own: the side that asks, and the side that answers. */
#include "streams/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>
#include <unistd.h>

#include "base/bytes.h"
#include "streams/stream.h"

enum { ANSWER_CPU_S = 20, ANSWER_WAIT_MS = 120 * 1000 };

/* How many bytes an answer may have: types of tens of thousands of events, or texts of a batch. */
#define ANSWER_BYTES_MAX (UINT32_C(256) << 20)

enum request { REQUEST_PRINT = 1, REQUEST_CONDITION, REQUEST_MATCH };

/* Before each request and each answer. */
struct message {
    uint32_t word; /* enum request; of an answer, whether it could be given (0) */
    uint32_t n_bytes;
};

struct stream_formats {
    pid_t pid; /* 0: has failed and is gone */
    int fd;
    char *path;
    struct stream_type *types;
    size_t n_types;
    char **systems, **texts; /* [n_texts] of the formats, as they were given */
    size_t n_texts;
};

/* --- bytes through the socket --- */

/* Sends all, or false. */
static bool send_all(int fd, const void *bytes, size_t n_bytes)
{
    const char *rest = bytes;
    while (n_bytes > 0) {
        ssize_t n = send(fd, rest, n_bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        rest += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

/* Receives all, or false: the other side is gone, or silent for too long. */
static bool receive_all(int fd, void *bytes, size_t n_bytes, int wait_ms)
{
    char *at = bytes;
    while (n_bytes > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int n_ready = poll(&ready, 1, wait_ms);
        ssize_t n = n_ready > 0 ? recv(fd, at, n_bytes, 0) : n_ready;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

static bool send_message(int fd, uint32_t word, const struct buf *body)
{
    struct message head = {word, (uint32_t)body->len_bytes};
    return !body->failed && body->len_bytes <= ANSWER_BYTES_MAX && send_all(fd, &head, sizeof head) &&
           send_all(fd, body->data, body->len_bytes);
}

/* --- the side that answers --- */

/* What the process has. The library lives as long as it does. */
struct server {
    struct tep_handle *tep;
    struct tep_event_filter *filter;
    struct trace_seq text;
    bool has_condition;
};

/* Reads a text that the library wants with a NUL behind it. */
static void parse_text(struct tep_handle *tep, const struct formats_text *text,
                       int (*parse)(struct tep_handle *tep, const char *text))
{
    char *copy = text->n_bytes ? strndup(text->bytes, text->n_bytes) : NULL;
    if (copy)
        (void)parse(tep, copy);
    free(copy);
}

static struct tep_handle *read_formats(const struct formats_input *input)
{
    struct tep_handle *tep = tep_alloc();
    if (!tep)
        return NULL;
    tep_set_loglevel(TEP_LOG_NONE);
    (void)tep_load_plugins(tep);
    tep_set_file_bigendian(tep, input->is_big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
    tep_set_local_bigendian(tep, tep_is_bigendian() ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
    tep_set_long_size(tep, input->long_bytes);
    tep_set_page_size(tep, (int)input->page_bytes);
    tep_set_cpus(tep, (int)input->n_cpus);
    char *page = strndup(input->header_page.n_bytes ? input->header_page.bytes : "", input->header_page.n_bytes);
    if (page)
        (void)tep_parse_header_page(tep, page, strlen(page), input->long_bytes);
    free(page);
    for (size_t i = 0; i < input->n_events; i++) {
        const struct formats_event *event = &input->events[i];
        char *system = strndup(event->system.bytes, event->system.n_bytes);
        char *text = strndup(event->text.bytes, event->text.n_bytes);
        if (system && text)
            (void)tep_parse_event(tep, text, strlen(text), system);
        free(system);
        free(text);
    }
    parse_text(tep, &input->kernel_symbols, tep_parse_kallsyms);
    parse_text(tep, &input->printk, tep_parse_printk_formats);
    parse_text(tep, &input->tasks, tep_parse_saved_cmdlines);
    return tep;
}

static uint32_t field_flags(const struct tep_format_field *field, bool is_common)
{
    static const struct {
        unsigned long theirs;
        uint32_t ours;
    } rows[] = {
        {TEP_FIELD_IS_SIGNED, STREAM_FIELD_SIGNED},   {TEP_FIELD_IS_ARRAY, STREAM_FIELD_ARRAY},
        {TEP_FIELD_IS_STRING, STREAM_FIELD_TEXT},     {TEP_FIELD_IS_DYNAMIC, STREAM_FIELD_DYNAMIC},
        {TEP_FIELD_IS_POINTER, STREAM_FIELD_POINTER}, {TEP_FIELD_IS_RELATIVE, STREAM_FIELD_RELATIVE},
    };
    uint32_t flags = is_common ? STREAM_FIELD_COMMON : 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        flags |= field->flags & rows[i].theirs ? rows[i].ours : 0;
    return flags;
}

static uint64_t pack_fields(const struct tep_format_field *field, bool is_common, struct buf *out)
{
    uint64_t n = 0;
    for (; field; field = field->next) {
        pack_text(out, field->name ? field->name : "");
        pack_text(out, field->type ? field->type : "");
        pack_number(out, (uint32_t)field->offset);
        pack_number(out, (uint32_t)field->size);
        pack_number(out, field_flags(field, is_common));
        n++;
    }
    return n;
}

static void pack_types(struct tep_handle *tep, struct buf *out)
{
    int n = tep_get_events_count(tep);
    pack_number(out, n > 0 ? (uint64_t)n : 0);
    for (int i = 0; i < n; i++) {
        const struct tep_event *event = tep_get_event(tep, i);
        struct buf fields = {0};
        uint64_t n_fields = pack_fields(event->format.common_fields, true, &fields);
        n_fields += pack_fields(event->format.fields, false, &fields);
        pack_number(out, (uint32_t)event->id);
        buf_printf(out, "%s/%s", event->system ? event->system : "", event->name ? event->name : "");
        buf_append(out, "", 1);
        pack_number(out, n_fields);
        buf_append(out, fields.data, fields.len_bytes);
        out->failed |= fields.failed;
        buf_fini(&fields);
    }
}

/* The records of a request, as the library wants one: *at moves on. */
static struct tep_record take_record(const char **at)
{
    struct tep_record record = {0};
    record.ts = unpack_number(at);
    record.cpu = (int)unpack_number(at);
    record.size = (int)unpack_number(at);
    record.record_size = record.size;
    record.data = (void *)*at;
    *at += ((size_t)record.size + 7) / 8 * 8;
    return record;
}

static void print_as(struct server *server, struct tep_record *record, const char *what, struct buf *out)
{
    trace_seq_reset(&server->text);
    tep_print_event(server->tep, &server->text, record, "%s", what);
    if (server->text.state == TRACE_SEQ__GOOD && server->text.buffer)
        buf_append(out, server->text.buffer, strnlen(server->text.buffer, server->text.len));
    buf_append(out, "", 1);
}

static void serve_print(struct server *server, const char *body, struct buf *out)
{
    for (uint64_t n = unpack_number(&body); n > 0; n--) {
        struct tep_record record = take_record(&body);
        print_as(server, &record, TEP_PRINT_LATENCY, out);
        print_as(server, &record, TEP_PRINT_INFO, out);
    }
}

/* Sets the conditions, one a line: the library takes one for some types at a time. */
static uint32_t serve_condition(struct server *server, const char *body, struct buf *out)
{
    char reason[256] = "";
    enum tep_errno code = 0;
    if (server->filter)
        tep_filter_free(server->filter);
    server->filter = tep_filter_alloc(server->tep);
    server->has_condition = *body;
    if (!server->filter)
        return 1;
    while (*body && code >= 0) {
        size_t len = strcspn(body, "\n");
        char *line = strndup(body, len);
        if (!line)
            return 1;
        code = len ? tep_filter_add_filter_str(server->filter, line) : 0;
        free(line);
        body += len + (body[len] == '\n');
    }
    if (code >= 0)
        return 0;
    (void)tep_filter_strerror(server->filter, code, reason, sizeof reason - 1);
    pack_text(out, reason);
    server->has_condition = false;
    return 1;
}

static void serve_match(struct server *server, const char *body, struct buf *out)
{
    for (uint64_t n = unpack_number(&body); n > 0; n--) {
        struct tep_record record = take_record(&body);
        enum tep_errno code =
            server->has_condition ? tep_filter_match(server->filter, &record) : TEP_ERRNO__FILTER_MATCH;
        char is_hidden = code != TEP_ERRNO__FILTER_MATCH;
        buf_append(out, &is_hidden, 1);
    }
}

/* Each answer may take so much more of the processor's time. */
static void limit_time(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return;
    rlim_t until = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + ANSWER_CPU_S;
    struct rlimit limit = {until, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_CPU, &limit);
}

static void serve(const struct formats_input *input, int fd)
{
    struct server server = {.tep = read_formats(input)};
    struct buf out = {0}, body = {0};
    struct message head;
    trace_seq_init(&server.text);
    if (!server.tep)
        return;
    pack_types(server.tep, &out);
    uint32_t word = 0;
    while (send_message(fd, word, &out) && receive_all(fd, &head, sizeof head, -1)) {
        limit_time();
        out.len_bytes = body.len_bytes = word = 0;
        char *room = NULL;
        if (vec_reserve(&body.data, &body.capacity, head.n_bytes + 1, 1))
            room = body.data;
        if (!room || !receive_all(fd, room, head.n_bytes, -1))
            return;
        room[head.n_bytes] = 0;
        if (head.word == REQUEST_PRINT)
            serve_print(&server, room, &out);
        else if (head.word == REQUEST_CONDITION)
            word = serve_condition(&server, room, &out);
        else
            serve_match(&server, room, &out);
    }
}

/* The process: without core dump, without output on the terminal, and without the files that others have open. */
static _Noreturn void run_server(const struct formats_input *input, int fd)
{
    static const struct rlimit no_core = {0, 0};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), own_fd = fd;
    if (null_fd >= 0)
        for (int i = 0; i <= STDERR_FILENO; i++)
            (void)dup2(null_fd, i);
    if (fd > STDERR_FILENO + 1)
        own_fd = dup2(fd, STDERR_FILENO + 1);
    (void)syscall(SYS_close_range, (unsigned)own_fd + 1, ~0u, 0u);
    limit_time();
    serve(input, own_fd);
    for (;;)
        (void)raise(SIGKILL); /* not exit(): the exit handlers are the parent's */
}

/* --- the side that asks --- */

static void end_server(struct stream_formats *formats)
{
    if (formats->pid <= 0)
        return;
    (void)close(formats->fd);
    (void)kill(formats->pid, SIGKILL);
    while (waitpid(formats->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    formats->pid = 0;
}

static int fail(struct stream_formats *formats, struct error *err)
{
    end_server(formats);
    return error_set(err, ERR_FORMAT, "%.600s: libtraceevent fails on the formats of its events", formats->path);
}

/* The next answer: the server is ended when it does not come. */
static int take_answer(struct stream_formats *formats, uint32_t *word, struct buf *body, struct error *err)
{
    struct message head;
    if (!receive_all(formats->fd, &head, sizeof head, ANSWER_WAIT_MS) || head.n_bytes > ANSWER_BYTES_MAX)
        return fail(formats, err);
    body->len_bytes = 0;
    if (!vec_reserve(&body->data, &body->capacity, head.n_bytes + 1, 1)) {
        end_server(formats);
        return error_memory(err);
    }
    if (!receive_all(formats->fd, body->data, head.n_bytes, ANSWER_WAIT_MS))
        return fail(formats, err);
    body->len_bytes = head.n_bytes;
    body->data[head.n_bytes] = 0;
    *word = head.word;
    return 0;
}

static int ask(struct stream_formats *formats, enum request request, const struct buf *body, uint32_t *word,
               struct buf *answer, struct error *err)
{
    if (body->failed)
        return error_memory(err);
    if (formats->pid <= 0 || !send_message(formats->fd, request, body))
        return fail(formats, err);
    return take_answer(formats, word, answer, err);
}

/* A cursor in an answer: what comes from that process is not believed. */
struct answer {
    const char *at, *end;
    bool is_bad;
};

static uint64_t take_number(struct answer *in)
{
    if (in->is_bad || (size_t)(in->end - in->at) < sizeof(uint64_t)) {
        in->is_bad = true;
        return 0;
    }
    return unpack_number(&in->at);
}

static const char *take_text(struct answer *in)
{
    if (in->is_bad || !memchr(in->at, 0, (size_t)(in->end - in->at))) {
        in->is_bad = true;
        return "";
    }
    return unpack_text(&in->at);
}

static int compare_types(const void *a, const void *b)
{
    const struct stream_type *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool take_type(struct answer *in, struct stream_type *type)
{
    type->id = (int32_t)take_number(in);
    type->name = strdup(take_text(in));
    uint64_t n_fields = take_number(in);
    bool is_done = type->name;
    for (uint64_t i = 0; i < n_fields && is_done && !in->is_bad; i++) {
        struct stream_field field = {0};
        field.name = (char *)take_text(in);
        field.type = (char *)take_text(in);
        field.offset = (uint32_t)take_number(in);
        field.n_bytes = (uint32_t)take_number(in);
        field.flags = (uint32_t)take_number(in);
        is_done = stream_add_field(type, &field);
    }
    return is_done;
}

static int take_types(struct stream_formats *formats, struct buf *body, struct error *err)
{
    enum { TYPE_BYTES_MIN = 18 };
    struct answer in = {body->data, body->data + body->len_bytes, false};
    uint64_t n = take_number(&in);
    if (n > body->len_bytes / TYPE_BYTES_MIN)
        return fail(formats, err);
    formats->types = calloc(n + 1, sizeof *formats->types);
    bool is_done = formats->types;
    for (uint64_t i = 0; i < n && is_done && !in.is_bad; i++)
        is_done = take_type(&in, &formats->types[formats->n_types++]);
    if (!is_done)
        return error_memory(err);
    if (in.is_bad)
        return fail(formats, err);
    if (n)
        qsort(formats->types, n, sizeof *formats->types, compare_types);
    return 0;
}

/* Whoever writes the recording in another form needs them again. False when out of memory. */
static bool keep_texts(struct stream_formats *formats, const struct formats_input *input)
{
    formats->systems = calloc(input->n_events + 1, sizeof *formats->systems);
    formats->texts = calloc(input->n_events + 1, sizeof *formats->texts);
    bool is_done = formats->systems && formats->texts;
    for (size_t i = 0; i < input->n_events && is_done; i++, formats->n_texts++) {
        const struct formats_event *event = &input->events[i];
        formats->systems[i] = strndup(event->system.bytes, event->system.n_bytes);
        formats->texts[i] = strndup(event->text.bytes, event->text.n_bytes);
        is_done = formats->systems[i] && formats->texts[i];
    }
    return is_done;
}

const char *formats_text_of(const struct stream_formats *formats, const char *name)
{
    static const char begins[] = "name: ";
    const char *slash = strchr(name, '/');
    for (size_t i = 0; slash && i < formats->n_texts; i++) {
        const char *system = formats->systems[i], *text = formats->texts[i];
        size_t n_system = (size_t)(slash - name), n_name = strlen(slash + 1);
        if (strlen(system) == n_system && memcmp(system, name, n_system) == 0 &&
            strncmp(text, begins, sizeof begins - 1) == 0 &&
            strncmp(text + sizeof begins - 1, slash + 1, n_name) == 0 && text[sizeof begins - 1 + n_name] == '\n')
            return text;
    }
    return NULL;
}

int formats_open(const struct formats_input *input, struct stream_formats **formats, struct error *err)
{
    struct stream_formats *made = calloc(1, sizeof *made);
    struct buf body = {0};
    int fds[2] = {-1, -1}, code = made && (made->path = strdup(input->path)) ? 0 : error_memory(err);
    uint32_t word;
    if (code == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        code = error_set(err, ERR_IO, "%.600s: cannot make a socket: %s", input->path, strerror(errno));
    if (code == 0) {
        made->fd = fds[0];
        made->pid = fork();
        if (made->pid == 0)
            run_server(input, fds[1]);
        if (made->pid < 0) {
            code = error_set(err, ERR_IO, "%.600s: cannot start a process: %s", input->path, strerror(errno));
            (void)close(fds[0]);
        }
        (void)close(fds[1]);
    }
    if (code == 0)
        code = take_answer(made, &word, &body, err);
    if (code == 0)
        code = take_types(made, &body, err);
    if (code == 0 && !keep_texts(made, input))
        code = error_memory(err);
    buf_fini(&body);
    if (code != 0)
        formats_close(made);
    else
        *formats = made;
    return code;
}

void formats_close(struct stream_formats *formats)
{
    if (!formats)
        return;
    end_server(formats);
    for (size_t i = 0; i < formats->n_types; i++)
        stream_type_fini(&formats->types[i]);
    for (size_t i = 0; formats->systems && formats->texts && i < formats->n_texts; i++) {
        free(formats->systems[i]);
        free(formats->texts[i]);
    }
    free(formats->systems);
    free(formats->texts);
    free(formats->types);
    free(formats->path);
    free(formats);
}

struct stream_type *formats_take_types(struct stream_formats *formats, size_t *n)
{
    struct stream_type *types = formats->types;
    *n = formats->n_types;
    formats->types = NULL;
    formats->n_types = 0;
    return types;
}

static void pack_records(const struct formats_record *records, size_t n, struct buf *out)
{
    static const char zeros[8];
    pack_number(out, n);
    for (size_t i = 0; i < n; i++) {
        pack_number(out, (uint64_t)records[i].t_ns);
        pack_number(out, records[i].cpu);
        pack_number(out, records[i].n_bytes);
        buf_append(out, records[i].bytes, records[i].n_bytes);
        buf_append(out, zeros, -records[i].n_bytes % 8);
    }
}

int formats_print(struct stream_formats *formats, const struct formats_record *records, size_t n, struct buf *out,
                  struct error *err)
{
    struct buf body = {0}, answer = {0};
    uint32_t word;
    pack_records(records, n, &body);
    int code = ask(formats, REQUEST_PRINT, &body, &word, &answer, err);
    struct answer in = {answer.data, answer.data + answer.len_bytes, false};
    for (size_t i = 0; i < 2 * n && code == 0; i++)
        (void)take_text(&in);
    if (code == 0 && in.is_bad)
        code = fail(formats, err);
    if (code == 0)
        buf_append(out, answer.data, answer.len_bytes);
    if (code == 0 && out->failed)
        code = error_memory(err);
    buf_fini(&body);
    buf_fini(&answer);
    return code;
}

int formats_set_condition(struct stream_formats *formats, const char *condition, struct error *err)
{
    struct buf body = {0}, answer = {0};
    uint32_t word = 0;
    pack_text(&body, condition);
    int code = ask(formats, REQUEST_CONDITION, &body, &word, &answer, err);
    if (code == 0 && word != 0)
        code = error_set(err, ERR_USAGE, "%.200s: cannot be understood as a condition on fields: %.200s", condition,
                         answer.len_bytes ? answer.data : "out of memory");
    buf_fini(&body);
    buf_fini(&answer);
    return code;
}

int formats_match(struct stream_formats *formats, const struct formats_record *records, size_t n, bool *is_hidden,
                  struct error *err)
{
    struct buf body = {0}, answer = {0};
    uint32_t word;
    pack_records(records, n, &body);
    int code = ask(formats, REQUEST_MATCH, &body, &word, &answer, err);
    if (code == 0 && answer.len_bytes != n)
        code = fail(formats, err);
    for (size_t i = 0; i < n && code == 0; i++)
        is_hidden[i] = answer.data[i];
    buf_fini(&body);
    buf_fini(&answer);
    return code;
}
