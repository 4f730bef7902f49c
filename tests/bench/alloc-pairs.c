/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-pairs N SIZE: N pairs of malloc and free of SIZE bytes, nothing else, to be counted by instructions. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long n_pairs = atol(argv[1]);
    size_t n_bytes = (size_t)atol(argv[2]);
    void *volatile escape;
    for (long i = 0; i < n_pairs; i++) {
        escape = malloc(n_bytes);
        free(escape);
    }
    return 0;
}
