/* SPDX-License-Identifier: BSD-3-Clause */
/* The server, on libmicrohttpd: who may ask, the five things that can be asked, and the pages that are open. */
#include "face/serve/http.h"

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

#define SECRET_BYTES 16
#define SECRET_DIGITS 32
#define SECRETS_MAX 64
#define QUESTION_BYTES_MAX (64 << 10)
#define CONNECTIONS_MAX 500
#define STRANGER_S 20  /* without a byte from who has shown no secret yet ... */
#define KNOWN_S 300    /* ... and from who has */
#define LINGER_MS 5000 /* a page that is loaded anew is back before */
#define DEFLATE_FROM 1000
#define DEFLATE_LEVEL 1 /* most ways are short */

/* Random texts that were given out, the oldest overwritten first. */
struct secrets {
    char texts[SECRETS_MAX][SECRET_DIGITS]; /* all 0: none */
    size_t n_made;
};

/* A page that is open: the connection that it holds. */
struct alive {
    struct http *http;
    struct MHD_Connection *connection;
    struct alive *next, **link;
    bool is_suspended, has_ended;
};

struct http {
    struct http_home home;
    struct MHD_Daemon *daemon;
    char *policy;
    int epoll_fd; /* the daemon's own, and the connections that open pages hold */
    unsigned port;
    struct secrets tokens, sessions;
    struct alive *alive;
    size_t n_opened;
    uint64_t left_ms; /* when the last page was closed, or somebody known last asked after that; 0: one is open */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- secrets --- */

static bool secrets_make(struct secrets *secrets, char text[SECRET_DIGITS + 1])
{
    unsigned char bytes[SECRET_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < SECRET_DIGITS; i++)
        text[i] = "0123456789abcdef"[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
    text[SECRET_DIGITS] = 0;
    memcpy(secrets->texts[secrets->n_made++ % SECRETS_MAX], text, SECRET_DIGITS);
    return true;
}

/* The text that is the same, NULL when there is none. It takes as long for every text of this length. */
static char *secrets_find(struct secrets *secrets, const char *text)
{
    char *found = NULL;
    if (!text || strlen(text) != SECRET_DIGITS)
        return NULL;
    for (size_t i = 0; i < SECRETS_MAX; i++) {
        unsigned differs = 0;
        for (size_t k = 0; k < SECRET_DIGITS; k++)
            differs |= (unsigned char)(secrets->texts[i][k] ^ text[k]);
        found = differs ? found : secrets->texts[i];
    }
    return found;
}

/* --- who asks --- */

/* What can be asked for, how, whether by pages with a secret alone, and the longest body. */
enum { PAGE, OPEN, QUESTION, TOKEN, ALIVE };
static const struct route {
    const char *path, *method;
    bool needs_secret;
    size_t body_bytes_max;
} routes[] = {
    [PAGE] = {"/", "GET", false, 0},
    [OPEN] = {"/open", "POST", false, SECRET_DIGITS},
    [QUESTION] = {"/ask", "POST", true, QUESTION_BYTES_MAX},
    [TOKEN] = {"/token", "POST", true, 0},
    [ALIVE] = {"/alive", "GET", true, 0},
};

/* One request. */
struct exchange {
    const struct route *route;
    struct buf body;
    bool is_too_long;
};

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Whether a header, behind a beginning, is one of the names that the server has in a browser. */
static bool is_own_name(const struct http *http, const char *text, const char *beginning)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    char own[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(own, sizeof own, "%s%s:%u", beginning, names[i], http->port);
        if (strcasecmp(text, own) == 0)
            return true;
    }
    return false;
}

/* Counts a header that there must not be twice: servers and browsers could take another one. */
struct header_count {
    const char *name;
    unsigned n;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_count *count = context;
    (void)kind;
    (void)value;
    count->n += strcasecmp(name, count->name) == 0;
    return MHD_YES;
}

static bool has_one(struct MHD_Connection *connection, const char *name)
{
    struct header_count count = {.name = name};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &count);
    return count.n == 1;
}

/* What comes after "Bearer ". NULL: nothing. */
static const char *bearer(struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *text = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    bool is_there = text && strncasecmp(text, scheme, sizeof scheme - 1) == 0;
    return is_there ? text + sizeof scheme - 1 : NULL;
}

