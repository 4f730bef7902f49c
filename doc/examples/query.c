/* SPDX-License-Identifier: BSD-3-Clause */
/* locus/query.h: the nodes that a query finds. usage: query FILE QUERY, such as '[{"name": "f"}, "*"]' */
#include <locus/query.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct frame *frame;
    struct error err;
    bool *found = NULL;
    if (argc != 3)
        return 2;
    if (frame_open(argv[1], &frame, &err) != 0 || query_run(frame, argv[2], NULL, &found, &err) != 0) {
        printf("%s\n", err.text);
        return 1;
    }
    for (uint32_t node = 0; node < frame_n_nodes(frame); node++)
        if (found[node])
            printf("%s\n", frame_name(frame, node));
    free(found);
    frame_close(frame);
    return 0;
}
