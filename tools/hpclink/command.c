/* SPDX-License-Identifier: BSD-3-Clause */
/* Building and running command lines; see command.h. */
#include "command.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void command_add(struct command *command, const char *format, ...)
{
    va_list arguments;
    char *word = NULL;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    if (!word || !vec_reserve(&command->words, &command->capacity, command->n_words + 2, sizeof *command->words)) {
        command->failed = true;
        free(word);
        return;
    }
    command->words[command->n_words++] = word;
    command->words[command->n_words] = NULL;
}

void command_add_linker(struct command *command, bool is_linker, const char *option, const char *value)
{
    command_add(command, "%s%s%s", is_linker ? "" : "-Wl,", option, value);
}

static void drain(int fd, struct buf *output)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_append(output, bytes, (size_t)n);
}

static int spawn(const struct command *command, const int *pipe_fds, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int status = posix_spawn_file_actions_init(&actions);
    if (status != 0)
        return status;
    if (pipe_fds) {
        (void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
        (void)posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
        (void)posix_spawn_file_actions_addclose(&actions, pipe_fds[1]);
    }
    status = posix_spawnp(pid, command->words[0], &actions, NULL, command->words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return status;
}

int command_run(const struct command *command, struct buf *output, struct error *err)
{
    int fds[2] = {-1, -1}, status;
    pid_t pid;
    if (command->failed)
        return error_set(err, ERR_MEMORY, "Out of memory.");
    if (output && pipe(fds) != 0)
        return error_set(err, ERR_IO, "A pipe cannot be made: %s.", strerror(errno));
    status = spawn(command, output ? fds : NULL, &pid);
    if (output)
        (void)close(fds[1]);
    if (status == 0 && output)
        drain(fds[0], output);
    if (output)
        (void)close(fds[0]);
    if (status != 0)
        return error_set(err, ERR_NOT_FOUND, "%s cannot be run: %s.", command->words[0], strerror(status));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void command_print(const struct command *command)
{
    for (size_t i = 0; i < command->n_words; i++)
        (void)fprintf(stderr, "%s%s", command->words[i], i + 1 < command->n_words ? " " : "\n");
}

void command_fini(struct command *command)
{
    for (size_t i = 0; i < command->n_words; i++)
        free(command->words[i]);
    free(command->words);
    *command = (struct command){0};
}
