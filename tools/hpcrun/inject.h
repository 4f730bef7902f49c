/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of functions in a program that runs, for hpcrun --unsafe-attach. One thread is stopped at a safe point, makes
 * the calls, and goes on exactly where it was; no other thread is stopped. Ordinary code. */
#ifndef LOCUS_HPCRUN_INJECT_H
#define LOCUS_HPCRUN_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define INJECT_TEXT_MAX 4096

/* A file that the program has mapped. */
struct inject_module {
    char path[INJECT_TEXT_MAX];
    uint64_t low, high;           /* all of it */
    uint64_t code_low, code_high; /* what can be executed */
};

struct inject_modules {
    struct inject_module *modules; /* [n], by address; [vdso] and the like, too */
    size_t n;
};

/* The files that process pid has mapped.  err: ERR_IO, ERR_MEMORY */
int inject_modules_read(pid_t pid, struct inject_modules *modules, struct error *err);
void inject_modules_fini(struct inject_modules *modules);

/* The module whose file has a name that begins with one of these words, NULL when there is none. */
const struct inject_module *inject_module_named(const struct inject_modules *modules, const char *const *words,
                                                size_t n_words);

/* The C library and its loader, NULL when there is none. */
const struct inject_module *inject_libc(const struct inject_modules *modules);
const struct inject_module *inject_loader(const struct inject_modules *modules);

/* Address of a function of a module; 0 when it has none of that name. */
uint64_t inject_function(const struct inject_module *module, const char *name);

/* What a thread does. */
struct inject_doing {
    char state; /* as in struct proc_stat; 0: not known */
    long call;  /* number of the system call that it is in, -1: none, or not known */
    uint64_t arguments[6];
};

/* Looks at a thread of process pid without stopping it. */
struct inject_doing inject_look(pid_t pid, pid_t tid);

/* A thread that is stopped at a safe point. */
struct inject_thread;

/* Calls the function at address with text (NULL: a null pointer) and a number, and stores what it returns;
 * waits for that without a limit.  err: ERR_IO: the thread has ended, or the call raised a signal */
int inject_call(struct inject_thread *thread, uint64_t address, const char *text, uint64_t number, uint64_t *result,
                struct error *err);

/* Reads a text of the program; "" when there is none. */
void inject_read_text(const struct inject_thread *thread, uint64_t address, char *text, size_t n);

/* The process that the thread belongs to. */
pid_t inject_pid(const struct inject_thread *thread);

typedef int inject_work(struct inject_thread *thread, void *context, struct error *err);

/* Stops a thread of process pid at a safe point, lets work make its calls, and lets the thread go on. Where no thread
 * is at a safe point, tries again for some seconds. Returns what work returns. err: ERR_UNSUPPORTED: no thread comes to
 * a safe point, or the kernel does not allow it; ERR_IO: the process has ended */
int inject_run(pid_t pid, inject_work *work, void *context, struct error *err);

/* Why calls cannot be made in programs on this machine; NULL when they can. */
const char *inject_refusal(void);

#endif
