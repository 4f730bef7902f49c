/* SPDX-License-Identifier: BSD-3-Clause */
/* A growing text. Functions append to it; who made it frees it. Ordinary code. */
#ifndef LOCUS_BASE_BUF_H
#define LOCUS_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A growing byte buffer; all zero is empty. data is NUL-terminated beyond len_bytes whenever data is non-NULL. */
struct buf {
    char *data;
    size_t len_bytes;
    size_t capacity;
    bool failed; /* an append ran out of memory: everything after it was ignored */
};

/* Frees the data and makes the buffer empty. */
void buf_fini(struct buf *buf);

#ifdef __cplusplus
}
#endif

#endif
