/* SPDX-License-Identifier: BSD-3-Clause */
/* locus/ops.h: the functions of a profile whose own cost is above a limit. usage: operation FILE CONDITION */
#include <locus/ops.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct frame *frame, *flat = NULL, *kept = NULL;
    struct error err;
    if (argc != 3)
        return 2;
    if (frame_open(argv[1], &frame, &err) != 0) {
        printf("%s\n", err.text);
        return 1;
    }
    if (frame_flat(frame, &flat, &err) == 0 && frame_filter(flat, argv[2], NULL, &kept, &err) == 0)
        for (uint32_t node = 0; node < frame_n_nodes(kept); node++)
            printf("%s\n", frame_name(kept, node));
    else
        printf("%s\n", err.text);
    frame_close(kept);
    frame_close(flat);
    frame_close(frame);
    return 0;
}
