/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's loop: see serve.h for the messages. Answers are made as a whole and then written. */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fnbounds/modtab-make.h"

/* Reads n bytes; 0 at the end of input, else how many came. */
static size_t read_all(int fd, char *bytes, size_t n)
{
    size_t n_read = 0;
    while (n_read < n) {
        ssize_t got = read(fd, bytes + n_read, n - n_read);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n_read += (size_t)got;
    }
    return n_read;
}

static int write_all(int fd, const char *bytes, size_t n, struct error *err)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return error_set(err, ERR_IO, "the answer cannot be written: %s", strerror(errno));
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static void put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    char bytes[8];
    bytes_put_be(bytes, value, n_bytes);
    buf_append(out, bytes, n_bytes);
}

static int answer(int fd, enum serve_type type, const struct buf *contents, struct error *err)
{
    struct buf head = {0};
    buf_append(&head, "LFNB", 4);
    put(&head, SERVE_VERSION, 2);
    put(&head, type, 2);
    put(&head, contents->len_bytes, 8);
    int status = head.failed ? error_set(err, ERR_MEMORY, "out of memory for an answer")
                             : write_all(fd, head.data, head.len_bytes, err);
    if (status == 0)
        status = write_all(fd, contents->data, contents->len_bytes, err);
    buf_fini(&head);
    return status;
}

static bool put_functions(const struct modtab_elf *m, bool discover, struct buf *out)
{
    struct modtab_vec fdes = {0}, funcs = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, discover, &funcs);
    bool good = !fdes.failed && !funcs.failed;
    const struct modtab_range *f = funcs.items;
    put(out, funcs.n, 8);
    put(out, m->header.is_fixed ? 0 : m->header.base_vaddr, 8);
    put(out, !m->header.is_fixed, 8);
    for (size_t i = 0; good && i < funcs.n; i++) {
        put(out, f[i].start, 8);
        put(out, f[i].end, 8);
    }
    free(fdes.items);
    free(funcs.items);
    return good && !out->failed;
}

static uint64_t put_syms(const struct modtab_vec *syms, uint64_t bytes_min, struct buf *out)
{
    const struct modtab_sym *s = syms->items;
    uint64_t n = 0;
    for (size_t i = 0; i < syms->n; i++) {
        if (s[i].size_bytes < bytes_min)
            continue;
        put(out, s[i].vaddr, 8);
        put(out, s[i].size_bytes, 8);
        put(out, s[i].kind, 8);
        put(out, s[i].name, 8);
        n++;
    }
    return n;
}

static bool put_variables(const struct modtab_elf *m, uint64_t bytes_min, struct buf *out)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    put(out, 0, 8);
    uint64_t n = put_syms(&syms, bytes_min, out) + put_syms(&tls_syms, bytes_min, out);
    buf_append(out, strings.data, strings.len_bytes);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed && !out->failed;
    if (good)
        bytes_put_be(out->data, n, 8);
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good;
}

static int answer_module(const struct serve_options *options, uint64_t type, const char *path, struct error *err)
{
    struct modtab_elf m;
    struct error reason = {0};
    struct buf out = {0};
    int status = modtab_elf_open(&m, path, &reason);
    if (status == 0) {
        modtab_debug_open(&m);
        bool good = type == SERVE_FUNCTIONS ? put_functions(&m, options->discover, &out)
                                            : put_variables(&m, options->bytes_min, &out);
        modtab_elf_close(&m);
        if (!good)
            status = error_set(&reason, ERR_MEMORY, "%s: out of memory.", path);
    }
    if (status != 0) {
        out.len_bytes = 0;
        buf_append(&out, reason.text, strlen(reason.text));
    }
    status = out.failed ? error_set(err, ERR_MEMORY, "out of memory for an answer")
                        : answer(options->fd_out, status == 0 ? SERVE_OK : SERVE_ERROR, &out, err);
    buf_fini(&out);
    return status;
}

/* One request; *is_over: there are no more. */
static int serve_one(const struct serve_options *options, bool *is_over, struct error *err)
{
    static char path[SERVE_PATH_BYTES_MAX + 1];
    char head[SERVE_HEAD_BYTES];
    size_t n = read_all(options->fd_in, head, sizeof head);
    *is_over = n == 0;
    if (n == 0)
        return 0;
    if (n < sizeof head || memcmp(head, "LFNB", 4) != 0)
        return error_set(err, ERR_FORMAT, "a message does not begin with LFNB and a head of %d bytes",
                         SERVE_HEAD_BYTES);
    uint64_t version = bytes_get_be(head + 4, 2), type = bytes_get_be(head + 6, 2), n_bytes = bytes_get_be(head + 8, 8);
    if (version != SERVE_VERSION)
        return error_set(err, ERR_FORMAT, "a message has version %u, this server speaks version %d", (unsigned)version,
                         SERVE_VERSION);
    if (n_bytes > SERVE_PATH_BYTES_MAX || (type != SERVE_FUNCTIONS && type != SERVE_VARIABLES && type != SERVE_EXIT))
        return error_set(err, ERR_FORMAT, "there is no request of type %u with %llu bytes", (unsigned)type,
                         (unsigned long long)n_bytes);
    if (read_all(options->fd_in, path, n_bytes) != n_bytes)
        return error_set(err, ERR_FORMAT, "the input ends within a message");
    path[n_bytes] = '\0';
    *is_over = type == SERVE_EXIT;
    return *is_over ? 0 : answer_module(options, type, path, err);
}

int serve(const struct serve_options *options, struct error *err)
{
    bool is_over = false;
    int status = 0;
    while (status == 0 && !is_over)
        status = serve_one(options, &is_over, err);
    return status;
}