/* A refusal: the status, and a sentence for who asked. */
struct refusal {
    unsigned status;
    const char *sentence;
    const char *header, *value; /* one more header; NULL: none */
};

/* The route of a request whose headers have come, and whether it is refused. */
static const struct route *find_route(struct http *http, struct MHD_Connection *connection, const char *path,
                                      const char *method, struct refusal *refusal)
{
    const char *host = header(connection, MHD_HTTP_HEADER_HOST), *origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    const struct route *route = routes, *end = routes + sizeof routes / sizeof *routes;
    if (!host || !has_one(connection, MHD_HTTP_HEADER_HOST) || !is_own_name(http, host, ""))
        *refusal = (struct refusal){.status = MHD_HTTP_FORBIDDEN,
                                    .sentence = "hpcviewer answers only as 127.0.0.1 or localhost with its own port; "
                                                "a tunnel must have the same port at both ends"};
    else if (origin && (!has_one(connection, MHD_HTTP_HEADER_ORIGIN) || !is_own_name(http, origin, "http://")))
        *refusal = (struct refusal){.status = MHD_HTTP_FORBIDDEN, .sentence = "hpcviewer answers only to its own page"};
    if (refusal->status)
        return NULL;
    while (route < end && strcmp(route->path, path) != 0)
        route++;
    if (route == end)
        *refusal = (struct refusal){.status = MHD_HTTP_NOT_FOUND, .sentence = "there is nothing of this name"};
    else if (strcmp(route->method, method) != 0)
        *refusal = (struct refusal){MHD_HTTP_METHOD_NOT_ALLOWED, "this is asked for in another way",
                                    MHD_HTTP_HEADER_ALLOW, route->method};
    return refusal->status ? NULL : route;
}

static const struct refusal too_long = {.status = MHD_HTTP_CONTENT_TOO_LARGE,
                                        .sentence = "this is too long for what it is"};

/* Whether a request may go on, before its body comes; *refusal: why not. */
static bool is_admitted(struct http *http, struct MHD_Connection *connection, const struct route *route,
                        struct refusal *refusal)
{
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (route->needs_secret && !secrets_find(&http->sessions, bearer(connection)))
        *refusal =
            (struct refusal){MHD_HTTP_UNAUTHORIZED, "this page is not known: open an address that hpcviewer prints",
                             MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer"};
    else if (length && strtoull(length, NULL, 10) > route->body_bytes_max)
        *refusal = too_long;
    if (refusal->status)
        return false;
    if (route->needs_secret) {
        (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)KNOWN_S);
        http->left_ms = http->left_ms ? now_ms() : 0;
    }
    return true;
}

/* --- answers --- */

/* Whether who asks takes zlib's format, which HTTP calls deflate. */
static bool takes_deflate(struct MHD_Connection *connection)
{
    const char *text = header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    const char *at = HAVE_ZLIB && text ? strcasestr(text, "deflate") : NULL;
    return at && (at[7] == 0 || at[7] == ',' || at[7] == ' ');
}

/* Deflates a text where it becomes shorter by that. */
static bool deflate_text(struct buf *text)
{
    bool is_shorter = false;
#if HAVE_ZLIB
    uLongf n = compressBound(text->len_bytes);
    char *packed = malloc(n);
    is_shorter = packed &&
                 compress2((Bytef *)packed, &n, (const Bytef *)text->data, text->len_bytes, DEFLATE_LEVEL) == Z_OK &&
                 n < text->len_bytes;
    if (is_shorter) {
        buf_fini(text);
        *text = (struct buf){.data = packed, .len_bytes = n, .capacity = n};
    } else {
        free(packed);
    }
#else
    (void)text;
#endif
    return is_shorter;
}

/* What every answer says to browsers: keep nothing, guess nothing, and show it nowhere else. */
static bool put_headers(struct MHD_Response *response, const char *type, const char *policy)
{
    const char *const rows[][2] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Content-Security-Policy", policy ? policy : "default-src 'none'; frame-ancestors 'none'; sandbox"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok = ok && MHD_add_response_header(response, rows[i][0], rows[i][1]) == MHD_YES;
    return ok;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response, bool ok)
{
    enum MHD_Result result = ok ? MHD_queue_response(connection, status, response) : MHD_NO;
    if (response)
        MHD_destroy_response(response);
    return result;
}

