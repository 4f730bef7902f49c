/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for program structure: whatever an ELF file with debug information holds, it is read without
 * a crash, and what is made of it keeps the promises of structure.h. Seeds: small programs with debug information. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "structure/xml/structure-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void broken(const char *what)
{
    (void)fprintf(stderr, "A structure was made, but %s.\n", what);
    abort();
}

static void check_function(const struct structure_function *function)
{
    if (function->n_scopes == 0 || function->n_spans == 0)
        broken("a function is empty");
    for (size_t i = 0; i < function->n_scopes; i++) {
        const struct structure_scope *scope = &function->scopes[i];
        if (i == 0 ? scope->parent != STRUCTURE_NONE || scope->kind != STRUCTURE_FUNCTION : scope->parent >= i)
            broken("a scope does not come after its parent");
        if (scope->kind == STRUCTURE_LOOP && scope->end_line < scope->line)
            broken("a loop ends before it begins");
    }
    for (size_t i = 0; i < function->n_spans; i++) {
        const struct structure_span *span = &function->spans[i];
        if (span->start >= span->end || span->scope >= function->n_scopes)
            broken("a span is empty or of no scope");
        if (i > 0 && function->spans[i - 1].end > span->start)
            broken("spans overlap");
        if (structure_span_at(function, span->start) != i)
            broken("a span is not found");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static char path[64];
    static FILE *sink;
    const struct structure_options options = {.n_jobs = 1, .bytes_min = 1};
    struct structure_module module;
    if (!path[0])
        (void)snprintf(path, sizeof path, "/dev/shm/structure-fuzz-%d", (int)getpid());
    if (!sink)
        sink = fopen("/dev/null", "w");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || !sink || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    (void)close(fd);
    if (structure_module_load(path, &options, &module, NULL) == 0) {
        for (size_t i = 0; i < module.n_functions; i++)
            check_function(&module.functions[i]);
        const struct structure_output output = {.out = sink, .with_types = true};
        if (structure_module_write(&module, &output, NULL) != 0)
            broken("it cannot be written");
        structure_module_fini(&module);
    }
    (void)unlink(path);
    return 0;
}
