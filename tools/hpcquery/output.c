/* SPDX-License-Identifier: BSD-3-Clause */
/* Where answers go: a terminal, a pipe or a file. */
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/path.h"
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
    return (struct terminal){.color = !settings->output && isatty(STDOUT_FILENO) && !(no_color && *no_color),
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

/* Writes to a file, which is complete or as it was; what a device, a pipe or a link leads to is written to. /dev/stdout
 * is a link, and a file is where it may lead. */
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

int put_output(const struct settings *settings, const struct buf *out)
{
    if (out->failed || vec_has_failed())
        return tool_error("hpcquery", "out of memory");
    if (settings->output)
        return put_file(settings->output, out);
    if (fwrite(out->data ? out->data : "", 1, out->len_bytes, stdout) != out->len_bytes || fflush(stdout) != 0)
        return tool_error("hpcquery", "the report cannot be written: %s", strerror(errno));
    return 0;
}