static const char plain[] = "text/plain; charset=utf-8", packed[] = "application/octet-stream";

/* Answers with a text, which is taken. */
static enum MHD_Result answer(struct MHD_Connection *connection, struct buf *text, const char *type, const char *policy)
{
    bool is_deflated = text->len_bytes >= DEFLATE_FROM && takes_deflate(connection) && deflate_text(text);
    struct MHD_Response *response =
        text->failed ? NULL : MHD_create_response_from_buffer(text->len_bytes, text->data, MHD_RESPMEM_MUST_FREE);
    bool ok = response && put_headers(response, type, policy);
    if (is_deflated)
        ok = ok && MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "deflate") == MHD_YES;
    if (response)
        *text = (struct buf){0};
    else
        buf_fini(text);
    return queue(connection, MHD_HTTP_OK, response, ok);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const struct refusal *refusal)
{
    void *sentence = (void *)(uintptr_t)refusal->sentence;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(refusal->sentence), sentence, MHD_RESPMEM_MUST_COPY);
    bool ok = response && put_headers(response, plain, NULL);
    if (refusal->header)
        ok = ok && MHD_add_response_header(response, refusal->header, refusal->value) == MHD_YES;
    return queue(connection, refusal->status, response, ok);
}

static enum MHD_Result answer_page(const struct http *http, struct MHD_Connection *connection)
{
    struct buf text = {0};
    buf_append(&text, http->home.page, strlen(http->home.page));
    return answer(connection, &text, "text/html; charset=utf-8", http->policy);
}

static enum MHD_Result answer_secret(struct MHD_Connection *connection, struct secrets *secrets)
{
    static const struct refusal none = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR,
                                        .sentence = "the system gives no random numbers"};
    char secret[SECRET_DIGITS + 1];
    struct buf text = {0};
    if (!secrets_make(secrets, secret))
        return refuse(connection, &none);
    buf_append(&text, secret, SECRET_DIGITS);
    return answer(connection, &text, plain, NULL);
}

/* A secret for a token, which is worth nothing from now on. */
static enum MHD_Result answer_open(struct http *http, struct MHD_Connection *connection, const struct buf *body)
{
    static const struct refusal unknown = {.status = MHD_HTTP_FORBIDDEN,
                                           .sentence = "this address was used already, or is of another hpcviewer: "
                                                       "press Enter where hpcviewer runs, and take the address that "
                                                       "it prints"};
    char *token = secrets_find(&http->tokens, body->data);
    if (!token)
        return refuse(connection, &unknown);
    memset(token, 0, SECRET_DIGITS);
    http->n_opened++;
    http->left_ms = http->left_ms ? now_ms() : 0;
    return answer_secret(connection, &http->sessions);
}

