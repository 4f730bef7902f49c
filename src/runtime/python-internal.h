/* SPDX-License-Identifier: BSD-3-Clause */
/* Between python-find.c and python-hook.c. */
#ifndef LOCUS_RUNTIME_PYTHON_INTERNAL_H
#define LOCUS_RUNTIME_PYTHON_INTERNAL_H

#include <stdint.h>

/* What an interpreter exports. */
struct python_api {
    uintptr_t (*current)(void); /* state of the thread that holds the interpreter's lock */
    uintptr_t (*own)(void);     /* of the calling thread */
    uintptr_t code_type, text_type, bytes_type;
};

/* From now on the interpreter is read.  ctx: ordinary, once */
void python_use(const struct python_api *api);

#endif
