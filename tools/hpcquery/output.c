/* SPDX-License-Identifier: BSD-3-Clause */
/* Where answers go, a terminal, a pipe or a file; and inputs that come through a pipe. */
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/path.h"
#include "fmt/csv.h"
#include "fmt/file.h"
#include "hpcquery.h"

#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 60
#define COLUMNS_MAX 1000

/* COLUMNS, else the terminal's width, else a default. */
static unsigned terminal_columns(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    unsigned long n = columns ? strtoul(columns, &end, 10) : 0;
    if (n == 0 || *end || *columns == '-')
        n = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    if (n == 0)
        return COLUMNS_DEFAULT;
    return n < COLUMNS_MIN ? COLUMNS_MIN : n > COLUMNS_MAX ? COLUMNS_MAX : (unsigned)n;
}

struct terminal terminal_get(const struct settings *settings)
{
    const char *no_color = getenv("NO_COLOR");
    return (struct terminal){.color =
                                 !settings->values[ASK_OUTPUT] && isatty(STDOUT_FILENO) && !(no_color && *no_color),
                             .unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                             .columns = terminal_columns()};
}

/* Whether the path is that of a file of a database, which a slip of the keyboard must not replace. */
static bool is_of_database(const char *path)
{
    static const char *const names[] = {"locus.db", "meta.db", "profile.db", "cct.db", "trace.db", "experiment.xml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path_last(path), names[i]) == 0)
            return access(path, F_OK) == 0;
    return false;
}

/* Writes to a file, which afterwards is complete or, on failure, as it was. Devices and pipes are written to directly,
 * and so is what a link leads to: /dev/stdout is a link that may lead to a file. */
static int put_file(const char *path, const struct buf *out)
{
    struct stat info;
    struct error err;
    if (is_of_database(path))
        return tool_error("hpcquery", "%s is a file of a database and is not replaced: give -o another name", path);
    if (lstat(path, &info) != 0 || S_ISREG(info.st_mode))
        return file_replace(path, out->data ? out->data : "", out->len_bytes, &err) == 0
                   ? 0
                   : tool_error("hpcquery", "%s", err.text);
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(out->data ? out->data : "", 1, out->len_bytes, file) == out->len_bytes;
    if (file && fclose(file) != 0)
        ok = false;
    return ok ? 0 : tool_error("hpcquery", "%s: cannot write: %s", path, strerror(errno));
}

static int put_bytes(const struct settings *settings, const struct buf *out)
{
    if (out->failed || vec_has_failed())
        return tool_error("hpcquery", "out of memory");
    if (settings->values[ASK_OUTPUT])
        return put_file(settings->values[ASK_OUTPUT], out);
    if (fwrite(out->data ? out->data : "", 1, out->len_bytes, stdout) != out->len_bytes || fflush(stdout) != 0)
        return tool_error("hpcquery", "the report cannot be written: %s", strerror(errno));
    return 0;
}

int put_output(const struct settings *settings, const struct buf *out)
{
    struct buf guarded = {0};
    if (strcmp(settings->form, "csv") == 0 && settings->values[ASK_CSV]) {
        csv_put_guarded(&guarded, out->data ? out->data : "", out->len_bytes);
        guarded.failed |= out->failed;
        int status = put_bytes(settings, &guarded);
        buf_fini(&guarded);
        return status;
    }
    return put_bytes(settings, out);
}

/* --- inputs from pipes --- */

/* The descriptor that a name stands for: "-", or one of those that shells write for <(command). -1: it is a path. */
static int descriptor_of(const char *name)
{
    static const char *const beginnings[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(name, "-") == 0 || strcmp(name, "/dev/stdin") == 0)
        return STDIN_FILENO;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t len = strlen(beginnings[i]);
        const char *digits = name + len;
        if (strncmp(name, beginnings[i], len) == 0 && strlen(digits) < 8 && *digits &&
            strspn(digits, "0123456789") == strlen(digits))
            return (int)strtol(digits, NULL, 10);
    }
    return -1;
}

bool input_is_there(const char *name)
{
    return descriptor_of(name) >= 0 || access(name, F_OK) == 0;
}

/* Reads all of a pipe into a file in memory; returns its descriptor, -1 with errno on failure. */
static int take_pipe(int from)
{
    char bytes[1 << 16];
    ssize_t n;
    int to = memfd_create("input", MFD_CLOEXEC);
    while (to >= 0 && (n = read(from, bytes, sizeof bytes)) != 0) {
        ssize_t done = 0, step = 1;
        if (n < 0 && errno == EINTR)
            continue;
        for (; done < n && step > 0; done += step > 0 ? step : 0)
            step = write(to, bytes + done, (size_t)(n - done));
        if (n < 0 || done < n) {
            int number = errno;
            (void)close(to);
            errno = number;
            return -1;
        }
    }
    return to;
}

int input_path(const char *name, char path[INPUT_PATH_BYTES])
{
    struct stat info;
    int fd = descriptor_of(name);
    *path = '\0';
    if (fd < 0)
        return 0;
    if (fstat(fd, &info) != 0)
        return tool_error("hpcquery", "%s: cannot open: %s", name, strerror(errno));
    if (isatty(fd))
        return tool_error("hpcquery", "%s is a terminal; give a profile, such as by a pipe", name);
    if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))
        fd = take_pipe(fd);
    if (fd < 0)
        return tool_error("hpcquery", "%s: cannot read: %s", name, strerror(errno));
    (void)snprintf(path, INPUT_PATH_BYTES, "/proc/self/fd/%d", fd);
    return 0;
}