static unsigned status_of(int code)
{
    return code == ERR_USAGE || code == ERR_FORMAT ? MHD_HTTP_BAD_REQUEST
           : code == ERR_NOT_FOUND || code == ERR_UNSUPPORTED
               ? MHD_HTTP_OK /* a page asks what there is: no fault of it, of which its console should tell */
               : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static enum MHD_Result answer_ask(struct http *http, struct MHD_Connection *connection, const struct buf *question)
{
    struct buf out = {0};
    struct error err = {0};
    int code = question->len_bytes == 0 || memchr(question->data, 0, question->len_bytes)
                   ? error_set(&err, ERR_USAGE, "a question is a text of JSON")
                   : http->home.ask(http->home.context, question->data, &out, &err);
    if (code == 0 && out.failed)
        code = error_memory(&err);
    if (code == 0)
        return answer(connection, &out, packed, NULL);
    buf_fini(&out);
    return refuse(connection, &(struct refusal){.status = status_of(code), .sentence = err.text});
}

/* --- pages that are open --- */

/* The response that never ends: a byte, so that the page sees it begin, and then the connection waits for its end.
 * Whether the other side goes is only seen by our own epoll, as the library does not look at a connection that waits.
 */
static ssize_t alive_read(void *context, uint64_t at, char *bytes, size_t n_bytes)
{
    struct alive *alive = context;
    const union MHD_ConnectionInfo *info;
    if (alive->has_ended || n_bytes == 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (at == 0) {
        *bytes = '\n';
        return 1;
    }
    info = MHD_get_connection_info(alive->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = alive};
    if (!info || epoll_ctl(alive->http->epoll_fd, EPOLL_CTL_ADD, info->connect_fd, &event) != 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    MHD_suspend_connection(alive->connection);
    alive->is_suspended = true;
    return 0;
}

static void alive_free(void *context)
{
    struct alive *alive = context;
    *alive->link = alive->next;
    if (alive->next)
        alive->next->link = alive->link;
    if (!alive->http->alive)
        alive->http->left_ms = now_ms();
    free(alive);
}

static void alive_end(struct alive *alive)
{
    alive->has_ended = true;
    if (alive->is_suspended)
        MHD_resume_connection(alive->connection);
    alive->is_suspended = false;
}

static enum MHD_Result answer_alive(struct http *http, struct MHD_Connection *connection)
{
    struct alive *alive = calloc(1, sizeof *alive);
    struct MHD_Response *response =
        alive ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64, alive_read, alive, alive_free) : NULL;
    if (!response) {
        free(alive);
        return MHD_NO;
    }
    *alive = (struct alive){.http = http, .connection = connection, .next = http->alive, .link = &http->alive};
    if (alive->next)
        alive->next->link = &alive->next;
    http->alive = alive;
    http->left_ms = 0;
    return queue(connection, MHD_HTTP_OK, response, put_headers(response, plain, NULL));
}

/* --- requests --- */

static enum MHD_Result take_end(struct http *http, struct MHD_Connection *connection, struct exchange *exchange)
{
    if (exchange->body.failed)
        return MHD_NO;
    if (exchange->is_too_long)
        return refuse(connection, &too_long);
    switch (exchange->route - routes) {
    case PAGE:
        return answer_page(http, connection);
    case OPEN:
        return answer_open(http, connection, &exchange->body);
    case QUESTION:
        return answer_ask(http, connection, &exchange->body);
    case TOKEN:
        return answer_secret(connection, &http->tokens);
    default:
        return answer_alive(http, connection);
    }
}

/* Called when the headers of a request have come, for each piece of its body, and at its end. */
static enum MHD_Result take_request(void *context, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *piece, size_t *n_piece,
                                    void **state)
{
    struct http *http = context;
    struct exchange *exchange = *state;
    struct refusal refusal = {0};
    (void)version;
    if (!exchange) {
        const struct route *route = find_route(http, connection, path, method, &refusal);
        if (!route || !is_admitted(http, connection, route, &refusal))
            return refuse(connection, &refusal);
        *state = exchange = calloc(1, sizeof *exchange);
        if (exchange)
            exchange->route = route;
        return exchange ? MHD_YES : MHD_NO;
    }
    if (*n_piece == 0)
        return take_end(http, connection, exchange);
    exchange->is_too_long |= *n_piece > exchange->route->body_bytes_max - exchange->body.len_bytes;
    if (!exchange->is_too_long)
        buf_append(&exchange->body, piece, *n_piece);
    *n_piece = 0;
    return MHD_YES;
}

static void end_request(void *context, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode how)
{
    struct exchange *exchange = *state;
    (void)context;
    (void)connection;
    (void)how;
    if (exchange)
        buf_fini(&exchange->body);
    free(exchange);
    *state = NULL;
}

/* --- the server --- */

/* The policy that the page has in itself, and what is only true of a served one. */
static char *policy_of(const char *page)
{
    static const char start[] = "http-equiv=\"Content-Security-Policy\" content=\"";
    const char *own = strstr(page, start);
    struct buf text = {0};
    own = own ? own + sizeof start - 1 : "default-src 'none'\"";
    buf_append(&text, own, strcspn(own, "\""));
    buf_printf(&text, "%s; frame-ancestors 'none'",
               strstr(text.data ? text.data : "", "connect-src") ? "" : "; connect-src 'self'");
    if (text.failed)
        buf_fini(&text);
    return text.data;
}

static int listen_at(unsigned port, unsigned *found, int *fd, struct error *err)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof address;
    int one = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = made >= 0 && setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
              bind(made, (struct sockaddr *)&address, n) == 0 && listen(made, SOMAXCONN) == 0 &&
              getsockname(made, (struct sockaddr *)&address, &n) == 0;
    int number = errno;
    *fd = ok ? made : -1;
    *found = ntohs(address.sin_port);
    if (ok)
        return 0;
    if (made >= 0)
        (void)close(made);
    if (port == 0)
        return error_set(err, ERR_IO, "127.0.0.1 gives no port: %s", strerror(number));
    return error_set(err, ERR_IO, "port %u of 127.0.0.1 cannot be taken: %s; leave out --port for one that is free",
                     port, strerror(number));
}

/* The library says what went wrong with a connection, which is nobody's concern here. */
__attribute__((format(printf, 2, 0))) static void say_nothing(void *context, const char *format, va_list arguments)
{
    (void)context;
    (void)format;
    (void)arguments;
}

/* Paths are as they come: %00 would end a text. */
static size_t unescape_nothing(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

static int begin(struct http *http, int listen_fd, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN};
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, take_request,
                         http, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
                         unescape_nothing, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_NOTIFY_COMPLETED,
                         end_request, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STRANGER_S, MHD_OPTION_END);
    if (!http->daemon)
        return error_set(err, ERR_IO, "libmicrohttpd cannot begin to serve");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!info || http->epoll_fd < 0 || epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0)
        return error_set(err, ERR_IO, "no descriptors to wait for: %s", strerror(errno));
    return 0;
}

