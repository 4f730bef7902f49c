/* SPDX-License-Identifier: BSD-3-Clause */
/* Where nobody has written how a stopped thread calls a function on this processor: takes the place of inject.c. */
#include "inject.h"

const char *inject_refusal(void)
{
    return "--unsafe-attach is written for x86-64 only: on this processor the program has to be started by hpcrun";
}

int inject_call(struct inject_thread *thread, uint64_t address, const char *text, uint64_t number, uint64_t *result,
                struct error *err)
{
    (void)thread;
    (void)address;
    (void)text;
    (void)number;
    *result = 0;
    return error_set(err, ERR_UNSUPPORTED, "%s", inject_refusal());
}

void inject_read_text(const struct inject_thread *thread, uint64_t address, char *text, size_t n)
{
    (void)thread;
    (void)address;
    if (n)
        text[0] = '\0';
}

pid_t inject_pid(const struct inject_thread *thread)
{
    (void)thread;
    return 0;
}

int inject_run(pid_t pid, inject_work *work, void *context, struct error *err)
{
    (void)pid;
    (void)work;
    (void)context;
    return error_set(err, ERR_UNSUPPORTED, "%s", inject_refusal());
}
