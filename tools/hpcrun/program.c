/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a command and looking into it; see program.h. Ordinary code. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/input.h"
#include "program-elf.h"

#define SCRIPT_DEPTH_MAX 4

static int try_path(const char *path, struct error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return error_set(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO, "%s: %s.", path,
                         strerror(errno));
    if (S_ISDIR(status.st_mode))
        return error_set(err, ERR_IO, "%s is a directory.", path);
    if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0)
        return error_set(err, ERR_IO, "%s is not executable.", path);
    return 0;
}

static int search_path(const char *command, struct program *program, struct error *err)
{
    const char *part = getenv("PATH");
    int status = error_set(err, ERR_NOT_FOUND, "%s: there is no such command in PATH.", command);
    for (part = part ? part : "/bin:/usr/bin"; part; part = strchr(part, ':') ? strchr(part, ':') + 1 : NULL) {
        struct error tried;
        size_t len = strcspn(part, ":");
        (void)snprintf(program->path, sizeof program->path, "%.*s%s%s", (int)len, part, len ? "/" : "./", command);
        int code = try_path(program->path, &tried);
        if (code == 0)
            return 0;
        if (code == ERR_IO && status == ERR_NOT_FOUND)
            status = error_set(err, code, "%s", tried.text);
    }
    return status;
}

int program_find(const char *command, struct program *program, struct error *err)
{
    int status;
    *program = (struct program){0};
    if (strchr(command, '/')) {
        (void)snprintf(program->path, sizeof program->path, "%s", command);
        status = try_path(command, err);
    } else {
        status = search_path(command, program, err);
    }
    if (status != 0)
        program->exit_status = status == ERR_NOT_FOUND ? 127 : 126;
    return status;
}

/* The interpreter named by a script's first line; false when path is no such script. */
static bool read_interpreter(const char *path, char interpreter[PROGRAM_PATH_MAX])
{
    char line[256] = "";
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, line, sizeof line - 1);
    (void)close(fd);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    const char *name = line + 2 + strspn(line + 2, " \t");
    (void)snprintf(interpreter, PROGRAM_PATH_MAX, "%.*s", (int)strcspn(name, " \t\n"), name);
    return true;
}

/* The kernel ignores LD_PRELOAD where it raises privileges. */
static bool raises_privileges(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    if ((status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
        (status.st_mode & S_ISGID && status.st_gid != getegid()))
        return true;
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

int program_check(struct program *program, struct error *err)
{
    char next[PROGRAM_PATH_MAX];
    (void)snprintf(program->binary, sizeof program->binary, "%s", program->path);
    for (int depth = 0; depth < SCRIPT_DEPTH_MAX && read_interpreter(program->binary, next); depth++)
        memcpy(program->binary, next, sizeof next);
    if (raises_privileges(program->binary))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s runs with raised privileges (set-user-id or capabilities): nothing can be preloaded into "
                         "it; measure it as its owner.",
                         program->binary);
    return program_check_elf(program, err);
}