int http_open(const struct http_home *home, struct http **http, struct error *err)
{
    int listen_fd = -1;
    struct http *made = calloc(1, sizeof *made);
    *http = NULL;
    if (!made)
        return error_memory(err);
    made->home = *home;
    made->epoll_fd = -1;
    made->policy = policy_of(home->page);
    int code = made->policy ? listen_at(home->port, &made->port, &listen_fd, err) : error_memory(err);
    if (code == 0)
        code = begin(made, listen_fd, err);
    if (code == 0)
        *http = made;
    else
        http_close(made);
    return code;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    for (struct alive *alive = http->alive; alive; alive = alive->next)
        alive_end(alive);
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    if (http->epoll_fd >= 0)
        (void)close(http->epoll_fd);
    free(http->policy);
    explicit_bzero(http, sizeof *http);
    free(http);
}

unsigned http_port(const struct http *http)
{
    return http->port;
}

int http_put_address(struct http *http, struct buf *out, struct error *err)
{
    char token[SECRET_DIGITS + 1];
    if (!secrets_make(&http->tokens, token))
        return error_set(err, ERR_IO, "the system gives no random numbers: %s", strerror(errno));
    buf_printf(out, "http://127.0.0.1:%u/#token=%s", http->port, token);
    return 0;
}

int http_fd(const struct http *http)
{
    return http->epoll_fd;
}

int http_wait_ms(const struct http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    int wait_ms = MHD_get_timeout(http->daemon, &timeout) == MHD_YES ? timeout < 60000 ? (int)timeout : 60000 : -1;
    if (http->left_ms == 0)
        return wait_ms;
    uint64_t gone_ms = now_ms() - http->left_ms;
    int rest_ms = gone_ms < LINGER_MS ? LINGER_MS - (int)gone_ms : 0;
    return wait_ms < 0 || rest_ms < wait_ms ? rest_ms : wait_ms;
}

void http_step(struct http *http)
{
    struct epoll_event events[16];
    int n = epoll_wait(http->epoll_fd, events, sizeof events / sizeof *events, 0);
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr)
            alive_end(events[i].data.ptr);
    (void)MHD_run(http->daemon);
}

size_t http_n_opened(const struct http *http)
{
    return http->n_opened;
}

bool http_has_ended(const struct http *http)
{
    return http->left_ms && now_ms() - http->left_ms >= LINGER_MS;
}
